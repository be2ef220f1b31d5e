"""Intervals are the same wherever their resamples ran, and however many at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilmeter.core.cluster import Cluster
from veilmeter.core.engine import Engine, Pool
from veilmeter.core.intervals import draw_people
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.scores import Scores
from veilmeter.metrics.legal import ranks
from veilmeter.metrics.legal.linkability import count_links
from veilmeter.metrics.legal.ranks import rank_estimates
from veilmeter.metrics.scores import resampling
from veilmeter.metrics.scores.forms import SortedScores
from veilmeter.metrics.scores.resampling import common_draws
from veilmeter.metrics.scores.score_sets import compare_sets
from veilmeter.metrics.scores.summary import measure, replicates_of
from veilmeter.metrics.similarity import spread as similarity_spread
from veilmeter.metrics.similarity.matrices import similarity

PEOPLE = 24


class Backwards:
    """The last item first, as a cluster may do it."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self.items = 0

    def run(self, task: Callable[[Any], Any], items: Sequence[Any]) -> Iterator[tuple[int, Any]]:
        self.items += len(items)
        for number in reversed(range(len(items))):
            yield number, task(items[number])

    def close(self) -> None:
        pass


@pytest.fixture(autouse=True)
def _everything_is_worth_sending(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resampling, "WORTH_SENDING", 0)
    monkeypatch.setattr(ranks, "WORTH_SENDING", 0)
    monkeypatch.setattr(similarity_spread, "SENT", (0, 10**12))


def trials(seed: int = 0, shift: float = 1.0, each: int = 5) -> Scores:
    rng = np.random.default_rng(seed)
    enroll, test = np.repeat(np.arange(PEOPLE), PEOPLE * each), np.tile(np.repeat(np.arange(PEOPLE), each), PEOPLE)
    return Scores(rng.normal(size=len(enroll)) + shift * (enroll == test), enroll == test, enroll, test)


def voices(seed: int, each: int, noise: float) -> Embeddings:
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(PEOPLE), each)
    vectors = np.random.default_rng(7).normal(size=(PEOPLE, 16))[codes] + noise * rng.normal(size=(len(codes), 16))
    return Embeddings(vectors, [f"{seed}-{i}" for i in range(len(codes))], [f"s{code}" for code in codes])


def everything(engine: Engine | None) -> dict[str, Any]:
    """Every measure whose resamples an engine may do."""
    sets = [trials(seed, shift) for seed, shift in ((0, 2.0), (1, 1.0), (2, 0.5))]
    link = count_links(voices(0, 1, 0.3), voices(1, 4, 1.5))
    clear, veiled = voices(2, 3, 0.5), voices(3, 3, 2.0)
    found = similarity(clear.vectors, veiled.vectors, list(clear.speakers), spreads=True, engine=engine)
    return {
        "page": measure(sets[1], resamples=90, engine=engine),
        "compared": compare_sets(*sets, resamples=90, engine=engine),
        "ranks": rank_estimates(link, engine=engine),
        "similarity": {kind: [a.tobytes() for a in (s.without, s.without_log, s.chance, s.chance_log)]
                       for kind, s in found.spreads.items()},
    }  # fmt: skip


@pytest.fixture(scope="module")
def here() -> dict[str, Any]:
    return everything(None)


@pytest.mark.parametrize("workers", [1, 2, 7])
def test_the_same_with_any_number_of_workers_in_any_order(workers: int, here: dict[str, Any]) -> None:
    engine = Backwards(workers)
    assert everything(engine) == here
    assert engine.items > 5


def test_the_same_in_a_pool_of_processes(here: dict[str, Any]) -> None:
    pool = Pool(2)
    try:
        assert everything(pool) == here
    finally:
        pool.close()


def test_the_same_on_a_cluster(here: dict[str, Any]) -> None:
    pytest.importorskip("distributed")
    cluster = Cluster("local", 2)
    try:
        assert everything(cluster) == here
    finally:
        cluster.close()


def test_small_work_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    engine = Backwards(4)
    everything(engine)
    assert engine.items == 0


def test_a_resample_depends_on_its_number_alone() -> None:
    """More resamples add to the ones there were; sets of more or fewer trials draw the same people."""
    few, many = draw_people(3, 10, range(20)), draw_people(3, 10, range(50))
    np.testing.assert_array_equal(few, many[:, :20])
    np.testing.assert_array_equal(draw_people(3, 10, range(20, 50)), many[:, 20:])
    assert (many.sum(axis=0) == 10).all()
    assert len(np.unique(many, axis=1).T) > 40


def test_of_very_many_impostors_a_part_gives_the_same_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = measure(trials(0, 1.5), resamples=200)
    monkeypatch.setattr(resampling, "MOST_IMPOSTORS", len(trials(0, 1.5).impostors) // 2)
    part = measure(trials(0, 1.5), resamples=200)
    for name in ("eer", "d_ece", "min_cllr", "cllr"):
        assert part[name].value == whole[name].value
        width = whole[name].interval[1] - whole[name].interval[0]
        assert part[name].interval == pytest.approx(whole[name].interval, abs=0.15 * width)


def test_stand_ins_count_for_all_that_were_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = trials(0, 1.5)
    monkeypatch.setattr(resampling, "MOST_IMPOSTORS", len(scores.impostors) // 4)
    kept, stand_ins = resampling._thin(scores, np.sort(scores.impostors), 0)
    impostors = scores.values[kept][~scores.is_target[kept]]
    low = impostors <= stand_ins.bound
    assert 0 < np.count_nonzero(low) < len(impostors) <= len(scores.impostors) // 4
    assert np.isclose(np.where(low, stand_ins.number, 1).sum(), len(scores.impostors))
    assert np.array_equal(np.sort(impostors[~low]), np.sort(scores.impostors[scores.impostors > stand_ins.bound]))
    assert np.count_nonzero(scores.is_target[kept]) == len(scores.targets)


def test_sets_of_different_sizes_are_compared_by_the_draws_they_share(monkeypatch: pytest.MonkeyPatch) -> None:
    few, many = trials(0, 1.5, each=2), trials(1, 1.0, each=5)
    monkeypatch.setattr(resampling, "MANY_TRIALS", len(few))
    monkeypatch.setattr(resampling, "FEWEST", 60)
    spreads = [replicates_of(s, SortedScores.from_arrays(s.targets, s.impostors), 150, 0) for s in (few, many)]
    assert [len(spread.samples["eer"]) for spread in spreads] == [150, 60]
    assert [len(drawn) for drawn in common_draws(spreads, "eer")] == [60, 60]
    assert compare_sets(many, few, few, resamples=150)["g_d_ece"].interval is not None


def test_two_people_can_be_resampled_though_neither_can_be_left_out() -> None:
    """Without one of them there are no impostors: every second draw has none, too, and all jackknife values."""
    names = np.array(["a", "b"], object)
    matrix = np.random.default_rng(0).standard_normal((2, 8))
    scores = Scores.from_matrix(matrix, names, names.repeat(4))
    intervals = [measure(scores, resamples=20, seed=seed)["d_ece"].interval for seed in range(8)]
    known = [interval for interval in intervals if interval is not None]
    assert known
    assert all(low <= high for low, high in known)


@st.composite
def random_trials(draw: st.DrawFn) -> Scores:
    """Some people with scores that separate them hardly, well or fully; some of them differ from the others."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    people, each = draw(st.integers(3, 12)), draw(st.integers(1, 8))
    distance = draw(st.sampled_from([0.0, 0.3, 2.0, 5.0, 30.0])) * np.ones(people)
    distance[: draw(st.integers(0, 2))] = draw(st.sampled_from([0.0, 30.0]))
    enroll, test = np.repeat(np.arange(people), people * each), np.tile(np.repeat(np.arange(people), each), people)
    noise = rng.normal(size=len(enroll)) + rng.normal(size=people)[enroll]
    return Scores(noise + (enroll == test) * distance[enroll], enroll == test, enroll, test)


@given(random_trials())
@settings(max_examples=40, deadline=None)
def test_nested_measures_have_nested_intervals(scores: Scores) -> None:
    """What can't be larger than another measure has no end of its interval above that of the other."""
    found = measure(scores, resamples=50)
    chains = [[f"tpr@fpr={rate}" for rate in ("0.0001", "0.001", "0.01")], ["min_cllr", "cllr"]]
    for chain in chains:
        for small, large in pairwise(found[name] for name in chain):
            assert small.value <= large.value + 1e-9
            for below, above in zip(small.interval, large.interval, strict=True):
                assert below <= above + 1e-9
    for point in found:
        assert point.interval is None or point.interval[0] - 1e-9 <= point.value <= point.interval[1] + 1e-9


def test_no_error_at_all_is_not_less_certain_than_a_few() -> None:
    none, few = trials(0, 9.0), trials(0, 4.0)
    for name, end in (("eer", 1), ("tpr@fpr=0.01", 0), ("min_cllr", 1), ("d_ece", 0)):
        sign = 1 if end else -1
        certain, doubtful = (sign * measure(scores, resamples=60)[name].interval[end] for scores in (none, few))
        assert certain <= doubtful + 0.05 * abs(doubtful), name


def test_one_person_among_many_does_not_open_the_interval() -> None:
    """D_ECE of 16 people, one of whom nobody recognizes: a plain bootstrap over people gives 0.43 to 0.72."""
    rng = np.random.default_rng(0)
    enroll, test = np.repeat(np.arange(16), 16 * 20), np.tile(np.repeat(np.arange(16), 20), 16)
    distance = np.where(np.arange(16) == 3, 0.0, 6.0)
    scores = Scores(rng.normal(size=len(enroll)) + distance[enroll] * (enroll == test), enroll == test, enroll, test)
    point = measure(scores, resamples=300)["d_ece"]
    assert point.value == pytest.approx(0.59, abs=0.02)
    assert 0.2 < point.interval[0] < 0.43
    assert point.interval[1] == pytest.approx(0.7213, abs=0.02)
    spread = replicates_of(scores, SortedScores(*scores.ordered), 300, 0).samples["d_ece"]
    assert np.quantile(spread, 0.025) > point.interval[0]


def test_trials_of_one_person_count_for_less_the_more_they_have_in_common() -> None:
    def independent(shared: float) -> int:
        rng = np.random.default_rng(1)
        own = np.sqrt(shared) * rng.normal(size=PEOPLE)
        scores = trials(1, 0.0)
        values = np.sqrt(1 - shared) * scores.values + own[scores.enroll_speaker] * scores.is_target
        return resampling.independent_trials(
            Scores(values, scores.is_target, scores.enroll_speaker, scores.test_speaker)
        )

    counts = [independent(share) for share in (0.0, 0.3, 0.7, 1.0)]
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] == PEOPLE < counts[0] <= 5 * PEOPLE
    unknown = trials(1, 0.0)
    assert resampling.independent_trials(Scores(unknown.values, unknown.is_target)) == len(unknown.targets)
