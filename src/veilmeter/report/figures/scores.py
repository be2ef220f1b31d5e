"""Figures of a set of scores: ECE profile, histogram, DET curve, and empirical calibration plot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.colors import BLUE, GRAY, ORANGE, RED
from veilmeter.core.errors import InputError
from veilmeter.core.estimate import Estimate
from veilmeter.core.intervals import normal_quantile
from veilmeter.data.scores import Scores
from veilmeter.metrics.calibration import pav, sigmoid
from veilmeter.metrics.scores import zebra
from veilmeter.metrics.scores.forms import bin_counts
from veilmeter.report.figures.style import FORMATS, apply_style, save, table
from veilmeter.report.figures.typesetting import Typesetting

Floats = NDArray[np.float64]
WIDTH, HEIGHT = 420, 280
LARGEST = 1e100  # of scores; beyond it an axis has no numbers
NOTHING_KNOWN = "no scores (perfect privacy)"


def save_all(
    scores: Scores,
    estimates: Mapping[str, Any],
    folder: str | Path,
    formats: Iterable[str] = FORMATS,
    setting: Typesetting | None = None,
) -> list[Path]:
    """All figures as files in `folder`."""
    if np.abs(scores.values).max() > LARGEST:
        raise InputError(
            f"scores beyond {LARGEST:g} can't be drawn", path=scores.source or None, fix="leave these trials out"
        )
    charts = {
        "ece_profile": ece_profile(scores, estimates["d_ece"], estimates["l_w"]),
        "histogram": histogram(scores),
        "det": det(scores, estimates["eer"]),
        "calibration": calibration(scores),
    }
    return [path for name, chart in charts.items() for path in save(chart, folder, name, formats, setting)]


def ece_profile(scores: Scores, d_ece: Estimate, l_w: Estimate) -> Any:
    """ECE over the prior's log-odds (paper 004, figure 7): what is left to know after seeing the scores.

    The legend gives (D_ECE, l_w, tag). D_ECE is the area between the calibrated and the black curve over the prior, not
    over this axis.
    """
    import altair as alt

    profile = zebra.ece_profile(scores.targets, scores.impostors)
    oracle = f"calibrated ({d_ece.value:.3f} bit, {l_w.value:.2f}, {l_w.extra['tag']})"
    raw = "scores as they are" + (" (off the scale)" if profile.actual.min() > 1.05 else "")
    names = {raw: profile.actual, oracle: profile.pav, NOTHING_KNOWN: profile.prior}
    rows = [
        {"curve": name, "log_odds": round(float(x), 3), "ece": float(y)}
        for name, curve in names.items()
        for x, y in zip(profile.log_odds / np.log(10), curve, strict=True)
    ]
    color = alt.Color(
        "curve:N",
        title=None,
        sort=list(names),
        scale=alt.Scale(domain=list(names), range=[RED, BLUE, "black"]),
        legend=alt.Legend(orient="bottom", direction="vertical", labelLimit=400),
    )
    chart = ece_lines(rows, "curve", color, dashed=NOTHING_KNOWN).properties(
        width=WIDTH, height=HEIGHT, title="What the scores leave unknown"
    )
    return apply_style(chart)


def ece_lines(
    rows: list[dict[str, Any]],
    field: str,
    color: Any,
    *,
    dashed: str,
    titles: tuple[str, str] = ("prior log-odds of target (log10)", "empirical cross-entropy (bit)"),
) -> Any:
    """ECE over the prior's log-odds, a line for each value of `field`; the one called `dashed` is not measured."""
    import altair as alt

    names = list(dict.fromkeys(row[field] for row in rows))
    return (
        alt.Chart(table(rows))
        .mark_line(strokeWidth=2, clip=True)
        .encode(
            x=alt.X("log_odds:Q", title=titles[0], scale=alt.Scale(domain=[-3, 3]), axis=alt.Axis(tickCount=7)),
            y=alt.Y("ece:Q", title=titles[1], scale=alt.Scale(domain=[0, 1.05]), axis=alt.Axis(tickCount=6)),
            color=color,
            strokeDash=alt.StrokeDash(
                f"{field}:N",
                title=color["title"],
                sort=names,
                legend=color["legend"],
                scale=alt.Scale(domain=names, range=[[5, 3] if name == dashed else [1, 0] for name in names]),
            ),
            tooltip=[f"{field}:N", alt.Tooltip("log_odds:Q", format=".2f"), alt.Tooltip("ece:Q", format=".3f")],
        )
    )


def histogram(scores: Scores, *, bins: int = 60) -> Any:
    """Densities of target and impostor scores over common bins."""
    import altair as alt

    t, n = scores.ordered
    edges = np.linspace(min(t[0], n[0]), max(t[-1], n[-1]), bins + 1)
    if not edges[-1] > edges[0]:
        edges = np.linspace(t[0] - 0.5, t[0] + 0.5, bins + 1)
    width = edges[1] - edges[0]
    rows = [
        {"trials": name, "from": float(edges[i]), "to": float(edges[i + 1]), "density": float(density)}
        for name, values in (("impostor", n), ("target", t))
        for i, density in enumerate(bin_counts(values, edges) / (len(values) * width))
    ]
    chart = (
        alt.Chart(table(rows))
        .mark_bar(opacity=0.55, binSpacing=0)
        .encode(
            x=alt.X("from:Q", title="score", bin="binned"),
            x2="to:Q",
            y=alt.Y("density:Q", title="density", stack=None),
            color=alt.Color(
                "trials:N",
                title=None,
                scale=alt.Scale(domain=["target", "impostor"], range=[ORANGE, GRAY]),
                legend=alt.Legend(orient="top-left", fillColor="white", padding=4),
            ),
            tooltip=["trials:N", alt.Tooltip("from:Q", format=".3g"), alt.Tooltip("density:Q", format=".3g")],
        )
        .properties(width=WIDTH, height=HEIGHT, title="Scores of target and impostor trials")
    )
    return apply_style(chart)


_TICKS = (0.1, 0.5, 1, 2, 5, 10, 20, 40, 60, 80)


def det(scores: Scores, eer: Estimate, *, points: int = 400) -> Any:
    """Miss rate against false alarm rate on normal-deviate axes, the ROC's convex hull, and the EER."""
    import altair as alt

    t, n = scores.ordered
    thresholds = np.unique(np.concatenate([spread(t, points), spread(n, points)]))
    miss = np.searchsorted(t, thresholds, side="left") / len(t)
    false = 1 - np.searchsorted(n, thresholds, side="left") / len(n)
    blocks = pav(t, n, presorted=True)
    hull_miss = np.concatenate([[0], np.cumsum(blocks.targets) / len(t)])
    hull_false = 1 - np.concatenate([[0], np.cumsum(blocks.impostors) / len(n)])
    rows = det_rows(100 * false, 100 * miss, curve="scores")
    rows += det_rows(100 * hull_false, 100 * hull_miss, curve="convex hull")
    color = alt.Color(
        "curve:N",
        title=None,
        scale=alt.Scale(domain=["scores", "convex hull"], range=[BLUE, ORANGE]),
        legend=alt.Legend(orient="bottom"),
    )
    at = normal_quantile(min(max(eer.value / 100, 1e-4), 0.84))
    x, y = _det_axes(("false alarm rate (%)", "miss rate (%)"))
    dot = alt.Chart(table([{"false": at, "miss": at, "text": f"EER {eer.value:.1f} % ({eer.method})"}])).encode(
        x=x, y=y
    )
    label = dot.mark_text(align="left", dx=8, dy=-8, fontSize=11).encode(text="text:N")
    chart = det_lines(rows, "curve", color) + dot.mark_point(color="black", filled=True, size=50) + label
    return apply_style(chart.properties(width=HEIGHT + 40, height=HEIGHT + 40, title="Detection error trade-off"))


def _det_axes(titles: tuple[str, str]) -> tuple[Any, Any]:
    """False alarms and misses on normal-deviate axes, where normal scores make straight lines."""
    import altair as alt

    ticks = [normal_quantile(p / 100) for p in _TICKS]
    words = " : ".join(f"abs(datum.value - ({at:.6f})) < 1e-4 ? '{p:g}'" for at, p in zip(ticks, _TICKS, strict=True))
    axis = alt.Axis(values=ticks, labelExpr=f"{words} : ''", grid=True)
    scale = alt.Scale(domain=list(_det_range()), nice=False, zero=False)
    x = alt.X("false:Q", title=titles[0], scale=scale, axis=axis)
    return x, alt.Y("miss:Q", title=titles[1], scale=scale, axis=axis)


def _det_range() -> tuple[float, float]:
    return normal_quantile(0.0008), normal_quantile(0.85)


def det_lines(
    rows: list[dict[str, Any]],
    field: str,
    color: Any,
    *,
    titles: tuple[str, str] = ("false alarm rate (%)", "miss rate (%)"),
) -> Any:
    """A line for each value of `field` over the diagonal, on which equal error rates lie; rows are `det_rows`."""
    import altair as alt

    x, y = _det_axes(titles)
    lines = (
        alt.Chart(table(rows))
        .mark_line(clip=True, strokeWidth=2)
        .encode(
            x=x,
            y=y,
            order="order:Q",
            color=color,
            tooltip=[f"{field}:N", alt.Tooltip("fpr:Q", title=titles[0], format=".2f"),
                     alt.Tooltip("fnr:Q", title=titles[1], format=".2f")],
        )
    )  # fmt: skip
    low, high = _det_range()
    points = alt.sequence(low, high + 1e-6, high - low, as_="false")  # without data: it is not in the CSV
    across = alt.Y("false:Q", title=titles[1], scale=y["scale"], axis=y["axis"])
    diagonal = alt.Chart(points).mark_line(color=GRAY, strokeDash=[3, 3], strokeWidth=1).encode(x=x, y=across)
    return diagonal + lines


def spread(ordered: Floats, points: int = 400) -> Floats:
    """Some of the scores, denser in both tails, where rates are small."""
    if len(ordered) <= points:
        return ordered
    steps = np.concatenate([np.geomspace(1, len(ordered) / 2, points // 2), np.array([0.5])])
    ranks = np.unique(np.concatenate([steps - 1, len(ordered) - steps]).astype(np.intp))
    return ordered[ranks]


def det_rows(false: Iterable[float], miss: Iterable[float], **names: str) -> list[dict[str, Any]]:
    """Points of a DET curve from rates in percent; `names` say whose they are."""
    bounded = [(min(max(float(f) / 100, 1e-5), 1 - 1e-5), min(max(float(m) / 100, 1e-5), 1 - 1e-5))
               for f, m in zip(false, miss, strict=True)]  # fmt: skip
    return [
        {**names, "order": i, "false": round(normal_quantile(f), 5), "miss": round(normal_quantile(m), 5),
         "fpr": round(100 * f, 4), "fnr": round(100 * m, 4)}
        for i, (f, m) in enumerate(bounded)
    ]  # fmt: skip


def calibration(scores: Scores, *, bins: int = 20) -> Any:
    """The empirical calibration plot (paper 004, figure 4): does a posterior of 30 % come true in 30 % of the trials?

    Scores are taken as log-likelihood ratios; the posterior is at the empirical prior. A point's area is the number of
    trials in its bin.
    """
    import altair as alt

    rows = []
    prior = float(np.log(len(scores.targets) / len(scores.impostors)))
    calibrated = pav(scores.targets, scores.impostors)
    for name, llrs in (("scores as they are", None), ("after oracle calibration", calibrated)):
        t = scores.targets if llrs is None else llrs.apply(scores.targets)
        n = scores.impostors if llrs is None else llrs.apply(scores.impostors)
        p_t, p_n = sigmoid(t + prior), sigmoid(n + prior)
        edges = np.linspace(0, 1, bins + 1)
        in_t, in_n = (np.minimum((p * bins).astype(np.intp), bins - 1) for p in (p_t, p_n))
        hits, misses = np.bincount(in_t, minlength=bins), np.bincount(in_n, minlength=bins)
        mean = np.bincount(in_t, p_t, minlength=bins) + np.bincount(in_n, p_n, minlength=bins)
        for i in np.flatnonzero(hits + misses):
            total = int(hits[i] + misses[i])
            rows.append({"scores": name, "predicted": float(100 * mean[i] / total),
                         "found": float(100 * hits[i] / total), "trials": total,
                         "from": float(100 * edges[i])})  # fmt: skip
    x = alt.X("predicted:Q", title="posterior that the scores claim (%)", scale=alt.Scale(domain=[0, 100]))
    y = alt.Y("found:Q", title="share of target trials (%)", scale=alt.Scale(domain=[0, 100]))
    color = alt.Color(
        "scores:N",
        title=None,
        scale=alt.Scale(domain=["scores as they are", "after oracle calibration"], range=[RED, BLUE]),
        legend=alt.Legend(orient="bottom"),
    )
    base = alt.Chart(table(rows)).encode(x=x, y=y, color=color)
    points = base.mark_circle(opacity=0.8).encode(
        size=alt.Size("trials:Q", scale=alt.Scale(type="log", range=[20, 300]), legend=None),
        tooltip=[
            "scores:N",
            alt.Tooltip("predicted:Q", format=".1f"),
            alt.Tooltip("found:Q", format=".1f"),
            "trials:Q",
        ],
    )
    ideal = (
        alt.Chart(table([{"predicted": 0, "found": 0}, {"predicted": 100, "found": 100}]))
        .mark_line(color=GRAY, strokeDash=[3, 3], strokeWidth=1)
        .encode(x=x, y=y)
    )
    chart = (ideal + base.mark_line(strokeWidth=1, opacity=0.5) + points).properties(
        width=HEIGHT + 40, height=HEIGHT + 40, title="Do the scores keep their word?"
    )
    return apply_style(chart)
