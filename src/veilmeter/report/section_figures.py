"""The figures of the technical part, section by section."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from veilmeter.core.colors import GRAY
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.metrics.measure import label_of
from veilmeter.report.figure import WIDE, Figure
from veilmeter.report.figures import legal, style
from veilmeter.results.model import AttackerResult, Results
from veilmeter.wording.english.page import recordings_each

LN10 = math.log(10)
NOTHING_HEARD = "has heard nothing (perfect privacy)"

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
        figures = [curves_figure(curves, "linkability", limit=limit)]
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
    estimates: Mapping[str, Estimates], name: str, *, limit: float | None = None, who: str = "attacker"
) -> Figure | None:
    """The curves of all attackers (or systems), drawn as in the paper's figure."""
    beyond = "population_linkability" if name == "linkability" else ""
    measures = [key for key in (name, "control", beyond) if key]
    curves = {attacker: {key: points.points(key) for key in measures} for attacker, points in estimates.items()}
    level = legal.GUESSING if name == "linkability" else legal.CONTROL
    rows = legal.curve_rows(curves, name, levels=(level,), beyond=beyond)
    measured = [row for row in rows if row["kind"] == legal.MEASURED]
    if not measured:
        return None
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
    if limit is not None:
        caption += f" The magenta line is the limit, {limit:g}."
    if any(row["kind"] == legal.BEYOND for row in rows):
        caption += " Dotted continuations are extrapolated by a model and as uncertain as the bars at their points."
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
            against = f" ({own[0]['kind']} {own[0]['value']:.2f})" if own else ""
            parts.append(f"{row['attacker']} {row['value']:.2f}{against}")
    return f"Among {people:,} people with {recordings_each(length)}, by {who}: " + "; ".join(parts) + "."


def _attacker_color(order: Sequence[str], title: str | None = None, nobody: str = "") -> Any:
    """Attackers keep their color in every figure; gray is whoever knows nothing."""
    import altair as alt

    domain = [*order, nobody] if nobody else list(order)
    return alt.Color(
        "attacker:N",
        title=title,
        sort=domain,
        scale=alt.Scale(domain=domain, range=[*style.hues(order), GRAY][: len(domain)]),
        legend=alt.Legend(
            orient="bottom",
            columns=2 if any("(" in name for name in order) else 6,
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
    order, in_words = [], []
    prior: Mapping[str, Sequence[float]] = {}
    for name, attacker in attackers.items():
        d_ece, l_w = attacker.estimates.single("d_ece"), attacker.estimates.single("l_w")
        if not attacker.profile or d_ece is None or l_w is None:
            continue
        tag = l_w.extra.get("tag", "?")
        prior = prior or attacker.profile
        order.append(f"{name} ({d_ece.value:.3f} bit, {l_w.value:.2f}, {tag})")
        in_words.append(f"{name} {d_ece.value:.3f} bit, tag {tag}")
        rows += _profile_rows(order[-1], attacker.profile, "pav")
    if not rows:
        return None
    rows += _profile_rows(NOTHING_HEARD, prior, "prior")
    chart = ece_lines(
        rows,
        "attacker",
        _attacker_color(order, "attacker (D_ECE, l_w, tag)", NOTHING_HEARD),
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
            in_words.append(f"{name} EER {eer.format_value()}")
        rows += det_rows(attacker.det["fpr"], attacker.det["fnr"], attacker=name)
    if not rows:
        return None
    order = list(dict.fromkeys(row["attacker"] for row in rows))
    titles = ("false pairs accepted (%)", "true pairs missed (%)")
    return Figure(
        "det",
        "Detection error trade-off",
        "Each line is an attacker who moves their threshold. Towards the lower left they recognize people; lines in the upper "
        "right, through 50 and 50, are guessing. The equal error rate is where a line crosses the diagonal.",
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
