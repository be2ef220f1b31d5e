"""The report on paper, set by typst: no browser, no system library, fonts that travel with it, figures as vectors."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from veilmeter.core.errors import VeilmeterError, missing_extra
from veilmeter.core.files import plain
from veilmeter.report.annex import annex
from veilmeter.report.decision import Decision
from veilmeter.report.html import (
    Options,
    TechnicalSection,
    decision_of,
    facts,
    parameters,
    technical_sections,
)
from veilmeter.report.rows import attacker_rows, measures_of
from veilmeter.report.source import Reported
from veilmeter.results.model import Results
from veilmeter.wording.english import page as words

TEMPLATE = "report.typ"


def report_pdf(run: Reported, options: Options) -> bytes:
    """The decision first, the annex second, the technical part last."""
    sections = technical_sections(run.results, run.matrices, options.limit)
    decision = decision_of(run, options)
    with tempfile.TemporaryDirectory(prefix="veilmeter-") as name:
        folder = Path(name)
        technical = [_section(section, folder) for section in sections]
        more = {"decision": _decision(decision), "technical": technical, "method": _method(run.results, decision)}
        return _typeset(folder, _data(run, options, decision, more))


def annex_pdf(run: Reported, options: Options) -> bytes:
    """The annex alone."""
    empty = {"decision": None, "technical": None, "method": None}
    with tempfile.TemporaryDirectory(prefix="veilmeter-") as name:
        return _typeset(Path(name), _data(run, options, decision_of(run, options), empty))


def _data(run: Reported, options: Options, decision: Decision, more: Mapping[str, Any]) -> dict[str, Any]:
    chapters = [dataclasses.asdict(chapter) for chapter in annex(run.results, decision, run.created)]
    return {
        "paper": options.paper,
        "title": run.results.title,
        "running": decision.headline if decision.trustworthy else decision.reliance,
        "version": run.results.version,
        "created": run.created,
        "notice": str(run.results.settings.get("notice") or ""),
        "annex": chapters,
        "titles": words.TITLES,
        "notes": words.NOTES,
        "signers": words.SIGNERS,
        "states": words.STATES,
        **more,
    }


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
        "glossary": _pairs(words.GLOSSARY),
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
        raise VeilmeterError(f"the PDF could not be set: {error}") from error
    return document
