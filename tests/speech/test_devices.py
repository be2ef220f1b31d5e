"""The device that models run on: a stub stands for ONNX Runtime with a GPU, as there is none where tests run."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from typer.testing import CliRunner

from veilmeter.cli.main import app
from veilmeter.core import devices, engine
from veilmeter.core.errors import InputError
from veilmeter.speech import onnx_session
from veilmeter.speech.extractors.base import embed_pieces
from veilmeter.speech.extractors.onnx import OnnxExtractor

GPU, CPU = "CUDAExecutionProvider", "CPUExecutionProvider"


@pytest.fixture(autouse=True)
def no_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(devices.VARIABLE, "auto")  # put back at the end, whatever a command chooses


class Session:
    """A model whose vector is the mean of its features, with what it was opened with and given."""

    opened: ClassVar[list[list[str]]] = []
    batches: ClassVar[list[tuple[int, ...]]] = []
    works = True

    def __init__(self, path: str, options: Any, providers: list[str]) -> None:
        self.providers = providers if self.works else [CPU]
        self.opened.append(providers)

    def get_providers(self) -> list[str]:
        return self.providers

    def get_inputs(self) -> list[Any]:
        return [SimpleNamespace(name="feats", shape=["batch", "frames", 80], type="tensor(float)")]

    def get_modelmeta(self) -> Any:
        return SimpleNamespace(custom_metadata_map={})

    def run(self, wanted: Any, given: dict[str, np.ndarray], options: Any) -> list[np.ndarray]:
        self.batches.append(given["feats"].shape)
        return [np.square(given["feats"]).mean(axis=1)[:, :16] + 1]


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine with a GPU, and a model."""
    runtime = SimpleNamespace(
        get_available_providers=lambda: ["TensorrtExecutionProvider", GPU, CPU],
        InferenceSession=Session,
        SessionOptions=SimpleNamespace,
        RunOptions=lambda: SimpleNamespace(terminate=False),
    )
    for module in (onnx_session, __import__("veilmeter.speech.extractors.onnx", fromlist=["onnx"])):
        monkeypatch.setattr(module, "import_runtime", lambda: runtime)
    monkeypatch.setattr(devices, "runtime_has_gpu", lambda: True)
    monkeypatch.setattr(Session, "opened", [])
    monkeypatch.setattr(Session, "batches", [])
    path = tmp_path / "model.onnx"
    path.write_bytes(b"a model")
    return path


@pytest.mark.parametrize(
    ("device", "providers", "mark"), [("auto", [GPU, CPU], "-cuda"), ("cuda", [GPU, CPU], "-cuda"), ("cpu", [CPU], "")]
)
def test_providers_and_versions_by_device(gpu: Path, device: str, providers: list[str], mark: str) -> None:
    devices.choose_device(device)
    extractor = OnnxExtractor(gpu, name="stub", version="1")
    assert Session.opened == [providers]
    assert extractor.version == f"1{mark}"
    assert extractor.device == ("cuda" if mark else "cpu")


def test_pieces_of_one_length_are_one_batch_on_a_gpu(gpu: Path) -> None:
    rng = np.random.default_rng(0)
    lengths = [16_000] * 40 + [24_000, 16_000, 24_000]
    pieces = [rng.standard_normal(length).astype(np.float32) for length in lengths]
    vectors = {}
    for device in ("cuda", "cpu"):
        devices.choose_device(device)
        extractor = OnnxExtractor(gpu, name="stub", version="1")
        Session.batches.clear()
        vectors[device] = np.stack(embed_pieces(extractor, pieces))
        sizes = [shape[0] for shape in Session.batches]
        assert sizes == ([32, 9, 2] if device == "cuda" else [1] * 43)
    np.testing.assert_allclose(vectors["cuda"], vectors["cpu"], rtol=1e-6)


def test_one_process_per_gpu(gpu: Path) -> None:
    for device, workers in (("cuda", 1), ("auto", 1), ("cpu", engine.cores())):
        devices.choose_device(device)
        opened = engine.open_engine()
        assert opened.workers == workers
        opened.close()
    devices.choose_device("cuda")
    with pytest.raises(InputError, match="not for --cluster"):
        engine.open_engine(None, "tcp://nowhere:1")


def test_a_silent_fallback_is_an_error_where_a_gpu_was_asked_for(gpu: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Session, "works", False)
    devices.choose_device("cuda")
    with pytest.raises(InputError, match="fallen back to the processor"):
        OnnxExtractor(gpu, name="stub", version="1")
    devices.choose_device("auto")
    assert OnnxExtractor(gpu, name="stub", version="1").version == "1"


def test_without_a_gpu_cuda_is_refused_before_anything_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "runtime_has_gpu", lambda: False)
    monkeypatch.setattr(devices, "torch_has_gpu", lambda: False)
    with pytest.raises(InputError, match="unknown device"):
        devices.choose_device("tpu")
    for command in (["embed", "nowhere", "out"], ["transcribe", "nowhere", "out"], ["anonymize", "nowhere", "out"]):
        refused = CliRunner().invoke(app, [*command, "--device", "cuda"])
        assert "--device cuda: neither" in str(refused.exception)


def test_results_say_which_device_was_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from veilmeter.speech.audio import write_audio

    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "own.py").write_text("import numpy as np\n\ndef embed(samples):\n    return np.abs(samples[:8]) + 1\n")
    rng = np.random.default_rng(0)
    for name in ("a/1", "b/1"):
        write_audio(tmp_path / "speech" / f"{name}.wav", (0.1 * rng.standard_normal(16_000)).astype(np.float32))
    words = ["embed", tmp_path / "speech", tmp_path / "out", "--extractor", f"{tmp_path / 'own.py'}:embed"]
    ran = CliRunner().invoke(app, [*map(str, words), "--device", "cpu", "--jobs", "1", "--json", "--quiet"])
    assert ran.exit_code == 0, ran.output
    assert json.loads(ran.stdout)["embedded"]["device"] == "cpu"
