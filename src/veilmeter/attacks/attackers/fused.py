"""The adaptive attacker with several extractors at once."""

from __future__ import annotations

from dataclasses import replace

from veilmeter.attacks.attacker import EXTRACTORS, KNOWN_PEOPLE, PlainWords
from veilmeter.attacks.attackers.adaptive import AdaptiveAttacker
from veilmeter.attacks.material import Material
from veilmeter.core.findings import Finding


class Fused(AdaptiveAttacker):
    name = "fused"
    order = 100
    about = "does what the adaptive attacker does with several extractors at once, and weighs what each of them hears"
    has = replace(AdaptiveAttacker.has, extractor="several, trained on original speech")
    words = PlainWords(
        "the same, with several recognizers at once, of the voice or of words and rhythm",
        f"your anonymizer, {KNOWN_PEOPLE}",
        "trains models",
        "days",
    )
    color = ""
    knows = AdaptiveAttacker.knows | {EXTRACTORS}
    default = False
    several = True

    def missing(self, material: Material) -> Finding | str:
        if len(material.names) > 1 and not material.views:
            return Finding("one_extractor")
        return super().missing(material)


ATTACKER = Fused()
