"""Which settings had an effect in a run: one that had none is said, and is not recorded as if it had been used.

There is one rule for every option. It gives the reason why the option had no effect here, or nothing.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from veilmeter.anonymizers.base import load_with_unused
from veilmeter.anonymizers.options import parse_options
from veilmeter.assessment.attackers import Used
from veilmeter.assessment.curve_sizes import ALL, EVERY_SIZE
from veilmeter.assessment.settings import AttackerSettings, Settings
from veilmeter.speech.reading_options import ALL_AT_HOME, NO_CHANNELS

NO_AUDIO = "vectors were given, no recordings"
NOT_TUNED = "no attacker was fine-tuned"
NO_SPEECH = "only scores were given, no speech"
# What acts where scores are assessed by themselves.
OF_SCORES = frozenset(
    {"trials", "attackers", "measures", "title", "system_name", "assessor", "notice", "threshold", "seed", "intervals",
     "resamples", "weak_attacker", "precision"}
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Facts:
    """What a run was: the roles that were heard as audio, who attacked and with what, how many were enrolled, whether a
    channel had to be chosen, and whether recordings lie outside their corpus."""

    heard: frozenset[str]
    attackers: frozenset[str]
    used: Used
    enrolled: int
    tuned: frozenset[str] = frozenset()
    has_channels: bool = False
    leaves_home: bool = False
    parts: frozenset[str] = frozenset()
    scores_only: bool = False

    @property
    def is_audio(self) -> bool:
        return bool(self.heard)


Rule = Callable[[Settings, Facts], str]


def _always(settings: Settings, facts: Facts) -> str:
    return ""


def _unless(works: Callable[[Settings, Facts], bool], reason: str) -> Rule:
    return lambda settings, facts: "" if works(settings, facts) else reason


def _training(role: str) -> Rule:
    def rule(settings: Settings, facts: Facts) -> str:
        if role in facts.used.training:
            return ""
        if role == "train_original":
            return "no back end that was used learns from it, and no attacker was given the same speech anonymized"
        return "no attacker that was run is trained on it"

    return rule


def _speakers(settings: Settings, facts: Facts) -> str:
    beyond = [n for n in settings.speakers if n > facts.enrolled]
    if settings.speakers and len(beyond) == len(settings.speakers):
        return f"only {facts.enrolled} people are enrolled"
    return ""


_heard = _unless(lambda settings, facts: facts.is_audio, NO_AUDIO)
_channels = _unless(lambda settings, facts: facts.has_channels, NO_CHANNELS)
_roots = _unless(lambda settings, facts: facts.leaves_home, ALL_AT_HOME)
_tuned = _unless(lambda settings, facts: bool(facts.tuned), NOT_TUNED)

TRANSCRIBED = {"words", "word-style"}  # extractors that hear what a recognizer hears

RULES: Mapping[str, Rule] = {
    **dict.fromkeys(
        ("original", "anonymized", "vpc", "sets", "system", "option", "command", "attacker_runs", "enroll", "trials",
         "attackers", "measures", "lengths", "by", "backend", "title", "system_name", "assessor", "notice",
         "threshold", "seed", "intervals", "weak_attacker", "precision", "strict", "release_size", "candidates"),
        _always,
    ),
    "attacker_run": _unless(
        lambda settings, facts: bool(facts.used.copies), "no attacker that was run anonymizes anything itself"
    ),
    **{role: _training(role) for role in ("train_original", "train_anonymized", "train_similar")},
    "speakers": _speakers,
    "population": _unless(lambda settings, facts: settings.wants("population"), "--measures leaves population out"),
    "attributes": _unless(lambda settings, facts: settings.wants("inference"), "--measures leaves inference out"),
    **dict.fromkeys(("extractor", "layout", "part", "suffix", "columns", "offline"), _heard),
    "root": lambda settings, facts: _heard(settings, facts) or _roots(settings, facts),
    "channel": lambda settings, facts: _heard(settings, facts) or _channels(settings, facts),
    "recognizer": _unless(
        lambda settings, facts: "utility" in facts.parts or bool(TRANSCRIBED & set(settings.extractor)),
        "utility was not measured, and no extractor needs words",
    ),
    **dict.fromkeys(
        ("utility_recordings", "utility_rated"),
        _unless(lambda settings, facts: "utility" in facts.parts, "utility was not measured"),
    ),
    "utility": _unless(
        lambda settings, facts: facts.is_audio and "utility" in settings.measures,
        "utility would not have been measured without it either",
    ),
    "segments": _unless(
        lambda settings, facts: any(role.startswith("train_") for role in facts.heard),
        "there are no recordings of training speech",
    ),
    "adaptation": _unless(
        lambda settings, facts: settings.adaptation == "backend" or bool(facts.tuned),
        "no attacker that adapts its extractor was run with training speech",
    ),
    "adapted_backend": _unless(
        lambda settings, facts: bool(facts.used.adapted_backends), "no attacker that was run adapts a back end"
    ),
    "network": _tuned,
    "epochs": _tuned,
    "folds": _unless(
        lambda settings, facts: facts.used.folds is not None, "no attacker was trained by cross-validation"
    ),
    "resamples": _unless(lambda settings, facts: settings.intervals, "intervals were not asked for"),
}  # fmt: skip


@dataclass(frozen=True)
class Effects:
    """The settings that were used, as results.json has them, and a sentence for each that was given in vain."""

    used: Mapping[str, Any]
    remarks: tuple[str, ...] = field(default=())


def effects(settings: Settings, facts: Facts) -> Effects:
    used: dict[str, Any] = {}
    remarks: list[str] = []
    for option in dataclasses.fields(Settings):
        value = getattr(settings, option.name)
        without_speech = facts.scores_only and option.name not in OF_SCORES
        reason = NO_SPEECH if without_speech else RULES[option.name](settings, facts)
        used[option.name] = None if reason else _plain(value)
        if reason and value != _default(option):
            remarks.append(f"--{_spelled(option.name, value)} had no effect: {reason}")
    used["attackers"] = {name: _plain(table) for name, table in settings.attackers.items() if name in facts.attackers}
    if settings.speakers == EVERY_SIZE and used["speakers"] is not None:
        used["speakers"] = ALL
    beyond = [n for n in settings.speakers if n > facts.enrolled]
    if beyond and used["speakers"] is not None:
        used["speakers"] = [n for n in settings.speakers if n not in beyond]
        listed = ", ".join(map(str, beyond))
        remarks.append(f"--speakers {listed} had no effect: only {facts.enrolled} people are enrolled")
    remarks += _idle_options(settings)
    return Effects(used, tuple(remarks))


def _idle_options(settings: Settings) -> list[str]:
    """What the anonymizer was given by --option and can't act in it."""
    options = parse_options(settings.option)
    if not options:
        return []
    command = {} if settings.command is None else {"command": settings.command}
    idle = load_with_unused(settings.system or "command", {**options, **command})[1]
    if settings.anonymized:
        idle["per"] = "the release is given, and attackers draw anew for each utterance"
    return [f"--option {name} had no effect: {idle[name]}" for name in options if name in idle]


def _default(option: dataclasses.Field[Any]) -> Any:
    if option.default_factory is not dataclasses.MISSING:
        return option.default_factory()
    return option.default


def _spelled(name: str, value: Any) -> str:
    words = name.replace("_", "-")
    if value is False:
        return f"no-{words}"
    if value is True:
        return words
    listed = value if isinstance(value, tuple) else (value,)
    return f"{words} {' '.join(map(str, listed))}".strip()


def _plain(value: Any) -> Any:
    if isinstance(value, AttackerSettings):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value
