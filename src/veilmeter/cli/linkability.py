"""`veilmeter linkability`: can protected recordings be linked to the right person among N' enrolled ones?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veilmeter.cli import given, options
from veilmeter.cli.lists import Lists, numbers
from veilmeter.core.errors import InputError
from veilmeter.core.findings import warning

if TYPE_CHECKING:
    from veilmeter.core.estimate import Estimate
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.metrics.legal.linkability import Linkability

COMMAND_CLASS = Lists
CURVE, MORE = options.CURVE, options.MORE


def command(
    ctx: typer.Context,
    enrol: options.Enroll,
    test: options.Test,
    speakers: Annotated[
        list[str] | None,
        options.several("N", "Linkability among so many enrolled people; several, or `all` for every N' of "
                        "the exact curve. Default: round numbers up to everybody.", CURVE),
    ] = None,
    length: Annotated[
        list[str] | None,
        options.several("L", "Utterances in a test conversation; several, or with commas. Default: 1.", CURVE,
                        "--length", "--lengths"),
    ] = None,
    conversations: Annotated[
        int | None,
        typer.Option(help="At most so many conversations of a test speaker, drawn at random. Default: all.", min=1,
                     rich_help_panel=CURVE, show_default=False),
    ] = None,
    population: Annotated[
        list[str] | None,
        options.several("N", "Extrapolate to a population of this size (1e6), with a back-test.", MORE),
    ] = None,
    ranks: Annotated[
        bool,
        typer.Option("--ranks", help="Cumulative match curve, what ranks disclose, and TPR at low FPR a person.",
                     rich_help_panel=MORE),
    ] = False,
    attribute: options.Attributes = None,
    per_speaker: Annotated[
        bool, typer.Option("--per-speaker", help="Linkability of each test speaker.", rich_help_panel=MORE)
    ] = False,
    name: options.AttackerName = "",
    beside: options.Beside = None,
    strict: options.Strict = False,
    no_intervals: options.NoIntervals = False,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    figures: Annotated[Path | None, options.figures("the curves")] = None,
    width: options.Width = None,
    font: options.Font = None,
    font_size: options.FontSize = None,
    json: options.Json = False,
    csv: options.Csv = False,
    markdown: options.Markdown = False,
    latex: options.Latex = False,
) -> None:  # fmt: skip
    """Can a protected recording be linked to the right person among N' enrolled people?

    Exact over all choices of impostors, for every N' from one pass over the scores. A tie is a failure of the attacker.
    Values are fractions between 0 and 1; intervals are 95 %, over speakers; chance is 1/N'.

    Examples:

        veilmeter linkability --enroll enrolls.npz --test trials_anon.npz --speakers 20,100,1000 --length 1,3

        veilmeter linkability --enroll xvect_enrolls --test xvect_trials_anon --population 1e6 --ranks --figures out
    """
    from contextlib import closing

    from veilmeter.cli import legal
    from veilmeter.cli.output import Page, chosen_form, emit
    from veilmeter.core.engine import open_engine
    from veilmeter.metrics.legal.linkability import linkability
    from veilmeter.metrics.legal.material import per_speaker_estimates
    from veilmeter.metrics.legal.one_minus_eer import one_minus_eer

    form = chosen_form(json=json, csv=csv, markdown=markdown, latex=latex)
    setting = options.typesetting(figures, width, font, font_size)
    label = legal.label(ctx, name, test, figures)
    every = [word.strip() for word in speakers or []] == ["all"]
    wanted = [] if every else numbers(speakers, "--speakers", least=1)
    lengths = numbers(length, "--length") or [1]
    sizes = numbers(population, "--population", least=2)
    people, tested, inputs, warnings = legal.read(enrol, test, strict=strict)
    largest = len(people.names)
    if wanted and wanted[-1] > largest:
        raise InputError(
            f"--speakers {wanted[-1]}: only {largest} people are enrolled", path=enrol, fix=f"give at most {largest}"
        )
    steps = wanted or (list(range(2, largest + 1)) if every else legal.ladder(largest))
    if sizes and largest < FEW_ENROLLED:
        warnings.append(warning("few_enrolled", count=largest))
    curves: dict[str, list[Estimate]] = {}
    drawn: dict[str, Any] = {"most": conversations, "seed": seed}
    with closing(open_engine(jobs, cluster)) as engine, legal.later("scoring") as progress:
        for utterances in lengths:
            link = linkability(people, tested, length=utterances, progress=progress, **drawn)
            warnings += legal.dropped(_short(link, people.names, tested.names), utterances, utterances)
            points = {"linkability": link.estimates(steps, intervals=not no_intervals)}
            points["one_minus_eer"] = one_minus_eer(
                people, tested, steps, length=utterances, intervals=not no_intervals, engine=engine, **drawn
            )
            if sizes:
                from veilmeter.metrics.legal.population import population_linkability

                points["population_linkability"] = population_linkability(
                    link, sizes, intervals=not no_intervals, seed=seed
                )
            if ranks:
                from veilmeter.metrics.legal.ranks import identity_tpr, rank_estimates

                points |= rank_estimates(link, intervals=not no_intervals, seed=seed, engine=engine)
                tpr = identity_tpr(people, tested, length=utterances, **drawn)
                points["identity_tpr"] = tpr.estimates(intervals=not no_intervals)
            for column in attribute or []:
                from veilmeter.metrics.legal.side_information import informed_linkability

                knowing = informed_linkability(people, tested, column, length=utterances, progress=progress, **drawn)
                points.setdefault("linkability_knowing", []).extend(
                    knowing.estimates(steps, intervals=not no_intervals)
                )
            if per_speaker:
                counted = [{"conversations": int(count)} for count in link.counts]
                rows = zip(link.names, link.per_speaker(steps[-1]), counted, strict=True)
                points["linkability_per_speaker"] = per_speaker_estimates(
                    "linkability", rows, speakers=steps[-1], length=utterances, method="exact", null=1 / steps[-1]
                )
            for key, curve in points.items():
                curves.setdefault(key, []).extend(curve)
    idle = _nothing_drawn(
        people, tested, min(lengths), conversations, by_draws=bool(ranks or sizes or not no_intervals)
    )
    warnings += given.without_effect(ctx, {"seed": idle})
    drawn_files = legal.draw(figures, curves, label, beside, setting)
    page = Page(
        title=f"{test}: {len(tested.names):,} speakers, {largest:,} enrolled ({enrol})",
        estimates=curves,
        inputs=inputs | {"seed": None if idle else seed, "conversations": conversations},
        warnings=warnings,
        notes=_notes(curves, no_intervals),
        sections=SECTIONS,
        figures=drawn_files,
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


def _short(link: Linkability, enrolled: tuple[str, ...], tested: tuple[str, ...]) -> list[str]:
    used, known = set(link.names), set(enrolled)
    return [name for name in tested if name not in used and name in known]


def _nothing_drawn(
    people: Embeddings, tested: Embeddings, length: int, conversations: int | None, *, by_draws: bool
) -> str:
    """Why the seed decides nothing: intervals, ranks and extrapolations draw people, the rest only where there are more
    recordings than are to be compared."""
    import numpy as np

    from veilmeter.metrics.legal.one_minus_eer import TRIALS

    some = conversations is not None and int(np.bincount(tested.codes).max()) // length > conversations
    many = len(tested) // length * len(people.names) > TRIALS
    return "" if by_draws or some or many else "everything is compared, and nothing is drawn"


def _notes(curves: dict[str, list[Estimate]], no_intervals: bool) -> list[str]:
    from veilmeter.cli import legal

    notes = []
    if not no_intervals:
        notes.append("95 % intervals over speakers, in both roles where few are enrolled; safer: ↓ lower.")
    if "population_linkability" in curves:
        far = curves["population_linkability"][0]
        tested = far.extra["back_test"]
        notes.append(
            "Population: a model of the scores, not a measurement. Its interval is widened by what a back-test missed: "
            f"fitted among {tested['fitted']:,} people, the model had to predict what was measured among "
            f"{tested['speakers']:,}. Unprotected people who make up less than {100 * far.extra['unseen_share']:.2g} % "
            f"of the population may be missing among these {far.n['speakers']:,}: only the interval allows for them."
        )
    return notes + legal.gains(curves.get("linkability_knowing", []))
