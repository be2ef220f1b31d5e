"""One declaration gives an option its names, types, checks, remarks and places."""

from __future__ import annotations

import datetime
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

import pytest

from veilmeter.cli.main import COMMANDS
from veilmeter.core.errors import InputError
from veilmeter.core.options import (
    Condition,
    OptionSet,
    build,
    declare,
    options_of,
    parse_words,
    read_options,
    read_value,
    unused_options,
)


@dataclass(frozen=True, kw_only=True)
class Table(OptionSet):
    file: str | None = declare(None, help="File.", path=True)


@dataclass(frozen=True, kw_only=True)
class Group(OptionSet):
    seed: int = declare(0, help="Random seed.", least=0)


@dataclass(frozen=True, kw_only=True)
class Example(Group):
    source: tuple[str, ...] = declare(help="Source.", path=True)
    kind: str = declare("a", help="Kind.", choices=("a", "b"))
    level: Literal["low", "raised", "high"] | None = declare(None, help="Level.", choices=("low", "raised"))
    share: float = declare(0.5, help="Share.", above=0, below=1)
    sizes: tuple[int, ...] = declare((), help="Sizes.", least=2, also=(0,))
    intervals: bool = declare(True, help="No intervals.")
    span: tuple[float, float] | None = declare(None, help="Span.")
    resamples: int = declare(
        5, help="Resamples.", acts_when=(Condition(lambda options, facts: options.intervals, "no intervals"),)
    )
    tables: dict[str, Any] = declare({}, help="Tables.", tables=Table)


def test_own_options_come_before_those_of_groups() -> None:
    assert list(options_of(Example))[:2] == ["source", "kind"]
    assert list(options_of(Example))[-1] == "seed"
    assert options_of(Example)["intervals"].all_flags == ("--no-intervals",)
    assert options_of(Example)["source"].required


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "--source is required"),
        ({"source": "x", "seed": -1}, r"seed must be at least 0 \(got -1\)"),
        ({"source": "x", "seed": True}, r"seed must be a whole number \(got True\)"),
        ({"source": "x", "kind": "c"}, r"kind: unknown value 'c' \(choose from a, b\)"),
        ({"source": "x", "level": "high"}, r"level: unknown value 'high' \(choose from low, raised\)"),
        ({"source": "x", "share": 1}, r"share must be above 0 and below 1 \(got 1\)"),
        ({"source": "x", "sizes": [1]}, r"sizes must be at least 2 \(got 1\)"),
        ({"source": "x", "span": [1.0]}, "span must be 2 numbers"),
        ({"source": "x", "no-intervals": 1}, "no_intervals must be true or false"),
        ({"source": "x", "soucre": "y"}, "did you mean 'source'"),
    ],
)
def test_wrong_values_are_refused(values: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        build(Example, values)


def test_values_take_the_declared_type() -> None:
    built = build(Example, {"source": Path("x"), "share": 0.25, "sizes": 0, "span": [1, 2], "no-intervals": True})
    assert (built.source, built.sizes, built.span, built.intervals) == (("x",), (0,), (1.0, 2.0), False)
    assert build(Example, {"source": "x", "seed": None}).seed == 0


def test_words_of_the_command_line() -> None:
    declared = options_of(Example)
    assert parse_words(declared["sizes"], ["20", "1e3"]) == [20, 1000]
    assert parse_words(declared["seed"], "12345678901234567890") == 12345678901234567890
    assert parse_words(declared["intervals"], True) is False
    with pytest.raises(InputError, match=r"sizes must be a whole number \(got '2.5'\)"):
        parse_words(declared["sizes"], ["2.5"])


def test_an_option_without_effect_has_a_reason() -> None:
    assert unused_options(build(Example, {"source": "x", "resamples": 7}), None) == {}
    assert unused_options(build(Example, {"source": "x", "intervals": False}), None) == {}  # the default, in vain
    idle = build(Example, {"source": "x", "intervals": False, "resamples": 7})
    assert unused_options(idle, None) == {"resamples": "no intervals"}


def test_paths_are_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('source = ["x", "/y"]\nno-intervals = true\n[tables.one]\nfile = "z"\n')
    values = read_options(tmp_path / "a.toml", Example)
    assert values["source"] == [str(tmp_path / "x"), "/y"]
    assert values["intervals"] is False
    assert values["tables"] == {"one": {"file": str(tmp_path / "z")}}
    (tmp_path / "a.toml").write_text('source = "x"\n[tables.one]\nfile = "z"\n"fi-le" = 1\n"fi_le" = 2\n')
    with pytest.raises(InputError, match=r"tables.one: fi_le is given twice"):
        read_options(tmp_path / "a.toml", Example)


@pytest.mark.parametrize(
    "value",
    [1, -1, 1.5, True, [], {}, [1], [[]], [{}], {"a": 1}, {"a": {}}, {"": [1]}, ["a", 1], datetime.date(2020, 1, 1),
     datetime.time(1), "", "\0", float("nan"), float("inf"), 10**400, [10**400]],
    ids=lambda value: repr(value)[:12],
)  # fmt: skip
def test_any_value_of_a_file_is_read_or_refused(value: Any) -> None:
    """Whatever TOML can hold, for every option of every command."""
    modules = [import_module(f"veilmeter.cli.{name.replace('-', '_')}") for name in COMMANDS]
    for kind in {kind for module in modules for kind in getattr(module, "OPTIONS", ())}:
        for declared in options_of(kind).values():
            with suppress(InputError):
                read_value(declared, value)
