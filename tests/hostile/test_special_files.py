"""Where a file is meant, only a regular one of bounded size is opened: a pipe would wait, and a device never end."""

from __future__ import annotations

import errno
import gzip
import json
import os
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from veilmeter.anonymizers.manifest import read_manifest, read_timings
from veilmeter.assessment.given_scores import ScoreFiles
from veilmeter.attacks.inversion.attack import load_map
from veilmeter.cli.main import app
from veilmeter.cli.terminal import Exit
from veilmeter.core.cluster import read_config
from veilmeter.core.errors import InputError, MissingInput, VeilmeterError
from veilmeter.core.files import open_input, read_input, read_input_json, read_input_text
from veilmeter.core.options import read_options
from veilmeter.core.user_code import load_object
from veilmeter.data.corpus import read_corpus
from veilmeter.data.formats.json_lines import read_objects
from veilmeter.data.formats.kaldi import read_map, read_scp
from veilmeter.data.formats.scores import read_scores
from veilmeter.data.formats.vectors import read_embeddings
from veilmeter.data.layouts import read_lines
from veilmeter.report.public import reported, run_key
from veilmeter.results.limits import parse_limit
from veilmeter.results.run_folder import read_results
from veilmeter.results.system_table import parse_figure
from veilmeter.speech.extractors import store

READERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "scores": ("scores.txt", read_scores),
    "map of ids": ("utt2spk", lambda path: read_map(path, [])),
    "list": ("list.csv", lambda path: list(read_lines(path))),
    "JSON lines": ("list.jsonl", lambda path: list(read_objects(path))),
    "vectors": ("x.scp", read_embeddings),
    "settings": ("run.toml", read_options),
    "results": ("results.json", read_results),
    "inversion map": ("map.npz", load_map),
    "cluster": ("cluster.yaml", read_config),
    "code": ("own.py", lambda path: load_object(f"{path}:embed", "extractor")),
    "key": ("pseudonyms.key", lambda path: run_key(path.parent)),
    "manifest": ("out.manifest.jsonl", read_manifest),
}


def sparse(path: Path) -> None:
    with open(path, "wb") as file:
        file.truncate(1 << 40)


SPECIAL: dict[str, Callable[[Path], object]] = {
    "fifo": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "loop": lambda path: path.symlink_to(path.name),
    "terabyte": sparse,
}


@pytest.fixture(autouse=True)
def _ends_soon() -> Iterator[None]:
    def wait_no_longer(*_: object) -> None:
        raise TimeoutError("this waits for ever")

    before = signal.signal(signal.SIGALRM, wait_no_longer)
    signal.alarm(120)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("reader", READERS)
def test_every_reader_refuses_what_is_no_file(reader: str, kind: str, tmp_path: Path) -> None:
    name, read = READERS[reader]
    SPECIAL[kind](tmp_path / name)
    with pytest.raises(InputError) as caught:
        read(tmp_path / name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", SPECIAL)
def test_timings_and_notes_that_are_no_files_count_as_missing(kind: str, tmp_path: Path) -> None:
    SPECIAL[kind](tmp_path / "out.timings.json")
    assert read_timings(tmp_path / "out") is None
    SPECIAL[kind](tmp_path / "embeddings.json")
    assert store._json(tmp_path / "embeddings.json") == {}
    SPECIAL[kind](tmp_path / "inputs.jsonl")
    assert store._records(tmp_path / "inputs.jsonl") == store._first_line(tmp_path / "inputs.jsonl") == {}


def test_a_page_does_without_the_day(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "timings.json")
    with pytest.raises(InputError, match="no results"):
        reported(tmp_path)


@pytest.mark.parametrize("kind", ["fifo", "device", "loop"])
@pytest.mark.parametrize("name", ["segments", "spk2gender", "text", "utt2dur"])
def test_an_optional_list_that_is_no_file_is_not_passed_over(name: str, kind: str, tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"RIFF")
    (tmp_path / "wav.scp").write_text("u a.wav\n")
    (tmp_path / "utt2spk").write_text("u s\n")
    (tmp_path / "xvector.ark").write_bytes(b"u [ 1 2 ]\n")
    (tmp_path / "xvector.scp").write_text("u xvector.ark:2\n")
    SPECIAL[kind](tmp_path / name)
    with pytest.raises(InputError, match=r"not a regular file|leads back to itself"):
        read_embeddings(tmp_path) if name == "utt2dur" else read_corpus(tmp_path, "kaldi")


def test_the_reason_is_named(tmp_path: Path) -> None:
    for what, make in (("not a regular file", os.mkfifo), ("leads back to itself", SPECIAL["loop"]),
                       ("leads nowhere", lambda path: path.symlink_to("x")), ("a folder", Path.mkdir)):  # fmt: skip
        path = tmp_path / what.replace(" ", "-")
        make(path)  # type: ignore[operator]
        with pytest.raises(InputError, match=what):
            open_input(path)
    with pytest.raises(MissingInput):
        open_input(tmp_path / "none")
    with pytest.raises(InputError, match="zero byte"):
        open_input("a\0b")
    with pytest.raises(InputError, match="can't be read"):
        open_input("/proc/self/mem")


def test_a_file_that_the_system_makes_up_is_bounded_too(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="too large"):
        read_input("/proc/self/smaps", most=100)
    (tmp_path / "a").write_bytes(b"12345")
    assert read_input(tmp_path / "a", most=5) == b"12345"
    with pytest.raises(InputError, match="5 bytes, and at most 4"):
        read_input(tmp_path / "a", most=4)


def test_text_and_json_are_read_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text("\ufeff[1]")
    assert read_input_json(path) == [1]
    for content in ("[" * 100_000, "9" * 5000, "{", ""):
        path.write_text(content)
        with pytest.raises(InputError, match="invalid JSON") as caught:
            read_input_json(path)
        assert "recursion" not in str(caught.value)
        assert "sys." not in str(caught.value)
    path.write_bytes(b"\xff")
    with pytest.raises(InputError, match="UTF-8"):
        read_input_text(path)


def test_a_packed_list_may_grow_as_lists_do_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "list.jsonl.gz"
    rng = np.random.default_rng(0)
    lines = [json.dumps({"path": f"{n}.wav", "speaker": f"{rng.integers(40)}"}) for n in range(2000)]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    assert len(list(read_objects(path))) == 2000
    for bomb in (b"\n", b"{}\n", b" "):
        path.write_bytes(gzip.compress(bomb * ((1 << 23) // len(bomb))))
        with pytest.raises(InputError, match=r"times as large|a million bytes"):
            sum(1 for _ in read_objects(path))


def test_numbers_without_end_are_refused(tmp_path: Path) -> None:
    digits = "9" * 5000
    (tmp_path / "a.ark").write_bytes(b"u [ 1 2 ]\n")
    (tmp_path / "a.scp").write_text(f"u a.ark:{digits}\n")
    assert "outside the file" in str(read_scp(tmp_path / "a.scp").problems[0])
    (tmp_path / "run.toml").write_text(f"seed = {digits}\n")
    with pytest.raises(InputError, match="invalid TOML: a number has thousands of digits"):
        read_options(tmp_path / "run.toml")
    for key in (".".join("a" * 50_000), "x = {" + ".".join("a" * 50_000), "[" + " . ".join(["'a'"] * 10_000)):
        (tmp_path / "run.toml").write_text(f"seed = 1\n{key} = 1\n")
        with pytest.raises(InputError, match="more than 16 parts") as caught:
            read_options(tmp_path / "run.toml")
        assert caught.value.line == 2
    for figure in (f"linkability@{digits}", f"linkability@20,L{digits}", "linkability@1__0"):
        with pytest.raises(InputError):
            parse_figure(figure)
        with pytest.raises(InputError):
            parse_limit(f"{figure}=5", "max")


def test_scores_without_end_are_refused_before_they_are_hashed(tmp_path: Path) -> None:
    (tmp_path / "scores.txt").write_bytes(b"a b 1\n")
    os.truncate(tmp_path / "scores.txt", 1 << 40)
    with pytest.raises(InputError, match="binary file"):
        ScoreFiles((tmp_path / "scores.txt",))


def test_a_folder_that_may_not_be_entered_is_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("anna/1.wav", "bert/1.wav"):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_bytes(b"RIFF")
    scandir, is_file = os.scandir, Path.is_file

    def refuse(path: str | Path) -> None:
        if "bert" in str(path):
            raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("os.scandir", lambda path=".": refuse(path) or scandir(path))
    monkeypatch.setattr("pathlib.Path.is_file", lambda path: refuse(path) or is_file(path))
    corpus = read_corpus(tmp_path)
    assert [utterance.speaker for utterance in corpus] == ["anna"]
    assert [problem.kind for problem in corpus.problems] == ["unreadable-folder"]
    monkeypatch.setattr("pathlib.Path.is_file", lambda path: refuse("bert") or is_file(path))
    with pytest.raises(InputError, match="can't be read: Permission denied"):
        read_corpus(tmp_path / "anna")
    (tmp_path / "x").mkdir()
    with pytest.raises(InputError, match="can't be read: Permission denied"):
        read_embeddings(tmp_path / "x")


def test_a_torch_file_that_is_no_plain_table_is_refused(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    (tmp_path / "id2idx").write_text("u 0\n")
    (tmp_path / "idx2spk").write_text("0 s\n")
    for tensor in (
        torch.eye(3).to_sparse(),
        torch.quantize_per_tensor(torch.eye(3), 0.1, 0, torch.quint8),
        torch.ones(3, 3, device="meta"),
    ):
        torch.save(tensor, tmp_path / "speaker_vectors.pt")
        torch.save({"u": tensor, "v": tensor}, tmp_path / "by-id.pt")
        for path in (tmp_path, tmp_path / "by-id.pt"):
            with pytest.raises(InputError):
                read_embeddings(path)
    torch.save(torch.eye(3), tmp_path / "speaker_vectors.pt")
    (tmp_path / "id2idx").write_text("u " + "9" * 5000 + "\n")
    with pytest.raises(InputError, match="not an index"):
        read_embeddings(tmp_path)


def test_an_npy_file_of_an_impossible_shape(tmp_path: Path) -> None:
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (999999999999, 999999999)}\n"
    (tmp_path / "x.npy").write_bytes(b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head)
    (tmp_path / "x.txt").write_text("u\n")
    with warnings.catch_warnings(action="error"), pytest.raises(InputError, match="corrupt npy file"):
        read_embeddings(tmp_path / "x.npy")


@pytest.mark.parametrize("name", ["x.npy", "x.txt"])
def test_a_table_of_a_terabyte_and_its_list(name: str, tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.ones((2, 3), np.float32))
    (tmp_path / "x.txt").write_text("a\nb\n")
    with open(tmp_path / name, "r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="too large"):
        read_embeddings(tmp_path / "x.npy")


@pytest.mark.parametrize(
    "words",
    ["similarity --original x --anonymized x", "similarity --original o.npz --anonymized x", "compare x x",
     "gate x --max eer=50%", "report x", "check x"],
)  # fmt: skip
def test_a_link_to_itself_ends_no_command(words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "x").symlink_to("x")
    np.savez(tmp_path / "o.npz", ids=["a", "b"], speakers=["s", "t"], vectors=np.eye(2, dtype=np.float32))
    done = CliRunner().invoke(app, words.split())
    assert isinstance(done.exception, VeilmeterError) or done.exit_code == Exit.WRONG_INPUT
