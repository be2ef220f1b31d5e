"""Results that may leave the house: no speaker ids, no file names, no attribute values. Every export is made of these.

What was measured stays as it is. Whoever needs the rest has the run folder.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from veilmeter.anonymizers.base import ANONYMIZERS
from veilmeter.assessment.settings import Settings
from veilmeter.core.estimate import Estimate
from veilmeter.core.estimates import Estimates
from veilmeter.core.findings import Finding, Reference, map_references
from veilmeter.core.options import options_of
from veilmeter.metrics.registry import MEASURES
from veilmeter.report.pseudonyms import pseudonyms
from veilmeter.report.public_names import Names
from veilmeter.report.source import Reported
from veilmeter.results.model import AttackerResult, Channels, Criterion, Input, Part, Person, Results
from veilmeter.results.run_folder import Matrices
from veilmeter.wording import sentence

TITLE = "Assessment of anonymized speech"

# Values of attributes that many people share by nature; any other may be the only one of its kind.
_COMMON_VALUES = {"", "f", "m", "female", "male", "all", "yes", "no"}
# What figures and tables need of a part's details.
_PLAIN_DETAILS = {
    "similarity": ("form", "pairs", "zoo"),
    "inversion": ("learning_curve", "label_noise"),
    "sessions": ("sessions", "left_out"),
    "utility": ("people",),
}
_WORDS_SPOKEN = {"utility": ("substitutions",)}  # which may name people
_NAMES_SOMETHING = re.compile(
    r"""["'“‘`/\\]|\w[_@]\w|[A-Za-z]\d|\d[A-Za-z]|\w\.[A-Za-z]\w|\d-\d+-\d|\d{5}"""
    r"|\b(?:[Uu]tterance|[Rr]ecording|[Ss]peaker|[Ff]ile)s? \d"
)
_WORD = re.compile(r"[a-z][a-z0-9-]*")


def public(run: Reported, key: bytes, *, show_ids: bool = False) -> tuple[Reported, dict[str, str]]:
    """The run as it may be shown, and which pseudonym stands for whom. With `show_ids` speakers and values keep their
    names; files never do."""
    results = run.results
    speakers = _speakers(results, run.matrices)
    given = {speaker: speaker for speaker in speakers} if show_ids else pseudonyms(speakers, key)
    names = Names({}, {}, with_ids=True) if show_ids else Names(given, _rare_values(results))
    matrices = run.matrices and Matrices(tuple(given[s] for s in run.matrices.speakers), run.matrices.quadrants)
    return replace(run, results=public_results(results, names), matrices=matrices, folder=None), given


def public_results(results: Results, names: Names) -> Results:
    warnings = _harmless(results.warnings, names)
    dropped = len(results.warnings) - len(warnings)
    if dropped:
        warnings += (Finding("warnings_left_out", {"count": dropped}),)
    verdict = results.verdict
    return replace(
        results,
        title=str(results.settings.get("title") or TITLE),
        settings=_settings(results.settings),
        inputs={role: _input(entry) for role, entry in results.inputs.items()},
        protocol=replace(
            results.protocol,
            split=names.text(results.protocol.split),
            training=names.text(results.protocol.training),
            anonymized_enrollment=names.text(results.protocol.anonymized_enrollment),
            details=_figures(results.protocol.details),
        ),
        attackers={name: _attacker(entry, names) for name, entry in results.attackers.items()},
        command=_command(results.command),
        extractor=_extractor(results.extractor),
        parts={name: _part(part, names) for name, part in results.parts.items()},
        criteria={name: _criterion(criterion, names) for name, criterion in results.criteria.items()},
        checks=tuple(replace(check, finding=public_finding(check.finding, names)) for check in results.checks),
        channels=results.channels and _channels(results.channels, names),
        people=replace(
            results.people,
            persons=tuple(_person(person, names) for person in results.people.persons),
            finding=public_finding(results.people.finding, names),
        ),
        verdict=replace(
            verdict,
            headline=tuple(public_finding(found, names) for found in verdict.headline),
            remarks=tuple(public_finding(found, names) for found in verdict.remarks),
            not_tested=_harmless(verdict.not_tested, names),
        ),
        remarks=_harmless(results.remarks, names),
        warnings=warnings,
    )


def public_finding(finding: Finding, names: Names) -> Finding:
    """The finding with pseudonyms for people and numbers for rare values; files, recordings and untrusted text are left
    out."""

    def public_reference(found: Reference) -> Reference:
        if found.kind == "speaker":
            return replace(found, id=found.id if names.with_ids else names.speakers.get(found.id, ""))
        if found.kind == "value":
            name = names.value(found.attribute, found.id)
            return found if name == found.id else Reference("value", name)
        if found.kind == "attribute" or (found.kind == "recording" and names.with_ids):
            return found
        return replace(found, id="")

    return map_references(finding, public_reference, lambda point: _estimate(point, names))


def _harmless(findings: Iterable[Finding], names: Names) -> tuple[Finding, ...]:
    """Those that name neither a file nor a recording nor a person."""

    def harmless(text: str) -> bool:
        return not _NAMES_SOMETHING.search(text) and not names.mentions(text)

    return tuple(finding for finding in findings if harmless(sentence(finding)))


def _speakers(results: Results, matrices: Matrices | None) -> list[str]:
    names = [person.speaker for person in results.people.persons]
    names += [person.speaker for attacker in results.attackers.values() for person in attacker.people]
    names += [person.speaker for person in results.channels.people] if results.channels else []
    similarity = results.parts.get("similarity")
    names += [point["speaker"] for point in (similarity.details.get("zoo") or [])] if similarity else []
    return [*names, *(matrices.speakers if matrices else ())]


def _rare_values(results: Results) -> dict[str, dict[str, str]]:
    """Values of attributes that are not common ones, by a number of their attribute."""
    holders: list[AttackerResult | Part] = [*results.attackers.values(), *results.parts.values()]
    by: dict[str, set[str]] = {"gender": {person.gender for person in results.people.persons}}
    for holder in holders:
        for attribute, groups in holder.by.items():
            by.setdefault(attribute, set()).update(groups)
    points = [point for _, estimates in results.places() for point in estimates]
    points += [point for part in results.parts.values() for point in part.reference]
    for attribute in {*by, *(name for entry in results.inputs.values() for name in entry.attributes)}:
        by.setdefault(attribute, set()).update(str(point.at[attribute]) for point in points if attribute in point.at)
    for criterion in results.criteria.values():
        for attribute, value in criterion.group.items():
            by.setdefault(attribute, set()).add(value)
    known = {*results.attackers, *results.parts}  # a part may be divided by attackers, whose names are no secret
    return {
        attribute: {
            value: f"{attribute} {number}" for number, value in enumerate(sorted(values - _COMMON_VALUES - known), 1)
        }
        for attribute, values in by.items()
    }


def _settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    declared = options_of(Settings)
    public: dict[str, Any] = {}
    for name, value in settings.items():
        is_publishable = name in declared and declared[name].publishable
        if is_publishable or value is None or isinstance(value, bool | int | float):
            public[name] = value
        elif name == "attackers" and isinstance(value, Mapping):
            public[name] = sorted(value)
        elif isinstance(value, str) and value in MEASURES:
            public[name] = value
        elif value:
            public[name] = f"{len(value)} given" if isinstance(value, list | tuple) else "given"
    return public


def _input(entry: Input) -> Input:
    return replace(entry, path="", variant=None, details={**_figures(entry.details), **_anonymizer(entry.details)})


def _anonymizer(details: Mapping[str, Any]) -> dict[str, Any]:
    """A system that veilmeter knows, with its version and the parameters that are figures; others may be paths or
    command lines, and are named by --system-name."""
    name = details.get("anonymizer")
    if name not in ANONYMIZERS or name == "command":
        return {}
    parameters = details.get("anonymizer_parameters")
    given = _figures(parameters) if isinstance(parameters, Mapping) else {}
    return {
        "anonymizer": name,
        "anonymizer_version": str(details.get("anonymizer_version", "")),
        "anonymizer_parameters": given,
    }


def _figures(details: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if isinstance(value, bool | int | float)}


def _attacker(entry: AttackerResult, names: Names) -> AttackerResult:
    return replace(
        entry,
        backend=names.text(entry.backend),
        trained_on=names.text(entry.trained_on),
        estimates=_estimates(entry.estimates, names),
        by=_groups(entry.by, names),
        people=tuple(replace(p, speaker=names.speakers.get(p.speaker, p.speaker)) for p in entry.people),
        details=_figures(entry.details),
    )


def _part(part: Part, names: Names) -> Part:
    shown = _PLAIN_DETAILS.get(part.name, ()) + (_WORDS_SPOKEN.get(part.name, ()) if names.with_ids else ())
    kept = {name: part.details[name] for name in shown if name in part.details}
    return replace(
        part,
        estimates=_estimates(part.estimates, names),
        reference=_estimates(part.reference, names),
        by=_groups(part.by, names),
        details=names.cell(kept) | _figures(part.details),
    )


def _groups(by: Mapping[str, Mapping[str, Estimates]], names: Names) -> dict[str, dict[str, Estimates]]:
    return {
        attribute: {names.value(attribute, value): _estimates(estimates, names) for value, estimates in groups.items()}
        for attribute, groups in by.items()
    }


def _estimates(points: Iterable[Estimate], names: Names) -> Estimates:
    return Estimates(_estimate(point, names) for point in points)


def _estimate(point: Estimate, names: Names) -> Estimate:
    renamed = {key: names.value(key, value) if isinstance(value, str) else value for key, value in point.at.items()}
    return point.with_(at=renamed, extra={key: names.cell(value) for key, value in point.extra.items()})


def _criterion(criterion: Criterion, names: Names) -> Criterion:
    return replace(
        criterion,
        finding=public_finding(criterion.finding, names),
        estimate=_estimate(criterion.estimate, names),
        original=criterion.original and _estimate(criterion.original, names),
        group={attribute: names.value(attribute, value) for attribute, value in criterion.group.items()},
        details=_figures(criterion.details),
    )


def _person(person: Person, names: Names) -> Person:
    return replace(
        person,
        speaker=names.speakers.get(person.speaker, person.speaker),
        gender=names.value("gender", person.gender),
        details=_figures(person.details),
    )


def _channels(heard: Channels, names: Names) -> Channels:
    return replace(
        heard,
        finding=heard.finding and public_finding(heard.finding, names),
        people=tuple(replace(p, speaker=names.speakers.get(p.speaker, p.speaker)) for p in heard.people),
    )


def _extractor(extractor: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if extractor is None:
        return None
    known = {name: str(extractor[name]) for name in ("name", "version") if extractor.get(name)}
    if not _WORD.fullmatch(known.get("name", "")):
        known["name"] = "an extractor of one's own"
    return known


def _command(command: tuple[str, ...]) -> tuple[str, ...]:
    """The command with placeholders for everything that is not an option or a number.

    >>> _command(("veilmeter", "assess", "/home/me/a.toml", "--original", "/data/x", "--seed=3", "--lengths", "1,3"))
    ('veilmeter', 'assess', 'PATH', '--original', 'ORIGINAL', '--seed=3', '--lengths', '1,3')
    """
    words = list(command[:2])
    for word in command[2:]:
        option, equals, value = word.partition("=")
        if word.startswith("-"):
            words.append(word if not equals or _is_figure(value) else f"{option}={_placeholder(option)}")
        elif _is_figure(word):
            words.append(word)
        else:
            before = words[-1] if words[-1].startswith("--") else ""
            words.append(_placeholder(before) if before else "PATH")
    return tuple(words)


def _is_figure(word: str) -> bool:
    return bool(re.fullmatch(r"[\d.,]+", word))


def _placeholder(option: str) -> str:
    return option.lstrip("-").replace("-", "_").upper()
