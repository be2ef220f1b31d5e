"""How much must leak before it is found? The power of a verdict, by the number of people.

    python -m benchmarks.power [--people 20 40 100] [--seeds 6]

Two attackers without adaptation, so that what is measured is the rule of the verdict and not their cleverness. A part
of every voice is kept (its size beside noise of 1), or some people are not protected at all. Printed is how often the
level was raised or high, in brackets how often unknown; the first row is how often that is a false alarm.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

from benchmarks.world_cases import WORLDS, Case, Voices, World, unprotected
from benchmarks.world_judgments import judge

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", nargs="*", type=int, default=[20, 40, 100])
    parser.add_argument("--seeds", type=int, default=6)
    options = parser.parse_args()
    WORLDS.update(LEAKS)
    print(f"{'':28}" + "".join(f"{people:>14} people" for people in options.people))
    for name in LEAKS:
        cells = []
        for people in options.people:
            levels = [judge(name, people, seed, ATTACKERS, OPTIONS).level for seed in range(options.seeds)]
            found = sum(level in ("raised", "high") for level in levels) / options.seeds
            cells.append(f"{found:.0%} ({levels.count('unknown') / options.seeds:.0%})")
        print(f"{name:28}" + "".join(f"{cell:>21}" for cell in cells), flush=True)


if __name__ == "__main__":
    main()
