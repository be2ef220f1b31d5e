"""Every code a finding may have, with the names and types of its values: the one list of what can be found.

A type is `int`, `float`, `bool`, `str` (a word of ours), `Estimate`, `Reference`, `tuple[Reference, ...]`,
`tuple[str, ...]` or a `Literal` of words; `... | None` marks a value that may be missing. Tests make findings of these
types, render them for every audience, and look for sentences that contradict each other on one page.

`slot` names what a page can say only once, in one way: of the findings of one slot at most one occurs in a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from veilmeter.core.findings import Finding, Reference, Value


@dataclass(frozen=True, slots=True)
class Declaration:
    """The values of a code by name, each with its type, and the slot it fills."""

    code: str
    values: dict[str, Any] = field(default_factory=dict)
    slot: str = ""

    def fits(self, finding: Finding) -> bool:
        """Whether a finding has the values that its sentences need; one from a newer or an edited file may not."""
        return finding.values.keys() <= self.values.keys() and all(
            _is_a(finding.values[name], wanted) if name in finding.values else is_optional(wanted)
            for name, wanted in self.values.items()
        )


def is_optional(wanted: Any) -> bool:
    return type(None) in get_args(wanted)


def _is_a(value: Value, wanted: Any) -> bool:
    origin, inner = get_origin(wanted), get_args(wanted)
    if origin in (Union, UnionType):
        return any(_is_a(value, member) for member in inner if member is not type(None))
    if origin is Literal:
        return value in inner
    if origin is tuple:
        return isinstance(value, tuple) and all(_is_a(item, inner[0]) for item in value)
    if wanted is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, wanted)


CODES: dict[str, Declaration] = {}


def declare(code: str, *, slot: str = "", **values: Any) -> None:
    if code in CODES:
        raise ValueError(f"{code} is declared twice")
    CODES[code] = Declaration(code, values, slot)


declare("unclassified", text=Reference)
declare("warnings_left_out", count=int)
