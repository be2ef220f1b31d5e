"""The method of the adaptive attacker, who has the anonymizer and uses it."""

from veilmeter.attacks.adaptive.families import FAMILIES
from veilmeter.attacks.adaptive.fitting import Adaptive, fit_adaptive
from veilmeter.attacks.adaptive.own_data import OwnData, View, own_data

__all__ = ["FAMILIES", "Adaptive", "OwnData", "View", "fit_adaptive", "own_data"]
