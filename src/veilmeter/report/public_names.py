"""Sentences and tables without the names of speakers and without rare values of attributes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import resources
from typing import Any

_QUOTES = "\"'“”‘’`"
_TOKEN = re.compile(r"[^\s,;:()]+(?<!\.)")
_PATH = re.compile(r"(?:[A-Za-z]:)?[^\s'\"(),;]*[/\\][^\s'\"(),;]+")
_CALLED = r"(?P<before>\b(?:[Ss]peaker|[Pp]erson|[Uu]tterance|[Rr]ecording)s?:? )"


@dataclass(frozen=True, eq=False)
class Names:
    """What stands for what: speakers by pseudonym, rare values of attributes by attribute and number."""

    speakers: Mapping[str, str]
    values: Mapping[str, Mapping[str, str]]
    with_ids: bool = False  # nothing is hidden but files

    def text(self, text: str) -> str:
        """A sentence of the assessment without paths, ids and rare values.

        Sentences hold figures and common words, which may be ids too: to replace these would change what is said, and
        tell who is meant. So an id that is a number, very short or a word of our own sentences is replaced only where
        the sentence marks it as a name: by quotes, or as in "speaker 17".
        """
        for pattern, replaced in self._patterns:
            text = pattern.sub(replaced, text)
        return text

    def mentions(self, text: str) -> bool:
        """Whether a remark may name a speaker: any word or number of it that is an id, unless that is very short."""
        return any(len(word) > 2 and word in self.speakers for word in _TOKEN.findall(text)) or self.text(text) != text

    @cached_property
    def _patterns(self) -> list[tuple[re.Pattern[str], Callable[[re.Match[str]], str]]]:
        everything = {**{v: name for named in self.values.values() for v, name in named.items()}, **self.speakers}
        telling = {word: name for word, name in everything.items() if _is_telling(word)}
        phrases = {f"{attribute} {v}": name for attribute, named in self.values.items() for v, name in named.items()}
        quoted = _any_of(everything, rf"(?P<before>[{_QUOTES}])", rf"(?P<after>[{_QUOTES}])")
        return [
            (_PATH, lambda match: "…"),
            (_any_of(phrases), lambda match: phrases[match["word"]]),
            (_any_of(telling), lambda match: telling[match["word"]]),
            (quoted, _in_quotes(everything)),
            (_any_of(self.speakers, _CALLED, "(?P<after>)"), _in_quotes(self.speakers)),
        ]

    def value(self, attribute: str, value: str) -> str:
        return self.values.get(attribute, {}).get(value, value)

    def cell(self, value: Any, key: str = "") -> Any:
        """A plain value of the details: who is named under `speaker`, and rare values under their attribute."""
        if isinstance(value, str):
            return self.speakers.get(value, value) if key == "speaker" else self.value(key, value)
        if isinstance(value, Mapping):
            return {name: self.cell(item, name) for name, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.cell(item, key) for item in value]
        return value


def _any_of(words: Iterable[str], before: str = r"(?<![\w])", after: str = r"(?![\w])") -> re.Pattern[str]:
    """One of the words, the longest first."""
    ordered = sorted(words, key=len, reverse=True)
    return re.compile(rf"{before}(?P<word>{'|'.join(map(re.escape, ordered))}){after}" if ordered else r"(?!)")


def _in_quotes(names: Mapping[str, str]) -> Callable[[re.Match[str]], str]:
    return lambda match: f"{match['before']}{names[match['word']]}{match['after']}"


def _is_telling(word: str) -> bool:
    """Whether a word can be nothing but an id or a rare value wherever it stands."""
    return len(word) > 2 and not word.isdigit() and word.casefold() not in _own_words()


@cache
def _own_words() -> frozenset[str]:
    """The words that veilmeter's own sentences are made of, as their sources have them."""
    texts = (
        file.read_text(encoding="utf-8")
        for package in ("results", "assessment", "attacks")
        for file in resources.files("veilmeter").joinpath(package).iterdir()  # whose code is not needed here
        if file.name.endswith(".py")
    )
    return frozenset(word.casefold() for text in texts for word in re.findall(r"[A-Za-z]+", text))
