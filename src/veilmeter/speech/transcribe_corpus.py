"""`transcribe_corpus`: what is said in every recording, as Kaldi's `text`, CSV and Parquet."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from veilmeter.core.engine import Engine, Progress
from veilmeter.core.errors import Problem
from veilmeter.core.files import make_folder, whole_file
from veilmeter.core.text import csv_cell
from veilmeter.data.corpus import Corpus
from veilmeter.speech.annotations import Annotated, annotate_corpus, transcripts
from veilmeter.speech.audio import LONGEST_SECONDS
from veilmeter.speech.recognizers.base import DEFAULT, Language, resolve_language

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
    """What a run gave, and where it is."""

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
    recognizer: str = DEFAULT,
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
    """
    folder = make_folder(out)
    spoken = resolve_language(language, corpus.languages)
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
