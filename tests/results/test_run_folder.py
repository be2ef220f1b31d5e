"""The run folder: what is written can be read in any order, and what is broken is refused with a sentence."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sample_results import sample

from veilmeter.core.errors import InputError
from veilmeter.core.files import plain
from veilmeter.results.run_folder import read_results, results_from_json, results_to_json, table_of, write_results

FORM: dict[str, Any] = plain(results_to_json(sample()))


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


def put(form: Any, path: tuple[Any, ...], value: Any) -> Any:
    changed = copy.deepcopy(form)
    if not path:
        return value
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = value
    return changed


def turned(value: Any) -> Any:
    """The same with every object's keys in reverse order."""
    if isinstance(value, dict):
        return {key: turned(value[key]) for key in sorted(value, reverse=True)}
    return [turned(item) for item in value] if isinstance(value, list) else value


def test_what_is_written_is_read(tmp_path: Path) -> None:
    written = write_results(tmp_path, sample())
    assert read_results(tmp_path) == written == replace(sample(), tables=written.tables)
    assert read_results(tmp_path / "results.json") == written
    assert list(written.tables) == ["estimates.parquet"]


def test_the_order_of_the_keys_does_not_matter() -> None:
    results = results_from_json(turned(FORM))
    assert results.attackers["ignorant"].estimates["eer"] == sample().attackers["ignorant"].estimates["eer"]
    assert turned(plain(results_to_json(results))) == turned(FORM)


def test_the_documented_paths() -> None:
    estimates = FORM["attackers"]["ignorant"]["estimates"]
    wanted = {"value": 30.0, "interval": [27.0, 33.0], "null": 50.0}
    assert {key: estimates["eer"][key] for key in wanted} == wanted
    assert [(point["speakers"], point["length"], point["value"]) for point in estimates["linkability"]] == [
        (20, 1, 40.0),
        (5, 1, 60.0),
    ]
    assert FORM["schema"] == 4
    assert FORM["parameters"]["precision"] == 10.0
    assert {"headline", "trustworthy", "level"} <= set(FORM["verdict"])
    assert estimates["l_w"]["value"] == "inf"


def test_the_table_is_tidy(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    results = write_results(tmp_path, sample())
    rows = pq.read_table(tmp_path / "tables" / "estimates.parquet").to_pylist()
    assert len(rows) == 9
    of_women = [row for row in rows if row["group"] == "f"]
    assert [(row["attacker"], row["attribute"], row["measure"], row["value"]) for row in of_women] == [
        ("ignorant", "gender", "eer", 20.0)
    ]
    assert table_of(tmp_path, results, "estimates.parquet") is not None
    assert table_of(tmp_path, results, "none.parquet") is None
    (tmp_path / "tables" / "estimates.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match="not the one that the run wrote"):
        table_of(tmp_path, results, "estimates.parquet")


def test_an_older_run_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text(json.dumps({"schema": 3, "verdict": {}, "attackers": {}}))
    with pytest.raises(InputError, match=r"written by an earlier version \(schema 3\); run the assessment again"):
        read_results(tmp_path)
    with pytest.raises(InputError, match="newer version"):
        results_from_json({**FORM, "schema": 5})
    for schema in (None, True, "2", [2]):
        with pytest.raises(InputError, match="not the result of an assessment"):
            results_from_json({**FORM, "schema": schema})


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        (("verdict", "level"), "fine", "low, raised, high, unknown"),
        (("verdict", "trustworthy"), "yes", "verdict.trustworthy: expected true or false"),
        (("verdict", "headline"), 3, "expected a list"),
        (("attackers", "ignorant", "estimates", "eer", "interval"), [33, 27], "runs backwards"),
        (("attackers", "ignorant", "estimates", "eer", "interval"), [33], "a list of 2"),
        (("attackers", "ignorant", "estimates", "eer", "value"), "many", "eer"),
        (("attackers", "ignorant", "estimates", "eer", "better"), "blue", "higher, lower, neither"),
        (("attackers", "ignorant", "estimates", "linkability", 0, "at"), ["nowhere"], "must list the parameters"),
        (("attackers", "ignorant", "name"), "informed", "its own name is 'informed'"),
        (("checks", 0, "passed"), False, "the check 'a' failed"),
        (("verdict", "level"), "low", "that of linking is raised"),
        (("criteria", "linking", "attacker"), "informed", "its attacker 'informed' is not in the results"),
        (("seed",), 1.5, "seed: expected a whole number"),
        (("verdict", "trustwrothy"), True, "did you mean 'trustworthy'"),
    ],
)
def test_what_is_broken_or_contradicts_itself_is_named(path: tuple[Any, ...], value: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        results_from_json(put(FORM, path, value))


def test_a_value_outside_its_interval_is_fine() -> None:
    results_from_json(put(FORM, ("attackers", "ignorant", "estimates", "eer", "value"), 99.0))


def test_somebody_unprotected_is_no_low_risk() -> None:
    form = put(put(FORM, ("criteria",), {}), ("verdict", "level"), "low")
    with pytest.raises(InputError, match="'s1' is unprotected"):
        results_from_json(form)


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3), st.just([]), st.just({}), st.just([[1]])
)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(places(FORM)), JUNK)
def test_junk_anywhere_is_read_or_refused_but_never_a_traceback(path: tuple[Any, ...], junk: Any) -> None:
    read_or_refused(lambda: results_from_json(put(FORM, path, junk)))


@settings(max_examples=100, deadline=None)
@given(st.sampled_from([place for place in places(FORM) if place and isinstance(place[-1], str)]))
def test_what_is_missing_is_read_or_refused(path: tuple[Any, ...]) -> None:
    form = copy.deepcopy(FORM)
    holder: Any = form
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    read_or_refused(lambda: results_from_json(form))


def read_or_refused(read: Callable[[], object]) -> None:
    with suppress(InputError):
        read()


@pytest.mark.parametrize("text", ["", "[", "[]", "null", "3", '{"schema": 2}', '"' + "x" * 10])
def test_files_that_are_no_results(tmp_path: Path, text: str) -> None:
    (tmp_path / "results.json").write_text(text)
    with pytest.raises(InputError):
        read_results(tmp_path)
    with pytest.raises(InputError, match="no results found"):
        read_results(tmp_path / "nowhere")
