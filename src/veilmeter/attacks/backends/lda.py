"""Linear discriminant analysis with within-class normalization: directions that tell training speakers apart.

Trained on protected speech it is the cheapest adaptation of an attacker, and it undoes much of what a weak anonymizer
does: what the anonymizer changes at random within a speaker is exactly the within-class variation it takes away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from veilmeter.attacks.backends.base import Array, Averages, Backend, cosines, scatter, shrunk, training_set, unit64
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings


@dataclass(frozen=True, eq=False)
class LDA:
    """`project` is unit(transform (unit(x) - mean)); scores are cosines."""

    mean: Array
    transform: Array
    training_speakers: int
    training_utterances: int
    is_cosine = True

    @property
    def name(self) -> str:
        return f"LDA with WCCN to {len(self.transform)} dimensions, cosine"

    @classmethod
    def fit(cls, vectors: ArrayLike, speakers: ArrayLike, dimension: int | None = None) -> LDA:
        """With S_w the shrunk within-class covariance: whiten by S_w^(-1/2) (WCCN, Hatch et al. 2006), then keep the
        `dimension` strongest directions of the between-class covariance, which are those of LDA.

        >>> rng = np.random.default_rng(0)
        >>> speakers = np.repeat(np.arange(20), 10)
        >>> x = np.c_[np.repeat(rng.normal(size=20), 10), rng.normal(size=(200, 3)) * 5] + 10
        >>> int(abs(LDA.fit(x, speakers, 1).transform[0]).argmax())
        0
        """
        x, codes, k = training_set(vectors, speakers, "LDA")
        within, between, mean = scatter(unit64(x), codes, k)
        variances, axes = np.linalg.eigh(shrunk(within, len(x) - k))
        whiten = (axes / np.sqrt(variances)).T
        strengths, directions = np.linalg.eigh(whiten @ between @ whiten.T)
        keep = min(len(strengths), k - 1, dimension or len(strengths))
        transform = directions[:, ::-1][:, :keep].T @ whiten
        signs = np.sign(transform[np.arange(keep), np.abs(transform).argmax(axis=1)])
        return cls(mean, transform * signs[:, None], k, len(x))

    def project(self, vectors: ArrayLike) -> Array:
        return unit64((unit64(vectors) - self.mean) @ self.transform.T)

    def compare(self, enrollment: Averages, test: Averages) -> Array:
        return cosines(enrollment, test)


class _LDAKind:
    about = "within-class whitening, then the directions that tell training speakers apart; cosine"
    needs_training = True

    def untrained(self, enroll: Embeddings, test: Embeddings) -> tuple[Backend, Backend | None]:
        raise InputError("the back end lda needs training speech")

    def trained(self, training: Embeddings, dimension: int | None) -> Backend:
        return LDA.fit(training.vectors, training.codes, dimension)


KIND = _LDAKind()
