"""`veilmeter invert`: can the anonymizer be undone by a rotation of the embeddings?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veilmeter.cli import options
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding

if TYPE_CHECKING:
    from veilmeter.attacks.inversion import Evaluation, InversionMap
    from veilmeter.attacks.inversion.study import InversionStudy, StudySettings
    from veilmeter.data.embeddings import Embeddings

OUTPUT, ATTACK, NEEDS = options.OUTPUT, "Attack", options.NEEDS
# What says how a map is learned.
LEARNING = (
    "method", "pca", "center", "by_gender", "no_reflections", "oracle", "refine", "seeds", "anonymized_train",
    "learning_curve", "label_noise",
)  # fmt: skip


def command(
    ctx: typer.Context,
    clear_train: Annotated[
        Path | None, options.vectors(f"Clear embeddings that the attacker has: {options.VECTOR_FORMATS}.")
    ] = None,
    anonymized_train: Annotated[
        Path | None,
        options.vectors("The same utterances anonymized (any order; other sets with --method wasserstein)."),
    ] = None,
    clear_trials: Annotated[
        list[Path] | None,
        options.vectors("Clear embeddings of the attacked utterances, for Top-1. Give it once per part."),
    ] = None,
    anonymized_trials: Annotated[
        list[Path] | None, options.vectors("The attacked anonymized embeddings. Give it once per part.")
    ] = None,
    enrol: Annotated[
        Path | None,
        options.vectors(
            "Clear enrollment embeddings, for EER and Linkability. Default: the clear training set.", name="--enroll"
        ),
    ] = None,
    trials: Annotated[
        list[Path] | None,
        typer.Option(metavar="KEY", help="Trial key (enrollment speaker, utterance, target or nontarget). Default: "
                     "everybody with everybody, within gender.", show_default=False),
    ] = None,
    layout: Annotated[
        str | None, typer.Option(help="Layout of the key where it can't be recognized: vpc, pairs or voxceleb.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="procrustes (pairs are known, the default) or wasserstein (they are not).",
                                 rich_help_panel=ATTACK, show_default=False)
    ] = None,
    pca: Annotated[
        int | None, typer.Option(metavar="N", help="Reduce both sides to N dimensions first (paper: 70).", min=1,
                                 rich_help_panel=ATTACK, show_default=False)
    ] = None,
    center: Annotated[
        bool, typer.Option("--center", help="Subtract each side's mean (PCA does).", rich_help_panel=ATTACK)
    ] = False,
    by_gender: Annotated[
        bool, typer.Option("--by-gender", help="One rotation per gender.", rich_help_panel=ATTACK)
    ] = False,
    no_reflections: Annotated[
        bool, typer.Option("--no-reflections", help="Rotations only (det = +1).", rich_help_panel=ATTACK)
    ] = False,
    oracle: Annotated[
        bool, typer.Option("--oracle", help="Learn on the trials themselves: the upper bound for any rotation.",
                           rich_help_panel=ATTACK)
    ] = False,
    refine: Annotated[
        int, typer.Option(metavar="ROUNDS", help="Sharpen the map on mutual nearest neighbors.", min=0,
                          rich_help_panel=ATTACK)
    ] = 0,
    seeds: Annotated[
        int, typer.Option(help="Runs of a method that depends on chance; the one that matches best without labels is "
                          "reported, and the spread of all.", min=1, rich_help_panel=ATTACK)
    ] = 1,
    load_map: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Apply a map that was learned before, on another run of the "
                                  "anonymizer say, instead of learning one.", rich_help_panel=ATTACK,
                                  show_default=False)
    ] = None,
    save_map: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the learned map (.npz, no code in it).",
                                  rich_help_panel=OUTPUT, show_default=False)
    ] = None,
    learning_curve: Annotated[
        bool, typer.Option("--learning-curve", help="Top-1 against the number of known pairs, 5 to all.",
                           rich_help_panel=NEEDS)
    ] = False,
    label_noise: Annotated[
        bool, typer.Option("--label-noise", help="Top-1 against the share of wrong pairs.", rich_help_panel=NEEDS)
    ] = False,
    repeats: Annotated[
        int, typer.Option(help="Random draws a point of these curves.", min=1, rich_help_panel=NEEDS)
    ] = 5,
    shuffles: Annotated[
        int, typer.Option(help="Attacks with all pairs shuffled, which give the level of chance; 0 for none.", min=0,
                          rich_help_panel=NEEDS)
    ] = 20,
    anonymized_again: Annotated[
        list[Path] | None,
        options.vectors("The trials from another run of the anonymizer: does the map carry over?", NEEDS),
    ] = None,
    eer_method: options.EerMethod = "rocch",
    fold_eer: Annotated[
        bool, typer.Option("--fold-eer", help="Turn an EER above 50 % back below it, as paper 002 does.",
                           rich_help_panel=OUTPUT)
    ] = False,
    per_speaker: Annotated[
        bool, typer.Option("--per-speaker", help="Show every speaker's Top-1.", rich_help_panel=OUTPUT)
    ] = False,
    strict: options.Strict = False,
    no_intervals: options.NoIntervals = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    figures: Annotated[
        Path | None, options.figures("the projection before and after, the speakers and the curves")
    ] = None,
    width: options.Width = None,
    font: options.Font = None,
    font_size: options.FontSize = None,
    json: options.Json = False,
    csv: options.Csv = False,
    markdown: options.Markdown = False,
    latex: options.Latex = False,
) -> None:  # fmt: skip
    """Undo the anonymizer in the space of embeddings (Champion et al. 2021), and say how much that gives away.

    An attacker who has clear and anonymized speech learns a rotation between the two and turns the trials back.

    Examples:

        veilmeter invert --clear-train a --anonymized-train a_anon --clear-trials b --anonymized-trials b_anon --pca 70
        veilmeter invert ... --learning-curve --label-noise --figures figures --save-map map.npz
    """
    from contextlib import closing

    from veilmeter.attacks.inversion import InversionSettings
    from veilmeter.attacks.inversion import load_map as read_map
    from veilmeter.attacks.inversion.study import DEFAULT_METHOD, InversionInputs, StudySettings, study_inversion
    from veilmeter.cli import given
    from veilmeter.cli.output import Page, chosen_form, emit, per_speaker_reason
    from veilmeter.core.engine import open_engine

    output = chosen_form(json=json, csv=csv, markdown=markdown, latex=latex)
    setting = options.typesetting(figures, width, font, font_size)
    if load_map is not None:
        learned_before = "the map was learned before (--load-map)"
        given.refuse(ctx, LEARNING, learned_before, fix="leave it out, or learn a map anew without --load-map")
    settings = StudySettings(
        inversion=InversionSettings(
            method=method or DEFAULT_METHOD,  # type: ignore[arg-type]
            pca=pca,
            center=center,
            by="gender" if by_gender else "",
            reflections=not no_reflections,
            seed=seed,
            rounds=refine,
        ),
        oracle=oracle,
        seeds=seeds,
        learning_curve=learning_curve,
        label_noise=label_noise,
        repeats=repeats,
        shuffles=shuffles,
        intervals=not no_intervals,
        eer_method=eer_method,
        fold_eer=fold_eer,
    )
    reader = _Reader(strict)
    attacked = reader.read("anonymized trials", anonymized_trials, "--anonymized-trials")
    known_clear = reader.maybe("clear training", [clear_train] if clear_train else None)
    inputs = InversionInputs(
        anonymized_trials=attacked,
        clear_trials=reader.maybe("clear trials", clear_trials),
        again=reader.maybe("anonymized again", anonymized_again),
        clear_train=known_clear,
        anonymized_train=reader.maybe("anonymized training", [anonymized_train] if anonymized_train else None),
        enrolled=reader.maybe("enrollment", [enrol] if enrol else None) or known_clear,
        key=_key(trials, layout),
    )
    stored = None if load_map is None else read_map(load_map)
    with closing(open_engine(jobs, cluster)) as engine:
        study = study_inversion(inputs, settings, engine, stored=stored)
    if save_map is not None:
        study.map.save(save_map)
    files = []
    if figures is not None:
        from veilmeter.report.figures.inversion import save_all

        files = save_all(study.evaluation, dict(study.estimates), attacked, figures, setting=setting)
    clear = inputs.clear_trials is not None
    more: dict[str, Any] = {"per_speaker": study.evaluation.per_speaker()} if clear else {}
    if study.seeds:
        more["seeds"] = list(study.seeds)
    unused = _unused(study, settings, learned=stored is None, clear=clear)
    unused |= {
        "layout": "" if trials else "there is no trial key",
        "per_speaker": per_speaker_reason(output) if clear else "Top-1 needs the clear trials",
        "figures": "" if files else "there is nothing to draw without --clear-trials",
    }
    page = Page(
        title=_title(study.map, study.evaluation, oracle),
        estimates=dict(study.estimates),
        inputs=reader.inputs | _used(study.map, oracle, None if unused["seed"] else seed),
        warnings=[*reader.warnings, *study.findings, *given.without_effect(ctx, unused)],
        notes=_notes(study.evaluation, clear, per_speaker, save_map),
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


def _unused(study: InversionStudy, settings: StudySettings, *, learned: bool, clear: bool) -> dict[str, str]:
    """Why an option had no effect; nothing for those that had one."""
    supervised = settings.inversion.supervised
    curves = settings.learning_curve or settings.label_noise
    shuffled = learned and supervised and clear and not settings.oracle
    eer = "eer" in study.estimates
    nobody = "" if eer else "nobody is enrolled (--enroll), so that no EER was measured"
    drawn = eer or curves or (shuffled and settings.shuffles > 0) or (learned and not supervised)
    return {
        "repeats": "" if curves else "no curve was asked for",
        "shuffles": "" if shuffled else "they need a map that is learned from pairs, and clear trials",
        "trials": nobody,
        "eer_method": nobody,
        "fold_eer": nobody,
        "seed": "" if drawn else "nothing was drawn at random",
    }


def _used(learned: InversionMap, oracle: bool, seed: int | None) -> dict[str, Any]:
    """How the map that was applied was learned, whoever learned it and when."""
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

    def read(self, name: str, paths: list[Path] | None, option: str) -> Embeddings:
        embeddings = self.maybe(name, paths)
        if embeddings is None:
            raise InputError(f"the {name} are needed", fix=f"give {option}")
        return embeddings

    def maybe(self, name: str, paths: list[Path] | None) -> Embeddings | None:
        from veilmeter.cli import vectors
        from veilmeter.data.embeddings import joined

        if not paths:
            return None
        read = [vectors.read(path, self.warnings, strict=self.strict) for path in paths]
        self.inputs[name.replace(" ", "_")] = [entry for _, entry in read]
        return read[0][0] if len(read) == 1 else joined([part for part, _ in read])


def _key(paths: list[Path] | None, layout: str | None) -> dict[tuple[str, str], bool] | None:
    if not paths:
        return None
    from veilmeter.data.formats.columns import Codes
    from veilmeter.data.formats.trials import read_trials

    is_target: dict[tuple[str, str], bool] = {}
    for path in paths:
        codes = Codes()
        table = read_trials(path, layout=layout, codes=codes)
        names = codes.names()
        for a, b, target in zip(table.enrol, table.test, table.is_target, strict=True):
            is_target[names[a], names[b]] = bool(target)
    return is_target


def _title(learnt: InversionMap, evaluation: Evaluation, oracle: bool) -> str:
    how = learnt.facts.get("method", "stored map")
    trials = sum(len(group.restored) for group in evaluation.groups)
    return f"Inversion by {how}{' (oracle)' if oracle else ''}: {trials} anonymized trials turned back"


def _notes(evaluation: Evaluation, clear: bool, per_speaker: bool, saved: Path | None) -> list[str]:
    notes = []
    if clear and per_speaker:
        rows = evaluation.per_speaker()
        notes.append("Top-1 by speaker: " + ", ".join(f"{row['speaker']} {row['top1']:.0f} %" for row in rows))
    if not clear:
        notes.append("Top-1 needs the clear trials: give --clear-trials.")
    if saved is not None:
        notes.append(f"The map is in {saved}; apply it with --load-map.")
    return notes
