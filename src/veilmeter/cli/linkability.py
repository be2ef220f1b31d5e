"""`veilmeter linkability`: can protected recordings be linked to the right person among N' enrolled ones?"""

from __future__ import annotations

from dataclasses import dataclass
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
from veilmeter.core import option_groups
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, warning
from veilmeter.core.option_groups import CURVE, EVERY_SIZE, MORE, Workers, parse_sizes
from veilmeter.core.options import Condition, declare

if TYPE_CHECKING:
    from veilmeter.core.estimate import Estimate
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.metrics.legal.linkability import LinkCounts

COMMAND_CLASS = Lists


@dataclass(frozen=True, kw_only=True)
class LinkabilityOptions(AttackerEmbeddings, Workers):
    """The options of the command."""

    speakers: tuple[int, ...] = declare(
        (), help="Numbers of enrolled people, or `all` for every number.", group=CURVE, least=1,
        also=EVERY_SIZE, parse=parse_sizes, default_text=LADDER_TEXT, example=5,
    )  # fmt: skip
    lengths: tuple[int, ...] = declare(
        (1,), help="Utterances in a conversation, one or several numbers.", metavar="L", group=CURVE, least=1,
        example=2,
    )  # fmt: skip
    conversations: int | None = declare(
        None, help="Conversations per test speaker at most, drawn at random.", group=CURVE, least=1, default_text="all",
        example=2,
    )  # fmt: skip
    population: tuple[int, ...] = declare(
        (), help="Population sizes to extrapolate to, such as 1e6, with a back-test.", group=MORE, least=2, example=1000
    )
    ranks: bool = declare(
        False, help="Measure the cumulative match curve, the disclosure of ranks, and each person's TPR at a low FPR.",
        group=MORE, example=True,
    )  # fmt: skip
    per_speaker: bool = declare(False, help="Show the Linkability of each test speaker.", group=MORE, example=True)
    seed: int = option_groups.seed(
        acts_when=(Condition(lambda options, is_drawn: is_drawn, "everything is compared, and nothing is drawn"),)
    )


OPTIONS = (LinkabilityOptions,)


def command(given: Given) -> None:
    """Measure how often a recording is linked to the right person.

    The attacker chooses among N' enrolled people. The rate is exact over all choices of impostors. Ties count as
    failures of the attacker. Values are percentages of the recordings; intervals are 95 %, over speakers; chance is
    1/N'.

    Examples:

        veilmeter linkability --enroll enrolls.npz --test trials_anon.npz --speakers 20,100,1000 --lengths 1,3

        veilmeter linkability --enroll xvect_enrolls --test xvect_trials_anon --population 1e6 --ranks --figures out
    """
    from contextlib import closing

    from veilmeter.cli.output import Page, emit, output_form
    from veilmeter.core.engine import open_engine
    from veilmeter.metrics.legal.conversations import ladder, per_speaker_estimates
    from veilmeter.metrics.legal.linkability import count_links
    from veilmeter.metrics.legal.one_minus_eer import one_minus_eer

    options = given.build(LinkabilityOptions)
    form = output_form(options)
    setting = typesetting(options)
    label = curve_label(given, options)
    every = options.speakers == EVERY_SIZE
    wanted = [] if every else sorted(set(options.speakers))
    lengths = sorted(set(options.lengths))
    sizes = sorted(set(options.population))
    people, tested, inputs, warnings = read_attacker_vectors(options)
    largest = len(people.names)
    if wanted and wanted[-1] > largest:
        raise InputError(
            f"--speakers {wanted[-1]}: only {largest} people are enrolled",
            path=options.enroll,
            fix=f"give at most {largest}",
        )
    steps = wanted or (list(range(2, largest + 1)) if every else ladder(largest))
    if sizes and largest < FEW_ENROLLED:
        warnings.append(warning("few_enrolled", count=largest))
    curves: dict[str, list[Estimate]] = {}
    drawn: dict[str, Any] = {"most": options.conversations, "seed": options.seed}
    with closing(open_engine(options.jobs, options.cluster)) as engine, show_if_slow("scoring") as progress:
        for utterances in lengths:
            link = count_links(people, tested, length=utterances, progress=progress, **drawn)
            warnings += short_speakers(_short(link, people.names, tested.names), utterances, utterances)
            pair = link.estimate(2)
            if pair.interval is not None and pair.null is not None and pair.interval[1] < pair.null:
                warnings.append(warning("linked_below_chance", linked=pair))
            points = {"linkability": link.estimates(steps, intervals=options.intervals)}
            points["one_minus_eer"] = one_minus_eer(
                people, tested, steps, length=utterances, intervals=options.intervals, engine=engine, **drawn
            )
            if sizes:
                from veilmeter.metrics.legal.population import population_linkability

                points["population_linkability"] = list(
                    population_linkability(link, sizes, intervals=options.intervals, seed=options.seed)
                )
            if options.ranks:
                from veilmeter.metrics.legal.ranks import identity_tpr, rank_estimates

                points |= rank_estimates(link, intervals=options.intervals, seed=options.seed, engine=engine)
                tpr = identity_tpr(people, tested, length=utterances, **drawn)
                points["identity_tpr"] = tpr.estimates(intervals=options.intervals)
            for column in options.attribute:
                from veilmeter.metrics.legal.side_information import linkability_knowing

                knowing = linkability_knowing(people, tested, column, length=utterances, progress=progress, **drawn)
                points.setdefault("linkability_knowing", []).extend(
                    knowing.estimates(steps, intervals=options.intervals)
                )
            if options.per_speaker:
                counted = [{"conversations": int(count)} for count in link.counts]
                rows = zip(link.names, link.per_speaker(steps[-1]), counted, strict=True)
                points["linkability_per_speaker"] = per_speaker_estimates(
                    "linkability", rows, speakers=steps[-1], length=utterances, method="exact", null=1 / steps[-1]
                )
            for key, curve in points.items():
                curves.setdefault(key, []).extend(curve)
    is_drawn = bool(options.ranks or sizes or options.intervals) or _draws_recordings(
        people, tested, min(lengths), options.conversations
    )
    warnings += given.find_unused(options, is_drawn)
    drawn_files = draw_curves(options, curves, label, setting)
    page = Page(
        title=f"{options.test}: {len(tested.names):,} speakers, {largest:,} enrolled ({options.enroll})",
        estimates=curves,
        inputs=inputs | {"seed": options.seed if is_drawn else None, "conversations": options.conversations},
        warnings=warnings,
        notes=_notes(curves, not options.intervals),
        sections=SECTIONS,
        figures=drawn_files,
        signatures=options.signature,
        signed=facts_to_sign(inputs, options) if is_drawn else facts_to_sign(inputs),
    )
    emit(page, form)


FEW_ENROLLED = 100
SECTIONS = {
    "Is a recording linked to the right person?": ["linkability"],
    "... by an attacker who knows more": ["linkability_knowing"],
    "In a population (a model's extrapolation)": ["population_linkability"],
    "Where does the right person rank?": ["cmc", "rank_disclosure", "rank_disclosure_worst", "identity_tpr"],
    "Verification, for comparison": ["one_minus_eer"],
    "For whom is protection weakest?": ["linkability_per_speaker"],
}


def _short(link: LinkCounts, enrolled: tuple[str, ...], tested: tuple[str, ...]) -> list[str]:
    used, known = set(link.names), set(enrolled)
    return [name for name in tested if name not in used and name in known]


def _draws_recordings(people: Embeddings, tested: Embeddings, length: int, conversations: int | None) -> bool:
    """Whether there are more recordings than are to be compared, so that some are drawn."""
    import numpy as np

    from veilmeter.metrics.legal.one_minus_eer import TRIALS

    some = conversations is not None and int(np.bincount(tested.codes).max()) // length > conversations
    return some or len(tested) // length * len(people.names) > TRIALS


def _notes(curves: dict[str, list[Estimate]], no_intervals: bool) -> list[Finding]:
    notes = []
    if not no_intervals:
        notes.append(Finding("intervals_of_linkability"))
    if "population_linkability" in curves:
        far = curves["population_linkability"][0]
        tested = far.extra["back_test"]
        notes.append(
            Finding.of(
                "population_model",
                fitted=tested["fitted"],
                predicted=tested["speakers"],
                unseen_share=float(far.extra["unseen_share"]),
                speakers=far.n["speakers"],
            )
        )
    return notes + gains(curves.get("linkability_knowing", []))
