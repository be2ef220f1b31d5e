"""A whole assessment: what it writes, that it goes on where it was, that it never depends on where it ran."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import synthetic_voices as voices
from tests.results.sample_results import training_of

from veilmeter.assessment import assess, read_results, tasks
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Reference
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings
from veilmeter.results.model import Results
from veilmeter.wording import sentences

ORIGINAL = voices.original(16, 6)
PARTLY = voices.partly(ORIGINAL)
OTHERS = voices.original(14, 5, seed=8, prefix="t")
FAST: dict[str, Any] = {"resamples": 10, "lengths": [1, 3], "measures": ["scores", "linkability", "inference"]}
ALL: dict[str, Any] = {"resamples": 10, "lengths": [1], "by": "gender", "population": [1000]}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Results]:
    out = tmp_path_factory.mktemp("whole") / "run"
    done = assess(
        ORIGINAL,
        PARTLY,
        attacker_run=voices.partly(ORIGINAL, seed=3),
        train_original=OTHERS,
        train_anonymized=[voices.partly(OTHERS, seed=1), voices.partly(OTHERS, seed=2)],
        train_similar=voices.partly(OTHERS, seed=4, shift=0.3),
        out=out,
        **ALL,
    )
    return out, done.results


def eers(results: Results) -> dict[str, float]:
    return {name: estimate_of(results, name).value for name in results.attackers}


def estimate_of(results: Results, attacker: str, measure: str = "eer") -> Estimate:
    estimate = results.attackers[attacker].estimates.single(measure)
    assert estimate is not None
    return estimate


def test_results_are_as_documented(whole: tuple[Path, Results]) -> None:
    out, results = whole
    assert read_results(out) == results
    form = json.loads((out / "results.json").read_text())
    assert form["schema"] == 4
    documented = (Path(__file__).parents[2] / "docs" / "reference" / "results.md").read_text()
    for key in form:
        assert f"`{key}`" in documented, f"{key} is not in docs/reference/results.md"
    assert set(form["parts"]) == {"similarity", "inversion", "inference", "runs", "sessions", "zebra"}


def test_every_attacker_is_measured_alike(whole: tuple[Path, Results]) -> None:
    results = whole[1]
    assert list(results.attackers) == [
        "original", "ignorant", "lazy-informed", "semi-informed", "informed", "procrustes", "wasserstein-procrustes",
        "adaptive",
    ]  # fmt: skip
    for name, attacker in results.attackers.items():
        estimates = attacker.estimates
        for measure in ("eer", "d_ece", "l_w", "min_cllr", "d_sys", "linkability", "singling_out", "residual_risk",
                        "control", "hit_share", "one_minus_eer", "cmc", "rank_disclosure",
                        "population_linkability"):  # fmt: skip
            assert measure in estimates, (name, measure)
        assert set(attacker.by["gender"]) == {"f", "m"}
        assert {point.at["length"] for point in estimates.points("linkability")} == {1}
        assert max(point.at["speakers"] for point in estimates.points("linkability")) == 16
        assert len(attacker.profile["log_odds"]) == len(attacker.profile["pav"])
        assert len(attacker.det["fpr"]) == len(attacker.det["fnr"]) <= 1000
        turned = estimates.points("one_minus_eer").only()
        assert turned.value == pytest.approx(100 - estimate_of(results, name).value)
        assert turned.interval is not None
        assert attacker.reference == (name != "adaptive")
    assert results.protocol.training == "separate corpus"
    assert training_of(results) == "140 recordings of 14 other speakers"
    assert training_of(results, "ignorant") == "nothing of this assessment"
    assert "14 other people" in training_of(results, "adaptive")
    assert sentences(results.verdict.not_tested) == ()


def test_parts(whole: tuple[Path, Results]) -> None:
    results = whole[1]
    assert results.matching.matched == 96
    runs = results.parts["runs"]
    assert "c_ece_linear" in runs.estimates
    assert runs.reference.points("linkability")
    assert results.parts["inference"].details["gender"]["values"] == {"f": 8, "m": 8}
    assert results.parts["inversion"].details["learning_curve"][-1]["pairs"] == 48
    assert set(results.parts["sessions"].estimates.names) == {
        "linkability_within_session", "linkability_across_sessions", "linkability_to_original",
    }  # fmt: skip


def test_more_knowledge_helps(whole: tuple[Path, Results]) -> None:
    errors = eers(whole[1])
    assert errors["informed"] < errors["lazy-informed"]
    assert errors["adaptive"] <= min(errors["lazy-informed"], errors["ignorant"])
    assert errors["original"] < 2


def test_tables(whole: tuple[Path, Results]) -> None:
    out, results = whole
    scores = pq.read_table(out / "tables" / "scores-informed.parquet").to_pydict()
    assert len(scores["score"]) == 16 * 48
    target = np.array(scores["target"])
    assert target.sum() == 48
    from veilmeter.metrics.scores.eer import eer

    values = np.array(scores["score"])
    assert eer(values[target], values[~target]) == estimate_of(results, "informed").value
    for speaker, utterance, same in zip(scores["enrollment_speaker"], scores["utterance"], target, strict=True):
        assert utterance.startswith(speaker + "-") == same
    people = pq.read_table(out / "tables" / "speakers.parquet").to_pylist()
    assert {row["speaker"] for row in people} == set(ORIGINAL.names)
    matrices = pq.read_table(out / "tables" / "matrices.parquet").to_pydict()
    assert len(matrices["row"]) == 3 * 16 * 16
    assert set(results.tables) == {file.name for file in (out / "tables").iterdir()}
    for file in out.rglob("*"):
        if file.is_file():
            assert file.stat().st_mode & 0o077 == 0, f"others can read {file.name}"


def test_speakers_by_risk(whole: tuple[Path, Results]) -> None:
    persons = whole[1].people.persons
    assert len(persons) == 16
    for person in persons:
        assert person.risk.value == max(estimate.value for estimate in person.by_attacker.values())
        assert person.animal
        assert person.gender in "fm"
        assert "original" not in person.by_attacker


def counted(monkeypatch: pytest.MonkeyPatch, stop_after: int | None = None) -> list[str]:
    """Which pieces are done; with `stop_after`, the run is interrupted before the next one."""
    done: list[str] = []
    real = tasks.perform

    def perform(piece: tasks.Task) -> Any:
        if stop_after is not None and len(done) >= stop_after:
            raise KeyboardInterrupt
        done.append(str(piece.id))
        return real(piece)

    monkeypatch.setattr("veilmeter.assessment.run.perform", perform)
    return done


def test_interrupted_at_any_stage_it_goes_on(tmp_path: Path) -> None:
    options = FAST | {"attackers": ["ignorant", "lazy-informed"], "lengths": [1]}
    with pytest.MonkeyPatch.context() as patch:
        order = counted(patch)
        assess(ORIGINAL, PARTLY, out=tmp_path / "whole", **options)
    wanted = (tmp_path / "whole" / "results.json").read_bytes()
    for stop in range(len(order) + 1):
        out = tmp_path / f"stopped-{stop}"
        with pytest.MonkeyPatch.context() as patch:
            counted(patch, stop)
            if stop < len(order):
                with pytest.raises(KeyboardInterrupt):
                    assess(ORIGINAL, PARTLY, out=out, **options)
                assert not (out / "results.json").exists()
        with pytest.MonkeyPatch.context() as patch:
            again = counted(patch)
            assess(ORIGINAL, PARTLY, out=out, **options)
        assert again == order[stop:] if stop < len(order) else order
        assert (out / "results.json").read_bytes() == wanted


def test_a_damaged_stage_is_made_again(tmp_path: Path) -> None:
    out = tmp_path / "run"
    options = FAST | {"measures": ["scores"], "attackers": ["ignorant"]}
    assess(ORIGINAL, PARTLY, out=out, **options)
    wanted = (out / "results.json").read_bytes()
    stages = sorted((out / "stages").iterdir())
    stages[0].write_bytes(stages[0].read_bytes()[:20])
    next(file for file in stages if file.suffix == ".npz").write_bytes(b"PK broken")
    assess(ORIGINAL, PARTLY, out=out, **options)
    assert (out / "results.json").read_bytes() == wanted


def test_other_input_or_options_are_not_taken_for_the_same(tmp_path: Path) -> None:
    options = FAST | {"measures": ["scores"], "attackers": ["ignorant"]}
    first = assess(ORIGINAL, PARTLY, out=tmp_path, **options).results
    other = assess(ORIGINAL, voices.partly(ORIGINAL, seed=7), out=tmp_path, **options).results
    assert estimate_of(first, "ignorant") != estimate_of(other, "ignorant")
    seeded = assess(ORIGINAL, PARTLY, out=tmp_path, **(options | {"seed": 1})).results
    fresh = assess(ORIGINAL, PARTLY, **(options | {"seed": 1})).results
    assert replace(seeded, tables={}) == fresh


def test_processes_and_order_do_not_matter(tmp_path: Path) -> None:
    """Two processes, one, and the speakers listed in another order of files give the same bytes."""
    for name, embeddings in (("original", ORIGINAL), ("anonymized", PARTLY)):
        write_embeddings(embeddings, tmp_path / f"{name}.npz")
    options = FAST | {"attackers": ["ignorant", "informed"]}
    for jobs in (1, 2):
        assess(
            tmp_path / "original.npz", tmp_path / "anonymized.npz", out=tmp_path / f"jobs-{jobs}", jobs=jobs, **options
        )
    one, two = ((tmp_path / f"jobs-{jobs}" / "results.json").read_bytes() for jobs in (1, 2))
    assert one == two


def test_every_speaker_meets_an_attacker_that_never_saw_them() -> None:
    """Cross-validation: the back end for a pair was trained without either of them."""
    from veilmeter.attacks.backends.scoring import Recipe

    recipe = Recipe("lda", training=PARTLY, folds=4)
    scorer = recipe.scorer(PARTLY, PARTLY)
    rows = np.arange(len(PARTLY))[:, None]
    before = scorer.matrix(PARTLY, PARTLY, rows)
    # Changing one speaker's training vectors must not change any score that this speaker is part of.
    victim = 3
    changed = PARTLY.vectors.copy()
    changed[PARTLY.codes == victim] += 5
    other = Recipe("lda", training=PARTLY.with_vectors(changed), folds=4).scorer(PARTLY, PARTLY)
    after = other.matrix(PARTLY, PARTLY, rows)
    theirs = PARTLY.codes == victim
    np.testing.assert_array_equal(after[victim], before[victim])
    np.testing.assert_array_equal(after[:, theirs], before[:, theirs])
    assert not np.array_equal(after, before)


def test_said_when_cross_validated() -> None:
    results = assess(ORIGINAL, PARTLY, **FAST, attackers=["informed", "ignorant"]).results
    assert results.protocol.training == "cross-validation by speaker"
    assert results.protocol.details["folds"] == 5
    assert "trained on neither" in training_of(results)


def test_plda_and_centered_cosine() -> None:
    options = FAST | {"measures": ["scores", "singling-out", "linkability"], "lengths": [1]}
    others = voices.partly(OTHERS)
    found = assess(
        ORIGINAL, PARTLY, train_anonymized=others,
        attackers={"ignorant": {"backend": "centered-cosine"}, "informed": {"backend": "plda"}, "lazy-informed": {}},
        **options,
    ).results  # fmt: skip
    assert found.attackers["informed"].backend.startswith("PLDA")
    assert found.attackers["ignorant"].backend == "centered cosine"
    assert eers(found)["informed"] < eers(found)["lazy-informed"]
    assert found.attackers["informed"].estimates.points("singling_out")


def test_matrix_and_vector_singling_out_agree() -> None:
    """The detour over score matrices gives what the measure gives on vectors, for the same attack."""
    from veilmeter.assessment.attack import isolation_conversations, isolation_curves
    from veilmeter.attacks.vector_attackers import VectorComparison

    spoken = isolation_conversations(PARTLY, 1, 0, len(PARTLY.names))
    assert spoken is not None
    comparison = VectorComparison(ORIGINAL)
    scored = comparison.score(PARTLY, [spoken.utterances])
    assert scored.sides is not None
    options: dict[str, Any] = {"intervals": False, "seed": 0}
    curves = [
        isolation_curves(way, comparison.names, spoken, scored.tables[0], [5, 16], **options)["singling_out"]
        for way in (scored, replace(scored, sides=None))
    ]
    for direct, around in zip(*curves, strict=True):
        assert direct.value == pytest.approx(around.value, abs=0.021)


def test_no_speaker_in_common() -> None:
    with pytest.raises(InputError, match="no utterance is in both"):
        assess(ORIGINAL, OTHERS, **FAST)


def test_a_voice_is_no_speaker() -> None:
    renamed = Embeddings(PARTLY.vectors, PARTLY.utterances, [f"pseudo-{s}" for s in PARTLY.speakers])
    with pytest.raises(InputError, match="names another speaker"):
        assess(ORIGINAL, renamed, **FAST)


def test_what_has_no_partner_is_counted() -> None:
    some = PARTLY.take(np.arange(10, len(PARTLY)))
    results = assess(ORIGINAL, some, **FAST, attackers=["ignorant"]).results
    assert results.matching.unmatched == {"only_original": 10, "only_anonymized": 0, "speaker_differs": 0}


def test_read_results_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no results found"):
        read_results(tmp_path)
    (tmp_path / "results.json").write_text(json.dumps({"schema": 99}))
    with pytest.raises(InputError, match="written by a newer version"):
        read_results(tmp_path)


def test_vectors_of_different_extractors_are_refused(tmp_path: Path) -> None:
    """They were compared, and ended in an error of the linear algebra, or, with the same length, in nonsense."""
    shorter = PARTLY.with_vectors(PARTLY.vectors[:, :7])
    for role, given in (
        ("anonymized", {"anonymized": shorter}),
        ("attacker run", {"anonymized": PARTLY, "attacker_run": shorter}),
    ):
        with pytest.raises(InputError, match=f"have {ORIGINAL.dimension} numbers, those of {role} 7"):
            assess(ORIGINAL, **given, **FAST)
    write_embeddings(shorter, tmp_path / "shorter.npz")
    with pytest.raises(InputError, match=r"attackers.ignorant: its enrollment vectors have"):
        assess(ORIGINAL, PARTLY, **FAST, attackers={"ignorant": {"anonymized": str(tmp_path / "shorter.npz")}})
    for name, vectors, extractor in (("a", ORIGINAL, "campplus"), ("b", PARTLY, "ge2e"), ("c", PARTLY, "campplus")):
        write_embeddings(vectors, tmp_path / name)
        about = {"extractor": extractor, "version": f"of {extractor}", "dimension": vectors.dimension}
        (tmp_path / name / "embeddings.json").write_text(json.dumps(about))
    with pytest.raises(InputError, match=r"are of campplus \(of campplus\), those of anonymized of ge2e \(of ge2e\)"):
        assess(tmp_path / "a", tmp_path / "b", **FAST)
    results = assess(tmp_path / "a", tmp_path / "c", **FAST, attackers="ignorant").results
    assert results.extractor == {"name": "campplus", "version": "of campplus", "dimension": ORIGINAL.dimension}


def test_what_was_asked_for_and_is_not_there_is_an_error() -> None:
    with pytest.raises(InputError, match="can't infer 'region': unknown attribute"):
        assess(ORIGINAL, PARTLY, **FAST, attributes=["region"])
    with pytest.raises(InputError, match="lda needs training speech"):
        assess(ORIGINAL, PARTLY, **FAST, backend="lda")
    with pytest.raises(InputError, match="no two speakers have 99 trial utterances"):
        assess(ORIGINAL, PARTLY, **FAST | {"lengths": [99]})
    few = Embeddings(PARTLY.vectors, PARTLY.utterances, PARTLY.speakers, {"accent": ["here"] * len(PARTLY)})
    given = Embeddings(ORIGINAL.vectors, ORIGINAL.utterances, ORIGINAL.speakers, {"accent": ["here"] * len(PARTLY)})
    results = assess(given, few, **FAST, attackers="ignorant").results
    (untested,) = [one for one in results.verdict.not_tested if one.code == "attribute_not_inferred"]
    assert untested.values["attribute"] == Reference("attribute", "accent")


def test_a_population_that_can_not_be_told_is_said() -> None:
    options = FAST | {"measures": ["linkability", "population"], "lengths": [1], "attackers": "ignorant"}
    results = assess(ORIGINAL, PARTLY, **options, population=[10, 1000]).results
    points = results.attackers["ignorant"].estimates.points("population_linkability")
    assert [point.at["speakers"] for point in points] == [1000]  # the small one does not cost the large one
    smaller = [found for found in results.warnings if found.code == "population_is_smaller"]
    assert [(found.values["size"], found.values["enrolled"]) for found in smaller] == [(10, 16)]
    few = [u for u in ORIGINAL.utterances if u.split("-")[0] in {*ORIGINAL.names[:4]}]
    results = assess(ORIGINAL.of_utterances(few), PARTLY.of_utterances(few), **options, population=[1000]).results
    assert not results.attackers["ignorant"].estimates.points("population_linkability")
    assert "not_extrapolated" in [found.code for found in results.warnings]


def test_arrays() -> None:
    options = FAST | {"attackers": "ignorant"}
    wanted = estimate_of(assess(ORIGINAL, PARTLY, **options).results, "ignorant")
    for shape in (lambda e: (e.vectors, e.utterances, e.speakers), lambda e: (e.vectors, list(e.speakers))):
        found = estimate_of(assess(shape(ORIGINAL), shape(PARTLY), **options).results, "ignorant")
        if shape(ORIGINAL)[1] is ORIGINAL.utterances:
            assert found.n == wanted.n  # sessions are not known here, so that the split differs
        assert 0 <= found.value <= 50
    for nonsense in (ORIGINAL.vectors, 5, {"vectors": ORIGINAL.vectors}, (ORIGINAL.vectors,)):
        with pytest.raises(InputError, match="does not say who speaks"):
            assess(ORIGINAL, nonsense, **options)
    with pytest.raises(InputError, match="but 3 speakers"):
        assess((ORIGINAL.vectors, ["a", "b", "c"]), PARTLY, **options)


def test_distractors_are_enrolled_on_both_sides_and_never_tried() -> None:
    """Linkability among everybody is that of the same people as a list of enrolled ones; the trials are the same."""
    few: dict[str, Any] = {"lengths": [1], "measures": ["scores", "linkability"], "intervals": False}
    few |= {"attackers": ["ignorant", "lazy-informed"], "resamples": 5}
    hidden = voices.partly(OTHERS, seed=0)
    alone = assess(ORIGINAL, PARTLY, **few).results
    more = assess(ORIGINAL, PARTLY, distractors=hidden, distractors_original=OTHERS, **few).results
    assert more.protocol.details["distractors"] == 14
    assert (more.protocol.enrolled_speakers, more.protocol.trial_speakers) == (30, 16)
    assert more.protocol.trial_utterances == alone.protocol.trial_utterances
    for name in ("ignorant", "lazy-informed"):
        few_people, everybody = (r.attackers[name].estimates.points("linkability") for r in (alone, more))
        assert everybody.sort_by("speakers")[-1].at["speakers"] == 30
        assert everybody.sort_by("speakers")[-1].value <= few_people.sort_by("speakers")[-1].value
        assert everybody[0].n["conversations"] == few_people[0].n["conversations"]
    assert any(
        "14 distractors (70 recordings) are enrolled" in text for text in sentences(more.remarks + more.warnings)
    )
    with pytest.raises(InputError, match="give --distractors-original too"):
        assess(ORIGINAL, PARTLY, distractors=hidden, **few)
    with pytest.raises(InputError, match="'s000' is a distractor and assessed, and so are 15 more"):
        assess(ORIGINAL, PARTLY, distractors=PARTLY, distractors_original=ORIGINAL, **few)
