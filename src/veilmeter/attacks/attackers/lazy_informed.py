"""The lazy-informed attacker: has the anonymizer, and adapts nothing to it."""

from veilmeter.attacks.attacker import (
    ANONYMIZER,
    KNOWN_PEOPLE,
    ORIGINALS,
    OWN_COPIES,
    PUBLIC_RECOGNIZER,
    Equipment,
    PlainWords,
)
from veilmeter.attacks.vector_attackers import CopyingAttacker
from veilmeter.core.colors import SKY


class LazyInformed(CopyingAttacker):
    name = "lazy-informed"
    order = 20
    about = (
        "anonymizes the speech of known people with the same system, but keeps an extractor trained on original speech"
    )
    aliases = ("aa", "a-a", "lazy")
    voiceprivacy = "lazy-informed"
    has = Equipment(enrollment=OWN_COPIES)
    words = PlainWords(
        "someone who has your anonymizer", f"your anonymizer, {KNOWN_PEOPLE}", PUBLIC_RECOGNIZER, "a day"
    )
    color = SKY
    knows = frozenset({ORIGINALS, ANONYMIZER})


ATTACKER = LazyInformed()
