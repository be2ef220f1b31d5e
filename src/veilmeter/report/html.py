"""The page: one self-contained HTML file from results."""

from __future__ import annotations

import base64
import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from veilmeter.attacks.knowledge import plain_words
from veilmeter.core.files import plain
from veilmeter.report.annex import annex
from veilmeter.report.channels import SECTION as CHANNELS
from veilmeter.report.channels import channel_rows, channel_table, channels_figure
from veilmeter.report.criterion_rows import criterion_row
from veilmeter.report.decision import Decision, basis_words, decide
from veilmeter.report.figure import Figure
from veilmeter.report.figures import style
from veilmeter.report.links import safe_link
from veilmeter.report.method import facts, parameters
from veilmeter.report.people import MOST_PEOPLE, people_table
from veilmeter.report.people_figures import people_figures
from veilmeter.report.plain_language import never_tested
from veilmeter.report.release import curves_of
from veilmeter.report.rows import ORDER, Row, attacker_rows, reaches_below_zero, section_rows, used_measures
from veilmeter.report.section_figures import section_figures
from veilmeter.report.sound import Recordings
from veilmeter.report.source import Matrices, Reported
from veilmeter.report.texts import BELOW_ZERO, GLOSSARY, SECTIONS
from veilmeter.report.use_notes import use_notes
from veilmeter.report.vega import vega_script
from veilmeter.results.model import Results
from veilmeter.wording import sentences


@dataclass(frozen=True, slots=True)
class Options:
    """What the user may choose about the report."""

    show_ids: bool = False
    limit: float | None = None
    release_size: int | None = None
    candidates: int | None = None
    paper: str = "a4"
    recordings: Recordings = field(default_factory=dict)  # data URIs by speaker


@dataclass(frozen=True, slots=True)
class TechnicalSection:
    id: str
    title: str
    short: str
    introduction: str
    gist: str
    figures: tuple[Figure, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]


def decision_of(run: Reported, options: Options) -> Decision:
    settings = run.results.settings
    return decide(
        run.results,
        created=run.created,
        people=options.release_size or settings.get("release_size"),
        candidates=options.candidates or settings.get("candidates"),
        limit=options.limit,
    )


def technical_sections(results: Results, matrices: Matrices | None, limit: float | None) -> list[TechnicalSection]:
    """What was measured, in the order of the registry's sections; those without figures and rows are left out."""
    sections = []
    for section in ORDER:
        figures = section_figures(section, results, limit)
        figures += people_figures(results, matrices) if section == "similarity" else []
        rows = section_rows(results, section)
        if figures or rows:
            words = SECTIONS[section]
            criterion = results.criteria.get(section)
            notes = [BELOW_ZERO] if reaches_below_zero(results, section) else []
            notes += use_notes(results) if section == "utility" else ()
            gist = criterion.sentence if criterion is not None else ""
            sections.append(
                TechnicalSection(
                    section,
                    words.title,
                    words.short,
                    words.introduction,
                    gist,
                    tuple(figures),
                    tuple(rows),
                    tuple(notes),
                )
            )
    return [*sections, *_channel_section(results)]


def _channel_section(results: Results) -> list[TechnicalSection]:
    """Where people were heard by several extractors."""
    rows, figure = channel_rows(results), channels_figure(results)
    if not rows:
        return []
    words, figures = SECTIONS[CHANNELS], (figure,) if figure is not None else ()
    gist = results.channels.sentence if results.channels else ""
    return [TechnicalSection(CHANNELS, words.title, words.short, words.introduction, gist, figures, tuple(rows), ())]


@style.without_checks()
def render(run: Reported, options: Options, *, alone: bool = True) -> str:
    """The page's text, from a run that is already fit to be shown. A page that is not `alone` lies in another
    one, whose script puts in Vega, which would be there many times."""
    results, decision = run.results, decision_of(run, options)
    technical = technical_sections(results, run.matrices, options.limit)
    shown_on_cards = {criterion.sentence for criterion in results.criteria.values()}
    return page(
        "report.html.j2",
        [figure for section in technical for figure in section.figures],
        people_data(results, options.recordings),
        release_data(results),
        title=results.title,
        created=run.created,
        version=results.version,
        notice=str(results.settings.get("notice") or ""),
        sections=[
            ("decision", "Decision"),
            ("annex", "Annex"),
            ("people", "People"),
            ("technical", "Technical part"),
            ("method", "Method"),
        ],
        folds=True,
        d=decision,
        calculator=_calculator(results),
        annex=annex(results, decision, run.created),
        people=people_table(results),
        channels=channel_table(results),
        cards=[criterion_row(results, name) for name in results.criteria],
        sentences=[text for text in results.verdict.sentences if text not in shown_on_cards],
        not_tested=(*results.verdict.not_tested, *never_tested(results)),
        warnings=sentences((*results.warnings, *results.remarks), "technical"),
        technical=technical,
        facts=facts(results),
        show_ids=options.show_ids,
        with_audio=bool(options.recordings),
        attackers=attacker_rows(results),
        measures=used_measures(results),
        command=shlex.join(results.command),
        parameters=parameters(results),
        glossary=GLOSSARY,
        vega_inside=alone,
    )


def render_annex(run: Reported, options: Options) -> str:
    """The annex as a page of its own."""
    results = run.results
    return page(
        "annex.html.j2",
        [],
        title=results.title,
        created=run.created,
        version=results.version,
        notice=str(results.settings.get("notice") or ""),
        sections=[],
        folds=False,
        annex=annex(results, decision_of(run, options), run.created),
        show_ids=options.show_ids,
    )


def people_data(results: Results, recordings: Recordings) -> dict[str, Any]:
    return {
        person.speaker: {
            "sentence": f"highest risk {person.risk.format_value()} {person.risk.format_interval()}".strip(),
            "audio": recordings.get(person.speaker, []),
        }
        for person in results.people.persons[:MOST_PEOPLE]
    }


def release_data(results: Results) -> dict[str, Any]:
    """The curves that the calculator reads, by attacker and number of recordings per person."""
    curves: dict[str, dict[str, Any]] = {}
    for curve in curves_of(results):
        points = [[s.candidates, s.value, s.low, s.high, s.basis] for s in curve.grid()]
        rounded = [[point[0], *(round(float(share), 5) for share in point[1:4]), point[4]] for point in points]
        curves.setdefault(curve.attacker, {})[str(curve.length)] = {"points": rounded, "basis": basis_words(curve)}
    return {"curves": curves}


def _calculator(results: Results) -> dict[str, Any] | None:
    curves = curves_of(results)
    if not curves:
        return None
    names = dict.fromkeys(curve.attacker for curve in curves)
    return {
        "lengths": sorted({curve.length for curve in curves}),
        "attackers": [(name, plain_words(name, results.attackers[name].about).who) for name in names],
    }


def page(
    template: str,
    drawn: Sequence[Figure],
    chosen: Mapping[str, Any] | None = None,
    curves: Mapping[str, Any] | None = None,
    /,
    **words: Any,
) -> str:
    """A template of this package with its style, its scripts (allowed by their hashes alone), and the figures' data."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("veilmeter.report", "page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["link"] = safe_link
    environment.filters["script_json"] = _script_json
    scripts = {"vega": vega_script() if drawn else "", "javascript": _page_file("report.js")}
    hashes = [_script_hash(text) for text in scripts.values() if text]
    words.setdefault("vega_inside", True)
    return environment.get_template(template).render(
        **words,
        **{name: Markup(text) for name, text in scripts.items()},
        css=Markup(_page_file("report.css")),
        script_hashes=Markup(" ".join(hashes)),
        figure_data=_script_json({f"figure-{figure.id}": figure.spec for figure in drawn}),
        people_data=_script_json(chosen or {}),
        release_data=_script_json(curves or {"curves": {}}),
    )


def _script_hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _script_json(value: Any) -> Any:
    """JSON that can't end its script element, whatever the ids are."""
    from markupsafe import Markup

    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return Markup(text)


def _page_file(name: str) -> str:
    return resources.files("veilmeter.report").joinpath("page", name).read_text(encoding="utf-8")
