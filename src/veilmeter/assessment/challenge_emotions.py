"""The emotion sets of a VoicePrivacy challenge: how well emotions can still be told from its anonymized speech."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from veilmeter.assessment.audio import embed_whole
from veilmeter.assessment.settings import Settings
from veilmeter.assessment.tasks import single_threaded
from veilmeter.core.engine import Engine, Say, ShowProgress, open_engine
from veilmeter.core.errors import InputError, Problem
from veilmeter.core.estimate import Estimate
from veilmeter.data.formats.vpc_sets import TwoSides
from veilmeter.data.matching import match
from veilmeter.metrics.utility.labels import label_estimates

LABEL = "emotion"


@dataclass(frozen=True, slots=True, eq=False)
class Emotions:
    """How well emotions are told in one emotion set such as `IEMOCAP_test`, by what the classifier learned from and
    what it reads; `left_out` recordings could not be used."""

    name: str
    estimates: tuple[Estimate, ...]
    left_out: int = 0

    @property
    def dataset(self) -> str:
        return self.name.rpartition("_")[0]

    @property
    def split(self) -> str:
        return self.name.rpartition("_")[2]


def measure_emotions(
    pairs: Sequence[TwoSides],
    settings: Settings,
    *,
    jobs: int,
    cluster: str | None,
    say: Say,
    progress: ShowProgress,
) -> tuple[list[Emotions], list[Problem]]:
    """The sets whose emotions can be told, and why the others were not used."""
    measured, problems = [], []
    reason = _why_not(settings)
    with closing(open_engine(jobs, cluster)) as engine, single_threaded():
        for pair in pairs:
            what = reason or _not_named(pair, settings)
            try:
                if not what:
                    say(f"{pair.name}: {LABEL}s")
                    measured.append(_measured(pair, settings, engine, say, progress))
            except InputError as error:
                what = f"its {LABEL}s were not measured: {error}"
            if what:
                problems += [Problem("not-used", what, str(side.path), fatal=False) for side in pair.sides]
    return measured, problems


def _why_not(settings: Settings) -> str:
    if settings.wants("utility"):
        return ""
    return f"speech with {LABEL}s: not measured, as utility is not among what was asked for"


def _not_named(pair: TwoSides, settings: Settings) -> str:
    if not settings.sets or {pair.original.set, pair.name} & set(settings.sets):
        return ""
    return f"speech with {LABEL}s: not among the sets that were named; to measure it, add --sets {pair.name}"


def _measured(pair: TwoSides, settings: Settings, engine: Engine, say: Say, progress: ShowProgress) -> Emotions:
    corpora = pair.corpora(tuple(map(Path, settings.root)))
    heard, left_out = [], 0
    for corpus in corpora:
        with progress(f"listening to {corpus.variant}") as shown:
            embeddings, facts = embed_whole(
                corpus,
                settings.extractor[0],
                engine,
                offline=settings.offline,
                strict=settings.strict,
                progress=shown,
                say=say,
            )
        heard.append(embeddings)
        left_out += sum(problem.fatal for problem in facts["problems"])
    matched = match(*heard)
    estimates = label_estimates(matched.original, matched.anonymized, LABEL, seed=settings.seed)
    return Emotions(pair.name, tuple(estimates), left_out + len(matched.left_out))
