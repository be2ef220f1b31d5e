"""An estimate is a number where that is safe, and several of them are one type: by name, in order, filtered, shown."""

from __future__ import annotations

import math

import pytest

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Estimates

EER = Estimate(
    name="eer",
    label="EER",
    value=32.1,
    unit="percent",
    interval=(28.0, 36.0),
    method="rocch",
    n={"targets": 449, "impostors": 11295, "speakers": 29},
    context={"attacker": "informed", "seed": 0, "v": "1.0"},
)
CURVE = [Estimate(name="linkability", value=v, unit="percent", at={"speakers": n}) for n, v in [(20, 40.0), (5, 70.0)]]
BOTH = Estimates([EER, *CURVE])


def test_it_is_a_number_where_that_is_safe() -> None:
    assert float(EER) == 32.1
    assert f"{EER:.2f}" == "32.10"
    assert f"{EER:8.1f}" == "    32.1"
    assert f"{EER}" == str(EER) == "EER 32.1 % [28.0, 36.0] (rocch)"
    assert repr(EER) == f"<Estimate {EER}>"
    with pytest.raises(TypeError):
        _ = EER + 1  # type: ignore[operator]  # the sum would have no interval


def test_the_signature_names_what_the_figure_depends_on() -> None:
    assert EER.signature == "EER|attacker:informed|method:rocch|trials:11744|speakers:29|seed:0|v:1.0"
    assert EER.sign(backend="lda", seed=9).signature.startswith("EER|backend:lda|attacker:informed|method:rocch|")
    assert EER.sign(seed=9).signature == EER.signature  # what is known stays
    point = Estimate(name="linkability", value=1.0, at={"speakers": 1_000_000, "length": 1}, n={"speakers": 29})
    assert point.signature.startswith("linkability|among:1000000|length:1|speakers:29|v:")
    assert Estimate(name="x", value=1.0, method="a|b: c").signature.startswith("x|method:a/b= c|v:")


def test_the_signature_survives_json() -> None:
    again = Estimate.from_json("eer", EER.to_json(), label="EER")
    assert again == EER
    assert again.signature == EER.signature
    assert again.with_(n={}, method="").signature == "EER|attacker:informed|seed:0|v:1.0"
    assert "signature" not in CURVE[0].to_json()
    assert Estimate.from_json("linkability", CURVE[0].to_json()).context == {}


def test_several_are_a_mapping_and_a_sequence() -> None:
    assert BOTH.keys() == BOTH.names == ("eer", "linkability")
    assert dict(BOTH)["eer"] is EER
    assert [name for name, _ in BOTH.items()] == ["eer", "linkability"]
    assert BOTH.values()[1] == Estimates(CURVE)
    assert BOTH.get("eer") is EER
    assert BOTH.get("wer") is None
    assert list(BOTH) == [EER, *CURVE]
    with pytest.raises(KeyError):
        _ = BOTH["wer"]


def test_the_one_that_is_left_can_be_used_in_their_place() -> None:
    left = BOTH.filter(speakers=20)
    assert (left.value, float(left), f"{left:.1f}", left.interval) == (40.0, 40.0, "40.0", None)
    assert BOTH.signature.count("\n") == 2
    with pytest.raises(InputError, match="3 estimates, not one"):
        _ = BOTH.value


def test_they_show_themselves_shortly() -> None:
    many = Estimates([Estimate(name=f"measure_{number}", value=1.0) for number in range(1000)])
    assert len(repr(many)) < 1000
    assert "<table>" in BOTH._repr_html_()
    assert math.isnan(float(Estimate(name="x", value=math.nan)))
