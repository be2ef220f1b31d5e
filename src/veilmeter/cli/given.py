"""The options given on the command line: their values, and those that can't act, which are refused or reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding
from veilmeter.core.options import Option, build, option_without_effect, options_of, parse_words

if TYPE_CHECKING:
    from typer import Context

T = TypeVar("T")


class Given:
    """The options of a command that were given on the command line, also those with the value of their default."""

    def __init__(self, ctx: Context, declared: Mapping[str, Option]) -> None:
        self.declared = declared
        self.words: dict[str, Any] = {
            name: ctx.params[name]
            for name in declared
            if (source := ctx.get_parameter_source(name)) is not None and source.name == "COMMANDLINE"
        }

    def __contains__(self, name: str) -> bool:
        return name in self.words

    def values(self, kind: type) -> dict[str, Any]:
        """The plain values that were given for the options of this class."""
        return {name: parse_words(self.declared[name], self.words[name]) for name in options_of(kind) if name in self}

    def build(self, kind: type[T]) -> T:
        """The options of this class, with defaults for those that were not given."""
        built: T = build(kind, self.values(kind))
        return built

    def spell(self, name: str) -> str:
        """The option as it was written, with its value."""
        return " ".join(self.declared[name].spell(self.words[name]))

    def without_effect(self, reasons: Mapping[str, str]) -> list[Finding]:
        """One for every option that was given and has a reason here for having had no effect."""
        return [
            option_without_effect(*self.declared[name].spell(self.words[name]), reason=reason)
            for name, reason in reasons.items()
            if reason and name in self
        ]

    def find_unused(self, settings: Any, facts: Any) -> list[Finding]:
        """One for every option that was given and, by its declaration, had no effect."""
        return self.without_effect({name: self.declared[name].idle_reason(settings, facts) for name in self.words})

    def refuse(self, names: Iterable[str], reason: str, *, fix: str, path: Path | None = None) -> None:
        """An error if one of these options was given."""
        named = [self.spell(name) for name in names if name in self]
        if named:
            raise InputError(f"{', '.join(named)} can't act here: {reason}", path=path, fix=fix)
