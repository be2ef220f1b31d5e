"""`assess --vpc` on folders as the VoicePrivacy challenges leave them on disk."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import voiceprivacy_folders as vpc
from typer.testing import CliRunner

from veilmeter.assessment import assess_challenge, make_settings
from veilmeter.assessment.challenge.table import measure_emotions, rank_table, write_rows
from veilmeter.assessment.run import run_assessment
from veilmeter.assessment.stages import Forecast
from veilmeter.cli.main import app
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Finding, warning
from veilmeter.core.typed_json import decode
from veilmeter.data.formats.vpc import find_sets
from veilmeter.data.scores import read_scores
from veilmeter.metrics.scores.eer import eer

pytest.importorskip("soundfile")

SUFFIX = "_mcadams"
QUICK = (
    "--attackers=ignorant,lazy-informed,informed", "--measures=scores,linkability", "--lengths=1", "--no-utility",
    "--no-intervals", "--segments=0.55", "--jobs=1", "--quiet",
)  # fmt: skip


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The challenge's lists name recordings relative to where its tools run."""
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(vpc.EXTRACTOR)
    return tmp_path


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["assess", "--extractor=own.py:embed", *QUICK, *words])


def results_of(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path("out", name, "results.json").read_text())
    return found


def test_the_challenges_rule_and_rocch_stand_beside_each_other(place: Path) -> None:
    """Whichever method is chosen, both are in the results, in the table and on the terminal."""
    vpc.challenge_2024(place)
    ran = run("--vpc=data", f"--suffix={SUFFIX}", "--sets=libri_test", "--out=out", "--eer-method=speechbrain")
    assert ran.exit_code == 0, ran.output
    for gender in "fm":
        for attacker in results_of(f"libri_test_trials_{gender}")["attackers"].values():
            found = attacker["estimates"]
            assert found["eer"]["method"] == "speechbrain"
            assert found["eer"]["value"] == pytest.approx(found["eer_speechbrain"]["value"])
            assert found["eer_rocch"]["value"] <= found["eer"]["value"] + 1e-9
    rows = list(csv.DictReader(Path(f"out/result_for_rank{SUFFIX}.csv").read_text().splitlines()))
    assert {row["eer_method"] for row in rows} == {"speechbrain"}
    assert "(speechbrain; 50 % is chance;" in ran.output
    assert "by the rule rocch" in ran.output


def test_a_folder_of_2024(place: Path) -> None:
    data = vpc.challenge_2024(place)
    keys = {gender: (data / f"libri_test_trials_{gender}" / "trials").read_text() for gender in "fm"}
    scores = {}
    used: dict[tuple[str, str], Path] = {}
    unused: list[Path] = []
    for gender, key in keys.items():
        enrollment, trials = "libri_test_enrolls", f"libri_test_trials_{gender}"
        original = vpc.scores_of(place, "asv_orig", enrollment, trials, key, 3.0)
        ignorant = vpc.scores_of(place, "asv_orig", enrollment, f"{trials}{SUFFIX}", key, 2.5)
        # The tools also apply the extractor trained on anonymized speech to these pairs, which no attacker would.
        beside = [
            vpc.scores_of(place, f"asv_anon{SUFFIX}", enrollment, trials, key, 0.1),
            vpc.scores_of(place, f"asv_anon{SUFFIX}", enrollment, f"{trials}{SUFFIX}", key, 0.1),
        ]
        used |= {(gender, "original"): original, (gender, "ignorant"): ignorant}
        unused += beside
        scores[gender] = vpc.scores_of(
            place, f"asv_anon{SUFFIX}", f"{enrollment}{SUFFIX}", f"{trials}{SUFFIX}", key, 1.5
        )
    other = vpc.scores_of(place, "asv_anon_b3", "libri_test_enrolls_b3", "libri_test_trials_f_b3", keys["f"], 0.0)
    (data / "vctk-of-my-own").mkdir()
    (data / "vctk-of-my-own" / "utt2spk").write_text("a b\n")
    ran = run("--vpc=data", f"--suffix={SUFFIX}", "--sets=libri_test", "--out=out")
    assert ran.exit_code == 0, ran.output
    for gender, people in (("f", vpc.FEMALE), ("m", vpc.MALE)):
        found = results_of(f"libri_test_trials_{gender}")
        assert found["protocol"]["enrolled_speakers"] == len(people)
        assert found["protocol"]["trial_speakers"] == len(people) + 1  # one of them is a stranger
        assert found["inputs"]["train_anonymized"]["speakers"] == 6
        assert set(found["attackers"]) == {"original", "ignorant", "lazy-informed", "informed"}
        informed = found["attackers"]["informed"]
        assert (informed["source"], found["attackers"]["lazy-informed"]["source"]) == ("scores", "vectors")
        given = read_scores(scores[gender], data / f"libri_test_trials_{gender}" / "trials")
        by_rule = eer(given.targets, given.impostors, "speechbrain")
        assert informed["estimates"]["eer_speechbrain"]["value"] == pytest.approx(by_rule)
        for name in ("original", "ignorant"):
            given = read_scores(used[gender, name], data / f"libri_test_trials_{gender}" / "trials")
            by_rule = eer(given.targets, given.impostors, "speechbrain")
            assert found["attackers"][name]["estimates"]["eer_speechbrain"]["value"] == pytest.approx(by_rule)
        assert Path("out", f"libri_test_trials_{gender}", "report.html").is_file()
    rows = list(csv.DictReader(Path(f"out/result_for_rank{SUFFIX}.csv").read_text().splitlines()))
    assert {(row["dataset"], row["split"], row["gender"]) for row in rows} == {
        ("libri", "test", "f"),
        ("libri", "test", "m"),
    }
    table = Path(f"out/result_for_rank{SUFFIX}").read_text()
    adapted = table.split("---- ASV_eval^anon results ----\n")[1].splitlines()[1:3]
    assert [line.split()[:6] for line in adapted] == [
        ["0", "libri", "test", "f", "anon", "anon"],
        ["1", "libri", "test", "m", "anon", "anon"],
    ]
    not_used = {json.loads(line)["path"] for line in Path("out/not_used.jsonl").read_text().splitlines()}
    assert {Path(path).name for path in not_used if not path.endswith("scores")} == {
        "libri_test", f"libri_test_enrolls_a{SUFFIX}", "IEMOCAP_test", f"IEMOCAP_test{SUFFIX}", "vctk-of-my-own",
    }  # fmt: skip
    for path in (other, *unused):
        assert any(listed.endswith(str(path.relative_to(place))) for listed in not_used)
    assert all(Path(path).name in ran.stdout for path in not_used)


def test_emotions_are_told_on_both_sides(place: Path) -> None:
    data = vpc.challenge_2024(place)
    vpc.emotion_set(data, "IEMOCAP_dev")
    vpc.emotion_set(data, "emodata_track2_test", emotions=("ang", "hap", "neu"))
    lost = data / f"IEMOCAP_dev{SUFFIX}" / "wav" / "Ses01F_sad_1.wav"
    lost.unlink()
    settings = make_settings({"vpc": "data", "extractor": "own.py:embed"})
    challenge = find_sets(data, SUFFIX)
    quietly: dict[str, Any] = {
        "jobs": 1, "cluster": None, "say": lambda text: None, "forecast": Forecast()
    }  # fmt: skip
    measured, problems = measure_emotions(challenge.emotion, settings, **quietly)
    assert [emotions.name for emotions in measured] == ["IEMOCAP_dev", "emodata_track2_test"]
    for emotions in measured:
        assert [point.value for point in emotions.estimates] == [100.0] * 3
        assert {(point.at["trained_on"], point.at["read_from"]) for point in emotions.estimates} == {
            ("original", "original"), ("original", "anonymized"), ("anonymized", "anonymized")
        }  # fmt: skip
    assert measured[0].left_out == 2  # the missing copy, and its original that has no partner
    # One emotion of one person is not enough: the set is reported as not measured, with the reason.
    assert {Path(problem.path).name for problem in problems} == {"IEMOCAP_test", f"IEMOCAP_test{SUFFIX}"}
    assert "needs two values with 3 speakers or more, there are neu (1)" in problems[0].what
    rows = [row for emotions in measured for row in emotions.rows()]
    assert {(row.dataset, row.split) for row in rows} == {("IEMOCAP", "dev"), ("emodata_track2", "test")}
    table = rank_table([], {"libri_test_trials_f": Estimate(name="wer", value=7.25)}, rows)
    heard = table.split("---- ASR results (measured by veilmeter, not by the challenge's tools) ----\n")[1].split()
    assert heard == ["dataset", "split", "gender", "WER", "0", "libri", "test", "f", "7.250"]
    block = table.split("---- SER results (measured by veilmeter, not by the challenge's tools) ----\n")[1].splitlines()
    assert block[0].split() == [
        "dataset", "split", "trained", "read", "UAR", "ACC_ang", "ACC_hap", "ACC_neu", "ACC_sad"
    ]  # fmt: skip
    assert block[2].split() == ["1", "IEMOCAP", "dev", "original", "anon", "100.000", "-", "-", "100.000", "100.000"]
    write_rows(place / "emotions.csv", rows)
    cells = list(csv.DictReader((place / "emotions.csv").read_text().splitlines()))
    assert (cells[3]["uar"], cells[3]["recall_hap"], cells[3]["recall_sad"]) == ("100.0", "100.0", "")
    for words, said in (({"utility": False}, "utility is not among"), ({"sets": ["libri_test"]}, "add --sets IEMOCAP")):
        measured, problems = measure_emotions(challenge.emotion, replace(settings, **words), **quietly)
        assert not measured
        assert len(problems) == 6
        assert said in problems[0].what


def mixed_2026(place: Path) -> Path:
    """Track 2: both genders in one list whose wrong rows come first, ids with an extension, another language."""
    data = place / "data"
    people = (*vpc.FEMALE, *vpc.MALE)
    tried = vpc.utterances(people, "2", 2)
    right = vpc.key_of(people, tried)
    wrong = "".join(line.replace(" target", " nontarget") + "\n" for line in right.splitlines()[:4])
    for mark in ("", SUFFIX):
        vpc.data_folder(data, "de_test_enrolls", vpc.utterances(people, "1", 2), suffix=mark)
        files = {} if mark else {"trials": (wrong + right).replace("-0001 ", "-0001.wav ")}
        vpc.data_folder(data, "de_test_trials_mixed", tried, suffix=mark, files=files)
        for language in ("german", "french"):
            vpc.data_folder(data, f"train_{language}", vpc.utterances(["7", "8", "9"], language, 2), suffix=mark)
    genders = data / "de_test_enrolls" / "spk2gender"
    genders.write_text(genders.read_text().upper())
    return data


def test_a_folder_of_2026(place: Path) -> None:
    data = mixed_2026(place)
    lost = data / f"de_test_trials_mixed{SUFFIX}" / "wav" / "121-2-0000.wav"
    lost.unlink()
    ran = run("--vpc=data", f"--suffix={SUFFIX}", "--out=out", "--json")
    assert ran.exit_code == 3, ran.output  # a recording has no anonymized copy
    (name,) = json.loads(ran.stdout)["sets"]
    found = results_of(name)
    assert name == "de_test_trials_mixed"
    assert (found["protocol"]["enrolled_speakers"], found["protocol"]["trial_utterances"]) == (6, 11)
    assert found["protocol"]["details"]["key"] == 6 * 11  # each pair once
    warnings = decode(tuple[Finding, ...], found["warnings"])
    assert "trials_contradicted" in [one.code for one in warnings]
    assert warning("listed_utterances_missing", list="trial", count=1) in warnings
    assert found["inputs"]["train_original"]["path"].endswith("data")
    assert found["inputs"]["train_original"]["variant"] == "train_german"
    not_used = [json.loads(line)["path"] for line in Path("out/not_used.jsonl").read_text().splitlines()]
    assert {Path(path).name for path in not_used} == {"train_french", f"train_french{SUFFIX}"}
    assert set(found["attackers"]["ignorant"]["by"]["gender"]) == {"f", "m"}


def test_vectors_that_the_tools_left_are_attackers(place: Path) -> None:
    torch = pytest.importorskip("torch")
    data = mixed_2026(place)
    rng = np.random.default_rng(0)
    voices = {name: rng.standard_normal(5) for name in (*vpc.FEMALE, *vpc.MALE)}
    for folder in (f"de_test_enrolls{SUFFIX}", f"de_test_trials_mixed{SUFFIX}"):
        ids = [line.split() for line in (data / folder.removesuffix(SUFFIX) / "utt2spk").read_text().splitlines()]
        left = place / "exp" / f"asv_anon_track2_10_de{SUFFIX}" / "cosine_out" / "emb_xvect" / folder / "utt-level"
        left.mkdir(parents=True)
        table = np.stack([voices[speaker] + 0.01 * rng.standard_normal(5) for _, speaker in ids]).astype(np.float32)
        torch.save(torch.from_numpy(table), left / "speaker_vectors.pt")
        as_text = sorted(range(len(ids)), key=str)  # as the tools sort their indices
        (left / "id2idx").write_text("".join(f"{ids[i][0]} {i}\n" for i in as_text))
        (left / "idx2spk").write_text("".join(f"{i} {ids[i][1]}\n" for i in as_text))
        (left / "temp1").mkdir()
    ran = run("--vpc=data", "--out=out")  # one variant only: no suffix is needed
    assert ran.exit_code == 0, ran.output
    informed = results_of("de_test_trials_mixed")["attackers"]["informed"]
    assert informed["estimates"]["eer"]["value"] == 0.0
    assert informed["trained_on"]["code"] == "own_extractor_given"
    remarks = decode(tuple[Finding, ...], results_of("de_test_trials_mixed")["remarks"])
    reasons = {str(getattr(one.values.get("given"), "id", "")): one.values.get("reason") for one in remarks}
    (path,) = [given for given in reasons if given.endswith("train_german_mcadams")]
    assert reasons[path] == "no attacker that was run is trained on it"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--vpc=data", "--original=data"], "--original and --vpc exclude each other"),
        (["--vpc=data", "--trials=data/de_test_trials_mixed/trials"], "--trials and --vpc exclude each other"),
        (["--sets=libri_test"], "--sets chooses among the sets of VoicePrivacy data"),
        (["--vpc=data", "--sets=libri_test"], "no set 'libri_test'"),
        (["--vpc=data", "--suffix=_mc"], "no folder of anonymized speech has the suffix '_mc'"),
        (["--vpc=data", "--scores=ignorant=own.py"], "scores and vectors belong to one set"),
        (["--vpc=nowhere"], "no folder of anonymized speech"),
    ],
)
def test_what_is_refused(place: Path, words: list[str], said: str) -> None:
    mixed_2026(place)
    ran = run(*words, "--out=out")
    assert isinstance(ran.exception, InputError)
    assert said in str(ran.exception)


def test_by_toml_and_python(place: Path) -> None:
    mixed_2026(place)
    (place / "settings").mkdir()
    (place / "settings/run.toml").write_text(
        'vpc = "../data"\nattackers = ["ignorant"]\nmeasures = ["scores"]\nlengths = [1]\nintervals = false\n'
        'utility = false\nsegments = 0.55\nextractor = "../own.py:embed"\n'
    )
    ran = CliRunner().invoke(app, ["assess", "settings/run.toml", "--out=out", "--jobs=1", "--quiet"])
    assert ran.exit_code == 0, ran.output
    settings = make_settings({"vpc": "data", "attackers": ["ignorant"], "measures": ["scores"], "lengths": [1],
                              "intervals": False, "utility": False, "segments": 0.55,
                              "extractor": "own.py:embed"})  # fmt: skip
    for left in ("result_for_rank_other", "libri_dev_trials_f/results.json"):
        (place / "again" / left).parent.mkdir(parents=True, exist_ok=True)
        (place / "again" / left).write_text("of an earlier run")
    found = assess_challenge(settings, place / "again")
    assert sorted(path.name for path in (place / "again").glob("result*")) == [
        f"result_for_rank{SUFFIX}", f"result_for_rank{SUFFIX}.csv"
    ]  # fmt: skip
    assert [Path(problem.path).name for problem in found.not_used if problem.kind == "earlier-run"] == [
        "libri_dev_trials_f"
    ]
    (assessment,) = found.sets.values()
    assert found.suffix == SUFFIX
    expected = results_of("de_test_trials_mixed")["attackers"]["ignorant"]["estimates"]["eer"]["value"]
    assert assessment.results.attackers["ignorant"].estimates["eer"].value == expected
    with pytest.raises(InputError, match="call assess_challenge"):
        run_assessment(settings=settings)


def test_verdicts_of_all_sets_come_before_further_work_on_any(place: Path) -> None:
    """Both passes by command: the first ends with a page per set, and the second completes what it left."""
    vpc.challenge_2024(place)
    (place / "other.py").write_text(vpc.EXTRACTOR.replace("[:4096]", "[1:4097]"))
    words = ["assess", "--vpc=data", f"--suffix={SUFFIX}", "--sets=libri_test", *QUICK]
    words += ["--extractor", "own.py:embed", "other.py:embed"]
    first = CliRunner().invoke(app, [*words, "--out=out", "--no-wait"])
    assert first.exit_code == 0, first.output
    names = ("libri_test_trials_f", "libri_test_trials_m")
    for name in names:
        assert results_of(name)["pending"], name
        assert "Preliminary" in Path("out", name, "report.html").read_text()
    later = CliRunner().invoke(app, [*words, "--out=out"])
    assert later.exit_code == 0, later.output
    once = CliRunner().invoke(app, [*words, "--out=once"])
    assert once.exit_code == 0, once.output
    for ran in (later, once):  # verdicts of both sets, then what completes them, then the table
        verdicts = [ran.stdout.index(f"{name} (") for name in names]
        assert ran.stdout.count("First verdict: ") == 2
        assert max(verdicts) < ran.stdout.index("---- ASV_eval")
    for name in names:
        assert not results_of(name)["pending"]
        assert "Preliminary" not in Path("out", name, "report.html").read_text()
        assert Path("out", name, "results.json").read_bytes() == Path("once", name, "results.json").read_bytes()


def test_training_speech_as_distractors(place: Path) -> None:
    """Further enrolled people raise the number to choose from, and change no trial of the challenge."""
    vpc.challenge_2024(place)
    words = ("--vpc=data", f"--suffix={SUFFIX}", "--sets=libri_test", "--attackers=lazy-informed")
    eers = {}
    for out, more in (("out", ()), ("more", (f"--distractors=train-clean-360{SUFFIX}",))):
        ran = run(*words, f"--out={out}", *more)
        assert ran.exit_code == 0, ran.output
        found = json.loads(Path(out, "libri_test_trials_f", "results.json").read_text())
        eers[out] = found["attackers"]["lazy-informed"]["estimates"]["eer"]["value"]
    assert eers["out"] == eers["more"]
    assert found["protocol"]["details"]["distractors"] == 6
    assert found["protocol"]["enrolled_speakers"] == len(vpc.FEMALE) + 6
    curve = found["attackers"]["lazy-informed"]["estimates"]["linkability"]
    assert max(point["speakers"] for point in curve) == len(vpc.FEMALE) + 6
    wrong = run(*words, "--out=wrong", "--distractors=nobody")
    assert isinstance(wrong.exception, InputError)
    assert "--distractors nobody: there is no such folder" in str(wrong.exception)
