"""Which of the attacker's own recordings may be held out, so that what is chosen on them is chosen honestly.

A draw that was trained on is never tested, nor an utterance where its speaker has another: held out, an utterance
leaves every run and the means of the originals. Neighbors share a session, so folds are contiguous.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.adaptive.own_data import OwnData
from veilmeter.attacks.material import Rows

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
            # A person's only recording stays among the originals: there is no other to know them by.
            train = ~(held & theirs) if number >= 0 else np.ones(len(held), bool)
            split = Split(train, train & ~theirs, runs, _tests(data, list(runs), held & theirs))
            taught = data.has_others or any((split.copied & data.present[run]).any() for run in runs)
            if split.tests and taught:
                yield split


def _tests(data: OwnData, runs: list[int], rows: NDArray[np.bool_]) -> tuple[tuple[int, Rows], ...]:
    """The copies of these utterances that there are in these runs."""
    held = ((run, np.flatnonzero(rows & data.present[run])) for run in runs)
    return tuple((run, held_rows) for run, held_rows in held if len(held_rows))
