"""ZEBRA: what scores disclose about identity, in bits, and the strongest evidence any of them gives.

Noé et al. 2022 (paper 004), sections 5 and 7, and Nautsch et al. 2020.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Finding, warning
from veilmeter.metrics.calibration import BlockSets, Calibration, check_scores, logistic, pav, softplus
from veilmeter.metrics.measure import Measure
from veilmeter.metrics.scores.forms import BlockFunction, ScoreSet, SortedScores

Floats = NDArray[np.float64]
Number = float | np.float64 | Floats  # one value, or one of many resamples

MAX_D_ECE = float(1 / np.log(4))  # 0.7213 bit: every trial tells all

# Paper 004, table 1. Half-open: a tag holds from its bound up to the next one.
TAGS: tuple[tuple[float, str], ...] = (
    (6, "F"),
    (5, "E"),
    (4, "D"),
    (2, "C"),
    (1, "B"),
    (0, "A"),
)


@dataclass(frozen=True)
class DEce(BlockFunction):
    """The expected disclosure in bit, after oracle calibration (eq. 13)."""

    sure = (MAX_D_ECE,)
    overfits = True
    per_speaker = True

    def of_blocks(self, blocks: BlockSets) -> Floats:
        (for_target, for_impostor), (share_t, share_n) = blocks.llrs, blocks.shares
        gain = z(for_target) * share_t + z(-for_impostor) * share_n
        return np.asarray(np.maximum(0.0, blocks.sums(gain) / (2 * np.log(2))))

    def method(self, counts: Mapping[str, int]) -> str:
        return "PAV"

    def extra(self, scores: ScoreSet) -> dict[str, Any]:
        """The disclosure with the sign flipped: PAV only sees leakage in the direction it is told to look."""
        flipped = d_ece_flipped(scores)
        return {"flipped": flipped, "inverted": flipped > scores.of(self)}

    def warnings(self, estimate: Estimate) -> list[Finding]:
        flipped = float(estimate.extra["flipped"])
        bound = estimate.null_range[1] if estimate.null_range is not None else 0.0
        if not estimate.extra["inverted"] or flipped <= bound:
            return []
        return [warning("scores_inverted", flipped=flipped, as_given=estimate.value)]


@dataclass(frozen=True)
class Strongest(BlockFunction):
    """The strongest evidence of any trial under Laplace's rule, in powers of ten of the likelihood ratio."""

    per_speaker = True

    def of_blocks(self, blocks: BlockSets) -> Floats:
        """Only the lowest and the highest block can be the strongest.

        Isotonic regression fits an element by max over starts a of min over ends b of mean(a..b): for the lowest real
        block the start is the dummy pair below or the block itself, for the highest the end is the dummy pair above or
        itself.
        """
        t, n, first, of = blocks.targets, blocks.impostors, blocks.first, blocks.set_of
        total_t, total_n = blocks.total_targets, blocks.total_impostors
        up_t, up_m = blocks.running(t), blocks.running(t + n)
        down_t, down_m = total_t[of] - up_t + t, (total_t + total_n)[of] - up_m + t + n
        both = total_t + total_n
        all_and_two, all_and_one = (2 + total_t) / (4 + both), (1 + total_t) / (2 + both)
        lowest = np.maximum(
            np.minimum(np.minimum.reduceat((1 + up_t) / (2 + up_m), first), all_and_two),
            np.minimum(np.minimum.reduceat(up_t / up_m, first), all_and_one),
        )
        highest = np.minimum(
            np.maximum(np.maximum.reduceat((1 + down_t) / (2 + down_m), first), all_and_two),
            np.maximum(np.maximum.reduceat(down_t / down_m, first), all_and_one),
        )
        prior = np.log(total_t / total_n)
        with np.errstate(divide="ignore"):
            ends = [np.abs(np.log(share) - np.log1p(-share) - prior) for share in (lowest, highest)]
        return np.asarray(np.maximum(*ends) / np.log(10))

    def method(self, counts: Mapping[str, int]) -> str:
        return "PAV, Laplace"

    def extra(self, scores: ScoreSet) -> dict[str, Any]:
        return {"tag": tag(scores.of(self))}


MEASURES = (
    Measure(
        name="d_ece",
        label="D_ECE",
        unit="bit",
        better="lower",
        meaning="The information a trial discloses about identity on average over all prior beliefs; "
        f"{MAX_D_ECE:.3f} is all.",
        source="Noé et al. 2022",
        section="disclosure",
        equation="∫₀¹ [H(π) − ECE(π)] dπ = (⟨Z(l)⟩ + ⟨Z(−l)⟩) / (2 ln 2)",
        low=0,
        high=MAX_D_ECE,
        bar=MAX_D_ECE,
        order=10,
        kind="scores",
        compute=DEce(),
    ),
    Measure(
        name="l_w",
        label="l_w",
        unit="log10",
        better="lower",
        meaning="The strongest evidence that any single trial gives, in powers of ten of the likelihood ratio.",
        source="Noé et al. 2022",
        section="disclosure",
        equation="max |l| / ln 10, with Laplace's rule of succession",
        low=0,
        bar=6,
        order=11,
        kind="scores",
        compute=Strongest(),
    ),
)


@dataclass(frozen=True, slots=True)
class Zebra:
    """`d_ece` in bit, `l_w` in powers of ten, with its tag; `d_ece_flipped` is what the scores
    with their sign changed disclose: PAV only sees leakage in the direction it is told to look."""

    d_ece: float
    l_w: float
    tag: str
    d_ece_flipped: float

    @property
    def inverted(self) -> bool:
        """Whether an attacker who flips the sign learns more."""
        return self.d_ece_flipped > self.d_ece


def zebra(targets: ArrayLike, impostors: ArrayLike) -> Zebra:
    """ZEBRA of a set of scores, by oracle calibration.

    Parameters
    ----------
    targets, impostors : array_like
        Scores of comparisons of one speaker, and of different speakers.

    Returns
    -------
    Zebra
        `d_ece` in bit, `l_w`, its `tag`, and whether the scores are `inverted`.

    Raises
    ------
    InputError
        If one of the classes is empty, or a score is not finite.

    Examples
    --------
    >>> found = zebra([2.0, 3.0], [0.0, 1.0])
    >>> round(found.d_ece, 4), found.tag, found.inverted
    (0.7213, 'A', False)
    """
    scores = SortedScores.from_arrays(targets, impostors)
    l_w = scores.of(Strongest())
    return Zebra(scores.of(DEce()), l_w, tag(l_w), d_ece_flipped(scores))


def d_ece(target_llrs: ArrayLike, impostor_llrs: ArrayLike) -> float:
    """The expected disclosure of log-likelihood ratios in bit (eq. 13); for ratios from another run it is C_ECE."""
    up = float(np.mean(z(target_llrs)))
    down = float(np.mean(z(-np.asarray(impostor_llrs, np.float64))))
    return (up + down) / (2 * float(np.log(2)))


def d_ece_flipped(scores: ScoreSet) -> float:
    """D_ECE of the scores with their sign changed, in bit."""
    return float(DEce().of_blocks(scores.flipped_blocks)[0])


def z(llr: ArrayLike) -> Floats:
    """The integral over all priors of what a log-likelihood ratio tells (eq. 13): 0 at 0, 1/2 at inf, -inf at -inf.

    Z(l) = 1/2 + (l - (e^l - 1)) / (e^l - 1)^2, by its series near 0, where the quotient loses all digits.

    >>> [round(float(v), 6) for v in z([-np.inf, -800, 0, 1e-9, 2, 800, np.inf])]
    [-inf, -798.5, 0.0, 0.0, 0.392478, 0.5, 0.5]
    """
    x = np.asarray(llr, np.float64)
    out = np.empty_like(x)
    near = np.abs(x) < 0.3
    y = x[near]
    out[near] = y * (1 / 3 + y * (-1 / 12 + y * (1 / 180 + y * (1 / 720 - y / 5040))))
    up = x >= 0.3
    y = x[up]
    e = np.exp(-y)
    grown = -np.expm1(-y)  # 1 - e^-l, so that e^l - 1 = grown / e
    finite = np.where(np.isinf(y), 0.0, y)
    out[up] = 0.5 + (finite * e - grown) * e / grown**2
    down = x <= -0.3
    y = x[down]
    less = np.expm1(y)
    out[down] = 0.5 + (y - less) / less**2
    out[np.isnan(x)] = np.nan
    return out


def tag(l_w: float) -> str:
    """The category of paper 004, table 1.

    >>> [tag(v) for v in (0, 0.3, 1, 3.98, 4, 5, 6)]
    ['0', 'A', 'B', 'C', 'D', 'E', 'F']
    """
    if np.isnan(l_w) or l_w < 0:
        raise InputError(f"l_w can't be {l_w}")
    return "0" if l_w == 0 else next(name for bound, name in TAGS if l_w >= bound)


def c_ece(targets: ArrayLike, impostors: ArrayLike, calibration: Calibration) -> float:
    """Leakage of these scores when the attacker calibrates on another run (eq. 15 and 16), in bit.

    Negative: the attacker would do better to ignore the scores. Minus infinity: the calibration was certain and wrong.
    """
    return d_ece(
        calibration.apply(check_scores(targets, "target")), calibration.apply(check_scores(impostors, "impostor"))
    )


def train(kind: str, targets: ArrayLike, impostors: ArrayLike, *, laplace: bool = True) -> Calibration:
    """A calibration of eq. 15: `linear` (logistic regression) or `isotonic` (PAV)."""
    if kind == "linear":
        return logistic(targets, impostors)
    if kind == "isotonic":
        return pav(targets, impostors, laplace=laplace)
    raise InputError(f"unknown calibration {kind!r}", fix="choose linear or isotonic")


@dataclass(frozen=True, slots=True)
class NormalizedForms:
    """Eq. 17 to 20: the shares are in percent, the gains in dB."""

    d_ece_op_oo: Number
    min_cllr_op_oo: Number
    g_d_ece: Number
    g_min_cllr: Number


def compute_normalized_forms(
    d_ece_oo: Number, d_ece_op: Number, d_ece_pp: Number, min_cllr_oo: Number, min_cllr_op: Number, min_cllr_pp: Number
) -> NormalizedForms:
    """Eq. 17-20 from D_ECE and min Cllr of original-original, original-protected and protected-protected scores.

    In eq. 20 the numerator is PP: the paper's text shows OO twice.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        informed = 1 - np.asarray(min_cllr_oo)
        return NormalizedForms(
            100 * (1 - d_ece_op / np.asarray(d_ece_oo)),
            100 * (min_cllr_op - np.asarray(min_cllr_oo)) / informed,
            10 * np.log10(d_ece_pp / np.asarray(d_ece_oo)),
            10 * np.log10((1 - np.asarray(min_cllr_pp)) / informed),
        )


@dataclass(frozen=True, eq=False, slots=True)
class EceProfile:
    """ECE in bit over prior log-odds: of the scores as they are, after oracle calibration, and with no scores."""

    log_odds: Floats
    actual: Floats
    pav: Floats
    prior: Floats


def ece_profile(
    targets: ArrayLike,
    impostors: ArrayLike,
    *,
    log_odds: ArrayLike | None = None,
    most: int = 20_000,
    presorted: bool = False,
) -> EceProfile:
    """The three curves of paper 004, figure 7 (eq. 11 and 12). Scores are taken as log-likelihood ratios for `actual`.

    Classes larger than `most` are thinned to evenly spaced ranks for the `actual` curve, which is a picture.
    """
    t, n = check_scores(targets, "target"), check_scores(impostors, "impostor")
    if not presorted:
        t, n = np.sort(t), np.sort(n)
    x = np.linspace(-7, 7, 141) if log_odds is None else np.asarray(log_odds, np.float64)
    blocks = pav(t, n, presorted=True)
    up, down = blocks.targets > 0, blocks.impostors > 0
    oracle = _ece(
        x,
        blocks.llrs[up],
        blocks.targets[up] / blocks.total_targets,
        blocks.llrs[down],
        blocks.impostors[down] / blocks.total_impostors,
    )
    thin_t, thin_n = _thin(t, most), _thin(n, most)
    actual = _ece(x, thin_t, np.full(len(thin_t), 1 / len(thin_t)), thin_n, np.full(len(thin_n), 1 / len(thin_n)))
    no_evidence, certain = np.zeros(1), np.ones(1)
    return EceProfile(x, actual, oracle, _ece(x, no_evidence, certain, no_evidence, certain))


def _thin(ordered: Floats, most: int) -> Floats:
    if len(ordered) <= most:
        return ordered
    return ordered[((np.arange(most) + 0.5) * (len(ordered) / most)).astype(np.intp)]


def _ece(log_odds: Floats, t: Floats, wt: Floats, n: Floats, wn: Floats) -> Floats:
    """Eq. 11: weighted cross-entropy of the posterior at each prior, in bit."""
    out = np.empty(len(log_odds))
    for i, o in enumerate(log_odds):
        prior = 1 / (1 + np.exp(-o))
        out[i] = prior * (wt @ softplus(-t - o)) + (1 - prior) * (wn @ softplus(n + o))
    out /= np.log(2)
    return out
