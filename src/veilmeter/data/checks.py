"""Problems of an input, all at once: embeddings, score files and trial keys, alone or together.

`check` asks one function per kind of input; None means that it is not of that kind.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from veilmeter.core.errors import InputError, Problem, VeilmeterError
from veilmeter.data.formats.column_roles import LABELS, columns_of_header, columns_of_lines, is_number
from veilmeter.data.formats.columns import Codes, Faults, pieces
from veilmeter.data.formats.scores import join, read_score_table, repeats, speakers
from veilmeter.data.formats.trials import read_trials
from veilmeter.data.formats.vectors import check_embeddings, is_embeddings

PLACES = 5  # named for each kind of problem
BEGINNING = 1 << 16  # bytes by which a text file is recognized
CORPUS_CHECKER = "veilmeter.speech.check_corpus"  # by name: it reads audio, which this package does not know of


@dataclass(frozen=True, slots=True)
class Checked:
    """An input as `check` reports it: its `kind` ("score file", "corpus"...), its content in a few words, its problems,
    and, for the JSON, its content in numbers. `rest` is the number of recordings of a corpus that can be used: every
    command leaves the others out."""

    kind: str
    summary: str
    problems: Sequence[Problem] = field(default_factory=tuple)
    facts: Mapping[str, Any] = field(default_factory=dict)
    rest: int = 0

    @property
    def usable(self) -> bool:
        return bool(self.rest) or not self.is_broken

    @property
    def is_broken(self) -> bool:
        """Whether something of it can't be used."""
        return any(problem.fatal for problem in self.problems)


def check(path: str | Path) -> Checked:
    """All problems of a file or folder, whatever it is; an error if its kind is unknown."""
    place = Path(path)
    try:
        there = place.exists()
    except (OSError, ValueError):
        there = False
    if not there:
        raise InputError("there is no such file or folder", path=path)
    for checker in (check_vectors, check_text, _check_corpus):
        try:
            checked = checker(place)
        except VeilmeterError as error:  # what a reader can't get past is a problem of the file, too
            checked = Checked("unreadable", "", [Problem("unreadable", error.what, error.path or str(path), error.line,
                                                       error.fix or "")])  # fmt: skip
        if checked is not None:
            return checked
    raise InputError(
        "unknown kind of input",
        path=path,
        fix="veilmeter reads score files, trial keys, embeddings (npz, h5, Kaldi ark/scp, Parquet) and corpora",
    )


def _check_corpus(path: Path) -> Checked | None:
    checked: Checked | None = importlib.import_module(CORPUS_CHECKER).check(path)
    return checked


def check_vectors(path: Path) -> Checked | None:
    """The problems of embeddings with their counts; None if it is none."""
    if not is_embeddings(path):
        return None
    embeddings, problems = check_embeddings(path)
    if embeddings is None:
        return Checked("embeddings", "nothing usable", problems)
    sizes = np.bincount(embeddings.codes)
    remarks = []
    alone = [embeddings.names[code] for code in np.flatnonzero(sizes < 2)]
    if alone:
        what = f"{len(alone)} speakers have a single utterance, such as {alone[0]!r}"
        fix = "similarity matrices leave them out"
        remarks.append(Problem("single-utterance", what, str(path), fix=fix, fatal=False))
    if len(embeddings.names) < 2:
        remarks.append(Problem("one-speaker", "there is only one speaker", str(path), fix="add others", fatal=True))
    facts = {
        "utterances": len(embeddings),
        "speakers": len(embeddings.names),
        "dimension": embeddings.dimension,
        "columns": sorted(embeddings.attributes),
        "durations": embeddings.durations is not None,
        "problems": dict(Counter(problem.kind for problem in problems)),
    }
    columns = f", with {', '.join(sorted(embeddings.attributes))}" if embeddings.attributes else ""
    summary = f"{len(embeddings):,} vectors of {len(embeddings.names):,} speakers, {embeddings.dimension}-d{columns}"
    return Checked("embeddings", summary, [*_shorten(problems), *remarks], facts)


def _shorten(problems: list[Problem]) -> list[Problem]:
    """The first few of each kind, the last of them with how many more there are."""
    counts = Counter(problem.kind for problem in problems)
    seen: Counter[str] = Counter()
    kept = []
    for problem in problems:
        seen[problem.kind] += 1
        if seen[problem.kind] < PLACES or counts[problem.kind] == PLACES:
            kept.append(problem)
        elif seen[problem.kind] == PLACES:
            more = counts[problem.kind] - PLACES
            kept.append(replace(problem, what=f"{problem.what}, and {more} more of that sort"))
    return kept


def check_text(path: Path) -> Checked | None:
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
        piece = next(pieces(path, size=BEGINNING), None)
    except InputError:
        return None
    if piece is None or not len(piece.tokens):
        return "empty"
    widths = piece.per_line[piece.per_line > 0]
    names = piece.tokens[: widths[0]]
    if columns_of_header(names, of_scores=True) or columns_of_header(names, of_scores=False):
        return "scores" if columns_of_header(names, of_scores=True) else "trials"
    common = int(np.bincount(widths).argmax())
    if common not in (3, 4) or path.suffix.lower() == ".csv":  # a list of recordings may look like one, too
        return None
    ends = np.cumsum(widths)
    lines = [piece.tokens[end - width : end] for end, width in zip(ends, widths, strict=True) if width == common]
    if common == 4:
        return "scores" if columns_of_lines(lines) is not None else None
    numbers = sum(is_number(line[2]) for line in lines) / len(lines)
    first, last = (sum(line[i].lower() in LABELS for line in lines) / len(lines) for i in (0, -1))
    if last > 0.5:
        return "trials"
    if numbers > 0.5:
        return "scores"
    if first > 0.5:
        return "trials"
    return "scores" if sum(is_number(line[0]) for line in lines) > 0.5 * len(lines) else None


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
        repeats(table.enroll, table.test, table.values, table.path, table.lines, codes, notes, "score")
    return Checked("score file", summary, notes.problems())


def check_trials(path: str | Path, *, layout: str | None = None) -> Checked:
    """The problems of a trial key."""
    notes, codes = Faults(), Codes()
    table = read_trials(path, layout=layout, codes=codes, findings=notes)
    targets = int(table.is_target.sum())
    summary = f"{targets:,} target and {len(table) - targets:,} impostor trials"
    if len(table):
        repeats(table.enroll, table.test, table.is_target, table.path, table.lines, codes, notes, "trial")
        _, person, _ = speakers(table.enroll, table.test, table.is_target, codes, None, notes)
        summary += f", label {'first' if table.label_first else 'last'}"
        odd = np.flatnonzero((person[table.enroll] == person[table.test]) & ~table.is_target)
        notes.add(
            "same-speaker-impostor",
            "by the target trials both sides are the same speaker, yet the trial is nontarget",
            path,
            [int(table.lines[i]) for i in odd[: notes.shown]],
            count=len(odd),
            fatal=False,
        )
    return Checked("trial key", summary, notes.problems())
