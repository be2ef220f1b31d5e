"""Attackers whose extractor is fine-tuned on anonymized speech: the tuned extractor's view of the anonymized corpus."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from veilmeter.assessment.material import Material, merge
from veilmeter.assessment.settings import AttackerSettings, Settings, attacker_names
from veilmeter.attacks.knowledge import ATTACKERS
from veilmeter.core.engine import Engine
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings


def wanted(settings: Settings) -> list[str]:
    """The adapted attackers that shall be fine-tuned and whose vectors were not given."""
    found = []
    for name in attacker_names(settings):
        options = settings.attackers.get(name, AttackerSettings())
        how = options.adaptation or settings.adaptation
        if ATTACKERS[name].adapted and how == "finetune" and not options.anonymized and not options.plda:
            if getattr(settings, role_of(name)):
                found.append(name)
            elif name == "informed":
                raise InputError(
                    "the informed attacker can't be fine-tuned: there is no training speech",
                    fix="give --train-anonymized CORPUS (audio), or --adaptation backend",
                )
    return found


def role_of(name: str) -> str:
    return "train_anonymized" if ATTACKERS[name].adaptation == "same system" else "train_similar"


def tuned_vectors(
    name: str,
    materials: Mapping[str, Material],
    settings: Settings,
    folder: Path | None,
    engine: Engine,
    progress: Callable[[int, int], None] | None,
) -> tuple[Embeddings, str]:
    """Fine-tune, or go on with it, then listen to the anonymized corpus again."""
    from veilmeter.assessment.audio import embed_whole
    from veilmeter.attacks.finetune import Training, finetune

    training, heard = materials.get(role_of(name)), materials["anonymized"]
    if training is None or not training.corpora or not heard.corpora:
        raise InputError(
            f"the {name} attacker can't be fine-tuned on vectors: it needs audio, both to assess and to train on",
            fix="give corpora of audio, or --adaptation backend",
        )
    with tempfile.TemporaryDirectory() as scratch:
        done = finetune(
            training.corpora,
            folder or scratch,
            spec=settings.network or settings.extractor,
            training=Training(epochs=settings.epochs, seed=settings.seed),
            offline=settings.offline,
            progress=progress,
        )
        parts = [embed_whole(corpus, done.spec, engine, offline=settings.offline)[0] for corpus in heard.corpora]
    vectors = parts[0] if len(parts) == 1 else merge(parts, "anonymized")
    losses = f"loss {done.losses[0]:.2f} to {done.losses[-1]:.2f} in {len(done.losses)} epochs"
    return vectors, f"fine-tuned on {done.utterances} recordings of {done.speakers} other speakers ({losses})"
