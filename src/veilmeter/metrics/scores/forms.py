"""How a measure of scores is computed, and the forms in which it gets the scores.

A `ScoreFunction` has one method for the value of one set of scores, and one for many sets at once: the resamples of a
bootstrap, or the same scores with their labels shuffled. What measures share (sorted scores, the oracle calibration,
the ROC, histograms, costs) is computed when the first of them asks for it, and once.

One set of scores is in memory (`SortedScores`) or, where that is too small, on disk (`StreamedScores`), with exactly
the same values. There scores are distributed by value over files, each a stretch of the score axis; afterwards each
stretch is sorted and calibrated by itself, from low to high, and its blocks join those below: pooling adjacent
violators may start from blocks as well as from trials. Memory is bounded by the largest stretch and the number of
blocks.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.core.estimate import Estimate
from veilmeter.core.files import scratch_folder
from veilmeter.core.findings import Finding
from veilmeter.data.scores import Scores
from veilmeter.metrics.calibration import BlockSets, Runs, check_scores, pool_sets, pool_starts, runs, softplus

Floats = NDArray[np.float64]
TARGETS_PER_BIN = 10


class ScoreFunction:
    """How a measure of scores is computed. A subclass is a frozen dataclass; its fields are the measure's parameters.

    `suffix` is what a variant has behind the measure's name, such as `=0.01`. `sure` are the ends of its range that a
    sample may reach by chance, where resamples agree and none can be trusted: Wilson's interval replaces theirs.
    `at_most` is the name of a measure that is never smaller, so that neither end of its interval is. `overfits` says
    that it is fitted to the trials it measures. With fewer than `fewest_targets` it has no interval; no interval ends
    above `highest_end`. `looks_within_runs` says that it depends on where scores are within a run of one class.
    `per_speaker` says that `--per-speaker` gives it for every speaker.
    """

    sure: tuple[float, ...] = ()
    at_most: str = ""
    overfits = False
    fewest_targets = 0
    looks_within_runs = False
    per_speaker = False

    @property
    def suffix(self) -> str:
        return ""

    @property
    def highest_end(self) -> float:
        return np.inf

    def value(self, scores: ScoreSet) -> float:
        """The measure of one set of scores."""
        raise NotImplementedError

    def values(self, sets: WeightedSets) -> Floats:
        """The measure of many sets at once; NaN where it has no value."""
        raise NotImplementedError

    def method(self, counts: Mapping[str, int]) -> str:
        """How it was computed, from so many `targets` and `impostors`."""
        return ""

    def extra(self, scores: ScoreSet) -> dict[str, Any]:
        """Further facts that go with the value."""
        return {}

    def warnings(self, estimate: Estimate) -> list[Finding]:
        """Warnings for the reader of the estimate."""
        return []

    def __call__(self, scores: Scores) -> float:
        return self.value(SortedScores(*scores.ordered))


class BlockFunction(ScoreFunction):
    """One that needs the blocks of the oracle calibration only, so that one method serves all forms of scores."""

    def of_blocks(self, blocks: BlockSets) -> Floats:
        """The measure of each set of blocks."""
        raise NotImplementedError

    def value(self, scores: ScoreSet) -> float:
        return float(self.of_blocks(scores.blocks)[0])

    def values(self, sets: WeightedSets) -> Floats:
        out = np.full(sets.count, np.nan)
        if sets.blocks is not None:
            out[sets.usable] = self.of_blocks(sets.blocks)
        return out


class ScoreSet(ABC):
    """One set of scores: in memory, or larger than memory on disk."""

    counts: Mapping[str, int]  # of targets and impostors

    def __init__(self) -> None:
        self._known: dict[ScoreFunction, float] = {}

    def of(self, function: ScoreFunction) -> float:
        """The value of a measure, computed once."""
        if function not in self._known:
            self._known[function] = function.value(self)
        return self._known[function]

    @property
    @abstractmethod
    def blocks(self) -> BlockSets:
        """The blocks of the oracle calibration."""

    @property
    @abstractmethod
    def flipped_blocks(self) -> BlockSets:
        """The same for scores whose sign is flipped; a set's blocks may be in either order."""

    @property
    @abstractmethod
    def histograms(self) -> tuple[Floats, Floats]:
        """How many targets and impostors are in each of the bins of `histogram_edges`."""

    @property
    @abstractmethod
    def mean_costs(self) -> tuple[float, float]:
        """The mean over targets of log(1 + e^-s), and over impostors of log(1 + e^s)."""

    @abstractmethod
    def impostor_at(self, place: int) -> float:
        """The impostor score at this place from the top, the highest being 0."""

    @abstractmethod
    def targets_above(self, bound: float) -> int:
        """How many target scores are above."""


class SortedScores(ScoreSet):
    """Scores in rising order, in memory."""

    def __init__(self, targets: Floats, impostors: Floats) -> None:
        super().__init__()
        self.targets, self.impostors = targets, impostors
        self.counts = {"targets": len(targets), "impostors": len(impostors)}

    @classmethod
    def from_arrays(cls, targets: ArrayLike, impostors: ArrayLike) -> SortedScores:
        """Of scores in any order; an error if there are none or one is not finite."""
        return cls(np.sort(check_scores(targets, "target")), np.sort(check_scores(impostors, "impostor")))

    @cached_property
    def runs(self) -> Runs:
        return runs(self.targets, self.impostors)

    @cached_property
    def blocks(self) -> BlockSets:
        return BlockSets.single(*self.runs.pool())

    @cached_property
    def flipped_blocks(self) -> BlockSets:
        return BlockSets.single(*self.runs.pool(flipped=True))

    @cached_property
    def edges(self) -> Floats:
        low, high = min(self.targets[0], self.impostors[0]), max(self.targets[-1], self.impostors[-1])
        return histogram_edges(low, high, len(self.targets))

    @cached_property
    def histograms(self) -> tuple[Floats, Floats]:
        return bin_counts(self.targets, self.edges), bin_counts(self.impostors, self.edges)

    @cached_property
    def mean_costs(self) -> tuple[float, float]:
        return mean_cost(-self.targets[::-1]), mean_cost(self.impostors)

    def impostor_at(self, place: int) -> float:
        return float(self.impostors[len(self.impostors) - 1 - place])

    def targets_above(self, bound: float) -> int:
        return len(self.targets) - int(np.searchsorted(self.targets, bound, side="right"))


class WeightedSets(ABC):
    """Many sets of scores at once, as weights: resamples, or labels shuffled. One column per set."""

    def __init__(self, targets: Floats, impostors: Floats) -> None:
        """The weight of the targets and of the impostors in each group of scores, which rise (groups x sets)."""
        self.targets, self.impostors = targets, impostors
        self.count = targets.shape[1]
        self._known: dict[ScoreFunction, Floats] = {}

    def of(self, function: ScoreFunction) -> Floats:
        """The values of a measure, computed once."""
        if function not in self._known:
            self._known[function] = function.values(self)
        return self._known[function]

    @cached_property
    def totals(self) -> tuple[Floats, Floats]:
        return self.targets.sum(0), self.impostors.sum(0)

    @cached_property
    def usable(self) -> NDArray[np.intp]:
        """The sets in which both classes have some weight."""
        total_t, total_n = self.totals
        return np.flatnonzero((total_t > 0) & (total_n > 0))

    @cached_property
    def blocks(self) -> BlockSets | None:
        """The blocks of the oracle calibration of the usable sets; None where there are none."""
        if not len(self.usable):
            return None
        of = np.repeat(np.arange(len(self.usable)), len(self.targets))
        t, n = (side[:, self.usable].T.ravel() for side in (self.targets, self.impostors))
        total_t, total_n = self.totals
        return pool_sets(t, n, of, totals=(total_t[self.usable], total_n[self.usable]))

    @cached_property
    def accepted(self) -> tuple[Floats, Floats]:
        """The shares of the targets and of the impostors that are accepted from the top, group by group (the ROC)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            above_t, above_n = (
                np.cumsum(side[::-1], axis=0) / total
                for side, total in zip((self.targets, self.impostors), self.totals, strict=True)
            )
        return above_t, above_n

    @property
    @abstractmethod
    def histograms(self) -> tuple[Floats, Floats]:
        """The weight of the targets and of the impostors in each bin (bins x sets)."""

    @property
    @abstractmethod
    def mean_costs(self) -> tuple[Floats, Floats]:
        """The weighted mean over targets of log(1 + e^-s), and over impostors of log(1 + e^s)."""


def histogram_edges(low: float, high: float, targets: int) -> Floats:
    """The edges of min(T // 10, 100) bins of equal width over the joint range; at least one bin, and a range of width 1
    where all scores are equal (as numpy does)."""
    if not high > low:
        low, high = low - 0.5, high + 0.5
    bins = max(1, min(targets // TARGETS_PER_BIN, 100))
    if high / 2 - low / 2 > np.finfo(np.float64).max / 2:  # the range itself is too large for a float
        return np.asarray(2 * np.linspace(low / 2, high / 2, bins + 1))
    return np.linspace(low, high, bins + 1)


def bin_counts(ordered: Floats, edges: Floats) -> Floats:
    """How many of the rising values are in each bin; the last bin is closed."""
    cuts = np.searchsorted(ordered, edges[:-1], side="left")
    return np.diff(np.append(cuts, len(ordered))).astype(np.float64)


def bin_of(values: Floats, edges: Floats) -> NDArray[np.intp]:
    """The bin of each value; none lies below the edges, and the last bin is closed."""
    return np.searchsorted(edges[1:-1], values, side="right")


def mean_cost(ordered: Floats, chunk: int = 1 << 16) -> float:
    """The mean of softplus over rising values, in pieces that stay in the cache; beyond +-40 it is x or e^x."""
    low, high = (int(i) for i in np.searchsorted(ordered, [-40.0, 40.0]))
    dead = int(np.searchsorted(ordered, -745.0))
    total = float(np.sum(np.exp(ordered[dead:low])))
    for start in range(low, high, chunk):
        total += float(np.sum(softplus(ordered[start : min(start + chunk, high)])))
    top = ordered[high:]
    # scores near the largest float: their mean is a number, their sum is not
    far = float(np.sum(top / len(ordered))) if len(top) and top[-1] > 1e290 else float(np.sum(top)) / len(ordered)
    return total / len(ordered) + far


STRETCHES = 64  # times two files, which every system lets a process open


class _Class:
    """The scores of one class: counts, extremes, the sum of their costs, and one file per stretch."""

    def __init__(self, folder: Path, name: str, sign: float) -> None:
        self.files = [open(folder / f"{name}-{i}", "w+b", buffering=1 << 15) for i in range(STRETCHES)]  # noqa: SIM115
        self.counts = np.zeros(STRETCHES, np.int64)
        self.cost = 0.0
        self.sign = sign
        self.low, self.high = np.inf, -np.inf

    def add(self, values: Floats, edges: Floats) -> None:
        if not len(values):
            return
        ordered = np.sort(values)
        self.low, self.high = min(self.low, ordered[0]), max(self.high, ordered[-1])
        with np.errstate(over="ignore"):
            self.cost += float(np.sum(softplus(self.sign * ordered)))
        cuts = np.concatenate([[0], np.searchsorted(ordered, edges, side="left"), [len(ordered)]])
        for i in np.flatnonzero(np.diff(cuts)):
            self.files[i].write(ordered[cuts[i] : cuts[i + 1]].tobytes())
        self.counts += np.diff(cuts)

    def stretch(self, i: int) -> Floats:
        """The scores of a stretch in rising order."""
        self.files[i].seek(0)
        stored = np.frombuffer(self.files[i].read(), np.float64)
        return np.sort(stored)

    @property
    def total(self) -> int:
        return int(self.counts.sum())

    def close(self) -> None:
        for file in self.files:
            file.close()


class StreamedScores(ScoreSet):
    """Scores on disk: what measures share of them is found in one pass over the stretches."""

    def __init__(self, targets: _Class, impostors: _Class, edges: Floats) -> None:
        super().__init__()
        self._targets, self._impostors, self._edges = targets, impostors, edges
        self.counts = {"targets": targets.total, "impostors": impostors.total}

    @cached_property
    def _pass(self) -> tuple[BlockSets, BlockSets, tuple[Floats, Floats]]:
        """The blocks in both directions, and the histograms."""
        rising, falling = _Blocks(), _Blocks()
        sides = self._targets, self._impostors
        low, high = min(side.low for side in sides), max(side.high for side in sides)
        bins = histogram_edges(low, high, self.counts["targets"])
        bins_t, bins_n = np.zeros(len(bins) - 1), np.zeros(len(bins) - 1)
        for i in range(STRETCHES):
            t, n = (side.stretch(i) for side in sides)
            bins_t += bin_counts(t, bins)
            bins_n += bin_counts(n, bins)
            if len(t) and len(n):
                merged = runs(t, n)
                rising.add(*merged.pool())
                falling.add(*merged.pool(flipped=True), flipped=True)
            elif len(t) or len(n):
                lengths = np.array([float(len(t))]), np.array([float(len(n))])
                rising.add(*lengths)
                falling.add(*lengths, flipped=True)
        return BlockSets.single(rising.t, rising.n), BlockSets.single(falling.t, falling.n), (bins_t, bins_n)

    @property
    def blocks(self) -> BlockSets:
        return self._pass[0]

    @property
    def flipped_blocks(self) -> BlockSets:
        return self._pass[1]

    @property
    def histograms(self) -> tuple[Floats, Floats]:
        return self._pass[2]

    @property
    def mean_costs(self) -> tuple[float, float]:
        return self._targets.cost / self._targets.total, self._impostors.cost / self._impostors.total

    def impostor_at(self, place: int) -> float:
        above = np.cumsum(self._impostors.counts[::-1])[::-1]  # impostors in each stretch and above
        stretch = int(np.flatnonzero(above > place)[-1])
        return float(self._impostors.stretch(stretch)[above[stretch] - 1 - place])

    def targets_above(self, bound: float) -> int:
        stretch = int(np.searchsorted(self._edges, bound, side="right"))
        theirs = self._targets.stretch(stretch)
        higher = int(self._targets.counts[stretch + 1 :].sum())
        return higher + len(theirs) - int(np.searchsorted(theirs, bound, side="right"))


@contextmanager
def stream_scores(
    pieces: Iterable[tuple[Floats, NDArray[np.bool_]]], *, folder: str | Path | None = None
) -> Iterator[StreamedScores]:
    """All scores of these pieces. `folder` is for the temporary files: eight bytes per score."""
    with scratch_folder(folder) as place:
        targets, impostors = _Class(place, "t", -1.0), _Class(place, "n", 1.0)
        try:
            edges = np.empty(0)
            for number, (values, labels) in enumerate(pieces):
                if not number:  # the first piece says where scores are dense; a poor guess costs memory, not truth
                    edges = np.quantile(values, np.linspace(0, 1, STRETCHES + 1)[1:-1], method="lower")
                targets.add(values[labels], edges)
                impostors.add(values[~labels], edges)
            for side, name in ((targets, "target"), (impostors, "impostor")):
                if not side.total:
                    raise InputError(f"there are no {name} trials", fix="a measure needs both classes")
            yield StreamedScores(targets, impostors, edges)
        except OSError as error:
            raise VeilmeterError(
                f"the temporary files can't be kept: {error.strerror or error}",
                path=place,
                fix="they need eight bytes per score; set TMPDIR to a folder with room",
            ) from None
        finally:
            for side in (targets, impostors):
                with suppress(OSError):  # what is left in a buffer may not fit either
                    side.close()


class _Blocks:
    """Blocks so far, in rising order of score; new ones join at the top."""

    def __init__(self) -> None:
        self.t, self.n = np.empty(0), np.empty(0)

    def add(self, t: Floats, n: Floats, *, flipped: bool = False) -> None:
        t, n = np.concatenate([self.t, t]), np.concatenate([self.n, n])
        total = t + n
        starts = pool_starts((n if flipped else t) / total, total)
        self.t, self.n = np.add.reduceat(t, starts), np.add.reduceat(n, starts)
