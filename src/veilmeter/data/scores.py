"""Scores: what comparisons of voices gave, which of them were of one speaker, and whose voices they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError

Codes = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Scores:
    """n comparisons: their scores (higher: more alike), whether each is a target trial, and the two speakers.

    `enroll_speaker` and `test_speaker` are codes into `names` (one name space: in a target trial both are the same
    person), or None when the speakers are unknown; `speakers_from` says how they were found. `source` is for messages.
    Where the trials are a whole matrix, row by row, `grid` has the speakers of its rows and of its columns.

    Attributes
    ----------
    values : array_like
        The scores.
    is_target : array_like of bool
        Whether each is of one speaker.
    enroll_speaker, test_speaker : array_like of int, optional
        The speakers of both sides, as indices into `names`.
    names : sequence of str
        The speakers.

    Examples
    --------
    >>> s = Scores.from_arrays([2.0, 3.0], [0.0, 1.0, 2.5])
    >>> s
    Scores(2 targets, 3 impostors)
    >>> s.impostors
    array([0. , 1. , 2.5])
    """

    values: NDArray[np.float64]
    is_target: NDArray[np.bool_]
    enroll_speaker: Codes | None = None
    test_speaker: Codes | None = None
    names: Sequence[str] = field(default=(), repr=False)
    source: str = ""
    speakers_from: str = ""
    grid: tuple[Codes, Codes] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        where = self.source or None
        put = object.__setattr__
        put(self, "values", np.asarray(self.values, np.float64))
        put(self, "is_target", np.asarray(self.is_target, bool))
        n = len(self.values)
        if self.values.ndim != 1 or self.is_target.shape != (n,):
            raise InputError("scores and labels must be two flat lists of one length", path=where)
        if (self.enroll_speaker is None) != (self.test_speaker is None):
            raise InputError("give the speakers of both sides or of neither", path=where)
        for side in ("enroll_speaker", "test_speaker"):
            codes = getattr(self, side)
            if codes is not None:
                put(self, side, np.asarray(codes, np.int32))
                if getattr(self, side).shape != (n,):
                    raise InputError(f"there are {n} scores but {len(codes)} entries in {side}", path=where)
        with np.errstate(over="ignore", invalid="ignore"):  # finite scores may have an infinite sum
            total = self.values.sum()
        if not np.isfinite(total) and not np.isfinite(self.values).all():
            bad = int((~np.isfinite(self.values)).sum())
            raise InputError(f"{bad} of {n} scores are not finite", path=where, fix="leave these trials out")
        count = int(np.count_nonzero(self.is_target))
        if count == 0 or count == n:
            missing = "target" if count == 0 else "impostor"
            raise InputError(
                f"there are no {missing} trials", path=where, fix="a measure needs both target and impostor trials"
            )

    @classmethod
    def from_arrays(
        cls,
        targets: ArrayLike,
        impostors: ArrayLike,
        *,
        target_speakers: tuple[ArrayLike, ArrayLike] | None = None,
        impostor_speakers: tuple[ArrayLike, ArrayLike] | None = None,
        source: str = "",
    ) -> Scores:
        """From the scores of the two classes; the speakers (enrollment, test) of each class if they are known."""
        t, n = np.asarray(targets, np.float64).ravel(), np.asarray(impostors, np.float64).ravel()
        values = np.concatenate([t, n])
        is_target = np.zeros(len(values), bool)
        is_target[: len(t)] = True
        if (target_speakers is None) != (impostor_speakers is None):
            raise InputError("give the speakers of both classes or of neither", path=source or None)
        if target_speakers is None or impostor_speakers is None:
            scores = cls(values, is_target, source=source)
        else:
            sides = [
                np.concatenate([np.ravel(a), np.ravel(b)])
                for a, b in zip(
                    _both_sides(target_speakers, len(t), "target"),
                    _both_sides(impostor_speakers, len(n), "impostor"),
                    strict=True,
                )
            ]
            names, enroll, test = encode(*sides)
            scores = cls(values, is_target, enroll, test, names, source, "given")
        # The classes lie one after the other: their views cost nothing.
        scores.__dict__["targets"], scores.__dict__["impostors"] = values[: len(t)], values[len(t) :]
        return scores

    @classmethod
    def from_matrix(
        cls,
        matrix: ArrayLike,
        enroll_speakers: ArrayLike,
        test_speakers: ArrayLike,
        *,
        mask: ArrayLike | None = None,
        source: str = "",
    ) -> Scores:
        """From a matrix of scores, one row per enrollment and one column per test; no trial where `mask` is false.

        >>> Scores.from_matrix([[5, 1], [0, 4]], ["a", "b"], ["a", "b"]).targets
        array([5., 4.])
        """
        x = np.asarray(matrix, np.float64)
        names, rows, columns = encode(np.asarray(enroll_speakers), np.asarray(test_speakers))
        if x.shape != (len(rows), len(columns)):
            raise InputError(
                f"the matrix is {x.shape} but there are {len(rows)} enrollments and {len(columns)} tests",
                path=source or None,
            )
        enroll = np.repeat(rows, len(columns))
        test = np.tile(columns, len(rows))
        values = x.ravel()
        if mask is not None:
            kept = np.flatnonzero(np.asarray(mask, bool).ravel())
            values, enroll, test = values[kept], enroll[kept], test[kept]
        grid = (rows, columns) if mask is None else None
        return cls(values, enroll == test, enroll, test, names, source, "given", grid)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        people = "" if self.enroll_speaker is None else f" of {self.speaker_count} speakers"
        return f"Scores({len(self.targets)} targets, {len(self.impostors)} impostors{people})"

    @cached_property
    def targets(self) -> NDArray[np.float64]:
        return self.values[self.is_target]

    @cached_property
    def impostors(self) -> NDArray[np.float64]:
        return self.values[~self.is_target]

    @cached_property
    def ordered(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Target and impostor scores in rising order: sorted once for everything that is measured."""
        impostors = self.values[~self.is_target]
        impostors.sort()  # where they are: of many trials a second copy takes much room
        return np.sort(self.targets), impostors

    @cached_property
    def speaker_count(self) -> int:
        """How many different people there are on either side; 0 if that is not known."""
        return len(self.people)

    @cached_property
    def people(self) -> NDArray[np.int64]:
        """The codes of all people on either side, rising; none if they are not known."""
        if self.enroll_speaker is None or self.test_speaker is None:
            return np.zeros(0, np.int64)
        return present(*(self.grid or (self.enroll_speaker, self.test_speaker)))

    @property
    def counts(self) -> dict[str, int]:
        """The counts that an estimate rests on."""
        trials = {"targets": len(self.targets), "impostors": len(self) - len(self.targets)}
        return trials | ({"speakers": self.speaker_count} if self.speaker_count else {})

    def take(self, rows: ArrayLike) -> Scores:
        """A part, by a mask or by row numbers."""
        index = np.asarray(rows)
        enroll = None if self.enroll_speaker is None else self.enroll_speaker[index]
        test = None if self.test_speaker is None else self.test_speaker[index]
        return Scores(
            self.values[index], self.is_target[index], enroll, test, self.names, self.source, self.speakers_from
        )


def _both_sides(speakers: tuple[ArrayLike, ArrayLike], count: int, kind: str) -> tuple[ArrayLike, ArrayLike]:
    """The speakers of the enrollment and of the test of each trial, checked."""
    if len(speakers) != 2:
        raise InputError(
            f"{kind}_speakers holds {len(speakers)} lists", fix="give two: the speakers of the enrollment and the test"
        )
    for side, names in zip(("enrollment", "test"), speakers, strict=True):
        if np.size(names) != count:
            raise InputError(
                f"there are {count} {kind} scores but {np.size(names)} speakers of the {side} in {kind}_speakers",
                fix="give one speaker per score",
            )
    return speakers


# Scores, or what can be made into them: a score file, a frame, or the scores of the two classes.
ScoresLike = Scores | str | Path | tuple[ArrayLike, ArrayLike] | Any


def to_scores(source: Any) -> Scores:
    """The scores that were given: as such, as a file with labels, as `(targets, impostors)`, or as a frame with the
    columns `score` and `target`, perhaps `enroll_speaker` and `test_speaker`."""
    if isinstance(source, Scores):
        return source
    if isinstance(source, str | Path):
        return read_scores(source)
    if isinstance(source, tuple) and len(source) == 2:
        return Scores.from_arrays(*source)
    if hasattr(source, "columns") and {"score", "target"} <= set(source.columns):
        values, targets = np.asarray(source["score"], np.float64), np.asarray(source["target"], bool)
        if not {"enroll_speaker", "test_speaker"} <= set(source.columns):
            return Scores(values, targets)
        names, enroll, test = encode(np.asarray(source["enroll_speaker"]), np.asarray(source["test_speaker"]))
        return Scores(values, targets, enroll, test, names, speakers_from="given")
    raise InputError(
        f"a {type(source).__name__} does not say which scores are of one speaker",
        fix="give Scores, a score file, (targets, impostors), or a frame with the columns score and target",
    )


def present(*codes: NDArray[np.integer]) -> NDArray[np.int64]:
    """The codes that occur, rising: one pass and no sort, since there are fewer people than trials.

    >>> present(np.array([4, 1, 4]), np.array([0]))
    array([0, 1, 4])
    """
    occurs = np.zeros(max(int(side.max(initial=-1)) for side in codes) + 1, bool)
    for side in codes:
        occurs[side] = True
    return np.flatnonzero(occurs)


def encode(enroll: NDArray[Any], test: NDArray[Any]) -> tuple[list[str], Codes, Codes]:
    """Names of both sides as codes in one name space."""
    names, codes = np.unique(np.concatenate([np.ravel(enroll), np.ravel(test)]).astype(str), return_inverse=True)
    codes = codes.astype(np.int32)  # of many trials they take half the room
    return names.tolist(), codes[: enroll.size], codes[enroll.size :]


def read_scores(
    scores: str | Path,
    trials: str | Path | None = None,
    *,
    layout: str | None = None,
    utt2spk: str | Path | None = None,
    only_common: bool = False,
) -> Scores:
    """A score file with its trial key, or with the label in its fourth column.

    `layout` (vpc, pairs, voxceleb) settles a key that could be read in two ways; `utt2spk` says who speaks, where the
    target trials do not; with `only_common`, pairs that only one of the files has are left out instead of an error.

    Parameters
    ----------
    scores : str or Path
        The score file: two ids and a score per line, perhaps the label.
    trials : str or Path, optional
        The trial key, which says which trials are target.
    layout : {"vpc", "pairs", "voxceleb"}, optional
        The layout of a key that could be read in two ways.
    utt2spk : str or Path, optional
        The speaker of each utterance.
    only_common : bool
        Whether pairs that only one of the files has are left out.

    Returns
    -------
    Scores
        The comparisons, with labels and, where they are known, speakers.

    Raises
    ------
    InputError
        If a line can't be read; it names the file and the line.

    Examples
    --------
    >>> read_scores("scores.txt", "trials.txt")  # doctest: +SKIP
    Scores(72 targets, 792 impostors of 12 speakers)
    """
    from veilmeter.data.formats.scores import read_scores as read

    return read(scores, trials, layout=layout, utt2spk=utt2spk, only_common=only_common)
