"""The published x-vectors and scores of VoicePrivacy 2020: an assessment contains the values others measured."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from veilmeter.assessment import make_settings
from veilmeter.assessment.run import run_assessment
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.findings import Finding
from veilmeter.results.model import Results

EXAMPLE = Path(__file__).parents[2] / "examples" / "voiceprivacy2020_b1.toml"
SCORES = {
    "original": ("extractor-original", "ASV-libri_test_enrolls-libri_test_trials_{}"),
    "ignorant": ("extractor-original", "ASV-libri_test_enrolls-libri_test_trials_{}_anon"),
    "lazy-informed": ("extractor-original", "ASV-libri_test_enrolls_anon-libri_test_trials_{}_anon"),
    "informed": ("extractor-retrained", "ASV-libri_test_enrolls_anon-libri_test_trials_{}_anon"),
}
TOLERANCES = {
    "d_ece": ("d_ece_bits", 1e-5), "l_w": ("l_w", 1e-4), "eer": ("rocch_eer_percent", 0.01),
    "cllr": ("cllr", 1e-3), "min_cllr": ("min_cllr", 1e-4), "d_sys": ("d_sys", 1e-5),
}  # fmt: skip
# Lines of Table 2 of Champion et al. 2021 as variants of the inversion.
LINES: dict[int, dict[str, Any]] = {
    5: {"pca": 0}, 6: {"pca": 0, "by": "gender"}, 7: {"pca": 70}, 8: {"pca": 70, "by": "gender"},
    9: {"pca": 0, "extractor": "informed"}, 10: {"pca": 0, "by": "gender", "extractor": "informed"},
    11: {"pca": 70, "extractor": "informed"}, 12: {"pca": 70, "by": "gender", "extractor": "informed"},
}  # fmt: skip


def placed(value: Any, root: Path) -> Any:
    if isinstance(value, dict):
        return {key: placed(item, root) for key, item in value.items()}
    if isinstance(value, list):
        return [placed(item, root) for item in value]
    return str(root / value) if isinstance(value, str) and value.startswith("extractor-") else value


@pytest.fixture(scope="module")
def results(vpc2020: Path) -> Results:
    """The example as it stands, without intervals and without the slowest attacker."""
    values = placed(tomllib.loads(EXAMPLE.read_text()), vpc2020)
    del values["attackers"]["wasserstein-procrustes"]
    values |= {"intervals": False, "lengths": [1], "measures": ["scores", "similarity", "inversion"]}
    return run_assessment(settings=make_settings(values)).results


def only(found: Estimates, name: str) -> Estimate:
    return found.points(name).only()


@pytest.mark.slow
def test_scores(results: Results, reference: dict[str, Any]) -> None:
    for attacker, (extractor, name) in SCORES.items():
        for gender in "fm":
            wanted = reference["scores"][extractor][name.format(gender)]
            found = results.attackers[attacker].by["gender"][gender]
            for measure, (key, tolerance) in TOLERANCES.items():
                assert only(found, measure).value == pytest.approx(wanted[key], abs=tolerance), (attacker, measure)
            assert only(found, "l_w").extra["tag"] == wanted["tag"]
            assert only(found, "eer").n["targets"] == wanted["targets"]
        assert results.attackers[attacker].source == "scores"
        assert results.attackers[attacker].sources["linkability"] == "vectors"


@pytest.mark.slow
def test_normalised_and_similarity(results: Results, reference: dict[str, Any]) -> None:
    for gender in "fm":
        found = results.parts["zebra"].by["gender"][gender]
        names = ("d_ece_op_oo", "min_cllr_op_oo", "g_d_ece", "g_min_cllr")
        for name, wanted in zip(names, reference["normalised"]["extractor-original"][gender], strict=True):
            assert only(found, name).value == pytest.approx(wanted, abs=1e-3)
        for one in reference["similarity_matrices"][gender]:
            for form in ("arithmetic", "geometric"):
                variants = results.parts["similarity"].details["variants_by"]["gender"][gender]
                values = variants[f"{form}, {one['pairs']} pairs"]
                assert values["deid"] == pytest.approx(one[form]["deid_percent"], abs=0.01)
                assert values["g_vd"] == pytest.approx(one[form]["g_vd_db"], abs=0.001)


def points(found: Estimates, at: dict[str, Any]) -> dict[str, Estimate]:
    """By gender: the points with exactly these parameters."""
    keys = ("pca", "by", "extractor", "centered")
    return {str(p.at["gender"]): p for p in found if {k: p.at[k] for k in keys if k in p.at} == at}


@pytest.mark.slow
def test_inversion(results: Results, reference: dict[str, Any]) -> None:
    table = reference["table2"]["deterministic"]
    inversion = results.parts["inversion"]
    for line, at in LINES.items():
        wanted = table[str(line)]["reached"]
        eers, tops = (points(inversion.estimates.points(name), at) for name in ("eer", "top1_clear"))
        for number, gender in enumerate("fm"):
            assert eers[gender].extra["roc_folded"] == pytest.approx(wanted[number], abs=0.15), line
            assert tops[gender].value == pytest.approx(wanted[2 + number], abs=0.5), line
    plain = inversion.reference.filter(name="eer", attack="none")
    baselines = {(p.at["attacker"], p.at["gender"]): p for p in plain}
    for line, attacker in ((1, "original"), (2, "ignorant"), (3, "lazy-informed"), (4, "informed")):
        for number, gender in enumerate("fm"):
            wanted = table[str(line)]["reached"][number]
            assert baselines[attacker, gender].extra["roc_folded"] == pytest.approx(wanted, abs=0.15), line
    unfolded = reference["table2"]["unfolded_eer_line_2"]
    assert [baselines["ignorant", g].extra["roc"] for g in "fm"] == pytest.approx(unfolded, abs=0.15)
    oracle = inversion.reference.filter(attack="procrustes, oracle")
    at = {"pca": 70, "by": "gender", "extractor": "informed"}
    for number, gender in enumerate("fm"):
        wanted = table["21"]["reached"]
        assert points(oracle.points("eer"), at)[gender].extra["roc_folded"] == pytest.approx(wanted[number], abs=0.15)
        assert points(oracle.points("top1_clear"), at)[gender].value == pytest.approx(wanted[2 + number], abs=0.5)


@pytest.mark.slow
def test_the_protocol_was_found(results: Results) -> None:
    protocol = results.protocol
    assert protocol.split == Finding("split_by_lists", {"found": True})
    assert (protocol.enrollment_utterances, protocol.trial_utterances) == (438, 1496)
    assert protocol.details["key"] == 21650
    assert (protocol.enrolled_speakers, protocol.trial_speakers) == (29, 40)
    assert results.attackers["informed"].trained_on == Finding("own_extractor_given")
