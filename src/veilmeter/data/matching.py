"""The two sides of an anonymizer, matched by utterance: in one place, with one policy where they disagree.

Ids may differ by folders, an extension or their Unicode form. Who spoke, and what is known of that person, is what the
original side says: the anonymized side's own columns describe the pseudo-voice and are kept as `pseudo_gender` and the
like. A recording whose sides name different speakers is left out, as nobody knows which of them is right.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, warning
from veilmeter.data.embeddings import Embeddings, Strings, strings
from veilmeter.data.ids import match_ids

PSEUDO = "pseudo_"
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
        """What was left out, and which ids were matched although they differ."""
        if not any(self.unmatched.values()):
            return list(self.ids)
        return [*self.ids, warning("utterances_unmatched", **self.unmatched)]


@dataclass(frozen=True, slots=True, eq=False)
class Listed:
    """The utterances of one side and who speaks in each."""

    utterances: Sequence[str] | Strings
    speakers: Sequence[str] | Strings

    @classmethod
    def joined(cls, parts: Iterable[Listed]) -> Listed:
        rows = [row for part in parts for row in zip(part.utterances, part.speakers, strict=True)]
        return cls([utterance for utterance, _ in rows], [speaker for _, speaker in rows])


@dataclass(frozen=True, slots=True)
class Partners:
    """The anonymized utterance of each original one, those whose sides name different speakers, and what was found
    about ids that are written differently."""

    partner: Mapping[str, str]
    disputed: tuple[str, ...]
    ids: tuple[Finding, ...]


def find_partners(original: Listed, anonymized: Listed, source: str = "") -> Partners:
    """Both sides by utterance, from their ids and speakers alone; an error where nothing would be left."""
    matching = match_ids(original.utterances, anonymized.utterances)
    if not matching.partner:
        raise InputError(
            "no utterance is in both the original and the anonymized set; the original has ids such as "
            f"{original.utterances[0]!r}, the anonymized one {anonymized.utterances[0]!r}",
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


def match(original: Embeddings, anonymized: Embeddings) -> Matched:
    """Match two sides by utterance.

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
    """What is known of the people, and under another name what the anonymized side says differently of its voices."""
    known = dict(person.attributes)
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
