"""A whole inversion attack: learn a map or take a stored one, turn the trials back, measure what that reveals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from veilmeter.attacks.inversion.attack import InversionMap, InversionSettings, identity_map, learn_seeds, objective
from veilmeter.attacks.inversion.measures import (
    Evaluation,
    InversionData,
    evaluate,
    label_noise,
    learning_curve,
    permutation_null,
)
from veilmeter.core.engine import Engine, map_ordered
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Finding, Reference, warning
from veilmeter.data.embeddings import Embeddings

TrialKey = Mapping[tuple[str, str], bool]
AGAIN = ("eer", "top1", "top1_clear")  # what is measured on another run of the anonymizer
DEFAULT_METHOD = "procrustes"


@dataclass(frozen=True, eq=False, kw_only=True)
class InversionInputs:
    """The material of an inversion attack. `again` are the trials from another run of the anonymizer; `enrolled`
    original speech of known people, for EER and Linkability; `key` the trials to compare (all pairs without)."""

    anonymized_trials: Embeddings
    clear_trials: Embeddings | None = None
    clear_train: Embeddings | None = None
    anonymized_train: Embeddings | None = None
    enrolled: Embeddings | None = None
    again: Embeddings | None = None
    key: TrialKey | None = None


@dataclass(frozen=True, kw_only=True)
class StudySettings:
    """How it is made and measured; `seeds` runs of a method that depends on chance, `shuffles` attacks with shuffled
    pairs for the level of chance, `repeats` draws per point of the curves."""

    inversion: InversionSettings = field(default_factory=InversionSettings)
    oracle: bool = False
    seeds: int = 1
    learning_curve: bool = False
    label_noise: bool = False
    repeats: int = 5
    shuffles: int = 20
    intervals: bool = True
    eer_method: str = "rocch"
    fold_eer: bool = False

    def __post_init__(self) -> None:
        if self.seeds > 1 and self.inversion.supervised:
            raise InputError(
                f"{self.seeds} seeds were asked for, but {self.inversion.method} does not depend on chance",
                fix="leave out --seeds, or attack without pairs (--method wasserstein)",
            )
        if (self.learning_curve or self.label_noise) and not self.inversion.supervised:
            raise _no_pairs()

    @property
    def seed(self) -> int:
        return self.inversion.seed

    @property
    def measured(self) -> dict[str, Any]:
        """How EER and the other measures of scores are taken."""
        return {
            "intervals": self.intervals,
            "seed": self.seed,
            "eer_method": self.eer_method,
            "fold": self.fold_eer,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class InversionStudy:
    """What came out: estimates by measure, the map, each seed's figures where there were several, and what a
    reader must know."""

    estimates: Mapping[str, Sequence[Estimate]]
    map: InversionMap
    evaluation: Evaluation
    seeds: tuple[Mapping[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()


def study_inversion(
    inputs: InversionInputs, settings: StudySettings, engine: Engine, *, stored: InversionMap | None = None
) -> InversionStudy:
    """Attack and measure. With a `stored` map nothing is learned."""
    known = (inputs.clear_train, inputs.anonymized_train)
    if settings.oracle:
        known = (inputs.clear_trials, inputs.anonymized_trials)
    maps = [stored] if stored is not None else _learn(known, settings, engine)
    best = maps[0] if stored is not None else min(maps, key=objective)
    evaluation = evaluate(best, inputs.anonymized_trials, inputs.clear_trials, inputs.enrolled)
    estimates: dict[str, list[Estimate]] = dict(evaluation.estimates(inputs.key, **settings.measured))
    findings = _report_left_out(evaluation, inputs.anonymized_trials)
    if inputs.clear_trials is not None:
        estimates |= _without_a_map(inputs.anonymized_trials, inputs.clear_trials, settings.intervals)
    if inputs.again is not None:
        carried, covered = _carry_over(best, inputs, settings)
        estimates |= carried
        findings += covered
    rows = _each_seed(maps, inputs, settings) if len(maps) > 1 else []
    if rows:
        findings.append(_spread_of(rows))
    if stored is None and settings.inversion.supervised:
        estimates |= _needs(estimates, known, inputs, settings, engine)
        findings += pairing_findings(*known, best)
    elif settings.learning_curve or settings.label_noise:
        raise _no_pairs()
    findings += _doubts(estimates, settings, learned=stored is None)
    return InversionStudy(
        estimates=estimates, map=best, evaluation=evaluation, seeds=tuple(rows), findings=tuple(findings)
    )


def _report_left_out(evaluation: Evaluation, attacked: Embeddings) -> list[Finding]:
    """Trials that could not be compared within a group."""
    lost = len(attacked) - sum(len(group.restored) for group in evaluation.groups)
    if not lost:
        return []
    column = Reference("attribute", evaluation.column)
    return [warning("trials_without_group", lost=lost, trials=len(attacked), column=column)]


def _no_pairs() -> InputError:
    return InputError(
        "--learning-curve and --label-noise need known pairs and clear trials",
        fix="give --clear-trials and --method procrustes",
    )


def _learn(
    known: tuple[Embeddings | None, Embeddings | None], settings: StudySettings, engine: Engine
) -> list[InversionMap]:
    clear, anonymized = known
    if clear is None or anonymized is None:
        if settings.oracle:
            raise InputError("--oracle learns on the clear trials, and there are none", fix="give --clear-trials")
        fix = "give --clear-train and --anonymized-train, or --load-map"
        raise InputError("there is nothing to learn the map from", fix=fix)
    chosen = [settings.seed + number for number in range(settings.seeds)]
    # A batch per process computes once what does not depend on the seed; batches do not change the results.
    size = -(-len(chosen) // min(engine.workers, len(chosen)))
    batches = [
        (clear, anonymized, settings.inversion, tuple(chosen[start : start + size]))
        for start in range(0, len(chosen), size)
    ]
    return [learned for batch in map_ordered(engine, _learn_batch, batches) for learned in batch]


def _learn_batch(
    batch: tuple[Embeddings, Embeddings, InversionSettings, tuple[int, ...]],
) -> list[InversionMap]:
    return learn_seeds(*batch)


def _without_a_map(attacked: Embeddings, clear: Embeddings, intervals: bool) -> dict[str, list[Estimate]]:
    """Top-1 without any map, where the two sides can be compared at all."""
    if attacked.dimension != clear.dimension:
        return {}
    plain = evaluate(identity_map(clear.dimension), attacked, clear)
    return {
        "top1_before": [
            group.whose.estimate("top1", intervals=intervals, at=plain.at(group)).with_(
                name="top1_before", label="Top-1 before inversion"
            )
            for group in plain.groups
        ]
    }


def _carry_over(
    learned: InversionMap, inputs: InversionInputs, settings: StudySettings
) -> tuple[dict[str, list[Estimate]], list[Finding]]:
    """The same map on another run of the anonymizer, and how much of the trials that run covers."""
    assert inputs.again is not None
    attacked = inputs.anonymized_trials
    common = [u for u in attacked.utterances if u in inputs.again.utterance_rows]
    if not common:
        raise InputError(
            "the other run of the anonymizer has none of the attacked utterances",
            path=inputs.again.source or None,
            fix="--other-run takes the trials, anonymized once more",
        )
    findings = []
    if len(common) < len(attacked):
        findings.append(warning("other_run_incomplete", common=len(common), attacked=len(attacked)))
    if len(common) < len(inputs.again):
        findings.append(warning("other_run_left_out", count=len(inputs.again) - len(common)))
    again = inputs.again.of_utterances(common)
    carried = evaluate(learned, again, inputs.clear_trials, inputs.enrolled).estimates(inputs.key, **settings.measured)
    return {
        f"{name}_again": [
            point.with_(name=f"{point.name}_again", label=f"{point.label}, other run") for point in carried[name]
        ]
        for name in AGAIN
        if name in carried
    }, findings


def _each_seed(
    maps: Sequence[InversionMap], inputs: InversionInputs, settings: StudySettings
) -> list[Mapping[str, Any]]:
    """EER and Top-1 of every seed, with the objective that the attacker sees."""
    rows: list[Mapping[str, Any]] = []
    for number, learned in enumerate(maps):
        evaluation = evaluate(learned, inputs.anonymized_trials, inputs.clear_trials, inputs.enrolled)
        row: dict[str, Any] = {"seed": settings.seed + number, "objective": objective(learned)}
        row["eer"] = evaluation.eer(inputs.key, method=settings.eer_method, fold=settings.fold_eer)
        if inputs.clear_trials is not None:
            row["top1"] = {group: value[0] for group, value in evaluation.top1().items()}
            row["top1_clear"] = {group: value[1] for group, value in evaluation.top1().items()}
        rows.append(row)
    return rows


def _spread_of(rows: Sequence[Mapping[str, Any]]) -> Finding:
    figures = [(name, group) for name in ("eer", "top1") for group in rows[0].get(name, {})]
    seeds = [[float(row[name][group]) for row in rows] for name, group in figures]
    return Finding.of(
        "inversion_spread",
        seeds=len(rows),
        measures=tuple(name for name, _ in figures),
        groups=tuple(Reference("value", group) for _, group in figures),
        means=tuple(sum(values) / len(values) for values in seeds),
        lowest=tuple(map(min, seeds)),
        highest=tuple(map(max, seeds)),
    )


def _needs(
    estimates: Mapping[str, Sequence[Estimate]],
    known: tuple[Embeddings | None, Embeddings | None],
    inputs: InversionInputs,
    settings: StudySettings,
    engine: Engine,
) -> dict[str, list[Estimate]]:
    """The level of chance of Top-1 by shuffled pairs, and the curves that were asked for."""
    clear, anonymized = known
    if inputs.clear_trials is None or clear is None or anonymized is None:
        if settings.learning_curve or settings.label_noise:
            raise _no_pairs()
        return {}
    data = InversionData(clear, anonymized, inputs.clear_trials, inputs.anonymized_trials, settings.inversion)
    by_measure: dict[str, list[Estimate]] = {name: list(estimates[name]) for name in ("top1", "top1_clear")}
    if settings.shuffles and not settings.oracle:
        nulls = permutation_null(data, shuffles=settings.shuffles, seed=settings.seed, engine=engine)
        by_measure = {name: [_with_null(point, nulls) for point in points] for name, points in by_measure.items()}
    blind = {next(iter(p.at.values()), ""): p.extra.get("blind_guess", p.null) for p in by_measure["top1"]}
    drawn: dict[str, Any] = {"repeats": settings.repeats, "seed": settings.seed, "engine": engine}
    curves = {}
    if settings.learning_curve:
        curves["learning_curve"] = learning_curve(data, **drawn)["top1"]
    if settings.label_noise:
        curves["label_noise"] = label_noise(data, **drawn)["top1"]
    for name, points in curves.items():
        by_measure[name] = [point.with_(null=blind[point.at.get("gender", "")]) for point in points]
    return by_measure


def _with_null(point: Estimate, nulls: Mapping[str, tuple[float, tuple[float, float]]]) -> Estimate:
    """Chance as attacks with shuffled pairs give it, beside what blind guessing would."""
    group = next(iter(point.at.values()), "")
    mean, span = nulls[f"{point.name}@{group}" if group else point.name]
    return point.with_(null=mean, null_range=span, extra={**point.extra, "blind_guess": point.null})


def pairing_findings(clear: Embeddings | None, anonymized: Embeddings | None, learned: InversionMap) -> list[Finding]:
    """Utterances of one training set only, and too few pairs."""
    if clear is None or anonymized is None:
        return []
    findings = []
    for side, other, name in ((clear, anonymized, "anonymized"), (anonymized, clear, "clear")):
        alone = [u for u in side.utterances if u not in other.utterance_rows]
        if alone:
            findings.append(
                warning(
                    "training_unpaired",
                    count=len(alone),
                    version=name,
                    example=Reference("recording", alone[0]),
                )
            )
    for group, facts in learned.facts["learnt"].items():
        if facts["clear"] < facts["dimension"]:
            named = Reference("value", group, learned.column) if group else None
            findings.append(warning("few_pairs", pairs=facts["clear"], dimension=facts["dimension"], group=named))
    return findings


def _doubts(estimates: Mapping[str, Sequence[Estimate]], settings: StudySettings, *, learned: bool) -> list[Finding]:
    doubts = []
    if settings.oracle:
        doubts.append(warning("oracle_map"))
    inside = [point for point in estimates.get("top1", ()) if point.inside_null]
    if inside and learned and settings.inversion.supervised and not settings.oracle:
        doubts.append(warning("no_better_than_shuffled"))
    return doubts
