"""Common Voice: `<language>/clips/*.mp3` with `validated.tsv`, `train.tsv`, `dev.tsv`, `test.tsv`, without quoting."""

from __future__ import annotations

import os
from pathlib import Path

from veilmeter.core.errors import InputError, Problem
from veilmeter.data.corpus import Utterance, gender_code
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions, read_lines

_WHOLE = "validated"
_FEW = 20
_PARTS = ("train", "dev", "test")
_ATTRIBUTES = {"age": "age", "accents": "accent", "accent": "accent", "locale": "locale", "variant": "variant"}


def recognizes(root: Path) -> bool:
    return root.is_dir() and bool(_languages(root))


def read(root: Path, options: ReadOptions) -> Reading:
    """`part` is the list to read (`test`); by default `validated`, or train, dev and test where that is missing."""
    languages = _languages(root)
    if not languages:
        raise InputError("no folder clips beside lists *.tsv", path=root)
    if len(languages) > 1:
        names = ", ".join(folder.name for folder in languages)
        raise InputError(f"there are several languages: {names}", path=root, fix="give the folder of one of them")
    folder = languages[0]
    if options.part is not None:
        lists = [folder / f"{Path(options.part).name}.tsv"]
        if not lists[0].is_file():
            raise InputError(f"no list of the part {options.part!r}", path=lists[0])
    else:
        whole = folder / f"{_WHOLE}.tsv"
        lists = [whole] if whole.is_file() else [p for n in _PARTS if (p := folder / f"{n}.tsv").is_file()]
    utterances: list[Utterance] = []
    problems: list[Problem] = []
    for file in lists:
        _read_list(file, folder / "clips", utterances, problems)
    return Reading(utterances, problems)


def _read_list(file: Path, clips: Path, utterances: list[Utterance], problems: list[Problem]) -> None:
    lines = read_lines(file)
    _, first = next(lines, (0, ""))
    columns = first.split("\t")
    if "client_id" not in columns or "path" not in columns:
        raise InputError("the list has no columns client_id and path", path=file, line=1)
    present = _names(clips)
    for number, line in lines:
        row = dict(zip(columns, line.split("\t"), strict=False))
        speaker, name = row.get("client_id", ""), row.get("path", "")
        if not speaker or not name:
            problems.append(Problem("bad-line", "a speaker or a path is missing", str(file), number))
            continue
        if name not in present and name + ".mp3" in present:  # the earliest releases leave the suffix away
            name += ".mp3"
        if name not in present:  # a name with a slash never is: the clips lie in one folder
            problems.append(Problem("missing-audio", f"{name!r} is not in the folder clips", str(file), number))
            continue
        attributes = {new: row[old] for old, new in _ATTRIBUTES.items() if row.get(old)}
        utterances.append(
            Utterance(
                Path(name).stem,
                speaker,
                clips / name,
                gender_code(row.get("gender", "")),
                "",
                {**attributes, "part": file.stem},
                text=row.get("sentence", ""),
            )
        )


def _names(clips: Path) -> set[str]:
    """The regular files and the links that stay in the folder."""
    real = os.path.realpath(clips)
    with os.scandir(clips) as entries:
        return {
            entry.name
            for entry in entries
            if not entry.is_symlink() or os.path.dirname(os.path.realpath(entry.path)) == real
        }


def _languages(root: Path) -> list[Path]:
    """The folder itself, or those in it, that hold clips and a list of them."""

    def has_clips(folder: Path) -> bool:
        return (folder / "clips").is_dir() and any((folder / f"{name}.tsv").is_file() for name in (_WHOLE, *_PARTS))

    if has_clips(root):
        return [root]
    inner = sorted(folder for folder in root.iterdir() if folder.is_dir())
    languages = [folder for folder in inner if has_clips(folder)]
    if not languages and len(inner) <= _FEW:  # the archive's own folder: cv-corpus-17.0-2024-03-15/<language>
        languages = sorted(
            deeper for folder in inner for deeper in folder.iterdir() if deeper.is_dir() and has_clips(deeper)
        )
    return languages


LAYOUT = Layout(recognizes, read, Evidence.LISTS, frozenset({"part"}))
