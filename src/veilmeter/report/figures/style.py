"""One look for all figures, on the page and in files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.attacks.attacker import color_of
from veilmeter.core.colors import DARK_PALETTE, PALETTE
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.files import make_folder, plain, whole_file
from veilmeter.report.figures.typesetting import PAGE, Typesetting, resize, typeset

if TYPE_CHECKING:
    import altair as alt

LIMIT = "#D81B60"  # a limit that somebody chose; no attacker has this color
PERCENT = "datum.label + ' %'"  # labels of an axis of percentages
FONT = "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
FILE_FONT = (
    "Liberation Sans, Arial, Helvetica, sans-serif"  # alike in width: files look the same wherever they are opened
)
FORMATS = ("svg", "png", "pdf")


@contextmanager
def without_checks() -> Iterator[None]:
    """Altair holds each part of a chart against its schema whenever parts are joined, which took most of a page's time.
    The specifications of a page are held against it once, by a test. And it copies every option of every part one by
    one, though hardly any is set."""
    from altair.utils import schemapi

    usual = getattr(schemapi, "_deep_copy", None)
    with schemapi.debug_mode(False):
        if usual is None:  # another version, which copies in another way
            yield
            return
        schemapi._deep_copy = _copy_part  # type: ignore[assignment]
        try:
            yield
        finally:
            schemapi._deep_copy = usual


def _copy_part(part: Any, by_reference: set[str]) -> Any:
    """A deep copy of a part of a chart, but for what can't be changed."""
    from altair.utils.schemapi import SchemaBase, Undefined

    def copy_of(held: Any) -> Any:
        return _copy_part(held, by_reference) if isinstance(held, SchemaBase | list | dict) else held

    def options(held: dict[str, Any]) -> dict[str, Any]:
        return {
            name: value if value is Undefined or name in by_reference else copy_of(value)
            for name, value in held.items()
        }

    if isinstance(part, list):
        return [copy_of(held) for held in part]
    if isinstance(part, dict):
        return options(part)
    own = getattr(part, "__deepcopy__", None)
    return own(part) if own else part.__class__(*map(copy_of, part._args), **options(part._kwds))


def table(rows: Sequence[Mapping[str, Any]]) -> alt.InlineData:
    """Data of a chart, as they are. Altair would copy every cell whenever charts are joined, and look at it again
    whenever one is written."""
    data: alt.InlineData = _share_data()(plain(rows))
    return data


@cache
def _share_data() -> Any:
    """A class of Altair's, which is imported where it is used."""
    import altair as alt

    class SharedData(alt.InlineData):
        def __init__(self, rows: list[dict[str, Any]]) -> None:
            dataset: Any = alt.InlineDataset
            super().__init__(values=dataset(rows))

        def __deepcopy__(self, _memo: object) -> SharedData:
            return self

        def to_dict(self, *_arguments: Any, **_options: Any) -> dict[str, Any]:
            return {"values": self._kwds["values"]._args[0]}

    return SharedData


def apply_style(chart: Any) -> Any:
    """The chart with the house's fonts, quiet grid and palette.

    At once and shallow: each of Altair's `configure_...` would copy the chart with all its data.
    """
    import altair as alt

    dressed = chart.copy(deep=False)
    dressed.config = alt.Config(
        font=FONT,
        background="transparent",
        axis=alt.AxisConfig(
            labelFontSize=11, titleFontSize=12, titleFontWeight="normal", gridOpacity=0.35, domainOpacity=0.5
        ),
        legend=alt.LegendConfig(labelFontSize=11, titleFontSize=11, titleFontWeight="normal", symbolStrokeWidth=2.5),
        header=alt.HeaderConfig(labelFontSize=12, titleFontSize=12),
        title=alt.TitleConfig(fontSize=13, fontWeight="normal", anchor="start"),
        view=alt.ViewConfig(strokeOpacity=0.2),
        range=alt.RangeConfig(category=PALETTE),
    )
    return dressed


def hues(names: Sequence[str]) -> list[str]:
    """A color for each name: attackers keep theirs in every figure, other names take what is left of the palette.

    >>> hues(["informed", "mine"])
    ['#D55E00', '#0072B2']
    """
    known = [color_of(name.split(" (")[0]) for name in names]  # a legend may add figures in parentheses
    free = [color for color in PALETTE if color not in known] or list(PALETTE)
    free += DARK_PALETTE if known.count("") > len(free) else ()
    spare = cycle(free)
    return [color or next(spare) for color in known]


# Where a name may be put beside a point: pixels to the right and down, and which end of it is there.
_PLACES = [
    (side * right, down, "left" if side > 0 else "right")
    for right, down in (
        (9, -9),
        (9, 10),
        (14, 0),
        (12, -24),
        (12, 25),
        (14, -39),
        (14, 40),
        (16, -54),
        (16, 55),
        (30, -9),
    )
    for side in (1, -1)
]
_LETTER, _LINE = 6.2, 13.0  # pixels that a letter and a line of names take


def place_names(
    points: Sequence[tuple[str, float, float]], width: float, height: float
) -> list[tuple[float, float, str]]:
    """Where the names of points (name, x, y in pixels) can be read: x, y, and the end of the name that is there. Each
    takes the first place at which it covers no other name and no point; where there is none, the least bad one.

    >>> place_names([("a", 100, 100), ("b", 104, 100)], 600, 300)
    [(91, 91, 'right'), (113, 91, 'left')]
    """
    taken = [(x - 6, y - 6, x + 6, y + 6) for _, x, y in points]
    placed = []
    for name, x, y in points:
        best, least = (x, y, "left"), float("inf")
        for right, down, end in _PLACES:
            left = x + right - (0 if end == "left" else _LETTER * len(name))
            box = (left, y + down - _LINE / 2, left + _LETTER * len(name), y + down + _LINE / 2)
            outside = max(0.0, -box[0], box[2] - width) + max(0.0, -box[1] - _LINE, box[3] - height)
            cost = sum(_overlap(box, other) for other in taken) + 20 * outside
            if cost < least:
                best, least, chosen = (x + right, y + down, end), cost, box
            if cost == 0:
                break
        taken.append(chosen)
        placed.append(best)
    return placed


def _overlap(box: tuple[float, ...], other: tuple[float, ...]) -> float:
    wide = min(box[2], other[2]) - max(box[0], other[0])
    high = min(box[3], other[3]) - max(box[1], other[1])
    return max(0.0, wide) * max(0.0, high)


def _on_white(spec: dict[str, Any]) -> dict[str, Any]:
    return {**spec, "background": "white", "config": {**spec.get("config", {}), "background": "white"}}


def save(
    chart: alt.TopLevelMixin | Mapping[str, Any],
    folder: str | Path,
    name: str,
    formats: Iterable[str] = FORMATS,
    setting: Typesetting | None = None,
) -> list[Path]:
    """The chart, or its specification, as files `folder/name.<format>`; formats are svg, png, pdf, html, json. A file
    that is as wide as asked for has 300 dots per inch as PNG."""
    import vl_convert

    form = plain(chart) if isinstance(chart, Mapping) else plain(chart.to_dict())
    setting = setting or PAGE
    setting = setting if setting.font is not None else replace(setting, font=FILE_FONT)
    form, factor = typeset(form, setting, vl_convert.vegalite_to_svg)
    spec = json.dumps(form)
    pixels = 2.0 if setting.width is None else factor * 300 / 72
    files = []
    for form in formats:
        path = make_folder(folder) / f"{name}.{form}"
        if form == "svg":
            data = resize(vl_convert.vegalite_to_svg(spec), factor).encode()
        elif form == "png":
            # Half-transparent colors on a transparent ground come out wrong in PNG (0.55 of #E69F00 turns olive).
            opaque = json.dumps(_on_white(json.loads(spec)))
            data = vl_convert.vegalite_to_png(opaque, scale=pixels)
        elif form == "pdf":
            data = vl_convert.svg_to_pdf(resize(vl_convert.vegalite_to_svg(spec), factor))
        elif form == "html":
            data = vl_convert.vegalite_to_html(spec, bundle=True).encode()
        elif form == "json":
            data = spec.encode()
        else:
            raise InputError(f"figures can't be written as {form!r}", fix=f"choose among {', '.join(FORMATS)}")
        if not data:
            raise VeilmeterError(f"the figure {name} came out empty")
        with whole_file(path) as temporary:
            temporary.write_bytes(data)
        files.append(path)
    return files
