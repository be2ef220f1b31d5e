"""Worlds made to mislead a verdict: wrong runs, single recordings, extractors that do not know everybody, attributes.

Each carries its true values (`Truth`), with which the findings of an assessment are compared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.world_cases import DIMENSION, WITHIN, Case, Floats, Truth, Voices, World, codebook, draw_rotation

PEOPLE = 100


def _everybody(voices: Voices) -> NDArray[np.int64]:
    return np.arange(voices.people)


NOBODY = np.zeros(0, np.int64)


def _wrong_run(make: Callable[[Voices], Floats]) -> Callable[[Voices], Case]:
    """Every voice is rotated alike; what is given as the attackers' run is not a run of it."""

    def world(voices: Voices) -> Case:
        release = voices.original @ draw_rotation(voices.rng) + 0.1 * voices.noise()
        truth = Truth(exposed=_everybody(voices), own_run=False, one_voice=True, let_through=0)
        return Case(voices.original, release, make(voices), truth=truth)

    return world


def _another_key(voices: Voices) -> Floats:
    return np.asarray(voices.original @ draw_rotation(voices.rng) + 0.1 * voices.noise())


def _exchanged_run(exchange: Callable[[Voices, Floats], Floats]) -> Callable[[Voices], Case]:
    """Every voice is rotated alike; the attackers' run is one of this anonymizer, under wrong ids."""

    def world(voices: Voices) -> Case:
        turned = voices.original @ draw_rotation(voices.rng)
        runs = [turned + 0.1 * voices.noise() for _ in range(2)]
        truth = Truth(exposed=_everybody(voices), own_run=False, one_voice=True, let_through=0, own_ids=False)
        return Case(voices.original, runs[0], exchange(voices, runs[1]), truth=truth)

    return world


Mix = Callable[[Voices], NDArray[np.int64]]
Leak = Callable[[Voices], Callable[[], Floats]]


def _mixed(leak: Leak, mix: Mix, *, run_too: bool = False) -> Callable[[Voices], Case]:
    """A leak whose released vectors have each other's ids; the attackers' run has its own, or the same wrong ones."""

    def world(voices: Voices) -> Case:
        draw, order = leak(voices), mix(voices)
        release, run = draw()[order], draw()
        truth = Truth(exposed=_everybody(voices), own_ids=False)
        return Case(voices.original, release, run[order] if run_too else run, truth=truth)

    return world


def _faded(kept: float, noise: float) -> Leak:
    return lambda voices: lambda: kept * voices.original + noise * voices.noise()


def _turned(voices: Voices) -> Callable[[], Floats]:
    turned = voices.original @ draw_rotation(voices.rng)
    return lambda: turned + 0.1 * voices.noise()


def _new_voices(voices: Voices) -> Callable[[], Floats]:
    return lambda: voices.per_person() + WITHIN * voices.noise()


def _everything(voices: Voices) -> NDArray[np.int64]:
    return voices.rng.permutation(len(voices.own))


def _people(groups: int) -> Mix:
    """The ids of one person are those of another, in the same group, throughout."""

    def mix(voices: Voices) -> NDArray[np.int64]:
        others = np.arange(voices.people)
        for group in range(groups):
            others[group::groups] = voices.rng.permutation(others[group::groups])
        first = np.unique(voices.own, return_index=True)[1]
        return np.asarray(first[others[voices.own]] + voices.take)

    return mix


def _half(voices: Voices) -> NDArray[np.int64]:
    rows = np.arange(len(voices.own))
    some = voices.rng.permutation(len(rows))[::2]
    rows[some] = some[voices.rng.permutation(len(some))]
    return rows


def _weaker_run(voices: Voices) -> Case:
    """The release is noise; the attackers' run keeps half of every voice."""
    truth = Truth(exposed=NOBODY, own_run=False, one_voice=False, let_through=0)
    return Case(voices.original, voices.noise(), 0.5 * voices.original + voices.noise(), truth=truth)


def _shared_voices(voices: Voices) -> Case:
    """One new voice for every two people, other ones in every run."""
    pairs = voices.own // 2
    runs = [voices.rng.standard_normal((voices.people, DIMENSION))[pairs] + WITHIN * voices.noise() for _ in range(2)]
    return Case(voices.original, *runs, truth=Truth(exposed=NOBODY, own_run=True, let_through=0))


def _gender_and_one(voices: Voices) -> Case:
    """The gender is kept of everybody, and one person is hardly changed."""
    center = voices.rng.standard_normal((2, DIMENSION))[voices.own % 2]
    stays = (voices.own == 0)[:, None]
    runs = [np.where(stays, voices.original + 0.3 * voices.noise(), center + voices.noise()) for _ in range(2)]
    return Case(voices.original, *runs, truth=Truth(exposed=np.zeros(1, np.int64), own_run=True, one_voice=False))


def _gender_and_accent(voices: Voices) -> Case:
    """Gender and accent are kept, and nothing else."""
    gender, accent = (voices.own // 5) % 2, voices.own % 5
    center = voices.rng.standard_normal((2, DIMENSION))[gender] + voices.rng.standard_normal((5, DIMENSION))[accent]
    names = {"gender": ["fm"[value] for value in gender], "accent": [f"accent {value}" for value in accent]}
    truth = Truth(exposed=NOBODY, own_run=True, let_through=0)
    return Case(voices.original, center + voices.noise(), center + voices.noise(), attributes=names, truth=truth)


def _one_faint(voices: Voices) -> Case:
    """One person is found by several recordings together, nobody by a single one."""
    kept = 0.45 * (voices.own == 0)[:, None]
    runs = [kept * voices.original + voices.noise() for _ in range(2)]
    return Case(voices.original, *runs, truth=Truth(exposed=np.zeros(1, np.int64), own_run=True, let_through=0))


def _run_of_some(voices: Voices) -> Case:
    """Men are noise in every run, women are rotated; the attackers' run is of men only."""
    turned = voices.original @ draw_rotation(voices.rng)
    women = voices.own % 2 == 0
    runs = [np.where(women[:, None], turned + 0.1 * voices.noise(), voices.noise()) for _ in range(2)]
    truth = Truth(exposed=np.unique(voices.own[women]), let_through=0)
    return Case(voices.original, runs[0], runs[1], covered=~women, truth=truth)


def _only(attribute: str, values: int, strength: float = 1.0) -> Callable[[Voices], Case]:
    """Only the value of an attribute is kept, in every run."""

    def world(voices: Voices) -> Case:
        value = voices.own % values
        center = strength * voices.rng.standard_normal((values, DIMENSION))[value]
        names = {attribute: [f"{attribute}{number}" for number in value]}
        truth = Truth(exposed=NOBODY, kept=attribute, own_run=True, one_voice=False, let_through=0)
        return Case(voices.original, center + voices.noise(), center + voices.noise(), attributes=names, truth=truth)

    return world


def _let_through(count: Callable[[Voices], int], tails: bool = False) -> Callable[[Voices], Case]:
    """Some recordings are hardly changed, and noise replaces the others."""

    def noise(voices: Voices) -> Floats:
        return voices.rng.standard_t(3, voices.original.shape) if tails else voices.noise()

    def world(voices: Voices) -> Case:
        rows = np.zeros(len(voices.own), bool)
        rows[voices.rng.choice(len(rows), count(voices), replace=False)] = True
        release = np.where(rows[:, None], voices.original + 0.3 * voices.noise(), noise(voices))
        truth = Truth(exposed=np.unique(voices.own[rows]), one_voice=False, let_through=int(rows.sum()))
        return Case(voices.original, release, noise(voices), truth=truth)

    return world


def _unknown(choose: Callable[[Voices], NDArray[np.bool_]], **columns: Any) -> Callable[[Voices], Case]:
    """The originals of some recordings are noise; so are all anonymized ones."""

    def world(voices: Voices) -> Case:
        rows = choose(voices)
        original = np.where(rows[:, None], voices.noise(), voices.original)
        whole = [person for person in range(voices.people) if rows[voices.own == person].all()]
        truth = Truth(exposed=NOBODY, unknown=np.array(whole, np.int64), own_run=True, one_voice=False, let_through=0)
        attributes = {name: make(voices) for name, make in columns.items()}
        return Case(original, voices.noise(), voices.noise(), attributes=attributes, truth=truth)

    return world


def _one_enrolled(kept: float) -> Callable[[Voices], Case]:
    """One enrolled utterance each; all others are tried."""

    def world(voices: Voices) -> Case:
        runs = [kept * voices.original + voices.noise() for _ in range(2)]
        truth = Truth(exposed=_everybody(voices) if kept else NOBODY, own_run=True, let_through=0)
        return Case(voices.original, *runs, trials=voices.take > 0, truth=truth)

    return world


def _faint(voices: Voices) -> Case:
    """Next to nothing in one recording, everybody in twelve."""
    runs = [0.12 * voices.original + voices.noise() for _ in range(2)]
    return Case(voices.original, *runs, truth=Truth(exposed=_everybody(voices), own_run=True, let_through=0))


def _third_session(voices: Voices) -> Case:
    """Three sessions each; in the last one the anonymizer was off."""
    late = voices.take % 3 == 2
    runs = [np.where(late[:, None], voices.original + 0.3 * voices.noise(), voices.noise()) for _ in range(2)]
    truth = Truth(exposed=_everybody(voices), own_run=True, let_through=int(late.sum()))
    return Case(voices.original, *runs, attributes={"session": ["abc"[take % 3] for take in voices.take]}, truth=truth)


def _one_stays(voices: Voices) -> Case:
    """One person is hardly changed, in every run."""
    stays = (voices.own == 0)[:, None]
    runs = [np.where(stays, voices.original + 0.3 * voices.noise(), voices.noise()) for _ in range(2)]
    truth = Truth(exposed=np.zeros(1, np.int64), own_run=True, one_voice=False)
    return Case(voices.original, *runs, truth=truth)


def _some_keep_one_voice(voices: Voices) -> Case:
    """One person in five has one new voice in the release; everybody else a new one for every recording."""
    some = (voices.own % 5 == 0)[:, None]
    runs = [np.where(some, voices.per_person() + WITHIN * voices.noise(), voices.noise()) for _ in range(2)]
    return Case(voices.original, *runs, truth=Truth(exposed=NOBODY, own_run=True, one_voice=False, let_through=0))


def _with_truth(make: Callable[[Voices], Case], **truth: Any) -> Callable[[Voices], Case]:
    return lambda voices: replace(make(voices), truth=Truth(**truth))


def _own_voices(voices: Voices) -> Case:
    runs = [voices.per_person() + WITHIN * voices.noise() for _ in range(2)]
    return Case(voices.original, *runs)


def _ten(people: int) -> list[int]:
    return [10] * people


def _women(voices: Voices) -> list[str]:
    return ["f" if person < 17 else "m" for person in voices.own]


def _unequal(people: int) -> list[int]:
    return [2 + 7 * person % 29 for person in range(people)]


TRAPS: dict[str, World] = {
    "original as run": World(_wrong_run(lambda v: v.original), True, "attackers' run is the original", people=PEOPLE),
    "noise as run": World(_wrong_run(Voices.noise), True, "attackers' run is noise", people=PEOPLE),
    "run with another key": World(_wrong_run(_another_key), True, "the run has another rotation", people=PEOPLE),
    "run with mixed ids": World(
        _exchanged_run(lambda v, run: v.rng.permutation(run)), True, "the run's ids are mixed up", people=PEOPLE
    ),
    "run shifted by a person": World(
        _exchanged_run(lambda v, run: np.roll(run, 6, axis=0)), True, "the next person's ids", people=PEOPLE
    ),
    "mixed ids": World(_mixed(_faded(1, 0.3), _everything), True, "the release's ids are mixed up"),
    "mixed ids, fainter": World(_mixed(_faded(0.7, 1), _everything), True, "the same, much less is kept"),
    "mixed ids, run too": World(_mixed(_faded(0.7, 1), _everything, run_too=True), True, "both in one wrong order"),
    "mixed ids, rotation": World(_mixed(_turned, _everything), True, "every voice is rotated alike"),
    "mixed ids, rotation, run too": World(_mixed(_turned, _everything, run_too=True), True, "both in one wrong order"),
    "mixed ids, own voices": World(
        _mixed(_new_voices, _everything), True, "one new voice per person and run", most="raised"
    ),
    "half of the ids mixed": World(_mixed(_faded(0.7, 1), _half), True, "half of the release's ids are mixed up"),
    "mixed people": World(_mixed(_faded(0.7, 1), _people(1)), True, "everybody has somebody else's ids"),
    "mixed people, fainter": World(_mixed(_faded(0.5, 1), _people(1)), True, "the same, less is kept"),
    "mixed people, run too": World(_mixed(_faded(0.7, 1), _people(1), run_too=True), True, "the run has the same ids"),
    "mixed people, rotation": World(_mixed(_turned, _people(1)), True, "every voice is rotated alike"),
    "mixed people, rotation, run too": World(_mixed(_turned, _people(1), run_too=True), True, "the run has the same"),
    "mixed within gender": World(_mixed(_faded(0.7, 1), _people(2)), True, "ids of somebody else of one's gender"),
    "weaker run": World(_weaker_run, False, "the run keeps half of a voice, the release nothing", people=PEOPLE),
    "shared voices": World(_shared_voices, True, "one new voice per two people and run", people=PEOPLE, most="raised"),
    "gender and one person": World(_gender_and_one, True, "the gender, and one person", people=PEOPLE),
    "gender and accent": World(_gender_and_accent, True, "only both are kept", people=PEOPLE, most="raised"),
    "one faint person": World(_one_faint, True, "one of forty, in several recordings", lambda n: [12] * n, people=40),
    "noisy codebook": World(codebook(1000, 0.05), True, "one of 1,000 rotations, with noise", people=PEOPLE),
    "small noisy codebook": World(codebook(300, 0.05), True, "one of 300 rotations, with noise", people=40),
    "noisier codebook": World(codebook(300, 0.1), True, "the same, noise twice as large", people=PEOPLE),
    "run of men": World(_run_of_some, True, "women are linked, the run is of men", people=PEOPLE),
    "gender": World(_only("gender", 2), True, "only the gender is kept", people=PEOPLE, most="raised"),
    "gender, unequal": World(
        _only("gender", 2), True, "the same, 2 to 30 recordings each", _unequal, people=PEOPLE, most="raised"
    ),
    "accents": World(_only("accent", 10), True, "only one of ten accents is kept", people=PEOPLE, most="raised"),
    "many accents": World(_only("accent", 20, 0.7), True, "only one of twenty is kept", people=PEOPLE, most="raised"),
    "accents of seven": World(
        _only("accent", 20), True, "only one of twenty is kept", lambda n: [4] * n, people=150, most="raised"
    ),
    "1 % let through": World(
        _let_through(lambda v: len(v.own) // 100), True, "ten of a thousand recordings", _ten, people=PEOPLE
    ),
    "0.5 % let through": World(
        _let_through(lambda v: len(v.own) // 200), True, "ten of two thousand recordings", _ten, people=200
    ),
    "heavy tails, let through": World(
        _let_through(lambda v: len(v.own) // 100, tails=True), True, "the same, heavy tails", _ten, people=PEOPLE
    ),
    "unknown women": World(_unknown(lambda v: v.own < 17, gender=_women), True, "17 of 100 are unknown", people=PEOPLE),
    "unknown people": World(_unknown(lambda v: v.own % 6 == 0), True, "one person in six is unknown", people=PEOPLE),
    "one person unknown": World(_unknown(lambda v: v.own == 3), True, "one of a hundred is unknown", people=PEOPLE),
    "unknown language": World(
        _unknown(lambda v: v.take % 5 == 0, language=lambda v: ["de" if take % 5 == 0 else "en" for take in v.take]),
        True, "one recording in five is unknown", _ten, people=PEOPLE,
    ),
    "one enrolled": World(_one_enrolled(0.5), True, "half kept, one enrolled utterance each", people=PEOPLE),
    "perfect, one enrolled": World(_one_enrolled(0.0), False, "perfect, one enrolled utterance each", people=PEOPLE),
    "long conversations": World(
        _faint, True, "nothing in one recording, everybody in twelve", lambda people: [24] * people, people=40,
        options={"lengths": [1, 3, 12]},
    ),
    "third session": World(_third_session, True, "a leak in one of three sessions", people=PEOPLE),
    "one person stays": World(_one_stays, True, "one of a hundred is hardly changed", _ten, people=PEOPLE),
    "voices of some": World(
        _some_keep_one_voice, True, "one person in five has one new voice", people=PEOPLE, most="raised"
    ),
    "own voices": World(
        _with_truth(_own_voices, exposed=NOBODY, own_run=True, one_voice=True, let_through=0), True,
        "one new voice per person and run: the release links itself", people=PEOPLE, most="raised",
    ),
}  # fmt: skip
