"""A measure of recordings: how much louder or softer they became."""

import numpy as np
from numpy.typing import NDArray

from veilmeter.metrics.measure import Measure


def level_change(original: NDArray[np.float32], anonymized: NDArray[np.float32], rate: int) -> float:
    before, after = (np.mean(np.square(samples, dtype=np.float64)) for samples in (original, anonymized))
    return float(10 * np.log10(after / before))


MEASURE = Measure(
    name="level_change",
    label="level change",
    unit="dB",
    better="neither",
    meaning="How much louder (or softer, below 0) the anonymized recordings are.",
    source="this example",
    equation="10 log10 of the ratio of energies",
    kind="recordings",
    compute=level_change,
)
