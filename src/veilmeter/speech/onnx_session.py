"""ONNX Runtime sessions, opened one way everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from veilmeter.core.errors import InputError, missing_extra


def open_session(path: str | Path) -> Any:
    """An ONNX Runtime session with one thread: cores are used by processes, and one thread is always repeatable."""
    runtime = import_runtime()
    if not Path(path).is_file():
        raise InputError("there is no such model", path=path)
    try:
        return runtime.InferenceSession(str(path), session_options(), providers=["CPUExecutionProvider"])
    except Exception as error:  # ONNX Runtime's own types are not public
        raise InputError(f"this ONNX model can't be loaded: {first_line(error)}", path=path) from None


def session_options() -> Any:
    """One thread, and no remarks about the model on standard error."""
    options = import_runtime().SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return options


def import_runtime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise missing_extra("onnxruntime", "audio") from None
    return onnxruntime


def first_line(error: Exception) -> str:
    """What ONNX Runtime said, without the pages that follow."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]
