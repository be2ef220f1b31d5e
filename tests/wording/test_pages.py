"""No two findings that can appear on one page contradict each other, in any audience."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import combinations

import pytest
from tests.wording.samples import can_occur_together, every_finding

from veilmeter.core.findings import Finding
from veilmeter.wording import AUDIENCES, Audience, sentence, text

# What sentences claim: each statement with words that affirm it and words that deny it.
STATEMENTS: Mapping[str, tuple[str, str]] = {
    "people are recognized": (
        r"People can be recognized|people are recognized",
        r"None of the attackers that were run did better|too few to claim that people",
    ),
    "recordings are linked": (
        r"people are recognized|enough to call the risk high|how high the raised risk is",
        r"None of the attackers that were run did better|enough to claim that linking is no better",
    ),
    "somebody is listed as unprotected": (
        r"linked more often than not by the attacker that finds them best(?!.*nobody is listed)",
        r"nobody is listed|is linked more often than not by any attacker",
    ),
    "linking is known to be more than chance": (
        r"enough to show that people are recognized|enough to call the risk high|how high the raised risk is",
        r"are too few to tell (chance|guessing) from|too few to claim that linking is no better",
    ),
    "the self-checks passed": (r"checks? that could be made passed", r"Do not rely|does not call itself trustworthy"),
    "attackers had the anonymizer": (r"Attackers ran the anonymizer", r"attackers did not run the anonymizer"),
    "all recordings were changed": (r"None of .* equals its original", r"not protected at all|were? not anonymized"),
}


def claims(words: str) -> set[tuple[str, bool]]:
    return {
        (statement, affirmed)
        for statement, patterns in STATEMENTS.items()
        for affirmed, pattern in zip((True, False), patterns, strict=True)
        if re.search(pattern, words)
    }


def contradictions(claimed: set[tuple[str, bool]], other: set[tuple[str, bool]]) -> list[str]:
    return [statement for statement, affirmed in claimed if (statement, not affirmed) in other]


@pytest.mark.parametrize("audience", AUDIENCES)
def test_no_two_findings_of_one_page_contradict_each_other(audience: Audience) -> None:
    said = [(finding, sentence(finding, audience)) for finding in every_finding()]
    claiming = [(finding, words, claimed) for finding, words in said if (claimed := claims(words))]
    assert len(claiming) > len(STATEMENTS)
    for (first, words, claimed), (second, others, also) in combinations(claiming, 2):
        if can_occur_together(first, second):
            assert contradictions(claimed, also) == [], f"{words}\n{others}"
    for finding, words, claimed in claiming:
        assert contradictions(claimed, claimed) == [], f"{finding}: {words}"


@pytest.mark.parametrize("audience", AUDIENCES)
def test_every_pair_that_can_occur_together_is_a_paragraph(audience: Audience) -> None:
    first_of_each = {finding.code: finding for finding in reversed(every_finding())}
    for first, second in combinations(first_of_each.values(), 2):
        if can_occur_together(first, second):
            assert text((first, second), audience) == f"{sentence(first, audience)} {sentence(second, audience)}"


def test_what_can_not_occur_together() -> None:
    high, low = (Finding("verdict", {"level": level}) for level in ("high", "low"))
    assert not can_occur_together(high, low)
    few = Finding("enough_speakers", {"level": "low"})
    assert not can_occur_together(Finding("linking", {"level": "high"}), few)
    assert not can_occur_together(low, Finding("linking", {"level": "high"}))
    assert can_occur_together(high, Finding("linking", {"level": "low"}))
    assert not can_occur_together(low, Finding("people_linked", {"listed": 2}))
    assert can_occur_together(high, Finding("people_linked", {"listed": 2}))


def test_an_alarm_is_not_doubted_because_people_are_few() -> None:
    """Issue: "20 speakers are too few to claim that people can be recognized" beside "People can be recognized"."""
    for finding in every_finding():
        if finding.code == "enough_speakers" and finding.values["level"] in ("raised", "high"):
            for audience in AUDIENCES:
                assert "too few to claim" not in sentence(finding, audience)
