"""The experiment: the two sides, who is enrolled and tried, and what attackers have beside that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from veilmeter.assessment.protocol import Protocol
from veilmeter.assessment.speech import Speech
from veilmeter.attacks.desk import EnrollmentCopies, NotPossibleError
from veilmeter.attacks.material import AttackerRun
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, warning
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.matching import Matched, match
from veilmeter.metrics.vector_checks import unchanged

NOT_OF_A_PERSON = ("session", "duration", "text", "path", "part", "set", "role", "language")


@dataclass(frozen=True, eq=False)
class OwnExtractor:
    """The vectors of an attacker's own extractor: both sides and its runs; `about` describes the extractor."""

    matched: Matched
    runs: tuple[AttackerRun, ...] = ()
    about: Finding = Finding("own_extractor_given")  # noqa: RUF009 - frozen
    tuned: bool = False
    tuned_on_copies: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Experiment:
    """What is compared with what. `runs` are the attackers' runs, by the ids and speakers of the originals; `own` the
    vectors of attackers with their own extractor; `groups` the people by attribute and value, for results within
    groups."""

    matched: Matched
    protocol: Protocol
    training: Mapping[str, Speech] = field(default_factory=dict)
    runs: tuple[AttackerRun, ...] = ()
    own: Mapping[str, OwnExtractor] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    _parts: dict[tuple[int, str], tuple[Embeddings, Embeddings]] = field(default_factory=dict, init=False, repr=False)

    def enrollment(self, side: Embeddings) -> Embeddings:
        """The recordings that people are known by, as this side has them."""
        return self._part(side, "enrollment")

    def trials(self, side: Embeddings) -> Embeddings:
        """The recordings that are to be recognized, as this side has them."""
        return self._part(side, "trials")

    def _part(self, side: Embeddings, name: str) -> Embeddings:
        """One object for all attackers: those of thousands of people fill the memory."""
        key = (id(side), name)
        if key not in self._parts:
            self._parts[key] = side, side.of_utterances(getattr(self.protocol, name))  # kept: its id stands for it
        return self._parts[key][1]

    @property
    def original(self) -> Embeddings:
        return self.matched.original

    @property
    def anonymized(self) -> Embeddings:
        return self.matched.anonymized

    def sides_of(self, attacker: str) -> Matched:
        return self.own[attacker].matched if attacker in self.own else self.matched

    def runs_of(self, attacker: str) -> tuple[AttackerRun, ...]:
        return self.own[attacker].runs if attacker in self.own else self.runs

    def copies(self, attacker: str = "") -> EnrollmentCopies:
        """The enrollment recordings as the attacker anonymized them; the released ones where it has no run."""
        wanted = self.protocol.enrollment
        runs = self.runs_of(attacker)
        if not runs:
            shared = warning("own_extractor_without_run", attacker=attacker)
            copies = self.enrollment(self.sides_of(attacker).anonymized)
            return EnrollmentCopies(copies, (shared,) if self.runs else ())
        there = {u: run.vectors for run in reversed(runs) for u in run.vectors.utterances}
        kept = [u for u in wanted if u in there]
        if not kept:
            raise NotPossibleError(Finding("runs_without_enrollment"))
        vectors = np.stack([there[u].vectors[there[u].utterance_rows[u]] for u in kept])
        known = self.enrollment(self.sides_of(attacker).original)
        enrolled = known.of_utterances(kept).with_vectors(vectors)
        if len(kept) == len(wanted):
            return EnrollmentCopies(enrolled)
        lost, people = len(wanted) - len(kept), len(known.names) - len(enrolled.names)
        return EnrollmentCopies(enrolled, (warning("runs_lack_enrollment", recordings=lost, speakers=people),))


def match_runs(
    original: Embeddings, released: Embeddings, runs: Sequence[AttackerRun], *, made_here: bool = False
) -> tuple[AttackerRun, ...]:
    """The runs by the ids and speakers of the originals. One that equals the released run is taken for that run, unless
    it was made here: then the anonymizer draws nothing at random. One that is the original speech is refused."""
    placed = []
    for run in runs:
        matched = match(original, run.vectors)
        vectors = matched.anonymized
        if _mostly_unchanged(matched.original, vectors) and not _mostly_unchanged(original, released):
            raise InputError(
                f"the attacker's {run.name or 'run'} is original speech: nothing in it was anonymized",
                path=run.vectors.source or None,
                fix="give a run of the anonymizer over these recordings, or none",
            )
        common = [u for u in vectors.utterances if u in released.utterance_rows]
        same = bool(common) and np.array_equal(
            vectors.of_utterances(common).vectors, released.of_utterances(common).vectors
        )
        placed.append(replace(run, vectors=vectors, own=run.own and (made_here or not same), made_here=made_here))
    return tuple(placed)


def _mostly_unchanged(original: Embeddings, copies: Embeddings) -> bool:
    same = unchanged(original, copies)
    return same is not None and bool(same.mean() > 0.5)


def group_people(original: Embeddings, asked: Sequence[str] | None) -> dict[str, dict[str, str]]:
    """People by attribute: those asked for, or the genders where they are known.

    A person belongs to one group: an attribute that varies within people (a session, an emotion) is refused.
    """
    wanted = ("gender",) if asked is None else tuple(asked)
    groups: dict[str, dict[str, str]] = {}
    for attribute in wanted:
        column = original.attributes.get(attribute)
        if column is None:
            if asked is None:
                continue
            known = ", ".join(sorted(original.attributes)) or "none"
            raise InputError(f"can't group by {attribute!r}: unknown attribute", fix=f"choose from {known}")
        values: dict[str, set[str]] = {}
        for speaker, value in zip(original.speakers, column, strict=True):
            if value:
                values.setdefault(speaker, set()).add(value)
        varying = [speaker for speaker, several in values.items() if len(several) > 1]
        if varying:
            if asked is None:
                continue
            raise InputError(
                f"{attribute} varies within {len(varying)} of {len(original.names)} speakers, so that people can't be "
                "grouped by it",
                fix="group by what belongs to a person, or assess the recordings of each value apart",
            )
        people = {speaker: next(iter(own)) for speaker, own in values.items()}
        if len(set(people.values())) > 1 or asked is not None:
            groups[attribute] = people
    return groups
