"""The interface of anonymizers, and how one is found by its name.

An anonymizer first says what it will do to an utterance (`parameters`, kept in the manifest), then does exactly that
(`anonymize`). All chance is in the first step, drawn from the seed and the id alone: neither the order of the work nor
the number of processes can change a result, and a run can be repeated from its manifest.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError, foreign_errors
from veilmeter.core.registry import Registry
from veilmeter.core.user_code import GIVEN, load_object, note_origin, source_version, spec_of

if TYPE_CHECKING:
    from veilmeter.core.engine import Engine
    from veilmeter.data.corpus import Corpus, Utterance


def parse_options(pairs: Sequence[str]) -> dict[str, Any]:
    """NAME=VALUE as options: numbers and JSON as such, everything else as text.

    >>> parse_options(["depth=3", "voice=low", "range=[1, 2]"])
    {'depth': 3, 'voice': 'low', 'range': [1, 2]}
    """
    options: dict[str, Any] = {}
    for pair in pairs:
        name, is_there, value = pair.partition("=")
        if not is_there or not name.isidentifier():
            raise InputError(f"--option {pair!r} is not NAME=VALUE")
        if name in options:
            raise InputError(f"--option {name} is given twice")
        try:
            options[name] = json.loads(value)
        except ValueError:
            options[name] = value
    return options


Samples = NDArray[np.float32]

# A registered thing is a class or function that makes an anonymizer from its options, or a function of samples.
# Imported only when asked for: some need torch.
ANONYMIZERS: Registry[Callable[..., Any]] = Registry(
    "anonymizer",
    "veilmeter.anonymizers",
    {
        "mcadams": "veilmeter.anonymizers.mcadams:McAdams",
        "mcadams-random": "veilmeter.anonymizers.mcadams:RandomMcAdams",
        "xvector-pool": "veilmeter.anonymizers.xvector_pool:XvectorPool",
        "cascade": "veilmeter.anonymizers.cascade:Cascade",
        "command": "veilmeter.anonymizers.command:Command",
    },
    accepts=callable,
    forms=("module:name", "file.py:name"),
)

# Every system is offered these; one that has no use for them does not get them.
COMMON_OPTIONS = ("seed", "offline")
# A function with an argument `draw` has these, too: its draws are made here.
DRAWING_OPTIONS = ("choices", "per", "seed")


class Draw(StrEnum):
    """Units with separate draws: none (a deterministic system), each speaker, each utterance; or unknown.

    An attacker who trains on own runs must know it: copies of a speaker that share one draw look alike for a reason
    that is not the speaker.
    """

    NONE = "none"
    SPEAKER = "speaker"
    UTTERANCE = "utterance"
    UNKNOWN = "unknown"


def check_draw(per: str) -> None:
    """Refuses everything but `speaker` and `utterance`."""
    if per not in (Draw.SPEAKER, Draw.UTTERANCE):
        raise InputError(f"a draw per {per!r} is not offered", fix="choose per speaker or per utterance")


def check_choices(choices: Any) -> None:
    """Refuses a finite set of draws in which there is nothing to draw from."""
    if not isinstance(choices, int) or isinstance(choices, bool) or choices < 2:
        raise InputError(f"choices must be a number of draws, at least 2 (got {choices!r})", fix="--option choices=20")


@runtime_checkable
class Anonymizer(Protocol):
    """Picklable, as it travels to other processes; weights are best loaded there, on first use.

    `version` changes whenever the same parameters would give other samples. It may also have `draws`, a `Draw`: whether
    it draws for each speaker, for each utterance or not at all. One that can do both takes `per` as an option. One that
    draws from a finite set has `choices`, their number, and names its draw as the parameter `draw`, a number from 0; it
    does what this parameter says, so that attackers can try every draw. With `keeps_length = False`, outputs that are
    shorter or longer than their inputs are not reported.
    """

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        """What will be done to this utterance, as JSON can say it: everything that, with name, version and the
        samples, decides the output. The key `pseudo_speaker` names the voice it gets, where there is one."""
        ...

    def anonymize(self, samples: Samples, parameters: dict[str, Any]) -> Samples | Output:
        """Mono at 16 kHz to mono at 16 kHz. An InputError means that this utterance can't be done: it is reported and
        the run goes on."""
        ...


@dataclass(frozen=True, slots=True)
class Output:
    """Samples with remarks on them, for a system that has any; else it gives back the samples alone."""

    samples: Samples
    remarks: tuple[str, ...] = ()


@runtime_checkable
class NeedsCorpus(Protocol):
    """Also an anonymizer, but one that must hear the whole corpus before it can say its parameters, such as one that
    picks a pseudo-speaker far from all of a speaker's utterances. `prepared` is called once, in the main process,
    before the first `parameters`, and gives the anonymizer that does the work."""

    def prepare(self, corpus: Corpus, engine: Engine) -> Anonymizer: ...


@runtime_checkable
class NeedsFolder(Protocol):
    """Also an anonymizer, but one that needs a folder for its own files; it lies in the output folder and is removed
    at the end. What a killed run left there must be cleared away."""

    def working_in(self, folder: Path) -> Anonymizer: ...


@runtime_checkable
class Batches(Protocol):
    """Also an anonymizer, but one that does many recordings at once more quickly than one after the other."""

    @property
    def batch_size(self) -> int: ...

    def anonymize_batch(self, recordings: Iterable[tuple[Samples, dict[str, Any]]]) -> Iterator[Output | InputError]:
        """As `anonymize`, for each of the recordings and its parameters, in their order."""
        ...


@runtime_checkable
class ByBlocks(Protocol):
    """Also an anonymizer, but one that takes a recording in blocks, so that memory does not depend on its length."""

    def anonymize_blocks(self, blocks: Iterable[Samples], parameters: dict[str, Any]) -> Iterator[Samples]:
        """As `anonymize`, with the same samples whatever the blocks."""
        ...


def draw_of(anonymizer: Anonymizer) -> Draw:
    """The `draws` that an anonymizer declares; unknown where it declares none."""
    return Draw(getattr(anonymizer, "draws", Draw.UNKNOWN))


def choices_of(anonymizer: Anonymizer) -> int:
    """From how many draws an anonymizer chooses, where it declares a finite set; else 0."""
    return int(getattr(anonymizer, "choices", 0))


def draw_number(choices: int, seed: int, per: str, utterance: Utterance) -> int:
    """The draw of an utterance, or of its speaker, from a finite set."""
    whose = utterance.speaker if per == "speaker" else utterance.id
    return int(generator(seed, f"draw:{per}:{whose}").integers(choices))


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
    """A plain function of samples as an anonymizer, for `--system my_module:my_function`. With `choices`, its argument
    `draw` gets one of so many numbers, drawn for each speaker or utterance (`per`)."""

    function: Callable[..., Samples]
    options: Mapping[str, Any]
    name: str
    choices: int = 0
    seed: int = 0
    per: str = "speaker"

    def __post_init__(self) -> None:
        if self.choices:
            check_choices(self.choices)
            check_draw(self.per)

    @property
    def draws(self) -> Draw:
        return Draw(self.per) if self.choices else Draw.UNKNOWN

    @property
    def version(self) -> str:
        """Its module's source: with another one, the same parameters may give other samples."""
        return source_version(self.function, sys.modules.get(self.name.partition(":")[0]))

    def __reduce__(self) -> tuple[Any, ...]:
        """One that was given as an object, perhaps in a notebook, is known in this process alone."""
        spec = str(spec_of(self.function))
        given = spec if spec.startswith(f"{GIVEN}:") else self.function
        return _function, (given, dict(self.options), self.name, self.choices, self.seed, self.per)

    def parameters(self, utterance: Utterance) -> dict[str, Any]:
        if not self.choices:
            return dict(self.options)
        return {**self.options, "draw": draw_number(self.choices, self.seed, self.per, utterance)}

    def anonymize(self, samples: Samples, parameters: dict[str, Any]) -> Samples:
        try:
            return np.asarray(self.function(samples, **parameters), dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise InputError(f"the anonymizer {self.name} did not return samples: {error}") from error


def _function(given: Callable[..., Samples] | str, options: Mapping[str, Any], name: str, *drawing: Any) -> Function:
    function = load_object(given, "anonymizer")[0] if isinstance(given, str) else given
    return Function(function, options, name, *drawing)


def load_anonymizer(
    system: str | Callable[..., Any] | Anonymizer, options: Mapping[str, Any] | None = None
) -> Anonymizer:
    """The anonymizer called `system`.

    It is a built-in anonymizer, one that an installed package registers as `veilmeter.anonymizers`, or user-supplied
    code (`module:name`, `file.py:name`). Such code is a class or function that makes an anonymizer from the options,
    or a function from samples to anonymized samples. A function or an anonymizer can also be passed as an object.

    >>> load_anonymizer("mcadams", {"alpha": 0.7}).alpha
    0.7
    """
    system = str(spec_of(system))
    make, place = _factory(system)
    if not callable(make) and isinstance(make, Anonymizer):
        return make
    given = dict(options or {})
    signature = inspect.signature(make)
    argument = _samples_argument(make, {**given, **dict.fromkeys(COMMON_OPTIONS)})
    known = [name for name in signature.parameters if name != argument]
    drawing = {}
    if "choices" in given and argument is not None and "draw" in known and "draw" not in given:
        drawing = {name: given.pop(name) for name in DRAWING_OPTIONS if name in given and name not in known}
    for name in COMMON_OPTIONS:
        if not _takes(make, name):
            given.pop(name, None)
    for name in given:
        if not _takes(make, name):
            raise InputError(f"{system} has no option {name}", fix=f"it has {', '.join(known) or 'none'}")
    if argument is not None:
        return Function(make, given, place, **drawing)
    try:
        signature.bind(**given)
    except TypeError as error:
        raise InputError(f"{system}: {error}", fix=f"its options are {', '.join(known)}") from None
    with foreign_errors(f"{system} can't be made"):
        anonymizer = make(**given)
    if not isinstance(anonymizer, Anonymizer):
        raise InputError(
            f"{system} gives a {type(anonymizer).__name__}, not an anonymizer",
            fix="it needs name, version, parameters(utterance) and anonymize(samples, parameters)",
        )
    note_origin(anonymizer, sys.modules.get(place.partition(":")[0]))
    return anonymizer


def takes_option(system: str, name: str) -> bool:
    """Whether a system has a use for an option.

    >>> takes_option("mcadams", "seed"), takes_option("mcadams-random", "seed")
    (False, True)
    """
    return _takes(_factory(system)[0], name)


def _takes(make: Callable[..., Any], name: str) -> bool:
    if not callable(make):
        return False
    parameters = inspect.signature(make).parameters
    takes_all = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters.values())
    return name != _samples_argument(make, {name: None}) and (takes_all or name in parameters)


def _samples_argument(make: Callable[..., Any], options: Container[str]) -> str | None:
    """The name under which a function takes samples: that of its first argument, if it is `samples`, or if it needs one
    that is not among the options; None for classes and functions that make an anonymizer."""
    first = next(iter(inspect.signature(make).parameters.values()), None)
    if first is None or isinstance(make, type) or first.kind in (first.VAR_POSITIONAL, first.VAR_KEYWORD):
        return None
    needed = first.default is first.empty and first.kind is not first.KEYWORD_ONLY
    return first.name if first.name == "samples" or (needed and first.name not in options) else None


def load_with_unused(system: str, options: Mapping[str, Any]) -> tuple[Anonymizer, dict[str, str]]:
    """The anonymizer, and its options that can't act, each with the reason: a seed that it does not take, and what it
    says itself in `unused`.

    >>> load_with_unused("mcadams", {"seed": 3})[1]
    {'seed': 'mcadams takes none'}
    """
    is_seeded = takes_option(system, "seed")  # before the anonymizer is made: each look loads user-supplied code again
    anonymizer = load_anonymizer(system, options)
    missing = {} if is_seeded or choices_of(anonymizer) else {"seed": f"{system} takes none"}
    return anonymizer, {**missing, **getattr(anonymizer, "unused", {})}


def options_of(system: str, given: Container[str] = ()) -> tuple[str, ...]:
    """The names of a system's options; some depend on which others are given.

    >>> options_of("mcadams-random")
    ('alpha_range', 'per', 'seed')
    """
    make = _factory(system)[0]
    argument = _samples_argument(make, ())
    known = tuple(name for name in inspect.signature(make).parameters if name != argument)
    is_drawn = argument is not None and "draw" in known and "choices" in given
    return known + tuple(name for name in DRAWING_OPTIONS if is_drawn and name not in known)


def _factory(system: str) -> tuple[Callable[..., Any], str]:
    """What makes the system, or does its work; and in which module that is, under which name."""
    if system in ANONYMIZERS or ":" not in system:
        make = ANONYMIZERS[system]
        return make, f"{make.__module__}:{getattr(make, '__qualname__', system)}"
    make, module = load_object(system, "anonymizer")
    if not callable(make) and not isinstance(make, Anonymizer):
        raise InputError(f"{system} is neither a class nor a function")
    return make, f"{module.__name__}:{system.rpartition(':')[2]}"
