"""A catalog: the sentences of one language, by code and audience. See `wording.english` for how they are written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from inspect import signature
from string import Formatter
from typing import Any, Literal, get_args

from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Finding, Item, Reference, ReferenceKind, Value
from veilmeter.core.text import clean
from veilmeter.wording.language import NO_BREAK_SPACE, localize, small_word
from veilmeter.wording.numbers import chance, count, full, listing, of_hundred, whole

Audience = Literal["terminal", "lay", "technical", "annex"]
AUDIENCES: tuple[Audience, ...] = get_args(Audience)
# Where a code has no sentence for an audience, that of the next one.
_FALLBACK: dict[Audience, tuple[Audience, ...]] = {
    "terminal": ("terminal",),
    "lay": ("lay", "technical", "terminal"),
    "technical": ("technical", "terminal"),
    "annex": ("annex", "technical", "terminal"),
}
Words = Callable[..., str]  # called with the values of a finding, and its people where it takes `people`


class Catalog:
    """Sentences by code and audience. Every code has one for the terminal; the others are written where they differ."""

    def __init__(self) -> None:
        self._words: dict[tuple[str, Audience], str | Words] = {}

    def say(self, code: str, template: str, **others: str) -> None:
        """A template per audience, such as `"{unchanged} of {compared:recording} did not change."`; the first is for
        the terminal and for every audience without another one (`lay=`, `technical=`, `annex=`)."""
        self._add(code, "terminal", template)
        for audience, text in others.items():
            self._add(code, audience, text)

    def words(self, code: str, audience: Audience = "terminal") -> Callable[[Words], Words]:
        """Registers a function that makes the sentence from the finding's values, which it takes by name."""

        def register(function: Words) -> Words:
            self._add(code, audience, function)
            return function

        return register

    def _add(self, code: str, audience: str, words: str | Words) -> None:
        if audience not in AUDIENCES:
            raise ValueError(f"{code}: no audience is called {audience!r}")
        if (code, audience) in self._words:
            raise ValueError(f"{code} has two sentences for the {audience}")
        self._words[code, audience] = words

    def codes(self) -> Iterator[str]:
        return iter(dict.fromkeys(code for code, _ in self._words))

    def sentence(self, finding: Finding, audience: Audience) -> str | None:
        """None where the catalog does not know the code."""
        for level in _FALLBACK[audience]:
            words = self._words.get((finding.code, level))
            if words is not None:
                if isinstance(words, str):
                    return TEMPLATES.vformat(words, (), {**finding.values, "people": finding.people})
                names_people = "people" in signature(words).parameters
                return words(**finding.values, **({"people": finding.people} if names_people else {}))
        return None

    def __or__(self, other: Catalog) -> Catalog:
        both = Catalog()
        for part in (self, other):
            for (code, audience), words in part._words.items():
                both._add(code, audience, words)
        return both


class _Templates(Formatter):
    """Templates whose format specs are nouns: `{people:person/people}` is `1 person` or `3 people`, and
    `{people:~is/are}` the word alone. `{linked:%}` is a share of 100: an estimate with its interval, or what chance
    gives. Specs that begin with a point or a comma are Python's own."""

    def format_field(self, value: Any, spec: str) -> str:
        if not spec:
            return shown(value)
        if spec == "%":
            return of_hundred(value) if isinstance(value, Estimate) else chance(value)
        if spec[0] in ".,":
            return localize(format(value, spec))
        singular, _, plural = spec.removeprefix("~").partition("/")
        if spec[0] == "~":
            return singular if value == 1 else plural
        return count(value, singular, plural)


TEMPLATES = _Templates()

# What stands for one reference, and for several, that were left out for publication.
_LEFT_OUT: dict[ReferenceKind, tuple[str, str]] = {
    "speaker": ("a speaker", "speakers"),
    "recording": ("a recording", "recordings"),
    "file": ("a file", "files"),
    "attribute": ("an attribute", "attributes"),
    "value": ("a value", "values"),
    "run": ("a run", "runs"),
    "text": ("…", "texts"),
}


def shown(value: Value) -> str:
    """A value as text, whatever its type.

    >>> shown(1200), shown(("a", Reference("value", "f", "gender"))), shown(Reference("file", ""))
    ('1,200', 'a and gender f', 'a file')
    >>> shown((Reference("recording", ""), Reference("recording", "")))
    '2 recordings'
    """
    if isinstance(value, tuple):
        return listing(_show_items(value))
    if isinstance(value, Estimate):
        return full(value)
    if isinstance(value, Reference):
        if not value.id:
            return small_word(_LEFT_OUT[value.kind][0])
        name = small_word(clean(value.id)) if value.kind == "attribute" else clean(value.id)
        return f"{small_word(clean(value.attribute))} {name}" if value.attribute else name
    if isinstance(value, bool):
        return small_word("yes" if value else "no")
    if isinstance(value, int | float):
        return whole(value) if isinstance(value, int) else localize(f"{value:.3g}")
    return clean(value, keep=NO_BREAK_SPACE)


def _show_items(items: tuple[Item, ...]) -> list[str]:
    """Each by itself, but those that were left out together."""
    texts, left_out = [], Counter[ReferenceKind]()
    for item in items:
        if isinstance(item, Reference) and not item.id:
            left_out[item.kind] += 1
        else:
            texts.append(shown(item))
    counted = [
        small_word(_LEFT_OUT[kind][0]) if number == 1 else f"{whole(number)} {small_word(_LEFT_OUT[kind][1])}"
        for kind, number in left_out.items()
    ]
    return texts + counted
