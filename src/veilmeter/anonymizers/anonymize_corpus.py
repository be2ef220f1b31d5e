"""From a corpus to an anonymized corpus: every utterance once, however often the run is stopped and started again."""

from __future__ import annotations

import glob
import hashlib
import os
import pickle
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from veilmeter.anonymizers.base import Anonymizer, NeedsCorpus, Samples
from veilmeter.anonymizers.manifest import Entry, Journal, read_manifest, write_manifest
from veilmeter.anonymizers.side_files import write_side_files
from veilmeter.core.engine import Engine, Here
from veilmeter.core.errors import InputError, Problem, VeilmeterError
from veilmeter.core.files import make_folder, only_one, plain, sha256
from veilmeter.data.corpus import Corpus, Utterance, file_name
from veilmeter.data.formats.locate import inside
from veilmeter.data.formats.walk import MEDIA_SUFFIXES, SUFFIXES
from veilmeter.data.layouts import LAYOUTS
from veilmeter.speech.audio import (
    LONGEST_SECONDS,
    RATE,
    SHORTEST_SECONDS,
    AudioError,
    clipped_problem,
    is_silent,
    read_recording,
    write_audio,
)

FORMATS = ("flac", "wav")
FULL_SCALE = 32767 / 32768
FAR_TOO_LOUD = 0.1  # an output that had to be scaled by less is worth a remark

Progress = Callable[[int, int], None]
"""Called with the utterances done and how many there are."""


@dataclass(frozen=True, slots=True)
class Anonymized:
    """What a run did. `problems` are the corpus's and the utterances'; fatal ones say what is missing in the output."""

    out: Path
    manifest: Path
    entries: tuple[Entry, ...]
    made: int
    kept: int
    removed: int
    problems: tuple[Problem, ...]

    @property
    def done(self) -> int:
        return self.made + self.kept

    @property
    def failed(self) -> tuple[Problem, ...]:
        return tuple(problem for problem in self.problems if problem.fatal)

    @property
    def scaled(self) -> int:
        """How many outputs were beyond full scale and were scaled down."""
        return sum(entry.gain < 1 for entry in self.entries)

    @property
    def seconds(self) -> float:
        return sum(entry.seconds or 0.0 for entry in self.entries)

    def counted(self) -> dict[str, int]:
        """Problems by kind, most frequent first."""
        return dict(Counter(problem.kind for problem in self.problems).most_common())


def manifest_path(out: str | Path) -> Path:
    """Where the manifest of an output folder lies unless told: beside it, as it must not be published with it.

    >>> manifest_path("data/libri-anon").as_posix()
    'data/libri-anon.manifest.jsonl'
    """
    folder = Path(os.path.abspath(out)) if Path(out).name in ("", "..") else Path(out)
    return folder.with_name(folder.name + ".manifest.jsonl")


def anonymize_corpus(
    corpus: Corpus,
    out: str | Path,
    anonymizer: Anonymizer,
    *,
    audio: str = "flac",
    engine: Engine | None = None,
    manifest: str | Path | None = None,
    overwrite: bool = False,
    source: str | Path | None = None,
    max_seconds: float = LONGEST_SECONDS,
    strict: bool = False,
    progress: Progress | None = None,
) -> Anonymized:
    """Anonymize every utterance into `out`, in the corpus's layout and with its ids, as 16-bit FLAC or WAV.

    What an earlier run with the same settings did is kept if source and output are unchanged. Other settings than the
    earlier run's are an error, or with `overwrite` do those utterances again. Recordings that can't be used are
    reported and left out, or with `strict` end the run. `source` is the path the corpus was read from, if a file.
    """
    folder = Path(out)
    place = Path(manifest) if manifest is not None else manifest_path(folder)
    if audio not in FORMATS:
        raise InputError(f"audio is not written as {audio!r}", fix=f"choose {' or '.join(FORMATS)}")
    if not len(corpus):
        raise InputError("there are no utterances in this corpus", path=corpus.root)
    if strict and (bad := [problem for problem in corpus.problems if problem.fatal]):
        raise _strict(bad[0])
    _check_places(corpus, folder, place)
    with only_one(place.with_name(place.name + ".lock"), folder):
        journal = Journal(place.with_name(place.name + ".part"))
        before = (read_manifest(place) if place.exists() else {}) | journal.read()
        if not before and not overwrite and folder.is_dir() and any(folder.iterdir()):
            raise InputError(
                f"the folder is not empty, and there is no manifest {place.name} of an earlier run beside it",
                path=folder,
                fix="choose another folder, or --overwrite",
            )
        if isinstance(anonymizer, NeedsCorpus):
            anonymizer = anonymizer.prepared(corpus, engine or Here())
        items = _plan(corpus, anonymizer, audio, before)
        planned = [item.planned for item in items]
        if not overwrite:
            _check_settings(items, folder)
        make_folder(folder)
        _remove_leftovers(folder, planned, place)
        journal.open(before.values())
        try:
            task = _Task(pickle.dumps(anonymizer), folder, max_seconds)
            entries, problems, made = _run(items, task, journal, engine or Here(), strict, progress)
            removed = _remove_outdated(folder, before, entries)
            outputs = {entry.utterance: Path(entry.output) for entry in entries if entry.output is not None}
            if outputs:
                write_side_files(corpus, Path(source or corpus.root), folder, outputs)
            write_manifest(place, entries)
        except BaseException:
            journal.close(remove=False)
            raise
        journal.close(remove=True)
    return Anonymized(
        folder,
        place,
        tuple(entries),
        made,
        len(outputs) - made,
        removed,
        (*corpus.problems, *problems),
    )


def _check_places(corpus: Corpus, out: Path, manifest: Path) -> None:
    real_out, real_root = os.path.realpath(out), os.path.realpath(corpus.root)
    if out.exists() and not out.is_dir():
        raise InputError("the output is a file, not a folder", path=out)
    if real_out == real_root or (inside(real_out, [real_root]) and not LAYOUTS[corpus.layout].has_lists):
        raise InputError(
            "the output folder lies in the corpus, which would then hold both",
            path=out,
            fix="choose a folder outside it",
        )
    if any(inside(os.path.realpath(utterance.path), [real_out]) for utterance in corpus):
        raise InputError("the corpus lies in the output folder", path=out, fix="choose an empty folder")
    if manifest.is_dir() or manifest.is_symlink():
        raise InputError("the manifest can't be written over this", path=manifest)


@dataclass(frozen=True, slots=True)
class _Item:
    """An utterance to do: the plan, what an earlier run did to it, its audio, why the system refuses it if it does."""

    planned: Entry
    earlier: Entry | None
    path: Path
    refusal: str = ""


def _plan(corpus: Corpus, anonymizer: Anonymizer, audio: str, before: Mapping[str, Entry]) -> list[_Item]:
    taken: set[str] = set()
    name, version = anonymizer.name, anonymizer.version
    items = []
    for utterance in corpus:
        parameters, refusal = {}, ""
        try:
            parameters = plain(anonymizer.parameters(utterance))
        except InputError as error:
            refusal = error.what
        pseudo = parameters.get("pseudo_speaker")
        entry = Entry(
            utterance.id,
            utterance.speaker,
            _source_name(corpus, utterance),
            None,
            _output_name(corpus, utterance, audio, taken),
            None,
            name,
            version,
            parameters,
            None if pseudo is None else str(pseudo),
        )
        items.append(_Item(entry, before.get(utterance.id), utterance.path, refusal))
    return items


def _source_name(corpus: Corpus, utterance: Utterance) -> str:
    if utterance.path.is_relative_to(corpus.root):
        return utterance.path.relative_to(corpus.root).as_posix()
    return str(utterance.path)


def _output_name(corpus: Corpus, utterance: Utterance, audio: str, taken: set[str]) -> str:
    below = corpus.relative(utterance)
    known = below.suffix.lower() in SUFFIXES | MEDIA_SUFFIXES
    below = below.with_suffix(f".{audio}") if known else below.with_name(f"{below.name}.{audio}")
    if below.as_posix() in taken or ".." in below.parts:
        if not LAYOUTS[corpus.layout].has_lists:
            raise InputError(
                f"two recordings would be written to {below}", path=utterance.path, fix="rename one of them"
            )
        mark = hashlib.sha256(utterance.id.encode("utf-8", "surrogateescape")).hexdigest()[:12]
        below = Path("wav", f"{file_name(utterance.id)[:150]}-{mark}.{audio}")
    taken.add(below.as_posix())
    return below.as_posix()


def _check_settings(items: Iterable[_Item], out: Path) -> None:
    for item in items:
        earlier = item.earlier
        if earlier and earlier.output is not None and not item.refusal and not item.planned.same_treatment(earlier):
            raise InputError(
                f"it was made with {_said(earlier)}, and now {_said(item.planned)} is asked for "
                f"(utterance {earlier.utterance})",
                path=out,
                fix="choose another folder, or --overwrite to do again what differs",
            )


def _said(entry: Entry) -> str:
    settings = ", ".join(f"{key} {value}" for key, value in entry.parameters.items())
    return f"{entry.system} {entry.version} ({settings}; {Path(entry.output or '').suffix[1:]})"


def _run(
    items: list[_Item], task: _Task, journal: Journal, engine: Engine, strict: bool, progress: Progress | None
) -> tuple[list[Entry], list[Problem], int]:
    """All entries in the plan's order, the problems, and how many outputs are new."""
    queue = sorted(items, key=lambda item: -_size(item.path))  # long ones first: no core waits for the last
    found: dict[str, Entry] = {}
    problems: dict[str, list[Problem]] = {}
    made = 0
    for _, outcome in engine.run(task, queue):
        entry = outcome.entry
        if not outcome.kept:
            journal.add(entry)
            made += entry.output is not None
        found[entry.utterance] = entry
        problems[entry.utterance] = outcome.problems
        if strict and entry.output is None:
            raise _strict(outcome.problems[0])
        if progress is not None:
            progress(len(found), len(items))
    ids = [item.planned.utterance for item in items]
    return [found[one] for one in ids], [problem for one in ids for problem in problems[one]], made


def _strict(problem: Problem) -> InputError:
    return InputError(problem.what, path=problem.path, line=problem.line, fix="mend it, or run without --strict")


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


@dataclass(frozen=True, slots=True)
class _Outcome:
    entry: Entry
    problems: list[Problem]
    kept: bool = False


_unpacked: dict[str, Anonymizer] = {}


@dataclass(frozen=True, slots=True)
class _Task:
    """Does one utterance, in whatever process. The anonymizer comes packed and is unpacked once a process."""

    packed: bytes
    out: Path
    max_seconds: float

    def __call__(self, item: _Item) -> _Outcome:
        entry, path = item.planned, item.path
        assert entry.output is not None
        target = self.out / entry.output
        entry = replace(entry, source_sha256=_hash(path))
        earlier = item.earlier
        if (
            earlier is not None
            and entry.same_treatment(earlier)
            and entry.source_sha256 is not None
            and entry.source_sha256 == earlier.source_sha256
            and earlier.output_sha256 == _hash(target)
        ):
            remarks = [Problem(one["kind"], one["what"], str(path), fatal=False) for one in earlier.problems]
            return _Outcome(replace(earlier, speaker=entry.speaker, source=entry.source), remarks, kept=True)
        try:
            recording = read_recording(path, max_seconds=self.max_seconds)
            if item.refusal:
                raise InputError(item.refusal)
            samples = self._anonymized(recording.samples, dict(entry.parameters))
        except InputError as error:
            kind = error.kind if isinstance(error, AudioError) else "not-anonymized"
            return _failed(entry, Problem(kind, error.what, str(path), fix=error.fix or ""))
        problems = [found for found in [clipped_problem(path, recording)] if found is not None]
        # Systems such as McAdams' leave the level as it comes out, often beyond what 16 bits hold. Clipping would add a
        # distortion of its own, and one that hides speakers: the whole recording is scaled instead.
        peak = float(np.abs(samples).max())
        gain = FULL_SCALE / peak if peak > FULL_SCALE else 1.0
        if gain < FAR_TOO_LOUD:
            what = f"its anonymized samples were {1 / gain:.0f} times beyond full scale and are scaled down"
            problems.append(Problem("too-loud", what, str(path), fatal=False))
        write_audio(target, samples * gain)
        said = tuple({"kind": problem.kind, "what": problem.what} for problem in problems)
        done = replace(entry, output_sha256=_hash(target), seconds=len(samples) / RATE, gain=gain, problems=said)
        return _Outcome(done, problems)

    def _anonymized(self, samples: Samples, parameters: dict[str, Any]) -> Samples:
        key = hashlib.sha256(self.packed).hexdigest()
        if key not in _unpacked:
            _unpacked[key] = pickle.loads(self.packed)  # made by this program a moment ago, never read from a file
        anonymizer = _unpacked[key]
        try:
            result = np.asarray(anonymizer.anonymize(samples, parameters))
        except (VeilmeterError, MemoryError):
            raise
        except Exception as error:  # a stranger's system: one utterance fails, not the run
            raise InputError(f"{anonymizer.name} failed: {type(error).__name__}: {error}") from None
        if result.ndim != 1 or not len(result) or result.dtype.kind != "f" or not np.isfinite(result).all():
            what = f"shape {result.shape}, {result.dtype}"
            finite = result.dtype.kind != "f" or np.isfinite(result).all()
            raise InputError(
                f"{anonymizer.name} gave no usable samples: {what if finite else 'they are not all finite'}"
            )
        # What no later step could use, whoever made it: the same as of a recording.
        if len(result) < SHORTEST_SECONDS * RATE:
            raise InputError(f"{anonymizer.name} left {len(result) / RATE:.2f} s, less than {SHORTEST_SECONDS} s")
        if is_silent(result):
            raise InputError(f"{anonymizer.name} left nothing but silence")
        return result


def _failed(entry: Entry, problem: Problem) -> _Outcome:
    said = ({"kind": problem.kind, "what": problem.what},)
    return _Outcome(replace(entry, output=None, problems=said), [problem])


def _hash(path: Path) -> str | None:
    try:
        return sha256(path) if path.is_file() else None
    except OSError:
        return None


_LEFTOVER = re.compile(r"\..+\.\w{8}\.part")


def _remove_leftovers(folder: Path, planned: Iterable[Entry], manifest: Path) -> None:
    """Files that a killed run had begun to write."""
    folders = {folder}
    for entry in planned:
        folders.update(folder / parent for parent in Path(entry.output or "").parents)
    for one in folders:
        if one.is_dir():
            for file in one.iterdir():
                if _LEFTOVER.fullmatch(file.name):
                    file.unlink(missing_ok=True)
    for file in manifest.parent.glob(f".{glob.escape(manifest.name[:80])}*.part"):
        file.unlink(missing_ok=True)


def _remove_outdated(folder: Path, before: dict[str, Entry], entries: Iterable[Entry]) -> int:
    """Outputs of earlier runs whose source is gone or no longer usable, if they are still as that run left them."""
    current = {entry.output for entry in entries}
    root, removed = os.path.realpath(folder), 0
    for earlier in before.values():
        if earlier.output is None or earlier.output in current:
            continue
        path = folder / earlier.output
        if inside(os.path.realpath(path), [root]) and _hash(path) == earlier.output_sha256 is not None:
            path.unlink()
            removed += 1
            for parent in path.relative_to(folder).parents:
                if parent != Path() and not any((folder / parent).iterdir()):
                    (folder / parent).rmdir()
    return removed
