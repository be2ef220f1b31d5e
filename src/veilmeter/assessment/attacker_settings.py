"""Settings of single attackers: the tables `[attackers.NAME]` of a TOML file, and names on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.options import OptionSet, build, declare, options_of

ADAPTATIONS = ("backend", "finetune")


@dataclass(frozen=True, kw_only=True)
class AttackerSettings(OptionSet):
    """Settings of a single attacker: `[attackers.NAME]` in the TOML file."""

    backend: str | None = declare(None, help="Back end with which this attacker compares embeddings.")
    adaptation: str | None = declare(
        None, help="How this attacker adapts to anonymized speech: backend or finetune.", choices=ADAPTATIONS
    )
    dimension: int | None = declare(None, help="Dimensions that its back end keeps.")
    plda: str | None = declare(None, help="PLDA file of Kaldi, as the whole back end.", path=True)
    mean: str | None = declare(None, help="Mean vector of Kaldi, with plda.", path=True)
    lda: str | None = declare(None, help="LDA matrix of Kaldi, with plda.", path=True)
    original: tuple[str, ...] = declare(
        (), help="Embeddings of the original speech by the attacker's own extractor.", path=True, comparable=True
    )
    anonymized: tuple[str, ...] = declare(
        (), help="Embeddings of the anonymized speech by the attacker's own extractor.", path=True, comparable=True
    )
    attacker_run: tuple[str, ...] = declare(
        (), help="Embeddings of the attacker's own anonymizer run by its own extractor.", path=True, comparable=True
    )
    scores: tuple[str, ...] = declare(
        (), help="Score files of another system, measured as they are.", path=True, comparable=True
    )
    trials: tuple[str, ...] = declare(
        (), help="Trial keys of the score files: one, or one per file.", path=True, comparable=True
    )

    def __post_init__(self) -> None:
        from veilmeter.attacks.backends.base import refuse_unknown_backends

        super().__post_init__()
        refuse_unknown_backends(self.backend)
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
        return [name for name in options_of(AttackerSettings) if getattr(self, name) not in (None, ())]

    def refuse_contradictions(self, name: str, backend: str, adapted_backend: str) -> None:
        """Options that the attacker of this name has no use for, and back ends that don't do what is asked of them.
        The back ends are those of attackers that choose none."""
        from veilmeter.attacks.attacker import ATTACKERS
        from veilmeter.attacks.backends.base import backend_kind

        useless = [option for option in self.given if option not in ATTACKERS[name].options]
        if useless:
            understood = ", ".join(sorted(ATTACKERS[name].options))
            raise InputError(
                f"attackers.{name}: this attacker has no option {useless[0]}",
                fix=f"it understands {understood}",
            )
        adapts = ATTACKERS[name].adapted and not self.has_own_vectors
        kind = self.backend or (adapted_backend if adapts else backend)
        if adapts and not backend_kind(kind).needs_training and self.adaptation != "finetune":
            raise learns_nothing(kind, f"attackers.{name}: ")
        if self.dimension is not None and not backend_kind(kind).needs_training:
            raise InputError(f"attackers.{name}: the back end {kind} has no dimension", fix="leave out dimension")


def learns_nothing(kind: str, where: str = "") -> InputError:
    return InputError(
        f"{where}the back end {kind} learns nothing, so nothing would be adapted", fix="choose lda or plda"
    )


def read_attackers(value: Any) -> dict[str, AttackerSettings]:
    """The tables with their options, from names or plain tables."""
    attackers: dict[str, AttackerSettings] = {}
    for name, table in attacker_tables(value).items():
        try:
            attackers[name] = table if isinstance(table, AttackerSettings) else build(AttackerSettings, table)
        except InputError as error:
            raise InputError(f"attackers.{name}: {error.what}", path=error.path, fix=error.fix) from None
    return attackers


def attacker_tables(given: Any) -> dict[str, Any]:
    """The tables of the attackers, by the names of the table `veilmeter attackers`, from names or tables.

    >>> attacker_tables(["oa", "informed"]), attacker_tables({"vpc-semi-informed": {"backend": "plda"}})
    ({'ignorant': {}, 'informed': {}}, {'informed': {'backend': 'plda'}})
    """
    from veilmeter.attacks.attacker import Attacker, attacker_name

    if isinstance(given, str | Attacker | type):
        given = [given]
    if not isinstance(given, Mapping):
        return {attacker_name(name): {} for name in given or ()}
    tables: dict[str, Any] = {}
    for name, table in given.items():
        if not isinstance(table, Mapping | AttackerSettings):
            raise InputError(f"attackers.{name} must be a table", fix=f"write [attackers.{name}]")
        if attacker_name(name) in tables:
            raise InputError(f"attackers.{name} occurs twice, under two names", fix="write one table")
        tables[attacker_name(name)] = table
    return tables
