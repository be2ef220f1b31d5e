"""Sentences that a native speaker would write: `tools/english.py` finds the others, wherever people read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tools.english import checked_files, problems

ROOT = Path(__file__).parents[1]
FILES = {path.relative_to(ROOT).as_posix(): path for path in checked_files()}


@pytest.mark.parametrize("name", FILES)
def test_texts_read_as_english(name: str) -> None:
    assert problems(FILES[name]) == []


# Phrases that were in the project once, each where a user would meet it.
PHRASES = (
    "The rest is said.", "Its words stand once.", "The scores are dealt anew.", "This is no TOML.",
    "One score a line.", "Whoever has the system finds more.", "A run of its own.", "folds = 1 makes no sense.",
    "It is surely better.", "Vectors tell people apart.", "The behaviour of it.",
)  # fmt: skip
PLACES = {
    "a page": ("docs/how-to/scores.md", "# Title\n\nText. {}\n"),
    "a wrapped line of a page": ("README.md", "# Title\n\n- {wrapped}\n"),
    "a help text": ("src/veilmeter/cli/gate.py", "x: int = declare(3, help='{}')\n"),
    "a message": ("src/veilmeter/data/corpus.py", "raise InputError(f'{{path}}: {}')\n"),
    "a message in two literals": ("src/veilmeter/data/corpus.py", "raise InputError('{first} '\n    '{last}')\n"),
    "a template": ("src/veilmeter/report/page/report.html.j2", "<p>{{{{ title }}}}</p>\n\n{}\n"),
    "a catalog": ("src/veilmeter/wording/english/verdict.py", "WORDS = {{'code': '{}'}}\n"),
    "a docstring": ("src/veilmeter/core/options.py", 'def f():\n    """{}"""\n'),
    "a notebook": (
        "examples/scores_to_zebra.ipynb",
        '{{"cells": [{{"cell_type": "markdown", "source": ["# Title\\n", "\\n", "{}"]}}]}}',
    ),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("phrase", PHRASES)
def test_a_smuggled_phrase_is_found(phrase: str, place: str) -> None:
    name, source = PLACES[place]
    assert name in FILES
    first, _, last = phrase.rpartition(" ")
    text = source.format(phrase, first=first, last=last, wrapped=phrase.replace(" ", "\n  "))
    assert problems(FILES[name], text) != []
    plain = source.format("Plain words.", first="Plain", last="words.", wrapped="Plain\n  words.")
    assert problems(FILES[name], plain) == []


def test_a_docstring_is_a_noun_phrase_or_a_sentence() -> None:
    place = FILES["src/veilmeter/core/options.py"]
    assert problems(place, '"""What is measured for it."""') != []
    assert problems(place, '"""Of the whole figure."""') != []
    assert problems(place, '"""Of all recordings, half are used."""') == []


def test_every_text_of_users_is_checked() -> None:
    """Help texts, messages, wording, templates and pages; French has its own words."""
    read = [
        path
        for pattern in (
            "src/veilmeter/**/*.py",
            "src/veilmeter/**/*.j2",
            "src/veilmeter/**/*.typ",
            "docs/**/*.md",
            "*.md",
        )
        for path in ROOT.glob(pattern)
    ]
    names = {path.relative_to(ROOT).as_posix() for path in read} - set(FILES)
    assert {name for name in names if "/french/" not in name} == {"THIRD_PARTY.md"}


# --- the page judges nothing: measurements would support a decision or speak against it

JUDGMENT = re.compile(
    r"\b(anonymous|compliant|compliance|safe|legal|legally|lawful|lawfully"
    r"|anonymes?|conformes?|conformité|léga(?:le?s?|ux)|légalement|licites?|sûre?s?|sans risque|sans danger)\b",
    re.IGNORECASE,
)
NO_JUDGMENT = (
    "not a legal",  # opinion, judgment
    "In the legal sense",
    "This does not mean that the release is safe",
    "Share; considered anonymous for this recipient",  # an option to tick, which the page never ticks
    "legal basis",
    "considérés comme anonymes pour ce destinataire",
    "non une déclaration de conformité",
    "Cela ne signifie pas que la diffusion soit sans risque",
    "Legally validated evaluation framework",  # the title of a paper
)


def judged(text: str) -> list[str]:
    for allowed in NO_JUDGMENT:
        text = re.sub(re.escape(allowed), "", text, flags=re.IGNORECASE)
    return JUDGMENT.findall(text)


def report_texts() -> Iterator[tuple[str, str]]:
    """Every text that a report may print: strings of the catalog and of the report, and the templates."""
    top = ROOT / "src" / "veilmeter"
    for path in (*top.glob("wording/**/*.py"), *top.glob("report/*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        described = (ast.Module, ast.FunctionDef, ast.ClassDef)
        documents = {id(node.body[0].value) for node in ast.walk(tree)
                     if isinstance(node, described) and isinstance(node.body[0], ast.Expr)}  # fmt: skip
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documents:
                yield path.name, node.value
    for path in (*top.glob("report/page/*.j2"), *top.glob("report/page/*.typ")):
        yield path.name, path.read_text(encoding="utf-8")


def test_the_page_never_calls_data_anonymous_compliant_safe_or_legal() -> None:
    found = [(name, text[:80]) for name, text in report_texts() if judged(text)]
    assert not found, "say 'would support' or 'speaks against' instead"
    assert judged("The data is anonymous.") == ["anonymous"]
    assert judged("Les données sont anonymes et conformes.") == ["anonymes", "conformes"]
