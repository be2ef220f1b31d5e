"""The adaptive attacker: has the anonymizer, tries many methods on its own copies, and keeps what works best.

Variants of it run on request: with several extractors at once (`fused`), and with one method each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.adaptive.families import FAMILIES, Family
from veilmeter.attacks.adaptive.fitting import Adaptive, fit_adaptive
from veilmeter.attacks.adaptive.fusion import log_odds
from veilmeter.attacks.adaptive.own_data import OwnData, own_data, resolve_draws, usable_runs
from veilmeter.attacks.attacker import (
    ADAPTATION,
    ANONYMIZER,
    EXTRACTORS,
    KNOWN_PEOPLE,
    METHODS,
    ORIGINALS,
    AttackScores,
    Equipment,
    PlainWords,
    ScoringAttacker,
)
from veilmeter.attacks.material import Floats, Material, Rows
from veilmeter.core.colors import BROWN
from veilmeter.core.findings import Finding, warning

AT_ONCE = 256  # conversations judged together


class AdaptiveAttacker(ScoringAttacker):
    """Scores are log-likelihood ratios of one candidate against the others: natural logarithm of the posterior odds at
    equal priors, times the number of others.

    The recordings of a conversation count as independent given who speaks, so their logits are summed; on real data
    this was as strong as averaging vectors, and better calibrated.
    """

    name = "adaptive"
    order = 70
    about = (
        "has the anonymizer and runs it with its own draws over the speech of known people, tries many methods on "
        "these copies, and keeps what works best there"
    )
    enrollment = ("original", "anonymized")
    has = Equipment(
        enrollment="original, and own anonymized copies",
        adaptation="same system",
        inversion="by many methods",
    )
    words = PlainWords(
        "someone who has your anonymizer and keeps whichever of many methods works best",
        f"your anonymizer, {KNOWN_PEOPLE}",
        "trains models",
        "days",
    )
    color = BROWN
    knows = frozenset({ORIGINALS, ANONYMIZER, ADAPTATION, METHODS})
    default = True
    families: tuple[str, ...] | None = None  # the methods to choose from; None for all of them

    def missing(self, material: Material) -> Finding | str:
        if len(material.names) < 2:
            return Finding("one_candidate")
        runs = usable_runs(material)
        if runs and runs[0].vectors.dimension != material.trials.shape[1]:
            numbers = {"copies": runs[0].vectors.dimension, "released": material.trials.shape[1]}
            return Finding("copies_of_other_dimension", numbers)
        if not runs and material.others is None and material.candidates.dimension != material.trials.shape[1]:
            return Finding("vectors_of_two_extractors")
        return ""

    def scores(self, material: Material) -> AttackScores:
        draws, findings = resolve_draws(material)
        data = own_data(material, draws)
        fitted = fit_adaptive(data, self.families, seed=material.seed)
        return AttackScores(
            scores=self.odds(fitted, material).T,
            method="fusion of " + ", ".join(str(member.choice) for member in fitted.members),
            trained_on=describe_training(material, data),
            findings=(*findings, *_findings(material, data)),
            details=self._details(fitted, material, data),
        )

    def odds(self, fitted: Adaptive, material: Material) -> Floats:
        """The log-odds of each conversation. Each recording is judged by itself: those in no conversation need not
        be."""
        used = np.unique(np.concatenate([table.ravel() for table in material.conversations]))
        place = np.zeros(len(material.trials), np.int64)
        place[used] = np.arange(len(used))
        logits = fitted.logits(*(vectors[used] for vectors in trial_vectors(material)))
        return conversation_odds(logits, [place[table] for table in material.conversations])

    @staticmethod
    def _details(fitted: Adaptive, material: Material, data: OwnData) -> dict[str, Any]:
        runs = usable_runs(material)
        return fitted.to_json() | {
            "runs": [
                {"name": run.name, "draw": draw, "own": run.own, "recordings": int(data.present[number].sum())}
                for number, (run, draw) in enumerate(zip(runs, data.draws, strict=True))
            ],
            "other_people": 0 if data.views[0].others is None else len(np.unique(data.views[0].others.speakers)),
            "conversations": "sum of the logits of their recordings",
        }


def trial_vectors(material: Material) -> list[NDArray[np.floating]]:
    """The released recordings by every extractor."""
    return [material.trials, *(view.trials for view in material.views.values())]


def conversation_odds(logits: Floats, conversations: Sequence[Rows]) -> Floats:
    """The log-odds of each conversation, whose logits are the sums of its recordings'. A few conversations at a time:
    those of many people fill the memory."""
    odds = np.empty((sum(map(len, conversations)), logits.shape[1]))
    done = 0
    for table in conversations:
        for start in range(0, len(table), AT_ONCE):
            part = table[start : start + AT_ONCE]
            odds[done : done + len(part)] = log_odds(logits[part].sum(axis=1))
            done += len(part)
    return odds


def describe_training(material: Material, data: OwnData) -> Finding:
    """How many recordings and copies it learned from, and whose."""
    copies = int(data.present.sum())
    others = data.views[0].others
    return Finding.of(
        "trained_on_copies",
        recordings=len(data.labels),
        candidates=data.candidates,
        copies=copies,
        runs=len(data.draws),
        released=not all(run.own for run in usable_runs(material)),
        other_copies=None if others is None else len(others.copies),
        other_people=None if others is None else len(np.unique(others.speakers)),
    )


def _findings(material: Material, data: OwnData) -> list[Finding]:
    runs = usable_runs(material)
    findings = []
    if not runs:
        findings.append(warning("anonymizer_not_run"))
    elif not any(run.own for run in runs):
        findings.append(warning("enrolled_from_released_run"))
    covered = len(np.unique(data.labels[data.present.any(axis=0)])) if runs else 0
    if runs and covered < data.candidates:
        lost = data.candidates - covered
        findings.append(warning("candidates_without_copy", count=lost, candidates=data.candidates))
    for number, run in enumerate(runs):
        lacking = int((~data.present[number]).sum())
        if lacking and not (data.named[number] >= 0).any():  # each draw of a set may be tried on a few recordings
            name = run.name or f"run {number + 1}"
            findings.append(warning("run_lacks_recordings", run=name, count=lacking, recordings=len(data.labels)))
    return findings


ATTACKER = AdaptiveAttacker()


class Fused(AdaptiveAttacker):
    name = "fused"
    order = 100
    about = "does what the adaptive attacker does with several extractors at once, and weighs what each of them finds"
    has = replace(AdaptiveAttacker.has, extractor="several, trained on original speech")
    words = PlainWords(
        "the same, with several recognizers at once, of the voice or of words and rhythm",
        f"your anonymizer, {KNOWN_PEOPLE}",
        "trains models",
        "days",
    )
    color = ""
    knows = AdaptiveAttacker.knows | {EXTRACTORS}
    default = False
    several = True

    def missing(self, material: Material) -> Finding | str:
        if len(material.names) > 1 and not material.views:
            return Finding("one_extractor")
        return super().missing(material)


FUSED = Fused()


# Methods that would share a name with an attacker of the papers, which does not center vectors.
CENTERED = {"lazy": "centered-lazy", "ignorant": "centered-ignorant"}


class SingleMethod(AdaptiveAttacker):
    order = 200
    has = replace(AdaptiveAttacker.has, inversion="by one method")
    color = ""
    default = False

    def __init__(self, method: Family) -> None:
        self.name = CENTERED.get(method.name, method.name)
        self.about = method.about
        self.words = PlainWords(f"someone who {method.about}")
        self.families = (method.name,)


SINGLE_METHODS = tuple(SingleMethod(method) for _, method in FAMILIES.items())
