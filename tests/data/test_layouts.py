"""The registry of layouts: what recognizes what, which options each understands, and layouts of other packages."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilmeter.core.errors import InputError
from veilmeter.data.corpus import Utterance, read_corpus
from veilmeter.data.layouts import LAYOUTS, OPTIONS, Evidence, Layout, Reading, ReadOptions, recognize


def put(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")


def corpus_of(layout: str, root: Path) -> Path:
    """A small corpus in a layout."""
    if layout == "folder":
        put(root, "anna/1.wav", "bert/1.wav")
    elif layout == "librispeech":
        put(root, "1-1-1.flac", "2-1-1.flac")
    elif layout == "vctk":
        put(root, "p225/p225_001.wav")
    elif layout == "commonvoice":
        put(root, "clips/a.mp3")
        (root / "validated.tsv").write_text("client_id\tpath\nx\ta.mp3\n")
    elif layout == "kaldi":
        put(root, "wav/u1.wav")
        (root / "utt2spk").write_text("u1 s1\n")
    elif layout == "vpc":
        put(root, "libri_test_enrolls/wav/u1.wav")
        (root / "libri_test_enrolls" / "utt2spk").write_text("u1 s1\n")
    elif layout == "csv":
        put(root, "a.wav")
        (root / "list.csv").write_text("path,speaker\na.wav,s\n")
    return root


BUILT_IN = ["folder", "librispeech", "vctk", "commonvoice", "kaldi", "vpc", "csv"]
VALUES = {"part": "nonsense", "suffix": "_x", "columns": {"path": "path"}}


@pytest.mark.parametrize("layout", BUILT_IN)
def test_every_option_acts_or_is_refused(tmp_path: Path, layout: str) -> None:
    root = corpus_of(layout, tmp_path)
    assert recognize(root) == layout
    whole = read_corpus(root)
    for option, value in VALUES.items():
        understood = option in LAYOUTS[layout].understands
        if understood and option == "columns":
            assert read_corpus(root, columns={"path": "path"}).utterances == whole.utterances
            with pytest.raises(InputError, match="no column 'sound'"):
                read_corpus(root, columns={"path": "sound"})
            continue
        message = r"nonsense|_x|mic1" if understood else f"{OPTIONS[option]} means nothing in the {layout} layout"
        with pytest.raises(InputError, match=message):
            read_corpus(root, **{option: value})
    if "roots" not in LAYOUTS[layout].understands:
        with pytest.raises(InputError, match="--root means nothing"):
            read_corpus(root, roots=[tmp_path])


def test_people_whose_names_become_one_are_not_merged(tmp_path: Path) -> None:
    put(tmp_path, "a b/1.wav", "a_b/1.wav", "c/1.wav")
    with pytest.raises(InputError, match=r"'a b' and 'a_b' would both be called 'a_b'"):
        read_corpus(tmp_path)


def test_accents_in_two_forms_are_not_merged(tmp_path: Path) -> None:
    put(tmp_path, "Ren\u00e9/1.wav", "Rene\u0301/2.wav")
    with pytest.raises(InputError, match="would both be called"):
        read_corpus(tmp_path)


def test_recordings_that_can_not_be_read_are_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["m4a", "aac", "wma", "amr", "webm", "mp4", "gsm"]
    put(tmp_path, "anna/1.wav", "bert/1.wav", *(f"anna/x.{name}" for name in names), "anna/notes.txt", "bert/y.raw")
    monkeypatch.setattr("veilmeter.data.layouts.media_installed", lambda: False)
    corpus = read_corpus(tmp_path)
    assert len(corpus) == 2
    unread = [problem for problem in corpus.problems if problem.kind == "unread-format"]
    assert len(unread) == len(names) + 1
    assert all(problem.fatal and "FLAC or WAV" in problem.fix for problem in unread)
    monkeypatch.setattr("veilmeter.data.layouts.media_installed", lambda: True)
    assert [u.id for u in read_corpus(tmp_path)] == ["anna/1", "anna/x", "bert/1"]


def test_a_layout_of_another_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path, "mine.list", "x.wav")

    def read(root: Path, options: ReadOptions) -> Reading:
        return Reading([Utterance("x", options.part or "anna", root / "x.wav")])

    mine = Layout(lambda root: (root / "mine.list").is_file(), read, Evidence.LISTS, frozenset({"part"}))
    monkeypatch.setattr(LAYOUTS, "_loaded", dict(LAYOUTS._loaded))
    LAYOUTS.register("mine", mine)
    assert read_corpus(tmp_path).layout == "mine"
    assert read_corpus(tmp_path, part="bert").speakers == ("bert",)
    with pytest.raises(InputError, match="--suffix means nothing in the mine layout"):
        read_corpus(tmp_path, suffix="_x")
    with pytest.raises(InputError, match="is not a layout"):
        LAYOUTS.register("wrong", read)  # type: ignore[arg-type]


def test_a_table_is_recognized_by_the_columns_that_the_user_names(tmp_path: Path) -> None:
    put(tmp_path, "a.wav")
    file = tmp_path / "clips.jsonl"
    file.write_text('{"clip": "a.wav", "caller": "s"}\n')
    with pytest.raises(InputError, match="this is not a corpus"):
        read_corpus(file)
    corpus = read_corpus(file, columns={"path": "clip", "speaker": "caller"})
    assert (corpus.layout, corpus.utterances[0].speaker) == ("jsonl", "s")
    with pytest.raises(InputError, match="this is not a corpus"):
        read_corpus(tmp_path / "a.wav", columns={"path": "clip"})


def test_a_corpus_of_links_is_recognized_and_says_that_they_lead_out(tmp_path: Path) -> None:
    """By links to files, and by links to the folders of speakers."""
    for speaker in ("a", "b"):
        (tmp_path / "store" / speaker).mkdir(parents=True)
        (tmp_path / "store" / speaker / "1.wav").write_bytes(b"audio")
        (tmp_path / "files" / speaker).mkdir(parents=True)
        (tmp_path / "files" / speaker / "1.wav").symlink_to(tmp_path / "store" / speaker / "1.wav")
        (tmp_path / "folders").mkdir(exist_ok=True)
        (tmp_path / "folders" / speaker).symlink_to(tmp_path / "store" / speaker)
    for corpus in (tmp_path / "files", tmp_path / "folders"):
        with pytest.raises(InputError, match=r"the link leads out of the corpus \(give the folder it leads to"):
            read_corpus(corpus)
        assert [u.id for u in read_corpus(corpus, roots=[tmp_path / "store"])] == ["a/1", "b/1"]
