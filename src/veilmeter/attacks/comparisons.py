"""Comparisons with a candidate's own copies beside their mean: the best recording, and normalized scores.

The best of a candidate's recordings counts where these differ among themselves (sessions, channels), above all at low
rates of false alarms (VoxGuard 2025). Adaptive score normalization takes off what a recording or a candidate scores
with its nearest strangers, so that people who resemble many others are not named for everybody.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np

from veilmeter.attacks.adaptive.own_data import OwnData, own_data, usable_runs
from veilmeter.attacks.backends.base import unit64
from veilmeter.attacks.base import Attack, AttackScores, Floats, Material, Rows
from veilmeter.attacks.takeover import ANONYMIZER, ORIGINALS

NEAREST = 20  # strangers that a score is compared with
LEAST_SPREAD = 1e-6


class CopyComparison(Attack):
    """Cosines with copies, each centered on the mean of all; without a run of the anonymizer, with originals."""

    knows = frozenset({ORIGINALS, ANONYMIZER})
    has: Mapping[str, str] = {
        "enrolment": "the speech of known people, anonymized by the attacker with draws of its own",
        "extractor": "trained on original speech",
        "adaptation": "none",
        "inversion": "none",
    }

    def missing(self, material: Material) -> str:
        if len(material.names) < 2:
            return "there is one candidate only"
        runs = usable_runs(material)
        known = runs[0].vectors.dimension if runs else material.candidates.dimension
        if known != material.trials.shape[1]:
            return f"known vectors have {known} numbers, released ones {material.trials.shape[1]}"
        return ""

    def scores(self, material: Material) -> AttackScores:
        known, labels = _known(own_data(material))
        mean = known.mean(axis=0)
        copies = unit64(known - mean)
        trials = unit64(material.trials.astype(np.float64) - mean)
        by_recording = self.compared(copies, labels, trials, len(material.names))
        summed = np.concatenate([by_recording[table].mean(axis=1) for table in material.conversations])
        return AttackScores(scores=summed.T, method=self.about, trained_on="nothing of this assessment")

    @abstractmethod
    def compared(self, copies: Floats, labels: Rows, trials: Floats, candidates: int) -> Floats:
        """A score for every trial (rows) and candidate (columns)."""


class BestRecording(CopyComparison):
    name = "best-recording"
    about = "compares a recording with each candidate's anonymized copies and takes the most similar one"

    def compared(self, copies: Floats, labels: Rows, trials: Floats, candidates: int) -> Floats:
        order = np.argsort(labels, kind="stable")
        starts = np.searchsorted(labels[order], np.arange(candidates))
        best: Floats = np.maximum.reduceat(trials @ copies[order].T, starts, axis=1)
        return best


class NormalizedComparison(CopyComparison):
    name = "normalized-lazy"
    about = (
        "compares a recording with the mean of each candidate's anonymized copies, beside what both score with their "
        "nearest strangers"
    )

    def compared(self, copies: Floats, labels: Rows, trials: Floats, candidates: int) -> Floats:
        own = labels[:, None] == np.arange(candidates)
        models = unit64(own.T.astype(float) @ copies)
        # A candidate's own copies are no strangers to them.
        strangers = np.where(own.T, -np.inf, models @ copies.T)
        of_models, of_trials = (_nearest(scores) for scores in (strangers, trials @ copies.T))
        raw = trials @ models.T
        by_model = (raw - of_models[0]) / of_models[1]
        by_trial = (raw - of_trials[0][:, None]) / of_trials[1][:, None]
        normalized: Floats = (by_model + by_trial) / 2
        return normalized


def _nearest(scores: Floats) -> tuple[Floats, Floats]:
    """Mean and spread of the highest scores of each row."""
    most = min(NEAREST, int(np.isfinite(scores).sum(axis=1).min()))
    top = -np.sort(-scores, axis=1)[:, : max(1, most)]
    return top.mean(axis=1), np.maximum(top.std(axis=1), LEAST_SPREAD)


def _known(data: OwnData) -> tuple[Floats, Rows]:
    """The candidates' copies of all runs, or their originals for those who have none."""
    view = data.views[0]
    vectors = [copies[present] for copies, present in zip(view.copies, data.present, strict=True)]
    labels = [data.labels[present] for present in data.present]
    bare = ~np.isin(data.labels, np.concatenate([np.zeros(0, np.int64), *labels]))
    if bare.any() and view.comparable:
        vectors.append(view.originals[bare])
        labels.append(data.labels[bare])
    return np.concatenate(vectors), np.concatenate(labels)


BEST_RECORDING, NORMALIZED = BestRecording(), NormalizedComparison()
