"""From vectors to a score for every enrolled person and every conversation: one back end, or cross-validated ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from itertools import combinations
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from veilmeter.attacks.backends.base import (
    BACKENDS,
    PLAIN,
    Averages,
    Backend,
    ScoringOptions,
    average,
    best_of_each,
    nearest,
    normalize,
    single,
    without_own,
)
from veilmeter.attacks.material import Floats, Rows
from veilmeter.core.errors import InputError
from veilmeter.core.user_code import foreign_version
from veilmeter.data.embeddings import Embeddings

DECIMALS = 9
LEAST_SPEAKERS = 6  # for cross-validation: fewer can't be trained on some and tested on others


class Scorer(Protocol):
    """Scores enrolled people (rows) against conversations (columns); `groups` are rows of `test`, one line each."""

    @property
    def name(self) -> str: ...

    def matrix(self, enroll: Embeddings, test: Embeddings, groups: Rows) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Fixed:
    """One back end for everybody: untrained, or trained on other people's speech.

    `test_backend` is another one for the trials' side, where clear and protected vectors are treated apart.
    """

    backend: Backend
    test_backend: Backend | None = None
    options: ScoringOptions = PLAIN

    @property
    def name(self) -> str:
        return f"{self.backend.name}{self.options}"

    @property
    def is_cosine(self) -> bool:
        """Whether a score is the cosine of two projected, averaged vectors."""
        return self.options == PLAIN and bool(getattr(self.backend, "is_cosine", False))

    def matrix(self, enroll: Embeddings, test: Embeddings, groups: Rows) -> Floats:
        other = self.test_backend or self.backend
        known = KnownRecordings.of(self.backend, enroll)
        spoken = conversations_of(other.project(test.vectors), groups)
        return round_scores(known.compare(spoken, self.options))


@dataclass(frozen=True, eq=False)
class KnownRecordings:
    """The enrolled people in a back end's space: recording by recording, and their means."""

    backend: Backend
    recordings: Averages
    codes: Rows
    people: Averages

    @classmethod
    def of(cls, backend: Backend, enroll: Embeddings) -> KnownRecordings:
        projected = backend.project(enroll.vectors)
        return cls(backend, single(projected), enroll.codes, average(projected, enroll.codes, len(enroll.names)))

    def compare(self, spoken: Averages, options: ScoringOptions) -> Floats:
        """A score for every person (rows) and conversation (columns)."""
        if options == PLAIN:
            return self.backend.compare(self.people, spoken)
        with_each = self.backend.compare(self.recordings, spoken).T
        raw = (
            best_of_each(with_each, self.codes, len(self.people))
            if options.best
            else self.backend.compare(self.people, spoken).T
        )
        if options.normalized:
            strangers = without_own(self.backend.compare(self.people, self.recordings), self.codes)
            raw = normalize(raw, nearest(strangers), nearest(with_each))
        scores: Floats = raw.T
        return scores


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """Back ends trained without two folds of speakers each: a pair of people is scored by one that saw neither.

    Every pair is scored by exactly one: two people of different folds by the one that left out both, two of one fold
    (all target pairs among them) by the one that left out that fold and the next. An average of several for some pairs
    only would spread their scores less than those of the others, which biases every measure.
    """

    backends: Mapping[tuple[int, int], Backend]
    fold: Mapping[str, int]
    folds: int
    options: ScoringOptions = PLAIN

    @property
    def name(self) -> str:
        return f"{next(iter(self.backends.values())).name}{self.options}, {self.folds}-fold by speaker"

    def pair_of(self, first: int, second: int) -> tuple[int, int]:
        """The back end that compares two people of these folds."""
        other = (first + 1) % self.folds if first == second else second
        return min(first, other), max(first, other)

    def matrix(self, enroll: Embeddings, test: Embeddings, groups: Rows) -> Floats:
        row_fold = np.array([self.fold[name] for name in enroll.names])
        column_fold = np.array([self.fold[test.speakers[group[0]]] for group in groups])
        scores = np.zeros((len(row_fold), len(column_fold)))
        for pair, backend in self.backends.items():
            blocks = [(a, b) for a in pair for b in pair if self.pair_of(a, b) == pair]
            known = KnownRecordings.of(backend, enroll)
            projected = backend.project(test.vectors)
            for a, b in blocks:
                rows, columns = np.flatnonzero(row_fold == a), np.flatnonzero(column_fold == b)
                if len(rows) and len(columns):
                    spoken = conversations_of(projected, groups[columns])
                    scores[np.ix_(rows, columns)] = known.compare(spoken, self.options)[rows]
        return round_scores(scores)


def conversations_of(projected: Floats, groups: Rows) -> Averages:
    return Averages(projected[groups].mean(axis=1), np.full(len(groups), groups.shape[1], np.int64))


def round_scores(scores: Floats) -> Floats:
    """Without the last few bits, which depend on how a matrix product was cut up: equal vectors give equal scores. The
    array itself is changed: of many people it is large."""
    scale = max(1.0, float(scores.max(initial=0.0)), -float(scores.min(initial=0.0)))
    places = DECIMALS - int(np.ceil(np.log10(scale)))
    np.round(scores, places, out=scores)
    scores += 0.0
    return scores


@dataclass(frozen=True, slots=True)
class KaldiFiles:
    """A back end that Kaldi trained; the files count by their content."""

    plda: Path
    mean: Path | None = None
    lda: Path | None = None

    @classmethod
    def of(cls, plda: str | None, mean: str | None = None, lda: str | None = None) -> KaldiFiles | None:
        """The files of these paths; None without a PLDA model."""
        if plda is None:
            return None
        return cls(Path(plda), *(None if file is None else Path(file) for file in (mean, lda)))


@dataclass(frozen=True, eq=False)
class Recipe:
    """How a scorer is made; it travels to where the work runs, and the training is done there.

    `kind` is a back end by name, with its options behind a colon. With `folds` it is cross-validated over the speakers
    of `training`.
    """

    kind: str = "cosine"
    training: Embeddings | None = None
    folds: int | None = None
    seed: int = 0
    dimension: int | None = None
    kaldi: KaldiFiles | None = None

    def key(self) -> Any:
        """Its fields, and the code of a back end that another package brings."""
        own = [getattr(self, part.name) for part in fields(self)]
        return own, foreign_version(BACKENDS[ScoringOptions.parse(self.kind)[0]])

    def scorer(self, enroll: Embeddings, test: Embeddings) -> Scorer:
        if self.kaldi is not None:
            from veilmeter.attacks.backends.lda import read_kaldi_recipe

            return Fixed(read_kaldi_recipe(self.kaldi.plda, self.kaldi.mean, self.kaldi.lda))
        name, options = ScoringOptions.parse(self.kind)
        kind = BACKENDS[name]
        if self.training is None:
            if kind.needs_training:
                raise InputError(
                    f"the back end {self.kind} needs training speech", fix="give --train-original or choose cosine"
                )
            return Fixed(*kind.build(enroll, test), options=options)
        if self.folds is not None:
            others = tuple({*enroll.names, *test.names})
            folded = cross_validated(name, self.dimension, self.training, others, self.folds, self.seed)
            return replace(folded, options=options)
        return Fixed(kind.train(self.training, self.dimension), options=options)


def cross_validated(
    kind: str, dimension: int | None, material: Embeddings, others: tuple[str, ...], folds: int, seed: int
) -> CrossValidated:
    """Back ends trained on the assessed speakers' own protected speech, without the two folds they are used for.

    `others` are speakers that have no training speech but are scored.
    """
    names = sorted({*material.names, *others})
    if len(names) < LEAST_SPEAKERS:
        raise InputError(
            f"an attacker can't be trained by cross-validation on {len(names)} speakers",
            fix="give training speech of other people (--train-anonymized)",
        )
    folds = min(folds, len(names))
    order = np.random.default_rng([seed, 7]).permutation(len(names))
    fold = {names[person]: place % folds for place, person in enumerate(order)}
    of = np.array([fold[speaker] for speaker in material.speakers])
    backends: dict[tuple[int, int], Backend] = {}
    for a, b in combinations(range(folds), 2):
        kept = material.take((of != a) & (of != b))
        backends[a, b] = BACKENDS[kind].train(kept, dimension)
    return CrossValidated(backends, fold, folds)
