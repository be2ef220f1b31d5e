"""The report's figures, made from results.json: a chart, how to read it, and words for those who can't see it."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.core.files import make_folder, plain, write_text
from veilmeter.core.text import csv_cell
from veilmeter.report import view
from veilmeter.report.figures import style
from veilmeter.report.run import Matrices

Results = Mapping[str, Any]
LN10 = math.log(10)


@dataclass(frozen=True, eq=False)
class Figure:
    """A figure of the page: `chart` is Altair's or its finished specification (large ones take seconds to convert),
    `caption` says how to read it and what is good, `alt` replaces it."""

    id: str
    title: str
    caption: str
    alt: str
    chart: Any

    @property
    def spec(self) -> dict[str, Any]:
        made: dict[str, Any] = plain(self.chart if isinstance(self.chart, dict) else style.styled(self.chart).to_dict())
        made.get("config", {}).pop("background", None)  # the page's own shows through
        return made


def criterion_figures(
    section: str, results: Results, matrices: Matrices | None, threshold: float | None
) -> list[Figure]:
    """The figures of one section, in their order; none where nothing was measured."""
    makers: dict[str, Any] = {
        "linking": lambda: [_curves(results, "linkability", threshold)],
        "singling_out": lambda: [_curves(results, "singling_out", None)],
        "disclosure": lambda: [_profiles(results)],
        "inversion": lambda: [_learning_curve(results)],
        "verification": lambda: [_det(results)],
    }
    found = makers[section]() if section in makers else []
    return [figure for figure in found if figure is not None]


def people_figures(results: Results, matrices: Matrices | None) -> list[Figure]:
    """The figures in which a speaker can be chosen."""
    return [figure for figure in (_matrix(results, matrices), _zoo(results)) if figure is not None]


def save_figures(
    results: Results, matrices: Matrices | None, threshold: float | None, folder: str | Path, formats: Iterable[str]
) -> None:
    """Every figure as files, and its data as CSV."""
    sections = ("linking", "singling_out", "disclosure", "similarity", "inversion", "inference", "verification")
    figures = [figure for s in sections for figure in criterion_figures(s, results, matrices, threshold)]
    wanted = tuple(formats)
    for figure in figures + people_figures(results, matrices):
        style.save(
            figure.chart if isinstance(figure.chart, dict) else style.styled(figure.chart), folder, figure.id, wanted
        )
        write_text(make_folder(folder) / f"{figure.id}.csv", _csv(figure.spec))


def _tables(node: Any) -> list[list[dict[str, Any]]]:
    """Every table of data in a specification, in the order in which it stands there."""
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


def _unfolded(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """A table may be stored by columns: lists side by side, and what is the same in every row once."""
    lists = [value for value in row.values() if isinstance(value, list)]
    if not lists:
        return [row]
    return [
        {key: value[at] if isinstance(value, list) else value for key, value in row.items()}
        for at in range(len(lists[0]))
    ]


def _csv(spec: Mapping[str, Any]) -> str:
    """A figure's data; tables with the same columns are one."""
    found: dict[tuple[str, ...], list[Mapping[str, Any]]] = {}
    for table in _tables(spec):
        rows = [row for stored in table for row in _unfolded(stored)]
        found.setdefault(tuple(dict.fromkeys(key for row in rows for key in row)), []).extend(rows)
    out = io.StringIO()
    for number, (keys, rows) in enumerate(found.items()):
        out.write("\n" if number else "")
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(keys)
        writer.writerows([csv_cell(row.get(key, "")) for key in keys] for row in rows)
    return out.getvalue()


_CURVES = {
    "linkability": (
        "Linkability",
        "Each line is an attacker, each panel an amount of speech per person; bands are 95 % intervals. Further right the attacker "
        "must choose among more people. Lines near the gray dashed one, what guessing achieves, are good; a line that stays high to "
        "the right is not.",
        "people to choose from",
        "recordings linked to the right person",
    ),
    "singling_out": (
        "Singling Out",
        "How often a rule made from one voice fits exactly one of N people. Each solid line is an attacker, the dashed line of the same "
        "color is that attacker's control, which knows nothing about anybody; some controls coincide. A solid line on its dashed one "
        "is good; what lies above it is the risk.",
        "people in the data",
        "rules that isolate one person",
    ),
}  # fmt: skip
WIDE = 850  # of a figure that takes the page's width


def _curves(results: Results, name: str, threshold: float | None, who: str = "attacker") -> Figure | None:
    """The curves of all attackers, drawn as in the paper's figure."""
    from veilmeter.report.figures import legal

    beyond = "population_linkability" if name == "linkability" else ""
    names = (name, "control", beyond)
    attackers = {
        attacker: {key: view.listed(key, entry.get("estimates", {}).get(key, [])) for key in names if key}
        for attacker, entry in results.get("attackers", {}).items()
    }
    level = legal.GUESSING if name == "linkability" else legal.CONTROL
    rows = legal.curve_rows(attackers, name, levels=(level,), beyond=beyond)
    measured = [row for row in rows if row["kind"] == legal.MEASURED]
    if not measured:
        return None
    title, caption, x_title, y_title = _CURVES[name]
    panels = len({row["length"] for row in rows})
    look = legal.Look(
        width=(WIDE - 18 * (panels - 1)) // panels - (30 if panels > 1 else 0),
        height=280,
        x_title=x_title,
        y_title=y_title,
        limit=threshold,
        bottom=True,
    )
    shown = [attacker for attacker in attackers if any(row["attacker"] == attacker for row in measured)]
    chart = legal.curve_panels(rows, shown, title=_utterances, look=look)
    alt_text = f"{title} against the number of people. " + _said(measured, rows, who)
    if threshold is not None:
        caption += f" The magenta line is the limit chosen for this assessment, {threshold:g}."
    if any(row["kind"] == legal.BEYOND for row in rows):
        caption += " Dotted continuations are extrapolated by a model and as uncertain as the bars at their points."
    return Figure(name.replace("_", "-"), title, caption, alt_text, chart)


def _utterances(length: int) -> str:
    return f"{length} utterance{'' if length == 1 else 's'} each"


def _said(measured: list[dict[str, Any]], rows: list[dict[str, Any]], who: str) -> str:
    """Each attacker's figure among all people and with most speech, against its level, for those who can't see it."""
    length, people = max(row["length"] for row in measured), max(row["speakers"] for row in measured)
    parts = []
    for row in measured:
        if (row["length"], row["speakers"]) == (length, people):
            own = [
                level
                for level in rows
                if level["kind"] in ("control", "guessing")
                and level["attacker"] in ("", row["attacker"])
                and (level["length"], level["speakers"]) == (length, people)
            ]
            against = f" ({own[0]['kind']} {own[0]['value']:.2f})" if own else ""
            parts.append(f"{row['attacker']} {row['value']:.2f}{against}")
    return f"Among {people:,} people with {_utterances(length)}, by {who}: " + "; ".join(parts) + "."


def _attacker_color(order: list[str], title: str | None = None, nobody: str = "") -> Any:
    """Attackers keep their color in every figure; gray is whoever knows nothing."""
    import altair as alt

    domain = [*order, nobody] if nobody else order
    return alt.Color(
        "attacker:N",
        title=title,
        sort=domain,
        scale=alt.Scale(domain=domain, range=[*style.hues(order), style.GRAY][: len(domain)]),
        legend=alt.Legend(
            orient="bottom",
            columns=2 if any("(" in name for name in order) else 6,
            labelLimit=420,
            symbolType="stroke",
            symbolOpacity=1,
            symbolSize=180,
        ),
    )


def _profiles(results: Results) -> Figure | None:
    """ECE profiles of all attackers, with the paper's legend (D_ECE, l_w, tag)."""
    from veilmeter.report.figures.scores import ece_lines

    rows: list[dict[str, Any]] = []
    order, said = [], []
    nothing = "has heard nothing (perfect privacy)"
    for attacker, entry in results.get("attackers", {}).items():
        profile, found = entry.get("profile"), entry.get("estimates", {})
        if not profile or "d_ece" not in found or "l_w" not in found:
            continue
        d_ece, l_w = view.estimate("d_ece", found["d_ece"]), view.estimate("l_w", found["l_w"])
        name = f"{attacker} ({d_ece.value:.3f} bit, {l_w.value:.2f}, {l_w.extra.get('tag', '?')})"
        order.append(name)
        said.append(f"{attacker} {d_ece.value:.3f} bit, tag {l_w.extra.get('tag', '?')}")
        rows += _profile_rows(name, profile, "pav")
    if not rows:
        return None
    first = next(e["profile"] for e in results["attackers"].values() if e.get("profile"))
    rows += _profile_rows(nothing, first, "prior")
    chart = ece_lines(
        rows,
        "attacker",
        _attacker_color(order, "attacker (D_ECE, l_w, tag)", nothing),
        dashed=nothing,
        titles=("what the attacker believed before (log10 of the odds)", "uncertainty that remains (bit)"),
    )
    return Figure(
        "zebra",
        "What a comparison leaves unknown",
        "The dashed curve is an attacker who has heard nothing: perfect privacy. The further a line lies below it, the more an "
        "average comparison gives away; the area between them, taken over all prior beliefs, is D_ECE. Lines on the dashed "
        "curve are good.",
        "ECE profiles: " + "; ".join(said) + ".",
        chart.properties(width=WIDE, height=320),
    )


def _profile_rows(name: str, profile: Mapping[str, Any], curve: str) -> list[dict[str, Any]]:
    pairs = zip(profile["log_odds"], profile[curve], strict=True)
    return [{"attacker": name, "log_odds": round(x / LN10, 4), "ece": round(y, 5)} for x, y in pairs]


def _det(results: Results) -> Figure | None:
    """Misses against false alarms of all attackers, on normal-deviate axes."""
    from veilmeter.report.figures.scores import det_lines, det_rows

    rows: list[dict[str, Any]] = []
    order, said = [], []
    for attacker, entry in results.get("attackers", {}).items():
        curve = entry.get("det")
        if not curve:
            continue
        order.append(attacker)
        if "eer" in entry.get("estimates", {}):
            said.append(f"{attacker} EER {view.estimate('eer', entry['estimates']['eer']).format_value()}")
        rows += det_rows(curve["fpr"], curve["fnr"], attacker=attacker)
    if not rows:
        return None
    titles = ("false pairs accepted (%)", "true pairs missed (%)")
    return Figure(
        "det",
        "Detection error trade-off",
        "Each line is an attacker who moves their threshold. Towards the lower left they recognize people; lines in the upper "
        "right, through 50 and 50, are guessing. The equal error rate is where a line crosses the diagonal.",
        "Detection error trade-off curves: " + "; ".join(said) + ".",
        det_lines(rows, "attacker", _attacker_color(order), titles=titles).properties(width=460, height=420),
    )


def _matrix(results: Results, matrices: Matrices | None) -> Figure | None:
    """The four quadrants, in which the chosen speaker's row and column are framed."""
    from veilmeter.report.figures.similarity import MOST_CELLS, quadrants, speaker_groups

    if matrices is None or len(matrices.speakers) < 2:
        return None
    spec = style.styled(quadrants(matrices.quadrants, matrices.speakers)).to_dict()
    groups = speaker_groups(matrices.quadrants, matrices.speakers)
    test = "datum.row === groups[chosen] || datum.column === groups[chosen]"
    for line in spec["vconcat"]:
        for cell in line["hconcat"]:
            cell["encoding"]["stroke"] = {"condition": {"test": test, "value": style.RED}, "value": None}
            cell["encoding"]["strokeWidth"] = {"condition": {"test": test, "value": 1.5}, "value": 0}
    spec["params"] = [*spec.get("params", []), {"name": "chosen", "value": ""}, {"name": "groups", "value": groups}]
    found = results.get("similarity", {}).get("estimates", {})
    said = "".join(f" {view.estimate(name, found[name])}." for name in ("deid", "g_vd") if name in found)
    many = len(matrices.speakers) > MOST_CELLS
    return Figure(
        "matrix",
        "Likeness before and after",
        "Upper left: original voices with each other. Lower right: anonymized voices with each other. The other two: original with "
        "anonymized. A bright diagonal there means that people can be recognized, no diagonal is good; those least protected come "
        "first." + (" Speakers are shown in groups of equal size, as there are many." if many else "") + said,
        f"Similarity of {len(matrices.speakers)} speakers in four quadrants.{said}",
        spec,
    )


def _zoo(results: Results) -> Figure | None:
    import altair as alt

    from veilmeter.report.figures.similarity import ANIMAL_COLORS

    rows = [
        {key: person.get(key) for key in ("speaker", "target", "impostor", "animal")}
        for person in results.get("similarity", {}).get("zoo") or []
    ]
    if not rows:
        return None
    chosen = "datum.speaker === chosen"
    chart = (
        alt.Chart(alt.InlineData(rows))
        .mark_circle(opacity=0.9)
        .encode(
            x=alt.X(
                "target:Q",
                title="likeness to oneself, original with anonymized (mean LLR)",
                scale=alt.Scale(zero=False),
            ),
            y=alt.Y("impostor:Q", title="likeness to others (mean LLR)", scale=alt.Scale(zero=False)),
            color=alt.Color(
                "animal:N",
                title=None,
                scale=alt.Scale(domain=list(ANIMAL_COLORS), range=list(ANIMAL_COLORS.values())),
                legend=alt.Legend(orient="bottom", columns=8),
            ),
            size=alt.condition(chosen, alt.value(320), alt.value(80 if len(rows) <= 60 else 30)),
            stroke=alt.condition(chosen, alt.value(style.RED), alt.value(None)),
            strokeWidth=alt.condition(chosen, alt.value(3), alt.value(0)),
            tooltip=[
                "speaker:N",
                "animal:N",
                alt.Tooltip("target:Q", format=".3f"),
                alt.Tooltip("impostor:Q", format=".3f"),
            ],
        )
        .properties(width=WIDE, height=330)
        .add_params(alt.param(name="chosen", value=""))
    )
    counts = {animal: sum(row["animal"] == animal for row in rows) for animal in ANIMAL_COLORS}
    said = ", ".join(f"{count} {animal}" for animal, count in counts.items() if count)
    return Figure(
        "zoo",
        "The zoo",
        "One point a speaker, between original and anonymized voice. To the right are those who still resemble themselves: the "
        "people whom the anonymizer protects least. High up are those who resemble many others. To the left is good. The "
        "glossary explains the animals.",
        f"Zoo plot of {len(rows)} speakers: {said}.",
        chart,
    )


def _learning_curve(results: Results) -> Figure | None:
    from veilmeter.report.figures.inversion import curve

    found = results.get("inversion") or {}
    # Chance does not depend on how much the attacker knows; results say it with the finished attack.
    chance = {one.at.get("gender"): one.null for one in view.listed("top1", found.get("estimates", {}).get("top1", []))}
    points = [
        one if one.null is not None else one.with_(null=chance.get(one.at.get("gender")))
        for one in view.listed("top1", found.get("learning_curve", []))
    ]
    if len(points) < 2:
        return None
    best = max(points, key=lambda one: one.value)
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
    )


def systems_figures(systems: Mapping[str, Results]) -> list[Figure]:
    """Several systems in one figure each: the worst attacker's Linkability, and DeID against G_VD."""
    from veilmeter.report.figures.similarity import scatter

    made = []
    worst = {
        name: {"estimates": results["attackers"][case["attacker"]]["estimates"]}
        for name, results in systems.items()
        if (case := results.get("worst_case", {}).get("linking")) and case["attacker"] in results["attackers"]
    }
    linked = _curves({"attackers": worst}, "linkability", None, "system")
    if linked is not None:
        made.append(
            Figure(
                linked.id,
                "Linkability by the strongest attacker",
                "Each line is a system under the attacker who links most. Lines near the dashed one, what guessing achieves, are good.",
                linked.alt,
                linked.chart,
            )
        )
    points = []
    for name, results in systems.items():
        found = results.get("similarity", {}).get("estimates", {})
        if "deid" in found and "g_vd" in found:
            points.append((name, view.estimate("deid", found["deid"]), view.estimate("g_vd", found["g_vd"])))
    if len(points) > 1:
        said = "; ".join(f"{name}: DeID {d.value:.1f} %, G_VD {g.value:.1f} dB" for name, d, g in points)
        made.append(
            Figure(
                "deid-gvd",
                "Protection against distinctness",
                "To the right people are better hidden, further up the anonymized voices stay more distinct from each other. Which of the "
                "two matters depends on the use.",
                said + ".",
                scatter(points).properties(width=640, height=340),
            )
        )
    return made
