"""One attacker's measures: everything that follows from its scores and from the matrices of longer conversations.

`measure_attack` is a task of the engine: it gets a picklable `Job` and gives plain values, which are kept as a stage.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.assessment.isolating import isolate
from veilmeter.attacks.backends.scoring import Recipe, Scorer
from veilmeter.attacks.base import Floats, Rows
from veilmeter.attacks.knowledge import ORIGINAL
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.scores import Scores
from veilmeter.metrics.legal.chance import Relabeled, Trials, relabel
from veilmeter.metrics.legal.conversations import conversations
from veilmeter.metrics.legal.linkability import Linkability
from veilmeter.metrics.legal.population import population_linkability
from veilmeter.metrics.legal.ranks import rank_estimates
from veilmeter.metrics.registry import measure
from veilmeter.metrics.scores.summary import measure_scores
from veilmeter.metrics.scores.zebra import ece_profile

MOST_SCORES = 20_000_000  # in one matrix; beyond, trial utterances are drawn by speaker
CURVE = (2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000)
DET_POINTS = 300


@dataclass(frozen=True, eq=False)
class Undo:
    """An attacker who learns to undo the anonymizer: from these clear and anonymized recordings of known people."""

    clear: Embeddings
    anonymized: Embeddings
    method: str
    seed: int

    def apply(self, enrol: Embeddings, test: Embeddings) -> tuple[Embeddings, Embeddings, str]:
        """Enrolment and trials in one space, and how they got there. Both sides are centred, which in many dimensions
        gains most of what a PCA would."""
        from veilmeter.attacks.inversion import learn
        from veilmeter.attacks.inversion.attack import Settings

        settings = Settings(method=self.method, center=True, seed=self.seed)  # type: ignore[arg-type]
        learnt = learn(self.clear, self.anonymized, settings)
        return learnt.see(enrol), learnt.restore(test), f"{self.method} on {len(self.clear)} centred vectors, cosine"


@dataclass(frozen=True, eq=False)
class Job:
    """Everything that one attacker's measures depend on."""

    name: str
    enrol: Embeddings
    test: Embeddings
    recipe: Recipe
    mask: NDArray[np.bool_] | None
    lengths: tuple[int, ...]
    sizes: tuple[int, ...]
    population: tuple[int, ...]
    measures: tuple[str, ...]
    groups: dict[str, dict[str, str]]  # attribute -> speaker -> value, for results by group
    intervals: bool
    resamples: int
    seed: int
    undo: Undo | None = None


@dataclass
class Found:
    """What comes back: plain estimates, and arrays for the tables."""

    backend: str = ""
    estimates: dict[str, Any] = field(default_factory=dict)
    profile: dict[str, Any] = field(default_factory=dict)
    det: dict[str, Any] = field(default_factory=dict)
    by: dict[str, dict[str, Any]] = field(default_factory=dict)
    people: list[dict[str, Any]] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    scores: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    ties: float = 0.0
    relabeled: Relabeled | None = None


@dataclass(frozen=True, eq=False)
class Matrix:
    """Scores of enrolled people (rows) against conversations of one length (columns)."""

    scores: Floats
    enrolled: tuple[str, ...]
    spoken: NDArray[np.object_]  # the speaker of each conversation
    groups: Rows
    mask: NDArray[np.bool_] | None
    length: int

    def part(self, names: set[str]) -> Matrix | None:
        """Only these people, on both sides; None where nothing is left to compare."""
        rows = np.array([name in names for name in self.enrolled])
        columns = np.array([name in names for name in self.spoken], dtype=bool)
        if rows.sum() < 2 or not columns.any():
            return None
        return Matrix(
            self.scores[np.ix_(rows, columns)],
            tuple(name for name, kept in zip(self.enrolled, rows, strict=True) if kept),
            self.spoken[columns],
            self.groups[columns],
            None if self.mask is None else self.mask[np.ix_(rows, columns)],
            self.length,
        )

    def to_scores(self) -> Scores:
        return Scores.from_matrix(self.scores, np.array(self.enrolled, object), self.spoken, mask=self.mask)

    def trials(self) -> Trials | None:
        """What relabeling people needs; None where nobody enrolled is tried."""
        code = {name: number for number, name in enumerate(self.enrolled)}
        known = np.array([name in code for name in self.spoken], dtype=bool)
        if len(code) < 2 or not known.any():
            return None
        own = np.array([code[name] for name in self.spoken[known]])
        mask = None if self.mask is None else self.mask[:, known]
        return Trials(self.scores[:, known], own, self.enrolled, self.length, mask)

    def linkability(self) -> Linkability | None:
        """Exact Linkability from the scores; None if fewer than two people are enrolled or nobody can be linked."""
        code = {name: number for number, name in enumerate(self.enrolled)}
        known = np.array([name in code for name in self.spoken], dtype=bool)
        if len(code) < 2 or not known.any():
            return None
        own = np.array([code[name] for name in self.spoken[known]])
        scores = self.scores[:, known]
        beats = (scores >= scores[own, np.arange(len(own))]).T
        beats[np.arange(len(own)), own] = False
        names = tuple(dict.fromkeys(self.spoken[known]))
        position = {name: number for number, name in enumerate(names)}
        speakers = np.array([position[name] for name in self.spoken[known]])
        return Linkability(beats.sum(axis=1), len(code) - 1, speakers, names, self.length, own, beats)


def make_matrix(job: Job, scorer: Scorer, length: int) -> Matrix | None:
    """The scores of conversations of `length`; None where fewer than two speakers have that many utterances."""
    most = None
    allowed = MOST_SCORES // max(1, len(job.enrol.names))
    if len(job.test) // length > allowed:
        most = max(1, allowed // len(job.test.names))
    try:
        said = conversations(job.test, length, most=most, seed=job.seed)
    except InputError:
        return None
    if len(said.names) < 2:
        return None
    groups = said.utterances
    mask = None if job.mask is None else np.asarray(job.mask[:, groups].any(axis=2), bool)
    scores = scorer.matrix(job.enrol, job.test, groups)
    spoken = job.test.speakers[groups[:, 0]]
    return Matrix(scores, job.enrol.names, spoken, groups, mask, length)


def curve_sizes(wanted: Sequence[int], largest: int) -> list[int]:
    """The numbers of speakers at which curves are given: those asked for, or round ones, and everybody."""
    base = [n for n in (wanted or CURVE) if n < largest]
    return [*base, largest] if largest >= 2 else base


def measure_attack(job: Job) -> Found:
    attempt = ""
    if job.undo is not None:
        enrol, test, attempt = job.undo.apply(job.enrol, job.test)
        job = replace(job, enrol=enrol, test=test)
    scorer = job.recipe.scorer(job.enrol, job.test)
    found = Found(backend=attempt or scorer.name)
    matrices = {}
    for length in job.lengths:
        made = make_matrix(job, scorer, length)
        if made is None:
            found.warnings.append(f"no two speakers have {length} trial utterances: length {length} is left out")
        else:
            matrices[length] = made
    if not matrices:
        raise InputError(
            f"no two speakers have {min(job.lengths)} trial utterances: there is nothing to measure",
            fix="give a smaller number with --lengths, or more recordings a speaker",
        )
    first = matrices.get(1) or next(iter(matrices.values()))
    found.scores = first.scores
    found.estimates = estimates_of(job, matrices, scorer, found.warnings)
    scores = first.to_scores()
    found.profile = profile_of(scores)
    found.det = det_of(scores)
    found.ties = tied_share(scores)
    found.people = people_of(matrices)
    parts_of: dict[tuple[str, str], dict[int, Matrix]] = {("", ""): matrices}
    for attribute, values in job.groups.items():
        found.by[attribute] = {}
        for value in sorted({v for v in values.values() if v}):
            names = {name for name, v in values.items() if v == value}
            parts = {length: part for length, m in matrices.items() if (part := m.part(names)) is not None}
            if not parts:
                continue
            parts_of[attribute, value] = parts
            try:
                found.by[attribute][value] = {"estimates": estimates_of(job, parts, None)}
            except InputError as error:
                found.warnings.append(f"{attribute} {value}: {error}")
    if job.name != ORIGINAL.name:
        found.relabeled = relabeled_of(job, parts_of)
    return found


def relabeled_of(job: Job, parts: Mapping[tuple[str, str], Mapping[int, Matrix]]) -> Relabeled:
    """Everything that a verdict looks at, with people relabeled at random: of everybody and of each group."""
    trials = {}
    for group, matrices in parts.items():
        # The scores are measured on single utterances where there are any.
        ordered = sorted(
            matrices.values(), key=lambda matrix: (matrix.length != 1, list(matrices).index(matrix.length))
        )
        trials[group] = [made for matrix in ordered if (made := matrix.trials()) is not None]
    everybody = trials.pop(("", ""))
    sizes = dict.fromkeys(job.lengths, job.sizes or CURVE)
    return relabel(job.name, everybody, sizes, groups=trials, seed=job.seed)


def estimates_of(
    job: Job, matrices: dict[int, Matrix], scorer: Scorer | None, warnings: list[str] | None = None
) -> dict[str, Any]:
    """Everything that follows from the scores; Singling Out, which needs the vectors, only with a `scorer`. What could
    not be told is added to `warnings`."""
    first = matrices.get(1) or next(iter(matrices.values()))
    out: dict[str, Estimate | list[Estimate]] = {}
    scores = first.to_scores()
    if "scores" in job.measures:
        out.update(measure_scores(scores, intervals=job.intervals, resamples=job.resamples, seed=job.seed))
    links = {length: made for length, m in matrices.items() if (made := m.linkability()) is not None}
    if "singling-out" in job.measures and scorer is not None:
        out.update(isolate(job, scorer, tuple(matrices)))
    if "linkability" in job.measures:
        out["linkability"] = [
            one
            for link in links.values()
            for one in link.estimates(curve_sizes(job.sizes, link.largest), intervals=job.intervals)
        ]
        out["one_minus_eer"] = [one_minus_eer(m, job) for m in matrices.values()]
    if "ranks" in job.measures and scorer is not None:
        for link in links.values():
            for name, points in rank_estimates(link, intervals=job.intervals, seed=job.seed).items():
                curve = out.setdefault(name, [])
                assert isinstance(curve, list)
                curve.extend(points)
    if "population" in job.measures and job.population and scorer is not None:
        beyond: list[Estimate] = []
        for link in links.values():
            points, said = extrapolated(link, job)
            beyond += points
            if warnings is not None:
                warnings += [text for text in said if text not in warnings]
        out["population_linkability"] = list(beyond)
    return {name: _plain(one) for name, one in out.items()}


def extrapolated(link: Linkability, job: Job) -> tuple[list[Estimate], list[str]]:
    """Linkability in the populations asked for, and what can't be said: of populations that are not larger than those
    enrolled, and of all where too few people are enrolled for the back-test."""
    beyond = tuple(people for people in job.population if people >= link.largest)
    said = [
        f"{people:,} people are fewer than the {link.largest:,} enrolled: Linkability among them is measured "
        f"(--speakers {people}), not extrapolated"
        for people in job.population
        if people < link.largest
    ]
    try:
        return population_linkability(link, beyond, intervals=job.intervals, seed=job.seed) if beyond else [], said
    except InputError as error:
        return [], [*said, f"Linkability is not extrapolated: {error}"]


def _plain(found: Estimate | list[Estimate]) -> Any:
    return found.to_json() if isinstance(found, Estimate) else [one.to_json() for one in found]


def one_minus_eer(matrix: Matrix, job: Job) -> Estimate:
    """1 - EER, the third row of the figure of Vauquier et al. 2025, for conversations of one length."""
    entry = measure("eer")
    eer = measure_scores(matrix.to_scores(), intervals=False)["eer"]
    assert isinstance(eer, Estimate)
    return Estimate(
        name="one_minus_eer",
        label="1 - EER",
        value=1 - eer.value / 100,
        unit="probability",
        null=0.5,
        method=eer.method,
        n=eer.n,
        better="lower" if entry.better == "higher" else "higher",
        at={"speakers": len(matrix.enrolled), "length": matrix.length},
    )


def profile_of(scores: Scores) -> dict[str, Any]:
    curves = ece_profile(scores.targets, scores.impostors)
    return {name: getattr(curves, name).tolist() for name in ("log_odds", "prior", "pav", "actual")}


def det_of(scores: Scores) -> dict[str, Any]:
    """The DET curve at thresholds spaced evenly in rank of either class, so that both ends are drawn well."""
    t, n = np.sort(scores.targets), np.sort(scores.impostors)
    shares = np.concatenate(
        [np.linspace(0, 1, DET_POINTS), np.geomspace(1e-5, 0.01, 40), 1 - np.geomspace(1e-5, 0.01, 40)]
    )
    thresholds = np.unique(np.concatenate([np.quantile(t, shares), np.quantile(n, shares)]))[::-1]
    fpr = 1 - np.searchsorted(n, thresholds, side="left") / len(n)
    fnr = np.searchsorted(t, thresholds, side="left") / len(t)
    keep = np.concatenate([[True], (np.diff(fpr) != 0) | (np.diff(fnr) != 0)])
    return {"fpr": np.round(fpr[keep], 8).tolist(), "fnr": np.round(fnr[keep], 8).tolist()}


def tied_share(scores: Scores) -> float:
    """The share of target scores that some impostor score equals: where a threshold can't decide."""
    n = np.sort(scores.impostors)
    at = np.searchsorted(n, scores.targets)
    at = np.minimum(at, len(n) - 1)
    return float(np.mean(n[at] == scores.targets))


def people_of(matrices: dict[int, Matrix]) -> list[dict[str, Any]]:
    """Each speaker's own risk: the chance that one of their conversations is linked among all who are enrolled."""
    rows = []
    for length, matrix in matrices.items():
        link = matrix.linkability()
        if link is None:
            continue
        values = link.per_speaker(link.largest)
        rows += [
            {
                "speaker": name,
                "length": length,
                "among": link.largest,
                "conversations": int(link.counts[code]),
                "linked": float(values[code]),
                "better": float(np.mean(link.better[link.speakers == code])),
            }
            for code, name in enumerate(link.names)
        ]
    return rows
