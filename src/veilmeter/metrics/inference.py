"""Inference, the third criterion of Opinion 05/2014: what does protected speech still say about a person?

For an attribute (gender, age band, accent) a classifier is trained on the protected speech of other speakers and
guesses that of each recording. The classifier is a linear discriminant: the nearest class mean wins, in the space of
the vectors and in that whitened by their shrunk covariance, every class and every speaker counting equally. An
attribute that varies within speakers (an emotion, a style) is one of the recording, learned and guessed likewise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.intervals import t_quantile
from veilmeter.data.embeddings import Embeddings, unit64
from veilmeter.metrics.measure import Measure, estimate_of, find_measure

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
LEAST_SPEAKERS = 4  # of a value, for it to be learned from some and guessed for others
AT_ONCE = 4_000_000  # weights of training recordings in shuffles that are done at once


MEASURE = Measure(
    name="inference",
    label="attribute inference",
    unit="percent",
    better="lower",
    meaning="How often an attribute (gender, accent) is guessed right from protected speech, balanced over its values.",
    source="Opinion 05/2014",
    section="inference",
    equation="mean over values of the share guessed right",
    low=0,
    high=100,
    bar=100,
    headline=False,
)


@dataclass(frozen=True, eq=False)
class Inference:
    """How often an attribute was guessed right, by speaker and value.

    A cell is one speaker's recordings with one value: `correct` is the share guessed right, `label` the value as an
    index into `values`, `who` the speaker as an index into `speakers`. `null` are the balanced accuracies when it is
    shuffled who has which values. `varies` says whether a speaker has more than one value. `guesses` is the value that
    most recordings of each speaker are guessed to have, as an index.
    """

    attribute: str
    values: tuple[str, ...]
    speakers: tuple[str, ...]
    who: Codes
    label: Codes
    correct: Array
    null: Array
    folds: int
    left_out: dict[str, int]
    varies: bool
    guesses: Codes

    @property
    def value(self) -> float:
        """Balanced accuracy in percent: the mean over the values of the mean over their speakers."""
        return float(_recall(self.correct, self.label, len(self.values)))

    @property
    def counts(self) -> dict[str, int]:
        """Speakers with each value."""
        people = np.bincount(self.label, minlength=len(self.values))
        return {value: int(n) for value, n in zip(self.values, people, strict=True)}

    def interval(self) -> tuple[float, float]:
        """Student's t on the scale arcsin(sqrt(share)), over speakers.

        All guesses come from few classifiers, so they err together; how much, shuffled values show. The larger of the
        speakers' spread and of that of shuffles is taken: with the speakers' alone, 60 to 82 % of intervals held the
        truth where there was nothing to find.
        """
        mean = np.bincount(self.label, self.correct) / np.bincount(self.label)
        pull = (self.correct - mean[self.label]) / np.bincount(self.label)[self.label] / len(self.values)
        each = np.bincount(self.who, pull, len(self.speakers))
        people = len(self.speakers)
        share = self.value / 100
        slope = 2 * np.sqrt(max(share * (1 - share), 0.25 / people**2))
        error = float(np.sqrt(people / (people - 1) * np.sum(each**2))) / slope
        if len(self.null) > 1:
            error = max(error, float(_angle(self.null / 100).std(ddof=1)))
        half = t_quantile(people - 1, 0.975) * error
        middle = float(_angle(share))
        low, high = np.sin(np.clip([middle - half, middle + half], 0, np.pi / 2)) ** 2
        return (100 * float(low), 100 * float(high))

    def estimate(self, *, intervals: bool = True) -> Estimate:
        low, high = np.quantile(self.null, [0.05, 0.95])
        by = "by recording, " if self.varies else ""
        return estimate_of(
            "inference",
            self.value,
            label=f"{find_measure('inference').label}: {self.attribute}",
            interval=self.interval() if intervals else None,
            null=100 / len(self.values),
            null_range=(float(low), float(high)),
            method=f"balanced accuracy, linear discriminant, {by}{self.folds} folds by speaker",
            n={"speakers": len(self.speakers), "values": len(self.values)},
            at={"attribute": self.attribute},
        )


def infer(
    embeddings: Embeddings, attribute: str, *, folds: int = 5, permutations: int = 200, seed: int = 0
) -> Inference:
    """Guess `attribute` of every recording by a classifier that was not trained on its speaker.

    Recordings without a value, and values that fewer than 4 speakers have, are left out; `left_out` counts their
    speakers.
    """
    if attribute not in embeddings.attributes:
        known = ", ".join(embeddings.attributes) or "none"
        raise InputError(f"unknown attribute {attribute!r}; there are: {known}", path=embeddings.source or None)
    column = embeddings.attributes[attribute]
    having = Counter(value for _, value in set(zip(embeddings.codes.tolist(), column, strict=True)))
    values = tuple(sorted(value for value, n in having.items() if value and n >= LEAST_SPEAKERS))
    left_out = {value or "unknown": n for value, n in having.items() if value not in values}
    if len(values) < 2:
        counted = (f"{value} ({n})" for value, n in sorted(having.items()) if value)
        raise InputError(
            f"{attribute} can't be inferred: it needs two values with {LEAST_SPEAKERS} speakers or more, there are "
            + (", ".join(counted) or "no values at all"),
            path=embeddings.source or None,
        )
    code_of = {value: code for code, value in enumerate(values)}
    rows = np.flatnonzero([value in code_of for value in column])
    label = np.array([code_of[column[row]] for row in rows])
    people, who = np.unique(embeddings.codes[rows], return_inverse=True)
    work = _Guesses(unit64(embeddings.vectors[rows]), who, len(values))

    rng = np.random.default_rng(seed)
    cells = np.unique(who * len(values) + label)
    folds = min(folds, int(np.bincount(cells % len(values)).min()))
    first = np.unique(who, return_index=True)[1]
    fold = _stratify(label[first], folds, rng)
    labels = np.stack([label, *(shuffle(label, who, rng) for _ in range(permutations))])
    guessed = work.guess(labels, fold, folds)
    right = guessed == labels
    cells, share = work.shares(label, right[0])
    null = np.array([work.recall(labels[i], right[i]) for i in range(1, len(labels))])
    names = tuple(embeddings.names[person] for person in people)
    varies = len(cells) > len(people)
    who, label = cells // len(values), cells % len(values)
    votes = np.zeros((len(people), len(values)))
    np.add.at(votes, (work.who, guessed[0]), 1)
    return Inference(
        attribute, values, names, who, label, share, null, folds, left_out, varies, votes.argmax(axis=1)
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Combinations:
    """How many people share the values of several attributes, as they were guessed: of `people`, how many are `alone`
    with their combination, and of how many of these every value is right, so that it describes a real person. The
    rarest combination is that of `smallest` people, and half of the people share theirs with at least `typical`, all
    counted with the person."""

    people: int
    combinations: int
    alone: int
    alone_and_right: int
    smallest: int
    typical: int


def combine_guesses(inferences: Sequence[Inference]) -> Combinations | None:
    """The combinations of all attributes that do not vary within speakers; None for fewer than two of them."""
    stable = [inference for inference in inferences if not inference.varies]
    if len(stable) < 2:
        return None
    guessed = [dict(zip(i.speakers, i.guesses.tolist(), strict=True)) for i in stable]
    true = [{i.speakers[who]: int(label) for who, label in zip(i.who, i.label, strict=True)} for i in stable]
    names = [name for name in stable[0].speakers if all(name in of_attribute for of_attribute in guessed)]
    cells = {name: tuple(of_attribute[name] for of_attribute in guessed) for name in names}
    sizes = Counter(cells.values())
    alone = [name for name in names if sizes[cells[name]] == 1]
    right = [name for name in alone if cells[name] == tuple(of_attribute[name] for of_attribute in true)]
    sharing = sorted((sizes[cell] for cell in cells.values()), reverse=True)
    return Combinations(len(names), len(sizes), len(alone), len(right), sharing[-1], sharing[(len(sharing) - 1) // 2])


def residual(estimate: Estimate) -> tuple[float, tuple[float, float] | None] | None:
    """The risk of anonymeter with its interval: correct inferences beyond those of the control, as a percentage of what
    the control leaves. The control guesses from somebody else's recordings.

    >>> residual(Estimate(name="inference", value=80.0, unit="percent", null=50.0, interval=(70.0, 90.0)))
    (60.0, (40.0, 80.0))
    """
    control = estimate.null
    if control is None or control >= 100:
        return None
    beyond = [100 * (end - control) / (100 - control) for end in (estimate.value, *(estimate.interval or ()))]
    return beyond[0], (beyond[1], beyond[2]) if estimate.interval is not None else None


def shuffle(label: Codes, who: Codes, rng: np.random.Generator) -> Codes:
    """Everybody gets the values of somebody else, in random order: as many values as a speaker really has stay
    together, but which ones, and of which recordings, is chance."""
    counts = np.bincount(who)
    starts = np.cumsum(counts) - counts
    order = np.argsort(who, kind="stable")
    mixed = np.lexsort((rng.random(len(who)), who))  # everybody's own recordings in random order
    other = np.repeat(rng.permutation(len(counts)), counts)
    number = np.arange(len(who)) - np.repeat(starts, counts)
    dealt = np.empty_like(label)
    dealt[order] = label[mixed[starts[other] + number % counts[other]]]
    return dealt


class _Guesses:
    """Recordings whose attribute is guessed, for many permutations of its values."""

    def __init__(self, vectors: Array, who: Codes, values: int) -> None:
        self.vectors, self.who, self.values = vectors, who, values

    def guess(self, labels: Codes, fold: Codes, folds: int) -> NDArray[np.int16]:
        """The value that each recording is guessed to have (shuffles x recordings)."""
        guesses = np.zeros(labels.shape, np.int16)
        for number in range(folds):
            test = fold[self.who] == number
            seen, unseen = np.flatnonzero(~test), np.flatnonzero(test)
            people, first, of = np.unique(self.who[seen], return_index=True, return_inverse=True)
            views = discriminant_views(self.vectors[seen], self.vectors[unseen], len(people))
            trained, rows, who = [train for train, _ in views], seen, self.who[seen]
            if (labels[:, seen] == labels[:, seen[first]][:, of]).all():
                # Nobody's value varies: everybody's mean stands for their recordings.
                trained = [_means(train, of) for train in trained]
                rows, who = seen[first], np.arange(len(people))
            step = max(1, AT_ONCE // (self.values * len(rows)))
            for start in range(0, len(labels), step):
                part = labels[start : start + step]
                weights = np.stack([self._weights(dealt[rows], who) for dealt in part])
                centers = [weights @ train for train in trained]
                guesses[start : start + step, unseen] = nearest_center([other for _, other in views], centers)
        return guesses

    def _weights(self, label: Codes, who: Codes) -> Array:
        """The weight of each recording in the mean of each value, speakers counting equally; NaN for unused values."""
        cell = who * self.values + label
        sizes = np.bincount(cell, minlength=self.values)
        speakers = np.bincount(np.flatnonzero(sizes) % self.values, minlength=self.values)
        weights = np.zeros((self.values, len(label)))
        weights[label, np.arange(len(label))] = 1 / (sizes[cell] * speakers[label])
        weights[speakers == 0] = np.nan
        return weights

    def shares(self, label: Codes, right: NDArray[np.bool_]) -> tuple[Codes, Array]:
        """The cells (speaker x values + value) that there are, and the share guessed right in each."""
        cells, where = np.unique(self.who * self.values + label, return_inverse=True)
        return cells, np.bincount(where, right) / np.bincount(where)

    def recall(self, label: Codes, right: NDArray[np.bool_]) -> float:
        cells, share = self.shares(label, right)
        return _recall(share, cells % self.values, self.values)


def _means(vectors: Array, of: Codes) -> Array:
    """The mean over the rows of each speaker."""
    order = np.argsort(of, kind="stable")
    counts = np.bincount(of)
    return np.asarray(np.add.reduceat(vectors[order], np.cumsum(counts) - counts) / counts[:, None])


def _stratify(label: Codes, folds: int, rng: np.random.Generator) -> Codes:
    """A fold for each speaker, each value spread over all folds."""
    fold = np.empty(len(label), np.int64)
    begin = 0
    for code in np.unique(label):
        own = rng.permutation(np.flatnonzero(label == code))
        fold[own] = (begin + np.arange(len(own))) % folds
        begin += len(own)
    return fold


def _recall(share: Array, label: Codes, values: int) -> float:
    return 100 * float(np.mean([share[label == code].mean() for code in range(values) if (label == code).any()]))


def _angle(share: Array | float) -> Array:
    return np.asarray(np.arcsin(np.sqrt(np.clip(share, 0, 1))))


def shrunk(covariance: Array, samples: int) -> Array:
    """With its correlation shrunk towards the identity, so that it can be inverted when there are fewer samples than
    dimensions; each coordinate keeps its own variance.

    The share is the oracle approximating one (Chen et al. 2010), for the correlation. Shrunk towards a multiple of the
    identity, coordinates of low variance would be drowned, and with them the differences between people.
    """
    d = len(covariance)
    variances = np.diag(covariance)
    mean = float(variances.mean())
    if mean <= 0:
        return np.eye(d)
    # A floor for coordinates that hold no variance at all, as when the vectors lie in a subspace.
    scales = np.sqrt(np.maximum(variances, 1e-9 * mean))
    correlation = covariance / np.outer(scales, scales)
    np.fill_diagonal(correlation, 1.0)
    trace_of_square = float(np.sum(correlation**2))
    above = (1 - 2 / d) * trace_of_square + d**2
    below = (samples + 1 - 2 / d) * (trace_of_square - d)
    weight = 1.0 if below <= 0 else min(1.0, above / below)
    mixed: Array = ((1 - weight) * correlation + (weight + 1e-9) * np.eye(d)) * np.outer(scales, scales)
    return mixed


def discriminant_views(train: Array, test: Array, people: int) -> list[tuple[Array, Array]]:
    """The vectors as they are, and whitened: with few speakers the first tells more, with many the second. What varies
    is the speaker, so the covariance is shrunk as one of so many samples as there are speakers."""
    mean = train.mean(axis=0)
    centered, other = train - mean, test - mean
    covariance = shrunk(centered.T @ centered / len(train), people)
    half = np.linalg.cholesky(np.linalg.inv(covariance))
    return [(centered, other), (centered @ half, other @ half)]


def nearest_class(tests: list[Array], means: list[Array], label: NDArray[np.int64], values: int) -> NDArray[np.int64]:
    """The nearest class mean of each test; `means` are those of speakers, `label` their classes."""
    weights = np.zeros((values, len(label)))
    weights[label, np.arange(len(label))] = 1
    sizes = weights.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return np.asarray(nearest_center(tests, [(weights @ mean / sizes)[None] for mean in means])[0])


def nearest_center(tests: Sequence[Array], centers: Sequence[Array]) -> NDArray[np.int64]:
    """The nearest center of each test (sets x tests), for sets of centers (sets x values x dimensions) in each view.

    Distances are squared, in units of each view's spread, and summed over the views; a center that is NaN is nobody's.
    """
    sets, values, _ = centers[0].shape
    distances = np.zeros((len(tests[0]), sets * values))
    for test, center in zip(tests, centers, strict=True):
        flat = center.reshape(sets * values, -1)
        scale = float(np.mean(np.einsum("ij,ij->i", test, test))) or 1.0
        distances += (np.einsum("ij,ij->i", flat, flat) - 2 * test @ flat.T) / scale
    distances = np.where(np.isnan(distances), np.inf, distances)
    return np.asarray(distances.reshape(-1, sets, values).argmin(axis=2).T, np.int64)
