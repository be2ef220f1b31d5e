"""What an assessment says of one world: what the court of worlds (`benchmarks.worlds`) judges by."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from unittest.mock import patch

import numpy as np

from benchmarks.world_cases import WORLDS, voices_of
from veilmeter import assess
from veilmeter.assessment import attack
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimates
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.scores.summary import null_levels
from veilmeter.results.criteria import cases
from veilmeter.results.levels import chance_of
from veilmeter.results.model import Results

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "vpc2020-b1" / "extractor-original"
ATTACKERS = ("ignorant", "lazy-informed", "informed", "procrustes", "adaptive")
OPTIONS: dict[str, Any] = {
    "lengths": [1, 3],
    "measures": ["scores", "linkability", "singling-out", "inversion"],
    "resamples": 60,
}
NOISE_DRAWS = 8
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
    chance: float = 0.0  # what guessing gives, of the headline's figure

    @property
    def attacker(self) -> str:
        """Whose figure the headline shows; empty where the world was refused."""
        return self.point.partition(",")[0]

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
    from veilmeter.data.embeddings import concatenate
    from veilmeter.data.formats.vectors import read_embeddings

    parts = ("enrolls", "trials_f", "trials_m")
    original, anonymized = (
        concatenate([read_embeddings(SHARED / f"xvect_libri_test_{part}{end}") for part in parts])
        for end in ("", "_anon")
    )
    anonymized = anonymized.of_utterances(list(original.utterances))
    enrolled = len(read_embeddings(SHARED / "xvect_libri_test_enrolls"))
    if world != "B1":
        vectors = anonymized.vectors.copy()
        vectors[enrolled:] = np.random.default_rng(seed).permutation(vectors[enrolled:])
        anonymized = anonymized.with_vectors(vectors)
    with _lists(list(original.utterances[:enrolled]), list(original.utterances[enrolled:])) as lists:
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
    relabeled (a few draws will do), learning curves, curves for figures, and intervals of 1-EER."""
    few = partial(null_levels, draws=NOISE_DRAWS)
    with ExitStack() as patches:
        for module in ("summary", "score_sets"):
            patches.enter_context(patch(f"veilmeter.metrics.scores.{module}.null_levels", few))
        patches.enter_context(patch.object(attack, "_learning", lambda job, tried: Estimates()))
        for curve in ("profile_of", "det_of"):
            patches.enter_context(patch.object(attack, curve, lambda *_: {}))
        plain = attack._eer
        values_only = patch.object(
            attack, "_eer", lambda matrix, options: plain(matrix, replace(options, intervals=False))
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
    return Judgment(
        world=world,
        people=people or results.protocol.enrolled_speakers,
        seed=seed,
        recognizable=truth,
        level=results.verdict.level,
        trustworthy=results.verdict.trustworthy,
        distrust=tuple(check.name for check in results.checks if check.failed),
        point=_point(linking.attacker, linking.estimate.at, linking.group),
        interval=linking.estimate.interval,
        curve=linking_curve(results),
        seconds=time.process_time() - started,
        criteria={name: criterion.level for name, criterion in results.criteria.items() if criterion.risk},
        chance=chance_of(linking.estimate),
    )


def linking_curve(results: Results) -> dict[str, float]:
    """Every figure of linking that a headline may show."""
    return {_point(case.attacker, case.estimate.at, case.group): case.estimate.value
            for case in cases(results, "linkability")}  # fmt: skip


def _point(attacker: str, at: Mapping[str, Any], group: Mapping[str, str]) -> str:
    within = "".join(f", {attribute} {value}" for attribute, value in group.items())
    return f"{attacker}, {at.get('length')} utterances among {at.get('speakers')}{within}"
