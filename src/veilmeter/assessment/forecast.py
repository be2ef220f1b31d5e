"""The work that an assessment will take, from its recordings and options, before the first recording is read.

Costs are processor seconds on an ordinary core, per second of speech unless noted otherwise. An estimate starts with
them and is corrected by the speed of this machine at each kind of work (`stages.py`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veilmeter.anonymizers.anonymize_corpus import manifest_path
from veilmeter.assessment.inputs import FOLDER, RUNS, release_folder, run_name
from veilmeter.assessment.settings import Settings, attacker_names
from veilmeter.assessment.speech import Corpora, Speech, as_list, attackers_to_tune, split_draw
from veilmeter.assessment.stages import Stage, Work
from veilmeter.core.devices import device_mark
from veilmeter.core.errors import InputError
from veilmeter.core.files import read_input_json
from veilmeter.data.corpus import FURTHER, SIDES, Corpus, SpeechRole

EXTRACTION = 0.015
ANONYMIZING = {"mcadams": 0.005, "xvector-pool": 0.09, "cascade": 0.4, "cascade voice=fast": 0.06}
OTHER_SYSTEM = 0.05
TUNING = 0.05  # per epoch, too
MEASURING, MEASURING_PERSON = 8.0, 0.05  # seconds of one extractor, and seconds per person
DUPLICATES = 0.003
ENROLLED = 0.5  # of the recordings
HEADERS = 200  # files of a corpus whose header is read
TENTH = 0.1  # of the time that extraction takes, for utility


def extraction_cost(speech: Iterable[Speech]) -> float:
    """Of the recordings that vectors were extracted from, in seconds."""
    return sum(EXTRACTION * 3600 * (role.facts.hours or 0.0) for role in speech if role.is_audio)


def utility_budget(settings: Settings, extraction: float) -> float:
    """Processor seconds for utility, where extraction takes so many."""
    from veilmeter.assessment.utility import BUDGET

    return settings.utility_budget or max(BUDGET, TENTH * extraction)


def measuring_work(settings: Settings, people: int, *, after: bool = False) -> Work:
    """Attackers and measures on the vectors of one extractor."""
    how = "" if settings.intervals else " without intervals"
    kind = f"measuring, {len(attacker_names(settings))} attackers{how}"
    return Work(Stage.MEASURING, kind, MEASURING + MEASURING_PERSON * people, after=after)


def forecast_work(
    settings: Settings, sources: Mapping[SpeechRole, Any], corpora: Corpora, folder: Path | None
) -> list[Work]:
    """All work from the first extraction to the end; nothing for vectors, of which nothing is known before they are
    read. `corpora` are the recordings that lists name."""
    speech = {}
    for role, source in sources.items():
        items = [_place(item, role) if isinstance(item, str | Path) else item for item in as_list(source)]
        found = [corpora.get((role, item)) if isinstance(item, str) else item for item in items]
        speech[role] = [_Recordings(corpus, _duration(corpus)) for corpus in found if isinstance(corpus, Corpus)]
    return _Outline(settings, speech, folder).work() if speech.get(SpeechRole.ORIGINAL) else []


def _place(source: str | Path, role: SpeechRole) -> str:
    return str(Path(split_draw(str(source))[0] if role is SpeechRole.ATTACKER_RUN else source))


def _duration(corpus: Corpus) -> float:
    """Seconds of speech, by the headers of some files."""
    from veilmeter.assessment.utility import header_seconds

    some = corpus.utterances[:: max(1, len(corpus) // HEADERS)]
    return len(corpus) * sum(map(header_seconds, some)) / len(some) if some else 0.0


@dataclass(frozen=True, eq=False)
class _Recordings:
    """A corpus, or one that is still to be made from it, and its seconds of speech."""

    corpus: Corpus
    seconds: float
    share: float = 1.0

    def copy(self, folder: Path, share: float = 1.0) -> _Recordings:
        return _Recordings(replace(self.corpus, root=folder), share * self.seconds, share)

    @property
    def items(self) -> int:
        return round(self.share * len(self.corpus))

    def has_vectors(self, extractor: str) -> bool:
        """Whether the cache has vectors of as many recordings."""
        from veilmeter.assessment.extraction import cache_for

        try:
            kept = read_input_json(cache_for(self.corpus, extractor) / "embeddings.json")
            return int(kept["utterances"]) + int(kept["left_out"]) >= self.items
        except (InputError, OSError, KeyError, TypeError, ValueError):
            return False


class _Outline:
    """The planned work on each set of recordings."""

    def __init__(self, settings: Settings, speech: dict[SpeechRole, list[_Recordings]], folder: Path | None) -> None:
        self.settings, self.speech, self.folder = settings, speech, folder

    def work(self) -> list[Work]:
        settings, first = self.settings, self.settings.first_extractor
        work = [*self._make_copies(), *self._read(first)]
        for name in attackers_to_tune(settings):
            speech = (self.speech.get(role, ()) for role in SpeechRole if role.is_training)
            seconds = TUNING * settings.epochs * _total(part for parts in speech for part in parts)
            details = f"the extractor of the {name} attacker"
            work.append(Work(Stage.FINE_TUNING, f"fine-tuning {settings.network or first}", seconds, details))
        people = len({u.speaker for part in self.speech[SpeechRole.ORIGINAL] for u in part.corpus})
        both = [part for side in SIDES for part in self.speech.get(side, ())]
        work.append(measuring_work(settings, people))
        work.append(Work(Stage.DUPLICATES, "looking for duplicates", DUPLICATES * _total(both)))
        for spec in settings.extractor[1:]:
            later = [*self._read(spec), measuring_work(settings, people)]
            work += [replace(entry, after=True) for entry in later]
        if settings.wants("utility") and all(self.speech.get(side) for side in SIDES):
            work.append(self._utility(_total(both)))
        return [entry for entry in work if entry.seconds]

    def _make_copies(self) -> list[Work]:
        """The runs of the anonymizer that are made here; what they make is speech from then on."""
        speech, folder = self.speech, self.folder
        if not self.settings.runs_system or folder is None:
            return []
        work = []
        for clear, hidden in ((SpeechRole.ORIGINAL, SpeechRole.ANONYMIZED), (*FURTHER.values(),)):
            if speech.get(clear) and not speech.get(hidden):
                speech[hidden] = [part.copy(release_folder(folder, part.corpus)) for part in speech[clear]]
                work += self._anonymize(Stage.RELEASE, speech[hidden])
        runs = range(1, (self.settings.system_runs or RUNS) + 1)
        training = speech.get(SpeechRole.TRAIN_ORIGINAL, [])
        if training and not speech.get(SpeechRole.TRAIN_ANONYMIZED):
            speech[SpeechRole.TRAIN_ANONYMIZED] = [
                part.copy(folder / FOLDER / f"training-{run}" / part.corpus.root.name)
                for run in runs
                for part in training
            ]
            work += self._anonymize(Stage.TRAINING, speech[SpeechRole.TRAIN_ANONYMIZED])
        enrolled = [*speech[SpeechRole.ORIGINAL], *speech.get(SpeechRole.DISTRACTORS_ORIGINAL, [])]
        speech[SpeechRole.ATTACKER_RUN] = []
        for run in runs:
            made = [part.copy(folder / FOLDER / f"run-{run}" / part.corpus.root.name, ENROLLED) for part in enrolled]
            speech[SpeechRole.ATTACKER_RUN] += made
            work += self._anonymize(Stage.ATTACKER_RUNS, made, f"run {run}")
        return work

    def _anonymize(self, stage: Stage, parts: Sequence[_Recordings], details: str = "") -> list[Work]:
        settings = self.settings
        system = settings.anonymizer
        options = [*settings.option, *([settings.command] if settings.command else [])]
        mark = hashlib.sha256("\0".join(options).encode()).hexdigest()[:8] if options else ""
        missing = [part for part in parts if not manifest_path(part.corpus.root).is_file()]
        seconds = _anonymizing_rate(settings) * _total(missing)
        items = sum(part.items for part in parts)
        return [Work(stage, f"anonymizing by {system} {mark}".rstrip(), seconds, details, items)]

    def _read(self, extractor: str) -> list[Work]:
        """Extraction from the recordings of every role."""
        from veilmeter.assessment.extraction import is_of_words
        from veilmeter.speech.recognizers.base import DEFAULT, recognizer_cost

        cost, kind = EXTRACTION, f"extracting by {extractor}{device_mark()}"
        if is_of_words(extractor):
            recognizer = self.settings.recognizer or DEFAULT
            cost, kind = (
                0.0 if ":" in extractor else recognizer_cost(recognizer),
                f"transcribing by {recognizer}{device_mark()}",
            )
        work = []
        for role, parts in self.speech.items():
            groups = {"": parts}
            if role is SpeechRole.ATTACKER_RUN and len(parts) > 1:
                groups = {run_name(number): [part] for number, part in enumerate(parts, 1)}
            stage = Stage.READING_RUNS if role is SpeechRole.ATTACKER_RUN else Stage.READING
            for name, group in groups.items():
                missing = [part for part in group if not part.has_vectors(extractor)]
                items = sum(part.items for part in group)
                work.append(Work(stage, kind, cost * _total(missing), (name or role).replace("_", " "), items))
        return work

    def _utility(self, seconds: float) -> Work:
        """Of both sides together; transcripts that are kept need no time, and say nothing of the speed."""
        from veilmeter.assessment.extraction import annotation_folder
        from veilmeter.assessment.utility import UtilitySettings, utility_cost
        from veilmeter.speech.recognizers.base import DEFAULT

        settings = self.settings
        recognizer = settings.recognizer or DEFAULT
        how = UtilitySettings(
            recognizer=recognizer,
            recordings=settings.utility_recordings,
            rated=settings.utility_rated,
            budget=utility_budget(settings, EXTRACTION * seconds),
        )
        pairs = sum(part.items for part in self.speech[SpeechRole.ORIGINAL])
        sides = [[annotation_folder(part.corpus) for part in self.speech[side]] for side in SIDES]
        kept = sum(all(any(folder.glob("transcripts-*.jsonl")) for folder in folders) for folders in sides)
        kind = "" if kept else f"utility by {recognizer}{device_mark()}"
        return Work(Stage.UTILITY, kind, (1 - kept / 2) * utility_cost(pairs, seconds, how), after=True)


def _anonymizing_rate(settings: Settings) -> float:
    """Seconds per second of speech; an option may make a system faster."""
    names = [*(f"{settings.anonymizer} {option}" for option in settings.option), settings.anonymizer]
    return next((ANONYMIZING[name] for name in names if name in ANONYMIZING), OTHER_SYSTEM)


def _total(parts: Iterable[_Recordings]) -> float:
    return sum(part.seconds for part in parts)
