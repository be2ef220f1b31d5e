"""VCTK: `wav48_silence_trimmed/p226/p226_001_mic2.flac` or `wav48/p226/p226_001.wav`, with `speaker-info.txt`.

Where both microphones were kept, the second is used (the first has low-frequency noise), or `part="mic1"`.
"""

from __future__ import annotations

import re
from pathlib import Path

from veilmeter.core.errors import InputError, Problem
from veilmeter.core.files import real_path
from veilmeter.data.corpus import Utterance, gender_code
from veilmeter.data.layouts import Evidence, Layout, Reading, ReadOptions, Walk, named, read_lines

_NAME = re.compile(r"([ps]\d+)_(\d+)(?:_(mic[12]))?")


def recognizes(root: Path) -> bool:
    return root.is_dir() and named(root, _NAME)


def read(root: Path, options: ReadOptions) -> Reading:
    part = options.part
    if part not in (None, "mic1", "mic2"):
        raise InputError(f"VCTK has no part {part!r}", path=root, fix="choose mic1 or mic2")
    walk = Walk(root, options.roots)
    chosen: dict[tuple[str, str], tuple[Path, str]] = {}
    for path in walk:
        name = _NAME.fullmatch(path.stem)
        if name is None:
            walk.problems.append(Problem("no-speaker", "its name is not <speaker>_<number>", str(path)))
            continue
        speaker, number, microphone = name.groups()
        known = chosen.get((speaker, number))
        # Some speakers have only one microphone: then that one, whatever was asked for.
        if known is None or (microphone == (part or "mic2") and known[1] != microphone):
            chosen[speaker, number] = path, microphone or ""
    about = read_speakers(root)
    folder = _text_folder(root)
    utterances = []
    for (speaker, number), (path, microphone) in chosen.items():
        gender, attributes = about.get(speaker, ("", {}))
        more = {"microphone": microphone} if microphone else {}
        text = _read_text(folder / speaker / f"{speaker}_{number}.txt") if folder else ""
        utterances.append(Utterance(path.stem, speaker, path, gender, "", {**attributes, **more}, text))
    return Reading(utterances, walk.problems)


def _text_folder(root: Path) -> Path | None:
    """`txt/`, beside the folder of recordings or in the corpus's own."""
    top = real_path(root)
    return next((folder for base in (top, top.parent) if (folder := base / "txt").is_dir()), None)


def _read_text(path: Path) -> str:
    return " ".join(line.strip() for _, line in read_lines(path)) if path.is_file() else ""


def read_speakers(root: Path) -> dict[str, tuple[str, dict[str, str]]]:
    """Speaker to gender, age and accent, from `speaker-info.txt` (ID AGE GENDER ACCENTS REGION COMMENTS)."""
    top = real_path(root)
    for folder in (top, top.parent):
        file = folder / "speaker-info.txt"
        if file.is_file():
            speakers = {}
            for _, line in read_lines(file):
                fields = line.split()
                if len(fields) >= 3 and fields[0] != "ID":
                    # Release 0.80 leaves the p away.
                    speaker = "p" + fields[0] if fields[0].isdigit() else fields[0]
                    accent = {"accent": fields[3]} if len(fields) > 3 else {}
                    speakers[speaker] = gender_code(fields[2]), {"age": fields[1], **accent}
            return speakers
    return {}


LAYOUT = Layout(recognizes, read, Evidence.NAMES, frozenset({"part", "roots"}))
