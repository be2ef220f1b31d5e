"""Linkability and Singling Out against the package of paper 003's authors, and extrapolation against their curves."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.legal.linkability import count_links
from veilmeter.metrics.legal.singling_out import count_isolations

pytest.importorskip("legal_eval")
from legal_eval import embeddings as their_embeddings
from legal_eval import scoring, sweeps
from legal_eval.metrics.linkability import count_beaters
from legal_eval.metrics.linkability import linkability as their_linkability

PEOPLE, ENROLLED, TESTED, DIMENSION = 80, 4, 12, 24


def voices(people: int, each: int, seed: int, prefix: str = "s") -> Embeddings:
    """Unit vectors: the package takes utterance embeddings for normalized."""
    places = np.random.default_rng(1).standard_normal((people, DIMENSION))
    if prefix != "s":
        places = np.random.default_rng([1, len(prefix), seed]).standard_normal((people, DIMENSION))
    noise = np.random.default_rng([2, seed]).standard_normal((people, each, DIMENSION))
    vectors = (places[:, None] + 1.4 * noise).reshape(-1, DIMENSION)
    names = [f"{prefix}{s:03}" for s in range(people) for _ in range(each)]
    ids = [f"{name}-{seed}-{number % each}" for number, name in enumerate(names)]
    return Embeddings(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), ids, names)


def their_form(embeddings: Embeddings) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """Utterances by speaker, and vectors by utterance."""
    of_speaker: dict[str, list[str]] = {}
    for utterance, speaker in zip(embeddings.utterances, embeddings.speakers, strict=True):
        of_speaker.setdefault(speaker, []).append(utterance)
    return of_speaker, dict(zip(embeddings.utterances, embeddings.vectors.astype(np.float64), strict=True))


@pytest.mark.parametrize("distractors", [0, 60])
@pytest.mark.parametrize("length", [1, 3])
def test_exact_linkability_is_theirs(length: int, distractors: int) -> None:
    enroll, test = voices(PEOPLE, ENROLLED, 0), voices(PEOPLE, TESTED, 1)
    spoken, vectors = their_form(test)
    models = their_embeddings.build_speaker_embeddings(*their_form(enroll))
    if distractors:
        further = voices(distractors, ENROLLED, 2, "far")
        models |= their_embeddings.build_speaker_embeddings(*their_form(further))
        both = [enroll, further]
        enroll = Embeddings(
            np.concatenate([part.vectors for part in both]),
            [u for part in both for u in part.utterances],
            [s for part in both for s in part.speakers],
        )
    chosen = {name: listed[: length * (len(listed) // length)] for name, listed in spoken.items()}
    averages, speakers = {}, []
    for name, listed in chosen.items():
        for start in range(0, len(listed), length):
            part = [vectors[utterance] for utterance in listed[start : start + length]]
            averages[f"{name}/{start}"] = their_embeddings.average_embeddings(part)
            speakers.append(name)
    matrix = scoring.cosine_score_matrix(models, averages)
    beaters = count_beaters(matrix, speakers)
    link = count_links(enroll, test, length=length)
    for size in (2, 10, 50, PEOPLE + distractors):
        (expected,) = their_linkability(matrix, size, estimator="exact", beaters=beaters)
        assert link.value(size) == pytest.approx(expected, abs=1e-12)


def test_a_tie_is_a_success_there_and_a_failure_here() -> None:
    """Two people with the same enrollment: the package names the right one, this tool counts on nothing."""
    vectors = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    enroll = Embeddings(vectors, ["a-0", "b-0", "c-0"], ["a", "b", "c"])
    test = Embeddings(vectors[[0, 2]], ["a-1", "c-1"], ["a", "c"])
    matrix = scoring.cosine_score_matrix(
        dict(zip("abc", vectors, strict=True)), dict(zip(("a-1", "c-1"), vectors[[0, 2]], strict=True))
    )
    assert their_linkability(matrix, 3, estimator="exact", test_speakers=["a", "c"]) == [1.0]
    assert count_links(enroll, test).value(3) == 0.5


def test_singling_out_is_theirs_within_its_noise() -> None:
    """Both draw people and folds at random. The noise is that between people: four standard errors of both means."""
    enroll, test = voices(PEOPLE, ENROLLED, 0), voices(PEOPLE, TESTED, 1)
    spoken, vectors = their_form(test)
    models = their_embeddings.build_speaker_embeddings(*their_form(enroll))
    folds, size = 6, 40
    swept = sweeps.singling_out_sweep(models, spoken, vectors, 1, speaker_counts=[size], n_runs=5, n_folds=folds)
    outcomes = np.array(swept.values[size]).reshape(folds, PEOPLE).mean(axis=0)
    ours = count_isolations(enroll, test, [size], folds=folds, control=False).per_predicate(size)
    error = np.sqrt((outcomes.var(ddof=1) + ours.var(ddof=1)) / PEOPLE)
    assert 0.4 < outcomes.mean() < 0.9  # neither chance nor certainty, where agreement would be no news
    assert abs(ours.mean() - outcomes.mean()) < 4 * error


@pytest.fixture(scope="module")
def figure() -> ModuleType:
    path = Path(__file__).parents[3] / "examples" / "paper003_figure1.py"
    spec = importlib.util.spec_from_file_location("paper003_figure1", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_published_curves_are_those_of_the_paper(figure: ModuleType) -> None:
    curves = figure.published("linkability")
    assert sum(map(len, curves.values())) == 2640
    assert [round(100 * curves["original", length][20]) for length in (1, 3, 30)] == [82, 95, 94]
    assert round(100 * curves["original", 1][10_020]) == 35
    assert len(figure.published("singling_out")) == len(figure.published("one_minus_eer")) == 12


def test_extrapolation_from_200_people_meets_the_published_curves(figure: ModuleType) -> None:
    """In worlds with these curves; what a mean over the twelve curves may be off, as docs/validation says."""
    errors: dict[int, list[float]] = {1020: [], 21_920: []}
    for curve in figure.published("linkability").values():
        world = figure.make_world(curve)
        for size in errors:
            assert figure._world_value(world, size) == pytest.approx(curve[size], abs=0.005)
        points = figure.extrapolate(curve, 200, 1, tuple(errors), intervals=False)
        for size, point in zip(errors, points, strict=True):
            errors[size].append(abs(np.log10(max(point.value, 0.01) / (100 * curve[size]))))
    assert np.mean(errors[1020]) < 0.12
    assert np.mean(errors[21_920]) < 0.35
