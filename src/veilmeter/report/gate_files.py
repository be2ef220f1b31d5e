"""Findings of a gate for a build server: JUnit's XML, which it lists test by test, and Markdown for the job's page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

from veilmeter.core.errors import VeilmeterError
from veilmeter.core.text import clean, markdown_text
from veilmeter.results.gate import Gate
from veilmeter.results.limits import LimitCheck
from veilmeter.results.model import Results
from veilmeter.wording import sentence, sentences, text

SUITE = "veilmeter gate"
Outcome = Literal["passed", "failure", "error", "skipped"]


@dataclass(frozen=True, slots=True)
class JobCase:
    """One thing that was checked: `kind` is limits, trust, baseline or gate."""

    kind: str
    name: str
    outcome: Outcome
    message: str = ""


def cases_of(outcome: Gate) -> list[JobCase]:
    """One test case for each limit, doubt, open check and worsening."""
    cases = [
        JobCase("limits", sentence(check.title), "passed" if check.holds else "failure", sentence(check.finding))
        for check in outcome.limits
    ]
    if outcome.max_level is not None:
        level = sentence(outcome.level_finding)
        cases.append(JobCase("limits", "level of the risk", "passed" if outcome.level_holds else "failure", level))
    cases += [
        JobCase("trust", words, "skipped" if outcome.even_if_doubted else "failure", words)
        for words in map(text, outcome.doubts)
    ]
    cases += [
        JobCase("trust", words, "failure" if outcome.trustworthy else "skipped", words)
        for words in map(text, outcome.open_questions)
    ]
    if not outcome.doubts and not outcome.open_questions:
        cases.append(JobCase("trust", "all trust checks passed", "passed"))
    if outcome.baseline is not None:
        cases += [
            JobCase("baseline", str(found.figure), "failure", sentence(found.finding))
            for found in outcome.baseline.worse
        ]
        if not outcome.baseline.worse:
            cases.append(
                JobCase("baseline", "nothing is significantly worse", "passed", sentence(outcome.baseline.finding))
            )
    return cases


def _reason(outcome: Gate | Exception) -> str:
    """Why a gate could not be checked, without the place on this machine."""
    if not isinstance(outcome, VeilmeterError):
        return str(outcome)
    return str(VeilmeterError(outcome.what, fix=outcome.fix))


def junit(outcome: Gate | Exception) -> str:
    """JUnit's XML; an exception is a gate that could not be checked, so that no earlier file speaks for this run."""
    cases = [JobCase("gate", "could not be checked", "error", _reason(outcome))]
    if isinstance(outcome, Gate):
        cases = cases_of(outcome)
    counts = {
        name: str(sum(case.outcome == kind for case in cases))
        for name, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped"))
    }
    counts["tests"] = str(len(cases))
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(root, "testsuite", {"name": SUITE, **counts})
    for case in cases:
        element = ElementTree.SubElement(
            suite, "testcase", classname=f"veilmeter.{case.kind}", name=clean(case.name), time="0"
        )
        if case.outcome == "passed":
            ElementTree.SubElement(element, "system-out").text = clean(case.message)
        else:
            ElementTree.SubElement(element, case.outcome, message=clean(case.message))
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def summary(outcome: Gate | Exception, results: Results | None) -> str:
    """Markdown for the page of a job: passed or not and why, then everything that was checked."""
    if not isinstance(outcome, Gate) or results is None:
        return f"## Privacy gate: could not be checked\n\n{markdown_text(_reason(outcome))}\n"
    verdict = results.verdict
    lines = [f"## Privacy gate: {'passed' if outcome.passed else 'failed'}", ""]
    lines += [f"**{markdown_text(results.title)}**: {markdown_text(text(verdict.headline))}", ""]
    lines += [f"{'' if outcome.level_holds else '**Broken.** '}{markdown_text(sentence(outcome.level_finding))}", ""]
    if outcome.limits:
        lines += ["| limit | outcome | figure that decides |", "|---|---|---|"]
        lines += [_limit_row(check) for check in outcome.limits]
        lines += ["", markdown_text(f"Checked: {sentence(outcome.scope)}."), ""]
    if outcome.doubts:
        accepted = " (accepted)" if outcome.even_if_doubted else ""
        lines += [f"### Trust checks that failed{accepted}", "", *_items(map(text, outcome.doubts)), ""]
    if outcome.open_questions:
        lines += ["### What could not be checked", "", *_items(map(text, outcome.open_questions)), ""]
    lines += _baseline(outcome)
    if outcome.not_run:
        lines += [markdown_text(f"Attackers that were not run: {', '.join(outcome.not_run)}."), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _limit_row(check: LimitCheck) -> str:
    outcome = "holds" if check.holds else "**broken**"
    return f"| {markdown_text(sentence(check.title))} | {outcome} | {markdown_text(sentence(check.finding))} |"


def _baseline(outcome: Gate) -> list[str]:
    found = outcome.baseline
    if found is None:
        return []
    lines = ["### Against the baseline", "", markdown_text(sentence(found.finding)), ""]
    if found.worse:
        lines += ["| significantly worse | before | now | difference |", "|---|---:|---:|---:|"]
        for worse in found.worse:
            difference = f"{worse.difference.format_value()} {worse.difference.format_interval()}"
            cells = (str(worse.figure), worse.before.format_value(), worse.now.format_value(), difference)
            lines.append("| " + " | ".join(markdown_text(cell) for cell in cells) + " |")
        lines.append("")
    return lines + ([*_items(sentences(found.remarks)), ""] if found.remarks else [])


def _items(texts: Iterable[str]) -> list[str]:
    return [f"- {markdown_text(text)}" for text in texts]
