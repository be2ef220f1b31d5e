"""Whether an anonymizer is flattered by where its target voices lie: a check on what attackers' errors come from."""

from __future__ import annotations

from veilmeter.metrics.target_voices import TargetVoices
from veilmeter.results.model import Check, Criterion

TARGETS = "errors are not due to target voices"
MOST_DUE = 0.2  # of the strongest attacker's error


def errors_not_due_to_targets(effect: TargetVoices | None, linking: Criterion | None) -> Check:
    """The strongest attacker must not fail because of where target voices lie. Where people are recognized anyway,
    finding more of them changes no claim."""
    if effect is None:
        sentence = "People share no target voices, or none are drawn: errors can't be laid to them."
        return Check(
            name=TARGETS, sentence=sentence, passed=None, misleads="overestimated", applies=False, limit=MOST_DUE
        )
    sure = effect.gain[0] > 0 and effect.share > MOST_DUE
    failed = sure and (linking is None or linking.level != "high")
    how = "known" if effect.known else "found by clustering"
    due = f"{100 * effect.share:.0f} % of the strongest attacker's error"
    figures = f"EER {effect.eer_reported:.1f} %, {effect.eer_informed:.1f} % without"
    if failed:
        sentence = (
            f"{due} comes from where the {effect.voices} target voices ({how}) lie, not from what they hide "
            f"({figures}): privacy is overestimated. Give attackers runs of the anonymizer with a new draw for every "
            "utterance."
        )
    elif sure:
        sentence = f"{due} comes from where target voices lie ({figures}); people are recognized all the same."
    elif effect.share > MOST_DUE:
        sentence = (
            f"{due} seems to come from where the {effect.voices} target voices ({how}) lie ({figures}), but so small a "
            "difference may be chance."
        )
    else:
        sentence = (
            f"The strongest attacker's error hardly comes from where the {effect.voices} target voices ({how}) lie "
            f"({figures})."
        )
    return Check(
        name=TARGETS, sentence=sentence, passed=not failed, misleads="overestimated", figure=effect.share,
        limit=MOST_DUE,
    )  # fmt: skip
