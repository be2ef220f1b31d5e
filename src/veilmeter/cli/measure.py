"""`veilmeter measure`: every score-based measure of a score file and its trial key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.cli.command import Given, Lists
from veilmeter.cli.shared_options import NO_KEY, typesetting
from veilmeter.core import option_groups
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, Reference, warning
from veilmeter.core.option_groups import Figures, OutputForms
from veilmeter.core.options import Condition, declare, options_of, place_code

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from veilmeter.cli.output import Form, Page
    from veilmeter.core.estimate import Estimate
    from veilmeter.data.scores import Scores


class FilesAndLists(Lists):
    """`--measures eer mine.py:overlap scores.txt` names two measures and a file."""

    def is_argument(self, word: str) -> bool:
        return word == "-" or Path(word).is_file()


COMMAND_CLASS = FilesAndLists
SCORES, SETS = "Reading", "More than one score file"
PER_SPEAKER_RESAMPLES = 200  # at most: there are as many intervals as speakers

STREAMED = "--stream gives the plain measures only"
PLAIN = Condition(lambda options, facts: not options.stream, STREAMED)
WITH_KEY = Condition(
    lambda options, facts: bool(options.trials or (options.calibration_trials and not options.stream)), NO_KEY
)


@dataclass(frozen=True, kw_only=True)
class WholeOptions(Figures):
    """Options of what needs the whole file, and so is not measured with --stream."""

    utt2spk: Path | None = declare(
        None, help="Speaker of each utterance, for the intervals.", metavar="FILE", group=SCORES, path=True,
        default_text="utt2spk beside the key, else from the target trials", example="who",
    )  # fmt: skip
    only_common: bool = declare(False, help="Measure the pairs that are in both files.", group=SCORES, example=True)
    original: Path | None = declare(
        None, help="Scores of original against original speech: with --mixed and --protected adds the normalized "
        "measures (eq. 17-20).", metavar="OO", group=SETS, path=True, example="second",
    )  # fmt: skip
    mixed: Path | None = declare(
        None, help="Scores of original against protected speech.", metavar="OP", group=SETS, path=True,
        example="second",
    )  # fmt: skip
    protected: Path | None = declare(
        None, help="Scores of protected against protected speech.", metavar="PP", group=SETS, path=True,
        example="second",
    )  # fmt: skip
    calibrate_on: Path | None = declare(
        None, help="Scores of a second run of the anonymizer: adds C_ECE.", metavar="SCORES2", group=SETS, path=True,
        example="oo",
    )  # fmt: skip
    calibration_trials: Path | None = declare(
        None, help="Trial key of the second run.", metavar="KEY2", group=SETS, path=True, default_text="the same key",
        example="other-key",
    )  # fmt: skip
    measures: tuple[str, ...] = declare(
        (), help="Measures by name, or file.py:name for your own.", metavar="NAME", default_text="all", path=place_code,
        example="eer",
    )  # fmt: skip
    eer_method: str = option_groups.eer_method()
    per_speaker: bool = declare(False, help="Show ZEBRA and EER of each enrolled speaker.", example=True)
    resamples: int = declare(
        1000, help="Bootstrap resamples of the speakers.", least=50, example=60,
        acts_when=(Condition(lambda options, facts: options.intervals, "intervals were not asked for"),),
    )  # fmt: skip
    seed: int = option_groups.seed()
    figures: Path | None = option_groups.figures(
        "ECE profile, histogram, DET and calibration plot, and OO, OP, PP overlaid,"
    )
    cluster: str | None = option_groups.cluster()


@dataclass(frozen=True, kw_only=True)
class ScoreOptions(WholeOptions, OutputForms):
    """The options of the command."""

    scores: tuple[Path, ...] = declare(
        (), help="Score files: two ids, a score and possibly a label per line; - is standard input.", argument=True,
        metavar="[SCORES]...",
    )  # fmt: skip
    trials: Path | None = declare(
        None,
        help="Trial key: which trials are target trials.",
        metavar="KEY",
        group=SCORES,
        path=True,
        example="other-key",
    )
    layout: str | None = declare(
        None, help="Layout of the key if it is not recognized: vpc, pairs or voxceleb.", group=SCORES,
        acts_when=(WITH_KEY,), example="nonsense",
    )  # fmt: skip
    columns: str | None = declare(
        None, help="Names of the score files' columns if they are not recognized, as in enroll,test,-,score.",
        metavar="NAMES", group=SCORES,
        example="nonsense",
    )  # fmt: skip
    stream: bool = declare(
        False, help="Read files larger than memory: exact values only, using temporary files (8 bytes per score). "
        "The key must be in the same order.", group=SCORES, example=True,
    )  # fmt: skip
    signature: bool = option_groups.signature()
    intervals: bool = option_groups.intervals(acts_when=(PLAIN,))
    jobs: int | None = option_groups.jobs(
        acts_when=(Condition(lambda options, facts: not options.stream, "--stream is one process"),)
    )


OPTIONS = (ScoreOptions,)


def command(given: Given) -> None:
    """Measure what an attacker's scores disclose: EER, Cllr, ZEBRA.

    Intervals are 95 %, over speakers on both sides of the trials. The column "chance" is what scores without any
    information give at the same counts: a value near it shows no leakage, but does not prove that there is none.

    Examples:

        veilmeter measure scores --trials trials

        veilmeter measure ecapa.txt wavlm.txt --trials trials

        veilmeter measure --original oo --mixed op --protected pp --trials trials

        veilmeter measure scores --trials trials --measures eer mine.py:overlap

        veilmeter measure run1 --trials trials --calibrate-on run2 --json
    """
    from contextlib import closing

    from veilmeter.cli.output import Form, Page, emit, output_form
    from veilmeter.core.engine import open_engine
    from veilmeter.core.files import short_digest
    from veilmeter.data.formats.scores import read_with_findings
    from veilmeter.metrics.scores.summary import measure_with_problems

    options = given.build(ScoreOptions)
    form = output_form(options)
    setting = typesetting(options)
    three = {"--original": options.original, "--mixed": options.mixed, "--protected": options.protected}
    if any(three.values()) and not all(three.values()):
        there, missing = (
            ", ".join(name for name, path in three.items() if (path is None) is absent) for absent in (False, True)
        )
        raise InputError(f"{there} is for eq. 17-20, which need all three score files; missing: {missing}")
    files = [_kept_input(path) if str(path) == "-" else path for path in options.scores]
    main = files[0] if files else options.mixed
    if main is None:
        raise InputError("a score file is required", fix="veilmeter measure SCORES --trials KEY")
    if len(files) > 1:
        single = [f"--{name.replace('_', '-')}" for name in OF_ONE_FILE if name in given]
        if single:
            raise InputError(f"{single[0]} is about one score file, not {len(files)}", fix="give one, or leave it out")
        _measure_files(files, options, form, given)
        return
    if options.measures and options.figures is not None:
        raise InputError("--figures draws the measures of all kinds", fix="leave out --measures, or --figures")
    if options.calibration_trials is not None and options.calibrate_on is None:
        raise InputError("--calibration-trials without --calibrate-on", fix="give the scores of the second run too")

    if options.stream:
        given.refuse(options_of(WholeOptions), STREAMED, fix="leave it out, or --stream")
        streamed = _measure_stream(main, options, given.find_unused(options, None))
        emit(replace(streamed, signatures=options.signature), form)
        return
    warnings: list[Finding] = []
    inputs: dict[str, Any] = {}
    overlaid: dict[str, Scores] = {}

    def read(path: Path, key: Path | None, role: str) -> Scores:
        score_set, remarks = read_with_findings(path, key, **_reading(options))
        warnings.extend(remarks)
        inputs[role] = _input(path, key, score_set)
        return score_set

    data = read(main, options.trials, "scores")
    drawn: dict[str, Any] = {"intervals": options.intervals, "resamples": options.resamples, "seed": options.seed}
    with closing(open_engine(options.jobs, options.cluster)) as engine:
        measured, problems = measure_with_problems(data, **_how(options), engine=engine, **drawn)
        estimates: dict[str, Any] = dict(measured)
        if options.calibrate_on is not None:
            from veilmeter.metrics.scores.score_sets import cross_calibration

            other = read(options.calibrate_on, options.calibration_trials or options.trials, "calibrate_on")
            estimates |= cross_calibration(data, other, **drawn)
        sections = _sections(estimates)
        if all(three.values()):
            from veilmeter.metrics.scores.score_sets import compare_sets

            sets = [
                data if path == main else read(path, options.trials, role)
                for role, path in zip(("original", "mixed", "protected"), three.values(), strict=True)
                if path is not None
            ]
            against = compare_sets(*sets, engine=engine, **drawn)
            estimates |= against
            sections[AGAINST_ORIGINAL] = list(against)
            overlaid = dict(zip(("OO", "OP", "PP"), sets, strict=True))
        if options.per_speaker:
            from veilmeter.metrics.scores.score_sets import per_speaker as each

            drawn["resamples"] = min(options.resamples, PER_SPEAKER_RESAMPLES)
            by_speaker = each(data, eer_method=options.eer_method, **drawn)
            estimates |= by_speaker
            sections[OF_EACH_SPEAKER] = list(by_speaker)
    warnings += [*_warnings(measured, data, intervals=options.intervals), *problems]
    warnings += given.find_unused(options, None)
    fewer = options.per_speaker and drawn["resamples"] < options.resamples and options.intervals
    if fewer and "resamples" in given:
        warnings.append(Finding.of("fewer_resamples", asked=options.resamples, drawn=drawn["resamples"]))
    drawn_files = []
    if options.figures is not None:
        from veilmeter.report.figures.scores import save_all

        drawn_files = save_all(data, estimates, options.figures, setting=setting)
        if overlaid:
            from veilmeter.report.figures.overlays import save_overlays

            drawn_files += save_overlays(overlaid, options.figures, setting=setting)
    shown, cut = (estimates, 0) if form is not Form.TABLE else _shorten(estimates)
    page = Page(
        title=_title(main, data),
        estimates=shown,
        inputs=inputs
        | {"eer_method": options.eer_method, "seed": options.seed}
        | {"resamples": options.resamples if options.intervals else 0}
        | ({"resamples_per_speaker": drawn["resamples"]} if options.per_speaker and options.intervals else {}),
        warnings=warnings,
        notes=_notes(estimates, data, not options.intervals, cut),
        sections=sections,
        figures=drawn_files,
        signatures=options.signature,
        signed={"data": short_digest(*(entry["sha256"] + entry.get("trials_sha256", "") for entry in inputs.values()))},
    )
    emit(page, form)


OF_ONE_FILE = (
    "original", "mixed", "protected", "calibrate_on", "calibration_trials", "per_speaker", "figures", "stream",
)  # fmt: skip
IN_ONE_TABLE = ("eer", "min_cllr", "d_ece", "l_w")


def _how(options: ScoreOptions) -> dict[str, Any]:
    """The measures that are asked for, and the method of the EER."""
    from veilmeter.metrics.measure import MEASURES

    found = [MEASURES.find(name) for name in options.measures]
    for entry in found:
        if entry.kind != "scores":
            raise InputError(f"{entry.name} is not a measure of scores", fix="`assess --measures` takes it")
    return {"eer_method": options.eer_method, "measures": [MEASURES.family(entry.name) for entry in found] or None}


def _reading(options: ScoreOptions) -> dict[str, Any]:
    names = ("layout", "utt2spk", "only_common", "columns")
    return {name: getattr(options, name) for name in names}


LONGEST_LINE = 1 << 20  # bytes of standard input
SPARED_DISK = 1 << 30  # bytes that standard input leaves free


@cache
def _kept_input(path: Path) -> Path:
    """Standard input as a file, which is read more than once; it is removed when the command ends."""
    import atexit
    import shutil
    import sys
    from contextlib import ExitStack

    from veilmeter.core.files import scratch_folder

    if sys.stdin is None:
        raise InputError("there is no standard input", fix="name a file")
    scratch = ExitStack()
    folder = scratch.enter_context(scratch_folder())
    atexit.register(scratch.close)
    kept = folder / "standard-input"
    with kept.open("wb") as out:
        is_packed, line = False, 0
        for block in iter(lambda: sys.stdin.buffer.read(LONGEST_LINE), b""):
            is_packed = is_packed or (not out.tell() and block.startswith(b"\x1f\x8b"))
            line = len(block) - block.rfind(b"\n") - 1 + (line if b"\n" not in block else 0)
            if not is_packed and (b"\0" in block or line >= LONGEST_LINE):
                raise InputError("standard input is not a score file", fix="give one trial per line")
            if shutil.disk_usage(folder).free < SPARED_DISK + len(block):
                raise InputError(
                    f"standard input does not fit on the disk of {folder}", fix="set TMPDIR to a larger one"
                )
            out.write(block)
    return kept


def _measure_files(files: Sequence[Path], options: ScoreOptions, form: Form, given: Given) -> None:
    """Every measure of each of several score files: one row per file, or one estimate with the file as its place."""
    from contextlib import closing

    from veilmeter.cli.output import Form, Page, emit, print_rows, signature_lines
    from veilmeter.core.engine import open_engine
    from veilmeter.data.formats.scores import read_with_findings
    from veilmeter.metrics.scores.summary import measure_with_problems
    from veilmeter.wording import sentence

    names = [path.name for path in files]
    if len(set(names)) < len(names):
        names = list(map(str, files))
    if len(set(names)) < len(names):
        raise InputError("a score file was given twice", fix="give each file once")
    estimates: dict[str, list[Estimate]] = {}
    warnings: list[Finding] = []
    inputs: dict[str, Any] = {}
    with closing(open_engine(options.jobs, options.cluster)) as engine:
        for name, path in zip(names, files, strict=True):
            data, remarks = read_with_findings(path, options.trials, **_reading(options))
            measured, problems = measure_with_problems(
                data, **_how(options), engine=engine, intervals=options.intervals,
                resamples=options.resamples, seed=options.seed,
            )  # fmt: skip
            inputs[name] = _input(path, options.trials, data)
            found = [*remarks, *_warnings(measured, data, intervals=options.intervals), *problems]
            warnings += [finding for finding in found if finding not in warnings]
            for key, point in measured.items():
                estimates.setdefault(key, []).append(point.with_(at={"file": name}))
    warnings += given.find_unused(options, None)
    facts = {"eer_method": options.eer_method, "seed": options.seed}
    page = Page(f"{len(files)} score files", estimates, inputs | facts, warnings=warnings, signatures=options.signature)
    if form is not Form.TABLE:
        emit(page, form)
        return
    shown = list(estimates) if options.measures else list(IN_ONE_TABLE)
    head = ["file", *(estimates[key][0].label for key in shown)]
    rows = []
    for number, name in enumerate(names):
        points = [estimates[key][number] for key in shown]
        cells = [f"{point.format_value()} {point.format_interval()}".strip() for point in points]
        rows.append([(cell, False) for cell in (name, *cells)])
    method = [f"EER: {options.eer_method}."] if "eer" in shown else []
    notes = [" ".join([*method, *([] if options.measures else ["--json, --csv and --markdown give every measure."])])]
    print_rows(head, rows, [*(f"! {sentence(finding)}" for finding in warnings), *notes, *signature_lines(page)])


def _measure_stream(path: Path, options: ScoreOptions, remarks: list[Finding]) -> Page:
    from veilmeter.cli.output import Page
    from veilmeter.core.engine import ahead
    from veilmeter.data.formats.scores import stream
    from veilmeter.metrics.scores.summary import measure_stream, warnings_of

    key = options.trials
    estimates = measure_stream(ahead(stream(path, key, layout=options.layout, columns=options.columns)))
    n = estimates["eer"].n
    return Page(
        title=f"{path}: {n['targets']:,} target and {n['impostors']:,} impostor trials",
        estimates=estimates,
        inputs={"scores": {"path": str(path), **n}} | ({} if key is None else {"trials": str(key)}),
        warnings=warnings_of(estimates) + remarks,
        notes=[Finding("scores_streamed")],
        sections=_sections(estimates),
    )


WORST = 10
HEADINGS = {"verification": "Can the attacker tell speakers apart?", "disclosure": "What do the scores disclose?"}
AGAINST_ORIGINAL = "Against the original voices (eq. 17-20)"
OF_EACH_SPEAKER = "For whom is protection weakest?"


def _sections(estimates: Iterable[str]) -> dict[str, list[str]]:
    """The measures of one set of scores under the headings of their sections."""
    from veilmeter.metrics.measure import find_measure

    sections: dict[str, list[str]] = {heading: [] for heading in HEADINGS.values()}
    for name in estimates:
        section = find_measure(name).section
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
    from veilmeter.wording.numbers import count

    counts = data.counts
    people = f" of {count(counts['speakers'], 'speaker')}" if "speakers" in counts else ""
    return f"{path}: {counts['targets']:,} target and {counts['impostors']:,} impostor trials{people}"


def _warnings(estimates: Mapping[str, Estimate], data: Scores, *, intervals: bool) -> list[Finding]:
    from veilmeter.metrics.scores.summary import one_target_person, warnings_of

    warnings = warnings_of(estimates)
    if intervals and one_target_person(data):
        warnings.append(warning("one_target_speaker"))
    elif intervals and 0 < data.speaker_count < 10:
        warnings.append(warning("few_speakers", count=data.speaker_count))
    return warnings


def _shorten(estimates: dict[str, Any]) -> tuple[dict[str, Any], int]:
    """The estimates with the worst speakers only, and how many there are in all if some were cut."""
    longest = max((len(measured) for measured in estimates.values() if isinstance(measured, list)), default=0)
    kept = {name: measured[:WORST] if isinstance(measured, list) else measured for name, measured in estimates.items()}
    return kept, longest if longest > WORST else 0


def _is_more_than_chance(strength: Estimate) -> bool:
    return strength.null_range is None or strength.value > strength.null_range[1]


def _notes(estimates: dict[str, Any], data: Scores, no_intervals: bool, cut: int) -> list[Finding]:
    single = [measured for measured in estimates.values() if not isinstance(measured, list)]
    notes = [
        Finding.of("evidence_tag", tag=point.extra["tag"], chance=None if _is_more_than_chance(point) else True)
        for point in single
        if "tag" in point.extra
    ]
    if cut:
        notes.append(Finding.of("worst_speakers_shown", shown=WORST, speakers=cut))
    without = [point.label for point in single if point.interval is None]
    if not no_intervals and without and len(without) < len(single):
        notes.append(Finding.of("measures_without_interval", measures=tuple(without)))
    if not no_intervals:
        known = Reference("file", data.speakers_from) if data.enroll_speaker is not None else None
        notes.append(Finding.of("intervals_of_scores", speakers_from=known))
    return notes
