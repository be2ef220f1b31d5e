"""Recordings on a page: only where they were asked for, the same ones by every system, and they can be played."""

from __future__ import annotations

import base64
import io
import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.report.conftest import Opened, serious_violations
from typer.testing import CliRunner

from veilmeter.assessment import assess
from veilmeter.cli.main import app
from veilmeter.core.errors import InputError
from veilmeter.data.corpus import Utterance
from veilmeter.report import sound, write_report
from veilmeter.report.compare import display_names, write_comparison
from veilmeter.report.public import pseudonyms, reported, run_key
from veilmeter.report.sound import (
    AUDIO_SECONDS,
    _find_paths,
    attacker_answers,
    data_uri,
    first_seconds,
    pairs_of,
    player_of,
    recordings_of,
    rename,
)
from veilmeter.results.compare import ComparedRun, read_runs
from veilmeter.results.criteria import strongest
from veilmeter.speech.audio import write_audio
from veilmeter.wording.english.page import person_risk

soundfile = pytest.importorskip("soundfile")

FAST: dict[str, Any] = {"lengths": [1], "intervals": False, "measures": ["scores", "linkability"], "utility": False}
PEOPLE, EACH, SECONDS = ("quilla", "ranulf", "sixtus", "tamsin", "ulric"), 4, 0.6
EXTRACTOR = """
import numpy as np

def embed(samples):
    return np.log(np.abs(np.fft.rfft(samples[:4096]))[1::64] + 1e-3)
"""


def speak(folder: Path, seed: int = 0) -> Path:
    """Noise, each recording another one, by folders of speakers."""
    rng = np.random.default_rng(seed)
    for speaker in PEOPLE:
        for number in range(EACH):
            write_audio(folder / speaker / f"{speaker}{number}.wav", rng.normal(0, 0.1, int(SECONDS * 16_000)))
    return folder


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of audio: `made` has a release that veilmeter made, `given` one that was given, `others` other people."""
    root = tmp_path_factory.mktemp("sound")
    (root / "own.py").write_text(EXTRACTOR)
    speak(root / "speech")
    speak(root / "released", seed=1)
    (root / "released" / "quilla" / "quilla0.wav").write_bytes(b"no audio")
    speak(root / "other-speech", seed=2)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VEILMETER_CACHE", str(root / "cache"))
        common: dict[str, Any] = {"extractor": f"{root / 'own.py'}:embed", **FAST}
        assess(root / "speech", system="mcadams", system_runs=1, out=root / "made", **common)
        assess(root / "speech", root / "released", out=root / "given", **common)
        assess(root / "other-speech", root / "released", out=root / "others", **common)
    return root


def heard(uri: str) -> np.ndarray[Any, Any]:
    """The samples inside an address."""
    kind, data = uri.split(",", 1)
    assert kind == "data:audio/mpeg;base64"
    return np.asarray(soundfile.read(io.BytesIO(base64.b64decode(data)))[0])


def test_a_release_that_was_made_here_is_found(place: Path, tmp_path: Path) -> None:
    pairs = pairs_of(reported(place / "made"))
    assert len(pairs) == len(PEOPLE) * EACH
    assert {pair.anonymized.path.is_relative_to(place / "made" / "release") for pair in pairs.values()} == {True}
    page = write_report(place / "made", tmp_path / "r.html", with_audio=True).read_text(encoding="utf-8")
    people = json.loads(re.search(r'id="people-data">(.*?)</script>', page)[1])  # type: ignore[index]
    assert len(people) == len(PEOPLE)
    assert {len(person["audio"]) for person in people.values()} == {2}
    sides = ("original", "anonymized", "named_sound")
    sounds = [heard(pair[side]) for person in people.values() for pair in person["audio"] for side in sides]
    assert min(len(samples) for samples in sounds) >= SECONDS * 16_000
    moved = shutil.copytree(place / "made", tmp_path / "moved")
    assert len(pairs_of(reported(moved))) == len(pairs)
    shutil.rmtree(moved / "release")
    with pytest.raises(InputError, match="no longer exists"):
        write_report(moved, tmp_path / "gone.html", with_audio=True)


def test_whom_the_attacker_named_is_who_scored_highest(place: Path) -> None:
    import pyarrow.parquet as pq

    run = reported(place / "made")
    case = strongest(run.results)
    assert case is not None
    table = pq.read_table(place / "made" / "tables" / f"scores-{case.attacker}.parquet").to_pylist()
    best = {
        row["utterance"]: max(
            (r["score"], r["enrollment_speaker"]) for r in table if r["utterance"] == row["utterance"]
        )[1]
        for row in table
    }
    assert attacker_answers(run, PEOPLE) == best
    assert attacker_answers(run, PEOPLE[:1]).keys() < best.keys()
    recordings = recordings_of(run)
    pairs = pairs_of(run)
    originals = {data_uri(pair.original): pair.original for pair in pairs.values()}
    for speaker, heard_of in recordings.items():
        for played in heard_of:
            original = originals[played.original]
            assert played.named == best[original.id]
            # Whom the attacker named is heard in another recording, which is theirs.
            assert originals[played.named_sound].speaker == played.named
            assert played.named_sound != played.original
            assert original.speaker == speaker
    names = pseudonyms(PEOPLE, run_key(place / "made"))
    shown = rename(recordings, names)
    assert {played.named for heard_of in shown.values() for played in heard_of} <= set(names.values())
    without = rename({"quilla": recordings["quilla"]}, {"quilla": "P1"})
    assert all(
        played.named in ("P1", "") and bool(played.named_sound) == bool(played.named) for played in without["P1"]
    )


def test_a_manifest_can_not_name_files_elsewhere(place: Path, tmp_path: Path) -> None:
    moved = shutil.copytree(place / "made", tmp_path / "moved")
    manifest = moved / "release" / "speech.manifest.jsonl"
    entries = [json.loads(line) for line in manifest.read_text().splitlines()]
    entries[0]["output"] = str(place / "released" / "ranulf" / "ranulf0.wav")
    entries[1]["output"] = "../../../elsewhere.wav"
    shutil.copy(place / "released" / "ranulf" / "ranulf0.wav", tmp_path / "elsewhere.wav")
    manifest.write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    assert len(pairs_of(reported(moved))) == len(PEOPLE) * EACH - 2


def test_every_system_is_heard_on_the_same_recordings(place: Path) -> None:
    runs = {"first": reported(place / "made"), "second": reported(place / "given")}
    player = player_of(runs)
    assert player.tracks == ("original", "first", "second")
    assert len(player.recordings) == 2 * len(PEOPLE)
    # People are called as in the reports of the runs, each of which has pseudonyms of its own.
    called = [pseudonyms(PEOPLE, run_key(place / folder)) for folder in ("made", "given")]
    for recording in player.recordings:
        person = next(name for name, own in called[0].items() if recording.title.startswith(f"{own}, recording "))
        assert recording.notes[1].startswith(f"{called[0][person]} in its own report: ")
        assert recording.notes[2].startswith(f"{called[1][person]} in its own report: ")
    pairs = [pairs_of(run) for run in runs.values()]
    originals = {name: first_seconds(pair.original) for name, pair in pairs[0].items()}
    for recording in player.recordings:
        samples = [heard(uri)[: int(SECONDS * 16_000)] for uri in recording.sounds]
        # MP3 changes samples a little: what is heard belongs to the recording it resembles most.
        name = max(originals, key=lambda name: np.dot(originals[name], samples[0]))
        assert name != "quilla/quilla0"  # which can't be read on one side
        for of_run, played in zip(pairs, samples[1:], strict=True):
            expected = first_seconds(of_run[name].anonymized)
            assert np.corrcoef(expected, played)[0, 1] > 0.8
        assert recording.notes[0] == ""
        assert all("recordings are linked to them" in note for note in recording.notes[1:])


def test_equal_ids_of_other_recordings_are_not_compared(place: Path, tmp_path: Path) -> None:
    player = player_of({"first": reported(place / "made"), "second": reported(place / "others")})
    assert player.recordings == ()
    path = write_comparison([place / "made", place / "others"], tmp_path / "c.html", resamples=10, with_audio=True)
    text = path.read_text(encoding="utf-8")
    assert "were not run on the same recordings" in text
    assert "contains recordings" not in text
    assert "data:audio" not in text


def test_a_run_of_vectors_is_named_beside_those_that_sound(place: Path, run: Path) -> None:
    player = player_of({"vectors": reported(run), "audio": reported(place / "given")})
    assert {(recording.sounds[1], recording.notes[1]) for recording in player.recordings} == {
        ("", "no recordings in this run")
    }
    assert all(recording.sounds[0] and recording.sounds[2] for recording in player.recordings)


def test_few_people_and_few_seconds(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_audio(tmp_path / "long.wav", np.random.default_rng(0).normal(0, 0.1, 20 * 16_000))
    assert len(first_seconds(Utterance("long", "quilla", tmp_path / "long.wav"))) == AUDIO_SECONDS * 16_000
    monkeypatch.setattr(sound, "LISTENED_PEOPLE", 3)
    run = reported(place / "made")
    listed = [person.speaker for person in run.results.people.persons]
    notes = [person_risk(run.results.people.persons[listed.index(name)].risk) for name in listed[:3]]
    player = player_of({"made": run})
    assert len(player.recordings) == 3 * 2
    assert [recording.notes[1].split(": ", 1)[1] for recording in player.recordings[::2]] == notes


def test_sound_is_put_into_a_comparison_only_where_asked_for(place: Path, run: Path, tmp_path: Path) -> None:
    page = tmp_path / "c.html"
    words = ["compare", str(place / "made"), str(place / "given"), "--resamples", "10", "--report", str(page)]
    assert CliRunner().invoke(app, words).exit_code == 0
    assert "data:audio" not in page.read_text(encoding="utf-8")
    assert CliRunner().invoke(app, [*words, "--bundle", "--with-audio"]).exit_code == 0
    text = page.read_text(encoding="utf-8")
    # Original and two systems, once each: the runs' own pages inside stay without sound.
    assert text.count("data:audio/mpeg") == 3 * 2 * len(PEOPLE)
    assert "contains recordings, original and anonymized" in text
    assert [name for name in (*PEOPLE, str(place)) if name in text] == []


@pytest.mark.parametrize(
    ("options", "message"),
    [(["--with-audio"], "--with-audio is for --report"), (["--with-audio", "--report", "HERE/c.html"], "no sound")],
)
def test_refused_where_there_is_nothing_to_hear(run: Path, tmp_path: Path, options: list[str], message: str) -> None:
    words = [option.replace("HERE", str(tmp_path)) for option in options]
    with pytest.raises(InputError, match=message):  # exit code 2 outside of tests
        CliRunner().invoke(app, ["compare", str(run), str(run), "--resamples", "10", *words], catch_exceptions=False)
    assert not (tmp_path / "c.html").exists()


def test_figures_are_drawn_even_if_there_is_nothing_to_hear(run: Path, tmp_path: Path) -> None:
    page, figures = str(tmp_path / "c.html"), str(tmp_path / "figures")
    words = ["compare", str(run), str(run), "--resamples", "10", "--report", page, "--with-audio", "--figures", figures]
    with pytest.raises(InputError, match="no sound"):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert (tmp_path / "figures" / "linkability.csv").exists()


def test_names_are_unique_without_their_folders(run: Path, tmp_path: Path) -> None:
    """Runs in folders of one name were one system on the page."""
    results = read_runs([run, run])[0].results
    runs = [ComparedRun(name, Path(name), results) for name in ("b1/run", "b2/run", "b3/other")]
    assert display_names(runs) == ["run", "run (2)", "other"]


@pytest.mark.browser
def test_the_comparison_plays(browser: Any, place: Path, tmp_path: Path) -> None:
    path = write_comparison([place / "made", place / "given"], tmp_path / "c.html", resamples=10, with_audio=True)
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-core is not installed: make env")
    with Opened(browser, path, unfold=False, color_scheme="dark", bypass_csp=True) as opened:
        assert serious_violations(axe, opened.page) == {}
    with Opened(browser, path, unfold=False) as opened:
        page = opened.page
        assert "contains recordings" in page.locator("#decision .banner").first.inner_text()
        assert "contains recordings" in page.locator("footer").inner_text()
        assert page.locator("#listen audio").count() == 3
        first = page.locator("#listen audio").evaluate_all("all => all.map(a => a.src)")
        page.get_by_label("Recording", exact=True).select_option(index=3)
        labels = page.locator("#listen audio").evaluate_all("all => all.map(a => a.getAttribute('aria-label'))")
        title = page.locator("#listen-recording option").nth(3).inner_text()
        assert title.endswith(", recording 2")
        assert labels == [f"{track}, {title}" for track in ("original", "made", "given")]
        assert not set(first) & set(page.locator("#listen audio").evaluate_all("all => all.map(a => a.src)"))
        page.get_by_role("button", name="Hear given").click()
        page.wait_for_function("() => document.querySelectorAll('#listen audio')[2].currentTime > 0")
        assert page.locator("#listen li.playing").get_attribute("data-system") == "given"
        durations = page.locator("#listen audio").evaluate_all("all => all.map(a => a.duration)")
        assert durations == pytest.approx([SECONDS] * 3, abs=0.2)
        page.locator("#listen audio").nth(1).evaluate("a => a.play()")
        page.wait_for_function("() => document.querySelectorAll('#listen audio')[2].paused")
        assert opened.said == []
        assert [url for url in opened.asked if not url.startswith(("data:", "file:"))] == []


def test_recordings_are_found_from_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "speech").mkdir()
    (tmp_path / "runs" / "one").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "runs")
    assert _find_paths("speech", Path("one")) == [str(tmp_path / "speech")]
    assert _find_paths(["nowhere"], Path("one")) == ["nowhere"]
