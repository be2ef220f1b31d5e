"""All files that an ONNX model is made of: its weights may lie beside it, and with others it is another model."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.extras import need
from veilmeter.core.files import sha256


def model_digest(path: Path) -> str:
    """The content of the model's file and of every file with weights that it names."""
    own, beside = sha256(path), external_files(path)
    if not beside:
        return own
    digest = hashlib.sha256(own.encode())
    for file in beside:
        digest.update(f"\0{file.name}\0{sha256(file)}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def external_files(path: Path) -> list[Path]:
    """The files beside the model that hold some of its weights, in order; one outside its folder is refused."""
    need("onnx")
    import onnx

    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # a broken file, and protobuf's own types
        raise InputError(f"this ONNX model can't be loaded: {str(error)[:200]}", path=path) from None
    folder = path.resolve().parent
    files = []
    for location in sorted({place for tensor in _tensors(model.graph) for place in _locations(tensor)}):
        try:
            file = (folder / location).resolve()
            inside, present = file.is_relative_to(folder), file.is_file()
        except (OSError, ValueError):  # a name that the system can't have
            inside, present = True, False
        if not inside:
            raise InputError(f"the model's weights lie outside its folder: {location!r}", path=path)
        if not present:
            raise InputError(f"the model's weights {location!r} are not there", path=path, fix="put them beside it")
        files.append(file)
    return files


def _locations(tensor: Any) -> Iterator[str]:
    """Where a tensor's numbers lie; protobuf gives bytes for a name that is no UTF-8."""
    for entry in tensor.external_data:
        if entry.key == "location":
            yield entry.value if isinstance(entry.value, str) else os.fsdecode(entry.value)


def _tensors(graph: Any) -> Iterator[Any]:
    """Every tensor that is stored in a graph and in the graphs inside it."""
    yield from graph.initializer
    for sparse in graph.sparse_initializer:
        yield from (sparse.values, sparse.indices)
    for node in graph.node:
        for attribute in node.attribute:
            yield from (attribute.t, *attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                if inner.ByteSize():
                    yield from _tensors(inner)
