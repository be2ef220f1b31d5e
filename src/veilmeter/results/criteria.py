"""The worst case for each criterion, over every attacker, length and group, in a sentence that a stranger understands.

It says what was measured. Whether that is enough is for a lawyer to judge, and the words for it are theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from veilmeter.attacks.attacker import BASELINE
from veilmeter.core.estimate import Estimate, format_number
from veilmeter.core.estimates import Estimates
from veilmeter.results.levels import (
    ALPHA,
    ORDER,
    P_ADJUSTED,
    PRECISION,
    agreeing,
    chance_of,
    level_of,
    speakers_to_rule_out,
    surely_more,
    surplus,
    with_holm,
)
from veilmeter.results.model import Criterion, Level, Results
from veilmeter.results.people import explained_by_luck, often_linked

D_ECE_MAX = 1 / math.log(4)  # bits: section 2 of the methods
HIGH_D_ECE = 0.25  # of that
NEEDED = "needed"  # to settle what is unknown: among the details of a criterion
HIGH_INFERENCE = 0.5  # of the way from guessing to certainty


@dataclass(frozen=True, slots=True)
class Case:
    """One figure of one attacker, of everybody or within a group."""

    attacker: str
    estimate: Estimate
    group: Mapping[str, str] = field(default_factory=dict)


def cases(results: Results, measure: str) -> Iterator[Case]:
    """Every point of a measure: all attackers, lengths, numbers of people and groups; no threat model that stands
    apart."""
    for name, attacker in results.attacks.items():
        if attacker.apart:
            continue
        yield from (Case(name, point) for point in attacker.estimates.points(measure))
        for attribute, values in attacker.by.items():
            for value, estimates in values.items():
                yield from (Case(name, point, {attribute: value}) for point in estimates.points(measure))


def at_largest(candidates: Sequence[Case]) -> list[Case]:
    """Of every curve the point with the most people: smaller sets are easier, and only this one is about everybody."""
    best: dict[tuple[object, ...], Case] = {}
    for case in candidates:
        curve = (case.attacker, case.estimate.at.get("length"), tuple(case.group.items()))
        if curve not in best or _people(case) > _people(best[curve]):
            best[curve] = case
    return list(best.values())


def _people(case: Case) -> float:
    return float(case.estimate.at.get("speakers", 0))


def _worst(
    candidates: Sequence[Case], level: Callable[[Case], Level], rank: Callable[[Case], float]
) -> tuple[Case, Level]:
    """The case with the highest level, and of these the highest figure.

    Points of smaller sets count where they are surely more than guessing: they may show what everybody together
    hides. Otherwise a curve speaks with its largest set, where it is also said what can't be told.
    """
    largest = {id(case) for case in at_largest(candidates)}

    def place(case: Case) -> tuple[int, bool, bool, float]:
        height = level(case)
        return (ORDER.index(height), id(case) in largest, height != "low" or not case.group, rank(case))

    worst = max((case for case in candidates if id(case) in largest or surely_more(case.estimate)), key=place)
    return worst, level(worst)


def linking(results: Results) -> Criterion | None:
    candidates = list(cases(results, "linkability"))
    if not candidates:
        return None
    worst, level = _worst(candidates, _linking_level, lambda case: surplus(case.estimate))
    exposed = len(results.people.unprotected)
    if exposed and level in ("low", "unknown"):
        level = "raised"
    suspects = _suspects(results) if level == "low" else 0
    if suspects:
        level = "unknown"
    estimate = worst.estimate
    people, length = int(estimate.at["speakers"]), int(estimate.at.get("length", 1))
    sentence = (
        f"Of 100 recordings, {_a(worst.attacker)} with {_utterances(length)} links {_hundred(estimate)} to the right "
        f"person among {people:,}{_within(worst.group)}; guessing links {guess(chance_of(estimate))}"
    )
    luck = results.chance.best_link if results.chance is not None and not worst.group else None
    if luck is not None and not surely_more(estimate):
        sentence += f", and the luckiest of all these attackers may reach {guess(luck)} by chance alone"
    sentence += "."
    needed = _needed(results, estimate, suspects) if level == "unknown" else None
    if needed is not None:
        sentence += f" {_why_unknown(results, estimate, suspects)}: {needed} would be needed."
    original = _same_point(results, worst)
    if original is not None:
        sentence += f" On original speech it is {100 * original.value:.0f}."
    return Criterion(
        name="linking",
        level=level,
        sentence=sentence,
        estimate=estimate,
        attacker=worst.attacker,
        group=worst.group,
        original=original,
        details={} if needed is None else {NEEDED: needed},
    )


def _suspects(results: Results) -> int:
    """How many people are linked more often than not where luck is a possible explanation, but not a sure one: a single
    unprotected person of N looks like a guess among N that came true."""
    return 0 if explained_by_luck(results.chance) else sum(map(often_linked, results.people.persons))


def _why_unknown(results: Results, estimate: Estimate, suspects: int) -> str:
    people = len(results.people.persons)
    if suspects:
        verb = "is" if suspects == 1 else "are"
        few = "one trial each" if _tried_once(results) else "so few"
        return f"But {suspects} of {people:,} {verb} linked more often than not, which {few} can't tell from luck"
    return f"{int(estimate.n.get('speakers', people)):,} people are too few to tell guessing from a high risk"


def _needed(results: Results, estimate: Estimate, suspects: int) -> str:
    """What would rule out a high risk, or tell suspects from luck: who is tried twice or more is exposed by luck the
    less often the more people there are, but among any number somebody is linked by luck once."""
    if suspects and _tried_once(results):
        return "more recordings of each person"
    people = speakers_to_rule_out(estimate, float(results.settings.get("precision", PRECISION)))
    if suspects and results.chance is not None and results.chance.exposed_p is not None:
        people = math.ceil(len(results.people.persons) * results.chance.exposed_p / ALPHA)
    return f"about {people:,}"


def _tried_once(results: Results) -> bool:
    """Whether nobody who is linked more often than not was tried more than once."""
    return all(person.risk.n["conversations"] == 1 for person in results.people.persons if often_linked(person))


def _linking_level(case: Case) -> Level:
    """A group is part of everybody: what is too wide to tell within it is bounded by what is known of all."""
    level = level_of(case.estimate)
    return "low" if case.group and level == "unknown" else level


def _same_point(results: Results, case: Case) -> Estimate | None:
    """The same figure on original speech."""
    if BASELINE not in results.attackers:
        return None
    baseline = results.attackers[BASELINE]
    estimates = baseline.estimates
    for attribute, value in case.group.items():
        estimates = baseline.by.get(attribute, {}).get(value, Estimates())
    same = [point for point in estimates.points(case.estimate.name) if point.at == case.estimate.at]
    return same[0] if same else None


def singling_out(results: Results) -> Criterion | None:
    candidates = _corroborated(results, _adjusted(list(cases(results, "residual_risk"))))
    if not candidates:
        return None
    worst, level = _worst(candidates, lambda case: level_of(case.estimate), lambda case: case.estimate.value)
    estimate = worst.estimate
    estimates = results.attackers[worst.attacker].estimates
    attempts, control = (
        next((point for point in estimates.points(name) if point.at == estimate.at), None)
        for name in ("singling_out", "control")
    )
    sentence = f"{_a(worst.attacker).capitalize()} with {_utterances(int(estimate.at.get('length', 1)))} "
    if attempts is not None and control is not None:
        sentence += (
            f"picks out exactly one person among {int(estimate.at['speakers']):,} in {_hundred(attempts)} of 100 "
            f"attempts; a rule that knows nobody does so in {100 * control.value:.0f}. "
            f"The risk beyond that is {_hundred(estimate)} in 100."
        )
    else:
        sentence += f"singles people out beyond chance in {_hundred(estimate)} of 100 attempts."
    if level == "unknown":
        sentence += " That is known too poorly to tell chance from a high risk."
    return Criterion(
        name="singling_out", level=level, sentence=sentence, estimate=estimate, attacker=worst.attacker,
        group=worst.group,
    )  # fmt: skip


def disclosure(results: Results) -> Criterion | None:
    candidates = [case for case in cases(results, "d_ece") if math.isfinite(case.estimate.value)]
    if not candidates:
        return None
    worst, level = _worst(candidates, lambda case: _disclosure_level(case.estimate), lambda case: case.estimate.value)
    estimate = worst.estimate
    holder = results.attackers[worst.attacker]
    estimates = holder.estimates
    for attribute, value in worst.group.items():
        estimates = holder.by[attribute][value]
    interval = f" {estimate.format_interval()}" if estimate.interval else ""
    sentence = (
        f"One comparison{_within(worst.group)} tells {_a(worst.attacker)} {format_number(estimate.value, 'bit')}"
        f"{interval} bit about who is speaking, on average over what they believed before; {D_ECE_MAX:.3f} would be "
        "everything."
    )
    strongest = estimates.single("l_w")
    if strongest is not None and math.isfinite(strongest.value):
        sentence += (
            f" The most telling single comparison makes an identity {10**strongest.value:,.0f} times more or less "
            f"likely (tag {strongest.extra.get('tag', '?')})."
        )
    if level in ("low", "unknown"):
        sentence += " That can't be told from scores that carry no information."
    return Criterion(
        name="disclosure", level=level, sentence=sentence, estimate=estimate, attacker=worst.attacker,
        group=worst.group,
    )  # fmt: skip


def _disclosure_level(estimate: Estimate) -> Level:
    """D_ECE is never negative, so its interval seldom holds what noise gives: the range of noise decides where people
    were not relabeled."""
    if P_ADJUSTED not in estimate.extra and estimate.null_range is not None:
        estimate = estimate.with_(extra={**estimate.extra, P_ADJUSTED: float(bool(estimate.inside_null))})
    null = replace(estimate, null=0.0)
    return level_of(null, largest=D_ECE_MAX, high=HIGH_D_ECE)


def inversion(results: Results) -> Criterion | None:
    candidates = _adjusted([Case(_attack(point), point) for point in results.part("inversion").points("top1")])
    if not candidates:
        return None
    worst, level = _worst(
        candidates, lambda case: level_of(case.estimate, largest=100.0), lambda case: surplus(case.estimate, 100.0)
    )
    estimate = worst.estimate
    gender = estimate.at.get("gender")
    among = f" (gender {gender})" if gender not in (None, "", "all") else ""
    sentence = (
        f"An attacker who learns to undo the anonymizer ({worst.attacker}) turns {_percent(estimate)} of 100 "
        f"anonymized recordings{among} back so far that the most similar original recording is of the same speaker; by "
        f"chance it would be {guess(chance_of(estimate) / 100)}."
    )
    return Criterion(name="inversion", level=level, sentence=sentence, estimate=estimate, attacker=worst.attacker)


def _attack(point: Estimate) -> str:
    return str(point.at.get("attack", "procrustes"))


def distinctiveness(results: Results) -> Criterion | None:
    """How well anonymized voices stay apart; the level is that of the risk that speakers are confused."""
    estimate = results.part("similarity").single("g_vd")
    if estimate is None:
        return None
    level: Level
    if math.isnan(estimate.value):
        level, words = "unknown", ""
    elif estimate.value > -3:
        level, words = "low", "stay about as distinct from each other as the originals were"
    elif estimate.value > -10:
        level, words = "raised", "are clearly less distinct from each other than the originals were"
    else:
        level, words = "high", "can hardly be told apart: speakers of a conversation will be confused"
    shown = "minus infinity" if math.isinf(estimate.value) else f"{round(estimate.value, 1) + 0.0:.1f} dB"
    sentence = (
        f"The anonymized voices {words} (G_VD {shown}; 0 dB would be no change)."
        if words
        else "How distinct the anonymized voices are from each other can't be said."
    )
    return Criterion(name="distinctiveness", level=level, sentence=sentence, estimate=estimate, risk=False)


def inference(results: Results) -> Criterion | None:
    """The attribute that is guessed best; one that can't be told from noise never hides one that can."""
    guesses = [_within_noise(point) for point in results.part("inference").points("inference")]
    if not guesses:
        return None

    def level(point: Estimate) -> Level:
        return level_of(point, largest=100.0, high=HIGH_INFERENCE)

    worst = max(guesses, key=lambda point: (ORDER.index(level(point)), surplus(point, 100.0)))
    attribute = str(worst.at.get("attribute", ""))
    before = [
        point for point in results.parts["inference"].reference.points("inference")
        if point.at.get("attribute") == attribute
    ]  # fmt: skip
    original = f", original speech {before[0].value:.0f}" if before else ""
    sentence = (
        f"The attribute {attribute} is guessed right for {_percent(worst)} of 100 anonymized recordings "
        f"(balanced over its values; guessing gives {guess(chance_of(worst) / 100)}{original})."
    )
    return Criterion(
        name="inference",
        level=level(worst),
        sentence=sentence,
        estimate=worst,
        risk=False,
        attacker="classifier trained on other speakers",
        original=before[0] if before else None,
    )


def _within_noise(point: Estimate) -> Estimate:
    """A value that shuffled labels reach too is not surely more than guessing, whatever its interval."""
    return point.with_(extra={**point.extra, P_ADJUSTED: 1.0}) if point.inside_null else point


def _corroborated(results: Results, candidates: list[Case]) -> list[Case]:
    """Whoever singles people out beyond a stranger's rule has scores that tell who speaks. Where relabeling people does
    not show that any attacker's scores do, by linking or by what they disclose, a risk of singling out may be luck: its
    interval, over rules that share people, is too narrow to say otherwise by itself."""
    tested = [case.estimate for name in ("linkability", "d_ece") for case in cases(results, name)]
    if results.chance is None or any(P_ADJUSTED in point.extra and surely_more(point) for point in tested):
        return candidates
    return [replace(case, estimate=agreeing(case.estimate, 1.0)) for case in candidates]


def _adjusted(candidates: Sequence[Case]) -> list[Case]:
    adjusted = with_holm([case.estimate for case in candidates])
    return [replace(case, estimate=estimate) for case, estimate in zip(candidates, adjusted, strict=True)]


CRITERIA: dict[str, Callable[[Results], Criterion | None]] = {
    "linking": linking,
    "singling_out": singling_out,
    "disclosure": disclosure,
    "inversion": inversion,
    "distinctiveness": distinctiveness,
    "inference": inference,
}


def criteria(results: Results) -> dict[str, Criterion]:
    """For each criterion that was measured the worst case, and what it means. People must be known already."""
    return {name: criterion for name, of in CRITERIA.items() if (criterion := of(results)) is not None}


def _hundred(estimate: Estimate) -> str:
    """`71 [64, 78]` of a probability; where figures are small, with as many digits as they need.

    >>> _hundred(Estimate(name="x", value=0.71, interval=(0.64, 0.78)))
    '71 [64, 78]'
    >>> _hundred(Estimate(name="x", value=0.009, interval=(0.004, 0.017)))
    '0.90 [0.40, 1.70]'
    """
    return _percent(estimate, 100.0)


def _percent(estimate: Estimate, factor: float = 1.0) -> str:
    ends = [factor * end for end in (estimate.value, *(estimate.interval or ()))]
    digits = 0 if max(map(abs, ends)) >= 10 else 1 if max(map(abs, ends)) >= 3 else 2
    value, *interval = (f"{end:.{digits}f}" for end in ends)
    return value + (f" [{', '.join(interval)}]" if interval else "")


def guess(chance: float) -> str:
    """What guessing achieves, of 100; small figures must not vanish.

    >>> guess(1 / 40), guess(1 / 400), guess(1 / 8), guess(0.0)
    ('2.5', '0.25', '12.5', '0')
    """
    return f"{100 * chance:.{2 if chance < 0.1 else 3}g}"


def _a(attacker: str) -> str:
    return f"{'an' if attacker[0] in 'aeiou' else 'a'} {attacker} attacker"


def _utterances(length: int) -> str:
    return "one utterance each" if length == 1 else f"{length} utterances each"


def _within(group: Mapping[str, str]) -> str:
    return "".join(f" with {attribute} {value}" for attribute, value in group.items())
