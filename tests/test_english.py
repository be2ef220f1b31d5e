"""One spelling, and sentences that a native speaker would write: words that are not used, wherever people read."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES = sorted(
    path
    for pattern in ("src/veilmeter/**/*.py", "src/veilmeter/report/page/*", "docs/**/*.md", "*.md")
    for path in ROOT.glob(pattern)
    if path.is_file() and path.parent.name != "french"
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
    lines = [re.sub(r"`[^`]*`|Anonymisation Techniques", "", line) for line in sentences(path)]  # the title of WP216
    assert [line.strip() for line in lines if BLACK_LIST.search(line)] == []


# Phrases that read translated, with what to write instead.
TRANSLATED = {
    r"\b(is|are|was|were) said\b(?! to)": "is reported, a warning says",
    r"\bstands? (in|at|beside|there|here|once|for good|under|among|below|above|on)\b": "is in, is listed in",
    r"\banew\b": "again",
    r"\bmend(s|ed|ing)?\b": "fix",
    r"(?<!there )(?<!There )\b(is|are) no (?!longer|more|less|later|earlier|better|worse|such|doubt|need|wider|higher"
    r"|lower|one\b|way\b)[a-z]+": "is not a, invalid",
    r"\b(Whoever|Whose|Who) (has|wants|knows|is|are|speaks)\b(?![^.?]*\?)": "an attacker who, anyone who",
    r"\b(score|string|row|column|line|person|recording|utterance|file|page|value|number|figure|sentence)s? an? "
    r"(line|person|speaker|utterance|recording|score|column|row|page|file|worker|second|package)\b": "per",
    r"\bof (the|its|their|his|your|one's|a) (own|attackers' own|user's|tests)\b(?=[ ,.;:)])": "own",
    r"\bfor want of\b|\bbe it\b|\bfor good\b|\bnought\b": "plain words",
    r"\bmakes? no sense\b": "name the constraint: must be at least 3",
    r"\bas (it|they) must be\b": "invalid",
    r"\b(is|are|was|were) dealt\b|\bdealt (anew|again)\b": "permuted",
    r"\bhears? by\b|\blistens? for\b": "uses the extractor, measures",
    r"\bsurely\b": "significantly, reliably",
    r"\btells? (nothing|little|apart|people)\b": "carries no information, distinguishes",
    r"\bholds? the truth\b": "covers the true value",
}
# Right uses: names of checks, the content of speech, and idioms.
ALLOWED = re.compile(
    r"vector lengths tell nothing|[Ww]hat is said|no run of its own|of its own extractor|of its own \{made"
    r"|section of their own|book of their own|threshold of their own|fewer or more of its own runs"
)
VISIBLE = [
    path
    for pattern in (
        "docs/**/*.md",
        "*.md",
        "examples/**/*.md",
        "src/veilmeter/wording/**/*.py",
        "src/veilmeter/cli/*.py",
        "src/veilmeter/core/option*.py",
        "src/veilmeter/assessment/settings.py",
    )
    for path in sorted(ROOT.glob(pattern))
]


@pytest.mark.parametrize("path", VISIBLE, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_phrase_reads_translated(path: Path) -> None:
    found = [
        (hit[0], f"write: {better}", line.strip())
        for line in sentences(path)
        for pattern, better in TRANSLATED.items()
        for hit in re.finditer(pattern, ALLOWED.sub("", line))
    ]
    assert found == []


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
