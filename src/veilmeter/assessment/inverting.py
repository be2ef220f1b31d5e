"""Inversion attacks in all their variants (Champion et al. 2021), beside those that are attackers of their own.

What is known is what the attacker can make: the enrolment recordings, clear and anonymized. The variants are cheap, and
a real attacker would try them all, so the strongest is the worst case.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from veilmeter.attacks.inversion import evaluate, identity_map, learn
from veilmeter.attacks.inversion.attack import Settings
from veilmeter.attacks.inversion.measures import Evaluation
from veilmeter.attacks.inversion.needs import Experiment, learning_curve, permutation_null
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.registry import measure

PCA = 70  # as in the paper
Values = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Known:
    """Enrolment and trials, clear and anonymized; of one extractor, or the anonymized side of the attacker's own."""

    clear_enrolment: Embeddings
    anonymized_enrolment: Embeddings
    clear_trials: Embeddings
    anonymized_trials: Embeddings


def inversion_piece(
    known: Known, others: Mapping[str, Known], intervals: bool, seed: int
) -> tuple[Values, dict[str, Any]]:
    """Procrustes with and without PCA, centring and a map for each gender; the anonymized side also as the attackers
    with an extractor of their own see it; and, as the paper has them, the comparisons without any map."""
    found: dict[str, list[Values]] = {}
    oracle: dict[str, list[Values]] = {}
    for extractor, one in {"": known, **others}.items():
        if one.clear_enrolment.dimension != one.anonymized_enrolment.dimension:
            continue
        for settings in _variants(one, seed):
            try:
                learnt = learn(one.clear_enrolment, one.anonymized_enrolment, settings)
            except InputError:
                continue
            done = evaluate(learnt, one.anonymized_trials, one.clear_trials, one.clear_enrolment)
            _collect(found, done, _at("procrustes", settings, extractor), intervals)
        best = Settings(pca=_pca(one.clear_trials), by=_by(one), seed=seed)
        learnt = learn(one.clear_trials, one.anonymized_trials, best)
        done = evaluate(learnt, one.anonymized_trials, one.clear_trials, one.clear_enrolment)
        _collect(oracle, done, _at("procrustes, oracle", best, extractor), intervals)
    values: Values = {"estimates": found, "oracle": {"estimates": oracle}, "baselines": _baselines(known, others)}
    if not found:
        raise InputError("no inversion could be learnt")
    return values, {}


def _variants(one: Known, seed: int) -> list[Settings]:
    kinds = [Settings(seed=seed), Settings(center=True, seed=seed), Settings(pca=_pca(one.clear_enrolment), seed=seed)]
    if _by(one):
        kinds += [Settings(by="gender", seed=seed), Settings(pca=_pca(one.clear_enrolment), by="gender", seed=seed)]
    return kinds


def _pca(embeddings: Embeddings) -> int:
    """70 as in the paper, or what so few vectors allow (of either gender)."""
    return max(1, min(PCA, embeddings.dimension, len(embeddings) // 3))


def _by(one: Known) -> str:
    sides = (one.clear_enrolment, one.anonymized_enrolment, one.clear_trials, one.anonymized_trials)
    genders = [side.attributes.get("gender") for side in sides]
    if any(column is None or not all(column) for column in genders):
        return ""
    values = [set(column) for column in genders if column is not None]
    return "gender" if all(one == values[0] for one in values) and len(values[0]) > 1 else ""


def _at(attack: str, settings: Settings, extractor: str) -> dict[str, str | int]:
    at: dict[str, str | int] = {"attack": attack, "pca": settings.pca or 0}
    if settings.center:
        at["centred"] = "yes"
    if settings.by:
        at["by"] = settings.by
    if extractor:
        at["extractor"] = extractor
    return at


def _collect(found: dict[str, list[Values]], done: Evaluation, at: Mapping[str, str | int], intervals: bool) -> None:
    rocch, roc = done.eer(), done.eer(method="roc", fold=True)
    for group in done.groups:
        where = {**at, **done.at(group)}
        for name, one in (("top1", group.whose), ("top1_clear", group.where)):
            found.setdefault(name, []).append(one.estimate(name, intervals=intervals, at=where).to_json())
        if group.name in rocch:
            found.setdefault("eer", []).append(_eer(rocch[group.name], roc[group.name], where).to_json())


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
        method="ROCCH, plain means as enrolment models",
        at=at,
        extra={"roc_folded": roc},
    )


def _baselines(known: Known, others: Mapping[str, Known]) -> list[Values]:
    """Lines 1 to 4 of Table 2: no map, plain means of the vectors as they are, cosine."""
    same = identity_map(known.clear_enrolment.dimension)
    rows = [
        ("original", known.clear_enrolment, known.clear_trials, ""),
        ("ignorant", known.clear_enrolment, known.anonymized_trials, ""),
        ("lazy-informed", known.anonymized_enrolment, known.anonymized_trials, ""),
        *((name, one.anonymized_enrolment, one.anonymized_trials, name) for name, one in others.items()),
    ]
    found = []
    for attacker, enrolment, trials, extractor in rows:
        if enrolment.dimension != trials.dimension:
            continue
        done = evaluate(same if not extractor else identity_map(enrolment.dimension), trials, None, enrolment)
        rocch, roc = done.eer(), done.eer(method="roc", fold=True)
        plain = done.eer(method="roc")
        for group in done.groups:
            if group.name in rocch:
                at = {"attack": "none", "attacker": attacker, **done.at(group)}
                one = _eer(rocch[group.name], roc[group.name], at).to_json()
                found.append({**one, "roc": plain[group.name]})
    return found


def curve_piece(known: Known, seed: int, repeats: int = 3, shuffles: int = 10) -> tuple[Values, dict[str, Any]]:
    """How many known pairs the attack needs, and what it gives when the pairs are shuffled."""
    experiment = Experiment(
        known.clear_enrolment,
        known.anonymized_enrolment,
        known.clear_trials,
        known.anonymized_trials,
        Settings(center=True, seed=seed),
    )
    curve = learning_curve(experiment, repeats=repeats, seed=seed)
    null = permutation_null(experiment, shuffles=shuffles, seed=seed)
    return {
        "learning_curve": [one.to_json() for one in curve.get("top1", [])],
        "null": {name: {"mean": mean, "range": list(ends)} for name, (mean, ends) in null.items()},
    }, {}
