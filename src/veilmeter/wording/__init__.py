"""Findings in words: one sentence per finding and audience, from one catalog per language.

`sentence(finding, audience)` is all that terminal, page and annex use. How a finding is added is described in
`core.findings`; how sentences are written in `wording.english`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from importlib import import_module

from veilmeter.attacks.attacker import ATTACKERS, plain_words
from veilmeter.core.findings import ABOUT, Finding
from veilmeter.core.text import clean
from veilmeter.wording.catalog import AUDIENCES, Audience, shown
from veilmeter.wording.codes import CODES
from veilmeter.wording.english import ENGLISH

__all__ = ["ANNEX_LANGUAGES", "AUDIENCES", "Audience", "annex_texts", "sentence", "sentences", "text"]


# The languages of the annex: each is one module with the same keys.
ANNEX_LANGUAGES = {"en": "english", "fr": "french"}


def annex_texts(language: str) -> Mapping[str, str]:
    """The texts of the annex in a language, by key.

    >>> annex_texts("en")["sign.title"], annex_texts("fr")["sign.title"]
    ('Decision to sign', 'Décision à signer')
    """
    texts: Mapping[str, str] = import_module(f"veilmeter.wording.{ANNEX_LANGUAGES[language]}.annex").TEXTS
    return texts


def sentence(finding: Finding, audience: Audience = "terminal") -> str:
    """What a finding says to an audience. A code that is not known here, such as one of a newer version or of another
    package, is printed with its values.

    >>> sentence(Finding("from_elsewhere", {"figure": 3}))
    'from_elsewhere: figure 3'
    """
    known = CODES.get(finding.code)
    if known is None or not known.fits(finding):
        return _plain(finding)
    named = {name: value for name, value in finding.values.items() if name in ABOUT and name not in known.values}
    own = replace(finding, values={name: value for name, value in finding.values.items() if name not in named})
    words = ENGLISH.sentence(own, audience)
    if words is None:
        return _plain(finding)
    whose = " ".join(
        _attacker(str(value), audience) if name == "attacker" else shown(value) for name, value in named.items()
    )
    return f"{whose}: {words}" if whose else words


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
    return f"{plain_words(name).who} ({name})" if audience == "lay" and name in ATTACKERS else f"{clean(name)} attacker"


def _plain(finding: Finding) -> str:
    values = ", ".join(f"{name} {shown(value)}" for name, value in finding.values.items())
    return f"{finding.code}: {values}" if values else finding.code
