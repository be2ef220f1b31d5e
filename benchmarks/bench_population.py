"""How far is Linkability that is extrapolated to a population from the truth, and does its interval hold it?

Simulated: from 50 people with four recordings each to 20,000, in ten worlds. Real: from a part of the people of the
VoicePrivacy 2020 x-vectors, and of LibriSpeech recordings, to all of them, where that data lies beside the repository.

The target is a mean error of log10 of at most 0.12 and intervals that cover the true value in 90 to 98 of 100 cases.
Beside each error is that of an oracle, which knows how each of the same recordings fares among all people. Its error
comes only from who happens to be among the few, and no estimate from them can do better. Where the oracle misses the
target as well, the output says so; the target is missed all the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.data.embeddings import concatenate, unit
from veilmeter.data.formats.vectors import read_embeddings
from veilmeter.metrics.legal.linkability import link_probability, linkability_of_scores
from veilmeter.metrics.legal.population import population_linkability

Floats = NDArray[np.float64]
MOST_ERROR = 0.12  # of log10
COVERED = (0.90, 0.98)
WORLDS = 12  # of each kind
FITTED, EACH, PEOPLE, TESTED = 50, 4, 20_000, 1_500
SIZES = (50, 200, 1_000, 5_000, 20_000)
LEAST = 1e-4  # of a rate, for its logarithm
DRAWS = 30  # parts of real people
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"
CLIP = 24_000  # samples of a trial: 1.5 s


def _mixture(share: float) -> Callable[[np.random.Generator, int], Floats]:
    """Hidden voices, and a share of people who are as clear as before."""
    return lambda rng, n: rng.standard_normal((n, 64)) * np.where(rng.random((n, 1)) < share, 1.5, 0.12)


VOICES: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "gaussian": lambda rng, n: rng.standard_normal((n, 24)) * 0.77,
    "gaussian, 192-d": lambda rng, n: rng.standard_normal((n, 192)) * 0.35,
    "hardly any leak": lambda rng, n: rng.standard_normal((n, 64)) * 0.3,
    "heavy tails": lambda rng, n: rng.standard_t(3, (n, 16)),
    "noisy people": lambda rng, n: rng.standard_normal((n, 32)) * np.exp(0.4 * rng.standard_normal((n, 1))) * 0.83,
    "families": lambda rng, n: (
        1.3 * rng.standard_normal((60, 24))[rng.integers(60, size=n)] + 0.9 * rng.standard_normal((n, 24))
    ),
    "genders": lambda rng, n: (
        np.where(rng.random((n, 1)) < 0.5, 1, -1) * np.r_[1.5, np.zeros(31)] + 0.6 * rng.standard_normal((n, 32))
    ),
    **{f"{share:.0%} unprotected": _mixture(share) for share in (0.02, 0.05, 0.1)},
}


@dataclass(frozen=True)
class Extrapolation:
    """One estimate among `speakers`, the truth, and what an oracle says."""

    speakers: int
    value: float
    interval: tuple[float, float]
    truth: float
    oracle: float

    @property
    def error(self) -> float:
        return _distance(self.value, self.truth)

    @property
    def oracle_error(self) -> float:
        return _distance(self.oracle, self.truth)

    @property
    def covered(self) -> bool:
        return self.interval[0] <= self.truth <= self.interval[1]


def _distance(first: float, second: float) -> float:
    return float(abs(np.log10(max(first, LEAST)) - np.log10(max(second, LEAST))))


def main() -> None:
    good = [_simulated(), _real()]
    print("ok" if all(good) else "NOT REACHED")


def _simulated() -> bool:
    print(f"Simulated, from {FITTED} people ({EACH} recordings each), {WORLDS} worlds of each kind:")
    every: list[Extrapolation] = []
    for name, shape in VOICES.items():
        of_kind = [point for number in range(WORLDS) for point in simulated(shape, number)]
        every += of_kind
        _table(name, of_kind)
    print("  all kinds of worlds")
    reached = [_row(f"  among {size:,}", [point for point in every if point.speakers == size]) for size in SIZES]
    return all(reached)


def simulated(shape: Callable[[np.random.Generator, int], Floats], number: int) -> list[Extrapolation]:
    """All sizes in one world: the truth is that of many other people."""
    rng = np.random.default_rng([3, number])
    voices = shape(rng, PEOPLE)
    enrolled = unit(voices + 0.3 * rng.standard_normal(voices.shape))

    def trials(who: NDArray[np.int64]) -> Floats:
        return np.asarray(unit(voices[who] + rng.standard_normal(voices[who].shape)) @ enrolled.T)

    many, few = np.arange(FITTED, FITTED + TESTED), np.arange(FITTED).repeat(EACH)
    truth, scores = _better(trials(many), many), trials(few)
    return list(_compared(scores[:, :FITTED].T, few, _better(scores, few), truth, PEOPLE, SIZES, number))


def _better(scores: Floats, own: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each trial (row) how many others score at least as high as the right person."""
    return np.asarray((scores >= scores[np.arange(len(own)), own][:, None]).sum(axis=1) - 1)


def _compared(
    scores: Floats,
    own: NDArray[np.int64],
    known: NDArray[np.int64],
    truth: NDArray[np.int64],
    people: int,
    sizes: tuple[int, ...],
    seed: int,
) -> Iterator[Extrapolation]:
    """Estimates from scores (people x trials), `known` and `truth` being the counts of better ones among all."""
    names = [str(person) for person in range(len(scores))]
    link = linkability_of_scores(scores, names, np.array(names, object)[own])
    assert link is not None
    for point, size in zip(population_linkability(link, sizes, seed=seed), sizes, strict=True):
        right, oracle = (float(link_probability(counts, people - 1, size).mean()) for counts in (truth, known))
        yield Extrapolation(size, point.value, point.interval or (0.0, 1.0), right, oracle)


def _real() -> bool:
    reached = []
    for name, enrolled, spoken, own in real_voices():
        people = len(enrolled)
        scores = unit(spoken) @ unit(enrolled).T
        truth = _better(scores, own)
        print(f"{name}, {people} people:")
        for share in (0.2, 0.35, 0.5):
            fitted = round(share * people)
            if fitted < 12:  # too few to extrapolate from
                continue
            points = []
            for number in range(DRAWS):
                drawn = np.sort(np.random.default_rng([fitted, number]).choice(people, fitted, replace=False))
                rows = np.flatnonzero(np.isin(own, drawn))
                part = scores[np.ix_(rows, drawn)].T
                whose = np.searchsorted(drawn, own[rows])
                points += _compared(part, whose, truth[rows], truth, people, (people,), number)
            reached.append(_row(f"  from {fitted}", points))
    return all(reached)


def real_voices() -> Iterator[tuple[str, Floats, Floats, NDArray[np.int64]]]:
    """Name, one enrollment vector per person, trial vectors, and who speaks in them."""
    for extractor in ("original", "retrained"):
        folder = SHARED / "vpc2020-b1" / f"extractor-{extractor}"
        if folder.is_dir():
            for enroll, trial in (("", ""), ("", "_anon"), ("_anon", "_anon")):
                words = [end.removeprefix("_") or "original" for end in (enroll, trial)]
                yield f"x-vectors ({extractor} extractor), {' and '.join(words)}", *_challenge(folder, enroll, trial)
    if (SHARED / "librispeech").is_dir():
        enrolled, spoken, own = _librispeech(SHARED / "librispeech" / "train-clean-100-251x1")
        rng = np.random.default_rng(0)
        for noise in (0.0, 1.0, 2.0):
            blurred = unit(spoken) + noise / np.sqrt(spoken.shape[1]) * rng.standard_normal(spoken.shape)
            yield f"LibriSpeech, noise {noise:g}", enrolled, blurred, own


def _challenge(folder: Path, enroll: str, trial: str) -> tuple[Floats, Floats, NDArray[np.int64]]:
    known = read_embeddings(folder / f"xvect_libri_test_enrolls{enroll}")
    spoken = concatenate([read_embeddings(folder / f"xvect_libri_test_trials_{part}{trial}") for part in "fm"])
    people = sorted(set(known.speakers))
    means = [np.mean(unit(known.vectors[known.speakers == person]), axis=0) for person in people]
    tried = np.isin(spoken.speakers, people)
    return np.array(means, np.float64), spoken.vectors[tried], np.searchsorted(people, spoken.speakers[tried])


def _librispeech(folder: Path) -> tuple[Floats, Floats, NDArray[np.int64]]:
    """The first half of each person's recording is enrolled, three clips of the second half are tried."""
    import soundfile

    from veilmeter.speech.extractors.base import load_extractor

    extractor = load_extractor("campplus", offline=True)
    enrolled, spoken = [], []
    for path in sorted(folder.glob("*.flac")):
        samples = soundfile.read(path, dtype="float32")[0]
        half = len(samples) // 2
        if len(samples) - half >= 3 * CLIP:
            enrolled.append(extractor.embed(samples[:half]))
            spoken += [extractor.embed(samples[half + k * CLIP : half + (k + 1) * CLIP]) for k in range(3)]
    return np.array(enrolled, np.float64), np.array(spoken, np.float64), np.arange(len(enrolled)).repeat(3)


def _table(name: str, points: list[Extrapolation]) -> None:
    print(f"  {name}")
    for size in SIZES:
        _row(f"  among {size:,}", [point for point in points if point.speakers == size])


def _row(name: str, points: list[Extrapolation]) -> bool:
    """Prints the means, and whether the targets are reached."""
    truth, value, error, oracle, covered, width = np.mean(
        [
            (point.truth, point.value, point.error, point.oracle_error, point.covered, np.ptp(point.interval))
            for point in points
        ],
        axis=0,
    )
    slack = 2 * np.sqrt(0.95 * 0.05 / len(points))
    inside = bool(COVERED[0] - slack <= covered <= COVERED[1] + slack)
    words = "reached" if error <= MOST_ERROR else "missed, by the oracle too" if oracle > MOST_ERROR else "missed"
    print(
        f"  {name:16} truth {truth:.3f}, value {value:.3f}, error {error:.3f} (oracle {oracle:.3f}; {words}), "
        f"covered {covered:.0%}, width {width:.3f}",
        flush=True,
    )
    return error <= MOST_ERROR and inside


if __name__ == "__main__":
    main()
