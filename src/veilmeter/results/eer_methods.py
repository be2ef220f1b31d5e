"""The EER of a finished run by another method, from the scores that the run kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.option_groups import EER_METHODS
from veilmeter.core.options import refuse_unknown
from veilmeter.core.parquet_bounds import read_table, texts
from veilmeter.data.scores import Scores
from veilmeter.metrics.legal.one_minus_eer import of_eer
from veilmeter.metrics.scores.summary import measure_with_problems
from veilmeter.results.differences import read_run_scores
from veilmeter.results.model import AttackerResult, Results
from veilmeter.results.run_folder import GROUPS, table_of

ON_EERS = {"one_minus_eer", "learning_eer"}  # of conversations and attacks whose scores are not kept
Groups = Mapping[tuple[str, str], frozenset[str]]


def methods_of(results: Iterable[Results]) -> tuple[str, ...]:
    """The methods by which the EERs of these runs were computed, each once."""
    points = [point for run in results for attacker in run.attackers.values() for point in attacker.estimates]
    return tuple(dict.fromkeys(point.method for point in points if point.name == "eer" and point.method))


def with_eer_method(results: Results, folder: Path | None, method: str) -> Results:
    """The results with every attacker's EER by this method, of everybody and within groups. Figures that follow from
    an EER and whose scores were not kept are left out. The verdict and its checks stay those of the run."""
    refuse_unknown("eer_method", method, EER_METHODS)
    changed = {name: attacker for name, attacker in results.attackers.items() if _needs(attacker, method)}
    if not changed:
        return results
    attackers, groups = dict(results.attackers), _read_groups(folder, results)
    for name, attacker in changed.items():
        # One that got the results of another attacker has that one's scores.
        scores = read_run_scores(folder, results, str(attacker.details.get("taken_over_from", name)))
        if scores is None or attacker.source == "scores" or not _within_groups(attacker) <= groups.keys():
            raise _no_scores(name, folder, method)
        attackers[name] = _with_method(attacker, scores, groups, results.settings, method)
    return replace(results, attackers=attackers, settings={**results.settings, "eer_method": method})


def _needs(attacker: AttackerResult, method: str) -> bool:
    point = attacker.estimates.single("eer")
    return point is not None and point.method != method


def _within_groups(attacker: AttackerResult) -> set[tuple[str, str]]:
    """The groups, by attribute and value, that have an EER."""
    return {
        (attribute, value)
        for attribute, values in attacker.by.items()
        for value, estimates in values.items()
        if estimates.single("eer") is not None
    }


def _no_scores(attacker: str, folder: Path | None, method: str) -> InputError:
    return InputError(
        f"the run kept no scores of the {attacker} attacker, so its EER can't be computed by {method}",
        path=folder,
        fix=f"assess again with --eer-method {method}",
    )


def _with_method(
    attacker: AttackerResult, scores: Scores, groups: Groups, settings: Mapping[str, Any], method: str
) -> AttackerResult:
    def change(estimates: Estimates, chosen: Scores) -> Estimates:
        return Estimates(_replace_eers(estimates, _eer(chosen, settings, method)))

    groups_with_eer = _within_groups(attacker)
    by = {
        attribute: {
            value: change(estimates, _within(scores, groups[attribute, value]))
            if (attribute, value) in groups_with_eer
            else estimates
            for value, estimates in values.items()
        }
        for attribute, values in attacker.by.items()
    }
    return replace(attacker, estimates=change(attacker.estimates, scores), by=by)


def _eer(scores: Scores, settings: Mapping[str, Any], method: str) -> Estimate:
    measured, _ = measure_with_problems(
        scores,
        measures=["eer"],
        eer_method=method,
        intervals=bool(settings.get("intervals", True)),
        resamples=int(settings.get("resamples") or 1000),
        seed=int(settings.get("seed") or 0),
    )
    return measured["eer"]


def _replace_eers(estimates: Estimates, eer: Estimate) -> Iterable[Estimate]:
    for point in estimates:
        if point.name == "eer":
            yield eer.with_(at=point.at).sign(**point.context)
        elif point.name == "one_minus_eer" and point.at.get("length") == 1:
            yield of_eer(eer).with_(at=point.at).sign(**point.context)
        elif point.name not in ON_EERS:
            yield point


def _within(scores: Scores, people: frozenset[str]) -> Scores:
    """The trials of these people on both sides."""
    assert scores.enroll_speaker is not None
    assert scores.test_speaker is not None
    inside = np.array([name in people for name in scores.names])
    return scores.take(np.flatnonzero(inside[scores.enroll_speaker] & inside[scores.test_speaker]))


def _read_groups(folder: Path | None, results: Results) -> Groups:
    """The people of each group, by attribute and value, as the run left them."""
    path = None if folder is None else table_of(folder, results, GROUPS)
    if path is None:
        return {}
    people: dict[tuple[str, str], set[str]] = {}
    for group in read_table(path, ("attribute", "value", "speaker"), ()):
        columns = [texts(group.column(name), path) for name in ("attribute", "value", "speaker")]
        for attribute, value, speaker in zip(*columns, strict=True):
            people.setdefault((attribute, value), set()).add(speaker)
    return {key: frozenset(names) for key, names in people.items()}
