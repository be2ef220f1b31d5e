"""An anonymizer run again by somebody who has it: what an attacker does to make training speech of their own.

An attacker draws with seeds of their own, never the released run's, and, where the system can, anew for every
utterance: then copies of one person share the person and not the draw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from veilmeter.anonymizers.anonymize_corpus import Anonymized, anonymize_corpus
from veilmeter.anonymizers.base import Draw, load_anonymizer, options_of
from veilmeter.core.engine import Engine, Progress
from veilmeter.data.corpus import Corpus


def run_again(
    corpus: Corpus,
    out: str | Path,
    system: str,
    options: Mapping[str, Any] | None = None,
    *,
    seed: int,
    per: Draw = Draw.UTTERANCE,
    engine: Engine | None = None,
    offline: bool = False,
    source: str | Path | None = None,
    progress: Progress | None = None,
) -> Anonymized:
    """A run of `system` over `corpus` with this seed and, where the system can, these draws; `Anonymized.draw` says
    what they were. `options` are those of the released run; its seed and draws are replaced."""
    chosen = dict(options or {}) | {"seed": seed, "offline": offline}
    if "per" in options_of(system):
        chosen["per"] = str(per)
    # An output of an earlier run in this folder with other draws is of no use to anybody: it is made again.
    return anonymize_corpus(
        corpus,
        out,
        load_anonymizer(system, chosen),
        engine=engine,
        overwrite=True,
        source=source,
        progress=progress,
    )


def own_seeds(released: int, count: int) -> tuple[int, ...]:
    """Seeds for runs of one's own, none of them the released run's.

    >>> len({7, *own_seeds(7, 20)})
    21
    """
    seeds: list[int] = []
    number = 0
    while len(seeds) < count:
        digest = hashlib.sha256(f"own run {number} beside {released}".encode()).digest()
        seed = int.from_bytes(digest[:4]) >> 1
        if seed != released and seed not in seeds:
            seeds.append(seed)
        number += 1
    return tuple(seeds)
