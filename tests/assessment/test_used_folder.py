"""A used folder never gives an old number: whatever was changed, it equals a fresh one byte by byte."""

from __future__ import annotations

import importlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import synthetic_voices as voices

from veilmeter.assessment import assess
from veilmeter.attacks.attacker import ATTACKERS
from veilmeter.attacks.backends.base import BACKENDS
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings

ORIGINAL = voices.original(8, 4, 6)
TRAINING = voices.original(7, 4, 6, seed=5, prefix="t")
KNOWN = [u for u in ORIGINAL.utterances if u[-1] in "01"]
TRIED = [u for u in ORIGINAL.utterances if u[-1] in "23"]
SCORED = ("original", "ignorant", "lazy-informed")
MEASURES = ["scores", "similarity", "linkability", "inversion", "inference"]
OPTIONS: dict[str, Any] = {"intervals": False, "lengths": [1], "by": "gender", "measures": MEASURES}


def write_plda(path: Path, seed: int) -> None:
    """Kaldi's text form."""
    rng = np.random.default_rng([seed, 3])
    lines = "\n".join(" ".join(map(repr, row)) for row in rng.standard_normal((6, 6)).tolist())
    mean, psi = (" ".join(map(repr, rng.uniform(0.1, 2, 6).tolist())) for _ in range(2))
    path.write_text(f"<Plda>  [ {mean} ]\n [\n{lines} ]\n [ {psi} ]\n</Plda> ")


def write_scores(path: Path, seed: int, spread: float = 1.0, people: tuple[str, ...] = ORIGINAL.names) -> None:
    rng = np.random.default_rng([seed, 4])
    lines = [
        f"{speaker} {utterance} {spread * utterance.startswith(speaker + '-') + rng.normal():.6f}"
        for speaker in people
        for utterance in TRIED
    ]
    path.write_text("\n".join(lines) + "\n")


def write_key(path: Path, people: tuple[str, ...]) -> None:
    lines = [f"{s} {u} {'target' if u.startswith(s + '-') else 'nontarget'}" for s in people for u in TRIED]
    path.write_text("\n".join(lines) + "\n")


def write_all(folder: Path) -> None:
    folder.mkdir()
    write_embeddings(ORIGINAL, folder / "original.npz")
    write_embeddings(voices.partly(ORIGINAL), folder / "anonymized.npz")
    write_embeddings(voices.partly(ORIGINAL, seed=2), folder / "again.npz")
    write_embeddings(TRAINING, folder / "train_original.npz")
    write_embeddings(voices.partly(TRAINING), folder / "train_anonymized.npz")
    write_embeddings(voices.partly(TRAINING, seed=3), folder / "train_similar.npz")
    write_plda(folder / "plda", 0)
    for number, name in enumerate(SCORED):
        write_scores(folder / f"{name}.scores", number, 3 - number)
    write_key(folder / "key", ORIGINAL.names)
    (folder / "enroll").write_text("\n".join(KNOWN) + "\n")


def run(folder: Path, out: Path, **options: Any) -> bytes:
    assess(
        folder / "original.npz",
        folder / "anonymized.npz",
        attacker_run=folder / "again.npz",
        train_original=folder / "train_original.npz",
        train_anonymized=folder / "train_anonymized.npz",
        train_similar=folder / "train_similar.npz",
        out=out,
        attackers={name: {"scores": str(folder / f"{name}.scores")} for name in SCORED}
        | {"informed": {"plda": str(folder / "plda")}, "semi-informed": {}, "procrustes": {}},
        enroll=str(folder / "enroll"),
        trials=str(folder / "key"),
        **OPTIONS | options,
    )
    return (out / "results.json").read_bytes()


def rewritten(name: str, **changes: Any) -> Callable[[Path], None]:
    """The file of embeddings with other columns."""

    def change(folder: Path) -> None:
        from veilmeter.data.formats.vectors import read_embeddings

        old = read_embeddings(folder / name)
        columns = {
            "vectors": old.vectors, "utterances": old.utterances, "speakers": old.speakers,
            "attributes": dict(old.attributes),
        }  # fmt: skip
        columns |= {key: value(old) for key, value in changes.items()}
        (folder / name).unlink()
        write_embeddings(Embeddings(**columns), folder / name)

    return change


def moved(old: Embeddings) -> np.ndarray:
    vectors = old.vectors.copy()
    vectors[3] += 0.5
    return vectors


def other_genders(old: Embeddings) -> dict[str, Any]:
    corrected = {name: "mmmmffff"[place] for place, name in enumerate(ORIGINAL.names)}
    return {**old.attributes, "gender": [corrected[s] for s in old.speakers]}


def other_sessions(old: Embeddings) -> dict[str, Any]:
    return {**old.attributes, "session": [u[-1] for u in old.utterances]}


def renamed(old: Embeddings) -> list[str]:
    """One training speaker turns out to be another one."""
    return ["t000" if s == "t001" else s for s in old.speakers]


def fewer_people(folder: Path) -> None:
    """A key must fit the scores, so both change."""
    write_key(folder / "key", ORIGINAL.names[:-1])
    for number, name in enumerate(SCORED):
        write_scores(folder / f"{name}.scores", number, 3 - number, ORIGINAL.names[:-1])


CHANGES: dict[str, Callable[[Path], None]] = {
    **{
        f"vectors of {role}": rewritten(f"{role}.npz", vectors=moved)
        for role in ("original", "anonymized", "again", "train_original", "train_anonymized", "train_similar")
    },
    "genders": rewritten("original.npz", attributes=other_genders),
    "sessions": rewritten("original.npz", attributes=other_sessions),
    "ids": rewritten("again.npz", utterances=lambda old: [f"{u}x" if u == "s000-1" else u for u in old.utterances]),
    "speakers": rewritten("train_similar.npz", speakers=renamed),
    **{f"scores of {name}": (lambda f, n=name: write_scores(f / f"{n}.scores", 9, 0.5)) for name in SCORED},
    "key": fewer_people,
    "enrollment": lambda folder: (folder / "enroll").write_text("\n".join(KNOWN[:-1]) + "\n") and None,
    "PLDA": lambda folder: write_plda(folder / "plda", 1),
}  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    """The inputs and a run of them, which is the folder that every test goes on with a copy of."""
    root = tmp_path_factory.mktemp("used")
    write_all(root / "inputs")
    return root, run(root / "inputs", root / "run")


@pytest.mark.parametrize("name", CHANGES)
def test_changed_inputs(base: tuple[Path, bytes], name: str, tmp_path: Path) -> None:
    root, before = base
    kept = tmp_path / "kept"
    shutil.copytree(root / "inputs", kept)
    try:
        CHANGES[name](root / "inputs")
        used = run(root / "inputs", shutil.copytree(root / "run", tmp_path / "used"))
        fresh = run(root / "inputs", tmp_path / "fresh")
    finally:
        shutil.rmtree(root / "inputs")
        shutil.copytree(kept, root / "inputs")
    assert used == fresh
    assert used != before


@pytest.mark.parametrize(
    "options",
    [
        {"seed": 1}, {"lengths": [1, 2]}, {"by": ()}, {"speakers": [4]}, {"intervals": True, "resamples": 5},
        {"backend": "centered-cosine"}, {"measures": ["scores", "inversion"]}, {"attributes": []},
        {"adapted_backend": "plda"},
    ],
    ids=str,
)  # fmt: skip
def test_changed_options(base: tuple[Path, bytes], options: dict[str, Any], tmp_path: Path) -> None:
    root, before = base
    used = run(root / "inputs", shutil.copytree(root / "run", tmp_path / "used"), **options)
    assert used == run(root / "inputs", tmp_path / "fresh", **options)
    assert used != before


EXTRACTOR = """
import numpy as np

def embed(samples):
    return np.abs(np.fft.rfft(samples[:4096]))[{start}::64] + 1e-3

class Mine:
    name, version, dimension = "mine", "1", 32

    def __init__(self, start={start}):
        self.start = start

    def embed(self, samples):
        return np.abs(np.fft.rfft(samples[:4096]))[self.start::64].astype(np.float32) + 1e-3

def made():
    return Mine()
"""


@pytest.mark.parametrize("named", ["embed", "Mine", "made"])
def test_changed_extractor(named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its file counts, whatever version it says it has; for the assessed speech, and for training speech in pieces."""
    pytest.importorskip("soundfile")
    from veilmeter.speech.audio import write_audio

    rng = np.random.default_rng(0)
    for role, people in (("original", "abcd"), ("anonymized", "abcd"), ("train", "uvwxyz")):
        for speaker in people:
            for number in range(3):
                path = tmp_path / role / speaker / f"{speaker}{number}.wav"
                path.parent.mkdir(parents=True, exist_ok=True)
                write_audio(path, rng.normal(0, 0.1, 16_000).astype(np.float32))
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    results = []
    for start in (1, 2):
        (tmp_path / "own.py").write_text(EXTRACTOR.format(start=start))
        for out in ("used", f"fresh-{start}"):
            assess(
                tmp_path / "original",
                tmp_path / "anonymized",
                train_anonymized=tmp_path / "train",
                extractor=f"{tmp_path / 'own.py'}:{named}",
                out=tmp_path / out,
                segments=0.6,
                **OPTIONS | {"by": (), "attackers": ["ignorant", "informed"], "measures": ["scores"]},
            )
            results.append((tmp_path / out / "results.json").read_bytes())
    sys.modules.pop("veilmeter_own_own", None)
    assert results[0] == results[1]
    assert results[2] == results[3]
    assert results[0] != results[2]
    estimates = [result.split(b'"attackers"')[1] for result in results]
    assert estimates[0] != estimates[2]


PLUGIN = """
import numpy as np
from veilmeter.attacks.attacker import ScoringAttacker

class Mine:
    name = "mine"

    def project(self, vectors):
        return np.asarray(vectors, float)

    def compare(self, enrollment, test):
        return {sign} * np.abs(enrollment.vectors[:, None] - test.vectors[None]).sum(axis=-1)

class Kind:
    about, needs_training = "differences", False

    def build(self, enrollment, trials):
        return Mine(), None

class Guess(ScoringAttacker):
    name, about = "plugged", "guesses"

    def scores(self, material):
        known = material.candidates
        means = np.stack([known.unit[known.codes == person].mean(axis=0) for person in range(len(material.names))])
        return -{sign} * means @ material.conversation_means.T

KIND, GUESS = Kind(), Guess()
"""


@pytest.mark.parametrize("options", [{"backend": "plugged"}, {"attackers": ["plugged"]}])
def test_changed_code_of_a_plugin(options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its version is that of its source: who writes one tries it again and again, into the same folder."""
    monkeypatch.syspath_prepend(tmp_path)
    sides = ORIGINAL, voices.partly(ORIGINAL)
    found = []
    for sign in (-1, 10):  # of another length, so that Python does not take its bytecode for the same
        (tmp_path / "veilmeter_test_plugged.py").write_text(PLUGIN.format(sign=f"{sign:+d}"))
        sys.modules.pop("veilmeter_test_plugged", None)
        plugin = importlib.import_module("veilmeter_test_plugged")
        monkeypatch.setitem(ATTACKERS._loaded, "plugged", plugin.GUESS)
        monkeypatch.setitem(BACKENDS._loaded, "plugged", plugin.KIND)
        asked = {**OPTIONS, "measures": ["scores", "linkability"], **options}
        used = assess(*sides, out=tmp_path / "used", **asked)
        fresh = assess(*sides, out=tmp_path / f"fresh{sign}", **asked)
        assert used.results.attackers == fresh.results.attackers
        found.append(fresh.results.attackers)
    assert found[0] != found[1]
    del sys.modules["veilmeter_test_plugged"]
