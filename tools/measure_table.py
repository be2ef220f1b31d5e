"""`python tools/measure_table.py`: the table of all measures in docs/reference/measures.md, from the registry."""

from __future__ import annotations

import re
from pathlib import Path

from veilmeter.metrics.measure import MEASURES

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "measures.md"
HEAD = "| name | measure | private is | from |\n|---|---|---|---|\n"
DIRECTIONS = {"higher": "higher", "lower": "lower", "neither": "depends"}


def table() -> str:
    rows = [
        (f"`{entry.name}`", entry.label, DIRECTIONS[entry.better], entry.source)
        for entry in MEASURES.values()
        if entry.name not in MEASURES.admitted
    ]
    return HEAD + "".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |\n" for row in rows)


def main() -> int:
    text = PAGE.read_text(encoding="utf-8")
    old = re.search(re.escape(HEAD) + r"(?:\|.*\n)*", text)
    if old is None:
        raise SystemExit(f"{PAGE.name} has no table of measures")
    PAGE.write_text(text.replace(old[0], table()), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
