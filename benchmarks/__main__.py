"""`python -m benchmarks [name ...]`: runs each benchmark module's `main()` and prints its ratios.

A benchmark measures ratios within one run (against a slow reference, a library or a physical floor),
never bare seconds.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

import benchmarks


def run() -> None:
    names = sorted(m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name.startswith("bench_"))
    wanted = sys.argv[1:]
    if unknown := [word for word in wanted if f"bench_{word}" not in names]:
        known = ", ".join(name.removeprefix("bench_") for name in names)
        sys.exit(f"there is no benchmark {unknown[0]!r}: choose among {known}")
    for name in names:
        if not wanted or name.removeprefix("bench_") in wanted:
            print(f"\n== {name.removeprefix('bench_')}", flush=True)
            importlib.import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":
    run()
