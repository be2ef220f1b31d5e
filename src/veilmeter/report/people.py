"""People: the table by falling risk, the figures in which a speaker can be chosen (similarity, the zoo), and which channel
gives people away (voice, words or rhythm: two tables and a figure)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from veilmeter.core.colors import GRAY, RED, SKY
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.report.figures import style
from veilmeter.report.figures.page import WIDE, Figure
from veilmeter.report.rows import Row, row
from veilmeter.results.model import Channel, ChannelPerson, Channels, Person, Results
from veilmeter.results.people import channel_title, links_among_all, shortest, text_floor
from veilmeter.results.run_folder import Matrices
from veilmeter.results.trust import HEARD
from veilmeter.wording import sentence
from veilmeter.wording.citations import cite
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
    unheard = {
        speaker for check in results.checks if check.name == HEARD and check.failed for speaker in check.finding.people
    }
    hidden = {key for key, shown in (("gender", genders), ("deid", deids), ("original", unheard)) if not shown}
    columns = [
        Column(key, title, key not in ("speaker", "gender", "original"))
        for key, title in words.people_columns(attackers).items()
        if key not in hidden
    ]
    rows = tuple(_row(person, attackers, genders, deids, unheard) for person in people[:MOST_PEOPLE])
    left = len(people) - len(rows)
    return PeopleTable(
        gist=sentence(results.people.finding, "technical"),
        intro=words.people_introduction(results.people.expected_by_chance if results.people.unprotected else None),
        columns=tuple(columns),
        rows=rows,
        left_out=words.people_left_out(left) if left > 0 else "",
    )


def _row(person: Person, attackers: list[str], genders: bool, deids: bool, unheard: set[str]) -> PersonRow:
    risk = person.risk
    cells = [Cell(person.speaker), _number(risk.value), Cell(risk.format_interval(), risk.value)]
    for name in attackers:
        point = person.by_attacker.get(name)
        cells.append(_number(None if point is None else point.value))
    cells += [Cell(person.gender)] if genders else []
    cells += [_number(person.deid, 1)] if deids else []
    cells += [Cell(words.NOT_RECOGNIZED if person.speaker in unheard else "")] if unheard else []
    return PersonRow(person.speaker, tuple(cells))


def _number(value: float | None, decimals: int = 0) -> Cell:
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
        "glossary explains the animals: they are terms of speaker recognition for how scores behave, not for what people are like.",
        f"Zoo plot of {len(rows)} speakers: {in_words}.",
        chart,
    )  # fmt: skip


# --- channels

CHANNELS = "channels"
MOST_BY_CHANNEL = 100  # rows: those of whom most is told
_SPEECH = ("anonymized", "original speech", "people shuffled")
_MEASURES = {"eer": "EER", "linkability": "linked to the right person", "rank_disclosure": "disclosed"}
_SPEECH_COLORS = {"anonymized": RED, "original speech": GRAY, "people shuffled": SKY}


@dataclass(frozen=True, slots=True)
class ChannelCell:
    value: str
    interval: str


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """A channel's figures on one kind of speech, in the order of `_MEASURES`."""

    speech: str
    cells: tuple[ChannelCell, ...]


@dataclass(frozen=True, slots=True)
class ChannelTable:
    """`rows` by channel; `people` with the channel that tells most of them and a text per channel."""

    sentence: str
    basis: str
    measures: tuple[str, ...]
    rows: tuple[tuple[str, tuple[ChannelRow, ...]], ...]
    channels: tuple[str, ...]
    people: tuple[tuple[str, str, tuple[str, ...]], ...]
    left_out: str
    notes: tuple[str, ...]


def channel_table(results: Results) -> ChannelTable | None:
    """For the page; None where people were heard by one extractor only, and not by their words."""
    heard = results.channels
    if heard is None:
        return None
    titles = {channel.name: channel_title(channel) for channel in heard.channels}
    people = heard.people[:MOST_BY_CHANNEL]
    left = len(heard.people) - len(people)
    length = min((shortest(channel.estimates) for channel in heard.channels), default=1)
    return ChannelTable(
        sentence=channel_sentences(heard),
        basis=words.channel_basis(length),
        measures=tuple(_MEASURES.values()),
        rows=tuple((titles[channel.name], _channel_rows(channel)) for channel in heard.channels),
        channels=tuple(titles.values()),
        people=tuple(
            (person.speaker, titles.get(person.channel, "–"), _person_by_channel(person, titles)) for person in people
        ),
        left_out=words.channel_people_left_out(left) if left > 0 else "",
        notes=(words.TOPIC,) if any(channel.hears == "words" for channel in heard.channels) else (),
    )


def channel_sentences(heard: Channels) -> str:
    """What each channel discloses, and what the words alone would leave of people."""
    found = (heard.finding, text_floor(heard))
    return " ".join(sentence(finding, "technical") for finding in found if finding is not None)


def channel_rows(results: Results) -> list[Row]:
    """The same figures as rows of the technical part."""
    if results.channels is None:
        return []
    return [
        row(f"{channel_title(channel)}, {speech}", point)
        for channel in results.channels.channels
        for speech, points in _kinds(channel)
        for point in points
        if point is not None
    ]


def _kinds(channel: Channel) -> Iterator[tuple[str, tuple[Estimate | None, ...]]]:
    """Each kind of speech that was measured with its points at the fewest recordings, in the order of `_MEASURES`."""
    for speech, figures in zip(_SPEECH, (channel.estimates, channel.original, channel.shuffled), strict=True):
        points = tuple(_at_shortest(figures, name) for name in _MEASURES)
        if any(point is not None for point in points):
            yield speech, points


def _at_shortest(figures: Estimates, name: str) -> Estimate | None:
    if name == "linkability":
        return links_among_all(figures)
    length = shortest(figures)
    return next((point for point in figures.points(name) if point.at.get("length", length) == length), None)


def _channel_rows(channel: Channel) -> tuple[ChannelRow, ...]:
    return tuple(
        ChannelRow(
            speech,
            tuple(
                ChannelCell("–", "")
                if point is None
                else ChannelCell(cite(point.format_value(), point), point.format_interval())
                for point in points
            ),
        )
        for speech, points in _kinds(channel)
    )


def _person_by_channel(person: ChannelPerson, titles: dict[str, str]) -> tuple[str, ...]:
    return tuple(
        words.channel_person(person.bits[name], person.linked.get(name, 0.0)) if name in person.bits else "–"
        for name in titles
    )


def channels_figure(results: Results) -> Figure | None:
    """What each channel discloses of anonymized speech, beside original speech and people dealt at random."""
    if results.channels is None:
        return None
    rows = list(_bits(results.channels))
    if not rows:
        return None
    import altair as alt

    order = list(dict.fromkeys(str(entry["channel"]) for entry in rows))
    kinds = [speech for speech in _SPEECH if any(entry["speech"] == speech for entry in rows)]
    base = alt.Chart(style.table(rows)).encode(
        y=alt.Y("channel:N", title=None, sort=order, axis=alt.Axis(labelLimit=260)),
        yOffset=alt.YOffset("speech:N", sort=kinds),
        color=alt.Color(
            "speech:N",
            title=None,
            scale=alt.Scale(domain=kinds, range=[_SPEECH_COLORS[speech] for speech in kinds]),
            legend=alt.Legend(orient="bottom"),
        ),
    )
    title = "disclosed by one recording, in bits (0: guessing)"
    chart = alt.layer(
        alt.Chart(style.table([{"guessing": 0}]))
        .mark_rule(color=GRAY, strokeDash=[5, 3])
        .encode(x=alt.X("guessing:Q", title=title)),
        base.mark_rule(strokeWidth=2, opacity=0.6).encode(x=alt.X("low:Q", title=title), x2="high:Q"),
        base.mark_point(filled=True, size=80, opacity=1).encode(
            x=alt.X("bits:Q", title=title),
            shape=alt.Shape("speech:N", title=None, scale=alt.Scale(domain=kinds), legend=alt.Legend(orient="bottom")),
            tooltip=["channel:N", "speech:N", alt.Tooltip("bits:Q", format=".2f")],
        ),
    ).properties(width=WIDE - 220, height=alt.Step(16))
    in_words = "; ".join(f"{entry['channel']}, {entry['speech']}: {entry['bits']:.1f} bit" for entry in rows)
    return Figure(
        CHANNELS,
        "What each channel discloses",
        "Points are what a recording tells about who speaks, in bits, lines their 95 % intervals. "
        "Anonymized speech should lie on the dashed line, far from original speech. "
        "Shuffled people, whom nothing distinguishes, should lie on it, too.",
        in_words + ".",
        chart,
    )


def _bits(heard: Channels) -> Iterator[dict[str, Any]]:
    for channel in heard.channels:
        for speech, points in _kinds(channel):
            point = points[list(_MEASURES).index("rank_disclosure")]
            if point is not None:
                low, high = point.interval or (point.value, point.value)
                title = channel_title(channel)
                yield {"channel": title, "speech": speech, "bits": point.value, "low": low, "high": high}
