"""Which recordings are tried where all of them would take too long, and what to say about it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from veilmeter.assessment.isolating import PREDICATES
from veilmeter.assessment.scoring import MOST_SCORES
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.metrics.legal.chance import drawn_columns
from veilmeter.metrics.legal.conversations import Conversations, conversations
from veilmeter.metrics.legal.singling_out import CONVERSATIONS

MOST_TRIALS, MOST_CELLS = 2000, 2_000_000  # in which attackers are compared with each other


def trial_conversations(test: Embeddings, length: int, enrolled: int, seed: int) -> Conversations | None:
    """The conversations of a length that are tried; None where fewer than two speakers have that many utterances."""
    most = None
    allowed = MOST_SCORES // max(1, enrolled)
    if len(test) // length > allowed:
        most = max(1, allowed // len(test.names))
    try:
        spoken = conversations(test, length, most=most, seed=seed)
    except InputError:
        return None
    return spoken if len(spoken.names) >= 2 else None


def compared_trials(test: Embeddings, spoken: Conversations, enrolled: Sequence[str]) -> NDArray[np.intp]:
    """The places of the trials of enrolled people in which attackers are compared: all, or some of every stretch."""
    known = set(enrolled)
    places = np.flatnonzero([speaker in known for speaker in test.speakers[spoken.utterances[:, 0]]])
    most = max(1, min(MOST_TRIALS, MOST_CELLS // max(1, len(known))))
    return places[:: max(1, -(-len(places) // most))]


def kept_trials(test: Embeddings, spoken: Conversations | None, enrolled: Sequence[str]) -> NDArray[np.intp] | slice:
    """The places of single trials whose scores are kept: all, for the tables of a run. Where trials were drawn there is
    no table, and only those are kept in which attackers are compared."""
    if spoken is None or len(spoken) == len(test):
        return slice(None)
    return compared_trials(test, spoken, enrolled)


def what_is_drawn(
    test: Embeddings,
    enrolled: Sequence[str],
    tried: Mapping[int, Conversations],
    isolated: Mapping[int, Conversations],
    *,
    calibrated: bool,
) -> list[str]:
    """What rests on a part of the recordings, or of the people, by the lengths of conversations; `calibrated` where
    measures of scores are asked for."""
    warnings = []
    for length, spoken in tried.items():
        possible = int((np.bincount(test.codes) // length).sum())
        if len(spoken) < possible:
            what = "trial recordings" if length == 1 else f"conversations of {length} recordings"
            warnings.append(f"{len(spoken):,} of {possible:,} {what} were drawn to be tried, some of every speaker")
        columns = drawn_columns(len(enrolled), len(spoken))
        if calibrated and not isinstance(columns, slice):
            warnings.append(
                f"the measures of scores rest on {len(columns):,} of the {len(spoken):,} trials of length {length}"
            )
    for length, spoken in isolated.items():
        possible = min(CONVERSATIONS, int((np.bincount(test.codes) // length).max()))
        if (most := int(spoken.counts.max())) < possible:
            warnings.append(f"Singling Out: at most {most} conversations of each speaker were drawn (length {length})")
        people = int((np.bincount(test.codes) // length >= 2).sum())
        if len(spoken.names) < people:
            warnings.append(
                f"Singling Out: {len(spoken.names):,} of {people:,} speakers were drawn to be singled out "
                f"(length {length})"
            )
        rules = len(set(spoken.names) & set(enrolled))
        if rules > PREDICATES:
            warnings.append(
                f"Singling Out: the rules of {PREDICATES:,} of {rules:,} people were tried (length {length})"
            )
    return warnings
