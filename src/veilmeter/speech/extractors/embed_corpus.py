"""`embed_corpus`: plan, work, keep, finish."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine, Here, Progress
from veilmeter.core.errors import InputError, Problem
from veilmeter.core.user_code import spec_of, version_of
from veilmeter.data.corpus import Corpus
from veilmeter.speech.audio import LONGEST_SECONDS, RATE, is_silent
from veilmeter.speech.extractors.base import (
    DEFAULT,
    Extractor,
    device_of_extractor,
    load_extractor,
    load_same_extractor,
)
from veilmeter.speech.extractors.store import Kept, Plan, Store
from veilmeter.speech.recordings import (
    AUDIO,
    Record,
    Source,
    examine,
    map_corpus,
    problem_of,
    refusal,
    refuse_unusable,
    to_do,
)

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


JOURNAL_SECONDS = 1.0
JOURNAL_ROWS = 1024


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


@dataclass(frozen=True, slots=True)
class Embedded:
    """The outcome of a run. `problems` are all: of the corpus's lists, unusable recordings, and remarks (not fatal)."""

    folder: Path
    extractor: str
    version: str
    dimension: int
    utterances: int
    speakers: int
    hours: float
    computed: int
    reused: int
    problems: tuple[Problem, ...]
    device: str = "cpu"

    @property
    def skipped(self) -> tuple[Problem, ...]:
        """The recordings that are not in the result, and why."""
        return tuple(problem for problem in self.problems if problem.fatal)


def embed_corpus(
    corpus: Corpus,
    out: str | Path,
    extractor: str | Callable[..., Any] | Extractor = DEFAULT,
    *,
    engine: Engine | None = None,
    offline: bool = False,
    strict: bool = False,
    max_seconds: float = LONGEST_SECONDS,
    progress: Progress | None = None,
) -> Embedded:
    """Extract the corpus's embeddings into the folder `out`; `read_embeddings(out)` reads them.

    Results of an earlier or stopped run are kept: a recording is computed again only if its content, the
    extractor or its version changed. Unusable recordings are left out and listed, or with `strict` the first ends the
    run. The bytes written depend on the corpus and the extractor alone, not on the engine, the order or interruptions.

    Parameters
    ----------
    corpus : Corpus
        The recordings, as `read_corpus` gives them.
    out : str or Path
        The folder for the vectors.
    extractor : str, function or Extractor
        A name such as `campplus`, `onnx:FILE`, `file.py:name`, a function of samples, or an object.
    engine : Engine, optional
        Where the work is done; by default in this process.
    offline : bool
        Fetch nothing, not even weights.
    strict : bool
        Stop at the first recording that can't be used, instead of leaving it out.
    max_seconds : float
        Recordings that are longer are left out.
    progress : callable, optional
        Called with how many recordings are done, and how many there are.

    Returns
    -------
    Embedded
        The files written, and the recordings that could not be used.

    Raises
    ------
    InputError
        If the extractor can't be loaded, or with `strict` a recording can't be used.

    Examples
    --------
    >>> embed_corpus(read_corpus("speech/"), "vectors")  # doctest: +SKIP
    """
    refuse_unusable(corpus, strict=strict)
    extractor = str(spec_of(extractor))
    model = load_extractor(extractor, offline=offline)  # here first: it may have to fetch its weights
    version = version_of(model)
    facts = {"extractor": model.name, "version": version, "dimension": model.dimension, "audio": AUDIO}
    task = Extract(extractor, version, offline, max_seconds)
    use(task, model)  # where the work is done in this process
    store = Store(Path(out), facts)
    try:
        run = _EmbeddingRun(corpus, store, strict, progress)
        run.work(engine or Here(), task)
        return run.finish(model, version)
    finally:
        store.close()


class _EmbeddingRun:
    def __init__(self, corpus: Corpus, store: Store, strict: bool, progress: Progress | None) -> None:
        self.corpus, self.store, self.strict, self.progress = corpus, store, strict, progress
        self.plan = Plan(corpus)
        self.kept: dict[str, Kept] = {}
        self.records: dict[str, Record] = {}
        self.computed = 0
        self._fresh: list[tuple[Record, NDArray[np.float32]]] = []
        self._flushed = time.monotonic()

    def work(self, engine: Engine, task: Extract) -> None:
        before = self.store.kept()
        sources = to_do(self.corpus, {name: kept.record for name, kept in before.items()}, task.max_seconds)
        missing = {source.utterance for source in sources}
        for utterance in self.corpus:
            if utterance.id not in missing:
                self.kept[utterance.id] = before[utterance.id]
                self.records[utterance.id] = before[utterance.id].record
        part_of = {u.id: number for number in range(self.plan.parts) for u in self.plan.part(number)}
        left = Counter(part_of[name] for name in missing)
        for number in range(self.plan.parts):
            if not left[number]:
                self._write_part(number)

        def store(outcomes: Sequence[Outcome]) -> None:
            finished = set()
            for outcome in outcomes:
                self._take(outcome, before)
                number = part_of[outcome.record.utterance]
                left[number] -= 1
                if not left[number]:
                    finished.add(number)
            due = time.monotonic() - self._flushed > JOURNAL_SECONDS or len(self._fresh) >= JOURNAL_ROWS
            if finished or due:
                self._flush()
            for number in finished:
                self._write_part(number)

        try:
            map_corpus(
                task,
                sources,
                store,
                engine=engine,
                path=lambda source: Path(source.path),
                part=lambda source: part_of[source.utterance],
                total=len(self.corpus),
                progress=self.progress,
            )
        finally:
            self._flush()  # stopped or failed: what was done is kept

    def finish(self, model: Extractor, version: str) -> Embedded:
        usable = [record for record in self.records.values() if record.usable]
        problems = [*self.corpus.problems, *self._problems()]
        if not usable:
            raise InputError(f"no recording could be used; the first problem: {problems[0]}", path=self.corpus.root)
        seconds = sum(self.records[u.id].seconds for u in self.corpus if self.records[u.id].usable)
        speakers = {u.speaker for u in self.corpus if self.records[u.id].usable}
        counts = {
            "utterances": len(usable),
            "speakers": len(speakers),
            "seconds": round(seconds, 3),
            "layout": self.corpus.layout,
            "left_out": len([p for p in problems if p.fatal]),
            "problems": [str(p) for p in self.corpus.problems],
        }
        self.store.finish(self.plan, counts)
        return Embedded(
            self.store.folder, model.name, version, model.dimension, len(usable), len(speakers),
            seconds / 3600, self.computed, len(usable) - self.computed, tuple(problems), device_of_extractor(model),
        )  # fmt: skip

    def _take(self, outcome: Outcome, before: dict[str, Kept]) -> None:
        record = outcome.record
        self.records[record.utterance] = record
        if self.strict and not record.usable:
            raise refusal(self._problem(record))
        if outcome.unchanged:
            known = before[record.utterance]
            self.kept[record.utterance] = Kept(record, known.file, known.row)
        elif outcome.vector is not None:
            self._fresh.append((record, outcome.vector))
            self.computed += 1

    def _flush(self) -> None:
        if self._fresh:
            for kept in self.store.write_journal(self._fresh):
                self.kept[kept.record.utterance] = kept
            self._fresh = []
        self._flushed = time.monotonic()

    def _write_part(self, number: int) -> None:
        self.store.write_part(number, self.plan, self.records, self.kept)
        for utterance in self.plan.part(number):
            self.kept.pop(utterance.id, None)  # a million vectors need not stay in memory

    def _problems(self) -> Iterator[Problem]:
        for utterance in self.corpus:
            if (record := self.records[utterance.id]).kind:
                yield self._problem(record)

    def _problem(self, record: Record) -> Problem:
        return problem_of(self.corpus, record, fatal=not record.usable)
