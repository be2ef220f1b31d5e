"""Simulated speakers whose voices are known, and what an anonymizer makes of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Level = Literal["low", "raised", "high", "unknown"]
DIMENSION, RECORDINGS, WITHIN = 48, 6, 0.6


@dataclass(frozen=True)
class Voices:
    """Original recordings of some people; `own` says who speaks in each row, `take` the number of the recording."""

    original: Floats
    own: NDArray[np.int64]
    rng: np.random.Generator

    @property
    def people(self) -> int:
        return int(self.own.max()) + 1

    @property
    def take(self) -> NDArray[np.int64]:
        first = np.unique(self.own, return_index=True)[1]
        return np.arange(len(self.own)) - first[self.own]

    def noise(self) -> Floats:
        return self.rng.standard_normal(self.original.shape)

    def per_person(self, dimension: int = DIMENSION) -> Floats:
        """Something drawn for each person, at every recording of theirs."""
        return self.rng.standard_normal((self.people, dimension))[self.own]


@dataclass(frozen=True)
class Truth:
    """What is true of a world, where the code that draws it knows (None: not known).

    `exposed` are the people of whom something is left, `unknown` those whose originals are noise; `kept` the attribute
    that is kept and nothing else; `own_run` whether `again` is a run of this anonymizer; `one_voice` whether everybody
    has one voice throughout the release; `let_through` how many recordings were hardly changed; `own_ids` whether all
    recordings have their own ids.
    """

    exposed: NDArray[np.int64] | None = None
    unknown: NDArray[np.int64] | None = None
    kept: str | None = None
    own_run: bool | None = None
    one_voice: bool | None = None
    let_through: int | None = None
    own_ids: bool = True


@dataclass(frozen=True)
class Case:
    """What is assessed: `again` is a run that attackers made themselves, `trials` the recordings that are tried where
    that is not left to chance. `truth` holds the true values; findings are compared with them."""

    original: Floats
    anonymized: Floats
    again: Floats | None = None
    attributes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    trials: NDArray[np.bool_] | None = None
    covered: NDArray[np.bool_] | None = None  # recordings that `again` has, where not all
    draws: Mapping[str, Sequence[str]] = field(default_factory=dict)  # names of draws, in the release and in `again`
    each_draw: Mapping[str, Floats] = field(default_factory=dict)  # runs with one draw for everybody, by its name
    truth: Truth = field(default_factory=lambda: Truth())


def _as_ever(people: int) -> Sequence[int]:
    return [RECORDINGS] * people


@dataclass(frozen=True)
class World:
    """`recognizable` is the truth; a world in which nothing can be known must only not be called low.

    `recordings` says how many each person has; `people`, where given, is the only number of people that makes sense;
    `most` the highest level that is true of it; `options` are those of its assessment.
    """

    make: Callable[[Voices], Case]
    recognizable: bool
    about: str
    recordings: Callable[[int], Sequence[int]] = _as_ever
    people: int | None = None
    most: Level | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def highest(self) -> Level:
        return self.most or ("high" if self.recognizable else "low")


def voices_of(world: World, people: int, rng: np.random.Generator) -> Voices:
    """Gaussian voices, and recordings that scatter around them."""
    own = np.repeat(np.arange(people), world.recordings(people))
    voice = rng.standard_normal((people, DIMENSION))[own]
    return Voices(voice + WITHIN * rng.standard_normal(voice.shape), own, rng)


def _kept(voices: Voices, rows: NDArray[np.bool_], noise: float = 0.3, **more: object) -> Case:
    """These recordings are little changed, and noise replaces all others; the attackers' own run does the same."""

    def run() -> Floats:
        return np.where(rows[:, None], voices.original + noise * voices.noise(), voices.noise())

    return Case(voices.original, run(), run(), **more)  # type: ignore[arg-type]


def _perfect(voices: Voices) -> Case:
    return _kept(voices, np.zeros(len(voices.own), bool))


def unprotected(share: float) -> Callable[[Voices], Case]:
    return lambda voices: _kept(voices, voices.own < max(1, round(share * voices.people)))


def draw_rotation(rng: np.random.Generator, dimension: int = DIMENSION) -> Floats:
    """Uniformly random among all: QR alone prefers some, until the signs of R's diagonal join Q."""
    q, r = np.linalg.qr(rng.standard_normal((dimension, dimension)))
    return np.asarray(q * np.sign(np.diag(r)))


def _rotation(voices: Voices) -> Case:
    turned = voices.original @ draw_rotation(voices.rng)
    return Case(voices.original, turned + 0.1 * voices.noise(), turned + 0.1 * voices.noise())


def _pseudonyms(voices: Voices) -> Case:
    """One new voice per speaker; the attackers' own run has other ones."""
    runs = [voices.per_person() + WITHIN * voices.noise() for _ in range(2)]
    return Case(voices.original, runs[0], runs[1])


def _kept_pseudonyms(sharing: int) -> Callable[[Voices], Case]:
    """Permanent new voices, each shared by `sharing` people: anyone who knows one anonymized recording finds the
    others."""

    def make(voices: Voices) -> Case:
        voice = voices.rng.standard_normal((voices.people, DIMENSION))[voices.own // sharing]
        return Case(voices.original, voice + WITHIN * voices.noise(), voice + WITHIN * voices.noise())

    return make


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


def _norm(voices: Voices) -> Case:
    """Only the length of a vector says who speaks."""
    length = np.exp(0.5 * voices.per_person(1))
    return Case(voices.original, length * voices.noise(), length * voices.noise())


def _few_sessions(voices: Voices) -> Case:
    """One recording in six is left as it was, but for a fifth of the people."""
    return _kept(voices, (voices.take == RECORDINGS - 1) & (voices.own % 5 == 0))


def _copies(voices: Voices) -> Case:
    """A perfect anonymizer, but a recording of everybody is there twice, under two ids."""
    original, changed = voices.original.copy(), voices.noise()
    for person in range(voices.people):
        first, *_, last = np.flatnonzero(voices.own == person)
        original[last], changed[last] = original[first], changed[first]
    return Case(original, changed)


def _released_copies(voices: Voices) -> Case:
    """A perfect anonymizer, but the anonymized recordings of everybody's second half are those of the first half."""
    changed = voices.noise()
    half = voices.take >= RECORDINGS // 2
    changed[half] = changed[~half]
    return Case(voices.original, changed)


def _mislabels(voices: Voices) -> Case:
    """Hardly protected, and every fifth recording has a wrong name."""
    rows = np.flatnonzero(voices.rng.random(len(voices.own)) < 0.2)
    original = voices.original.copy()
    original[rows] = original[voices.rng.permutation(rows)]
    return Case(original, original + 0.5 * voices.noise(), original + 0.5 * voices.noise())


def _deaf(voices: Voices) -> Case:
    return Case(voices.noise(), voices.noise(), voices.noise())


def _swapped(voices: Voices) -> Case:
    """Two people speak in each other's voice, in every run; all others are replaced by noise."""
    rows = np.arange(len(voices.own))
    rows[voices.own < 2] = rows[voices.own < 2][::-1]
    pair = (voices.own < 2)[:, None]
    runs = [np.where(pair, voices.original[rows] + 0.3 * voices.noise(), voices.noise()) for _ in range(2)]
    return Case(voices.original, runs[0], runs[1])


def _one_session(voices: Voices) -> Case:
    """Two sessions each; in the second one voices are left as they were."""
    second = voices.take >= RECORDINGS // 2
    return _kept(voices, second, attributes={"session": ["ab"[int(late)] for late in second]})


def _faint(voices: Voices) -> Case:
    """Little in a single recording, more in several."""
    return Case(voices.original, *(0.3 * voices.original + voices.noise() for _ in range(2)))


def _heavy_tails(kept: float) -> Callable[[Voices], Case]:
    def make(voices: Voices) -> Case:
        tails = voices.rng.standard_t(2, (voices.people, DIMENSION))[voices.own]
        original = tails + WITHIN * voices.noise()
        return Case(original, *(kept * original + voices.rng.standard_t(2, original.shape) for _ in range(2)))

    return make


def _scaled_dimensions(kept: float) -> Callable[[Voices], Case]:
    def make(voices: Voices) -> Case:
        scale = np.exp(1.5 * voices.rng.standard_normal(DIMENSION))
        runs = [scale * (kept * voices.original + voices.noise()) for _ in range(2)]
        return Case(scale * voices.original, runs[0], runs[1])

    return make


def _people_twice(kept: float) -> Callable[[Voices], Case]:
    """Everybody is there under two ids."""

    def make(voices: Voices) -> Case:
        voice = voices.rng.standard_normal((voices.people, DIMENSION))[voices.own // 2]
        original = voice + WITHIN * voices.noise()
        return Case(original, *(kept * original + voices.noise() for _ in range(2)))

    return make


def _accents(voices: Voices) -> Case:
    """A perfect anonymizer; some accents are those of a single person."""
    accents = [f"accent {person if person < 5 else person % 2}" for person in voices.own]
    return _kept(voices, np.zeros(len(voices.own), bool), attributes={"accent": accents})


def _tried(kept: bool) -> Callable[[Voices], Case]:
    """All trials are of one person."""

    def make(voices: Voices) -> Case:
        rows = (voices.own == 0) & (voices.take >= RECORDINGS // 2)
        return _kept(voices, np.full(len(voices.own), kept), trials=rows)

    return make


def _nonlinear(leak: Callable[[Voices, Floats], Floats]) -> Callable[[Voices], Case]:
    """`leak` gives recordings from voices and from numbers between 0 and 1 that were drawn for each person."""

    def make(voices: Voices) -> Case:
        drawn = voices.rng.random((voices.people, DIMENSION))[voices.own]
        return Case(voices.original, leak(voices, drawn), leak(voices, drawn))

    return make


def phases(voices: Voices, drawn: Floats) -> Floats:
    """Half of the coordinates are noise x, the others 5 x plus what was drawn, modulo 1."""
    x = voices.rng.random((len(voices.own), DIMENSION // 2))
    return np.concatenate([x, (5 * x + drawn[:, : DIMENSION // 2]) % 1], axis=1)


def one_phase(voices: Voices, drawn: Floats) -> Floats:
    x = voices.rng.random(drawn.shape)
    x[:, 7] = (5 * x[:, 3] + drawn[:, 0]) % 1
    return x


def parities(size: int) -> Callable[[Voices, Floats], Floats]:
    """The sign of the product of each `size` coordinates is the person's."""

    def leak(voices: Voices, drawn: Floats) -> Floats:
        x = voices.noise()
        wanted = np.where(drawn[:, : DIMENSION // size] < 0.5, -1, 1)
        x[:, ::size] *= np.sign(x).reshape(len(x), -1, size).prod(axis=2) * wanted
        return x

    return leak


def random_signs(voices: Voices, drawn: Floats) -> Floats:
    return np.asarray(np.abs(voices.original) * voices.rng.choice([-1, 1], drawn.shape))


def random_mirror(voices: Voices, drawn: Floats) -> Floats:
    return voices.original * voices.rng.choice([-1, 1], (len(drawn), 1)) + 0.3 * voices.noise()


def radii(voices: Voices, drawn: Floats) -> Floats:
    """Each two coordinates are a point on a circle whose radius is the person's."""
    angles = 2 * np.pi * voices.rng.random((len(drawn), DIMENSION // 2))
    circles = (1 + drawn[:, : DIMENSION // 2]) * np.stack([np.cos(angles), np.sin(angles)])
    return np.concatenate(list(circles), axis=1)


def rotated_parities(voices: Voices, drawn: Floats) -> Floats:
    return parities(4)(voices, drawn) @ draw_rotation(np.random.default_rng(5))


LEAKS: dict[str, Callable[[Voices, Floats], Floats]] = {
    "phases of 24 pairs of coordinates": phases,
    "phase of one pair": one_phase,
    "signs of products of 4 coordinates": parities(4),
    "signs of products of 3 coordinates": parities(3),
    "coordinates with random signs": random_signs,
    "vectors with random signs": random_mirror,
    "radii of 24 pairs of coordinates": radii,
    "signs of products of 4, in a secret rotation": rotated_parities,
    "signs of products of 16 coordinates": parities(16),
}


Runs = Literal["none", "one", "each draw"]


def finite_set(transform: Callable[[Voices, int], Callable[[NDArray[np.int64]], Floats]], draws: int, runs: Runs,
               *, named: bool = True, per_person: bool = False) -> Callable[[Voices], Case]:  # fmt: skip
    """`transform` makes copies, given the draw of each recording. Attackers have no run, one, or one with each draw;
    with `named` all runs say which draw each recording has."""

    def make(voices: Voices) -> Case:
        run = transform(voices, draws)
        drawn = voices.rng.integers(0, draws, (2, len(voices.own)))
        if per_person:
            drawn = drawn[:, np.searchsorted(voices.own, voices.own)]
        names = dict(zip(("anonymized", "attacker_run"), (row.astype(str).tolist() for row in drawn), strict=True))
        every = range(draws) if runs == "each draw" else ()
        return Case(
            voices.original,
            run(drawn[0]),
            run(drawn[1]) if runs == "one" else None,
            draws=names if named else {},
            each_draw={str(draw): run(np.full(len(voices.own), draw)) for draw in every},
        )

    return make


def rotations(noise: float) -> Callable[[Voices, int], Callable[[NDArray[np.int64]], Floats]]:
    """Public rotations of unit vectors, with noise: who tries all of them undoes it."""

    def transform(voices: Voices, draws: int) -> Callable[[NDArray[np.int64]], Floats]:
        turns = np.stack([draw_rotation(voices.rng) for _ in range(draws)])
        voices.original[:] /= np.linalg.norm(voices.original, axis=1, keepdims=True)
        return lambda drawn: np.einsum("ni,nij->nj", voices.original, turns[drawn]) + noise * voices.noise()

    return transform


def replacement_voices(voices: Voices, draws: int) -> Callable[[NDArray[np.int64]], Floats]:
    """New voices that keep nothing of the speaker's."""
    places = voices.rng.standard_normal((draws, DIMENSION))
    return lambda drawn: places[drawn] + WITHIN * voices.noise()


def codebook(draws: int, noise: float = 0.0, *, named: bool = False) -> Callable[[Voices], Case]:
    """A public rotation for every recording. With `named` the release says which one, and attackers have no run."""
    return finite_set(rotations(noise), draws, "none" if named else "one", named=named)


def _few_have_little(people: int) -> list[int]:
    """One person in five has two recordings, the others twelve."""
    return [2 if person % 5 == 0 else 12 for person in range(people)]


def _one_has_many(people: int) -> list[int]:
    return [50, *[4] * (people - 1)]


def _unequal(people: int) -> list[int]:
    return [2 + 7 * person % 29 for person in range(people)]


WORLDS: dict[str, World] = {
    "perfect": World(_perfect, False, "noise in place of every recording"),
    "perfect, no own run": World(lambda v: Case(v.original, v.noise()), False, "the same, attackers have no run"),
    "new voices": World(_pseudonyms, False, "one new voice per speaker and run", most="raised"),
    "kept voices": World(_kept_pseudonyms(1), True, "one permanent new voice per speaker"),
    "voices for two": World(_kept_pseudonyms(2), True, "one permanent new voice for every two speakers"),
    "voices for five": World(_kept_pseudonyms(5), True, "one permanent new voice for every five speakers"),
    "one voice": World(_one_voice, False, "one voice for everybody"),
    "noise": World(lambda v: Case(v.original, *(0.5 * v.original + v.noise() for _ in range(2))), True, "half kept"),
    "scaled": World(lambda v: Case(v.original, 0.8 * v.original, 0.8 * v.original), True, "nothing but the level"),
    "rotation": World(_rotation, True, "every voice rotated alike"),
    "sign flip": World(lambda v: Case(v.original, *(0.1 * v.noise() - v.original for _ in range(2))), True, "mirrored"),
    "1 % unprotected": World(unprotected(0.01), True, "one person in a hundred unchanged"),
    "5 % unprotected": World(unprotected(0.05), True, "one person in twenty unchanged"),
    "10 % unprotected": World(unprotected(0.10), True, "one person in ten unchanged"),
    "low variance": World(_low_variance, True, "a leak where voices vary little"),
    "one gender": World(lambda v: _kept(v, v.own % 2 == 0), True, "women kept, men replaced by noise"),
    "norm": World(_norm, True, "the length of a vector tells"),
    "few sessions": World(_few_sessions, True, "some recordings of some people unchanged"),
    "copies": World(_copies, False, "a perfect anonymizer, recordings twice in the data"),
    "released copies": World(_released_copies, False, "a perfect anonymizer, anonymized recordings twice in the data"),
    "mislabels": World(_mislabels, True, "hardly protected, labels partly wrong"),
    "deaf": World(_deaf, True, "an extractor that hears nothing: nothing can be known"),
    "swapped": World(_swapped, True, "two people in each other's voice, the others noise"),
    "one session": World(_one_session, True, "a leak in one of two sessions"),
    "faint": World(_faint, True, "little in one recording, more in several", lambda people: [12] * people),
    "few recordings": World(
        lambda v: _kept(v, v.own % 5 == 0), True, "a leak of those with two recordings only", _few_have_little
    ),
    "one of many recordings": World(
        lambda v: _kept(v, v.own == 0), True, "a leak of the one person with 50 recordings", _one_has_many
    ),
    "perfect, unbalanced": World(_perfect, False, "perfect, one person has 50 recordings", _one_has_many),
    "perfect, unequal": World(_perfect, False, "perfect, people have 2 to 30 recordings", _unequal),
    "heavy tails": World(_heavy_tails(1.0), True, "half kept, heavy-tailed vectors"),
    "perfect, heavy tails": World(_heavy_tails(0.0), False, "perfect, heavy-tailed vectors"),
    "scaled dimensions": World(_scaled_dimensions(0.5), True, "half kept, some dimensions far larger than others"),
    "perfect, scaled dimensions": World(_scaled_dimensions(0.0), False, "perfect, dimensions of all sizes"),
    "people twice": World(_people_twice(1.0), True, "half kept, everybody under two ids"),
    "perfect, people twice": World(_people_twice(0.0), False, "perfect, everybody under two ids"),
    "perfect, accents": World(_accents, False, "perfect, some groups are one person"),
    "codebook": World(codebook(1000), True, "one of 1,000 public rotations per recording"),
    "noisy codebook, named": World(
        codebook(50, 0.05, named=True), True, "one of 50 public rotations per recording, named, with noise"
    ),
    "each of 20 rotations": World(
        finite_set(rotations(0.05), 20, "each draw"), True, "20 named rotations with noise, each tried"
    ),
    "20 rotations, named": World(
        finite_set(rotations(0.05), 20, "one"), True, "20 named rotations with noise, one run"
    ),
    "1,000 rotations, named": World(finite_set(rotations(0.0), 1000, "one"), True, "1,000 named rotations, one run"),
    "perfect, each of 20 voices": World(
        finite_set(replacement_voices, 20, "each draw"), False, "20 named voices that replace the speaker's, each tried"
    ),
    "perfect, 20 voices per person": World(
        finite_set(replacement_voices, 20, "each draw", per_person=True), False, "the same, one per person",
        most="raised",
    ),
    "phases": World(_nonlinear(phases), True, "the phase of two coordinates tells"),
    "one phase": World(_nonlinear(one_phase), True, "the phase of two of 48 coordinates tells"),
    "parities": World(_nonlinear(parities(4)), True, "the sign of a product of four coordinates tells"),
    "random signs": World(_nonlinear(random_signs), True, "voices kept but for the signs of coordinates"),
    "three people": World(lambda v: _kept(v, np.ones(len(v.own), bool), 0.5), True, "hardly protected", people=3),
    "perfect, three people": World(_perfect, False, "noise in place of every recording", people=3),
    "one person tried": World(_tried(True), True, "unprotected, all trials of one person"),
    "perfect, one person tried": World(_tried(False), False, "perfect, all trials of one person"),
}  # fmt: skip
