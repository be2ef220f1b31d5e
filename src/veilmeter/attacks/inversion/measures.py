"""How well an inversion works: EER against enrollments, Top-k in both directions, Linkability, per speaker.

Also what the attack needs: how many pairs, how clean, and what it gives when the pairs are wrong. Each point is an
attack learned again on part of the pairs, or on pairs of which some are shuffled. Points run through an engine and
depend on nothing but the seed and their own numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from statistics import fmean

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.inversion.attack import (
    EVERYBODY,
    Floats,
    InversionMap,
    InversionSettings,
    learn,
    take_pairs,
    unit_rows,
)
from veilmeter.core.engine import Engine, Here, map_ordered
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.intervals import percentile
from veilmeter.data.embeddings import PSEUDO, Embeddings
from veilmeter.data.matching import with_people_of
from veilmeter.data.scores import Scores
from veilmeter.metrics.identification import Identification, identify
from veilmeter.metrics.legal.linkability import count_links
from veilmeter.metrics.measure import estimate_of
from veilmeter.metrics.scores.eer import eer_sorted
from veilmeter.metrics.scores.summary import measure_with_problems

TOP = (5, 10, 20)
BLOCK = 2048
MOST_PRODUCTS = 1 << 24  # of vectors that are held to look them up in both directions


@dataclass(frozen=True, eq=False)
class Group:
    """One group's (a gender's) part of an evaluation: vectors in the space that the map restores to.

    At most `most` trials are looked up, among all the others.
    """

    name: str
    restored: Embeddings
    clear: Embeddings | None
    enroll: Embeddings | None
    models: Floats
    model_names: tuple[str, ...]
    most: int = sys.maxsize

    @cached_property
    def ordered(self) -> tuple[Floats, Floats] | None:
        """Target and impostor scores of all pairs, rising: sorted once for every way of computing an EER."""
        scores = self.scores()
        return None if scores is None else scores.ordered

    @cached_property
    def whose(self) -> Identification:
        """Whose is this anonymized recording? Each restored trial among the clear trials."""
        clear = self._clear()
        asked = self._choose_trials(len(self.restored))
        return identify(
            self.restored.vectors[asked],
            clear.vectors,
            self.restored.speakers[asked],
            clear.speakers,
            products=self._products,
        )

    @cached_property
    def where(self) -> Identification:
        """The direction of Table 2: each clear trial among the restored ones."""
        clear, products = self._clear(), self._products
        asked = self._choose_trials(len(clear))
        turned = None if products is None else products.T
        return identify(
            clear.vectors[asked], self.restored.vectors, clear.speakers[asked], self.restored.speakers, products=turned
        )

    @cached_property
    def _products(self) -> Floats | None:
        """Similarities of all pairs, where these are few enough and both directions need all of them."""
        clear = self._clear()
        if len(self.restored) * len(clear) > MOST_PRODUCTS or max(len(self.restored), len(clear)) > self.most:
            return None
        return np.asarray(np.asarray(self.restored.vectors, float) @ np.asarray(clear.vectors, float).T)

    def _choose_trials(self, count: int) -> NDArray[np.intp] | slice:
        """The trials that are looked up: all, or `most` of them at even distances."""
        if count <= self.most:
            return slice(None)
        return ((np.arange(self.most) + 0.5) * (count / self.most)).astype(np.intp)

    def _clear(self) -> Embeddings:
        if self.clear is None:
            raise InputError("Top-1 needs the clear trials", fix="give --clear-trials")
        return self.clear

    def scores(self, trials: Mapping[tuple[str, str], bool] | None = None) -> Scores | None:
        """Cosine of each restored trial with the enrollment models; all pairs, or those of the key."""
        if self.enroll is None or not len(self.models):
            return None
        tried = self.restored.take(np.arange(len(self.restored))[self._choose_trials(len(self.restored))])
        matrix = self.models @ unit_rows(tried.vectors).T
        mask = None
        if trials is not None:
            rows = {name: number for number, name in enumerate(self.model_names)}
            columns = tried.utterance_rows
            mask = np.zeros(matrix.shape, bool)
            for (speaker, utterance), target in trials.items():
                if speaker in rows and utterance in columns:
                    if target != (tried.speakers[columns[utterance]] == speaker):
                        raise InputError(
                            f"the trial key calls {speaker} {utterance} {'target' if target else 'nontarget'}, "
                            "the speakers of the vectors say otherwise"
                        )
                    mask[rows[speaker], columns[utterance]] = True
        return Scores.from_matrix(matrix, np.array(self.model_names), tried.speakers, mask=mask)


@dataclass(frozen=True, eq=False)
class Evaluation:
    """The results of a map on trials, by group."""

    groups: tuple[Group, ...]
    column: str

    def at(self, group: Group) -> dict[str, str | int | float]:
        return {self.column: group.name} if self.column and len(self.groups) > 1 else {}

    def eer(
        self, trials: Mapping[tuple[str, str], bool] | None = None, *, method: str = "rocch", fold: bool = False
    ) -> dict[str, float]:
        """The EER of each group, in percent."""
        eers = {}
        for group in self.groups:
            scores = group.scores(trials) if trials is not None else None
            ordered = group.ordered if scores is None else scores.ordered
            if ordered is not None:
                percent = eer_sorted(*ordered, method)
                eers[group.name] = 100 - percent if fold and percent > 50 else percent
        return eers

    def top1(self) -> dict[str, tuple[float, float]]:
        """Top-1 of each group in both directions: restored among clear, clear among restored; percent."""
        return {group.name: (group.whose.value(), group.where.value()) for group in self.groups}

    def per_speaker(self) -> list[dict[str, str | float]]:
        """Each trial speaker's Top-1 in both directions, most exposed first."""
        rows: list[dict[str, str | float]] = []
        for group in self.groups:
            whose, where = group.whose.per_speaker, group.where.per_speaker
            rows += [
                {"speaker": name, **({self.column: group.name} if self.column else {}), "top1": value,
                 "top1_clear": where.get(name, float("nan"))}
                for name, value in whose.items()
            ]  # fmt: skip
        return sorted(rows, key=lambda row: (-float(row["top1"]), str(row["speaker"])))

    def estimates(
        self,
        trials: Mapping[tuple[str, str], bool] | None = None,
        *,
        top: Sequence[int] = TOP,
        intervals: bool = True,
        resamples: int = 1000,
        seed: int = 0,
        eer_method: str = "rocch",
        fold: bool = False,
    ) -> dict[str, list[Estimate]]:
        """Every measure by name; one estimate a group (and k, and number of speakers)."""
        curves: dict[str, list[Estimate]] = {}
        for group in self.groups:
            at = self.at(group)
            scores = group.scores(trials)
            if scores is not None:
                names = ("eer", "d_ece", "l_w")
                measured, _ = measure_with_problems(
                    scores, intervals=intervals, resamples=resamples, seed=seed, eer_method=eer_method, measures=names
                )
                for name in names:
                    estimate = measured[name]
                    curves.setdefault(name, []).append(
                        (_fold(estimate) if fold and name == "eer" else estimate).with_(at=at)
                    )
            if group.clear is not None:
                largest = len(group.clear)
                curves.setdefault("top1", []).append(group.whose.estimate("top1", intervals=intervals, at=at))
                curves.setdefault("top1_clear", []).append(
                    group.where.estimate("top1_clear", intervals=intervals, at=at)
                )
                curves.setdefault("top_k", []).extend(
                    group.whose.estimate("top_k", k, intervals=intervals, at={**at, "k": k}) for k in top if k < largest
                )
            if group.enroll is not None and len(group.enroll.names) > 1:
                linked = count_links(group.enroll, group.restored)
                sizes = sorted({2, linked.largest} | {n for n in (5, 10, 20, 50, 100) if n < linked.largest})
                curves.setdefault("linkability", []).extend(
                    estimate.with_(at={**at, **estimate.at})
                    for estimate in linked.estimates(sizes, intervals=intervals)
                )
        return curves


def evaluate(
    learnt: InversionMap,
    anonymized_trials: Embeddings,
    clear_trials: Embeddings | None = None,
    enroll: Embeddings | None = None,
    *,
    within: str | None = None,
    most: int = sys.maxsize,
) -> Evaluation:
    """Restore the trials and compare them with clear trials and enrollments.

    `within` is the attribute within which comparisons stay (paper 002: gender); by default gender where every side
    knows it, and in any case the attribute that the map itself depends on. Where the trials describe pseudo-voices,
    those by people of whom no clear side knows it are left out. Of very many trials of a group, `most` at even
    distances are looked up and compared with enrollments.
    """
    clear_sides = [side for side in (clear_trials, enroll) if side is not None]
    anonymized_trials = with_people_of(anonymized_trials, clear_sides)
    described = [anonymized_trials, *clear_sides]
    if within is None:
        known = all("gender" in side.attributes and all(side.attributes["gender"]) for side in described)
        of_voices = PSEUDO + "gender" in anonymized_trials.attributes
        within = learnt.column or ("gender" if known or of_voices else "")
    if within and PSEUDO + within in anonymized_trials.attributes:  # of some people it is not known
        anonymized_trials = anonymized_trials.take(anonymized_trials.attributes[within] != "")
    restored = learnt.restore(anonymized_trials)
    clear = None if clear_trials is None else learnt.see(clear_trials)
    seen = None if enroll is None else learnt.see(enroll)
    raw = None if enroll is None else learnt.project(enroll)
    names = sorted(set(restored.attributes[within])) if within else [EVERYBODY]
    groups = []
    for name in names:
        part = _part(restored, within, name)
        if part is None:
            continue
        models = _part(raw, within, name)
        vectors, speakers = (np.zeros((0, 0)), ()) if models is None else enrollment_models(models)
        sides = (part, _part(clear, within, name), _part(seen, within, name))
        groups.append(Group(name, *sides, vectors, speakers, most))
    return Evaluation(tuple(groups), within)


def enrollment_models(projected: Embeddings) -> tuple[Floats, tuple[str, ...]]:
    """Plain means of each speaker's projected vectors, then length 1."""
    sums = np.zeros((len(projected.names), projected.dimension))
    np.add.at(sums, projected.codes, projected.vectors.astype(float))
    return unit_rows(sums / np.bincount(projected.codes)[:, None]), projected.names


def _part(embeddings: Embeddings | None, column: str, value: str) -> Embeddings | None:
    if embeddings is None or not column:
        return embeddings
    rows = np.flatnonzero(embeddings.attributes[column] == value)
    return embeddings.take(rows) if len(rows) else None


def _fold(estimate: Estimate) -> Estimate:
    """An EER above 50 % turned back, as paper 002 does."""
    if estimate.value <= 50:
        return estimate
    interval = None if estimate.interval is None else (100 - estimate.interval[1], 100 - estimate.interval[0])
    return estimate.with_(value=100 - estimate.value, interval=interval, method=f"{estimate.method}, folded")


SIZES = (5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000)
NOISES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, eq=False)
class InversionData:
    """What every point has in common."""

    clear_train: Embeddings
    anonymized_train: Embeddings
    clear_trials: Embeddings
    anonymized_trials: Embeddings
    settings: InversionSettings
    most: int = sys.maxsize  # trials of a group that are looked up at a point


@dataclass(frozen=True, eq=False)
class Point:
    """One attack: with `pairs` known pairs, of which the share `noise` is shuffled."""

    data: InversionData
    pairs: int
    noise: float
    seed: tuple[int, ...]


def learning_curve(
    data: InversionData,
    *,
    sizes: Sequence[int] | None = None,
    repeats: int = 5,
    seed: int = 0,
    engine: Engine | None = None,
) -> dict[str, list[Estimate]]:
    """Top-1 against the number of known pairs, from 5 to all; the mean over `repeats` random choices of pairs.

    The attacker has all training vectors, but knows only for these pairs which belong together.
    """
    known = len(_pairs(data).clear_train)
    chosen = sorted({n for n in (sizes or SIZES) if n < known} | {known})
    if min(chosen) < 2:
        raise InputError("a learning curve starts at two pairs or more", fix="choose larger sizes")
    points = [
        Point(data, size, 0.0, (seed, size, repeat))
        for size in chosen
        for repeat in range(repeats if size < known else 1)
    ]
    return _measure(points, [point.pairs for point in points], "pairs", engine)


def label_noise(
    data: InversionData,
    *,
    shares: Sequence[float] = NOISES,
    repeats: int = 5,
    seed: int = 0,
    engine: Engine | None = None,
) -> dict[str, list[Estimate]]:
    """Top-1 when a share of the pairs is shuffled among themselves."""
    if any(not 0 <= share <= 1 for share in shares):
        raise InputError("a share of wrong pairs lies between 0 and 1")
    known = len(_pairs(data).clear_train)
    points = [
        Point(data, known, share, (seed, round(1000 * share), repeat))
        for share in shares
        for repeat in range(repeats if share else 1)
    ]
    return _measure(points, [point.noise for point in points], "wrong_pairs", engine)


def permutation_null(
    data: InversionData, *, shuffles: int = 20, seed: int = 0, engine: Engine | None = None
) -> dict[str, tuple[float, tuple[float, float]]]:
    """What Top-1 gives when all pairs are shuffled: mean and 5th to 95th percentile, by measure and group.

    Keys are `top1` and `top1_clear`, with `@group` where there are several groups. An attack whose pairs are wrong
    (sorted differently, say) lands inside this range.
    """
    known = len(_pairs(data).clear_train)
    points = [Point(data, known, 1.0, (seed, 1000, number)) for number in range(shuffles)]
    results = map_ordered(engine or Here(), top1, points)
    levels = {}
    for number, name in enumerate(("top1", "top1_clear")):
        for group in results[0]:
            values = [result[group][number] for result in results]
            key = name if len(results[0]) == 1 else f"{name}@{group}"
            levels[key] = (fmean(values), percentile(values, level=0.9))
    return levels


def top1(point: Point) -> dict[str, tuple[float, float]]:
    """One point: learn, restore the trials, and count; both directions, by group."""
    data = _pairs(point.data)
    rng = np.random.default_rng(point.seed)
    clear, anonymized = data.clear_train, data.anonymized_train
    pairs = None
    if point.pairs < len(clear):
        pairs = list(clear.utterances[_spread(clear, point.pairs, data.settings.by, rng)])
    if point.noise:
        anonymized = shuffle(anonymized, point.noise, data.settings.by, rng)
    learnt = learn(clear, anonymized, data.settings, pairs=pairs)
    trials = data.anonymized_trials, data.clear_trials
    return evaluate(learnt, *trials, most=data.most).top1()


def shuffle(embeddings: Embeddings, share: float, by: str, rng: np.random.Generator) -> Embeddings:
    """The vectors of a share of the utterances, exchanged among themselves (within each value of `by`)."""
    vectors = embeddings.vectors.copy()
    groups = embeddings.attributes[by] if by else np.full(len(embeddings), "", dtype=object)
    for value in dict.fromkeys(groups):
        rows = np.flatnonzero(groups == value)
        chosen = rng.permutation(rows)[: round(share * len(rows))]
        if len(chosen) > 1:
            # A cycle in random order leaves no chosen utterance with its own vector.
            vectors[chosen] = vectors[np.roll(chosen, 1)]
    return embeddings.with_vectors(vectors)


def _spread(embeddings: Embeddings, count: int, by: str, rng: np.random.Generator) -> NDArray[np.int64]:
    """`count` random rows, at least two for each value of `by`."""
    order = rng.permutation(len(embeddings))
    if by:
        groups = embeddings.attributes[by][order]
        first = [row for value in sorted(set(groups)) for row in order[groups == value][:2]]
        chosen = set(first)
        order = np.array([*first, *(row for row in order if row not in chosen)])
        count = max(count, len(first))
    return np.sort(order[:count])


def _pairs(data: InversionData) -> InversionData:
    clear, anonymized = take_pairs(data.clear_train, data.anonymized_train)
    return replace(data, clear_train=clear, anonymized_train=anonymized)


def _measure(
    points: Sequence[Point], values: Sequence[float], name: str, engine: Engine | None
) -> dict[str, list[Estimate]]:
    results = map_ordered(engine or Here(), top1, points)
    by_direction: dict[str, list[Estimate]] = {"top1": [], "top1_clear": []}
    for number, direction in enumerate(by_direction):
        for group in results[0]:
            at = {"gender": group} if len(results[0]) > 1 else {}
            for value in dict.fromkeys(values):
                got = [r[group][number] for r, v in zip(results, values, strict=True) if v == value]
                by_direction[direction].append(
                    estimate_of(
                        direction,
                        fmean(got),
                        method=f"mean of {len(got)} draws",
                        n={"draws": len(got)},
                        at={**at, name: value},
                        extra={"lowest": min(got), "highest": max(got)},
                    )
                )
    return by_direction
