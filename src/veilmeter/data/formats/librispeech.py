"""LibriSpeech: `<part>/<speaker>/<chapter>/<speaker>-<chapter>-<n>.flac`, or the same files in fewer folders.

The session is the chapter: one reader, one book, one sitting or a few. `<speaker>-<chapter>.trans.txt` has its texts.
"""

from __future__ import annotations

import re
from pathlib import Path

from veilmeter.core.errors import InputError, Problem
from veilmeter.core.files import real_path
from veilmeter.data.corpus import Utterance, gender_code
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions, Walk, named, read_lines, read_texts

_NAME = re.compile(r"(\d+)-(\d+)-\d+")
PARTS = re.compile(r"(train|dev|test)-(clean|other)(-\d+)?")


def recognizes(root: Path) -> bool:
    return root.is_dir() and named(root, _NAME)


def read(root: Path, options: ReadOptions) -> Reading:
    base = root if options.part is None else root / options.part
    if not base.is_dir():
        raise InputError(f"no part {options.part!r}", path=root)
    walk = Walk(base, [root, *options.roots])
    genders = read_genders(root)
    texts: dict[Path, dict[str, str]] = {}
    utterances = []
    for path in walk:
        name = _NAME.fullmatch(path.stem)
        if name is None:
            what = "its name is not <speaker>-<chapter>-<number>"
            walk.problems.append(Problem("no-speaker", what, str(path)))
            continue
        speaker, chapter = name.groups()
        of_part = next((p for p in path.relative_to(root.parent).parts[:-1] if PARTS.fullmatch(p)), "")
        attributes = {"part": of_part} if of_part else {}
        session = f"{speaker}-{chapter}"
        transcripts = path.with_name(f"{session}.trans.txt")
        if transcripts not in texts:
            texts[transcripts] = read_texts(transcripts)
        text = texts[transcripts].get(path.stem, "")
        utterances.append(Utterance(path.stem, speaker, path, genders.get(speaker, ""), session, attributes, text))
    return Reading(utterances, walk.problems)


def read_genders(root: Path) -> dict[str, str]:
    """Speaker to gender from SPEAKERS.TXT in the folder, in its `LibriSpeech/`, or above it where the
    corpus keeps it."""
    top = real_path(root)
    below = sorted(folder for folder in top.iterdir() if folder.is_dir()) if top.is_dir() else []
    for folder in (top, *below, top.parent, top.parent.parent):
        file = folder / "SPEAKERS.TXT"
        if file.is_file():
            genders = {}
            for _, line in read_lines(file):
                if not line.startswith(";"):
                    fields = [field.strip() for field in line.split("|")]
                    if len(fields) >= 2:
                        genders[fields[0]] = gender_code(fields[1])
            return genders
    return {}


LAYOUT = Layout(recognizes, read, Evidence.NAMES, frozenset({"part", "roots"}))
