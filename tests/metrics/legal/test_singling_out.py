"""Singling Out: the reference's counts, the quick way against the plain one, chance, control."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings, unit
from veilmeter.metrics.legal import isolation
from veilmeter.metrics.legal.conversations import Conversations, conversations, models
from veilmeter.metrics.legal.isolation import (
    FEWEST,
    OF_OUTSIDERS,
    WITHOUT_TARGET,
    assign_outsiders,
    isolate,
    isolations,
)
from veilmeter.metrics.legal.singling_out import (
    PAPER_CHANCE,
    chance,
    chance_of_balanced_rule,
    count_isolations,
    singling_out_of_scores,
)


def voices():
    rng = np.random.default_rng(20250003)
    mu = rng.standard_normal((60, 16))
    return mu[:, None, :] + 1.5 * rng.standard_normal((60, 12, 16))


def embed(x, speakers, utterances):
    rows = [(s, u) for s in speakers for u in utterances(s)]
    return Embeddings([x[s, u] for s, u in rows], [f"{s}-{u}" for s, u in rows], [f"s{s}" for s, _ in rows])


def fixture(length):
    x = voices()
    said = embed(x, range(60), lambda s: range(10) if length == 1 else range(9 if s % 2 == 0 else 6))
    return embed(x, range(20), lambda s: (10, 11)), said


@pytest.mark.parametrize(("length", "n", "draws"), [(1, 20, 3), (1, 40, 3), (1, 60, 1), (3, 20, 3), (3, 60, 1)])
def test_the_reference(reference, length, n, draws):
    def subset(t, d):
        order = [(t + 7 * d + 1 + k) % 60 for k in range(60)]
        return [t, *[s for s in order if s != t][: n - 1]]

    enroll, test = fixture(length)
    said = conversations(test, length, least=2, most=10)
    subsets = [[subset(t, d) for d in range(draws)] for t in range(20)]
    isolated, hits = isolations(models(enroll).vectors, range(20), said, subsets, folds=10)
    wanted = reference["legal"]["singling_out"]["isolated"][f"L{length}_N{n}_draws{draws}"]
    assert f"{isolated.sum()}/{isolated.size}" == wanted
    assert not (hits & ~isolated).any()


@pytest.mark.parametrize(("length", "wanted"), [(1, 81 / 200), (3, 97 / 200)])
def test_everybody_needs_no_draws(length, wanted):
    """With all 60 speakers the subset is not random: the whole estimator gives the reference's fraction."""
    found = count_isolations(*fixture(length), [60], length=length, draws=2, control=False)
    assert found.estimate(60).value == pytest.approx(100 * wanted, abs=1e-12)


def made(seed, people, least=2, most=10, d=8):
    rng = np.random.default_rng(seed)
    counts = rng.integers(least, most + 1, people)
    mu = rng.standard_normal((people, d))
    vectors = mu.repeat(counts, axis=0) + rng.standard_normal((counts.sum(), d))
    names = tuple(f"s{s}" for s in range(people))
    said = Conversations(
        unit(vectors), np.repeat(np.arange(people), counts), names, 1, np.arange(len(vectors))[:, None]
    )
    return said, unit(mu), rng


def plainly(predicate, target, said, subset, fold, rule):
    """A loop over speakers, from the paper."""
    calibration, test = [], []
    for s in subset:
        rows = np.flatnonzero(said.speakers == s)
        for k, row in enumerate(rows):
            score = float(said.vectors[row] @ predicate)
            if k == fold % len(rows):
                test.append((score, s))
            else:
                calibration.append((score, len(rows)))
    calibration.sort(reverse=True)
    if rule == "paper":
        n = int((said.speakers == target).sum()) - 1
    else:
        mass, n = 0.0, 0
        while n < len(calibration) and mass + 1 / (calibration[n][1] - 1) <= 1 + 1e-9:
            mass += 1 / (calibration[n][1] - 1)
            n += 1
    threshold = (calibration[n - 1][0] + calibration[n][0]) / 2
    above = [s for score, s in test if score > threshold]
    return len(above) == 1, above == [target]


@settings(max_examples=25)
@given(st.integers(0, 10_000), st.sampled_from(["paper", "balanced"]), st.integers(2, 12))
def test_a_plain_loop_gives_the_same(seed, rule, n):
    said, mu, rng = made(seed, 12, most=6)
    target = int(rng.integers(12))
    subset = [target, *rng.permutation([s for s in range(12) if s != target])[: n - 1]]
    isolated, hits = isolations(mu[[target]], [target], said, [[subset]], folds=7, rule=rule)
    for fold in range(7):
        assert (isolated[0, 0, fold], hits[0, 0, fold]) == plainly(mu[target], target, said, subset, fold, rule)


@pytest.mark.parametrize("rule", ["paper", "balanced"])
@pytest.mark.parametrize("knows", [False, True])
@pytest.mark.parametrize("depth", [32, 14])
def test_lists_of_best_scores_give_what_whole_subsets_give(monkeypatch, rule, knows, depth):
    """Every size, from subsets looked at as a whole to lists of best scores, and lists too short for their case."""
    monkeypatch.setattr(isolation, "DEPTH", depth)
    monkeypatch.setattr(isolation, "COLUMNS", 1000)
    monkeypatch.setattr(isolation, "PREDICATES", 5)
    said, mu, rng = made(8, 900)
    targets = rng.choice(900, 8, replace=False)
    group = rng.integers(3, size=900)
    allowed = group[targets][:, None] == group if knows else None
    sizes = [2, 7, 30, 100, 300, 600, 900]
    found = isolate(
        mu[targets], targets, said, sizes, draws=3, folds=6, rule=rule, seed=1, allowed=allowed, absent=True
    )
    work = isolation._IsolationWork(said, sizes, 3, 6, rule, 1)
    assert 2 < work.whole < 600
    ranks = [work.ranks(int(t)) for t in targets]
    for counts, absent in zip(found, (False, True), strict=True):
        for j, n in enumerate(sizes):
            subsets = [[np.flatnonzero(one < n) for one in rank] for rank in ranks]
            assert all(t in some and len(some) == n for t, draw in zip(targets, subsets, strict=True) for some in draw)
            if absent:  # the target is absent, the next person of the order takes their place
                subsets = [[np.flatnonzero((one >= 1) & (one <= n)) for one in rank] for rank in ranks]
                assert not any(t in some for t, draw in zip(targets, subsets, strict=True) for some in draw)
            isolated, hits = isolations(mu[targets], targets, said, subsets, folds=6, rule=rule, allowed=allowed)
            np.testing.assert_array_equal(isolated.sum(2), counts.isolated[:, j])
            np.testing.assert_array_equal(hits.sum(2), counts.hits[:, j])


def test_conversations_on_disk_are_read_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr(isolation, "COLUMNS", 500)
    said, mu, _ = made(16, 400)
    disk = np.memmap(tmp_path / "said.f32", np.float32, "w+", shape=said.vectors.shape)
    disk[:] = said.vectors
    there = Conversations(disk, said.speakers, said.names, 1, said.utterances)
    one, two = (isolate(mu[:6], np.arange(6), where, [20, 400])[0] for where in (said, there))
    np.testing.assert_array_equal(one.isolated, two.isolated)


def test_draws_and_folds_differ():
    said, mu, _ = made(9, 60, least=10)
    work = isolation._IsolationWork(said, [20], 4, 10, "paper", 0)
    rank = work.ranks(3)
    assert (rank[:, 3] == 0).all()
    assert all(sorted(one) == list(range(60)) for one in rank.tolist())
    subsets = {tuple(np.flatnonzero(one < 20)) for one in rank}
    assert len(subsets) == 4
    folds = isolations(mu[:20], range(20), said, [[np.arange(60)]] * 20, folds=10)[0][:, 0]
    assert len({tuple(column) for column in folds.T.tolist()}) == 10
    # subsets depend on the seed and the target alone
    one = isolate(mu[:5], np.arange(5), said, [20])[0].isolated
    two = isolate(mu[[4, 2]], np.array([4, 2]), said, [20])[0].isolated
    np.testing.assert_array_equal(one[[4, 2]], two)
    assert (isolate(mu[:5], np.arange(5), said, [20], seed=1)[0].isolated != one).any()


def test_chance_of_the_reference(reference):
    wanted = reference["legal"]["chance"]
    assert chance(9, 9) == pytest.approx(wanted["singling_out_iid_M9"], abs=5e-5)
    for key, value in wanted["by_K_target_K_others"].items():
        target, others = map(int, key.split(","))
        assert chance(target - 1, others - 1) == pytest.approx(value, abs=6e-4)


@pytest.mark.parametrize(("rule", "counts"), [("paper", (10, 10)), ("paper", (3, 7)), ("balanced", (3, 7))])
def test_chance_is_what_scores_without_information_give(rule, counts):
    """Vectors in a space so large that a predicate says nothing about anybody, nor a speaker about themselves."""
    rng = np.random.default_rng(10)
    people, predicates = 600, 250
    k = rng.choice(counts, people)
    said = Conversations(
        rng.standard_normal((k.sum(), predicates)).astype(np.float32),
        np.repeat(np.arange(people), k),
        tuple(f"s{s}" for s in range(people)),
        1,
        np.arange(k.sum())[:, None],
    )
    targets = np.arange(predicates)
    found = isolate(np.eye(predicates, dtype=np.float32), targets, said, [500], draws=4, rule=rule)[0].isolated
    each = found[:, 0].mean(axis=1) / 10
    if rule == "balanced":
        expected = chance_of_balanced_rule(k - 1)
    else:
        expected = float(np.mean([chance(int(n), float((k - 1).mean())) for n in k[targets] - 1]))
    assert abs(each.mean() - expected) < 4 * each.std() / np.sqrt(predicates) + 0.004
    assert expected < PAPER_CHANCE


def test_balanced_and_paper_rule_agree_where_all_have_the_same():
    said, mu, _ = made(11, 50, least=6, most=6)
    subsets = [[np.arange(50)]] * 10
    one, two = (isolations(mu[:10], range(10), said, subsets, rule=rule)[0] for rule in ("paper", "balanced"))
    np.testing.assert_array_equal(one, two)


def population(seed, enrolled, tested, noise=1.0, d=12, k=10):
    rng = np.random.default_rng(seed)
    mu = rng.standard_normal((max(*enrolled, *tested) + 1, d))
    x = {s: mu[s] + noise * rng.standard_normal((k + 5, d)) for s in {*enrolled, *tested}}

    def part(who, which):
        rows = [(s, u) for s in who for u in which]
        return Embeddings([x[s][u] for s, u in rows], [f"{s}-{u}" for s, u in rows], [f"s{s}" for s, _ in rows])

    return part(enrolled, range(k, k + 5)), part(tested, range(k))


def test_voices_that_are_known_are_singled_out_and_the_control_is_not():
    enroll, test = population(12, range(80), range(60), noise=0.3)
    found = count_isolations(enroll, test, [10, 60])
    for n in (10, 60):
        attack, control = found.estimate(n), found.control_estimate(n)
        risk, hit = found.residual_risk(n), found.hit_share(n)
        assert attack.value > 85
        assert attack.value > control.interval[1]
        assert risk.value == pytest.approx(100 * (attack.value - control.value) / (100 - control.value))
        assert risk.interval[0] > 30
        assert hit.value > 90
        assert attack.extra["paper_chance"] == 100 * PAPER_CHANCE
        assert attack.null == pytest.approx(100 * chance(9, 9))
    curves = found.estimates()
    assert list(curves) == ["singling_out", "control", "residual_risk", "hit_share"]
    assert [one.at["speakers"] for one in curves["control"]] == [10, 60]


def test_voices_that_say_nothing_leave_no_residual_risk():
    enroll, test = population(13, range(120), range(120), noise=0.5)
    rng = np.random.default_rng(0)
    enroll = enroll.with_vectors(rng.standard_normal(enroll.vectors.shape))
    found = count_isolations(enroll, test, [60])
    low, high = found.residual_risk(60).interval
    assert low < 0 < high
    assert found.control_estimate(60).value > 100 * chance(9, 9) + 3  # speakers are consistent with themselves
    assert found.hit_share(60).value < 10


def leaking(seed, leak, people=30, d=192):
    """Released voices, and an attacker's voices of the same people that share the given part with them."""
    rng = np.random.default_rng(seed)
    mu, unrelated = rng.standard_normal((2, people, d))
    known = np.sqrt(leak) * mu + np.sqrt(1 - leak) * unrelated
    names = np.array([f"s{s}" for s in range(people)], object)

    def spoken(voices, times):
        who = np.arange(people).repeat(times)
        return Embeddings(
            voices[who] + rng.standard_normal((len(who), d)), [str(i) for i in range(len(who))], names[who]
        )

    return spoken(known, 3), spoken(mu, 10)


@pytest.mark.parametrize(("leak", "low", "high"), [(0.0, -0.02, 0.02), (0.14, 0.42, 0.56)])
def test_the_control_knows_nobody(leak, low, high):
    """Without a leak nothing is left over, with one all of it is: voices of people in the set would hide it."""
    found = [count_isolations(*leaking(seed, leak), [30], draws=1) for seed in range(12)]
    assert 100 * low < np.mean([one.residual_risk(30).value for one in found]) < 100 * high


@settings(max_examples=15)
@given(st.integers(0, 10_000), st.sampled_from(["paper", "balanced"]))
def test_the_control_by_a_plain_loop(seed, rule):
    """Each person's own rule, with the calibration of the attack, in the set without them."""
    said, mu, _ = made(seed, 7, most=5)
    enroll = Embeddings(mu, [f"e{s}" for s in range(7)], said.names)
    test = Embeddings(said.vectors, [str(i) for i in range(len(said))], np.array(said.names, object)[said.speakers])
    found = count_isolations(enroll, test, [7], draws=1, folds=5, rule=rule)
    for t in range(7):
        others = [s for s in range(7) if s != t]
        expected = [plainly(models(enroll).vectors[t], t, said, others, fold, rule)[0] for fold in range(5)]
        assert found.per_predicate(7, control=True)[t] == pytest.approx(np.mean(expected))


def test_a_matrix_of_scores_gives_what_vectors_give():
    enroll, test = population(17, range(30), range(30))
    said = conversations(test, 1, least=2, most=10)
    scores = models(enroll).vectors @ said.vectors.T
    of_vectors = count_isolations(enroll, test, [8, 30], draws=2)
    of_scores = singling_out_of_scores(scores, enroll.names, said, [8, 30], draws=2)
    np.testing.assert_array_equal(of_vectors.attack.isolated, of_scores.attack.isolated)
    np.testing.assert_array_equal(of_vectors.control.isolated, of_scores.control.isolated)


def test_speakers_with_too_little_speech_are_left_out_and_named():
    enroll, test = population(14, range(12), range(12))
    keep = [u for u in test.utterances if not (u.startswith("3-") and int(u[2:]) > 4)]
    found = count_isolations(enroll, test.of_utterances(keep), [5], length=3, draws=1)
    assert found.dropped == ("s3",)
    assert found.people == 11
    assert "s3" not in found.names
    with pytest.raises(InputError, match="give numbers from 2 to 11"):
        count_isolations(enroll, test.of_utterances(keep), [12], length=3)
    with pytest.raises(InputError, match="no speaker has 22"):
        count_isolations(enroll, test, [5], length=11)
    with pytest.raises(InputError, match="unknown rule"):
        count_isolations(enroll, test, [5], rule="fair")


def test_some_predicates_are_drawn_at_random_but_always_the_same():
    enroll, test = population(15, range(40), range(30))
    one, two = (count_isolations(enroll, test, [10], predicates=7, seed=s, draws=1) for s in (0, 1))
    again = count_isolations(enroll, test, [10], predicates=7, draws=1)
    assert len(one.names) == 7
    assert one.names == again.names != two.names
    np.testing.assert_array_equal(one.attack.isolated, again.attack.isolated)


@pytest.mark.parametrize("dimension", [12, 37, 192, 256])
def test_voices_that_are_all_the_same_isolate_nobody(dimension):
    """An anonymizer with one voice for everybody: rounding in a matrix product must not tell people apart."""
    voice = np.random.default_rng(dimension).standard_normal(dimension)
    names = [f"s{i // 7}" for i in range(280)]
    one = Embeddings(np.tile(voice, (280, 1)), [str(i) for i in range(280)], names)
    found = count_isolations(one, one, [5, 20, 40], draws=2)
    for n in (5, 20, 40):
        assert found.estimate(n).value == 0
        assert found.control_estimate(n).value == 0


def test_twins_are_found():
    x = np.random.default_rng(0).standard_normal((6, 5))
    x[4] = x[1]
    x[2, :2] = x[0, :2]  # the same beginning does not make twins
    said = conversations(Embeddings(x, list("abcdef"), ["s", "s", "s", "t", "t", "t"]))
    assert said.twins.tolist() == [-1, 1, -1, -1, 1, -1]


def test_without_sizes_it_is_among_all_who_can_be_tested():
    rng = np.random.default_rng(2)
    names = [f"s{i // 4}" for i in range(24)] + ["short"]
    some = Embeddings(rng.standard_normal((25, 6)), [str(i) for i in range(25)], names)
    assert count_isolations(some, some, draws=1).sizes == (6,)


INSIDE, EACH, DIMENSION = 30, 6, 24


def sides(
    outsiders: int, *, leak: float = 0.0, shift: float = 0.0, genders: str = "", seed: int = 0
) -> tuple[Embeddings, Embeddings]:
    """Enrolled people, of whom the last ones have no test recordings. Everybody is consistent with themselves in the
    test; `leak` is what the enrollment knows of that, and outsiders lie `shift` away from the others."""
    rng = np.random.default_rng(seed)
    people = INSIDE + outsiders
    heard = rng.standard_normal((people, DIMENSION))
    known = leak * heard + rng.standard_normal(heard.shape)
    known[INSIDE:] += shift
    heard += shift / 3  # voices have something in common, which rules of others do not
    names = [f"s{person:03d}" for person in range(people)]
    columns = {"gender": list(genders)} if genders else None
    enroll = Embeddings(known, names, names, columns)
    own = np.arange(INSIDE).repeat(EACH)
    test = heard[own] + 0.5 * rng.standard_normal((len(own), DIMENSION))
    return enroll, Embeddings(test, [f"{names[i]}-{row}" for row, i in enumerate(own)], [names[i] for i in own])


def test_outsiders_serve_as_control_exactly() -> None:
    enroll, test = sides(40, seed=1)
    measured = count_isolations(enroll, test, [INSIDE], draws=1)
    assert measured.controlled is not None
    assert measured.controlled.method == OF_OUTSIDERS
    tested, people = conversations(test, 1, least=2, most=10, seed=0), models(enroll)
    chosen = assign_outsiders(np.arange(INSIDE, INSIDE + 40), np.arange(INSIDE), [""] * len(people), 0)
    assert chosen is not None
    everybody = [[np.arange(INSIDE)]] * INSIDE
    isolated, _ = isolations(people.vectors[chosen], np.arange(INSIDE), tested, everybody)
    np.testing.assert_array_equal(measured.per_predicate(INSIDE, control=True), isolated[:, 0].mean(axis=1))
    # The same from scores alone.
    columns = tested.vectors @ people.vectors.T
    again = singling_out_of_scores(columns.T, people.names, tested, [INSIDE], draws=1)
    np.testing.assert_array_equal(again.per_predicate(INSIDE, control=True), isolated[:, 0].mean(axis=1))


@pytest.mark.parametrize("outsiders", [0, 40])
def test_without_a_leak_nothing_is_left_beyond_the_control(outsiders: int) -> None:
    risks = [count_isolations(*sides(outsiders, seed=seed), [INSIDE]).residual_risk(INSIDE) for seed in range(6)]
    assert abs(np.mean([risk.value for risk in risks])) < 6
    assert sum(risk.interval[0] <= 0 <= risk.interval[1] for risk in risks if risk.interval) >= 5


def test_both_controls_see_the_same_leak() -> None:
    alone, with_outsiders = (
        np.mean([count_isolations(*sides(n, leak=1.0, seed=s), [INSIDE]).residual_risk(INSIDE).value for s in range(6)])
        for n in (0, 40)
    )
    assert alone > 0.2
    assert with_outsiders == pytest.approx(alone, abs=8)


def test_outsiders_unlike_the_others_do_not_serve_and_that_is_said() -> None:
    enroll, test = sides(40, shift=-1.0, seed=2)
    measured = count_isolations(enroll, test, [INSIDE])
    method = measured.control_estimate(INSIDE).method
    assert method.startswith(WITHOUT_TARGET)
    assert "isolate differently" in method
    plain = count_isolations(*sides(0, shift=-1.0, seed=2), [INSIDE])
    assert abs(measured.residual_risk(INSIDE).value) < 15
    assert plain.control_estimate(INSIDE).method == WITHOUT_TARGET


def test_few_outsiders_or_of_another_gender_do_not_serve() -> None:
    few = count_isolations(*sides(FEWEST - 1, seed=3), [INSIDE])
    assert "too few" in few.control_estimate(INSIDE).method
    others = count_isolations(*sides(40, genders="f" * INSIDE + "m" * 40, seed=3), [INSIDE])
    assert "of another gender" in others.control_estimate(INSIDE).method


def test_outsiders_are_used_alike_and_stay_within_their_kind() -> None:
    kinds = ["f"] * 20 + ["m"] * 10 + ["f"] * 12 + ["m"] * 15
    chosen: NDArray[np.int64] | None = assign_outsiders(np.arange(30, 57), np.arange(30), kinds, 0)
    assert chosen is not None
    assert all(kinds[row] == kinds[target] for target, row in enumerate(chosen))
    assert np.bincount(chosen)[30:42].tolist().count(2) == 8
    assert assign_outsiders(np.arange(30, 42), np.arange(30), kinds, 0) is None
