"""What the similarity matrices say of each speaker, and what makes them say little."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from veilmeter.metrics.similarity.matrices import KINDS, Similarity, deid
from veilmeter.metrics.similarity.zoo import Zoo


def doubts_of(similarity: Similarity, name: str = "") -> list[str]:
    """What makes these matrices say little; `name` is the system's, where there are several."""
    doubts = []
    where = f"{name}: " if name else ""
    if similarity.d_diag["OO"] < 0.5:
        doubts.append(
            f"{where}the original voices are hardly told apart (D_diag(OO) {similarity.d_diag['OO']:.3f}): "
            "the vectors are weak, and DeID and G_VD say little"
        )
    if similarity.d_diag["OP"] < 0 and similarity.d_diag_log["OP"] < -0.01:
        doubts.append(
            f"{where}the OP diagonal is darker than its surroundings (D_diag(OP) {similarity.d_diag['OP']:.3g}): a "
            "protected voice is less like its own speaker than like others, which gives them away too"
        )
    if len(similarity.names) < 10:
        doubts.append(f"{where}only {len(similarity.names)} speakers: the intervals are wide, and rough themselves")
    return doubts


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
