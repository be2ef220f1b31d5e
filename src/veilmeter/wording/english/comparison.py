"""Runs side by side, tables of systems, and gates."""

from __future__ import annotations

from typing import Literal

from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Level, Reference
from veilmeter.wording.catalog import Catalog, shown
from veilmeter.wording.english.page import legal_names
from veilmeter.wording.numbers import count, full, listing

WORDS = Catalog()


@WORDS.words("run_level")
def _run_level(run: Reference, level: Level, trustworthy: bool) -> str:
    return f"{shown(run)}: {level} risk{'' if trustworthy else ', but this result is not trustworthy'}."


@WORDS.words("differences_counted")
def _differences_counted(
    run: Reference, first: Reference, total: int, significant: int, safer: int, riskier: int
) -> str:
    one, other = shown(run), shown(first)
    verb = "is" if significant == 1 else "are"
    return (
        f"Of {count(total, 'difference')} between {one} and {other}, {significant:,} {verb} significant: {safer:,} in "
        f"favor of {one}, {riskier:,} in favor of {other}."
    )


WORDS.say("run_given_twice", "One run was given more than once; it does not differ from itself.")
WORDS.say("run_distrusted", "{run} is not trustworthy.")


@WORDS.words("other_material")
def _other_material(material: Literal["original speech", "trials"]) -> str:
    return f"The runs do not assess the same {material}, so differences may come from that."


WORDS.say("other_people", "The runs do not have the same people, so differences are not paired by people.")
WORDS.say("other_recordings", "The runs use partly different recordings of the same people.")


def _in_runs(values: tuple[Reference | str | int | float | bool, ...], runs: tuple[Reference, ...]) -> str:
    return ", ".join(f"{shown(value)} ({shown(run)})" for value, run in zip(values, runs, strict=False))


@WORDS.words("setting_differs")
def _setting_differs(setting: str, values: tuple[Reference | str, ...], runs: tuple[Reference, ...]) -> str:
    return f"The setting {setting} differs: {_in_runs(values, runs)}."


@WORDS.words("attacker_not_everywhere")
def _attacker_not_everywhere(attacker: str, runs: tuple[Reference, ...]) -> str:
    return f"The {attacker} attacker was run only in {listing(list(map(shown, runs)))}."


@WORDS.words("backend_differs")
def _backend_differs(attacker: str, backends: tuple[str, ...], runs: tuple[Reference, ...]) -> str:
    return f"The {attacker} attacker uses different methods: {_in_runs(backends, runs)}."


# --- tables of systems


WORDS.say("table_marks", "bold: the best; *: significantly different from {first} (Holm's rule over the table)")
WORDS.say("table_distrusted", "†: the self-checks of this assessment failed, do not rely on it yet")
WORDS.say("eer_methods", "EER by the method {methods}")
WORDS.say(
    "table_ranked",
    "alike: systems that share a letter do not differ significantly in {figure} (Holm's rule over {pairs} pairs)",
)
WORDS.say("table_grouped", "±: the standard deviation over the runs of a system; the figure is their mean")
WORDS.say(
    "settings_differ",
    "settings that differ between the runs: {settings} (`compare` without --table lists their values)",
)
WORDS.say("table_strongest", "figures without an attacker are of the strongest that all runs have ({attackers})")


@WORDS.words("figure_missing")
def _figure_missing(figure: Reference, runs: tuple[Reference, ...]) -> str:
    return f"{shown(figure)} was not measured for {', '.join(map(shown, runs))}"


# --- gates


@WORDS.words("baseline_compared")
def _baseline_compared(baseline: Reference, compared: int, worse: int, better: int) -> str:
    return (
        f"Against {shown(baseline)}: of {count(compared, 'figure')} {worse:,} {'is' if worse == 1 else 'are'} "
        f"significantly worse and {better:,} significantly better (Holm's rule)."
    )


@WORDS.words("level_changed")
def _level_changed(now: Level, before: Level) -> str:
    return f"the risk is called {now}, before {before}"


@WORDS.words("figure_untested")
def _figure_untested(label: str, baseline: Reference, attacker: str = "", group: tuple[Reference, ...] = ()) -> str:
    return f"{_figure(label, attacker, group)} can't be compared with {shown(baseline)}."


@WORDS.words("figure_worse")
def _figure_worse(
    label: str,
    before: Estimate,
    now: Estimate,
    difference: Estimate,
    attacker: str = "",
    group: tuple[Reference, ...] = (),
) -> str:
    figure = _figure(label, attacker, group)
    return f"{figure}: {now.format_value()}, before {before.format_value()}; difference {full(difference)}"


def _figure(label: str, attacker: str, group: tuple[Reference, ...]) -> str:
    return f"{attacker}: {label}{_inside(group)}" if attacker else f"{label}{_inside(group)}"


def _inside(group: tuple[Reference, ...]) -> str:
    return "".join(f", {shown(value)}" for value in group)


@WORDS.words("figure_not_measured")
def _figure_not_measured(place: str, group: tuple[Reference, ...] = ()) -> str:
    return f"{place} ({', '.join(map(shown, group)) or 'everybody'})"


WORDS.say("attacker_untested", "The {attacker} attacker can't be compared with {baseline}: this run does not have it.")


@WORDS.words("limit")
def _limit(limit: str, group: tuple[Reference, ...] = ()) -> str:
    return f"{limit}{_inside(group)}"


@WORDS.words("limit_checked")
def _limit_checked(estimate: Estimate, place: str, group: tuple[Reference, ...] = (), better: str | None = None) -> str:
    figure = full(estimate) if estimate.interval else f"{estimate.format_value()}, without an interval"
    speakers, length = estimate.at.get("speakers"), estimate.at.get("length", 1)
    point = [f"among {speakers}"] if speakers is not None else []
    point += [f"L = {length}"] if length != 1 else []
    whose = ", ".join(part for part in (place, *map(shown, group), *point) if part)
    option = "--min" if better == "higher" else "--max"
    remark = f"; {better} is better here: did you mean {option}?" if better else ""
    return f"{figure} ({whose}){remark}" if whose else f"{figure}{remark}"


@WORDS.words("limit_without_interval")
def _limit_without_interval(limit: Reference, group: tuple[Reference, ...] = ()) -> str:
    return f"{shown(limit)}{_inside(group)}: the figure has no interval, so only its value was checked."


@WORDS.words("gate_scope")
def _gate_scope(attackers: tuple[str, ...], groups: tuple[Reference, ...] = (), parts: tuple[str, ...] = ()) -> str:
    values: dict[str, list[str]] = {}
    for group in groups:
        values.setdefault(group.attribute, []).append(shown(Reference("value", group.id)))
    inside = "".join(f" and within {attribute} {', '.join(named)}" for attribute, named in values.items())
    further = f"; {', '.join(parts)}" if parts else ""
    return f"the attackers {', '.join(attackers) or '(none)'}{further}; of everybody{inside}"


def _with_legal_names(criterion: str) -> str:
    names = legal_names(criterion)
    return criterion.replace("_", " ") + (f" ({names})" if names else "")


@WORDS.words("gate_level")
def _gate_level(level: Level, decided_by: tuple[str, ...] = (), max_level: Level | None = None) -> str:
    causes = listing([_with_legal_names(name) for name in decided_by])
    because = f", by {causes}" if causes and level != "low" else ""
    most = "" if max_level is None else f"; at most {max_level} is allowed"
    return f"Level of the risk: {level}{because}{most}."
