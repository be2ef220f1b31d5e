"""Recordings of the people most at risk, before and after, for a page that the user allows to hold them."""

from __future__ import annotations

import base64
import io
from pathlib import Path

from veilmeter.core.errors import InputError, missing_extra
from veilmeter.data.corpus import Utterance
from veilmeter.results.model import Results

AUDIO_SPEAKERS = 30  # the riskiest ones; more would make a page that no mail carries
AUDIO_SECONDS = 6.0
SIDES = ("original", "anonymized")

Recordings = dict[str, list[dict[str, str]]]


def recordings_of(results: Results) -> Recordings:
    """Two recordings of each of the riskiest speakers, before and after, as data URIs, by speaker id."""
    from veilmeter.assessment.settings import make_settings
    from veilmeter.assessment.sources import read_sources

    # As the run read them: several places, the variants of one folder, folders that links may lead to.
    names = ("original", "anonymized", "layout", "part", "suffix", "root", "columns", "channel")
    settings = make_settings({name: results.settings[name] for name in names if results.settings.get(name) is not None})
    for side in SIDES:
        if side not in results.inputs or results.inputs[side].kind != "corpus":
            raise InputError(
                "there is no sound in this run: vectors were assessed, not recordings", fix="leave out --with-audio"
            )
    places = [(side, Path(path)) for side in SIDES for path in getattr(settings, side)]
    utterances: dict[str, dict[str, Utterance]] = {side: {} for side in SIDES}
    for (side, _), corpus in read_sources(places, settings).items():
        utterances[side].update(corpus.by_id)
    recordings: Recordings = {}
    for person in results.people.persons[:AUDIO_SPEAKERS]:
        both = sorted(
            uid
            for uid, utterance in utterances["original"].items()
            if utterance.speaker == person.speaker and uid in utterances["anonymized"]
        )
        recordings[person.speaker] = [{side: data_uri(utterances[side][uid]) for side in SIDES} for uid in both[:2]]
    return recordings


def data_uri(utterance: Utterance) -> str:
    """The first seconds of an utterance as MP3 inside an address."""
    try:
        import soundfile
    except ImportError:
        raise missing_extra("soundfile", "audio") from None
    from veilmeter.speech.audio import RATE, read_audio

    # The utterance's own part and side of its file: the other one on the phone may not be played.
    samples = read_audio(utterance.path, stretch=utterance.stretch)[: int(AUDIO_SECONDS * RATE)]
    packed = io.BytesIO()
    soundfile.write(packed, samples, RATE, format="MP3")
    return "data:audio/mpeg;base64," + base64.b64encode(packed.getvalue()).decode()
