"""From the samples that a system gives to those that a file of 16 bits holds: their level and their peaks.

Systems such as McAdams' leave the level as it comes out, often far beyond full scale. Clipping would add a distortion
of its own, and one that hides speakers; scaling by the highest peak lets one burst silence all the rest. So a
recording beyond full scale is scaled down to its highest peak, but not below the level that it had before, and peaks
that are still too high are turned down where they are, for some 10 ms.

What a system gives is kept in a file that no folder lists until its level is known: memory does not depend on its
length.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.files import as_veilmeter_error
from veilmeter.speech.audio import RATE, Silence

Samples = NDArray[np.float32]

FULL_SCALE = 32767 / 32768
HOPS_PER_SECOND = 100
LOUD_SHARE = 75  # percentile of the hops that tells a level: speech is there, and rare bursts do not count
_IN_MEMORY = 1 << 24  # bytes; what is longer goes to disk
_BLOCK_HOPS = 4096


class LevelMeter:
    """The level and the highest peak of every 10 ms of samples that come in blocks."""

    def __init__(self, rate: int) -> None:
        self.hop = max(1, rate // HOPS_PER_SECOND)
        self.length = 0
        self._rest: Samples = np.empty(0, np.float32)
        self._levels: list[NDArray[np.float32]] = []
        self._peaks: list[NDArray[np.float32]] = []

    def add(self, block: Samples) -> None:
        self.length += len(block)
        joined = np.concatenate([self._rest, block]) if len(self._rest) else block
        whole = len(joined) // self.hop * self.hop
        self._note(joined[:whole].reshape(-1, self.hop))
        self._rest = joined[whole:].copy()

    def _note(self, hops: Samples) -> None:
        self._levels.append(np.sqrt(np.mean(np.square(hops, dtype=np.float64), axis=1)).astype(np.float32))
        self._peaks.append(np.abs(hops).max(axis=1, initial=0.0))

    @property
    def level(self) -> float:
        """The root mean square of the loud part."""
        levels = np.concatenate(self._levels) if self._levels else np.empty(0)
        return float(np.percentile(levels, LOUD_SHARE)) if len(levels) else 0.0

    @property
    def peaks(self) -> NDArray[np.float32]:
        """Of every hop, the last one that is shorter included."""
        last = np.abs(self._rest).max(keepdims=True, initial=0.0) if len(self._rest) else np.empty(0, np.float32)
        return np.concatenate([*self._peaks, last])


class OutputAudio:
    """What a system gave for one recording, at 16 kHz, brought to the rate of its file; to be closed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rate = folder, RATE
        self.meter = LevelMeter(RATE)
        self.silence = Silence()
        self._resample: Any = None
        self._file = tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY, dir=str(folder))  # noqa: SIM115

    def __enter__(self) -> OutputAudio:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()

    def add(self, block: Samples, rate: int) -> None:
        """A block at 16 kHz, to be kept at this rate, which is the same for all blocks."""
        samples = np.ascontiguousarray(block, np.float32)
        if rate != RATE:
            if self._resample is None:
                import soxr

                self._resample = soxr.ResampleStream(RATE, rate, 1, dtype="float32", quality="HQ")
                self.rate, self.meter = rate, LevelMeter(rate)
            samples = self._resample.resample_chunk(samples)
        self._keep(samples)

    def finish(self) -> None:
        """All blocks are there."""
        if self._resample is not None:
            self._keep(self._resample.resample_chunk(np.empty(0, np.float32), last=True))

    def _keep(self, samples: Samples) -> None:
        self.meter.add(samples)
        self.silence.add(samples)
        try:
            self._file.write(samples.astype("<f4").tobytes())
        except OSError as error:
            raise as_veilmeter_error(error, self.folder) from None

    @property
    def seconds(self) -> float:
        return self.meter.length / self.rate

    def gain(self, level_before: float) -> float:
        """What the whole is multiplied with, so that it fits or is no softer than it was before."""
        peak = float(self.meter.peaks.max(initial=0.0))
        if peak <= FULL_SCALE:
            return 1.0
        level = self.meter.level
        return min(1.0, max(FULL_SCALE / peak, level_before / level if level > 0 else 0.0))

    def limited_share(self, gain: float) -> float:
        """The share of the hops whose peaks would still be too high."""
        return float(np.mean(self.meter.peaks * gain > FULL_SCALE * (1 + 1e-6)))

    def blocks(self, gain: float, length: int | None = None) -> Iterator[NDArray[np.float64]]:
        """The samples with this gain and no peak beyond full scale, cut or filled up to `length`."""
        hop = self.meter.hop
        edges = edge_gains(self.meter.peaks * gain)
        left = self.meter.length if length is None else length
        self._file.seek(0)
        for first in range(0, len(edges) - 1, _BLOCK_HOPS):
            block = np.frombuffer(self._file.read(4 * hop * _BLOCK_HOPS), "<f4") * gain
            some = edges[first : first + _BLOCK_HOPS + 1]
            if (some < 1).any():
                ramps = some[:-1, None] + np.diff(some)[:, None] * (np.arange(hop) / hop)
                block *= ramps.ravel()[: len(block)]
            yield block[:left]
            left -= min(left, len(block))
        if left:
            yield np.zeros(left)


def edge_gains(peaks: NDArray[np.float32]) -> NDArray[np.float64]:
    """The gains at the edges of hops with these peaks, between which gains change evenly: no peak ends up beyond full
    scale, as both edges of its hop are turned down as far as it needs.

    >>> edge_gains(np.array([0.5, 2 * FULL_SCALE, 0.5, 0.5])).tolist()
    [1.0, 0.5, 0.5, 1.0, 1.0]
    """
    needed = np.minimum(1.0, FULL_SCALE / np.maximum(peaks.astype(np.float64), FULL_SCALE))
    if not len(needed):
        return np.ones(1)
    return np.concatenate([needed[:1], np.minimum(needed[:-1], needed[1:]), needed[-1:]])
