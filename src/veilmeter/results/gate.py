"""Limits on a run, for continuous integration: the bad end of the interval decides, for the worst attacker."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from veilmeter.attacks.knowledge import ATTACKERS, attacker
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.estimate import Estimate
from veilmeter.core.estimates import Estimates
from veilmeter.metrics.measure import Measure
from veilmeter.metrics.registry import measure
from veilmeter.results.model import YARDSTICK, AttackerResult, Part, Results
from veilmeter.results.trust import doubts, open_questions

Side = Literal["max", "min"]


@dataclass(frozen=True, slots=True)
class Limit:
    """`linkability@1000=0.05` with --max: the measure, where on its curve, for which attacker, how far it may go."""

    measure: str
    bound: float
    side: Side
    speakers: int | None = None
    length: int | None = None
    attacker: str | None = None
    percent: bool = False

    def __str__(self) -> str:
        at = "" if self.speakers is None else f"@{self.speakers}"
        at += "" if self.length is None else f",L{self.length}"
        who = "" if self.attacker is None else f"{self.attacker}:"
        sign = "%" if self.percent else ""
        return f"{who}{self.measure}{at} {'<=' if self.side == 'max' else '>='} {self.bound:g}{sign}"

    def bound_in(self, unit: str) -> float:
        """The bound in the measure's unit: `20%` is 0.2 of a probability."""
        return self.bound / 100 if self.percent and unit != "percent" else self.bound


@dataclass(frozen=True, slots=True)
class Candidate:
    """One estimate that a limit is about: `place` is the attacker or the part, `group` the group it is within."""

    place: str
    estimate: Estimate
    group: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """A limit, the estimate that comes nearest to breaking it or breaks it most, and whether it holds."""

    limit: Limit
    holds: bool
    candidate: Candidate
    decisive: float

    def __str__(self) -> str:
        estimate = self.candidate.estimate
        interval = estimate.format_interval() or "without an interval"
        shown = (
            f"{estimate.format_value()} {interval}" if estimate.interval else f"{estimate.format_value()}, {interval}"
        )
        within = "".join(f", {attribute} {value}" for attribute, value in self.candidate.group.items())
        who = f" ({self.candidate.place}{within})" if self.candidate.place else ""
        return f"{'holds ' if self.holds else 'BROKEN'}  {self.limit}: {shown}{who}{self.remark}"

    @property
    def remark(self) -> str:
        """A limit from the wrong side is allowed, but hardly meant."""
        better = {"max": "higher", "min": "lower"}[self.limit.side]
        if self.candidate.estimate.better != better:
            return ""
        other = {"max": "--min", "min": "--max"}[self.limit.side]
        return f"; {better} is better here: did you mean {other}?"

    def to_json(self) -> dict[str, Any]:
        return {
            "limit": str(self.limit),
            "holds": self.holds,
            "attacker": self.candidate.place,
            "group": dict(self.candidate.group),
            "decisive": self.decisive,
            "estimate": {"name": self.candidate.estimate.name, **self.candidate.estimate.to_json()},
        }


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a run passes: its limits, what it doubts, which checks are open and which attackers were not run.

    A doubted run fails unless it is accepted `even_if_doubted`; with `trustworthy` asked for, an open check fails too.
    """

    limits: tuple[LimitCheck, ...]
    doubts: tuple[str, ...]
    open_questions: tuple[str, ...]
    not_run: tuple[str, ...]
    trustworthy: bool
    even_if_doubted: bool

    @property
    def passed(self) -> bool:
        doubted = bool(self.doubts) and not self.even_if_doubted
        return all(limit.holds for limit in self.limits) and not doubted and not (self.trustworthy and self.unsettled)

    @property
    def unsettled(self) -> tuple[str, ...]:
        return self.doubts + self.open_questions


def gate(
    results: Results, limits: Sequence[Limit], *, trustworthy: bool = False, even_if_doubted: bool = False
) -> Gate:
    """A run against limits, over all attackers that were run and all groups that were looked at."""
    return Gate(
        limits=tuple(check_limit(results, limit) for limit in limits),
        doubts=tuple(doubts(results)),
        open_questions=tuple(open_questions(results)),
        not_run=tuple(name for name in ATTACKERS if name not in results.attackers),
        trustworthy=trustworthy,
        even_if_doubted=even_if_doubted,
    )


_FORM = re.compile(
    r"(?:(?P<attacker>[a-z][a-z0-9-]*):)?(?P<measure>[A-Za-z_0-9.-]+(?:@fpr=[0-9.e-]+)?)"
    r"(?:@(?P<speakers>[0-9_]+))?(?:[,@]L=?(?P<length>[0-9]+))?=(?P<bound>[-+0-9.eE]+)(?P<percent>\s?%)?"
)


def parse_limit(text: str, side: Side) -> Limit:
    """
    >>> parse_limit("linkability@1000=5%", "max")
    Limit(measure='linkability', bound=5.0, side='max', speakers=1000, length=None, attacker=None, percent=True)
    >>> str(parse_limit("informed:eer=30", "min"))
    'informed:eer >= 30'
    """
    parsed = _FORM.fullmatch(text.strip())
    try:
        if parsed is None:
            raise ValueError
        bound = float(parsed["bound"])
        speakers = int(parsed["speakers"]) if parsed["speakers"] else None
    except ValueError:
        raise InputError(
            f"--{side} {text}: this is no limit",
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


def check_limit(results: Results, limit: Limit) -> LimitCheck:
    """A limit against the worst of the estimates it is about."""
    limit = _with_attacker(results, limit)
    candidates = list(_candidates(results, limit))
    if not candidates:
        raise _nothing(results, limit)
    for candidate in candidates:
        _refuse_impossible(limit, candidate.estimate)
    sign = 1 if limit.side == "max" else -1

    def badness(candidate: Candidate) -> tuple[bool, float]:
        value = _decisive(candidate.estimate, limit.side)
        return (math.isnan(value), sign * value)

    worst = max(candidates, key=badness)
    value, bound = _decisive(worst.estimate, limit.side), limit.bound_in(worst.estimate.unit)
    # A figure that does not exist can't be shown to hold.
    holds = not math.isnan(value) and (value <= bound if limit.side == "max" else value >= bound)
    return LimitCheck(limit, holds, worst, value)


def _with_attacker(results: Results, limit: Limit) -> Limit:
    """The attacker by its own name, where an alias was given; one of the run may be of any name."""
    if limit.attacker is None or limit.attacker in results.attackers or limit.attacker == YARDSTICK:
        return limit
    return replace(limit, attacker=attacker(limit.attacker).name)


def _refuse_impossible(limit: Limit, estimate: Estimate) -> None:
    """A limit outside what the measure can be at all is a mistake, most often a percentage for a share."""
    bound = limit.bound_in(estimate.unit)
    if limit.percent and estimate.unit not in ("probability", "percent"):
        raise InputError(f"{limit}: {estimate.label} is not a share, so it has no percentage")
    entry = _measure_of(estimate)
    if entry is not None and not entry.contains(bound):
        fix = f"write {limit.measure}=0.2 or {limit.measure}=20%" if estimate.unit == "probability" else None
        raise InputError(f"{limit}: {estimate.label} lies between {entry.low:g} and {entry.high:g}", fix=fix)


def _measure_of(estimate: Estimate) -> Measure | None:
    """What is known of its measure; nothing where a plug-in that measured it is not installed here."""
    try:
        return measure(estimate.name)
    except VeilmeterError:
        return None


def _decisive(estimate: Estimate, side: Side) -> float:
    """The end of the interval that may break the limit; the value where there is none."""
    if estimate.interval is None:
        return estimate.value
    return estimate.interval[1 if side == "max" else 0]


def _candidates(results: Results, limit: Limit) -> Iterator[Candidate]:
    names = _names(limit)
    for place, estimates, group in _places(results, limit.attacker):
        for point in estimates:
            named = point.name in names or (point.name == "inference" and point.at.get("attribute") == limit.measure)
            if named and _at(point, limit):
                attribute = point.at.get("attribute")
                yield Candidate(str(attribute) if attribute is not None else place, point, group)


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


def _places(results: Results, named: str | None) -> Iterator[tuple[str, Estimates, Mapping[str, str]]]:
    """Attackers and parts with their estimates, of everybody and within groups. The yardstick only where named."""
    holders: list[AttackerResult | Part] = [
        holder for name, holder in results.attackers.items() if name == named or (named is None and holder.is_attack)
    ]
    if named is None:
        holders += results.parts.values()
    for holder in holders:
        yield holder.name, holder.estimates, {}
        for attribute, values in holder.by.items():
            for value, estimates in values.items():
                yield holder.name, estimates, {attribute: value}


def _nothing(results: Results, limit: Limit) -> InputError:
    if limit.attacker is not None and limit.attacker not in results.attackers:
        return InputError(
            f"{limit}: the run has no {limit.attacker} attacker", fix=f"it has {', '.join(results.attackers)}"
        )
    places = list(_places(results, limit.attacker))
    known = sorted({name for _, estimates, _ in places for name in estimates.names})
    points = [point for _, estimates, _ in places for point in estimates.points(limit.measure)]
    if points:
        return InputError(f"{limit}: the run has no such point", fix=_measured_at(results, limit, points))
    near = difflib.get_close_matches(limit.measure, known, 1)
    return InputError(
        f"{limit}: the run has no measure {limit.measure!r}",
        fix=f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}",
    )


def _measured_at(results: Results, limit: Limit, points: Iterable[Estimate]) -> str:
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
        reasons = [text for text in results.warnings if "extrapolated" in text]
        fix += f". {reasons[0]}" if reasons else ""
    return fix
