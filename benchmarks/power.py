"""How much must leak before it is found? The power of a verdict, by the number of people.

    python -m benchmarks.power [--people 20 40 100] [--seeds 6] [--draws | --tried]

Two attackers without adaptation, so that what is measured is the rule of the verdict and not their cleverness. A part
of every voice is kept (its size beside noise of 1), or some people are not protected at all. Printed is how often the
level was raised or high, in brackets how often unknown; the first row is how often that is a false alarm.

With `--draws`, how often the check "no finite set left untried" notices that each recording got one of so many
rotations and noise (its size beside a voice of length 1), from the release and one run of the attackers.

With `--tried`, how many of 100 recordings the adaptive attacker links where the draws of a finite set are named: with
one own run, and with copies of everybody under each draw; in brackets how often the verdict was low and trusted.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from benchmarks.world_cases import (
    DIMENSION,
    WORLDS,
    Case,
    Runs,
    Voices,
    World,
    codebook,
    finite_set,
    replacement_voices,
    rotations,
    unprotected,
    voices_of,
)
from benchmarks.world_outcomes import assess_world
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.vector_checks import repeated_draws
from veilmeter.results.trust import SURE_DRAWS

OPTIONS = {"lengths": [1, 3], "measures": ["scores", "linkability"], "resamples": 30}
ATTACKERS = ("ignorant", "lazy-informed")


def _partly(kept: float) -> Callable[[Voices], Case]:
    def make(voices: Voices) -> Case:
        return Case(voices.original, *(kept * voices.original + voices.noise() for _ in range(2)))

    return make


LEAKS = {
    "nothing kept": World(_partly(0.0), False, "no leak"),
    **{f"{kept:g} of a voice kept": World(_partly(kept), True, "all alike") for kept in (0.02, 0.05, 0.1, 0.3)},
    "one person unprotected": World(unprotected(0.0), True, "the others perfect"),
    **{f"{share:.0%} of people unprotected": World(unprotected(share), True, "as said") for share in (0.05, 0.1)},
}


NOISE = (0.02, 0.05, 0.1)  # of each coordinate
SETS = (100, 300, 1000, 3000)


def notice_draws(people: int, draws: int, noise: float, seeds: int) -> float:
    """The share of worlds in which repeated draws are noticed; without draws, the anonymizer puts out noise alone."""
    world = World(codebook(draws, noise), True, "draws") if draws else WORLDS["perfect"]
    found = 0
    for seed in range(seeds):
        voices = voices_of(world, people, np.random.default_rng([seed, people, draws, int(1000 * noise)]))
        case = world.make(voices)
        names = [f"s{person}" for person in voices.own]
        ids = [f"{name}-{take}" for name, take in zip(names, voices.take, strict=True)]
        rows = [side for side in (case.original, case.anonymized, case.again) if side is not None]
        original, *runs = (Embeddings(side, ids, names) for side in rows)
        noticed = repeated_draws(original, runs, seed=seed)
        found += noticed is not None and (noticed.size is not None or noticed.p < SURE_DRAWS)
    return found / seeds


def print_draws(sizes: Sequence[int], seeds: int) -> None:
    print(f"{'draws':>6}{'noise':>7}" + "".join(f"{people:>8} people" for people in sizes))
    for draws, noise in [(0, 1.0), *((draws, noise) for draws in SETS for noise in NOISE)]:
        cells = (f"{notice_draws(people, draws, noise, seeds):15.0%}" for people in sizes)
        print(f"{draws or '-':>6}{noise * DIMENSION**0.5 if draws else 0:7.2f}" + "".join(cells), flush=True)


TRIED = (5, 20, 100)


def print_tried(sizes: Sequence[int], seeds: int) -> None:
    print(f"{'draws':>6}  {'of':14}{'runs':10}" + "".join(f"{people:>14} people" for people in sizes))
    kinds = {f"noise {noise * DIMENSION**0.5:.2f}": rotations(noise) for noise in (0.0, *NOISE[1:])}
    kinds["other voices"] = replacement_voices
    of_runs: tuple[Runs, ...] = ("one", "each draw")
    for (kind, transform), draws, runs in product(kinds.items(), TRIED, of_runs):
        WORLDS["tried"] = World(finite_set(transform, draws, runs), transform is not replacement_voices, kind)
        cells = []
        for people in sizes:
            outcomes = [assess_world("tried", people, seed, ("ignorant", "adaptive"), OPTIONS) for seed in range(seeds)]
            linked = np.mean([one.curve[f"adaptive, 1 utterances among {people}"] for one in outcomes])
            low = sum(one.level == "low" and one.trustworthy for one in outcomes)
            cells.append(f"{linked:.0f} ({low} of {seeds})")
        print(f"{draws:>6}  {kind:14}{runs:10}" + "".join(f"{cell:>21}" for cell in cells), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", nargs="*", type=int, default=[20, 40, 100])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--draws", action="store_true", help="how often repeated draws are noticed")
    parser.add_argument("--tried", action="store_true", help="how many are linked if each draw is tried")
    options = parser.parse_args()
    if options.tried:
        print_tried(options.people, options.seeds)
        return
    if options.draws:
        print_draws(options.people, options.seeds)
        return
    WORLDS.update(LEAKS)
    print(f"{'':28}" + "".join(f"{people:>14} people" for people in options.people))
    for name in LEAKS:
        cells = []
        for people in options.people:
            levels = [assess_world(name, people, seed, ATTACKERS, OPTIONS).level for seed in range(options.seeds)]
            found = sum(level in ("raised", "high") for level in levels) / options.seeds
            cells.append(f"{found:.0%} ({levels.count('unknown') / options.seeds:.0%})")
        print(f"{name:28}" + "".join(f"{cell:>21}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
