"""`veilmeter report`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from veilmeter.cli.command import Given
from veilmeter.cli.shared_options import run, typesetting
from veilmeter.core.option_groups import Figures
from veilmeter.core.options import declare, parse_percentage


@dataclass(frozen=True, kw_only=True)
class ReportOptions(Figures):
    """The options of the command."""

    run: Path = run()
    out: Path | None = declare(
        None, help="Output file.", default_text="beside the results", path=True, example="out-elsewhere"
    )
    format: str = declare(
        "html", example="md", help="html, pdf, docx (the annex for the file), md, latex, json, or pia-json (for the "
        "PIA tool of the CNIL).",
    )  # fmt: skip
    annex: bool = declare(False, help="Only the annex for the file: html, pdf or docx.", example=True)
    template: str | None = declare(
        None, help="Template of the annex: annex, or authority (with cross-references to standards and a checklist).",
        metavar="NAME", example="authority",
    )  # fmt: skip
    language: str | None = declare(
        None,
        help="Language of the annex, and of the file for the PIA tool: en or fr.",
        metavar="CODE",
        default_text="en",
        example="fr",
    )
    config: Path | None = declare(
        None, help="TOML file whose [annex] and [[recipients]] fill in the annex instead of those of the run.",
        metavar="FILE", path=True, example="statements.toml",
    )  # fmt: skip
    release_size: int | None = declare(
        None, help="People in the real release.", least=1, default_text="those assessed", example=5000
    )
    candidates: int | None = declare(
        None, help="People of whom an attacker has recordings.", least=2, default_text="those assessed", example=700
    )
    threshold: float | None = declare(
        None, help="Accepted risk of being linked (9%, say), drawn into the curves.", above=0, below=100,
        parse=parse_percentage,
        example="9%",
    )  # fmt: skip
    paper: str | None = declare(
        None, help="Paper of the PDF and the DOCX: a4 or letter.", default_text="a4", example="letter"
    )
    with_audio: bool = declare(
        False, help="Include original and anonymized recordings of the people at most risk in the page.", example=True
    )
    show_ids: bool = declare(False, help="Show speaker ids instead of pseudonyms.", example=True)
    figures: Path | None = declare(
        None, help="Write every figure too: SVG, PNG, PDF and CSV.", metavar="DIR", path=True,
        example="out-elsewhere",
    )  # fmt: skip


OPTIONS = (ReportOptions,)


def command(given: Given) -> None:
    """Write a run's report: HTML, PDF, DOCX, Markdown, LaTeX or JSON.

    The HTML page is one file and needs no network.
    """
    from veilmeter.report import SHOWN_IN, write_figures, write_report

    options = given.build(ReportOptions)
    setting = typesetting(options)
    threshold = None if options.threshold is None else f"{options.threshold}%"
    path = write_report(
        options.run,
        options.out,
        form=options.format,
        template=options.template or ("annex" if options.annex else ""),
        # figures show them too
        show_ids=options.show_ids and (options.figures is None or options.format in SHOWN_IN["show_ids"]),
        with_audio=options.with_audio,
        threshold=threshold,
        release_size=options.release_size,
        candidates=options.candidates,
        config=options.config,
        language=options.language,
        paper=options.paper,
    )
    print(path)
    if options.figures is not None:
        write_figures(options.run, options.figures, setting=setting, show_ids=options.show_ids, threshold=threshold)
        print(options.figures)
