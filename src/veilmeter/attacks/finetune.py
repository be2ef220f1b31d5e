"""Fine-tuning of an extractor on anonymized speech: the strongest adaptation of an attacker.

The network learns to tell the training speakers apart by additive angular margin softmax (Deng et al. 2019): with unit
embeddings x and unit class vectors w, the logit of the right class is s cos(theta + m), of the others s cos(theta).
Batch normalization keeps its statistics where the network has good ones, since the sets are small. Everything random
follows from the seed and the number of the step, so that a run that was stopped and resumed ends with the same weights.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.devices import torch_device
from veilmeter.core.errors import InputError, VeilmeterError, missing_extra
from veilmeter.core.files import make_folder, whole_file, write_json
from veilmeter.data.corpus import Corpus, Utterance
from veilmeter.speech.extractors.campplus import Trainable, trainable

try:
    import torch
    from torch import Tensor, nn
except ImportError:
    raise missing_extra("torch", "audio") from None

FRAME = 0.01  # seconds
FORM = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """How to train. `seconds` is the length of the crops, `margin` in radians, `device` cpu, cuda or auto."""

    epochs: int = 5
    batch: int = 16
    seconds: float = 3.0
    learning_rate: float = 1e-4
    head_learning_rate: float = 1e-2
    warm_up: int = 1
    margin: float = 0.2
    scale: float = 30.0
    seed: int = 0
    checkpoint_steps: int = 50
    device: str = "auto"

    @classmethod
    def of(cls, words: Sequence[str], **chosen: Any) -> Training:
        """From words such as `batch=256`, beside what was chosen otherwise.

        >>> Training.of(["batch=256", "learning_rate=0.001"], epochs=10).batch
        256
        """
        given: dict[str, Any] = {}
        known: dict[str, Any] = {field.name: field.default for field in fields(cls) if field.name not in chosen}
        for word in words:
            name, _, text = word.partition("=")
            name = name.strip().replace("-", "_")
            if name not in known:
                raise InputError(f"--tuning {word}: unknown setting", fix=f"choose from {', '.join(known)}")
            try:
                given[name] = type(known[name])(text)
            except ValueError:
                raise InputError(f"--tuning {word}: not a number", fix=f"as in {name}={known[name]}") from None
        return cls(**given, **chosen)

    def __post_init__(self) -> None:
        for name, least in (("epochs", 1), ("batch", 2), ("checkpoint_steps", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise InputError(f"fine-tuning: {name} must be at least {least} (got {getattr(self, name)})")
        for name in ("learning_rate", "head_learning_rate"):
            if not 0 < getattr(self, name) < math.inf:
                raise InputError(f"fine-tuning: {name} must be above 0 (got {getattr(self, name)})")
        if not 0 <= self.margin < math.pi / 2 or self.scale <= 0 or self.seconds < 0.5:
            raise InputError(
                "fine-tuning: the margin must be between 0 and pi/2, the scale above 0, the crops at least 0.5 s long"
            )


@dataclass(frozen=True, slots=True)
class FineTuned:
    """The weights' file, its extractor's name for `--extractor`, and the mean loss of every epoch."""

    path: Path
    spec: str
    losses: tuple[float, ...]
    speakers: int
    utterances: int
    resumed_at: int


class AngularMargin(nn.Module):
    """The head: class vectors, and the loss with the margin."""

    def __init__(self, dimension: int, classes: int, margin: float, scale: float, seed: int) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.weight = nn.Parameter(torch.randn(classes, dimension, generator=generator))
        self.margin, self.scale = margin, scale

    def forward(self, embeddings: Tensor, labels: Tensor) -> Tensor:
        cosines = nn.functional.normalize(embeddings) @ nn.functional.normalize(self.weight).T
        own = cosines.gather(1, labels[:, None]).clamp(-1 + 1e-6, 1 - 1e-6)
        angle = torch.acos(own)
        # Beyond pi the cosine would rise again; there the margin is taken off in its linear form.
        harder = torch.where(angle + self.margin < math.pi, torch.cos(angle + self.margin), own - self.margin)
        logits = self.scale * cosines.scatter(1, labels[:, None], harder)
        return nn.functional.cross_entropy(logits, labels)


def finetune(
    corpora: Corpus | Sequence[Corpus],
    out: str | Path,
    *,
    spec: str = "campplus",
    training: Training | None = None,
    offline: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> FineTuned:
    """Fine-tune on the speech of `corpora` (several passes of an anonymizer over one corpus count together).

    `out` holds `checkpoint.pt` while it runs and `model.safetensors` at the end; the same call goes on where it was.
    """
    given = training or Training()
    parts = [corpora] if isinstance(corpora, Corpus) else list(corpora)
    utterances = [utterance for part in parts for utterance in part]
    people = sorted({utterance.speaker for utterance in utterances})
    if len(people) < 2:
        raise InputError("fine-tuning needs at least two speakers", path=str(parts[0].root) if parts else None)
    folder = make_folder(out)
    network = trainable(spec, offline=offline)
    key = _key(utterances, given, spec + network.version)
    finished = _read_finished(folder, key, spec)
    if finished is not None:
        return finished
    device = torch.device(torch_device() if given.device == "auto" else given.device)
    head = AngularMargin(network.dimension, len(people), given.margin, given.scale, given.seed).to(device)
    model = network.model.to(device).train(not network.keeps_statistics)
    optimizer = torch.optim.Adam(
        [
            {"params": model.parameters(), "lr": given.learning_rate},
            {"params": head.parameters(), "lr": given.head_learning_rate},
        ]
    )
    run = _TuningRun(folder, key, given, model, head, optimizer, device)
    crops = _Crops(utterances, {name: code for code, name in enumerate(people)}, network, given)
    resumed = run.resume()
    losses = run.train(crops, progress)
    path = folder / "model.safetensors"
    _save(model, path)
    facts = {
        "form": FORM,
        "key": key,
        "losses": losses,
        "speakers": len(people),
        "utterances": len(utterances),
        "training": asdict(given),
        "spec": spec,
    }
    write_json(folder / "finetuned.json", facts)
    (folder / "checkpoint.pt").unlink(missing_ok=True)
    return FineTuned(path, extractor_spec(spec, path), tuple(losses), len(people), len(utterances), resumed)


def extractor_spec(spec: str, path: Path) -> str:
    return f"{spec}:{path}" if spec == "campplus" else f"{spec}@{path}"


class _Crops:
    """Random pieces of the recordings as batches of features; which ones depends on the seed and the step alone."""

    def __init__(
        self, utterances: Sequence[Utterance], codes: dict[str, int], network: Trainable, given: Training
    ) -> None:
        self.utterances, self.codes, self.network, self.given = utterances, codes, network, given
        self.batches = max(1, len(utterances) // given.batch)
        self._kept: dict[int, NDArray[np.float32]] = {}

    def batch(self, epoch: int, number: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        order = np.random.default_rng([self.given.seed, epoch]).permutation(len(self.utterances))
        chosen = order[number * self.given.batch : (number + 1) * self.given.batch]
        if len(chosen) < 2:
            chosen = order[:2]
        rng = np.random.default_rng([self.given.seed, epoch, number])
        frames = round(self.given.seconds / FRAME)
        pieces = []
        for index in chosen:
            whole = self._features(int(index))
            if len(whole) < frames:  # a short recording is repeated
                whole = np.tile(whole, (math.ceil(frames / len(whole)), 1))
            start = int(rng.integers(len(whole) - frames + 1))
            piece = whole[start : start + frames]
            pieces.append(piece - piece.mean(axis=0) if self.network.centers else piece)
        labels = np.array([self.codes[self.utterances[int(index)].speaker] for index in chosen], np.int64)
        return np.stack(pieces), labels

    def _features(self, index: int) -> NDArray[np.float32]:
        if index not in self._kept:
            from veilmeter.speech.audio import read_audio

            utterance = self.utterances[index]
            features = self.network.features(read_audio(utterance.path, stretch=utterance.stretch))
            if len(self._kept) < 5000:  # some 2 GB; beyond, recordings are read again
                self._kept[index] = features
            return features
        return self._kept[index]


class _TuningRun:
    """The loop, its checkpoints, and how it goes on."""

    def __init__(
        self,
        folder: Path,
        key: str,
        given: Training,
        model: nn.Module,
        head: nn.Module,
        optimizer: torch.optim.Optimizer,
        device: torch.device,
    ) -> None:
        self.folder, self.key, self.given = folder, key, given
        self.model, self.head, self.optimizer, self.device = model, head, optimizer, device
        self.step = 0
        self.history: list[float] = []

    def resume(self) -> int:
        """The step to go on from: 0 without a usable checkpoint."""
        path = self.folder / "checkpoint.pt"
        if not path.is_file():
            return 0
        try:
            state = torch.load(path, map_location=self.device, weights_only=True)
            if state["key"] != self.key:
                return 0
            self.model.load_state_dict(state["model"])
            self.head.load_state_dict(state["head"])
            self.optimizer.load_state_dict(state["optimizer"])
        except Exception:  # a damaged checkpoint costs time, not the run
            return 0
        self.step, self.history = int(state["step"]), [float(loss) for loss in state["history"]]
        return self.step

    def save(self) -> None:
        state = {
            "key": self.key,
            "model": self.model.state_dict(),
            "head": self.head.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "step": self.step,
            "history": self.history,
        }
        with whole_file(self.folder / "checkpoint.pt") as temporary:
            torch.save(state, temporary)

    def train(self, crops: _Crops, progress: Callable[[int, int], None] | None) -> list[float]:
        total = self.given.epochs * crops.batches
        if progress is not None:
            progress(self.step, total)
        try:
            while self.step < total:
                epoch, number = divmod(self.step, crops.batches)
                # At first the head alone: its random class vectors would tear the network apart.
                warm = epoch < min(self.given.warm_up, self.given.epochs - 1)
                self.optimizer.param_groups[0]["lr"] = 0.0 if warm else self.given.learning_rate
                self.history.append(self._step(*crops.batch(epoch, number)))
                self.step += 1
                if self.step % self.given.checkpoint_steps == 0 or self.step % crops.batches == 0:
                    self.save()
                if progress is not None:
                    progress(self.step, total)
        except KeyboardInterrupt:
            self.save()
            raise
        losses = np.array(self.history).reshape(self.given.epochs, crops.batches)
        return [float(loss) for loss in losses.mean(axis=1)]

    def _step(self, pieces: NDArray[np.float32], labels: NDArray[np.int64]) -> float:
        x = torch.from_numpy(pieces).to(self.device)
        y = torch.from_numpy(labels).to(self.device)
        self.optimizer.zero_grad()
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices=devices):  # what a network drops at random follows from the step, too
            torch.manual_seed(self.given.seed * 1_000_003 + self.step)
            loss: Tensor = self.head(self.model(x), y)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise VeilmeterError("fine-tuning diverged: the loss is not finite", fix="use a smaller learning rate")
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
        self.optimizer.step()
        return value


def _key(utterances: Sequence[Utterance], given: Training, spec: str) -> str:
    """Everything the weights depend on: recordings (by size and times), parameters and the network."""
    digest = hashlib.sha256(json.dumps([FORM, spec, asdict(given)], sort_keys=True).encode())
    for utterance in utterances:
        status = utterance.path.stat()
        mark = f"\0{utterance.id}\0{utterance.speaker}\0{status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
        mark += str(utterance.stretch)
        digest.update(mark.encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _read_finished(folder: Path, key: str, spec: str) -> FineTuned | None:
    try:
        facts = json.loads((folder / "finetuned.json").read_text(encoding="utf-8"))
        path = folder / "model.safetensors"
        if facts["key"] != key or not path.is_file():
            return None
        losses = tuple(float(loss) for loss in facts["losses"])
        speakers, utterances = int(facts["speakers"]), int(facts["utterances"])
    except (OSError, ValueError, KeyError, TypeError, IndexError, RecursionError, OverflowError):
        return None  # a file that is damaged counts as missing
    return FineTuned(path, extractor_spec(spec, path), losses, speakers, utterances, len(losses))


def _save(model: nn.Module, path: Path) -> None:
    from safetensors.torch import save_file

    state = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    with whole_file(path) as temporary:
        save_file(state, temporary)
