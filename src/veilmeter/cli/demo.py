"""`veilmeter demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from veilmeter.cli import options


def command(
    out: Annotated[Path, typer.Option(help="Where everything goes; an interrupted demo goes on from there.")] = Path(
        "demo"
    ),
    fast: Annotated[bool, typer.Option("--fast", help="A first look: 12 voices, one system, fewer measures.")] = False,
    jobs: options.Jobs = None,
    seed: options.Seed = 0,
    offline: options.Offline = False,
) -> None:
    """See the whole story on synthetic voices: three anonymizers attacked, measured and reported."""
    from veilmeter.cli.progress import stages
    from veilmeter.core.engine import cores
    from veilmeter.demo.story import tell

    say = stages()
    story = tell(out, fast=fast, jobs=jobs or cores(), seed=seed, offline=offline, say=say)
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
