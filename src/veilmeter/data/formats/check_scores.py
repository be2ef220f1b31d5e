"""Checks score files and trial keys, alone or together: all problems at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from veilmeter.core.errors import InputError, Problem
from veilmeter.data.checks import Checked
from veilmeter.data.formats.columns import Codes, Faults, pieces
from veilmeter.data.formats.scores import join, read_score_table, repeats, speakers
from veilmeter.data.formats.trials import LABELS, read_trials

FIRST = 1 << 16


def check(path: Path) -> Checked | None:
    """The problems of a score file or a trial key; None if the file is neither."""
    if not path.is_file():
        return None
    kind = recognize(path)
    if kind == "scores":
        return check_scores(path)
    if kind == "trials":
        return check_trials(path)
    if kind == "empty":
        return Checked("empty file", "", [Problem("empty", "the file is empty", str(path))])
    return None


def recognize(path: Path) -> str | None:
    """`scores`, `trials` or `empty`, by the first lines; None if it is something else."""
    try:
        piece = next(pieces(path, size=FIRST), None)
    except InputError:
        return None
    if piece is None or not len(piece.tokens):
        return "empty"
    widths = piece.per_line[piece.per_line > 0]
    common = int(np.bincount(widths).argmax())
    if common not in (3, 4):
        return None
    ends = np.cumsum(widths)
    lines = [piece.tokens[end - width : end] for end, width in zip(ends, widths, strict=True) if width == common]
    numbers = sum(_is_number(line[2]) for line in lines) / len(lines)
    first, last = (sum(line[i].lower() in LABELS for line in lines) / len(lines) for i in (0, -1))
    if common == 4:
        return "scores" if numbers > 0.5 and last > 0.5 else None
    if last > 0.5:
        return "trials"
    if numbers > 0.5:
        return "scores"
    return "trials" if first > 0.5 else None


def _is_number(token: bytes) -> bool:
    try:
        float(token)
    except ValueError:
        return False
    return True


def check_scores(path: str | Path, *, trials: str | Path | None = None, layout: str | None = None) -> Checked:
    """The problems of a score file and, with its key, of their match."""
    notes, codes = Faults(), Codes()
    table = read_score_table(path, codes=codes, findings=notes)
    summary = f"{len(table):,} scores"
    if not len(table):
        return Checked("score file", summary, notes.problems())
    summary += f" from {table.values.min():g} to {table.values.max():g}"
    key = None if trials is None else read_trials(trials, layout=layout, codes=codes, findings=notes)
    if key is not None or table.is_target is not None:
        _, truth = join(table, key, codes, notes)
        summary += f", {int(truth.sum()):,} of target and {int((~truth).sum()):,} of impostor trials"
    else:
        repeats(table.enrol, table.test, table.values, table.path, table.lines, codes, notes, "score")
    return Checked("score file", summary, notes.problems())


def check_trials(path: str | Path, *, layout: str | None = None) -> Checked:
    """The problems of a trial key."""
    notes, codes = Faults(), Codes()
    table = read_trials(path, layout=layout, codes=codes, findings=notes)
    targets = int(table.is_target.sum())
    summary = f"{targets:,} target and {len(table) - targets:,} impostor trials"
    if len(table):
        repeats(table.enrol, table.test, table.is_target, table.path, table.lines, codes, notes, "trial")
        _, person, _ = speakers(table.enrol, table.test, table.is_target, codes, None, notes)
        summary += f", label {'first' if table.label_first else 'last'}"
        odd = np.flatnonzero((person[table.enrol] == person[table.test]) & ~table.is_target)
        notes.add(
            "same-speaker-impostor",
            "by the target trials both sides are the same speaker, yet the trial is nontarget",
            path,
            [int(table.lines[i]) for i in odd[: notes.shown]],
            count=len(odd),
            fatal=False,
        )
    return Checked("trial key", summary, notes.problems())
