"""What to do next, derived from the results by fixed rules; none of them is a legal judgment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from veilmeter.attacks.attacker import ATTACKERS
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding, Reference
from veilmeter.core.intervals import cluster_error, logit_t
from veilmeter.report.rows import linking_of_all
from veilmeter.results import trust
from veilmeter.results.criteria import kept_attribute, strongest
from veilmeter.results.model import Criterion, LinkedPerson, Results
from veilmeter.wording.numbers import count

WIDE_INTERVAL = 20.0  # percentage points: wider, and hardly anything follows from it
CLEARLY_LESS = 10.0  # percentage points: what a measure must gain to be recommended
MUCH_LESS = 0.5  # an attacker that finds less than half of another


_OTHER_VOICES = ("advice_stronger_anonymizer", "advice_new_voices", "advice_less_similar_voices")


@dataclass(frozen=True, slots=True)
class Advice:
    """`action` is what to do, `reason` the finding behind it; `criterion` is what it is for."""

    criterion: str
    action: Finding
    reason: Finding | None = None


def advice(results: Results) -> tuple[Advice, ...]:
    """In the order in which it should be read: first what makes the figures reliable, then what lowers the risk."""
    kept: list[Advice] = []
    for rule in RULES:
        kept += [item for item in rule(results) if item not in kept and not _is_repeated(item, kept)]
    return tuple(kept)


def _is_repeated(item: Advice, kept: Sequence[Advice]) -> bool:
    """One who is told to change the anonymizer need not be told in other words to change its voices."""
    changes = item.action.code in _OTHER_VOICES and item.reason is None
    return changes and any(other.action.code in _OTHER_VOICES for other in kept)


def _failing(results: Results, name: str) -> Criterion | None:
    criterion = linking_of_all(results) if name == "linking" else results.criteria.get(name)
    return criterion if criterion is not None and criterion.level in ("raised", "high") else None


def check_advice(results: Results) -> Iterator[Advice]:
    """Also what could not be checked, where something can be done about it."""
    for check in results.checks:
        if check.open and check.name == trust.ENOUGH and "anonymized" not in results.inputs:
            yield Advice("trust", Finding("advice_assess_speech"), check.finding)
        elif check.failed or (check.open and check.name in (trust.OWN_RUNS, trust.ENOUGH)):
            yield Advice("trust", Finding("advice_remedy", {"check": check.name}), check.finding)


def stronger_system(results: Results) -> Iterator[Advice]:
    """Even somebody who knows nothing of the anonymizer succeeds."""
    linking, ignorant = _failing(results, "linking"), results.attackers.get("ignorant")
    if linking is None or ignorant is None:
        return
    point = _same_point(ignorant.estimates.points("linkability"), linking.estimate)
    if point is not None and point.value - (point.null or 0) >= 100 / 3:
        yield Advice(
            "linking",
            Finding("advice_stronger_anonymizer"),
            Finding("unaware_attacker_finds", {"estimate": point}),
        )


def other_voices(results: Results) -> Iterator[Advice]:
    """Access to the anonymizer makes the attack far stronger: the new voice identifies the person."""
    linking, ignorant = _failing(results, "linking"), results.attackers.get("ignorant")
    if linking is None or ignorant is None or linking.attacker == "ignorant":
        return
    point = _same_point(ignorant.estimates.points("linkability"), linking.estimate)
    attacker = linking.attacker
    anonymizes = attacker not in ATTACKERS or ATTACKERS[attacker].enrollment == ("anonymized",)
    if point is None or not anonymizes or point.value >= MUCH_LESS * linking.estimate.value:
        return
    kept = kept_attribute(results)
    if kept is not None:
        yield Advice("linking", Finding("advice_decide_attribute", {"attribute": Reference("attribute", kept)}))
        return
    one_voice = any(found.code == "one_voice_per_speaker" for found in results.verdict.remarks)
    action = "advice_new_voices" if one_voice else "advice_less_similar_voices"
    reason = Finding("anonymizer_helps_attacker", {"having": _own_point(results, linking), "lacking": point})
    yield Advice("linking", Finding(action), reason)


def less_speech(results: Results) -> Iterator[Advice]:
    """Fewer recordings per person, where that was measured to help."""
    linking = _failing(results, "linking")
    if linking is None or linking.attacker not in results.attackers:
        return
    length = int(linking.estimate.at.get("length", 1))
    for point in results.attackers[linking.attacker].estimates.points("linkability").sort_by("length"):
        shorter = int(point.at.get("length", 1))
        same = point.at.get("speakers") == linking.estimate.at.get("speakers")
        before = _own_point(results, linking)
        if same and shorter < length and before.value - point.value >= CLEARLY_LESS:
            reason = Finding("fewer_recordings_help", {"before": before, "after": point})
            yield Advice("linking", Finding("advice_fewer_recordings", {"length": shorter}), reason)
            return


def reversible(results: Results) -> Iterator[Advice]:
    inversion = _failing(results, "inversion")
    if inversion is not None:
        reason = Finding("recordings_inverted", {"estimate": inversion.estimate})
        yield Advice("inversion", Finding("advice_vary_parameters"), reason)


def singling_out_advice(results: Results) -> Iterator[Advice]:
    unprotected = len(results.people.unprotected)
    if unprotected and unprotected < len(results.people.persons) / 2:
        action = Finding("advice_treat_people", {"number": unprotected}, people=results.people.unprotected)
        yield Advice(
            "singling_out", action, without(results, results.people.unprotected) or Finding("people_are_listed")
        )
    elif _failing(results, "singling_out") is not None:
        yield Advice("singling_out", Finding("advice_less_similar_voices"))


def without(results: Results, left_out: Sequence[str]) -> Finding | None:
    """The share that the headline's attacker links: of everybody, and of the others if these people were left out, both
    as measured. None where fewer than two people remain, or linking was not measured."""
    case = strongest(results)
    if case is None:
        return None
    length, among = int(case.estimate.at.get("length", 1)), int(case.estimate.at["speakers"])
    rows = [row for row in results.attackers[case.attacker].people if (row.length, row.among) == (length, among)]
    kept = [row for row in rows if row.speaker not in left_out]
    if not 2 <= len(kept) < len(rows):
        return None
    fewer = case.estimate.with_(
        label=f"{case.estimate.label} if {count(len(rows) - len(kept), 'person', 'people')} were left out"
    )
    before, linked = _mean_linked(rows, case.estimate), _mean_linked(kept, fewer)
    who = {"attacker": case.attacker, "about": results.attackers[case.attacker].about}
    return Finding("linked_without", {"number": len(rows) - len(kept), "before": before, "linked": linked, **who})


def _mean_linked(rows: Sequence[LinkedPerson], like: Estimate) -> Estimate:
    counts = [row.conversations for row in rows]
    each = np.repeat([row.linked / 100 for row in rows], counts)
    value = float(each.mean())
    low, high = logit_t(value, *cluster_error(each, np.repeat(np.arange(len(rows)), counts)))
    return like.with_(value=100 * value, interval=(100 * low, 100 * high), extra={})


def attributes(results: Results) -> Iterator[Advice]:
    inference = _failing(results, "inference")
    if inference is not None:
        attribute = Reference("attribute", str(inference.estimate.at.get("attribute", "an attribute")))
        yield Advice(
            "inference",
            Finding("advice_decide_attribute", {"attribute": attribute}),
            Finding("attribute_inferred", {"estimate": inference.estimate}),
        )


def more_people(results: Results) -> Iterator[Advice]:
    """Where no check has told whether they are enough."""
    linking = linking_of_all(results)
    if linking is None or linking.estimate.interval is None:
        return
    low, high = linking.estimate.interval
    told = any(check.name == trust.ENOUGH and check.passed is not None for check in results.checks)
    if high - low > WIDE_INTERVAL and not told:
        yield Advice("trust", Finding("advice_more_people"), Finding("interval_is_wide", {"low": low, "high": high}))


def further_attackers(results: Results) -> Iterator[Advice]:
    not_run = {finding.values.get("attacker") for finding in results.verdict.not_tested}
    missing = tuple(name for name in ATTACKERS if name in not_run)
    if missing:
        yield Advice("trust", Finding("advice_run_attackers", {"attackers": missing}))


def not_usable(results: Results) -> Iterator[Advice]:
    kept = results.criteria.get("distinctiveness")
    if results.verdict.level == "low" and kept is not None and kept.level == "high" and "utility" not in results.parts:
        yield Advice("use", Finding("advice_listen"))


def again(results: Results) -> Iterator[Advice]:
    yield Advice("trust", Finding("advice_assess_again"))


RULES: tuple[Callable[[Results], Iterator[Advice]], ...] = (
    check_advice, stronger_system, other_voices, less_speech, reversible, singling_out_advice, attributes, more_people,
    further_attackers, not_usable, again,
)  # fmt: skip


def _own_point(results: Results, linking: Criterion) -> Estimate:
    """What the headline's attacker reached itself; the headline's figure may be that of a choice on other people."""
    points = results.attackers[linking.attacker].estimates.points("linkability")
    return _same_point(points, linking.estimate) or linking.estimate


def _same_point(points: Estimates, like: Estimate) -> Estimate | None:
    return next((point for point in points if point.at == like.at), None)
