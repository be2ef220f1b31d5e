"""An assessment: attackers x measures, the worst case first, and what it could not trust.

Its names are imported when they are first used, so that its settings can be read without its machinery.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veilmeter.assessment.attacker_settings import AttackerSettings
from veilmeter.assessment.settings import MEASURES, Settings, make_settings, read_settings

if TYPE_CHECKING:
    from veilmeter.assessment.challenge.assess import ChallengeAssessment, assess_challenge
    from veilmeter.assessment.signature import assess
    from veilmeter.results.run_folder import SCHEMA, Assessment, read_results

__all__ = [
    "MEASURES",
    "SCHEMA",
    "Assessment",
    "AttackerSettings",
    "ChallengeAssessment",
    "Settings",
    "assess",
    "assess_challenge",
    "make_settings",
    "read_results",
    "read_settings",
]

_HOMES = {
    "Assessment": "results.run_folder",
    "ChallengeAssessment": "assessment.challenge.assess",
    "SCHEMA": "results.run_folder",
    "assess": "assessment.signature",
    "assess_challenge": "assessment.challenge.assess",
    "read_results": "results.run_folder",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"veilmeter.{_HOMES[name]}"), name)
