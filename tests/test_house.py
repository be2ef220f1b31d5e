"""The house keeps its rules: packages import downwards only, files and functions stay small, results are typed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "veilmeter"
FILES = sorted(SOURCE.rglob("*.py"))

# From the ground up. Packages of one floor do not import each other.
FLOORS = (
    {"core"},
    {"data"},
    {"metrics", "speech"},
    {"anonymizers", "attacks"},
    {"wording"},
    {"results"},
    {"assessment"},
    {"report"},
    {"demo"},
    {"cli"},
)
FLOOR = {package: number for number, packages in enumerate(FLOORS) for package in packages}

MOST_LINES, MOST_FUNCTION_LINES, MOST_PARAMETERS = 600, 60, 12


def name_of(path: Path) -> str:
    return path.relative_to(SOURCE).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imports(path: Path) -> Iterator[str]:
    """Every module of veilmeter that a file imports, wherever in the file."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            if node.module == "veilmeter":
                yield from (f"veilmeter.{alias.name}" for alias in node.names)
            elif node.module.startswith("veilmeter."):
                yield node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("veilmeter."))


def package_of(module: str) -> str:
    return module.split(".")[1]


def test_every_package_has_its_floor() -> None:
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert packages == set(FLOOR)


def test_the_root_holds_the_public_names_and_nothing_else() -> None:
    assert {path.name for path in SOURCE.glob("*.py")} <= {"__init__.py", "__main__.py", "_version.py"}


def test_nothing_imports_upwards() -> None:
    found = set()
    for path in FILES:
        if path.parent == SOURCE:
            continue
        home = path.relative_to(SOURCE).parts[0]
        for module in imports(path):
            target = package_of(module)
            if target in FLOOR and target != home and FLOOR[target] >= FLOOR[home]:
                found.add((name_of(path), module))
    assert found == set()


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_sizes(path: Path) -> None:
    lines = len(path.read_text(encoding="utf-8").splitlines())
    documented = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    lines -= sum(docstring_lines(node) for node in ast.walk(tree_of(path)) if isinstance(node, documented))
    assert lines <= MOST_LINES
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not declares_a_command(path, node):
            name = f"{name_of(path)}:{node.name}"
            assert node.end_lineno is not None
            length = node.end_lineno - node.lineno + 1 - docstring_lines(node)
            assert length <= MOST_FUNCTION_LINES, f"{name} has {length} lines"
            arguments = node.args
            count = len(arguments.posonlyargs) + len(arguments.args) + len(arguments.kwonlyargs)
            assert count <= MOST_PARAMETERS, f"{name} has {count} parameters"


def docstring_lines(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    """Parameters, returns and an example are documentation: a function or a module is as long as its code."""
    first = node.body[0]
    if ast.get_docstring(node) is None or first.end_lineno is None:
        return 0
    return first.end_lineno - first.lineno + 1


def declares_a_command(path: Path, node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A command's parameters are its options, so there are as many as it has."""
    if (name_of(path), node.name) in {("assessment/signature.py", "assess"), ("results/gate.py", "gate")}:
        return True
    return path.parent.name == "cli" and (node.name == "command" or bool(node.decorator_list))


def test_results_are_typed() -> None:
    """No function of results/ gives back a bare dictionary, except where JSON is made."""
    found = []
    for path in (SOURCE / "results").rglob("*.py"):
        if path.name == "run_folder.py":
            continue
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef) and node.returns is not None and node.name != "to_json":
                returns = ast.unparse(node.returns)
                if "dict[str, Any]" in returns or "Mapping[str, Any]" in returns:
                    found.append(f"{name_of(path)}:{node.name}")
    assert found == []


def test_no_two_classes_have_one_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in FILES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(name_of(path))
    shared = {name: places for name, places in homes.items() if len(places) > 1}
    assert shared == {}
