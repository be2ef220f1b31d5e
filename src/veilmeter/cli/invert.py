"""`veilmeter invert`: can the anonymizer be undone by a rotation of the embeddings?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veilmeter.cli import options
from veilmeter.core.errors import InputError

if TYPE_CHECKING:
    from veilmeter.attacks.inversion import Evaluation, InversionMap, Settings
    from veilmeter.core.engine import Engine
    from veilmeter.core.estimate import Estimate
    from veilmeter.data.embeddings import Embeddings

OUTPUT, ATTACK, NEEDS = options.OUTPUT, "Attack", "What the attack needs"


def command(
    clear_train: Annotated[
        Path | None, options.vectors(f"Clear embeddings that the attacker has: {options.VECTOR_FORMATS}.")
    ] = None,
    anonymized_train: Annotated[
        Path | None,
        options.vectors("The same utterances anonymized (any order; other sets with --method wasserstein)."),
    ] = None,
    clear_trials: Annotated[
        list[Path] | None,
        options.vectors("Clear embeddings of the attacked utterances, for Top-1. Give it once a part."),
    ] = None,
    anonymized_trials: Annotated[
        list[Path] | None, options.vectors("The attacked anonymized embeddings. Give it once a part.")
    ] = None,
    enrol: Annotated[
        Path | None,
        options.vectors("Clear enrolment embeddings, for EER and Linkability. Default: the clear training set."),
    ] = None,
    trials: Annotated[
        list[Path] | None,
        typer.Option(metavar="KEY", help="Trial key (enrolment speaker, utterance, target or nontarget). Default: "
                     "everybody with everybody, within gender.", show_default=False),
    ] = None,
    layout: Annotated[
        str | None, typer.Option(help="Layout of the key where it can't be recognised: vpc, pairs or voxceleb.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="procrustes (pairs are known) or wasserstein (they are not).", rich_help_panel=ATTACK)
    ] = "procrustes",
    pca: Annotated[
        int | None, typer.Option(metavar="N", help="Reduce both sides to N dimensions first (paper: 70).", min=1,
                                 rich_help_panel=ATTACK, show_default=False)
    ] = None,
    center: Annotated[
        bool, typer.Option("--center", help="Subtract each side's mean (PCA does).", rich_help_panel=ATTACK)
    ] = False,
    by_gender: Annotated[
        bool, typer.Option("--by-gender", help="One rotation a gender.", rich_help_panel=ATTACK)
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
        Path | None, typer.Option(metavar="FILE", help="Apply a map that was learnt before, on another run of the "
                                  "anonymizer say, instead of learning one.", rich_help_panel=ATTACK,
                                  show_default=False)
    ] = None,
    save_map: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the learnt map (.npz, no code in it).",
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
    json: options.Json = False,
    csv: options.Csv = False,
    markdown: options.Markdown = False,
    latex: options.Latex = False,
) -> None:  # fmt: skip
    """Undo the anonymizer in the space of embeddings (Champion et al. 2021), and say how much that gives away.

    An attacker who has clear and anonymized speech learns a rotation between the two and turns the trials back.

    Examples:

        veilmeter invert --clear-train enrolls --anonymized-train enrolls_anon --clear-trials trials_f
        --anonymized-trials trials_f_anon --pca 70 --by-gender

        veilmeter invert ... --learning-curve --label-noise --figures figures --save-map map.npz
    """
    from contextlib import closing

    from veilmeter import inversion
    from veilmeter.cli.output import Page, chosen_form, emit
    from veilmeter.core.engine import open_engine

    output = chosen_form(json=json, csv=csv, markdown=markdown, latex=latex)
    reader = _Reader(strict)
    attacked = reader.read("anonymized trials", anonymized_trials, "--anonymized-trials")
    clear = reader.maybe("clear trials", clear_trials)
    again = reader.maybe("anonymized again", anonymized_again)
    known_clear = reader.maybe("clear training", [clear_train] if clear_train else None)
    known_anonymized = reader.maybe("anonymized training", [anonymized_train] if anonymized_train else None)
    enrolled = reader.maybe("enrolment", [enrol] if enrol else None) or known_clear
    if oracle:
        known_clear, known_anonymized = clear, attacked
    settings = inversion.Settings(
        method=method,  # type: ignore[arg-type]
        pca=pca,
        center=center,
        by="gender" if by_gender else "",
        reflections=not no_reflections,
        seed=seed,
        rounds=refine,
    )
    key = _key(trials, layout)
    with closing(open_engine(jobs, cluster)) as engine:
        maps = _maps(load_map, known_clear, known_anonymized, settings, seeds, engine, oracle)
        best = min(maps, key=inversion.objective) if load_map is None else maps[0]
        evaluation = inversion.evaluate(best, attacked, clear, enrolled)
        measured = {"intervals": not no_intervals, "seed": seed, "eer_method": eer_method, "fold": fold_eer}
        estimates: dict[str, Any] = dict(evaluation.estimates(key, **measured))  # type: ignore[arg-type]
        more: dict[str, Any] = {}
        if clear is not None:
            more["per_speaker"] = evaluation.per_speaker()
            _before(estimates, attacked, clear, not no_intervals)
        if again is not None:
            carried = inversion.evaluate(best, again, clear, enrolled).estimates(key, **measured)  # type: ignore[arg-type]
            estimates |= {f"{name}_again": _renamed(found) for name, found in carried.items() if name in AGAIN}
        if len(maps) > 1:
            more["seeds"] = _spread(maps, attacked, clear, enrolled, key, seed, eer_method, fold_eer)
        pairs = None
        if load_map is None and clear is not None and known_clear is not None and known_anonymized is not None:
            pairs = _experiment(known_clear, known_anonymized, clear, attacked, settings)
        if (learning_curve or label_noise) and (pairs is None or not settings.supervised):
            raise InputError(
                "these curves need known pairs and clear trials", fix="give --clear-trials and --method procrustes"
            )
        if pairs is not None and settings.supervised:
            _needs(estimates, pairs, learning_curve, label_noise, repeats, 0 if oracle else shuffles, seed, engine)
    if save_map is not None:
        best.save(save_map)
    files = []
    if figures is not None:
        from veilmeter.report.figures.inversion import save_all

        files = save_all(evaluation, estimates, attacked, figures)
    more |= {"map": dict(best.facts)}
    if load_map is None and settings.supervised and known_clear is not None and known_anonymized is not None:
        reader.warnings += _pairing(known_clear, known_anonymized, best)
    if "seeds" in more:
        reader.warnings.append(_seed_note(more["seeds"]))
    page = Page(
        title=_title(best, evaluation, oracle),
        estimates=estimates,
        inputs=reader.inputs | {"method": method, "pca": pca, "by_gender": by_gender, "oracle": oracle, "seed": seed},
        warnings=reader.warnings + _doubts(estimates, settings, oracle),
        notes=_notes(evaluation, clear is not None, per_speaker, save_map),
        sections=SECTIONS,
        more=more,
        figures=files,
    )
    emit(page, output)


AGAIN = ("eer", "top1", "top1_clear")
SECTIONS = {
    "Whose is this anonymized recording?": ["top1", "top_k", "top1_clear", "top1_before"],
    "Restored trials against enrolments": ["eer", "d_ece", "l_w", "linkability"],
    "The same map on another run of the anonymizer": [f"{name}_again" for name in AGAIN],
    "How many pairs does it need?": ["learning_curve"],
    "How many of them may be wrong?": ["label_noise"],
}


class _Reader:
    """Reads the inputs, and remembers what was read and what was odd."""

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.inputs: dict[str, Any] = {}
        self.warnings: list[str] = []

    def read(self, name: str, paths: list[Path] | None, option: str) -> Embeddings:
        found = self.maybe(name, paths)
        if found is None:
            raise InputError(f"the {name} are needed", fix=f"give {option}")
        return found

    def maybe(self, name: str, paths: list[Path] | None) -> Embeddings | None:
        from veilmeter.cli import vectors
        from veilmeter.data.embeddings import joined

        if not paths:
            return None
        read = [vectors.read(path, self.warnings, strict=self.strict) for path in paths]
        self.inputs[name.replace(" ", "_")] = [entry for _, entry in read]
        return read[0][0] if len(read) == 1 else joined([part for part, _ in read])


def _pairing(clear: Embeddings, anonymized: Embeddings, learnt: InversionMap) -> list[str]:
    """Utterances of one training set only, and too few pairs."""
    said = []
    for one, other, name in ((clear, anonymized, "anonymized"), (anonymized, clear, "clear")):
        alone = [u for u in one.utterances if u not in other.utterance_rows]
        if alone:
            said.append(f"{len(alone)} training utterances have no {name} version and were left out, as {alone[0]!r}")
    for group, facts in learnt.facts["learnt"].items():
        if facts["clear"] < facts["dimension"]:
            who = f" ({learnt.column} {group})" if group else ""
            said.append(
                f"{facts['clear']} pairs for {facts['dimension']} dimensions{who}: beyond what they span, the rotation "
                "is arbitrary; more pairs or --pca may serve the attacker better"
            )
    return said


def _key(paths: list[Path] | None, layout: str | None) -> dict[tuple[str, str], bool] | None:
    if not paths:
        return None
    from veilmeter.data.formats.columns import Codes
    from veilmeter.data.formats.trials import read_trials

    found: dict[tuple[str, str], bool] = {}
    for path in paths:
        codes = Codes()
        table = read_trials(path, layout=layout, codes=codes)
        names = codes.names()
        for a, b, target in zip(table.enrol, table.test, table.is_target, strict=True):
            found[names[a], names[b]] = bool(target)
    return found


def _maps(
    stored: Path | None,
    clear: Embeddings | None,
    anonymized: Embeddings | None,
    settings: Settings,
    seeds: int,
    engine: Engine,
    oracle: bool,
) -> list[InversionMap]:
    from veilmeter import inversion
    from veilmeter.core.engine import ordered

    if stored is not None:
        return [inversion.load_map(stored)]
    if clear is None or anonymized is None:
        wanted = "--clear-trials" if oracle else "--clear-train and --anonymized-train"
        raise InputError("there is nothing to learn the map from", fix=f"give {wanted}, or --load-map")
    chosen = [settings.seed + number for number in range(1 if settings.supervised else seeds)]
    # A piece a process computes once what does not depend on the seed; the pieces do not change the results.
    size = -(-len(chosen) // min(engine.workers, len(chosen)))
    pieces = [
        (clear, anonymized, settings, tuple(chosen[start : start + size])) for start in range(0, len(chosen), size)
    ]
    return [one for found in ordered(engine, _learn, pieces) for one in found]


def _learn(piece: tuple[Embeddings, Embeddings, Settings, tuple[int, ...]]) -> list[InversionMap]:
    from veilmeter import inversion

    return inversion.learn_seeds(*piece)


def _before(estimates: dict[str, Any], attacked: Embeddings, clear: Embeddings, intervals: bool) -> None:
    """Top-1 without any map, where the two sides can be compared at all."""
    from veilmeter import inversion

    if attacked.dimension != clear.dimension:
        return
    plain = inversion.evaluate(inversion.identity_map(clear.dimension), attacked, clear)
    estimates["top1_before"] = [
        group.whose.estimate("top1", intervals=intervals, at=plain.at(group)).with_(
            name="top1_before", label="Top-1 before inversion"
        )
        for group in plain.groups
    ]


def _renamed(found: list[Estimate]) -> list[Estimate]:
    return [one.with_(name=f"{one.name}_again", label=f"{one.label}, other run") for one in found]


def _spread(
    maps: list[InversionMap],
    attacked: Embeddings,
    clear: Embeddings | None,
    enrolled: Embeddings | None,
    key: dict[tuple[str, str], bool] | None,
    seed: int,
    eer_method: str,
    fold: bool,
) -> list[dict[str, Any]]:
    """EER and Top-1 of every seed, with the objective that the attacker sees."""
    from veilmeter import inversion

    rows = []
    for number, one in enumerate(maps):
        found = inversion.evaluate(one, attacked, clear, enrolled)
        row: dict[str, Any] = {"seed": seed + number, "objective": inversion.objective(one)}
        row["eer"] = found.eer(key, method=eer_method, fold=fold)
        if clear is not None:
            row["top1"] = {group: value[0] for group, value in found.top1().items()}
            row["top1_clear"] = {group: value[1] for group, value in found.top1().items()}
        rows.append(row)
    return rows


def _seed_note(rows: list[dict[str, Any]]) -> str:
    parts = []
    for name, label in (("eer", "EER"), ("top1", "Top-1")):
        for group in rows[0].get(name, {}):
            values = [row[name][group] for row in rows]
            mean = sum(values) / len(values)
            parts.append(f"{label}{' ' + group if group else ''} {mean:.1f} ({min(values):.1f} to {max(values):.1f})")
    return f"the attack depends on chance; over {len(rows)} seeds: " + ", ".join(parts)


def _experiment(
    clear_train: Embeddings, anonymized_train: Embeddings, clear: Embeddings, attacked: Embeddings, settings: Settings
) -> Any:
    from veilmeter.attacks.inversion.needs import Experiment

    return Experiment(clear_train, anonymized_train, clear, attacked, settings)


def _needs(
    estimates: dict[str, Any],
    experiment: Any,
    curve: bool,
    noise: bool,
    repeats: int,
    shuffles: int,
    seed: int,
    engine: Engine,
) -> None:
    from veilmeter.attacks.inversion import needs

    if shuffles:
        nulls = needs.permutation_null(experiment, shuffles=shuffles, seed=seed, engine=engine)
        for name in ("top1", "top1_clear"):
            estimates[name] = [_with_null(one, nulls) for one in estimates[name]]
    blind = {next(iter(one.at.values()), ""): one.extra.get("blind_guess", one.null) for one in estimates["top1"]}
    if curve:
        found = needs.learning_curve(experiment, repeats=repeats, seed=seed, engine=engine)["top1"]
        estimates["learning_curve"] = [one.with_(null=blind[one.at.get("gender", "")]) for one in found]
    if noise:
        found = needs.label_noise(experiment, repeats=repeats, seed=seed, engine=engine)["top1"]
        estimates["label_noise"] = [one.with_(null=blind[one.at.get("gender", "")]) for one in found]


def _with_null(one: Estimate, nulls: dict[str, tuple[float, tuple[float, float]]]) -> Estimate:
    """Chance as attacks with shuffled pairs give it, beside what blind guessing would."""
    group = next(iter(one.at.values()), "")
    mean, span = nulls[f"{one.name}@{group}" if group else one.name]
    return one.with_(null=mean, null_range=span, extra={**one.extra, "blind_guess": one.null})


def _title(learnt: InversionMap, evaluation: Evaluation, oracle: bool) -> str:
    how = learnt.facts.get("method", "stored map")
    trials = sum(len(group.restored) for group in evaluation.groups)
    return f"Inversion by {how}{' (oracle)' if oracle else ''}: {trials} anonymized trials turned back"


def _doubts(estimates: dict[str, Any], settings: Settings, oracle: bool) -> list[str]:
    said = []
    if oracle:
        said.append("the map was learnt on the attacked trials themselves: an upper bound, not an attack")
    inside = [one for one in estimates.get("top1", []) if one.inside_null]
    if inside and settings.supervised and not oracle:
        said.append(
            "Top-1 is no better than with shuffled pairs: either the anonymizer resists this attack, or the pairs are "
            "wrong (check that utterance ids mean the same recording in both training sets)"
        )
    return said


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
