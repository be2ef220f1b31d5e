"""Inference, the third criterion of Opinion 05/2014: what does protected speech still say about a person?

For an attribute (gender, age band, accent) a classifier is trained on the protected speech of other speakers and
guesses that of each speaker in turn. The classifier is a linear discriminant: the nearest class mean wins, in the space
of the vectors and in that whitened by their shrunk covariance, every class and every speaker counting equally.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.backends.base import Array, average, shrunk, unit64
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.intervals import multiplicities, percentile
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.registry import estimate_of, measure

LEAST_SPEAKERS = 4  # of a value, for it to be learnt from some and guessed for others


@dataclass(frozen=True, eq=False)
class Inference:
    """How often each speaker's attribute was guessed right.

    `correct[i]` is the share of speaker i's utterances guessed right, `label[i]` their value as an index into `values`;
    `null` the balanced accuracies when the speakers' values are shuffled.
    """

    attribute: str
    values: tuple[str, ...]
    speakers: tuple[str, ...]
    label: NDArray[np.int64]
    correct: Array
    null: Array
    folds: int
    left_out: dict[str, int]

    @property
    def value(self) -> float:
        """Balanced accuracy in percent: the mean over the values of the mean over their speakers."""
        return float(_balanced(self.correct, self.label, len(self.values)))

    @property
    def counts(self) -> dict[str, int]:
        """Speakers with each value."""
        found = np.bincount(self.label, minlength=len(self.values))
        return {value: int(n) for value, n in zip(self.values, found, strict=True)}

    def estimate(self, *, intervals: bool = True, resamples: int = 1000, seed: int = 0) -> Estimate:
        interval = None
        if intervals:
            rng = np.random.default_rng(seed)
            total = np.zeros(resamples)
            for code in range(len(self.values)):  # resampled within each value, so that none vanishes
                own = self.correct[self.label == code]
                total += multiplicities(rng, len(own), resamples) @ own / len(own)
            interval = percentile(100 * total / len(self.values))
        low, high = np.quantile(self.null, [0.05, 0.95])
        return estimate_of(
            "inference",
            self.value,
            label=f"{measure('inference').label}: {self.attribute}",
            interval=interval,
            null=100 / len(self.values),
            null_range=(float(low), float(high)),
            method=f"balanced accuracy, linear discriminant, {self.folds} folds by speaker",
            n={"speakers": len(self.speakers), "values": len(self.values)},
            at={"attribute": self.attribute},
        )


def infer(
    embeddings: Embeddings, attribute: str, *, folds: int = 5, permutations: int = 200, seed: int = 0
) -> Inference:
    """Guess `attribute` of every speaker by a classifier that never heard them.

    Speakers without a value, and values with fewer than 4 speakers, are left out and counted.
    """
    if attribute not in embeddings.attributes:
        known = ", ".join(embeddings.attributes) or "none"
        raise InputError(f"there is no attribute {attribute!r}; there are: {known}", path=embeddings.source or None)
    speaker_value = _speaker_values(embeddings, attribute)
    counts = Counter(value for value in speaker_value if value)
    values = tuple(sorted(value for value, n in counts.items() if n >= LEAST_SPEAKERS))
    left_out = {value or "unknown": n for value, n in Counter(speaker_value).items() if value not in values}
    if len(values) < 2:
        raise InputError(
            f"{attribute} can't be inferred: it needs two values with {LEAST_SPEAKERS} speakers or more, there are "
            + (", ".join(f"{value} ({n})" for value, n in sorted(counts.items())) or "no values at all"),
            path=embeddings.source or None,
        )
    code_of = {value: code for code, value in enumerate(values)}
    kept = [i for i, value in enumerate(speaker_value) if value in code_of]
    label = np.array([code_of[speaker_value[i]] for i in kept])
    position = np.full(len(embeddings.names), -1)
    position[kept] = np.arange(len(kept))
    rows = np.flatnonzero(position[embeddings.codes] >= 0)
    vectors, codes = unit64(embeddings.vectors[rows]), position[embeddings.codes[rows]]

    rng = np.random.default_rng(seed)
    folds = min(folds, int(np.bincount(label).min()))
    fold = _stratified(label, folds, rng)
    # One column for the true values and one for each shuffle; the whitening does not depend on the values.
    labels = np.stack([label, *(rng.permutation(label) for _ in range(permutations))])
    share = np.zeros((len(labels), len(kept)))
    for number in range(folds):
        seen = fold[codes] != number
        people, people_codes = np.unique(codes[seen], return_inverse=True)
        test_people, test_codes = np.unique(codes[~seen], return_inverse=True)
        views = discriminant_views(vectors[seen], vectors[~seen], len(people))
        means = [average(train, people_codes).vectors for train, _ in views]
        for row, shuffled in enumerate(labels):
            guess = nearest_class([test for _, test in views], means, shuffled[people], len(values))
            right = (guess == shuffled[codes[~seen]]).astype(float)
            share[row, test_people] = np.bincount(test_codes, right) / np.bincount(test_codes)
    null = np.array([_balanced(share[i], labels[i], len(values)) for i in range(1, len(labels))])
    names = tuple(embeddings.names[i] for i in kept)
    return Inference(attribute, values, names, label, share[0], null, folds, left_out)


def _speaker_values(embeddings: Embeddings, attribute: str) -> list[str]:
    column = embeddings.attributes[attribute]
    found: list[str] = []
    for code in range(len(embeddings.names)):
        seen = Counter(value for value in column[embeddings.codes == code] if value)
        found.append(seen.most_common(1)[0][0] if seen else "")
    return found


def _stratified(label: NDArray[np.int64], folds: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """A fold for each speaker, each value spread over all folds."""
    fold = np.empty(len(label), np.int64)
    for code in np.unique(label):
        own = rng.permutation(np.flatnonzero(label == code))
        fold[own] = np.arange(len(own)) % folds
    return fold


def discriminant_views(train: Array, test: Array, people: int) -> list[tuple[Array, Array]]:
    """The vectors as they are, and whitened: with few speakers the first tells more, with many the second. What varies
    is the speaker, so the covariance is shrunk as one of so many samples as there are speakers."""
    mean = train.mean(axis=0)
    centred, other = train - mean, test - mean
    covariance = shrunk(centred.T @ centred / len(train), people)
    half = np.linalg.cholesky(np.linalg.inv(covariance))
    return [(centred, other), (centred @ half, other @ half)]


def nearest_class(tests: list[Array], means: list[Array], label: NDArray[np.int64], values: int) -> NDArray[np.int64]:
    """The nearest class mean, by the sum of both views' squared distances in units of their spread."""
    distances = np.zeros((len(tests[0]), values))
    for test, mean in zip(tests, means, strict=True):
        scale = float(np.mean(np.einsum("ij,ij->i", test, test))) or 1.0
        for code in range(values):
            own = mean[label == code]
            if len(own):
                centre = own.mean(axis=0)
                distances[:, code] += (centre @ centre - 2 * test @ centre) / scale
            else:
                distances[:, code] = np.inf
    nearest: NDArray[np.int64] = distances.argmin(axis=1)
    return nearest


def _balanced(share: Array, label: NDArray[np.int64], values: int) -> float:
    return 100 * float(np.mean([share[label == code].mean() for code in range(values)]))
