"""Corpora: each layout recognized and read, pairs matched by id, and no way out of the root."""

from __future__ import annotations

import os
import pickle
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.data.corpus import Corpus, clean_id, read_corpus
from veilmeter.data.matching import match_ids


def put(root: Path, *names: str) -> None:
    """Files whose content does not matter: a corpus is read without opening its audio."""
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def kinds(corpus: Corpus) -> list[str]:
    return [problem.kind for problem in corpus.problems]


def test_folder_per_speaker(tmp_path: Path) -> None:
    put(tmp_path, "anna/1.wav", "anna/day 2/2.FLAC", "bert/1.mp3", "bert/.hidden.wav", "bert/notes.txt", ".git/x.wav")
    corpus = read_corpus(tmp_path)
    assert corpus.layout == "folder"
    assert [(u.id, u.speaker) for u in corpus] == [("anna/1", "anna"), ("anna/day_2/2", "anna"), ("bert/1", "bert")]
    assert corpus.speakers == ("anna", "bert")
    assert corpus.utterances[1].path == tmp_path / "anna" / "day 2" / "2.FLAC"
    assert corpus.problems == ()
    assert pickle.loads(pickle.dumps(corpus)).utterances == corpus.utterances


def test_a_recording_in_two_formats_is_used_once(tmp_path: Path) -> None:
    put(tmp_path, "anna/1.wav", "anna/1.flac", "anna/2.wav", "stray.wav")
    corpus = read_corpus(tmp_path)
    assert [u.path.name for u in corpus] == ["1.flac", "2.wav"]
    assert sorted(kinds(corpus)) == ["duplicate-id", "no-speaker"]


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("61-70968-0000.flac", ""),
        ("61/61-70968-0000.wav", ""),
        ("test-clean/61/70968/61-70968-0000.flac", "test-clean"),
    ],
)
def test_librispeech_however_nested(tmp_path: Path, name: str, part: str) -> None:
    put(tmp_path, name)
    (tmp_path / "SPEAKERS.TXT").write_text(
        "; comment\n61   | M | test-clean | 8.1 | A | B\n121 | F | test-clean | 8 | C\n"
    )
    corpus = read_corpus(tmp_path)
    assert corpus.layout == "librispeech"
    (found,) = corpus
    assert (found.id, found.speaker, found.gender, found.session) == ("61-70968-0000", "61", "m", "61-70968")
    assert found.attributes.get("part", "") == part


def test_one_part_of_librispeech(tmp_path: Path) -> None:
    put(tmp_path, "test-clean/61/70968/61-70968-0000.flac", "dev-clean/84/121123/84-121123-0000.flac")
    assert [u.speaker for u in read_corpus(tmp_path, part="dev-clean")] == ["84"]
    assert [u.speaker for u in read_corpus(tmp_path / "test-clean")] == ["61"]
    assert len(read_corpus(tmp_path)) == 2


def test_real_librispeech(librispeech: Path) -> None:
    test = read_corpus(librispeech / "test-other-10x10")
    assert (test.layout, len(test), len(test.speakers)) == ("librispeech", 100, 10)
    assert set(test.genders.values()) == {"f", "m"}
    train = read_corpus(librispeech / "train-clean-100-251x1")
    assert (train.layout, len(train), len(train.speakers)) == ("librispeech", 251, 251)


def test_vctk_takes_one_microphone(tmp_path: Path) -> None:
    base = "wav48_silence_trimmed"
    put(
        tmp_path,
        f"{base}/p225/p225_001_mic1.flac",
        f"{base}/p225/p225_001_mic2.flac",
        f"{base}/p315/p315_003_mic1.flac",
    )
    (tmp_path / "speaker-info.txt").write_text(
        "ID  AGE  GENDER  ACCENTS  REGION COMMENTS\np225  23  F    English    Southern  England\np315 18 M American\n"
    )
    corpus = read_corpus(tmp_path)
    assert corpus.layout == "vctk"
    assert [u.id for u in corpus] == ["p225_001_mic2", "p315_003_mic1"]
    assert corpus.utterances[0].gender == "f"
    assert corpus.utterances[0].attributes == {"age": "23", "accent": "English", "microphone": "mic2"}
    assert [u.id for u in read_corpus(tmp_path, part="mic1")] == ["p225_001_mic1", "p315_003_mic1"]
    with pytest.raises(InputError, match="mic1 or mic2"):
        read_corpus(tmp_path, part="mic3")


def test_old_vctk_leaves_the_p_away(tmp_path: Path) -> None:
    put(tmp_path, "wav48/p225/p225_001.wav")
    (tmp_path / "speaker-info.txt").write_text("ID  AGE  GENDER  ACCENTS  REGION\n225  23  F    English    Southern\n")
    assert read_corpus(tmp_path).utterances[0].gender == "f"


def common_voice(folder: Path, lines: str) -> None:
    put(folder, "clips/a_1.mp3", "clips/a_2.mp3", "clips/a_3.mp3")
    folder.joinpath("validated.tsv").write_text("client_id\tpath\tsentence\tage\tgender\taccents\n" + lines)


def test_common_voice_without_quoting(tmp_path: Path) -> None:
    common_voice(
        tmp_path / "de", 'c1\ta_1.mp3\t"Er sagte\t\tmale_masculine\tSwiss\nc2\ta_2.mp3\tx"y\ttwenties\tfemale\t\n'
    )
    corpus = read_corpus(tmp_path)
    assert corpus.layout == "commonvoice"
    assert [(u.id, u.speaker, u.gender) for u in corpus] == [("a_1", "c1", "m"), ("a_2", "c2", "f")]
    assert corpus.utterances[0].attributes == {"accent": "Swiss", "part": "validated"}
    common_voice(tmp_path / "fr", "c1\ta_1.mp3\t\t\t\t\n")
    with pytest.raises(InputError, match="several languages: de, fr"):
        read_corpus(tmp_path)


def test_common_voice_as_it_is_unpacked(tmp_path: Path) -> None:
    release = tmp_path / "cv-corpus-17.0-2024-03-15"
    put(release / "en" / "clips", "a.mp3")
    (release / "en" / "test.tsv").write_text("client_id\tpath\nx\ta.mp3\n")
    for root in (tmp_path, release, release / "en"):
        corpus = read_corpus(root)
        assert (corpus.layout, corpus.speakers) == ("commonvoice", ("x",))
    put(release / "de" / "clips", "b.mp3")
    (release / "de" / "test.tsv").write_text("client_id\tpath\nx\tb.mp3\n")
    with pytest.raises(InputError, match="several languages: de, en"):
        read_corpus(tmp_path)


def test_common_voice_clips_stay_in_their_folder(tmp_path: Path) -> None:
    put(tmp_path, "secret.mp3")
    common_voice(tmp_path / "de", "c1\t../../secret.mp3\t\t\t\t\nc1\tgone.mp3\t\t\t\t\nc1\ta_1.mp3\t\t\t\t\nc2\n")
    (tmp_path / "de" / "clips" / "link.mp3").symlink_to(tmp_path / "secret.mp3")
    with open(tmp_path / "de" / "validated.tsv", "a") as out:
        out.write("c3\tlink.mp3\t\t\t\t\n")
    corpus = read_corpus(tmp_path / "de")
    assert [u.id for u in corpus] == ["a_1"]
    assert kinds(corpus) == ["missing-audio", "missing-audio", "bad-line", "missing-audio"]
    assert corpus.problems[0].line == 2


def kaldi(folder: Path, scp: str, speakers: str = "u1 s1\nu2 s1\nu3 s2\n") -> None:
    put(folder, "wav/u1.wav", "wav/u2.wav", "wav/u3.wav")
    (folder / "wav.scp").write_text(scp)
    (folder / "utt2spk").write_text(speakers)
    (folder / "spk2gender").write_text("s1 f\ns2 m\n")


def test_kaldi_data_folder(tmp_path: Path) -> None:
    data = tmp_path / "exp" / "data" / "test"
    kaldi(data, f"u1 {data}/wav/u1.wav\nu2 wav/u2.wav\nu3 data/test/wav/u3.wav\n")
    corpus = read_corpus(data)
    assert corpus.layout == "kaldi"
    assert [(u.id, u.speaker, u.gender) for u in corpus] == [("u1", "s1", "f"), ("u2", "s1", "f"), ("u3", "s2", "m")]
    assert all(u.path.is_file() for u in corpus)
    assert corpus.relative(corpus.utterances[2]) == Path("wav/u3.wav")


@pytest.mark.parametrize("command", ["sox x.wav -t wav - |", "cat /etc/passwd|", "| rm -rf x"])
def test_pipes_are_refused_and_never_run(tmp_path: Path, command: str) -> None:
    kaldi(tmp_path, f"u1 touch {tmp_path}/ran |\nu2 {command}\nu3 wav/u3.wav\n")
    corpus = read_corpus(tmp_path)
    assert [u.id for u in corpus] == ["u3"]
    pipes = [p for p in corpus.problems if p.kind == "pipe"]
    assert [p.line for p in pipes] == [1, 2]
    assert "never run" in str(pipes[0])
    assert not (tmp_path / "ran").exists()
    kaldi(tmp_path, "u1 touch x |\n", "u1 s1\n")
    with pytest.raises(InputError, match="shell command, which is never run"):
        read_corpus(tmp_path)


def test_kaldi_paths_stay_where_they_may(tmp_path: Path) -> None:
    put(tmp_path, "elsewhere/u1.wav", "trusted/u2.wav")
    data = tmp_path / "a" / "b" / "c" / "d" / "data"
    kaldi(data, f"u1 {tmp_path}/elsewhere/u1.wav\nu2 {tmp_path}/trusted/u2.wav\nu3 ../../../../../elsewhere/u1.wav\n")
    corpus = read_corpus(data)  # absolute paths are Kaldi's habit, relative ones must not climb
    assert [u.id for u in corpus] == ["u1", "u2"]
    assert "outside-root" in kinds(corpus)
    narrowed = read_corpus(data, roots=[tmp_path / "trusted"])
    assert [u.id for u in narrowed] == ["u2"]


def test_kaldi_never_takes_a_device_or_a_folder(tmp_path: Path) -> None:
    kaldi(tmp_path, "u1 /dev/zero\nu2 wav\nu3 wav/u3.wav\n")
    corpus = read_corpus(tmp_path)
    assert [u.id for u in corpus] == ["u3"]
    assert kinds(corpus) == ["missing-audio", "missing-audio"]


def test_kaldi_lists_that_are_wrong(tmp_path: Path) -> None:
    kaldi(tmp_path, "u1 wav/u1.wav\nu1 wav/u2.wav\nu2\nu3 wav/u3.wav\n", "u1 s1\nu1 s2\nu2 s1 x\n")
    corpus = read_corpus(tmp_path)
    assert [u.id for u in corpus] == ["u1"]
    assert set(kinds(corpus)) == {"duplicate-id", "bad-line", "no-speaker"}


def vpc(root: Path, suffix: str = "", *, scp: bool = False) -> None:
    for role, names in {"enrolls": ["1-1-1", "2-1-1"], "trials_f": ["1-1-2"], "trials_m": ["2-1-2"]}.items():
        folder = root / f"libri_test_{role}{suffix}"
        put(folder, *(f"wav/{name}.wav" for name in names))
        (folder / "utt2spk").write_text("".join(f"{name} {name[0]}\n" for name in names))
        (folder / "spk2gender").write_text("1 f\n2 m\n")
        if scp:
            (folder / "wav.scp").write_text("".join(f"{n} {folder}/wav/{n}.wav\n" for n in names))


@pytest.mark.parametrize("scp", [True, False])
@pytest.mark.parametrize("suffix", ["", "_anon", "_mcadams"])
def test_voiceprivacy_data(tmp_path: Path, suffix: str, scp: bool) -> None:
    vpc(tmp_path / "data", suffix, scp=scp)
    for root in (tmp_path, tmp_path / "data"):
        corpus = read_corpus(root)
        assert corpus.layout == "vpc"
        assert [u.id for u in corpus] == ["1-1-1", "1-1-2", "2-1-1", "2-1-2"]
        assert corpus.utterances[1].attributes == {"set": "libri_test", "role": "trials_f", "language": "en"}
        assert corpus.genders == {"1": "f", "2": "m"}


def test_voiceprivacy_variants_must_be_named(tmp_path: Path) -> None:
    vpc(tmp_path)
    vpc(tmp_path, "_anon")
    with pytest.raises(InputError, match="--suffix"):
        read_corpus(tmp_path)
    original, anonymized = read_corpus(tmp_path, suffix=""), read_corpus(tmp_path, suffix="_anon")
    assert "_anon" in str(anonymized.utterances[0].path)
    assert len(match_ids(original.by_id, anonymized.by_id).partner) == 4
    with pytest.raises(InputError, match="no folder has the suffix"):
        read_corpus(tmp_path, suffix="_x")
    with pytest.raises(InputError, match="no data set"):
        read_corpus(tmp_path, part="vctk_test")
    assert original.variant != anonymized.variant


def test_csv(tmp_path: Path) -> None:
    put(tmp_path, "a/x.wav", "a/y, z.flac", "b.wav")
    (tmp_path / "list.csv").write_text(
        "\ufeffPath,Speaker,gender,session,utterance,region\n"
        'a/x.wav,s1,F,mon,,north\n"a/y, z.flac",s 2,m,,u2,\nb.wav,s1,,,,\n'
    )
    corpus = read_corpus(tmp_path / "list.csv")
    assert corpus.layout == "csv"
    assert [(u.id, u.speaker, u.gender, u.session) for u in corpus] == [
        ("a/x", "s1", "f", "mon"), ("b", "s1", "", ""), ("u2", "s_2", "m", ""),
    ]  # fmt: skip
    assert corpus.utterances[0].attributes == {"region": "north"}
    assert corpus.root == tmp_path


def test_a_folder_with_a_list_of_its_recordings(tmp_path: Path) -> None:
    """As `anonymize` leaves it: the list counts for more than the folders, tables of other things do not."""
    put(tmp_path, "wavs/a/1.wav", "wavs/b/1.wav", "wavs/b/2.wav")
    (tmp_path / "durations.csv").write_text("path,seconds\nwavs/a/1.wav,2\n")
    (tmp_path / "broken.csv").write_bytes(b"\xff\xfe,")
    assert read_corpus(tmp_path).layout == "folder"
    (tmp_path / "list.csv").write_text("path,speaker\nwavs/a/1.wav,anna\nwavs/b/1.wav,bert\n")
    corpus = read_corpus(tmp_path)
    assert corpus.layout == "csv"
    assert corpus.speakers == ("anna", "bert")
    assert corpus.root == tmp_path
    assert read_corpus(tmp_path / "list.csv").utterances == corpus.utterances
    (tmp_path / "second.csv").write_text("path,speaker\n")
    assert read_corpus(tmp_path).layout == "folder"  # nobody knows which list
    with pytest.raises(InputError, match="there are 2 lists with the columns path and speaker here"):
        read_corpus(tmp_path, "csv")


def test_genders_of_librispeech_from_the_folder_above_it(tmp_path: Path) -> None:
    put(tmp_path, "LibriSpeech/test-clean/14/208/14-208-0000.flac")
    (tmp_path / "LibriSpeech" / "SPEAKERS.TXT").write_text(";ID |SEX\n14   | F | test-clean | 25.03 | Kristin\n")
    for root in (tmp_path, tmp_path / "LibriSpeech", tmp_path / "LibriSpeech" / "test-clean"):
        assert read_corpus(root).genders == {"14": "f"}


@pytest.mark.parametrize("delimiter", ["\t", ";"])
def test_other_delimiters(tmp_path: Path, delimiter: str) -> None:
    put(tmp_path, "a.wav")
    (tmp_path / "list.tsv").write_text(f"speaker{delimiter}path\ns{delimiter}a.wav\n")
    assert read_corpus(tmp_path / "list.tsv").speakers == ("s",)


def test_csv_paths_do_not_leave_the_folder(tmp_path: Path) -> None:
    put(tmp_path, "secret.wav", "here/a.wav")
    here = tmp_path / "here"
    (here / "link.wav").symlink_to(tmp_path / "secret.wav")
    (here / "list.csv").write_text(
        f"path,speaker\n../secret.wav,s\n{tmp_path}/secret.wav,s\nlink.wav,s\na.wav,s\na/../../secret.wav,s\nx.wav,s\n,s\n"
    )
    corpus = read_corpus(here / "list.csv")
    assert [u.id for u in corpus] == ["a", "secret"]  # an absolute path leads where the author of the list says
    assert kinds(corpus) == ["outside-root"] * 3 + ["missing-audio", "bad-line"]
    confined = read_corpus(here / "list.csv", roots=[here])
    assert [u.id for u in confined] == ["a"]
    assert kinds(confined) == ["outside-root"] * 4 + ["missing-audio", "bad-line"]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", "path\nx.wav\n", '"path,speaker\n'])
def test_csv_without_what_is_needed(tmp_path: Path, text: str) -> None:
    (tmp_path / "list.csv").write_text(text)
    with pytest.raises(InputError):
        read_corpus(tmp_path / "list.csv")


def test_links_are_followed_inside_and_not_outside(tmp_path: Path) -> None:
    put(tmp_path, "outside/x.wav", "root/anna/1.wav", "root/store/2.wav")
    root = tmp_path / "root"
    (root / "bert").mkdir()
    (root / "bert" / "2.wav").symlink_to(root / "store" / "2.wav")
    (root / "bert" / "3.wav").symlink_to(tmp_path / "outside" / "x.wav")
    (root / "bert" / "4.wav").symlink_to(tmp_path / "nowhere.wav")
    (root / "carl").symlink_to(tmp_path / "outside")
    (root / "anna" / "again").symlink_to(root)
    (root / "anna" / "self").symlink_to(root / "anna" / "self")
    corpus = read_corpus(root)
    assert [u.id for u in corpus] == ["anna/1", "bert/2", "store/2"]
    assert sorted(kinds(corpus)) == ["missing-audio", "outside-root", "outside-root", "symlink-loop", "symlink-loop"]
    trusted = read_corpus(root, roots=[tmp_path / "outside"])
    assert {"carl/x", "bert/3"} <= {u.id for u in trusted}


def test_names_that_are_no_utf8_or_composed_differently(tmp_path: Path) -> None:
    put(tmp_path / "original", "anna/caf\u00e9.wav")
    put(tmp_path / "protected", "anna/cafe\u0301.wav")
    sides = [read_corpus(tmp_path / side).by_id for side in ("original", "protected")]
    assert len(match_ids(*sides).partner) == 1
    try:
        put(tmp_path / "odd", os.fsdecode(b"anna/a\xff.wav"))
    except OSError:
        pytest.skip("this file system takes no such names")
    assert [u.id for u in read_corpus(tmp_path / "odd")] == ["anna/a_"]


def test_ambiguous_and_unknown_layouts(tmp_path: Path) -> None:
    kaldi(tmp_path / "both", "u1 wav/u1.wav\n")
    common_voice(tmp_path / "both", "c\ta_1.mp3\t\t\t\t\n")
    with pytest.raises(InputError, match=r"commonvoice or kaldi.*--layout"):
        read_corpus(tmp_path / "both")
    assert read_corpus(tmp_path / "both", "kaldi").layout == "kaldi"
    put(tmp_path / "flat", "one.wav", "two.wav")
    with pytest.raises(InputError, match="no corpus layout is recognized"):
        read_corpus(tmp_path / "flat")
    with pytest.raises(InputError, match="no usable utterance"):
        read_corpus(tmp_path / "flat", "librispeech")
    with pytest.raises(InputError, match="no layout called 'kaldy'"):
        read_corpus(tmp_path / "flat", "kaldy")
    with pytest.raises(InputError, match="no such file"):
        read_corpus(tmp_path / "none")
    put(tmp_path, "song.wav")
    with pytest.raises(InputError, match="not a corpus"):
        read_corpus(tmp_path / "song.wav")


def test_pairs_by_id_whatever_the_extension(tmp_path: Path) -> None:
    put(tmp_path / "original", "a/1.flac", "a/2.flac", "b/1.flac")
    put(tmp_path / "protected", "a/1.wav", "b/1.wav", "c/1.wav")
    sides = [read_corpus(tmp_path / side).by_id for side in ("original", "protected")]
    assert match_ids(*sides).partner == {"a/1": "a/1", "b/1": "b/1"}


@given(st.text())
def test_ids_hold_no_white_space(text: str) -> None:
    found = clean_id(text)
    assert len(found.split()) <= 1
    assert found.isprintable() or not found
    assert clean_id(found) == found


TOKENS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["path", "speaker", "a.wav", "../a.wav", "|", "\t", ",", '"', "\0", "u1", "s1", "client_id", "/", "\n"]
    ),
)
LISTS = st.lists(TOKENS, max_size=40).map("".join) | st.binary(max_size=300)


@given(name=st.sampled_from(["list.csv", "wav.scp", "utt2spk", "spk2gender", "validated.tsv", "SPEAKERS.TXT",
                             "speaker-info.txt"]), text=LISTS)  # fmt: skip
def test_lists_give_a_corpus_or_an_error_that_says_why(
    tmp_path_factory: pytest.TempPathFactory, name: str, text: str | bytes
) -> None:
    root = tmp_path_factory.mktemp("fuzz")
    kaldi(root, "u1 wav/u1.wav\n", "u1 s1\n")
    common_voice(root, "c\ta_1.mp3\t\t\t\t\n")
    put(root, "p225/p225_001.wav", "61-1-1.flac")
    data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
    (root / name).write_bytes(data)
    place = root / name if name == "list.csv" else root
    for layout in ["csv"] if name == "list.csv" else ["kaldi", "commonvoice", "vctk", "librispeech"]:
        try:
            corpus = read_corpus(place, layout)
        except VeilmeterError as error:
            assert str(error)  # noqa: PT017
        else:
            inside = os.path.realpath(root)
            assert all(os.path.realpath(u.path).startswith(inside) for u in corpus)
            assert all(u.id and not set(u.id) & set(string.whitespace) for u in corpus)
