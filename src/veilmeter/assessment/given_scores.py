"""Scores of another system, measured as they are; each estimate says whether it comes from them or from vectors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from veilmeter.assessment.attack import MeasureOptions, det_of, effect_of_ties, estimates_of_scores, profile_of
from veilmeter.assessment.tasks import Arrays, TaskResult
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimates
from veilmeter.core.findings import Finding, warning
from veilmeter.data.formats.columns import pieces
from veilmeter.data.scores import Scores, encode
from veilmeter.metrics.legal.one_minus_eer import of_eer
from veilmeter.results.model import AttackerResult

GIVEN = "scores as given"
_BEGINNING = 1 << 17  # bytes of a file: more than its longest line may have
Groups = Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class ScoreFiles:
    """Score files with their keys: one for each, one for all, or none where the scores say it themselves."""

    files: tuple[Path, ...]
    keys: tuple[Path, ...] = ()
    only_common: bool = False  # trials without a score, and scores without a trial, are left out

    def __post_init__(self) -> None:
        for file in (*self.files, *self.keys):  # before their content is hashed: a device has no end
            next(pieces(file, size=_BEGINNING), None)

    def read(self) -> Scores:
        """All of them as one set."""
        from veilmeter.data.scores import read_scores

        if len(self.keys) not in (0, 1, len(self.files)):
            raise InputError(
                f"there are {len(self.files)} score files but {len(self.keys)} trial keys", fix="give one key for each"
            )
        keys: list[Path | None] = [*self.keys] or [None]
        if len(keys) == 1:
            keys = keys * len(self.files)
        parts = [
            read_scores(file, key, only_common=self.only_common) for file, key in zip(self.files, keys, strict=True)
        ]
        return parts[0] if len(parts) == 1 else _merge(parts)


def _merge(parts: Sequence[Scores]) -> Scores:
    """Several score files as one set; who spoke is known only if all of them know it."""
    values = np.concatenate([part.values for part in parts])
    is_target = np.concatenate([part.is_target for part in parts])
    sides: list[list[Any]] = [[], []]
    for part in parts:
        if part.enroll_speaker is None or part.test_speaker is None:
            return Scores(values, is_target, source=parts[0].source)
        names = np.array(list(part.names), object)
        sides[0].append(names[part.enroll_speaker])
        sides[1].append(names[part.test_speaker])
    names_all, enroll, test = encode(np.concatenate(sides[0]), np.concatenate(sides[1]))
    return Scores(values, is_target, enroll, test, names_all, parts[0].source, parts[0].speakers_from)


def within_groups(scores: Scores, groups: Groups) -> Iterator[tuple[str, str, Scores]]:
    """The trials of enrolled people of each group, one after the other, where both classes are left: attribute, value,
    scores."""
    for attribute, values in groups.items():
        for value in sorted({v for v in values.values() if v}):
            if scores.enroll_speaker is None:
                continue
            inside = np.array([values.get(name) == value for name in scores.names], dtype=bool)
            rows = np.flatnonzero(inside[scores.enroll_speaker])
            if len(rows) and scores.is_target[rows].any() and not scores.is_target[rows].all():
                yield attribute, value, scores.take(rows)


def _people(scores: Scores) -> set[str]:
    """The people enrolled or tried; the names in a set of scores include utterances."""
    if scores.enroll_speaker is None or scores.test_speaker is None:
        return set()
    return {scores.names[code] for code in np.union1d(scores.enroll_speaker, scores.test_speaker) if code >= 0}


def _both_sides(scores: Scores) -> dict[str, int]:
    """How many people are enrolled, and how many of them have a target trial; nobody where they are not known."""
    people = np.empty(0, np.int64) if scores.enroll_speaker is None else scores.enroll_speaker
    tried = people[scores.is_target] if len(people) else people
    return {"enrolled_speakers": len(np.unique(people)), "trial_speakers": len(np.unique(tried))}


def measure_given(
    attacker: AttackerResult, given: ScoreFiles, people: frozenset[str] | None, options: MeasureOptions
) -> tuple[TaskResult, Arrays]:
    """The measures of scores, all files together and within each group. `people` are those assessed, where speech is
    assessed too."""
    scores = given.read()
    there = _people(scores)
    known = there if people is None else people & there
    if scores.enroll_speaker is not None and not known:
        raise InputError(
            f"attackers.{attacker.name}: the scores are of other people than those who are assessed",
            path=given.files[0],
            fix="give scores of the assessed people, named alike, or measure them by themselves: veilmeter measure",
        )
    estimates, reasons = _estimates(scores, options)
    ordered = scores.ordered
    by: dict[str, dict[str, Estimates]] = {attribute: {} for attribute in options.groups}
    for attribute, value, part in within_groups(scores, options.groups):
        by[attribute][value] = _estimates(part, options)[0]
    result = replace(
        attacker,
        backend=GIVEN,
        trained_on=attacker.trained_on or Finding("trained_elsewhere"),
        estimates=estimates,
        by=by,
        source="scores",
        ties=effect_of_ties(*ordered),
        profile=profile_of(scores),
        det=det_of(*ordered),
        details=_both_sides(scores),
    )
    strangers = len(there - known)
    others = [warning("scores_of_others", count=strangers)] if strangers and known else []
    return TaskResult(attacker=result, findings=(*reasons, *others)), {}


def _estimates(scores: Scores, options: MeasureOptions) -> tuple[Estimates, list[Finding]]:
    measured, reasons = estimates_of_scores(scores, options)
    return Estimates.of(measured), reasons


def combine(vectors: AttackerResult | None, given: AttackerResult) -> AttackerResult:
    """An attacker whose scores were given: what can be measured on scores comes from them, and of the rest each
    measure says that it comes from vectors."""
    if vectors is None:
        return given
    single = [point for point in vectors.estimates.points("one_minus_eer") if point.at.get("length") == 1]
    turned = [of_eer(eer).with_(at=point.at) for point in single if (eer := given.estimates.single("eer")) is not None]
    replaced = Estimates(point for point in vectors.estimates if point not in single or not turned)
    rest = replaced.without(*given.estimates.names)
    estimates = given.estimates + Estimates(turned) + rest
    by = {
        attribute: {
            value: (scores := given.by.get(attribute, {}).get(value, Estimates())) + measured.without(*scores.names)
            for value, measured in values.items()
        }
        for attribute, values in vectors.by.items()
    }
    return replace(
        given,
        backend=f"{GIVEN}; {vectors.backend} where vectors are compared",
        trained_on=vectors.trained_on,
        estimates=estimates,
        by=by,
        people=vectors.people,
        sources=dict.fromkeys(rest.names, "vectors"),
        details={**vectors.details, **given.details},
    )
