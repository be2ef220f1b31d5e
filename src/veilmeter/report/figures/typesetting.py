"""How figures are set for print: as wide as a column, in the paper's own font and size."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from veilmeter.core.errors import InputError

POINTS = {"": 1.0, "pt": 1.0, "in": 72.0, "cm": 72 / 2.54, "mm": 72 / 25.4}
USUAL_SIZE = 11.0  # of labels, in points
NARROWEST, WIDEST = 60.0, 3000.0
LEAST_PLOT = 100.0  # points that a plot beside others needs
LEAST_SQUARE = 55.0  # points that a matrix beside others needs, which has no labels of its own
LEAST_SHARE = 0.6  # of the width that plots below a legend need; narrower, and its entries go below each other
LEAST_HEIGHT = 0.6  # of what it was, of plots that are wider than high
LEGEND_ENTRY = 90.0  # points that an entry of a legend takes, about
TITLE_LETTERS = 16  # of a line in the title of a matrix beside others
_DATA = ("data", "datasets")
_ENOUGH = 0.01  # of the width; the rest is scaled
_SVG_SIZE = re.compile(r'width="([0-9.]+)" height="([0-9.]+)"')


@dataclass(frozen=True, slots=True)
class Typesetting:
    """How figures are typeset for print; what is None stays as on the page.

    Parameters
    ----------
    width : str or float, optional
        The width of the whole figure, axes and legend included, as in `"8.6cm"` or in points.
    font : str, optional
        A font family that is installed here.
    font_size : float, optional
        The size of labels, in points.

    Examples
    --------
    >>> round(Typesetting("3.4in", font_size=8).width, 1)
    244.8
    """

    width: float | None = None
    font: str | None = None
    font_size: float | None = None

    def __init__(
        self, width: str | float | None = None, font: str | None = None, font_size: float | None = None
    ) -> None:
        object.__setattr__(self, "width", points_of(width) if isinstance(width, str) else width)
        object.__setattr__(self, "font", font)
        object.__setattr__(self, "font_size", font_size)
        self._check()

    def _check(self) -> None:
        if self.width is not None and not NARROWEST <= self.width <= WIDEST:
            raise InputError(f"a figure can't be {self.width:g} points wide", fix="as in 8.6cm, 3.4in or 245pt")
        if self.font_size is not None and not 2 <= self.font_size <= 40:
            raise InputError(f"a font can't be {self.font_size:g} points high", fix="give 6 to 12")


PAGE = Typesetting()


def points_of(text: str) -> float:
    """A width with its unit in points.

    >>> round(points_of("8.6cm"), 1), points_of("3.5 in"), points_of("245")
    (243.8, 252.0, 245.0)
    """
    parsed = re.fullmatch(r"\s*([0-9.]+)\s*([a-z]*)\s*", text)
    try:
        if parsed is None:
            raise ValueError
        return float(parsed[1]) * POINTS[parsed[2]]
    except (ValueError, KeyError):
        raise InputError(f"not a width: {text!r}", fix="as in 8.6cm, 86mm, 3.4in or 245pt") from None


def typeset(
    spec: Mapping[str, Any], setting: Typesetting, rendered: Callable[[str], str]
) -> tuple[dict[str, Any], float]:
    """The specification in that font and about that width, and the factor by which it is still to be scaled.

    Plots are made narrower or wider, not their text: `rendered` gives the SVG of a specification, whose width is what
    plots, axes and legends take together.
    """
    chart = json.loads(json.dumps(spec))
    if setting.font is not None:
        chart.setdefault("config", {})["font"] = setting.font
    if setting.font_size is not None:
        chart = _with_font_size(chart, setting.font_size / USUAL_SIZE)
    if setting.width is None:
        return chart, 1.0
    most = max(1, int(setting.width // LEGEND_ENTRY))
    chart = _with_columns(chart, most)
    if setting.width < 4 * LEGEND_ENTRY:  # legends below plots and each other instead of side by side
        legends = chart.setdefault("config", {}).setdefault("legend", {})
        legends |= {
            "layout": {"bottom": {"anchor": "start", "direction": "vertical"}},
            "orient": "bottom",
            "columns": most,
        }
        chart = _wrap_titles(chart) if _is_square(chart) else chart
    enough = LEAST_SQUARE if _is_square(chart) else LEAST_PLOT
    factor, wide = _fit(chart, setting.width, rendered)
    if _narrowest(_plots_scaled(chart, factor)) < enough and (stacked := _stack(chart)) != chart:
        chart = stacked  # panels beside each other would have no room: one below the other
        factor, wide = _fit(chart, setting.width, rendered)
    side_by_side = "hconcat" in json.dumps({key: part for key, part in chart.items() if key not in _DATA})
    if not side_by_side and _narrowest(_plots_scaled(chart, factor)) < LEAST_SHARE * setting.width:
        chart = _with_columns(chart, 1)  # a legend with long names would leave the plot no room
        factor, wide = _fit(chart, setting.width, rendered)
    least = enough / _narrowest(chart)
    if factor < min(least, 1.0):  # rather smaller text than no plot
        factor = min(least, 1.0)
        wide = _width(rendered(json.dumps(_plots_scaled(chart, factor))))
    return _plots_scaled(chart, factor), setting.width / wide


def _fit(chart: dict[str, Any], width: float, rendered: Callable[[str], str]) -> tuple[float, float]:
    """The factor of the plots at which the whole is about as wide as wanted, and how wide it then is."""
    factor = 1.0
    wide = _width(rendered(json.dumps(chart)))
    for _ in range(4):
        if abs(wide - width) <= _ENOUGH * width:
            break
        slope = (wide - _width(rendered(json.dumps(_plots_scaled(chart, 0.8 * factor))))) / (0.2 * factor)
        if slope <= 0:  # a legend or a title is what takes the room
            break
        factor = min(max(factor + (width - wide) / slope, 0.1 * factor), 10 * factor)
        wide = _width(rendered(json.dumps(_plots_scaled(chart, factor))))
    return factor, wide


def _with_columns(node: Any, most: int) -> Any:
    """Legends below a plot with at most so many entries beside each other."""
    if isinstance(node, list):
        return [_with_columns(part, most) for part in node]
    if not isinstance(node, dict):
        return node
    below = {key: part if key in _DATA else _with_columns(part, most) for key, part in node.items()}
    if below.get("orient") == "bottom" and below.get("direction") != "vertical":
        below["columns"] = min(int(below.get("columns", most)), most)
    return below


def _is_square(node: Any) -> bool:
    """Whether all plots are as wide as high, like matrices in rows of several."""
    if isinstance(node, list):
        return all(map(_is_square, node))
    if not isinstance(node, dict):
        return True
    own = node.get("width") == node.get("height") if isinstance(node.get("width"), int | float) else True
    return own and all(_is_square(part) for key, part in node.items() if key not in _DATA)


def _wrap_titles(node: Any) -> Any:
    """Titles of small plots beside each other in several lines."""
    if isinstance(node, list):
        return [_wrap_titles(part) for part in node]
    if not isinstance(node, dict):
        return node
    below = {key: part if key in _DATA else _wrap_titles(part) for key, part in node.items()}
    if isinstance(below.get("title"), str) and "width" in below:
        below["title"] = textwrap.wrap(below["title"], TITLE_LETTERS)
    return below


def _narrowest(node: Any) -> float:
    """The width of the narrowest plot."""
    if isinstance(node, list):
        return min(map(_narrowest, node), default=WIDEST)
    if not isinstance(node, dict):
        return WIDEST
    own = node.get("width")
    below = min((_narrowest(part) for key, part in node.items() if key not in _DATA), default=WIDEST)
    return min(below, float(own)) if isinstance(own, int | float) else below


def _stack(node: Any) -> Any:
    """Panels that stood beside each other, one below the other."""
    if isinstance(node, list):
        return [_stack(part) for part in node]
    if not isinstance(node, dict):
        return node
    return {
        "vconcat" if key == "hconcat" else key: part if key in _DATA else _stack(part) for key, part in node.items()
    }


def resize(svg: str, factor: float) -> str:
    """The drawing with another size on paper."""
    if factor == 1.0:
        return svg

    def size(match: re.Match[str]) -> str:
        wide, high = (float(match[number]) * factor for number in (1, 2))
        return f'width="{wide:.2f}" height="{high:.2f}"'

    return _SVG_SIZE.sub(size, svg, count=1)


def _width(svg: str) -> float:
    size = _SVG_SIZE.search(svg)
    assert size is not None
    return float(size[1])


def _plots_scaled(node: Any, factor: float) -> Any:
    """Narrower or wider plots. Flat ones lose less of their height, so that their titles keep their room."""
    if isinstance(node, list):
        return [_plots_scaled(part, factor) for part in node]
    if not isinstance(node, dict):
        return node
    lower = factor if factor >= LEAST_HEIGHT or node.get("width") == node.get("height") else LEAST_HEIGHT
    factors = {"width": factor, "height": lower, "step": factor}
    return {
        key: part * factors[key] if key in factors and isinstance(part, int | float)
        else part if key in _DATA
        else _plots_scaled(part, factor)
        for key, part in node.items()
    }  # fmt: skip


def _with_font_size(node: Any, factor: float) -> Any:
    """Larger or smaller text."""
    if isinstance(node, list):
        return [_with_font_size(part, factor) for part in node]
    if not isinstance(node, dict):
        return node
    return {
        key: part * factor if key.lower().endswith("fontsize") and isinstance(part, int | float)
        else part if key in _DATA
        else _with_font_size(part, factor)
        for key, part in node.items()
    }  # fmt: skip
