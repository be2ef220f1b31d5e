"""The attacker's own data as arrays: candidates' originals and copies, by utterance, by one extractor or more.

Nothing of the released recordings is in here: whatever is chosen on `OwnData` is chosen without looking at them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.material import AttackerRun, DrawLevel, Floats, Material, OtherPeople, Rows
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings


@dataclass(frozen=True, eq=False)
class OtherCopies:
    """Other people's originals and copies, row by row: `originals[i]` was anonymized to `copies[i]`."""

    originals: Floats
    copies: Floats
    speakers: Rows


@dataclass(frozen=True, eq=False)
class View:
    """What one extractor hears: originals, one array of copies per run (in the order of the originals), others."""

    originals: Floats
    copies: tuple[Floats, ...]
    others: OtherCopies | None = None
    comparable: bool = True  # whether originals and copies are of one dimension, so that they can be compared as such
    seen: bool = False  # whether the extractor was trained on the copies: then they are no test of anything


@dataclass(frozen=True, eq=False)
class OwnData:
    """Utterances with the candidate each belongs to, the draw level of each run, and which copies there are.

    `present[r, i]` says whether run r holds a copy of utterance i; other rows of its copies are zero.
    """

    candidates: int
    labels: Rows
    draws: tuple[DrawLevel, ...]
    present: NDArray[np.bool_]
    views: tuple[View, ...]

    @property
    def runs(self) -> range:
        return range(len(self.draws))

    @property
    def has_others(self) -> bool:
        """Whether every extractor heard other people's originals and copies."""
        return bool(self.views) and all(view.others is not None for view in self.views)

    def with_runs(self, kept: Sequence[int]) -> OwnData:
        """With some of the runs only."""
        views = tuple(replace(view, copies=tuple(view.copies[run] for run in kept)) for view in self.views)
        return replace(
            self, draws=tuple(self.draws[run] for run in kept), present=self.present[list(kept)], views=views
        )

    def with_rows(self, kept: NDArray[np.bool_]) -> OwnData:
        """With some of the utterances only; every candidate must keep one."""
        views = tuple(
            replace(view, originals=view.originals[kept], copies=tuple(copy[kept] for copy in view.copies))
            for view in self.views
        )
        return replace(self, labels=self.labels[kept], present=self.present[:, kept], views=views)

    def with_others(self, people: int) -> OwnData:
        """With so many of the other people; without any for 0."""

        def some(others: OtherCopies | None) -> OtherCopies | None:
            if others is None or not people:
                return None
            kept = others.speakers < people
            return OtherCopies(others.originals[kept], others.copies[kept], others.speakers[kept])

        return replace(self, views=tuple(replace(view, others=some(view.others)) for view in self.views))


def own_data(material: Material, draws: Sequence[DrawLevel] | None = None) -> OwnData:
    """The attacker's data of `material`, with the runs that are its own, or the released one where it has none."""
    runs = usable_runs(material)
    labels = material.candidates.codes
    present = np.zeros((len(runs), len(labels)), bool)
    for number, run in enumerate(runs):
        present[number] = [utterance in run.vectors.utterance_rows for utterance in material.candidates.utterances]
    views = [_view(material.candidates, runs, material.others, present)]
    for name, other in material.views.items():
        if list(other.candidates.utterances) != list(material.candidates.utterances):
            raise InputError(f"the vectors of {name} are not of the same recordings as the first extractor's")
        view = _view(other.candidates, usable_runs(other), other.others, present)
        views.append(replace(view, seen=other.seen))
    levels = tuple(draws) if draws is not None else tuple(run.draw for run in runs)
    return OwnData(len(material.names), labels, levels, present, tuple(views))


def usable_runs(material: Material) -> tuple[AttackerRun, ...]:
    """The attacker's own runs that hold a recording of a candidate; only without any, the released one."""
    known = material.candidates.utterance_rows
    held = [run for run in material.runs if any(u in known for u in run.vectors.utterances)]
    own = tuple(run for run in held if run.own)
    return own or tuple(held)


def _view(
    candidates: Embeddings, runs: Sequence[AttackerRun], others: OtherPeople | None, present: NDArray[np.bool_]
) -> View:
    copies = []
    dimensions = {run.vectors.dimension for run in runs}
    if len(dimensions) > 1:
        raise InputError(
            f"the attacker's runs have vectors of {sorted(dimensions)} dimensions", fix="use one extractor"
        )
    for number, run in enumerate(runs):
        rows = np.flatnonzero(present[number])
        copy = np.zeros((len(candidates), run.vectors.dimension))
        copy[rows] = run.vectors.of_utterances([candidates.utterances[row] for row in rows]).vectors
        copies.append(copy)
    dimension = copies[0].shape[1] if copies else candidates.dimension
    return View(
        candidates.vectors.astype(np.float64),
        tuple(copies),
        other_copies(others, candidates.dimension, dimension),
        candidates.dimension == dimension,
    )


def other_copies(others: OtherPeople | None, dimension: int, copied: int) -> OtherCopies | None:
    """Every copy of another person's recording beside its original; None where there is no such pair."""
    if others is None:
        return None
    rows: list[int] = []
    copies = []
    for run in others.runs:
        index = [row for row, u in enumerate(others.originals.utterances) if u in run.vectors.utterance_rows]
        rows += index
        if index:
            copies.append(run.vectors.of_utterances([others.originals.utterances[row] for row in index]).vectors)
    if not copies:
        return None
    copied_vectors = np.concatenate(copies).astype(np.float64)
    if others.originals.dimension != dimension or copied_vectors.shape[1] != copied:
        raise InputError(
            f"other people's vectors have {others.originals.dimension} and {copied_vectors.shape[1]} dimensions, the "
            f"candidates' {dimension} and {copied}",
            fix="use the same extractors for both",
        )
    return OtherCopies(others.originals.vectors[rows].astype(np.float64), copied_vectors, others.originals.codes[rows])
