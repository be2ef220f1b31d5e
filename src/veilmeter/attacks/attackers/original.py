"""The baseline: the same extractor and back end where nothing was anonymized. It attacks no anonymized speech."""

from veilmeter.attacks.attacker import BASELINE, KNOWN_PEOPLE, PUBLIC_RECOGNIZER, PlainWords
from veilmeter.attacks.vector_attackers import ComparingAttacker
from veilmeter.core.colors import GRAY


class Original(ComparingAttacker):
    name = BASELINE
    order = 0
    about = (
        "compares original speech with original speech: how well the extractor recognizes people where nothing was "
        "anonymized"
    )
    trials = "original"
    vauquier2025 = "original"
    words = PlainWords("anybody, without anonymization", KNOWN_PEOPLE, PUBLIC_RECOGNIZER, "an hour")
    color = GRAY
    default = False


ATTACKER = Original()
