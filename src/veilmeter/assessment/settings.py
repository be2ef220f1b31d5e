"""What an assessment is asked to do: one set of names for Python, the command line and the TOML file."""

from __future__ import annotations

import dataclasses
import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veilmeter.attacks.backends.registry import BACKENDS
from veilmeter.attacks.knowledge import ATTACKERS, attacker
from veilmeter.core.errors import InputError

# Families of measures, each of which can be left out.
MEASURES = ("scores", "similarity", "linkability", "singling-out", "ranks", "population", "inversion", "inference")
ADAPTATIONS = ("backend", "finetune")
DEFAULT_ATTACKERS = ("ignorant", "lazy-informed", "semi-informed", "informed", "procrustes", "wasserstein-procrustes")


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackerSettings:
    """What is special about one attacker: `[attackers.NAME]` in the TOML file.

    `original`, `anonymized`: embeddings of the same utterances by the attacker's own extractor, as when it was
    retrained elsewhere. `scores` with `trials`: score files of another system, measured as they are. `plda` (with
    `mean` and `lda`): Kaldi's back end.
    """

    backend: str | None = None
    adaptation: str | None = None
    dimension: int | None = None
    plda: str | None = None
    mean: str | None = None
    lda: str | None = None
    original: tuple[str, ...] = ()
    anonymized: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _one_of(self.backend, BACKENDS.names, "backend")
        _one_of(self.adaptation, ADAPTATIONS, "adaptation")
        if (self.mean or self.lda) and not self.plda:
            raise InputError("mean and lda belong to a plda file of Kaldi", fix="give plda = FILE too")
        if self.scores and self.trials and len(self.scores) != len(self.trials):
            raise InputError(
                f"there are {len(self.scores)} score files but {len(self.trials)} trial keys",
                fix="give one key for each score file, in the same order",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every option of an assessment, defaults included; it is written to results.json as `parameters`."""

    original: tuple[str, ...] = ()
    anonymized: tuple[str, ...] = ()
    anonymized_again: tuple[str, ...] = ()
    train_original: tuple[str, ...] = ()
    train_anonymized: tuple[str, ...] = ()
    train_similar: tuple[str, ...] = ()
    enrol: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    attackers: Mapping[str, AttackerSettings] = field(default_factory=dict)
    measures: tuple[str, ...] = MEASURES
    lengths: tuple[int, ...] = (1, 3, 30)
    speakers: tuple[int, ...] = ()
    population: tuple[int, ...] = ()
    by: tuple[str, ...] = ()
    attributes: tuple[str, ...] | None = None
    extractor: str = "campplus"
    layout: str | None = None
    part: str | None = None
    suffix: str | None = None
    root: tuple[str, ...] = ()
    segments: float = 4.0
    backend: str = "cosine"
    adaptation: str = "backend"
    adapted_backend: str = "lda"
    network: str | None = None
    epochs: int = 5
    folds: int = 5
    title: str = ""
    notice: str = ""
    seed: int = 0
    resamples: int = 1000
    intervals: bool = True
    weak_attacker: float = 15.0
    precision: float = 0.10
    offline: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        for name in self.measures:
            _one_of(name, MEASURES, "measure")
        _one_of(self.backend, BACKENDS.names, "backend")
        _one_of(self.adapted_backend, BACKENDS.names, "backend")
        _one_of(self.adaptation, ADAPTATIONS, "adaptation")
        for key, least in [("lengths", 1), ("speakers", 2), ("population", 2)]:
            bad = [n for n in getattr(self, key) if n < least]
            if bad:
                raise InputError(f"{key} = {bad[0]} makes no sense", fix=f"give {least} or more")
        for key, least in [("folds", 3), ("resamples", 1), ("epochs", 1), ("seed", 0)]:
            if getattr(self, key) < least:
                raise InputError(f"{key} = {getattr(self, key)} makes no sense", fix=f"give {least} or more")
        if self.segments <= 0.5:
            raise InputError(f"segments of {self.segments} s are too short to tell a voice", fix="give 2 to 10 seconds")
        if not 0 <= self.weak_attacker <= 50:
            raise InputError(
                f"weak_attacker = {self.weak_attacker} makes no sense", fix="give an EER in percent, 0 to 50 (guessing)"
            )
        if not 0 < self.precision < 1:
            raise InputError(f"precision = {self.precision} makes no sense", fix="give a probability such as 0.1")

    def wants(self, family: str) -> bool:
        return family in self.measures

    def to_json(self) -> dict[str, Any]:
        return {f.name: _plain(getattr(self, f.name)) for f in dataclasses.fields(self)}


def _plain(value: Any) -> Any:
    if isinstance(value, AttackerSettings):
        return {f.name: _plain(getattr(value, f.name)) for f in dataclasses.fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _one_of(value: str | None, known: Sequence[str], what: str) -> None:
    if value is not None and value not in known:
        near = difflib.get_close_matches(str(value), known, 1)
        raise InputError(
            f"there is no {what} called {value!r}", fix=f"did you mean {near[0]!r}?" if near else ", ".join(known)
        )


def make_settings(values: Mapping[str, Any], *, where: str | Path | None = None) -> Settings:
    """Settings from plain values, as a TOML file or keyword arguments give them; unknown keys are errors.

    >>> make_settings({"original": "a", "anonymized": "b", "lenghts": [1]})
    Traceback (most recent call last):
    ...
    veilmeter.core.errors.InputError: there is no option 'lenghts' (did you mean 'lengths'?)
    """
    values = {key.replace("-", "_"): value for key, value in values.items()}
    try:
        if "attackers" in values:
            values["attackers"] = _attackers(values["attackers"])
        made: Settings = _build(Settings, values)
        return made
    except InputError as error:
        raise InputError(error.what, path=error.path or where, line=error.line, fix=error.fix) from None


def attacker_tables(given: Any) -> dict[str, Any]:
    """What is special about each attacker, by the names of the table `veilmeter attackers`, from names or tables.

    >>> attacker_tables(["oa", "informed"]), attacker_tables({"vpc-semi-informed": {"backend": "plda"}})
    ({'ignorant': {}, 'informed': {}}, {'informed': {'backend': 'plda'}})
    """
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, Mapping):
        return {_known(name): {} for name in given or ()}
    found: dict[str, Any] = {}
    for name, table in given.items():
        if not isinstance(table, Mapping | AttackerSettings):
            raise InputError(f"attackers.{name} must be a table", fix=f"write [attackers.{name}]")
        if _known(name) in found:
            raise InputError(f"attackers.{name} is there twice, under two names", fix="write one table")
        found[_known(name)] = table
    return found


def _known(name: str) -> str:
    return "original" if name == "original" else attacker(name).name


def _attackers(given: Any) -> dict[str, AttackerSettings]:
    found: dict[str, AttackerSettings] = {}
    for name, table in attacker_tables(given).items():
        if isinstance(table, AttackerSettings):
            found[name] = table
            continue
        try:
            found[name] = _build(AttackerSettings, {key.replace("-", "_"): value for key, value in table.items()})
        except InputError as error:
            raise InputError(f"attackers.{name}: {error.what}", fix=error.fix) from None
    return found


def with_attackers(tables: Any, names: Sequence[str] = (), scores: Sequence[str] = ()) -> dict[str, Any]:
    """The attackers of a file of settings, with what the command line says of them: only these names, whose tables
    stay, and score files as ATTACKER=FILE, instead of those in the file.

    >>> with_attackers({"ignorant": {}, "informed": {"backend": "plda"}}, ["informed"], ["informed=a", "informed=b"])
    {'informed': {'backend': 'plda', 'scores': ['a', 'b']}}
    """
    found = attacker_tables(tables)
    if names:
        kept = {"original": found["original"]} if "original" in found else {}
        found = kept | {name: found.get(name, {}) for name in attacker_tables(names)}
    files: dict[str, list[str]] = {}
    for one in scores:
        name, equals, file = one.partition("=")
        if not equals:
            raise InputError(f"--scores {one}: which attacker?", fix="write --scores ignorant=FILE")
        files.setdefault(_known(name), []).append(file)
    if files and not set(found) - {"original"}:  # scores of one attacker leave the others in
        found |= {name: {} for name in DEFAULT_ATTACKERS}
    for name, of_name in files.items():
        found[name] = {**found.get(name, {}), "scores": of_name}
    return found


def _build(kind: Any, values: Mapping[str, Any]) -> Any:
    fields = {f.name: f for f in dataclasses.fields(kind)}
    made: dict[str, Any] = {}
    for key, value in values.items():
        if key not in fields:
            near = difflib.get_close_matches(key, list(fields), 1)
            raise InputError(
                f"there is no option {key!r}",
                fix=f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(fields)}",
            )
        made[key] = _coerced(key, value, str(fields[key].type))
    return kind(**made)


def _coerced(key: str, value: Any, wanted: str) -> Any:
    """The value in the type that the field has; a single word or number stands for a list of one."""

    def wrong(what: str) -> InputError:
        return InputError(f"{key} must be {what}, not {value!r}")

    if value is None:
        return None
    if wanted.startswith("tuple"):
        items = [value] if isinstance(value, str | Path | int | float) else list(value)
        if "int" in wanted:
            if not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
                raise wrong("whole numbers")
            return tuple(items)
        if not all(isinstance(item, str | Path) for item in items):
            raise wrong("text")
        return tuple(str(item) for item in items)
    if wanted.startswith("bool"):
        if not isinstance(value, bool):
            raise wrong("true or false")
    elif wanted.startswith("int"):
        if not isinstance(value, int) or isinstance(value, bool):
            raise wrong("a whole number")
    elif wanted.startswith("float"):
        if not isinstance(value, int | float) or isinstance(value, bool):
            raise wrong("a number")
        return float(value)
    elif wanted.startswith("str"):
        if not isinstance(value, str | Path):
            raise wrong("text")
        return str(value)
    return value


PATHS = ("original", "anonymized", "anonymized_again", "train_original", "train_anonymized", "train_similar")
FILES = ("scores", "trials", "enrol", "plda", "mean", "lda")


def read_toml(path: str | Path) -> dict[str, Any]:
    """The options in a TOML file; relative paths in it are relative to the file."""
    file = Path(path)
    try:
        if file.stat().st_size > 1_000_000:
            raise InputError("this is too large for a configuration file", path=path)
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(error.strerror or str(error), path=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"this is no TOML: {error}", path=path) from None
    values = {key.replace("-", "_"): value for key, value in values.items()}

    def placed(value: Any) -> Any:
        if isinstance(value, str):
            return str(file.parent / value) if not Path(value).is_absolute() else value
        return [placed(item) for item in value] if isinstance(value, list) else value

    for key in (*PATHS, "enrol", "trials", "root", "out"):
        if key in values:
            values[key] = placed(values[key])
    extractor = values.get("extractor")
    if isinstance(extractor, str) and extractor.startswith("onnx:"):
        values["extractor"] = "onnx:" + placed(extractor.removeprefix("onnx:"))
    if isinstance(values.get("attackers"), dict):
        for table in values["attackers"].values():
            if isinstance(table, dict):
                for key in (*PATHS, *FILES):
                    if key in table:
                        table[key] = placed(table[key])
    return values


def who_attacks(settings: Settings) -> str:
    """A sentence on who was asked for and who was not; nothing where all were."""
    names = attacker_names(settings)
    left = [name for name in ATTACKERS if name not in names]
    if not left:
        return ""
    special = any(one != AttackerSettings() for name, one in settings.attackers.items() if name != "original")
    why = " (where there are tables [attackers.NAME], only those attackers are run)" if special else ""
    return f"attackers: {', '.join(names)}; not asked for: {', '.join(left)}{why}"


def attacker_names(settings: Settings) -> list[str]:
    """The attackers that were asked for, in the order of the table; all of them by default."""
    asked = [name for name in settings.attackers if name != "original"]
    return [name for name in ATTACKERS if name in (asked or DEFAULT_ATTACKERS)]
