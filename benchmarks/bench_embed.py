"""Extraction with CAM++: what the way from files to a store costs beside the bare model, and what a second core brings.

The floor is the ONNX session alone, fed with features that were computed before. One core: processor time of
`embed_corpus` (reading, features, model, store) over that of the floor. Two cores: clock time of one process over that
of two, both warm; meaningful only if two cores are free, so the load that others put on the machine is measured too.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.two_processes import print_gain

RECORDINGS = 32
ROUNDS = 3


def synthesized_corpus(root: Path, recordings: int, speakers: int) -> None:
    """Voices of harmonics, 4 to 12 seconds each."""
    from veilmeter.speech.audio import write_audio

    for number in range(recordings):
        rng = np.random.default_rng(number)
        t = np.arange(int(rng.uniform(4, 12) * 16000)) / 16000
        voice = sum(np.sin(2 * np.pi * k * rng.uniform(90, 220) * t) / k for k in range(1, 12))
        signal = voice * (1 + np.sin(2 * np.pi * 3 * t)) * 0.1 + 0.01 * rng.standard_normal(len(t))
        write_audio(root / f"s{number % speakers}" / f"{number}.flac", signal)


def main() -> None:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # threads of numerical libraries spin on other cores and count as processor time
        _measure()


def _measure() -> None:
    from veilmeter.core.engine import Here
    from veilmeter.data.corpus import read_corpus
    from veilmeter.speech.audio import read_audio
    from veilmeter.speech.extractors import load_extractor
    from veilmeter.speech.extractors.embed_corpus import embed_corpus
    from veilmeter.speech.extractors.onnx import OnnxExtractor

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        synthesized_corpus(root / "corpus", RECORDINGS, 8)
        corpus = read_corpus(root / "corpus")
        model = load_extractor("campplus")  # loaded once per process: what follows finds it ready
        if not isinstance(model, OnnxExtractor):
            print("ONNX Runtime is not installed: nothing to compare with")
            return
        samples = [read_audio(u.path) for u in corpus]
        features = [model.features(x) for x in samples]
        seconds = sum(len(x) for x in samples) / 16000
        model.embed_features(features[0])

        ratios, floors = [], []
        for number in range(ROUNDS):
            start = time.process_time()
            for table in features:
                model.embed_features(table)
            floor = time.process_time() - start
            start = time.process_time()
            embed_corpus(corpus, root / f"one{number}", engine=Here())
            ratios.append((time.process_time() - start) / floor)
            floors.append(floor)
        print(f"CAM++, bare ONNX session: {seconds / min(floors):.0f} times real time on one core")
        print(f"embed on one core / bare session: {statistics.median(ratios):.3f} (goal at most 1.15)")
        few = corpus.take([u.id for u in corpus][:4])
        print_gain(
            lambda engine, name: embed_corpus(corpus, root / name, engine=engine),
            lambda engine: embed_corpus(few, root / "warm", engine=engine),
            ROUNDS,
        )


if __name__ == "__main__":
    main()
