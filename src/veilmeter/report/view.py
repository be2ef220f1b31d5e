"""From results.json to what the page says: pure, so that every sentence and number can be traced and tested."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from veilmeter.core.estimate import Estimate
from veilmeter.metrics.registry import MEASURES, label_of
from veilmeter.report.texts import CRITERIA, DISTINCTNESS, LEVELS, NEVER_TESTED
from veilmeter.results.doubts import doubts, meaning

Results = Mapping[str, Any]
MOST_PEOPLE = 1000  # rows of the people table; more would only slow the page down

# The most that each measure can be, for the bar of its card.
_TOP = {"d_ece": 0.7213, "l_w": 6.0, "eer": 50.0, "deid": 100.0, "top1": 100.0, "inference": 100.0}

_SECTION_MEASURES = {
    "linking": ["linkability", "population_linkability", "rank_disclosure", "rank_disclosure_worst"],
    "singling_out": ["singling_out", "control", "residual_risk", "hit_share"],
    "disclosure": ["d_ece", "l_w", "min_cllr", "cllr", "c_ece_linear", "c_ece_isotonic"],
    "verification": ["eer", "tpr@fpr=0.01", "tpr@fpr=0.001", "tpr@fpr=0.0001", "d_sys"],
}


def estimate(name: str, form: Mapping[str, Any]) -> Estimate:
    """An estimate of results.json, with its label."""
    return Estimate.from_json(name, {key: value for key, value in form.items() if key != "name"}, label=label_of(name))


def listed(name: str, found: Any) -> list[Estimate]:
    """One estimate or a curve, as a list."""
    forms = found if isinstance(found, list) else [found]
    return [estimate(name, form) for form in forms if isinstance(form, Mapping) and "value" in form]


def attacker_estimates(results: Results, names: Sequence[str]) -> Iterator[tuple[str, Estimate]]:
    for attacker, entry in results.get("attackers", {}).items():
        for name in names:
            if name in entry.get("estimates", {}):
                yield from ((attacker, one) for one in listed(name, entry["estimates"][name]))


def rows(results: Results, names: Sequence[str]) -> list[dict[str, str]]:
    """Table rows; of a curve only its ends, as the figure shows the rest."""
    made = []
    for attacker, entry in results.get("attackers", {}).items():
        for name in names:
            found = listed(name, entry.get("estimates", {}).get(name, []))
            made += [row(attacker, one) for one in _ends(found)]
    return made


def _ends(curve: list[Estimate]) -> list[Estimate]:
    """The first and the last point of a curve over the number of people, for each conversation length."""
    if len(curve) <= 2 or any("speakers" not in one.at for one in curve):
        return curve
    by_length: dict[Any, list[Estimate]] = {}
    for one in curve:
        by_length.setdefault(one.at.get("length"), []).append(one)
    return [end for part in by_length.values() for end in ([part[0], part[-1]] if len(part) > 1 else part)]


def row(attacker: str, one: Estimate) -> dict[str, str]:
    at = ", ".join(_parameter(key, value) for key, value in one.at.items())
    value = one.format_value() + (f" (tag {one.extra['tag']})" if "tag" in one.extra else "")
    return {
        "attacker": attacker,
        "label": one.label + (f", {at}" if at else ""),
        "value": value,
        "interval": one.format_interval(),
        "null": one.format_null(),
        "method": one.method,
    }


def _parameter(key: str, value: Any) -> str:
    if key == "speakers":
        return f"{int(value):,} people"
    if key == "length":
        return f"{value} utterance{'' if value == 1 else 's'} each"
    return f"{key} {value}"


def cards(results: Results) -> list[dict[str, Any]]:
    """The worst case of each criterion; probabilities in percent, as the sentences say them."""
    made = []
    for criterion, title in CRITERIA.items():
        case = results.get("worst_case", {}).get(criterion)
        if not case:
            continue
        one = estimate(case["estimate"].get("name", criterion), case["estimate"])
        level = case.get("level", "low")
        shown = _in_percent(one)
        kept_apart = criterion == "distinctiveness"
        made.append(
            {
                "title": title,
                "level": level,
                "level_text": (DISTINCTNESS if kept_apart else LEVELS).get(level, level),
                "value": shown.format_value() + (f" · tag {one.extra['tag']}" if "tag" in one.extra else ""),
                "interval": shown.format_interval(),
                "null": "" if kept_apart else shown.format_null(),  # nobody guesses there
                "gauge": gauge(one),
                "sentence": case.get("sentence", ""),
                "attacker": _attacker(case.get("attacker") or ""),
                "measure": one.label + "".join(f", {_parameter(key, value)}" for key, value in one.at.items()),
            }
        )
    return made


def _in_percent(one: Estimate) -> Estimate:
    if one.unit != "probability":
        return one
    low_high = None if one.interval is None else (100 * one.interval[0], 100 * one.interval[1])
    null = None if one.null is None else 100 * one.null
    return one.with_(value=100 * one.value, interval=low_high, null=null, unit="percent")


def _attacker(name: str) -> str:
    return f"{name} attacker" if name and " " not in name else name


def gauge(one: Estimate) -> dict[str, Any] | None:
    """The bar of a card, in percent of its width; none for measures without a range."""
    top = 1.0 if one.unit == "probability" else _TOP.get(one.name)
    if top is None or not math.isfinite(one.value):
        return None

    def place(value: float) -> float:
        return round(2 + 96 * min(1.0, max(0.0, value / top)), 1)

    low, high = one.interval or (math.nan, math.nan)
    known = math.isfinite(low) and math.isfinite(high)
    alt = f"{one.label}: {one.format_value()}" + (f", interval {one.format_interval()}" if known else "")
    return {
        "dot": place(one.value),
        "low": place(low) if known else None,
        "width": round(max(0.7, place(high) - place(low)), 1) if known else None,
        "chance": None if one.null is None else place(one.null),
        "alt": alt + (f", chance {one.format_null()}" if one.null is not None else ""),
    }


def who_is_it(results: Results) -> str:
    """What the attacker of the headline has, for readers who do not know the names."""
    name = (results.get("worst_case", {}).get("linking") or {}).get("attacker", "")
    about = results.get("attackers", {}).get(name, {}).get("about", "")
    return f"The {name} attacker {about}." if about else ""


def banner(results: Results) -> dict[str, Any]:
    """Whether the result can be relied on: a bold sentence, and what stands below it."""
    verdict, checks = results["verdict"], results.get("trust", [])
    failed = doubts(results) or ([] if verdict.get("trustworthy") else list(verdict.get("distrust", [])))
    could = sum(check.get("passed") is not None for check in checks)
    if failed or not verdict.get("trustworthy"):
        count = f"{len(failed)} of its own {could} checks failed" if failed and could else "its own checks failed"
        return {"good": False, "title": f"Do not rely on this result yet: {count}.", "lines": failed}
    open_ones = len(checks) - could
    made = f"{could} check{'' if could == 1 else 's'}{' that could be made' if open_ones else ''} of it"
    return {
        "good": True,
        "title": f"These figures can be relied on as they stand: the {made} passed.",
        "lines": ["That is no word on whether the release is safe, and it holds only for the attackers that were run."],
    }


def sentences(results: Results) -> list[str]:
    """What the verdict says beyond its headline and the cards: whom it concerns, and what to beware of."""
    on_cards = {card["sentence"] for card in cards(results)}
    said = [sentence for sentence in results["verdict"].get("sentences", []) if sentence not in on_cards]
    unprotected = str((results.get("unprotected") or {}).get("sentence") or "")
    return ([unprotected] if unprotected else []) + said


def not_tested(results: Results) -> list[str]:
    """What this run left out, and what no run tests."""
    return [*results["verdict"].get("not_tested", []), *NEVER_TESTED]


def trust(results: Results) -> list[dict[str, str]]:
    states = {True: "passed", False: "failed", None: "unknown"}
    made = []
    for check in results.get("trust", []):
        figure = check.get("figure")
        if isinstance(figure, Mapping) and "value" in figure:
            one = estimate(str(figure.get("name", check["name"])), figure)
            figure = f"{one.format_value()} {one.format_interval()}"
        else:
            figure = None  # the sentence says it, with its unit
        title = str(check.get("title") or check["name"].replace("-", " ").replace("_", " ").capitalize())
        title = title.replace("nrolment", "nrollment")  # the name of the check is older than the spelling
        made.append(
            {
                "title": title,
                "state": states[check.get("passed")],
                "figure": "" if figure is None else str(figure),
                "sentence": str(check.get("sentence", "")),
                "meaning": meaning(check) if check.get("passed") is False else "",
            }
        )
    order = ["failed", "unknown", "passed"]
    return sorted(made, key=lambda check: order.index(check["state"]))


def facts(results: Results) -> list[tuple[str, str]]:
    inputs, protocol = results.get("inputs", {}), results.get("protocol", {})
    made: list[tuple[str, str]] = []
    for key, title in [
        ("original", "Original speech"),
        ("anonymized", "Anonymized speech"),
        ("anonymized_again", "Second run of the anonymizer"),
        ("train_original", "Training speech, original"),
        ("train_anonymized", "Training speech, anonymized"),
    ]:
        entry = inputs.get(key)
        if entry:
            hours = entry.get("hours")
            counts = f"{entry.get('speakers', 0):,} speakers, {entry.get('utterances', 0):,} recordings"
            made.append((title, counts + (f", {_duration(hours)}" if hours else "")))
    matched = inputs.get("matched")
    if matched:
        made.append(("Recordings in both forms", f"{matched:,}"))
    extractor = results.get("extractor")
    made.append(
        (
            "Attackers' recognizer",
            f"{extractor['name']} {extractor.get('version', '')}" if extractor else "given vectors",
        )
    )
    if protocol:
        made.append(("Enrollment and trials", f"{protocol.get('split', '')}; training: {protocol.get('training', '')}"))
    if protocol.get("anonymized_enrolment"):
        made.append(("What attackers anonymized", str(protocol["anonymized_enrolment"])))
    made.append(("Attackers run", ", ".join(name for name in results.get("attackers", {}) if name != "original")))
    return made


def _duration(hours: float) -> str:
    """
    >>> _duration(0.1874), _duration(3.26), _duration(0.01)
    ('11 minutes', '3.3 hours', '1 minute')
    """
    minutes = max(1, round(60 * hours))
    if minutes < 90:
        return f"{minutes} minute{'' if minutes == 1 else 's'}"
    return f"{hours:.2g} hours" if hours < 100 else f"{hours:,.0f} hours"


def threshold_sentence(results: Results, threshold: float | None) -> dict[str, Any] | None:
    """The user's limit against the worst case of linking; the limit is the user's choice, not ours."""
    if threshold is None:
        return None
    case = results.get("worst_case", {}).get("linking")
    if not case:
        return {
            "value": threshold,
            "sentence": f"The limit of {threshold:g} was given, but Linkability was not measured.",
        }
    one = estimate("linkability", case["estimate"])
    where = "".join(f", {_parameter(key, value)}" for key, value in one.at.items())
    over = one.worst > threshold
    shown = _in_percent(one)
    verb = "lies above" if one.value > threshold else "may lie above" if over else "lies below"
    return {
        "value": threshold,
        "over": over,
        "sentence": f"Against the limit of {threshold:g} ({100 * threshold:g} %) chosen for this assessment, the worst "
        f"measured Linkability, {shown.format_value()} {shown.format_interval()} "
        f"({case.get('attacker')} attacker{where}), {verb} it.",
    }


def people(results: Results) -> dict[str, Any]:
    """The table of speakers by falling risk."""
    speakers = list(results.get("speakers", []))
    attackers = [a for a in results.get("attackers", {}) if any(a in s.get("by_attacker", {}) for s in speakers)]
    extras = [key for key in ("gender", "animal", "deid") if any(s.get(key) not in (None, "") for s in speakers)]
    titles = {"gender": "gender", "animal": "in the zoo", "deid": "DeID (%)"}
    columns: list[dict[str, Any]] = [
        {"key": "speaker", "title": "speaker", "number": False},
        {"key": "risk", "title": "highest risk", "number": True},
        {"key": "interval", "title": "95 % interval", "number": True},
        *({"key": a, "title": a, "number": True} for a in attackers),
        *({"key": key, "title": titles[key], "number": key == "deid"} for key in extras),
    ]
    table = []
    for person in speakers[:MOST_PEOPLE]:
        risk = person.get("risk")
        one = estimate("linkability", risk) if isinstance(risk, Mapping) and "value" in risk else None
        cells: list[dict[str, Any]] = [
            {"text": person["speaker"], "value": None},
            _number(None if one is None else one.value),
            {"text": one.format_interval() if one else "", "value": one.value if one else ""},
            *(_number(_value(person.get("by_attacker", {}).get(a))) for a in attackers),
            *(
                _number(_value(person.get(key)), 1)
                if key == "deid"
                else {"text": str(person.get(key) or ""), "value": None}
                for key in extras
            ),
        ]
        table.append({"speaker": person["speaker"], "cells": cells})
    left = len(speakers) - len(table)
    sentence = results.get("unprotected", {}).get("sentence", "")
    return {
        "columns": columns,
        "rows": table,
        "intro": f"{sentence} The table lists the speakers by their highest risk over all attackers. A figure is the "
        "share of a speaker's anonymized recordings that an attacker linked to them: 1.00 is all of them, 0.00 none.",
        "left_out": f"{left:,} more speakers with lower risk stand in tables/speakers.parquet." if left > 0 else "",
    }


def _value(found: Any) -> float | None:
    if isinstance(found, Mapping):
        found = found.get("value")
    return float(found) if isinstance(found, int | float) else None


def _number(value: float | None, decimals: int = 2) -> dict[str, Any]:
    return {"text": "" if value is None else f"{value:.{decimals}f}", "value": "" if value is None else value}


def used_measures(results: Results) -> list[dict[str, str]]:
    """What was measured, in the order of the registry, each with its equation and paper."""
    names: set[str] = set()
    for entry in results.get("attackers", {}).values():
        names |= set(entry.get("estimates", {}))
    for part in ("similarity", "zebra", "inversion", "runs"):
        names |= set((results.get(part) or {}).get("estimates", {}))
    if results.get("inference"):
        names.add("inference")
    families = {name.split("=")[0] for name in names} | {name.rsplit("_", 1)[0] for name in names}
    return [
        {"label": m.label, "text": m.meaning, "equation": m.equation, "source": m.source}
        for m in MEASURES.values()
        if m.name in names | families
    ]


def parameters(results: Results) -> list[tuple[str, str]]:
    made = [("veilmeter", str(results.get("version", ""))), ("seed", str(results.get("seed", "")))]
    for key, value in results.get("parameters", {}).items():
        if value in (None, "", [], {}) or key in ("seed", "title", "notice"):  # not given, or said elsewhere
            continue
        made.append((key.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list) else str(value)))
    for name, entry in results.get("inputs", {}).items():
        if isinstance(entry, Mapping) and entry.get("sha256"):
            made.append((f"sha256 of {name}", str(entry["sha256"])))
    return made


def attackers_table(results: Results) -> list[dict[str, str]]:
    return [
        {
            "name": name,
            "about": entry.get("about", ""),
            "voiceprivacy": (entry.get("aliases") or {}).get("voiceprivacy") or "-",
            "vauquier": (entry.get("aliases") or {}).get("vauquier2025") or "-",
        }
        for name, entry in results.get("attackers", {}).items()
    ]


def section_rows(results: Results, section: str) -> list[dict[str, str]]:
    if section in _SECTION_MEASURES:
        made = rows(results, _SECTION_MEASURES[section])
        if section == "disclosure":
            for origin, who in [("zebra", "all comparisons"), ("runs", "across two runs")]:
                made += _part_rows(who, (results.get(origin) or {}).get("estimates", {}))
        return made
    part = results.get(section) or {}
    if section == "inference":
        made = []
        for attribute, entry in part.items():
            if "estimate" not in entry:
                continue
            anonymized = estimate("inference", entry["estimate"]).with_(label=attribute, at={})
            made.append(row("from anonymized speech", anonymized))
            if entry.get("original"):
                made.append(
                    row("from original speech", estimate("inference", entry["original"]).with_(label=attribute, at={}))
                )
        return made
    return _part_rows(_who(section), part.get("estimates", {}))


def _part_rows(who: str, estimates: Mapping[str, Any]) -> list[dict[str, str]]:
    return [row(who, one) for name, found in estimates.items() for one in _ends(listed(name, found))]


def _who(section: str) -> str:
    return {"inversion": "inversion", "similarity": "all pairs"}.get(section, "")
