"""An assessment: attackers x measures, the worst case first, and what it could not trust."""

from veilmeter.assessment.challenge import ChallengeAssessment, assess_challenge
from veilmeter.assessment.run import Assessment, assess
from veilmeter.assessment.settings import MEASURES, AttackerSettings, Settings, make_settings
from veilmeter.assessment.settings_file import read_toml
from veilmeter.results.run_folder import SCHEMA, read_results

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
    "read_toml",
]
