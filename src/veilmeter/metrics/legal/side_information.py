"""What it is worth to an attacker to know an attribute of the target as well: their gender, their region.

The attacker of Linkability lets only people with that attribute compete; the rest of the N' enrolled are out of the
question. In Singling Out, the predicate is "has the attribute, and scores above the threshold", calibrated to be true
of one person in N as before. People whose attribute is not known stay in. Both are measured on the same speakers,
subsets and folds as the attacker who does not know, so the difference is paired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import POINTS, Estimate
from veilmeter.core.intervals import cluster_interval
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.legal.conversations import conversations, models, speaker_attribute
from veilmeter.metrics.legal.isolation import isolate, without_target
from veilmeter.metrics.legal.linkability import KEEP, LinkCounts, count_better, count_links
from veilmeter.metrics.legal.singling_out import CONVERSATIONS, IsolationCounts, aims, check_sizes


@dataclass(frozen=True, eq=False)
class InformedLinkability:
    """Linkability by an attacker who knows `attribute` of the target, beside the one who doesn't."""

    attribute: str
    without: LinkCounts
    knowing: LinkCounts

    def estimates(self, speakers: Sequence[int], *, intervals: bool = True) -> list[Estimate]:
        """Linkability for the attacker who knows; `extra` has the gain over the one who doesn't, paired, in points."""
        return [
            _knowing(
                self.knowing.estimate(n, intervals=intervals),
                self.attribute,
                self.knowing.per_conversation(n) - self.without.per_conversation(n),
                self.knowing.speakers,
            )
            for n in speakers
        ]


@dataclass(frozen=True, eq=False)
class InformedSinglingOut:
    """Singling Out by an attacker who knows `attribute` of the target, beside the one who doesn't."""

    attribute: str
    without: IsolationCounts
    knowing: IsolationCounts

    def estimates(self, speakers: Sequence[int] | None = None, *, intervals: bool = True) -> dict[str, list[Estimate]]:
        sizes = self.knowing.sizes if speakers is None else speakers
        curves = self.knowing.estimates(sizes, intervals=intervals)
        marked = {
            name: [estimate.with_(at={**estimate.at, "knows": self.attribute}) for estimate in curve]
            for name, curve in curves.items()
        }
        marked["singling_out"] = [
            _knowing(
                estimate,
                self.attribute,
                self.knowing.per_predicate(n) - self.without.per_predicate(n),
                np.arange(len(self.knowing.names)),
            )
            for n, estimate in zip(sizes, curves["singling_out"], strict=True)
        ]
        return marked


def _knowing(estimate: Estimate, attribute: str, gain: NDArray[np.float64], clusters: NDArray[np.int64]) -> Estimate:
    low, high = cluster_interval(gain, clusters) if len(gain) > 1 else (-1.0, 1.0)
    ends = [100 * max(-1.0, low), 100 * min(1.0, high)]
    extra = {**estimate.extra, "gain": 100 * float(gain.mean()), "gain_interval": ends, "gain_unit": POINTS}
    return estimate.with_(at={**estimate.at, "knows": attribute}, extra=extra)


def codes(*columns: NDArray[np.object_]) -> list[NDArray[np.int64]]:
    """Values of an attribute as numbers, the same in all columns; -1 where it is not known.

    >>> [one.tolist() for one in codes(np.array(["f", ""], object), np.array(["m", "f"], object))]
    [[0, -1], [1, 0]]
    """
    known = {value: number for number, value in enumerate(sorted({v for c in columns for v in c if v}))}
    return [np.array([known.get(value, -1) for value in column], np.int64) for column in columns]


def linkability_knowing(
    enroll: Embeddings,
    test: Embeddings,
    attribute: str,
    *,
    length: int = 1,
    most: int | None = None,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> InformedLinkability:
    """Linkability with and without knowledge of a column of the enrollment (and of the test, where it has it)."""
    without = count_links(enroll, test, length=length, most=most, seed=seed, progress=progress)
    people = models(enroll)
    [theirs] = codes(_attribute(enroll, test, attribute, people.names))
    own = _own(without)
    tested = conversations(_take_enrolled(test, people.names), length, most=most, seed=seed)
    small = len(tested) * len(people) <= KEEP
    beats = np.zeros((len(tested), len(people)), bool) if small else None
    better = count_better(
        tested.vectors, own, people.vectors, groups=(theirs[own], theirs), beats=beats, progress=progress
    )
    return InformedLinkability(attribute, without, replace(without, better=better, beats=beats))


def singling_out_knowing(
    enroll: Embeddings,
    test: Embeddings,
    attribute: str,
    sizes: Sequence[int],
    *,
    without: IsolationCounts,
    predicates: int | None = None,
    seed: int = 0,
    most: int = CONVERSATIONS,
    progress: Callable[[int, int], None] | None = None,
) -> InformedSinglingOut:
    """The same predicates, subsets and folds as `without`, by an attacker (and a control) who knows the attribute."""
    tested = conversations(test, without.length, least=2, most=most, seed=seed)
    people = models(enroll)
    rows, targets = aims(people.names, tested, predicates, seed, enroll.source)
    check_sizes(sizes, tested)
    [theirs] = codes(_attribute(test, enroll, attribute, tested.names))
    of = theirs[targets]
    allowed = (of[:, None] < 0) | (theirs < 0) | (theirs == of[:, None])
    counts = isolate(
        people.vectors[rows], targets, tested, sizes, draws=without.draws, folds=without.folds, rule=without.rule,
        seed=seed, allowed=allowed, absent=without.control is not None, progress=progress,
    )  # fmt: skip
    control = counts[1] if len(counts) > 1 else None
    controlled = None if control is None else without_target(len(targets))
    knowing = replace(without, attack=counts[0], control=control, controlled=controlled, sizes=tuple(sizes))
    return InformedSinglingOut(attribute, without, knowing)


def _attribute(first: Embeddings, second: Embeddings, column: str, names: Sequence[str]) -> NDArray[np.object_]:
    """From the first set that knows it; what is missing there, from the other."""
    having = [embeddings for embeddings in (first, second) if column in embeddings.attributes]
    if not having:
        there = ", ".join(sorted({*first.attributes, *second.attributes})) or "none"
        raise InputError(f"neither the enrollment nor the test has a column {column!r}; there are: {there}")
    values = speaker_attribute(having[0], column, names)
    for other in having[1:]:
        values = np.where(values == "", speaker_attribute(other, column, names), values)
    if not any(values):
        raise InputError(f"the column {column!r} is empty for everybody")
    return values


def _own(link: LinkCounts) -> NDArray[np.int64]:
    if link.own is None:
        raise InputError("Linkability was measured without speaker names")
    return link.own


def _take_enrolled(test: Embeddings, names: Sequence[str]) -> Embeddings:
    known = set(names)
    kept = np.array([speaker in known for speaker in test.speakers])
    return test if kept.all() else test.take(kept)
