"""Who is left unprotected: each speaker's risk over all attackers, and whether attackers agree on whom they find."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from veilmeter.core.estimate import Estimate
from veilmeter.core.intervals import wilson

HIGH = 0.5  # linked more often than not


def risks(
    people: Mapping[str, Sequence[Mapping[str, Any]]], genders: Mapping[str, str], *, length: int = 1
) -> list[dict[str, Any]]:
    """By falling risk. `people` are the rows of each attacker: how often each speaker's conversations were linked."""
    rows: dict[str, dict[str, Any]] = {}
    for attacker, found in people.items():
        for one in found:
            if one["length"] != length:
                continue
            entry = rows.setdefault(one["speaker"], {"by_attacker": {}})
            entry["by_attacker"][attacker] = _estimate(one)
    made = []
    for speaker, entry in rows.items():
        by = entry["by_attacker"]
        worst = max(by, key=lambda attacker: (by[attacker].value, attacker))
        made.append(
            {
                "speaker": speaker,
                "gender": genders.get(speaker, ""),
                "attacker": worst,
                "risk": by[worst].to_json(),
                "by_attacker": {attacker: one.to_json() for attacker, one in by.items()},
            }
        )
    return sorted(made, key=lambda row: (-row["risk"]["value"], -row["risk"]["interval"][0], row["speaker"]))


def _estimate(one: Mapping[str, Any]) -> Estimate:
    n = int(one["conversations"])
    return Estimate(
        name="linkability",
        label="linked",
        value=float(one["linked"]),
        unit="probability",
        interval=wilson(float(one["linked"]) * n, n),
        null=1 / int(one["among"]),
        method="share of the speaker's recordings linked among all enrolled; Wilson",
        n={"conversations": n},
        better="lower",
        at={"speakers": int(one["among"]), "length": int(one["length"])},
    )


def stability(rows: Sequence[Mapping[str, Any]], attackers: Sequence[str]) -> float | None:
    """The mean rank correlation of the speakers' risks between every two attackers; None with fewer than two, or where
    an attacker finds everybody alike.

    >>> row = lambda a, b: {"by_attacker": {"x": {"value": a}, "y": {"value": b}}}
    >>> stability([row(0.1, 0.2), row(0.5, 0.6), row(0.9, 0.8)], ["x", "y"])
    1.0
    """
    found = []
    for a, b in combinations(attackers, 2):
        both = [row["by_attacker"] for row in rows if a in row["by_attacker"] and b in row["by_attacker"]]
        if len(both) < 3:
            continue
        ranks = [_ranks(np.array([one[name]["value"] for one in both], float)) for name in (a, b)]
        if all(np.ptp(rank) > 0 for rank in ranks):
            found.append(float(np.corrcoef(ranks[0], ranks[1])[0, 1]))
    return float(np.round(np.mean(found), 9)) if found else None


def _ranks(values: np.ndarray) -> np.ndarray:
    """Mean ranks of ties."""
    _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: np.ndarray = (last - (counts - 1) / 2)[codes]
    return mean


def unprotected(rows: Sequence[Mapping[str, Any]], attackers: Sequence[str]) -> dict[str, Any]:
    """Those whom some attacker links more often than not, and surely more often than chance; with a sentence."""
    exposed = [
        row["speaker"]
        for row in rows
        if row["risk"]["value"] > HIGH and row["risk"]["interval"][0] > row["risk"]["null"]
    ]
    agreement = stability(rows, attackers)
    total = len(rows)
    if not rows:
        return {
            "speakers": [],
            "of": 0,
            "stability": None,
            "sentence": "No speaker could be linked: nobody has a trial.",
        }
    if not exposed:
        said = f"None of {total} speakers is linked more often than not by any attacker that was run."
    else:
        said = (
            f"{len(exposed)} of {total} speakers are linked more often than not by the attacker that finds them "
            "best, among "
            f"{rows[0]['risk']['speakers']} people and with one recording."
        )
    if agreement is not None:
        kind = "largely the same" if agreement > 0.6 else "partly the same" if agreement > 0.3 else "mostly different"
        said += f" The attackers find {kind} people (rank correlation {agreement:.2f})."
    return {"speakers": exposed, "of": total, "stability": agreement, "sentence": said}


def add_similarity(rows: Sequence[dict[str, Any]], found: Mapping[str, Any]) -> None:
    """Each speaker's own DeID and animal of the zoo, where the similarity matrices know them."""
    animals = {one["speaker"]: one["animal"] for one in found.get("zoo", [])}
    for row in rows:
        row["deid"] = found.get("deid", {}).get(row["speaker"])
        row["animal"] = animals.get(row["speaker"], "")
