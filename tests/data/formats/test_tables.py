"""Tables of recordings and of parts of them: other names of columns, absolute paths, stretches, channels."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilmeter.core.errors import InputError
from veilmeter.data.corpus import MIX, Stretch, read_corpus
from veilmeter.data.formats.table import parse_columns


def put(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


@pytest.mark.parametrize(
    "header",
    ["file_name,speaker_id,transcription", "audio,client_id,sentence", "audio_path,spk_id,text", "Path,Speaker,Text"],
)
def test_common_names_are_understood(tmp_path: Path, header: str) -> None:
    put(tmp_path, "a/1.wav")
    (tmp_path / "list.csv").write_text(f"{header}\na/1.wav,anna,hello\n")
    (utterance,) = read_corpus(tmp_path)
    assert (utterance.id, utterance.speaker, utterance.text, utterance.attributes) == ("a/1", "anna", "hello", {})


def test_other_names_are_said(tmp_path: Path) -> None:
    put(tmp_path, "1.wav")
    (tmp_path / "list.csv").write_text("clip,caller,region\n1.wav,anna,north\n")
    with pytest.raises(InputError, match=r"path and speaker are missing.*--columns path=audio_path"):
        read_corpus(tmp_path / "list.csv")
    chosen = parse_columns(["path=clip,speaker=caller"])
    (utterance,) = read_corpus(tmp_path / "list.csv", columns=chosen)
    assert (utterance.speaker, utterance.attributes) == ("anna", {"region": "north"})
    with pytest.raises(InputError, match=r"no column 'clips' for 'path'.*did you mean 'clip'"):
        read_corpus(tmp_path / "list.csv", columns={"path": "clips", "speaker": "caller"})
    with pytest.raises(InputError, match="unknown column 'voice'"):
        read_corpus(tmp_path / "list.csv", columns={"voice": "clip"})


def test_absolute_paths_have_relative_ids(tmp_path: Path) -> None:
    put(tmp_path, "store/anna/1.wav", "store/bert/1.wav")
    for side in ("here", "there"):
        (tmp_path / side).mkdir()
        rows = "".join(f"{tmp_path}/store/{who}/1.wav,{who}\n" for who in ("anna", "bert"))
        (tmp_path / side / "list.csv").write_text("path,speaker\n" + rows)
        assert [u.id for u in read_corpus(tmp_path / side)] == ["anna/1", "bert/1"]


def test_parts_and_sides_of_calls(tmp_path: Path) -> None:
    put(tmp_path, "call.wav")
    (tmp_path / "list.csv").write_text(
        "path,speaker,start,end,channel\ncall.wav,anna,0,4.5,A\ncall.wav,bert,1,,1\ncall.wav,carl,5,-1,0\n"
        "call.wav,dora,9,3,\ncall.wav,emil,x,,\ncall.wav,fred,,,third\n"
    )
    corpus = read_corpus(tmp_path)
    assert {u.speaker: u.stretch for u in corpus} == {
        "anna": Stretch(0, 4.5, 0), "bert": Stretch(1, None, 1), "carl": Stretch(5, None, 0),
    }  # fmt: skip
    assert len({u.id for u in corpus}) == 3
    assert [(p.kind, p.line) for p in corpus.problems] == [("bad-line", line) for line in (5, 6, 7)]


def test_channels_are_counted_from_0(tmp_path: Path) -> None:
    put(tmp_path, "call.wav")
    (tmp_path / "list.csv").write_text("path,speaker,channel,utterance\ncall.wav,anna,1,a\ncall.wav,bert,2,b\n")
    with pytest.raises(InputError, match="counted from 0: subtract 1"):
        read_corpus(tmp_path)


def test_columns_that_would_change_what_is_heard_are_not_ignored(tmp_path: Path) -> None:
    put(tmp_path, "1.wav")
    (tmp_path / "list.csv").write_text("ID,duration,wav,start,stop,spk_id\n100--1--0,1.0,1.wav,16000,32000,100\n")
    with pytest.raises(InputError, match=r"'stop' is not understood.*counts samples"):
        read_corpus(tmp_path)
    (tmp_path / "list.csv").write_text("path,speaker,t_start,Tmax\n1.wav,anna,0.1,0.5\n")
    with pytest.raises(InputError, match=r"'t_start' is not understood.*--columns start=t_start"):
        read_corpus(tmp_path)


def test_an_offset_with_a_duration_is_a_stretch_and_a_duration_alone_is_not(tmp_path: Path) -> None:
    put(tmp_path, "1.wav")
    (tmp_path / "list.csv").write_text("audio_filepath,speaker,offset,duration\n1.wav,anna,1.5,2\n")
    assert read_corpus(tmp_path).utterances[0].stretch == Stretch(1.5, 3.5)
    (tmp_path / "list.csv").write_text("audio_filepath,speaker,duration\n1.wav,anna,2\n")
    assert read_corpus(tmp_path).utterances[0].stretch == Stretch()


def test_a_channel_for_all_that_name_none(tmp_path: Path) -> None:
    put(tmp_path, "anna/1.wav", "bert/1.wav")
    assert {u.channel for u in read_corpus(tmp_path, channel="1")} == {1}
    assert {u.channel for u in read_corpus(tmp_path, channel="mix")} == {MIX}
    with pytest.raises(InputError, match="no channel 'left'"):
        read_corpus(tmp_path, channel="left")


def segments(root: Path, lines: str) -> None:
    put(root, "calls/sw1.wav")
    (root / "wav.scp").write_text("sw1-A calls/sw1.wav\nsw1-B calls/sw1.wav\n")
    (root / "segments").write_text(lines)
    (root / "utt2spk").write_text("sw1-A_1 anna\nsw1-B_1 bert\n")


def test_kaldi_segments_and_sides(tmp_path: Path) -> None:
    segments(tmp_path, "sw1-A_1 sw1-A 0.98 11.56\nsw1-B_1 sw1-B 2 -1\n")
    (tmp_path / "reco2file_and_channel").write_text("sw1-A sw1 A\nsw1-B sw1 B\n")
    corpus = read_corpus(tmp_path)
    assert [(u.id, u.speaker, u.stretch) for u in corpus] == [
        ("sw1-A_1", "anna", Stretch(0.98, 11.56, 0)), ("sw1-B_1", "bert", Stretch(2.0, None, 1)),
    ]  # fmt: skip
    assert corpus.problems == ()


def test_sides_that_were_cut_into_files_of_their_own_have_one_channel(tmp_path: Path) -> None:
    put(tmp_path, "wav/sw1-A.wav", "wav/sw1-B.wav")
    (tmp_path / "wav.scp").write_text("sw1-A wav/sw1-A.wav\nsw1-B wav/sw1-B.wav\n")
    (tmp_path / "utt2spk").write_text("sw1-A anna\nsw1-B bert\n")
    (tmp_path / "reco2file_and_channel").write_text("sw1-A sw1 A\nsw1-B sw1 B\n")
    assert {u.channel for u in read_corpus(tmp_path)} == {None}


def test_segments_that_are_wrong_or_do_not_belong(tmp_path: Path) -> None:
    segments(tmp_path, "sw1-A_1 sw1-A 5 3\nsw1-B_1 sw9 0 1\nx\n")
    with pytest.raises(InputError, match="not a stretch of a recording: 5 to 3 s"):
        read_corpus(tmp_path)
    put(tmp_path, "calls/1.wav", "calls/2.wav")
    (tmp_path / "wav.scp").write_text("sw1-A_1 calls/1.wav\nsw1-B_1 calls/2.wav\n")
    corpus = read_corpus(tmp_path)
    assert [u.stretch for u in corpus] == [Stretch(), Stretch()]
    assert [p.kind for p in corpus.problems] == ["not-used"]


@pytest.mark.parametrize(
    ("text", "said"),
    [("path,speaker,Speaker\na.wav,s,t\n", "there are two columns"), ("path,speaker\ra.wav,s\r", "carriage return")],
)
def test_a_header_that_is_no_clear_one_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "list.csv").write_text(text, newline="")
    with pytest.raises(InputError, match=said):
        read_corpus(tmp_path / "list.csv")


def test_what_is_named_and_no_file_is_described(tmp_path: Path) -> None:
    (tmp_path / "folder.wav").mkdir()
    (tmp_path / "gone.wav").symlink_to("nowhere.wav")
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    named = {"a.wav": "", "folder.wav": "this is a folder, not a file", "gone.wav": "this link leads nowhere",
             "/dev/zero": "not a regular file", "none.wav": "there is no such file"}  # fmt: skip
    (tmp_path / "list.csv").write_text("path,speaker\n" + "".join(f"{name},s\n" for name in named))
    problems = read_corpus(tmp_path / "list.csv").problems
    assert [problem.what for problem in problems] == [f"{name}: {what}" for name, what in named.items() if what]
