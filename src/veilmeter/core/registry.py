"""One registry per kind of thing that is chosen by name: what veilmeter brings, and what other packages add.

A package adds an entry under an entry point group such as `veilmeter.measures`; no change to veilmeter is needed.
"""

from __future__ import annotations

import difflib
import importlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from veilmeter.core.errors import InputError, foreign_errors

Thing = TypeVar("Thing")


def find_entry_points(group: str) -> tuple[EntryPoint, ...]:
    """What installed packages add to a group. Looking through all of them takes long: it is done again only when
    something was installed or removed, which changes a folder that Python imports from."""
    folders = []
    for folder in sys.path:
        try:
            folders.append((folder, os.stat(folder or ".").st_mtime_ns))
        except OSError:
            continue
    return _find_entry_points(group, tuple(folders))


@lru_cache(maxsize=64)
def _find_entry_points(group: str, _folders: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))


class Registry(Generic[Thing]):
    """Things by name. Built-in ones are given as such, or as `module:attribute` and imported when first asked for."""

    def __init__(
        self,
        kind: str,
        group: str,
        built_in: Mapping[str, str | Thing] | Callable[[], Mapping[str, str | Thing]],
        *,
        accepts: Callable[[object], bool] | None = None,
        forms: Sequence[str] = (),
    ) -> None:
        """`built_in` may be a function, which is called when one is first asked for; `forms` are other ways to name one
        than by a registered name, such as `module:function`, for errors."""
        self.kind = kind
        self.group = group
        self._given = built_in
        self._accepts = accepts
        self._forms = tuple(forms)
        self._loaded: dict[str, Thing] = {}
        self.admitted: set[str] = set()

    @cached_property
    def _built_in(self) -> dict[str, str | Thing]:
        return dict(self._given() if callable(self._given) else self._given)

    @property
    def names(self) -> list[str]:
        """The built-in ones in their order, then those of installed packages."""
        added = sorted(entry.name for entry in find_entry_points(self.group))
        return list(dict.fromkeys([*self._built_in, *self._loaded, *added]))

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)

    def __getitem__(self, name: str) -> Thing:
        """The thing of that name; an InputError that suggests the nearest one if there is none."""
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def items(self) -> Iterator[tuple[str, Thing]]:
        return ((name, self[name]) for name in self.names)

    def register(self, name: str, thing: Thing) -> None:
        """For this process only, as from a notebook; a name can't be taken twice."""
        if name in self:
            raise InputError(f"there is already {self.article} called {name!r}", fix="choose another name")
        self._loaded[name] = self._check(name, thing)

    def admit(self, name: str, thing: Thing) -> None:
        """For those who ask for it by name in this process, and for nobody else; it may replace one that was admitted
        before, as a notebook's cell is run again, but none that is registered."""
        if name in self.names and name not in self.admitted:
            raise InputError(f"there is already {self.article} called {name!r}", fix="choose another name")
        self._loaded[name] = self._check(name, thing)
        self.admitted.add(name)

    @property
    def article(self) -> str:
        return f"{'an' if self.kind[0] in 'aeiou' else 'a'} {self.kind}"

    def _load(self, name: str) -> Thing:
        if name in self._built_in:
            given = self._built_in[name]
            if not isinstance(given, str):
                return given
            module, _, attribute = given.partition(":")
            thing: Thing = getattr(importlib.import_module(module), attribute)
            return thing
        for entry in find_entry_points(self.group):
            if entry.name == name:
                with foreign_errors(f"the {self.kind} {name!r} of {entry.value} can't be loaded"):
                    loaded = entry.load()
                return self._check(name, loaded)
        choices = ", ".join([*self.names, *self._forms])
        near = difflib.get_close_matches(name, self.names, 1)
        raise InputError(
            f"no {self.kind} called {name!r}",
            fix=(f"did you mean {near[0]!r}? " if near else "") + f"choose from {choices}",
        )

    def _check(self, name: str, thing: Thing) -> Thing:
        if self._accepts is not None and not self._accepts(thing):
            raise InputError(
                f"{name!r} is not {self.article}: it is a {type(thing).__name__}", fix="see docs/how-to/extending.md"
            )
        return thing
