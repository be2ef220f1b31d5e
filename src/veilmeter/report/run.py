"""A finished run: its results, its matrices, and, if the user allows it, its sound."""

from __future__ import annotations

import base64
import copy
import io
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, missing_extra
from veilmeter.metrics.similarity.matrices import Kind
from veilmeter.report.pseudonyms import pseudonyms, run_key

SCHEMA = 1
AUDIO_SPEAKERS = 30  # the riskiest ones; more would make a page that no mail carries
AUDIO_SECONDS = 6.0
QUADRANTS: tuple[Kind, ...] = ("OO", "OP", "PP")


@dataclass(frozen=True, eq=False)
class Matrices:
    """The similarity matrices, all with the same speakers in the same order."""

    speakers: tuple[str, ...]
    quadrants: Mapping[Kind, NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Run:
    folder: Path
    results: Mapping[str, Any]
    matrices: Matrices | None
    created: str


def load_run(folder: str | Path) -> Run:
    """Reads RUN/results.json and what lies beside it; says what is wrong if it is not a run."""
    root = Path(folder)
    path = root / "results.json"
    if not path.is_file():
        raise InputError(
            "this is not a run: it has no results.json", path=root, fix="give the folder of `assess --out`"
        )
    try:
        results = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"it can't be read: {error}", path=path, fix="run the assessment again") from None
    if not isinstance(results, dict) or "verdict" not in results or "attackers" not in results:
        raise InputError("this is not the result of an assessment", path=path, fix="give the folder of `assess --out`")
    if results.get("schema") != SCHEMA:
        raise InputError(
            f"its schema is {results.get('schema')!r}, this version reads {SCHEMA}", path=path, fix="update veilmeter"
        )
    created = ""
    timings = root / "timings.json"
    if timings.is_file():
        with suppress(OSError, ValueError, AttributeError, RecursionError):  # the page does without the day
            created = str(json.loads(timings.read_text(encoding="utf-8")).get("created", ""))[:10]
    return Run(root, results, _matrices(root / "tables" / "matrices.parquet"), created)


def _matrices(path: Path) -> Matrices | None:
    if not path.is_file():
        return None
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        names: dict[str, int] = {}
        parts = [file.read_row_group(number) for number in range(file.num_row_groups)]
        found = []
        for table in parts:
            kind, row, column = (table.column(name).combine_chunks() for name in ("quadrant", "row", "column"))
            labels = [
                np.array([names.setdefault(s, len(names)) for s in one.dictionary.to_pylist()], np.int64)
                for one in (row, column)
            ]
            places = [label[one.indices.to_numpy()] for label, one in zip(labels, (row, column), strict=True)]
            kinds = np.array(kind.dictionary.to_pylist(), object)[kind.indices.to_numpy()]
            found.append((kinds, *places, table.column("similarity").to_numpy()))
    except (pa.ArrowException, OSError, KeyError, AttributeError) as error:
        raise InputError(f"it can't be read: {error}", path=path, fix="run the assessment again") from None
    quadrants = {name: np.full((len(names), len(names)), np.nan) for name in QUADRANTS}
    for kinds, rows, columns, values in found:
        for name, matrix in quadrants.items():
            mine = kinds == name
            matrix[rows[mine], columns[mine]] = values[mine]
    return Matrices(tuple(names), quadrants)


def renamed(run: Run) -> tuple[Run, dict[str, str]]:
    """The run with pseudonyms instead of speaker ids, and which is which."""
    results = copy.deepcopy(dict(run.results))
    ids = [person["speaker"] for person in results.get("speakers", [])]
    ids += run.matrices.speakers if run.matrices else ()
    names = pseudonyms(ids, run_key(run.folder))
    for person in results.get("speakers", []):
        person["speaker"] = names[person["speaker"]]
    unprotected = results.get("unprotected")
    if unprotected:
        unprotected["speakers"] = [names.get(speaker, "?") for speaker in unprotected.get("speakers", [])]
    similarity = results.get("similarity")
    if similarity and isinstance(similarity.get("zoo"), list):
        for person in similarity["zoo"]:
            person["speaker"] = names.get(person["speaker"], "?")
    matrices = run.matrices and Matrices(tuple(names[s] for s in run.matrices.speakers), run.matrices.quadrants)
    return Run(run.folder, results, matrices, run.created), names


def sound(run: Run) -> dict[str, list[dict[str, str]]]:
    """Two recordings of each of the riskiest speakers, before and after, as data URIs, by speaker id."""
    from veilmeter.assessment.settings import make_settings
    from veilmeter.assessment.sources import read_source

    # As the run read them: several places, the variants of one folder, folders that links may lead to.
    given = run.results.get("parameters") or {}
    names = ("original", "anonymized", "layout", "part", "suffix", "root")
    settings = make_settings({name: given[name] for name in names if given.get(name) is not None})
    inputs = run.results.get("inputs", {})
    sides = {}
    for side in ("original", "anonymized"):
        entry = inputs.get(side) or {}
        if entry.get("kind") != "corpus":
            raise InputError(
                "there is no sound in this run: vectors were assessed, not recordings", fix="leave out --with-audio"
            )
        corpora = [read_source(Path(path), role=side, settings=settings) for path in getattr(settings, side)]
        sides[side] = {u.id: u for corpus in corpora for u in corpus.utterances}
    made: dict[str, list[dict[str, str]]] = {}
    for person in run.results.get("speakers", [])[:AUDIO_SPEAKERS]:
        both = [
            uid for uid, u in sides["original"].items() if u.speaker == person["speaker"] and uid in sides["anonymized"]
        ]
        made[person["speaker"]] = [
            {side: _data_uri(sides[side][uid].path) for side in ("original", "anonymized")} for uid in sorted(both)[:2]
        ]
    return made


def _data_uri(path: Path) -> str:
    try:
        import soundfile
    except ImportError:
        raise missing_extra("soundfile", "audio") from None
    from veilmeter.speech.audio import RATE, read_audio

    samples = read_audio(path)[: int(AUDIO_SECONDS * RATE)]
    packed = io.BytesIO()
    soundfile.write(packed, samples, RATE, format="MP3")
    return "data:audio/mpeg;base64," + base64.b64encode(packed.getvalue()).decode()
