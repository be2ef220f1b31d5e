"""What models say of every recording of a corpus, kept so that a stopped run goes on: transcripts, quality, pitch.

One file per corpus and model, a line of JSON per recording. It begins with what made it; a line of another model, of
another version, or of a file that has changed since is as if it were not there. Lines are added as they come; at the
end the file is written again, sorted, so that its bytes do not depend on interruptions or on who finished when.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine, Here
from veilmeter.core.errors import InputError, Problem, VeilmeterError
from veilmeter.core.files import PRIVATE_FILE, make_folder, only_one, plain, to_json, whole_file
from veilmeter.data.corpus import Corpus, Utterance
from veilmeter.speech.audio import LONGEST_SECONDS
from veilmeter.speech.recordings import AUDIO, Examined, Record, Source, examine, file_size, still_holds

FLUSH_SECONDS = 1.0
ALLOWED = ("silent", "short")  # an anonymizer that gives silence or scraps is measured, not excused
_LARGEST_CHUNK = 8

Progress = Callable[[int, int], None]
Values = Mapping[str, Any]


class Annotator(Protocol):
    """Says something of samples (16 kHz, mono) that JSON can hold.

    `version` changes whenever the same samples may give something else.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def annotate(self, samples: NDArray[np.float32]) -> Values: ...


@dataclass(frozen=True, slots=True)
class Annotation:
    """One recording: what it is like, and what was said of it (nothing of silence)."""

    record: Record
    values: Values = field(default_factory=dict)

    @property
    def silent(self) -> bool:
        return self.record.kind == "silent"


@dataclass(frozen=True, slots=True)
class Annotated:
    """What a run gave: an annotation for every recording that could be read, and what was wrong with the others."""

    annotator: str
    version: str
    by_id: Mapping[str, Annotation]
    computed: int
    problems: tuple[Problem, ...]

    @property
    def skipped(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.fatal)


@dataclass(frozen=True, slots=True)
class Annotate:
    """The engine's task: called with a few sources, once each, in whatever process."""

    load: Callable[[], Annotator]
    name: str
    version: str
    max_seconds: float

    def __call__(self, sources: tuple[Source, ...]) -> list[Examined[Values]]:
        key = (self.name, self.version)
        if key not in _loaded:
            _loaded[key] = self.load()
        annotator = _loaded[key]
        if (annotator.name, annotator.version) != key:
            raise VeilmeterError(
                f"a worker has {annotator.name} {annotator.version}, this process {self.name} {self.version}",
                fix="install the same version of everything on all machines",
            )
        return [examine(source, annotator.annotate, max_seconds=self.max_seconds, allow=ALLOWED) for source in sources]


_loaded: dict[tuple[str, str], Annotator] = {}  # once per process: a model takes seconds


def annotate_corpus(
    corpus: Corpus,
    folder: str | Path,
    load: Callable[[], Annotator],
    *,
    engine: Engine | None = None,
    strict: bool = False,
    max_seconds: float = LONGEST_SECONDS,
    progress: Progress | None = None,
) -> Annotated:
    """What the model that `load` gives says of each recording; kept in `folder`, and used again from there.

    `load` is called in every process that works, so it must be a top-level function or a `functools.partial` of one.
    """
    if not len(corpus):
        raise InputError("there are no utterances in this corpus", path=corpus.root)
    annotator = load()  # here first: it may have to fetch its weights
    task = Annotate(load, annotator.name, annotator.version, max_seconds)
    _loaded[annotator.name, annotator.version] = annotator
    store = _Store(make_folder(folder), annotator)
    with only_one(store.lock, folder):
        kept, computed = _work(corpus, store, task, engine or Here(), strict, progress or (lambda done, total: None))
    annotations = [kept[u.id] for u in corpus]
    problems = [
        *corpus.problems,
        *(_problem(corpus, annotation) for annotation in annotations if annotation.record.kind),
    ]
    usable = {a.record.utterance: a for a in annotations if not _unusable(a)}
    if not usable:
        raise InputError(f"no recording could be used; the first problem: {problems[0]}", path=corpus.root)
    return Annotated(annotator.name, annotator.version, usable, computed, tuple(problems))


def _work(
    corpus: Corpus, store: _Store, task: Annotate, engine: Engine, strict: bool, progress: Progress
) -> tuple[dict[str, Annotation], int]:
    """Every recording's annotation, and how many of them are new."""
    before = store.read()
    kept = {
        u.id: before[u.id] for u in corpus if u.id in before and still_holds(before[u.id].record, u, task.max_seconds)
    }
    known = {name: annotation.record for name, annotation in before.items()}
    chunks = list(_chunks([u for u in corpus if u.id not in kept], known, engine.workers))
    computed = 0
    progress(len(kept), len(corpus))
    with store.journal() as write:
        for _, results in engine.run(task, chunks):
            fresh = []
            for examined in results:
                record = examined.record
                values = before[record.utterance].values if examined.unchanged else examined.finding
                fresh.append(Annotation(record, values or {}))
                computed += not examined.unchanged
                if strict and _unusable(fresh[-1]):
                    raise _refusal(corpus, fresh[-1])
            write(fresh)
            kept |= {annotation.record.utterance: annotation for annotation in fresh}
            progress(len(kept), len(corpus))
    # What is known of recordings that this corpus does not have is kept too: it may be a part of a larger one.
    store.finish({**before, **kept})
    return kept, computed


class _Store:
    """The file of one model in a folder."""

    def __init__(self, folder: Path, annotator: Annotator) -> None:
        self.fingerprint = {"annotator": annotator.name, "version": annotator.version, "audio": AUDIO}
        name = "".join(c if c.isalnum() or c in "._-" else "_" for c in annotator.name)[:60]
        self.path = folder / f"{name}.jsonl"
        self.lock = folder / f".{name}.lock"

    def read(self) -> dict[str, Annotation]:
        """All that is well; a line that was cut or changed is as if it were not there."""
        by_utterance: dict[str, Annotation] = {}
        try:
            with open(self.path, encoding="utf-8") as lines:
                if _parsed(next(lines, "")) != self.fingerprint:
                    return {}
                for line in lines:
                    form = _parsed(line)
                    try:
                        annotation = Annotation(Record(**form["record"]), dict(form["values"]))
                        by_utterance[annotation.record.utterance] = annotation
                    except (TypeError, KeyError, ValueError):
                        continue
        except (OSError, UnicodeDecodeError):
            pass
        return by_utterance

    def journal(self) -> _Journal:
        return _Journal(self)

    def finish(self, annotations: Mapping[str, Annotation]) -> None:
        with whole_file(self.path) as temporary, open(temporary, "w", encoding="utf-8") as out:
            out.write(to_json(self.fingerprint, indent=None) + "\n")
            out.writelines(_line(annotations[name]) for name in sorted(annotations))


class _Journal:
    """Appends lines to the store's file, at the latest every second."""

    def __init__(self, store: _Store) -> None:
        self._store = store
        self._flushed = time.monotonic()
        self._handle: IO[str] | None = None

    def __enter__(self) -> Callable[[Sequence[Annotation]], None]:
        current = _parsed(_first_line(self._store.path)) == self._store.fingerprint
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_APPEND if current else os.O_TRUNC)
        self._handle = os.fdopen(os.open(self._store.path, flags, PRIVATE_FILE), "a", encoding="utf-8")
        # A line that was cut by a kill must not swallow the next one.
        self._handle.write("\n" if current else to_json(self._store.fingerprint, indent=None) + "\n")
        return self.write

    def write(self, annotations: Sequence[Annotation]) -> None:
        assert self._handle is not None
        self._handle.writelines(_line(annotation) for annotation in annotations)
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._handle.flush()
            self._flushed = time.monotonic()

    def __exit__(self, *_: object) -> None:
        assert self._handle is not None
        self._handle.close()


def _chunks(todo: Sequence[Utterance], known: Mapping[str, Record], workers: int) -> Iterator[tuple[Source, ...]]:
    """A few recordings per task, the longest first, so that at the end no process waits long for another."""
    size = max(1, min(_LARGEST_CHUNK, len(todo) // (16 * workers)))
    ordered = sorted(todo, key=lambda utterance: (-file_size(utterance), utterance.id))
    for start in range(0, len(ordered), size):
        yield tuple(Source.of(u, known.get(u.id)) for u in ordered[start : start + size])


def _unusable(annotation: Annotation) -> bool:
    return not annotation.record.usable and not annotation.silent


def _problem(corpus: Corpus, annotation: Annotation) -> Problem:
    record = annotation.record
    return Problem(
        record.kind,
        record.what,
        str(corpus.by_id[record.utterance].path),
        fix=record.remedy,
        fatal=not (record.usable or annotation.silent),
    )


def _refusal(corpus: Corpus, annotation: Annotation) -> InputError:
    problem = _problem(corpus, annotation)
    return InputError(f"{problem.what} [{problem.kind}]", path=problem.path,
                      fix=problem.fix or "mend it, or run without --strict to leave it out")  # fmt: skip


def _line(annotation: Annotation) -> str:
    return to_json({"record": asdict(annotation.record), "values": plain(annotation.values)}, indent=None) + "\n"


def _parsed(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return {}


def _first_line(path: Path) -> str:
    try:
        with open(path, encoding="utf-8") as lines:
            return next(lines, "")
    except (OSError, UnicodeDecodeError):
        return ""
