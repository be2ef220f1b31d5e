"""What a second process brings, by the clock; and by processor time where others are at work on the machine."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veilmeter.core.engine import Engine

GOAL = 1.8
SHARE = 0.95  # of a core, that a single process must get for the clock to mean anything


def print_gain(run: Callable[[Engine, str], object], warm: Callable[[Engine], object], rounds: int) -> None:
    """`run(engine, name)` does the whole work into a place of that name; `warm(engine)` lets both processes load their
    model."""
    from veilmeter.core.engine import Here, Pool, cores

    if cores() < 2:
        print("two cores: there is only one")
        return
    two = Pool(2)
    try:
        warm(two)
        gains, shares, balances = [], [], []
        for number in range(rounds):
            clock, busy = time.monotonic(), time.process_time()
            run(Here(), f"clock{number}")
            single, work = time.monotonic() - clock, time.process_time() - busy
            clock, before = time.monotonic(), worker_times()
            run(two, f"two{number}")
            gains.append(single / (time.monotonic() - clock))
            shares.append(work / single)
            balances.append(work / max(after - before.get(pid, 0.0) for pid, after in worker_times().items()))
    finally:
        two.close()
    print(f"two processes / one, by the clock: {max(gains):.2f} times the speed (goal at least {GOAL})")
    if max(shares) < SHARE:
        percent = 100 * max(shares)
        print(f"  others were at work: a single process got {percent:.0f} % of a core; by processor time, which")
        print(f"  they disturb less, one process / the busier of two: {statistics.median(balances):.2f}")


def worker_times() -> dict[int, float]:
    """Processor time of each process that this one started."""
    import psutil

    times = {child.pid: child.cpu_times() for child in psutil.Process().children()}
    return {pid: found.user + found.system for pid, found in times.items()}
