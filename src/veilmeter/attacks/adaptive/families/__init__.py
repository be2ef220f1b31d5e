"""The methods that the adaptive attacker chooses from, one file each; other packages may add theirs."""

from veilmeter.attacks.adaptive.families.base import AffineScorer, Family, FittedMethod, Parameters
from veilmeter.core.registry import Registry

_HERE = "veilmeter.attacks.adaptive.families"

FAMILIES: Registry[Family] = Registry(
    "method of the adaptive attacker",
    "veilmeter.adaptive_methods",
    {
        "lazy": f"{_HERE}.lazy:FAMILY",
        "ignorant": f"{_HERE}.ignorant:FAMILY",
        "best-recording": f"{_HERE}.copies:BEST",
        "normalized-lazy": f"{_HERE}.copies:NORMALIZED",
        "ridge": f"{_HERE}.ridge:FAMILY",
        "ridge-to-mean": f"{_HERE}.ridge_to_mean:FAMILY",
        "softmax": f"{_HERE}.softmax:FAMILY",
        "two-view-lda": f"{_HERE}.two_view_lda:FAMILY",
        "pooled-ridge": f"{_HERE}.pooled_ridge:FAMILY",
        "recovered-softmax": f"{_HERE}.recovered:SOFTMAX",
        "recovered-two-view-lda": f"{_HERE}.recovered:TWO_VIEW_LDA",
    },
)

__all__ = ["FAMILIES", "AffineScorer", "Family", "FittedMethod", "Parameters"]
