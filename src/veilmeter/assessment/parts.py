"""The parts of an assessment beside the attackers: similarity, eq. 17-20, inference, sessions, several runs.

Each is a top-level function of picklable arguments, so that the engine can run it anywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from veilmeter.assessment.attack import Job, MeasureOptions, measure_attack, single_trials
from veilmeter.assessment.given_scores import Groups, ScoreFiles, within_groups
from veilmeter.assessment.tasks import Arrays, TaskResult
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.estimates import Estimates
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.inference import infer
from veilmeter.metrics.legal.sessions import linkability_by_session
from veilmeter.metrics.scores.score_sets import SetFigures, calibrated_on, compared_figures, set_figures
from veilmeter.metrics.similarity.estimates import similarity_estimates
from veilmeter.metrics.similarity.matrices import KINDS, Similarity, similarity
from veilmeter.metrics.similarity.zoo import zoo
from veilmeter.results.model import Part

MOST_COMPARED = 2400  # recordings in similarity matrices: 6 million pairs, each scored and calibrated three times
ZEBRA_SETS = ("original", "ignorant", "lazy-informed")  # original-original, original-protected, protected-protected


def score_sets_part(sets: Mapping[str, Job | ScoreFiles], options: MeasureOptions) -> tuple[TaskResult, Arrays]:
    """Eq. 17-20 of Noé et al. 2022 from original-original, original-protected and protected-protected scores: those of
    the jobs, or where all three were given as files, those."""
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
        by[attribute][value] = Estimates.of(compared_figures(*figures))
    source = "scores" if all(isinstance(held, ScoreFiles) for held in sets.values()) else "vectors"
    part = Part(
        name="zebra",
        estimates=Estimates.of(compared_figures(*(whole[name] for name in ZEBRA_SETS))),
        by=by,
        details={"source": source},
    )
    return TaskResult(part=part), {}


def similarity_part(
    original: Embeddings, anonymized: Embeddings, groups: Groups, intervals: bool, seed: int
) -> tuple[TaskResult, Arrays]:
    """Voice similarity matrices of all trial utterances, and within each group."""
    enough = _enough(original)
    drawn = _drawn_recordings(original, seed)
    everybody = len(np.unique(original.codes[enough]))
    original, anonymized = original.take(drawn), anonymized.take(drawn)
    whole = _similarity(original, anonymized, intervals, seed)
    if whole is None:
        raise InputError("no two speakers have two utterances each: there are no similarity matrices")
    warnings: tuple[str, ...] = ()
    if len(drawn) < len(enough):
        people = f"all {everybody:,}" if len(whole.names) == everybody else f"{len(whole.names):,} of {everybody:,}"
        warnings = (
            f"similarity matrices compare every recording with every other one: {len(drawn):,} of {len(enough):,} "
            f"recordings of {people} speakers were drawn for them (veilmeter similarity takes all)",
        )
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
        # Whose protected voice is still taken for their own: the zoo of original against protected voices.
        "zoo": zoo(whole.op, whole.names).to_json(),
        "deid": _deid_of_people(whole),
    }
    part = Part(name="similarity", estimates=Estimates.of(similarity_estimates(whole)), by=by, details=details)
    arrays: Arrays = {str(kind): np.asarray(whole.similarities[kind], float) for kind in KINDS}
    return TaskResult(part=part, names=tuple(whole.names), warnings=warnings), arrays


def _deid_of_people(whole: Similarity) -> dict[str, float | None]:
    crossed, own = whole.per_speaker("OP"), whole.per_speaker("OO")
    return {
        name: 100 * (1 - abs(float(op)) / abs(float(oo))) if oo else None
        for name, op, oo in zip(whole.names, crossed, own, strict=True)
    }


def _enough(original: Embeddings) -> np.ndarray:
    """The rows of speakers with at least two utterances."""
    return np.flatnonzero(np.bincount(original.codes)[original.codes] >= 2)


def _drawn_recordings(original: Embeddings, seed: int) -> np.ndarray:
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
    """Every attribute guessed from anonymized and, to compare with, from original speech; why one can't be."""
    guesses: list[Estimate] = []
    before: list[Estimate] = []
    details: dict[str, Any] = {}
    reasons = []
    for attribute in attributes:
        try:
            guessed, known = (infer(side, attribute, seed=seed) for side in (anonymized, original))
        except InputError as error:
            reasons.append(f"inference: {error.what}")
            details[attribute] = {"not_possible": error.what}
            continue
        for collected, inference in ((guesses, guessed), (before, known)):
            estimate = inference.estimate(intervals=intervals)
            collected.append(estimate.with_(at={"attribute": attribute, **estimate.at}))
        details[attribute] = {
            "majority": 100 / len(guessed.values),
            "values": guessed.counts,
            "left_out": guessed.left_out,
        }
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
    """Two runs of one safeguard: what an attacker gets who calibrated on the other run (C_ECE), and whether recordings
    of one person link across the runs."""
    by_attacker: dict[str, Estimates] = {}
    for name, job in first.items():
        options = job.options
        before, after = single_trials(job), single_trials(second[name])
        by_attacker[name] = Estimates.of(
            calibrated_on(after, before, intervals=options.intervals, resamples=options.resamples, seed=options.seed)
        )

    def disclosed(name: str) -> float:
        estimate = by_attacker[name].single("c_ece_linear")
        return float("-inf") if estimate is None or np.isnan(estimate.value) else estimate.value

    worst = max(by_attacker, key=disclosed)
    linked, _ = measure_attack(across)
    assert linked.attacker is not None
    part = Part(
        name="runs",
        estimates=by_attacker[worst] + linked.attacker.estimates.points("linkability"),
        reference=linked.attacker.estimates,
        by={"attacker": by_attacker},
        details={"attacker": worst},
    )
    return TaskResult(part=part, warnings=linked.warnings), {}
