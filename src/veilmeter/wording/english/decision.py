"""The first page, its advice and the comparison of systems: what follows from other findings of a run."""

from __future__ import annotations

from veilmeter.attacks.attacker import plain_words
from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Reference
from veilmeter.core.text import few
from veilmeter.wording.catalog import Catalog, shown
from veilmeter.wording.citations import cite
from veilmeter.wording.english.page import MOST_TITLED, STRONGEST, name_people, release_count, where
from veilmeter.wording.english.verdict import within
from veilmeter.wording.numbers import capitalize, count, figure, hundred_cells, listing, of_hundred, span

WORDS = Catalog()

# --- how many people of a release are found


@WORDS.words("release_count")
def _release_count(
    size: int, listed: int, found: float, low: float, high: float, basis: str, estimate: Estimate | None = None
) -> str:
    return release_count(size, listed, (found, low, high), basis, estimate)


@WORDS.words("release_found")
def _release_found(
    size: int,
    listed: int,
    candidates: int,
    found: float,
    low: float,
    high: float,
    basis: str,
    attacker: str,
    about: str,
    chosen: bool | None = None,
    estimate: Estimate | None = None,
) -> str:
    start = release_count(size, listed, (found, low, high), basis, estimate).removesuffix(".")
    who = STRONGEST if chosen else plain_words(attacker, about).who
    return f"{start} by {who}, with a list of {count(candidates, 'candidate')}."


@WORDS.words("guessing_finds")
def _guessing_finds(size: float) -> str:
    return f"Guessing would find {f'{size:,.0f}' if size >= 0.5 else 'fewer than one'}."


@WORDS.words("original_speech_linked")
def _original_speech_linked(estimate: Estimate) -> str:
    return f"Without anonymization, {of_hundred(estimate)} of 100 recordings are linked."


WORDS.say("share_measured", "Measured among {size:person/people}.")
WORDS.say(
    "share_modeled",
    "Beyond the {size:person/people} who were measured, this is the estimate of a model, and less certain than its "
    "interval says.",
)
WORDS.say(
    "share_unknown",
    "Only {size:person/people} were measured, and the model that extrapolates from them leaves more than half of the people "
    "open. Assess more people.",
)
WORDS.say(
    "share_beyond_model",
    "More than {size:person/people} were neither measured nor extrapolated to. This is the figure for {size:,}; the true "
    "one is lower.",
)

# --- whether to rely on it

WORDS.say("self_checks_failed", "Do not rely on this result yet: {failed} of {made:self-check} failed.")
WORDS.say("untrustworthy", "Do not rely on this result yet: its self-checks failed.")
WORDS.say("alarm_is_certain", "The alarm is certain, although {failed} of {made:self-check} failed.")


@WORDS.words("self_checks_passed")
def _self_checks_passed(made: int, open: int) -> str:
    passed = f"All {made:,} checks that could be made passed" if made > 1 else "The one check that could be made passed"
    passed = passed if made else "No check could be made"
    rest = f"; {open:,} could not be made" if open else ""
    return f"{passed}{rest}. This does not mean that the release is safe, and it holds only for the attackers that were run."


WORDS.say("more_in_technical_part", "{number:,} more, listed in the technical part.")
WORDS.say("more_in_annex", "{number:,} more, listed in the annex.")

# --- what no run tests


@WORDS.words("contents_not_tested")
def _contents_not_tested(habits: tuple[str, ...], every_habit: bool) -> str:
    """`habits` are those of speech that no attacker of this run measured."""
    named = "" if every_habit or not habits else f" ({', '.join(habits)})"
    return f"The spoken words (names, places){', habits of speech' if habits else ''}{named} and background sounds."


WORDS.say("future_not_tested", "Other attackers, and future speaker recognition.")

# --- use

_USE = {
    "wer": ("Of 100 words, a speech recognizer gets {figure} wrong", 0),
    "mos": ("Predicted sound quality, from 1 to 5: {figure}", 1),
    "pitch_correlation": ("Likeness of the melody to the original, at most 1: {figure}", 2),
}
_BY_CHANCE = {"pitch_correlation": "unrelated recordings"}
PLAIN_USE = frozenset(_USE)  # measures that the first page explains in plain words


@WORDS.words("use_measured")
def _use_measured(estimate: Estimate, original: Estimate | None = None) -> str:
    words, digits = _USE.get(estimate.name, (f"{capitalize(estimate.label)}: {{figure}}", 1))
    beside = [] if original is None else [f"original speech: {cite(span(original.value, None, digits), original)}"]
    if estimate.null is not None:
        beside.append(f"{_BY_CHANCE.get(estimate.name, 'guessing')}: {span(estimate.null, None, digits)}")
    compared = f" ({'; '.join(beside)})" if beside else ""
    return f"{words.format(figure=figure(estimate, digits))}{compared}."


WORDS.say("use_not_measured", "Not measured: whether words, quality and melody are still good enough for the purpose.")

# --- a limit that somebody chose

WORDS.say("limit_without_linking", "The limit of {percent:.3g} of 100 was given, but linking was not measured.")


@WORDS.words("limit_compared")
def _limit_compared(
    percent: float, chosen_before: bool, estimate: Estimate, place: str, group: tuple[Reference, ...] = ()
) -> str:
    when = "that was chosen before this assessment" if chosen_before else "that was named for this report"
    verb = {"above": "lies above", "unclear": "may lie above", "below": "lies below"}[place]
    return (
        f"The limit of {percent:g} in 100 {when}: the worst case, {of_hundred(estimate)} of 100 recordings linked"
        f"{where(estimate)}{within(group)}, {verb} it."
    )


# --- what to do next, and why

REMEDIES = {
    "strong on original speech": "Assess with a stronger recognizer: this one hardly recognizes people even without "
    "anonymization.",
    "everybody is recognized on original speech": "Assess with a recognizer that knows everybody without anonymization, "
    "or leave out those whom it does not know.",
    "adaptation helps": "Give the attackers more training speech: their adaptation failed, and a real attacker may do better.",
    "anonymized differs from original": "Check the files: some anonymized recordings seem to be hardly changed, or not at all.",
    "recordings have their own ids": "Check the ids: recordings seem to bear those of other people's recordings.",
    "no copies in enrollment and trials": "Remove duplicates: some recordings are in both the enrollment and the trials.",
    "enough speakers": "Assess more people: the figures are still imprecise.",
    "training speakers are others": "Train the attackers on people who are not assessed.",
    "enrollment and trials of different sessions": "Assess recordings of several sessions, so that attackers recognize "
    "voices and not rooms or microphones.",
    "scores without ties": "Check the scores: many are equal, which points to rounding or to copies.",
    "scores are not inverted": "Check the attack: its scores disclose more with their sign reversed.",
    "no finite set left untried": "Draw from a continuous range, or let attackers try each draw: name the draws in a "
    "column `draw`, or give --option choices=N.",
    "attackers ran the anonymizer": "Run the anonymizer a second time and give that run to the attackers.",
}  # fmt: skip


@WORDS.words("advice_remedy")
def _advice_remedy(check: str) -> str:
    return REMEDIES.get(check) or f"Fix what failed ({check}) and assess again."


WORDS.say("advice_stronger_anonymizer", "Use a stronger anonymizer or stronger settings.")


@WORDS.words("unaware_attacker_finds")
def _unaware_attacker_finds(estimate: Estimate) -> str:
    return (
        f"Even someone who does not know that the speech was anonymized links {of_hundred(estimate)} of 100 recordings."
    )


WORDS.say(
    "advice_new_voices", "Draw a new voice for every recording instead of one per person, and keep the draws secret."
)


@WORDS.words("anonymizer_helps_attacker")
def _anonymizer_helps_attacker(having: Estimate, lacking: Estimate) -> str:
    return (
        f"Someone who has your anonymizer links {of_hundred(having)} of 100 recordings, "
        f"someone who does not links {of_hundred(lacking)}."
    )


@WORDS.words("advice_fewer_recordings")
def _advice_fewer_recordings(length: int) -> str:
    return f"Release at most {'one recording' if length == 1 else f'{length:,} recordings'} per person."


@WORDS.words("fewer_recordings_help")
def _fewer_recordings_help(before: Estimate, after: Estimate) -> str:
    return f"This lowers the linked recordings from {of_hundred(before)} to {of_hundred(after)} of 100."


WORDS.say(
    "advice_vary_parameters",
    "Use an anonymizer whose effect can't be learned from examples, for instance by drawing new parameters for every "
    "recording.",
)


@WORDS.words("recordings_inverted")
def _recordings_inverted(estimate: Estimate) -> str:
    return f"For {of_hundred(estimate)} of 100 recordings, undoing the anonymization reveals the speaker."


@WORDS.words("advice_treat_people")
def _advice_treat_people(number: int, people: tuple[str, ...] = ()) -> str:
    who = "one person who is" if number == 1 else f"{number:,} people who are"
    named = f" ({name_people(people)})" if people else ""
    return f"Treat the {who} linked more often than not{named} differently, or leave them out."


WORDS.say("people_are_listed", "The list of people in the technical part shows who they are.")


@WORDS.words("linked_without")
def _links_without(number: int, linked: Estimate, before: Estimate, attacker: str, about: str) -> str:
    whom = "this person" if number == 1 else f"these {number:,} people"
    return (
        f"Without {whom}, {plain_words(attacker, about).who} would link {of_hundred(linked)} of 100 recordings of the "
        f"others; with them, {hundred_cells(before)[0]}."
    )


WORDS.say(
    "advice_less_similar_voices",
    "Use new voices that are less similar to the original ones.",
)
WORDS.say(
    "advice_decide_attribute",
    "Decide whether {attribute} may be known; if not, choose the new voices independently of it.",
)


@WORDS.words("attribute_inferred")
def _attribute_inferred(estimate: Estimate) -> str:
    return f"It is inferred correctly for {of_hundred(estimate)} of 100 recordings."


WORDS.say("advice_more_people", "Assess more people.")
WORDS.say(
    "advice_assess_speech",
    "Assess recordings or embeddings: scores do not tell whom an attacker names.",
)


@WORDS.words("interval_is_wide")
def _interval_is_wide(low: float, high: float) -> str:
    return (
        f"The true figure probably lies between {low:.0f} and {high:.0f} of 100; with four times as many "
        "people, this range would be half as wide."
    )


@WORDS.words("advice_run_attackers")
def _advice_run_attackers(attackers: tuple[str, ...]) -> str:
    number = "the attacker that was" if len(attackers) == 1 else f"the {len(attackers)} attackers that were"
    named = [f"{plain_words(name).who} ({name})" for name in attackers[:2]]
    return f"Add {number} not run: {'; '.join(named)}{'; and others' if len(attackers) > 2 else ''}."


WORDS.say("advice_listen", "Listen to the output before you rely on the result: hardly any voice may be left.")
WORDS.say(
    "advice_assess_again", "Assess again when the anonymizer, its settings, the recordings or the recipients change."
)

# --- several systems side by side


@WORDS.words("systems_find")
def _systems_find(systems: tuple[Reference, ...], shares: tuple[Estimate, ...]) -> str:
    """`shares` of people whom the strongest attacker finds, one per system; not a number where that is not known."""
    parts = []
    among: dict[int, list[str]] = {}
    known = sorted((share.value, number) for number, share in enumerate(shares) if share.value == share.value)
    sizes = {share.at.get("speakers") for share in shares}
    if len(known) == len(shares) > MOST_TITLED and len(sizes) == 1:
        least, most = (f"{of_hundred(shares[n])} with {shown(systems[n])}" for n in (known[0][1], known[-1][1]))
        return (
            f"Of 100 people, the strongest attacker that was run finds from {least} to {most}, each among "
            f"{int(sizes.pop() or 0):,} people."
        )
    for system, share in zip(systems, shares, strict=False):
        if share.value != share.value:
            parts.append(f"an unknown number with {shown(system)}")
            continue
        parts.append(f"{of_hundred(share)} with {shown(system)}")
        among.setdefault(int(share.at.get("speakers", 0)), []).append(shown(system))
    people = ", ".join(
        f"{number:,}" + (f" ({', '.join(names)})" if len(among) > 1 else "") for number, names in among.items()
    )
    sentence = f"Of 100 people, the strongest attacker that was run finds {listing(parts) or 'nobody'}"
    return f"{sentence}, each among {people} people." if people else f"{sentence}."


WORDS.say(
    "no_system_reliable",
    "None of these assessments can be relied on yet, so none of the systems is recommended.",
)
WORDS.say("one_system_reliable", "Only the assessment of {system} can be relied on; its risk is {level}.")
WORDS.say(
    "system_protects_best",
    "Among the systems whose figures can be relied on, {system} leaves the lowest risk ({level}).",
)


def _some(systems: tuple[Reference, ...], most: int = 3) -> str:
    names, more = list(map(shown, systems[:most])), len(systems) - most
    return listing([*names, count(more, "other")] if more > 0 else names)


@WORDS.words("system_protects_better")
def _system_protects_better(
    system: Reference, level: str, others: tuple[Reference, ...], unsure: tuple[Reference, ...]
) -> str:
    return (
        f"{shown(system)} leaves the lowest risk ({level}): its strongest attacker links significantly fewer recordings "
        f"than with {_some(others)}. The difference to {_some(unsure)} may be chance."
    )


WORDS.say(
    "no_system_better",
    "The best of them is not significantly better than any other in how many recordings its strongest attacker links; "
    "single rows of the table of differences may still be significant.",
)


@WORDS.words("no_reliable_system_better")
def _no_reliable_system_better(systems: tuple[Reference, ...]) -> str:
    named = few([shown(system) for system in systems])
    return (
        f"Of those whose figures can be relied on ({named}), none protects significantly better than the others: "
        "differences may be chance."
    )


WORDS.say("best_system_unfit", "Even so, a risk of being found remains, which speaks against a release.")
WORDS.say("no_system_fit", "With each of them a risk of being found remains, which speaks against a release.")


@WORDS.words("systems_not_judged")
def _systems_not_judged(systems: tuple[Reference, ...]) -> str:
    return f"No conclusion about {few([shown(s) for s in systems])}: these figures can't be relied on yet."


WORDS.say("use_not_compared", "Whether the speech is still usable was not measured for all of them.")


@WORDS.words("trade_off")
def _trade_off(system: Reference, linked: Estimate, other: Reference, words: float) -> str:
    start = f"With {shown(system)} the fewest recordings are linked, {of_hundred(linked)} of 100"
    if round(words) < 1:
        return f"{start}, and no other system has clearly fewer word errors."
    return f"{start}; a speech recognizer gets {words:.0f} more words in 100 wrong than with {shown(other)}."
