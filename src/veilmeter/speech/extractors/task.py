"""What a worker process does: read a few recordings, extract their vectors, say what was wrong with the others."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import VeilmeterError
from veilmeter.speech.audio import AudioError, read_recording
from veilmeter.speech.extractors.base import Extractor, load_extractor

# Part of every store's fingerprint: raise it when reading the same file may give other samples.
AUDIO = 1


@dataclass(frozen=True, slots=True)
class Source:
    """One recording: what is known of its content from an earlier run is its hash."""

    utterance: str
    path: str
    known_sha256: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """What was found about one recording: either it is usable (`kind` is "" or "clipped"), or `kind` says why not."""

    utterance: str
    size: int
    mtime_ns: int
    sha256: str
    seconds: float
    kind: str = ""
    what: str = ""
    ctime_ns: int = 0  # nobody can set it: archives give many files the same size and time

    @property
    def usable(self) -> bool:
        return self.kind in ("", "clipped")


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
    name: str
    version: str
    offline: bool
    max_seconds: float

    def __call__(self, sources: tuple[Source, ...]) -> list[Outcome]:
        extractor = self._extractor()
        if (extractor.name, extractor.version) != (self.name, self.version):
            raise VeilmeterError(
                f"a worker has {extractor.name} {extractor.version}, this process {self.name} {self.version}",
                fix="install the same version of everything on all machines",
            )
        return [self._one(extractor, source) for source in sources]

    def _extractor(self) -> Extractor:
        """Loaded once a process: a model takes seconds."""
        if _loaded.get("task") != self:
            use(self, load_extractor(self.spec, offline=self.offline))
        found: Extractor = _loaded["extractor"]
        return found

    def _one(self, extractor: Extractor, source: Source) -> Outcome:
        size, mtime, changed, digest = 0, 0, 0, ""
        try:
            try:
                # Before the content is read: a change during the reading makes the next run look again.
                status = os.stat(source.path)
                size, mtime, changed = status.st_size, status.st_mtime_ns, status.st_ctime_ns
            except (OSError, ValueError):
                pass  # read_recording says it in words
            recording = read_recording(source.path, max_seconds=self.max_seconds)
            digest = _sha256(source.path)
            if recording.is_clipped:
                kind, what = "clipped", f"{100 * recording.clipped:.1f} % of its samples are clipped"
            else:
                kind, what = "", ""
            record = Record(source.utterance, size, mtime, digest, recording.seconds, kind, what, changed)
            if digest == source.known_sha256:
                return Outcome(record, unchanged=True)
            vector = np.asarray(extractor.embed(recording.samples), np.float32)
        except AudioError as error:
            return Outcome(Record(source.utterance, size, mtime, digest, 0.0, error.kind, str(error.what), changed))
        except Exception as error:  # a model's own trouble with one recording must not end the run
            text = error.what if isinstance(error, VeilmeterError) else f"{type(error).__name__}: {error}"
            return Outcome(Record(source.utterance, size, mtime, digest, 0.0, "extractor-failed", text[:500], changed))
        norm = float(np.linalg.norm(vector)) if vector.ndim == 1 else 0.0
        if vector.shape != (extractor.dimension,) or not np.isfinite(norm) or norm == 0:
            what = f"the vector has {vector.size} numbers" if np.isfinite(norm) and norm else "the vector is not usable"
            return Outcome(Record(source.utterance, size, mtime, digest, 0.0, "bad-vector", what, changed))
        return Outcome(record, vector)


_loaded: dict[str, Any] = {}


def use(task: Extract, extractor: Extractor) -> None:
    """From now on this process has this extractor for this task."""
    _loaded.update(task=task, extractor=extractor)


def _sha256(path: str) -> str:
    with open(path, "rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()
