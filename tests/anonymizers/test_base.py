"""Anonymizers by name: built in, installed, one's own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilmeter.anonymizers.base import ANONYMIZERS, Anonymizer, Draw, draw_of, generator, load_anonymizer
from veilmeter.core.errors import InputError, VeilmeterError
from veilmeter.data.corpus import Utterance

SOMEONE = Utterance("u", "s", Path("x.wav"))


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A module of the user's with all that `module:name` may name."""
    (tmp_path / "own_systems.py").write_text(
        "class Loud:\n"
        "    name, version = 'loud', '1'\n"
        "    def __init__(self, factor=2.0, seed=0):\n"
        "        self.factor, self.seed = factor, seed\n"
        "    def parameters(self, utterance):\n"
        "        return {'factor': self.factor, 'seed': self.seed}\n"
        "    def anonymize(self, samples, parameters):\n"
        "        return samples * parameters['factor']\n"
        "def reverse(samples, twice=False):\n"
        "    return samples if twice else samples[::-1]\n"
        "def useless():\n"
        "    return 3\n"
        "number = 3\n"
    )
    (tmp_path / "own_broken.py").write_text("raise RuntimeError('not today')\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for name in ("own_systems", "own_broken"):
        sys.modules.pop(name, None)
    return "own_systems"


def test_built_in_systems_are_anonymizers() -> None:
    for system, options in (("mcadams", {}), ("mcadams-random", {}), ("command", {"command": "cp {input} {output}"})):
        made = load_anonymizer(system, {**options, "seed": 4, "offline": True})
        assert isinstance(made, Anonymizer)
        assert made.name == system
        assert made.version
    assert ANONYMIZERS.names[:5] == ["mcadams", "mcadams-random", "xvector-pool", "cascade", "command"]


def test_loading_a_light_system_imports_nothing_heavy() -> None:
    code = (
        "import sys; from veilmeter.anonymizers.base import load_anonymizer; load_anonymizer('mcadams');"
        "print([name for name in ('torch', 'soundfile', 'pyworld', 'pyarrow', 'rich') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_systems_say_what_they_draw_for() -> None:
    drawn = {"mcadams": {}, "mcadams-random": {"per": "speaker"}, "command": {"command": "cp {input} {output}"}}
    assert [draw_of(load_anonymizer(name, options)) for name, options in drawn.items()] == [
        Draw.NONE,
        Draw.SPEAKER,
        Draw.UNKNOWN,
    ]
    seeded = {"command": "cp {input} {output} {seed}", "per": "utterance"}
    assert draw_of(load_anonymizer("command", seeded)) == Draw.UTTERANCE


def test_one_s_own_class(own: str) -> None:
    made = load_anonymizer(f"{own}:Loud", {"factor": 3.0, "seed": 5, "offline": True})
    assert made.parameters(SOMEONE) == {"factor": 3.0, "seed": 5}
    np.testing.assert_array_equal(made.anonymize(np.ones(3, np.float32), {"factor": 3.0}), [3, 3, 3])


def test_one_s_own_function_of_samples(own: str) -> None:
    made = load_anonymizer(f"{own}:reverse", {"seed": 5})
    assert made.name == f"{own}:reverse"
    assert len(made.version) == 16
    assert made.parameters(SOMEONE) == {}
    np.testing.assert_array_equal(made.anonymize(np.arange(3, dtype=np.float32), {}), [2, 1, 0])
    assert load_anonymizer(f"{own}:reverse", {"twice": True}).parameters(SOMEONE) == {"twice": True}


def test_an_installed_package_s_system(own: str, monkeypatch: pytest.MonkeyPatch) -> None:
    class Entry:
        name, value = "loud", f"{own}:Loud"

        def load(self) -> Any:
            return __import__(own).Loud

    monkeypatch.setattr("veilmeter.core.registry.find_entry_points", lambda group: [Entry()])
    monkeypatch.setattr(ANONYMIZERS, "_loaded", {})
    assert load_anonymizer("loud").name == "loud"
    assert "loud" in ANONYMIZERS


@pytest.mark.parametrize(
    ("system", "options", "said"),
    [
        ("mcadam", {}, "no anonymizer called 'mcadam'.*did you mean 'mcadams'"),
        ("mcadams", {"beta": 1}, "no option beta.*alpha"),
        ("command", {}, "missing a required argument"),
        ("own_systems:Nothing", {}, "has no 'Nothing'"),
        ("own_systems:number", {}, "neither a class nor a function"),
        ("own_systems:useless", {}, "not an anonymizer"),
        ("own_missing:Loud", {}, "can't be imported.*own_missing"),
        ("own_broken:Loud", {}, "RuntimeError: not today"),
    ],
)
def test_what_is_wrong_is_said(own: str, system: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(VeilmeterError, match=said):
        load_anonymizer(system, options)


def test_random_numbers_depend_on_seed_and_id_alone() -> None:
    assert generator(1, "a").random() == generator(1, "a").random()
    assert generator(1, "a").random() != generator(1, "b").random()
    assert generator(1, "a").random() != generator(2, "a").random()
    generator(0, "not \udcff utf-8")
    with pytest.raises(InputError, match="negative"):
        generator(-1, "a")
