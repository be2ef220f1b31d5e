"""`veilmeter measure`: every score-based measure of a score file and its trial key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from veilmeter.cli import options
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, warning

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from veilmeter.cli.output import Page
    from veilmeter.core.estimate import Estimate
    from veilmeter.data.scores import Scores

SCORES, SETS = "Reading", "More than one score file"
PER_SPEAKER_RESAMPLES = 200  # at most: there are as many intervals as speakers
NOT_STREAMED = (
    "utt2spk", "only_common", "original", "mixed", "protected", "calibrate_on", "calibration_trials", "eer_method",
    "per_speaker", "resamples", "seed", "cluster", "figures",
)  # fmt: skip


def command(
    ctx: typer.Context,
    scores: Annotated[
        Path | None,
        typer.Argument(metavar="SCORES", show_default=False,
                       help="Score file: two ids and a score a line, the label as fourth column or in the key."),
    ] = None,
    trials: Annotated[
        Path | None, typer.Option(metavar="KEY", help="Trial key: which trials are target.", rich_help_panel=SCORES)
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(help="Layout of the key where it can't be recognized: vpc, pairs or voxceleb.",
                     rich_help_panel=SCORES),
    ] = None,
    utt2spk: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Who speaks in each utterance, for the intervals. Default: utt2spk "
                     "beside the key if there is one, else what the target trials tell.", rich_help_panel=SCORES),
    ] = None,
    only_common: Annotated[
        bool, typer.Option("--only-common", help="Measure the pairs that are in both files.", rich_help_panel=SCORES)
    ] = False,
    original: Annotated[
        Path | None,
        typer.Option(metavar="OO", help="Scores of original against original speech: with --mixed and --protected adds "
                     "the normalized measures (eq. 17-20).", rich_help_panel=SETS),
    ] = None,
    mixed: Annotated[
        Path | None,
        typer.Option(metavar="OP", help="Scores of original against protected speech.", rich_help_panel=SETS),
    ] = None,
    protected: Annotated[
        Path | None,
        typer.Option(metavar="PP", help="Scores of protected against protected speech.", rich_help_panel=SETS),
    ] = None,
    calibrate_on: Annotated[
        Path | None,
        typer.Option(metavar="SCORES2", help="Scores of a second run of the anonymizer: adds C_ECE.",
                     rich_help_panel=SETS),
    ] = None,
    calibration_trials: Annotated[
        Path | None,
        typer.Option(metavar="KEY2", help="Trial key of the second run. Default: the same key.", rich_help_panel=SETS),
    ] = None,
    eer_method: options.EerMethod = "rocch",
    per_speaker: Annotated[
        bool, typer.Option("--per-speaker", help="ZEBRA and EER of each enrolled speaker: whom does protection fail?")
    ] = False,
    stream: Annotated[
        bool,
        typer.Option("--stream", help="For files larger than memory: values only, exact, by way of files in the "
                     "temporary folder (8 bytes a score). The key must have the same order.", rich_help_panel=SCORES),
    ] = False,
    no_intervals: options.NoIntervals = False,
    resamples: Annotated[int, typer.Option(help="Bootstrap resamples of the speakers.", min=50)] = 1000,
    seed: options.Seed = 0,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    figures: Annotated[
        Path | None, options.figures("ECE profile, histogram, DET and calibration plot, and OO, OP, PP overlaid,")
    ] = None,
    width: options.Width = None,
    font: options.Font = None,
    font_size: options.FontSize = None,
    json: options.Json = False,
    csv: options.Csv = False,
    markdown: options.Markdown = False,
    latex: options.Latex = False,
) -> None:  # fmt: skip
    """Measure what the scores of an attacker give away: EER, Cllr, ZEBRA, linkability, each with its uncertainty.

    Intervals are 95 %, over speakers on both sides of the trials. The column "chance" is what scores without any
    information give at the same counts: a value near it is no leakage, nor proof of none.

    Examples:

        veilmeter measure scores --trials trials

        veilmeter measure --original oo --mixed op --protected pp --trials trials

        veilmeter measure run1 --trials trials --calibrate-on run2 --json
    """
    from contextlib import closing

    from veilmeter.cli import given
    from veilmeter.cli.output import Form, Page, chosen_form, emit
    from veilmeter.core.engine import open_engine
    from veilmeter.data.formats.scores import read_with_findings
    from veilmeter.metrics.scores.eer import Eer
    from veilmeter.metrics.scores.summary import measure_with_problems

    form = chosen_form(json=json, csv=csv, markdown=markdown, latex=latex)
    setting = options.typesetting(figures, width, font, font_size)
    Eer(eer_method)  # an unknown method is refused before anything is read
    three = {"--original": original, "--mixed": mixed, "--protected": protected}
    if any(three.values()) and not all(three.values()):
        there, missing = (
            ", ".join(name for name, path in three.items() if (path is None) is absent) for absent in (False, True)
        )
        raise InputError(f"{there} is for eq. 17-20, which need all three score files; missing: {missing}")
    main = scores if scores is not None else mixed
    if main is None:
        raise InputError("there is no score file", fix="veilmeter measure SCORES --trials KEY")
    if calibration_trials is not None and calibrate_on is None:
        raise InputError("--calibration-trials without --calibrate-on", fix="give the scores of the second run too")

    if stream:
        plain_only = "--stream gives the plain measures only"
        given.refuse(ctx, NOT_STREAMED, plain_only, fix="leave it out, or --stream")
        unused = {"no_intervals": plain_only, "jobs": "--stream is one process", "layout": _without_key(trials)}
        emit(_streamed(main, trials, layout, given.without_effect(ctx, unused)), form)
        return
    warnings: list[Finding] = []
    inputs: dict[str, Any] = {}
    overlaid: dict[str, Scores] = {}

    def read(path: Path, key: Path | None, role: str) -> Scores:
        score_set, remarks = read_with_findings(path, key, layout=layout, utt2spk=utt2spk, only_common=only_common)
        warnings.extend(remarks)
        inputs[role] = _input(path, key, score_set)
        return score_set

    data = read(main, trials, "scores")
    drawn: dict[str, Any] = {"intervals": not no_intervals, "resamples": resamples, "seed": seed}
    with closing(open_engine(jobs, cluster)) as engine:
        measured, problems = measure_with_problems(data, eer_method=eer_method, engine=engine, **drawn)
        estimates: dict[str, Any] = dict(measured)
        if calibrate_on is not None:
            from veilmeter.metrics.scores.score_sets import cross_calibration

            other = read(calibrate_on, calibration_trials or trials, "calibrate_on")
            estimates |= cross_calibration(data, other, **drawn)
        sections = _sections(estimates)
        if original is not None and mixed is not None and protected is not None:
            from veilmeter.metrics.scores.score_sets import compare_sets

            sets = [
                data if path == main else read(path, trials, role)
                for role, path in (("original", original), ("mixed", mixed), ("protected", protected))
            ]
            against = compare_sets(*sets, engine=engine, **drawn)
            estimates |= against
            sections[AGAINST_ORIGINAL] = list(against)
            overlaid = dict(zip(("OO", "OP", "PP"), sets, strict=True))
        if per_speaker:
            from veilmeter.metrics.scores.score_sets import per_speaker as each

            drawn["resamples"] = min(resamples, PER_SPEAKER_RESAMPLES)
            by_speaker = each(data, eer_method=eer_method, **drawn)
            estimates |= by_speaker
            sections[OF_EACH_SPEAKER] = list(by_speaker)
    warnings += [*_warnings(measured, data, intervals=not no_intervals), *problems]
    unused = {
        "layout": _without_key(trials or calibration_trials),
        "resamples": "intervals were not asked for" if no_intervals else "",
    }
    warnings += given.without_effect(ctx, unused)
    fewer = per_speaker and drawn["resamples"] < resamples and not no_intervals
    if fewer and given.is_given(ctx, "resamples"):
        warnings.append(Finding.of("fewer_resamples", asked=resamples, drawn=drawn["resamples"]))
    drawn_files = []
    if figures is not None:
        from veilmeter.report.figures.scores import save_all

        drawn_files = save_all(data, estimates, figures, setting=setting)
        if overlaid:
            from veilmeter.report.figures.overlays import save_overlays

            drawn_files += save_overlays(overlaid, figures, setting=setting)
    shown, cut = (estimates, 0) if form is not Form.TABLE else _shortened(estimates)
    page = Page(
        title=_title(main, data),
        estimates=shown,
        inputs=inputs
        | {"eer_method": eer_method, "seed": seed, "resamples": 0 if no_intervals else resamples}
        | ({"resamples_per_speaker": drawn["resamples"]} if per_speaker and not no_intervals else {}),
        warnings=warnings,
        notes=_notes(estimates, data, no_intervals, cut),
        sections=sections,
        figures=drawn_files,
    )
    emit(page, form)


def _without_key(key: Path | None) -> str:
    """Why the layout of a key had no effect; nothing where there is one."""
    return "" if key is not None else "there is no trial key"


def _streamed(path: Path, key: Path | None, layout: str | None, remarks: list[Finding]) -> Page:
    from veilmeter.cli.output import Page
    from veilmeter.core.engine import ahead
    from veilmeter.data.formats.score_stream import stream
    from veilmeter.metrics.scores.summary import measure_stream, warnings_of

    estimates = measure_stream(ahead(stream(path, key, layout=layout)))
    n = estimates["eer"].n
    return Page(
        title=f"{path}: {n['targets']:,} target and {n['impostors']:,} impostor trials",
        estimates=estimates,
        inputs={"scores": {"path": str(path), **n}} | ({} if key is None else {"trials": str(key)}),
        warnings=warnings_of(estimates) + remarks,
        notes=["Streamed: values are exact; no intervals and no chance level; repeated pairs were not looked for."],
        sections=_sections(estimates),
    )


WORST = 10
HEADINGS = {"verification": "Can the attacker tell speakers apart?", "disclosure": "What do the scores disclose?"}
AGAINST_ORIGINAL = "Against the original voices (eq. 17-20)"
OF_EACH_SPEAKER = "For whom is protection weakest?"


def _sections(estimates: Iterable[str]) -> dict[str, list[str]]:
    """The measures of one set of scores under the headings of their sections."""
    from veilmeter.metrics.registry import measure

    sections: dict[str, list[str]] = {heading: [] for heading in HEADINGS.values()}
    for name in estimates:
        section = measure(name).section
        sections.setdefault(HEADINGS.get(section, section.replace("_", " ").capitalize()), []).append(name)
    return sections


def _input(path: Path, key: Path | None, scores: Scores) -> dict[str, Any]:
    from veilmeter.core.files import sha256

    entry: dict[str, Any] = {
        "path": str(path),
        "sha256": sha256(path),
        **scores.counts,
        "speakers_from": scores.speakers_from,
    }
    return entry if key is None else entry | {"trials": str(key), "trials_sha256": sha256(key)}


def _title(path: Path, data: Scores) -> str:
    counts = data.counts
    people = f" of {counts['speakers']:,} speakers" if "speakers" in counts else ""
    return f"{path}: {counts['targets']:,} target and {counts['impostors']:,} impostor trials{people}"


def _warnings(estimates: Mapping[str, Estimate], data: Scores, *, intervals: bool) -> list[Finding]:
    from veilmeter.metrics.scores.summary import one_target_person, warnings_of

    warnings = warnings_of(estimates)
    if intervals and one_target_person(data):
        warnings.append(warning("one_target_speaker"))
    elif intervals and 0 < data.speaker_count < 10:
        warnings.append(warning("few_speakers", count=data.speaker_count))
    return warnings


def _shortened(estimates: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The estimates with the worst speakers only, and how many there are in all if some were cut."""
    longest = max((len(measured) for measured in estimates.values() if isinstance(measured, list)), default=0)
    kept = {name: measured[:WORST] if isinstance(measured, list) else measured for name, measured in estimates.items()}
    return kept, longest if longest > WORST else 0


def _notes(estimates: dict[str, Any], data: Scores, no_intervals: bool, cut: int) -> list[str]:
    single = [measured for measured in estimates.values() if not isinstance(measured, list)]
    tagged = [point.extra for point in single if "sentence" in point.extra]
    notes = [f"Tag {facts['tag']}: {facts['sentence']} (at even odds)." for facts in tagged]
    if cut:
        notes.append(f"The {WORST} speakers with the highest D_ECE of {cut:,}; --json and --csv have all of them.")
    without = [point.label for point in single if point.interval is None]
    if not no_intervals and len(without) < len(single):
        notes += [f"No interval: {', '.join(without)}."] if without else []
    if not no_intervals:
        alone = "; an utterance of nobody enrolled counts by itself" if data.speakers_from == "target trials" else ""
        who = (
            f"speakers (known from {data.speakers_from}{alone})"
            if data.enrol_speaker is not None
            else "trials, as if independent"
        )
        notes.append(
            f"95 % intervals by bootstrap over {who}, corrected for bias; safer: ↑ higher, ↓ lower; dim: within the "
            "5-95 % range of what scores without information give."
        )
    return notes
