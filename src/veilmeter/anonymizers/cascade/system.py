"""`cascade`: the words are recognized, and a synthesizer speaks them in a pseudo-voice.

Nothing passes but words and their order; pauses, rhythm, melody and punctuation only where they are asked for. Not even
the level does: microphones and distances differ by person, so every output has the same one. A word that was recognized
wrongly is spoken wrongly, and what is not recognized becomes silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from veilmeter.anonymizers.base import Draw, Output, Samples, check_draw, generator
from veilmeter.anonymizers.cascade import phones as pronouncing
from veilmeter.anonymizers.cascade import prosody, voices
from veilmeter.anonymizers.cascade.phones import Word, load_pronouncer, phrase, split_text
from veilmeter.anonymizers.cascade.prosody import Spoken
from veilmeter.anonymizers.cascade.voices import load_pool, load_synthesizer
from veilmeter.anonymizers.treatment import FULL_SCALE, LevelMeter
from veilmeter.core.errors import InputError
from veilmeter.data.corpus import language_code
from veilmeter.speech import weights
from veilmeter.speech.audio import RATE, is_silent, read_recording
from veilmeter.speech.quality import PitchTracker
from veilmeter.speech.recognizers.base import DEFAULT, Recognizer, Transcript, cut_at_pauses, load_recognizer
from veilmeter.speech.recognizers.languages import LEAST_TYPICAL, spread_recordings

if TYPE_CHECKING:
    from veilmeter.core.engine import Engine
    from veilmeter.data.corpus import Corpus, Utterance

# Part of the version: raise it when the same words may give other samples.
CODE = 2
LANGUAGE = "en"
LONGEST = 25.0  # seconds recognized at once
SHORT = 6.0  # the same where nothing was recognized in more
LEVEL = 0.06  # of the loud part of every output, as a share of full scale
LEAST_CONFIDENCE = 0.25  # of the recognizer in a stretch; below, it guesses
USUAL_CONFIDENCE = 0.45  # below, the words may be wrong, or of another language
KEEPABLE = ("pauses", "durations", "pitch", "punctuation")
PROSODY = "prosody"  # durations and pitch
ALIGNED = frozenset({"pauses", "durations", "pitch"})  # known from when each phone was spoken
SILENT = 0.01  # of the highest peak: what a synthesizer gives before and behind the words
ONE_VOICE = "fast"


@dataclass(frozen=True)
class Cascade:
    """The anonymizer. `voice` is kokoro or fast; `keep` names what is kept besides the words, separated by commas:
    pauses, durations, pitch (prosody for both), punctuation. `language` is that of a corpus that does not name it."""

    voice: str = "kokoro"
    keep: str = ""
    per: str = "utterance"
    language: str = ""
    seed: int = 0
    offline: bool = False

    def __post_init__(self) -> None:
        if self.voice not in voices.VOICES:
            raise InputError(f"cascade has no voice {self.voice!r}", fix=f"choose {' or '.join(voices.VOICES)}")
        check_draw(self.per)
        generator(self.seed, "")  # refuses a negative seed now, not in the middle of the work
        parse_keep(self.keep)
        if self.language:
            _check_language(self.language)

    @property
    def name(self) -> str:
        return "cascade"

    @property
    def keeps_length(self) -> bool:
        return False

    @property
    def version(self) -> str:
        recognizer = load_recognizer(DEFAULT, LANGUAGE, offline=self.offline)
        model = weights.HIBARI_VOICE if self.voice == ONE_VOICE else weights.KOKORO
        codes = f"{CODE}.{pronouncing.CODE}.{voices.CODE}.{prosody.CODE}"
        return f"{codes}-{recognizer.name}-{recognizer.version}-{model.name}-{model.sha256[:12]}"

    @property
    def draws(self) -> Draw:
        return Draw.NONE if self.voice == ONE_VOICE else Draw(self.per)

    @property
    def unused(self) -> dict[str, str]:
        """Options that can't act: the fast voice is one and the same for everybody."""
        return {name: "the fast voice is the same for everybody" for name in ("seed", "per") if self._has_one_voice}

    @property
    def _has_one_voice(self) -> bool:
        return self.voice == ONE_VOICE

    def prepare(self, corpus: Corpus, engine: Engine) -> Cascade:
        """Fetches everything once, before several processes ask for it, and refuses speech that is not English."""
        load_pronouncer(offline=self.offline)
        model = weights.HIBARI_VOICE if self._has_one_voice else weights.KOKORO
        weights.fetch_all((model, weights.HIBARI_PHONES), offline=self.offline)
        if not (self.language or corpus.languages):
            self._check_speech(corpus, engine)
        return self

    def _check_speech(self, corpus: Corpus, engine: Engine) -> None:
        load_recognizer(DEFAULT, LANGUAGE, offline=self.offline)
        some = spread_recordings(corpus)
        heard = [sure for _, sure in engine.run(partial(_hear, self.offline), some) if sure is not None]
        if heard and float(np.median(heard)) < LEAST_TYPICAL:
            raise InputError(
                f"this does not sound like English: the recognizer's median confidence in {len(heard)} recordings is "
                f"{np.median(heard):.2f} (English has {LEAST_TYPICAL} or more), and cascade speaks English only",
                path=corpus.root,
                fix="use another system; if it is English, say so with --option language=en",
            )

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        if not self.language:
            _check_language(language_code(utterance.attributes) or LANGUAGE)
        kept = {"voice": self.voice, "keep": list(parse_keep(self.keep))}
        if self._has_one_voice:
            return kept | {"pseudo_speaker": ONE_VOICE}
        key = utterance.speaker if self.per == "speaker" else utterance.id
        # The kind goes into the name, as a speaker and an utterance may have the same id.
        voice = load_pool(offline=self.offline).draw(generator(self.seed, f"{self.per}:{key}"))
        return kept | {
            "pseudo_speaker": voice.name,
            "mixture": dict(voice.mixture),
            "nearest": voice.nearest,
            "distance": voice.distance,
        }

    def anonymize(self, samples: Samples, parameters: dict[str, Any]) -> Output:
        keep = frozenset(parameters["keep"])
        speaker = _Speaker(parameters["voice"], parameters.get("mixture", {}), keep, self.offline)
        recognizer = load_recognizer(DEFAULT, LANGUAGE, offline=self.offline)
        parts: list[Samples] = []
        spoken: list[Samples] = []
        remarks: list[str] = []
        start = 0
        for stretch in cut_at_pauses(samples, LONGEST):
            seconds = (start / RATE, (start + len(stretch)) / RATE)
            start += len(stretch)
            heard = _recognize(recognizer, stretch)
            words = speaker.words(heard.text) if heard else []
            if heard and words:
                said = speaker.say(words, stretch)
                spoken.append(said.samples)
                parts.append(said.samples)
                doubts = [*_doubts(heard), *said.remarks]
                remarks += [f"{remark}: {seconds[0]:.1f} to {seconds[1]:.1f} s" for remark in doubts]
                continue
            if heard is None and "pauses" not in keep:  # silence in the source
                continue
            parts.append(np.zeros(len(stretch), np.float32))
            if heard is not None:
                remarks.append(f"not recognized, now silent: {seconds[0]:.1f} to {seconds[1]:.1f} s")
        if not spoken:
            raise InputError(
                f"no English words were recognized in its {len(samples) / RATE:.1f} s",
                fix="remove it from the list, or use another system",
            )
        return Output(np.concatenate(parts) * _gain(np.concatenate(spoken)), tuple(remarks))


def _check_language(code: str) -> None:
    if code.lower().replace("_", "-").split("-")[0] != LANGUAGE:
        raise InputError(f"cascade speaks English only, not {code!r}", fix="use another system")


def _hear(offline: bool, utterance: Utterance) -> float | None:
    """How sure the recognizer is of the first stretch of a recording; None where it can't be read or has no words."""
    try:
        recording = read_recording(utterance.path, stretch=utterance.stretch)
    except InputError:
        return None
    stretch = next(cut_at_pauses(recording.samples, LONGEST))
    heard = load_recognizer(DEFAULT, LANGUAGE, offline=offline).transcribe(stretch)
    return heard.confidence if heard.text else None


def parse_keep(keep: str | Sequence[str]) -> tuple[str, ...]:
    """Properties that are kept besides the words, in one order.

    >>> parse_keep("prosody,pauses"), parse_keep("")
    (('pauses', 'durations', 'pitch'), ())
    """
    named = [name.strip() for name in (keep.split(",") if isinstance(keep, str) else keep) if name.strip()]
    if named == ["nothing"]:
        return ()
    for name in named:
        if name not in (*KEEPABLE, PROSODY):
            choice = ", ".join((*KEEPABLE, PROSODY))
            raise InputError(f"cascade can't keep {name!r}", fix=f"choose from {choice}, or nothing")
    wanted = {*named, *(("durations", "pitch") if PROSODY in named else ())}
    return tuple(name for name in KEEPABLE if name in wanted)


def _recognize(recognizer: Recognizer, stretch: Samples) -> Transcript | None:
    """The recognized text, empty where there is speech or noise that is not recognized; None in silence.

    With long pauses in it, the recognizer may hear nothing in a stretch of which it understands the parts.
    """
    if is_silent(stretch):
        return None
    heard = recognizer.transcribe(stretch)
    if heard.text:
        return heard if _is_sure(heard) else replace(heard, text="")
    parts = [recognizer.transcribe(part) for part in cut_at_pauses(stretch, SHORT)]
    sure = [part for part in parts if part.text and _is_sure(part)]
    least = min((part.confidence for part in sure if part.confidence is not None), default=None)
    return Transcript(" ".join(part.text for part in sure), least)


def _is_sure(heard: Transcript) -> bool:
    return heard.confidence is None or heard.confidence >= LEAST_CONFIDENCE


def _doubts(heard: Transcript) -> Iterator[str]:
    if heard.confidence is not None and heard.confidence < USUAL_CONFIDENCE:
        yield "words may be wrong or not English (low confidence)"


def _gain(spoken: Samples) -> np.float32:
    """Brings speech to the common level, or as near to it as full scale allows."""
    meter = LevelMeter(RATE)
    meter.add(spoken)
    peak = float(np.abs(spoken).max(initial=0.0))
    return np.float32(min(LEVEL / max(meter.level, 1e-6), FULL_SCALE / max(peak, 1e-6)))


class _Speaker:
    """Says recognized text in one voice."""

    def __init__(self, voice: str, mixture: dict[str, float], keep: frozenset[str], offline: bool) -> None:
        self._mixture, self._keep, self._offline = mixture, keep, offline
        self._pronouncer = load_pronouncer(offline=offline)
        given = bool(keep & {"durations", "pitch"})
        self._synthesizer = load_synthesizer(voice, with_prosody=given, offline=offline)

    def words(self, text: str) -> list[Word]:
        """The words of the text, with marks and phones; none if nothing in it can be said."""
        words = split_text(text)
        marked = words if "punctuation" in self._keep else phrase(words)
        table = self._synthesizer.table
        said = [
            replace(word, phones=voices.filter_phones(table, word.phones))
            for word in self._pronouncer.pronounce(marked)
        ]
        return [word for word in said if word.phones]

    def say(self, words: Sequence[Word], source: Samples) -> Output:
        """At 16 kHz; the remark is that the rhythm of the source was not found."""
        import soxr

        aligned = prosody.align(words, source) if self._keep & ALIGNED else None
        if aligned is None:
            said = [self._synthesizer.speak(spell(some)[0], self._mixture) for some in sentences(words)]
        else:
            said = list(self._say_as(words, aligned, source))
        spoken: Samples = soxr.resample(np.concatenate(said), voices.RATE, RATE, quality="HQ")
        lost = ("no rhythm was found to keep",) if self._keep & ALIGNED and aligned is None else ()
        return Output(spoken, lost)

    def _say_as(self, words: Sequence[Word], aligned: Sequence[Spoken], source: Samples) -> Iterator[Samples]:
        lengths = [end - start for word in aligned for start, end in word.phones]
        contour = prosody.Contour.of(source, _tracker(self._offline)) if "pitch" in self._keep else None
        pauses = [word.pause if "pauses" in self._keep else 0.0 for word in aligned]
        for first, last in sentence_places(words, pauses):
            phones, places = spell(words[first:last])
            spans = [None if place is None else _span(aligned[first + place[0]], place[1]) for place in places]
            manner = prosody.SourceProsody(phones, spans, float(np.mean(lengths)), "durations" in self._keep, contour)
            is_given = bool(self._keep & {"durations", "pitch"})
            samples = self._synthesizer.speak(phones, self._mixture, manner if is_given else None)
            if "pauses" not in self._keep:
                yield samples
                continue
            yield _without_silence(samples)
            yield np.zeros(int(pauses[last - 1] * voices.RATE), np.float32)


@lru_cache(maxsize=1)
def _tracker(offline: bool) -> PitchTracker:
    return PitchTracker(offline=offline)


def _span(word: Spoken, number: int) -> tuple[float, float] | None:
    return word.phones[number] if number < len(word.phones) else None


def _without_silence(samples: Samples) -> Samples:
    loud = np.flatnonzero(np.abs(samples) > SILENT * np.abs(samples).max(initial=0.0))
    return samples[loud[0] : loud[-1] + 1] if len(loud) else samples


def spell(words: Sequence[Word]) -> tuple[str, list[tuple[int, int] | None]]:
    """The phones of words with blanks and marks; and for each, of which word it is the which phone, None for others.

    >>> spell([Word("hi", "hˈI", ","), Word("you", "ju", ".")])
    ('hˈI, ju.', [(0, 0), None, (0, 1), None, None, (1, 0), (1, 1), None])
    """
    text, places = "", list[tuple[int, int] | None]()
    for number, word in enumerate(words):
        if number:
            text, places = text + " ", [*places, None]
        count = 0
        for phone in word.phones[: voices.MOST_PHONES]:
            is_phone = phone in prosody.SPHINX
            places.append((number, count) if is_phone else None)
            count += is_phone
        text += word.phones[: voices.MOST_PHONES] + word.mark
        places += [None] * len(word.mark)
    return text, places


def sentences(words: Sequence[Word]) -> Iterator[Sequence[Word]]:
    """The words, cut behind full stops, and where a sentence would be too long.

    >>> [spell(some)[0] for some in sentences([Word("hi", "hˈI", ","), Word("you", "ju", "."), Word("go", "ɡˈO")])]
    ['hˈI, ju.', 'ɡˈO']
    """
    return (words[first:last] for first, last in sentence_places(words, [0.0] * len(words)))


def sentence_places(words: Sequence[Word], pauses: Sequence[float]) -> Iterator[tuple[int, int]]:
    """Where sentences begin and end: behind full stops and pauses, and where one would be too long."""
    first = length = 0
    for number, word in enumerate(words):
        size = len(word.phones) + len(word.mark) + 1
        if number > first and length + size > voices.MOST_PHONES:
            yield first, number
            first, length = number, 0
        length += size
        if word.mark in (".", "!", "?") or pauses[number]:
            yield first, number + 1
            first, length = number + 1, 0
    if first < len(words):
        yield first, len(words)
