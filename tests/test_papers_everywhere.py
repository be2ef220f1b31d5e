"""The papers' numbers in a clone without the papers' data: their measures on synthetic voices, against slow code
written from the papers alone, and the tables of the docs against the reference values."""

from __future__ import annotations

import math
import re
import runpy
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.synthetic_challenge import EXTRACTORS, write_challenge

from veilmeter.core.estimate import Estimate
from veilmeter.data.scores import read_scores
from veilmeter.metrics.scores.score_sets import compare_sets
from veilmeter.metrics.scores.summary import measure

ROOT = Path(__file__).parents[1]
KINDS = {"OO": ("", ""), "OP": ("", "_anon"), "PP": ("_anon", "_anon")}
TOLERANCES = {"d_ece": 1e-5, "l_w": 1e-4, "cllr": 1e-3, "min_cllr": 1e-4, "eer": 0.01, "d_sys": 1e-5}


@pytest.fixture(scope="module")
def challenge(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_challenge(tmp_path_factory.mktemp("challenge"))


def files(root: Path, extractor: str, gender: str, kind: str) -> tuple[Path, Path]:
    enroll, test = KINDS[kind]
    folder = root / f"extractor-{extractor}"
    name = f"ASV-libri_test_enrolls{enroll}-libri_test_trials_{gender}{test}"
    return folder / "results" / name / "scores", folder / f"xvect_libri_test_trials_{gender}" / "meta" / "trials"


def trials(root: Path, extractor: str, gender: str, kind: str) -> tuple[list[float], list[float]]:
    """Target and impostor scores, read word by word."""
    scores, key = files(root, extractor, gender, kind)
    label = {tuple(line.split()[:2]): line.split()[2] for line in key.read_text().splitlines()}
    sides: dict[str, list[float]] = {"target": [], "nontarget": []}
    for line in scores.read_text().splitlines():
        speaker, utterance, score = line.split()
        sides[label[speaker, utterance]].append(float(score))
    return sides["target"], sides["nontarget"]


def oracle(targets: list[float], impostors: list[float], laplace: bool = False) -> tuple[list[float], list[float]]:
    """LLRs of isotonic regression by its min-max formula: of each score, the largest over all stretches that end above
    it of the smallest share of targets."""
    labels = [(score, 1.0) for score in targets] + [(score, 0.0) for score in impostors]
    if laplace:
        low, high = min(labels)[0] - 1, max(labels)[0] + 1
        labels += [(low, 1.0), (low, 0.0), (high, 1.0), (high, 0.0)]
    distinct = sorted({score for score, _ in labels})
    place = {score: number for number, score in enumerate(distinct)}
    hits, counts = np.zeros(len(distinct)), np.zeros(len(distinct))
    for score, label in labels:
        hits[place[score]] += label
        counts[place[score]] += 1
    up_to = [np.concatenate([[0.0], np.cumsum(column)]) for column in (hits, counts)]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.subtract.outer(up_to[0], up_to[0]) / np.subtract.outer(up_to[1], up_to[1])
    # share[b, a] is that of the stretch from a to b: first the least over all that end above, then the largest.
    least = np.minimum.accumulate(share[:0:-1], axis=0)[::-1]
    posterior = [float(least[i, : i + 1].max()) for i in range(len(distinct))]
    prior = math.log(len(targets) / len(impostors))

    def llr(score: float) -> float:
        p = posterior[place[score]]
        return -math.inf if p <= 0 else math.inf if p >= 1 else math.log(p / (1 - p)) - prior

    return [llr(score) for score in targets], [llr(score) for score in impostors]


def slow_cllr(targets: list[float], impostors: list[float]) -> float:
    def cost(llr: float) -> float:
        return 0.0 if llr == math.inf else math.log2(1 + math.exp(-llr)) if llr > -700 else -llr / math.log(2)

    return 0.5 * (np.mean([cost(x) for x in targets]) + np.mean([cost(-x) for x in impostors]))


def slow_d_ece(targets: list[float], impostors: list[float]) -> float:
    """The area between the entropy of the prior and the empirical cross-entropy, over all priors."""
    prior = (np.arange(4000) + 0.5) / 4000
    odds = np.log(prior / (1 - prior))
    entropy = -prior * np.log2(prior) - (1 - prior) * np.log2(1 - prior)
    missed = np.mean([np.log2(1 + np.exp(-x - odds)) for x in targets], axis=0)
    alarmed = np.mean([np.log2(1 + np.exp(x + odds)) for x in impostors], axis=0)
    return float(np.mean(entropy - prior * missed - (1 - prior) * alarmed))


def slow_hull_eer(targets: list[float], impostors: list[float]) -> float:
    """The lowest point with equal rates on any line between two thresholds."""
    thresholds = sorted({*targets, *impostors, math.inf})
    points = [(sum(x < t for x in targets) / len(targets), sum(x >= t for x in impostors) / len(impostors))
              for t in thresholds]  # fmt: skip
    best = min(max(point) for point in points)
    for (m1, f1), (m2, f2) in combinations(points, 2):
        slope = (m2 - m1) - (f2 - f1)
        share = (f1 - m1) / slope if slope else -1.0
        if 0 <= share <= 1:
            best = min(best, m1 + share * (m2 - m1))
    return 100 * best


def slow_d_sys(targets: list[float], impostors: list[float]) -> float:
    bins = min(len(targets) // 10, 100)
    low, high = min(targets + impostors), max(targets + impostors)
    width = (high - low) / bins

    def densities(scores: list[float]) -> list[float]:
        held = [0] * bins
        for score in scores:
            held[min(int((score - low) / width), bins - 1)] += 1
        return [count / len(scores) / width for count in held]

    mated, other = densities(targets), densities(impostors)
    linked = [
        0.0 if not m else 1.0 if not n else max(0.0, 2 * (m / n) / (1 + m / n) - 1)
        for m, n in zip(mated, other, strict=True)
    ]
    heights = [share * m for share, m in zip(linked, mated, strict=True)]
    return sum((a + b) / 2 * width for a, b in pairwise(heights))


def slow_measures(targets: list[float], impostors: list[float]) -> dict[str, float]:
    calibrated = oracle(targets, impostors)
    careful = oracle(targets, impostors, laplace=True)
    return {
        "eer": slow_hull_eer(targets, impostors),
        "cllr": slow_cllr(targets, impostors),
        "min_cllr": slow_cllr(*calibrated),
        "d_ece": slow_d_ece(*calibrated),
        "l_w": max(abs(x) for side in careful for x in side) / math.log(10),
        "d_sys": slow_d_sys(targets, impostors),
    }


@pytest.mark.parametrize("gender", ["f", "m"])
@pytest.mark.parametrize("extractor", EXTRACTORS)
def test_scores_of_a_challenge(challenge: Path, extractor: str, gender: str) -> None:
    slow, sets = {}, []
    for kind in KINDS:
        expected = slow[kind] = slow_measures(*trials(challenge, extractor, gender, kind))
        sets.append(read_scores(*files(challenge, extractor, gender, kind)))
        measured = measure(sets[-1], intervals=False)
        for name, tolerance in TOLERANCES.items():
            point = measured[name]
            assert isinstance(point, Estimate)
            assert point.value == pytest.approx(expected[name], abs=tolerance), (kind, name)
    # Eq. 17-20 of paper 004.
    ratios = compare_sets(*sets, intervals=False)
    for name, figure in (("d_ece", "d_ece"), ("min_cllr", "min_cllr")):
        left = {kind: slow[kind][figure] if name == "d_ece" else 1 - slow[kind][figure] for kind in KINDS}
        assert ratios[f"{name}_op_oo"].value == pytest.approx(100 * (1 - left["OP"] / left["OO"]), abs=0.05)
        assert ratios[f"g_{name}"].value == pytest.approx(10 * math.log10(left["PP"] / left["OO"]), abs=0.02)


def test_the_papers_tables_run_on_any_data_of_their_layout(challenge: Path, capsys: pytest.CaptureFixture[str]) -> None:
    example = runpy.run_path(str(ROOT / "examples" / "papers_001_004.py"))
    assert example["main"]([str(challenge)]) == 0
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|") and "---" not in line]
    assert len(rows) == 3 + 12 + 4 + 8
    assert not any("nan" in row for row in rows)


def test_the_score_table_of_the_docs_is_the_reference(reference: dict[str, Any]) -> None:
    text = (ROOT / "docs" / "validation" / "papers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (original|retrained) \| ([FM]) \| (OO|OP|PP) \| (.+) \|$", text, re.MULTILINE)
    assert len(rows) == 12
    keys = ("rocch_eer_percent", "cllr", "min_cllr", "d_ece_bits", "l_w", "tag", "d_sys")
    limits = (0.01, 1e-3, 1e-4, 1e-5, 1e-4, 0, 1e-5)
    for extractor, gender, kind, cells in rows:
        enroll, test = KINDS[kind]
        name = f"ASV-libri_test_enrolls{enroll}-libri_test_trials_{gender.lower()}{test}"
        expected = reference["scores"][f"extractor-{extractor}"][name]
        for key, limit, cell in zip(keys, limits, cells.split(" | "), strict=True):
            ours = cell.split()[0]
            if key == "tag":
                assert ours == expected[key]
            else:
                assert float(ours) == pytest.approx(expected[key], abs=limit), (name, key)


def test_the_similarity_table_of_the_docs_is_the_reference(reference: dict[str, Any]) -> None:
    text = (ROOT / "docs" / "validation" / "papers.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([FM]) \| (all|vpc) \| (geometric|arithmetic) \| (.+) \|$", text, re.MULTILINE)
    assert len(rows) == 8
    for gender, pairs, form, cells in rows:
        of_pairs = next(e for e in reference["similarity_matrices"][gender.lower()] if e["pairs"] == pairs)[form]
        deid, g_vd = map(float, cells.split(" | ")[3:5])
        assert deid == pytest.approx(of_pairs["deid_percent"], abs=0.01)
        assert g_vd == pytest.approx(of_pairs["g_vd_db"], abs=0.001)
