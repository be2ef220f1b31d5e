"""How the options of the commands that read runs, and of those that look things up, are tried."""

from __future__ import annotations

from pathlib import Path

from tests.assessment import synthetic_voices as voices
from tests.cli.measuring_trials import DRAWN, FIGURES, FORMS
from tests.trying_options import CommandTrials, Words, words

from veilmeter.assessment import assess

MEASURES = ("scores", "similarity", "linkability")


def write_inputs(folder: Path) -> None:
    """Three runs over the same people: two systems, and one of them once more without intervals."""
    known = voices.original(10, 4, 6)
    for name, side in (("run-a", voices.partly(known)), ("run-b", voices.partly(known, seed=2, shift=1.0))):
        assess(
            known, side, out=folder / name, lengths=[1], resamples=10, measures=MEASURES, attackers=["ignorant"],
            by=["gender"], jobs=1, title=name,
        )  # fmt: skip


SHOWN: dict[str, Words] = {
    "out": words("--out", "HERE/out-elsewhere"),
    "annex": words("--annex"),
    "release_size": words("--release-size", 5000),
    "candidates": words("--candidates", 700),
    "threshold": words("--threshold", "9%"),
    "paper": words("--paper", "letter"),
    "with_audio": words("--with-audio"),
    "show_ids": words("--show-ids"),
    **FIGURES,
}
FORMATS = ("html", "pdf", "docx", "md", "latex", "json")
REPORT = CommandTrials(
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
    values={**SHOWN, "format": words("--format", "md")},
)

COMPARE = CommandTrials(
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
        "table": frozenset({"by", "report", "bundle", "table", "measures", "intervals", "width", *FORMS}),
        "table as json": frozenset({"intervals", "measures", "by", "resamples", "seed"}),
        "table as csv": frozenset({"intervals", "measures", "by"}),
        "page": frozenset({"report", "bundle", "by"}),
        "drawn": DRAWN,
    },
    where={"figures": frozenset({"drawn"})},
    values={
        "by": words("--by", "gender"),
        "resamples": words("--resamples", 40),
        "seed": words("--seed", 3),
        "report": words("--report", "HERE/out-page"),
        "bundle": words("--bundle"),
        "with_audio": words("--with-audio"),
        "table": words("--table"),
        "measures": words("--measures", "eer"),
        "intervals": words("--intervals"),
        **FIGURES,
        **FORMS,
    },
)

GATE = CommandTrials(
    modes={
        "limits": words("HERE/run-a", "--min", "eer=1", "--even-if-doubted"),
        "a baseline": words("HERE/run-a", "--baseline", "HERE/run-b", "--resamples", 20, "--even-if-doubted", "--json"),
        "trust": words("HERE/run-a", "--trustworthy"),
        "doubted": words("HERE/run-a", "--min", "eer=1"),
    },
    guards=frozenset({"even_if_doubted"}),
    only={"doubted": frozenset({"even_if_doubted", "trustworthy", "by", "maximum", "minimum"})},
    values={
        "maximum": words("--max", "linkability@5=99%"),
        "minimum": words("--min", "eer=0.5"),
        "by": words("--by", "gender"),
        "baseline": words("--baseline", "HERE/run-a"),
        "trustworthy": words("--trustworthy"),
        "even_if_doubted": words("--even-if-doubted"),
        "resamples": words("--resamples", 40),
        "seed": words("--seed", 3),
        "junit": words("--junit", "HERE/out.xml"),
        "summary": words("--summary", "HERE/out.md"),
        "json": words("--json"),
    },
)

ATTACKERS = CommandTrials(
    modes={"as it is": words()},
    values={"json": words("--json"), "markdown": words("--markdown")},
)
NO_OPTIONS = CommandTrials(modes={}, values={})

TRIALS = {
    "report": REPORT,
    "compare": COMPARE,
    "gate": GATE,
    "attackers": ATTACKERS,
    "cache": NO_OPTIONS,
    "cache show": NO_OPTIONS,
    "cache clear": NO_OPTIONS,
}
