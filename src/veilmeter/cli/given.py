"""What was given on the command line and can't act: it is refused, or said. Nothing is passed over in silence."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.core.errors import InputError

if TYPE_CHECKING:
    from typer import Context


def is_given(ctx: Context, name: str) -> bool:
    """Whether the option stands on the command line, be it with its default."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def spelled(ctx: Context, name: str) -> str:
    """The option as it is written, with its value."""
    option = next(parameter for parameter in ctx.command.params if parameter.name == name)
    value: Any = ctx.params[name]
    if isinstance(value, bool):
        return option.opts[0]
    values = value if isinstance(value, list | tuple) else [value]
    return " ".join([option.opts[0], *map(str, values)])


def without_effect(ctx: Context, reasons: Mapping[str, str]) -> list[str]:
    """A sentence for every option that was given and has a reason here for having had no effect."""
    return [
        f"{spelled(ctx, name)} had no effect: {reason}"
        for name, reason in reasons.items()
        if reason and is_given(ctx, name)
    ]


def refuse(ctx: Context, names: Iterable[str], reason: str, *, fix: str, path: Path | None = None) -> None:
    """An error if one of these options was given."""
    named = [spelled(ctx, name) for name in names if is_given(ctx, name)]
    if named:
        raise InputError(f"{', '.join(named)} can't act here: {reason}", path=path, fix=fix)
