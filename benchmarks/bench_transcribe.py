"""Transcription with Moonshine: what the way from files to a store costs beside the bare models, and what a second core
brings.

The floor is the two ONNX sessions alone, encoder and decoder, fed with samples that were read before. One core:
processor time of `transcribe_corpus` (reading, hashing, decoding of tokens, store, tables) over that of the floor.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

from benchmarks.two_processes import print_gain

VOICES, SENTENCES_EACH = 8, 2
ROUNDS = 3


def _corpus(root: Path) -> None:
    from veilmeter.demo.corpus import SENTENCES, speak, voices
    from veilmeter.speech.audio import write_audio

    for place, voice in enumerate(voices(VOICES)):
        for number in range(SENTENCES_EACH):
            said = SENTENCES[(SENTENCES_EACH * place + number) % len(SENTENCES)]
            write_audio(root / voice.name / f"{number}.flac", speak(voice, said))


def main() -> None:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # threads of numerical libraries spin on other cores and count as processor time
        _measure()


def _measure() -> None:
    from veilmeter.core.engine import Here
    from veilmeter.data.corpus import read_corpus
    from veilmeter.speech.annotations import transcribe_corpus
    from veilmeter.speech.audio import read_audio
    from veilmeter.speech.recognizers import load_recognizer
    from veilmeter.speech.recognizers.moonshine import TOKENS_PER_SECOND, Moonshine

    model = load_recognizer("moonshine")  # loaded once per process: what follows finds it ready
    assert isinstance(model, Moonshine)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        _corpus(root / "corpus")
        corpus = read_corpus(root / "corpus")
        samples = [read_audio(u.path) for u in corpus]
        seconds = sum(len(x) for x in samples) / 16_000
        model.transcribe(samples[0])

        ratios, floors = [], []
        for number in range(ROUNDS):
            start = time.process_time()
            for x in samples:
                model.decode(model.encode(x), int(len(x) / 16_000 * TOKENS_PER_SECOND) + 1)
            floor = time.process_time() - start
            start = time.process_time()
            transcribe_corpus(corpus, root / f"one{number}", engine=Here())
            ratios.append((time.process_time() - start) / floor)
            floors.append(floor)
        print(f"Moonshine, bare ONNX sessions: {seconds / min(floors):.1f} times real time on one core")
        print(f"transcribe on one core / bare sessions: {statistics.median(ratios):.3f} (goal at most 1.15)")
        few = corpus.take([u.id for u in corpus][:4])
        print_gain(
            lambda engine, name: transcribe_corpus(corpus, root / name, engine=engine),
            lambda engine: transcribe_corpus(few, root / "warm", engine=engine),
            ROUNDS,
        )


if __name__ == "__main__":
    main()
