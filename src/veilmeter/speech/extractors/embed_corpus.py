"""`embed_corpus`: plan, work, keep, finish."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine, Here
from veilmeter.core.errors import InputError, Problem
from veilmeter.core.user_code import version_of
from veilmeter.data.corpus import Corpus, Utterance
from veilmeter.speech.audio import LONGEST_SECONDS
from veilmeter.speech.extractors.base import DEFAULT, Extractor, load_extractor
from veilmeter.speech.extractors.store import Kept, Plan, Store
from veilmeter.speech.extractors.task import Extract, Outcome, use
from veilmeter.speech.recordings import AUDIO, Record, Source, file_size, still_holds

JOURNAL_SECONDS = 1.0
JOURNAL_ROWS = 1024
_LARGEST_CHUNK = 8

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Embedded:
    """What a run did. `problems` are all: of the corpus's lists, of unusable recordings, and remarks (not fatal)."""

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

    @property
    def skipped(self) -> tuple[Problem, ...]:
        """What is not in the result and why."""
        return tuple(problem for problem in self.problems if problem.fatal)


def embed_corpus(
    corpus: Corpus,
    out: str | Path,
    extractor: str = DEFAULT,
    *,
    engine: Engine | None = None,
    offline: bool = False,
    strict: bool = False,
    max_seconds: float = LONGEST_SECONDS,
    progress: Progress | None = None,
) -> Embedded:
    """Extract the corpus's embeddings into the folder `out`; `read_embeddings(out)` reads them.

    What is there from an earlier or stopped run is kept: a recording is computed again only if its content, the
    extractor or its version changed. Unusable recordings are left out and listed, or with `strict` the first ends the
    run. The bytes written depend on the corpus and the extractor alone, not on the engine, the order or interruptions.
    """
    if not len(corpus):
        raise InputError("there are no utterances in this corpus", path=corpus.root)
    if strict and (fatal := [p for p in corpus.problems if p.fatal]):
        raise _strict(fatal[0])
    model = load_extractor(extractor, offline=offline)  # here first: it may have to fetch its weights
    version = version_of(model)
    facts = {"extractor": model.name, "version": version, "dimension": model.dimension, "audio": AUDIO}
    task = Extract(extractor, version, offline, max_seconds)
    use(task, model)  # where the work is done in this process
    store = Store(Path(out), facts)
    try:
        run = _EmbeddingRun(corpus, store, strict, progress or (lambda done, total: None))
        run.work(engine or Here(), task)
        return run.finish(model, version)
    finally:
        store.close()


class _EmbeddingRun:
    def __init__(self, corpus: Corpus, store: Store, strict: bool, progress: Progress) -> None:
        self.corpus, self.store, self.strict, self.progress = corpus, store, strict, progress
        self.plan = Plan(corpus)
        self.kept: dict[str, Kept] = {}
        self.records: dict[str, Record] = {}
        self.computed = 0
        self._fresh: list[tuple[Record, NDArray[np.float32]]] = []
        self._flushed = time.monotonic()
        self._left: list[int] = []

    def work(self, engine: Engine, task: Extract) -> None:
        before = self.store.kept()
        todo: list[tuple[Utterance, Record | None]] = []
        for utterance in self.corpus:
            known = before.get(utterance.id)
            if known is not None and still_holds(known.record, utterance, task.max_seconds):
                self.kept[utterance.id] = known
                self.records[utterance.id] = known.record
            else:
                todo.append((utterance, known.record if known is not None else None))
        part_of = {u.id: number for number in range(self.plan.parts) for u in self.plan.part(number)}
        chunks = list(_chunks(todo, part_of, engine.workers))
        self._left = [0] * self.plan.parts
        for utterance, _ in todo:
            self._left[part_of[utterance.id]] += 1
        self.progress(len(self.records), len(self.corpus))
        for number, left in enumerate(self._left):
            if not left:
                self._write_part(number)
        try:
            for _, outcomes in engine.run(task, chunks):
                finished = set()
                for outcome in outcomes:
                    self._take(outcome, before)
                    number = part_of[outcome.record.utterance]
                    self._left[number] -= 1
                    if not self._left[number]:
                        finished.add(number)
                due = time.monotonic() - self._flushed > JOURNAL_SECONDS or len(self._fresh) >= JOURNAL_ROWS
                if finished or due:
                    self._flush()
                for number in finished:
                    self._write_part(number)
                self.progress(len(self.records), len(self.corpus))
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
            seconds / 3600, self.computed, len(usable) - self.computed, tuple(problems),
        )  # fmt: skip

    def _take(self, outcome: Outcome, before: dict[str, Kept]) -> None:
        record = outcome.record
        self.records[record.utterance] = record
        if self.strict and not record.usable:
            raise _strict(self._problem(record))
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
        path = str(self.corpus.by_id[record.utterance].path)
        return Problem(record.kind, record.what, path, fix=record.remedy, fatal=not record.usable)


def _chunks(
    todo: Sequence[tuple[Utterance, Record | None]], part_of: Mapping[str, int], workers: int
) -> Iterator[tuple[Source, ...]]:
    """A few recordings a task, part after part so that parts get finished, and in each the longest first, so that at
    the end no process waits long for another. The size of a file stands for its duration."""
    size = max(1, min(_LARGEST_CHUNK, len(todo) // (16 * workers)))
    ordered = sorted(todo, key=lambda source: (part_of[source[0].id], -file_size(source[0]), source[0].id))
    for start in range(0, len(ordered), size):
        yield tuple(Source.of(u, known) for u, known in ordered[start : start + size])


def _strict(problem: Problem) -> InputError:
    return InputError(f"{problem.what} [{problem.kind}]", path=problem.path, line=problem.line,
                      fix=problem.fix or "mend it, or run without --strict to leave it out")  # fmt: skip
