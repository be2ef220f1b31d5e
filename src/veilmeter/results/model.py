"""The results of an assessment, with a type for everything: in memory, notebook, verdict, gate and report alike.

`Results` holds what was measured (attackers, parts, people) and what follows from it (criteria, checks, verdict).
`run_folder` is the only module that knows its JSON; conclusions are pure functions of it.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from veilmeter.attacks.attacker import BASELINE
from veilmeter.attacks.material import Training
from veilmeter.core.estimate import Estimate, Estimates, cells_of, frame, html_table
from veilmeter.core.findings import Direction, Finding, Level
from veilmeter.wording import sentence, text

Source = Literal["vectors", "scores", "transcripts", "timing", "fusion"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Input:
    """One set of speech that was given: `role` is original, anonymized, attacker_run_1, train_original, ..."""

    role: str
    kind: str  # "corpus", "embeddings" or "scores"
    path: str
    sha256: str
    speakers: int
    utterances: int
    hours: float | None = None
    layout: str | None = None
    variant: str | None = None
    dimension: int | None = None
    attributes: tuple[str, ...] = ()
    problems: Mapping[str, int] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matching:
    """How the recordings of both sides were matched: `matched` of them, and how many were left out, by reason."""

    matched: int
    unmatched: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolFacts:
    """Who was enrolled and tried, and what attackers had."""

    split: Finding
    enrolled_speakers: int
    trial_speakers: int
    enrollment_utterances: int
    trial_utterances: int
    training: Training = "none"
    anonymized_enrollment: Literal["", "own run", "released run"] = ""
    same_session: float | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkedPerson:
    """How often one person's conversations were linked by one attacker among everybody enrolled, in percent; `bits` is
    what their ranks disclose on average, below zero where others are placed before them; `named` how often the attacker
    names them for recordings of others, in percent (None: not counted)."""

    speaker: str
    length: int
    among: int
    conversations: int
    linked: float
    bits: float | None = None
    named: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AttackerResult:
    """One attacker: what it has, how it compared, what it found.

    `name` is its `AttackerId` as printed, `extractor` the further extractor that it uses, if any.
    `reference` marks the attackers of the papers, which are kept as reference points, `apart` a threat model that is
    reported beside the headline and not in it; `source` says what the estimates were computed from, and `sources` which
    ones came from elsewhere (measure name to source), so that nothing is mixed unknowingly. `by` are
    the same measures within groups: attribute, value, estimates.
    """

    name: str
    about: str
    extractor: str = ""
    has: Mapping[str, Any] = field(default_factory=dict)
    aliases: Mapping[str, str] = field(default_factory=dict)
    backend: str = ""
    trained_on: Finding | None = None
    estimates: Estimates = field(default_factory=Estimates)
    by: Mapping[str, Mapping[str, Estimates]] = field(default_factory=dict)
    people: tuple[LinkedPerson, ...] = ()
    source: Source = "vectors"
    sources: Mapping[str, str] = field(default_factory=dict)
    reference: bool = False
    apart: bool = False
    ties: float = 0.0
    profile: Mapping[str, Sequence[float]] = field(default_factory=dict)
    det: Mapping[str, Sequence[float]] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"AttackerResult({self.name}: {len(self.estimates)} estimates)"

    @property
    def is_attack(self) -> bool:
        return self.name != BASELINE

    @property
    def kind(self) -> str:
        """Its name in the registry of attackers, whichever extractor it uses."""
        return self.name.removesuffix(f"@{self.extractor}") if self.extractor else self.name

    def _repr_html_(self) -> str:
        return f"<p><b>{html.escape(self.name)}</b>: {html.escape(self.about)}</p>{self.estimates._repr_html_()}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Part:
    """Measurements beside the attackers: similarity, zebra, inversion, inference, sessions, runs, utility, and
    whatever a registered family of measures adds.

    `reference` are figures to compare with, such as the same on original speech: no risk of the anonymized speech.
    `details` are plain values for figures and tables, `findings` what a reader of the figures must know.
    """

    name: str
    estimates: Estimates = field(default_factory=Estimates)
    reference: Estimates = field(default_factory=Estimates)
    by: Mapping[str, Mapping[str, Estimates]] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        return f"Part({self.name}: {len(self.estimates)} estimates)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """The worst case of one criterion (linking, singling_out, disclosure, inversion, distinctiveness, inference, ...).

    `estimate` is the point that the finding explains; `attacker` who reached it; `group` where it was within one, such
    as {"gender": "f"}; `original` the same figure on original speech. Only a `risk` counts for the verdict's level: how
    well voices stay apart, or what else a voice tells, does not say whether people are recognized.
    """

    name: str
    level: Level
    finding: Finding
    estimate: Estimate
    risk: bool = True
    attacker: str = ""
    group: Mapping[str, str] = field(default_factory=dict)
    original: Estimate | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """One thing an assessment doubts about itself.

    `passed` is None where the check could not be made; `applies` is False where it can't apply to this run at all (a
    check that applies but could not be made has not passed). `misleads` says how privacy is misjudged if it
    fails. `figure` is held against `limit`; both are in `unit`.
    """

    name: str
    finding: Finding
    passed: bool | None
    misleads: Direction = "either"
    applies: bool = True
    figure: Estimate | float | None = None
    limit: float | None = None
    unit: str = ""

    @property
    def failed(self) -> bool:
        return self.passed is False

    @property
    def open(self) -> bool:
        """It applies, and could not be made."""
        return self.passed is None and self.applies

    def __str__(self) -> str:
        return f"{self.name}: {sentence(self.finding)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """One person's risk: the attacker that finds them best, and what each attacker finds."""

    speaker: str
    attacker: str
    risk: Estimate
    by_attacker: Mapping[str, Estimate]
    gender: str = ""
    animal: str = ""
    deid: float | None = None
    unprotected: bool = False
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class People:
    """Everybody by falling risk; how many would be listed as unprotected by chance alone."""

    persons: tuple[Person, ...] = ()
    finding: Finding = field(default_factory=lambda: Finding("nobody_tried"))
    expected_by_chance: float | None = None
    stability: float | None = None

    @property
    def unprotected(self) -> tuple[str, ...]:
        """The speakers who are unprotected."""
        return tuple(person.speaker for person in self.persons if person.unprotected)

    def __len__(self) -> int:
        return len(self.persons)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Iterator[Person]:
        return iter(self.persons)

    def to_frame(self) -> Any:
        """One row per person with their id, by falling risk, as a DataFrame."""
        return frame(
            {
                "speaker": [person.speaker for person in self.persons],
                "risk": [person.risk.value for person in self.persons],
                "unit": [person.risk.unit for person in self.persons],
                "attacker": [person.attacker for person in self.persons],
                "gender": [person.gender for person in self.persons],
                "unprotected": [person.unprotected for person in self.persons],
            }
        )

    def __repr__(self) -> str:
        """Without ids, which are shown only where they are asked for."""
        return f"People({len(self.persons)} people, {len(self.unprotected)} unprotected)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Channel:
    """What one extractor hears of people, by the attacker that uses it alone; the last channel is all of them together.

    `hears` is voice, words or rhythm. `estimates` are EER, Linkability among everybody and rank disclosure in bits, the
    last two for every length. `original` are the same of the same attacker where nothing was anonymized: what there was
    to hide. `shuffled` are those of an attacker whose known recordings were dealt to people at random: chance.
    `original_loss` is the cross-entropy of the attacker of `original` in the cross-validation on recordings that it
    knows, in nats; None where none could be held out.
    """

    name: str
    hears: str
    attacker: str
    estimates: Estimates = field(default_factory=Estimates)
    original: Estimates = field(default_factory=Estimates)
    shuffled: Estimates = field(default_factory=Estimates)
    original_loss: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelPerson:
    """One person by channel: the share of their recordings that are linked, and what the ranks disclose in bits.

    `channel` is the one that discloses most of them; empty where none of them does better than guessing.
    """

    speaker: str
    channel: str
    bits: Mapping[str, float] = field(default_factory=dict)
    linked: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """Which channel gives people away: voice, words, rhythm, each alone and all together (the last one), and people by
    falling disclosure in the channel that tells most of them."""

    channels: tuple[Channel, ...]
    people: tuple[ChannelPerson, ...] = ()
    finding: Finding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """Results by chance alone, all attackers, lengths and groups together: people were relabeled at random `draws`
    times, the same way for everybody who attacks, and `tests` figures computed anew each time.

    `best_link` is the 95th percentile of the largest rate of linking among everybody enrolled; `exposed` how many
    people would be linked more often than not by their best attacker, and `exposed_p` how often there would be as many
    as were found, or one who is found as often, adjusted for all figures; `exposed_luck` how often there would be at
    least as many, looked at by itself.
    """

    draws: int
    tests: int
    best_link: float | None = None
    exposed: float | None = None
    exposed_p: float | None = None
    exposed_luck: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verdict:
    """The verdict: the level of the worst case, and what is found in the order in which it is told.

    `headline` is the verdict with the worst case behind it, `remarks` what else is worth knowing about the release,
    `not_tested` what nobody tried. Why a verdict is not `trustworthy` is told by the checks that failed.
    """

    level: Level
    trustworthy: bool
    headline: tuple[Finding, ...] = ()
    remarks: tuple[Finding, ...] = ()
    not_tested: tuple[Finding, ...] = ()

    def __repr__(self) -> str:
        return f"Verdict(level={self.level!r}, trustworthy={self.trustworthy}, {len(self.headline)} findings)"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Results:
    """Everything an assessment measured and concluded.

    Attributes
    ----------
    verdict : Verdict
        The level of the worst case, whether it can be relied on, and what is found.
    attackers : mapping of str to AttackerResult
        By attacker, what it has, how it compared, and its `estimates`.
    parts : mapping of str to Part
        Measurements beside the attackers: similarity, zebra, inversion, utility and so on.
    criteria : mapping of str to Criterion
        The worst case of each criterion.
    checks : tuple of Check
        Self-checks of the assessment.
    people : People
        Everybody by falling risk.
    settings, inputs, protocol, seed, version
        What the figures depend on.
    """

    version: str
    title: str
    seed: int
    settings: Mapping[str, Any]
    inputs: Mapping[str, Input]
    matching: Matching
    protocol: ProtocolFacts
    attackers: Mapping[str, AttackerResult]
    command: tuple[str, ...] = ()
    incidental: tuple[str, ...] = ()  # settings in which runs may differ and still be compared
    extractor: Mapping[str, Any] | None = None
    parts: Mapping[str, Part] = field(default_factory=dict)
    channels: Channels | None = None  # where people were heard by several extractors
    chance: Chance | None = None
    criteria: Mapping[str, Criterion] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    people: People = field(default_factory=People)
    verdict: Verdict = field(default_factory=lambda: Verdict(level="unknown", trustworthy=False))
    remarks: tuple[Finding, ...] = ()  # settings that had no effect, what was asked for and not done
    warnings: tuple[Finding, ...] = ()
    pending: tuple[Finding, ...] = ()  # what is still to be measured; nothing where the results are complete
    tables: Mapping[str, str] = field(default_factory=dict)  # file name to SHA-256 of the tables of this run

    @property
    def attacks(self) -> Mapping[str, AttackerResult]:
        """The attackers without the baseline on original speech."""
        return {name: attacker for name, attacker in self.attackers.items() if attacker.is_attack}

    def part(self, name: str) -> Estimates:
        """The estimates of a part; none where it was not measured."""
        return self.parts[name].estimates if name in self.parts else Estimates()

    def places(self) -> Iterator[tuple[str, Estimates]]:
        """Every attacker and part with its estimates."""
        yield from ((name, attacker.estimates) for name, attacker in self.attackers.items())
        yield from ((name, part.estimates) for name, part in self.parts.items())

    def columns(self) -> dict[str, list[Any]]:
        """Tidy: one row per attacker or part, group, measure and point; the column of the other is empty."""
        holders: list[tuple[str, str, AttackerResult | Part]] = [
            *((name, "", attacker) for name, attacker in self.attackers.items()),
            *(("", name, part) for name, part in self.parts.items()),
        ]
        rows = [(attacker, part, "", "", holder.estimates) for attacker, part, holder in holders]
        rows += [
            (attacker, part, attribute, value, estimates)
            for attacker, part, holder in holders
            for attribute, values in holder.by.items()
            for value, estimates in values.items()
        ]
        everything = Estimates(point for *_, estimates in rows for point in estimates)
        named: dict[str, list[Any]] = {"attacker": [], "part": [], "attribute": [], "group": []}
        for *names, estimates in rows:
            for column, cell in zip(named.values(), names, strict=True):
                column += [cell] * len(estimates)
        return named | everything.columns()

    def to_frame(self) -> Any:
        """`columns` as a pandas DataFrame, or a pyarrow Table where pandas is not installed."""
        return frame(self.columns())

    @property
    def headline(self) -> str:
        """The verdict in words."""
        return text(self.verdict.headline)

    def report(self, out: str | Path, **options: Any) -> Path:
        """Write the report; see `veilmeter.write_report`, whose options `options` are."""
        import veilmeter  # the report is made from results, never the other way round, but for this

        return veilmeter.write_report(self, out, **options)

    def __repr__(self) -> str:
        doubt = "" if self.verdict.trustworthy else "not trustworthy: "
        headline = self.headline if len(self.headline) <= 600 else f"{self.headline[:600]}..."
        return f"Results({doubt}{headline})"

    def _repr_html_(self) -> str:
        doubt = "" if self.verdict.trustworthy else "<p><b>Do not rely on this result yet.</b></p>"
        head = ("criterion", "level", "attacker", "measure", "at", "worst case", "95 % interval")
        rows = [
            (name, criterion.level, criterion.attacker, *cells_of(criterion.estimate)[:4])
            for name, criterion in self.criteria.items()
        ]
        return f"<h3>{html.escape(self.title)}</h3><p>{html.escape(self.headline)}</p>{doubt}{html_table(head, rows)}"
