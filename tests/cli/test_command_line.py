"""The command line as a whole: its help, its lists, its suggestions, its exit codes, on any terminal."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from veilmeter.cli.command import pieces, split_values
from veilmeter.cli.main import COMMANDS, app
from veilmeter.cli.terminal import MEANINGS, Exit
from veilmeter.core.errors import InputError
from veilmeter.core.options import parse_percentage
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings
from veilmeter.speech.extractors.base import EXTRACTORS

ROOT = Path(__file__).parents[2]
PROGRAM = [sys.executable, "-m", "veilmeter.cli.main"]


def shown(*words: str, columns: int = 100) -> str:
    done = CliRunner().invoke(app, list(words), env={"COLUMNS": str(columns)}, prog_name="veilmeter")
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_page_and_all_of_it_names_every_option(name: str) -> None:
    text = shown(name, "--help")
    assert len(text.splitlines()) <= 60
    command = typer.main.get_command(app).get_command(None, name)  # type: ignore[attr-defined]
    everything = shown(name, "--help-all")
    if hasattr(command, "commands"):
        assert everything == text
        assert all("Usage: " in shown(name, below, "--help-all") for below in command.commands)
        return
    assert "{" not in text.splitlines()[0]  # arguments are called there as they are below
    options = [word for one in command.params for word in one.opts if word.startswith("--") and word != "--help"]
    assert [word for word in options if not re.search(rf"^  (--[a-z-]+, )*{word}\b", everything, re.MULTILINE)] == []
    hidden = [word for word in options if word not in text]
    assert bool(hidden) == ("--help-all" in text)


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("columns", [60, 100])
def test_examples_are_in_one_piece(name: str, columns: int) -> None:
    _, _, examples = shown(name, "--help", columns=columns).partition("Examples:\n")
    for line in filter(None, examples.partition("\n\n")[0].splitlines()):
        assert line.startswith("  veilmeter "), line


def test_the_list_of_commands_has_all_of_them_once() -> None:
    text = shown("--help")
    assert re.findall(r"^  ([a-z][a-z-]*) ", text, re.MULTILINE) == list(COMMANDS)


@pytest.mark.parametrize("words", [(), *((name,) for name in COMMANDS), ("cache", "clear")], ids=" ".join)
def test_help_fits_80_columns_and_has_a_short_name(words: tuple[str, ...]) -> None:
    text = shown(*words, "--help", columns=80)
    assert shown(*words, "-h", columns=80).split("Options:")[0] == text.split("Options:")[0]
    lines = text.partition("\nExamples:")[0].splitlines()  # an example is one line, to be copied
    assert [line for line in lines if len(line) > 80] == []
    assert "FOLDERE" not in text


def test_the_help_of_embed_names_every_extractor() -> None:
    text = " ".join(shown("embed", "--help").split())
    assert [name for name in EXTRACTORS.names if not re.search(rf"\b{name}[,.:]", text)] == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["measure", "--qqq"], "no such option: --qqq (see veilmeter measure --help)"),
        (["measure", "--trails", "x"], "no such option: --trails (did you mean --trials?)"),
        (["report"], "RUN is required (see veilmeter report --help)"),
        (["cache", "cleer"], "no such command: 'cleer' (did you mean 'clear'?)"),
        (["report", "--out"], "option '--out' requires an argument (see veilmeter report --help)"),
        (["report", "run", "again"], "unexpected argument (again) (see veilmeter report --help)"),
    ],
)
def test_words_that_are_not_understood_are_one_line(words: list[str], expected: str) -> None:
    done = CliRunner().invoke(app, words, prog_name="veilmeter")
    assert isinstance(done.exception, InputError)
    assert str(done.exception) == expected


@pytest.mark.parametrize("words", [[], ["cache"]])
def test_help_is_shown_without_a_command(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0
    assert "Commands:" in done.stdout or "Assess:" in done.stdout


@pytest.mark.parametrize(
    ("typed", "meant"), [("asses", "assess"), ("linkabilty", "linkability"), ("rapport", "report")]
)
def test_a_misspelled_command_is_suggested(typed: str, meant: str) -> None:
    done = CliRunner().invoke(app, [typed])
    assert isinstance(done.exception, InputError)
    assert f"did you mean {meant!r}" in str(done.exception)


def test_lists_with_commas_repeated_or_both(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = ["--lengths", "1", "--lengths", "3"]
    for words in (["--lengths", "1,3"], ["--lengths=1,3"], ["--lengths", "1", "--lengths", "3"]):
        assert split_values(words, {"--lengths"}) == wanted
    assert split_values(["--out", "a,b"], {"--lengths"}) == ["--out", "a,b"]
    assert split_values(["--lengths", "1", "--", "--lengths", "1,3"], {"--lengths"})[-2:] == ["--lengths", "1,3"]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data,v2").mkdir()
    assert pieces("data,v2") == ["data,v2"]
    assert pieces("informed:linkability@20,L3=20%") == ["informed:linkability@20,L3=20%"]
    assert pieces("a=1, b=2") == ["a=1", "b=2"]


def test_a_fraction_is_never_taken_for_a_percentage() -> None:
    assert [parse_percentage(value) for value in ("20%", " 20 ", 20, "0.2 %", 0)] == [20.0, 20.0, 20.0, 0.2, 0.0]
    for value in (0.2, "0.2", 1):
        with pytest.raises(InputError, match="may be a fraction or a percentage") as refused:
            parse_percentage(value)
        assert refused.value.fix is not None
        assert refused.value.fix.startswith("write ")
    with pytest.raises(InputError, match="not a percentage"):
        parse_percentage("a fifth")


def test_exit_codes_are_documented() -> None:
    text = (ROOT / "docs" / "reference" / "exit-codes.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| (.+) \|$", text, re.MULTILINE)
    documented = {int(code): meaning.replace("\\|", "|") for code, meaning in rows}
    assert documented == {int(code): meaning for code, meaning in MEANINGS.items()}


def vectors(folder: Path) -> None:
    rng = np.random.default_rng(0)
    speakers = [f"Zoé{number // 4}" for number in range(32)]
    ids = [f"{speaker}-{number}" for number, speaker in enumerate(speakers)]
    write_embeddings(Embeddings(rng.standard_normal((32, 8)), ids, speakers), folder / "a.npz")


def test_a_closed_pipe_is_not_an_error(tmp_path: Path) -> None:
    vectors(tmp_path)
    words = ["linkability", "--enroll", "a.npz", "--test", "a.npz", "--per-speaker", "--no-intervals", "--json"]
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as out:
        done = subprocess.run([*PROGRAM, *words], cwd=tmp_path, stdout=out, stderr=subprocess.PIPE, check=False)
    assert done.returncode == Exit.PIPE_CLOSED
    assert done.stderr == b""


def test_help_into_a_closed_pipe_is_not_an_error() -> None:
    """Typer and rich have ways of their own, and end with 1."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as out:
        done = subprocess.run([*PROGRAM, "--help"], stdout=out, stderr=subprocess.PIPE, check=False)
    assert (done.returncode, done.stderr) == (Exit.PIPE_CLOSED, b"")


def test_streams_that_the_shell_closed(tmp_path: Path) -> None:
    """As `>&-` does: Python then has no stream at all."""
    for words, code in ((["--version"], 0), (["check", str(tmp_path / "none")], Exit.WRONG_INPUT)):
        for closed in ((1,), (2,), (1, 2)):
            done = subprocess.run(
                [*PROGRAM, *words], preexec_fn=lambda closed=closed: [os.close(n) for n in closed], check=False
            )
            assert done.returncode == code


def test_arguments_that_are_no_text_are_refused_before_any_work(tmp_path: Path) -> None:
    """Results are written as UTF-8: without this, an assessment would fail when it is done."""
    done = subprocess.run([*PROGRAM, "report", tmp_path, "--out", b"caf\xe9.html"], capture_output=True, check=False)
    assert done.returncode == Exit.WRONG_INPUT
    assert done.stderr.startswith(b"error: an argument is not UTF-8 text: 'caf")
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize("words", [["similarity", "--original", "a.npz", "--anonymized", "a.npz"],
                                   ["linkability", "--enroll", "a.npz", "--test", "a.npz", "--per-speaker"],
                                   ["attackers"], ["assess", "--help-all"]])  # fmt: skip
def test_terminals_that_know_only_ascii(words: list[str], tmp_path: Path) -> None:
    vectors(tmp_path)
    quick = ["--no-intervals"] if words[0] in ("similarity", "linkability") else []
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0", "LC_ALL": "C"}
    done = subprocess.run([*PROGRAM, *words, *quick], cwd=tmp_path, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()


@pytest.mark.parametrize(
    ("line", "code"),
    [("linkability --enroll a.npz --test a.npz --no-intervals", Exit.DONE), ("cache show", Exit.WRONG_INPUT)],
)
def test_no_home_and_a_user_nobody_knows(line: str, code: Exit, tmp_path: Path) -> None:
    vectors(tmp_path)
    gone = ("HOME", "XDG_CACHE_HOME", "USER", "LOGNAME", "VEILMETER_CACHE")
    environment = {key: value for key, value in os.environ.items() if key not in gone}
    program = (
        "import pwd, sys\n"
        "def nobody(key): raise KeyError(key)\n"
        "pwd.getpwuid = pwd.getpwnam = nobody\n"
        f"sys.argv = ['veilmeter', *{line.split()!r}]\n"
        "from veilmeter.cli.main import main\nmain()"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == code, done.stderr
    assert code == Exit.DONE or "VEILMETER_CACHE" in done.stderr
