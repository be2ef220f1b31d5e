"""The joint chance level of all figures of an assessment: all attackers, lengths and groups, over the same people.

An assessment reports the worst of many figures, and the largest of many is large by chance. If nobody can be
recognized, names do not matter: give everybody enrolled the name of somebody drawn at random, the same one for every
attacker, length and measure, and compute all figures again. Repeated, this gives their joint distribution under "nobody
is recognized", with all that they share. The step-down maximum test of Westfall and Young (1993) then says for each
figure how often the largest by chance would be as extreme: exactly, as the true names are one relabeling more.

Figures of different spread and skewness are compared on one scale, that of a normal variable (a Pearson III
distribution with the same first three moments); the scale decides on power only, not on validity.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veilmeter.metrics.calibration import groups_of_draws, levels_of, pool_sets
from veilmeter.metrics.legal.linkability import link_probability
from veilmeter.metrics.scores.zebra import DEce

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

DRAWS = 499
MORE_OFTEN_THAN_NOT = 0.5
BLOCK = 256  # conversations whose scores are put in order at a time
MOST_CALIBRATED = 10_000_000  # scores: what people differ in dwarfs what more recordings of some would add
MOST_TOP = 1000  # of the highest scores: whether more of them are of targets is nothing rare
AT_ONCE = 300_000  # target trials of all draws whose groups are held at a time


@dataclass(frozen=True, slots=True, order=True)
class FigureKey:
    """Which figure: a point of a curve of an attacker, of everybody or within a group (`attribute`, `group`)."""

    attacker: str
    measure: str
    attribute: str = ""
    group: str = ""
    length: int = 0
    speakers: int = 0


@dataclass(frozen=True, eq=False)
class Trials:
    """Scores of enrolled people (rows) for conversations (columns) of one length, and the row of each one's speaker.

    `mask` says which cells are trials of verification, where a key was given.
    """

    scores: NDArray[np.floating]
    own: Rows
    enrolled: tuple[str, ...]
    length: int = 1
    mask: NDArray[np.bool_] | None = None


@dataclass(frozen=True, eq=False)
class Relabeled:
    """Figures under relabeling: one row per figure, the first column with the true names, then one per draw.

    `first` is who came out strictly first for each conversation of the shortest length (-1: nobody did), `own` who
    speaks; both as numbers of `enrolled`.
    """

    figures: tuple[FigureKey, ...]
    values: Floats
    enrolled: tuple[str, ...]
    first: Rows = field(default_factory=lambda: np.zeros(0, np.int64))
    own: Rows = field(default_factory=lambda: np.zeros(0, np.int64))


@dataclass(frozen=True, eq=False)
class JointChance:
    """The probability of each figure that the largest of all by chance would be as extreme, and what chance gives:
    the mean, the 5th and the 95th percentile.

    `exposed` is how many people chance alone exposes, `exposed_luck` how often it exposes at least as many as were
    found; `exposed_p` is that of the people who were found, adjusted for all figures. `found` are the
    figures themselves.
    """

    p_adjusted: Mapping[FigureKey, float]
    draws: int
    luck: Mapping[FigureKey, tuple[float, float, float]] = field(default_factory=dict)
    best_link: float | None = None
    exposed: float | None = None
    exposed_p: float | None = None
    exposed_luck: float | None = None
    found: Mapping[FigureKey, float] = field(default_factory=dict)
    named: Mapping[tuple[str, str], float] = field(default_factory=dict)


def relabelings(names: Sequence[str], *, draws: int = DRAWS, seed: int = 0, blocks: Rows | None = None) -> Rows:
    """For each draw who is called by whose name (draws x people).

    Everybody has separate random numbers, from the seed and their name alone, so that attackers who know the same
    people relabel them alike. With `blocks`, people change names within their block only.
    """
    return _relabelings(tuple(names), draws, seed, None if blocks is None else tuple(blocks.tolist()))


@lru_cache(maxsize=4)  # all attackers relabel the same people
def _relabelings(names: tuple[str, ...], draws: int, seed: int, blocks: tuple[int, ...] | None) -> Rows:
    keys = np.empty((len(names), draws))
    for row, name in enumerate(names):
        digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).digest()
        keys[row] = np.random.default_rng([seed, 17, int.from_bytes(digest[:8], "big")]).random(draws)
    of = np.zeros(len(names), np.int64) if blocks is None else np.array(blocks)
    drawn = np.empty((draws, len(names)), np.int64)
    for block in np.unique(of):
        inside = np.flatnonzero(of == block)
        drawn[:, inside] = inside[np.argsort(keys[inside], axis=0)].T
    drawn.flags.writeable = False
    return drawn


def draw_columns(people: int, conversations: int) -> NDArray[np.intp] | slice:
    """The conversations whose scores are calibrated: all, or as many as there is room for."""
    most = max(2, MOST_CALIBRATED // max(1, people))
    if conversations <= most:
        return slice(None)
    return np.sort(np.random.default_rng(0).choice(conversations, most, replace=False))


def better_counts(scores: NDArray[np.floating]) -> NDArray[np.int32]:
    """For every cell how many others of its column score at least as high: r of each person, had they spoken.

    >>> better_counts(np.array([[0.9, 0.2], [0.5, 0.2], [0.7, 0.1]])).tolist()
    [[0, 1], [2, 1], [1, 2]]
    """
    people, conversations = scores.shape
    counts = np.empty((conversations, people), np.int32)
    place = np.arange(people, dtype=np.int32)
    for start in range(0, conversations, BLOCK):
        spoken = np.ascontiguousarray(scores[:, start : start + BLOCK].T)
        order = np.argsort(spoken, axis=1)
        order += np.arange(0, order.size, people)[:, None]
        ordered = spoken.reshape(-1)[order]
        ranks = np.tile(people - 1 - place, (len(order), 1))
        equal = ordered[:, 1:] == ordered[:, :-1]
        tied = np.flatnonzero(equal.any(axis=1))
        if len(tied):  # equal scores all count as the lowest place among them
            first = np.where(equal[tied], np.int32(0), place[1:])
            ranks[tied, 1:] = people - 1 - np.maximum.accumulate(first, axis=1)
        counts[start : start + BLOCK].reshape(-1)[order.ravel()] = ranks.ravel()
    return counts.T


def first_places(scores: NDArray[np.floating]) -> Rows:
    """Who comes out strictly first for each conversation; -1 where two share the first place.

    >>> first_places(np.array([[0.9, 0.2], [0.5, 0.2], [0.7, 0.1]])).tolist()
    [0, -1]
    """
    best = scores.argmax(axis=0)
    highest = scores[best, np.arange(scores.shape[1])]
    return np.where(np.count_nonzero(scores == highest, axis=0) == 1, best, -1).astype(np.int64)


def name_blocks(own: Rows, people: int) -> Rows | None:
    """Blocks of people who may change names where the tried ones were not tried equally often: those who were tried at
    all, and the others. None where everybody may, or where most people were not tried.

    An attacker may favor people who are known by many recordings, whatever these contain, and such people often have
    many trials. Chance has that too only if a name keeps its weight, that is the number of its trials.
    """
    counts = np.bincount(own, minlength=people)
    tried = counts > 0
    alike = len(np.unique(counts[tried])) == 1
    return None if alike or 2 * np.count_nonzero(tried) < people else tried.astype(np.int64)


def name_weights(own: Rows, names: Rows) -> Floats:
    """How much each trial counts under these names, so that a name counts as much as it does in truth."""
    counts = np.bincount(own, minlength=names.shape[-1]).astype(np.float64)
    return np.asarray(counts[names[..., own]] / counts[own])


def linkability_draws(better: NDArray[np.int32], own: Rows, sizes: Sequence[int], relabeled: Rows) -> Floats:
    """Linkability at each size (rows), with the true names (first column) and under each relabeling."""
    people, columns = better.shape
    impostors = people - 1
    which = np.arange(columns)
    unequal = name_blocks(own, people) is not None
    counted = np.empty((1 + len(relabeled), people))
    counted[0] = np.bincount(better[own, which], minlength=people)
    for number, names in enumerate(relabeled, 1):
        weights = name_weights(own, names) if unequal else None
        counted[number] = np.bincount(better[names[own], which], weights, minlength=people)
    chances = np.stack([link_probability(np.arange(people), impostors, size) for size in sizes])
    return np.asarray(chances @ counted.T / columns)


@dataclass(frozen=True, eq=False)
class NamedTrials:
    """Trials of verification with the true names (first row of `names`) and under each relabeling: `which` are the
    conversations whose speaker is tried, `own` their speakers; `tried` who may change names with whom, if not all."""

    trials: Trials
    which: Rows
    own: Rows
    names: Rows
    tried: Rows | None


def name_trials(trials: Trials, *, draws: int = DRAWS, seed: int = 0) -> NamedTrials | None:
    """None without target trials, and where a key leaves nobody whose name could be changed."""
    drawn = draw_columns(*trials.scores.shape)
    if not isinstance(drawn, slice):
        mask = None if trials.mask is None else trials.mask[:, drawn]
        trials = replace(trials, scores=trials.scores[:, drawn], own=trials.own[drawn], mask=mask)
    mask = trials.mask
    blocks = None if mask is None else _blocks(mask)
    which = np.arange(len(trials.own))
    if mask is not None:
        which = which[mask[trials.own, which]]
        if blocks is not None and len(np.unique(blocks)) == len(trials.enrolled):
            return None
    if not len(which):
        return None
    own = trials.own[which]
    tried = name_blocks(own, len(trials.enrolled))
    if tried is not None:
        blocks = tried if blocks is None else 2 * blocks + tried
    relabeled = relabelings(trials.enrolled, draws=draws, seed=seed, blocks=blocks)
    names = np.concatenate([np.arange(len(trials.enrolled))[None], relabeled])
    return NamedTrials(trials, which, own, names, tried)


def d_ece_draws(named: NamedTrials) -> Floats:
    """D_ECE as it stands and turned round (rows), under each naming (columns)."""
    trials, own = named.trials, named.own
    cells = slice(None) if trials.mask is None else np.flatnonzero(trials.mask)
    levels = levels_of(trials.scores.ravel()[cells])
    level = np.zeros(trials.scores.shape, np.int32)
    level.reshape(-1)[cells] = levels.of
    at_once = max(1, AT_ONCE // len(own))
    parts = []
    for start in range(0, len(named.names), at_once):
        names = named.names[start : start + at_once]
        chosen = level[names[:, own], named.which]
        weights = None if named.tried is None else name_weights(own, names).ravel()
        groups = groups_of_draws(chosen.ravel(), np.repeat(np.arange(len(chosen)), len(own)), levels.sizes, weights)
        parts.append(np.stack([DEce().of_blocks(pool_sets(*groups, flipped=flipped)) for flipped in (False, True)]))
    return np.concatenate(parts, axis=1)


def top_target_draws(named: NamedTrials) -> Floats:
    """How many target trials score above all impostor trials, under each naming (one row): a few recordings that were
    let through hardly change a mean, but chance seldom puts several targets first of all."""
    trials = named.trials
    scores = trials.scores if trials.mask is None else np.where(trials.mask, trials.scores, -np.inf)
    flat = scores.ravel()
    count = min(len(flat), MOST_TOP)
    top = np.argpartition(-flat, count - 1)[:count]
    top = top[np.argsort(-flat[top], kind="stable")]
    people, columns = np.divmod(top, scores.shape[1])
    values = flat[top]
    speaker = trials.own[columns]
    found = np.empty((1, len(named.names)))
    for number, names in enumerate(named.names):
        impostor = np.flatnonzero((names[speaker] != people) | ~np.isfinite(values))
        found[0, number] = np.count_nonzero(values > values[impostor[0]]) if len(impostor) else count
    return found


def _blocks(mask: NDArray[np.bool_]) -> Rows:
    """People who are compared with the same conversations: a key of same-gender trials has two blocks."""
    _, codes = np.unique(np.packbits(mask, axis=1), axis=0, return_inverse=True)
    return np.asarray(codes, np.int64).reshape(-1)


def relabel(
    attacker: str,
    trials: Sequence[Trials],
    sizes: Mapping[int, Sequence[int]],
    *,
    groups: Mapping[tuple[str, str], Sequence[Trials]] | None = None,
    d_ece: bool = True,
    draws: int = DRAWS,
    seed: int = 0,
) -> Relabeled:
    """All figures of one attacker under relabeling: of everybody, and within groups (attribute and value).

    `trials` are those of each length, `sizes` the numbers of people at which Linkability is given by length (where a
    group is smaller, those that fit and everybody in it).
    """
    figures: list[FigureKey] = []
    values: list[Floats] = []
    for (attribute, value), within in {("", ""): trials, **(groups or {})}.items():
        for number, one_length in enumerate(trial for trial in within if len(trial.own)):
            enrolled = len(one_length.enrolled)
            blocks = name_blocks(one_length.own, enrolled)
            names = relabelings(one_length.enrolled, draws=draws, seed=seed, blocks=blocks)
            asked = sorted({*(size for size in sizes.get(one_length.length, ()) if size < enrolled), enrolled})
            better = better_counts(one_length.scores)
            values.append(linkability_draws(better, one_length.own, asked, names))
            place = (attacker, "linkability", attribute, value, one_length.length)
            figures += [FigureKey(*place, size) for size in asked]
            if number == 0 and d_ece and (named := name_trials(one_length, draws=draws, seed=seed)) is not None:
                values.append(d_ece_draws(named))
                figures += [FigureKey(attacker, name, attribute, value) for name in ("d_ece", "d_ece_flipped")]
                if not attribute:
                    values.append(top_target_draws(named))
                    figures.append(FigureKey(attacker, "top_targets"))
    table = np.concatenate(values) if values else np.zeros((0, 1 + draws))
    shortest = min((trial for trial in trials if len(trial.own)), key=lambda trial: trial.length, default=None)
    if shortest is None:
        return Relabeled(tuple(figures), table, ())
    first = first_places(shortest.scores)
    return Relabeled(tuple(figures), table, shortest.enrolled, first, shortest.own)


def joint_chance(attackers: Sequence[Relabeled], *, seed: int = 0) -> JointChance:
    """All attackers together: the adjusted probability of every figure, and what chance would reach."""
    known = [attacker for attacker in attackers if len(attacker.values)]
    if not known:
        return JointChance({}, 0)
    draws = known[0].values.shape[1] - 1
    figures = [figure for attacker in known for figure in attacker.figures]
    exposed = exposure_draws(known, draws=draws, seed=seed)
    values = np.concatenate([*(attacker.values for attacker in known), exposed])
    p = adjust(values)
    everybody: dict[tuple[str, int], int] = {}
    for row, figure in enumerate(figures):
        if figure.measure == "linkability" and not figure.attribute:
            curve = (figure.attacker, figure.length)
            everybody[curve] = max(everybody.get(curve, row), row, key=lambda at: figures[at].speakers)
    best = values[list(everybody.values()), 1:].max(axis=0) if everybody else None
    drawn = values[: len(figures), 1:]
    luck = np.stack([drawn.mean(axis=1), *np.quantile(drawn, [0.05, 0.95], axis=1)], axis=1)
    return JointChance(
        dict(zip(figures, p[: len(figures)].tolist(), strict=True)),
        draws,
        {figure: (row[0], row[1], row[2]) for figure, row in zip(figures, luck.tolist(), strict=True)},
        None if best is None else float(np.quantile(best, 0.95)),
        float(exposed[0, 1:].mean()),
        float(p[len(figures) :].min()),
        float((exposed[0] >= exposed[0, 0]).mean()),
        dict(zip(figures, values[: len(figures), 0].tolist(), strict=True)),
        {(one.figures[0].attacker, name): rate for one in known for name, rate in _names_for_others(one).items()},
    )


def _names_for_others(attacker: Relabeled) -> dict[str, float]:
    """How often each person who was tried comes out first for recordings of others: a person who is named for everybody
    is also named for their own recordings. Everybody counts as always named where an attacker takes all recordings of
    somebody for the same other person, which chance seldom gives: then recordings share a voice, and are one guess."""
    people = len(attacker.enrolled)
    spoken = np.bincount(attacker.own, minlength=people)
    wrong = attacker.first[(attacker.first >= 0) & (attacker.first != attacker.own)]
    rates = np.bincount(wrong, minlength=people) / np.maximum(len(attacker.own) - spoken, 1)
    several = np.flatnonzero(spoken > 1)
    guesses = [attacker.first[attacker.own == row] for row in several]
    shared = [
        len(np.unique(named)) == 1 and named[0] not in (-1, row) for row, named in zip(several, guesses, strict=True)
    ]
    if any(shared):
        rates = np.ones(people)
    return {attacker.enrolled[row]: float(rates[row]) for row in np.flatnonzero(spoken)}


def exposure_draws(attackers: Sequence[Relabeled], *, draws: int = DRAWS, seed: int = 0) -> Floats:
    """With the true names (first column) and under each relabeling: how many people are linked more often than not by
    the attacker that finds them best, and how often the most exposed person is linked, over all attackers. The second
    finds a single unprotected person: chance seldom makes all attackers name the same one again and again."""
    people = sorted({attacker.enrolled[row] for attacker in attackers for row in np.unique(attacker.own)})
    place = {name: number for number, name in enumerate(people)}
    most, total = np.zeros((1 + draws, len(people))), np.zeros((1 + draws, len(people)))
    tried = np.zeros(len(people))
    for attacker in attackers:
        if not len(attacker.own):
            continue
        names = relabelings(attacker.enrolled, draws=draws, seed=seed)
        counts = np.bincount(attacker.own, minlength=len(attacker.enrolled))
        spoken = np.flatnonzero(counts)
        where = [place[attacker.enrolled[row]] for row in spoken]
        tried[where] += 1
        order = np.argsort(attacker.own, kind="stable")
        own, first = attacker.own[order], attacker.first[order]
        starts = np.searchsorted(own, spoken)
        called = np.concatenate([np.arange(len(counts))[None], names])
        for start in range(0, len(called), BLOCK):
            some = slice(start, start + BLOCK)
            hits = np.add.reduceat(called[some][:, own] == first, starts, axis=1, dtype=np.int64)
            rates = hits / counts[spoken]
            most[some, where] = np.maximum(most[some, where], rates)
            total[some, where] += rates
    return np.stack([(most > MORE_OFTEN_THAN_NOT).sum(axis=1), (total / tried).max(axis=1)])


def adjust(values: Floats) -> Floats:
    """Westfall and Young's step-down adjusted probabilities of the first column, larger values being more extreme.

    Each row is a figure, the first column what was found, the others what chance gives.
    """
    scores = normal_scores(values)
    order = np.argsort(-scores[:, 0], kind="stable")
    # The largest of this figure and all that are less extreme, in each column.
    luckiest = np.maximum.accumulate(scores[order][::-1], axis=0)[::-1]
    p = (luckiest >= scores[order, :1] - 1e-9).mean(axis=1)
    result = np.empty(len(values))
    result[order] = np.maximum.accumulate(p)
    return result


def normal_scores(values: Floats) -> Floats:
    """Every row on the scale of a normal variable, by its mean, spread and skewness (Kite 1977).

    The finding counts among the draws, so that its place among them is that of any other if it is mere chance.
    """
    centered = values - values.mean(axis=1, keepdims=True)
    spread = np.sqrt((centered**2).mean(axis=1, keepdims=True))
    with np.errstate(divide="ignore", invalid="ignore"):
        standard = np.where(spread > 1e-12, centered / spread, 0.0)
    skewness = (standard**3).mean(axis=1, keepdims=True)
    # Where draws crowd below a bound that many of them reach, these are not extreme: the plain scale will do.
    small = skewness < 1e-3
    safe = np.where(small, 1.0, skewness)
    cubed = np.cbrt(np.maximum(safe / 2 * standard + 1, 0.0))
    return np.asarray(np.where(small, standard, 6 / safe * (cubed - 1) + safe / 6))
