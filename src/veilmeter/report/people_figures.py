"""The figures in which a speaker can be chosen: the matrix of likeness and the zoo."""

from __future__ import annotations

from typing import Any

from veilmeter.report.figure import WIDE, Figure
from veilmeter.report.figures import style
from veilmeter.report.source import Matrices
from veilmeter.results.model import Results


def people_figures(results: Results, matrices: Matrices | None) -> list[Figure]:
    return [figure for figure in (_matrix(results, matrices), _zoo(results)) if figure is not None]


def _matrix(results: Results, matrices: Matrices | None) -> Figure | None:
    """The four quadrants, in which the chosen speaker's row and column are framed."""
    from veilmeter.report.figures.similarity import MOST_CELLS, quadrants, speaker_groups

    if matrices is None or len(matrices.speakers) < 2:
        return None
    spec = style.styled(quadrants(matrices.quadrants, matrices.speakers)).to_dict(validate=False)
    groups = speaker_groups(matrices.quadrants, matrices.speakers)
    test = "datum.row === groups[chosen] || datum.column === groups[chosen]"
    for line in spec["vconcat"]:
        for cell in line["hconcat"]:
            cell["encoding"]["stroke"] = {"condition": {"test": test, "value": style.RED}, "value": None}
            cell["encoding"]["strokeWidth"] = {"condition": {"test": test, "value": 1.5}, "value": 0}
    spec["params"] = [*spec.get("params", []), {"name": "chosen", "value": ""}, {"name": "groups", "value": groups}]
    figures = [results.part("similarity").single(name) for name in ("deid", "g_vd")]
    in_words = "".join(f" {figure}." for figure in figures if figure is not None)
    many = len(matrices.speakers) > MOST_CELLS
    return Figure(
        "matrix",
        "Likeness before and after",
        "Upper left: original voices with each other. Lower right: anonymized voices with each other. The other two: original with "
        "anonymized. A bright diagonal there means that people can be recognized, no diagonal is good; those least protected come "
        "first." + (" Speakers are shown in groups of equal size, as there are many." if many else "") + in_words,
        f"Similarity of {len(matrices.speakers)} speakers in four quadrants.{in_words}",
        spec,
    )  # fmt: skip


def _zoo(results: Results) -> Figure | None:
    import altair as alt

    from veilmeter.report.figures.similarity import ANIMAL_COLORS

    part = results.parts.get("similarity")
    points = list(part.details.get("zoo") or []) if part else []
    rows: list[dict[str, Any]] = [
        {key: point.get(key) for key in ("speaker", "target", "impostor", "animal")} for point in points
    ]
    if not rows:
        return None
    chosen = "datum.speaker === chosen"
    chart = (
        alt.Chart(style.table(rows))
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
            tooltip=["speaker:N", "animal:N", alt.Tooltip("target:Q", format=".3f"),
                     alt.Tooltip("impostor:Q", format=".3f")],
        )
        .properties(width=WIDE, height=330)
        .add_params(alt.param(name="chosen", value=""))
    )  # fmt: skip
    counts = {animal: sum(row["animal"] == animal for row in rows) for animal in ANIMAL_COLORS}
    in_words = ", ".join(f"{count} {animal}" for animal, count in counts.items() if count)
    return Figure(
        "zoo",
        "The zoo",
        "One point per speaker, between original and anonymized voice. To the right are those who still resemble themselves: the "
        "people whom the anonymizer protects least. High up are those who resemble many others. To the left is good. The "
        "glossary explains the animals.",
        f"Zoo plot of {len(rows)} speakers: {in_words}.",
        chart,
    )  # fmt: skip
