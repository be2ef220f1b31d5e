"""Runs side by side: what one system gives away more than another, paired by speaker.

Differences are of the second, third... run minus the first. For scores the same people are drawn in every resample of
both runs, and for Linkability each speaker is compared with themselves, so that what the speakers share cancels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.intervals import clustered_t, percentile
from veilmeter.data.scores import Scores
from veilmeter.metrics.registry import measure
from veilmeter.metrics.scores.summary import prepare, replicates_of, values
from veilmeter.results.run_folder import read_results

SCORE_MEASURES = ("eer", "d_ece", "l_w", "min_cllr")
OTHER_PARTS = {"similarity": ("deid", "g_vd"), "inversion": ("top1",)}


@dataclass(frozen=True, eq=False)
class Run:
    name: str
    folder: Path
    results: Any


@dataclass(frozen=True, eq=False)
class Comparison:
    """`values` and `differences` by what is compared, such as "informed: eer"; one entry a run, or a run but the "
    "first."""

    runs: tuple[Run, ...]
    values: dict[str, list[Estimate]]
    differences: dict[str, list[Estimate]]
    warnings: tuple[str, ...]


def compare(folders: Sequence[str | Path], *, resamples: int = 1000, seed: int = 0) -> Comparison:
    """The runs in these folders; attackers and measures that all of them have."""
    if len(folders) < 2:
        raise InputError("one run can't be compared", fix="give two or more folders")
    runs = tuple(_named([Run("", Path(folder), read_results(folder)) for folder in folders]))
    # Not the yardstick on original speech: it says nothing about a system.
    attackers = [name for name in runs[0].results["attackers"] if name != "original"]
    shared = [name for name in attackers if all(name in run.results["attackers"] for run in runs)]
    comparison = Comparison(runs, {}, {}, tuple(_doubts(runs)))
    for attacker in shared:
        _compare_scores(comparison, attacker, resamples, seed)
        _compare_links(comparison, attacker)
    for part, names in OTHER_PARTS.items():
        for name in names:
            _compare_part(comparison, part, name)
    if not comparison.values:
        raise InputError("the runs have nothing in common that could be compared")
    return comparison


def _named(runs: Sequence[Run]) -> list[Run]:
    """A short name for each: the title it was given, or its folder's name."""
    given = [str(run.results["parameters"].get("title") or "") for run in runs]
    names = given if all(given) and len(set(given)) == len(given) else [run.folder.name for run in runs]
    if len(set(names)) < len(names):
        names = [str(run.folder) for run in runs]
    return [Run(name, run.folder, run.results) for name, run in zip(names, runs, strict=True)]


def _doubts(runs: Sequence[Run]) -> list[str]:
    found = [f"{run.name} is not trustworthy" for run in runs if not run.results["verdict"]["trustworthy"]]
    hashes = {run.results["inputs"]["original"]["sha256"] for run in runs}
    if len(hashes) > 1:
        found.append("the runs do not assess the same original speech: differences may come from that")
    # Where attackers get what they anonymize from may differ: an anonymizer without draws needs no second run.
    protocols = [{k: v for k, v in run.results["protocol"].items() if k != "anonymized_enrolment"} for run in runs]
    if any(protocol != protocols[0] for protocol in protocols):
        found.append("the runs differ in how enrolment and trials were chosen")
    return found


def _compare_scores(comparison: Comparison, attacker: str, resamples: int, seed: int) -> None:
    """Paired by speaker: the same draws of the same people for every run."""
    sets = [_scores(run.folder, attacker) for run in comparison.runs]
    found = [run.results["attackers"][attacker]["estimates"] for run in comparison.runs]
    names = [name for name in SCORE_MEASURES if all(name in estimates for estimates in found)]
    given = any("scores as given" in str(run.results["attackers"][attacker].get("backend")) for run in comparison.runs)
    samples: list[Mapping[str, Any]] = []
    people = {tuple(scores.names) for scores in sets if scores is not None}
    if all(scores is not None for scores in sets) and len(people) == 1 and not given:
        for scores in sets:
            assert scores is not None
            data = prepare(scores.targets, scores.impostors)
            spread = replicates_of(scores, data, resamples, seed)
            samples.append({"points": values(data), "draws": spread.samples})
    for name in names:
        title = f"{attacker}: {measure(name).label}"
        comparison.values[title] = [
            _estimate(name, one[name], run.name) for one, run in zip(found, comparison.runs, strict=True)
        ]
        comparison.differences[title] = []
        for number, run in enumerate(comparison.runs[1:], 1):
            interval: tuple[float, float] | None
            if samples:
                value = samples[number]["points"][name] - samples[0]["points"][name]
                drawn = np.asarray(samples[number]["draws"][name]) - np.asarray(samples[0]["draws"][name])
                interval, how = percentile(drawn[np.isfinite(drawn)]), "paired by speaker"
            else:
                value, interval, how = _unpaired(found[0][name], found[number][name])
            comparison.differences[title].append(_difference(name, value, interval, how, run.name))


def _compare_links(comparison: Comparison, attacker: str) -> None:
    """Each speaker's own rate of being linked, in every run."""
    tables = [_links(run.folder, attacker) for run in comparison.runs]
    if any(table is None for table in tables):
        return
    known = [table for table in tables if table is not None]
    for key in known[0]:
        if not all(key in table for table in known):
            continue
        length, among = key
        rates = [table[key] for table in known]
        speakers = sorted(set.intersection(*(set(rate) for rate in rates)))
        if len(speakers) < 2:
            continue
        title = f"{attacker}: Linkability among {among}, L = {length}"
        rows = np.array([[rate[speaker] for speaker in speakers] for rate in rates])
        comparison.values[title] = [
            _link_estimate(run, attacker, length, among, float(row.mean()))
            for run, row in zip(comparison.runs, rows, strict=True)
        ]
        comparison.differences[title] = [
            _difference(
                "linkability",
                float((row - rows[0]).mean()),
                clustered_t(row - rows[0], np.arange(len(speakers))),
                "paired by speaker",
                run.name,
            )
            for run, row in zip(comparison.runs[1:], rows[1:], strict=True)
        ]


def _link_estimate(run: Run, attacker: str, length: int, among: int, value: float) -> Estimate:
    for one in run.results["attackers"][attacker]["estimates"].get("linkability", []):
        if one.get("length") == length and one.get("speakers") == among:
            return _estimate("linkability", one, run.name)
    entry = measure("linkability")
    return Estimate(name="linkability", label=run.name, value=value, unit=entry.unit, better=entry.better)


def _compare_part(comparison: Comparison, part: str, name: str) -> None:
    found = []
    for run in comparison.runs:
        one = run.results.get(part, {}).get("estimates", {}).get(name)
        if isinstance(one, list):
            one = max(one, key=lambda point: float(point["value"])) if one else None
        found.append(one)
    if any(one is None or not isinstance(one.get("value"), int | float) for one in found):
        return
    title = measure(name).label
    comparison.values[title] = [_estimate(name, one, run.name) for one, run in zip(found, comparison.runs, strict=True)]
    comparison.differences[title] = [
        _difference(name, *_unpaired(found[0], one), run.name)
        for one, run in zip(found[1:], comparison.runs[1:], strict=True)
    ]


def _unpaired(first: Mapping[str, Any], second: Mapping[str, Any]) -> tuple[float, tuple[float, float] | None, str]:
    """Where speakers can't be paired: as if the two intervals were independent, which is wider than they are."""
    value = float(second["value"]) - float(first["value"])
    if not first.get("interval") or not second.get("interval"):
        return value, None, "no interval"
    down = np.hypot(float(second["value"]) - second["interval"][0], first["interval"][1] - float(first["value"]))
    up = np.hypot(second["interval"][1] - float(second["value"]), float(first["value"]) - first["interval"][0])
    return value, (value - float(down), value + float(up)), "not paired"


def _estimate(name: str, form: Mapping[str, Any], run: str) -> Estimate:
    return Estimate.from_json(name, form, label=measure(name).label).with_(at={"run": run})


def _difference(name: str, value: float, interval: tuple[float, float] | None, how: str, run: str) -> Estimate:
    entry = measure(name)
    return Estimate(
        name=name,
        label=f"{entry.label}, difference",
        value=value,
        unit=entry.unit,
        interval=interval,
        null=0.0,
        method=how,
        better=entry.better,
        at={"run": run},
    )


def _scores(folder: Path, attacker: str) -> Scores | None:
    """The trials of one utterance, as the run left them; None where they were not kept."""
    import pyarrow.parquet as pq

    path = folder / "tables" / f"scores-{attacker}.parquet"
    if not path.is_file():
        return None
    table = pq.read_table(path)
    enrol = np.array(table.column("enrolment_speaker").to_pylist(), object)
    test = np.array(table.column("trial_speaker").to_pylist(), object)
    from veilmeter.data.scores import encode

    names, enrol_codes, test_codes = encode(enrol, test)
    target = table.column("target").to_numpy(zero_copy_only=False)
    return Scores(table.column("score").to_numpy(), target, enrol_codes, test_codes, names, str(path), "given")


def _links(folder: Path, attacker: str) -> dict[tuple[int, int], dict[str, float]] | None:
    import pyarrow.parquet as pq

    path = folder / "tables" / "speakers.parquet"
    if not path.is_file():
        return None
    found: dict[tuple[int, int], dict[str, float]] = {}
    for row in pq.read_table(path).to_pylist():
        if row["attacker"] == attacker:
            found.setdefault((row["length"], row["among"]), {})[row["speaker"]] = row["linked"]
    return found
