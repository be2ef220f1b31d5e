"""The two sets that the legal measures compare: what makes them a poor test, how many can be tested, who is exposed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Finding, first_speakers, warning
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.registry import estimate_of


def doubts_of(enrol: Embeddings, test: Embeddings) -> list[Finding]:
    """What makes these two sets a poor test; different dimensions are an error."""
    if enrol.dimension != test.dimension:
        raise InputError(
            f"the enrollment has {enrol.dimension} dimensions and the test {test.dimension}",
            fix="both must come from the same extractor",
        )
    doubts = []
    both = [u for u in test.utterances if u in enrol.utterance_rows]
    if both:
        rows = np.array([enrol.utterance_rows[u] for u in both])
        mine = np.array([test.utterance_rows[u] for u in both])
        same = int(np.count_nonzero((enrol.vectors[rows] == test.vectors[mine]).all(axis=1)))
        if same:
            doubts.append(warning("same_recording_enrolled", count=same))
        else:
            doubts.append(warning("same_id_enrolled", count=len(both)))
    enrolled = set(enrol.names)
    strangers = [name for name in test.names if name not in enrolled]
    if strangers:
        doubts.append(warning("people_not_enrolled", count=len(strangers), examples=first_speakers(strangers)))
    return doubts


def speakers_by_length(test: Embeddings, lengths: Sequence[int]) -> dict[int, int]:
    """For each length, how many test speakers have two conversations of it."""
    counts = np.bincount(test.codes)
    return {length: int(np.count_nonzero(counts >= 2 * length)) for length in lengths}


def per_speaker_estimates(
    name: str,
    people: Iterable[tuple[str, float, Mapping[str, int]]],
    *,
    speakers: int,
    length: int,
    method: str,
    null: float | None = None,
) -> list[Estimate]:
    """The measure of each person (who, value, counts behind it) among so many speakers, the most exposed first."""
    return [
        estimate_of(
            f"{name}_per_speaker",
            float(value),
            null=null,
            method=method,
            n=counts,
            at={"speaker": who, "speakers": speakers, "length": length},
        )
        for who, value, counts in sorted(people, key=lambda person: (-person[1], person[0]))
    ]
