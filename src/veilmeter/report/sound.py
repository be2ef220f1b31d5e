"""Recordings before and after, for a page that the user allows to hold them."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, missing_extra
from veilmeter.core.files import real_path
from veilmeter.core.options import options_of
from veilmeter.core.parquet_bounds import read_table, texts
from veilmeter.data.corpus import SIDES, CorpusReading, SpeechRole, Utterance
from veilmeter.data.matching import match_ids
from veilmeter.report.public import Names, Reported, names_of, run_key
from veilmeter.results.criteria import strongest
from veilmeter.results.model import Results
from veilmeter.results.run_folder import table_of
from veilmeter.wording.english.page import person_risk

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

    @cached_property
    def names(self) -> Names:
        """As in the run's own report."""
        return names_of(self.run, run_key(self.run.folder))

    def name_of(self, utterance: str) -> str:
        return self.names.speaker(self.pairs[utterance].original.speaker)

    def risk_of(self, utterance: str) -> str:
        speaker = self.pairs[utterance].original.speaker
        for person in self.run.results.people.persons:
            if person.speaker == speaker:
                return f"{self.name_of(utterance)} in its own report: {person_risk(person.risk)}"
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
            f"{next(iter(heard.values())).name_of(utterance)}, recording {number}",
            (
                data_uri(first[utterance].original),
                *(data_uri(heard[name].pairs[utterance].anonymized) if name in heard else "" for name in runs),
            ),
            ("", *(heard[name].risk_of(utterance) if name in heard else "no recordings in this run" for name in runs)),
        )
        for utterances in _choose(list(heard.values()))
        for number, utterance in enumerate(utterances, 1)
    ]
    return Player((ORIGINAL, *runs), tuple(recordings))


def _choose(systems: Sequence[_System]) -> list[list[str]]:
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


AUDIO_SPEAKERS = 30  # the riskiest ones; more would make a page that no mail carries
AUDIO_RECORDINGS = 2  # of each of them
AUDIO_SECONDS = 6.0
# How the run read its recordings: several places, the variants of one folder, folders that links may lead to.
_READING = (*SIDES, *options_of(CorpusReading))


@dataclass(frozen=True, slots=True)
class PlayedRecording:
    """One recording before and after as data URIs. `named` is whom the strongest attacker took it for, and
    `named_sound` a recording of that person; both are empty where that is not known."""

    original: str
    anonymized: str
    named: str = ""
    named_sound: str = ""


Recordings = Mapping[str, Sequence[PlayedRecording]]  # by speaker


@dataclass(frozen=True, slots=True)
class Pair:
    """One recording before and after."""

    original: Utterance
    anonymized: Utterance


def has_sound(results: Results) -> bool:
    """Whether recordings were assessed on both sides, not vectors."""
    return all(side in results.inputs and results.inputs[side].kind == "corpus" for side in SIDES)


def no_sound(where: str) -> InputError:
    return InputError(f"no sound in {where}: vectors were assessed, not recordings", fix="leave out --with-audio")


def recordings_of(run: Reported) -> Recordings:
    """Recordings of each of the riskiest speakers, by speaker id: first those that the attacker took for somebody."""
    by_speaker: dict[str, list[Pair]] = {}
    for pair in pairs_of(run).values():
        by_speaker.setdefault(pair.original.speaker, []).append(pair)
    riskiest = [person.speaker for person in run.results.people.persons[:AUDIO_SPEAKERS]]
    named = attacker_answers(run, riskiest)
    sounds: dict[tuple[Any, ...], str] = {}

    def sound(utterance: Utterance) -> str:
        place = (utterance.path, utterance.stretch)
        if place not in sounds:
            sounds[place] = data_uri(utterance)
        return sounds[place]

    def play(pair: Pair) -> PlayedRecording:
        who = named.get(pair.anonymized.id) or named.get(pair.original.id) or ""
        others = (other for other in by_speaker.get(who, ()) if other is not pair and is_playable(other))
        other = next(others, None)
        return PlayedRecording(
            sound(pair.original), sound(pair.anonymized), who, "" if other is None else sound(other.original)
        )

    heard: dict[str, list[PlayedRecording]] = {}
    for speaker in riskiest:
        ordered = sorted(
            by_speaker.get(speaker, ()), key=lambda pair: not {pair.anonymized.id, pair.original.id} & set(named)
        )
        heard[speaker] = [play(pair) for pair in islice(filter(is_playable, ordered), AUDIO_RECORDINGS)]
    return heard


def attacker_answers(run: Reported, speakers: Sequence[str]) -> dict[str, str]:
    """Whom the headline's attacker takes each recording of these speakers for, by the id of the recording; nothing
    where the run did not keep its scores."""
    case = strongest(run.results)
    name = "" if case is None else f"scores-{case.attacker}.parquet"
    path = None if run.folder is None or not name else table_of(run.folder, run.results, name)
    if path is None:
        return {}
    wanted, best = set(speakers), dict[str, tuple[float, str]]()
    words = ("enrollment_speaker", "utterance", "trial_speaker")
    for group in read_table(path, words, ("score",)):
        columns = (texts(group.column(word), path) for word in words)
        scores = group.column("score").to_numpy(zero_copy_only=False)
        for enrolled, utterance, tried, score in zip(*columns, scores, strict=True):
            if tried in wanted and score > best.get(utterance, (-np.inf, ""))[0]:
                best[utterance] = (score, enrolled)
    return {utterance: enrolled for utterance, (_, enrolled) in best.items()}


def rename(recordings: Recordings, names: Mapping[str, str]) -> Recordings:
    """People called as on the page; somebody who is not on it is not named."""
    return {
        names[speaker]: [
            replace(played, named=names.get(played.named, ""), named_sound=played.named_sound * (played.named in names))
            for played in heard
        ]
        for speaker, heard in recordings.items()
    }


def is_playable(pair: Pair) -> bool:
    """Recordings that could not be heard were left out of the assessment, too."""
    from veilmeter.speech.decoding import AudioError

    try:
        return len(first_seconds(pair.original)) > 0 and len(first_seconds(pair.anonymized)) > 0
    except AudioError:
        return False


def _find_paths(paths: str | Sequence[str], folder: Path | None) -> list[str]:
    """Paths are stored as they were given, relative to where the assessment ran: where there is nothing, they are
    looked for from the run's own folder upwards."""
    listed = [paths] if isinstance(paths, str) else list(paths)
    above = [] if folder is None else [real_path(folder), *real_path(folder).parents]
    return [
        path if Path(path).exists() else next((str(base / path) for base in above if (base / path).exists()), path)
        for path in map(str, listed)
    ]


def pairs_of(run: Reported) -> Mapping[str, Pair]:
    """Every recording that the run has on both sides, by the original's id and in the order of these."""
    from veilmeter.assessment.inputs import read_release
    from veilmeter.assessment.settings import make_settings
    from veilmeter.assessment.speech import read_sources
    from veilmeter.data.matching import Listed, find_partners

    results = run.results
    if not has_sound(results):
        raise no_sound("this run")
    given = {name: results.settings[name] for name in _READING if results.settings.get(name) is not None}
    settings = make_settings(given | {side: _find_paths(given[side], run.folder) for side in SIDES if side in given})
    sides: dict[SpeechRole, dict[str, Utterance]] = {side: {} for side in SIDES}
    corpora = read_sources([(side, Path(path)) for side in SIDES for path in getattr(settings, side)], settings)
    for (side, _), corpus in corpora.items():
        sides[side].update(corpus.by_id)
        if not settings.anonymized and run.folder is not None:  # veilmeter made the release, into the run's folder
            sides[SpeechRole.ANONYMIZED].update(read_release(corpus, run.folder).by_id)
    original, anonymized = (
        Listed(list(side), [utterance.speaker for utterance in side.values()]) for side in sides.values()
    )
    partners = find_partners(original, anonymized)
    return {
        name: Pair(sides[SpeechRole.ORIGINAL][name], sides[SpeechRole.ANONYMIZED][other])
        for name, other in sorted(partners.partner.items())
        if name not in partners.disputed
    }


def data_uri(utterance: Utterance) -> str:
    """The first seconds of an utterance as MP3 inside an address."""
    try:
        import soundfile
    except ImportError:
        raise missing_extra("soundfile", "audio") from None
    from veilmeter.speech.audio import RATE

    packed = io.BytesIO()
    soundfile.write(packed, first_seconds(utterance), RATE, format="MP3")
    return "data:audio/mpeg;base64," + base64.b64encode(packed.getvalue()).decode()


def first_seconds(utterance: Utterance) -> NDArray[np.float32]:
    """The beginning of the utterance, from its own part and channel of the file: the other speaker of a call must not
    be played. Silence, which some anonymizers leave, is played as it is."""
    from veilmeter.speech.audio import RATE, RecordingStream

    wanted, blocks, length = int(AUDIO_SECONDS * RATE), [], 0
    for block in RecordingStream(utterance.path, stretch=utterance.stretch, allow=("short", "silent")):
        blocks.append(block)
        length += len(block)
        if length >= wanted:
            break
    return np.concatenate([*blocks, np.empty(0, np.float32)])[:wanted]
