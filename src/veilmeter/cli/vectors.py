"""How every command that takes embeddings reads them: what can't be used is left out and said, or stops the run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from veilmeter.core.findings import Finding
    from veilmeter.data.embeddings import Embeddings


def read(path: Path, warnings: list[Finding], *, strict: bool = False) -> tuple[Embeddings, dict[str, Any]]:
    """The usable embeddings, and what the results say of this input; what was left out is added to the warnings.

    With `strict` the first vector that can't be used is an error.
    """
    from veilmeter.core.files import sha256
    from veilmeter.data.formats.vectors import load_embeddings, read_embeddings

    if strict:
        embeddings = read_embeddings(path)
    else:
        loaded = load_embeddings(path)
        warnings += loaded.findings()
        embeddings = loaded.embeddings
    counts = {"utterances": len(embeddings), "speakers": len(embeddings.names), "dimension": embeddings.dimension}
    return embeddings, {"path": str(path), "sha256": sha256(path), **counts}
