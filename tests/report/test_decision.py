"""What the first page says, sentence by sentence."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from tests.results.sample_results import attacker, link, sample

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding, Reference, about, text_finding
from veilmeter.report.advice import advice, without
from veilmeter.report.annex import annex
from veilmeter.report.decision import Dots, anonymizer_words, decide, limit_finding, masthead, reliance
from veilmeter.report.html import CHOSEN, parameters, release_data, use_notes
from veilmeter.report.public import Names, public_results
from veilmeter.report.release import curves_of, extrapolations, release_of
from veilmeter.report.rows import criterion_row, linking_of_all
from veilmeter.results import trust
from veilmeter.results.criteria import inference_criterion, linking_finding
from veilmeter.results.model import AttackerResult, Check, Criterion, Input, LinkedPerson, Part, Results
from veilmeter.results.run_folder import read_results
from veilmeter.wording import sentence
from veilmeter.wording.english.decision import REMEDIES
from veilmeter.wording.english.page import CHECKS, STRONGEST_OF_ALL


@pytest.fixture
def results(run: Path) -> Results:
    return read_results(run)


def with_checks(*checks: Check) -> Results:
    base = sample()
    return replace(base, checks=checks, verdict=replace(base.verdict, trustworthy=not any(c.failed for c in checks)))


def test_passing_its_checks_is_not_said_to_be_safe() -> None:
    passed = Check(name="a", finding=text_finding(""), passed=True)
    unmade = Check(name="b", finding=text_finding("Not known."), passed=None)
    text = sentence(reliance(with_checks(passed, unmade, replace(unmade, name="c", applies=False))), "lay")
    assert text.startswith("The one check that could be made passed; 1 could not be made.")
    assert "This does not mean that the release is safe" in text


def test_a_failed_check_is_counted_and_says_which_way_it_misleads() -> None:
    failed = Check(name=trust.ENOUGH, finding=text_finding("Too few."), passed=False)
    results = with_checks(
        failed,
        Check(name="b", finding=text_finding(""), passed=None),
        Check(name="c", finding=text_finding(""), passed=True),
    )
    assert sentence(reliance(results)) == "Do not rely on this result yet: 1 of 2 self-checks failed."
    decision = decide(results)
    assert [row.state for row in decision.checks] == ["failed", "open", "passed"]
    assert decision.checks[0].meaning == "The real risk may be lower or higher than these figures."
    assert decision.advice[0].text.startswith("Assess more people")


def release_results() -> Results:
    """Twenty people measured, a model to 1,000."""
    points = [link(80.0, speakers=5), link(40.0, speakers=20, low=30.0, high=50.0)]
    points += [link(90.0, speakers=20, length=3, low=80.0, high=95.0)]
    far = link(10.0, speakers=1000, low=2.0, high=30.0)
    model = Estimate(name="population_linkability", value=10.0, unit="percent", interval=(2.0, 30.0), at=far.at)
    return replace(sample(), attackers={"ignorant": attacker("ignorant", *points, model)})


def test_people_found_are_exact_where_measured_and_marked_beyond() -> None:
    results = release_results()
    release = release_of(results, people=1200, candidates=20)
    assert release is not None
    assert (release.curve.length, release.share.basis) == (3, "measured")  # the worse of the two lengths
    assert release.expected == pytest.approx((18, 16, 19))  # twenty candidates: no more than twenty can be found
    curve = next(curve for curve in curves_of(results) if curve.length == 1)
    assert curve.at(5).value == pytest.approx(0.8)
    assert curve.at(10).basis == "measured"
    assert 0.4 < curve.at(10).value < 0.8
    assert (curve.at(1000).value, curve.at(1000).basis) == (pytest.approx(0.1), "model")
    assert 0.1 < curve.at(100).value < 0.4
    assert (curve.at(10**6).value, curve.at(10**6).basis) == (pytest.approx(0.1), "beyond")
    assert curve.at(2).value > 0.8
    grid = curve.grid()
    assert all(first.value >= last.value - 1e-12 for first, last in pairwise(grid))
    for share in grid:
        assert share == curve.at(share.candidates)


@pytest.mark.parametrize("numbers", [{"people": 0}, {"candidates": 1}])
def test_numbers_that_are_too_small_are_refused(numbers: dict[str, int]) -> None:
    with pytest.raises(InputError, match="must be at least"):
        release_of(sample(), **numbers)


def test_the_sentence_counts_people() -> None:
    decision = decide(release_results(), people=1200, candidates=20)
    assert decision.sentence == (
        "In a release of 1,200 people, about 18 [16, 19] of the 20 people that the attacker looks for would be found by "
        "someone who does not know the speech was anonymized, with a list of 20 candidates."
    )  # fmt: skip
    assert "Guessing would find 1." in decision.detail


def test_dots_are_full_likely_possible_and_empty() -> None:
    states = Dots("", 40.2, 30.0, 50.4, "").states
    assert [states.count(name) for name in ("full", "likely", "possible", "empty")] == [30, 10, 10, 50]


def test_the_figure_of_singling_out_is_the_one_its_sentence_explains(results: Results) -> None:
    row = criterion_row(results, "singling_out")
    assert row.measure.startswith("Singling Out")
    assert f"In {float(row.figure.split()[0]):.0f} [" in row.sentence
    assert f"{float(row.guessing):.0f}." in row.sentence


def test_an_attribute_is_named_beside_its_figure() -> None:
    points = [
        Estimate(name="inference", value=97.5, unit="percent", null=50.0, at={"attribute": "gender"}),
        Estimate(name="inference", value=29.2, unit="percent", null=20.0, at={"attribute": "accent"}),
    ]
    results = replace(sample(), parts={"inference": Part(name="inference", estimates=Estimates(points))})
    criterion = inference_criterion(results, points[0], "high")
    row = criterion_row(replace(results, criteria={"inference": criterion}), "inference")
    assert row.title == "Inferring gender"
    assert row.sentence == (
        "Gender is inferred correctly for 98 of 100 recordings; guessing gives 50. Accent: 29 (guessing 20)."
    )


def test_a_limit_is_called_chosen_beforehand_only_if_the_settings_have_it() -> None:
    results = sample()

    def limit_sentence(results: Results, named: float | None) -> str:
        found = limit_finding(results, named)
        return "" if found is None else sentence(found, "lay")

    assert "that was named for this report" in limit_sentence(results, 9.0)
    chosen = replace(results, settings={**results.settings, "threshold": 9.0})
    assert "that was chosen before this assessment" in limit_sentence(chosen, 9.0)
    assert limit_sentence(chosen, None) == limit_sentence(chosen, 9.0)
    assert "that was named for this report" in limit_sentence(chosen, 20.0)
    assert limit_sentence(results, None) == ""


def test_advice_follows_from_the_figures() -> None:
    short, long = link(30.0, low=20.0, high=40.0), link(90.0, length=3, low=85.0, high=95.0)
    informed = attacker("lazy-informed", short, long)
    ignorant = attacker("ignorant", link(10.0, length=3), link(8.0))
    linking = Criterion(name="linking", level="high", finding=text_finding(""), estimate=long, attacker="lazy-informed")
    results = replace(
        sample(), attackers={"ignorant": ignorant, "lazy-informed": informed}, criteria={"linking": linking}, checks=()
    )
    texts = [sentence(item.action) for item in advice(results)]
    assert "Release at most one recording per person." in texts
    assert any("new voices that are less similar to the original ones" in text for text in texts)
    verdict = replace(results.verdict, remarks=(Finding("one_voice_per_speaker"),))
    texts_of_one_voice = [sentence(item.action) for item in advice(replace(results, verdict=verdict))]
    assert any(text.startswith("Draw a new voice for every recording") for text in texts_of_one_voice)
    assert not any(text.startswith("Use a stronger anonymizer") for text in texts)
    strong = replace(
        results, attackers={"ignorant": attacker("ignorant", link(80.0, length=3)), "lazy-informed": informed}
    )
    assert any(item.action.code == "advice_stronger_anonymizer" for item in advice(strong))
    isolated = {**strong.criteria, "singling_out": replace(linking, name="singling_out")}
    codes = [item.action.code for item in advice(replace(strong, criteria=isolated))]
    assert "advice_less_similar_voices" not in codes  # which would say the same in other words
    calm = replace(results, criteria={"linking": replace(linking, level="low")})
    assert [item.action.code for item in advice(calm)] == ["advice_assess_again"]


def test_the_annex_has_a_line_for_every_attacker_and_criterion(results: Results) -> None:
    chapters = {chapter.title: chapter for chapter in annex(results, decide(results))}
    by_attacker = chapters["Likelihood and severity per attacker"].table
    assert by_attacker is not None
    assert len(by_attacker.rows) == len(results.attacks)
    assert all(row[-1] == "" for row in by_attacker.rows)  # severity is for those who sign
    by_criterion = chapters["Likelihood and severity per criterion"].table
    assert by_criterion is not None
    assert len(by_criterion.rows) >= 3
    assert chapters["Residual risk"].items


def test_parameters_that_were_not_given_are_left_out(results: Results) -> None:
    shown = dict(parameters(results))
    assert all(value not in ("", "None", "[]", "{}") for value in shown.values())
    assert shown["lengths"] == "1, 3"


def test_chance_stands_in_the_learning_curve() -> None:
    from veilmeter.report.figures.page import section_figures

    top1 = Estimates([Estimate(name="top1", value=30, unit="percent", null=5, at={"gender": "f"})])
    points = [
        Estimate(name="top1", value=value, unit="percent", at={"gender": "f", "pairs": pairs}).to_json()
        for pairs, value in ((5, 10.0), (10, 20.0))
    ]
    part = Part(name="inversion", estimates=top1, details={"learning_curve": points})
    (figure,) = section_figures("inversion", replace(sample(), parts={"inversion": part}), None)
    assert [{"chance": 5.0}] in figure.spec["datasets"].values()


def test_use_is_said_in_plain_words() -> None:
    points = [
        Estimate(name="wer", value=12.0, unit="percent", interval=(9.0, 15.0)),
        Estimate(name="dnsmos_bak", value=3.0),
        Estimate(name="warmth", label="warmth", value=2.0),
        Estimate(name="pitch_correlation", value=0.61, interval=(0.54, 0.67), null=0.6),
    ]
    before = Estimates([Estimate(name="wer", value=4.0, unit="percent")])
    part = Part(name="utility", estimates=Estimates(points), reference=before)
    assert decide(replace(sample(), parts={"utility": part})).use == (
        "Of 100 words, a speech recognizer gets 12 [9, 15] wrong (original speech: 4).",
        "Warmth: 2.0.",
        "Likeness of the melody to the original, at most 1: 0.61 [0.54, 0.67] (unrelated recordings: 0.60).",
    )
    assert decide(sample()).use == (sentence(Finding("use_not_measured")),)


def test_the_masthead_names_the_anonymizer_and_who_assessed_it() -> None:
    results = sample()
    speech = Input(role="anonymized", kind="corpus", path="", sha256="", speakers=60, utterances=480, hours=2.05)
    assert masthead(replace(results, inputs={"anonymized": speech}), "2026-11-16") == (
        "60 people, 480 recordings, 2 hours of speech",
        "Anonymizer: not named",
        f"Assessed on {results.protocol.trial_speakers} of them on 2026-11-16",
        f"veilmeter {results.version}",
    )
    known = {"anonymizer": "mcadams", "anonymizer_version": "1", "anonymizer_parameters": {"alpha": 0.8}}
    made_here = replace(results, inputs={"anonymized": replace(speech, details=known)})
    assert anonymizer_words(made_here) == "mcadams, version 1 (alpha 0.8)"
    named = replace(made_here, settings={**results.settings, "system_name": "acme 2.4", "assessor": "the privacy team"})
    assert "Anonymizer: acme 2.4" in masthead(named)
    assert masthead(named, "2026-11-16")[2].endswith("on 2026-11-16 by the privacy team")


def test_what_was_not_tested_is_said_in_plain_words() -> None:
    reasons = [about(Finding("no_similar_speech"), attacker="semi-informed")]
    reasons += [text_finding(f"thing {number}: not asked for") for number in range(3)]
    results = replace(sample(), verdict=replace(sample().verdict, not_tested=tuple(reasons)))
    first, second, more, *never = decide(results).not_tested
    assert first == (
        "Someone who has a similar anonymizer and trains a recognizer on its output (semi-informed): "
        "no speech anonymized by a similar system was given."
    )
    assert (second, more) == ("Thing 0: not asked for.", "2 more, listed in the annex.")
    assert len(never) == 2


@pytest.mark.parametrize(
    ("first", "further", "unheard"),
    [
        ("campplus", [], "habits of speech"),
        ("campplus", ["words"], "habits of speech (pace and pauses, melody)"),
        ("words:corpus", ["durations"], "habits of speech (melody)"),
        ("campplus", ["rhythm"], "habits of speech (choice of words)"),
        ("campplus", ["word-style", "rhythm-level-free"], ""),
    ],
)
def test_what_nobody_listened_for_depends_on_the_extractors(first: str, further: list[str], unheard: str) -> None:
    results = sample()
    name, known = next(iter(results.attacks.items()))
    heard = {
        f"{name}@{extractor}": replace(known, name=f"{name}@{extractor}", extractor=extractor) for extractor in further
    }
    results = replace(results, extractor={"name": first}, attackers={**results.attackers, **heard})
    *_, contents, _ = decide(results).not_tested
    assert contents == f"The spoken words (names, places){', ' if unheard else ''}{unheard} and background sounds."


def test_a_reassurance_says_what_it_does_not_rest_on() -> None:
    unmade = Check(name=trust.OWN_RUNS, finding=text_finding("The attackers did not run the anonymizer."), passed=None)
    results = replace(release_results(), checks=(unmade,))
    linking = Criterion(
        name="linking", level="low", finding=text_finding(""), estimate=link(40.0, speakers=20), attacker="ignorant"
    )
    calm = replace(results, criteria={"linking": linking}, verdict=replace(results.verdict, level="low"))
    assert sentence(unmade.finding) in decide(calm).detail
    assert sentence(unmade.finding) not in decide(replace(calm, verdict=replace(calm.verdict, level="high"))).detail


def test_words_that_get_lost_are_named_only_where_ids_are() -> None:
    details = {
        "recordings": 30, "available": 240, "rated": 10, "deleted_words": 4, "inserted_words": 34,
        "substitutions": [{"said": "Wilma", "heard": "will", "times": 3}],
        "people": [{"speaker": "a", "wer": 20.0, "wer_original": 5.0, "recordings": 1},
                   {"speaker": "b", "wer": 80.0, "wer_original": 6.0, "recordings": 2}],
    }  # fmt: skip
    results = replace(sample(), parts={"utility": Part(name="utility", details=details)})
    hidden = " ".join(use_notes(public_results(results, Names({"a": "P1", "b": "P2"}, {}))))
    assert "30 of 240 recordings" in hidden
    assert "P2 80 (original 6; 2 recordings), P1 20" in hidden
    assert "4 words were not recognized" in hidden
    assert "Wilma" not in hidden
    assert "“Wilma” as “will” (3 times)" in " ".join(use_notes(public_results(results, Names({}, {}, with_ids=True))))
    assert use_notes(sample()) == ()


def test_the_first_page_tells_what_the_findings_of_the_run_tell(results: Results) -> None:
    """Headline, warning and checks can't contradict each other: each is worded from the finding that decided it."""
    failed = replace(results.checks[0], passed=False)
    checks = (failed, *results.checks[1:])
    results = replace(results, checks=checks, verdict=replace(results.verdict, trustworthy=False))
    decision = decide(results)
    assert decision.headline == sentence(results.verdict.headline[0], "lay")
    failures = [row for row in decision.checks if row.state == "failed"]
    made = sum(check.passed is not None for check in checks)
    assert f"{len(failures)} of {made} self-checks failed" in decision.reliance
    assert [f"{row.sentence} {row.meaning}" for row in failures] == list(decision.doubts)
    assert {row.sentence for row in decision.checks} <= {sentence(check.finding, "lay") for check in results.checks}
    assert decision.advice[0].reason == failures[0].sentence


def test_words_for_checks_are_of_checks_that_exist(results: Results) -> None:
    names = {check.name for check in results.checks}
    assert set(CHECKS) <= names
    assert set(REMEDIES) <= names


def test_all_three_criteria_are_listed_by_both_names_even_if_not_measured() -> None:
    rows = {row.name: row for row in decide(sample()).criteria}
    assert list(rows)[:3] == ["linking", "singling_out", "inference"]
    assert [rows[name].names for name in list(rows)[:3]] == [
        "linkability · No Linkage",
        "singling out · No Record Isolation",
        "inference · No Inference",
    ]
    missing = rows["inference"]
    assert (missing.level, missing.level_text, missing.title) == ("unknown", "not measured", "Inferring attributes")
    assert "Add a column such as gender" in missing.sentence
    left_out = replace(sample(), settings={"measures": ["linkability"]})
    assert "Add singling-out to --measures." in criterion_row(left_out, "singling_out").sentence
    alone = replace(sample(), inputs={}, criteria={})
    assert all("Only scores were given" in row.sentence for row in decide(alone).criteria)
    chapter = next(c for c in annex(alone, decide(alone)) if "per criterion" in c.title)
    assert chapter.table is not None
    assert ["Not measured" in row[2] for row in chapter.table.rows] == [True, True, True]
    assert "Guidelines 02/2026, draft: No Record Isolation" in chapter.table.rows[1][0]


def test_an_attribute_of_too_few_people_is_not_called_unknown() -> None:
    values = {"attribute": Reference("attribute", "gender"), "reason": Reference("text", "f (3), m (3)")}
    open_question = replace(sample().verdict, not_tested=(Finding("attribute_not_inferred", values),))
    missing = criterion_row(replace(sample(), verdict=open_question), "inference").sentence
    assert missing.startswith(
        "Too few people have the same gender: inferring it takes two values with at least 4 people"
    )


def test_nobody_exposed_is_not_nobody_recognized() -> None:
    people = replace(sample().people, persons=tuple(replace(p, unprotected=False) for p in sample().people.persons))
    linking = {"linking": replace(sample().criteria["linking"], level="high")}
    strip = decide(replace(sample(), people=people, criteria=linking)).strip
    assert strip is not None
    assert "for no single one of them can chance be ruled out" in strip.caption
    unlinked = decide(replace(sample(), people=people, criteria={})).strip
    assert unlinked is not None
    assert "Nobody is linked more often than not beyond chance." in unlinked.caption


def test_linking_released_recordings_to_each_other_belongs_to_linkage() -> None:
    linked = Finding.of("release_linked", passed=True, recognized=True, own_voices=False, share=0.9)
    results = with_checks(Check(name=trust.RELEASE, finding=linked, passed=True))
    assert "Released recordings of one person are linked to each other" in decide(results).criteria[0].text


def test_a_model_says_so_and_what_it_leaves_open_is_not_known() -> None:
    results = release_results()
    assert decide(results, people=1000, candidates=1000).sentence.startswith("According to a model, about")
    far = Estimate(
        name="population_linkability",
        value=50.0,
        unit="percent",
        interval=(0.0, 100.0),
        at={"speakers": 10**6, "length": 3},
    )
    known = results.attackers["ignorant"]
    wide = replace(known, estimates=Estimates([*known.estimates, far]))
    decision = decide(replace(results, attackers={"ignorant": wide}), people=10**6, candidates=10**6)
    assert decision.release_text.startswith("It is not known how many of the 1,000,000 people")
    assert "Assess more people" in decision.release_basis
    assert "The one person that the attacker looks for" in decide(results, people=1, candidates=20).release_text


def test_a_model_finds_no_more_than_in_original_speech() -> None:
    at = {"speakers": 1000, "length": 1}
    near, ceiling, high = (
        Estimate(name="population_linkability", value=value, unit="percent", interval=ends, at=at)
        for value, ends in ((20.0, (10.0, 30.0)), (71.0, (60.0, 80.0)), (90.0, (40.0, 99.0)))
    )
    point = link(95.0, speakers=20, low=90.0, high=99.0)
    base = {"original": attacker("original", point, ceiling)}
    curves = curves_of(replace(sample(), attackers={**base, "ignorant": attacker("ignorant", point, high)}))
    assert (curves[0].model[-1].value, curves[0].model[-1].interval) == (71.0, (40.0, 80.0))
    curves = curves_of(replace(sample(), attackers={**base, "ignorant": attacker("ignorant", point, near)}))
    assert curves[0].model[-1].value == 20.0
    # A figure shows the same, and nothing where the model leaves more than half of the people open.
    unknown = high.with_(at={"speakers": 3000, "length": 1}, interval=(20.0, 95.0))
    drawn = extrapolations(
        replace(sample(), attackers={**base, "ignorant": attacker("ignorant", point, high, unknown)})
    )
    assert {name: [p.value for p in points] for name, points in drawn.items()} == {
        "original": [71.0],
        "ignorant": [71.0],
    }


def test_linking_is_one_number_and_a_group_is_named_beside_it() -> None:
    worst = link(50.0, speakers=10, low=28.0, high=72.0)
    group = {"gender": "f"}
    case = Criterion(
        name="linking",
        level="raised",
        finding=linking_finding("raised", worst, "ignorant", group, None),
        estimate=worst,
        attacker="ignorant",
        group=group,
    )
    results = replace(sample(), criteria={"linking": case})
    decision = decide(results, limit=45.0)
    row = decision.criteria[0]
    assert (row.figure, decision.dots[0].text) == ("40.0 %", "40 of 100 [30,\N{NO-BREAK SPACE}50]")
    assert "Worst case: Of 100 recordings, 50 [28, 72]" in row.also
    assert "gender f" in row.also or "with f" in row.also
    assert "gender" in decision.limit or "with f" in decision.limit
    speakers = trust.check_speakers(case, 10.0)
    assert "10 speakers with" in sentence(speakers.finding)


def test_nobody_is_told_to_assess_more_people_where_they_are_enough() -> None:
    wide = release_results()
    told = Check(name=trust.ENOUGH, finding=text_finding("Enough."), passed=True)
    actions = [item.action.code for item in advice(replace(wide, checks=(told,)))]
    assert "advice_more_people" not in actions


def test_everybody_is_a_dot_and_the_exposed_are_named() -> None:
    strip = decide(sample()).strip
    assert strip is not None
    assert [(dot.speaker, dot.share, dot.exposed) for dot in strip.dots] == [("s1", 0.4, True)]
    assert "Exposed: 1 of 1 person (s1)." in strip.caption


def test_one_column_has_one_number_of_digits() -> None:
    strong, weak = link(20.0, low=10.0, high=30.0), link(0.0, low=0.0, high=6.0)
    holders = {"ignorant": attacker("ignorant", weak), "lazy-informed": attacker("lazy-informed", strong)}
    rows = decide(replace(sample(), attackers=holders)).who
    assert [(row.of_hundred, row.interval) for row in rows] == [("20 of 100", "[10, 30]"), ("0 of 100", "[0, 6]")]


def test_what_leaving_the_exposed_out_would_change_is_told() -> None:
    rows = tuple(
        LinkedPerson(speaker=f"s{n}", length=1, among=20, conversations=4, linked=100.0 if n == 3 else 5.0)
        for n in range(20)
    )
    holder = replace(attacker("ignorant", link(9.75, low=5.0, high=15.0)), people=rows)
    results = replace(sample(), attackers={"ignorant": holder})
    finding = without(results, ["s3"])
    assert finding is not None
    left, before = finding.values["linked"], finding.values["before"]
    assert isinstance(left, Estimate)
    assert isinstance(before, Estimate)
    assert (left.value, before.value) == (pytest.approx(5.0), pytest.approx(9.75))
    assert sentence(finding).startswith(
        "Without this person, someone who does not know the speech was anonymized would link 5"
    )
    assert without(results, [row.speaker for row in rows[1:]]) is None  # hardly anybody is left
    assert without(replace(results, attackers={}), ["s3"]) is None


def test_the_decision_is_signed_once_and_nothing_is_ticked() -> None:
    results = sample()
    chapters = annex(results, decide(results, digest="f" * 64, limit=9.0))
    signed = chapters[-1]
    assert [chapter.title for chapter in chapters].count(signed.title) == 1
    assert signed.table is not None
    entries = [row[0] for row in signed.table.rows]
    assert entries.count("☐") == 4
    assert not set("☑☒") & set(str(signed))
    assert ("SHA-256 of results.json", "f" * 64, "–") in signed.table.rows
    assert any("The limit of 9 in 100" in row[1] for row in signed.table.rows)
    assert sum("Guidelines 02/2026" in row[0] for row in signed.table.rows) == 3


def test_scores_alone_name_people_and_leave_no_column_blank() -> None:
    alone = replace(sample(), inputs={}, criteria={}, attackers={})
    assert masthead(alone, "2026-11-18")[-2] == "Assessed on 20 people on 2026-11-18"


def test_the_page_says_why_a_risk_is_raised_though_nobody_is_linked() -> None:
    kept = Finding("only_attribute_kept", {"attribute": Reference("attribute", "accent")})
    results = sample()
    results = replace(results, verdict=replace(results.verdict, headline=(*results.verdict.headline, kept)))
    assert "only the accent is kept" in decide(results).detail


def test_a_figure_of_a_choice_is_nobodys_own_and_the_same_everywhere() -> None:
    """Two attackers find other people: the strongest, chosen on other people, links fewer than either of them."""

    def holder(name: str, first: int) -> AttackerResult:
        rows = tuple(
            LinkedPerson(speaker=f"s{n:02d}", length=1, among=20, conversations=1, linked=100.0 * (n % 2 == first))
            for n in range(20)
        )
        return replace(attacker(name, link(50.0, low=30.0, high=70.0)), people=rows)

    results = replace(
        sample(), attackers={"ignorant": holder("ignorant", 0), "lazy-informed": holder("lazy-informed", 1)}
    )
    linking = linking_of_all(results)
    assert linking is not None
    value = linking.estimate.value
    assert value < 49  # else the world of this test has no choice
    decision = decide(results)
    assert "by the strongest attacker that was run" in decision.sentence
    strongest, *others = decision.who
    assert (strongest.who, strongest.of_hundred) == (STRONGEST_OF_ALL, f"{value:.0f} of 100")
    assert [(row.of_hundred, row.worst) for row in others] == [("50 of 100", False)] * 2
    assert release_data(results)["curves"][CHOSEN]["1"]["points"][-1][1] == pytest.approx(value / 100, abs=1e-4)
    assert criterion_row(results, "linking").who.startswith("the strongest attacker that was run (usually someone")


def test_what_could_not_be_inferred_is_named_on_a_page_that_names_nobody() -> None:
    reason = Reference("text", "gender can't be inferred: there are f (3), secret (1)")
    found = Finding("attribute_not_inferred", {"attribute": Reference("attribute", "gender"), "reason": reason})
    base = sample()
    results = replace(base, verdict=replace(base.verdict, not_tested=(found,)))
    shown = public_results(results, Names({}, {}))
    assert "Too few people have the same gender" in criterion_row(shown, "inference").sentence
    assert "secret" not in str(shown.verdict.not_tested)


def test_advice_names_those_who_are_exposed() -> None:
    base = sample()
    exposed = base.people.persons[0]
    others = (replace(exposed, speaker=f"s{n}", unprotected=False) for n in (2, 3))
    results = replace(base, people=replace(base.people, persons=(exposed, *others)))
    listed = [row.text for row in decide(results).advice]
    assert "Treat the one person who is linked more often than not (s1) differently, or leave them out." in listed
