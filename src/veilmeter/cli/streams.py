"""Standard output and error on any terminal: what it can't show is spelled out, and a closed pipe is no error."""

from __future__ import annotations

import codecs
import errno
import os
import select
import sys
import unicodedata
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

_SPELLED = {
    "→": "->", "←": "<-", "↔": "<->", "↑": "^", "↓": "v", "–": "-", "—": "-", "−": "-", "·": ".", "×": "x", "…": "...",
    "≤": "<=", "≥": ">=", "≈": "~", "±": "+-", "“": '"', "”": '"', "‘": "'", "’": "'", "•": "*",
    "π": "pi", "α": "alpha", "█": "#", "░": ".", "✓": "ok", "✗": "x",
}  # fmt: skip
_NAME = "veilmeter-spell"


def spelled(text: str) -> str:
    """The text with nothing but ASCII in it.

    >>> spelled("Noé → 5 ≥ 3")
    'Noe -> 5 >= 3'
    """
    return "".join(_one(character) for character in text)


def _one(character: str) -> str:
    if character.isascii():
        return character
    if character in _SPELLED:
        return _SPELLED[character]
    plain = unicodedata.normalize("NFKD", character).encode("ascii", "ignore").decode()
    return plain or "?"


def _spell(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return spelled(error.object[error.start : error.end]), error.end


def prepare_streams() -> None:
    """A terminal that knows only ASCII gets ASCII; it must not end a run that has done its work."""
    codecs.register_error(_NAME, _spell)
    # Python has no stream at all where a shell closed it (`>&-`); nobody wants to read it.
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors=_NAME)


def output_is_closed() -> bool:
    """Whether nobody reads standard output any more. What was still to be written is then dropped, so that Python does
    not complain about it when it ends."""
    try:
        number = sys.stdout.fileno()
        poll = select.poll()
        poll.register(number, 0)
        closed = any(event & select.POLLERR for _, event in poll.poll(0))
    except (OSError, ValueError, AttributeError):  # not a real stream, or a system without poll
        return False
    if closed:
        os.dup2(os.open(os.devnull, os.O_WRONLY), number)
    return closed


def console() -> Console:
    """Where tables go. Rich's own way with a closed pipe is to end with 1 and to hide that it was closed."""
    from rich.console import Console

    class OutputConsole(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))

    return OutputConsole(highlight=False)
