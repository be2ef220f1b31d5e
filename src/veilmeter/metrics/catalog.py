"""The measures that veilmeter brings: their words, equations, ranges and sections, each once."""

from __future__ import annotations

from math import inf

from veilmeter.metrics.measure import Measure
from veilmeter.metrics.scores.zebra import MAX_D_ECE
from veilmeter.metrics.utility.catalog import UTILITY

_BRUMMER = "Brümmer & du Preez 2006"
_NOE20 = "Noé et al. 2020"
_NOE22 = "Noé et al. 2022"
_VAUQUIER = "Vauquier et al. 2025"
_CHAMPION = "Champion et al. 2021"
_BACKSTROM = "Bäckström et al. 2025"
_PAIRS = {"OO": "among the original voices", "OP": "between original and protected voices, signed",
          "PP": "among the protected voices"}  # fmt: skip
_DIAGONAL = "(mean of the diagonal − mean of the rest) of the matrix of similarities"

_OF_SCORES = (
    Measure(
        "eer", "EER", "percent", "higher",
        "The error rate where an attacker wrongly accepts as often as they wrongly reject; 50 % is guessing.",
        "ISO/IEC 19795-1", "verification", "FNR(θ) = FPR(θ), on the convex hull of the ROC", 0, 100, bar=50,
    ),
    Measure(
        "cllr", "Cllr", "bit", "higher",
        "The cost of taking the raw scores at face value as evidence; above 1 a coin is better.",
        _BRUMMER, "disclosure", "½⟨log₂(1+e⁻ˢ)⟩ over true pairs + ½⟨log₂(1+eˢ)⟩ over false pairs", 0,
    ),
    Measure(
        "min_cllr", "min Cllr", "bit", "higher",
        "The same cost once the attacker has calibrated the scores as well as can be; 1 means no information.",
        _BRUMMER, "disclosure",
        "½⟨log₂(1+e⁻ˡ)⟩ over true pairs + ½⟨log₂(1+eˡ)⟩ over false pairs, l by isotonic regression", 0, 1,
    ),
    Measure(
        "calibration_loss", "calibration loss", "bit", "neither",
        "What the attacker loses by not calibrating: Cllr minus min Cllr.",
        _BRUMMER, "disclosure", "Cllr − min Cllr", 0,
    ),
    Measure(
        "tpr@fpr", "TPR at low FPR", "percent", "lower",
        "The share of true pairs recognized by an attacker who only strikes when sure, accepting almost no false pair.",
        "VoxGuard 2025", "verification", "TPR(θ) at the lowest θ with FPR(θ) at most the given rate", 0, 100,
        family_label="TPR at FPR",
    ),
    Measure(
        "d_sys", "D_sys", "", "lower",
        "How far the scores of true pairs stand apart from those of false pairs, from 0 to 1; biased upwards.",
        "Gomez-Barrero et al. 2017", "verification", "∫ max(0, 2·LR/(1+LR) − 1) p(s | true pair) ds", 0, 1,
    ),
    Measure(
        "d_ece", "D_ECE", "bit", "lower",
        f"The information a trial discloses about identity on average over all prior beliefs; {MAX_D_ECE:.3f} is all.",
        _NOE22, "disclosure", "∫₀¹ [H(π) − ECE(π)] dπ = (⟨Z(l)⟩ + ⟨Z(−l)⟩) / (2 ln 2)", 0, MAX_D_ECE, bar=MAX_D_ECE,
    ),
    Measure(
        "l_w", "l_w", "log10", "lower",
        "The strongest evidence that any single trial gives, in powers of ten of the likelihood ratio.",
        _NOE22, "disclosure", "max |l| / ln 10, with Laplace's rule of succession", 0, bar=6,
    ),
    Measure(
        "c_ece", "C_ECE", "bit", "lower",
        "The information an attacker gets who calibrated on another run of the same anonymizer; below 0 it misleads.",
        _NOE22, "disclosure", "D_ECE of scores calibrated on another run", -inf, MAX_D_ECE,
    ),
    Measure(
        "d_ece_op_oo", "D_ECE removed", "percent", "higher",
        "The share of the original disclosure that the anonymizer removes (eq. 17).",
        _NOE22, "disclosure", "1 − D_ECE(OP) / D_ECE(OO)", -inf, 100,
    ),
    Measure(
        "min_cllr_op_oo", "min Cllr removed", "percent", "higher", "The same share measured with min Cllr (eq. 18).",
        _NOE22, "disclosure", "(min Cllr(OP) − min Cllr(OO)) / (1 − min Cllr(OO))", -inf, 100,
    ),
    Measure(
        "g_d_ece", "G of D_ECE", "dB", "neither",
        "How distinct the protected voices stay from each other, by D_ECE (eq. 19).",
        _NOE22, "disclosure", "10 log₁₀ (D_ECE(PP) / D_ECE(OO))",
    ),
    Measure(
        "g_min_cllr", "G of min Cllr", "dB", "neither",
        "How distinct the protected voices stay from each other, by min Cllr (eq. 20).",
        _NOE22, "disclosure", "10 log₁₀ ((1 − min Cllr(PP)) / (1 − min Cllr(OO)))",
    ),
)  # fmt: skip

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
        "learning_eer", "EER with more effort", "percent", "higher",
        "The attacker's EER when it has fewer or more of its own runs, enrollment recordings or other people's speech.",
        "veilmeter", "verification", "the EER of the same attack with part of what there is", 0, 100, bar=50,
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

CATALOG: tuple[Measure, ...] = (*_OF_SCORES, *_OF_SIMILARITY, *_OF_SESSIONS, *_LEGAL, *_OF_ATTACKS, *UTILITY)
