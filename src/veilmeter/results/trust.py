"""An assessment must doubt itself: named checks, each with its figure. One that fails makes the verdict untrustworthy.

If the attacker is weak, privacy is overestimated (Panariello et al. 2025); if enrollment and trial come from one
session, or the attacker was trained on the people it is tested on, it is underestimated; with few speakers nothing is
sure. A check that could not be made is not a check that passed: it is open, unless it can't apply to this run at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from veilmeter.attacks.attacker import BASELINE
from veilmeter.attacks.registry import ATTACKERS
from veilmeter.core.estimate import Estimate
from veilmeter.metrics.target_voices import TargetVoices
from veilmeter.results.criteria import NEEDED, cases
from veilmeter.results.flattering_targets import errors_not_due_to_targets
from veilmeter.results.levels import (
    ALPHA,
    HIGH_SHARE,
    P_ADJUSTED,
    PRECISION,
    chance_of,
    speakers_to_rule_out,
    surplus,
)
from veilmeter.results.model import Check, Criterion, Direction, Results
from veilmeter.results.usability import still_speech

MOST_SAME_SESSION = 0.10
MOST_TIED = 0.05
MOST_COPIES = 0.005  # of the trial recordings
SURE_LENGTHS = 0.01  # probability that chance alone relates the lengths of vectors
LEAST_LINKED = 0.5  # of the way from guessing to certainty, on original speech

STRONG = "strong on original speech"
ADAPTED = "adaptation helps"
CHANGED = "anonymized differs from original"
COPIES = "no copies in enrollment and trials"
ENOUGH = "enough speakers"
OTHERS = "training speakers are others"
SESSIONS = "enrollment and trials of different sessions"
TIES = "scores without ties"
UPRIGHT = "scores are not inverted"
OWN_RUNS = "attackers ran the anonymizer"
LENGTHS = "vector lengths tell nothing"

MEANINGS: dict[Direction, str] = {
    "overestimated": "The real risk may be higher than these figures.",
    "underestimated": "The real risk may be lower than these figures.",
    "either": "The real risk may be lower or higher than these figures.",
}
UNCHANGED = "Whoever speaks in these recordings is not protected at all."


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustFacts:
    """What the checks need to know and no estimate carries.

    `unchanged` of `compared` recordings are the original ones (None: they can't be compared); `copies` of `trials`
    recordings stand in the enrollment too, under another id (None: not looked for); `overlap` are the assessed people
    who are in each set of training speech; `own_runs` how often attackers ran the anonymizer themselves;
    `length_p` how often chance would relate the lengths of people's vectors as closely (None: all have one length);
    `targets` what target voices have to do with attackers' errors (None: nobody shares one).
    """

    compared: int = 0
    unchanged: int | None = None
    trials: int = 0
    copies: int | None = None
    overlap: Mapping[str, int] = field(default_factory=dict)
    own_runs: int = 0
    length_p: float | None = None
    targets: TargetVoices | None = None


def meaning(check: Check) -> str:
    """What it means for the figures that a check failed or could not be made.

    >>> meaning(Check(name="enough speakers", sentence="Too few.", passed=False))
    'The real risk may be lower or higher than these figures.'
    """
    return UNCHANGED if check.name == CHANGED and check.failed else MEANINGS[check.misleads]


def doubts(results: Results) -> list[str]:
    """The failed checks of a run: what each found, and what that means for the figures."""
    return [f"{check.sentence} {meaning(check)}" for check in results.checks if check.failed]


def open_questions(results: Results) -> list[str]:
    """The checks that could not be made though they apply: why, and what that may mean."""
    return [f"{check.sentence} {meaning(check)}" for check in results.checks if check.open]


def checks(results: Results, facts: TrustFacts) -> tuple[Check, ...]:
    """Every check of a run whose criteria are known: failed ones first, then open ones, then those that passed."""
    limits = {key: float(results.settings[key]) for key in ("weak_attacker", "precision") if key in results.settings}
    every = [
        strong_on_original(results, limits.get("weak_attacker", 15.0)),
        adapted_not_worse(results),
        changed(facts),
        no_copies(facts),
        enough_speakers(results.criteria.get("linking"), limits.get("precision", PRECISION)),
        training_disjoint(results, facts),
        other_sessions(results.protocol.same_session),
        no_ties(results),
        not_inverted(results),
        own_runs(results, facts),
        lengths_tell_nothing(results, facts),
        errors_not_due_to_targets(facts.targets, results.criteria.get("linking")),
        still_speech(results.parts.get("utility")),
    ]
    return tuple(sorted(every, key=_place))


def _place(check: Check) -> int:
    return 0 if check.failed else 1 if check.open else 2 if check.passed else 3


def strong_on_original(results: Results, limit: float) -> Check:
    """The extractor must recognize people where nothing was anonymized: by its EER, else by how many it links."""
    baseline = results.attackers.get(BASELINE)
    eer = None if baseline is None else baseline.estimates.single("eer")
    if eer is not None and math.isfinite(eer.value):
        passed = eer.value <= limit
        figure = f"the attacker's EER is {eer.value:.1f} %"
        bound = f"limit {limit:g} %"
        return _strength(passed, figure, bound, eer, limit)
    points = [] if baseline is None else list(baseline.estimates.points("linkability"))
    if points:
        largest = max(points, key=lambda point: (float(point.at.get("speakers", 0)), point.value))
        passed = surplus(largest) >= LEAST_LINKED
        figure = f"the attacker links {100 * largest.value:.0f} of 100 among {int(largest.at['speakers'])}"
        return _strength(passed, figure, "half is wanted", largest, LEAST_LINKED)
    return Check(
        name=STRONG,
        sentence="How well attackers recognize people on original speech was not measured.",
        passed=None,
        misleads="overestimated",
        limit=limit,
    )


def _strength(passed: bool, figure: str, bound: str, estimate: Estimate, limit: float) -> Check:
    sentence = (
        f"On original speech {figure}: it recognizes people ({bound})."
        if passed
        else f"Even on original speech {figure} ({bound}): it hardly recognizes people at all, so its failure on "
        "anonymized speech proves little. Use a stronger extractor."
    )
    return Check(name=STRONG, sentence=sentence, passed=passed, misleads="overestimated", figure=estimate, limit=limit)


def adapted_not_worse(results: Results) -> Check:
    """An attacker who knows more must not do worse than one who knows less: neither than the ignorant one, nor than the
    lazy-informed one, who has the same enrollment speech and adapts nothing."""
    eers = {
        name: eer
        for name, attacker in results.attacks.items()
        if (eer := attacker.estimates.single("eer")) is not None and math.isfinite(eer.value)
    }
    known = {name: ATTACKERS[name] for name in eers if name in ATTACKERS}
    adapted = [name for name, attacker in known.items() if attacker.adapted]
    simple = [
        name
        for name, attacker in known.items()
        if not attacker.family and any(known[other].outranks(attacker) for other in adapted)
    ]
    if not adapted or not simple:
        missing = "adapted attacker" if not adapted else "attacker to compare with (ignorant, lazy-informed)"
        # What was not run is said as such; there is nothing to compare.
        return Check(
            name=ADAPTED, sentence=f"No {missing} was run.", passed=None, misleads="overestimated", applies=False
        )
    best = min(simple, key=lambda name: eers[name].value)
    worst = max(adapted, key=lambda name: (_surely_above(eers[name], eers[best]), eers[name].value))
    difference = eers[worst].value - eers[best].value
    figures = f"{worst} {eers[worst].value:.1f} %, {best} {eers[best].value:.1f} %"
    failed = _surely_above(eers[worst], eers[best])
    surely = "surely " if difference > 0 else ""
    sentence = (
        f"The {worst} attacker knows more but does worse than the {best} one (EER: {figures}): its adaptation failed, "
        "and a real one may do better than anything reported here."
        if failed
        else f"No adapted attacker is {surely}worse than the {best} one (EER: {figures})."
    )
    return Check(
        name=ADAPTED, sentence=sentence, passed=not failed, misleads="overestimated", figure=difference, limit=0.0
    )


def _surely_above(first: Estimate, second: Estimate, tolerance: float = 0.5) -> bool:
    """Whether `first` exceeds `second` by more than both intervals together allow."""
    down = first.value - (first.interval or (first.value,))[0]
    up = (second.interval or (second.value,))[-1] - second.value
    return first.value - second.value > math.hypot(down, up) + tolerance


def changed(facts: TrustFacts) -> Check:
    """A recording that did not change was not anonymized: not one may be released so."""
    if facts.unchanged is None or not facts.compared:
        return Check(
            name=CHANGED,
            sentence="Original and anonymized recordings could not be compared with each other.",
            passed=None,
            misleads="overestimated",
        )
    count, total = facts.unchanged, facts.compared
    sentence = (
        f"{count} of {total} anonymized recordings are the original ones: they were not anonymized."
        if count
        else f"None of {total} anonymized recordings equals its original."
    )
    return Check(name=CHANGED, sentence=sentence, passed=not count, figure=count / total, limit=0.0)


def no_copies(facts: TrustFacts) -> Check:
    """Whoever enrolls the very recording that is tried recognizes the recording, not the voice."""
    if facts.copies is None or not facts.trials:
        return Check(
            name=COPIES,
            sentence="Copies of recordings in enrollment and trials were not looked for.",
            passed=None,
            misleads="underestimated",
        )
    share = facts.copies / facts.trials
    passed = share <= MOST_COPIES
    sentence = f"{facts.copies} of {facts.trials} trial recordings also stand in the enrollment under another id"
    sentence += "." if passed else ": the recording is recognized, not the voice. Remove the copies."
    return Check(
        name=COPIES, sentence=sentence, passed=passed, misleads="underestimated", figure=share, limit=MOST_COPIES
    )


def speakers_needed(speakers: int, reach: float, margin: float) -> int:
    """How many speakers would bring the end of an interval within `margin` of the value: its width falls with the
    square root of their number.

    >>> speakers_needed(10, 0.3, 0.1)
    90
    """
    return max(speakers, math.ceil(speakers * (reach / margin) ** 2 - 1e-9))


def enough_speakers(linking: Criterion | None, precision: float) -> Check:
    """The claim that is made about linking must still hold at the end of the interval that speaks against it.

    A high risk must be high at the lower end too, a low one must stay within `precision` of guessing at the upper end,
    and one in between must be known within `precision`.
    """
    if linking is None or linking.estimate.interval is None:
        sentence = "No rate of linking with an interval was measured."
        return Check(name=ENOUGH, sentence=sentence, passed=None, limit=precision)
    estimate = linking.estimate
    value, (low, high) = estimate.value, linking.estimate.interval
    speakers, chance = int(estimate.n.get("speakers", 0)), chance_of(estimate)
    if linking.level == "high":
        claim, reach, margin = "people can be recognized", value - low, value - (chance + HIGH_SHARE * (1 - chance))
    elif linking.level in ("low", "unknown"):
        claim, reach, margin = "linking is no better than guessing", high - value, chance + precision - value
    else:
        claim, reach, margin = "the risk lies in between", max(high - value, value - low), precision
    margin = max(margin, precision / 4)  # a value at the very border of its claim needs many, not infinitely many
    shown = f"{100 * value:.0f} [{100 * low:.0f}, {100 * high:.0f}] of 100"
    passed = reach <= margin and linking.level != "unknown"
    if linking.level in ("low", "unknown"):
        needed = str(linking.details.get(NEEDED, f"about {speakers_to_rule_out(estimate, precision):,}"))
    else:
        needed = f"about {speakers_needed(speakers, reach, margin):,}"
    sentence = (
        f"{speakers} speakers are enough to claim that {claim}: the rate of linking is {shown}."
        if passed
        else f"{speakers} speakers are too few to claim that {claim}: the rate of linking is known only as {shown}. "
        f"{needed[:1].upper()}{needed[1:]} would be needed."
    )
    return Check(name=ENOUGH, sentence=sentence, passed=passed, figure=reach, limit=margin)


def training_disjoint(results: Results, facts: TrustFacts) -> Check:
    """No attacker may have been trained on recordings of the people it is tested on that it could not have."""
    if not facts.overlap:
        sentence = "No training speech was given."
        return Check(name=OTHERS, sentence=sentence, passed=None, misleads="underestimated", applies=False, limit=0.0)
    worst = max(facts.overlap, key=facts.overlap.__getitem__)
    count = facts.overlap[worst]
    assessed = max(results.protocol.enrolled_speakers, results.protocol.trial_speakers)
    sentence = (
        f"{count} of the {assessed} assessed speakers are in the training speech too ({worst.replace('_', ' ')}): "
        "the attacker knows them already. Leave them out of the training."
        if count
        else "No assessed speaker is in the training speech that was given."
    )
    return Check(
        name=OTHERS, sentence=sentence, passed=not count, misleads="underestimated", figure=float(count), limit=0.0
    )


def other_sessions(share: float | None) -> Check:
    """A microphone or a room must not be taken for a voice. Where sessions are not known the check can't apply: what it
    would find can only mean that the risk is lower."""
    if share is None:
        return Check(
            name=SESSIONS,
            sentence="The sessions of the recordings are not known.",
            passed=None,
            misleads="underestimated",
            applies=False,
            limit=MOST_SAME_SESSION,
        )
    passed = share <= MOST_SAME_SESSION
    sentence = f"{100 * share:.0f} % of the trial recordings share a session with their speaker's enrollment"
    sentence += "." if passed else ": a room or a microphone may be recognized instead of a voice."
    return Check(
        name=SESSIONS, sentence=sentence, passed=passed, misleads="underestimated", figure=share,
        limit=MOST_SAME_SESSION,
    )  # fmt: skip


def no_ties(results: Results) -> Check:
    """Equal scores can't be told apart by any threshold: often a broken or rounded score."""
    tied = {name: attacker.ties for name, attacker in results.attacks.items()}
    if not tied:
        return Check(name=TIES, sentence="No scores were measured.", passed=None, limit=MOST_TIED)
    worst = max(tied, key=tied.__getitem__)
    share = tied[worst]
    passed = share <= MOST_TIED
    sentence = (
        f"At most {100 * share:.1f} % of an attacker's target scores equal an impostor score ({worst})."
        if passed
        else f"{100 * share:.0f} % of the {worst} attacker's target scores equal an impostor score: the scores are "
        "rounded, or many recordings have one and the same vector."
    )
    return Check(name=TIES, sentence=sentence, passed=passed, figure=share, limit=MOST_TIED)


def not_inverted(results: Results) -> Check:
    """An attacker may turn the sign of its scores round: that must not tell more than the worst case that is
    reported."""
    known = [case for case in cases(results, "d_ece") if "flipped" in case.estimate.extra and not case.group]
    if not known:
        return Check(name=UPRIGHT, sentence="No scores were measured.", passed=None, misleads="overestimated")
    reported = max(case.estimate.value for case in known)
    worst = max(known, key=lambda case: float(case.estimate.extra["flipped"]))
    flipped = float(worst.estimate.extra["flipped"])
    p = worst.estimate.extra.get(f"flipped_{P_ADJUSTED}")
    noise = worst.estimate.null_range
    # Without relabeled people: trials share speakers and several attackers are looked at, so twice the 95th percentile.
    surely = p < ALPHA if isinstance(p, float) else flipped > (2 * noise[1] if noise else 0.0)
    failed = flipped > reported and surely
    sentence = (
        f"The {worst.attacker} attacker's scores tell more when turned round ({flipped:.3f} bit) than the worst case "
        f"as it stands ({reported:.3f} bit): the same person scores lower than others do. An attacker would use that."
        if failed
        else f"No attacker's scores tell more when turned round ({flipped:.3f} bit at most) than the worst case "
        f"({reported:.3f} bit)."
    )
    return Check(
        name=UPRIGHT, sentence=sentence, passed=not failed, misleads="overestimated", figure=flipped, limit=reported
    )


def own_runs(results: Results, facts: TrustFacts) -> Check:
    """Whoever has the anonymizer runs it on the people they look for, as often as they like."""
    passed = True if facts.own_runs else None
    shared = not passed and _shares_draws(results)
    sentence = (
        f"Attackers ran the anonymizer {facts.own_runs} time{'' if facts.own_runs == 1 else 's'} themselves."
        if passed
        else "The attackers could not run the anonymizer."
    )
    if shared:
        sentence += " They know people by recordings of the released run: where it draws voices, they share its draws."
    misleads: Direction = "either" if shared else "overestimated"
    return Check(name=OWN_RUNS, sentence=sentence, passed=passed, misleads=misleads, figure=float(facts.own_runs))


def _shares_draws(results: Results) -> bool:
    """Whether people are recognized by an attacker who enrolls anonymized speech, here that of the released run."""
    linking = results.criteria.get("linking")
    if linking is None or linking.level not in ("raised", "high"):
        return False
    attacker = results.attackers.get(linking.attacker)
    return attacker is not None and attacker.source == "vectors" and "anonymized" in attacker.has.get("enrollment", "")


def lengths_tell_nothing(results: Results, facts: TrustFacts) -> Check:
    """Attackers compare directions. Where they find nobody, the lengths of vectors must not give people away."""
    linking = results.criteria.get("linking")
    if facts.length_p is None:
        sentence = "All vectors have the same length, or too few people can be compared."
        return Check(name=LENGTHS, sentence=sentence, passed=None, misleads="overestimated", applies=False)
    # Where people are recognized anyway, another way to do so changes no claim.
    failed = facts.length_p < SURE_LENGTHS and (linking is None or linking.level in ("low", "unknown"))
    sentence = (
        "The lengths of vectors tell people apart, and no attacker that was run uses them."
        if failed
        else "The lengths of vectors give nobody away whom attackers do not find."
    )
    return Check(
        name=LENGTHS, sentence=sentence, passed=not failed, misleads="overestimated", figure=facts.length_p,
        limit=SURE_LENGTHS,
    )  # fmt: skip
