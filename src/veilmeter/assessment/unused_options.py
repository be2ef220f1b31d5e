"""Which options had an effect in a run. Those that had none are reported, and not recorded as if they had been used.

When an option acts is part of its declaration (`acts_when`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from veilmeter.anonymizers.base import load_with_unused, parse_options
from veilmeter.assessment.settings import AttackerSettings, Facts, Settings
from veilmeter.core.findings import Finding
from veilmeter.core.option_groups import ALL, EVERY_SIZE
from veilmeter.core.options import option_without_effect, options_of, unused_options


@dataclass(frozen=True)
class OptionUse:
    """The settings that were used, as results.json has them, a remark on each that was given in vain, and the names of
    those in which runs may differ and still be compared."""

    used: Mapping[str, Any]
    remarks: tuple[Finding, ...]
    incidental: tuple[str, ...]


def option_use(settings: Settings, facts: Facts) -> OptionUse:
    used: dict[str, Any] = {}
    remarks = [
        option_without_effect(*options_of(Settings)[name].spell(getattr(settings, name)), reason=reason)
        for name, reason in unused_options(settings, facts).items()
    ]
    for name, declared in options_of(Settings).items():
        used[name] = None if declared.idle_reason(settings, facts) else _plain(getattr(settings, name))
    used["attackers"] = {name: _plain(table) for name, table in settings.attackers.items() if name in facts.attackers}
    if settings.speakers == EVERY_SIZE and used["speakers"] is not None:
        used["speakers"] = ALL
    beyond = [n for n in settings.speakers if n > facts.enrolled]
    if beyond and used["speakers"] is not None:
        used["speakers"] = [n for n in settings.speakers if n not in beyond]
        reason = f"only {facts.enrolled} people are enrolled"
        remarks.append(option_without_effect("--speakers", ", ".join(map(str, beyond)), reason=reason))
    remarks += _unused_system_options(settings)
    return OptionUse(used, tuple(remarks), _incidental_options())


def _incidental_options() -> tuple[str, ...]:
    """The names of comparable options; those of an attacker's table as attackers.NAME."""
    own = [name for name, declared in options_of(Settings).items() if declared.comparable]
    of_tables = [f"attackers.{name}" for name, declared in options_of(AttackerSettings).items() if declared.comparable]
    return (*own, *of_tables)


def _unused_system_options(settings: Settings) -> list[Finding]:
    """Options passed to the anonymizer by --option that can't act in it."""
    options = parse_options(settings.option)
    if not options:
        return []
    command = {} if settings.command is None else {"command": settings.command}
    idle = load_with_unused(settings.system or "command", {**options, **command})[1]
    if settings.anonymized:
        idle["per"] = "the release is given, and attackers draw again for each utterance"
    return [option_without_effect("--option", name, reason=idle[name]) for name in options if name in idle]


def _plain(value: Any) -> Any:
    if isinstance(value, AttackerSettings):
        return {name: _plain(getattr(value, name)) for name in options_of(AttackerSettings)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value
