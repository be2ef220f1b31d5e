"""The device that models run on: the processor, or a GPU of CUDA.

The choice holds for this process and for the workers it starts: they inherit its environment. One process uses a GPU at
a time. What a GPU computes differs from the processor in the last digits, so that its name is part of the version of
every model that it ran, and nothing that one computed is kept as the other's.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, distribution

from veilmeter.core.errors import InputError

DEVICES = ("auto", "cpu", "cuda")
VARIABLE = "VEILMETER_DEVICE"
CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
BATCH = 32  # pieces of one length that a GPU is given at once


def choose_device(name: str) -> None:
    """Use this device from now on.

    Parameters
    ----------
    name : str
        `cpu`, `cuda`, or `auto`: a GPU where ONNX Runtime can use one, else the processor.

    Raises
    ------
    InputError
        If there is no such device, or no GPU for `cuda`.

    Examples
    --------
    >>> choose_device("cpu")
    >>> chosen_device(), find_providers(["CUDAExecutionProvider", "CPUExecutionProvider"])
    ('cpu', ['CPUExecutionProvider'])
    >>> choose_device("auto")
    """
    if name not in DEVICES:
        raise InputError(f"unknown device {name!r}", fix=f"choose from {', '.join(DEVICES)}")
    if name == "cuda" and not (runtime_has_gpu() or torch_has_gpu()):
        raise InputError(
            "--device cuda: neither ONNX Runtime nor torch can use a GPU here",
            fix="install onnxruntime-gpu and torch for your version of CUDA, or leave it out",
        )
    os.environ[VARIABLE] = name


def chosen_device() -> str:
    """The device that was chosen; `auto` where none was."""
    name = os.environ.get(VARIABLE, "auto")
    return name if name in DEVICES else "auto"


def find_providers(available: Sequence[str]) -> list[str]:
    """The providers to ask ONNX Runtime for, of those that it has; the processor does what a GPU can't."""
    if chosen_device() == "cpu" or CUDA not in available:
        return [CPU]
    return [CUDA, CPU]


def runtime_has_gpu() -> bool:
    """Whether ONNX Runtime can use a GPU. Only its package for GPUs is imported to find out."""
    try:
        distribution("onnxruntime-gpu")
        import onnxruntime
    except (PackageNotFoundError, ImportError):
        return False
    return CUDA in onnxruntime.get_available_providers()


def torch_has_gpu() -> bool:
    try:
        import torch
    except ImportError:
        return False
    return bool(torch.cuda.is_available())


def torch_device() -> str:
    """`cuda` or `cpu`, for torch and what is built like it."""
    return "cuda" if chosen_device() != "cpu" and torch_has_gpu() else "cpu"


def is_gpu_used() -> bool:
    """Whether models run on a GPU: then one process works, and not one per core."""
    return chosen_device() == "cuda" or (chosen_device() == "auto" and runtime_has_gpu())


def device_mark() -> str:
    """The suffix that the device adds to the version of a model that ONNX Runtime runs."""
    return "-cuda" if chosen_device() != "cpu" and runtime_has_gpu() else ""
