"""Which channel gives people away: the same attacker with each extractor alone and with all of them.

An extractor may hear the voice, the words or the rhythm of speech, so this is where one reads what is left of each.
"""

from __future__ import annotations

from collections.abc import Mapping

from veilmeter.attacks.attacker import ADAPTIVE, FUSED, AttackerId
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding
from veilmeter.results.model import AttackerResult, Channel, ChannelPerson, Channels
from veilmeter.speech.extractors.base import hears

TOGETHER = "all together"


def channel_attackers(first: str, further: tuple[str, ...]) -> dict[str, AttackerId]:
    """Each channel with the attacker that uses it, all of them together last.

    >>> [f"{channel}: {attacker}" for channel, attacker in channel_attackers("campplus", ("words",)).items()]
    ['campplus: adaptive', 'words: adaptive@words', 'all together: fused']
    """
    alone = {name: AttackerId(ADAPTIVE, name) for name in further}
    return {first: AttackerId(ADAPTIVE), **alone, TOGETHER: AttackerId(FUSED)}


def channels_of(
    attackers: Mapping[str, AttackerResult],
    used_by: Mapping[str, AttackerId],
    original: Mapping[str, AttackerResult],
    shuffled: Mapping[str, AttackerResult],
) -> Channels | None:
    """The channels that were measured; None unless there are several. `used_by` are the attackers that use them,
    `original` and `shuffled` the controls, all by channel."""
    results = {name: attackers[str(user)] for name, user in used_by.items() if str(user) in attackers}
    channels = tuple(
        Channel(
            name=name,
            hears="everything" if name == TOGETHER else hears(name),
            attacker=result.name,
            estimates=_figures(result),
            original=_figures(original.get(name)),
            shuffled=_figures(shuffled.get(name)),
        )
        for name, result in results.items()
    )
    if sum(channel.name != TOGETHER for channel in channels) < 2:
        return None
    return Channels(channels=channels, people=_people(channels, attackers), finding=_finding(channels))


def _figures(result: AttackerResult | None) -> Estimates:
    """EER, and for every length Linkability among as many people as there are and rank disclosure by the model."""
    from veilmeter.metrics.legal.ranks import MODEL  # with scipy, which a page of channels need not wait for

    if result is None:
        return Estimates()
    linked: dict[int, Estimate] = {}
    for point in result.estimates.points("linkability"):
        length = int(point.at.get("length", 1))
        if length not in linked or float(point.at["speakers"]) > float(linked[length].at["speakers"]):
            linked[length] = point
    bits = [point for point in result.estimates.points("rank_disclosure") if point.at.get("model") == MODEL]
    return Estimates([*result.estimates.points("eer"), *linked.values(), *bits])


def channel_title(channel: Channel) -> str:
    """
    >>> channel_title(Channel(name="campplus", hears="voice", attacker="adaptive"))
    'voice (campplus)'
    """
    if channel.name in (TOGETHER, channel.hears):
        return channel.name
    return f"{channel.hears} ({channel.name})"


def shortest(figures: Estimates) -> int:
    """The fewest recordings together that were measured."""
    return min((int(point.at["length"]) for point in figures if "length" in point.at), default=1)


def rank_disclosure(figures: Estimates, length: int = 1) -> Estimate | None:
    """The rank disclosure of conversations of a length, in bits."""
    points = figures.points("rank_disclosure")
    return next((point for point in points if point.at.get("length", 1) == length), None)


def _people(channels: tuple[Channel, ...], attackers: Mapping[str, AttackerResult]) -> tuple[ChannelPerson, ...]:
    bits: dict[str, dict[str, float]] = {}
    linked: dict[str, dict[str, float]] = {}
    for channel in channels:
        rows = attackers[channel.attacker].people
        shortest = min((row.length for row in rows), default=1)
        for row in rows:
            if row.length == shortest:
                linked.setdefault(row.speaker, {})[channel.name] = row.linked
                bits.setdefault(row.speaker, {})[channel.name] = row.bits or 0.0
    people = [_person(speaker, bits[speaker], linked[speaker]) for speaker in bits]
    people.sort(key=lambda person: (-max(person.bits.values()), person.speaker))
    return tuple(people)


def _person(speaker: str, bits: dict[str, float], linked: dict[str, float]) -> ChannelPerson:
    alone = {name: value for name, value in bits.items() if name != TOGETHER}
    most = max(alone, key=lambda name: (alone[name], linked[name]), default="")
    return ChannelPerson(speaker=speaker, channel=most if most and alone[most] > 0 else "", bits=bits, linked=linked)


def _finding(channels: tuple[Channel, ...]) -> Finding | None:
    """What one recording discloses by channel; None where that was not measured."""
    bits = {channel_title(channel): rank_disclosure(channel.estimates) for channel in channels}
    known = {title: found.value for title, found in bits.items() if found is not None}
    return Finding.of("channels", channels=tuple(known), bits=tuple(known.values())) if known else None
