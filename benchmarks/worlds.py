"""A court of worlds whose truth is known: what an assessment says of them, and how often that is wrong.

    python -m benchmarks.worlds [--worlds perfect rotation ...] [--people 20 40 100] [--seeds 5] [--processes 2]

Speakers are Gaussian voices, or real x-vectors of the VoicePrivacy 2020 challenge (where the shared data lies beside
the repository). Each world says whether people can be recognized in it. Counted are

- false reassurance: a trustworthy "low" where people can be recognized (none is allowed);
- trusted false alarms: a trustworthy "raised" or "high" where nobody can be (at most one in twenty);
- coverage: how often the headline's interval holds the mean of that very figure over all seeds of the world.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from veilmeter import assess
from veilmeter.data.embeddings import Embeddings

Floats = NDArray[np.float64]
DIMENSION, RECORDINGS, WITHIN = 48, 6, 0.6
SHARED = Path(__file__).resolve().parents[2] / "shared" / "data" / "vpc2020-b1" / "extractor-original"
ATTACKERS = ("ignorant", "lazy-informed", "informed", "procrustes")
OPTIONS: dict[str, Any] = {
    "lengths": [1, 3],
    "measures": ["scores", "linkability", "singling-out", "inversion"],
    "resamples": 200,
}


@dataclass(frozen=True)
class Voices:
    """Original recordings of some people; `own` says who speaks in each row."""

    original: Floats
    own: NDArray[np.int64]
    rng: np.random.Generator

    @property
    def people(self) -> int:
        return int(self.own.max()) + 1

    def noise(self) -> Floats:
        return self.rng.standard_normal(self.original.shape)

    def per_person(self, dimension: int = DIMENSION) -> Floats:
        """Something drawn for each person, at every recording of theirs."""
        return self.rng.standard_normal((self.people, dimension))[self.own]


@dataclass(frozen=True)
class Case:
    """What is assessed: `again` is a run that attackers made themselves."""

    original: Floats
    anonymized: Floats
    again: Floats | None = None


@dataclass(frozen=True)
class World:
    """`recognizable` is the truth; a world in which nothing can be known must only not be called low."""

    make: Callable[[Voices], Case]
    recognizable: bool
    about: str


def _unprotected(share: float) -> Callable[[Voices], Case]:
    def make(voices: Voices) -> Case:
        kept = voices.own < max(1, round(share * voices.people))
        changed = np.where(kept[:, None], voices.original + 0.1 * voices.noise(), voices.noise())
        again = np.where(kept[:, None], voices.original + 0.1 * voices.noise(), voices.noise())
        return Case(voices.original, changed, again)

    return make


def _rotation(voices: Voices) -> Case:
    turn = np.linalg.qr(voices.rng.standard_normal((DIMENSION, DIMENSION)))[0]
    turned = voices.original @ turn
    return Case(voices.original, turned + 0.1 * voices.noise(), turned + 0.1 * voices.noise())


def _pseudonyms(voices: Voices) -> Case:
    """One new voice per speaker; the attackers' own run has other ones."""
    runs = [voices.per_person() + WITHIN * voices.noise() for _ in range(2)]
    return Case(voices.original, runs[0], runs[1])


def _kept_pseudonyms(voices: Voices) -> Case:
    """One new voice per speaker for good: who knows one anonymized recording finds the others."""
    voice = voices.per_person()
    return Case(voices.original, voice + WITHIN * voices.noise(), voice + WITHIN * voices.noise())


def _one_voice(voices: Voices) -> Case:
    voice = voices.rng.standard_normal(DIMENSION)
    return Case(voices.original, voice + 0.05 * voices.noise(), voice + 0.05 * voices.noise())


def _low_variance(voices: Voices) -> Case:
    identity = np.zeros_like(voices.original)
    identity[:, :6] = 0.05 * voices.per_person(6)

    def run() -> Floats:
        noise = voices.noise()
        noise[:, :6] *= 0.02
        return identity + noise

    return Case(voices.original, run(), run())


def _one_gender(voices: Voices) -> Case:
    women = (voices.own % 2 == 0)[:, None]
    runs = [np.where(women, voices.original + 0.3 * voices.noise(), voices.noise()) for _ in range(2)]
    return Case(voices.original, runs[0], runs[1])


def _norm(voices: Voices) -> Case:
    """Only the length of a vector says who speaks."""
    length = np.exp(0.5 * voices.per_person(1))
    return Case(voices.original, length * voices.noise(), length * voices.noise())


def _few_sessions(voices: Voices) -> Case:
    """One recording in six is left as it was, but for a fifth of the people."""
    row = np.arange(len(voices.own))
    kept = ((row % RECORDINGS == RECORDINGS - 1) & (voices.own % 5 == 0))[:, None]
    runs = [np.where(kept, voices.original + 0.1 * voices.noise(), voices.noise()) for _ in range(2)]
    return Case(voices.original, runs[0], runs[1])


def _copies(voices: Voices) -> Case:
    """A perfect anonymizer, but a recording of everybody is there twice, under two ids."""
    original, changed = voices.original.copy(), voices.noise()
    for person in range(voices.people):
        first, *_, last = np.flatnonzero(voices.own == person)
        original[last], changed[last] = original[first], changed[first]
    return Case(original, changed)


def _mislabels(voices: Voices) -> Case:
    """Hardly protected, and every fifth recording stands under a wrong name."""
    rows = np.flatnonzero(voices.rng.random(len(voices.own)) < 0.2)
    original = voices.original.copy()
    original[rows] = original[voices.rng.permutation(rows)]
    return Case(original, original + 0.5 * voices.noise(), original + 0.5 * voices.noise())


def _deaf(voices: Voices) -> Case:
    return Case(voices.noise(), voices.noise(), voices.noise())


WORLDS: dict[str, World] = {
    "perfect": World(lambda v: Case(v.original, v.noise(), v.noise()), False, "noise instead of every recording"),
    "perfect, no own run": World(lambda v: Case(v.original, v.noise()), False, "the same, attackers have no run"),
    "new voices": World(_pseudonyms, False, "one new voice per speaker and run"),
    "kept voices": World(_kept_pseudonyms, True, "one new voice per speaker for good"),
    "one voice": World(_one_voice, False, "one voice for everybody"),
    "noise": World(lambda v: Case(v.original, *(0.5 * v.original + v.noise() for _ in range(2))), True, "half kept"),
    "rotation": World(_rotation, True, "every voice rotated alike"),
    "sign flip": World(lambda v: Case(v.original, *(0.1 * v.noise() - v.original for _ in range(2))), True, "mirrored"),
    "1 % unprotected": World(_unprotected(0.01), True, "one person in a hundred unchanged"),
    "5 % unprotected": World(_unprotected(0.05), True, "one person in twenty unchanged"),
    "10 % unprotected": World(_unprotected(0.10), True, "one person in ten unchanged"),
    "low variance": World(_low_variance, True, "a leak where voices vary little"),
    "one gender": World(_one_gender, True, "women kept, men replaced by noise"),
    "norm": World(_norm, True, "the length of a vector tells"),
    "few sessions": World(_few_sessions, True, "some recordings of some people unchanged"),
    "copies": World(_copies, False, "a perfect anonymizer, recordings twice in the data"),
    "mislabels": World(_mislabels, True, "hardly protected, labels partly wrong"),
    "deaf": World(_deaf, True, "an extractor that hears nothing: nothing can be known"),
}
REAL = ("B1", "B1, trials exchanged")


@dataclass(frozen=True)
class Judgment:
    """What was said of one world."""

    world: str
    people: int
    seed: int
    recognizable: bool
    level: Literal["low", "raised", "high", "unknown"]
    trustworthy: bool
    distrust: tuple[str, ...]
    point: tuple[str, Any, Any]
    interval: tuple[float, float] | None
    curve: dict[tuple[str, Any, Any], float]
    seconds: float

    @property
    def falsely_reassuring(self) -> bool:
        return self.recognizable and self.trustworthy and self.level == "low"

    @property
    def false_alarm(self) -> bool:
        return not self.recognizable and self.trustworthy and self.level in ("raised", "high")


def simulated(world: str, people: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng([seed, people, sorted(WORLDS).index(world)])
    own = np.repeat(np.arange(people), RECORDINGS)
    voices = rng.standard_normal((people, DIMENSION))[own]
    case = WORLDS[world].make(Voices(voices + WITHIN * rng.standard_normal(voices.shape), own, rng))
    names = [f"s{person:04d}" for person in own]
    ids = [f"{name}-{row % RECORDINGS}" for row, name in enumerate(names)]
    genders = {"gender": ["fm"[person % 2] for person in own]}
    sides = {"original": case.original, "anonymized": case.anonymized, "attacker_run": case.again}
    return {role: Embeddings(vectors, ids, names, genders) for role, vectors in sides.items() if vectors is not None}


@contextmanager
def real(world: str, seed: int) -> Iterator[dict[str, Any]]:
    """Original and B1 x-vectors, enrollment and trials of the challenge. Exchanged: every trial recording is replaced
    by one that was drawn among all of them, so that nothing of the right person is left, not even the gender."""
    from veilmeter.data.embeddings import joined
    from veilmeter.data.formats.vectors import read_embeddings

    parts = ("enrolls", "trials_f", "trials_m")
    original, anonymized = (
        joined([read_embeddings(SHARED / f"xvect_libri_test_{part}{end}") for part in parts]) for end in ("", "_anon")
    )
    anonymized = anonymized.of_utterances(list(original.utterances))
    enrolled = len(read_embeddings(SHARED / "xvect_libri_test_enrolls"))
    if world != "B1":
        vectors = anonymized.vectors.copy()
        vectors[enrolled:] = np.random.default_rng(seed).permutation(vectors[enrolled:])
        anonymized = anonymized.with_vectors(vectors)
    with TemporaryDirectory() as folder:
        lists = {}
        for name, ids in (("enroll", original.utterances[:enrolled]), ("trials", original.utterances[enrolled:])):
            lists[name] = Path(folder) / name
            lists[name].write_text("\n".join(ids) + "\n")
        yield {"original": original, "anonymized": anonymized, **{name: str(path) for name, path in lists.items()}}


def judge(
    world: str, people: int, seed: int, attackers: Sequence[str] = ATTACKERS, options: Mapping[str, Any] = OPTIONS
) -> Judgment:
    """One assessment of one world."""
    started = time.process_time()
    with real(world, seed) if world in REAL else nullcontext(simulated(world, people, seed)) as sides:
        results = assess(**sides, attackers=list(attackers), seed=seed, **options).results
    linking = results.criteria["linking"]
    at = linking.estimate.at
    curve = {
        (name, point.at.get("length"), point.at.get("speakers")): point.value
        for name, attacker in results.attacks.items()
        for point in attacker.estimates.points("linkability")
    }
    return Judgment(
        world=world,
        people=results.protocol.enrolled_speakers,
        seed=seed,
        recognizable=world == "B1" if world in REAL else WORLDS[world].recognizable,
        level=results.verdict.level,
        trustworthy=results.verdict.trustworthy,
        distrust=tuple(check.name for check in results.checks if check.failed),
        point=(linking.attacker, at.get("length"), at.get("speakers")),
        interval=None if linking.group else linking.estimate.interval,
        curve=curve,
        seconds=time.process_time() - started,
    )


def covered(judgments: Sequence[Judgment]) -> list[bool]:
    """Whether each headline's interval holds the mean of that figure over the other seeds of the world."""
    inside = []
    for judgment in judgments:
        others = [other.curve[judgment.point] for other in judgments if other is not judgment
                  and judgment.point in other.curve]  # fmt: skip
        if judgment.interval is not None and len(others) >= 4:
            inside.append(judgment.interval[0] <= np.mean(others) <= judgment.interval[1])
    return inside


def summary(judgments: Sequence[Judgment]) -> Iterator[str]:
    """A line per world and size, then what counts."""
    rows: dict[tuple[str, int], list[Judgment]] = defaultdict(list)
    for judgment in judgments:
        rows[judgment.world, judgment.people].append(judgment)
    yield f"{'world':24}{'people':>7}{'truth':>14}  low raised high unknown  trusted  covered  doubts"
    inside: list[bool] = []
    for (world, people), of_world in rows.items():
        counts = [sum(one.level == level for one in of_world) for level in ("low", "raised", "high", "unknown")]
        held = covered(of_world)
        inside += held
        truth = "recognizable" if of_world[0].recognizable else "nobody"
        doubts = ", ".join(sorted({doubt for one in of_world for doubt in one.distrust}))
        yield (
            f"{world:24}{people:7}{truth:>14}  {counts[0]:3} {counts[1]:6} {counts[2]:4} {counts[3]:7}"
            f"  {sum(one.trustworthy for one in of_world):3}/{len(of_world):<3}"
            f"  {f'{sum(held)}/{len(held)}' if held else '-':>7}  {doubts}"
        )
    lying = [one for one in judgments if one.falsely_reassuring]
    crying = [one for one in judgments if one.false_alarm]
    nobody = [one for one in judgments if not one.recognizable]
    yield f"false reassurance: {len(lying)} of {sum(one.recognizable for one in judgments)} (wanted: 0)"
    yield from (f"  {one.world}, {one.people} people, seed {one.seed}" for one in lying)
    yield f"trusted false alarms: {len(crying)} of {len(nobody)} (wanted: at most 1 in 20)"
    yield from (f"  {one.world}, {one.people} people, seed {one.seed}: {one.level}" for one in crying)
    if inside:
        yield f"the headline's interval holds the truth: {np.mean(inside):.1%} of {len(inside)} (wanted: 93 to 98 %)"
    yield f"processor time: {sum(one.seconds for one in judgments):.0f} s"


def _task(task: tuple[str, int, int]) -> Judgment:
    return judge(*task)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--worlds", nargs="*", default=[*WORLDS, *REAL], metavar="WORLD")
    parser.add_argument("--people", nargs="*", type=int, default=[20, 40, 100])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    tasks = [
        (world, people, seed)
        for world in options.worlds
        for people in (options.people if world in WORLDS else [0])
        for seed in seeds
        if world in WORLDS or SHARED.is_dir()
    ]
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    judgments = []
    with ProcessPoolExecutor(options.processes) as pool:
        for judgment in pool.map(_task, tasks):
            judgments.append(judgment)
            print(f"{judgment.world}, {judgment.people} people, seed {judgment.seed}: {judgment.level}", flush=True)
    print(*summary(judgments), sep="\n")


if __name__ == "__main__":
    main()
