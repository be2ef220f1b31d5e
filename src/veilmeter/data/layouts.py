"""Corpus layouts: how recordings, speakers and lists lie on disk, one file per layout in `veilmeter.data.formats`.

A layout is a `Layout`: a function that recognizes a path, one that reads it, and which options the latter understands.
Other packages add theirs under the entry point group `veilmeter.layouts`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from pathlib import Path

from veilmeter.core.errors import InputError, Problem
from veilmeter.core.registry import Registry
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
    """What a layout is recognized by, the most telling first: VoicePrivacy's data are recordings of LibriSpeech and
    VCTK with lists, and any of them is a folder of folders."""

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
        "csv": f"{_FORMATS}.csv_list:LAYOUT",
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
    for evidence in sorted(by_evidence):
        if fitting := [name for name, layout in by_evidence[evidence] if layout.recognizes(path)]:
            return fitting
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
    if channel != "mix" and not channel.isdecimal():
        raise InputError(f"no channel {channel!r}", fix="give a number from 0, or mix")
    number = MIX if channel == "mix" else int(channel)
    return (u if u.channel is not None else replace(u, channel=number, of_several=True) for u in utterances)


def _unreadable(error: Exception, path: Path) -> InputError:
    return InputError(f"the corpus can't be read: {getattr(error, 'strerror', None) or error}", path=path)
