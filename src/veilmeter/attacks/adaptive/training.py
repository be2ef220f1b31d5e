"""The data that methods are fitted on: centered unit vectors, speaker means, and what other people's speech adds.

x <- unit(x - mean of the copies), y <- unit(y - mean of the originals); a trial is treated as a copy. Coordinates are
then brought to one variance: people may differ where vectors hardly vary. The length of a vector, which all this
removes, is kept as one more coordinate, because people may differ in it too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.adaptive.own_data import OtherCopies, OwnData, View
from veilmeter.attacks.backends.base import unit64
from veilmeter.attacks.material import Floats, Rows

LEAST_SPREAD = 1e-4  # of the logarithm of lengths: below, all vectors are of one length
LEAST_SCALE = 1e-6  # of the mean one: below, a coordinate does not vary at all
PREDICTION = 0.3  # the ridge, in units of the mean variance, that predicts copies of people who have none


@dataclass(frozen=True, eq=False)
class Space:
    """Where raw vectors are put: the mean that is taken off, what coordinates are divided by, and how lengths become a
    coordinate; and the spread of each coordinate, for methods that take coordinates as they are."""

    mean: Floats
    scales: Floats
    length: float
    spread: float
    spreads: Floats

    @classmethod
    def fit(cls, vectors: Floats) -> Space:
        lengths = np.log(np.maximum(np.linalg.norm(vectors, axis=1), 1e-12))
        spread = float(lengths.std())
        mean = vectors.mean(axis=0)
        turned = unit64(vectors - mean)
        scales = turned.std(axis=0)
        scales = np.maximum(scales, LEAST_SCALE * max(float(scales.mean()), 1e-12))
        scales *= np.sqrt(np.mean(np.sum((turned / scales) ** 2, axis=1))) or 1.0  # so that lengths are about 1
        spreads = vectors.std(axis=0)
        spreads = np.maximum(spreads, LEAST_SCALE * max(float(spreads.mean()), 1e-12))
        return cls(mean, scales, float(lengths.mean()), spread if spread > LEAST_SPREAD else 0.0, spreads)

    def apply(self, vectors: Floats) -> Floats:
        d = vectors.shape[1]
        lengths = np.zeros(len(vectors))
        if self.spread:
            logs = np.log(np.maximum(np.linalg.norm(vectors, axis=1), 1e-12))
            # As large as the other coordinates are on average, so that it weighs like one of them.
            lengths = np.clip((logs - self.length) / self.spread, -3, 3) / np.sqrt(d)
        return np.concatenate([unit64(vectors - self.mean) / self.scales, lengths[:, None]], axis=1)

    def coordinates(self, vectors: Floats) -> Floats:
        """Each coordinate by itself, in units of its spread."""
        return (vectors - self.mean) / self.spreads


@dataclass(frozen=True, eq=False)
class DrawnPairs:
    """Originals (`before`) and copies (`after`) whose draw is named, row by row; `labels` are the candidates, -1 for
    other people."""

    before: Floats
    after: Floats
    draws: Rows
    labels: Rows


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """Copies `x` with their candidates `labels`, `copies` of them real and the others predicted; `mu` the centered
    means of the candidates' originals. `coordinates` are the real copies coordinate by coordinate (see `Space`), and
    `recordings` which recording each of them is of.

    `pairs_x` and `pairs_y` are other people's copies and originals, row by row, and `within` their covariance within a
    speaker, over draws and utterances. `drawn` are the pairs of everybody whose draw is named, None where none is.
    """

    candidates: int
    x: Floats
    labels: Rows
    mu: Floats
    space: Space
    coordinates: Floats
    recordings: Rows
    comparable: bool = True
    copies: int = 0
    pairs_x: Floats | None = None
    pairs_y: Floats | None = None
    within: Floats | None = None
    drawn: DrawnPairs | None = None

    @cached_property
    def counts(self) -> Rows:
        return np.bincount(self.labels, minlength=self.candidates)

    @cached_property
    def heard(self) -> Rows:
        """How many real copies there are of each candidate."""
        return np.bincount(self.labels[: self.copies], minlength=self.candidates)

    @cached_property
    def means(self) -> Floats:
        """The mean copy of each candidate."""
        return class_means(self.x, self.labels, self.candidates)

    @cached_property
    def spectrum(self) -> tuple[Floats, Floats]:
        """Eigenvalues and eigenvectors of X'X, from the smaller of the two products."""
        return spectrum(self.x)

    def ridge(self, targets: Floats, strength: float) -> Floats:
        """(X'X + strength I)^-1 X' H, with X' H given."""
        return solve_ridge(self.spectrum, targets, strength)


def make_training(
    data: OwnData, view: View, rows: NDArray[np.bool_], copied: NDArray[np.bool_], runs: Sequence[int]
) -> TrainingSet:
    """The training of `view` on the originals of these utterances and the copies of those (masks) in these runs."""
    originals = view.originals[rows]
    means_of = Space.fit(originals)
    mu = class_means(means_of.apply(originals), data.labels[rows], data.candidates)
    center = mu.mean(axis=0)
    mu -= center
    held = [(run, np.flatnonzero(copied & data.present[run])) for run in runs]
    if not any(len(recordings) for _, recordings in held):
        training, recordings, draws = _without_copies(data, view, mu), np.zeros(0, np.int64), np.zeros(0, np.int64)
        copies = view.others.copies[:0] if view.others is not None else view.originals[:0]
    else:
        recordings = np.concatenate([recordings for _, recordings in held])
        copies = np.concatenate([view.copies[run][recordings] for run, recordings in held])
        draws = np.concatenate([data.named[run][recordings] for run, recordings in held])
        training = _of_copies(data, view, mu, copies, recordings)
    pairs = _pairs_with_draws(view.originals[recordings], copies, draws, data.labels[recordings], view.others)
    if pairs is not None:
        before, after = means_of.apply(pairs.before) - center, training.space.apply(pairs.after)
        training = replace(training, drawn=replace(pairs, before=before, after=after))
    return training


def _of_copies(data: OwnData, view: View, mu: Floats, copies: Floats, recordings: Rows) -> TrainingSet:
    n, labels = data.candidates, data.labels[recordings]
    space = Space.fit(copies)
    x = space.apply(copies)
    pairs_x, pairs_y, within = _others(view.others)
    heard = len(x)
    x, labels = _with_predicted(x, labels, mu, n, pairs_x, pairs_y)
    as_they_are = space.coordinates(copies)
    return TrainingSet(
        n, x, labels, mu, space, as_they_are, recordings, view.comparable, heard, pairs_x, pairs_y, within
    )


def _pairs_with_draws(
    originals: Floats, copies: Floats, draws: Rows, labels: Rows, others: OtherCopies | None
) -> DrawnPairs | None:
    """The pairs with a named draw, as raw vectors."""
    known = draws >= 0
    parts = [(originals[known], copies[known], draws[known], labels[known])]
    if others is not None:
        known = others.draws >= 0
        strangers = np.full(int(known.sum()), -1)
        parts.append((others.originals[known], others.copies[known], others.draws[known], strangers))
    pairs = DrawnPairs(*(np.concatenate(side) for side in zip(*parts, strict=True)))
    return pairs if len(pairs.draws) else None


def _without_copies(data: OwnData, view: View, mu: Floats) -> TrainingSet:
    """No candidate has a copy: other people's pairs predict them; without these, only originals can be compared."""
    pairs_x, pairs_y, within = _others(view.others)
    space = Space.fit(view.originals if view.others is None else view.others.copies)
    x, labels = np.zeros((0, len(space.mean) + 1)), np.zeros(0, np.int64)
    if pairs_x is not None:
        x, labels = _with_predicted(x, labels, mu, data.candidates, pairs_x, pairs_y)
    none = np.zeros((0, len(space.mean))), np.zeros(0, np.int64)
    return TrainingSet(data.candidates, x, labels, mu, space, *none, view.comparable, 0, pairs_x, pairs_y, within)


def _others(others: OtherCopies | None) -> tuple[Floats | None, Floats | None, Floats | None]:
    """Other people's pairs, each side centered by its own mean, and their covariance within a speaker."""
    if others is None:
        return None, None, None
    x = Space.fit(others.copies).apply(others.copies)
    y = Space.fit(others.originals).apply(others.originals)
    codes = np.unique(others.speakers, return_inverse=True)[1]
    people = int(codes.max()) + 1
    free = len(x) - people
    if free <= 10:
        return x, y, None
    rest = x - class_means(x, codes, people)[codes]
    return x, y, rest.T @ rest / free


def _with_predicted(
    x: Floats, labels: Rows, mu: Floats, n: int, pairs_x: Floats | None, pairs_y: Floats | None
) -> tuple[Floats, Rows]:
    """Candidates without any copy get one that the others' originals and copies predict from their original."""
    counts = np.bincount(labels, minlength=n)
    missing = np.flatnonzero(counts == 0)
    if not len(missing):
        return x, labels
    known = np.flatnonzero(counts)
    if len(known):
        center = x.mean(axis=0)
        before, after = mu[known], class_means(x, labels, n)[known] - center
    else:
        center = np.zeros(x.shape[1])
        before, after = np.zeros((0, mu.shape[1])), np.zeros((0, x.shape[1]))
    if pairs_x is not None and pairs_y is not None:
        before, after = np.concatenate([before, pairs_y]), np.concatenate([after, pairs_x - pairs_x.mean(axis=0)])
    values, axes = spectrum(before)
    strength = PREDICTION * float(np.sum(before**2)) / max(1, len(before))
    predicted = mu[missing] @ solve_ridge((values, axes), before.T @ after, max(strength, 1e-9)) + center
    return np.concatenate([x, predicted]), np.concatenate([labels, missing])


def class_means(x: Floats, labels: Rows, n: int) -> Floats:
    """The mean of the rows of each class; zero where it has none."""
    counts = np.bincount(labels, minlength=n)
    return class_sums(x, labels, n) / np.maximum(counts, 1)[:, None]


def class_sums(x: Floats, labels: Rows, n: int) -> Floats:
    """The sum of the rows of each class."""
    sums = np.zeros((n, x.shape[1]))
    if len(labels):
        order = np.argsort(labels, kind="stable")
        classes, starts = np.unique(labels[order], return_index=True)
        sums[classes] = np.add.reduceat(x[order], starts, axis=0)
    return sums


def spectrum(x: Floats) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of x'x; only those of the span of x where it has few rows."""
    if len(x) < x.shape[1]:
        _, values, vt = np.linalg.svd(x, full_matrices=False)
        return values**2, vt.T
    values, axes = np.linalg.eigh(x.T @ x)
    return np.maximum(values, 0.0), axes


def solve_ridge(parts: tuple[Floats, Floats], targets: Floats, strength: float) -> Floats:
    """(x'x + strength I)^-1 targets, for targets in the span of x' (such as x'h)."""
    values, axes = parts
    solution: Floats = (axes / (values + strength)) @ (axes.T @ targets)
    return solution
