"""The options that several commands share: what is printed and drawn, and how it is computed.

A group is a class to inherit from; an option that a command may have alone is a function that makes its field.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilmeter.core.devices import DEVICES
from veilmeter.core.options import OptionSet, declare

# The headings of the help. Where a help is longer than a page, the groups in LATER are left to `--help-all`, the first
# of them first.
CURVE, MORE, OUTPUT, CORPUS, COMPUTATION = "Curve", "More measures", "Output", "Corpus", "Computation"
NEEDS, FIGURES = "What the attack needs", "Figures"
LATER = (FIGURES, CORPUS, COMPUTATION, MORE, NEEDS)
VECTORS = "FILE_OR_FOLDER"
VECTOR_FORMATS = "an x-vector folder with meta/, ark/scp, npz, h5 or Parquet"
ALL = "all"
EVERY_SIZE = (0,)
"""In place of numbers of people: every one of them, where a curve is exact and costs nothing more."""
EER_METHODS = ("rocch", "roc", "interpolated", "speechbrain")
CLUSTER_HELP = (
    "Run on a Dask cluster: tcp://host:8786, `local`, or slurm, oar, pbs with your dask-jobqueue configuration "
    "(slurm:FILE.yaml names one)."
)


def parse_sizes(value: Any) -> Any:
    """Numbers of people, with `all` as `EVERY_SIZE`."""
    return EVERY_SIZE if value in (ALL, [ALL], (ALL,)) else value


# --- what is printed and drawn


def json(help: str = "Print JSON.") -> Any:
    return declare(False, help=help, group=OUTPUT, role="output", example=True)


def markdown() -> Any:
    return declare(False, help="Print Markdown.", group=OUTPUT, role="output", example=True)


def quiet() -> Any:
    return declare(False, help="Show no progress on standard error.", group=OUTPUT, role="output")


def signature() -> Any:
    help = "Print everything that each figure depends on, in one line to quote beside it."
    return declare(False, help=help, group=OUTPUT, role="output", example=True)


@dataclass(frozen=True, kw_only=True)
class OutputForms(OptionSet):
    """The form in which figures are printed."""

    json: bool = json()
    csv: bool = declare(False, help="Print CSV.", group=OUTPUT, role="output", example=True)
    markdown: bool = markdown()
    latex: bool = declare(False, help="Print a LaTeX table.", group=OUTPUT, role="output", example=True)


def figures(what: str, **declared: Any) -> Any:
    """`--figures DIR`, with what is drawn."""
    help = f"Write {what} as SVG, PNG and PDF."
    return declare(
        None, help=help, metavar="DIR", group=OUTPUT, role="output", example="out-elsewhere", path=True, **declared
    )


@dataclass(frozen=True, kw_only=True)
class Figures(OptionSet):
    """How figures are typeset; a command declares `figures` itself, with what it draws."""

    figures: Path | None = figures("the figures")
    width: str | None = declare(
        None, help="Figure width in cm, mm, in or pt; the font size does not change.", metavar="8.6cm", group=FIGURES,
        role="output", example="9cm",
    )  # fmt: skip
    font: str | None = declare(
        None, help="Font family in figures, such as 'Times New Roman', if it is installed.", metavar="FAMILY",
        group=FIGURES, role="output", example="DejaVu Sans",
    )  # fmt: skip
    font_size: float | None = declare(
        None, help="Font size of the labels in figures.", metavar="POINTS", default_text="11", group=FIGURES,
        role="output", example=9,
    )  # fmt: skip


# --- how it is computed


def eer_method(default: str | None = "rocch", **declared: Any) -> Any:
    help = "rocch (convex hull of the ROC), roc (scikit-learn's), interpolated, or speechbrain (VoicePrivacy's rule)."
    return declare(default, help=help, metavar="METHOD", choices=EER_METHODS, example="interpolated", **declared)


def seed(**declared: Any) -> Any:
    most = 2**32 - 1  # of scikit-learn
    return declare(
        0, help="Random seed.", least=0, most=most, group=COMPUTATION, role="computation", example=3, **declared
    )


def intervals(**declared: Any) -> Any:
    help = "Compute the values without intervals, which is faster."
    return declare(True, help=help, group=COMPUTATION, role="computation", example=False, **declared)


def offline(**declared: Any) -> Any:
    help = "Fetch nothing, not even an extractor's weights."
    return declare(False, help=help, group=COMPUTATION, role="computation", example=True, **declared)


def jobs(**declared: Any) -> Any:
    return declare(
        None, help="Processes on this machine. Results do not depend on it.", metavar="N", least=1,
        most=10_000, default_text="one per core", group=COMPUTATION, role="computation", **declared,
    )  # fmt: skip


def cluster() -> Any:
    return declare(
        None, help=CLUSTER_HELP, metavar="ADDRESS", group=COMPUTATION, role="computation", example="nonsense"
    )


def device(**declared: Any) -> Any:
    help = "Device that models run on: auto (a GPU if there is one), cpu or cuda."
    return declare(
        "auto", help=help, metavar="NAME", choices=DEVICES, group=COMPUTATION, role="computation", common=False,
        example="cuda", **declared,
    )  # fmt: skip


def tuning(**declared: Any) -> Any:
    help = "Further settings of fine-tuning, such as batch=256 or learning_rate=0.001."
    return declare((), help=help, metavar="NAME=VALUE", common=False, example="batch=4", **declared)


def language(**declared: Any) -> Any:
    help = "Language of the speech, such as de, or auto to have it recognized by Whisper."
    text = "the corpus's, else English, with a warning"
    return declare(None, help=help, metavar="CODE", default_text=text, **{"example": "de"} | declared)


@dataclass(frozen=True, kw_only=True)
class Workers(OptionSet):
    """Where the work is done."""

    jobs: int | None = jobs()
    cluster: str | None = cluster()
