"""A Kaldi data folder: `wav.scp`, `utt2spk`, and what else is there: `segments`, `spk2gender`, `text`, `utt2emo`.

A `wav.scp` may hold shell commands (`sph2pipe ... |`): Kaldi runs them, we never do. The one command that says no more
than which file is meant, `flac -c -d -s FILE |`, is read as that file. Where paths may lead: see `locate`; relative
ones are sought below the data folder, below the folders above it, and below the working directory.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from veilmeter.core.errors import InputError, Problem
from veilmeter.core.files import is_present
from veilmeter.data.corpus import Utterance, gender_code
from veilmeter.data.formats.table import channel_number, parse_seconds
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions, Walk, locate, read_lines, read_texts
from veilmeter.data.matching import IdMatch, match_ids

_PIPE = "this is a shell command, which is never run"
_PIPE_FIX = "run it yourself to make audio files and list these in wav.scp"
_FLAC = re.compile(r"flac(?:\s+-(?:[cds]+|-stdout|-decode|-silent))+\s+(?P<path>\S+)\s*\|")
# Maps of a data folder that say something about people or utterances, and what the attribute is called.
_ATTRIBUTES = {"utt2emo": "emotion", "utt2lang": "language", "spk2fold": "fold", "spk2lang": "language",
               "spk2age": "age", "spk2accent": "accent", "utt2session": "session"}  # fmt: skip

_SIDES = {"A": 0, "B": 1, "1": 0, "2": 1}


def recognizes(root: Path) -> bool:
    return (root / "wav.scp").is_file() or ((root / "utt2spk").is_file() and (root / "wav").is_dir())


def read(root: Path, options: ReadOptions) -> Reading:
    return read_folder(root, options.roots)


@dataclass(slots=True)
class _Folder:
    """A data folder being read: where its audio and its lists lie, and what was wrong so far."""

    audio: Path
    lists: Path
    roots: Sequence[Path]
    problems: list[Problem] = field(default_factory=list)
    listed: set[str] = field(default_factory=set)  # every id of wav.scp, also of lines that can't be used

    def table(self, name: str, *, needed: bool = False) -> dict[str, str]:
        path = self.lists / name
        return read_table(path, self.problems) if needed or is_present(path) else {}


def read_folder(root: Path, roots: Sequence[Path] = (), *, lists: Path | None = None, use_scp: bool = True) -> Reading:
    """A data folder; `lists` is the folder with its lists where that is another one, as that of the original speech is
    for a folder that holds nothing but `wav/`. Without `use_scp` the audio is what lies in `wav/`."""
    folder = _Folder(root, lists or root, roots)
    scp = root / "wav.scp"
    audio = _read_scp(folder, scp) if use_scp and scp.is_file() else _read_wav(folder)
    speakers = folder.table("utt2spk", needed=True)
    parts = _read_parts(folder, audio, speakers)
    matched = match_ids(speakers, parts)
    folder.problems += [
        Problem("other-ids", what, str(folder.lists / "utt2spk"), fatal=False) for what in _other_ids(matched)
    ]
    utterances = _describe(folder, parts, {heard: name for name, heard in matched.partner.items()}, speakers)
    unheard = [name for name in speakers if name not in matched.partner and name not in folder.listed]
    for name in sorted(unheard):
        folder.problems.append(Problem("missing-audio", f"{name!r} has no audio", str(folder.lists / "utt2spk")))
    return Reading(utterances, folder.problems)


def _other_ids(matched: IdMatch) -> list[str]:
    differing = [f"{mine!r} and {other!r}" for mine, other in matched.partner.items() if mine != other]
    what = []
    if differing:
        what.append(
            f"{len(differing)} ids are written differently in wav.scp, such as {differing[0]}; they were matched"
        )
    if matched.ambiguous:
        what.append(
            f"{len(matched.ambiguous)} ids could match several in wav.scp and were left out, such as "
            f"{matched.ambiguous[0]!r}"
        )
    return what


def _describe(
    folder: _Folder, parts: Mapping[str, Utterance], name_of: Mapping[str, str], speakers: Mapping[str, str]
) -> list[Utterance]:
    """The utterances with what the lists say about them. `name_of` is what the lists call each of the parts."""
    genders = folder.table("spk2gender") or folder.table("spk2sex")
    attributes = {name: folder.table(name) for name in _ATTRIBUTES if is_present(folder.lists / name)}
    texts = read_texts(folder.lists / "text")
    described = []
    for heard, part in parts.items():
        name = name_of.get(heard)
        if name is None:
            where = str(folder.lists / "utt2spk")
            folder.problems.append(Problem("no-speaker", f"{heard!r} is not in utt2spk", where))
            continue
        speaker = speakers[name]
        of_utterance = {
            _ATTRIBUTES[file]: table[key]
            for file, table in attributes.items()
            if (key := speaker if file.startswith("spk") else name) in table
        }
        session = of_utterance.pop("session", "")
        described.append(
            replace(
                part,
                speaker=speaker,
                gender=gender_code(genders.get(speaker, "")),
                session=session,
                attributes=of_utterance,
                text=texts.get(name, ""),
            )
        )
    return described


def read_table(path: Path, problems: list[Problem]) -> dict[str, str]:
    """`key value` lines; of a key that occurs twice, the first."""
    if not path.is_file():
        raise InputError("the list is missing", path=path)
    table: dict[str, str] = {}
    for number, line in read_lines(path):
        fields = line.split()
        if len(fields) != 2:
            problems.append(Problem("bad-line", f"2 fields are needed, not {len(fields)}", str(path), number))
        elif fields[0] in table:
            problems.append(Problem("duplicate-id", f"{fields[0]!r} occurs twice", str(path), number))
        else:
            table[fields[0]] = fields[1]
    return table


def _read_scp(folder: _Folder, scp: Path) -> dict[str, Path]:
    """Utterance or recording to audio file."""
    paths: dict[str, Path] = {}
    for number, line in read_lines(scp):
        fields = line.strip().split(None, 1)
        name, value = fields[0], fields[1].strip() if len(fields) > 1 else ""
        folder.listed.add(name)
        if decoded := _FLAC.fullmatch(value):
            value = decoded["path"]
        if not value:
            folder.problems.append(Problem("bad-line", "the path is missing", str(scp), number))
        elif value.endswith("|") or value.startswith("|"):
            folder.problems.append(Problem("pipe", _PIPE, str(scp), number, _PIPE_FIX))
        elif name in paths:
            folder.problems.append(Problem("duplicate-id", f"{name!r} occurs twice", str(scp), number))
        else:
            path = locate(value, folder.audio, folder.roots, more=_above(folder.audio))
            if isinstance(path, Path):
                paths[name] = path
            else:
                kind, what = path
                folder.problems.append(Problem(kind, f"{value}: {what}", str(scp), number))
    return paths


def _above(root: Path) -> list[Path]:
    """Where Kaldi's recipes are run from, so that relative paths start there."""
    return [*list(Path(os.path.abspath(root)).parents)[:3], Path.cwd()]


def _read_wav(folder: _Folder) -> dict[str, Path]:
    """Newer VoicePrivacy folders have no wav.scp: the audio is `wav/<utterance>.wav`, or one folder deeper."""
    walk = Walk(folder.audio / "wav", [folder.audio, *folder.roots])
    paths: dict[str, Path] = {}
    for path in walk:
        first = paths.setdefault(path.stem, path)
        if first != path:
            what = f"its name is that of {first} too; that one is used"
            walk.problems.append(Problem("duplicate-id", what, str(path), fix="rename or remove one"))
    folder.problems += walk.problems
    return paths


def _read_parts(folder: _Folder, audio: Mapping[str, Path], speakers: Mapping[str, str]) -> dict[str, Utterance]:
    """Utterances by id, still without a speaker: whole files, or with `segments` stretches of recordings.

    A `segments` that was copied beside one file per utterance is left aside: the keys of wav.scp decide.
    """
    channels = _read_channels(folder, audio)
    whole = {name: Utterance(name, "", path, channel=channels.get(name)) for name, path in audio.items()}
    segments = folder.lists / "segments"
    if not is_present(segments):
        return whole
    if len(match_ids(speakers, audio).partner) * 2 > len(speakers):
        what = "the audio is one file per utterance: segments is not used"
        folder.problems.append(Problem("not-used", what, str(segments), fatal=False))
        return whole
    parts: dict[str, Utterance] = {}
    for number, line in read_lines(segments):
        fields = line.split()
        try:
            part = _segment(fields, whole)
        except ValueError as error:
            kind = "missing-audio" if len(fields) > 1 and fields[1] not in audio else "bad-line"
            folder.problems.append(Problem(kind, str(error), str(segments), number))
            folder.listed.update(fields[:1])
            continue
        if part.id in parts:
            folder.problems.append(Problem("duplicate-id", f"{part.id!r} occurs twice", str(segments), number))
        else:
            parts[part.id] = part
    return parts


def _segment(fields: Sequence[str], recordings: Mapping[str, Utterance]) -> Utterance:
    """`utterance recording start end [channel]`; an end of -1 is that of the recording."""
    if len(fields) not in (4, 5):
        raise ValueError(f"4 or 5 fields are needed, not {len(fields)}")
    whole = recordings.get(fields[1])
    if whole is None:
        raise ValueError(f"the recording {fields[1]!r} is not in wav.scp")
    start, end = parse_seconds(fields[2], "start"), parse_seconds(fields[3], "end")
    if start < 0 or not (end == -1 or start < end):
        raise ValueError(f"not a stretch of a recording: {start:g} to {end:g} s")
    channel = channel_number(fields[4]) if len(fields) == 5 else whole.channel
    return replace(whole, id=fields[0], start=start, end=None if end == -1 else end, channel=channel)


def _read_channels(folder: _Folder, audio: Mapping[str, Path]) -> dict[str, int]:
    """The channel of each recording from `reco2file_and_channel`: `sw02001-A sw02001 A`, or 1 and 2.

    It tells the sides of the original call, so it counts only where the audio is still that call: if two recordings are
    one file, or the file has the call's name and not the recording's.
    """
    path = folder.lists / "reco2file_and_channel"
    if not is_present(path):
        return {}
    shared = Counter(audio.values())
    channels: dict[str, int] = {}
    for number, line in read_lines(path):
        fields = line.split()
        side = _SIDES.get(fields[2].upper()) if len(fields) == 3 else None
        if side is None:
            what = "a recording, a file and a channel (A, B, 1 or 2) are needed"
            folder.problems.append(Problem("bad-line", what, str(path), number))
        elif (file := audio.get(fields[0])) is not None and (
            shared[file] > 1 or (file.stem == fields[1] and file.stem != fields[0])
        ):
            channels[fields[0]] = side
    return channels


LAYOUT = Layout(recognizes, read, Evidence.LISTS, frozenset({"roots"}), has_lists=True)
