"""Levels, worst cases and headlines, on results made by hand."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sample_results import attacker, eer, link, sample

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.files import to_json
from veilmeter.results import levels
from veilmeter.results.criteria import AS_MEASURED, criteria, strongest
from veilmeter.results.model import AttackerResult, Chance, Level, LinkedPerson, Part, People, Results
from veilmeter.results.run_folder import results_from_json, results_to_json
from veilmeter.results.trust import TrustFacts, doubts
from veilmeter.results.verdict import LAWYER, conclude
from veilmeter.wording import sentence, sentences, text

FINE = TrustFacts(compared=80, unchanged=0, trials=40, copies=0, own_runs=1)


def distrust(results: Results) -> str:
    return " ".join(map(text, doubts(results)))


def measured(**attackers: list[Estimate] | AttackerResult) -> Results:
    """The sample with these attackers and nothing concluded."""
    holders = {
        name: holder if isinstance(holder, AttackerResult) else attacker(name, *holder)
        for name, holder in attackers.items()
    }
    return replace(sample(), attackers=holders, criteria={}, checks=(), people=People(), parts={})


def concluded(**attackers: Any) -> Results:
    return conclude(measured(**attackers), FINE)


def with_p(value: float, p: float, **where: Any) -> Estimate:
    """A rate of linking with the probability that luck explains it."""
    return link(value, **where).with_(extra={levels.P_ADJUSTED: p})


@pytest.mark.parametrize(
    ("value", "interval", "p", "level"),
    [
        (5.0, (2.0, 11.0), 0.6, "low"),
        (7.0, (5.1, 10.0), None, "raised"),  # the interval excludes what guessing gives
        (7.0, (4.0, 10.0), None, "low"),
        (7.0, (5.1, 10.0), 0.01, "raised"),
        (50.0, (30.0, 70.0), 0.01, "high"),
        (50.0, (0.0, 100.0), 0.4, "unknown"),
        (0.0, (0.0, 100.0), None, "unknown"),
        (20.0, (1.0, 30.0), 0.2, "low"),
        (20.0, (1.0, 50.0), 0.2, "unknown"),
    ],
)
def test_levels_of_a_rate(value: float, interval: tuple[float, float], p: float | None, level: Level) -> None:
    point = link(value, low=interval[0], high=interval[1])
    assert levels.level_of(point if p is None else point.with_(extra={levels.P_ADJUSTED: p})) == level


def test_a_rate_without_an_interval_reassures_nobody() -> None:
    point = link(5.0).with_(interval=None)
    assert levels.level_of(point) == "unknown"
    assert levels.level_of(point.with_(value=90.0)) == "high"
    assert levels.level_of(point.with_(extra={levels.P_ADJUSTED: 0.5})) == "low"


def test_a_few_unprotected_among_many_are_not_near_chance() -> None:
    """2.4 % among 2,000 people is 47 times chance; 9 of 1,000 released unchanged are 0.9 %."""
    many = concluded(ignorant=[link(2.4, speakers=2000, low=1.8, high=3.1)])
    assert many.verdict.level == "raised"
    assert "links 2.4 [1.8, 3.1]" in text(many.verdict.headline)
    assert "chance links 0.05" in text(many.verdict.headline)
    assert concluded(ignorant=[link(0.95, speakers=1000, low=0.5, high=1.8)]).verdict.level == "raised"


def test_what_a_test_does_not_reject_belongs_to_the_interval() -> None:
    point = levels.with_probability(link(12.0, low=8.0, high=20.0), 0.3)
    assert point.interval == (5.0, 20.0)
    assert levels.with_probability(link(12.0, low=8.0, high=20.0), 0.01).interval == (8.0, 20.0)


def test_every_length_counts() -> None:
    """One more person at L = 1 must not hide L = 3."""
    results = concluded(
        ignorant=[
            link(3.0, speakers=40, low=1.0, high=6.0),
            link(21.2, speakers=39, length=3, low=12.0, high=33.0),
        ]
    )
    linking = results.criteria["linking"]
    assert linking.level == "raised"
    assert linking.estimate.at["length"] == 3
    assert "with 3 utterances each" in sentence(linking.finding)


def test_the_worst_group_is_part_of_the_worst_case() -> None:
    holder = attacker(
        "ignorant",
        link(29.0, speakers=100, low=20.0, high=40.0),
        by={
            "gender": {
                "f": Estimates([link(94.0, speakers=50, low=88.0, high=97.0)]),
                "m": Estimates([link(2.0, speakers=50, low=0.0, high=6.0)]),
            }
        },
    )
    results = concluded(ignorant=holder)
    assert results.verdict.level == "high"
    assert results.criteria["linking"].group == {"gender": "f"}
    assert "94 [88, 97] to the right person among 50 with gender f" in text(results.verdict.headline)


def test_a_group_that_is_known_poorly_is_bounded_by_everybody() -> None:
    wide = Estimates([link(0.0, speakers=5, low=0.0, high=90.0)])
    holder = attacker("ignorant", link(5.0, low=2.0, high=10.0), by={"gender": {"f": wide}})
    assert concluded(ignorant=holder).criteria["linking"].level == "low"


def test_smaller_sets_count_where_they_are_sure() -> None:
    results = concluded(
        ignorant=[with_p(60.0, 0.001, speakers=2, low=56.0, high=64.0), with_p(2.0, 0.4, speakers=100, high=5.0)]
    )
    assert results.criteria["linking"].level == "raised"
    assert results.criteria["linking"].estimate.at["speakers"] == 2


def test_the_luck_of_the_luckiest_is_said() -> None:
    results = replace(
        measured(ignorant=[with_p(8.0, 0.4, low=2.0, high=15.0)]),
        chance=Chance(draws=500, tests=10, best_link=12.0, exposed=0.3, exposed_p=1.0),
    )
    headline = text(conclude(results, FINE).verdict.headline)
    assert headline.startswith("None of the attackers that were run did significantly better than chance.")
    assert "the luckiest of all these attackers may reach 12 by chance alone" in headline


@pytest.mark.parametrize(
    ("p", "luck", "level"),
    [(0.01, 0.01, "raised"), (0.2, 0.1, "unknown"), (0.2, 0.94, "unknown"), (0.9, 0.96, "low")],
)
def test_somebody_who_is_always_linked_is_not_luck_for_sure(p: float, luck: float, level: Level) -> None:
    """One unprotected person of 40 looks like a guess that came true: that does not mean that all of them are safe."""
    rows = tuple(
        LinkedPerson(speaker=f"s{n}", length=1, among=40, conversations=2, linked=100.0 * (n == 0)) for n in range(40)
    )
    holder = replace(attacker("ignorant", with_p(6.0, 0.4, low=2.0, high=10.0)), people=rows)
    by_chance = Chance(draws=499, tests=2, best_link=10.0, exposed=0.1, exposed_p=p, exposed_luck=luck)
    results = conclude(replace(measured(ignorant=holder), chance=by_chance), FINE)
    linking = results.criteria["linking"]
    assert linking.level == level
    if level == "unknown":
        reason = "and with so few trials each this can't be distinguished from chance: more recordings of each person"
        assert f"1 of 40 is linked more often than not, {reason}" in sentence(linking.finding)
        assert "can't be distinguished from chance" in sentence(results.people.finding)
        assert "More recordings of each person would be needed" in distrust(results)
        assert not results.verdict.trustworthy


def test_who_is_tried_once_is_told_from_luck_by_more_recordings_only() -> None:
    rows = tuple(
        LinkedPerson(speaker=f"s{n}", length=1, among=200, conversations=1, linked=100.0 * (n < 2)) for n in range(200)
    )
    holder = replace(attacker("ignorant", with_p(1.0, 0.4, speakers=200, low=0.0, high=4.0)), people=rows)
    by_chance = Chance(draws=499, tests=2, best_link=2.0, exposed=1.0, exposed_p=0.8, exposed_luck=0.26)
    results = conclude(replace(measured(ignorant=holder), chance=by_chance), FINE)
    assert results.verdict.level == "unknown"
    assert "and with one trial each this can't be distinguished from chance: more recordings of each person" in text(
        results.verdict.headline
    )
    assert "More recordings of each person would be needed" in distrust(results)


def test_what_is_unknown_says_how_many_people_would_settle_it() -> None:
    point = with_p(5.0, 0.6, high=38.0).with_(n={"speakers": 20})
    results = concluded(ignorant=[point])
    assert results.verdict.level == "unknown"
    needed = levels.speakers_to_rule_out(point)
    assert f"20 people are too few to distinguish chance from a high risk: about {needed}" in text(
        results.verdict.headline
    )


def test_a_reassurance_says_what_it_does_not_rest_on() -> None:
    results = conclude(measured(ignorant=[link(5.0, low=2.0, high=10.0)]), replace(FINE, own_runs=0))
    assert results.verdict.level == "low"
    assert "The attackers did not run the anonymizer. The real risk may be higher" in text(results.verdict.headline)


def residual(value: float, low: float, high: float) -> Estimate:
    return Estimate(
        name="residual_risk", value=value, unit="percent", interval=(low, high), null=0.0,
        better="lower", at={"speakers": 20, "length": 1},
    )  # fmt: skip


def test_singling_out_that_is_not_known_is_not_low() -> None:
    results = concluded(ignorant=[residual(0.0, 0.0, 100.0)])
    assert results.criteria["singling_out"].level == "unknown"
    assert results.verdict.level == "unknown"
    assert text(results.verdict.headline).startswith("Too little was measured to say")
    assert concluded(ignorant=[residual(0.0, -10.0, 10.0)]).verdict.level == "low"
    assert concluded(ignorant=[residual(20.0, 15.0, 25.0)]).verdict.level == "raised"
    assert concluded(ignorant=[residual(50.0, 40.0, 60.0)]).verdict.level == "high"


def test_singling_out_that_nothing_corroborates_is_luck() -> None:
    """Its intervals are over rules that share people; relabeling people says whether scores tell anything at all."""
    luck = Chance(draws=499, tests=2, best_link=10.0, exposed=0.0, exposed_p=1.0)
    risk = residual(20.0, 10.0, 30.0)
    alone = replace(measured(ignorant=[risk, with_p(5.0, 0.9, high=10.0)]), chance=luck)
    assert conclude(alone, FINE).criteria["singling_out"].level == "low"
    together = replace(measured(ignorant=[risk, with_p(20.0, 0.01, low=10.0, high=30.0)]), chance=luck)
    assert conclude(together, FINE).criteria["singling_out"].level == "raised"


def test_many_figures_share_the_error() -> None:
    """One of thirty that barely excludes 0 is luck."""
    barely = residual(10.0, 0.1, 20.0)
    others = [residual(0.0, -10.0, 10.0).with_(at={"speakers": n, "length": 1}) for n in range(2, 31)]
    assert concluded(ignorant=[barely.with_(at={"speakers": 40, "length": 1}), *others]).verdict.level == "low"


def test_disclosure_by_noise_or_by_relabeling() -> None:
    inside = Estimate(name="d_ece", value=0.01, unit="bit", null=0.005, null_range=(0.0, 0.02), interval=(0.0, 0.03))
    assert concluded(ignorant=[inside]).criteria["disclosure"].level == "low"
    assert "no information" in sentence(concluded(ignorant=[inside]).criteria["disclosure"].finding)
    assert concluded(ignorant=[inside.with_(value=0.03)]).criteria["disclosure"].level == "raised"
    shared = inside.with_(value=0.03, extra={levels.P_ADJUSTED: 0.5})  # noise of shared speakers reaches further
    assert concluded(ignorant=[shared]).criteria["disclosure"].level == "low"
    assert concluded(ignorant=[inside.with_(value=0.3)]).criteria["disclosure"].level == "high"


def test_inversion_and_distinctiveness() -> None:
    top1 = Estimate(
        name="top1", value=60.0, unit="percent", interval=(50.0, 70.0), null=5.0, at={"attack": "procrustes"}
    )
    g_vd = Estimate(name="g_vd", value=float("-inf"), unit="dB")
    parts = {
        "inversion": Part(name="inversion", estimates=Estimates([top1])),
        "similarity": Part(name="similarity", estimates=Estimates([g_vd])),
    }
    results = conclude(replace(measured(ignorant=[eer(48)]), parts=parts), FINE)
    assert {name: case.level for name, case in results.criteria.items()} == {
        "inversion": "high",
        "distinctiveness": "high",
    }
    assert "minus infinity" in sentence(results.criteria["distinctiveness"].finding)
    assert not results.criteria["distinctiveness"].risk


def test_every_map_of_an_inversion_can_be_high() -> None:
    """They are attacks on the same people, not points of a curve whose largest set decides."""
    weak = Estimate(name="top1", value=20.0, unit="percent", interval=(9.0, 38.0), null=5.0, at={"pca": "0"})
    strong = weak.with_(value=47.0, interval=(39.0, 56.0), at={"pca": "0", "centered": "yes"})
    parts = {"inversion": Part(name="inversion", estimates=Estimates([weak, strong]))}
    criterion = conclude(replace(measured(ignorant=[eer(48)]), parts=parts), FINE).criteria["inversion"]
    assert criterion.level == "high"
    assert criterion.estimate is not None
    assert criterion.estimate.value == 47.0


def test_an_attribute_lost_in_noise_hides_none_that_is_not() -> None:
    noise = Estimate(
        name="inference",
        value=63.0,
        null=50.0,
        null_range=(35.0, 65.0),
        interval=(50.0, 72.0),
        at={"attribute": "gender"},
    )
    told = Estimate(
        name="inference",
        value=29.0,
        null=12.5,
        null_range=(3.0, 18.0),
        interval=(22.0, 37.0),
        at={"attribute": "accent"},
    )
    part = Part(name="inference", estimates=Estimates([noise, told]), reference=Estimates([told.with_(value=80.0)]))
    criterion = criteria(replace(measured(ignorant=[]), parts={"inference": part}))["inference"]
    assert criterion.level == "raised"
    assert sentence(criterion.finding).startswith("The attribute accent is inferred correctly for 29 [22, 37] of 100")
    assert sentence(criterion.finding).endswith("chance gives 12.5, original speech 80).")


def test_a_classifier_that_is_mostly_wrong_is_not_called_low() -> None:
    """It is right 88 times in 100 where its answers are turned round."""
    wrong = Estimate(
        name="inference",
        value=12.0,
        null=50.0,
        null_range=(38.0, 62.0),
        interval=(4.0, 24.0),
        at={"attribute": "gender"},
    )
    levels = {}
    for value, interval in ((12.0, (4.0, 24.0)), (44.0, (33.0, 56.0)), (40.0, (31.0, 49.0))):
        part = Part(name="inference", estimates=Estimates([wrong.with_(value=value, interval=interval)]))
        levels[value] = criteria(replace(measured(ignorant=[]), parts={"inference": part}))["inference"].level
    assert levels == {12.0: "unknown", 44.0: "low", 40.0: "low"}  # shuffled labels reach 40, too


def test_what_guessing_achieves_among_many_does_not_vanish() -> None:
    results = concluded(informed=[link(50.0, speakers=400, low=40.0, high=60.0)])
    assert sentence(results.criteria["linking"].finding).endswith("among 400; chance links 0.25.")


def test_pseudonyms_are_named() -> None:
    results = concluded(original=[eer(2)], ignorant=[eer(45)], **{"lazy-informed": [eer(3)]})
    assert "the same new voice in all recordings" in text(results.verdict.remarks)
    # That the attackers' own run differs changes nothing within the release.
    attackers = measured(original=[eer(2)], ignorant=[eer(45)], **{"lazy-informed": [eer(48)]})
    results = conclude(attackers, replace(FINE, release_p=0.002, release_share=0.95))
    assert "the same new voice in all recordings" in text(results.verdict.remarks)
    results = conclude(attackers, replace(FINE, release_p=0.4, release_share=0.01))
    assert "the same new voice in all recordings" not in text(results.verdict.remarks)


def test_the_texts_for_lawyers_stand_once_and_promise_nothing() -> None:
    assert len(set(sentences(LAWYER))) == len(LAWYER) >= 3


def test_a_verdict_is_trusted_only_if_no_check_failed() -> None:
    results = conclude(measured(ignorant=[link(5.0, high=10.0)]), replace(FINE, unchanged=3))
    assert not results.verdict.trustworthy
    assert [doubt[0] for doubt in doubts(results)] == [check.finding for check in results.checks if check.failed]


def test_holm() -> None:
    assert levels.holm([]) == []
    assert levels.holm([0.2]) == [0.2]
    assert levels.holm([0.5, 0.01, 0.02]) == pytest.approx([0.5, 0.03, 0.04])


@pytest.mark.parametrize(("people", "level"), [(2, "low"), (20, "high")])
def test_two_people_of_a_group_decide_nothing(people: int, level: Level) -> None:
    holder = attacker("ignorant", link(5.0, low=2.0, high=10.0))
    few = link(80.0, low=80.0, high=80.0).with_(n={"speakers": people})
    told = Estimate(name="d_ece", value=0.4, unit="bit", interval=(0.3, 0.5), null=0.0)
    results = conclude(measured(ignorant=replace(holder, by={"gender": {"x": Estimates([few, told])}})), FINE)
    assert results.criteria["linking"].level == level
    assert ("disclosure" in results.criteria) is (level == "high")


def of_people(hits: np.ndarray) -> AttackerResult:
    """An attacker who links so many of three recordings of each person, among twenty."""
    value = float(100 * hits.mean() / 3)
    rows = tuple(
        LinkedPerson(speaker=f"s{row}", length=1, among=20, conversations=3, linked=float(100 * number / 3))
        for row, number in enumerate(hits)
    )
    return attacker("a", link(value, low=max(0.0, value - 20), high=min(100.0, value + 20)), people=rows)


def test_the_headline_is_not_the_luckiest_figure() -> None:
    """Five attackers who are equally good: the best of them looks better than it is."""
    rng = np.random.default_rng(0)
    best, shown = [], []
    for _ in range(150):
        hits = rng.binomial(3, rng.beta(2, 2, (5, 20)))
        results = measured(**{f"a{number}": of_people(row) for number, row in enumerate(hits)})
        chosen = strongest(results)
        assert chosen is not None
        best.append(100 * hits.mean(axis=1).max() / 3)
        shown.append(chosen.estimate.value)
        low, high = chosen.estimate.interval or (0.0, 0.0)
        assert low <= chosen.estimate.value <= high
    assert np.mean(best) > 55
    assert abs(np.mean(shown) - 50) < 2  # the mean of 150 varies by 0.7


def test_the_criterion_tells_the_figure_of_the_headline() -> None:
    """One question has one answer: a reader who sees 68 and 70 of 100 believes neither."""
    hits = np.random.default_rng(1).binomial(3, 0.5, (5, 20))
    results = conclude(measured(**{f"a{number}": of_people(row) for number, row in enumerate(hits)}), FINE)
    chosen = strongest(results)
    assert chosen is not None
    assert chosen.estimate.value < max(of_people(row).estimates.points("linkability")[0].value for row in hits)
    assert results.criteria["linking"].estimate == chosen.estimate
    assert results.criteria["linking"].finding in results.verdict.headline


def test_one_attacker_alone_is_named_and_not_called_the_strongest() -> None:
    """Its number of recordings is chosen on other people; nobody else could have been the strongest."""
    single, several = (row for row in np.random.default_rng(4).binomial(3, 0.5, (2, 20)))
    lengths = [
        replace(row, length=length) for length, hits in ((1, single), (3, several)) for row in of_people(hits).people
    ]
    links = [
        link(100 * hits.mean() / 3, low=20.0, high=80.0, length=length) for length, hits in ((1, single), (3, several))
    ]
    results = measured(ignorant=attacker("ignorant", *links, people=tuple(lengths)))
    chosen = strongest(results)
    assert chosen is not None
    assert AS_MEASURED in chosen.estimate.extra  # else the world of this test has no choice
    words = text(conclude(results, FINE).verdict.headline)
    assert "an ignorant attacker with" in words
    assert "strongest" not in words
    both = replace(results, attackers=results.attackers | measured(a=of_people(single)).attackers)
    assert "the strongest attacker (usually the" in text(conclude(both, FINE).verdict.headline)


def test_results_with_a_figure_chosen_on_other_people_are_read_again() -> None:
    """Also with attackers in another order and with other names of people; another figure is still refused."""
    hits = np.random.default_rng(1).binomial(3, 0.5, (5, 20))
    results = conclude(measured(**{f"a{n}": replace(of_people(row), name=f"a{n}") for n, row in enumerate(hits)}), FINE)
    form = json.loads(to_json(results_to_json(results)))
    form["attackers"] = dict(reversed(form["attackers"].items()))
    for entry in form["attackers"].values():
        for row in entry["people"]:
            row["speaker"] = f"P{-int(row['speaker'][1:]) % 20}"
    figure = results.criteria["linking"].estimate
    assert results_from_json(form).criteria["linking"].estimate.value == figure.value
    form["criteria"]["linking"]["estimate"]["value"] -= 1.0
    with pytest.raises(InputError, match="it rests on"):
        results_from_json(form)


def test_an_attacker_that_is_always_strongest_keeps_its_figure() -> None:
    results = measured(weak=of_people(np.ones(20)), strong=of_people(np.full(20, 3)))
    chosen = strongest(results)
    assert chosen is not None
    assert (chosen.attacker, chosen.estimate) == (
        "strong",
        results.attackers["strong"].estimates.points("linkability")[0],
    )


def test_the_headline_is_about_everybody_and_then_about_the_worst_group() -> None:
    group = {"gender": {"f": Estimates([with_p(90.0, 0.001, speakers=10, low=70.0, high=97.0)])}}
    results = concluded(ignorant=attacker("ignorant", with_p(50.0, 0.001, low=30.0, high=70.0), by=group))
    words = sentences(results.verdict.headline)
    assert "links 50 [30, 70] to the right person among 20;" in words[1]
    assert "among 10 with gender f" in words[2]


def test_no_figure_is_above_what_the_luckiest_reaches() -> None:
    """A figure that chance explains is not told beside a smaller one that chance reaches."""
    chance = Chance(draws=499, tests=9, best_link=4.0)
    results = replace(measured(ignorant=[with_p(5.0, 0.2, speakers=100, low=0.0, high=10.0)]), chance=chance)
    assert "luckiest" not in text(conclude(results, FINE).verdict.headline)
    results = replace(measured(ignorant=[with_p(3.0, 0.2, speakers=100, low=0.0, high=10.0)]), chance=chance)
    assert "may reach 4 by chance alone" in text(conclude(results, FINE).verdict.headline)


def test_under_wrong_ids_nobody_is_said_to_have_lost_their_voice() -> None:
    """Nothing is found, and voices seem alike, because recordings of different people bear one person's ids."""
    quiet = measured(ignorant=[with_p(5.0, 0.4, low=2.0, high=9.0)])
    alike = Estimate(name="g_vd", value=-30.0, unit="dB")
    quiet = replace(quiet, parts={"similarity": Part(name="similarity", estimates=Estimates([alike]))})
    for facts, told in ((FINE, True), (replace(FINE, ids_p=0.0001), False)):
        remarks = conclude(quiet, facts).verdict.remarks
        assert any(remark.code == "little_voice_left" for remark in remarks) is told
