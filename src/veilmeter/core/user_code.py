"""Code of the user's, named as `module:function` or `file.py:function`, for extractors, recognizers and the like."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from veilmeter.core.errors import InputError, VeilmeterError


def load_object(spec: str, kind: str) -> tuple[Any, ModuleType]:
    """What `spec` names, and the module it comes from; `kind` is what it should be, for the error's words."""
    module_name, _, attribute = spec.rpartition(":")
    module = _module(module_name, spec, kind)
    try:
        found: Any = module
        for part in attribute.split("."):
            found = getattr(found, part)
    except AttributeError:
        raise InputError(f"{module_name} has no {attribute!r}", fix=f"check --{kind} module:function") from None
    return found, module


def takes_nothing(function: Callable[..., Any]) -> bool:
    """Whether a function takes no argument at all: then it makes something, as it can't be given any."""
    try:
        return not inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False


def source_version(module: ModuleType | None) -> str:
    """A hash of the module's source: what was computed with another version is computed again."""
    source = getattr(module, "__file__", None)
    if source and Path(source).is_file():
        return hashlib.sha256(Path(source).read_bytes()).hexdigest()[:16]
    return "unknown"


def _module(name: str, spec: str, kind: str) -> ModuleType:
    if name.endswith(".py"):
        path = Path(name)
        if not path.is_file():
            raise InputError(f"the {kind}'s file is not there", path=path)
        made = importlib.util.spec_from_file_location(f"veilmeter_own_{path.stem}", path)
        if made is None or made.loader is None:
            raise InputError(f"the {kind}'s file can't be loaded", path=path)
        module = importlib.util.module_from_spec(made)
        # Registered, so that dataclasses and pickling inside it work.
        sys.modules[made.name] = module
        return _run(lambda: _executed(made.loader, module), spec, kind)
    # A module beside the user's work is found too, after everything that is installed.
    here = os.getcwd()
    if here not in sys.path:
        sys.path.append(here)
    return _run(lambda: importlib.import_module(name), spec, kind)


def _executed(loader: Any, module: ModuleType) -> ModuleType:
    loader.exec_module(module)
    return module


def _run(load: Callable[[], ModuleType], spec: str, kind: str) -> ModuleType:
    try:
        return load()
    except ModuleNotFoundError as error:
        raise InputError(f"{kind} {spec}: no module {error.name!r}", fix=f"install it or mend --{kind}") from None
    except VeilmeterError:
        raise
    except Exception as error:
        raise InputError(f"{kind} {spec} can't be loaded: {type(error).__name__}: {error}") from None
