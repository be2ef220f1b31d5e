"""Which files of the user's a module imports: what was computed with other ones is computed again."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from types import ModuleType

INSTALLED = frozenset({"site-packages", "dist-packages"})  # what lies there changes with its version, not by editing


def imported_files(module: ModuleType) -> dict[str, Path]:
    """By module, the source files that it imports, directly or through each other, at its top or within functions.
    Python's own modules and other installed packages are left out, and what is imported by a name that is only made up
    while it runs."""
    found: dict[str, Path] = {}
    seen, own = {module.__name__}, module.__name__.partition(".")[0]
    source = getattr(module, "__file__", None)
    left = [(module.__name__, Path(source))] if source and source.endswith(".py") and Path(source).is_file() else []
    while left:
        name, file = left.pop()
        for imported in _imported_names(file.read_bytes(), name, file.name == "__init__.py"):
            if imported not in seen and (place := _place(imported, own)) is not None:
                found[imported] = place
                left.append((imported, place))
            seen.add(imported)
    return dict(sorted(found.items()))


@lru_cache(maxsize=1024)
def _imported_names(source: bytes, name: str, is_package: bool) -> tuple[str, ...]:
    """The full names of what may be modules, each after the packages that it lies in.

    >>> _imported_names(b"import a.b\\nfrom . import c", "package.module", False)
    ('package', 'package.module', 'a', 'a.b', 'package.c')
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    names = [name]
    package = name if is_package else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: 1 - node.level or None] if node.level and package else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names += [".".join(filter(None, (base, alias.name))) for alias in node.names]
    return tuple(dict.fromkeys(part for full in names for part in _with_packages(full)))


def _with_packages(name: str) -> Iterator[str]:
    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        yield ".".join(parts[:count])


def _place(name: str, own: str) -> Path | None:
    """The source file of a module of the user's, or of the package `own`; None where there is none. Nothing is imported
    for it."""
    top, *parts = name.split(".")
    if top in sys.stdlib_module_names or top in ("veilmeter", "__main__"):
        return None
    spec = None
    with suppress(ImportError, ValueError, AttributeError):
        spec = importlib.util.find_spec(top)
    if spec is None:
        return None
    file = Path(spec.origin) if spec.has_location and spec.origin else None
    folders = [Path(folder) for folder in spec.submodule_search_locations or ()]
    for part in parts:
        tried = [path for folder in folders for path in (folder / part / "__init__.py", folder / f"{part}.py")]
        file = next((path for path in tried if path.is_file()), None)
        folders = [folder / part for folder in folders if (folder / part).is_dir()]
    if file is None or file.suffix != ".py" or not file.is_file():
        return None
    return file if top == own or not INSTALLED & set(file.resolve().parts) else None
