"""The page: one self-contained HTML file from a run's results."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources
from typing import Any

from veilmeter.core.extras import need
from veilmeter.core.files import plain
from veilmeter.report import view
from veilmeter.report.annex import annex
from veilmeter.report.charts import Figure, criterion_figures, people_figures
from veilmeter.report.texts import CRITERIA, GLOSSARY, INTRODUCTIONS

_TITLES = CRITERIA | {"similarity": "Likeness before and after", "verification": "Verification (EER)"}
_ORDER = ("linking", "singling_out", "disclosure", "similarity", "inversion", "inference", "verification")
_NAVIGATION = {
    "linking": "Linking",
    "singling_out": "Singling out",
    "disclosure": "Disclosure",
    "similarity": "Likeness",
    "inversion": "Inversion",
    "inference": "Inference",
    "verification": "EER",
}


@dataclass(frozen=True, slots=True)
class Options:
    """What the user may choose about the page."""

    show_ids: bool = False
    threshold: float | None = None
    audio: Mapping[str, Sequence[Mapping[str, str]]] | None = None  # data URIs by speaker
    created: str = ""


def render(results: Mapping[str, Any], matrices: Any, options: Options) -> str:
    """The page's text. `results` already speaks of pseudonyms if it should; `matrices` as `charts.Matrices` or None."""
    limit = view.threshold_sentence(results, options.threshold)
    criteria = []
    figures: list[Figure] = []
    for section in _ORDER:
        made = criterion_figures(section, results, matrices, options.threshold)
        table = view.section_rows(results, section)
        if made or table:
            criteria.append(
                {
                    "id": section,
                    "title": _TITLES[section],
                    "intro": INTRODUCTIONS[section],
                    "figures": made,
                    "rows": table,
                    "notes": (results.get(section) or {}).get("notes", [])
                    if isinstance(results.get(section), Mapping)
                    else [],
                }
            )
            figures += made
    people = view.people(results)
    people["figures"] = people_figures(results, matrices)
    figures += people["figures"]
    return page(
        "report.html.j2",
        figures,
        _people_data(results, options),
        title=results.get("title", "Assessment of anonymized speech"),
        created=options.created,
        version=results.get("version", ""),
        notice=str(results.get("parameters", {}).get("notice") or ""),
        sections=[
            ("verdict", "Verdict"),
            *((s["id"], _NAVIGATION[s["id"]]) for s in criteria),
            ("people", "People"),
            ("method", "Method"),
            ("annex", "Annex"),
        ],
        headline=str(results["verdict"].get("headline", "")),
        who=view.who_is_it(results),
        banner=view.banner(results),
        sentences=view.sentences(results),
        not_tested=view.not_tested(results),
        trust=view.trust(results),
        threshold=limit,
        cards=view.cards(results),
        facts=view.facts(results),
        criteria=criteria,
        people=people,
        show_ids=options.show_ids,
        attackers=view.attackers_table(results),
        measures=view.used_measures(results),
        command=shlex.join(map(str, results.get("command", []))),
        parameters=view.parameters(results),
        glossary=GLOSSARY,
        annex=annex(results, limit),
    )


def page(template: str, drawn: Sequence[Figure], chosen: Mapping[str, Any], /, **words: Any) -> str:
    """A template of this package with its style, its script, Vega, and the figures' data inside."""
    need("jinja2")
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("veilmeter.report", "page"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    return environment.get_template(template).render(
        **words,
        css=Markup(_page_file("report.css")),
        javascript=Markup(_page_file("report.js")),
        vega=Markup(_vega()),
        figure_data=Markup(_script_json({f"figure-{f.id}": f.spec for f in drawn})),
        people_data=Markup(_script_json(chosen)),
    )


def _people_data(results: Mapping[str, Any], options: Options) -> dict[str, Any]:
    made = {}
    for person in results.get("speakers", [])[: view.MOST_PEOPLE]:
        risk = person.get("risk")
        sentence = ""
        if isinstance(risk, Mapping) and risk.get("value") is not None:
            one = view.estimate("linkability", risk)
            sentence = f"highest risk {one.format_value()} {one.format_interval()}".strip()
        made[person["speaker"]] = {
            "sentence": sentence,
            "audio": list((options.audio or {}).get(person["speaker"], [])),
        }
    return made


def _script_json(value: Any) -> str:
    """JSON that can't end its script element, whatever the ids are."""
    text = json.dumps(plain(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").replace("\u2028", "\\u2028")


def _page_file(name: str) -> str:
    return resources.files("veilmeter.report").joinpath("page", name).read_text(encoding="utf-8")


@lru_cache(maxsize=1)
def _vega() -> str:
    """Vega, Vega-Lite and their embedder as one script, from the package that also draws the files."""
    import vl_convert

    bundle: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed;")
    return bundle.replace("</script", "<\\/script")
