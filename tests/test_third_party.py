"""THIRD_PARTY.md names every locked package and every pinned model, in the version that is used."""

from __future__ import annotations

import re
from pathlib import Path

from tools.third_party import packages, weights

ROOT = Path(__file__).resolve().parents[1]


def rows() -> list[list[str]]:
    text = (ROOT / "THIRD_PARTY.md").read_text(encoding="utf-8")
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:1] == "|"]


def test_every_package_is_listed_in_its_version() -> None:
    listed = {row[0]: row[1] for row in rows() if len(row) == 4 and re.match(r"\d", row[1])}
    assert listed == packages(), "run `make third-party`"


def test_everything_has_a_license_and_a_source() -> None:
    assert [row[0] for row in rows() if not all(row) or "see its source" in row or "not recorded" in row[1]] == []


def test_all_weights_are_listed() -> None:
    listed = [tuple(row) for row in rows() if len(row) == 3 and row[0] not in ("weights", "---")]
    assert listed == weights(), "run `make third-party`"


def test_gpl_code_is_named() -> None:
    text = (ROOT / "THIRD_PARTY.md").read_text(encoding="utf-8")
    strong = [row[0] for row in rows() if len(row) == 4 and re.search(r"(?<!L)(?<!Lesser )\bA?GPL", row[2])]
    assert all(f"`{name}`" in text.partition("## Packages")[0] for name in strong), strong
    assert "espeak-ng" in text
