"""User-supplied code, named as `module:name` or `file.py:name`: extractors, recognizers, anonymizers and the like.

Code counts by its source and by the files that it imports. Hand-written: a hash of its whole folder would change with
every unrelated file there, and would miss modules that lie elsewhere.
"""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import lru_cache, partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any
from weakref import ref

from veilmeter.core.errors import InputError, foreign_errors
from veilmeter.core.files import check_input, real_path

INSTALLED = frozenset({"site-packages", "dist-packages"})  # what lies there changes with its version, not by editing


def find_imports(module: ModuleType) -> dict[str, Path]:
    """By module, the source files that it imports, directly or through each other, at its top or within functions.
    Python's own modules and other installed packages are left out, and what is imported by a name that is only made up
    while it runs."""
    found: dict[str, Path] = {}
    seen, own = {module.__name__}, module.__name__.partition(".")[0]
    source = getattr(module, "__file__", None)
    left = [(module.__name__, Path(source))] if source and source.endswith(".py") and Path(source).is_file() else []
    while left:
        name, file = left.pop()
        for imported in _import_names(file.read_bytes(), name, file.name == "__init__.py"):
            if imported not in seen and (place := _place(imported, own)) is not None:
                found[imported] = place
                left.append((imported, place))
            seen.add(imported)
    return dict(sorted(found.items()))


@lru_cache(maxsize=1024)
def _import_names(source: bytes, name: str, is_package: bool) -> tuple[str, ...]:
    """The full names of what may be modules, each after the packages that it lies in.

    >>> _import_names(b"import a.b\\nfrom . import c", "package.module", False)
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
    """The source file of a user-supplied module, or of the package `own`; None where there is none. Nothing is imported
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
    return file if top == own or not INSTALLED & set(real_path(file).parts) else None


LARGEST_SOURCE = 10_000_000  # bytes of a file of Python
UNKNOWN = "unknown"  # version of what has no source
_PLAIN = (str, bytes, int, float, complex, tuple, type(None))
_files: dict[str, str] = {}
_digests: dict[str, str] = {}  # of the source that each module was made from
_origins: dict[int, tuple[Callable[[], Any], str]] = {}  # by id: the object, and the version of the module that made it
_imported: dict[str, tuple[Any, str]] = {}  # what Python noted when it last imported a module, and the digest then


def load_object(spec: str, kind: str) -> tuple[Any, ModuleType]:
    """What `spec` names, and the module it comes from; `kind` is what it should be, for the words of an error.

    >>> load_object("math:tau", "number")[0] > 6
    True
    """
    module_name, _, attribute = spec.rpartition(":")
    if module_name == GIVEN:
        if attribute not in _given:
            raise InputError(
                f"the {kind} {attribute} was given as an object to another process",
                fix="write it into a file and give file.py:name, or run with jobs=1",
            )
        return _given[attribute], _home(_given[attribute]) or sys.modules[__name__]
    module = _module(module_name, spec, kind)
    source_version(module)  # notes what is imported now, before it may change
    named: Any = module
    for part in attribute.split("."):
        if not hasattr(named, part):
            raise InputError(f"{module_name} has no {attribute!r}", fix=f"give the {kind} as module:name, file.py:name")
        named = getattr(named, part)
    return named, module


GIVEN = "given"  # in place of a module: what was given in this process as an object
_given: dict[str, Any] = {}


def spec_of(thing: Any) -> Any:
    """The name by which a function, class or object can be loaded: `module:name` where any process finds it there, else
    `given:name`, which this process alone knows. Names, and lists of them, stay as they are.

    >>> spec_of("campplus"), spec_of(["campplus", find_imports]), spec_of(lambda samples: samples)
    ('campplus', ['campplus', 'veilmeter.core.user_code:find_imports'], 'given:lambda')
    """
    if isinstance(thing, list | tuple):
        return [spec_of(item) for item in thing]
    if thing is None or isinstance(thing, str | Path):
        return thing
    made_from = getattr(thing, "__wrapped__", thing)
    name = getattr(made_from, "__qualname__", None)
    home = sys.modules.get(getattr(made_from, "__module__", None) or "")
    if name is not None and home is not None and home.__name__ != "__main__":
        there = getattr(home, name, None)
        # A user's file is run again when it is named again, which makes new objects of the same code.
        if there is thing or (home.__name__ in _files and type(there) is type(thing)):
            return f"{home.__name__}:{name}"
    label = str(name or getattr(thing, "name", "") or type(thing).__name__).rpartition(".")[2]
    label = "".join(letter for letter in label if letter.isalnum() or letter in "_-") or "object"
    _given[label] = thing
    return f"{GIVEN}:{label}"


def takes_nothing(function: Callable[..., Any]) -> bool:
    """Whether a function takes no argument but `offline`: then it makes something, as it can't be given samples."""
    return parameters_of(function) <= {"offline"} if _has_signature(function) else False


def parameters_of(function: Callable[..., Any]) -> set[str]:
    """The names of a function's or a class's parameters, as far as Python knows them."""
    return set(inspect.signature(function).parameters) if _has_signature(function) else set()


def _has_signature(function: Callable[..., Any]) -> bool:
    try:
        inspect.signature(function)
    except (TypeError, ValueError):
        return False
    return True


def source_version(*things: Any) -> str:
    """A hash of the source of modules, or of those that define functions or classes, and of the user-supplied modules
    that they import: what was computed with another version is computed again."""
    modules = dict.fromkeys(map(_home, things))
    versions = [_module_version(module) for module in modules if module is not None]
    return versions[0] if len(versions) == 1 else _digest("\n".join(versions).encode()) if versions else UNKNOWN


def note_origin(thing: Any, module: ModuleType | None) -> None:
    """Notes which module made an object: its code counts too, however the object's own class is called."""
    if module is not None and (version := foreign_version(module)):
        try:
            kept: Callable[[], Any] = ref(thing)
        except TypeError:  # not every class allows that
            kept = partial(_itself, thing)
        _origins[id(thing)] = kept, version


def _itself(thing: Any) -> Any:
    return thing


def version_of(thing: Any) -> str:
    """The version of an extractor, recognizer or anonymizer, with a hash of its code if it is user-supplied: results of
    the old code must not be reused when somebody changes the code and forgets the version."""
    kept, origin = _origins.get(id(thing), (None, ""))
    codes = dict.fromkeys((foreign_version(type(thing)), origin if kept is not None and kept() is thing else ""))
    return "+".join([str(thing.version), *filter(None, codes)])


def foreign_version(thing: Any) -> str:
    """The same of what another package or the user brings; empty for what is veilmeter's own.

    >>> foreign_version(foreign_version), len(foreign_version(hashlib.sha256)) > 0
    ('', True)
    """
    module = _home(thing)
    return "" if module is not None and module.__name__.partition(".")[0] == "veilmeter" else source_version(thing)


def _home(thing: Any) -> ModuleType | None:
    """The module that a function, a class or an object of one comes from; that of what is wrapped rather than of what
    wraps it."""
    if isinstance(thing, ModuleType):
        return thing
    while isinstance(thing, partial):
        thing = thing.func
    if callable(thing):
        thing = inspect.unwrap(thing)
    return sys.modules.get(getattr(thing, "__module__", None) or "")


def _module_version(module: ModuleType) -> str:
    name, source = module.__name__, getattr(module, "__file__", None)
    if not source or not (name in _digests or Path(source).is_file()):
        return _version_without_file(module)
    own = _digests.get(name) or _as_imported(name, Path(source))
    imported = [f"{name} {_as_imported(name, file)}" for name, file in find_imports(module).items()]
    return _digest("\n".join([own, *imported]).encode()) if imported else own


def _version_without_file(module: ModuleType) -> str:
    """By what is defined in it, as in a notebook: the code of functions and methods, and plain values except those that
    begin with an underscore, under which notebooks keep what was typed and printed."""
    known = [
        f"{name} {code}"
        for name, value in sorted(vars(module).items())
        if (code := _as_text(value, module.__name__)) and not (name.startswith("_") and isinstance(value, _PLAIN))
    ]
    return _digest("\n".join(known).encode("utf-8", "surrogatepass")) if known else UNKNOWN


def _as_text(value: Any, module: str) -> str:
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, frozenset):
        return repr(sorted(map(repr, value)))
    if isinstance(value, CodeType):
        return repr((value.co_code, value.co_names, [_as_text(part, module) for part in value.co_consts]))
    for wrapped in ("__func__", "fget", "func"):  # methods of a class, properties, and what is computed once
        value = getattr(value, wrapped, value)
    if getattr(value, "__module__", None) != module:
        return ""
    if isinstance(value, type):
        return repr([(name, _as_text(part, module)) for name, part in sorted(vars(value).items())])
    code = getattr(value, "__code__", None)
    return repr((_as_text(code, module), getattr(value, "__defaults__", None))) if code is not None else ""


def _as_imported(name: str, file: Path) -> str:
    """The digest of what a module was made from, as far as we can know it: of its file when we first saw it."""
    digest, spec = _digest(file.read_bytes()), getattr(sys.modules.get(name), "__spec__", None)
    noted = _imported.setdefault(name, (spec, digest))
    if noted[0] is not spec:  # imported since, or again
        _imported[name] = spec, digest
    elif spec is not None and noted[1] != digest:
        raise InputError("this module has changed since Python imported it", path=file, fix="restart Python")
    return digest


def files_to_load() -> tuple[str, ...]:
    """The files that this process has loaded as `file.py`; another process must load them before it unpickles."""
    return tuple(_files.values())


def load_files(files: tuple[str, ...]) -> None:
    for file in files:
        if _name(Path(file)) not in sys.modules:
            _module_of_file(Path(file), "code")


def _module(name: str, spec: str, kind: str) -> ModuleType:
    """An untrusted module may raise anything while it is imported."""
    with foreign_errors(f"{kind} {spec} can't be imported"):
        try:
            if name.endswith(".py"):
                return _module_of_file(Path(name), kind)
            # A module beside the user's work is found too, after everything that is installed.
            if (here := os.getcwd()) not in sys.path:
                sys.path.append(here)
            return _as_its_file_is(importlib.import_module(name))
        except ModuleNotFoundError as error:
            raise InputError(
                f"{kind} {spec} can't be imported: no module {error.name!r}",
                fix="install what is missing, or put its folder on PYTHONPATH",
            ) from None


def _module_of_file(path: Path, kind: str) -> ModuleType:
    check_input(path, most=LARGEST_SOURCE)
    loader = _SourceLoader(_name(path), str(path))
    spec = importlib.util.spec_from_file_location(_name(path), path, loader=loader)
    if spec is None or spec.loader is None:
        raise InputError(f"the {kind}'s file can't be loaded as Python", path=path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # so that dataclasses and pickling inside it work
    spec.loader.exec_module(module)
    _files[spec.name] = str(real_path(path))
    return module


def _as_its_file_is(module: ModuleType) -> ModuleType:
    """The module, loaded again where its file has changed since it was first seen here, as it does under a notebook."""
    source = getattr(module, "__file__", None)
    if source and source.endswith(".py") and Path(source).is_file():
        digest = _digest(Path(source).read_bytes())
        if _digests.setdefault(module.__name__, digest) != digest:
            _SourceLoader(module.__name__, source).exec_module(module)
    return module


class _SourceLoader(SourceFileLoader):
    """Runs what the file says, and notes what that was. Python would run the bytecode that it kept of a file which was
    changed within the same second and has the same length."""

    digest = ""

    def get_code(self, fullname: str) -> CodeType:
        source = self.get_data(self.path)
        self.digest = _digest(source)
        return self.source_to_code(source, self.path)

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _digests[module.__name__] = self.digest  # not before: what fails is still the old code


def _digest(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()[:16]


def _name(path: Path) -> str:
    return f"veilmeter_own_{path.stem}_{hashlib.sha256(str(real_path(path)).encode()).hexdigest()[:12]}"
