"""The procrustes attacker: learns a rotation from known pairs (Champion et al. 2021)."""

from veilmeter.attacks.attacker import ANONYMIZER, KNOWN_PEOPLE, ORIGINALS, Equipment, PlainWords
from veilmeter.attacks.vector_attackers import InvertingAttacker
from veilmeter.core.colors import PURPLE


class Procrustes(InvertingAttacker):
    name = "procrustes"
    order = 50
    about = (
        "runs the same system on speech of known people, learns from these pairs a rotation that undoes it, and "
        "compares the restored vectors with original speech"
    )
    aliases = ("inversion", "supervised-inversion")
    method = "procrustes"
    has = Equipment(inversion="by a rotation, from known pairs")
    words = PlainWords(
        "someone who has your anonymizer and tries to reverse it",
        f"your anonymizer, {KNOWN_PEOPLE}",
        "some linear algebra",
        "a day",
    )
    color = PURPLE
    knows = frozenset({ORIGINALS, ANONYMIZER})


ATTACKER = Procrustes()
