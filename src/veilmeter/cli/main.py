"""The command `veilmeter`: finds the subcommand, and turns errors into one line and exit code 2."""

from __future__ import annotations

import atexit
import importlib
import inspect
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Annotated, Any, NoReturn

import typer

from veilmeter._version import __version__
from veilmeter.cli.command import CommaCommand, CommandGroup, Given, group_text
from veilmeter.cli.terminal import Exit, output_is_closed, prepare_streams
from veilmeter.core.errors import VeilmeterError, describe_error, explain_import_error
from veilmeter.core.files import as_veilmeter_error
from veilmeter.core.options import Option, all_options
from veilmeter.core.stopping import STOPPING, raise_on, was_stopped
from veilmeter.core.text import clean

# In the order in which a person meets them. Each name is a module of this package with a function `command` and the
# classes of its OPTIONS; what is heavy is imported inside that function, so that `--help` is quick.
SECTIONS = (
    ("Begin", ("demo", "check")),
    ("Assess", ("assess", "report", "compare", "gate")),
    ("Measure", ("measure", "similarity", "linkability", "singling-out", "invert", "utility")),
    ("Prepare", ("anonymize", "embed", "transcribe", "train", "challenge")),
    ("Look up", ("attackers", "cache")),
)
COMMANDS = tuple(name for _, names in SECTIONS for name in names)
LEAVING_SECONDS = 10.0  # for the last threads, and functions registered with `atexit`


def make_function(command: Callable[[Given], None], declared: Mapping[str, Option]) -> Callable[..., None]:
    """The function that typer makes a command of: its signature has one parameter per option."""

    def run(ctx: typer.Context, **words: Any) -> None:
        command(Given(ctx, declared))

    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    typed = [_parameter(option) for option in declared.values() if not option.in_file]
    run.__signature__ = inspect.Signature([context, *typed])  # type: ignore[attr-defined]
    run.__doc__ = command.__doc__
    return run


def _parameter(option: Option) -> inspect.Parameter:
    """Words are given as they are typed; the declaration says what they mean."""
    kind: Any = str
    if option.is_list or option.tables is not None:  # of tables the command line gives the names
        kind = list[str]
    elif option.count is not None:
        kind = types.GenericAlias(tuple, (str,) * option.count)
    default: Any = None
    if option.argument:
        about = typer.Argument(metavar=option.metavar or None, help=option.help, show_default=False)
        default = inspect.Parameter.empty if option.required else None
    else:
        about = typer.Option(
            *option.all_flags,
            metavar=option.metavar or None,
            help=option.help,
            show_default=False,
            rich_help_panel=option.group or None,
        )
    if option.is_flag:
        kind, default = bool, False
    elif default is None:
        kind = kind | None
    annotation = Annotated[kind, about]
    return inspect.Parameter(option.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


class Commands(CommandGroup):
    """Loads a subcommand's module only when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module = importlib.import_module(f"veilmeter.cli.{cmd_name.replace('-', '_')}")
        built: Any
        if hasattr(module, "app"):  # a group such as `cache clear`
            built = typer.main.get_command(module.app)
        else:
            single = typer.Typer(add_completion=False, rich_markup_mode="rich")
            # A module may bring its own kind of command, such as one whose options take several values (`Lists`).
            declared = all_options(module.OPTIONS)
            function = make_function(module.command, declared)
            single.command(cmd_name, cls=getattr(module, "COMMAND_CLASS", CommaCommand))(function)
            built = typer.main.get_command(single)
            built.declared = declared
        built.name = cmd_name
        return built

    def get_help(self, ctx: Any) -> str:
        return group_text(ctx, self, SECTIONS)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:  # here, as the library of the command line would end with 1
            if output_is_closed():
                raise SystemExit(Exit.PIPE_CLOSED) from None
            raise


app = typer.Typer(
    cls=Commands,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},  # also of every command below
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"veilmeter {__version__}")
        raise typer.Exit


@app.callback()
def veilmeter(
    version: bool = typer.Option(
        False, "--version", callback=_show_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Measure what a voice anonymizer still gives away: who can be recognized, by whom, and with what certainty."""


def main() -> NoReturn:
    try:
        code: Any = Exit.DONE
        try:
            run_command()
        except SystemExit as leave:
            code = leave.code or Exit.DONE
        _ignore_signals()
    except KeyboardInterrupt:  # before the command began, or after its end
        _ignore_signals()
        code = Exit.STOPPED
    _leave_at_once(code)


def run_command() -> None:
    """Run the command of this process's arguments; SystemExit where it ends with another code than 0."""
    # A closed terminal (SIGHUP), SIGQUIT and SIGTERM end the run as Ctrl-C does, so that files are closed whole and
    # workers go home; not where nohup or a shell had them ignored.
    ours = (signal.SIG_DFL, signal.default_int_handler)
    raise_on([number for number in STOPPING if signal.getsignal(number) in ours], KeyboardInterrupt)
    prepare_streams()
    _refuse_bytes(sys.argv[1:])
    try:
        app(prog_name="veilmeter")
    except SystemExit as leave:
        if isinstance(leave.__context__, BrokenPipeError):  # help and usage: typer and rich end with 1
            output_is_closed()
            raise SystemExit(Exit.PIPE_CLOSED) from None
        _flush()
        raise
    except Exception as error:
        if was_stopped():
            raise KeyboardInterrupt from None
        _explain(error)


def _explain(error: Exception) -> NoReturn:
    """Print what went wrong in a line or two, and end with its exit code."""
    if isinstance(error, VeilmeterError):
        _wrong(str(error))
    if isinstance(error, ModuleNotFoundError) and (missing := explain_import_error(error)) is not None:
        _wrong(str(missing))
    if isinstance(error, BrokenPipeError) and output_is_closed():
        raise SystemExit(Exit.PIPE_CLOSED) from None
    if isinstance(error, OSError):
        _wrong(str(as_veilmeter_error(error, error.filename or "a file or the output")))
    if isinstance(error, MemoryError):
        _wrong("there is not enough memory for this (use fewer --jobs, a smaller input or a larger machine)")
    _our_mistake(error)


def _refuse_bytes(words: list[str]) -> None:
    """Names go into JSON, tables and pages, which are UTF-8: better refused now than when the results are written."""
    for word in words:
        try:
            os.fsencode(word).decode()  # an ASCII terminal gives names that Python can't encode, though they are UTF-8
        except UnicodeError:
            _wrong(f"an argument is not UTF-8 text: {word.encode('utf-8', 'replace').decode()!r} (rename the file)")


def _ignore_signals() -> None:
    """The command has ended, and its exit code is known."""
    for number in STOPPING:
        signal.signal(number, signal.SIG_IGN)


def _leave_at_once(code: int) -> NoReturn:
    """End the process without taking every module and model apart, which takes Python seconds and in which libraries
    whose threads have just started sometimes abort. Threads of the command are waited for, and functions registered
    with `atexit` are called."""
    limit = threading.Timer(LEAVING_SECONDS, os._exit, (code,))
    limit.daemon = True
    limit.start()
    if code == Exit.STOPPED:
        _tell("stopped; the same command goes on from what is finished")
    for stream in filter(None, (sys.stderr, sys.stdout)):  # a plug-in may have taken one away
        with suppress(OSError):  # the terminal is closed, or the disk is full
            stream.flush()
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    os._exit(code)


def _flush() -> None:
    """Write the rest of the output here, as Python would complain about a closed pipe when it ends."""
    try:
        if sys.stdout is not None:  # a plug-in may have taken it away
            sys.stdout.flush()
    except BrokenPipeError:
        if output_is_closed():
            raise SystemExit(Exit.PIPE_CLOSED) from None


def _tell(text: str) -> None:
    """On standard error, which may be closed or full: the exit code tells it, too."""
    with suppress(OSError):
        print(text, file=sys.stderr)


def _wrong(text: str) -> NoReturn:
    _tell(f"error: {_printable(text)}")
    raise SystemExit(Exit.WRONG_INPUT) from None


def _our_mistake(error: Exception) -> NoReturn:
    if os.environ.get("VEILMETER_DEBUG"):
        raise error
    _tell(
        f"error: something went wrong inside veilmeter: {_printable(describe_error(error))}\n"
        "This is a mistake of ours. Please report it with what VEILMETER_DEBUG=1 and the same command print."
    )
    raise SystemExit(Exit.OUR_MISTAKE) from None


def _printable(text: str) -> str:
    """Ids and paths come from strangers, and terminals obey escape sequences."""
    return clean(text, keep="\n")


if __name__ == "__main__":
    main()
