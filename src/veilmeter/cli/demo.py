"""`veilmeter demo`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from veilmeter.cli.command import Given
from veilmeter.core import option_groups
from veilmeter.core.options import OptionSet, declare


@dataclass(frozen=True, kw_only=True)
class DemoOptions(OptionSet):
    """The options of the command."""

    out: Path = declare(
        Path("demo"), help="Output folder; an interrupted demo continues there.", path=True, example="out-elsewhere"
    )
    fast: bool = declare(False, help="A first look: 12 voices, one system, fewer measures.", example=True)
    jobs: int | None = option_groups.jobs()
    seed: int = option_groups.seed()
    offline: bool = option_groups.offline()


OPTIONS = (DemoOptions,)


def command(given: Given) -> None:
    """Try everything on synthetic voices, from attack to report.

    Attacks and compares four anonymizers and writes their reports. No data is needed: the voices are synthetic.
    """
    from veilmeter.cli.terminal import stages
    from veilmeter.core.engine import cores
    from veilmeter.demo.story import tell

    say = stages()
    options = given.build(DemoOptions)
    story = tell(
        options.out, fast=options.fast, jobs=options.jobs or cores(), seed=options.seed, offline=options.offline,
        say=say,
    )  # fmt: skip
    say("done")
    for title, headline in story.headlines.items():
        print(f"\n{title}\n  {headline}")
    print(f"\nOpen {story.report} in a browser. Look at:")
    print("  1. the verdict: whether people can still be recognized, by whom, and whether the result can be trusted;")
    print("  2. linking: how the adaptive attacker, who runs the same anonymizer, compares with the ignorant one;")
    print("  3. people: choose the speaker at the top of the table, find them in the matrix, and listen.")
    if len(story.runs) > 1:
        for name, run in story.runs.items():
            print(f"Each system's own report: {name}: {run / 'report.html'}")
