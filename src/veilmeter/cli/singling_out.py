"""`veilmeter singling-out`: does an attacker's rule pick out exactly one of N people?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.cli.command import Given, Lists
from veilmeter.cli.shared_options import (
    LADDER_TEXT,
    AttackerEmbeddings,
    curve_label,
    draw_curves,
    facts_to_sign,
    gains,
    read_attacker_vectors,
    short_speakers,
    show_if_slow,
    typesetting,
)
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, warning
from veilmeter.core.option_groups import CURVE, MORE
from veilmeter.core.options import declare

if TYPE_CHECKING:
    from veilmeter.core.estimate import Estimate

COMMAND_CLASS = Lists


def _rules() -> tuple[str, ...]:
    from veilmeter.metrics.legal.isolation import RULES

    return tuple(RULES)


@dataclass(frozen=True, kw_only=True)
class SinglingOutOptions(AttackerEmbeddings):
    """The options of the command."""

    speakers: tuple[int, ...] = declare(
        (), help="Numbers of test speakers.", group=CURVE, least=2, default_text=LADDER_TEXT, example=5
    )
    lengths: tuple[int, ...] = declare(
        (1,), help="Utterances in a conversation, one or several numbers.", metavar="L", group=CURVE, least=1,
        example=2,
    )  # fmt: skip
    rule: str = declare(
        "paper", help="How the threshold is set: paper (footnote 4), or balanced, where every speaker has the same "
        "weight.", metavar="RULE", group=CURVE, choices=_rules, example="balanced",
    )  # fmt: skip
    draws: int = declare(5, help="Random subsets of each size.", group=CURVE, least=1, example=2)
    folds: int = declare(10, help="Splits into calibration and test.", group=CURVE, least=2, example=4)
    predicates: int = declare(
        495, help="Enrolled people whose rules are tried, at most, drawn at random.", group=CURVE,
        least=1, example=5,
    )  # fmt: skip
    per_speaker: bool = declare(False, help="Show Singling Out by each person's rule.", group=MORE, example=True)
    control: bool = declare(True, help="Do not measure the control.", group=MORE, example=False)


OPTIONS = (SinglingOutOptions,)


def command(given: Given) -> None:
    """Measure how often an attacker's rule fits exactly one person.

    The rule should fit one person in N on average. A rule made without knowing anybody in the set also isolates
    somebody: in theory in 37 % of cases, in 35 % with an estimated threshold, more often if speakers are
    consistent. The control measures this; the residual risk is what exceeds it. Speakers with fewer than 2 L
    utterances are left out. Values are percentages of the attempts; intervals are 95 %, over people.

    Examples:

        veilmeter singling-out --enroll enrolls.npz --test trials_anon.npz --speakers 20,100 --lengths 1,3

        veilmeter singling-out --enroll xvect_enrolls --test xvect_trials_anon --rule balanced --attribute gender
    """
    from veilmeter.cli.output import Page, emit, output_form
    from veilmeter.data.matching import refuse_one_speaker
    from veilmeter.metrics.legal.conversations import per_speaker_estimates, speakers_by_length
    from veilmeter.metrics.legal.one_minus_eer import one_minus_eer
    from veilmeter.metrics.legal.singling_out import CONVERSATIONS, count_isolations

    options = given.build(SinglingOutOptions)
    form = output_form(options)
    setting = typesetting(options)
    label = curve_label(given, options)
    wanted, lengths = sorted(set(options.speakers)), sorted(set(options.lengths))
    people, tested, inputs, warnings = read_attacker_vectors(options)
    refuse_one_speaker(tested.speakers, options.test)
    steps, remarks = _steps(speakers_by_length(tested, lengths), wanted, options.test)
    warnings += remarks
    curves: dict[str, list[Estimate]] = {}
    with show_if_slow("scoring") as progress:
        for utterances, sizes in steps.items():
            drawn: dict[str, Any] = {"predicates": options.predicates, "seed": options.seed, "progress": progress}
            single = count_isolations(
                people,
                tested,
                sizes,
                length=utterances,
                rule=options.rule,  # type: ignore[arg-type]
                draws=options.draws,
                folds=options.folds,
                control=options.control,
                **drawn,
            )
            warnings += short_speakers(single.dropped, 2 * utterances, utterances)
            points = single.estimates(intervals=options.intervals)
            points["one_minus_eer"] = one_minus_eer(
                people,
                tested,
                sizes,
                length=utterances,
                most=CONVERSATIONS,
                intervals=options.intervals,
                seed=options.seed,
            )
            for column in options.attribute:
                from veilmeter.metrics.legal.side_information import singling_out_knowing

                knowing = singling_out_knowing(people, tested, column, sizes, without=single, **drawn)
                for key, curve in knowing.estimates(intervals=options.intervals).items():
                    points.setdefault(f"{key}_knowing", []).extend(curve)
            if options.per_speaker:
                counted = [{"draws": single.draws, "folds": single.folds}] * len(single.names)
                rows = zip(single.names, single.per_predicate(sizes[-1]), counted, strict=True)
                points["singling_out_per_speaker"] = per_speaker_estimates(
                    "singling_out",
                    rows,
                    speakers=sizes[-1],
                    length=utterances,
                    method=f"{options.rule} rule",
                    null=single.chance(sizes[-1]),
                )
            for key, curve in points.items():
                curves.setdefault(key, []).extend(curve)
    drawn_files = draw_curves(options, curves, label, setting)
    page = Page(
        title=f"{options.test}: {len(tested.names):,} speakers, {len(people.names):,} enrolled ({options.enroll})",
        estimates=curves,
        inputs=inputs | {name: getattr(options, name) for name in ("seed", "rule", "draws", "folds", "predicates")},
        warnings=warnings,
        notes=_notes(curves, not options.intervals),
        sections=SECTIONS,
        figures=drawn_files,
        signatures=options.signature,
        signed={"predicates_at_most": options.predicates, **facts_to_sign(inputs, options)},
    )
    emit(page, form)


SECTIONS = {
    "Is somebody picked out?": ["singling_out"],
    "More often than by a rule that knows nobody?": ["residual_risk", "control"],
    "Is it the right person?": ["hit_share"],
    "By an attacker who knows more": [
        "singling_out_knowing", "residual_risk_knowing", "control_knowing", "hit_share_knowing",
    ],
    "Verification, for comparison": ["one_minus_eer"],
    "For whom is protection weakest?": ["singling_out_per_speaker"],
}  # fmt: skip


def _steps(most: dict[int, int], wanted: list[int], test: Path) -> tuple[dict[int, list[int]], list[Finding]]:
    """The numbers of speakers for each length; those that no length has are an error, those of some left out."""
    largest = max(most.values())
    if wanted and wanted[-1] > largest:
        length = max(most, key=lambda utterances: most[utterances])
        raise InputError(
            f"--speakers {wanted[-1]}: only {largest} test speakers have the {2 * length} utterances that length "
            f"{length} needs",
            path=test,
            fix=f"give at most {largest}",
        )
    from veilmeter.metrics.legal.conversations import ladder

    steps, remarks = {}, []
    for length, people in most.items():
        sizes = [n for n in wanted if n <= people] if wanted else ladder(people) if people >= 2 else []
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


def _notes(curves: dict[str, list[Estimate]], no_intervals: bool) -> list[Finding]:
    notes = [Finding("isolation_chance")]
    if not no_intervals:
        notes.append(Finding("intervals_of_isolation"))
    return notes + gains(curves.get("singling_out_knowing", []))
