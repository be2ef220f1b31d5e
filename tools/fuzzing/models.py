"""Models and what goes with them: back ends, maps, networks, fine-tuned weights, tables of tokens."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np

Make = Callable[[Path], object]
Read = Callable[[Path], object]


def _make_plda(folder: Path) -> None:
    def vector(values: np.ndarray) -> bytes:
        return b"DV \4" + len(values).to_bytes(4, "little") + values.astype("<f8").tobytes()

    matrix = np.eye(3)
    shape = b"".join(b"\4" + n.to_bytes(4, "little") for n in matrix.shape)
    middle = b"DM " + shape + matrix.astype("<f8").tobytes()
    (folder / "plda").write_bytes(b"\0B<Plda> " + vector(np.zeros(3)) + middle + vector(np.ones(3)) + b"</Plda> ")


def _read_plda(folder: Path) -> object:
    from veilmeter.attacks.backends.lda import read_plda

    return read_plda(folder / "plda")


def _make_map(folder: Path) -> None:
    from veilmeter.attacks.inversion import identity_map

    identity_map(3).save(folder / "map.npz")


def _read_map(folder: Path) -> object:
    from veilmeter.attacks.inversion.attack import load_map

    return load_map(folder / "map.npz")


def _make_onnx(folder: Path) -> None:
    import onnx
    from onnx import helper, numpy_helper

    weights = numpy_helper.from_array(np.ones((4, 2), np.float32), "w")
    ports = [helper.make_tensor_value_info("x", 1, [1, 4]), helper.make_tensor_value_info("y", 1, [1, 2])]
    graph = helper.make_graph([helper.make_node("MatMul", ["x", "w"], ["y"])], "g", ports[:1], ports[1:], [weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(folder / "model.onnx"), save_as_external_data=True, location="weights.bin", size_threshold=0)


def _read_onnx(folder: Path) -> object:
    from veilmeter.speech.extractors.onnx import model_digest

    return model_digest(folder / "model.onnx")


def _make_voices(folder: Path) -> None:
    from veilmeter.anonymizers.xvector_pool.model import Converter, Converters, ConverterShape, VoiceModel, Whitening
    from veilmeter.anonymizers.xvector_pool.selection import Plda, VoicePool

    shape = ConverterShape(content=2, outputs=2, speaker=2, bottleneck=1, channels=2, layers=1, kernel=3)
    ones = np.ones(2)
    quantities = ("content_mean", "content_variance", "output_mean", "output_scale", "compensation", "pitch", "energy")
    scales = dict.fromkeys(quantities, ones)
    model = VoiceModel(
        Converters([Converter(shape)]).eval(), 8, scales, Whitening(ones, np.eye(2)), np.ones(3), (4.0, 6.0),
        Plda(ones, np.eye(2), ones), VoicePool(np.eye(2, dtype=np.float32), ("a", "b"), ("f", "m")),
    )  # fmt: skip
    model.save(folder / "model.safetensors")


def _read_voices(folder: Path) -> object:
    from veilmeter.anonymizers.xvector_pool.model import load

    return load(folder)


def _make_tokens(folder: Path) -> None:
    (folder / "tokenizer.bin").write_bytes(b"\2ab\1c\3def\0" * 20 + bytes([0x80 + 2, 1]) + b"x" * 130)


def _read_tokens(folder: Path) -> object:
    from veilmeter.speech.recognizers.moonshine import read_tokens

    return read_tokens((folder / "tokenizer.bin").read_bytes())


def _make_finetuned(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"x")
    (folder / "finetuned.json").write_text(
        json.dumps({"key": "k", "losses": [1.0, 0.5], "speakers": 3, "utterances": 9})
    )


def _read_finetuned(folder: Path) -> object:
    from veilmeter.attacks.finetune import _read_finished

    return _read_finished(folder, "k", "campplus")


MODELS: dict[str, tuple[Make, Read, tuple[str, ...], int]] = {
    "plda": (_make_plda, _read_plda, ("",), 1),
    "map": (_make_map, _read_map, ("",), 4),
    "onnx": (_make_onnx, _read_onnx, (".onnx",), 2),
    "voices": (_make_voices, _read_voices, ("",), 2),
    "tokens": (_make_tokens, _read_tokens, ("",), 1),
    "finetuned": (_make_finetuned, _read_finetuned, (".json",), 1),
}
