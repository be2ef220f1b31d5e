"""Findings in words: one sentence per finding and audience, from one catalog per language.

`sentence(finding, audience)` is all that terminal, page and annex use. How a finding is added is described in
`core.findings`; how sentences are written in `wording.english`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from veilmeter.attacks.attacker import ATTACKERS, PlainWords, plain_words
from veilmeter.core.findings import ABOUT, Finding, Value
from veilmeter.core.text import clean
from veilmeter.wording.catalog import AUDIENCES, TEMPLATES, Audience, Catalog, shown
from veilmeter.wording.codes import CODES
from veilmeter.wording.english import ENGLISH
from veilmeter.wording.language import ANNEX_LANGUAGES, is_english, language_module, writing_in
from veilmeter.wording.numbers import capitalize

__all__ = [
    "ANNEX_LANGUAGES",
    "AUDIENCES",
    "Audience",
    "annex_texts",
    "attacker_words",
    "check_title",
    "fill",
    "sentence",
    "sentences",
    "text",
    "writing_in",
]


def annex_texts(language: str | None = None) -> Mapping[str, str]:
    """The texts of the annex by key, in a language or in the one that is being written.

    >>> annex_texts("en")["sign.title"], annex_texts("fr")["sign.title"]
    ('Decision to sign', 'Décision à signer')
    """
    if language is not None:
        with writing_in(language):
            return annex_texts()
    texts: Mapping[str, str] = language_module().TEXTS
    return texts


def attacker_words(name: str, about: str = "") -> PlainWords:
    """An attacker in plain words. In another language than English, one that it does not know has its name alone.

    >>> with writing_in("fr"):
    ...     attacker_words("mine", "reads transcripts").who
    "l'attaquant mine"
    """
    if is_english():
        return plain_words(name, about)
    known: Mapping[str, PlainWords] = language_module().ATTACKERS
    return known.get(name) or PlainWords(annex_texts()["attackers.unknown"].format(name=name))


def check_title(name: str) -> str:
    """A self-check as a title.

    >>> check_title("adaptation helps")
    'Adaptation helps'
    """
    if is_english():
        return capitalize(name.replace("-", " ").replace("_", " "))
    checks: Mapping[str, str] = language_module().CHECKS
    return checks.get(name, name)


def fill(template: str, **values: Value) -> str:
    """A text of the annex with its values, whose format specs are those of sentences.

    >>> fill("{people:person/people}", people=2)
    '2 people'
    """
    return TEMPLATES.vformat(template, (), values)


def sentence(finding: Finding, audience: Audience = "terminal") -> str:
    """The sentence of a finding for an audience. An unknown code, such as one of a newer version or of another package,
    is printed with its values.

    >>> sentence(Finding("from_elsewhere", {"figure": 3}))
    'from_elsewhere: figure 3'
    """
    known = CODES.get(finding.code)
    if known is None or not known.fits(finding):
        return _plain(finding)
    named = {name: value for name, value in finding.values.items() if name in ABOUT and name not in known.values}
    own = replace(finding, values={name: value for name, value in finding.values.items() if name not in named})
    catalog: Catalog = ENGLISH if is_english() else language_module("findings").WORDS
    words = catalog.sentence(own, audience) or ENGLISH.sentence(own, audience)
    if words is None:
        return _plain(finding)
    whose = " ".join(
        _attacker(str(value), audience) if name == "attacker" else shown(value) for name, value in named.items()
    )
    return annex_texts()["sentence.about"].format(whose=whose, words=words) if whose else words


def sentences(findings: Iterable[Finding], audience: Audience = "terminal") -> tuple[str, ...]:
    return tuple(sentence(finding, audience) for finding in findings)


def text(findings: Iterable[Finding], audience: Audience = "terminal") -> str:
    """Several findings as one paragraph."""
    return " ".join(sentences(findings, audience))


def _attacker(name: str, audience: Audience) -> str:
    """
    >>> _attacker("lazy-informed", "terminal"), _attacker("lazy-informed", "lay")
    ('lazy-informed attacker', 'someone who has your anonymizer (lazy-informed)')
    """
    if not is_english() or (audience == "lay" and name in ATTACKERS):
        return f"{attacker_words(name).who} ({clean(name)})"
    return f"{clean(name)} attacker"


def _plain(finding: Finding) -> str:
    values = ", ".join(f"{name} {shown(value)}" for name, value in finding.values.items())
    return f"{finding.code}: {values}" if values else finding.code
