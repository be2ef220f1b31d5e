"""Kaldi's ark and scp files of vectors, and the x-vector folders of the VoicePrivacy challenges.

The reader is our own: an scp entry may name a shell pipe, which general readers run. Here it is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, Problem
from veilmeter.core.files import is_present, make_folder, whole_file, write_text
from veilmeter.core.text import parse_index
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import LONGEST_VECTOR, RawVectors
from veilmeter.data.layouts import read_lines

_FLOATS = {b"FV ": ("<f4", 1), b"DV ": ("<f8", 1), b"FM ": ("<f4", 2), b"DM ": ("<f8", 2)}
_SCP_VALUE = re.compile(r"^(?P<path>.*?)(?::(?P<offset>\d+))?$")
_LONGEST_ID = 4096
_LONGEST_TEXT = 32 * LONGEST_VECTOR
# Bytes of vectors that an scp may name: a list can name one vector a million times. Numbers as text may double.
_NAMED_FREELY, _MOST_NAMED = 1 << 30, 4
_MOST_PROBLEMS = 100_000  # entries of an scp that can't be read; each takes ten times its length of memory
# Files in meta/ beside utt2spk that do not hold an attribute of speakers or utterances.
_NO_ATTRIBUTES = {"utt2spk", "utt2dur", "utt2num_frames", "spk2utt", "utt2uniq"}


def is_xvector_folder(folder: Path) -> bool:
    return bool(_scp_files(folder))


def read_xvector_folder(folder: Path) -> RawVectors:
    """Vectors from xvector.scp (or xvector.*.scp), who speaks from meta/."""
    files = _scp_files(folder)
    if not files:
        raise InputError("no xvector.scp in this folder", path=folder)
    raw = RawVectors(folder, [], [], places=[])
    for file in files:
        _read_scp_into(raw, file)
    return with_meta(raw, folder)


def read_scp(path: Path) -> RawVectors:
    raw = RawVectors(path, [], [], places=[])
    _read_scp_into(raw, path)
    return with_meta(raw, path.parent)


def read_ark(path: Path) -> RawVectors:
    """All vectors of one ark file in the order in which they stand."""
    ark = Ark(path)
    ids, vectors = [], []
    for key, vector in ark.items():
        ids.append(key)
        vectors.append(vector)
    return with_meta(RawVectors(path, ids, vectors), path.parent)


def _scp_files(folder: Path) -> list[Path]:
    if (folder / "xvector.scp").is_file():
        return [folder / "xvector.scp"]
    pieces = [p for p in folder.glob("xvector.*.scp") if p.is_file()]
    if pieces:
        return sorted(pieces, key=lambda p: [-1 if (n := parse_index(x)) is None else n for x in p.name.split(".")])
    # Other extractors name theirs embedding.scp, dvector.scp...; wav.scp and a speaker's means are something else.
    others = [p for p in folder.glob("*.scp") if p.name not in ("wav.scp", "feats.scp", "vad.scp", "segments.scp")]
    others = [p for p in others if p.is_file() and not p.name.startswith("spk")]
    return others if len(others) == 1 else []


def _read_scp_into(raw: RawVectors, scp: Path) -> None:
    arks: dict[str, Ark | Problem] = {}
    vectors: list[NDArray[np.float32]] = raw.vectors  # type: ignore[assignment]
    assert raw.places is not None
    left = _NAMED_FREELY
    for number, line in read_lines(scp):
        if len(raw.problems) > _MOST_PROBLEMS:
            raise InputError(f"more than {_MOST_PROBLEMS:,} entries can't be read, such as {raw.problems[0]}", path=scp)
        fields = line.split(None, 1)
        place = (str(scp), number)
        if len(fields) == 1:
            raw.problems.append(Problem("bad-line", "an id without a place", *place, fix="write: id file.ark:offset"))
            continue
        utterance, value = fields[0], fields[1].strip()
        if value.endswith("|") or value.startswith("|"):
            raise InputError(
                "this entry is a shell command, which is never run",
                path=scp,
                line=number,
                fix="run it yourself and list the ark file it writes",
            )
        match = _SCP_VALUE.match(value)
        name, offset = (match["path"], match["offset"]) if match else (value, None)
        if name not in arks:
            arks[name] = ark = _open_ark(name, scp, number)
            left += _MOST_NAMED * len(ark.data) if isinstance(ark, Ark) else 0
        ark = arks[name]
        if isinstance(ark, Problem):
            raw.problems.append(Problem(ark.kind, ark.what, *place, fix=ark.fix))
            continue
        try:
            vectors.append(ark.at(_offset(offset, ark)))
        except InputError as error:
            what = f"the vector of {utterance!r} can't be read: {error.what}"
            raw.problems.append(Problem("bad-vector", what, *place, fix=f"write {ark.path.name} again"))
            continue
        left -= vectors[-1].nbytes
        if left < 0:
            raise InputError("the vectors named so far are far larger than their ark files", path=scp, line=number)
        raw.utterances.append(utterance)
        raw.places.append(place)


def _offset(text: str | None, ark: Ark) -> int:
    offset = parse_index(text or "0")
    if offset is None:
        raise InputError(f"byte {str(text)[:40]} lies outside the file", path=ark.path)
    return offset


def _open_ark(name: str, scp: Path, line: int) -> Ark | Problem:
    """The ark an scp names: relative to the scp file, to the working directory, or its bare name beside the scp."""
    fix = f"put {Path(name).name!r} beside {scp.name}"
    if "\0" in name:
        return Problem("missing-ark", "the ark's name holds a zero byte", str(scp), line, fix)
    for candidate in (scp.parent / name, Path(name), scp.parent / Path(name).name):
        try:
            if candidate.is_file():
                return Ark(candidate)
        except InputError as error:
            return Problem("missing-ark", str(error), str(scp), line, fix)
        except OSError:  # a name too long for the file system, a folder one may not enter
            continue
    return Problem("missing-ark", f"the ark file {name!r} is not there", str(scp), line, fix)


@dataclass(slots=True, init=False)
class Ark:
    """One ark file, mapped into memory. Every length is checked against the size of the file."""

    path: Path
    data: NDArray[np.uint8]

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            size = path.stat().st_size
            self.data = np.memmap(path, np.uint8, "r") if size else np.zeros(0, np.uint8)
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or error
            raise InputError(f"the file can't be read: {why}", path=path) from None

    def at(self, offset: int) -> NDArray[np.float32]:
        """The vector whose value begins at this byte."""
        return self._value(offset)[0]

    def items(self) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """(id, vector) in the order of the file."""
        position, size = 0, len(self.data)
        while position < size:
            head = self.data[position : position + _LONGEST_ID].tobytes()
            stripped = head.lstrip(b"\n\r\t ")
            if not stripped:
                if position + len(head) >= size:
                    return
                raise InputError("a long run of white space where an id should be", path=self.path)
            position += len(head) - len(stripped)
            end = stripped.find(b" ")
            if end <= 0:
                raise InputError(f"no id at byte {position}", path=self.path, fix="is it a Kaldi ark file?")
            try:
                key = stripped[:end].decode("utf-8")
            except UnicodeDecodeError:
                raise InputError(f"at byte {position} the id is not UTF-8", path=self.path) from None
            vector, position = self._value(position + end + 1)
            yield key, vector

    def _value(self, start: int) -> tuple[NDArray[np.float32], int]:
        if not 0 <= start < len(self.data):
            raise InputError(f"byte {start} lies outside the file", path=self.path)
        if self.data[start : start + 2].tobytes() == b"\0B":
            return self._binary(start + 2)
        return self._text(start)

    def _binary(self, start: int) -> tuple[NDArray[np.float32], int]:
        token = self.data[start : start + 3].tobytes()
        if token not in _FLOATS:
            raise InputError(f"not a vector of floats: {token!r} at byte {start}", path=self.path)
        dtype, dimensions = _FLOATS[token]
        position, shape = start + 3, []
        for _ in range(dimensions):
            mark = self.data[position : position + 5].tobytes()
            if len(mark) < 5 or mark[0] != 4:
                raise InputError(f"the length at byte {position} is broken", path=self.path)
            shape.append(int.from_bytes(mark[1:], "little", signed=True))
            position += 5
        if dimensions == 2 and shape[0] != 1:
            raise InputError(f"at byte {start} there is a matrix of {shape[0]} rows, not a vector", path=self.path)
        length = shape[-1]
        end = position + length * np.dtype(dtype).itemsize
        if not 1 <= length <= LONGEST_VECTOR or end > len(self.data):
            raise InputError(f"a vector of {length} numbers at byte {start} does not fit the file", path=self.path)
        with np.errstate(over="ignore", invalid="ignore"):
            return self.data[position:end].view(dtype).astype(np.float32), end

    def _text(self, start: int) -> tuple[NDArray[np.float32], int]:
        size, end = 1 << 14, -1
        while end < 0:
            piece = self.data[start : start + size].tobytes()
            if not piece.lstrip().startswith(b"["):
                raise InputError(f"no vector at byte {start}", path=self.path)
            end = piece.find(b"]")
            if end < 0 and (start + size >= len(self.data) or size > _LONGEST_TEXT):
                raise InputError(f"the vector at byte {start} has no end", path=self.path)
            size *= 2
        body = piece[:end].lstrip()[1:]
        try:
            with np.errstate(over="ignore"):
                numbers = np.array([float(number) for number in body.split()], np.float64)
                vector = numbers.astype(np.float32)
        except ValueError:
            raise InputError(f"the vector at byte {start} holds a value that is not a number", path=self.path) from None
        if not len(vector):
            raise InputError(f"the vector at byte {start} is empty", path=self.path)
        return vector, start + end + 1


def with_meta(raw: RawVectors, folder: Path) -> RawVectors:
    """Speakers, and what else is known, from Kaldi's text files in `folder/meta` or `folder`."""
    places = [m / name for name in ("utt2spk", "spk2utt") for m in (folder / "meta", folder)]
    speaker_list = next((file for file in places if is_present(file)), None)
    if speaker_list is None:
        return raw
    meta, speaker_of = speaker_list.parent, read_map(speaker_list, raw.problems)
    if speaker_list.name == "spk2utt":
        speaker_of = {utterance: who for who, spoken in speaker_of.items() for utterance in spoken.split()}
    raw.speakers = [speaker_of.get(utterance, "") for utterance in raw.utterances]
    for file in sorted([*meta.glob("spk2*"), *meta.glob("utt2*")]):
        if file.name in _NO_ATTRIBUTES or file.suffix or not is_present(file):
            continue
        values = read_map(file, raw.problems)
        keys = raw.speakers if file.name.startswith("spk2") else raw.utterances
        raw.attributes[file.name[4:]] = [values.get(key, "") for key in keys]
    if is_present(meta / "utt2dur"):
        seconds = read_map(meta / "utt2dur", raw.problems)
        raw.durations = np.array([_seconds(seconds.get(utterance, "")) for utterance in raw.utterances])
    return raw


def _seconds(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")


def read_map(path: Path, problems: list[Problem]) -> dict[str, str]:
    """A text file of `key value` lines."""
    values: dict[str, str] = {}
    for number, line in read_lines(path):
        fields = line.split(None, 1)
        if len(fields) == 2:
            value = fields[1].strip()
            if values.setdefault(fields[0], value) != value:
                what = f"{fields[0]!r} occurs twice, as {values[fields[0]]!r} and as {value!r}"
                problems.append(Problem("two-values", what, str(path), number, "remove one of the lines"))
        else:
            problems.append(Problem("bad-line", f"{fields[0]!r} has no value", str(path), number, "add it", False))
    return values


def write_ark(embeddings: Embeddings, ark: Path, scp: Path) -> None:
    """Binary ark, and the scp that points into it by the ark's bare name."""
    lines = []
    with whole_file(ark) as temporary, open(temporary, "wb") as out:
        for utterance, vector in zip(embeddings.utterances, embeddings.vectors, strict=True):
            out.write(check_id(utterance).encode() + b" ")
            lines.append(f"{utterance} {ark.name}:{out.tell()}\n")
            data = np.ascontiguousarray(vector, "<f4")
            out.write(b"\0BFV \4" + len(data).to_bytes(4, "little") + data.tobytes())
    write_text(scp, "".join(lines))


def write_xvector_folder(embeddings: Embeddings, folder: Path) -> None:
    """The VoicePrivacy layout: xvector.ark, xvector.scp and meta/."""
    make_folder(folder)
    write_ark(embeddings, folder / "xvector.ark", folder / "xvector.scp")
    write_meta(embeddings, folder / "meta")


def write_meta(embeddings: Embeddings, meta: Path) -> None:
    """utt2spk, spk2utt, utt2dur, and one file for each attribute (spk2gender, utt2session...)."""
    spoken: dict[str, list[str]] = {}
    for utterance, speaker in zip(embeddings.utterances, embeddings.speakers, strict=True):
        spoken.setdefault(check_id(speaker), []).append(check_id(utterance))
    write_text(meta / "utt2spk", _lines(embeddings.utterances, embeddings.speakers))
    write_text(meta / "spk2utt", "".join(f"{speaker} {' '.join(items)}\n" for speaker, items in spoken.items()))
    if embeddings.durations is not None:
        seconds = [repr(float(d)) if np.isfinite(d) else "" for d in embeddings.durations]
        write_text(meta / "utt2dur", _lines(embeddings.utterances, seconds))
    for key, column in embeddings.attributes.items():
        if not key or not re.fullmatch(r"[\w-]+", key):
            raise InputError(f"{key!r} can't be the name of a Kaldi file", path=meta)
        of_speaker = dict(zip(embeddings.speakers, column, strict=True))
        same = all(of_speaker[s] == value for s, value in zip(embeddings.speakers, column, strict=True))
        text = _lines(of_speaker, of_speaker.values()) if same else _lines(embeddings.utterances, column)
        write_text(meta / f"{'spk' if same else 'utt'}2{key}", text)


def _lines(keys: object, values: object) -> str:
    pairs = zip(keys, values, strict=True)  # type: ignore[call-overload]
    return "".join(f"{key} {' '.join(value.split())}\n" for key, value in pairs if value)


def check_id(name: str) -> str:
    """The id, if a Kaldi file can hold it."""
    if not name or len(name.split()) != 1 or name != name.strip() or "\0" in name:
        raise InputError(f"{name!r} can't be an id in a Kaldi file: it is empty or holds white space")
    return name
