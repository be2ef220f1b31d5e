"""A court of worlds whose truth is known: what an assessment says of them, and how often that is wrong.

    python -m benchmarks.worlds [--worlds perfect rotation ...] [--people 20 40 100] [--seeds 5] [--processes 2]
                                [--keep FILE] [--minutes 8]

Speakers are simulated (`benchmarks.world_cases`), or real x-vectors of the VoicePrivacy 2020 challenge (where the
shared data lies beside the repository). Each world says whether people can be recognized in it. Counted are

- false reassurance: a trustworthy "low" where people can be recognized (none is allowed);
- trusted false alarms: a trustworthy "raised" or "high" where nobody can be (at most one in twenty);
- coverage: how often the headline's interval holds the mean of that very figure over all seeds of the world.

The whole should take half an hour on two cores: large worlds have fewer seeds, the largest are few. With `--keep`
judgments are added to a file, those that stand there already are not passed again, and after `--minutes` it stops: a
court can sit in several sessions.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from unittest.mock import patch

import numpy as np

from benchmarks.world_cases import WORLDS, voices_of
from veilmeter import assess
from veilmeter.assessment import measuring
from veilmeter.core.errors import InputError
from veilmeter.core.estimates import Estimates
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.scores.null import null_levels

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "vpc2020-b1" / "extractor-original"
ATTACKERS = ("ignorant", "lazy-informed", "informed", "procrustes", "adaptive")
OPTIONS: dict[str, Any] = {
    "lengths": [1, 3],
    "measures": ["scores", "linkability", "singling-out", "inversion"],
    "resamples": 60,
}
NOISE_DRAWS = 8
# How many of each size: where people can be recognized, and where nobody can be. What is clear varies little from seed
# to seed; false alarms are rare, and it takes many worlds to count them.
SEEDS = {20: (3, 5), 40: (3, 5), 100: (1, 3), 400: (1, 3), 2000: (1, 1)}
REAL_SEEDS = (1, 2)
# Large worlds are few: those where size matters.
ONLY = {
    400: ("perfect", "new voices", "one voice", "1 % unprotected", "low variance", "norm", "few sessions", "swapped",
          "faint", "few recordings", "perfect, heavy tails", "perfect, people twice"),
    2000: ("perfect", "1 % unprotected", "faint"),
}  # fmt: skip
REAL = ("B1", "B1, trials exchanged")


@dataclass(frozen=True)
class Judgment:
    """What was said of one world."""

    world: str
    people: int
    seed: int
    recognizable: bool
    level: Literal["low", "raised", "high", "unknown"]
    trustworthy: bool
    distrust: tuple[str, ...]
    point: str
    interval: tuple[float, float] | None
    curve: dict[str, float]
    seconds: float
    criteria: dict[str, str] = field(default_factory=dict)

    @property
    def falsely_reassuring(self) -> bool:
        return self.recognizable and self.trustworthy and self.level == "low"

    @property
    def false_alarm(self) -> bool:
        return not self.recognizable and self.trustworthy and self.level in ("raised", "high")


@contextmanager
def simulated(world: str, people: int, seed: int) -> Iterator[dict[str, Any]]:
    rng = np.random.default_rng([seed, people, int.from_bytes(world.encode(), "big") % (1 << 32)])
    voices = voices_of(WORLDS[world], people, rng)
    case = WORLDS[world].make(voices)
    names = [f"s{person:04d}" for person in voices.own]
    ids = [f"{name}-{take}" for name, take in zip(names, voices.take, strict=True)]
    columns = {"gender": ["fm"[person % 2] for person in voices.own], **case.attributes}
    vectors = {"original": case.original, "anonymized": case.anonymized, "attacker_run": case.again}
    sides = {role: Embeddings(rows, ids, names, columns) for role, rows in vectors.items() if rows is not None}
    by = {"by": sorted(columns.keys() - {"session"})}
    if case.trials is None:
        yield {**sides, **by}
        return
    # Whoever is not tried is enrolled.
    tried = [name for name, trial in zip(ids, case.trials, strict=True) if trial]
    with _lists([name for name in ids if name not in set(tried)], tried) as lists:
        yield {**sides, **by, **lists}


@contextmanager
def real(world: str, seed: int) -> Iterator[dict[str, Any]]:
    """Original and B1 x-vectors, enrollment and trials of the challenge. Exchanged: every trial recording is replaced
    by one that was drawn among all of them, so that nothing of the right person is left, not even the gender."""
    from veilmeter.data.embeddings import joined
    from veilmeter.data.formats.vectors import read_embeddings

    parts = ("enrolls", "trials_f", "trials_m")
    original, anonymized = (
        joined([read_embeddings(SHARED / f"xvect_libri_test_{part}{end}") for part in parts]) for end in ("", "_anon")
    )
    anonymized = anonymized.of_utterances(list(original.utterances))
    enrolled = len(read_embeddings(SHARED / "xvect_libri_test_enrolls"))
    if world != "B1":
        vectors = anonymized.vectors.copy()
        vectors[enrolled:] = np.random.default_rng(seed).permutation(vectors[enrolled:])
        anonymized = anonymized.with_vectors(vectors)
    with _lists(original.utterances[:enrolled], original.utterances[enrolled:]) as lists:
        yield {"original": original, "anonymized": anonymized, **lists}


@contextmanager
def _lists(enrolled: Sequence[str], tried: Sequence[str]) -> Iterator[dict[str, str]]:
    with TemporaryDirectory() as folder:
        paths = {name: Path(folder) / name for name in ("enroll", "trials")}
        for path, ids in zip(paths.values(), (enrolled, tried), strict=True):
            path.write_text("\n".join(ids) + "\n")
        yield {name: str(path) for name, path in paths.items()}


@contextmanager
def quickly() -> Iterator[None]:
    """Without what no level and no check depends on: what noise gives single measures of scores where people are
    relabeled (a few draws will do), learning curves, and intervals of 1-EER."""
    few = partial(null_levels, draws=NOISE_DRAWS)
    with ExitStack() as patches:
        for module in ("summary", "score_sets"):
            patches.enter_context(patch(f"veilmeter.metrics.scores.{module}.null_levels", few))
        patches.enter_context(patch.object(measuring, "_learning", lambda job, tried: Estimates()))
        plain = measuring._one_minus_eer
        values_only = patch.object(
            measuring,
            "_one_minus_eer",
            lambda matrix, asked, measured: plain(matrix, replace(asked, intervals=False), measured),
        )
        patches.enter_context(values_only)
        yield


def recognizable(world: str) -> bool:
    """The truth."""
    return world == "B1" if world in REAL else WORLDS[world].recognizable


def judge(
    world: str, people: int, seed: int, attackers: Sequence[str] = ATTACKERS, options: Mapping[str, Any] = OPTIONS
) -> Judgment:
    """One assessment of one world."""
    started = time.process_time()
    truth = recognizable(world)
    with quickly(), real(world, seed) if world in REAL else simulated(world, people, seed) as sides:
        try:
            results = assess(**sides, attackers=list(attackers), seed=seed, **options).results
        except InputError as error:  # a refusal reassures nobody
            doubts = (f"refused: {error}",)
            return Judgment(world, people, seed, truth, "unknown", False, doubts, "", None, {}, 0.0)
    linking = results.criteria["linking"]
    curve = {
        _point(name, point.at): point.value
        for name, attacker in results.attacks.items()
        for point in attacker.estimates.points("linkability")
    }
    return Judgment(
        world=world,
        people=people or results.protocol.enrolled_speakers,
        seed=seed,
        recognizable=truth,
        level=results.verdict.level,
        trustworthy=results.verdict.trustworthy,
        distrust=tuple(check.name for check in results.checks if check.failed),
        point=_point(linking.attacker, linking.estimate.at),
        interval=None if linking.group else linking.estimate.interval,
        curve=curve,
        seconds=time.process_time() - started,
        criteria={name: criterion.level for name, criterion in results.criteria.items() if criterion.risk},
    )


def _point(attacker: str, at: Mapping[str, Any]) -> str:
    return f"{attacker}, {at.get('length')} utterances among {at.get('speakers')}"


def covered(judgments: Sequence[Judgment]) -> list[bool]:
    """Whether each headline's interval holds the mean of that figure over the other seeds of the world.

    The mean of n others varies itself: a distance from it is larger than one from the truth by sqrt(1 + 1/n).
    """
    inside = []
    for judgment in judgments:
        others = [other.curve[judgment.point] for other in judgments if other is not judgment
                  and judgment.point in other.curve]  # fmt: skip
        if judgment.interval is not None and len(others) >= 2:
            value = judgment.curve[judgment.point]
            truth = value + (np.mean(others) - value) / np.sqrt(1 + 1 / len(others))
            inside.append(bool(judgment.interval[0] <= truth <= judgment.interval[1]))
    return inside


def summary(judgments: Sequence[Judgment]) -> Iterator[str]:
    """A line per world and size, then what counts, by size and of all."""
    rows: dict[tuple[str, int], list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        rows[judgment.world, judgment.people].append(judgment)
    yield f"{'world':28}{'people':>7}{'truth':>14}  low raised high unknown  trusted  covered  doubts"
    for (world, people), of_world in rows.items():
        counts = [sum(one.level == level for one in of_world) for level in ("low", "raised", "high", "unknown")]
        inside = covered(of_world)
        truth = "recognizable" if of_world[0].recognizable else "nobody"
        doubts = ", ".join(sorted({doubt for one in of_world for doubt in one.distrust}))
        yield (
            f"{world:28}{people:7}{truth:>14}  {counts[0]:3} {counts[1]:6} {counts[2]:4} {counts[3]:7}"
            f"  {sum(one.trustworthy for one in of_world):3}/{len(of_world):<3}"
            f"  {f'{sum(inside)}/{len(inside)}' if inside else '-':>7}  {doubts}"
        )
    sizes = sorted({people for _, people in rows})
    for people in sizes if len(sizes) > 1 else ():
        yield f"{people} people:"
        yield from (f"  {line}" for line in _counted([one for one in judgments if one.people == people]))
    yield from _counted(judgments)
    for wrong in judgments:
        if wrong.falsely_reassuring or wrong.false_alarm:
            why = ", ".join(f"{name} {level}" for name, level in wrong.criteria.items())
            yield f"  wrong: {wrong.world}, {wrong.people} people, seed {wrong.seed}: {wrong.level} ({why})"
    yield f"processor time: {sum(one.seconds for one in judgments):.0f} s"


def _counted(judgments: Sequence[Judgment]) -> Iterator[str]:
    reassuring = sum(one.falsely_reassuring for one in judgments)
    alarms = sum(one.false_alarm for one in judgments)
    leaking = sum(one.recognizable for one in judgments)
    found = sum(one.recognizable and one.level in ("raised", "high") for one in judgments)
    yield f"raised or high where people can be recognized: {found} of {leaking}"
    yield f"false reassurance: {reassuring} of {leaking} (wanted: 0)"
    yield f"trusted false alarms: {alarms} of {len(judgments) - leaking} (wanted: at most 1 in 20)"
    worlds: dict[tuple[str, int], list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        worlds[judgment.world, judgment.people].append(judgment)
    inside = [held for of_world in worlds.values() for held in covered(of_world)]
    if inside:
        yield f"the headline's interval holds the truth: {np.mean(inside):.1%} of {len(inside)} (wanted: 93 to 98 %)"


def tasks(
    worlds: Sequence[str], sizes: Mapping[int, tuple[int, int]], first_seed: int = 0
) -> list[tuple[str, int, int]]:
    """World, number of people and seed of everything to be judged, so that every world comes early."""
    every = []
    for people, of_size in sizes.items():
        for world in worlds:
            fixed = 0 if world in REAL else WORLDS[world].people
            if (world in REAL and not SHARED.is_dir()) or world not in ONLY.get(people, worlds):
                continue
            size = people if fixed is None else fixed
            seeds = (REAL_SEEDS if world in REAL else of_size)[not recognizable(world)]
            every += [(seed, size, world) for seed in range(first_seed, first_seed + seeds)]
    return [(world, people, seed) for seed, people, world in sorted(dict.fromkeys(every), key=lambda task: task[:2])]


def _task(task: tuple[str, int, int]) -> Judgment:
    return judge(*task)


def read_judgments(path: Path) -> list[Judgment]:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    return [
        Judgment(**{**row, "distrust": tuple(row["distrust"]), "interval": row["interval"] and tuple(row["interval"])})
        for row in rows
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="*", default=[*WORLDS, *REAL], metavar="WORLD")
    parser.add_argument("--people", nargs="*", type=int, default=list(SEEDS))
    parser.add_argument("--seeds", type=int, help="as many for every size")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="judgments are kept there and not passed twice")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    options = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    sizes = {people: (options.seeds,) * 2 if options.seeds else SEEDS.get(people, (1, 1)) for people in options.people}
    judgments = read_judgments(options.keep) if options.keep else []
    passed = {(past.world, 0 if past.world in REAL else past.people, past.seed) for past in judgments}
    open_cases = [task for task in tasks(options.worlds, sizes, options.first_seed) if task not in passed]
    end = time.monotonic() + 60 * options.minutes
    with ProcessPoolExecutor(options.processes) as pool:
        while open_cases and time.monotonic() < end:
            some, open_cases = open_cases[: 2 * options.processes], open_cases[2 * options.processes :]
            for judgment in pool.map(_task, some):
                judgments.append(judgment)
                print(f"{judgment.world}, {judgment.people} people, seed {judgment.seed}: {judgment.level}", flush=True)
                if options.keep:
                    with options.keep.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(judgment)) + "\n")
    print(*summary(judgments), sep="\n")
    if open_cases:
        print(f"{len(open_cases)} cases are still open")


if __name__ == "__main__":
    main()
