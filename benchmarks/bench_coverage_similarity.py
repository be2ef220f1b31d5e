"""Coverage of the 95 % intervals of the similarity measures, with new speakers in every sample.

The truth is the mean over all samples, which estimate the same population.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from veilmeter.metrics.similarity.matrices import similarity, similarity_estimates

MEASURES = ("deid", "g_vd", "d_diag_oo", "d_diag_op", "d_diag_pp")
SPEAKERS, UTTERANCES, DIMENSION = 14, 6, 12


def coverage(kept: float, samples: int, speakers: int = SPEAKERS) -> dict[str, float]:
    """By measure, where a share of the original voice is kept in the protected one."""
    codes = np.repeat(np.arange(speakers), UTTERANCES)
    names = [f"s{code}" for code in codes]
    values, intervals = [], []
    for seed in range(samples):
        rng = np.random.default_rng(1000 + seed)
        voices, others = rng.normal(size=(2, speakers, DIMENSION))
        pseudo = kept * voices + (1 - kept) * others
        original = voices[codes] + 0.6 * rng.normal(size=(len(codes), DIMENSION))
        protected = pseudo[codes] + 0.8 * rng.normal(size=(len(codes), DIMENSION))
        estimates = similarity_estimates(similarity(original, protected, names, spreads=True, seed=seed))
        values.append([estimates[name].value for name in MEASURES])
        intervals.append([estimates[name].interval or (np.nan, np.nan) for name in MEASURES])
    truth, ends = np.mean(values, axis=0), np.array(intervals)
    inside = (ends[:, :, 0] <= truth) & (truth <= ends[:, :, 1])
    return dict(zip(MEASURES, inside.mean(axis=0).tolist(), strict=True))


def main(samples: int = 300) -> None:
    error = 100 * (0.95 * 0.05 / samples) ** 0.5
    print(f"coverage of nominal 95 % intervals, {samples} samples each (standard error {error:.1f} points)")
    for kept in (0.0, 0.6):
        start = time.perf_counter()
        rates = "   ".join(f"{name} {100 * rate:.1f} %" for name, rate in coverage(kept, samples).items())
        took = time.perf_counter() - start
        print(f"{SPEAKERS} speakers, {kept:.0%} of the voice kept: {rates}   {took:.0f} s", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 300)
