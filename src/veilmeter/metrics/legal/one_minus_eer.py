"""1-EER beside the legal measures, as in figure 1 of Vauquier et al. 2025: the same people, models and conversations.

A verification trial compares two voices, however many people are enrolled, so 1-EER does not depend on that number:
one value stands for the whole curve. This is what the paper holds against it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.scores import Scores
from veilmeter.metrics.legal.conversations import conversations, models, row_dots
from veilmeter.metrics.measure import Measure, find_measure
from veilmeter.metrics.scores.summary import eer_estimate

TRIALS = 200_000  # impostor trials are drawn at random beyond this many
RESAMPLES = 200
BLOCK = 8192  # trials compared at a time


MEASURE = Measure(
    name="one_minus_eer",
    label="1-EER",
    unit="percent",
    better="lower",
    meaning="The accuracy of the verification attack, for comparison; 50 % is guessing.",
    source="Vauquier et al. 2025",
    section="verification",
    equation="1 − EER",
    low=0,
    high=100,
    bar=100,
    headline=False,
)


def one_minus_eer(
    enroll: Embeddings,
    test: Embeddings,
    speakers: Sequence[int],
    *,
    length: int = 1,
    most: int | None = None,
    intervals: bool = True,
    seed: int = 0,
    engine: Engine | None = None,
) -> list[Estimate]:
    """1-EER (rocch) of test conversations against enrollment models for every number of speakers."""
    people = models(enroll)
    code = {name: number for number, name in enumerate(people.names)}
    tested = conversations(test, length, most=most, seed=seed)
    right = np.array([code.get(name, -1) for name in tested.names])[tested.speakers]
    own = np.flatnonzero(right >= 0)
    if len(tested) * len(people) <= TRIALS:
        tests, against = (grid.ravel() for grid in np.indices((len(tested), len(people))))
    else:
        rng = np.random.default_rng([seed, 7])
        tests, against = rng.integers(len(tested), size=TRIALS), rng.integers(len(people), size=TRIALS)
    other = right[tests] != against
    tests, against = tests[other], against[other]
    if len(own) == 0 or len(tests) == 0:
        raise InputError("verification needs a test speaker who is enrolled, and somebody else")

    def compare(rows: NDArray[np.intp], models: NDArray[np.intp]) -> NDArray[np.float64]:
        parts = (slice(a, a + BLOCK) for a in range(0, len(rows), BLOCK))
        return np.concatenate([row_dots(tested.vectors[rows[part]], people.vectors[models[part]]) for part in parts])

    # both classes in the same way, so that equal vectors give equal scores: a tie does not count as recognition
    targets, impostors = compare(own, right[own]), compare(tests, against)
    enrolled, spoken = np.array(people.names, object), np.array(tested.names, object)[tested.speakers]
    scores = Scores.from_arrays(
        targets,
        impostors,
        target_speakers=(enrolled[right[own]], spoken[own]),
        impostor_speakers=(enrolled[against], spoken[tests]),
    )
    turned = of_eer(eer_estimate(scores, intervals=intervals, resamples=RESAMPLES, seed=seed, engine=engine))
    return [turned.with_(at={"speakers": n, "length": length}) for n in speakers]


def of_eer(eer: Estimate) -> Estimate:
    """An EER as 1-EER, with its interval."""
    entry = find_measure("one_minus_eer")

    def turn(ends: tuple[float, float] | None) -> tuple[float, float] | None:
        return None if ends is None else (100 - ends[1], 100 - ends[0])

    return eer.with_(
        name=entry.name,
        label=entry.label,
        unit=entry.unit,
        better=entry.better,
        value=100 - eer.value,
        interval=turn(eer.interval),
        null=50.0 if eer.null is None else 100 - eer.null,
        null_range=turn(eer.null_range),
    )
