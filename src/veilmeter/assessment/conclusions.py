"""From what the tasks measured to `Results`: who attacked how, the parts, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from veilmeter._version import __version__
from veilmeter.assessment.case import OWN_RUN, RELEASED_RUN, AssessmentCase, NotPossibleError
from veilmeter.assessment.effects import Effects
from veilmeter.assessment.given_scores import combined
from veilmeter.assessment.heard_copies import HeardCopies
from veilmeter.assessment.plan import CONTROL, NEEDED_BY_CHECKS, SHUFFLED, AssessmentPlan, heard_channels
from veilmeter.assessment.settings import Settings
from veilmeter.assessment.speech import Speech
from veilmeter.assessment.target_voices import target_voices
from veilmeter.assessment.tasks import ATTACKER, Arrays, TaskResult
from veilmeter.attacks.knowledge import FUSED
from veilmeter.attacks.registry import ATTACKS
from veilmeter.attacks.takeover import KNOWS, Success, takeovers
from veilmeter.metrics.copies import copies, unchanged
from veilmeter.metrics.legal.chance import Relabeled, joint_chance
from veilmeter.metrics.norms import length_correlation
from veilmeter.results.chance import with_chance
from veilmeter.results.channels import channels_of
from veilmeter.results.model import AttackerResult, Channels, Matching, Part, ProtocolFacts, Results
from veilmeter.results.people import Traits
from veilmeter.results.trust import TrustFacts
from veilmeter.results.verdict import conclude

FIRST = "the first extractor"
SCORES, CURVE = "scores-", "inversion-curve"


@dataclass(frozen=True, eq=False)
class FinishedRun:
    """A run that has measured everything."""

    case: AssessmentCase
    plan: AssessmentPlan
    done: Mapping[str, tuple[TaskResult, Arrays]]
    speech: Mapping[str, Speech]
    warnings: tuple[str, ...]
    effects: Effects
    heard: HeardCopies | None = None

    def measured(self) -> Mapping[str, TaskResult]:
        """By task, those that were possible."""
        return {name: measured for name, (measured, _) in self.done.items() if not measured.not_possible}


def concluded(outcome: FinishedRun, settings: Settings, command: Sequence[str]) -> Results:
    """The results with everything that follows from them."""
    case, measured = outcome.case, outcome.measured()
    attackers, taken_over = _no_worse_for_knowing_more(attackers_of(measured), outcome)
    results = Results(
        version=__version__,
        title=settings.title or _title(outcome.speech),
        seed=settings.seed,
        settings=outcome.effects.used,
        inputs={role: speech.facts for role, speech in outcome.speech.items()},
        matching=Matching(matched=len(case.matched), unmatched=case.matched.unmatched),
        protocol=_protocol(outcome),
        attackers=attackers,
        command=tuple(command),
        extractor=outcome.speech["original"].extractor,
        parts=parts_of(measured),
        channels=_channels(attackers, measured, settings),
        remarks=(*outcome.effects.remarks, *_added_measures(settings)),
        warnings=(*warnings_of(outcome.warnings, measured), *taken_over),
    )
    similarity = results.parts.get("similarity", Part(name="similarity")).details
    traits = Traits(
        gender=dict(zip(case.original.speakers, case.original.attributes.get("gender", ()), strict=False)),
        animal={animal["speaker"]: animal["animal"] for animal in similarity.get("zoo", ())},
        deid=similarity.get("deid", {}),
    )
    luck = joint_chance(_relabeled(outcome), seed=settings.seed)
    return conclude(
        with_chance(results, luck), _evidence(outcome, settings.seed), not_tested=_not_tested(outcome), traits=traits
    )


def _relabeled(outcome: FinishedRun) -> list[Relabeled]:
    """Each attacker's figures with people relabeled at random, as they were measured."""
    return [
        Relabeled(measured.figures, arrays["values"], measured.enrolled, arrays["first"], arrays["own"])
        for measured, arrays in outcome.done.values()
        if measured.figures
    ]


def attackers_of(measured: Mapping[str, TaskResult]) -> dict[str, AttackerResult]:
    """Vectors and given scores of one attacker together, in the order in which they were planned."""
    names = dict.fromkeys(
        name.removeprefix(prefix) for name in measured for prefix in (ATTACKER, SCORES) if name.startswith(prefix)
    )
    attackers: dict[str, AttackerResult] = {}
    for name in names:
        compared, given = (
            measured[prefix + name].attacker if prefix + name in measured else None for prefix in (ATTACKER, SCORES)
        )
        attacker = compared if given is None else combined(compared, given)
        if attacker is not None:
            attackers[name] = attacker
    return attackers


def _no_worse_for_knowing_more(
    attackers: Mapping[str, AttackerResult], outcome: FinishedRun
) -> tuple[dict[str, AttackerResult], list[str]]:
    """Who knows more and did surely worse takes over the other's method, which it could have used; and what to say."""
    successes = {}
    for name in attackers:
        arrays = outcome.done.get(ATTACKER + name, (None, {}))[1]
        if "ahead" in arrays and attackers[name].source == "vectors":
            successes[name] = Success(arrays["ahead"], arrays["ahead_of"])
    knows = knowledge(successes)
    changed, sentences = dict(attackers), []
    for takeover in takeovers(successes, knows):
        loser, winner = attackers[takeover.attacker], attackers[takeover.other]
        changed[loser.name] = replace(
            loser,
            backend=f"{winner.backend}, taken over from the {winner.name} attacker",
            estimates=winner.estimates,
            by=winner.by,
            people=winner.people,
            ties=winner.ties,
            profile=winner.profile,
            det=winner.det,
            details={**loser.details, "taken_over_from": winner.name, "own_estimates": loser.estimates.to_json()},
        )
        sentences.append(takeover.sentence)
    return changed, sentences


def knowledge(names: Iterable[str]) -> dict[str, frozenset[str]]:
    """What each attacker knows. Whoever hears by one extractor does not know what another one hears; the fused attacker
    knows what all of them hear.

    >>> known = knowledge(["adaptive", "adaptive@words", "fused"])
    >>> known["adaptive"] < known["adaptive@words"], known["adaptive"] < known["fused"] > known["adaptive@words"]
    (False, True)
    """
    heard = {name: name.partition("@")[2] or FIRST for name in names}
    extractors = frozenset(heard.values())
    knows = {}
    for name, extractor in heard.items():
        attacker = name.partition("@")[0]
        own = ATTACKS[attacker].knows if attacker in ATTACKS else KNOWS.get(attacker, frozenset())
        knows[name] = own | (extractors if attacker == FUSED else {extractor}) if own else own
    return knows


def parts_of(measured: Mapping[str, TaskResult]) -> dict[str, Part]:
    parts = {name: result.part for name, result in measured.items() if result.part is not None and name != CURVE}
    if "inversion" in parts and CURVE in measured and (curve := measured[CURVE].part) is not None:
        inversion = parts["inversion"]
        parts["inversion"] = replace(inversion, details={**inversion.details, **curve.details})
    return parts


def _channels(
    attackers: Mapping[str, AttackerResult], measured: Mapping[str, TaskResult], settings: Settings
) -> Channels | None:
    """What each extractor gives away, where there are several, beside its controls."""

    def controls(prefix: str) -> dict[str, AttackerResult]:
        return {
            name.removeprefix(prefix): result.attacker
            for name, result in measured.items()
            if name.startswith(prefix) and result.attacker is not None
        }

    return channels_of(attackers, heard_channels(settings), controls(CONTROL), controls(SHUFFLED))


def _protocol(outcome: FinishedRun) -> ProtocolFacts:
    case, used = outcome.case, outcome.plan.used
    facts = case.protocol.facts(case.original)
    runs = [{"name": run.name, "draw": run.draw, "own": run.own, "recordings": len(run.vectors)} for run in case.runs]
    return replace(
        facts,
        training=used.training_words,
        anonymized_enrollment=OWN_RUN if any(run.own for run in case.runs) else RELEASED_RUN,
        details={**facts.details, "folds": used.folds, "attacker_runs": runs, "groups": sorted(case.groups)},
    )


def _evidence(outcome: FinishedRun, seed: int) -> TrustFacts:
    """What the trust checks need beside the estimates."""
    case = outcome.case
    known, tried = case.enrolled(case.original), case.tried(case.original)
    heard = outcome.heard or HeardCopies()
    same = unchanged(case.original, case.anonymized)
    if same is not None:
        same |= np.isin(case.original.utterances.astype(str), sorted(heard.unchanged))
    repeated = copies(known, tried) | np.isin(tried.utterances.astype(str), sorted(heard.repeated))
    assessed = set(case.original.names)
    return TrustFacts(
        compared=len(case.original),
        unchanged=None if same is None else int(same.sum()),
        trials=len(tried),
        copies=int(repeated.sum()),
        overlap={
            role: len(assessed & set(case.training[role].embeddings.names)) for role in outcome.plan.used.training
        },
        own_runs=sum(run.own for run in case.runs),
        length_p=_length_p(case),
        targets=target_voices(
            case,
            outcome.plan.jobs,
            {name.removeprefix(ATTACKER): arrays for name, (_, arrays) in outcome.done.items()},
            [corpus.root for corpus in outcome.speech["anonymized"].corpora],
            seed=seed,
        ),
    )


def _length_p(case: AssessmentCase) -> float | None:
    """How often chance would relate the lengths of vectors as closely as in the closer of two comparisons: of original
    and of anonymized enrollment with the trials. Twice the smaller probability, as two are looked at."""
    tried = case.tried(case.anonymized)
    enrolled = [case.enrolled(case.original)]
    with suppress(NotPossibleError):
        enrolled.append(case.copies().vectors)
    probabilities = [related[1] for side in enrolled if (related := length_correlation(side, tried)) is not None]
    return min(1.0, 2 * min(probabilities)) if probabilities else None


def _not_tested(outcome: FinishedRun) -> list[str]:
    reasons = list(outcome.plan.not_tested)
    for name, (measured, _) in outcome.done.items():
        if measured.not_possible:
            what = f"{name.removeprefix(ATTACKER)} attacker" if name.startswith(ATTACKER) else name
            reasons.append(f"{what}: {measured.not_possible}")
        reasons += measured.not_tested
    return reasons


def warnings_of(common: Sequence[str], measured: Mapping[str, TaskResult]) -> tuple[str, ...]:
    """What holds for every attacker is said once; the rest with the attacker's name."""
    by_attacker = {
        name.removeprefix(ATTACKER): result.warnings for name, result in measured.items() if name.startswith(ATTACKER)
    }
    lines = list(common)
    for name, texts in by_attacker.items():
        shared = [text for text in texts if all(text in others for others in by_attacker.values())]
        lines += shared + [f"{name}: {text}" for text in texts if text not in shared]
    for name, result in measured.items():
        if not name.startswith((ATTACKER, CONTROL, SHUFFLED)):
            lines += [f"{name.removeprefix(SCORES)}: {text}" for text in result.warnings]
    return tuple(dict.fromkeys(lines))


def _added_measures(settings: Settings) -> list[str]:
    """What was measured although it was not asked for."""
    added = [family for family in NEEDED_BY_CHECKS if family not in settings.measures]
    return [f"{', '.join(added)} was measured too: the trust checks need it"] if added else []


def _title(speech: Mapping[str, Speech]) -> str:
    def short(role: str) -> str:
        paths = speech[role].facts.path.split(", ")
        return Path(paths[0]).name + (f" and {len(paths) - 1} more" if len(paths) > 1 else "")

    names: dict[str, Any] = {role: short(role) for role in ("anonymized", "original")}
    variant = speech["anonymized"].facts.variant
    if names["anonymized"] == names["original"] and variant:
        names["anonymized"] += f" ({variant})"
    return f"{names['anonymized']} against {names['original']}"
