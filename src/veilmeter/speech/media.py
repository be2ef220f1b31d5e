"""Audio of the mp4 family (m4a, aac, webm, amr, ...) through PyAV, with the few methods of soundfile that we use."""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import missing_extra

_CONFINED = {
    "format_whitelist": "mov,mp4,m4a,3gp,3g2,mj2,matroska,webm,asf,amr,amrnb,amrwb,aac,avi,ac3,eac3,mp3,ogg,gsm,ape,wv",
    "protocol_whitelist": "none",
}
# Containers whose header names the length; others guess it from the rate of bits.
_WITH_LENGTH = ("mov", "matroska")
_FORMATS = {"u8": 128.0, "s16": 32768.0, "s32": 2147483648.0, "flt": 1.0, "dbl": 1.0}


def _lenient(version: str) -> dict[str, Any]:
    """What makes PyAV put up with titles that are no text: up to version 18 an option, since then they are no error.

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
                raise ValueError("there is no audio in it")
            self.samplerate, self.channels = int(streams[0].rate), int(streams[0].channels)
            if self.samplerate < 1 or self.channels < 1:
                raise ValueError("it claims a sound of no rate or no channel")
            known = self._container.format.name.startswith(_WITH_LENGTH) and self._container.duration
            self.claimed_seconds = (known or 0) / av.time_base
            self._blocks = self._decoded(streams[0])
        except av.FFmpegError as error:
            raise ValueError(f"FFmpeg says: {error.strerror}") from None
        except (AttributeError, TypeError):  # PyAV, of a stream whose codec it does not know
            raise ValueError("nothing is known of the audio in it") from None
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

    def _decoded(self, stream: Any) -> Iterator[NDArray[np.float32]]:
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
