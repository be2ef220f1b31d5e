"""What is wrong with an input: every kind of file or folder has one function that knows it and lists its problems.

A checker is a module with a function `check(path) -> Checked | None`; None means "this is not mine". They are asked in
the order of `CHECKERS` and imported only then. To check a further kind of input, add a module and its name here.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError, Problem, VeilmeterError

CHECKERS = (
    "veilmeter.data.formats.check_vectors",
    "veilmeter.data.formats.check_scores",
    "veilmeter.speech.check_corpus",
)


@dataclass(frozen=True, slots=True)
class Checked:
    """What an input is (`kind`: "score file", "corpus"...), what is in it in a few words, its problems, and, for the
    JSON, what is in it in numbers."""

    kind: str
    summary: str
    problems: Sequence[Problem] = field(default_factory=tuple)
    facts: Mapping[str, Any] = field(default_factory=dict)

    @property
    def usable(self) -> bool:
        return not any(problem.fatal for problem in self.problems)


def check(path: str | Path) -> Checked:
    """All problems of a file or folder, whatever it is; an error if nobody knows what it is."""
    place = Path(path)
    try:
        there = place.exists()
    except (OSError, ValueError):
        there = False
    if not there:
        raise InputError("there is no such file or folder", path=path)
    for name in CHECKERS:
        try:
            checker = importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name != name:
                raise
            continue
        try:
            checked: Checked | None = checker.check(place)
        except VeilmeterError as error:  # what a reader can't get past is a problem of the file, too
            checked = Checked("unreadable", "", [Problem("unreadable", error.what, error.path or str(path), error.line,
                                                       error.fix or "")])  # fmt: skip
        if checked is not None:
            return checked
    raise InputError(
        "this is nothing veilmeter knows",
        path=path,
        fix="it reads score files, trial keys, embeddings (npz, h5, Kaldi ark/scp, Parquet) and corpora",
    )
