"""Embeddings from and to any format that is known, recognized by what is there.

Each format's reader gives `RawVectors`; `usable` is the one place that decides about invalid vectors.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, Problem, missing_extra, refuse
from veilmeter.core.files import check_input, is_present, open_input, unreadable_input
from veilmeter.core.findings import Finding, Reference, file_reference, warning
from veilmeter.core.text import parse_index
from veilmeter.data.embeddings import DRAW_COLUMNS, Embeddings

LONGEST_VECTOR = 1 << 20  # numbers; speaker embeddings have a thousand
Vectors = NDArray[np.float32] | Sequence[NDArray[np.float32]]


@dataclass(slots=True)
class RawVectors:
    """Ids and vectors as in the file. An empty string among `speakers` or `attributes` means unknown.

    `vectors` is a table, or a list where the lengths may differ. `problems` are what the reader itself left out.
    """

    path: Path
    utterances: list[str]
    vectors: Vectors
    speakers: list[str] | None = None
    attributes: dict[str, list[str]] = field(default_factory=dict)
    durations: NDArray[np.float64] | None = None
    problems: list[Problem] = field(default_factory=list)
    places: list[tuple[str, int]] | None = None  # file and line of each utterance, where lines exist


@dataclass(frozen=True, slots=True)
class Loaded:
    """The usable vectors, and everything that was left out and why."""

    embeddings: Embeddings
    problems: tuple[Problem, ...]

    def findings(self) -> list[Finding]:
        """One for each kind of problem, with a count and the first of its kind."""
        kinds: dict[str, list[Problem]] = {}
        for problem in self.problems:
            kinds.setdefault(problem.kind, []).append(problem)
        return [
            warning(
                "vectors_left_out",
                file=file_reference(problems[0].path),
                kind=kind,
                count=len(problems),
                example=Reference("text", problems[0].what),
            )
            for kind, problems in kinds.items()
        ]


def usable(raw: RawVectors) -> Loaded:
    """Keep what can be used; name and count the rest. Raises only where nothing is left.

    The decisions: the most frequent vector length is the right one; of an id that occurs twice the first stays; a
    vector that is zero or not finite, or whose speaker is unknown, goes.
    """
    if len(raw.utterances) == 0:
        raise _nothing_left("no vectors in it", raw, raw.problems)
    if raw.speakers is None:
        raise InputError(
            "the speakers of these utterances are unknown",
            path=raw.path,
            fix="put a Kaldi file utt2spk beside it, or in a folder meta/",
        )
    sieve = _Sieve(raw, np.ones(len(raw.utterances), bool), list(raw.problems))
    dimension = _usual_length(raw.vectors)
    sieve.leave_out_bad_texts(raw.speakers)
    sieve.leave_out_other_lengths(dimension)
    sieve.leave_out_repeated_ids()
    sieve.leave_out_unknown_speakers(raw.speakers)
    table = sieve.table(dimension)
    for row, kind, what in _bad_rows(table, raw.utterances):
        sieve.leave_out(row, kind, what, "leave the utterance out or extract it again")
    if not sieve.keep.any():
        raise _nothing_left("none of its vectors can be used", raw, sieve.problems)
    return Loaded(_kept(raw, raw.speakers, table, sieve.keep), tuple(sieve.problems))


@dataclass(frozen=True, slots=True)
class _Sieve:
    """Which rows are still in, and why the others are out. A row is left out once, for the first reason."""

    raw: RawVectors
    keep: NDArray[np.bool_]
    problems: list[Problem]

    def leave_out(self, row: int, kind: str, what: str, fix: str) -> None:
        if self.keep[row]:
            self.keep[row] = False
            path, line = self.raw.places[row] if self.raw.places is not None else (str(self.raw.path), None)
            self.problems.append(Problem(kind, what, path, line, fix))

    def leave_out_bad_texts(self, speakers: list[str]) -> None:
        utterances = self.raw.utterances
        texts = (utterances, speakers, *self.raw.attributes.values())
        if all(_sound(column) for column in texts) and "" not in utterances:
            return
        for row, utterance in enumerate(utterances):
            if not utterance or not _sound([column[row] for column in texts]):
                what = f"the id or another text of utterance {row + 1} is empty or no Unicode text"
                self.leave_out(row, "bad-id", what, "write the file again with ids in UTF-8")

    def leave_out_other_lengths(self, dimension: int) -> None:
        if not isinstance(self.raw.vectors, list | tuple):
            return
        for row, vector in enumerate(self.raw.vectors):
            if len(vector) != dimension:
                what = f"the vector of {self.raw.utterances[row]!r} has {len(vector)} numbers, most have {dimension}"
                self.leave_out(row, "differing-length", what, "extract it again with the same extractor")

    def leave_out_repeated_ids(self) -> None:
        seen: set[str] = set()
        for row, utterance in enumerate(self.raw.utterances):
            if utterance in seen:
                what = f"utterance {utterance!r} occurs twice"
                self.leave_out(row, "same-id-twice", what, "give every utterance its own id; the first one was kept")
            seen.add(utterance)

    def leave_out_unknown_speakers(self, speakers: list[str]) -> None:
        for row, speaker in enumerate(speakers):
            if not speaker:
                what = f"the speaker of utterance {self.raw.utterances[row]!r} is not known"
                self.leave_out(row, "no-speaker", what, "add the utterance to utt2spk")

    def table(self, dimension: int) -> NDArray[np.float32]:
        """All vectors as one array; rows that are out may be zero in it."""
        if isinstance(self.raw.vectors, np.ndarray):
            return self.raw.vectors
        table = np.zeros((len(self.keep), dimension), np.float32)
        for row in np.flatnonzero(self.keep).tolist():
            table[row] = self.raw.vectors[row]
        return table


def _kept(raw: RawVectors, speakers: list[str], table: NDArray[np.float32], keep: NDArray[np.bool_]) -> Embeddings:
    everything = bool(keep.all())
    rows = np.flatnonzero(keep)

    def part(column: list[str]) -> list[str]:
        return column if everything else [column[row] for row in rows]

    return Embeddings(
        table if everything else table[rows],
        part(raw.utterances),
        part(speakers),
        {key: part(column) for key, column in raw.attributes.items()},
        raw.durations if everything or raw.durations is None else raw.durations[rows],
        str(raw.path),
    )


def _nothing_left(what: str, raw: RawVectors, problems: Sequence[Problem]) -> InputError:
    if not problems:
        return InputError(what, path=raw.path)
    first = problems[0]
    return InputError(f"{what}; {first.what}", path=first.path, line=first.line, fix=first.fix or None)


def _sound(texts: Sequence[str]) -> bool:
    """Whether it can be written: broken files give strings with halves of characters."""
    try:
        "".join(texts).encode()
    except UnicodeEncodeError:
        return False
    return True


def _usual_length(vectors: Vectors) -> int:
    if isinstance(vectors, np.ndarray):
        return int(vectors.shape[1])
    lengths, counts = np.unique([len(vector) for vector in vectors], return_counts=True)
    return int(lengths[np.argmax(counts)])


def _bad_rows(table: NDArray[np.float32], utterances: Sequence[str]) -> list[tuple[int, str, str]]:
    """Rows that are zero or not finite, looked at in pieces: the table may be larger than memory."""
    bad: list[tuple[int, str, str]] = []
    for start in range(0, len(table), 65536):
        piece = np.asarray(table[start : start + 65536])
        with np.errstate(over="ignore", invalid="ignore"):
            squared = np.einsum("ij,ij->i", piece, piece, dtype=np.float64)
        for offset in np.flatnonzero(~np.isfinite(squared)):
            row = start + int(offset)
            bad.append((row, "not-finite", f"the vector of {utterances[row]!r} has numbers that are not finite"))
        for offset in np.flatnonzero(squared == 0):
            row = start + int(offset)
            bad.append((row, "zero-vector", f"the vector of {utterances[row]!r} is zero"))
    return bad


SPEAKER_VECTORS = "speaker_vectors.pt"
_LEAST_CLAIM = 1 << 24  # bytes that the vectors of any file may take


def is_vector_folder(folder: Path) -> bool:
    return (folder / SPEAKER_VECTORS).is_file()


def read_vector_folder(folder: Path) -> RawVectors:
    """One vector per utterance (`utt-level`) or per speaker (`spk-level`)."""
    from veilmeter.data.formats.kaldi import read_map

    vectors = _tensor(folder / SPEAKER_VECTORS)
    problems: list[Problem] = []
    rows = _numbers(read_map(folder / "id2idx", problems), folder / "id2idx", len(vectors))
    speakers = read_map(folder / "idx2spk", problems)
    who = {_number(index, folder / "idx2spk", len(vectors)): speaker for index, speaker in speakers.items()}
    if len(set(rows.values())) != len(rows):
        raise InputError("two ids have one index", path=folder / "id2idx", fix="extract the vectors again")
    ids = sorted(rows, key=lambda name: rows[name])
    index = np.array([rows[name] for name in ids], np.int64)
    genders = read_map(folder / "spk2gender", problems) if is_present(folder / "spk2gender") else {}
    raw = RawVectors(folder, ids, vectors[index], [who.get(int(row), "") for row in index], problems=problems)
    if genders:
        raw.attributes["gender"] = [genders.get(speaker, "").lower() for speaker in raw.speakers or []]
    unnamed = len(vectors) - len(ids)
    if unnamed:
        what = f"{unnamed} of {len(vectors)} vectors have no id in id2idx"
        raw.problems.append(Problem("no-id", what, str(folder / SPEAKER_VECTORS), fix="extract the vectors again"))
    return raw


def _tensor(path: Path) -> NDArray[np.float32]:
    return _table(_load_safely(path), path)


def _load_safely(path: Path) -> Any:
    """What torch saved, as far as it can be loaded without running code."""
    try:
        import torch
    except ImportError:
        raise missing_extra("torch", "audio") from None
    from veilmeter.data.formats.npz import LARGEST_TABLE, refuse_bombs

    check_input(path, most=LARGEST_TABLE)
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                refuse_bombs(archive, path)
        return torch.load(path, map_location="cpu", weights_only=True)
    except InputError:
        raise
    except Exception as error:  # an untrusted file: torch raises whatever its parts do
        first = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"not a tensor that can be loaded safely: {first}", path=path) from None


def _table(loaded: Any, path: Path) -> NDArray[np.float32]:
    return _to_numpy(_plain_tensor(loaded, path, 2))


def _plain_tensor(loaded: Any, path: Path, dimensions: int) -> Any:
    """A tensor of so many dimensions, without those of length 1 where it is a vector, that the file can hold."""
    import torch

    is_plain = isinstance(loaded, torch.Tensor) and loaded.layout == torch.strided and not loaded.is_quantized
    is_plain = is_plain and loaded.device.type == "cpu"  # a "meta" tensor has a shape and no numbers
    tensor = loaded.squeeze() if is_plain and dimensions == 1 else loaded
    if not is_plain or tensor.ndim != dimensions or not tensor.is_floating_point():
        raise InputError("not a table of vectors" if dimensions == 2 else "not a vector for each id", path=path)
    if tensor.numel() * tensor.element_size() > path.stat().st_size:  # strides of 0 make any size from one number
        raise InputError("it claims more vectors than the file holds", path=path)
    return tensor


def _to_numpy(tensor: Any) -> NDArray[np.float32]:
    return np.asarray(tensor.detach().float().numpy(), np.float32)


def read_torch(path: Path) -> RawVectors:
    """A dictionary from ids to vectors, one of `ids`, `vectors` and perhaps `speakers`, or a table with ids beside."""
    from veilmeter.data.formats.kaldi import with_meta
    from veilmeter.data.formats.npz import SAVE, ids_beside

    loaded = _load_safely(path)
    if not isinstance(loaded, dict):
        table = _table(loaded, path)
        return with_meta(RawVectors(path, ids_beside(path, len(table)), table), path.parent)
    if not all(isinstance(key, str) for key in loaded):
        raise InputError("its keys are not ids", path=path, fix=SAVE)
    if {"ids", "vectors"} <= loaded.keys():
        table = _table(loaded["vectors"], path)
        named = {key: loaded[key] for key in ("ids", "speakers") if key in loaded}
        if any(not isinstance(words, list | tuple) or len(words) != len(table) for words in named.values()):
            raise InputError(f"`ids` and `speakers` must be lists of {len(table):,} words", path=path)
        texts = {key: list(map(str, words)) for key, words in named.items()}
        raw = RawVectors(path, texts["ids"], table, texts.get("speakers"))
        return raw if raw.speakers is not None else with_meta(raw, path.parent)
    vectors = [_plain_tensor(tensor, path, 1) for tensor in loaded.values()]
    if sum(4 * vector.numel() for vector in vectors) > max(_LEAST_CLAIM, 2 * path.stat().st_size):
        raise InputError("it claims more vectors than the file holds", path=path)
    return with_meta(RawVectors(path, list(loaded), list(map(_to_numpy, vectors))), path.parent)


def _refuse_pickle(path: Path) -> RawVectors:
    from veilmeter.data.formats.npz import SAVE

    raise InputError("a pickle can run code when it is opened, so it is never loaded", path=path, fix=SAVE)


def _numbers(table: dict[str, str], path: Path, count: int) -> dict[str, int]:
    return {name: _number(index, path, count) for name, index in table.items()}


def _number(text: str, path: Path, count: int) -> int:
    number = parse_index(text)
    if number is None or number >= count:
        raise InputError(f"not an index of the {count} vectors: {text[:40]!r}", path=path)
    return number


KNOWN = (
    "an x-vector folder (xvector.scp with meta/), .scp, .ark, .npz, .npy or .pt, .h5, .parquet, "
    "a folder of Parquet shards, or one with speaker_vectors.pt"
)


def read_embeddings(path: str | Path, *, strict: bool = True) -> Embeddings:
    """The embeddings in a file or folder of any known format.

    With `strict` the first bad vector (zero, not finite, of another length, without a speaker, or an id that is there
    twice) is an error; without, it is left out: `load_embeddings` says which ones were.

    Parameters
    ----------
    path : str or Path
        An npz, h5, Parquet, ark or scp file, or a folder of vectors.
    strict : bool
        Whether the first bad vector is an error.

    Returns
    -------
    Embeddings
        The vectors with their utterances, speakers and attributes.

    Raises
    ------
    InputError
        If nothing is recognized there, or with `strict` at the first bad vector.

    Examples
    --------
    >>> read_embeddings("test.npz")  # doctest: +SKIP
    Embeddings(120 utterances of 20 speakers, 192-d)
    """
    loaded = load_embeddings(path)
    if strict:
        refuse(loaded.problems)
    return loaded.embeddings


# Embeddings, or what can be made into them: a path, a frame, or arrays that say who speaks.
EmbeddingsLike = Embeddings | str | Path | tuple[Any, ...] | Any


def to_embeddings(source: Any, name: str) -> Embeddings:
    """The embeddings that were given: as such, as a path, as arrays `(vectors, speakers)` or `(vectors, utterances,
    speakers)`, or as a frame with a column `speaker`, perhaps one `utterance`, and one column per dimension. Without
    ids, an utterance is known by the number of its row. `name` says what they are, for messages."""
    if isinstance(source, Embeddings):
        return source
    if isinstance(source, str | Path):
        return read_embeddings(source)
    where = f"{name}, given in Python"
    if isinstance(source, tuple) and len(source) in (2, 3) and not isinstance(source[0], str | Path | Embeddings):
        vectors, *ids = source
        table = np.asarray(vectors)
        utterances = ids[0] if len(ids) == 2 else range(len(table))
        return Embeddings(table, map(str, utterances), map(str, ids[-1]), source=where)
    if hasattr(source, "columns") and hasattr(source, "to_numpy") and "speaker" in source.columns:
        numbers = source.drop(columns=[key for key in ("speaker", "utterance") if key in source.columns])
        utterances = source["utterance"] if "utterance" in source.columns else range(len(source))
        return Embeddings(numbers.to_numpy(np.float32), map(str, utterances), map(str, source["speaker"]), source=where)
    raise InputError(
        f"{name}: a {type(source).__name__} does not say who speaks",
        fix="give a path, Embeddings, arrays as (vectors, speakers) or (vectors, utterances, speakers), or a frame "
        "with a column `speaker`",
    )


def load_embeddings(path: str | Path) -> Loaded:
    """The usable embeddings, and what was left out and why."""
    return usable(find(path))


def load_passes(path: str | Path) -> list[Loaded]:
    """The usable embeddings of copies, which may hold an utterance several times if a column names the draw of each:
    every pass has it once."""
    raw = find(path)
    column = next((raw.attributes[name] for name in DRAW_COLUMNS if name in raw.attributes), None)
    if column is None or len(set(raw.utterances)) == len(raw.utterances):
        return [usable(raw)]
    draws: dict[str, dict[str, int]] = {}
    passes = [
        (known := draws.setdefault(utterance, {})).setdefault(draw, len(known))
        for utterance, draw in zip(raw.utterances, column, strict=True)
    ]
    return [usable(_rows_of(raw, np.flatnonzero(np.array(passes) == number))) for number in range(max(passes) + 1)]


def _rows_of(raw: RawVectors, rows: NDArray[np.intp]) -> RawVectors:
    def part(column: list[Any]) -> list[Any]:
        return [column[row] for row in rows]

    return RawVectors(
        raw.path,
        part(raw.utterances),
        raw.vectors[rows] if isinstance(raw.vectors, np.ndarray) else part(list(raw.vectors)),
        None if raw.speakers is None else part(raw.speakers),
        {name: part(column) for name, column in raw.attributes.items()},
        None if raw.durations is None else raw.durations[rows],
        raw.problems if 0 in rows else [],
        None if raw.places is None else part(raw.places),
    )


def check_embeddings(path: str | Path) -> tuple[Embeddings | None, list[Problem]]:
    """For `veilmeter check`: everything that is wrong, and the embeddings if any are usable."""
    try:
        loaded = load_embeddings(path)
    except InputError as error:
        unreadable = Problem("unreadable", error.what, error.path or str(path), error.line, error.fix or "")
        return None, [unreadable]
    return loaded.embeddings, list(loaded.problems)


def is_embeddings(path: str | Path) -> bool:
    """Whether this looks like a file or folder of vectors, without reading it."""
    try:
        return _reader(Path(path)) is not None
    except (InputError, PermissionError):  # whoever reads it says why
        return False


def find(path: str | Path) -> RawVectors:
    """The content of the file or folder, not yet checked."""
    root = Path(path)
    try:
        reader = _reader(root)
        if reader is None:
            raise InputError("no vectors are recognized here", path=root, fix=f"known: {KNOWN}")
        return reader(root)
    except PermissionError as error:  # of a folder; files are opened by `open_input`
        raise unreadable_input(error, error.filename or root) from None


def _reader(path: Path) -> Callable[[Path], RawVectors] | None:
    from veilmeter.data.formats import kaldi, parquet
    from veilmeter.data.formats.dataset import holds_audio

    if path.is_dir():
        shards = parquet.shard_files(path)
        if shards and not holds_audio(shards[0]):
            return parquet.read_store
        if is_vector_folder(path):
            return read_vector_folder
        return kaldi.read_xvector_folder if kaldi.is_xvector_folder(path) else None
    with open_input(path) as handle:
        head = handle.read(4096)
    if head.startswith(b"PAR1"):
        return None if holds_audio(path) else parquet.read_store
    if head.startswith(b"PK"):
        from veilmeter.data.formats.npz import read_npz

        return read_torch if b"/data.pkl" in head or path.suffix in (".pt", ".pth") else read_npz
    if head.startswith(b"\x93NUMPY"):
        from veilmeter.data.formats.npz import read_npy

        return read_npy
    if head[:1] == b"\x80" and head[1:2] in (b"\2", b"\3", b"\4", b"\5"):
        return read_torch if path.suffix in (".pt", ".pth") else _refuse_pickle
    if head.startswith(b"\x89HDF\r\n\x1a\n"):
        from veilmeter.data.formats.h5 import read_h5

        return read_h5
    first = head.split(b"\n", 1)[0].split()
    if path.suffix == ".scp":
        return kaldi.read_scp
    if path.suffix == ".ark" or (len(first) > 1 and (first[1] == b"[" or first[1].startswith(b"\0B"))):
        return kaldi.read_ark
    return {
        ".npz": _never("npz"),
        ".npy": _never("npy"),
        ".pt": _never("a file of torch"),
        ".h5": _never("HDF5"),
        ".hdf5": _never("HDF5"),
        ".parquet": _never("Parquet"),
    }.get(path.suffix)


def _never(form: str) -> Callable[[Path], RawVectors]:
    def refuse(path: Path) -> RawVectors:
        raise InputError(f"not {form}, although its name says so", path=path)

    return refuse


def write_embeddings(embeddings: Embeddings, path: str | Path, *, form: str | None = None) -> None:
    """Write in the format that the name says: .npz, .h5, .parquet, .scp or .ark (both are written, with meta/), or,
    for a name without suffix, a folder: Parquet shards, or with `form="kaldi"` the VoicePrivacy layout.

    Parameters
    ----------
    embeddings : Embeddings
        What to write.
    path : str or Path
        The file or folder; its suffix chooses the format.
    form : {"kaldi"}, optional
        The VoicePrivacy layout, for a folder.

    Returns
    -------
    None

    Raises
    ------
    InputError
        If the suffix is unknown, or the library of the format is not installed.

    Examples
    --------
    >>> write_embeddings(embeddings, "vectors.npz")  # doctest: +SKIP
    """
    from veilmeter.data.formats import kaldi, parquet

    target = Path(path)
    wanted = form or target.suffix.removeprefix(".") or "parquet"
    if wanted in ("ark", "scp"):
        kaldi.write_ark(embeddings, target.with_suffix(".ark"), target.with_suffix(".scp"))
        kaldi.write_meta(embeddings, target.parent / "meta")
    elif wanted == "kaldi":
        kaldi.write_xvector_folder(embeddings, target)
    elif wanted == "npz":
        from veilmeter.data.formats.npz import write_npz

        write_npz(embeddings, target)
    elif wanted in ("h5", "hdf5"):
        from veilmeter.data.formats.h5 import write_h5

        write_h5(embeddings, target)
    elif wanted == "parquet" and target.suffix == ".parquet":
        parquet.write_shard(target, embeddings)
    elif wanted == "parquet":
        parquet.write_store(target, embeddings)
    else:
        raise InputError(f"vectors can't be written as {wanted!r}", path=target, fix=f"known: {KNOWN}")
