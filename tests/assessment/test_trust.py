"""Every trust check: something that trips it, and something that doesn't."""

from __future__ import annotations

from typing import Any

import pytest
import synthetic_voices as voices

from veilmeter.assessment import assess
from veilmeter.data.embeddings import Embeddings
from veilmeter.results import trust

FAST: dict[str, Any] = {"resamples": 30, "lengths": [1], "measures": ["scores", "linkability"]}


def checks(original: Embeddings, anonymized: Embeddings, **options: Any) -> dict[str, Any]:
    found = assess(original, anonymized, **(FAST | {"attackers": ["ignorant", "lazy-informed"]} | options)).results
    failed = [check for check in found["trust"] if check["passed"] is False]
    assert found["verdict"]["trustworthy"] == (not failed)
    assert found["verdict"]["distrust"] == [check["sentence"] for check in failed]
    # Failed ones come first, those that could not be made last.
    order = [{False: 0, True: 1, None: 2}[check["passed"]] for check in found["trust"]]
    assert order == sorted(order)
    return {check["name"]: check for check in found["trust"]}


ORIGINAL = voices.original(20, 6)
PARTLY = voices.partly(ORIGINAL)


def test_weak_on_original_speech() -> None:
    name = "strong on original speech"
    hoarse = voices.original(20, 6, noise=4.0)
    found = checks(hoarse, voices.partly(hoarse))[name]
    assert found["passed"] is False
    assert found["figure"]["value"] > 15
    assert "proves little" in found["sentence"]
    assert checks(ORIGINAL, PARTLY)[name]["passed"] is True
    assert checks(ORIGINAL, PARTLY, weak_attacker=0.0, measures=["linkability"])[name]["passed"] is None


def test_adapted_worse_than_ignorant() -> None:
    name = "adaptation helps"
    # An attacker whose retrained extractor gives noise.
    gone_wrong = assess_with_own_vectors(voices.noise(ORIGINAL))
    assert gone_wrong[name]["passed"] is False
    assert gone_wrong[name]["figure"] > 5
    assert "its adaptation failed" in gone_wrong[name]["sentence"]
    assert assess_with_own_vectors(ORIGINAL)[name]["passed"] is True
    assert checks(ORIGINAL, PARTLY)[name]["passed"] is None


def eer(value: float, low: float, high: float) -> dict[str, Any]:
    return {"value": value, "interval": [low, high]}


def test_adapted_worse_than_lazy_informed() -> None:
    """It has the same enrolment speech and adapts nothing: an adapted attacker that surely does worse has failed, even
    where it beats the ignorant one."""
    eers = {"ignorant": eer(40, 35, 45), "lazy-informed": eer(5, 3, 8), "informed": eer(20, 12, 28)}
    failed = trust.adapted_not_worse(eers, ["informed"])
    assert failed.passed is False
    assert failed.figure == 15
    assert "worse than the lazy-informed one (EER: informed 20.0 %, lazy-informed 5.0 %)" in failed.sentence
    # Ten speakers tell too little to say so.
    unsure = trust.adapted_not_worse(eers | {"informed": eer(7, 4, 28)}, ["informed"])
    assert unsure.passed is True
    assert "is surely worse than the lazy-informed one" in unsure.sentence
    assert trust.adapted_not_worse(eers | {"informed": eer(4, 2, 6)}, ["informed"]).passed is True
    # The ignorant one is the better of the two where the anonymizer hardly changes voices, or was not run.
    assert (
        trust.adapted_not_worse(eers | {"ignorant": eer(1, 0, 2), "informed": eer(4, 3, 5)}, ["informed"]).passed
        is False
    )
    del eers["ignorant"]
    assert trust.adapted_not_worse(eers, ["informed"]).passed is False
    # A wide interval must not hide another attacker that surely failed.
    both = trust.adapted_not_worse(eers | {"semi-informed": eer(30, 2, 60)}, ["semi-informed", "informed"])
    assert both.passed is False
    assert trust.adapted_not_worse(eers, []).passed is None


def assess_with_own_vectors(vectors: Embeddings) -> dict[str, Any]:
    """The informed attacker has an extractor of its own; its vectors are given."""
    import tempfile
    from pathlib import Path

    from veilmeter.data.formats.vectors import write_embeddings

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "own.npz"
        write_embeddings(vectors, path)
        options = {"ignorant": {}, "informed": {"anonymized": str(path)}}
        return checks(ORIGINAL, PARTLY, attackers=options)


def test_identical_to_the_original() -> None:
    name = "anonymized differs from original"
    assert checks(ORIGINAL, ORIGINAL)[name]["passed"] is False
    some = PARTLY.vectors.copy()
    some[:6] = ORIGINAL.vectors[:6]
    found = checks(ORIGINAL, PARTLY.with_vectors(some))[name]
    assert found["passed"] is False
    assert found["figure"] == pytest.approx(6 / 120)
    assert checks(ORIGINAL, PARTLY)[name]["passed"] is True


@pytest.mark.parametrize(
    ("level", "value", "interval", "passed"),
    [
        ("high", 0.9, (0.7, 0.97), True),
        ("high", 0.6, (0.2, 0.9), False),
        ("low", 0.06, (0.02, 0.12), True),
        ("low", 0.06, (0.02, 0.4), False),
        ("raised", 0.3, (0.22, 0.38), True),
        ("raised", 0.3, (0.1, 0.6), False),
    ],
)
def test_too_few_speakers(level: str, value: float, interval: tuple[float, float], passed: bool) -> None:
    one = {"level": level, "estimate": {"value": value, "interval": interval, "n": {"speakers": 10}, "null": 0.05}}
    found = trust.enough_speakers(one, 0.1)
    assert found.passed is passed
    if not passed:
        # With as many as it says, an interval that shrinks with the square root is narrow enough.
        needed = int(found.sentence.split("About ")[1].split(" ")[0])
        scale = (10 / needed) ** 0.5
        narrow = tuple(value + (end - value) * scale for end in interval)
        again = {**one, "estimate": {**one["estimate"], "interval": narrow, "n": {"speakers": needed}}}
        assert trust.enough_speakers(again, 0.1).passed is True
        fewer = (10 / (0.8 * needed)) ** 0.5
        wide = tuple(value + (end - value) * fewer for end in interval)
        assert trust.enough_speakers({**one, "estimate": {**one["estimate"], "interval": wide}}, 0.1).passed is False


def test_too_few_speakers_in_an_assessment() -> None:
    few = voices.original(8, 6)
    assert checks(few, voices.noise(few))["enough speakers"]["passed"] is False
    assert checks(ORIGINAL, voices.permuted(ORIGINAL))["enough speakers"]["passed"] is True


def test_training_speakers_overlap() -> None:
    name = "training speakers are others"
    options: dict[str, Any] = {"attackers": ["ignorant", "informed"]}
    found = checks(ORIGINAL, PARTLY, train_anonymized=PARTLY, **options)[name]
    assert found["passed"] is False
    assert found["figure"] == 20
    others = voices.partly(voices.original(20, 6, seed=5, prefix="t"))
    assert checks(ORIGINAL, PARTLY, train_anonymized=others, **options)[name]["passed"] is True
    assert checks(ORIGINAL, PARTLY)[name]["passed"] is None


def test_enrolment_and_trials_of_one_session() -> None:
    name = "enrolment and trials of different sessions"
    one_session = Embeddings(
        ORIGINAL.vectors, ORIGINAL.utterances, ORIGINAL.speakers,
        {**ORIGINAL.attributes, "session": [f"{speaker}-a" for speaker in ORIGINAL.speakers]},
    )  # fmt: skip
    found = checks(one_session, PARTLY)[name]
    assert found["passed"] is False
    assert found["figure"] == 1.0
    assert checks(ORIGINAL, PARTLY)[name]["passed"] is True
    assert checks(ORIGINAL, PARTLY)[name]["figure"] == 0.0
    unknown = voices.original(20, 6, sessions=False)
    assert checks(unknown, voices.partly(unknown))[name]["passed"] is None


def test_tied_scores() -> None:
    name = "scores without ties"
    assert checks(ORIGINAL, voices.one_voice(ORIGINAL, spread=0))[name]["passed"] is False
    assert checks(ORIGINAL, PARTLY)[name]["passed"] is True


def test_inverted_scores() -> None:
    name = "scores are not inverted"
    mirrored = ORIGINAL.with_vectors(-ORIGINAL.vectors)
    found = checks(ORIGINAL, mirrored, attackers=["ignorant"])[name]
    assert found["passed"] is False
    assert found["figure"] > 0.3
    # Where another attacker finds as much the right way round, the worst case is not wrong.
    assert checks(ORIGINAL, mirrored)[name]["passed"] is True
    assert checks(ORIGINAL, PARTLY)[name]["passed"] is True
