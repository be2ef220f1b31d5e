"""Voice similarity matrices (Noé et al. 2020, 2022): who still resembles whom, before and after protection.

Three matrices over the same speakers: OO among original voices, OP between original and protected ones, PP among
protected ones. Every pair of segments is scored, each of the three score sets is calibrated by itself (PAV with
Laplace's rule), and the log-likelihood ratios of a pair of speakers are averaged into one similarity:

    geometric (2022, eq. 6)    Sim(i, j) = exp(mean log sigmoid(llr))
    arithmetic (2020, eq. 2)   Sim(i, j) = sigmoid(mean llr)

Raw scores are never averaged: that would put G_VD off by decibels. `similarity_estimates` gives the measures of the
matrices with intervals over speakers and the level of chance.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.engine import Engine
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates, HasEstimates
from veilmeter.core.intervals import LEVEL, t_quantile
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.matching import match
from veilmeter.metrics.calibration import Groups, Pav, group, pool, sigmoid, softplus
from veilmeter.metrics.measure import Measure, estimate_of, find_measure
from veilmeter.metrics.similarity.spread import Spread, spread

Floats = NDArray[np.float64]
Form = Literal["geometric", "arithmetic"]
Pairs = Literal["all", "vpc"]
Kind = Literal["OO", "OP", "PP"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Scorer = Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[np.floating]]
Progress = Callable[[int, int], None]

_CHUNK = 1 << 20  # scores looked at together: they stay in the processor's cache
MOST_UTTERANCES = 40_000  # every pair is scored: 6 GB of scores, and as much again to sort them
_EXACT_UP_TO = 10_000  # utterances; beyond, scores are kept in float32 to halve the memory


@dataclass(frozen=True, eq=False)
class SimilarityMatrix:
    """One of the three matrices, before the form is chosen.

    `llr` and `log_posterior` are the means over the segment pairs of each pair of speakers (rows: the first set's
    speakers, columns: the second's) of the log-likelihood ratio and of log sigmoid of it; `pairs` how many there were.
    """

    kind: Kind
    llr: Floats
    log_posterior: Floats
    pairs: NDArray[np.int64]
    calibration: Pav

    def similarity(self, form: Form = "geometric") -> Floats:
        """Sim(i, j), between 0 and 1."""
        similarities: Floats = np.exp(self.log_posterior) if form == "geometric" else sigmoid(self.llr)
        return similarities

    def log_similarity(self, form: Form = "geometric") -> Floats:
        """log2 Sim(i, j) in bits, without passing through Sim, which may underflow."""
        natural = self.log_posterior if form == "geometric" else -softplus(-self.llr)
        bits: Floats = natural / np.log(2)
        return bits


def d_diag(matrix: ArrayLike) -> float:
    """Diagonal dominance, signed: the mean of the diagonal minus that of the rest (2020 eq. 3, 2022 eq. 8).

    The papers take its absolute value, which hides a diagonal that is darker than its surroundings.

    >>> d_diag([[1, 0], [0, 1]]), d_diag([[0.5, 0.5], [0.5, 0.5]]), d_diag([[0, 1], [1, 0]])
    (1.0, 0.0, -1.0)
    """
    m = np.asarray(matrix, float)
    n = len(m)
    diagonal = float(np.trace(m))
    stands_out = diagonal / n - float(m.sum() - diagonal) / (n * (n - 1))
    # of equal numbers nothing stands out but rounding: G_VD is minus infinity then, not some -130 dB
    return 0.0 if abs(stands_out) <= 1e-13 * float(np.abs(m).max()) else stands_out


def deid(oo: float, op: float) -> float:
    """De-identification in percent from the two diagonal dominances (2020 eq. 4, 2022 eq. 9), by their moduli."""
    return 100 * (1 - abs(op) / abs(oo)) if oo else float("nan")


def g_vd(oo: float, pp: float) -> float:
    """Gain of voice distinctiveness in dB (2020 eq. 5, 2022 eq. 10), by the moduli of the diagonal dominances."""
    if not oo:
        return float("nan")
    return 10 * float(np.log10(abs(pp) / abs(oo))) if pp else float("-inf")


@dataclass(frozen=True, eq=False, repr=False)
class Similarity(HasEstimates):
    """The three matrices of one set of speakers, and what follows from them: what `similarity` gives.

    Attributes
    ----------
    estimates : Estimates
        DeID, G_VD and D_diag, with intervals where there are `spreads`.
    names : tuple of str
        The speakers, in the order of the rows and columns.
    oo, op, pp : SimilarityMatrix
        Original against original, original against protected, protected against protected voices.
    """

    names: tuple[str, ...]
    oo: SimilarityMatrix
    op: SimilarityMatrix
    pp: SimilarityMatrix
    form: Form = "geometric"
    pairs: Pairs = "all"
    utterances: int = 0
    spreads: Mapping[Kind, Spread] = field(default_factory=dict)

    def matrix(self, kind: Kind) -> SimilarityMatrix:
        return {"OO": self.oo, "OP": self.op, "PP": self.pp}[kind]

    @cached_property
    def similarities(self) -> dict[Kind, Floats]:
        return {kind: self.matrix(kind).similarity(self.form) for kind in KINDS}

    @cached_property
    def log_similarities(self) -> dict[Kind, Floats]:
        return {kind: self.matrix(kind).log_similarity(self.form) for kind in KINDS}

    @cached_property
    def d_diag(self) -> dict[Kind, float]:
        """Signed."""
        return {kind: d_diag(m) for kind, m in self.similarities.items()}

    @cached_property
    def d_diag_log(self) -> dict[Kind, float]:
        """Signed, of log2 Sim, in bits: beyond the papers, proposed in section 7 of the 2022 one."""
        return {kind: d_diag(m) for kind, m in self.log_similarities.items()}

    @property
    def deid(self) -> float:
        return deid(self.d_diag["OO"], self.d_diag["OP"])

    @property
    def g_vd(self) -> float:
        return g_vd(self.d_diag["OO"], self.d_diag["PP"])

    def per_speaker(self, kind: Kind) -> Floats:
        """Each speaker's own diagonal dominance: Sim(i, i) minus the mean similarity to all others, as row and as
        column. Its mean over the speakers is `d_diag`."""
        m = self.similarities[kind]
        n = len(m)
        own = m.diagonal()
        dominance: Floats = own - (m.sum(0) + m.sum(1) - 2 * own) / (2 * (n - 1))
        return dominance

    @cached_property
    def estimates(self) -> Estimates:
        """DeID, G_VD and D_diag with intervals, if there are `spreads`; see `similarity_estimates`."""
        return Estimates(similarity_estimates(self).values())

    @property
    def summary(self) -> str:
        return f"{len(self.names)} speakers, {self.utterances} utterances, {self.form}, {self.pairs} pairs"

    def with_form(self, form: Form) -> Similarity:
        """The same scores, the other definition; without `spreads`, which hold for one form."""
        return Similarity(self.names, self.oo, self.op, self.pp, form, self.pairs, self.utterances)


def similarity(
    original: ArrayLike | Embeddings,
    protected: ArrayLike | Embeddings,
    speakers: Sequence[str] | NDArray[np.object_] | None = None,
    *,
    form: Form = "geometric",
    pairs: Pairs = "all",
    scorer: Scorer | None = None,
    spreads: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Similarity:
    """The matrices of n utterances: two sets of embeddings, or two tables (n x d) and the speaker of each row.

    Embeddings are matched by utterance id and must have the same ones; tables are the same utterances row by row.

    With `pairs="all"` every ordered pair of different utterances counts. With `pairs="vpc"` only pairs in which the
    second utterance comes later in the listing, mirrored afterwards (for OP too), as in the challenge's script. An
    utterance is never compared with itself, nor with its own protected version. `scorer` compares two tables of
    vectors (symmetric: score(a, b) = score(b, a)^T); the default is the cosine. With `spreads`, what
    intervals and the level of chance need is gathered too, where it takes long on `engine`.

    Parameters
    ----------
    original, protected : Embeddings or array_like
        The same utterances before and after.
    speakers : sequence of str, optional
        The speaker of each row, for arrays.
    form : {"geometric", "arithmetic"}
        The definition of 2022 or of 2020.
    pairs : {"all", "vpc"}
        Which pairs of utterances count.
    scorer : callable, optional
        Compares two tables of vectors; by default by the cosine.
    spreads : bool
        Whether to gather what intervals and the level of chance need.
    seed : int
        Random seed.
    progress : callable, optional
        Called with how many matrices are done, and how many there are.
    engine : Engine, optional
        Where long work is done.

    Returns
    -------
    Similarity
        The three matrices, and DeID, G_VD and D_diag as `estimates`.

    Raises
    ------
    InputError
        If the sides do not match, or a speaker has a single utterance.

    Examples
    --------
    >>> voices = np.repeat(np.random.default_rng(0).normal(size=(4, 8)), 2, axis=0)
    >>> similarity(voices + 0.01, voices[::-1], list("aabbccdd"))
    Similarity(4 speakers, 8 utterances, geometric, all pairs)
    """
    o, p, speakers = _rows(original, protected, speakers)
    if form not in get_args(Form):
        raise InputError(f"unknown form {form!r}", fix="choose geometric or arithmetic")
    if pairs not in get_args(Pairs):
        raise InputError(f"unknown pairs {pairs!r}", fix="choose all or vpc")
    if o.shape[0] != p.shape[0] or o.shape[0] != len(speakers) or o.ndim != 2 or p.ndim != 2:
        raise InputError(f"{len(speakers)} utterances can't have vectors of shapes {o.shape} and {p.shape}")
    names, code = _number_speakers(speakers)
    if scorer is None:
        o, p, scorer = _unit(o), _unit(p), _product
    layout = SpeakerRectangles.of(code)
    matrices: dict[Kind, SimilarityMatrix] = {}
    around: dict[Kind, Spread] = {}
    triples: list[tuple[Kind, Any, Any]] = [("OO", o, o), ("OP", o, p), ("PP", p, p)]
    for done, (kind, first, second) in enumerate(triples):
        if progress is not None:
            progress(done, 3)
        ordered = layout.arrange(_scores(scorer, first, second), mirrored=kind == "OP" and pairs == "vpc")
        matrices[kind] = _matrix(ordered, layout, kind, pairs)
        if spreads:
            around[kind] = spread(
                ordered, layout, matrices[kind], form=form, pairs=pairs, seed=(seed, done), engine=engine
            )
        del ordered
    if progress is not None:
        progress(3, 3)
    return Similarity(names, matrices["OO"], matrices["OP"], matrices["PP"], form, pairs, len(code), around)


def _number_speakers(speakers: Sequence[str] | NDArray[np.object_]) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """The names in the order of their first utterances, and the number of each utterance's name."""
    if len(speakers) > MOST_UTTERANCES:
        raise InputError(
            f"{len(speakers):,} utterances make {len(speakers) ** 2:.1e} pairs, more than memory holds",
            fix=f"take at most {MOST_UTTERANCES:,}, such as ten of each speaker",
        )
    codes: dict[str, int] = {}
    code = np.fromiter((codes.setdefault(s, len(codes)) for s in speakers), np.int64, len(speakers))
    sizes = np.bincount(code)
    if len(sizes) < 2:
        raise InputError("there is only one speaker: similarity matrices need at least two")
    if sizes.min() < 2:
        alone = [name for name, number in codes.items() if sizes[number] < 2]
        raise InputError(
            f"{len(alone)} speakers have a single utterance and so no similarity with themselves, such as {alone[0]!r}",
            fix="leave them out",
        )
    return tuple(codes), code


def _scores(scorer: Scorer, first: NDArray[Any], second: NDArray[Any]) -> NDArray[np.floating]:
    scores = scorer(first, second)
    if scores.shape != (len(first), len(second)):
        raise InputError(f"the scorer gave an array of shape {scores.shape} for {len(first)} utterances")
    if not np.isfinite(scores).all():
        raise InputError("the scorer gave scores that are not finite")
    return scores


def _rows(
    original: ArrayLike | Embeddings,
    protected: ArrayLike | Embeddings,
    speakers: Sequence[str] | NDArray[np.object_] | None,
) -> tuple[NDArray[Any], NDArray[Any], Sequence[str] | NDArray[np.object_]]:
    """The vectors of both sides, row by row the same utterances, and their speakers."""
    if isinstance(original, Embeddings) and isinstance(protected, Embeddings):
        both = match(original, protected)
        if both.left_out:
            raise InputError(
                f"{len(both.left_out)} utterances are not in both sets, or have different speakers there",
                fix="use veilmeter.data.matching.match, which leaves them out",
            )
        return both.original.vectors, both.anonymized.vectors, both.original.speakers if speakers is None else speakers
    if isinstance(original, Embeddings) or isinstance(protected, Embeddings) or speakers is None:
        raise InputError("give two sets of embeddings, or two tables of vectors and the speaker of each row")
    return np.asarray(original), np.asarray(protected), speakers


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.floating]:
    x: Floats = np.array(vectors, np.float64)
    x /= np.sqrt(np.einsum("ij,ij->i", x, x))[:, None]
    return x if len(x) <= _EXACT_UP_TO else x.astype(np.float32)


def _product(a: NDArray[np.floating], b: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.asarray(a @ b.T)


def _matrix(ordered: NDArray[np.floating], layout: SpeakerRectangles, kind: Kind, pairs: Pairs) -> SimilarityMatrix:
    half = kind != "OP" or pairs == "vpc"  # a symmetric matrix: each pair once
    targets, impostors = layout.split(ordered, half=half)
    calibration = _calibrate(targets, impostors, weight=2.0 if half and pairs == "all" else 1.0)
    del targets, impostors
    llr, log_posterior = layout.average(ordered, calibration, half=half)
    return SimilarityMatrix(kind, llr, log_posterior, layout.pairs(half=half and pairs == "vpc"), calibration)


def _calibrate(targets: NDArray[np.floating], impostors: NDArray[np.floating], *, weight: float) -> Pav:
    """PAV with Laplace's rule. A pair of a symmetric matrix that stands for both its orders has weight 2: that changes
    nothing but what the rule's four dummies weigh."""
    targets.sort()
    impostors.sort()
    groups = group(targets, impostors)  # type: ignore[arg-type]
    if weight != 1:
        groups = Groups(groups.lower, groups.upper, groups.targets * weight, groups.impostors * weight)
    return pool(groups, weight * len(targets), weight * len(impostors)).with_laplace()


@dataclass(frozen=True, slots=True)
class SpeakerRectangles:
    """Utterances sorted by speaker, so that a pair of speakers is a rectangle of the score matrix."""

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    code: NDArray[np.int64]  # in sorted order
    sorted: bool

    @staticmethod
    def of(speakers: NDArray[np.int64]) -> SpeakerRectangles:
        order = np.argsort(speakers, kind="stable")
        ends = np.cumsum(np.bincount(speakers))
        starts = np.append(0, ends[:-1])
        return SpeakerRectangles(order, starts, ends, speakers[order], bool((np.diff(speakers) >= 0).all()))

    def arrange(self, scores: NDArray[np.floating], *, mirrored: bool) -> NDArray[np.floating]:
        """The scores in this order; with `mirrored`, that of (i, j), i < j in listing order, stands for (j, i) too."""
        if mirrored:
            own = scores.diagonal().copy()
            scores = np.triu(scores, 1)
            scores += scores.T
            np.fill_diagonal(scores, own)
        return scores if self.sorted else scores[np.ix_(self.order, self.order)]

    def split(self, scores: NDArray[np.floating], *, half: bool) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
        """Target and impostor scores (of one half of a symmetric matrix) without the diagonal, as new arrays."""
        n, sizes = len(scores), self.ends - self.starts
        targets = int((sizes * (sizes - 1)).sum())
        impostors = n * n - int((sizes**2).sum())
        share = 2 if half else 1
        t = np.empty(targets // share, scores.dtype)
        m = np.empty(impostors // share, scores.dtype)
        at_t = at_m = 0
        for row in range(n):
            first, last = self.starts[self.code[row]], self.ends[self.code[row]]
            pieces_t = (scores[row, row + 1 : last],) if half else (scores[row, first:row], scores[row, row + 1 : last])
            pieces_m = (scores[row, last:],) if half else (scores[row, :first], scores[row, last:])
            for piece in pieces_t:
                t[at_t : at_t + len(piece)] = piece
                at_t += len(piece)
            for piece in pieces_m:
                m[at_m : at_m + len(piece)] = piece
                at_m += len(piece)
        return t, m

    def average(self, scores: NDArray[np.floating], calibration: Pav, *, half: bool) -> tuple[Floats, Floats]:
        """Means over the pairs of each two speakers of the llr and of log sigmoid(llr)."""
        n, people = len(scores), len(self.starts)
        llrs = calibration.llrs
        posteriors = -softplus(-llrs)
        sums = np.zeros((2, people, people))
        at = 0
        while at < n:
            # From speaker to speaker; with a symmetric matrix only the columns from this speaker on are needed.
            first = int(self.code[at])
            width = n - int(self.starts[first]) if half else n
            last = first
            while last + 1 < people and (self.ends[last + 1] - at) * width <= _CHUNK:
                last += 1
            stop, left = int(self.ends[last]), n - width
            block = calibration.block_of(scores[at:stop, left:])
            itself = np.arange(stop - at)
            columns = self.starts[first:] - left if half else self.starts
            rows = self.starts[first : last + 1] - at
            for number, values in enumerate((llrs, posteriors)):
                piece = values[block]
                piece[itself, itself + at - left] = 0
                part = np.add.reduceat(np.add.reduceat(piece, columns, axis=1), rows, axis=0)
                sums[number, first : last + 1, people - part.shape[1] :] = part
            at = stop
        if half:
            # The part below the diagonal was summed in some rows only; the part above says the same.
            upper = np.triu(sums, 1)
            sums = upper + upper.transpose(0, 2, 1) + sums * np.eye(people)
        counts = self.pairs()
        return sums[0] / counts, sums[1] / counts

    def pairs(self, *, half: bool = False) -> NDArray[np.int64]:
        """How many pairs each mean is over; each unordered pair once with `half`."""
        sizes = self.ends - self.starts
        counts = np.outer(sizes, sizes)
        np.fill_diagonal(counts, sizes * (sizes - 1) // (2 if half else 1))
        return counts


_NOE20, _NOE22 = "Noé et al. 2020", "Noé et al. 2022"
_PAIRS = {
    "OO": "among the original voices",
    "OP": "between original and protected voices, signed",
    "PP": "among the protected voices",
}


def _of_pairs(kind: str, ending: str, label: str, meaning: str, equation: str, **facts: Any) -> Measure:
    """A measure of the diagonal of one matrix."""
    return Measure(
        name=f"d_diag_{kind.lower()}{ending}",
        label=label,
        better="lower" if kind == "OP" else "neither",
        meaning=meaning,
        section="similarity",
        equation=equation,
        headline=False,
        **facts,
    )


_DIAGONAL = "(mean of the diagonal − mean of the rest) of the matrix of similarities"
MEASURES = (
    Measure(
        name="deid",
        label="DeID",
        unit="percent",
        better="higher",
        meaning="How much of the link between a speaker's original and protected voice is gone; 100 % is all.",
        source=_NOE20,
        section="similarity",
        equation="1 − D_diag(OP) / D_diag(OO)",
        high=100,
        bar=100,
    ),
    Measure(
        name="g_vd",
        label="G_VD",
        unit="dB",
        better="neither",
        meaning="How distinct the protected voices stay from each other; 0 dB is as distinct as the originals.",
        source=_NOE20,
        section="similarity",
        equation="10 log₁₀ (D_diag(PP) / D_diag(OO))",
    ),
    *(
        _of_pairs(
            kind,
            "",
            f"D_diag({kind})",
            f"Diagonal dominance {where}.",
            _DIAGONAL,
            unit="",
            source=_NOE20,
            low=-1,
            high=1,
        )
        for kind, where in _PAIRS.items()
    ),
    *(
        _of_pairs(
            kind,
            "_modulus",
            f"|D_diag({kind})|",
            f"D_diag({kind}) without its sign, as the papers define it.",
            f"|{_DIAGONAL}|",
            unit="",
            source=_NOE20,
            low=0,
            high=1,
        )
        for kind in _PAIRS
    ),
    *(
        _of_pairs(
            kind,
            "_log",
            f"log D_diag({kind})",
            f"Diagonal dominance of the logarithms of the similarities ({kind}): bits, which add up.",
            "(mean of the diagonal − mean of the rest) of log₂ of the similarities",
            unit="bit",
            source=_NOE22,
        )
        for kind in _PAIRS
    ),
)


def similarity_estimates(
    similarity: Similarity, *, system: str | None = None, backend: str = "cosine"
) -> dict[str, Estimate]:
    """deid, g_vd, and d_diag_{oo,op,pp}: signed, as modulus and in the log domain.

    Where `similarity` has spreads, intervals are jackknife t intervals (of D_diag on the scale of log(1 - D)): every
    speaker in turn is left out of the calibration and of the matrices. They cover the speakers that were drawn, not the
    anonymizer's own chance. Where leaving out speakers changes less than permuted labels do, the spread of those is
    taken: a diagonal that has vanished would otherwise seem to be known exactly. `null` is the mean over permuted
    labels.
    """
    oo, op, pp = (similarity.d_diag[kind] for kind in KINDS)
    estimates = [
        _estimate(similarity, "deid", deid(oo, op), lambda d: deid(d["OO"], d["OP"]), vary="OP"),
        _estimate(similarity, "g_vd", g_vd(oo, pp), lambda d: g_vd(d["OO"], d["PP"]), vary="PP"),
    ]
    for kind, value in (("OO", oo), ("OP", op), ("PP", pp)):
        name = f"d_diag_{kind.lower()}"
        estimates.append(_estimate(similarity, name, value, _pick(kind), vary=kind))  # type: ignore[arg-type]
    for kind, value in (("OO", oo), ("OP", op), ("PP", pp)):
        name = f"d_diag_{kind.lower()}_modulus"
        estimates.append(_estimate(similarity, name, abs(value), _pick(kind, modulus=True), vary=kind))  # type: ignore[arg-type]
    for kind in KINDS:
        name = f"d_diag_{kind.lower()}_log"
        estimates.append(_estimate(similarity, name, similarity.d_diag_log[kind], _pick(kind), vary=kind, log=True))
    method = f"{similarity.form}, {similarity.pairs} pairs, {backend}"
    at = {} if system is None else {"system": system}
    return {estimate.name: estimate.with_(method=method, at=at) for estimate in estimates}


_Value = Callable[[dict[Kind, float]], float]


def _pick(kind: str, *, modulus: bool = False) -> _Value:
    return lambda d: abs(d[kind]) if modulus else d[kind]  # type: ignore[index]


def _estimate(
    similarity: Similarity, name: str, value: float, of: _Value, *, vary: Kind, log: bool = False
) -> Estimate:
    interval = null = null_range = None
    if similarity.spreads:
        chance = similarity.spreads[vary].chance_log if log else similarity.spreads[vary].chance
        measured = similarity.d_diag_log if log else similarity.d_diag
        permuted = np.array([of({**measured, vary: float(c)}) for c in chance])
        finite = permuted[np.isfinite(permuted)]
        null = float(finite.mean()) if len(finite) else None
        if len(finite) >= 10:
            low, high = np.quantile(finite, [0.05, 0.95])
            null_range = (float(low), float(high))
        interval = _interval(similarity, value, of, finite, name, log)
    return estimate_of(
        name,
        value,
        interval=interval,
        null=null,
        null_range=null_range,
        n={"speakers": len(similarity.names), "utterances": similarity.utterances},
    )


def _interval(
    similarity: Similarity, value: float, of: _Value, chance: Floats, name: str, log: bool
) -> tuple[float, float] | None:
    people = len(similarity.names)
    if people < 3 or not np.isfinite(value):
        return None
    parts = {kind: s.without_log if log else s.without for kind, s in similarity.spreads.items()}
    without = np.array([of({kind: float(parts[kind][g]) for kind in KINDS}) for g in range(people)])
    if not np.isfinite(without).all():
        return None
    error = float(np.sqrt((people - 1) / people * np.sum((without - without.mean()) ** 2)))
    # In dB a vanished distinctiveness spreads without bound; there the jackknife alone is the honest one.
    least = float(chance.std(ddof=1)) if len(chance) > 2 and name != "g_vd" else 0.0
    half = t_quantile(people - 1, 0.5 + LEVEL / 2) * max(error, least)
    low, high = value - half, value + half
    if name.startswith("d_diag") and not log and value < 1:
        # It can't exceed 1, and falls short of it by factors: a symmetric interval ends too high, too often.
        factor = np.exp(min(half / (1 - value), 50.0))
        low, high = 1 - (1 - value) * factor, 1 - (1 - value) / factor
    entry = find_measure(name)
    return (max(entry.low, float(low)), min(entry.high, float(high)))
