"""The roles that speech has in an assessment."""

from __future__ import annotations

from enum import StrEnum


class SpeechRole(StrEnum):
    """What speech is given for; the value is the name of the option, and of the input in results.json."""

    ORIGINAL = "original"
    ANONYMIZED = "anonymized"
    ATTACKER_RUN = "attacker_run"
    TRAIN_ORIGINAL = "train_original"
    TRAIN_ANONYMIZED = "train_anonymized"
    TRAIN_SIMILAR = "train_similar"

    @property
    def is_training(self) -> bool:
        """Whether it is speech of other people, to train attackers on."""
        return self in (SpeechRole.TRAIN_ORIGINAL, SpeechRole.TRAIN_ANONYMIZED, SpeechRole.TRAIN_SIMILAR)

    @property
    def is_original(self) -> bool:
        return self in (SpeechRole.ORIGINAL, SpeechRole.TRAIN_ORIGINAL)


SIDES = (SpeechRole.ORIGINAL, SpeechRole.ANONYMIZED)
