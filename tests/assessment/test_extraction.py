"""From recordings to a verdict: corpora are heard once and kept; training speech comes in pieces and passes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("soundfile")
pytest.importorskip("torch")

from tests.results.sample_results import training_of

from veilmeter.assessment import assess
from veilmeter.assessment.extraction import cache_for, cut, embed_segments, lock_of
from veilmeter.assessment.run import run_assessment
from veilmeter.core.engine import Here
from veilmeter.core.errors import InputError
from veilmeter.core.files import only_one
from veilmeter.core.findings import warning
from veilmeter.data.corpus import read_corpus
from veilmeter.speech.audio import write_audio
from veilmeter.wording import sentence

EXTRACTOR = "tiny_network:embed"
FAST: dict[str, Any] = {"extractor": EXTRACTOR, "resamples": 10, "lengths": [1], "measures": ["scores", "linkability"]}


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    cache = tmp_path_factory.mktemp("cache")
    monkeypatch.setenv("VEILMETER_CACHE", str(cache))
    monkeypatch.setattr(sys, "path", [str(Path(__file__).parents[1]), *sys.path])
    return cache


def speak(root: Path, speakers: range, each: int, seconds: float, seed: int, moved: float = 0.0) -> Path:
    """Tones of a speaker's own; `moved` shifts each recording at random, as an anonymizer might."""
    rng = np.random.default_rng([seed, 1])
    for speaker in speakers:
        voice = np.random.default_rng([speaker, 2]).uniform(300, 7000, 4)
        for number in range(each):
            time = np.arange(int(16_000 * seconds)) / 16_000
            factor = 1 + moved * rng.uniform(-1, 1)
            tone = sum(np.sin(2 * np.pi * f * factor * time + rng.uniform(0, 6)) for f in voice)
            path = root / f"s{speaker}" / f"s{speaker}-{number}.wav"
            path.parent.mkdir(parents=True, exist_ok=True)
            write_audio(path, (0.1 * (tone + 0.3 * rng.standard_normal(len(time)))).astype(np.float32))
    return root


@pytest.fixture(scope="module")
def speech(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("speech")
    return {
        "original": speak(root / "original", range(8), 4, 0.8, 0),
        "anonymized": speak(root / "anonymized", range(8), 4, 0.8, 1, moved=0.2),
        "anonymized-2": speak(root / "anonymized-2", range(8), 4, 0.8, 4, moved=0.2),
        "train-1": speak(root / "train-1", range(20, 30), 1, 2.5, 2, moved=0.2),
        "train-2": speak(root / "train-2", range(20, 30), 1, 2.5, 3, moved=0.2),
    }


def test_assessed_from_audio(speech: dict[str, Path], own_cache: Path, tmp_path: Path) -> None:
    options = FAST | {"train_anonymized": [speech["train-1"], speech["train-2"]], "segments": 0.6}
    results = assess(speech["original"], speech["anonymized"], out=tmp_path / "run", **options).results
    assert results.inputs["original"].kind == "corpus"
    assert results.inputs["original"].layout == "folder"
    assert results.extractor is not None
    assert results.extractor["name"] == EXTRACTOR
    assert results.extractor["dimension"] == 40
    # One recording per speaker, two passes, four pieces each.
    assert training_of(results) == "80 recordings of 10 other speakers"
    assert results.attackers["original"].estimates.points("eer").only().value < 10
    kept = sorted(folder.name.rsplit("-", 1)[0] for folder in (own_cache / "embeddings").iterdir())
    assert kept == ["anonymized", "original", "train-1", "train-2"]
    # Heard once: another run does not need the recordings' samples any more.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("veilmeter.speech.audio.read_recording", None)
        again = assess(speech["original"], speech["anonymized"], **options).results
    assert again.attackers == results.attackers


def test_pieces(speech: dict[str, Path]) -> None:
    corpus = read_corpus(speech["train-1"])
    found, facts = embed_segments(corpus, EXTRACTOR, Here(), 0.6)
    assert len(found) == 40
    assert len(found.names) == 10
    assert facts["dimension"] == 40
    assert found.utterances[0] == "s20/s20-0@0" or found.utterances[0].endswith("@0")
    np.testing.assert_array_equal(embed_segments(corpus, EXTRACTOR, Here(), 0.6)[0].vectors, found.vectors)
    assert [len(piece) for piece in cut(np.zeros(100, np.float32), 5.0)] == [100]


def test_fine_tuned_attacker(speech: dict[str, Path], tmp_path: Path) -> None:
    options = FAST | {
        "train_anonymized": [speech["train-1"], speech["train-2"]], "segments": 0.6, "adaptation": "finetune",
        "network": "tiny_network:make", "epochs": 2, "attackers": ["ignorant", "informed"],
    }  # fmt: skip
    results = assess(speech["original"], speech["anonymized"], out=tmp_path / "run", **options).results
    said = training_of(results)
    assert said.startswith("20 recordings of 10 other speakers, by fine-tuning (loss ")
    assert (tmp_path / "run" / "finetuned" / "informed" / "model.safetensors").is_file()
    assert results.attackers["informed"].backend == "cosine"
    first = (tmp_path / "run" / "results.json").read_bytes()
    assess(speech["original"], speech["anonymized"], out=tmp_path / "run", **options)
    assert (tmp_path / "run" / "results.json").read_bytes() == first


def test_an_attacker_that_is_tuned_on_the_assessed_people_is_said_to_know_them(
    speech: dict[str, Path], tmp_path: Path
) -> None:
    options = FAST | {
        "train_anonymized": [speech["anonymized-2"]], "segments": 0.6, "adaptation": "finetune", "lengths": [1],
        "network": "tiny_network:make", "epochs": 1, "attackers": ["informed"], "intervals": False,
    }  # fmt: skip
    results = assess(speech["original"], speech["anonymized"], out=tmp_path / "run", **options).results
    assert "assessed here" in training_of(results)
    check = next(check for check in results.checks if check.name == "training speakers are others")
    assert check.passed is False
    assert not any("train" in str(remark.values.get("option")) for remark in results.remarks)


def test_the_attackers_own_runs_are_training_speech_and_the_tuned_vectors_one_more_extractor(
    speech: dict[str, Path], tmp_path: Path
) -> None:
    options = FAST | {
        "train_anonymized": [speech["train-1"]], "segments": 0.6, "adaptation": "finetune", "lengths": [1],
        "network": "tiny_network:make", "epochs": 2, "attackers": ["informed", "adaptive"], "intervals": False,
        "attacker_run": [f"{speech['anonymized-2']}:per-utterance"],
    }  # fmt: skip
    results = assess(speech["original"], speech["anonymized"], out=tmp_path / "run", **options).results
    assert "the candidates' own copies among them" in training_of(results)
    assert "extractor 2" in results.attackers["adaptive"].backend
    assert not any("extractor 2" in name for name in results.attackers["adaptive"].details["validation"]["methods"])


def test_fine_tuning_needs_speech(speech: dict[str, Path]) -> None:
    with pytest.raises(InputError, match="can't be fine-tuned without training speech"):
        assess(speech["original"], speech["anonymized"], **FAST, adaptation="finetune")


# Slow enough for two runs to meet, and it writes down what it heard.
SLOW = """
import os, time
import numpy as np

def embed(samples):
    time.sleep(0.02)
    with open(os.environ["HEARD"], "a") as log:
        log.write(f"{samples.tobytes().hex()[:64]}\\n")
    spectrum = np.abs(np.fft.rfft(samples[:8000]))
    return np.log1p(spectrum[:4000].reshape(20, 200).mean(axis=1))
"""


def test_two_runs_at_once_share_what_was_heard(speech: dict[str, Path], tmp_path: Path) -> None:
    """Neither is refused, nothing is heard twice, and both come to the same result."""
    (tmp_path / "slow.py").write_text(SLOW)
    environment = os.environ | {"HEARD": str(tmp_path / "heard"), "OMP_NUM_THREADS": "1"}
    outs = [tmp_path / "first", tmp_path / "second"]
    command = [sys.executable, "-m", "veilmeter.cli.main", "assess", "--original", str(speech["original"]),
               "--anonymized", str(speech["anonymized"]), "--train-anonymized", str(speech["train-1"]),
               "--segments", "0.6", "--extractor", f"{tmp_path / 'slow.py'}:embed", "--attackers", "ignorant",
               "--measures", "scores", "--no-intervals", "--no-report", "--jobs", "1"]  # fmt: skip
    runs = [
        subprocess.Popen([*command, "--out", str(out)], env=environment, stderr=subprocess.PIPE, text=True)
        for out in outs
    ]
    said = [run.communicate(timeout=120)[1] for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    assert sum("another run is extracting original already: waiting" in text for text in said) == 1
    assert outs[0].joinpath("results.json").read_bytes() == outs[1].joinpath("results.json").read_bytes()
    heard = Counter((tmp_path / "heard").read_text().split())
    once = [count for count in heard.values() if count == 1]
    # But for the second of noise that each run tries the extractor with.
    assert len(heard) - len(once) == 1
    assert len(once) == 32 + 32 + 40


@pytest.mark.parametrize("role", ["anonymized", "train_anonymized"])
def test_strict_stops_at_a_silent_recording(speech: dict[str, Path], tmp_path: Path, role: str) -> None:
    spoiled = shutil.copytree(speech["anonymized"], tmp_path / "spoiled")
    write_audio(spoiled / "s2" / "s2-1.wav", np.zeros(16_000, np.float32))
    sources: dict[str, Any] = {"anonymized": speech["anonymized"], role: spoiled}
    with pytest.raises(InputError, match="s2-1"):
        assess(speech["original"], **sources, **FAST, attackers="ignorant", strict=True)


def test_a_run_waits_until_the_corpus_is_free(speech: dict[str, Path], own_cache: Path) -> None:
    said: list[str] = []
    lock = lock_of(cache_for(read_corpus(speech["original"]), EXTRACTOR))
    done: list[Any] = []
    told = threading.Event()

    def say(text: str) -> None:
        said.append(text)
        if "waiting" in text:
            told.set()

    def run() -> None:
        done.append(run_assessment(speech["original"], speech["anonymized"], **FAST, attackers="ignorant", say=say))

    with only_one(lock):
        thread = threading.Thread(target=run)
        thread.start()
        assert told.wait(60)
        assert not done
    thread.join(60)
    assert len(done) == 1
    assert [text for text in said if "waiting" in text] == [
        f"another run is extracting original already: waiting for what it keeps in {own_cache / 'embeddings'}"
    ]
    assert not list(own_cache.rglob("*.lock"))


def test_two_lists_of_one_folder_are_kept_apart(speech: dict[str, Path], own_cache: Path, tmp_path: Path) -> None:
    """The same ids, files of the same size and time, in one folder: neither is taken for the other."""
    for side in ("original", "anonymized"):
        rows = [f"../{side}/s{s}/s{s}-{n}.wav,s{s},s{s}-{n}" for s in range(8) for n in range(4)]
        (speech["original"].parent / "lists").mkdir(exist_ok=True)
        (speech["original"].parent / "lists" / f"{side}.csv").write_text("path,speaker,utterance\n" + "\n".join(rows))
        for file in speech[side].rglob("*.wav"):
            os.utime(file, (1e9, 1e9))
    roots = [speech["original"].parent]
    corpora = [read_corpus(roots[0] / "lists" / f"{side}.csv", roots=roots) for side in ("original", "anonymized")]
    plain = assess(speech["original"], speech["anonymized"], **FAST, attackers="ignorant").results
    listed = assess(*corpora, **FAST, attackers="ignorant").results
    assert listed.inputs["anonymized"].sha256 != listed.inputs["original"].sha256
    assert listed.attackers["original"].estimates["eer"] == plain.attackers["original"].estimates["eer"]
    assert len([folder for folder in (own_cache / "embeddings").iterdir() if folder.name.startswith("lists-")]) == 2


@pytest.fixture(scope="module")
def voiceprivacy(speech: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder with the original and the anonymized data, and lists of enrollment and trials."""
    root = tmp_path_factory.mktemp("vpc")
    for side, suffix in (("original", ""), ("anonymized", "_anon")):
        for speaker in range(8):
            for number in range(4):
                name = f"s{speaker}-{number}"
                role = "enrolls" if number < 2 else "trials_f" if speaker % 2 else "trials_m"
                folder = root / "data" / f"libri_test_{role}{suffix}"
                (folder / "wav").mkdir(parents=True, exist_ok=True)
                shutil.copy(speech[side] / f"s{speaker}" / f"{name}.wav", folder / "wav")
                with open(folder / "utt2spk", "a") as lines:
                    lines.write(f"{name} s{speaker}\n")
                with open(folder / ("enrolls" if role == "enrolls" else "trials"), "a") as lines:
                    if role == "enrolls":
                        lines.write(name + "\n")
                        continue
                    for other in range(speaker % 2, 8, 2):
                        lines.write(f"s{other} {name} {'target' if other == speaker else 'nontarget'}\n")
    return root


def test_one_folder_of_voiceprivacy_data(voiceprivacy: Path, tmp_path: Path) -> None:
    """It holds both sides and the lists: the same result as with every data folder named."""
    options = FAST | {"attackers": ["ignorant", "lazy-informed"]}
    results = assess(voiceprivacy, voiceprivacy, out=tmp_path / "run", **options).results
    assert results.title.endswith("(_anon) against " + voiceprivacy.name)
    assert sentence(results.protocol.split) == "lists found with the data"
    assert results.protocol.details["key"] == 64
    data = voiceprivacy / "data"
    sets = [data / f"libri_test_{role}" for role in ("enrolls", "trials_f", "trials_m")]
    named = assess(sets, [folder.with_name(folder.name + "_anon") for folder in sets], **options).results
    assert named.attackers["ignorant"].estimates == results.attackers["ignorant"].estimates
    from veilmeter.report.public import reported
    from veilmeter.report.sound import recordings_of

    heard = recordings_of(reported(tmp_path / "run"))
    assert len(heard) == 8
    assert all(one.original != one.anonymized for ones in heard.values() for one in ones)
    with pytest.raises(InputError, match="no folder has the suffix '_other'"):
        assess(voiceprivacy, voiceprivacy, **options, suffix="_other")
    shutil.copytree(data / "libri_test_enrolls", data / "libri_test_enrolls_third")
    try:
        with pytest.raises(InputError, match="several variants"):
            assess(voiceprivacy, voiceprivacy, **options)
        again = assess(voiceprivacy, voiceprivacy, **options, suffix="_anon").results
        assert again.attackers["ignorant"].estimates == results.attackers["ignorant"].estimates
    finally:
        shutil.rmtree(data / "libri_test_enrolls_third")


def test_what_is_left_out_is_said_and_listed(speech: dict[str, Path], tmp_path: Path) -> None:
    original = shutil.copytree(speech["original"], tmp_path / "original")
    anonymized = shutil.copytree(speech["anonymized"], tmp_path / "anonymized")
    (original / "s0" / "s0-9.wav").write_bytes(b"no sound")
    (anonymized / "s1" / "s1-0.wav").unlink()
    (anonymized / "s1" / "s1-1.wav").rename(anonymized / "s1" / "s1-8.wav")
    results = assess(original, anonymized, out=tmp_path / "run", **FAST, attackers="ignorant").results
    unusable = warning("recordings_unusable", role="original", count=1, kinds=("1 unreadable",))
    unmatched = warning("utterances_unmatched", only_original=2, only_anonymized=1, speaker_differs=0)
    assert {unusable.code, unmatched.code} == {found.code for found in results.warnings if "un" in found.code}
    assert unusable in results.warnings
    assert unmatched in results.warnings
    lines = [json.loads(line) for line in (tmp_path / "run" / "left_out.jsonl").read_text().splitlines()]
    assert [(one["role"], one["kind"]) for one in lines] == [
        ("original", "unreadable"), ("matching", "only_original"), ("matching", "only_original"),
        ("matching", "only_anonymized"),
    ]  # fmt: skip
    assert lines[0]["path"] == str(original / "s0" / "s0-9.wav")
    assert [one["utterance"] for one in lines[1:]] == ["s1/s1-0", "s1/s1-1", "s1/s1-8"]
    # Results go into a report that names nobody: they contain no id.
    assert "s1-8" not in (tmp_path / "run" / "results.json").read_text()
    clean = assess(speech["original"], speech["anonymized"], out=tmp_path / "run", **FAST, attackers="ignorant").results
    assert not {unusable.code, unmatched.code} & {found.code for found in clean.warnings}
    assert not (tmp_path / "run" / "left_out.jsonl").exists()


def test_recordings_that_are_only_scaled_are_not_anonymized(speech: dict[str, Path], tmp_path: Path) -> None:
    """Their vectors may move, the recordings are the same."""
    from veilmeter.speech.audio import read_audio

    scaled = tmp_path / "scaled"
    for file in speech["original"].rglob("*.wav"):
        place = scaled / file.relative_to(speech["original"])
        place.parent.mkdir(parents=True, exist_ok=True)
        write_audio(place, 0.5 * read_audio(file))
    results = assess(speech["original"], scaled, **FAST, attackers="ignorant").results
    failed = {check.name for check in results.checks if check.failed}
    assert "anonymized differs from original" in failed
    hidden = assess(speech["original"], speech["anonymized"], **FAST, attackers="ignorant").results
    assert "anonymized differs from original" not in {check.name for check in hidden.checks if check.failed}
