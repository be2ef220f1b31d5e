"""Ids of utterances that two sides write differently: with a path, an extension, or another Unicode form."""

from __future__ import annotations

import posixpath
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from veilmeter.core.findings import Finding, Reference, warning
from veilmeter.data.formats.walk import MEDIA_SUFFIXES, SUFFIXES


def normal_id(text: str) -> str:
    """An id without an audio file's extension, in one Unicode form (NFKC), with / between folders.

    >>> normal_id("a\\\\b.1.WAV"), normal_id("./a/b.1"), normal_id("ＡＢ")
    ('a/b.1', 'a/b.1', 'AB')
    """
    name = unicodedata.normalize("NFKC", text).replace("\\", "/")
    while name.startswith("./"):
        name = name[2:]
    stem, extension = posixpath.splitext(name)
    return stem if stem and extension.lower() in SUFFIXES | MEDIA_SUFFIXES else name


@dataclass(frozen=True, slots=True)
class IdMatch:
    """Ids of a first side with their partner on a second, and how many were found by which way of writing them alike.

    `ways` counts `exact`, `form` (extension, Unicode form), `path` (folders that all ids of a side share) and `name`
    (the file's name alone). `ambiguous` are ids of the first side with several possible partners: they have none.
    """

    partner: Mapping[str, str]
    ways: Mapping[str, int] = field(default_factory=dict)
    ambiguous: tuple[str, ...] = ()

    def findings(self, first: str, second: str, *, examples: bool = True) -> list[Finding]:
        """What was decided about ids that differ; `first` and `second` say what the two sides are."""
        differing = [(mine, other) for mine, other in self.partner.items() if mine != other and examples][:1]
        mine, other = [Reference("recording", name) for name in differing[0]] if differing else (None, None)
        matched = [
            Finding.of("ids_matched", count=self.ways[way], first=first, second=second, way=way, mine=mine, other=other)
            for way in ("form", "path", "name")
            if self.ways.get(way)
        ]
        if not self.ambiguous:
            return matched
        example = Reference("recording", self.ambiguous[0]) if examples else None
        lost = len(self.ambiguous)
        return [*matched, warning("ids_ambiguous", count=lost, first=first, second=second, example=example)]


def match_ids(first: Iterable[str], second: Iterable[str]) -> IdMatch:
    """Partners by id. What is written alike comes first; then other ways of writing, each only where it is unique.

    Names of files alone are compared only if nothing else matches anything: in a folder per speaker `a/1` and `b/1` are
    two people.

    >>> match_ids(["x/a.wav", "x/b.wav"], ["a", "b", "c"]).partner
    {'x/a.wav': 'a', 'x/b.wav': 'b'}
    >>> match_ids(["a/1", "a/2"], ["b/1", "a/2"]).partner
    {'a/2': 'a/2'}
    """
    ours, theirs = list(dict.fromkeys(first)), list(dict.fromkeys(second))
    there = set(theirs)
    partner = {name: name for name in ours if name in there}
    ways = Counter({"exact": len(partner)})
    ambiguous: dict[str, None] = {}
    everybody = len(partner) == min(len(ours), len(theirs))
    for way, mine, other in () if everybody else _ways(ours, theirs):
        if way == "name" and partner:
            break
        left = [name for name in ours if name not in partner]
        taken = set(partner.values())
        free = [name for name in theirs if name not in taken]
        if not left or not free:
            break
        by_key: dict[str, list[str]] = {}
        for name in free:
            by_key.setdefault(other[name], []).append(name)
        counts = Counter(mine[name] for name in left)
        for name in left:
            candidates = by_key.get(mine[name], [])
            if len(candidates) == 1 and counts[mine[name]] == 1:
                partner[name] = candidates[0]
                ways[way] += 1
            elif candidates:
                ambiguous[name] = None
    lost = tuple(name for name in ambiguous if name not in partner)
    return IdMatch({name: partner[name] for name in ours if name in partner}, dict(ways), lost)


def _ways(ours: Sequence[str], theirs: Sequence[str]) -> Iterable[tuple[str, Mapping[str, str], Mapping[str, str]]]:
    """How ids of both sides are written to compare them, from the surest way to the least sure."""
    mine, other = ({name: normal_id(name) for name in side} for side in (ours, theirs))
    yield "form", mine, other
    yield "path", _without_shared_folders(mine), _without_shared_folders(other)
    yield "name", _file_names(mine), _file_names(other)


def _file_names(forms: Mapping[str, str]) -> dict[str, str]:
    return {name: posixpath.basename(form) for name, form in forms.items()}


def _without_shared_folders(forms: Mapping[str, str]) -> dict[str, str]:
    folders = {posixpath.dirname(form) for form in forms.values()}
    absolute = {folder.startswith("/") for folder in folders}
    shared = posixpath.commonpath(folders) if folders and len(absolute) == 1 else ""
    return {name: form[len(shared) :].lstrip("/") if shared else form for name, form in forms.items()}
