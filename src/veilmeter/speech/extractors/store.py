"""A store of vectors that grows, survives being killed at any moment, and ends with the same bytes as if it never was.

The finished store is a folder with

- `part-00000.parquet`, ...: the vectors, sorted by utterance, of `SHARD` recordings each, less the unusable ones;
- `inputs.jsonl`: for every recording its path, size, time and SHA-256, and what was wrong with it;
- `embeddings.json`: extractor, version, counts, and a digest of each part.

Until it is finished there is a folder `.unfinished` beside them. Results go there as they come, as small journal files;
whenever all recordings of a part are done, the part is written there. At the end the parts move up. Which recordings a
part holds depends on the corpus alone, never on who finished when.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter._version import __version__
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.files import make_folder, only_one, open_input, read_input_json, to_json, whole_file, write_json
from veilmeter.data.corpus import Corpus, Utterance
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats import parquet
from veilmeter.data.layouts import LONGEST_LINE
from veilmeter.speech.recordings import Record

SHARD = 4096
UNFINISHED = ".unfinished"
_RESERVED = ("utterance", "speaker", "duration", "vector", "gender", "session")


@dataclass(frozen=True, slots=True)
class Kept:
    """A vector that is safe on disk: its record, the file and row where it is, and while it is new also itself."""

    record: Record
    file: Path
    row: int
    vector: NDArray[np.float32] | None = None


class Store:
    """Open on one folder, by one process at a time."""

    def __init__(self, folder: Path, fingerprint: Mapping[str, Any]) -> None:
        self.folder = make_folder(folder)
        self.fingerprint = dict(fingerprint)
        # Not in the folder `.unfinished`, which is removed at the end, perhaps while another run waits for the lock.
        self._lock = ExitStack()
        self._lock.enter_context(only_one(folder / ".lock", folder))
        self.work = folder / UNFINISHED
        try:
            self._refuse_strangers()
            make_folder(self.work)
        except BaseException:
            self.close()
            raise
        for left in [*self.folder.glob(".*.part"), *self.work.glob(".*.part")]:
            left.unlink(missing_ok=True)  # of a process that was killed while it wrote
        numbers = [int(p.stem[8:]) for p in self.work.glob("journal-*.parquet") if p.stem[8:].isdecimal()]
        self._next_journal = max(numbers, default=-1) + 1
        self._needed: dict[Path, set[str]] = {}  # journal files, and the recordings whose part is not written yet

    def close(self) -> None:
        self._lock.close()

    def kept(self) -> dict[str, Kept]:
        """Vectors that the same extractor left, by utterance; of several, the newest."""
        by_utterance: dict[str, Kept] = {}
        for shard, records in self._complete_parts():
            for row, record in enumerate(records):
                by_utterance[record.utterance] = Kept(record, shard.path, row)
        for shard in self._shards(self.work, "journal-"):
            self._needed[shard.path] = set()
            for row, record in enumerate(_journal_records(shard)):
                by_utterance[record.utterance] = Kept(record, shard.path, row)
                self._needed[shard.path].add(record.utterance)
        return by_utterance

    def write_journal(self, results: Sequence[tuple[Record, NDArray[np.float32]]]) -> list[Kept]:
        """Keep these results; returns where they are."""
        path = self.work / f"journal-{self._next_journal:06d}.parquet"
        self._next_journal += 1
        records = [record for record, _ in results]
        names = [record.utterance for record in records]
        vectors = Embeddings([vector for _, vector in results], names, names)
        columns = {f.name: [str(getattr(r, f.name)) for r in records] for f in fields(Record) if f.name != "utterance"}
        parquet.write_shard(path, vectors, columns, self.fingerprint)
        self._needed[path] = set(names)
        return [Kept(record, path, row, vector) for row, (record, vector) in enumerate(results)]

    def write_part(self, number: int, plan: Plan, records: Mapping[str, Record], kept: Mapping[str, Kept]) -> None:
        """Write a part of which every recording is done, unless just this part is there already."""
        contents = plan.digest(number, records)
        usable = [u for u in plan.part(number) if records[u.id].usable]
        path, facts = self._part(number), {**self.fingerprint, "contents": contents}
        lines = [{"contents": contents}, *(_line(u, records[u.id], plan.corpus) for u in plan.part(number))]
        with whole_file(path.with_suffix(".jsonl")) as temporary, open(temporary, "w", encoding="utf-8") as out:
            out.writelines(to_json(line, indent=None) + "\n" for line in lines)
        here = _metadata(path) if path.exists() else _metadata(self.folder / path.name)
        if not usable:
            path.unlink(missing_ok=True)
        elif here != facts:
            vectors = _gather([kept[u.id] for u in usable])
            seconds = [records[u.id].seconds for u in usable]
            names, speakers = [u.id for u in usable], [u.speaker for u in usable]
            parquet.write_shard(
                path, Embeddings(vectors, names, speakers, plan.columns(usable), seconds), metadata=facts
            )
        self._drop_journals({u.id for u in plan.part(number)})

    def _drop_journals(self, done: set[str]) -> None:
        """Remove the journal files of which every recording is in a part by now."""
        for path, needed in list(self._needed.items()):
            needed -= done
            if not needed:
                path.unlink(missing_ok=True)
                del self._needed[path]

    def finish(self, plan: Plan, facts: Mapping[str, Any]) -> None:
        """Move the parts up and remove what was only for the way. Killed in between, the next run does the rest."""
        shards = {}
        wanted = set()
        for number in range(plan.parts):
            path = self._part(number)
            if path.exists():
                os.replace(path, self.folder / path.name)
            contents = _first_line(path.with_suffix(".jsonl")).get("contents")
            if contents and _metadata(self.folder / path.name).get("contents") == contents:
                shards[path.name] = contents
                wanted.add(path.name)
        for old in self.folder.glob("part-*.parquet"):
            if old.name not in wanted:
                old.unlink()
        with whole_file(self.folder / "inputs.jsonl") as temporary, open(temporary, "w", encoding="utf-8") as out:
            for number in range(plan.parts):
                with open(self._part(number).with_suffix(".jsonl"), encoding="utf-8") as lines:
                    next(lines)  # the digest
                    shutil.copyfileobj(lines, out)
        about = {**self.fingerprint, **facts, "shards": shards, "veilmeter": __version__}
        write_json(self.folder / "embeddings.json", about)
        shutil.rmtree(self.work)

    def _refuse_strangers(self) -> None:
        """A part that we did not write would be removed at the end: rather say so at the start."""
        listed = _json(self.folder / "embeddings.json").get("shards", {})
        for path in sorted(self.folder.glob("*.parquet")):
            if path.name not in listed and "contents" not in _metadata(path):
                raise InputError(
                    f"the folder holds {path.name}, which is of something else", path=self.folder,
                    fix="choose another output folder",
                )  # fmt: skip

    def _part(self, number: int) -> Path:
        return self.work / f"part-{number:05d}.parquet"

    def _shards(self, folder: Path, prefix: str) -> list[parquet.Shard]:
        """Intact files of the same extractor; the others are made again."""
        shards, _ = parquet.open_shards(folder)
        here = [shard for shard in shards if shard.path.name.startswith(prefix)]
        ours = [s for s in here if all(s.metadata.get(key) == value for key, value in self.fingerprint.items())]
        for shard in [shard for shard in ours if not _sound(shard)]:
            shard.path.unlink(missing_ok=True)  # its footer is well, so that it would be taken for finished
            ours.remove(shard)
        return ours

    def _complete_parts(self) -> Iterator[tuple[parquet.Shard, list[Record]]]:
        """Each part with the records of its rows, where the lists beside it tell of this very part."""
        by_digest: dict[str, dict[str, Record]] = {}
        about = _json(self.folder / "embeddings.json")
        if isinstance(about.get("shards"), dict):
            records = _records(self.folder / "inputs.jsonl")
            by_digest.update({str(digest): records for digest in about["shards"].values()})
        for lines in sorted(self.work.glob("part-*.jsonl")):
            digest = _first_line(lines).get("contents")
            if isinstance(digest, str):
                by_digest[digest] = _records(lines)
        for shard in (*self._shards(self.folder, "part-"), *self._shards(self.work, "part-")):
            known = by_digest.get(str(shard.metadata.get("contents")), {})
            names = parquet.read_columns(shard, ["utterance"])["utterance"]
            if all(name in known for name in names):
                yield shard, [known[name] for name in names]


class Plan:
    """Which utterance goes to which part, and which columns the parts have: decided by the corpus alone."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus
        self.parts = -(-len(corpus) // SHARD)
        self._attributes = sorted({key for u in corpus for key in u.attributes if key and key not in _RESERVED})
        self._plain = [name for name in ("gender", "session") if any(getattr(u, name) for u in corpus)]

    def part(self, number: int) -> tuple[Utterance, ...]:
        return self.corpus.utterances[number * SHARD : (number + 1) * SHARD]

    def columns(self, utterances: Sequence[Utterance]) -> dict[str, list[str]]:
        plain = {name: [str(getattr(u, name)) for u in utterances] for name in self._plain}
        return plain | {key: [u.attributes.get(key, "") for u in utterances] for key in self._attributes}

    def digest(self, number: int, records: Mapping[str, Record]) -> str:
        """A hash of all that decides a part's bytes beside the extractor."""
        digest = hashlib.sha256(json.dumps([self._plain, self._attributes]).encode())
        for u in self.part(number):
            record = records[u.id]
            content = record.sha256 + record.stretch
            facts = [u.id, u.speaker, u.gender, u.session, sorted(u.attributes.items()), content, record.kind]
            digest.update(json.dumps(facts).encode() + b"\n")
        return digest.hexdigest()


def _line(utterance: Utterance, record: Record, corpus: Corpus) -> dict[str, Any]:
    path = utterance.path
    below = path.relative_to(corpus.root) if path.is_relative_to(corpus.root) else path
    line: dict[str, Any] = {**asdict(record), "path": str(below)}
    return {key: value for key, value in line.items() if value != ""}


def _records(path: Path) -> dict[str, Record]:
    """The records of a list; a line that is not one is as if it were not there."""
    names = {f.name for f in fields(Record)}
    records = {}
    try:
        with open_input(path) as handle:
            for text in iter(lambda: handle.readline(LONGEST_LINE), b""):
                try:
                    line = json.loads(text)
                    record = Record(**{key: value for key, value in line.items() if key in names})
                except (ValueError, TypeError, AttributeError, RecursionError):
                    continue
                if isinstance(record.utterance, str) and isinstance(record.sha256, str):
                    records[record.utterance] = record
    except (InputError, OSError):
        pass
    return records


def _journal_records(shard: parquet.Shard) -> list[Record]:
    names = [f.name for f in fields(Record)]
    if not set(names) <= set(shard.columns):
        return []  # of another version
    columns = parquet.read_columns(shard, names)
    return [
        Record(u, int(size), int(time), sha, float(sec), kind, what, int(changed), stretch)
        for u, size, time, sha, sec, kind, what, changed, stretch in zip(
            *(columns[name] for name in names), strict=True
        )
    ]


def _sound(shard: parquet.Shard) -> bool:
    """Every page agrees with its checksum. Reading a store is nothing beside making it."""
    try:
        texts = parquet.read_columns(shard, [name for name in shard.columns if name != "vector"])
        rows = {len(column) for column in texts.values()} | {sum(len(part) for part in parquet.read_vectors(shard))}
    except InputError:
        return False
    return rows == {shard.rows}


def _gather(kept: Sequence[Kept]) -> NDArray[np.float32]:
    """The vectors in this order, each file read once."""
    by_file: dict[Path, list[tuple[int, int]]] = {}
    table: NDArray[np.float32] | None = None
    for position, entry in enumerate(kept):
        if entry.vector is None:
            by_file.setdefault(entry.file, []).append((position, entry.row))
            continue
        if table is None:
            table = np.empty((len(kept), len(entry.vector)), np.float32)
        table[position] = entry.vector
    for file, places in by_file.items():
        shards, problems = parquet.open_shards(file)
        if not shards:
            raise VeilmeterError(problems[0].what, path=file, fix="remove the file and run again")
        vectors = np.concatenate(list(parquet.read_vectors(shards[0])))
        if table is None:
            table = np.empty((len(kept), vectors.shape[1]), np.float32)
        positions, rows = np.array(places).T
        table[positions] = vectors[rows]
    assert table is not None
    return table


def _metadata(path: Path) -> dict[str, Any]:
    """The metadata of a Parquet file; empty if it is missing or corrupt."""
    shards, _ = parquet.open_shards(path) if path.is_file() else ([], [])
    return dict(shards[0].metadata) if shards else {}


def _json(path: Path) -> dict[str, Any]:
    try:
        parsed = read_input_json(path)
    except InputError:
        return {}
    return parsed if isinstance(parsed, dict) else {}


def _first_line(path: Path) -> dict[str, Any]:
    try:
        with open_input(path) as handle:
            parsed = json.loads(handle.readline(LONGEST_LINE))
    except (InputError, OSError, ValueError, RecursionError):
        return {}
    return parsed if isinstance(parsed, dict) else {}
