"""What the similarity matrices say of each speaker, and what makes them say little."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veilmeter.core.findings import Finding, Reference, about, warning
from veilmeter.metrics.similarity.matrices import KINDS, Similarity, deid
from veilmeter.metrics.similarity.zoo import Zoo


def doubts_of(similarity: Similarity, name: str = "") -> list[Finding]:
    """What makes these matrices say little; `name` is the system's, where there are several."""
    doubts = []
    if similarity.d_diag["OO"] < 0.5:
        doubts.append(warning("originals_alike", d_diag=float(similarity.d_diag["OO"])))
    if similarity.d_diag["OP"] < 0 and similarity.d_diag_log["OP"] < -0.01:
        doubts.append(warning("diagonal_inverted", d_diag=float(similarity.d_diag["OP"])))
    if len(similarity.names) < 10:
        doubts.append(warning("few_speakers", count=len(similarity.names)))
    return [about(doubt, system=Reference("run", name)) for doubt in doubts] if name else doubts


def details_of(similarity: Similarity, zoos: Mapping[str, Zoo]) -> dict[str, Any]:
    """Per speaker: D_diag in each matrix, own DeID, and the animals; and how real the animals are."""
    own = {kind: similarity.per_speaker(kind) for kind in KINDS}
    animals = {kind: zoos[kind].to_json() for kind in KINDS}
    people = [
        {
            "speaker": name,
            **{f"d_diag_{kind.lower()}": float(own[kind][row]) for kind in KINDS},
            "deid": deid(float(own["OO"][row]), float(own["OP"][row])),
            "zoo": {kind: {key: animals[kind][row][key] for key in ("target", "impostor", "animal", "doddington")}
                    for kind in KINDS},
        }
        for row, name in enumerate(similarity.names)
    ]  # fmt: skip
    return {"speakers": people, "zoo": {kind: zoos[kind].corners() for kind in KINDS}}
