"""Registered measures as tasks need them: by name, with the version of their code where it is not veilmeter's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.findings import Finding, Reference, warning
from veilmeter.core.user_code import foreign_version
from veilmeter.metrics.measure import InputKind, Measure
from veilmeter.metrics.registry import MEASURES, computed


@dataclass(frozen=True, slots=True)
class MeasureVersion:
    """A measure by name, with a hash of the code of another package that computes it: other code is another measure."""

    name: str
    version: str

    @classmethod
    def of(cls, measure: Measure) -> MeasureVersion:
        functions = measure.functions.values()
        return cls(measure.name, "".join(dict.fromkeys(map(foreign_version, functions))))


def measure_versions(kind: InputKind) -> tuple[MeasureVersion, ...]:
    """The registered measures that are computed from this kind of material."""
    return tuple(MeasureVersion.of(measure) for measure in MEASURES.of_kind(kind))


def computed_estimates(
    measures: Sequence[MeasureVersion], *material: Any
) -> tuple[dict[str, list[Estimate]], list[Finding]]:
    """By measure, what each gives for this material, and why some give nothing."""
    measured: dict[str, list[Estimate]] = {}
    reasons: list[Finding] = []
    for measure in measures:
        try:
            for point in computed(MEASURES[measure.name], *material):
                measured.setdefault(point.name, []).append(point)
        except InputError as error:
            reasons.append(warning("measure_not_possible", measure=measure.name, reason=Reference("text", str(error))))
    return measured, reasons
