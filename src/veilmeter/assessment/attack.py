"""An attacker at work: from vectors to a score for every enrolled person and every conversation."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veilmeter.assessment.settings import AttackerSettings
from veilmeter.attacks.backends import LDA, PLDA, Averages, Backend, CentredCosine, Cosine, average
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
DECIMALS = 9


class Scorer(Protocol):
    """Scores enrolled people (rows) against conversations (columns); `groups` are rows of `test`, one line each."""

    @property
    def name(self) -> str: ...

    def matrix(self, enrol: Embeddings, test: Embeddings, groups: Rows) -> Floats: ...


@dataclass(frozen=True, eq=False)
class Fixed:
    """One back end for everybody: untrained, or trained on other people's speech.

    `test_backend` is another one for the trials' side, where clear and protected vectors are treated apart.
    """

    backend: Backend
    test_backend: Backend | None = None

    @property
    def name(self) -> str:
        return self.backend.name

    @property
    def is_cosine(self) -> bool:
        """Whether a score is the cosine of two projected, averaged vectors."""
        return isinstance(self.backend, Cosine | CentredCosine | LDA)

    def matrix(self, enrol: Embeddings, test: Embeddings, groups: Rows) -> Floats:
        other = self.test_backend or self.backend
        people = average(self.backend.project(enrol.vectors), enrol.codes, len(enrol.names))
        return rounded(self.backend.compare(people, conversations_of(other.project(test.vectors), groups)))


@dataclass(frozen=True, eq=False)
class CrossValidated:
    """Back ends trained without two folds of speakers each: a pair of people is scored by one that saw neither.

    Where both are of one fold, the scores of all back ends that left that fold out are averaged.
    """

    backends: dict[tuple[int, int], Backend]
    fold: dict[str, int]

    @property
    def name(self) -> str:
        return next(iter(self.backends.values())).name + f", {max(self.fold.values()) + 1}-fold by speaker"

    def matrix(self, enrol: Embeddings, test: Embeddings, groups: Rows) -> Floats:
        row_fold = np.array([self.fold[name] for name in enrol.names])
        column_fold = np.array([self.fold[test.speakers[group[0]]] for group in groups])
        scores = np.zeros((len(row_fold), len(column_fold)))
        seen = np.zeros_like(scores)
        for (a, b), backend in self.backends.items():
            rows = np.flatnonzero(np.isin(row_fold, (a, b)))
            columns = np.flatnonzero(np.isin(column_fold, (a, b)))
            if not len(rows) or not len(columns):
                continue
            people = average(backend.project(enrol.vectors), enrol.codes, len(enrol.names)).take(rows)
            spoken = conversations_of(backend.project(test.vectors), groups[columns])
            scores[np.ix_(rows, columns)] += backend.compare(people, spoken)
            seen[np.ix_(rows, columns)] += 1
        return rounded(scores / seen)


def conversations_of(projected: Floats, groups: Rows) -> Averages:
    return Averages(projected[groups].mean(axis=1), np.full(len(groups), groups.shape[1], np.int64))


def rounded(scores: Floats) -> Floats:
    """Without the last few bits, which depend on how a matrix product was cut up: equal vectors give equal scores."""
    scale = max(1.0, float(np.abs(scores).max(initial=0.0)))
    places = DECIMALS - int(np.ceil(np.log10(scale)))
    found: Floats = np.round(scores, places) + 0.0
    return found


@dataclass(frozen=True, slots=True)
class KaldiFiles:
    """A back end that Kaldi trained; the files count by their content."""

    plda: Path
    mean: Path | None = None
    lda: Path | None = None

    @classmethod
    def of(cls, options: AttackerSettings) -> KaldiFiles | None:
        if options.plda is None:
            return None
        return cls(Path(options.plda), *(None if file is None else Path(file) for file in (options.mean, options.lda)))


@dataclass(frozen=True, eq=False)
class Recipe:
    """How a scorer is made; it travels to where the work runs, and the training is done there.

    `kind` is a back end by name. With `folds` it is cross-validated over the speakers of `training`.
    """

    kind: str = "cosine"
    training: Embeddings | None = None
    folds: int | None = None
    seed: int = 0
    dimension: int | None = None
    kaldi: KaldiFiles | None = None

    def scorer(self, enrol: Embeddings, test: Embeddings) -> Scorer:
        if self.kaldi is not None:
            from veilmeter.attacks.backends.kaldi import read_kaldi_recipe

            return Fixed(read_kaldi_recipe(self.kaldi.plda, self.kaldi.mean, self.kaldi.lda))
        if self.kind == "centred-cosine" and self.training is None:
            # Each side has a mean of its own: clear and protected speech lie in different places.
            return Fixed(CentredCosine.fit(enrol.vectors), CentredCosine.fit(test.vectors))
        if self.folds is not None and self.training is not None:
            others = tuple({*enrol.names, *test.names})
            return cross_validated(self.kind, self.dimension, self.training, others, self.folds, self.seed)
        return Fixed(make_backend(self.kind, self.dimension, self.training))


def make_backend(kind: str, dimension: int | None, training: Embeddings | None) -> Backend:
    if kind == "cosine":
        return Cosine()
    if training is None:
        raise InputError(f"the back end {kind} needs training speech", fix="give --train-original or choose cosine")
    if kind == "centred-cosine":
        return CentredCosine.fit(training.vectors)
    if kind == "lda":
        return LDA.fit(training.vectors, training.codes, dimension)
    return PLDA.fit(training.vectors, training.codes, dimension=dimension)


def cross_validated(
    kind: str, dimension: int | None, material: Embeddings, others: tuple[str, ...], folds: int, seed: int
) -> CrossValidated:
    """Back ends trained on the assessed speakers' own protected speech, without the two folds they are used for.

    `others` are speakers that have no training speech but are scored.
    """
    names = sorted({*material.names, *others})
    if len(names) < 6:
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
        backends[a, b] = make_backend(kind, dimension, kept)
    return CrossValidated(backends, fold)
