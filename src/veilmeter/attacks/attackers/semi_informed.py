"""The semi-informed attacker of Vauquier et al.: adapts to speech that a similar system anonymized."""

from __future__ import annotations

from veilmeter.attacks.attacker import (
    ANONYMIZER,
    KNOWN_PEOPLE,
    ORIGINALS,
    OTHER_PEOPLE,
    OWN_COPIES,
    SIMILAR_SYSTEM,
    Equipment,
    PlainWords,
)
from veilmeter.attacks.backends.scoring import Recipe
from veilmeter.attacks.material import Desk, NotPossibleError
from veilmeter.attacks.vector_attackers import AdaptedAttacker
from veilmeter.core.colors import ORANGE
from veilmeter.core.findings import Finding
from veilmeter.data.corpus import SpeechRole


class SemiInformed(AdaptedAttacker):
    name = "semi-informed"
    order = 30
    about = (
        "anonymizes the speech of known people with the same system, "
        "and adapts to speech anonymized by a similar system"
    )
    vauquier2025 = "semi-informed"
    training = SpeechRole.TRAIN_SIMILAR
    has = Equipment(
        enrollment=OWN_COPIES,
        extractor="adapted to a similar system",
        adaptation="similar system",
    )
    words = PlainWords(
        "someone who has a similar anonymizer and trains a recognizer on its output",
        f"a similar anonymizer, {KNOWN_PEOPLE}, {OTHER_PEOPLE}",
        "trains a model",
        "days",
    )
    color = ORANGE
    knows = frozenset({ORIGINALS, ANONYMIZER, SIMILAR_SYSTEM})
    falls_back = False  # its figures say what adapting to the wrong system is worth, even if that is less than nothing

    def train_without_speech(self, desk: Desk, kind: str) -> tuple[Recipe, Finding]:
        raise NotPossibleError(Finding("no_similar_speech"))


ATTACKER = SemiInformed()
