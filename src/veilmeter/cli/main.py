"""The command `veilmeter`: finds the subcommand, and turns errors into one line and exit code 2."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from veilmeter._version import __version__
from veilmeter.core.errors import VeilmeterError
from veilmeter.core.extras import explained
from veilmeter.core.files import said
from veilmeter.core.text import clean

# In the order in which a person meets them. Each name is a module of this package with a function `command`;
# what is heavy is imported inside that function, so that `--help` is quick.
COMMANDS = (
    "demo",
    "check",
    "assess",
    "report",
    "compare",
    "gate",
    "measure",
    "similarity",
    "linkability",
    "singling-out",
    "invert",
    "anonymize",
    "embed",
    "transcribe",
    "utility",
    "train",
    "attackers",
    "cache",
)


class Commands(TyperGroup):
    """Loads a subcommand's module only when it is asked for."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [name for name in COMMANDS if self.get_command(ctx, name) is not None]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in COMMANDS:
            return None
        module_name = f"veilmeter.cli.{cmd_name.replace('-', '_')}"
        try:
            module = importlib.import_module(module_name)
        except ModuleNotFoundError as error:
            if error.name != module_name:
                raise
            return None
        if hasattr(module, "app"):  # a group such as `cache clear`
            built = typer.main.get_command(module.app)
        else:
            single = typer.Typer(add_completion=False, rich_markup_mode="rich")
            # A module may bring its own kind of command, such as one whose options take several values (`Lists`).
            single.command(cmd_name, cls=getattr(module, "COMMAND_CLASS", None))(module.command)
            built = typer.main.get_command(single)
        built.name = cmd_name
        return built


app = typer.Typer(
    cls=Commands,
    add_completion=False,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"veilmeter {__version__}")
        raise typer.Exit


@app.callback()
def veilmeter(
    version: bool = typer.Option(False, "--version", callback=_show_version, is_eager=True, help="Print the version."),
) -> None:
    """Measure what a voice anonymizer still gives away: who can be recognized, by whom, and how surely."""


STOPPED = 130


def main() -> None:
    signal.signal(signal.SIGTERM, _stop)
    try:
        app()
    except VeilmeterError as error:
        print(f"error: {_printable(str(error))}", file=sys.stderr)
        raise SystemExit(2) from None
    except SystemExit as leave:
        if leave.code == STOPPED:  # typer turns Ctrl-C into this without a word
            print("stopped; what was done is kept, the same command goes on from there", file=sys.stderr)
        raise
    except BrokenPipeError:
        sys.stderr.close()
        raise SystemExit(141) from None
    except ModuleNotFoundError as error:
        if (missing := explained(error)) is None:
            _our_mistake(error)
        print(f"error: {missing}", file=sys.stderr)
        raise SystemExit(2) from None
    except OSError as error:
        print(f"error: {_printable(str(said(error, error.filename or 'a file')))}", file=sys.stderr)
        raise SystemExit(2) from None
    except Exception as error:
        _our_mistake(error)


def _our_mistake(error: Exception) -> NoReturn:
    if os.environ.get("VEILMETER_DEBUG"):
        raise error
    print(
        f"error: something went wrong inside veilmeter: {type(error).__name__}: {_printable(str(error))}\n"
        "This is a mistake of ours. Please report it with what VEILMETER_DEBUG=1 and the same command print.",
        file=sys.stderr,
    )
    raise SystemExit(70) from None


def _stop(_number: int, _frame: Any) -> None:
    """SIGTERM ends the run as Ctrl-C does, so that files are closed whole and workers go home."""
    raise KeyboardInterrupt


def _printable(text: str) -> str:
    """Ids and paths come from strangers, and terminals obey escape sequences."""
    return clean(text, keep="\n")


if __name__ == "__main__":
    main()
