"""`python tools/reference_tables.py`: the generated tables of docs/reference, each from where its facts are declared.

A page marks the place of a table with `<!-- table: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from veilmeter.attacks.attacker import ATTACKERS, BASELINE
from veilmeter.attacks.backends.base import BACKENDS
from veilmeter.cli.attackers import COLUMNS
from veilmeter.cli.terminal import MEANINGS
from veilmeter.metrics.measure import MEASURES
from veilmeter.results import model
from veilmeter.results.run_folder import RENAMED, SCHEMA

PAGES = Path(__file__).resolve().parents[1] / "docs" / "reference"
DIRECTIONS = {"higher": "higher", "lower": "lower", "neither": "depends"}
# Types of results.json, in the order in which the page describes them.
TYPES = (
    model.Results, model.Input, model.Matching, model.ProtocolFacts, model.AttackerResult, model.LinkedPerson,
    model.Part, model.Channels, model.Channel, model.ChannelPerson, model.Chance, model.Criterion, model.Check,
    model.People, model.Person, model.Verdict,
)  # fmt: skip
PLAIN = {str: "text", int: "integer", float: "number", bool: "true or false", type(None): "null", Any: "any"}


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of Markdown."""
    lines = (header, ["---"] * len(header), *rows)
    return "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |\n" for line in lines)


def measures() -> str:
    return table(
        ("name", "measure", "private is", "from"),
        (
            (f"`{entry.name}`", entry.label, DIRECTIONS[entry.better], entry.source)
            for entry in MEASURES.values()
            if entry.name not in MEASURES.admitted
        ),
    )


def attackers() -> str:
    """Those that run by default, as `veilmeter attackers --markdown` lists them."""
    listed = [entry for name, entry in ATTACKERS.items() if entry.default and name != BASELINE]
    rows = [(f"`{entry.name}`", *entry.row[1:]) for entry in listed if entry.name not in ATTACKERS.admitted]
    return table(COLUMNS, rows)


def backends() -> str:
    """Back ends by name, with what each of them says about itself."""
    own = [name for name in BACKENDS if name not in BACKENDS.admitted]
    return table(("back end", "how it compares"), ((f"`{name}`", BACKENDS[name].about) for name in own))


def exit_codes() -> str:
    return table(("code", "meaning"), ((str(int(code)), meaning) for code, meaning in MEANINGS.items()))


def results() -> str:
    """A section per type of results.json: its fields, from annotations and docstrings."""
    parts = []
    for kind in TYPES:
        summary, described = attributes(kind)
        hints = typing.get_type_hints(kind)
        names = [field.name for field in dataclasses.fields(kind)]
        rows = [(f"`{RENAMED.get(name, name)}`", json_type(hints[name]), described[name]) for name in names]
        if kind is model.Results:
            rows.insert(0, ("`schema`", "integer", f"Version of this form: {SCHEMA}."))
        parts.append(f"### {kind.__name__}\n\n{summary}\n\n{table(('field', 'type', 'meaning'), rows)}")
    return "\n".join(parts)


def attributes(kind: type) -> tuple[str, dict[str, str]]:
    """The summary of a class, and what its docstring says about each attribute."""
    text = re.sub(r"\n    ", "\n", kind.__doc__ or "")
    summary, _, section = text.partition("\n\nAttributes\n----------\n")
    found = re.findall(r"^(\w+)\n((?:    .+\n?)+)", section, re.MULTILINE)
    return " ".join(summary.split()), {name: " ".join(words.split()) for name, words in found}


def json_type(hint: Any) -> str:
    """An annotation in the words of JSON.

    >>> json_type(Mapping[str, model.Part]), json_type(tuple[str, ...]), json_type(float | None)
    ('object of [Part](#part)', 'list of text', 'number or null')
    """
    if hint in PLAIN:
        return PLAIN[hint]
    origin, given = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(json_type(one) for one in given)
    if origin is Literal:
        return "text"
    if origin is not None and issubclass(origin, Mapping):
        inner = json_type(given[1])
        return "object" if inner == "any" else f"object of {inner}"
    if origin is not None and issubclass(origin, Sequence):
        return f"list of {json_type(given[0])}"
    name: str = hint.__name__
    if hint in TYPES:
        return f"[{name}](#{name.lower()})"
    return {"Estimate": "[estimate](#an-estimate)", "Estimates": "[estimates](#an-estimate)",
            "Finding": "[finding](#findings)"}.get(name, name)  # fmt: skip


TABLES: dict[str, tuple[str, Callable[[], str]]] = {
    "measures": ("measures.md", measures),
    "attackers": ("attackers.md", attackers),
    "backends": ("attackers.md", backends),
    "exit codes": ("exit-codes.md", exit_codes),
    "results": ("results.md", results),
}


def with_tables(name: str, text: str) -> str:
    """The text of a page with its tables as they are declared now."""
    for title, (page, make) in TABLES.items():
        if page == name:
            begin, end = f"<!-- table: {title} -->\n", "<!-- end -->"
            before, marker, rest = text.partition(begin)
            assert marker, f"{name} has no place for the table {title!r}"
            text = f"{before}{begin}\n{make()}\n{end}{rest.partition(end)[2]}"
    return text


def main() -> int:
    for name in {page for page, _ in TABLES.values()}:
        path = PAGES / name
        path.write_text(with_tables(name, path.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
