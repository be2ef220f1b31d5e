"""Findings of every declared code, made from the types of its values."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Literal, cast, get_args, get_origin

from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Finding, Level, Reference, Value
from veilmeter.wording.codes import CODES, Declaration

_POINT = {"speakers": 20, "length": 1}
SAMPLES: dict[Any, tuple[Value, ...]] = {
    int: (3, 1, 0, 12_345),
    float: (0.25, 0.0, 12.5),
    bool: (True, False),
    str: ("informed", "ignorant"),
    Reference: (Reference("value", "f", "gender"), Reference("speaker", "p1"), Reference("text", "")),
    Estimate: (
        Estimate(name="linkability", value=71.0, unit="percent", interval=(60.0, 80.0), null=5.0, at=_POINT),
        Estimate(name="linkability", value=0.4, unit="percent", at={"speakers": 1000, "length": 3}),
        Estimate(name="linkability", value=math.nan, unit="percent", at=_POINT),
    ),
}


def values_of(wanted: Any) -> tuple[Value | None, ...]:
    """Some values of a type; None stands for a value that is missing."""
    if wanted in SAMPLES:
        return SAMPLES[wanted]
    members = get_args(wanted)
    if get_origin(wanted) is Literal:
        return members
    if get_origin(wanted) is tuple:
        items = [item for item in values_of(members[0]) if item is not None]
        return (tuple(items[:2]), (), tuple(items[:1]))  # type: ignore[return-value]
    return tuple(None if member is type(None) else value for member in members for value in _member(member))


def _member(member: Any) -> tuple[Value | None, ...]:
    return (None,) if member is type(None) else values_of(member)


def findings_of(declared: Declaration) -> Iterator[Finding]:
    """One finding with the first values of all types, and one for every other value of each."""
    choices = {name: values_of(wanted) for name, wanted in declared.values.items()}
    first = {name: values[0] for name, values in choices.items()}
    rows = [first] + [first | {name: value} for name, values in choices.items() for value in values[1:]]
    for row in rows:
        yield Finding(declared.code, {name: value for name, value in row.items() if value is not None}, ("p1",))


def every_finding() -> list[Finding]:
    return [finding for declared in CODES.values() for finding in findings_of(declared)]


# --- which findings one run can have

LEVELS: tuple[Level, ...] = ("low", "unknown", "raised", "high")  # of a risk, from the mildest
_RISKS = ("linking", "singling_out", "disclosure", "inversion")  # criteria that the verdict is never milder than
# Levels of linking, and so of the verdict, that a finding presupposes.
_ALARM: tuple[Level, ...] = ("raised", "high")
_NO_ALARM: tuple[Level, ...] = ("low", "unknown")


def can_occur_together(first: Finding, second: Finding) -> bool:
    """Whether one run can have both findings. A slot holds one of its findings; levels agree with each other."""
    slots = [CODES[finding.code].slot for finding in (first, second)]
    if slots[0] and slots[0] == slots[1]:
        return False
    if not set(levels_of_linking(first)) & set(levels_of_linking(second)):
        return False
    return not any(_disagree(*pair) for pair in ((first, second), (second, first)))


def _disagree(first: Finding, second: Finding) -> bool:
    """Whether `first` follows from criteria or checks whose outcome `second` denies."""
    if first.code == "verdict":
        return second.code in _RISKS and second.values["level"] not in levels_of_linking(first)
    if first.code == "alarm_is_certain":
        return second.code == "verdict" and second.values["level"] in _NO_ALARM
    if first.code == "not_protected":
        return second.code == "recordings_unchanged" and not (
            second.values["unchanged"] or second.values["let_through"]
        )
    if first.code == "self_checks_passed":
        return second.values.get("passed") is False or second.code in ("distrusted", "not_protected")
    return False


def levels_of_linking(finding: Finding) -> tuple[Level, ...]:
    """The levels of linking that a run may have where it has this finding."""
    values = finding.values
    if finding.code == "verdict":
        return LEVELS[: LEVELS.index(cast(Level, values["level"])) + 1]
    if finding.code in ("linking", "enough_speakers"):
        return (cast(Level, values["level"]),)
    if finding.code == "people_linked":
        if values.get("recognized"):
            return ("high",)
        return _ALARM if values["listed"] else LEVELS
    if finding.code == "target_voices":
        return {"misleading": LEVELS[:3], "harmless": LEVELS[3:]}.get(str(values["effect"]), LEVELS)
    if finding.code == "draws":
        return {"none": LEVELS, "harmless": _ALARM, "tried": _NO_ALARM, "misleading": _NO_ALARM}[str(values["effect"])]
    if finding.code == "vector_lengths":
        return LEVELS if values["passed"] else _NO_ALARM
    if finding.code == "own_ids":
        return LEVELS[:3]
    if finding.code == "own_runs":
        return _ALARM if values["shares_draws"] else LEVELS
    return ("low",) if finding.code == "little_voice_left" else LEVELS
