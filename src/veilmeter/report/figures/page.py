"""The figures of a page, section by section.

A figure is a chart, how to read it, words for those who can't see it, and its data.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.core.colors import GRAY
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.files import make_folder, plain, write_text
from veilmeter.core.text import csv_cell
from veilmeter.metrics.measure import label_of
from veilmeter.report.figures import legal, style
from veilmeter.report.figures.typesetting import Typesetting
from veilmeter.report.release import extrapolations
from veilmeter.results.model import AttackerResult, Results
from veilmeter.results.people import text_floor_curve
from veilmeter.wording.english.page import recordings_each

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
    by_columns: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for table in _tables(spec):
        unfolded = [row for stored in table for row in _unfold(stored)]
        rows = [{key: value for key, value in row.items() if not key.startswith("_")} for row in unfolded]
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


# --- the technical part, section by section

LN10 = math.log(10)
NOTHING_HEARD = "has heard nothing (perfect privacy)"

WORDS_ALONE = "The dotted line is what the words alone link, which no change of the voice can hide."
_CURVES = {
    "linkability": (
        "Each line is an attacker, each panel an amount of speech per person; bands are 95 % intervals. Further right the attacker "
        "must choose among more people. Lines near the gray dashed one, what guessing achieves, are good; a line that stays high to "
        "the right is not.",
        "people to choose from",
        "recordings linked to the right person",
    ),
    "singling_out": (
        "How often a rule made from one voice fits exactly one of N people. Each solid line is an attacker, the dashed line of the same "
        "color is that attacker's control, which knows nothing about anybody; some controls coincide. A solid line on its dashed one "
        "is good; what lies above it is the risk.",
        "people in the data",
        "rules that isolate one person",
    ),
}  # fmt: skip


def section_figures(section: str, results: Results, limit: float | None) -> list[Figure]:
    """The figures of one section, in their order; none where nothing was measured."""
    curves = {name: attacker.estimates for name, attacker in results.attackers.items()}
    if section == "linking":
        floor, beyond = text_floor_curve(results.channels), extrapolations(results)
        figures = [curves_figure(curves, "linkability", limit=limit, floor=floor, beyond=beyond)]
    elif section == "singling_out":
        figures = [curves_figure(curves, "singling_out")]
    elif section == "disclosure":
        figures = [_profiles(results.attackers)]
    elif section == "inversion":
        figures = [_learning_curve(results)]
    elif section == "verification":
        figures = [_det(results.attackers)]
    else:
        figures = []
    return [figure for figure in figures if figure is not None]


def curves_figure(
    estimates: Mapping[str, Estimates],
    name: str,
    *,
    limit: float | None = None,
    who: str = "attacker",
    floor: Sequence[Estimate] = (),
    beyond: Mapping[str, Sequence[Estimate]] | None = None,
) -> Figure | None:
    """The curves of all attackers (or systems), drawn as in the paper's figure; `floor` is what words alone link,
    `beyond` what a model says of larger numbers of people."""
    curves: dict[str, dict[str, Sequence[Estimate]]] = {
        attacker: {key: points.points(key) for key in (name, "control")} for attacker, points in estimates.items()
    }
    for attacker, points in (beyond or {}).items():
        if attacker in curves:
            curves[attacker][legal.BEYOND] = points
    level = legal.GUESSING if name == "linkability" else legal.CONTROL
    rows = legal.curve_rows(curves, name, levels=(level,), beyond=legal.BEYOND)
    measured = [row for row in rows if row["kind"] == legal.MEASURED]
    if not measured:
        return None
    rows += legal.floor_rows(floor)
    caption, x_title, y_title = _CURVES[name]
    panels = len({row["length"] for row in rows})
    look = legal.Look(
        width=(WIDE - 18 * (panels - 1)) // panels - (30 if panels > 1 else 0),
        height=280,
        x_title=x_title,
        y_title=y_title,
        limit=limit,
        bottom=True,
    )
    shown = [attacker for attacker in curves if any(row["attacker"] == attacker for row in measured)]
    chart = legal.curve_panels(rows, shown, title=recordings_each, look=look)
    title = label_of(name)
    if floor:
        caption += f" {WORDS_ALONE}"
    if limit is not None:
        caption += f" The magenta line is the limit, {limit:g} %."
    if any(row["kind"] == legal.BEYOND for row in rows):
        caption += (
            " Dotted continuations are extrapolated by a model; the fan around them is their 95 % interval. They end where "
            "it leaves more than half of the people open."
        )
    alt_text = f"{title} against the number of people. " + _in_words(measured, rows, who)
    return Figure(name.replace("_", "-"), title, caption, alt_text, chart)


def _in_words(measured: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]], who: str) -> str:
    """Each attacker's figure among all people and with most speech, against its level, for those who can't see it."""
    length, people = max(row["length"] for row in measured), max(row["speakers"] for row in measured)
    parts = []
    for row in measured:
        if (row["length"], row["speakers"]) == (length, people):
            own = [
                level
                for level in rows
                if level["kind"] in (legal.CONTROL, legal.GUESSING)
                and level["attacker"] in ("", row["attacker"])
                and (level["length"], level["speakers"]) == (length, people)
            ]
            against = f" ({own[0]['kind']} {own[0]['value']:.0f} %)" if own else ""
            parts.append(f"{row['attacker']} {row['value']:.0f} %{against}")
    return f"Among {people:,} people with {recordings_each(length)}, by {who}: " + "; ".join(parts) + "."


def _attacker_color(
    order: Sequence[str], title: str | None = None, nobody: str = "", *, shown: Mapping[str, str] | None = None
) -> Any:
    """Attackers keep their color in every figure; gray is the attacker who knows nothing. The legend uses the names in `shown`."""
    import altair as alt

    domain = [*order, nobody] if nobody else list(order)
    return alt.Color(
        "attacker:N",
        title=title,
        sort=domain,
        scale=alt.Scale(domain=domain, range=[*style.hues(order), GRAY][: len(domain)]),
        legend=alt.Legend(
            orient="bottom",
            columns=2 if shown or any("(" in name for name in order) else 6,
            labelExpr=f"({json.dumps(dict(shown))})[datum.label] || datum.label" if shown else "datum.label",
            labelLimit=420,
            symbolType="stroke",
            symbolOpacity=1,
            symbolSize=180,
        ),
    )


def _profiles(attackers: Mapping[str, AttackerResult]) -> Figure | None:
    """ECE profiles of all attackers, with the paper's legend (D_ECE, l_w, tag)."""
    from veilmeter.report.figures.scores import ece_lines

    rows: list[dict[str, Any]] = []
    order: dict[str, str] = {}
    in_words = []
    prior: Mapping[str, Sequence[float]] = {}
    for name, attacker in attackers.items():
        d_ece, l_w = attacker.estimates.single("d_ece"), attacker.estimates.single("l_w")
        if not attacker.profile or d_ece is None or l_w is None:
            continue
        tag = l_w.extra.get("tag", "?")
        prior = prior or attacker.profile
        order[name] = f"{name} ({d_ece.value:.3f} bit, {l_w.value:.2f}, {tag})"
        in_words.append(f"{name} {d_ece.value:.3f} bit, tag {tag}")
        rows += _profile_rows(name, attacker.profile, "pav")
    if not rows:
        return None
    rows += _profile_rows(NOTHING_HEARD, prior, "prior")
    chart = ece_lines(
        rows,
        "attacker",
        _attacker_color(list(order), "attacker (D_ECE, l_w, tag)", NOTHING_HEARD, shown=order),
        dashed=NOTHING_HEARD,
        titles=("what the attacker believed before (log10 of the odds)", "uncertainty that remains (bit)"),
    )
    return Figure(
        "zebra",
        "What a comparison leaves unknown",
        "The dashed curve is an attacker who has heard nothing: perfect privacy. The further a line lies below it, the more an "
        "average comparison gives away; the area between them, taken over all prior beliefs, is D_ECE. Lines on the dashed "
        "curve are good.",
        "ECE profiles: " + "; ".join(in_words) + ".",
        chart.properties(width=WIDE, height=320),
    )  # fmt: skip


def _profile_rows(name: str, profile: Mapping[str, Sequence[float]], curve: str) -> list[dict[str, Any]]:
    pairs = zip(profile["log_odds"], profile[curve], strict=True)
    return [{"attacker": name, "log_odds": round(x / LN10, 4), "ece": round(y, 5)} for x, y in pairs]


def _det(attackers: Mapping[str, AttackerResult]) -> Figure | None:
    """Misses against false alarms of all attackers, on normal-deviate axes."""
    from veilmeter.report.figures.scores import det_lines, det_rows

    rows: list[dict[str, Any]] = []
    in_words = []
    for name, attacker in attackers.items():
        if not attacker.det:
            continue
        eer = attacker.estimates.single("eer")
        if eer is not None:
            in_words.append(f"{name} EER {eer.format_value()} ({eer.method})")
        rows += det_rows(attacker.det["fpr"], attacker.det["fnr"], attacker=name)
    if not rows:
        return None
    order = list(dict.fromkeys(row["attacker"] for row in rows))
    titles = ("false pairs accepted (%)", "true pairs missed (%)")
    return Figure(
        "det",
        "Detection error trade-off",
        "Each line is an attacker who moves their threshold. Towards the lower left they recognize people; lines in the upper "
        "right, through 50 and 50, are guessing. The equal error rate is where a line, or its convex hull, crosses the diagonal.",
        "Detection error trade-off curves: " + "; ".join(in_words) + ".",
        det_lines(rows, "attacker", _attacker_color(order), titles=titles).properties(width=460, height=420),
    )  # fmt: skip


def _learning_curve(results: Results) -> Figure | None:
    from veilmeter.report.figures.inversion import curve

    part = results.parts.get("inversion")
    if part is None:
        return None
    # Chance does not depend on how much the attacker knows; results say it with the finished attack.
    chance = {point.at.get("gender"): point.null for point in part.estimates.points("top1")}
    stored = part.estimates.points("learning_curve") or [
        Estimate.from_json("top1", form, label=label_of("top1")) for form in part.details.get("learning_curve", [])
    ]
    points = [p if p.null is not None else p.with_(null=chance.get(p.at.get("gender"))) for p in stored]
    if len(points) < 2:
        return None
    best = max(points, key=lambda point: point.value)
    return Figure(
        "learning-curve",
        "What undoing it takes",
        "How many recordings the attacker must know in both forms (left to right) to undo the anonymizer for the others. A line "
        "that stays at the dashed one, chance, is good; one that rises early means that a few known pairs suffice. The band is the range "
        "over several draws of the known recordings.",
        f"Top-1 after inversion against the number of known pairs; highest {best.value:.1f} % with {best.at.get('pairs')} pairs.",
        curve(points, "pairs", title="recordings known in both forms", logarithmic=True).properties(
            width=WIDE - 60, height=280, title=""
        ),
    )  # fmt: skip
