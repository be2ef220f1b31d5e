"""A file that grows by lines while work goes on, so that a run that was killed can continue."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from veilmeter.core.errors import VeilmeterError
from veilmeter.core.files import write_text


class Journal:
    """Open it with what is known, add lines as they come, close it at the end. A kill leaves at most one broken line,
    at the end of the file; `whole_lines` leaves it out."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._handle: int | None = None

    def open(self, lines: Iterable[str]) -> None:
        """Write the file again with these lines, and keep it open for more."""
        write_text(self.path, "".join(lines))
        self._handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def add(self, lines: Iterable[str]) -> None:
        """Hand the lines to the system at once: they survive the end of this process, whatever ends it."""
        assert self._handle is not None
        data = "".join(lines).encode()
        try:
            while data:
                data = data[os.write(self._handle, data) :]
        except OSError as error:
            raise VeilmeterError(
                error.strerror or str(error),
                path=self.path,
                fix="fix it and run the same command again; what was done is kept",
            ) from None

    def close(self, *, remove: bool = False) -> None:
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
        if remove:
            self.path.unlink(missing_ok=True)


def whole_lines(path: Path) -> Iterator[str]:
    """The lines of a journal without one that was cut off by a kill."""
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            if line.endswith("\n"):
                yield line
