"""Among how many people curves are given: round numbers, those that were asked for, or every number there is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

CURVE = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
ALL = "all"
EVERY_SIZE = (0,)
"""In place of numbers of people: every one of them, where a curve is exact and costs nothing more."""


def sizes_given(value: Any) -> Any:
    """What a user gave, with `all` as `EVERY_SIZE`."""
    return EVERY_SIZE if value in (ALL, [ALL], (ALL,)) else value


def drawn_sizes(wanted: Sequence[int]) -> tuple[int, ...]:
    """Those at which people are drawn, which takes its time: round numbers where all were asked for."""
    return () if tuple(wanted) == EVERY_SIZE else tuple(wanted)


def curve_sizes(wanted: Sequence[int], largest: int) -> list[int]:
    """The numbers of people at which a curve is given: those asked for, or round ones, and everybody.

    >>> curve_sizes((), 12), curve_sizes((3, 40), 12), curve_sizes(EVERY_SIZE, 5)
    ([2, 5, 10, 12], [3, 12], [2, 3, 4, 5])
    """
    asked = range(2, largest) if tuple(wanted) == EVERY_SIZE else wanted or CURVE
    base = [n for n in asked if n < largest]
    return [*base, largest] if largest >= 2 else base
