"""The verdict: the level of the worst case, a headline, and what remains open. A pure function of `Results`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from veilmeter.attacks.attacker import BASELINE
from veilmeter.core.findings import Finding, Level, Reference
from veilmeter.results.criteria import (
    criteria,
    individual_of,
    kept_attribute,
    within_groups_of,
    worst_cases,
)
from veilmeter.results.levels import SEVERITY, worst_level
from veilmeter.results.model import Criterion, Part, Results, Verdict
from veilmeter.results.people import Traits, people, people_beside
from veilmeter.results.trust import (
    OWN_IDS,
    OWN_RUNS,
    RELEASE,
    UTILITY_PENDING,
    WITHIN_RELEASE,
    TrustFacts,
    checks,
    doubting_checks,
    links_itself,
    open_questions,
    raise_linking,
)

ONE_VOICE = 0.8  # of the way from chance to certainty, from released to released recordings of one person

# Questions for a lawyer, whatever was measured.
LAWYER = tuple(map(Finding, ("lawyer_recipients", "lawyer_contents", "lawyer_other_data", "lawyer_acceptance")))


def conclude(
    results: Results, facts: TrustFacts, *, not_tested: Sequence[Finding] = (), traits: Traits | None = None
) -> Results:
    """The results with everything that follows from them: people, criteria, checks and the verdict."""
    results = replace(results, people=people(results, traits, among=within_groups_of(results)))
    found = criteria(results)
    if links_itself(found.get("linking"), facts):
        found["linking"] = raise_linking(found["linking"])
    results = replace(results, criteria=found, people=people_beside(found, results.people))
    results = replace(results, checks=checks(results, facts))
    return replace(results, verdict=verdict(results, not_tested))


def verdict(results: Results, not_tested: Sequence[Finding]) -> Verdict:
    """The level, whether to rely on it, the headline and what else is worth knowing."""
    risks = [criterion for criterion in results.criteria.values() if criterion.risk]
    return Verdict(
        level=_level(results, risks),
        trustworthy=not doubting_checks(results),
        headline=tuple(_headline(results, risks)),
        remarks=tuple(_remarks(results, risks)),
        not_tested=tuple(not_tested),
    )


def _level(results: Results, risks: Sequence[Criterion]) -> Level:
    """The worst one. Where nobody tried to find people, as with scores alone, nothing can be called low: what scores
    disclose on average says little about the few who may be recognized."""
    level = worst_level(criterion.level for criterion in risks)
    searched = {"linking", "singling_out"} & set(results.criteria)
    return "unknown" if level == "low" and not searched else level


def _headline(results: Results, risks: Sequence[Criterion]) -> Iterator[Finding]:
    if not risks:
        yield Finding("nothing_attacked")
        return
    level = _level(results, risks)
    yield Finding.of("verdict", level=level, severity=SEVERITY[level])
    if level == "low":
        worst = results.criteria.get("linking")
    else:
        worst = next((criterion for criterion in risks if criterion.level == level), risks[0])
    if worst is not None:
        yield from worst_cases(results, worst)
    if worst is not None and worst.details.get(WITHIN_RELEASE):
        yield from (check.finding for check in results.checks if check.name == RELEASE)
    individual = individual_of(results)
    if individual is not None and worst is not None:
        yield individual
    kept = kept_attribute(results)
    if kept is not None and level == "raised" and not _more_may_be_kept(results):
        yield Finding("only_attribute_kept", {"attribute": Reference("attribute", kept)}, severity="warning")
    if level == "low":
        # A reassurance says in the same breath what it does not rest on.
        yield from (finding for question in open_questions(results) for finding in question)
        yield from (finding for finding in results.pending if finding.code != UTILITY_PENDING)  # which is a check


def _more_may_be_kept(results: Results) -> bool:
    """Whether attackers who find only an attribute may have missed the rest: their run is of something else, or the
    release links every person's recordings."""
    return any(check.failed for check in results.checks if check.name == OWN_RUNS) or _pseudonyms(results)


def _remarks(results: Results, risks: Sequence[Criterion]) -> Iterator[Finding]:
    apart = results.criteria.get("distinctiveness")
    nothing_found = risks and all(criterion.level == "low" for criterion in risks)
    wrong_ids = any(check.failed for check in results.checks if check.name == OWN_IDS)
    if nothing_found and apart is not None and apart.level == "high" and not wrong_ids:
        yield Finding("little_voice_left", severity="warning")
    if _pseudonyms(results):
        yield Finding("one_voice_per_speaker", severity="warning")
    use = use_finding(results.parts.get("utility"))
    if use is not None:
        yield use


def _pseudonyms(results: Results) -> bool:
    """Whether anonymized speech links to anonymized speech nearly as well as original to original, and not to the
    original: within the release or, where that was not measured, by the lazy-informed attacker."""
    original, ignorant, lazy = (
        None if name not in results.attackers else results.attackers[name].estimates.single("eer")
        for name in (BASELINE, "ignorant", "lazy-informed")
    )
    if original is None or ignorant is None or ignorant.value <= 25:
        return False
    within = [check.finding.values.get("share") for check in results.checks if check.name == RELEASE]
    if within and isinstance(within[0], float):
        return within[0] >= ONE_VOICE
    return lazy is not None and lazy.value < max(5.0, 2 * original.value)


def use_finding(utility: Part | None) -> Finding | None:
    """Words and quality that are left; None where that was not measured."""
    if utility is None:
        return None
    wer, wer_original, mos, mos_original = (
        utility.estimates.single(name) for name in ("wer", "wer_original", "mos", "mos_original")
    )
    if wer is None and mos is None:
        return None
    return Finding.of(
        "use",
        wer=wer,
        wer_original=None if wer_original is None else wer_original.value,
        mos=None if mos is None else mos.value,
        mos_original=None if mos_original is None else mos_original.value,
    )
