"""The time left of an assessment: from the work that is expected, and from the speed of this machine."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilmeter.assessment import make_settings
from veilmeter.assessment.forecast import ANONYMIZING, EXTRACTION, MEASURING, forecast_work
from veilmeter.assessment.stages import SPEEDS, Forecast, Stage, StageLog, Standing, Work, read_speeds
from veilmeter.data.corpus import SpeechRole, read_corpus

PLAN = (
    Work(Stage.READING, "extracting", 40.0, "original", items=100),
    Work(Stage.READING, "extracting", 40.0, "anonymized", items=100),
    Work(Stage.DUPLICATES, "duplicates", 10.0),
    Work(Stage.MEASURING, "measuring", 20.0),
    Work(Stage.UTILITY, "utility", 60.0, after=True),
)


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000.0
        monkeypatch.setattr("veilmeter.assessment.stages.time.monotonic", lambda: self.now)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def test_an_estimate_is_told_before_the_first_recording_where_the_machine_is_known(clock: Clock) -> None:
    told: list[str] = []
    log = StageLog(told.append, Forecast(speeds={"extracting": 2.0, "measuring": 1.0, "utility": 3.0}))
    log.stage(Stage.INPUTS)
    log.expect(PLAN, workers=2)
    assert told == [
        "checking the inputs",
        "about 3 min; first verdict: 2 min; --no-utility: 2 min",
    ]
    log.stage(Stage.READING, "original")
    assert told[-1] == "reading: original (about 3 min left)"


def test_an_unknown_machine_is_timed_on_its_first_recordings(clock: Clock) -> None:
    told: list[str] = []
    seen: list[Standing] = []
    log = StageLog(told.append, Forecast(seen.append, speeds={}))
    log.expect(PLAN, workers=1)
    log.stage(Stage.READING, "original")
    assert told == ["reading: original"]  # no estimate: this may be a slow machine
    with log.progress() as count:
        count(0, 100)
        clock.now += 7.0  # processes start
        count(2, 100)
        assert len(told) == 1
        clock.now += 40.0  # half as fast as an ordinary core
        count(52, 100)
    assert told[1:] == ["about 5 min; first verdict: 3 min; --no-utility: 3 min"]
    assert (seen[-1].done, seen[-1].total) == (52, 100)
    assert seen[-1].left == pytest.approx(2 * (0.48 * 40 + 40 + 10 + 20 + 60), rel=0.1)
    assert seen[-1].share_at(clock.now) == pytest.approx(47 / (47 + 2 * 149), rel=0.1)


def test_kept_vectors_take_no_time_and_say_nothing_of_the_speed(clock: Clock) -> None:
    told: list[str] = []
    log = StageLog(told.append, Forecast(speeds={"extracting": 1.0}))
    log.expect(PLAN, workers=1)
    for side in ("original", "anonymized"):
        log.stage(Stage.READING, side)
        with log.progress() as count:
            count(100, 100)
    assert log.forecast.remaining() == pytest.approx(90.0)
    assert log.forecast.speed("extracting") == 1.0
    log.stage(Stage.DUPLICATES)  # nothing is counted here, and it ends at once
    log.stage(Stage.MEASURING, "attacker-ignorant")
    assert told[-1] == "measuring: attacker-ignorant (about 80 s left)"


def test_stages_that_did_not_come_are_over_with_the_verdict(clock: Clock) -> None:
    log = StageLog(lambda text: None, Forecast(speeds={}))
    log.expect(PLAN, workers=1)
    log.stage(Stage.FIRST)
    assert log.forecast.remaining() == pytest.approx(60.0)
    log.stage(Stage.UTILITY)
    clock.now += 25.0
    assert log.forecast.remaining() == pytest.approx(35.0)  # nothing is counted: by the clock
    log.stage(Stage.DONE)
    assert log.forecast.remaining() == 0.0
    assert log.timings == {Stage.FIRST: 0.0, Stage.UTILITY: 25.0}


def test_sets_are_one_whole_and_a_second_pass_adds_nothing(clock: Clock) -> None:
    seen: list[Standing] = []
    forecast = Forecast(seen.append, speeds={})
    for name in ("dev", "test"):
        forecast.expect(name, PLAN, 1)
    assert forecast.remaining() == pytest.approx(340.0)
    for name in ("dev", "test"):
        log = StageLog(lambda text: None, forecast, name)
        log.expect(PLAN, workers=1)
        log.stage(Stage.READING, "original")
        clock.now += 40.0
        log.stage(Stage.FIRST)
    assert seen[-2].stage == "test: reading: original"
    assert forecast.remaining() == pytest.approx(120.0)
    again = StageLog(lambda text: None, forecast, "dev")
    again.expect(PLAN, workers=1)
    again.stage(Stage.DONE)
    assert forecast.remaining() == pytest.approx(60.0)


def test_several_corpora_of_one_stage_are_counted_together(clock: Clock) -> None:
    seen: list[Standing] = []
    log = StageLog(lambda text: None, Forecast(seen.append, speeds={}))
    log.expect([Work(Stage.RELEASE, "anonymizing", 30.0, items=30)], workers=1)
    log.stage(Stage.RELEASE)
    with log.progress() as count:
        for total in (10, 20):
            for done in range(total + 1):
                count(done, total)
    assert [(standing.done, standing.total) for standing in seen][-21:-19] == [(10, 30), (11, 30)]
    assert seen[-1].done == 30


def test_the_speed_is_kept_for_the_next_run(clock: Clock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    forecast = Forecast()
    forecast.expect("", PLAN, 1)
    forecast.begin("", Stage.MEASURING, "")
    clock.now += 60.0
    forecast.begin("", Stage.DONE, "")
    forecast.keep_speeds()
    assert not (tmp_path / "cache").exists()  # nothing else needed a cache
    (tmp_path / "cache").mkdir()
    forecast.keep_speeds()
    assert read_speeds() == {"measuring": 3.0}
    assert Forecast().speed("measuring") == pytest.approx(3.0)
    for damaged in ('{"measuring": "fast"}', '{"measuring": NaN}', '{"measuring": -1}', "[1]", "{"):
        (tmp_path / "cache" / SPEEDS).write_text(damaged)
        assert read_speeds() == {}


@pytest.fixture
def speech(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    pytest.importorskip("soundfile")
    from veilmeter.speech.audio import write_audio

    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    rng = np.random.default_rng(0)
    for speaker in range(3):
        for number in range(4):
            write_audio(tmp_path / "original" / f"s{speaker}" / f"{number}.wav", 0.1 * rng.standard_normal(32_000))
    return tmp_path


def test_the_work_follows_from_recordings_and_options(speech: Path) -> None:
    sources: dict[SpeechRole, Any] = {SpeechRole.ORIGINAL: read_corpus(speech / "original")}
    settings = make_settings({"original": [str(speech / "original")], "system": "mcadams", "utility_recordings": 5})
    work = forecast_work(settings, sources, {}, speech / "run")
    assert [(entry.stage, entry.details, entry.items) for entry in work] == [
        (Stage.RELEASE, "", 12),
        (Stage.ATTACKER_RUNS, "run 1", 6),
        (Stage.ATTACKER_RUNS, "run 2", 6),
        (Stage.READING, "original", 12),
        (Stage.READING, "anonymized", 12),
        (Stage.READING_RUNS, "attacker run 1", 6),
        (Stage.READING_RUNS, "attacker run 2", 6),
        (Stage.MEASURING, "", 0),
        (Stage.DUPLICATES, "", 0),
        (Stage.UTILITY, "", 0),
    ]
    seconds = {(entry.stage, entry.details): entry.seconds for entry in work}
    assert seconds[Stage.READING, "original"] == pytest.approx(24 * EXTRACTION)
    assert seconds[Stage.ATTACKER_RUNS, "run 1"] == pytest.approx(12 * ANONYMIZING["mcadams"])
    assert seconds[Stage.MEASURING, ""] == pytest.approx(MEASURING + 3 * 0.05)
    assert [entry.after for entry in work] == [False] * 9 + [True]
    without = forecast_work(replace(settings, utility=False), sources, {}, speech / "run")
    assert Stage.UTILITY not in {entry.stage for entry in without}
    twice = replace(settings, extractor=("campplus", "words"), utility=False)
    later = [entry for entry in forecast_work(twice, sources, {}, speech / "run") if entry.after]
    assert {entry.kind for entry in later if entry.stage is Stage.READING} == {"transcribing by moonshine"}
    assert forecast_work(settings, {SpeechRole.ORIGINAL: np.zeros((3, 4))}, {}, None) == []


@pytest.mark.parametrize(("option", "rate"), [([], 0.4), (["keep=pauses", "voice=fast"], 0.06)])
def test_the_large_voice_is_expected_to_take_longer(speech: Path, option: list[str], rate: float) -> None:
    settings = make_settings({"original": [str(speech / "original")], "system": "cascade", "option": option})
    sources: dict[SpeechRole, Any] = {SpeechRole.ORIGINAL: read_corpus(speech / "original")}
    release = next(work for work in forecast_work(settings, sources, {}, speech / "run"))
    assert (release.stage, release.seconds) == (Stage.RELEASE, pytest.approx(24 * rate))


def test_vectors_that_the_cache_has_are_not_expected(speech: Path) -> None:
    from veilmeter.assessment.extraction import embed_whole
    from veilmeter.core.engine import Here

    (speech / "own.py").write_text("import numpy as np\ndef hear(samples):\n    return samples[:8]\n")
    spec = f"{speech / 'own.py'}:hear"
    corpus = read_corpus(speech / "original")
    settings = make_settings({"original": [str(speech / "original")], "anonymized": "x", "extractor": [spec]})
    sources: dict[SpeechRole, Any] = {SpeechRole.ORIGINAL: corpus}
    assert any(entry.stage is Stage.READING for entry in forecast_work(settings, sources, {}, None))
    embed_whole(corpus, spec, Here())
    assert not any(entry.stage is Stage.READING for entry in forecast_work(settings, sources, {}, None))
    about = next((speech / "cache").rglob("embeddings.json"))
    about.write_text(json.dumps({"utterances": 5, "left_out": 1}))
    assert any(entry.stage is Stage.READING for entry in forecast_work(settings, sources, {}, None))


def test_utility_is_expected_to_end_with_its_budget_or_its_recordings() -> None:
    from veilmeter.assessment.utility import UtilitySettings, utility_cost

    hour = 2 * 3600.0  # of both sides
    assert utility_cost(360, hour, UtilitySettings(budget=60.0)) == pytest.approx(60.0)
    assert utility_cost(0, 0.0, UtilitySettings()) == 0.0
    few = utility_cost(2, 20.0, UtilitySettings(budget=60.0))
    assert 0 < few < 10
    fixed = [utility_cost(360, hour, UtilitySettings(recordings=count, rated=0)) for count in (10, 20, 360, 1000)]
    assert fixed[1] == pytest.approx(2 * fixed[0])
    assert fixed[3] == fixed[2]  # no more than there are
    rated = utility_cost(360, hour, UtilitySettings(recordings=10, rated=10))
    assert rated > utility_cost(360, hour, UtilitySettings(recordings=10)) > fixed[0]
