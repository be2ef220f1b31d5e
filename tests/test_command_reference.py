"""The page of commands is what the declarations say, and every help text is a phrase of at most two lines."""

from __future__ import annotations

import pytest
from tests.trying_options import options_by_command
from tools.command_reference import PAGE, page

from veilmeter.core.options import Option

OPTIONS = [
    pytest.param(option, id=f"{command} {name}")
    for command, options in options_by_command().items()
    for name, option in options.items()
]


def test_the_page_of_commands_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: make reference"


@pytest.mark.parametrize("option", OPTIONS)
def test_help_texts_are_short_phrases(option: Option) -> None:
    assert option.help.endswith(".")
    assert len(option.help) <= 2 * 71  # two lines of the help
    assert "default" not in option.help.lower(), "the default is part of the declaration"
    assert not option.help.startswith(("Of ", "What ", "Who ", "How often "))
