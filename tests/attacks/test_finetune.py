"""Fine-tuning: the loss is the paper's, it falls, and a stopped run ends with the same weights."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from veilmeter.attacks.finetune import AngularMargin, Training, _TuningRun, finetune  # noqa: E402
from veilmeter.core.errors import InputError  # noqa: E402
from veilmeter.data.corpus import Corpus, read_corpus  # noqa: E402
from veilmeter.speech.audio import write_audio  # noqa: E402
from veilmeter.speech.extractors.base import load_extractor  # noqa: E402

SPEC = "tiny_network:make"
QUICK = Training(epochs=6, batch=4, seconds=0.5, learning_rate=3e-3, checkpoint_steps=2, seed=3)


@pytest.fixture(autouse=True)
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1]), *sys.path])


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Corpus:
    """Four speakers with a pitch each, three recordings."""
    root = tmp_path_factory.mktemp("speech")
    rng = np.random.default_rng(0)
    for speaker in range(4):
        for number in range(3):
            time = np.arange(12_000) / 16_000
            tone = np.sin(2 * np.pi * (200 + 300 * speaker) * time) + 0.5 * rng.standard_normal(len(time))
            path = root / f"s{speaker}" / f"{number}.wav"
            path.parent.mkdir(exist_ok=True)
            write_audio(path, 0.2 * tone.astype(np.float32))
    return read_corpus(root)


def test_the_loss_by_hand() -> None:
    head = AngularMargin(3, 4, margin=0.3, scale=10.0, seed=0)
    rng = np.random.default_rng(1)
    x, labels = rng.standard_normal((5, 3)), np.array([0, 1, 2, 3, 0])
    w = head.weight.detach().numpy()
    cosines = (x / np.linalg.norm(x, axis=1, keepdims=True)) @ (w / np.linalg.norm(w, axis=1, keepdims=True)).T
    losses = []
    for row, label in zip(cosines, labels, strict=True):
        logits = 10 * row
        angle = np.arccos(row[label])
        logits[label] = 10 * (np.cos(angle + 0.3) if angle + 0.3 < np.pi else row[label] - 0.3)
        losses.append(np.log(np.exp(logits).sum()) - logits[label])
    found = head(torch.tensor(x, dtype=torch.float32), torch.tensor(labels))
    assert found.item() == pytest.approx(np.mean(losses), rel=1e-4)


def test_loss_falls_and_the_extractor_is_usable(corpus: Corpus, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    done = finetune(corpus, tmp_path, spec=SPEC, training=QUICK, progress=lambda *at: seen.append(at))
    assert done.losses[-1] < 0.7 * done.losses[0]
    assert (done.speakers, done.utterances, done.resumed_at) == (4, 12, 0)
    assert seen[0] == (0, 18)
    assert seen[-1] == (18, 18)
    assert not (tmp_path / "checkpoint.pt").exists()
    extractor = load_extractor(done.spec)
    assert extractor.dimension == 8
    assert extractor.version.startswith("finetuned-")
    assert np.isfinite(extractor.embed(np.random.default_rng(0).standard_normal(16_000).astype(np.float32))).all()


def weights(folder: Path) -> dict[str, object]:
    from safetensors.numpy import load_file

    return {name: tensor.tobytes() for name, tensor in load_file(folder / "model.safetensors").items()}


@pytest.mark.parametrize("stop", [1, 5, 12])
def test_a_stopped_run_goes_on_and_ends_alike(corpus: Corpus, tmp_path: Path, stop: int) -> None:
    whole = finetune(corpus, tmp_path / "whole", spec=SPEC, training=QUICK)
    steps = 0
    real = _TuningRun._step

    def interrupted(self: _TuningRun, *batch: object) -> float:
        nonlocal steps
        steps += 1
        if steps > stop:
            raise KeyboardInterrupt
        return real(self, *batch)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_TuningRun, "_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            finetune(corpus, tmp_path / "stopped", spec=SPEC, training=QUICK)
    assert (tmp_path / "stopped" / "checkpoint.pt").exists()
    resumed = finetune(corpus, tmp_path / "stopped", spec=SPEC, training=QUICK)
    assert resumed.resumed_at == stop
    assert resumed.losses == whole.losses
    assert weights(tmp_path / "stopped") == weights(tmp_path / "whole")


def test_killed_between_checkpoints_and_damaged_ones(corpus: Corpus, tmp_path: Path) -> None:
    whole = finetune(corpus, tmp_path / "whole", spec=SPEC, training=QUICK)
    real = _TuningRun._step
    steps = 0

    def killed(self: _TuningRun, *batch: object) -> float:
        nonlocal steps
        steps += 1
        if steps > 5:
            raise MemoryError  # no chance to save
        return real(self, *batch)  # type: ignore[arg-type]

    out = tmp_path / "killed"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_TuningRun, "_step", killed)
        with pytest.raises(MemoryError):
            finetune(corpus, out, spec=SPEC, training=QUICK)
    checkpoint = (out / "checkpoint.pt").read_bytes()
    assert finetune(corpus, out, spec=SPEC, training=QUICK).resumed_at == 4
    assert weights(out) == weights(tmp_path / "whole")
    (out / "finetuned.json").unlink()
    (out / "checkpoint.pt").write_bytes(checkpoint[: len(checkpoint) // 2])
    again = finetune(corpus, out, spec=SPEC, training=QUICK)
    assert again.resumed_at == 0
    assert again.losses == whole.losses


def test_a_finished_run_is_not_repeated_unless_something_changed(corpus: Corpus, tmp_path: Path) -> None:
    first = finetune(corpus, tmp_path, spec=SPEC, training=QUICK)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_TuningRun, "_step", None)  # any step would fail
        assert finetune(corpus, tmp_path, spec=SPEC, training=QUICK).losses == first.losses
    other = Training(epochs=2, batch=4, seconds=0.5, seed=4)
    assert len(finetune(corpus, tmp_path, spec=SPEC, training=other).losses) == 2


def test_several_passes_count_together(corpus: Corpus, tmp_path: Path) -> None:
    done = finetune([corpus, corpus], tmp_path, spec=SPEC, training=Training(epochs=1, batch=4, seconds=0.5))
    assert (done.speakers, done.utterances) == (4, 24)


def test_what_can_not_be_tuned(corpus: Corpus, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="two speakers"):
        finetune(corpus.take([u.id for u in corpus if u.speaker == "s0"]), tmp_path, spec=SPEC)
    with pytest.raises(InputError, match="can't be fine-tuned"):
        finetune(corpus, tmp_path, spec="ge2e")
    with pytest.raises(InputError, match="has no 'nothing'"):
        finetune(corpus, tmp_path, spec="tiny_network:nothing")
    with pytest.raises(InputError, match="must be at least"):
        Training(epochs=0)
    (tmp_path / "weights.safetensors").write_bytes(b"no weights")
    with pytest.raises(InputError, match="not weights"):
        load_extractor(f"{SPEC}@{tmp_path / 'weights.safetensors'}")
    with pytest.raises(InputError, match="not there"):
        load_extractor(f"{SPEC}@{tmp_path / 'gone.safetensors'}")


@pytest.mark.slow
def test_campplus_on_real_speech(librispeech: Path, tmp_path: Path) -> None:
    """The real network on four readers: the loss falls, and a checkpoint is resumed."""
    whole = read_corpus(librispeech / "test-other-10x10")
    names = whole.speakers[:4]
    few = whole.take([u.id for u in whole if u.speaker in names and u.id.endswith(("0000", "0001", "0002"))])
    training = Training(epochs=3, batch=4, seconds=1.0, checkpoint_steps=1, warm_up=0)
    real, steps = _TuningRun._step, 0

    def interrupted(self: _TuningRun, *batch: object) -> float:
        nonlocal steps
        steps += 1
        if steps > 4:
            raise KeyboardInterrupt
        return real(self, *batch)  # type: ignore[arg-type]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(_TuningRun, "_step", interrupted)
        with pytest.raises(KeyboardInterrupt):
            finetune(few, tmp_path, training=training)
    done = finetune(few, tmp_path, training=training)
    assert done.resumed_at == 4
    assert done.losses[-1] < done.losses[0]
    assert load_extractor(done.spec).dimension == 192
