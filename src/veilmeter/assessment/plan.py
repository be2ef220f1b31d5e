"""Who attacks with what: from the settings and the material to one job an attacker, and to what can't be tested."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from veilmeter.assessment.inverting import Known, curve_piece, inversion_piece
from veilmeter.assessment.material import Material
from veilmeter.assessment.measuring import Job, Undo
from veilmeter.assessment.pieces import (
    attacker_piece,
    inference_piece,
    runs_piece,
    score_sets_piece,
    scores_piece,
    sessions_piece,
    similarity_piece,
)
from veilmeter.assessment.protocol import Protocol
from veilmeter.assessment.settings import AttackerSettings, Settings, attacker_names
from veilmeter.assessment.tasks import Task
from veilmeter.attacks.backends.registry import BACKENDS
from veilmeter.attacks.backends.scoring import LEAST_SPEAKERS, KaldiFiles, Recipe
from veilmeter.attacks.knowledge import ATTACKERS, ORIGINAL, Attacker
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings
from veilmeter.data.matching import Matched, match

LEAST_PAIRS = 5
MOST_UNPAIRED = 2000  # its cost grows with the square of their number
GROUPED_ANYWAY = ("gender",)  # looked at where it is known and nothing else was asked for
NOT_OF_A_PERSON = ("session", "duration", "text", "path", "part")


@dataclass(frozen=True, eq=False)
class Inputs:
    """The material of a run, by role; `own` are the vectors of attackers with an extractor of their own.

    `again` is a second run of the anonymizer. What attackers anonymize themselves comes from there where it is given:
    they have the system, not the draws of the run that was released.
    """

    pairing: Matched
    training: Mapping[str, Material]
    own: Mapping[str, Matched]
    tuned: Mapping[str, str] = field(default_factory=dict)  # on what an attacker's extractor was fine-tuned
    again: Embeddings | None = None

    def by_attacker(self, released: Embeddings, utterances: Sequence[str]) -> Embeddings:
        """These utterances as the attacker anonymized them: of the second run, else of the released one."""
        if self.again is None or any(u not in self.again.utterance_rows for u in utterances):
            return released.of_utterances(utterances)
        return released.of_utterances(utterances).with_vectors(self.again.of_utterances(utterances).vectors)


@dataclass
class Plan:
    """The jobs by attacker, and what is left out and why."""

    jobs: dict[str, Job] = field(default_factory=dict)
    about: dict[str, dict[str, Any]] = field(default_factory=dict)
    not_tested: list[str] = field(default_factory=list)
    training: str = "none"
    folds: int | None = None


def make_plan(inputs: Inputs, protocol: Protocol, settings: Settings) -> Plan:
    plan = Plan()
    names = attacker_names(settings)
    groups = {
        attribute: dict(zip(inputs.pairing.original.speakers, column, strict=True))
        for attribute in settings.by or GROUPED_ANYWAY
        if (column := inputs.pairing.original.attributes.get(attribute)) is not None
    }
    missing = [attribute for attribute in settings.by if attribute not in groups]
    if missing:
        known = ", ".join(sorted(inputs.pairing.original.attributes)) or "none"
        raise InputError(f"there is no attribute {missing[0]!r} to group by", fix=f"there are: {known}")
    for one in [ORIGINAL, *(ATTACKERS[name] for name in names)]:
        options = settings.attackers.get(one.name, AttackerSettings())
        if one.inversion != "none" and not settings.wants("inversion"):
            continue
        try:
            job, about = _job(one, options, inputs, protocol, settings, groups, plan)
        except NotPossibleError as reason:
            if one is ORIGINAL:  # the yardstick: without it nothing else says anything
                raise InputError(f"the assessment can't be made: {reason}") from None
            plan.not_tested.append(f"{one.name} attacker: {reason}")
            continue
        plan.jobs[one.name] = job
        plan.about[one.name] = about
    plan.not_tested += [f"{one.name} attacker: not asked for" for one in ATTACKERS.values() if one.name not in names]
    return plan


class NotPossibleError(Exception):
    """This attacker lacks what it needs; the reason is for the reader of the report."""


def _job(
    one: Attacker,
    options: AttackerSettings,
    inputs: Inputs,
    protocol: Protocol,
    settings: Settings,
    groups: dict[str, dict[str, str]],
    plan: Plan,
) -> tuple[Job, dict[str, Any]]:
    pairing = inputs.own.get(one.name, inputs.pairing)
    sides = {"original": pairing.original, "anonymized": pairing.anonymized}
    if one.enrolment == "anonymized" and one.name not in inputs.own:
        enrol = inputs.by_attacker(pairing.anonymized, protocol.enrolment)
    else:
        enrol = sides[one.enrolment].of_utterances(protocol.enrolment)
    test = sides[one.trials].of_utterances(protocol.trials)
    if enrol.dimension != test.dimension:
        raise InputError(
            f"attackers.{one.name}: its enrolment vectors have {enrol.dimension} numbers, its trials {test.dimension}",
            fix=f"give both sides by its extractor: [attackers.{one.name}] original = .., anonymized = ..",
        )
    trained_on = ""
    undo: Undo | None = None
    if one.inversion != "none":
        undo = _undo(one, inputs, protocol, settings)
        recipe = Recipe()
        trained_on = f"{len(undo.clear)} enrolment recordings, clear and anonymized"
    elif one.adapted and one.name not in inputs.own and options.plda is None:
        recipe, trained_on = _adapted(one, options, inputs, protocol, settings, plan)
    else:
        kind = options.backend or settings.backend
        role = "train_original" if one.enrolment == "original" else "train_anonymized"
        material = inputs.training.get(role) or inputs.training.get("train_original")
        speech = None if material is None or kind == "centred-cosine" else material.embeddings
        if speech is None and BACKENDS[kind].needs_training and options.plda is None:
            raise NotPossibleError(f"the back end {kind} needs training speech (--train-original)")
        files = KaldiFiles.of(options.plda, options.mean, options.lda)
        recipe = Recipe(kind, speech, dimension=options.dimension, kaldi=files)
        if one.name in inputs.tuned:
            plan.training = "separate corpus"
        if one.name in inputs.own:
            trained_on = inputs.tuned.get(one.name, "an extractor of its own, whose vectors were given")
    job = Job(
        name=one.name,
        enrol=enrol,
        test=test,
        recipe=recipe,
        mask=protocol.mask(enrol.names, list(test.utterances)),
        lengths=settings.lengths,
        sizes=settings.speakers,
        population=settings.population,
        measures=_measured_anyway(one, settings),
        groups=groups,
        intervals=settings.intervals,
        resamples=settings.resamples,
        seed=settings.seed,
        undo=undo,
    )
    about = one.to_json() | {"trained_on": trained_on or "nothing of this assessment"}
    return job, about


def _measured_anyway(one: Attacker, settings: Settings) -> tuple[str, ...]:
    """What was asked for, and what the trust checks need: rates of linking, and the EER on original speech."""
    needed = ("linkability", "scores") if one is ORIGINAL else ("linkability",)
    return tuple(dict.fromkeys((*settings.measures, *needed)))


def _adapted(
    one: Attacker,
    options: AttackerSettings,
    inputs: Inputs,
    protocol: Protocol,
    settings: Settings,
    plan: Plan,
) -> tuple[Recipe, str]:
    kind = options.backend or settings.adapted_backend
    role = "train_anonymized" if one.adaptation == "same system" else "train_similar"
    material = inputs.training.get(role)
    if material is not None:
        plan.training = "separate corpus"
        speech = material.embeddings
        return Recipe(
            kind, speech, dimension=options.dimension
        ), f"{len(speech)} recordings of {len(speech.names)} other speakers"
    if one.adaptation == "similar system":
        raise NotPossibleError("no speech anonymized by a similar system was given (--train-similar)")
    if kind == "cosine":
        return Recipe(kind), ""
    # Everybody's protected speech, but never of the two people who are being compared.
    used = inputs.pairing.anonymized.of_utterances([*protocol.enrolment, *protocol.trials])
    if len(used.names) < LEAST_SPEAKERS:
        raise NotPossibleError(
            f"no training speech was given (--train-anonymized), and {len(used.names)} speakers are too few to "
            "train on some "
            "and test on others"
        )
    plan.training = "cross-validation by speaker"
    plan.folds = min(settings.folds, len(used.names))
    said = (
        f"the anonymized recordings of the assessed speakers themselves, in {plan.folds} folds: a pair of people is "
        "compared by an attacker that heard neither"
    )
    return Recipe(kind, used, plan.folds, settings.seed, options.dimension), said


def _undo(one: Attacker, inputs: Inputs, protocol: Protocol, settings: Settings) -> Undo:
    """The attacker runs the system on the speech that people are known by, as in Champion et al. 2021."""
    known = list(protocol.enrolment)
    if one.inversion == "wasserstein" and len(known) > MOST_UNPAIRED:
        rng = np.random.default_rng([settings.seed, 11])
        known = [known[i] for i in np.sort(rng.choice(len(known), MOST_UNPAIRED, replace=False))]
    clear = inputs.pairing.original.of_utterances(known)
    protected = inputs.by_attacker(inputs.pairing.anonymized, known)
    if clear.dimension != protected.dimension:
        raise NotPossibleError("clear and anonymized vectors differ in dimension")
    if len(known) < LEAST_PAIRS:
        raise NotPossibleError(f"{len(known)} recordings are too few to learn a rotation from")
    return Undo(clear, protected, one.inversion, settings.seed)


def all_pieces(
    plan: Plan,
    inputs: Inputs,
    protocol: Protocol,
    settings: Settings,
    keys: Sequence[str],
) -> list[Task]:
    """Everything there is to measure."""
    pairing = inputs.pairing
    pieces = []
    common = (settings.intervals, settings.resamples, settings.seed)
    trials = list(protocol.trials)
    clear, protected = pairing.original.of_utterances(trials), pairing.anonymized.of_utterances(trials)
    if settings.wants("similarity"):
        groups = next(iter(plan.jobs.values())).groups
        arguments: tuple[Any, ...] = (clear, protected, groups, settings.intervals, settings.seed)
        pieces.append(Task("similarity", similarity_piece, arguments))
    for name, job in plan.jobs.items():
        pieces.append(Task(f"attacker-{name}", attacker_piece, (job,), needed=name == "original"))
        options = settings.attackers.get(name)
        if options is not None and options.scores:
            arguments = (*score_files(options, keys), job.groups, *common)
            pieces.append(Task(f"scores-{name}", scores_piece, arguments, needed=True))
    if settings.wants("inversion") and clear.dimension == protected.dimension:
        pieces += _inversions(inputs, protocol, settings)
    needed = ("original", "ignorant", "lazy-informed")
    if settings.wants("scores") and all(name in plan.jobs for name in needed):
        given = {name: settings.attackers[name] for name in needed if name in settings.attackers}
        if len(given) == len(needed) and all(one.scores for one in given.values()):
            sets: dict[str, Any] = {name: score_files(one, keys) for name, one in given.items()}
        else:
            within = pairing.anonymized.of_utterances(protocol.enrolment)  # how distinct the voices of one run are
            sets = {name: plan.jobs[name] for name in needed}
            sets["lazy-informed"] = replace(plan.jobs["lazy-informed"], enrol=within)
        groups = next(iter(plan.jobs.values())).groups
        pieces.append(Task("zebra", score_sets_piece, (sets, groups, *common)))
    attributes = settings.attributes
    missing = [name for name in attributes or () if name not in pairing.original.attributes]
    if missing:
        known = ", ".join(sorted(pairing.original.attributes)) or "none"
        raise InputError(f"there is no attribute {missing[0]!r} to infer", fix=f"there are: {known}")
    if attributes is None:
        attributes = tuple(name for name in pairing.original.attributes if name not in NOT_OF_A_PERSON)
    if settings.wants("inference") and attributes:
        arguments = (clear, protected, attributes, settings.resamples, settings.intervals, settings.seed)
        pieces.append(Task("inference", inference_piece, arguments))
    if settings.wants("linkability") and _sessions(pairing.original):
        arguments = (pairing.original, pairing.anonymized, settings.intervals, settings.seed)
        pieces.append(Task("sessions", sessions_piece, arguments))
    if inputs.again is not None:
        pieces.append(_runs(plan, pairing, inputs.again, protocol))
    return pieces


def score_files(options: AttackerSettings, keys: Sequence[str]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """Scores of another system and their keys: the attacker's own, else those of the protocol."""
    return tuple(map(Path, options.scores)), tuple(map(Path, options.trials or keys))


def _sessions(embeddings: Embeddings) -> bool:
    """Whether some speaker has several known sessions."""
    column = embeddings.attributes.get("session")
    if column is None:
        return False
    known = {(speaker, session) for speaker, session in zip(embeddings.speakers, column, strict=True) if session}
    return len(known) > len({speaker for speaker, _ in known})


def _inversions(inputs: Inputs, protocol: Protocol, settings: Settings) -> list[Task]:
    enrolment, trials = list(protocol.enrolment), list(protocol.trials)

    def known(clear: Embeddings, protected: Embeddings, learnt: Embeddings | None = None) -> Known:
        learnt = protected.of_utterances(enrolment) if learnt is None else learnt
        return Known(
            clear.of_utterances(enrolment), learnt, clear.of_utterances(trials), protected.of_utterances(trials)
        )

    own = {
        name: known(inputs.pairing.original, pairing.anonymized)
        for name, pairing in inputs.own.items()
        if ATTACKERS[name].adapted
    }
    learnt = inputs.by_attacker(inputs.pairing.anonymized, enrolment)
    base = known(inputs.pairing.original, inputs.pairing.anonymized, learnt)
    if len(enrolment) < LEAST_PAIRS:
        return []
    return [
        Task("inversion", inversion_piece, (base, own, settings.intervals, settings.seed)),
        Task("inversion-curve", curve_piece, (base, settings.seed)),
    ]


def _runs(plan: Plan, pairing: Matched, again: Embeddings, protocol: Protocol) -> Task:
    """The second run: the same attackers on it, and enrolment of the first against trials of the second."""
    second = match(pairing.original, again)
    known = set(second.anonymized.utterances)
    enrolment = [u for u in protocol.enrolment if u in known]
    trials = [u for u in protocol.trials if u in known]
    if not enrolment or not trials:
        raise InputError("the second run has none of the assessed utterances", fix="give it the same corpus")
    rerun: dict[str, Job] = {}
    for name in ("ignorant", "lazy-informed"):
        if name in plan.jobs:
            job = plan.jobs[name]
            enrol = job.enrol if name == "ignorant" else second.anonymized.of_utterances(enrolment)
            test = second.anonymized.of_utterances(trials)
            mask = protocol.mask(enrol.names, list(test.utterances))
            rerun[name] = replace(job, enrol=enrol, test=test, mask=mask)
    if not rerun:
        raise InputError(
            "a second run is assessed with the ignorant or the lazy-informed attacker",
            fix="add one of them to --attackers",
        )
    base = next(iter(rerun.values()))
    enrol = pairing.anonymized.of_utterances(list(protocol.enrolment))
    across = replace(
        base,
        name="across runs",
        enrol=enrol,
        recipe=Recipe(),
        mask=protocol.mask(enrol.names, list(base.test.utterances)),
        measures=("scores", "linkability"),
        groups={},
    )
    first = {name: plan.jobs[name] for name in rerun}
    if "lazy-informed" in first:  # within the run, as in the second
        first["lazy-informed"] = replace(first["lazy-informed"], enrol=enrol)
    return Task("runs", runs_piece, (first, rerun, across), needed=True)


def attackers_of(plan: Plan, done: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]:
    """The attackers' entries of results.json, and each one's rows of speakers."""
    attackers: dict[str, Any] = {}
    rows: dict[str, list[dict[str, Any]]] = {}
    for name in plan.jobs:
        if f"attacker-{name}" not in done:
            continue
        one = done[f"attacker-{name}"][0]
        entry = plan.about[name] | {key: one[key] for key in ("backend", "estimates", "by", "profile", "det", "ties")}
        given = done.get(f"scores-{name}")
        if given is not None:
            # Scores of another system count where scores are measured; the rest stays with the vectors.
            scores = given[0]
            entry["backend"] = f"scores as given; {one['backend']} where vectors are compared"
            entry["estimates"] = one["estimates"] | scores["estimates"]
            entry["by"] = {
                attribute: {
                    value: {
                        "estimates": found["estimates"]
                        | scores["by"].get(attribute, {}).get(value, {}).get("estimates", {})
                    }
                    for value, found in values.items()
                }
                for attribute, values in one["by"].items()
            }
            entry |= {key: scores[key] for key in ("profile", "det", "ties")}
        attackers[name] = entry
        rows[name] = one["people"]
    return attackers, rows


def own_pairings(
    base: Matched, loaded: Mapping[str, tuple[Embeddings | None, Embeddings | None]]
) -> dict[str, Matched]:
    """The vectors of attackers with their own extractor, of the assessed utterances."""
    found: dict[str, Matched] = {}
    for name, (original, anonymized) in loaded.items():
        clear = base.original if original is None else original
        protected = base.anonymized if anonymized is None else anonymized
        found[name] = match(clear, protected)
    return found
