"""Limits that a run must keep: how they are written, and the figure that decides whether one holds.

The bad end of the interval decides, for the worst attacker. Without a group a limit is about everybody together and
about every group that the run has figures of; within a group about nobody else.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from veilmeter.attacks.attacker import BASELINE, attacker
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import POINTS, Estimate, Estimates
from veilmeter.core.findings import Finding, group_references
from veilmeter.core.options import refuse_fraction
from veilmeter.metrics.measure import Measure, better_direction, measure_behind
from veilmeter.results.model import AttackerResult, Part, Results
from veilmeter.results.people import risks_of_everybody
from veilmeter.wording import sentence, sentences, text
from veilmeter.wording.catalog import shown

PERCENTAGES = ("percent", POINTS)
Side = Literal["max", "min"]
Group = Mapping[str, str]  # attribute and value, as in {"gender": "f"}; empty for everybody


@dataclass(frozen=True, slots=True)
class Limit:
    """A limit that a run must keep: `linkability@1000=5%` with --max.

    Parameters
    ----------
    measure : str
        Name of the measure, such as `"linkability"`.
    bound : float
        How far it may go, in the unit of the measure.
    side : {"max", "min"}
        Whether it may not exceed the bound, or not fall below it.
    speakers, length : int, optional
        Where on its curve; by default everywhere.
    attacker : str, optional
        For which attacker; by default for all.
    percent : bool
        Whether the bound was written as a percentage.
    person : bool
        Whether it is held against each person by themselves, not against the mean.

    Examples
    --------
    >>> print(Limit("linkability", 5.0, "max", speakers=1000, percent=True))
    linkability@1000 <= 5%
    """

    measure: str
    bound: float
    side: Side
    speakers: int | None = None
    length: int | None = None
    attacker: str | None = None
    percent: bool = False
    person: bool = False

    def __str__(self) -> str:
        at = "" if self.speakers is None else f"@{self.speakers}"
        at += "" if self.length is None else f",L{self.length}"
        who = "" if self.attacker is None else f"{self.attacker}:"
        sign = "%" if self.percent else ""
        each = " of each person" if self.person else ""
        return f"{who}{self.measure}{at}{each} {'<=' if self.side == 'max' else '>='} {self.bound:g}{sign}"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One estimate that a limit is about: `place` is the attacker or the part, `group` the group it is within."""

    place: str
    estimate: Estimate
    group: Group = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """A limit, the estimate that comes nearest to breaking it or breaks it most, and whether it holds.

    `group` is the group that was asked for. `not_measured` are the attackers and groups that have no such figure, where
    others have one.
    """

    limit: Limit
    holds: bool
    candidate: Candidate
    decisive: float
    group: Group = field(default_factory=dict)
    not_measured: tuple[Finding, ...] = ()

    @property
    def title(self) -> Finding:
        """The limit, and the group it was asked for."""
        return Finding.of("limit", limit=str(self.limit), group=group_references(self.group) or None)

    @property
    def finding(self) -> Finding:
        """The figure that decides, whose it is, and where on its curve as far as the limit leaves that open. A limit
        from the wrong side is allowed, but hardly meant."""
        estimate, limit = self.candidate.estimate, self.limit
        wrong = {"max": "higher", "min": "lower"}[limit.side]
        asked = {"speakers": limit.speakers, "length": limit.length}
        return Finding.of(
            "limit_checked",
            estimate=estimate.with_(at={key: at for key, at in estimate.at.items() if asked.get(key) is None}),
            place=self.candidate.place,
            group=None if self.group else group_references(self.candidate.group) or None,
            better=wrong if better_direction(estimate) == wrong else None,
            severity="information" if self.holds else "problem",
        )

    def __str__(self) -> str:
        return f"{'holds' if self.holds else 'broken'}: {text((self.title, self.finding))}"

    def to_json(self) -> dict[str, Any]:
        return {
            "limit": str(self.limit),
            "holds": self.holds,
            "attacker": self.candidate.place,
            "group": dict(self.candidate.group),
            "by": dict(self.group),
            "decisive": self.decisive,
            "not_measured": list(sentences(self.not_measured)),
            "estimate": {"name": self.candidate.estimate.name, **self.candidate.estimate.to_json()},
        }


def read_limits(upper: Mapping[str, float | str], lower: Mapping[str, float | str]) -> list[Limit]:
    """Limits by figure, as in `{"linkability@20": "20%"}`.

    >>> [str(limit) for limit in read_limits({"linkability@20": "20%"}, {"d_ece": 0.1})]
    ['linkability@20 <= 20%', 'd_ece >= 0.1']
    """
    sides: tuple[tuple[Side, Mapping[str, float | str]], ...] = (("max", upper), ("min", lower))
    return [parse_limit(f"{figure}={bound}", side) for side, bounds in sides for figure, bound in bounds.items()]


# A figure: `eer`, `linkability@20`, `linkability@20,L3`, `informed:eer`.
FIGURE_FORM = (
    r"(?:(?P<attacker>[A-Za-z][\w.+-]*):)?(?P<measure>[A-Za-z_0-9.-]+(?:@[a-z]+=[0-9.e-]+)?)"
    r"(?:@(?P<speakers>[0-9]{1,3}(?:_?[0-9]{1,3}){0,5}))?(?:[,@]L=?(?P<length>[0-9]{1,9}))?"
)
_FORM = re.compile(FIGURE_FORM + r"=(?P<bound>[-+0-9.eE]+)(?P<percent>\s?%)?")


def parse_limit(text: str, side: Side) -> Limit:
    """
    >>> parse_limit("linkability@1000=5%", "max").speakers
    1000
    >>> str(parse_limit("informed:eer=30%", "min"))
    'informed:eer >= 30%'
    """
    parsed = _FORM.fullmatch(text.strip())
    try:
        if parsed is None:
            raise ValueError
        bound = float(parsed["bound"])
        speakers = int(parsed["speakers"]) if parsed["speakers"] else None
    except ValueError:
        raise InputError(
            f"--{side} {text}: invalid limit",
            fix="write measure=bound, measure@speakers=bound, measure@speakers,L3=bound or attacker:measure=bound",
        ) from None
    if not math.isfinite(bound):
        raise InputError(f"--{side} {text}: a limit must be a finite number")
    return Limit(
        measure=parsed["measure"],
        bound=bound,
        side=side,
        speakers=speakers,
        length=int(parsed["length"]) if parsed["length"] else None,
        attacker=parsed["attacker"],
        percent=parsed["percent"] is not None,
    )


def groups_of(results: Results, attribute: str) -> list[Group]:
    """The groups by an attribute that the run has figures of; an InputError where there are none."""
    holders: list[AttackerResult | Part] = [*results.attacks.values(), *results.parts.values()]
    values = dict.fromkeys(value for holder in holders for value in holder.by.get(attribute, {}))
    if not values:
        known = ", ".join(dict.fromkeys(name for holder in holders for name in holder.by))
        fix = f"assess with --by {attribute}" + (f"; this run has {known}" if known else "")
        raise InputError(f"--by {attribute}: the run has no figures within groups by {attribute}", fix=fix)
    return [{attribute: value} for value in values]


def check_limit(results: Results, limit: Limit, group: Group | None = None) -> LimitCheck:
    """A limit against the worst of the estimates it is about; with a group, of those within it."""
    limit = _with_attacker(results, limit)
    places = [] if limit.person else list(places_of(results, limit.attacker, group))
    candidates = [candidate for place in places for candidate in candidates_of(place, limit)]
    if limit.person:
        candidates = _people_of(results, limit)
    if not candidates:
        raise _nothing(results, limit, places, group)
    for candidate in candidates:
        _refuse_impossible(limit, candidate.estimate)
    limit = replace(limit, percent=candidates[0].estimate.unit in PERCENTAGES)
    sign = 1 if limit.side == "max" else -1

    def badness(candidate: Candidate) -> tuple[bool, float, float]:
        """By the end that decides; among equals, the figure that is bad beyond doubt."""
        estimate = candidate.estimate
        value, least = _decisive(estimate, limit.side), _decisive(estimate, "min" if limit.side == "max" else "max")
        return (math.isnan(value), sign * value, sign * least)

    worst = max(candidates, key=badness)
    value, bound = _decisive(worst.estimate, limit.side), limit.bound
    # A figure that does not exist can't be shown to hold.
    holds = not math.isnan(value) and (value <= bound if limit.side == "max" else value >= bound)
    return LimitCheck(limit, holds, worst, value, group or {}, tuple(_gaps(places, limit)))


PERSONAL = "linkability"  # the measure that is known of each person


def _people_of(results: Results, limit: Limit) -> list[Candidate]:
    """Each person with each attacker; the intervals hold for all of them together."""
    if limit.measure != PERSONAL:
        raise InputError(f"{limit}: only {PERSONAL} is known of each person", fix=f"write {PERSONAL}=50%")
    if limit.attacker is not None and limit.attacker not in results.attackers:
        raise _nothing(results, limit, (), None)
    risks = risks_of_everybody(results, None if limit.attacker is None else (limit.attacker,))
    if not risks:
        raise InputError(f"{limit}: nobody was tried one by one", fix="assess recordings or embeddings, not scores")
    found = [Candidate(name, risk) for name, risk in risks if _at(risk, limit)]
    if not found:
        points = [risk for _, risk in risks]
        raise InputError(f"{limit}: the run has no such point", fix=_list_points(results, limit, points))
    return found


def _gaps(places: Sequence[Place], limit: Limit) -> Iterator[Finding]:
    """Attackers without a figure that other attackers have, and groups of those who have it for everybody; what a part
    says of one attacker is not a group of people."""
    with_figure = [place for place in places if any(True for _ in candidates_of(place, limit))]
    attackers = any(isinstance(place.holder, AttackerResult) for place in with_figure)
    whole = {place.holder.name for place in with_figure if not place.group}
    for place in places:
        known = place in with_figure
        alike = place.holder.name in whole if place.group else attackers and isinstance(place.holder, AttackerResult)
        if alike and not known and "attacker" not in place.group:
            group = group_references(place.group) or None
            yield Finding.of("figure_not_measured", place=place.holder.name, group=group)


def _with_attacker(results: Results, limit: Limit) -> Limit:
    """The attacker by its own name, where an alias was given; one of the run may be of any name."""
    if limit.attacker is None or limit.attacker in results.attackers or limit.attacker == BASELINE:
        return limit
    return replace(limit, attacker=attacker(limit.attacker).name)


def _refuse_impossible(limit: Limit, estimate: Estimate) -> None:
    """A limit outside what the measure can be at all is a mistake; a bare number of at most 1 may be a fraction or a
    percentage. A figure in another unit than its measure's would be held against the wrong bound."""
    entry = measure_behind(estimate)
    if entry is not None and entry.unit != estimate.unit:
        raise InputError(
            f"{limit}: the results give {estimate.label} in {estimate.unit or 'no unit'!r} instead of {entry.unit!r}",
            fix="run the assessment again",
        )
    if limit.percent and estimate.unit not in PERCENTAGES:
        raise InputError(f"{limit}: {estimate.label} is not a percentage", fix="write the limit without %")
    if entry is not None and not entry.contains(limit.bound):
        raise InputError(f"{limit}: {estimate.label} {_range(entry)}")
    if estimate.unit in PERCENTAGES and not limit.percent:
        try:
            refuse_fraction(limit.bound)
        except InputError as problem:
            raise InputError(f"{limit}: {problem.what}", fix=problem.fix) from None


def _range(entry: Measure) -> str:
    sign = " %" if entry.unit in PERCENTAGES else ""
    low, high = f"{entry.low:g}{sign}", f"{entry.high:g}{sign}"
    if math.isinf(entry.low) or math.isinf(entry.high):
        return f"is never below {low}" if math.isinf(entry.high) else f"is never above {high}"
    return f"lies between {low} and {high}"


def _decisive(estimate: Estimate, side: Side) -> float:
    """The end of the interval that may break the limit, or the value where that is worse; NaN where an end is."""
    ends = (estimate.value, *(estimate.interval or ()))
    if any(math.isnan(end) for end in ends):
        return math.nan
    worst: float = max(ends) if side == "max" else min(ends)
    return worst


def candidates_of(place: Place, limit: Limit) -> Iterator[Candidate]:
    names = _names(limit)
    for point in place.estimates:
        named = point.name in names or (point.name == "inference" and point.at.get("attribute") == limit.measure)
        if named and _at(point, limit):
            attribute = point.at.get("attribute")
            yield Candidate(str(attribute) if attribute is not None else place.holder.name, point, place.group)


def _at(point: Estimate, limit: Limit) -> bool:
    return all(
        wanted is None or point.at.get(key) == wanted
        for key, wanted in (("speakers", limit.speakers), ("length", limit.length))
    )


def _names(limit: Limit) -> tuple[str, ...]:
    """A number of people beyond those enrolled is answered by the extrapolation, where it was asked for."""
    if limit.measure == "linkability" and limit.speakers is not None:
        return ("linkability", "population_linkability")
    return (limit.measure,)


@dataclass(frozen=True, slots=True, eq=False)
class Place:
    """An attacker or a part, with its estimates of everybody or within a group."""

    holder: AttackerResult | Part
    estimates: Estimates
    group: Group


def places_of(results: Results, named: str | None, group: Group | None) -> Iterator[Place]:
    """Attackers and parts, of everybody and within groups, or within the one asked for. The baseline where named."""
    holders: list[AttackerResult | Part] = [
        holder for name, holder in results.attackers.items() if name == named or (named is None and holder.is_attack)
    ]
    if named is None:
        holders += results.parts.values()
    for holder in holders:
        if group is None:
            yield Place(holder, holder.estimates, {})
        for attribute, values in holder.by.items():
            for value, estimates in values.items():
                if group is None or group == {attribute: value}:
                    yield Place(holder, estimates, {attribute: value})


def _nothing(results: Results, limit: Limit, places: Sequence[Place], group: Group | None) -> InputError:
    if limit.attacker is not None and limit.attacker not in results.attackers:
        return InputError(
            f"{limit}: the run has no {limit.attacker} attacker", fix=f"it has {', '.join(results.attackers)}"
        )
    within = f" within {shown(group_references(group))}" if group else ""
    known = sorted({name for place in places for name in place.estimates.names})
    points = [point for place in places for point in place.estimates.points(limit.measure)]
    if points:
        return InputError(f"{limit}: the run has no such point{within}", fix=_list_points(results, limit, points))
    near = difflib.get_close_matches(limit.measure, known, 1)
    return InputError(
        f"{limit}: the run has no measure {limit.measure!r}{within}",
        fix=f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}",
    )


def _list_points(results: Results, limit: Limit, points: Iterable[Estimate]) -> str:
    """At which points there are figures, and how to get the one that was asked for."""
    at = [point.at for point in points]
    sizes = sorted({int(where["speakers"]) for where in at if "speakers" in where})
    lengths = sorted({int(where["length"]) for where in at if "length" in where})
    fix = f"it was measured among {', '.join(map(str, sizes))} people" if sizes else "it is a single figure"
    if lengths:
        fix += f", with {', '.join(map(str, lengths))} utterances each"
    if limit.length is not None and limit.length not in lengths and lengths:
        fix += f"; assess with --lengths {limit.length}"
    elif limit.measure == "linkability" and limit.speakers not in sizes:
        fix += f"; assess with --speakers {limit.speakers} or, beyond the enrolled, --population {limit.speakers}"
        beyond = ("not_extrapolated", "population_is_smaller")
        reasons = [sentence(found) for found in results.warnings if found.code in beyond]
        fix += f". {reasons[0]}" if reasons else ""
    return fix
