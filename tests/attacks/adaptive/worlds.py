"""Small worlds with a known truth: Gaussian voices, and an anonymizer that keeps some of a voice and adds a draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilmeter.attacks.material import AttackerRun, DrawLevel, Material, OtherPeople
from veilmeter.data.embeddings import Embeddings


@dataclass(frozen=True)
class World:
    """`kept` is how much of a voice survives (0 is a perfect anonymizer); draws lie in a few directions, as averages of
    a pool of voices do."""

    people: int = 20
    each: int = 4
    dimension: int = 16
    kept: float = 0.5
    noise: float = 0.4
    seed: int = 0
    others: int = 0
    trials_each: int = 4

    def material(
        self,
        draws: tuple[DrawLevel, ...] = ("utterance",),
        *,
        counts: list[int] | None = None,
        copied: int | None = None,
    ) -> tuple[Material, np.ndarray]:
        """What an attacker has, and whose each trial is. `copied` is the dimension of anonymized vectors."""
        rng = np.random.default_rng([self.seed, 3])
        size = copied or self.dimension
        turn = rng.standard_normal((self.dimension, size)) / np.sqrt(self.dimension)
        directions = rng.standard_normal((5, size))

        def copy(heard: np.ndarray, speakers: np.ndarray, draw: DrawLevel) -> np.ndarray:
            drawn = rng.standard_normal((len(heard), 5))
            if draw == "speaker":
                drawn = rng.standard_normal((speakers.max() + 1, 5))[speakers]
            return self.kept * heard @ turn + drawn @ directions + 0.4 * rng.standard_normal((len(heard), size)) + 1

        def say(people: int, each: list[int], tag: str) -> tuple[np.ndarray, np.ndarray, list[str], list[str]]:
            speakers = np.repeat(np.arange(people), each)
            voices = rng.standard_normal((people, self.dimension))
            heard = voices[speakers] + self.noise * rng.standard_normal((len(speakers), self.dimension))
            ids = [f"{tag}{speaker}-{number}" for speaker in range(people) for number in range(each[speaker])]
            return heard, speakers, ids, [f"{tag}{speaker}" for speaker in speakers]

        enrolled = counts or [self.each] * self.people
        heard, speakers, ids, names = say(self.people, [n + self.trials_each for n in enrolled], "s")
        place = np.concatenate([np.arange(n + self.trials_each) for n in enrolled])
        known = place < np.repeat(enrolled, [n + self.trials_each for n in enrolled])
        candidates = Embeddings(heard, ids, names).take(known)
        runs = tuple(
            AttackerRun(vectors=candidates.with_vectors(copy(heard[known], speakers[known], draw)), draw=draw)
            for draw in draws
        )
        trials = copy(heard[~known], speakers[~known], "speaker").astype(np.float32)
        more = None
        if self.others:
            theirs, codes, other_ids, other_names = say(self.others, [2] * self.others, "o")
            made = tuple(
                AttackerRun(
                    vectors=Embeddings(copy(theirs, codes, "utterance"), other_ids, other_names), draw="utterance"
                )
                for _ in range(2)
            )
            more = OtherPeople(originals=Embeddings(theirs, other_ids, other_names), runs=made)
        truth = speakers[~known]
        material = Material(
            candidates=candidates,
            trials=trials,
            conversations=(np.arange(len(trials))[:, None],),
            runs=runs,
            others=more,
            pseudonyms=truth.astype(np.int64),
        )
        return material, truth


def linked(scores: np.ndarray, truth: np.ndarray) -> float:
    """The share of trials whose right candidate is ahead of everybody else."""
    own = scores[truth, np.arange(len(truth))]
    return float(np.mean((scores >= own).sum(axis=0) == 1))
