"""Attacks that undo an anonymizer in the space of embeddings (Champion et al. 2021, paper 002)."""

from veilmeter.inversion.attack import Attack, Settings, attack, learn
from veilmeter.inversion.maps import Alignment, InversionMap, load_map
from veilmeter.inversion.procrustes import procrustes
from veilmeter.inversion.wasserstein import Schedule, wasserstein_procrustes

__all__ = [
    "Alignment",
    "Attack",
    "InversionMap",
    "Schedule",
    "Settings",
    "attack",
    "learn",
    "load_map",
    "procrustes",
    "wasserstein_procrustes",
]
