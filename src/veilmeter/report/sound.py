"""Recordings before and after, for a page that the user allows to hold them."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, missing_extra
from veilmeter.core.options import options_of
from veilmeter.data.corpus import CorpusReading, Utterance
from veilmeter.data.roles import SIDES, SpeechRole
from veilmeter.report.source import Reported
from veilmeter.results.model import Results

AUDIO_SPEAKERS = 30  # the riskiest ones; more would make a page that no mail carries
AUDIO_RECORDINGS = 2  # of each of them
AUDIO_SECONDS = 6.0
# How the run read its recordings: several places, the variants of one folder, folders that links may lead to.
_READING = (*SIDES, *options_of(CorpusReading))

Recordings = dict[str, list[dict[str, str]]]


@dataclass(frozen=True, slots=True)
class Pair:
    """One recording before and after."""

    original: Utterance
    anonymized: Utterance


def has_sound(results: Results) -> bool:
    """Whether recordings were assessed on both sides, not vectors."""
    return all(side in results.inputs and results.inputs[side].kind == "corpus" for side in SIDES)


def no_sound(where: str) -> InputError:
    return InputError(
        f"there is no sound in {where}: vectors were assessed, not recordings", fix="leave out --with-audio"
    )


def recordings_of(run: Reported) -> Recordings:
    """Recordings of each of the riskiest speakers, before and after, as data URIs, by speaker id."""
    by_speaker: dict[str, list[Pair]] = {}
    for pair in pairs_of(run).values():
        by_speaker.setdefault(pair.original.speaker, []).append(pair)
    riskiest = [person.speaker for person in run.results.people.persons[:AUDIO_SPEAKERS]]
    return {
        speaker: [
            {"original": data_uri(pair.original), "anonymized": data_uri(pair.anonymized)}
            for pair in islice(filter(is_playable, by_speaker.get(speaker, ())), AUDIO_RECORDINGS)
        ]
        for speaker in riskiest
    }


def is_playable(pair: Pair) -> bool:
    """Recordings that could not be heard were left out of the assessment, too."""
    from veilmeter.speech.decoding import AudioError

    try:
        return len(first_seconds(pair.original)) > 0 and len(first_seconds(pair.anonymized)) > 0
    except AudioError:
        return False


def pairs_of(run: Reported) -> Mapping[str, Pair]:
    """Every recording that the run has on both sides, by the original's id and in the order of these."""
    from veilmeter.assessment.inputs import read_release
    from veilmeter.assessment.settings import make_settings
    from veilmeter.assessment.speech import read_sources
    from veilmeter.data.matching import Listed, find_partners

    results = run.results
    if not has_sound(results):
        raise no_sound("this run")
    settings = make_settings(
        {name: results.settings[name] for name in _READING if results.settings.get(name) is not None}
    )
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
    """Of the utterance's own part and side of its file: the other one on the phone may not be played. Silence is what
    some anonymizers leave, and may be heard as such."""
    from veilmeter.speech.audio import RATE, RecordingStream

    wanted, blocks, length = int(AUDIO_SECONDS * RATE), [], 0
    for block in RecordingStream(utterance.path, stretch=utterance.stretch, allow=("short", "silent")):
        blocks.append(block)
        length += len(block)
        if length >= wanted:
            break
    return np.concatenate([*blocks, np.empty(0, np.float32)])[:wanted]
