"""What the report's first lines rest on: a limit that was chosen before the run, and the anonymizer's name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.results.sample_results import sample

from veilmeter.anonymizers.manifest import Entry, write_manifest
from veilmeter.assessment.inputs import anonymizer_facts
from veilmeter.assessment.run import refuse_late_threshold
from veilmeter.assessment.settings import make_settings
from veilmeter.core.errors import InputError
from veilmeter.results.run_folder import write_results


def test_a_limit_can_not_be_added_once_there_are_results(tmp_path: Path) -> None:
    refuse_late_threshold(tmp_path, 9.0)  # nothing was measured yet
    results = sample()
    write_results(tmp_path, results)
    refuse_late_threshold(tmp_path, None)
    with pytest.raises(InputError, match="not chosen beforehand"):
        refuse_late_threshold(tmp_path, 9.0)
    write_results(tmp_path, replace(results, settings={**results.settings, "threshold": 9.0}))
    refuse_late_threshold(tmp_path, 9.0)  # the run is repeated as it was
    with pytest.raises(InputError, match="limit 20 %"):
        refuse_late_threshold(tmp_path, 20.0)
    (tmp_path / "results.json").write_text("{")
    with pytest.raises(InputError, match="not chosen beforehand"):
        refuse_late_threshold(tmp_path, 9.0)


@pytest.mark.parametrize("threshold", [0, 1, 0.09, 100, "-9%", "nine"])
def test_a_limit_is_a_percentage(threshold: float | str) -> None:
    with pytest.raises(InputError, match="threshold"):
        make_settings({"threshold": threshold})


def entry(utterance: str, **changes: Any) -> Entry:
    common = {"speaker": "a", "source": "s", "source_sha256": None, "output": "o", "output_sha256": None}
    made_by = {"system": "mcadams", "version": "1", "parameters": {"alpha": 0.8}}
    return Entry(utterance=utterance, **{**common, **made_by, **changes})


def test_the_manifest_names_the_anonymizer_and_what_all_recordings_share(tmp_path: Path) -> None:
    settings = make_settings({})
    folder, manifest = tmp_path / "out", tmp_path / "out.manifest.jsonl"
    assert anonymizer_facts([folder], settings) == {}
    write_manifest(manifest, [entry("u1", parameters={"alpha": 0.8, "draw": 1}),
                              entry("u2", parameters={"alpha": 0.8, "draw": 2})])  # fmt: skip
    facts = anonymizer_facts([folder], settings)
    assert facts == {"anonymizer": "mcadams", "anonymizer_version": "1", "anonymizer_parameters": {"alpha": 0.8}}
    write_manifest(manifest, [entry("u1"), entry("u2", version="2")])  # nobody can say which it was
    assert anonymizer_facts([folder], settings) == {}
    given = make_settings({"system": "mcadams", "option": ["alpha=0.7"]})
    assert anonymizer_facts([folder], given) == {"anonymizer": "mcadams", "anonymizer_parameters": {"alpha": 0.7}}
