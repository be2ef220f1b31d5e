"""Inputs: files, ids and lists, and the parts of them that could not be used."""

from __future__ import annotations

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
    return f"{counted(count, 'test speaker')} not enrolled, so no attacker can find them: {_few(count, examples)}."


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
def _listed_utterances_missing(list: str, count: int) -> str:
    return f"{counted(count, f'listed {list} utterance')} left out: not in both corpora."


WORDS.say(
    "people_never_tried",
    "{count:speaker} {count:~is/are} enrolled but never tried: others can be mistaken for them.",
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

# --- utility

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
