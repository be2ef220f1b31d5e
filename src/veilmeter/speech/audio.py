"""Audio in and out: whatever libsndfile reads becomes 16 kHz mono float32; what can't be used is named, not guessed."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError, Problem, missing_extra
from veilmeter.core.files import real_path, whole_file
from veilmeter.data.corpus import WHOLE, Corpus, CorpusReading, ReadingFacts, Stretch
from veilmeter.speech.decoding import (
    KINDS,
    RATE,
    REMEDIES,
    SHORTEST_SECONDS,
    AudioError,
    Recording,
    Silence,
    StretchReader,
    bad,
    open_regular,
    open_sound,
    riff_cut_short,
)

__all__ = [
    "KINDS", "LONGEST_SECONDS", "RATE", "REMEDIES", "SHORTEST_SECONDS", "AudioError", "Recording", "RecordingStream",
    "Silence", "clipping_problem", "is_silent", "read_audio", "read_header", "read_recording", "write_audio",
    "write_blocks",
]  # fmt: skip

LONGEST_SECONDS = 3600.0
_FORMS = {".flac": "FLAC", ".wav": "WAV"}
_BLOCK = 1 << 20  # samples written at once


def read_audio(
    path: str | Path, *, stretch: Stretch = WHOLE, max_seconds: float = LONGEST_SECONDS, allow: Collection[str] = ()
) -> NDArray[np.float32]:
    """A recording as 16 kHz mono in [-1, 1], or `AudioError` with the kind of what is wrong.

    Kinds in `allow` (of `short`, `silent`) pass.
    """
    return read_recording(path, stretch=stretch, max_seconds=max_seconds, allow=allow).samples


def read_recording(
    path: str | Path,
    *,
    stretch: Stretch = WHOLE,
    max_seconds: float = LONGEST_SECONDS,
    allow: Collection[str] = (),
    keep_seconds: float = math.inf,
) -> Recording:
    """As `read_audio`, with what the file was like. A recording longer than `keep_seconds` has no samples:
    take those from a `RecordingStream`, block by block."""
    stream = RecordingStream(path, stretch=stretch, max_seconds=max_seconds, allow=allow)
    samples, length, most = np.empty(0, np.float32), 0, keep_seconds * RATE
    for block in stream:
        length += len(block)
        if length > most:
            samples = np.empty(0, np.float32)
            continue
        if not len(samples):  # memory that is asked for ahead is not taken until it is filled
            samples = np.empty(max(length, int(min(stream.expected, most))), np.float32)
        elif length > len(samples):
            samples.resize(max(length, len(samples) * 5 // 4), refcheck=False)
        samples[length - len(block) : length] = block
    samples.resize(min(length, len(samples)), refcheck=False)
    return replace(stream.facts, samples=samples)


class RecordingStream:
    """A recording in blocks of 16 kHz mono, so that memory does not depend on its length. soxr resamples.

    Several channels are never mixed unasked: two people on the phone would become one voice. Channels that hold the
    same are one. `facts` are those of a recording without its samples; they are there when all blocks were read, and
    only then is it known that the recording is usable. Each iteration reads the file again.
    """

    facts: Recording

    def __init__(
        self,
        path: str | Path,
        *,
        stretch: Stretch = WHOLE,
        max_seconds: float = LONGEST_SECONDS,
        allow: Collection[str] = (),
    ) -> None:
        self.path, self.stretch, self.max_seconds, self.allow = path, stretch, max_seconds, allow
        self.expected = 0  # samples, as far as the header can be believed
        self.rate = 0  # of the file; both are known with the first block

    def __iter__(self) -> Iterator[NDArray[np.float32]]:
        with self._reader() as reader:
            self.expected, self.rate = reader.expected, reader.rate
            yield from reader.blocks()
        self.facts = reader.facts
        if self.facts.seconds < SHORTEST_SECONDS and "short" not in self.allow:
            raise AudioError(
                f"it lasts {self.facts.seconds:.2f} s, less than {SHORTEST_SECONDS} s",
                path=self.path,
                fix=REMEDIES["short"],
                kind="short",
            )
        if "silent" not in self.allow and reader.silence.lasts:
            raise bad("silent", self.path)

    def open_once(self) -> None:
        """An error that is known before anything is decoded: no audio, or by its header longer than allowed."""
        with self._reader():
            pass

    @contextmanager
    def _reader(self) -> Iterator[StretchReader]:
        try:
            import soundfile
            import soxr
        except ImportError as error:
            raise missing_extra(str(error.name), "audio") from None
        with open_regular(self.path) as handle:
            if riff_cut_short(handle):
                raise bad("truncated", self.path)
            try:
                with open_sound(handle, self.path) as sound:
                    yield StretchReader(sound, soxr, self.path, self.stretch, self.max_seconds)
            except soundfile.LibsndfileError as error:
                raise bad("unreadable", self.path, detail=str(error.error_string).strip().rstrip(".")) from None
            except AudioError:
                raise
            except (RuntimeError, OSError, ValueError, TypeError) as error:  # what soundfile's callbacks may raise
                raise bad("unreadable", self.path, detail=str(error)) from None


def read_header(path: str | Path) -> tuple[int, int] | None:
    """The sampling rate and the number of channels that a file's header names; None where it can't be read."""
    try:
        with open_regular(path) as handle, open_sound(handle, path) as sound:
            return int(sound.samplerate), int(sound.channels)
    except (AudioError, RuntimeError, OSError, ValueError, TypeError):
        return None


def read_seconds(path: str | Path) -> float | None:
    """The duration that a file's header names; None where it can't be read."""
    try:
        with open_regular(path) as handle, open_sound(handle, path) as sound:
            return int(sound.frames) / int(sound.samplerate)
    except (AudioError, RuntimeError, OSError, ValueError, TypeError):
        return None


def is_silent(samples: NDArray[np.float32]) -> bool:
    """Whether there is nothing but silence, an offset aside."""
    silence = Silence()
    silence.add(samples)
    return silence.lasts


def clipping_problem(path: str | Path, recording: Recording) -> Problem | None:
    """The remark about a clipped recording, or None; it is usable."""
    if not recording.is_clipped:
        return None
    return Problem("clipped", f"{100 * recording.clipped:.1f} % of its samples are clipped", str(path), fatal=False)


def write_audio(path: str | Path, samples: ArrayLike, rate: int = RATE) -> None:
    """Mono samples in [-1, 1] as 16-bit FLAC or WAV by the suffix; beyond full scale they are clipped, not wrapped."""
    x = np.asarray(samples)
    if x.ndim != 1:
        raise InputError("only mono audio is written", path=path)
    write_blocks(path, (x[start : start + _BLOCK] for start in range(0, len(x), _BLOCK)), rate)


def write_blocks(path: str | Path, blocks: Iterable[NDArray[Any]], rate: int = RATE, *, channels: int = 1) -> None:
    """As `write_audio`, for mono samples that come in blocks; each of several channels holds the same."""
    try:
        import soundfile
    except ImportError:
        raise missing_extra("soundfile", "audio") from None
    target = Path(path)
    form = _FORMS.get(target.suffix.lower())
    if form is None:
        raise InputError(
            f"audio can't be written as {target.suffix or 'a file without suffix'}",
            path=target,
            fix="use .flac or .wav",
        )
    with whole_file(target) as temporary, open(temporary, "w+b") as handle:
        sink = _Sink(handle)
        try:
            with soundfile.SoundFile(sink, "w", rate, channels, "PCM_16", format=form) as sound:
                for block in blocks:
                    if not np.isfinite(block).all():
                        raise InputError("the samples are not all finite numbers", path=target)
                    # Our own rounding: reading the file back gives exactly these values / 32768.
                    steps = np.clip(np.rint(block * np.float64(32768)), -32768, 32767).astype(np.int16)
                    sound.write(steps if channels == 1 else np.repeat(steps[:, None], channels, axis=1))
        except (soundfile.SoundFileError, AssertionError, RuntimeError):
            if sink.error is None:
                what = f"{form} can't hold {rate} Hz and {channels} channel{'' if channels == 1 else 's'}"
                raise InputError(what, path=target, fix="resample it, or leave out channels") from None
        if sink.error is not None:
            raise sink.error


class _Sink:
    """A file for libsndfile that remembers what the system answered: an exception would be lost in its callbacks."""

    def __init__(self, handle: BinaryIO) -> None:
        self._handle = handle
        self.error: OSError | None = None
        self.seek, self.tell, self.read = handle.seek, handle.tell, handle.read

    def write(self, data: bytes) -> int:
        try:
            return self._handle.write(data)
        except OSError as error:
            self.error = error
            return 0

    def flush(self) -> None:
        self._handle.flush()


def chose_channel(corpus: Corpus) -> bool:
    """Whether the user's choice of a channel decided which samples of some recording were used."""
    chosen = (read_header(utterance.path) for utterance in corpus if utterance.of_several)
    return any(header is not None and header[1] > 1 for header in chosen)


def leaves_home(corpus: Corpus) -> bool:
    """Whether the folders that audio may lie in decided anything: a recording lies elsewhere, or was left out."""
    home = real_path(corpus.root)
    return bool(corpus.problems) or not all(real_path(u.path).is_relative_to(home) for u in corpus)


def reading_facts(options: CorpusReading, *corpora: Corpus) -> ReadingFacts:
    """The facts that tell whether options of reading decided anything; not looked for where none was given."""
    return ReadingFacts(
        has_channels=options.channel is not None and any(map(chose_channel, corpora)),
        leaves_home=bool(options.root) and any(map(leaves_home, corpora)),
    )
