"""Table 2 of Champion et al. 2021, "On the invertibility of a voice privacy system using embedding alignment".

    python examples/paper002_table2.py DATA [--lines 1,2,12,21] [--seeds 10] [--json]

DATA holds the x-vectors of the VoicePrivacy 2020 protocol, original and anonymized with baseline B1, in
`extractor-original/` and `extractor-retrained/`, each with `xvect_libri_test_{enrolls,trials_f,trials_m}[_anon]/`.

Lines 13-20 and 22 are called unsupervised in the paper, but their final match reads the order of the rows, which is
the answer (see veilmeter.attacks.inversion.procrustes); `--honest` runs them with a match that does not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import fmean, stdev

from veilmeter import inversion
from veilmeter.core.engine import map_ordered, open_engine
from veilmeter.core.errors import VeilmeterError
from veilmeter.data.embeddings import Embeddings, concatenate
from veilmeter.data.formats.vectors import read_embeddings
from veilmeter.data.matching import match

PAPER_SEED = 1111
CELLS = ("eer_f", "eer_m", "top1_f", "top1_m")


@dataclass(frozen=True)
class Line:
    number: int
    name: str
    paper: tuple[float, ...]
    method: str = "none"
    by_gender: bool = False
    pca: bool = False
    retrained: bool = False
    oracle: bool = False
    enroll_anonymized: bool = False
    trials_anonymized: bool = True

    @property
    def seeded(self) -> bool:
        return self.method == "wasserstein"

    @property
    def label(self) -> str:
        parts = [self.name, "oracle" if self.oracle else "", "gender" if self.by_gender else ""]
        parts += ["PCA" if self.pca else "", "retrained" if self.retrained else ""]
        return " ".join(part for part in parts if part)


def _table() -> dict[int, Line]:
    lines = [
        Line(1, "clear baseline", (10.3, 2.9), trials_anonymized=False),
        Line(2, "ignorant", (49.0, 42.6)),
        Line(3, "lazy-informed", (29.4, 29.1), enroll_anonymized=True),
        Line(4, "semi-informed", (17.1, 14.1), enroll_anonymized=True, retrained=True),
    ]
    paper = {
        "procrustes": [
            (41.9, 30.6, 25.5, 36.6), (40.1, 31.0, 26.6, 45.8), (32.6, 32.7, 27.1, 40.8), (25.4, 24.4, 30.5, 50.0),
            (29.0, 23.6, 58.7, 59.2), (27.0, 21.1, 54.8, 56.6), (21.5, 23.1, 51.9, 57.0), (14.6, 13.1, 59.8, 60.0),
        ],
        "wasserstein": [
            (43.6, 33.4, 25.2, 22.1), (40.7, 35.9, 26.6, 20.9), (36.3, 35.4, 24.1, 38.6), (26.4, 25.2, 24.1, 39.4),
            (31.4, 24.2, 57.2, 60.2), (28.6, 24.0, 48.6, 47.1), (21.6, 23.6, 48.5, 62.1), (14.0, 13.2, 57.4, 61.4),
        ],
    }  # fmt: skip
    names = {"procrustes": "Procrustes", "wasserstein": "Wasserstein-Procrustes"}
    for method, rows in paper.items():
        for row in rows:
            place = (len(lines) - 4) % 8
            lines.append(Line(len(lines) + 1, names[method], row, method, place % 2 == 1, place % 4 >= 2, place >= 4))
    lines.append(Line(21, names["procrustes"], (12.1, 8.7, 98.8, 98.0), "procrustes", True, True, True, True))
    lines.append(Line(22, names["wasserstein"], (13.1, 10.0, 99.0, 98.4), "wasserstein", True, True, True, True))
    return {line.number: line for line in lines}


TABLE = _table()


@lru_cache(maxsize=32)
def vectors(data: str, extractor: str, part: str) -> Embeddings:
    return read_embeddings(Path(data) / f"extractor-{extractor}" / f"xvect_libri_test_{part}")


def of_people(data: str, extractor: str, part: str) -> Embeddings:
    """The same with people's own gender: an anonymized folder may hold that of the pseudo-voices."""
    there = vectors(data, extractor, part)
    return match(vectors(data, "original", part.removesuffix("_anon")), there).anonymized


def both_genders(data: str, extractor: str, suffix: str) -> Embeddings:
    """The trials of both genders in one set."""
    return concatenate([of_people(data, extractor, f"trials_{gender}{suffix}") for gender in "fm"])


@dataclass(frozen=True)
class Task:
    """A line with some of its seeds: what one process does at a time."""

    data: str
    line: int
    seeds: tuple[int, ...]
    honest: bool = False
    rounds: int = 0


def run(task: Task) -> list[list[float]]:
    """For each seed the cells of the line: EER of both genders and, with a map, Top-1 of both."""
    line, data = TABLE[task.line], task.data
    extractor = "retrained" if line.retrained else "original"
    anonymized = both_genders(data, extractor, "_anon" if line.trials_anonymized else "")
    if line.method == "none":
        enroll = of_people(data, extractor, "enrolls_anon" if line.enroll_anonymized else "enrolls")
        maps = [inversion.identity_map(enroll.dimension)]
        evaluations = [inversion.evaluate(maps[0], anonymized, None, enroll, within="gender")]
        return [_cells(one, top1=False) for one in evaluations]
    enroll, clear = vectors(data, "original", "enrolls"), both_genders(data, "original", "")
    known = (clear, anonymized) if line.oracle else (enroll, of_people(data, extractor, "enrolls_anon"))
    settings = inversion.InversionSettings(
        method="wasserstein" if line.seeded else "procrustes",
        pca=70 if line.pca else None,
        by="gender" if line.by_gender else "",
        matching="assignment" if task.honest else "row-order",
        rounds=task.rounds,
    )
    maps = inversion.learn_seeds(*known, settings, task.seeds)
    return [_cells(inversion.evaluate(one, anonymized, clear, enroll, within="gender")) for one in maps]


def _cells(evaluation: inversion.Evaluation, *, top1: bool = True) -> list[float]:
    eers = evaluation.eer(method="roc", fold=True)  # every enrolled speaker with every trial: the protocol's own key
    cells = [eers["f"], eers["m"]]
    if top1:
        both = evaluation.top1()
        cells += [both["f"][1], both["m"][1], both["f"][0], both["m"][0]]
    return cells


def table(
    data: str,
    numbers: Sequence[int],
    *,
    seeds: int = 10,
    jobs: int | None = None,
    honest: bool = False,
    rounds: int = 0,
) -> dict[int, list[list[float]]]:
    """The cells of each line, one row per seed."""
    chosen = tuple(range(PAPER_SEED, PAPER_SEED + seeds))
    engine = open_engine(jobs)
    # The long lines first, so that no process is left alone with one at the end; each line in as many pieces as there
    # are processes, because a piece computes once what does not depend on the seed.
    size = -(-seeds // engine.workers)
    tasks = []
    for number in sorted(numbers, key=lambda n: (n != 22, TABLE[n].pca, -n)):
        line_seeds = chosen if TABLE[number].seeded else chosen[:1]
        for start in range(0, len(line_seeds), size):
            tasks.append(Task(data, number, line_seeds[start : start + size], honest, rounds))
    try:
        results = map_ordered(engine, run, tasks)
    finally:
        engine.close()
    found: dict[int, list[list[float]]] = {}
    for task, rows in zip(tasks, results, strict=True):
        found.setdefault(task.line, []).extend(rows)
    return {number: found[number] for number in sorted(found)}


def summary(number: int, rows: list[list[float]], seeds: int) -> dict[str, object]:
    """A line for the JSON: the cells, and for seeded lines mean and spread over the seeds.

    Without PCA the paper's value is one run with seed 1111, and so is this; with PCA the runs scatter widely, and the
    value is their mean.
    """
    line = TABLE[number]
    names = [*CELLS, "top1_reverse_f", "top1_reverse_m"][: len(rows[0])]
    means = [fmean(column) for column in zip(*rows, strict=True)]
    values = rows[0] if line.seeded and not line.pca else means
    found: dict[str, object] = {name: round(value, 3) for name, value in zip(names, values, strict=True)}
    found |= {"line": line.label, "paper": dict(zip(CELLS, line.paper, strict=False))}
    if line.seeded:
        columns = list(zip(names, zip(*rows, strict=True), strict=True))
        found["seeds"] = list(range(PAPER_SEED, PAPER_SEED + seeds))
        found["mean"] = {name: round(fmean(column), 3) for name, column in columns}
        found["range"] = {name: [round(min(column), 3), round(max(column), 3)] for name, column in columns}
        found["sd"] = {name: round(stdev(column), 3) if len(column) > 1 else 0.0 for name, column in columns}
    return found


def show(results: dict[str, dict[str, object]]) -> None:
    print(f"{'':3} {'':48} {'EER F':>13} {'EER M':>13} {'Top-1 F':>13} {'Top-1 M':>13} {'reverse F':>10} {'M':>6}")
    for number, found in results.items():
        paper = found["paper"]
        assert isinstance(paper, dict)
        cells = []
        for name in CELLS:
            cells.append(f"{found[name]:6.2f} ({paper[name]:4.1f})" if name in found else "")
        reverse = [f"{found[name]:.2f}" if name in found else "" for name in ("top1_reverse_f", "top1_reverse_m")]
        print(
            f"{number:>3} {found['line']:48} " + " ".join(f"{c:>13}" for c in cells),
            f"{reverse[0]:>10} {reverse[1]:>6}",
        )
    print("\nIn brackets: the paper. Lines 13, 14, 17, 18: seed 1111; 15, 16, 19, 20, 22: mean over the seeds.")
    print("Top-1 as in the paper: each clear trial among the restored ones; reverse: each restored among the clear.")


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", metavar="DATA")
    parser.add_argument("--lines", help="some lines only, with commas; ranges as in 5-12")
    parser.add_argument("--seeds", type=int, default=10, help="how many for the Wasserstein lines (default 10)")
    parser.add_argument("--jobs", type=int, help="processes (default: all cores)")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--honest", action="store_true", help="match without the order of the rows")
    parser.add_argument("--refine", type=int, default=0, metavar="ROUNDS", help="refine on mutual nearest neighbors")
    given = parser.parse_args(arguments)
    try:
        numbers = _numbers(given.lines)
        if given.seeds < 1:
            raise VeilmeterError("at least one seed is needed", fix="give --seeds 1 or more")
        rows = table(given.data, numbers, seeds=given.seeds, jobs=given.jobs, honest=given.honest, rounds=given.refine)
    except VeilmeterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    results = {str(number): summary(number, found, given.seeds) for number, found in rows.items()}
    if given.json:
        print(json.dumps(results, indent=1))
    else:
        show(results)
    return 0


def _numbers(text: str | None) -> list[int]:
    if not text:
        return list(TABLE)
    chosen: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        try:
            chosen += range(int(first), int(last or first) + 1)
        except ValueError:
            raise VeilmeterError(f"{part!r} is not a line of the table", fix="give numbers, as in 1,2,12-14") from None
    wrong = [number for number in chosen if number not in TABLE]
    if wrong:
        raise VeilmeterError(f"Table 2 has no line {wrong[0]}", fix="give numbers from 1 to 22")
    return list(dict.fromkeys(chosen))


if __name__ == "__main__":
    raise SystemExit(main())
