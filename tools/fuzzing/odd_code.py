"""Odd inputs for whole commands: user-supplied code that fails in every way that code can fail."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

Make = Callable[[Path], object]
Cases = dict[str, tuple[Make, str]]

FAILURES = {
    "raises": "raise ValueError('wrong\\n\\x1b[31mred')",
    "raises_own": "class Own(Exception):\n        def __str__(self): raise RuntimeError('no text')\n    raise Own",
    "raises_base": "class Own(BaseException): pass\n    raise Own('base')",
    "exits": "raise SystemExit(0)",
    "exits_text": "raise SystemExit('bye')",
    "exits_sys": "import sys; sys.exit(5)",
    "memory": "raise MemoryError",
    "recurses": "return (lambda f: f(f))(lambda f: f(f))",
    "none": "return None",
    "text": "return 'x'",
    "nan": "return float('nan')",
    "complex": "return 1j",
    "huge": "return 10 ** 5000",
    "empty": "import numpy; return numpy.zeros(0)",
    "matrix": "import numpy; return numpy.zeros((3, 3))",
    "objects": "import numpy; return numpy.array([object()])",
    "generator": "return (n for n in range(3))",
    "prints": "print('x' * 1000); return 1.0",
    "closes": "import sys; sys.stdout = None; return 1.0",
    "moves": "import os; os.chdir('/'); return 1.0",
    "missing_module": "import module_that_is_nowhere",
    "long_vector": "import numpy; return numpy.zeros(10_000_000)",
    "writes": "a[0][:] = 0; return a[0]",
}
"""By name: the body of a function `f(*a)`. What ends its own process (`os._exit`) is not ours to hide."""

_START = "import veilmeter\nfrom veilmeter.attacks.attacker import AttackScores, ScoringAttacker\n"
_EACH = """

def {name}(*a, **k):
    {body}

@veilmeter.measure_of("scores", unit="percent")
def of_scores_{name}(scores):
    return {name}(scores)

@veilmeter.measure_of("recordings")
def of_recordings_{name}(original, anonymized, rate):
    return {name}(original, anonymized, rate)

class Attack_{name}(ScoringAttacker):
    name, about = "attack-{label}", "fails"
    def scores(self, material):
        return {name}(material)

class Scored_{name}(ScoringAttacker):
    name, about = "scored-{label}", "fails later"
    def scores(self, material):
        return AttackScores(scores={name}(material), method="own")

class System_{name}:
    name, version = "own", "1"
    def parameters(self, utterance):
        return {{}}
    def anonymize(self, samples, parameters):
        return {name}(samples)

class Drawn_{name}:
    name, version = "own", "1"
    def parameters(self, utterance):
        return {name}(utterance)
    def anonymize(self, samples, parameters):
        return samples
"""
PLUG_INS = _START + "".join(
    _EACH.format(name=name, body=body, label=name.replace("_", "-")) for name, body in FAILURES.items()
)

ASSESS = "assess --original o.npz --anonymized a.npz --out out --resamples 10 --no-report --quiet --jobs 1"
_SPEECH = "assess --original corpus --anonymized corpus --out out --resamples 10 --no-report --quiet --jobs 2"
_COMMANDS = {
    "measure": ASSESS + " --attackers ignorant --measures plug.py:of_scores_{}",
    "attacker": ASSESS + " --measures scores --attackers plug.py:Attack_{}",
    "scores of an attacker": ASSESS + " --measures scores --attackers plug.py:Scored_{}",
    "extractor": "embed corpus out --extractor plug.py:{} --jobs 2",
    "recognizer": "transcribe corpus out --recognizer plug.py:{} --jobs 2",
    "anonymizer": "anonymize corpus out --system plug.py:System_{} --jobs 2",
    "drawn anonymizer": "anonymize corpus out --system plug.py:Drawn_{} --jobs 1",
}
# These take longer, and get a few of the failures.
_LONGER = {
    "measure of recordings": _SPEECH + " --extractor rhythm --attackers ignorant --measures plug.py:of_recordings_{}",
    "system of an assessment": _SPEECH + " --extractor rhythm --attackers ignorant --system plug.py:System_{}",
    "network": _SPEECH + " --train-anonymized corpus --attackers informed --adaptation finetune --network plug.py:{} "
    "--measures scores --epochs 1 --offline",
    "extractor on a cluster": "embed corpus out --extractor plug.py:{} --cluster local --jobs 1",
}
_FEW = ("raises", "exits_sys", "none", "long_vector")
_PLACES = (
    "plug.py:", ":", "plug.py:nothing", "plug.py:veilmeter", "plug:raises.x", "json:loads", "os:system", "nowhere:x",
    "nowhere.py:x", "plug.py", ".:x", "a..b:x", "corpus:x", "broken.py:x", "exits.py:x", "binary.py:x", "raises.py:x",
    "prints.py:x", "sys:exit",
)  # fmt: skip


def _broken_modules(folder: Path) -> None:
    (folder / "broken.py").write_text("def x(:\n")
    (folder / "exits.py").write_text("import sys\nsys.exit(3)\n")
    (folder / "raises.py").write_text("1 / 0\n")
    (folder / "prints.py").write_text("print('hello')\ndef x(samples):\n    return samples[:4]\n")
    (folder / "binary.py").write_bytes(bytes(range(256)))


def _write_plug_ins(folder: Path) -> None:
    (folder / "plug.py").write_text(PLUG_INS)


def cases() -> Cases:
    """Every kind of user-supplied code, failing in every way; and names at which there is none."""
    found: Cases = {}
    for names, commands in ((tuple(FAILURES), _COMMANDS), (_FEW, _LONGER)):
        for kind, command in commands.items():
            found |= {f"{kind} that {name}": (_write_plug_ins, command.format(name)) for name in names}
    options = {"measures": ASSESS, "attackers": ASSESS, "extractor": "embed corpus out",
               "recognizer": "transcribe corpus out", "system": "anonymize corpus out"}  # fmt: skip
    for option, command in options.items():
        found |= {f"--{option} {place}": (_broken_modules, f"{command} --{option} {place}") for place in _PLACES}
    return found
