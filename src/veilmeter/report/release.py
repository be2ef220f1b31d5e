"""How many people of a real release would be found: exact where it was measured, by the population model beyond.

Linkability is the chance that somebody on the attacker's list of candidates is named rightly. A list that is shorter
than the release can't hold everybody, so at most as many people are found as there are candidates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from veilmeter.attacks.attacker import BASELINE
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.results.criteria import AS_MEASURED, strongest
from veilmeter.results.model import Results

Basis = Literal["measured", "model", "beyond"]
UNKNOWN = "unknown"  # of a model that leaves more than this open, no figure is told
MOST_OPEN = 0.5
GRID_STEPS = 8  # points of a curve for every tenfold number of candidates


@dataclass(frozen=True, slots=True)
class Share:
    """The share of people on a list of `candidates` that is found. `beyond` is past the model's last point, which then
    stands for it: more candidates make it no easier."""

    candidates: int
    value: float
    low: float
    high: float
    basis: Basis

    @property
    def known(self) -> bool:
        """True if it was measured, or if the interval of the model's estimate covers less than half of the people."""
        return self.basis == "measured" or self.high - self.low <= MOST_OPEN


@dataclass(frozen=True, slots=True)
class Curve:
    """An attacker with so many recordings per person: the points that were measured and those of the model."""

    attacker: str
    length: int
    measured: tuple[Estimate, ...]
    model: tuple[Estimate, ...]

    @property
    def most_measured(self) -> int:
        return _people(self.measured[-1])

    @property
    def most(self) -> int:
        return _people(self.model[-1]) if self.model else self.most_measured

    def at(self, candidates: int) -> Share:
        """The share found among so many candidates; between two points along the logarithm of their number."""
        points = self.measured if candidates <= self.most_measured else (self.measured[-1], *self.model)
        basis: Basis = "measured" if candidates <= self.most_measured else "model"
        if candidates > self.most:
            basis = "beyond"
        if candidates <= 1:
            return Share(candidates, 1.0, 1.0, 1.0, basis)
        below = [point for point in points if _people(point) <= candidates]
        above = [point for point in points if _people(point) >= candidates]
        if not below:  # fewer candidates than were ever measured: somebody on a list of one is always found
            value, low, high = _between(_CERTAIN, _ends(above[0]), math.log(candidates) / math.log(_people(above[0])))
        elif not above:
            value, low, high = _ends(below[-1])
        elif below[-1] is above[0]:
            value, low, high = _ends(above[0])
        else:
            first, last = math.log(_people(below[-1])), math.log(_people(above[0]))
            part = (math.log(candidates) - first) / (last - first) if last > first else 0.0
            value, low, high = _between(_ends(below[-1]), _ends(above[0]), part)
        return Share(candidates, value, low, high, basis)

    def grid(self) -> tuple[Share, ...]:
        """The curve at so many points that straight lines between them are good enough for a calculator."""
        most = max(self.most, 2)
        steps = max(1, math.ceil(GRID_STEPS * math.log10(most)))
        counts = {round(most ** (step / steps)) for step in range(steps + 1)}
        counts |= {_people(point) for point in (*self.measured, *self.model)}
        return tuple(self.at(count) for count in sorted(counts))


_CERTAIN = (1.0, 1.0, 1.0)


def _people(point: Estimate) -> int:
    return int(point.at["speakers"])


def _ends(point: Estimate) -> tuple[float, float, float]:
    low, high = point.interval or (point.value, point.value)
    return point.value / 100, max(0.0, low / 100), min(1.0, high / 100)


def _between(
    first: tuple[float, float, float], last: tuple[float, float, float], part: float
) -> tuple[float, float, float]:
    value, low, high = ((1 - part) * start + part * end for start, end in zip(first, last, strict=True))
    return value, low, high


def curves_of(results: Results) -> tuple[Curve, ...]:
    """Every attack with every number of recordings per person for which Linkability was measured."""
    curves = []
    original = results.attackers[BASELINE].estimates if BASELINE in results.attackers else Estimates()
    ceilings = {tuple(sorted(p.at.items())): p for p in original.points("population_linkability")}
    for name, attacker in results.attacks.items():
        points = attacker.estimates.points("linkability").sort_by("speakers")
        model = attacker.estimates.points("population_linkability").sort_by("speakers")
        for length in sorted({int(point.at["length"]) for point in points if "length" in point.at}):
            measured = tuple(point for point in points if point.at.get("length") == length)
            most = _people(measured[-1])
            further = tuple(
                at_most(p, ceilings.get(tuple(sorted(p.at.items()))))
                for p in model
                if p.at.get("length", 1) == length and _people(p) > most
            )
            curves.append(Curve(name, length, measured, further))
    return tuple(curves)


def extrapolations(results: Results) -> dict[str, list[Estimate]]:
    """The model's curve of each attacker beyond the measured range, as a figure may show it: cut off at original
    speech, and left out where its interval covers more than half of the people."""
    original = results.attackers[BASELINE].estimates if BASELINE in results.attackers else Estimates()
    models = {BASELINE: original.points("population_linkability")} if original else {}
    for curve in curves_of(results):
        models[curve.attacker] = Estimates([*models.get(curve.attacker, ()), *curve.model])
    return {
        name: [p for p in model if p.interval is not None and p.interval[1] - p.interval[0] <= 100 * MOST_OPEN]
        for name, model in models.items()
    }


def at_most(point: Estimate, ceiling: Estimate | None) -> Estimate:
    """A model's estimate, cut off at that for original speech: nobody finds more people after anonymization."""
    if ceiling is None:
        return point
    top = ceiling.interval[1] if ceiling.interval else ceiling.value
    interval = None if point.interval is None else (min(point.interval[0], top), min(point.interval[1], top))
    return point.with_(value=min(point.value, ceiling.value), interval=interval)


@dataclass(frozen=True, slots=True)
class Release:
    """What happens to a release of `people` when an attacker has so many `candidates`."""

    people: int
    candidates: int
    share: Share
    curve: Curve

    @property
    def on_the_list(self) -> int:
        return min(self.people, self.candidates)

    @property
    def expected(self) -> tuple[float, float, float]:
        """People found, with the ends of the interval."""
        return tuple(self.on_the_list * share for share in (self.share.value, self.share.low, self.share.high))  # type: ignore[return-value]

    @property
    def basis(self) -> str:
        return self.share.basis if self.share.known else UNKNOWN

    @property
    def evidence(self) -> Estimate:
        """The point of the curve that the figure was computed from, or the nearest one of at least as many people."""
        points = (*self.curve.measured, *self.curve.model)
        return next((point for point in points if _people(point) >= self.candidates), points[-1])

    @property
    def chosen(self) -> bool:
        """Whether the figure was chosen on other people: it is not the attacker's own."""
        return AS_MEASURED in self.curve.measured[-1].extra

    @property
    def by_guessing(self) -> float:
        return self.on_the_list / self.candidates


def release_of(
    results: Results, *, people: int | None = None, candidates: int | None = None, curves: Sequence[Curve] | None = None
) -> Release | None:
    """The release under the strongest attacker; None where Linkability was not measured. Without numbers the people
    that were assessed are the release, and the list of candidates."""
    for name, given, least in (("release-size", people, 1), ("candidates", candidates, 2)):
        if given is not None and given < least:
            raise InputError(f"--{name} must be at least {least} (got {given})")
    known = list(curves_of(results) if curves is None else curves)
    if not known:
        return None
    assessed = max(curve.most_measured for curve in known)
    listed = candidates or assessed
    worst = _strongest_curve(results, known)
    return Release(people or assessed, listed, worst.at(listed), worst)


def _strongest_curve(results: Results, curves: Sequence[Curve]) -> Curve:
    """The curve of the headline's attacker; its last measured point is the headline's figure."""
    chosen = strongest(results)
    for curve in curves:
        if chosen is not None and curve.attacker == chosen.attacker and curve.measured[-1].at == chosen.estimate.at:
            return replace(curve, measured=(*curve.measured[:-1], chosen.estimate))
    return max(curves, key=lambda curve: (curve.at(curve.most_measured).value, curve.length))
