"""veilmeter: measure what a voice anonymizer still gives away.

The names below are the public ones. Those that need more than the standard library are imported when they are first
used, so that `import veilmeter` stays light.
"""

from __future__ import annotations

import os as _os
import sys as _sys

from veilmeter._version import __version__

TYPE_CHECKING = False  # without `typing`, which takes longer to import than all the rest here
if TYPE_CHECKING:
    from typing import Any

    from veilmeter import metrics
    from veilmeter.anonymizers.anonymize_corpus import anonymize_corpus
    from veilmeter.assessment.signature import assess
    from veilmeter.assessment.utility import measure_utility
    from veilmeter.attacks import inversion
    from veilmeter.attacks.attacker import ScoringAttacker
    from veilmeter.core.errors import InputError, VeilmeterError
    from veilmeter.core.estimate import Estimate, Estimates
    from veilmeter.data.corpus import Corpus, Utterance, read_corpus
    from veilmeter.data.embeddings import Embeddings
    from veilmeter.data.formats.vectors import read_embeddings, write_embeddings
    from veilmeter.data.scores import Scores, read_scores
    from veilmeter.demo.corpus import demo_corpus
    from veilmeter.metrics import calibration
    from veilmeter.metrics.calibration import logistic, pav
    from veilmeter.metrics.legal.linkability import Linkability, linkability
    from veilmeter.metrics.legal.population import population_linkability
    from veilmeter.metrics.legal.singling_out import SinglingOut, singling_out
    from veilmeter.metrics.measure import Measure, measure_of
    from veilmeter.metrics.scores.cllr import cllr, min_cllr
    from veilmeter.metrics.scores.d_sys import d_sys
    from veilmeter.metrics.scores.eer import eer
    from veilmeter.metrics.scores.summary import measure
    from veilmeter.metrics.scores.tpr import tpr_at_fpr
    from veilmeter.metrics.scores.zebra import zebra
    from veilmeter.metrics.similarity.matrices import Similarity, similarity
    from veilmeter.report import write_report
    from veilmeter.report.figures.overlays import ece_profiles, save_overlays
    from veilmeter.report.figures.systems import save_system_figures
    from veilmeter.report.figures.typesetting import Typesetting
    from veilmeter.results.compare import Comparison, compare
    from veilmeter.results.gate import Gate, gate
    from veilmeter.results.limits import Limit
    from veilmeter.results.model import Results
    from veilmeter.results.run_folder import Assessment, read_results
    from veilmeter.results.system_table import SystemTable, system_table
    from veilmeter.speech.annotations import transcribe_corpus
    from veilmeter.speech.extractors.embed_corpus import embed_corpus

# ONNX Runtime's official builds send usage data to their maker unless this is set before they are loaded. It is set for
# this process and all that it starts, whatever they import first.
_RUNTIME_CAME_FIRST = "onnxruntime" in _sys.modules and _os.environ.get("ORT_DISABLE_TELEMETRY") != "1"
_os.environ["ORT_DISABLE_TELEMETRY"] = "1"
if _RUNTIME_CAME_FIRST:
    import warnings as _warnings

    _sys.modules["onnxruntime"].disable_telemetry_events()
    _warnings.warn(
        "onnxruntime was imported before veilmeter and may have sent usage data to its maker; import veilmeter first, "
        "or set ORT_DISABLE_TELEMETRY=1",
        stacklevel=2,
    )

__all__ = [
    "Assessment",
    "Comparison",
    "Corpus",
    "Embeddings",
    "Estimate",
    "Estimates",
    "Gate",
    "InputError",
    "Limit",
    "Linkability",
    "Measure",
    "Results",
    "Scores",
    "ScoringAttacker",
    "Similarity",
    "SinglingOut",
    "SystemTable",
    "Typesetting",
    "Utterance",
    "VeilmeterError",
    "__version__",
    "anonymize_corpus",
    "assess",
    "calibration",
    "cllr",
    "compare",
    "d_sys",
    "demo_corpus",
    "ece_profiles",
    "eer",
    "embed_corpus",
    "gate",
    "inversion",
    "linkability",
    "logistic",
    "measure",
    "measure_of",
    "measure_utility",
    "metrics",
    "min_cllr",
    "pav",
    "population_linkability",
    "read_corpus",
    "read_embeddings",
    "read_results",
    "read_scores",
    "save_overlays",
    "save_system_figures",
    "similarity",
    "singling_out",
    "system_table",
    "tpr_at_fpr",
    "transcribe_corpus",
    "write_embeddings",
    "write_report",
    "zebra",
]

_HOMES = {
    "Assessment": "results.run_folder",
    "Comparison": "results.compare",
    "Corpus": "data.corpus",
    "Embeddings": "data.embeddings",
    "Estimate": "core.estimate",
    "Estimates": "core.estimate",
    "Gate": "results.gate",
    "InputError": "core.errors",
    "Limit": "results.limits",
    "Linkability": "metrics.legal.linkability",
    "Measure": "metrics.measure",
    "Results": "results.model",
    "Scores": "data.scores",
    "ScoringAttacker": "attacks.attacker",
    "Similarity": "metrics.similarity.matrices",
    "SinglingOut": "metrics.legal.singling_out",
    "SystemTable": "results.system_table",
    "Typesetting": "report.figures.typesetting",
    "Utterance": "data.corpus",
    "VeilmeterError": "core.errors",
    "anonymize_corpus": "anonymizers.anonymize_corpus",
    "assess": "assessment.signature",
    "cllr": "metrics.scores.cllr",
    "compare": "results.compare",
    "d_sys": "metrics.scores.d_sys",
    "demo_corpus": "demo.corpus",
    "ece_profiles": "report.figures.overlays",
    "eer": "metrics.scores.eer",
    "embed_corpus": "speech.extractors.embed_corpus",
    "gate": "results.gate",
    "linkability": "metrics.legal.linkability",
    "logistic": "metrics.calibration",
    "measure": "metrics.scores.summary",
    "measure_of": "metrics.measure",
    "measure_utility": "assessment.utility",
    "min_cllr": "metrics.scores.cllr",
    "pav": "metrics.calibration",
    "population_linkability": "metrics.legal.population",
    "read_corpus": "data.corpus",
    "read_embeddings": "data.formats.vectors",
    "read_results": "results.run_folder",
    "read_scores": "data.scores",
    "save_overlays": "report.figures.overlays",
    "save_system_figures": "report.figures.systems",
    "similarity": "metrics.similarity.matrices",
    "singling_out": "metrics.legal.singling_out",
    "system_table": "results.system_table",
    "tpr_at_fpr": "metrics.scores.tpr",
    "transcribe_corpus": "speech.annotations",
    "write_embeddings": "data.formats.vectors",
    "write_report": "report",
    "zebra": "metrics.scores.zebra",
}
_MODULES = {"calibration": "metrics.calibration", "inversion": "attacks.inversion", "metrics": "metrics"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES and name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{_MODULES[name]}")
    attribute = getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = attribute
    return attribute


def __dir__() -> list[str]:
    return sorted(__all__)
