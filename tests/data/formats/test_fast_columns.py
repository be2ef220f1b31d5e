"""Large files read by Arrow give what the careful reader gives: the same values, remarks and errors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmeter.core.errors import InputError
from veilmeter.data.formats import columns
from veilmeter.data.formats.columns import Codes, Faults
from veilmeter.data.formats.scores import read_score_table, stream
from veilmeter.data.formats.trials import read_trials

IDS = st.sampled_from(["a", "b-1", "\u00e9", "NA", "null", "", '"q"', "1", "nan", "x y"])
SCORES = st.sampled_from(["1.5", "-2", "1e3", "+4", "1_000", "nan", "inf", "", "x", "0.1", "1e400", "0x1p3", "5."])
LABELS = st.sampled_from(["target", "nontarget", "Target", "1", "", "impostor", "maybe"])
GAPS = st.sampled_from([" ", " ", " ", " ", "\t", "  ", " \x0b"])
ENDS = st.sampled_from(["\n", "\n", "\n", "\r\n", "\n\n", " \n"])


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """Mostly plain lines, some odd ones."""
    width = draw(st.sampled_from([3, 3, 4]))
    odd = draw(st.booleans())
    lines = []
    for _ in range(draw(st.integers(1, 6))):
        if odd:
            fields = [draw(IDS), draw(IDS), draw(SCORES), *([draw(LABELS)] if width == 4 else [])]
            gap, end = draw(GAPS), draw(ENDS)
        else:
            fields = ["a", draw(st.sampled_from(["b", "c"])), repr(draw(st.floats(-1e6, 1e6))), "target"][:width]
            gap, end = " ", "\n"
        lines.append(gap.join(fields) + end)
    return "".join(lines).encode()


def outcome(data: bytes, path: Path, least: int, monkeypatch: pytest.MonkeyPatch) -> object:
    path.write_bytes(data)
    monkeypatch.setattr(columns, "LEAST", least)
    codes, notes = Codes(), Faults()
    table = read_score_table(path, codes=codes, findings=notes)
    labels = None if table.is_target is None else table.is_target.tolist()
    return (
        codes.names(), table.enroll.tolist(), table.test.tolist(), table.values.tolist(), labels, table.lines.tolist(),
        [str(problem) for problem in notes.problems()],
    )  # fmt: skip


@given(files())
def test_both_readers_agree(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("scores") / "scores.txt"
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert outcome(data, path, 0, monkeypatch) == outcome(data, path, 1 << 60, monkeypatch)


def streamed(data: bytes, path: Path, least: int, monkeypatch: pytest.MonkeyPatch) -> object:
    path.write_bytes(data)
    monkeypatch.setattr(columns, "LEAST", least)
    try:
        return [(values.tolist(), labels.tolist()) for values, labels in stream(path)]
    except InputError as error:
        return str(error)


@given(files())
def test_both_readers_stream_alike(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.mktemp("scores") / "scores.txt"
    with pytest.MonkeyPatch.context() as monkeypatch:
        assert streamed(data, path, 0, monkeypatch) == streamed(data, path, 1 << 60, monkeypatch)


def test_plain_lines_are_read_fast(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "LEAST", 0)
    monkeypatch.setattr(columns, "_piece", lambda *_: pytest.fail("the careful reader was asked"))
    values = np.random.default_rng(0).standard_normal(500)
    (tmp_path / "scores").write_text("".join(f"s{i % 7} u{i % 50} {x!r}\n" for i, x in enumerate(values.tolist())))
    assert read_score_table(tmp_path / "scores").values.tolist() == values.tolist()
    (tmp_path / "key").write_text("".join(f"s{i % 7}\tu{i % 50}\t{'non' * (i % 2)}target\n" for i in range(500)))
    assert read_trials(tmp_path / "key").is_target.tolist() == [i % 2 == 0 for i in range(500)]


@pytest.mark.parametrize("least", [0, 1 << 60])
@pytest.mark.parametrize("size", [40, 300, 1 << 20])
def test_streams_compare_the_key_whatever_the_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, least: int, size: int
) -> None:
    monkeypatch.setattr(columns, "LEAST", least)
    pairs = [(f"s{i % 7}", f"u{i}") for i in range(100)]
    (tmp_path / "scores").write_text("".join(f"{a} {b} {i}.5\n" for i, (a, b) in enumerate(pairs)))
    key = [f"{a} {b} {'target' if i % 3 else 'nontarget'}\n" for i, (a, b) in enumerate(pairs)]
    (tmp_path / "key").write_text("".join(key))
    found = list(stream(tmp_path / "scores", tmp_path / "key", size=size))
    assert np.concatenate([values for values, _ in found]).tolist() == [i + 0.5 for i in range(100)]
    assert np.concatenate([labels for _, labels in found]).tolist() == [i % 3 != 0 for i in range(100)]
    (tmp_path / "key").write_text("".join([*key[:60], key[61], key[60], *key[62:]]))
    with pytest.raises(Exception, match="scores:61: from here on the key"):
        list(stream(tmp_path / "scores", tmp_path / "key", size=size))
    (tmp_path / "key").write_text("".join(key[:50]))
    with pytest.raises(Exception, match="scores:51: from here on"):
        list(stream(tmp_path / "scores", tmp_path / "key", size=size))
    (tmp_path / "key").write_text("".join([*key, "s9 u9 target\n"]))
    with pytest.raises(Exception, match="more trials than there are scores"):
        list(stream(tmp_path / "scores", tmp_path / "key", size=size))
