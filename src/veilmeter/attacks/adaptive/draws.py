"""A method for anonymizers that draw from a finite set: it tries every draw in turn.

From pairs of originals and copies with the draw d an affine map M_d is learned, as a ridge regression pulled toward the
map M that all draws have in common. The template of candidate c under d is what M_d makes of the mean original of c,
plus what the copies of c under d differ from what M_d makes of the same recordings: nothing where a map explains the
draw, and the copies themselves where it explains nothing. With W the covariance of copies around the template of their
speaker, a recording x gets the score max_d x' W^-1 t_dc - t_dc' W^-1 t_dc / 2, the likelihood at the best draw.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.adaptive.families import Parameters, standardize
from veilmeter.attacks.adaptive.training import DrawnPairs, TrainingSet, class_means, solve_ridge, spectrum
from veilmeter.attacks.material import Floats, Rows

Single = NDArray[np.float32]

MOST_TEMPLATES = 200_000  # candidates times draws: beyond, trying each costs more than all other methods together
MOST_PAIRS = 200_000
CONSTANT = 3.0  # the coordinate that is the same for all originals: the place of a draw's copies is hardly penalized
COMMON = 1.0  # the ridge of the common map
SHRINKAGE = 0.1  # of correlations
LEAST_VARIANCE = 1e-4  # of the mean one
MOST_USUAL = 200  # copies by which the usual spread of scores is known


@dataclass(frozen=True, eq=False)
class DrawMap:
    """How one draw differs from the common map, as left' right: originals of the draw, or the identity (None), and what
    they weigh; and by how much the copies of some candidates (`whose`) differ from that."""

    left: Floats | None
    right: Floats
    whose: Rows
    rest: Floats

    def templates(self, voices: Floats, common: Floats) -> Floats:
        """Of candidates with these mean originals, `common` being what the common map makes of them."""
        made = common + (voices if self.left is None else voices @ self.left.T) @ self.right
        made[self.whose] += self.rest
        return made


@dataclass(frozen=True, eq=False)
class DrawScorer:
    """`voices` are the candidates' mean originals; `maps` and `common` lead to where `whiten` puts recordings."""

    voices: Floats
    common: Floats
    maps: tuple[DrawMap, ...]
    whiten: Floats
    usual: float = 0.0

    def best(self, x: Floats) -> Single:
        """The largest log-likelihood over the draws, of each candidate."""
        white = (x @ self.whiten).astype(np.float32)
        best = np.full((len(x), len(self.voices)), -np.inf, np.float32)
        for draw in self.maps:
            templates = draw.templates(self.voices, self.common).astype(np.float32)
            scores = white @ templates.T
            scores -= np.einsum("ij,ij->i", templates, templates) / 2
            np.maximum(best, scores, out=best)
        return best

    def scores(self, x: Floats) -> Single:
        return standardize(self.best(x), self.usual)


def draws_of_several(pairs: DrawnPairs | None) -> Rows:
    """The draws that several people have copies with: only such a set is finite by what is seen of it."""
    if pairs is None:
        return np.zeros(0, np.int64)
    who = np.where(pairs.labels < 0, pairs.labels.max() + 1, pairs.labels)  # other people count as one
    both = np.unique(np.stack([pairs.draws, who]), axis=1)[0]
    draws, people = np.unique(both, return_counts=True)
    return draws[people > 1]


class EachDraw:
    """Parameters: the strength of the ridge that pulls a draw's map toward the common one, and how many copies of a
    candidate count as much as what the map predicts."""

    name = "each-draw"
    about = "tries every draw of a finite set in turn, where the attacker's own copies name their draws"
    grid: tuple[Parameters, ...] = ((0.05, 10.0), (0.5, 10.0), (5.0, 10.0), (50.0, 10.0), (50.0, 1.0))
    defaults: tuple[Parameters, ...] = ((0.5, 10.0),)
    transfers = True
    nonlinear = False

    def possible(self, training: TrainingSet) -> bool:
        if training.drawn is None or len(training.drawn.draws) > MOST_PAIRS:
            return False
        return 1 < len(draws_of_several(training.drawn)) <= MOST_TEMPLATES / training.candidates

    def fit(self, training: TrainingSet, grid: Sequence[Parameters]) -> Iterator[tuple[Parameters, DrawScorer]]:
        assert training.drawn is not None
        pairs = training.drawn
        for strength, weight in grid:
            yield (strength, weight), fit_draws(pairs, training.mu, strength, weight)


EACH_DRAW = EachDraw()


def fit_draws(pairs: DrawnPairs, mu: Floats, strength: float, weight: float) -> DrawScorer:
    """The maps of all draws that several people share, for candidates with these mean originals."""
    before, voices = _with_constant(pairs.before), _with_constant(mu)
    common = solve_ridge(spectrum(before), before.T @ pairs.after, COMMON)
    unexplained = pairs.after - before @ common
    own = pairs.labels >= 0
    away = before - np.where(own[:, None], voices[pairs.labels], before)  # from the mean original of the speaker
    spread = away @ common
    maps = []
    for draw in draws_of_several(pairs):
        rows = np.flatnonzero(pairs.draws == draw)
        left, right, leverage = _ridge(before[rows], unexplained[rows], strength)

        def differ(voice: Floats, left: Floats | None = left, right: Floats = right) -> Floats:
            return (voice if left is None else voice @ left.T) @ right

        rest = unexplained[rows] - differ(before[rows])
        # As if the map had been learned without the recording, and applied to the mean original of its speaker.
        spread[rows] += rest / (1 - leverage)[:, None] + differ(away[rows])
        whose = pairs.labels[rows][own[rows]]
        counts = np.bincount(whose, minlength=len(mu))
        heard = np.flatnonzero(counts)
        means = class_means(rest[own[rows]], whose, len(mu))[heard]
        maps.append(DrawMap(left, right, heard, means * (counts / (counts + weight))[heard, None]))
    known = np.isin(pairs.draws, draws_of_several(pairs))
    whiten = _whitening(spread[known & own] if (known & own).any() else spread[known])
    white = tuple(DrawMap(draw.left, draw.right @ whiten, draw.whose, draw.rest @ whiten) for draw in maps)
    scorer = DrawScorer(voices, voices @ common @ whiten, white, whiten)
    some = scorer.best(pairs.after[:: -(-len(pairs.after) // MOST_USUAL)]).astype(np.float64)
    return replace(scorer, usual=float(np.mean((some - some.mean(axis=1, keepdims=True)) ** 2)))


def _with_constant(vectors: Floats) -> Floats:
    return np.concatenate([vectors, np.full((len(vectors), 1), CONSTANT)], axis=1)


def _ridge(before: Floats, after: Floats, strength: float) -> tuple[Floats | None, Floats, Floats]:
    """A ridge regression as left' right (see `DrawMap`), solved on the smaller side; and the leverage of each row."""
    if len(before) < before.shape[1]:
        inverse = np.linalg.inv(before @ before.T + strength * np.eye(len(before)))
        return before, inverse @ after, 1 - strength * np.diag(inverse)
    inverse = np.linalg.inv(before.T @ before + strength * np.eye(before.shape[1]))
    return None, inverse @ (before.T @ after), np.einsum("ij,jk,ik->i", before, inverse, before, optimize=True)


def _whitening(rest: Floats) -> Floats:
    """The matrix that makes these rows spherical, their correlations shrunk."""
    covariance = rest.T @ rest / len(rest)
    variances = np.diag(covariance)
    scales = np.sqrt(np.maximum(variances, LEAST_VARIANCE * max(float(variances.mean()), 1e-12)))
    correlation = (1 - SHRINKAGE) * covariance / np.outer(scales, scales)
    np.fill_diagonal(correlation, 1.0)
    return np.asarray(np.linalg.cholesky(np.linalg.inv(correlation)) / scales[:, None])
