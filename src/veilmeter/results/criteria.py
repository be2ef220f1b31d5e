"""The worst case for each criterion, over every attacker, length and group, as a finding.

A criterion reports what was measured. Whether that is enough is for a lawyer to judge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.attacker import BASELINE, Equipment
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding, Level, Reference, Value, group_references
from veilmeter.metrics.scores.summary import BANDS
from veilmeter.results.levels import (
    ALPHA,
    ORDER,
    P_ADJUSTED,
    PRECISION,
    SEVERITY,
    TOP_TARGETS,
    chance_of,
    has_bands,
    has_top_targets,
    is_significant,
    level_of,
    speakers_to_rule_out,
    surplus,
    with_holm,
    with_probability,
)
from veilmeter.results.model import Criterion, People, Results
from veilmeter.results.people import chance_explains, is_often_linked, worst_person

D_ECE_MAX = 1 / math.log(4)  # bits: section 2 of the methods
HIGH_D_ECE = 0.25  # of that
NEEDED = "needed"  # detail of a criterion: people to settle what is unknown; None where they do not help
LEAST_GROUP = 5  # people: fewer say nothing about a group
HIGH_INFERENCE = 0.5  # of the way from chance to certainty


@dataclass(frozen=True, slots=True)
class Case:
    """One figure of one attacker, of everybody or within a group."""

    attacker: str
    estimate: Estimate
    group: Mapping[str, str] = field(default_factory=dict)


def cases(results: Results, measure: str) -> Iterator[Case]:
    """Every point of a measure: all attackers, lengths, numbers of people and groups; without threat models that are
    reported apart."""
    for name, attacker in results.attacks.items():
        if attacker.apart:
            continue
        yield from (Case(name, point) for point in attacker.estimates.points(measure))
        for attribute, values in attacker.by.items():
            for value, estimates in values.items():
                yield from (Case(name, point, {attribute: value}) for point in estimates.points(measure))


def _deciding(results: Results, measure: str) -> Iterator[Case]:
    """Those that a level may rest on: two or three people say nothing about a group, and their interval is useless."""
    people = {
        (case.attacker, *case.group.items()): _group_people(case)
        for case in cases(results, "linkability")
        if case.group
    }
    for case in cases(results, measure):
        if people.get((case.attacker, *case.group.items()), LEAST_GROUP) >= LEAST_GROUP:
            yield case


def at_largest(candidates: Sequence[Case]) -> list[Case]:
    """Of every curve the point with the most people: smaller sets are easier, and only this one is about everybody."""
    best: dict[tuple[object, ...], Case] = {}
    for case in candidates:
        curve = _curve(case)
        if curve not in best or _people(case) > _people(best[curve]):
            best[curve] = case
    return list(best.values())


def _curve(case: Case) -> tuple[object, ...]:
    return (case.attacker, case.estimate.at.get("length"), tuple(case.group.items()))


def _people(case: Case) -> float:
    return float(case.estimate.at.get("speakers", 0))


def _worst(
    candidates: Sequence[Case], level: Callable[[Case], Level], rank: Callable[[Case], float]
) -> tuple[Case, Level]:
    """The case with the highest level, and of these the highest figure.

    Points of smaller sets count where they are significantly more than chance: they may show what everybody
    together hides. Otherwise a curve is represented by its largest set. Only that makes a risk high: who is found among
    two may be found by their gender.
    """
    largest = {id(case) for case in at_largest(candidates)}
    most = {_curve(case): _people(case) for case in at_largest(candidates)}

    def height(case: Case) -> Level:
        found = level(case)
        return "raised" if found == "high" and _people(case) < most[_curve(case)] else found

    def place(case: Case) -> tuple[int, bool, bool, float]:
        found = height(case)
        return (ORDER.index(found), id(case) in largest, found != "low" or not case.group, rank(case))

    worst = max((case for case in candidates if id(case) in largest or is_significant(case.estimate)), key=place)
    return worst, height(worst)


AS_MEASURED = "as_measured"  # extra of a headline's figure that differs from what its attacker reached
SEVERAL = "several_attackers"  # extra of such a figure, where not every choice was the same attacker
CHOICES, FOLDS = 20, 5  # how often people are divided, and into how many parts


def strongest(results: Results) -> Case | None:
    """Linking among everybody by the strongest attacker: the figure of a headline. None where linking was not measured.

    The highest of several figures is too high on average. So the attacker and the length are chosen on some people and
    evaluated on the others, in turn: the value is what a choice made beforehand would find. Where the choice is always
    the same, that is the very figure of this attacker; else its lower end moves with the value. Only lengths count for
    which everybody has recordings.
    """
    tried = [case for case in at_largest(list(cases(results, "linkability"))) if not case.group]
    if not tried:
        return None
    most = max(map(_people, tried))
    tried = [case for case in tried if _people(case) == most]
    # The order of attackers in a file and the names of people, which are replaced where results are published, do not
    # change the figure. Of several that are equally strong, the one that needs least is named.
    tried.sort(key=lambda case: (_needs(results, case), case.attacker, case.estimate.at.get("length", 1)))
    found = [_links_by_person(results, case) for case in tried]
    speakers = list(dict.fromkeys(name for links in found for name in links))
    whole = [len(links) == len(speakers) for links in found]
    if len(speakers) < 2 * FOLDS or not any(whole):
        return max(tried, key=lambda case: case.estimate.value)
    tried = [case for case, is_whole in zip(tried, whole, strict=True) if is_whole]
    table = np.array([[links[name] for name in speakers] for links in found if len(links) == len(speakers)])
    chosen, linked = np.zeros(len(tried)), np.zeros(2)
    for part in _parts(len(speakers)):
        rest = table[:, ~part].sum(axis=1)
        best = int(np.argmax(rest[:, 0] / rest[:, 1]))
        chosen[best] += 1
        linked += table[best, part].sum(axis=0)
    usual = tried[int(np.argmax(chosen))]
    attackers = {case.attacker for case, times in zip(tried, chosen, strict=True) if times}
    value = usual.estimate.value if chosen.max() == chosen.sum() else float(linked[0] / linked[1])
    return usual if value == usual.estimate.value else replace(usual, estimate=_move(usual.estimate, value, attackers))


def _needs(results: Results, case: Case) -> int:
    """How many things this attacker has that anybody with original speech does not have."""
    least = Equipment().to_json()
    return sum(least.get(name) != value for name, value in results.attackers[case.attacker].has.items())


def _links_by_person(results: Results, case: Case) -> dict[str, tuple[float, int]]:
    """How many of each person's conversations were linked, times 100, of how many."""
    length = int(case.estimate.at.get("length", 1))
    return {
        row.speaker: (row.linked * row.conversations, row.conversations)
        for row in results.attackers[case.attacker].people
        if row.length == length and row.among == _people(case)
    }


def _parts(people: int) -> Iterator[NDArray[np.bool_]]:
    """Each part of each division, as a mask of people."""
    rng = np.random.default_rng(0)
    for _ in range(CHOICES):
        part = rng.permutation(people) % FOLDS
        yield from (part == number for number in range(FOLDS))


def _move(estimate: Estimate, value: float, attackers: set[str]) -> Estimate:
    """The estimate at another value; the end of the interval that it moves towards moves along."""
    extra = {**estimate.extra, AS_MEASURED: estimate.value, **({SEVERAL: True} if len(attackers) > 1 else {})}
    if estimate.interval is None:
        return estimate.with_(value=value, extra=extra)
    low, high = (end + value - estimate.value for end in estimate.interval)
    ends = (max(0.0, min(low, estimate.interval[0])), min(100.0, max(high, estimate.interval[1])))
    return estimate.with_(value=value, interval=ends, extra=extra)


def linking(results: Results) -> Criterion | None:
    candidates = list(_deciding(results, "linkability"))
    if not candidates:
        return None
    worst, level = _worst(candidates, _linking_level, lambda case: surplus(case.estimate))
    exposed = len(results.people.unprotected)
    if exposed and level in ("low", "unknown"):
        level = "raised"
    suspects = _suspects(results) if level == "low" else 0
    if suspects:
        level = "unknown"
    everybody = strongest(results) if level != "unknown" and not worst.group else None
    if everybody is not None and _people(everybody) == _people(worst):
        worst = everybody  # one figure for one question, here and in the headline
    estimate = worst.estimate
    needed = needed_to_settle(results, estimate, suspects) if level == "unknown" else None
    finding = tell_linking(results, worst, level)
    values: dict[str, Value] = dict(finding.values)
    if level == "unknown":
        total = _total(results, estimate, suspects)
        values |= {"suspects": suspects, "total": total, "tried_once": _tried_once(results)}
        values |= {} if needed is None else {"needed": needed}
    return Criterion(
        name="linking",
        level=level,
        finding=replace(finding, values=values),
        estimate=estimate,
        attacker=worst.attacker,
        group=worst.group,
        original=same_point(results, worst),
        details={NEEDED: needed} if level == "unknown" else {},
    )


def tell_linking(results: Results, case: Case, level: Level) -> Finding:
    """How often this attacker links recordings, beside original speech and, where luck explains it, the luckiest."""
    best_link = results.chance.best_link if results.chance is not None and not case.group else None
    original = same_point(results, case)
    finding = linking_finding(level, case.estimate, case.attacker, case.group, original)
    if best_link is None or is_significant(case.estimate) or case.estimate.value > best_link:
        return finding
    return replace(finding, values={**finding.values, "luckiest": best_link})


def linking_finding(
    level: Level, estimate: Estimate, attacker: str, group: Mapping[str, str], original: Estimate | None
) -> Finding:
    """How often an attacker links recordings to the right person."""
    return Finding.of(
        "linking",
        severity=SEVERITY[level],
        level=level,
        estimate=estimate,
        attacker=attacker,
        by_chance=chance_of(estimate),
        group=group_references(group) or None,
        original=original,
    )


def _suspects(results: Results) -> int:
    """How many people are linked more often than not where chance may explain that or may not: a single unprotected
    person of N looks like a guess among N that came true."""
    return 0 if chance_explains(results.chance) else sum(map(is_often_linked, results.people.persons))


def _total(results: Results, estimate: Estimate, suspects: int) -> int:
    """The people among whom there are suspects, or on whom the estimate rests."""
    people = len(results.people.persons)
    return people if suspects else int(estimate.n.get("speakers", people))


def needed_to_settle(results: Results, estimate: Estimate, suspects: int) -> int | None:
    """How many people would rule out a high risk; None where more people do not help: whether single people are linked
    by chance is settled by more recordings of them, as among any number of people somebody is linked by chance."""
    if suspects:
        return None
    return speakers_to_rule_out(estimate, float(results.settings.get("precision", PRECISION)))


def _tried_once(results: Results) -> bool:
    """Whether nobody who is linked more often than not was tried more than once."""
    return all(person.risk.n["conversations"] == 1 for person in results.people.persons if is_often_linked(person))


def _linking_level(case: Case) -> Level:
    """A group is part of everybody: what is too wide to tell within it is bounded by what is known of all."""
    level = level_of(case.estimate)
    return "low" if case.group and level == "unknown" else level


def same_point(results: Results, case: Case) -> Estimate | None:
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
    candidates = _lower_uncorroborated(results, _adjust(list(_deciding(results, "residual_risk"))))
    if not candidates:
        return None
    worst, level = _worst(candidates, lambda case: level_of(case.estimate), lambda case: case.estimate.value)
    estimate = worst.estimate
    estimates = results.attackers[worst.attacker].estimates
    attempts, control = (
        next((point for point in estimates.points(name) if point.at == estimate.at), None)
        for name in ("singling_out", "control")
    )
    finding = Finding.of(
        "singling_out",
        severity=SEVERITY[level],
        level=level,
        estimate=estimate,
        attacker=worst.attacker,
        attempts=attempts,
        control=None if control is None else control.value,
    )
    return Criterion(
        name="singling_out",
        level=level,
        finding=finding,
        estimate=estimate,
        attacker=worst.attacker,
        group=worst.group,
    )


def disclosure(results: Results) -> Criterion | None:
    known = [case for case in _deciding(results, "d_ece") if math.isfinite(case.estimate.value)]
    candidates = [_with_bands(results, case) for case in known]
    if not candidates:
        return None
    worst, level = _worst(candidates, lambda case: _disclosure_level(case.estimate), lambda case: case.estimate.value)
    estimate = worst.estimate
    holder = results.attackers[worst.attacker]
    estimates = holder.estimates
    for attribute, value in worst.group.items():
        estimates = holder.by[attribute][value]
    strongest = estimates.single("l_w")
    is_known = strongest is not None and math.isfinite(strongest.value)
    finding = Finding.of(
        "disclosure",
        severity=SEVERITY[level],
        level=level,
        estimate=estimate,
        attacker=worst.attacker,
        whole=D_ECE_MAX,
        group=group_references(worst.group) or None,
        strongest=strongest.value if strongest is not None and is_known else None,
        tag=str(strongest.extra["tag"]) if strongest is not None and "tag" in strongest.extra else None,
        top_targets=int(estimate.extra[TOP_TARGETS]) if has_top_targets(estimate) and level == "raised" else None,
        bands=True if level == "raised" and _only_bands(estimate) else None,
    )
    return Criterion(
        name="disclosure",
        level=level,
        finding=finding,
        estimate=estimate,
        attacker=worst.attacker,
        group=worst.group,
    )


def _disclosure_level(estimate: Estimate) -> Level:
    """D_ECE is never negative, so its interval seldom holds what noise gives: the range of noise decides where people
    were not relabeled. Few comparisons that identify a speaker with certainty are lost in a mean, and scores that do
    not rise with the evidence are not seen at all: both are tested apart."""
    if P_ADJUSTED not in estimate.extra and estimate.null_range is not None:
        estimate = estimate.with_(extra={**estimate.extra, P_ADJUSTED: float(bool(estimate.inside_null))})
    level = level_of(replace(estimate, null=0.0), largest=D_ECE_MAX, high=HIGH_D_ECE)
    return "raised" if level in ("low", "unknown") and (has_top_targets(estimate) or has_bands(estimate)) else level


def _only_bands(estimate: Estimate) -> bool:
    """Whether bands are all that speaks against a low level."""
    plain = {name: value for name, value in estimate.extra.items() if name != BANDS}
    return has_bands(estimate) and _disclosure_level(estimate.with_(extra=plain)) in ("low", "unknown")


def _with_bands(results: Results, case: Case) -> Case:
    """The case with the bands that D_sys was tested for on the same scores."""
    found = None if case.group else results.attackers[case.attacker].estimates.single("d_sys")
    if found is None or BANDS not in found.extra:
        return case
    return replace(case, estimate=case.estimate.with_(extra={**case.estimate.extra, BANDS: found.extra[BANDS]}))


def inversion(results: Results) -> Criterion | None:
    candidates = _adjust([Case(_attack(point), point) for point in results.part("inversion").points("top1")])
    if not candidates:
        return None
    worst, level = _worst(candidates, lambda case: level_of(case.estimate), lambda case: surplus(case.estimate))
    estimate = worst.estimate
    gender = str(estimate.at.get("gender", ""))
    finding = Finding.of(
        "inversion",
        severity=SEVERITY[level],
        level=level,
        estimate=estimate,
        attack=worst.attacker,
        by_chance=chance_of(estimate),
        group=(Reference("value", gender, "gender"),) if gender not in ("", "all") else None,
    )
    return Criterion(name="inversion", level=level, finding=finding, estimate=estimate, attacker=worst.attacker)


def _attack(point: Estimate) -> str:
    return str(point.at.get("attack", "procrustes"))


def distinctiveness(results: Results) -> Criterion | None:
    """How well anonymized voices stay apart; the level is that of the risk that speakers are confused."""
    estimate = results.part("similarity").single("g_vd")
    if estimate is None:
        return None
    level: Level
    if math.isnan(estimate.value):
        level = "unknown"
    elif estimate.value > -3:
        level = "low"
    else:
        level = "raised" if estimate.value > -10 else "high"
    finding = Finding.of("distinctiveness", level=level, estimate=estimate)
    return Criterion(name="distinctiveness", level=level, finding=finding, estimate=estimate, risk=False)


def inference(results: Results) -> Criterion | None:
    """The attribute that is guessed best; one that can't be distinguished from noise never hides one that can."""
    guesses = [_within_noise(point) for point in results.part("inference").points("inference")]
    if not guesses:
        return None

    def level(point: Estimate) -> Level:
        # A classifier that is wrong too often knows something: read the other way round it is right.
        is_reversed = point.interval is not None and point.interval[1] < chance_of(point) and not point.inside_null
        return "unknown" if is_reversed else level_of(point, high=HIGH_INFERENCE)

    worst = max(guesses, key=lambda point: (ORDER.index(level(point)), surplus(point)))
    return inference_criterion(results, worst, level(worst))


def inference_criterion(results: Results, point: Estimate, level: Level) -> Criterion:
    """How well one attribute is inferred, with the same on original speech and the other attributes beside it."""
    part = results.parts["inference"]
    attribute = str(point.at.get("attribute", ""))
    original = next((p for p in part.reference.points("inference") if p.at.get("attribute") == attribute), None)
    others = [p for p in part.estimates.points("inference") if p.at.get("attribute") != attribute]
    finding = Finding.of(
        "inference",
        level=level,
        estimate=point,
        attribute=Reference("attribute", attribute),
        by_chance=chance_of(point),
        original=None if original is None else original.value,
        others=tuple(others) or None,
    )
    return Criterion(
        name="inference",
        level=level,
        finding=finding,
        estimate=point,
        risk=False,
        attacker="classifier",
        original=original,
    )


def _within_noise(point: Estimate) -> Estimate:
    """A value that shuffled labels reach too is not significantly more than chance, whatever its interval."""
    return point.with_(extra={**point.extra, P_ADJUSTED: 1.0}) if point.inside_null else point


def _lower_uncorroborated(results: Results, candidates: list[Case]) -> list[Case]:
    """An attacker who singles people out beyond the control has scores that tell who speaks. Where relabeling people
    does not show that any attacker's scores do, by linking or by what they disclose, a risk of singling out may be
    chance: its interval, over rules that share people, is too narrow to say otherwise by itself."""
    tested = [case.estimate for name in ("linkability", "d_ece") for case in cases(results, name)]
    if results.chance is None or any(P_ADJUSTED in point.extra and is_significant(point) for point in tested):
        return candidates
    return [replace(case, estimate=with_probability(case.estimate, 1.0)) for case in candidates]


def _adjust(candidates: Sequence[Case]) -> list[Case]:
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
    found = {name: criterion for name, of in CRITERIA.items() if (criterion := of(results)) is not None}
    recognized = "linking" not in found or found["linking"].level == "high"
    if not recognized and "disclosure" in found:
        # One comparison is of two people: what it tells may be a gender. Only linking among all makes it a person.
        found["disclosure"] = _at_most_raised(found["disclosure"])
    if kept_attribute(results) is not None:
        found |= {
            name: _at_most_raised(found[name]) for name in ("linking", "singling_out", "disclosure") if name in found
        }
    return found


def _at_most_raised(criterion: Criterion) -> Criterion:
    if criterion.level != "high":
        return criterion
    values = {**criterion.finding.values, "level": "raised"}
    return replace(criterion, level="raised", finding=replace(criterion.finding, values=values, severity="warning"))


def kept_attribute(results: Results) -> str | None:
    """The attribute that explains what attackers find: among everybody they do better than chance, within its groups
    they are at chance. None where there is none, or where single people are found."""
    tested = [case for name in ("linkability", "d_ece") for case in cases(results, name)]
    everybody = [case for case in tested if not case.group]
    fewest = min((_people(case) for case in everybody if case.estimate.name == "linkability"), default=0)
    # Half of all people differ in an attribute from somebody, so it shows in pairs; one person who is found does not.
    pairs = [case for case in everybody if case.estimate.name == "d_ece" or _people(case) == fewest]
    significant = [case for case in pairs if is_significant(case.estimate)]
    if results.chance is None or results.people.unprotected or not significant:
        return None
    attributes = dict.fromkeys(attribute for case in tested for attribute in case.group)
    within = [name for name in attributes if _at_chance_within(name, tested) and not _single_out(name, tested)]
    return next(
        (name for name in within if all(_left_within(name, case, tested) <= MOST_LEFT for case in significant)), None
    )


MOST_LEFT = 0.5  # of what is found among everybody, within groups of people who share the attribute that is kept


def _left_within(attribute: str, whole: Case, tested: Sequence[Case]) -> float:
    """The part of what an attacker finds among everybody that is left within groups, beyond chance."""

    def key(case: Case) -> tuple[object, ...]:
        return case.attacker, case.estimate.name, case.estimate.at.get("length"), case.estimate.at.get("speakers")

    parts = [case.estimate for case in tested if attribute in case.group and key(case) == key(whole)]
    if not parts:
        return 0.0
    mean = _pool(parts)
    return (mean.value - (mean.null or 0.0)) / max(whole.estimate.value - chance_of(whole.estimate), 1e-9)


def worst_cases(results: Results, worst: Criterion) -> Iterator[Finding]:
    """Of linking first what holds for everybody, then the worst case, where it is that of a group or a smaller set."""
    everybody = strongest(results) if worst.name == "linking" and worst.level != "unknown" else None
    same_people = everybody is None or worst.estimate.at.get("speakers") == everybody.estimate.at.get("speakers")
    if everybody is not None and (worst.group or not same_people):
        yield tell_linking(results, everybody, worst.level)
    yield worst.finding


def individual_of(results: Results) -> Finding | None:
    """The person found most often, who is told of beside every mean. Where people of a group are alike, chance finds
    them among their own."""
    return worst_person(results, among=within_groups_of(results))


def within_groups_of(results: Results) -> int | None:
    """Where an attribute explains what attackers find, the size of its smallest group: chance links a person among the
    people of their group, and so it may link some more often than not. None where none does."""
    attribute = kept_attribute(replace(results, people=People()))
    groups = [case for case in cases(results, "linkability") if attribute is not None and attribute in case.group]
    return min((int(_people(case)) for case in at_largest(groups) if _group_people(case) >= LEAST_GROUP), default=None)


def _at_chance_within(attribute: str, tested: Sequence[Case]) -> bool:
    """Whether no group stands out, and all of them together are known to be near chance: many small groups say little
    one by one."""
    within = [case for case in tested if attribute in case.group and _group_people(case) >= LEAST_GROUP]
    links = _largest_within(attribute, tested)
    if len({case.group[attribute] for case in links}) < 2 or any(is_significant(case.estimate) for case in within):
        return False
    curves: dict[tuple[object, ...], list[Estimate]] = {}
    for case in links:
        curves.setdefault((case.attacker, case.estimate.at.get("length")), []).append(case.estimate)
    return all(level_of(_pool(points)) == "low" for points in curves.values())


def _single_out(attribute: str, tested: Sequence[Case]) -> bool:
    """Whether comparisons of one person score above all others more often than the attribute explains: where people of
    a group are alike, the highest score is one person's as often as chance links within the group."""
    groups = [case.estimate for case in _largest_within(attribute, tested)]
    top = [int(case.estimate.extra[TOP_TARGETS]) for case in tested if has_top_targets(case.estimate)]
    by_chance = chance_of(_pool(groups)) / 100
    return bool(top) and by_chance ** max(top) * len({case.attacker for case in tested}) < ALPHA


def _largest_within(attribute: str, tested: Sequence[Case]) -> list[Case]:
    """Linking among all people of each group that is large enough."""
    within = [case for case in tested if attribute in case.group and _group_people(case) >= LEAST_GROUP]
    return at_largest([case for case in within if case.estimate.name == "linkability"])


def _pool(points: Sequence[Estimate]) -> Estimate:
    """The mean over groups, by their trials. Its interval reaches to chance unless it is significantly above it."""
    counts = np.array([float(point.n.get("conversations", point.n.get("speakers", 1))) for point in points])
    weights = counts / counts.sum()
    value, chance = (float(weights @ [f(point) for point in points]) for f in (lambda p: p.value, chance_of))
    halves = [np.inf if point.interval is None else (point.interval[1] - point.interval[0]) / 2 for point in points]
    half = float(np.sqrt(np.sum((weights * halves) ** 2)))
    return points[0].with_(value=value, null=chance, interval=(value - half, value + half), extra={})


def _group_people(case: Case) -> int:
    return int(case.estimate.n.get("speakers", LEAST_GROUP))
