"""A measure of scores: the area under the ROC curve."""

from scipy.stats import mannwhitneyu

from veilmeter import Estimate, Scores
from veilmeter.metrics.measure import Measure


def auc(scores: Scores) -> Estimate:
    wins = mannwhitneyu(scores.targets, scores.impostors).statistic
    counts = {"targets": len(scores.targets), "impostors": len(scores.impostors)}
    percent = 100 * wins / (counts["targets"] * counts["impostors"])
    return MEASURE.estimate(percent, null=50.0, n=counts, method="Mann-Whitney")


MEASURE = Measure(
    name="auc",
    label="AUC",
    unit="percent",
    better="lower",
    meaning="The chance that a true pair scores higher than a false one; 50 % is guessing.",
    source="Hanley & McNeil 1982",
    equation="P(target score > impostor score)",
    low=0.0,
    high=100.0,
    kind="scores",
    compute=auc,
)
