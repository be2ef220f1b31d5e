"""More knowledge, never less success: an attacker who knows more could always do what one who knows less does.

Where it does significantly worse, its method failed: its scores are replaced by the other's, and a warning says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.attacks.attacker import ATTACKERS, AttackerId
from veilmeter.attacks.material import Floats
from veilmeter.core.findings import Finding, warning
from veilmeter.core.intervals import LEVEL, cluster_interval

FIRST = "the first extractor"


@dataclass(frozen=True, eq=False)
class Success:
    """How well one attacker did on each conversation: `ahead` is the share of the other candidates that score lower
    than the right one, `speakers` who speaks. Equal ones count half, so that scores without information are not
    counted as failure."""

    ahead: Floats
    speakers: NDArray[Any]

    @classmethod
    def of(cls, scores: Floats, enrolled: Sequence[str], spoken: Sequence[str] | NDArray[np.object_]) -> Success:
        """From scores of candidates (rows) for conversations (columns); people who are not enrolled are left out."""
        code = {name: number for number, name in enumerate(enrolled)}
        names = np.asarray(spoken, object)
        known = np.array([name in code for name in names], bool)
        own = np.array([code[name] for name in names[known]], np.int64)
        columns = scores if known.all() else scores[:, known]
        right = columns[own, np.arange(len(own))]
        equal = np.count_nonzero(columns == right, axis=0) - 1
        lower = np.count_nonzero(columns < right, axis=0) + 0.5 * equal
        return cls(lower / max(1, len(code) - 1), names[known])

    @property
    def codes(self) -> NDArray[np.int64]:
        """The speakers as numbers, in the order of their names."""
        return np.unique(self.speakers.astype(str), return_inverse=True)[1].astype(np.int64)


@dataclass(frozen=True)
class Takeover:
    """`attacker` knows more than `other` and does significantly worse: it beats fewer candidates, by `difference`."""

    attacker: str
    other: str
    difference: float
    interval: tuple[float, float]

    @property
    def finding(self) -> Finding:
        return warning(
            "method_replaced", attacker=str(self.attacker), other=str(self.other), difference=self.difference
        )


def knowledge(names: Iterable[AttackerId]) -> dict[AttackerId, frozenset[str]]:
    """What each attacker of a run knows, without those that say nothing of it or do not fall back. An attacker that
    uses one extractor does not know what another extractor finds; one that uses several knows what all of them find.

    >>> one, words, all_of_them = AttackerId("adaptive"), AttackerId("adaptive", "words"), AttackerId("fused")
    >>> known = knowledge([one, words, all_of_them])
    >>> known[one] < known[words], known[one] < known[all_of_them] > known[words]
    (False, True)
    """
    used = {name: name.extractor or FIRST for name in names}
    extractors = frozenset(used.values())
    knows = {}
    for name, extractor in used.items():
        attacker = ATTACKERS[name.kind]
        if attacker.knows and attacker.falls_back:
            knows[name] = attacker.knows | (extractors if attacker.several else {extractor})
    return knows


def takeovers(successes: Mapping[AttackerId, Success]) -> tuple[Takeover, ...]:
    """For each attacker the best of those who know less and did significantly better, if any, on the same
    conversations: the interval of the paired difference, clustered by speaker, at 95 % for all comparisons together.
    """
    knows = knowledge(successes)
    pairs = [
        (more, less)
        for more, less in permutations(knows, 2)
        if knows[less] < knows[more] and len(successes[more].ahead) == len(successes[less].ahead)
    ]
    best: dict[AttackerId, Takeover] = {}
    for more, less in pairs:
        difference = successes[more].ahead - successes[less].ahead
        level = 1 - (1 - LEVEL) / len(pairs)
        low, high = cluster_interval(difference, successes[more].speakers.astype(str), level=level)
        if high < 0:
            takeover = Takeover(str(more), str(less), float(difference.mean()), (low, high))
            if more not in best or takeover.difference < best[more].difference:
                best[more] = takeover
    return tuple(best.values())
