"""Options, each declared once: a field of a dataclass carries everything that is known about it.

    @dataclass(frozen=True, kw_only=True)
    class Sampling(OptionSet):
        folds: int = declare(5, help="Folds of the cross-validation.", least=3)

The parameters of a command, its help and its page of the reference, the names in a TOML file, Python's checks, the
remarks on options that had no effect, and the tests that try every option read the declaration.
"""

from __future__ import annotations

import dataclasses
import difflib
import inspect
import operator
import re
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

from veilmeter.core.errors import InputError
from veilmeter.core.files import read_input_text, syntax_problem
from veilmeter.core.findings import Finding, Reference, warning

Role = Literal["source", "protocol", "computation", "output"]
MISSING = dataclasses.MISSING
LARGEST_NUMBER = 10**15  # of whole numbers: beyond, floats skip some, and arrays have no such index
LARGEST_FILE = 1_000_000  # bytes of a TOML file
_DEEP_KEY = re.compile(r"""(?m)(?<![^\n{,\[])[ \t]*(?:(?:[\w-]+|"[^"\n]*"|'[^'\n]*')[ \t]*\.[ \t]*){16}""")
_WORDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text", Path: "a path"}
_SEVERAL = {int: "whole numbers", float: "numbers", str: "text", Path: "paths"}


class Condition(NamedTuple):
    """When an option acts: a test of the settings and the facts of a run, and the reason where it fails."""

    holds: Callable[[Any, Any], bool]
    reason: str | Callable[[Any, Any], str]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Option:
    """The declaration of an option. Its name, type and default are those of its field.

    `group` is its heading in the help, `common` whether `--help` shows it, or only `--help-all`. `also` are numbers
    that are accepted though out of bounds. `parse` is applied to a value from any source before its type is checked.
    `flags` are its names on the command line, if not `--name` (or `--no-name` for a flag that is on by default);
    `argument` makes it positional, `in_file` leaves it to TOML files and Python. `default_text` describes a default
    that is computed. `path` is true if a relative value is relative to the TOML file that holds it, or a function of
    the file's folder and the value. `tables` are the options of the tables by name that it holds. `acts_when` are the
    conditions under which it has an effect. Runs that differ in a `comparable` option may be compared, and the value of
    a `publishable` one may be shown to anyone. `example` is the value with which the tests try it.
    """

    help: str
    group: str = ""
    role: Role = "protocol"
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    also: tuple[float, ...] = ()
    choices: Sequence[str] | Callable[[], Sequence[str]] = ()
    parse: Callable[[Any], Any] | None = None
    flags: tuple[str, ...] = ()
    metavar: str = ""
    default_text: str = ""
    common: bool = True
    argument: bool = False
    in_file: bool = False
    required: bool = False
    path: bool | Callable[[Path, str], str] = False
    tables: type | None = None
    acts_when: tuple[Condition, ...] = ()
    comparable: bool = False
    publishable: bool = False
    example: Any = None
    name: str = ""
    default: Any = None
    item: type = str
    is_list: bool = False
    count: int | None = None

    @property
    def is_flag(self) -> bool:
        return self.item is bool

    @property
    def all_flags(self) -> tuple[str, ...]:
        """Its names on the command line."""
        words = self.name.replace("_", "-")
        return self.flags or (f"--no-{words}" if self.is_flag and self.default else f"--{words}",)

    @property
    def known_values(self) -> Sequence[str]:
        return self.choices() if callable(self.choices) else self.choices

    def idle_reason(self, settings: Any, facts: Any) -> str:
        """Why it had no effect in a run; empty if it had one."""
        for condition in self.acts_when:
            if not condition.holds(settings, facts):
                return condition.reason if isinstance(condition.reason, str) else condition.reason(settings, facts)
        return ""

    def spell(self, value: Any) -> tuple[str, ...]:
        """The words of the option on the command line."""
        if self.is_flag:
            return self.all_flags[:1]
        values = value if isinstance(value, list | tuple) else (value,)
        return (self.all_flags[0], *map(str, values))


def declare(default: Any = MISSING, *, help: str, **declared: Any) -> Any:
    """A field of an `OptionSet`; without a default the option is required."""
    is_required = default is MISSING
    metadata = {"option": Option(help=help, required=is_required, **declared)}
    if is_required:
        return dataclasses.field(metadata=metadata)
    if isinstance(default, dict):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


@dataclasses.dataclass(frozen=True, kw_only=True)
class OptionSet:
    """The options of a command or of a table; values that are out of bounds or unknown are refused."""

    def __post_init__(self) -> None:
        kind: type = type(self)
        for declared in options_of(kind).values():
            _check(declared, getattr(self, declared.name))


@cache
def options_of(kind: type) -> Mapping[str, Option]:
    """The declared options of a class by name: its own first, then those of the groups it inherits."""
    hints = get_type_hints(kind)
    fields = {field.name: field for field in dataclasses.fields(kind) if "option" in field.metadata}
    homes = [inspect.get_annotations(base) for base in kind.__mro__]
    names = dict.fromkeys(name for annotations in homes for name in annotations if name in fields)
    return {name: _bind(fields[name], hints[name]) for name in names}


def _bind(field: dataclasses.Field[Any], hint: Any) -> Option:
    declared: Option = field.metadata["option"]
    default = None if field.default is dataclasses.MISSING else field.default
    if field.default_factory is not dataclasses.MISSING:
        default = field.default_factory()
    if get_origin(hint) in (Union, types.UnionType):
        (hint,) = (part for part in get_args(hint) if part is not type(None))
    item, is_list, count = hint, False, None
    if get_origin(hint) is tuple:
        item, *rest = get_args(hint)
        is_list, count = rest == [Ellipsis], None if rest == [Ellipsis] else 1 + len(rest)
    elif get_origin(hint) is Literal:
        item = str
    elif get_origin(hint) is not None:
        item = dict
    return dataclasses.replace(declared, name=field.name, default=default, item=item, is_list=is_list, count=count)


def all_options(kinds: Iterable[type]) -> dict[str, Option]:
    """The options of several classes; where two have the same, the first counts."""
    declared: dict[str, Option] = {}
    for kind in kinds:
        declared |= {name: declared.get(name, of_kind) for name, of_kind in options_of(kind).items()}
    return declared


# --- values


def build(kind: Any, values: Mapping[str, Any]) -> Any:
    """An instance of an `OptionSet` from plain values; an unknown name is an error that suggests the nearest."""
    declared = options_of(kind)
    plain = rename(values, declared)
    refuse_unknown_options(plain, declared)
    typed = {name: read_value(declared[name], value) for name, value in plain.items() if value is not None}
    for name, missing in declared.items():
        if missing.required and name not in typed:
            raise InputError(f"{missing.all_flags[0]} is required")
    return kind(**typed)


def refuse_unknown_options(names: Iterable[str], declared: Mapping[str, Option]) -> None:
    """An error that suggests the nearest of the declared options."""
    for name in names:
        if name not in declared:
            near = difflib.get_close_matches(name, list(declared), 1)
            fix = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(declared)}"
            raise InputError(f"unknown option {name!r}", fix=fix)


def rename(values: Mapping[str, Any], declared: Mapping[str, Option]) -> dict[str, Any]:
    """The values under the names of Python: with underscores, and `no_name` turned into `name`."""
    renamed: dict[str, Any] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        positive = name.removeprefix("no_")
        if name not in declared and positive in declared and declared[positive].is_flag:
            if not isinstance(value, bool):
                raise InputError(f"{name} must be true or false (got {_excerpt(value)})")
            name, value = positive, not value
        if name in renamed:
            raise InputError(f"{name} is given twice", fix="give it once")
        renamed[name] = value
    return renamed


def read_value(declared: Option, value: Any) -> Any:
    """The value in the type of its option; a single word or number stands for a list of one."""
    try:
        plain = value if declared.parse is None else _parse(declared, value)
        if declared.item is dict:
            return plain
        is_single = not (declared.is_list or declared.count is not None)
        items = [plain] if is_single or isinstance(plain, str | Path | int | float) else list(plain)
        if all(_has_type(item, declared.item) for item in items) and declared.count in (None, len(items)):
            typed = tuple(declared.item(item) for item in items)
            return typed[0] if is_single else typed
    except (TypeError, AttributeError, OverflowError):  # a date or a table of a TOML file, a number without end
        pass
    raise InputError(f"{declared.name} must be {_type_in_words(declared)} (got {_excerpt(value)})")


def _type_in_words(declared: Option) -> str:
    if declared.item is dict:
        return "a table"
    if declared.count is not None:
        return f"{declared.count} {_SEVERAL[declared.item]}"
    return (_SEVERAL if declared.is_list else _WORDS)[declared.item]


def _has_type(value: Any, item: type) -> bool:
    if item is bool:
        return isinstance(value, bool)
    if item in (int, float):
        return isinstance(value, int if item is int else int | float) and not isinstance(value, bool)
    return isinstance(value, str | Path)


def parse_words(declared: Option, words: Any) -> Any:
    """The plain value of what was typed on the command line."""
    if declared.is_flag:
        return not declared.default
    value = words if declared.parse is None else _parse(declared, words)
    if declared.item not in (int, float):
        return value
    if isinstance(value, list | tuple):
        return [parse_number(declared, item) if isinstance(item, str) else item for item in value]
    return parse_number(declared, value) if isinstance(value, str) else value


def _parse(declared: Option, value: Any) -> Any:
    """By the option's own rule; a percentage that may be a fraction is refused under the option's name."""
    assert declared.parse is not None
    if declared.parse is not parse_percentage:
        return declared.parse(value)
    try:
        return parse_percentage(value)
    except InputError as problem:
        raise InputError(f"{declared.name}: {problem.what}", fix=problem.fix) from None


def parse_number(declared: Option, word: str) -> float:
    """A number; whole ones may be written as 1e6."""
    try:
        if declared.item is int and word.strip().lstrip("+-").isdigit():
            return int(word)
        number = float(word)
        if declared.item is float:
            return number
        if number == int(number) and abs(number) <= LARGEST_NUMBER:
            return int(number)
    except (ValueError, OverflowError):
        pass
    raise InputError(f"{declared.name} must be {_WORDS[declared.item]} (got {_excerpt(word)})")


def _excerpt(value: Any) -> str:
    """A given value as an error quotes it, shortened."""
    try:
        text = repr(value)
    except ValueError:  # an integer that Python does not print
        return "a number of thousands of digits"
    return text if len(text) <= 100 else f"{text[:60]}... of {len(text)} characters"


def parse_percentage(value: Any) -> Any:
    """A number of percent, with its sign; without one, a number that can't be meant as a fraction.

    >>> parse_percentage("15%"), parse_percentage("15"), parse_percentage(15), parse_percentage("0.2%")
    (15.0, 15.0, 15.0, 0.2)
    """
    has_sign = isinstance(value, str) and value.strip().endswith("%")
    try:
        number = float(value.strip().removesuffix("%")) if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        raise InputError(f"not a percentage: {_excerpt(value)}", fix="write it as 15%") from None
    if not has_sign:
        refuse_fraction(number)
    return number


def refuse_fraction(number: float) -> None:
    """A bare number of at most 1 may be meant as a fraction or as a percentage; only 0 is the same."""
    if 0 < abs(number) <= 1:
        raise InputError(
            f"{number:g} may be a fraction or a percentage",
            fix=f"write {100 * number:g}%, or {number:g}% if that is meant",
        )


def _check(declared: Option, value: Any) -> None:
    if value is None or declared.item is dict:
        return
    items = value if isinstance(value, tuple) else (value,)
    for item in items:
        if isinstance(item, int | float) and not isinstance(item, bool):
            _check_bounds(declared, item)
        elif isinstance(item, str | Path) and "\0" in str(item):
            raise InputError(f"{declared.name} holds a zero byte", fix="no file or name can have one")
        elif known := declared.known_values:
            refuse_unknown(declared.name, str(item), known)


def _check_bounds(declared: Option, value: float) -> None:
    tests = (
        ("at least", declared.least, operator.ge),
        ("at most", declared.most, operator.le),
        ("above", declared.above, operator.gt),
        ("below", declared.below, operator.lt),
    )
    if isinstance(value, int) and abs(value) > LARGEST_NUMBER:  # more than any index of an array, and `:g` may fail
        raise InputError(f"{declared.name} must be at most {LARGEST_NUMBER:g} (got {_excerpt(value)})")
    bounds = [(f"{words} {bound:g}", holds(value, bound)) for words, bound, holds in tests if bound is not None]
    if value not in declared.also and not all(holds for _, holds in bounds):
        raise InputError(f"{declared.name} must be {' and '.join(text for text, _ in bounds)} (got {value:g})")


def refuse_unknown(name: str, value: str, known: Sequence[str]) -> None:
    """An error that suggests the nearest of the known values."""
    if value not in known:
        near = difflib.get_close_matches(value, known, 1)
        fix = f"did you mean {near[0]!r}?" if near else f"choose from {', '.join(known)}"
        raise InputError(f"{name}: unknown value {_excerpt(value)}", fix=fix)


# --- effects


def unused_options(settings: Any, facts: Any) -> dict[str, str]:
    """The options that differ from their default and had no effect, each with the reason."""
    kind: type = type(settings)
    reasons = {
        name: declared.idle_reason(settings, facts)
        for name, declared in options_of(kind).items()
        if getattr(settings, name) != declared.default
    }
    return {name: reason for name, reason in reasons.items() if reason}


def option_without_effect(option: str, *values: str, reason: str) -> Finding:
    """The warning on an option that was given in vain, with what was given."""
    given = Reference("text", " ".join(values)) if values else None
    return warning("option_without_effect", option=option, given=given, reason=reason)


# --- files


def read_options(path: str | Path, *kinds: type) -> dict[str, Any]:
    """The plain values in a TOML file, under the names of the options; relative paths are relative to the file."""
    import tomllib

    file = Path(path)
    text = read_input_text(path, most=LARGEST_FILE)
    if deep := _DEEP_KEY.search(text):  # tomllib takes time and memory by the square of its parts
        line = text.count("\n", 0, deep.start()) + 1
        raise InputError("a key has more than 16 parts", path=path, line=line, fix="no option has as many")
    try:
        values = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"invalid TOML: {syntax_problem(error)}", path=path) from None
    return _read_table(values, all_options(kinds), file, "")


def _read_table(values: Mapping[str, Any], declared: Mapping[str, Option], file: Path, where: str) -> dict[str, Any]:
    try:
        plain = rename(values, declared)
    except InputError as error:
        raise InputError(where + error.what, path=file, fix=error.fix) from None
    for name, value in plain.items():
        if name not in declared:
            continue
        if declared[name].path:
            plain[name] = place(value, declared[name].path, file.parent)
        tables = declared[name].tables
        if tables is not None and isinstance(value, dict):
            plain[name] = {
                key: _read_table(table, options_of(tables), file, f"{name}.{key}: ")
                if isinstance(table, dict)
                else table
                for key, table in value.items()
            }
    return plain


def place(value: Any, rule: bool | Callable[[Path, str], str], folder: Path) -> Any:
    """Paths that are relative to a folder, by the rule of their option."""
    if isinstance(value, str):
        return rule(folder, value) if callable(rule) else str(folder / value)
    return [place(item, rule, folder) for item in value] if isinstance(value, list | tuple) else value


WITH_PATH = ("onnx", "wavlm", "vpc2026")  # kinds of models whose name holds a path


def place_code(folder: Path, spec: str) -> str:
    """A path in the name of code or a model; any other name stays as it is.

    >>> place_code(Path("a"), "onnx:b.onnx"), place_code(Path("a"), "b.py:embed"), place_code(Path("a"), "ecapa")
    ('onnx:a/b.onnx', 'a/b.py:embed', 'ecapa')
    """
    kind, colon, place = spec.partition(":")
    if colon and kind in WITH_PATH:
        return f"{kind}:{folder / place}"
    return str(folder / spec) if spec.partition(":")[0].endswith(".py") else spec


def place_named(folder: Path, text: str) -> str:
    """The path in NAME=FILE."""
    name, equals, file = text.partition("=")
    return f"{name}={folder / file}" if equals else text
