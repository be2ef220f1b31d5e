"""Settings in a TOML file: the options of the command by the same names, paths relative to the file."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError

LARGEST = 1_000_000  # bytes
SOURCES = ("original", "anonymized", "attacker_run", "anonymized_again", "train_original", "train_anonymized",
           "train_similar")  # fmt: skip
FILES = ("scores", "trials", "enroll", "enrol", "plda", "mean", "lda")


def read_toml(path: str | Path) -> dict[str, Any]:
    """The options in a TOML file; relative paths in it are relative to the file."""
    file = Path(path)
    try:
        if file.stat().st_size > LARGEST:
            raise InputError("this is too large for a configuration file", path=path)
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(error.strerror or str(error), path=path) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"this is no TOML: {error}", path=path) from None
    values = _with_underscores(values, file, "")
    _place(values, ("root", "out", "vpc", *SOURCES, *FILES), file.parent)
    if "extractor" in values:
        given = values["extractor"]
        several = given if isinstance(given, list) else [given]
        values["extractor"] = [
            "onnx:" + str(file.parent / spec.removeprefix("onnx:"))
            if isinstance(spec, str) and spec.startswith("onnx:")
            else spec
            for spec in several
        ]
    if isinstance(values.get("attackers"), dict):
        for name, table in values["attackers"].items():
            if isinstance(table, dict):
                values["attackers"][name] = _with_underscores(table, file, f"attackers.{name}: ")
                _place(values["attackers"][name], (*SOURCES, *FILES), file.parent)
    return values


def _with_underscores(values: dict[str, Any], file: Path, where: str) -> dict[str, Any]:
    """Keys as Python spells them; one that is there in both spellings is an error."""
    spelled: dict[str, Any] = {}
    for key, value in values.items():
        name = key.replace("-", "_")
        if name in spelled:
            raise InputError(f"{where}{name} is given twice, as {name} and as {name.replace('_', '-')}", path=file)
        spelled[name] = value
    return spelled


def _place(values: dict[str, Any], keys: tuple[str, ...], folder: Path) -> None:
    """Paths under these keys as seen from here."""

    def placed(value: Any) -> Any:
        if isinstance(value, str):
            return str(folder / value)  # an absolute path stays what it is
        return [placed(item) for item in value] if isinstance(value, list) else value

    for key in keys:
        if key in values:
            values[key] = placed(values[key])
