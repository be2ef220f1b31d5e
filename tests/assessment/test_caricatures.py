"""Four caricatures of anonymizers, and the verdict a thoughtful expert would give each of them."""

from __future__ import annotations

from typing import Any

import pytest
import synthetic_voices as voices

from veilmeter.assessment import Assessment, assess
from veilmeter.results.trust import doubts
from veilmeter.wording import AUDIENCES, sentence, sentences, text

FAST: dict[str, Any] = {
    "resamples": 40,
    "lengths": [1],
    "measures": ["scores", "linkability", "singling-out", "similarity", "inversion", "inference"],
}
ORIGINAL = voices.original(60, 5, 16)


@pytest.fixture(scope="module")
def verdicts() -> dict[str, Assessment]:
    systems = {
        "copy": voices.copied,
        "noise": voices.noise,
        "one voice": voices.one_voice,
        "permuted": voices.permuted,
    }
    return {name: assess(ORIGINAL, system(ORIGINAL), **FAST) for name, system in systems.items()}


def levels(one: Assessment) -> dict[str, str]:
    return {name: criterion.level for name, criterion in one.results.criteria.items()}


def eers(one: Assessment) -> dict[str, float]:
    estimates = {name: attacker.estimates.single("eer") for name, attacker in one.results.attackers.items()}
    return {name: estimate.value for name, estimate in estimates.items() if estimate is not None}


def failed(one: Assessment) -> set[str]:
    return {check.name for check in one.results.checks if check.failed}


def test_a_copy_protects_nobody_and_is_found_out(verdicts: dict[str, Assessment]) -> None:
    one = verdicts["copy"]
    found = levels(one)
    assert {found[name] for name in ("linking", "singling_out", "disclosure", "inversion")} == {"high"}
    assert found["distinctiveness"] == "low"
    assert one.headline.startswith("People can be recognized. Of 100 recordings, an ignorant attacker")
    assert failed(one) == {"anonymized differs from original"}
    assert one.trustworthy  # an alarm, and certain
    assert "were not anonymized" in text(doubts(one.results)[0])
    assert len(one.results.people.unprotected) == 60


def test_noise_gives_nothing_away_and_nothing_else(verdicts: dict[str, Assessment]) -> None:
    one = verdicts["noise"]
    found = levels(one)
    assert {found[name] for name in ("linking", "singling_out", "disclosure", "inversion", "inference")} == {"low"}
    assert found["distinctiveness"] == "high"
    assert one.headline.startswith("None of the attackers that were run did significantly better than chance.")
    assert one.results.verdict.remarks[-1].code == "little_voice_left"
    assert one.trustworthy
    assert one.results.people.unprotected == ()


def test_one_voice_for_everybody_links_nobody_but_nobody_can_be_told_apart(verdicts: dict[str, Assessment]) -> None:
    one = verdicts["one voice"]
    found = levels(one)
    assert {found[name] for name in ("linking", "singling_out", "disclosure", "inversion")} == {"low"}
    assert found["distinctiveness"] == "high"
    assert "can hardly be distinguished" in sentence(one.results.criteria["distinctiveness"].finding)


def test_permuted_speakers_are_pseudonyms(verdicts: dict[str, Assessment]) -> None:
    one = verdicts["permuted"]
    found = levels(one)
    assert found["linking"] == "high"
    assert found["distinctiveness"] == "low"
    assert one.results.criteria["linking"].attacker == "lazy-informed"
    assert one.headline.startswith("People can be recognized. Of 100 recordings, a lazy-informed attacker")
    assert any(
        "the same new voice in all recordings" in sentence for sentence in sentences(one.results.verdict.remarks)
    )
    # The ignorant attacker alone would have been reassuring: that is why the worst case counts.
    assert eers(one)["ignorant"] > 40
    assert one.trustworthy


def test_the_very_same_vector_for_everybody_is_doubted() -> None:
    one = assess(ORIGINAL, voices.one_voice(ORIGINAL, spread=0), **FAST)
    assert "scores without ties" in failed(one)
    assert levels(one)["linking"] == "low"
    assert eers(one)["lazy-informed"] == 50.0
    assert "procrustes" in [untested.values.get("attacker") for untested in one.results.verdict.not_tested]


@pytest.mark.parametrize("name", ["copy", "noise", "one voice", "permuted"])
def test_it_never_promises_what_a_lawyer_must_judge(verdicts: dict[str, Assessment], name: str) -> None:
    results = verdicts[name].results
    found = [*results.verdict.headline, *results.verdict.remarks, *results.verdict.not_tested, results.people.finding]
    found += [holder.finding for holder in (*results.criteria.values(), *results.checks)]
    said = " ".join(words for audience in AUDIENCES for words in sentences(found, audience)).lower()
    for promise in ("is anonymous", "are anonymous", "gdpr-compliant", "compliant", "fully protected", "is safe"):
        assert promise not in said
