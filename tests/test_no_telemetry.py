"""Nothing calls home: ONNX Runtime's telemetry is off in every process, whichever is imported first."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tests.fetched import fetched

from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings
from veilmeter.speech.audio import write_audio
from veilmeter.speech.weights import CAMPPLUS, MOONSHINE_DECODER, fetch

pytestmark = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="needs onnxruntime")

RUN_A_MODEL = """
import onnx
from onnx import TensorProto, helper
node = helper.make_node("Relu", ["x"], ["y"])
shape = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1]) for name in "xy"]
graph = helper.make_graph([node], "tiny", shape[:1], shape[1:])
onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), "tiny.onnx")
import numpy as np
from veilmeter.speech.onnx_session import open_session
session = open_session("tiny.onnx")
for _ in range(50):
    session.run(None, {"x": np.zeros(1, np.float32)})
import time; time.sleep(1)
"""


def run(code: str, folder: Path, *tracer: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    environment |= {"HOME": str(folder / "home"), "XDG_CACHE_HOME": str(folder / "home" / ".cache")}
    words = [*tracer, sys.executable, "-c", code]
    return subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=120)


def test_the_switch_is_set_in_this_process_and_in_workers(tmp_path: Path) -> None:
    code = """
import veilmeter, os, multiprocessing
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(os.environ["ORT_DISABLE_TELEMETRY"], pool.apply(os.getenv, ("ORT_DISABLE_TELEMETRY",)))
"""
    script = tmp_path / "main.py"
    script.write_text(code)
    done = run(f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')", tmp_path)
    assert done.stdout.split() == ["1", "1"], done.stderr


def test_a_host_program_that_came_first_is_told(tmp_path: Path) -> None:
    code = """
import onnxruntime
calls = []
onnxruntime.disable_telemetry_events = lambda: calls.append("off")
import veilmeter
print(calls)
"""
    done = run(code, tmp_path)
    assert done.stdout.strip() == "['off']"
    assert "import veilmeter first" in done.stderr


def test_a_session_leaves_no_device_id(tmp_path: Path) -> None:
    """With telemetry on, ONNX Runtime keeps a database of events and a device id in the user's cache folder."""
    (tmp_path / "home").mkdir()
    done = run("import veilmeter" + RUN_A_MODEL, tmp_path)
    assert done.returncode == 0, done.stderr
    assert [path for path in (tmp_path / "home").rglob("*") if "onnx" in path.name.lower()] == []


def internet_calls(trace: str) -> list[str]:
    """Sockets of the internet families; those of the machine itself (AF_UNIX, AF_NETLINK) go nowhere."""
    return [line for line in trace.splitlines() if re.search(r"socket\(AF_INET6?|connect\(.*AF_INET6?", line)]


@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_session_opens_no_socket(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    tracer = ("strace", "-f", "-qq", "-e", "trace=socket,connect,sendto", "-o", str(trace))
    done = run("import veilmeter" + RUN_A_MODEL, tmp_path, *tracer)
    if "ptrace" in done.stderr:
        pytest.skip("tracing is not allowed here")
    assert done.returncode == 0, done.stderr
    assert internet_calls(trace.read_text()) == []


def traced(folder: Path, *words: object) -> list[str]:
    """What a command sends anywhere but to this machine, in all of its processes."""
    trace = folder / "trace"
    calls = "trace=connect,sendto,sendmsg,sendmmsg"
    command = ["strace", "-f", "-qq", "-e", calls, "-o", str(trace), sys.executable, "-m", "veilmeter.cli.main"]
    environment = {name: value for name, value in os.environ.items() if name != "ORT_DISABLE_TELEMETRY"}
    done = subprocess.run([*command, *map(str, words)], cwd=folder, env=environment, capture_output=True, text=True,
                          check=False, timeout=300)  # fmt: skip
    if "ptrace" in done.stderr:
        pytest.skip("tracing is not allowed here")
    assert done.returncode in (0, 3), done.stderr
    lines = trace.read_text().splitlines()
    return [line for line in lines if "AF_INET" in line and not re.search(r'127\.0\.0\.1|"::1"', line)]


COMMANDS = {
    "embed": "embed speech out.npz --jobs 2",
    "own": "embed speech out.npz --extractor own.py:embed --jobs 2",
    "cluster": "embed speech out.npz --extractor rhythm --cluster local --jobs 1",
    "assess": "assess --original o.h5 --anonymized a.h5 --out run --attackers ignorant --quiet",
    "transcribe": "transcribe speech texts --jobs 1",
}


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("what", COMMANDS)
def test_a_command_that_works_offline_reaches_nobody(what: str, tmp_path: Path) -> None:
    """In all processes: workers, those of a local cluster, confined children, and user-supplied code."""
    rng = np.random.default_rng(0)
    for number in range(6):
        sound = np.sign(np.sin(np.arange(16_000) * (0.05 + 0.02 * (number // 2)))) + 0.1 * rng.standard_normal(16_000)
        write_audio(tmp_path / f"speech/s{number // 2}/{number}.wav", 0.1 * sound)
    (tmp_path / "own.py").write_text("def embed(samples):\n    return samples[:8].astype('float32')\n")
    ids, people = [f"u{n}" for n in range(40)], [f"s{n // 4}" for n in range(40)]
    for name in ("o", "a"):
        write_embeddings(Embeddings(rng.standard_normal((40, 8)), ids, people), tmp_path / f"{name}.h5")
    if what in ("embed", "transcribe"):
        fetched(lambda: fetch(CAMPPLUS if what == "embed" else MOONSHINE_DECODER))
    assert traced(tmp_path, *COMMANDS[what].split(), "--offline") == []
