"""VoicePrivacy: `data/libri_test_{enrolls,trials_f,trials_m}<suffix>/`, each a Kaldi data folder or with `wav/`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from veilmeter.core.errors import InputError, Problem
from veilmeter.data.corpus import Utterance
from veilmeter.data.formats import kaldi_data

# The suffix of anonymized data begins with its underscore: `_anon`, `_mcadams`.
_FOLDER = re.compile(r"(?P<set>[a-z]+_(?:test|dev))_(?P<role>enrolls|trials_[fm](?:_all|_common)?)(?P<suffix>_\w+)?")


def recognise(root: Path) -> bool:
    return bool(_folders(root))


def read(
    root: Path, *, roots: Sequence[Path] = (), part: str | None = None, suffix: str | None = None
) -> tuple[list[Utterance], list[Problem]]:
    """All sets found (or the one named by `part`, such as libri_test), of one suffix."""
    folders = _folders(root)
    if part is not None:
        folders = [entry for entry in folders if entry[1] == part]
        if not folders:
            raise InputError(f"there is no data set {part!r}", path=root)
    suffixes = sorted({entry[3] for entry in folders})
    if suffix is None and len(suffixes) > 1:
        words = ", ".join(repr(s) if s else "'' (the original)" for s in suffixes)
        raise InputError(f"there are several variants: {words}", path=root, fix="say which with --suffix")
    wanted = suffixes[0] if suffix is None and suffixes else suffix
    if wanted not in suffixes:
        raise InputError(f"no folder has the suffix {wanted!r}", path=root, fix=f"there are {', '.join(suffixes)}")
    seen: dict[str, Utterance] = {}
    problems: list[Problem] = []
    for folder, name, role, its_suffix in folders:
        if its_suffix != wanted:
            continue
        found, its_problems = kaldi_data.read(folder, roots=roots)
        problems += its_problems
        for utterance in found:
            roles = {"set": name, "role": role}
            # VCTK's common trials are among all trials: the same recording, not a second one.
            seen.setdefault(utterance.id, replace(utterance, attributes={**utterance.attributes, **roles}))
    return list(seen.values()), problems


def variant(root: Path, *, original: bool, wanted: str | None) -> str | None:
    """Which suffix to read for the original or for the anonymized speech of an assessment, where one folder holds both:
    the original is the one without suffix, the anonymized the one that was asked for, or the only other one."""
    suffixes = {entry[3] for entry in _folders(root)}
    if original:
        return "" if "" in suffixes else None
    others = sorted(suffixes - {""})
    if wanted is None and len(suffixes) == 2 and len(others) == 1:
        return others[0]
    return wanted


def data_folders(root: Path, suffix: str | None = None) -> list[Path]:
    """The data folders of one variant (of the only one, if there is no other)."""
    folders = _folders(root)
    if suffix is None and len({entry[3] for entry in folders}) > 1:
        return []
    return [entry[0] for entry in folders if suffix is None or entry[3] == suffix]


def _folders(root: Path) -> list[tuple[Path, str, str, str]]:
    """(folder, set, role, suffix) of each."""
    found = []
    for base in (root, root / "data"):
        if not base.is_dir():
            continue
        for folder in sorted(base.iterdir()):
            name = _FOLDER.fullmatch(folder.name)
            if name and folder.is_dir() and kaldi_data.recognise(folder):
                found.append((folder, name["set"], name["role"], name["suffix"] or ""))
    return found
