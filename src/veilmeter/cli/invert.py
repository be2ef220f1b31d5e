"""`veilmeter invert`: can the anonymizer be undone by a rotation of the embeddings?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.cli.command import Given
from veilmeter.cli.shared_options import (
    NO_KEY,
    SAMPLED,
    TABLE_ONLY,
    FormFacts,
    typesetting,
    vectors,
)
from veilmeter.core import option_groups
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, file_reference, first_speakers
from veilmeter.core.option_groups import NEEDS, OUTPUT, VECTOR_FORMATS, Figures, OutputForms, Workers
from veilmeter.core.options import Condition, OptionSet, declare, options_of
from veilmeter.data.corpus import strict

if TYPE_CHECKING:
    from veilmeter.attacks.inversion import Evaluation, InversionMap
    from veilmeter.attacks.inversion.study import InversionStudy, StudySettings
    from veilmeter.data.embeddings import Embeddings

ATTACK = "Attack"


@dataclass(frozen=True)
class InversionFacts(FormFacts):
    """What came of an inversion, which tells whether options had an effect."""

    has_clear_trials: bool
    has_eer: bool
    is_shuffled: bool
    is_drawn: bool
    has_figures: bool


CURVES = Condition(lambda options, facts: options.learning_curve or options.label_noise, "no curve was asked for")
SHUFFLED = Condition(
    lambda options, facts: facts.is_shuffled, "they need a map that is learned from pairs, and clear trials"
)
ENROLLED = Condition(lambda options, facts: facts.has_eer, "nobody is enrolled (--enroll), so that no EER was measured")
DRAWN = Condition(lambda options, facts: facts.is_drawn, SAMPLED)
CLEAR_TRIALS = Condition(lambda options, facts: facts.has_clear_trials, "Top-1 needs the clear trials")
SOMETHING_TO_DRAW = Condition(
    lambda options, facts: facts.has_figures, "there is nothing to draw without --clear-trials"
)


@dataclass(frozen=True, kw_only=True)
class LearningOptions(OptionSet):
    """How a map is learned; refused where a map is loaded."""

    anonymized_train: Path | None = vectors(
        "The same utterances anonymized (any order; other sets with --method wasserstein).", None, example="again.npz"
    )
    method: str | None = declare(
        None, help="procrustes (pairs are known) or wasserstein (they are not).", group=ATTACK,
        default_text="procrustes", example="none",
    )  # fmt: skip
    pca: int | None = declare(
        None, help="Reduce both sides to N dimensions first (paper: 70).", group=ATTACK, least=1, example=3
    )
    center: bool = declare(False, help="Subtract each side's mean (PCA does).", group=ATTACK, example=True)
    by_gender: bool = declare(False, help="Learn one rotation per gender.", group=ATTACK, example=True)
    reflections: bool = declare(True, help="Allow rotations only (det = +1).", group=ATTACK, example=False)
    oracle: bool = declare(
        False, help="Learn on the trials themselves: the upper bound for any rotation.", group=ATTACK, example=True
    )
    refine: int = declare(
        0, help="Rounds of refinement on mutual nearest neighbors.", metavar="ROUNDS", group=ATTACK, least=0, example=2
    )
    seeds: int = declare(
        1, help="Runs of a method that depends on chance; the one that matches best without labels is reported, with "
        "the spread of all.", group=ATTACK, least=1, example=2,
    )  # fmt: skip
    learning_curve: bool = declare(
        False, help="Top-1 against the number of known pairs, 5 to all.", group=NEEDS, example=True
    )
    label_noise: bool = declare(False, help="Top-1 against the share of wrong pairs.", group=NEEDS, example=True)


@dataclass(frozen=True, kw_only=True)
class InvertOptions(LearningOptions, Figures, OutputForms, Workers):
    """The options of the command."""

    clear_train: Path | None = vectors(
        f"Clear embeddings that the attacker has: {VECTOR_FORMATS}.", None, example="known.npz"
    )
    clear_trials: tuple[Path, ...] = vectors(
        "Clear embeddings of the attacked utterances, for Top-1; repeat for several parts.", (), example="other.npz"
    )
    anonymized_trials: tuple[Path, ...] = vectors(
        "Attacked anonymized embeddings; repeat for several parts.", (), example="again.npz"
    )
    enroll: Path | None = vectors(
        "Clear enrollment embeddings, for EER and Linkability.", None, default_text="the clear training set",
        example="again.npz",
    )  # fmt: skip
    trials: tuple[Path, ...] = declare(
        (), help="Trial key (enrollment speaker, utterance, target or nontarget).", metavar="KEY", path=True,
        default_text="everybody with everybody, within gender", acts_when=(ENROLLED,), example="part-key",
    )  # fmt: skip
    layout: str | None = declare(
        None, help="Layout of the key if it is not recognized: vpc, pairs or voxceleb.", example="nonsense",
        acts_when=(Condition(lambda options, facts: bool(options.trials), NO_KEY),),
    )  # fmt: skip
    load_map: Path | None = declare(
        None, help="Apply a map that was learned before, such as on another run of the anonymizer.", metavar="FILE",
        group=ATTACK, path=True, example="other-map.npz",
    )  # fmt: skip
    save_map: Path | None = declare(
        None, help="Keep the learned map (.npz, no code in it).", metavar="FILE", group=OUTPUT, path=True,
        example="out.npz",
    )  # fmt: skip
    repeats: int = declare(
        5, help="Random draws per point of these curves.", group=NEEDS, least=1, acts_when=(CURVES,), example=2
    )
    shuffles: int = declare(
        20, help="Attacks with all pairs shuffled, which give the level of chance; 0 for none.", group=NEEDS, least=0,
        acts_when=(SHUFFLED,), example=5,
    )  # fmt: skip
    other_run: tuple[Path, ...] = vectors(
        "The trials from another run of the anonymizer, to test the map on them.", (), group=NEEDS, example="again.npz"
    )
    eer_method: str = option_groups.eer_method(acts_when=(ENROLLED,))
    fold_eer: bool = declare(
        False, help="Report an EER above 50 % as 100 minus its value, as paper 002 does.", group=OUTPUT,
        acts_when=(ENROLLED,), example=True,
    )  # fmt: skip
    per_speaker: bool = declare(
        False, help="Show every speaker's Top-1.", group=OUTPUT, acts_when=(CLEAR_TRIALS, TABLE_ONLY), example=True
    )
    strict: bool = strict()
    intervals: bool = option_groups.intervals()
    seed: int = option_groups.seed(acts_when=(DRAWN,))
    figures: Path | None = option_groups.figures(
        "the projection before and after, the speakers and the curves", acts_when=(SOMETHING_TO_DRAW,)
    )


OPTIONS = (InvertOptions,)


def command(given: Given) -> None:
    """Undo the anonymization of embeddings with a learned rotation.

    An attacker who has original and anonymized speech learns a rotation between the two and applies its inverse to
    the trials (Champion et al. 2021). Prints how many people are then recognized.

    Examples:

        veilmeter invert --clear-train a --anonymized-train a_anon --clear-trials b --anonymized-trials b_anon --pca 70
        veilmeter invert ... --learning-curve --label-noise --figures figures --save-map map.npz
    """
    from contextlib import closing

    from veilmeter.attacks.inversion import InversionSettings
    from veilmeter.attacks.inversion import load_map as read_map
    from veilmeter.attacks.inversion.study import DEFAULT_METHOD, InversionInputs, StudySettings, study_inversion
    from veilmeter.cli.output import Page, emit, output_form
    from veilmeter.core.engine import open_engine

    options = given.build(InvertOptions)
    output = output_form(options)
    setting = typesetting(options)
    if options.load_map is not None:
        learned_before = "the map was learned before (--load-map)"
        given.refuse(options_of(LearningOptions), learned_before, fix="leave it out, or learn a map without --load-map")
    settings = StudySettings(
        inversion=InversionSettings(
            method=options.method or DEFAULT_METHOD,  # type: ignore[arg-type]
            pca=options.pca,
            center=options.center,
            by="gender" if options.by_gender else "",
            reflections=options.reflections,
            seed=options.seed,
            rounds=options.refine,
        ),
        oracle=options.oracle,
        seeds=options.seeds,
        learning_curve=options.learning_curve,
        label_noise=options.label_noise,
        repeats=options.repeats,
        shuffles=options.shuffles,
        intervals=options.intervals,
        eer_method=options.eer_method,
        fold_eer=options.fold_eer,
    )
    reader = _Reader(options.strict)
    attacked = reader.read("anonymized trials", options.anonymized_trials, "--anonymized-trials")
    known_clear = reader.maybe("clear training", [options.clear_train] if options.clear_train else None)
    inputs = InversionInputs(
        anonymized_trials=attacked,
        clear_trials=reader.maybe("clear trials", options.clear_trials),
        again=reader.maybe("other run", options.other_run),
        clear_train=known_clear,
        anonymized_train=reader.maybe(
            "anonymized training", [options.anonymized_train] if options.anonymized_train else None
        ),
        enrolled=reader.maybe("enrollment", [options.enroll] if options.enroll else None) or known_clear,
        key=_key(options.trials, options.layout),
    )
    stored = None if options.load_map is None else read_map(options.load_map)
    with closing(open_engine(options.jobs, options.cluster)) as engine:
        study = study_inversion(inputs, settings, engine, stored=stored)
    if options.save_map is not None:
        study.map.save(options.save_map)
    files = []
    if options.figures is not None:
        from veilmeter.report.figures.inversion import save_all

        files = save_all(study.evaluation, dict(study.estimates), attacked, options.figures, setting=setting)
    clear = inputs.clear_trials is not None
    more: dict[str, Any] = {"per_speaker": study.evaluation.per_speaker()} if clear else {}
    if study.seeds:
        more["seeds"] = list(study.seeds)
    facts = _find_facts(study, settings, clear, output, is_learned=stored is None, has_figures=bool(files))
    page = Page(
        title=_title(study.map, study.evaluation, options.oracle),
        estimates=dict(study.estimates),
        inputs=reader.inputs | _map_facts(study.map, options.oracle, options.seed if facts.is_drawn else None),
        warnings=[*reader.warnings, *study.findings, *given.find_unused(options, facts)],
        notes=_notes(study.evaluation, clear, options.per_speaker, options.save_map),
        sections=SECTIONS,
        more=more | {"map": dict(study.map.facts)},
        figures=files,
    )
    emit(page, output)


SECTIONS = {
    "Whose is this anonymized recording?": ["top1", "top_k", "top1_clear", "top1_before"],
    "Restored trials against enrollments": ["eer", "d_ece", "l_w", "linkability"],
    "The same map on another run of the anonymizer": ["eer_again", "top1_again", "top1_clear_again"],
    "How many pairs does it need?": ["learning_curve"],
    "How many of them may be wrong?": ["label_noise"],
}


def _find_facts(
    study: InversionStudy,
    settings: StudySettings,
    clear: bool,
    form: str,
    *,
    is_learned: bool,
    has_figures: bool,
) -> InversionFacts:
    has_eer = "eer" in study.estimates
    is_shuffled = is_learned and settings.inversion.supervised and clear and not settings.oracle
    has_curves = settings.learning_curve or settings.label_noise
    is_unsupervised = is_learned and not settings.inversion.supervised
    return InversionFacts(
        form=form,
        has_clear_trials=clear,
        has_eer=has_eer,
        is_shuffled=is_shuffled,
        is_drawn=has_eer or has_curves or (is_shuffled and settings.shuffles > 0) or is_unsupervised,
        has_figures=has_figures,
    )


def _map_facts(learned: InversionMap, oracle: bool, seed: int | None) -> dict[str, Any]:
    """How the map that was applied was learned, in this run or an earlier one."""
    facts = learned.facts
    return {
        "method": facts.get("method"),
        "pca": facts.get("pca"),
        "by_gender": learned.column == "gender",
        "oracle": oracle,
        "seed": seed,
    }


class _Reader:
    """Reads the inputs, and remembers what was read and what was odd."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.inputs: dict[str, Any] = {}
        self.warnings: list[Finding] = []

    def read(self, name: str, paths: Sequence[Path] | None, option: str) -> Embeddings:
        embeddings = self.maybe(name, paths)
        if embeddings is None:
            raise InputError(f"the {name} are needed", fix=f"give {option}")
        return embeddings

    def maybe(self, name: str, paths: Sequence[Path] | None) -> Embeddings | None:
        from veilmeter.cli.shared_options import read_vectors
        from veilmeter.data.embeddings import concatenate

        if not paths:
            return None
        read = [read_vectors(path, self.warnings, strict=self.strict) for path in paths]
        self.inputs[name.replace(" ", "_")] = [entry for _, entry in read]
        return read[0][0] if len(read) == 1 else concatenate([part for part, _ in read])


def _key(paths: Sequence[Path] | None, layout: str | None) -> dict[tuple[str, str], bool] | None:
    if not paths:
        return None
    from veilmeter.data.formats.columns import Codes
    from veilmeter.data.formats.trials import read_trials

    is_target: dict[tuple[str, str], bool] = {}
    for path in paths:
        codes = Codes()
        table = read_trials(path, layout=layout, codes=codes)
        names = codes.names()
        for a, b, target in zip(table.enroll, table.test, table.is_target, strict=True):
            is_target[names[a], names[b]] = bool(target)
    return is_target


def _title(learnt: InversionMap, evaluation: Evaluation, oracle: bool) -> str:
    how = learnt.facts.get("method", "stored map")
    trials = sum(len(group.restored) for group in evaluation.groups)
    return f"Inversion by {how}{' (oracle)' if oracle else ''}: {trials} anonymized trials restored"


def _notes(evaluation: Evaluation, clear: bool, per_speaker: bool, saved: Path | None) -> list[Finding]:
    notes = []
    if clear and per_speaker:
        rows = evaluation.per_speaker()
        speakers = first_speakers([str(row["speaker"]) for row in rows], most=len(rows))
        shares = tuple(float(row["top1"]) for row in rows)
        notes.append(Finding.of("top1_by_speaker", speakers=speakers, percents=shares))
    if not clear:
        notes.append(Finding("top1_needs_clear_trials"))
    if saved is not None:
        notes.append(Finding.of("map_saved", file=file_reference(saved)))
    return notes
