"""How numbers are written, once for terminal, page and annex: `71 [64, 78]`, `2.5`, `3 speakers`, `a, b and c`."""

from __future__ import annotations

import math
from collections.abc import Sequence

from veilmeter.core.estimate import Estimate, format_number
from veilmeter.core.findings import Reference
from veilmeter.wording.citations import cite
from veilmeter.wording.language import is_english, localize, small_word


def count(number: float, singular: str, plural: str = "") -> str:
    """
    >>> count(1, "speaker"), count(1200, "speaker"), count(2, "person", "people")
    ('1 speaker', '1,200 speakers', '2 people')
    """
    one = number == 1 or (not is_english() and number == 0)
    return f"{whole(number)} {singular if one else plural or singular + 's'}"


def whole(number: float) -> str:
    """
    >>> whole(1200)
    '1,200'
    """
    return localize(f"{number:,}")


def roughly(number: int) -> str:
    """With two digits, rounded down.

    >>> roughly(7), roughly(883), roughly(12_345)
    ('7', '880', '12,000')
    """
    unit = 10 ** max(0, len(str(number)) - 2)
    return whole(number // unit * unit)


def span(value: float, interval: tuple[float, float] | None, digits: int = 0) -> str:
    """A value and its 95 % interval, in the one notation that there is.

    >>> span(71.2, (64.4, 78.0)), span(3.25, None, 1), span(2.0, (-0.3, 5.0))
    ('71 [64, 78]', '3.2', '2 [0, 5]')
    """
    shown = localize(_round(value, digits))
    if interval is None:
        return shown
    ends = ", ".join(_round(end, digits) for end in interval)
    return f"{shown} {localize(f'[{ends}]')}"


def _round(value: float, digits: int) -> str:
    return f"{value:z,.{digits}f}" if math.isfinite(value) else format_number(value)  # z: no -0


def of_hundred(estimate: Estimate, of: Estimate | None = None) -> str:
    """A share, of 100, with its interval; where figures are small, with as many digits as they need. `of` is what it
    was computed from, where that is another estimate.

    >>> of_hundred(Estimate(name="x", value=71.0, unit="percent", interval=(64.0, 78.0)))
    '71 [64, 78]'
    >>> of_hundred(Estimate(name="x", value=0.9, unit="percent", interval=(0.4, 1.7)))
    '0.90 [0.40, 1.70]'
    """
    return cite(" ".join(filter(None, hundred_cells(estimate))), of or estimate)


def hundred_cells(estimate: Estimate, digits: int | None = None) -> tuple[str, str]:
    """The same value and interval, for two cells or lines; with so many `digits` where a column is to have the same.

    >>> hundred_cells(Estimate(name="x", value=71.0, unit="percent", interval=(64.0, 78.0)))
    ('71', '[64, 78]')
    """
    digits = hundred_digits(estimate) if digits is None else digits
    shown, _, ends = span(estimate.value, estimate.interval, digits).partition(" ")
    return shown, ends


def hundred_digits(estimate: Estimate) -> int:
    """As many digits as a share of 100 needs."""
    largest = max(map(abs, (estimate.value, *(estimate.interval or ()))))
    return 0 if largest >= 10 else 1 if largest >= 3 else 2


def percent(value: float, digits: int = 0) -> str:
    """
    >>> percent(12.4), percent(0.61, 1)
    ('12 %', '0.6 %')
    """
    return localize(f"{value:.{digits}f} %")


def chance(value: float) -> str:
    """What chance gives, of 100; small figures must not vanish.

    >>> chance(100 / 40), chance(100 / 400), chance(100 / 8), chance(0.0)
    ('2.5', '0.25', '12.5', '0')
    """
    return localize(f"{value:.{2 if value < 10 else 3}g}")


def expected(number: float) -> str:
    """An expected count: one digit where it is small.

    >>> expected(0.42), expected(12.4)
    ('0.4', '12')
    """
    return localize(f"{number:,.0f}" if number >= 2 else f"{number:.1f}")


def full(estimate: Estimate) -> str:
    """An estimate with its unit and interval.

    >>> full(Estimate(name="eer", value=30.94, unit="percent", interval=(28.4, 33.6)))
    '30.9 % [28.4, 33.6]'
    """
    return cite(localize(f"{estimate.format_value()} {estimate.format_interval()}".strip()), estimate)


def figure(estimate: Estimate, digits: int) -> str:
    """Its value and interval without the unit, in so many digits.

    >>> figure(Estimate(name="mos", value=3.21, interval=(3.0, 3.4)), 1)
    '3.2 [3.0, 3.4]'
    """
    return cite(span(estimate.value, estimate.interval, digits), estimate)


def listing(words: Sequence[str], last: str = "and") -> str:
    """
    >>> listing(["a"]), listing(["a", "b", "c"]), listing(["a", "b"], "or")
    ('a', 'a, b and c', 'a or b')
    """
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {small_word(last)} {words[-1]}"


def by_language_code(languages: Sequence[Reference], figures: Sequence[float]) -> list[tuple[str, float]]:
    """The figure of each language; nothing where a language was left out of what may be published."""
    if len(languages) != len(figures):
        return []
    return [(code.id, figure) for code, figure in zip(languages, figures, strict=True)]


def capitalize(sentence: str) -> str:
    """With a capital letter; the rest stays as it is."""
    return sentence[:1].upper() + sentence[1:]
