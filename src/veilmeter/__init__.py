"""veilmeter: measure what a voice anonymizer still gives away.

The names below are the public ones. Those that need more than the standard library are imported when they are first
used, so that `import veilmeter` stays light.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veilmeter._version import __version__
from veilmeter.errors import InputError, VeilmeterError
from veilmeter.estimate import Estimate

if TYPE_CHECKING:
    from veilmeter.assessment import Assessment, assess
    from veilmeter.corpus import Corpus, Utterance, read_corpus
    from veilmeter.embeddings import Embeddings
    from veilmeter.formats.vectors import read_embeddings, write_embeddings
    from veilmeter.metrics.linkability import linkability
    from veilmeter.metrics.similarity import similarity
    from veilmeter.metrics.singling_out import singling_out
    from veilmeter.metrics.summary import measure_scores
    from veilmeter.report import write_report
    from veilmeter.scores import Scores, read_scores

__all__ = [
    "Assessment",
    "Corpus",
    "Embeddings",
    "Estimate",
    "InputError",
    "Scores",
    "Utterance",
    "VeilmeterError",
    "__version__",
    "assess",
    "linkability",
    "measure_scores",
    "read_corpus",
    "read_embeddings",
    "read_scores",
    "similarity",
    "singling_out",
    "write_embeddings",
    "write_report",
]

_WHERE = {
    "Assessment": "assessment",
    "Corpus": "corpus",
    "Embeddings": "embeddings",
    "Scores": "scores",
    "Utterance": "corpus",
    "assess": "assessment",
    "linkability": "metrics.linkability",
    "measure_scores": "metrics.summary",
    "read_corpus": "corpus",
    "read_embeddings": "formats.vectors",
    "read_scores": "scores",
    "similarity": "metrics.similarity",
    "singling_out": "metrics.singling_out",
    "write_embeddings": "formats.vectors",
    "write_report": "report",
}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    found = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
