"""Options that several commands share, beside `core.option_groups`, and the steps that they share: reading the
inputs that are named, and drawing figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from veilmeter.core import option_groups
from veilmeter.core.errors import InputError
from veilmeter.core.findings import Finding, Reference, first_speakers, warning
from veilmeter.core.option_groups import MORE, OUTPUT, VECTORS, Figures, OutputForms, Workers
from veilmeter.core.options import MISSING, Condition, declare, place_code, place_named
from veilmeter.core.text import clean
from veilmeter.data.corpus import CorpusReading, max_seconds, strict

if TYPE_CHECKING:
    from veilmeter.cli.command import Given
    from veilmeter.core.errors import Problem
    from veilmeter.core.estimate import Estimate
    from veilmeter.data.corpus import Corpus, CorpusReading
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.report.figures.typesetting import Typesetting


def read_vectors(path: Path, warnings: list[Finding], *, strict: bool = False) -> tuple[Embeddings, dict[str, Any]]:
    """The usable embeddings, and what the results say of this input; what was left out is added to the warnings.

    With `strict` the first vector that can't be used is an error.
    """
    from veilmeter.core.files import sha256
    from veilmeter.data.formats.vectors import load_embeddings, read_embeddings

    if strict:
        embeddings = read_embeddings(path)
    else:
        loaded = load_embeddings(path)
        warnings += loaded.findings()
        embeddings = loaded.embeddings
    counts = {"utterances": len(embeddings), "speakers": len(embeddings.names), "dimension": embeddings.dimension}
    return embeddings, {"path": str(path), "sha256": sha256(path), **counts}


def read_given(path: Path, options: CorpusReading) -> Corpus:
    """The corpus that the options of a command name."""
    from veilmeter.data.corpus import read_corpus
    from veilmeter.data.formats.table import parse_columns

    return read_corpus(
        path,
        options.layout,
        roots=options.root,
        part=options.part,
        suffix=options.suffix,
        columns=parse_columns(options.columns),
        channel=options.channel,
    )


def remarks_on_reading(given: Given, options: CorpusReading, *corpora: Corpus) -> list[Finding]:
    """A remark on each option of reading that decided nothing in any of them."""
    from veilmeter.speech.audio import reading_facts

    return given.find_unused(options, reading_facts(options, *corpora))


def print_outcome(
    command: str,
    inputs: Mapping[str, Any],
    more: Mapping[str, Any],
    left_out: Sequence[Problem],
    *,
    json: bool,
    as_text: Callable[[], None],
    remarks: Sequence[Finding] = (),
) -> None:
    """Print the outcome, as JSON or as text, and remarks on it."""
    from veilmeter.cli.output import Form, Page, emit
    from veilmeter.wording import sentence

    if json:
        warnings = [warning("recordings_left_out", count=len(left_out))] if left_out else []
        emit(Page(command, {}, inputs=dict(inputs), warnings=[*warnings, *remarks], more=dict(more)), Form.JSON)
    else:
        as_text()
        for remark in remarks:
            print(f"! {sentence(remark)}")


def exit_if_left_out(left_out: Sequence[object] | int) -> None:
    """Another exit code where recordings were left out; these, or how many."""
    from veilmeter.cli.terminal import Exit

    if left_out:
        raise typer.Exit(Exit.LEFT_OUT)


@dataclass(frozen=True)
class FormFacts:
    """The form in which figures were printed."""

    form: str


# Speakers are listed below the table only.
TABLE_ONLY = Condition(
    lambda options, facts: facts.form == "table",
    lambda options, facts: (
        "JSON has every speaker in any case" if facts.form == "json" else f"{facts.form} has no list of speakers"
    ),
)
SAMPLED = "nothing was drawn at random"
NO_KEY = "no trial key was given"
LADDER_TEXT = "round numbers up to everybody"


def run() -> Any:
    return declare(help="Folder that `assess --out` wrote.", argument=True)


def vectors(help: str, default: Any = MISSING, **declared: Any) -> Any:
    """An option that names embeddings."""
    return declare(default, help=help, metavar=VECTORS, path=True, **declared)


def recognizer() -> Any:
    return declare(
        None,
        help="moonshine (English), whisper (99 languages), 'command:PROGRAM {input}', the name of a plug-in, or "
        "module:function.",
        metavar="NAME",
        default_text="moonshine, or whisper where the language is not English",
        path=place_code,
        example="other.py:hear",
    )


@dataclass(frozen=True, kw_only=True)
class CorpusWork(CorpusReading, Workers):
    """How a command goes through corpora."""

    max_seconds: float = max_seconds()
    strict: bool = strict()
    offline: bool = option_groups.offline()
    device: str = option_groups.device()
    json: bool = option_groups.json()
    quiet: bool = option_groups.quiet()


@dataclass(frozen=True, kw_only=True)
class CorpusCommand(CorpusWork):
    """The options of a command that goes through a corpus and writes a folder."""

    corpus: Path = declare(help="Corpus in any known layout, or a CSV (path, speaker, ...).", argument=True)
    out: Path = declare(help="Output folder; a stopped run continues in it.", argument=True)


@dataclass(frozen=True, kw_only=True)
class AttackerEmbeddings(Figures, OutputForms):
    """The options of the commands that measure what an attacker's embeddings give away."""

    enroll: Path = vectors(
        "Embeddings of the people whom the attacker knows; utterances are averaged per speaker.", example="other.npz"
    )
    test: Path = vectors("Embeddings of the anonymized recordings, by the same extractor.", example="again.npz")
    distractors: tuple[Path, ...] = vectors(
        "Embeddings of further people who are enrolled but never tried.", (), example="far.npz"
    )
    attribute: tuple[str, ...] = declare(
        (), help="Attribute of the target that the attacker also knows, such as gender.", metavar="COLUMN", group=MORE,
        example="gender",
    )  # fmt: skip
    name: str = declare("", help="Name of this attacker in figures.", group=OUTPUT, role="output", example="somebody")
    beside: tuple[str, ...] = declare(
        (), help="JSON of an earlier run to draw as well: of another attacker, or of the other measure.",
        metavar="NAME=FILE", group=OUTPUT, role="output", path=place_named, example="earlier=earlier.json",
    )  # fmt: skip
    figures: Path | None = option_groups.figures("the curves")
    strict: bool = strict()
    signature: bool = option_groups.signature()
    intervals: bool = option_groups.intervals()
    seed: int = option_groups.seed()


def typesetting(settings: Figures) -> Typesetting | None:
    """The typesetting of figures; refused without --figures."""
    given = {"--width": settings.width, "--font": settings.font, "--font-size": settings.font_size}
    named = [name for name, value in given.items() if value is not None]
    if not named:
        return None
    if settings.figures is None:
        raise InputError(f"{named[0]} is for figures", fix="give --figures DIR too")
    from veilmeter.report.figures.typesetting import Typesetting, points_of

    width = None if settings.width is None else points_of(settings.width)
    return Typesetting(width, settings.font, settings.font_size)


# --- linkability and singling-out


@contextmanager
def show_if_slow(title: str, seconds: float = 2.0) -> Iterator[Callable[[int, int], None]]:
    """A progress bar that appears only when the work takes longer than this."""
    import time

    from veilmeter.cli.terminal import Progress, show_progress

    started, bar = time.monotonic(), None
    with ExitStack() as stack:

        def progress(done: int, total: int) -> None:
            nonlocal bar
            if bar is None and time.monotonic() - started > seconds:
                opened: Progress = stack.enter_context(show_progress(title, unit="scores"))
                bar = opened
            if bar is not None:
                bar(done, total)

        yield progress


def read_attacker_vectors(options: AttackerEmbeddings) -> tuple[Embeddings, Embeddings, dict[str, Any], list[Finding]]:
    """The enrollment, the test, what the results say of both, and what the reader must not miss."""
    from veilmeter.metrics.legal.conversations import doubts_of

    warnings: list[Finding] = []
    people, of_people = read_vectors(options.enroll, warnings, strict=options.strict)
    tested, of_tested = read_vectors(options.test, warnings, strict=options.strict)
    inputs: dict[str, Any] = {"enroll": of_people, "test": of_tested}
    if options.distractors:
        from veilmeter.assessment.speech import merge

        further, inputs["distractors"] = [], []
        for path in options.distractors:
            vectors, about = read_vectors(path, warnings, strict=options.strict)
            _refuse_known({"enrolled": people, "tested": tested}, vectors, path)
            further.append(vectors)
            inputs["distractors"].append(about)
        people = merge([people, *further], "the enrollment and the distractors")
    return people, tested, inputs, warnings + doubts_of(people, tested)


def _refuse_known(known: Mapping[str, Embeddings], further: Embeddings, path: Path) -> None:
    """Refuse distractors who are enrolled or tested themselves."""
    for what, embeddings in known.items():
        there = set(embeddings.names)
        if both := [name for name in further.names if name in there]:
            raise InputError(
                f"{both[0]!r} is a distractor and {what}" + f", and so are {len(both) - 1} more" * (len(both) > 1),
                path=path,
                fix="a distractor is somebody else: leave them out of one of the two",
            )


def facts_to_sign(inputs: Mapping[str, Any], drawn: AttackerEmbeddings | None = None) -> dict[str, int | str]:
    """What figures of embeddings depend on beside what they say themselves: the files, and the seed where something was
    drawn at random."""
    from veilmeter.core.files import short_digest

    files = [file for entry in inputs.values() for file in (entry if isinstance(entry, list) else [entry])]
    facts: dict[str, int | str] = {"data": short_digest(*(file["sha256"] for file in files))}
    return facts if drawn is None else {**facts, "seed": drawn.seed}


def short_speakers(names: Sequence[str], least: int, length: int) -> list[Finding]:
    """Speakers who have too little speech, counted and named."""
    if not names:
        return []
    examples = first_speakers(names)
    return [
        warning("speakers_left_out", purpose="trials", count=len(names), needed=least, length=length, examples=examples)
    ]


def curve_label(given: Given, options: AttackerEmbeddings) -> str:
    """The name of the attacker in figures; a name is refused where there are none."""
    if options.figures is None:
        given.refuse(["name"], "it names curves in figures", fix="give --figures DIR too")
    # What draws figures ends the process at a control character.
    return clean(options.name or options.test.name)


def draw_curves(
    options: AttackerEmbeddings,
    drawn_curves: Mapping[str, Sequence[Estimate]],
    name: str,
    setting: Typesetting | None,
) -> list[Path]:
    """The figure of the paper, with curves of earlier runs in it; nothing without a folder."""
    if options.figures is None:
        if options.beside:
            raise InputError("--beside draws further curves", fix="give --figures DIR too")
        return []
    from veilmeter.report.figures.legal import save_all

    attackers: dict[str, dict[str, Sequence[Estimate]]] = {name: dict(drawn_curves)}
    for word in options.beside:  # the same name again adds the other measures of that attacker
        who, curves = read_curves(word)
        attackers[who] = {**curves, **attackers.get(who, {})}
    return save_all(attackers, options.figures, setting=setting)


def read_curves(word: str) -> tuple[str, dict[str, list[Estimate]]]:
    """The curves of an earlier run, and the name of its attacker, from NAME=FILE."""
    from veilmeter.core.estimate import Estimate
    from veilmeter.core.files import read_input_json

    name, _, path = word.partition("=")
    if not name or not path:
        raise InputError(f"--beside {word!r} is not NAME=FILE", fix="as in --beside ignorant=ignorant.json")
    try:
        form = read_input_json(path)
        curves = {key: points for key, points in form["estimates"].items() if isinstance(points, list)}
        return clean(name), {
            key: [Estimate.from_json(key, point) for point in points] for key, points in curves.items()
        }
    except (ValueError, KeyError, TypeError, AttributeError):
        raise InputError(
            "this is not what the command prints with --json", path=path, fix="run it with --json > FILE"
        ) from None


def gains(knowing: Sequence[Estimate]) -> list[Finding]:
    """The gain of an attacker who knows more."""
    findings = []
    for estimate in knowing:
        low, high = map(float, estimate.extra["gain_interval"])
        findings.append(
            Finding.of(
                "knowing_more",
                attribute=Reference("attribute", str(estimate.at["knows"])),
                gain=float(estimate.extra["gain"]),
                low=low,
                high=high,
                speakers=int(estimate.at["speakers"]),
                length=int(estimate.at["length"]),
            )
        )
    return findings
