"""The plain values that the assessment assembles, as `Results`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from veilmeter.core.estimate import Estimate
from veilmeter.core.estimates import Estimates
from veilmeter.metrics.registry import measure
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

Plain = Mapping[str, Any]
_NOT_RISKS = ("distinctiveness", "inference")
_DIRECTIONS = {
    "strong on original speech": "overestimated",
    "adaptation helps": "overestimated",
    "anonymized differs from original": "either",
    "scores are not inverted": "overestimated",
    "training speakers are others": "underestimated",
    "enrolment and trials of different sessions": "underestimated",
}


def results_of(plain: Plain, rows: Mapping[str, Sequence[Plain]]) -> Results:
    """`plain` as `assemble` builds it; `rows` are each attacker's speakers."""
    inputs = {role: facts for role, facts in plain["inputs"].items() if role not in ("matched", "unmatched")}
    verdict = plain["verdict"]
    criteria = {name: _criterion(name, case) for name, case in plain["worst_case"].items()}
    return Results(
        version=plain["version"],
        title=plain["title"],
        seed=plain["seed"],
        settings=plain["parameters"],
        inputs={role: _input(role, facts) for role, facts in inputs.items()},
        matching=Matching(matched=plain["inputs"]["matched"], unmatched=plain["inputs"]["unmatched"]),
        protocol=_protocol(plain["protocol"]),
        attackers={name: _attacker(name, entry, rows.get(name, ())) for name, entry in plain["attackers"].items()},
        command=tuple(plain["command"]),
        extractor=plain["extractor"],
        parts=_parts(plain),
        criteria=criteria,
        checks=tuple(_check(check) for check in plain["trust"]),
        people=_people(plain),
        verdict=Verdict(
            level=_level(criteria),
            headline=verdict["headline"],
            trustworthy=verdict["trustworthy"],
            distrust=tuple(verdict["distrust"]),
            sentences=tuple(verdict["sentences"]),
            not_tested=tuple(verdict["not_tested"]),
            lawyer=tuple(verdict["lawyer"]),
        ),
        warnings=tuple(plain["warnings"]),
    )


def _level(criteria: Mapping[str, Criterion]) -> Any:
    levels = {criterion.level for criterion in criteria.values() if criterion.risk}
    return next((level for level in ("high", "raised", "unknown", "low") if level in levels), "unknown")


def _input(role: str, facts: Plain) -> Input:
    known = {key: facts.get(key) for key in ("kind", "path", "sha256", "speakers", "utterances", "hours")}
    more = {key: facts.get(key) for key in ("layout", "variant", "dimension")}
    return Input(
        role=role,
        **known,  # type: ignore[arg-type]
        **more,  # type: ignore[arg-type]
        attributes=tuple(facts.get("attributes", ())),
        problems=facts.get("problems", {}),
    )


def _protocol(plain: Plain) -> ProtocolFacts:
    named = ("split", "enrolled_speakers", "trial_speakers", "training", "same_session")
    known = {
        **{key: plain[key] for key in named},
        "enrollment_utterances": plain["enrolment"],
        "trial_utterances": plain["trials"],
        "anonymized_enrollment": plain["anonymized_enrolment"],
    }
    taken = {*named, "enrolment", "trials", "anonymized_enrolment"}
    return ProtocolFacts(**known, details={key: value for key, value in plain.items() if key not in taken})


def _labeled(name: str) -> str:
    try:
        return measure(name).label
    except KeyError:
        return ""


def _estimates(form: Plain) -> Estimates:
    return Estimates.from_json(form, labels=_labeled)


def _by(plain: Plain) -> dict[str, dict[str, Estimates]]:
    return {
        attribute: {value: _estimates(entry["estimates"]) for value, entry in values.items()}
        for attribute, values in plain.get("by", {}).items()
    }


def _attacker(name: str, entry: Plain, rows: Sequence[Plain]) -> AttackerResult:
    people = tuple(
        LinkedPerson(**{key: row[key] for key in ("speaker", "length", "among", "conversations", "linked")})
        for row in rows
    )
    given = "scores as given" in entry["backend"]
    return AttackerResult(
        name=name,
        **{key: entry[key] for key in ("about", "has", "aliases", "backend", "trained_on", "ties", "profile", "det")},
        estimates=_estimates(entry["estimates"]),
        by=_by(entry),
        people=people,
        source="scores" if given else "vectors",
    )


def _parts(plain: Plain) -> dict[str, Part]:
    parts: dict[str, Part] = {}
    for name in ("similarity", "zebra", "inversion", "sessions", "runs"):
        if name in plain:
            entry = plain[name]
            parts[name] = Part(
                name=name,
                estimates=_estimates(entry["estimates"]),
                reference=_reference(entry),
                by=_by(entry),
                details={
                    key: value
                    for key, value in entry.items()
                    if key not in ("estimates", "by", "oracle", "baselines", "across")
                },
            )
    if "inference" in plain:
        guesses = {name: entry for name, entry in plain["inference"].items() if "estimate" in entry}
        parts["inference"] = Part(
            name="inference",
            estimates=_guessed(guesses, "estimate"),
            reference=_guessed(guesses, "original"),
            details={
                name: {key: value for key, value in entry.items() if key not in ("estimate", "original")}
                for name, entry in plain["inference"].items()
            },
        )
    return parts


def _guessed(entries: Plain, which: str) -> Estimates:
    """One point per attribute."""
    return Estimates(
        Estimate.from_json("inference", entry[which], label=_labeled("inference")).with_(at={"attribute": attribute})
        for attribute, entry in entries.items()
        if entry.get(which)
    )


def _reference(entry: Plain) -> Estimates:
    """Of the inversion: what an oracle reaches, and comparisons without any map; of two runs: links across them."""
    oracle = _estimates(entry.get("oracle", {}).get("estimates", {}))
    baselines = [Estimate.from_json("eer", form, label=_labeled("eer")) for form in entry.get("baselines", ())]
    across = _estimates(entry.get("across", {}).get("estimates", {}))
    return oracle + baselines + across


def _criterion(name: str, case: Plain) -> Criterion:
    original = case.get("original")
    estimate = case["estimate"]
    measured = estimate["name"]
    return Criterion(
        name=name,
        level=case["level"],
        sentence=case["sentence"],
        estimate=Estimate.from_json(measured, estimate, label=_labeled(measured)),
        risk=name not in _NOT_RISKS,
        attacker=case["attacker"],
        original=None if original is None else Estimate.from_json(measured, original, label=_labeled(measured)),
    )


def _check(check: Plain) -> Check:
    figure = check["figure"]
    return Check(
        name=check["name"],
        sentence=check["sentence"],
        passed=check["passed"],
        misleads=_DIRECTIONS.get(check["name"], "either"),  # type: ignore[arg-type]
        figure=Estimate.from_json("eer", figure, label=_labeled("eer")) if isinstance(figure, dict) else figure,
        limit=check["limit"],
    )


def _people(plain: Plain) -> People:
    exposed = set(plain["unprotected"]["speakers"])

    def risk(form: Plain) -> Estimate:
        return Estimate.from_json("linkability", form, label="linked")

    return People(
        persons=tuple(
            Person(
                speaker=row["speaker"],
                attacker=row["attacker"],
                risk=risk(row["risk"]),
                by_attacker={name: risk(form) for name, form in row["by_attacker"].items()},
                gender=row["gender"],
                animal=row.get("animal", ""),
                deid=row.get("deid"),
                unprotected=row["speaker"] in exposed,
            )
            for row in plain["speakers"]
        ),
        sentence=plain["unprotected"]["sentence"],
        stability=plain["unprotected"]["stability"],
    )
