"""The verdict, people, channels, use, and the questions that remain."""

from __future__ import annotations

from typing import Literal

from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Level
from veilmeter.wording.catalog import Catalog
from veilmeter.wording.numbers import count, expected, of_hundred, span

WORDS = Catalog()

_OPENINGS = {
    "high": "People can be recognized.",
    "raised": "Protection is partial.",
    "unknown": "Too little was measured to say whether people can be recognized.",
    "low": "None of the attackers that were run did better than {luck}.",
}


@WORDS.words("verdict")
def _verdict(level: Level) -> str:
    return _OPENINGS[level].format(luck="chance")


@WORDS.words("verdict", "lay")
def _verdict_lay(level: Level) -> str:
    return _OPENINGS[level].format(luck="guessing")


WORDS.say("nothing_attacked", "No attack was measured.")
WORDS.say(
    "little_voice_left",
    "Perhaps nothing was recognized because hardly any voice is left: listen to the output before you rely on it, or "
    "measure how usable the speech still is.",
)
WORDS.say(
    "only_attribute_kept",
    "Only the {attribute} is kept: among people with the same {attribute} nobody is linked more often than by chance.",
)
WORDS.say(
    "one_voice_per_speaker",
    "Each speaker seems to keep the same new voice in all recordings: anyone who recognizes a person in one of them "
    "finds all the others. This replaces one name by another; it does not remove the link between recordings.",
)


@WORDS.words("use")
def _use(
    wer: Estimate | None = None,
    wer_original: float | None = None,
    mos: float | None = None,
    mos_original: float | None = None,
) -> str:
    parts = []
    if wer is not None:
        before = "" if wer_original is None else f", {span(wer_original, None)} in the original"
        parts.append(f"of 100 words a recognizer gets {of_hundred(wer)} wrong{before}")
    if mos is not None:
        before = "" if mos_original is None else f" (original: {mos_original:.1f})"
        parts.append(f"the predicted quality is {mos:.1f} of 5{before}")
    return f"Use: {'; '.join(parts) or 'not measured'}."


# --- people


WORDS.say("nobody_tried", "Nobody has a trial, so no result per person is possible.")


@WORDS.words("people_linked")
def _people_linked(
    listed: int,
    linked: int,
    total: int,
    speakers: int,
    length: int,
    explained: bool,
    expected_by_chance: float | None = None,
    agreement: Literal["same", "partly", "different"] | None = None,
) -> str:
    if not linked:
        words = f"None of {count(total, 'speaker')} is linked more often than not by any attacker that was run."
    else:
        shown = listed or linked
        verb = "is" if shown == 1 else "are"
        recordings = "one recording" if length == 1 else f"{length} recordings"
        words = (
            f"{shown:,} of {count(total, 'speaker')} {verb} linked more often than not by the attacker that finds them "
            f"best, among {count(speakers, 'person', 'people')} and with {recordings}"
        )
        if not listed:
            chance = "is no more than chance explains" if explained else "can't be distinguished from chance"
            words += f", which {chance}"
        if expected_by_chance is not None:
            words += f"; by chance alone it would be about {expected(expected_by_chance)}"
        words += "." if listed else ": nobody is listed as unprotected."
    if agreement is not None:
        kind = {"same": "largely the same", "partly": "partly the same", "different": "mostly different"}[agreement]
        words += f" The attackers find {kind} people."
    return words


@WORDS.words("channels")
def _channels(channels: tuple[str, ...], bits: tuple[float, ...]) -> str:
    disclosed = [f"{name} {value:.1f} bit" for name, value in zip(channels, bits, strict=False)]
    return f"One recording discloses on average: {', '.join(disclosed)}."


# --- what a lawyer has to judge


WORDS.say(
    "lawyer_recipients",
    "Who could realistically get the speech, and what else do they know (GDPR, recital 26: means reasonably likely to "
    "be used)? The attackers here are defined by what they have; which of them exist is a question of fact.",
)
WORDS.say(
    "lawyer_contents",
    "Do the spoken words, background sounds or metadata identify people? Only voices were measured.",
)
WORDS.say("lawyer_other_data", "Does other data that is or will become available make recognition easier?")
WORDS.say(
    "lawyer_acceptance",
    "Which residual risk is acceptable for this purpose, these recipients and these safeguards, and who decides?",
)
