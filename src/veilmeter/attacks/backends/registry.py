"""Back ends by name: those that veilmeter brings, and those of installed packages (`veilmeter.backends`)."""

from __future__ import annotations

from typing import Protocol

from veilmeter.attacks.backends.base import Backend
from veilmeter.attacks.backends.best_and_normalized import ScoringOptions
from veilmeter.core.registry import Registry
from veilmeter.data.embeddings import Embeddings


class BackendKind(Protocol):
    """How a back end of one kind is made: from nothing but the two sides, or from training speech."""

    about: str
    needs_training: bool

    def untrained(self, enroll: Embeddings, test: Embeddings) -> tuple[Backend, Backend | None]:
        """For both sides, or one for the enrollment and another for the trials; only without `needs_training`."""
        ...

    def trained(self, training: Embeddings, dimension: int | None) -> Backend:
        """Fitted to training speech; `dimension` is that of the space it compares in, None for its own choice."""
        ...


def _is_kind(thing: object) -> bool:
    return all(hasattr(thing, name) for name in ("about", "needs_training", "untrained", "trained"))


_HERE = "veilmeter.attacks.backends"

BACKENDS: Registry[BackendKind] = Registry(
    "back end",
    "veilmeter.backends",
    {
        "cosine": f"{_HERE}.base:COSINE",
        "centered-cosine": f"{_HERE}.base:CENTERED_COSINE",
        "lda": f"{_HERE}.lda:KIND",
        "plda": f"{_HERE}.plda:KIND",
    },
    accepts=_is_kind,
)


def backend_kind(spec: str) -> BackendKind:
    """A back end by its name, whatever options stand behind a colon; an InputError where there is none."""
    return BACKENDS[ScoringOptions.parsed(spec)[0]]


def refuse_unknown_backends(*specs: str | None) -> None:
    """An InputError where one of these is neither a back end nor one with options."""
    for spec in specs:
        if spec is not None:
            backend_kind(spec)
