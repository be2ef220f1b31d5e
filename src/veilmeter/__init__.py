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
    from veilmeter import calibration, inversion, metrics
    from veilmeter.assessment import Assessment, assess
    from veilmeter.calibration import logistic, pav
    from veilmeter.corpus import Corpus, Utterance, read_corpus
    from veilmeter.embeddings import Embeddings
    from veilmeter.formats.vectors import read_embeddings, write_embeddings
    from veilmeter.metrics.linkability import linkability
    from veilmeter.metrics.population import population_linkability
    from veilmeter.metrics.similarity import similarity
    from veilmeter.metrics.singling_out import singling_out
    from veilmeter.metrics.summary import measure_scores
    from veilmeter.metrics.verification import cllr, d_sys, eer, min_cllr, tpr_at_fpr
    from veilmeter.metrics.zebra import zebra
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
    "calibration",
    "cllr",
    "d_sys",
    "eer",
    "inversion",
    "linkability",
    "logistic",
    "measure_scores",
    "metrics",
    "min_cllr",
    "pav",
    "population_linkability",
    "read_corpus",
    "read_embeddings",
    "read_scores",
    "similarity",
    "singling_out",
    "tpr_at_fpr",
    "write_embeddings",
    "write_report",
    "zebra",
]

_WHERE = {
    "Assessment": "assessment",
    "Corpus": "corpus",
    "Embeddings": "embeddings",
    "Scores": "scores",
    "Utterance": "corpus",
    "assess": "assessment",
    "cllr": "metrics.verification",
    "d_sys": "metrics.verification",
    "eer": "metrics.verification",
    "linkability": "metrics.linkability",
    "logistic": "calibration",
    "measure_scores": "metrics.summary",
    "min_cllr": "metrics.verification",
    "pav": "calibration",
    "population_linkability": "metrics.population",
    "read_corpus": "corpus",
    "read_embeddings": "formats.vectors",
    "read_scores": "scores",
    "similarity": "metrics.similarity",
    "singling_out": "metrics.singling_out",
    "tpr_at_fpr": "metrics.verification",
    "write_embeddings": "formats.vectors",
    "write_report": "report",
    "zebra": "metrics.zebra",
}
_MODULES = {"calibration", "inversion", "metrics"}


def __getattr__(name: str) -> Any:
    if name not in _WHERE and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    found = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
