"""What is said, and in which language, where a layout knows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from veilmeter.core.errors import InputError
from veilmeter.data.corpus import read_corpus
from veilmeter.data.formats.kaldi import read_map
from veilmeter.data.layouts import read_lines, read_texts


def put(root: Path, name: str, text: str = "") -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def librispeech(root: Path) -> None:
    put(root, "test-clean/61/70968/61-70968-0000.flac")
    put(root, "test-clean/61/70968/61-70968-0001.flac")
    put(root, "test-clean/61/70968/61-70968.trans.txt", "61-70968-0000 HE BEGAN A  CONFUSED COMPLAINT\n")


def kaldi(root: Path) -> None:
    put(root, "wav.scp", "a wav/a.wav\nb wav/b.wav\n")
    put(root, "utt2spk", "a s\nb s\n")
    put(root, "text", "a HE BEGAN A CONFUSED COMPLAINT\nb\n")
    put(root, "utt2lang", "a en-GB\n")
    put(root, "utt2emo", "a sad\nb happy\n")
    put(root, "wav/a.wav")
    put(root, "wav/b.wav")


def commonvoice(root: Path) -> None:
    head = "client_id\tpath\tsentence\tlocale\n"
    rows = "s\ta.mp3\tHe began a “confused” complaint.\ten\ns\tb.mp3\t\ten\n"
    put(root, "validated.tsv", head + rows)
    put(root, "clips/a.mp3")
    put(root, "clips/b.mp3")


def csv(root: Path) -> None:
    put(root, "list.csv", 'path,speaker,text,language\na.wav,s,"He began, confused",EN\nb.wav,s,,EN\n')
    put(root, "a.wav")
    put(root, "b.wav")


def vctk(root: Path) -> None:
    put(root, "speaker-info.txt", "ID AGE GENDER\n")
    put(root, "wav48/p226/p226_001.wav")
    put(root, "wav48/p226/p226_002.wav")
    put(root, "txt/p226/p226_001.txt", "He began a confused complaint.\n")


@pytest.mark.parametrize("write", [librispeech, kaldi, commonvoice, csv, vctk])
def test_a_text_where_the_layout_has_one(tmp_path: Path, write: object) -> None:
    write(tmp_path)  # type: ignore[operator]
    corpus = read_corpus(tmp_path)
    first, second = corpus
    assert first.text.lower().startswith("he began")
    assert "confused" in first.text.lower()
    assert second.text == ""
    assert corpus.languages == ("en",)
    assert not corpus.problems


def test_labels_of_a_kaldi_folder(tmp_path: Path) -> None:
    kaldi(tmp_path)
    assert [u.attributes.get("emotion") for u in read_corpus(tmp_path)] == ["sad", "happy"]


def test_a_folder_says_nothing_of_texts_and_languages(tmp_path: Path) -> None:
    put(tmp_path, "anna/one.wav")
    corpus = read_corpus(tmp_path)
    assert [u.text for u in corpus] == [""]
    assert corpus.languages == ()


def test_lines_of_texts(tmp_path: Path) -> None:
    path = put(tmp_path, "text", "b two\tWORDS\nc\nb again\n")
    assert read_texts(path) == {"b": "two WORDS"}
    assert read_texts(tmp_path / "none") == {}


@pytest.mark.parametrize("line", [b"b \xff\n", b"b " + b"x" * (1 << 20)])
def test_the_line_that_can_not_be_read_is_named(line: bytes, tmp_path: Path) -> None:
    path = tmp_path / "utt2spk"
    path.write_bytes(b"\xef\xbb\xbfa s\r\n\n" + line)
    for read in (lambda: list(read_lines(path)), lambda: read_map(path, [])):
        with pytest.raises(InputError, match=r"utt2spk:3: th(is|e) line"):
            read()


def test_lines_are_read_without_mark_end_and_blank_ones(tmp_path: Path) -> None:
    path = tmp_path / "utt2spk"
    path.write_bytes(b"\xef\xbb\xbfa s\r\n \nb t")
    assert list(read_lines(path)) == [(1, "a s"), (3, "b t")]
    assert read_map(path, []) == {"a": "s", "b": "t"}
