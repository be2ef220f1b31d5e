"""User-supplied code that fails in every way: one line and exit code 2 or 3, never its own exit code or a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from veilmeter.core.engine import Pool
from veilmeter.core.errors import InputError, Stopped, foreign_errors
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings
from veilmeter.speech.audio import write_audio

# Bodies of functions. `sys.exit(0)` is the worst: without care the run ends as if everything had been measured.
FAILURES = {
    "exits": "import sys; sys.exit(0)",
    "exits_with_text": "raise SystemExit('bye')",
    "raises_base": "class Own(BaseException): pass\n    raise Own('base')",
    "raises_without_text": "class Own(Exception):\n        def __str__(self): raise RuntimeError\n    raise Own",
}
CODE = "import veilmeter\nfrom veilmeter.attacks.attacker import ScoringAttacker\n" + "".join(
    f"""
def {name}(*material):
    {body}

@veilmeter.measure_of("scores")
def measure_{name}(scores):
    {name}(scores)

class Attack_{name}(ScoringAttacker):
    name, about = "attack-{name.replace("_", "-")}", "fails"
    def scores(self, material):
        {name}(material)

class Drawn_{name}:
    name, version = "own", "1"
    def parameters(self, utterance):
        {name}(utterance)
    def anonymize(self, samples, parameters):
        return samples

class System_{name}(Drawn_{name}):
    def parameters(self, utterance):
        return {{}}
    def anonymize(self, samples, parameters):
        {name}(samples)
"""
    for name, body in FAILURES.items()
)
ASSESS = "assess --original o.npz --anonymized a.npz --out out --resamples 5 --no-report --jobs 1 --quiet"
COMMANDS = {
    "measure": ASSESS + " --attackers ignorant --measures eer,own.py:measure_{}",
    "attacker": ASSESS + " --measures scores --attackers own.py:Attack_{}",
    "extractor": "embed speech out --extractor own.py:{} --jobs 1",
    "recognizer": "transcribe speech out --recognizer own.py:{} --jobs 2",
    "anonymizer": "anonymize speech out --system own.py:System_{} --jobs 1",
    "drawn": "anonymize speech out --system own.py:Drawn_{} --jobs 1",
    "import": "embed speech out --extractor exits.py:embed --jobs 1",
    "network": "assess --original speech --anonymized speech --train-anonymized speech --attackers informed --epochs 1 "
    "--adaptation finetune --network own.py:{} --extractor rhythm --measures scores --out out --jobs 1 --no-report",
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, speechlike: Callable[..., np.ndarray]) -> Path:
    folder = tmp_path_factory.mktemp("plug-ins")
    (folder / "own.py").write_text(CODE)
    (folder / "exits.py").write_text("import sys\nsys.exit(0)\n")
    rng = np.random.default_rng(0)
    ids, people = [f"u{n}" for n in range(24)], [f"s{n // 4}" for n in range(24)]
    for name in "oa":
        write_embeddings(Embeddings(rng.standard_normal((24, 6)), ids, people), folder / f"{name}.npz")
    for number in range(4):
        write_audio(folder / f"speech/s{number // 2}/{number}.wav", speechlike(0.7, number))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("kind", COMMANDS)
@pytest.mark.parametrize("failure", ["exits", "raises_base"])
def test_by_command(kind: str, failure: str, place: Path, tmp_path: Path) -> None:
    if kind == "network":
        pytest.importorskip("torch")
    words = COMMANDS[kind].format(failure).replace(" out", f" {tmp_path}/out").split()
    done = subprocess.run(
        [sys.executable, "-m", "veilmeter.cli.main", *words], cwd=place, capture_output=True, text=True, timeout=240,
        env={**os.environ, "VEILMETER_CACHE": str(tmp_path / "cache"), "COLUMNS": "400"},
    )  # fmt: skip
    # What else was asked of an assessment is measured, and the failure is printed with it.
    assert done.returncode in ((0,) if kind in ("measure", "attacker") else (2, 3)), (done.returncode, done.stderr)
    assert "Traceback" not in done.stderr
    printed = done.stdout + done.stderr
    assert ("Own: base" if failure == "raises_base" and kind != "import" else "SystemExit: 0") in printed


@pytest.mark.parametrize("failure", FAILURES)
def test_every_failure_becomes_one_line(failure: str) -> None:
    names: dict[str, Callable[[], None]] = {}
    exec(f"def {failure}():\n    {FAILURES[failure]}\n", names)
    with pytest.raises(InputError) as caught, foreign_errors("the measure 'm' failed"):
        names[failure]()
    assert str(caught.value).startswith("the measure 'm' failed: ")


@pytest.mark.parametrize("kind", [KeyboardInterrupt, Stopped, InputError])
def test_requests_to_stop_and_our_own_errors_pass(kind: type[BaseException]) -> None:
    with pytest.raises(kind) as caught, foreign_errors("it failed"):
        raise kind("x")
    assert str(caught.value) == "x"


def _exit(item: int) -> int:
    with foreign_errors("the task failed"):
        raise SystemExit(item)


def test_in_a_worker() -> None:
    pool = Pool(2)
    try:
        with pytest.raises(InputError, match="the task failed: SystemExit: 5"):
            list(pool.run(_exit, [5]))
    finally:
        pool.close()


def test_a_number_that_no_float_can_hold() -> None:
    from veilmeter.metrics.measure import compute_estimates, measure_of

    @measure_of("scores", name="endless")
    def endless(scores: object) -> int:
        return 10**5000

    with pytest.raises(InputError, match="'endless' gave a number that is too large"):
        compute_estimates(endless, None)
