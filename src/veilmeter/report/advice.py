"""What to do next, derived from the results: every rule stands here, and none of them is a legal judgment."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from veilmeter.attacks.knowledge import known_attackers, plain_words
from veilmeter.core.estimate import Estimate
from veilmeter.core.estimates import Estimates
from veilmeter.results import trust
from veilmeter.results.model import Check, Criterion, Results

WIDE_INTERVAL = 0.20  # of a share: wider, and hardly anything follows from it
CLEARLY_LESS = 0.10  # of a share: what a measure must gain to be recommended
MUCH_LESS = 0.5  # an attacker that finds less than half of another


@dataclass(frozen=True, slots=True)
class Advice:
    """`text` says what to do, `reason` the figure behind it; `criterion` is what it is for."""

    criterion: str
    text: str
    reason: str = ""


def advice(results: Results) -> tuple[Advice, ...]:
    """In the order in which it should be read: first what makes the figures reliable, then what lowers the risk."""
    return tuple(dict.fromkeys(item for rule in RULES for item in rule(results)))


def _failing(results: Results, name: str) -> Criterion | None:
    criterion = results.criteria.get(name)
    return criterion if criterion is not None and criterion.level in ("raised", "high") else None


def _of_hundred(share: float) -> str:
    return f"{100 * share:.0f} of 100"


def failed_checks(results: Results) -> Iterator[Advice]:
    """Also what could not be checked, where something can be done about it."""
    for check in results.checks:
        if check.failed or (check.open and check.name in (trust.OWN_RUNS, trust.ENOUGH)):
            yield Advice("trust", _remedy(check), check.sentence)


def _remedy(check: Check) -> str:
    return _REMEDIES.get(check.name) or f"Mend what failed ({check.name}) and assess again."


_REMEDIES = {
    trust.STRONG: "Assess with a stronger recognizer: this one hardly recognizes people even without anonymization.",
    trust.ADAPTED: "Give the attackers more training speech: their adaptation failed, and a real one may do better.",
    trust.CHANGED: "Check the files: some anonymized recordings are the original ones.",
    trust.COPIES: "Take copies out: some recordings stand in the enrollment and in the trials.",
    trust.ENOUGH: "Assess more people: the figures are too uncertain for a decision.",
    trust.OTHERS: "Train the attackers on other people than those who are assessed.",
    trust.SESSIONS: "Assess recordings of several sessions, so that rooms and microphones are not taken for voices.",
    trust.TIES: "Check the scores: many are equal, which points to rounding or to copies.",
    trust.UPRIGHT: "Look at the attack: its scores tell more when they are turned round.",
    trust.OWN_RUNS: "Run the anonymizer a second time and give that run to the attackers.",
}


def stronger_system(results: Results) -> Iterator[Advice]:
    """Even somebody who knows nothing of the anonymizer succeeds."""
    linking, ignorant = _failing(results, "linking"), results.attackers.get("ignorant")
    if linking is None or ignorant is None:
        return
    point = _same_point(ignorant.estimates.points("linkability"), linking.estimate)
    if point is not None and point.value - (point.null or 0) >= 1 / 3:
        yield Advice(
            "linking",
            "Use a stronger anonymizer or stronger settings.",
            f"Even someone who does not know that the speech was anonymized finds {_of_hundred(point.value)}.",
        )


def other_voices(results: Results) -> Iterator[Advice]:
    """Who has the anonymizer finds far more than who does not: the new voice stands for the person."""
    linking, ignorant = _failing(results, "linking"), results.attackers.get("ignorant")
    if linking is None or ignorant is None or linking.attacker == "ignorant":
        return
    point = _same_point(ignorant.estimates.points("linkability"), linking.estimate)
    known = known_attackers().get(linking.attacker)
    anonymizes = known is None or known.enrollment == "anonymized"
    if point is not None and anonymizes and point.value < MUCH_LESS * linking.estimate.value:
        yield Advice(
            "linking",
            "Draw a new voice for every recording instead of one per person, and keep the draws secret.",
            f"Whoever has your anonymizer finds {_of_hundred(linking.estimate.value)}, "
            f"others {_of_hundred(point.value)}.",
        )


def less_speech(results: Results) -> Iterator[Advice]:
    """Fewer recordings per person, where that was measured to help."""
    linking = _failing(results, "linking")
    if linking is None or linking.attacker not in results.attackers:
        return
    length = int(linking.estimate.at.get("length", 1))
    for point in results.attackers[linking.attacker].estimates.points("linkability").sorted("length"):
        shorter = int(point.at.get("length", 1))
        same = point.at.get("speakers") == linking.estimate.at.get("speakers")
        if same and shorter < length and linking.estimate.value - point.value >= CLEARLY_LESS:
            amount = "one recording" if shorter == 1 else f"{shorter} recordings"
            yield Advice(
                "linking",
                f"Release at most {amount} per person.",
                f"That lowers {_of_hundred(linking.estimate.value)} to {point.value * 100:.0f}.",
            )
            return


def reversible(results: Results) -> Iterator[Advice]:
    inversion = _failing(results, "inversion")
    if inversion is not None:
        yield Advice(
            "inversion",
            "Vary the anonymizer's parameters from recording to recording: it moves all voices alike.",
            f"{inversion.estimate.value:.0f} of 100 recordings were turned back far enough.",
        )


def singled_out(results: Results) -> Iterator[Advice]:
    unprotected = len(results.people.unprotected)
    if unprotected and unprotected < len(results.people.persons) / 2:
        count = "The one person" if unprotected == 1 else f"The {unprotected} people"
        yield Advice(
            "singling_out",
            f"{count} who are linked more often than not need another treatment, or should be left out.",
            "The list of people in the technical part shows who they are.",
        )
    elif _failing(results, "singling_out") is not None:
        yield Advice(
            "singling_out",
            "Release fewer recordings per person, or use new voices that are less like the original ones.",
        )


def attributes(results: Results) -> Iterator[Advice]:
    inference = _failing(results, "inference")
    if inference is not None:
        attribute = inference.estimate.at.get("attribute", "an attribute")
        yield Advice(
            "inference",
            f"Decide whether {attribute} may be known; if not, choose new voices regardless of it.",
            f"It is guessed right for {inference.estimate.value:.0f} of 100 recordings.",
        )


def more_people(results: Results) -> Iterator[Advice]:
    linking = results.criteria.get("linking")
    if linking is None or linking.estimate.interval is None:
        return
    low, high = linking.estimate.interval
    if high - low > WIDE_INTERVAL and not any(check.name == trust.ENOUGH and check.failed for check in results.checks):
        yield Advice(
            "trust",
            "Assess more people.",
            f"The true figure lies between {100 * low:.0f} and {100 * high:.0f}; four times as many people halve that.",
        )


def further_attackers(results: Results) -> Iterator[Advice]:
    not_run = results.verdict.not_tested
    missing = [name for name in known_attackers() if any(text.startswith(f"{name} attacker") for text in not_run)]
    if missing:
        count = "the attacker that was" if len(missing) == 1 else f"the {len(missing)} attackers that were"
        listed = "; ".join(f"{plain_words(name, known_attackers()[name].about).who} ({name})" for name in missing[:2])
        yield Advice("trust", f"Add {count} not run: {listed}{'; and others' if len(missing) > 2 else ''}.")


def not_usable(results: Results) -> Iterator[Advice]:
    kept = results.criteria.get("distinctiveness")
    if results.verdict.level == "low" and kept is not None and kept.level == "high" and "utility" not in results.parts:
        yield Advice("use", "Listen to the output before trusting it: little of a voice may be left at all.")


def again(results: Results) -> Iterator[Advice]:
    yield Advice("trust", "Assess again when the anonymizer, its settings, the recordings or the recipients change.")


RULES: tuple[Callable[[Results], Iterator[Advice]], ...] = (
    failed_checks, stronger_system, other_voices, less_speech, reversible, singled_out, attributes, more_people,
    further_attackers, not_usable, again,
)  # fmt: skip


def _same_point(points: Estimates, like: Estimate) -> Estimate | None:
    return next((point for point in points if point.at == like.at), None)
