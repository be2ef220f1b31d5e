"""Methods for leaks that no affine method sees: kernels, and interactions of a few coordinates.

`kernel` regresses who speaks on many features at once: all products of two coordinates, similarity that falls off with
distance, sizes of coordinates whatever their sign, and coordinates as angles. It finds what is spread over many
coordinates, such as a voice whose sign is drawn for every recording.

`interactions` looks for what a few coordinates give away together and none of them alone: the sign of a product of up
to four of them, and the phase of two (one wrapped at its range, the other at any frequency). It tries every
combination, keeps those on which two copies of one person agree more often than chance explains, and compares by
these. It works in the coordinates that the vectors come in. The same leak in coordinates of a secret rotation, or in
the sign of a product of very many coordinates, is hidden from it and from any method of acceptable cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.adaptive.families import Parameters, standardize
from veilmeter.attacks.adaptive.training import TrainingSet, class_means, class_sums, solve_ridge, spectrum
from veilmeter.attacks.backends.base import unit64
from veilmeter.attacks.material import Floats, Rows

Single = NDArray[np.float32]


class _OnCoordinates:
    """A method for coordinates that are standardized one by one, with their length left as it is. Without a test on
    held-out recordings nothing would tell what it finds from chance, so it has no default."""

    defaults: tuple[Parameters, ...] = ()
    transfers = False
    nonlinear = True

    def possible(self, training: TrainingSet) -> bool:
        return 0 < training.copies <= MOST_COPIES and int(training.heard.max(initial=0)) > 1


MOST_COPIES = 60_000


@dataclass(frozen=True, eq=False)
class LiftedScorer:
    """Scores that are affine in features of the coordinates."""

    lift: Callable[[Floats], Floats]
    weights: Floats
    offset: Floats
    usual: float

    def scores(self, x: Floats) -> Single:
        return standardize((self.lift(x) @ self.weights + self.offset).astype(np.float32), self.usual)


def _scorer(lift: Callable[[Floats], Floats], features: Floats, weights: Floats, offset: Floats) -> LiftedScorer:
    some = features[:: max(1, len(features) // 500)] @ weights + offset
    some = some - some.mean(axis=1, keepdims=True)
    return LiftedScorer(lift, weights, offset, float(np.mean(some**2)))


MOST_LANDMARKS = 300  # copies that others are compared with
STEEPNESS = 4.0  # of similarity that falls off with distance: exp(4 cosine)
LEAST_SIZE, MOST_SIZE = 0.1, 9.0  # of a coordinate in units of its spread, and of its square
LEAST_VALUE = 1e-6  # of the largest eigenvalue
GAUSSIAN, PRODUCTS, SIZES, ANGLES = range(4)


class KernelRidge(_OnCoordinates):
    """Parameters: the kind of features (see the constants), and the strength of the ridge."""

    name = "kernel"
    about = "regresses who speaks on products, distances, sizes and angles of the coordinates of anonymized copies"
    grid: tuple[Parameters, ...] = tuple(
        (float(kind), strength) for kind in (GAUSSIAN, PRODUCTS, SIZES, ANGLES) for strength in (0.3, 3.0)
    )

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, LiftedScorer]]:
        labels = training.labels[: training.copies]
        for kind in sorted({int(parameters[0]) for parameters in grid}):
            lift = _lift(kind, training.coordinates)
            features = lift(training.coordinates)
            center = features.mean(axis=0)
            centered = features - center
            centered /= (scale := float(np.sqrt(np.mean(np.sum(centered**2, axis=1)))) or 1.0)
            parts, sums = spectrum(centered), class_sums(centered, labels, training.candidates).T
            for parameters in grid:
                if parameters[0] == kind:
                    weights = solve_ridge(parts, sums, parameters[1]) / scale
                    yield parameters, _scorer(lift, features, weights, -center @ weights)


KERNEL = KernelRidge()


def _lift(kind: int, coordinates: Floats) -> Callable[[Floats], Floats]:
    """The features of one kind; those of kernels are similarities to some of these copies, whitened (Nyström)."""
    if kind == SIZES:
        return lambda x: np.concatenate(
            [np.log(np.maximum(np.abs(x), LEAST_SIZE)), np.minimum(x**2, MOST_SIZE)], axis=1
        )
    if kind == ANGLES:
        turns = 2 * np.pi / np.maximum(np.ptp(coordinates, axis=0), 1e-12)
        return lambda x: np.concatenate([np.cos(x * turns), np.sin(x * turns)], axis=1)
    landmarks = unit64(coordinates[:: -(-len(coordinates) // MOST_LANDMARKS)])

    def similarity(x: Floats) -> Floats:
        cosines = unit64(x) @ landmarks.T
        return np.asarray(cosines**2 if kind == PRODUCTS else np.exp(STEEPNESS * (cosines - 1)))

    values, axes = np.linalg.eigh(similarity(landmarks))
    kept = values > LEAST_VALUE * values[-1]
    whiten = axes[:, kept] / np.sqrt(values[kept])
    return lambda x: similarity(x) @ whiten


MOST_PAIRS = 400  # of copies of one person that agreement is counted on: a strong leak shows on far fewer
LEAST_PAIRS = 12
MOST_WORK = 1.5e9  # products of two numbers, for each kind of combination
OVERHEAD = 50  # pairs that would cost as much as what a combination costs beside them
SEARCHED = 4.0  # standard deviations of agreement by chance: what is below is not looked at further
MOST_FOUND = 2000
STEP, LARGEST = 0.2, 6.0  # frequencies, in periods per standard deviation of the coordinate
FINE = np.linspace(-1, 1, 21)
NARROW = 0.04  # how far off the range of a wrapped coordinate may be
CLEAR = 4.0  # standard errors of a mean
FLOOR = 1e-3  # of the variance of a feature within a person
REFINED, MOST_KEPT = 64, 200
HARMONICS = (2.0, 4.0, 8.0)  # multiples of a phase, which separate people whose phases are close


@dataclass(frozen=True, eq=False)
class Interactions:
    """Products of signs (`signs`, a table of coordinates per number of factors), each coordinate's about its `origin`;
    and phases of two coordinates (`pairs` with their `turns`, in periods per unit)."""

    origin: Floats
    signs: tuple[Rows, ...]
    pairs: Rows
    turns: Floats

    def __call__(self, x: Floats) -> Floats:
        positive = np.where(x < self.origin, -1.0, 1.0)
        columns = [positive[:, table].prod(axis=2) for table in self.signs if len(table)]
        if len(self.pairs):
            angles = 2 * np.pi * np.einsum("npi,pi->np", x[:, self.pairs], self.turns)
            columns += [np.cos(angles), np.sin(angles)]
        return np.concatenate(columns, axis=1)


class InteractionSearch(_OnCoordinates):
    """Parameter: how many standard deviations above chance a combination must be, as a share of the best one's."""

    name = "interactions"
    about = "searches combinations of a few coordinates for what copies of one person have in common"
    grid: tuple[Parameters, ...] = ((0.7,), (0.4,))

    def possible(self, training: TrainingSet) -> bool:
        return super().possible(training) and len(pairs_of_one_person(training)[0]) >= LEAST_PAIRS

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, LiftedScorer]]:
        x, labels = training.coordinates, training.labels[: training.copies]
        first, second = pairs_of_one_person(training)
        origin = _origin(training)
        found = [*search_signs(x - origin, first, second), *search_phases(x, first, second)]
        found.sort(key=lambda entry: -entry[0])
        found = found[:MOST_KEPT] or [(0.0, (np.array([0]), None))]
        for parameters in grid:
            least = parameters[0] * found[0][0]
            lift = _collect(origin, [combination for above, combination in found if above >= least])
            features = lift(x)
            means = class_means(features, labels, training.candidates)
            free = max(1, len(x) - int(np.count_nonzero(training.heard)))
            within = np.sum((features - means[labels]) ** 2, axis=0) / free + FLOOR
            # Means of few copies are uncertain: pulled towards everybody's.
            counts = training.heard[:, None]
            center = features.mean(axis=0)
            models = (means - center) * counts / (counts + 1.0)
            weights = (models / within).T
            yield (
                parameters,
                _scorer(lift, features, weights, -center @ weights - np.sum(models**2 / within, axis=1) / 2),
            )


INTERACTIONS = InteractionSearch()

Combination = tuple[Rows, Floats | None]  # coordinates, and for a phase the turns of both


def pairs_of_one_person(training: TrainingSet) -> tuple[Rows, Rows]:
    """Pairs of copies of one person, of different recordings where there are some: as many of each person as can be."""
    labels, recordings = training.labels[: training.copies], training.recordings
    order = np.argsort(labels, kind="stable")
    first, second = [], []
    for apart in range(1, int(training.heard.max(initial=0))):
        near, far = order[:-apart], order[apart:]
        same = labels[near] == labels[far]
        first.append(near[same])
        second.append(far[same])
        if sum(map(len, first)) >= 4 * MOST_PAIRS:
            break
    if not first:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    one, two = np.concatenate(first), np.concatenate(second)
    different = recordings[one] != recordings[two]
    if different.any():
        one, two = one[different], two[different]
    step = -(-len(one) // MOST_PAIRS)
    return one[::step], two[::step]


def search_signs(x: Floats, first: Rows, second: Rows) -> list[tuple[float, Combination]]:
    """Sets of one to four coordinates, the sign of whose product agrees in pairs of copies (rows `first`, `second`),
    with the number of standard deviations above chance.

    The sign of the product of a set agrees where the product over the set of single agreements is 1. So agreements of
    sets of two are columns whose inner products are those of sets of four.
    """
    agree = np.where((x[first] < 0) == (x[second] < 0), np.float32(1), np.float32(-1))
    m, d = agree.shape
    left, right = np.triu_indices(d, 1)
    found: list[tuple[float, Combination]] = []

    def keep(above: NDArray[np.floating], *coordinates: Rows) -> None:
        table = np.stack(coordinates, axis=1)
        found.extend((float(above[at]), (table[at], None)) for at in _highest(above))

    keep(agree.sum(axis=0) / np.sqrt(m), np.arange(d))
    keep((agree.T @ agree)[left, right] / np.sqrt(m), left, right)
    threes, fours = _affordable(m, d * len(left)), _affordable(m, len(left) ** 2 // 2)
    two = agree[: max(threes, fours), left] * agree[: max(threes, fours), right] if threes or fours else agree[:0]
    if threes:
        above = agree[:threes].T @ two[:threes] / np.sqrt(threes)
        one, pair = np.nonzero((above > SEARCHED) & (np.arange(d)[:, None] < left))  # every set once, in order
        keep(above[one, pair], one, left[pair], right[pair])
    for start in range(0, len(left) if fours else 0, 512):
        after = int(np.searchsorted(left, left[start], side="right"))  # pairs that begin later: `left` is in order
        above = two[:fours, start : start + 512].T @ two[:fours, after:] / np.sqrt(fours)
        one, pair = np.nonzero((above > SEARCHED) & (right[start : start + 512, None] < left[after:]))
        values, one, pair = above[one, pair], one + start, pair + after
        keep(values, left[one], right[one], left[pair], right[pair])
    return found


def _affordable(pairs: int, combinations: int) -> int:
    """How many pairs of copies so many combinations can be counted on; none where that would be too few."""
    some = min(pairs, int(MOST_WORK / max(1, combinations)) - OVERHEAD)
    return some if some >= LEAST_PAIRS else 0


def _highest(values: NDArray[np.floating]) -> Rows:
    places = np.flatnonzero(values > SEARCHED)
    if len(places) > MOST_FOUND:
        places = places[np.argpartition(-values[places], MOST_FOUND)[:MOST_FOUND]]
    return places


def search_phases(x: Floats, first: Rows, second: Rows) -> list[tuple[float, Combination]]:
    """Pairs of coordinates, one in turns of its range and one at some frequency, whose phase agrees in pairs of copies;
    a coordinate in turns of its range alone comes with the frequency 0."""
    frequencies = np.arange(STEP, LARGEST + STEP / 2, STEP, dtype=np.float32)
    some = _affordable(len(first), 2 * len(frequencies) * x.shape[1] ** 2)
    apart = x[first[:some]] - x[second[:some]]
    m, d = apart.shape
    if not m:
        return []
    whole = 1 / np.maximum(np.ptp(x, axis=0), 1e-12)
    wrapped = 2 * np.pi * apart * whole
    cos, sin = np.cos(wrapped).astype(np.float32), np.sin(wrapped).astype(np.float32)
    unit = np.sqrt(2 / m)  # the mean of m cosines of random angles varies by this inverse
    alone = cos.sum(axis=0) * unit
    best: dict[tuple[int, int], tuple[float, float]] = {(at, at): (float(alone[at]), 0.0) for at in _highest(alone)}
    turned = (2 * np.pi * apart).astype(np.float32)
    for frequency in frequencies:
        one, other = np.cos(frequency * turned), np.sin(frequency * turned)
        both, crossed = one.T @ cos * unit, other.T @ sin * unit
        for sign in (1.0, -1.0):
            table = both - sign * crossed
            np.fill_diagonal(table, 0.0)
            for at in _highest(table.ravel()):
                pair = divmod(int(at), d)
                value = float(table[pair])
                if pair not in best or value > best[pair][0]:
                    best[pair] = value, sign * float(frequency)
    ranked = sorted(best.items(), key=lambda entry: -entry[1][0])[:REFINED]
    return [entry for pair, (_, f) in ranked for entry in _refine(apart, pair, f, whole[pair[1]])]


def _refine(
    apart: Floats, pair: tuple[int, int], frequency: float, whole: float
) -> Iterator[tuple[float, Combination]]:
    """The same phase at the frequencies nearby that agree best, as those searched are a coarse grid; and those of its
    multiples that agree as well."""
    both = apart[:, pair].T
    turns = np.array([frequency, whole])
    if pair[0] != pair[1]:
        for reach in (1.0, 0.1, 0.01):
            for place, spread in ((0, reach * STEP), (1, reach * NARROW * whole)):
                tried = np.repeat(turns[None], len(FINE), axis=0)
                tried[:, place] += spread * FINE
                turns = tried[int(np.argmax(np.cos(2 * np.pi * (tried @ both)).sum(axis=1)))]
    for multiple in (1.0, *HARMONICS):
        above = float(np.cos(2 * np.pi * multiple * (turns @ both)).sum() * np.sqrt(2 / both.shape[1]))
        if above > SEARCHED:
            yield above, (np.array(pair), multiple * turns)


def _origin(training: TrainingSet) -> Floats:
    """Where coordinates change their sign: at 0, unless their mean is clearly elsewhere; then at the mean."""
    space = training.space
    clear = np.abs(space.mean) > CLEAR * space.spreads / np.sqrt(max(1, training.copies))
    return np.where(clear, 0.0, -space.mean / space.spreads)


def _collect(origin: Floats, combinations: Sequence[Combination]) -> Interactions:
    signs = [rows for rows, turns in combinations if turns is None]
    phases = [(rows, turns) for rows, turns in combinations if turns is not None]
    return Interactions(
        origin,
        tuple(np.array([rows for rows in signs if len(rows) == size]) for size in range(1, 5)),
        np.array([rows for rows, _ in phases], np.int64).reshape(-1, 2),
        np.array([turns for _, turns in phases]).reshape(-1, 2),
    )
