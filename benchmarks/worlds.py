"""Simulation benchmark: how often is the verdict wrong where the truth is known?

    python -m benchmarks.worlds [--worlds perfect rotation ...] [--people 20 40 100] [--seeds 5] [--processes 2]
                                [--keep FILE] [--minutes 8]

Speakers are simulated (`benchmarks.world_cases`), or real x-vectors of the VoicePrivacy 2020 challenge (where the
shared data lies beside the repository). For each world it is known whether people can be recognized. Counted are

- false reassurance: a trustworthy "low" where people can be recognized (none is allowed);
- trusted false alarms: a trustworthy level above what is true (at most one in twenty);
- certain alarms that are doubted (none is allowed), and findings that are not true of the world;
- coverage: how often the headline's interval covers the true value (`benchmarks.world_coverage`).

The whole should take half an hour on two cores: large worlds have fewer seeds, the largest are few. With `--keep`
results are added to a file and cases that it has are skipped; after `--minutes` the benchmark stops. So it can be run
in several sittings. The reference draws, which give the true values, follow after all cases.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.world_coverage import ReferenceDraw, covers, covers_everywhere, draw_reference, wanted_references
from benchmarks.world_outcomes import REAL, SHARED, Outcome, assess_world, recognizable, world_of
from benchmarks.world_outcomes import worlds as every_world
from benchmarks.world_traps import TRAPS

# How many of each size: where people can be recognized, and where nobody can be. What is clear varies little from seed
# to seed; false alarms are rare, and it takes many worlds to count them.
SEEDS = {20: (3, 5), 40: (3, 5), 100: (1, 3), 400: (1, 3), 2000: (1, 1)}
REAL_SEEDS = (1, 2)
TRAP_SEEDS = (3, 3)
# Large worlds are few: those where size matters.
ONLY = {
    400: ("perfect", "new voices", "one voice", "1 % unprotected", "low variance", "norm", "few sessions", "swapped",
          "faint", "few recordings", "perfect, heavy tails", "perfect, people twice"),
    2000: ("perfect", "1 % unprotected", "faint"),
}  # fmt: skip


def summary(outcomes: Sequence[Outcome], references: Sequence[ReferenceDraw] = ()) -> Iterator[str]:
    """A line per world and size, then what counts, by size and of all."""
    rows: dict[tuple[str, int], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        rows[outcome.world, outcome.people].append(outcome)
    yield f"{'world':28}{'people':>7}{'truth':>14}  low raised high unknown  trusted  covered  doubts"
    for (world, people), of_world in rows.items():
        counts = [sum(one.level == level for one in of_world) for level in ("low", "raised", "high", "unknown")]
        inside = covers(of_world, [one for one in references if (one.world, one.people) == (world, people)])
        truth = (of_world[0].most or "recognizable") if of_world[0].recognizable else "nobody"
        doubts = ", ".join(sorted({doubt for one in of_world for doubt in one.distrust}))
        yield (
            f"{world:28}{people:7}{truth:>14}  {counts[0]:3} {counts[1]:6} {counts[2]:4} {counts[3]:7}"
            f"  {sum(one.trustworthy for one in of_world):3}/{len(of_world):<3}"
            f"  {f'{sum(inside)}/{len(inside)}' if inside else '-':>7}  {doubts}"
        )
    sizes = sorted({people for _, people in rows})
    for people in sizes if len(sizes) > 1 else ():
        yield f"{people} people:"
        yield from (f"  {line}" for line in _counted([one for one in outcomes if one.people == people], references))
    yield from _counted(outcomes, references)
    for wrong in outcomes:
        if wrong.untrue:
            yield f"  untrue: {wrong.world}, {wrong.people} people, seed {wrong.seed}: {'; '.join(wrong.untrue)}"
        if wrong.falsely_reassuring or wrong.false_alarm:
            why = ", ".join(f"{name} {level}" for name, level in wrong.criteria.items())
            yield f"  wrong: {wrong.world}, {wrong.people} people, seed {wrong.seed}: {wrong.level} ({why})"
    seconds = [sum(one.seconds for one in some) for some in (outcomes, references)]
    yield f"processor time: {seconds[0]:.0f} s, of reference draws {seconds[1]:.0f} s"


def _counted(outcomes: Sequence[Outcome], references: Sequence[ReferenceDraw]) -> Iterator[str]:
    reassuring = sum(one.falsely_reassuring for one in outcomes)
    alarms = sum(one.false_alarm for one in outcomes)
    leaking = sum(one.recognizable for one in outcomes)
    found = sum(one.recognizable and one.level in ("raised", "high") for one in outcomes)
    yield f"raised or high where people can be recognized: {found} of {leaking}"
    yield f"false reassurance: {reassuring} of {leaking} (wanted: 0)"
    yield f"trusted false alarms: {alarms} of {len(outcomes) - leaking} (wanted: at most 1 in 20)"
    doubted, untrue = (sum(bool(getattr(one, name)) for one in outcomes) for name in ("doubted_alarm", "untrue"))
    yield f"certain alarms that are doubted: {doubted} (wanted: 0)"
    yield f"worlds with findings that are not true of them: {untrue} of {len(outcomes)} (wanted: at most 1 in 20)"
    inside = covers_everywhere(outcomes, references)
    if inside:
        yield f"coverage of the headline's interval: {np.mean(inside):.1%} of {len(inside)} (wanted: 93 to 98 %)"


def tasks(
    worlds: Sequence[str], sizes: Mapping[int, tuple[int, int]], first_seed: int = 0
) -> list[tuple[str, int, int]]:
    """World, number of people and seed of every case, so that every world comes early."""
    every = []
    for people, of_size in sizes.items():
        for world in worlds:
            fixed = 0 if world in REAL else world_of(world).people
            if (world in REAL and not SHARED.is_dir()) or world not in ONLY.get(people, worlds):
                continue
            size = people if fixed is None else fixed
            of_world = REAL_SEEDS if world in REAL else TRAP_SEEDS if world in TRAPS else of_size
            seeds = of_world[not recognizable(world)]
            every += [(seed, size, world) for seed in range(first_seed, first_seed + seeds)]
    return [(world, people, seed) for seed, people, world in sorted(dict.fromkeys(every), key=lambda task: task[:2])]


def read_kept(path: Path) -> tuple[list[Outcome], list[ReferenceDraw]]:
    """Results of earlier sittings, in their order."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    outcomes = [
        Outcome(
            **{
                **row,
                "distrust": tuple(row["distrust"]),
                "untrue": tuple(row.get("untrue", ())),
                "interval": row["interval"] and tuple(row["interval"]),
            }
        )
        for row in rows
        if "level" in row
    ]
    return outcomes, [ReferenceDraw(**row) for row in rows if "level" not in row]


class Benchmark:
    """Assesses worlds and computes reference draws until the time is over; appends each result to a file."""

    def __init__(self, keep: Path | None, minutes: float, processes: int) -> None:
        self.keep, self.processes = keep, processes
        self.end = time.monotonic() + 60 * minutes
        self.outcomes, self.references = read_kept(keep) if keep else ([], [])

    def assess(self, cases: Sequence[tuple[str, int, int]]) -> int:
        """How many cases are still open after it."""
        done = {(past.world, 0 if past.world in REAL else past.people, past.seed) for past in self.outcomes}
        left = [case for case in cases if case not in done]
        for outcome in self._done(assess_world, left):
            self.outcomes.append(outcome)
            left.pop(0)
            print(f"{outcome.world}, {outcome.people} people, seed {outcome.seed}: {outcome.level}", flush=True)
        return len(left)

    def draw(self) -> int:
        """How many are still open after it."""
        done = {(past.world, past.people, past.seed) for past in self.references}
        left = [task for task in wanted_references(self.outcomes) if task[:3] not in done]
        for reference in self._done(draw_reference, left):
            self.references.append(reference)
            left.pop(0)
        return len(left)

    def _done(self, work: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        rest, at_once = list(tasks), 2 * self.processes
        with ProcessPoolExecutor(self.processes) as pool:
            while rest and time.monotonic() < self.end:
                some, rest = rest[:at_once], rest[at_once:]
                for result in pool.map(work, *zip(*some, strict=True)):
                    if self.keep:
                        with self.keep.open("a", encoding="utf-8") as file:
                            file.write(json.dumps(asdict(result)) + "\n")
                    yield result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="*", default=every_world(), metavar="WORLD")
    parser.add_argument("--people", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--seeds", type=int, help="as many for every size")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="add results to it; skip cases that it has")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sizes = {people: (options.seeds,) * 2 if options.seeds else SEEDS.get(people, (1, 1)) for people in options.people}
    benchmark = Benchmark(options.keep, options.minutes, options.processes)
    still_open = benchmark.assess(tasks(options.worlds, sizes, options.first_seed))
    missing = benchmark.draw()
    print(*summary(benchmark.outcomes, benchmark.references), sep="\n")
    if still_open or missing:
        print(f"still open: {still_open} cases, {missing} reference draws")


if __name__ == "__main__":
    main()
