"""Tiny WavLM, wav2vec 2.0 and HuBERT models in the hub's format; their numbers follow from the tensors' names."""

from __future__ import annotations

import json
import zlib
from pathlib import Path

import numpy as np

SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "intermediate_size": 24,
    "conv_dim": [8, 8, 8],
    "conv_kernel": [10, 8, 4],
    "conv_stride": [5, 8, 8],
    "num_feat_extract_layers": 3,
    "num_conv_pos_embeddings": 6,
    "num_conv_pos_embedding_groups": 2,
    "num_buckets": 16,
    "max_bucket_distance": 40,
}


def shapes(kind: str, *, stable: bool) -> dict[str, tuple[int, ...]]:
    """The tensors of the hub's format; `stable` is the form of the large models."""
    found: dict[str, tuple[int, ...]] = {}

    def affine(name: str, *shape: int) -> None:
        found[f"{name}.weight"], found[f"{name}.bias"] = shape, shape[:1]

    for number, (inputs, kernel) in enumerate(zip((1, 8, 8), (10, 8, 4), strict=True)):
        found[f"feature_extractor.conv_layers.{number}.conv.weight"] = (8, inputs, kernel)
        if stable:
            found[f"feature_extractor.conv_layers.{number}.conv.bias"] = (8,)
        if stable or number == 0:
            affine(f"feature_extractor.conv_layers.{number}.layer_norm", 8)
    affine("feature_projection.layer_norm", 8)
    affine("feature_projection.projection", 16, 8)
    found["encoder.pos_conv_embed.conv.weight_g"] = (1, 1, 6)
    found["encoder.pos_conv_embed.conv.weight_v"] = (16, 8, 6)
    found["encoder.pos_conv_embed.conv.bias"] = (16,)
    affine("encoder.layer_norm", 16)
    for number in range(3):
        place = f"encoder.layers.{number}"
        for part in "qkv":
            affine(f"{place}.attention.{part}_proj", 16, 16)
        affine(f"{place}.attention.out_proj", 16, 16)
        if kind == "wavlm":
            found[f"{place}.attention.gru_rel_pos_const"] = (1, 4, 1, 1)
            affine(f"{place}.attention.gru_rel_pos_linear", 8, 4)
            if number == 0:
                found[f"{place}.attention.rel_attn_embed.weight"] = (16, 4)
        affine(f"{place}.layer_norm", 16)
        affine(f"{place}.feed_forward.intermediate_dense", 24, 16)
        affine(f"{place}.feed_forward.output_dense", 16, 24)
        affine(f"{place}.final_layer_norm", 16)
    return found


def write_model(folder: Path, kind: str = "wavlm", *, stable: bool = True, prefix: str = "") -> Path:
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    config = SIZES | {"model_type": kind, "do_stable_layer_norm": stable, "conv_bias": stable}
    config["feat_extract_norm"] = "layer" if stable else "group"
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    tensors = {}
    for name, shape in shapes(kind, stable=stable).items():
        drawn = np.random.default_rng(zlib.crc32(name.encode())).standard_normal(shape).astype(np.float32)
        is_gain = "norm.weight" in name or name.endswith(("weight_g", "const"))
        tensors[prefix + name] = 1 + drawn / 10 if is_gain else drawn / 3
    save_file(tensors, folder / "model.safetensors")
    return folder


def signal() -> np.ndarray:
    """A second of tones and noise."""
    time = np.arange(16_000) / 16_000
    noise = np.random.default_rng(5).standard_normal(len(time))
    return (0.2 * np.sin(2 * np.pi * 150 * time * (1 + time / 5)) + 0.03 * noise).astype(np.float32)
