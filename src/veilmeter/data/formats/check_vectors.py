"""Checks a file or folder of vectors: what can be used of it, and every vector that can't."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

from veilmeter.core.errors import Problem
from veilmeter.data.checks import Checked
from veilmeter.data.formats.vectors import check_embeddings, is_embeddings

_FIRST = 5  # places named of each kind of problem


def check(path: Path) -> Checked | None:
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
    return Checked("embeddings", summary, [*_shortened(problems), *remarks], facts)


def _shortened(problems: list[Problem]) -> list[Problem]:
    """The first few of each kind, the last of them with how many more there are."""
    counts = Counter(problem.kind for problem in problems)
    seen: Counter[str] = Counter()
    kept = []
    for problem in problems:
        seen[problem.kind] += 1
        if seen[problem.kind] < _FIRST or counts[problem.kind] == _FIRST:
            kept.append(problem)
        elif seen[problem.kind] == _FIRST:
            more = counts[problem.kind] - _FIRST
            kept.append(replace(problem, what=f"{problem.what}, and {more} more of that sort"))
    return kept
