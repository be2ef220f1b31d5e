"""Inputs: files, ids and lists, the parts of them that could not be used, and what figures rest on."""

from __future__ import annotations

from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Reference
from veilmeter.wording.catalog import Catalog, shown
from veilmeter.wording.numbers import capitalize, listing
from veilmeter.wording.numbers import count as counted

WORDS = Catalog()

_WAYS = {
    "form": "differ only in their extension or Unicode form",
    "path": "differ only in the folders before them",
    "name": "have only the file name in common",
}


@WORDS.words("ids_matched")
def _ids_matched(
    count: int, first: str, second: str, way: str, mine: Reference | None = None, other: Reference | None = None
) -> str:
    example = f" (such as {shown(mine)} and {shown(other)})" if mine is not None and other is not None else ""
    return f"{counted(count, 'id')} of {first} and of {second} {_WAYS[way]}{example} and were matched."


@WORDS.words("ids_ambiguous")
def _ids_ambiguous(count: int, first: str, second: str, example: Reference | None = None) -> str:
    named = "" if example is None else f" (such as {shown(example)})"
    return f"{counted(count, 'id')} of {first} could match several of {second}{named} and were left out."


@WORDS.words("utterances_unmatched")
def _utterances_unmatched(only_original: int, only_anonymized: int, speaker_differs: int) -> str:
    reasons = [
        (only_original, "original utterance", "without an anonymized version"),
        (only_anonymized, "anonymized utterance", "without an original"),
        (speaker_differs, "utterance", "whose two versions name different speakers"),
    ]
    return f"Left out: {listing([f'{counted(n, what)} {why}' for n, what, why in reasons if n])}."


WORDS.say("vectors_left_out", "{file}: {count:vector} left out ({kind}). The first: {example}.")


@WORDS.words("recordings_unusable")
def _recordings_unusable(role: str, count: int, kinds: tuple[str, ...]) -> str:
    return f"{role}: {counted(count, 'recording or line', 'recordings or lines')} left out ({', '.join(kinds)})."


WORDS.say("recordings_left_out", "{count:recording} left out.")


@WORDS.words("speakers_left_out")
def _speakers_left_out(
    purpose: str, count: int, needed: int, examples: tuple[Reference, ...], length: int | None = None
) -> str:
    lacking = f"fewer than {counted(needed, 'utterance')}" if purpose != "sessions" else (
        f"no session with {counted(needed, 'utterance')}"
    )  # fmt: skip
    what = {
        "similarity": "the similarity matrices",
        "sessions": "the results by session",
        "trials": "the trials" if length is None else f"conversations of length {length}",
    }[purpose]
    return f"{counted(count, 'speaker')} left out of {what}, because they have {lacking}: {_few(count, examples)}."


def _few(count: int, examples: tuple[Reference, ...]) -> str:
    return ", ".join(map(shown, examples)) + (", ..." if count > len(examples) else "")


WORDS.say("file_as_latin1", "{file}: not UTF-8, read as Latin-1.")


@WORDS.words("pairs_repeated")
def _pairs_repeated(what: str, file: Reference, line: int, count: int, example: Reference) -> str:
    return f"{shown(file)}:{line}: {counted(count, f'repeated {what}')} counted once, such as {shown(example)}."


@WORDS.words("pairs_left_out")
def _pairs_left_out(what: str, file: Reference, line: int, count: int, example: Reference) -> str:
    lacking = "trial in the key" if what == "score" else "score"
    return f"{shown(file)}:{line}: {counted(count, what)} without a {lacking} left out, such as {shown(example)}."


WORDS.say("utt2spk_unused", "{file}: not used to identify speakers: {reason}.")
WORDS.say(
    "speakers_joined",
    "{file}: {count:pair} of speakers counted as one person, because target trials compare them with each other. "
    "Check that this file belongs to these trials.",
)
WORDS.say(
    "same_recording_enrolled",
    "{count:utterance} {count:~is/are} the same recording in the enrollment and in the test, so risks are "
    "overestimated. Enroll other utterances.",
)
WORDS.say(
    "same_id_enrolled",
    "{count:utterance} {count:~has/have} the same id in the enrollment and in the test. If they are the same speech "
    "before anonymization, words and channel link them too; enroll other utterances.",
)


@WORDS.words("people_not_enrolled")
def _people_not_enrolled(count: int, examples: tuple[Reference, ...]) -> str:
    return f"{counted(count, 'test speaker')} {'is' if count == 1 else 'are'} not enrolled, so no attacker can find them: {_few(count, examples)}."


WORDS.say("trials_repeated", "{file}: {count:repeated line} ignored; each trial counts once.")
WORDS.say(
    "trials_contradicted",
    "{file}: {count:trial} {count:~is/are} listed both as target and as nontarget, such as {example}. The last line "
    "counts, as in the challenge's scorer.",
)
WORDS.say(
    "trials_without_recording",
    "{file}: {count} of {listed:trial utterance} left out, because they have no recording, such as {example}.",
)
WORDS.say(
    "trial_speakers_without_enrollment",
    "{file}: {count:trial speaker} {count:~has/have} no enrollment recording, such as {example}.",
)
WORDS.say("scores_and_trials_differ", "{file}: {scores:score}, but {trials:trial} in the list.")
WORDS.say("scores_older_than_speech", "{file}: older than the anonymized speech. Is it from an earlier run?")


@WORDS.words("listed_utterances_missing")
def _missing_utterances(list: str, count: int) -> str:
    return f"{counted(count, f'listed {list} utterance')} left out: not in both corpora."


WORDS.say(
    "people_never_tried",
    "{count:speaker} {count:~is/are} enrolled but never tried: others can be mistaken for them.",
)
WORDS.say(
    "distractors_enrolled",
    "{count:distractor} ({recordings:recording}) {count:~is/are} enrolled and never tried: attackers choose among "
    "{count:~this person/these people}, too.",
)
WORDS.say(
    "people_tried_not_enrolled", "{count:speaker} {count:~is/are} tried but not enrolled, so nobody can link them."
)
WORDS.say(
    "people_with_one_utterance",
    "{count:speaker} with a single utterance only enrolled: nothing is left to try.",
)
WORDS.say(
    "run_is_released",
    "The attackers' {run} equals the released run: the anonymizer draws nothing at random, or it is the same run.",
)
WORDS.say(
    "draw_contradicts_manifest", "{place}: treated as drawn per {recorded}, as its manifest says, not per {said}."
)

# --- what a preliminary verdict waits for

WORDS.say("utility_pending", "The utility of the anonymized speech is still to be measured.")
WORDS.say("extractor_pending", "Attackers who use the extractor {extractor} are still to be run; they may find more.")

# --- utility

WORDS.say(
    "language_assumed",
    "The corpus does not name its language: words were taken for {language}. Is it another one? Name it with --language, "
    "or have it recognized with --language auto.",
)
WORDS.say("recordings_without_text", "{count:recording} left out, because the corpus has no text for them.")
WORDS.say("originals_without_partner", "{count:original recording} without an anonymized version left out.")
WORDS.say("recordings_silent", "{count:anonymized recording} {count:~is/are} silent: all their words count as lost.")
WORDS.say("recordings_not_heard", "{count:recording} left out, because they could not be used. The first: {example}.")


@WORDS.words("recordings_narrow_band")
def _recordings_narrow_band(rate: int) -> str:
    return (
        f"Some recordings have a sampling rate of {rate / 1000:g} kHz. Recognizer and quality models expect 16 kHz and "
        "rate narrow-band speech lower, on both sides."
    )


@WORDS.words("labels_not_measured")
def _labels_not_measured(label: Reference, reason: Reference) -> str:
    return f"{capitalize(shown(reason))}." if reason.id else f"Recognition of {shown(label)} was not measured."


# --- what figures rest on: options, how much was drawn, and what makes a figure say little


@WORDS.words("option_without_effect")
def _option_without_effect(option: str, reason: str, given: Reference | None = None) -> str:
    value = "" if given is None else f" {shown(given)}"
    return f"{option}{value} had no effect: {reason}."


WORDS.say("fewer_resamples", "--resamples {asked}: the figures per speaker use {drawn}.")
WORDS.say("one_target_speaker", "All target trials are of one speaker: no interval over people can be given.")
WORDS.say("few_speakers", "Only {count:speaker}: the intervals are wide and approximate.")


@WORDS.words("linked_below_chance")
def _linked_below_chance(linked: Estimate) -> str:
    return (
        f"Recordings are linked less often than by guessing ({linked.format_value()} among 2 people): do both sets of "
        "vectors come from the same extractor?"
    )


WORDS.say("few_enrolled", "Only {count:person/people} enrolled: extrapolation is reliable from some hundreds on.")
WORDS.say("few_target_trials", "D_sys is not meaningful: it is 0 by definition with fewer than {needed} target trials.")
WORDS.say(
    "few_impostor_trials",
    "{count:impostor trial} can't show an FPR of 1 % or less: the TPRs are those without any false alarm.",
)
WORDS.say(
    "scores_inverted",
    "Inverted scores: with their sign flipped they disclose {flipped:.4f} bit (D_ECE), more than as they are "
    "({as_given:.4f}). An attacker would flip them. Are these distances instead of similarities, or are the labels swapped?",
)


@WORDS.words("sizes_left_out")
def _sizes_left_out(length: int, speakers: int, needed: int, sizes: tuple[int, ...]) -> str:
    among = f"among {listing([f'{size:,}' for size in sizes], 'or')} speakers" if sizes else "at all"
    return (
        f"Length {length} is not measured {among}: only {counted(speakers, 'speaker')} with at least {needed} "
        "utterances."
    )


WORDS.say(
    "originals_alike",
    "The original voices are hardly distinguished (D_diag(OO) {d_diag:.3f}): the vectors are weak, so DeID and G_VD "
    "say little.",
)
WORDS.say(
    "diagonal_inverted",
    "The diagonal of OP is lower than its surroundings (D_diag(OP) {d_diag:.3g}): an anonymized voice resembles its "
    "own speaker less than other speakers, which identifies people too.",
)

# --- what an attack or an analysis rests on


def _what(length: int) -> str:
    return "trial recordings" if length == 1 else f"conversations of {length} recordings"


WORDS.say("length_left_out", "Length {length} left out: no two speakers have {length} trial utterances.")


@WORDS.words("trials_drawn")
def _trials_drawn(length: int, drawn: int, possible: int) -> str:
    return f"{drawn:,} of {possible:,} {_what(length)} were drawn to be tried, some of every speaker."


@WORDS.words("scores_drawn")
def _scores_drawn(length: int, drawn: int, possible: int) -> str:
    return f"The measures of scores rest on {drawn:,} of {possible:,} {_what(length)}."


WORDS.say(
    "isolation_conversations_drawn", "Singling Out: at most {most:conversation} drawn per speaker (length {length})."
)
WORDS.say(
    "isolation_speakers_drawn",
    "Singling Out: {drawn} of {possible:speaker} were drawn to be singled out (length {length}).",
)
WORDS.say(
    "isolation_rules_drawn", "Singling Out: the rules of {drawn} of {possible} people were tried (length {length})."
)


@WORDS.words("similarity_drawn")
def _similarity_drawn(recordings: int, all_recordings: int, speakers: int, all_speakers: int) -> str:
    people = f"all {speakers:,}" if speakers == all_speakers else f"{speakers:,} of {all_speakers:,}"
    return (
        f"{recordings:,} of {all_recordings:,} recordings of {people} speakers were drawn for the similarity matrices "
        "(veilmeter similarity uses all)."
    )


WORDS.say("lookups_drawn", "At most {most} of the {trials:trial recording} were looked up in each group.")
WORDS.say(
    "population_is_smaller",
    "Linkability among {size} people is measured, not extrapolated: {enrolled} are enrolled (--speakers {size}).",
)
WORDS.say("not_extrapolated", "Linkability is not extrapolated: {reason}.")


@WORDS.words("unseen_people")
def _unseen_people(share: float, speakers: int) -> str:
    return (
        f"Linkability in a population: unprotected people who make up less than {share:.2g} % of it may be missing "
        f"among the {speakers:,} measured. Only the interval allows for them."
    )


WORDS.say("measured_for_checks", "Measured as well, because the trust checks need it: {families}.")
WORDS.say("scores_of_others", "{count:person/people} in the given scores {count:~is/are} not among those assessed.")
