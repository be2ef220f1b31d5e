"""Reading lists: UTF-8, line by line, with an error that names the line."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from veilmeter.core.errors import InputError

LONGEST_LINE = 1 << 20


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """(number, line) of every line that is not blank, without its end."""
    try:
        with open(path, encoding="utf-8-sig", newline="\n") as handle:
            number = 0
            while line := handle.readline(LONGEST_LINE):
                number += 1
                if len(line) == LONGEST_LINE:
                    raise InputError("the line has more than a million characters", path=path, line=number)
                if line.strip():
                    yield number, line.rstrip("\r\n")
    except UnicodeDecodeError:
        raise InputError("the file is not UTF-8 text", path=path, fix="convert it, e.g. with iconv") from None
    except OSError as error:
        raise InputError(f"the file can't be read: {error.strerror}", path=path) from None


def read_texts(path: Path) -> dict[str, str]:
    """Utterance to its words, from lines of an id and words (Kaldi's `text`, LibriSpeech's `.trans.txt`).

    Empty where the file is missing. An id without words has no known text; if an id occurs twice, the first
    counts.
    """
    texts: dict[str, str] = {}
    if path.is_file():
        for _, line in read_lines(path):
            name, *words = line.split()
            if words:
                texts.setdefault(name, " ".join(words))
    return texts
