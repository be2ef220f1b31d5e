"""Similarity matrices: against a loop over speakers and segments as the papers write it, and at a larger scale.

Sizes as in VoicePrivacy's libri_test_f: 734 utterances of 20 speakers, 512 numbers each; then 5,000 utterances of 500
speakers. The store: a tenth of Common Voice's 1.2 million vectors, mapped.
"""

from __future__ import annotations

import math
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


def voices(sizes: list[int], d: int, seed: int = 0) -> tuple[Array, Array, list[str]]:
    rng = np.random.default_rng(seed)
    codes = np.repeat(np.arange(len(sizes)), sizes)
    centres = rng.normal(size=(len(sizes), d))
    pseudo = 0.2 * centres + rng.normal(size=(len(sizes), d))
    return (
        centres[codes] + 1.5 * rng.normal(size=(len(codes), d)),
        pseudo[codes] + 2.5 * rng.normal(size=(len(codes), d)),
        [f"s{code}" for code in codes],
    )


def loop(first: Array, second: Array, speakers: list[str]) -> Array:
    """One matrix (geometric, all pairs), as one would write it down from the paper."""
    people = list(dict.fromkeys(speakers))
    segments = {person: [i for i, s in enumerate(speakers) if s == person] for person in people}
    scores: dict[tuple[int, int], float] = {}
    for i in people:
        for j in people:
            for k in segments[i]:
                for m in segments[j]:
                    if k != m:
                        x, y = first[k], second[m]
                        scores[k, m] = float(x @ y) / (math.sqrt(float(x @ x)) * math.sqrt(float(y @ y)))
    llrs = loop_pav(scores, speakers)
    table = np.empty((len(people), len(people)))
    for a, i in enumerate(people):
        for b, j in enumerate(people):
            product, count = 0.0, 0
            for k in segments[i]:
                for m in segments[j]:
                    if k != m:
                        product += math.log(1 / (1 + math.exp(-llrs[k, m])))
                        count += 1
            table[a, b] = math.exp(product / count)
    return table


def loop_pav(scores: dict[tuple[int, int], float], speakers: list[str]) -> dict[tuple[int, int], float]:
    """Pool adjacent violators with a stack, Laplace's dummies at both ends."""
    ordered = sorted(scores, key=scores.__getitem__)
    labels = [speakers[k] == speakers[m] for k, m in ordered]
    blocks: list[list[float]] = []
    previous = None
    for label, pair in [(None, None), *zip(labels, ordered, strict=True), (None, None)]:
        if pair is None:
            blocks.append([1.0, 2.0, 0.0])  # targets, all, real scores
        elif previous is not None and scores[pair] == previous:
            blocks[-1] = [blocks[-1][0] + float(bool(label)), blocks[-1][1] + 1, blocks[-1][2] + 1]
        else:
            blocks.append([float(bool(label)), 1.0, 1.0])
        previous = None if pair is None else scores[pair]
        while len(blocks) > 1 and blocks[-2][0] / blocks[-2][1] >= blocks[-1][0] / blocks[-1][1]:
            last = blocks.pop()
            blocks[-1] = [x + y for x, y in zip(blocks[-1], last, strict=True)]
    prior = math.log(sum(labels) / (len(labels) - sum(labels)))
    llrs, at = {}, 0
    for targets, everything, real in blocks:
        value = math.log(targets / (everything - targets)) - prior if 0 < targets < everything else 0.0
        for pair in ordered[at : at + int(real)]:
            llrs[pair] = value
        at += int(real)
    return llrs


def main() -> None:
    from veilmeter.metrics.similarity.matrices import KINDS, similarity

    o, p, speakers = voices([37] * 14 + [36] * 6, 512)
    similarity(o, p, speakers)  # imports
    start = time.process_time()
    quick = similarity(o, p, speakers)
    seconds = time.process_time() - start
    start = time.process_time()
    with_spread = similarity(o, p, speakers, spreads=True)
    spread_seconds = time.process_time() - start
    start = time.process_time()
    slow = {"OO": loop(o, o, speakers), "OP": loop(o, p, speakers), "PP": loop(p, p, speakers)}
    loop_seconds = time.process_time() - start
    worst = max(float(np.abs(slow[kind] - quick.similarities[kind]).max()) for kind in KINDS)
    assert worst < 1e-6, worst
    assert with_spread.deid == quick.deid
    print(f"{len(o)} utterances, three matrices: {seconds:.3f} CPU-s")
    print(f"a loop: {loop_seconds:.1f} CPU-s, {loop_seconds / seconds:.0f} times slower, and {worst:.1e} away")
    print(f"with intervals and the level of chance: {spread_seconds:.3f} CPU-s, {spread_seconds / seconds:.1f} times")
    code = "from benchmarks.bench_similarity import large; large()"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout, end="")
    with tempfile.TemporaryDirectory() as folder:
        code = "import sys; from benchmarks.bench_similarity import store; store(sys.argv[1])"
        done = subprocess.run([sys.executable, "-c", code, folder], capture_output=True, text=True, check=True)
        print(done.stdout, end="")


def large() -> None:
    """In a process of its own: the peak of memory is the process's."""
    from veilmeter.metrics.similarity.matrices import similarity

    o, p, speakers = voices([10] * 500, 256)
    start, cpu = time.perf_counter(), time.process_time()
    similarity(o, p, speakers)
    plain = time.process_time() - cpu, time.perf_counter() - start
    cpu = time.process_time()
    similarity(o, p, speakers, spreads=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"5,000 utterances of 500 speakers: {plain[0]:.1f} CPU-s ({plain[1]:.1f} s), with intervals "
          f"{time.process_time() - cpu:.1f} CPU-s, at most {peak:.2f} GB (30 s and 4 GB are asked for)")  # fmt: skip


def store(folder: str) -> None:
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.data.formats.parquet import read_store, write_shard

    rows, shards, d = 15_000, 8, 256
    rng = np.random.default_rng(0)
    for number in range(shards):
        ids = [f"common_voice_en_{number * rows + i}" for i in range(rows)]
        vectors = rng.normal(size=(rows, d)).astype(np.float32)
        write_shard(Path(folder) / f"part-{number:05d}.parquet", Embeddings(vectors, ids, [i[:20] for i in ids]))
    before, start = _own_memory(), time.process_time()
    found = read_store(folder, memory_map=True)
    took, grown = time.process_time() - start, _own_memory() - before
    size = rows * shards * d * 4 / 2**20
    print(f"{rows * shards:,} vectors mapped from {shards} shards: {took:.1f} CPU-s, {grown:.0f} MB of memory for "
          f"{size:.0f} MB of vectors ({grown / size:.0%}); {len(found.utterances):,} ids among it")  # fmt: skip


def _own_memory() -> float:
    """Memory that is not backed by a file, in MB."""
    status = Path("/proc/self/status")
    if not status.exists():
        return float("nan")
    line = next(line for line in status.read_text().splitlines() if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1024


if __name__ == "__main__":
    main()
