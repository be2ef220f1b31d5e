"""Transcription with Moonshine: what the way from files to a store costs beside the bare models, what a second core
brings, and what our own decoder brings beside the published one.

The floor is the bare ONNX sessions, encoder and decoder, fed with samples that were read before. Processor time of
`transcribe_corpus` (reading, hashing, decoding of tokens, store, tables), in this process and in two others, over that
of the floor. The published decoder runs as an ONNX graph whose weights were turned into floats when it was loaded, one
token after the other, which was the fastest way to run it as it is.

    python -m benchmarks.bench_transcribe CORPUS [N]    word errors of both decoders, on a corpus with texts

`make bench` does not run the latter: it needs real speech, of which the first N recordings of every person are used.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.two_processes import print_gain, worker_times

if TYPE_CHECKING:
    from veilmeter.data.corpus import Corpus
    from veilmeter.speech.recognizers.base import Samples
    from veilmeter.speech.recognizers.moonshine import Moonshine

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
    from veilmeter.speech.recognizers.moonshine import Moonshine

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
                model.decode(model.encode(x), _most(x))
            floor = time.process_time() - start
            start = time.process_time()
            transcribe_corpus(corpus, root / f"one{number}", engine=Here())
            ratios.append((time.process_time() - start) / floor)
            floors.append(floor)
        print(f"Moonshine, bare ONNX sessions: {seconds / min(floors):.1f} times real time on one core")
        print(f"transcribe on one core / bare sessions: {statistics.median(ratios):.3f} (goal at most 1.1)")
        _print_published(model, samples, root)
        _print_two(corpus, root, statistics.median(floors))
        few = corpus.take([u.id for u in corpus][:4])
        print_gain(
            lambda engine, name: transcribe_corpus(corpus, root / name, engine=engine),
            lambda engine: transcribe_corpus(few, root / "warm", engine=engine),
            ROUNDS,
        )


def _print_two(corpus: Corpus, root: Path, floor: float) -> None:
    """Processor time of both workers together, once their models are loaded."""
    from veilmeter.core.engine import Pool
    from veilmeter.speech.annotations import transcribe_corpus

    pool = Pool(2)
    try:
        transcribe_corpus(corpus.take([u.id for u in corpus][:6]), root / "warm two", engine=pool)
        ratios = []
        for number in range(ROUNDS):
            before = sum(worker_times().values()) + time.process_time()
            transcribe_corpus(corpus, root / f"both{number}", engine=pool)
            ratios.append((sum(worker_times().values()) + time.process_time() - before) / floor)
    finally:
        pool.close()
    print(f"transcribe in two processes / bare sessions: {statistics.median(ratios):.3f} (goal at most 1.1)")


def _open_published(root: Path) -> tuple[Any, Any]:
    """The published encoder and decoder."""
    from veilmeter.speech import weights
    from veilmeter.speech.onnx_session import open_session
    from veilmeter.speech.recognizers.moonshine import write_graph

    encoder, published = weights.fetch_all((weights.MOONSHINE_ENCODER, weights.MOONSHINE_DECODER))
    write_graph(published, root / "published.onnx")
    return open_session(encoder), open_session(root / "published.onnx")


def compare_words(corpus: Corpus, each: int) -> None:
    """Word errors by our decoder and by the published one, and their difference, paired by recording, with the
    interval of a bootstrap over people."""
    from veilmeter.metrics.utility.words import count_errors, normalize_text
    from veilmeter.speech.audio import read_audio
    from veilmeter.speech.recognizers import load_recognizer
    from veilmeter.speech.recognizers.moonshine import END, Moonshine

    model = load_recognizer("moonshine")
    assert isinstance(model, Moonshine)
    chosen = [u for name in corpus.speakers for u in [u for u in corpus if u.speaker == name][:each] if u.text]
    texts: dict[str, list[str]] = {"text": [], "ours": [], "published": []}
    with tempfile.TemporaryDirectory() as folder:
        sessions = _open_published(Path(folder))
        for utterance in chosen:
            samples = read_audio(utterance.path)
            heard = model.text_of([token for token in _decode_published(*sessions, samples) if token != END])
            for name, text in zip(texts, (utterance.text, model.transcribe(samples).text, heard), strict=True):
                texts[name].append(normalize_text(text, "en"))
    people = np.unique([u.speaker for u in chosen], return_inverse=True)[1]
    errors = {name: count_errors(texts["text"], texts[name]) for name in ("ours", "published")}
    words = np.bincount(people, errors["ours"].words)
    wrong = {name: np.bincount(people, found.word_errors) for name, found in errors.items()}
    rates = {name: 100 * by_person.sum() / words.sum() for name, by_person in wrong.items()}
    draws = np.random.default_rng(0).multinomial(len(words), np.full(len(words), 1 / len(words)), 2000)
    differences = 100 * (draws @ (wrong["ours"] - wrong["published"])) / (draws @ words)
    low, high = np.quantile(differences, (0.025, 0.975))
    same = np.mean([a == b for a, b in zip(texts["ours"], texts["published"], strict=True)])
    print(f"{len(chosen)} recordings of {len(words)} people, {words.sum():.0f} words: word errors")
    print(f"  published {rates['published']:.2f} %, ours {rates['ours']:.2f} %; {100 * same:.0f} % of texts are equal")
    print(f"  difference {rates['ours'] - rates['published']:+.2f} [{low:+.2f}, {high:+.2f}] points (goal within 0.3)")


def _print_published(model: Moonshine, samples: Sequence[Samples], root: Path) -> None:
    sessions = _open_published(root)
    gains = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for x in samples:
            _decode_published(*sessions, x)
        between = time.process_time()
        for x in samples:
            model.decode(model.encode(x), _most(x))
        gains.append((between - start) / (time.process_time() - between))
    print(f"published sessions / ours: {statistics.median(gains):.2f} times the processor time (goal at least 1.5)")


def _most(samples: Samples) -> int:
    from veilmeter.speech.recognizers.moonshine import TOKENS_PER_SECOND

    return int(len(samples) / 16_000 * TOKENS_PER_SECOND) + 1


def _decode_published(encoder: Any, decoder: Any, samples: Samples) -> list[int]:
    from veilmeter.speech.onnx_session import import_runtime
    from veilmeter.speech.recognizers.moonshine import END, HEAD_SIZE, HEADS, START

    value = import_runtime().OrtValue.ortvalue_from_numpy
    empty = value(np.zeros((1, HEADS, 0, HEAD_SIZE), np.float32))
    inputs = {i.name: empty for i in decoder.get_inputs() if i.name.startswith("past_key_values.")}
    inputs["encoder_hidden_states"] = value(encoder.run(None, {"input_values": samples[None]})[0])
    wanted = [output.name for output in decoder.get_outputs()]
    tokens = [START]
    for step in range(_most(samples)):
        inputs["input_ids"], inputs["use_cache_branch"] = value(np.array([tokens[-1:]])), value(np.array([step > 0]))
        logits, *past = decoder.run_with_ort_values(wanted, inputs)
        tokens.append(int(logits.numpy()[0, -1].argmax()))
        if tokens[-1] == END:
            break
        inputs |= {name.replace("present.", "past_key_values."): p for name, p in zip(wanted[1:], past, strict=True)}
        wanted = [name for name in wanted if ".encoder." not in name]
    return tokens[1:]


if __name__ == "__main__":
    if sys.argv[1:]:
        from veilmeter.data.corpus import read_corpus

        compare_words(read_corpus(sys.argv[1]), int((sys.argv[2:] or ["1000"])[0]))
    else:
        main()
