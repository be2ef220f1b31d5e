"""All score measures of more scores than fit into memory, exactly.

Scores are distributed by value over files on disk, each a stretch of the score axis; afterwards each stretch is sorted
and calibrated by itself, from low to high, and its blocks join those below: pooling adjacent violators may start from
blocks as well as from trials. Memory is bounded by the largest stretch and by the number of blocks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.metrics.calibration import pool_starts, runs, softplus
from veilmeter.metrics.scores.blocks import BlockSets
from veilmeter.metrics.scores.forms import ScoreSet, bin_counts, histogram_edges

Floats = NDArray[np.float64]
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
def streamed_scores(
    pieces: Iterable[tuple[Floats, NDArray[np.bool_]]], *, folder: str | Path | None = None
) -> Iterator[StreamedScores]:
    """All scores of these pieces. `folder` is for the temporary files: eight bytes per score."""
    with tempfile.TemporaryDirectory(prefix="veilmeter-", dir=folder) as place:
        targets, impostors = _Class(Path(place), "t", -1.0), _Class(Path(place), "n", 1.0)
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
