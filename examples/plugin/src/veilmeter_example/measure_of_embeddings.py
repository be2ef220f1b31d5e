"""A measure of embeddings: how far each voice moved."""

import numpy as np

from veilmeter import Embeddings, Estimate
from veilmeter.core.intervals import cluster_interval
from veilmeter.metrics.measure import Measure


def mean_shift(original: Embeddings, anonymized: Embeddings) -> Estimate:
    cosines = np.einsum("ij,ij->i", original.unit, anonymized.unit)
    interval = cluster_interval(1 - cosines, original.codes)  # utterances of one speaker are not independent
    return MEASURE.estimate(float(np.mean(1 - cosines)), interval=interval, n={"recordings": len(cosines)})


MEASURE = Measure(
    name="mean_shift",
    label="mean shift",
    unit="",
    better="higher",
    meaning="How far a voice moves when it is anonymized: 0 is not at all, 1 is to a right angle.",
    source="this example",
    equation="mean of 1 - cos(original, anonymized)",
    low=0.0,
    high=2.0,
    kind="embeddings",
    compute=mean_shift,
)
