"""Who attacks with what: from the case and the settings to one job per attacker."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from veilmeter.assessment.attack import Job, MeasureOptions
from veilmeter.assessment.experiment import Experiment, NotPossibleError
from veilmeter.assessment.scoring import AttackScoring, Scoring, Undo, VectorComparison
from veilmeter.assessment.settings import AttackerSettings, Settings
from veilmeter.assessment.tuning import role_of, trained_people
from veilmeter.attacks.backends.registry import backend_kind
from veilmeter.attacks.backends.scoring import KaldiFiles, Recipe
from veilmeter.attacks.base import AttackerRun, Material, OtherPeople
from veilmeter.attacks.knowledge import FUSED, Attacker
from veilmeter.attacks.registry import ATTACKS
from veilmeter.core.errors import InputError
from veilmeter.data.embeddings import Embeddings, strings
from veilmeter.data.matching import match
from veilmeter.results.model import AttackerResult

LEAST_SPEAKERS = 6  # for cross-validation
LEAST_PAIRS = 5
MOST_UNPAIRED = 2000  # its cost grows with the square of their number
NOTHING = "nothing of this assessment"


def described(known: Attacker) -> AttackerResult:
    """What is known of an attacker before it attacks."""
    return AttackerResult(
        name=known.name,
        about=known.about,
        has=known.has(),
        aliases={"voiceprivacy": known.voiceprivacy, "vauquier2025": known.vauquier2025},
        reference=known.reference,
        apart=known.apart,
    )


@dataclass
class Used:
    """What attackers made use of, so that what nobody used can be said."""

    training: dict[str, set[str]] = field(default_factory=dict)  # role to the attackers that were trained on it
    backends: set[str] = field(default_factory=set)
    adapted_backends: set[str] = field(default_factory=set)
    copies: set[str] = field(default_factory=set)  # attackers that anonymize people's speech themselves
    folds: int | None = None

    def train(self, role: str, attacker: str) -> None:
        self.training.setdefault(role, set()).add(attacker)

    @property
    def training_words(self) -> str:
        if self.folds is not None:
            return "cross-validation by speaker"
        return "separate corpus" if self.training else "none"


@dataclass(frozen=True, eq=False)
class AttackerPlanner:
    """Makes the jobs of one assessment, and notes what they use; `further` make those of further extractors."""

    case: Experiment
    settings: Settings
    measure_options: MeasureOptions
    further: Mapping[str, AttackerPlanner] = field(default_factory=dict)
    used: Used = field(default_factory=Used)

    def job(self, known: Attacker, needed: Sequence[str] = ()) -> Job:
        """A NotPossibleError where this attacker lacks what it needs. `needed` are families of measures beside those
        that were asked for."""
        options = self.settings.of_attacker(known.name)
        sides = self.case.sides_of(known.name)
        test = self.case.tried(getattr(sides, known.trials))
        scoring, trained_on, remarks = self._scoring(known, options, test)
        result = replace(described(known), trained_on=trained_on)
        mask = self.case.protocol.mask(scoring.names, list(test.utterances))
        measure_options = replace(
            self.measure_options, measures=tuple(dict.fromkeys((*self.measure_options.measures, *needed)))
        )
        return Job(
            attacker=result, test=test, scoring=scoring, options=measure_options, mask=mask, remarks=tuple(remarks)
        )

    def _scoring(self, known: Attacker, options: AttackerSettings, test: Embeddings) -> tuple[Scoring, str, list[str]]:
        """How the attacker scores, on what it was trained, and what to say of its runs."""
        if known.attack:
            return self._attack(known), "", []
        enroll, remarks = self._enrollment(known)
        if enroll.dimension != test.dimension:
            raise InputError(
                f"attackers.{known.name}: its enrollment vectors have {enroll.dimension} numbers, its trials "
                f"{test.dimension}",
                fix=f"give both sides by its extractor: [attackers.{known.name}] original = .., anonymized = ..",
            )
        if known.inversion != "none":
            undo = self._undo(known)
            trained_on = f"{len(undo.clear)} enrollment recordings, clear and anonymized"
            return VectorComparison(enroll, undo=undo), trained_on, remarks
        kaldi = KaldiFiles.of(options.plda, options.mean, options.lda)
        own = self.case.own.get(known.name)
        if kaldi is not None:
            about = own.about if own is not None else "speech that Kaldi's back end was trained on"
            return VectorComparison(enroll, Recipe(kaldi=kaldi)), about, remarks
        if own is not None:
            if own.tuned:
                self.used.train(role_of(known), known.name)
            return VectorComparison(enroll, self._own_recipe(known, options)), own.about, remarks
        recipe, trained_on = (self._adapted if known.adapted else self._plain)(known, options)
        return VectorComparison(enroll, recipe), trained_on, remarks

    def _enrollment(self, known: Attacker) -> tuple[Embeddings, list[str]]:
        sides = self.case.sides_of(known.name)
        if known.enrollment == "original":
            return self.case.enrolled(sides.original), []
        copies = self.case.copies(known.name)
        if len(copies.vectors.names) < 2:
            raise NotPossibleError("the attacker's runs hold recordings of fewer than two enrolled people")
        self.used.copies.add(known.name)
        remarks = copies.remarks()
        if self.case.runs and not copies.own:
            remarks.append(
                "it enrolls from the released run, whose draws its trials share: the vectors of the attacker's run by "
                f"its own extractor were not given ([attackers.{known.name}] attacker_run =)"
            )
        return copies.vectors, remarks

    def _own_recipe(self, known: Attacker, options: AttackerSettings) -> Recipe:
        """Vectors of an extractor of its own: no training speech was heard by it."""
        kind = options.backend or self.settings.backend
        if backend_kind(kind).needs_training:
            raise InputError(
                f"attackers.{known.name}: the back end {kind} would be trained on another extractor's vectors",
                fix=f'compare its own vectors untrained ([attackers.{known.name}] backend = "centred-cosine") or by a '
                "plda file",
            )
        self.used.backends.add(kind)
        return Recipe(kind)

    def _plain(self, known: Attacker, options: AttackerSettings) -> tuple[Recipe, str]:
        """An attacker that adapts nothing: what its back end learns, it learns from original speech."""
        kind = options.backend or self.settings.backend
        self.used.backends.add(kind)
        if not backend_kind(kind).needs_training:
            return Recipe(kind), NOTHING
        speech = self.case.training.get("train_original")
        if speech is None:
            raise NotPossibleError(f"the back end {kind} needs training speech (--train-original)")
        self.used.train("train_original", known.name)
        vectors = speech.embeddings
        words = f"{len(vectors)} original recordings of {trained_people(vectors, self.case.original)}"
        return Recipe(kind, vectors, dimension=options.dimension), words

    def _adapted(self, known: Attacker, options: AttackerSettings) -> tuple[Recipe, str]:
        kind = options.backend or self.settings.adapted_backend
        role = role_of(known)
        speech = self.case.training.get(role)
        self.used.adapted_backends.add(kind)
        if speech is not None:
            self.used.train(role, known.name)
            vectors = speech.embeddings
            words = f"{len(vectors)} recordings of {trained_people(vectors, self.case.original)}"
            return Recipe(kind, vectors, dimension=options.dimension), words
        if known.adaptation == "similar system":
            raise NotPossibleError("no speech anonymized by a similar system was given (--train-similar)")
        # Everybody's protected speech, but never of the two people who are being compared.
        protocol = self.case.protocol
        vectors = self.case.anonymized.of_utterances([*protocol.enrollment, *protocol.trials])
        if len(vectors.names) < LEAST_SPEAKERS:
            raise NotPossibleError(
                f"no training speech was given (--train-anonymized), and {len(vectors.names)} speakers are too few to "
                "train on some and test on others"
            )
        folds = min(self.settings.folds, len(vectors.names))
        self.used.folds = folds
        words = (
            f"the anonymized recordings of the assessed speakers themselves, in {folds} folds: a pair of people is "
            "compared by an attacker that heard neither"
        )
        return Recipe(kind, vectors, folds, self.settings.seed, options.dimension), words

    def _undo(self, known: Attacker) -> Undo:
        """The attacker runs the system on the speech that people are known by, as in Champion et al. 2021."""
        copies = self.case.copies(known.name)
        self.used.copies.add(known.name)
        utterances = list(copies.vectors.utterances)
        if known.inversion == "wasserstein" and len(utterances) > MOST_UNPAIRED:
            rng = np.random.default_rng([self.settings.seed, 11])
            utterances = [utterances[i] for i in np.sort(rng.choice(len(utterances), MOST_UNPAIRED, replace=False))]
        clear = self.case.sides_of(known.name).original.of_utterances(utterances)
        protected = copies.vectors.of_utterances(utterances)
        if clear.dimension != protected.dimension:
            raise NotPossibleError("clear and anonymized vectors differ in dimension")
        if len(utterances) < LEAST_PAIRS:
            raise NotPossibleError(f"{len(utterances)} recordings are too few to learn a rotation from")
        return Undo(clear, protected, known.inversion, self.settings.seed)

    def _attack(self, known: Attacker) -> AttackScoring:
        attack = ATTACKS[known.attack]
        material = self.material(known.name)
        reason = attack.missing(material)
        if reason:
            raise NotPossibleError(reason)
        self.used.copies.add(known.name)
        if material.others is not None:
            self.used.train("train_original", known.name)
            self.used.train("train_anonymized", known.name)
        return AttackScoring(attack, material)

    def material(self, name: str, *, with_views: bool = True) -> Material:
        """What a registered attack gets: the released recordings come without names."""
        sides = self.case.sides_of(name)
        released = self.case.tried(sides.anonymized)
        runs = self.case.runs_of(name)
        if not runs:
            copies = self.case.enrolled(sides.anonymized)
            runs = (AttackerRun(vectors=copies, own=False, name="the released run"),)
        views = {
            other: replace(self.material(other, with_views=False), seen=own.tuned_on_copies)
            for other, own in self.case.own.items()
            if with_views and name not in self.case.own and own.tuned and len(own.runs) == len(self.case.runs)
        }
        if with_views and name == FUSED:
            views |= {label: planner.material(name, with_views=False) for label, planner in self.further.items()}
        return Material(
            candidates=self.case.enrolled(sides.original),
            trials=released.vectors,
            conversations=(),
            runs=runs,
            others=None if name in self.case.own else self._others(),
            trial_ids=strings(released.utterances),
            pseudonyms=_pseudonyms(released),
            views=views,
            seed=self.settings.seed,
        )

    def _others(self) -> OtherPeople | None:
        """Other people's originals with what the system made of them, pass by pass; None where there are no pairs."""
        original, anonymized = (self.case.training.get(role) for role in ("train_original", "train_anonymized"))
        if original is None or anonymized is None:
            return None
        runs = []
        for number, part in enumerate(anonymized.parts, 1):
            try:
                matched = match(original.embeddings, part)
            except InputError:
                continue
            runs.append(AttackerRun(vectors=matched.anonymized, name=f"training speech, pass {number}"))
        return OtherPeople(originals=original.embeddings, runs=tuple(runs)) if runs else None


def _pseudonyms(released: Embeddings) -> np.ndarray | None:
    """Which released recordings share a pseudonym, where the anonymized side says so."""
    for name in ("pseudonym", "pseudo_pseudonym"):
        column = released.attributes.get(name)
        if column is not None and all(column):
            return np.unique(column.astype(str), return_inverse=True)[1].astype(np.int64)
    return None
