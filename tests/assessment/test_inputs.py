"""Runs of the anonymizer that attackers have of their own: given, or made here."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic_voices as voices

from veilmeter.assessment import assess
from veilmeter.assessment.inputs import join_runs
from veilmeter.assessment.speech import split_draw
from veilmeter.attacks.material import AttackerRun
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings

ORIGINAL = voices.original(8, 4, 8)
RELEASED = voices.partly(ORIGINAL)
AGAIN = voices.partly(ORIGINAL, seed=2)
FAST: dict[str, Any] = {"lengths": [1], "intervals": False, "measures": ["scores"]}


def test_what_one_draw_covers(tmp_path: Path) -> None:
    assert split_draw("C:per-utterance") == ("C", "utterance")
    assert split_draw("a:b") == ("a:b", "unknown")
    with pytest.raises(InputError, match="a speaker or an utterance"):
        split_draw("run:per-day")
    write_embeddings(AGAIN, tmp_path / "again.npz")
    done = assess(
        ORIGINAL, RELEASED, attacker_run=f"{tmp_path / 'again.npz'}:per-speaker", attackers="adaptive", **FAST
    )
    runs = done.results.attackers["adaptive"].details["runs"]
    assert runs == [{"name": "run 1", "draw": "speaker", "own": True, "recordings": 16}]


def test_parts_of_one_run_are_put_together() -> None:
    first, second = (AttackerRun(vectors=AGAIN.take(np.arange(a, b))) for a, b in ((0, 16), (16, 32)))
    assert [len(run.vectors) for run in join_runs([first, second])] == [32]
    assert [len(run.vectors) for run in join_runs([first, first])] == [16, 16]


def test_a_run_is_used_for_the_people_it_covers() -> None:
    """One recording less was the whole run ignored."""
    part = AGAIN.take(AGAIN.codes < 6)
    whole, some = (
        assess(ORIGINAL, RELEASED, attacker_run=run, attackers=["lazy-informed", "adaptive"], **FAST).results
        for run in (AGAIN, part)
    )
    among = {
        name: [max(p.at["speakers"] for p in r.attackers[name].estimates.points("linkability")) for r in (whole, some)]
        for name in ("lazy-informed", "adaptive")
    }
    assert among == {"lazy-informed": [8, 6], "adaptive": [8, 8]}
    lost = [found for found in some.warnings if found.code == "runs_lack_enrollment"]
    assert {found.values["speakers"] for found in lost} == {2}
    assert some.protocol.anonymized_enrollment == "own run"


def test_the_released_run_is_no_run_of_the_attackers(tmp_path: Path) -> None:
    write_embeddings(RELEASED, tmp_path / "released.npz")
    with pytest.raises(InputError, match="the attacker's run is the released run itself"):
        assess(ORIGINAL, tmp_path / "released.npz", attacker_run=tmp_path / "released.npz", **FAST)
    results = assess(ORIGINAL, RELEASED, attacker_run=RELEASED, attackers="lazy-informed", **FAST).results
    assert "run_is_released" in [found.code for found in results.warnings]
    ran = {check.name: check.passed for check in results.checks}
    assert ran["attackers ran the anonymizer"] is None


def test_vectors_of_its_own_use_the_run_too(tmp_path: Path) -> None:
    """An attacker with its own extractor enrolled from the released run, whose draws its trials share."""
    for name, vectors in (("released", RELEASED), ("again", AGAIN)):
        write_embeddings(vectors, tmp_path / f"{name}.npz")
    options: dict[str, Any] = FAST | {"attacker_run": AGAIN}
    table = {"original": str(tmp_path / "released.npz"), "anonymized": str(tmp_path / "released.npz")}
    alone = assess(ORIGINAL, RELEASED, attackers={"informed": table}, **options).results
    assert "own_extractor_without_run" in [found.code for found in alone.warnings]
    given = {**table, "attacker_run": str(tmp_path / "again.npz")}
    own = assess(ORIGINAL, RELEASED, attackers={"informed": given}, **options).results
    assert "own_extractor_without_run" not in [found.code for found in own.warnings]
    errors = [result.attackers["informed"].estimates.points("eer").only().value for result in (alone, own)]
    assert errors[0] != errors[1]


EXTRACTOR = """
import numpy as np

def embed(samples):
    return np.log(np.abs(np.fft.rfft(samples[:4096]))[1::64] + 1e-3)
"""


@pytest.mark.parametrize("system", [{"system": "mcadams-random", "option": ["alpha_range=[0.6, 0.9]"]},
                                    {"system": "mcadams"}])  # fmt: skip
def test_runs_that_are_made_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, system: dict[str, Any]) -> None:
    """The release, if none is given, and the attackers' runs over the enrollment, with other draws than the release."""
    pytest.importorskip("soundfile")
    from veilmeter.anonymizers.manifest import read_manifest
    from veilmeter.speech.audio import write_audio

    rng = np.random.default_rng(0)
    for speaker in "abcde":
        for number in range(4):
            path = tmp_path / "speech" / speaker / f"{speaker}{number}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_audio(path, rng.normal(0, 0.1, 9600).astype(np.float32))
    (tmp_path / "own.py").write_text(EXTRACTOR)
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    written = []
    for out in ("first", "first", "second"):
        results = assess(
            tmp_path / "speech",
            extractor=f"{tmp_path / 'own.py'}:embed",
            out=tmp_path / out,
            attackers=["lazy-informed", "adaptive"],
            **FAST,
            **system,
        ).results
        written.append((tmp_path / out / "results.json").read_bytes())
    assert written[0] == written[1] == written[2]
    # How fast the anonymizer was differs between equal runs: it is noted, but not in the results.
    assert b"real_time_factor" not in written[0]
    assert json.loads((tmp_path / "second" / "timings.json").read_text())["real_time_factor"] > 0
    assert [run["own"] for run in results.protocol.details["attacker_runs"]] == [True, True]
    assert {run["draw"] for run in results.protocol.details["attacker_runs"]} == {"utterance"}
    released, *runs = (
        read_manifest(tmp_path / "first" / place / "speech.manifest.jsonl")
        for place in ("release", "attacker_runs/run-1", "attacker_runs/run-2")
    )
    assert len(released) == 20
    for run in runs:
        assert len(run) == 10  # the enrollment only
        drawn = [run[utterance].parameters == released[utterance].parameters for utterance in run]
        assert all(drawn) == (system["system"] == "mcadams")


def test_an_anonymizer_needs_recordings_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"an anonymizer .* is run on recordings"):
        assess(ORIGINAL, RELEASED, system="mcadams", out=tmp_path, **FAST)
    with pytest.raises(InputError, match="there is no anonymized speech"):
        assess(ORIGINAL, **FAST)


def test_embeddings_of_runs_keep_their_people() -> None:
    renamed = Embeddings(AGAIN.vectors, AGAIN.utterances, AGAIN.speakers, {"gender": ["x"] * len(AGAIN)})
    results = assess(ORIGINAL, RELEASED, attacker_run=renamed, attackers="lazy-informed", **FAST).results
    assert set(results.attackers["lazy-informed"].by["gender"]) == {"f", "m"}


def test_fine_tuning_that_cannot_be_done_is_refused_before_anything_is_heard(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from veilmeter.speech.audio import write_audio

    heard = tmp_path / "heard"
    (tmp_path / "own.py").write_text(
        f"import pathlib\nimport numpy as np\n\ndef embed(samples):\n    pathlib.Path({str(heard)!r}).touch()\n"
        "    return np.abs(samples[:8]) + 1\n"
    )
    rng = np.random.default_rng(0)
    for side in ("original", "anonymized", "training"):
        for name in ("a/a1", "a/a2", "b/b1", "b/b2"):
            write_audio(tmp_path / side / f"{name}.wav", (0.1 * rng.standard_normal(16_000)).astype(np.float32))
    sides = [str(tmp_path / side) for side in ("original", "anonymized")]
    asked = {"extractor": f"{tmp_path / 'own.py'}:embed", "adaptation": "finetune", "attackers": ["informed"]}
    vectors = voices.original(4, 4, prefix="t")
    audio = str(tmp_path / "training")
    for options, what in [
        ({"network": "resnet34", "train_anonymized": audio}, "resnet34 can't be fine-tuned"),
        ({"network": "campplus", "train_anonymized": vectors}, "can't be fine-tuned on vectors"),
        ({"network": "ecapa:half", "train_anonymized": audio}, "choose --network campplus, ecapa, ecapa:scratch"),
        ({"network": "campplus"}, "can't be fine-tuned without training speech"),
        ({"network": "campplus", "train_anonymized": audio, "tuning": ["batch=many"]}, "batch=many: not a number"),
        ({"network": "campplus", "train_anonymized": audio, "tuning": ["layers=3"]}, "unknown setting"),
    ]:
        with pytest.raises(InputError, match=what):
            assess(*sides, **asked, **options)
        assert not heard.exists()
