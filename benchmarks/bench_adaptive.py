"""The adaptive attacker's cost: CPU seconds and memory against the number of people, and beside other people's speech.

    python -m benchmarks.bench_adaptive [--people 250,500,1000,2000] [--dimension 192] [--others 0]
    python -m benchmarks.bench_adaptive --leaks 100

The second prints how many of 100 recordings it links, among so many people, by leaks that no affine method sees.

Targets: 1,000 people with 4 recordings each in 2 runs in at most 25 CPU seconds and 1.5 GB; linear beyond.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence

import numpy as np

EACH, RUNS, TRIALS = 4, 2, 1


def world(people: int, dimension: int, others: int, seed: int = 0):  # type: ignore[no-untyped-def]
    """Gaussian voices; the anonymizer keeps a quarter of a voice and adds a draw per utterance."""
    from veilmeter.attacks.material import AttackerRun, Material, OtherPeople
    from veilmeter.data.embeddings import Embeddings

    rng = np.random.default_rng(seed)
    mix = rng.standard_normal((dimension, dimension)) / np.sqrt(dimension)

    def speech(names: Sequence[str], each: int) -> tuple[Embeddings, tuple[Embeddings, ...]]:
        voices = np.repeat(rng.standard_normal((len(names), dimension)), each, axis=0)
        ids = [f"{name}-{number}" for name in names for number in range(each)]
        speakers = np.repeat(names, each).tolist()
        heard = voices + 0.5 * rng.standard_normal(voices.shape)
        copies = [0.25 * heard @ mix + rng.standard_normal(voices.shape) for _ in range(RUNS + 1)]
        return Embeddings(heard, ids, speakers), tuple(Embeddings(copy, ids, speakers) for copy in copies)

    originals, copies = speech([f"s{number}" for number in range(people)], EACH + TRIALS)
    place = np.arange(len(originals)) % (EACH + TRIALS)
    known, released = place < EACH, place >= EACH
    more = None
    if others:
        theirs, made = speech([f"o{number}" for number in range(others)], 2)
        more = OtherPeople(
            originals=theirs, runs=tuple(AttackerRun(vectors=run, draw="utterance") for run in made[:RUNS])
        )
    trials = copies[RUNS].take(released)
    return Material(
        candidates=originals.take(known),
        trials=trials.vectors,
        conversations=(np.arange(len(trials))[:, None],),
        runs=tuple(AttackerRun(vectors=run.take(known), draw="utterance") for run in copies[:RUNS]),
        others=more,
    )


def measure(people: int, dimension: int, others: int) -> dict[str, float]:
    from veilmeter.attacks.attacker import ATTACKERS, perform

    material = world(people, dimension, others)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    outcome = perform(ATTACKERS["adaptive"], material)
    seconds = time.process_time() - start
    linked = float(np.mean(outcome.scores.argmax(axis=0) == np.arange(people)))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "people": people,
        "dimension": dimension,
        "others": others,
        "cpu_seconds": round(seconds, 1),
        "peak_mb": round(peak / 1024),
        "added_mb": round((peak - before) / 1024),
        "linked": round(linked, 3),
    }


def leaks(people: int, seeds: int = 2) -> None:
    """Linked of 100 by the affine methods and by all of them, for each nonlinear leak of the worlds."""
    from benchmarks.world_cases import LEAKS, RECORDINGS, Case, World, voices_of
    from veilmeter.attacks.adaptive import FAMILIES, fit_adaptive, own_data
    from veilmeter.attacks.material import AttackerRun, Material
    from veilmeter.data.embeddings import Embeddings

    affine = [name for name, family in FAMILIES.items() if not family.nonlinear]
    for about, leak in LEAKS.items():
        linked = np.zeros((seeds, 2))
        for seed in range(seeds):
            voices = voices_of(
                World(lambda v: Case(v.original, v.original), True, ""), people, np.random.default_rng(seed)
            )
            drawn = voices.rng.random((people, voices.original.shape[1]))[voices.own]
            ids, names = [str(row) for row in range(len(drawn))], [f"s{person:04}" for person in voices.own]
            known = voices.take < RECORDINGS // 2
            original, release, run = (
                Embeddings(rows, ids, names) for rows in (voices.original, *(leak(voices, drawn) for _ in range(2)))
            )
            trials = release.take(~known)
            material = Material(
                candidates=original.take(known),
                trials=trials.vectors,
                conversations=(np.arange(len(trials))[:, None],),
                runs=(AttackerRun(vectors=run.take(known), draw="utterance", certain=True),),
            )
            for column, methods in enumerate((affine, None)):
                logits = fit_adaptive(own_data(material), methods).logits(trials.vectors)
                linked[seed, column] = 100 * np.mean(logits.argmax(axis=1) == trials.codes)
        print(f"| {about} | {linked[:, 0].mean():.0f} | {linked[:, 1].mean():.0f} |", flush=True)


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", default="250,500,1000,2000")
    parser.add_argument("--dimension", type=int, default=192)
    parser.add_argument("--others", type=int, default=0)
    parser.add_argument("--one", action="store_true", help="this process, one size, as JSON")
    parser.add_argument("--leaks", type=int, metavar="PEOPLE", help="what is found, in place of what it costs")
    given = parser.parse_args(arguments)
    if given.leaks:
        leaks(given.leaks)
        return
    sizes = [int(size) for size in given.people.split(",")]
    if given.one:
        print(json.dumps(measure(sizes[0], given.dimension, given.others)))
        return
    for size in sizes:  # a process each: the peak of memory is that of a process's whole life
        command = [sys.executable, "-m", "benchmarks.bench_adaptive", "--one", "--people", str(size)]
        command += ["--dimension", str(given.dimension), "--others", str(given.others)]
        print(subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
