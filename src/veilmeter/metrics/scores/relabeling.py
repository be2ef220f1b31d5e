"""Who is who, dealt anew: target trials as they would be if every enrolled person were somebody else of the test.

Trials of one pair of speakers share what these two voices share. Shuffling trials one by one tears such cells apart and
makes chance look narrower than it is; here whole cells change places, so that what speakers share stays together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from veilmeter.data.scores import Scores, present
from veilmeter.metrics.calibration import run_starts

Codes = NDArray[np.int64]
LEAST_SPEAKERS = 5  # tested; fewer can't be dealt in enough ways
LEAST_SHARE = 0.8  # of the target trials that a relabeling must have: impostor trials may have been thinned out


class Relabeling(Protocol):
    """Can say which trials were target trials if everybody enrolled were another, randomly chosen test speaker."""

    def draw(self, rng: np.random.Generator) -> NDArray[np.intp]: ...


@dataclass(frozen=True, eq=False)
class MatrixRelabeling:
    """Trials that are a whole matrix, row by row. `enrolled` are the people in the order of their codes, `rows` theirs;
    `columns` are the test recordings by speaker, each speaker's from `starts` on, `counts` many."""

    enrolled: Codes
    rows: Codes
    tested: Codes
    columns: Codes
    starts: Codes
    counts: Codes
    targets: int

    def draw(self, rng: np.random.Generator) -> NDArray[np.intp]:
        partners = deal_partners(self.enrolled, self.tested, rng)
        sizes = self.counts[partners]
        ends = np.cumsum(sizes)
        at = np.repeat(self.starts[partners] - (ends - sizes), sizes) + np.arange(ends[-1])
        chosen = np.repeat(self.rows[: len(partners)] * len(self.columns), sizes) + self.columns[at]
        return rng.choice(chosen, self.targets, replace=False) if len(chosen) > self.targets else chosen


def _of_matrix(rows: NDArray[np.integer], columns: NDArray[np.integer]) -> MatrixRelabeling | None:
    """As `relabeling` of all trials of a matrix with these speakers; None where a cell is not a person's row."""
    width = int(max(rows.max(), columns.max())) + 1
    counts = np.bincount(columns, minlength=width)
    order = np.argsort(rows, kind="stable")
    order = order[counts[rows[order]] > 0]
    enrolled, tested = rows[order].astype(np.int64), np.flatnonzero(counts)
    if len(np.unique(rows)) < len(rows) or len(tested) < LEAST_SPEAKERS:
        return None
    targets = int(counts[enrolled].sum())
    expected = float(np.sum((len(columns) - counts[enrolled]) / (len(tested) - 1)))
    if expected < LEAST_SHARE * targets:
        return None
    by_speaker = np.argsort(columns, kind="stable")
    return MatrixRelabeling(
        enrolled, order.astype(np.int64), tested, by_speaker, np.cumsum(counts) - counts, counts, targets
    )


@dataclass(frozen=True, eq=False)
class CellRelabeling:
    """Trials in cells of one enrolled and one test speaker; `groups` are enrolled speakers with the same test speakers.

    `rows` are the trials in the order of the cells, whose keys (enrolled x `width` + test) rise; `targets` is how many
    target trials there really are.
    """

    rows: NDArray[np.intp]
    keys: Codes
    starts: Codes
    sizes: Codes
    width: int
    groups: tuple[tuple[Codes, Codes], ...]
    targets: int

    def draw(self, rng: np.random.Generator) -> NDArray[np.intp]:
        """The trials that were target trials if everybody enrolled were another, randomly chosen test speaker."""
        used = np.zeros(self.width, bool)
        wanted = []
        for enrolled, tested in self.groups:
            partners = deal_partners(enrolled, tested[~used[tested]], rng)
            used[partners] = True
            wanted.append(enrolled[: len(partners)] * self.width + partners)
        cells = np.searchsorted(self.keys, np.concatenate(wanted))
        sizes = self.sizes[cells]
        ends = np.cumsum(sizes)
        chosen = self.rows[np.repeat(self.starts[cells] - (ends - sizes), sizes) + np.arange(ends[-1])]
        return rng.choice(chosen, self.targets, replace=False) if len(chosen) > self.targets else chosen


def deal_partners(people: Codes, partners: Codes, rng: np.random.Generator) -> Codes:
    """A different partner for each of the people in turn, nobody themselves; fewer where there are not enough.

    >>> rng = np.random.default_rng(0)
    >>> deal_partners(np.arange(3), np.arange(3), rng).tolist() in ([1, 2, 0], [2, 0, 1])
    True
    """
    order = rng.permutation(partners)
    pairs = min(len(people), len(order))
    for i in np.flatnonzero(order[:pairs] == people[:pairs]):
        if order[i] == people[i]:  # an earlier exchange may have helped
            # Whoever gets this one isn't this person; whatever comes instead isn't this partner.
            others = np.flatnonzero(np.arange(len(order)) != i)
            if not len(others):
                return order[:0]
            j = int(rng.choice(others))
            order[i], order[j] = order[j], order[i]
    return order[: len(people)]


def relabeling(scores: Scores) -> Relabeling | None:
    """How the trials can be dealt anew; None where speakers aren't known, are too few, or hardly meet any other."""
    if scores.grid is not None and (of_matrix := _of_matrix(*scores.grid)) is not None:
        return of_matrix
    enrol, test = scores.enrol_speaker, scores.test_speaker
    if enrol is None or test is None or not np.array_equal(enrol == test, scores.is_target):
        return None
    people = present(enrol[scores.is_target])
    width = int(max(enrol.max(), test.max())) + 1
    mine = np.zeros(width, bool)
    mine[people] = True
    rows = np.flatnonzero(mine[enrol])
    key = enrol[rows] * np.int64(width) + test[rows]
    if (key[1:] < key[:-1]).any():
        order = np.argsort(key, kind="stable")
        rows, key = rows[order], key[order]
    starts = run_starts(key)
    keys, sizes = key[starts], np.diff(starts, append=len(key))
    groups = _groups(keys, width)
    own = keys // width == keys % width
    if len(present(keys % width)) < LEAST_SPEAKERS or sum(len(tested) - 1 for _, tested in groups) < len(groups):
        return None
    targets = int(sizes[own].sum())
    others = np.bincount(keys // width, np.where(own, 0, sizes), width)[people]
    cells = np.bincount(keys // width, ~own, width)[people]
    expected = float(np.sum(others / np.maximum(cells, 1)))
    if expected < LEAST_SHARE * targets:
        return None
    return CellRelabeling(rows, keys, starts, sizes, width, groups, targets)


def _groups(keys: Codes, width: int) -> tuple[tuple[Codes, Codes], ...]:
    """Enrolled speakers who meet the same test speakers, and these."""
    starts = np.flatnonzero(np.diff(keys // width, prepend=-1))
    alike: dict[bytes, tuple[list[int], Codes]] = {}
    for cells in np.split(keys, starts[1:]):
        tested = cells % width
        alike.setdefault(tested.tobytes(), ([], tested))[0].append(int(cells[0] // width))
    return tuple((np.array(enrolled), tested) for enrolled, tested in alike.values())
