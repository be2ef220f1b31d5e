"""Scores that were given are measured whatever else is missing, and every figure says where it comes from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic_voices as voices
from tests.results.sample_results import training_of

from veilmeter.assessment import assess, make_settings
from veilmeter.cli.assess import with_attackers
from veilmeter.core.errors import InputError

ORIGINAL = voices.original(8, 4, 6)
RELEASED = voices.partly(ORIGINAL)
TRIED = [u for u in ORIGINAL.utterances if u[-1] in "23"]
FAST: dict[str, Any] = {"lengths": [1], "intervals": False, "measures": ["scores"]}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    rng = np.random.default_rng(0)
    pairs = [(s, u, u.startswith(s + "-")) for s in ORIGINAL.names for u in TRIED]
    (tmp_path / "key").write_text("".join(f"{s} {u} {'target' if t else 'nontarget'}\n" for s, u, t in pairs))
    (tmp_path / "scores").write_text("".join(f"{s} {u} {2 * t + rng.normal():.5f}\n" for s, u, t in pairs))
    (tmp_path / "strangers").write_text("".join(f"x{s} x{u} {2 * t + rng.normal():.5f}\n" for s, u, t in pairs))
    (tmp_path / "their-key").write_text("".join(f"x{s} x{u} {'target' if t else 'nontarget'}\n" for s, u, t in pairs))
    return {name: str(tmp_path / name) for name in ("key", "scores", "strangers", "their-key")}


@pytest.mark.parametrize("attacker", ["semi-informed", "procrustes", "informed", "adaptive"])
def test_scores_are_measured_whatever_else_is_missing(files: dict[str, str], attacker: str) -> None:
    """Without training speech, without inversion, with few speakers: the scores themselves are there."""
    tables = {attacker: {"scores": files["scores"]}, "ignorant": {}}
    options = FAST | {"measures": ["scores", "inversion"]} if attacker == "procrustes" else FAST
    results = assess(ORIGINAL, RELEASED, attackers=tables, trials=files["key"], **options).results
    measured = results.attackers[attacker]
    assert measured.source == "scores"
    expected = assess(ORIGINAL, RELEASED, attackers={"ignorant": {"scores": files["scores"]}}, trials=files["key"],
                      **FAST).results.attackers["ignorant"]  # fmt: skip
    assert measured.estimates["eer"] == expected.estimates["eer"]


def test_every_measure_says_where_it_comes_from(files: dict[str, str]) -> None:
    results = assess(
        ORIGINAL, RELEASED, attackers={"ignorant": {"scores": files["scores"]}}, trials=files["key"], **FAST
    ).results
    attacker = results.attackers["ignorant"]
    assert attacker.source == "scores"
    assert attacker.sources == {"linkability": "vectors"}
    eer = attacker.estimates.points("eer").only()
    assert attacker.estimates.points("one_minus_eer").only().value == pytest.approx(100 - eer.value)
    for group in attacker.by["gender"].values():
        assert "eer" in group
    assert results.attackers["original"].sources == {}


def test_scores_of_other_people_are_refused(files: dict[str, str]) -> None:
    table = {"scores": files["strangers"], "trials": files["their-key"]}
    with pytest.raises(InputError, match="the scores are of other people than those who are assessed"):
        assess(ORIGINAL, RELEASED, attackers={"ignorant": table}, **FAST)


@pytest.mark.parametrize(
    ("table", "message"),
    [({"plda": "nowhere"}, r"no such file \(attackers.ignorant: plda\)"), ({"scores": "nowhere"}, "no such file")],
)
def test_files_that_are_not_there(table: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        assess(ORIGINAL, RELEASED, attackers={"ignorant": table}, **FAST)


def test_a_run_owns_its_folder(tmp_path: Path) -> None:
    """Tables and pages of an earlier run are not left to be taken for this one's."""
    from veilmeter.results.run_folder import read_results

    out = tmp_path / "run"
    assess(ORIGINAL, RELEASED, out=out, attackers=["ignorant", "lazy-informed"], **FAST | {"measures": ["similarity"]})
    (out / "report.html").write_text("of the earlier run")
    assert {"matrices.parquet", "scores-lazy-informed.parquet"} <= {file.name for file in (out / "tables").iterdir()}
    assess(ORIGINAL, RELEASED, out=out, attackers=["ignorant"], **FAST)
    left = {file.name for file in (out / "tables").iterdir()}
    scores = {"scores-ignorant.parquet", "scores-original.parquet"}
    assert left == {"estimates.parquet", "groups.parquet", "speakers.parquet", *scores}
    assert set(read_results(out).tables) == left
    assert not (out / "report.html").exists()


def test_people_are_not_grouped_by_what_varies_within_them() -> None:
    with pytest.raises(InputError, match="session varies within 8 of 8 speakers"):
        assess(ORIGINAL, RELEASED, by="session", **FAST)


def test_inversion_belongs_to_its_attacker() -> None:
    """With the ignorant attacker alone the headline was that of procrustes."""
    results = assess(ORIGINAL, RELEASED, attackers="ignorant", **FAST | {"measures": ["scores", "inversion"]}).results
    assert "inversion" not in results.parts
    assert all(criterion.attacker in ("ignorant", "") for criterion in results.criteria.values())


def test_own_vectors_and_a_back_end_that_was_trained_on_others(tmp_path: Path) -> None:
    from veilmeter.data.formats.vectors import write_embeddings

    write_embeddings(RELEASED, tmp_path / "own.npz")
    table = {"original": str(tmp_path / "own.npz"), "anonymized": str(tmp_path / "own.npz"), "backend": "lda"}
    with pytest.raises(InputError, match="would be trained on another extractor's vectors"):
        assess(ORIGINAL, RELEASED, attackers={"informed": table}, train_anonymized=RELEASED, **FAST)


def test_lazy_stays_lazy() -> None:
    """With a trained back end it learns from original speech, and says so."""
    others = voices.original(7, 4, 6, seed=5, prefix="t")
    options: dict[str, Any] = FAST | {"backend": "lda", "attackers": ["lazy-informed"], "train_original": others}
    plain = assess(ORIGINAL, RELEASED, **options).results
    both = assess(ORIGINAL, RELEASED, train_anonymized=voices.partly(others), **options).results
    assert training_of(plain, "lazy-informed") == "28 original recordings of 7 other speakers"
    assert both.attackers["lazy-informed"].estimates == plain.attackers["lazy-informed"].estimates
    assert "--train-anonymized" in [remark.values.get("option") for remark in both.remarks]


def test_unmatched_recordings_are_refused_with_strict() -> None:
    some = RELEASED.take(np.arange(4, 32))
    with pytest.raises(InputError, match="4 original utterances without an anonymized version"):
        assess(ORIGINAL, some, strict=True, **FAST)
    assert assess(ORIGINAL, some, attackers="ignorant", **FAST).left_out == 4


def test_scores_ask_for_no_measures_that_were_left_out() -> None:
    """Scores of one attacker leave the others in, as far as their measures are asked for."""
    chosen = with_attackers(None, scores=["ignorant=a"], measures=["scores"])
    assert "informed" in chosen
    assert "procrustes" not in chosen
    assert "procrustes" in with_attackers(None, scores=["ignorant=a"])
    make_settings({"attackers": chosen, "measures": ["scores"]})


def test_utterances_are_not_taken_for_strangers(files: dict[str, str]) -> None:
    tables = {"ignorant": {"scores": files["scores"]}}
    results = assess(ORIGINAL, RELEASED, attackers=tables, trials=files["key"], **FAST).results
    assert "scores_of_others" not in [found.code for found in results.warnings]
