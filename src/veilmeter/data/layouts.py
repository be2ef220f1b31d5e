"""Corpus layouts: how recordings, speakers and lists lie on disk, one file per layout in `veilmeter.data.formats`.

A layout is a `Layout`: a function that recognizes a path, one that reads it, and which options the latter understands.
Other packages add theirs under the entry point group `veilmeter.layouts`. What readers share is here, too: finding
audio files below a root without leaving it, and reading lists line by line.
"""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import lru_cache
from pathlib import Path

from veilmeter.core.errors import InputError, Problem
from veilmeter.core.files import LARGEST_LIST, check_input, is_present, open_input
from veilmeter.core.registry import Registry
from veilmeter.core.text import parse_index
from veilmeter.data.corpus import MIX, Corpus, Utterance, clean_id

OPTIONS = {"part": "--part", "suffix": "--suffix", "roots": "--root", "columns": "--columns"}
"""The options that a layout may understand, by their names in the command."""


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """The user's choices. An option the layout does not understand has been refused before its reader is called."""

    part: str | None = None
    suffix: str | None = None
    roots: tuple[Path, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    channel: str | None = None  # for every layout: it chooses among the samples
    own_names: bool = False  # a table that lacks the columns may have veilmeter's own names for them

    @property
    def given(self) -> list[str]:
        """The names of those that were chosen; an empty suffix is a choice: the original."""
        return [name for name in OPTIONS if getattr(self, name) not in (None, (), {})]


@dataclass(slots=True)
class Reading:
    """The outcome of reading: utterances with ids and speakers as they are written there, and what was wrong."""

    utterances: list[Utterance] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


class Evidence(IntEnum):
    """The evidence by which a layout is recognized, the strongest first: VoicePrivacy's data are recordings of
    LibriSpeech and VCTK with lists, and any of them is a folder of folders."""

    LISTS = 0
    TABLE = 1
    NAMES = 2
    FOLDERS = 3


@dataclass(frozen=True, slots=True)
class Layout:
    """One way to lay out a corpus.

    `recognizes` looks at a file or folder without reading all of it. `understands` names options of `OPTIONS`.
    `has_lists` says that lists tell which file is whose, so that an anonymized copy may lie anywhere. A file whose name
    ends in one of `suffixes` is taken for it where the user says what its columns are called and nothing else fits.
    """

    recognizes: Callable[[Path], bool]
    read: Callable[[Path, ReadOptions], Reading]
    evidence: Evidence
    understands: frozenset[str] = frozenset()
    has_lists: bool = False
    suffixes: tuple[str, ...] = ()


_FORMATS = "veilmeter.data.formats"
LAYOUTS: Registry[Layout] = Registry(
    "layout",
    "veilmeter.layouts",
    {
        "folder": f"{_FORMATS}.folder:LAYOUT",
        "librispeech": f"{_FORMATS}.librispeech:LAYOUT",
        "vctk": f"{_FORMATS}.vctk:LAYOUT",
        "commonvoice": f"{_FORMATS}.commonvoice:LAYOUT",
        "kaldi": f"{_FORMATS}.kaldi_data:LAYOUT",
        "vpc": f"{_FORMATS}.vpc:LAYOUT",
        "csv": f"{_FORMATS}.table:LAYOUT",
        "jsonl": f"{_FORMATS}.json_lines:LAYOUT",
        "audiofolder": f"{_FORMATS}.audiofolder:LAYOUT",
        "dataset": f"{_FORMATS}.dataset:LAYOUT",
        "lhotse": f"{_FORMATS}.lhotse:LAYOUT",
        "spane": f"{_FORMATS}.spane:LAYOUT",
    },
    accepts=lambda thing: isinstance(thing, Layout),
)


class NotACorpus(InputError):
    """Nothing that any layout recognizes."""


def read(path: Path, name: str | None, options: ReadOptions) -> Corpus:
    """The corpus at a path in the named layout, or in the one that recognizes it."""
    _real_folder.cache_clear()  # links may have changed since the last corpus
    try:
        if not path.exists():
            raise InputError("there is no such file or folder", path=path)
        chosen = name or recognize(path, named_columns=bool(options.columns))
        layout = LAYOUTS[chosen]
        _refuse_useless(chosen, layout, options, path)
        reading = layout.read(path, options)
    except (OSError, ValueError) as error:  # rights, names too long for the system, null bytes
        raise _unreadable(error, path) from None
    base, list_name = (path, "") if path.is_dir() else (path.parent, path.name)
    variant = "/".join(filter(None, (list_name, options.part, options.suffix)))
    utterances = tuple(_choose_channel(clean_names(reading.utterances), options.channel))
    corpus = Corpus(base, chosen, utterances, tuple(reading.problems), variant)
    if not len(corpus):
        problems = reading.problems
        first = f"; the first of {len(problems)} problems: {problems[0]}" if problems else ""
        raise InputError(
            f"no usable utterance in the {chosen} layout{first}",
            path=path,
            fix=f"check the path, or name the layout with --layout {'|'.join(LAYOUTS)}",
        )
    return corpus


def recognize(path: Path, *, named_columns: bool = False) -> str:
    """The name of the layout, by what is there; with `named_columns` the user says what the columns of a table are."""
    try:
        fitting = _fitting(path)
    except (OSError, ValueError) as error:
        raise _unreadable(error, path) from None
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        choice = "|".join(fitting)
        raise InputError(f"this could be {' or '.join(fitting)}", path=path, fix=f"say which with --layout {choice}")
    if path.is_file() and named_columns:
        tables = [name for name, layout in LAYOUTS.items() if path.name.lower().endswith(layout.suffixes or ("\0",))]
        if tables:
            return tables[0]
    if path.is_file():
        raise NotACorpus(
            "this is not a corpus", path=path, fix="give a folder, or a CSV with the columns path, speaker"
        )
    kaldi = sorted(entry.name for entry in path.iterdir() if entry.is_dir() and LAYOUTS["kaldi"].recognizes(entry))
    if kaldi:
        listed = ", ".join(kaldi[:8]) + (" ..." if len(kaldi) > 8 else "")
        raise InputError(f"there are {len(kaldi)} Kaldi data folders here: {listed}", path=path, fix="give one of them")
    raise NotACorpus(
        "no corpus layout is recognized here",
        path=path,
        fix="give a folder with one subfolder per speaker, a CSV with the columns path, speaker, or --layout",
    )


def _fitting(path: Path) -> list[str]:
    """The names of the layouts that recognize the path by the most telling evidence."""
    by_evidence: dict[Evidence, list[tuple[str, Layout]]] = {}
    for name, layout in LAYOUTS.items():
        by_evidence.setdefault(layout.evidence, []).append((name, layout))
    denied: PermissionError | None = None
    for evidence in sorted(by_evidence):
        fitting = []
        for name, layout in by_evidence[evidence]:
            try:
                if layout.recognizes(path):
                    fitting.append(name)
            except PermissionError as error:  # one folder inside, which another layout lists as unreadable
                denied = error
        if fitting:
            return fitting
    if denied is not None:
        raise denied
    return []


def _refuse_useless(name: str, layout: Layout, options: ReadOptions, path: Path) -> None:
    for option in options.given:
        if option not in layout.understands:
            known = [OPTIONS[understood] for understood in OPTIONS if understood in layout.understands]
            raise InputError(
                f"{OPTIONS[option]} means nothing in the {name} layout",
                path=path,
                fix=f"it understands {', '.join(known)}" if known else "leave the option out",
            )


def clean_names(utterances: Iterable[Utterance]) -> Iterable[Utterance]:
    """Ids and speakers as trial lists can hold them. Two people whose names become one are refused, never merged."""
    written: dict[str, str] = {}
    for utterance in utterances:
        speaker = clean_id(utterance.speaker)
        first = written.setdefault(speaker, utterance.speaker)
        if first != utterance.speaker:
            raise InputError(
                f"the speakers {first!a} and {utterance.speaker!a} would both be called {speaker!r}",
                path=utterance.path,
                fix="rename one of them: in ids white space becomes _, and accents have one form",
            )
        yield replace(utterance, id=clean_id(utterance.id), speaker=speaker)


def _choose_channel(utterances: Iterable[Utterance], channel: str | None) -> Iterable[Utterance]:
    """With the channel that the user chose, where no list names one."""
    if channel is None:
        return utterances
    number = MIX if channel == "mix" else parse_index(channel)
    if number is None:
        raise InputError(f"no channel {channel[:40]!r}", fix="give a number from 0, or mix")
    return (u if u.channel is not None else replace(u, channel=number, of_several=True) for u in utterances)


def _unreadable(error: OSError | ValueError, path: Path) -> InputError:
    where = getattr(error, "filename", None) or path
    return InputError(f"the corpus can't be read: {getattr(error, 'strerror', None) or error}", path=where)


def locate(
    value: str, folder: Path, roots: Sequence[Path] = (), *, more: Sequence[Path] = (), absolute: bool = True
) -> Path | tuple[str, str]:
    """The regular file that `value` names, or the kind of what is wrong and the words for it.

    Relative paths are sought below `folder`, then below each of `more`.
    """
    confined = [_real(root) for root in (folder, *roots)] if roots else None
    if "\0" in value or not value:
        return "bad-line", "not a path"
    if os.path.isabs(value):
        if confined is None and not absolute and not inside(_real(value), [_real(folder)]):
            return "outside-root", "it leads out of its folder; give the folder with --root if you trust it"
        if not os.path.isfile(value):
            return "missing-audio", _absence(value)
        if confined is not None and not inside(_real(value), confined):
            return "outside-root", "it lies outside the folders given with --root"
        return Path(value)
    outside = False
    for base in (folder, *more):
        path = base / value
        if os.path.isfile(path):
            if inside(_real(path), confined or [_real(base)]):
                return path
            outside = True
    if outside or not inside(_real(folder / value), [_real(base) for base in (folder, *more)]):
        return "outside-root", "it leads out of its folder; give the folder with --root if you trust it"
    return "missing-audio", _absence(folder / value)


def _absence(path: str | Path) -> str:
    """Why there is no regular file: a folder, a device, a broken link or nothing."""
    try:
        check_input(path)
    except InputError as error:
        return error.what
    return "there is no such file"  # it was made just now


def _real(path: str | Path) -> str:
    """The path without links, as `os.path.realpath`; lists name many files of few folders."""
    folder, name = os.path.split(path)
    if name in ("", ".", ".."):
        return os.path.realpath(path)
    whole = os.path.join(_real_folder(folder), name)
    return os.path.realpath(whole) if os.path.islink(whole) else whole


@lru_cache(maxsize=4096)
def _real_folder(folder: str) -> str:
    return os.path.realpath(folder)


def inside(real: str, allowed: Sequence[str]) -> bool:
    """Whether a path without links lies below one of the folders (without links too)."""
    return any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in allowed)


SUFFIXES = frozenset(
    [".wav", ".flac", ".mp3", ".ogg", ".opus", ".oga", ".aif", ".aiff", ".aifc", ".au", ".snd", ".caf", ".w64", ".rf64",
     ".sph", ".nist"]
)  # fmt: skip
"""What libsndfile reads."""
MEDIA_SUFFIXES = frozenset(
    [".m4a", ".mp4", ".m4b", ".aac", ".wma", ".amr", ".awb", ".webm", ".mka", ".mkv", ".mov", ".3gp", ".3g2", ".avi",
     ".ac3", ".mp2", ".weba", ".wmv", ".spx", ".gsm", ".ape", ".wv"]
)  # fmt: skip
"""What PyAV reads where it is installed."""
_RAW = frozenset([".raw", ".pcm", ".ulaw", ".alaw", ".vox", ".shn", ".dss", ".ds2"])
_DEEPEST = 40
_FORMAT = "recordings of this kind can't be read here"


def media_installed() -> bool:
    """Whether PyAV is there, which reads the mp4 family."""
    return importlib.util.find_spec("av") is not None


@dataclass
class Walk:
    """Audio files below `root`, sorted by name, hidden ones left out; links are followed as long as they stay inside.

    `problems` fills while it is iterated over. With `names_only` nobody opens the files, and those behind links that
    lead out are given too.
    """

    root: Path
    roots: Sequence[Path] = ()
    problems: list[Problem] = field(default_factory=list)
    names_only: bool = False

    def __iter__(self) -> Iterator[Path]:
        self._allowed = [os.path.realpath(r) for r in (self.root, *self.roots)]
        self._media = media_installed()
        yield from self._below(self.root, (os.path.realpath(self.root),))

    def _below(self, folder: Path, trail: tuple[str, ...]) -> Iterator[Path]:
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self._say("unreadable-folder", f"the folder can't be read: {error.strerror}", folder)
            return
        for entry in entries:
            path = folder / entry.name
            if entry.name.startswith("."):
                continue
            try:
                is_folder = entry.is_dir()
            except OSError as error:
                self._say("symlink-loop", f"the link can't be followed: {error.strerror}", path)
                continue
            if is_folder:
                real = os.path.realpath(path) if entry.is_symlink() else os.path.join(trail[-1], entry.name)
                if real in trail or len(trail) > _DEEPEST:
                    self._say("symlink-loop", "the link leads back to a folder above it", path)
                elif entry.is_symlink() and not inside(real, self._allowed):
                    yield from self._outside(path)
                else:
                    yield from self._below(path, (*trail, real))
            elif self._takes(path, entry.is_symlink()):
                yield path

    def _takes(self, path: Path, is_link: bool) -> bool:
        """Whether a file is a recording that may be read; if it may not, that is reported."""
        suffix = path.suffix.lower()
        if suffix in _RAW or (suffix in MEDIA_SUFFIXES and not self._media):
            media = "" if suffix in _RAW else ", or run: pip install 'veilmeter[media]'"
            self._say("unread-format", _FORMAT, path, f"convert it to FLAC or WAV{media}")
            return False
        if suffix not in SUFFIXES and suffix not in MEDIA_SUFFIXES:
            return False
        if is_link and not os.path.exists(path):
            self._say("missing-audio", "the link leads nowhere", path)
            return False
        if is_link and not self.names_only and not inside(os.path.realpath(path), self._allowed):
            self._say_outside(path)
            return False
        return True

    def _outside(self, folder: Path) -> Iterator[Path]:
        """The content of a linked folder elsewhere: the names of the recordings in it, nothing deeper, or a problem."""
        if not self.names_only:
            self._say_outside(folder)
            return
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            return
        yield from (folder / name for name in names if Path(name).suffix.lower() in SUFFIXES | MEDIA_SUFFIXES)

    def _say_outside(self, path: Path) -> None:
        fix = "give the folder it leads to with --root if you trust it"
        self._say("outside-root", "the link leads out of the corpus", path, fix)

    def _say(self, kind: str, what: str, path: Path, fix: str = "") -> None:
        self.problems.append(Problem(kind, what, str(path), fix=fix))


def sample(root: Path, most: int = 64) -> list[Path]:
    """The names of the first few audio files, to recognize a layout by."""
    sampled: list[Path] = []
    for path in Walk(root, names_only=True):
        sampled.append(path)
        if len(sampled) == most:
            break
    return sampled


def named(root: Path, pattern: re.Pattern[str]) -> bool:
    """Whether recordings are named like this, as far as a sample shows, in a folder that no Kaldi list describes."""
    sampled = sample(root)
    return bool(sampled) and all(pattern.fullmatch(path.stem) for path in sampled) and not (root / "wav.scp").exists()


LONGEST_LINE = 1 << 20


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number, line) of every line that is not blank, without its end."""
    try:
        with open_input(path, most=LARGEST_LIST) as handle:
            number = 0
            while line := handle.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise InputError("the line has more than a million bytes", path=path, line=number)
                try:
                    text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError:
                    fix = "convert the file, e.g. with iconv"
                    raise InputError("this line is not UTF-8 text", path=path, line=number, fix=fix) from None
                if text.strip():
                    yield number, text.rstrip("\r\n")
    except OSError as error:
        raise InputError(f"the file can't be read: {error.strerror}", path=path) from None


def read_texts(path: Path) -> dict[str, str]:
    """Utterance to its words, from lines of an id and words (Kaldi's `text`, LibriSpeech's `.trans.txt`).

    Empty where the file is missing. An id without words has no known text; if an id occurs twice, the first
    counts.
    """
    texts: dict[str, str] = {}
    if is_present(path):
        for _, line in read_lines(path):
            name, *words = line.split()
            if words:
                texts.setdefault(name, " ".join(words))
    return texts
