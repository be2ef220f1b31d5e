"""`make fuzz`: broken and hostile input for everything that reads files, with memory and time watched.

Each reader gets sound files of which one was changed: bytes, words of lists, values of JSON (`tools/fuzzing`). It may
read them or refuse them (`VeilmeterError`); anything else is a finding, and so is an input that takes more memory or
time than any file of its size may. Inputs follow from the seed, so that a finding can be repeated.

    python tools/fuzz.py [--inputs 2000] [--seed 0] [--guided SECONDS] [--counts FILE] [READER ...]

Whole commands get special files and values beyond every limit (`tools/fuzzing/odd_inputs`), also as `commands` alone.
As `stops`, which takes longest and is not part of `make fuzz`, they are stopped by signals and run again.
With `--guided` atheris, where it is installed, chooses inputs by what they reach. `--counts` adds up several calls.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.fuzzing import odd_inputs, stops  # noqa: E402
from tools.fuzzing.changes import change  # noqa: E402
from tools.fuzzing.readers import Reader, readers  # noqa: E402

MEGABYTES = 1024  # that one input may add
SLOWEST = 20  # seconds for one input
STOP_COST = 400  # of a stopped command, in inputs of a quick reader
MOST_FINDINGS = 8  # of one reader, then it is left
INSTRUMENTED = ("veilmeter.data.formats", "veilmeter.results", "veilmeter.core", "veilmeter.attacks")


def peak() -> int:
    """Megabytes, of this process or of the largest one that it started."""
    return max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) // 1024


def look_up_plug_ins_once() -> None:
    """Which packages are installed does not change here, and looking takes longer than most readers."""
    from importlib import metadata

    metadata.entry_points = functools.cache(metadata.entry_points)  # type: ignore[assignment]


def fork_instead_of_starting() -> None:
    """Files that are read in a process of their own get a fork of this one: the same limits, without a new Python."""
    from veilmeter.core import processes
    from veilmeter.core.errors import InputError
    from veilmeter.data.formats import dataset, h5

    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()

    def run_forked(function: str, path: Path, arguments: Iterable[str], what: str) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="veilmeter-") as folder:
            answer = Path(folder, "answer.json")
            process = os.fork()
            if process == 0:
                try:
                    limits = [str(5), str(size + processes.CONFINED_MEMORY)]
                    processes.child([function, str(answer), *limits, str(path), *arguments])
                finally:
                    os._exit(0)
            os.waitpid(process, 0)
            facts = json.loads(answer.read_text()) if answer.is_file() else {"error": "its library failed"}
        if "error" in facts:
            raise InputError(f"corrupt {what}: {facts['error']}", path=path)
        return dict(facts)

    for module in (dataset, h5):
        module.run_confined = run_forked  # type: ignore[attr-defined]


class Trial:
    """One reader with its sound files, in a folder of its own."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name, self.reader = name, readers()[name]
        self.place = folder / "input"
        shutil.rmtree(self.place, ignore_errors=True)
        self.place.mkdir()
        self.reader.make(self.place)
        self.sound = {
            str(file.relative_to(self.place)): file.read_bytes() for file in self.place.rglob("*") if file.is_file()
        }
        self.changed = sorted(file for file in self.sound if file.endswith(self.reader.changed))
        self.reader.read(self.place)
        self._restore(set(self.sound))

    def input(self, number: int, seed: int) -> tuple[str, bytes]:
        rng = random.Random(f"{self.name} {seed} {number}")
        file = rng.choice(self.changed)
        return file, change(self.sound[file], file, rng)

    def once(self, file: str, data: bytes) -> bool:
        """Whether the input was read; False if it was refused."""
        from veilmeter.core.errors import VeilmeterError

        (self.place / file).write_bytes(data)
        if self.reader.seal is not None:
            self.reader.seal(self.place)
        signal.alarm(SLOWEST)
        try:
            self.reader.read(self.place)
        except VeilmeterError:
            return False
        finally:
            signal.alarm(0)
            self._restore({file} if self.reader.seal is None else set(self.sound))
        return True

    def _restore(self, files: set[str]) -> None:
        for file in files:
            (self.place / file).parent.mkdir(parents=True, exist_ok=True)
            (self.place / file).write_bytes(self.sound[file])


def fuzz(name: str, folder: Path, first: int, last: int, seed: int) -> None:
    """In a process of its own. Its progress is on disk before each input, so that whoever started it knows what ended
    it."""
    os.environ["VEILMETER_CACHE"] = str(folder / "cache")
    look_up_plug_ins_once()
    trial = Trial(name, folder)
    fork_instead_of_starting()
    start, known = peak(), set()
    progress = os.open(folder / "progress", os.O_RDWR | os.O_CREAT, 0o600)
    for number in range(first, last):
        os.pwrite(progress, f"{number:12d}{peak():12d}".encode(), 0)
        file, data = trial.input(number, seed)
        try:
            trial.once(file, data)
        except Exception as error:
            where = (type(error).__name__, *traceback.extract_tb(error.__traceback__)[-1][:2])
            if where not in known:
                known.add(where)
                report(trial, number, seed, traceback.format_exc())
        if peak() > start + MEGABYTES:
            report(trial, number, seed, f"it took {peak():,} MB")
            start = peak()
        if len(known) >= MOST_FINDINGS:
            break
    os.pwrite(progress, f"{last:12d}{peak():12d}".encode(), 0)


def report(trial: Trial, number: int, seed: int, what: str) -> None:
    file, data = trial.input(number, seed)
    print(f"FINDING {trial.name!r} input {number} of seed {seed} ({file}):\n{what}\n{data[:300]!r}", flush=True)


def run(name: str, inputs: int, seed: int) -> tuple[int, int, bool]:
    """How many inputs one reader got, the most memory it took, and whether all went well."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="veilmeter-fuzz-", dir=base) as place:
        first, megabytes, good = 0, 0, True
        while first < inputs:
            command = [sys.executable, __file__, "--child", place, "--seed", str(seed), "--first", str(first),
                       "--inputs", str(inputs), name]  # fmt: skip
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
            good &= "FINDING" not in done.stdout
            print(done.stdout, end="", flush=True)
            progress = Path(place, "progress")
            if not progress.is_file():
                print(f"{name} could not begin:\n{done.stderr[-3000:]}", flush=True)
                return 0, 0, False
            reached, memory = map(int, progress.read_text().split())
            megabytes = max(megabytes, memory)
            if done.returncode == 0:
                return inputs, megabytes, good
            good = False
            how = "took too long" if done.returncode == -signal.SIGALRM else f"ended with {done.returncode}"
            print(
                f"FINDING {name!r} input {reached} of seed {seed}: the process {how}\n{done.stderr[-500:]}", flush=True
            )
            first = reached + 1
    return inputs, megabytes, good


def guided(name: str, folder: Path, seconds: int) -> None:
    """As atheris leads: inputs that reach new code are changed further. Ends the process."""
    import atheris

    os.environ["VEILMETER_CACHE"] = str(folder / "cache")
    with atheris.instrument_imports(include=list(INSTRUMENTED)):
        trial = Trial(name, folder)
    fork_instead_of_starting()
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, file in enumerate(trial.changed):
        (corpus / str(number)).write_bytes(number.to_bytes(1, "little") + trial.sound[file])

    def one_input(data: bytes) -> None:
        if data:
            trial.once(trial.changed[data[0] % len(trial.changed)], data[1:])

    options = [f"-max_total_time={seconds}", f"-rss_limit_mb={peak() + MEGABYTES}", f"-timeout={SLOWEST}",
               "-max_len=20000", "-print_final_stats=1", f"-artifact_prefix={tempfile.gettempdir()}/fuzz-"]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], one_input)
    atheris.Fuzz()


def run_guided(name: str, seconds: int) -> tuple[int, int, bool]:
    with tempfile.TemporaryDirectory(prefix="veilmeter-fuzz-") as place:
        command = [sys.executable, __file__, "--child", place, "--guided", str(seconds), name]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    lines = (line.split() for line in done.stderr.splitlines() if line.startswith("stat::"))
    stats = {words[0]: int(words[-1]) for words in lines}
    if done.returncode:
        print(f"FINDING {name!r}, guided:\n{done.stdout[-3000:]}\n{done.stderr[-1500:]}", flush=True)
    return stats.get("stat::number_of_executed_units:", 0), stats.get("stat::peak_rss_mb:", 0), not done.returncode


def add_counts(path: Path, name: str, reader: Reader, count: int, megabytes: int) -> None:
    """Adds to the counts in a file: of each reader, of each kind, of all."""
    counts = json.loads(path.read_text()) if path.is_file() else {"all": 0, "kinds": {}, "readers": {}}
    counts["all"] += count
    counts["kinds"][reader.kind] = counts["kinds"].get(reader.kind, 0) + count
    entry = counts["readers"].setdefault(name, {"inputs": 0, "megabytes": 0})
    entry["inputs"] += count
    entry["megabytes"] = max(entry["megabytes"], megabytes)
    path.write_text(json.dumps(counts, indent=1, sort_keys=True) + "\n")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--inputs", type=int, default=2000, help="for each reader; slow ones get fewer")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--guided", type=int, default=0, metavar="SECONDS", help="for each reader, with atheris")
    options.add_argument("--counts", type=Path, help="a file to add the counts to")
    options.add_argument("--only", default="", help="odd inputs and stops of commands: those whose name matches this")
    options.add_argument("--combinations", type=int, default=200, help="special files at options, drawn by the seed")
    options.add_argument("--first", type=int, default=0, help=argparse.SUPPRESS)
    options.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options.add_argument(
        "readers", nargs="*", help="how their names begin, commands, or stops; all but stops by default"
    )
    given = options.parse_args()
    if given.child:
        if given.guided:
            guided(given.readers[0], given.child, given.guided)
        fuzz(given.readers[0], given.child, given.first, given.inputs, given.seed)
        return 0
    if given.guided and importlib.util.find_spec("atheris") is None:
        print("atheris is not installed: inputs are changed by chance alone", flush=True)
        given.guided = 0
    with tempfile.TemporaryDirectory(prefix="veilmeter-fuzz-") as shared:
        os.environ["VEILMETER_FUZZ_RUN"] = shared
        return fuzz_all(given)


def fuzz_all(given: argparse.Namespace) -> int:
    total, good = 0, True
    for name, reader in readers().items():
        if given.readers and not name.startswith(tuple(given.readers)):
            continue
        start = time.monotonic()
        results = [run(name, max(1, given.inputs // reader.cost), given.seed)]
        results += [run_guided(name, given.guided)] if given.guided else []
        count, megabytes = sum(r[0] for r in results), max(r[1] for r in results)
        good &= all(r[2] for r in results)
        total += count
        if given.counts:
            add_counts(given.counts, name, reader, count, megabytes)
        print(f"{name:26} {count:9,} inputs, {time.monotonic() - start:6.1f} s, at most {megabytes} MB", flush=True)
    print(f"{total:,} inputs in all", flush=True)
    if not given.readers or "commands" in given.readers:
        good &= odd_inputs.run(given.only, combinations=given.combinations, seed=given.seed)
    if "stops" in given.readers:
        good &= stops.run(given.only, max(1, given.inputs // STOP_COST), given.seed)
    return 0 if good else 1


if __name__ == "__main__":
    raise SystemExit(main())
