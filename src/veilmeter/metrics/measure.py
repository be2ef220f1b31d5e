"""What a measure is: its words, unit and range, which direction is private, where it is shown and how it is computed.

Measures that come with veilmeter and those of other packages are the same: a `Measure` at the top of a module of
`veilmeter.metrics`, or one that a package registers.
"""

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
    """Everything there is to know about a measure.

    `meaning` is one sentence for a person who has never heard of it, `source` the paper or standard, `equation` how it
    is computed in one line. `low` and `high` bound its values: a limit outside of them can't be meant. `bar` is the
    value at which a bar that shows it is full, `color` its own color in figures; both may be missing. `family_label`
    begins the label of a variant such as `tpr@fpr=0.01`, where `label` itself does not. `use` is the direction in which
    speech is more useful, for measures that have nothing to do with privacy. `order` is its place among the measures of
    its section. `headline` says that comparisons of runs and the page for laypeople show it, too.

    `compute` gives its value from material of one `kind`:

    * `scores`: a function of `veilmeter.Scores` (every comparison of an attacker, with labels and speakers) that gives
      a number, an `Estimate`, or `Estimates` with one estimate per name; or a
      `veilmeter.metrics.scores.forms.ScoreFunction`, which has an interval and a chance level as well, or a tuple of
      them, one per variant;
    * `embeddings`: a function of two `veilmeter.Embeddings`, original and anonymized, whose rows are the same
      recordings, that gives an `Estimate` or `Estimates`;
    * `recordings`: a function of the samples of one recording before and after, and their rate, that gives a number;
      the mean over recordings, with an interval over speakers, is what is reported.

    A measure without them is one figure of a larger analysis, such as Linkability, which makes its estimates.
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
    order: int = 50
    headline: bool = True
    kind: InputKind | None = None
    compute: Callable[..., Any] | tuple[Callable[..., Any], ...] | None = None

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

    @property
    def functions(self) -> dict[str, Callable[..., Any]]:
        """What computes it, by the name of what it gives: its own name, or those of its variants."""
        if self.compute is None:
            return {}
        if not isinstance(self.compute, tuple):
            return {self.name: self.compute}
        return {self.name + function.suffix: function for function in self.compute}  # type: ignore[attr-defined]

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


def rate_suffix(rate: float) -> str:
    """What the variant of a measure for this rate has behind the measure's name.

    >>> rate_suffix(0.01), rate_suffix(0.0001)
    ('=0.01', '=0.0001')
    """
    return f"={rate:.12f}".rstrip("0")


def family_of(name: str, names: Container[str]) -> str | None:
    """The longest of `names` that this is, or that precedes a `=` or `_` in it.

    >>> family_of("d_ece_oo", ["d", "d_ece"]), family_of("eer", ["d_ece"])
    ('d_ece', None)
    """
    if name in names:
        return name
    before = (name[:place] for place in range(len(name) - 1, 0, -1) if name[place] in "=_")
    return next((part for part in before if part in names), None)
