"""All measures of a set of scores on one page, each an `Estimate`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, get_args

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.engine import Engine
from veilmeter.core.estimate import Estimate
from veilmeter.data.scores import Scores
from veilmeter.metrics.calibration import Pav, group, pav_of_runs, runs
from veilmeter.metrics.registry import MEASURES, estimate_of
from veilmeter.metrics.scores import resampling, verification, zebra
from veilmeter.metrics.scores.blocks import page_of, values_of_pav
from veilmeter.metrics.scores.null import Null, null_levels
from veilmeter.metrics.scores.resampling import Replicates, Shape

Floats = NDArray[np.float64]
NULL_ANYWAY = 200_000  # trials up to which the null level costs next to nothing
# Ends of a measure's range that a sample may reach by luck, and measures that are fitted to the trials they measure.
_SURE = {"eer": (0.0, 100.0), "tpr@fpr": (0.0, 100.0), "min_cllr": (0.0,), "d_ece": (zebra.MAX_D_ECE,), "d_sys": (1.0,)}
_OVERFITS = ("min_cllr", "d_ece", "d_sys")
EER_METHODS: tuple[str, ...] = get_args(verification.EerMethod)
NAMES = (
    "eer", "cllr", "min_cllr", "calibration_loss", "d_ece", "l_w", "d_sys",
    *map(verification.tpr_name, verification.LOW_FPRS),
)  # fmt: skip


def shape_of(name: str) -> Shape:
    """How a measure of scores behaves under resampling."""
    family = MEASURES.family(name)
    entry = MEASURES[family]
    return Shape(entry.low, entry.high, overfits=family in _OVERFITS, sure=_SURE.get(family, ()))


@dataclass(frozen=True, eq=False, slots=True)
class SortedScores:
    """Sorted scores and what was computed of them once."""

    targets: Floats
    impostors: Floats
    pav: Pav
    flipped_d_ece: float


def prepare(targets: Floats, impostors: Floats) -> SortedScores:
    """Sort, group and calibrate once, in both orientations."""
    return prepare_ordered(np.sort(targets), np.sort(impostors))


def prepare_ordered(t: Floats, n: Floats) -> SortedScores:
    """The same of scores that are in rising order already, as `Scores.ordered` has them."""
    sorted_runs = runs(t, n)
    return SortedScores(t, n, pav_of_runs(sorted_runs, t, n), zebra.d_ece_of_counts(*sorted_runs.pooled(flipped=True)))


def values(data: SortedScores, eer_method: str = "rocch") -> dict[str, float]:
    """The value of every measure in `NAMES`."""
    t, n = data.targets, data.impostors
    page = page_of(
        data.pav,
        cllr=verification.cllr_sorted(t, n),
        d_sys=verification.d_sys_sorted(t, n),
        low={verification.tpr_name(fpr): verification.tpr_at_fpr_sorted(t, n, fpr) for fpr in verification.LOW_FPRS},
    )
    return page if eer_method == "rocch" else {**page, "eer": verification.eer_sorted(t, n, eer_method)}


@np.errstate(over="ignore", invalid="ignore")  # scores near the largest float have no finite sums
def measure_scores(
    scores: Scores,
    *,
    intervals: bool = True,
    resamples: int = 1000,
    seed: int = 0,
    eer_method: str = "rocch",
    engine: Engine | None = None,
) -> dict[str, Estimate]:
    """Every score-based measure by name: eer, cllr, min_cllr, calibration_loss, d_ece, l_w, d_sys, tpr@fpr=...

    Without `intervals` large sets get no null level either: what remains is a few sorts' worth of time. Resamples of
    large sets run on `engine`, if there is one.

    >>> found = measure_scores(Scores.from_arrays([2.0, 3.0], [0.0, 1.0]), intervals=False)
    >>> round(found["d_ece"].value, 4), found["l_w"].extra["tag"]
    (0.7213, 'A')
    """
    data = prepare_ordered(*scores.ordered)
    measured = values(data, eer_method)
    spread = _spread(scores, data, resamples if intervals else 0, seed, eer_method, engine)
    nulls: Mapping[str, Null] = {}
    if intervals or len(scores) <= NULL_ANYWAY:
        nulls = null_levels(scores, seed=seed, eer_method=eer_method)
    extras = extra_facts(data, measured)
    return {
        name: score_estimate(name, value, scores, method=method_of(name, eer_method, len(data.impostors)),
                             spread=spread, null=nulls.get(name), extra=extras.get(name))
        for name, value in measured.items()
    }  # fmt: skip


@np.errstate(over="ignore", invalid="ignore")
def eer_estimate(
    scores: Scores, *, intervals: bool = True, resamples: int = 200, seed: int = 0, engine: Engine | None = None
) -> Estimate:
    """The EER by itself, as `measure_scores` has it; what chance gives is known without dealing labels: nearly 50."""
    data = prepare_ordered(*scores.ordered)
    spread = _spread(scores, data, resamples if intervals else 0, seed, "rocch", engine, eer_alone=True)
    return score_estimate("eer", values_of_pav(data.pav)["eer"], scores, method="rocch", spread=spread)


def estimates_of_stream(measured: dict[str, float], counts: dict[str, int], flipped: float) -> dict[str, Estimate]:
    """The page of what `streaming.measure_stream` found: values without intervals."""
    tag = zebra.tag(measured["l_w"])
    extras: dict[str, dict[str, Any]] = {
        "l_w": {"tag": tag, "sentence": zebra.sentence(tag)},
        "d_ece": {"flipped": flipped, "inverted": flipped > measured["d_ece"]},
    }
    nobody = Scores.from_arrays([1.0], [0.0])
    return {
        name: score_estimate(name, value, nobody, method=method_of(name, "rocch", counts["impostors"]),
                   extra=extras.get(name)).with_(n=counts)
        for name, value in measured.items()
    }  # fmt: skip


def one_target_person(scores: Scores) -> bool:
    """Whether all target trials are of one person: then nothing says how much people differ, and no interval can."""
    if scores.enrol_speaker is None:
        return False
    people = scores.enrol_speaker[scores.is_target]
    return bool((people == people[0]).all())


def _spread(
    scores: Scores,
    data: SortedScores,
    resamples: int,
    seed: int,
    eer_method: str,
    engine: Engine | None,
    *,
    eer_alone: bool = False,
) -> Replicates | None:
    """What intervals are made of; nothing where none are wanted, or where nothing can be said."""
    if not resamples or one_target_person(scores):
        return None
    return replicates_of(scores, data, resamples, seed, eer_method, engine, eer_alone=eer_alone)


def replicates_of(
    scores: Scores,
    data: SortedScores,
    resamples: int,
    seed: int,
    eer_method: str = "rocch",
    engine: Engine | None = None,
    *,
    eer_alone: bool = False,
) -> Replicates:
    edges = verification.d_sys_edges(data.targets, data.impostors)
    groups = group(data.targets, data.impostors)
    return resampling.replicates(
        scores,
        data.impostors,
        groups,
        edges,
        resamples=resamples,
        seed=seed,
        eer_method=eer_method,
        eer_alone=eer_alone,
        engine=engine,
    )


def method_of(name: str, eer_method: str, impostors: int) -> str:
    if name.startswith("tpr@"):  # fewer impostors than 1/FPR can't show so low a rate
        allowed = int(float(name.split("=")[1]) * impostors + 1e-9)
        return f"{allowed:,} false alarm{'s' * (allowed > 1)}" if allowed else "no false alarm"
    fixed = {"d_ece": "PAV", "l_w": "PAV, Laplace", "min_cllr": "PAV", "cllr": "scores as LLRs", "d_sys": "histogram",
             "calibration_loss": "Cllr - min Cllr"}  # fmt: skip
    return eer_method if name == "eer" else fixed.get(name, "")


def extra_facts(data: SortedScores, measured: dict[str, float]) -> dict[str, dict[str, Any]]:
    """ZEBRA's tag with its sentence, and the other orientation."""
    tag = zebra.tag(measured["l_w"])
    return {
        "l_w": {"tag": tag, "sentence": zebra.sentence(tag)},
        "d_ece": {"flipped": data.flipped_d_ece, "inverted": data.flipped_d_ece > measured["d_ece"]},
    }


class Counted(Protocol):
    """Knows how many trials and people an estimate rests on."""

    @property
    def counts(self) -> dict[str, int]: ...


def score_estimate(
    name: str,
    value: float,
    scores: Counted,
    *,
    method: str = "",
    spread: Replicates | None = None,
    null: Null | None = None,
    extra: Mapping[str, Any] | None = None,
    at: Mapping[str, float | int | str] | None = None,
    label: str = "",
) -> Estimate:
    """One estimate with the words of the table of measures."""
    interval = None
    if name == "d_sys" and scores.counts["targets"] < 2 * verification.TARGETS_A_BIN:
        spread = None  # a single bin says 0 whatever the scores are
    if spread is not None and name in spread.samples:
        interval = spread.interval(name, value, shape_of(name))
        if interval is not None and method == "rocch":  # the hull never rises above the diagonal
            interval = (interval[0], min(interval[1], 50.0))
    return estimate_of(
        name,
        value,
        label=label,
        method=method,
        interval=interval,
        null=None if null is None else null.mean,
        null_range=None if null is None else null.range,
        n=scores.counts,
        at=at or {},
        extra=extra or {},
    )


def eers_by(scores: Scores, rules: Iterable[str]) -> dict[str, Estimate]:
    """The EER by other rules than veilmeter's own, each under a name of its own: `eer_speechbrain`."""
    counts = {"targets": len(scores.targets), "impostors": len(scores) - len(scores.targets)}
    return {
        f"eer_{rule}": estimate_of(
            f"eer_{rule}",
            verification.eer_sorted(*scores.ordered, rule),
            method=f"the rule {rule}",
            n=counts,
        )
        for rule in rules
    }
