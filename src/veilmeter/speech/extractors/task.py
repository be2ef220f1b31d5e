"""What a worker process does: read a few recordings, extract their vectors, say what was wrong with the others."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.speech.extractors.base import Extractor, load_same_extractor
from veilmeter.speech.extractors.windows import embed_in_windows
from veilmeter.speech.recordings import Record, Source, examine


@dataclass(frozen=True, slots=True)
class Outcome:
    """`vector` is None if the recording is not usable, or if its content is what it was (`unchanged`)."""

    record: Record
    vector: NDArray[np.float32] | None = None
    unchanged: bool = False


@dataclass(frozen=True, slots=True)
class Extract:
    """The task: called with a few sources, once each, in whatever process."""

    spec: str
    version: str
    offline: bool
    max_seconds: float

    def __call__(self, sources: tuple[Source, ...]) -> list[Outcome]:
        extractor = self._extractor()
        return [self._extract(extractor, source) for source in sources]

    def _extractor(self) -> Extractor:
        """Loaded once per process: a model takes seconds."""
        if _loaded.get("task") != self:
            use(self, load_same_extractor(self.spec, self.version, offline=self.offline))
        extractor: Extractor = _loaded["extractor"]
        return extractor

    def _extract(self, extractor: Extractor, source: Source) -> Outcome:
        examined = examine(
            source,
            lambda samples: embed_in_windows(extractor, [samples], len(samples)),
            by_blocks=lambda blocks, length: embed_in_windows(extractor, blocks, length),
            max_seconds=self.max_seconds,
            failure="extractor-failed",
        )
        record, vector = examined.record, examined.finding
        if vector is None:
            return Outcome(record, unchanged=examined.unchanged)
        norm = float(np.linalg.norm(vector)) if vector.ndim == 1 else 0.0
        if vector.shape != (extractor.dimension,) or not np.isfinite(norm) or norm == 0:
            what = f"the vector has {vector.size} numbers" if np.isfinite(norm) and norm else "the vector is not usable"
            return Outcome(replace(record, seconds=0.0, kind="bad-vector", what=what))
        return Outcome(record, vector)


_loaded: dict[str, Any] = {}


def use(task: Extract, extractor: Extractor) -> None:
    """From now on this process has this extractor for this task."""
    _loaded.update(task=task, extractor=extractor)
