"""The cascade: how much faster than speech one core is with each voice, and what it costs beside its bare sessions.

Processor time, so that other work on the machine matters less. The floor is the time within the ONNX session of the
synthesizer, or within the recognizer and it, in the same run; the rest is reading, phones, the synthesis in the
frequency domain (fast voice), resampling and writing.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from veilmeter.data.corpus import Corpus

VOICES, SENTENCES_EACH = 6, 2
GOALS = {"fast": 15.0, "kokoro": 0.9}
ROUNDS = {"fast": 3, "kokoro": 1}


class Timed:
    """A session or a recognizer that adds up its processor time."""

    def __init__(self, wrapped: Any, method: str) -> None:
        self._wrapped, self._method = wrapped, method
        self.spent = 0.0

    def __getattr__(self, name: str) -> Any:
        wanted = getattr(self._wrapped, name)
        if name != self._method:
            return wanted

        def timed(*args: Any, **options: Any) -> Any:
            start = time.process_time()
            try:
                return wanted(*args, **options)
            finally:
                self.spent += time.process_time() - start

        return timed


def main() -> None:
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1), tempfile.TemporaryDirectory() as folder:
        corpus = _corpus(Path(folder) / "corpus")
        for voice in GOALS:
            _measure(voice, corpus, Path(folder) / voice)


def _corpus(root: Path) -> Corpus:
    from veilmeter.data.corpus import read_corpus
    from veilmeter.demo.corpus import SENTENCES, speak, voices
    from veilmeter.speech.audio import write_audio

    for place, voice in enumerate(voices(VOICES)):
        for number in range(SENTENCES_EACH):
            said = SENTENCES[(SENTENCES_EACH * place + number) % len(SENTENCES)]
            write_audio(root / voice.name / f"{number}.flac", speak(voice, said))
    return read_corpus(root)


def _measure(voice: str, corpus: Corpus, root: Path) -> None:
    from veilmeter.anonymizers.anonymize_corpus import anonymize_corpus
    from veilmeter.anonymizers.cascade import Cascade
    from veilmeter.anonymizers.cascade import system as cascade_module
    from veilmeter.anonymizers.cascade.voices import load_synthesizer
    from veilmeter.core.engine import Here
    from veilmeter.data.corpus import read_corpus
    from veilmeter.speech.audio import read_audio
    from veilmeter.speech.recognizers.base import load_recognizer

    anonymizer = Cascade(voice=voice, language="en")
    recognizer = Timed(load_recognizer("moonshine"), "transcribe")
    network: Any = load_synthesizer(voice)._network
    system: Any = cascade_module
    bare, usual = network._session, system.load_recognizer
    rounds = list[tuple[float, float, float]]()
    try:
        system.load_recognizer = lambda *_, **__: recognizer
        anonymize_corpus(corpus.take([u.id for u in corpus][:1]), root / "warm", anonymizer, engine=Here())
        for number in range(ROUNDS[voice]):
            recognizer.spent, network._session = 0.0, Timed(bare, "run")
            start = time.process_time()
            anonymize_corpus(corpus, root / str(number), anonymizer, engine=Here())
            total = time.process_time() - start
            rounds.append((total, recognizer.spent, network._session.spent))
    finally:
        network._session, system.load_recognizer = bare, usual
    total, recognized, spoken = min(rounds)
    source = sum(len(read_audio(u.path)) for u in corpus) / 16_000
    made = sum(len(read_audio(u.path)) for u in read_corpus(root / "0")) / 16_000
    print(f"{voice}: {made / spoken:.1f} times real time in the bare session of the synthesizer, on one core")
    print(f"{voice}: {made / (total - recognized):.1f} times real time without the recognizer")
    print(f"{voice}: {source / total:.1f} times real time, from file to file (goal {GOALS[voice]:g})")
    print(f"{voice}: the whole cascade / bare session of the synthesizer: {total / spoken:.2f}")
    print(f"{voice}: the whole cascade / this session and the recognizer: {total / (spoken + recognized):.2f}")


if __name__ == "__main__":
    main()
