"""Attackers whose extractor is fine-tuned on anonymized speech: what it hears in released speech and in runs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from veilmeter.assessment.attacker_runs import enrollment_of
from veilmeter.assessment.experiment import OwnExtractor, match_runs
from veilmeter.assessment.inputs import RunAudio
from veilmeter.assessment.settings import Settings, attacker_names
from veilmeter.assessment.speech import Speech, merge
from veilmeter.attacks.attacker import ATTACKERS
from veilmeter.attacks.vector_attackers import AdaptedAttacker
from veilmeter.core.engine import Engine
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding
from veilmeter.data.corpus import Corpus
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.matching import Matched, match


def to_be_tuned(settings: Settings) -> list[str]:
    """The adapted attackers that shall be fine-tuned and whose vectors were not given."""
    names = []
    for name in attacker_names(settings):
        options, known = settings.of_attacker(name), ATTACKERS[name]
        how = options.adaptation or settings.adaptation
        if isinstance(known, AdaptedAttacker) and how == "finetune" and not options.anonymized and not options.plda:
            if getattr(settings, known.training) or (settings.runs_system and settings.train_original):
                names.append(name)
            elif known.cross_validates:
                raise InputError(
                    f"the {name} attacker can't be fine-tuned without training speech",
                    fix="give --train-anonymized CORPUS (audio), or --adaptation backend",
                )
    return names


def tune_extractor(
    name: str,
    speech: Mapping[str, Speech],
    matched: Matched,
    runs: Sequence[RunAudio],
    enrollment: Sequence[str],
    settings: Settings,
    folder: Path | None,
    engine: Engine,
    progress: Callable[[int, int], None] | None,
) -> OwnExtractor:
    """Fine-tune the extractor, or go on with it, then extract the released speech and the attackers' runs again.

    The attackers' own copies of the enrollment are training speech, too.
    """
    from veilmeter.attacks.finetune import Training, finetune

    training, heard = speech.get(ATTACKERS[name].training), speech["anonymized"]
    if training is None or not training.corpora or not heard.corpora:
        raise InputError(
            f"the {name} attacker can't be fine-tuned on vectors: it needs audio, both to assess and to train on",
            fix="give corpora of audio, or --adaptation backend",
        )
    wanted = set(enrollment)
    copies = [part for run in runs if run.run.own for corpus in run.corpora if (part := enrollment_of(corpus, wanted))]
    with tempfile.TemporaryDirectory() as scratch:
        done = finetune(
            [*training.corpora, *copies],
            folder or scratch,
            spec=settings.network or settings.first_extractor,
            training=Training(epochs=settings.epochs, seed=settings.seed),
            offline=settings.offline,
            progress=progress,
        )
        released = _extract(heard.corpora, done.spec, engine, settings)
        again = [
            replace(run.run, vectors=_extract(run.corpora, done.spec, engine, settings)) for run in runs if run.corpora
        ]
    own = match(matched.original, released)
    speakers = set(training.embeddings.names)
    about = Finding.of(
        "extractor_tuned",
        recordings=done.utterances,
        speakers=done.speakers if copies else len(speakers),
        assessed=len(speakers & set(matched.original.names)),
        own_copies=bool(copies),
        epochs=len(done.losses),
        first_loss=float(done.losses[0]),
        last_loss=float(done.losses[-1]),
    )
    return OwnExtractor(
        own, match_runs(own.original, own.anonymized, again), about, tuned=True, tuned_on_copies=bool(copies)
    )


def _extract(corpora: Sequence[Corpus], spec: str, engine: Engine, settings: Settings) -> Embeddings:
    from veilmeter.assessment.extraction import embed_whole

    parts = [embed_whole(corpus, spec, engine, offline=settings.offline)[0] for corpus in corpora]
    return parts[0] if len(parts) == 1 else merge(parts, "anonymized")
