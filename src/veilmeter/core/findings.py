"""Findings: what an assessment has to say, as data. `wording` turns them into sentences.

A finding is a code, the values that its sentences are made of, the people it is about, and how serious it is:

>>> finding = Finding.of("recordings_unchanged", unchanged=3, compared=40, let_through=0, severity="problem")
>>> finding.values["unchanged"]
3

**To add one**

1. Declare its code and the types of its values in `wording/codes.py`.
2. Make it where the fact is known: `Finding.of("my_code", unchanged=3, ...)` or `warning(...)`.
3. Write its sentences under the same code in `wording/english/`, in the module of its subject.

Nothing else: results.json stores it, and terminal, page and annex print it by `wording.sentence`. Tests render every
declared code for every audience and check that every code used in the source is declared.

**Privacy rests on the type.** Whatever comes from the user's data is a `Reference` or, for the speakers a finding is
about, listed in `people`; a plain str is always a word of ours, such as an attacker's or a measure's name. Results are
published by replacing or dropping references by their kind (`map_references`); no sentence is ever searched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from typing import Literal

from veilmeter.core.estimate import Estimate

Level = Literal["low", "raised", "high", "unknown"]  # of a risk
PASSING_LEVELS: tuple[Level, ...] = ("low", "raised")  # that a gate may allow: with "high" it would stop nothing
Direction = Literal["overestimated", "underestimated", "either"]  # how privacy may be misjudged
Severity = Literal["information", "warning", "problem"]

# value: of an attribute. run: the name of a run or a system. text: untrusted text, such as another library's message.
ReferenceKind = Literal["speaker", "recording", "file", "attribute", "value", "run", "text"]


@dataclass(frozen=True, slots=True)
class Reference:
    """A name that comes from the user's data; `attribute` is the one that a value belongs to. An empty id is one that
    was left out for publication."""

    kind: ReferenceKind
    id: str
    attribute: str = ""


# In this order a JSON value is read: a whole number stays one, and an estimate has fields that no reference has.
Item = bool | int | float | str | Reference | Estimate
Value = Item | tuple[Item, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """`values` are numbers, words of ours, estimates and references; `people` the ids of the speakers it is about."""

    code: str
    values: Mapping[str, Value] = field(default_factory=dict)
    people: tuple[str, ...] = ()
    severity: Severity = "information"

    @classmethod
    def of(
        cls, code: str, /, *, people: tuple[str, ...] = (), severity: Severity = "information", **values: Value | None
    ) -> Finding:
        """The same with values by name; those that are None are missing.

        >>> Finding.of("copies", copies=2, trials=40, limit=None).values
        {'copies': 2, 'trials': 40}
        """
        return cls(code, _drop_missing(values), people, severity)


def _drop_missing(values: Mapping[str, Value | None]) -> dict[str, Value]:
    """The values that are not None; numbers as Python has them."""
    known = {name: value for name, value in values.items() if value is not None}
    return {name: value.item() if hasattr(value, "item") else value for name, value in known.items()}


def warning(code: str, /, **values: Value | None) -> Finding:
    """A finding that says what changed in the result; values that are None are missing."""
    return Finding(code, _drop_missing(values), severity="warning")


def text_finding(text: str, severity: Severity = "warning") -> Finding:
    """A sentence that has no code, such as one by another package: all of it is untrusted text."""
    return Finding("unclassified", {"text": Reference("text", text)}, severity=severity)


def as_findings(found: Iterable[Finding | str]) -> tuple[Finding, ...]:
    """The report of a plug-in (findings or plain sentences) as findings; each once."""
    return distinct(text_finding(item) if isinstance(item, str) else item for item in found)


def file_reference(path: str | PathLike[str]) -> Reference:
    return Reference("file", str(path))


def first_speakers(names: Sequence[str], most: int = 5) -> tuple[Reference, ...]:
    """The first of many, as examples."""
    return tuple(Reference("speaker", str(name)) for name in names[:most])


# Values that every finding may have: the attacker, the part of a run or the system that it is about. Its sentence
# begins with their name.
ABOUT = ("attacker", "part", "system")


def about(
    finding: Finding, *, attacker: str | None = None, part: str | None = None, system: Reference | None = None
) -> Finding:
    """The finding of one attacker, one part of a run or one system.

    >>> dict(about(Finding("length_left_out", {"length": 3}), attacker="informed").values)
    {'length': 3, 'attacker': 'informed'}
    """
    named = {name: value for name, value in zip(ABOUT, (attacker, part, system), strict=True) if value is not None}
    return replace(finding, values={**finding.values, **named})


def not_possible(error: Exception) -> Finding:
    """Why something could not be measured, in the words of the error, which may name files and people."""
    return warning("not_possible", reason=Reference("text", str(error)))


def group_references(group: Mapping[str, str]) -> tuple[Reference, ...]:
    """The values of attributes that define a group, such as {"gender": "f"}."""
    return tuple(Reference("value", value, attribute) for attribute, value in group.items())


def map_references(
    finding: Finding,
    reference: Callable[[Reference], Reference],
    estimate: Callable[[Estimate], Estimate] = lambda point: point,
) -> Finding:
    """The finding with every reference, and every estimate (whose point may name a value), replaced. People are
    replaced as references to speakers.

    >>> hidden = map_references(text_finding("no such file: x.wav"), lambda reference: replace(reference, id=""))
    >>> hidden.values["text"].id
    ''
    """

    def item(value: Item) -> Item:
        if isinstance(value, Reference):
            return reference(value)
        return estimate(value) if isinstance(value, Estimate) else value

    def map_value(value: Value) -> Value:
        return tuple(map(item, value)) if isinstance(value, tuple) else item(value)

    return replace(
        finding,
        values={name: map_value(value) for name, value in finding.values.items()},
        people=tuple(reference(Reference("speaker", speaker)).id for speaker in finding.people),
    )


def references(finding: Finding) -> tuple[Reference, ...]:
    """Every reference of a finding, without its people."""
    items = [
        item for value in finding.values.values() for item in (value if isinstance(value, tuple) else (value,))
    ]  # fmt: skip
    return tuple(item for item in items if isinstance(item, Reference))


def distinct(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Each finding once, in the order in which they first come up."""
    kept: list[Finding] = []
    for finding in findings:
        if finding not in kept:
            kept.append(finding)
    return tuple(kept)
