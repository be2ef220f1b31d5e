"""The table of a VoicePrivacy challenge (`result_for_rank`) from assessments, its emotion sets, and a CSV file
with what the table lacks."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from veilmeter.assessment.extraction import embed_whole
from veilmeter.assessment.settings import Settings
from veilmeter.assessment.stages import Forecast, Stage, StageLog
from veilmeter.attacks.attacker import ATTACKERS, BASELINE
from veilmeter.core.engine import Engine, Say, open_engine, single_threaded
from veilmeter.core.errors import InputError, Problem
from veilmeter.core.estimate import Estimate
from veilmeter.core.files import whole_file
from veilmeter.data.corpus import SIDES
from veilmeter.data.formats.vpc import ChallengeSet, TwoSides
from veilmeter.data.matching import match
from veilmeter.data.scores import Scores, read_scores
from veilmeter.metrics.scores.eer import eer
from veilmeter.metrics.utility.labels import label_estimates
from veilmeter.results.differences import read_run_scores
from veilmeter.results.model import AttackerResult, Results

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
    forecast: Forecast,
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
                    measured.append(_emotions_of(pair, settings, engine, StageLog(say, forecast, pair.name)))
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


def _emotions_of(pair: TwoSides, settings: Settings, engine: Engine, log: StageLog) -> Emotions:
    corpora = pair.corpora(tuple(map(Path, settings.root)))
    sides, left_out = [], 0
    for side, corpus in zip(SIDES, corpora, strict=True):
        log.stage(Stage.READING, side)
        with log.progress() as progress:
            embeddings, facts = embed_whole(
                corpus,
                settings.extractor[0],
                engine,
                offline=settings.offline,
                strict=settings.strict,
                progress=progress,
                say=log.say,
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
HEAD = "EER in percent by the rule of the challenge (SpeechBrain), from the scores that its tools left in exp/"
OWN = "measured by veilmeter, not by the challenge's tools"
BESIDE = "not in the challenge's table"
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
    """One attacker on one set: EERs in percent, by the challenge's rule and by `eer_method` with its interval."""

    dataset: str
    split: str
    gender: str
    attacker: str
    enrollment: str
    trial: str
    eer_challenge: float | None
    eer: float | None
    eer_method: str
    low: float | None
    high: float | None
    source: str

    @property
    def remark(self) -> str:
        """Caveats of a row: whose figure it is, and whether the challenge has such a row. The challenge's
        pretrained extractor is shown on original speech in 2024, and on anonymized speech (lazy-informed) in 2026,
        where trials are gender-mixed."""
        pretrained = "lazy-informed" if self.gender == "mixed" else BASELINE
        is_beside = block_of(self.attacker) == PRETRAINED and self.attacker != pretrained
        return "; ".join([*([OWN] if self.source != "scores" else []), *([BESIDE] if is_beside else [])])

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
            eer_method="" if eer is None else eer.method,
            low=interval[0],
            high=interval[1],
            source=attacker.source,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeakerRow:
    """The EER of one enrolled speaker in percent by the challenge's rule: their own trials against all others."""

    dataset: str
    attacker: str
    speaker: str
    eer_challenge: float
    targets: int
    nontargets: int
    source: str


def speaker_rows(name: str, folder: Path, results: Results) -> Iterator[SpeakerRow]:
    """Every enrolled speaker of a set under every attacker whose scores are known. The challenges' settings ask for
    these figures (`compute_eer` per speaker), and their tools do not write them."""
    for attacker in results.attackers.values():
        scores = _scores_of(attacker, folder, results)
        if scores is None or scores.enroll_speaker is None:
            continue
        for code, speaker in enumerate(scores.names):
            mine = scores.enroll_speaker == code
            targets, nontargets = (scores.values[mine & side] for side in (scores.is_target, ~scores.is_target))
            if len(targets) and len(nontargets):
                yield SpeakerRow(
                    dataset=name,
                    attacker=attacker.name,
                    speaker=speaker,
                    eer_challenge=eer(targets, nontargets, "speechbrain"),
                    targets=len(targets),
                    nontargets=len(nontargets),
                    source=attacker.source,
                )


def _scores_of(attacker: AttackerResult, folder: Path, results: Results) -> Scores | None:
    if attacker.source != "scores":
        return read_run_scores(folder, results, attacker.name)
    table = results.settings.get("attackers", {}).get(attacker.name, {})
    files: tuple[str, ...] = tuple(table.get("scores") or ())
    if len(files) != 1 or not Path(files[0]).is_file():
        return None
    return read_scores(files[0], folder / "trials", only_common=True)


def rank_table(rows: Sequence[ChallengeRow], words: Mapping[str, Estimate], emotions: Sequence[EmotionRow] = ()) -> str:
    """Blocks in fixed width, as the challenge's tools write them; EERs by the challenge's rule, in percent.

    `words` are the word error rates of the anonymized speech by set, in percent.
    """
    blocks = [HEAD]
    if emotions:
        blocks.append(f"{SER_HEAD}\n---- SER results ({OWN}) ----\n{_align_columns(*_emotion_lines(emotions))}")
    for title in (PRETRAINED, ADAPTED):
        by_heading: dict[str, list[tuple[str, ...]]] = {}
        for row in rows:
            if block_of(row.attacker) == title and row.eer_challenge is not None:
                line = (row.dataset, row.split, row.gender, row.enrollment, row.trial, f"{row.eer_challenge:.3f}")
                by_heading.setdefault(row.remark, []).append(line)
        for remark, lines in sorted(by_heading.items()):
            heading = f"{title} results" + (f" ({remark})" if remark else "")
            blocks.append(f"---- {heading} ----\n{_align_columns(COLUMNS, lines)}")
    if words:
        lines_of_words = [(*_parse_name(name), f"{wer.value:.3f}") for name, wer in words.items()]
        columns = ("dataset", "split", "gender", "WER")
        blocks.append(f"---- ASR results ({OWN}) ----\n{_align_columns(columns, lines_of_words)}")
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


def write_rows(path: Path, rows: Sequence[ChallengeRow | EmotionRow | SpeakerRow]) -> None:
    """As CSV, one column per field; a mapping gives a column per name."""
    cells = [_cells(row) for row in rows]
    names = list(dict.fromkeys(name for line in cells for name in line))
    if not rows:
        names = [field.name for field in fields(ChallengeRow)]
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as out:
        writer = csv.DictWriter(out, names, restval="", lineterminator="\n")
        writer.writeheader()
        writer.writerows(cells)


def _cells(row: ChallengeRow | EmotionRow | SpeakerRow) -> dict[str, object]:
    cells: dict[str, object] = {}
    for name, value in asdict(row).items():
        if isinstance(value, Mapping):
            cells |= {f"{name.removesuffix('s')}_{key}": cell for key, cell in value.items()}
        else:
            cells[name] = "" if value is None else value
    return cells
