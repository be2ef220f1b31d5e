"""What more effort would bring: EER and Linkability against own runs, enrollment recordings and other people.

Every point is an attack with part of what there is, measured on the same trials. The attack itself never sees whose
the trials are; only the measuring does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.material import AttackerRun, Floats, Material, OtherPeople
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.data.scores import Scores
from veilmeter.metrics.legal.linkability import linkability_of_scores
from veilmeter.metrics.measure import MEASURES
from veilmeter.metrics.scores.summary import measure_with_problems

RESAMPLES = 200
SHARES = (0.25, 0.5)  # of the other people
AMOUNTS = (1, 2, 4, 8, 16, 32, 64)  # of runs and of recordings
MOST_CANDIDATES = 300  # every point is a whole attack: beyond, the curves would cost more than all the rest
ScoresOf = Callable[[Material], Floats]


def learning_curves(
    material: Material,
    spoken: Sequence[str] | NDArray[np.object_],
    scores_of: ScoresOf,
    *,
    intervals: bool = True,
    seed: int = 0,
    eer_method: str = "rocch",
) -> Estimates:
    """`learning_eer` and `learning_linkability` over each kind of effort that can be varied with this material.

    `spoken` names who speaks in each conversation of the first table; `scores_of` is the attack, as candidates x
    conversations.
    """
    first = replace(material, conversations=material.conversations[:1])
    names = np.asarray(spoken, object)
    options: dict[str, Any] = {"intervals": intervals, "seed": seed, "eer_method": eer_method}
    points: list[Estimate] = []
    for effort, amount, part in portions(first):
        try:
            scores = scores_of(part)
        except InputError:
            continue  # so little is nothing to learn from: the curve begins later
        points += measure_effort(scores, first.names, names, {effort: amount}, **options)
    return Estimates(points)


def portions(material: Material) -> Iterator[tuple[str, int, Material]]:
    """The material with less of one kind of effort, from little to all; kinds with one amount only are left out."""
    runs = len(material.runs)
    if runs > 1:
        for number in [n for n in AMOUNTS if n < runs] + [runs]:
            yield "runs", number, replace(material, runs=material.runs[:number])
    most = int(np.bincount(material.candidates.codes).max())
    if most > 1:
        for number in [n for n in AMOUNTS if n < most] + [most]:
            yield "recordings", number, fewer_recordings(material, number)
    if material.others is not None:
        people = len(material.others.originals.names)
        amounts = sorted({round(share * people) for share in SHARES} - {0, people})
        yield "others", 0, replace(material, others=None)
        for number in [*amounts, people]:
            yield "others", number, replace(material, others=fewer_people(material.others, number))


def fewer_recordings(material: Material, most: int) -> Material:
    """Each candidate's first recordings only, in the originals and in every run."""
    codes = material.candidates.codes
    order = np.argsort(codes, kind="stable")
    counts = np.bincount(codes)
    places = np.empty(len(codes), np.int64)
    places[order] = np.arange(len(codes)) - np.repeat(np.cumsum(counts) - counts, counts)
    kept = material.candidates.take(places < most)
    known = set(kept.utterances)

    def shorten(run: AttackerRun) -> AttackerRun | None:
        rows = np.array([utterance in known for utterance in run.vectors.utterances])
        return replace(run, vectors=run.vectors.take(rows)) if rows.any() else None

    runs = tuple(run for run in map(shorten, material.runs) if run is not None)
    views = {name: fewer_recordings(view, most) for name, view in material.views.items()}
    return replace(material, candidates=kept, runs=runs, views=views)


def fewer_people(others: OtherPeople, people: int) -> OtherPeople:
    """The first so many of the other people; runs over them keep what they hold of these."""
    originals = others.originals.take(others.originals.codes < people)
    known = originals.utterance_rows
    runs = []
    for run in others.runs:
        rows = np.array([utterance in known for utterance in run.vectors.utterances])
        if rows.any():
            runs.append(replace(run, vectors=run.vectors.take(rows)))
    return OtherPeople(originals=originals, runs=tuple(runs))


def measure_effort(
    scores: Floats,
    enrolled: Sequence[str],
    spoken: NDArray[np.object_],
    at: dict[str, int | float | str],
    *,
    intervals: bool,
    seed: int,
    eer_method: str = "rocch",
) -> list[Estimate]:
    """EER over all pairs, and Linkability among everybody enrolled, as points of a curve."""
    measured, _ = measure_with_problems(
        Scores.from_matrix(scores, np.array(enrolled, object), spoken),
        intervals=intervals,
        resamples=RESAMPLES,
        seed=seed,
        measures=["eer"],
        eer_method=eer_method,
    )
    points = [_rename(measured["eer"], "learning_eer", at)]
    link = linkability_of_scores(scores, enrolled, spoken)
    if link is not None:
        points.append(_rename(link.estimate(link.largest, intervals=intervals), "learning_linkability", at))
    return points


def _rename(estimate: Estimate, name: str, at: dict[str, int | float | str]) -> Estimate:
    return estimate.with_(name=name, label=MEASURES[name].label, at=at)
