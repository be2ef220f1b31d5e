"""Findings in words: one sentence per finding and audience, from one catalog per language.

`sentence(finding, audience)` is all that terminal, page and annex use. How a finding is added is described in
`core.findings`; how sentences are written in `wording.english`.
"""

from __future__ import annotations

from collections.abc import Iterable

from veilmeter.core.findings import Finding
from veilmeter.wording.catalog import AUDIENCES, Audience, shown
from veilmeter.wording.codes import CODES
from veilmeter.wording.english import ENGLISH

__all__ = ["AUDIENCES", "Audience", "sentence", "sentences", "text"]


def sentence(finding: Finding, audience: Audience = "terminal") -> str:
    """What a finding says to an audience. A code that is not known here, such as one of a newer version or of another
    package, is printed with its values.

    >>> sentence(Finding("from_elsewhere", {"figure": 3}))
    'from_elsewhere: figure 3'
    """
    known = CODES.get(finding.code)
    words = ENGLISH.sentence(finding, audience) if known is not None and known.fits(finding) else None
    return _plain(finding) if words is None else words


def sentences(findings: Iterable[Finding], audience: Audience = "terminal") -> tuple[str, ...]:
    return tuple(sentence(finding, audience) for finding in findings)


def text(findings: Iterable[Finding], audience: Audience = "terminal") -> str:
    """Several findings as one paragraph."""
    return " ".join(sentences(findings, audience))


def _plain(finding: Finding) -> str:
    values = ", ".join(f"{name} {shown(value)}" for name, value in finding.values.items())
    return f"{finding.code}: {values}" if values else finding.code
