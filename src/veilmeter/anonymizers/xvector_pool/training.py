"""`veilmeter train xvector-pool`: a converter and a pool from any corpus.

Three steps, each kept in the output folder as it goes, so that a stopped run goes on where it was and ends with the
same bytes as an undisturbed one: features of every utterance, the network (a checkpoint now and then), the model file.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter._version import __version__
from veilmeter.anonymizers.xvector_pool import features, world
from veilmeter.anonymizers.xvector_pool.features import Example, Progress, extract, silent
from veilmeter.anonymizers.xvector_pool.model import (
    FILE,
    Converter,
    Converters,
    ConverterShape,
    VoiceModel,
    Whitening,
    one_thread,
    prosody_of,
)
from veilmeter.anonymizers.xvector_pool.selection import Plda, VoicePool
from veilmeter.core.engine import Engine, Here
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.files import make_folder, only_one, whole_file, write_text
from veilmeter.data.corpus import Corpus
from veilmeter.data.embeddings import unit

Array = NDArray[np.float64]

RIDGE_STRENGTHS = tuple(float(s) for s in np.logspace(-1, 3, 17))
# Two recordings of one person seldom have a cosine below 0.45 in CAM++, two persons seldom above 0.42.
SAME_PERSON = 0.45
SHRINKAGE = 0.1


@dataclass(frozen=True, eq=False, slots=True)
class Ridge:
    """Weights with the intercept last, the strength that predicted best left-out speakers, and how well (R squared)."""

    weights: Array
    strength: float
    r_squared: float


def fit_ridge(inputs: ArrayLike, outputs: ArrayLike, strengths: Sequence[float] = RIDGE_STRENGTHS) -> Ridge:
    """Ridge regression; the strength by the leave-one-out error, which has a closed form (PRESS)."""
    x, y = np.asarray(inputs, float), np.asarray(outputs, float)
    x_mean, y_mean = x.mean(axis=0), y.mean()
    u, s, vt = np.linalg.svd(x - x_mean, full_matrices=False)
    projected = u.T @ (y - y_mean)
    best: tuple[float, float] | None = None
    for strength in strengths:
        shrink = s**2 / (s**2 + strength)
        residual = y - y_mean - u @ (shrink * projected)
        leverage = 1 / len(x) + (u**2 * shrink).sum(axis=1)
        error = float(np.mean((residual / np.maximum(1 - leverage, 1e-9)) ** 2))
        if best is None or error < best[0]:
            best = (error, strength)
    if best is None:
        raise InputError("no ridge strength was given")
    error, strength = best
    slope = vt.T @ (s / (s**2 + strength) * projected)
    variance = float(y.var()) or 1.0
    return Ridge(np.append(slope, y_mean - x_mean @ slope), strength, 1 - error / variance)


def fit_plda(whitening: Whitening, pieces: ArrayLike, speakers: Sequence[str]) -> Plda:
    """Two-covariance PLDA from several vectors a speaker (pieces of an utterance will do), in the whitened space."""
    z = whitening(pieces)
    codes = np.unique(np.asarray(speakers, dtype=str), return_inverse=True)[1]
    counts = np.bincount(codes)
    means = np.stack([np.bincount(codes, z[:, d]) for d in range(z.shape[1])], axis=1) / counts[:, None]
    residual = z - means[codes]
    freedom = max(1, len(z) - len(counts))
    within = residual.T @ residual / freedom
    # Where hardly anyone has two pieces the estimate is thin: lean on its diagonal, and never let it be singular.
    within = (1 - SHRINKAGE) * within + SHRINKAGE * np.diag(np.diag(within)) + 1e-3 * np.eye(len(within))
    between = np.cov(means.T, ddof=0).reshape(within.shape) - within / counts.mean()
    values, axes = np.linalg.eigh(between)
    between = (axes * np.maximum(values, 1e-6)) @ axes.T
    return Plda.fit(whitening.mean, within, between, whitening.matrix)


@dataclass(frozen=True, eq=False, slots=True)
class Drawn:
    """A pool, and the largest cosine of any of its voices with a real speaker."""

    pool: VoicePool
    largest_cosine: float
    rejected: int


def draw_pool(
    vectors: ArrayLike, genders: Sequence[str], per_gender: int, seed: int, *, limit: float = SAME_PERSON
) -> Drawn:
    """Voices of no one: drawn from normal distributions fitted to the real ones, one mean per gender, one covariance.

    A draw whose cosine with any real speaker reaches `limit` (what two recordings of one person have) is thrown away.
    """
    x = unit(vectors).astype(np.float64)
    labels = np.asarray(genders, dtype=str)
    groups = sorted(set(labels[labels != ""])) or [""]
    known = labels if groups != [""] else np.full(len(x), "")
    means = {g: x[known == g].mean(axis=0) for g in groups}
    inside = [x[known == g] - means[g] for g in groups]
    residual = np.concatenate(inside)
    freedom = max(1, len(residual) - len(groups))
    covariance = residual.T @ residual / freedom
    # A few speakers span a few directions only: without this, every draw would be a mixture of these very people.
    shrinkage = float(np.clip(20 / len(x), SHRINKAGE, 0.9))
    covariance = (1 - shrinkage) * covariance + shrinkage * np.diag(np.diag(covariance))
    values, axes = np.linalg.eigh(covariance)
    root = axes * np.sqrt(np.maximum(values, 0))
    rng = np.random.default_rng([seed, 0x9001])
    real = x.astype(np.float32)
    drawn: list[NDArray[np.float32]] = []
    names: list[str] = []
    rejected = 0
    largest = -1.0
    for gender in groups:
        kept = 0
        while kept < per_gender:
            candidate = unit(means[gender] + root @ rng.standard_normal(len(root)))
            nearest = float((real @ candidate).max())
            if nearest >= limit:
                rejected += 1
                if rejected > 1000 * per_gender:
                    raise InputError(
                        "no voice can be drawn that is unlike every speaker of this corpus", fix="use more speakers"
                    )
                continue
            kept += 1
            largest = max(largest, nearest)
            drawn.append(candidate)
            names.append(f"{gender or 'x'}{kept:03d}")
    genders_drawn = tuple(g for g in groups for _ in range(per_gender))
    return Drawn(VoicePool(np.stack(drawn), tuple(names), genders_drawn), largest, rejected)


CARD = "MODEL_CARD.md"


def card_text(model: VoiceModel) -> str:
    """In Markdown, from what training wrote into the model."""
    about = dict(model.card)
    settings = about.get("settings", {})
    people = ", ".join(f"{count} {gender}" for gender, count in about.get("speakers", {}).items())
    shape = model.converter.shape
    rows = [
        ("System", "xvector-pool, inspired by baseline B1 of the VoicePrivacy challenges (it is not B1)"),
        ("Data", f"{about.get('corpus')}: {about.get('utterances')} utterances, {about.get('minutes')} minutes"),
        ("Speakers", people),
        ("License of the data", about.get("license", "not stated")),
        (
            "Network",
            f"{model.converter.size:,} parameters: {len(model.converter.members)} networks whose mean is taken, "
            f"each with a bottleneck of {shape.bottleneck} channels",
        ),
        ("Words", f"layer {model.layer} of Moonshine base's encoder (MIT; fetched, not part of the model)"),
        ("Vocoder", "WORLD, 40 mel-cepstra and one band of aperiodicity every 10 ms, 16 kHz"),
        ("Speaker vector", f"CAM++, whitened to {shape.speaker} dimensions"),
        ("Training", ", ".join(f"{key} {value}" for key, value in settings.items())),
        (
            "Loss",
            f"{about.get('loss')} (error of the outputs and half that of their movement, in standard deviations)",
        ),
        ("Pitch from the x-vector", f"R² {about.get('f0_r_squared')} on left-out speakers"),
        (
            "Pool",
            f"{len(model.pool)} voices, none of a real person: drawn from normal distributions fitted to the speakers",
        ),
        (
            "Largest cosine of a pool voice with a training speaker",
            f"{about.get('largest_cosine_of_pool_and_training_speakers')} "
            f"({about.get('drawn_voices_rejected_as_too_close')} closer draws were thrown away)",
        ),
        ("Made with", f"veilmeter {about.get('veilmeter')}"),
    ]
    return "\n".join(
        [
            "# Model card",
            "",
            "| | |",
            "|---|---|",
            *(f"| {name} | {str(value).replace('|', '/')} |" for name, value in rows),
            "",
            "Its purpose is to be a baseline for voice anonymizers, and an example to try measures on. It hides the",
            "speaker from an attacker who does not adapt, and much less from one who does. Measure before you rely",
            "on it. Its output sounds like a vocoder.",
            "",
        ]
    )


def write_card(model: VoiceModel, path: str | Path) -> None:
    write_text(path, card_text(model))


MIN_SPEAKERS = 4
MOVEMENT = 0.5
COUNTS = (
    "steps", "batch", "frames", "layer", "bottleneck", "channels", "members", "voices_per_gender", "checkpoint_every",
)  # fmt: skip
CHECKPOINT = "checkpoint-{}.safetensors"  # of each network
NEXT_NETWORK = 1_000_003  # from the seed of one network's first weights to that of the next
MODEL = FILE


@dataclass(frozen=True, slots=True)
class TrainingSettings:
    """What decides the result, beside the corpus."""

    seed: int = 0
    steps: int = 2000
    batch: int = 12
    frames: int = 160
    learning_rate: float = 2e-3
    speaker_noise: float = 0.3
    layer: int = 8
    bottleneck: int = 32
    channels: int = 128
    members: int = 2
    voices_per_gender: int = 128
    checkpoint_every: int = 100

    def __post_init__(self) -> None:
        for name in COUNTS:
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}", fix="give 1 or more")
        if self.seed < 0:
            raise InputError(f"the seed {self.seed} is negative", fix="give 0 or more")


def train(
    corpus: Corpus,
    out: str | Path,
    settings: TrainingSettings | None = None,
    *,
    engine: Engine | None = None,
    offline: bool = False,
    progress: Progress | None = None,
    notes: dict[str, Any] | None = None,
) -> VoiceModel:
    """Train on `corpus` and write `out/model.safetensors`; `notes` go into the model's card."""
    chosen = settings or TrainingSettings()
    folder = make_folder(out)
    tell: Progress = progress or silent
    with only_one(folder / ".lock", folder):
        examples, skipped = extract(
            corpus, folder, layer=chosen.layer, engine=engine or Here(), offline=offline, progress=tell
        )
        card = {"corpus": corpus.root.name, "utterances_left_out": len(skipped), **(notes or {})}
        model = fit(examples, folder, chosen, progress=tell, notes=card)
        model.save(folder / MODEL)
    return model


def fit(
    examples: list[Example],
    folder: Path,
    settings: TrainingSettings,
    *,
    progress: Progress,
    notes: dict[str, Any] | None = None,
) -> VoiceModel:
    """The model from features; `folder` keeps the network's checkpoint."""
    speakers = sorted({example.speaker for example in examples})
    if len(speakers) < MIN_SPEAKERS:
        raise InputError(
            f"{len(speakers)} speakers are too few to train on", fix=f"use a corpus with at least {MIN_SPEAKERS}"
        )
    of_speaker = {s: [e for e in examples if e.speaker == s] for s in speakers}
    vectors = np.stack([_mean_vector(of_speaker[s]) for s in speakers])
    genders = [of_speaker[s][0].gender for s in speakers]
    whitening = Whitening.fit(vectors, ConverterShape().speaker)
    scales = _scales(examples)
    drawn = draw_pool(vectors, genders, settings.voices_per_gender, settings.seed)
    converter, loss = fit_converters(examples, whitening, scales, settings, folder, progress=progress)
    scales["compensation"] = _compensation(converter, examples, whitening, scales)
    levels = np.array([_pitch_level(of_speaker[s]) for s in speakers])
    ridge = fit_ridge(whitening(vectors), levels)
    low, high = np.percentile(levels, [2, 98])
    card = {
        **(notes or {}),
        "speakers": {g or "unknown": genders.count(g) for g in sorted(set(genders))},
        "utterances": len(examples),
        "minutes": round(sum(len(e.f0) for e in examples) * world.PERIOD_MS / 60000, 1),
        "settings": asdict(settings),
        "parameters": converter.size,
        "loss": round(loss, 4),
        "f0_r_squared": round(ridge.r_squared, 3),
        "pool_voices": len(drawn.pool),
        "largest_cosine_of_pool_and_training_speakers": round(drawn.largest_cosine, 3),
        "drawn_voices_rejected_as_too_close": drawn.rejected,
        "veilmeter": __version__,
    }
    return VoiceModel(
        converter=converter,
        layer=settings.layer,
        scales=scales,
        whitening=whitening,
        f0_weights=ridge.weights,
        f0_range=(float(low), float(high)),
        plda=fit_plda(
            whitening, np.concatenate([e.pieces for e in examples]), [e.speaker for e in examples for _ in e.pieces]
        ),
        pool=drawn.pool,
        card=card,
    )


def _mean_vector(examples: list[Example]) -> NDArray[np.float64]:
    mean: NDArray[np.float64] = np.mean([unit(e.vector) for e in examples], axis=0, dtype=np.float64)
    return mean


def _pitch_level(examples: list[Example]) -> float:
    return float(np.log(np.concatenate([e.f0[e.f0 > 0] for e in examples])).mean())


def _scales(examples: list[Example]) -> dict[str, NDArray[np.float64]]:
    """How each quantity is standardized: over all frames, pitch over voiced ones; content varies within utterances."""
    outputs = np.concatenate([example.outputs for example in examples]).astype(np.float64)
    pitch = np.log(np.concatenate([example.f0[example.f0 > 0] for example in examples]).astype(np.float64))
    energy = np.concatenate([example.energy for example in examples]).astype(np.float64)
    return {
        "content_mean": np.mean([example.content.mean(axis=0, dtype=np.float64) for example in examples], axis=0),
        "content_variance": np.mean([example.content.var(axis=0, dtype=np.float64) for example in examples], axis=0),
        "output_mean": outputs.mean(axis=0),
        "output_scale": np.maximum(outputs.std(axis=0), 1e-6),
        "pitch": np.array([pitch.mean(), max(float(pitch.std()), 1e-3)]),
        "energy": np.array([energy.mean(), max(float(energy.std()), 1e-3)]),
        "compensation": np.ones(outputs.shape[1]),
    }


class Inputs(NamedTuple):
    """An utterance as tensors, each (numbers, frames), and its speaker's code."""

    content: Any
    prosody: Any
    outputs: Any
    code: Any


def _inputs(example: Example, whitening: Whitening, scales: dict[str, NDArray[np.float64]]) -> Inputs:
    import torch

    standard = ((example.outputs - scales["output_mean"]) / scales["output_scale"]).astype(np.float32)
    content = features.standardize(example.content, scales["content_mean"], scales["content_variance"])
    return Inputs(
        torch.from_numpy(content.astype(np.float16).T),
        torch.from_numpy(prosody_of(example.f0, example.energy, scales)),
        torch.from_numpy(standard.T.copy()),
        torch.from_numpy(whitening(example.vector).astype(np.float32)),
    )


def fit_converters(
    examples: list[Example],
    whitening: Whitening,
    scales: dict[str, NDArray[np.float64]],
    settings: TrainingSettings,
    folder: Path,
    *,
    progress: Progress = silent,
) -> tuple[Converters, float]:
    """The trained networks and their mean loss over the last steps (in standard deviations)."""
    data = [_inputs(example, whitening, scales) for example in examples]
    heard = _digest(examples)
    weights = _importance(scales)
    trained = [
        _fit_member(member, data, weights, settings, folder / CHECKPOINT.format(member), heard, progress)
        for member in range(settings.members)
    ]
    converter = Converters([network for network, _ in trained]).eval()
    for parameter in converter.parameters():
        parameter.requires_grad_(False)
    return converter, float(np.mean([loss for _, loss in trained]))


def _fit_member(
    member: int,
    data: list[Inputs],
    importance: NDArray[np.float64],
    settings: TrainingSettings,
    checkpoint: Path,
    heard: str,
    progress: Progress,
) -> tuple[Converter, float]:
    """One network and its loss.

    Each step draws its utterances, cuts and noise from the seed and the numbers of step and network alone: that is what
    lets a resumed run end with the same bytes.
    """
    import torch

    lengths = np.array([d.outputs.shape[1] for d in data], dtype=float)
    chances = lengths / lengths.sum()
    frames = int(min(settings.frames, lengths.max()))
    weights = torch.from_numpy(importance.astype(np.float32))[:, None]
    torch.manual_seed(settings.seed + NEXT_NETWORK * member)
    shape = ConverterShape(
        content=data[0].content.shape[0],
        outputs=data[0].outputs.shape[0],
        speaker=data[0].code.shape[0],
        bottleneck=settings.bottleneck,
        channels=settings.channels,
    )
    model = Converter(shape)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.learning_rate)
    start, recent = _restore(checkpoint, model, optimizer, settings, heard)
    with one_thread():
        for step in range(start, settings.steps):
            rng = np.random.default_rng([settings.seed, step, member])
            picked = rng.choice(len(data), settings.batch, p=chances)
            cuts = [_cut(data[number], frames, rng) for number in picked]
            content, prosody, outputs, codes = (torch.stack(parts) for parts in zip(*cuts, strict=True))
            noise = torch.from_numpy(rng.standard_normal(tuple(codes.shape)).astype(np.float32))
            for group in optimizer.param_groups:
                group["lr"] = settings.learning_rate * _schedule(step / settings.steps)
            predicted = model(content, prosody, codes + settings.speaker_noise * noise)
            wrong = (predicted - outputs) * weights
            # Also from frame to frame: what is right on average but does not move is not understood.
            loss = wrong.abs().mean() + MOVEMENT * wrong.diff(dim=2).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            recent = [*recent[-99:], float(loss.detach())]
            done = step + 1
            if done % settings.checkpoint_every == 0 or done == settings.steps:
                _keep(checkpoint, model, optimizer, settings, done, recent, heard)
            if done % 10 == 0 or done == settings.steps:
                total = settings.members * settings.steps
                progress("network", member * settings.steps + done, total, f"loss {np.mean(recent):.3f}")
    return model, float(np.mean(recent))


def _schedule(part: float) -> float:
    """A short rise, then a cosine down to a hundredth."""
    return min(1.0, part / 0.03 + 0.02) * (0.01 + 0.99 * 0.5 * (1 + math.cos(math.pi * part)))


def _importance(scales: dict[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """The weight of each output: between equal ones and the coefficients' own sizes, as the high ones are small and
    mostly noise. The first, loudness, is large but weighs no more than the second; aperiodicity is in another unit."""
    importance = np.sqrt(scales["output_scale"])
    importance[0] = importance[1]
    importance[world.ORDER :] = np.median(importance[: world.ORDER])
    weights: NDArray[np.float64] = importance / importance.mean()
    return weights


def _cut(item: Inputs, frames: int, rng: np.random.Generator) -> Inputs:
    """A random stretch; an utterance that is too short is repeated."""
    length = item.outputs.shape[1]
    times = -(-frames // length)
    at = int(rng.integers(max(1, length - frames + 1)))
    parts = (tensor.repeat(1, times)[:, at : at + frames] if times > 1 else tensor[:, at : at + frames]
             for tensor in (item.content, item.prosody, item.outputs))  # fmt: skip
    content, prosody, outputs = parts
    return Inputs(content.float(), prosody, outputs, item.code)


def _digest(examples: list[Example]) -> str:
    """A hash of the training speech: a checkpoint of other speech must not be continued."""
    digest = hashlib.sha256()
    for example in examples:
        digest.update(example.speaker.encode("utf-8", "surrogateescape") + b"\0")
        for array in (example.f0, example.energy, example.content, example.outputs, example.vector):
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _keep(
    path: Path, model: Converter, optimizer: Any, settings: TrainingSettings, done: int, recent: list[float], heard: str
) -> None:
    from safetensors.torch import save_file

    tensors = {f"model.{name}": value.contiguous() for name, value in model.state_dict().items()}
    for name, parameter in model.named_parameters():
        state = optimizer.state[parameter]
        tensors[f"first.{name}"], tensors[f"second.{name}"] = state["exp_avg"], state["exp_avg_sq"]
    about = {
        "settings": asdict(settings),
        "done": done,
        "recent": recent,
        "shape": model.shape.to_json(),
        "heard": heard,
    }
    with whole_file(path) as temporary:
        save_file(tensors, temporary, metadata={"about": json.dumps(about)})


def _restore(
    path: Path, model: Converter, optimizer: Any, settings: TrainingSettings, heard: str
) -> tuple[int, list[float]]:
    """Where a stopped run was; a checkpoint of other settings is an error, not a surprise."""
    import torch
    from safetensors import SafetensorError, safe_open

    if not path.is_file():
        return 0, []
    try:
        with safe_open(path, framework="pt") as handle:
            about = json.loads(handle.metadata()["about"])
            tensors = {name: handle.get_tensor(name) for name in handle.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise VeilmeterError(f"this checkpoint can't be read: {error}", path=path, fix="remove it") from None
    other = about["settings"] | {"checkpoint_every": settings.checkpoint_every}
    differing = [name for name, value in asdict(settings).items() if other.get(name) != value]
    if differing or about["shape"] != model.shape.to_json() or about.get("heard") != heard:
        named = f" ({', '.join(differing)})" if differing else ""
        raise VeilmeterError(
            f"this checkpoint was made with other settings{named} or another corpus",
            path=path,
            fix="choose another output folder, or remove the checkpoint",
        )
    model.load_state_dict({k.removeprefix("model."): v for k, v in tensors.items() if k.startswith("model.")})
    for name, parameter in model.named_parameters():
        optimizer.state[parameter] = {
            "step": torch.tensor(float(about["done"])),
            "exp_avg": tensors[f"first.{name}"].clone(),
            "exp_avg_sq": tensors[f"second.{name}"].clone(),
        }
    return int(about["done"]), list(about["recent"])


def _compensation(
    model: Converters, examples: list[Example], whitening: Whitening, scales: dict[str, NDArray[np.float64]]
) -> NDArray[np.float64]:
    """By how much true trajectories move more than predicted ones, for each coefficient."""
    import torch

    true, predicted = [], []
    with torch.inference_mode(), one_thread():
        for example in examples:
            content, prosody, outputs, code = _inputs(example, whitening, scales)
            out = model(content.float()[None], prosody[None], code[None])[0]
            true.append(outputs.std(dim=1).numpy())
            predicted.append(out.std(dim=1).numpy())
    ratio = np.mean(true, axis=0, dtype=np.float64) / np.maximum(np.mean(predicted, axis=0, dtype=np.float64), 1e-6)
    ratio[[0, *range(world.ORDER, len(ratio))]] = 1.0  # loudness and aperiodicity need none
    return np.clip(ratio, 1.0, 3.0)
