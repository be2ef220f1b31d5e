"""The architecture page agrees with the source tree."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

import pytest
from tests.test_house import FLOORS, SOURCE, imports, tree_of

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_cells(title: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", section(title), re.M)


def walks() -> dict[str, list[str]]:
    """The files of each walk, by the command that is walked."""
    shorter = section("Three shorter walks").split("\n### ")[1:]
    texts = {"assess": section("The walk of an assessment")} | {text.split("`")[1]: text for text in shorter}
    return {command: re.findall(r"^\d+\. `([^`]+)`", text, re.M) for command, text in texts.items()}


def module_name(path: str) -> str:
    return "veilmeter." + path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def reached_from(path: Path) -> set[str]:
    """The modules that a file imports; from a package, also what the package itself imports."""
    found = {name for node in ast.walk(tree_of(path)) if isinstance(node, ast.ImportFrom) for name in names_in(node)}
    packages = [SOURCE.joinpath(*name.split(".")[1:], "__init__.py") for name in found]
    return found.union(*(imports(package) for package in packages if package.is_file() and package != path))


def names_in(node: ast.ImportFrom) -> Iterator[str]:
    if node.module and node.module.startswith("veilmeter."):
        yield node.module
        yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_package_is_named_from_the_top_down() -> None:
    named = [cell.rstrip("/") for cell in first_cells("Packages")]
    floor = {package: number for number, packages in enumerate(FLOORS) for package in packages}
    assert sorted(named) == sorted(floor)
    numbers = [floor[package] for package in named]
    assert numbers == sorted(numbers, reverse=True)


def test_every_module_of_assessment_is_named() -> None:
    folder = SOURCE / "assessment"
    modules = {path.relative_to(folder).as_posix() for path in folder.rglob("*.py") if path.name != "__init__.py"}
    named = first_cells("Modules of `assessment/`")
    assert sorted(named) == sorted(modules)


def test_every_named_file_exists() -> None:
    named = re.findall(r"`([\w/]+(?:\.py|/))`", TEXT) + re.findall(r"([\w/]+\.py)", TEXT)
    missing = [name for name in named if not any((base / name).exists() for base in (SOURCE, SOURCE / "assessment"))]
    assert set(missing) <= {"src/veilmeter/"}


@pytest.mark.parametrize("command", ["assess", "measure", "linkability", "compare"])
def test_a_walk_is_short_and_each_file_is_imported_by_one_before_it(command: str) -> None:
    hops = walks()[command]
    assert hops[0] == f"cli/{command}.py"
    assert len(hops) == len(set(hops)) <= 15
    seen = {module_name(hops[0])}
    for hop in hops:
        assert module_name(hop) in seen, f"nothing before {hop} imports it"
        seen |= reached_from(SOURCE / hop)


def test_modules_of_assessment_do_not_import_each_other_in_circles() -> None:
    folder = SOURCE / "assessment"
    graph = {}
    for path in folder.rglob("*.py"):
        if path.name != "__init__.py":
            name = module_name(path.relative_to(SOURCE).as_posix())
            graph[name] = {other for other in imports(path) if other.startswith("veilmeter.assessment.")}
    assert len(list(TopologicalSorter(graph).static_order())) >= len(graph)
