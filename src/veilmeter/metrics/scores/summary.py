"""All measures of a set of scores on one page, each an `Estimate`."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Finding, Reference, references, warning
from veilmeter.data.scores import Scores
from veilmeter.metrics.measure import MEASURES, Measure, compute_estimates, estimate_of
from veilmeter.metrics.scores import resampling
from veilmeter.metrics.scores.eer import Eer
from veilmeter.metrics.scores.forms import ScoreFunction, ScoreSet, SortedScores, stream_scores
from veilmeter.metrics.scores.null import Null, null_levels
from veilmeter.metrics.scores.resampling import Replicates, Shape

Floats = NDArray[np.float64]
Functions = dict[str, ScoreFunction]
NULL_ANYWAY = 200_000  # trials up to which the null level costs next to nothing


def score_functions(eer_method: str = "rocch", measures: Sequence[Measure] | None = None) -> Functions:
    """By name, how measures of scores are computed that can be resampled: all registered ones unless some are given."""
    functions = {
        name: function
        for entry in (MEASURES.of_kind("scores") if measures is None else measures)
        for name, function in entry.functions.items()
        if isinstance(function, ScoreFunction)
    }
    if "eer" in functions:
        functions["eer"] = Eer(eer_method)
    return functions


def shape_of(name: str, function: ScoreFunction | None = None) -> Shape:
    """How a measure of scores behaves under resampling; `function` computes it, if that is known."""
    entry = MEASURES[MEASURES.family(name)]
    own = function or entry.functions.get(name)
    if not isinstance(own, ScoreFunction):
        return Shape(entry.low, entry.high)
    return Shape(entry.low, entry.high, overfits=own.overfits, sure=own.sure)


def values(data: ScoreSet, eer_method: str = "rocch") -> dict[str, float]:
    """The value of every measure that can be resampled."""
    return {name: data.of(function) for name, function in score_functions(eer_method).items()}


def measure_scores(
    scores: Scores,
    *,
    intervals: bool = True,
    resamples: int = 1000,
    seed: int = 0,
    eer_method: str = "rocch",
    engine: Engine | None = None,
) -> dict[str, Estimate]:
    """Every registered measure of scores by name: eer, cllr, min_cllr, d_ece, l_w, d_sys, tpr@fpr=... and so on

    Without `intervals` large sets get no null level either: what remains is a few sorts' worth of time. Resamples of
    large sets run on `engine`, if there is one. A measure of another package that fails is left out with a warning.

    >>> found = measure_scores(Scores.from_arrays([2.0, 3.0], [0.0, 1.0]), intervals=False)
    >>> round(found["d_ece"].value, 4), found["l_w"].extra["tag"]
    (0.7213, 'A')
    """
    measured, problems = measure_with_problems(
        scores, intervals=intervals, resamples=resamples, seed=seed, eer_method=eer_method, engine=engine
    )
    for problem in problems:
        (reason,) = references(problem)
        warnings.warn(f"{problem.values['measure']}: {reason.id}", stacklevel=2)
    return measured


@np.errstate(over="ignore", invalid="ignore")  # scores near the largest float have no finite sums
def measure_with_problems(
    scores: Scores,
    *,
    intervals: bool = True,
    resamples: int = 1000,
    seed: int = 0,
    eer_method: str = "rocch",
    engine: Engine | None = None,
    measures: Sequence[str] | None = None,
) -> tuple[dict[str, Estimate], list[Finding]]:
    """As `measure_scores`, of all registered measures or of those named, and why some gave nothing."""
    entries = [entry for entry in MEASURES.of_kind("scores") if measures is None or entry.name in measures]
    functions = score_functions(eer_method, entries)
    data = SortedScores(*scores.ordered)
    spread = _spread(scores, data, functions, resamples if intervals else 0, seed, engine)
    nulls: Mapping[str, Null] = {}
    if intervals or len(scores) <= NULL_ANYWAY:
        nulls = null_levels(scores, functions, seed=seed)
    measured = {
        name: function_estimate(name, function, data, scores.counts, spread=spread, null=nulls.get(name))
        for name, function in functions.items()
    }
    problems = []
    for entry in entries:
        if not functions.keys() >= entry.functions.keys():  # one plain function, which can't be resampled
            try:
                measured |= _plain_estimates(entry, scores)
            except InputError as error:
                reason = Reference("text", str(error))
                problems.append(warning("measure_not_possible", measure=entry.name, reason=reason))
    return measured, problems


def _plain_estimates(entry: Measure, scores: Scores) -> dict[str, Estimate]:
    points = compute_estimates(entry, scores)
    by_name = {point.name: point if point.n else point.with_(n=scores.counts) for point in points}
    if len(by_name) < len(points):
        raise InputError("it gave several estimates of one name", fix="a measure of scores has one per name")
    return by_name


@np.errstate(over="ignore", invalid="ignore")
def eer_estimate(
    scores: Scores, *, intervals: bool = True, resamples: int = 200, seed: int = 0, engine: Engine | None = None
) -> Estimate:
    """The EER by itself, as `measure_scores` has it; what chance gives is known without shuffling labels: nearly 50."""
    data, function = SortedScores(*scores.ordered), Eer()
    spread = _spread(scores, data, {"eer": function}, resamples if intervals else 0, seed, engine)
    return function_estimate("eer", function, data, scores.counts, spread=spread)


def measure_stream(
    pieces: Iterable[tuple[Floats, NDArray[np.bool_]]], *, folder: str | None = None
) -> dict[str, Estimate]:
    """Every measure that can be resampled, of scores that need not fit into memory: values without intervals."""
    with np.errstate(over="ignore", invalid="ignore"), stream_scores(pieces, folder=folder) as data:
        return {
            name: function_estimate(name, function, data, data.counts) for name, function in score_functions().items()
        }


def one_target_person(scores: Scores) -> bool:
    """Whether all target trials are of one person: then nothing says how much people differ, and no interval can."""
    if scores.enroll_speaker is None:
        return False
    people = scores.enroll_speaker[scores.is_target]
    return bool((people == people[0]).all())


def _spread(
    scores: Scores, data: SortedScores, functions: Functions, resamples: int, seed: int, engine: Engine | None
) -> Replicates | None:
    """The replicates behind the intervals; None where no interval is wanted or possible."""
    if not resamples or one_target_person(scores):
        return None
    return resampling.replicates(scores, data, functions, resamples=resamples, seed=seed, engine=engine)


def replicates_of(scores: Scores, data: SortedScores, resamples: int, seed: int) -> Replicates:
    """The replicates of every measure that can be resampled."""
    return resampling.replicates(scores, data, score_functions(), resamples=resamples, seed=seed)


def function_estimate(
    name: str,
    function: ScoreFunction,
    data: ScoreSet,
    counts: Mapping[str, int],
    *,
    spread: Replicates | None = None,
    null: Null | None = None,
) -> Estimate:
    """The estimate of a measure that can be resampled, of scores of which `counts` says how many there are."""
    return score_estimate(
        name, data.of(function), counts, function=function, spread=spread, null=null, extra=function.extra(data)
    )


def score_estimate(
    name: str,
    value: float,
    counts: Mapping[str, int],
    *,
    function: ScoreFunction | None = None,
    method: str = "",
    spread: Replicates | None = None,
    null: Null | None = None,
    extra: Mapping[str, Any] | None = None,
    at: Mapping[str, float | int | str] | None = None,
) -> Estimate:
    """One estimate with the words of its measure and, where replicates have it, an interval."""
    interval = None
    enough = function is None or counts["targets"] >= function.fewest_targets
    if spread is not None and name in spread.samples and enough:
        interval = spread.interval(name, value, shape_of(name, function))
        if interval is not None and function is not None:
            interval = (interval[0], min(interval[1], function.highest_end))
    return estimate_of(
        name,
        value,
        method=method if function is None else function.method(counts),
        interval=interval,
        null=None if null is None else null.mean,
        null_range=None if null is None else null.range,
        n=counts,
        at=at or {},
        extra=extra or {},
    )


def warnings_of(estimates: Mapping[str, Estimate]) -> list[Finding]:
    """Warnings for the reader of these estimates, by the rules of the measures."""
    functions = score_functions()
    known = [(functions[name], point) for name, point in estimates.items() if name in functions]
    return [finding for function, point in known for finding in function.warnings(point)]


def eers_by(scores: Scores, rules: Iterable[str]) -> dict[str, Estimate]:
    """The EER by other rules than veilmeter's own, each under a separate name: `eer_speechbrain`."""
    data = SortedScores(*scores.ordered)
    return {
        f"eer_{rule}": estimate_of(f"eer_{rule}", data.of(Eer(rule)), method=f"the rule {rule}", n=data.counts)
        for rule in rules
    }
