"""Learn an inversion from training vectors, and apply it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.inversion.maps import EVERYBODY, Alignment, Floats, InversionMap, attribute, fit_preprocessing
from veilmeter.attacks.inversion.procrustes import (
    INITIAL_POINTS,
    Matching,
    Schedule,
    check_sets,
    initial_rotation,
    mutual_refinement,
    procrustes,
    wasserstein_procrustes,
)
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.matching import match, with_people_of

Method = Literal["procrustes", "wasserstein"]


@dataclass(frozen=True, slots=True)
class InversionSettings:
    """How the attack learns. `by` names an attribute (gender): one map for each of its values.

    `procrustes` knows which anonymized training vector belongs to which clear one, `wasserstein` does not. `rounds`
    sharpen the map on vectors that are each other's nearest; supervised, on all training vectors, paired or not.
    """

    method: Method = "procrustes"
    pca: int | None = None
    center: bool = False
    by: str = ""
    reflections: bool = True
    seed: int = 0
    matching: Matching = "assignment"
    schedule: Schedule | None = None
    rounds: int = 0

    def __post_init__(self) -> None:
        if self.method not in get_args(Method):
            raise InputError(
                f"unknown inversion method {self.method!r}",
                fix=f"choose among {', '.join(get_args(Method))}",
            )

    @property
    def supervised(self) -> bool:
        return self.method == "procrustes"


@dataclass(frozen=True, eq=False)
class Restoration:
    """`restored` are the anonymized trials moved back, to be compared with `map.see(clear)`."""

    map: InversionMap
    restored: Embeddings


def attack(
    clear_train: Embeddings,
    anonymized_train: Embeddings,
    anonymized_trials: Embeddings,
    *,
    method: Method = "procrustes",
    pca: int | None = None,
    center: bool = False,
    by_gender: bool = False,
    reflections: bool = True,
    seed: int = 0,
) -> Restoration:
    """Learn to undo the anonymizer on the training vectors and undo it on the trials.

    Compare `restored` with `map.see(clear)`, or with enrollment models that are means of `map.project(clear)`.
    """
    settings = InversionSettings(method, pca, center, "gender" if by_gender else "", reflections, seed)
    learnt = learn(clear_train, anonymized_train, settings)
    return Restoration(learnt, learnt.restore(with_people_of(anonymized_trials, [clear_train])))


def learn(
    clear: Embeddings, anonymized: Embeddings, settings: InversionSettings, *, pairs: Sequence[str] | None = None
) -> InversionMap:
    """The map from anonymized to clear embeddings. Supervised: pairs are utterances with the same id in both.

    With `pairs` only these utterances are known as pairs; the other vectors still serve to fit the preprocessing and,
    with `settings.rounds`, to sharpen the map.
    """
    return learn_seeds(clear, anonymized, settings, [settings.seed], pairs=pairs)[0]


def learn_seeds(
    clear: Embeddings,
    anonymized: Embeddings,
    settings: InversionSettings,
    seeds: Sequence[int],
    *,
    pairs: Sequence[str] | None = None,
) -> list[InversionMap]:
    """One map a seed; what does not depend on the seed is computed once."""
    parts: dict[str, tuple[Embeddings, Embeddings]] = {EVERYBODY: (clear, anonymized)}
    if settings.by:
        anonymized = with_people_of(anonymized, [clear])
        values, other = attribute(clear, settings.by), attribute(anonymized, settings.by)
        if set(values) != set(other):
            raise InputError(
                f"the clear training set has {settings.by} {_list(values)}, the anonymized one {_list(other)}",
                path=anonymized.source or None,
            )
        parts = {value: (clear.take(values == value), anonymized.take(other == value)) for value in sorted(set(values))}
    learnt = {group: _align(*sides, settings, seeds, pairs) for group, sides in parts.items()}
    facts = {k: v for k, v in asdict(settings).items() if k not in ("schedule", "by")}
    return [
        InversionMap(
            {group: by_seed[number][0] for group, by_seed in learnt.items()},
            settings.by,
            facts | {"seed": seed, "learnt": {group: by_seed[number][1] for group, by_seed in learnt.items()}},
        )
        for number, seed in enumerate(seeds)
    ]


def objective(learnt: InversionMap) -> float:
    """How well the sets match after an unsupervised map, known without labels (lower is better)."""
    return float(sum(group_facts.get("objective", 0.0) for group_facts in learnt.facts["learnt"].values()))


def _align(
    clear: Embeddings,
    anonymized: Embeddings,
    settings: InversionSettings,
    seeds: Sequence[int],
    pairs: Sequence[str] | None,
) -> list[tuple[Alignment, dict[str, Any]]]:
    every_clear, every_anonymized = clear, anonymized
    if settings.supervised and pairs is None:
        clear, anonymized = take_pairs(clear, anonymized)
    before = fit_preprocessing(clear.vectors, pca=settings.pca, center=settings.center)
    after = fit_preprocessing(anonymized.vectors, pca=settings.pca, center=settings.center)
    if before.components != after.components:
        raise InputError(
            f"the clear vectors are {before.components}-d and the anonymized ones {after.components}-d: "
            "no rotation leads from one to the other",
            fix="use PCA to the same dimension on both sides (--pca 70), or extractors of one dimension",
        )
    if settings.supervised and pairs is not None:
        wanted = set(pairs)
        clear, anonymized = take_pairs(clear.take(np.array([u in wanted for u in clear.utterances])), anonymized)
    x, y = before.apply(clear.vectors), after.apply(anonymized.vectors)
    facts: dict[str, Any] = {"clear": len(x), "anonymized": len(y), "dimension": before.components}
    if settings.supervised:
        _some_difference(x, y)
        rotation = procrustes(y, x, reflections=settings.reflections)
        if settings.rounds:
            rotation = mutual_refinement(
                after.apply(every_anonymized.vectors),
                before.apply(every_clear.vectors),
                rotation,
                rounds=settings.rounds,
                reflections=settings.reflections,
            )
        return [(Alignment(before, after, rotation), facts)] * len(seeds)
    return [
        (Alignment(before, after, rotation), facts | more) for rotation, more in _learn_unpaired(x, y, settings, seeds)
    ]


def _learn_unpaired(
    clear: Floats, anonymized: Floats, settings: InversionSettings, seeds: Sequence[int]
) -> list[tuple[Floats, dict[str, Any]]]:
    x, y = check_sets(clear, anonymized)
    plan = settings.schedule or Schedule()
    shared = None
    if max(len(x), len(y)) <= INITIAL_POINTS:
        shared = initial_rotation(x, y, steps=plan.initial_steps, regularization=plan.regularization)
    matches = [
        wasserstein_procrustes(
            x,
            y,
            seed=seed,
            matching=settings.matching,
            reflections=settings.reflections,
            schedule=plan,
            initial=shared,
            rounds=settings.rounds,
        )
        for seed in seeds
    ]
    return [
        (matched.rotation.T, {"objective": matched.objective, "history": list(matched.history)}) for matched in matches
    ]


def take_pairs(clear: Embeddings, anonymized: Embeddings) -> tuple[Embeddings, Embeddings]:
    """The utterances that are in both, in the order of the clear set."""
    both = match(clear, anonymized)
    return both.original, both.anonymized


def _some_difference(*sets: Floats) -> None:
    for vectors in sets:
        if len(vectors) > 1 and np.allclose(vectors, vectors[0], rtol=0, atol=1e-9):
            raise InputError(
                "all training vectors of one side are the same: there is nothing to learn from",
                fix="check the extractor's output",
            )


def _list(values: NDArray[np.object_]) -> str:
    return ", ".join(sorted(set(values)))
