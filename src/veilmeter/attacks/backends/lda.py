"""Trained back ends: linear discriminant analysis with within-class normalization, and probabilistic LDA, also Kaldi's.

LDA finds the directions that distinguish training speakers. Trained on protected speech it is the cheapest adaptation
of an attacker, and it undoes much of what a weak anonymizer does: what the anonymizer changes at random within a
speaker is exactly the within-class variation it takes away.

PLDA has the two-covariance form, x_ij = mu + y_i + e_ij with speaker part y ~ N(0, B) and recording part e ~ N(0, W),
and is trained by expectation-maximization. In the space where W is the identity and B is diagonal (psi), everything is
a sum over dimensions. Kaldi's `plda` file, written by `ivector-compute-plda`, holds exactly that space: the token
<Plda>, the mean, the transform, psi, the token </Plda>. It is read as text or binary, with the mean and the LDA matrix
that Kaldi's recipes put in front.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from veilmeter.attacks.backends.base import (
    Array,
    Averages,
    Backend,
    average,
    cosines,
    scatter,
    shrunk,
    training_set,
    unit64,
)
from veilmeter.core.errors import InputError
from veilmeter.core.files import read_input
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
    about = "within-class whitening, directions that distinguish training speakers, cosine"
    needs_training = True

    def build(self, enroll: Embeddings, test: Embeddings) -> tuple[Backend, Backend | None]:
        raise InputError("the back end lda needs training speech")

    def train(self, training: Embeddings, dimension: int | None) -> Backend:
        return LDA.fit(training.vectors, training.codes, dimension)


LDA_KIND = _LDAKind()


@dataclass(frozen=True, eq=False)
class PLDA:
    """A two-covariance model: `transform` (x - mean) has within-class covariance I and between-class `psi`.

    `lda` is applied first where the model was trained behind one. `length` is how vectors are scaled: "unit" before
    the model (Garcia-Romero & Espy-Wilson 2011), "kaldi" inside it, or "none".
    """

    mean: Array
    transform: Array
    psi: Array
    length: str = "unit"
    lda: LDA | None = None
    log_likelihoods: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        rows, columns = self.transform.shape
        if len(self.mean) != columns or len(self.psi) != rows or (self.psi < 0).any():
            raise InputError(
                f"a PLDA model with a mean of {len(self.mean)}, a transform of {rows} x {columns} and {len(self.psi)} "
                "variances does not fit together"
            )

    @property
    def name(self) -> str:
        return f"PLDA in {len(self.psi)} dimensions" + (" after LDA" if self.lda is not None else "")

    @classmethod
    def fit(
        cls, vectors: ArrayLike, speakers: ArrayLike, *, dimension: int | None = None, iterations: int = 10
    ) -> PLDA:
        """EM from the moments of the data. `dimension` puts an LDA in front, as Kaldi's recipes do: with fewer
        speakers than dimensions the between-class covariance could not be estimated."""
        x, codes, k = training_set(vectors, speakers, "PLDA")
        wanted = min(dimension or 150, max(2, (k - 1) // 2), x.shape[1])
        lda = None
        if wanted < x.shape[1]:
            lda = LDA.fit(x, codes, wanted)
            x = lda.project(x)
        x = unit64(x)
        within, between, mean = scatter(x, codes, k)
        within = shrunk(within, len(x) - k)
        between = shrunk(between, k)
        x = x - mean
        sums = average(x, codes, k)
        totals, counts = sums.vectors * sums.counts[:, None], sums.counts
        second = x.T @ x
        likelihoods = []
        for _ in range(iterations):
            within, between, likelihood = _em_step(within, between, totals, counts, second)
            likelihoods.append(likelihood)
        transform, psi = _diagonalize(within, between)
        return cls(mean, transform, psi, lda=lda, log_likelihoods=tuple(likelihoods))

    def project(self, vectors: ArrayLike) -> Array:
        x = np.asarray(vectors, np.float64)
        if self.lda is not None:
            x = self.lda.project(x)
        if self.length == "unit":
            x = unit64(x)
        if x.shape[1] != len(self.mean):
            raise InputError(f"this PLDA model is for {len(self.mean)}-d vectors, these have {x.shape[1]} dimensions")
        return (x - self.mean) @ self.transform.T

    def compare(self, enrollment: Averages, test: Averages) -> Array:
        """Log-likelihood ratio of "one speaker" against "two": a mean of n utterances has covariance psi + 1/n, and two
        means of one speaker have covariance psi. Natural logarithm."""
        scores = np.empty((len(enrollment), len(test)))
        left, right = (self._scale(side) if self.length == "kaldi" else side for side in (enrollment, test))
        for n in np.unique(left.counts):
            rows = np.flatnonzero(left.counts == n)
            for m in np.unique(right.counts):
                columns = np.flatnonzero(right.counts == m)
                block = self._block(left.vectors[rows], int(n), right.vectors[columns], int(m))
                scores[np.ix_(rows, columns)] = block
        return scores

    def _block(self, enrollment: Array, n: int, test: Array, m: int) -> Array:
        psi = self.psi
        a, b = psi + 1 / n, psi + 1 / m
        determinant = a * b - psi**2
        # Per dimension: log N([e, t]; [[a, psi], [psi, b]]) - log N(e; a) - log N(t; b).
        constant = float(-0.5 * np.sum(np.log(determinant) - np.log(a) - np.log(b)))
        weight_e, weight_t, cross = b / determinant - 1 / a, a / determinant - 1 / b, psi / determinant
        e_part = -0.5 * (enrollment**2 @ weight_e)
        t_part = -0.5 * (test**2 @ weight_t)
        block: Array = constant + e_part[:, None] + t_part[None, :] + (enrollment * cross) @ test.T
        return block

    def _scale(self, side: Averages) -> Averages:
        """Kaldi's length normalization: every mean gets the expected squared length under the model."""
        expected = (side.vectors**2 / (self.psi + 1 / side.counts[:, None])).sum(axis=1)
        factors = np.sqrt(side.vectors.shape[1] / np.where(expected > 0, expected, 1.0))
        return Averages(side.vectors * factors[:, None], side.counts)


def _diagonalize(within: Array, between: Array) -> tuple[Array, Array]:
    """T and psi with T W T' = I and T B T' = diag(psi), psi falling."""
    from scipy.linalg import eigh

    psi, vectors = eigh(between, within)
    order = np.argsort(psi)[::-1]
    transform = vectors[:, order].T
    signs = np.sign(transform[np.arange(len(transform)), np.abs(transform).argmax(axis=1)])
    return transform * signs[:, None], np.maximum(psi[order], 0.0)


def _em_step(
    within: Array, between: Array, totals: Array, counts: np.ndarray, second: Array
) -> tuple[Array, Array, float]:
    """One step of EM and the log-likelihood before it. `totals` are the speakers' sums, `second` is the sum of x x'."""
    transform, psi = _diagonalize(within, between)
    f = totals @ transform.T
    s = transform @ second @ transform.T
    n = counts[:, None].astype(float)
    posterior = psi / (1 + n * psi)  # variance of y given the speaker's recordings
    y = posterior * f
    expected = y.T @ y + np.diag(posterior.sum(axis=0))  # sum over speakers of E[y y']
    weighted = (y * n).T @ y + np.diag((n * posterior).sum(axis=0))
    mixed = f.T @ y
    samples = float(counts.sum())
    new_between = expected / len(counts)
    new_within = (s - mixed - mixed.T + weighted) / samples
    likelihood = -0.5 * (
        samples * len(psi) * np.log(2 * np.pi)
        - 2 * samples * np.linalg.slogdet(transform)[1]
        + np.log1p(n * psi).sum()
        + np.trace(s)
        - (posterior * f**2).sum()
    )
    back = np.linalg.inv(transform)
    back_within, back_between = back @ new_within @ back.T, back @ new_between @ back.T
    return (back_within + back_within.T) / 2, (back_between + back_between.T) / 2, float(likelihood)


class _PLDAKind:
    about = "two-covariance PLDA (after LDA if there are fewer speakers than dimensions), log-likelihood ratios"
    needs_training = True

    def build(self, enroll: Embeddings, test: Embeddings) -> tuple[Backend, Backend | None]:
        raise InputError("the back end plda needs training speech")

    def train(self, training: Embeddings, dimension: int | None) -> Backend:
        return PLDA.fit(training.vectors, training.codes, dimension=dimension)


PLDA_KIND = _PLDAKind()


LARGEST = 100_000  # dimensions; a header that promises more is broken or hostile


def read_plda(path: str | Path) -> PLDA:
    """The model, scored as Kaldi's `ivector-plda-scoring` does (length normalization inside the model)."""
    data = read_input(path, most=1 << 31)
    mean, transform, psi = _binary(data, path) if data[:2] == b"\0B" else _text(data, path)
    try:
        return PLDA(mean, transform, psi, length="kaldi")
    except InputError as error:
        raise InputError(error.what, path=path) from None


def _binary(data: bytes, path: str | Path) -> tuple[Array, Array, Array]:
    place = 2
    if data[place : place + 7] != b"<Plda> ":
        raise _not_plda(path)
    place += 7
    parts: list[Array] = []
    for wanted in ("V", "M", "V"):
        part, place = _binary_array(data, place, wanted, path)
        parts.append(part)
    if data[place : place + 7] != b"</Plda>":
        raise InputError("the file ends before </Plda>: it was cut off", path=path)
    return parts[0], parts[1], parts[2]


def _binary_array(data: bytes, place: int, wanted: str, path: str | Path) -> tuple[Array, int]:
    kind = data[place : place + 3].decode("ascii", "replace")
    if len(kind) != 3 or kind[0] not in "FD" or kind[1:] != wanted + " ":
        raise InputError(f"a {'vector' if wanted == 'V' else 'matrix'} was expected at byte {place}", path=path)
    place += 3
    sizes = []
    for _ in range(1 if wanted == "V" else 2):
        if data[place : place + 1] != b"\4" or len(data) < place + 5:
            raise InputError(f"a size was expected at byte {place}", path=path)
        sizes.append(struct.unpack_from("<i", data, place + 1)[0])
        place += 5
    dtype = np.dtype("<f4" if kind[0] == "F" else "<f8")
    if any(not 0 < size <= LARGEST for size in sizes) or len(data) < place + int(np.prod(sizes)) * dtype.itemsize:
        raise InputError(f"the size {' x '.join(map(str, sizes))} at byte {place} can't be right", path=path)
    count = int(np.prod(sizes))
    array = np.frombuffer(data, dtype, count, place).astype(np.float64).reshape(sizes)
    return _finite(array, path), place + count * dtype.itemsize


def _text(data: bytes, path: str | Path) -> tuple[Array, Array, Array]:
    text = data.decode("utf-8", "replace")
    if not text.lstrip().startswith("<Plda>"):
        raise _not_plda(path)
    if "</Plda>" not in text:
        raise InputError("the file ends before </Plda>: it was cut off", path=path)
    blocks = re.findall(r"\[([^\[\]]*)\]", text)
    if len(blocks) != 3:
        raise InputError(f"a PLDA model has 3 arrays in brackets, this has {len(blocks)}", path=path)
    try:
        mean, psi = (np.array(blocks[i].split(), float) for i in (0, 2))
        transform = np.array([line.split() for line in blocks[1].splitlines() if line.strip()], float)
    except ValueError as error:
        raise InputError(f"the numbers can't be read: {error}", path=path) from None
    if transform.ndim != 2:
        raise InputError("the transform is not a matrix", path=path)
    return _finite(mean, path), _finite(transform, path), _finite(psi, path)


def _finite(array: Array, path: str | Path) -> Array:
    if not np.isfinite(array).all():
        raise InputError("the model holds numbers that are not finite", path=path)
    return array


def _not_plda(path: str | Path) -> InputError:
    return InputError("not a Kaldi PLDA model: it does not start with <Plda>", path=path)


class KaldiRecipe:
    """Kaldi's whole back end: take off `mean`, apply the LDA matrix, scale to length sqrt(d), then PLDA."""

    def __init__(self, plda: PLDA, mean: ArrayLike | None = None, lda: ArrayLike | None = None) -> None:
        self.plda = plda
        self.mean = None if mean is None else np.asarray(mean, float)
        self.lda = None if lda is None else np.asarray(lda, float)

    @property
    def name(self) -> str:
        return "Kaldi " + self.plda.name + (" after its LDA matrix" if self.lda is not None else "")

    def project(self, vectors: ArrayLike) -> Array:
        x = np.asarray(vectors, np.float64)
        if self.mean is not None:
            x = x - self._fits(self.mean, x.shape[1], "mean")
        if self.lda is not None:
            columns = self.lda.shape[1]
            if columns == x.shape[1] + 1:  # an affine transform carries its offset in the last column
                x = x @ self.lda[:, :-1].T + self.lda[:, -1]
            else:
                self._fits(self.lda[0], x.shape[1], "LDA matrix")
                x = x @ self.lda.T
        return self.plda.project(unit64(x) * np.sqrt(x.shape[1]))

    def compare(self, enrollment: Averages, test: Averages) -> Array:
        return self.plda.compare(enrollment, test)

    @staticmethod
    def _fits(part: Array, dimension: int, what: str) -> Array:
        if len(part) != dimension:
            raise InputError(f"the {what} is for {len(part)}-d vectors, these have {dimension} dimensions")
        return part


def read_kaldi_recipe(plda: str | Path, mean: str | Path | None = None, lda: str | Path | None = None) -> KaldiRecipe:
    """`plda`, and where given `mean.vec` and `transform.mat`."""
    return KaldiRecipe(
        read_plda(plda), None if mean is None else _array(mean, 1), None if lda is None else _array(lda, 2)
    )


def _array(path: str | Path, dimensions: int) -> Array:
    """A vector or matrix by itself in a file, text or binary."""
    data = read_input(path, most=1 << 31)
    if data[:2] == b"\0B":
        numbers, _ = _binary_array(data, 2, "V" if dimensions == 1 else "M", path)
        return numbers
    blocks = re.findall(r"\[([^\[\]]*)\]", data.decode("utf-8", "replace"))
    if len(blocks) != 1:
        raise InputError("one array in brackets was expected", path=path)
    try:
        rows = [[float(number) for number in line.split()] for line in blocks[0].splitlines() if line.strip()]
        array = np.array(rows, float)
    except ValueError as error:
        raise InputError(f"the numbers can't be read: {error}", path=path) from None
    if dimensions == 1:
        return _finite(array.reshape(-1), path)
    return _finite(array, path)
