"""`challenge check` and `challenge zip` on trees of the challenges, and `anonymize --vpc` into such a tree."""

from __future__ import annotations

import csv
import json
import os
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voiceprivacy_folders as vpc
from tests import challenge_trees as trees
from typer.testing import CliRunner

from veilmeter.assessment.challenge.submission import TRACKS, check_submission, write_archive
from veilmeter.cli.main import app
from veilmeter.core.errors import InputError
from veilmeter.data.scores import read_scores
from veilmeter.metrics.scores.eer import eer
from veilmeter.speech.audio import write_audio

pytest.importorskip("soundfile")
SOUND = np.zeros(1600, np.float32)


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def audible(data: Path, suffix: str) -> Path:
    """The tree with readable recordings in its anonymized folders."""
    first = data / "first.wav"
    write_audio(first, SOUND)
    for path in data.glob(f"*{suffix}/wav/*.wav"):
        shutil.copy(first, path)
    return data


def run(*words: object) -> Any:
    return CliRunner().invoke(app, [str(word) for word in words])


def test_how_many_folders_the_organizers_ask_for() -> None:
    counts = {(track.year, track.name): (len(track.required), len(track.optional)) for track in TRACKS}
    assert counts == {("2024", ""): (9, 0), ("2026", "1"): (7, 0), ("2026", "2"): (22, 8)}


def test_a_complete_submission_of_2024(place: Path) -> None:
    audible(trees.tree_2024(place), "_mcadams")
    (check,) = check_submission("data", "_mcadams", "2024")
    assert check.is_complete, [problem for folder in check.folders for problem in folder.problems]
    assert [folder.there for folder in check.folders] == [folder.expected for folder in check.folders]
    ran = run("challenge", "check", "data", "--suffix", "_mcadams", "--year", "2024")
    assert ran.exit_code == 0
    assert "2024: 9 of 9 folders with _mcadams are complete" in ran.output


def test_what_is_wrong_is_found(place: Path) -> None:
    data = audible(trees.tree_2024(place), "_mcadams")
    enrolls = sorted((data / "libri_dev_enrolls_mcadams" / "wav").glob("*.wav"))
    enrolls[0].rename(enrolls[0].with_suffix(".flac"))
    enrolls[1].write_bytes(b"")
    enrolls[2].write_bytes(b"nothing that is sound")
    trials = sorted((data / "libri_test_trials_f_mcadams" / "wav").glob("*.wav"))
    write_audio(trials[0], SOUND, 8000)
    shutil.copy(trials[1], trials[1].with_name("nobody.wav"))
    listed = data / "libri_test_trials_m_mcadams" / "utt2spk"
    listed.write_text((data / "libri_test_trials_m" / "utt2spk").read_text().replace(" 1", " 2", 1))
    shutil.rmtree(data / "IEMOCAP_dev_mcadams")
    shutil.copytree(data / "libri_dev_enrolls_mcadams", data / "libri_dev_enrolls_a_mcadams")
    (check,) = check_submission(data, "_mcadams", "2024")
    kinds = {folder.name: {p.kind for p in folder.problems if p.fatal} for folder in check.folders if folder.problems}
    assert kinds["libri_dev_enrolls_mcadams"] == {"missing-recordings", "empty", "unreadable"}
    assert kinds["libri_test_trials_f_mcadams"] == {"rate"}
    assert kinds["libri_test_trials_m_mcadams"] == {"other-list"}
    assert kinds["IEMOCAP_dev_mcadams"] == {"missing-folder"}
    assert [problem.kind for problem in check.problems] == ["confusing-name"]
    flac = next(p for p in check.folders[0].problems if p.kind == "missing-recordings")
    assert "1 .flac are here" in flac.fix
    ran = run("challenge", "check", data, "--suffix", "_mcadams", "--json")
    assert ran.exit_code == 2
    assert json.loads(ran.stdout)["tracks"][0]["complete"] is False
    for words, what in [(("mcadams", "2024"), "no underscore"), (("_other", "2024"), "there are _a_mcadams, _mcadams"),
                        (("_mcadams", "2026", "3"), "has no track")]:  # fmt: skip
        with pytest.raises(InputError, match=what):
            check_submission(data, *words)


def test_both_tracks_of_2026(place: Path) -> None:
    """The second track has 22 folders; those of Chinese and Japanese are optional."""
    data = audible(trees.tree_2026(place), "_b2")
    first, second = check_submission("data", "_b2", "2026")
    assert [folder.name for folder in first.folders if not folder.is_complete] == ["train-clean-360_b2"]
    assert second.is_complete
    assert (len(second.folders), sum(folder.optional for folder in second.folders)) == (30, 8)
    shutil.rmtree(data / "ja_test_enrolls_b2")
    assert len(check_submission("data", "_b2", "2026", "2")[0].folders) == 29
    assert "2026, track 2: 22 of 22" in run("challenge", "check", "data", "--suffix=_b2", "--year=2026").output


def test_the_archive_has_official_and_own_figures_apart(place: Path) -> None:
    with pytest.raises(InputError, match="--suffix _x: there are no results to collect"):
        write_archive("data", "_x", "out")
    files = {
        "exp/results_summary/result_for_rank_x": "official", "exp/asr/libri_test_asr_x/text": "a b",
        "exp/asv_anon_x/a-b/scores": "a b 0.1", "exp/asv_anon_x/model.ckpt": "gigabytes",
        "exp/asv_anon_y/a-b/scores": "other", "exp/asv_orig/libri_x/EER": "0.1",
        "run/result_for_rank_x": "ours", "run/eer_per_speaker_x.csv": "ours",
    }  # fmt: skip
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)
    ran = run("challenge", "zip", "data", "--suffix=_x", "--run=run", "--out=out")
    assert ran.exit_code == 0, ran.output
    assert "nothing matches exp/ser/*_x.csv" in ran.output
    with zipfile.ZipFile("out/result_for_submission_x.zip") as archive:
        assert archive.namelist() == [
            "exp/asr/libri_test_asr_x/text", "exp/asv_anon_x/a-b/scores", "exp/asv_orig/libri_x/EER",
            "exp/results_summary/result_for_rank_x", "veilmeter/eer_per_speaker_x.csv", "veilmeter/result_for_rank_x",
        ]  # fmt: skip
        assert archive.read("exp/results_summary/result_for_rank_x") == b"official"
    before = Path("out/result_for_submission_x.zip").read_bytes()
    write_archive("data", "_x", "out", "run")
    assert Path("out/result_for_submission_x.zip").read_bytes() == before


@pytest.mark.parametrize("suffix", ["_*", "_**", "_/..", "_mine/", "_[", "_a b", "_\udce9", "_", "mine"])
def test_a_suffix_that_no_folder_can_have(place: Path, suffix: str) -> None:
    data = audible(trees.tree_2024(place), "_mcadams")
    (place / "exp" / "asr").mkdir(parents=True)
    words = (["challenge", "check", data], ["challenge", "zip", data, "--out", place / "sent"],
             ["anonymize", "--vpc", data, "--jobs", "1"])  # fmt: skip
    for command in words:
        ran = run(*command, "--suffix", suffix)
        assert isinstance(ran.exception, InputError), (ran.exception, ran.output)
        assert "the suffix" in str(ran.exception)
    assert not (place / "sent").exists()


def test_files_that_are_none(place: Path) -> None:
    """A pipe would keep the check waiting, and a device would fill the memory or the archive."""
    data = audible(trees.tree_2024(place), "_mcadams")
    first, second, third = sorted((data / "libri_test_trials_f_mcadams" / "wav").glob("*.wav"))[:3]
    for path in (first, second, third):
        path.unlink()
    os.mkfifo(first)
    second.symlink_to("/dev/zero")
    third.symlink_to("nowhere")
    (check,) = check_submission("data", "_mcadams", "2024")
    (folder,) = [folder for folder in check.folders if folder.name == "libri_test_trials_f_mcadams"]
    assert [p.what for p in folder.problems if p.kind == "unreadable"] == ["3 recordings can't be read as WAV"]
    (place / "run").mkdir()

    def make_endless(path: Path) -> None:
        with open(path, "wb") as file:
            file.truncate(1 << 40)

    odd = {"pipe": os.mkfifo, "zero": lambda path: os.symlink("/dev/zero", path), "endless": make_endless}
    for name, make in odd.items():
        make(place / "run" / "emotions.csv")
        with pytest.raises(InputError, match=r"not a regular file|too large"):
            write_archive(data, "_mcadams", place / "sent", place / "run")
        (place / "run" / "emotions.csv").unlink()
        assert not list((place / "sent").iterdir()), name


def test_anonymize_writes_the_folders_that_the_check_wants(place: Path) -> None:
    vpc.challenge_2024(place)
    ran = run(
        "anonymize", "--vpc=data", "--suffix=_mine", "--sets", "libri_test,train-clean-360", "--jobs=1", "--quiet"
    )
    assert ran.exit_code == 0, ran.output
    made = {path.name for path in Path("data").glob("*_mine") if path.is_dir()}
    names = ("libri_test_enrolls", "libri_test_trials_f", "libri_test_trials_m", "train-clean-360")
    assert made == {f"{name}_mine" for name in names}
    (check,) = check_submission("data", "_mine", "2024")
    assert {folder.name for folder in check.folders if folder.is_complete} == made
    assert not [p for folder in check.folders for p in folder.problems if folder.is_complete]
    line = Path("data/libri_test_enrolls_mine/wav.scp").read_text().splitlines()[0]
    assert Path(line.split()[1]).is_file()  # relative to where the challenge's tools run
    for words, what in [(("--vpc=data",), "--suffix names"), ((), "CORPUS and OUT are required"),
                        (("--vpc=data", "--suffix=_x", "--format=flac"), "WAV only")]:  # fmt: skip
        refused = run("anonymize", *words)
        assert what in str(refused.exception)


def test_figures_of_veilmeter_are_called_so_and_each_speaker_has_an_eer(place: Path) -> None:
    vpc.challenge_2024(place)
    Path("own.py").write_text(vpc.EXTRACTOR)
    key = Path("data/libri_test_trials_f/trials").read_text()
    scored = vpc.scores_of(
        place, "asv_anon_mcadams", "libri_test_enrolls_mcadams", "libri_test_trials_f_mcadams", key, 1.5
    )
    ran = run(
        "assess", "--vpc=data", "--suffix=_mcadams", "--sets=libri_test_trials_f", "--extractor=own.py:embed",
        "--attackers=lazy-informed,informed", "--measures=scores", "--lengths=1", "--no-intervals", "--segments=0.55",
        "--jobs=1", "--quiet", "--out=out",
    )  # fmt: skip
    assert ran.exit_code == 0, ran.output
    table = Path("out/result_for_rank_mcadams").read_text()
    own = "measured by veilmeter, not by the challenge's tools"
    headings = [line.strip("- ") for line in table.splitlines() if line.startswith("----")]
    assert headings == [
        f"ASV_eval results ({own})", f"ASV_eval results ({own}; not in the challenge's table)", "ASV_eval^anon results",
    ]  # fmt: skip
    rows = list(csv.DictReader(Path("out/eer_per_speaker_mcadams.csv").read_text().splitlines()))
    assert {row["attacker"] for row in rows} == {"original", "lazy-informed", "informed"}
    assert {row["speaker"] for row in rows} == set(vpc.FEMALE)
    given = read_scores(scored, "data/libri_test_trials_f/trials")
    for row in rows:
        if row["attacker"] == "informed":
            mine = given.enroll_speaker == list(given.names).index(row["speaker"])
            targets, others = (given.values[mine & side] for side in (given.is_target, ~given.is_target))
            assert float(row["eer_challenge"]) == pytest.approx(eer(targets, others, "speechbrain"))
            assert (int(row["targets"]), int(row["nontargets"])) == (len(targets), len(others))
