"""Every attacker by name: those that veilmeter brings, and those of installed packages (`veilmeter.attacks`).

Two communities use the same words for different things, so attackers are defined by what they have: the challenges'
semi-informed attacker is the informed one here and in Vauquier et al. 2025.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from veilmeter.attacks.attacker import Attacker, PlainWords
from veilmeter.core.errors import InputError
from veilmeter.core.registry import Registry

_HERE = "veilmeter.attacks"
_ADAPTIVE = f"{_HERE}.adaptive"
_METHODS = f"{_ADAPTIVE}.families"

# In the order of rising knowledge, in which they are run and reported.
ATTACKERS: Registry[Attacker] = Registry(
    "attacker",
    "veilmeter.attacks",
    {
        "original": f"{_HERE}.original:ATTACKER",
        "ignorant": f"{_HERE}.ignorant:ATTACKER",
        "lazy-informed": f"{_HERE}.lazy_informed:ATTACKER",
        "semi-informed": f"{_HERE}.semi_informed:ATTACKER",
        "informed": f"{_HERE}.informed:ATTACKER",
        "procrustes": f"{_HERE}.procrustes:ATTACKER",
        "wasserstein-procrustes": f"{_HERE}.wasserstein_procrustes:ATTACKER",
        "adaptive": f"{_ADAPTIVE}.attacker:ATTACKER",
        "adaptive-unlabeled": f"{_ADAPTIVE}.unlabeled:ATTACKER",
        "adaptive-pseudonyms": f"{_ADAPTIVE}.pseudonyms:ATTACKER",
        "fused": f"{_ADAPTIVE}.fused:ATTACKER",
        "best-recording": f"{_METHODS}.copies:BEST_ATTACKER",
        "normalized-lazy": f"{_METHODS}.copies:NORMALIZED_ATTACKER",
        "centered-lazy": f"{_METHODS}.lazy:ATTACKER",
        "centered-ignorant": f"{_METHODS}.ignorant:ATTACKER",
        "ridge": f"{_METHODS}.ridge:ATTACKER",
        "ridge-to-mean": f"{_METHODS}.ridge_to_mean:ATTACKER",
        "softmax": f"{_METHODS}.softmax:ATTACKER",
        "two-view-lda": f"{_METHODS}.two_view_lda:ATTACKER",
        "pooled-ridge": f"{_METHODS}.pooled_ridge:ATTACKER",
        "recovered-softmax": f"{_METHODS}.recovered:SOFTMAX_ATTACKER",
        "recovered-two-view-lda": f"{_METHODS}.recovered:TWO_VIEW_LDA_ATTACKER",
    },
    accepts=lambda thing: isinstance(thing, Attacker),
)

ADAPTIVE, FUSED = "adaptive", "fused"  # what each extractor gives away is measured by the first, all together by FUSED


def default_attackers() -> list[str]:
    """Those that run unless others are asked for."""
    return [name for name, attacker in ATTACKERS.items() if attacker.default and not attacker.apart]


def attackers_for(measures: Sequence[str]) -> list[str]:
    """The attackers that run where none was named, as far as their measures are asked for."""
    return [name for name in default_attackers() if ATTACKERS[name].family in ("", *measures)]


def attacker(name: str) -> Attacker:
    """By name or alias.

    >>> attacker("retrained").name
    'informed'
    >>> attacker("vpc-semi-informed").vauquier2025
    'informed'
    """
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


def attacker_name(name: str) -> str:
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
