"""Streamed measures are exactly those of all scores at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from veilmeter.core.errors import InputError
from veilmeter.data.formats.scores import stream
from veilmeter.metrics.scores.forms import SortedScores
from veilmeter.metrics.scores.summary import measure_stream, values
from veilmeter.metrics.scores.zebra import d_ece_flipped


@settings(max_examples=25)
@given(
    st.lists(st.integers(-40, 40).map(float) | st.floats(-50, 50), min_size=2, max_size=300),
    st.integers(1, 40),
    st.integers(0, 10**6),
)
def test_pieces_give_what_the_whole_gives(scores: list[float], size: int, seed: int) -> None:
    x = np.array(scores)
    labels = np.random.default_rng(seed).random(len(x)) < 0.4
    labels[:2] = [True, False]
    parts = [(x[i : i + size], labels[i : i + size]) for i in range(0, len(x), size)]
    found = measure_stream(parts)
    data = SortedScores.from_arrays(x[labels], x[~labels])
    expected = values(data)
    assert found.keys() == expected.keys()
    for name, point in found.items():
        assert point.n == {"targets": int(labels.sum()), "impostors": int((~labels).sum())}
        assert point.value == pytest.approx(expected[name], abs=1e-9), name
    assert found["d_ece"].extra["flipped"] == pytest.approx(d_ece_flipped(data), abs=1e-12)


def test_memory_does_not_grow_with_the_scores() -> None:
    import tracemalloc

    def peak(pieces: int) -> int:
        rng = np.random.default_rng(0)
        tracemalloc.start()
        measure_stream((rng.normal(size=20_000), rng.random(20_000) < 0.05) for _ in range(pieces))
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(1)
    assert peak(60) < 2 * peak(6)


def test_a_file_and_a_key_in_the_same_order(tmp_path: Path) -> None:
    scores, key = tmp_path / "s", tmp_path / "k"
    lines = [(f"a{i % 9}", f"u{i}", i * 7 % 31, i % 5 == 0) for i in range(400)]
    scores.write_text("".join(f"{a} {b} {c}\n" for a, b, c, _ in lines))
    key.write_text("".join(f"{'1' if d else '0'} {a} {b}\n" for a, b, _, d in lines))
    parts = list(stream(scores, key, size=500))
    assert len(parts) > 3
    assert np.concatenate([x for x, _ in parts]).tolist() == [c for _, _, c, _ in lines]
    assert np.concatenate([y for _, y in parts]).tolist() == [d for _, _, _, d in lines]

    swapped = key.read_text().splitlines()
    swapped[300], swapped[301] = swapped[301], swapped[300]
    key.write_text("\n".join(swapped))
    with pytest.raises(InputError, match="same order") as caught:
        list(stream(scores, key, size=500))
    assert caught.value.line == 301
    key.write_text("\n".join([*swapped[:300], "1 x y"]))
    with pytest.raises(InputError, match="same order"):
        list(stream(scores, key, size=500))
    with pytest.raises(InputError, match="--trials"):
        list(stream(scores))


def test_a_key_that_is_too_long_and_labels_that_are_none(tmp_path: Path) -> None:
    scores, key = tmp_path / "s", tmp_path / "k"
    scores.write_text("a b 1\na c 2\n")
    key.write_text("a b target\na c nontarget\na d target\n")
    with pytest.raises(InputError, match="more trials"):
        list(stream(scores, key))
    scores.write_text("a b 1 target\na c 2 maybe\n")
    with pytest.raises(InputError, match="maybe") as caught:
        list(stream(scores))
    assert caught.value.line == 2
    with pytest.raises(InputError, match="no target"):
        measure_stream([(np.array([1.0]), np.array([False]))])


def test_a_full_disk_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from veilmeter.core.errors import VeilmeterError
    from veilmeter.metrics.scores import forms

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(forms._Class, "add", full)
    with pytest.raises(VeilmeterError, match=r"No space left.*TMPDIR"):
        measure_stream([(np.array([1.0, 0.0]), np.array([True, False]))])
