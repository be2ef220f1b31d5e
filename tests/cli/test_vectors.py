"""Every command that takes embeddings reports one broken vector among many and leaves it out; --strict stops at it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from veilmeter.cli.main import app
from veilmeter.core.errors import InputError

SPEAKERS, UTTERANCES = 8, 6
ROLES = {
    "linkability": ("--enroll", "--test"),
    "singling-out": ("--enroll", "--test"),
    "similarity": ("--original", "--anonymized"),
    "invert": ("--clear-train", "--anonymized-train"),
}
MORE = {"singling-out": ("--no-control",), "invert": ("--shuffles", 0)}


def run(*words: object) -> dict[str, Any]:
    done = CliRunner().invoke(app, [*map(str, words), "--json", "--no-intervals"])
    if isinstance(done.exception, Exception):
        raise done.exception
    assert done.exit_code == 0
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two sets of vectors whole, without three utterances, and with those three broken."""
    root = tmp_path_factory.mktemp("vectors")
    rng = np.random.default_rng(1)
    speakers = np.repeat([f"s{number}" for number in range(SPEAKERS)], UTTERANCES)
    ids = np.array([f"{speaker}-{number % UTTERANCES}" for number, speaker in enumerate(speakers)])
    clear = np.repeat(rng.standard_normal((SPEAKERS, 6)), UTTERANCES, 0) + 0.3 * rng.standard_normal((len(ids), 6))
    made = {}
    for side, vectors in {"a": clear, "b": clear + rng.standard_normal(clear.shape)}.items():
        bad = [7, 20, 33]
        broken = vectors.copy()
        broken[bad[0], 2], broken[bad[1]], broken[bad[2], 0] = np.nan, 0.0, np.inf
        for name, rows, values in (
            ("whole", np.arange(len(ids)), vectors),
            ("fewer", np.delete(np.arange(len(ids)), bad), vectors),
            ("broken", np.arange(len(ids)), broken),
        ):
            made[name + side] = root / f"{name}-{side}.npz"
            np.savez(made[name + side], vectors=values[rows], ids=ids[rows], speakers=speakers[rows])
    return made


def words(command: str, files: dict[str, Path], first: str, second: str) -> list[object]:
    one, two = ROLES[command]
    trials = ["--clear-trials", files[first + "a"], "--anonymized-trials", files[second + "b"]]
    return [command, one, files[first + "a"], two, files[second + "b"], *(trials if command == "invert" else []),
            *MORE.get(command, ())]  # fmt: skip


def without_signatures(page: Any) -> Any:
    """The estimates without what names the files they come from."""
    listed = {name: curve if isinstance(curve, list) else [curve] for name, curve in page["estimates"].items()}
    return {name: [{**point, "signature": None} for point in curve] for name, curve in listed.items()}


@pytest.mark.parametrize("command", ROLES)
def test_the_rest_is_as_if_the_broken_ones_were_not_there(command: str, files: dict[str, Path]) -> None:
    page = run(*words(command, files, "broken", "broken"))
    fewer = run(*words(command, files, "fewer", "fewer"))
    assert without_signatures(page) == without_signatures(fewer)
    said = [warning["text"] for warning in page["warnings"] if warning["code"] == "vectors_left_out"]
    for side in "ab":
        assert any(f"broken-{side}.npz" in line and "s1-1" in line for line in said), said


@pytest.mark.parametrize("command", ROLES)
@pytest.mark.parametrize("sides", [("broken", "whole"), ("whole", "broken")])
def test_strict_stops(command: str, files: dict[str, Path], sides: tuple[str, str]) -> None:
    with pytest.raises(InputError, match="s1-1") as stopped:
        run(*words(command, files, *sides), "--strict")
    assert "broken" in str(stopped.value.path)


@pytest.mark.parametrize("command", ROLES)
def test_strict_changes_nothing_where_all_is_well(command: str, files: dict[str, Path]) -> None:
    whole = words(command, files, "whole", "whole")
    assert run(*whole, "--strict") == run(*whole)
