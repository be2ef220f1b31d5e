"""Reference pages are what the declarations say, and every help text is a phrase of at most two lines."""

from __future__ import annotations

import ast
import dataclasses
import inspect

import pytest
from tests.trying_options import options_by_command
from tools.command_reference import PAGE, SIGNATURE, page, with_signature
from tools.reference_tables import PAGES, TABLES, TYPES, attributes, with_tables

from veilmeter import assess
from veilmeter.assessment.settings import Settings
from veilmeter.core.options import Option, options_of
from veilmeter.results import model

OPTIONS = [
    pytest.param(option, id=f"{command} {name}")
    for command, options in options_by_command().items()
    for name, option in options.items()
]


def test_the_page_of_commands_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make reference"


@pytest.mark.parametrize("name", sorted({page for page, _ in TABLES.values()}))
def test_the_tables_of_the_reference_are_up_to_date(name: str) -> None:
    text = (PAGES / name).read_text(encoding="utf-8")
    assert text == with_tables(name, text), "run: make reference"


@pytest.mark.parametrize("kind", TYPES, ids=lambda kind: kind.__name__)
def test_every_field_of_the_results_is_described(kind: type) -> None:
    summary, described = attributes(kind)
    assert summary.endswith(".")
    assert list(described) == [field.name for field in dataclasses.fields(kind)]
    assert all(text.endswith((".", "...")) for text in described.values())


def test_the_page_describes_every_type_of_the_results() -> None:
    """Whatever a field of the results holds has its own table, or a section on the page."""
    declared = {
        kind for kind in vars(model).values() if dataclasses.is_dataclass(kind) and kind.__module__ == model.__name__
    }
    assert declared == set(TYPES)


def test_the_signature_of_assess_is_that_of_its_options() -> None:
    """Names, types, defaults and descriptions, as an editor shows them."""
    source = SIGNATURE.read_text(encoding="utf-8")
    assert ast.dump(ast.parse(source)) == ast.dump(ast.parse(with_signature(source))), "run: make reference"
    parameters = inspect.signature(assess).parameters
    for name, option in options_of(Settings).items():
        if name in parameters and option.role != "source":
            assert parameters[name].default in (option.default, None), name
            assert parameters[name].default is not None or option.default in (None, {}, ()), name
    assert not {"argv", "say", "progress", "settings", "first"} & set(parameters)


@pytest.mark.parametrize("option", OPTIONS)
def test_help_texts_are_short_phrases(option: Option) -> None:
    assert option.help.endswith(".")
    assert len(option.help) <= 2 * 71  # two lines of the help
    assert "default" not in option.help.lower(), "the default is part of the declaration"
    assert not option.help.startswith(("Of ", "What ", "Who ", "How often "))
