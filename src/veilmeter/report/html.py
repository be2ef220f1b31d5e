"""The page: one self-contained HTML file from results."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shlex
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from veilmeter.attacks.attacker import plain_words
from veilmeter.core.errors import VeilmeterError
from veilmeter.core.files import cache_folder, plain, write_text
from veilmeter.report.advice import without
from veilmeter.report.annex import annex
from veilmeter.report.decision import Decision, basis_words, decide, never_tested
from veilmeter.report.evidence import linked, with_cited, without_links
from veilmeter.report.figures import style
from veilmeter.report.figures.page import Figure, section_figures
from veilmeter.report.people import (
    CHANNELS,
    MOST_PEOPLE,
    channel_rows,
    channel_sentences,
    channel_table,
    channels_figure,
    people_figures,
    people_table,
)
from veilmeter.report.public import Reported
from veilmeter.report.release import MOST_OPEN, Curve, Release, curves_of, release_of
from veilmeter.report.rows import (
    ORDER,
    Row,
    attacker_rows,
    criterion_rows,
    measures_of,
    reaches_below_zero,
    section_rows,
)
from veilmeter.report.sound import Recordings
from veilmeter.results.model import Results
from veilmeter.results.run_folder import Matrices
from veilmeter.wording import annex_texts, sentence, sentences
from veilmeter.wording.citations import citations
from veilmeter.wording.english import page as words
from veilmeter.wording.english.sections import BELOW_ZERO, GLOSSARY, REFERENCES, SECTIONS
from veilmeter.wording.language import day


@dataclass(frozen=True, slots=True)
class Options:
    """Choices of the user about the report."""

    show_ids: bool = False
    limit: float | None = None
    release_size: int | None = None
    candidates: int | None = None
    paper: str = "a4"
    template: str = ""
    language: str = "en"
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
        digest=run.digest,
        costs=run.costs,
    )


def technical_sections(results: Results, matrices: Matrices | None, limit: float | None) -> list[TechnicalSection]:
    """The sections in the registry's order; those without figures and rows are left out."""
    sections = []
    for section in ORDER:
        figures = section_figures(section, results, limit)
        figures += people_figures(results, matrices) if section == "similarity" else []
        rows = section_rows(results, section)
        if figures or rows:
            about = SECTIONS[section]
            criterion = results.criteria.get(section)
            notes = [BELOW_ZERO] if reaches_below_zero(results, section) else []
            notes += use_notes(results) if section == "utility" else ()
            gist = sentence(criterion.finding, "technical") if criterion is not None else ""
            sections.append(
                TechnicalSection(
                    section,
                    about.title,
                    about.short,
                    about.introduction,
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
    about, figures = SECTIONS[CHANNELS], (figure,) if figure is not None else ()
    gist = channel_sentences(results.channels) if results.channels else ""
    return [TechnicalSection(CHANNELS, about.title, about.short, about.introduction, gist, figures, tuple(rows), ())]


@style.without_checks()
def render(run: Reported, options: Options, *, alone: bool = True) -> str:
    """The page's text, from a run that is already fit to be shown. A page that is not `alone` lies in another
    one, whose script puts in Vega, which would be there many times."""
    results = run.results
    with citations() as cited:
        decision = decision_of(run, options)
        technical = technical_sections(results, run.matrices, options.limit)
        *chapters, sign = annex(results, decision, run.created)  # the decision to sign follows the first page
        cards, remarks = criterion_rows(results), sentences(results.verdict.remarks, "technical")
        people, channels = people_table(results), channel_table(results)
    tables, targets = with_cited([(section.id, section.rows) for section in technical], cited.made)
    technical = [replace(section, rows=tuple(rows)) for section, rows in zip(technical, tables, strict=True)]
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
            ("decision", words.TITLES["decision"]),
            ("annex", words.TITLES["annex_short"]),
            *((name, words.TITLES[name]) for name in ("people", "technical", "method")),
        ],
        folds=True,
        d=decision,
        calculator=_calculator(results, decision.release),
        annex=chapters,
        sign=sign,
        people=people,
        channels=channels,
        cards=cards,
        sentences=remarks,
        not_tested=sentences((*results.verdict.not_tested, *never_tested(results)), "technical"),
        warnings=sentences((*results.warnings, *results.remarks), "technical"),
        technical=technical,
        facts=facts(results),
        show_ids=options.show_ids,
        with_audio=bool(options.recordings),
        attackers=attacker_rows(results),
        measures=measures_of(results),
        references=references_of(results),
        command=shlex.join(results.command),
        parameters=parameters(results),
        glossary=GLOSSARY,
        vega_inside=alone,
        cited=targets,
    )


def references_of(results: Results) -> list[tuple[str, str]]:
    """The sources of the run's measures and attackers, in full."""
    named = " ".join(entry.source for entry in measures_of(results)) + " Opinion 05/2014 Vauquier et al. 2025"
    return [(name, full) for name, full in REFERENCES.items() if name in named]


def render_annex(run: Reported, options: Options) -> str:
    """The annex as a separate page."""
    results = run.results
    return page(
        "annex.html.j2",
        [],
        title=results.title,
        created=day(run.created),
        version=results.version,
        notice=str(results.settings.get("notice") or ""),
        sections=[],
        folds=False,
        annex=annex(results, decision_of(run, options), run.created, template=options.template),
        language=options.language,
        show_ids=options.show_ids,
    )


MOST_LEFT_OUT = 30  # people of whom it is computed what leaving them out would change


def people_data(results: Results, recordings: Recordings) -> dict[str, Any]:
    left_out = {name: without(results, [name]) for name in results.people.unprotected[:MOST_LEFT_OUT]}
    changes = {name: sentence(found, "lay") for name, found in left_out.items() if found is not None}
    return {
        person.speaker: {
            "sentence": words.person_risk(person.risk),
            "without": changes.get(person.speaker, ""),
            "audio": [
                {
                    "original": played.original,
                    "anonymized": played.anonymized,
                    "named": words.attacker_answer(played.named, played.named == person.speaker)
                    if played.named
                    else "",
                    "named_sound": played.named_sound,
                }
                for played in recordings.get(person.speaker, ())
            ],
        }
        for person in results.people.persons[:MOST_PEOPLE]
    }


def release_data(results: Results) -> dict[str, Any]:
    """The curves that the calculator reads, by attacker and number of recordings per person."""
    curves: dict[str, dict[str, Any]] = {}
    known, release = curves_of(results), release_of(results)
    chosen: list[Curve] = []
    if release is not None and release.chosen:  # at other lengths, the attacker that was chosen most often
        same = [curve for curve in known if curve.attacker == release.curve.attacker]
        chosen = [replace(curve, attacker=CHOSEN) for curve in (*same, release.curve)]
    for curve in (*known, *chosen):
        points = [[s.candidates, s.value, s.low, s.high, s.basis] for s in curve.grid()]
        rounded = [[point[0], *(round(float(share), 5) for share in point[1:4]), point[4]] for point in points]
        curves.setdefault(curve.attacker, {})[str(curve.length)] = {"points": rounded, "basis": basis_words(curve)}
    return {
        "curves": curves,
        "sentences": words.RELEASE_COUNT,
        "most_open": MOST_OPEN,
        "not_measured": words.NOTES["not_measured"],
    }


CHOSEN = "strongest"  # in the calculator: the figure of the headline, where it was chosen on other people


def _calculator(results: Results, release: Release | None) -> dict[str, Any] | None:
    curves = curves_of(results)
    if not curves:
        return None
    names = dict.fromkeys(curve.attacker for curve in curves)
    known = [(name, plain_words(name, results.attackers[name].about).who) for name in names]
    chosen = release is not None and release.chosen
    return {
        "lengths": sorted({curve.length for curve in curves}),
        "attackers": [
            *([(CHOSEN, words.chosen_attacker(release.curve.measured[-1]))] if release and chosen else []),
            *known,
        ],
        "selected": CHOSEN if chosen else "" if release is None else release.curve.attacker,
    }


def page(
    template: str,
    drawn: Sequence[Figure],
    chosen: Mapping[str, Any] | None = None,
    curves: Mapping[str, Any] | None = None,
    /,
    **content: Any,
) -> str:
    """A template of this package with its style, its scripts (allowed by their hashes alone), and the figures' data."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("veilmeter.report", "page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        finalize=without_links,
    )  # fmt: skip
    environment.globals.update(
        titles=words.TITLES, notes=words.NOTES, levels=words.LEVELS, states=words.STATES, texts=annex_texts(),
    )  # fmt: skip
    environment.filters["link"] = safe_link
    environment.filters["cite"] = partial(linked, targets=content.pop("cited", ()))
    environment.filters["script_json"] = _script_json
    scripts = {"vega": vega_script() if drawn else "", "javascript": _page_file("report.js")}
    hashes = [_script_hash(text) for text in scripts.values() if text]
    content.setdefault("vega_inside", True)
    content.setdefault("language", "en")
    return environment.get_template(template).render(
        **content,
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


# --- what was assessed, and how to repeat it


_NOT_SHOWN = ("seed", "title", "notice", "annex", "recipients")  # which are shown elsewhere


def facts(results: Results) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for role, entry in results.inputs.items():
        rows.append((words.role(role), words.speech(entry.speakers, entry.utterances, entry.hours)))
    rows.append(("Recordings in both forms", f"{results.matching.matched:,}"))
    left_out = {reason: count for reason, count in results.matching.unmatched.items() if count}
    if left_out:
        rows.append(("Recordings left out", words.reasons_text(left_out)))
    extractor = results.extractor
    name = f"{extractor.get('name', '')} {extractor.get('version', '')}".strip() if extractor else "given vectors"
    rows.append(("Attackers' recognizer", name))
    protocol = results.protocol
    rows.append(("Enrollment and trials", f"{sentence(protocol.split, 'technical')}; training: {protocol.training}"))
    if protocol.anonymized_enrollment:
        rows.append(("What attackers anonymized", words.ANONYMIZED_BY_ATTACKERS[protocol.anonymized_enrollment]))
    rows.append(("Attackers run", ", ".join(results.attacks)))
    return rows


def parameters(results: Results) -> list[tuple[str, str]]:
    """The given settings, and the digests of the inputs."""
    rows = [("veilmeter", results.version), ("seed", str(results.seed))]
    for name, value in results.settings.items():
        if value in (None, "", [], (), {}) or name in _NOT_SHOWN:
            continue
        rows.append(
            (name.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
        )
    rows += [(f"sha256 of {role}", entry.sha256) for role, entry in results.inputs.items() if entry.sha256]
    return rows


# --- remarks on use


def use_notes(results: Results) -> tuple[str, ...]:
    """Nothing where use was not measured. Words may name people: a page that names nobody only counts them."""
    part = results.parts.get("utility")
    if part is None:
        return ()
    notes = [_recordings(part.details), _words(part.details), _suffering(part.details)]
    return tuple(note for note in notes if note)


def _recordings(details: Mapping[str, Any]) -> str:
    if "recordings" not in details:
        return ""
    measured = int(details["recordings"])
    return words.use_recordings(measured, int(details.get("available", measured)), int(details.get("rated") or 0))


def _words(details: Mapping[str, Any]) -> str:
    pairs = details.get("substitutions")
    if pairs:
        return words.substitutions(pairs)
    if "deleted_words" not in details:
        return ""
    return words.word_losses(int(details["deleted_words"]), int(details["inserted_words"]))


def _suffering(details: Mapping[str, Any]) -> str:
    people = [person for person in details.get("people") or () if isinstance(person.get("wer"), int | float)]
    worst = sorted(people, key=lambda person: -person["wer"])
    rows = [(p["speaker"], p["wer"], p.get("wer_original", 0), p["recordings"]) for p in worst]
    return words.suffering(rows) if rows else ""


# --- links


NOWHERE = "#"


def safe_link(address: str) -> str:
    """The address if it is harmless, else a link to nowhere.

    >>> safe_link("https://example.org/a?b=c"), safe_link("runs/a b/report.html"), safe_link("#people")
    ('https://example.org/a?b=c', 'runs/a%20b/report.html', '#people')
    >>> safe_link("javascript:alert(1)"), safe_link("//elsewhere.example/x"), safe_link("data:text/html,x")
    ('./javascript%3Aalert%281%29', './elsewhere.example/x', './data%3Atext/html%2Cx')
    """
    if address.startswith("#"):
        return "#" + quote(address[1:])
    parts = urlsplit(address)
    if parts.scheme in ("http", "https") and parts.netloc:
        return parts.geturl()
    # Anything else is the path of a file: a folder may be called "javascript:alert(1)".
    path = quote(address.replace("\\", "/").lstrip("/"))
    if not path:
        return NOWHERE
    return path if path == address else f"./{path}" if ":" in address or address.startswith("/") else path


# --- Vega, Vega-Lite and their embedder as one script


_EXPOSED = "window.vegaEmbed = vegaEmbed;"


@lru_cache(maxsize=1)
def vega_script() -> str:
    """From the package that also draws the files. To put it together takes longer than the rest of a page, so it is
    kept for the next one."""
    import vl_convert

    made_by = version("vl-convert-python")
    try:
        folder = cache_folder()
    except VeilmeterError:  # no home folder
        return _bundle(vl_convert)
    script = kept_script(folder, made_by)
    if script is None:
        script = _bundle(vl_convert)
        with suppress(VeilmeterError):  # the page does not need it
            write_text(folder / _name(made_by, script), script)
    return script


def kept_script(folder: Path, made_by: str) -> str | None:
    """The script that this user kept. A name holds the digest of what was written, so that half a file is none; a file
    that others may have written is not put into pages."""
    for path in sorted(folder.glob(f"vega-{made_by}-*.js")):
        with suppress(OSError, UnicodeDecodeError):
            facts = path.lstat()
            own = facts.st_uid == os.getuid() if hasattr(os, "getuid") else True
            if not own or not stat.S_ISREG(facts.st_mode) or facts.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                continue
            script = path.read_text(encoding="utf-8")
            if path.name == _name(made_by, script):
                return script
    return None


def _name(made_by: str, script: str) -> str:
    return f"vega-{made_by}-{hashlib.sha256(script.encode()).hexdigest()}.js"


def _bundle(vl_convert: Any) -> str:
    bundle: str = vl_convert.javascript_bundle(_EXPOSED)
    return bundle.replace("</script", "<\\/script")
