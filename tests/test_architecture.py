"""The architecture page agrees with the source tree."""

from __future__ import annotations

import re
from graphlib import TopologicalSorter
from pathlib import Path

from tests.test_house import FLOORS, SOURCE, imports

PAGE = Path(__file__).parents[1] / "docs" / "explanation" / "architecture.md"
TEXT = PAGE.read_text(encoding="utf-8")


def section(title: str) -> str:
    return TEXT.split(f"\n## {title}\n")[1].split("\n## ")[0]


def first_cells(title: str) -> list[str]:
    return re.findall(r"^\| `([^`]+)` \|", section(title), re.M)


def walk() -> list[str]:
    return re.findall(r"^\d+\. `([^`]+)`", section("The walk of an assessment"), re.M)


def module_name(path: str) -> str:
    return "veilmeter." + path.removesuffix(".py").replace("/", ".")


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


def test_the_walk_is_short_and_each_file_is_imported_by_one_before_it() -> None:
    hops = walk()
    assert len(hops) == len(set(hops)) <= 15
    seen: set[str] = set()
    for hop in hops:
        name = module_name(hop)
        assert not seen or seen & {name, name.rpartition(".")[0]}, f"nothing before {hop} imports it"
        seen |= set(imports(SOURCE / hop))


def test_modules_of_assessment_do_not_import_each_other_in_circles() -> None:
    folder = SOURCE / "assessment"
    graph = {}
    for path in folder.rglob("*.py"):
        if path.name != "__init__.py":
            name = module_name(path.relative_to(SOURCE).as_posix())
            graph[name] = {other for other in imports(path) if other.startswith("veilmeter.assessment.")}
    assert len(list(TopologicalSorter(graph).static_order())) >= len(graph)
