"""Every trust check: something that trips it, something that doesn't, and what its failure means."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sample_results import attacker, eer, link, sample

from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Finding, text_finding
from veilmeter.core.intervals import wilson
from veilmeter.metrics.vector_checks import RepeatedDraws, TargetVoices
from veilmeter.results import trust
from veilmeter.results.model import Check, Criterion, Level, Results
from veilmeter.results.trust import STILL_SPEECH, TARGETS, TrustFacts
from veilmeter.wording import sentence, text

FINE = TrustFacts(compared=80, unchanged=0, trials=40, copies=0, own_runs=1)
EITHER, HIGHER, LOWER = "lower or higher than these figures", "may be higher than", "may be lower than"


def with_attackers(**estimates: Any) -> Results:
    """The sample with these estimates instead; `lazy_informed` is the lazy-informed attacker."""
    named = {name.replace("_", "-"): points for name, points in estimates.items()}
    return replace(sample(), attackers={name: attacker(name, *points) for name, points in named.items()})


def made(results: Results, evidence: TrustFacts = FINE) -> dict[str, Check]:
    checks = trust.checks(results, evidence)
    order = [0 if check.failed else 1 if check.open else 2 if check.passed else 3 for check in checks]
    assert order == sorted(order)
    return {check.name: check for check in checks}


def test_weak_on_original_speech() -> None:
    weak = made(with_attackers(original=[eer(40.0)], ignorant=[eer(45.0)]))[trust.STRONG]
    assert weak.failed
    assert "proves little" in sentence(weak.finding)
    assert made(with_attackers(original=[eer(3.0)], ignorant=[eer(45.0)]))[trust.STRONG].passed


def test_a_deaf_extractor_is_found_out_by_what_it_links() -> None:
    deaf = made(with_attackers(original=[link(1.0, speakers=100)], ignorant=[link(1.0, speakers=100)]))
    assert deaf[trust.STRONG].failed
    assert "links 1 of 100 among 100" in sentence(deaf[trust.STRONG].finding)
    assert made(with_attackers(original=[link(90.0)], ignorant=[link(10.0)]))[trust.STRONG].passed
    unknown = made(with_attackers(original=[], ignorant=[]))[trust.STRONG]
    assert unknown.open
    assert HIGHER in sentence(trust.meaning(unknown))


@pytest.mark.parametrize(
    ("eers", "passed"),
    [
        ({"ignorant": eer(40), "lazy_informed": eer(5), "informed": eer(20)}, False),
        ({"ignorant": eer(40), "lazy_informed": eer(5), "informed": eer(7)}, True),  # within both intervals
        ({"ignorant": eer(40), "lazy_informed": eer(5), "informed": eer(4)}, True),
        ({"ignorant": eer(1, 1), "lazy_informed": eer(20), "informed": eer(6, 1)}, False),
        # A wide interval must not hide another attacker that certainly failed.
        ({"ignorant": eer(5), "semi_informed": eer(30, 28), "informed": eer(20)}, False),
    ],
)
def test_knowing_more_must_not_harm(eers: dict[str, Estimate], passed: bool) -> None:
    check = made(with_attackers(**{name: [point] for name, point in eers.items()}))[trust.ADAPTED]
    assert check.passed is passed
    if not passed:
        assert "its adaptation failed" in sentence(check.finding)


def test_nothing_to_compare_an_adapted_attacker_with() -> None:
    for alone in ({"ignorant": [eer(30)]}, {"informed": [eer(30)]}):
        check = made(with_attackers(**alone))[trust.ADAPTED]
        assert check.passed is None
        assert not check.open


def test_not_one_recording_may_be_released_as_it_was() -> None:
    one = made(sample(), replace(FINE, unchanged=1))[trust.CHANGED]
    assert one.failed
    assert trust.meaning(one).code == "not_protected"
    assert sentence(trust.meaning(one)) == "People are not protected at all in recordings that were not changed."
    assert made(sample())[trust.CHANGED].passed
    assert made(sample(), replace(FINE, unchanged=None))[trust.CHANGED].open


def test_copies_in_enrollment_and_trials() -> None:
    found = made(sample(), replace(FINE, copies=4))[trust.COPIES]
    assert found.failed
    assert found.figure == pytest.approx(10.0)
    assert made(sample())[trust.COPIES].passed
    assert made(sample(), replace(FINE, copies=None))[trust.COPIES].open


def claim(level: Level, value: float, interval: tuple[float, float], speakers: int = 10) -> Criterion:
    estimate = link(value, low=interval[0], high=interval[1]).with_(n={"speakers": speakers}, null=5.0)
    return Criterion(name="linking", level=level, finding=text_finding(""), estimate=estimate)


@pytest.mark.parametrize(
    ("level", "value", "interval", "passed"),
    [
        ("high", 90.0, (70.0, 97.0), True),
        ("high", 60.0, (20.0, 90.0), False),
        ("low", 6.0, (2.0, 12.0), True),
        ("low", 6.0, (2.0, 40.0), False),
        ("raised", 30.0, (22.0, 38.0), True),
        ("raised", 30.0, (10.0, 60.0), False),
    ],
)
def test_too_few_speakers(level: Level, value: float, interval: tuple[float, float], passed: bool) -> None:
    check = trust.check_speakers(claim(level, value, interval), 10.0)
    assert check.passed is passed
    if not passed:
        # With as many as it says, the interval would be narrow enough; with fewer not.
        needed = int(sentence(check.finding).split("About ")[1].split(" ")[0])
        for count, enough in ((needed, True), (0.8 * needed, False)):
            with_more = rarer(count) if level == "low" else narrower(level, value, interval, count)
            assert trust.check_speakers(with_more, 10.0).passed is enough


def narrower(level: Level, value: float, interval: tuple[float, float], count: float) -> Criterion:
    """The same rate of more people: the interval shrinks with the square root."""
    low, high = (value + (end - value) * (10 / count) ** 0.5 for end in interval)
    return claim(level, value, (low, high), int(count))


def rarer(count: float) -> Criterion:
    """The luckiest of guesses among more people, a fifth above chance; ten are worth as many trials as above."""
    trials = next(n for n in range(100, 1, -1) if wilson(0.06 * n, n)[1] >= 0.4) * int(count) // 10
    low, high = wilson(0.6 / count * trials, trials)
    found = claim("low", 60 / count, (100 * low, 100 * high), int(count))
    return replace(found, estimate=found.estimate.with_(null=50 / count))


def test_what_is_unknown_or_not_measured_is_not_enough() -> None:
    assert trust.check_speakers(claim("unknown", 0.0, (0.0, 100.0)), 10.0).failed
    assert trust.check_speakers(None, 10.0).open


def test_training_speakers_overlap() -> None:
    assert made(sample(), replace(FINE, overlap={"train_anonymized": 20}))[trust.OTHERS].failed
    assert made(sample(), replace(FINE, overlap={"train_anonymized": 0}))[trust.OTHERS].passed
    none = made(sample())[trust.OTHERS]
    assert none.passed is None
    assert not none.open


def test_enrollment_and_trials_of_one_session() -> None:
    assert trust.check_sessions(100.0).failed
    assert trust.check_sessions(0.0).passed
    assert not trust.check_sessions(None).open


def test_tied_scores() -> None:
    results = sample()
    tied = replace(results.attackers["ignorant"], ties=1.5)
    assert made(replace(results, attackers={**results.attackers, "ignorant": tied}))[trust.TIES].failed
    assert made(results)[trust.TIES].passed


def d_ece(value: float, flipped: float, **extra: float) -> Estimate:
    return Estimate(name="d_ece", value=value, null_range=(0.0, 0.05), extra={"flipped": flipped, **extra})


def test_inverted_scores() -> None:
    assert made(with_attackers(ignorant=[d_ece(0.01, 0.4)]))[trust.UPRIGHT].failed
    # Where another attacker finds as much the right way round, the worst case is not wrong.
    assert made(with_attackers(ignorant=[d_ece(0.01, 0.4)], informed=[d_ece(0.5, 0.0)]))[trust.UPRIGHT].passed
    assert made(with_attackers(ignorant=[d_ece(0.01, 0.04)]))[trust.UPRIGHT].passed
    assert made(with_attackers(ignorant=[d_ece(0.01, 0.4, flipped_p_adjusted=0.3)]))[trust.UPRIGHT].passed
    assert made(with_attackers(ignorant=[d_ece(0.01, 0.04, flipped_p_adjusted=0.01)]))[trust.UPRIGHT].failed


def test_attackers_without_the_anonymizer() -> None:
    without = made(sample(), replace(FINE, own_runs=0))[trust.OWN_RUNS]
    assert without.open
    assert sentence(without.finding) == "The attackers did not run the anonymizer."
    assert HIGHER in sentence(trust.meaning(without))
    assert made(sample())[trust.OWN_RUNS].passed


@pytest.mark.parametrize(("attacker_name", "level", "shared"), [
    ("lazy-informed", "high", True), ("lazy-informed", "low", False), ("ignorant", "high", False),
])  # fmt: skip
def test_attackers_who_enroll_from_the_released_run_share_its_draws(
    attacker_name: str, level: Level, shared: bool
) -> None:
    attackers = {name: attacker(name, link(90.0)) for name in ("ignorant", "lazy-informed")}
    linking = Criterion(
        name="linking", level=level, finding=text_finding(""), estimate=link(90.0), attacker=attacker_name
    )
    results = replace(sample(), attackers=attackers, criteria={"linking": linking})
    check = made(results, replace(FINE, own_runs=0))[trust.OWN_RUNS]
    assert ("share its draws" in sentence(check.finding)) is shared
    assert (EITHER in sentence(trust.meaning(check))) is shared


def test_lengths_of_vectors_that_tell_people_apart() -> None:
    tells = replace(FINE, length_p=0.0001)
    unnoticed = replace(sample(), criteria={"linking": claim("low", 5.0, (2.0, 10.0))})
    assert made(unnoticed, tells)[trust.LENGTHS].failed
    assert made(sample(), tells)[trust.LENGTHS].passed  # people are recognized anyway
    assert made(unnoticed, replace(FINE, length_p=0.3))[trust.LENGTHS].passed
    assert not made(unnoticed)[trust.LENGTHS].open


@pytest.mark.parametrize("sign", [{"ids_p": 0.0002}, {"ids_p": 1.0, "durations": (0.05, 0.3)}])
def test_recordings_under_the_ids_of_others(sign: dict[str, Any]) -> None:
    wrong = replace(FINE, **sign)
    for level, value, interval in (("low", 5.0, (2.0, 10.0)), ("raised", 30.0, (22.0, 38.0))):
        results = replace(sample(), criteria={"linking": claim(level, value, interval)})
        check = made(results, wrong)[trust.OWN_IDS]
        assert check.failed
        assert "wrong order" in sentence(check.finding)
        assert trust.doubting_checks(replace(results, checks=(check,))) == [check]  # even if people are recognized
    most_are_found = replace(sample(), criteria={"linking": claim("high", 90.0, (70.0, 97.0))})
    assert not made(most_are_found, wrong)[trust.OWN_IDS].applies


def test_recordings_with_their_own_ids() -> None:
    results = replace(sample(), criteria={"linking": claim("low", 5.0, (2.0, 10.0))})
    assert made(results, FINE)[trust.OWN_IDS].open
    assert made(results, replace(FINE, ids_p=0.02))[trust.OWN_IDS].passed
    check = made(results, replace(FINE, ids_p=1.0, durations=(0.98, 1e-9)))[trust.OWN_IDS]
    assert check.passed
    assert "correlation 0.98" in sentence(check.finding)


FLATTERING = TargetVoices(
    attacker="ignorant", voices=4, known=True, reported=0.4, informed=0.1, eer_reported=38.0, eer_informed=12.0,
    gain=(0.1, 0.3),
)  # fmt: skip


def test_target_voices_must_not_explain_the_errors() -> None:
    raised = replace(sample(), criteria={"linking": claim("raised", 30.0, (10.0, 60.0))})
    check = made(raised, replace(FINE, targets=FLATTERING))[TARGETS]
    assert check.failed
    assert check.figure == pytest.approx(75.0)
    assert "EER 38.0 %, 12.0 % without" in sentence(check.finding)
    unsure = replace(FLATTERING, gain=(-0.01, 0.3))
    assert made(raised, replace(FINE, targets=unsure))[TARGETS].passed
    small = replace(FLATTERING, informed=0.35)
    assert made(raised, replace(FINE, targets=small))[TARGETS].passed
    certain = replace(sample(), criteria={"linking": claim("high", 90.0, (80.0, 95.0))})
    assert made(certain, replace(FINE, targets=FLATTERING))[TARGETS].passed  # people are recognized anyway
    assert not made(raised)[TARGETS].applies


def test_draws_that_repeat_doubt_a_low_risk_alone() -> None:
    repeats = replace(FINE, draws=RepeatedDraws(1000))
    unnoticed = replace(sample(), criteria={"linking": claim("low", 5.0, (2.0, 10.0))})
    assert made(unnoticed, repeats)[trust.DRAWS].failed
    assert made(sample(), repeats)[trust.DRAWS].passed  # people are recognized anyway
    assert not made(unnoticed)[trust.DRAWS].applies
    assert made(unnoticed, replace(FINE, draws=RepeatedDraws(p=0.01)))[trust.DRAWS].failed
    assert made(sample(), replace(FINE, draws=RepeatedDraws(p=0.01)))[trust.DRAWS].passed  # what is kept explains it
    nothing = made(unnoticed, replace(FINE, draws=RepeatedDraws(p=0.2, noticed=883)))[trust.DRAWS]
    assert nothing.passed
    assert "a set of up to about 880 transformations" in sentence(nothing.finding)


def test_a_finite_set_must_be_tried_as_a_whole() -> None:
    unnoticed = replace(sample(), criteria={"linking": claim("low", 5.0, (2.0, 10.0))})

    def check(**draws: float) -> Check:
        return made(unnoticed, replace(FINE, draws=RepeatedDraws(**draws)))[trust.DRAWS]  # type: ignore[arg-type]

    every = check(named=18, set_size=20, tried=20)
    assert every.passed
    assert "tried each of the 20 draws" in sentence(every.finding)
    part = check(named=18, set_size=20, tried=7)
    assert part.failed
    assert "tried 7 of them on everybody" in sentence(part.finding)
    assert check(set_size=1000).failed  # declared, and nothing of it noticed
    more = check(named=2, set_size=2, tried=2, p=0.01)  # what is named is not all that repeats
    assert more.failed
    assert "more alike than these draws explain" in sentence(more.finding)
    assert check(named=2, set_size=2, tried=2, size=300).failed
    assert check(named=18, set_size=20, tried=20, size=21).passed


def test_every_check_says_what_its_failure_means() -> None:
    evidence = TrustFacts(
        compared=4,
        unchanged=4,
        trials=4,
        copies=4,
        overlap={"train_original": 2},
        targets=FLATTERING,
        ahead={"somebody": 0.4},
        ids_p=0.0,
    )
    results = with_attackers(
        original=[eer(40)], ignorant=[eer(10), d_ece(0.1, 0.4)], informed=[eer(30)], lazy_informed=[eer(20)]
    )
    tied = {name: replace(holder, ties=50.0) for name, holder in results.attackers.items()}
    results = replace(
        results,
        attackers=tied,
        criteria={"linking": claim("raised", 30.0, (10.0, 60.0))},
        protocol=replace(results.protocol, same_session=90.0),
    )
    checks = made(results, evidence)
    expected = {
        trust.STRONG: HIGHER,
        trust.HEARD: HIGHER,
        trust.ADAPTED: HIGHER,
        trust.CHANGED: "not protected at all",
        trust.OWN_IDS: EITHER,
        trust.COPIES: LOWER,
        trust.ENOUGH: EITHER,
        trust.OTHERS: LOWER,
        trust.SESSIONS: LOWER,
        trust.TIES: EITHER,
        trust.UPRIGHT: HIGHER,
        trust.OWN_RUNS: HIGHER,
        trust.RELEASE: HIGHER,
        trust.LENGTHS: HIGHER,
        trust.DRAWS: HIGHER,
        TARGETS: HIGHER,
        STILL_SPEECH: EITHER,
    }
    unfailed = {name for name, check in checks.items() if not check.failed}
    assert unfailed == {trust.OWN_RUNS, trust.RELEASE, trust.LENGTHS, trust.DRAWS, STILL_SPEECH}
    assert set(checks) == set(expected)
    doubts = list(map(text, trust.doubts(replace(results, checks=tuple(checks.values())))))
    for name, words in expected.items():
        assert words in sentence(trust.meaning(checks[name])), name
        if checks[name].failed:
            assert f"{sentence(checks[name].finding)} {sentence(trust.meaning(checks[name]))}" in doubts


def test_a_reversed_sign_that_chance_explains_is_told_as_it_is() -> None:
    finding = Finding.of("inverted_scores", passed=True, attacker="ignorant", flipped=0.011, reported=0.003)
    assert sentence(finding) == "With their sign reversed, scores disclose 0.011 bit at most, which chance explains."
