"""What a measure is: its words, unit and range, which direction is private, and for added ones how to compute it."""

from __future__ import annotations

import math
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate, Private

InputKind = Literal["scores", "embeddings", "recordings"]
INPUT_KINDS: tuple[InputKind, ...] = get_args(InputKind)

# In the order in which a person should read them.
SECTIONS = (
    "linking",
    "singling_out",
    "disclosure",
    "similarity",
    "inversion",
    "inference",
    "sessions",
    "utility",
    "verification",
)
_SECTION_OF_KIND = {"scores": "verification", "embeddings": "similarity", "recordings": "utility"}


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure as everybody speaks of it.

    `meaning` is one sentence for a person who has never heard of it, `source` the paper or standard, `equation` how it
    is computed in one line. `low` and `high` bound its values: a limit outside of them can't be meant. `bar` is the
    value at which a bar that shows it is full, `color` its own color in figures; both may be missing. `family_label`
    begins the label of a variant such as `tpr@fpr=0.01`, where `label` itself does not. `use` is the direction in which
    speech is more useful, of measures that say nothing of privacy.

    A measure that another package adds has a `kind` and a `compute`, which gives an `Estimate` or `Estimates`:

    * `scores`: `compute(scores)`, with `veilmeter.Scores`: every comparison of an attacker, with labels and speakers;
    * `embeddings`: `compute(original, anonymized)`, two `veilmeter.Embeddings` whose rows are the same recordings;
    * `recordings`: `compute(original, anonymized, rate)`, the samples of one recording before and after, as a number;
      the mean over recordings, with an interval over speakers, is what is reported.
    """

    name: str
    label: str
    unit: str
    better: Private
    meaning: str
    source: str
    section: str = ""
    equation: str = ""
    low: float = -math.inf
    high: float = math.inf
    bar: float | None = None
    color: str = ""
    family_label: str = ""
    use: Private = "neither"
    kind: InputKind | None = None
    compute: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        if (self.kind is None) != (self.compute is None):
            raise InputError(f"the measure {self.name!r} needs both `kind` and `compute`, or neither")
        if self.kind is not None and self.kind not in INPUT_KINDS:
            raise InputError(
                f"the measure {self.name!r} can't be computed from {self.kind!r}",
                fix=f"choose from {', '.join(INPUT_KINDS)}",
            )
        if not self.section:
            object.__setattr__(self, "section", _SECTION_OF_KIND.get(self.kind or "", ""))
        if self.section not in SECTIONS:
            raise InputError(
                f"the measure {self.name!r} has no section called {self.section!r}",
                fix=f"choose from {', '.join(SECTIONS)}",
            )

    def contains(self, value: float) -> bool:
        """Whether the measure can take this value."""
        return self.low <= value <= self.high

    def estimate(self, value: float, *, label: str = "", **facts: Any) -> Estimate:
        """A value of this measure, with its words; `facts` are the other fields of an `Estimate`."""
        return Estimate(
            name=self.name, label=label or self.label, value=value, unit=self.unit, better=self.better, **facts
        )

    def variant(self, name: str) -> Measure:
        """The same measure under the name of a variant: `=` and a rate, or `_` and a word, behind its own name."""
        if name == self.name:
            return self
        suffix = name[len(self.name) + 1 :]
        if name[len(self.name)] == "=":
            words = f"{100 * float(suffix):g} %"
        else:
            words = suffix.upper() if len(suffix) == 2 else suffix.replace("_", " ")
        return replace(self, name=name, label=f"{self.family_label or self.label} {words}")


def family_of(name: str, names: Container[str]) -> str | None:
    """The longest of `names` that this is, or that stands before a `=` or `_` in it.

    >>> family_of("d_ece_oo", ["d", "d_ece"]), family_of("eer", ["d_ece"])
    ('d_ece', None)
    """
    if name in names:
        return name
    before = (name[:place] for place in range(len(name) - 1, 0, -1) if name[place] in "=_")
    return next((part for part in before if part in names), None)
