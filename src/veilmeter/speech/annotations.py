"""Annotations of a corpus: transcripts, predicted quality and pitch of every recording, kept from run to run.

One file per corpus and model, one line of JSON per recording. The first line names the model and its version; lines of
another model or version, or about a file that has changed since, are ignored. Lines are added as they come; at the end
the file is written again, sorted, so that its bytes do not depend on interruptions or on which process finished first.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine, Here, Progress
from veilmeter.core.errors import InputError, Problem, VeilmeterError
from veilmeter.core.files import Journal, make_folder, only_one, plain, to_json, whole_file, whole_lines
from veilmeter.core.text import csv_cell
from veilmeter.core.user_code import version_of
from veilmeter.data.corpus import Corpus
from veilmeter.speech.audio import LONGEST_SECONDS
from veilmeter.speech.quality import PitchTracker, QualityModels
from veilmeter.speech.recognizers.base import load_recognizer
from veilmeter.speech.recognizers.languages import Language, default_recognizer, language_of, refuse_other_language
from veilmeter.speech.recordings import (
    AUDIO,
    Examined,
    Record,
    Source,
    examine,
    map_corpus,
    problem_of,
    refusal,
    refuse_unusable,
    to_do,
)

ALLOWED = ("silent", "short")  # an anonymizer that gives silence or scraps is measured, not excused

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
    """One recording: facts about it, and its annotation (none where it is silent)."""

    record: Record
    values: Values = field(default_factory=dict)

    @property
    def silent(self) -> bool:
        return self.record.kind == "silent"


@dataclass(frozen=True, slots=True)
class Annotated:
    """The outcome of a run: an annotation for every recording that could be read, and the problems of the others."""

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
                fix="install the same versions on all machines",
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
    """Annotations of each recording by the model that `load` returns; kept in `folder` and used again from there.

    `load` is called in every process that works, so it must be a top-level function or a `functools.partial` of one.
    """
    refuse_unusable(corpus, strict=False)
    annotator = load()  # here first: it may have to fetch its weights
    task = Annotate(load, annotator.name, annotator.version, max_seconds)
    _loaded[annotator.name, annotator.version] = annotator
    store = _Store(make_folder(folder), annotator)
    with only_one(store.lock, folder):
        kept, computed = _work(corpus, store, task, engine or Here(), strict, progress)
    annotations = [kept[u.id] for u in corpus]
    problems = [
        *corpus.problems,
        *(_problem(corpus, annotation) for annotation in annotations if annotation.record.kind),
    ]
    usable = {a.record.utterance: a for a in annotations if not _is_unusable(a)}
    if not usable:
        raise InputError(f"no recording could be used; the first problem: {problems[0]}", path=corpus.root)
    return Annotated(annotator.name, annotator.version, usable, computed, tuple(problems))


def _work(
    corpus: Corpus, store: _Store, task: Annotate, engine: Engine, strict: bool, progress: Progress | None
) -> tuple[dict[str, Annotation], int]:
    """Every recording's annotation, and how many of them are new."""
    before = store.read()
    sources = to_do(corpus, {name: annotation.record for name, annotation in before.items()}, task.max_seconds)
    missing = {source.utterance for source in sources}
    kept = {u.id: before[u.id] for u in corpus if u.id not in missing}
    computed = 0

    def keep(results: Sequence[Examined[Values]]) -> None:
        nonlocal computed
        fresh = []
        for examined in results:
            record = examined.record
            values = before[record.utterance].values if examined.unchanged else examined.finding
            fresh.append(Annotation(record, values or {}))
            computed += not examined.unchanged
            if strict and _is_unusable(fresh[-1]):
                raise refusal(_problem(corpus, fresh[-1]))
        journal.add(map(_line, fresh))
        kept.update((annotation.record.utterance, annotation) for annotation in fresh)

    journal = Journal(store.path)
    journal.open([store.head, *map(_line, before.values())])
    try:
        map_corpus(
            task,
            sources,
            keep,
            engine=engine,
            path=lambda source: Path(source.path),
            total=len(corpus),
            progress=progress,
        )
    finally:
        journal.close()
    # Annotations of recordings that are not in this corpus are kept, too: it may be part of a larger one.
    store.finish({**before, **kept})
    return kept, computed


class _Store:
    """The file of one model in a folder."""

    def __init__(self, folder: Path, annotator: Annotator) -> None:
        self.fingerprint = {"annotator": annotator.name, "version": annotator.version, "audio": AUDIO}
        self.head = to_json(self.fingerprint, indent=None) + "\n"
        name = "".join(c if c.isalnum() or c in "._-" else "_" for c in annotator.name)[:60]
        self.path = folder / f"{name}.jsonl"
        self.lock = folder / f".{name}.lock"

    def read(self) -> dict[str, Annotation]:
        """All valid lines; one that was cut off or changed is ignored, and its recording is done again."""
        by_utterance: dict[str, Annotation] = {}
        try:
            lines = whole_lines(self.path)
            if _parse(next(lines, "")) != self.fingerprint:
                return {}
            for line in lines:
                form = _parse(line)
                try:
                    annotation = Annotation(Record(**form["record"]), dict(form["values"]))
                    by_utterance[annotation.record.utterance] = annotation
                except (TypeError, KeyError, ValueError):
                    continue
        except (OSError, UnicodeDecodeError):
            pass
        return by_utterance

    def finish(self, annotations: Mapping[str, Annotation]) -> None:
        with whole_file(self.path) as temporary, open(temporary, "w", encoding="utf-8") as out:
            out.write(self.head)
            out.writelines(_line(annotations[name]) for name in sorted(annotations))


def _is_unusable(annotation: Annotation) -> bool:
    return not annotation.record.usable and not annotation.silent


def _problem(corpus: Corpus, annotation: Annotation) -> Problem:
    return problem_of(corpus, annotation.record, fatal=_is_unusable(annotation))


def _line(annotation: Annotation) -> str:
    return to_json({"record": asdict(annotation.record), "values": plain(annotation.values)}, indent=None) + "\n"


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return {}


_BLOCK = 1 << 20  # samples squared at once: those of an hour would take half a gigabyte


class TranscriptAnnotator:
    """A recognizer; the version holds its language too."""

    def __init__(self, spec: str, language: str, *, offline: bool = False) -> None:
        self._recognizer = load_recognizer(spec, language, offline=offline)
        self.name = f"transcripts-{self._recognizer.name}-{self._recognizer.language}"
        self.version = version_of(self._recognizer)

    def annotate(self, samples: NDArray[np.float32]) -> Values:
        heard = self._recognizer.transcribe(samples)
        return {"text": heard.text, "confidence": heard.confidence}


class QualityAnnotator:
    """Predicted ratings."""

    name = "quality"

    def __init__(self, *, offline: bool = False) -> None:
        self._models = QualityModels(offline=offline)
        self.version = self._models.version

    def annotate(self, samples: NDArray[np.float32]) -> Values:
        return asdict(self._models.rate(samples))


class VoiceAnnotator:
    """Pitch in Hertz every 16 ms (0: unvoiced), and the level in dB below full scale."""

    name = "pitch"

    def __init__(self, *, offline: bool = False) -> None:
        self._tracker = PitchTracker(offline=offline)
        self.version = f"{self._tracker.version}-1"

    def annotate(self, samples: NDArray[np.float32]) -> Values:
        squares = (np.square(samples[i : i + _BLOCK], dtype=np.float64).sum() for i in range(0, len(samples), _BLOCK))
        power = float(sum(squares)) / len(samples)
        track = self._tracker.track(samples)
        return {"pitch": [round(float(hertz), 1) for hertz in track], "level": 10 * float(np.log10(max(power, 1e-12)))}


def transcripts(spec: str, language: str, *, offline: bool = False) -> Callable[[], Annotator]:
    return partial(TranscriptAnnotator, spec, language, offline=offline)


def ratings(*, offline: bool = False) -> Callable[[], Annotator]:
    return partial(QualityAnnotator, offline=offline)


def voices(*, offline: bool = False) -> Callable[[], Annotator]:
    return partial(VoiceAnnotator, offline=offline)


KEPT = ".transcripts"  # what a stopped run goes on from
COLUMNS = ("utterance", "speaker", "text", "confidence", "seconds")


@dataclass(frozen=True, slots=True)
class TranscribedUtterance:
    """One row of the tables; of a silent recording the text is empty."""

    utterance: str
    speaker: str
    text: str
    confidence: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class Transcribed:
    """The outcome of a run, and where it is."""

    folder: Path
    recognizer: str
    version: str
    language: Language
    rows: tuple[TranscribedUtterance, ...]
    computed: int
    problems: tuple[Problem, ...]

    @property
    def skipped(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.fatal)

    @property
    def hours(self) -> float:
        return sum(row.seconds for row in self.rows) / 3600


def transcribe_corpus(
    corpus: Corpus,
    out: str | Path,
    recognizer: str | None = None,
    *,
    language: str | None = None,
    engine: Engine | None = None,
    offline: bool = False,
    strict: bool = False,
    max_seconds: float = LONGEST_SECONDS,
    progress: Progress | None = None,
) -> Transcribed:
    """Transcribe the corpus into the folder `out`: `text`, `transcripts.csv`, `transcripts.parquet`.

    A stopped run goes on from there; a recording is heard again only if its content, the recognizer or its version
    changed. The language is the one given, else the one that the corpus names, else English.

    Parameters
    ----------
    corpus : Corpus
        The recordings, as `read_corpus` gives them.
    out : str or Path
        The folder for the transcripts.
    recognizer : str
        `moonshine`, `whisper`, a program, or `module:function`.
    language : str, optional
        Language of the speech, such as `en`.
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
    Transcribed
        The files written, and the recordings that could not be used.

    Raises
    ------
    InputError
        If the recognizer does not know the language, or with `strict` a recording can't be used.

    Examples
    --------
    >>> transcribe_corpus(read_corpus("speech/"), "transcripts")  # doctest: +SKIP
    """
    folder = make_folder(out)
    spoken = language_of(corpus, language, offline=offline)
    recognizer = recognizer or default_recognizer(spoken.code)
    heard = annotate_corpus(
        corpus,
        folder / KEPT,
        transcripts(recognizer, spoken.code, offline=offline),
        engine=engine,
        strict=strict,
        max_seconds=max_seconds,
        progress=progress,
    )
    rows = tuple(_rows(corpus, heard))
    refuse_other_language(spoken, recognizer, [row.confidence for row in rows if row.text], corpus)
    _write_kaldi(folder / "text", rows)
    _write_csv(folder / "transcripts.csv", rows)
    _write_parquet(folder / "transcripts.parquet", rows, {"recognizer": recognizer, "version": heard.version})
    return Transcribed(folder, recognizer, heard.version, spoken, rows, heard.computed, heard.problems)


def _rows(corpus: Corpus, heard: Annotated) -> list[TranscribedUtterance]:
    rows = []
    for utterance in corpus:
        annotation = heard.by_id.get(utterance.id)
        if annotation is not None:
            text, confidence = str(annotation.values.get("text", "")), annotation.values.get("confidence")
            rows.append(
                TranscribedUtterance(utterance.id, utterance.speaker, text, confidence, annotation.record.seconds)
            )
    return rows


def _write_kaldi(path: Path, rows: Sequence[TranscribedUtterance]) -> None:
    """Sorted by bytes, as Kaldi's tools want it; an utterance without words has its id alone."""
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8") as out:
        for row in sorted(rows, key=lambda row: row.utterance.encode()):
            out.write(f"{row.utterance} {row.text}".rstrip() + "\n")


def _write_csv(path: Path, rows: Sequence[TranscribedUtterance]) -> None:
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows([csv_cell(getattr(row, column)) for column in COLUMNS] for row in rows)


def _write_parquet(path: Path, rows: Sequence[TranscribedUtterance], facts: dict[str, str]) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    kinds = (pa.string(), pa.string(), pa.string(), pa.float64(), pa.float64())
    schema = pa.schema(list(zip(COLUMNS, kinds, strict=True)), metadata=facts)
    table = pa.table({column: [getattr(row, column) for row in rows] for column in COLUMNS}, schema=schema)
    with whole_file(path) as temporary:
        pyarrow.parquet.write_table(table, temporary)
