"""What is kept about recordings: made once, resumed after a stop, made again when something changed."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from veilmeter.core.engine import Pool
from veilmeter.core.errors import InputError
from veilmeter.data.corpus import read_corpus
from veilmeter.speech.annotations import annotate_corpus
from veilmeter.speech.audio import write_audio


class Peaks:
    """The greatest sample; fails on recordings above 0.8, stops the run at the number given."""

    name = "peaks"

    def __init__(self, version: str = "1", stop_after: int = 10**9) -> None:
        self.version, self.left = version, stop_after

    def annotate(self, samples: np.ndarray) -> dict[str, float]:
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        peak = float(samples.max())
        if peak > 0.8:
            raise ValueError("too loud")
        return {"peak": round(peak, 2)}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    wave = np.sin(np.arange(16_000) * 0.1)
    for number in range(6):
        folder = tmp_path / "corpus" / f"s{number % 2}"
        folder.mkdir(parents=True, exist_ok=True)
        write_audio(folder / f"u{number}.wav", (number + 1) / 10 * wave)
    return tmp_path / "corpus"


def peaks(annotated: object) -> dict[str, float]:
    return {name: a.values["peak"] for name, a in annotated.by_id.items()}  # type: ignore[attr-defined]


def test_it_is_made_once(root: Path, tmp_path: Path) -> None:
    corpus = read_corpus(root)
    first = annotate_corpus(corpus, tmp_path / "kept", Peaks)
    assert first.computed == 6
    assert peaks(first) == {f"s{n % 2}/u{n}": (n + 1) / 10 for n in range(6)}
    content = (tmp_path / "kept" / "peaks.jsonl").read_bytes()
    again = annotate_corpus(corpus, tmp_path / "kept", Peaks)
    assert again.computed == 0
    assert peaks(again) == peaks(first)
    assert (tmp_path / "kept" / "peaks.jsonl").read_bytes() == content
    assert annotate_corpus(corpus, tmp_path / "kept", partial(Peaks, "2")).computed == 6


def test_a_stopped_run_goes_on_and_ends_with_the_same_bytes(root: Path, tmp_path: Path) -> None:
    corpus = read_corpus(root)
    with pytest.raises(KeyboardInterrupt):
        annotate_corpus(corpus, tmp_path / "stopped", partial(Peaks, stop_after=4))
    with open(tmp_path / "stopped" / "peaks.jsonl", "a") as out:
        out.write('{"record": {"utterance": "s0/u4", "si')  # killed while it wrote
    assert annotate_corpus(corpus, tmp_path / "stopped", Peaks).computed == 2
    annotate_corpus(corpus, tmp_path / "whole", Peaks)
    stopped, whole = ((tmp_path / name / "peaks.jsonl").read_bytes() for name in ("stopped", "whole"))
    assert stopped == whole


def test_only_what_changed_is_made_again(root: Path, tmp_path: Path) -> None:
    corpus = read_corpus(root)
    annotate_corpus(corpus, tmp_path / "kept", Peaks)
    write_audio(root / "s0/u0.wav", 0.75 * np.sin(np.arange(16_000) * 0.1))
    touched = root / "s1/u1.wav"
    touched.write_bytes(touched.read_bytes())  # another time, the same content
    again = annotate_corpus(corpus, tmp_path / "kept", Peaks)
    assert again.computed == 1
    assert peaks(again)["s0/u0"] == 0.75
    assert peaks(again)["s1/u1"] == 0.2


def test_a_part_of_the_corpus_keeps_the_rest(root: Path, tmp_path: Path) -> None:
    corpus = read_corpus(root)
    annotate_corpus(corpus, tmp_path / "kept", Peaks)
    part = corpus.take(["s0/u0"])
    assert set(annotate_corpus(part, tmp_path / "kept", Peaks).by_id) == {"s0/u0"}
    assert annotate_corpus(corpus, tmp_path / "kept", Peaks).computed == 0


def test_what_cant_be_used_is_named_and_silence_is_kept(root: Path, tmp_path: Path) -> None:
    (root / "s0/broken.wav").write_bytes(b"RIFF no")
    write_audio(root / "s0/loud.wav", 0.95 * np.sin(np.arange(16_000) * 0.1))
    write_audio(root / "s0/silent.wav", np.zeros(16_000))
    corpus = read_corpus(root)
    found = annotate_corpus(corpus, tmp_path / "kept", Peaks)
    assert {p.kind for p in found.problems} == {"unreadable", "model-failed", "silent"}
    assert {p.kind for p in found.skipped} == {"unreadable", "model-failed"}
    assert found.by_id["s0/silent"].silent
    assert not {"s0/broken", "s0/loud"} & set(found.by_id)
    with pytest.raises(InputError, match=r"broken\.wav|too loud"):
        annotate_corpus(corpus, tmp_path / "strict", Peaks, strict=True)


def test_another_limit_looks_at_what_it_concerns_again(root: Path, tmp_path: Path) -> None:
    """Lowered, what is too long goes; raised, it comes back; whatever a used folder holds."""
    write_audio(root / "s0/long.wav", 0.3 * np.sin(np.arange(48_000) * 0.1))
    write_audio(root / "s1/hush.wav", np.zeros(48_000))
    corpus = read_corpus(root)
    for limit, usable in [(3600.0, 8), (2.0, 6), (2.0, 6), (3600.0, 8)]:
        annotated = annotate_corpus(corpus, tmp_path / "kept", Peaks, max_seconds=limit)
        fresh = annotate_corpus(corpus, tmp_path / f"fresh-{limit}", Peaks, max_seconds=limit)
        assert len(annotated.by_id) == usable
        assert annotated.by_id == fresh.by_id
        assert annotated.problems == fresh.problems
    assert annotated.computed == 2  # the others were kept


def test_a_model_that_failed_is_asked_again(root: Path, tmp_path: Path) -> None:
    """Also where the file was touched and holds the same as before: a failure is nothing to keep."""
    write_audio(root / "s0/loud.wav", 0.95 * np.sin(np.arange(16_000) * 0.1))
    corpus = read_corpus(root)
    assert "s0/loud" not in annotate_corpus(corpus, tmp_path / "kept", Peaks).by_id
    (root / "s0/loud.wav").touch()
    again = annotate_corpus(corpus, tmp_path / "kept", Peaks)
    assert "s0/loud" not in again.by_id
    assert [problem.kind for problem in again.skipped] == ["model-failed"]


def test_processes_give_the_same(root: Path, tmp_path: Path) -> None:
    corpus = read_corpus(root)
    pool = Pool(2)
    try:
        annotate_corpus(corpus, tmp_path / "pool", Peaks, engine=pool)
    finally:
        pool.close()
    annotate_corpus(corpus, tmp_path / "here", Peaks)
    assert (tmp_path / "pool/peaks.jsonl").read_bytes() == (tmp_path / "here/peaks.jsonl").read_bytes()
    lines = (tmp_path / "pool/peaks.jsonl").read_text().splitlines()
    assert json.loads(lines[0])["annotator"] == "peaks"
    assert oct((tmp_path / "pool/peaks.jsonl").stat().st_mode)[-3:] == "600"
