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
from veilmeter.metrics.scores import resampling, zebra
from veilmeter.metrics.scores.null import Null, null_levels
from veilmeter.metrics.scores.resampling import Replicates
from veilmeter.metrics.scores.summary import prepare_ordered, replicates_of, score_estimate, values

Floats = NDArray[np.float64]
_quiet = np.errstate(over="ignore", invalid="ignore")  # scores near the largest float have no finite sums


@_quiet
def calibrated_on(
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
        name: score_estimate(name, value, scores, method=f"{words[name]}, second run", spread=spread,
                             null=Null(0.0, (0.0, 0.0)))
        .with_(null_range=None)
        for name, value in losses.items()
    }  # fmt: skip


@dataclass(frozen=True, eq=False, slots=True)
class SetFigures:
    """What a comparison of sets needs of one of them: its values, chance, resamples, and what they rest on."""

    values: Mapping[str, float]
    nulls: Mapping[str, Null]
    spread: Replicates | None
    counts: dict[str, int]


@_quiet
def set_figures(
    scores: Scores, *, intervals: bool = True, resamples: int = 1000, seed: int = 0, engine: Engine | None = None
) -> SetFigures:
    """Of one set; the scores themselves are not needed afterwards."""
    data = prepare_ordered(*scores.ordered)
    spread = replicates_of(scores, data, resamples, seed, engine=engine) if intervals else None
    return SetFigures(values(data), null_levels(scores, seed=seed), spread, scores.counts)


def compared(
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
    return compared_figures(*figures)


@_quiet
def compared_figures(original: SetFigures, mixed: SetFigures, protected: SetFigures) -> dict[str, Estimate]:
    """The same from what was measured of each set.

    In a resample the same people are drawn for all three sets, so that what they share cancels.
    """
    sets = {"oo": original, "op": mixed, "pp": protected}
    out: dict[str, Estimate] = {}
    for name, figures in sets.items():
        for what in ("d_ece", "min_cllr"):
            value, null = figures.values[what], figures.nulls[what]
            estimate = score_estimate(what, value, figures, method="PAV", spread=figures.spread, null=null)
            out[f"{what}_{name}"] = estimate.with_(name=f"{what}_{name}", label=f"{estimate.label} {name.upper()}")
    points = {name: figures.values for name, figures in sets.items()}
    relative = asdict(
        _normalized({name: {k: np.float64(v) for k, v in point.items()} for name, point in points.items()})
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
        replicated = {key: np.asarray(column, np.float64) for key, column in asdict(_normalized(samples)).items()}
        together = Replicates(replicated, people.pop(), spreads["oo"].unit)
    chance = _chance(points, {name: figures.nulls for name, figures in sets.items()})
    for name, value in relative.items():
        whose = mixed if name.endswith("op_oo") else protected
        level = Null(chance[name], (0.0, 0.0))
        estimate = score_estimate(name, float(value), whose, method=_EQUATIONS[name], spread=together, null=level)
        out[name] = estimate.with_(null_range=None)
    return out


_EQUATIONS = {"d_ece_op_oo": "eq. 17", "min_cllr_op_oo": "eq. 18", "g_d_ece": "eq. 19", "g_min_cllr": "eq. 20"}


def _normalized(sets: Mapping[str, Mapping[str, Floats | np.float64]]) -> zebra.NormalizedForms:
    arguments = [sets[name][what] for what in ("d_ece", "min_cllr") for name in ("oo", "op", "pp")]
    return zebra.normalized(*arguments)


def _chance(points: Mapping[str, Mapping[str, float]], nulls: Mapping[str, Mapping[str, Null]]) -> dict[str, float]:
    """What the four give when OP, or PP, carries no information and OO is as it is."""
    level = {what: {name: nulls[name][what].mean for name in ("op", "pp")} for what in ("d_ece", "min_cllr")}
    normalized = zebra.normalized(
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
    """EER, D_ECE and l_w of each enrolled speaker's trials, the worst protected (highest D_ECE) first.

    With one person's few trials all measures are biased: read them beside their null level. Resamples draw that
    person's target trials one by one, and the impostor trials by test speaker.
    """
    if scores.enrol_speaker is None or scores.test_speaker is None:
        raise InputError("nobody knows whose trials these are", path=scores.source or None, fix="give the trial key")
    order = np.argsort(scores.enrol_speaker, kind="stable")
    bounds = np.flatnonzero(np.diff(scores.enrol_speaker[order], prepend=-1, append=-1))
    rows: list[tuple[float, dict[str, Estimate]]] = []
    for start, stop in pairwise(bounds):
        mine = order[start:stop]
        labels = scores.is_target[mine]
        if labels.all() or not labels.any():
            continue
        part = scores.take(mine)
        name = scores.names[int(part.enrol_speaker[0])] if scores.names else str(int(part.enrol_speaker[0]))  # type: ignore[index]
        data = prepare_ordered(*part.ordered)
        measured = values(data, eer_method)
        nulls = null_levels(part, draws=draws, seed=seed, eer_method=eer_method)
        spread = None
        if intervals:
            # One person's target trials are all of one pair of people: what varies is the utterance.
            enrol = np.zeros(len(part), np.int64)
            test = np.array(part.test_speaker) + len(part)
            enrol[part.is_target] = np.arange(int(part.is_target.sum())) + 1
            test[part.is_target] = enrol[part.is_target]
            enrol[~part.is_target] = test[~part.is_target]
            people = Scores(part.values, part.is_target, enrol, test)
            spread = replicates_of(people, data, resamples, seed, eer_method)
        tag = zebra.tag(measured["l_w"])
        row = {
            f"{what}_per_speaker": score_estimate(
                what, measured[what], part, method=method, spread=spread, null=nulls.get(what), at={"speaker": name},
                extra={"tag": tag} if what == "l_w" else None,
            ).with_(name=f"{what}_per_speaker")
            for what, method in (("d_ece", "PAV"), ("l_w", "PAV, Laplace"), ("eer", eer_method))
        }  # fmt: skip
        rows.append((measured["d_ece"], row))
    if not rows:
        raise InputError("no enrolled speaker has trials of both classes", path=scores.source or None)
    rows.sort(key=lambda item: -item[0])
    return {name: [row[name] for _, row in rows] for name in rows[0][1]}
