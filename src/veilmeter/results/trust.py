"""An assessment must doubt itself: named checks, each with its figure. One that fails makes the verdict untrustworthy.

If the attacker is weak, privacy is overestimated (Panariello et al. 2025); if enrolment and trial come from one
session, or the attacker was trained on the people it is tested on, it is underestimated; with few speakers nothing is
sure.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from veilmeter.data.embeddings import Embeddings

IDENTICAL = 0.9999  # cosine from which on two vectors are of the same recording
MOST_IDENTICAL = 0.01  # share of utterances
MOST_SAME_SESSION = 0.10
MOST_TIED = 0.05
UNADAPTED = ("ignorant", "lazy-informed")


@dataclass(frozen=True, slots=True)
class Check:
    """`passed` is None where the check could not be made. `errs` says which way a failure misleads."""

    name: str
    passed: bool | None
    figure: float | dict[str, Any] | None
    sentence: str
    limit: float | None = None
    errs: str = ""

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "passed": self.passed,
            "figure": self.figure,
            "limit": self.limit,
            "sentence": self.sentence,
            "errs": self.errs,
        }


def strong_on_original(eer: Mapping[str, Any] | None, limit: float) -> Check:
    """The extractor must recognize people where nothing was anonymized."""
    name, errs = "strong on original speech", "privacy may be overestimated"
    if eer is None:
        return Check(name, None, None, "The attacker on original speech was not measured.", limit, errs)
    value = float(eer["value"])
    if value <= limit:
        said = f"On original speech the attacker's EER is {value:.1f} %: it recognizes people (limit {limit:g} %)."
        return Check(name, True, dict(eer), said, limit, errs)
    said = (
        f"Even on original speech the attacker's EER is {value:.1f} % (limit {limit:g} %): it hardly recognizes "
        "people at "
        "all, so its failure on anonymized speech proves little. Use a stronger extractor."
    )
    return Check(name, False, dict(eer), said, limit, errs)


def adapted_not_worse(eers: Mapping[str, Mapping[str, Any]], adapted: Sequence[str]) -> Check:
    """An attacker who knows more must not do worse than one who knows less: neither than the ignorant one, nor than the
    lazy-informed one, who has the same enrolment speech and adapts nothing."""
    name, errs = "adaptation helps", "privacy may be overestimated"
    ran = [attacker for attacker in adapted if attacker in eers]
    plain = [attacker for attacker in UNADAPTED if attacker in eers]
    if not ran or not plain:
        missing = "adapted attacker" if not ran else "attacker to compare with (ignorant, lazy-informed)"
        return Check(name, None, None, f"No {missing} was run.", None, errs)
    simple = min(plain, key=lambda attacker: float(eers[attacker]["value"]))
    baseline = float(eers[simple]["value"])
    values = {attacker: float(eers[attacker]["value"]) for attacker in ran}
    least = {attacker: float((eers[attacker].get("interval") or [values[attacker]])[0]) for attacker in ran}
    worst = max(ran, key=lambda attacker: (least[attacker] > baseline + 0.5, values[attacker]))
    difference = values[worst] - baseline
    figures = f"{worst} {values[worst]:.1f} %, {simple} {baseline:.1f} %"
    if least[worst] > baseline + 0.5:
        said = (
            f"The {worst} attacker knows more but does worse than the {simple} one (EER: {figures}): its adaptation "
            "failed, and a real one may do better than anything reported here."
        )
        return Check(name, False, difference, said, 0.0, errs)
    surely = "" if values[worst] <= baseline else "surely "
    said = f"No adapted attacker is {surely}worse than the {simple} one (EER: {figures})."
    return Check(name, True, difference, said, 0.0, errs)


def not_identical(original: Embeddings, anonymized: Embeddings, same_audio: int = 0) -> Check:
    """Row by row the same utterances: a vector that did not move was not anonymized."""
    cosines = (
        np.einsum("ij,ij->i", original.unit, anonymized.unit) if original.dimension == anonymized.dimension else None
    )
    name, errs = "anonymized differs from original", "recordings were released as they were"
    if cosines is None:
        return Check(
            name, None, None, "Original and anonymized vectors are of different extractors.", MOST_IDENTICAL, errs
        )
    identical = max(int(np.count_nonzero(cosines > IDENTICAL)), same_audio)
    share = identical / len(cosines)
    if share > MOST_IDENTICAL:
        said = f"{identical} of {len(cosines)} anonymized recordings are the original ones: they were not anonymized."
        return Check(name, False, share, said, MOST_IDENTICAL, errs)
    said = f"{identical} of {len(cosines)} anonymized recordings equal their original."
    return Check(name, True, share, said, MOST_IDENTICAL, errs)


def speakers_needed(speakers: int, reach: float, margin: float) -> int:
    """How many speakers would bring the end of an interval within `margin` of the value: its width falls with the
    square root of their number.

    >>> speakers_needed(10, 0.3, 0.1)
    90
    """
    return max(speakers, math.ceil(speakers * (reach / margin) ** 2 - 1e-9))


def enough_speakers(linking: Mapping[str, Any] | None, precision: float) -> Check:
    """The claim that is made about linking must still hold at the end of the interval that speaks against it.

    Claims are those of the verdict: a high risk must be high at the lower end too, a low one must stay within
    `precision` of guessing at the upper end, and one in between must be known within `precision`.
    """
    name, errs = "enough speakers", "the claim may be wrong either way"
    if linking is None or linking["estimate"].get("interval") is None:
        return Check(name, None, None, "No rate of linking with an interval was measured.", precision, errs)
    one = linking["estimate"]
    value, (low, high) = float(one["value"]), (float(end) for end in one["interval"])
    speakers, chance = int(one["n"]["speakers"]), float(one["null"])
    if linking["level"] == "high":
        claim, reach, margin = "people can be recognized", value - low, value - (chance + (1 - chance) / 3)
    elif linking["level"] == "low":
        claim, reach, margin = "linking is no better than guessing", high - value, chance + precision - value
    else:
        claim, reach, margin = "the risk lies in between", max(high - value, value - low), precision
    margin = max(margin, precision / 4)  # a value at the very border of its claim needs many, not infinitely many
    shown = f"{100 * value:.0f} [{100 * low:.0f}, {100 * high:.0f}] of 100"
    if reach > margin:
        said = (
            f"{speakers} speakers are too few to claim that {claim}: the rate of linking is known only as {shown}. "
            "About "
            f"{speakers_needed(speakers, reach, margin)} would be needed."
        )
        return Check(name, False, reach, said, margin, errs)
    said = f"{speakers} speakers are enough to claim that {claim}: the rate of linking is {shown}."
    return Check(name, True, reach, said, margin, errs)


def training_disjoint(assessed: Sequence[str], training: Mapping[str, Sequence[str]]) -> Check:
    """No attacker may have been trained on the people it is tested on."""
    name, errs = "training speakers are others", "privacy may be underestimated"
    if not training:
        return Check(name, None, None, "No training speech was given.", 0.0, errs)
    known = set(assessed)
    overlap = {role: sorted(known & set(names)) for role, names in training.items()}
    worst = max(overlap, key=lambda role: len(overlap[role]))
    count = len(overlap[worst])
    if count:
        said = (
            f"{count} of the {len(known)} assessed speakers are in the training speech too "
            f"({worst.replace('_', ' ')}): "
            "the attacker knows them already. Leave them out of the training."
        )
        return Check(name, False, float(count), said, 0.0, errs)
    return Check(name, True, 0.0, "No assessed speaker is in the training speech.", 0.0, errs)


def other_sessions(share: float | None) -> Check:
    """A microphone or a room must not be taken for a voice."""
    name, errs = (
        "enrolment and trials of different sessions",
        "privacy may be underestimated: the room is recognized too",
    )
    if share is None:
        return Check(name, None, None, "The sessions of the recordings are not known.", MOST_SAME_SESSION, errs)
    if share > MOST_SAME_SESSION:
        said = (
            f"{100 * share:.0f} % of the trial recordings share a session with their speaker's enrollment: a room or a "
            "microphone may be recognized instead of a voice."
        )
        return Check(name, False, share, said, MOST_SAME_SESSION, errs)
    said = f"{100 * share:.0f} % of the trial recordings share a session with their speaker's enrollment."
    return Check(name, True, share, said, MOST_SAME_SESSION, errs)


def no_ties(tied: Mapping[str, float]) -> Check:
    """Equal scores can't be told apart by any threshold: often a broken or rounded score."""
    name, errs = "scores without ties", "measures of tied scores depend on how ties are broken"
    if not tied:
        return Check(name, None, None, "No scores were measured.", MOST_TIED, errs)
    worst = max(tied, key=lambda attacker: tied[attacker])
    share = tied[worst]
    if share > MOST_TIED:
        said = (
            f"{100 * share:.0f} % of the {worst} attacker's target scores equal an impostor score: the scores are "
            "rounded, "
            "or many recordings have one and the same vector."
        )
        return Check(name, False, share, said, MOST_TIED, errs)
    said = f"At most {100 * share:.1f} % of an attacker's target scores equal an impostor score ({worst})."
    return Check(name, True, share, said, MOST_TIED, errs)


def not_inverted(d_eces: Mapping[str, Mapping[str, Any]]) -> Check:
    """An attacker may turn the sign of its scores round: that must not tell more than the worst case that is "
    "reported."""
    name, errs = "scores are not inverted", "privacy may be overestimated"
    known = {attacker: one for attacker, one in d_eces.items() if one.get("flipped") is not None}
    if not known:
        return Check(name, None, None, "No scores were measured.", None, errs)
    reported = max(float(one["value"]) for one in known.values())
    worst = max(known, key=lambda attacker: float(known[attacker]["flipped"]))
    flipped = float(known[worst]["flipped"])
    noise = known[worst].get("null_range")
    # Trials share speakers and several attackers are looked at: twice the 95th percentile of independent noise.
    floor = 2 * float(noise[1]) if noise else 0.0
    if flipped > reported and flipped > floor:
        said = (
            f"The {worst} attacker's scores tell more when turned round ({flipped:.3f} bit) than the worst case as "
            "it stands "
            f"({reported:.3f} bit): the same person scores lower than others do. An attacker would use that."
        )
        return Check(name, False, flipped, said, reported, errs)
    said = (
        f"No attacker's scores tell more when turned round ({flipped:.3f} bit at most) than the worst case "
        f"({reported:.3f} bit)."
    )
    return Check(name, True, flipped, said, reported, errs)


def ordered(checks: Sequence[Check]) -> list[Check]:
    """Failed ones first, then those that passed, then those that could not be made."""
    return sorted(checks, key=lambda check: {False: 0, True: 1, None: 2}[check.passed])
