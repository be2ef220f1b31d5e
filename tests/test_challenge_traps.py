"""The traps of VoicePrivacy data and its relatives, one test for each, in the order of this table.

| trap | what others do | here |
|---|---|---|
| 1 | trials without a score are skipped | counted and said |
| 2 | utterances without audio shrink a speaker's model | named, each one |
| 3 | an anonymizer's holes surface late | named when the folder is read |
| 4 | folders with `asr` in their name are not completed | read like any other |
| 5 | suffixes are matched at the end of a name, or inside it | matched whole |
| 6 | names are parsed by position | other names are listed as not used |
| 7 | labels other than `target` count as nontarget, tabs break | refused with the line; tabs are white space |
| 8 | the last duplicate key wins | the first holds, and the line is named |
| 9 | paths with blanks and pipes break | read; a pipe is never run |
| 10 | indices are sorted as text | read as numbers |
| 11 | results of earlier runs are used again | scores older than the speech are reported |
| 12 | ids with and without `.wav` | matched, and said |
| 13 | Unicode forms; names that several people share | matched; refused where they are several people's |
| 14 | a missing speaker is replaced by a guess | said, and nobody takes their place |
| 15 | the speaker is taken from a file's name | from utt2spk |
| 16 | the language is guessed from folders above | from the set's name |
| 17 | ids that seem to name a speaker; genders in two cases | utt2spk; both cases |
| 18 | runs write to one place | a folder per set; another variant's table does not stay |
| 19 | durations and segments are copied | measured; segments are used by the keys of wav.scp |
| 20 | SpAnE: two names for the path, stereo is averaged | both names; stereo is refused |
| 21 | importers drop what they can't read | named with its line |
| 22 | fractions and percent; EERs above 50 % | percent, never folded |
"""

from __future__ import annotations

import json
import os
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from tests import challenge_trees as trees

from veilmeter.assessment.challenge.assess import _LeftBeside
from veilmeter.assessment.challenge.table import block_of, sides_of
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Reference, file_reference, warning
from veilmeter.data.corpus import Corpus, read_corpus
from veilmeter.data.formats.vectors import read_embeddings
from veilmeter.data.formats.vpc import Challenge, find_sets, parse, read_trial_list
from veilmeter.data.scores import read_scores
from veilmeter.metrics.scores.eer import eer
from veilmeter.speech.audio import AudioError, read_audio


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The challenge's lists name recordings relative to where its tools run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fatal(corpus: Corpus) -> list[tuple[str, str]]:
    return [(problem.kind, problem.what) for problem in corpus.problems if problem.fatal]


def left_scores(place: Path, lines: str, system: str = "asv_anon_mcadams", suffix: str = "_mcadams") -> Path:
    pair = place / "exp" / system / f"libri_test_enrolls{suffix}-libri_test_trials_f{suffix}"
    pair.mkdir(parents=True)
    (pair / "scores").write_text(lines)
    return pair / "scores"


def set_named(challenge: Challenge, name: str) -> int:
    return [challenge_set.name for challenge_set in challenge.sets].index(name)


def test_1_trials_without_a_score_are_counted(place: Path) -> None:
    data = trees.tree_2024(place)
    listed = read_trial_list(data / "libri_test_trials_f" / "trials")
    pairs = list(zip(listed.speakers, listed.utterances, strict=True))
    scores = left_scores(place, "".join(f"{a} {b} {n / 10}\n" for n, (a, b) in enumerate(pairs[:-3])))
    challenge = find_sets(data, "_mcadams")
    chosen = challenge.sets[set_named(challenge, "libri_test_trials_f")]
    findings = _LeftBeside(data, challenge).findings(chosen)
    counts = {"scores": len(pairs) - 3, "trials": len(pairs)}
    assert warning("scores_and_trials_differ", file=file_reference(scores), **counts) in findings
    with pytest.raises(InputError, match=r"the trial has no score: .*; 3 times"):
        read_scores(scores, data / "libri_test_trials_f" / "trials")


def test_2_utterances_without_audio_are_named(place: Path) -> None:
    data = trees.tree_2024(place)
    scp = data / "libri_test_enrolls" / "wav.scp"
    scp.write_text("".join(scp.read_text().splitlines(keepends=True)[1:]))
    corpus = read_corpus(data, part="libri_test", suffix="")
    assert fatal(corpus) == [("missing-audio", "'1272-128104-0000' has no audio")]


def test_3_holes_of_an_anonymizer_are_named(place: Path) -> None:
    data = trees.tree_2026(place)
    (data / "de_dev_trials_mixed_b2" / "wav" / "10001_8844_000002.wav").unlink()
    corpus = read_corpus(data, part="de_dev", suffix="_b2")
    assert fatal(corpus) == [("missing-audio", "'10001_8844_000002' has no audio")]
    assert len(corpus) == len(read_corpus(data, part="de_dev", suffix="")) - 1


def test_4_a_suffix_that_begins_with_asr(place: Path) -> None:
    data = trees.tree_2024(place, "_asrbn_hifigan")
    challenge = find_sets(data, "_asrbn_hifigan")
    assert len(challenge.sets) == 4
    assert [pair.name for pair in challenge.training] == ["train-clean-360"]
    original, copy = challenge.sets[0].corpora()
    assert [u.id for u in original] == [u.id for u in copy]
    assert {Path(problem.path).name for problem in challenge.problems} >= {"libri_dev_asr", "libri_dev"}


def test_5_suffixes_are_matched_whole(place: Path) -> None:
    data = trees.tree_2024(place, "_a_b")
    with pytest.raises(InputError, match="suffix '_b'"):
        find_sets(data, "_b")
    for suffix in ("_test", "_dev", "_enrolls"):  # found inside plain names
        with pytest.raises(InputError, match="no folder of anonymized speech has the suffix"):
            find_sets(data, suffix)
    assert {u.path.parts[-3] for u in read_corpus(data, part="libri_test", suffix="")} == {
        "libri_test_enrolls", "libri_test_trials_f", "libri_test_trials_m"
    }  # fmt: skip
    trees.data_folder(data, "libri_test_enrolls", {"1272": ["1272-128104-0000"]}, suffix="_b")
    assert [pair.sides[1].suffix for pair in find_sets(data, "_a_b").training] == ["_a_b"]


def test_5_a_suffix_that_is_a_word_of_the_challenges_is_not_dropped_silently(place: Path) -> None:
    """`libri_test_trials_f_common` without lists can't be distinguished from a separate set; a warning says so."""
    data = trees.tree_2024(place)
    for name in ("libri_test_enrolls", "libri_test_trials_f"):
        trees.data_folder(data, name, {"1272": ["1272-128104-0000"]}, suffix="_common")
    said = {Path(problem.path).name for problem in find_sets(data, "_mcadams").problems}
    assert {"libri_test_enrolls_common", "libri_test_trials_f_common"} <= said


def test_6_folders_by_other_names_are_listed(place: Path) -> None:
    data = trees.tree_2024(place)
    trees.data_folder(data, "LibriSpeech-test", {"1": ["1-1-1"]})
    trees.data_folder(data, "libri_test_trials_female", {"1": ["1-1-1"]})
    problems = {Path(problem.path).name: problem.what for problem in find_sets(data, "_mcadams").problems}
    assert "no name that the VoicePrivacy challenges use" in problems["LibriSpeech-test"]
    assert "libri_test_trials_female" in problems


def test_7_labels_tabs_and_duplicates(place: Path) -> None:
    path = place / "trials"
    path.write_text("a\tx\ttarget\na y\tnontarget\na x nontarget\na x nontarget\nb x target\nb x target\n")
    trials = read_trial_list(path)
    assert list(zip(trials.speakers, trials.utterances, trials.is_target, strict=True)) == [
        ("a", "y", False), ("a", "x", False), ("b", "x", True)
    ]  # fmt: skip
    assert (trials.repeated, trials.contradicted) == (1, 1)
    path.write_text("a x target\na y nontarget\na z perhaps\n")
    with pytest.raises(InputError, match=r"trials:3: the label is none of target, nontarget, 1 and 0"):
        read_trial_list(path)


def test_8_of_duplicate_keys_the_first_holds_and_the_line_is_named(place: Path) -> None:
    data = trees.tree_2024(place)
    who = data / "libri_test_enrolls" / "utt2spk"
    who.write_text(who.read_text() + "1272-128104-0000 9999\n")
    corpus = read_corpus(data, part="libri_test", suffix="")
    assert corpus.by_id["1272-128104-0000"].speaker == "1272"
    (problem,) = [problem for problem in corpus.problems if problem.fatal]
    assert (problem.kind, problem.line) == ("duplicate-id", 7)
    # One id in two sets (the lists of dev and test share them here) is reported, not merged.
    both = read_corpus(data, suffix="")
    assert len([kind for kind, _ in fatal(both) if kind == "duplicate-id"]) == 1 + 14
    alone = {"7": ["7-1-1"]}  # the utterance of a spk2utt with one utterance is not read as a list of letters
    trees.data_folder(data, "train-clean-100", alone)
    assert [u.id for u in read_corpus(data, part="train-clean-100")] == ["7-1-1"]


def test_9_paths_with_blanks_and_pipes(place: Path) -> None:
    data = trees.tree_2024(place)
    assert len(read_corpus(data, part="train-clean-360", suffix="")) == 3  # by `flac -c -d -s FILE |`
    enrolls = data / "libri_test_enrolls"
    spoken = [line.split()[0] for line in (enrolls / "utt2spk").read_text().splitlines()]
    (enrolls / "wav").rename(enrolls / "two words")
    (enrolls / "wav.scp").write_text(
        "".join(f"{u} data/libri_test_enrolls/two words/{u}.wav\n" for u in spoken[1:])
        + f"{spoken[0]} sox data/libri_test_enrolls/wav/x.wav -t wav - |\n"
    )
    corpus = read_corpus(enrolls)
    assert [u.id for u in corpus] == spoken[1:]
    assert [kind for kind, _ in fatal(corpus)] == ["pipe"]


def test_10_indices_are_numbers(place: Path) -> None:
    torch = pytest.importorskip("torch")
    table = np.arange(24, dtype=np.float32).reshape(12, 2)
    torch.save(torch.from_numpy(table), place / "speaker_vectors.pt")
    as_text = sorted(range(12), key=str)
    (place / "id2idx").write_text("".join(f"u{i:02d} {i}\n" for i in as_text))
    (place / "idx2spk").write_text("".join(f"{i} s{i // 6}\n" for i in as_text))
    embeddings = read_embeddings(place)
    for name, speaker, vector in zip(embeddings.utterances, embeddings.speakers, embeddings.vectors, strict=True):
        number = int(name[1:])
        assert speaker == f"s{number // 6}"
        np.testing.assert_array_equal(vector, table[number])


def test_11_scores_that_are_older_than_the_speech_are_said(place: Path) -> None:
    data = trees.tree_2024(place)
    key = (data / "libri_test_trials_f" / "trials").read_text()
    scores = left_scores(place, "".join(" ".join([*line.split()[:2], "0.5"]) + "\n" for line in key.splitlines()))
    os.utime(scores, (1, 1))
    challenge = find_sets(data, "_mcadams")
    chosen = challenge.sets[set_named(challenge, "libri_test_trials_f")]
    older = warning("scores_older_than_speech", file=file_reference(scores))
    assert _LeftBeside(data, challenge).findings(chosen) == [older]
    os.utime(scores)
    assert _LeftBeside(data, challenge).findings(chosen) == []


def test_11_a_wav_scp_of_another_machine_gives_way_to_the_recordings(place: Path) -> None:
    data = trees.tree_2024(place)
    copy = data / "libri_test_trials_f_mcadams"
    spoken = sorted(path.stem for path in (copy / "wav").iterdir())
    (copy / "wav.scp").write_text("".join(f"{u} /home/somebody/wav/{u}.wav\n" for u in spoken))
    corpus = read_corpus(data, part="libri_test_trials_f", suffix="_mcadams")
    assert [u.id for u in corpus] == spoken
    assert [problem.kind for problem in corpus.problems] == ["stale-list"]
    elsewhere = place / "elsewhere"  # but a list that names recordings elsewhere, which are there, holds
    (copy / "wav").rename(elsewhere)
    (copy / "wav").mkdir()
    (copy / "wav.scp").write_text("".join(f"{u} {elsewhere}/{u}.wav\n" for u in spoken))
    assert {u.path.parent for u in read_corpus(data, part="libri_test_trials_f", suffix="_mcadams")} == {elsewhere}


def test_12_ids_with_an_extension_in_some_lists(place: Path) -> None:
    data = trees.tree_2026(place)
    for name in ("cn_test_enrolls", "cn_test_trials_mixed"):
        for file in ("utt2spk", "text", "trials"):
            path = data / name / file
            if path.is_file():
                words = [line.split() for line in path.read_text().splitlines()]
                at = 1 if file == "trials" else 0
                lines = [" ".join([*w[:at], f"{w[at]}.wav", *w[at + 1 :]]) for w in words]
                path.write_text("".join(f"{line}\n" for line in lines))
    challenge = find_sets(data, "_b2", ["cn_test"])
    original, copy = challenge.sets[0].corpora()
    assert [u.id for u in original] == [u.id for u in copy]
    assert original.by_id["SSB00090000"].text
    protocol = challenge.sets[0].protocol(original)
    assert len(protocol.key) == 3 * 8
    assert len(protocol.enrollment) == 6
    assert ("ids_matched", "form") in [(found.code, found.values["way"]) for found in protocol.findings]


def test_13_unicode_forms_and_names_that_several_people_share(place: Path) -> None:
    data = trees.tree_2026(place)
    wide = data / "ja_test_trials_mixed_b2" / "wav"
    for path in wide.iterdir():
        path.rename(wide / path.name.replace("VOICEACTRESS100_002", "ＶＯＩＣＥＡＣＴＲＥＳＳ１００_002"))
    corpus = read_corpus(data, part="ja_test", suffix="_b2")
    assert not fatal(corpus)
    assert len(corpus) == len(read_corpus(data, part="ja_test", suffix=""))
    for path in sorted(wide.iterdir()):  # copies without `jvs001_`: everybody reads the same sentences
        speaker, _, name = unicodedata.normalize("NFKC", path.name).partition("_")
        (wide / speaker).mkdir(exist_ok=True)
        path.rename(wide / speaker / name)
    broken = read_corpus(data, part="ja_test", suffix="_b2")
    assert not any(u.attributes["role"].startswith("trials") for u in broken)
    assert {"duplicate-id", "missing-audio"} <= {kind for kind, _ in fatal(broken)}


def test_14_nobody_takes_the_place_of_a_speaker_who_is_not_enrolled(place: Path) -> None:
    data = trees.tree_2026(place)
    for file in ("wav.scp", "utt2spk"):
        path = data / "de_test_enrolls" / file
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith("10002_")))
    chosen = find_sets(data, "_b2", ["de_test"]).sets[0]
    protocol = chosen.protocol(chosen.corpora()[0])
    assert {utterance.split("_")[0] for utterance in protocol.enrollment} == {"10001", "10003"}
    lost = {found.code: found.values for found in protocol.findings}["trial_speakers_without_enrollment"]
    assert (lost["count"], lost["example"]) == (1, Reference("speaker", "10002"))


def test_15_speakers_are_those_of_utt2spk(place: Path) -> None:
    data = trees.tree_2024(place)
    who = data / "train-clean-360" / "utt2spk"
    who.write_text("100-121669-0000 somebody\n100-121669-0001 somebody\n101-121669-0000 else\n")
    assert read_corpus(data, part="train-clean-360", suffix="_mcadams").speakers == ("else", "somebody")


def test_16_the_language_is_that_of_the_set(place: Path) -> None:
    data = trees.tree_2026(place / "es" / "cn")
    os.chdir(place / "es" / "cn")
    languages = {name: read_corpus(data, part=f"{name}_test", suffix="").languages for name in trees.LANGUAGES}
    assert languages == {name: ("zh",) if name == "cn" else (name,) for name in trees.LANGUAGES}
    assert parse(data / "libri_test_trials_mixed").language == "en"  # type: ignore[union-attr]
    assert parse(data / "train_spanish_b2").language == "es"  # type: ignore[union-attr]


def test_17_emotions_have_the_speakers_of_their_list_and_genders_have_two_cases(place: Path) -> None:
    data = trees.tree_2026(place)
    emotional = read_corpus(data, part="IEMOCAP_test", suffix="_b2")
    assert emotional.speakers == ("1", "2", "3")  # every id begins with Ses01F
    assert {u.attributes["emotion"] for u in emotional} == {"neu", "sad"}
    for part in ("libri_test", "de_test"):  # f and m, F and M
        assert set(read_corpus(data, part=part, suffix="").genders.values()) == {"f", "m"}


def test_18_what_a_block_of_the_table_holds_is_in_its_rows(place: Path) -> None:
    """`ASV_eval results` is of original speech in 2024 and of anonymized in 2026, in one place: here the columns tell.
    That sets have folders of their own, and that no table of another variant stays, is tested with assess --vpc."""
    assert block_of("original") == block_of("lazy-informed") == "ASV_eval"
    assert (sides_of("original"), sides_of("lazy-informed")) == (("original", "original"), ("anon", "anon"))
    data = trees.tree_2026(place)
    names = [challenge_set.name for challenge_set in find_sets(data, "_b2").sets]
    assert len(names) == len(set(names)) == 14


def test_19_segments_that_were_copied_beside_single_files(place: Path) -> None:
    data = trees.tree_2024(place)
    enrolls = data / "libri_test_enrolls"
    spoken = [line.split()[0] for line in (enrolls / "utt2spk").read_text().splitlines()]
    (enrolls / "segments").write_text("".join(f"{u} call 0.98 11.56\n" for u in spoken))
    for suffix in ("", "_mcadams"):
        corpus = read_corpus(data, part="libri_test", suffix=suffix)
        assert [(u.start, u.end) for u in corpus if u.id in spoken] == [(0.0, None)] * len(spoken)
        assert "not-used" in {problem.kind for problem in corpus.problems}


@pytest.mark.parametrize("name", ["path", "audio_filepath"])
def test_20_spane_by_either_name_and_never_mixed(place: Path, name: str) -> None:
    soundfile = pytest.importorskip("soundfile")
    (place / "speech").mkdir()
    for number in range(2):
        voices = np.random.default_rng(number).uniform(-0.5, 0.5, (16000, 2))
        soundfile.write(place / "speech" / f"{number}.wav", voices, 16000)
    lines = [
        {name: f"{{root}}/speech/{number}.wav", "label": str(number), "gender": "M", "duration": 1.0}
        for number in range(2)
    ]
    (place / "data.txt").write_text("".join(json.dumps(line) + "\n" for line in lines))
    corpus = read_corpus(place / "data.txt", roots=[place])
    assert [(u.id, u.speaker, u.gender) for u in corpus] == [("speech/0", "0", "m"), ("speech/1", "1", "m")]
    with pytest.raises(AudioError, match="never mixed unasked"):
        read_audio(corpus.utterances[0].path)


def test_21_what_an_importer_would_drop_is_named_with_its_line(place: Path) -> None:
    recordings = [{"id": f"r{n}", "sources": [{"type": "file", "channels": [0], "source": f"r{n}.wav"}],
                   "sampling_rate": 8000, "num_samples": 80000, "duration": 10.0} for n in range(3)]  # fmt: skip
    supervisions = [{"id": f"s{n}", "recording_id": f"r{n}", "start": 0, "duration": 10.0, "speaker": f"p{n}"}
                    for n in range(4)]  # fmt: skip
    for kind, lines in (("recordings", recordings), ("supervisions", supervisions)):
        (place / f"{kind}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for number in (0, 2):
        (place / f"r{number}.wav").write_bytes(b"audio")
    corpus = read_corpus(place)
    assert [u.id for u in corpus] == ["s0", "s2"]
    assert [(p.kind, p.line) for p in corpus.problems] == [("missing-audio", 2), ("missing-audio", 4)]


def test_22_eers_are_percent_and_never_folded() -> None:
    targets, impostors = np.arange(10.0), np.arange(10.0) + 6.5
    assert eer(targets, impostors, "speechbrain") == 80.0
    assert eer(impostors, targets, "speechbrain") == 20.0


def test_every_folder_of_the_challenges_is_assessed_or_said(place: Path) -> None:
    """Whatever lies there is part of a set, of its training or emotions, or listed as not used."""
    trees_and_sets = (
        (trees.tree_2024, "_mcadams", 4), (trees.tree_2026, "_b2", 14), (trees.tree_2020, "_anon", 4 + 12 + 2)
    )  # fmt: skip
    for number, (tree, suffix, sets) in enumerate(trees_and_sets):
        os.makedirs(place / str(number))
        data = tree(place / str(number), suffix)
        challenge = find_sets(data, suffix)
        assert len(challenge.sets) == sets
        pairs = [pair for chosen in challenge.sets for pair in (chosen.enrollment, chosen.trials)]
        used = {side.path for pair in (*pairs, *challenge.training, *challenge.emotion) for side in pair.sides}
        assert used | {Path(problem.path) for problem in challenge.problems} == set(data.iterdir())
        for chosen in challenge.sets:
            original, copy = chosen.corpora([data.parent])
            assert not fatal(original)
            assert not fatal(copy)
            assert {u.id: u.speaker for u in original} == {u.id: u.speaker for u in copy}
            assert all(suffix in u.path.parts[-3] for u in copy)
            assert chosen.protocol(original).key
