"""Channels beside the voice, on people who differ in one thing only: words, durations, pitch range, or nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from veilmeter.attacks.attacker import ATTACKERS, perform
from veilmeter.attacks.attackers.adaptive import AdaptiveAttacker, Fused
from veilmeter.attacks.material import AttackerRun, Material
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.legal.linkability import linkability_of_scores
from veilmeter.speech.extractors.rhythm import (
    NUMBERS,
    UNIT,
    USUAL,
    DurationsExtractor,
    Phone,
    PhoneAligner,
    duration_features,
    duration_statistics,
    frame_levels,
    rhythm_features,
    rhythm_statistics,
)
from veilmeter.speech.extractors.words import hash_items, style_features, tokens, word_features
from veilmeter.speech.quality import FRAME

PEOPLE, EACH = 8, 5
RATE = 16_000
Speak = Callable[[np.random.Generator, int], np.ndarray]  # speaker to the features of a new recording


def linked(speak: Speak, seed: int = 0) -> float:
    """How many recordings a ridge regression links. The anonymizer is perfect for voices: every recording of the
    same speaker is as new as any other, so that only what `speak` makes of the speaker can be found."""
    rng = np.random.default_rng(seed)
    speakers = np.repeat(np.arange(PEOPLE), EACH)
    sides = [np.stack([speak(rng, speaker) for speaker in speakers]) for _ in range(3)]
    names = [f"s{speaker}" for speaker in speakers]
    ids = [f"{name}-{number}" for number, name in enumerate(names)]
    originals, copies = (Embeddings(side, ids, names) for side in sides[:2])
    material = Material(
        candidates=originals,
        trials=sides[2].astype(np.float32),
        conversations=(np.arange(len(names))[:, None],),
        runs=(AttackerRun(vectors=copies, draw="utterance", certain=True),),
    )
    found = linkability_of_scores(perform(ATTACKERS["ridge"], material).scores, material.names, np.array(names, object))
    assert found is not None
    return float(found.estimate(found.largest, intervals=False).value)


VOCABULARY = (
    "the", "of", "and", "a", "to", "in", "house", "river", "walked", "slowly", "because", "however", "never", "well",
    "um", "market", "seven", "green",
)  # fmt: skip


def said(rng: np.random.Generator, taste: np.ndarray) -> str:
    return " ".join(rng.choice(VOCABULARY, 25, p=taste / taste.sum()))


def taste(speaker: int, strength: float) -> np.ndarray:
    return np.exp(strength * np.random.default_rng([7, speaker]).standard_normal(len(VOCABULARY)))


def bursts(rng: np.random.Generator, length: float, gap: float) -> np.ndarray:
    """Noise in beats of about these durations in seconds."""
    parts = []
    while sum(map(len, parts)) < 3 * RATE:
        on, off = (round(RATE * mean * rng.uniform(0.85, 1.15)) for mean in (length, gap))
        parts += [np.hanning(on) * rng.standard_normal(on), np.zeros(off)]
    return (0.1 * np.concatenate(parts)[: 3 * RATE]).astype(np.float32)


def melody(rng: np.random.Generator, octaves: float) -> np.ndarray:
    """A pitch track of this range, voiced two thirds of the time."""
    frames = 3 * RATE // FRAME
    curve = np.convolve(rng.standard_normal(frames + 20), np.hanning(21) / 5, "valid")
    return np.where(np.arange(frames) % 30 < 20, 150 * 2 ** (octaves * curve), 0.0)


def phones(rng: np.random.Generator, longer: np.ndarray, pause: float = 0.3) -> list[Phone]:
    """Sixty phones, each so many octaves longer than usual, with a pause after every tenth."""
    names = rng.choice(list(USUAL), 60)
    octaves = [USUAL[name] + longer[NUMBERS[name]] + 0.3 * rng.standard_normal() for name in names]
    spoken = [Phone(str(name), float(2**octave)) for name, octave in zip(names, octaves, strict=True)]
    silence = [Phone("SIL", pause * float(rng.uniform(0.7, 1.3))) for _ in range(6)]
    return [phone for start in range(6) for phone in (*spoken[10 * start : 10 * start + 10], silence[start])]


def habits(speaker: int) -> np.ndarray:
    """Which phones a person draws out."""
    return 0.6 * np.random.default_rng([9, speaker]).standard_normal(len(USUAL))


def rhythm(rng: np.random.Generator, *, length: float = 0.15, gap: float = 0.1, octaves: float = 0.2) -> np.ndarray:
    return rhythm_features(bursts(rng, length, gap), melody(rng, octaves))


@pytest.mark.parametrize(
    "speak",
    [
        lambda rng, speaker: word_features(said(rng, taste(speaker, 1.0))),
        lambda rng, speaker: style_features(said(rng, taste(speaker, 1.2))),
        lambda rng, speaker: rhythm(rng, length=0.08 + 0.03 * speaker),
        lambda rng, speaker: rhythm(rng, gap=0.05 + 0.06 * speaker),
        lambda rng, speaker: rhythm(rng, octaves=0.05 * 1.6**speaker),
        lambda rng, speaker: duration_features(phones(rng, habits(speaker))),
        lambda rng, speaker: duration_features(phones(rng, np.zeros(len(USUAL)), pause=0.05 * 1.9**speaker)),
    ],
    ids=["words", "style", "durations", "pauses", "pitch range", "phones", "pauses between phones"],
)
def test_people_who_differ_in_one_thing_are_found_by_it(speak: Speak) -> None:
    assert linked(speak) > 30


@pytest.mark.parametrize(
    "speak",
    [
        lambda rng, speaker: word_features(said(rng, taste(0, 1.0))),
        lambda rng, speaker: rhythm(rng),
        lambda rng, speaker: duration_features(phones(rng, habits(0))),
    ],
    ids=["words", "rhythm", "durations"],
)
def test_people_who_do_not_differ_are_not_found(speak: Speak) -> None:
    assert float(np.mean([linked(speak, seed) for seed in range(2)])) == pytest.approx(100 / PEOPLE, abs=10)


@pytest.mark.parametrize(
    ("differs", "seed"), [("words", 5), ("durations", 5), ("pitch range", 5), ("pitch range", 6), ("nothing", 5)]
)
def test_fusion_loses_little_to_its_best_channel(differs: str, seed: int) -> None:
    """All channels are heard, and people differ in one of them or in none: the attacker learns which from its own
    recordings."""
    rng = np.random.default_rng(seed)
    speakers = np.repeat(np.arange(PEOPLE), EACH)
    names = np.array([f"s{speaker}" for speaker in speakers], object)
    ids = [f"{name}-{number}" for number, name in enumerate(names)]
    channels: dict[str, Speak] = {
        "words": lambda rng, speaker: word_features(said(rng, taste(speaker, 1.0))),
        "durations": lambda rng, speaker: duration_features(phones(rng, habits(speaker))),
        "pitch range": lambda rng, speaker: rhythm(rng, octaves=0.05 * 1.6**speaker),
    }

    def heard(channel: str) -> Material:
        own = speakers if channel == differs else np.zeros_like(speakers)
        sides = [np.stack([channels[channel](rng, speaker) for speaker in own]) for _ in range(3)]
        return Material(
            candidates=Embeddings(sides[0], ids, names),
            trials=sides[2].astype(np.float32),
            conversations=(np.arange(len(names))[:, None],),
            runs=(AttackerRun(vectors=Embeddings(sides[1], ids, names), draw="utterance", certain=True),),
        )

    views = {channel: heard(channel) for channel in channels}
    first, *further = views
    together = replace(views[first], views={name: views[name] for name in further})
    alone, fused = AdaptiveAttacker(), Fused()
    alone.families = fused.families = ("lazy", "ridge")
    shares = {name: linked_by(alone, material, names) for name, material in views.items()}
    found = linked_by(fused, together, names)
    if differs == "nothing":
        assert found < 0.3  # guessing links 1 of 8
    else:
        assert max(shares, key=lambda name: shares[name]) == differs
        assert shares[differs] > 0.3
        assert found >= shares[differs] - 0.026  # one of forty recordings


def linked_by(attack: AdaptiveAttacker, material: Material, names: np.ndarray) -> float:
    found = linkability_of_scores(perform(attack, material).scores, material.names, names)
    assert found is not None
    return found.value(found.largest)


def test_words_by_hand() -> None:
    assert tokens("It's 3 o'clock, naïve_Friend!") == ["it's", "o'clock", "naïve", "friend"]
    np.testing.assert_allclose(hash_items(["b", "a", "a", "a"]), hash_items(["a", "b", "a", "a"]))
    assert np.isclose(abs(hash_items(["a"])).sum(), 1)
    # Style does not see which content words are used, only how long they are.
    np.testing.assert_array_equal(style_features("the house and the river"), style_features("the berry and the plane"))
    assert (word_features("the house") != word_features("the river")).any()


@pytest.mark.parametrize("features", [word_features, style_features])
def test_no_text_has_a_vector(features: Callable[[str], np.ndarray]) -> None:
    assert np.linalg.norm(features("")) > 0
    assert features("").shape == features("some words").shape


def test_rhythm_does_not_depend_on_gain_but_for_one_coordinate() -> None:
    rng = np.random.default_rng(0)
    samples, pitch = bursts(rng, 0.15, 0.2), melody(rng, 0.2)
    loud, soft = (rhythm_statistics(gain * samples, pitch) for gain in (1.0, 0.25))
    changed = np.flatnonzero(~np.isclose(loud, soft, atol=0.05))
    assert len(changed) == 1
    assert (loud - soft)[changed[0]] == pytest.approx(20 * np.log10(4) / 6, abs=0.01)
    free = rhythm_statistics(samples, pitch, level=False)
    np.testing.assert_array_equal(free, np.delete(loud, changed[0]))


def test_durations_by_hand() -> None:
    usual = [Phone(name, 2**octaves) for name, octaves in USUAL.items()]
    statistics = duration_statistics(usual)
    np.testing.assert_allclose(statistics[:7], 0, atol=1e-12)
    slow = [Phone(phone.name, 2 * phone.seconds) for phone in usual]
    np.testing.assert_allclose(duration_statistics(slow)[1:7], 0, atol=1e-12)  # the rate alone differs
    assert duration_statistics(slow)[0] == pytest.approx(UNIT)
    # Silence around a recording is not a pause, and a filler is not a phone.
    around = [Phone("SIL", 1.0), *usual, Phone("SIL", 2.0)]
    np.testing.assert_allclose(duration_statistics(around)[7:], statistics[7:])
    within = [*usual[:20], Phone("SIL", 0.5), *usual[20:]]
    assert duration_statistics(within)[7] > statistics[7]
    assert duration_statistics([Phone("+SPN+", 0.3), *usual])[11] > 0


def test_phones_of_a_recording() -> None:
    pytest.importorskip("pocketsphinx")
    rng = np.random.default_rng(0)
    samples = np.concatenate([np.zeros(RATE // 2, np.float32), bursts(rng, 0.2, 0.05)])
    aligner = PhoneAligner()
    found = aligner.align(samples)
    assert sum(phone.seconds for phone in found) == pytest.approx(len(samples) / RATE, abs=0.1)
    assert found[0].pause
    aligner.align(0.01 * samples[::-1])
    assert aligner.align(samples) == found  # it remembers nothing
    assert DurationsExtractor().embed(samples).shape == duration_features([]).shape


def test_awkward_recordings_have_a_vector() -> None:
    shape = rhythm_features(np.zeros(RATE, np.float32), np.zeros(62)).shape
    for samples in (np.zeros(10, np.float32), np.ones(5000, np.float32), np.zeros(RATE, np.float32)):
        features = rhythm_features(samples, np.zeros(max(1, len(samples) // FRAME)))
        assert features.shape == shape
        assert np.isfinite(features).all()
    assert len(frame_levels(np.zeros(10, np.float32))) == 1
