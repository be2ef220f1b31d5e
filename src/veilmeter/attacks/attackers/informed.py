"""The informed attacker: adapts to speech that the same system anonymized. The challenges call it semi-informed."""

from __future__ import annotations

from veilmeter.attacks.attacker import (
    ADAPTATION,
    ANONYMIZER,
    KNOWN_PEOPLE,
    ORIGINALS,
    OTHER_PEOPLE,
    OWN_COPIES,
    Equipment,
    PlainWords,
)
from veilmeter.attacks.backends.scoring import LEAST_SPEAKERS, Recipe
from veilmeter.attacks.material import Desk, NotPossibleError
from veilmeter.attacks.vector_attackers import AdaptedAttacker
from veilmeter.core.colors import RED
from veilmeter.core.findings import Finding
from veilmeter.data.corpus import SpeechRole


class Informed(AdaptedAttacker):
    name = "informed"
    order = 40
    about = (
        "anonymizes the speech of known people with the same system, "
        "and adapts to speech that the same system anonymized"
    )
    aliases = ("vpc-semi-informed", "retrained")
    voiceprivacy = "semi-informed"
    vauquier2025 = "informed"
    training = SpeechRole.TRAIN_ANONYMIZED
    has = Equipment(
        enrollment=OWN_COPIES,
        extractor="adapted to the same system",
        adaptation="same system",
    )
    words = PlainWords(
        "someone who has your anonymizer and trains a recognizer on its output",
        f"your anonymizer, {KNOWN_PEOPLE}, {OTHER_PEOPLE}",
        "trains a model",
        "days",
    )
    color = RED
    knows = frozenset({ORIGINALS, ANONYMIZER, ADAPTATION})
    cross_validates = True

    def train_without_speech(self, desk: Desk, kind: str) -> tuple[Recipe, Finding]:
        """On everybody's protected speech, but never of the two people who are being compared."""
        vectors = desk.release()
        if len(vectors.names) < LEAST_SPEAKERS:
            raise NotPossibleError(Finding("too_few_to_train", {"speakers": len(vectors.names)}))
        folds = desk.folds(len(vectors.names))
        return Recipe(kind, vectors, folds, desk.seed, desk.dimension), Finding.of("trained_in_folds", folds=folds)


ATTACKER = Informed()
