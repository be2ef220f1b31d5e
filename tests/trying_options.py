"""Gives a command one more option and looks what comes of it: the option must act, or be refused by its name, or be
said to have had no effect. Which options there are is read from the commands' own declarations."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import click
import pytest
import typer
from typer.testing import CliRunner

from veilmeter.cli.main import COMMANDS, app
from veilmeter.cli.terminal import Exit
from veilmeter.core.errors import VeilmeterError
from veilmeter.core.options import Option, all_options, place

Words = Callable[[Path], list[str]]
OUT = "out"  # where a command under trial writes: removed, or put back as it was, before each run
TIMES = re.compile(r"\[\d+:\d\d\]|^\w+( \(.*\))?: \d+ of \d+ .*$|\d+(\.\d+)? (minutes|seconds|s)\b", re.MULTILINE)


def words(*given: object) -> Words:
    """The words of a command, with HERE for the folder of the inputs."""
    return lambda folder: [str(word).replace("HERE", str(folder)) for word in given]


def words_for(declared: Option) -> Words:
    """The words that give an option the example of its declaration, with paths in the folder of the inputs."""

    def words_in(folder: Path) -> list[str]:
        example = place(declared.example, declared.path, folder) if declared.path else declared.example
        values = example if isinstance(example, tuple | list) else (example,)
        flags = [] if declared.argument else [declared.all_flags[0]]
        return flags if declared.is_flag else [*flags, *map(str, values)]

    return words_in


@cache
def options_by_command() -> dict[str, dict[str, Option]]:
    """The declared options of every command; arguments do not count as options."""
    modules = {name: import_module(f"veilmeter.cli.{name.replace('-', '_')}") for name in COMMANDS}
    return {
        name: {
            key: declared
            for key, declared in all_options(getattr(module, "OPTIONS", ())).items()
            if not declared.argument
        }
        for name, module in modules.items()
    }


def declared_parameters() -> dict[str, list[click.Parameter]]:
    """The options of every command and subcommand, such as `cache clear`; arguments do not count as options."""

    def walk(name: str, command: Any) -> Iterator[tuple[str, list[click.Parameter]]]:
        options = [
            parameter
            for parameter in command.params
            if parameter.param_type_name == "option" and parameter.name not in ("help", "version")
        ]
        yield name, options
        if hasattr(command, "list_commands"):
            context = click.Context(command)
            for below in command.list_commands(context):
                yield from walk(f"{name} {below}".strip(), command.get_command(context, below))

    return dict(walk("", typer.main.get_command(app)))


@dataclass(frozen=True)
class Outcome:
    """What came of a command: a refusal, or what was printed and written. `record` is what the results say of the
    settings, `remarks` what they say besides the figures."""

    refusal: str = ""
    exit_code: int = 0
    output: Any = ""
    files: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    record: Mapping[str, Any] = field(default_factory=dict)

    def shows_more_than(self, other: Outcome) -> bool:
        """Whether anything but the record of the settings and the remarks differs."""
        return (self.exit_code, self.output, self.files) != (other.exit_code, other.output, other.files)


def run_command(command: str, given: list[str], written: Path | None = None) -> Outcome:
    """Runs it in this process; `written` is a file or folder that it writes."""
    done = CliRunner().invoke(app, [*command.split(), *given], env={"COLUMNS": "400"})
    if isinstance(done.exception, VeilmeterError):
        return Outcome(refusal=str(done.exception), exit_code=Exit.WRONG_INPUT)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    if done.exit_code == Exit.WRONG_INPUT and not done.stdout:  # the words were not understood
        return Outcome(refusal=done.stderr, exit_code=done.exit_code)
    output, remarks, record = _taken_apart(done.stdout)
    remarks += tuple(TIMES.sub("", done.stderr).splitlines())
    return Outcome("", done.exit_code, output, contents(written), remarks, record)


def _taken_apart(text: str) -> tuple[Any, tuple[str, ...], dict[str, Any]]:
    """What was printed, the remarks in it, and what it records of the settings."""
    if not text.startswith("{"):
        lines = TIMES.sub("", text).splitlines()
        return [line for line in lines if not line.startswith("! ")], tuple(x for x in lines if x[:2] == "! "), {}
    page = json.loads(text)
    inputs = page.get("inputs", {})
    record = {name: inputs.pop(name) for name in list(inputs) if not isinstance(inputs[name], dict | list)}
    return page, tuple(warning["text"] for warning in page.pop("warnings", ())), record


def contents(place: Path | None) -> dict[str, str]:
    """The digest of every file that was written there or beside it, such as a manifest; times and
    hidden folders, where commands keep their own notes, left out."""
    if place is None:
        return {}
    beside = list(place.parent.glob(f"{place.name}*"))
    files = [file for start in beside for file in (start, *start.rglob("*")) if file.is_file()]
    return {
        str(file.relative_to(place.parent)): hashlib.sha256(_bytes_of(file)).hexdigest()
        for file in sorted(files)
        if not file.name.endswith("timings.json") and "/." not in str(file.relative_to(place.parent))
    }


def _bytes_of(file: Path) -> bytes:
    """What a file holds; of an archive, such as DOCX, its members without when they were made."""
    if not zipfile.is_zipfile(file):
        return file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        return b"".join(archive.read(name) for name in archive.namelist() if not name.startswith("docProps"))


def put_back(place: Path, kept: Path | None) -> None:
    """The folder as it was kept, or nothing at all."""
    for leftover in place.parent.glob(f"{place.name}*"):
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()
    if kept is not None:
        for file in kept.iterdir():
            (shutil.copytree if file.is_dir() else shutil.copy2)(file, place.parent / file.name)


def keep(place: Path, kept: Path) -> None:
    kept.mkdir(parents=True)
    for file in place.parent.glob(f"{place.name}*"):
        (shutil.copytree if file.is_dir() else shutil.copy2)(file, kept / file.name)


def draw_quickly(patch: pytest.MonkeyPatch) -> None:
    """Figures are written as what they are specified by: whatever an option changes in them shows, in no time."""
    vl_convert = pytest.importorskip("vl_convert")

    def as_svg(spec: str, **_: Any) -> str:
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="400" height="300"><desc>{escape(str(spec))}</desc></svg>'
        )

    patch.setattr(vl_convert, "vegalite_to_svg", as_svg)
    patch.setattr(vl_convert, "vegalite_to_png", lambda spec, **_: as_svg(spec).encode())
    patch.setattr(vl_convert, "svg_to_pdf", lambda svg, **_: svg.encode())
    typst, schemapi = pytest.importorskip("typst"), pytest.importorskip("altair.utils.schemapi")
    patch.setattr(typst, "compile", lambda file, *, root, **_: b"".join(_files_of(Path(root))))
    patch.setattr(schemapi, "DEBUG_MODE", False)
    patch.setattr(schemapi.SchemaBase, "validate", classmethod(lambda *_, **__: None))


def _files_of(folder: Path) -> list[bytes]:
    return [file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()]


def with_option(base: list[str], parameter: click.Parameter, given: list[str]) -> list[str]:
    """The words of a command with this option instead of what they say of it; a flag that is there is taken away.

    >>> with_option(["a", "--seed", "1", "--json"], click.Option(["--seed"], type=int), ["--seed", "3"])
    ['a', '--json', '--seed', '3']
    >>> with_option(["a", "--json"], click.Option(["--json"], is_flag=True), ["--json"])
    ['a']
    """
    is_flag = getattr(parameter, "is_flag", False)
    rest: list[str] = []
    skipped = 0
    for word in base:
        if word in parameter.opts:
            skipped = 0 if is_flag else parameter.nargs
        elif skipped:
            skipped -= 1
        else:
            rest.append(word)
    return rest if is_flag and rest != base else [*rest, *given]


def complaint(
    base: Outcome, tried: Outcome, parameter: click.Parameter, given: list[str], *, is_taken_away: bool = False
) -> str:
    """What is wrong with how an option was taken; nothing if it acted, was refused by its name, or was remarked on."""
    text = " ".join(given)
    bare = [word.removeprefix("--").removesuffix("s") for word in parameter.opts]
    names = {str(parameter.name), *parameter.opts, *bare, *given}
    if tried.refusal:
        is_named = any(name.lower() in tried.refusal.lower() for name in names)
        return "" if is_named or is_taken_away else f"{text} is not named in: {tried.refusal}"
    if tried.shows_more_than(base):
        return ""
    new = [remark for remark in tried.remarks if remark not in base.remarks]
    if not any(name in remark for name in parameter.opts for remark in new):
        return f"{text} changed nothing, without a remark"
    changed = {name for name, value in tried.record.items() if value is not None and value != base.record.get(name)}
    if changed:
        return f"{text} had no effect and is recorded as if it had been used: {', '.join(sorted(changed))}"
    return ""


@dataclass(frozen=True)
class CommandTrials:
    """How the options of a command are tried: the command in each of its modes, with every option that has an example
    in its declaration. In modes of `only` no others than these are tried, and those of `where` in no other modes.
    Guards act only where there is something to guard against, which must be so in one mode at least. Results do not
    depend on what is neutral. `used` modes run in a folder where the same command ran before."""

    command: str
    modes: Mapping[str, Words]
    only: Mapping[str, frozenset[str]] = field(default_factory=dict)
    where: Mapping[str, frozenset[str]] = field(default_factory=dict)
    guards: frozenset[str] = frozenset()
    neutral: frozenset[str] = frozenset()
    used: frozenset[str] = frozenset()

    @property
    def options(self) -> Mapping[str, Option]:
        return options_by_command()[self.command]

    @property
    def tried(self) -> list[str]:
        examples = {name: option.example for name, option in self.options.items()}
        return [name for name, example in examples.items() if example is not None and name not in self.neutral]

    def in_used_folder(self) -> Iterator[tuple[str, str]]:
        """The used modes and the options that are tried there."""
        return ((mode, name) for mode, name in self.cases() if mode in self.used)

    def cases(self) -> Iterator[tuple[str, str]]:
        """The modes and options to try together."""
        for mode in self.modes:
            for name in self.tried:
                if name in self.only.get(mode, self.tried) and mode in self.where.get(name, self.modes):
                    yield mode, name
