"""Recipients: the attackers that each could be, what was not run for it, and what contradicts the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.report.test_annex import chapters_of

from veilmeter.assessment.statements import CAST, Recipient
from veilmeter.attacks.attacker import ATTACKERS, default_attackers
from veilmeter.core.findings import Finding
from veilmeter.report.annex import Chapter
from veilmeter.report.decision import decide
from veilmeter.report.pia import pia
from veilmeter.report.recipients import RecipientTable, fits, recipient_table
from veilmeter.report.rows import linking_of_all
from veilmeter.results.model import Check, Results
from veilmeter.results.people import people
from veilmeter.results.run_folder import read_results
from veilmeter.results.trust import RELEASE
from veilmeter.wording.english.annex import TEXTS


@pytest.fixture(scope="module")
def measured(run: Path) -> Results:
    """Without the check that finds released recordings linked to each other, which tests put in themselves."""
    results = read_results(run)
    return replace(results, checks=tuple(check for check in results.checks if check.name != RELEASE))


def table_of(results: Results, *recipients: dict[str, Any], **annex: str) -> RecipientTable:
    settings = {**results.settings, "recipients": list(recipients), "annex": annex}
    return recipient_table(replace(results, settings=settings))


def keys(table: RecipientTable) -> list[str]:
    return [remark.key.removeprefix("recipients.") for row in table.rows for remark in row.remarks]


def chapter_of(results: Results, **settings: Any) -> Chapter:
    chapters = chapters_of(replace(results, settings={**results.settings, **settings}))
    return next(chapter for chapter in chapters if chapter.title == "Recipients")


def test_more_means_are_never_fewer_attackers() -> None:
    means = ("original_speech", "anonymizer", "labels", "pseudonyms")
    for number in range(2 ** len(means)):
        has = {name: bool(number >> place & 1) for place, name in enumerate(means)}
        less = {name for name, attacker in ATTACKERS.items() if fits(attacker, Recipient(name="a", **has))}
        for name in means:
            more = Recipient(name="a", **{**has, name: True})
            assert less <= {other for other, attacker in ATTACKERS.items() if fits(attacker, more)}


def test_who_has_everything_is_every_attacker_and_who_has_nothing_none() -> None:
    everything = Recipient(name="a", original_speech=True, anonymizer=True, labels=True, pseudonyms=True)
    assert all(fits(attacker, everything) for _, attacker in ATTACKERS.items())
    assert not any(fits(attacker, Recipient(name="a")) for _, attacker in ATTACKERS.items())


def test_the_cast_is_assumed_where_nobody_is_declared(measured: Results) -> None:
    table = recipient_table(measured)
    assert table.assumed
    assert [row.recipient for row in table.rows] == list(CAST)
    figures = {row.recipient.name: row.linking.value for row in table.rows if row.linking}
    assert len(figures) == len(CAST)
    assert figures["public"] <= figures["insider"]


def test_somebody_with_everything_has_the_headlines_figure(measured: Results) -> None:
    linking = linking_of_all(measured)
    worst = recipient_table(measured).worst
    assert linking is not None
    assert worst.linking is not None
    assert worst.linking.value == pytest.approx(linking.estimate.value)
    assert set(worst.attackers) == set(measured.attacks)


def test_a_recipient_counts_with_its_own_list(measured: Results) -> None:
    short, long = (table_of(measured, {"name": "a", "original_speech": True, "candidates": n}).rows[0] for n in (5, 10))
    assert short.linking is not None
    assert long.linking is not None
    assert short.linking.value > long.linking.value
    assert short.linking.guessing == 20
    ignorant = measured.attackers["ignorant"].estimates.points("linkability")
    (at_five,) = (p.value for p in ignorant if p.at == {"speakers": 5, "length": 1})
    assert short.linking.value == pytest.approx(at_five)


def test_recordings_are_put_together_by_those_who_see_pseudonyms(measured: Results) -> None:
    one = table_of(measured, {"name": "a", "original_speech": True}).rows[0].linking
    joined = table_of(measured, {"name": "a", "original_speech": True, "pseudonyms": True}).rows[0].linking
    assert one is not None
    assert joined is not None
    assert one.length == 1
    assert joined.value >= one.value


@pytest.mark.parametrize(
    ("recipient", "found"),
    [
        ({}, ["nobody"]),
        ({"original_speech": True}, []),
        ({"original_speech": True, "candidates": 5000}, ["more_candidates"]),
        ({"original_speech": True, "anonymizer": True}, ["released_run"]),
    ],
)
def test_what_contradicts_the_run_is_found(measured: Results, recipient: dict[str, Any], found: list[str]) -> None:
    assert keys(table_of(measured, {"name": "a", **recipient})) == found


def test_a_release_that_links_itself_needs_no_pseudonyms(measured: Results) -> None:
    linked = Finding.of("release_linked", passed=False, recognized=False, own_voices=False, share=0.9)
    joined = replace(measured, checks=(Check(name=RELEASE, finding=linked, passed=False),))
    table = table_of(joined, {"name": "a", "original_speech": True})
    assert keys(table) == ["joins_anyway"]
    with_pseudonyms = table_of(measured, {"name": "a", "original_speech": True, "pseudonyms": True})
    assert table.rows[0].linking == with_pseudonyms.rows[0].linking


def test_lists_shorter_than_any_that_was_run_are_found(measured: Results) -> None:
    cut = {
        name: replace(attacker, estimates=attacker.estimates.filter(lambda point: point.at.get("speakers", 14) == 14))
        for name, attacker in measured.attackers.items()
    }
    long_only = replace(measured, attackers=cut)
    assert keys(table_of(long_only, {"name": "a", "original_speech": True, "candidates": 6})) == ["fewer_candidates"]


def test_attackers_that_nobody_ran_are_named(measured: Results) -> None:
    few = replace(measured, attackers={name: measured.attackers[name] for name in ("original", "ignorant")})
    row = table_of(few, {"name": "a", "original_speech": True, "anonymizer": True}).rows[0]
    assert row.attackers == ("ignorant",)
    assert {"lazy-informed", "informed", "adaptive", "adaptive-unlabeled"} <= set(row.not_run)
    assert "adaptive-pseudonyms" not in row.not_run
    assert keys(table_of(few, {"name": "a", "original_speech": True, "anonymizer": True})) == [
        "released_run",
        "anonymizer_not_run",
    ]
    chapter = chapter_of(few, recipients=[{"name": "a", "original_speech": True, "anonymizer": True}])
    assert any(item.startswith("Not run, although") and "lazy-informed" in item for item in chapter.items)


def test_attackers_that_no_recipient_could_be_are_named(measured: Results) -> None:
    table = table_of(measured, {"name": "a", "original_speech": True})
    (remark,) = table.remarks
    assert "informed" in str(remark.values["attackers"])
    assert set(default_attackers()) & set(table.rows[0].attackers) == set(table.rows[0].attackers)


def test_the_route_is_stated_with_what_follows(measured: Results) -> None:
    partner = [{"name": "a", "original_speech": True}]
    assert "not stated" in chapter_of(measured).paragraphs[1]
    simplified = chapter_of(measured, recipients=partner, annex={"route": "simplified"}).paragraphs[1]
    assert "the first row applies to every recipient" in simplified
    contextual = chapter_of(measured, recipients=partner, annex={"route": "contextual"}).paragraphs[1]
    assert "these recipients alone" in contextual
    assert all("draft" in text for text in (simplified, contextual))


# --- the individual


def with_one_unprotected(results: Results) -> Results:
    """Everybody is hidden from every attacker, but one person is always linked."""
    unprotected = min(row.speaker for attacker in results.attackers.values() for row in attacker.people)
    attackers = {
        name: replace(
            attacker,
            people=tuple(
                replace(row, conversations=40, linked=100.0 if row.speaker == unprotected else 0.0)
                for row in attacker.people
            ),
        )
        for name, attacker in results.attackers.items()
    }
    shown = replace(results, attackers=attackers)
    return replace(shown, people=people(shown))


def test_one_unprotected_person_is_told_of_wherever_a_mean_is(measured: Results) -> None:
    results = with_one_unprotected(measured)
    chapters = {chapter.title: chapter for chapter in chapters_of(results)}
    (likelihood,) = (
        row for row in rows_of(chapters["Likelihood and severity per criterion"]) if "No Linkage" in row[0]
    )
    assert "The person found most often is linked by" in likelihood[2]
    assert "in 40 of 40 trials" in likelihood[2]
    (signed,) = (row for row in rows_of(chapters["Decision to sign"]) if "No Linkage" in row[0])
    assert "in 40 of 40 trials" in signed[1]
    for row in rows_of(chapters["Recipients"]):
        assert ("Person found most often: 100 [" in row[2]) == (row[2] != TEXTS["recipients.none"]), row
    individuals = rows_of(chapters["Groups and individuals"])
    assert individuals[0][0] == "Everybody"
    assert individuals[-1][0] == "The person found most often"
    assert individuals[-1][2].startswith("100 [")
    form = pia(results, decide(results))
    (answer,) = (answer["data"]["text"] for answer in form["answers"] if answer["reference_to"] == 326)
    assert "in 40 of 40 trials" in answer


def test_somebody_whom_chance_explains_is_not_called_unprotected(measured: Results) -> None:
    hidden = {
        name: replace(
            attacker,
            people=tuple(
                replace(row, conversations=2, linked=50.0 * (n == 0)) for n, row in enumerate(attacker.people)
            ),
        )
        for name, attacker in measured.attackers.items()
    }
    results = replace(measured, attackers=hidden)
    results = replace(results, people=people(results))
    chapters = {chapter.title: chapter for chapter in chapters_of(results)}
    assert rows_of(chapters["Groups and individuals"])[-1][0] == TEXTS["individuals.by_chance"]
    assert "which guessing explains" in rows_of(chapters["Recipients"])[0][2]


def test_every_group_of_the_run_has_a_row(measured: Results) -> None:
    chapters = {chapter.title: chapter for chapter in chapters_of(measured)}
    linking = linking_of_all(measured)
    assert linking is not None
    groups = measured.attackers[linking.attacker].by
    expected = [f"{attribute.capitalize()} {value}" for attribute, values in groups.items() for value in values]
    assert expected
    assert [row[0] for row in rows_of(chapters["Groups and individuals"])][1:-1] == expected


def rows_of(chapter: Chapter) -> tuple[tuple[str, ...], ...]:
    assert chapter.table is not None
    return chapter.table.rows
