"""Linkability and Singling Out against the package of the paper's authors, voice-anonymization-legal-eval 2.1.0, in one
run on the same vectors; and what the command costs beside the library.

The package needs numpy and scipy alone and is fetched into a temporary folder where it is not installed. 400 people
with 10 enrollment and 12 test vectors each. Linkability is exact, of all conversations at every number of people;
Singling Out is measured at two sizes with ten folds, without its control, which they do not have.
"""

from __future__ import annotations

import importlib
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

PACKAGE, VERSION, MODULE = "voice-anonymization-legal-eval", "2.1.0", "legal_eval"
PEOPLE, ENROLLED, TESTED, DIMENSION = 400, 10, 12, 192
SIZES = (100, 400)
ROUNDS = 5
GOALS = {"Linkability": 1.0, "Singling Out": 0.2, "command": 1.3}  # ours over theirs; the command over its parts


def main() -> None:
    from threadpoolctl import threadpool_limits

    with tempfile.TemporaryDirectory() as folder, threadpool_limits(1):
        reference = _reference(folder)
        vectors = _vectors()
        if reference is None:
            print(f"{PACKAGE} {VERSION} can't be fetched: only the command is compared with the library")
        else:
            _compare(reference, *vectors)
        _command(Path(folder), *vectors)


def _reference(folder: str) -> Any:
    """The package, installed or fetched without its extras; None where there is no package index."""
    try:
        return importlib.import_module(MODULE)
    except ImportError:
        pass
    wanted = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", folder, f"{PACKAGE}=={VERSION}"]
    if subprocess.run(wanted, capture_output=True, check=False).returncode:
        return None
    sys.path.insert(0, folder)
    return importlib.import_module(MODULE)


def _vectors() -> tuple[np.ndarray, np.ndarray]:
    """Enrollment and test vectors: person, utterance, dimension; of unit length."""
    rng = np.random.default_rng(0)
    voices = rng.standard_normal((PEOPLE, 1, DIMENSION))
    sides = [voices + 2 * rng.standard_normal((PEOPLE, count, DIMENSION)) for count in (ENROLLED, TESTED)]
    known, tried = (side / np.linalg.norm(side, axis=2, keepdims=True) for side in sides)
    return known, tried


def _names(vectors: np.ndarray) -> tuple[list[str], list[str]]:
    """Utterances and their speakers."""
    people, each = vectors.shape[:2]
    return [f"{s:03}-{u}" for s in range(people) for u in range(each)], [
        f"{s:03}" for s in np.repeat(range(people), each)
    ]


def _embeddings(vectors: np.ndarray) -> Any:
    from veilmeter.data.embeddings import Embeddings

    return Embeddings(vectors.reshape(-1, DIMENSION), *_names(vectors))


def _compare(reference: Any, known: np.ndarray, tried: np.ndarray) -> None:
    from veilmeter.metrics.legal.linkability import count_links
    from veilmeter.metrics.legal.singling_out import count_isolations

    sweeps, scoring = (importlib.import_module(f"{reference.__name__}.{name}") for name in ("sweeps", "scoring"))
    enroll, test = _embeddings(known), _embeddings(tried)
    average = importlib.import_module(f"{reference.__name__}.embeddings").average_embeddings
    models = {f"{s:03}": average(list(known[s])) for s in range(PEOPLE)}
    utterances, speakers = _names(tried)
    of_speaker: dict[str, list[str]] = {}
    for utterance, speaker in zip(utterances, speakers, strict=True):
        of_speaker.setdefault(speaker, []).append(utterance)
    by_utterance = dict(zip(utterances, tried.reshape(-1, DIMENSION), strict=True))

    def their_linkability() -> Any:
        scores = scoring.cosine_score_matrix(models, by_utterance)
        counts = range(1, PEOPLE + 1)
        return sweeps.linkability_sweep(scores, counts, n_runs=1, estimator="exact", test_speakers=speakers)

    def their_singling_out() -> Any:
        return sweeps.singling_out_sweep(
            models, of_speaker, by_utterance, 1, speaker_counts=SIZES, n_runs=5, n_folds=10
        )

    pairs: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "Linkability": (lambda: count_links(enroll, test).curve, their_linkability),
        "Singling Out": (lambda: count_isolations(enroll, test, list(SIZES), control=False), their_singling_out),
    }
    for name, (ours, theirs) in pairs.items():
        times = [(_cpu(ours), _cpu(theirs)) for _ in range(ROUNDS if name == "Linkability" else 2)]
        mine, other = (min(side) for side in zip(*times, strict=True))
        ratio = statistics.median(a / b for a, b in times)
        print(
            f"{name}: ours {mine:.2f} CPU-s, theirs {other:.2f}; ratio {ratio:.2f} (at most {GOALS[name]:g}) "
            f"{'ok' if ratio <= GOALS[name] else 'NOT REACHED'}"
        )


def _cpu(work: Callable[[], Any]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _command(folder: Path, known: np.ndarray, tried: np.ndarray) -> None:
    """The command over the same work in the library, in processes of their own: interpreter, imports, reading,
    printing."""
    for name, vectors in (("enroll", known), ("test", tried)):
        utterances, speakers = _names(vectors)
        rows = vectors.reshape(-1, DIMENSION).astype(np.float32)
        np.savez(folder / f"{name}.npz", vectors=rows, ids=np.array(utterances), speakers=np.array(speakers))
    files = [f"{folder / name}.npz" for name in ("enroll", "test")]
    library = (
        "import sys\nfrom veilmeter import linkability, read_embeddings\n"
        "from veilmeter.metrics.legal.one_minus_eer import one_minus_eer\n"
        "sides = [read_embeddings(path) for path in sys.argv[1:]]\nsizes = [2, 10, 100, 400]\n"
        "linkability(*sides, speakers=sizes)\none_minus_eer(*sides, sizes)\n"
    )
    command = [sys.executable, "-m", "veilmeter.cli.main", "linkability", "--enroll", files[0], "--test", files[1]]
    pairs = [
        (cpu_of([*command, "--speakers", "2", "10", "100", "400"]),
         cpu_of([sys.executable, "-c", library, *files]))
        for _ in range(ROUNDS)
    ]  # fmt: skip
    whole, alone = (min(side) for side in zip(*pairs, strict=True))
    ratio = statistics.median(a / b for a, b in pairs)
    print(
        f"command {whole:.2f} CPU-s, the same work by the library in a process of its own {alone:.2f}; ratio "
        f"{ratio:.2f} (at most {GOALS['command']:g}) {'ok' if ratio <= GOALS['command'] else 'NOT REACHED'}"
    )


def cpu_of(command: list[str]) -> float:
    """Processor seconds of a process, with one thread."""
    one_thread = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, **one_thread})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
