"""People: the table by falling risk, and the figures in which a speaker can be chosen (similarity, the zoo)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from veilmeter.core.colors import RED
from veilmeter.report.figure import WIDE, Figure
from veilmeter.report.figures import style
from veilmeter.results.model import Person, Results
from veilmeter.results.run_folder import Matrices
from veilmeter.wording import sentence
from veilmeter.wording.english import page as words

MOST_PEOPLE = 1000  # rows; more would only slow the page down


@dataclass(frozen=True, slots=True)
class Column:
    key: str
    title: str
    number: bool


@dataclass(frozen=True, slots=True)
class Cell:
    """`value` is what a column of numbers is sorted by; None in columns of text, empty where there is none."""

    text: str
    value: float | str | None = None


@dataclass(frozen=True, slots=True)
class PersonRow:
    speaker: str
    cells: tuple[Cell, ...]


@dataclass(frozen=True, slots=True)
class PeopleTable:
    gist: str
    intro: str
    columns: tuple[Column, ...]
    rows: tuple[PersonRow, ...]
    left_out: str


def people_table(results: Results) -> PeopleTable:
    people = results.people.persons
    attackers = [name for name in results.attackers if any(name in person.by_attacker for person in people)]
    genders = any(person.gender for person in people)
    deids = any(person.deid is not None for person in people)
    hidden = {*(() if genders else ("gender",)), *(() if deids else ("deid",))}
    columns = [
        Column(key, title, key not in ("speaker", "gender"))
        for key, title in words.people_columns(attackers).items()
        if key not in hidden
    ]
    rows = tuple(_row(person, attackers, genders, deids) for person in people[:MOST_PEOPLE])
    left = len(people) - len(rows)
    return PeopleTable(
        gist=sentence(results.people.finding, "technical"),
        intro=words.people_introduction(results.people.expected_by_chance if results.people.unprotected else None),
        columns=tuple(columns),
        rows=rows,
        left_out=words.people_left_out(left) if left > 0 else "",
    )


def _row(person: Person, attackers: list[str], genders: bool, deids: bool) -> PersonRow:
    risk = person.risk
    cells = [Cell(person.speaker), _number(risk.value), Cell(risk.format_interval(), risk.value)]
    for name in attackers:
        point = person.by_attacker.get(name)
        cells.append(_number(None if point is None else point.value))
    cells += [Cell(person.gender)] if genders else []
    cells += [_number(person.deid, 1)] if deids else []
    return PersonRow(person.speaker, tuple(cells))


def _number(value: float | None, decimals: int = 2) -> Cell:
    return Cell("", "") if value is None else Cell(f"{value:.{decimals}f}", value)


def people_figures(results: Results, matrices: Matrices | None) -> list[Figure]:
    return [figure for figure in (_matrix(results, matrices), _zoo(results)) if figure is not None]


def _matrix(results: Results, matrices: Matrices | None) -> Figure | None:
    """The four quadrants, in which the chosen speaker's row and column are framed."""
    from veilmeter.report.figures.similarity import MOST_CELLS, quadrants, speaker_groups

    if matrices is None or len(matrices.speakers) < 2:
        return None
    spec = style.apply_style(quadrants(matrices.quadrants, matrices.speakers)).to_dict(validate=False)
    groups = speaker_groups(matrices.quadrants, matrices.speakers)
    test = "datum.row === groups[chosen] || datum.column === groups[chosen]"
    for line in spec["vconcat"]:
        for cell in line["hconcat"]:
            cell["encoding"]["stroke"] = {"condition": {"test": test, "value": RED}, "value": None}
            cell["encoding"]["strokeWidth"] = {"condition": {"test": test, "value": 1.5}, "value": 0}
    spec["params"] = [*spec.get("params", []), {"name": "chosen", "value": ""}, {"name": "groups", "value": groups}]
    figures = [results.part("similarity").single(name) for name in ("deid", "g_vd")]
    in_words = "".join(f" {figure}." for figure in figures if figure is not None)
    many = len(matrices.speakers) > MOST_CELLS
    return Figure(
        "matrix",
        "Similarity before and after",
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
            stroke=alt.condition(chosen, alt.value(RED), alt.value(None)),
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
