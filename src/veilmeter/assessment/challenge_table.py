"""The table of a VoicePrivacy challenge (`result_for_rank`) from assessments, and a CSV file with what it lacks."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from veilmeter.core.estimate import Estimate
from veilmeter.core.files import whole_file
from veilmeter.data.formats.vpc_sets import ChallengeSet
from veilmeter.results.model import YARDSTICK, AttackerResult

# The challenge's block and columns "enrollment" and "trial", by attacker; the others have no place in its table.
PRETRAINED = "ASV_eval"
ADAPTED = "ASV_eval^anon"
BLOCKS = {YARDSTICK: PRETRAINED, "ignorant": PRETRAINED, "lazy-informed": PRETRAINED, "informed": ADAPTED}
SIDES = {YARDSTICK: ("original", "original"), "ignorant": ("original", "anon")}
HEAD = "EER in percent by the rule of the challenge (SpeechBrain); veilmeter's attackers, or scores found in exp/"
COLUMNS = ("dataset", "split", "gender", "enrollment", "trial", "EER")


@dataclass(frozen=True, slots=True, kw_only=True)
class ChallengeRow:
    """One attacker on one set: EERs in percent, by the challenge's rule and by veilmeter's own with its interval."""

    dataset: str
    split: str
    gender: str
    attacker: str
    enrollment: str
    trial: str
    eer_challenge: float | None
    eer: float | None
    low: float | None
    high: float | None
    source: str

    @classmethod
    def of(cls, challenge_set: ChallengeSet, attacker: AttackerResult) -> ChallengeRow:
        dataset, _, split = challenge_set.set.rpartition("_")
        enrollment, trial = SIDES.get(attacker.name, ("anon", "anon"))
        eer = attacker.estimates.single("eer")
        by_rule = attacker.estimates.single("eer_speechbrain")
        interval = (None, None) if eer is None or eer.interval is None else eer.interval
        role = challenge_set.trials.original.role.removeprefix("trials_")
        return cls(
            dataset=dataset,
            split=split,
            gender=role,
            attacker=attacker.name,
            enrollment=enrollment,
            trial=trial,
            eer_challenge=None if by_rule is None else by_rule.value,
            eer=None if eer is None else eer.value,
            low=interval[0],
            high=interval[1],
            source=attacker.source,
        )


def rank_table(rows: Sequence[ChallengeRow], words: Mapping[str, Estimate]) -> str:
    """Blocks in fixed width, as the challenge's tools write them; EERs by the challenge's rule, in percent.

    `words` are the word error rates of the anonymized speech by set, in percent.
    """
    blocks = [HEAD]
    for title in (PRETRAINED, ADAPTED):
        lines = [
            (row.dataset, row.split, row.gender, row.enrollment, row.trial, f"{row.eer_challenge:.3f}")
            for row in rows
            if BLOCKS.get(row.attacker) == title and row.eer_challenge is not None
        ]
        if lines:
            blocks.append(f"---- {title} results ----\n{_fixed_width(COLUMNS, lines)}")
    if words:
        lines_of_words = [(*_named(name), f"{wer.value:.3f}") for name, wer in words.items()]
        blocks.append(f"---- ASR results ----\n{_fixed_width(('dataset', 'split', 'gender', 'WER'), lines_of_words)}")
    return "\n".join(blocks) + "\n"


def _named(name: str) -> tuple[str, str, str]:
    """`libri_test_trials_f` as dataset, split and gender."""
    before, _, gender = name.partition("_trials_")
    dataset, _, split = before.rpartition("_")
    return dataset, split, gender


def _fixed_width(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """With an index in front and columns flush right, as pandas prints a frame."""
    table = [["", *columns], *([str(number), *line] for number, line in enumerate(lines))]
    widths = [max(len(line[place]) for line in table) for place in range(len(columns) + 1)]
    return (
        "\n".join(
            " ".join(
                cell.ljust(width) if place == 0 else cell.rjust(width + 1) for place, (cell, width) in cells
            ).rstrip()
            for cells in (list(enumerate(zip(line, widths, strict=True))) for line in table)
        )
        + "\n"
    )


def write_rows(path: Path, rows: Sequence[ChallengeRow]) -> None:
    names = [field.name for field in fields(ChallengeRow)]
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows({name: "" if cell is None else cell for name, cell in asdict(row).items()} for row in rows)
