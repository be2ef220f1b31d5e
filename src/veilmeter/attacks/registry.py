"""Every attacker by name: those that veilmeter brings, and those of installed packages (`veilmeter.attacks`).

Two communities use the same words for different things, so attackers are defined by what they have: the challenges'
semi-informed attacker is the informed one here and in Vauquier et al. 2025.
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Sequence

from veilmeter.attacks.attacker import Attacker, PlainWords
from veilmeter.core.errors import InputError
from veilmeter.core.registry import Registry


def _own_attackers() -> dict[str, str | Attacker]:
    """The attackers at the top of the modules of `veilmeter.attacks.attackers`, in their order."""
    package = importlib.import_module("veilmeter.attacks.attackers")
    found: dict[str, Attacker] = {}
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for thing in vars(importlib.import_module(module.name)).values():
            for entry in thing if isinstance(thing, tuple) else (thing,):
                if isinstance(entry, Attacker) and found.setdefault(entry.name, entry) is not entry:
                    raise InputError(f"two attackers are called {entry.name!r}; the second is in {module.name}")
    return {entry.name: entry for entry in sorted(found.values(), key=lambda entry: entry.order)}


class AttackerRegistry(Registry[Attacker]):
    """Attackers by name, in the order in which they are run and reported."""

    def __init__(self) -> None:
        super().__init__(
            "attacker", "veilmeter.attacks", _own_attackers, accepts=lambda thing: isinstance(thing, Attacker)
        )

    def _checked(self, name: str, thing: Attacker) -> Attacker:
        checked = super()._checked(name, thing)
        if checked.name != name:
            raise InputError(f"the attacker {checked.name!r} is registered as {name!r}", fix="use one name for it")
        return checked


ATTACKERS = AttackerRegistry()

ADAPTIVE, FUSED = "adaptive", "fused"  # what each extractor gives away is measured by the first, all together by FUSED


def default_attackers() -> list[str]:
    """Those that run unless others are asked for."""
    return [name for name, attacker in ATTACKERS.items() if attacker.default and not attacker.apart]


def attackers_for(measures: Sequence[str]) -> list[str]:
    """The attackers that run where none was named, as far as their measures are asked for."""
    return [name for name in default_attackers() if ATTACKERS[name].family in ("", *measures)]


def attacker(name: str) -> Attacker:
    """By name or alias.

    >>> attacker("retrained").name
    'informed'
    >>> attacker("vpc-semi-informed").vauquier2025
    'informed'
    """
    key = name.strip().lower().replace("_", "-").replace(" ", "-")
    for known, found in ATTACKERS.items():
        if key == known or key in found.aliases:
            return found
    names = [alias for known, found in ATTACKERS.items() for alias in (known, *found.aliases)]
    near = difflib.get_close_matches(key, names, 1)
    raise InputError(
        f"there is no attacker called {name!r}",
        fix=f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(ATTACKERS)}",
    )


def attacker_name(name: str) -> str:
    """The name that an attacker has here."""
    return attacker(name).name


def plain_words(name: str, about: str = "") -> PlainWords:
    """The plain words for an attacker of a run; what the run says `about` it where it is not installed here.

    >>> plain_words("lazy-informed").who, plain_words("mine", "reads transcripts").who
    ('someone who has your anonymizer', 'someone who reads transcripts')
    """
    if name in ATTACKERS:
        return ATTACKERS[name].plain_words
    return PlainWords(f"someone who {about}" if about else f"the attacker called {name}")


def color_of(name: str) -> str:
    """The color that an attacker has in every figure; empty for one without, and for other names.

    >>> color_of("informed"), color_of("mine")
    ('#D55E00', '')
    """
    return ATTACKERS[name].color if name in ATTACKERS else ""
