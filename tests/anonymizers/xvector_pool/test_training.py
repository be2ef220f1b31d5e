"""Training on small made-up speech: the loss falls, a stopped run ends with the same bytes, bad input is told."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from veilmeter.anonymizers.xvector_pool import features, model, training
from veilmeter.anonymizers.xvector_pool.features import Example
from veilmeter.anonymizers.xvector_pool.training import TrainingSettings, fit
from veilmeter.core.engine import Here
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.files import only_one
from veilmeter.data.corpus import read_corpus
from veilmeter.speech import weights

SMALL = TrainingSettings(steps=24, batch=4, frames=64, channels=32, members=1, voices_per_gender=8, checkpoint_every=8)


def made_examples(count: int = 8, frames: int = 150) -> list[Example]:
    """Speakers whose cepstra follow what was said, moved by their vector: there is something to learn."""
    rng = np.random.default_rng(0)
    turn = rng.normal(size=(192, 41)) / 14
    words = rng.normal(size=(24, 41)) / 5
    examples = []
    for number in range(count):
        vector = rng.normal(size=192).astype(np.float32)
        t = np.arange(frames)[:, None]
        content = np.sin(t / rng.uniform(3, 9, 24) + rng.uniform(0, 6, 24))
        outputs = content @ words + vector @ turn
        f0 = np.where(np.sin(t[:, 0] / 11) > -0.3, 120 + 10 * number + 5 * np.sin(t[:, 0] / 7), 0.0)
        pieces = vector + 0.1 * rng.normal(size=(3, 192))
        gender = "fm"[number % 2]
        quantities = (f0.astype("f4"), content[:, 0].astype("f4"), content.astype("f2"), outputs.astype("f4"))
        examples.append(Example(str(number), gender, *quantities, vector, pieces.astype("f4")))
    return examples


def run(folder: Path, settings: TrainingSettings = SMALL) -> tuple[bytes, list[tuple[str, int, int, str]]]:
    told: list[tuple[str, int, int, str]] = []
    made = fit(made_examples(), folder, settings, progress=lambda *what: told.append(what))
    made.save(folder / "m.safetensors")
    return (folder / "m.safetensors").read_bytes(), told


def test_the_loss_falls_and_progress_is_told(tmp_path: Path) -> None:
    _, told = run(tmp_path, replace(SMALL, steps=60, checkpoint_every=60))
    losses = [float(remark.split()[1]) for _, _, _, remark in told]
    assert losses[-1] < 0.9 * losses[0]
    assert [done for _, done, _, _ in told] == list(range(10, 61, 10))


def test_a_stopped_run_goes_on_and_ends_with_the_same_bytes(tmp_path: Path) -> None:
    undisturbed, _ = run(tmp_path / "a")

    class Stopped(Exception):
        pass

    def stop(step: str, done: int, total: int, remark: str) -> None:
        if done == 20:
            raise Stopped

    with pytest.raises(Stopped):
        fit(made_examples(), tmp_path / "b", SMALL, progress=stop)
    resumed, told = run(tmp_path / "b")
    assert resumed == undisturbed
    assert [done for _, done, _, _ in told] == [20, 24]  # the checkpoint was at 16
    assert run(tmp_path / "c", replace(SMALL, seed=1))[0] != undisturbed


def test_several_networks_speak_together(tmp_path: Path) -> None:
    """The first is the one that would be alone, the second another one, and a stopped run goes on with either."""
    import torch

    settings = replace(SMALL, members=2)
    undisturbed, told = run(tmp_path / "a", settings)
    assert [(done, total) for _, done, total, _ in told] == [(10, 48), (20, 48), (24, 48), (34, 48), (44, 48), (48, 48)]
    pair = model.load(tmp_path / "a" / "m.safetensors")
    run(tmp_path / "b")
    alone = model.load(tmp_path / "b" / "m.safetensors")
    assert pair.converter.size == 2 * alone.converter.size
    inputs = (torch.randn(1, 24, 30), torch.randn(1, 3, 30), torch.randn(1, pair.converter.shape.speaker))
    first, second = (member(*inputs) for member in pair.converter.members)
    torch.testing.assert_close(first, alone.converter(*inputs))
    assert not torch.allclose(first, second, atol=0.1)
    torch.testing.assert_close(pair.converter(*inputs), (first + second) / 2)
    (tmp_path / "a" / training.CHECKPOINT.format(1)).unlink()
    resumed, told = run(tmp_path / "a", settings)
    assert resumed == undisturbed
    assert [done for _, done, _, _ in told] == [34, 44, 48]


def test_a_checkpoint_of_other_settings_is_refused(tmp_path: Path) -> None:
    run(tmp_path)
    with pytest.raises(VeilmeterError, match="other settings"):
        run(tmp_path, replace(SMALL, batch=5))
    others = [replace(example, content=example.content + 1) for example in made_examples()]
    with pytest.raises(VeilmeterError, match="another corpus"):
        fit(others, tmp_path, SMALL, progress=lambda *_: None)
    (tmp_path / training.CHECKPOINT.format(0)).write_bytes(b"broken")
    with pytest.raises(VeilmeterError, match="can't be read"):
        run(tmp_path)


def test_too_few_speakers_and_senseless_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="3 speakers"):
        fit(made_examples(3), tmp_path, SMALL, progress=lambda *_: None)
    with pytest.raises(InputError, match="steps"):
        TrainingSettings(steps=0)


def test_what_was_saved_is_what_is_loaded(tmp_path: Path) -> None:
    made = fit(made_examples(), tmp_path, SMALL, progress=lambda *_: None, notes={"license": "none"})
    made.save(tmp_path / "m.safetensors")
    loaded = model.load(tmp_path / "m.safetensors")
    assert loaded.pool.names == made.pool.names
    assert loaded.card == json.loads(json.dumps(made.card))
    code = loaded.speaker_code(loaded.pool.average(["f001", "f003"]))
    assert np.linalg.norm(code) == pytest.approx(model.SPEAKER_NORM)
    np.testing.assert_allclose(code, made.speaker_code(made.pool.average(["f001", "f003"])), atol=1e-4)
    assert made.f0_range[0] <= loaded.f0_level(code) <= made.f0_range[1]


@pytest.mark.parametrize("content", [b"", b"nonsense", (2).to_bytes(8, "little") + b"{}"])
def test_a_file_that_is_no_model_is_told(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m").write_bytes(content)
    with pytest.raises(InputError):
        model.load(tmp_path / "m")


class FakeExtractor:
    """A vector that any change of the spectrum turns elsewhere: voices are far apart, and it needs no weights."""

    def embed(self, samples: np.ndarray) -> np.ndarray:
        spectrum = np.abs(np.fft.rfft(samples, 8192))[:3840].reshape(192, 20).mean(axis=1)
        mixed = np.random.default_rng(0).normal(size=(192, 192)) @ np.log(spectrum + 1e-3)
        vector: np.ndarray = np.sin(mixed).astype(np.float32)
        return vector


class FakeEncoder:
    """Frames from the loudness alone: it needs no weights."""

    def hear(self, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        places = np.arange(400.0, len(samples), 384)
        loudness = np.abs(samples[places.astype(int)])[:, None]
        return places, np.sin(loudness * np.arange(1, 25)).astype(np.float32)


@pytest.fixture
def corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Six voices of two utterances each, and one file that is not audio."""
    soundfile = pytest.importorskip("soundfile")
    rng = np.random.default_rng(0)
    t = np.arange(16000) / 16000
    for speaker in range(6):
        folder = tmp_path / "corpus" / f"s{speaker}"
        folder.mkdir(parents=True)
        formants = rng.uniform(300, 3500, 3)
        for take in range(2):
            signal = np.zeros_like(t)
            phase = np.cumsum(2 * np.pi * (100 + 20 * speaker) * (1 + 0.05 * np.sin(5 * t + take)) / 16000)
            for h in range(1, 30):
                gain = sum(1 / (1 + ((h * (100 + 20 * speaker) - f) / 150) ** 2) for f in formants) + 0.003
                signal += gain * np.sin(h * phase)
            soundfile.write(folder / f"{take}.wav", 0.2 * signal / np.abs(signal).max(), 16000)
    (tmp_path / "corpus" / "s0" / "broken.wav").write_bytes(b"RIFF")
    monkeypatch.setattr(features, "load_extractor", lambda spec, offline: FakeExtractor())
    monkeypatch.setattr(features, "load_layer", lambda layer, offline: FakeEncoder())
    monkeypatch.setattr(weights, "fetch", lambda *_, **__: tmp_path)
    return tmp_path / "corpus"


def test_the_command_trains_on_a_folder_and_goes_on(corpus: Path, tmp_path: Path) -> None:
    from veilmeter.cli.main import app

    out = tmp_path / "out"
    arguments = ["train", "xvector-pool", str(corpus), str(out), "--steps", "3", "--voices", "4"]
    arguments += ["--jobs", "1", "--offline", "--license", "made here"]
    first = CliRunner().invoke(app, arguments)
    assert first.exit_code == 3, first.output  # a recording is left out
    made = (out / training.MODEL).read_bytes()
    card = (out / "MODEL_CARD.md").read_text()
    assert "made here" in card
    assert "12 utterances" in card
    assert "1 recording left out" in first.output
    loaded = model.load(out / training.MODEL)
    assert loaded.card["utterances_left_out"] == 1
    assert model.load(out).version == loaded.version  # the folder will do, too
    assert len(loaded.pool) == 4  # the corpus names no genders: one group
    touched = {p: p.stat().st_mtime_ns for p in (out / "features-8").iterdir()}
    again = CliRunner().invoke(app, arguments)
    assert again.exit_code == 3
    assert (out / training.MODEL).read_bytes() == made
    assert {p: p.stat().st_mtime_ns for p in (out / "features-8").iterdir()} == touched


def test_the_command_refuses_other_systems(tmp_path: Path) -> None:
    from veilmeter.cli.main import app

    result = CliRunner().invoke(app, ["train", "mcadams", str(tmp_path), str(tmp_path / "o")])
    assert isinstance(result.exception, InputError)


def test_features_are_of_this_very_recording(corpus: Path, tmp_path: Path) -> None:
    """Ids that differ where names of files do not, and a recording that was replaced since."""
    shutil.move(corpus / "s1" / "0.wav", corpus / "s0" / "x_0.wav")
    (corpus / "s0" / "x").mkdir()
    shutil.move(corpus / "s2" / "0.wav", corpus / "s0" / "x" / "0.wav")
    first, _ = features.extract(read_corpus(corpus), tmp_path / "f", layer=8, engine=Here(), offline=True)
    assert len({example.vector.tobytes() for example in first}) == len(first) == 12
    shutil.copy(corpus / "s3" / "0.wav", corpus / "s4" / "0.wav")
    second, _ = features.extract(read_corpus(corpus), tmp_path / "f", layer=8, engine=Here(), offline=True)
    assert len({example.vector.tobytes() for example in second}) == 11


def test_two_runs_do_not_train_into_one_folder(corpus: Path, tmp_path: Path) -> None:
    with only_one(tmp_path / "out" / ".lock"), pytest.raises(VeilmeterError, match="another run is writing"):
        training.train(read_corpus(corpus), tmp_path / "out", offline=True)


def test_features_say_what_was_left_out(corpus: Path, tmp_path: Path) -> None:
    found, skipped = features.extract(read_corpus(corpus), tmp_path / "f", layer=8, engine=Here(), offline=True)
    assert len(found) == 12
    assert len(skipped) == 1
    assert "broken" in skipped[0]
    assert all(example.pieces.shape == (1, 192) for example in found)
    (damaged,) = (tmp_path / "f" / "features-8").glob("s0_0-*.npz")
    damaged.write_bytes(b"x")
    with pytest.raises(VeilmeterError, match="features"):
        features.extract(read_corpus(corpus), tmp_path / "f", layer=8, engine=Here(), offline=True)


def test_every_setting_counts(tmp_path: Path) -> None:
    kept: dict[str, Any] = fit(made_examples(), tmp_path, SMALL, progress=lambda *_: None).card["settings"]
    assert TrainingSettings(**kept) == SMALL
