"""What an anonymisation report or a data protection impact assessment asks for, filled in from the run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veilmeter.report.texts import CRITERIA, LAWYER

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
    attacks = [
        f"{CRITERIA[key]}: {case.get('sentence', '')}"
        for key, case in results.get("worst_case", {}).items()
        if key in CRITERIA
    ]
    failed = [check for check in results.get("trust", []) if check.get("passed") is False]
    untested = "; ".join(text.rstrip(".") for text in verdict.get("not_tested", []))
    return [
        ("Adversaries considered", adversaries or ["None."]),
        ("Plausible attacks considered", attacks or ["None."]),
        ("Limit for the risk", [limit["sentence"] if limit else _NO_LIMIT]),
        ("Measured risk", [str(verdict.get("headline", "")), *verdict.get("sentences", [])]),
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
                *(f"The assessment's own check failed: {check.get('sentence', check['name'])}" for check in failed),
            ],
        ),
        ("Open questions for a lawyer", list(verdict.get("lawyer") or LAWYER)),
    ]
