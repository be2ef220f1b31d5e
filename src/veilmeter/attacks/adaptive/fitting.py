"""The adaptive attacker: fits every method, chooses and fuses them by cross-validation on its own data, and refits.

Per method the parameters with the least cross-entropy, then non-negative weights of all methods (with several
extractors pulled towards the best of them), then everything is fitted again on all data. Where nothing can be held out
honestly, methods, parameters and weights are fixed ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.adaptive.draws import EACH_DRAW, draws_of_several
from veilmeter.attacks.adaptive.families import FAMILIES, Family, FittedMethod, Parameters
from veilmeter.attacks.adaptive.fusion import fit_weights, fuse_channels, least_loss, log_softmax, sum_with_weights
from veilmeter.attacks.adaptive.own_data import OwnData, Split, speaker_splits, splits
from veilmeter.attacks.adaptive.training import Space, TrainingSet, make_training
from veilmeter.attacks.material import Floats, Rows
from veilmeter.core.errors import InputError

MOST_SCORES = 6_000_000  # held-out scores per method: beyond, recordings are drawn at random
MOST_KEPT = 40_000_000  # held-out scores of all methods and parameters; beyond, parameters are chosen on a part
SCREENED = 500_000  # scores per method and parameters on that part
LEAST_WEIGHT = 1e-3
UNTESTED = 0.5  # the weight of methods that could not be tested, where those that could be carry no information
BLOCK = 4_000_000  # scores at a time
PROMISING, CLEAR = 1.0, 2.0  # standard errors by which a nonlinear method must gain: on one part, and on all


@dataclass(frozen=True, order=True)
class MethodChoice:
    """A method with its parameters, on the vectors of one extractor (`view`)."""

    view: int
    family: str
    parameters: Parameters

    def __str__(self) -> str:
        numbers = ", ".join(f"{value:g}" for value in self.parameters)
        place = f" on extractor {self.view + 1}" if self.view else ""
        return self.family + (f" ({numbers})" if numbers else "") + place


@dataclass(frozen=True, eq=False)
class Member:
    """One fitted method of the fusion."""

    choice: MethodChoice
    weight: float
    scorer: FittedMethod


@dataclass(frozen=True, eq=False)
class Validation:
    """The outcome of cross-validation: share linked and cross-entropy (nats) of the fusion and of each method's best.

    `held` is what was held out: recordings, or people with all their copies, which only methods that need no copy of
    the person looked for can be tested on.
    """

    linked: float
    loss: float
    recordings: int
    methods: Mapping[str, float] = field(default_factory=dict)
    held: str = "recordings"


@dataclass(frozen=True, eq=False)
class Adaptive:
    """A fitted attacker. `logits` takes raw vectors, one array per extractor."""

    candidates: int
    members: tuple[Member, ...]
    spaces: tuple[Space, ...]
    validation: Validation | None
    draws: int = 0  # of a finite set, that were tried one by one

    def logits(self, *trials: NDArray[Any], spaces: Sequence[Space] | None = None) -> Floats:
        """Weighted sums of standardized scores: trials x candidates."""
        rows = len(trials[0])
        summed = np.zeros((rows, self.candidates))
        step = max(1, BLOCK // max(1, self.candidates))
        for start in range(0, rows, step):
            part = slice(start, start + step)
            wide = [np.asarray(vectors[part], np.float64) for vectors in trials]
            directions = [space.apply(vectors) for space, vectors in zip(spaces or self.spaces, wide, strict=True)]
            # Combinations of coordinates were found by the attacker's own copies and hold in their units alone.
            coordinates = [space.coordinates(vectors) for space, vectors in zip(self.spaces, wide, strict=True)]
            for member in self.members:
                seen = coordinates if FAMILIES[member.choice.family].nonlinear else directions
                summed[part] += member.weight * member.scorer.scores(seen[member.choice.view])
        return summed

    def to_json(self) -> dict[str, Any]:
        """The choice, for results.json."""
        about: dict[str, Any] = {"weights": {str(member.choice): round(member.weight, 4) for member in self.members}}
        if self.draws:
            about["draws_tried"] = self.draws
        if self.validation is None:
            about["chosen_by"] = "default: nothing could be held out honestly"
        else:
            chosen = "cross-validation on the attacker's own recordings"
            if self.validation.held == "people":
                chosen += ", people held out; methods that need a person's own copies by default"
            about |= {
                "chosen_by": chosen,
                "validation": {
                    "linked_percent": round(100 * self.validation.linked, 2),
                    "cross_entropy": round(self.validation.loss, 4),
                    "chance_cross_entropy": round(float(np.log(self.candidates)), 4),
                    "recordings": self.validation.recordings,
                    "methods": {name: round(loss, 4) for name, loss in self.validation.methods.items()},
                },
            }
        return about


def fit_adaptive(data: OwnData, families: Sequence[str] | None = None, *, seed: int = 0) -> Adaptive:
    """The attacker of `data`, with these methods to choose from (all of them by default)."""
    names = list(FAMILIES) if families is None else list(families)
    methods: dict[str, Family] = {name: FAMILIES[name] for name in names}
    everything = np.ones(len(data.labels), bool)
    trainings = [make_training(data, view, everything, everything, tuple(data.runs)) for view in data.views]
    spaces = tuple(training.space for training in trainings)
    possible = [
        (view, name)
        for view, training in enumerate(trainings)
        for name, family in methods.items()
        if family.possible(training)
    ]
    if not possible:
        raise InputError(
            f"none of the methods {', '.join(names)} can be fitted on what this attacker has",
            fix="give runs of the anonymizer over the candidates' speech, or other people's speech",
        )
    weights, validation = _choose_methods(data, methods, possible, seed)
    members = []
    for (view, name), wanted in _by_family(weights).items():
        for parameters, scorer in methods[name].fit(trainings[view], wanted):
            choice = MethodChoice(view, name, parameters)
            members.append(Member(choice, weights[choice], scorer))
    draws = len(draws_of_several(trainings[0].drawn)) if (0, EACH_DRAW.name) in possible else 0
    return Adaptive(data.candidates, tuple(members), spaces, validation, draws)


def _choose_methods(
    data: OwnData, methods: Mapping[str, Family], possible: Sequence[tuple[int, str]], seed: int
) -> tuple[dict[MethodChoice, float], Validation | None]:
    """By cross-validation where something can be held out honestly.

    One run with one draw per speaker leaves only people to hold out: what needs no copy of the person looked for is
    chosen on these, the rest gets fixed parameters and weights; so does an extractor that was trained on the copies.
    """
    if data.candidates < 2:
        return _defaults(methods, possible), None
    unseen = [place for place in possible if not data.views[place[0]].seen]
    held, kind, tested = list(splits(data)), "recordings", unseen
    if not held:
        held, kind = list(speaker_splits(data)), "people"
        tested = _testable(data, methods, unseen, held[0]) if held else []
    if not tested:
        return _defaults(methods, possible), None
    weights, validation = _choose(data, methods, tested, held, seed)
    untested = [place for place in possible if place not in tested]
    fixed = _defaults(methods, untested) if untested else {}
    trust = UNTESTED
    if np.bincount(data.labels).max() > 1:  # else the tested utterance is the one that people are known by
        # What can't be tested counts the less, the better what can be tested does.
        trust *= min(1.0, validation.loss / float(np.log(data.candidates)))
    return {**weights, **{choice: trust * weight for choice, weight in fixed.items()}}, replace(validation, held=kind)


def _testable(
    data: OwnData, methods: Mapping[str, Family], possible: Sequence[tuple[int, str]], held: Split
) -> list[tuple[int, str]]:
    """The methods that can be tested on people whose copies were not trained on."""
    trainings = [make_training(data, view, held.train, held.copied, held.train_runs) for view in data.views]
    return [
        (view, name) for view, name in possible if methods[name].transfers and methods[name].possible(trainings[view])
    ]


def _defaults(methods: Mapping[str, Family], possible: Sequence[tuple[int, str]]) -> dict[MethodChoice, float]:
    """Fixed parameters and weights, where there is nothing honest to choose on."""
    chosen: dict[MethodChoice, float] = {}
    for view, name in possible:
        chosen |= {MethodChoice(view, name, parameters): 1.0 for parameters in methods[name].defaults}
    if not chosen:  # only methods that have no default, as when one of them was asked for by name
        chosen = {MethodChoice(view, name, methods[name].grid[-1]): 1.0 for view, name in possible}
    return chosen


def _by_family(choices: Mapping[MethodChoice, float]) -> dict[tuple[int, str], list[Parameters]]:
    by_family: dict[tuple[int, str], list[Parameters]] = {}
    for choice in choices:
        by_family.setdefault((choice.view, choice.family), []).append(choice.parameters)
    return by_family


def _choose(
    data: OwnData,
    methods: Mapping[str, Family],
    possible: Sequence[tuple[int, str]],
    held: Sequence[Split],
    seed: int,
) -> tuple[dict[MethodChoice, float], Validation]:
    rng = np.random.default_rng([seed, 15])
    n = data.candidates
    most = max(200, MOST_SCORES // n)
    share = min(1.0, most / sum(split.size for split in held))
    thinned = [split.thin(max(1, round(share * split.size)), rng) for split in held]
    affine = [place for place in possible if not methods[place[1]].nonlinear] or possible
    grids = {place: list(methods[place[1]].grid) for place in affine}
    size = n * sum(split.size for split in thinned) * sum(map(len, grids.values()))
    if size > MOST_KEPT:
        part = held[0].thin(max(100, SCREENED // n), rng)
        scores, labels = _held_out(data, methods, grids, [part])
        grids = {place: [choice.parameters] for place, choice in _best(scores, labels)[0].items()}
    scores, labels = _held_out(data, methods, grids, thinned)
    best, losses = _best(scores, labels)
    tested = {choice: scores[choice] for choice in best.values()}
    more = {place: list(methods[place[1]].grid) for place in possible if place not in affine}
    if more:
        added = _additions(data, methods, more, thinned, tested, labels)
        losses |= {choice: least_loss(of_choice, labels) for choice, of_choice in added.items()}
        tested |= added
    choices, held_out = list(tested), list(tested.values())
    weights, loss = fuse_channels(held_out, [choice.view for choice in choices], labels)
    fused = sum_with_weights(held_out, weights)
    own = fused[np.arange(len(labels)), labels]
    linked = float(np.mean((fused >= own[:, None]).sum(axis=1) == 1))
    kept = {choice: float(w) for choice, w in zip(choices, weights, strict=True) if w > LEAST_WEIGHT}
    if not kept:  # nothing distinguished people: whatever is used, it will be near chance
        kept = {min(losses, key=lambda choice: losses[choice]): LEAST_WEIGHT}
    return kept, Validation(linked, loss, len(labels), {str(choice): losses[choice] for choice in choices})


Tested = dict[MethodChoice, NDArray[np.float32]]


def _additions(
    data: OwnData,
    methods: Mapping[str, Family],
    grids: Mapping[tuple[int, str], Sequence[Parameters]],
    held: Sequence[Split],
    tested: Tested,
    labels: Rows,
) -> Tested:
    """The held-out scores of nonlinear methods, where they clearly add to what was tested: most data need none of them,
    and a weight that fits chance costs. They are fitted on one part first, which most often settles it."""
    tried, whose = _held_out(data, methods, grids, held[:1])
    best, _ = _best(tried, whose)
    before = [scores[: len(whose)] for scores in tested.values()]
    if not best or _gain(before, [tried[choice] for choice in best.values()], whose) < PROMISING:
        return {}
    chosen = {place: [choice.parameters] for place, choice in best.items()}
    added, _ = _held_out(data, methods, chosen, held)
    return added if added and _gain(list(tested.values()), list(added.values()), labels) > CLEAR else {}


def _gain(before: Sequence[NDArray[np.float32]], added: Sequence[NDArray[np.float32]], labels: Rows) -> float:
    """What fusing more methods gains in cross-entropy, in standard errors over people."""
    rows = np.arange(len(labels))

    def likelihoods(scores: Sequence[NDArray[np.float32]]) -> Floats:
        fused = sum_with_weights(scores, fit_weights(scores, labels)[0])
        return log_softmax(fused.astype(np.float64))[rows, labels]

    gains = np.bincount(labels, likelihoods([*before, *added]) - likelihoods(before))
    return float(gains.sum() / max(np.sqrt(np.sum(gains**2)), 1e-12))


def _best(
    scores: Mapping[MethodChoice, NDArray[np.float32]], labels: Rows
) -> tuple[dict[tuple[int, str], MethodChoice], dict[MethodChoice, float]]:
    """Per method and extractor the parameters with the least cross-entropy, and everybody's."""
    losses = {choice: least_loss(held, labels) for choice, held in scores.items()}
    best: dict[tuple[int, str], MethodChoice] = {}
    for choice, loss in losses.items():
        place = (choice.view, choice.family)
        if place not in best or loss < losses[best[place]]:
            best[place] = choice
    return best, losses


def _held_out(
    data: OwnData,
    methods: Mapping[str, Family],
    grids: Mapping[tuple[int, str], Sequence[Parameters]],
    held: Sequence[Split],
) -> tuple[dict[MethodChoice, NDArray[np.float32]], Rows]:
    """Standardized scores of the held-out recordings by every method, in one order, and whose they are."""
    collected: dict[MethodChoice, list[NDArray[np.float32]]] = {}
    labels = []
    for split in held:
        rows = np.concatenate([rows for _, rows in split.tests])
        labels.append(data.labels[rows])
        for choice, scores in _split_scores(data, methods, grids, split):
            collected.setdefault(choice, []).append(scores)
    whole = {choice: np.concatenate(parts) for choice, parts in collected.items() if len(parts) == len(held)}
    return whole, np.concatenate(labels)


def _split_scores(
    data: OwnData,
    methods: Mapping[str, Family],
    grids: Mapping[tuple[int, str], Sequence[Parameters]],
    split: Split,
) -> Iterator[tuple[MethodChoice, NDArray[np.float32]]]:
    trainings: dict[int, tuple[TrainingSet, Floats, Floats]] = {}
    for (view, name), grid in grids.items():
        if view not in trainings:
            training = make_training(data, data.views[view], split.train, split.copied, split.train_runs)
            tested = np.concatenate([data.views[view].copies[run][rows] for run, rows in split.tests])
            trainings[view] = training, training.space.apply(tested), training.space.coordinates(tested)
        training, directions, coordinates = trainings[view]
        if not methods[name].possible(training):
            continue
        for parameters, scorer in methods[name].fit(training, grid):
            seen = coordinates if methods[name].nonlinear else directions
            yield MethodChoice(view, name, parameters), scorer.scores(seen)
