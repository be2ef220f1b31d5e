"""Back ends against plain definitions: dense Gaussians for PLDA, eigenvectors for LDA, Kaldi's own layout."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import eigh
from scipy.stats import multivariate_normal

from veilmeter.attacks.backends import LDA, PLDA, Averages, CenteredCosine, Cosine, average, single
from veilmeter.attacks.backends.base import shrunk, unit64
from veilmeter.attacks.backends.lda import KaldiRecipe, read_kaldi_recipe, read_plda
from veilmeter.core.errors import InputError


def voices(
    speakers: int, each: int, dimension: int, seed: int = 0, noise: float = 0.7
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((speakers, dimension))
    codes = np.repeat(np.arange(speakers), each)
    return means[codes] + noise * rng.standard_normal((speakers * each, dimension)), codes


def eer_of(backend: object, x: np.ndarray, codes: np.ndarray) -> float:
    from veilmeter.metrics.scores.eer import eer

    projected = single(backend.project(x))  # type: ignore[attr-defined]
    scores = backend.compare(projected, projected)  # type: ignore[attr-defined]
    same = codes[:, None] == codes[None, :]
    upper = np.triu(np.ones_like(same), 1).astype(bool)
    return eer(scores[same & upper], scores[~same & upper])


class TestAverages:
    def test_plain(self) -> None:
        x, codes = voices(5, 3, 4)
        rng = np.random.default_rng(1)
        order = rng.permutation(len(x))
        found = average(x[order], codes[order])
        for code in range(5):
            np.testing.assert_allclose(found.vectors[code], x[codes == code].mean(axis=0))
        assert found.counts.tolist() == [3] * 5

    def test_a_group_without_utterances(self) -> None:
        with pytest.raises(InputError, match="1 groups have no utterance"):
            average(np.ones((2, 2)), [0, 2])

    @given(st.integers(0, 1000))
    def test_cosine_does_not_know_lengths(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        x = rng.standard_normal((6, 3))
        scaled = x * rng.uniform(0.1, 9, (6, 1))
        one, other = (single(Cosine().project(v)) for v in (x, scaled))
        np.testing.assert_allclose(Cosine().compare(one, one), Cosine().compare(other, other), atol=1e-12)

    def test_centring_undoes_an_offset(self) -> None:
        x, codes = voices(8, 5, 6)
        far = unit64(unit64(x) * 0.1 + np.array([3.0, 0, 0, 0, 0, 0]))
        assert eer_of(CenteredCosine.fit(far), far, codes) < eer_of(Cosine(), far, codes) + 1e-9
        np.testing.assert_allclose(CenteredCosine.fit(far).mean, far.mean(axis=0))


class TestLDA:
    def test_directions_are_those_of_the_generalised_eigenproblem(self) -> None:
        x, codes = voices(30, 8, 5)
        model = LDA.fit(x, codes)
        u = unit64(x)
        means = np.stack([u[codes == c].mean(axis=0) for c in range(30)])
        deviations = u - means[codes]
        within = shrunk(deviations.T @ deviations / (240 - 30), 240 - 30)
        between = (means - u.mean(axis=0)).T @ (means - u.mean(axis=0)) / 30
        strengths, vectors = eigh(between, within)
        for row, column in enumerate(np.argsort(strengths)[::-1]):
            a, b = model.transform[row], vectors[:, column]
            assert abs(a @ b) / np.linalg.norm(a) / np.linalg.norm(b) > 1 - 1e-9
        # Within-class covariance is the identity after the transform.
        np.testing.assert_allclose(model.transform @ within @ model.transform.T, np.eye(5), atol=1e-9)

    def test_takes_away_what_varies_within_a_speaker(self) -> None:
        rng = np.random.default_rng(3)
        means = np.c_[rng.standard_normal((60, 4)), np.zeros((60, 4))]
        codes = np.repeat(np.arange(60), 8)
        x = means[codes] + np.c_[0.3 * rng.standard_normal((480, 4)), 3 * rng.standard_normal((480, 4))]
        train, test = codes < 40, codes >= 40
        model = LDA.fit(x[train], codes[train])
        assert eer_of(model, x[test], codes[test]) < 0.5 * eer_of(Cosine(), x[test], codes[test])

    def test_more_dimensions_than_vectors(self) -> None:
        x, codes = voices(6, 4, 200)
        model = LDA.fit(x, codes)
        assert model.transform.shape == (5, 200)
        assert np.isfinite(model.project(x)).all()

    def test_one_utterance_a_speaker_is_refused(self) -> None:
        x, codes = voices(20, 1, 4)
        with pytest.raises(InputError, match="segments"):
            LDA.fit(x, codes)


class TestPLDA:
    def test_score_is_the_likelihood_ratio_of_gaussians(self) -> None:
        rng = np.random.default_rng(0)
        d = 3
        a, b = rng.standard_normal((2, d, d))
        within, between = a @ a.T + np.eye(d), b @ b.T + 0.1 * np.eye(d)
        from veilmeter.attacks.backends.lda import _diagonalize

        transform, psi = _diagonalize(within, between)
        np.testing.assert_allclose(transform @ within @ transform.T, np.eye(d), atol=1e-10)
        mean = rng.standard_normal(d)
        model = PLDA(mean, transform, psi, length="none")
        e, t = rng.standard_normal((2, 2, d))
        n, m = 4, 2
        scores = model.compare(
            Averages(model.project(e), np.array([n, n])), Averages(model.project(t), np.array([m, m]))
        )
        for i in range(2):
            for j in range(2):
                joint = np.block([[between + within / n, between], [between, between + within / m]])
                both = multivariate_normal(np.r_[mean, mean], joint).logpdf(np.r_[e[i], t[j]])
                apart = multivariate_normal(mean, between + within / n).logpdf(e[i]) + multivariate_normal(
                    mean, between + within / m
                ).logpdf(t[j])
                assert scores[i, j] == pytest.approx(both - apart, abs=1e-8)

    def test_likelihood_rises_with_every_step(self) -> None:
        x, codes = voices(40, 6, 5)
        model = PLDA.fit(x, codes, dimension=5, iterations=8)
        assert len(model.log_likelihoods) == 8
        assert (np.diff(model.log_likelihoods) > -1e-6).all()
        assert model.log_likelihoods[-1] > model.log_likelihoods[0]

    def test_recovers_the_covariances(self) -> None:
        rng = np.random.default_rng(1)
        from veilmeter.attacks.backends.lda import _em_step

        between, within = np.diag([4.0, 1.0]), np.array([[1.0, 0.5], [0.5, 2.0]])
        codes = np.repeat(np.arange(2000), rng.integers(2, 6, 2000))
        y = rng.multivariate_normal([0, 0], between, 2000)
        x = y[codes] + rng.multivariate_normal([0, 0], within, len(codes))
        counts = np.bincount(codes)
        totals = np.stack([np.bincount(codes, x[:, k]) for k in range(2)], axis=1)
        w, b = np.eye(2), np.eye(2)
        for _ in range(60):
            w, b, _ = _em_step(w, b, totals, counts, x.T @ x)
        np.testing.assert_allclose(b, between, atol=0.25)
        np.testing.assert_allclose(w, within, atol=0.08)

    def test_beats_cosine_where_directions_differ(self) -> None:
        rng = np.random.default_rng(5)
        codes = np.repeat(np.arange(80), 6)
        means = rng.standard_normal((80, 10)) * np.r_[np.full(5, 2.0), np.full(5, 0.1)]
        x = means[codes] + rng.standard_normal((480, 10)) * np.r_[np.full(5, 0.5), np.full(5, 3.0)]
        train, test = codes < 50, codes >= 50
        model = PLDA.fit(x[train], codes[train])
        assert eer_of(model, x[test], codes[test]) < 0.6 * eer_of(Cosine(), x[test], codes[test])

    def test_wrong_dimension(self) -> None:
        x, codes = voices(40, 4, 4)
        with pytest.raises(InputError, match="dimensions"):
            PLDA.fit(x, codes, dimension=4).project(np.ones((1, 7)))


def write_kaldi(path: Path, mean: np.ndarray, transform: np.ndarray, psi: np.ndarray, kind: str) -> None:
    if kind == "text":
        lines = "\n".join("  " + " ".join(map(repr, map(float, row))) for row in transform)
        text = f"<Plda>  [ {' '.join(map(repr, map(float, mean)))} ]\n [\n{lines} ]\n"
        path.write_text(text + f" [ {' '.join(map(repr, map(float, psi)))} ]\n</Plda> ")
        return
    letter, dtype = ("D", "<f8") if kind == "double" else ("F", "<f4")

    def vector(v: np.ndarray) -> bytes:
        return f"{letter}V ".encode() + b"\4" + struct.pack("<i", len(v)) + v.astype(dtype).tobytes()

    rows, columns = transform.shape
    matrix = f"{letter}M ".encode() + b"\4" + struct.pack("<i", rows) + b"\4" + struct.pack("<i", columns)
    path.write_bytes(
        b"\0B<Plda> " + vector(mean) + matrix + transform.astype(dtype).tobytes() + vector(psi) + b"</Plda> "
    )


class TestKaldi:
    @pytest.fixture
    def model(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(9)
        return rng.standard_normal(3), rng.standard_normal((3, 3)), np.array([3.0, 1.0, 0.2])

    @pytest.mark.parametrize("kind", ["text", "double", "float"])
    def test_read(self, tmp_path: Path, model: tuple[np.ndarray, ...], kind: str) -> None:
        write_kaldi(tmp_path / "plda", *model, kind)
        found = read_plda(tmp_path / "plda")
        tolerance = 1e-6 if kind == "float" else 1e-12
        for part, value in zip((found.mean, found.transform, found.psi), model, strict=True):
            np.testing.assert_allclose(part, value, rtol=tolerance, atol=tolerance)

    def test_score_as_kaldi_computes_it(self, tmp_path: Path, model: tuple[np.ndarray, ...]) -> None:
        """Plda::LogLikelihoodRatio with TransformIvector's length normalization, term by term."""
        mean, transform, psi = model
        write_kaldi(tmp_path / "plda", mean, transform, psi, "double")
        found = read_plda(tmp_path / "plda")
        rng = np.random.default_rng(2)
        e, t, n = rng.standard_normal(3), rng.standard_normal(3), 5

        def transformed(x: np.ndarray, count: int) -> np.ndarray:
            y = transform @ (x - mean)
            return y * np.sqrt(3 / (y**2 / (psi + 1 / count)).sum())

        u, v = transformed(e, n), transformed(t, 1)
        given_mean, given_variance = n * psi / (n * psi + 1) * u, 1 + psi / (n * psi + 1)
        given_class = -0.5 * (np.log(given_variance).sum() + ((v - given_mean) ** 2 / given_variance).sum())
        without = -0.5 * (np.log(1 + psi).sum() + (v**2 / (1 + psi)).sum())
        side = Averages(found.project(e[None]), np.array([n])), Averages(found.project(t[None]), np.array([1]))
        assert found.compare(*side)[0, 0] == pytest.approx(given_class - without, abs=1e-9)

    def test_whole_recipe(self, tmp_path: Path, model: tuple[np.ndarray, ...]) -> None:
        write_kaldi(tmp_path / "plda", *model, "double")
        rng = np.random.default_rng(4)
        lda, offset = rng.standard_normal((3, 7)), rng.standard_normal(7)
        rows = "\n".join("  " + " ".join(map(str, row)) for row in lda)
        (tmp_path / "transform.mat").write_text(f" [\n{rows} ]\n")
        (tmp_path / "mean.vec").write_text(f" [ {' '.join(map(str, offset))} ]\n")
        recipe = read_kaldi_recipe(tmp_path / "plda", tmp_path / "mean.vec", tmp_path / "transform.mat")
        x = rng.standard_normal((2, 7))
        inner = (x - offset) @ lda.T
        inner *= np.sqrt(3) / np.linalg.norm(inner, axis=1, keepdims=True)
        np.testing.assert_allclose(recipe.project(x), (inner - model[0]) @ model[1].T, atol=1e-9)
        affine = KaldiRecipe(recipe.plda, None, np.c_[lda, np.ones(3)])
        inner = x @ lda.T + 1
        inner *= np.sqrt(3) / np.linalg.norm(inner, axis=1, keepdims=True)
        np.testing.assert_allclose(affine.project(x), (inner - model[0]) @ model[1].T, atol=1e-9)
        with pytest.raises(InputError, match="7-d"):
            recipe.project(np.ones((1, 5)))

    @pytest.mark.parametrize(
        "broken",
        [b"", b"hello", b"\0B<Plda> ", b"\0B<Plda> DV \4\xff\xff\xff\x7f", b"<Plda> [ 1 2 ]",
         b"<Plda> [ 1 ] [ a ] [ 1 ]</Plda>",
         b"<Plda> [ 1 2 ] [ 1 2\n 3 ] [ 1 2 ] </Plda>", b"<Plda> [ nan 2 ] [\n 1 2\n 3 4 ] [ 1 2 ] </Plda>"],
    )  # fmt: skip
    def test_broken_files(self, tmp_path: Path, broken: bytes) -> None:
        (tmp_path / "plda").write_bytes(broken)
        with pytest.raises(InputError):
            read_plda(tmp_path / "plda")

    def test_cut_off(self, tmp_path: Path, model: tuple[np.ndarray, ...]) -> None:
        write_kaldi(tmp_path / "plda", *model, "double")
        data = (tmp_path / "plda").read_bytes()
        for length in range(0, len(data) - 8, 7):
            (tmp_path / "plda").write_bytes(data[:length])
            with pytest.raises(InputError):
                read_plda(tmp_path / "plda")
