"""The language that is being written, and how it writes numbers and dates.

Only the annex is written in several languages. A language is a package with two modules: `annex` has the texts
(`TEXTS`), and for other languages than English checks, attackers and small words; `findings` has their sentences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import date
from importlib import import_module
from types import ModuleType

ENGLISH_CODE = "en"
ANNEX_LANGUAGES = {ENGLISH_CODE: "english", "fr": "french"}
_LANGUAGE: ContextVar[str] = ContextVar("language", default=ENGLISH_CODE)
NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


@contextmanager
def writing_in(language: str) -> Iterator[None]:
    """Sentences and numbers within this block are in that language."""
    before = _LANGUAGE.set(language)
    try:
        yield
    finally:
        _LANGUAGE.reset(before)


def is_english() -> bool:
    return _LANGUAGE.get() == ENGLISH_CODE


def language_module(name: str = "annex") -> ModuleType:
    """A module of the language that is being written."""
    return import_module(f"veilmeter.wording.{ANNEX_LANGUAGES[_LANGUAGE.get()]}.{name}")


def small_word(english: str) -> str:
    """A word that joins values, such as "and"; one that a language does not list is the English one.

    >>> with writing_in("fr"):
    ...     small_word("and")
    'et'
    """
    return english if is_english() else language_module().SMALL_WORDS.get(english, english)


def localize(figure: str) -> str:
    """Figures as the language writes them: `[6.8, 1,200]` is `[6,8 ; 1 200]` in French.

    >>> localize("[6.8, 1,200]")
    '[6.8, 1,200]'
    >>> with writing_in("fr"):
    ...     localize("[6.8, 1,200]").replace(NO_BREAK_SPACE, "_")
    '[6,8 ; 1_200]'
    """
    if is_english():
        return figure
    return figure.replace(", ", " ; ").replace(",", NO_BREAK_SPACE).replace(".", ",")


def keep_signs(text: str) -> str:
    """Signs that have a space before them stay on the line of their word, as French has it.

    >>> with writing_in("fr"):
    ...     keep_signs("Risque : 9 % ?").replace(NO_BREAK_SPACE, "_")
    'Risque_: 9_%_?'
    """
    return text if is_english() else re.sub(r" (?=[:;?!%»])", NO_BREAK_SPACE, text)


def day(iso: str) -> str:
    """A date as the language writes it; anything else as it is.

    >>> with writing_in("fr"):
    ...     day("2026-11-18"), day("soon")
    ('18/11/2026', 'soon')
    """
    if is_english():
        return iso
    try:
        return date.fromisoformat(iso).strftime("%d/%m/%Y")
    except ValueError:
        return iso
