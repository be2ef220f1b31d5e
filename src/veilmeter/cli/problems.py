"""Recordings that a command could not use, or not quite: how it says them, and how it ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veilmeter.core.errors import Problem

_LISTED = 100


def print_problems(problems: Sequence[Problem], where: str) -> None:
    """Print the recordings that were left out, then those with remarks; `where` names the files that list all."""
    from veilmeter.core.text import clean

    for title, fatal in (("left out", True), ("used all the same", False)):
        for line in problem_lines(title, [problem for problem in problems if problem.fatal is fatal], where):
            print(clean(line))


def problem_lines(title: str, problems: Sequence[Problem], where: str) -> list[str]:
    """The problems as lines: counts by kind first, then each place, the first hundred; the same problem of several
    recordings is described once."""
    if not problems:
        return []
    counts: dict[str, int] = {}
    for problem in problems:
        counts[problem.kind] = counts.get(problem.kind, 0) + 1
    by_kind = ", ".join(
        f"{count} {kind}" for kind, count in sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
    )
    lines = [f"{len(problems)} {title}: {by_kind}"]
    alike: dict[tuple[str, str, str], list[Problem]] = {}
    for problem in problems[:_LISTED]:
        alike.setdefault((problem.kind, problem.what, problem.fix), []).append(problem)
    for first, *others in alike.values():
        lines.append(f"  {first.kind}: {first}")
        lines += [f"    the same: {_place(problem)}" for problem in others]
    if len(problems) > _LISTED:
        lines.append(f"  ... and {len(problems) - _LISTED} more, see {where}")
    return lines


def _place(problem: Problem) -> str:
    return problem.path + ("" if problem.line is None else f":{problem.line}")
