"""The options that several commands share beside the groups of `core.option_groups`: corpora, runs and embeddings."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilmeter.core import option_groups
from veilmeter.core.errors import InputError
from veilmeter.core.option_groups import MORE, OUTPUT, VECTORS, Figures, OutputForms, Workers
from veilmeter.core.options import MISSING, Condition, declare, place_code, place_named
from veilmeter.data.corpus_options import CorpusReading, max_seconds, strict

if TYPE_CHECKING:
    from veilmeter.report.figures.typesetting import Typesetting


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
NO_KEY = "there is no trial key"


def run() -> Any:
    return declare(help="Folder that `assess --out` wrote.", argument=True)


def vectors(help: str, default: Any = MISSING, **declared: Any) -> Any:
    """An option that names embeddings."""
    return declare(default, help=help, metavar=VECTORS, path=True, **declared)


def recognizer() -> Any:
    return declare(
        "moonshine",
        help="moonshine (English), whisper (99 languages), 'command:PROGRAM {input}', an installed one's name, or "
        "module:function.",
        metavar="NAME",
        path=place_code,
        example="other.py:hear",
    )


def language() -> Any:
    help = "Language of the speech, such as en."
    return declare(None, help=help, metavar="CODE", default_text="the corpus's, else English", example="de")


def eer_method(**declared: Any) -> Any:
    def known_methods() -> tuple[str, ...]:
        from veilmeter.metrics.scores.eer import EER_METHODS

        return EER_METHODS

    help = "rocch (convex hull of the ROC), roc (scikit-learn's), interpolated, or speechbrain (VoicePrivacy's rule)."
    return declare("rocch", help=help, metavar="METHOD", choices=known_methods, example="interpolated", **declared)


@dataclass(frozen=True, kw_only=True)
class CorpusCommand(CorpusReading, Workers):
    """The options of a command that goes through a corpus and writes a folder."""

    corpus: Path = declare(help="Corpus in any known layout, or a CSV (path, speaker, ...).", argument=True)
    out: Path = declare(help="Output folder; a stopped run continues there.", argument=True)
    max_seconds: float = max_seconds()
    strict: bool = strict()
    offline: bool = option_groups.offline()
    json: bool = option_groups.json()
    quiet: bool = option_groups.quiet()


@dataclass(frozen=True, kw_only=True)
class AttackerEmbeddings(Figures, OutputForms):
    """The options of the commands that measure what an attacker's embeddings give away."""

    enroll: Path = vectors(
        "Embeddings of the people the attacker knows; all utterances of a speaker are averaged.", example="other.npz"
    )
    test: Path = vectors("Embeddings of the protected recordings, by the same extractor.", example="again.npz")
    attribute: tuple[str, ...] = declare(
        (), help="Attribute of the target that the attacker knows too, such as gender.", metavar="COLUMN", group=MORE,
        example="gender",
    )  # fmt: skip
    name: str = declare("", help="Name of this attacker in figures.", group=OUTPUT, role="output", example="somebody")
    beside: tuple[str, ...] = declare(
        (), help="JSON of an earlier run to draw too: another attacker, or the other measure of the same.",
        metavar="NAME=FILE", group=OUTPUT, role="output", path=place_named, example="earlier=earlier.json",
    )  # fmt: skip
    figures: Path | None = option_groups.figures("the curves")
    strict: bool = strict()
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
