"""`python tools/english.py [FILE...]`: phrases that read translated, and British spellings, wherever people read.

Checked are all texts of the project: documentation, notebooks, templates, help texts, messages, docstrings and
comments. Words are compared as a reader sees them: a sentence that is broken over two lines, or over two string
literals, is one sentence. Code between backticks is not prose.
"""

from __future__ import annotations

import ast
import io
import json
import re
import sys
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
# Where people read. French texts have their own rules.
CHECKED = (
    "*.md", "docs/**/*.md", "examples/**/*.md", "examples/**/*.py", "examples/*.ipynb", "examples/ci/*.yml",
    "src/**/*.md", "src/**/*.py", "src/veilmeter/report/page/*", "tests/**/*.py", "tools/*.py", "tools/**/*.py",
    "benchmarks/**/*.py", "mkdocs.yml", "pyproject.toml", "Makefile", "CITATION.cff",
)  # fmt: skip
NOT_CHECKED = {
    "src/veilmeter/wording/french",  # another language
    "tests/test_english.py",  # quotes the phrases
    "tools/english.py",
    "THIRD_PARTY.md",  # names of others
}

SPELLING = {
    r"\b(?:recognis|anonymis|normalis|generalis|organis|summaris|initialis)\w*": "American spelling: -ize",
    r"\b(?:colour|favour|behaviour|neighbour|centre\b|learnt|labelled\b|licence|catalogue)\w*": "American spelling",
    r"\benrolments?\b": "enrollment",
}
# A pattern, and what to write instead. These are checked in every text.
TRANSLATED = {
    r"\b(?:is|are|was|were) said\b(?! to)": "is reported, a warning says",
    r"\bstands? (?:in|at|beside|there|here|once|for good|under|among|below|above|on)\b": "is in, is listed in",
    r"\banew\b": "again",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"(?<!there )(?<!There )\b(?:is|are) no (?!longer|more|less|later|earlier|better|worse|such|doubt|need|wider|higher"
    r"|lower|softer|one\b|way\b)[A-Za-z]+": "is not a, invalid",
    r"\b(?:Whoever|Whose|Who) (?:has|wants|knows|is|are|speaks)\b(?![^.?]*\?)": "an attacker who, anyone who",
    r"\b(?:score|string|row|point|curve|column|line|person|recording|utterance|file|page|value|number|figure"
    r"|sentence)s? an? (?:line|person|speaker|utterance|recording|score|column|row|page|file|worker"
    r"|second|package|run|pair|length|measure)\b": "per",
    r"\bfor want of\b|\bbe it\b|\bfor good\b|\bnought\b|\bbe rid of\b|\bwhither\b|\bthither\b": "plain words",
    r"\bmakes? no sense\b": "name the constraint: must be at least 3",
    r"\bas (?:it|they) must be\b": "invalid",
    r"\b(?:is|are|was|were) dealt\b|\bdealt (?:anew|again)\b": "permuted",
    r"\bhears? by\b|\blistens? for\b": "uses the extractor, measures",
    r"\bsurely\b": "significantly, reliably",
    r"\bholds? the truth\b": "covers the true value",
    r"\btold from\b": "distinguished from",
    r"\bnobody knows whose\b": "speaker labels are required",
    r"\bleave the house\b|\bat its door\b|\bdoubts itself\b|\btexts? of strangers\b": "no metaphors",
}
# These are checked in what users read, and in the docstrings of the package: not in comments and tests.
STILTED = {
    r"\bwhoever\b": "anyone who",
    r"\bof (?:the|its|their|his|your|one's|a) (?:own|attackers' own|user's|tests)\b(?=[ ,.;:)])": "own",
    r"\btells? (?:nothing|little|apart|people)\b": "carries no information, distinguishes",
    # "What is measured.", but not "What is measured is kept."
    r"^What (?:is|was|follows|goes|comes|a|an|the)(?: (?!(?:is|are|was|were|has|have|must|may)\b)[^ ?]+)+\.$": "a noun "
    "phrase: 'Inputs of', 'Conditions for'",
    r"^Of (?:the|everything|all|fine|a|an|figures|whole)\b[^,]*$": "a noun phrase",
}
# Right uses: names of checks, the content of speech, titles of papers, idioms.
ALLOWED = re.compile(
    r"vector lengths tell nothing|[Ww]hat (?:is|was) said|no run of its own|of its own extractor|of its own \{"
    r"|section of their own|book of their own|threshold of their own|fewer or more of its own runs"
    r"|Anonymisation Techniques|Pseudonymisation Assessment|Speech Pseudonymisation"
    r"|words people, file a file|'anonymiser'|^anonymiser$"
)

# One search tells whether a text has any of them.
SUSPECT = re.compile("|".join((*SPELLING, *TRANSLATED, *STILTED)), re.IGNORECASE)

Text = tuple[int, str, bool]  # the line on which it begins, its words in one line, and whether it is a comment
INTERNAL = ("tests/", "benchmarks/", "tools/")  # read by those who change the project


def texts(path: Path, source: str) -> Iterator[Text]:
    """The texts of a file, each a paragraph, a string or a comment."""
    if path.suffix == ".py":
        yield from _python(source)
    elif path.suffix == ".ipynb":
        for cell in json.loads(source)["cells"]:
            words = "".join(cell["source"])
            code = cell["cell_type"] == "code" and not words.startswith(("%", "!"))
            yield from _python(words) if code else _paragraphs(words)
    else:
        yield from _paragraphs(source)


def _paragraphs(source: str) -> Iterator[Text]:
    """Lines up to an empty one; a row of a table, an entry of a list and a heading are each one text."""
    line, words = 1, ""
    for number, row in enumerate(source.splitlines(), 1):
        begins = not row.strip() or re.match(r"\s*(?:\||[-*] |\d+\. |#|```)", row)
        if begins and words:
            yield line, words, False
            words = ""
        if row.strip():
            line = line if words else number
            words = f"{words} {row.strip().lstrip('#|-*').strip()}".strip()
    if words:
        yield line, words, False


def _python(source: str) -> Iterator[Text]:
    tree = ast.parse(source)
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            inside.update(id(part) for part in node.values)
            parts = [str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values]
            yield from _sentences(node.lineno, "".join(parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield from _sentences(node.lineno, node.value)
    line, words, last = 0, "", 0
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            if words and token.start[0] != last + 1:
                yield line, words, True
                words = ""
            line = line if words else token.start[0]
            last, words = token.start[0], f"{words} {token.string.lstrip('#').strip()}".strip()
    if words:
        yield line, words, True


def _sentences(line: int, value: str) -> Iterator[Text]:
    """The paragraphs of a string that has words, not of a name or a pattern."""
    if " " in value:
        yield from ((line + number - 1, words, False) for number, words, _ in _paragraphs(value))


def problems(path: Path, source: str | None = None) -> list[str]:
    """What to rewrite in a file, one line each: place, phrase, and what to write instead."""
    source = path.read_text(encoding="utf-8") if source is None else source
    name = path.relative_to(ROOT).as_posix() if path.is_relative_to(ROOT) else path.name
    found = []
    for line, words, is_comment in texts(path, source):
        if not SUSPECT.search(words):
            continue
        prose = ALLOWED.sub("", re.sub(r"`[^`]*`", "`code`", words))
        seen_by_users = not is_comment and not name.startswith(INTERNAL)
        patterns = {**SPELLING, **TRANSLATED, **(STILTED if seen_by_users else {})}
        for pattern, better in patterns.items():
            spelling = re.IGNORECASE if pattern in SPELLING else 0
            found += [f"{name}:{line}: {hit[0]!r} (write: {better})" for hit in re.finditer(pattern, prose, spelling)]
    return found


def checked_files(root: Path = ROOT) -> list[Path]:
    """Every file with texts that people read."""
    found = {path for pattern in CHECKED for path in root.glob(pattern) if path.is_file()}
    names = {path: path.relative_to(root).as_posix() for path in found}
    return sorted(path for path in found if not any(names[path].startswith(name) for name in NOT_CHECKED))


def main(given: Iterable[str] = ()) -> int:
    files = [Path(name).resolve() for name in given]
    found = [problem for path in checked_files() if not files or path in files for problem in problems(path)]
    for problem in found:
        print(problem)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
