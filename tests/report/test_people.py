"""Which channel gives people away, on the page: figures beside their controls, people by pseudonym, and a figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.report.conftest import Opened, serious_violations

from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding
from veilmeter.report import write_report
from veilmeter.report.figures.page import csv_of, section_figures
from veilmeter.report.people import MOST_BY_CHANNEL, channel_rows, channel_table, channels_figure
from veilmeter.results.model import Channel, ChannelPerson, Channels, Results
from veilmeter.results.people import text_floor, text_floor_curve
from veilmeter.results.run_folder import read_results

BITS = {"campplus": (0.4, 3.2, 0.1), "words": (2.1, 2.2, -0.1), "all together": (2.3, 3.4, 0.0)}


def figures(eer: float, bits: float) -> Estimates:
    """Of one recording and of three, as an attacker leaves them."""
    points = [Estimate(name="eer", value=eer, unit="percent", interval=(eer - 2, eer + 2))]
    for length in (3, 1):
        at = {"speakers": 14, "length": length}
        points.append(Estimate(name="linkability", value=10 * bits + length, unit="percent", at=at))
        value = bits + (length - 1)
        points.append(
            Estimate(name="rank_disclosure", value=value, unit="bit", interval=(value - 0.3, value + 0.3), at=at)
        )
    return Estimates(points)


@pytest.fixture(scope="module")
def heard(run: Path) -> Results:
    """Results with channels: words give away more than the voice."""
    results = read_results(run)
    channels = tuple(
        Channel(
            name=name,
            hears={"campplus": "voice", "words": "words"}.get(name, "everything"),
            attacker="adaptive",
            estimates=figures(40, now),
            original=figures(5, before),
            shuffled=figures(50, chance),
        )
        for name, (now, before, chance) in BITS.items()
    )
    people = tuple(
        ChannelPerson(
            speaker=person.speaker,
            channel="words" if number else "",
            bits={name: values[0] + number for name, values in BITS.items()},
            linked=dict.fromkeys(BITS, 25.0),
        )
        for number, person in enumerate(results.people.persons)
    )
    return replace(
        results,
        channels=Channels(
            channels=channels, people=people, finding=Finding.of("channels", channels=("words",), bits=(2.1,))
        ),
    )


def test_the_table_holds_every_control(heard: Results) -> None:
    table = channel_table(heard)
    assert table is not None
    assert table.channels == ("voice (campplus)", "words", "all together")
    assert table.basis == "All figures are for 1 recording each."
    words = dict(table.rows)["words"]
    assert [row.speech for row in words] == ["anonymized", "original speech", "people shuffled"]
    assert [[cell.value for cell in row.cells] for row in words] == [
        ["40.0 %", "22.0 %", "2.100 bit"], ["5.0 %", "23.0 %", "2.200 bit"], ["50.0 %", "0.0 %", "-0.100 bit"],
    ]  # fmt: skip
    assert words[0].cells[2].interval == "[1.800, 2.400]"
    assert table.people[0][1:] == ("–", ("0.4 bit, 25 %", "2.1 bit, 25 %", "2.3 bit, 25 %"))
    assert table.people[1][1] == "words"
    assert heard.channels is not None
    nearly = replace(heard.channels.people[0], bits=dict.fromkeys(BITS, -0.01))
    shown = channel_table(replace(heard, channels=replace(heard.channels, people=(nearly,))))
    assert shown is not None
    assert shown.people[0][2][0] == "0.0 bit, 25 %"
    assert any("book" in note for note in table.notes)
    assert len(channel_rows(heard)) == 3 * 3 * 3


def test_the_figure_shows_bits_of_one_recording(heard: Results) -> None:
    figure = channels_figure(heard)
    assert figure is not None
    figure.chart.to_dict()  # which holds it against Vega-Lite's schema
    lines = [line for line in csv_of(figure.spec).splitlines() if line.startswith("words,")]
    assert [tuple(line.split(",")[1:3]) for line in lines] == [
        ("anonymized", "2.1"), ("original speech", "2.2"), ("people shuffled", "-0.1"),
    ]  # fmt: skip
    assert "words, anonymized: 2.1 bit" in figure.alt


def test_nothing_where_one_channel_was_heard(run: Path) -> None:
    results = read_results(run)
    assert (channel_table(results), channels_figure(results), channel_rows(results)) == (None, None, [])


def test_few_people_are_listed_and_the_rest_is_named(heard: Results) -> None:
    assert heard.channels is not None
    many = tuple(replace(heard.channels.people[0], speaker=f"s{number}") for number in range(MOST_BY_CHANNEL + 5))
    table = channel_table(replace(heard, channels=replace(heard.channels, people=many)))
    assert table is not None
    assert len(table.people) == MOST_BY_CHANNEL
    assert table.left_out == "5 more people are in results.json."


@pytest.mark.parametrize("form", ["html", "md", "json", "pdf"])
def test_no_form_names_people(heard: Results, tmp_path: Path, form: str) -> None:
    if form == "pdf":
        pytest.importorskip("typst")
    text = write_report(heard, tmp_path / f"r.{form}", form=form).read_bytes()
    assert b"speaker0" not in text
    if form in ("html", "md"):
        assert b"Which channel gives people away" in text


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_shows_channels(browser: Any, heard: Results, tmp_path: Path, scheme: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed: make env")
    path = write_report(heard, tmp_path / "r.html")
    with Opened(browser, path, color_scheme=scheme, bypass_csp=True) as opened:
        page = opened.page
        gist = page.locator("#channels .gist").inner_text()
        assert gist.startswith("One recording discloses on average: words 2.1 bit. A perfect voice changer")
        assert page.locator("#channels table.channels tbody").count() == len(BITS)
        assert page.locator("#figure-channels svg").count() == 1
        assert page.locator("#channels .scroller tbody tr").count() == 14
        assert opened.said == []
        assert serious_violations(axe, page) == {}


def test_what_words_alone_leave_is_told(heard: Results) -> None:
    """The floor is the words channel on original speech, whatever the system did."""
    floor = text_floor(heard.channels)
    assert floor is not None
    assert floor.values["linked"].value == 10 * BITS["words"][1] + 1
    assert floor.values["channel"] == "words"
    table = channel_table(heard)
    assert table is not None
    assert "A perfect voice changer would still leave this" in table.sentence
    assert "linked to the right one of 14 people" in table.sentence
    assert [point.value for point in text_floor_curve(heard.channels)] == [10 * 2.2 + 3, 10 * 2.2 + 1]


def test_the_floor_is_chosen_on_what_the_attacker_knows(heard: Results) -> None:
    """Not by the trials: of two kinds of words, the one that does better there may do so by chance."""
    assert heard.channels is not None
    words = next(channel for channel in heard.channels.channels if channel.hears == "words")
    lucky = replace(words, name="word-meaning", original=figures(5, 3.0), original_loss=2.5)
    chosen = replace(words, original_loss=2.0)
    floor = text_floor(replace(heard.channels, channels=(lucky, chosen)))
    assert floor is not None
    assert (floor.values["channel"], floor.values["linked"].value) == ("words", 10 * BITS["words"][1] + 1)
    unknown = replace(heard.channels, channels=(replace(lucky, original_loss=None), chosen))
    floor = text_floor(unknown)
    assert floor is not None
    assert floor.values["channel"] == "words (word-meaning)"


def test_without_words_there_is_no_floor(heard: Results) -> None:
    assert heard.channels is not None
    voices = tuple(channel for channel in heard.channels.channels if channel.hears != "words")
    without = replace(heard.channels, channels=voices)
    assert text_floor(without) is None
    assert text_floor_curve(without) == []
    assert text_floor(None) is None


def test_the_floor_is_a_line_among_the_curves(heard: Results) -> None:
    with_floor, without = (
        section_figures("linking", results, None)[0] for results in (heard, replace(heard, channels=None))
    )
    assert "words alone" in with_floor.caption
    assert "words alone" not in without.caption
    lines = [row for row in with_floor.chart.to_dict()["datasets"].values() for row in row]
    assert {row["value"] for row in lines if row.get("kind") == "words alone"} == {25.0, 23.0}
