"""What one draw of a run covers, from the data: are two utterances of one speaker closer than draws explain?

It matters because a draw that was trained on must not be tested: with one pseudo-voice per speaker taken for one per
utterance, cross-validation recognizes the pseudo-voice and chooses whatever does that best.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from veilmeter.attacks.adaptive.own_data import usable_runs
from veilmeter.attacks.backends.base import unit64
from veilmeter.attacks.material import DrawLevel, Floats, Material, Rows
from veilmeter.core.findings import Finding, warning
from veilmeter.data.embeddings import Embeddings

SHARED = 0.15  # the share of what differs between two runs that a speaker's recordings have in common: a shared draw
SAME = 1e-3  # runs that differ by less than this share of their variance draw nothing
MOST_SPEAKERS = 1000  # compared with each other: that many tell one draw per speaker from one per utterance
UNEXPLAINED = 0.2  # closeness beyond what originals explain, as a share of that of the originals: a shared draw


@dataclass(frozen=True)
class DrawTest:
    """The level, and the figure it rests on: the share of closeness that no original explains, or, with a second run,
    the share of the difference between the runs that a speaker's recordings have in common."""

    level: DrawLevel
    figure: float
    compared: str


def draw_level(originals: Embeddings, run: Embeddings, beside: Sequence[Embeddings] = ()) -> DrawTest:
    """What one draw of `run` covers; other runs over the same recordings (`beside`) make it a sharper test.

    Unknown where no speaker has two recordings. When in doubt the answer is "speaker": that costs the attacker some of
    its choice, the other error ruins it.
    """
    for other in beside:
        test = _between_runs(originals, run, other)
        if test is not None:
            return test
    rows, common = _common(originals, run)
    some = _of_some_speakers(originals, rows)
    rows, common = rows[some], common[some]
    codes = _codes(originals, rows)
    if not _repeated(codes):
        return DrawTest("unknown", float("nan"), "no speaker has two recordings")
    before = _closeness(_center(originals.vectors[rows]), codes)
    after = _closeness(_center(run.vectors[common]), codes)
    within, apart = before
    slope = 0.0
    off = ~np.eye(len(within), dtype=bool)
    if off.sum() > 10 and float(np.var(apart[off])) > 0:
        slope = max(0.0, float(np.polyfit(apart[off], after[1][off], 1)[0]))
    original = float(np.nanmean(within) - apart[off].mean())
    protected = float(np.nanmean(after[0]) - after[1][off].mean())
    excess = (protected - slope * original) / max(original, 1e-9)
    return DrawTest("speaker" if excess > UNEXPLAINED else "utterance", excess, "originals")


def _between_runs(originals: Embeddings, run: Embeddings, other: Embeddings) -> DrawTest | None:
    """Two runs over the same recordings differ by their draws alone, whatever of the speaker survives."""
    known = set(originals.utterances)
    both = [u for u in run.utterances if u in known and u in other.utterance_rows]
    if run.dimension != other.dimension or len(both) < 4:
        return None
    rows = np.array([originals.utterance_rows[u] for u in both])
    some = _of_some_speakers(originals, rows)
    rows, both = rows[some], [both[row] for row in some.tolist()]
    codes = _codes(originals, rows)
    if not _repeated(codes):
        return None
    first, second = (_center(side.of_utterances(both).vectors) for side in (run, other))
    difference = first - second
    difference -= difference.mean(axis=0)
    size = float(np.mean(np.sum(difference**2, axis=1)))
    if size < SAME:
        return DrawTest("utterance", 0.0, "another run, which is the same")
    within, _ = _closeness(difference, codes)
    share = float(np.nanmean(within)) / size
    if share <= SHARED:
        return DrawTest("utterance", share, "another run")
    # One of the two shares its draws, or both do: the one whose recordings lie closer together does.
    own, theirs = (float(np.nanmean(_closeness(side, codes)[0])) for side in (first, second))
    return DrawTest("speaker" if own > 0.7 * theirs else "utterance", share, "another run")


def resolve_draws(material: Material) -> tuple[tuple[DrawLevel, ...], list[Finding]]:
    """Each usable run's level: as it says, else as the data say; and what contradicts.

    A run that is declared to draw for every utterance and does not would ruin the attacker's choice, so its data are
    believed instead, unless its draws are on record.
    """
    runs = usable_runs(material)
    levels: list[DrawLevel] = []
    findings = []
    for number, run in enumerate(runs):
        tested = draw_level(material.candidates, run.vectors, [other.vectors for other in runs if other is not run])
        name = run.name or f"run {number + 1}"
        if run.draw == "unknown":
            levels.append("speaker" if tested.level == "unknown" else tested.level)
            findings.append(warning("draw_unknown", run=name, level=levels[-1]))
        elif run.certain or tested.level in (run.draw, "unknown"):
            levels.append(run.draw)
        elif run.draw == "utterance":
            levels.append(tested.level)
            findings.append(warning("draw_taken_per_speaker", run=name))
        else:
            levels.append(run.draw)
            findings.append(warning("draw_looks_per_utterance", run=name))
    return tuple(levels), findings


def _common(originals: Embeddings, run: Embeddings) -> tuple[Rows, Rows]:
    both = [u for u in originals.utterances if u in run.utterance_rows]
    return (
        np.array([originals.utterance_rows[u] for u in both], np.int64),
        np.array([run.utterance_rows[u] for u in both], np.int64),
    )


def _of_some_speakers(originals: Embeddings, rows: Rows) -> Rows:
    """Which of the rows are of so many speakers that all of them can be compared with each other."""
    speakers = np.unique(originals.codes[rows])
    if len(speakers) <= MOST_SPEAKERS:
        return np.arange(len(rows))
    drawn = np.random.default_rng(0).choice(speakers, MOST_SPEAKERS, replace=False)
    return np.flatnonzero(np.isin(originals.codes[rows], drawn))


def _codes(originals: Embeddings, rows: Rows) -> Rows:
    return np.unique(originals.codes[rows], return_inverse=True)[1]


def _repeated(codes: Rows) -> bool:
    counts = np.bincount(codes) if len(codes) else np.zeros(0, np.int64)
    return len(counts) > 1 and bool((counts > 1).any())


def _center(vectors: np.ndarray) -> Floats:
    x = unit64(vectors)
    return unit64(x - x.mean(axis=0))


def _closeness(x: Floats, codes: Rows) -> tuple[Floats, Floats]:
    """Mean products of different recordings: within each speaker (NaN with one), and between speakers."""
    n = int(codes.max()) + 1
    counts = np.bincount(codes, minlength=n).astype(float)
    sums = np.zeros((n, x.shape[1]))
    np.add.at(sums, codes, x)
    squares = np.bincount(codes, np.sum(x**2, axis=1), n)
    pairs = counts * (counts - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        within = np.where(pairs > 0, (np.sum(sums**2, axis=1) - squares) / pairs, np.nan)
    return within, sums @ sums.T / np.outer(counts, counts)
