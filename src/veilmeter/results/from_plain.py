"""The plain values that the assessment assembles, as `Results`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from veilmeter.core.estimate import Estimate
from veilmeter.core.estimates import Estimates
from veilmeter.metrics.registry import label_of
from veilmeter.results.model import (
    AttackerResult,
    Input,
    LinkedPerson,
    Matching,
    Part,
    ProtocolFacts,
    Results,
)

Plain = Mapping[str, Any]


def results_of(plain: Plain, rows: Mapping[str, Sequence[Plain]]) -> Results:
    """`plain` as `assemble` builds it; `rows` are each attacker's speakers."""
    inputs = {role: facts for role, facts in plain["inputs"].items() if role not in ("matched", "unmatched")}
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
        warnings=tuple(plain["warnings"]),
    )


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


def _estimates(form: Plain) -> Estimates:
    return Estimates.from_json(form, labels=label_of)


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
        sources=dict.fromkeys(("eer", "d_ece", "l_w", "min_cllr", "cllr"), "scores") if given else {},
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
        Estimate.from_json("inference", entry[which], label=label_of("inference")).with_(at={"attribute": attribute})
        for attribute, entry in entries.items()
        if entry.get(which)
    )


def _reference(entry: Plain) -> Estimates:
    """Of the inversion: what an oracle reaches, and comparisons without any map; of two runs: links across them."""
    oracle = _estimates(entry.get("oracle", {}).get("estimates", {}))
    baselines = [Estimate.from_json("eer", form, label=label_of("eer")) for form in entry.get("baselines", ())]
    across = _estimates(entry.get("across", {}).get("estimates", {}))
    return oracle + baselines + across
