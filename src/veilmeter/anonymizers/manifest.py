"""The files beside anonymized recordings: the manifest, the lists of the source's layout, and the timings.

The manifest links every anonymized recording to its source and its parameters. Anyone who has it can undo much of the
protection, so it is written beside the anonymized corpus and not into it, readable by its owner only.

While a run is under way a journal grows beside it, one line per utterance. At the end both become one sorted manifest,
so a run that was killed and started again ends with the same bytes as one that was not.

The lists make the anonymized corpus readable in its source's layout. Only what was anonymized is listed, and no more
about a speaker than the layout asks for: LibriSpeech's SPEAKERS.TXT, for one, is written without the readers' names.

The timings say how long the anonymizer worked. They are never part of what it made: a run repeated gives the same
bytes, not the same times.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import resource
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from veilmeter.core.engine import Engine, Result
from veilmeter.core.engine import Item as WorkItem
from veilmeter.core.errors import InputError
from veilmeter.core.files import open_input, read_input_json, to_json, write_bytes, write_json, write_text
from veilmeter.data.corpus import Corpus, Utterance
from veilmeter.data.embeddings import DRAW_COLUMNS
from veilmeter.data.formats.table import guard_cell
from veilmeter.data.layouts import LAYOUTS, LONGEST_LINE, Evidence, read_lines


@dataclass(frozen=True, slots=True)
class Entry:
    """One utterance: paths are relative to the corpus and to the output folder.

    `output` and its hash are None if it could not be done; then `problems` says why. `gain` is below 1 where the
    anonymized samples were beyond full scale and were scaled to fit. `draw` says what was drawn separately (`Draw`),
    `part` which part of its file the utterance is, if not all of it; `rate` the sampling rate that was asked for, if it
    is not to be the source's.
    """

    utterance: str
    speaker: str
    source: str
    source_sha256: str | None
    output: str | None
    output_sha256: str | None
    system: str
    version: str
    parameters: Mapping[str, Any]
    pseudo_speaker: str | None = None
    seconds: float | None = None
    gain: float = 1.0
    problems: tuple[Mapping[str, str], ...] = field(default=())
    draw: str = "unknown"
    part: str = ""
    rate: int | None = None

    def same_treatment(self, other: Entry) -> bool:
        """Whether both say that the same is done to the same utterance and put into the same place."""
        return self.version == other.version and self.same_settings(other)

    def same_settings(self, other: Entry) -> bool:
        """The same, whatever version of the system does it."""
        names = ("utterance", "system", "parameters", "output", "part", "rate")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    @property
    def named_draw(self) -> str:
        """Which one of a finite set it got, as its parameters name it; empty where they do not."""
        return next((str(self.parameters[name]) for name in DRAW_COLUMNS if name in self.parameters), "")

    def to_json(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_json(cls, form: Any) -> Entry:
        if not isinstance(form, dict) or set(form) != set(cls.__slots__):
            raise ValueError("not an entry")
        if not isinstance(form["parameters"], dict):
            raise ValueError("its parameters are not an object")
        for name in ("utterance", "speaker", "source", "system", "version"):
            if not isinstance(form[name], str):
                raise ValueError(f"{name} is not a text")
        for name in ("source_sha256", "output", "output_sha256"):
            if not isinstance(form[name], str | None):
                raise ValueError(f"{name} is not a text")
        return cls(**{**form, "problems": tuple(form["problems"])})

    def line(self) -> str:
        return to_json(self, indent=None) + "\n"


@dataclass(frozen=True, slots=True)
class Item:
    """An utterance to do: the plan, what an earlier run did to it, and why the system refuses it if it does."""

    utterance: Utterance
    planned: Entry
    earlier: Entry | None
    refusal: str = ""


def read_manifest(path: str | Path) -> dict[str, Entry]:
    """The entries of a finished run by utterance."""
    return dict(_entries(Path(path), whole=True))


def read_journal(path: Path) -> dict[str, Entry]:
    """The entries of a run that was stopped; none without a journal."""
    return dict(_entries(path, whole=False)) if path.exists() else {}


def write_manifest(path: Path, entries: Iterable[Entry]) -> None:
    write_text(path, "".join(entry.line() for entry in sorted(entries, key=lambda entry: entry.utterance)))


def _entries(path: Path, *, whole: bool) -> Iterator[tuple[str, Entry]]:
    try:
        with open_input(path) as handle:
            for number, data in enumerate(iter(lambda: handle.readline(LONGEST_LINE), b""), start=1):
                line = data.decode("utf-8")
                if not line.endswith("\n") and not whole:
                    return  # a run was killed while it wrote this line
                try:
                    entry = Entry.from_json(json.loads(line))
                except (ValueError, TypeError, KeyError, RecursionError):
                    raise InputError(
                        "not a line of a manifest",
                        path=path,
                        line=number,
                        fix="restore the file, or remove it and the output folder",
                    ) from None
                yield entry.utterance, entry
    except UnicodeDecodeError:
        raise InputError("not a manifest: it is not UTF-8 text", path=path) from None
    except OSError as error:
        raise InputError(f"the manifest can't be read: {error.strerror}", path=path) from None


# Of a Kaldi data folder: lists about utterances and trials that hold for the anonymized ones as well.
_CARRIED = re.compile(r"text|enrolls|trials(_\w+)?")


def write_side_files(corpus: Corpus, source: Path, out: Path, outputs: Mapping[str, Path]) -> list[Path]:
    """Lists for the utterances in `outputs` (id to path below `out`). `source` is what the user named."""
    done = [utterance for utterance in corpus if utterance.id in outputs]
    writers = {
        "librispeech": _librispeech,
        "vctk": _vctk,
        "kaldi": _kaldi,
        "vpc": _vpc,
        "commonvoice": _commonvoice,
        "csv": _csv,
    }
    # Lists of other kinds, also of layouts that another package adds, become one that everybody can read.
    by_folders = LAYOUTS[corpus.layout].evidence == Evidence.FOLDERS
    writer = writers.get(corpus.layout) or (None if by_folders else _csv)
    return [] if writer is None else writer(corpus, done, source, out, outputs)


def _librispeech(
    corpus: Corpus, done: list[Utterance], source: Path, out: Path, outputs: Mapping[str, Path]
) -> list[Path]:
    genders = {u.speaker: u.gender.upper() for u in done if u.gender}
    if not genders:
        return []
    lines = [";ID  |SEX| SUBSET | MINUTES | NAME\n"]
    lines += [f"{speaker:<4} | {gender} |  |  | \n" for speaker, gender in sorted(genders.items())]
    return [_write(out / "SPEAKERS.TXT", "".join(lines))]


def _vctk(corpus: Corpus, done: list[Utterance], source: Path, out: Path, outputs: Mapping[str, Path]) -> list[Path]:
    about = {u.speaker: u for u in done if u.gender}
    if not about:
        return []
    rows = [
        f"{speaker}  {u.attributes.get('age', '-')}  {u.gender.upper()}  {u.attributes.get('accent', '')}".rstrip()
        + "\n"
        for speaker, u in sorted(about.items())
    ]
    return [_write(out / "speaker-info.txt", "".join(["ID  AGE  GENDER  ACCENTS\n", *rows]))]


def _kaldi(corpus: Corpus, done: list[Utterance], source: Path, out: Path, outputs: Mapping[str, Path]) -> list[Path]:
    return _data_folder(corpus.root, out, done, outputs, Path())


def _data_folder(
    original: Path, out: Path, done: list[Utterance], outputs: Mapping[str, Path], below: Path
) -> list[Path]:
    """`below` is where the data folder lies in the output; paths in wav.scp are relative to the folder itself, or to
    the output folder if the audio lies elsewhere in it (our reader, like Kaldi's recipes, tries both)."""
    folder = out / below
    by_speaker: dict[str, list[str]] = {}
    for u in done:
        by_speaker.setdefault(u.speaker, []).append(u.id)
    genders = {u.speaker: u.gender for u in done if u.gender}

    def place(u: Utterance) -> str:
        path = outputs[u.id]
        return path.relative_to(below).as_posix() if path.is_relative_to(below) else path.as_posix()

    lists = {
        "wav.scp": [f"{u.id} {place(u)}\n" for u in done],
        "utt2spk": [f"{u.id} {u.speaker}\n" for u in done],
        "spk2utt": [f"{speaker} {' '.join(ids)}\n" for speaker, ids in sorted(by_speaker.items())],
    }
    if genders:
        lists["spk2gender"] = [f"{speaker} {gender}\n" for speaker, gender in sorted(genders.items())]
    written = [_write(folder / name, "".join(lines)) for name, lines in lists.items()]
    for file in sorted(original.iterdir()):
        if _CARRIED.fullmatch(file.name) and file.is_file():
            text = "".join(line + "\n" for _, line in read_lines(file))
            written.append(_write(folder / file.name, text))
    return written


def _vpc(corpus: Corpus, done: list[Utterance], source: Path, out: Path, outputs: Mapping[str, Path]) -> list[Path]:
    """Each of the source's data folders, as the same folder. An utterance may be in several (VCTK's common trials)."""
    from veilmeter.data.formats import vpc

    by_id = {u.id: u for u in done}
    sets = {u.attributes.get("set") for u in done}
    data_folders = [
        (folder.path, folder.suffix, vpc.read_data_folder(folder).utterances)
        for folder in vpc.data_folders(corpus.root)
        if folder.set in sets
    ]
    # Of the variants (original, _anon ...) the one that was read.
    variants = {
        suffix for _, suffix, read in data_folders if any(u.id in by_id and by_id[u.id].path == u.path for u in read)
    }
    written = []
    for folder, suffix, read in data_folders:
        listed = [by_id[u.id] for u in read if u.id in by_id]
        if suffix in variants and listed:
            written += _data_folder(folder, out, listed, outputs, folder.relative_to(corpus.root))
    return written


def _commonvoice(
    corpus: Corpus, done: list[Utterance], source: Path, out: Path, outputs: Mapping[str, Path]
) -> list[Path]:
    """The lists that were read, with the clips' new names and without those that could not be done."""
    clips = done[0].path.parent
    new_names = {u.path.name: outputs[u.id].name for u in done}
    below = clips.parent.relative_to(corpus.root)
    written = []
    for part in sorted({u.attributes["part"] for u in done}):
        lines = read_lines(clips.parent / f"{part}.tsv")
        _, head = next(lines)
        column = head.split("\t").index("path")
        kept = [head]
        for _, line in lines:
            fields = line.split("\t")
            name = fields[column] if column < len(fields) else ""
            new = new_names.get(name) or new_names.get(name + ".mp3")
            if new is not None:
                fields[column] = new
                kept.append("\t".join(fields))
        written.append(_write(out / below / f"{part}.tsv", "\n".join(kept) + "\n"))
    return written


def _csv(corpus: Corpus, done: list[Utterance], source: Path, out: Path, outputs: Mapping[str, Path]) -> list[Path]:
    attributes = sorted({key for u in done for key in u.attributes})
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["path", "speaker", "utterance", "gender", "session", *attributes])
    for u in done:
        more = [u.attributes.get(key, "") for key in attributes]
        row = [outputs[u.id].as_posix(), u.speaker, u.id, u.gender, u.session, *more]
        writer.writerow([guard_cell(cell) for cell in row])
    name = source.with_suffix(".csv").name if source.is_file() else "corpus.csv"
    return [_write(out / name, text.getvalue())]


def _write(path: Path, text: str) -> Path:
    """Unless it is there already: a run that has nothing to do changes nothing."""
    data = text.encode("utf-8", "surrogateescape")
    if not path.is_file() or path.is_symlink() or path.read_bytes() != data:
        write_bytes(path, data)
    return path


def processor_seconds() -> float:
    """Since the process began; only differences mean anything."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class ProcessorClock:
    """Adds up the processor time of some blocks, without what is paused within them."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._lap = 0.0

    @contextmanager
    def running(self) -> Iterator[None]:
        started = processor_seconds()
        try:
            yield
        finally:
            self.seconds += processor_seconds() - started

    @contextmanager
    def pause(self) -> Iterator[None]:
        started = processor_seconds()
        try:
            yield
        finally:
            self.seconds -= processor_seconds() - started

    def lap(self) -> float:
        """The seconds since it was asked last."""
        seconds, self._lap = self.seconds - self._lap, self.seconds
        return max(0.0, seconds)


@dataclass(frozen=True, slots=True)
class _TimedTask:
    task: Callable[[Any], Any]

    def __call__(self, item: Any) -> tuple[Any, float]:
        clock = ProcessorClock()
        with clock.running():
            result = self.task(item)
        return result, clock.seconds


class TimedEngine:
    """An engine that adds up what its workers' processors spend on tasks, wherever they run."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.seconds = 0.0

    @property
    def workers(self) -> int:
        return self._engine.workers

    def run(self, task: Callable[[WorkItem], Result], items: Sequence[WorkItem]) -> Iterator[tuple[int, Result]]:
        for number, (result, seconds) in self._engine.run(_TimedTask(task), items):
            self.seconds += seconds
            yield number, result

    def close(self) -> None:
        self._engine.close()


@dataclass(frozen=True, slots=True)
class Effort:
    """Processor seconds that were spent on so many seconds of speech."""

    processor_seconds: float = 0.0
    speech_seconds: float = 0.0

    def __add__(self, other: Effort) -> Effort:
        return Effort(self.processor_seconds + other.processor_seconds, self.speech_seconds + other.speech_seconds)

    @property
    def rate(self) -> float:
        return self.processor_seconds / self.speech_seconds if self.speech_seconds > 0 else 0.0


NO_EFFORT = Effort()


@dataclass(frozen=True, slots=True)
class Timings:
    """What went into an output folder: `preparing` over the whole corpus, such as listening to every speaker first, and
    `anonymizing` one recording after the other. Reading and writing audio files is not counted."""

    system: str
    version: str
    preparing: Effort = NO_EFFORT
    anonymizing: Effort = NO_EFFORT

    @property
    def real_time_factor(self) -> float | None:
        """Processor seconds for a second of speech; None where nothing was timed."""
        return self.preparing.rate + self.anonymizing.rate if self.anonymizing.speech_seconds > 0 else None

    def after(self, earlier: Timings | None) -> Timings:
        """Including the earlier runs that this one continued. Each run prepares again: the longest counts."""
        if earlier is None or (earlier.system, earlier.version) != (self.system, self.version):
            return self
        preparing = max(self.preparing, earlier.preparing, key=lambda effort: effort.rate)
        return Timings(self.system, self.version, preparing, earlier.anonymizing + self.anonymizing)


def timings_path(out: str | Path) -> Path:
    """Where the timings of an output folder lie: beside it, as the manifest does.

    >>> timings_path("data/libri-anon").as_posix()
    'data/libri-anon.timings.json'
    """
    folder = Path(os.path.abspath(out)) if Path(out).name in ("", "..") else Path(out)
    return folder.with_name(folder.name + ".timings.json")


def read_timings(out: str | Path) -> Timings | None:
    """The timings of a folder that veilmeter made; None without any, or where they can't be read: nothing rests on
    them."""
    try:
        form = read_input_json(timings_path(out))
        efforts = (Effort(**{key: float(value) for key, value in form[name].items()}) for name in _EFFORTS)
        return Timings(str(form["system"]), str(form["version"]), *efforts)
    except (InputError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        return None


def real_time_factor(folders: Iterable[str | Path]) -> float | None:
    """The mean over the folders that veilmeter made, weighted by their speech; None if it made none of them."""
    known = [timings for timings in map(read_timings, folders) if timings is not None]
    timed = [(timings.real_time_factor, timings.anonymizing.speech_seconds) for timings in known]
    total = sum(seconds for factor, seconds in timed if factor is not None)
    return sum(factor * seconds for factor, seconds in timed if factor is not None) / total if total else None


def write_timings(out: str | Path, timings: Timings) -> None:
    write_json(timings_path(out), {**asdict(timings), "real_time_factor": timings.real_time_factor})


_EFFORTS = ("preparing", "anonymizing")
