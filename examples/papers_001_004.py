"""The measures of Noé et al. 2020 and 2022 on VoicePrivacy 2020 data, beside what the public tools give.

    python examples/papers_001_004.py DATA

DATA holds PLDA scores and x-vectors of LibriSpeech test-clean, original and anonymized with baseline B1, in
`extractor-original/` and `extractor-retrained/`, each with `results/ASV-<enrollment>-<trials>/scores` and
`xvect_libri_test_{enrolls,trials_f,trials_m}[_anon]/`. Prints Markdown; takes a few seconds.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import get_args

from veilmeter.core.errors import VeilmeterError
from veilmeter.core.estimate import Estimate
from veilmeter.data.formats.vectors import read_embeddings
from veilmeter.data.scores import Scores, read_scores
from veilmeter.metrics.scores.score_sets import compare_sets
from veilmeter.metrics.scores.summary import measure
from veilmeter.metrics.similarity.matrices import Form, Pairs, similarity

KINDS = {"OO": ("", ""), "OP": ("", "_anon"), "PP": ("_anon", "_anon")}
EXTRACTORS = ("original", "retrained")
MEASURES = ("eer", "cllr", "min_cllr", "d_ece", "l_w", "d_sys")
DIGITS = (3, 4, 6, 6, 5, 6)

# What the authors' public tools, or an independent implementation of the same definitions, give for the same files:
# ROCCH-EER in percent, Cllr, min Cllr and D_ECE in bit, l_w in powers of ten, its tag, D_sys.
TOOLS: dict[tuple[str, str, str], tuple[float, float, float, float, float, str, float]] = {
    ("original", "f", "OO"): (7.165, 26.7933, 0.183501, 0.58391, 3.97867, "C", 0.897723),
    ("original", "f", "OP"): (46.017, 151.0516, 0.993146, 0.004643, 0.29717, "A", 0.08717),
    ("original", "f", "PP"): (30.943, 15.7874, 0.829818, 0.116676, 2.00925, "C", 0.30219),
    ("original", "m", "OO"): (1.046, 15.3033, 0.041226, 0.689991, 3.92448, "C", 0.957511),
    ("original", "m", "OP"): (49.765, 166.7134, 0.999571, 0.000295, 0.19317, "A", 0.074432),
    ("original", "m", "PP"): (36.281, 34.9699, 0.908991, 0.062126, 2.10166, "C", 0.189728),
    ("retrained", "f", "OO"): (13.98, 10.5267, 0.468802, 0.371983, 3.37098, "C", 0.681753),
    ("retrained", "f", "OP"): (47.85, 48.8926, 0.99573, 0.002864, 0.49737, "A", 0.065458),
    ("retrained", "f", "PP"): (11.278, 2.8319, 0.364127, 0.450819, 3.2241, "C", 0.708347),
    ("retrained", "m", "OO"): (11.623, 15.8436, 0.405481, 0.418426, 2.70372, "C", 0.691291),
    ("retrained", "m", "OP"): (47.744, 73.7602, 0.986636, 0.009375, 0.88332, "A", 0.063673),
    ("retrained", "m", "PP"): (9.171, 3.9413, 0.305124, 0.493075, 2.92557, "C", 0.719449),
}


def scores_of(data: Path, extractor: str, gender: str, kind: str) -> Scores:
    enroll, test = KINDS[kind]
    root = data / f"extractor-{extractor}"
    trials = f"libri_test_trials_{gender}"
    file = root / "results" / f"ASV-libri_test_enrolls{enroll}-{trials}{test}" / "scores"
    return read_scores(file, root / f"xvect_{trials}" / "meta" / "trials")


def score_table(sets: dict[tuple[str, str, str], Scores]) -> list[str]:
    """Every measure of the 12 score files, in brackets what the public tools give."""
    rows = [
        "| extractor | set | scores | ROCCH-EER | Cllr | min Cllr | D_ECE | l_w | tag | D_sys |",
        "|---|---|---|---:|---:|---:|---:|---:|---|---:|",
    ]
    for (extractor, gender, kind), scores in sets.items():
        found = measure(scores, intervals=False)
        theirs = TOOLS[extractor, gender, kind]
        numbers = [*theirs[:5], theirs[6]]
        cells = []
        for name, digits, other in zip(MEASURES, DIGITS, numbers, strict=True):
            one = found[name]
            assert isinstance(one, Estimate)
            cells.append(f"{one.value:.{digits}f} ({other:.{digits}f})")
            if name == "l_w":
                cells.append(f"{one.extra['tag']} ({theirs[5]})")
        rows.append(f"| {extractor} | {gender.upper()} | {kind} | " + " | ".join(cells) + " |")
    return rows


def normalised_table(sets: dict[tuple[str, str, str], Scores]) -> list[str]:
    """Eq. 17-20 of the 2022 paper."""
    rows = ["| extractor | set | eq. 17, % | eq. 18, % | eq. 19, dB | eq. 20, dB |", "|---|---|---:|---:|---:|---:|"]
    for extractor in EXTRACTORS:
        for gender in "fm":
            found = compare_sets(*(sets[extractor, gender, kind] for kind in KINDS), intervals=False)
            names = ("d_ece_op_oo", "min_cllr_op_oo", "g_d_ece", "g_min_cllr")
            cells = " | ".join(f"{found[name].value:.4f}" for name in names)
            rows.append(f"| {extractor} | {gender.upper()} | {cells} |")
    return rows


def similarity_table(data: Path) -> list[str]:
    """DeID and G_VD by both definitions and both choices of pairs."""
    rows = [
        "| set | pairs | form | D_diag(OO) | D_diag(OP) | D_diag(PP) | DeID, % | G_VD, dB |",
        "|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for gender in "fm":
        folder = data / "extractor-original"
        clear = read_embeddings(folder / f"xvect_libri_test_trials_{gender}")
        anonymized = read_embeddings(folder / f"xvect_libri_test_trials_{gender}_anon")
        anonymized = anonymized.of_utterances(list(clear.utterances))
        for pairs in get_args(Pairs):
            both = similarity(clear.vectors, anonymized.vectors, clear.speakers, pairs=pairs)
            for form in get_args(Form):
                found = both.with_form(form)
                d = {kind: round(value, 6) + 0.0 for kind, value in found.d_diag.items()}  # no -0.000000
                rows.append(
                    f"| {gender.upper()} | {pairs} | {form} | {d['OO']:.6f} | {d['OP']:.6f} | {d['PP']:.6f} "
                    f"| {found.deid:.3f} | {found.g_vd:.3f} |"
                )
    return rows


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    data = Path(arguments[0])
    try:
        sets = {
            (extractor, gender, kind): scores_of(data, extractor, gender, kind)
            for extractor in EXTRACTORS
            for gender in "fm"
            for kind in KINDS
        }
        parts = [score_table(sets), normalised_table(sets), similarity_table(data)]
    except VeilmeterError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n\n".join("\n".join(part) for part in parts))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
