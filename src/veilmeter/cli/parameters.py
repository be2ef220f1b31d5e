"""From declared options to the parameters of a command."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import typer

from veilmeter.cli.given import Given
from veilmeter.core.options import Option


def make_function(command: Callable[[Given], None], declared: Mapping[str, Option]) -> Callable[..., None]:
    """The function that typer makes a command of: its signature has one parameter per option."""

    def run(ctx: typer.Context, **words: Any) -> None:
        command(Given(ctx, declared))

    context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    run.__signature__ = inspect.Signature([context, *map(_parameter, declared.values())])  # type: ignore[attr-defined]
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
