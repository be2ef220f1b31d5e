"""Every measure in one table: what it is called, what it means in a sentence, which direction is private.

The command's tables, the README, the documentation and the report all read it here.
"""

from __future__ import annotations

from dataclasses import dataclass

from veilmeter.core.estimate import Private


@dataclass(frozen=True, slots=True)
class Measure:
    """`meaning` is one sentence for a person who has never heard of it; `source` the paper or standard."""

    name: str
    label: str
    unit: str
    better: Private
    meaning: str
    source: str


_NOE22 = "Noé et al. 2022"
_VAUQUIER = "Vauquier et al. 2025"
_CHAMPION = "Champion et al. 2021"

MEASURES: dict[str, Measure] = {
    m.name: m
    for m in [
        Measure("eer", "EER", "percent", "higher",
                "The error rate at the threshold where an attacker wrongly accepts as often as they wrongly reject; "
                "50 % is guessing.", "ISO/IEC 19795-1"),
        Measure("cllr", "Cllr", "bit", "higher",
                "The cost of taking the raw scores at face value as evidence; above 1 a coin is better.",
                "Brümmer & du Preez 2006"),
        Measure("min_cllr", "min Cllr", "bit", "higher",
                "The same cost once the attacker has calibrated the scores as well as can be; 1 means no information.",
                "Brümmer & du Preez 2006"),
        Measure("calibration_loss", "calibration loss", "bit", "neither",
                "What the attacker loses by not calibrating: Cllr minus min Cllr.", "Brümmer & du Preez 2006"),
        Measure("tpr@fpr", "TPR at low FPR", "percent", "lower",
                "The share of true pairs recognised when almost no false ones are accepted: the attacker who only "
                "strikes when sure.", "VoxGuard 2025"),
        Measure("d_sys", "D_sys", "", "lower",
                "How far the scores of true pairs stand apart from those of false pairs, from 0 to 1; biased upwards.",
                "Gomez-Barrero et al. 2017"),
        Measure("d_ece", "D_ECE", "bit", "lower",
                "The information a trial discloses about identity on average over all prior beliefs; 0.721 is all.",
                _NOE22),
        Measure("l_w", "l_w", "log10", "lower",
                "The strongest evidence that any single trial gives, in powers of ten of the likelihood ratio.",
                _NOE22),
        Measure("c_ece", "C_ECE", "bit", "lower",
                "The information an attacker gets who calibrated on another run of the same anonymizer; below 0 it "
                "misleads.", _NOE22),
        Measure("d_ece_op_oo", "D_ECE removed", "percent", "higher",
                "The share of the original disclosure that the anonymizer removes (eq. 17).", _NOE22),
        Measure("min_cllr_op_oo", "min Cllr removed", "percent", "higher",
                "The same share measured with min Cllr (eq. 18).", _NOE22),
        Measure("g_d_ece", "G of D_ECE", "dB", "neither",
                "How distinct the protected voices stay from each other, by D_ECE (eq. 19).", _NOE22),
        Measure("g_min_cllr", "G of min Cllr", "dB", "neither",
                "How distinct the protected voices stay from each other, by min Cllr (eq. 20).", _NOE22),
        Measure("deid", "DeID", "percent", "higher",
                "How much of the link between a speaker's original and protected voice is gone; 100 % is all.",
                "Noé et al. 2020"),
        Measure("g_vd", "G_VD", "dB", "neither",
                "How distinct the protected voices stay from each other; 0 dB is as distinct as the originals.",
                "Noé et al. 2020"),
        Measure("d_diag_oo", "D_diag(OO)", "", "neither", "Diagonal dominance among the original voices.",
                "Noé et al. 2020"),
        Measure("d_diag_op", "D_diag(OP)", "", "lower",
                "Diagonal dominance between original and protected voices, signed.", "Noé et al. 2020"),
        Measure("d_diag_pp", "D_diag(PP)", "", "neither", "Diagonal dominance among the protected voices.",
                "Noé et al. 2020"),
        *(Measure(f"d_diag_{kind.lower()}_modulus", f"|D_diag({kind})|", "", "lower" if kind == "OP" else "neither",
                  f"D_diag({kind}) without its sign, as the papers define it.", "Noé et al. 2020")
          for kind in ("OO", "OP", "PP")),
        *(Measure(f"d_diag_{kind.lower()}_log", f"log D_diag({kind})", "bit", "lower" if kind == "OP" else "neither",
                  f"Diagonal dominance of the logarithms of the similarities ({kind}): bits, which add up.", _NOE22)
          for kind in ("OO", "OP", "PP")),
        Measure("linkability_within_session", "Linkability within a session", "probability", "neither",
                "The chance that a protected recording is linked to its speaker's protected voice in the same session; "
                "pseudonyms should allow it.", "cf. Noé et al. 2020"),
        Measure("linkability_across_sessions", "Linkability across sessions", "probability", "lower",
                "The same for the speaker's protected voice in another session; pseudonyms should not allow it.",
                "cf. Noé et al. 2020"),
        Measure("linkability_to_original", "Linkability to the original", "probability", "lower",
                "The same for the speaker's original voice.", "cf. Noé et al. 2020"),
        Measure("linkability", "Linkability", "probability", "lower",
                "The chance that a protected recording is linked to the right person among N' enrolled ones.",
                _VAUQUIER),
        Measure("singling_out", "Singling Out", "probability", "lower",
                "The chance that an attacker's rule picks out exactly one person among N.", _VAUQUIER),
        Measure("residual_risk", "residual risk", "probability", "lower",
                "Singling Out beyond what a rule without knowledge of anybody achieves.", _VAUQUIER),
        Measure("control", "control", "probability", "neither",
                "How often a rule picks out exactly one person though it knows nobody: what Singling Out starts from.",
                "cf. Giomi et al. 2023"),
        Measure("hit_share", "isolates the right one", "probability", "lower",
                "Of the people picked out, the share that the attacker was after.", _VAUQUIER),
        Measure("one_minus_eer", "1-EER", "probability", "lower",
                "The accuracy of the verification attack, beside the legal measures; 0.5 is guessing.", _VAUQUIER),
        Measure("rank_disclosure", "rank disclosure", "bit", "lower",
                "What the true speaker's rank among N gives away on average.", "Bäckström et al. 2025"),
        Measure("rank_disclosure_worst", "worst rank disclosure", "bit", "lower",
                "What the most telling rank gives away.", "Bäckström et al. 2025"),
        Measure("cmc", "top-k identification", "probability", "lower",
                "The chance that the right person is among the k best matches.", "ISO/IEC 19795-1"),
        Measure("identity_tpr@fpr", "TPR, own threshold each", "probability", "lower",
                "The share of a person's recordings recognised when the threshold is set for that person so that "
                "almost nobody else is.", "VoxGuard 2025"),
        Measure("population_linkability", "Linkability in a population", "probability", "lower",
                "Linkability extrapolated by a model to a population larger than was measured.",
                "cf. Rocher et al. 2025"),
        Measure("top1", "Top-1", "percent", "lower",
                "After inversion, the share of anonymized recordings whose nearest clear recording is by the same "
                "speaker.", _CHAMPION),
        Measure("top1_clear", "Top-1 (clear to restored)", "percent", "lower",
                "The share of clear recordings whose nearest restored recording is by the same speaker: the direction "
                "of the paper's table.", _CHAMPION),
        Measure("top_k", "Top-k", "percent", "lower",
                "After inversion, the share of anonymized recordings with the right speaker among the k nearest clear "
                "recordings.", _CHAMPION),
        Measure("inference", "attribute inference", "percent", "lower",
                "How often an attribute (gender, accent) is guessed right from protected speech, balanced over its "
                "values.", "Opinion 05/2014"),
    ]
}  # fmt: skip


def measure(name: str) -> Measure:
    """The measure's entry; `tpr@fpr=0.01` and the like fall back to their family."""
    return MEASURES[name] if name in MEASURES else MEASURES[name.split("=")[0]]
