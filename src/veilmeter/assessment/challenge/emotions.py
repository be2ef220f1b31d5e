"""The emotion sets of a VoicePrivacy challenge: how well emotions are recognized before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from veilmeter.assessment.extraction import embed_whole
from veilmeter.assessment.settings import Settings
from veilmeter.assessment.tasks import single_threaded
from veilmeter.core.engine import Engine, Say, ShowProgress, open_engine
from veilmeter.core.errors import InputError, Problem
from veilmeter.core.estimate import Estimate
from veilmeter.data.formats.vpc import TwoSides
from veilmeter.data.matching import match
from veilmeter.metrics.utility.labels import label_estimates

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
