"""Whether a run may pass, for continuous integration: limits, what the run doubts of itself, and an earlier run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.attacks.registry import default_attackers
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Finding, Reference, group_references
from veilmeter.metrics.registry import preferred_direction
from veilmeter.results.compare import ComparedFigure, Comparison, compare
from veilmeter.results.limits import Group, Limit, LimitCheck, check_limit, groups_of
from veilmeter.results.model import AttackerResult, Part, Results
from veilmeter.results.trust import Doubt, doubts, open_questions
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
    """A run against an earlier one: what is surely worse, how many figures were compared, and what differs otherwise.

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

    A doubted run fails unless it is accepted `even_if_doubted`; with `trustworthy` asked for, an open check fails too.
    `scope` says what the limits were held against.
    """

    limits: tuple[LimitCheck, ...]
    doubts: tuple[Doubt, ...]
    open_questions: tuple[Doubt, ...]
    not_run: tuple[str, ...]
    trustworthy: bool
    even_if_doubted: bool
    scope: Finding
    baseline: BaselineCheck | None = None

    @property
    def passed(self) -> bool:
        doubted = bool(self.doubts) and not self.even_if_doubted
        worse = self.baseline is not None and bool(self.baseline.worse)
        unsettled = self.trustworthy and bool(self.doubts + self.open_questions)
        return all(limit.holds for limit in self.limits) and not doubted and not worse and not unsettled

    def to_json(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "scope": sentence(self.scope),
            "limits": [limit.to_json() for limit in self.limits],
            "distrust": list(map(text, self.doubts)),
            "open": list(map(text, self.open_questions)),
            "not_run": list(self.not_run),
            "baseline": None if self.baseline is None else self.baseline.to_json(),
        }


def gate(
    results: Results,
    limits: Sequence[Limit],
    *,
    by: Sequence[str] = (),
    trustworthy: bool = False,
    even_if_doubted: bool = False,
    baseline: BaselineCheck | None = None,
) -> Gate:
    """A run against limits, over all attackers that were run.

    A limit is held against everybody together and against every group that the run has figures of, whichever is worst;
    with `by` it is held against each group of these attributes by itself as well, and must be known within each.
    """
    groups: list[Group | None] = [None, *(group for attribute in by for group in groups_of(results, attribute))]
    checks = tuple(check_limit(results, limit, group) for limit in limits for group in groups)
    unsettled = [*open_questions(results), *_without_interval(checks)]
    if baseline is not None:
        unsettled += [(finding,) for finding in baseline.untested]
    return Gate(
        limits=checks,
        doubts=tuple(doubts(results) or _unexplained(results)),
        open_questions=tuple(unsettled),
        not_run=tuple(name for name in default_attackers() if name not in results.attackers),
        trustworthy=trustworthy,
        even_if_doubted=even_if_doubted,
        scope=_scope(results),
        baseline=baseline,
    )


def _unexplained(results: Results) -> list[Doubt]:
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


def _scope(results: Results) -> Finding:
    """Whose figures the limits are held against: a reader must not have to guess what was checked."""
    holders: list[AttackerResult | Part] = [*results.attacks.values(), *results.parts.values()]
    groups = {
        attribute: dict.fromkeys(value for holder in holders for value in holder.by.get(attribute, {}))
        for attribute in dict.fromkeys(name for holder in holders for name in holder.by if name != "attacker")
    }
    values = tuple(Reference("value", value, attribute) for attribute, known in groups.items() for value in known)
    return Finding.of("gate_scope", attackers=tuple(results.attacks), groups=values or None)


def against_baseline(
    baseline: str | Path, run: str | Path, *, by: Sequence[str] = (), resamples: int = 1000, seed: int = 0
) -> BaselineCheck:
    """The run against an earlier one. Every figure that both have is compared, paired by speaker where the trials are
    the same; Holm's rule over all of them says which differences are sure."""
    if Path(baseline).resolve() == Path(run).resolve():
        raise InputError("this run is its own baseline", path=run, fix="give the folder of an earlier run")
    comparison = compare([baseline, run], by=by, resamples=resamples, seed=seed)
    before, now = comparison.runs
    directed = {
        figure: difference
        for figure, (difference,) in comparison.differences.items()
        if preferred_direction(difference) != "neither" and not difference.name.endswith("_original")
    }
    tested = {figure: point for figure, point in directed.items() if point.interval is not None}
    if not tested:
        raise InputError(
            "none of the figures has an interval in both runs, so none can be significantly worse",
            path=baseline,
            fix="assess both without --no-intervals",
        )
    sure = {figure: point for figure, point in tested.items() if point.extra["sure"]}
    worse = [figure for figure, point in sure.items() if (point.value < 0) == (preferred_direction(point) == "higher")]
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
