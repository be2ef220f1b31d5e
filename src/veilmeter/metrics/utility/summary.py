"""One row per recording, and the estimates that follow from the rows: for everybody, per group and per person.

The melody of a recording is measured by the correlation of two pitch tracks (the challenges' ρ of F0).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from veilmeter.core.estimate import Estimate, Estimates
from veilmeter.core.intervals import LEVEL
from veilmeter.metrics.measure import Measure, estimate_of, find_measure, mean_over_recordings
from veilmeter.metrics.utility.words import TextErrors, difference_with_interval, rate_with_interval

LONGEST_LAG = 25  # frames of 16 ms, to either side
FEWEST_FRAMES = 20  # voiced on both sides, for a correlation to mean anything
LEAST_OVERLAP = 0.5  # of the frames voiced on both sides without a lag

PITCH_CORRELATION = Measure(
    name="pitch_correlation",
    label="pitch correlation",
    unit="",
    better="neither",
    meaning="Whether the melody survives: 1 if the pitch rises and falls as in the original, 0 if it has nothing to "
    "do with it.",
    source="cf. Tomashenko et al. 2022",
    section="utility",
    equation="Pearson's ρ of F0 over frames voiced on both sides, at the best lag",
    low=-1,
    high=1,
    use="higher",
)


def pitch_correlation(original: ArrayLike, anonymized: ArrayLike) -> float:
    """Pearson's correlation of the pitch over the frames that are voiced on both sides; NaN where they are too few.

    Tracks are Hertz per frame, 0 where nothing is voiced. A track of another length is stretched to the original's.
    Processing may delay speech: of all lags up to 0.4 s, the one with the greatest correlation counts, which is why
    even unrelated tracks correlate a little. A monotone voice has no melody, and a correlation of 0.

    >>> track = np.r_[np.zeros(9), 120 + 30 * np.sin(np.arange(80) / 7)]
    >>> round(pitch_correlation(track, np.r_[np.zeros(4), track * 1.5]), 2)
    1.0
    """
    x = np.asarray(original, np.float64)
    y = _stretch(np.asarray(anonymized, np.float64), len(x))
    together = int(np.count_nonzero((x > 0) & (y > 0)))
    fewest = max(FEWEST_FRAMES, LEAST_OVERLAP * together)
    best = np.nan
    longest = min(LONGEST_LAG, len(x) - 1)
    for lag in range(-longest, longest + 1):
        a, b = (x[lag:], y[: len(y) - lag]) if lag >= 0 else (x[:lag], y[-lag:])
        voiced = (a > 0) & (b > 0)
        if np.count_nonzero(voiced) >= fewest:
            best = np.fmax(best, _pearson(a[voiced], b[voiced]))
    return float(best)


def _stretch(track: NDArray[np.float64], length: int) -> NDArray[np.float64]:
    """The track over as many frames as the other one has, by the nearest frame; a few frames are cut or added."""
    if abs(len(track) - length) <= LONGEST_LAG or not len(track):
        return np.pad(track, (0, max(0, length - len(track))))[:length]
    places = np.round(np.linspace(0, len(track) - 1, length)).astype(int)
    return np.asarray(track[places])


def _pearson(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    a, b = a - a.mean(), b - b.mean()
    spread = float(np.sqrt((a @ a) * (b @ b)))
    return float(a @ b) / spread if spread > 1e-9 else 0.0


ORIGINAL = "_original"  # behind the name of a measure: the same figure on original speech
_CHANGES = {"d_mos": "mos"}
_IN_ROWS = ("mos", "dnsmos_ovr", "pitch_correlation", "duration_ratio", "level_difference")

Numbers = NDArray[np.float64]


MEASURES = (
    Measure(
        name="mos",
        label="MOS (Distill-MOS)",
        unit="",
        better="neither",
        meaning="How good it sounds, from 1 (bad) to 5 (excellent), as a model predicts what listeners would say.",
        source="Stahl & Gamper 2025",
        section="utility",
        equation="mean over stretches of 7.68 s",
        low=1,
        high=5,
        use="higher",
    ),
    Measure(
        name="d_mos",
        label="MOS, change",
        unit="",
        better="neither",
        meaning="How much better it sounds than the original speech; below 0 it sounds worse.",
        source="Stahl & Gamper 2025",
        section="utility",
        equation="MOS of anonymized − MOS of original speech",
        low=-4,
        high=4,
        use="higher",
        headline=False,
    ),
    Measure(
        name="dnsmos_sig",
        label="DNSMOS speech",
        unit="",
        better="neither",
        meaning="How undistorted the speech itself is, from 1 to 5, as a model predicts what listeners would say.",
        source="Reddy et al. 2022",
        section="utility",
        equation="P.835 SIG, mean over stretches of 9.01 s",
        low=0,
        high=5,
        use="higher",
        headline=False,
    ),
    Measure(
        name="dnsmos_bak",
        label="DNSMOS background",
        unit="",
        better="neither",
        meaning="How little the background disturbs, from 1 to 5, as a model predicts what listeners would say.",
        source="Reddy et al. 2022",
        section="utility",
        equation="P.835 BAK, mean over stretches of 9.01 s",
        low=0,
        high=5,
        use="higher",
        headline=False,
    ),
    Measure(
        name="dnsmos_ovr",
        label="DNSMOS overall",
        unit="",
        better="neither",
        meaning="How clean it is overall, from 1 to 5, as a model predicts what listeners would say.",
        source="Reddy et al. 2022",
        section="utility",
        equation="P.835 OVRL, mean over stretches of 9.01 s",
        low=0,
        high=5,
        use="higher",
        headline=False,
    ),
    Measure(
        name="duration_ratio",
        label="duration ratio",
        unit="",
        better="neither",
        meaning="How long the anonymized recording is, compared with the original one; 1 is as long.",
        source="veilmeter",
        section="utility",
        equation="seconds of anonymized / seconds of original speech",
        low=0,
        headline=False,
    ),
    Measure(
        name="level_difference",
        label="level difference",
        unit="dB",
        better="neither",
        meaning="How much louder the anonymized recording is than the original one; below 0 it is quieter.",
        source="veilmeter",
        section="utility",
        equation="10 log₁₀(mean square of anonymized / of original samples)",
        headline=False,
    ),
    Measure(
        name="real_time_factor",
        label="real-time factor",
        unit="",
        better="neither",
        meaning="How long one processor works to anonymize a second of speech, in seconds; below 1 it keeps up with "
        "live speech.",
        source="veilmeter",
        section="utility",
        equation="processing time / duration",
        low=0,
        use="lower",
        headline=False,
    ),
)


@dataclass(frozen=True, eq=False)
class UtilityTable:
    """Original and anonymized recordings, row by row.

    `errors` are those of the recognizer on anonymized speech, `errors_original` those on original speech, where there
    is a text to compare both with; rows without a text have no words. `numbers` are by measure (and, behind
    `_original`, of original speech), NaN where a recording has none; `by_chance` what a measure gives for recordings
    that do not belong together; `groups` an attribute's value per row; `methods` how a measure was computed; `level`
    that of the intervals, but for measures that have their own `levels`.
    """

    speakers: tuple[str, ...]
    errors: TextErrors | None = None
    errors_original: TextErrors | None = None
    numbers: Mapping[str, Numbers] = field(default_factory=dict)
    by_chance: Mapping[str, Numbers] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    methods: Mapping[str, str] = field(default_factory=dict)
    level: float = LEVEL
    levels: Mapping[str, float] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.speakers)

    def estimates(self, rows: ArrayLike | None = None) -> Estimates:
        """Every measure over these rows, or over all; those of which no row has a value are left out."""
        chosen = np.arange(len(self)) if rows is None else np.asarray(rows, np.int64)
        return Estimates([*self._of_words(chosen), *self._of_numbers(chosen)])

    def by_group(self, attribute: str) -> dict[str, Estimates]:
        """The same measures within each value of an attribute."""
        values = np.array(self.groups[attribute])
        return {str(v): self.estimates(np.flatnonzero(values == v)) for v in np.unique(values) if v}

    def people(self) -> list[dict[str, Any]]:
        """One row per person, those whose words suffer most first."""
        who = np.array(self.speakers)
        rows = []
        for speaker in np.unique(who):
            chosen = np.flatnonzero(who == speaker)
            value_of = {point.name: point.value for point in self.estimates(chosen)}
            groups = {name: values[chosen[0]] for name, values in self.groups.items()}
            wanted = ("wer", "wer_original", "cer", *(name + end for name in _IN_ROWS for end in ("", ORIGINAL)))
            values = {name: value_of[name] for name in wanted if name in value_of}
            rows.append({"speaker": str(speaker), **groups, "recordings": len(chosen), **values})
        return sorted(rows, key=lambda row: (-row.get("wer", 0.0), row["speaker"]))

    def _of_words(self, rows: NDArray[np.int64]) -> list[Estimate]:
        if self.errors is None or not self.errors.words[rows].sum():
            return []
        who = np.array(self.speakers)[rows]
        estimates = []
        for name, unit in (("wer", "word"), ("cer", "character")):
            totals = _counts(self.errors, f"{unit}s")[rows]
            wrong = _counts(self.errors, f"{unit}_errors")[rows]
            n = {"recordings": int(np.count_nonzero(totals)), f"{unit}s": int(totals.sum()), "speakers": len(set(who))}
            method = self.methods.get("words", "")
            value, interval = rate_with_interval(wrong, totals, who, level=self.level)
            estimates.append(estimate_of(name, value, interval=interval, n=n, method=method))
            if self.errors_original is not None:
                before = _counts(self.errors_original, f"{unit}_errors")[rows]
                value, interval = rate_with_interval(before, totals, who, level=self.level)
                estimates.append(estimate_of(name + ORIGINAL, value, interval=interval, n=n, method=method))
            else:
                before = np.zeros_like(wrong)  # the reference is what was recognized in the original
            value, interval = difference_with_interval(wrong, before, totals, who, level=self.level)
            estimates.append(estimate_of(f"d_{name}", value, interval=interval, n=n, method=f"{method}, paired"))
        return estimates

    def _of_numbers(self, rows: NDArray[np.int64]) -> list[Estimate]:
        who = np.array(self.speakers)[rows]
        columns = {name: values[rows] for name, values in self.numbers.items()}
        for change, name in _CHANGES.items():
            if name in columns and name + ORIGINAL in columns:
                columns[change] = columns[name] - columns[name + ORIGINAL]
        estimates = []
        for name, values in columns.items():
            known = np.isfinite(values)
            if known.any():
                level = self.levels.get(_plain(name), self.level)
                method = self.methods.get(_plain(name), "mean over recordings")
                point = mean_over_recordings(find_measure(name), values[known], who[known], level=level, method=method)
                chance = self.by_chance.get(name)
                if chance is not None and np.isfinite(chance[rows]).any():
                    point = point.with_(null=float(np.nanmean(chance[rows])))
                estimates.append(point)
        return estimates


def _plain(name: str) -> str:
    """The measure whose figure on original speech, or whose change, this is."""
    return name.removesuffix(ORIGINAL).removeprefix("d_")


def _counts(errors: TextErrors, name: str) -> NDArray[np.int64]:
    return np.asarray(getattr(errors, name), np.int64)


@dataclass(frozen=True, slots=True)
class SpeechCounts:
    """What tells whether anonymized recordings are speech at all."""

    recordings: int
    silent: int  # nothing but silence
    wordless: int  # the recognizer found no word at all
    lost: int  # it recognized none of the spoken words; silent and wordless ones are among them
    wordless_original: int  # of the same recordings before

    def to_json(self) -> dict[str, int]:
        return {name: getattr(self, name) for name in self.__slots__}


def count_speech(
    references: Sequence[str], heard: Sequence[str], heard_original: Sequence[str], silent: Sequence[bool]
) -> SpeechCounts:
    """Counts over normalized texts, row by row; only rows with a reference count.

    >>> count_speech(["a b", "c", "d"], ["a", "", "x"], ["a b", "c", "d"], [False, True, False]).lost
    2
    """
    has_words = [bool(text) for text in references]
    lost = [
        has and not (set(reference.split()) & set(text.split()))
        for has, reference, text in zip(has_words, references, heard, strict=True)
    ]
    return SpeechCounts(
        recordings=sum(has_words),
        silent=sum(has and quiet for has, quiet in zip(has_words, silent, strict=True)),
        wordless=sum(has and not text for has, text in zip(has_words, heard, strict=True)),
        lost=sum(lost),
        wordless_original=sum(has and not text for has, text in zip(has_words, heard_original, strict=True)),
    )
