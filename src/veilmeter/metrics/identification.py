"""Top-k identification: whether the nearest vectors of a gallery are of the speaker of a query (paper 002)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.intervals import rate_interval
from veilmeter.metrics.measure import Measure, estimate_of

Floats = NDArray[np.float64]
BLOCK = 2048


MEASURES = (
    Measure(
        name="top1",
        label="Top-1",
        unit="percent",
        better="lower",
        meaning="After inversion, the share of anonymized recordings whose nearest clear recording is by the same "
        "speaker.",
        source="Champion et al. 2021",
        section="inversion",
        equation="share of recordings whose nearest neighbor after inversion is the same speaker",
        low=0,
        high=100,
        bar=100,
    ),
    Measure(
        name="top1_clear",
        label="Top-1 (clear to restored)",
        unit="percent",
        better="lower",
        meaning="The share of clear recordings whose nearest restored recording is by the same speaker: the paper's "
        "direction.",
        source="Champion et al. 2021",
        section="inversion",
        low=0,
        high=100,
        bar=100,
        headline=False,
    ),
    Measure(
        name="top_k",
        label="Top-k",
        unit="percent",
        better="lower",
        meaning="After inversion, the share of recordings with the right speaker among the k nearest clear recordings.",
        source="Champion et al. 2021",
        section="inversion",
        low=0,
        high=100,
        headline=False,
    ),
)


@dataclass(frozen=True, eq=False)
class Identification:
    """For each query, how many vectors of other speakers are at least as near as its speaker's nearest one.

    `own` is how many gallery vectors are of the query's speaker, `gallery` how many there are. A tie is a failure.
    """

    nearer: NDArray[np.int64]
    own: NDArray[np.int64]
    gallery: int
    speakers: NDArray[np.object_]

    def hits(self, k: int = 1) -> NDArray[np.bool_]:
        """Whether the query's speaker is among its k nearest vectors."""
        return self.nearer < k

    def value(self, k: int = 1) -> float:
        """Top-k in percent."""
        return 100 * float(np.mean(self.hits(k)))

    def chance(self, k: int = 1) -> float:
        """What k vectors drawn blindly would give, in percent."""
        others = self.gallery - self.own
        k = min(k, self.gallery)
        if k == 1:
            return 100 * float(np.mean(self.own)) / self.gallery
        from scipy.special import gammaln  # a tenth of a second to import

        none = np.where(
            others >= k,
            np.exp(
                gammaln(others + 1) + gammaln(self.gallery - k + 1)
                - gammaln(np.maximum(others - k, 0) + 1) - gammaln(self.gallery + 1)
            ),
            0.0,
        )  # fmt: skip
        return 100 * float(np.mean(1 - none))

    @cached_property
    def per_speaker(self) -> dict[str, float]:
        """Top-1 of each speaker's vectors, in percent."""
        code = {name: number for number, name in enumerate(dict.fromkeys(self.speakers))}
        codes = np.fromiter((code[name] for name in self.speakers), np.int64, len(self.speakers))
        shares = 100 * np.bincount(codes, self.hits()) / np.bincount(codes)
        return dict(zip(code, shares.tolist(), strict=True))

    def estimate(
        self, name: str, k: int = 1, *, intervals: bool = True, at: Mapping[str, str | int | float] | None = None
    ) -> Estimate:
        low_high = rate_interval(self.hits(k), self.speakers) if intervals else None
        return estimate_of(
            name,
            self.value(k),
            interval=None if low_high is None else (100 * low_high[0], 100 * low_high[1]),
            null=self.chance(k),
            method="nearest neighbor",
            n={"utterances": len(self.nearer), "speakers": len(self.per_speaker)},
            at=at or {},
        )


def identify(
    queries: ArrayLike,
    gallery: ArrayLike,
    query_speakers: ArrayLike,
    gallery_speakers: ArrayLike,
    *,
    products: Floats | None = None,
) -> Identification:
    """Look up each query among the gallery by Euclidean distance (paper 002, section 5.1).

    `products` are those of queries and gallery, if they are known already.

    >>> found = identify([[1, 0], [0, 1]], [[0.9, 0.1], [0.8, 0.2]], ["a", "b"], ["a", "b"])
    >>> found.value(), found.value(2), found.chance()
    (100.0, 100.0, 50.0)
    """
    q, g = np.asarray(queries, float), np.asarray(gallery, float)
    asked, known = np.asarray(query_speakers, object), np.asarray(gallery_speakers, object)
    if q.ndim != 2 or g.ndim != 2 or q.shape[1] != g.shape[1] or not len(q) or not len(g):
        raise InputError(f"queries {q.shape} and gallery {g.shape} can't be compared")
    codes = np.unique(np.concatenate([asked, known]).astype(str), return_inverse=True)[1]  # numbers compare faster
    asks, knows = codes[: len(asked)], codes[len(asked) :]
    present = np.isin(asks, knows)
    if not present.any():
        raise InputError(
            "no query's speaker is in the gallery", fix="use the same speaker names for clear and anonymized trials"
        )
    if not present.all():
        q, asked, asks = q[present], asked[present], asks[present]
        products = None if products is None else products[present]
    half = 0.5 * np.einsum("ij,ij->i", g, g)
    tie = 1e-12 * (1 + float(half.max()))  # of equal vectors rounding must not find the nearest
    by_speaker = np.argsort(knows, kind="stable")
    first, last = (np.searchsorted(knows[by_speaker], asks, side=side) for side in ("left", "right"))
    own = last - first
    nearer = np.empty(len(q), np.int64)
    for start in range(0, len(q), BLOCK):
        part = slice(start, start + BLOCK)
        closeness = (q[part] @ g.T if products is None else products[part]) - half  # as distances, the sign turned
        begins = np.cumsum(own[part]) - own[part]
        rows = np.repeat(np.arange(len(closeness)), own[part])
        theirs = closeness[rows, by_speaker[np.arange(len(rows)) + (first[part] - begins)[rows]]]
        least = np.maximum.reduceat(theirs, begins) - tie
        reached = np.count_nonzero(closeness >= least[:, None], axis=1)
        nearer[part] = reached - np.add.reduceat(theirs >= least[rows], begins, dtype=np.int64)
    return Identification(nearer, own, len(g), asked)
