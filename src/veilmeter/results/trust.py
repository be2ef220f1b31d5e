"""Self-checks of an assessment: named, each with its figure. One that fails makes a verdict that reassures
untrustworthy; an alarm that chance can't explain is doubted only by checks that say the risk may be lower.

If the attacker is weak, privacy is overestimated (Panariello et al. 2025); if enrollment and trial come from one
session, or the attacker was trained on the people it is tested on, it is underestimated; with few speakers nothing is
certain. A check that could not be made has not passed: it is open, unless it can't apply to this run at all.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from veilmeter.attacks.attacker import ATTACKERS, BASELINE
from veilmeter.core.estimate import POINTS, Estimate
from veilmeter.core.findings import Direction, Finding, Level, Reference, Severity, first_speakers, group_references
from veilmeter.metrics.vector_checks import RepeatedDraws, TargetVoices
from veilmeter.results.criteria import NEEDED, cases, strongest
from veilmeter.results.levels import (
    ALPHA,
    HIGH_SHARE,
    P_ADJUSTED,
    PRECISION,
    chance_of,
    has_bands,
    has_top_targets,
    is_significant,
    speakers_needed,
    speakers_to_rule_out,
    surplus,
)
from veilmeter.results.model import AttackerResult, Check, Criterion, Part, Results

MOST_SAME_SESSION = 10.0  # percent
MOST_TIED = 1.0  # percentage points by which ties may move a measure
MOST_COPIES = 0.5  # percent of the trial recordings
SURE_LENGTHS = 0.01  # probability that chance alone relates the lengths of vectors
SURE_RUN = 0.01  # probability that two runs of one anonymizer differ as much
SURE_RELEASE = 0.01  # probability that chance alone links released recordings to each other
MOST_BEYOND = 2  # times the known set of draws, by what copies show of it
SURE_IDS = 0.001  # probability that chance alone matches recordings with so many different ones of other people
MOST_UNRELATED = 0.01  # probability that chance alone relates durations as closely
SURE_DRAWS = 0.05  # probability that chance alone keeps the likeness of so many copies
NEARLY_ALL = 99.5  # percent linked: a risk that can't be higher
LEAST_LINKED = 0.5  # of the way from chance to certainty, on original speech
WEAK = 15.0  # percent: the EER on original speech above which an extractor is too weak
MOST_DUE = 20.0  # percent of the strongest attacker's error, to where target voices lie
MOST_LOST = 50.0  # percent of the recordings, in which not a single word is understood
LEAST_QUALITY = 1.5  # predicted MOS: the bottom of the scale is 1
UNDERSTOOD = 0.5  # of the original recordings must have words, or the recognizer can't judge

STRONG = "strong on original speech"
HEARD = "everybody is recognized on original speech"
ADAPTED = "adaptation helps"
CHANGED = "anonymized differs from original"
COPIES = "no copies in enrollment and trials"
ENOUGH = "enough speakers"
OTHERS = "training speakers are others"
SESSIONS = "enrollment and trials of different sessions"
TIES = "scores without ties"
UPRIGHT = "scores are not inverted"
OWN_RUNS = "attackers ran the anonymizer"
OWN_IDS = "recordings have their own ids"
RELEASE = "the release agrees with the attackers"
LENGTHS = "vector lengths tell nothing"
DRAWS = "no finite set left untried"
TARGETS = "errors are not due to target voices"
STILL_SPEECH = "anonymized recordings are speech"

# Units of figures and limits; all others are percentages.
UNITS = {ADAPTED: POINTS, ENOUGH: POINTS, OTHERS: "count", OWN_RUNS: "count", UPRIGHT: "bit"}
UNITS |= {OWN_IDS: "p-value", RELEASE: "p-value", LENGTHS: "p-value", DRAWS: "p-value"}

WITHIN_RELEASE = "within_release"  # detail of linking: raised as released recordings link to each other

Doubt = tuple[Finding, ...]  # what a check found, and what that means for the figures


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustFacts:
    """Facts that the checks need and no estimate carries.

    `unchanged` of `compared` recordings are the original ones (None: they can't be compared), `let_through` others are
    outliers that resemble their original; `copies` of `trials` recordings also occur in the enrollment set, under
    another id (None: not looked for), `released_copies` more on the anonymized side alone; `overlap` are the assessed
    people who are in each set of training speech; `own_runs` how often attackers ran the anonymizer themselves;
    `length_p` how often chance would relate the lengths of people's vectors as closely (None: all have one length);
    `targets` what target voices have to do with attackers' errors (None: nobody shares one); `run_p` how often two runs
    of one anonymizer would differ as much as the attackers' and the release (None: not compared); `not_covered` the
    people of whom attackers have no run; `release_p` how often chance would link the release to itself as well, and
    `release_share` how far it is linked so, from chance (0) to certainty (1); `draws` what copies show about draws;
    `ahead` of each person, and `ahead_of_values` of each value of an attribute of recordings, the share of other people
    who fit their original recordings at least as well as they do themselves; `ids_p` how often chance would match
    anonymized recordings with as many different ones of other people; `durations` how closely those of both sides are
    related, and how often chance alone would relate them so (None: not known, or all alike).
    """

    compared: int = 0
    unchanged: int | None = None
    let_through: int = 0
    trials: int = 0
    copies: int | None = None
    released_copies: int = 0
    overlap: Mapping[str, int] = field(default_factory=dict)
    own_runs: int = 0
    length_p: float | None = None
    targets: TargetVoices | None = None
    run_p: float | None = None
    not_covered: int = 0
    release_p: float | None = None
    release_share: float = 0.0
    draws: RepeatedDraws | None = None
    ids_p: float | None = None
    durations: tuple[float, float] | None = None
    ahead: Mapping[str, float] = field(default_factory=dict)
    ahead_of_values: Mapping[Reference, float] = field(default_factory=dict)


def meaning(check: Check) -> Finding:
    """What it means for the figures that a check failed or could not be made."""
    if check.name == CHANGED and check.failed:
        return Finding("not_protected", severity="problem")
    return Finding.of("privacy_misjudged", misleads=check.misleads)


def doubt(results: Results, check: Check) -> Doubt:
    """What a check found and, unless everybody is linked already, what that means for the figures."""
    everybody = strongest(results) if check.misleads == "overestimated" and check.name != CHANGED else None
    at_most = everybody is not None and everybody.estimate.value >= NEARLY_ALL
    return (check.finding,) if at_most else (check.finding, meaning(check))


def doubts(results: Results) -> list[Doubt]:
    """The failed checks of a run."""
    return [doubt(results, check) for check in results.checks if check.failed]


def doubting_checks(results: Results) -> list[Check]:
    """The failed checks for which the verdict may be wrong: all of them where it reassures. Where people are
    significantly recognized, neither a risk that may be even higher nor one that is known poorly takes that back."""
    failed = [check for check in results.checks if check.failed]
    if not is_sure_alarm(results):
        return failed
    return [check for check in failed if check.misleads != "overestimated" and check.name not in (ENOUGH, CHANGED)]


def is_sure_alarm(results: Results) -> bool:
    """Whether a risk is raised or high and chance can't explain it."""
    alarms = [criterion for criterion in results.criteria.values() if criterion.risk and is_attackers_alarm(criterion)]
    return bool(alarms) and (
        bool(results.people.unprotected)
        or any(
            is_significant(alarm.estimate) or has_top_targets(alarm.estimate) or has_bands(alarm.estimate)
            for alarm in alarms
        )
    )


def is_attackers_alarm(criterion: Criterion) -> bool:
    """Whether a risk is raised or high by what attackers found, not only as the release links itself."""
    return criterion.level in ("raised", "high") and not criterion.details.get(WITHIN_RELEASE)


def open_questions(results: Results) -> list[Doubt]:
    """The checks that could not be made though they apply: why, and what that may mean."""
    return [doubt(results, check) for check in results.checks if check.open]


def checks(results: Results, facts: TrustFacts) -> tuple[Check, ...]:
    """Every check of a run whose criteria are known: failed ones first, then open ones, then those that passed."""
    limits = {key: float(results.settings[key]) for key in ("weak_attacker", "precision") if key in results.settings}
    every = [
        check_strength(results, limits.get("weak_attacker", WEAK)),
        check_everybody_heard(results, facts, limits.get("weak_attacker", WEAK)),
        check_adaptation(results),
        check_changes(facts),
        check_ids(results.criteria.get("linking"), facts),
        check_copies(facts),
        check_speakers(results.criteria.get("linking"), limits.get("precision", PRECISION)),
        check_training(results, facts),
        check_sessions(results.protocol.same_session),
        check_ties(results),
        check_sign(results),
        check_own_runs(results, facts),
        check_release(results.criteria.get("linking"), facts),
        check_vector_lengths(results, facts),
        check_draws(results, facts),
        check_target_voices(facts.targets, results.criteria.get("linking")),
        check_speech(results.parts.get("utility"), pending=is_pending(results, UTILITY_PENDING)),
    ]
    return tuple(sorted(map(_complete, every), key=_place))


def _place(check: Check) -> int:
    return 0 if check.failed else 1 if check.open else 2 if check.passed else 3


def _complete(check: Check) -> Check:
    """With its severity, and with the unit of its figure and limit."""
    severity: Severity = "problem" if check.failed else "warning" if check.open else "information"
    unit = check.figure.unit if isinstance(check.figure, Estimate) else UNITS.get(check.name, "percent")
    return replace(check, finding=replace(check.finding, severity=severity), unit=unit)


def _not_applicable(
    name: str, finding: Finding, misleads: Direction = "overestimated", limit: float | None = None
) -> Check:
    return Check(name=name, finding=finding, passed=None, misleads=misleads, applies=False, limit=limit)


def check_strength(results: Results, limit: float) -> Check:
    """The extractor must recognize people where nothing was anonymized: by its EER, of everybody and within every group
    that is looked at, else by how many it links."""
    baseline = results.attackers.get(BASELINE)
    eer = None if baseline is None else baseline.estimates.single("eer")
    if baseline is not None and eer is not None and math.isfinite(eer.value):
        group, worst = _weakest_group(baseline, limit) if eer.value <= limit else ({}, None)
        eer = eer if worst is None else worst
        passed = eer.value <= limit
        languages = _eers_by_language(results, baseline, eer)
        finding = Finding.of(
            "original_eer", passed=passed, eer=eer.value, limit=limit, group=group_references(group) or None,
            languages=tuple(Reference("value", code, "language") for code in languages) or None,
            language_eers=tuple(languages.values()) or None,
        )  # fmt: skip
        return Check(name=STRONG, finding=finding, passed=passed, misleads="overestimated", figure=eer, limit=limit)
    points = [] if baseline is None else list(baseline.estimates.points("linkability"))
    if points:
        largest = max(points, key=lambda point: (float(point.at.get("speakers", 0)), point.value))
        passed = surplus(largest) >= LEAST_LINKED
        speakers = int(largest.at["speakers"])
        return Check(
            name=STRONG,
            finding=Finding.of("original_linked", passed=passed, linked=largest.value, speakers=speakers),
            passed=passed,
            misleads="overestimated",
            figure=largest,
            limit=100 * LEAST_LINKED,
        )
    finding = Finding("original_not_measured")
    return Check(name=STRONG, finding=finding, passed=None, misleads="overestimated", limit=limit)


def _eers_by_language(results: Results, baseline: AttackerResult, eer: Estimate) -> dict[str, float]:
    """The EER on original speech in each language that is known; in one language it is that of everybody."""
    groups = baseline.by.get("language") or baseline.by.get("locale") or {}
    eers = {code: point.value for code, points in groups.items() if (point := points.single("eer")) is not None}
    given, utility = results.inputs.get("original"), results.parts.get("utility")
    named = [] if given is None else list(given.details.get("languages", ()))
    if utility is not None and utility.details.get("language_from") in ("given", "recognized"):
        named = [str(utility.details["language"])]
    return eers or ({named[0]: eer.value} if len(named) == 1 else {})


def _weakest_group(baseline: AttackerResult, limit: float) -> tuple[Mapping[str, str], Estimate | None]:
    """The group whose EER lies furthest above the limit, even at the lower end of its interval; none where there is
    none. The mean over all hides a group that the extractor does not recognize."""
    weak = [
        (eer.value, {attribute: value}, eer)
        for attribute, values in baseline.by.items()
        for value, estimates in values.items()
        if (eer := estimates.single("eer")) is not None and (eer.interval or (eer.value,))[0] > limit
    ]
    _, group, worst = max(weak, key=lambda row: row[0], default=(0.0, {}, None))
    return group, worst


def check_everybody_heard(results: Results, facts: TrustFacts, limit: float) -> Check:
    """Everybody must be recognized where nothing was anonymized, one by one: of others a failure to recognize them says
    nothing. The same holds for the recordings of a session or in a language. Of people who are found in anonymized
    speech all the same, something is known."""
    if not facts.ahead:
        return _not_applicable(HEARD, Finding("original_not_measured"))
    found = set(results.people.unprotected)
    people = tuple(speaker for speaker, ahead in facts.ahead.items() if 100 * ahead > limit and speaker not in found)
    values = tuple(value for value, ahead in facts.ahead_of_values.items() if 100 * ahead > limit)
    passed = not people and not values
    finding = Finding.of(
        "people_unheard",
        people=people,
        unheard=len(people),
        total=len(facts.ahead),
        limit=limit,
        examples=first_speakers(people) or None,
        recordings=values or None,
    )
    share = 100 * len(people) / len(facts.ahead)
    return Check(name=HEARD, finding=finding, passed=passed, misleads="overestimated", figure=share, limit=0.0)


def check_adaptation(results: Results) -> Check:
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
        # There is nothing to compare; what was not run is listed as not tested.
        return _not_applicable(ADAPTED, Finding.of("adaptation_not_run", missing="unadapted" if adapted else "adapted"))
    best = min(simple, key=lambda name: eers[name].value)
    worst = max(adapted, key=lambda name: (_is_significantly_above(eers[name], eers[best]), eers[name].value))
    failed = _is_significantly_above(eers[worst], eers[best])
    finding = Finding.of(
        "adaptation",
        passed=not failed,
        adapted=worst,
        unadapted=best,
        adapted_eer=eers[worst].value,
        unadapted_eer=eers[best].value,
    )
    difference = eers[worst].value - eers[best].value
    return Check(
        name=ADAPTED, finding=finding, passed=not failed, misleads="overestimated", figure=difference, limit=0.0
    )


def _is_significantly_above(first: Estimate, second: Estimate, tolerance: float = 0.5) -> bool:
    """Whether `first` exceeds `second` by more than both intervals together allow."""
    down = first.value - (first.interval or (first.value,))[0]
    up = (second.interval or (second.value,))[-1] - second.value
    return first.value - second.value > math.hypot(down, up) + tolerance


def check_changes(facts: TrustFacts) -> Check:
    """A recording that did not change was not anonymized: not one may be released so."""
    if facts.unchanged is None or not facts.compared:
        finding = Finding("recordings_not_compared")
        return Check(name=CHANGED, finding=finding, passed=None, misleads="overestimated")
    count, total = facts.unchanged, facts.compared
    finding = Finding.of("recordings_unchanged", unchanged=count, compared=total, let_through=facts.let_through)
    count += facts.let_through
    return Check(name=CHANGED, finding=finding, passed=not count, figure=100 * count / total, limit=0.0)


def check_ids(linking: Criterion | None, facts: TrustFacts) -> Check:
    """A recording under another's id is looked for among the wrong people's, and nobody is found. Where most are
    found, ids that are wrong in part change no claim."""
    if linking is None or linking.level == "high":
        return _not_applicable(OWN_IDS, Finding("ids_not_compared"), "either")
    if facts.ids_p is None and facts.durations is None:
        return Check(name=OWN_IDS, finding=Finding("recordings_not_compared"), passed=None, limit=SURE_IDS)
    exchanged = facts.ids_p is not None and facts.ids_p < SURE_IDS
    correlation, unrelated_p = facts.durations or (None, 0.0)
    sign = "exchanged" if exchanged else "unrelated" if unrelated_p > MOST_UNRELATED else "none"
    finding = Finding.of("own_ids", sign=sign, durations=correlation)
    return Check(name=OWN_IDS, finding=finding, passed=sign == "none", figure=facts.ids_p, limit=SURE_IDS)


def check_copies(facts: TrustFacts) -> Check:
    """An attacker who enrolls the very recording that is tried recognizes the recording, not the voice."""
    if facts.copies is None or not facts.trials:
        return Check(name=COPIES, finding=Finding("copies_not_sought"), passed=None, misleads="underestimated")
    share = 100 * (facts.copies + facts.released_copies) / facts.trials
    passed = share <= MOST_COPIES
    finding = Finding.of(
        "copies", passed=passed, copies=facts.copies, trials=facts.trials, released=facts.released_copies
    )
    return Check(
        name=COPIES, finding=finding, passed=passed, misleads="underestimated", figure=share, limit=MOST_COPIES
    )


def check_speakers(linking: Criterion | None, precision: float) -> Check:
    """The claim that is made about linking must still hold at the end of the interval that speaks against it.

    A high risk must be high at the lower end too, a low one must stay within `precision` of chance at the upper end,
    and one in between must be known within `precision`. Where only the release links itself, attackers found nobody.
    """
    if linking is None or linking.estimate.interval is None:
        return Check(name=ENOUGH, finding=Finding("linking_without_interval"), passed=None, limit=precision)
    estimate = linking.estimate
    level: Level = "low" if linking.details.get(WITHIN_RELEASE) else linking.level
    value, (low, high) = estimate.value, linking.estimate.interval
    speakers, chance = int(estimate.n.get("speakers", 0)), chance_of(estimate)
    if level == "high":
        reach, margin = value - low, value - (chance + HIGH_SHARE * (100 - chance))
    elif level in ("low", "unknown"):
        reach, margin = high - value, chance + precision - value
    else:
        reach, margin = max(high - value, value - low), precision
    margin = max(margin, precision / 4)  # a value at the very border of its claim needs many, not infinitely many
    passed = reach <= margin and level != "unknown"
    if level in ("low", "unknown"):
        needed = linking.details.get(NEEDED, speakers_to_rule_out(estimate, precision))
    else:
        needed = speakers_needed(speakers, reach, margin)
    finding = Finding.of(
        "enough_speakers",
        passed=passed,
        level=level,
        speakers=speakers,
        estimate=estimate,
        by_chance=chance,
        needed=None if passed else needed,
        group=group_references(linking.group) or None,
    )
    return Check(name=ENOUGH, finding=finding, passed=passed, figure=reach, limit=margin)


def check_training(results: Results, facts: TrustFacts) -> Check:
    """No attacker may have been trained on recordings of the people it is tested on that it could not have."""
    if not facts.overlap:
        return _not_applicable(OTHERS, Finding("no_training_speech"), "underestimated", limit=0.0)
    worst = max(facts.overlap, key=facts.overlap.__getitem__)
    count = facts.overlap[worst]
    assessed = max(results.protocol.enrolled_speakers, results.protocol.trial_speakers)
    finding = Finding.of("training_overlap", overlap=count, speakers=assessed, role=worst)
    return Check(
        name=OTHERS, finding=finding, passed=not count, misleads="underestimated", figure=float(count), limit=0.0
    )


def check_sessions(share: float | None) -> Check:
    """A microphone or a room must not be taken for a voice. Where sessions are not known the check can't apply: what it
    would find can only mean that the risk is lower."""
    if share is None:
        return _not_applicable(SESSIONS, Finding("sessions_unknown"), "underestimated", limit=MOST_SAME_SESSION)
    passed = share <= MOST_SAME_SESSION
    return Check(
        name=SESSIONS,
        finding=Finding.of("same_session", passed=passed, share=share),
        passed=passed,
        misleads="underestimated",
        figure=share,
        limit=MOST_SAME_SESSION,
    )


def check_ties(results: Results) -> Check:
    """No threshold separates equal scores: whether it matters how they are ordered. Rounded scores often tie and change
    nothing; those of copies do."""
    tied = {name: attacker.ties for name, attacker in results.attacks.items()}
    if not tied:
        return Check(name=TIES, finding=Finding("no_scores"), passed=None, limit=MOST_TIED)
    worst = max(tied, key=tied.__getitem__)
    moved = tied[worst]
    passed = moved <= MOST_TIED
    finding = Finding.of("ties", passed=passed, moved=moved, attacker=worst)
    return Check(name=TIES, finding=finding, passed=passed, figure=moved, limit=MOST_TIED)


def check_sign(results: Results) -> Check:
    """An attacker may reverse the sign of its scores: that must not tell more than the worst case that is reported."""
    known = [case for case in cases(results, "d_ece") if "flipped" in case.estimate.extra and not case.group]
    if not known:
        return Check(name=UPRIGHT, finding=Finding("no_scores"), passed=None, misleads="overestimated")
    reported = max(case.estimate.value for case in known)
    worst = max(known, key=lambda case: float(case.estimate.extra["flipped"]))
    flipped = float(worst.estimate.extra["flipped"])
    p = worst.estimate.extra.get(f"flipped_{P_ADJUSTED}")
    noise = worst.estimate.null_range
    # Without relabeled people: trials share speakers and several attackers are looked at, so twice the 95th percentile.
    significant = p < ALPHA if isinstance(p, float) else flipped > (2 * noise[1] if noise else 0.0)
    passed = not (flipped > reported and significant)
    return Check(
        name=UPRIGHT,
        finding=Finding.of(
            "inverted_scores", passed=passed, attacker=worst.attacker, flipped=flipped, reported=reported
        ),
        passed=passed,
        misleads="overestimated",
        figure=flipped,
        limit=reported,
    )


def check_own_runs(results: Results, facts: TrustFacts) -> Check:
    """An attacker who has the anonymizer runs it on the people they look for, as often as they like. What passes for
    such a run must be one: of this anonymizer, and of all these people."""
    unlike = bool(facts.own_runs) and facts.run_p is not None and facts.run_p < SURE_RUN
    passed = False if unlike else True if facts.own_runs and not facts.not_covered else None
    shared = not facts.own_runs and _shares_draws(results)
    misleads: Direction = "either" if shared else "overestimated"
    finding = Finding.of(
        "own_runs",
        runs=facts.own_runs,
        shares_draws=shared,
        unlike=unlike,
        not_covered=facts.not_covered if facts.own_runs else 0,
    )
    return Check(name=OWN_RUNS, finding=finding, passed=passed, misleads=misleads, figure=float(facts.own_runs))


def _runs_are_shown(facts: TrustFacts) -> bool:
    """Whether attackers used runs that are like the release and cover everybody."""
    return bool(facts.own_runs) and (facts.run_p is None or facts.run_p >= SURE_RUN) and not facts.not_covered


def links_itself(linking: Criterion | None, facts: TrustFacts) -> bool:
    """Whether released recordings are linked to other released ones of the same people, and attackers found nobody."""
    if linking is None or facts.release_p is None or facts.release_p >= SURE_RELEASE:
        return False
    return not is_attackers_alarm(linking)


def raise_linking(linking: Criterion) -> Criterion:
    """The criterion where the release links itself: there is something to find, which the attackers did not."""
    finding = replace(linking.finding, values={**linking.finding.values, "level": "raised"}, severity="warning")
    return replace(linking, level="raised", finding=finding, details={WITHIN_RELEASE: True})


def check_release(linking: Criterion | None, facts: TrustFacts) -> Check:
    """Attackers who find nobody must not be contradicted by the release, whose recordings of one person may be alike:
    then their runs may not be those of this anonymizer, or a secret key keeps them off. Where their runs are shown to
    be runs of it, each person has a new voice in each run, and that is what links the recordings. Where people are
    recognized, it changes no claim."""
    if facts.release_p is None:
        return _not_applicable(RELEASE, Finding("release_not_linked"))
    linked = links_itself(linking, facts)
    own_voices = linked and _runs_are_shown(facts)
    failed = linked and not own_voices
    recognized = not linked and facts.release_p < SURE_RELEASE
    return Check(
        name=RELEASE,
        finding=Finding.of(
            "release_linked",
            passed=not failed,
            recognized=recognized,
            own_voices=own_voices,
            share=facts.release_share if facts.release_p < SURE_RELEASE else 0.0,
        ),
        passed=not failed,
        misleads="overestimated",
        figure=facts.release_p,
        limit=SURE_RELEASE,
    )


def _shares_draws(results: Results) -> bool:
    """Whether people are recognized by an attacker who enrolls anonymized speech, here that of the released run."""
    linking = results.criteria.get("linking")
    if linking is None or linking.level not in ("raised", "high"):
        return False
    attacker = results.attackers.get(linking.attacker)
    if attacker is None or attacker.source != "vectors" or attacker.kind not in ATTACKERS:
        return False
    return "anonymized" in ATTACKERS[attacker.kind].enrollment


def check_vector_lengths(results: Results, facts: TrustFacts) -> Check:
    """Attackers compare directions. Where they find nobody, the lengths of vectors must not give people away."""
    linking = results.criteria.get("linking")
    if facts.length_p is None:
        return _not_applicable(LENGTHS, Finding("lengths_not_compared"))
    # Where people are recognized anyway, another way to do so changes no claim.
    passed = facts.length_p >= SURE_LENGTHS or (linking is not None and linking.level in ("raised", "high"))
    return Check(
        name=LENGTHS,
        finding=Finding.of("vector_lengths", passed=passed),
        passed=passed,
        misleads="overestimated",
        figure=facts.length_p,
        limit=SURE_LENGTHS,
    )


def check_draws(results: Results, facts: TrustFacts) -> Check:
    """Attackers learn what all transformations have in common. Where an anonymizer draws from a finite set, a real one
    tries them one by one, so attackers must have done that, on everybody. Where people are recognized anyway, that
    changes no claim."""
    linking = results.criteria.get("linking")
    if facts.draws is None or (linking is not None and linking.level == "high"):
        return _not_applicable(DRAWS, Finding("draws_not_compared"))
    draws, recognized = facts.draws, linking is not None and is_attackers_alarm(linking)
    # Whatever is kept of people, or given to them for a run, makes their copies resemble each other; only exact traces
    # are those of draws alone.
    explained = linking is not None and linking.level == "raised"
    alike = draws.p < SURE_DRAWS and not explained
    finite = bool(draws.set_size) or draws.size is not None or alike
    # Copies that are still alike, or many more transformations: a set that was tried does not explain these.
    every = 0 < draws.set_size == draws.tried and not alike and (draws.size or 0) <= MOST_BEYOND * draws.set_size
    effect = "none" if not finite else "harmless" if recognized else "tried" if every else "misleading"
    finding = Finding.of(
        "draws",
        effect=effect,
        size=draws.size if draws.named is None else draws.named,
        noticed=draws.noticed,
        tried=draws.tried,
        set_size=draws.set_size,
    )
    passed = effect != "misleading"
    return Check(name=DRAWS, finding=finding, passed=passed, misleads="overestimated", figure=draws.p, limit=SURE_DRAWS)


def check_target_voices(effect: TargetVoices | None, linking: Criterion | None) -> Check:
    """The strongest attacker must not fail because of where target voices lie. Where people are recognized anyway,
    finding more of them changes no claim."""
    if effect is None:
        return _not_applicable(TARGETS, Finding("no_target_voices"), limit=MOST_DUE)
    share = 100 * effect.share
    much = share > MOST_DUE
    sure = effect.gain[0] > 0 and much
    failed = sure and (linking is None or linking.level != "high")
    finding = Finding.of(
        "target_voices",
        effect="misleading" if failed else "harmless" if sure else "uncertain" if much else "small",
        share=share,
        voices=effect.voices,
        known=effect.known,
        reported=effect.eer_reported,
        informed=effect.eer_informed,
    )
    return Check(
        name=TARGETS, finding=finding, passed=not failed, misleads="overestimated", figure=share, limit=MOST_DUE
    )


UTILITY_PENDING = "utility_pending"


def is_pending(results: Results, code: str) -> bool:
    """Whether something is still to be measured."""
    return any(finding.code == code for finding in results.pending)


def check_speech(utility: Part | None, *, pending: bool = False) -> Check:
    """Silence and noise hide everybody: figures of privacy are worth nothing where no speech is left. As long as the
    measurement is `pending`, the check is open."""
    if pending:
        finding = Finding("speech_not_yet_measured")
        return Check(name=STILL_SPEECH, finding=finding, passed=None, misleads="overestimated")
    if utility is None or "speech" not in utility.details:
        return Check(name=STILL_SPEECH, finding=Finding("speech_not_measured"), passed=None, applies=False)
    counts: Mapping[str, Any] = utility.details["speech"]
    recordings, wordless = int(counts["recordings"]), int(counts["wordless_original"])
    if not recordings or wordless > (1 - UNDERSTOOD) * recordings:
        finding = Finding.of("originals_without_words", wordless=wordless, recordings=recordings)
        return Check(name=STILL_SPEECH, finding=finding, passed=None, misleads="overestimated")
    lost = 100 * counts["lost"] / recordings
    quality = utility.estimates.single("mos")
    figure: Estimate | float = lost
    passed, limit = lost <= MOST_LOST, MOST_LOST
    if not passed:
        finding = Finding.of("words_lost", lost=counts["lost"], recordings=recordings, silent=counts["silent"])
    elif quality is not None and quality.value < LEAST_QUALITY:
        passed, figure, limit = False, quality, LEAST_QUALITY
        finding = Finding.of("low_quality", quality=quality.value)
    else:
        finding = Finding.of("words_understood", understood=recordings - counts["lost"], recordings=recordings)
    return Check(
        name=STILL_SPEECH, finding=finding, passed=passed, misleads="overestimated", figure=figure, limit=limit
    )
