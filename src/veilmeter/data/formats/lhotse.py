"""lhotse manifests: `recordings` and `supervisions` beside each other, or `cuts`, as JSON Lines, plain or gzipped.

A supervision is an utterance: who speaks, when, on which channel. Its start counts from the recording, or in a cut from
the cut. What would change the sound before it is heard (transforms, mixed tracks, commands, archives) is refused, line
by line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError, Problem
from veilmeter.data.corpus import Utterance, gender_code
from veilmeter.data.formats.json_lines import as_text, first_object, read_objects
from veilmeter.data.formats.table import parse_seconds
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions, locate

_SUFFIXES = (".jsonl", ".jsonl.gz")


def recognizes(path: Path) -> bool:
    if path.is_file():
        return path.name.endswith(_SUFFIXES) and _kind(path) == "cuts"
    return path.is_dir() and bool(_manifests(path, "supervisions") or _manifests(path, "cuts"))


def read(path: Path, options: ReadOptions) -> Reading:
    """The cuts of a file, or of a folder its supervisions with their recordings (else its cuts); `part` names one of
    several, as in `librispeech_supervisions_test-clean.jsonl.gz`."""
    if path.is_file():
        return _Manifest(path, options).cuts()
    for kind in ("supervisions", "cuts"):
        files = [file for file in _manifests(path, kind) if options.part is None or options.part in file.name]
        if len(files) > 1:
            names = ", ".join(file.name for file in files[:5])
            raise InputError(f"there are several manifests: {names}", path=path, fix="say which with --part")
        if files and kind == "cuts":
            return _Manifest(files[0], options).cuts()
        if files:
            recordings = files[0].with_name(files[0].name.replace("supervisions", "recordings"))
            if not recordings.is_file():
                raise InputError("the recordings of these supervisions are missing", path=recordings)
            return _Manifest(files[0], options).supervisions(recordings)
    raise InputError(f"no manifest {options.part!r}", path=path)


class _Manifest:
    """Reads one manifest; what can't be used goes to the problems with its line."""

    def __init__(self, file: Path, options: ReadOptions) -> None:
        self.file, self.options = file, options
        self.reading = Reading()

    def supervisions(self, recordings: Path) -> Reading:
        known = {as_text(entry.get("id")): entry for _, entry in read_objects(recordings)}
        for number, entry in read_objects(self.file):
            recording = known.get(as_text(entry.get("recording_id")))
            if recording is None:
                self._refuse(number, "missing-audio", f"its recording {entry.get('recording_id')!r} is not listed")
            else:
                self._add(number, entry, recording, 0)
        return self.reading

    def cuts(self) -> Reading:
        for number, cut in read_objects(self.file):
            recording = cut.get("recording")
            if cut.get("type") == "MixedCut" or not isinstance(recording, dict):
                self._refuse(number, "not-used", "a cut that is mixed from several, or has no recording, is not read")
                continue
            supervisions = _objects(cut.get("supervisions"))
            for supervision in supervisions:
                channel = supervision.get("channel", cut.get("channel", 0))
                self._add(number, {**supervision, "channel": channel}, recording, cut.get("start", 0))
            if not supervisions:
                self._refuse(number, "no-speaker", f"the cut {cut.get('id')!r} has no supervision that says who speaks")
        return self.reading

    def _add(self, number: int, entry: Mapping[str, Any], recording: Mapping[str, Any], offset: Any) -> None:
        try:
            self.reading.utterances.append(self._utterance(entry, recording, offset))
        except _Unusable as error:
            self._refuse(number, error.kind, str(error))
        except (ValueError, TypeError, OverflowError) as error:
            self._refuse(number, "bad-line", f"not a supervision: {error}")

    def _utterance(self, entry: Mapping[str, Any], recording: Mapping[str, Any], offset: Any) -> Utterance:
        name, speaker = as_text(entry.get("id")), as_text(entry.get("speaker"))
        if not name or not speaker:
            raise _Unusable("no-speaker", "an id or a speaker is missing")
        if recording.get("transforms"):
            raise _Unusable("not-used", "its recording is to be transformed first; save it as audio")
        channel = entry.get("channel", 0)
        if isinstance(channel, list):
            if len(channel) != 1:
                raise _Unusable("channels", f"it has the channels {channel}: a voice has one")
            channel = channel[0]
        path, inner, several = self._source(recording, int(channel))
        start = parse_seconds(offset, "start") + parse_seconds(entry.get("start", 0), "start")
        end = start + parse_seconds(entry.get("duration"), "duration")
        if start < 0 or end <= start:
            raise _Unusable("bad-line", f"not a stretch of a recording: {start:g} to {end:g} s")
        total = parse_seconds(recording.get("duration", 0), "duration")
        whole = start == 0 and total > 0 and abs(end - total) < 0.01
        custom = entry.get("custom")
        attributes = {key: as_text(item) for key, item in (custom if isinstance(custom, dict) else {}).items()}
        if language := as_text(entry.get("language")):
            attributes["language"] = language
        return Utterance(
            name, speaker, path, gender_code(as_text(entry.get("gender"))), as_text(entry.get("session")),
            {key: value for key, value in attributes.items() if value}, as_text(entry.get("text")),
            start, None if whole else end, inner if several else None,
        )  # fmt: skip

    def _source(self, recording: Mapping[str, Any], channel: int) -> tuple[Path, int, bool]:
        """The file that holds a channel, which of its channels that is, and whether it has several."""
        for source in _objects(recording.get("sources")):
            channels = source.get("channels") or [0]
            if not isinstance(channels, list):
                raise _Unusable("bad-line", f"not a list of channels: {channels!r}")
            if channel not in channels:
                continue
            if source.get("type") != "file":
                raise _Unusable("not-used", f"its audio is a {source.get('type')!r}, and only files are read")
            place = locate(as_text(source.get("source")), self.file.parent, self.options.roots, more=[Path.cwd()])
            if not isinstance(place, Path):
                raise _Unusable(place[0], f"{source.get('source')}: {place[1]}")
            return place, channels.index(channel), len(channels) > 1
        raise _Unusable("channels", f"its recording has no channel {channel}")

    def _refuse(self, number: int, kind: str, what: str) -> None:
        self.reading.problems.append(Problem(kind, what, str(self.file), number))


class _Unusable(Exception):
    def __init__(self, kind: str, what: str) -> None:
        super().__init__(what)
        self.kind = kind


def _objects(value: Any) -> list[dict[str, Any]]:
    """The objects of a list; none where it is something else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _manifests(folder: Path, kind: str) -> list[Path]:
    return sorted(path for path in _files(folder) if kind in path.name and _kind(path) == kind)


def _files(folder: Path) -> Iterator[Path]:
    return (path for path in folder.iterdir() if path.is_file() and path.name.endswith(_SUFFIXES))


def _kind(path: Path) -> str:
    """The kind of a manifest by its first line, as lhotse guesses it."""
    first = first_object(path)
    if str(first.get("type", "")).endswith("Cut"):
        return "cuts"
    return "supervisions" if {"recording_id", "duration", "start"} <= first.keys() else ""


LAYOUT = Layout(recognizes, read, Evidence.LISTS, frozenset({"part", "roots"}), has_lists=True)
