"""Several sets of scores in one figure each: OO, OP and PP of one anonymizer, or the attackers of one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from veilmeter.core.colors import BLUE, GRAY, RED
from veilmeter.core.errors import InputError
from veilmeter.data.scores import Scores
from veilmeter.metrics.scores import zebra
from veilmeter.metrics.scores.eer import eer
from veilmeter.metrics.scores.forms import bin_counts
from veilmeter.report.figures.scores import (
    HEIGHT,
    LARGEST,
    NOTHING_KNOWN,
    WIDTH,
    det_lines,
    det_rows,
    ece_lines,
    spread,
)
from veilmeter.report.figures.style import FORMATS, apply_style, hues, save, table
from veilmeter.report.figures.typesetting import Typesetting

WORDS = {
    "OO": "original with original (OO)",
    "OP": "original with protected (OP)",
    "PP": "protected with protected (PP)",
}
_COLORS = {WORDS["OO"]: GRAY, WORDS["OP"]: RED, WORDS["PP"]: BLUE}
_BINS = 60


def save_overlays(
    sets: Mapping[str, Scores],
    folder: str | Path,
    formats: Iterable[str] = FORMATS,
    setting: Typesetting | None = None,
) -> list[Path]:
    """Write ECE profiles, DET curves and densities of several sets of scores over each other.

    Parameters
    ----------
    sets : mapping of str to Scores
        The sets by name: OO, OP and PP, or as you like.
    folder : str or Path
        The folder for the figures.
    formats : iterable of {"svg", "png", "pdf"}
        The forms in which each is written.
    setting : Typesetting, optional
        Width and font, for print.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    InputError
        If a set has no name, or altair is not installed.

    Examples
    --------
    >>> save_overlays({"OO": original, "OP": mixed}, "figures")  # doctest: +SKIP
    """
    wanted = tuple(formats)
    charts = {"ece_profiles": ece_profiles(sets), "det_curves": det_curves(sets), "densities": densities(sets)}
    return [path for name, chart in charts.items() for path in save(chart, folder, name, wanted, setting)]


def ece_profiles(sets: Mapping[str, Scores]) -> Any:
    """Draw what each set of scores leaves unknown (paper 004, figure 7); the legend gives D_ECE.

    Parameters
    ----------
    sets : mapping of str to Scores
        The sets by name: OO, OP and PP, or as you like.

    Returns
    -------
    altair.Chart
        The figure; a notebook shows it.

    Raises
    ------
    InputError
        If a set has no name, or altair is not installed.

    Examples
    --------
    >>> ece_profiles({"OO": original, "OP": mixed})  # doctest: +SKIP
    """
    rows: list[dict[str, Any]] = []
    names, prior = [], None
    for key, scores in _check_names(sets).items():
        profile = zebra.ece_profile(scores.targets, scores.impostors)
        prior = prior or profile
        names.append(f"{key}: {zebra.zebra(scores.targets, scores.impostors).d_ece:.3f} bit")
        rows += _profile_rows(names[-1], profile.log_odds, profile.pav)
    if prior is not None:
        rows += _profile_rows(NOTHING_KNOWN, prior.log_odds, prior.prior)
    color = _color(list(_check_names(sets)), shown=[*names, NOTHING_KNOWN], more=["black"])
    chart = ece_lines(rows, "set", color, dashed=NOTHING_KNOWN)
    return apply_style(chart.properties(width=WIDTH, height=HEIGHT, title="What the scores leave unknown"))


def _profile_rows(name: str, log_odds: Any, curve: Any) -> list[dict[str, Any]]:
    pairs = zip(log_odds / np.log(10), curve, strict=True)
    return [{"set": name, "log_odds": round(float(x), 3), "ece": float(y)} for x, y in pairs]


def det_curves(sets: Mapping[str, Scores]) -> Any:
    """Misses against false alarms of each set, on normal-deviate axes; the legend gives the EER."""
    rows: list[dict[str, Any]] = []
    names = []
    for key, scores in _check_names(sets).items():
        t, n = scores.ordered
        thresholds = np.unique(np.concatenate([spread(t), spread(n)]))
        miss = np.searchsorted(t, thresholds, side="left") / len(t)
        false = 1 - np.searchsorted(n, thresholds, side="left") / len(n)
        names.append(f"{key}: EER {eer(t, n):.1f} % (rocch)")
        rows += det_rows(100 * false, 100 * miss, set=names[-1])
    chart = det_lines(rows, "set", _color(list(_check_names(sets)), shown=names))
    return apply_style(chart.properties(width=HEIGHT + 40, height=HEIGHT + 40, title="Detection error trade-off"))


def densities(sets: Mapping[str, Scores]) -> Any:
    """Densities of target (solid) and impostor scores (dashed) of each set over common bins."""
    import altair as alt

    known = _check_names(sets)
    ends = [end for scores in known.values() for end in (scores.values.min(), scores.values.max())]
    low, high = float(min(ends)), float(max(ends))
    edges = np.linspace(low, high, _BINS + 1) if high > low else np.linspace(low - 0.5, low + 0.5, _BINS + 1)
    rows = [
        {"set": key, "trials": kind, "score": float(edges[i : i + 2].mean()), "density": float(density)}
        for key, scores in known.items()
        for kind, values in (("target", scores.targets), ("impostor", scores.impostors))
        for i, density in enumerate(bin_counts(np.sort(values), edges) / (len(values) * (edges[1] - edges[0])))
    ]
    dash = alt.StrokeDash(
        "trials:N", title=None, scale=alt.Scale(domain=["target", "impostor"], range=[[1, 0], [4, 3]]),
        legend=alt.Legend(orient="bottom"),
    )  # fmt: skip
    chart = (
        alt.Chart(table(rows))
        .mark_line(interpolate="step", strokeWidth=1.8)
        .encode(
            x=alt.X("score:Q", title="score"),
            y=alt.Y("density:Q", title="density"),
            color=_color(list(known), shown=list(known)),
            strokeDash=dash,
            tooltip=["set:N", "trials:N", alt.Tooltip("score:Q", format=".3g"), alt.Tooltip("density:Q", format=".3g")],
        )
    )
    return apply_style(chart.properties(width=WIDTH, height=HEIGHT, title="Scores of target and impostor trials"))


def _check_names(sets: Mapping[str, Scores]) -> dict[str, Scores]:
    """The sets by the words that a legend shows."""
    if not sets:
        raise InputError("no scores to draw")
    for scores in sets.values():
        if np.abs(scores.values).max() > LARGEST:
            raise InputError(f"scores beyond {LARGEST:g} can't be drawn", path=scores.source or None)
    return {WORDS.get(name, name): scores for name, scores in sets.items()}


def _color(keys: Sequence[str], *, shown: Sequence[str], more: Sequence[str] = ()) -> Any:
    """OO, OP and PP keep their colors in every figure; `shown` are the legend's words, `more` the colors behind."""
    import altair as alt

    usual = all(key in _COLORS for key in keys)
    colors = [_COLORS[key] for key in keys] if usual else hues(keys)
    return alt.Color(
        "set:N",
        title=None,
        sort=list(shown),
        scale=alt.Scale(domain=list(shown), range=[*colors, *more]),
        legend=alt.Legend(orient="bottom", direction="vertical", labelLimit=400),
    )
