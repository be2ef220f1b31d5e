"""`xvector-pool`: every speaker gets the voice of a pseudo-speaker, averaged from a pool of x-vectors.

Inspired by baseline B1 of the VoicePrivacy challenges, and not it: the choice of the pseudo-speaker is the papers', and
so is the way of the words through a recognizer; the synthesis is a small converter before the WORLD vocoder instead of
neural acoustic and waveform models. A better synthesizer can take its place (`synthesizer`): whatever turns samples and
an x-vector into samples.
"""

from __future__ import annotations

import hashlib
import importlib
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from veilmeter.anonymizers.base import Draw, Samples, generator
from veilmeter.anonymizers.xvector_pool import model as models
from veilmeter.anonymizers.xvector_pool import world
from veilmeter.anonymizers.xvector_pool.features import hear, level
from veilmeter.anonymizers.xvector_pool.selection import Rule, VoicePool, choose
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import unit
from veilmeter.speech.extractors.base import load_extractor
from veilmeter.speech.recognizers.moonshine import encoder_version, load_layer

if TYPE_CHECKING:
    from veilmeter.core.engine import Engine
    from veilmeter.data.corpus import Corpus, Utterance

# Minutes of a long recording that its speaker is known by: a voice far from that is found without hearing it all.
HEARD_MINUTES = 3

Vector = NDArray[np.float32]


class Synthesizer(Protocol):
    """Says the same words in the voice of an x-vector. `version` changes when the same input gives another output."""

    @property
    def version(self) -> str: ...

    def speak(self, samples: Samples, xvector: Vector) -> Samples: ...


@dataclass(frozen=True)
class WorldSynthesizer:
    """The converter of a `VoiceModel` between a recognizer's encoder and WORLD's synthesis."""

    model: models.VoiceModel
    offline: bool = False

    @property
    def version(self) -> str:
        return f"{self.model.version}-{encoder_version(self.model.layer)}"

    def speak(self, samples: Samples, xvector: Vector) -> Samples:
        return np.concatenate(list(self.stream([samples], xvector)))

    def stream(self, blocks: Iterable[Samples], xvector: Vector) -> Iterator[Samples]:
        code = self.model.speaker_code(xvector)
        encoder = load_layer(self.model.layer, offline=self.offline)
        for block in world.quiet_cuts(blocks):
            if not block.any():  # there is nothing to say
                yield np.zeros_like(block)
                continue
            heard = hear(block, encoder)
            spoken, _ = level(world.synthesize(self.model.convert(heard, code)))
            yield spoken / np.float32(heard.gain)  # as loud as it was


@dataclass(frozen=True)
class XvectorPool:
    """The anonymizer. `prepared` must hear the corpus first: a pseudo-speaker is chosen far from the source speaker.

    `model` is a file that `veilmeter train xvector-pool` wrote (the one that comes with the package by default), `pool`
    any file or folder of embeddings with a `gender` column to be used instead of the model's own pool.
    """

    seed: int = 0
    furthest: int = 60
    drawn: int = 10
    gender: str = "random"
    distance: str = "cosine"
    per: str = "speaker"
    model: str = ""
    pool: str = ""
    synthesizer: str = ""
    offline: bool = False
    sources: Mapping[str, Vector] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        generator(self.seed, "")  # refuses a negative seed now, not in the middle of the work
        rule = self.rule
        counts = {gender: self.chosen_pool.genders.count(gender) for gender in set(self.chosen_pool.genders)}
        if min(counts.values()) < rule.furthest:
            raise InputError(
                f"the pool has only {min(counts.values())} voices of one gender, fewer than {rule.furthest} furthest",
                fix="ask for fewer, or use a larger pool",
            )

    @property
    def name(self) -> str:
        return "xvector-pool"

    @property
    def version(self) -> str:
        digest = hashlib.sha256(_speaker(self.synthesizer, self._model_path, self.offline).version.encode())
        digest.update(self.chosen_pool.vectors.tobytes())
        return f"5-{digest.hexdigest()[:16]}"

    @property
    def draws(self) -> Draw:
        return Draw(self.per)

    @property
    def rule(self) -> Rule:
        return Rule(self.furthest, self.drawn, self.gender, self.distance, self.per)

    @property
    def chosen_pool(self) -> VoicePool:
        return _read_pool(self.pool) if self.pool else _model(self._model_path).pool

    @property
    def _model_path(self) -> str:
        return self.model or str(models.builtin_model())

    def prepare(self, corpus: Corpus, engine: Engine) -> XvectorPool:
        """With the x-vector of every source: one per speaker (the mean of their utterances) or per utterance.

        An utterance that can't be read has none; it is reported when its turn comes.
        """
        from veilmeter.speech import weights

        weights.fetch(weights.CAMPPLUS, offline=self.offline)  # once, before several processes ask for it
        if not self.synthesizer:
            load_layer(_model(self._model_path).layer, offline=self.offline)
        sums: dict[str, NDArray[np.float64]] = {}
        utterances = corpus.utterances
        embedded = dict(engine.run(partial(_embed, self.offline), utterances))
        for number, utterance in enumerate(utterances):  # in the corpus's order: sums of floats depend on it
            vector = embedded[number]
            if vector is not None:
                key = self._key(utterance)
                sums[key] = sums.get(key, 0.0) + unit(vector).astype(np.float64)
        return replace(self, sources={key: unit(total) for key, total in sums.items()})

    def _key(self, utterance: Utterance) -> str:
        return utterance.speaker if self.per == "speaker" else utterance.id

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        key = self._key(utterance)
        if key not in self.sources:
            raise InputError(
                f"the {self.per} {key!r} has no x-vector, so no voice far from it can be chosen",
                path=utterance.path,
                fix="check that its audio can be read",
            )
        plda = _model(self._model_path).plda
        # The kind goes into the name, as a speaker and an utterance may have the same id.
        rng = generator(self.seed, f"{self.per}:{key}")
        choice = choose(self.sources[key], utterance.gender, self.chosen_pool, self.rule, rng, plda)
        return {
            "pseudo_speaker": pseudo_speaker_name(choice.gender, choice.members),
            "gender": choice.gender,
            "members": list(choice.members),
        }

    def anonymize(self, samples: Samples, parameters: dict[str, Any]) -> Samples:
        return np.concatenate(list(self.anonymize_blocks([samples], parameters)))

    def anonymize_blocks(self, blocks: Iterable[Samples], parameters: dict[str, Any]) -> Iterator[Samples]:
        """Another synthesizer than WORLD gets the whole recording, unless it has `stream` too."""
        xvector = self.chosen_pool.average(parameters["members"])
        speaker = _speaker(self.synthesizer, self._model_path, self.offline)
        stream = getattr(speaker, "stream", None)
        if stream is not None:
            yield from stream(blocks, xvector)
        else:
            yield speaker.speak(np.concatenate(list(blocks)), xvector)


def pseudo_speaker_name(gender: str, members: tuple[str, ...]) -> str:
    """The same members make the same voice, and so the same name.

    >>> pseudo_speaker_name("f", ("f001", "f007"))
    'f-d2faf990'
    """
    return f"{gender or 'x'}-{hashlib.sha256(' '.join(members).encode()).hexdigest()[:8]}"


@lru_cache(maxsize=4)
def _model(path: str) -> models.VoiceModel:
    """Once per process, not once per utterance."""
    return models.load(path)


@lru_cache(maxsize=4)
def _speaker(synthesizer: str, model: str, offline: bool) -> Synthesizer:
    if not synthesizer:
        return WorldSynthesizer(_model(model), offline)
    module, _, name = synthesizer.partition(":")
    try:
        instance: Synthesizer = getattr(importlib.import_module(module), name)()
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        raise InputError(f"the synthesizer {synthesizer!r} can't be loaded: {error}", fix="give module:name") from None
    if not hasattr(instance, "speak") or not hasattr(instance, "version"):
        raise InputError(f"not a synthesizer: {synthesizer!r}", fix="it needs version and speak(samples, xvector)")
    return instance


@lru_cache(maxsize=4)
def _read_pool(path: str) -> VoicePool:
    """A pool from stored embeddings: the mean of each speaker's vectors, and their gender."""
    from veilmeter.data.formats.vectors import read_embeddings

    stored = read_embeddings(Path(path))
    if "gender" not in stored.attributes:
        raise InputError("a pool needs a gender for each voice", path=path, fix="add a gender column")
    vectors = []
    genders = []
    for code in range(len(stored.names)):
        rows = np.flatnonzero(stored.codes == code)
        vectors.append(stored.unit[rows].mean(axis=0, dtype=np.float64).astype(np.float32))
        genders.append(str(stored.attributes["gender"][rows[0]]).strip().lower()[:1])
    return VoicePool(np.stack(vectors), tuple(stored.names), tuple(genders))


def _embed(offline: bool, utterance: Utterance) -> Vector | None:
    from veilmeter.speech.audio import RecordingStream, read_recording
    from veilmeter.speech.extractors.embed_corpus import embed_in_windows

    try:
        extractor = load_extractor("campplus", offline=offline)
        # Whether it is too long is for the run to say.
        stream = RecordingStream(utterance.path, stretch=utterance.stretch, max_seconds=math.inf)
        facts = read_recording(utterance.path, stretch=utterance.stretch, max_seconds=math.inf, keep_seconds=0.0)
        vector: Vector = embed_in_windows(extractor, stream, facts.length, most=HEARD_MINUTES)
    except InputError:
        return None
    return vector if np.isfinite(vector).all() and np.abs(vector).max() > 0 else None
