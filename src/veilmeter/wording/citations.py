"""Figures in sentences that lead to their evidence: a page collects the estimates that its sentences cite.

Within `citations()`, figures that are made from an estimate carry a mark, which the page turns into a link, and which
`without_marks` removes where there can be none. Elsewhere figures are plain text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from veilmeter.core.estimate import Estimate

_START, _MIDDLE, _END = "\ue000", "\ue001", "\ue002"  # of private use, in no other text
_MARKED = re.compile(f"{_START}([0-9]{{1,6}}){_MIDDLE}([^{_START}{_END}]*){_END}")
_MARKS = re.compile(f"{_START}[0-9]{{1,6}}{_MIDDLE}|[{_START}{_MIDDLE}{_END}]")


@dataclass(frozen=True, slots=True)
class Citation:
    """An estimate that a sentence cites; `system` is the one it belongs to, where a page shows several."""

    estimate: Estimate
    system: str = ""


@dataclass(slots=True)
class Citations:
    """The citations of one page, in the order in which they were first made."""

    made: list[Citation] = field(default_factory=list)
    system: str = ""

    def place(self, estimate: Estimate) -> int:
        citation = Citation(estimate, self.system)
        same = (n for n, other in enumerate(self.made) if other == citation and _who(other) == _who(citation))
        place = next(same, None)
        if place is None:
            self.made.append(citation)
            return len(self.made) - 1
        return place


def _who(citation: Citation) -> str:
    return str(citation.estimate.context.get("attacker", ""))


_CITATIONS: ContextVar[Citations | None] = ContextVar("citations", default=None)


@contextmanager
def citations() -> Iterator[Citations]:
    """Figures that are written within this block are marked, and their estimates collected."""
    collected = Citations()
    before = _CITATIONS.set(collected)
    try:
        yield collected
    finally:
        _CITATIONS.reset(before)


@contextmanager
def of_system(name: str) -> Iterator[None]:
    """Estimates that are cited within this block belong to a system."""
    collected = _CITATIONS.get()
    if collected is None:
        yield
        return
    before, collected.system = collected.system, name
    try:
        yield
    finally:
        collected.system = before


def cite(figure: str, estimate: Estimate) -> str:
    """The figure, with a mark that leads to the estimate where a page collects them.

    >>> point = Estimate(name="eer", value=30.0)
    >>> cite("30 %", point)
    '30 %'
    >>> with citations() as collected:
    ...     marked = cite("30 %", point)
    >>> without_marks(marked), link_marks(marked, lambda place, figure: f"<{place}: {figure}>")
    ('30 %', '<0: 30 %>')
    """
    collected = _CITATIONS.get()
    if collected is None or not figure:
        return figure
    return f"{_START}{collected.place(estimate)}{_MIDDLE}{without_marks(figure)}{_END}"


def link_marks(text: str, link: Callable[[int, str], str]) -> str:
    """The text with every marked figure replaced by what `link` makes of it and of its place among the citations."""
    return without_marks(_MARKED.sub(lambda mark: link(int(mark[1]), mark[2]), text)) if _START in text else text


def without_marks(text: str) -> str:
    return _MARKS.sub("", text) if any(mark in text for mark in (_START, _MIDDLE, _END)) else text
