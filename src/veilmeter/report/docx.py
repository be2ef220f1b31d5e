"""The annex for the file as a document that can be edited."""

from __future__ import annotations

import io
from typing import Any

from veilmeter.core.errors import missing_extra
from veilmeter.core.text import clean
from veilmeter.report.annex import Chapter, Table, annex
from veilmeter.report.html import Options, decision_of
from veilmeter.report.source import Reported
from veilmeter.wording.english.page import NOTES, TITLES


def annex_docx(run: Reported, options: Options) -> bytes:
    try:
        import docx
        from docx.shared import Mm, Pt
    except ImportError:
        raise missing_extra("python-docx", "report") from None
    results, decision = run.results, decision_of(run, options)
    document = docx.Document()
    section = document.sections[0]
    section.page_width, section.page_height = (
        (Mm(215.9), Mm(279.4)) if options.paper == "letter" else (Mm(210), Mm(297))
    )
    section.left_margin = section.right_margin = Mm(20)
    document.styles["Normal"].font.size = Pt(10.5)
    properties = document.core_properties
    properties.author, properties.title, properties.comments = f"veilmeter {results.version}", clean(results.title), ""
    document.add_heading(clean(f"{results.title}: {TITLES['annex'].lower()}"), 0)
    notice = str(results.settings.get("notice") or "")
    if notice:
        document.add_paragraph(clean(notice))
    document.add_paragraph(NOTES["annex"])
    for chapter in annex(results, decision, run.created):
        _add_chapter(document, chapter)
    packed = io.BytesIO()
    document.save(packed)
    return packed.getvalue()


def _add_chapter(document: Any, chapter: Chapter) -> None:
    document.add_heading(chapter.title, 1)
    for text in chapter.paragraphs:
        document.add_paragraph(clean(text))
    for text in chapter.items:
        document.add_paragraph(clean(text), style="List Bullet")
    if chapter.table is not None:
        _add_table(document, chapter.table)


def _add_table(document: Any, content: Table) -> None:
    headed = any(content.head)
    table = document.add_table(rows=0, cols=len(content.head))
    table.style = "Table Grid"
    for number, row in enumerate(((content.head,) if headed else ()) + content.rows):
        for place, (cell, text) in enumerate(zip(table.add_row().cells, row, strict=True)):
            run = cell.paragraphs[0].add_run(clean(text))
            run.bold = place == 0 or (headed and number == 0)
