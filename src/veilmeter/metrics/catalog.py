"""The measures that veilmeter brings: their words, equations, ranges and sections, each once."""

from __future__ import annotations

from math import inf

from veilmeter.metrics.measure import Measure
from veilmeter.metrics.utility.catalog import UTILITY

_NOE20 = "Noé et al. 2020"
_NOE22 = "Noé et al. 2022"
_VAUQUIER = "Vauquier et al. 2025"
_CHAMPION = "Champion et al. 2021"
_BACKSTROM = "Bäckström et al. 2025"
_PAIRS = {"OO": "among the original voices", "OP": "between original and protected voices, signed",
          "PP": "among the protected voices"}  # fmt: skip
_DIAGONAL = "(mean of the diagonal − mean of the rest) of the matrix of similarities"

_OF_SIMILARITY = (
    Measure(
        "deid", "DeID", "percent", "higher",
        "How much of the link between a speaker's original and protected voice is gone; 100 % is all.",
        _NOE20, "similarity", "1 − D_diag(OP) / D_diag(OO)", -inf, 100, bar=100,
    ),
    Measure(
        "g_vd", "G_VD", "dB", "neither",
        "How distinct the protected voices stay from each other; 0 dB is as distinct as the originals.",
        _NOE20, "similarity", "10 log₁₀ (D_diag(PP) / D_diag(OO))",
    ),
    *(
        Measure(
            f"d_diag_{kind.lower()}", f"D_diag({kind})", "", "lower" if kind == "OP" else "neither",
            f"Diagonal dominance {where}.", _NOE20, "similarity", _DIAGONAL, -1, 1,
        )
        for kind, where in _PAIRS.items()
    ),
    *(
        Measure(
            f"d_diag_{kind.lower()}_modulus", f"|D_diag({kind})|", "", "lower" if kind == "OP" else "neither",
            f"D_diag({kind}) without its sign, as the papers define it.", _NOE20, "similarity", f"|{_DIAGONAL}|", 0, 1,
        )
        for kind in _PAIRS
    ),
    *(
        Measure(
            f"d_diag_{kind.lower()}_log", f"log D_diag({kind})", "bit", "lower" if kind == "OP" else "neither",
            f"Diagonal dominance of the logarithms of the similarities ({kind}): bits, which add up.",
            _NOE22, "similarity", "(mean of the diagonal − mean of the rest) of log₂ of the similarities",
        )
        for kind in _PAIRS
    ),
)  # fmt: skip

_OF_SESSIONS = (
    Measure(
        "linkability_within_session", "Linkability within a session", "probability", "neither",
        "The chance that a recording is linked to its speaker within one session; pseudonyms should allow it.",
        "cf. Noé et al. 2020", "sessions", "", 0, 1,
    ),
    Measure(
        "linkability_across_sessions", "Linkability across sessions", "probability", "lower",
        "The same for the speaker's protected voice in another session; pseudonyms should not allow it.",
        "cf. Noé et al. 2020", "sessions", "", 0, 1,
    ),
    Measure(
        "linkability_to_original", "Linkability to the original", "probability", "lower",
        "The same for the speaker's original voice.", "cf. Noé et al. 2020", "sessions", "", 0, 1,
    ),
)  # fmt: skip

_LEGAL = (
    Measure(
        "linkability", "Linkability", "probability", "lower",
        "The chance that a protected recording is linked to the right person among N' enrolled ones.",
        _VAUQUIER, "linking", "mean over recordings of C(K−r, N′−1) / C(K, N′−1), r the better impostors among K", 0, 1,
    ),
    Measure(
        "singling_out", "Singling Out", "probability", "lower",
        "The chance that an attacker's rule picks out exactly one person among N.",
        _VAUQUIER, "singling_out", "Pr{exactly one of N scores above the threshold}", 0, 1,
    ),
    Measure(
        "residual_risk", "risk beyond the control", "probability", "lower",
        "Singling Out beyond what a rule without knowledge of anybody achieves.",
        _VAUQUIER, "singling_out", "(attack − control) / (1 − control)", -inf, 1,
    ),
    Measure(
        "control", "control", "probability", "neither",
        "How often a rule picks out exactly one person though it knows nobody: what Singling Out starts from.",
        "cf. Giomi et al. 2023", "singling_out", "the same, with the rule of a person who is not among the N", 0, 1,
    ),
    Measure(
        "hit_share", "isolates the right one", "probability", "lower",
        "Of the people picked out, the share that the attacker was after.",
        _VAUQUIER, "singling_out", "Pr{the one above the threshold is the enrolled person | exactly one is}", 0, 1,
    ),
    Measure(
        "one_minus_eer", "1-EER", "probability", "lower",
        "The accuracy of the verification attack, beside the legal measures; 0.5 is guessing.",
        _VAUQUIER, "verification", "1 − EER", 0, 1,
    ),
    Measure(
        "rank_disclosure", "rank disclosure", "bit", "lower",
        "What the true speaker's rank among N gives away on average.", _BACKSTROM, "linking", "log₂ N − H(rank)", 0,
    ),
    Measure(
        "rank_disclosure_worst", "worst rank disclosure", "bit", "lower", "What the most telling rank gives away.",
        _BACKSTROM, "linking", "maxₖ log₂ (N Pr{rank = k})", 0,
    ),
    Measure(
        "cmc", "top-k identification", "probability", "lower",
        "The chance that the right person is among the k best matches.",
        "ISO/IEC 19795-1", "linking", "Pr{rank ≤ k}", 0, 1,
    ),
    Measure(
        "identity_tpr@fpr", "TPR, own threshold each", "probability", "lower",
        "The share of a person's recordings recognized with a threshold of their own that almost nobody else passes.",
        "VoxGuard 2025", "verification", "", 0, 1, family_label="TPR, own threshold each, at FPR",
    ),
    Measure(
        "population_linkability", "Linkability in a population", "probability", "lower",
        "Linkability extrapolated by a model to a population larger than was measured.",
        "cf. Rocher et al. 2025", "linking",
        "mean over recordings of F(z)^(N′−1), F the distribution of impostor scores with a Pareto tail", 0, 1,
    ),
)  # fmt: skip

_OF_ATTACKS = (
    Measure(
        "top1", "Top-1", "percent", "lower",
        "After inversion, the share of anonymized recordings whose nearest clear recording is by the same speaker.",
        _CHAMPION, "inversion", "share of recordings whose nearest neighbor after inversion is the same speaker",
        0, 100, bar=100,
    ),
    Measure(
        "top1_clear", "Top-1 (clear to restored)", "percent", "lower",
        "The share of clear recordings whose nearest restored recording is by the same speaker: the paper's direction.",
        _CHAMPION, "inversion", "", 0, 100, bar=100,
    ),
    Measure(
        "top_k", "Top-k", "percent", "lower",
        "After inversion, the share of recordings with the right speaker among the k nearest clear recordings.",
        _CHAMPION, "inversion", "", 0, 100,
    ),
    Measure(
        "learning_linkability", "Linkability with more effort", "probability", "lower",
        "The chance of a link when the attacker has fewer or more runs, recordings or other people's speech.",
        "veilmeter", "linking", "the Linkability of the same attack with part of what there is", 0, 1,
    ),
    Measure(
        "inference", "attribute inference", "percent", "lower",
        "How often an attribute (gender, accent) is guessed right from protected speech, balanced over its values.",
        "Opinion 05/2014", "inference", "mean over values of the share guessed right", 0, 100, bar=100,
    ),
)  # fmt: skip

CATALOG: tuple[Measure, ...] = (*_OF_SIMILARITY, *_OF_SESSIONS, *_LEGAL, *_OF_ATTACKS, *UTILITY)
