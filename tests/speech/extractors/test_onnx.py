"""ONNX: our graph of CAM++ is the torch module, and any model with WeSpeaker's interface can be used."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fetched import fetched

from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.data.corpus import read_corpus
from veilmeter.speech import weights
from veilmeter.speech.audio import read_audio
from veilmeter.speech.extractors import load_extractor
from veilmeter.speech.extractors.onnx import OnnxExtractor, campplus_graph_file, fbank, load_campplus, load_onnx

onnx = pytest.importorskip("onnx")
torch = pytest.importorskip("torch")
pytest.importorskip("onnxruntime")

Make = Callable[..., NDArray[np.float32]]


def cosine(a: NDArray[np.float32], b: NDArray[np.float32]) -> float:
    x, y = a.astype(float), b.astype(float)
    return float(x @ y / np.linalg.norm(x) / np.linalg.norm(y))


@pytest.fixture(scope="module")
def random_networks(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, OnnxExtractor]:
    """The same network with random parameters and statistics, in torch and as a graph: needs no download."""
    from veilmeter.speech.extractors import campplus
    from veilmeter.speech.extractors.onnx import build_graph

    torch.manual_seed(0)
    model = campplus.CamPlusPlus()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 2)
            if module.affine:
                module.weight.data.uniform_(0.5, 1.5)
                module.bias.data.normal_(0, 0.1)
    state = model.state_dict()
    path = tmp_path_factory.mktemp("graph") / "random.onnx"
    path.write_bytes(build_graph({k: v.numpy() for k, v in state.items()}, {"veilmeter.window": "povey"}))
    return campplus.build_model(state), OnnxExtractor(path, name="random", version="0")


@pytest.mark.parametrize("frames", [8, 99, 199, 200, 201, 330, 400, 1003])
def test_the_graph_is_the_torch_module(random_networks: tuple[Any, OnnxExtractor], frames: int) -> None:
    """Around the borders of the mask's segments (200 frames of 10 ms) above all."""
    model, extractor = random_networks
    features = np.random.default_rng(frames).standard_normal((1, frames, 80)).astype(np.float32)
    with torch.inference_mode():
        expected = model(torch.from_numpy(features))[0].numpy()
    found = extractor.embed_features(features)
    assert cosine(found, expected) > 0.99999
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4 * np.abs(expected).max())


@pytest.fixture(scope="module")
def campplus() -> Any:
    return fetched(load_campplus)


def test_published_weights_agree_between_torch_and_onnx(campplus: OnnxExtractor, librispeech: Path) -> None:
    from veilmeter.speech.extractors.campplus import TorchCampplus

    plain = TorchCampplus()
    corpus = read_corpus(librispeech / "test-other-10x10")
    for utterance in corpus.utterances[::35]:
        samples = read_audio(utterance.path)[: 16000 * 4]
        assert cosine(campplus.embed(samples), plain.embed(samples)) > 0.99999


def test_it_is_the_default_and_tells_speakers_apart(campplus: OnnxExtractor, librispeech: Path) -> None:
    assert load_extractor().name == "campplus"
    assert (campplus.dimension, campplus.bins, campplus.window, campplus.scale) == (192, 80, "povey", 1.0)
    corpus = read_corpus(librispeech / "test-other-10x10")
    vectors = np.array(
        [campplus.embed(read_audio(u.path)[: 16000 * 4]) for s in corpus.speakers[:4] for u in corpus.by_speaker[s][:2]]
    )
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    scores = unit @ unit.T
    own = np.array([scores[i, i ^ 1] for i in range(8)])
    others = scores[~np.kron(np.eye(4, dtype=bool), np.ones((2, 2), bool))]
    assert own.min() > others.max()
    assert others.mean() < 0.2  # 0.10 without the wrong ReLU, 0.38 with it


def test_the_graph_is_kept_and_made_anew_when_damaged(
    campplus: OnnxExtractor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published = weights.fetch(weights.CAMPPLUS)
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path))
    (tmp_path / published.name).symlink_to(published)
    path = campplus_graph_file(offline=True)
    data = path.read_bytes()
    (tmp_path / published.name).unlink()
    assert load_campplus(offline=True).version == campplus.version  # the graph alone is enough
    path.write_bytes(data[:1000])
    (tmp_path / published.name).symlink_to(published)
    load_campplus(offline=True)
    assert path.read_bytes() == data
    changed = bytearray(data)
    changed[len(data) // 2 : len(data) // 2 + 5000] = bytes(5000)  # still a model, with other weights
    path.write_bytes(changed)
    load_campplus(offline=True)
    assert path.read_bytes() == data


def wespeaker_like(path: Path, *, bins: Any = 80, shape: list[Any] | None = None, outputs: int = 3) -> Path:
    """A model with the interface: the mean over time of the features times a matrix."""
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    matrix = np.random.default_rng(0).standard_normal((80 if not isinstance(bins, int) else bins, outputs))
    graph = helper.make_graph(
        [
            helper.make_node("Mul", ["feats", "feats"], ["squares"]),
            helper.make_node("ReduceMean", ["squares"], ["mean"], axes=[1], keepdims=0),
            helper.make_node("MatMul", ["mean", "matrix"], ["embs"]),
        ],
        "g",
        [helper.make_tensor_value_info("feats", floats, shape or ["B", "T", bins])],
        [helper.make_tensor_value_info("embs", floats, ["B", outputs])],
        [onnx.numpy_helper.from_array(matrix.astype(np.float32), "matrix")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path.write_bytes(model.SerializeToString())
    return path


def test_a_model_with_wespeakers_interface(tmp_path: Path, speechlike: Make) -> None:
    path = wespeaker_like(tmp_path / "model.onnx")
    found = load_extractor(f"onnx:{path}")
    assert (found.name, found.dimension) == ("onnx:model.onnx", 3)
    samples = speechlike(1.0, 3)
    features = fbank(samples, window="hamming", scale=32768)
    matrix = np.random.default_rng(0).standard_normal((80, 3))
    np.testing.assert_allclose(found.embed(samples), (features**2).mean(axis=0) @ matrix, rtol=1e-4)
    other = wespeaker_like(tmp_path / "model2.onnx", outputs=4)
    assert load_onnx(other).version != found.version
    assert load_onnx(wespeaker_like(tmp_path / "m40.onnx", bins=40)).bins == 40
    assert load_onnx(wespeaker_like(tmp_path / "any.onnx", bins="F")).bins == 80


@pytest.mark.parametrize(
    ("bins", "shape", "said"),
    [(80, ["B", 80], "not one table of features"), (3, None, "3 mel bins"), (80, [1, 5, 80], "fails")],
)
def test_other_interfaces_are_refused(tmp_path: Path, bins: int, shape: list[Any] | None, said: str) -> None:
    path = wespeaker_like(tmp_path / "m.onnx", bins=bins, shape=shape)
    with pytest.raises(VeilmeterError, match=said):
        load_onnx(path)


def with_weights_beside(folder: Path, location: str = "weights.bin") -> Path:
    """The same model with its matrix in a file of its own."""
    model = onnx.load(str(wespeaker_like(folder / "whole.onnx")))
    onnx.external_data_helper.convert_model_to_external_data(model, location="weights.bin", size_threshold=0)
    onnx.save(model, str(folder / "m.onnx"))
    if location != "weights.bin":
        model = onnx.load(str(folder / "m.onnx"), load_external_data=False)
        model.graph.initializer[0].external_data[0].value = location
        (folder / "m.onnx").write_bytes(model.SerializeToString())
    return folder / "m.onnx"


def test_weights_beside_the_model_are_part_of_its_version(tmp_path: Path, speechlike: Make) -> None:
    path = with_weights_beside(tmp_path)
    before = load_onnx(path)
    vector = before.embed(speechlike(1.0, 3))
    stored = np.fromfile(tmp_path / "weights.bin", np.float32)
    (stored * 2).astype(np.float32).tofile(tmp_path / "weights.bin")
    after = load_onnx(path)
    assert after.version != before.version
    np.testing.assert_allclose(after.embed(speechlike(1.0, 3)), 2 * vector, rtol=1e-4)


@pytest.mark.parametrize(("location", "said"), [("../weights.bin", "outside its folder"), ("gone.bin", "not there")])
def test_weights_elsewhere_are_refused(tmp_path: Path, location: str, said: str) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "weights.bin").write_bytes(bytes(4 * 240))
    with pytest.raises(InputError, match=said):
        load_onnx(with_weights_beside(tmp_path / "models", location))


@pytest.mark.parametrize("data", [b"", b"not a model", b"\x08\x08" * 100])
def test_what_is_no_model_is_an_error(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(InputError):
        load_onnx(tmp_path / "m.onnx")


def hostile_model(path: Path, kind: str) -> Path:
    """One that loops, always or for longer sound, fills the memory, or multiplies constants when it is loaded."""
    helper, kinds, node = onnx.helper, onnx.TensorProto, onnx.helper.make_node
    grown = node("Concat", ["v", "v"], ["v_out"], axis=0) if kind == "grows" else node("Sin", ["v"], ["v_out"])
    values = [helper.make_tensor_value_info(name, kinds.FLOAT, None) for name in ("v", "v_out")]
    flags = [helper.make_tensor_value_info(name, kinds.BOOL, []) for name in ("go_on", "go_on_out")]
    count = helper.make_tensor_value_info("i", kinds.INT64, [])
    body = helper.make_graph(
        [node("Identity", ["go_on"], ["go_on_out"]), grown], "body", [count, flags[0], values[0]], [flags[1], values[1]]
    )
    if kind == "folds":
        nodes = [node("ConstantOfShape", ["size"], ["p0"]),
                 *(node("MatMul", [f"p{n}", "p0"], [f"p{n + 1}"]) for n in range(2000)),
                 node("ReduceMean", ["p2000"], ["p"], keepdims=0)]  # fmt: skip
    else:
        nodes = [node("Shape", ["features"], ["shape"]), node("Gather", ["shape", "one"], ["frames"]),
                 node("Greater", ["frames", "most"], ["is_long"]),
                 node("ReduceMean", ["features"], ["mean"], axes=[1], keepdims=0),
                 node("Loop", ["", "is_long", "mean"], ["looped"], body=body),
                 node("ReduceMean", ["looped"], ["p"], keepdims=0)]  # fmt: skip
    nodes += [
        node("ReduceMean", ["features"], ["means"], axes=[1], keepdims=0),
        node("Add", ["means", "p"], ["vector"]),
    ]
    constants = [("size", [2], [1500, 1500]), ("one", [], [1]), ("most", [], [150 if kind == "loops later" else 0])]
    graph = helper.make_graph(
        nodes, "hostile", [helper.make_tensor_value_info("features", kinds.FLOAT, [1, "frames", 80])],
        [helper.make_tensor_value_info("vector", kinds.FLOAT, None)],
        [helper.make_tensor(name, kinds.INT64, shape, numbers) for name, shape, numbers in constants],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


@pytest.mark.parametrize(
    ("kind", "said"), [("loops", "more than 1 s"), ("folds", "more than 1 s"), ("grows", "Failed to allocate memory")]
)
def test_a_hostile_model_is_stopped(kind: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilmeter.core.processes.CONFINED_SECONDS", 10 if kind == "grows" else 1)
    with pytest.raises(InputError, match=said) as caught:
        load_onnx(hostile_model(tmp_path / "hostile.onnx", kind))
    assert "onnxruntime" not in str(caught.value).lower()


def test_a_model_that_loops_later_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    extractor = load_onnx(hostile_model(tmp_path / "later.onnx", "loops later"))
    monkeypatch.setattr("veilmeter.speech.extractors.onnx.SECONDS_PER_SECOND", 0.2)
    noise = np.random.default_rng(0).standard_normal(32_000).astype(np.float32)
    with pytest.raises(InputError, match=r"more than 0.2 s for one second"):
        extractor.embed(noise)


def test_a_model_without_end_is_not_hashed(tmp_path: Path) -> None:
    with open(tmp_path / "a.onnx", "wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(InputError, match="too large"):
        load_onnx(tmp_path / "a.onnx")
