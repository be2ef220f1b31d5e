"""An attacker's measures: everything that follows from its scores, for conversations of every length.

`measure_attack` is a task of the engine: it gets a picklable `Job` and returns an `AttackerResult` and arrays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.assessment.settings import FAMILY_OF_KIND, Settings
from veilmeter.assessment.tasks import Arrays, TaskResult
from veilmeter.attacks.attacker import AttackScoring, ScoreTables, Scoring, Success
from veilmeter.attacks.material import Floats, Rows
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding, Reference, warning
from veilmeter.core.user_code import foreign_version, spec_of
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.scores import Scores
from veilmeter.metrics.legal.chance import Relabeled, Trials, draw_columns, relabel
from veilmeter.metrics.legal.conversations import CURVE, Conversations, conversations, curve_sizes, sizes_to_draw
from veilmeter.metrics.legal.linkability import LinkCounts, linkability_of_scores
from veilmeter.metrics.legal.one_minus_eer import of_eer
from veilmeter.metrics.legal.population import population_linkability
from veilmeter.metrics.legal.ranks import rank_estimates, speaker_disclosure
from veilmeter.metrics.legal.singling_out import CONVERSATIONS, count_isolations, singling_out_of_scores
from veilmeter.metrics.measure import MEASURES, InputKind, Measure, find_measure
from veilmeter.metrics.scores.eer import Eer
from veilmeter.metrics.scores.forms import SortedScores
from veilmeter.metrics.scores.summary import eer_estimate, eers_by, measure_with_problems
from veilmeter.metrics.scores.zebra import DEce, ece_profile
from veilmeter.results.criteria import D_ECE_MAX
from veilmeter.results.model import AttackerResult, LinkedPerson

POPULATIONS = (100, 300, 1000, 3000, 10_000, 30_000, 100_000)  # by default; more of them cost nothing
DET_POINTS = 300
MOST_TRIALS, MOST_CELLS = 2000, 2_000_000  # in which attackers are compared with each other
MOST_SCORES = 20_000_000  # in one table; beyond, conversations are drawn, one per speaker at least
MOST_ISOLATION_SCORES = MOST_SCORES  # for Singling Out
DRAWS, FOLDS = 5, 10  # of Singling Out
PREDICATES = 500  # enrolled people whose rules are tried, as many as in Vauquier et al. 2025


@dataclass(frozen=True, slots=True)
class MeasureVersion:
    """A measure by name, with a hash of the code of another package that computes it: other code is another measure."""

    name: str
    version: str
    spec: str = ""  # of one that was given as an object or a file, so that other processes find it

    @classmethod
    def of(cls, measure: Measure) -> MeasureVersion:
        functions = measure.functions.values()
        version = "".join(dict.fromkeys(map(foreign_version, functions)))
        return cls(measure.name, version, spec_of(measure) if measure.name in MEASURES.admitted else "")

    def key(self) -> tuple[str, str]:
        return self.name, self.version

    def load(self) -> Measure:
        return MEASURES.find(self.spec or self.name)


def measure_versions(kind: InputKind, settings: Settings) -> tuple[MeasureVersion, ...]:
    """The measures that are computed from this kind of material: all that are registered, or those that were named; of
    scores always the EER, which checks need."""
    named = [entry.name for entry in map(find_measure, settings.named_measures) if entry.kind == kind]
    entries = MEASURES.of_kind(kind, named)
    if named and FAMILY_OF_KIND.get(kind, "") not in settings.measures:
        entries = [entry for entry in entries if entry.name in (*named, "eer")]
    return tuple(map(MeasureVersion.of, entries))


@dataclass(frozen=True, eq=False, kw_only=True)
class MeasureOptions:
    """How every attacker is measured. `groups` are people by attribute, for results within groups."""

    lengths: tuple[int, ...]
    sizes: tuple[int, ...] = ()
    population: tuple[int, ...] = ()
    candidates: int | None = None
    measures: tuple[str, ...] = ()
    score_measures: tuple[MeasureVersion, ...] = ()
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    intervals: bool = True
    resamples: int = 1000
    seed: int = 0
    eer_method: str = "rocch"
    eer_rules: tuple[str, ...] = ()

    def wants(self, family: str) -> bool:
        return family in self.measures

    def with_own_measures(self) -> MeasureOptions:
        """The same with veilmeter's own measures of scores only, for controls."""
        return replace(self, score_measures=tuple(measure for measure in self.score_measures if not measure.version))


@dataclass(frozen=True, eq=False, kw_only=True)
class Job:
    """Everything that one attacker's measures depend on; `attacker` is its description."""

    attacker: AttackerResult
    test: Embeddings
    scoring: Scoring
    options: MeasureOptions
    mask: NDArray[np.bool_] | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True, eq=False)
class Matrix:
    """Scores of enrolled people (rows) against conversations of one length (columns)."""

    scores: Floats
    enrolled: tuple[str, ...]
    spoken: NDArray[np.object_]  # the speaker of each conversation
    mask: NDArray[np.bool_] | None
    length: int

    def part(self, names: set[str]) -> Matrix | None:
        """Only these people, on both sides; None where nothing is left to compare."""
        rows = np.array([name in names for name in self.enrolled])
        columns = np.array([name in names for name in self.spoken], dtype=bool)
        if rows.sum() < 2 or not columns.any():
            return None
        return Matrix(
            self.scores[np.ix_(rows, columns)],
            tuple(name for name, kept in zip(self.enrolled, rows, strict=True) if kept),
            self.spoken[columns],
            None if self.mask is None else self.mask[np.ix_(rows, columns)],
            self.length,
        )

    def to_scores(self) -> Scores:
        """The scores of all conversations, or of a random subset where there are too many."""
        drawn = draw_columns(*self.scores.shape)
        mask = None if self.mask is None else self.mask[:, drawn]
        enrolled = np.array(self.enrolled, object)
        return Scores.from_matrix(self.scores[:, drawn], enrolled, self.spoken[drawn], mask=mask)

    def trials(self) -> Trials | None:
        """The input of relabeling people; None where nobody enrolled is tried."""
        code = {name: number for number, name in enumerate(self.enrolled)}
        known = np.array([name in code for name in self.spoken], dtype=bool)
        if len(code) < 2 or not known.any():
            return None
        own = np.array([code[name] for name in self.spoken[known]])
        if known.all():
            return Trials(self.scores, own, self.enrolled, self.length, self.mask)
        mask = None if self.mask is None else self.mask[:, known]
        return Trials(self.scores[:, known], own, self.enrolled, self.length, mask)

    @cached_property
    def linkability(self) -> LinkCounts | None:
        """Exact Linkability from the scores; None if fewer than two people are enrolled or nobody can be linked."""
        return linkability_of_scores(self.scores, self.enrolled, self.spoken, length=self.length)


def single_trials(job: Job) -> Scores:
    """The scores of single recordings, for measures that compare several sets of scores."""
    spoken = trial_conversations(job.test, 1, len(job.scoring.names), job.options.seed)
    if spoken is None:
        raise InputError("no recordings can be tried one by one")
    tables = job.scoring.score(job.test, [spoken.utterances]).tables
    return _matrix(job, spoken, tables[0]).to_scores()


def _matrix(job: Job, spoken: Conversations, scores: Floats) -> Matrix:
    rows: Rows = spoken.utterances
    mask = None if job.mask is None else np.asarray(job.mask[:, rows].any(axis=2), bool)
    return Matrix(scores, job.scoring.names, job.test.speakers[rows[:, 0]], mask, spoken.length)


def measure_attack(job: Job) -> tuple[TaskResult, Arrays]:
    """The attacker's result, and for the tables its scores of single recordings."""
    options, findings = job.options, list(job.findings)
    tried: dict[int, Conversations] = {}
    for length in options.lengths:
        spoken = trial_conversations(job.test, length, len(job.scoring.names), options.seed)
        if spoken is None:
            findings.append(warning("length_left_out", length=length))
        else:
            tried[length] = spoken
    if not tried:
        raise InputError(
            f"no two speakers have {min(options.lengths)} trial utterances: there is nothing to measure",
            fix="give a smaller number with --lengths, or more recordings per speaker",
        )
    isolated = {
        length: spoken
        for length in (tried if options.wants("singling-out") else ())
        if (spoken := isolation_conversations(job.test, length, options.seed, len(job.scoring.names))) is not None
    }
    wanted_scores = options.wants("scores")
    findings += subset_findings(job.test, job.scoring.names, tried, isolated, calibrated=wanted_scores)
    tables, isolating = ([spoken.utterances for spoken in asked_for.values()] for asked_for in (tried, isolated))
    scored = job.scoring.score(job.test, tables, isolating)
    isolation = _isolation(job, scored, isolated)
    scored = replace(scored, isolation=())  # tables as large as those that are kept
    matrices = {
        length: _matrix(job, spoken, scores)
        for (length, spoken), scores in zip(tried.items(), scored.tables, strict=True)
    }
    first = _first(matrices)
    scores = first.to_scores()
    everybody, limits = estimates_of(matrices, scores, options, whole=True)
    grouped = _matrices_by_group(matrices, options.groups)
    by, more = _by_group(grouped, options)
    result = replace(
        job.attacker,
        backend=scored.method,
        trained_on=job.attacker.trained_on or scored.trained_on,
        estimates=_in_order(everybody, isolation) + _learning(job, tried),
        by=by,
        people=risk_by_person(matrices),
        ties=effect_of_ties(*scores.ordered),
        profile=profile_of(scores),
        det=det_of(*scores.ordered),
        details={**job.attacker.details, **scored.details},
    )
    measured = TaskResult(attacker=result, findings=(*findings, *limits, *more, *scored.findings))
    del scores  # relabeling people needs room
    success = Success.of(first.scores, first.enrolled, first.spoken)
    scores_kept = first.scores[:, kept_trials(job.test, tried.get(1), first.enrolled)]
    arrays: dict[str, NDArray[Any]] = {"scores": scores_kept, "ahead": success.ahead, "ahead_of": success.codes}
    if not result.is_attack or result.apart:
        return measured, arrays
    relabeled = relabel_people(result.name, matrices, grouped, options)
    arrays |= {"values": relabeled.values, "first": relabeled.first, "own": relabeled.own}
    return replace(measured, figures=relabeled.figures, enrolled=relabeled.enrolled), arrays


def _learning(job: Job, tried: Mapping[int, Conversations]) -> Estimates:
    """Learning curves: the attack's success against its effort, on single recordings."""
    wanted = 1 in tried and job.options.wants("linkability") and not job.attacker.apart
    if not isinstance(job.scoring, AttackScoring) or not wanted:
        return Estimates()
    rows = tried[1].utterances
    spoken = job.test.speakers[rows[:, 0]]
    options = job.options
    return job.scoring.learning(
        rows, list(spoken), intervals=options.intervals, seed=options.seed, eer_method=options.eer_method
    )


def _in_order(estimates: Estimates, isolation: Estimates) -> Estimates:
    """Singling Out comes after the measures of scores and before the curves of linking."""
    before = [point for point in estimates if not point.at]
    behind = [point for point in estimates if point.at]
    return Estimates([*before, *isolation, *behind])


def _isolation(job: Job, scored: ScoreTables, isolated: Mapping[int, Conversations]) -> Estimates:
    curves: dict[str, list[Estimate]] = {}
    tables = scored.isolation or (None,) * len(isolated)
    for spoken, scores in zip(isolated.values(), tables, strict=True):
        sizes = [n for n in curve_sizes(sizes_to_draw(job.options.sizes), len(spoken.names)) if n >= 2]
        points = isolation_curves(
            scored, job.scoring.names, spoken, scores, sizes, intervals=job.options.intervals, seed=job.options.seed
        )
        for name, curve in points.items():
            curves.setdefault(name, []).extend(curve)
    return Estimates.of(curves)


def _matrices_by_group(
    matrices: Mapping[int, Matrix], groups: Mapping[str, Mapping[str, str]]
) -> dict[tuple[str, str], dict[int, Matrix]]:
    """The scores within each group, by attribute and value; groups with nobody to compare are left out."""
    grouped: dict[tuple[str, str], dict[int, Matrix]] = {}
    for attribute, values in groups.items():
        for value in sorted({v for v in values.values() if v}):
            names = {name for name, v in values.items() if v == value}
            parts = {length: part for length, m in matrices.items() if (part := m.part(names)) is not None}
            if parts:
                grouped[attribute, value] = parts
    return grouped


def _by_group(
    grouped: Mapping[tuple[str, str], Mapping[int, Matrix]], options: MeasureOptions
) -> tuple[dict[str, dict[str, Estimates]], list[Finding]]:
    by: dict[str, dict[str, Estimates]] = {attribute: {} for attribute in options.groups}
    findings: list[Finding] = []
    for (attribute, value), parts in grouped.items():
        try:
            by[attribute][value] = estimates_of(parts, _first(parts).to_scores(), options)[0]
        except InputError as error:
            group = Reference("value", value, attribute)
            findings.append(warning("group_not_measured", group=group, reason=Reference("text", str(error))))
    return by, findings


def relabel_people(
    attacker: str,
    matrices: Mapping[int, Matrix],
    grouped: Mapping[tuple[str, str], Mapping[int, Matrix]],
    options: MeasureOptions,
) -> Relabeled:
    """The figures of the verdict with people relabeled at random, for everybody and for each group."""

    def trials(parts: Mapping[int, Matrix]) -> list[Trials]:
        # The scores are measured on single utterances where there are any, else on the first length.
        lengths = sorted(parts, key=lambda length: (length != 1, list(parts).index(length)))
        return [part_trials for length in lengths if (part_trials := parts[length].trials()) is not None]

    sizes = dict.fromkeys(options.lengths, sizes_to_draw(options.sizes) or CURVE)
    groups = {group: trials(parts) for group, parts in grouped.items()}
    return relabel(attacker, trials(matrices), sizes, groups=groups, seed=options.seed)


def _first(matrices: Mapping[int, Matrix]) -> Matrix:
    """The matrix that scores are measured on: single recordings, where there are any."""
    return matrices.get(1) or next(iter(matrices.values()))


def estimates_of_scores(scores: Scores, options: MeasureOptions) -> tuple[dict[str, Estimate], list[Finding]]:
    """By name, every measure of scores, and why some gave nothing."""
    measured, reasons = measure_with_problems(
        scores,
        measures=[measure.load().name for measure in options.score_measures],
        intervals=options.intervals,
        resamples=options.resamples,
        seed=options.seed,
        eer_method=options.eer_method,
    )
    return {**measured, **eers_by(scores, options.eer_rules)}, reasons


def estimates_of(
    matrices: Mapping[int, Matrix], scores: Scores, options: MeasureOptions, *, whole: bool = False
) -> tuple[Estimates, list[Finding]]:
    """The estimates of the matrices, and of the `scores` of the first one; and warnings. Estimates about a population,
    and those that take long, are made of the `whole` only."""
    measured: dict[str, Estimate | Sequence[Estimate]] = {}
    findings: list[Finding] = []
    # Before the first set of scores is put in order: two of them at once take twice the room.
    longer = {m.length: _eer(m, options) for m in matrices.values() if m.length != 1 and options.wants("linkability")}
    if options.wants("scores"):
        of_scores, reasons = estimates_of_scores(scores, options)
        measured.update(of_scores)
        findings += reasons
    links = {length: link for length, m in matrices.items() if (link := m.linkability) is not None}
    if options.wants("linkability"):
        measured["linkability"] = [
            point
            for link in links.values()
            for point in link.estimates(curve_sizes(options.sizes, link.largest), intervals=options.intervals)
        ]
        measured["one_minus_eer"] = [
            _one_minus_eer(m, longer.get(m.length) or measured.get("eer") or _eer(m, options))
            for m in matrices.values()
        ]
    if whole and options.wants("ranks"):
        for link in links.values():
            for name, points in rank_estimates(link, intervals=options.intervals, seed=options.seed).items():
                measured[name] = [*_points(measured.get(name, [])), *_points(points)]
    if whole and options.wants("population"):
        beyond: list[Estimate] = []
        for link in links.values():
            extrapolated, limits = extrapolate(link, options)
            beyond += extrapolated
            findings += [finding for finding in limits if finding not in findings]
        measured["population_linkability"] = beyond
    return Estimates.of(measured), findings


def _points(measured: Estimate | Sequence[Estimate]) -> list[Estimate]:
    return [measured] if isinstance(measured, Estimate) else list(measured)


def _eer(matrix: Matrix, options: MeasureOptions) -> Estimate:
    return eer_estimate(
        matrix.to_scores(), intervals=options.intervals, resamples=options.resamples, seed=options.seed,
        eer_method=options.eer_method,
    )  # fmt: skip


def _one_minus_eer(matrix: Matrix, eer: Estimate | Sequence[Estimate]) -> Estimate:
    """The third row of the figure of Vauquier et al. 2025, for conversations of one length."""
    assert isinstance(eer, Estimate)
    return of_eer(eer).with_(at={"speakers": len(matrix.enrolled), "length": matrix.length})


def extrapolate(link: LinkCounts, options: MeasureOptions) -> tuple[Sequence[Estimate], list[Finding]]:
    """Linkability in the populations asked for, and warnings about populations that are not larger than the number of
    people enrolled, and where too few people are enrolled for the back-test."""
    was_asked = bool(options.population or options.candidates)
    usual = [people for people in POPULATIONS if people > link.largest]
    wanted = sorted({*(options.population or usual), *((options.candidates,) if options.candidates else ())})
    beyond = tuple(people for people in wanted if people >= link.largest)
    smaller = [
        warning("population_is_smaller", size=people, enrolled=link.largest)
        for people in options.population
        if people < link.largest
    ]
    if not beyond:
        return [], smaller
    try:
        points = population_linkability(link, beyond, intervals=options.intervals, seed=options.seed)
    except InputError as error:
        reason = Reference("text", str(error))
        return [], [*smaller, warning("not_extrapolated", reason=reason)] if was_asked else smaller
    share, speakers = float(points[0].extra["unseen_share"]), points[0].n["speakers"]
    return points, [*smaller, warning("unseen_people", share=share, speakers=speakers)] if was_asked else smaller


def profile_of(scores: Scores) -> dict[str, list[float]]:
    curves = ece_profile(*scores.ordered, presorted=True)
    return {name: getattr(curves, name).tolist() for name in ("log_odds", "prior", "pav", "actual")}


def det_of(t: Floats, n: Floats) -> dict[str, list[float]]:
    """The DET curve of rising target and impostor scores in percent, at thresholds spaced evenly in rank of either
    class, so that both ends are drawn well."""
    shares = np.concatenate(
        [np.linspace(0, 1, DET_POINTS), np.geomspace(1e-5, 0.01, 40), 1 - np.geomspace(1e-5, 0.01, 40)]
    )
    thresholds = np.unique(np.concatenate([np.quantile(t, shares), np.quantile(n, shares)]))[::-1]
    fpr = 1 - np.searchsorted(n, thresholds, side="left") / len(n)
    fnr = np.searchsorted(t, thresholds, side="left") / len(t)
    keep = np.concatenate([[True], (np.diff(fpr) != 0) | (np.diff(fnr) != 0)])
    return {"fpr": np.round(100 * fpr[keep], 6).tolist(), "fnr": np.round(100 * fnr[keep], 6).tolist()}


def effect_of_ties(t: Floats, n: Floats) -> float:
    """How far ties move a measure, in percentage points: the EER, or D_ECE as a share of its maximum, of scores that
    rise; once every tie between a target and an impostor score is broken for the attacker, once against."""
    if np.array_equal(np.searchsorted(n, t, side="left"), np.searchsorted(n, t, side="right")):
        return 0.0
    places = np.unique(np.concatenate([t, n]))
    targets, impostors = (2 * np.searchsorted(places, scores).astype(np.float64) for scores in (t, n))
    orders = [SortedScores(targets + step, impostors) for step in (1.0, -1.0)]
    eers, disclosed = [order.of(Eer()) for order in orders], [order.of(DEce()) for order in orders]
    return max(abs(eers[0] - eers[1]), 100 * abs(disclosed[0] - disclosed[1]) / D_ECE_MAX)


def risk_by_person(matrices: Mapping[int, Matrix]) -> tuple[LinkedPerson, ...]:
    """Each speaker's own risk: the chance that one of their conversations is linked among all who are enrolled."""
    rows: list[LinkedPerson] = []
    for length, matrix in matrices.items():
        link = matrix.linkability
        if link is None:
            continue
        values, bits = link.per_speaker(link.largest), speaker_disclosure(link)
        rows += [
            LinkedPerson(
                speaker=name,
                length=length,
                among=link.largest,
                conversations=int(link.counts[code]),
                linked=100 * float(values[code]),
                bits=float(bits[code]),
            )
            for code, name in enumerate(link.names)
        ]
    return tuple(rows)


def trial_conversations(test: Embeddings, length: int, enrolled: int, seed: int) -> Conversations | None:
    """The conversations of a length that are tried; None where fewer than two speakers have that many utterances."""
    most = None
    allowed = MOST_SCORES // max(1, enrolled)
    if len(test) // length > allowed:
        most = max(1, allowed // len(test.names))
    try:
        spoken = conversations(test, length, most=most, seed=seed)
    except InputError:
        return None
    return spoken if len(spoken.names) >= 2 else None


def trials_to_compare(test: Embeddings, spoken: Conversations, enrolled: Sequence[str]) -> NDArray[np.intp]:
    """The indices of the trials of enrolled people in which attackers are compared: all, or every n-th."""
    known = set(enrolled)
    places = np.flatnonzero([speaker in known for speaker in test.speakers[spoken.utterances[:, 0]]])
    most = max(1, min(MOST_TRIALS, MOST_CELLS // max(1, len(known))))
    return places[:: max(1, -(-len(places) // most))]


def kept_trials(test: Embeddings, spoken: Conversations | None, enrolled: Sequence[str]) -> NDArray[np.intp] | slice:
    """The indices of single trials whose scores are kept: all, for the tables of a run. A run has no
    table where trials were drawn, and only those are kept in which attackers are compared."""
    if spoken is None or len(spoken) == len(test):
        return slice(None)
    return trials_to_compare(test, spoken, enrolled)


def subset_findings(
    test: Embeddings,
    enrolled: Sequence[str],
    tried: Mapping[int, Conversations],
    isolated: Mapping[int, Conversations],
    *,
    calibrated: bool,
) -> list[Finding]:
    """Warnings about measures that rest on a subset of the recordings or of the people; `calibrated` where measures of
    scores are wanted."""
    findings = []
    for length, spoken in tried.items():
        possible = int((np.bincount(test.codes) // length).sum())
        if len(spoken) < possible:
            findings.append(warning("trials_drawn", length=length, drawn=len(spoken), possible=possible))
        columns = draw_columns(len(enrolled), len(spoken))
        if calibrated and not isinstance(columns, slice):
            findings.append(warning("scores_drawn", length=length, drawn=len(columns), possible=len(spoken)))
    for length, spoken in isolated.items():
        possible = min(CONVERSATIONS, int((np.bincount(test.codes) // length).max()))
        if (most := int(spoken.counts.max())) < possible:
            findings.append(warning("isolation_conversations_drawn", length=length, most=most))
        people = int((np.bincount(test.codes) // length >= 2).sum())
        if len(spoken.names) < people:
            drawn = len(spoken.names)
            findings.append(warning("isolation_speakers_drawn", length=length, drawn=drawn, possible=people))
        rules = len(set(spoken.names) & set(enrolled))
        if rules > PREDICATES:
            findings.append(warning("isolation_rules_drawn", length=length, drawn=PREDICATES, possible=rules))
    return findings


def isolation_conversations(test: Embeddings, length: int, seed: int, enrolled: int) -> Conversations | None:
    """The conversations for Singling Out; None where fewer than two speakers have enough of them.

    Where the scores would be too many, each speaker has fewer conversations, at least two, and where that is not
    enough, speakers are drawn.
    """
    allowed = max(2, MOST_ISOLATION_SCORES // max(1, enrolled))
    most = CONVERSATIONS
    while most > 2 and int(np.minimum(np.bincount(test.codes) // length, most).sum()) > allowed:
        most -= 1
    try:
        spoken = conversations(test, length, least=2, most=most, seed=seed)
        if len(spoken) > allowed:
            drawn = np.random.default_rng([seed, 3]).permutation(spoken.names)[: max(2, allowed // most)].tolist()
            rows = _rows_of(test, drawn)
            spoken = conversations(test.take(rows), length, least=2, most=most, seed=seed)
            spoken = replace(spoken, utterances=rows[spoken.utterances])
    except InputError:
        return None
    return spoken if len(spoken.names) >= 2 else None


def _rows_of(test: Embeddings, names: Sequence[str]) -> NDArray[np.intp]:
    wanted = set(names)
    return np.flatnonzero([speaker in wanted for speaker in test.speakers])


def isolation_curves(
    scored: ScoreTables,
    enrolled: Sequence[str],
    spoken: Conversations,
    scores: Floats | None,
    sizes: Sequence[int],
    *,
    intervals: bool,
    seed: int,
) -> dict[str, list[Estimate]]:
    """The curves `singling_out`, `control`, `residual_risk` and `hit_share` of one length; none where nobody who is
    enrolled can be singled out."""
    try:
        if scored.sides is not None:
            enroll, test = scored.sides
            counted = count_isolations(
                enroll,
                test.take(_rows_of(test, spoken.names)),
                list(sizes),
                length=spoken.length,
                draws=DRAWS,
                folds=FOLDS,
                predicates=PREDICATES,
                seed=seed,
                most=int(spoken.counts.max()),
            )
        elif scores is not None:
            counted = singling_out_of_scores(
                scores,
                enrolled,
                spoken,
                list(sizes),
                draws=DRAWS,
                folds=FOLDS,
                predicates=PREDICATES,
                seed=seed,
            )
        else:
            return {}
    except InputError:
        return {}
    return counted.estimates(intervals=intervals)
