"""The attacker's own data as arrays, by utterance and by one extractor or more; and what of it may be held out.

Nothing of the released recordings is in here: whatever is chosen on `OwnData` is chosen without looking at them. So
that it is also chosen honestly, a draw that was trained on is never tested, nor an utterance where its speaker has
another: held out, an utterance leaves every run and the means of the originals. Neighbors share a session, so folds are
contiguous.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
    """The vectors of one extractor: originals, one array of copies per run (in the order of the originals), others."""

    originals: Floats
    copies: tuple[Floats, ...]
    others: OtherCopies | None = None
    comparable: bool = True  # whether originals and copies are of one dimension, so that they can be compared as such
    seen: bool = False  # whether the extractor was trained on the copies: then nothing can be tested on them


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
        """Whether there are other people's originals and copies by every extractor."""
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


FOLDS = 4


@dataclass(frozen=True, eq=False)
class Split:
    """Train on the originals `train` and the copies `copied` (masks of utterances) of `train_runs`; `tests` are runs
    with the utterances of theirs that are tested."""

    train: NDArray[np.bool_]
    copied: NDArray[np.bool_]
    train_runs: tuple[int, ...]
    tests: tuple[tuple[int, Rows], ...]

    @property
    def size(self) -> int:
        return sum(len(rows) for _, rows in self.tests)

    def thin(self, most: int, rng: np.random.Generator) -> Split:
        """At most so many test recordings, drawn at random."""
        if self.size <= most:
            return self
        runs = np.concatenate([np.full(len(rows), run) for run, rows in self.tests])
        rows = np.concatenate([rows for _, rows in self.tests])
        kept = np.sort(rng.choice(len(rows), most, replace=False))
        tests = tuple((run, rows[kept][runs[kept] == run]) for run, _ in self.tests)
        return Split(self.train, self.copied, self.train_runs, tuple(test for test in tests if len(test[1])))


def folds_of(labels: Rows, folds: int = FOLDS) -> Rows:
    """Contiguous blocks of each speaker's utterances; -1 for a speaker with one, who is never held out.

    >>> folds_of(np.array([0, 0, 0, 0, 0, 1, 2, 2])).tolist()
    [0, 0, 1, 2, 3, -1, 0, 1]
    """
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels)
    places = np.empty(len(labels), np.int64)
    places[order] = np.arange(len(labels)) - np.repeat(np.concatenate([[0], np.cumsum(counts)[:-1]]), counts)
    own = counts[labels]
    return np.where(own > 1, places * np.minimum(folds, own) // own, -1)


def splits(data: OwnData, folds: int = FOLDS) -> Iterator[Split]:
    """Every honest way to hold something out; none where one run with one draw per speaker is all there is.

    Where everybody has one utterance, another draw of the same utterance is all that can be tested.
    """
    everything = np.ones(len(data.labels), bool)
    fold = folds_of(data.labels, folds)
    by_utterance = [run for run in data.runs if data.draws[run] == "utterance"]
    by_speaker = [run for run in data.runs if data.draws[run] != "utterance"]
    every_run = tuple(data.runs)

    candidates: list[Split] = []
    if fold.max(initial=-1) > 0:
        for number in range(int(fold.max()) + 1):
            held = fold == number
            candidates.append(Split(~held, ~held, every_run, _tests(data, by_utterance, held)))
            for run in by_speaker:
                others = tuple(r for r in every_run if r != run)
                candidates.append(Split(~held, ~held, others, _tests(data, [run], held)))
    else:
        for run in every_run:
            others = tuple(r for r in every_run if r != run)
            candidates.append(Split(everything, everything, others, _tests(data, [run], everything)))
    for split in candidates:
        if split.tests and any((split.copied & data.present[run]).any() for run in split.train_runs):
            yield split


def speaker_splits(data: OwnData, folds: int = FOLDS) -> Iterator[Split]:
    """People held out with all their copies: honest even where one run with one draw per speaker is all there is, for
    methods that need no copy of the person looked for.

    Somebody whose copies were trained on draws other people's recordings towards them. So where other people's speech
    can teach everything, nobody's copies are trained on, and everybody is compared on equal terms.
    """
    groups = 1 if data.has_others else min(folds, data.candidates)
    people = np.arange(data.candidates) % groups
    fold = folds_of(data.labels, folds)
    runs = tuple(data.runs)
    for group in range(groups):
        theirs = people[data.labels] == group
        for number in sorted(set(fold[fold >= 0].tolist())) or [-1]:
            held = fold == number
            # A person's only recording stays among the originals: nothing else identifies them.
            train = ~(held & theirs) if number >= 0 else np.ones(len(held), bool)
            split = Split(train, train & ~theirs, runs, _tests(data, list(runs), held & theirs))
            taught = data.has_others or any((split.copied & data.present[run]).any() for run in runs)
            if split.tests and taught:
                yield split


def _tests(data: OwnData, runs: list[int], rows: NDArray[np.bool_]) -> tuple[tuple[int, Rows], ...]:
    """The copies of these utterances that there are in these runs."""
    held = ((run, np.flatnonzero(rows & data.present[run])) for run in runs)
    return tuple((run, held_rows) for run, held_rows in held if len(held_rows))
