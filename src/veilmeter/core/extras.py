"""Which extra brings which library, and what to say where one is missing."""

from __future__ import annotations

from importlib.util import find_spec

from veilmeter.core.errors import MissingExtra, missing_extra

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


def explained(error: ModuleNotFoundError) -> MissingExtra | None:
    """What to tell the user where an import failed for want of an extra; None where it failed for another reason.

    >>> print(explained(ModuleNotFoundError("No module named 'docx'", name="docx")))
    python-docx is needed for this and is not installed (run: pip install 'veilmeter[report]')
    """
    library = LIBRARIES.get((error.name or "").partition(".")[0])
    return None if library is None else missing_extra(*library)
