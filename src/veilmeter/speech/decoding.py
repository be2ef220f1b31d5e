"""One file decoded in blocks: opened only if it is a regular file, left as soon as it gets longer than allowed.

Files are untrusted: whatever a header promises, memory holds one block of it at a time.
"""

from __future__ import annotations

import io
import math
import os
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, MissingInput, Problem, missing_extra
from veilmeter.core.files import open_input
from veilmeter.data.corpus import MIX, Stretch
from veilmeter.data.layouts import MEDIA_SUFFIXES

_CONFINED = {
    "format_whitelist": "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,asf,amr,amrnb,amrwb,aac,avi,ac3,eac3,mp3,ogg,gsm,ape,wv",
    "protocol_whitelist": "none",
}
# Containers whose header names the length; others guess it from the rate of bits.
_WITH_LENGTH = ("mov", "matroska")
_FORMATS = {"u8": 128.0, "s16": 32768.0, "s32": 2147483648.0, "flt": 1.0, "dbl": 1.0}


def _lenient(version: str) -> dict[str, Any]:
    """Options with which PyAV accepts titles that are not text: needed up to version 18.

    >>> _lenient("18.1.0"), _lenient("19.0.2")
    ({'metadata_errors': 'ignore'}, {})
    """
    return {"metadata_errors": "ignore"} if int(version.partition(".")[0]) < 19 else {}


class MediaFile:
    """The first audio stream of a file, decoded as it is read. `frames` is 0: no container knows them exactly;
    `claimed_seconds` are what its header says, or 0."""

    frames = 0
    format = "MEDIA"

    def __init__(self, handle: io.FileIO, path: str | Path) -> None:
        try:
            import av
        except ImportError:
            raise missing_extra("av", "media") from None
        self._errors = av.FFmpegError
        try:
            # The open file, not its name, and no demuxer that reads lists of further files or addresses.
            self._container = av.open(handle, "r", options=_CONFINED, **_lenient(av.__version__))
            streams = self._container.streams.audio
            if not streams:
                raise ValueError("no audio in it")
            self.samplerate, self.channels = int(streams[0].rate), int(streams[0].channels)
            if self.samplerate < 1 or self.channels < 1:
                raise ValueError("its sampling rate or number of channels is zero")
            known = self._container.format.name.startswith(_WITH_LENGTH) and self._container.duration
            self.claimed_seconds = (known or 0) / av.time_base
            self._blocks = self._decode(streams[0])
        except av.FFmpegError as error:
            raise ValueError(f"FFmpeg says: {error.strerror}") from None
        except (AttributeError, TypeError):  # PyAV, of a stream whose codec it does not know
            raise ValueError("its audio can't be identified") from None
        self._rest = np.zeros((0, self.channels), np.float32)

    def __enter__(self) -> MediaFile:
        return self

    def __exit__(self, *_: object) -> None:
        self._container.close()

    def read(self, count: int, dtype: str = "float32", always_2d: bool = True) -> NDArray[np.float32]:
        """The next `count` frames, or what is left."""
        parts, have = [self._rest], len(self._rest)
        while have < count and (block := next(self._blocks, None)) is not None:
            parts.append(block)
            have += len(block)
        values = np.concatenate(parts)
        self._rest = values[count:]
        return values[:count]

    def seek(self, frame: int) -> None:
        """Forward to a frame by decoding up to it: seeking in these containers is not exact."""
        while frame > 0:
            skipped = len(self.read(min(frame, 1 << 20)))
            if not skipped:
                return
            frame -= skipped

    def _decode(self, stream: Any) -> Iterator[NDArray[np.float32]]:
        try:
            for frame in self._container.decode(stream):
                values = frame.to_ndarray()
                name = frame.format.name
                if not name.endswith("p"):  # channels one after the other in each frame
                    values = values.reshape(-1, self.channels).T
                if values.shape[0] != self.channels or frame.sample_rate != self.samplerate:
                    raise ValueError("its rate or channels change on the way")
                scaled = values.astype(np.float32) / np.float32(_FORMATS[name.removesuffix("p")])
                yield np.ascontiguousarray((scaled - 1.0 if name.startswith("u8") else scaled).T)
        except self._errors as error:
            raise RuntimeError(error.strerror) from None


class MpegFile:
    """An MP3 file, decoded by libsndfile through a handle that ends where too little of it is MPEG audio.

    libmpg123 looks for the next frame byte by byte, and prints three lines per attempt: a few megabytes of broken
    headers took minutes and filled terminals. An intact frame has at least 24 bytes and takes two or three reads.
    """

    format = "MP3"
    _NOTHING = "too little of it is MPEG audio"

    def __init__(self, handle: io.FileIO, path: str | Path) -> None:
        import soundfile

        self._path, self._handle = path, _CountingHandle(handle)
        try:
            with _stderr_off:
                self._sound = soundfile.SoundFile(self._handle)
        except soundfile.LibsndfileError:
            if self._handle.gave_up:
                raise bad("unreadable", path, detail=self._NOTHING) from None
            raise
        self.samplerate, self.channels = self._sound.samplerate, self._sound.channels
        self.frames = self._sound.frames

    def __enter__(self) -> MpegFile:
        return self

    def __exit__(self, *_: object) -> None:
        with _stderr_off:
            self._sound.close()

    def read(self, count: int, dtype: str = "float32", always_2d: bool = True) -> NDArray[np.float32]:
        with _stderr_off:
            values: NDArray[np.float32] = self._sound.read(count, dtype=dtype, always_2d=always_2d)
        self._refuse()
        return values

    def seek(self, frame: int) -> None:
        with _stderr_off:
            self._sound.seek(frame)
        self._refuse()

    def _refuse(self) -> None:
        if self._handle.gave_up:
            raise bad("unreadable", self._path, detail=self._NOTHING)


class _CountingHandle:
    """A file that ends early where it is read in crumbs."""

    _PATIENCE, _CRUMB = 5000, 6  # reads; bytes per read beyond these

    def __init__(self, handle: io.FileIO) -> None:
        self._handle, self._reads, self._bytes = handle, 0, 0
        self.gave_up = False
        self.seek, self.tell, self.write = handle.seek, handle.tell, handle.write

    def readinto(self, buffer: Any) -> int:
        if self.gave_up:
            return 0
        count = self._handle.readinto(buffer) or 0
        self._reads += 1
        self._bytes += count
        self.gave_up = self._reads > self._PATIENCE + self._bytes // self._CRUMB
        return count


class _StderrOff:
    """Drops what C libraries print while any thread is inside; we report what was wrong, once per recording."""

    def __init__(self) -> None:
        self._lock, self._inside, self._kept = threading.Lock(), 0, -1

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                with suppress(OSError), open(os.devnull, "wb") as nowhere:  # a program may have no such stream
                    self._kept = os.dup(2)
                    os.dup2(nowhere.fileno(), 2)
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside and self._kept >= 0:
                os.dup2(self._kept, 2)
                os.close(self._kept)
                self._kept = -1


_stderr_off = _StderrOff()


RATE = 16_000
LARGEST_RECORDING = 1 << 35  # bytes: two days in CD quality
SHORTEST_SECONDS = 0.5

KINDS = {
    "missing-audio": "the file is not there",
    "unreadable": "it can't be read as audio",
    "empty": "it holds no samples",
    "truncated": "it breaks off before its header says it ends",
    "nan": "it holds samples that are not finite numbers",
    "out-of-range": "its samples are far beyond full scale",
    "too-long": "it is longer than allowed",
    "channels": "its channels hold different sounds, which are never mixed unasked",
    "outside": "the stretch that the list names is not in the file",
    "short": f"it is shorter than {SHORTEST_SECONDS} s",
    "silent": "it holds nothing but silence",
    "clipped": "it is clipped; it was used all the same",
}
"""Problems of recordings. All but `clipped` make it unusable."""

REMEDIES = {
    "out-of-range": "scale it to [-1, 1]",
    "too-long": "cut it, or raise --max-seconds",
    "channels": "say which channel is whose in the column channel of a list, or choose with --channel 0, 1 or mix",
    "outside": "fix the list",
    "short": "leave it out",
    "silent": "leave it out",
}
"""What to do about it, by kind, where there is something to do."""

_RATES = (2_000, 768_000)
_BLOCK_VALUES = 1 << 20  # samples times channels held at once
_SILENCE = 2.0**-12  # eight steps of 16 bits: dithered digital silence stays below, the faintest speech far above
_LOUDEST = 16.0  # 24 dB above full scale; integers that were stored as floats lie far beyond
_CLIP_LEVEL = 0.98
_SAME_CHANNELS = 1e-3  # of the energy may differ between channels that hold one voice: 30 dB
_SLACK = 0.1  # seconds by which a list may exceed the file: lists round, and codecs pad
_CLIP_SHARE = 1e-3
_DAY = 24 * 3600  # seconds; a header that promises more may be one whose writer did not know
_SPARSEST = 500  # bytes per second of the thriftiest speech codecs: a file with fewer does not hold what it promises


class AudioError(InputError):
    """A recording that can't be used; `kind` is a key of `KINDS`."""

    def __init__(
        self,
        what: str,
        *,
        path: str | Path | None = None,
        line: int | None = None,
        fix: str | None = None,
        kind: str = "unreadable",
    ) -> None:
        super().__init__(what, path=path, line=line, fix=fix)
        self.kind = kind

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.what, self.path, self.line, self.fix, self.kind))

    def problem(self) -> Problem:
        """The same as an entry of a list of problems."""
        return Problem(self.kind, self.what, self.path or "", self.line, self.fix or "")


def _rebuild(what: str, path: str | None, line: int | None, fix: str | None, kind: str) -> AudioError:
    return AudioError(what, path=path, line=line, fix=fix, kind=kind)


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """Samples at 16 kHz with what the file had: its rate, channels, length in seconds and share of clipped samples.

    `length` is the number of samples, also where they were not kept; `heard_channels` how many channels of the file
    hold this voice: one where a channel was chosen.
    """

    samples: NDArray[np.float32]
    rate: int
    channels: int
    seconds: float
    clipped: float
    length: int = 0
    heard_channels: int = 1

    def __repr__(self) -> str:
        return f"Recording({self.seconds:.2f} s, {self.rate} Hz, {self.channels} channels)"

    @property
    def is_clipped(self) -> bool:
        """More than 1 in 1000 samples lies in a flat stretch at full scale."""
        return self.clipped > _CLIP_SHARE


class Silence:
    """Whether there is nothing but silence in what comes block by block, an offset aside."""

    def __init__(self) -> None:
        self._sum, self._count = 0.0, 0
        self._lowest, self._highest = math.inf, -math.inf

    def add(self, block: NDArray[np.float32]) -> None:
        if len(block):
            self._sum += float(block.sum(dtype=np.float64))
            self._count += len(block)
            self._lowest = min(self._lowest, float(block.min()))
            self._highest = max(self._highest, float(block.max()))

    @property
    def lasts(self) -> bool:
        middle = self._sum / max(self._count, 1)
        return max(self._highest - middle, middle - self._lowest) < _SILENCE


def open_sound(handle: io.FileIO, path: str | Path) -> Any:
    """The file opened by libsndfile, or by PyAV where its name is of the mp4 family."""
    if Path(path).suffix.lower() in MEDIA_SUFFIXES:
        return MediaFile(handle, path)
    head = handle.read(3)
    handle.seek(0)
    if head == b"ID3" or (head[:1] == b"\xff" and head[1:2] >= b"\xe0"):
        return MpegFile(handle, path)
    import soundfile

    return soundfile.SoundFile(handle.fileno(), closefd=False)


def open_regular(path: str | Path) -> io.FileIO:
    """The file if it is a regular one: opening a pipe or a device would wait, or never end."""
    try:
        handle: io.FileIO = open_input(path, most=LARGEST_RECORDING).detach()  # type: ignore[attr-defined]
    except MissingInput:
        raise bad("missing-audio", path) from None
    except InputError as error:
        raise bad("unreadable", path, detail=error.what) from None
    handle.seek(0)  # libsndfile gets the same handle: no reading ahead
    if os.fstat(handle.fileno()).st_size == 0:
        handle.close()
        raise bad("empty", path)
    return handle


class StretchReader:
    """Reads a stretch of an open file in blocks and judges what it hears on the way."""

    def __init__(self, sound: Any, soxr: Any, path: str | Path, stretch: Stretch, max_seconds: float) -> None:
        self.sound, self.path, self.stretch, self.max_seconds = sound, path, stretch, max_seconds
        self.rate, self.channels, self.promised = int(sound.samplerate), int(sound.channels), int(sound.frames)
        if not _RATES[0] <= self.rate <= _RATES[1]:
            raise bad("unreadable", path, detail=f"a rate of {self.rate} Hz is not a sampling rate of speech")
        self.channel = None if stretch.of_several and self.channels == 1 else stretch.channel
        channel = self.channel
        if channel is not None and channel >= self.channels:
            word = "channel" if self.channels == 1 else "channels"
            detail = f"channel {channel} was asked for, counted from 0, and the file has {self.channels} {word}"
            raise bad("channels", path, detail=detail, fix="name a channel that is there")
        self._refuse_too_long()
        self.resample = None
        if self.rate != RATE:
            self.resample = soxr.ResampleStream(self.rate, RATE, 1, dtype="float32", quality="HQ")
        self.frames = self.clipped = self.length = 0
        self.silence = Silence()
        self.apart = self.total = 0.0  # energy of what differs between channels, and of all

    @property
    def expected(self) -> int:
        """How many samples there will be, by the header and by what is allowed; 0 where the header does not know."""
        seconds = min(self.promised / self.rate, self.max_seconds, (self.stretch.end or math.inf) - self.stretch.start)
        return math.ceil(max(seconds, 0.0) * RATE) + 1 if self.promised else 0

    @property
    def facts(self) -> Recording:
        heard = self.channels if self.channel is None else 1
        clipped = self.clipped / max(self.frames, 1)
        nothing = np.empty(0, np.float32)
        return Recording(
            nothing, self.rate, self.channels, self.frames / self.rate, clipped, self.length, heard_channels=heard
        )

    def blocks(self) -> Iterator[NDArray[np.float32]]:
        """The stretch at 16 kHz; an error where it turns out that it is not usable."""
        start = round(self.stretch.start * self.rate)
        wanted = None if self.stretch.end is None else round(self.stretch.end * self.rate) - start
        if start:
            self._skip(start)
        block = max(1, _BLOCK_VALUES // self.channels)
        last = False
        while not last:
            count = block if wanted is None else min(block, wanted - self.frames)
            values = self._read(count)
            self.frames += len(values)
            last = len(values) < count or self.frames == wanted
            if self.frames > self.max_seconds * self.rate:
                raise self._too_long()
            mono = self._mono(values)
            samples = mono if self.resample is None else self.resample.resample_chunk(mono, last=last)
            self.length += len(samples)
            self.silence.add(samples)
            yield samples
        if wanted is None and not start:
            self._check_whole()
        elif wanted is not None and self.frames < wanted - _SLACK * self.rate:
            detail = f"it ends at {self.stretch.end:g} s, and the file after {(start + self.frames) / self.rate:g} s"
            raise bad("outside", self.path, detail=detail)
        if self.frames == 0:
            raise bad("outside" if start else "empty", self.path)
        if self.channel is None and self.apart > _SAME_CHANNELS * self.total:
            raise bad("channels", self.path, detail=f"there are {self.channels}")

    def _refuse_too_long(self) -> None:
        """Before any work, where the header or the list tells how long it is; else it is counted on the way."""
        seconds = self.promised / self.rate
        if seconds > _DAY and not self._is_big_enough(seconds):
            seconds = 0.0
        if not self.promised and self._is_big_enough(claimed := float(getattr(self.sound, "claimed_seconds", 0.0))):
            seconds = claimed
        end = min(self.stretch.end or math.inf, seconds or math.inf)
        if math.isfinite(end) and end - self.stretch.start > self.max_seconds:
            raise self._too_long()

    def _is_big_enough(self, seconds: float) -> bool:
        return os.path.getsize(self.path) >= _SPARSEST * seconds

    def _too_long(self) -> AudioError:
        detail = f"more than {self.max_seconds:g} s"
        return bad("too-long", self.path, detail=detail)

    def _skip(self, start: int) -> None:
        if self.promised and start >= self.promised:
            detail = f"it starts at {self.stretch.start:g} s, and the file ends before"
            raise bad("outside", self.path, detail=detail)
        self.sound.seek(start)

    def _read(self, count: int) -> NDArray[np.float32]:
        try:
            values: NDArray[np.float32] = self.sound.read(count, dtype="float32", always_2d=True)
        except RuntimeError:  # the header was fine, what follows is not: FLAC ends like this when it is cut
            detail = f"of {self.promised} frames not all can be decoded"
            raise bad("truncated", self.path, detail=detail) from None
        return values

    def _mono(self, values: NDArray[np.float32]) -> NDArray[np.float32]:
        """One channel of a block, after looking for what makes a recording unusable."""
        channel = self.channel
        if self.channels > 1 and channel is None:
            mean = values.mean(axis=1, dtype=np.float32)
            self.apart += float(np.square(values - mean[:, None], dtype=np.float64).sum())
            self.total += float(np.square(values, dtype=np.float64).sum())
        elif channel == MIX:
            mean = values.mean(axis=1, dtype=np.float32)
        else:
            values = values[:, [channel or 0]]
            mean = values[:, 0]
        if len(values):
            peak = float(np.abs(values).max())
            if not np.isfinite(peak):
                raise bad("nan", self.path)
            if peak > _LOUDEST:
                raise bad("out-of-range", self.path, detail=f"up to {peak:.3g} times")
            self.clipped += _flat_at_full_scale(values)
        return np.ascontiguousarray(mean)

    def _check_whole(self) -> None:
        """Formats that do not know their length say 0 or an absurd number; a lie of less than a day is a cut file."""
        frames, promised = self.frames, self.promised
        lies = frames < promised <= max(_DAY * self.rate, 2 * frames)
        if lies or (promised > frames and getattr(self.sound, "format", "") == "FLAC"):
            raise bad("truncated", self.path, detail=f"{frames} of {promised} frames")


def _flat_at_full_scale(values: NDArray[np.float32]) -> int:
    """Samples in runs of at least three equal ones near full scale, in the channel that has most."""
    high = np.abs(values[1:]) >= _CLIP_LEVEL
    same = high & (values[1:] == values[:-1])
    if not same.any():
        return 0
    middle = same[1:] & same[:-1]  # one in the middle of three
    run = np.zeros(values.shape, bool)
    for shift in range(3):
        run[shift : shift + len(middle)] |= middle
    return int(run.sum(axis=0).max())


def riff_cut_short(handle: io.FileIO) -> bool:
    """Whether a WAV file's data chunk is longer than the file: libsndfile reads what is left and says nothing."""
    try:
        size = os.fstat(handle.fileno()).st_size
        head = handle.read(12)
        if head[:4] != b"RIFF" or head[8:] != b"WAVE":
            return False
        position = 12
        for _ in range(1000):
            handle.seek(position)
            chunk = handle.read(8)
            if len(chunk) < 8:
                return position > size  # a chunk before the data was cut
            name, length = struct.unpack("<4sI", chunk)
            if name == b"data":
                # 0 and the largest numbers mean "not known when the header was written": a stream.
                return bool(0 < length < 0xFFFF_FF00 and position + 8 + length > size)
            position += 8 + length + length % 2
        return False
    finally:
        handle.seek(0)


def bad(kind: str, path: str | Path, *, detail: str = "", fix: str = "") -> AudioError:
    text = KINDS[kind] + (f": {detail}" if detail else "")
    return AudioError(text, path=path, fix=fix or REMEDIES.get(kind), kind=kind)
