"""A Kaldi data folder: `wav.scp`, `utt2spk`, `spk2gender`, and where there are such `text`, `utt2emo`, `utt2lang`.

A `wav.scp` may hold shell commands (`sph2pipe ... |`): Kaldi runs them, we never do. Paths are taken only if they lead
to a regular file. Absolute ones are what Kaldi's recipes write, so they may lead anywhere, unless `roots` narrows it;
relative ones are sought below the data folder, below the folders above it, and below the working directory, and may
not leave these.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from veilmeter.core.errors import InputError, Problem
from veilmeter.data.corpus import Utterance, clean_id, gender_code
from veilmeter.data.formats.text_lines import read_lines, read_texts
from veilmeter.data.formats.walk import Walk, inside
from veilmeter.speech.audio import SUFFIXES

_LABELS = {"utt2emo": "emotion", "utt2lang": "language"}  # files that say something of every utterance
_PIPE = "this is a shell command, which is never run"
_PIPE_FIX = "run it yourself to make audio files and list these in wav.scp"


def recognise(root: Path) -> bool:
    return (root / "wav.scp").is_file() or ((root / "utt2spk").is_file() and (root / "wav").is_dir())


def read(
    root: Path, *, roots: Sequence[Path] = (), part: str | None = None, suffix: str | None = None
) -> tuple[list[Utterance], list[Problem]]:
    problems: list[Problem] = []
    segments = root / "segments"
    if segments.is_file():
        raise InputError(
            "segments of longer recordings are not supported",
            path=segments,
            fix="cut them with Kaldi's extract-segments or utils/data/extract_wav_segments_data_dir.sh",
        )
    scp = root / "wav.scp"
    listed: set[str] = set()
    paths = _read_scp(scp, root, roots, problems, listed) if scp.is_file() else _read_folder(root, roots, problems)
    speakers = read_table(root / "utt2spk", problems)
    genders_file = next((f for name in ("spk2gender", "spk2sex") if (f := root / name).is_file()), None)
    genders = read_table(genders_file, problems) if genders_file else {}
    texts = read_texts(root / "text")
    labels = {name: read_texts(root / file) for file, name in _LABELS.items()}
    utterances = []
    for utterance, path in paths.items():
        speaker = speakers.get(utterance)
        if speaker is None:
            problems.append(Problem("no-speaker", f"{utterance!r} is not in utt2spk", str(root / "utt2spk")))
            continue
        gender = gender_code(genders.get(speaker, ""))
        attributes = {name: value for name, table in labels.items() if (value := table.get(utterance))}
        utterances.append(
            Utterance(clean_id(utterance), clean_id(speaker), path, gender, "", attributes, texts.get(utterance, ""))
        )
    for utterance in sorted(speakers.keys() - paths.keys() - listed):
        problems.append(Problem("missing-audio", f"{utterance!r} has no audio", str(root / "utt2spk")))
    return utterances, problems


def read_table(path: Path, problems: list[Problem]) -> dict[str, str]:
    """`key value` lines; of a key that is there twice, the first."""
    if not path.is_file():
        raise InputError("the list is missing", path=path)
    table: dict[str, str] = {}
    for number, line in read_lines(path):
        fields = line.split()
        if len(fields) != 2:
            problems.append(Problem("bad-line", f"2 fields are needed, not {len(fields)}", str(path), number))
        elif fields[0] in table:
            problems.append(Problem("duplicate-id", f"{fields[0]!r} is there twice", str(path), number))
        else:
            table[fields[0]] = fields[1]
    return table


def _read_scp(
    scp: Path, root: Path, roots: Sequence[Path], problems: list[Problem], listed: set[str]
) -> dict[str, Path]:
    """Utterance to audio file; `listed` gets every id, also of lines that can't be used."""
    found: dict[str, Path] = {}
    for number, line in read_lines(scp):
        utterance, _, value = line.strip().partition(" ")
        if "\t" in utterance:
            utterance, _, value = line.strip().partition("\t")
        value = value.strip()
        listed.add(utterance)
        if not value:
            problems.append(Problem("bad-line", "the path is missing", str(scp), number))
        elif value.endswith("|") or value.startswith("|"):
            problems.append(Problem("pipe", _PIPE, str(scp), number, _PIPE_FIX))
        elif utterance in found:
            problems.append(Problem("duplicate-id", f"{utterance!r} is there twice", str(scp), number))
        else:
            path = _resolve(value, root, roots)
            if isinstance(path, Path):
                found[utterance] = path
            else:
                kind, what = path
                problems.append(Problem(kind, f"{value}: {what}", str(scp), number))
    return found


def _resolve(value: str, root: Path, roots: Sequence[Path]) -> Path | tuple[str, str]:
    """The audio file that a line names, or the kind of what is wrong and the words for it."""
    narrowed = [os.path.realpath(r) for r in (root, *roots)] if roots else None
    if "\0" in value:
        return "bad-line", "this is no path"
    if os.path.isabs(value):
        if not os.path.isfile(value):
            return "missing-audio", "there is no such file"
        if narrowed is not None and not inside(os.path.realpath(value), narrowed):
            return "outside-root", "it lies outside the folders given with --root"
        return Path(value)
    outside = False
    for base in _bases(root):
        path = base / value
        if path.is_file():
            if inside(os.path.realpath(path), narrowed or [os.path.realpath(base)]):
                return path
            outside = True
    return ("outside-root", "it leads out of its folder") if outside else ("missing-audio", "there is no such file")


def _bases(root: Path) -> list[Path]:
    top = Path(os.path.abspath(root))
    return [root, *list(top.parents)[:3], Path.cwd()]


def _read_folder(root: Path, roots: Sequence[Path], problems: list[Problem]) -> dict[str, Path]:
    """Newer VoicePrivacy folders have no wav.scp: the audio is `wav/<utterance>.wav`, or one folder deeper."""
    walk = Walk(root / "wav", [root, *roots])
    found: dict[str, Path] = {}
    for path in walk:
        if path.suffix.lower() in SUFFIXES:
            found.setdefault(path.stem, path)
    problems += walk.problems
    return found
