"""From results to the page people read, and to paper."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from veilmeter.core.errors import InputError
from veilmeter.core.files import to_json, write_bytes, write_text
from veilmeter.core.options import parse_percentage

if TYPE_CHECKING:
    from veilmeter.report.figures.typesetting import Typesetting
    from veilmeter.report.html import Options
    from veilmeter.report.public import Reported, Subject

SUFFIXES = {
    "html": "html",
    "pdf": "pdf",
    "docx": "docx",
    "md": "md",
    "latex": "tex",
    "json": "json",
    "pia-json": "pia.json",
}
ANNEX_FORMS = ("html", "pdf", "docx")
PRELIMINARY = ("html", "json")  # forms that say what is still to be measured
PAPERS = ("a4", "letter")
TEMPLATES = ("annex", "authority")
SHOWN_IN = {
    "threshold": ("html", "pdf", "docx", "md", "latex"),
    "release_size": ("html", "pdf", "docx", "md"),
    "candidates": ("html", "pdf", "docx", "md"),
    "config": ("html", "pdf", "docx", "md", "pia-json"),
    "paper": ("pdf", "docx"),
    "language": ("html", "pdf", "docx", "pia-json"),
    "with_audio": ("html",),
    "show_ids": ("html", "pdf", "json"),
}


def write_report(
    run: Subject,
    out: str | Path | None = None,
    *,
    form: str = "html",
    template: str = "",
    show_ids: bool = False,
    with_audio: bool = False,
    threshold: float | str | None = None,
    release_size: int | None = None,
    candidates: int | None = None,
    config: str | Path | None = None,
    paper: str | None = None,
    language: str | None = None,
) -> Path:
    """The report of a run folder, or of an `Assessment` or `Results` in memory: `html`, `pdf`, `docx` (the annex for
    the file), `md`, `latex`, `json` or `pia-json` (for the PIA tool of the CNIL); by default RUN/report.<suffix>, and
    RUN/annex.<suffix> with a template. `config` is a settings file whose tables `[annex]` and `[[recipients]]` are
    used instead of those that the run was made with.

    Parameters
    ----------
    run : Assessment, Results or path
        The run, in memory or as the folder that `assess` wrote.
    out : str or Path, optional
        The file; by default report.html in the folder of the run.
    form : {"html", "pdf", "docx", "md", "latex", "json", "pia-json"}
        The form.
    template : {"", "annex", "authority"}
        The annex alone, or the annex with cross-references to standards and a checklist; by default the whole report.
    show_ids : bool
        Whether to name people instead of using pseudonyms.
    with_audio : bool
        Whether to put recordings into the page.
    threshold : float or str, optional
        Accepted risk of being linked, such as `"9%"`.
    release_size, candidates : int, optional
        People in the real release, and people of whom an attacker has recordings.
    config : str or Path, optional
        A settings file with other tables [annex] and [[recipients]].
    paper : {"a4", "letter"}, optional
        The size of pages.
    language : {"en", "fr"}, optional
        The language of the annex.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    InputError
        If the run can't be read, or an option does not show in this form.

    Examples
    --------
    >>> write_report("run/")  # doctest: +SKIP
    PosixPath('run/report.html')
    """
    from veilmeter.report.html import Options
    from veilmeter.report.public import public, reported, run_key, with_statements
    from veilmeter.wording import writing_in
    from veilmeter.wording.language import ENGLISH_CODE

    limit = _percentage(threshold)
    annex_only = bool(template) or form == "docx"
    if language is not None and not annex_only and form != "pia-json":
        raise InputError(
            "--language: only the annex is written in several languages", fix="give --annex or --format docx too"
        )
    _check(form, template, paper, language)
    asked = {"threshold": limit, "release_size": release_size, "candidates": candidates, "paper": paper}
    flags = {"with_audio": with_audio or None, "show_ids": show_ids or None}
    _refuse_what_is_not_shown(form, {**asked, **flags, "config": config, "language": language})
    subject = with_statements(reported(run), config)
    if subject.results.pending and (annex_only or form not in PRELIMINARY):
        raise InputError(
            f"preliminary results can't be written as {'an annex' if annex_only else form}: not everything has been "
            "measured yet",
            path=subject.folder,
            fix="run the same `assess` command again, which measures the rest",
        )
    if out is None and subject.folder is None:
        raise InputError("results in memory have no folder to write the report into", fix="give `out`")
    path = Path(out) if out is not None else _default(subject, form, annex_only)
    from veilmeter.report.sound import recordings_of, rename

    recordings = recordings_of(subject) if with_audio else {}
    with writing_in(language or ENGLISH_CODE):
        shown, names = public(subject, run_key(subject.folder), show_ids=show_ids)
        options = Options(
            show_ids=show_ids,
            limit=limit if limit is not None else shown.results.settings.get("threshold"),
            release_size=release_size,
            candidates=candidates,
            paper=paper or PAPERS[0],
            template=template,
            language=language or ENGLISH_CODE,
            recordings=rename(recordings, names),
        )
        _write(path, shown, options, form, annex_only)
    return path


def write_figures(
    run: Subject,
    folder: str | Path,
    *,
    formats: Iterable[str] = ("svg", "png", "pdf"),
    setting: Typesetting | None = None,
    show_ids: bool = False,
    threshold: float | str | None = None,
) -> None:
    """Every figure of a run's report as files in `folder`, each with its data as CSV; `setting` is for print."""
    from veilmeter.report.figures.page import save_figures
    from veilmeter.report.html import technical_sections
    from veilmeter.report.public import public, reported, run_key

    subject = reported(run)
    shown, _ = public(subject, run_key(subject.folder), show_ids=show_ids)
    technical = technical_sections(shown.results, shown.matrices, _percentage(threshold))
    save_figures([figure for section in technical for figure in section.figures], folder, formats, setting)


def _percentage(threshold: float | str | None) -> float | None:
    """A limit for the risk, as in `9%`."""
    limit: float | None = None if threshold is None else parse_percentage(threshold)
    if limit is not None and not 0 < limit < 100:
        raise InputError(f"the threshold must lie between 0 % and 100 % (got {limit:g} %)")
    return limit


def _check(form: str, template: str, paper: str | None, language: str | None) -> None:
    from veilmeter.wording.language import ANNEX_LANGUAGES

    if form not in SUFFIXES:
        raise InputError(f"the report can't be written as {form!r}", fix=f"choose among {', '.join(SUFFIXES)}")
    if template and form not in ANNEX_FORMS:
        named = "" if template == TEMPLATES[0] else f"--template {template}: "
        raise InputError(f"{named}the annex can't be written as {form!r}", fix=f"choose among {', '.join(ANNEX_FORMS)}")
    if template not in ("", *TEMPLATES):
        raise InputError(f"unknown template: {template!r}", fix=f"choose among {', '.join(TEMPLATES)}")
    if language is not None and language not in ANNEX_LANGUAGES:
        raise InputError(f"unknown language: {language!r}", fix=f"choose among {', '.join(ANNEX_LANGUAGES)}")
    if paper is not None and paper not in PAPERS:
        raise InputError(f"unknown paper size: {paper!r}", fix=f"choose among {', '.join(PAPERS)}")


def _refuse_what_is_not_shown(form: str, asked: Mapping[str, object]) -> None:
    for option, value in asked.items():
        if value is not None and form not in SHOWN_IN[option]:
            name = f"--{option.replace('_', '-')}"
            raise InputError(
                f"{name} has no effect in the format {form!r}", fix=f"choose among {', '.join(SHOWN_IN[option])}"
            )


def _default(subject: Reported, form: str, annex_only: bool) -> Path:
    assert subject.folder is not None
    return subject.folder / f"{'annex' if annex_only else 'report'}.{SUFFIXES[form]}"


def _write(path: Path, run: Reported, options: Options, form: str, annex_only: bool) -> None:
    from veilmeter.report import exports
    from veilmeter.report.html import decision_of, render, render_annex
    from veilmeter.report.pia import pia
    from veilmeter.results.run_folder import results_to_json

    if form == "html":
        write_text(path, render_annex(run, options) if annex_only else render(run, options))
    elif form == "pdf":
        write_bytes(path, exports.annex_pdf(run, options) if annex_only else exports.report_pdf(run, options))
    elif form == "docx":
        write_bytes(path, exports.annex_docx(run, options))
    elif form == "md":
        write_text(path, exports.markdown(run, options))
    elif form == "latex":
        write_text(path, exports.latex(run, options))
    elif form == "pia-json":
        write_text(path, to_json(pia(run.results, decision_of(run, options), run.created)) + "\n")
    else:
        write_text(path, to_json(results_to_json(run.results)) + "\n")
