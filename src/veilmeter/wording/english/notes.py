"""Notes below the tables of commands: how figures were made, for whom they are worst, and what a list leaves out."""

from __future__ import annotations

from veilmeter.core.findings import Reference
from veilmeter.wording import numbers
from veilmeter.wording.catalog import Catalog, shown

WORDS = Catalog()


# The strongest evidence of any comparison, by the tag of Noé et al. 2022, table 1.
_TAGS = {
    "0": "no trial gives any evidence",
    "F": "an attacker who is sure is wrong less than once in 1,000,000",
    "E": "an attacker who is sure is wrong once in 100,000 to 1,000,000",
    "D": "an attacker who is sure is wrong once in 10,000 to 100,000",
    "C": "an attacker who is sure is wrong once in 100 to 10,000",
    "B": "an attacker who is sure is wrong once in 10 to 100",
    "A": "there is some evidence, but an attacker who is sure is wrong at least once in 10",
}


@WORDS.words("evidence_tag")
def _evidence_tag(tag: str, chance: bool | None = None) -> str:
    if chance:
        return f"Tag {tag}, which scores without information reach too."
    return f"Tag {tag}: {_TAGS[tag]} (at even odds)." if tag in _TAGS else f"Tag {tag}."


WORDS.say(
    "worst_speakers_shown",
    "The {shown} speakers with the highest D_ECE of {speakers}; --json and --csv have all of them.",
)


@WORDS.words("measures_without_interval")
def _measures_without_interval(measures: tuple[str, ...]) -> str:
    return f"No interval: {', '.join(measures)}."


@WORDS.words("intervals_of_scores")
def _intervals_of_scores(speakers_from: Reference | None = None) -> str:
    if speakers_from is None:
        over = "trials, as if independent"
    else:
        alone = "; an utterance of nobody enrolled counts by itself" if speakers_from.id == "target trials" else ""
        over = f"speakers (known from {shown(speakers_from)}{alone})"
    return (
        f"95 % intervals by bootstrap over {over}, corrected for bias; safer: ↑ higher, ↓ lower; dim: within the 5-95 % "
        "range of scores without information."
    )


WORDS.say(
    "scores_streamed",
    "Streamed: values are exact; no intervals and no chance level; repeated pairs were not looked for.",
)
WORDS.say(
    "intervals_of_linkability", "95 % intervals over speakers, in both roles where few are enrolled; safer: ↓ lower."
)


@WORDS.words("population_model")
def _population_model(fitted: int, predicted: int, unseen_share: float, speakers: int) -> str:
    return (
        "Population: a model of the scores, not a measurement. Its interval is widened by what a back-test missed: "
        f"fitted among {fitted:,} people, the model had to predict what was measured among {predicted:,}. Unprotected "
        f"people who make up less than {unseen_share:.2g} % of the population may be missing among these "
        f"{speakers:,}: only the interval allows for them."
    )


@WORDS.words("knowing_more")
def _knowing_more(attribute: Reference, gain: float, low: float, high: float, speakers: int, length: int) -> str:
    return f"Knowing {shown(attribute)} adds {gain:+.1f} [{low:+.1f}, {high:+.1f}] percentage points among {speakers} (length {length})."


WORDS.say(
    "isolation_chance",
    "The paper's chance level is 36.8 % (1/e); the one shown is that of a threshold estimated from the data.",
)
WORDS.say("intervals_of_isolation", "95 % intervals over the people whose rules were tried; safer: ↓ lower.")


@WORDS.words("top1_by_speaker")
def _top1_by_speaker(speakers: tuple[Reference, ...], percents: tuple[float, ...]) -> str:
    return f"Top-1 by speaker: {_percents(speakers, percents)}"


def _percents(speakers: tuple[Reference, ...], percents: tuple[float, ...]) -> str:
    return ", ".join(f"{shown(who)} {percent:.0f} %" for who, percent in zip(speakers, percents, strict=False))


WORDS.say("top1_needs_clear_trials", "Top-1 needs the clear trials: give --clear-trials.")
WORDS.say("map_saved", "The map is in {file}; apply it with --load-map.")


@WORDS.words("diagonal_stays")
def _diagonal_stays(
    every_speaker: bool, speakers: tuple[Reference, ...], diagonals: tuple[float, ...], animals: tuple[str, ...]
) -> str:
    title = (
        "Similarity to the original (diagonal of OP) by speaker"
        if every_speaker
        else "Speakers most similar to their original (diagonal of OP)"
    )
    rows = zip(speakers, diagonals, animals, strict=False)
    listed = [f"{shown(who)} ({own:.3f}{f', {animal}' if every_speaker else ''})" for who, own, animal in rows]
    return f"{title}: {', '.join(listed)}"


@WORDS.words("animals_frequent")
def _animals_frequent(
    matrices: tuple[str, ...],
    animals: tuple[str, ...],
    counts: tuple[int, ...],
    expected: tuple[float, ...],
    p: tuple[float, ...],
) -> str:
    rows = zip(matrices, animals, counts, expected, p, strict=False)
    listed = [
        f"{count} {animal}s in {kind} (chance {mean:.1f}, p {chance:.2g})" for kind, animal, count, mean, chance in rows
    ]
    return (
        f"More frequent than chance: {'; '.join(listed)}. The animals are terms of speaker recognition for how scores "
        "behave, not for what people are like."
    )


WORDS.say(
    "intervals_of_similarity",
    "95 % intervals leave each speaker in turn out of calibration and matrices; they cover the choice of speakers, not "
    "a second run of the anonymizer. Chance: the same scores with permuted speakers.",
)


@WORDS.words("utility_basis")
def _utility_basis(
    recordings: int, available: int, rated: int, language: str, language_from: str, reference: str
) -> str:
    text = "the corpus's text" if reference == "corpus" else "the transcript of the original"
    return (
        f"{recordings:,} of {available:,} pairs of recordings, {rated:,} of them rated; language {language} "
        f"({language_from}); words are compared with {text}."
    )


@WORDS.words("words_confused")
def _words_confused(said: tuple[Reference, ...], heard: tuple[Reference, ...], times: tuple[int, ...]) -> str:
    rows = zip(said, heard, times, strict=False)
    listed = [f"{shown(word)} → {shown(other)} ({count})" for word, other, count in rows]
    return f"Words most often mistaken for others: {', '.join(listed)}"


@WORDS.words("words_suffer")
def _words_suffer(speakers: tuple[Reference, ...], percents: tuple[float, ...]) -> str:
    return f"Speakers with the most wrong words: {_percents(speakers, percents)}"


WORDS.say(
    "differences_by_holm",
    "* Significant by Holm's rule over all differences, which are in the unit of the values. --markdown, --csv and --json have the intervals of all runs, too.",
)

# --- what a list leaves out, and findings that belong to no subject

WORDS.say("unclassified", "{text}")


@WORDS.words("warnings_left_out")
def _warnings_left_out(count: int) -> str:
    verb = "is" if count == 1 else "are"
    return f"{numbers.count(count, 'warning')} about single files or recordings {verb} left out here; see results.json."


@WORDS.words("remarks_left_out")
def _remarks_left_out(count: int) -> str:
    verb = "is" if count == 1 else "are"
    return f"{numbers.count(count, 'remark')} {verb} left out here; see results.json."


@WORDS.words("reasons_left_out")
def _reasons_left_out(count: int) -> str:
    verb = "is" if count == 1 else "are"
    return f"{count:,} more {verb} listed in results.json."
