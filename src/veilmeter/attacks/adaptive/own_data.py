"""The attacker's own data as arrays, by utterance and by one extractor or more; and what of it may be held out.

Nothing of the released recordings is in here: whatever is chosen on `OwnData` is chosen without looking at them. So
that it is also chosen honestly, a draw that was trained on is never tested, nor an utterance where its speaker has
another: held out, an utterance leaves every run and the means of the originals. Neighbors share a session, so folds are
contiguous.

What one draw of a run covers is tested on the data: are two utterances of one speaker closer than draws explain? With
one pseudo-voice per speaker taken for one per utterance, cross-validation would recognize the pseudo-voice and choose
whatever does that best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.backends.base import unit64
from veilmeter.attacks.material import AttackerRun, DrawLevel, Floats, Material, OtherPeople, Rows
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, warning
from veilmeter.data.embeddings import Embeddings, Strings, draw_names


@dataclass(frozen=True, eq=False)
class OtherCopies:
    """Other people's originals and copies, row by row: `originals[i]` was anonymized to `copies[i]`, with the draw
    `draws[i]` (-1: not named)."""

    originals: Floats
    copies: Floats
    speakers: Rows
    draws: Rows


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

    `present[r, i]` says whether run r holds a copy of utterance i; other rows of its copies are zero. `named[r, i]` is
    the draw that this copy got, where draws of a finite set are named (-1: not named).
    """

    candidates: int
    labels: Rows
    draws: tuple[DrawLevel, ...]
    present: NDArray[np.bool_]
    named: Rows
    views: tuple[View, ...]

    @property
    def runs(self) -> range:
        return range(len(self.draws))

    @property
    def has_others(self) -> bool:
        """Whether there are other people's originals and copies by every extractor."""
        return bool(self.views) and all(view.others is not None for view in self.views)


def own_data(material: Material, draws: Sequence[DrawLevel] | None = None) -> OwnData:
    """The attacker's data of `material`, with the runs that are its own, or the released one where it has none."""
    runs = usable_runs(material)
    labels = material.candidates.codes
    present = np.zeros((len(runs), len(labels)), bool)
    named = np.full(present.shape, -1)
    codes: dict[str, int] = {}
    for number, run in enumerate(runs):
        present[number] = [utterance in run.vectors.utterance_rows for utterance in material.candidates.utterances]
        held = np.flatnonzero(present[number])
        places = [run.vectors.utterance_rows[material.candidates.utterances[row]] for row in held]
        named[number, held] = draw_codes(run.vectors, codes)[places]
    views = [_view(material.candidates, runs, material.others, present, codes)]
    for name, other in material.views.items():
        if list(other.candidates.utterances) != list(material.candidates.utterances):
            raise InputError(f"the vectors of {name} are not of the same recordings as the first extractor's")
        view = _view(other.candidates, usable_runs(other), other.others, present, codes)
        views.append(replace(view, seen=other.seen))
    levels = tuple(draws) if draws is not None else tuple(run.draw for run in runs)
    return OwnData(len(material.names), labels, levels, present, named, tuple(views))


def draw_codes(run: Embeddings, codes: dict[str, int]) -> Rows:
    """The draw of each recording as a number, -1 where it is not named; `codes` are the numbers so far."""
    draws = draw_names(run)
    if draws is None:
        return np.full(len(run), -1)
    return np.array([codes.setdefault(name, len(codes)) if name else -1 for name in draws], np.int64)


def usable_runs(material: Material) -> tuple[AttackerRun, ...]:
    """The attacker's own runs that hold a recording of a candidate; only without any, the released one."""
    known = material.candidates.utterance_rows
    held = [run for run in material.runs if any(u in known for u in run.vectors.utterances)]
    own = tuple(run for run in held if run.own)
    return own or tuple(held)


def _view(
    candidates: Embeddings,
    runs: Sequence[AttackerRun],
    others: OtherPeople | None,
    present: NDArray[np.bool_],
    codes: dict[str, int],
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
        other_copies(others, candidates.dimension, dimension, codes),
        candidates.dimension == dimension,
    )


def other_copies(others: OtherPeople | None, dimension: int, copied: int, codes: dict[str, int]) -> OtherCopies | None:
    """Every copy of another person's recording beside its original; None where there is no such pair."""
    if others is None:
        return None
    rows: list[int] = []
    copies, draws = [], []
    for run in others.runs:
        index = [row for row, u in enumerate(others.originals.utterances) if u in run.vectors.utterance_rows]
        rows += index
        if index:
            held = run.vectors.of_utterances([others.originals.utterances[row] for row in index])
            copies.append(held.vectors)
            draws.append(draw_codes(held, codes))
    if not copies:
        return None
    copied_vectors = np.concatenate(copies).astype(np.float64)
    if others.originals.dimension != dimension or copied_vectors.shape[1] != copied:
        raise InputError(
            f"other people's vectors have {others.originals.dimension} and {copied_vectors.shape[1]} dimensions, the "
            f"candidates' {dimension} and {copied}",
            fix="use the same extractors for both",
        )
    return OtherCopies(
        others.originals.vectors[rows].astype(np.float64),
        copied_vectors,
        others.originals.codes[rows],
        np.concatenate(draws),
    )


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


SHARED = 0.15  # the share of what differs between two runs that a speaker's recordings have in common: a shared draw
SAME = 1e-3  # runs that differ by less than this share of their variance draw nothing
MOST_SPEAKERS = 1000  # compared with each other: that many tell one draw per speaker from one per utterance
KEPT_DRAW = 0.5  # of the way from as often as others to always: a named draw that belongs to a speaker
UNEXPLAINED = 0.2  # closeness beyond what originals explain, as a share of that of the originals: a shared draw


@dataclass(frozen=True)
class DrawTest:
    """The level, and the figure it rests on: the share of closeness that no original explains, or, with a second run,
    the share of the difference between the runs that a speaker's recordings have in common."""

    level: DrawLevel
    figure: float
    compared: str


def draw_level(originals: Embeddings, run: Embeddings, beside: Sequence[Embeddings] = ()) -> DrawTest:
    """What one draw of `run` covers; other runs over the same recordings (`beside`) make it a sharper test.

    Unknown where no speaker has two recordings. When in doubt the answer is "speaker": that costs the attacker some of
    its choice, the other error ruins it.
    """
    for other in beside:
        test = _between_runs(originals, run, other)
        if test is not None:
            return test
    rows, common = _common(originals, run)
    some = _of_some_speakers(originals, rows)
    rows, common = rows[some], common[some]
    codes = _codes(originals, rows)
    if not _repeated(codes):
        return DrawTest("unknown", float("nan"), "no speaker has two recordings")
    before = _closeness(_center(originals.vectors[rows]), codes)
    after = _closeness(_center(run.vectors[common]), codes)
    within, apart = before
    slope = 0.0
    off = ~np.eye(len(within), dtype=bool)
    if off.sum() > 10 and float(np.var(apart[off])) > 0:
        slope = max(0.0, float(np.polyfit(apart[off], after[1][off], 1)[0]))
    original = float(np.nanmean(within) - apart[off].mean())
    protected = float(np.nanmean(after[0]) - after[1][off].mean())
    excess = (protected - slope * original) / max(original, 1e-9)
    return DrawTest("speaker" if excess > UNEXPLAINED else "utterance", excess, "originals")


def _between_runs(originals: Embeddings, run: Embeddings, other: Embeddings) -> DrawTest | None:
    """Two runs over the same recordings differ by their draws alone, whatever of the speaker survives."""
    known = set(originals.utterances)
    both = [u for u in run.utterances if u in known and u in other.utterance_rows]
    if run.dimension != other.dimension or len(both) < 4:
        return None
    rows = np.array([originals.utterance_rows[u] for u in both])
    some = _of_some_speakers(originals, rows)
    rows, both = rows[some], [both[row] for row in some.tolist()]
    codes = _codes(originals, rows)
    if not _repeated(codes):
        return None
    first, second = (_center(side.of_utterances(both).vectors) for side in (run, other))
    difference = first - second
    difference -= difference.mean(axis=0)
    size = float(np.mean(np.sum(difference**2, axis=1)))
    if size < SAME:
        return DrawTest("utterance", 0.0, "another run, which is the same")
    within, _ = _closeness(difference, codes)
    share = float(np.nanmean(within)) / size
    if share <= SHARED:
        return DrawTest("utterance", share, "another run")
    # One of the two shares its draws, or both do: the one whose recordings lie closer together does.
    own, theirs = (float(np.nanmean(_closeness(side, codes)[0])) for side in (first, second))
    return DrawTest("speaker" if own > 0.7 * theirs else "utterance", share, "another run")


def resolve_draws(material: Material) -> tuple[tuple[DrawLevel, ...], list[Finding]]:
    """Each usable run's level: as it says, else as the data say; and what contradicts.

    A run that is declared to draw for every utterance and does not would ruin the attacker's choice, so its data are
    believed instead, unless its draws are on record. In a run with one named draw for everybody, nothing else is drawn
    unless its data show it.
    """
    runs = usable_runs(material)
    levels: list[DrawLevel] = []
    findings = []
    for number, run in enumerate(runs):
        named = draw_names(run.vectors)
        single = named is not None and len(set(named)) == 1
        # Runs with different draws for everybody differ in what a speaker's recordings have in common: no test.
        beside = [] if single else [other.vectors for other in runs if other is not run]
        tested = draw_level(material.candidates, run.vectors, beside)
        name = run.name or f"run {number + 1}"
        if run.draw == "unknown" and named is not None:
            levels.append("speaker" if tested.level == "speaker" or _speakers_keep(run.vectors, named) else "utterance")
        elif run.draw == "unknown":
            levels.append("speaker" if tested.level == "unknown" else tested.level)
            findings.append(warning("draw_unknown", run=name, level=levels[-1]))
        elif run.certain or tested.level in (run.draw, "unknown"):
            levels.append(run.draw)
        elif run.draw == "utterance":
            levels.append(tested.level)
            findings.append(warning("draw_taken_per_speaker", run=name))
        else:
            levels.append(run.draw)
            findings.append(warning("draw_looks_per_utterance", run=name))
    return tuple(levels), findings


def _speakers_keep(run: Embeddings, draws: Strings) -> bool:
    """Whether the recordings of a speaker share a named draw far more often than those of different speakers."""
    _, code = np.unique(draws.astype(str), return_inverse=True)
    together = np.zeros((int(code.max()) + 1, len(run.names)))
    np.add.at(together, (code, run.codes), 1)
    of_speaker, of_draw = together.sum(axis=0), together.sum(axis=1)
    own_pairs = float((of_speaker * (of_speaker - 1)).sum())
    own = float((together * (together - 1)).sum()) / max(own_pairs, 1.0)
    other_pairs = float(len(run) ** 2 - np.square(of_speaker).sum())
    other = float(np.square(of_draw).sum() - np.square(together).sum()) / max(other_pairs, 1.0)
    return own > other + KEPT_DRAW * (1 - other)


def _common(originals: Embeddings, run: Embeddings) -> tuple[Rows, Rows]:
    both = [u for u in originals.utterances if u in run.utterance_rows]
    return (
        np.array([originals.utterance_rows[u] for u in both], np.int64),
        np.array([run.utterance_rows[u] for u in both], np.int64),
    )


def _of_some_speakers(originals: Embeddings, rows: Rows) -> Rows:
    """Which of the rows are of so many speakers that all of them can be compared with each other."""
    speakers = np.unique(originals.codes[rows])
    if len(speakers) <= MOST_SPEAKERS:
        return np.arange(len(rows))
    drawn = np.random.default_rng(0).choice(speakers, MOST_SPEAKERS, replace=False)
    return np.flatnonzero(np.isin(originals.codes[rows], drawn))


def _codes(originals: Embeddings, rows: Rows) -> Rows:
    return np.unique(originals.codes[rows], return_inverse=True)[1]


def _repeated(codes: Rows) -> bool:
    counts = np.bincount(codes) if len(codes) else np.zeros(0, np.int64)
    return len(counts) > 1 and bool((counts > 1).any())


def _center(vectors: np.ndarray) -> Floats:
    x = unit64(vectors)
    return unit64(x - x.mean(axis=0))


def _closeness(x: Floats, codes: Rows) -> tuple[Floats, Floats]:
    """Mean products of different recordings: within each speaker (NaN with one), and between speakers."""
    n = int(codes.max()) + 1
    counts = np.bincount(codes, minlength=n).astype(float)
    sums = np.zeros((n, x.shape[1]))
    np.add.at(sums, codes, x)
    squares = np.bincount(codes, np.sum(x**2, axis=1), n)
    pairs = counts * (counts - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        within = np.where(pairs > 0, (np.sum(sums**2, axis=1) - squares) / pairs, np.nan)
    return within, sums @ sums.T / np.outer(counts, counts)
