"""Trial keys: which comparisons are of one speaker. Three layouts, recognized by where the labels are.

    vpc        121 121-123852-0000 target                     enrollment speaker, test utterance, label
    pairs      id10001/a/1.wav id10001/b/1.wav target         two utterances, label
    voxceleb   1 id10001/a/1.wav id10001/b/1.wav              label, two utterances

A header line with the names of columns, as in the keys of NIST SRE, settles it as well (`column_roles.py`).

`vpc` and `pairs` look the same to a reader: the first column is an id, whatever it names. A file whose first and last
column could both be labels is ambiguous, and an error says which option settles it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.data.formats.column_roles import LABELS, key_rows
from veilmeter.data.formats.columns import PIECE, Codes, Faults, LineColumns, WordColumn, text

LAYOUTS = ("vpc", "pairs", "voxceleb")


@dataclass(frozen=True, eq=False, slots=True)
class TrialTable:
    """A key's trials: ids as codes, labels, and the line of each."""

    path: str
    enroll: NDArray[np.int32]
    test: NDArray[np.int32]
    is_target: NDArray[np.bool_]
    lines: NDArray[np.int64]
    label_first: bool

    def __len__(self) -> int:
        return len(self.is_target)


def is_label_first(layout: str | None) -> bool | None:
    """The label's column in a layout; None where that is to be recognized.

    >>> is_label_first("voxceleb"), is_label_first("vpc"), is_label_first(None)
    (True, False, None)
    """
    if layout is not None and layout not in LAYOUTS:
        raise InputError(f"unknown layout {layout!r}", fix=f"choose among {', '.join(LAYOUTS)}")
    return None if layout is None else layout == "voxceleb"


def read_trials(
    path: str | Path, *, layout: str | None = None, codes: Codes | None = None, findings: Faults | None = None
) -> TrialTable:
    """A trial key. Without `findings` the first fault is an error; with them faults are collected and lines skipped."""
    ids = Codes() if codes is None else codes
    notes = Faults() if findings is None else findings
    label_first = is_label_first(layout)
    enroll: list[NDArray[Any]] = []
    test: list[NDArray[Any]] = []
    labels: list[NDArray[Any]] = []
    lines: list[NDArray[Any]] = []
    for part in key_rows(path, notes, size=PIECE):
        if label_first is None:
            label_first = label_column(path, part)
        column, a, b = (0, 1, 2) if label_first else (2, 0, 1)
        truth, good = labels_of(part.columns[column])
        if not good.all():
            _add_bad_labels(notes, path, part, column, good)
        kept = np.flatnonzero(good)
        enroll.append(ids.encode(part.columns[a])[kept])
        test.append(ids.encode(part.columns[b])[kept])
        labels.append(truth[kept])
        lines.append(part.lines[kept])
    if findings is None:
        notes.raise_first()
    table = TrialTable(
        str(path),
        _concatenate(enroll, np.int32),
        _concatenate(test, np.int32),
        _concatenate(labels, np.bool_),
        _concatenate(lines, np.int64),
        bool(label_first),
    )
    if len(table) and (table.is_target.all() or not table.is_target.any()):
        kind = "target" if table.is_target.all() else "nontarget"
        notes.add(
            "one-class", f"all {len(table):,} trials are {kind}", path, fix="a measure needs trials of both classes"
        )
        if findings is None:
            notes.raise_first()
    return table


def _concatenate(parts: list[NDArray[Any]], dtype: type[np.generic]) -> NDArray[Any]:
    return np.concatenate(parts) if parts else np.empty(0, dtype)


def labels_of(column: WordColumn) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """The labels' values, and which of them are valid."""
    words, index = column.distinct()
    meant = [LABELS.get(word.lower()) for word in words]
    truth = np.array([bool(label) for label in meant], bool)[index]
    return truth, np.array([label is not None for label in meant], bool)[index]


def label_column(path: str | Path, part: LineColumns) -> bool:
    """Whether the label comes first; the columns that a header names are in order already."""
    shares = [float(labels_of(part.columns[column])[1].mean()) for column in (0, 2)]
    if shares[0] == shares[1] == 1.0:
        raise InputError(
            "both the first and the last column could be the label",
            path=path,
            line=int(part.lines[0]),
            fix="say which: --layout voxceleb (label first), --layout vpc or --layout pairs (label last)",
        )
    if max(shares) < 0.5:
        first = text(part.columns[2][0])
        raise InputError(
            f"neither the first nor the last column is a label (target, nontarget, 1 or 0); line {int(part.lines[0])} "
            f"ends in {first[:60]!r}",
            path=path,
            line=int(part.lines[0]),
            fix="a trial key has lines such as `121 121-123852-0000 target` or `1 a.wav b.wav`",
        )
    return shares[0] > shares[1]


def _add_bad_labels(notes: Faults, path: str | Path, part: LineColumns, column: int, good: NDArray[np.bool_]) -> None:
    bad = np.flatnonzero(~good)
    first = bad[: notes.shown]
    notes.add(
        "bad-label",
        "the label is none of target, nontarget, 1 and 0",
        path,
        [int(part.lines[i]) for i in first],
        count=len(bad),
        details=[f"{text(part.columns[column][i])[:60]!r}" for i in first],
        fix="fix the label or remove the line",
    )
