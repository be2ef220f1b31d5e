"""Attackers are what they have; names of others lead to the right one."""

from __future__ import annotations

import pytest

from veilmeter.attacks.knowledge import ATTACKERS, ORIGINAL, attacker, chosen
from veilmeter.core.errors import InputError


def test_the_table_of_the_methods() -> None:
    """Enrollment, adaptation, and the names of the challenges and of Vauquier et al."""
    table = {
        "ignorant": ("original", "none", "ignorant", "ignorant"),
        "lazy-informed": ("anonymized", "none", "lazy-informed", ""),
        "semi-informed": ("anonymized", "similar system", "", "semi-informed"),
        "informed": ("anonymized", "same system", "semi-informed", "informed"),
    }
    for name, row in table.items():
        one = ATTACKERS[name]
        assert (one.enrollment, one.adaptation, one.voiceprivacy, one.vauquier2025) == row
        assert one.trials == "anonymized"
    assert (ORIGINAL.enrollment, ORIGINAL.trials) == ("original", "original")


def test_names_lead_to_one_attacker_each() -> None:
    names = [alias for one in ATTACKERS.values() for alias in (one.name, *one.aliases)]
    assert len(names) == len(set(names))
    assert attacker("Lazy_Informed").name == "lazy-informed"
    assert attacker("VPC semi-informed").name == "informed"
    with pytest.raises(InputError, match="did you mean 'informed'"):
        attacker("informd")
    assert [one.name for one in chosen(["informed", "oa", "ignorant"])] == ["ignorant", "informed"]
