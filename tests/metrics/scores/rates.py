"""Slow, obvious references that the tests of several measures share."""

from __future__ import annotations


def rates(t: list[float], n: list[float]) -> tuple[list[float], list[float]]:
    """Miss and false alarm rate at every threshold, the highest first, with "accept nothing" before them."""
    cuts = sorted({*t, *n}, reverse=True)
    miss = [1.0] + [sum(x < c for x in t) / len(t) for c in cuts]
    false = [0.0] + [sum(x >= c for x in n) / len(n) for c in cuts]
    return miss, false
