"""The subject of a report: a run as it was read, and as it is safe to publish, with no ids of people, recordings or
files and no rare values of attributes. Every export is made of the latter.

Fields are replaced by their type and text is never searched, so that nothing depends on what ids look like. What was
measured stays as it is. Everything else remains in the run folder. Pseudonyms do not tell who or what they stand for,
and are the same in every report of one run.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

from veilmeter.assessment.settings import Settings
from veilmeter.assessment.statements import read_statements
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.files import read_input, read_input_json, write_bytes
from veilmeter.core.findings import Finding, Reference, map_references, references
from veilmeter.core.options import options_of
from veilmeter.metrics.measure import MEASURES
from veilmeter.results.compare import ComparedFigure
from veilmeter.results.gate import BaselineCheck
from veilmeter.results.model import AttackerResult, Input, Part, Person, Results
from veilmeter.results.run_folder import (
    MATRICES,
    RESULTS,
    TIMINGS,
    Costs,
    Matrices,
    RunLike,
    read_costs,
    read_matrices,
    read_results,
    table_of,
)
from veilmeter.speech.extractors.base import EXTRACTORS
from veilmeter.wording import annex_texts

Subject: TypeAlias = RunLike
DAY = 10  # characters of a time that name the day


@dataclass(frozen=True, eq=False, kw_only=True)
class Reported:
    """`folder` is where the run lies, if anywhere; `created` the day on which it was made, if that is known;
    `digest` the SHA-256 of its results.json, `costs` what it took."""

    results: Results
    matrices: Matrices | None = None
    folder: Path | None = None
    created: str = ""
    digest: str = ""
    costs: Costs = field(default_factory=Costs)


def reported(subject: Subject, results: Results | None = None) -> Reported:
    """A run folder is read, but for `results` that were read from it before. An assessment in memory is taken as it is;
    of its folder, results.json is only hashed."""
    if isinstance(subject, Results):
        return Reported(results=subject)
    if not isinstance(subject, str | Path):
        created = subject.created[:DAY]
        return Reported(
            results=subject.results,
            matrices=subject.matrices,
            folder=subject.folder,
            created=created,
            digest=_digest(subject.folder),
            costs=Costs() if subject.folder is None else read_costs(subject.folder),
        )
    folder = Path(subject)
    if folder.is_file():
        folder = folder.parent
    results = results or read_results(folder)
    path = table_of(folder, results, MATRICES)
    matrices = None if path is None else read_matrices(path)
    return Reported(
        results=results,
        matrices=matrices,
        folder=folder,
        created=_day(folder),
        digest=_digest(folder),
        costs=read_costs(folder),
    )


def with_statements(run: Reported, config: str | Path | None) -> Reported:
    """The run with what the controller states in a settings file, in place of what it was assessed with."""
    if config is None:
        return run
    settings = {**run.results.settings, **read_statements(config)}
    return replace(run, results=replace(run.results, settings=settings))


def _digest(folder: Path | None) -> str:
    """Of results.json; empty where there is none."""
    path = None if folder is None else folder / RESULTS
    return "" if path is None or not path.is_file() else hashlib.sha256(path.read_bytes()).hexdigest()


def _day(folder: Path) -> str:
    with suppress(InputError, AttributeError):  # the page does without the day
        return str(read_input_json(folder / TIMINGS).get("created", ""))[:DAY]
    return ""


# --- what may be shown

OWN_EXTRACTOR = "an extractor of one's own"

# Values of attributes that many people share by nature; any other may be the only one of its kind.
_COMMON_VALUES = {"", "f", "m", "female", "male", "all", "yes", "no"}


def public(run: Reported, key: bytes, *, show_ids: bool = False) -> tuple[Reported, dict[str, str]]:
    """The run as it may be shown, and the pseudonym of every speaker. With `show_ids` speakers and values keep their
    names; files and recordings never do."""
    names = names_of(run, key, show_ids=show_ids)
    given = dict(names.speakers)
    matrices = run.matrices and Matrices(tuple(given[s] for s in run.matrices.speakers), run.matrices.quadrants)
    return replace(run, results=public_results(run.results, names), matrices=matrices, folder=None), given


def names_of(run: Reported, key: bytes, *, show_ids: bool = False) -> Names:
    """Replacements for the run's speakers and rare values."""
    speakers = _speakers(run.results, run.matrices)
    given = {speaker: speaker for speaker in speakers} if show_ids else pseudonyms(speakers, key)
    return Names(given, {} if show_ids else _rare_values(run.results), with_ids=show_ids)


def public_baseline(baseline: BaselineCheck, names: Names) -> BaselineCheck:
    """The comparison with an earlier run; settings that differ in untrusted text are left out."""

    def reference(found: Reference) -> Reference:
        return found if found.kind == "run" else names.reference(found)

    def figure(compared: ComparedFigure) -> ComparedFigure:
        return replace(compared, group=tuple(map(reference, compared.group)))

    return replace(
        baseline,
        worse=tuple(replace(worse, figure=figure(worse.figure)) for worse in baseline.worse),
        untested=tuple(map_references(found, reference) for found in baseline.untested),
        remarks=tuple(map_references(found, reference) for found in baseline.remarks if not _has_text(found)),
    )


def public_results(results: Results, names: Names) -> Results:
    """Every finding, estimate and speaker is replaced wherever it is; plain values one by one."""
    not_tested = tuple(map(_without_reason, results.verdict.not_tested))
    verdict = replace(results.verdict, not_tested=_without_text(not_tested, "reasons_left_out"))
    shown: Results = _replace(
        replace(
            results,
            verdict=verdict,
            remarks=_without_text(results.remarks, "remarks_left_out"),
            warnings=_without_text(results.warnings, "warnings_left_out"),
            parts={
                name: replace(part, findings=_without_text(part.findings, "warnings_left_out"))
                for name, part in results.parts.items()
            },
        ),
        names,
    )
    return replace(
        shown,
        title=str(results.settings.get("title") or annex_texts()["page.title"]),
        settings=_settings(results.settings),
        inputs={role: _input(entry) for role, entry in results.inputs.items()},
        protocol=replace(shown.protocol, details=_figures(results.protocol.details)),
        attackers={
            name: replace(entry, by=_groups(entry.by, names), details=_figures(entry.details))
            for name, entry in shown.attackers.items()
        },
        command=_command(results.command, results.settings),
        extractor=_extractor(results.extractor),
        parts={name: _part(part, names) for name, part in shown.parts.items()},
        criteria={
            name: replace(criterion, group=names.group(criterion.group), details=_figures(criterion.details))
            for name, criterion in shown.criteria.items()
        },
        people=replace(shown.people, persons=tuple(_person(person, names) for person in shown.people.persons)),
    )


def _replace(value: Any, names: Names) -> Any:
    """A value of the results with every finding, estimate and speaker in it replaced; details are plain values, which
    are published one by one."""
    if isinstance(value, Finding):
        return names.finding(value)
    if isinstance(value, Estimate):
        return names.estimate(value)
    if isinstance(value, Estimates):
        return names.estimates(value)
    if isinstance(value, tuple):
        return tuple(_replace(item, names) for item in value)
    if isinstance(value, Mapping):
        return {key: _replace(item, names) for key, item in value.items()}
    if not is_dataclass(value) or isinstance(value, type):
        return value
    held = {
        field.name: getattr(value, field.name) for field in fields(value) if field.name not in ("details", "settings")
    }
    changed = {name: _replace(item, names) for name, item in held.items()}
    if isinstance(held.get("speaker"), str):
        changed["speaker"] = names.speaker(held["speaker"])
    return replace(value, **changed)


def _without_reason(finding: Finding) -> Finding:
    """That an attribute could not be inferred is told without the reason, which counts the people with each value."""
    if finding.code != "attribute_not_inferred":
        return finding
    return map_references(finding, lambda it: replace(it, id="") if it.kind == "text" else it)


def _without_text(findings: tuple[Finding, ...], left_out: str) -> tuple[Finding, ...]:
    """Those with untrusted text are left out, and counted by another finding."""
    kept = tuple(found for found in findings if not _has_text(found))
    count = len(findings) - len(kept)
    return (*kept, Finding(left_out, {"count": count})) if count else kept


def _has_text(finding: Finding) -> bool:
    return any(found.kind == "text" and found.id for found in references(finding))


# --- what there is to replace


def _all_findings(value: Any) -> Iterator[Finding]:
    """Every finding in the results, or in a part of them."""
    if isinstance(value, Finding):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _all_findings(item)
    elif isinstance(value, Mapping):
        yield from _all_findings(tuple(value.values()))
    elif is_dataclass(value) and not isinstance(value, type | Estimate):
        yield from _all_findings(tuple(getattr(value, f.name) for f in fields(value) if f.name != "details"))


def _all_points(results: Results) -> Iterator[Estimate]:
    for _, estimates in results.places():
        yield from estimates
    for holder in _holders(results):
        yield from (point for groups in holder.by.values() for estimates in groups.values() for point in estimates)
    for part in results.parts.values():
        yield from part.reference
    for criterion in results.criteria.values():
        yield from (point for point in (criterion.estimate, criterion.original) if point is not None)
    for finding in _all_findings(results):
        items = (i for value in finding.values.values() for i in (value if isinstance(value, tuple) else (value,)))
        yield from (item for item in items if isinstance(item, Estimate))


def _holders(results: Results) -> list[AttackerResult | Part]:
    return [*results.attackers.values(), *results.parts.values()]


def _speakers(results: Results, matrices: Matrices | None) -> list[str]:
    speakers = [person.speaker for person in results.people.persons]
    speakers += [person.speaker for attacker in results.attackers.values() for person in attacker.people]
    speakers += [person.speaker for person in results.channels.people] if results.channels else []
    for key, part in ((key, part) for part in results.parts.values() for key in ("zoo", "people")):
        speakers += [str(row["speaker"]) for row in part.details.get(key) or ()]
    for finding in _all_findings(results):
        speakers += [*finding.people, *(found.id for found in references(finding) if found.kind == "speaker")]
    speakers += [speaker for point in _all_points(results) for speaker in name_speakers(point)]
    return [*speakers, *(matrices.speakers if matrices else ())]


def _rare_values(results: Results) -> dict[str, dict[str, str]]:
    """Values of attributes that are not common ones, by a number of their attribute."""
    by: dict[str, set[str]] = {}

    def add(attribute: str, value: str) -> None:
        by.setdefault(attribute, set()).add(value)

    for person in results.people.persons:
        add("gender", person.gender)
    for holder in _holders(results):
        for attribute, groups in holder.by.items():
            for value in groups:
                add(attribute, value)
    for point in _all_points(results):
        for attribute, value in name_values(point):
            add(attribute, value)
    for criterion in results.criteria.values():
        for attribute, value in criterion.group.items():
            add(attribute, value)
    for found in (found for finding in _all_findings(results) for found in references(finding)):
        if found.kind == "value":
            add(found.attribute, found.id)
    by["attacker"] = by.get("attacker", set()) - set(results.attackers)  # a part may be divided by attackers
    return {attribute: number_values(values - _COMMON_VALUES) for attribute, values in by.items()}


# --- parts of the results


def _part(part: Part, names: Names) -> Part:
    shown: dict[str, Callable[[Any, Names], Any]] = _DETAILS.get(part.name, {})
    kept = {key: publish(part.details[key], names) for key, publish in shown.items() if part.details.get(key)}
    if names.with_ids and part.name == "utility" and "substitutions" in part.details:  # words may name people
        kept["substitutions"] = part.details["substitutions"]
    return replace(part, by=_groups(part.by, names), details=_figures(part.details) | kept)


def _rows_of_people(rows: Iterable[Mapping[str, Any]], names: Names) -> list[dict[str, Any]]:
    return [{**_figures(row), "speaker": names.speaker(str(row["speaker"]))} for row in rows]


def _zoo(rows: Iterable[Mapping[str, Any]], names: Names) -> list[dict[str, Any]]:
    animals = [{"animal": str(row.get("animal", ""))} for row in rows]
    return [row | animal for row, animal in zip(_rows_of_people(rows, names), animals, strict=True)]


def _curve(points: Iterable[Mapping[str, Any]], names: Names) -> list[dict[str, Any]]:
    return [names.estimate(Estimate.from_json("top1", point)).to_json() for point in points]


def _own_word(word: object, names: Names) -> object:
    return word


# What figures and tables need of a part's details beside its figures, and how that is published.
_DETAILS: dict[str, dict[str, Callable[[Any, Names], Any]]] = {
    "similarity": {"form": _own_word, "pairs": _own_word, "zoo": _zoo},
    "inversion": {"learning_curve": _curve},
    "utility": {"people": _rows_of_people},
}


def _groups(by: Mapping[str, Mapping[str, Estimates]], names: Names) -> dict[str, dict[str, Estimates]]:
    return {
        attribute: {names.value(attribute, value): points for value, points in groups.items()}
        for attribute, groups in by.items()
    }


def _person(person: Person, names: Names) -> Person:
    return replace(person, gender=names.value("gender", person.gender), details=_figures(person.details))


# --- what was given


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


_PLAIN_NAME = re.compile(r"\w[\w .+-]{0,59}")


def _anonymizer(details: Mapping[str, Any]) -> dict[str, Any]:
    """A system by its name and version, with the parameters that are figures. What may be a path or a command line is
    left out: such a system is named by --system-name."""
    name, version = (str(details.get(key) or "") for key in ("anonymizer", "anonymizer_version"))
    if name == "command" or not _PLAIN_NAME.fullmatch(name):
        return {}
    parameters = details.get("anonymizer_parameters")
    given = _figures(parameters) if isinstance(parameters, Mapping) else {}
    return {
        "anonymizer": name,
        "anonymizer_version": version if _PLAIN_NAME.fullmatch(version) else "",
        "anonymizer_parameters": given,
    }


def _figures(details: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in details.items() if isinstance(value, bool | int | float)}


def _extractor(extractor: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """A registered name may be shown; any other may be a path."""
    if extractor is None:
        return None
    if extractor.get("name") not in EXTRACTORS.names:
        return {"name": OWN_EXTRACTOR}
    return {name: str(extractor[name]) for name in ("name", "version") if extractor.get(name)}


def _command(command: tuple[str, ...], settings: Mapping[str, Any]) -> tuple[str, ...]:
    """The command with placeholders for everything but options and the numbers of numeric settings.

    >>> command = ("veilmeter", "assess", "/home/me/a.toml", "--original", "100", "--seed=3", "--lengths", "1,3")
    >>> _command(command, {"seed": 3, "lengths": [1, 3], "original": ["100"]})
    ('veilmeter', 'assess', 'PATH', '--original', 'ORIGINAL', '--seed=3', '--lengths', '1,3')
    """
    words = list(command[:2])
    option = ""
    for word in command[2:]:
        if word.startswith("-") and not _is_figure(word):
            option, equals, value = word.partition("=")
            words.append(f"{option}={_publish_value(option, value, settings)}" if equals else option)
        else:
            words.append(_publish_value(option, word, settings) if option else "PATH")
            option = ""
    return tuple(words)


def _publish_value(option: str, value: str, settings: Mapping[str, Any]) -> str:
    name = option.lstrip("-").replace("-", "_")
    given = settings.get(name)
    listed = given if isinstance(given, list | tuple) else [given]
    numeric = all(isinstance(number, int | float) for number in listed)
    return value if numeric and _is_figure(value) else name.upper()


def _is_figure(word: str) -> bool:
    return bool(re.fullmatch(r"-?[\d.,]+", word))


# --- pseudonyms

KEY_FILE = "pseudonyms.key"
LARGEST_KEY = 1 << 16  # bytes

# Parameters of a point whose words are veilmeter's own. A word under any other name is a value of an attribute.
_PLAIN_PARAMETERS = frozenset({"attack", "attribute", "knows", "label", "model", "read_from", "run", "trained_on"})
_SPEAKER = "speaker"
_OF_VALUES = {"recalls": "label"}  # extras by value of an attribute, with the parameter that names the attribute


@dataclass(frozen=True, eq=False)
class Names:
    """Published substitutes: a pseudonym for a speaker, a number for a rare value of an attribute, nothing for files,
    recordings and untrusted text. With `with_ids`, speakers and values keep their names."""

    speakers: Mapping[str, str]
    values: Mapping[str, Mapping[str, str]]
    with_ids: bool = False

    def speaker(self, speaker: str) -> str:
        """Empty for a speaker who has no pseudonym."""
        return speaker if self.with_ids else self.speakers.get(speaker, "")

    def value(self, attribute: str, value: str) -> str:
        return self.values.get(attribute, {}).get(value, value)

    def group(self, group: Mapping[str, str]) -> dict[str, str]:
        return {attribute: self.value(attribute, value) for attribute, value in group.items()}

    def finding(self, finding: Finding) -> Finding:
        return map_references(finding, self.reference, self.estimate)

    def reference(self, found: Reference) -> Reference:
        if found.kind == "speaker":
            return replace(found, id=self.speaker(found.id))
        if found.kind == "value":
            return replace(found, id=self.value(found.attribute, found.id))
        return found if found.kind == "attribute" else replace(found, id="")

    def estimates(self, points: Iterable[Estimate]) -> Estimates:
        return Estimates(self.estimate(point) for point in points)

    def estimate(self, point: Estimate) -> Estimate:
        if point.context:
            point = point.with_(context={key: self._signed(key, value) for key, value in point.context.items()})
        if (
            not any(isinstance(value, str) for value in point.at.values())
            and not _OF_VALUES.keys() & point.extra.keys()
        ):
            return point  # as most of them
        at = {key: self._parameter(key, value) for key, value in point.at.items()}
        extra = {key: self._extra(point, key, value) for key, value in point.extra.items()}
        return point.with_(at=at, extra=extra)

    def _parameter(self, key: str, value: float | int | str) -> float | int | str:
        if not isinstance(value, str):
            return value
        return self.speaker(value) if key == _SPEAKER else self.value(key, value)

    def _signed(self, key: str, value: float | int | str) -> float | int | str:
        """A fact of a signature: the name of an extractor may be a path, and a group's value may be rare."""
        if key == "extractor" and value not in EXTRACTORS.names:
            return OWN_EXTRACTOR
        return self.value(key, value) if isinstance(value, str) else value

    def _extra(self, point: Estimate, key: str, value: Any) -> Any:
        if key not in _OF_VALUES or not isinstance(value, Mapping):
            return value
        attribute = str(point.at.get(_OF_VALUES[key], ""))
        return {self.value(attribute, name): figure for name, figure in value.items()}


def name_values(point: Estimate) -> Iterable[tuple[str, str]]:
    """The values of attributes that a point names, each with its attribute."""
    for key, value in point.at.items():
        if isinstance(value, str) and key not in _PLAIN_PARAMETERS and key != _SPEAKER:
            yield key, value
    for key, parameter in _OF_VALUES.items():
        found = point.extra.get(key)
        if isinstance(found, Mapping):
            yield from ((str(point.at.get(parameter, "")), str(name)) for name in found)


def name_speakers(point: Estimate) -> Iterable[str]:
    speaker = point.at.get(_SPEAKER)
    return (speaker,) if isinstance(speaker, str) else ()


def run_key(run: str | Path | None) -> bytes:
    """The run's secret, made when first needed. Without one, ids that can be guessed could be found out by trying.
    Results that lie nowhere get a new one each time."""
    if run is None:
        return secrets.token_bytes(32)
    path = Path(run) / KEY_FILE
    if path.is_symlink():
        raise InputError("this key is a link to another file", path=path, fix="remove it; a new key is made")
    key = read_input(path, most=LARGEST_KEY) if path.exists() else b""
    if len(key) < 32:
        key = secrets.token_bytes(32)
        write_bytes(path, key)
    return key


def pseudonyms(speakers: Iterable[str], key: bytes) -> dict[str, str]:
    """P01, P02, ... in an order that only the key explains.

    >>> sorted(pseudonyms(["anna", "bert"], b"k" * 32).values())
    ['P1', 'P2']
    """
    ids = sorted(
        set(speakers), key=lambda s: hmac.new(key, s.encode("utf-8", "surrogatepass"), hashlib.sha256).digest()
    )
    width = len(str(len(ids)))
    return {speaker: f"P{number:0{width}d}" for number, speaker in enumerate(ids, 1)}


def number_values(values: Iterable[str]) -> dict[str, str]:
    """A number for every value, by which nobody takes it for a real one.

    >>> number_values({"Welsh", "Scots"})
    {'Scots': '#1', 'Welsh': '#2'}
    """
    return {value: f"#{number}" for number, value in enumerate(sorted(values), 1)}
