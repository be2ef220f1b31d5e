"""Signals at any moment of every command: `python tools/fuzz.py stops`.

A command is stopped at a random moment, by a signal for it alone or for the whole group, as a terminal sends it, and
run again to its end. A finding is: a traceback or any word of Python's, an exit code that is not that of a stop or of
the whole command, files or processes that are left behind, a command that does not end within `ENDS` seconds, and an
output after going on that differs from that of a run that was never stopped.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tools.fuzzing.odd_inputs import _end_strays, _is_leftover, _start, make_base

_SHARED = os.environ.get("VEILMETER_SHARED", Path(__file__).parents[3] / "shared")
REAL = Path(_SHARED, "data", "librispeech", "test-other-10x10")  # to train on, which takes real voices
ENDS = 30  # seconds, on a busy machine
STOPPED = 130
_GROUP = (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)  # what a terminal sends
_WORDS = re.compile(r"Traceback|Exception ignored|^\w*(Error|Interrupt)\b|Aborted|core dumped|leaked", re.M)

COMMANDS = {
    "measure": "measure scores.txt --trials key.txt",
    "measure --stream": "measure scores.txt --trials key.txt --stream",
    "similarity": "similarity --original o.npz --anonymized a.npz",
    "linkability": "linkability --enroll o.npz --test a.npz",
    "singling-out": "singling-out --enroll o.npz --test a.npz",
    "invert": "invert --clear-train o.npz --anonymized-train a.npz --clear-trials o.npz --anonymized-trials a.npz"
    " --save-map out.npz",
    "assess": "assess --original o.npz --anonymized a.npz --speakers 4 --out out --jobs 2",
    "assess --cluster": "assess --original o.npz --anonymized a.npz --speakers 4 --out out --cluster local --jobs 1",
    "assess audio": "assess --original corpus --system mcadams-random --system-runs 1 --extractor rhythm"
    " --no-utility --out out --jobs 2",
    "report": "report run --out page.html",
    "report pdf": "report run --out page.pdf",
    "compare": "compare run run --report page.html",
    "gate": "gate run --max eer=60",
    "check": "check corpus",
    "anonymize": "anonymize corpus out --system mcadams --jobs 2",
    "anonymize --cluster": "anonymize corpus out --system mcadams --cluster local --jobs 1",
    "anonymize program": "anonymize corpus out --system command --command cp%20{input}%20{output} --jobs 2",
    "embed": "embed corpus out --extractor own.py:embed --jobs 2",
    "embed --cluster": "embed corpus out --extractor rhythm --cluster local --jobs 1",
    "embed h5": "embed corpus out.h5 --extractor own.py:embed --jobs 1",
    "transcribe": "transcribe corpus out --recognizer own.py:hear --jobs 2",
    "utility": "utility --original corpus --anonymized corpus --recognizer own.py:hear --recordings 6 --rated 2"
    " --language en --jobs 2 --json",
    "train": "train xvector-pool voices out --steps 20 --voices 2 --jobs 1",
    "demo": "demo --out out --jobs 2",
}
"""What is stopped, in a folder of `odd_inputs.make_base`."""

_CHANGES = (".html", ".pdf", "timings.json", "pseudonyms.key")  # a date, how long something took, a secret


def run(wanted: str, tries: int, seed: int) -> bool:
    """Stop each command whose name matches so often; whether there was no finding."""
    good = True
    with tempfile.TemporaryDirectory(prefix="veilmeter-stops-") as place:
        base = Path(place, "base")
        base.mkdir()
        make_base(base)
        for path in sorted(REAL.glob("*/*-000[0-3].flac")):
            (base / "voices" / path.parent.name).mkdir(parents=True, exist_ok=True)
            shutil.copy(path, base / "voices" / path.parent.name)
        for name, command in COMMANDS.items():
            if "voices" in command and not REAL.is_dir():
                print(f"{name}: not tried, as there is no {REAL}", flush=True)
            elif re.search(wanted, name):
                good &= _try_all(name, command, base, tries, random.Random(f"{name} {seed}"))
    return good


def _try_all(name: str, command: str, folder: Path, tries: int, rng: random.Random) -> bool:
    words = [word.replace("%20", " ") for word in command.split(" ")]
    place = _Place(folder)
    begun = time.monotonic()
    code, output, _ = place.run(words)
    seconds = time.monotonic() - begun
    if code not in (0, 1, 3):
        print(f"FINDING {name} does not work: {code}\n{output}", flush=True)
        return False
    expected = place.outputs()
    outcomes: Counter[str] = Counter()
    findings = 0
    for _ in range(tries):
        place.clear()
        numbers = [rng.choice([signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])]
        numbers += [signal.SIGTERM] * (rng.random() < 0.2)  # a service manager sends two
        moment = rng.uniform(0, seconds)
        ended, output, problems = place.run(words, numbers, moment)
        problems += _WORDS.findall(output)
        early = [-number for number in numbers] if not output else []
        if ended not in (code, STOPPED, *early):
            problems.append(f"exit code {ended}")
        again, later, left = place.run(words)
        if again != code:
            problems.append(f"exit code {again} when run again: {later[-300:]}")
        found = place.outputs()
        different = [file for file in expected.keys() | found.keys() if expected.get(file) != found.get(file)]
        problems += left + [f"{file} differs" for file in different]
        outcomes[str(ended)] += 1
        if problems:
            findings += 1
            how = f"{'+'.join(number.name for number in numbers)} after {moment:.3f} of {seconds:.1f} s"
            print(f"FINDING {name}, {how}: {'; '.join(map(str, problems))}\n{output[-2000:]}", flush=True)
    place.clear()
    print(f"{name}: {tries} stops in {seconds:.1f} s, exit codes {dict(outcomes)}, {findings} findings", flush=True)
    return not findings


class _Place:
    """The folder of the inputs, where all commands are run: what is kept of a file holds its path and its times."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._inputs = folder, set(folder.rglob("*"))

    def clear(self) -> None:
        """Remove what a command made, and what it kept but the weights of models."""
        for path in sorted({*self._folder.rglob("*")} - self._inputs, reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
        for path in (self._folder.parent / "cache").glob("*/"):
            shutil.rmtree(path)
        shutil.rmtree(self._folder.parent / "temporary")

    def run(
        self, words: list[str], numbers: Sequence[signal.Signals] = (), moment: float = 600
    ) -> tuple[int | str, str, list[str]]:
        """The exit code, what was printed, and what was left behind. The signals are sent after so many seconds."""
        with open(self._folder.parent / "output", "w+", errors="replace") as file:
            process = _start(words, self._folder, file)
            with suppress(subprocess.TimeoutExpired):
                process.wait(moment)
            for number in numbers:
                if process.poll() is None:
                    (os.killpg if number in _GROUP else os.kill)(process.pid, number)
                    time.sleep(0.05)
            code: int | str
            try:
                code = process.wait(ENDS)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                code = f"hangs ({process.wait()})"
            strays = _end_strays(process.pid)
            file.seek(0)
            output = file.read()
        left = [path.name for path in (self._folder.parent / "temporary").iterdir()]
        left = [name for name in left if not name.startswith("torch")]
        left += [path.name for path in {*self._folder.rglob("*")} - self._inputs if _is_leftover(path.name)]
        return code, output, left + ([f"{strays} processes"] if strays else [])

    def outputs(self) -> dict[str, bytes]:
        return {
            str(path.relative_to(self._folder)): b"" if path.name.endswith(_CHANGES) else path.read_bytes()
            for path in self._folder.rglob("*")
            if path.is_file() and "__pycache__" not in path.parts
        }
