"""One spelling, and sentences that a native speaker would write: words that are not used, wherever people read."""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path
    for pattern in ("src/veilmeter/**/*.py", "src/veilmeter/report/page/*", "docs/*.md", "README.md", "CONTRIBUTING.md")
    for path in ROOT.glob(pattern)
    if path.is_file()
)
BLACK_LIST = re.compile(
    r"\b(recognis|anonymis|colour|favour|behaviour|labell?ed by|centre\b|learnt|normalis|generalis|organis"
    r"|(?:one|a) (?:row|point|line|column|curve) a (?:speaker|person|run|measure|pair|length)"
    r"|stands? in the results file|enrolments?\b)",
    re.I,
)


def sentences(path: Path) -> list[str]:
    """What people read: every line of a page, the comments and texts of a program."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        return text.splitlines()
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    kinds = (tokenize.COMMENT, tokenize.STRING)
    texts = [token.string for token in tokens if token.type in kinds and " " in token.string]
    return [line for text in texts for line in text.splitlines()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_word_of_the_black_list(path: Path) -> None:
    lines = [re.sub(r"`[^`]*`", "", line) for line in sentences(path)]
    assert [line.strip() for line in lines if BLACK_LIST.search(line)] == []
