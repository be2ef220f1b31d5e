"""Long recordings are embedded in windows: memory stays bounded, and a run can be stopped between two of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from veilmeter.speech.audio import RATE, is_silent
from veilmeter.speech.extractors.base import Extractor

WINDOW_SECONDS = 60.0
Samples = NDArray[np.float32]


def embed_in_windows(
    extractor: Extractor, blocks: Iterable[Samples], length: int, *, most: int | None = None
) -> Samples:
    """The vector of a recording of so many samples, which come in blocks; of one longer than a minute, the mean over
    equal windows of at most a minute, those that hold nothing but silence left out. Of many windows, no more than
    `most` are heard, spread over the recording."""
    windows = equal_windows(blocks, length, int(WINDOW_SECONDS * RATE))
    if length <= WINDOW_SECONDS * RATE:
        return np.asarray(extractor.embed(next(windows)), np.float32)
    count = -(-length // int(WINDOW_SECONDS * RATE))
    wanted = count if most is None else min(most, count)
    total, heard = np.zeros(extractor.dimension), 0
    for number, window in enumerate(windows):
        if heard < wanted and number * wanted >= heard * count and not is_silent(window):
            total += np.asarray(extractor.embed(window), np.float64)
            heard += 1
    return np.asarray(total / max(heard, 1), np.float32)


def equal_windows(blocks: Iterable[Samples], length: int, most: int) -> Iterator[Samples]:
    """Samples that come in blocks, in windows of one length, or one more, and at most `most`.

    >>> [window.tolist() for window in equal_windows([np.arange(4.0), np.arange(4.0, 7.0)], 7, 3)]
    [[0.0, 1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    """
    count = max(1, -(-length // most))
    sizes = [length // count + (number < length % count) for number in range(count)]
    waiting, have = [], 0
    for block in blocks:
        waiting.append(block)
        have += len(block)
        while sizes and have >= sizes[0]:
            joined = waiting[0] if len(waiting) == 1 else np.concatenate(waiting)
            size = sizes.pop(0)
            waiting, have = [joined[size:]], have - size
            yield np.ascontiguousarray(joined[:size])
