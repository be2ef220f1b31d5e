"""Every finding has words for every audience, and no page contradicts itself."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from tests.wording.samples import every_finding

from veilmeter.core.findings import (
    ABOUT,
    Finding,
    Reference,
    about,
    distinct,
    map_references,
    references,
    text_finding,
    warning,
)
from veilmeter.core.typed_json import decode, encode
from veilmeter.wording import AUDIENCES, Audience, sentence
from veilmeter.wording.codes import CODES
from veilmeter.wording.english import ENGLISH

MAKERS = ("Finding", "Finding.of", "warning")
SOURCE = Path(__file__).parents[2] / "src" / "veilmeter"


def made_in_source() -> list[tuple[str, str, set[str]]]:
    """Every finding that the source makes by its code: where, the code and the names of its values."""
    made = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in MAKERS:
                code = node.args[0] if node.args else None
                if isinstance(code, ast.Constant):
                    values = node.args[1] if len(node.args) > 1 else None
                    keys = values.keys if isinstance(values, ast.Dict) else []
                    names = {str(key.value) for key in keys if isinstance(key, ast.Constant)}
                    names |= {word.arg for word in node.keywords if word.arg is not None} - {"people", "severity"}
                    made.append((f"{path.name}:{node.lineno}", str(code.value), names))
    return made


def test_every_code_has_words_and_every_sentence_a_code() -> None:
    assert set(ENGLISH.codes()) == set(CODES)


def test_every_code_of_the_source_is_declared_with_its_values() -> None:
    made = made_in_source()
    assert made
    unknown = [(where, code) for where, code, _ in made if code not in CODES]
    assert unknown == []
    strange = [(where, code, names) for where, code, names in made if not names <= {*CODES[code].values, *ABOUT}]
    assert strange == []


@pytest.mark.parametrize("audience", AUDIENCES)
def test_every_finding_is_a_sentence_for_every_audience(audience: Audience) -> None:
    for finding in every_finding():
        assert CODES[finding.code].fits(finding), finding
        words = sentence(finding, audience)
        assert words, finding
        assert not re.search(r"\bNone\b(?! of)|\bnan\b|[{}]", words), words


def test_findings_go_through_json_unchanged() -> None:
    for finding in every_finding():
        form = encode(finding)
        assert encode(decode(Finding, form)) == form


def test_a_code_that_is_not_known_is_printed_with_its_values() -> None:
    assert sentence(Finding("other.kind", {"count": 3, "file": Reference("file", "a.wav")})) == (
        "other.kind: count 3, file a.wav"
    )
    assert sentence(Finding("unclassified", {"text": 3})) == "unclassified: text 3"


def test_a_sentence_begins_with_the_attacker_or_part_it_is_about() -> None:
    few = warning("few_speakers", count=3)
    assert sentence(about(few, attacker="informed")) == f"informed attacker: {sentence(few)}"
    assert sentence(about(few, part="similarity")) == f"similarity: {sentence(few)}"
    assert sentence(about(few, system=Reference("run", "b1"))) == f"b1: {sentence(few)}"


def test_references_are_replaced_and_no_text_is_searched() -> None:
    finding = Finding("x", {"who": Reference("speaker", "p1"), "several": (Reference("file", "p1"), "p1")}, ("p1",))
    hidden = map_references(finding, lambda found: Reference(found.kind, "A" if found.kind == "speaker" else ""))
    assert hidden == Finding("x", {"who": Reference("speaker", "A"), "several": (Reference("file", ""), "p1")}, ("A",))
    assert [found.id for found in references(finding)] == ["p1", "p1"]


def test_each_finding_is_kept_once() -> None:
    assert distinct([text_finding("a"), text_finding("b"), text_finding("a")]) == (text_finding("a"), text_finding("b"))
