"""Measures that other packages add: computed where their material is, kept by what they depend on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.user_code import source_version
from veilmeter.metrics.measure import InputKind, Measure
from veilmeter.metrics.registry import MEASURES, computed


@dataclass(frozen=True, slots=True)
class AddedMeasure:
    """A measure by name, with a hash of the code that computes it: other code is another measure."""

    name: str
    version: str

    @classmethod
    def of(cls, measure: Measure) -> AddedMeasure:
        return cls(measure.name, source_version(measure.compute))


def added_measures(kind: InputKind) -> tuple[AddedMeasure, ...]:
    """Those that installed packages add for this kind of material."""
    return tuple(AddedMeasure.of(measure) for measure in MEASURES.of_kind(kind))


def added_estimates(added: Sequence[AddedMeasure], *material: Any) -> tuple[dict[str, list[Estimate]], list[str]]:
    """By measure, what each gives for this material, and why some give nothing."""
    measured: dict[str, list[Estimate]] = {}
    reasons: list[str] = []
    for measure in added:
        try:
            for point in computed(MEASURES[measure.name], *material):
                measured.setdefault(point.name, []).append(point)
        except InputError as error:
            reasons.append(f"{measure.name}: {error}")
    return measured, reasons
