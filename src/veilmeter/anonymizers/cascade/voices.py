"""Two English synthesizers, and the pseudo-voice that the larger one speaks with.

Both read the same phones and think alike: first how long each phone lasts, then the melody, then the sound. Between
these steps another rhythm or melody can be given (`Prosody`). `fast` has one voice for everybody; `kokoro` has 28, and
a pseudo-voice is a mixture of three of them that no one of them is near.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, missing_extra
from veilmeter.speech import weights
from veilmeter.speech.onnx_session import available_providers, cut_behind, import_runtime, open_session, session_options

# Part of the version: raise it when the same phones may give other samples.
CODE = 1
RATE = 24_000
FRAME = 300  # samples of a frame of melody; a phone lasts a whole number of pairs of them
FFT = 1200
MOST_PHONES = 400  # said at once

Samples = NDArray[np.float32]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class Prosody(Protocol):
    """A rhythm or a melody to speak with. There is one duration (of 25 ms) per phone, a silence at each end included,
    and one F0 in hertz per 12.5 ms, at most `UNVOICED` where speech is unvoiced."""

    def durations(self, own: Integers) -> Integers: ...

    def melody(self, own: Floats, durations: Integers) -> Floats: ...


UNVOICED = 40.0


class PhoneSynthesizer(Protocol):
    """Says phones in a voice; the same phones in the same voice are always the same samples, at 24 kHz."""

    @property
    def version(self) -> str: ...

    def speak(self, phones: str, mixture: Mapping[str, float], prosody: Prosody | None = None) -> Samples: ...


class _Network:
    """A network that is told phones as numbers. With `inner` (names of its tensors of durations and melody) other ones
    can be given to it: ONNX Runtime always computes a whole graph, so the way to each of them is a separate graph."""

    def __init__(self, model: Path, inner: tuple[str, str] | None) -> None:
        self._inner = inner
        if inner is None:
            self._session = open_session(model)
        else:
            self._rhythm, self._melody, self._session = _open_in_steps(model, inner)

    def run(self, inputs: dict[str, Any], outputs: Sequence[str], prosody: Prosody | None) -> list[Any]:
        given: list[Any]
        if self._inner is None or prosody is None:
            given = self._session.run(list(outputs), inputs)
            return given
        lasting, melody = self._inner
        own = self._rhythm.run(None, inputs)[0]
        durations = np.maximum(1, prosody.durations(own.reshape(-1).astype(np.int64)))
        inputs = inputs | {lasting: durations.astype(own.dtype).reshape(own.shape)}
        own_melody = self._melody.run(None, inputs)[0]
        wanted = prosody.melody(own_melody.reshape(-1).astype(np.float64), durations)
        inputs = inputs | {melody: wanted.astype(np.float32).reshape(own_melody.shape)}
        given = self._session.run(list(outputs), inputs)
        return given


def _open_in_steps(model: Path, tensors: tuple[str, str]) -> list[Any]:
    """Three sessions: phones to durations, these and durations to melody, all of it to sound."""
    try:
        import onnx
    except ImportError:
        raise missing_extra("onnx", "audio") from None
    whole = onnx.load(model)
    sessions = []
    for step in range(3):
        part = onnx.ModelProto()
        part.CopyFrom(whole)
        for tensor in tensors[:step]:
            _make_input(part.graph, tensor)
        if step < 2:
            cut_behind(part.graph, tensors[step])
        content = part.SerializeToString()
        del part
        sessions.append(import_runtime().InferenceSession(content, session_options(), providers=available_providers()))
    return sessions


def _make_input(graph: Any, tensor: str) -> None:
    from onnx import TensorProto, helper

    node = next((node for node in graph.node if tensor in node.output), None)
    if node is None:
        raise InputError(f"this model has no tensor {tensor}", fix="remove it from the cache and run again")
    kind = int(node.attribute[0].i) if node.op_type == "Cast" else int(TensorProto.FLOAT)
    node.output[list(node.output).index(tensor)] = f"unused {tensor}"
    kept = [output for output in graph.output if output.name != tensor]
    del graph.output[:]
    graph.output.extend(kept)
    graph.input.append(helper.make_tensor_value_info(tensor, kind, None))


def _numbers(table: Mapping[str, int], phones: str) -> NDArray[np.int64]:
    """Between two silences; every phone must be known, as durations are given by place."""
    return np.array([[0, *(table[phone] for phone in phones), 0]], np.int64)


def filter_phones(table: Mapping[str, int], phones: str) -> str:
    return "".join(phone for phone in phones if phone in table)


class FastVoice:
    """One voice, a 6-million-parameter network and a source-filter synthesis in the frequency domain (hibari)."""

    INNER = ("/Cast_32_output_0", "f0")
    OUTPUTS = ("lh", "theta", "ln", "lr", "phi")

    def __init__(self, model: Path, table: Mapping[str, int], *, with_prosody: bool) -> None:
        self.version = f"hibari-{weights.HIBARI_VOICE.sha256[:12]}-{CODE}"
        self.table = table
        self._network = _Network(model, self.INNER if with_prosody else None)

    def speak(self, phones: str, mixture: Mapping[str, float], prosody: Prosody | None = None) -> Samples:
        numbers = _numbers(self.table, phones)
        inputs = {"ids": numbers, "speed": np.ones(1, np.float32)}
        if prosody is None:
            *parts, f0 = self._network.run(inputs, [*self.OUTPUTS, "f0"], None)
            melody = f0[0]
        else:
            given = _Remembered(prosody)
            parts = self._network.run(inputs, self.OUTPUTS, given)
            melody = given.last
        # The noise belongs to the phones: the same words sound the same, whoever said them.
        seed = hashlib.sha256(numbers.tobytes()).digest()
        spectra = Spectra(*(part[0] for part in parts))
        return _synthesize(spectra, melody, np.random.default_rng(int.from_bytes(seed[:8])))


class _Remembered:
    """A prosody, and the melody that it gave."""

    def __init__(self, prosody: Prosody) -> None:
        self._prosody = prosody
        self.last: Floats = np.empty(0)

    def durations(self, own: Integers) -> Integers:
        return self._prosody.durations(own)

    def melody(self, own: Floats, durations: Integers) -> Floats:
        self.last = self._prosody.melody(own, durations)
        return self.last


_LOUDEST = 7.0  # of logarithms of magnitudes
_WINDOW = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FFT) / FFT)).astype(np.float32)


@dataclass(frozen=True, eq=False, slots=True)
class Spectra:
    """The network's output, each bins x frames: logarithms of magnitudes, turns and phases."""

    harmonic: Samples
    turn: Samples
    noise: Samples
    free: Samples
    phase: Samples


def _synthesize(spectra: Spectra, f0: Floats, rng: np.random.Generator) -> Samples:
    """Samples from the network's spectra: pulses through the harmonic part, noise, and a free part.

    S = exp(harmonic) exp(i pi tanh(turn)) STFT(pulses) + exp(noise) Z + exp(free) exp(i phase), Z complex and normal.
    """
    spectrum = _analyze(_pulses(np.asarray(f0, np.float64).reshape(-1)), spectra.harmonic.shape[1])
    turned = np.exp(1j * np.float32(np.pi) * np.tanh(spectra.turn))
    spectrum *= np.exp(np.minimum(spectra.harmonic, _LOUDEST)) * turned
    random = rng.standard_normal((2, *spectra.noise.shape), dtype=np.float32)
    spectrum += np.exp(np.minimum(spectra.noise, _LOUDEST)) * (random[0] + 1j * random[1])
    spectrum += np.exp(np.minimum(spectra.free, _LOUDEST)) * np.exp(1j * spectra.phase)
    return _overlap(spectrum)


def _pulses(f0: Floats) -> Samples:
    """All harmonics up to 11 kHz at equal strength; nothing where it is unvoiced."""
    frames = len(f0)
    place = (np.arange(frames * FRAME) + 0.5) / FRAME - 0.5
    pitch = np.interp(place, np.arange(frames), f0)
    voiced = pitch > UNVOICED
    pitch = np.maximum(pitch, UNVOICED)
    angle = 2 * np.pi * np.mod(np.cumsum(pitch) / RATE, 1.0)
    count = np.floor(11_000 / pitch)
    half = 2 * np.sin(angle / 2)
    near = np.abs(half) <= 2e-3  # the sum of the cosines tends to their number there
    total = np.where(near, count + 0.5, np.sin((count + 0.5) * angle) / np.where(near, 1.0, half)) - 0.5
    return np.where(voiced, total, 0.0).astype(np.float32)


def _analyze(samples: Samples, frames: int) -> NDArray[np.complex64]:
    """Its spectrum, such that a cosine of strength 1 has a magnitude of 1."""
    from scipy.fft import rfft

    padded = np.pad(samples, FFT // 2, mode="reflect")
    windows = np.lib.stride_tricks.sliding_window_view(padded, FFT)[::FRAME][:frames] * (_WINDOW / (FFT / 4))
    spectrum: NDArray[np.complex64] = np.ascontiguousarray(rfft(windows, axis=1).T)
    return spectrum


def _overlap(spectrum: NDArray[np.complex64]) -> Samples:
    """Samples of frames that overlap: windowed once more, added, divided by the sum of the squared windows."""
    from scipy.fft import irfft

    frames, overlaps = spectrum.shape[1], FFT // FRAME
    pieces = (irfft(spectrum.T, FFT, axis=1) * _WINDOW).reshape(frames, overlaps, FRAME)
    squares = (_WINDOW * _WINDOW).reshape(overlaps, FRAME)
    total = np.zeros((frames + overlaps - 1, FRAME), np.float32)
    weight = np.zeros_like(total)
    for part in range(overlaps):
        total[part : part + frames] += pieces[:, part]
        weight[part : part + frames] += squares[part]
    samples: Samples = (total / np.maximum(weight, np.float32(1e-11))).reshape(-1).astype(np.float32)
    return samples[FFT // 2 : FFT // 2 + frames * FRAME]


STYLE = 256  # numbers that describe a voice: half of them its sound, half its way of speaking
SOUND = STYLE // 2
LENGTHS = 510  # a voice has a style for each number of phones


class Kokoro:
    """Kokoro-82M with a mixture of its English voices."""

    INNER = ("/encoder/Cast_output_0", "/encoder/Squeeze_output_0")

    def __init__(self, model: Path, table: Mapping[str, int], pool: BaseVoices, *, with_prosody: bool) -> None:
        self.version = f"kokoro-{weights.KOKORO.sha256[:12]}-{CODE}"
        self.table, self._pool = table, pool
        self._network = _Network(model, self.INNER if with_prosody else None)

    def speak(self, phones: str, mixture: Mapping[str, float], prosody: Prosody | None = None) -> Samples:
        numbers = _numbers(self.table, phones)
        style = self._pool.style(mixture, len(phones))
        inputs = {"input_ids": numbers, "style": style[None], "speed": np.ones(1, np.float32)}
        samples: Samples = self._network.run(inputs, ["waveform"], prosody)[0].reshape(-1)
        return samples


@dataclass(frozen=True, eq=False)
class BaseVoices:
    """The base voices: their names and styles (voices x lengths x 256)."""

    names: tuple[str, ...]
    styles: NDArray[np.float32]

    def style(self, mixture: Mapping[str, float], length: int) -> NDArray[np.float32]:
        rows = [self.names.index(name) for name in mixture]
        share = np.array(list(mixture.values()), np.float64)
        mixed: NDArray[np.float32] = (share @ self.styles[rows, min(length, LENGTHS - 1)]).astype(np.float32)
        return mixed

    def draw(self, rng: np.random.Generator) -> PseudoVoice:
        """A mixture of voices of one gender, drawn again until it is far enough from every base voice."""
        gender = "fm"[int(rng.integers(2))]
        names = [name for name in self.names if name[1] == gender]
        while True:
            chosen = sorted(rng.choice(len(names), MIXED, replace=False).tolist())
            share = np.round(rng.dirichlet(np.full(MIXED, 4.0)), 3)
            share[-1] = np.round(1.0 - share[:-1].sum(), 3)
            mixture = {names[row]: float(part) for row, part in zip(chosen, share, strict=True)}
            nearest, distance = self.nearest(mixture)
            if min(share) > 0 and distance >= LEAST_DISTANCE:
                return PseudoVoice(gender, mixture, nearest, round(distance, 3))

    def nearest(self, mixture: Mapping[str, float]) -> tuple[str, float]:
        """The base voice that sounds most like a mixture, and how far it is: 1 is the median distance of two base
        voices of a gender."""
        sounds, unit = _sounds(self)
        rows = [self.names.index(name) for name in mixture]
        mixed = np.array(list(mixture.values())) @ sounds[rows]
        distances = np.linalg.norm(sounds - mixed, axis=1) / unit
        row = int(distances.argmin())
        return self.names[row], float(distances[row])


MIXED = 3  # voices in a mixture
LEAST_DISTANCE = 0.45  # of a mixture from every base voice


@dataclass(frozen=True, slots=True)
class PseudoVoice:
    """A mixture of base voices, and which of them is nearest, how far."""

    gender: str
    mixture: Mapping[str, float]
    nearest: str
    distance: float

    @property
    def name(self) -> str:
        text = json.dumps(self.mixture, sort_keys=True)
        return f"{self.gender}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


@lru_cache(maxsize=2)
def _sounds(pool: BaseVoices) -> tuple[Floats, float]:
    """The part of each style that decides the sound, over lengths; and the median distance within a gender."""
    sounds = pool.styles[:, :, :SOUND].mean(axis=1, dtype=np.float64)
    pairs = [
        float(np.linalg.norm(sounds[one] - sounds[two]))
        for one in range(len(sounds))
        for two in range(one)
        if pool.names[one][1] == pool.names[two][1]
    ]
    return sounds, float(np.median(pairs))


VOICES = ("kokoro", "fast")


def load_pool(*, offline: bool = False) -> BaseVoices:
    return _load_pool(offline, str(weights.cache_folder()))


@lru_cache(maxsize=1)
def _load_pool(offline: bool, cache: str) -> BaseVoices:
    path = weights.fetch(weights.KOKORO_STYLES, offline=offline, cache=cache)
    styles = np.fromfile(path, "<f4").reshape(len(weights.KOKORO_VOICES), LENGTHS, STYLE)
    return BaseVoices(weights.KOKORO_VOICES, styles)


def load_synthesizer(voice: str, *, with_prosody: bool = False, offline: bool = False) -> FastVoice | Kokoro:
    """Once per process; the weights are fetched once."""
    return _load_synthesizer(voice, with_prosody, offline, str(weights.cache_folder()))


@lru_cache(maxsize=2)
def _load_synthesizer(voice: str, with_prosody: bool, offline: bool, cache: str) -> FastVoice | Kokoro:
    table_path = weights.fetch(weights.HIBARI_PHONES, offline=offline, cache=cache)
    table: dict[str, int] = json.loads(table_path.read_text(encoding="utf-8"))
    if voice == "fast":
        model = weights.fetch(weights.HIBARI_VOICE, offline=offline, cache=cache)
        return FastVoice(model, table, with_prosody=with_prosody)
    model = weights.fetch(weights.KOKORO, offline=offline, cache=cache)
    return Kokoro(model, table, _load_pool(offline, cache), with_prosody=with_prosody)
