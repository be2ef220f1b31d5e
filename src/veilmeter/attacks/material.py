"""The material of an attack: original speech of the people looked for, runs of the anonymizer, and the release.

The released recordings come without names, so an attacker can't look at the answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings, strings, unit

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]
DrawLevel = Literal["utterance", "speaker", "unknown"]


@dataclass(frozen=True, eq=False, kw_only=True)
class AttackerRun:
    """One run of the anonymizer over speech that the attacker has, matched to the originals by utterance.

    `draw` is what shares one pseudo-voice: an utterance, or all of a speaker's recordings. `own` is False for the run
    that was released: its draws are those of the trials, which a real attacker could not make. `certain` says that the
    draw level is on record (a manifest); what a person says of a run is checked against its data. `made_here` says that
    it is known to be a run of the released system, as veilmeter ran that itself.
    """

    vectors: Embeddings
    draw: DrawLevel = "unknown"
    own: bool = True
    name: str = ""
    certain: bool = False
    made_here: bool = False

    def __post_init__(self) -> None:
        if self.draw not in get_args(DrawLevel):
            raise InputError(f"a run's draw level is one of {', '.join(get_args(DrawLevel))}, not {self.draw!r}")


@dataclass(frozen=True, eq=False, kw_only=True)
class OtherPeople:
    """Speech of people who are not candidates: originals, and runs of the anonymizer over them."""

    originals: Embeddings
    runs: tuple[AttackerRun, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Material:
    """All that an attacker with its own method gets.

    `candidates` are original recordings of the people looked for; `trials` the vectors of the released recordings,
    with their ids; `conversations` tables of rows of `trials`, one row per conversation, one table per length.
    `pseudonyms` says which trials share a pseudonym, for attackers who see that. `views` is the same material by
    further extractors, in the same order. `texts` are transcripts by utterance id, where there are some. `seen` says
    that the extractor was trained on the runs' copies themselves, so that nothing can be tested on them.
    """

    candidates: Embeddings
    trials: NDArray[np.float32]
    conversations: tuple[Rows, ...]
    runs: tuple[AttackerRun, ...] = ()
    others: OtherPeople | None = None
    trial_ids: NDArray[np.object_] = field(default_factory=lambda: strings([]))
    pseudonyms: Rows | None = None
    views: Mapping[str, Material] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    seen: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.trials.ndim != 2 or not len(self.trials):
            raise InputError("an attacker needs a table of released vectors, one row per recording")
        for table in self.conversations:
            if table.ndim != 2 or (table.size and not 0 <= table.min() <= table.max() < len(self.trials)):
                raise InputError("a table of conversations holds rows of the trials, one line per conversation")
        if self.pseudonyms is not None and len(self.pseudonyms) != len(self.trials):
            raise InputError(f"there are {len(self.trials)} trials but {len(self.pseudonyms)} pseudonyms")

    @property
    def names(self) -> tuple[str, ...]:
        """The candidates: the rows of the scores."""
        return self.candidates.names

    @property
    def columns(self) -> int:
        """How many conversations there are, over all tables."""
        return sum(len(table) for table in self.conversations)

    def split(self, scores: Floats) -> list[Floats]:
        """The columns of each table of conversations."""
        ends = np.cumsum([len(table) for table in self.conversations])[:-1]
        return np.split(scores, ends, axis=1)

    @cached_property
    def conversation_means(self) -> NDArray[np.float32]:
        """unit(mean of unit vectors) of every conversation, over all tables."""
        vectors = unit(self.trials)
        return unit(np.concatenate([vectors[table].mean(axis=1) for table in self.conversations]))
