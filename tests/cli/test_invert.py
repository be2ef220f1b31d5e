from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from veilmeter.attacks.inversion.procrustes import nearest_orthogonal
from veilmeter.cli.main import app
from veilmeter.core.errors import VeilmeterError
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings

runner = CliRunner()


@pytest.fixture(scope="module")
def sets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two runs of an anonymizer that is a rotation, as files."""
    folder = tmp_path_factory.mktemp("sets")
    rng = np.random.default_rng(0)
    people, turn = rng.standard_normal((8, 10)), nearest_orthogonal(rng.standard_normal((10, 10)))
    codes = np.repeat(np.arange(8), 5)
    made = {}
    for part in ("train", "trials"):
        clear = people[codes] + 0.3 * rng.standard_normal((40, 10))
        ids = [f"s{c}-{part}-{n}" for n, c in enumerate(codes)]
        names, gender = [f"s{c}" for c in codes], {"gender": ["fm"[c % 2] for c in codes]}
        for name, vectors in {
            f"clear_{part}": clear,
            f"hidden_{part}": clear @ turn + 0.1 * rng.standard_normal((40, 10)),
            f"again_{part}": clear @ turn + 0.1 * rng.standard_normal((40, 10)),
        }.items():
            made[name] = str(folder / f"{name}.npz")
            write_embeddings(Embeddings(vectors, ids, names, gender), made[name])
    key = folder / "key"
    key.write_text(
        "".join(
            f"s{s} s{c}-trials-{n} {'target' if s == c else 'nontarget'}\n"
            for s in range(8)
            for n, c in enumerate(codes)
            if s % 2 == c % 2
        )
    )
    return made | {"key": str(key)}


def attack(sets: dict[str, str], *more: str) -> list[str]:
    return [
        "invert", "--clear-train", sets["clear_train"], "--anonymized-train", sets["hidden_train"],
        "--clear-trials", sets["clear_trials"], "--anonymized-trials", sets["hidden_trials"], "--jobs", "1", *more,
    ]  # fmt: skip


def run(arguments: list[str]) -> dict[str, object]:
    result = runner.invoke(app, [*arguments, "--json"], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found: dict[str, object] = json.loads(result.stdout)
    return found


def test_everything_at_once(sets: dict[str, str], tmp_path: Path) -> None:
    found = run(
        attack(sets, "--learning-curve", "--label-noise", "--repeats", "2", "--shuffles", "6", "--trials", sets["key"],
               "--other-run", sets["again_trials"], "--save-map", str(tmp_path / "m.npz"), "--figures",
               str(tmp_path / "f"))
    )  # fmt: skip
    estimates = found["estimates"]
    assert isinstance(estimates, dict)
    for one in estimates["top1"]:
        assert one["value"] > 90 > 60 > one["null_range"][1]
        assert one["interval"][0] <= one["value"] <= one["interval"][1]
    assert all(a["value"] < b["value"] for a, b in zip(estimates["top1_before"], estimates["top1"], strict=True))
    assert all(one["value"] > 90 for one in estimates["top1_again"])  # the map carries over to another run
    assert all(one["value"] < 10 for one in estimates["eer"])
    assert {one["pairs"] for one in estimates["learning_curve"]} == {5, 10, 20, 40}
    assert {one["wrong_pairs"] for one in estimates["label_noise"]} == {0, 0.1, 0.25, 0.5, 0.75, 1}
    assert len(found["per_speaker"]) == 8  # type: ignore[arg-type]
    assert sorted(p.name for p in (tmp_path / "f").glob("*.svg")) == [
        "inversion_label_noise.svg",
        "inversion_learning_curve.svg",
        "inversion_projection.svg",
        "inversion_speakers.svg",
    ]
    kept = run(
        ["invert", "--load-map", str(tmp_path / "m.npz"), "--clear-trials", sets["clear_trials"],
         "--anonymized-trials", sets["hidden_trials"], "--enroll", sets["clear_train"], "--jobs", "1"]
    )  # fmt: skip
    again = kept["estimates"]
    assert isinstance(again, dict)
    assert [one["value"] for one in again["top1"]] == [one["value"] for one in estimates["top1"]]


def test_jobs_do_not_change_the_results(sets: dict[str, str]) -> None:
    arguments = attack(sets, "--method", "wasserstein", "--seeds", "3", "--no-intervals", "--pca", "3")
    one = run(arguments)
    two = run([*arguments[: arguments.index("--jobs")], "--jobs", "2", *arguments[arguments.index("--jobs") + 2 :]])
    assert one == two
    assert len(one["seeds"]) == 3  # type: ignore[arg-type]
    assert any(warning["code"] == "inversion_spread" for warning in one["warnings"])  # type: ignore[attr-defined]


def test_wrong_pairs_are_noticed(sets: dict[str, str], tmp_path: Path) -> None:
    from veilmeter.data.formats.vectors import read_embeddings

    hidden = read_embeddings(sets["hidden_train"])
    wrong = hidden.with_vectors(hidden.vectors[np.random.default_rng(3).permutation(len(hidden))])
    write_embeddings(wrong, tmp_path / "wrong.npz")
    found = run(attack(sets | {"hidden_train": str(tmp_path / "wrong.npz")}, "--no-intervals", "--shuffles", "20"))
    assert any(warning["code"] == "no_better_than_shuffled" for warning in found["warnings"])  # type: ignore[attr-defined]


def test_oracle_and_table(sets: dict[str, str]) -> None:
    result = runner.invoke(
        app,
        ["invert", "--clear-trials", sets["clear_trials"], "--anonymized-trials", sets["hidden_trials"], "--oracle",
         "--by-gender", "--no-reflections", "--per-speaker", "--no-intervals", "--jobs", "1"],
        catch_exceptions=False,
    )  # fmt: skip
    assert result.exit_code == 0
    assert "upper bound" in result.stdout
    assert "Top-1 by speaker" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["invert"], "anonymized trials are needed"),
        (["invert", "--anonymized-trials", "{hidden_trials}"], "nothing to learn the map from"),
        (["invert", "--anonymized-trials", "missing"], "no such file"),
        (["invert", "--anonymized-trials", "{hidden_trials}", "--clear-train", "{clear_train}", "--anonymized-train",
          "{hidden_train}", "--learning-curve"], "known pairs and clear trials"),
        (["invert", "--anonymized-trials", "{hidden_trials}", "--clear-train", "{clear_train}", "--anonymized-train",
          "{hidden_train}", "--method", "magic"], "unknown inversion method"),
        (["invert", "--anonymized-trials", "{hidden_trials}", "--load-map", "{key}"], "not an inversion map"),
    ],
)  # fmt: skip
def test_errors_are_said(sets: dict[str, str], arguments: list[str], said: str) -> None:
    with pytest.raises(VeilmeterError, match=said):
        runner.invoke(app, [part.format(**sets) for part in arguments], catch_exceptions=False)


def test_training_sets_that_do_not_match_and_too_few_pairs_are_said(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    ids, names = [f"u{i}" for i in range(24)], [f"s{i // 4}" for i in range(24)]
    clear = Embeddings(rng.standard_normal((24, 16)), ids, names)
    hidden = Embeddings(clear.vectors[:, ::-1], ids, names)
    write_embeddings(clear, tmp_path / "clear.npz")
    write_embeddings(hidden.take(np.arange(3, 13)), tmp_path / "some.npz")
    write_embeddings(hidden, tmp_path / "hidden.npz")
    words = ["--clear-train", tmp_path / "clear.npz", "--anonymized-train", tmp_path / "some.npz",
             "--clear-trials", tmp_path / "clear.npz", "--anonymized-trials", tmp_path / "hidden.npz",
             "--shuffles", "0", "--no-intervals", "--json"]  # fmt: skip
    said = run(["invert", *map(str, words)])["warnings"]
    assert isinstance(said, list)
    values = {one["code"]: one["values"] for one in said}
    assert values["training_unpaired"]["count"] == 14
    assert values["training_unpaired"]["example"]["id"] == "u0"
    assert values["few_pairs"] == {"pairs": 10, "dimension": 16}


@pytest.mark.parametrize(
    "more",
    [
        ["--pca", "3"],
        ["--method", "procrustes"],
        ["--center"],
        ["--by-gender"],
        ["--no-reflections"],
        ["--oracle"],
        ["--refine", "2"],
        ["--seeds", "3"],
        ["--anonymized-train", "{hidden_train}"],
        ["--learning-curve"],
    ],
)
def test_what_says_how_to_learn_can_not_act_on_a_stored_map(
    sets: dict[str, str], more: list[str], tmp_path: Path
) -> None:
    stored = str(tmp_path / "m.npz")
    run(attack(sets, "--pca", "4", "--save-map", stored, "--shuffles", "0", "--no-intervals"))
    trials = ["--clear-trials", sets["clear_trials"], "--anonymized-trials", sets["hidden_trials"]]
    with pytest.raises(VeilmeterError, match=f"{more[0]}.* can't act here: the map was learned before"):
        runner.invoke(
            app, ["invert", "--load-map", stored, *trials, *(part.format(**sets) for part in more)],
            catch_exceptions=False,
        )  # fmt: skip


def test_the_record_says_how_the_stored_map_was_learned(sets: dict[str, str], tmp_path: Path) -> None:
    stored = str(tmp_path / "m.npz")
    run(attack(sets, "--pca", "4", "--by-gender", "--save-map", stored, "--shuffles", "0", "--no-intervals"))
    found = run(
        ["invert", "--load-map", stored, "--clear-trials", sets["clear_trials"], "--anonymized-trials",
         sets["hidden_trials"], "--no-intervals", "--shuffles", "7", "--jobs", "1"]
    )  # fmt: skip
    inputs = found["inputs"]
    assert isinstance(inputs, dict)
    assert (inputs["method"], inputs["pca"], inputs["by_gender"]) == ("procrustes", 4, True)
    assert any(one["text"].startswith("--shuffles 7 had no effect") for one in found["warnings"])  # type: ignore[attr-defined]


def test_seeds_of_a_method_without_chance_are_refused(sets: dict[str, str]) -> None:
    with pytest.raises(VeilmeterError, match="does not depend on chance"):
        runner.invoke(app, attack(sets, "--seeds", "3"), catch_exceptions=False)


def test_another_run_that_covers_some_trials(sets: dict[str, str], tmp_path: Path) -> None:
    from veilmeter.data.formats.vectors import read_embeddings

    again = read_embeddings(sets["again_trials"])
    write_embeddings(again.take(np.arange(0, 40, 4)), tmp_path / "some.npz")
    found = run(attack(sets, "--no-intervals", "--shuffles", "0", "--other-run", str(tmp_path / "some.npz")))
    values = {one["code"]: one["values"] for one in found["warnings"]}  # type: ignore[attr-defined]
    assert values["other_run_incomplete"] == {"common": 10, "attacked": 40}
    assert sum(one["n"]["utterances"] for one in found["estimates"]["top1_again"]) == 10  # type: ignore[index]
    with pytest.raises(VeilmeterError, match="none of the attacked utterances"):
        runner.invoke(app, attack(sets, "--other-run", sets["again_train"]), catch_exceptions=False)


def test_the_gender_is_that_of_the_original_side(sets: dict[str, str], tmp_path: Path) -> None:
    """A cross-gender anonymizer: the anonymized side's column is the pseudo-voice's."""
    from veilmeter.data.formats.vectors import read_embeddings

    turned = {}
    for name in ("hidden_train", "hidden_trials"):
        side = read_embeddings(sets[name])
        other = ["fm"[value == "f"] for value in side.attributes["gender"]]
        turned[name] = str(tmp_path / f"{name}.npz")
        write_embeddings(Embeddings(side.vectors, side.utterances, side.speakers, {"gender": other}), turned[name])
    options = ("--by-gender", "--shuffles", "0", "--no-intervals")
    crossed, plain = run(attack(sets | turned, *options)), run(attack(sets, *options))
    assert crossed["estimates"] == plain["estimates"]
