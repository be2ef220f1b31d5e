"""Figure 1 of paper 003 from the values its authors published, and how far an extrapolation is from them.

    python examples/paper003_figure1.py [FOLDER]

The values are in the package voice-anonymization-legal-eval 2.1.0 (MIT): Linkability from 20 to 21,920 people, Singling
Out and 1 - EER, for four attackers and conversations of 1, 3 and 30 utterances. With FOLDER, the nine panels are drawn
there. The extrapolation begins with worlds made to have the published curves: scores of impostors are standard normal,
and those of the right person are drawn so that Linkability among N people is the published one. From 50, 200 and 1,000
people of such a world, `population_linkability` predicts the rest of the curve.
"""

from __future__ import annotations

import csv
import sys
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls
from scipy.stats import norm

from veilmeter.core.estimate import Estimate
from veilmeter.metrics.legal.linkability import linkability_of_scores
from veilmeter.metrics.legal.population import population_linkability

Floats = NDArray[np.float64]
Curve = dict[int, float]  # shares by number of people
MEASURES = {"linkability": "linkability", "singling_out": "singling_out", "one_minus_eer": "eer"}
FITTED = (50, 200, 1000)
AMONG = (220, 1020, 5020, 21_920)
WORLDS = 8


def published(measure: str) -> dict[tuple[str, int], Curve]:
    """The published curves of a measure by attacker and length."""
    table = resources.files("legal_eval") / "data" / "paper_results" / f"{measure}_results.csv"
    curves: dict[tuple[str, int], Curve] = {}
    with table.open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            value = float(row[f"{MEASURES[measure]}_mean"])
            curves.setdefault((row["attacker"].lower(), int(row["L"])), {})[int(row["enrollment_speakers"])] = value
    return curves


def show_curves() -> None:
    """The curves at a few numbers of people, in percent."""
    for measure in MEASURES:
        print(f"\n{measure} (%)")
        for (attacker, length), curve in published(measure).items():
            sizes = [size for size in (20, 30, 400, 1020, 2560, 5020, 21_920) if size in curve]
            cells = "  ".join(f"{size:,}: {100 * curve[size]:.1f}" for size in sizes)
            print(f"  {attacker:14} L = {length:2}  {cells}")


def draw(folder: Path) -> None:
    """The nine panels, by the same code that draws one's own curves."""
    from veilmeter.report.figures.legal import save_all

    attackers: dict[str, dict[str, list[Estimate]]] = {}
    for measure in MEASURES:
        for (attacker, length), curve in published(measure).items():
            points = [
                Estimate(name=measure, value=100 * value, unit="percent", at={"speakers": size, "length": length})
                for size, value in curve.items()
            ]
            attackers.setdefault(attacker, {}).setdefault(measure, []).extend(points)
    for path in save_all(attackers, folder):
        print(path)


def make_world(curve: Curve) -> tuple[Floats, Floats]:
    """Shares of impostors who beat the right person, and how frequent each is, with which Linkability among N people is
    the published curve: a mixture of (1 - p)^(N - 1), by least squares."""
    sizes = np.array(sorted(curve), float)
    beaten = np.concatenate([[0.0], np.geomspace(1e-7, 0.9, 160)])
    columns = (1 - beaten)[None, :] ** (sizes[:, None] - 1)
    weight = 1e3  # of the condition that the shares add up to one
    weights, _ = nnls(
        np.vstack([columns, np.full(len(beaten), weight)]), np.append([curve[int(n)] for n in sizes], weight)
    )
    return beaten, weights / weights.sum()


def extrapolate(
    curve: Curve, people: int, seed: int, sizes: tuple[int, ...], *, intervals: bool = True
) -> list[Estimate]:
    """Predictions among `sizes` from that many people of a world with this curve."""
    beaten, weights = make_world(curve)
    rng = np.random.default_rng([seed, people])
    right = norm.isf(np.clip(rng.choice(beaten, people, p=weights), 1e-12, 1 - 1e-12))
    scores = rng.standard_normal((people, people))
    scores[np.arange(people), np.arange(people)] = right
    names = [f"{number:05}" for number in range(people)]
    link = linkability_of_scores(scores, names, np.array(names, object), seed=seed)
    assert link is not None
    return list(population_linkability(link, sizes, intervals=intervals, resamples=50, seed=seed))


def show_errors() -> None:
    """How far predictions are from the published curves, over attackers, lengths and worlds."""
    curves = published("linkability")
    fits = [
        abs(_world_value(make_world(curve), n) - v) for curve in curves.values() for n, v in list(curve.items())[::20]
    ]
    print(f"\nworlds: at most {100 * max(fits):.2f} percentage points from the published curves")
    print("from   among    mean error of log10   in points   intervals that cover   n")
    for people in FITTED:
        sizes = tuple(size for size in AMONG if size >= people)
        logs: dict[int, list[tuple[float, float, bool]]] = {size: [] for size in sizes}
        for curve in curves.values():
            for seed in range(WORLDS if people < 1000 else 2):
                for size, point in zip(sizes, extrapolate(curve, people, seed, sizes), strict=True):
                    assert point.interval is not None
                    truth, low, high = 100 * curve[size], *point.interval
                    error = abs(np.log10(max(point.value, 0.01)) - np.log10(max(truth, 0.01)))
                    logs[size].append((error, abs(point.value - truth), low <= truth <= high))
        for size, rows in logs.items():
            error, points, covered = (float(np.mean(column)) for column in zip(*rows, strict=True))
            print(f"{people:5,}  {size:6,}  {error:19.2f}  {points:10.1f}  {100 * covered:18.0f} %   {len(rows)}")


def _world_value(world: tuple[Floats, Floats], people: int) -> float:
    beaten, weights = world
    return float(weights @ (1 - beaten) ** (people - 1))


if __name__ == "__main__":
    show_curves()
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]))
    show_errors()
