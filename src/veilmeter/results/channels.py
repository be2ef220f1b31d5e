"""Which channel gives people away: the same attacker with each extractor alone, with all of them, and on originals.

An extractor may hear the voice, the words or the rhythm of speech, so this is where one reads what is left of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veilmeter.attacks.knowledge import FUSED, by_extractor
from veilmeter.core.estimate import Estimate
from veilmeter.core.estimates import Estimates
from veilmeter.results.model import AttackerResult, Part

TOGETHER = "all together"
MEASURES = ("eer", "linkability", "rank_disclosure")


def channels_part(
    attackers: Mapping[str, AttackerResult],
    controls: Mapping[str, AttackerResult],
    first: str,
    further: tuple[str, ...],
    attacker: str = "adaptive",
) -> Part | None:
    """EER, Linkability among everybody and rank disclosure (bits) by channel; None unless several were heard.

    `controls` are what each extractor finds in original speech; the first one's is the yardstick of the assessment.
    """
    named = {first: attacker, **{name: by_extractor(attacker, name) for name in further}, TOGETHER: FUSED}
    found = {channel: attackers[name] for channel, name in named.items() if name in attackers}
    if not further or len(found) < 2:
        return None
    rows: list[dict[str, Any]] = []
    estimates: list[Estimate] = []
    reference: list[Estimate] = []
    for channel, result in found.items():
        points = {name: _whole(result, name) for name in MEASURES}
        control = controls.get(channel)
        clear = None if control is None else _whole(control, "eer")
        estimates += [_at(point, channel) for point in points.values() if point is not None]
        reference += [] if clear is None else [_at(clear, channel)]
        rows.append(
            {
                "extractor": channel,
                "attacker": result.name,
                **{name: None if point is None else point.value for name, point in points.items()},
                "original_eer": None if clear is None else clear.value,
            }
        )
    return Part(
        name="channels",
        estimates=Estimates(estimates),
        reference=Estimates(reference),
        details={"channels": rows},
    )


def _whole(result: AttackerResult, name: str) -> Estimate | None:
    """One recording at a time, among as many people as there are."""
    points = [point for point in result.estimates.points(name) if point.at.get("length", 1) in (1, None)]
    return max(points, key=lambda point: float(point.at.get("speakers", 0)), default=None)


def _at(point: Estimate, channel: str) -> Estimate:
    return point.with_(at={**point.at, "extractor": channel})
