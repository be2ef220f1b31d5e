"""Options that take several values after one name: `--lengths 1 3 30` beside `--lengths 1 --lengths 3`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from typer.core import TyperCommand

from veilmeter.core.errors import InputError


class Lists(TyperCommand):
    """Every repeatable option takes all words that follow it, up to the next option or `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        several = {name for one in self.params if getattr(one, "multiple", False) for name in one.opts}
        return super().parse_args(ctx, spread(args, several))


def spread(args: list[str], several: set[str]) -> list[str]:
    """Repeat the option's name before each of its values.

    >>> spread(["a", "--lengths", "1", "3", "--out", "b", "c"], {"--lengths"})
    ['a', '--lengths', '1', '--lengths', '3', '--out', 'b', 'c']
    """
    found: list[str] = []
    current: str | None = None
    taken = 0
    for number, word in enumerate(args):
        if word == "--":
            return found + args[number:]
        if word in several:
            current, taken = word, 0
            found.append(word)
        elif word.startswith("--") or (word.startswith("-") and not _number(word)):
            current = None
            found.append(word)
        else:
            if current is not None and taken:
                found.append(current)
            taken += 1
            found.append(word)
    return found


def _number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def numbers(words: Sequence[str] | None, option: str, *, least: int = 1) -> list[int]:
    """Whole numbers given several times or with commas, in order; 22,024 is 22 and 24, so no thousands separators.

    >>> numbers(["20,100", "1e3"], "--speakers")
    [20, 100, 1000]
    """
    found = []
    for word in ",".join(words or []).split(","):
        if not word.strip():
            continue
        try:
            value = float(word)
        except ValueError:
            raise InputError(f"{option} {word.strip()!r} is not a number", fix=f"as in {option} 20,100,1000") from None
        if value != value or abs(value) > 1e15 or value != int(value) or value < least:
            raise InputError(f"{option} {word.strip()} makes no sense", fix=f"give whole numbers from {least} up")
        found.append(int(value))
    return sorted(set(found))
