from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest

from veilmeter import inversion
from veilmeter.attacks.inversion.attack import fit_preprocessing, unit_rows
from veilmeter.attacks.inversion.measures import InversionData, label_noise, learning_curve, permutation_null, shuffle
from veilmeter.attacks.inversion.procrustes import nearest_orthogonal
from veilmeter.core.engine import open_engine
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings, concatenate


def world(
    seed: int = 0, *, speakers: int = 8, each: int = 6, d: int = 12, noise: float = 0.1, part: str = "train"
) -> tuple[Embeddings, Embeddings]:
    """Clear voices, and the same turned by a rotation that depends on the gender: an anonymizer that can be undone."""
    people = np.random.default_rng(seed).standard_normal((speakers, d))
    turns = [nearest_orthogonal(np.random.default_rng([seed, g]).standard_normal((d, d))) for g in range(2)]
    rng = np.random.default_rng([seed, len(part)])
    codes = np.repeat(np.arange(speakers), each)
    clear = people[codes] + 0.3 * rng.standard_normal((len(codes), d))
    hidden = np.stack([row @ turns[code % 2] for row, code in zip(clear, codes, strict=True)])
    hidden += noise * rng.standard_normal(hidden.shape)
    names = [f"s{code}" for code in codes]
    ids = [f"s{code}-{part}-{n}" for n, code in enumerate(codes)]
    gender = {"gender": ["fm"[code % 2] for code in codes]}
    return Embeddings(clear, ids, names, gender), Embeddings(hidden, ids, names, gender)


def test_what_was_turned_is_turned_back() -> None:
    clear, hidden = world()
    clear_trials, hidden_trials = world(part="trials")
    before = inversion.evaluate(inversion.identity_map(12), hidden_trials, clear_trials).top1()
    found = inversion.attack(clear, hidden, hidden_trials, by_gender=True)
    after = inversion.evaluate(found.map, hidden_trials, clear_trials, clear)
    assert all(after.top1()[g][0] > 95 > 60 > before[g][0] for g in "fm")
    assert all(value < 5 for value in after.eer().values())
    assert found.restored.utterances.tolist() == hidden_trials.utterances.tolist()
    # One rotation can't undo two.
    one = inversion.attack(clear, hidden, hidden_trials).map
    misses = [
        np.linalg.norm(learnt.restore(hidden_trials).vectors - learnt.see(clear_trials).vectors)
        for learnt in (found.map, one)
    ]
    assert misses[0] < 0.7 * misses[1]


def test_apply_and_invert_are_each_others_inverse() -> None:
    clear, hidden = world(noise=0.0)
    learnt = inversion.learn(clear, hidden, inversion.InversionSettings(by="gender"))
    assert np.allclose(learnt.restore(hidden).vectors, unit_rows(clear.vectors), atol=1e-5)
    assert np.allclose(learnt.anonymize(clear).vectors, unit_rows(hidden.vectors), atol=1e-5)
    one = learnt.alignments["f"]
    assert np.allclose(one.restore(one.anonymize(clear.vectors)), one.see(clear.vectors))


def test_the_order_and_extra_utterances_do_not_matter() -> None:
    clear, hidden = world()
    settings = inversion.InversionSettings(pca=5, by="gender")
    order = np.random.default_rng(0).permutation(len(hidden))
    a = inversion.learn(clear.take(np.arange(40)), hidden.take(np.arange(40)), settings)
    b = inversion.learn(clear.take(np.arange(40)), hidden.take(order), settings)
    for gender in "fm":
        assert np.allclose(a.alignments[gender].rotation, b.alignments[gender].rotation, atol=1e-8)


@pytest.mark.parametrize("settings", [{"pca": 4, "by": "gender"}, {"center": True}, {}])
def test_a_map_survives_its_file(tmp_path: Path, settings: dict[str, object]) -> None:
    clear, hidden = world()
    learnt = inversion.learn(clear, hidden, inversion.InversionSettings(**settings))  # type: ignore[arg-type]
    learnt.save(tmp_path / "map.npz")
    back = inversion.load_map(tmp_path / "map.npz")
    assert np.array_equal(back.restore(hidden).vectors, learnt.restore(hidden).vectors)
    assert back.facts == json.loads(json.dumps(dict(learnt.facts)))
    assert (tmp_path / "map.npz").stat().st_mode & 0o777 == 0o600


def test_files_that_are_no_maps(tmp_path: Path) -> None:
    clear, hidden = world()
    path = tmp_path / "map.npz"
    inversion.learn(clear, hidden, inversion.InversionSettings()).save(path)
    whole = path.read_bytes()
    with pytest.raises(InputError, match="no such file"):
        inversion.load_map(tmp_path / "missing.npz")
    for bad in (b"", b"not a map", whole[: len(whole) // 2]):
        path.write_bytes(bad)
        with pytest.raises(InputError, match="not an inversion map"):
            inversion.load_map(path)
    np.savez(path, vectors=np.eye(3))
    with pytest.raises(InputError, match="not an inversion map"):
        inversion.load_map(path)
    # A pickle inside is refused, and a rotation that is none.
    np.savez(path, allow_pickle=True, about=np.array([{"format": 1}], dtype=object))
    with pytest.raises(InputError, match="not an inversion map"):
        inversion.load_map(path)
    path.write_bytes(whole)
    arrays = dict(np.load(path))
    arrays["0/rotation"] = 2 * arrays["0/rotation"]
    np.savez(path, **arrays)
    with pytest.raises(InputError, match="orthogonal"):
        inversion.load_map(path)
    assert zipfile.is_zipfile(path)


def test_pca_is_exact_and_its_signs_are_fixed() -> None:
    x = np.random.default_rng(0).standard_normal((30, 8))
    a, b = fit_preprocessing(x, pca=3), fit_preprocessing(x[::-1], pca=3)
    assert np.allclose(a.basis, b.basis)
    values = np.linalg.svd(x - x.mean(0))[1]
    assert np.sum(a.project(x) ** 2) == pytest.approx(np.sum(values[:3] ** 2))


def test_hard_inputs_are_handled_or_said() -> None:
    clear, hidden = world(speakers=4, each=2)
    trials = world(speakers=4, each=2, part="trials")
    few = inversion.learn(clear.take([0, 1, 2]), hidden, inversion.InversionSettings())  # fewer pairs than dimensions
    assert inversion.evaluate(few, trials[1], trials[0]).groups
    one = clear.take(clear.speakers == "s0"), hidden.take(hidden.speakers == "s0")  # one speaker only
    learnt = inversion.learn(*one, inversion.InversionSettings())
    alone = inversion.evaluate(learnt, one[1], one[0], one[0])
    assert alone.top1() == {"f": (100.0, 100.0)}
    assert alone.groups[0].whose.chance() == 100
    with pytest.raises(InputError, match="impostor"):
        alone.eer()
    same = hidden.with_vectors(np.ones_like(hidden.vectors))
    for settings in (
        inversion.InversionSettings(),
        inversion.InversionSettings(pca=2),
        inversion.InversionSettings("wasserstein"),
    ):
        with pytest.raises(InputError, match="the same"):
            inversion.learn(clear, same, settings)
    with pytest.raises(InputError, match="at least 50 training vectors"):
        inversion.learn(clear, hidden, inversion.InversionSettings(pca=50))
    other = Embeddings(hidden.vectors, [f"x{n}" for n in range(len(hidden))], hidden.speakers)
    with pytest.raises(InputError, match="no utterance is in both"):
        inversion.learn(clear, other, inversion.InversionSettings())
    unknown = Embeddings(clear.vectors, clear.utterances, clear.speakers)
    with pytest.raises(InputError, match="gender"):
        inversion.learn(unknown, other, inversion.InversionSettings(by="gender"))
    with pytest.raises(InputError, match="unknown inversion method"):
        inversion.InversionSettings("magic")  # type: ignore[arg-type]
    wide = hidden.with_vectors(np.ones((len(hidden), 13)) + np.eye(len(hidden), 13))
    with pytest.raises(InputError, match="no rotation leads"):
        inversion.learn(clear, wide, inversion.InversionSettings())
    assert inversion.learn(clear, wide, inversion.InversionSettings(pca=3)).dimension == 3
    women = inversion.learn(
        clear.take(clear.attributes["gender"] == "f"),
        hidden.take(hidden.attributes["gender"] == "f"),
        inversion.InversionSettings(by="gender"),
    )
    with pytest.raises(InputError, match="the map knows gender f"):
        women.restore(hidden)


def test_the_gender_is_that_of_the_person() -> None:
    """Cross-gender systems: the anonymized side names the pseudo-voice's gender."""
    clear, hidden = world(noise=0.1, speakers=10, each=8)
    crossed = {"gender": ["fm"[value == "f"] for value in hidden.attributes["gender"]]}
    cross = Embeddings(hidden.vectors, hidden.utterances, hidden.speakers, crossed)
    settings = inversion.InversionSettings(by="gender")
    wanted, found = (inversion.learn(clear, side, settings) for side in (hidden, cross))
    for group, alignment in wanted.alignments.items():
        np.testing.assert_array_equal(found.alignments[group].rotation, alignment.rotation)
    plain, crossed_trials = (inversion.evaluate(wanted, side, clear, clear) for side in (hidden, cross))
    assert plain.top1() == crossed_trials.top1()
    assert plain.eer() == crossed_trials.eer()


def inversion_data(noise: float = 0.1) -> InversionData:
    clear, hidden = world(noise=noise, speakers=10, each=8)
    clear_trials, hidden_trials = world(noise=noise, speakers=10, each=8, part="trials")
    return InversionData(clear, hidden, clear_trials, hidden_trials, inversion.InversionSettings(by="gender"))


def test_more_pairs_and_cleaner_pairs_help() -> None:
    curve = learning_curve(inversion_data(), sizes=[6, 80], repeats=3)["top1"]
    by_size = {(one.at["gender"], one.at["pairs"]): one.value for one in curve}
    assert all(by_size[g, 6] < by_size[g, 80] for g in "fm")
    noisy = label_noise(inversion_data(), shares=[0.0, 1.0], repeats=3)["top1"]
    by_share = {(one.at["gender"], one.at["wrong_pairs"]): one.value for one in noisy}
    assert all(by_share[g, 1.0] < 50 < by_share[g, 0.0] for g in "fm")


def test_the_permutation_null_shows_wrong_pairs() -> None:
    data = inversion_data()
    null = permutation_null(data, shuffles=10)
    wrong = shuffle(data.anonymized_train, 1.0, "gender", np.random.default_rng(99))
    for train, inside in ((data.anonymized_train, False), (wrong, True)):
        learnt = inversion.learn(data.clear_train, train, data.settings)
        found = inversion.evaluate(learnt, data.anonymized_trials, data.clear_trials).top1()
        for gender in "fm":
            high = null[f"top1@{gender}"][1][1]
            assert (found[gender][0] <= high + 15) == inside


def test_results_do_not_depend_on_the_number_of_processes() -> None:
    pool = open_engine(2)
    try:
        two = learning_curve(inversion_data(), sizes=[6, 20], repeats=2, engine=pool)
    finally:
        pool.close()
    assert two == learning_curve(inversion_data(), sizes=[6, 20], repeats=2)


def test_seeds_share_what_does_not_depend_on_them() -> None:
    clear, hidden = world(speakers=5, each=4)
    quick = inversion.Schedule(initial_steps=10, steps=16)
    settings = inversion.InversionSettings("wasserstein", schedule=quick)
    together = inversion.learn_seeds(clear, hidden, settings, [3, 4])
    alone = inversion.learn(clear, hidden, inversion.InversionSettings("wasserstein", seed=4, schedule=quick))
    assert np.allclose(together[1].alignments[""].rotation, alone.alignments[""].rotation)
    assert inversion.objective(together[1]) == pytest.approx(inversion.objective(alone))


def test_a_few_pairs_and_many_vectors() -> None:
    clear, hidden = world(speakers=10, each=8, noise=0.02, d=6)
    pairs = [str(u) for u in clear.utterances if u.endswith(("0", "5"))]
    plain = inversion.learn(clear, hidden, inversion.InversionSettings(by="gender"), pairs=pairs)
    sharp = inversion.learn(clear, hidden, inversion.InversionSettings(by="gender", rounds=20), pairs=pairs)
    truth = inversion.learn(clear, hidden, inversion.InversionSettings(by="gender"))
    for gender in "fm":
        to_truth = [
            np.linalg.norm(one.alignments[gender].rotation - truth.alignments[gender].rotation)
            for one in (plain, sharp)
        ]
        assert to_truth[1] <= to_truth[0]


def test_parts_are_joined() -> None:
    clear, hidden = world()
    f, m = (clear.take(clear.attributes["gender"] == g) for g in "fm")
    both = concatenate([f, m])
    assert len(both) == len(clear)
    assert set(both.attributes) == {"gender"}
    with pytest.raises(InputError, match="dimensions"):
        concatenate([f, hidden.take([0]).with_vectors(np.ones((1, 3)))])
