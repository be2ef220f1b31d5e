"""Every option of every command acts, is refused by its name, or is said to have had no effect: in every mode."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import click
import pytest
from tests.cli import corpus_trials, measuring_trials, run_trials
from tests.trying_options import (
    OUT,
    CommandTrials,
    Outcome,
    complaint,
    declared_parameters,
    draw_quickly,
    keep,
    options_by_command,
    put_back,
    run_command,
    with_option,
    words_for,
)

TRIALS: Mapping[str, CommandTrials] = {**measuring_trials.TRIALS, **corpus_trials.TRIALS, **run_trials.TRIALS}
DECLARED = declared_parameters()


class Workbench:
    """A folder with all inputs, and what the commands do in each mode as they are."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bases: dict[tuple[str, str], Outcome] = {}
        measuring_trials.write_inputs(folder)
        corpus_trials.write_inputs(folder)
        run_trials.write_inputs(folder)

    def run(self, command: str, mode: str, given: list[str]) -> Outcome:
        trials = TRIALS[command]
        out = self.folder / OUT
        kept = self.folder / "kept" / command / mode if mode in trials.used else None
        if kept is not None and not kept.exists():
            put_back(out, None)
            run_command(command, trials.modes[mode](self.folder))
            keep(out, kept)
        put_back(out, kept)
        return run_command(command, given, out)

    def base(self, command: str, mode: str) -> Outcome:
        if (command, mode) not in self.bases:
            base = self.run(command, mode, TRIALS[command].modes[mode](self.folder))
            tried = TRIALS[command].only.get(mode, {"anything"})  # a mode may be refused where only a guard is tried
            assert not base.refusal or tried <= TRIALS[command].guards, base.refusal
            self.bases[command, mode] = base
        return self.bases[command, mode]

    def try_option(self, command: str, mode: str, name: str, *more: str) -> tuple[Outcome, list[str], click.Parameter]:
        """What comes of an option, its words and its declaration."""
        parameter = next(parameter for parameter in DECLARED[command] if parameter.name == name)
        given = words_for(TRIALS[command].options[name])(self.folder)
        base = TRIALS[command].modes[mode](self.folder)
        return self.run(command, mode, [*with_option(base, parameter, given), *more]), given, parameter


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("options")
        draw_quickly(patch)
        corpus_trials.without_weights(patch, folder)
        yield Workbench(folder)


CASES = [
    pytest.param(command, mode, name, id=f"{command}-{mode}-{name}".replace(" ", "_"))
    for command, trials in TRIALS.items()
    for mode, name in trials.cases()
]


@pytest.mark.parametrize(("command", "mode"), [(command, mode) for command, of in TRIALS.items() for mode in of.modes])
def test_the_same_command_gives_the_same(bench: Workbench, command: str, mode: str) -> None:
    """Else any option would seem to act."""
    assert bench.run(command, mode, TRIALS[command].modes[mode](bench.folder)) == bench.base(command, mode)


@pytest.mark.parametrize(("command", "mode", "name"), CASES)
def test_an_option_acts_is_refused_or_is_said(bench: Workbench, command: str, mode: str, name: str) -> None:
    base = bench.base(command, mode)
    tried, given, parameter = bench.try_option(command, mode, name)
    if name in TRIALS[command].guards:
        return
    taken_away = given == [word for word in TRIALS[command].modes[mode](bench.folder) if word in parameter.opts]
    assert complaint(base, tried, parameter, given, is_taken_away=taken_away) == ""


GUARDED = [(command, name) for command, trials in TRIALS.items() for name in sorted(trials.guards)]


@pytest.mark.parametrize(("command", "name"), GUARDED)
def test_a_guard_acts_where_there_is_something_to_guard_against(bench: Workbench, command: str, name: str) -> None:
    modes = [mode for mode, option in TRIALS[command].cases() if option == name]
    assert modes
    for mode in reversed(modes):  # those that are there for a guard come last
        if bench.try_option(command, mode, name)[0] != bench.base(command, mode):
            return
    pytest.fail(f"{command}: {name} never acts")


def test_every_option_of_every_command_is_tried() -> None:
    """Taken from the commands' own declarations: a new command or option can't be forgotten."""
    commands = {name for name, options in options_by_command().items() if options}
    assert commands == {"assess", *TRIALS}  # assess has a test of its own
    tried = {name: {option for _, option in trials.cases()} for name, trials in TRIALS.items()}
    without = {f"{name} {option}" for name, trials in TRIALS.items() for option in set(trials.options) - tried[name]}
    assert {text.partition(" ")[2] for text in without} == {"jobs", "quiet", "overwrite", "offline"}
    assert {text for text in without if "offline" in text} == {"train offline"}


@pytest.mark.parametrize(
    ("command", "name"), [(command, name) for command, trials in TRIALS.items() for _, name in trials.in_used_folder()]
)
def test_a_used_folder_ends_as_a_new_one_would(bench: Workbench, command: str, name: str) -> None:
    """Or is refused; then --overwrite, where a command has it, makes it a new one."""
    (used,) = TRIALS[command].used
    new, _, _ = bench.try_option(command, "a folder", name)
    tried, _, _ = bench.try_option(command, used, name)
    if "--overwrite" in tried.refusal:
        tried, _, _ = bench.try_option(command, used, name, "--overwrite")
        assert not tried.refusal
    if not tried.refusal:
        assert tried.files == new.files
