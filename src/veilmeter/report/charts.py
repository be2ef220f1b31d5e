"""The report's figures, made from results.json: a chart, how to read it, and words for those who can't see it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.cli.output import csv_cell
from veilmeter.estimate import Estimate
from veilmeter.files import make_folder, plain, write_text
from veilmeter.report import view
from veilmeter.report.figures import style
from veilmeter.report.run import Matrices

Results = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure of the page: `chart` is Altair's, `caption` says how to read it and what is good, `alt` replaces it."""

    id: str
    title: str
    caption: str
    alt: str
    chart: Any

    @property
    def spec(self) -> dict[str, Any]:
        made: dict[str, Any] = plain(json.loads(style.styled(self.chart).to_json()))
        return made


def criterion_figures(
    section: str, results: Results, matrices: Matrices | None, threshold: float | None
) -> list[Figure]:
    """The figures of one section, in their order; none where nothing was measured."""
    makers: dict[str, Any] = {
        "linking": lambda: [_curves(results, "linkability", threshold)],
        "singling_out": lambda: [_curves(results, "singling_out", None)],
    }
    found = makers[section]() if section in makers else []
    return [figure for figure in found if figure is not None]


def people_figures(results: Results, matrices: Matrices | None) -> list[Figure]:
    """The figures in which a speaker can be chosen."""
    return []


def save_figures(
    results: Results, matrices: Matrices | None, threshold: float | None, folder: str | Path, formats: Iterable[str]
) -> None:
    """Every figure as files, and its data as CSV."""
    sections = ("linking", "singling_out", "disclosure", "similarity", "inversion", "inference", "verification")
    figures = [figure for s in sections for figure in criterion_figures(s, results, matrices, threshold)]
    wanted = tuple(formats)
    for figure in figures + people_figures(results, matrices):
        style.save(style.styled(figure.chart), folder, figure.id, wanted)
        write_text(make_folder(folder) / f"{figure.id}.csv", _csv(figure.spec))


def _csv(spec: Mapping[str, Any]) -> str:
    out = io.StringIO()
    for rows in spec.get("datasets", {}).values():
        keys = list(dict.fromkeys(key for row in rows for key in row))
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(keys)
        writer.writerows([csv_cell(row.get(key, "")) for key in keys] for row in rows)
    return out.getvalue()


_CURVES = {
    "linkability": (
        "Linkability",
        "Each line is an attacker, each panel an amount of speech per person. Further right the attacker must choose among more "
        "people. Lines near the dashed one, what guessing achieves, are good; a line that stays high to the right is not.",
        "people to choose from",
        "recordings linked to the right person",
    ),
    "singling_out": (
        "Singling Out",
        "How often a rule made from one voice fits exactly one of N people. Lines on the control, which knows nothing about "
        "anybody, are good; what lies above it is the risk.",
        "people in the data",
        "rules that isolate one person",
    ),
}  # fmt: skip


def _curve_rows(attacker: str, points: list[Estimate], kind: str) -> list[dict[str, Any]]:
    made = []
    for one in points:
        low, high = one.interval or (None, None)
        made.append(
            {
                "attacker": attacker,
                "speakers": one.at.get("speakers"),
                "length": f"{one.at.get('length', 1)} utterance{'' if one.at.get('length', 1) == 1 else 's'} each",
                "value": one.value,
                "low": low,
                "high": high,
                "kind": kind,
            }
        )
    return made


def _curves(results: Results, name: str, threshold: float | None) -> Figure | None:
    import altair as alt

    rows: list[dict[str, Any]] = []
    chance: dict[tuple[Any, Any], float] = {}
    for attacker, entry in results.get("attackers", {}).items():
        found = entry.get("estimates", {})
        points = view.listed(name, found.get(name, []))
        rows += _curve_rows(attacker, points, "measured")
        if name == "linkability":
            rows += _curve_rows(
                attacker, view.listed("population_linkability", found.get("population_linkability", [])), "extrapolated"
            )
            guesses = [(one, one.null) for one in points]
        else:
            guesses = [(one, one.value) for one in view.listed("control", found.get("control", []))]
        for one, guess in guesses:
            if guess is not None:
                chance[one.at.get("length", 1), one.at.get("speakers")] = float(guess)
    if not rows:
        return None
    label = "guessing" if name == "linkability" else "control"
    for (length, speakers), guess in sorted(chance.items()):
        point = Estimate(name=name, value=guess, at={"speakers": speakers, "length": length})
        rows += _curve_rows(label, [point], label)
    title, caption, x_title, y_title = _CURVES[name]
    lengths = list(dict.fromkeys(row["length"] for row in rows))
    colors = style.ATTACKER_COLORS | {label: style.GRAY}
    order = list(dict.fromkeys(row["attacker"] for row in rows))
    width = {1: 640, 2: 310}.get(len(lengths), 210)
    base = alt.Chart(alt.InlineData(rows)).encode(
        x=alt.X("speakers:Q", title=x_title, scale=alt.Scale(type="log"), axis=alt.Axis(format="~s", tickCount=5)),
        color=alt.Color(
            "attacker:N",
            title=None,
            sort=order,
            scale=alt.Scale(domain=order, range=[colors.get(a, style.PALETTE[i % 8]) for i, a in enumerate(order)]),
            legend=alt.Legend(orient="bottom", columns=4),
        ),
    )
    measured = alt.datum.kind != "extrapolated"
    tooltip = [
        alt.Tooltip("attacker:N"),
        alt.Tooltip("speakers:Q", format=","),
        alt.Tooltip("value:Q", format=".3f"),
        alt.Tooltip("low:Q", format=".3f"),
        alt.Tooltip("high:Q", format=".3f"),
        alt.Tooltip("kind:N"),
    ]
    layers = [
        base.mark_area(opacity=0.14).encode(
            y=alt.Y("low:Q", title=y_title, scale=alt.Scale(domain=[0, 1])), y2="high:Q"
        ),
        base.transform_filter(measured)
        .mark_line(strokeWidth=2)
        .encode(
            y="value:Q",
            strokeDash=alt.condition(f"datum.kind === '{label}'", alt.value([4, 3]), alt.value([1, 0])),
        ),
        base.transform_filter("datum.kind === 'extrapolated'")
        .mark_line(strokeWidth=2, strokeDash=[2, 3])
        .encode(y="value:Q"),
        base.mark_point(filled=True, size=28).encode(y="value:Q", tooltip=tooltip),
    ]
    if threshold is not None:
        layers.append(
            alt.Chart(alt.InlineData(rows)).mark_rule(color=style.RED, strokeDash=[6, 3]).encode(y=alt.datum(threshold))
        )
    chart = (
        alt.layer(*layers)
        .properties(width=width, height=260)
        .facet(column=alt.Column("length:N", title=None, sort=lengths), spacing=18)
    )
    worst = max((row for row in rows if row["kind"] == "measured"), key=lambda row: row["value"])
    last = [row for row in rows if row["kind"] == "measured"][-1]
    alt_text = (
        f"{title} against the number of people. Highest: {worst['value']:.2f} for the {worst['attacker']} attacker among "
        f"{worst['speakers']} people with {worst['length']}; at the far right {last['value']:.2f}."
    )
    extra = f" The red line is the limit chosen for this assessment, {threshold:g}." if threshold is not None else ""
    extra += (
        " Dotted continuations are extrapolated by a model and as uncertain as their bands."
        if any(row["kind"] == "extrapolated" for row in rows)
        else ""
    )
    return Figure(name.replace("_", "-"), title, caption + extra, alt_text, chart)
