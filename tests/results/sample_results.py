"""Small results with something in every field, made by hand."""

from __future__ import annotations

from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding, text_finding
from veilmeter.results.criteria import linking_finding
from veilmeter.results.model import (
    AttackerResult,
    Check,
    Criterion,
    Input,
    LinkedPerson,
    Matching,
    Part,
    People,
    Person,
    ProtocolFacts,
    Results,
    Verdict,
)
from veilmeter.wording import sentence


def link(value: float, *, speakers: int = 20, length: int = 1, low: float = 0.0, high: float = 100.0) -> Estimate:
    return Estimate(
        name="linkability",
        label="Linkability",
        value=value,
        unit="percent",
        interval=(low, high),
        null=100 / speakers,
        n={"speakers": speakers},
        better="lower",
        at={"speakers": speakers, "length": length},
    )


def eer(value: float, reach: float = 3.0) -> Estimate:
    return Estimate(
        name="eer",
        label="EER",
        value=value,
        unit="percent",
        interval=(value - reach, value + reach),
        null=50.0,
        method="ROCCH",
        better="higher",
    )


def attacker(name: str, *points: Estimate, **fields: object) -> AttackerResult:
    return AttackerResult(name=name, about="compares voices", estimates=Estimates(points), **fields)  # type: ignore[arg-type]


def training_of(results: Results, attacker: str = "informed") -> str:
    trained_on = results.attackers[attacker].trained_on
    assert trained_on is not None
    return sentence(trained_on)


def sample() -> Results:
    point = link(40.0, low=30.0, high=50.0)
    person = Person(speaker="s1", attacker="ignorant", risk=point, by_attacker={"ignorant": point}, unprotected=True)
    side = {"kind": "embeddings", "sha256": "0" * 64, "speakers": 20, "utterances": 80}
    return Results(
        version="0",
        title="b against a",
        seed=3,
        settings={"precision": 10.0, "weak_attacker": 15.0, "title": ""},
        inputs={role: Input(role=role, path=role, **side) for role in ("original", "anonymized")},  # type: ignore[arg-type]
        matching=Matching(matched=80, unmatched={"only_original": 1}),
        protocol=ProtocolFacts(
            split=Finding("split_by_session", {"by_session": 0, "in_halves": 20}),
            enrolled_speakers=20,
            trial_speakers=20,
            enrollment_utterances=40,
            trial_utterances=40,
        ),
        attackers={
            "original": attacker("original", eer(2.0), link(95.0, low=90.0, high=99.0)),
            "ignorant": attacker(
                "ignorant",
                eer(30.0),
                point,
                link(60.0, speakers=5, low=50.0, high=70.0),
                Estimate(name="l_w", label="l_w", value=float("inf"), unit="log10", extra={"tag": "F"}),
                by={"gender": {"f": Estimates([eer(20.0)]), "m": Estimates([eer(40.0)])}},
                people=(LinkedPerson(speaker="s1", length=1, among=20, conversations=2, linked=50.0),),
                profile={"prior": (0.1, 0.5)},
            ),
        },
        command=("veilmeter", "assess"),
        extractor={"name": "campplus"},
        parts={
            "similarity": Part(
                name="similarity", estimates=Estimates([Estimate(name="deid", value=float("-inf"), unit="percent")])
            )
        },
        criteria={
            "linking": Criterion(
                name="linking",
                level="raised",
                finding=linking_finding("raised", point, "ignorant", {}, None),
                estimate=point,
                attacker="ignorant",
            )
        },
        checks=(
            Check(name="a", finding=text_finding("Fine."), passed=True, figure=eer(2.0), limit=15.0),
            Check(name="b", finding=text_finding("Not known."), passed=None, applies=False),
        ),
        people=People(persons=(person,), finding=text_finding("One of 20."), expected_by_chance=0.2, stability=50.0),
        verdict=Verdict(
            level="raised",
            trustworthy=True,
            headline=(Finding.of("verdict", level="raised"),),
            not_tested=(text_finding("much"),),
        ),
        remarks=(text_finding("nothing"),),
        warnings=(text_finding("careful"),),
    )
