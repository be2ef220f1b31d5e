"""The parts of an assessment beside the attackers' scores: similarity matrices, inference, a second run, score files.

Each is a top-level function of picklable arguments that gives plain values and arrays, so that the engine can run it
anywhere and a stage can keep it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any

import numpy as np

from veilmeter.assessment.measuring import Found, Job, det_of, make_matrix, measure_attack, profile_of, tied_share
from veilmeter.assessment.tasks import Result, Values
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.scores import Scores, encode
from veilmeter.metrics.inference import infer
from veilmeter.metrics.legal.chance import FigureKey, Relabeled
from veilmeter.metrics.legal.sessions import linkability_by_session
from veilmeter.metrics.scores.score_sets import calibrated_on, compared
from veilmeter.metrics.scores.summary import measure_scores
from veilmeter.metrics.similarity.estimates import similarity_estimates
from veilmeter.metrics.similarity.matrices import KINDS, Similarity, similarity
from veilmeter.metrics.similarity.zoo import zoo


def plain_estimates(found: Mapping[str, Estimate | list[Estimate]]) -> Values:
    return {
        name: one.to_json() if isinstance(one, Estimate) else [point.to_json() for point in one]
        for name, one in found.items()
    }


def attacker_piece(job: Job) -> Result:
    found = measure_attack(job)
    arrays: dict[str, Any] = {"scores": found.scores}
    values = values_of(found)
    if found.relabeled is not None:
        values["figures"] = [astuple(figure) for figure in found.relabeled.figures]
        values["enrolled"] = list(found.relabeled.enrolled)
        arrays |= {name: getattr(found.relabeled, name) for name in ("values", "first", "own")}
    return values, arrays


def relabeled_of(result: Result) -> Relabeled | None:
    """The figures of one attacker under relabeling, as `attacker_piece` left them."""
    values, arrays = result
    if "figures" not in values:
        return None
    figures = tuple(FigureKey(*figure) for figure in values["figures"])
    return Relabeled(figures, arrays["values"], tuple(values["enrolled"]), arrays["first"], arrays["own"])


def values_of(found: Found) -> Values:
    return {
        "backend": found.backend,
        "estimates": found.estimates,
        "by": found.by,
        "profile": found.profile,
        "det": found.det,
        "people": found.people,
        "warnings": found.warnings,
        "ties": found.ties,
    }


def read_all(files: Sequence[Path], keys: Sequence[Path]) -> Scores:
    """Score files with their keys (one for each, or one for all) as one set."""
    from veilmeter.data.scores import read_scores

    if len(keys) not in (0, 1, len(files)):
        raise InputError(f"there are {len(files)} score files but {len(keys)} trial keys", fix="give one key for each")
    matched: list[Path | None] = [*keys] or [None]
    if len(matched) == 1:
        matched = matched * len(files)
    parts = [read_scores(file, key) for file, key in zip(files, matched, strict=True)]
    return parts[0] if len(parts) == 1 else merge_scores(parts)


Groups = Mapping[str, Mapping[str, str]]


def split(scores: Scores, groups: Groups) -> dict[str, dict[str, Scores]]:
    """The trials of enrolled people of each group, where both classes are left."""
    by: dict[str, dict[str, Scores]] = {}
    for attribute, values in groups.items():
        by[attribute] = {}
        for value in sorted({v for v in values.values() if v}):
            if scores.enrol_speaker is None:
                continue
            inside = np.array([values.get(name) == value for name in scores.names], dtype=bool)
            rows = np.flatnonzero(inside[scores.enrol_speaker])
            if len(rows) and scores.is_target[rows].any() and not scores.is_target[rows].all():
                by[attribute][value] = scores.take(rows)
    return by


def scores_piece(
    files: Sequence[Path], keys: Sequence[Path], groups: Groups, intervals: bool, resamples: int, seed: int
) -> Result:
    """Scores of another system, measured as they are, all files together and within each group."""
    scores = read_all(files, keys)

    def measured(part: Scores) -> Values:
        return plain_estimates(measure_scores(part, intervals=intervals, resamples=resamples, seed=seed))

    by = {
        attribute: {value: {"estimates": measured(part)} for value, part in parts.items()}
        for attribute, parts in split(scores, groups).items()
    }
    return {
        "estimates": measured(scores),
        "by": by,
        "profile": profile_of(scores),
        "det": det_of(scores),
        "ties": tied_share(scores),
    }, {}


def merge_scores(parts: Sequence[Scores]) -> Scores:
    """Several score files as one set; who spoke is known only if all of them know it."""
    values = np.concatenate([part.values for part in parts])
    is_target = np.concatenate([part.is_target for part in parts])
    sides: list[list[Any]] = [[], []]
    for part in parts:
        if part.enrol_speaker is None or part.test_speaker is None:
            return Scores(values, is_target, source=parts[0].source)
        names = np.array(list(part.names), object)
        sides[0].append(names[part.enrol_speaker])
        sides[1].append(names[part.test_speaker])
    names_all, enrol, test = encode(np.concatenate(sides[0]), np.concatenate(sides[1]))
    return Scores(values, is_target, enrol, test, names_all, parts[0].source, parts[0].speakers_from)


def score_sets_piece(
    sets: Mapping[str, Job | tuple[Sequence[Path], Sequence[Path]]],
    groups: Groups,
    intervals: bool,
    resamples: int,
    seed: int,
) -> Result:
    """Eq. 17-20 of Noé et al. 2022 from original-original, original-protected and protected-protected scores: those of
    the jobs, or where all three were given as files, those."""
    scores = {}
    for name, one in sets.items():
        if isinstance(one, Job):
            matrix = make_matrix(one, one.recipe.scorer(one.enrol, one.test), 1)
            if matrix is None:
                raise InputError("there are no single trials")
            scores[name] = matrix.to_scores()
        else:
            scores[name] = read_all(*one)

    def found(parts: Sequence[Scores]) -> Values:
        return plain_estimates(compared(*parts, intervals=intervals, resamples=resamples, seed=seed))

    order = ("original", "ignorant", "lazy-informed")
    parts = {name: split(scores[name], groups) for name in order}
    by: Values = {}
    for attribute in groups:
        shared = set.intersection(*(set(parts[name][attribute]) for name in order))
        by[attribute] = {
            value: {"estimates": found([parts[name][attribute][value] for name in order])} for value in sorted(shared)
        }
    return {"estimates": found([scores[name] for name in order]), "by": by}, {}


def similarity_piece(
    original: Embeddings, anonymized: Embeddings, groups: Mapping[str, Mapping[str, str]], intervals: bool, seed: int
) -> Result:
    """Voice similarity matrices of all trial utterances, and within each group."""
    whole = _similarity(original, anonymized, intervals, seed)
    if whole is None:
        raise InputError("no two speakers have two utterances each: there are no similarity matrices")
    values = _similarity_values(whole, original, anonymized)
    by: Values = {}
    for attribute, of in groups.items():
        by[attribute] = {}
        for value in sorted({v for v in of.values() if v}):
            rows = np.array([of.get(speaker) == value for speaker in original.speakers])
            if not rows.any():
                continue
            sides = original.take(rows), anonymized.take(rows)
            part = _similarity(*sides, intervals, seed)
            if part is not None:
                by[attribute][value] = _similarity_values(part, *sides)
    arrays: dict[str, Any] = {kind: whole.similarities[kind] for kind in KINDS}
    people = {name: float(v) for name, v in zip(whole.names, whole.per_speaker("OP"), strict=True)}
    own = {name: float(v) for name, v in zip(whole.names, whole.per_speaker("OO"), strict=True)}
    deids = {name: 100 * (1 - abs(people[name]) / abs(own[name])) if own[name] else None for name in people}
    # Whose protected voice is still taken for their own: the zoo of original against protected voices.
    animals = zoo(whole.op, whole.names).to_json()
    return values | {"by": by, "zoo": animals, "names": list(whole.names), "deid": deids}, arrays


def _similarity(original: Embeddings, anonymized: Embeddings, intervals: bool, seed: int) -> Similarity | None:
    counts = np.bincount(original.codes)
    enough = counts[original.codes] >= 2
    if len(np.unique(original.codes[enough])) < 2:
        return None
    keep = np.flatnonzero(enough)
    return similarity(
        original.vectors[keep], anonymized.vectors[keep], original.speakers[keep], spreads=intervals, seed=seed
    )


def _similarity_values(found: Similarity, original: Embeddings, anonymized: Embeddings) -> Values:
    variants: dict[str, dict[str, float]] = {}
    counts = np.bincount(original.codes)
    keep = np.flatnonzero(counts[original.codes] >= 2)
    for pairs in ("all", "vpc"):
        one = found
        if pairs != found.pairs:
            one = similarity(original.vectors[keep], anonymized.vectors[keep], original.speakers[keep], pairs="vpc")
        for form in ("geometric", "arithmetic"):
            shaped = one if form == one.form else one.with_form(form)
            variants[f"{form}, {pairs} pairs"] = {
                "deid": shaped.deid,
                "g_vd": shaped.g_vd,
                **{f"d_diag_{kind.lower()}": shaped.d_diag[kind] for kind in KINDS},
            }
    return {
        "estimates": plain_estimates(similarity_estimates(found)),
        "form": found.form,
        "pairs": found.pairs,
        "variants": variants,
    }


def inference_piece(
    original: Embeddings, anonymized: Embeddings, attributes: Sequence[str], resamples: int, intervals: bool, seed: int
) -> Result:
    """Every attribute guessed from anonymized and from original speech; one that can't be says why."""
    found: Values = {}
    for attribute in attributes:
        try:
            guessed = infer(anonymized, attribute, seed=seed)
            before = infer(original, attribute, seed=seed)
        except InputError as error:
            found[attribute] = {"not_possible": error.what}
            continue
        found[attribute] = {
            "estimate": guessed.estimate(intervals=intervals, resamples=resamples, seed=seed).to_json(),
            "majority": 100 / len(guessed.values),
            "original": before.estimate(intervals=intervals, resamples=resamples, seed=seed).to_json(),
            "values": guessed.counts,
            "left_out": guessed.left_out,
        }
    return found, {}


def sessions_piece(original: Embeddings, anonymized: Embeddings, intervals: bool, seed: int) -> Result:
    """Linkability of anonymized recordings within a session, across sessions and to the original voice."""
    found = linkability_by_session(anonymized, original, seed=seed)
    values = {"estimates": plain_estimates(found.estimates(intervals=intervals)), "sessions": found.sessions}
    return values | {"left_out": len(found.left_out)}, {}


def runs_piece(first: Mapping[str, Job], second: Mapping[str, Job], across: Job) -> Result:
    """Two runs of one safeguard: what an attacker gets who calibrated on the other run (C_ECE), and whether recordings
    of one person link across the runs."""
    values: Values = {"estimates": {}, "by_attacker": {}}
    for name, job in first.items():
        sides = []
        for one in (job, second[name]):
            matrix = make_matrix(one, one.recipe.scorer(one.enrol, one.test), 1)
            if matrix is None:
                raise InputError("there are no single trials")
            sides.append(matrix.to_scores())
        found = calibrated_on(sides[1], sides[0], intervals=job.intervals, resamples=job.resamples, seed=job.seed)
        values["by_attacker"][name] = plain_estimates(found)
    linked = measure_attack(across)
    values["across"] = {"estimates": linked.estimates, "warnings": linked.warnings}
    worst = max(values["by_attacker"], key=lambda name: _number(values["by_attacker"][name]["c_ece_linear"]["value"]))
    values["estimates"] = dict(values["by_attacker"][worst]) | {"linkability": linked.estimates.get("linkability", [])}
    values["attacker"] = worst
    return values, {}


def _number(value: Any) -> float:
    return float(value) if value is not None else float("-inf")
