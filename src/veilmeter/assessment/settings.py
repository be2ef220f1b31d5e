"""What an assessment is asked to do: one typed object for Python, the command line and the TOML file."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veilmeter.anonymizers.options import parse_options
from veilmeter.assessment.curve_sizes import drawn_sizes, sizes_given
from veilmeter.assessment.plain_values import build
from veilmeter.attacks.backends.registry import backend_kind, refuse_unknown_backends
from veilmeter.attacks.knowledge import attacker_name, attackers_for, default_attackers, known_attackers
from veilmeter.core.errors import InputError
from veilmeter.data.formats.table import parse_columns
from veilmeter.speech.extractors.base import extractor_label

# Families of measures, each of which can be left out.
MEASURES = (
    "scores",
    "similarity",
    "linkability",
    "singling-out",
    "ranks",
    "population",
    "inversion",
    "inference",
    "utility",
)
ADAPTATIONS = ("backend", "finetune")
# Options of an anonymizer that are options of the assessment, and what to give instead.
OWN_OPTIONS = {
    "seed": "give --seed; attackers draw with seeds of their own",
    "offline": "give --offline",
    "command": "give --command",
}
DRAWS = {"per-speaker": "speaker", "per-utterance": "utterance"}
ALIASES = {"enrol": "enroll", "anonymized_again": "attacker_run", "runs": "attacker_runs"}  # other spellings


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackerSettings:
    """What is special about one attacker: `[attackers.NAME]` in the TOML file.

    `original`, `anonymized`, `attacker_run`: embeddings of the same utterances by the attacker's own extractor, as when
    it was retrained elsewhere. `scores` with `trials`: score files of another system, measured as they are. `plda`
    (with `mean` and `lda`): Kaldi's back end.
    """

    backend: str | None = None
    adaptation: str | None = None
    dimension: int | None = None
    plda: str | None = None
    mean: str | None = None
    lda: str | None = None
    original: tuple[str, ...] = ()
    anonymized: tuple[str, ...] = ()
    attacker_run: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        refuse_unknown_backends(self.backend)
        _one_of(self.adaptation, ADAPTATIONS, "adaptation")
        if (self.mean or self.lda) and not self.plda:
            raise InputError("mean and lda belong to a plda file of Kaldi", fix="give plda = FILE too")
        if self.plda and (self.backend or self.dimension):
            raise InputError("a plda file of Kaldi is a whole back end", fix="leave out backend and dimension")
        if self.trials and not self.scores:
            raise InputError("trials are the key of score files, and there are none", fix="give scores = FILE too")
        if self.scores and self.trials and len(self.trials) not in (1, len(self.scores)):
            raise InputError(
                f"there are {len(self.scores)} score files but {len(self.trials)} trial keys",
                fix="give one key for each score file, in the same order",
            )

    @property
    def has_own_vectors(self) -> bool:
        return bool(self.original or self.anonymized)

    @property
    def given(self) -> list[str]:
        """The options that were given."""
        return [field.name for field in dataclasses.fields(self) if getattr(self, field.name) not in (None, ())]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every option of an assessment, with its default. What had an effect is written to results.json."""

    original: tuple[str, ...] = ()
    anonymized: tuple[str, ...] = ()
    vpc: str | None = None
    sets: tuple[str, ...] = ()
    attacker_run: tuple[str, ...] = ()
    train_original: tuple[str, ...] = ()
    train_anonymized: tuple[str, ...] = ()
    train_similar: tuple[str, ...] = ()
    system: str | None = None
    option: tuple[str, ...] = ()
    command: str | None = None
    attacker_runs: int | None = None
    enroll: tuple[str, ...] = ()
    trials: tuple[str, ...] = ()
    attackers: Mapping[str, AttackerSettings] = field(default_factory=dict)
    measures: tuple[str, ...] = MEASURES
    lengths: tuple[int, ...] = (1, 3, 30)
    speakers: tuple[int, ...] = ()
    population: tuple[int, ...] = ()
    release_size: int | None = None
    candidates: int | None = None
    by: tuple[str, ...] | None = None
    attributes: tuple[str, ...] | None = None
    extractor: tuple[str, ...] = ("campplus",)
    recognizer: str | None = None
    layout: str | None = None
    part: str | None = None
    suffix: str | None = None
    root: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    channel: str | None = None
    segments: float = 4.0
    backend: str = "cosine"
    adaptation: str = "backend"
    adapted_backend: str = "lda"
    network: str | None = None
    epochs: int = 5
    folds: int = 5
    title: str = ""
    system_name: str = ""
    assessor: str = ""
    notice: str = ""
    threshold: float | None = None
    seed: int = 0
    resamples: int = 1000
    intervals: bool = True
    weak_attacker: float = 15.0
    precision: float = 0.10
    utility: bool = True
    utility_recordings: int = 100
    utility_rated: int = 30
    offline: bool = False
    strict: bool = False

    def __post_init__(self) -> None:
        for name in self.measures:
            _one_of(name, MEASURES, "measure")
        refuse_unknown_backends(self.backend, self.adapted_backend)
        _one_of(self.adaptation, ADAPTATIONS, "adaptation")
        several = {"lengths": self.lengths, "speakers": drawn_sizes(self.speakers), "population": self.population}
        for key, given in several.items():
            least = 1 if key == "lengths" else 2
            if bad := [n for n in given if n < least]:
                raise InputError(f"{key} = {bad[0]} makes no sense", fix=f"give {least} or more")
        for key, least in [
            ("folds", 3), ("resamples", 2), ("epochs", 1), ("seed", 0),
            ("attacker_runs", 1), ("utility_recordings", 1), ("utility_rated", 0),
            ("release_size", 1), ("candidates", 2),
        ]:  # fmt: skip
            value = getattr(self, key)
            if value is not None and value < least:
                raise InputError(f"{key} = {value} makes no sense", fix=f"give {least} or more")
        if not self.extractor or len({extractor_label(spec) for spec in self.extractor}) < len(self.extractor):
            raise InputError(
                f"extractor = {', '.join(self.extractor) or 'none'} makes no sense", fix="name each extractor once"
            )
        if self.segments <= 0.5:
            raise InputError(f"segments of {self.segments} s are too short to tell a voice", fix="give 2 to 10 seconds")
        if not 0 <= self.weak_attacker <= 50:
            raise InputError(
                f"weak_attacker = {self.weak_attacker} makes no sense", fix="give an EER in percent, 0 to 50 (guessing)"
            )
        for key in ("precision", "threshold"):
            value = getattr(self, key)
            if value is not None and not 0 < value < 1:
                raise InputError(f"{key} = {value} makes no sense", fix="give a probability such as 0.1")
        parse_columns(self.columns)
        self._check_together()

    def _check_together(self) -> None:
        """What no single option can tell."""
        if self.sets and self.vpc is None:
            raise InputError("--sets chooses among the sets of VoicePrivacy data", fix="give --vpc DATA too")
        if self.command is not None and self.system not in (None, "command"):
            raise InputError(f"the system {self.system} runs no command", fix="give --system or --command, not both")
        if not self.runs_system:
            for key in ("option", "attacker_runs"):
                if getattr(self, key):
                    raise InputError(
                        f"--{key.replace('_', '-')} belongs to an anonymizer that is run here",
                        fix="give --system NAME or --command 'PROGRAM {input} {output}' too",
                    )
        elif taken := sorted(parse_options(self.option).keys() & OWN_OPTIONS.keys()):
            raise InputError(f"--option {taken[0]} can't act: the assessment chooses it", fix=OWN_OPTIONS[taken[0]])
        elif self.attacker_run:
            raise InputError(
                "the attacker's runs are given, and an anonymizer to make them with",
                fix="give --attacker-run, or --system and --command, not both",
            )
        names = attacker_names(self)
        asked = [name for name in self.attackers if name in names and known_attackers()[name].family]
        for name in asked:
            family = known_attackers()[name].family
            if family not in self.measures:
                raise InputError(
                    f"the attacker {name} was asked for, but not the measures it belongs to ({family})",
                    fix=f"add {family} to --measures, or leave the attacker out",
                )
        if not backend_kind(self.adapted_backend).needs_training:
            raise _learns_nothing(self.adapted_backend)
        for name, options in self.attackers.items():
            _refuse_useless(name, options)
            self._check_backend(name, options)

    def _check_backend(self, name: str, options: AttackerSettings) -> None:
        adapts = known_attackers()[name].adapted and not options.has_own_vectors
        kind = options.backend or (self.adapted_backend if adapts else self.backend)
        if adapts and not backend_kind(kind).needs_training and options.adaptation != "finetune":
            raise _learns_nothing(kind, f"attackers.{name}: ")
        if options.dimension is not None and not backend_kind(kind).needs_training:
            raise InputError(f"attackers.{name}: the back end {kind} has no dimension", fix="leave out dimension")

    @property
    def first_extractor(self) -> str:
        """The one that every measure but those of further attackers is made with."""
        return self.extractor[0]

    @property
    def runs_system(self) -> bool:
        """Whether the anonymizer is run here."""
        return self.system is not None or self.command is not None

    def wants(self, family: str) -> bool:
        return family in self.measures and (family != "utility" or self.utility)

    def of_attacker(self, name: str) -> AttackerSettings:
        return self.attackers.get(name, AttackerSettings())


def _learns_nothing(kind: str, where: str = "") -> InputError:
    return InputError(
        f"{where}the back end {kind} learns nothing, so that nothing would be adapted", fix="choose lda or plda"
    )


def _refuse_useless(name: str, options: AttackerSettings) -> None:
    """Options in an attacker's table that this attacker has no use for."""
    useless = [option for option in options.given if option not in known_attackers()[name].understands]
    if useless:
        understood = ", ".join(sorted(known_attackers()[name].understands))
        raise InputError(
            f"attackers.{name}: this attacker has no use for {useless[0]}", fix=f"it understands {understood}"
        )


def _one_of(value: str | None, known: Sequence[str], what: str) -> None:
    if value is not None and value not in known:
        near = difflib.get_close_matches(str(value), known, 1)
        raise InputError(
            f"there is no {what} called {value!r}", fix=f"did you mean {near[0]!r}?" if near else ", ".join(known)
        )


# --- from plain values


def make_settings(values: Mapping[str, Any], *, where: str | Path | None = None) -> Settings:
    """Settings from plain values, as a TOML file or keyword arguments give them; unknown keys are errors.

    >>> make_settings({"original": "a", "anonymized": "b", "lenghts": [1]})
    Traceback (most recent call last):
    ...
    veilmeter.core.errors.InputError: there is no option 'lenghts' (did you mean 'lengths'?)
    """
    try:
        plain = respelled(values)
        if isinstance(plain.get("columns"), Mapping):  # a table of a TOML file, or a dict
            plain["columns"] = [f"{meaning}={column}" for meaning, column in plain["columns"].items()]
        if type(plain.get("channel")) is int:
            plain["channel"] = str(plain["channel"])
        if "speakers" in plain:
            plain["speakers"] = sizes_given(plain["speakers"])
        if "attackers" in plain:
            plain["attackers"] = _attackers(plain["attackers"])
        settings: Settings = build(Settings, plain)
        return settings
    except InputError as error:
        raise InputError(error.what, path=error.path or where, line=error.line, fix=error.fix) from None


def respelled(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values under their present names; the same option under two spellings is an error."""
    plain: dict[str, Any] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        name = ALIASES.get(name, name)
        if name in plain:
            raise InputError(f"{name} is given twice, under two names")
        plain[name] = value
    return plain


def attacker_tables(given: Any) -> dict[str, Any]:
    """What is special about each attacker, by the names of the table `veilmeter attackers`, from names or tables.

    >>> attacker_tables(["oa", "informed"]), attacker_tables({"vpc-semi-informed": {"backend": "plda"}})
    ({'ignorant': {}, 'informed': {}}, {'informed': {'backend': 'plda'}})
    """
    if isinstance(given, str):
        given = [given]
    if not isinstance(given, Mapping):
        return {attacker_name(name): {} for name in given or ()}
    tables: dict[str, Any] = {}
    for name, table in given.items():
        if not isinstance(table, Mapping | AttackerSettings):
            raise InputError(f"attackers.{name} must be a table", fix=f"write [attackers.{name}]")
        if attacker_name(name) in tables:
            raise InputError(f"attackers.{name} is there twice, under two names", fix="write one table")
        tables[attacker_name(name)] = table
    return tables


def _attackers(given: Any) -> dict[str, AttackerSettings]:
    attackers: dict[str, AttackerSettings] = {}
    for name, table in attacker_tables(given).items():
        if isinstance(table, AttackerSettings):
            attackers[name] = table
            continue
        try:
            attackers[name] = build(AttackerSettings, respelled(table))
        except InputError as error:
            raise InputError(f"attackers.{name}: {error.what}", path=error.path, fix=error.fix) from None
    return attackers


def with_attackers(
    tables: Any, names: Sequence[str] = (), scores: Sequence[str] = (), measures: Sequence[str] = MEASURES
) -> dict[str, Any]:
    """The attackers of a file of settings, with what the command line says of them: only these names, whose tables
    stay, and score files as ATTACKER=FILE, instead of those in the file.

    >>> with_attackers({"ignorant": {}, "informed": {"backend": "plda"}}, ["informed"], ["informed=a", "informed=b"])
    {'informed': {'backend': 'plda', 'scores': ['a', 'b']}}
    """
    chosen = attacker_tables(tables)
    if names:
        kept = {"original": chosen["original"]} if "original" in chosen else {}
        chosen = kept | {name: chosen.get(name, {}) for name in attacker_tables(names)}
    files: dict[str, list[str]] = {}
    for text in scores:
        name, equals, file = text.partition("=")
        if not equals:
            raise InputError(f"--scores {text}: which attacker?", fix="write --scores ignorant=FILE")
        files.setdefault(attacker_name(name), []).append(file)
    if files and not set(chosen) - {"original"}:  # scores of one attacker leave the others in
        chosen |= {name: {} for name in attackers_for(measures)}
    for name, of_name in files.items():
        chosen[name] = {**chosen.get(name, {}), "scores": of_name}
    return chosen


def who_attacks(settings: Settings) -> str:
    """A sentence on who was asked for and who was not; nothing where all were."""
    names = attacker_names(settings)
    left = [name for name in default_attackers() if name not in names]
    if not left:
        return ""
    special = any(table != AttackerSettings() for name, table in settings.attackers.items() if name != "original")
    why = " (where there are tables [attackers.NAME], only those attackers are run)" if special else ""
    return f"attackers: {', '.join(names)}; not asked for: {', '.join(left)}{why}"


def attacker_names(settings: Settings) -> list[str]:
    """The attackers that were asked for, in the order of the table; all that run by default otherwise."""
    asked = [name for name in settings.attackers if name != "original"]
    return [name for name in known_attackers() if name in (asked or default_attackers()) and name != "original"]
