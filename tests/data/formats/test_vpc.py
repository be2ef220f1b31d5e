"""VoicePrivacy data as they lie on disk: folders of 2020 to 2026, copies that hold only audio, lists with quirks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmeter.core.errors import InputError
from veilmeter.data.corpus import read_corpus
from veilmeter.data.formats.vectors import read_embeddings
from veilmeter.data.formats.vpc import find_scores, find_sets, parse, read_trial_list


def folder(
    root: Path, name: str, people: Mapping[str, Sequence[str]], *, lists: bool = True, wav: bool = True, **more: str
) -> Path:
    """A data folder: speaker to utterances. `more` are further files by name (`_` for `.`)."""
    place = root / name
    place.mkdir(parents=True)
    utterances = [(utterance, speaker) for speaker, group in people.items() for utterance in group]
    if wav:
        (place / "wav").mkdir()
        for utterance, _ in utterances:
            (place / "wav" / f"{utterance}.wav").write_bytes(name.encode())
    if lists:
        (place / "utt2spk").write_text("".join(f"{u} {s}\n" for u, s in utterances))
        (place / "spk2gender").write_text("".join(f"{s} {'F' if int(s) % 2 else 'M'}\n" for s in people))
        (place / "wav.scp").write_text("".join(f"{u} {place}/wav/{u}.wav\n" for u, _ in utterances))
    for file, text in more.items():
        (place / file).write_text(text)
    return place


ENROLLS = {"1": ["1-1-1", "1-1-2"], "2": ["2-1-1"]}
TRIALS_F, TRIALS_M = {"1": ["1-2-1"], "3": ["3-2-1"]}, {"2": ["2-2-1"]}
KEY_F = "1 1-2-1 target\n1 3-2-1 nontarget\n"
KEY_M = "2 2-2-1 target\n"


def challenge_2024(root: Path, suffix: str = "_mcadams", *, lists: bool = False) -> Path:
    data = root / "data"
    for s, with_lists in (("", True), (suffix, lists)):
        folder(data, f"libri_test_enrolls{s}", ENROLLS, lists=with_lists)
        folder(data, f"libri_test_trials_f{s}", TRIALS_F, lists=with_lists, **({} if s else {"trials": KEY_F}))
        folder(data, f"libri_test_trials_m{s}", TRIALS_M, lists=with_lists, **({} if s else {"trials": KEY_M}))
        folder(data, f"IEMOCAP_dev{s}", {"5": ["Ses01F_impro01_F000"]}, lists=with_lists,
               utt2emo="Ses01F_impro01_F000 neu\n")  # fmt: skip
        folder(data, f"train-clean-360{s}", {"7": ["7-1-1"]}, lists=with_lists)
    return data


def test_copies_with_nothing_but_audio(tmp_path: Path) -> None:
    data = challenge_2024(tmp_path)
    assert not (data / "libri_test_enrolls_mcadams" / "utt2spk").exists()
    original, copy = read_corpus(data, suffix=""), read_corpus(tmp_path, suffix="_mcadams")
    assert [(u.id, u.speaker, u.gender) for u in copy] == [(u.id, u.speaker, u.gender) for u in original]
    assert all("_mcadams" in str(u.path) for u in copy)
    assert {p.kind for p in original.problems} == {"not-used"}
    assert {Path(p.path).name for p in original.problems} == {"IEMOCAP_dev", "train-clean-360"}


def test_a_missing_copy_is_said_and_an_extra_one_too(tmp_path: Path) -> None:
    data = challenge_2024(tmp_path)
    copies = data / "libri_test_trials_f_mcadams" / "wav"
    (copies / "1-2-1.wav").rename(copies / "9-9-9.wav")
    corpus = read_corpus(data, suffix="_mcadams")
    assert "1-2-1" not in corpus.by_id
    said = {p.kind: p for p in corpus.problems if p.fatal}
    assert "'1-2-1' has no audio" in said["missing-audio"].what
    assert "'9-9-9' is not in utt2spk" in said["no-speaker"].what


def test_a_copied_wav_scp_never_gives_the_original_as_anonymized(tmp_path: Path) -> None:
    data = challenge_2024(tmp_path)
    for name in ("libri_test_enrolls", "libri_test_trials_f"):
        (data / f"{name}_mcadams" / "wav.scp").write_text((data / name / "wav.scp").read_text())
    corpus = read_corpus(data, suffix="_mcadams")
    assert all("_mcadams" in str(u.path) for u in corpus)
    assert "stale-list" in {p.kind for p in corpus.problems}
    wav = data / "libri_test_enrolls_mcadams" / "wav"
    for path in wav.iterdir():
        path.unlink()
    wav.rmdir()
    with pytest.raises(InputError, match="names the recordings of the original folder"):
        read_corpus(data, suffix="_mcadams")


def test_emotions_training_and_other_sets_by_name(tmp_path: Path) -> None:
    data = challenge_2024(tmp_path)
    emotional = read_corpus(data, part="IEMOCAP_dev", suffix="")
    assert [u.attributes["emotion"] for u in emotional] == ["neu"]
    assert read_corpus(data, part="train-clean-360", suffix="_mcadams").speakers == ("7",)
    with pytest.raises(InputError, match="no data set 'nonsense'"):
        read_corpus(data, part="nonsense")


def test_the_challenge_of_2026(tmp_path: Path) -> None:
    for s in ("", "_b2"):
        for language in ("en", "de", "cn"):
            folder(tmp_path, f"{language}_dev_enrolls{s}", ENROLLS, lists=not s)
            both = {**TRIALS_F, **TRIALS_M}
            key = "".join(f"{who} {u} {'target' if who == s2 else 'nontarget'}\n"
                          for who in ENROLLS for s2, group in both.items() for u in group)  # fmt: skip
            folder(tmp_path, f"{language}_dev_trials_mixed{s}", both, lists=not s, **({} if s else {"trials": key}))
        folder(tmp_path, f"train_german{s}", {"8": ["8_1_1"]}, lists=not s)
    corpus = read_corpus(tmp_path, part="de_dev", suffix="")
    assert len(corpus) == 6
    assert corpus.languages == ("de",)
    assert read_corpus(tmp_path, part="cn_dev", suffix="").languages == ("zh",)
    challenge = find_sets(tmp_path, "_b2")
    assert [(one.set, one.gender) for one in challenge.sets] == [(f"{x}_dev", "mixed") for x in ("cn", "de", "en")]
    assert [pair.name for pair in challenge.training] == ["train_german"]
    protocol = challenge.sets[1].protocol(challenge.sets[1].corpora()[0])
    assert protocol.enrollment == ("1-1-1", "1-1-2", "2-1-1")
    assert sum(is_target for _, _, is_target in protocol.key) == 2
    assert len(protocol.key) == 6
    assert protocol.findings == ()


def test_sets_of_2024_with_what_is_not_used(tmp_path: Path) -> None:
    data = challenge_2024(tmp_path)
    folder(data, "libri_test_enrolls_a_mcadams", ENROLLS)
    folder(data, "libri_test_asr", TRIALS_F)
    folder(data, "libri_dev_enrolls", ENROLLS)
    folder(data, "libri_dev_trials_f", TRIALS_F, trials=KEY_F)
    challenge = find_sets(data, "_mcadams")
    assert [one.name for one in challenge.sets] == ["libri_test_trials_f", "libri_test_trials_m"]
    assert [pair.name for pair in challenge.training] == ["train-clean-360"]
    assert [pair.name for pair in challenge.emotion] == ["IEMOCAP_dev"]
    said = {Path(p.path).name: p for p in challenge.problems}
    assert {"libri_test_enrolls_a_mcadams", "libri_test_asr", "libri_dev_trials_f"} <= set(said)
    assert not said["libri_dev_trials_f"].fatal
    folder(data, "libri_dev_trials_f_mcadams", TRIALS_F, lists=False)
    assert [p.what for p in find_sets(data, "_mcadams").problems if p.fatal] == [
        "libri_dev_trials_f can't be assessed: no folder libri_dev_enrolls_mcadams"
    ]
    original, copy = challenge.sets[0].corpora()
    assert [u.id for u in original] == [u.id for u in copy] == ["1-1-1", "1-1-2", "1-2-1", "2-1-1", "3-2-1"]
    assert find_sets(data, "_mcadams", ["libri_test_trials_m"]).sets[0].gender == "m"
    with pytest.raises(InputError, match="no set 'vctk_test'"):
        find_sets(data, "_mcadams", ["vctk_test"])
    with pytest.raises(InputError, match=r"suffix '_b'"):
        find_sets(data, "_b")  # `_b` is not the end of `_a_b`


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("libri_test_trials_f_anon", ("libri_test", "trials_f", "_anon")),
        ("libri_dev_asrbn_hifigan", ("libri_dev", "", "_asrbn_hifigan")),
        ("libri_dev_asr_mcadams", ("libri_dev", "asr", "_mcadams")),
        ("vctk_test_trials_m_common_mic2_anon", ("vctk_test", "trials_m_common_mic2", "_anon")),
        ("vctk_dev_trials_f_all", ("vctk_dev", "trials_f_all", "")),
        ("emodata_track2_test_x", ("emodata_track2_test", "emotion", "_x")),
        ("train-clean-360-asv_anon", ("train-clean-360-asv", "train", "_anon")),
        ("train_english_ssl_b1", ("train_english", "train", "_ssl_b1")),
        ("ja_test_trials_mixed", ("ja_test", "trials_mixed", "")),
        ("libri_test_trials_fancy", None),
        ("results", None),
    ],
)
def test_names_of_folders(name: str, expected: tuple[str, str, str] | None) -> None:
    found = parse(Path(name))
    assert (found and (found.set, found.role, found.suffix)) == expected


def test_ids_with_and_without_an_extension(tmp_path: Path) -> None:
    place = folder(tmp_path, "cn_dev_enrolls", ENROLLS, lists=False)
    (place / "utt2spk").write_text("1-1-1.wav 1\n1-1-2.wav 1\n2-1-1.wav 2\n")
    (place / "text").write_text("1-1-1.wav hello\n")
    corpus = read_corpus(tmp_path)
    assert [(u.id, u.speaker) for u in corpus] == [("1-1-1", "1"), ("1-1-2", "1"), ("2-1-1", "2")]
    assert corpus.by_id["1-1-1"].text == "hello"
    (remark,) = corpus.problems
    assert (remark.kind, remark.what[:31]) == ("other-ids", "3 ids are written differently i")


def test_flac_pipes_name_a_file_and_others_are_refused(tmp_path: Path) -> None:
    place = folder(tmp_path, "train-clean-360", {"7": ["7-1-1", "7-1-2"]})
    (place / "wav.scp").write_text(f"7-1-1 flac -c -d -s {place}/wav/7-1-1.wav |\n7-1-2 flac -c -d x; touch y |\n")
    corpus = read_corpus(place)
    assert [u.id for u in corpus] == ["7-1-1"]
    assert [p.kind for p in corpus.problems] == ["pipe"]


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xyz"), st.booleans()), min_size=1, max_size=30))
def test_trials_as_the_scorer_reads_them(
    tmp_path_factory: pytest.TempPathFactory, lines: list[tuple[str, str, bool]]
) -> None:
    """Against the plain reading: a dictionary, whose last entry per key holds."""
    if len({label for _, _, label in lines}) == 1:
        lines = [*lines, ("c", "x", not lines[0][2])]
    path = tmp_path_factory.mktemp("trials") / "trials"
    path.write_text("".join(f"{a} {b} {'target' if label else 'nontarget'}\n" for a, b, label in lines))
    expected = {(a, b): label for a, b, label in lines}
    found = read_trial_list(path)
    assert dict(zip(zip(found.speakers, found.utterances, strict=True), found.is_target, strict=True)) == expected
    seen = {pair: {label for a, b, label in lines if (a, b) == pair} for pair in expected}
    both = {pair for pair, labels in seen.items() if len(labels) == 2}
    assert found.contradicted == len(both)
    assert found.repeated == sum((a, b) not in both for a, b, _ in lines) - len(expected.keys() - both)
    assert bool(found.findings) == bool(found.repeated or found.contradicted)


def test_scores_of_the_challenges_tools(tmp_path: Path) -> None:
    exp = tmp_path / "exp"
    pairs = {
        "asv_anon_b2/libri_dev_enrolls-libri_dev_trials_f": None,
        "asv_anon_b2/libri_dev_enrolls-libri_dev_trials_f_b2": None,
        "asv_anon_b3/libri_dev_enrolls_b2-libri_dev_trials_f_b2": None,
        "asv_orig/libri_dev_enrolls-libri_dev_trials_f": "original",
        "asv_orig/libri_dev_enrolls-libri_dev_trials_f_b2": "ignorant",
        "asv_orig/libri_dev_enrolls_b2-libri_dev_trials_f_b2": "lazy-informed",
        "asv_anon_b2/libri_dev_enrolls_b2-libri_dev_trials_f_b2": "semi-informed",
        "asv_anon_b3/cosine_out/libri_dev_enrolls_b3-libri_dev_trials_f_b3": "semi-informed",
    }
    for name in pairs:
        (exp / name).mkdir(parents=True)
        (exp / name / "scores").write_text("1 1-2-1 0.5\n")
    (exp / "asv_orig" / "results").mkdir()
    (exp / "asv_orig" / "results" / "scores").write_text("")
    found = {file.path.parent.relative_to(exp).as_posix(): file.attacker for file in find_scores(exp)}
    assert found == pairs
    assert {file.trials.suffix for file in find_scores(exp, "_b2")} == {"", "_b2"}


def vectors(place: Path, *, strided: bool = False) -> np.ndarray:
    torch = pytest.importorskip("torch")
    place.mkdir()
    table = np.arange(12 * 3, dtype=np.float32).reshape(12, 3) + 1
    tensor = torch.ones(1).expand(10**6, 10**3) if strided else torch.from_numpy(table)
    torch.save(tensor, place / "speaker_vectors.pt")
    # Sorted as text, as the tools do it.
    (place / "id2idx").write_text("".join(f"u{i} {i}\n" for i in sorted(range(12), key=str)))
    (place / "idx2spk").write_text("".join(f"{i} s{i % 4}\n" for i in sorted(range(12), key=str)))
    (place / "spk2gender").write_text("s0 F\ns1 m\n")
    return table


def test_vectors_of_the_challenges_tools(tmp_path: Path) -> None:
    table = vectors(tmp_path / "utt-level")
    found = read_embeddings(tmp_path / "utt-level")
    assert list(found.utterances) == [f"u{i}" for i in range(12)]
    assert list(found.speakers) == [f"s{i % 4}" for i in range(12)]
    np.testing.assert_array_equal(found.vectors, table)
    assert list(found.attributes["gender"][:3]) == ["f", "m", ""]
    (tmp_path / "utt-level" / "id2idx").write_text("u0 0\nu1 12\n")
    with pytest.raises(InputError, match="not an index of the 12 vectors: '12'"):
        read_embeddings(tmp_path / "utt-level")


def test_tensors_that_are_code_or_claim_too_much(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    vectors(tmp_path / "big", strided=True)
    with pytest.raises(InputError, match="more vectors than the file holds"):
        read_embeddings(tmp_path / "big")
    vectors(tmp_path / "code")
    torch.save({"f": print}, tmp_path / "code" / "speaker_vectors.pt")
    with pytest.raises(InputError, match="not a tensor that can be loaded safely"):
        read_embeddings(tmp_path / "code")
