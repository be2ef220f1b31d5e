"""Inversion attacks in all their variants (Champion et al. 2021), beside those that are attackers of their own.

What is known is what the attacker can make: the enrollment recordings, clear and anonymized. The variants are cheap,
and a real attacker would try them all, so the strongest is the worst case.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from veilmeter.assessment.tasks import Arrays, TaskResult
from veilmeter.attacks.inversion import evaluate, identity_map, learn
from veilmeter.attacks.inversion.attack import InversionSettings
from veilmeter.attacks.inversion.maps import InversionMap
from veilmeter.attacks.inversion.measures import Evaluation
from veilmeter.attacks.inversion.needs import InversionData, learning_curve, permutation_null
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.estimates import Estimates
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.registry import measure
from veilmeter.results.model import Part

PCA = 70  # as in the paper
LOOKED_UP, ON_THE_CURVE = 2000, 500  # trials of a group at most: a rate of so many is known to a percent or two


@dataclass(frozen=True, eq=False)
class Known:
    """Enrollment and trials, clear and anonymized; of one extractor, or the anonymized side of the attacker's own."""

    clear_enrollment: Embeddings
    anonymized_enrollment: Embeddings
    clear_trials: Embeddings
    anonymized_trials: Embeddings


def inversion_part(known: Known, others: Mapping[str, Known], intervals: bool, seed: int) -> tuple[TaskResult, Arrays]:
    """Procrustes with and without PCA, centering and a map for each gender; the anonymized side also as the attackers
    with an extractor of their own see it; and, as the paper has them, the comparisons without any map."""
    measured: list[Estimate] = []
    oracle: list[Estimate] = []
    for extractor, sides in {"": known, **others}.items():
        if sides.clear_enrollment.dimension != sides.anonymized_enrollment.dimension:
            continue
        for settings in _variants(sides, seed):
            try:
                learned = learn(sides.clear_enrollment, sides.anonymized_enrollment, settings)
            except InputError:
                continue
            done = _evaluate(learned, sides)
            measured += _points(done, _at("procrustes", settings, extractor), intervals)
        best = InversionSettings(pca=_pca(sides.clear_trials), by=_by(sides), seed=seed)
        learned = learn(sides.clear_trials, sides.anonymized_trials, best)
        done = _evaluate(learned, sides)
        oracle += _points(done, _at("procrustes, oracle", best, extractor), intervals)
    if not measured:
        raise InputError("no inversion could be learned")
    part = Part(
        name="inversion",
        estimates=_by_name(measured),
        reference=_by_name([*oracle, *_baselines(known, others)]),
    )
    return TaskResult(part=part, warnings=_drawn(known, LOOKED_UP)), {}


def _drawn(known: Known, most: int) -> tuple[str, ...]:
    """What to say where not all trials are looked up."""
    trials = len(known.anonymized_trials)
    if trials <= most:
        return ()
    return (f"of the {trials:,} trial recordings {most:,} of each group at most were looked up, among all",)


def _evaluate(learned: InversionMap, sides: Known) -> Evaluation:
    return evaluate(learned, sides.anonymized_trials, sides.clear_trials, sides.clear_enrollment, most=LOOKED_UP)


def _by_name(points: Sequence[Estimate]) -> Estimates:
    """Measure by measure, in the order in which each was first met."""
    names = dict.fromkeys(point.name for point in points)
    return Estimates(point for name in names for point in points if point.name == name)


def _variants(known: Known, seed: int) -> list[InversionSettings]:
    kinds = [
        InversionSettings(seed=seed),
        InversionSettings(center=True, seed=seed),
        InversionSettings(pca=_pca(known.clear_enrollment), seed=seed),
    ]
    if _by(known):
        kinds += [
            InversionSettings(by="gender", seed=seed),
            InversionSettings(pca=_pca(known.clear_enrollment), by="gender", seed=seed),
        ]
    return kinds


def _pca(embeddings: Embeddings) -> int:
    """70 as in the paper, or what so few vectors allow (of either gender)."""
    return max(1, min(PCA, embeddings.dimension, len(embeddings) // 3))


def _by(known: Known) -> str:
    sides = (known.clear_enrollment, known.anonymized_enrollment, known.clear_trials, known.anonymized_trials)
    genders = [side.attributes.get("gender") for side in sides]
    if any(column is None or not all(column) for column in genders):
        return ""
    values = [set(column) for column in genders if column is not None]
    return "gender" if all(occurring == values[0] for occurring in values) and len(values[0]) > 1 else ""


def _at(attack: str, settings: InversionSettings, extractor: str) -> dict[str, str | int]:
    at: dict[str, str | int] = {"attack": attack, "pca": settings.pca or 0}
    if settings.center:
        at["centered"] = "yes"
    if settings.by:
        at["by"] = settings.by
    if extractor:
        at["extractor"] = extractor
    return at


def _points(done: Evaluation, at: Mapping[str, str | int], intervals: bool) -> list[Estimate]:
    rocch, roc = done.eer(), done.eer(method="roc", fold=True)
    points: list[Estimate] = []
    for group in done.groups:
        where = {**at, **done.at(group)}
        for name, ranked in (("top1", group.whose), ("top1_clear", group.where)):
            points.append(ranked.estimate(name, intervals=intervals, at=where))
        if group.name in rocch:
            points.append(_eer(rocch[group.name], roc[group.name], where))
    return points


def _eer(rocch: float, roc: float, at: Mapping[str, str | int | float]) -> Estimate:
    """ROCCH, unfolded; beside it the paper's way of computing it."""
    entry = measure("eer")
    return Estimate(
        name="eer",
        label=entry.label,
        value=rocch,
        unit=entry.unit,
        better=entry.better,
        null=50.0,
        method="ROCCH, plain means as enrollment models",
        at=at,
        extra={"roc_folded": roc},
    )


def _baselines(known: Known, others: Mapping[str, Known]) -> list[Estimate]:
    """Lines 1 to 4 of Table 2: no map, plain means of the vectors as they are, cosine."""
    rows = [
        ("original", known.clear_enrollment, known.clear_trials),
        ("ignorant", known.clear_enrollment, known.anonymized_trials),
        ("lazy-informed", known.anonymized_enrollment, known.anonymized_trials),
        *((name, sides.anonymized_enrollment, sides.anonymized_trials) for name, sides in others.items()),
    ]
    points = []
    for attacker, enrollment, trials in rows:
        if enrollment.dimension != trials.dimension:
            continue
        done = evaluate(identity_map(enrollment.dimension), trials, None, enrollment, most=LOOKED_UP)
        rocch, plain = done.eer(), done.eer(method="roc")
        roc = {name: min(percent, 100 - percent) for name, percent in plain.items()}
        for group in done.groups:
            if group.name in rocch:
                at = {"attack": "none", "attacker": attacker, **done.at(group)}
                point = _eer(rocch[group.name], roc[group.name], at)
                points.append(point.with_(extra={**point.extra, "roc": plain[group.name]}))
    return points


def curve_part(known: Known, seed: int, repeats: int = 3, shuffles: int = 10) -> tuple[TaskResult, Arrays]:
    """How many known pairs the attack needs, and what it gives when the pairs are shuffled."""
    experiment = InversionData(
        known.clear_enrollment,
        known.anonymized_enrollment,
        known.clear_trials,
        known.anonymized_trials,
        InversionSettings(center=True, seed=seed),
        ON_THE_CURVE,
    )
    curve = learning_curve(experiment, repeats=repeats, seed=seed)
    null = permutation_null(experiment, shuffles=shuffles, seed=seed)
    details = {
        "learning_curve": [point.to_json() for point in curve.get("top1", [])],
        "null": {name: {"mean": mean, "range": list(ends)} for name, (mean, ends) in null.items()},
    }
    return TaskResult(part=Part(name="inversion", details=details), warnings=_drawn(known, ON_THE_CURVE)), {}
