"""Every attack by name: those that veilmeter brings, and those of installed packages (`veilmeter.attacks`)."""

from __future__ import annotations

from veilmeter.attacks.base import Attack
from veilmeter.core.registry import Registry


def _is_attack(thing: object) -> bool:
    return bool(getattr(thing, "name", "")) and callable(getattr(thing, "scores", None)) and not isinstance(thing, type)


_ADAPTIVE = "veilmeter.attacks.adaptive.attackers"

ATTACKS: Registry[Attack] = Registry(
    "attack",
    "veilmeter.attacks",
    {
        "adaptive": f"{_ADAPTIVE}:ADAPTIVE",
        "adaptive-unlabeled": f"{_ADAPTIVE}:UNLABELED",
        "adaptive-pseudonyms": f"{_ADAPTIVE}:PSEUDONYMS",
        "fused": f"{_ADAPTIVE}:FUSED",
        "best-recording": f"{_ADAPTIVE}:BEST_RECORDING",
        "normalized-lazy": f"{_ADAPTIVE}:NORMALIZED_LAZY",
        "centered-lazy": f"{_ADAPTIVE}:CENTERED_LAZY",
        "centered-ignorant": f"{_ADAPTIVE}:CENTERED_IGNORANT",
        "ridge": f"{_ADAPTIVE}:RIDGE",
        "ridge-to-mean": f"{_ADAPTIVE}:RIDGE_TO_MEAN",
        "softmax": f"{_ADAPTIVE}:SOFTMAX",
        "two-view-lda": f"{_ADAPTIVE}:TWO_VIEW_LDA",
        "pooled-ridge": f"{_ADAPTIVE}:POOLED_RIDGE",
        "recovered-softmax": f"{_ADAPTIVE}:RECOVERED_SOFTMAX",
        "recovered-two-view-lda": f"{_ADAPTIVE}:RECOVERED_TWO_VIEW_LDA",
    },
    accepts=_is_attack,
)
