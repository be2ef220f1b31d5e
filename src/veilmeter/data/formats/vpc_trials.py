"""Trial lists as the VoicePrivacy challenge's own scorer reads them: a pair counts once, and its last label holds."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.findings import Finding, Reference, file_reference, remark, warning
from veilmeter.data.embeddings import Strings, strings
from veilmeter.data.formats.columns import Codes, Faults
from veilmeter.data.formats.trials import read_trials


@dataclass(frozen=True, eq=False, slots=True)
class TrialList:
    """Enrolled speakers, trial utterances and whether each pair is of one person; each pair once.

    `repeated` counts lines that say again what another line says, `contradicted` pairs that have both labels.
    """

    path: Path
    speakers: Strings
    utterances: Strings
    is_target: NDArray[np.bool_]
    repeated: int = 0
    contradicted: int = 0
    examples: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.is_target)

    @property
    def findings(self) -> list[Finding]:
        findings = []
        file = file_reference(self.path)
        if self.repeated:
            findings.append(remark("trials_repeated", file=file, count=self.repeated))
        if self.contradicted:
            example = Reference("text", self.examples[0])
            findings.append(warning("trials_contradicted", file=file, count=self.contradicted, example=example))
        return findings


def read_trial_list(path: Path) -> TrialList:
    """The trials of a list with lines such as `1462 1462-170142-0000 target`."""
    codes, notes = Codes(), Faults()
    table = read_trials(path, layout="vpc", codes=codes, findings=notes)
    notes.raise_first()
    names = strings(codes.names())
    pairs = table.enrol * np.int64(len(names)) + table.test
    distinct, backwards = np.unique(pairs[::-1], return_index=True)
    last = len(pairs) - 1 - backwards  # the last line of each pair
    order = np.argsort(last)
    targets = np.bincount(np.searchsorted(distinct, pairs), table.is_target, minlength=len(distinct))
    lines = np.bincount(np.searchsorted(distinct, pairs), minlength=len(distinct))
    both = (targets > 0) & (targets < lines)
    rows = last[order]
    examples = [f"{names[table.enrol[row]]} {names[table.test[row]]}" for row in np.sort(last[both])[:3]]
    return TrialList(
        path,
        names[table.enrol[rows]],
        names[table.test[rows]],
        table.is_target[rows],
        int((lines - 1)[~both].sum()),
        int(both.sum()),
        tuple(examples),
    )
