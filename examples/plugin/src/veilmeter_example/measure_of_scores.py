"""A measure of scores: the area under the ROC curve."""

from scipy.stats import mannwhitneyu

from veilmeter import Estimate, Scores
from veilmeter.metrics.measure import Measure


def auc(scores: Scores) -> Estimate:
    wins = mannwhitneyu(scores.targets, scores.impostors).statistic
    counts = {"targets": len(scores.targets), "impostors": len(scores.impostors)}
    return MEASURE.estimate(wins / (counts["targets"] * counts["impostors"]), null=0.5, n=counts, method="Mann-Whitney")


MEASURE = Measure(
    name="auc",
    label="AUC",
    unit="probability",
    better="lower",
    meaning="The chance that a true pair scores higher than a false one; 0.5 is guessing.",
    source="Hanley & McNeil 1982",
    equation="P(target score > impostor score)",
    low=0.0,
    high=1.0,
    kind="scores",
    compute=auc,
)
