"""Repeated assessments with random faults, by hand: `python -m benchmarks.soak --minutes 60`.

Each round runs `veilmeter assess` into one folder and at a random moment kills it (SIGKILL or SIGTERM), cuts a
finished stage short, flips a bit in one, leaves half a file behind, or runs a second one into the same folder; then it
runs the command to its end. results.json must be the same bytes every time, the folder must hold nothing else than the
first one did, and the memory of a process that assesses over and over must stay flat.
"""

from __future__ import annotations

import argparse
import collections
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

SPEAKERS, EACH, DIMENSION = 12, 6, 16
WARM = 5  # rounds until caches are filled; growth is measured from there
GROWTH = 1.10


def voices(folder: Path) -> None:
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.data.formats.vectors import write_embeddings

    rng = np.random.default_rng(0)
    places, others = rng.standard_normal((2, SPEAKERS, DIMENSION))
    names = [f"s{code:02}" for code in range(SPEAKERS) for _ in range(EACH)]
    ids = [f"{name}-{number % EACH}" for number, name in enumerate(names)]
    for side, base in (("original", places), ("anonymized", 0.6 * places + 0.4 * others)):
        vectors = np.repeat(base, EACH, 0) + 0.5 * rng.standard_normal((len(names), DIMENSION))
        write_embeddings(Embeddings(vectors.astype(np.float32), ids, names), folder / f"{side}.npz")


def start(folder: Path, out: Path, jobs: int) -> subprocess.Popen[str]:
    command = [
        sys.executable, "-m", "veilmeter.cli.main", "assess", "--original", str(folder / "original.npz"),
        "--anonymized", str(folder / "anonymized.npz"), "--attackers", "ignorant", "lazy-informed", "informed",
        "--measures", "scores", "linkability", "--lengths", "1", "--resamples", "20", "--no-report", "--quiet",
        "--jobs", str(jobs), "--out", str(out),
    ]  # fmt: skip
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env={**os.environ, "OMP_NUM_THREADS": "1"}, **quiet)  # type: ignore[call-overload, no-any-return]


def disturb(rng: random.Random, folder: Path, out: Path) -> str:
    stages = sorted((out / "stages").glob("*")) if (out / "stages").is_dir() else []
    what = rng.choice(["kill", "kill", "term", "cut", "flip", "half", "double", "clock"])
    if what in ("kill", "term", "double"):
        first = start(folder, out, rng.choice((1, 2)))
        time.sleep(rng.uniform(0.3, 4.0))
        if what == "double":
            second = start(folder, out, 1)
            errors = second.communicate(timeout=300)[1]
            if second.returncode not in (0, 2) or (second.returncode == 2 and "another run" not in errors):
                raise SystemExit(f"a second run ended with {second.returncode}: {errors}")
            first.communicate(timeout=300)
        else:
            first.send_signal(signal.SIGKILL if what == "kill" else signal.SIGTERM)
            errors = first.communicate(timeout=300)[1]
            if "Traceback" in errors:
                raise SystemExit(errors)
    elif what == "half":
        (out / "stages").mkdir(parents=True, exist_ok=True)
        (out / "stages" / f".x.{rng.random()}.part").write_bytes(b"half a file")
    elif stages:
        file = rng.choice(stages)
        data = bytearray(file.read_bytes())
        if what == "cut":
            file.write_bytes(data[: rng.randrange(len(data))])
        elif what == "flip":
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
            file.write_bytes(data)
        else:
            when = rng.choice((0, 4_102_444_800))
            os.utime(file, (when, when))
    return what


def memory() -> float:
    """Megabytes this process holds now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--minutes", type=float, default=60)
    options.add_argument("--seed", type=int, default=0)
    given = options.parse_args()
    from veilmeter.assessment import assess

    rng = random.Random(given.seed)
    end = time.monotonic() + 60 * given.minutes
    with tempfile.TemporaryDirectory(prefix="veilmeter-soak-") as place:
        folder = Path(place)
        voices(folder)
        out = folder / "run"
        whole = start(folder, out, 1)
        errors = whole.communicate(timeout=600)[1]
        if whole.returncode:
            raise SystemExit(errors)
        wanted = (out / "results.json").read_bytes()
        names = sorted(str(file.relative_to(out)) for file in out.rglob("*"))
        done: collections.Counter[str] = collections.Counter()
        held: list[float] = []
        while time.monotonic() < end:
            (out / "results.json").unlink()
            if rng.random() < 0.5:
                for file in (out / "stages").iterdir():
                    file.unlink()
            done[disturb(rng, folder, out)] += 1
            last = start(folder, out, rng.choice((1, 1, 2)))
            errors = last.communicate(timeout=600)[1]
            if last.returncode:
                raise SystemExit(f"after {dict(done)}: {errors}")
            if (out / "results.json").read_bytes() != wanted:
                raise SystemExit(f"after {dict(done)}: other results")
            if sorted(str(file.relative_to(out)) for file in out.rglob("*")) != names:
                raise SystemExit(f"after {dict(done)}: other files")
            assess(
                folder / "original.npz", folder / "anonymized.npz", attackers=["ignorant"], measures=["scores"],
                resamples=20,
            )  # fmt: skip
            held.append(memory())
    rounds = sum(done.values())
    print(f"{rounds} rounds, faults: " + ", ".join(f"{name} {count}" for name, count in sorted(done.items())))
    print("results.json: the same bytes every time; no other files")
    if rounds > WARM:
        first, final = held[WARM], held[-1]
        print(
            f"memory of one process over {rounds} assessments: {first:.0f} MB after {WARM}, {final:.0f} MB at the end"
        )
        if final > GROWTH * first:
            print("it GREW")
            return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
