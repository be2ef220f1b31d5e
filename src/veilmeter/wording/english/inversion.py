"""The study of one inversion attack."""

from __future__ import annotations

from veilmeter.core.findings import Reference
from veilmeter.wording.catalog import Catalog, shown

WORDS = Catalog()

WORDS.say(
    "trials_without_group",
    "{lost} of {trials:trial} left out: the anonymized set has the {column} of pseudo-voices, and no original set has "
    "these people. Give --clear-trials.",
)
WORDS.say(
    "other_run_incomplete",
    "The figures of the other run rest on {common} of the {attacked:attacked utterance}: it lacks the rest.",
)
WORDS.say("other_run_left_out", "{count:utterance} of the other run left out, because they were not attacked.")


@WORDS.words("inversion_spread")
def _inversion_spread(
    seeds: int,
    measures: tuple[str, ...],
    groups: tuple[Reference, ...],
    means: tuple[float, ...],
    lowest: tuple[float, ...],
    highest: tuple[float, ...],
) -> str:
    labels = {"eer": "EER", "top1": "Top-1"}
    figures = [
        f"{labels.get(name, name)}{f' {shown(group)}' if group.id else ''} {mean:.1f} ({low:.1f} to {high:.1f})"
        for name, group, mean, low, high in zip(measures, groups, means, lowest, highest, strict=False)
    ]
    return f"The attack depends on chance. Mean and range over {seeds} seeds: {', '.join(figures)}."


WORDS.say("training_unpaired", "{count:training utterance} without {version} version left out, such as {example}.")


@WORDS.words("few_pairs")
def _few_pairs(pairs: int, dimension: int, group: Reference | None = None) -> str:
    who = "" if group is None else f" ({shown(group)})"
    return (
        f"{pairs} pairs for {dimension} dimensions{who}: the rotation is arbitrary beyond what the pairs span. More "
        "pairs or --pca could make the attack stronger."
    )


WORDS.say("oracle_map", "The map was learned on the attacked trials themselves: an upper bound, not an attack.")
WORDS.say(
    "no_better_than_shuffled",
    "Top-1 is no better than with shuffled pairs. Either the anonymizer resists this attack, or the pairs are wrong: "
    "check that utterance ids mean the same recording in both training sets.",
)
