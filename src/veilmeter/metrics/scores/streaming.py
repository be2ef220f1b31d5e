"""All score measures of more scores than fit into memory, exactly.

Scores are dealt by value into files on disk, each a stretch of the score axis; afterwards each stretch is sorted and
calibrated by itself, from low to high, and its blocks join those below: pooling adjacent violators may start from
blocks as well as from trials. Memory is bounded by the largest stretch and by the number of blocks.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.metrics.calibration import Pav, pool_starts, runs, softplus
from veilmeter.metrics.scores import verification, zebra
from veilmeter.metrics.scores.blocks import page_of

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


def measure_stream(
    pieces: Iterable[tuple[Floats, NDArray[np.bool_]]], *, folder: str | Path | None = None
) -> tuple[dict[str, float], dict[str, int], float]:
    """The value of every measure, the counts, and D_ECE with the sign flipped. `folder` is for the files on the way:
    eight bytes a score."""
    with tempfile.TemporaryDirectory(prefix="veilmeter-", dir=folder) as place:
        targets, impostors = _Class(Path(place), "t", -1.0), _Class(Path(place), "n", 1.0)
        try:
            edges = None
            for values, labels in pieces:
                if edges is None:  # the first piece says where scores are dense; a poor guess costs memory, not truth
                    edges = np.quantile(values, np.linspace(0, 1, STRETCHES + 1)[1:-1], method="lower")
                targets.add(values[labels], edges)
                impostors.add(values[~labels], edges)
            for side, name in ((targets, "target"), (impostors, "impostor")):
                if not side.total:
                    raise InputError(f"there are no {name} trials", fix="a measure needs both classes")
            return _measured(targets, impostors)
        except OSError as error:
            raise VeilmeterError(
                f"the temporary files can't be kept: {error.strerror or error}",
                path=place,
                fix="they need eight bytes a score; set TMPDIR to a folder with room",
            ) from None
        finally:
            for side in (targets, impostors):
                with suppress(OSError):  # what is left in a buffer may not fit either
                    side.close()


def _measured(targets: _Class, impostors: _Class) -> tuple[dict[str, float], dict[str, int], float]:
    total_t, total_n = targets.total, impostors.total
    rising, falling = _Blocks(), _Blocks()
    low, high = np.array([min(targets.low, impostors.low)]), np.array([max(targets.high, impostors.high)])
    edges = verification.d_sys_edges(low, high, count=total_t)
    bins_t, bins_n = np.zeros(len(edges) - 1), np.zeros(len(edges) - 1)
    above = dict.fromkeys(verification.LOW_FPRS, 0)
    left_n = np.append(np.cumsum(impostors.counts[::-1])[::-1], 0)  # impostors in this stretch and above
    for i in range(STRETCHES):
        t, n = targets.stretch(i), impostors.stretch(i)
        bins_t += verification.binned(t, edges)
        bins_n += verification.binned(n, edges)
        for fpr in above:
            allowed = int(np.floor(fpr * total_n + 1e-9)) - int(left_n[i + 1])
            if allowed >= len(n):  # all impostors from here on may be accepted
                above[fpr] += len(t)
            elif allowed >= 0:
                above[fpr] += len(t) - int(np.searchsorted(t, n[len(n) - 1 - allowed], side="right"))
        if len(t) and len(n):
            merged = runs(t, n)
            rising.add(*merged.pooled())
            falling.add(*merged.pooled(flipped=True), flipped=True)
        elif len(t) or len(n):
            lengths = np.array([float(len(t))]), np.array([float(len(n))])
            rising.add(*lengths)
            falling.add(*lengths, flipped=True)
    nothing = np.zeros(len(rising.t))
    blocks = Pav(nothing, nothing, rising.t, rising.n, float(total_t), float(total_n))
    cllr = (targets.cost / total_t + impostors.cost / total_n) / (2 * float(np.log(2)))
    values = page_of(
        blocks,
        cllr=cllr,
        d_sys=float(verification.d_sys_of_counts(bins_t, bins_n)),
        low={verification.tpr_name(fpr): 100 * count / total_t for fpr, count in above.items()},
    )
    return values, {"targets": total_t, "impostors": total_n}, zebra.d_ece_of_counts(falling.t, falling.n)


class _Blocks:
    """Blocks so far, in rising order of score; new ones join at the top."""

    def __init__(self) -> None:
        self.t, self.n = np.empty(0), np.empty(0)

    def add(self, t: Floats, n: Floats, *, flipped: bool = False) -> None:
        t, n = np.concatenate([self.t, t]), np.concatenate([self.n, n])
        total = t + n
        starts = pool_starts((n if flipped else t) / total, total)
        self.t, self.n = np.add.reduceat(t, starts), np.add.reduceat(n, starts)
