"""The ignorant attacker: does not know that anything was anonymized."""

from veilmeter.attacks.attacker import KNOWN_PEOPLE, ORIGINALS, PUBLIC_RECOGNIZER, PlainWords
from veilmeter.attacks.vector_attackers import ComparingAttacker
from veilmeter.core.colors import GREEN


class Ignorant(ComparingAttacker):
    name = "ignorant"
    order = 10
    about = "does not know that the speech was anonymized and compares it with original speech of known people"
    aliases = ("oa", "o-a", "unprotected-enrollment")
    voiceprivacy = "ignorant"
    vauquier2025 = "ignorant"
    words = PlainWords(
        "someone who does not know the speech was anonymized", KNOWN_PEOPLE, PUBLIC_RECOGNIZER, "an hour"
    )
    color = GREEN
    knows = frozenset({ORIGINALS})


ATTACKER = Ignorant()
