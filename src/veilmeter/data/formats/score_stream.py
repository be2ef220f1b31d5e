"""Score files too large for memory: their scores and labels piece by piece, nothing kept.

The label is the fourth column, or comes from a key whose lines are in the same order. Repeated pairs are not looked
for: that would need all of them in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.data.formats.columns import PIECE, Faults, WordColumn, rows, text
from veilmeter.data.formats.scores import numbers_of
from veilmeter.data.formats.trials import is_label_first, label_column, labels_of

_NOTHING: Any = ()
Piece = tuple[NDArray[np.float64], NDArray[np.bool_]]


def stream(
    path: str | Path, trials: str | Path | None = None, *, layout: str | None = None, size: int = PIECE
) -> Iterator[Piece]:
    """Scores and whether each is of a target trial, in the file's order."""
    notes = Faults()
    key = None if trials is None else _Key(trials, layout, size)
    for part in rows(path, (3, 4), "a score file", notes, size=size, number=2, coded=False):
        values = numbers_of(path, part, notes)
        notes.raise_first()
        if key is not None:
            labels = key.next(part.columns[0], part.columns[1], path, int(part.lines[0]))
        elif len(part.columns) == 4:
            labels, good = labels_of(part.columns[3])
            if not good.all():
                bad = int(np.argmin(good))
                raise InputError(
                    f"the fourth column is {text(part.columns[3][bad])[:60]!r}, not target or nontarget",
                    path=path,
                    line=int(part.lines[bad]),
                )
        else:
            raise InputError(
                "nothing says which trials are of one speaker",
                path=path,
                fix="give the trial key with --trials, or scores with a fourth column target/nontarget",
            )
        yield values, labels
    notes.raise_first()
    if key is not None:
        key.finish()


class _Key:
    """A trial key read along with its scores."""

    def __init__(self, path: str | Path, layout: str | None, size: int) -> None:
        self.path = path
        self.notes = Faults()
        self.parts = rows(path, (3,), "a trial key", self.notes, size=size, coded=False)
        self.first = is_label_first(layout)
        self.enrol, self.test = _NOTHING, _NOTHING
        self.labels = np.empty(0, bool)

    def next(self, enrol: WordColumn, test: WordColumn, path: str | Path, line: int) -> NDArray[np.bool_]:
        """The labels of the next trials, which must be these."""
        count = len(enrol)
        while len(self.labels) < count and self._more():
            pass
        at = self._first_difference(enrol.words(), test.words())
        if at < count:
            raise InputError(
                f"from here on the key {self.path} does not have the same trials in the same order",
                path=path,
                line=line + at,
                fix="sort both files alike (LC_ALL=C sort), or measure without --stream",
            )
        labels = self.labels[:count]
        self.enrol, self.test, self.labels = self.enrol[count:], self.test[count:], self.labels[count:]
        return labels

    def _first_difference(self, enrol: Any, test: Any) -> int:
        """The first row in which the two files differ, or how many there are."""
        import pyarrow.compute as pc

        count = min(len(enrol), len(self.labels))
        same = np.ones(count, bool)
        for mine, other in ((self.enrol, enrol), (self.test, test)):
            if count:
                same &= pc.equal(mine[:count], other[:count]).to_numpy(zero_copy_only=False)
        return count if same.all() else int(np.argmin(same))

    def _more(self) -> bool:
        part = next(self.parts, None)
        self.notes.raise_first()
        if part is None:
            return False
        if self.first is None:
            self.first = label_column(self.path, part)
        column, a, b = (0, 1, 2) if self.first else (2, 0, 1)
        labels, good = labels_of(part.columns[column])
        if not good.all():
            bad = int(np.argmin(good))
            word = text(part.columns[column][bad])[:60]
            raise InputError(
                f"the label is {word!r}, not target or nontarget", path=self.path, line=int(part.lines[bad])
            )
        self.enrol = _joined(self.enrol, part.columns[a].words())
        self.test = _joined(self.test, part.columns[b].words())
        self.labels = np.concatenate([self.labels, labels])
        return True

    def finish(self) -> None:
        if len(self.labels) or self._more():
            raise InputError(
                "the key has more trials than there are scores", path=self.path, fix="is it the right key?"
            )


def _joined(first: Any, second: Any) -> Any:
    import pyarrow as pa

    return pa.concat_arrays([first, second]) if len(first) else second
