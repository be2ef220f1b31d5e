"""Assess one simulated world and compare the findings with the truth (for `benchmarks.worlds`)."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal
from unittest.mock import patch

import numpy as np

from benchmarks.world_cases import WORLDS, Case, World, voices_of
from benchmarks.world_traps import TRAPS
from veilmeter import assess
from veilmeter.assessment import attack
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimates
from veilmeter.core.findings import Finding, Reference
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.scores.summary import null_levels
from veilmeter.results import trust
from veilmeter.results.criteria import cases, strongest
from veilmeter.results.levels import ORDER, chance_of
from veilmeter.results.model import Results
from veilmeter.results.trust import is_sure_alarm

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "vpc2020-b1" / "extractor-original"
ATTACKERS = ("ignorant", "lazy-informed", "informed", "procrustes", "adaptive")
OPTIONS: dict[str, Any] = {
    "lengths": [1, 3],
    "measures": ["scores", "linkability", "singling-out", "inversion"],
    "resamples": 60,
}
NOISE_DRAWS = 8
REAL = ("B1", "B1, trials exchanged", "B1, exchanged within gender")


def world_of(name: str) -> World:
    return WORLDS[name] if name in WORLDS else TRAPS[name]


def worlds() -> list[str]:
    return [*WORLDS, *TRAPS, *REAL]


@dataclass(frozen=True)
class Outcome:
    """The result of assessing one world once."""

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
    most: str = ""  # the highest level that is true; empty: high where people can be recognized, else low
    untrue: tuple[str, ...] = ()  # findings that contradict what is true of the world
    doubted_alarm: bool = False

    @property
    def attacker(self) -> str:
        """Whose figure the headline shows; empty where the world was refused."""
        return self.point.partition(",")[0]

    @property
    def falsely_reassuring(self) -> bool:
        return self.recognizable and self.trustworthy and self.level == "low"

    @property
    def false_alarm(self) -> bool:
        """A level above what is true."""
        most: Any = self.most or ("high" if self.recognizable else "low")
        above = ORDER.index(self.level) > ORDER.index(most)
        return self.trustworthy and self.level in ("raised", "high") and above


@contextmanager
def simulated(world: str, people: int, seed: int) -> Iterator[dict[str, Any]]:
    """The arguments of an assessment."""
    with simulated_case(world, people, seed) as (sides, _):
        yield sides


@contextmanager
def simulated_case(world: str, people: int, seed: int) -> Iterator[tuple[dict[str, Any], Case]]:
    """The same with the case that they come from."""
    rng = np.random.default_rng([seed, people, int.from_bytes(world.encode(), "big") % (1 << 32)])
    voices = voices_of(world_of(world), people, rng)
    case = world_of(world).make(voices)
    names = [f"s{person:04d}" for person in voices.own]
    ids = [f"{name}-{take}" for name, take in zip(names, voices.take, strict=True)]
    columns = {"gender": ["fm"[person % 2] for person in voices.own], **case.attributes}
    vectors = {"original": case.original, "anonymized": case.anonymized, "attacker_run": case.again}
    sides: dict[str, Any] = {
        role: Embeddings(rows, ids, names, {**columns, **({"draw": case.draws[role]} if role in case.draws else {})})
        for role, rows in vectors.items()
        if rows is not None
    }
    if case.covered is not None:
        sides["attacker_run"] = sides["attacker_run"].take(case.covered)
    if case.each_draw:
        sides["attacker_run"] = [
            Embeddings(rows, ids, names, {**columns, "draw": [draw] * len(ids)})
            for draw, rows in case.each_draw.items()
        ]
    by = {"by": sorted(columns.keys() - {"session", "language"})}
    if case.trials is None:
        yield {**sides, **by}, case
        return
    # People who are not tried are enrolled.
    tried = [name for name, trial in zip(ids, case.trials, strict=True) if trial]
    with _lists([name for name in ids if name not in set(tried)], tried) as lists:
        yield {**sides, **by, **lists}, case


@contextmanager
def real(world: str, seed: int) -> Iterator[dict[str, Any]]:
    """Original and B1 x-vectors, enrollment and trials of the challenge. Exchanged: every trial recording is replaced
    by one that was drawn among all of them, so that nothing of the right person is left, not even the gender; within
    gender: by one of the same gender."""
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
        rng = np.random.default_rng(seed)
        first = enrolled + len(read_embeddings(SHARED / "xvect_libri_test_trials_f"))
        edges = (enrolled, first, len(vectors)) if "gender" in world else (enrolled, len(vectors))
        for start, end in pairwise(edges):
            vectors[start:end] = rng.permutation(vectors[start:end])
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
    return "exchanged" not in world or "gender" in world if world in REAL else world_of(world).recognizable


def highest(world: str) -> str:
    """The highest level that is true."""
    if world in REAL:
        return "raised" if "gender" in world else "high" if recognizable(world) else "low"
    return world_of(world).highest


def assess_world(
    world: str, people: int, seed: int, attackers: Sequence[str] = ATTACKERS, options: Mapping[str, Any] = OPTIONS
) -> Outcome:
    """One assessment of one world."""
    started = time.process_time()
    truth = recognizable(world)
    case = None
    own = {} if world in REAL else world_of(world).options
    with ExitStack() as stack:
        stack.enter_context(quickly())
        if world in REAL:
            sides = stack.enter_context(real(world, seed))
        else:
            sides, case = stack.enter_context(simulated_case(world, people, seed))
        try:
            results = assess(**sides, attackers=list(attackers), seed=seed, **{**options, **own}).results
        except InputError as error:  # a refusal reassures nobody
            doubts = (f"refused: {error}",)
            return Outcome(world, people, seed, truth, "unknown", False, doubts, "", None, {}, 0.0)
    linking = strongest(results) or next(cases(results, "linkability"))
    return Outcome(
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
        most=highest(world),
        untrue=() if case is None else tuple(untrue_findings(results, case, world_of(world))),
        doubted_alarm=truth
        and is_sure_alarm(results)
        and not results.verdict.trustworthy
        and (case is None or case.truth.own_ids),
    )


def untrue_findings(results: Results, case: Case, world: World) -> Iterator[str]:
    """Findings that contradict the known truth."""
    truth = case.truth
    by_code: dict[str, Finding] = {}
    for finding in (*(check.finding for check in results.checks), *results.verdict.headline, *results.verdict.remarks):
        by_code.setdefault(finding.code, finding)
    checks = {check.name: check for check in results.checks}

    def people(numbers: Any) -> set[str]:
        return {f"s{person:04d}" for person in numbers}

    if truth.exposed is not None and (wrong := set(results.people.unprotected) - people(truth.exposed)):
        yield f"{len(wrong)} listed as unprotected who are not"
    if truth.unknown is not None and (known := checks.get(trust.HEARD)) is not None:
        named = set(known.finding.people)
        if named - people(truth.unknown) and "language" not in case.attributes:
            yield f"{len(named - people(truth.unknown))} called unknown on original speech who are not"
        if len(people(truth.unknown) - named) > 0.2 * len(truth.unknown):
            yield "people who are unknown on original speech are not named"
    kept = by_code.get("only_attribute_kept")
    if kept is not None and truth.kept is not None and kept.values["attribute"] != Reference("attribute", truth.kept):
        yield "another attribute is called the only one kept"
    if kept is not None and truth.exposed is not None and len(truth.exposed):
        yield "only an attribute is reported as kept, but people are exposed"
    ids = checks.get(trust.OWN_IDS)
    if truth.own_ids and ids is not None and ids.failed:
        yield "ids are called wrong that are right"
    if not truth.own_ids and results.verdict.trustworthy and results.verdict.level != "high":
        yield "wrong ids are not noticed"
    own_run = checks.get(trust.OWN_RUNS)
    if truth.own_run is False and own_run is not None and own_run.passed:
        yield "a run of something else passes for one of the anonymizer"
    if truth.own_run and own_run is not None and own_run.failed:
        yield "a run of the anonymizer is called another's"
    if truth.one_voice is False and "one_voice_per_speaker" in by_code:
        yield "one voice per speaker is claimed for a release that has none"
    if truth.one_voice and "one_voice_per_speaker" not in by_code:
        yield "one voice per speaker is not reported"
    draws, worst = by_code.get("draws"), by_code.get("worst_person")
    if draws is not None and draws.values.get("size") is not None and not (world.recognizable or case.draws):
        yield "draws are claimed to repeat where none do"
    if worst is not None and worst.values["explained"] and results.people.unprotected:
        yield "chance is claimed to explain who is listed as unprotected"
    changed = by_code.get("recordings_unchanged")
    if changed is not None and truth.let_through is not None:
        reported = int(changed.values["unchanged"]) + int(changed.values["let_through"])  # type: ignore[call-overload]
        if reported > truth.let_through:
            yield f"{reported} recordings are called hardly changed, {truth.let_through} are"
    if results.verdict.level == "low" and results.verdict.trustworthy and world.recognizable:
        yield "low"


def linking_curve(results: Results) -> dict[str, float]:
    """Every figure of linking that a headline may show."""
    return {_point(case.attacker, case.estimate.at, case.group): case.estimate.value
            for case in cases(results, "linkability")}  # fmt: skip


def _point(attacker: str, at: Mapping[str, Any], group: Mapping[str, str]) -> str:
    within = "".join(f", {attribute} {value}" for attribute, value in group.items())
    return f"{attacker}, {at.get('length')} utterances among {at.get('speakers')}{within}"
