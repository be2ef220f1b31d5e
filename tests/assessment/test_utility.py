"""Utility end to end with a recognizer that reads tones: every word is one, so what must come out is known exactly."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fetched import fetched
from typer.testing import CliRunner

from veilmeter.anonymizers.manifest import Effort, Timings, write_timings
from veilmeter.assessment.utility import UtilitySettings, measure_utility, order_over_people, plan_looks, with_labels
from veilmeter.cli.main import app
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import warning
from veilmeter.data.corpus import Utterance, read_corpus
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics import measure as measures
from veilmeter.metrics.measure import Measure
from veilmeter.results.model import Part
from veilmeter.results.trust import check_speech
from veilmeter.results.verdict import use_finding
from veilmeter.speech.audio import write_audio
from veilmeter.speech.quality import PitchTracker
from veilmeter.wording import sentence

WORDS = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu", "hen")
WORD = 4_000  # samples
ASR = f"""
import numpy as np
WORDS = {WORDS!r}
def hear(samples):
    heard = []
    for start in range(0, len(samples) - {WORD} + 1, {WORD}):
        spectrum = np.abs(np.fft.rfft(samples[start:start + {WORD}]))
        if spectrum.max() > 20:
            heard.append(WORDS[(int(spectrum.argmax()) * 4 - 400) // 200])
    return " ".join(heard)
"""


def speak(words: Sequence[str], level: float = 0.1) -> np.ndarray:
    """A tone per word, 200 Hz apart; `-` is a pause."""
    time = np.arange(WORD) / 16_000
    tones = [
        np.zeros(WORD) if word == "-" else np.sin(2 * np.pi * (400 + 200 * WORDS.index(word)) * time) for word in words
    ]
    return level * np.concatenate(tones)


SAID = {
    "anna/1": "ant bee cat dog", "anna/2": "eel fox gnu hen", "bert/1": "ant cat eel gnu", "bert/2": "bee dog fox hen",
}  # fmt: skip


def write(root: Path, said: dict[str, str], *, texts: bool = False, level: float = 0.1) -> Path:
    lines = ["path,speaker,utterance,gender" + (",text" if texts else "")]
    for name, words in said.items():
        write_audio(root / f"{name}.wav", speak(words.split(), level))
        gender = "f" if name.startswith("anna") else "m"
        lines.append(f"{name}.wav,{name.split('/')[0]},{name},{gender}" + (f",{SAID[name].upper()}!" if texts else ""))
    (root / "list.csv").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is heard goes to a folder of its own; the pitch model is taken along."""
    fetched(PitchTracker)
    from veilmeter.speech import weights

    model = weights.fetch(weights.SWIFT_F0)
    folder = tmp_path_factory.mktemp("cache")
    (folder / model.name).write_bytes(model.read_bytes())
    monkeypatch.setenv("VEILMETER_CACHE", str(folder))


@pytest.fixture
def settings(tmp_path: Path) -> UtilitySettings:
    (tmp_path / "asr.py").write_text(ASR)
    return UtilitySettings(recognizer=f"{tmp_path}/asr.py:hear", rated=0, language="de")


def value(part: Part, name: str) -> float:
    found = part.estimates.single(name)
    assert isinstance(found, Estimate)
    return found.value


def measured(tmp_path: Path, settings: UtilitySettings, said: dict[str, str], **options: Any) -> Part:
    original = write(tmp_path / "original", SAID, texts=options.pop("texts", False))
    anonymized = write(tmp_path / "anonymized", said, **options)
    return measure_utility(read_corpus(original), read_corpus(anonymized), settings)


def test_known_errors_against_the_transcript_of_the_original(tmp_path: Path, settings: UtilitySettings) -> None:
    said = {**SAID, "anna/1": "ant bee cat cat", "bert/1": "ant - eel gnu"}
    part = measured(tmp_path, settings, said, level=0.05)
    assert value(part, "wer") == pytest.approx(100 * 2 / 16)
    assert value(part, "d_wer") == value(part, "wer")
    assert part.details["reference"] == "transcript of the original"
    assert part.details["substitutions"] == [{"said": "dog", "heard": "cat", "times": 1}]
    assert part.details["deleted_words"] == 1
    assert value(part, "duration_ratio") == pytest.approx(1.0)
    assert value(part, "level_difference") == pytest.approx(20 * np.log10(0.5), abs=0.5)
    assert part.by["gender"]["f"].single("wer").value == pytest.approx(100 / 8)  # type: ignore[union-attr]
    assert [row["wer"] for row in part.details["people"]] == pytest.approx([12.5, 12.5])
    assert "of 100 words a recognizer gets 12" in sentence(use_finding(part))
    assert check_speech(part).passed is True


def test_the_corpus_has_the_right_words(tmp_path: Path, settings: UtilitySettings) -> None:
    """The recognizer errs on the original too: with a text that counts on both sides."""
    original = write(tmp_path / "original", {**SAID, "anna/2": "eel fox gnu gnu"}, texts=True)
    anonymized = write(tmp_path / "anonymized", {**SAID, "anna/2": "eel fox gnu gnu", "bert/2": "bee dog fox"})
    part = measure_utility(read_corpus(original), read_corpus(anonymized), settings)
    assert part.details["reference"] == "corpus"
    assert value(part, "wer_original") == pytest.approx(100 / 16)
    assert value(part, "wer") == pytest.approx(200 / 16)
    assert value(part, "d_wer") == pytest.approx(100 / 16)


def test_silence_is_lost_speech_and_no_speech_is_doubted(tmp_path: Path, settings: UtilitySettings) -> None:
    silent = dict.fromkeys(SAID, "- - - -")
    part = measured(tmp_path, settings, {**silent, "anna/1": SAID["anna/1"]})
    assert value(part, "wer") == pytest.approx(75)
    assert part.details["speech"]["silent"] == 3
    assert warning("recordings_silent", count=3) in part.findings
    check = check_speech(part)
    assert check.failed
    assert check.misleads == "overestimated"
    assert "In 3 of 4 anonymized recordings (3 are silent)" in sentence(check.finding)


def test_whether_it_is_speech_is_open_until_it_was_measured() -> None:
    check = check_speech(None, pending=True)
    assert check.open
    assert check.misleads == "overestimated"
    assert sentence(check.finding) == "Whether the anonymized recordings are still speech has not been measured yet."
    assert not check_speech(None).open


def test_an_original_without_words_is_no_baseline(tmp_path: Path, settings: UtilitySettings) -> None:
    original = write(tmp_path / "original", dict.fromkeys(SAID, "- - - -"), texts=True)
    anonymized = write(tmp_path / "anonymized", SAID)
    part = measure_utility(read_corpus(original), read_corpus(anonymized), settings)
    assert check_speech(part).open
    assert check_speech(None).applies is False


def test_partners_that_are_missing_are_counted(tmp_path: Path, settings: UtilitySettings) -> None:
    part = measured(tmp_path, settings, {name: SAID[name] for name in ("anna/1", "bert/1")})
    assert part.details["unmatched"] == {"only_original": 2, "only_anonymized": 0}
    assert warning("originals_without_partner", count=2) in part.findings
    other = write(tmp_path / "other", {"anna/1": "ant"})
    (other / "list.csv").write_text((other / "list.csv").read_text().replace(",anna/1,", ",x,"))
    with pytest.raises(InputError, match="has a partner"):
        measure_utility(read_corpus(tmp_path / "original"), read_corpus(other), settings)


def test_narrow_band_is_said(tmp_path: Path, settings: UtilitySettings) -> None:
    original = write(tmp_path / "original", SAID)
    anonymized = write(tmp_path / "anonymized", SAID)
    for path in anonymized.rglob("*.wav"):
        write_audio(path, speak(["ant"])[::2], rate=8_000)
    part = measure_utility(read_corpus(original), read_corpus(anonymized), settings)
    assert warning("recordings_narrow_band", rate=8000) in part.findings


def test_a_measure_of_another_package_is_computed_too(
    tmp_path: Path, settings: UtilitySettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = measures.MeasureRegistry()
    own.register("peak", Measure("peak", "peak ratio", "", "neither", "Of the peaks.", "a test", kind="recordings",
                                 compute=lambda a, b, rate: np.abs(b).max() / np.abs(a).max()))  # fmt: skip
    monkeypatch.setattr(measures, "MEASURES", own)
    monkeypatch.setattr("veilmeter.assessment.utility.MEASURES", own)
    part = measured(tmp_path, settings, SAID, level=0.05)
    assert value(part, "peak") == pytest.approx(0.5, abs=0.01)


def test_people_are_heard_equally_often() -> None:
    pairs = [
        (Utterance(f"{s}/{n}", s, Path("x")), Utterance(f"{s}/{n}", s, Path("y")))
        for s, count in (("a", 20), ("b", 3), ("c", 20))
        for n in range(count)
    ]
    ordered = order_over_people(pairs)
    speakers = [pair[0].speaker for pair in ordered[:13]]
    assert {s: speakers.count(s) for s in "abc"} == {"a": 5, "b": 3, "c": 5}
    assert ordered == order_over_people(pairs[::-1])
    assert sorted(pair[0].id for pair in ordered) == sorted(pair[0].id for pair in pairs)


def test_looks_are_planned_by_the_length_of_the_recordings_alone() -> None:
    """Not by the clock: the same recordings are measured on every machine."""
    pairs = [
        (Utterance(f"{n}", "a", Path("x"), start=0.0, end=10.0), Utterance(f"{n}", "a", Path("y"))) for n in range(1000)
    ]
    words, rated = plan_looks(pairs, UtilitySettings(budget=200))  # half of it each; a pair takes 2 x 0.58 or 2 x 1.5 s
    assert words.sizes == (20, 40, 87)
    assert rated.sizes == (10, 34)
    assert 1 - words.levels[0] < 1e-4
    assert words.levels[-1] < words.levels[0]
    assert sum(1 - level for level in words.levels) == pytest.approx(0.05)
    assert plan_looks(pairs[:5], UtilitySettings())[0].sizes == (5,)
    fixed = plan_looks(pairs, UtilitySettings(recordings=50))
    assert [looks.sizes for looks in fixed] == [(50,), (15,)]
    assert fixed[0].levels == (0.95,)
    assert plan_looks(pairs, UtilitySettings(recordings=50, rated=0))[1].sizes == ()


def test_it_stops_when_it_knows_enough(tmp_path: Path, settings: UtilitySettings) -> None:
    said = {f"{who}/{n}": "ant bee" for who in ("anna", "bert", "cleo", "dora") for n in range(10)}
    original = read_corpus(write(tmp_path / "original", said))
    anonymized = read_corpus(write(tmp_path / "anonymized", dict.fromkeys(said, "ant -")))
    shown: list[tuple[int, int]] = []
    part = measure_utility(
        original,
        anonymized,
        replace(settings, precision=50.0),
        progress=lambda done, total: shown.append((done, total)),
    )
    assert shown == sorted(shown)
    assert shown[-1] == (160, 160)
    assert len(shown) > 80
    assert part.details["recordings"] == 20
    assert part.details["looks"]["words"]["planned"] == [20, 40]
    assert part.details["looks"]["words"]["level"] == pytest.approx(0.9945, abs=1e-4)
    everything = measure_utility(original, anonymized, replace(settings, precision=1.0))
    assert everything.details["recordings"] == 40
    assert value(part, "wer") == value(everything, "wer") == 50.0


def test_the_command(tmp_path: Path, settings: UtilitySettings) -> None:
    write(tmp_path / "original", SAID, texts=True)
    write(tmp_path / "anonymized", {**SAID, "anna/1": "ant bee cat cat"})
    arguments = ["utility", "--original", str(tmp_path / "original"), "--anonymized", str(tmp_path / "anonymized")]
    arguments += ["--recognizer", settings.recognizer, "--rated", "0", "--jobs", "1", "--quiet"]
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["estimates"]["wer"]["value"] == pytest.approx(6.25)
    assert found["estimates"]["wer"]["unit"] == "percent"
    assert found["by"]["gender"]["m"]["wer"]["value"] == 0
    assert found["utility"]["people"][0]["speaker"] == "anna"
    assert "real_time_factor" not in found["estimates"]  # veilmeter did not make this
    write_timings(tmp_path / "anonymized", Timings("mine", "1", anonymizing=Effort(3.0, 4.0)))
    found = json.loads(CliRunner().invoke(app, [*arguments, "--json"]).stdout)
    assert found["estimates"]["real_time_factor"]["value"] == 0.75
    shown = CliRunner().invoke(app, arguments)
    assert "dog → cat (1)" in shown.output
    assert "Speakers with the most wrong words: anna" in shown.output
    (tmp_path / "anonymized/anna/1.wav").write_bytes(b"RIFF")
    partly = CliRunner().invoke(app, arguments)
    assert partly.exit_code == 3
    assert "\nList of what was left out: veilmeter check" in partly.output


def test_labels_of_utterances_join_the_part() -> None:
    rng = np.random.default_rng(0)
    who, mood = np.repeat(np.arange(8), 10), np.tile([0, 1], 40)
    vectors = rng.normal(size=(8, 16))[who] + 2 * np.outer(mood, rng.normal(size=16)) + rng.normal(size=(80, 16)) / 2
    names, owners = [f"u{i}" for i in range(80)], [f"s{w}" for w in who]
    anonymized = Embeddings(rng.normal(size=(80, 16)), names, owners)
    empty = Part(name="utility")
    labels = [["calm", "angry"][m] for m in mood]
    part = with_labels(empty, Embeddings(vectors, names, owners, {"emotion": labels}), anonymized)
    told = {point.at["read_from"]: point.value for point in part.estimates.points("label_recall")}
    assert told["original"] > 90
    assert told["anonymized"] < 75
    few = with_labels(empty, Embeddings(vectors, names, owners, {"emotion": ["calm"] * 80}), anonymized)
    assert len(few.estimates) == 0
    assert [finding.code for finding in few.findings] == ["labels_not_measured"]
    assert with_labels(empty, Embeddings(vectors, names, owners), anonymized) == empty
