"""Errors that say what is wrong, where, and how to fix it; also which extra brings a missing library."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path


class VeilmeterError(Exception):
    """Something the user can fix. The command prints it and exits with 2; it never shows a traceback.

    Attributes
    ----------
    what : str
        The problem.
    fix : str or None
        How to fix it.

    Examples
    --------
    >>> print(InputError("the score is not a number", path="scores.txt", line=7, fix="remove the line"))
    scores.txt:7: the score is not a number (remove the line)
    """

    def __init__(
        self, what: str, *, path: str | Path | None = None, line: int | None = None, fix: str | None = None
    ) -> None:
        super().__init__(what)
        self.what = what
        self.path = None if path is None else str(path)
        self.line = line
        self.fix = fix

    def __str__(self) -> str:
        place = "" if self.path is None else self.path + ("" if self.line is None else f":{self.line}") + ": "
        return f"{place}{self.what}" + (f" ({self.fix})" if self.fix else "")

    def __reduce__(self) -> tuple[object, ...]:  # errors cross process borders
        return (_rebuild, (type(self), self.what, self.path, self.line, self.fix))


def _rebuild(
    kind: type[VeilmeterError], what: str, path: str | None, line: int | None, fix: str | None
) -> VeilmeterError:
    return kind(what, path=path, line=line, fix=fix)


class InputError(VeilmeterError):
    """A file, an array or an option that can't be used as it is.

    Attributes
    ----------
    what, fix : str
        The problem, and how to fix it.
    path, line
        Where, if that is known.
    """


class MissingInput(InputError):
    """A file that is not there."""


class MissingExtra(VeilmeterError):
    """A library of an extra that is not installed.

    >>> print(missing_extra("soundfile", "audio"))
    soundfile is needed for this and is not installed (run: pip install 'veilmeter[audio]')
    """


class Stopped(SystemExit):
    """A worker was asked to stop. Unlike the `sys.exit` of user-supplied code, this always ends the process."""


def describe_error(error: BaseException) -> str:
    """The type and the text of what user-supplied code or a library raised; even its text may fail.

    >>> describe_error(ValueError("no vector")), describe_error(SystemExit())
    ('ValueError: no vector', 'SystemExit')
    """
    try:
        text = str(error)
    except Exception:
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@contextmanager
def foreign_errors(what: str) -> Iterator[None]:
    """Turn whatever user-supplied code raises into one line, `sys.exit` included: a plug-in must not decide about the
    exit code of a run. Our own errors and requests to stop pass.

    >>> with foreign_errors("the measure 'm' failed"):
    ...     raise SystemExit(0)
    Traceback (most recent call last):
        ...
    veilmeter.core.errors.InputError: the measure 'm' failed: SystemExit: 0
    """
    try:
        yield
    except (VeilmeterError, KeyboardInterrupt, GeneratorExit, Stopped):
        raise
    except BaseException as error:
        raise InputError(f"{what}: {describe_error(error)}") from error


def missing_extra(library: str, extra: str) -> MissingExtra:
    return MissingExtra(
        f"{library} is needed for this and is not installed", fix=f"run: pip install 'veilmeter[{extra}]'"
    )


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing wrong with an input, found by `veilmeter check` or skipped on the way and counted.

    `kind` is a short stable name such as "nan-score", the same for every place where it happens.
    """

    kind: str
    what: str
    path: str
    line: int | None = None
    fix: str = ""
    fatal: bool = True

    def __str__(self) -> str:
        place = self.path + ("" if self.line is None else f":{self.line}")
        return f"{place}: {self.what}" + (f" ({self.fix})" if self.fix else "")


def refuse(problems: Iterable[Problem]) -> None:
    """Where nothing may be left out: the first problem that leaves something out is an error.

    >>> refuse([Problem("nan", "it holds NaN", "a.wav"), Problem("nan", "it holds NaN", "b.wav")])
    Traceback (most recent call last):
    ...
    veilmeter.core.errors.InputError: a.wav: it holds NaN; there is 1 more problem
    """
    fatal = [problem for problem in problems if problem.fatal]
    if fatal:
        first, more = fatal[0], len(fatal) - 1
        others = f"; there {'is' if more == 1 else 'are'} {more} more problem{'' if more == 1 else 's'}"
        what = first.what + (others if more else "")
        raise InputError(what, path=first.path, line=first.line, fix=first.fix or None)


# By the name that is imported: the library's name in the package index and its extra in pyproject.toml.
LIBRARIES = {
    "altair": ("altair", "report"),
    "vl_convert": ("vl-convert-python", "report"),
    "jinja2": ("jinja2", "report"),
    "markupsafe": ("jinja2", "report"),
    "typst": ("typst", "report"),
    "docx": ("python-docx", "report"),
    "torch": ("torch", "audio"),
    "soundfile": ("soundfile", "audio"),
    "soxr": ("soxr", "audio"),
    "onnx": ("onnx", "audio"),
    "onnxruntime": ("onnxruntime", "audio"),
    "safetensors": ("safetensors", "audio"),
    "pyworld": ("pyworld", "audio"),
    "espeakng_loader": ("espeakng-loader", "audio"),
    "jiwer": ("jiwer", "audio"),
    "whisper_normalizer": ("whisper-normalizer", "audio"),
    "pocketsphinx": ("pocketsphinx", "audio"),
    "ctranslate2": ("ctranslate2", "whisper"),
    "av": ("av", "media"),
    "h5py": ("h5py", "h5"),
    "distributed": ("distributed", "cluster"),
    "dask": ("dask", "cluster"),
    "dask_jobqueue": ("dask-jobqueue", "cluster"),
    "cryptography": ("cryptography", "cluster"),
    "yaml": ("dask", "cluster"),
    "pandas": ("pandas", "pandas"),
}


def need(*modules: str) -> None:
    """Refuses to go on where one of these is not installed, and says what to install; it imports nothing.

    >>> need("json")
    """
    for module in modules:
        if find_spec(module) is None:
            raise missing_extra(*LIBRARIES[module])


def explain_import_error(error: ModuleNotFoundError) -> MissingExtra | None:
    """The error for an import that failed because an extra is missing; None where it failed for another reason.

    >>> print(explain_import_error(ModuleNotFoundError("No module named 'docx'", name="docx")))
    python-docx is needed for this and is not installed (run: pip install 'veilmeter[report]')
    """
    library = LIBRARIES.get((error.name or "").partition(".")[0])
    return None if library is None else missing_extra(*library)
