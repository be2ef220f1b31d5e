"""What the utility of anonymized speech means: a check whether it is speech at all, and a sentence for the verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veilmeter.core.estimate import Estimate
from veilmeter.results.model import Check, Part

STILL_SPEECH = "anonymized recordings are speech"
MOST_LOST = 0.5  # of the recordings, in which not a single word is understood
LEAST_QUALITY = 1.5  # predicted MOS: the bottom of the scale is 1
UNDERSTOOD = 0.5  # of the original recordings must have words, or the recognizer is no judge


def still_speech(utility: Part | None) -> Check:
    """Silence and noise hide everybody: figures of privacy are worth nothing where no speech is left."""
    if utility is None or "speech" not in utility.details:
        sentence = "Whether the anonymized recordings are still speech was not measured."
        return Check(name=STILL_SPEECH, sentence=sentence, passed=None, applies=False)
    counts: Mapping[str, Any] = utility.details["speech"]
    recordings = int(counts["recordings"])
    if not recordings or counts["wordless_original"] > (1 - UNDERSTOOD) * recordings:
        sentence = (
            f"The recognizer heard no words in {counts['wordless_original']} of {recordings} original recordings, so "
            "it can't tell whether the anonymized ones are speech."
        )
        return Check(name=STILL_SPEECH, sentence=sentence, passed=None, misleads="overestimated")
    lost = counts["lost"] / recordings
    quality = utility.estimates.single("mos")
    if lost > MOST_LOST:
        silent = f" ({counts['silent']} are silent)" if counts["silent"] else ""
        sentence = (
            f"In {counts['lost']} of {recordings} anonymized recordings{silent} a recognizer understands not a single "
            "word: silence and noise hide anybody."
        )
        return Check(
            name=STILL_SPEECH, sentence=sentence, passed=False, misleads="overestimated", figure=lost, limit=MOST_LOST
        )
    if quality is not None and quality.value < LEAST_QUALITY:
        sentence = (
            f"The predicted quality of the anonymized recordings is {quality.value:.1f} on a scale from 1 to 5: they "
            "hardly sound like speech."
        )
        return Check(
            name=STILL_SPEECH, sentence=sentence, passed=False, misleads="overestimated", figure=quality,
            limit=LEAST_QUALITY,
        )  # fmt: skip
    sentence = f"A recognizer understands words in {recordings - counts['lost']} of {recordings} anonymized recordings."
    return Check(
        name=STILL_SPEECH, sentence=sentence, passed=True, misleads="overestimated", figure=lost, limit=MOST_LOST
    )


def use_sentence(utility: Part | None) -> str:
    """One sentence about use for the verdict; nothing where it was not measured."""
    if utility is None:
        return ""
    parts = []
    wer, before = utility.estimates.single("wer"), utility.estimates.single("wer_original")
    if wer is not None:
        against = f", {before.value:.0f} in the original" if before is not None else ""
        parts.append(f"of 100 words a recognizer gets {_whole(wer)} wrong{against}")
    mos, mos_before = utility.estimates.single("mos"), utility.estimates.single("mos_original")
    if mos is not None:
        against = f" (original: {mos_before.value:.1f})" if mos_before is not None else ""
        parts.append(f"the predicted quality is {mos.value:.1f} of 5{against}")
    if not parts:
        return ""
    return f"Use: {'; '.join(parts)}."


def _whole(rate: Estimate) -> str:
    """
    >>> _whole(Estimate(name="wer", value=12.2, interval=(8.6, 15.8)))
    '12 [9 to 16]'
    """
    interval = "" if rate.interval is None else f" [{rate.interval[0]:.0f} to {rate.interval[1]:.0f}]"
    return f"{rate.value:.0f}{interval}"
