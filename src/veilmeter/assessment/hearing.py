"""The same case heard by a further extractor: every attacker once more, and all extractors together.

What people say and how is heard in the same way: `words` and `rhythm` are extractors that leave the voice aside.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from veilmeter.assessment.experiment import Experiment, attacker_runs
from veilmeter.assessment.reading import HeardRun, Reader, covering
from veilmeter.assessment.settings import TRAINING, Settings
from veilmeter.core.errors import InputError
from veilmeter.data.matching import match
from veilmeter.speech.extractors.base import extractor_label

SIDES = ("original", "anonymized", *TRAINING)


def further_hearings(
    settings: Settings, reader: Reader, base: Experiment, runs: Sequence[HeardRun]
) -> dict[str, Experiment]:
    """The case as each extractor after the first hears it, by the extractor's short name."""
    return {extractor_label(spec): heard_by(spec, settings, reader, base, runs) for spec in settings.extractor[1:]}


def heard_by(spec: str, settings: Settings, reader: Reader, base: Experiment, runs: Sequence[HeardRun]) -> Experiment:
    """The case `base` with the vectors of this extractor, from the recordings that were read before."""
    roles = [role for role in SIDES if role in reader.speech]
    unheard = [role for role in roles if not reader.speech[role].corpora]
    if unheard or any(not heard.corpora for heard in runs):
        what = unheard[0].replace("_", " ") if unheard else "an attacker's run"
        raise InputError(
            f"a further extractor ({spec}) needs recordings, and {what} is vectors",
            fix="give recordings everywhere, or one extractor",
        )
    again = replace(reader, settings=replace(settings, extractor=(spec,)), findings=[], speech={})
    for role in roles:
        again.read(role, list(reader.speech[role].corpora))
    matched = covering(
        base.matched, match(again.speech["original"].embeddings, again.speech["anonymized"].embeddings), spec
    )
    heard = []
    for number, run in enumerate(runs, 1):
        speech = again.read(f"attacker_run_{number}", list(run.corpora))
        assert speech is not None
        heard.append(replace(run.run, vectors=speech.embeddings))
    return replace(
        base,
        matched=matched,
        training={role: again.speech[role] for role in roles if role.startswith("train_")},
        runs=attacker_runs(matched.original, matched.anonymized, heard, made_here=settings.runs_system),
        own={},
    )
