"""The measures of utility: their words, equations and ranges, each once. None says anything of privacy."""

from __future__ import annotations

from veilmeter.metrics.measure import Measure

_SECTION = "utility"
_WORDS = "cf. Tomashenko et al. 2022"
_DISTILL = "Stahl & Gamper 2025"
_DNSMOS = "Reddy et al. 2022"

UTILITY = (
    Measure(
        "wer", "word error rate", "percent", "neither",
        "Of 100 words, how many a speech recognizer gets wrong in anonymized speech: replaced, lost or added.",
        _WORDS, _SECTION, "(substitutions + deletions + insertions) / words of the reference", 0, bar=100, use="lower",
    ),
    Measure(
        "d_wer", "word error rate, increase", "percent", "neither",
        "How many more of 100 words the recognizer gets wrong than in the original speech, in percentage points.",
        _WORDS, _SECTION, "WER of anonymized − WER of original speech", use="lower",
    ),
    Measure(
        "cer", "character error rate", "percent", "neither",
        "The same as the word error rate for characters: small slips count less.",
        _WORDS, _SECTION, "(substitutions + deletions + insertions) / characters of the reference", 0, bar=100,
        use="lower",
    ),
    Measure(
        "d_cer", "character error rate, increase", "percent", "neither",
        "How many more of 100 characters are wrong than in the original speech, in percentage points.",
        _WORDS, _SECTION, "CER of anonymized − CER of original speech", use="lower",
    ),
    Measure(
        "mos", "MOS (Distill-MOS)", "", "neither",
        "How good it sounds, from 1 (bad) to 5 (excellent), as a model predicts what listeners would say.",
        _DISTILL, _SECTION, "mean over stretches of 7.68 s", 1, 5, use="higher",
    ),
    Measure(
        "d_mos", "MOS, change", "", "neither",
        "How much better it sounds than the original speech; below 0 it sounds worse.",
        _DISTILL, _SECTION, "MOS of anonymized − MOS of original speech", -4, 4, use="higher",
    ),
    Measure(
        "dnsmos_sig", "DNSMOS speech", "", "neither",
        "How undistorted the speech itself is, from 1 to 5, as a model predicts what listeners would say.",
        _DNSMOS, _SECTION, "P.835 SIG, mean over stretches of 9.01 s", 0, 5, use="higher",
    ),
    Measure(
        "dnsmos_bak", "DNSMOS background", "", "neither",
        "How little the background disturbs, from 1 to 5, as a model predicts what listeners would say.",
        _DNSMOS, _SECTION, "P.835 BAK, mean over stretches of 9.01 s", 0, 5, use="higher",
    ),
    Measure(
        "dnsmos_ovr", "DNSMOS overall", "", "neither",
        "How clean it is overall, from 1 to 5, as a model predicts what listeners would say.",
        _DNSMOS, _SECTION, "P.835 OVRL, mean over stretches of 9.01 s", 0, 5, use="higher",
    ),
    Measure(
        "pitch_correlation", "pitch correlation", "", "neither",
        "Whether the melody survives: 1 if the pitch rises and falls as in the original, 0 if it has nothing to do "
        "with it.",
        _WORDS, _SECTION, "Pearson's ρ of F0 over frames voiced on both sides, at the best lag", -1, 1, use="higher",
    ),
    Measure(
        "duration_ratio", "duration ratio", "", "neither",
        "How long the anonymized recording is, compared with the original one; 1 is as long.",
        "veilmeter", _SECTION, "seconds of anonymized / seconds of original speech", 0,
    ),
    Measure(
        "level_difference", "level difference", "dB", "neither",
        "How much louder the anonymized recording is than the original one; below 0 it is quieter.",
        "veilmeter", _SECTION, "10 log₁₀(mean square of anonymized / of original samples)",
    ),
    Measure(
        "real_time_factor", "real-time factor", "", "neither",
        "How long one processor works to anonymize a second of speech, in seconds; below 1 it keeps up with live "
        "speech.",
        "veilmeter", _SECTION, "processing time / duration", 0, use="lower",
    ),
    Measure(
        "label_recall", "label recall", "percent", "neither",
        "How well what an utterance expresses, such as an emotion, can still be told from anonymized speech, balanced "
        "over its values.",
        _WORDS, _SECTION, "unweighted average recall (UAR) over the values", 0, 100, bar=100, use="higher",
    ),
)  # fmt: skip
