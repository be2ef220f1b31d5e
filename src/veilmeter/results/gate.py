"""Limits on a run's results, for continuous integration: the bad end of the interval decides, for the worst "
"attacker."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from veilmeter.attacks.knowledge import ORIGINAL, attacker
from veilmeter.core.errors import InputError

Plain = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Limit:
    """`linkability@1000=0.05` with --max: the measure, where on its curve, for which attacker, and how far it may "
    "go."""

    measure: str
    bound: float
    side: Literal["max", "min"]
    speakers: int | None = None
    length: int | None = None
    attacker: str | None = None

    def __str__(self) -> str:
        at = "" if self.speakers is None else f"@{self.speakers}"
        at += "" if self.length is None else f",L{self.length}"
        who = "" if self.attacker is None else f"{self.attacker}:"
        return f"{who}{self.measure}{at} {'<=' if self.side == 'max' else '>='} {self.bound:g}"


@dataclass(frozen=True, slots=True)
class Gated:
    """A limit, the estimate that comes nearest to breaking it or breaks it most, and whether it holds."""

    limit: Limit
    holds: bool
    attacker: str
    estimate: dict[str, Any]
    decisive: float

    def __str__(self) -> str:
        value = self.estimate["value"]
        unit = {"percent": " %", "bit": " bit", "decibel": " dB", "dB": " dB"}.get(self.estimate.get("unit", ""), "")
        shown = (f"{value:.4g}" if isinstance(value, int | float) else str(value)) + unit
        if self.estimate.get("interval"):
            shown += " [" + ", ".join(f"{_number(end):.4g}" for end in self.estimate["interval"]) + "]"
        else:
            shown += ", without an interval"
        who = f" ({self.attacker})" if self.attacker else ""
        return f"{'holds ' if self.holds else 'BROKEN'}  {self.limit}: {shown}{who}{self.remark}"

    @property
    def remark(self) -> str:
        """A limit from the wrong side is allowed, but hardly meant."""
        better = {"max": "higher", "min": "lower"}[self.limit.side]
        if self.estimate.get("better") != better:
            return ""
        other = {"max": "--min", "min": "--max"}[self.limit.side]
        return f"; {better} is more private here: did you mean {other}?"

    def to_json(self) -> dict[str, Any]:
        return {
            "limit": str(self.limit),
            "holds": self.holds,
            "attacker": self.attacker,
            "decisive": self.decisive,
            "estimate": self.estimate,
        }


_FORM = re.compile(
    r"(?:(?P<attacker>[a-z][a-z-]*):)?(?P<measure>[A-Za-z_0-9]+(?:@fpr=[0-9.e-]+)?)"
    r"(?:@(?P<speakers>[0-9_]+))?(?:[,@]L=?(?P<length>[0-9]+))?=(?P<bound>[-+0-9.eE]+)"
)


def parse_limit(text: str, side: Literal["max", "min"]) -> Limit:
    """
    >>> parse_limit("linkability@1000=0.05", "max")
    Limit(measure='linkability', bound=0.05, side='max', speakers=1000, length=None, attacker=None)
    >>> str(parse_limit("informed:eer=30", "min"))
    'informed:eer >= 30'
    """
    found = _FORM.fullmatch(text.strip())
    try:
        if found is None:
            raise ValueError
        bound = float(found["bound"])
    except ValueError:
        raise InputError(
            f"--{side} {text}: this is no limit",
            fix="write measure=bound, measure@speakers=bound, measure@speakers,L3=bound or attacker:measure=bound",
        ) from None
    return Limit(
        found["measure"],
        bound,
        side,
        int(found["speakers"]) if found["speakers"] else None,
        int(found["length"]) if found["length"] else None,
        None if found["attacker"] is None else _attacker(found["attacker"]),
    )


def _attacker(name: str) -> str:
    """By its name or an alias; "original" is the yardstick."""
    return name if name == ORIGINAL.name else attacker(name).name


def check_limits(results: Plain, limits: Sequence[Limit]) -> list[Gated]:
    """Every limit against the worst of the estimates it is about."""
    return [_check(results, limit) for limit in limits]


def _check(results: Plain, limit: Limit) -> Gated:
    candidates = _candidates(results, limit)
    if not candidates:
        raise _nothing(results, limit)
    scored = [(_decisive(one, limit.side), name, one) for name, one in candidates]
    sign = 1 if limit.side == "max" else -1
    value, name, one = max(scored, key=lambda item: (math.isnan(item[0]), sign * item[0]))
    # A figure that does not exist can't be shown to hold.
    holds = not math.isnan(value) and (value <= limit.bound if limit.side == "max" else value >= limit.bound)
    return Gated(limit, holds, name, dict(one), value)


def _decisive(one: Plain, side: str) -> float:
    """The end of the interval that may break the limit; the value where there is none."""
    if one.get("interval"):
        return _number(one["interval"][1 if side == "max" else 0])
    return _number(one["value"])


def _number(value: Any) -> float:
    if value is None:
        return math.nan
    return {"inf": math.inf, "-inf": -math.inf}[value] if isinstance(value, str) else float(value)


def _candidates(results: Plain, limit: Limit) -> list[tuple[str, Plain]]:
    found: list[tuple[str, Plain]] = []
    for name, estimates in _places(results, limit.attacker):
        for measure in _names(limit):
            for one in _points(estimates.get(measure)):
                if limit.speakers is not None and one.get("speakers") != limit.speakers:
                    continue
                if limit.length is not None and one.get("length") != limit.length:
                    continue
                found.append((name, one))
    if limit.measure in ("inference", *results.get("inference", {})):
        for attribute, entry in results.get("inference", {}).items():
            if "estimate" in entry and limit.measure in ("inference", attribute):
                found.append((attribute, entry["estimate"]))
    return found


def _names(limit: Limit) -> list[str]:
    """A number of people beyond those enrolled is answered by the extrapolation, where it was asked for."""
    if limit.measure == "linkability" and limit.speakers is not None:
        return ["linkability", "population_linkability"]
    return [limit.measure]


def _places(results: Plain, attacker: str | None) -> list[tuple[str, Plain]]:
    places = [
        (name, one["estimates"])
        for name, one in results["attackers"].items()
        if name == attacker or (attacker is None and name != "original")
    ]
    if attacker is None:
        places += [
            (part, results[part].get("estimates", {}))
            for part in ("similarity", "zebra", "inversion", "sessions", "runs")
            if part in results
        ]
    return places


def _points(found: Any) -> list[Plain]:
    if found is None:
        return []
    return found if isinstance(found, list) else [found]


def _nothing(results: Plain, limit: Limit) -> InputError:
    if limit.attacker is not None and limit.attacker not in results["attackers"]:
        return InputError(
            f"{limit}: the run has no {limit.attacker} attacker", fix=f"it has {', '.join(results['attackers'])}"
        )
    known = sorted({name for _, estimates in _places(results, limit.attacker) for name in estimates})
    points = [one for _, estimates in _places(results, limit.attacker) for one in _points(estimates.get(limit.measure))]
    if points or limit.measure in known:
        sizes = sorted({int(one["speakers"]) for one in points if "speakers" in one})
        lengths = sorted({int(one["length"]) for one in points if "length" in one})
        fix = f"it was measured among {', '.join(map(str, sizes))} people" if sizes else "it could not be measured"
        if lengths:
            fix += f", with {', '.join(map(str, lengths))} utterances each"
        if limit.length is not None and limit.length not in lengths and lengths:
            fix += f"; assess with --lengths {limit.length}"
        elif limit.measure == "linkability" and limit.speakers not in sizes:
            fix += f"; assess with --speakers {limit.speakers} or, beyond the enrolled, --population {limit.speakers}"
        reasons = [text for text in results.get("warnings", []) if "extrapolated" in text]
        if reasons and "linkability" in limit.measure and limit.speakers not in sizes:
            fix += f". {reasons[0]}"
        return InputError(f"{limit}: the run has no such point", fix=fix)
    near = difflib.get_close_matches(limit.measure, known, 1)
    return InputError(
        f"{limit}: the run has no measure {limit.measure!r}",
        fix=f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}",
    )
