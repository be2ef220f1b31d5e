"""What was assessed and how to repeat it, for the technical part."""

from __future__ import annotations

from veilmeter.report.masthead import duration
from veilmeter.results.model import Results

_ROLES = {
    "original": "Original speech",
    "anonymized": "Anonymized speech",
    "anonymized_again": "Second run of the anonymizer",
    "train_original": "Training speech, original",
    "train_anonymized": "Training speech, anonymized",
    "train_similar": "Training speech of a similar anonymizer",
}
_NOT_SHOWN = ("seed", "title", "notice")  # which stand elsewhere


def facts(results: Results) -> list[tuple[str, str]]:
    rows: list[tuple[str, str]] = []
    for role, entry in results.inputs.items():
        title = _ROLES.get(role, role.replace("_", " ").capitalize())
        hours = f", {duration(entry.hours)}" if entry.hours else ""
        rows.append((title, f"{entry.speakers:,} speakers, {entry.utterances:,} recordings{hours}"))
    rows.append(("Recordings in both forms", f"{results.matching.matched:,}"))
    left_out = {reason: count for reason, count in results.matching.unmatched.items() if count}
    if left_out:
        reasons = ", ".join(f"{reason.replace('_', ' ')}: {count:,}" for reason, count in left_out.items())
        rows.append(("Recordings left out", reasons))
    extractor = results.extractor
    heard = f"{extractor.get('name', '')} {extractor.get('version', '')}".strip() if extractor else "given vectors"
    rows.append(("Attackers' recognizer", heard))
    protocol = results.protocol
    rows.append(("Enrollment and trials", f"{protocol.split}; training: {protocol.training}"))
    if protocol.anonymized_enrollment:
        rows.append(("What attackers anonymized", protocol.anonymized_enrollment))
    rows.append(("Attackers run", ", ".join(results.attacks)))
    return rows


def parameters(results: Results) -> list[tuple[str, str]]:
    """What was given, and the digests of the inputs."""
    rows = [("veilmeter", results.version), ("seed", str(results.seed))]
    for name, value in results.settings.items():
        if value in (None, "", [], (), {}) or name in _NOT_SHOWN:
            continue
        rows.append(
            (name.replace("_", " "), ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value))
        )
    rows += [(f"sha256 of {role}", entry.sha256) for role, entry in results.inputs.items() if entry.sha256]
    return rows
