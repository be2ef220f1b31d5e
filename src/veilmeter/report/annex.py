"""What an anonymization report or a data protection impact assessment asks for, filled in from the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veilmeter.report.texts import ATTACKS, CRITERIA, LAWYER, NEVER_TESTED
from veilmeter.results.doubts import doubts

_NO_LIMIT = (
    "No limit was chosen for this assessment. A regulator's guidance may name one: the European Medicines Agency's guidance "
    "on Policy 0070 (EMA/90915/2016) and Health Canada's on the public release of clinical information work with a "
    "probability of 0.09 for the public release of clinical reports. Whether that figure suits recordings of voices has "
    "to be argued."
)


def annex(results: Mapping[str, Any], limit: Mapping[str, Any] | None) -> list[tuple[str, list[str]]]:
    """Headings with their paragraphs; `limit` is the user's threshold with its sentence."""
    verdict, protocol = results.get("verdict", {}), results.get("protocol", {})
    adversaries = [
        f"{name}: {entry.get('about', '')}"
        for name, entry in results.get("attackers", {}).items()
        if name != "original"
    ]
    cases = results.get("worst_case", {})
    attacks = [f"{CRITERIA[key]}: {said}" for key, said in ATTACKS.items() if key in cases]
    headline = str(verdict.get("headline", ""))
    measured = [
        f"{CRITERIA[key]}: {case.get('sentence', '')}"
        for key, case in cases.items()
        if key in CRITERIA and case.get("sentence", "") not in headline
    ]
    unprotected = str((results.get("unprotected") or {}).get("sentence") or "")
    untested = "; ".join(text.rstrip(".") for text in verdict.get("not_tested", []))
    return [
        ("Adversaries considered", adversaries or ["None."]),
        ("Plausible attacks considered", attacks or ["None."]),
        ("Limit for the risk", [limit["sentence"] if limit else _NO_LIMIT]),
        ("Measured risk", [text for text in (headline, unprotected, *measured) if text]),
        (
            "Methodology",
            [
                f"{protocol.get('speakers', 'An unknown number of')} speakers; enrollment and trials: "
                f"{protocol.get('split', 'not stated')}; training of adapted attackers: {protocol.get('training', 'none')}. "
                "Intervals are clustered by speaker. Definitions and sources stand in the section on method; results.json "
                "holds every number and what is needed to repeat the run."
            ],
        ),
        (
            "Residual risk",
            [
                "The figures hold for the attackers that were run." + (f" Not tested: {untested}." if untested else ""),
                *(f"A check that the assessment makes of itself failed. {doubt}" for doubt in doubts(results)),
                *NEVER_TESTED,
            ],
        ),
        ("Open questions for a lawyer", list(verdict.get("lawyer") or LAWYER)),
    ]
