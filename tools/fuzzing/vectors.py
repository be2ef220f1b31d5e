"""Files of vectors and of scores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np


def voices() -> object:
    from veilmeter.data.embeddings import Embeddings

    rng = np.random.default_rng(0)
    ids = [f"s{n % 3}-u{n}" for n in range(9)]
    return Embeddings(
        rng.standard_normal((9, 4)).astype(np.float32), ids, [i[:2] for i in ids], {"gender": ["f"] * 9},
        durations=np.ones(9),
    )  # fmt: skip


def _written(name: str, form: str | None = None) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        from veilmeter.data.formats.vectors import write_embeddings

        write_embeddings(voices(), folder / name, form=form)  # type: ignore[arg-type]

    return make


def _loaded(name: str) -> Callable[[Path], object]:
    def read(folder: Path) -> object:
        from veilmeter.data.formats.vectors import load_embeddings

        return load_embeddings(folder / name)

    return read


def _as_pandas_writes(folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    lists = pa.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], pa.list_(pa.float64()))
    pq.write_table(
        pa.table({"utterance": ["a", "b", "c"], "speaker": ["x", "x", "y"], "vector": lists, "age": [1, 2, 3]}),
        folder / "x.parquet",
    )


def _as_the_challenge_writes(folder: Path) -> None:
    import torch

    torch.save(torch.arange(8.0).reshape(4, 2), folder / "speaker_vectors.pt")
    (folder / "id2idx").write_text("a 0\nb 1\nc 10\nd 3\n".replace("10", "2"))
    (folder / "idx2spk").write_text("0 x\n1 x\n2 y\n3 y\n")
    (folder / "spk2gender").write_text("x f\ny m\n")


VECTORS: dict[str, tuple[Callable[[Path], None], Callable[[Path], object], int]] = {
    "ark": (_written("x.ark"), _loaded("x.ark"), 1),
    "scp": (_written("x.scp"), _loaded("x.scp"), 1),
    "folder of scp": (_written("x", "kaldi"), _loaded("x"), 1),
    "npz": (_written("x.npz"), _loaded("x.npz"), 2),
    "parquet": (_written("x.parquet"), _loaded("x.parquet"), 3),
    "parquet of lists": (_as_pandas_writes, _loaded("x.parquet"), 3),
    "folder of parquet": (_written("x"), _loaded("x"), 3),
    "h5": (_written("x.h5"), _loaded("x.h5"), 20),
    "pt": (_as_the_challenge_writes, _loaded("."), 4),
}
