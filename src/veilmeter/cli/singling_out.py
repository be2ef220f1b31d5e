"""`veilmeter singling-out`: does an attacker's rule pick out exactly one of N people?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veilmeter.cli import options
from veilmeter.cli.lists import Lists, numbers
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, warning

if TYPE_CHECKING:
    from veilmeter.core.estimate import Estimate

COMMAND_CLASS = Lists
CURVE, MORE = options.CURVE, options.MORE
PREDICATES = 495  # as many as in the paper


def command(
    ctx: typer.Context,
    enrol: options.Enroll,
    test: options.Test,
    speakers: Annotated[
        list[str] | None,
        options.several("N", "Singling Out among so many test speakers; several, or with commas. Default: round "
                        "numbers up to all.", CURVE),
    ] = None,
    length: Annotated[
        list[str] | None,
        options.several("L", "Utterances in a conversation; several, or with commas. Default: 1.", CURVE,
                        "--length", "--lengths"),
    ] = None,
    rule: Annotated[
        str,
        typer.Option(help="How the threshold is set: paper (footnote 4), or balanced, where every speaker weighs the "
                     "same however much they have said.", rich_help_panel=CURVE),
    ] = "paper",
    draws: Annotated[int, typer.Option(help="Random subsets of each size.", min=1, rich_help_panel=CURVE)] = 5,
    folds: Annotated[
        int, typer.Option(help="Splits into calibration and test.", min=2, rich_help_panel=CURVE)
    ] = 10,
    predicates: Annotated[
        int,
        typer.Option(help="Enrolled people whose rules are tried, drawn at random beyond this many.", min=1,
                     rich_help_panel=CURVE),
    ] = PREDICATES,
    attribute: options.Attributes = None,
    per_speaker: Annotated[
        bool, typer.Option("--per-speaker", help="Singling Out by the rule of each person.", rich_help_panel=MORE)
    ] = False,
    no_control: Annotated[
        bool, typer.Option("--no-control", help="Without the measured control.", rich_help_panel=MORE)
    ] = False,
    name: options.AttackerName = "",
    beside: options.Beside = None,
    strict: options.Strict = False,
    no_intervals: options.NoIntervals = False,
    seed: options.Seed = 0,
    figures: Annotated[Path | None, options.figures("the curves")] = None,
    width: options.Width = None,
    font: options.Font = None,
    font_size: options.FontSize = None,
    json: options.Json = False,
    csv: options.Csv = False,
    markdown: options.Markdown = False,
    latex: options.Latex = False,
) -> None:  # fmt: skip
    """Does an attacker's rule, true of one person in N on average, pick out exactly one person?

    A rule that knows nobody isolates somebody too: in theory 37 %, 35 % with an estimated threshold, more where
    speakers are consistent with themselves. The control measures that; the residual risk is what is beyond it. Speakers
    with fewer than 2 L utterances are left out. Values are fractions between 0 and 1, intervals 95 % over people.

    Examples:

        veilmeter singling-out --enroll enrolls.npz --test trials_anon.npz --speakers 20,100 --length 1,3

        veilmeter singling-out --enroll xvect_enrolls --test xvect_trials_anon --rule balanced --attribute gender
    """
    from veilmeter.cli import legal
    from veilmeter.cli.output import Page, chosen_form, emit
    from veilmeter.metrics.legal.isolation import RULES
    from veilmeter.metrics.legal.material import per_speaker_estimates, speakers_by_length
    from veilmeter.metrics.legal.one_minus_eer import one_minus_eer
    from veilmeter.metrics.legal.singling_out import CONVERSATIONS, singling_out

    form = chosen_form(json=json, csv=csv, markdown=markdown, latex=latex)
    setting = options.typesetting(figures, width, font, font_size)
    label = legal.label(ctx, name, test, figures)
    if rule not in RULES:
        raise InputError(f"there is no rule {rule!r}", fix=f"choose {' or '.join(RULES)}")
    wanted = numbers(speakers, "--speakers", least=2)
    lengths = numbers(length, "--length") or [1]
    people, tested, inputs, warnings = legal.read(enrol, test, strict=strict)
    steps, remarks = _steps(speakers_by_length(tested, lengths), wanted, test)
    warnings += remarks
    curves: dict[str, list[Estimate]] = {}
    with legal.later("scoring") as progress:
        for utterances, sizes in steps.items():
            drawn: dict[str, Any] = {"predicates": predicates, "seed": seed, "progress": progress}
            single = singling_out(
                people,
                tested,
                sizes,
                length=utterances,
                rule=rule,
                draws=draws,
                folds=folds,
                control=not no_control,
                **drawn,
            )
            warnings += legal.dropped(single.dropped, 2 * utterances, utterances)
            points = single.estimates(intervals=not no_intervals)
            points["one_minus_eer"] = one_minus_eer(
                people, tested, sizes, length=utterances, most=CONVERSATIONS, intervals=not no_intervals, seed=seed
            )
            for column in attribute or []:
                from veilmeter.metrics.legal.side_information import informed_singling_out

                knowing = informed_singling_out(people, tested, column, sizes, without=single, **drawn)
                for key, curve in knowing.estimates(intervals=not no_intervals).items():
                    points.setdefault(f"{key}_knowing", []).extend(curve)
            if per_speaker:
                counted = [{"draws": single.draws, "folds": single.folds}] * len(single.names)
                rows = zip(single.names, single.per_predicate(sizes[-1]), counted, strict=True)
                points["singling_out_per_speaker"] = per_speaker_estimates(
                    "singling_out",
                    rows,
                    speakers=sizes[-1],
                    length=utterances,
                    method=f"{rule} rule",
                    null=single.chance(sizes[-1]),
                )
            for key, curve in points.items():
                curves.setdefault(key, []).extend(curve)
    drawn_files = legal.draw(figures, curves, label, beside, setting)
    page = Page(
        title=f"{test}: {len(tested.names):,} speakers, {len(people.names):,} enrolled ({enrol})",
        estimates=curves,
        inputs=inputs | {"seed": seed, "rule": rule, "draws": draws, "folds": folds, "predicates": predicates},
        warnings=warnings,
        notes=_notes(curves, no_intervals),
        sections=SECTIONS,
        figures=drawn_files,
    )
    emit(page, form)


SECTIONS = {
    "Is somebody picked out?": ["singling_out"],
    "... beyond what knowing nobody gives?": ["residual_risk", "control"],
    "... and is it the right one?": ["hit_share"],
    "By an attacker who knows more": [
        "singling_out_knowing", "residual_risk_knowing", "control_knowing", "hit_share_knowing",
    ],
    "Verification, for comparison": ["one_minus_eer"],
    "For whom is protection weakest?": ["singling_out_per_speaker"],
}  # fmt: skip


def _steps(most: dict[int, int], wanted: list[int], test: Path) -> tuple[dict[int, list[int]], list[Finding]]:
    """The numbers of speakers for each length; those that no length has are an error, those of some left out."""
    from veilmeter.cli import legal

    largest = max(most.values())
    if wanted and wanted[-1] > largest:
        length = max(most, key=lambda utterances: most[utterances])
        raise InputError(
            f"--speakers {wanted[-1]}: only {largest} test speakers have the {2 * length} utterances that length "
            f"{length} needs",
            path=test,
            fix=f"give at most {largest}",
        )
    steps, remarks = {}, []
    for length, people in most.items():
        sizes = [n for n in wanted if n <= people] if wanted else legal.ladder(people) if people >= 2 else []
        gone = [n for n in wanted if n > people]
        if gone or not sizes:
            remarks.append(
                warning("sizes_left_out", length=length, speakers=people, needed=2 * length, sizes=tuple(gone))
            )
        if sizes:
            steps[length] = sizes
    if not steps:
        raise InputError("no length leaves two speakers with enough utterances", path=test, fix="give shorter lengths")
    return steps, remarks


def _notes(curves: dict[str, list[Estimate]], no_intervals: bool) -> list[str]:
    from veilmeter.cli import legal

    notes = ["The paper's chance level is 0.368 (1/e); the one shown is that of a threshold estimated from the data."]
    if not no_intervals:
        notes.append("95 % intervals over the people whose rules were tried; safer: ↓ lower.")
    return notes + legal.gains(curves.get("singling_out_knowing", []))
