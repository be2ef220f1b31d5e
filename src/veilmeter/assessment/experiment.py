"""The experiment: the two sides, who is enrolled and tried, and what attackers have beside that.

Some attackers have their own extractor, given as vectors or fine-tuned on anonymized speech; further extractors make
the same experiment with other vectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from veilmeter.assessment.inputs import InputReader, RunAudio, enrollment_of, match_runs, run_name
from veilmeter.assessment.protocol import Protocol
from veilmeter.assessment.settings import Settings
from veilmeter.assessment.speech import Speech, attackers_to_tune, merge, side_vectors
from veilmeter.assessment.stages import Stage
from veilmeter.attacks.attacker import ATTACKERS
from veilmeter.attacks.material import AttackerRun, EnrollmentCopies, NotPossibleError
from veilmeter.core.engine import Engine, Progress
from veilmeter.core.errors import InputError
from veilmeter.core.files import scratch_folder
from veilmeter.core.findings import Finding, warning
from veilmeter.data.corpus import Corpus, SpeechRole
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.matching import Matched, match
from veilmeter.results.criteria import LEAST_GROUP
from veilmeter.speech.extractors.base import extractor_label

NOT_OF_A_PERSON = ("session", "duration", "text", "path", "part", "set", "role", "language")


@dataclass(frozen=True, eq=False)
class OwnExtractor:
    """The vectors of an attacker's own extractor: both sides and its runs; `about` describes the extractor."""

    matched: Matched
    runs: tuple[AttackerRun, ...] = ()
    about: Finding = Finding("own_extractor_given")  # noqa: RUF009 - frozen
    tuned: bool = False
    tuned_on_copies: bool = False


@dataclass(frozen=True, eq=False, kw_only=True)
class Experiment:
    """The two sides that are compared. `runs` are the attackers' runs, by the ids and speakers of the originals; `own`
    the vectors of attackers with their own extractor; `groups` the people by attribute and value, for results within
    groups."""

    matched: Matched
    protocol: Protocol
    training: Mapping[SpeechRole, Speech] = field(default_factory=dict)
    runs: tuple[AttackerRun, ...] = ()
    own: Mapping[str, OwnExtractor] = field(default_factory=dict)
    groups: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    _parts: dict[tuple[int, str], tuple[Embeddings, Embeddings]] = field(default_factory=dict, init=False, repr=False)

    def enrollment(self, side: Embeddings) -> Embeddings:
        """The recordings that people are known by, as this side has them."""
        return self._part(side, "enrollment")

    def trials(self, side: Embeddings) -> Embeddings:
        """The recordings that are to be recognized, as this side has them."""
        return self._part(side, "trials")

    def _part(self, side: Embeddings, name: str) -> Embeddings:
        """One object for all attackers: those of thousands of people fill the memory."""
        key = (id(side), name)
        if key not in self._parts:
            self._parts[key] = side, side.of_utterances(getattr(self.protocol, name))  # kept: its id stands for it
        return self._parts[key][1]

    @property
    def original(self) -> Embeddings:
        return self.matched.original

    @property
    def anonymized(self) -> Embeddings:
        return self.matched.anonymized

    def sides_of(self, attacker: str) -> Matched:
        return self.own[attacker].matched if attacker in self.own else self.matched

    def runs_of(self, attacker: str) -> tuple[AttackerRun, ...]:
        return self.own[attacker].runs if attacker in self.own else self.runs

    def copies(self, attacker: str = "") -> EnrollmentCopies:
        """The enrollment recordings as the attacker anonymized them; the released ones where it has no run."""
        wanted = self.protocol.enrollment
        runs = self.runs_of(attacker)
        if not runs:
            shared = warning("own_extractor_without_run", attacker=attacker)
            copies = self.enrollment(self.sides_of(attacker).anonymized)
            return EnrollmentCopies(copies, (shared,) if self.runs else ())
        there = {u: run.vectors for run in reversed(runs) for u in run.vectors.utterances}
        kept = [u for u in wanted if u in there]
        if not kept:
            raise NotPossibleError(Finding("runs_without_enrollment"))
        vectors = np.stack([there[u].vectors[there[u].utterance_rows[u]] for u in kept])
        known = self.enrollment(self.sides_of(attacker).original)
        enrolled = known.of_utterances(kept).with_vectors(vectors)
        if len(kept) == len(wanted):
            return EnrollmentCopies(enrolled)
        lost, people = len(wanted) - len(kept), len(known.names) - len(enrolled.names)
        return EnrollmentCopies(enrolled, (warning("runs_lack_enrollment", recordings=lost, speakers=people),))


def build_experiment(reader: InputReader, matched: Matched, protocol: Protocol, runs: Sequence[RunAudio]) -> Experiment:
    """The experiment of the first extractor; extractors of attackers are fine-tuned here."""
    return Experiment(
        matched=matched,
        protocol=protocol,
        training={role: speech for role, speech in reader.speech.items() if role.is_training},
        runs=tuple(run.run for run in runs),
        own={**own_extractors(reader, matched), **_tune_extractors(reader, matched, protocol, runs)},
        groups=group_people(matched.original, reader.settings.by),
    )


def own_extractors(reader: InputReader, base: Matched) -> dict[str, OwnExtractor]:
    """The vectors of attackers with their own extractor, by attacker, where they were given."""
    own: dict[str, OwnExtractor] = {}
    for name, options in reader.settings.attackers.items():
        if options.has_own_vectors:
            given = reader.read_own_vectors(name, options)
            matched = match(
                base.original if given.original is None else given.original,
                base.anonymized if given.anonymized is None else given.anonymized,
            )
            _require_cover(base, matched, f"attackers.{name}")
            own[name] = OwnExtractor(matched, match_runs(matched.original, matched.anonymized, given.runs))
    return own


def _require_cover(base: Matched, own: Matched, whose: str) -> None:
    """The vectors of a further extractor must cover what is assessed."""
    missing = [u for u in base.original.utterances if u not in own.original.utterance_rows]
    if missing:
        raise InputError(
            f"{whose}: {len(missing)} of the {len(base)} assessed recordings have no vector of this extractor, the "
            f"first is {missing[0]!r}",
            path=own.anonymized.source or None,
            fix="give vectors of all assessed recordings",
        )


def further_experiments(reader: InputReader, base: Experiment, runs: Sequence[RunAudio]) -> dict[str, Experiment]:
    """The experiment with the vectors of each extractor after the first, by the extractor's short name."""
    return {extractor_label(spec): _experiment_by(spec, reader, base, runs) for spec in reader.settings.extractor[1:]}


def further_labels(settings: Settings) -> list[str]:
    """The short names of the extractors after the first."""
    return [extractor_label(spec) for spec in settings.extractor[1:]]


def _experiment_by(spec: str, reader: InputReader, base: Experiment, runs: Sequence[RunAudio]) -> Experiment:
    """The experiment `base` with the vectors of this extractor, from the recordings that were read before."""
    vectors_only = [role for role, speech in reader.speech.items() if not speech.corpora]
    if vectors_only or any(not run.corpora for run in runs):
        what = vectors_only[0].replace("_", " ") if vectors_only else "an attacker's run"
        raise InputError(
            f"a further extractor ({spec}) needs recordings, and {what} is vectors",
            fix="give recordings everywhere, or one extractor",
        )
    again: dict[SpeechRole, Speech] = {}
    for role in sorted(reader.speech, key=list(SpeechRole).index):
        speech = reader.read(role, list(reader.speech[role].corpora), extractor=spec)
        assert speech is not None
        again[role] = speech
    matched = match(*side_vectors(again))
    _require_cover(base.matched, matched, spec)
    extracted = []
    for number, run in enumerate(runs, 1):
        name = run_name(number)
        speech = reader.read(SpeechRole.ATTACKER_RUN, list(run.corpora), name=name, extractor=spec)
        assert speech is not None
        extracted.append(replace(run.run, vectors=speech.embeddings))
    return replace(
        base,
        matched=matched,
        training={role: speech for role, speech in again.items() if role.is_training},
        runs=match_runs(matched.original, matched.anonymized, extracted, made_here=reader.settings.runs_system),
        own={},
    )


def _tune_extractors(
    reader: InputReader, matched: Matched, protocol: Protocol, runs: Sequence[RunAudio]
) -> dict[str, OwnExtractor]:
    own = {}
    for name in attackers_to_tune(reader.settings):
        reader.log.stage(Stage.FINE_TUNING, f"the extractor of the {name} attacker")
        folder = None if reader.folder is None else reader.folder / "finetuned" / name
        with reader.log.progress() as progress:
            own[name] = _tune_extractor(name, reader, matched, runs, protocol.enrollment, folder, progress)
    return own


def _tune_extractor(
    name: str,
    reader: InputReader,
    matched: Matched,
    runs: Sequence[RunAudio],
    enrollment: Sequence[str],
    folder: Path | None,
    progress: Progress | None,
) -> OwnExtractor:
    """Fine-tune the extractor, or continue, then extract the released speech and the attackers' runs again.

    The attackers' own copies of the enrollment are training speech, too.
    """
    from veilmeter.attacks.finetune import Training, finetune

    settings, engine, role = reader.settings, reader.engine, ATTACKERS[name].training
    training = None if role is None else reader.speech.get(role)
    assessed = reader.speech[SpeechRole.ANONYMIZED]
    if training is None or not training.corpora or not assessed.corpora:
        raise InputError(
            f"the {name} attacker can't be fine-tuned on vectors: it needs audio, both to assess and to train on",
            fix="give corpora of audio, or --adaptation backend",
        )
    wanted = set(enrollment)
    copies = [part for run in runs if run.run.own for corpus in run.corpora if (part := enrollment_of(corpus, wanted))]
    with scratch_folder() as scratch:
        done = finetune(
            [*training.corpora, *copies],
            folder or scratch,
            spec=settings.network or settings.first_extractor,
            training=Training.of(settings.tuning, epochs=settings.epochs, seed=settings.seed, device=settings.device),
            offline=settings.offline,
            progress=progress,
        )
        further = reader.speech.get(SpeechRole.DISTRACTORS)
        corpora = assessed.corpora + (further.corpora if further is not None else ())
        released = _extract(corpora, done.spec, engine, settings)
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


def group_people(original: Embeddings, asked: Sequence[str] | None) -> dict[str, dict[str, str]]:
    """People by attribute: those asked for, or the genders where they are known; and the languages, as an extractor may
    not recognize people in all of them.

    A person belongs to one group: an attribute that varies within people (a session, an emotion) is refused.
    """
    language = "language" if "language" in original.attributes else "locale"
    wanted = dict.fromkeys((*(("gender",) if asked is None else asked), language))
    required = () if asked is None else asked
    groups: dict[str, dict[str, str]] = {}
    for attribute in wanted:
        column = original.attributes.get(attribute)
        if column is None:
            if attribute not in required:
                continue
            known = ", ".join(sorted(original.attributes)) or "none"
            raise InputError(f"can't group by {attribute!r}: unknown attribute", fix=f"choose from {known}")
        values: dict[str, set[str]] = {}
        for speaker, value in zip(original.speakers, column, strict=True):
            if value:
                values.setdefault(speaker, set()).add(value)
        varying = [speaker for speaker, several in values.items() if len(several) > 1]
        if varying:
            if attribute not in required:
                continue
            raise InputError(
                f"{attribute} varies within {len(varying)} of {len(original.names)} speakers, so that people can't be "
                "grouped by it",
                fix="group by what belongs to a person, or assess the recordings of each value apart",
            )
        people = {speaker: next(iter(own)) for speaker, own in values.items()}
        if len(set(people.values())) > 1 or attribute in required:
            groups[attribute] = people
    return groups | _combine(groups)


def _combine(groups: Mapping[str, Mapping[str, str]]) -> dict[str, dict[str, str]]:
    """People by all attributes together, where at least two combinations have enough people: what is kept of a voice
    may be several attributes and nothing else."""
    known = set.intersection(*map(set, groups.values())) if len(groups) > 1 else set()
    people = {speaker: ", ".join(values[speaker] for values in groups.values()) for speaker in sorted(known)}
    sizes = Counter(people.values()).values()
    return {" and ".join(groups): people} if sum(size >= LEAST_GROUP for size in sizes) > 1 else {}
