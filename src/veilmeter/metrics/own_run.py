"""Whether an attacker's run is one of the anonymizer that made the release, and whether the release links itself.

What an attacker finds by a run says nothing about a release that another system, or the same one with another key,
made. If both are runs of one anonymizer, it makes no difference which is which: for each person the two are exchanged
at random, and the distance of the two sets of recordings must not stand out. It is that of the means, of the
covariances, and of the covariances with the originals (what becomes of a voice); each is a sum over pairs of people, so
that an exchange changes signs only.

Released recordings that are linked to other released ones of the same person show that there is something to find,
whatever the attackers found.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilmeter.data.embeddings import Embeddings, unit
from veilmeter.metrics.legal.chance import better_counts, linkability_draws, name_blocks, relabelings

DRAWS = 499
LEAST_PEOPLE = 6  # two to the sixth exchanges at most: fewer can't stand out
MOST_PEOPLE, MOST_RECORDINGS = 500, 4  # of each: more would hardly add power
Floats = NDArray[np.float64]


def run_difference(original: Embeddings, released: Embeddings, run: Embeddings, *, seed: int = 0) -> float | None:
    """How often two runs of one anonymizer would differ as much as these, over the recordings that both have; None
    where there are too few people or other vectors."""
    rows = [u for u in run.utterances if u in released.utterance_rows and u in original.utterance_rows]
    clear, first, second = (_few(side.of_utterances(rows), seed) for side in (original, released, run))
    if len(clear.names) < LEAST_PEOPLE or first.dimension != second.dimension:
        return None
    whose = np.eye(len(clear.names))[clear.codes]
    (before,), (one, two) = _features(clear), _features(first, second)
    difference = one - two
    means = difference @ difference.T
    covariances = (one @ one.T) ** 2 + (two @ two.T) ** 2 - (one @ two.T) ** 2 - (two @ one.T) ** 2
    kept = (before @ before.T) * means
    rng = np.random.default_rng([seed, 23])
    signs = np.concatenate([np.ones((1, len(clear.names))), rng.choice([-1.0, 1.0], (DRAWS, len(clear.names)))])
    distances = np.stack([_distances(whose.T @ pairs @ whose, signs) for pairs in (means, covariances, kept)])
    # The largest of the three, each by its place among its own exchanges.
    places = (distances[:, :, None] >= distances[:, None, :] - 1e-9).mean(axis=2).max(axis=0)
    return float(np.mean(places >= places[0] - 1e-12))


def _distances(pairs: Floats, signs: Floats) -> Floats:
    distances: Floats = np.einsum("ds,st,dt->d", signs, pairs, signs, optimize=True)
    return distances


def _features(*sides: Embeddings) -> list[Floats]:
    """Directions and, as one coordinate more, lengths, around what all sides have in common."""
    wide = [side.vectors.astype(np.float64) for side in sides]
    lengths = [np.log(np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)) for rows in wide]
    spread = 2 * max(float(np.std(np.concatenate(lengths))), 1e-6)
    rows = [np.hstack([unit(some), length / spread]) for some, length in zip(wide, lengths, strict=True)]
    origin = np.concatenate(rows).mean(axis=0)
    return [some - origin for some in rows]


def release_linking(known: Embeddings, tried: Embeddings, *, seed: int = 0) -> float | None:
    """How often chance would link released trials to released recordings of the same people as well, by their cosine:
    among two people or among all, whichever stands out more. None where fewer than two people are in both."""
    people = [name for name in known.names if name in set(tried.names)]
    if len(people) < 2:
        return None
    if len(people) > MOST_PEOPLE:
        drawn = np.random.default_rng([seed, 24]).choice(len(people), MOST_PEOPLE, replace=False)
        people = [people[row] for row in np.sort(drawn)]
    known, tried = (_few(side, seed, people) for side in (known, tried))
    place = {name: row for row, name in enumerate(people)}
    whose = np.array([place[name] for name in known.speakers], np.int64)
    sums = np.zeros((len(people), known.dimension))
    np.add.at(sums, whose, known.unit.astype(np.float64))
    own = np.array([place[name] for name in tried.speakers], np.int64)
    better = better_counts(unit(sums) @ tried.unit.T)
    names = relabelings(people, draws=DRAWS, seed=seed, blocks=name_blocks(own, len(people)))
    sizes = sorted({2, len(people)})
    rates = linkability_draws(better, own, sizes, names)
    return min(1.0, len(sizes) * float((rates >= rates[:, :1] - 1e-12).mean(axis=1).min()))


def _few(side: Embeddings, seed: int, people: list[str] | None = None) -> Embeddings:
    """At most so many recordings of at most so many people."""
    names = list(side.names) if people is None else people
    if len(names) > MOST_PEOPLE:
        names = [names[row] for row in np.random.default_rng([seed, 25]).choice(len(names), MOST_PEOPLE, replace=False)]
    wanted, left = set(names), dict.fromkeys(names, MOST_RECORDINGS)
    rows = []
    for row, speaker in enumerate(side.speakers):
        if speaker in wanted and left[speaker]:
            left[speaker] -= 1
            rows.append(row)
    return side.take(rows)
