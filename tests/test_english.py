"""One spelling, and sentences that a native speaker would write: words that are not used, wherever people read."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path
    for pattern in ("src/veilmeter/report/**/*.py", "src/veilmeter/report/page/*", "src/veilmeter/results/*.py")
    for path in ROOT.glob(pattern)
    if path.is_file()
)
BLACK_LIST = re.compile(
    r"\b(recognis|anonymis|colour|favour|behaviour|labell?ed by|centre\b|learnt|normalis|generalis|organis"
    r"|(?:one|a) (?:row|point|line|column|curve) a (?:speaker|person|run|measure|pair|length)"
    r"|stands? in the results file|enrolments?\b(?!\s*[=:]))",
    re.I,
)
KEYS = re.compile(r"""["'`]enrolment["'`]|\.enrolment|enrolment_speaker|enrolment==?""")  # names of fields, not words


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_no_word_of_the_black_list(path: Path) -> None:
    lines = [KEYS.sub("", line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [line.strip() for line in lines if BLACK_LIST.search(line)] == []
