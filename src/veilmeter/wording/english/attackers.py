"""Attackers: their material, replaced methods, the study of one inversion attack, and why something was not tested."""

from __future__ import annotations

from veilmeter.core.findings import Reference
from veilmeter.wording.catalog import Catalog, shown
from veilmeter.wording.numbers import count

WORDS = Catalog()


@WORDS.words("runs_lack_enrollment")
def _runs_lack_enrollment(recordings: int, speakers: int) -> str:
    lost = f"The attacker's runs lack {count(recordings, 'enrollment recording')}"
    if not speakers:
        return f"{lost}; everybody has other recordings in these runs."
    return f"{lost}, and {count(speakers, 'speaker')} without any could not be enrolled."


WORDS.say(
    "own_extractor_without_run",
    "The {attacker} attacker enrolls from the released run, whose draws its trials share, because the vectors of its "
    "run by its own extractor were not given ([attackers.{attacker}] attacker_run =).",
)
WORDS.say("anonymizer_not_run", "The attacker could not run the anonymizer: the real risk may be higher.")
WORDS.say(
    "enrolled_from_released_run",
    "The attacker had no own run and enrolled from the released one, whose draws its trials share.",
)
WORDS.say(
    "candidates_without_copy",
    "{count} of {candidates:candidate} without an anonymized copy: predicted from their original voices.",
)
WORDS.say("run_lacks_recordings", "{run} lacks {count} of {recordings:enrollment recording}.")
WORDS.say(
    "draw_unknown",
    "{run} does not say what one draw covers; it is treated as one draw per {level}, by an estimate that may be wrong.",
)
WORDS.say(
    "draw_taken_per_speaker",
    "{run} is declared as drawn per utterance, but its recordings look drawn per speaker: treated as drawn per speaker.",
)
WORDS.say(
    "draw_looks_per_utterance",
    "{run} is declared as drawn per speaker, but its recordings look drawn per utterance. If they are, the attacker "
    "could choose its methods better.",
)


@WORDS.words("method_replaced")
def _method_replaced(attacker: str, other: str, difference: float) -> str:
    return (
        f"The {attacker} attacker's method was replaced by that of the {other} attacker, who knows less but did better "
        f"(by {abs(difference):.1f} percentage points of candidates beaten)."
    )


# --- what they were trained on: completes "trained on ..."


WORDS.say("trained_on_nothing", "nothing of this assessment")
WORDS.say("trained_by_kaldi", "speech that Kaldi's back end was trained on")
WORDS.say("trained_on_pairs", "{recordings:enrollment recording}, original and anonymized")
WORDS.say("trained_elsewhere", "speech of another system, whose scores were given")
WORDS.say("own_extractor_given", "given vectors of another extractor")
WORDS.say(
    "trained_in_folds",
    "the anonymized recordings of the assessed speakers themselves, in {folds:fold}: a pair of people is compared by an "
    "attacker that was trained on neither",
)


@WORDS.words("trained_on_speech")
def _training_speech(recordings: int, version: str, speakers: int, assessed: int) -> str:
    kind = "original recording" if version == "original" else "recording"
    return f"{count(recordings, kind)} of {_speakers(speakers, assessed)}"


def _speakers(speakers: int, assessed: int) -> str:
    if not assessed:
        return count(speakers, "other speaker")
    return f"{count(speakers, 'speaker')}, {assessed:,} of them assessed here"


@WORDS.words("extractor_tuned")
def _extractor_tuned(
    recordings: int,
    speakers: int,
    assessed: int,
    own_copies: bool,
    epochs: int,
    first_loss: float,
    last_loss: float,
) -> str:
    people = f"{count(speakers, 'speaker')}, the candidates' own copies among them"
    people = people if own_copies else _speakers(speakers, assessed)
    losses = f"loss {first_loss:.2f} to {last_loss:.2f} in {count(epochs, 'epoch')}"
    return f"{count(recordings, 'recording')} of {people}, by fine-tuning ({losses})"


@WORDS.words("trained_on_copies")
def _training_copies(
    recordings: int,
    candidates: int,
    copies: int,
    runs: int,
    released: bool,
    other_copies: int | None = None,
    other_people: int | None = None,
) -> str:
    parts = [f"{count(recordings, 'original recording')} of the {count(candidates, 'candidate')}"]
    if copies:
        which = " (the released one)" if released else ""
        parts.append(f"{count(copies, 'anonymized copy', 'anonymized copies')} of them in {count(runs, 'run')}{which}")
    if other_copies is not None and other_people is not None:
        copied = count(other_copies, "anonymized copy", "anonymized copies")
        parts.append(f"{copied} of {count(other_people, 'other person', 'other people')}")
    return ", ".join(parts)


# --- how recordings were divided into enrollment and trials


@WORDS.words("split_by_lists")
def _split_by_lists(found: bool) -> str:
    return "lists found with the data" if found else "lists"


@WORDS.words("split_by_session")
def _split_by_session(by_session: int, in_halves: int) -> str:
    if by_session and in_halves:
        return f"by session ({count(by_session, 'speaker')}), random halves ({count(in_halves, 'speaker')} with one session)"
    return "by session" if by_session else "random halves"


WORDS.say("split_of_scores", "the trials of the score files")
WORDS.say("split_by_challenge", "the lists of the VoicePrivacy data")

# --- the study of one inversion attack

WORDS.say(
    "trials_without_group",
    "{lost} of {trials:trial} left out: the anonymized set has the {column} of pseudo-voices, and no original set has "
    "these people. Give --clear-trials.",
)
WORDS.say(
    "other_run_incomplete",
    "The figures of the other run rest on {common} of the {attacked:attacked utterance}: it lacks the rest.",
)
WORDS.say("other_run_left_out", "{count:utterance} of the other run left out, because they were not attacked.")


@WORDS.words("inversion_spread")
def _inversion_spread(
    seeds: int,
    measures: tuple[str, ...],
    groups: tuple[Reference, ...],
    means: tuple[float, ...],
    lowest: tuple[float, ...],
    highest: tuple[float, ...],
) -> str:
    labels = {"eer": "EER", "top1": "Top-1"}
    figures = [
        f"{labels.get(name, name)}{f' {shown(group)}' if group.id else ''} {mean:.1f} ({low:.1f} to {high:.1f})"
        for name, group, mean, low, high in zip(measures, groups, means, lowest, highest, strict=False)
    ]
    return f"The attack depends on chance. Mean and range over {seeds} seeds: {', '.join(figures)}."


WORDS.say("training_unpaired", "{count:training utterance} without {version} version left out, such as {example}.")


@WORDS.words("few_pairs")
def _few_pairs(pairs: int, dimension: int, group: Reference | None = None) -> str:
    who = "" if group is None else f" ({shown(group)})"
    return (
        f"{pairs} pairs for {dimension} dimensions{who}: the rotation is arbitrary beyond what the pairs span. More "
        "pairs or --pca could make the attack stronger."
    )


WORDS.say("oracle_map", "The map was learned on the attacked trials themselves: an upper bound, not an attack.")
WORDS.say(
    "no_better_than_shuffled",
    "Top-1 is no better than with shuffled pairs. Either the anonymizer resists this attack, or the pairs are wrong: "
    "check that utterance ids mean the same recording in both training sets.",
)

# --- why an attacker was not run or something was not measured; who or what that is comes before it (see `sentence`)

WORDS.say("not_asked_for", "not asked for")
WORDS.say("family_not_asked_for", "{family} was not asked for (--measures)", lay="{family} was not asked for")
WORDS.say("no_scores_given", "no scores were given")
WORDS.say(
    "speech_needed",
    "linking, singling out, similarity, inversion, inference and usability: they need speech or vectors",
)
WORDS.say(
    "disclosure_removed_unknown", "the share of disclosure removed: it needs attackers that were not run ({attackers})"
)

# --- what an attacker lacks

WORDS.say("runs_without_enrollment", "the attacker's runs have none of the enrollment recordings")
WORDS.say("runs_of_few_people", "the attacker's runs hold recordings of fewer than two enrolled people")
WORDS.say(
    "backend_untrained",
    "the back end {backend} needs training speech (--train-original)",
    lay="the back end {backend} needs training speech",
)
WORDS.say("dimensions_differ", "clear and anonymized vectors differ in dimension")
WORDS.say("too_few_for_rotation", "{recordings:recording} are too few to learn a rotation from")
WORDS.say(
    "too_few_to_train",
    "no training speech was given (--train-anonymized), and {speakers:speaker} are too few to train on some and test on "
    "others",
    lay="no training speech was given, and {speakers:speaker} are too few to train on some and test on others",
)
WORDS.say(
    "no_similar_speech",
    "no speech anonymized by a similar system was given (--train-similar)",
    lay="no speech anonymized by a similar system was given",
)
WORDS.say("one_candidate", "there is one candidate only")
WORDS.say(
    "copies_of_other_dimension", "its own copies have {copies} numbers per vector, the released vectors {released}"
)
WORDS.say(
    "vectors_of_two_extractors",
    "without a run of the anonymizer, original and released vectors must be of one extractor",
)
WORDS.say("one_extractor", "there is one extractor only (--extractor takes several)", lay="there is one extractor only")
WORDS.say("no_release_pseudonyms", "nothing says which released recordings share a pseudonym")

# --- what could not be measured


@WORDS.words("not_possible")
def _not_possible(reason: Reference) -> str:
    return shown(reason) if reason.id else "not possible with this speech"


@WORDS.words("attribute_not_inferred")
def _attribute_not_inferred(attribute: Reference, reason: Reference) -> str:
    return shown(reason) if reason.id else f"{shown(attribute)} could not be inferred"


WORDS.say("group_not_measured", "Nothing measured within {group}: {reason}.")
WORDS.say("measure_not_possible", "{measure}: {reason}")
