"""The options that several commands have, each declared once: the same name, words and panel of the help everywhere.

Types are for options that are the same everywhere (`json: options.Json = False`), functions for those whose words or
type differ (`figures: Annotated[Path | None, options.figures("the curves")] = None`). Defaults stand at the parameter.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from veilmeter.report.figures.typesetting import Typesetting

# What options are for, as the help groups them. Where a help would be longer than a page, those of LATER are left for
# `--help-all`, the first of them first.
CURVE, MORE, OUTPUT, CORPUS, COMPUTATION = "Curve", "More measures", "Output", "Corpus", "Computation"
NEEDS, FIGURES = "What the attack needs", "Figures"
LATER = (FIGURES, COMPUTATION, CORPUS, MORE, NEEDS)
VECTORS = "FILE_OR_FOLDER"
VECTOR_FORMATS = "an x-vector folder with meta/, ark/scp, npz, h5 or Parquet"

# `veilmeter.core.engine` says this in an error; to import it for the words would slow down every `--help`.
CLUSTER_HELP = (
    "Run on a Dask cluster: tcp://host:8786, `local`, or slurm, oar, pbs with your dask-jobqueue configuration "
    "(slurm:FILE.yaml names one)."
)

# --- what is printed and drawn

Json = Annotated[bool, typer.Option("--json", help="Print JSON.", rich_help_panel=OUTPUT)]
Csv = Annotated[bool, typer.Option("--csv", help="Print CSV.", rich_help_panel=OUTPUT)]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print Markdown.", rich_help_panel=OUTPUT)]
Latex = Annotated[bool, typer.Option("--latex", help="Print a LaTeX table.", rich_help_panel=OUTPUT)]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on standard error.", rich_help_panel=OUTPUT)]


def figures(what: str) -> Any:
    """`--figures DIR`, with what is drawn."""
    return typer.Option(
        metavar="DIR", help=f"Write {what} as SVG, PNG and PDF.", show_default=False, rich_help_panel=OUTPUT
    )


Width = Annotated[
    str | None,
    typer.Option("--width", metavar="8.6cm", help="Of the whole figure, in cm, mm, in or pt; text keeps its size.",
                 show_default=False, rich_help_panel=FIGURES),
]  # fmt: skip
Font = Annotated[
    str | None,
    typer.Option("--font", metavar="FAMILY", help="Of figures, such as 'Times New Roman', if it is installed.",
                 show_default=False, rich_help_panel=FIGURES),
]  # fmt: skip
FontSize = Annotated[
    float | None,
    typer.Option("--font-size", metavar="POINTS", help="Of the labels in figures; 11 if not given.",
                 show_default=False, rich_help_panel=FIGURES),
]  # fmt: skip


def typesetting(
    folder: Path | None, width: str | None, font: str | None, font_size: float | None
) -> Typesetting | None:
    """How figures are set, by the three options that say it; refused where there are no figures."""
    from veilmeter.core.errors import InputError

    given = {"--width": width, "--font": font, "--font-size": font_size}
    named = [name for name, value in given.items() if value is not None]
    if not named:
        return None
    if folder is None:
        raise InputError(f"{named[0]} is for figures", fix="give --figures DIR too")
    from veilmeter.report.figures.typesetting import Typesetting, points_of

    return Typesetting(None if width is None else points_of(width), font, font_size)


# --- how it is computed

_SEED = typer.Option(
    "--seed", help="Of everything drawn at random: the same seed, the same result.", min=0, rich_help_panel=COMPUTATION
)
Seed = Annotated[int, _SEED]
MaybeSeed = Annotated[int | None, _SEED]  # where a file of settings may say it
NoIntervals = Annotated[bool, typer.Option("--no-intervals", help="Values only, quickly.", rich_help_panel=COMPUTATION)]
EerMethod = Annotated[
    str,
    typer.Option(
        help="rocch (convex hull of the ROC), roc (as scikit-learn's ROC gives it), interpolated, or speechbrain (the "
        "rule of the VoicePrivacy challenges)."
    ),
]
Jobs = Annotated[
    int | None,
    typer.Option(metavar="N", help="Processes on this machine; by default one per core. Results do not depend on it.",
                 min=1, show_default=False, rich_help_panel=COMPUTATION),
]  # fmt: skip
Cluster = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help=CLUSTER_HELP, show_default=False, rich_help_panel=COMPUTATION)
]
Offline = Annotated[
    bool, typer.Option("--offline", help="Fetch nothing, not even an extractor's weights.", rich_help_panel=COMPUTATION)
]

# --- corpora and runs

Corpus = Annotated[Path, typer.Argument(help="A corpus in any known layout, or a CSV (path, speaker, ...).")]
Layout = Annotated[
    str | None,
    typer.Option(
        help="How the corpus lies on disk, if it is not recognized: folder, kaldi, vpc, csv, ...",
        rich_help_panel=CORPUS,
    ),
]
Part = Annotated[
    str | None,
    typer.Option(help="One part of the corpus: test-clean, test, libri_test, mic1...", rich_help_panel=CORPUS),
]
Suffix = Annotated[
    str | None,
    typer.Option(help="The variant of VoicePrivacy data: '' is the original, or _anon...", rich_help_panel=CORPUS),
]
Roots = Annotated[
    list[Path] | None,
    typer.Option(
        help="A further folder that audio may lie in; for Kaldi folders the only ones it may lie in.",
        rich_help_panel=CORPUS,
    ),
]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        metavar="MEANING=COLUMN",
        help="What columns of a table are called, as in path=audio_path,speaker=speaker_id.",
        show_default=False,
        rich_help_panel=CORPUS,
    ),
]
Channel = Annotated[
    str | None,
    typer.Option(
        metavar="N|mix",
        help="The channel of recordings with several that differ, from 0, or the mean of all; a list may name it too.",
        show_default=False,
        rich_help_panel=CORPUS,
    ),
]
MaxSeconds = Annotated[float, typer.Option(help="Leave out longer recordings.", min=1, rich_help_panel=CORPUS)]
Strict = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Stop at the first recording or vector that can't be used; else it is left out.",
        rich_help_panel=CORPUS,
    ),
]
Run = Annotated[Path, typer.Argument(help="The folder that `assess --out` wrote.")]

Recognizer = Annotated[
    str,
    typer.Option(
        metavar="NAME",
        help="moonshine (English), whisper (99 languages), 'command:PROGRAM {input}', an installed one's name, or "
        "module:function.",
    ),
]
Language = Annotated[
    str | None,
    typer.Option(metavar="CODE", help="Of the speech, such as en; by default what the corpus says, else English.",
                 show_default=False),
]  # fmt: skip

# --- embeddings of an attacker and of the protected speech


def vectors(text: str, panel: str | None = None, *, name: str | None = None) -> Any:
    """An option that names embeddings."""
    return typer.Option(
        *([name] if name else []), metavar=VECTORS, help=text, show_default=False, rich_help_panel=panel
    )


def several(metavar: str, text: str, panel: str, *names: str) -> Any:
    """An option that is given several times, or with several values."""
    return typer.Option(*names, metavar=metavar, help=text, show_default=False, rich_help_panel=panel)


Enroll = Annotated[
    Path,
    vectors("Embeddings of the people the attacker knows; all utterances of a speaker are averaged.", name="--enroll"),
]
Test = Annotated[Path, vectors("Embeddings of the protected recordings, of the same extractor.")]
Attributes = Annotated[
    list[str] | None,
    several("COLUMN", "Also for an attacker who knows this of the target, such as gender.", MORE),
]
AttackerName = Annotated[str, typer.Option(help="What to call this attacker in figures.", rich_help_panel=OUTPUT)]
Beside = Annotated[
    list[str] | None,
    several("NAME=FILE", "JSON of an earlier run, drawn too: another attacker, or the other measure of the same.",
            OUTPUT),
]  # fmt: skip


# --- fractions


def percentage(text: str) -> float:
    """A number of percent, with or without its sign.

    >>> percentage("15%"), percentage("15")
    (15.0, 15.0)
    """
    try:
        return float(text.strip().removesuffix("%"))
    except ValueError:
        raise typer.BadParameter(f"{text!r} is no percentage such as 15%") from None


def fraction(text: str) -> float:
    """A number between 0 and 1, also as a percentage.

    >>> fraction("20%"), fraction("0.2")
    (0.2, 0.2)
    """
    words = text.strip()
    try:
        return float(words[:-1]) / 100 if words.endswith("%") else float(words)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is neither a fraction such as 0.2 nor a percentage such as 20%") from None
