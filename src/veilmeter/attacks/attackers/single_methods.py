"""Each method of the adaptive attacker as a separate attacker, run on request."""

from __future__ import annotations

from dataclasses import replace

from veilmeter.attacks.adaptive.families import FAMILIES, Family
from veilmeter.attacks.attacker import PlainWords
from veilmeter.attacks.attackers.adaptive import AdaptiveAttacker

# Methods that would share a name with an attacker of the papers, which does not center vectors.
CENTERED = {"lazy": "centered-lazy", "ignorant": "centered-ignorant"}


class SingleMethod(AdaptiveAttacker):
    order = 200
    has = replace(AdaptiveAttacker.has, inversion="by one method")
    color = ""
    default = False

    def __init__(self, method: Family) -> None:
        self.name = CENTERED.get(method.name, method.name)
        self.about = method.about
        self.words = PlainWords(f"someone who {method.about}")
        self.families = (method.name,)


ATTACKERS = tuple(SingleMethod(method) for _, method in FAMILIES.items())
