"""What figures rest on: options, how much was drawn, and what makes a figure say little."""

from __future__ import annotations

from veilmeter.core.findings import Reference
from veilmeter.wording.catalog import Catalog, shown
from veilmeter.wording.numbers import count as counted
from veilmeter.wording.numbers import listing

WORDS = Catalog()


@WORDS.words("option_without_effect")
def _option_without_effect(option: str, reason: str, given: Reference | None = None) -> str:
    value = "" if given is None else f" {shown(given)}"
    return f"{option}{value} had no effect: {reason}."


WORDS.say("fewer_resamples", "--resamples {asked}: the figures per speaker use {drawn}.")
WORDS.say("one_target_speaker", "All target trials are of one speaker: no interval over people can be given.")
WORDS.say("few_speakers", "Only {count:speaker}: the intervals are wide and approximate.")
WORDS.say("few_enrolled", "Only {count:person/people} enrolled: extrapolation is reliable from some hundreds on.")
WORDS.say("few_target_trials", "D_sys is not meaningful: it is 0 by definition with fewer than {needed} target trials.")
WORDS.say(
    "few_impostor_trials",
    "{count:impostor trial} can't show an FPR of 1 % or less: the TPRs are those without any false alarm.",
)
WORDS.say(
    "scores_inverted",
    "Inverted scores: with their sign flipped they disclose {flipped:.4f} bit (D_ECE), more than as they are "
    "({as_given:.4f}). An attacker would flip them. Are these distances instead of similarities?",
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
        f"Linkability in a population: unprotected people who make up less than {100 * share:.2g} % of it may be missing "
        f"among the {speakers:,} measured. Only the interval allows for them."
    )


WORDS.say("measured_for_checks", "Measured as well, because the trust checks need it: {families}.")
WORDS.say("scores_of_others", "{count:person/people} in the given scores {count:~is/are} not among those assessed.")
