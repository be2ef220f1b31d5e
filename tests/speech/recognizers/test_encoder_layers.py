"""Layers of the recognizer's encoder: the cut through a graph, long speech in stretches, and the real weights."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

import onnx
import onnxruntime as runtime
from tests.fetched import fetched

from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.speech import weights
from veilmeter.speech.recognizers import moonshine
from veilmeter.speech.recognizers.moonshine import CENTER, HOP, EncoderLayer, load_layer, write_graph


class CountingSession:
    """As many frames as three convolutions give, and how many samples they came from."""

    def run(self, _: None, inputs: dict[str, Any]) -> list[Any]:
        samples = inputs["input_values"].shape[1]
        return [np.full((1, (samples - 895) // HOP + 1, 2), samples, np.float32)]


def test_long_speech_is_heard_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moonshine, "_open", lambda layer, published: CountingSession())
    layer = EncoderLayer(2, Path())
    places, frames = layer.hear(np.random.default_rng(0).normal(size=40 * 16000).astype(np.float32))
    lengths = np.unique(frames)
    assert 3 <= len(lengths) <= 5
    assert lengths.max() <= moonshine.LONGEST_FOR_LAYER * 16000
    assert len(places) == len(frames)
    assert places[0] == CENTER
    assert (np.diff(places) > 0).all()
    assert np.diff(places).max() < 4 * HOP
    assert 640_000 - places[-1] < 2 * CENTER
    assert len(layer.hear(np.zeros(10, np.float32))[0]) > 0


@pytest.mark.parametrize("layer", [0, 9])
def test_there_are_eight_layers(layer: int) -> None:
    with pytest.raises(InputError, match="no layer"):
        EncoderLayer(layer, Path())


def test_a_graph_is_cut_behind_a_tensor(tmp_path: Path) -> None:
    helper = onnx.helper
    values = {"a": np.array([2], np.float32), "b": np.array([5], np.float32)}
    constants = [onnx.numpy_helper.from_array(value, name) for name, value in values.items()]
    ports = [helper.make_tensor_value_info(name, 1, [3]) for name in ("x", "z")]
    nodes = [helper.make_node("Mul", ["x", "a"], ["y"]), helper.make_node("Add", ["y", "b"], ["z"])]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], constants)
    whole = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(whole, str(tmp_path / "whole.onnx"))
    write_graph(tmp_path / "whole.onnx", tmp_path / "cut.onnx", "y")
    cut = onnx.load(tmp_path / "cut.onnx")
    assert [node.op_type for node in cut.graph.node] == ["Mul"]
    assert [constant.name for constant in cut.graph.initializer] == ["a"]
    given = np.array([1, 2, 3], np.float32)
    (out,) = runtime.InferenceSession(str(tmp_path / "cut.onnx")).run(None, {"x": given})
    np.testing.assert_array_equal(out, 2 * given)


def test_the_real_layers_are_those_of_the_published_encoder(tmp_path: Path) -> None:
    """Behind the last layer the encoder only normalizes each frame; a damaged graph in the cache is made again."""
    published = fetched(lambda: weights.fetch(weights.MOONSHINE_ENCODER))
    copy = tmp_path / published.name
    shutil.copy(published, copy)
    (tmp_path / f"{moonshine.encoder_version(8)}.onnx").write_bytes(b"damaged")
    samples = np.random.default_rng(0).normal(0, 0.1, 16000).astype(np.float32)
    _, frames = EncoderLayer(8, copy).hear(samples)
    assert frames.shape == (40, moonshine.DIMENSION)
    (expected,) = runtime.InferenceSession(str(copy)).run(None, {"input_values": samples[None]})
    normal = (frames - frames.mean(axis=1, keepdims=True)) / frames.std(axis=1, keepdims=True)
    gain = (normal * expected[0]).sum(axis=0) / (normal**2).sum(axis=0)
    np.testing.assert_allclose(normal * gain, expected[0], atol=2e-2 * np.abs(expected[0]).max())


def test_offline_it_says_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEILMETER_CACHE", str(tmp_path))
    with pytest.raises(VeilmeterError, match="can't be fetched offline"):
        load_layer(8, offline=True)
