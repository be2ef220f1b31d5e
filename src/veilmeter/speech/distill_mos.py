"""Distill-MOS (Stahl and Gamper 2025, MIT) as an ONNX graph.

Convolutions over a compressed spectrum, a transformer, and a pool by attention give one number per stretch of 7.68 s.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import missing_extra
from veilmeter.core.files import write_bytes
from veilmeter.speech import weights
from veilmeter.speech.onnx_graph import GraphBuilder
from veilmeter.speech.onnx_session import open_session

# Part of the cached graph's name: raise it when the graph changes.
GRAPH = 1
STRETCH = 122_880  # samples
WINDOW, HOP = 320, 160
STRIDES = ((1, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 2))  # of the convolutions, over frequency and time
LAYERS, HEADS, WIDTH = 7, 8, 200
_MODEL = "transformer_pool_attn"


def build_graph(state: Mapping[str, Any]) -> bytes:
    """The serialized model: input `spectra` (batch, 2, 161, 768), output `mos` (batch, 1)."""
    graph = GraphBuilder({name: np.asarray(value, np.float32) for name, value in state.items()})
    x = "spectra"
    for number, strides in enumerate(STRIDES):
        x = graph.convolve(x, f"cnn.cnn.{2 * number}", strides=list(strides), pads=[0, 1, 0, 1])
        x = graph.op("LeakyRelu", [x], alpha=0.1)
    channels = graph.state[f"{_MODEL}.transformer.linear_proj.weight"].shape[1]
    x = graph.op("Transpose", [graph.op("Reshape", [x, graph.integers([0, channels, -1])])], perm=[0, 2, 1])
    x = graph.affine(x, *_projection(graph))
    x = graph.op("Add", [x, graph.constant(graph.state[f"{_MODEL}.transformer.position_encoding.pe"])])
    for layer in range(LAYERS):
        x = _transformer_layer(graph, x, f"{_MODEL}.transformer.transformer_encoder.layers.{layer}")
    gain, offset = graph.normalization(f"{_MODEL}.norm_trans")
    x = graph.op("Mul", [x, graph.constant(gain.astype(np.float32))])
    x = graph.op("Add", [x, graph.constant(offset.astype(np.float32))])
    attention = graph.linear(graph.op("Relu", [graph.linear(x, f"{_MODEL}.pool.linear1")]), f"{_MODEL}.pool.linear2")
    attention = graph.op("Softmax", [graph.op("Transpose", [attention], perm=[0, 2, 1])], axis=-1)
    pooled = graph.op("Squeeze", [graph.op("MatMul", [attention, x]), graph.integers([1])])
    share = graph.op("Sigmoid", [graph.linear(pooled, f"{_MODEL}.pool.linear3")])
    four, one = (graph.constant(np.array(value, np.float32)) for value in (4, 1))
    graph.op("Add", [graph.op("Mul", [share, four]), one], output="mos")
    return graph.serialized("distill_mos", {"spectra": ["batch", 2, 161, 768]}, {"mos": ["batch", 1]}, {})


def _projection(graph: GraphBuilder) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Two batch normalizations, one after the other, and the linear map behind them, as one linear map."""
    first, second = (graph.normalization(f"{_MODEL}.{place}") for place in ("norm_input", "transformer.norm"))
    weight = graph.state[f"{_MODEL}.transformer.linear_proj.weight"].astype(np.float64)
    bias = graph.state[f"{_MODEL}.transformer.linear_proj.bias"].astype(np.float64)
    gain = first[0] * second[0]
    offset = first[1] * second[0] + second[1]
    return weight * gain, bias + weight @ offset


def _transformer_layer(graph: GraphBuilder, x: str, place: str) -> str:
    """Attention and a feed-forward network, each added to what it read and normalized after that."""
    size = WIDTH // HEADS
    weight = graph.state[f"{place}.self_attn.in_proj_weight"]
    bias = graph.state[f"{place}.self_attn.in_proj_bias"]
    parts = []
    for number in range(3):
        rows = slice(number * WIDTH, (number + 1) * WIDTH)
        split = graph.op("Reshape", [graph.affine(x, weight[rows], bias[rows]), graph.integers([0, 0, HEADS, size])])
        parts.append(graph.op("Transpose", [split], perm=[0, 2, 3, 1] if number == 1 else [0, 2, 1, 3]))
    query, key, value = parts
    scale = graph.constant(np.array(size**-0.5, np.float32))
    scores = graph.op("Softmax", [graph.op("Mul", [graph.op("MatMul", [query, key]), scale])], axis=-1)
    mixed = graph.op("Transpose", [graph.op("MatMul", [scores, value])], perm=[0, 2, 1, 3])
    mixed = graph.linear(graph.op("Reshape", [mixed, graph.integers([0, 0, WIDTH])]), f"{place}.self_attn.out_proj")
    x = graph.layer_norm(graph.op("Add", [x, mixed]), f"{place}.norm1")
    wide = graph.op("Relu", [graph.linear(x, f"{place}.linear1")])
    return graph.layer_norm(graph.op("Add", [x, graph.linear(wide, f"{place}.linear2")]), f"{place}.norm2")


def spectrum(samples: NDArray[np.float32]) -> NDArray[np.float32]:
    """(2, 161, 768): real and imaginary parts of frames of 20 ms every 10 ms, magnitudes to the power 0.3."""
    scaled = samples / (np.abs(samples).max() + np.float32(1e-8))
    wide = np.pad(scaled, (WINDOW - HOP) // 2, mode="reflect")
    window = (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(WINDOW) / WINDOW)).astype(np.float32)
    frames = np.lib.stride_tricks.sliding_window_view(wide, WINDOW)[::HOP] * window
    values = np.fft.rfft(frames, axis=1)
    values *= np.maximum(np.abs(values), 1e-12) ** -0.7
    return np.stack([values.real.T, values.imag.T]).astype(np.float32)


def open_model(*, offline: bool = False) -> Any:
    """The session, its graph made from the verified weights when it is missing in the cache."""
    path = weights.cache_folder() / f"distill-mos-{weights.DISTILL_MOS.sha256[:12]}-{GRAPH}.onnx"
    if not path.is_file():
        published = weights.fetch(weights.DISTILL_MOS, offline=offline)
        try:
            import torch
        except ImportError:
            raise missing_extra("torch", "audio") from None
        state = torch.load(published, map_location="cpu", weights_only=True)["model"]
        write_bytes(path, build_graph({name: tensor.numpy() for name, tensor in state.items()}))
    return open_session(path)
