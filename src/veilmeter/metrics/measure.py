"""The type of every measure, and all measures by name: commands, documentation, gate and report read them here.

Measures that come with veilmeter and those of other packages are the same: a `Measure` at the top of a module of
`veilmeter.metrics`, or one that a package registers under the entry point group `veilmeter.measures`. Both are
computed, shown and gated alike.
"""

from __future__ import annotations

import importlib
import math
import pkgutil
from collections.abc import Callable, Container
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from veilmeter.core.errors import InputError, VeilmeterError, foreign_errors
from veilmeter.core.estimate import Estimate, Estimates, Private
from veilmeter.core.intervals import LEVEL, cluster_interval
from veilmeter.core.registry import Registry, find_entry_points
from veilmeter.core.user_code import load_object

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

    Attributes
    ----------
    name, label, unit : str
        Its name, its name in print, and the unit of its values.
    better : {"higher", "lower", "neither"}
        The direction in which people are safer.
    meaning, source : str
        What it says, and who defined it.
    kind : {"scores", "embeddings", "recordings"}, optional
        What it is computed from.
    compute : callable, optional
        What computes it.
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
        if self.unit in ("probability", "fraction"):
            raise InputError(
                f"the measure {self.name!r} has the unit {self.unit!r}", fix="give percentages, with the unit 'percent'"
            )
        if not self.section:
            object.__setattr__(self, "section", _SECTION_OF_KIND.get(self.kind or "", ""))
        if self.section not in SECTIONS:
            raise InputError(
                f"the measure {self.name!r} has no section called {self.section!r}",
                fix=f"choose from {', '.join(SECTIONS)}",
            )

    def __call__(self, *material: Any) -> Any:
        """What it computes from the material, as the function does that it was made from."""
        if self.compute is None or isinstance(self.compute, tuple):
            raise TypeError(f"the measure {self.name!r} is not one function")
        return self.compute(*material)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        """The function that it was made from, where it is one."""
        if self.compute is None or isinstance(self.compute, tuple):
            raise AttributeError("__wrapped__")
        return self.compute

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
    """The ending of the name of a measure's variant for this rate.

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


class MeasureRegistry(Registry[Measure]):
    """Measures by name. A name may have a variant behind it: `tpr@fpr=0.01`, `c_ece_linear`, `eer_per_speaker`."""

    def __init__(self) -> None:
        super().__init__(
            "measure",
            "veilmeter.measures",
            partial(_measures_in, "veilmeter.metrics"),
            accepts=lambda thing: isinstance(thing, Measure),
        )
        self._families: dict[str, str] = {}

    @cached_property
    def _of_scores(self) -> dict[str, Measure]:
        """Veilmeter's own measures of scores, so that a user of these alone need not import all modules."""
        return _measures_in("veilmeter.metrics.scores")

    def __getitem__(self, name: str) -> Measure:
        """The measure, or the variant of one: the same words under another name and label."""
        family = self.family(name)
        return super().__getitem__(family).variant(name)

    def family(self, name: str) -> str:
        """The registered name of a measure or of its variant; a name that is registered is its own family.

        >>> MEASURES.family("tpr@fpr=0.01"), MEASURES.family("d_ece")
        ('tpr@fpr', 'd_ece')
        """
        if name in self._of_scores or name in self._loaded:
            return name
        if name not in self._families:  # looking through installed packages takes milliseconds
            computed = [entry.name for entry in self._of_scores.values() if name in entry.functions]
            self._families[name] = computed[0] if computed else family_of(name, self.names) or name
        return self._families[name]

    def register(self, name: str, thing: Measure) -> None:
        super().register(name, thing)
        self._families.clear()

    def admit(self, name: str, thing: Measure) -> None:
        super().admit(name, thing)
        self._families.clear()

    def find(self, given: str | Measure) -> Measure:
        """A measure by name; or as `module:name`, `file.py:name` or an object, for those who ask for it."""
        if isinstance(given, str) and ":" not in given:
            return self[given]
        found = load_object(given, "measure")[0] if isinstance(given, str) else given
        if not isinstance(found, Measure):
            raise InputError(
                f"{given if isinstance(given, str) else type(given).__name__} is not a measure: it is a "
                f"{type(found).__name__}",
                fix="make it one with @veilmeter.measure_of",
            )
        if self._loaded.get(found.name) is not found:
            self.admit(found.name, found)
        return found

    def values(self) -> list[Measure]:
        return [self[name] for name in self]

    def of_kind(self, kind: InputKind, asked: Container[str] = ()) -> list[Measure]:
        """The measures that are computed from this kind of material, one by one; those that were admitted for somebody
        who asked for them only where they are asked for."""
        own = self._of_scores if kind == "scores" else self._built_in
        added = sorted(entry.name for entry in find_entry_points(self.group))
        names = dict.fromkeys([*own, *self._loaded, *added])
        entries = [self[name] for name in names if name not in self.admitted or name in asked]
        return [entry for entry in entries if entry.kind == kind]

    def _load(self, name: str) -> Measure:
        return self._of_scores.get(name) or super()._load(name)

    def _check(self, name: str, thing: Measure) -> Measure:
        checked = super()._check(name, thing)
        if checked.name != name:
            raise InputError(f"the measure {checked.name!r} is registered as {name!r}", fix="use one name for it")
        return checked


def measure_of(
    kind: InputKind,
    *,
    name: str = "",
    label: str = "",
    unit: str = "",
    better: Private = "neither",
    meaning: str = "",
    source: str = "",
    **facts: Any,
) -> Callable[[Callable[..., Any]], Measure]:
    """Make a measure of a function, as a decorator.

    Parameters
    ----------
    kind : {"scores", "embeddings", "recordings"}
        What the function takes: `Scores`; two `Embeddings`, original and anonymized, of the same recordings; or the
        samples of a recording before and after, and their rate.
    name : str
        Name of the measure; by default that of the function.
    label : str
        Name in print; by default the name in words.
    unit : str
        Unit of the values, such as `"percent"` or `"bit"`.
    better : {"higher", "lower", "neither"}
        The direction in which people are safer.
    meaning : str
        One sentence for a person who has never heard of it; by default the first line of the docstring.
    source : str
        The paper or standard that defines it.
    **facts
        Further fields of `Measure`, such as `low`, `high` or `section`.

    Returns
    -------
    Measure
        To be given to `assess` or `measure`, or named as `file.py:name` on the command line. It can still be called.

    Raises
    ------
    InputError
        If the kind, the unit or a field is unknown.

    Examples
    --------
    >>> @measure_of("scores", unit="percent", better="higher")
    ... def overlap(scores):
    ...     "The share of target scores below the highest impostor score."
    ...     return 100 * float((scores.targets < scores.impostors.max()).mean())
    >>> overlap.label, overlap.meaning
    ('overlap', 'The share of target scores below the highest impostor score.')
    """

    def make(function: Callable[..., Any]) -> Measure:
        called = name or getattr(function, "__name__", "measure")
        described = meaning or (function.__doc__ or "").strip().partition("\n")[0]
        try:
            return Measure(
                name=called, label=label or called.replace("_", " "), unit=unit, better=better, meaning=described,
                source=source, kind=kind, compute=function, **facts,
            )  # fmt: skip
        except TypeError as error:
            raise InputError(f"the measure {called!r}: {error}") from None

    return make


def _measures_in(package: str) -> dict[str, Measure]:
    """The measures at the top of the modules of a package, by section and order."""
    found: dict[str, Measure] = {}
    for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
        for thing in vars(importlib.import_module(module.name)).values():
            for entry in thing if isinstance(thing, tuple) else (thing,):
                if isinstance(entry, Measure) and found.setdefault(entry.name, entry) is not entry:
                    raise InputError(f"two measures are called {entry.name!r}; the second is in {module.name}")
    entries = sorted(found.values(), key=lambda entry: (SECTIONS.index(entry.section), entry.order))
    return {entry.name: entry for entry in entries}


def find_measure(name: str) -> Measure:
    """The entry of a measure or of its variant; an InputError that suggests the nearest one if there is none.

    >>> find_measure("tpr@fpr=0.01").label, find_measure("eer_per_speaker").label, find_measure("d_ece_oo").label
    ('TPR at FPR 1 %', 'EER per speaker', 'D_ECE OO')
    """
    return MEASURES[name]


def label_of(name: str) -> str:
    """The label of a measure, or its name in words where it is not known here (a plug-in that is not installed)."""
    try:
        return MEASURES[name].label
    except VeilmeterError:
        return name.replace("_", " ")


def measure_behind(estimate: Estimate) -> Measure | None:
    """The measure of an estimate; None where the plug-in that measured it is not installed here."""
    try:
        return MEASURES[estimate.name]
    except VeilmeterError:
        return None


def is_headline(name: str) -> bool:
    """Whether comparisons and pages for laypeople show it: not a variant with other words behind its name, such as
    `eer_speechbrain`; unknown ones are somebody's own.

    >>> [is_headline(name) for name in ("eer", "eer_speechbrain", "d_sys", "not_installed_here")]
    [True, False, False, True]
    """
    family = MEASURES.family(name)
    if family not in MEASURES:
        return True
    return MEASURES[family].headline and (name == family or name[len(family)] == "=")


def better_direction(estimate: Estimate) -> Private:
    """The direction that is better: in which people are safer, or, of speech that is to be used, the more useful.

    >>> [better_direction(estimate_of(name, 30.0)) for name in ("eer", "wer", "g_vd")]
    ['higher', 'lower', 'neither']
    """
    if estimate.better != "neither":
        return estimate.better
    entry = measure_behind(estimate)
    return "neither" if entry is None else entry.use


def estimate_of(name: str, value: float, **facts: Any) -> Estimate:
    """An `Estimate` with the words of its measure: label, unit and direction are never repeated elsewhere.

    >>> print(estimate_of("eer", 30.943, interval=(28.4, 33.6), method="ROCCH"))
    EER 30.9 % [28.4, 33.6] (ROCCH)
    """
    return MEASURES[name].estimate(value, **facts)


def percentage_of(
    name: str,
    share: float,
    *,
    interval: tuple[float, float] | None = None,
    null: float | None = None,
    **facts: Any,
) -> Estimate:
    """An `Estimate` in percent from a share between 0 and 1: measures compute with shares, and report percentages.

    >>> print(percentage_of("linkability", 0.567, interval=(0.5, 0.63), null=0.05, at={"speakers": 20}))
    Linkability at speakers 20 56.7 % [50.0, 63.0] (chance 5.0)
    """
    ends = None if interval is None else (100 * interval[0], 100 * interval[1])
    return estimate_of(name, 100 * share, interval=ends, null=None if null is None else 100 * null, **facts)


def compute_estimates(measure: Measure, *material: Any) -> Estimates:
    """The estimates of a measure of scores or embeddings, checked: its own ones, and nothing else."""
    given = _call(measure, *material)
    if isinstance(given, int | float) and not isinstance(given, bool):
        given = measure.estimate(_as_float(measure, given))
    points = Estimates([given]) if isinstance(given, Estimate) else given
    if not isinstance(points, Estimates):
        raise InputError(
            f"the measure {measure.name!r} gave a {type(given).__name__}",
            fix="it must give a number, an Estimate or Estimates",
        )
    for point in points:
        if point.name != measure.name and family_of(point.name, [measure.name]) is None:
            raise InputError(f"the measure {measure.name!r} gave an estimate called {point.name!r}")
    return points


def compute_on_recording(measure: Measure, original: ArrayLike, anonymized: ArrayLike, rate: int) -> float:
    """The value of a measure of recordings for one recording before and after."""
    return _as_float(measure, _call(measure, original, anonymized, rate))


def _as_float(measure: Measure, given: Any) -> float:
    try:
        return float(given)
    except OverflowError:
        raise InputError(f"the measure {measure.name!r} gave a number that is too large") from None
    except (TypeError, ValueError):
        raise InputError(
            f"the measure {measure.name!r} gave a {type(given).__name__}", fix="it must give a number per recording"
        ) from None


def mean_over_recordings(
    measure: Measure, values: ArrayLike, speakers: ArrayLike, *, level: float = LEVEL, **facts: Any
) -> Estimate:
    """The mean of one number per recording, with an interval over speakers; recordings without a number count apart."""
    numbers, who = np.asarray(values, np.float64), np.asarray(speakers)
    valid = np.isfinite(numbers)
    if not valid.any():
        raise InputError(f"no recording has a value of {measure.label}")
    low, high = cluster_interval(numbers[valid], who[valid], level=level)
    interval = (max(low, measure.low), min(high, measure.high)) if math.isfinite(low) else None
    counts = {"recordings": int(valid.sum()), "speakers": len(np.unique(who[valid]))}
    if not valid.all():
        counts["without_value"] = int((~valid).sum())
    return measure.estimate(float(numbers[valid].mean()), interval=interval, n=counts, **facts)


def _call(measure: Measure, *material: Any) -> Any:
    assert callable(measure.compute)
    with foreign_errors(f"the measure {measure.name!r} failed"):
        return measure.compute(*material)


MEASURES = MeasureRegistry()
