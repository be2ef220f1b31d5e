"""The same recordings by every system of a comparison, for a page that the user allows to hold them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import numpy as np

from veilmeter.data.matching import match_ids
from veilmeter.report.sound import (
    AUDIO_RECORDINGS,
    AUDIO_SECONDS,
    Pair,
    data_uri,
    first_seconds,
    has_sound,
    is_playable,
    no_sound,
    pairs_of,
)
from veilmeter.report.source import Reported

LISTENED_PEOPLE = 8  # those most at risk with any of the systems; every recording is there once per system
ORIGINAL = "original"


@dataclass(frozen=True, slots=True)
class HeardRecording:
    """One recording as data URIs: the original, then each system's; with what is known of this person's risk there.
    Empty where a run has no recordings."""

    title: str
    sounds: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Player:
    """`tracks` are the original and the systems."""

    tracks: tuple[str, ...]
    recordings: tuple[HeardRecording, ...]

    @property
    def data(self) -> list[dict[str, Any]]:
        """For the page's script."""
        return [asdict(recording) for recording in self.recordings]

    @property
    def sentence(self) -> str:
        if not self.recordings:
            return "The systems were not run on the same recordings, so that none can be compared by ear."
        return (
            f"The first {AUDIO_SECONDS:.0f} seconds of the same recording, original and as each system anonymized it. "
            "The people are among those most at risk with any of the systems."
        )


@dataclass(frozen=True, eq=False)
class _System:
    """A run with its recordings, by ids of the first run that has some."""

    run: Reported
    pairs: Mapping[str, Pair]

    def risk_of(self, utterance: str) -> str:
        speaker = self.pairs[utterance].original.speaker
        for person in self.run.results.people.persons:
            if person.speaker == speaker:
                risk = person.risk
                return f"this person's highest risk: {risk.format_value()} {risk.format_interval()}".strip()
        return ""


def player_of(runs: Mapping[str, Reported]) -> Player:
    """What can be heard of these runs, each by its name; an error where none has recordings."""
    heard: dict[str, _System] = {}
    first: Mapping[str, Pair] = {}
    for name, run in runs.items():
        if not has_sound(run.results):
            continue
        pairs = pairs_of(run)
        first = first or pairs
        partner = match_ids(list(first), list(pairs)).partner
        heard[name] = _System(run, {mine: pairs[theirs] for mine, theirs in partner.items()})
    if not heard:
        raise no_sound("these runs")
    recordings = [
        HeardRecording(
            f"person {person}, recording {number}",
            (
                data_uri(first[utterance].original),
                *(data_uri(heard[name].pairs[utterance].anonymized) if name in heard else "" for name in runs),
            ),
            ("", *(heard[name].risk_of(utterance) if name in heard else "no recordings in this run" for name in runs)),
        )
        for person, utterances in enumerate(_chosen(list(heard.values())), 1)
        for number, utterance in enumerate(utterances, 1)
    ]
    return Player((ORIGINAL, *runs), tuple(recordings))


def _chosen(systems: Sequence[_System]) -> list[list[str]]:
    """Recordings that every system was run on, by person, those with the highest risk in any run first."""
    shared: dict[str, list[str]] = {}
    for utterance, pair in systems[0].pairs.items():
        if all(utterance in system.pairs for system in systems):
            shared.setdefault(pair.original.speaker, []).append(utterance)
    place: dict[str, int] = {}
    for system in systems:
        for number, person in enumerate(system.run.results.people.persons):
            place[person.speaker] = min(place.get(person.speaker, number), number)
    people = []
    for speaker in sorted(shared, key=lambda speaker: (place.get(speaker, len(place)), speaker)):
        usable = (utterance for utterance in shared[speaker] if _comparable([s.pairs[utterance] for s in systems]))
        utterances = list(islice(usable, AUDIO_RECORDINGS))
        if utterances:
            people.append(utterances)
        if len(people) == LISTENED_PEOPLE:
            break
    return people


def _comparable(pairs: Sequence[Pair]) -> bool:
    """Whether all of it can be played, and is of one original: equal ids do not make equal recordings, as corpora
    often number theirs from 1."""
    if not all(is_playable(pair) for pair in pairs):
        return False
    first, *others = (pair.original for pair in pairs)
    elsewhere = [other for other in others if (other.path, other.stretch) != (first.path, first.stretch)]
    return all(np.array_equal(first_seconds(first), first_seconds(other)) for other in elsewhere)
