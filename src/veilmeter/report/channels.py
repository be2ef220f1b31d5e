"""Which channel gives people away: a table of voice, words and rhythm, a figure, and a table of people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from veilmeter.core.colors import GRAY, RED, SKY
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.report.figure import WIDE, Figure
from veilmeter.report.figures import style
from veilmeter.report.rows import Row, row
from veilmeter.results.channels import channel_title, shortest
from veilmeter.results.model import Channel, ChannelPerson, Channels, Results
from veilmeter.wording import sentence
from veilmeter.wording.english import page as words

SECTION = "channels"
MOST_PEOPLE = 100  # rows: those of whom most is told
SPEECH = ("anonymized", "original speech", "people shuffled")
MEASURES = {"eer": "EER", "linkability": "linked to the right person", "rank_disclosure": "disclosed"}
_COLORS = {"anonymized": RED, "original speech": GRAY, "people shuffled": SKY}


@dataclass(frozen=True, slots=True)
class ChannelCell:
    value: str
    interval: str


@dataclass(frozen=True, slots=True)
class ChannelRow:
    """A channel's figures on one kind of speech, in the order of `MEASURES`."""

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
    """For the page; None where people were heard by one extractor only."""
    heard = results.channels
    if heard is None:
        return None
    titles = {channel.name: channel_title(channel) for channel in heard.channels}
    people = heard.people[:MOST_PEOPLE]
    left = len(heard.people) - len(people)
    length = min((shortest(channel.estimates) for channel in heard.channels), default=1)
    return ChannelTable(
        sentence="" if heard.finding is None else sentence(heard.finding, "technical"),
        basis=words.channel_basis(length),
        measures=tuple(MEASURES.values()),
        rows=tuple((titles[channel.name], _rows(channel)) for channel in heard.channels),
        channels=tuple(titles.values()),
        people=tuple(
            (person.speaker, titles.get(person.channel, "–"), _of_person(person, titles)) for person in people
        ),
        left_out=words.channel_people_left_out(left) if left > 0 else "",
        notes=(words.TOPIC,) if any(channel.hears == "words" for channel in heard.channels) else (),
    )


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
    """Each kind of speech that was measured with its points at the fewest recordings, in the order of `MEASURES`."""
    for speech, figures in zip(SPEECH, (channel.estimates, channel.original, channel.shuffled), strict=True):
        points = tuple(_at_shortest(figures, name) for name in MEASURES)
        if any(point is not None for point in points):
            yield speech, points


def _at_shortest(figures: Estimates, name: str) -> Estimate | None:
    length = shortest(figures)
    return next((point for point in figures.points(name) if point.at.get("length", length) == length), None)


def _rows(channel: Channel) -> tuple[ChannelRow, ...]:
    return tuple(
        ChannelRow(
            speech,
            tuple(
                ChannelCell("–", "") if point is None else ChannelCell(point.format_value(), point.format_interval())
                for point in points
            ),
        )
        for speech, points in _kinds(channel)
    )


def _of_person(person: ChannelPerson, titles: dict[str, str]) -> tuple[str, ...]:
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
    kinds = [speech for speech in SPEECH if any(entry["speech"] == speech for entry in rows)]
    base = alt.Chart(style.table(rows)).encode(
        y=alt.Y("channel:N", title=None, sort=order, axis=alt.Axis(labelLimit=260)),
        yOffset=alt.YOffset("speech:N", sort=kinds),
        color=alt.Color(
            "speech:N",
            title=None,
            scale=alt.Scale(domain=kinds, range=[_COLORS[speech] for speech in kinds]),
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
        SECTION,
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
            point = points[list(MEASURES).index("rank_disclosure")]
            if point is not None:
                low, high = point.interval or (point.value, point.value)
                title = channel_title(channel)
                yield {"channel": title, "speech": speech, "bits": point.value, "low": low, "high": high}
