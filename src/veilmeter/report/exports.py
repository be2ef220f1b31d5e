"""The report in other forms: Markdown, LaTeX, PDF, and the annex as a document that can be edited."""

from __future__ import annotations

import dataclasses
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path
from typing import Any

from veilmeter.core.errors import VeilmeterError, missing_extra
from veilmeter.core.files import plain, scratch_folder
from veilmeter.core.text import clean, markdown_text
from veilmeter.report.annex import CHECKBOX, Chapter, Table, annex
from veilmeter.report.decision import Decision, limit_finding, never_tested, reliance
from veilmeter.report.html import (
    Options,
    TechnicalSection,
    decision_of,
    facts,
    parameters,
    technical_sections,
)
from veilmeter.report.people import CHANNELS, channel_rows
from veilmeter.report.public import Reported
from veilmeter.report.rows import ORDER, Row, attacker_rows, criterion_rows, measures_of, section_rows
from veilmeter.results.model import Results
from veilmeter.results.trust import doubts
from veilmeter.wording import annex_texts, sentence, sentences, text
from veilmeter.wording.english import page as words
from veilmeter.wording.english.page import STATES, TITLES
from veilmeter.wording.english.sections import GLOSSARY, SECTIONS
from veilmeter.wording.language import NO_BREAK_SPACE, day, is_english, keep_signs
from veilmeter.wording.latex import latex_label, latex_number, latex_table, latex_text


def markdown(run: Reported, options: Options) -> str:
    """The decision, the tables and the annex as Markdown."""
    results, decision = run.results, decision_of(run, options)
    lines = [*_opening(run, decision), *_criteria_table(results)]
    lines += ["", f"## {TITLES['next']}", ""]
    lines += [f"- {markdown_text(f'{item.text} {item.reason}'.strip())}" for item in decision.advice]
    lines += ["", f"## {TITLES['checks']}", ""]
    lines += [
        f"- {_sign(check.state)}: {markdown_text(f'{check.title}. {check.sentence} {check.meaning}'.strip())}"
        for check in decision.checks
    ]
    lines += ["", f"## {TITLES['not_tested']}", ""]
    not_tested = sentences((*results.verdict.not_tested, *never_tested(results)), "technical")
    lines += [f"- {markdown_text(reason)}" for reason in not_tested]
    for section in ORDER:
        rows = section_rows(results, section)
        if rows:
            lines += ["", f"## {SECTIONS[section].title}", "", *_figures_table(rows)]
    channels = channel_rows(results)
    if channels:
        lines += ["", f"## {SECTIONS[CHANNELS].title}", "", *_figures_table(channels)]
    lines += ["", f"# {TITLES['annex']}"]
    for chapter in annex(results, decision, run.created):
        lines += ["", f"## {chapter.title}", ""]
        lines += [f"{markdown_text(text)}\n" for text in chapter.paragraphs]
        lines += [f"- {markdown_text(text)}" for text in chapter.items]
        if chapter.table:
            lines += _table(chapter.table.head, chapter.table.rows)
    return "\n".join(lines) + "\n"


def _sign(state: str) -> str:
    return f"**{STATES[state]}**" if state == "failed" else STATES[state]


def _opening(run: Reported, decision: Decision) -> list[str]:
    results = run.results
    notice = str(results.settings.get("notice") or "")
    lines = [f"# {markdown_text(decision.title)}", ""]
    lines += [f"**{markdown_text(decision.headline)}** {markdown_text(decision.sentence)}", ""]
    lines += [markdown_text(decision.detail), ""] if decision.detail else []
    lines += [f"> {markdown_text(notice)}", ""] if notice else []
    lines += [f"> {markdown_text(decision.reliance)}"]
    lines += [part for doubt in doubts(results) for part in (">", f"> {markdown_text(text(doubt))}")] + [""]
    lines += [" · ".join(markdown_text(fact) for fact in decision.facts), ""]
    lines += [markdown_text(decision.limit), ""] if decision.limit else []
    if decision.release_text:
        lines += [markdown_text(f"{decision.release_text} {decision.release_basis}"), ""]
    return lines


def _criteria_table(results: Results) -> list[str]:
    cells = [
        (
            words.full_title(r.title, r.name),
            *(r.level_text, r.figure, r.interval, r.guessing, r.named_attacker, r.text),
        )
        for r in criterion_rows(results)
    ]
    return _table(("criterion", "level", "worst case", "95 % interval", "chance", "attacker", "meaning"), cells)


def _figures_table(rows: Iterable[Row]) -> list[str]:
    return _table(("attacker", "measure", "value", "95 % interval", "chance", "method"), (r.cells for r in rows))


def _table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> list[str]:
    titles = list(head)
    lines = [titles, ["---"] * len(titles)]
    lines += [[markdown_text(cell) for cell in row] for row in rows]
    return ["| " + " | ".join(line) + " |" for line in lines]


def latex(run: Reported, options: Options) -> str:
    """The worst cases and all attackers' figures as two tables for a paper; caveats are comments."""
    results = run.results
    remarks = [f"veilmeter {results.version}" + (f", {run.created}" if run.created else "")]
    remarks += [str(results.settings["notice"])] if results.settings.get("notice") else []
    remarks += [] if results.verdict.trustworthy else [sentence(reliance(results)), *map(text, doubts(results))]
    limit = limit_finding(results, options.limit)
    remarks += [sentence(limit)] if limit else []
    worst = criterion_rows(results)
    cases = [
        (
            latex_text(row.title),
            latex_text(row.named_attacker),
            latex_label(row.measure),
            *map(latex_number, (row.figure, row.interval, row.guessing)),
        )
        for row in worst
    ]
    head = ("criterion", "attacker", "measure", "worst case", "95\\,\\% interval", "chance")
    figures: list[tuple[str, ...] | None] = []
    modeled = False
    for section in ORDER:
        rows = section_rows(results, section)
        figures += [None] if rows and figures else []
        figures += [
            (
                latex_text(row.cells[0]),
                latex_label(row.cells[1]) + ("$^{\\dagger}$" if row.modeled else ""),
                *map(
                    latex_number,
                    (row.value, row.interval, "" if row.point is None else row.point.format_null(fixed=True)),
                ),
            )
            for row in rows
        ]
        modeled = modeled or any(row.modeled for row in rows)
    notes = [words.MODELED] if modeled else []
    all_figures = latex_table("llrlr", ("attacker", "measure", "value", "95\\,\\% interval", "chance"), figures, notes)
    return latex_table("lllrlr", head, cases, remarks) + "\n" + all_figures


# --- PDF, set by typst: no browser, no system library, fonts that travel with it, figures as vectors

TEMPLATE = "report.typ"


def report_pdf(run: Reported, options: Options) -> bytes:
    """The decision first, the annex second, the technical part last."""
    sections = technical_sections(run.results, run.matrices, options.limit)
    decision = decision_of(run, options)
    with scratch_folder() as folder:
        technical = [_section(section, folder) for section in sections]
        more = {"decision": _decision(decision), "technical": technical, "method": _method(run.results, decision)}
        return _typeset(folder, _data(run, options, decision, more))


def annex_pdf(run: Reported, options: Options) -> bytes:
    """The annex alone."""
    empty = {"decision": None, "technical": None, "method": None}
    with scratch_folder() as folder:
        return _typeset(folder, _data(run, options, decision_of(run, options), empty))


def _data(run: Reported, options: Options, decision: Decision, more: Mapping[str, Any]) -> dict[str, Any]:
    chapters = [
        dataclasses.asdict(chapter) for chapter in annex(run.results, decision, run.created, template=options.template)
    ]
    texts = annex_texts()
    return {
        "paper": options.paper,
        "language": options.language,
        "title": run.results.title,
        "running": decision.headline if decision.trustworthy else decision.reliance,
        "version": run.results.version,
        "created": day(run.created),
        "notice": str(run.results.settings.get("notice") or ""),
        "annex": chapters,
        "texts": {
            "title": texts["annex.title"],
            "whole_title": _whole_title(run.results),
            "note": texts["annex.note"],
        },
        "titles": words.TITLES,
        "notes": words.NOTES,
        "states": words.STATES,
        **more,
    }


def _whole_title(results: Results) -> str:
    """Of the annex alone: what was assessed, and that it is the annex."""
    texts = annex_texts()
    return keep_signs(texts["sentence.about"].format(whose=results.title, words=texts["annex.title"].lower()))


def _decision(decision: Decision) -> dict[str, Any]:
    form = {name: value for name, value in _as_dict(decision).items() if name != "release"}
    form["dots"] = [{**_as_dict(item), "states": item.states} for item in decision.dots]
    form["who"] = [{**_as_dict(row), "first": row.who[0].upper() + row.who[1:]} for row in decision.who]
    return form


def _as_dict(value: Any) -> dict[str, Any]:
    return {
        field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value) if field.name != "release"
    }


def _plain(value: Any) -> Any:
    if dataclasses.is_dataclass(value):
        return _as_dict(value)
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _section(section: TechnicalSection, folder: Path) -> dict[str, Any]:
    import vl_convert

    figures = []
    for figure in section.figures:
        file = folder / f"{figure.id}.svg"
        file.write_text(vl_convert.vegalite_to_svg(json.dumps(figure.spec)), encoding="utf-8")
        figures.append({"file": file.name, "title": figure.title, "caption": figure.caption, "alt": figure.alt})
    return {
        "title": section.title,
        "introduction": section.introduction,
        "figures": figures,
        "rows": [list(row.cells) for row in section.rows],
        "notes": list(section.notes),
    }


def _method(results: Results, decision: Decision) -> dict[str, Any]:
    return {
        "facts": facts(results),
        "attackers": _plain(attacker_rows(results)),
        "measures": [
            {"label": m.label, "meaning": m.meaning, "equation": m.equation, "source": m.source}
            for m in measures_of(results)
        ],
        "checks": _plain(decision.checks),
        "parameters": parameters(results),
        "glossary": _pairs(GLOSSARY),
    }


def _pairs(pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    return [list(pair) for pair in pairs]


def _typeset(folder: Path, data: Mapping[str, Any]) -> bytes:
    """All words go through a file of data, so that nothing in them is markup."""
    try:
        import typst
    except ImportError:
        raise missing_extra("typst", "report") from None
    (folder / "data.json").write_text(json.dumps(plain(data), allow_nan=False), encoding="utf-8")
    template = resources.files("veilmeter.report").joinpath("page", TEMPLATE).read_text(encoding="utf-8")
    (folder / TEMPLATE).write_text(template, encoding="utf-8")
    try:
        document: bytes = typst.compile(str(folder / TEMPLATE), root=str(folder), ignore_system_fonts=True)
    except RuntimeError as error:  # typst's own error, which it derives from RuntimeError
        raise VeilmeterError(f"the PDF could not be typeset: {error}") from error
    return document


# --- DOCX

MOST_OF_A_TITLE = 60  # characters of the title of a content control: longer ones are not shown
DATES = ("review_date",)
DOCUMENT_LANGUAGES = {"en": "en-US", "fr": "fr-FR"}
TABLE_TEXT = "Annex table"  # the style of text in tables
# Shares of the width by the number of columns: titles are narrow, sentences wide.
COLUMNS = {2: (2, 3), 3: (6, 9, 6), 4: (5, 6, 8, 4), 5: (4, 6, 5, 5, 4), 6: (3, 4, 4, 4, 5, 4)}
_WORD = "schemas.openxmlformats.org/wordprocessingml/2006/main"
_WORD_2010 = "schemas.microsoft.com/office/word/2010/wordml"
CHECKBOX_XML = f"""<w:sdt xmlns:w="http://{_WORD}" xmlns:w14="http://{_WORD_2010}"><w:sdtPr><w:alias w:val=""/>
<w:tag w:val="annex.option"/><w14:checkbox><w14:checked w14:val="0"/>
<w14:checkedState w14:val="2612" w14:font="MS Gothic"/>
<w14:uncheckedState w14:val="2610" w14:font="MS Gothic"/></w14:checkbox></w:sdtPr>
<w:sdtContent><w:r><w:t>{CHECKBOX}</w:t></w:r></w:sdtContent></w:sdt>"""


def _docx_text(text: str) -> str:
    """Without control characters; lines and spaces stay as they are."""
    return clean(text, keep=f"\n{NO_BREAK_SPACE}")


def annex_docx(run: Reported, options: Options) -> bytes:
    try:
        import docx
        from docx.shared import Mm, Pt
    except ImportError:
        raise missing_extra("python-docx", "report") from None
    results, decision = run.results, decision_of(run, options)
    texts = annex_texts()
    document = docx.Document()
    section = document.sections[0]
    section.page_width, section.page_height = (
        (Mm(215.9), Mm(279.4)) if options.paper == "letter" else (Mm(210), Mm(297))
    )
    section.left_margin = section.right_margin = Mm(20)
    document.styles["Normal"].font.size = Pt(10.5)
    small = document.styles.add_style(TABLE_TEXT, 1)  # of paragraphs
    small.base_style, small.font.size = document.styles["Normal"], Pt(9)
    small.paragraph_format.space_before = small.paragraph_format.space_after = Pt(2)
    properties = document.core_properties
    properties.author, properties.title, properties.comments = f"veilmeter {results.version}", clean(results.title), ""
    # The day of the run, else that of the file: the template's own is of 2013.
    day = datetime.now(UTC)
    with suppress(ValueError):
        day = datetime.fromisoformat(run.created)
    properties.created = properties.modified = day.replace(tzinfo=None)
    _number_pages(section)
    _set_language(document, options.language)
    document.add_heading(_docx_text(_whole_title(results)), 0)
    notice = str(results.settings.get("notice") or "")
    if notice:
        document.add_paragraph(_docx_text(notice))
    document.add_paragraph(texts["annex.note"])
    for chapter in annex(results, decision, run.created, template=options.template):
        heading = _add_chapter(document, chapter, texts["fill_in"])
    heading.paragraph_format.page_break_before = True  # what is signed is one page
    packed = io.BytesIO()
    document.save(packed)
    return packed.getvalue()


def _number_pages(section: Any) -> None:
    """ "3 / 7" at the foot of every page, as fields that the word processor fills in."""
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    paragraph = section.footer.paragraphs[0]
    paragraph.alignment = 2
    for field, after in (("PAGE", " / "), ("NUMPAGES", "")):
        element = OxmlElement("w:fldSimple")
        element.set(qn("w:instr"), field)
        paragraph._p.append(element)
        paragraph.add_run(after)


def _set_language(document: Any, code: str) -> None:
    """The language that the word processor checks the spelling in."""
    from docx.oxml.ns import qn

    for element in document.styles.element.iter(qn("w:lang")):
        element.set(qn("w:val"), DOCUMENT_LANGUAGES.get(code, code))


def _repeat_on_every_page(row: Any) -> None:
    from docx.oxml import OxmlElement

    row._tr.get_or_add_trPr().append(OxmlElement("w:tblHeader"))


def _keep_together(row: Any) -> None:
    """A row is on one page."""
    from docx.oxml import OxmlElement

    row._tr.get_or_add_trPr().append(OxmlElement("w:cantSplit"))


def _add_chapter(document: Any, chapter: Chapter, fill_in: str) -> Any:
    heading = document.add_heading(chapter.title, 1)
    for paragraph in chapter.paragraphs:
        document.add_paragraph(_docx_text(paragraph)).paragraph_format.keep_with_next = True
    for item in chapter.items:
        document.add_paragraph(_docx_text(item), style="List Bullet")
    if chapter.table is not None:
        _add_table(document, chapter.table, fill_in)
    return heading


def _add_table(document: Any, content: Table, fill_in: str) -> None:
    headed = any(content.head)
    table = document.add_table(rows=0, cols=len(content.head))
    table.style, table.autofit = "Table Grid", False
    if headed:
        for cell, title in zip(table.add_row().cells, content.head, strict=True):
            cell.paragraphs[0].add_run(_docx_text(title)).bold = True
        _repeat_on_every_page(table.rows[0])
    for number, row in enumerate(content.rows):
        entry = content.entry_of(number)
        for place, (cell, written) in enumerate(zip(table.add_row().cells, row, strict=True)):
            title = ": ".join(part for part in (row[0], content.head[place]) if part)
            if written == CHECKBOX:
                _add_checkbox(cell.paragraphs[0], row[1])
            elif not written or (entry and place == 1):
                _add_control(cell.paragraphs[0], _docx_text(written), title, entry if place == 1 else "", fill_in)
            else:
                cell.paragraphs[0].add_run(_docx_text(written)).bold = place == 0
    _set_columns(document, table)


def _set_columns(document: Any, table: Any) -> None:
    """Widths by the number of columns, small print, and rows that are not broken across pages."""
    section = document.sections[0]
    width = section.page_width - section.left_margin - section.right_margin
    shares = COLUMNS.get(len(table.columns), (1,) * len(table.columns))
    for column, share in zip(table.columns, shares, strict=True):
        column.width = int(width * share / sum(shares))
    for row in table.rows:
        _keep_together(row)
        for cell, share in zip(row.cells, shares, strict=True):
            cell.width = int(width * share / sum(shares))
            for paragraph in cell.paragraphs:
                paragraph.style = document.styles[TABLE_TEXT]


def _add_checkbox(paragraph: Any, option: str) -> None:
    """A box to tick, for one of the options to sign."""
    from docx.oxml import parse_xml

    control = parse_xml(CHECKBOX_XML)
    control[0][0].set(control[0][0].keys()[0], _docx_text(option)[:MOST_OF_A_TITLE])
    paragraph._p.append(control)


def _add_control(paragraph: Any, text: str, title: str, entry: str, fill_in: str) -> None:
    """A content control: a line to fill in, or an entry of the settings that can be changed. Its tag is the name of the
    entry, so that programs find it."""
    from docx.oxml import OxmlElement
    from docx.oxml.ns import qn

    def element(name: str, value: str | None = None) -> Any:
        made = OxmlElement(f"w:{name}")
        if value is not None:
            made.set(qn("w:val"), value)
        return made

    control, properties, content = (element(name) for name in ("sdt", "sdtPr", "sdtContent"))
    properties.append(element("alias", _docx_text(title)[:MOST_OF_A_TITLE]))
    properties.append(element("tag", f"annex.{entry}" if entry else "annex"))
    run = element("r")
    if not text:
        properties.append(element("showingPlcHdr"))  # the word processor removes the text when somebody writes
        look = element("rPr")
        look.append(element("color", "767676"))
        run.append(look)
    kind = element("date" if entry in DATES else "text")
    if entry in DATES:
        kind.append(element("dateFormat", "yyyy-MM-dd" if is_english() else "dd/MM/yyyy"))
    else:
        kind.set(qn("w:multiLine"), "1")
    properties.append(kind)
    for number, line in enumerate((text or fill_in).split("\n")):
        words_shown = element("t")
        words_shown.text = line
        run.extend(([element("br")] if number else []) + [words_shown])
    content.append(run)
    control.extend((properties, content))
    paragraph._p.append(control)
