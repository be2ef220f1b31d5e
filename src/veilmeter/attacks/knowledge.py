"""Attackers, defined by what they have, because two communities use the same words for different things.

| attacker | enrollment speech | extractor | VoicePrivacy | Vauquier et al. 2025 |
|---|---|---|---|---|
| ignorant | original | trained on original speech | ignorant | ignorant |
| lazy-informed | anonymized by the same system | trained on original speech | lazy-informed | - |
| semi-informed | anonymized by the same system | adapted to a similar system | - | semi-informed |
| informed | anonymized by the same system | adapted to the same system | semi-informed | informed |
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal

from veilmeter.attacks.base import Attack
from veilmeter.attacks.registry import ATTACKS
from veilmeter.core.errors import InputError

Side = Literal["original", "anonymized"]
Material = Literal["none", "similar system", "same system"]
Inversion = Literal["none", "procrustes", "wasserstein"]

# What a table [attackers.NAME] may say of any attacker, of one with a back end, and of one that adapts it.
_ANY = frozenset({"original", "anonymized", "attacker_run", "scores", "trials"})
_COMPARING = _ANY | {"backend", "dimension", "plda", "mean", "lda"}
_ADAPTED = _COMPARING | {"adaptation"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Attacker:
    """What an attacker has.

    `enrollment` is the speech of known people they compare with, `trials` the speech they want to name; `adaptation` is
    the speech they trained on, by what produced it; `inversion` the map they learn to undo the anonymizer. `attack` is
    the registered attack that finds the scores, where it is more than a comparison of vectors. A `reference` is an
    attacker of the papers; one that is `apart` is a threat model of its own, beside the headline.
    """

    name: str
    about: str
    enrollment: Side
    trials: Side = "anonymized"
    adaptation: Material = "none"
    inversion: Inversion = "none"
    voiceprivacy: str = ""
    vauquier2025: str = ""
    aliases: tuple[str, ...] = ()
    attack: str = ""
    reference: bool = True
    apart: bool = False
    default: bool = True
    described: Mapping[str, str] = field(default_factory=dict)

    @property
    def family(self) -> str:
        """The family of measures that this attacker belongs to, if it is left out without it."""
        return "" if self.inversion == "none" else "inversion"

    @property
    def understands(self) -> frozenset[str]:
        """The options of a table [attackers.NAME] that this attacker has a use for."""
        if self.attack or self.inversion != "none":
            return _ANY
        return _ADAPTED if self.adapted else _COMPARING

    @property
    def extractor(self) -> str:
        return {
            "none": "trained on original speech",
            "similar system": "adapted to speech anonymized by a similar system",
            "same system": "adapted to speech anonymized by the same system",
        }[self.adaptation]

    @property
    def adapted(self) -> bool:
        return self.adaptation != "none"

    def has(self) -> dict[str, str]:
        """For results.json."""
        if self.described:
            return dict(self.described)
        enrollment = "original speech" if self.enrollment == "original" else "speech anonymized by the same system"
        learned = {
            "none": "none",
            "procrustes": "a rotation learned from recordings known both clear and anonymized",
            "wasserstein": "a rotation learned from clear and anonymized recordings without knowing which are pairs",
        }[self.inversion]
        return {
            "enrollment": enrollment,
            "extractor": self.extractor,
            "adaptation": self.adaptation,
            "inversion": learned,
        }

    def to_json(self) -> dict[str, Any]:
        return {
            "about": self.about,
            "has": self.has(),
            "aliases": {"voiceprivacy": self.voiceprivacy, "vauquier2025": self.vauquier2025},
        }


# The baseline: the same extractor and back end where nothing was anonymized. Not an attack on anonymized speech.
ORIGINAL = Attacker(
    name="original",
    about="compares original speech with original speech: how well the extractor recognizes people where nothing was "
    "anonymized",
    enrollment="original",
    trials="original",
    vauquier2025="original",
)

ATTACKERS: dict[str, Attacker] = {
    attacker.name: attacker
    for attacker in [
        Attacker(
            name="ignorant",
            about="does not know that the speech was anonymized and compares it with original speech of known people",
            enrollment="original",
            voiceprivacy="ignorant",
            vauquier2025="ignorant",
            aliases=("oa", "o-a", "unprotected-enrollment"),
        ),
        Attacker(
            name="lazy-informed",
            about="anonymizes the speech of known people with the same system, but keeps an extractor trained on "
            "original speech",
            enrollment="anonymized",
            voiceprivacy="lazy-informed",
            aliases=("aa", "a-a", "lazy"),
        ),
        Attacker(
            name="semi-informed",
            about="anonymizes the speech of known people with the same system, and adapts to speech anonymized by a "
            "similar system",
            enrollment="anonymized",
            adaptation="similar system",
            vauquier2025="semi-informed",
        ),
        Attacker(
            name="informed",
            about="anonymizes the speech of known people with the same system, and adapts to speech that the same "
            "system anonymized",
            enrollment="anonymized",
            adaptation="same system",
            voiceprivacy="semi-informed",
            vauquier2025="informed",
            aliases=("vpc-semi-informed", "retrained"),
        ),
        Attacker(
            name="procrustes",
            about="runs the same system on speech of known people, learns from these pairs a rotation that undoes it, "
            "and compares the restored vectors with original speech",
            enrollment="original",
            inversion="procrustes",
            aliases=("inversion", "supervised-inversion"),
        ),
        Attacker(
            name="wasserstein-procrustes",
            about="learns the rotation without knowing which anonymized recording belongs to which clear one, and "
            "compares the restored vectors with original speech",
            enrollment="original",
            inversion="wasserstein",
            aliases=("wasserstein", "unsupervised-inversion"),
        ),
    ]
}


@cache
def _of_attack(attack: Attack) -> Attacker:
    return Attacker(
        name=attack.name,
        about=attack.about,
        enrollment="original",
        attack=attack.name,
        reference=attack.reference,
        apart=attack.apart,
        default=attack.default and not attack.apart,
        described=attack.has,
    )


FUSED = "fused"  # the attack that uses several extractors together


def known_attackers() -> dict[str, Attacker]:
    """Everybody by name: the baseline, the attackers of the papers, and every registered attack."""
    return {ORIGINAL.name: ORIGINAL} | ATTACKERS | {name: _of_attack(attack) for name, attack in ATTACKS.items()}


def default_attackers() -> list[str]:
    """Those that run unless others are asked for."""
    return [name for name, known in known_attackers().items() if known.default and name != ORIGINAL.name]


def attacker(name: str) -> Attacker:
    """By name or alias.

    >>> attacker("retrained").name
    'informed'
    >>> attacker("vpc-semi-informed").vauquier2025
    'informed'
    """
    key = name.strip().lower().replace("_", "-").replace(" ", "-")
    everybody = known_attackers()
    for known in everybody.values():
        if key == known.name or key in known.aliases:
            return known
    names = [alias for known in everybody.values() for alias in (known.name, *known.aliases)]
    near = difflib.get_close_matches(key, names, 1)
    raise InputError(
        f"there is no attacker called {name!r}",
        fix=f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(everybody)}",
    )


def attackers_for(measures: Sequence[str]) -> list[str]:
    """The attackers that run where none was named, as far as their measures are asked for."""
    return [name for name in default_attackers() if known_attackers()[name].family in ("", *measures)]


def attacker_name(name: str) -> str:
    """The name that an attacker has here."""
    return attacker(name).name


def chosen(names: Sequence[str]) -> list[Attacker]:
    """These attackers, once each, in the order of the table, which is that of rising knowledge."""
    wanted = {attacker(name).name for name in names}
    return [known for known in known_attackers().values() if known.name in wanted]


@dataclass(frozen=True, slots=True)
class PlainWords:
    """An attacker for readers who do not know the field: who that is, and what the attack takes.

    `who` completes "This could be done by ..."; the technical name stands beside it.
    """

    who: str
    data: str
    skill: str
    time: str


_KNOWN_PEOPLE = "recordings of the people they look for"
_OTHERS = "recordings of some hundred other people"
_PUBLIC_TOOL = "uses a public voice recognizer"

PLAIN_WORDS: dict[str, PlainWords] = {
    "ignorant": PlainWords(
        "someone who does not know the speech was anonymized", _KNOWN_PEOPLE, _PUBLIC_TOOL, "an hour"
    ),
    "lazy-informed": PlainWords(
        "someone who has your anonymizer", f"your anonymizer, {_KNOWN_PEOPLE}", _PUBLIC_TOOL, "a day"
    ),
    "semi-informed": PlainWords(
        "someone who has a similar anonymizer and trains a recognizer on its output",
        f"a similar anonymizer, {_KNOWN_PEOPLE}, {_OTHERS}",
        "trains a model",
        "days",
    ),
    "informed": PlainWords(
        "someone who has your anonymizer and trains a recognizer on its output",
        f"your anonymizer, {_KNOWN_PEOPLE}, {_OTHERS}",
        "trains a model",
        "days",
    ),
    "procrustes": PlainWords(
        "someone who has your anonymizer and tries to reverse it",
        f"your anonymizer, {_KNOWN_PEOPLE}",
        "some linear algebra",
        "a day",
    ),
    "wasserstein-procrustes": PlainWords(
        "someone who tries to reverse your anonymizer without having it",
        "original and anonymized recordings, not matched",
        "a research method",
        "days",
    ),
    "adaptive": PlainWords(
        "someone who has your anonymizer and keeps whichever of many methods works best",
        f"your anonymizer, {_KNOWN_PEOPLE}",
        "trains models",
        "days",
    ),
    "fused": PlainWords(
        "the same, with several recognizers at once, of the voice or of words and rhythm",
        f"your anonymizer, {_KNOWN_PEOPLE}",
        "trains models",
        "days",
    ),
    "adaptive-unlabeled": PlainWords(
        "the same, looking at the whole release together",
        f"your anonymizer, {_KNOWN_PEOPLE}, the whole release",
        "trains models",
        "days",
    ),
    "adaptive-pseudonyms": PlainWords(
        "the same, knowing which released recordings belong together",
        f"your anonymizer, {_KNOWN_PEOPLE}, the whole release",
        "trains models",
        "days",
    ),
    "original": PlainWords("anybody, without anonymization", _KNOWN_PEOPLE, _PUBLIC_TOOL, "an hour"),
}


def plain_words(name: str, about: str = "") -> PlainWords:
    """The plain words for an attacker; one that another package added speaks for itself (`about`).

    >>> plain_words("lazy-informed").who, plain_words("mine", "reads transcripts").who
    ('someone who has your anonymizer', 'someone who reads transcripts')
    """
    if name in PLAIN_WORDS:
        return PLAIN_WORDS[name]
    return PlainWords(f"someone who {about}" if about else f"the attacker called {name}", "", "", "")
