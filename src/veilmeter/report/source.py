"""The subject of a report: results in memory or of a run folder, the similarity matrices, and the day."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from veilmeter.results.model import Results
from veilmeter.results.run_folder import MATRICES, Matrices, read_matrices, read_results, table_of

if TYPE_CHECKING:
    from veilmeter.assessment import Assessment

Subject: TypeAlias = "str | Path | Results | Assessment"
DAY = 10  # characters of a time that name the day


@dataclass(frozen=True, eq=False, kw_only=True)
class Reported:
    """`folder` is where the run lies, if anywhere; `created` the day on which it was made, if that is known."""

    results: Results
    matrices: Matrices | None = None
    folder: Path | None = None
    created: str = ""


def reported(subject: Subject) -> Reported:
    """A run folder is read. An assessment in memory is taken as it is, and nothing of its folder is read again."""
    if isinstance(subject, Results):
        return Reported(results=subject)
    if not isinstance(subject, str | Path):
        created = subject.created[:DAY]
        return Reported(results=subject.results, matrices=subject.matrices, folder=subject.folder, created=created)
    folder = Path(subject)
    if folder.is_file():
        folder = folder.parent
    results = read_results(folder)
    path = table_of(folder, results, MATRICES)
    matrices = None if path is None else read_matrices(path)
    return Reported(results=results, matrices=matrices, folder=folder, created=_day(folder))


def _day(folder: Path) -> str:
    with suppress(OSError, ValueError, AttributeError, RecursionError):  # the page does without the day
        return str(json.loads((folder / "timings.json").read_text(encoding="utf-8")).get("created", ""))[:DAY]
    return ""
