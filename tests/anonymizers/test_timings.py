"""How long an anonymizer worked: kept beside its outputs, over stops and starts, and never a reason to fail."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from veilmeter.anonymizers import treatment
from veilmeter.anonymizers.anonymize_corpus import anonymize_corpus
from veilmeter.anonymizers.manifest import (
    Effort,
    ProcessorClock,
    TimedEngine,
    Timings,
    read_timings,
    real_time_factor,
    timings_path,
    write_timings,
)
from veilmeter.anonymizers.mcadams import McAdams
from veilmeter.core.engine import Here
from veilmeter.data.corpus import read_corpus


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor that spends exactly one second between any two looks at it."""
    from itertools import count

    from veilmeter.anonymizers import manifest

    seconds = count()
    monkeypatch.setattr(manifest, "processor_seconds", lambda: float(next(seconds)))


def test_the_clock_leaves_out_what_is_paused(ticks: None) -> None:
    clock = ProcessorClock()
    with clock.running(), clock.pause():
        pass
    assert (clock.seconds, clock.lap(), clock.lap()) == (2.0, 2.0, 0.0)


def test_an_engine_adds_up_its_tasks(ticks: None) -> None:
    engine = TimedEngine(Here())
    assert dict(engine.run(abs, [-1, -2, -3])) == {0: 1, 1: 2, 2: 3}
    assert engine.seconds == 3.0


def test_an_interrupted_run_goes_on_counting(folder_corpus: Path, tmp_path: Path) -> None:
    corpus, out = read_corpus(folder_corpus), tmp_path / "out"

    def stop(done: int, total: int) -> None:
        if done == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        anonymize_corpus(corpus, out, McAdams(), progress=stop)
    first = read_timings(out)
    assert first is not None
    assert first.anonymizing.speech_seconds == pytest.approx(5 * 0.7)
    anonymize_corpus(corpus, out, McAdams())
    both = read_timings(out)
    assert both is not None
    assert both.anonymizing.speech_seconds == pytest.approx(12 * 0.7)
    assert both.anonymizing.processor_seconds > first.anonymizing.processor_seconds > 0
    written = timings_path(out).read_bytes()
    anonymize_corpus(corpus, out, McAdams())  # all is kept: nothing new is known
    assert timings_path(out).read_bytes() == written
    assert real_time_factor([out, tmp_path / "elsewhere"]) == pytest.approx(both.anonymizing.rate)
    anonymize_corpus(corpus, out, McAdams(alpha=0.7), overwrite=True)  # all again: the old times no longer apply
    again = read_timings(out)
    assert again is not None
    assert again.anonymizing.speech_seconds == pytest.approx(12 * 0.7)


def test_preparing_counts_once_and_other_systems_do_not() -> None:
    before = Timings("pool", "1", Effort(4.0, 10.0), Effort(3.0, 6.0))
    now = Timings("pool", "1", Effort(5.0, 10.0), Effort(1.0, 4.0))
    assert now.after(before).real_time_factor == pytest.approx(0.5 + 4 / 10)
    assert now.after(Timings("pool", "2", Effort(9.0, 1.0), Effort(9.0, 1.0))) == now
    assert Timings("pool", "1").real_time_factor is None


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"system": 1, "version": 2, "preparing": [], "anonymizing": 3}'])
def test_broken_timings_are_none(tmp_path: Path, content: str) -> None:
    timings_path(tmp_path / "out").write_text(content)
    assert read_timings(tmp_path / "out") is None


def test_what_is_written_is_read(tmp_path: Path) -> None:
    timings = Timings("pool", "1", Effort(5.0, 10.0), Effort(1.0, 4.0))
    write_timings(tmp_path / "out", timings)
    assert read_timings(tmp_path / "out") == timings
    form: dict[str, Any] = json.loads(timings_path(tmp_path / "out").read_text())
    assert form["real_time_factor"] == pytest.approx(0.75)


def test_reading_audio_is_not_counted(folder_corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Reading that costs a hundred seconds each leaves the system's own time as it is."""
    from veilmeter.anonymizers import manifest

    spent, read = [0.0], treatment.RecordingStream.__iter__
    monkeypatch.setattr(manifest, "processor_seconds", lambda: spent[0])

    def slow(stream: Any) -> Any:
        spent[0] += 100
        yield from read(stream)

    class Busy(McAdams):
        def anonymize_blocks(self, blocks: Any, parameters: dict[str, Any]) -> Any:
            spent[0] += 1
            return blocks

    monkeypatch.setattr(treatment.RecordingStream, "__iter__", slow)
    monkeypatch.setattr(treatment.Treatment, "_unpack", lambda self: Busy())
    anonymize_corpus(read_corpus(folder_corpus), tmp_path / "out", McAdams())
    timings = read_timings(tmp_path / "out")
    assert timings is not None
    assert timings.anonymizing.processor_seconds == pytest.approx(12)
