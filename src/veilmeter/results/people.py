"""People by risk: each speaker's risk over all attackers, whether attackers agree on whom they find, and which channel
gives people away.

Chance links somebody too: with one trial each and several attackers, a few people of forty. So the results hold how
many would be listed by chance alone, and people are listed only where there are significantly more of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.attacker import ADAPTIVE, FUSED, AttackerId
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding
from veilmeter.core.intervals import LEVEL, wilson
from veilmeter.metrics.legal.chance import MORE_OFTEN_THAN_NOT as HALF
from veilmeter.results.levels import ALPHA, JOINT_SHARE
from veilmeter.results.model import (
    AttackerResult,
    Chance,
    Channel,
    ChannelPerson,
    Channels,
    Criterion,
    LinkedPerson,
    People,
    Person,
    Results,
)
from veilmeter.speech.extractors.base import hears

MORE_OFTEN_THAN_NOT = 100 * HALF  # percent
OWN_TEST = (1 - JOINT_SHARE) * ALPHA  # for people one by one, beside what is tested by relabeling them


@dataclass(frozen=True, slots=True, kw_only=True)
class Traits:
    """Facts about the speakers beside how often they are linked, each by speaker."""

    gender: Mapping[str, str] = field(default_factory=dict)
    animal: Mapping[str, str] = field(default_factory=dict)
    deid: Mapping[str, float | None] = field(default_factory=dict)


def people(results: Results, traits: Traits | None = None, *, among: int | None = None) -> People:
    """Everybody who has a trial, by falling risk: at the shortest length at which they have one. `among` how many
    people chance would find them, where an attribute is known; who is found no more often is not listed."""
    known = traits or Traits()
    linked: dict[str, dict[str, LinkedPerson]] = {}
    for name, attacker in results.attacks.items():
        for row in attacker.people if not attacker.apart else ():
            kept = linked.setdefault(row.speaker, {})
            if name not in kept or row.length < kept[name].length:
                kept[name] = row
    persons = [_person(speaker, rows, known) for speaker, rows in linked.items()]
    persons.sort(key=lambda person: (-person.risk.value, -(person.risk.interval or (0.0,))[0], person.speaker))
    stability = agreement(persons, list(results.attacks))
    chance = results.chance
    alpha = _own_level(chance)
    looks = sum(len(person.by_attacker) for person in persons)
    least = 0.0 if among is None else 100 / among
    unprotected = {person.speaker for person in persons if _is_significantly_linked(person, looks, alpha, least)}
    if among is None and chance is not None and chance.exposed_p is not None and chance.exposed_p < ALPHA:
        unprotected |= {person.speaker for person in persons if is_often_linked(person)}
    listed = tuple(replace(person, unprotected=person.speaker in unprotected) for person in persons)
    expected = None if chance is None or among is not None else chance.exposed
    return People(
        persons=listed,
        finding=_finding(listed, chance if among is None else None, stability) if listed else _nobody(results),
        expected_by_chance=expected,
        stability=stability,
    )


def _person(speaker: str, rows: Mapping[str, LinkedPerson], traits: Traits) -> Person:
    by_attacker = {name: risk_of(row) for name, row in rows.items()}
    worst = max(by_attacker, key=lambda name: (by_attacker[name].value, name))
    return Person(
        speaker=speaker,
        attacker=worst,
        risk=by_attacker[worst],
        by_attacker=by_attacker,
        gender=traits.gender.get(speaker, ""),
        animal=traits.animal.get(speaker, ""),
        deid=traits.deid.get(speaker),
    )


def interval_of(row: LinkedPerson) -> tuple[float, float]:
    """Of how often a person is linked, in percent: Wilson's."""
    low, high = wilson(row.linked / 100 * row.conversations, row.conversations)
    return 100 * low, 100 * high


def risk_of(row: LinkedPerson) -> Estimate:
    return Estimate(
        name="linkability",
        label="linked",
        value=row.linked,
        unit="percent",
        interval=interval_of(row),
        null=100 / row.among,
        method="share of the speaker's recordings linked among all enrolled; Wilson",
        n={"conversations": row.conversations},
        better="lower",
        at={"speakers": row.among, "length": row.length},
        extra={} if row.named is None else {"named": row.named},
    )


def is_often_linked(person: Person) -> bool:
    return person.risk.value > MORE_OFTEN_THAN_NOT


def _own_level(chance: Chance | None) -> float:
    """The level of a test of one person: a part of it where people are also tested together, by relabeling them."""
    return OWN_TEST if chance is not None and chance.exposed_p is not None else ALPHA


def _is_significantly_linked(person: Person, looks: int, alpha: float, least: float) -> bool:
    """Whether an attacker links them more often than not, and more often than it would by chance or by naming them for
    everybody, at a level shared by all people and attackers."""
    return any(
        risk.value > MORE_OFTEN_THAN_NOT and _binomial_tail(risk, least) * looks < alpha
        for risk in person.by_attacker.values()
    )


def _binomial_tail(risk: Estimate, least: float) -> float:
    """How often chance, which links at least so many percent, would link as many."""
    trials, chance = risk.n["conversations"], _chance_of(risk, least)
    linked = math.ceil(risk.value / 100 * trials - 1e-9)
    return float(binomial(trials, chance)[linked:].sum())


def _chance_of(risk: Estimate, least: float = 0.0) -> float:
    """How often one recording is linked by chance, or by naming the person for everybody."""
    return max(least, risk.null or 0.0, float(risk.extra.get("named", 0.0))) / 100


def binomial(trials: int, chance: float) -> NDArray[np.float64]:
    """The probabilities of 0, 1, ... successes.

    >>> binomial(2, 0.5).tolist()
    [0.25, 0.5, 0.25]
    >>> round(float(binomial(5000, 0.01).sum()), 6)
    1.0
    """
    hits: NDArray[np.float64] = np.arange(trials + 1, dtype=float)
    if not 0 < chance < 1:
        hits = np.where(hits == trials * (chance >= 1), 1.0, 0.0)
        return hits
    factorials = np.array([math.lgamma(n + 1) for n in hits])
    logs = factorials[-1] - factorials - factorials[::-1] + hits * math.log(chance) + hits[::-1] * math.log1p(-chance)
    probabilities: NDArray[np.float64] = np.round(np.exp(logs), 15)
    return probabilities


# --- the individual, not the mean


def risks_of_everybody(results: Results, attackers: Iterable[str] | None = None) -> list[tuple[str, Estimate]]:
    """How often each person is linked by each attacker, at every length. The intervals hold for all of them together:
    the worst of many looks worse than it is, and so does the best."""
    names = [name for name in results.attackers if name in (results.attacks if attackers is None else attackers)]
    rows = [(name, row) for name in names for row in results.attackers[name].people]
    return [(name, _joint(risk_of(row), len(rows))) for name, row in rows]


def _joint(risk: Estimate, looks: int) -> Estimate:
    """With the interval that holds for so many figures together (Bonferroni)."""
    trials = risk.n["conversations"]
    low, high = wilson(risk.value / 100 * trials, trials, level=1 - (1 - LEVEL) / max(1, looks))
    return risk.with_(interval=(100 * low, 100 * high), method=f"{risk.method}, for all {looks} figures together")


def worst_person(results: Results, *, among: int | None = None) -> Finding | None:
    """The person who is linked most often by an attacker, how many people and attackers were looked at, and whether
    chance explains it among so many; `among` as in `people`. That people are `recognized` may be shown of all of them
    together. Somebody who is listed, or whom chance does not explain, comes first: a person who is named for everybody
    is found, too. None where nobody was tried."""
    least = 0.0 if among is None else 100 / among
    risks = [
        (person.speaker, name, risk)
        for person in results.people.persons
        for name, risk in sorted(person.by_attacker.items())
        if risk.n.get("conversations")
    ]
    if not risks:
        return None
    listed, alpha = set(results.people.unprotected), _own_level(results.chance)
    explained = [
        speaker not in listed and _binomial_tail(risk, least) * len(risks) >= alpha for speaker, _, risk in risks
    ]
    found = [(-risk.value, -(risk.interval or (0.0,))[0], place) for place, (*_, risk) in enumerate(risks)]
    *_, place = min((explained[key[-1]], *key) for key in found)
    _, attacker, risk = risks[place]
    return Finding.of(
        "worst_person",
        estimate=_joint(risk, len(risks)),
        attacker=attacker,
        total=len(results.people.persons),
        attackers=len({name for _, name, _ in risks}),
        explained=explained[place],
        recognized=are_recognized(results.criteria) or None,
    )


def chance_explains(chance: Chance | None) -> bool:
    """Whether the people who are linked more often than not are so few that none of them can be unprotected.

    An unprotected person is among them, beside those whom chance exposes. If c were found, there is an unprotected one
    only if chance exposed fewer than c; that is ruled out where chance hardly ever exposes fewer.
    """
    return chance is None or chance.exposed_luck is None or chance.exposed_luck >= 1 - ALPHA


def _nobody(results: Results) -> Finding:
    """The reason why no person has a result: no trials, scores instead of speech, or a measure that was left out."""
    tried = results.protocol.trial_speakers
    is_scores = "anonymized" not in results.inputs and bool(results.attackers)
    if not tried and not is_scores:
        return Finding("nobody_tried")
    return Finding.of("nobody_ranked", tried=tried or None, scores_only=is_scores)


def _finding(persons: Sequence[Person], chance: Chance | None, stability: float | None) -> Finding:
    listed = sum(person.unprotected for person in persons)
    point = persons[0].risk.at
    return Finding.of(
        "people_linked",
        severity="problem" if listed else "information",
        listed=listed,
        linked=sum(map(is_often_linked, persons)),
        total=len(persons),
        speakers=int(point["speakers"]),
        length=int(point.get("length", 1)),
        explained=chance_explains(chance),
        expected_by_chance=None if chance is None else chance.exposed,
        agreement=None if stability is None or not listed else _agreement(stability),
    )


def are_recognized(criteria: Mapping[str, Criterion]) -> bool:
    """Whether people can be recognized, even where that can't be shown of any single one of them."""
    linking = criteria.get("linking")
    return linking is not None and linking.level == "high"


def people_beside(criteria: Mapping[str, Criterion], found: People) -> People:
    """The people, with a finding that does not call chance what the criteria call recognized."""
    if found.finding.code != "people_linked" or not are_recognized(criteria):
        return found
    return replace(found, finding=replace(found.finding, values={**found.finding.values, "recognized": True}))


def _agreement(stability: float) -> str:
    return "same" if stability > 60 else "partly" if stability > 30 else "different"


def agreement(persons: Sequence[Person], attackers: Sequence[str]) -> float | None:
    """The percentage of people whom one of two attackers links more often than not that both link so: the mean over
    every two attackers who both find somebody. None where fewer than two do."""
    shares = []
    for a, b in combinations(attackers, 2):
        both = [person.by_attacker for person in persons if a in person.by_attacker and b in person.by_attacker]
        found = [[risks[name].value > MORE_OFTEN_THAN_NOT for risks in both] for name in (a, b)]
        either = sum(one or other for one, other in zip(*found, strict=True))
        if all(map(any, found)):
            shares.append(sum(one and other for one, other in zip(*found, strict=True)) / either)
    return float(np.round(100 * np.mean(shares), 7)) if shares else None


# --- channels: the same attacker with each extractor alone and with all of them, so that one reads what is left of
# voice, words and rhythm

TOGETHER = "all together"
WORDS = "words"  # what channels of words hear


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
    """The channels that were measured; None unless there are several, or one of words. `used_by` are the attackers that
    use them, `original` and `shuffled` the controls, all by channel."""
    results = {name: attackers[str(user)] for name, user in used_by.items() if str(user) in attackers}
    channels = tuple(
        Channel(
            name=name,
            hears="everything" if name == TOGETHER else hears(name),
            attacker=result.name,
            estimates=_channel_figures(result),
            original=_channel_figures(original.get(name), every=hears(name) == WORDS),
            shuffled=_channel_figures(shuffled.get(name)),
            original_loss=_validated_loss(original.get(name)),
        )
        for name, result in results.items()
    )
    alone = [channel for channel in channels if channel.name != TOGETHER]
    if len(alone) < 2 and not any(channel.hears == WORDS for channel in alone):
        return None
    return Channels(
        channels=channels, people=_people_by_channel(channels, attackers), finding=_channels_finding(channels)
    )


def _channel_figures(result: AttackerResult | None, *, every: bool = False) -> Estimates:
    """EER, and for every length rank disclosure by the model and Linkability among as many people as there are, or
    among every number of them."""
    from veilmeter.metrics.legal.ranks import MODEL  # with scipy, which a page of channels need not wait for

    if result is None:
        return Estimates()
    linked: dict[int, Estimate] = {}
    for point in result.estimates.points("linkability"):
        length = int(point.at.get("length", 1))
        if length not in linked or float(point.at["speakers"]) > float(linked[length].at["speakers"]):
            linked[length] = point
    chosen = result.estimates.points("linkability") if every else linked.values()
    bits = [point for point in result.estimates.points("rank_disclosure") if point.at.get("model") == MODEL]
    return Estimates([*result.estimates.points("eer"), *chosen, *bits])


def _validated_loss(result: AttackerResult | None) -> float | None:
    validation = {} if result is None else result.details.get("validation", {})
    return validation.get("cross_entropy")


def text_floor(channels: Channels | None) -> Finding | None:
    """The text floor: how far people are recognized by the words of original speech alone, by the strongest attacker
    who uses nothing else. None where no extractor uses words alone."""
    found = _strongest_words(channels)
    if found is None:
        return None
    channel, linked = found
    return Finding.of("text_floor", channel=channel_title(channel), linked=linked)


def text_floor_curve(channels: Channels | None) -> list[Estimate]:
    """The same as Linkability, for every length and number of people."""
    found = _strongest_words(channels)
    return [] if found is None else list(found[0].original.points("linkability"))


def _strongest_words(channels: Channels | None) -> tuple[Channel, Estimate] | None:
    """The channel of words that is best in original speech, and how much it links: among everybody, by one recording.

    The best is the one with the least loss on recordings that the attacker knows. Choosing it by the trials would raise
    the floor by chance, and excuse a system for more than the words give away."""
    candidates = []
    for channel in () if channels is None else channels.channels:
        linked = links_among_all(channel.original) if channel.hears == WORDS else None
        if linked is not None:
            candidates.append((channel, linked))
    if all(channel.original_loss is not None for channel, _ in candidates):
        return min(candidates, key=lambda candidate: candidate[0].original_loss or 0.0, default=None)
    return max(candidates, key=lambda candidate: candidate[1].value, default=None)


def links_among_all(figures: Estimates) -> Estimate | None:
    """Linkability with the fewest recordings together, among as many people as there are."""
    length = shortest(figures)
    points = [point for point in figures.points("linkability") if point.at.get("length", length) == length]
    return max(points, key=lambda point: float(point.at["speakers"]), default=None)


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


def _people_by_channel(
    channels: tuple[Channel, ...], attackers: Mapping[str, AttackerResult]
) -> tuple[ChannelPerson, ...]:
    bits: dict[str, dict[str, float]] = {}
    linked: dict[str, dict[str, float]] = {}
    for channel in channels:
        rows = attackers[channel.attacker].people
        shortest = min((row.length for row in rows), default=1)
        for row in rows:
            if row.length == shortest:
                linked.setdefault(row.speaker, {})[channel.name] = row.linked
                bits.setdefault(row.speaker, {})[channel.name] = row.bits or 0.0
    people = [_person_by_channel(speaker, bits[speaker], linked[speaker]) for speaker in bits]
    people.sort(key=lambda person: (-max(person.bits.values()), person.speaker))
    return tuple(people)


def _person_by_channel(speaker: str, bits: dict[str, float], linked: dict[str, float]) -> ChannelPerson:
    alone = {name: value for name, value in bits.items() if name != TOGETHER}
    most = max(alone, key=lambda name: (alone[name], linked[name]), default="")
    return ChannelPerson(speaker=speaker, channel=most if most and alone[most] > 0 else "", bits=bits, linked=linked)


def _channels_finding(channels: tuple[Channel, ...]) -> Finding | None:
    """What one recording discloses by channel; None where that was not measured."""
    bits = {channel_title(channel): rank_disclosure(channel.estimates) for channel in channels}
    known = {title: found.value for title, found in bits.items() if found is not None}
    return Finding.of("channels", channels=tuple(known), bits=tuple(known.values())) if known else None
