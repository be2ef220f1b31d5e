"""Finding audio files below a root without leaving it."""

from __future__ import annotations

import importlib.util
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from veilmeter.core.errors import Problem


def locate(
    value: str, folder: Path, roots: Sequence[Path] = (), *, more: Sequence[Path] = (), absolute: bool = True
) -> Path | tuple[str, str]:
    """The regular file that `value` names, or the kind of what is wrong and the words for it.

    Relative paths are sought below `folder`, then below each of `more`.
    """
    confined = [os.path.realpath(root) for root in (folder, *roots)] if roots else None
    if "\0" in value or not value:
        return "bad-line", "not a path"
    if os.path.isabs(value):
        if confined is None and not absolute and not inside(os.path.realpath(value), [os.path.realpath(folder)]):
            return "outside-root", "it leads out of its folder; give the folder with --root if you trust it"
        if not os.path.isfile(value):
            return "missing-audio", "there is no such file"
        if confined is not None and not inside(os.path.realpath(value), confined):
            return "outside-root", "it lies outside the folders given with --root"
        return Path(value)
    outside = False
    for base in (folder, *more):
        path = base / value
        if path.is_file():
            if inside(os.path.realpath(path), confined or [os.path.realpath(base)]):
                return path
            outside = True
    if outside or not inside(os.path.realpath(folder / value), [os.path.realpath(base) for base in (folder, *more)]):
        return "outside-root", "it leads out of its folder; give the folder with --root if you trust it"
    return "missing-audio", "there is no such file"


def inside(real: str, allowed: Sequence[str]) -> bool:
    """Whether a path without links lies below one of the folders (without links too)."""
    return any(real == root or real.startswith(root.rstrip(os.sep) + os.sep) for root in allowed)


SUFFIXES = frozenset(
    [".wav", ".flac", ".mp3", ".ogg", ".opus", ".oga", ".aif", ".aiff", ".aifc", ".au", ".snd", ".caf", ".w64", ".rf64",
     ".sph", ".nist"]
)  # fmt: skip
"""What libsndfile reads."""
MEDIA_SUFFIXES = frozenset(
    [".m4a", ".mp4", ".m4b", ".aac", ".wma", ".amr", ".awb", ".webm", ".mka", ".mkv", ".mov", ".3gp", ".3g2", ".avi",
     ".ac3", ".mp2", ".weba", ".wmv", ".spx", ".gsm", ".ape", ".wv"]
)  # fmt: skip
"""What PyAV reads where it is installed."""
_RAW = frozenset([".raw", ".pcm", ".ulaw", ".alaw", ".vox", ".shn", ".dss", ".ds2"])
_DEEPEST = 40
_FORMAT = "recordings of this kind can't be read here"


def media_installed() -> bool:
    """Whether PyAV is there, which reads the mp4 family."""
    return importlib.util.find_spec("av") is not None


@dataclass
class Walk:
    """Audio files below `root`, sorted by name, hidden ones left out; links are followed as long as they stay inside.

    `problems` fills while it is iterated over. With `names_only` nobody opens the files, and those behind links that
    lead out are given too.
    """

    root: Path
    roots: Sequence[Path] = ()
    problems: list[Problem] = field(default_factory=list)
    names_only: bool = False

    def __iter__(self) -> Iterator[Path]:
        self._allowed = [os.path.realpath(r) for r in (self.root, *self.roots)]
        self._media = media_installed()
        yield from self._below(self.root, (os.path.realpath(self.root),))

    def _below(self, folder: Path, trail: tuple[str, ...]) -> Iterator[Path]:
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            self._say("unreadable-folder", f"the folder can't be read: {error.strerror}", folder)
            return
        for entry in entries:
            path = folder / entry.name
            if entry.name.startswith("."):
                continue
            try:
                is_folder = entry.is_dir()
            except OSError as error:
                self._say("symlink-loop", f"the link can't be followed: {error.strerror}", path)
                continue
            if is_folder:
                real = os.path.realpath(path) if entry.is_symlink() else os.path.join(trail[-1], entry.name)
                if real in trail or len(trail) > _DEEPEST:
                    self._say("symlink-loop", "the link leads back to a folder above it", path)
                elif entry.is_symlink() and not inside(real, self._allowed):
                    yield from self._outside(path)
                else:
                    yield from self._below(path, (*trail, real))
            elif self._takes(path, entry.is_symlink()):
                yield path

    def _takes(self, path: Path, is_link: bool) -> bool:
        """Whether a file is a recording that may be read; if it may not, that is reported."""
        suffix = path.suffix.lower()
        if suffix in _RAW or (suffix in MEDIA_SUFFIXES and not self._media):
            media = "" if suffix in _RAW else ", or run: pip install 'veilmeter[media]'"
            self._say("unread-format", _FORMAT, path, f"convert it to FLAC or WAV{media}")
            return False
        if suffix not in SUFFIXES and suffix not in MEDIA_SUFFIXES:
            return False
        if is_link and not os.path.exists(path):
            self._say("missing-audio", "the link leads nowhere", path)
            return False
        if is_link and not self.names_only and not inside(os.path.realpath(path), self._allowed):
            self._say_outside(path)
            return False
        return True

    def _outside(self, folder: Path) -> Iterator[Path]:
        """The content of a linked folder elsewhere: the names of the recordings in it, nothing deeper, or a problem."""
        if not self.names_only:
            self._say_outside(folder)
            return
        try:
            names = sorted(os.listdir(folder))
        except OSError:
            return
        yield from (folder / name for name in names if Path(name).suffix.lower() in SUFFIXES | MEDIA_SUFFIXES)

    def _say_outside(self, path: Path) -> None:
        fix = "give the folder it leads to with --root if you trust it"
        self._say("outside-root", "the link leads out of the corpus", path, fix)

    def _say(self, kind: str, what: str, path: Path, fix: str = "") -> None:
        self.problems.append(Problem(kind, what, str(path), fix=fix))


def sample(root: Path, most: int = 64) -> list[Path]:
    """The names of the first few audio files, to recognize a layout by."""
    sampled: list[Path] = []
    for path in Walk(root, names_only=True):
        sampled.append(path)
        if len(sampled) == most:
            break
    return sampled


def named(root: Path, pattern: re.Pattern[str]) -> bool:
    """Whether recordings are named like this, as far as a sample shows, in a folder that no Kaldi list describes."""
    sampled = sample(root)
    return bool(sampled) and all(pattern.fullmatch(path.stem) for path in sampled) and not (root / "wav.scp").exists()
