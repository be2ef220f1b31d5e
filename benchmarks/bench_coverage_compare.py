"""Does the interval of a difference between two systems hold what it promises, also near chance?

Two systems anonymize the same people; what they share cancels. In many simulated worlds the nominal 95 % interval of
the difference must hold its mean over all worlds in about 93 to 98 of 100.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.estimate import Estimate
from veilmeter.data.scores import Scores
from veilmeter.metrics.legal.chance import better_counts
from veilmeter.metrics.scores.forms import SortedScores
from veilmeter.metrics.scores.summary import replicates_of, values
from veilmeter.results.differences import PairedTrials
from veilmeter.results.model import LinkedPerson

WORLDS = 300
MEASURES = ("eer", "d_ece", "min_cllr", "linkability")
# How much of a voice the two systems keep: nothing, something, nearly as much as each other, and much.
KEPT = ((0.0, 0.0), (0.0, 0.3), (0.3, 0.35), (0.5, 1.0))


def scores_of(rng: np.random.Generator, people: int, each: int, kept: tuple[float, float]) -> list[NDArray[np.float64]]:
    """Scores of enrolled people (rows) for recordings (columns, `each` per person) by both systems."""
    voices = rng.standard_normal((people, 24))
    own = np.repeat(np.arange(people), each)
    shared = rng.standard_normal((len(own), 24))
    made = []
    for share in kept:
        spoken = share * voices[own] + 0.7 * shared + 0.7 * rng.standard_normal(shared.shape)
        known = voices + 0.3 * rng.standard_normal(voices.shape)
        made.append(known @ spoken.T / np.linalg.norm(known, axis=1)[:, None] / np.linalg.norm(spoken, axis=1))
    return made


def differences(
    rng: np.random.Generator, people: int, each: int, kept: tuple[float, float]
) -> dict[str, tuple[float, tuple[float, float] | None]]:
    """Every measure's difference in one world, with its interval."""
    names = np.array([f"p{number:03d}" for number in range(people)], object)
    own = np.repeat(np.arange(people), each)
    figures: list[dict[str, float]] = []
    replicates, rows = [], []
    for matrix in scores_of(rng, people, each, kept):
        scores = Scores.from_matrix(matrix, names, names[own])
        data = SortedScores.from_arrays(scores.targets, scores.impostors)
        linked = better_counts(matrix)[own, np.arange(len(own))] == 0
        figures.append(values(data) | {"linkability": float(linked.mean())})
        replicates.append(replicates_of(scores, data, 100, 0))
        rates = linked.reshape(people, each).mean(axis=1)
        rows.append(
            {
                (1, people): [
                    LinkedPerson(speaker=name, length=1, among=people, conversations=each, linked=float(rate))
                    for name, rate in zip(names, rates, strict=True)
                ]
            }
        )
    paired = PairedTrials(tuple(replicates), tuple(rows))
    made = {}
    for name in MEASURES:
        at = {"speakers": people, "length": 1} if name == "linkability" else {}
        first, second = (Estimate(name=name, value=of_system[name], at=at) for of_system in figures)
        made[name] = (second.value - first.value, paired.interval(first, second, 1))
    return made


def coverage(worlds: int, people: int, each: int, kept: tuple[float, float], seed: int = 0) -> dict[str, float]:
    rng = np.random.default_rng(seed)
    found = [differences(rng, people, each, kept) for _ in range(worlds)]
    shares = {}
    for name in MEASURES:
        truth = float(np.mean([world[name][0] for world in found]))
        intervals = [world[name][1] for world in found]
        shares[name] = float(np.mean([each is not None and each[0] <= truth <= each[1] for each in intervals]))
    return shares


def main() -> None:
    good = True
    for people in (20, 60):
        for kept in KEPT:
            shares = coverage(WORLDS, people, 4, kept)
            good &= all(0.91 <= share <= 0.99 for share in shares.values())
            shown = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
            print(f"  {people:3} people, kept {kept}: {shown}", flush=True)
    print("ok" if good else "NOT REACHED")


if __name__ == "__main__":
    main()
