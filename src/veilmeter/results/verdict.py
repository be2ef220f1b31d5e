"""The verdict: the level of the worst case, a headline, and what remains open. A pure function of `Results`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from veilmeter.attacks.attacker import BASELINE
from veilmeter.results.criteria import criteria
from veilmeter.results.levels import worst_level
from veilmeter.results.model import Criterion, Level, Results, Verdict
from veilmeter.results.people import Traits, people
from veilmeter.results.trust import TrustFacts, checks, open_questions
from veilmeter.results.usability import use_sentence

LAWYER = (
    "Who could realistically get the speech, and what else do they know (GDPR, recital 26: means reasonably likely to "
    "be used)? The attackers here are defined by what they have; which of them exist is a question of fact.",
    "Does what is said, or a sound in the background, or metadata identify people? Only voices were measured.",
    "Does other data that is or will become available make recognition easier?",
    "Which residual risk is acceptable for this purpose, these recipients and these safeguards, and who decides?",
)

OPENINGS = {
    "high": "People can be recognized.",
    "raised": "Protection is partial.",
    "unknown": "Too little was measured to say whether people can be recognized.",
    "low": "None of the attackers that were run did better than guessing.",
}


def conclude(
    results: Results, facts: TrustFacts, *, not_tested: Sequence[str] = (), traits: Traits | None = None
) -> Results:
    """What was measured, with everything that follows from it: people, criteria, checks and the verdict."""
    results = replace(results, people=people(results, traits))
    results = replace(results, criteria=criteria(results))
    results = replace(results, checks=checks(results, facts))
    return replace(results, verdict=verdict(results, not_tested))


def verdict(results: Results, not_tested: Sequence[str]) -> Verdict:
    """The headline, a sentence for each criterion, and what remains open."""
    risks = [criterion for criterion in results.criteria.values() if criterion.risk]
    level = _level(results, risks)
    failed = [check.sentence for check in results.checks if check.failed]
    return Verdict(
        level=level,
        headline=_headline(results, risks),
        trustworthy=not failed,
        distrust=tuple(failed),
        sentences=(*(criterion.sentence for criterion in results.criteria.values()), *_remarks(results, risks)),
        not_tested=tuple(not_tested),
        lawyer=LAWYER,
    )


def _level(results: Results, risks: Sequence[Criterion]) -> Level:
    """The worst one. Where nobody tried to find people, as with scores alone, nothing can be called low: what scores
    disclose on average says little about the few who may be recognized."""
    level = worst_level(criterion.level for criterion in risks)
    searched = {"linking", "singling_out"} & set(results.criteria)
    return "unknown" if level == "low" and not searched else level


def _headline(results: Results, risks: Sequence[Criterion]) -> str:
    if not risks:
        return "No attack was measured."
    level = _level(results, risks)
    if level == "low":
        telling = results.criteria.get("linking")
    else:
        telling = next((criterion for criterion in risks if criterion.level == level), risks[0])
    headline = OPENINGS[level] + ("" if telling is None else f" {telling.sentence}")
    if level == "low":
        # A reassurance says in the same breath what it does not rest on.
        headline += "".join(f" {question}" for question in open_questions(results))
    return headline


def _remarks(results: Results, risks: Sequence[Criterion]) -> list[str]:
    remarks = []
    apart = results.criteria.get("distinctiveness")
    if risks and all(criterion.level == "low" for criterion in risks) and apart is not None and apart.level == "high":
        remarks.append(
            "That nothing was recognized may mean that little of a voice is left at all: listen to the output before "
            "trusting it, or measure how usable the speech still is."
        )
    if _pseudonyms(results):
        remarks.append(
            "Each speaker seems to be given one new voice for good: whoever knows one anonymized recording of a person "
            "finds all others. That replaces a name by another name; it does not cut the link between recordings."
        )
    use = use_sentence(results.parts.get("utility"))
    return [*remarks, use] if use else remarks


def _pseudonyms(results: Results) -> bool:
    """Whether anonymized speech links to anonymized speech nearly as well as original to original, and not to the
    original."""
    eers = [
        None if name not in results.attackers else results.attackers[name].estimates.single("eer")
        for name in (BASELINE, "ignorant", "lazy-informed")
    ]
    if any(eer is None for eer in eers):
        return False
    original, ignorant, lazy = (eer.value for eer in eers if eer is not None)
    return ignorant > 25 and lazy < max(5.0, 2 * original)
