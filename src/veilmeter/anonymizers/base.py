"""What an anonymizer is, and how one is found by its name.

An anonymizer first says what it will do to an utterance (`parameters`, kept in the manifest), then does exactly that
(`anonymize`). All chance is in the first step, drawn from the seed and the id alone: neither the order of the work nor
the number of processes can change a result, and a run can be repeated from its manifest.
"""

from __future__ import annotations

import hashlib
import importlib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, VeilmeterError

if TYPE_CHECKING:
    from veilmeter.core.engine import Engine
    from veilmeter.data.corpus import Corpus, Utterance

Samples = NDArray[np.float32]

ENTRY_POINTS = "veilmeter.anonymizers"

# Imported only when asked for: some need torch.
BUILT_IN = {
    "mcadams": "veilmeter.anonymizers.mcadams:McAdams",
    "mcadams-random": "veilmeter.anonymizers.mcadams:RandomMcAdams",
    "xvector-pool": "veilmeter.anonymizers.xvector_pool:XvectorPool",
    "command": "veilmeter.anonymizers.command:Command",
}

# Every system is offered these; one that has no use for them does not get them.
COMMON_OPTIONS = ("seed", "offline")


@runtime_checkable
class Anonymizer(Protocol):
    """Picklable, as it travels to other processes; weights are best loaded there, on first use.

    `version` changes whenever the same parameters would give other samples.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        """What will be done to this utterance, as JSON can say it: everything that, with name, version and the
        samples, decides the output. The key `pseudo_speaker` names the voice it gets, where there is one."""
        ...

    def anonymize(self, samples: Samples, parameters: dict[str, Any]) -> Samples:
        """Mono at 16 kHz to mono at 16 kHz. An InputError means that this utterance can't be done: it is reported and
        the run goes on."""
        ...


@runtime_checkable
class NeedsCorpus(Protocol):
    """Also an anonymizer, but one that must hear the whole corpus before it can say its parameters, such as one that
    picks a pseudo-speaker far from all of a speaker's utterances. `prepared` is called once, in the main process,
    before the first `parameters`, and gives the anonymizer that does the work."""

    def prepared(self, corpus: Corpus, engine: Engine) -> Anonymizer: ...


def generator(seed: int, identity: str) -> np.random.Generator:
    """The random numbers of one speaker or utterance, whatever the order of the work.

    >>> bool(generator(0, "1089").integers(1000) == generator(0, "1089").integers(1000))
    True
    """
    if seed < 0:
        raise InputError(f"the seed {seed} is negative", fix="give 0 or more")
    digest = hashlib.sha256(identity.encode("utf-8", "surrogateescape")).digest()
    return np.random.default_rng([seed, int.from_bytes(digest[:8])])


@dataclass(frozen=True, slots=True)
class Function:
    """A plain function of samples as an anonymizer, for `--system my_module:my_function`."""

    function: Callable[..., Samples]
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        return f"{self.function.__module__}:{self.function.__qualname__}"

    @property
    def version(self) -> str:
        """Its module's source: with another one, the same parameters may give other samples."""
        source = getattr(sys.modules.get(self.function.__module__), "__file__", None)
        return hashlib.sha256(Path(source).read_bytes()).hexdigest()[:16] if source else "unknown"

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        return dict(self.options)

    def anonymize(self, samples: Samples, parameters: dict[str, Any]) -> Samples:
        return np.asarray(self.function(samples, **parameters), dtype=np.float32)


def systems() -> list[str]:
    """Every name that `load_anonymizer` knows, the built-in ones first."""
    return [*BUILT_IN, *sorted(found.name for found in entry_points(group=ENTRY_POINTS))]


def load_anonymizer(system: str, options: Mapping[str, Any] | None = None) -> Anonymizer:
    """The anonymizer called `system`: a built-in one, one that an installed package offers under the entry point group
    `veilmeter.anonymizers`, or `module:name`, where the name is a class or function that makes an anonymizer from the
    options, or a function whose first argument is `samples` and which returns the anonymized ones.

    >>> load_anonymizer("mcadams", {"alpha": 0.7}).alpha
    0.7
    """
    make = _factory(system)
    given = dict(options or {})
    signature = inspect.signature(make)
    takes_all = any(one.kind is one.VAR_KEYWORD for one in signature.parameters.values())
    known = [name for name in signature.parameters if name != "samples"]
    for name in COMMON_OPTIONS:
        if name not in known and not takes_all:
            given.pop(name, None)
    for name in given:
        if name not in known and not takes_all:
            raise InputError(f"{system} has no option {name}", fix=f"it has {', '.join(known) or 'none'}")
    if next(iter(signature.parameters), None) == "samples":
        return Function(make, given)
    try:
        signature.bind(**given)
    except TypeError as error:
        raise InputError(f"{system}: {error}", fix=f"its options are {', '.join(known)}") from None
    made = make(**given)
    if not isinstance(made, Anonymizer):
        raise InputError(
            f"{system} gives a {type(made).__name__}, which is no anonymizer",
            fix="it needs name, version, parameters(utterance) and anonymize(samples, parameters)",
        )
    return made


def _factory(system: str) -> Callable[..., Any]:
    if system in BUILT_IN:
        return _attribute(BUILT_IN[system])
    for found in entry_points(group=ENTRY_POINTS):
        if found.name == system:
            loaded: Callable[..., Any] = found.load()
            return loaded
    if ":" in system:
        # A module beside the user's work is found too, after everything that is installed.
        if (here := os.getcwd()) not in sys.path:
            sys.path.append(here)
        return _attribute(system)
    raise InputError(
        f"there is no anonymizer called {system}", fix=f"choose one of {', '.join(systems())}, or module:name"
    )


def _attribute(place: str) -> Callable[..., Any]:
    module_name, _, name = place.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except ModuleNotFoundError as error:
        raise VeilmeterError(
            f"{place} can't be imported: {error}", fix="install what is missing, or put its folder on PYTHONPATH"
        ) from None
    except VeilmeterError:
        raise
    except Exception as error:  # a stranger's module may raise anything
        raise InputError(f"{place} can't be imported: {type(error).__name__}: {error}") from None
    if not callable(found):
        raise InputError(f"{place} is no class or function")
    result: Callable[..., Any] = found
    return result
