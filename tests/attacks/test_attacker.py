"""Attackers are what they have; names of others lead to the right one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from veilmeter.attacks.attacker import ATTACKERS, BASELINE, attacker, default_attackers
from veilmeter.core.errors import InputError

DOCS = Path(__file__).parents[2] / "docs"
PAPERS = ("ignorant", "lazy-informed", "semi-informed", "informed", "procrustes", "wasserstein-procrustes")


def test_the_table_of_the_methods() -> None:
    """Enrollment, training speech, and the names of the challenges and of Vauquier et al."""
    table = {
        "ignorant": ("original", None, "ignorant", "ignorant"),
        "lazy-informed": ("anonymized", None, "lazy-informed", ""),
        "semi-informed": ("anonymized", "train_similar", "", "semi-informed"),
        "informed": ("anonymized", "train_anonymized", "semi-informed", "informed"),
    }
    for name, row in table.items():
        one = ATTACKERS[name]
        assert (*one.enrollment, one.training, one.voiceprivacy, one.vauquier2025) == row
        assert one.trials == "anonymized"
    assert (ATTACKERS[BASELINE].enrollment, ATTACKERS[BASELINE].trials) == (("original",), "original")


def test_names_lead_to_one_attacker_each() -> None:
    names = [alias for name, one in ATTACKERS.items() for alias in (name, *one.aliases)]
    assert len(names) == len(set(names))
    assert all(one.name == name for name, one in ATTACKERS.items())
    assert attacker("Lazy_Informed").name == "lazy-informed"
    assert attacker("VPC semi-informed").name == "informed"
    with pytest.raises(InputError, match="did you mean 'informed'"):
        attacker("informd")


def test_those_that_run_by_default() -> None:
    assert tuple(name for name in default_attackers() if name in (*PAPERS, "adaptive")) == (*PAPERS, "adaptive")
    assert tuple(name for name, one in ATTACKERS.items() if one.reference and name != BASELINE) == PAPERS


def test_the_documentation_has_the_table_of_the_registry() -> None:
    """docs/reference/attackers.md lists the defaults as `veilmeter attackers --markdown` prints them."""
    lines = (DOCS / "reference" / "attackers.md").read_text(encoding="utf-8").splitlines()
    for name in (*PAPERS, "adaptive"):
        _, *cells = ATTACKERS[name].row
        assert f"| `{name}` | {' | '.join(cells)} |" in lines


def test_the_documentation_says_which_names_are_understood() -> None:
    text = (DOCS / "reference" / "attackers.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w-]+)`", text))
    assert {"vpc-semi-informed", "retrained", "oa", "aa", "inversion", "unsupervised-inversion"} <= named
    assert all(attacker(name) for name in ("oa", "aa", "inversion", "unsupervised-inversion"))
