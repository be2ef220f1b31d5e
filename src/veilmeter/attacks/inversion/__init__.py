"""Attacks that undo an anonymizer in the space of embeddings (Champion et al. 2021, paper 002)."""

from veilmeter.attacks.inversion.attack import (
    Alignment,
    InversionMap,
    InversionSettings,
    Restoration,
    attack,
    identity_map,
    learn,
    learn_seeds,
    load_map,
    objective,
)
from veilmeter.attacks.inversion.measures import Evaluation, evaluate
from veilmeter.attacks.inversion.procrustes import Schedule, procrustes, wasserstein_procrustes
from veilmeter.metrics.identification import identify

__all__ = [
    "Alignment",
    "Evaluation",
    "InversionMap",
    "InversionSettings",
    "Restoration",
    "Schedule",
    "attack",
    "evaluate",
    "identify",
    "identity_map",
    "learn",
    "learn_seeds",
    "load_map",
    "objective",
    "procrustes",
    "wasserstein_procrustes",
]
