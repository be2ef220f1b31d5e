"""Utterances of two sides, such as original and anonymized, matched by their ids.

Ids may differ by folders, an extension or their Unicode form. The original side decides who spoke and what is known of
that person: the anonymized side's own columns describe the pseudo-voice and are kept as `pseudo_gender` and the like. A
recording whose sides name different speakers is left out, because either may be wrong.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, Reference, warning
from veilmeter.data.embeddings import DRAW_COLUMNS, PSEUDO, Embeddings, Strings, strings
from veilmeter.data.layouts import MEDIA_SUFFIXES, SUFFIXES


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
        """Decisions about ids that differ; `first` and `second` say what the two sides are."""
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


REASONS = ("only_original", "only_anonymized", "speaker_differs")  # why an utterance is left out


@dataclass(frozen=True, eq=False)
class Matched:
    """Both sides of the same utterances, in the order and with the ids, speakers and attributes of the original.

    `unmatched` counts what was left out by reason, `left_out` names each of these utterances with its reason, and
    `ids` are the findings about ids that were matched although they are written differently.
    """

    original: Embeddings
    anonymized: Embeddings
    unmatched: Mapping[str, int]
    left_out: tuple[tuple[str, str], ...] = ()
    ids: tuple[Finding, ...] = ()

    def __len__(self) -> int:
        return len(self.original)

    def findings(self) -> list[Finding]:
        """The utterances left out, and which ids were matched although they differ."""
        if not any(self.unmatched.values()):
            return list(self.ids)
        return [*self.ids, warning("utterances_unmatched", **self.unmatched)]


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """The utterances of one side and who speaks in each."""

    utterances: Sequence[str] | Strings
    speakers: Sequence[str] | Strings

    @classmethod
    def concatenate(cls, parts: Iterable[Listed]) -> Listed:
        rows = [row for part in parts for row in zip(part.utterances, part.speakers, strict=True)]
        return cls([utterance for utterance, _ in rows], [speaker for _, speaker in rows])


@dataclass(frozen=True, slots=True)
class Partners:
    """The anonymized utterance of each original one, those whose sides name different speakers, and what was found
    about ids that are written differently."""

    partner: Mapping[str, str]
    disputed: tuple[str, ...]
    ids: tuple[Finding, ...]


def refuse_one_speaker(speakers: Sequence[str] | Strings, source: str | Path | None = None) -> None:
    """Refuse speech of one person: there is nobody to be distinguished from."""
    people = set(speakers)
    if len(people) == 1:
        raise InputError(
            f"there is only one speaker, {next(iter(people))!r}: nobody could be mistaken for anybody",
            path=source or None,
            fix="give recordings of two or more people; `veilmeter check` shows who is read as whom",
        )


def find_partners(
    original: Listed, anonymized: Listed, source: str = "", *, second: str = "the anonymized set"
) -> Partners:
    """Both sides by utterance, from their ids and speakers alone; an error, which calls the other side `second`, where
    nothing would be left."""
    matching = match_ids(original.utterances, anonymized.utterances)
    if not matching.partner:
        raise InputError(
            f"no utterance is in both the original set and {second}: the original set has ids such as "
            f"{original.utterances[0]!r}, {second} {anonymized.utterances[0]!r}",
            path=source or None,
            fix="an anonymized recording keeps the utterance id of its original",
        )
    theirs = dict(zip(anonymized.utterances, anonymized.speakers, strict=True))
    speaker = dict(zip(original.utterances, original.speakers, strict=True))
    disputed = tuple(name for name, other in matching.partner.items() if theirs[other] != speaker[name])
    if len(disputed) == len(matching.partner):
        raise InputError(
            "every anonymized utterance names another speaker than its original",
            path=source or None,
            fix="the speaker of an anonymized recording is the person who spoke, not the voice it was given",
        )
    ids = matching.findings("the original side", "the anonymized side", examples=False)  # ids name people
    return Partners(matching.partner, disputed, tuple(ids))


def match(original: Embeddings, anonymized: Embeddings, *, second: str = "the anonymized set") -> Matched:
    """Match two sides by utterance; an error calls the anonymized one `second`.

    >>> clear = Embeddings([[1, 0], [0, 1]], ["x", "y"], ["a", "b"], {"gender": ["f", "m"]})
    >>> other = Embeddings([[1, 1], [0, 2]], ["in/y.wav", "in/z.wav"], ["b", "c"], {"gender": ["f", "f"]})
    >>> both = match(clear, other)
    >>> both.original.utterances.tolist(), dict(both.unmatched)
    (['y'], {'only_original': 1, 'only_anonymized': 1, 'speaker_differs': 0})
    >>> {name: column.tolist() for name, column in both.anonymized.attributes.items()}
    {'gender': ['m'], 'pseudo_gender': ['f']}
    """
    partners = find_partners(
        Listed(original.utterances, original.speakers),
        Listed(anonymized.utterances, anonymized.speakers),
        anonymized.source,
        second=second,
    )
    partner, disputed = partners.partner, set(partners.disputed)
    kept = [utterance for utterance in partner if utterance not in disputed]
    before = original if len(kept) == len(original) else original.of_utterances(kept)
    after = anonymized.of_utterances([partner[utterance] for utterance in kept])
    reached = set(partner.values())
    left_out = [
        *((utterance, "only_original") for utterance in original.utterances if utterance not in partner),
        *((utterance, "only_anonymized") for utterance in anonymized.utterances if utterance not in reached),
        *((utterance, "speaker_differs") for utterance in partners.disputed),
    ]
    reasons = [reason for _, reason in left_out]
    return Matched(
        before,
        Embeddings(
            after.vectors,
            before.utterances,
            before.speakers,
            _attributes(before, after.attributes),
            after.durations,
            anonymized.source,
        ),
        {reason: reasons.count(reason) for reason in REASONS},
        tuple((str(utterance), reason) for utterance, reason in left_out),
        partners.ids,
    )


def _attributes(person: Embeddings, own: Mapping[str, Strings]) -> dict[str, Strings]:
    """The attributes of the people, and under another name those that the anonymized side gives its voices. Draws are
    never the people's: of a side that names none, none are known."""
    known = {name: column for name, column in person.attributes.items() if name not in DRAW_COLUMNS}
    for name, column in own.items():
        if name.startswith(PSEUDO):
            known.setdefault(name, column)
        elif name not in known or list(known[name]) != list(column):
            known[PSEUDO + name] = column
    return known


def with_people_of(anonymized: Embeddings, originals: Iterable[Embeddings]) -> Embeddings:
    """The anonymized set with the attributes that the originals give the same people, by utterance, else by speaker.

    For sets that are not matched utterance by utterance, such as the trials of an attack. A person whom no original
    knows keeps what the set itself says, unless the set is wrong about somebody else: then it describes pseudo-voices,
    and nothing is known of that person.

    >>> clear = Embeddings([[1.0]], ["x"], ["a"], {"gender": ["f"]})
    >>> cross = Embeddings([[1.0], [2.0]], ["y", "z"], ["a", "b"], {"gender": ["m", "m"]})
    >>> {name: column.tolist() for name, column in with_people_of(cross, [clear]).attributes.items()}
    {'gender': ['f', ''], 'pseudo_gender': ['m', 'm']}
    """
    columns = dict(anonymized.attributes)
    sides = list(originals)
    for name in dict.fromkeys(name for side in sides for name in side.attributes):
        by_utterance: dict[str, str] = {}
        by_speaker: dict[str, str | None] = {}
        for side in sides:
            for utterance, speaker, value in zip(
                side.utterances, side.speakers, side.attributes.get(name, ()), strict=False
            ):
                by_utterance.setdefault(utterance, value)
                # Of a person whose recordings differ (a session), only the recording's own value is known.
                by_speaker[speaker] = value if by_speaker.get(speaker, value) == value else None
        own = anonymized.attributes.get(name, strings([""] * len(anonymized)))
        known = [
            by_utterance.get(utterance) or by_speaker.get(speaker) or ""
            for utterance, speaker in zip(anonymized.utterances, anonymized.speakers, strict=True)
        ]
        of_voices = any(value and stated and value != stated for value, stated in zip(known, own, strict=True))
        values = known if of_voices else [value or stated for value, stated in zip(known, own, strict=True)]
        if values != list(own):
            if name in columns:
                columns[PSEUDO + name] = own
            columns[name] = strings(values)
    if columns == dict(anonymized.attributes):
        return anonymized
    return Embeddings(
        anonymized.vectors,
        anonymized.utterances,
        anonymized.speakers,
        columns,
        anonymized.durations,
        anonymized.source,
    )
