"""Measures of more than one set of scores: C_ECE across two runs, eq. 17-20 across OO, OP and PP, ZEBRA per speaker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.data.scores import Scores
from veilmeter.metrics.measure import Measure
from veilmeter.metrics.scores import resampling, zebra
from veilmeter.metrics.scores.cllr import MinCllr
from veilmeter.metrics.scores.forms import SortedScores
from veilmeter.metrics.scores.resampling import Replicates
from veilmeter.metrics.scores.summary import (
    Functions,
    Null,
    function_estimate,
    null_levels,
    score_estimate,
    score_functions,
)

Floats = NDArray[np.float64]
_FUNCTIONS: Functions = {"d_ece": zebra.DEce(), "min_cllr": MinCllr()}  # what eq. 17-20 are made of
_quiet = np.errstate(over="ignore", invalid="ignore")  # scores near the largest float have no finite sums

MEASURES = (
    Measure(
        name="c_ece",
        label="C_ECE",
        unit="bit",
        better="lower",
        meaning="The information an attacker gets who calibrated on another run of the same anonymizer; below 0 it "
        "misleads.",
        source="Noé et al. 2022",
        section="disclosure",
        equation="D_ECE of scores calibrated on another run",
        high=zebra.MAX_D_ECE,
        order=12,
        headline=False,
    ),
    Measure(
        name="d_ece_op_oo",
        label="D_ECE removed",
        unit="percent",
        better="higher",
        meaning="The share of the original disclosure that the anonymizer removes (eq. 17).",
        source="Noé et al. 2022",
        section="disclosure",
        equation="1 − D_ECE(OP) / D_ECE(OO)",
        high=100,
        headline=False,
    ),
    Measure(
        name="min_cllr_op_oo",
        label="min Cllr removed",
        unit="percent",
        better="higher",
        meaning="The same share measured with min Cllr (eq. 18).",
        source="Noé et al. 2022",
        section="disclosure",
        equation="(min Cllr(OP) − min Cllr(OO)) / (1 − min Cllr(OO))",
        high=100,
        headline=False,
    ),
    Measure(
        name="g_d_ece",
        label="G of D_ECE",
        unit="dB",
        better="neither",
        meaning="How distinct the protected voices stay from each other, by D_ECE (eq. 19).",
        source="Noé et al. 2022",
        section="disclosure",
        equation="10 log₁₀ (D_ECE(PP) / D_ECE(OO))",
        headline=False,
    ),
    Measure(
        name="g_min_cllr",
        label="G of min Cllr",
        unit="dB",
        better="neither",
        meaning="How distinct the protected voices stay from each other, by min Cllr (eq. 20).",
        source="Noé et al. 2022",
        section="disclosure",
        equation="10 log₁₀ ((1 − min Cllr(PP)) / (1 − min Cllr(OO)))",
        headline=False,
    ),
)


@_quiet
def cross_calibration(
    scores: Scores, other: Scores, *, intervals: bool = True, resamples: int = 1000, seed: int = 0
) -> dict[str, Estimate]:
    """C_ECE of `scores` with the linear and the isotonic calibration trained on `other`, a second run (eq. 15, 16).

    The isotonic map is trained with Laplace's rule: without it one certain error makes C_ECE minus infinity. The
    interval is over the speakers of `scores`, the calibration being what the attacker has.
    """
    costs, losses = {}, {}
    for kind in ("linear", "isotonic"):
        calibration = zebra.train(kind, other.targets, other.impostors)
        up = zebra.z(calibration.apply(scores.targets)) / (2 * np.log(2))
        down = zebra.z(-calibration.apply(scores.impostors)) / (2 * np.log(2))
        costs[f"c_ece_{kind}"] = (up, down)
        losses[f"c_ece_{kind}"] = float(up.mean() + down.mean())
    spread = None
    if intervals:
        spread = resampling.trial_means(scores, costs, resamples=resamples, seed=seed)
    words = {"c_ece_linear": "logistic", "c_ece_isotonic": "PAV, Laplace"}
    return {
        name: score_estimate(
            name,
            value,
            scores.counts,
            method=f"{words[name]}, second run",
            spread=spread,
            null=Null(0.0, (0.0, 0.0)),
        ).with_(null_range=None)
        for name, value in losses.items()
    }


@dataclass(frozen=True, eq=False, slots=True)
class SetFigures:
    """One of the sets that are compared: its values, chance, resamples, and what they rest on."""

    values: Mapping[str, float]
    nulls: Mapping[str, Null]
    spread: Replicates | None
    counts: dict[str, int]


@_quiet
def set_figures(
    scores: Scores, *, intervals: bool = True, resamples: int = 1000, seed: int = 0, engine: Engine | None = None
) -> SetFigures:
    """Of one set; the scores themselves are not needed afterwards."""
    data = SortedScores(*scores.ordered)
    spread = None
    if intervals:
        spread = resampling.replicates(scores, data, _FUNCTIONS, resamples=resamples, seed=seed, engine=engine)
    values = {name: data.of(function) for name, function in _FUNCTIONS.items()}
    return SetFigures(values, null_levels(scores, _FUNCTIONS, seed=seed), spread, scores.counts)


def compare_sets(
    original: Scores,
    mixed: Scores,
    protected: Scores,
    *,
    intervals: bool = True,
    resamples: int = 1000,
    seed: int = 0,
    engine: Engine | None = None,
) -> dict[str, Estimate]:
    """Eq. 17-20, and the D_ECE and min Cllr they are made of, from OO, OP and PP scores."""
    figures = [
        set_figures(scores, intervals=intervals, resamples=resamples, seed=seed, engine=engine)
        for scores in (original, mixed, protected)
    ]
    return compare_set_figures(*figures)


@_quiet
def compare_set_figures(original: SetFigures, mixed: SetFigures, protected: SetFigures) -> dict[str, Estimate]:
    """The same from what was measured of each set.

    In a resample the same people are drawn for all three sets, so that what they share cancels.
    """
    sets = {"oo": original, "op": mixed, "pp": protected}
    out: dict[str, Estimate] = {}
    for name, figures in sets.items():
        for what, function in _FUNCTIONS.items():
            value, null = figures.values[what], figures.nulls[what]
            estimate = score_estimate(what, value, figures.counts, function=function, spread=figures.spread, null=null)
            out[f"{what}_{name}"] = estimate.with_(name=f"{what}_{name}", label=f"{estimate.label} {name.upper()}")
    points = {name: figures.values for name, figures in sets.items()}
    relative = asdict(
        _normalize({name: {k: np.float64(v) for k, v in point.items()} for name, point in points.items()})
    )
    spreads = {name: figures.spread for name, figures in sets.items() if figures.spread is not None}
    together = None
    if spreads:
        people = {spread.clusters for spread in spreads.values()}
        if len(people) > 1:
            raise InputError(
                f"the three score sets have different people ({', '.join(map(str, sorted(people)))} of them)",
                fix="give the scores of the same trials, or --no-intervals",
            )
        # Sets of different sizes may have different numbers of resamples; those of one number drew the same people.
        shared = min(len(spread.samples["d_ece"]) for spread in spreads.values())
        samples = {
            name: {what: drawn[:shared] for what, drawn in spread.samples.items()} for name, spread in spreads.items()
        }
        replicated = {key: np.asarray(column, np.float64) for key, column in asdict(_normalize(samples)).items()}
        together = Replicates(replicated, people.pop(), spreads["oo"].unit)
    chance = _chance(points, {name: figures.nulls for name, figures in sets.items()})
    normalized: dict[str, Estimate] = {}
    for name, value in relative.items():
        whose = mixed if name.endswith("op_oo") else protected
        level = Null(chance[name], (0.0, 0.0))
        estimate = score_estimate(
            name, float(value), whose.counts, method=_EQUATIONS[name], spread=together, null=level
        )
        normalized[name] = estimate.with_(null_range=None)
    return normalized | out


_EQUATIONS = {"d_ece_op_oo": "eq. 17", "min_cllr_op_oo": "eq. 18", "g_d_ece": "eq. 19", "g_min_cllr": "eq. 20"}


def _normalize(sets: Mapping[str, Mapping[str, Floats | np.float64]]) -> zebra.NormalizedForms:
    arguments = [sets[name][what] for what in ("d_ece", "min_cllr") for name in ("oo", "op", "pp")]
    return zebra.compute_normalized_forms(*arguments)


def _chance(points: Mapping[str, Mapping[str, float]], nulls: Mapping[str, Mapping[str, Null]]) -> dict[str, float]:
    """The null level of the four: OP, or PP, carries no information, and OO stays as it is."""
    level = {what: {name: nulls[name][what].mean for name in ("op", "pp")} for what in ("d_ece", "min_cllr")}
    normalized = zebra.compute_normalized_forms(
        points["oo"]["d_ece"], level["d_ece"]["op"], level["d_ece"]["pp"],
        points["oo"]["min_cllr"], level["min_cllr"]["op"], level["min_cllr"]["pp"],
    )  # fmt: skip
    return {key: float(value) for key, value in asdict(normalized).items()}


@_quiet
def per_speaker(
    scores: Scores,
    *,
    intervals: bool = True,
    resamples: int = 200,
    seed: int = 0,
    draws: int = 40,
    eer_method: str = "rocch",
) -> dict[str, list[Estimate]]:
    """EER, D_ECE, l_w and other measures that have `per_speaker`, of each enrolled speaker's trials. The worst
    protected, with the highest D_ECE, come first.

    With one person's few trials all measures are biased: read them beside their null level. Resamples draw that
    person's target trials one by one, and the impostor trials by test speaker.
    """
    if scores.enroll_speaker is None or scores.test_speaker is None:
        raise InputError("speaker labels are required", path=scores.source or None, fix="give the trial key")
    functions = {name: function for name, function in score_functions(eer_method).items() if function.per_speaker}
    order = np.argsort(scores.enroll_speaker, kind="stable")
    bounds = np.flatnonzero(np.diff(scores.enroll_speaker[order], prepend=-1, append=-1))
    rows: list[tuple[float, dict[str, Estimate]]] = []
    for start, stop in pairwise(bounds):
        mine = order[start:stop]
        labels = scores.is_target[mine]
        if labels.all() or not labels.any():
            continue
        part = scores.take(mine)
        name = scores.names[int(part.enroll_speaker[0])] if scores.names else str(int(part.enroll_speaker[0]))  # type: ignore[index]
        data = SortedScores(*part.ordered)
        nulls = null_levels(part, functions, draws=draws, seed=seed)
        spread = None
        if intervals:
            people = _utterances_as_people(part)
            spread = resampling.replicates(people, data, functions, resamples=resamples, seed=seed)
        row = {}
        for what, function in functions.items():
            point = function_estimate(what, function, data, part.counts, spread=spread, null=nulls.get(what))
            tag = {key: fact for key, fact in point.extra.items() if key == "tag"}
            row[f"{what}_per_speaker"] = point.with_(name=f"{what}_per_speaker", at={"speaker": name}, extra=tag)
        rows.append((data.of(zebra.DEce()), row))
    if not rows:
        raise InputError("no enrolled speaker has trials of both classes", path=scores.source or None)
    rows.sort(key=lambda item: -item[0])
    return {name: [row[name] for _, row in rows] for name in rows[0][1]}


def _utterances_as_people(part: Scores) -> Scores:
    """One person's target trials are all of one pair of people: what varies is the utterance, which is resampled."""
    assert part.test_speaker is not None
    enroll = np.zeros(len(part), np.int64)
    test = np.array(part.test_speaker) + len(part)
    enroll[part.is_target] = np.arange(int(part.is_target.sum())) + 1
    test[part.is_target] = enroll[part.is_target]
    enroll[~part.is_target] = test[~part.is_target]
    return Scores(part.values, part.is_target, enroll, test)
