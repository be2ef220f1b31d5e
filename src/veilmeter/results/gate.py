"""The gate for continuous integration: limits that a run must keep, its own doubts, and an earlier run to compare with.

`gate` takes runs as people have them; `check_gate` holds results against limits that were parsed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from veilmeter.attacks.attacker import default_attackers
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.files import real_path
from veilmeter.core.findings import PASSING_LEVELS, Finding, Level, Reference, group_references
from veilmeter.core.options import refuse_unknown
from veilmeter.metrics.measure import better_direction
from veilmeter.results.compare import ComparedFigure, Comparison, compare
from veilmeter.results.criteria import individual_of
from veilmeter.results.eer_methods import with_eer_method
from veilmeter.results.levels import ORDER
from veilmeter.results.limits import (
    Group,
    Limit,
    LimitCheck,
    candidates_of,
    check_limit,
    groups_of,
    places_of,
    read_limits,
)
from veilmeter.results.model import AttackerResult, Part, Results
from veilmeter.results.run_folder import RunLike, open_run
from veilmeter.results.trust import Doubt, doubt, doubting_checks, doubts, open_questions
from veilmeter.wording import sentence, sentences, text


@dataclass(frozen=True, slots=True)
class Worsening:
    """A figure that is significantly worse than in the baseline, though many were looked at."""

    figure: ComparedFigure
    before: Estimate
    now: Estimate
    difference: Estimate

    @property
    def finding(self) -> Finding:
        return Finding.of(
            "figure_worse",
            label=self.figure.label,
            attacker=self.figure.attacker or None,
            group=self.figure.group or None,
            before=self.before,
            now=self.now,
            difference=self.difference,
            severity="problem",
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "title": str(self.figure),
            "before": self.before.value,
            "now": self.now.value,
            "difference": {"name": self.difference.name, **self.difference.to_json()},
        }


@dataclass(frozen=True, slots=True)
class BaselineCheck:
    """A run against an earlier one: what is significantly worse, how many figures were compared, and what else differs.

    `untested` are figures whose difference has no interval, and attackers that only the baseline has: nothing can be
    said of them.
    """

    name: str
    compared: int
    worse: tuple[Worsening, ...]
    better: int
    untested: tuple[Finding, ...]
    remarks: tuple[Finding, ...]

    @property
    def finding(self) -> Finding:
        return Finding.of(
            "baseline_compared",
            baseline=Reference("run", self.name),
            compared=self.compared,
            worse=len(self.worse),
            better=self.better,
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "compared": self.compared,
            "worse": [worsening.to_json() for worsening in self.worse],
            "better": self.better,
            "untested": list(sentences(self.untested)),
            "remarks": list(sentences(self.remarks)),
        }


@dataclass(frozen=True, slots=True)
class Gate:
    """Whether a run passes: its limits, what it doubts, which checks are open and which attackers were not run.

    It is true in a condition if the run has passed. A doubted run fails unless it is accepted `even_if_doubted`; with
    `trustworthy` asked for, an open check fails too. `scope` says what the limits were held against, `level` how high
    the assessment calls the risk and `decided_by` the criteria that make it so; with `max_level` it may not be higher.
    A level that is unknown may be any. `individual` is the person who is found most often.

    Attributes
    ----------
    limits : tuple of LimitCheck
        Each limit with the figure that decides, and whether it holds.
    doubts, open_questions : tuple
        Checks of the run that failed, and those that could not be made.
    not_run : tuple of str
        Attackers that were not run.
    passed : bool
        Whether all of it holds.
    """

    limits: tuple[LimitCheck, ...]
    doubts: tuple[Doubt, ...]
    open_questions: tuple[Doubt, ...]
    not_run: tuple[str, ...]
    trustworthy: bool
    even_if_doubted: bool
    scope: Finding
    level: Level
    decided_by: tuple[str, ...] = ()
    max_level: Level | None = None
    baseline: BaselineCheck | None = None
    individual: Finding | None = None

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        return "\n".join(["passed" if self.passed else "failed", *map(str, self.limits), *map(text, self.doubts)])

    def __repr__(self) -> str:
        broken = sum(not limit.holds for limit in self.limits)
        return f"Gate({'passed' if self.passed else 'failed'}: {broken} of {len(self.limits)} limits are broken)"

    @property
    def level_holds(self) -> bool:
        if self.max_level is None:
            return True
        return self.level != "unknown" and ORDER.index(self.level) <= ORDER.index(self.max_level)

    @property
    def level_finding(self) -> Finding:
        return Finding.of("gate_level", level=self.level, decided_by=self.decided_by or None, max_level=self.max_level)

    @property
    def passed(self) -> bool:
        doubted = bool(self.doubts) and not self.even_if_doubted
        worse = self.baseline is not None and bool(self.baseline.worse)
        unsettled = self.trustworthy and bool(self.doubts + self.open_questions)
        holds = self.level_holds and all(limit.holds for limit in self.limits)
        return holds and not doubted and not worse and not unsettled

    def to_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "level": self.level,
            "decided_by": list(self.decided_by),
            "max_level": self.max_level,
            "scope": sentence(self.scope),
            "limits": [limit.to_json() for limit in self.limits],
            "distrust": list(map(text, self.doubts)),
            "open": list(map(text, self.open_questions)),
            "not_run": list(self.not_run),
            "individual": None if self.individual is None else sentence(self.individual),
            "baseline": None if self.baseline is None else self.baseline.to_json(),
        }


def gate(
    run: RunLike,
    limits: Sequence[Limit] = (),
    *,
    max: Mapping[str, float | str] | None = None,
    min: Mapping[str, float | str] | None = None,
    by: Sequence[str] = (),
    baseline: RunLike | None = None,
    trustworthy: bool = False,
    even_if_doubted: bool = False,
    max_level: Level | None = None,
    max_person: Mapping[str, float | str] | None = None,
    resamples: int = 1000,
    seed: int = 0,
    eer_method: str | None = None,
) -> Gate:
    """Check a run against limits, as in continuous integration.

    A limit is compared with the unfavorable end of the 95 % interval, over all attackers and groups of the run.

    Parameters
    ----------
    run : Assessment, Results or path
        The run, in memory or as the folder that `assess` wrote.
    limits : sequence of Limit
        Limits as objects, beside those in `max` and `min`.
    max, min : mapping of str to str or float
        Upper and lower limits by figure: `{"linkability@20": "20%"}`, `{"informed:eer": "30%"}`, `{"d_ece": 0.1}`.
        A bare number of at most 1 for a percentage is refused.
    by : sequence of str
        Attributes within whose groups every limit is checked.
    baseline : Assessment, Results or path, optional
        An earlier run: also fail if anything is significantly worse than there.
    trustworthy : bool
        Also fail if a trust check that applies to this run could not be made.
    even_if_doubted : bool
        Check the limits only, even if self-checks failed.
    max_level : {"low", "raised"}, optional
        The highest level of risk that passes.
    max_person : mapping of str to str or float
        Upper limits for each person by themselves: `{"linkability": "50%"}`.
    resamples, seed : int
        Of the bootstrap for differences to the baseline.
    eer_method : {"rocch", "roc", "interpolated", "speechbrain"}, optional
        Compute every EER again by this method, from the scores in the folder; by default as the run has it.

    Returns
    -------
    Gate
        The limits that were checked; `passed` says whether all of them hold.

    Raises
    ------
    InputError
        If nothing is to be checked, a limit can't be read, or the run has no such figure.

    Examples
    --------
    >>> gate("run/", max={"linkability@20": "20%"}, min={"eer": "30%"}).passed  # doctest: +SKIP
    True
    """
    each = [replace(limit, person=True) for limit in read_limits(max_person or {}, {})]
    wanted = [*limits, *read_limits(max or {}, min or {}), *each]
    if not wanted and not trustworthy and baseline is None and max_level is None:
        raise InputError("no limit was given", fix='give max={"linkability@100": "5%"}, max_level="raised" or the like')
    if trustworthy and even_if_doubted:
        raise InputError("trustworthy and even_if_doubted contradict each other", fix="give one of them")
    how: dict[str, Any] = {"by": by, "resamples": resamples, "seed": seed, "eer_method": eer_method}
    earlier = None if baseline is None else against_baseline(baseline, run, **how)
    opened = open_run(run)
    results = opened.results if eer_method is None else with_eer_method(opened.results, opened.folder, eer_method)
    return check_gate(
        results, wanted, by=by, trustworthy=trustworthy, even_if_doubted=even_if_doubted,
        max_level=max_level, baseline=earlier,
    )  # fmt: skip


def check_gate(
    results: Results,
    limits: Sequence[Limit],
    *,
    by: Sequence[str] = (),
    trustworthy: bool = False,
    even_if_doubted: bool = False,
    max_level: Level | None = None,
    baseline: BaselineCheck | None = None,
) -> Gate:
    """A run against limits, over all attackers that were run.

    A limit is held against everybody together and against every group that the run has figures of, whichever is worst;
    with `by` it is held against each group of these attributes by itself as well, and must be known within each.
    """
    if max_level is not None:
        refuse_unknown("max_level", str(max_level), PASSING_LEVELS)
    if results.pending:
        raise InputError(
            "these results are preliminary: not everything has been measured yet",
            fix="run the same `assess` command again, which measures the rest",
        )
    groups: list[Group | None] = [None, *(group for attribute in by for group in groups_of(results, attribute))]
    wanted = [(limit, group) for limit in limits for group in groups if group is None or not limit.person]
    checks = tuple(check_limit(results, limit, group) for limit, group in wanted)
    unsettled = [*open_questions(results), *_without_interval(checks)]
    if baseline is not None:
        unsettled += [(finding,) for finding in baseline.untested]
    return Gate(
        limits=checks,
        doubts=tuple(_failures(results, checks, max_level) or _general_doubt(results)),
        open_questions=tuple(unsettled),
        not_run=tuple(name for name in default_attackers() if name not in results.attackers),
        trustworthy=trustworthy,
        even_if_doubted=even_if_doubted,
        scope=_scope(results, limits),
        level=results.verdict.level,
        decided_by=tuple(
            name for name, found in results.criteria.items() if found.risk and found.level == results.verdict.level
        ),
        max_level=max_level,
        baseline=baseline,
        individual=individual_of(results),
    )


def _failures(results: Results, limits: Sequence[LimitCheck], max_level: Level | None) -> list[Doubt]:
    """The failed checks; of a trustworthy alarm only those that take it back, unless a limit that holds reassures."""
    level_holds = max_level is not None and ORDER.index(results.verdict.level) <= ORDER.index(max_level)
    if not results.verdict.trustworthy or level_holds or any(limit.holds for limit in limits):
        return doubts(results)
    return [doubt(results, check) for check in doubting_checks(results)]


def _general_doubt(results: Results) -> list[Doubt]:
    """A verdict that calls itself untrustworthy is doubted, whatever its checks say."""
    return [] if results.verdict.trustworthy else [(Finding("distrusted", severity="problem"),)]


def _without_interval(checks: Sequence[LimitCheck]) -> list[Doubt]:
    """A value without an interval is held against a limit as if it were certain."""
    return [
        (
            Finding.of(
                "limit_without_interval",
                limit=Reference("text", str(check.limit)),
                group=group_references(check.group) or None,
            ),
        )
        for check in checks
        if check.candidate.estimate.interval is None
    ]


def _scope(results: Results, limits: Sequence[Limit]) -> Finding:
    """Whose figures the limits are held against: a reader must not have to guess what was checked."""
    parts = [
        place.holder.name
        for limit in limits
        for place in places_of(results, limit.attacker, None)
        if isinstance(place.holder, Part) and any(candidates_of(place, limit))
    ]
    holders: list[AttackerResult | Part] = [*results.attacks.values(), *results.parts.values()]
    groups = {
        attribute: dict.fromkeys(value for holder in holders for value in holder.by.get(attribute, {}))
        for attribute in dict.fromkeys(name for holder in holders for name in holder.by if name != "attacker")
    }
    values = tuple(Reference("value", value, attribute) for attribute, known in groups.items() for value in known)
    return Finding.of(
        "gate_scope", attackers=tuple(results.attacks), groups=values or None, parts=tuple(dict.fromkeys(parts)) or None
    )


def against_baseline(
    baseline: RunLike,
    run: RunLike,
    *,
    by: Sequence[str] = (),
    resamples: int = 1000,
    seed: int = 0,
    eer_method: str | None = None,
) -> BaselineCheck:
    """The run against an earlier one. Every figure that both have is compared, paired by speaker where the people are
    the same; Holm's rule over all of them says which differences are sure."""
    folders = [opened.folder for opened in map(open_run, (baseline, run))]
    if None not in folders and len({real_path(folder) for folder in folders if folder is not None}) == 1:
        raise InputError("this run is its own baseline", path=folders[1], fix="give the folder of an earlier run")
    comparison = compare(baseline, run, by=by, resamples=resamples, seed=seed, eer_method=eer_method)
    before, now = comparison.runs
    directed = {
        figure: difference
        for figure, (difference,) in comparison.differences.items()
        if better_direction(difference) != "neither" and not difference.name.endswith("_original")
    }
    tested = {figure: point for figure, point in directed.items() if point.interval is not None}
    if not tested:
        raise InputError(
            "none of the figures has an interval in both runs, so none can be significantly worse",
            path=folders[0],
            fix="assess both without --no-intervals",
        )
    sure = {figure: point for figure, point in tested.items() if point.extra["sure"]}
    worse = [figure for figure, point in sure.items() if (point.value < 0) == (better_direction(point) == "higher")]
    gone = [name for name in before.results.attacks if name not in now.results.attacks]
    return BaselineCheck(
        name=before.name,
        compared=len(tested),
        worse=tuple(_worsening(comparison, figure) for figure in worse),
        better=len(sure) - len(worse),
        untested=(
            *(
                Finding.of(
                    "figure_untested",
                    label=figure.label,
                    attacker=figure.attacker or None,
                    group=figure.group or None,
                    baseline=before.reference,
                )
                for figure in directed
                if figure not in tested
            ),
            *(Finding.of("attacker_untested", attacker=name, baseline=before.reference) for name in gone),
        ),
        remarks=tuple(_remarks(comparison)),
    )


def _worsening(comparison: Comparison, figure: ComparedFigure) -> Worsening:
    before, now = comparison.values[figure]
    return Worsening(figure, before, now, comparison.differences[figure][0])


def _remarks(comparison: Comparison) -> list[Finding]:
    before, now = (run.results.verdict.level for run in comparison.runs)
    level = [] if before == now else [Finding.of("level_changed", now=now, before=before, severity="warning")]
    return level + list(comparison.warnings)
