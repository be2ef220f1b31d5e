"""The table of a VoicePrivacy challenge (`result_for_rank`) from assessments, its emotion sets, and a CSV file
with what the table lacks."""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from veilmeter.assessment.extraction import embed_whole
from veilmeter.assessment.settings import Settings
from veilmeter.assessment.tasks import single_threaded
from veilmeter.attacks.attacker import ATTACKERS, BASELINE
from veilmeter.core.engine import Engine, Say, ShowProgress, open_engine
from veilmeter.core.errors import InputError, Problem
from veilmeter.core.estimate import Estimate
from veilmeter.core.files import whole_file
from veilmeter.data.formats.vpc import ChallengeSet, TwoSides
from veilmeter.data.matching import match
from veilmeter.metrics.utility.labels import label_estimates
from veilmeter.results.model import AttackerResult

# --- emotion sets: how well emotions are recognized before and after

LABEL = "emotion"


@dataclass(frozen=True, slots=True, eq=False)
class Emotions:
    """How well emotions are recognized in one emotion set such as `IEMOCAP_test`, by the speech that the classifier
    was trained on and tested on; `left_out` recordings could not be used."""

    name: str
    estimates: tuple[Estimate, ...]
    left_out: int = 0

    def rows(self) -> list[EmotionRow]:
        dataset, _, split = self.name.rpartition("_")
        return [EmotionRow.of(dataset, split, recall) for recall in self.estimates]


@dataclass(frozen=True, slots=True, kw_only=True)
class EmotionRow:
    """How well emotions are recognized in one emotion set, in percent: unweighted average recall, its interval, the
    value of chance, and the recall of each emotion."""

    dataset: str
    split: str
    trained_on: str
    read_from: str
    uar: float
    low: float | None
    high: float | None
    chance: float | None
    recalls: Mapping[str, float]

    @classmethod
    def of(cls, dataset: str, split: str, recall: Estimate) -> EmotionRow:
        low, high = (None, None) if recall.interval is None else recall.interval
        return cls(
            dataset=dataset,
            split=split,
            trained_on=str(recall.at["trained_on"]),
            read_from=str(recall.at["read_from"]),
            uar=recall.value,
            low=low,
            high=high,
            chance=recall.null,
            recalls=recall.extra["recalls"],
        )


def measure_emotions(
    pairs: Sequence[TwoSides],
    settings: Settings,
    *,
    jobs: int,
    cluster: str | None,
    say: Say,
    progress: ShowProgress,
) -> tuple[list[Emotions], list[Problem]]:
    """The emotion sets that were measured, and the reasons why the others were not."""
    measured, problems = [], []
    reason = _emotions_unwanted(settings)
    with closing(open_engine(jobs, cluster)) as engine, single_threaded():
        for pair in pairs:
            what = reason or _set_unwanted(pair, settings)
            try:
                if not what:
                    say(f"{pair.name}: {LABEL}s")
                    measured.append(_emotions_of(pair, settings, engine, say, progress))
            except InputError as error:
                what = f"its {LABEL}s were not measured: {error}"
            if what:
                problems += [Problem("not-used", what, str(side.path), fatal=False) for side in pair.sides]
    return measured, problems


def _emotions_unwanted(settings: Settings) -> str:
    if settings.wants("utility"):
        return ""
    return f"speech with {LABEL}s: not measured, as utility is not among --measures"


def _set_unwanted(pair: TwoSides, settings: Settings) -> str:
    if not settings.sets or {pair.original.set, pair.name} & set(settings.sets):
        return ""
    return f"speech with {LABEL}s: not among the sets that were named; to measure it, add --sets {pair.name}"


def _emotions_of(pair: TwoSides, settings: Settings, engine: Engine, say: Say, progress: ShowProgress) -> Emotions:
    corpora = pair.corpora(tuple(map(Path, settings.root)))
    sides, left_out = [], 0
    for corpus in corpora:
        with progress(f"extracting {corpus.variant}") as shown:
            embeddings, facts = embed_whole(
                corpus,
                settings.extractor[0],
                engine,
                offline=settings.offline,
                strict=settings.strict,
                progress=shown,
                say=say,
            )
        sides.append(embeddings)
        left_out += sum(problem.fatal for problem in facts["problems"])
    matched = match(*sides)
    estimates = label_estimates(matched.original, matched.anonymized, LABEL, seed=settings.seed)
    return Emotions(pair.name, tuple(estimates), left_out + len(matched.left_out))


# --- the table

# The challenge's blocks, by whether the attacker is adapted, and its names of the two sides.
PRETRAINED = "ASV_eval"
ADAPTED = "ASV_eval^anon"
SPEECH = {"original": "original", "anonymized": "anon"}
HEAD = "EER in percent by the rule of the challenge (SpeechBrain); veilmeter's attackers, or scores found in exp/"
SER_HEAD = "UAR in percent: emotions recognized from vectors, of speakers whom the classifier was not trained on"
COLUMNS = ("dataset", "split", "gender", "enrollment", "trial", "EER")


def block_of(attacker: str) -> str:
    """The block of the challenge's table; empty for attackers that the challenge does not have."""
    if attacker not in ATTACKERS or not (ATTACKERS[attacker].voiceprivacy or attacker == BASELINE):
        return ""
    return ADAPTED if ATTACKERS[attacker].adapted else PRETRAINED


def sides_of(attacker: str) -> tuple[str, str]:
    """The challenge's names for the speech of the enrollment and of the trials."""
    known = ATTACKERS[attacker]
    return SPEECH[known.enrollment[-1]], SPEECH[known.trials]


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
        enrollment, trial = sides_of(attacker.kind)
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


def rank_table(rows: Sequence[ChallengeRow], words: Mapping[str, Estimate], emotions: Sequence[EmotionRow] = ()) -> str:
    """Blocks in fixed width, as the challenge's tools write them; EERs by the challenge's rule, in percent.

    `words` are the word error rates of the anonymized speech by set, in percent.
    """
    blocks = [HEAD]
    if emotions:
        blocks.append(f"{SER_HEAD}\n---- SER results ----\n{_align_columns(*_emotion_lines(emotions))}")
    for title in (PRETRAINED, ADAPTED):
        lines = [
            (row.dataset, row.split, row.gender, row.enrollment, row.trial, f"{row.eer_challenge:.3f}")
            for row in rows
            if block_of(row.attacker) == title and row.eer_challenge is not None
        ]
        if lines:
            blocks.append(f"---- {title} results ----\n{_align_columns(COLUMNS, lines)}")
    if words:
        lines_of_words = [(*_parse_name(name), f"{wer.value:.3f}") for name, wer in words.items()]
        blocks.append(f"---- ASR results ----\n{_align_columns(('dataset', 'split', 'gender', 'WER'), lines_of_words)}")
    return "\n".join(blocks) + "\n"


def _emotion_lines(rows: Sequence[EmotionRow]) -> tuple[list[str], list[list[str]]]:
    """Columns and lines, with a column per emotion that some set has."""
    names = sorted({name for row in rows for name in row.recalls})
    columns = ["dataset", "split", "trained", "read", "UAR", *(f"ACC_{name}" for name in names)]
    lines = [
        [row.dataset, row.split, *(SPEECH[side] for side in (row.trained_on, row.read_from)), f"{row.uar:.3f}"]
        + [f"{row.recalls[name]:.3f}" if name in row.recalls else "-" for name in names]
        for row in rows
    ]
    return columns, lines


def _parse_name(name: str) -> tuple[str, str, str]:
    """`libri_test_trials_f` as dataset, split and gender."""
    before, _, gender = name.partition("_trials_")
    dataset, _, split = before.rpartition("_")
    return dataset, split, gender


def _align_columns(columns: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
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


def write_rows(path: Path, rows: Sequence[ChallengeRow] | Sequence[EmotionRow]) -> None:
    """As CSV, one column per field; a mapping gives a column per name."""
    cells = [_cells(row) for row in rows]
    names = list(dict.fromkeys(name for line in cells for name in line))
    if not rows:
        names = [field.name for field in fields(ChallengeRow)]
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(cells)


def _cells(row: ChallengeRow | EmotionRow) -> dict[str, object]:
    cells: dict[str, object] = {}
    for name, value in asdict(row).items():
        if isinstance(value, Mapping):
            cells |= {f"{name.removesuffix('s')}_{key}": cell for key, cell in value.items()}
        else:
            cells[name] = "" if value is None else value
    return cells
