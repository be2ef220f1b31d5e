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
    """One set of speech or scores that was given.

    Attributes
    ----------
    role
        `original`, `anonymized`, `attacker_run_1`, `train_original`, ...
    kind
        `corpus`, `embeddings` or `scores`.
    path
        Path, as it was given.
    sha256
        Hash of ids, speakers, attributes and vectors.
    speakers
        Number of speakers.
    utterances
        Number of utterances.
    hours
        Hours of speech, if known.
    layout
        Layout of the corpus.
    variant
        List, part or suffix, if one was chosen.
    dimension
        Dimension of the vectors.
    attributes
        Names of the attributes.
    problems
        Number of problems, by kind.
    details
        Further facts.
    """

    role: str
    kind: str
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
    """How the recordings of both sides were matched.

    Attributes
    ----------
    matched
        Utterances that are on both sides.
    unmatched
        Utterances left out, by reason: `only_original`, `only_anonymized`, `speaker_differs`.
    """

    matched: int
    unmatched: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolFacts:
    """Who was enrolled and tried, and what the attackers had.

    Attributes
    ----------
    split
        How recordings were divided into enrollment and trials.
    enrolled_speakers
        People enrolled.
    trial_speakers
        People tried.
    enrollment_utterances
        Utterances enrolled.
    trial_utterances
        Utterances tried.
    training
        Training of the adapted attackers: `separate corpus`, `cross-validation by speaker` or `none`.
    anonymized_enrollment
        Run from which attackers enroll anonymized speech: `own run`, `released run`, or empty.
    same_session
        Percentage of trial recordings whose session is also in their speaker's enrollment.
    details
        Numbers of speakers, trials in the key, folds, distractors; the attackers' runs; groups.
    """

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
    """How often one attacker links one person's conversations.

    Attributes
    ----------
    speaker
        Speaker id.
    length
        Utterances in a conversation.
    among
        People enrolled.
    conversations
        Conversations tried.
    linked
        Percentage of them linked to this person.
    bits
        Mean disclosure of their ranks, in bits; negative if others rank before them.
    named
        Percentage of other people's recordings that the attacker attributes to this person.
    """

    speaker: str
    length: int
    among: int
    conversations: int
    linked: float
    bits: float | None = None
    named: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class AttackerResult:
    """One attacker: what it has, how it compared, and its figures.

    Attributes
    ----------
    name
        Name, such as `informed` or `adaptive@ecapa`; `original` is the baseline on original speech.
    about
        Completes the sentence "The attacker ...".
    extractor
        Further extractor that it uses, if any.
    has
        Equipment: the columns of `veilmeter attackers`.
    aliases
        Its names elsewhere: `voiceprivacy`, `vauquier2025`.
    backend
        How it compared vectors.
    trained_on
        Speech that it was trained on.
    estimates
        Its figures, by measure; a curve is a list of points.
    by
        The same figures within groups, by attribute and value.
    people
        How often each person is linked.
    source
        Source of its scores, such as `vectors` or `scores`.
    sources
        Measures that have another source.
    reference
        Whether it is an attacker of the papers.
    apart
        Whether it is a separate threat model, reported beside the headline.
    ties
        Percentage points by which the order of equal scores moves the EER or D_ECE.
    profile
        ECE profile: `log_odds`, `prior`, `pav`, `actual` (bits).
    det
        DET curve: `fpr`, `fnr` (percent), thinned.
    details
        Further facts, such as methods and weights of the adaptive attacker.
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
    """Measurements beside the attackers.

    Attributes
    ----------
    name
        `similarity`, `zebra`, `inversion`, `inference`, `sessions`, `runs`, `utility`, or a family of another package.
    estimates
        Figures, by measure.
    reference
        Figures to compare with, such as the same on original speech.
    by
        The same figures within groups, by attribute and value.
    details
        Plain values for figures and tables.
    findings
        Caveats of these figures.
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
    """The worst case of one criterion.

    Attributes
    ----------
    name
        `linking`, `singling_out`, `disclosure`, `inversion`, `distinctiveness` or `inference`.
    level
        `low`, `raised`, `high` or `unknown`.
    finding
        The statement about it.
    estimate
        The figure behind the statement.
    risk
        Whether it counts for the verdict.
    attacker
        Attacker that reached it.
    group
        Group in which it was reached, such as `{"gender": "f"}`.
    original
        The same figure on original speech.
    details
        Further facts.
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
    """One trust check of the assessment.

    Attributes
    ----------
    name
        Name of the check.
    finding
        Its outcome as a statement.
    passed
        Outcome; null if the check could not be made.
    misleads
        Direction in which a failure misleads.
    applies
        Whether it can apply to this run at all.
    figure
        The figure that was checked.
    limit
        The limit that it was compared with.
    unit
        Unit of figure and limit.
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
    """The risk of one person.

    Attributes
    ----------
    speaker
        Speaker id.
    attacker
        Attacker that finds them best.
    risk
        How often that attacker links them.
    by_attacker
        The same for every attacker.
    gender
        Gender, if known.
    animal
        Animal of the zoo.
    deid
        DeID of this person.
    unprotected
        Whether they are listed as unprotected.
    details
        Further facts.
    """

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
    """Everybody, by falling risk.

    Attributes
    ----------
    persons
        The people.
    finding
        The statement about them.
    expected_by_chance
        How many would be listed as unprotected by chance.
    stability
        Mean percentage of the people found by one of two attackers that both find.
    """

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
    """The figures of one extractor by itself; the last channel is all of them together.

    Attributes
    ----------
    name
        Extractor.
    hears
        `voice`, `words`, `rhythm`, `speech` or `everything`.
    attacker
        Attacker that uses it alone.
    estimates
        EER, Linkability among everybody and rank disclosure, the last two for every length.
    original
        The same on original speech: what there was to hide.
    shuffled
        The same with enrollment recordings assigned to people at random: chance.
    original_loss
        Cross-entropy in the cross-validation on original speech, in nats; null if no recording could be held out.
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
    """One person, by channel.

    Attributes
    ----------
    speaker
        Speaker id.
    channel
        Channel that discloses most; empty if none exceeds guessing.
    bits
        Rank disclosure, by channel.
    linked
        Percentage of their recordings that are linked, by channel.
    """

    speaker: str
    channel: str
    bits: Mapping[str, float] = field(default_factory=dict)
    linked: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Channels:
    """Which channel identifies people: voice, words, rhythm, each alone and all together.

    Attributes
    ----------
    channels
        The channels.
    people
        People by falling disclosure in their most revealing channel.
    finding
        The statement about them.
    """

    channels: tuple[Channel, ...]
    people: tuple[ChannelPerson, ...] = ()
    finding: Finding | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Chance:
    """Extremes under permutation of the people, over all attackers, lengths and groups.

    Attributes
    ----------
    draws
        Permutations, the same for every attacker.
    tests
        Figures computed in each of them.
    best_link
        95th percentile of the highest rate of linking among everybody enrolled.
    exposed
        Mean number of people whom their best attacker links more often than not.
    exposed_p
        How often there are as many such people as were found, or one who is found as often; adjusted for all figures.
    exposed_luck
        How often there are at least as many such people, not adjusted.
    """

    draws: int
    tests: int
    best_link: float | None = None
    exposed: float | None = None
    exposed_p: float | None = None
    exposed_luck: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verdict:
    """The level of the worst case, and the statements in the order of the report.

    Attributes
    ----------
    level
        `low`, `raised`, `high` or `unknown`.
    trustworthy
        Whether the verdict can be relied on; if not, the failed `checks` give the reasons.
    headline
        The verdict and the worst case behind it.
    remarks
        Further statements about the release.
    not_tested
        Attacks that were not tried.
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
    """Everything that an assessment measured and concluded.

    Attributes
    ----------
    version
        Version of veilmeter.
    title
        Short title; by default from the names of the inputs.
    seed
        Random seed.
    settings
        Every option with the value that was used; null if it had no effect.
    inputs
        The speech that was given, by role.
    matching
        How both sides were matched.
    protocol
        Who was enrolled and tried.
    attackers
        The attackers, by name.
    command
        Command line that repeats the run, without options such as `--jobs` that do not change results.
    incidental
        Settings that may differ between runs that are compared, such as titles and paths.
    extractor
        Name, version and dimension of the extractor; null if embeddings were given.
    parts
        Measurements beside the attackers, by name.
    channels
        Results by extractor, if there were several.
    chance
        Extremes under permutation.
    criteria
        The worst case of each criterion, by name.
    checks
        Trust checks, failed ones first.
    people
        Everybody, by falling risk.
    verdict
        The verdict.
    remarks
        Options that had no effect, and what was measured without being asked for.
    warnings
        Warnings that change how a result is to be read.
    pending
        Measurements that are still to come; empty once the results are complete.
    tables
        Tables of this run: file name and SHA-256.
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
    incidental: tuple[str, ...] = ()
    extractor: Mapping[str, Any] | None = None
    parts: Mapping[str, Part] = field(default_factory=dict)
    channels: Channels | None = None
    chance: Chance | None = None
    criteria: Mapping[str, Criterion] = field(default_factory=dict)
    checks: tuple[Check, ...] = ()
    people: People = field(default_factory=People)
    verdict: Verdict = field(default_factory=lambda: Verdict(level="unknown", trustworthy=False))
    remarks: tuple[Finding, ...] = ()
    warnings: tuple[Finding, ...] = ()
    pending: tuple[Finding, ...] = ()
    tables: Mapping[str, str] = field(default_factory=dict)

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
