"""A figure of the report: a chart, how to read it, words for those who can't see it, and its data."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.core.files import make_folder, plain, write_text
from veilmeter.core.text import csv_cell
from veilmeter.report.figures import style
from veilmeter.report.figures.typesetting import Typesetting

WIDE = 850  # of a figure that takes the page's width


@dataclass(frozen=True, eq=False)
class Figure:
    """`chart` is Altair's or its finished specification (large ones take seconds to convert), `caption` says how to
    read it and what is good, `alt` replaces it."""

    id: str
    title: str
    caption: str
    alt: str
    chart: Any

    @property
    def spec(self) -> dict[str, Any]:
        chart: dict[str, Any] = plain(
            self.chart if isinstance(self.chart, dict) else style.apply_style(self.chart).to_dict(validate=False)
        )
        chart.get("config", {}).pop("background", None)  # the page's own shows through
        return chart


def save_figures(
    figures: Iterable[Figure],
    folder: str | Path,
    formats: Iterable[str] = style.FORMATS,
    setting: Typesetting | None = None,
) -> None:
    """Every figure as files, and its data as CSV."""
    wanted = tuple(formats)
    for figure in figures:
        chart = figure.chart if isinstance(figure.chart, dict) else style.apply_style(figure.chart)
        style.save(chart, folder, figure.id, wanted, setting)
        write_text(make_folder(folder) / f"{figure.id}.csv", csv_of(figure.spec))


def csv_of(spec: Mapping[str, Any]) -> str:
    """A figure's data; tables with the same columns are one."""
    by_columns: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for table in _tables(spec):
        rows = [row for stored in table for row in _unfold(stored)]
        by_columns.setdefault(tuple(dict.fromkeys(key for row in rows for key in row)), []).extend(rows)
    out = io.StringIO()
    for number, (keys, rows) in enumerate(by_columns.items()):
        out.write("\n" if number else "")
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(keys)
        writer.writerows([csv_cell(row.get(key, "")) for key in keys] for row in rows)
    return out.getvalue()


def _tables(node: Any) -> list[list[dict[str, Any]]]:
    """Every table of data in a specification, in their order."""
    if isinstance(node, list):
        return [table for part in node for table in _tables(part)]
    if not isinstance(node, dict):
        return []
    own = [
        *node.get("datasets", {}).values(),
        node.get("data", {}).get("values") if isinstance(node.get("data"), dict) else None,
    ]
    below = [table for key, part in node.items() if key not in ("datasets", "data") for table in _tables(part)]
    return [rows for rows in own if isinstance(rows, list) and rows] + below


def _unfold(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A table may be stored by columns: lists side by side, and what is the same in every row once."""
    lists = [value for value in row.values() if isinstance(value, list)]
    if not lists:
        return [row]
    return [
        {key: value[at] if isinstance(value, list) else value for key, value in row.items()}
        for at in range(len(lists[0]))
    ]
