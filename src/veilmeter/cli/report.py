"""`veilmeter report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veilmeter.cli import options


def command(
    run: options.Run,
    out: Annotated[Path | None, typer.Option(help="Where to write it; by default beside the results.")] = None,
    form: Annotated[
        str, typer.Option("--format", help="html, pdf, docx (the annex for the file), md, latex or json.")
    ] = "html",
    annex: Annotated[bool, typer.Option("--annex", help="Only the annex for the file: html, pdf or docx.")] = False,
    release_size: Annotated[
        int | None, typer.Option(help="People in the real release; by default those that were assessed.")
    ] = None,
    candidates: Annotated[
        int | None, typer.Option(help="People an attacker has recordings of; by default those that were assessed.")
    ] = None,
    threshold: Annotated[
        float | None,
        typer.Option(help="A risk you chose as the limit (9%, say); drawn into the curves.", parser=options.fraction),
    ] = None,
    paper: Annotated[str | None, typer.Option(help="Of the PDF and the DOCX: a4 (the default) or letter.")] = None,
    with_audio: Annotated[
        bool, typer.Option(help="Put original and anonymized recordings of the riskiest speakers into the page.")
    ] = False,
    show_ids: Annotated[bool, typer.Option(help="Show speaker ids instead of pseudonyms.")] = False,
    figures: Annotated[Path | None, typer.Option(help="Also write every figure there: SVG, PNG, PDF and CSV.")] = None,
    width: options.Width = None,
    font: options.Font = None,
    font_size: options.FontSize = None,
) -> None:
    """Write a run's report: one HTML page that needs no network, a PDF, a DOCX, Markdown, LaTeX or JSON."""
    from veilmeter.report import SHOWN_IN, write_figures, write_report

    setting = options.typesetting(figures, width, font, font_size)
    path = write_report(
        run,
        out,
        form=form,
        annex_only=annex,
        show_ids=show_ids and (figures is None or form in SHOWN_IN["show_ids"]),  # figures show them too
        with_audio=with_audio,
        threshold=threshold,
        release_size=release_size,
        candidates=candidates,
        paper=paper,
    )
    print(path)
    if figures is not None:
        write_figures(run, figures, setting=setting, show_ids=show_ids, threshold=threshold)
        print(figures)
