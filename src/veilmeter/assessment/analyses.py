"""Analyses beside the attackers: similarity, ZEBRA (eq. 17-20), inference, sessions, several runs, inversion.

Each is a top-level function of picklable arguments, so that the engine can run it anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from veilmeter.assessment.attack import Job, MeasureOptions, MeasureVersion, measure_attack, single_trials
from veilmeter.assessment.given_scores import Groups, ScoreFiles, within_groups
from veilmeter.assessment.tasks import Arrays, TaskResult
from veilmeter.attacks.inversion import evaluate, identity_map, learn
from veilmeter.attacks.inversion.attack import InversionMap, InversionSettings
from veilmeter.attacks.inversion.measures import Evaluation, InversionData, learning_curve, permutation_null
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding, Reference, warning
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.inference import Inference, combine_guesses, infer
from veilmeter.metrics.legal.sessions import linkability_by_session
from veilmeter.metrics.measure import compute_estimates, find_measure
from veilmeter.metrics.scores.score_sets import SetFigures, compare_set_figures, cross_calibration, set_figures
from veilmeter.metrics.similarity.matrices import KINDS, Similarity, similarity, similarity_estimates
from veilmeter.metrics.similarity.zoo import zoo
from veilmeter.results.model import Part

MOST_COMPARED = 2400  # recordings in similarity matrices: 6 million pairs, each scored and calibrated three times
ZEBRA_SETS = ("original", "ignorant", "lazy-informed")  # original-original, original-protected, protected-protected
PCA_DIMENSION = 70  # of inversion, as in Champion et al. 2021
LOOKED_UP, ON_THE_CURVE = 2000, 500  # trials per group at most: enough to know a rate to a percent or two


def score_sets_part(sets: Mapping[str, Job | ScoreFiles], options: MeasureOptions) -> tuple[TaskResult, Arrays]:
    """Eq. 17-20 of Noé et al. 2022 from original-original, original-protected and protected-protected scores, of jobs
    or of files."""
    measured = partial(set_figures, intervals=options.intervals, resamples=options.resamples, seed=options.seed)
    whole: dict[str, SetFigures] = {}
    within: dict[str, dict[tuple[str, str], SetFigures]] = {}
    for name in ZEBRA_SETS:  # one after the other: three sets of scores at once would fill memory
        held = sets[name]
        scores = held.read() if isinstance(held, ScoreFiles) else single_trials(held)
        whole[name] = measured(scores)
        within[name] = {
            (attribute, value): measured(part) for attribute, value, part in within_groups(scores, options.groups)
        }
        del scores
    by: dict[str, dict[str, Estimates]] = {attribute: {} for attribute in options.groups}
    for attribute, value in sorted(set.intersection(*(set(within[name]) for name in ZEBRA_SETS))):
        figures = [within[name][attribute, value] for name in ZEBRA_SETS]
        by[attribute][value] = Estimates.of(compare_set_figures(*figures))
    source = "scores" if all(isinstance(held, ScoreFiles) for held in sets.values()) else "vectors"
    part = Part(
        name="zebra",
        estimates=Estimates.of(compare_set_figures(*(whole[name] for name in ZEBRA_SETS))),
        by=by,
        details={"source": source},
    )
    return TaskResult(part=part), {}


def similarity_part(
    original: Embeddings, anonymized: Embeddings, groups: Groups, intervals: bool, seed: int
) -> tuple[TaskResult, Arrays]:
    """Voice similarity matrices of all trial utterances, and within each group."""
    enough = _enough(original)
    drawn = _draw_recordings(original, seed)
    everybody = len(np.unique(original.codes[enough]))
    original, anonymized = original.take(drawn), anonymized.take(drawn)
    whole = _similarity(original, anonymized, intervals, seed)
    if whole is None:
        raise InputError("similarity matrices need two speakers with two utterances each")
    findings: tuple[Finding, ...] = ()
    if len(drawn) < len(enough):
        speakers = {"speakers": len(whole.names), "all_speakers": everybody}
        findings = (warning("similarity_drawn", recordings=len(drawn), all_recordings=len(enough), **speakers),)
    by: dict[str, dict[str, Estimates]] = {}
    variants: dict[str, Any] = {}
    for attribute, values in groups.items():
        by[attribute], variants[attribute] = {}, {}
        for value in sorted({v for v in values.values() if v}):
            rows = np.array([values.get(speaker) == value for speaker in original.speakers])
            if not rows.any():
                continue
            sides = original.take(rows), anonymized.take(rows)
            matrices = _similarity(*sides, intervals, seed)
            if matrices is not None:
                by[attribute][value] = Estimates.of(similarity_estimates(matrices))
                variants[attribute][value] = _variants(matrices, *sides)
    details = {
        "form": whole.form,
        "pairs": whole.pairs,
        "variants": _variants(whole, original, anonymized),
        "variants_by": variants,
        # The zoo of original against protected voices shows whose protected voice is still recognized as their own.
        "zoo": zoo(whole.op, whole.names).to_json(),
        "deid": _deid_of_people(whole),
    }
    part = Part(name="similarity", estimates=Estimates.of(similarity_estimates(whole)), by=by, details=details)
    arrays: Arrays = {str(kind): np.asarray(whole.similarities[kind], float) for kind in KINDS}
    return TaskResult(part=part, names=tuple(whole.names), findings=findings), arrays


def _deid_of_people(whole: Similarity) -> dict[str, float | None]:
    crossed, own = whole.per_speaker("OP"), whole.per_speaker("OO")
    return {
        name: 100 * (1 - abs(float(op)) / abs(float(oo))) if oo else None
        for name, op, oo in zip(whole.names, crossed, own, strict=True)
    }


def _enough(original: Embeddings) -> np.ndarray:
    """The rows of speakers with at least two utterances."""
    return np.flatnonzero(np.bincount(original.codes)[original.codes] >= 2)


def _draw_recordings(original: Embeddings, seed: int) -> np.ndarray:
    """The rows of as many recordings as there is time to compare: fewer of each speaker, two at least, and where that
    is not enough, those of some speakers."""
    keep = _enough(original)
    if len(keep) <= MOST_COMPARED:
        return keep
    rng = np.random.default_rng([seed, 8])
    counts = np.bincount(original.codes[keep], minlength=len(original.names))
    most = int(counts.max())
    while most > 2 and np.minimum(counts, most).sum() > MOST_COMPARED:
        most -= 1
    # In random order each speaker's first few are drawn, and speakers in another one.
    shuffled = rng.permutation(keep)
    by_speaker = shuffled[np.argsort(original.codes[shuffled], kind="stable")]
    place = np.arange(len(by_speaker)) - (np.cumsum(counts) - counts)[original.codes[by_speaker]]
    taken = np.minimum(counts, most)
    order = rng.permutation(np.flatnonzero(counts))
    drawn = order[: max(2, int(np.searchsorted(np.cumsum(taken[order]), MOST_COMPARED, side="right")))]
    return np.sort(by_speaker[(place < most) & np.isin(original.codes[by_speaker], drawn)])


def _similarity(original: Embeddings, anonymized: Embeddings, intervals: bool, seed: int) -> Similarity | None:
    keep = _enough(original)
    if len(np.unique(original.codes[keep])) < 2:
        return None
    return similarity(
        original.vectors[keep], anonymized.vectors[keep], original.speakers[keep], spreads=intervals, seed=seed
    )


def _variants(measured: Similarity, original: Embeddings, anonymized: Embeddings) -> dict[str, dict[str, float]]:
    """Both forms of the papers, with all pairs and with those of the challenge's script."""
    variants: dict[str, dict[str, float]] = {}
    keep = _enough(original)
    for pairs in ("all", "vpc"):
        paired = measured
        if pairs != measured.pairs:
            paired = similarity(original.vectors[keep], anonymized.vectors[keep], original.speakers[keep], pairs="vpc")
        for form in ("geometric", "arithmetic"):
            shaped = paired if form == paired.form else paired.with_form(form)
            variants[f"{form}, {pairs} pairs"] = {
                "deid": shaped.deid,
                "g_vd": shaped.g_vd,
                **{f"d_diag_{kind.lower()}": shaped.d_diag[kind] for kind in KINDS},
            }
    return variants


def inference_part(
    original: Embeddings, anonymized: Embeddings, attributes: Sequence[str], resamples: int, intervals: bool, seed: int
) -> tuple[TaskResult, Arrays]:
    """Inference of every attribute from anonymized speech and, for comparison, from original speech."""
    guesses: list[Estimate] = []
    before: list[Estimate] = []
    details: dict[str, Any] = {}
    reasons = []
    inferences: list[Inference] = []
    for attribute in attributes:
        try:
            guessed, known = (infer(side, attribute, seed=seed) for side in (anonymized, original))
        except InputError as error:
            column = Reference("attribute", attribute)
            reasons.append(warning("attribute_not_inferred", attribute=column, reason=Reference("text", error.what)))
            continue
        inferences.append(guessed)
        for collected, inference in ((guesses, guessed), (before, known)):
            estimate = inference.estimate(intervals=intervals)
            collected.append(estimate.with_(at={"attribute": attribute, **estimate.at}))
        details[attribute] = {
            "majority": 100 / len(guessed.values),
            "values": guessed.counts,
            "left_out": guessed.left_out,
        }
    together = combine_guesses(inferences)
    details |= {} if together is None else {f"combined_{name}": count for name, count in asdict(together).items()}
    part = Part(name="inference", estimates=Estimates(guesses), reference=Estimates(before), details=details)
    return TaskResult(part=part, not_tested=tuple(reasons)), {}


def sessions_part(
    original: Embeddings, anonymized: Embeddings, intervals: bool, seed: int
) -> tuple[TaskResult, Arrays]:
    """Linkability of anonymized recordings within a session, across sessions and to the original voice."""
    linked = linkability_by_session(anonymized, original, seed=seed)
    part = Part(
        name="sessions",
        estimates=Estimates.of(linked.estimates(intervals=intervals)),
        details={"sessions": linked.sessions, "left_out": len(linked.left_out)},
    )
    return TaskResult(part=part), {}


def runs_part(first: Mapping[str, Job], second: Mapping[str, Job], across: Job) -> tuple[TaskResult, Arrays]:
    """Two runs of one anonymizer: leakage when the attacker calibrates on the other run (C_ECE), and Linkability across
    the runs."""
    by_attacker: dict[str, Estimates] = {}
    for name, job in first.items():
        options = job.options
        before, after = single_trials(job), single_trials(second[name])
        by_attacker[name] = Estimates.of(
            cross_calibration(
                after, before, intervals=options.intervals, resamples=options.resamples, seed=options.seed
            )
        )

    def disclosure(name: str) -> float:
        estimate = by_attacker[name].single("c_ece_linear")
        return float("-inf") if estimate is None or np.isnan(estimate.value) else estimate.value

    worst = max(by_attacker, key=disclosure)
    linked, _ = measure_attack(across)
    assert linked.attacker is not None
    part = Part(
        name="runs",
        estimates=by_attacker[worst] + linked.attacker.estimates.points("linkability"),
        reference=linked.attacker.estimates,
        by={"attacker": by_attacker},
        details={"attacker": worst},
    )
    return TaskResult(part=part, findings=linked.findings), {}


@dataclass(frozen=True, eq=False)
class KnownPairs:
    """The data of an inversion attack: enrollment and trials, clear and anonymized, by one extractor.

    The attacker makes the anonymized enrollment itself.
    """

    clear_enrollment: Embeddings
    anonymized_enrollment: Embeddings
    clear_trials: Embeddings
    anonymized_trials: Embeddings


def inversion_part(
    known: KnownPairs, others: Mapping[str, KnownPairs], intervals: bool, seed: int, eer_method: str = "rocch"
) -> tuple[TaskResult, Arrays]:
    """Inversion attacks in all their variants (Champion et al. 2021), beside the inversion attackers:
    Procrustes with and without PCA, centering and a map for each gender, also on the vectors of attackers with their
    own extractor; and the paper's comparisons without any map.

    The variants are cheap and a real attacker would try them all, so the strongest is the worst case.
    """
    measured: list[Estimate] = []
    oracle: list[Estimate] = []
    how = intervals, eer_method
    for extractor, sides in {"": known, **others}.items():
        if sides.clear_enrollment.dimension != sides.anonymized_enrollment.dimension:
            continue
        for settings in _inversion_settings(sides, seed):
            try:
                learned = learn(sides.clear_enrollment, sides.anonymized_enrollment, settings)
            except InputError:
                continue
            done = _evaluate_inversion(learned, sides)
            measured += _inversion_points(done, _inversion_at("procrustes", settings, extractor), *how)
        best = InversionSettings(pca=_pca_dimension(sides.clear_trials), by=_inversion_by(sides), seed=seed)
        learned = learn(sides.clear_trials, sides.anonymized_trials, best)
        done = _evaluate_inversion(learned, sides)
        oracle += _inversion_points(done, _inversion_at("procrustes, oracle", best, extractor), *how)
    if not measured:
        raise InputError("no inversion could be learned")
    part = Part(
        name="inversion",
        estimates=_by_name(measured),
        reference=_by_name([*oracle, *_inversion_baselines(known, others, eer_method)]),
    )
    return TaskResult(part=part, findings=_lookup_findings(known, LOOKED_UP)), {}


def _lookup_findings(known: KnownPairs, most: int) -> tuple[Finding, ...]:
    """A warning where not all trials are looked up."""
    trials = len(known.anonymized_trials)
    if trials <= most:
        return ()
    return (warning("lookups_drawn", trials=trials, most=most),)


def _evaluate_inversion(learned: InversionMap, sides: KnownPairs) -> Evaluation:
    return evaluate(learned, sides.anonymized_trials, sides.clear_trials, sides.clear_enrollment, most=LOOKED_UP)


def _by_name(points: Sequence[Estimate]) -> Estimates:
    """Measure by measure, in the order in which each was first met."""
    names = dict.fromkeys(point.name for point in points)
    return Estimates(point for name in names for point in points if point.name == name)


def _inversion_settings(known: KnownPairs, seed: int) -> list[InversionSettings]:
    kinds = [
        InversionSettings(seed=seed),
        InversionSettings(center=True, seed=seed),
        InversionSettings(pca=_pca_dimension(known.clear_enrollment), seed=seed),
    ]
    if _inversion_by(known):
        kinds += [
            InversionSettings(by="gender", seed=seed),
            InversionSettings(pca=_pca_dimension(known.clear_enrollment), by="gender", seed=seed),
        ]
    return kinds


def _pca_dimension(embeddings: Embeddings) -> int:
    """As in the paper, or as many as the number of vectors allows (of either gender)."""
    return max(1, min(PCA_DIMENSION, embeddings.dimension, len(embeddings) // 3))


def _inversion_by(known: KnownPairs) -> str:
    sides = (known.clear_enrollment, known.anonymized_enrollment, known.clear_trials, known.anonymized_trials)
    genders = [side.attributes.get("gender") for side in sides]
    if any(column is None or not all(column) for column in genders):
        return ""
    values = [set(column) for column in genders if column is not None]
    return "gender" if all(occurring == values[0] for occurring in values) and len(values[0]) > 1 else ""


def _inversion_at(attack: str, settings: InversionSettings, extractor: str) -> dict[str, str | int]:
    at: dict[str, str | int] = {"attack": attack, "pca": settings.pca or 0}
    if settings.center:
        at["centered"] = "yes"
    if settings.by:
        at["by"] = settings.by
    if extractor:
        at["extractor"] = extractor
    return at


def _inversion_points(
    done: Evaluation, at: Mapping[str, str | int], intervals: bool, eer_method: str
) -> list[Estimate]:
    eers, roc = done.eer(method=eer_method), done.eer(method="roc", fold=True)
    points: list[Estimate] = []
    for group in done.groups:
        where = {**at, **done.at(group)}
        for name, ranked in (("top1", group.whose), ("top1_clear", group.where)):
            points.append(ranked.estimate(name, intervals=intervals, at=where))
        if group.name in eers:
            points.append(_inversion_eer(eers[group.name], roc[group.name], where, eer_method))
    return points


def _inversion_eer(percent: float, roc: float, at: Mapping[str, str | int | float], eer_method: str) -> Estimate:
    """Unfolded; `extra` has the EER as the paper computes it."""
    entry = find_measure("eer")
    return Estimate(
        name="eer",
        label=entry.label,
        value=percent,
        unit=entry.unit,
        better=entry.better,
        null=50.0,
        method=f"{eer_method}, plain means as enrollment models",
        at=at,
        extra={"roc_folded": roc},
    )


def _inversion_baselines(known: KnownPairs, others: Mapping[str, KnownPairs], eer_method: str) -> list[Estimate]:
    """Lines 1 to 4 of Table 2: no map, plain means of the vectors as they are, cosine."""
    rows = [
        ("original", known.clear_enrollment, known.clear_trials),
        ("ignorant", known.clear_enrollment, known.anonymized_trials),
        ("lazy-informed", known.anonymized_enrollment, known.anonymized_trials),
        *((name, sides.anonymized_enrollment, sides.anonymized_trials) for name, sides in others.items()),
    ]
    points = []
    for attacker, enrollment, trials in rows:
        if enrollment.dimension != trials.dimension:
            continue
        done = evaluate(identity_map(enrollment.dimension), trials, None, enrollment, most=LOOKED_UP)
        eers, plain = done.eer(method=eer_method), done.eer(method="roc")
        roc = {name: min(percent, 100 - percent) for name, percent in plain.items()}
        for group in done.groups:
            if group.name in eers:
                at = {"attack": "none", "attacker": attacker, **done.at(group)}
                point = _inversion_eer(eers[group.name], roc[group.name], at, eer_method)
                points.append(point.with_(extra={**point.extra, "roc": plain[group.name]}))
    return points


def curve_part(known: KnownPairs, seed: int, repeats: int = 3, shuffles: int = 10) -> tuple[TaskResult, Arrays]:
    """The attack's success against the number of known pairs, and with shuffled pairs."""
    experiment = InversionData(
        known.clear_enrollment,
        known.anonymized_enrollment,
        known.clear_trials,
        known.anonymized_trials,
        InversionSettings(center=True, seed=seed),
        ON_THE_CURVE,
    )
    curve = learning_curve(experiment, repeats=repeats, seed=seed)
    null = permutation_null(experiment, shuffles=shuffles, seed=seed)
    details = {
        "learning_curve": [point.to_json() for point in curve.get("top1", [])],
        "null": {name: {"mean": mean, "range": list(ends)} for name, (mean, ends) in null.items()},
    }
    return TaskResult(part=Part(name="inversion", details=details), findings=_lookup_findings(known, ON_THE_CURVE)), {}


def measures_part(
    measures: Sequence[MeasureVersion], original: Embeddings, anonymized: Embeddings
) -> tuple[TaskResult, Arrays]:
    """The measures of embeddings before and after, as one part of the results, and the reasons for those without
    a value."""
    points: list[Estimate] = []
    reasons: list[Finding] = []
    for entry in measures:
        try:
            points += compute_estimates(entry.load(), original, anonymized)
        except InputError as error:
            reasons.append(warning("measure_not_possible", measure=entry.name, reason=Reference("text", str(error))))
    return TaskResult(part=Part(name="added", estimates=Estimates(points)), not_tested=tuple(reasons)), {}
