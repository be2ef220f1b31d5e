"""The hub's audiofolder: `metadata.csv` or `metadata.jsonl` beside the audio, with `file_name` and `speaker_id`.

There is one for the whole, or one per split (`train/metadata.csv`).
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from veilmeter.core.errors import InputError
from veilmeter.data.formats import json_lines, table
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions

_NAMES = ("metadata.csv", "metadata.jsonl")


def recognizes(path: Path) -> bool:
    return path.is_dir() and bool(_lists(path))


def read(path: Path, options: ReadOptions) -> Reading:
    """All splits, or the one that `part` names. Ids start with the split where there are several."""
    lists = _lists(path)
    if options.part is not None:
        lists = [file for file in lists if file.parent.name == options.part and file.parent != path]
        if not lists:
            raise InputError(f"no split {options.part!r} with metadata", path=path)
    if not lists:
        raise InputError("no metadata.csv or metadata.jsonl in this folder", path=path)
    reading = Reading()
    own = replace(options, part=None)
    for file in lists:
        reader = table.read if file.suffix == ".csv" else json_lines.read_objects_as_rows
        listed = reader(file, own)
        split = "" if file.parent == path else file.parent.name
        prefix = f"{split}/" if split and len(lists) > 1 else ""
        about = {"part": split} if split else {}
        reading.utterances += [
            replace(u, id=prefix + u.id, attributes={**u.attributes, **about}) for u in listed.utterances
        ]
        reading.problems += listed.problems
    return reading


def _lists(folder: Path) -> list[Path]:
    """The metadata of the folder itself, or else of the folders in it."""
    own = [folder / name for name in _NAMES if _fits(folder / name)]
    if own:
        return own[:1]
    inner = sorted(entry for entry in folder.iterdir() if entry.is_dir())
    return [file for split in inner for file in [split / name for name in _NAMES if _fits(split / name)][:1]]


def _fits(file: Path) -> bool:
    if not file.is_file():
        return False
    return table.is_list(file) if file.suffix == ".csv" else json_lines.recognizes(file)


LAYOUT = Layout(recognizes, read, Evidence.LISTS, frozenset({"part", "roots", "columns"}), has_lists=True)
