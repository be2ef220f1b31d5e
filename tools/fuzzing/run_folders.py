"""Run folders (results.json, stages, tables), and other work that veilmeter keeps and reads again."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

Make = Callable[[Path], object]
Read = Callable[[Path], object]
KEY = "0" * 16


def make(folder: Path) -> None:
    """A small assessment, made once for all processes of a call."""
    shared = os.environ.get("VEILMETER_FUZZ_RUN")
    place = Path(shared) if shared else folder
    if not (place / "results.json").is_file():
        _assess(place)
        _shorten(place / "results.json")
    if place != folder:
        shutil.copytree(place, folder, dirs_exist_ok=True)


def _assess(folder: Path) -> None:
    from veilmeter.assessment import assess
    from veilmeter.data.embeddings import Embeddings

    rng = np.random.default_rng(0)
    names = [f"p{number // 3}" for number in range(15)]
    ids = [f"u{number}" for number in range(15)]
    genders = {"gender": ["fm"[number // 3 % 2] for number in range(15)]}
    places = np.repeat(rng.standard_normal((5, 6)), 3, 0)
    sides = [Embeddings(places + rng.standard_normal((15, 6)), ids, names, genders) for _ in range(2)]
    assess(*sides, out=folder, lengths=[1], resamples=10, attackers=["ignorant"],
           measures=["scores", "similarity", "linkability"])  # fmt: skip


def _shorten(file: Path) -> None:
    """Long lists say the same again: with a few entries of each, results are changed and read ten times as fast."""

    def short(form: Any) -> Any:
        if isinstance(form, dict):
            return {key: short(value) for key, value in form.items()}
        return [short(item) for item in form[:3]] if isinstance(form, list) else form

    file.write_text(json.dumps(short(json.loads(file.read_text()))))


def _read_results(folder: Path) -> object:
    from veilmeter.results.run_folder import read_results

    return read_results(folder)


def _report(folder: Path) -> object:
    from veilmeter.core.files import to_json
    from veilmeter.report.exports import latex, markdown
    from veilmeter.report.html import Options
    from veilmeter.report.public import public, reported
    from veilmeter.results.run_folder import results_to_json

    shown, _ = public(reported(folder), b"k" * 32)
    to_json(results_to_json(shown.results))
    return markdown(shown, Options()), latex(shown, Options())


def _gate(folder: Path) -> object:
    from veilmeter.results.gate import check_gate
    from veilmeter.results.limits import parse_limit
    from veilmeter.results.run_folder import read_results

    return check_gate(read_results(folder), [parse_limit("linkability@2=50%", "max"), parse_limit("eer=20%", "min")])


def _compare(folder: Path) -> object:
    from veilmeter.results.compare import compare

    return compare([folder, folder], resamples=4)


def _matrices(folder: Path) -> object:
    from veilmeter.results.run_folder import read_matrices

    return read_matrices(folder / "tables" / "matrices.parquet")


def _scores(folder: Path) -> object:
    from veilmeter.results.differences import read_run_scores
    from veilmeter.results.run_folder import read_results

    return read_run_scores(folder, read_results(folder), "ignorant")


def _stages(folder: Path) -> object:
    from veilmeter.assessment.tasks import Stages, TaskId, TaskKind

    stages = Stages(folder / "stages")
    names = [file.stem.rpartition("-") for file in sorted((folder / "stages").glob("*.json"))]
    return [stages.get(TaskId(TaskKind.ANALYSIS, name), key) for name, _, key in names]


def _seal_tables(folder: Path) -> None:
    """Whoever changes a table may change the digest beside it."""
    form = json.loads((folder / "results.json").read_bytes())
    form["tables"] = {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in (folder / "tables").glob("*.parquet")
    }
    (folder / "results.json").write_text(json.dumps(form))


def _seal_stages(folder: Path) -> None:
    from veilmeter.assessment.tasks import _check
    from veilmeter.core.files import to_json

    for file in (folder / "stages").glob("*.json"):
        try:
            form = json.loads(file.read_bytes())
            form["check"] = _check(form["arrays"], to_json(form["measured"], indent=None))
            file.write_text(json.dumps(form))
        except (ValueError, TypeError, KeyError, RecursionError, OverflowError):
            continue


RUNS: dict[str, tuple[Read, tuple[str, ...], Callable[[Path], object] | None, int]] = {
    "results": (_read_results, ("results.json",), None, 2),
    "report": (_report, ("results.json", "timings.json"), None, 20),
    "gate": (_gate, ("results.json",), None, 5),
    "comparison": (_compare, ("results.json",), None, 30),
    "matrices": (_matrices, ("matrices.parquet",), None, 3),
    "scores": (_scores, ("scores-ignorant.parquet",), _seal_tables, 10),
    "stages": (_stages, (".json", ".npz"), _seal_stages, 20),
}


def _make_manifest(folder: Path) -> None:
    from veilmeter.anonymizers.manifest import Entry, write_manifest

    entries = [Entry(f"u{n}", "a", f"{n}.wav", "0" * 64, f"{n}.wav", "1" * 64, "mcadams", "1", {"alpha": 0.8}, "p", 1.0)
               for n in range(4)]  # fmt: skip
    write_manifest(folder / "m.jsonl", entries)


def _read_manifest(folder: Path) -> object:
    from veilmeter.anonymizers.manifest import read_journal, read_manifest

    read_journal(folder / "m.jsonl")
    return read_manifest(folder / "m.jsonl")


def _make_timings(folder: Path) -> None:
    from veilmeter.anonymizers.manifest import Effort, Timings, write_timings

    write_timings(folder / "out", Timings("mcadams", "1", Effort(1.0, 2.0), Effort(3.0, 4.0)))


def _read_timings(folder: Path) -> object:
    from veilmeter.anonymizers.manifest import real_time_factor

    return real_time_factor([folder / "out"])


class _Heard:
    name, version = "asr", "1"

    def annotate(self, samples: object) -> dict[str, object]:
        return {}


def _make_transcripts(folder: Path) -> None:
    from veilmeter.speech.annotations import Annotation, _Store
    from veilmeter.speech.recordings import Record

    heard = {f"u{n}": Annotation(Record(f"u{n}", 9, 9, "0" * 64, 1.0), {"text": "a b", "confidence": 0.5})
             for n in range(3)}  # fmt: skip
    _Store(folder, _Heard()).finish(heard)  # type: ignore[arg-type]


def _read_transcripts(folder: Path) -> object:
    from veilmeter.speech.annotations import _Store

    return _Store(folder, _Heard()).read()  # type: ignore[arg-type]


def _make_store(folder: Path) -> None:
    from veilmeter.speech.extractors.store import Store
    from veilmeter.speech.recordings import Record

    store = Store(folder / "store", {"extractor": "x"})
    store.write_journal([(Record(f"u{n}", 9, 9, "0" * 64, 1.0), np.ones(3, np.float32)) for n in range(3)])
    store.close()


def _read_store(folder: Path) -> object:
    from veilmeter.speech.extractors.store import Store

    store = Store(folder / "store", {"extractor": "x"})
    try:
        return store.kept()
    finally:
        store.close()


def _make_printed(folder: Path) -> None:
    point = {
        "value": 0.5,
        "unit": "probability",
        "interval": [0.4, 0.6],
        "null": 0.1,
        "at": ["speakers"],
        "speakers": 2,
    }
    (folder / "printed.json").write_text(json.dumps({"estimates": {"linkability": [point], "singling-out": [point]}}))


def _read_printed(folder: Path) -> object:
    from veilmeter.cli.shared_options import read_curves

    return read_curves(f"ignorant={folder / 'printed.json'}")


KEPT: dict[str, tuple[Make, Read, tuple[str, ...], int]] = {
    "manifest": (_make_manifest, _read_manifest, ("",), 1),
    "timings": (_make_timings, _read_timings, ("",), 1),
    "transcripts": (_make_transcripts, _read_transcripts, (".jsonl",), 1),
    "store": (_make_store, _read_store, (".parquet",), 4),
    "printed": (_make_printed, _read_printed, ("",), 1),
}
