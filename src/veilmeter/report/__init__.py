"""From a finished run to the page people read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from veilmeter.core.errors import InputError
from veilmeter.core.files import to_json, write_bytes, write_text

SUFFIXES = {"html": "html", "pdf": "pdf", "md": "md", "latex": "tex", "json": "json"}


def write_report(
    run: str | Path,
    out: str | Path | None = None,
    *,
    form: str = "html",
    show_ids: bool = False,
    with_audio: bool = False,
    threshold: float | None = None,
    figures: str | Path | None = None,
    figure_formats: Iterable[str] = ("svg", "png", "pdf"),
) -> Path:
    """The report of a run as `html`, `pdf`, `md`, `latex` or `json`; by default RUN/report.<suffix>."""
    from veilmeter.report import exports
    from veilmeter.report.html import Options, render
    from veilmeter.report.run import load_run, renamed, sound

    if form not in SUFFIXES:
        raise InputError(f"the report can't be written as {form!r}", fix=f"choose among {', '.join(SUFFIXES)}")
    if threshold is not None and not 0 < threshold < 1:
        raise InputError(f"the threshold {threshold:g} is not a probability", fix="give a figure between 0 and 1")
    loaded = load_run(run)
    heard = sound(loaded) if with_audio else {}
    if not show_ids:
        loaded, names = renamed(loaded)
        heard = {names[speaker]: pairs for speaker, pairs in heard.items()}
    path = Path(out) if out is not None else Path(run) / f"report.{SUFFIXES[form]}"
    if form in ("html", "pdf"):
        options = Options(show_ids=show_ids, threshold=threshold, audio=heard, created=loaded.created)
        page = render(loaded.results, loaded.matrices, options)
        if form == "html":
            write_text(path, page)
        else:
            write_bytes(path, exports.pdf(page))
    elif form == "md":
        write_text(path, exports.markdown(loaded.results, threshold))
    elif form == "latex":
        write_text(path, exports.latex(loaded.results))
    else:
        write_text(path, to_json(loaded.results) + "\n")
    if figures is not None:
        from veilmeter.report.charts import save_figures

        save_figures(loaded.results, loaded.matrices, threshold, figures, figure_formats)
    return path
