"""Check the subject of a commit message: imperative, at most 72 characters, no period (a hook of pre-commit)."""

from __future__ import annotations

import re
import sys
from pathlib import Path

LONGEST = 72
# Verbs are in the imperative: "Add", not "Added", "Adds" or "Adding". Words that only look like other forms are listed.
NOT_IMPERATIVE = re.compile(r"^[A-Z][a-z]+(?:ed|ing|[^su]s)$")
IMPERATIVE = {"Embed", "Need", "Feed", "Speed", "Bring", "Bias", "Focus", "Process", "Pass", "Express", "Address"}


def problems(subject: str) -> list[str]:
    """What is wrong with a subject; nothing where it is fine.

    >>> problems("Hash the source of test anonymizers")
    []
    >>> problems("Fixed the reader.")
    ["write the subject in the imperative ('Fix', not 'Fixed')", 'leave out the period at the end']
    """
    if subject.startswith(("Merge ", "Revert ", "fixup! ", "squash! ")):
        return []
    found = []
    first = subject.split(" ")[0].rstrip(":")
    if len(subject) > LONGEST:
        found.append(f"shorten the subject to {LONGEST} characters (it has {len(subject)}); details go into the body")
    if not subject[:1].isupper():
        found.append("begin the subject with a capital letter")
    if first not in IMPERATIVE and NOT_IMPERATIVE.match(first):
        stem = re.sub(r"(ed|ing|s)$", "", first)
        found.append(f"write the subject in the imperative ({stem!r}, not {first!r})")
    if subject.endswith("."):
        found.append("leave out the period at the end")
    return found


def main() -> int:
    lines = Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()
    subject = next((line for line in lines if line.strip() and not line.startswith("#")), "")
    found = problems(subject)
    for problem in found:
        print(f"commit message: {problem}", file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
