"""The type of every attacker: names, equipment, whom it must not do worse than, words, color, how it scores; and all
attackers by name.

Every attacker is one object: those of the papers, the adaptive ones, and those that other packages add under the entry
point group `veilmeter.attacks`. Commands, reports and documentation take what they say of an attacker from it. Two
communities use the same words for different things, so attackers are defined by what they have: the challenges'
semi-informed attacker is the informed one here and in Vauquier et al. 2025.

More knowledge, never less success: an attacker who knows more could always do what one who knows less does. Where it
does significantly worse, its method failed: its scores are replaced by the other's, and a warning says so (`Takeover`).
"""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from itertools import permutations
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.material import Desk, Floats, Material, NotPossibleError, Rows
from veilmeter.core.errors import InputError, foreign_errors
from veilmeter.core.findings import Finding, as_findings, text_finding, warning
from veilmeter.core.intervals import LEVEL, cluster_interval
from veilmeter.core.registry import Registry
from veilmeter.core.user_code import load_object, version_of
from veilmeter.data.corpus import SpeechRole
from veilmeter.data.embeddings import Embeddings

if TYPE_CHECKING:
    from veilmeter.core.estimate import Estimates

Side = Literal["original", "anonymized"]

BASELINE = "original"  # the name of the comparison of original speech with original speech, which is not an attack

# Kinds of knowledge. An attacker who knows more could always do what one who knows less does.
ORIGINALS, ANONYMIZER, ADAPTATION, METHODS = "originals", "anonymizer", "adaptation", "methods"
SIMILAR_SYSTEM, EXTRACTORS, RELEASE_PSEUDONYMS = "similar system", "several extractors", "release pseudonyms"

# The options of a table [attackers.NAME] of any attacker, and of one that compares vectors by a back end.
ANY_OPTIONS = frozenset({"original", "anonymized", "attacker_run", "scores", "trials"})
BACKEND_OPTIONS = ANY_OPTIONS | {"backend", "dimension", "plda", "mean", "lda"}

# Phrases that several attackers share.
OWN_COPIES = "anonymized by the same system"
KNOWN_PEOPLE = "recordings of the people they look for"
OTHER_PEOPLE = "recordings of some hundred other people"
PUBLIC_RECOGNIZER = "uses a public voice recognizer"


@dataclass(frozen=True, slots=True)
class AttackerId:
    """An attacker by the name of its kind, and the further extractor that it uses, if any.

    >>> print(AttackerId("adaptive"), AttackerId("adaptive", "words"))
    adaptive adaptive@words
    """

    kind: str
    extractor: str = ""

    def __str__(self) -> str:
        return f"{self.kind}@{self.extractor}" if self.extractor else self.kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Equipment:
    """The equipment of an attacker, in words: the speech that it knows people by, its extractor, what it adapts to,
    what it learns to undo the anonymizer with, and what it sees of the release."""

    enrollment: str = "original"
    extractor: str = "trained on original speech"
    adaptation: str = "none"
    inversion: str = "none"
    released: str = "one at a time"

    def to_json(self) -> dict[str, str]:
        return asdict(self)


@dataclass(frozen=True, slots=True)
class PlainWords:
    """An attacker for readers who do not know the field: who that is, and what the attack takes.

    `who` completes "This could be done by ..."; the technical name is written beside it.
    """

    who: str
    data: str = ""
    skill: str = ""
    time: str = ""


@dataclass(frozen=True, eq=False)
class ScoreTables:
    """One table of scores per table of conversations, with one row per enrolled person; and how they were found.

    `sides` are enrollment and trials as vectors whose cosine is the score, where a score is that; else `isolation` has
    the tables that people are singled out by.
    """

    tables: tuple[Floats, ...]
    method: str
    trained_on: Finding | None = None
    findings: tuple[Finding, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)
    sides: tuple[Embeddings, Embeddings] | None = None
    isolation: tuple[Floats, ...] = ()


class Scoring(Protocol):
    """How an attacker scores; it travels to where the work runs, and all training is done there."""

    @property
    def names(self) -> tuple[str, ...]: ...

    def score(self, test: Embeddings, conversations: Sequence[Rows], isolation: Sequence[Rows] = ()) -> ScoreTables: ...


@dataclass(frozen=True, eq=False)
class Preparation:
    """An attacker that has taken what it needs: how it scores, what it was trained on, what a reader must know."""

    scoring: Scoring
    trained_on: Finding | None = None
    findings: tuple[Finding, ...] = ()


class Attacker(ABC):
    """One attacker. A subclass sets at least `name` and `about`; an instance of it is registered.

    `about` completes the sentence "The attacker ..."; `has` says what it has, `words` does so for laypeople.
    `voiceprivacy` and `vauquier2025` are the names that others have for it, `aliases` further names to ask for it by.
    `enrollment` is the speech it knows people by, `trials` the speech it wants to name, `training` the role of the
    speech that it adapts to. `knows` names what it knows: it must not do worse than an attacker who knows less, and if
    it `falls_back`, its scores are then replaced by the other's. `options` are those of a table [attackers.NAME].
    `family` is the family of measures without which it is left out. A `reference` is an attacker of the papers; one
    that is `apart` is a separate threat model, reported beside the headline; `default` ones run unless others are
    asked for; one with `several` uses several extractors at once. `color` is its color in figures, if it has one, and
    `order` its place in lists, in which attackers who know more come later.
    """

    name: str
    about: str
    order: int = 1000
    aliases: tuple[str, ...] = ()
    voiceprivacy: str = ""
    vauquier2025: str = ""
    enrollment: tuple[Side, ...] = ("original",)
    trials: Side = "anonymized"
    training: SpeechRole | None = None
    has: Equipment = Equipment()
    words: PlainWords | None = None
    color: str = ""
    knows: frozenset[str] = frozenset()
    falls_back: bool = True
    options: frozenset[str] = ANY_OPTIONS
    family: str = ""
    reference: bool = False
    apart: bool = False
    default: bool = False
    several: bool = False
    version: str = "1"

    @abstractmethod
    def prepare(self, desk: Desk) -> Preparation:
        """How it scores, with what it takes from the desk; a NotPossibleError where it lacks what it needs."""

    @property
    def adapted(self) -> bool:
        """Whether it adapts its extractor or back end to anonymized speech."""
        return bool(self.training)

    def outranks(self, other: Attacker) -> bool:
        """Whether it knows all that the other knows and more, so that it must not do worse."""
        return bool(other.knows) and other.knows < self.knows

    @property
    def plain_words(self) -> PlainWords:
        return self.words or PlainWords(f"someone who {self.about}")

    @property
    def row(self) -> tuple[str, ...]:
        """Its line in tables: name, enrollment speech, extractor, inversion, and what others call it."""
        has = self.has
        inversion = "" if has.inversion == "none" else has.inversion
        cells = (self.name, has.enrollment, has.extractor, inversion, self.voiceprivacy, self.vauquier2025)
        return tuple(cell or "-" for cell in cells)

    def key(self) -> Any:
        """What its scores depend on beside the material, for the store of finished work."""
        return (self.name, version_of(self), {name: value for name, value in vars(self).items() if name != "name"})

    def to_json(self) -> dict[str, Any]:
        return {
            "about": self.about,
            "has": self.has.to_json(),
            "aliases": {"voiceprivacy": self.voiceprivacy, "vauquier2025": self.vauquier2025},
            "other_names": list(self.aliases),
            "words": asdict(self.plain_words),
            "knows": sorted(self.knows),
            "color": self.color,
            "default": self.default,
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class AttackScores:
    """Scores of candidates (rows) for conversations (columns), higher for the likelier person.

    `method` says in a few words how they were made, `trained_on` on what, `findings` what a reader must know (a run
    that was not used, say), both of which may also be plain sentences; `details` are plain values for results.json.
    """

    scores: Floats
    method: str = ""
    trained_on: Finding | str = ""
    findings: tuple[Finding | str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


class ScoringAttacker(Attacker):
    """An attacker with its own method: a subclass implements `scores`.

    Attributes
    ----------
    name : str
        Its name.
    about : str
        Completes the sentence "The attacker ...".
    """

    @abstractmethod
    def scores(self, material: Material) -> Floats | AttackScores:
        """A score for every candidate (rows) and conversation (columns, in the order of the tables)."""

    def missing(self, material: Material) -> Finding | str:
        """Why this attack can't be made with this material; empty where it can."""
        return ""

    def prepare(self, desk: Desk) -> Preparation:
        material = desk.material(several=self.several)
        reason = self.missing(material)
        if reason:
            raise NotPossibleError(text_finding(reason) if isinstance(reason, str) else reason)
        desk.take(material)
        return Preparation(AttackScoring(self, material))


def perform(attacker: Attacker, material: Material) -> AttackScores:
    """The scores of an attacker with its own method, checked: one from another package may return anything."""
    if not isinstance(attacker, ScoringAttacker):
        raise InputError(f"the attacker {attacker.name} compares vectors", fix="run it with veilmeter assess")
    reason = attacker.missing(material)
    if reason:
        why = reason if isinstance(reason, str) else reason.code.replace("_", " ")
        raise InputError(f"the attacker {attacker.name} can't be run: {why}")
    given = attacker.scores(material)
    outcome = given if isinstance(given, AttackScores) else AttackScores(scores=np.asarray(given, float))
    wanted = (len(material.names), material.columns)
    if outcome.scores.shape != wanted:
        raise InputError(
            f"the attacker {attacker.name} gave scores of shape {outcome.scores.shape}, not {wanted}",
            fix="give one row per candidate and one column per conversation",
        )
    if not np.isfinite(outcome.scores).all():
        raise InputError(f"the attacker {attacker.name} gave scores that are not finite numbers")
    return outcome


@dataclass(frozen=True, eq=False)
class AttackScoring:
    """An attacker's own method on what it may know; the released recordings come without names."""

    attacker: ScoringAttacker
    material: Material

    @property
    def names(self) -> tuple[str, ...]:
        return self.material.names

    def score(self, test: Embeddings, conversations: Sequence[Rows], isolation: Sequence[Rows] = ()) -> ScoreTables:
        asked = (*conversations, *isolation)
        filled = tuple(table for table in asked if len(table))
        material = replace(self.material, conversations=filled)
        outcome = self._perform(material)
        split = iter(material.split(outcome.scores))
        empty = outcome.scores[:, :0]
        tables = tuple(next(split) if len(table) else empty for table in asked)
        count = len(conversations)
        trained_on = as_findings([outcome.trained_on])[0] if outcome.trained_on else None
        found = outcome.method, trained_on, as_findings(outcome.findings), outcome.details
        return ScoreTables(tables[:count], *found, isolation=tables[count:])

    def learning(
        self, trials: Rows, spoken: Sequence[str], *, intervals: bool, seed: int, eer_method: str = "rocch"
    ) -> Estimates:
        """Learning curves: the same attack with less of each kind of material. There are none for attackers that are
        run on request, for separate threat models, and where they would cost too much."""
        from veilmeter.attacks.adaptive.learning import MOST_CANDIDATES, learning_curves
        from veilmeter.core.estimate import Estimates

        if not self.attacker.default or self.attacker.apart or len(self.names) > MOST_CANDIDATES:
            return Estimates()
        material = replace(self.material, conversations=(trials,))
        options: dict[str, Any] = {"intervals": intervals, "seed": seed, "eer_method": eer_method}
        return learning_curves(material, spoken, lambda part: self._perform(part).scores, **options)

    def _perform(self, material: Material) -> AttackScores:
        """The attacker's scores; an error in another package's attacker, or vectors that hold nothing to compute with,
        ends this attacker alone."""
        is_ours = type(self.attacker).__module__.startswith("veilmeter.")
        try:
            with nullcontext() if is_ours else foreign_errors(f"the attacker {self.attacker.name} failed"):
                return perform(self.attacker, material)
        except np.linalg.LinAlgError as error:
            raise InputError(f"the vectors do not allow it ({error})") from error


def _own_attackers() -> dict[str, str | Attacker]:
    """The attackers at the top of the modules of `veilmeter.attacks.attackers`, in their order."""
    package = importlib.import_module("veilmeter.attacks.attackers")
    found: dict[str, Attacker] = {}
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for thing in vars(importlib.import_module(module.name)).values():
            for entry in thing if isinstance(thing, tuple) else (thing,):
                if isinstance(entry, Attacker) and found.setdefault(entry.name, entry) is not entry:
                    raise InputError(f"two attackers are called {entry.name!r}; the second is in {module.name}")
    return {entry.name: entry for entry in sorted(found.values(), key=lambda entry: entry.order)}


class AttackerRegistry(Registry[Attacker]):
    """Attackers by name, in the order in which they are run and reported."""

    def __init__(self) -> None:
        super().__init__(
            "attacker", "veilmeter.attacks", _own_attackers, accepts=lambda thing: isinstance(thing, Attacker)
        )

    def _check(self, name: str, thing: Attacker) -> Attacker:
        checked = super()._check(name, thing)
        if checked.name != name:
            raise InputError(f"the attacker {checked.name!r} is registered as {name!r}", fix="use one name for it")
        return checked


ATTACKERS = AttackerRegistry()

ADAPTIVE, FUSED = "adaptive", "fused"  # what each extractor gives away is measured by the first, all together by FUSED


def default_attackers() -> list[str]:
    """Those that run unless others are asked for."""
    return [
        name
        for name, attacker in ATTACKERS.items()
        if attacker.default and not attacker.apart and name not in ATTACKERS.admitted
    ]


def attackers_for(measures: Sequence[str]) -> list[str]:
    """The attackers that run where none was named, as far as their measures are asked for."""
    return [name for name in default_attackers() if ATTACKERS[name].family in ("", *measures)]


def attacker(name: str | Attacker | type[Attacker]) -> Attacker:
    """By name or alias; or as `module:name`, `file.py:name`, an object or its class, for those who ask for it.

    >>> attacker("retrained").name
    'informed'
    >>> attacker("vpc-semi-informed").vauquier2025
    'informed'
    """
    if not isinstance(name, str) or ":" in name:
        return _admit(name)
    key = name.strip().lower().replace("_", "-").replace(" ", "-")
    for known, found in ATTACKERS.items():
        if key == known or key in found.aliases:
            return found
    names = [alias for known, found in ATTACKERS.items() for alias in (known, *found.aliases)]
    near = difflib.get_close_matches(key, names, 1)
    raise InputError(
        f"there is no attacker called {name!r}",
        fix=f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(ATTACKERS)}",
    )


def _admit(given: str | Attacker | type[Attacker]) -> Attacker:
    found, label = given, type(given).__name__
    if isinstance(given, str):
        found, label = load_object(given, "attacker")[0], given
    if isinstance(found, type) and issubclass(found, Attacker):
        with foreign_errors(f"the attacker {found.__name__} can't be made"):
            found = found()
    if not isinstance(found, Attacker):
        raise InputError(
            f"{label} is not an attacker: it is a {type(found).__name__}", fix="derive it from ScoringAttacker"
        )
    for need in ("name", "about"):
        if not getattr(found, need, ""):
            raise InputError(f"the attacker {type(found).__name__} has no {need}", fix=f"set {need} in its class")
    if ATTACKERS.names and not (found.name in ATTACKERS and ATTACKERS[found.name] is found):
        ATTACKERS.admit(found.name, found)
    return found


def attacker_name(name: str | Attacker | type[Attacker]) -> str:
    """The name that an attacker has here."""
    return attacker(name).name


def plain_words(name: str, about: str = "") -> PlainWords:
    """The plain words for an attacker of a run; what the run says `about` it where it is not installed here.

    >>> plain_words("lazy-informed").who, plain_words("mine", "reads transcripts").who
    ('someone who has your anonymizer', 'someone who reads transcripts')
    """
    if name in ATTACKERS:
        return ATTACKERS[name].plain_words
    return PlainWords(f"someone who {about}" if about else f"the attacker called {name}")


def color_of(name: str) -> str:
    """The color that an attacker has in every figure; empty for one without, and for other names.

    >>> color_of("informed"), color_of("mine")
    ('#D55E00', '')
    """
    return ATTACKERS[name].color if name in ATTACKERS else ""


FIRST = "the first extractor"


@dataclass(frozen=True, eq=False)
class Success:
    """How well one attacker did on each conversation: `ahead` is the share of the other candidates that score lower
    than the right one, `speakers` who speaks. Equal ones count half, so that scores without information are not
    counted as failure."""

    ahead: Floats
    speakers: NDArray[Any]

    @classmethod
    def of(cls, scores: Floats, enrolled: Sequence[str], spoken: Sequence[str] | NDArray[np.object_]) -> Success:
        """From scores of candidates (rows) for conversations (columns); people who are not enrolled are left out."""
        code = {name: number for number, name in enumerate(enrolled)}
        names = np.asarray(spoken, object)
        known = np.array([name in code for name in names], bool)
        own = np.array([code[name] for name in names[known]], np.int64)
        columns = scores if known.all() else scores[:, known]
        right = columns[own, np.arange(len(own))]
        equal = np.count_nonzero(columns == right, axis=0) - 1
        lower = np.count_nonzero(columns < right, axis=0) + 0.5 * equal
        return cls(lower / max(1, len(code) - 1), names[known])

    @property
    def codes(self) -> NDArray[np.int64]:
        """The speakers as numbers, in the order of their names."""
        return np.unique(self.speakers.astype(str), return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True)
class Takeover:
    """`attacker` knows more than `other` and does significantly worse: it beats fewer candidates, by `difference`."""

    attacker: str
    other: str
    difference: float
    interval: tuple[float, float]

    @property
    def finding(self) -> Finding:
        return warning(
            "method_replaced", attacker=str(self.attacker), other=str(self.other), difference=100 * self.difference
        )


def knowledge(names: Iterable[AttackerId]) -> dict[AttackerId, frozenset[str]]:
    """What each attacker of a run knows, without those that say nothing of it or do not fall back. An attacker that
    uses one extractor does not know what another extractor finds; one that uses several knows what all of them find.

    >>> one, words, all_of_them = AttackerId("adaptive"), AttackerId("adaptive", "words"), AttackerId("fused")
    >>> known = knowledge([one, words, all_of_them])
    >>> known[one] < known[words], known[one] < known[all_of_them] > known[words]
    (False, True)
    """
    used = {name: name.extractor or FIRST for name in names}
    extractors = frozenset(used.values())
    knows = {}
    for name, extractor in used.items():
        attacker = ATTACKERS[name.kind]
        if attacker.knows and attacker.falls_back:
            knows[name] = attacker.knows | (extractors if attacker.several else {extractor})
    return knows


def takeovers(successes: Mapping[AttackerId, Success]) -> tuple[Takeover, ...]:
    """For each attacker the best of those who know less and did significantly better, if any, on the same
    conversations: the interval of the paired difference, clustered by speaker, at 95 % for all comparisons together.
    """
    knows = knowledge(successes)
    pairs = [
        (more, less)
        for more, less in permutations(knows, 2)
        if knows[less] < knows[more] and len(successes[more].ahead) == len(successes[less].ahead)
    ]
    best: dict[AttackerId, Takeover] = {}
    for more, less in pairs:
        difference = successes[more].ahead - successes[less].ahead
        level = 1 - (1 - LEVEL) / len(pairs)
        low, high = cluster_interval(difference, successes[more].speakers.astype(str), level=level)
        if high < 0:
            takeover = Takeover(str(more), str(less), float(difference.mean()), (low, high))
            if more not in best or takeover.difference < best[more].difference:
                best[more] = takeover
    return tuple(best.values())
