"""Labels that vary within speakers: told where they are in the vectors, not told where they are gone."""

from __future__ import annotations

import numpy as np
import pytest

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.utility.labels import label_estimates, recall_labels

EMOTIONS = ("angry", "happy", "sad")


def voices(
    seed: int, strength: float, *, turned: bool = False, speakers: int = 12, each: int = 4
) -> tuple[Embeddings, Embeddings]:
    """Original vectors with speakers and emotions, and a noisier copy whose emotions have this strength; `turned` puts
    them into other directions, as a system may that keeps them audible."""
    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((3, 32))
    people = rng.standard_normal((speakers, 32))
    who = np.repeat(np.arange(speakers), 3 * each)
    emotion = np.tile(np.repeat(np.arange(3), each), speakers)
    noise = 0.5 * rng.standard_normal((2, len(who), 32))
    clear = people[who] + 1.2 * directions[emotion] + noise[0]
    shown = rng.standard_normal((3, 32)) if turned else directions
    hidden = rng.standard_normal((speakers, 32))[who] + strength * shown[emotion] + noise[1]
    names, owners = [f"u{i}" for i in range(len(who))], [f"s{w}" for w in who]
    labels = {"emotion": [EMOTIONS[e] for e in emotion]}
    return Embeddings(clear, names, owners, labels), Embeddings(hidden, names, owners)


def points(original: Embeddings, anonymized: Embeddings) -> dict[tuple[str, str], float]:
    found = label_estimates(original, anonymized, "emotion")
    assert all(point.null == pytest.approx(100 / 3) for point in found)
    assert all(point.interval is not None and point.interval[0] <= point.value <= point.interval[1] for point in found)
    return {(str(point.at["trained_on"]), str(point.at["read_from"])): point.value for point in found}


def test_a_label_that_survives_is_told() -> None:
    told = points(*voices(0, 1.2))
    assert told["original", "original"] > 85
    assert told["original", "anonymized"] > 85
    assert told["anonymized", "anonymized"] > 85


def test_a_label_that_moved_is_told_only_by_who_adapts() -> None:
    told = points(*voices(1, 1.2, turned=True))
    assert told["original", "anonymized"] < 60
    assert told["anonymized", "anonymized"] > 85


def test_a_label_that_is_gone_is_not_told() -> None:
    values = [
        value for seed in range(4) for key, value in points(*voices(10 + seed, 0.0)).items() if key[1] != "original"
    ]
    assert np.mean(values) == pytest.approx(100 / 3, abs=6)


def test_it_never_learns_from_the_speaker_it_hears() -> None:
    """Vectors that say who speaks and nothing else, labels that depend on the speaker: others tell nothing."""
    rng = np.random.default_rng(3)
    who = np.repeat(np.arange(16), 6)
    vectors = 5 * rng.standard_normal((16, 24))[who] + 0.1 * rng.standard_normal((len(who), 24))
    labels = ["a" if w % 2 else "b" for w in who]
    one = Embeddings(vectors, [f"u{i}" for i in range(len(who))], [f"s{w}" for w in who], {"mood": labels})
    assert recall_labels(one, one, "mood", trained_on="original", heard="original").value < 75


def test_what_cant_be_told() -> None:
    original, anonymized = voices(4, 1.0)
    with pytest.raises(InputError, match="unknown label 'mood'"):
        recall_labels(original, anonymized, "mood", trained_on="original", heard="anonymized")
    few = Embeddings(original.vectors, original.utterances, original.speakers, {"emotion": ["sad"] * len(original)})
    with pytest.raises(InputError, match="two values"):
        recall_labels(few, anonymized, "emotion", trained_on="original", heard="anonymized")
    column = ["" if i % 7 == 0 else v for i, v in enumerate(original.attributes["emotion"])]
    gaps = Embeddings(original.vectors, original.utterances, original.speakers, {"emotion": column})
    found = recall_labels(gaps, anonymized, "emotion", trained_on="original", heard="anonymized")
    assert found.left_out == column.count("")
    with pytest.raises(InputError, match="same utterances"):
        recall_labels(original, anonymized.of_utterances(anonymized.utterances[::-1].tolist()), "emotion",
                      trained_on="original", heard="anonymized")  # fmt: skip
