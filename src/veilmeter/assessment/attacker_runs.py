"""The runs that attackers make of the anonymizer themselves, and what one draw of a run covers.

A run that veilmeter makes has seeds of its own and, where the system can, a new draw for every utterance. It lies in
the folder of the assessment, apart from what was released, and an interrupted one goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.anonymizers.anonymize_corpus import Anonymized, anonymize_corpus, manifest_path, own_seeds, run_again
from veilmeter.anonymizers.base import Draw, load_anonymizer, parse_options
from veilmeter.anonymizers.manifest import Entry, read_manifest
from veilmeter.assessment.settings import DRAWS, Settings
from veilmeter.attacks.material import AttackerRun, DrawLevel
from veilmeter.core.engine import Engine, Progress
from veilmeter.core.errors import InputError, Problem
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.walk import locate

if TYPE_CHECKING:
    from veilmeter.data.corpus import Corpus

RUNS = 2  # by default; the second brings most of what more of them bring
FOLDER = "attacker_runs"
RELEASE = "release"


def split_draw(source: str) -> tuple[str, DrawLevel]:
    """A run with what one draw of it covers, as `DIR:per-speaker` says it.

    >>> split_draw("again:per-speaker"), split_draw("again")
    (('again', 'speaker'), ('again', 'unknown'))
    """
    path, colon, word = source.rpartition(":")
    if colon and word in DRAWS and path:
        level: DrawLevel = DRAWS[word]  # type: ignore[assignment]
        return path, level
    if colon and word.startswith("per-"):
        raise InputError(f"{source}: one draw covers a speaker or an utterance", fix=f"write {' or '.join(DRAWS)}")
    return source, "unknown"


def draw_in_manifest(folder: str | Path) -> DrawLevel:
    """What one draw covers by the manifest beside a folder that veilmeter anonymized; unknown without one."""
    place = manifest_path(folder)
    try:
        levels = {entry.draw for entry in read_manifest(place).values()} if place.is_file() else set()
    except InputError:
        return "unknown"
    return _level(Draw(levels.pop())) if len(levels) == 1 else "unknown"


def anonymizer_facts(folders: Sequence[Path], settings: Settings) -> dict[str, Any]:
    """The anonymizer of a release for results.json: its name, its version, and the parameters that are the same for
    every recording. From the manifests beside the folders, else from the settings; empty where neither knows."""
    entries: list[Entry] = []
    for place in map(manifest_path, folders):
        with suppress(InputError):
            entries += read_manifest(place).values() if place.is_file() else ()
    made_by = {(entry.system, entry.version) for entry in entries}
    if len(made_by) == 1:
        name, version = made_by.pop()
        shared = {
            key: value
            for key, value in entries[0].parameters.items()
            if isinstance(value, bool | int | float | str)
            and all(entry.parameters.get(key) == value for entry in entries)
        }
        return {"anonymizer": name, "anonymizer_version": version, "anonymizer_parameters": shared}
    if settings.system is not None:
        return {"anonymizer": settings.system, "anonymizer_parameters": parse_options(settings.option)}
    return {}


def _level(draw: Draw) -> DrawLevel:
    """Where nothing is drawn, no two recordings share a draw."""
    if draw in (Draw.NONE, Draw.UTTERANCE):
        return "utterance"
    return "speaker" if draw == Draw.SPEAKER else "unknown"


def join_runs(runs: Sequence[AttackerRun], merge: Callable[[Sequence[Embeddings]], Embeddings]) -> list[AttackerRun]:
    """Sources without a common utterance, and with draws alike, are parts of one run."""
    kept: list[AttackerRun] = []
    for run in runs:
        ids = set(run.vectors.utterances)
        for number, other in enumerate(kept):
            if (other.draw, other.certain) == (run.draw, run.certain) and not ids & set(other.vectors.utterances):
                kept[number] = replace(other, vectors=merge([other.vectors, run.vectors]))
                break
        else:
            kept.append(run)
    return [replace(run, name=f"run {number}") for number, run in enumerate(kept, 1)]


@dataclass(frozen=True, eq=False)
class SystemRuns:
    """The anonymizer that is run here, for the release and for the attackers."""

    settings: Settings
    folder: Path
    engine: Engine

    @property
    def system(self) -> str:
        return self.settings.system or "command"

    def release(self, corpus: Corpus, progress: Progress | None = None) -> Corpus:
        """The released run, where none was given: as the system is by default, with the seed of the assessment."""
        out = release_folder(self.folder, corpus)
        options = {**self._options(), "seed": self.settings.seed, "offline": self.settings.offline}
        anonymizer = load_anonymizer(self.system, options)
        done = anonymize_corpus(corpus, out, anonymizer, engine=self.engine, overwrite=True, progress=progress)
        return corpus_of_copies(corpus, done)

    def of_attacker(
        self, corpus: Corpus, number: int, role: str = "run", progress: Progress | None = None
    ) -> tuple[Corpus, DrawLevel]:
        """One of the attackers' runs, and the scope of one draw in it."""
        done = run_again(
            corpus,
            self.folder / FOLDER / f"{role}-{number}" / corpus.root.name,
            self.system,
            self._options(),
            seed=own_seeds(self.settings.seed, number)[-1],
            engine=self.engine,
            offline=self.settings.offline,
            progress=progress,
        )
        return corpus_of_copies(corpus, done), _level(done.draw)

    def _options(self) -> dict[str, Any]:
        options = parse_options(self.settings.option)
        if self.settings.command is not None:
            options["command"] = self.settings.command
        return options


def release_folder(run: Path, corpus: Corpus) -> Path:
    return run / RELEASE / corpus.root.name


def read_release(corpus: Corpus, run: Path) -> Corpus:
    """The release of this corpus in the folder `run`, where the assessment ran the anonymizer itself."""
    out = release_folder(run, corpus)
    place = manifest_path(out)
    if not place.is_file():
        raise InputError("the release that was made here is not there any more", path=out, fix="run `assess` again")
    outputs = {}
    for entry in read_manifest(place).values():
        path = None if entry.output is None else locate(entry.output, out, absolute=False)
        if isinstance(path, Path):
            outputs[entry.utterance] = path
    return _copies(corpus, out, outputs)


def corpus_of_copies(corpus: Corpus, done: Anonymized) -> Corpus:
    """The corpus of what came of a run."""
    outputs = {entry.utterance: done.out / entry.output for entry in done.entries if entry.output is not None}
    return _copies(corpus, done.out, outputs, done.failed)


def _copies(corpus: Corpus, out: Path, outputs: Mapping[str, Path], problems: tuple[Problem, ...] = ()) -> Corpus:
    utterances = tuple(u.copied_to(outputs[u.id]) for u in corpus.utterances if u.id in outputs)
    return replace(corpus, root=out, utterances=utterances, problems=problems)


def enrollment_of(corpus: Corpus, wanted: set[str]) -> Corpus | None:
    """Only these recordings of a corpus; None where it has none of them."""
    kept = tuple(utterance for utterance in corpus.utterances if utterance.id in wanted)
    return replace(corpus, utterances=kept, problems=()) if kept else None
