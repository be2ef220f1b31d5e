"""What an utterance expresses, such as an emotion: can it still be recognized in anonymized speech?

Attribute inference turned round: here what survives is welcome. The label varies within a speaker, so folds are of
speakers and every guess is of one utterance, by a classifier that was not trained on its speaker. The challenges train
it on original speech; one trained on anonymized speech tells what a user could reach who adapts to the system.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.intervals import draw_people, percentile
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.inference import discriminant_views, nearest_class
from veilmeter.metrics.measure import Measure, estimate_of, find_measure

LEAST_SPEAKERS = 3  # with a value, for it to be learned from some and recognized for others
FOLDS = 5

Array = NDArray[np.float64]


MEASURE = Measure(
    name="label_recall",
    label="label recall",
    unit="percent",
    better="neither",
    meaning="How well a label of an utterance, such as its emotion, is still recognized in anonymized speech, "
    "with equal weight for every value.",
    source="cf. Tomashenko et al. 2022",
    section="utility",
    equation="unweighted average recall (UAR) over the values",
    low=0,
    high=100,
    bar=100,
    use="higher",
    order=60,
    headline=False,
)


@dataclass(frozen=True, eq=False)
class LabelRecall:
    """`right[i]` says whether the label of utterance i was told, `label[i]` its value as an index into `values`,
    `speaker[i]` who spoke, as a number."""

    name: str
    values: tuple[str, ...]
    label: NDArray[np.int64]
    speaker: NDArray[np.int64]
    right: NDArray[np.bool_]
    trained_on: str
    heard: str
    left_out: int

    @property
    def value(self) -> float:
        """Unweighted average recall in percent: the mean over the values of the share of their utterances."""
        return float(np.mean(list(self.recalls.values())))

    @property
    def recalls(self) -> dict[str, float]:
        """By value, the share of its utterances that were recognized, in percent."""
        return {name: 100 * float(self.right[self.label == code].mean()) for code, name in enumerate(self.values)}

    def estimate(self, *, intervals: bool = True, resamples: int = 1000, seed: int = 0) -> Estimate:
        interval = None
        people = int(self.speaker.max()) + 1
        if intervals and people > 1:
            drawn = draw_people(seed, people, range(resamples))[self.speaker]  # one column per resample
            recalls = []
            for code in range(len(self.values)):
                own = self.label == code
                total = drawn[own].sum(axis=0)
                recalls.append(np.where(total > 0, self.right[own] @ drawn[own] / np.maximum(total, 1), np.nan))
            interval = percentile(100 * np.nanmean(recalls, axis=0))
        return estimate_of(
            "label_recall",
            self.value,
            label=f"{find_measure('label_recall').label}: {self.name}",
            interval=interval,
            null=100 / len(self.values),
            method=f"linear discriminant trained on {self.trained_on} speech of other speakers, read from {self.heard}",
            n={"utterances": len(self.label), "speakers": people, "values": len(self.values)},
            at={"label": self.name, "trained_on": self.trained_on, "read_from": self.heard},
            extra={"recalls": self.recalls},
        )


def recall_labels(
    train: Embeddings, test: Embeddings, name: str, *, trained_on: str, heard: str, folds: int = FOLDS, seed: int = 0
) -> LabelRecall:
    """Tell the label `name` of every utterance of `test` by a classifier trained on other speakers' rows of `train`.

    Row i of both is the same utterance, whose label `train` says. Utterances without a label, and values with fewer
    than 3 speakers, are left out.
    """
    if train.utterances.tolist() != test.utterances.tolist():
        raise InputError("both sides must hold the same utterances in the same order")
    if name not in train.attributes:
        known = ", ".join(train.attributes) or "none"
        raise InputError(f"unknown label {name!r}; there are: {known}", path=train.source or None)
    column = np.asarray(train.attributes[name])
    speakers_of = Counter(value for value, _ in {(v, c) for v, c in zip(column, train.codes, strict=True) if v})
    values = tuple(sorted(value for value, count in speakers_of.items() if count >= LEAST_SPEAKERS))
    if len(values) < 2:
        listed = ", ".join(f"{value} ({count})" for value, count in sorted(speakers_of.items())) or "no values at all"
        raise InputError(
            f"{name} can't be measured: it needs two values with {LEAST_SPEAKERS} speakers or more, there are {listed}",
            path=train.source or None,
        )
    rows = np.flatnonzero(np.isin(column, values))
    label = np.searchsorted(values, column[rows])
    _, speaker = np.unique(train.codes[rows], return_inverse=True)
    right = np.zeros(len(rows), bool)
    fold = np.random.default_rng(seed).permutation(int(speaker.max()) + 1) % min(folds, int(speaker.max()) + 1)
    learned, tested = (np.asarray(side.unit[rows], np.float64) for side in (train, test))
    for number in np.unique(fold):
        seen = fold[speaker] != number
        right[~seen] = _classify(learned[seen], tested[~seen], label[seen], speaker[seen], len(values)) == label[~seen]
    left_out = len(train) - len(rows)
    return LabelRecall(name, values, label, speaker, right, trained_on, heard, left_out)


def _classify(
    train: Array, test: Array, label: NDArray[np.int64], speaker: NDArray[np.int64], values: int
) -> NDArray[np.int64]:
    """The nearest mean of a value, every speaker who has it counting equally."""
    cells, codes = np.unique(np.stack([speaker, label]), axis=1, return_inverse=True)
    views = discriminant_views(train, test, len(np.unique(speaker)))
    sizes = np.bincount(codes.ravel())[:, None]
    means = []
    for side, _ in views:
        total = np.zeros((len(sizes), side.shape[1]))
        np.add.at(total, codes.ravel(), side)
        means.append(total / sizes)
    return nearest_class([other for _, other in views], means, cells[1], values)


def label_estimates(original: Embeddings, anonymized: Embeddings, name: str, *, seed: int = 0) -> list[Estimate]:
    """Told from original speech, and from anonymized speech by either training: three points of one measure."""
    original_words, anonymized_words = "original", "anonymized"
    with_labels = Embeddings(
        anonymized.vectors, anonymized.utterances, anonymized.speakers, original.attributes, None, anonymized.source
    )
    runs = (
        (original, original, original_words, original_words),
        (original, anonymized, original_words, anonymized_words),
        (with_labels, anonymized, anonymized_words, anonymized_words),
    )
    return [
        recall_labels(train, test, name, trained_on=trained_on, heard=heard, seed=seed).estimate(seed=seed)
        for train, test, trained_on, heard in runs
    ]
