"""Figures of an inversion attack: the vectors before and after, who was found, and what the attack needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from veilmeter.core.colors import BLUE, GRAY, PURPLE, RED
from veilmeter.report.figures.style import FORMATS, apply_style, save, table
from veilmeter.report.figures.typesetting import Typesetting

if TYPE_CHECKING:
    from veilmeter.attacks.inversion.measures import Evaluation
    from veilmeter.core.estimate import Estimate
    from veilmeter.data.embeddings import Embeddings

MOST_SPEAKERS = 8  # whose vectors can still be told apart by color
SIDE = 280


def projection(evaluation: Evaluation, anonymized: Embeddings, *, most: int = MOST_SPEAKERS) -> Any:
    """Clear and anonymized vectors of a few speakers in the plane of the clear ones, before and after the rotation.

    The plane is the two strongest directions between the clear speakers' means, so that it favors no side; what is
    anonymized is a cross, what is clear a dot. Before: the anonymized vectors without the rotation.
    """
    import altair as alt

    rows: list[dict[str, Any]] = []
    for group in evaluation.groups:
        if group.clear is None:
            continue
        restored = set(group.restored.names)
        names = [name for name in group.clear.names if name in restored][:most]
        plane, middle = _plane(group.clear, names)
        raw = anonymized.of_utterances(list(group.restored.utterances))
        before = _original_axes(raw, group.restored.dimension)
        sides = [("after", "clear", group.clear, group.clear.vectors), ("after", "anonymized", group.restored, None)]
        sides += [("before", "clear", group.clear, group.clear.vectors)]
        if before is not None:
            sides += [("before", "anonymized", group.restored, before)]
        for moment, kind, embeddings, vectors in sides:
            keep = np.isin(embeddings.speakers.astype(str), names)
            points = (embeddings.vectors if vectors is None else vectors)[keep] @ plane - middle
            rows += [
                {"group": group.name or "all", "moment": moment, "voice": kind, "speaker": str(speaker),
                 "x": round(float(x), 4), "y": round(float(y), 4)}
                for speaker, (x, y) in zip(embeddings.speakers[keep], points, strict=True)
            ]  # fmt: skip
    titles = {"before": "anonymized", "after": "after undoing it"}
    panels = []
    for name in dict.fromkeys(row["group"] for row in rows):
        row_panels = []
        for moment in ("before", "after"):
            values = [row for row in rows if row["group"] == name and row["moment"] == moment]
            label = titles[moment] + ("" if name == "all" else f" ({name})")
            row_panels.append(
                alt.Chart(table(values))
                .mark_point(size=28, strokeWidth=1.4, opacity=0.75)
                .encode(
                    x=alt.X("x:Q", title="first direction between clear speakers").scale(zero=False),
                    y=alt.Y("y:Q", title="second direction").scale(zero=False),
                    color=alt.Color("speaker:N", title="speaker", sort=None),
                    shape=alt.Shape("voice:N", title="voice").scale(
                        domain=["clear", "anonymized"], range=["circle", "cross"]
                    ),
                    tooltip=["speaker:N", "voice:N"],
                )
                .properties(width=SIDE, height=SIDE, title=label)
            )
        panels.append(alt.hconcat(*row_panels).resolve_scale(color="shared"))
    return apply_style(alt.vconcat(*panels).resolve_scale(color="independent"))


def speakers(evaluation: Evaluation) -> Any:
    """Each speaker's Top-1, most exposed first, with the level of chance."""
    import altair as alt

    panels = []
    for group in evaluation.groups:
        ranked = sorted(group.whose.per_speaker.items(), key=lambda item: (-item[1], item[0]))
        values = [{"speaker": name, "top1": round(value, 2)} for name, value in ranked]
        height = max(120, 15 * len(values)) if len(values) <= 60 else 900
        axis = alt.Axis(labels=len(values) <= 60, ticks=False)
        bars = (
            alt.Chart(table(values))
            .mark_bar(color=PURPLE, height={"band": 0.75})
            .encode(
                x=alt.X("top1:Q", title="Top-1 (%)").scale(domain=[0, 100]),
                y=alt.Y("speaker:N", title="speaker", sort=None, axis=axis),
                tooltip=["speaker:N", alt.Tooltip("top1:Q", format=".1f")],
            )
        )
        rule = (
            alt.Chart(table([{"chance": round(group.whose.chance(), 2)}]))
            .mark_rule(color=GRAY, strokeDash=[5, 4], strokeWidth=1.5)
            .encode(x="chance:Q")
        )
        title = "speakers found after inversion" + (f" ({group.name})" if group.name else "")
        panels.append((bars + rule).properties(width=300, height=height, title=title))
    return apply_style(alt.hconcat(*panels))


def curve(estimates: Sequence[Estimate], parameter: str, *, title: str, logarithmic: bool = False) -> Any:
    """Top-1 against what the attacker has, the mean of several draws with their range as a band; chance dashed."""
    import altair as alt

    values: list[dict[str, Any]] = [
        {
            "x": float(point.at[parameter]),
            "top1": round(point.value, 3),
            "low": round(float(point.extra.get("lowest", point.value)), 3),
            "high": round(float(point.extra.get("highest", point.value)), 3),
            "group": str(point.at.get("gender", "all")),
        }
        for point in estimates
    ]
    groups = list(dict.fromkeys(value["group"] for value in values))
    colors = [PURPLE] if len(groups) == 1 else [RED, BLUE, PURPLE][: len(groups)]
    scale = alt.Scale(type="log", nice=False, padding=12) if logarithmic else alt.Scale()
    shown = sorted({float(value["x"]) for value in values})
    base = alt.Chart(table(values)).encode(
        x=alt.X("x:Q", title=title, scale=scale, axis=alt.Axis(values=shown, labelOverlap="greedy")),
        color=alt.Color("group:N", title="gender", legend=alt.Legend(symbolOpacity=1)).scale(
            domain=groups, range=colors
        )
        if len(groups) > 1
        else alt.value(PURPLE),
    )
    band = base.mark_area(opacity=0.18).encode(y=alt.Y("low:Q", title="Top-1 (%)"), y2="high:Q")
    line = base.mark_line(point=alt.OverlayMarkDef(size=34, filled=True), strokeWidth=2.2).encode(
        y="top1:Q",
        tooltip=[
            alt.Tooltip("x:Q", title=title, format=",.6~g"),
            *(alt.Tooltip(f"{key}:Q", format=".1f") for key in ("top1", "low", "high")),
        ],
    )
    chance = sorted({round(point.null, 2) for point in estimates if point.null is not None})
    rule = (
        alt.Chart(table([{"chance": level} for level in chance]))
        .mark_rule(color=GRAY, strokeDash=[5, 4])
        .encode(y="chance:Q")
    )
    layers = alt.layer(band, line, rule) if chance else alt.layer(band, line)
    return apply_style(layers.properties(width=420, height=260, title="Top-1 after inversion: mean and range of draws"))


def save_all(
    evaluation: Evaluation,
    estimates: Mapping[str, Any],
    anonymized: Embeddings,
    folder: str | Path,
    formats: Iterable[str] = FORMATS,
    setting: Typesetting | None = None,
) -> list[Path]:
    """All figures that there is something for."""
    files: list[Path] = []
    wanted = tuple(formats)
    if all(group.clear is not None for group in evaluation.groups):
        files += save(projection(evaluation, anonymized), folder, "inversion_projection", wanted, setting)
        files += save(speakers(evaluation), folder, "inversion_speakers", wanted, setting)
    if estimates.get("learning_curve"):
        chart = curve(estimates["learning_curve"], "pairs", title="known pairs", logarithmic=True)
        files += save(chart, folder, "inversion_learning_curve", wanted, setting)
    if estimates.get("label_noise"):
        chart = curve(estimates["label_noise"], "wrong_pairs", title="share of wrong pairs")
        files += save(chart, folder, "inversion_label_noise", wanted, setting)
    return files


def _plane(clear: Embeddings, names: Sequence[str]) -> tuple[Any, Any]:
    means = np.stack([clear.vectors[clear.speakers == name].mean(0) for name in names]).astype(float)
    _, _, vt = np.linalg.svd(means - means.mean(0), full_matrices=False)
    plane = np.zeros((means.shape[1], 2))
    plane[:, : min(2, len(vt))] = vt[:2].T
    return plane, means.mean(0) @ plane


def _original_axes(raw: Embeddings, dimension: int) -> Any:
    """The anonymized vectors as they are: of length 1, in the first directions where the map works on fewer."""
    x = raw.vectors.astype(float)
    if x.shape[1] != dimension:
        x = x - x.mean(0)
        _, _, vt = np.linalg.svd(x, full_matrices=False)
        if len(vt) < dimension:
            return None
        x = x @ vt[:dimension].T
    return x / np.linalg.norm(x, axis=1, keepdims=True)
