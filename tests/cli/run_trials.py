"""How the options of the commands that read runs, and of those that look things up, are tried."""

from __future__ import annotations

from pathlib import Path

from tests.assessment import synthetic_voices as voices
from tests.cli.measuring_trials import DRAWN
from tests.trying_options import CommandTrials, words

from veilmeter.assessment import assess
from veilmeter.core.option_groups import OutputForms
from veilmeter.core.options import options_of

MEASURES = ("scores", "similarity", "linkability")


def write_inputs(folder: Path) -> None:
    """Three runs over the same people: two systems, and one of them once more without intervals."""
    known = voices.original(10, 4, 6)
    (folder / "statements.toml").write_text('[annex]\ncontroller = "Example Hospital"\n')
    for name, side in (("run-a", voices.partly(known)), ("run-b", voices.partly(known, seed=2, shift=1.0))):
        assess(
            known, side, out=folder / name, lengths=[1], resamples=10, measures=MEASURES, attackers=["ignorant"],
            by=["gender"], jobs=1, title=name,
        )  # fmt: skip


FORMATS = ("html", "pdf", "docx", "md", "latex", "json")
REPORT = CommandTrials(
    command="report",
    modes={
        **{form: words("HERE/run-a", "--format", form, "--out", "HERE/out") for form in FORMATS},
        "annex": words("HERE/run-a", "--annex", "--out", "HERE/out"),
        "figures": words("HERE/run-a", "--format", "md", "--out", "HERE/out", "--figures", "HERE/out-figures"),
    },
    only={
        "figures": frozenset({"figures", "width", "threshold"}),
        "pdf": frozenset({"paper", "with_audio", "show_ids", "threshold", "release_size"}),
    },
    where={
        "figures": frozenset({"figures"}),
        "out": frozenset({"md"}),
        "format": frozenset({"latex"}),
        "annex": frozenset({"html", "pdf", "md", "latex", "json"}),
    },
)

COMPARE = CommandTrials(
    command="compare",
    modes={
        "figures": words("HERE/run-a", "HERE/run-b", "--resamples", 20),
        "json": words("HERE/run-a", "HERE/run-b", "--resamples", 20, "--json"),
        "table": words("HERE/run-a", "HERE/run-b", "--resamples", 20, "--table"),
        "table as json": words("HERE/run-a", "HERE/run-b", "--resamples", 20, "--table", "--json"),
        "table as csv": words("HERE/run-a", "HERE/run-b", "--resamples", 20, "--table", "--csv"),
        "page": words("HERE/run-a", "HERE/run-b", "--resamples", 20, "--report", "HERE/out"),
        "drawn": words("HERE/run-a", "HERE/run-b", "--resamples", 20, "--figures", "HERE/out"),
    },
    only={
        "table": frozenset(
            {
                "by",
                "report",
                "bundle",
                "table",
                "measures",
                "intervals",
                "sort",
                "group",
                "width",
                *options_of(OutputForms),
            }
        ),
        "table as json": frozenset({"intervals", "measures", "by", "resamples", "seed"}),
        "table as csv": frozenset({"intervals", "measures", "by"}),
        "page": frozenset({"report", "bundle", "by"}),
        "drawn": DRAWN,
    },
    where={"figures": frozenset({"drawn"})},
)

GATE = CommandTrials(
    command="gate",
    modes={
        "limits": words("HERE/run-a", "--min", "eer=1%", "--even-if-doubted"),
        "a baseline": words("HERE/run-a", "--baseline", "HERE/run-b", "--resamples", 20, "--even-if-doubted", "--json"),
        "trust": words("HERE/run-a", "--trustworthy"),
        "doubted": words("HERE/run-a", "--min", "eer=1%"),
    },
    guards=frozenset({"even_if_doubted"}),
    only={"doubted": frozenset({"even_if_doubted", "trustworthy", "by", "max", "min"})},
)

ATTACKERS = CommandTrials(
    command="attackers",
    modes={"as it is": words()},
)

TRIALS = {trials.command: trials for trials in (REPORT, COMPARE, GATE, ATTACKERS)}
