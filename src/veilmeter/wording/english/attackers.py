"""What attackers had to work with, and whose method was replaced."""

from __future__ import annotations

from veilmeter.wording.catalog import Catalog
from veilmeter.wording.numbers import count

WORDS = Catalog()


@WORDS.words("runs_lack_enrollment")
def _runs_lack_enrollment(recordings: int, speakers: int) -> str:
    lost = f"The attacker's runs lack {count(recordings, 'enrollment recording')}"
    if not speakers:
        return f"{lost}; everybody has others there."
    return f"{lost}: {count(speakers, 'speaker')} without any there not enrolled."


WORDS.say(
    "own_extractor_without_run",
    "The {attacker} attacker enrolls from the released run, whose draws its trials share, because the vectors of its "
    "run by its own extractor were not given ([attackers.{attacker}] attacker_run =).",
)
WORDS.say("anonymizer_not_run", "The attacker could not run the anonymizer: the real risk may be higher.")
WORDS.say(
    "enrolled_from_released_run",
    "The attacker had no run of its own and enrolled from the released one, whose draws its trials share.",
)
WORDS.say(
    "candidates_without_copy",
    "{count} of {candidates:candidate} without an anonymized copy: predicted from their original voices.",
)
WORDS.say("run_lacks_recordings", "{run} lacks {count} of {recordings:enrollment recording}.")
WORDS.say(
    "draw_unknown", "{run} does not say what one draw covers; treated as one draw per {level}, judging by its data."
)
WORDS.say(
    "draw_taken_per_speaker",
    "{run} is declared as drawn per utterance, but its recordings look drawn per speaker: treated as drawn per speaker.",
)
WORDS.say(
    "draw_looks_per_utterance",
    "{run} is declared as drawn per speaker, but its recordings look drawn per utterance. If they are, the attacker "
    "could choose its methods better.",
)


@WORDS.words("method_replaced")
def _method_replaced(attacker: str, other: str, difference: float) -> str:
    return (
        f"The {attacker} attacker's method was replaced by that of the {other} attacker, who knows less but did better "
        f"(by {100 * abs(difference):.1f} percentage points of candidates beaten)."
    )
