"""What it means for the figures that a trust check failed: said in the same words by terminal, page and exports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# By the check's name, so that runs of an earlier version say it too.
_HIGHER = "The real risk may be higher than these figures."
_LOWER = "The real risk may be lower than these figures."
_EITHER = "The real risk may be lower or higher than these figures."
_MEANINGS = {
    "strong on original speech": _HIGHER,
    "adaptation helps": _HIGHER,
    "anonymized differs from original": "Whoever speaks in these recordings is not protected at all.",
    "enough speakers": _EITHER,
    "training speakers are others": _LOWER,
    "enrolment and trials of different sessions": _LOWER,
    "scores without ties": _EITHER,
    "scores are not inverted": _HIGHER,
}


def meaning(check: Mapping[str, Any]) -> str:
    """What it means for the figures that this check of results.json failed.

    >>> meaning({"name": "enough speakers"})
    'The real risk may be lower or higher than these figures.'
    """
    errs = str(check.get("errs") or "the figures may be wrong")
    return _MEANINGS.get(str(check.get("name")), errs[0].upper() + errs[1:].rstrip(".") + ".")


def doubts(results: Mapping[str, Any]) -> list[str]:
    """The failed checks of a run: what each found, and what that means for the figures."""
    return [
        f"{check.get('sentence') or check['name']} {meaning(check)}"
        for check in results.get("trust", [])
        if check.get("passed") is False
    ]
