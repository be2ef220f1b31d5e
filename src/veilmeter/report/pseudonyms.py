"""Names in a report that do not tell who or what they stand for, the same in every report of one run."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.files import write_bytes
from veilmeter.core.findings import Finding, Reference, map_references

KEY_FILE = "pseudonyms.key"

# Parameters of a point whose words are veilmeter's own. A word under any other name is a value of an attribute.
_PLAIN_PARAMETERS = frozenset({"attack", "attribute", "knows", "label", "model", "read_from", "run", "trained_on"})
_SPEAKER = "speaker"
_OF_VALUES = {"recalls": "label"}  # extras by value of an attribute, with the parameter that names the attribute


@dataclass(frozen=True, eq=False)
class Names:
    """What is shown instead: of speakers a pseudonym, of rare values a number within their attribute, of files,
    recordings and untrusted text nothing. With `with_ids` speakers and values keep their names."""

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
    try:
        key = path.read_bytes()
    except FileNotFoundError:
        key = b""
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


def numbered(values: Iterable[str]) -> dict[str, str]:
    """A number for every value, by which nobody takes it for a real one.

    >>> numbered({"Welsh", "Scots"})
    {'Scots': '#1', 'Welsh': '#2'}
    """
    return {value: f"#{number}" for number, value in enumerate(sorted(values), 1)}
