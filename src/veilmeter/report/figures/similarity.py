"""Figures of the similarity matrices: the four quadrants, the zoo, the speakers, and DeID against G_VD."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from veilmeter.core.colors import BLUE, GRAY, GREEN, ORANGE, PURPLE, RED, SKY
from veilmeter.report.figures.style import FORMATS, apply_style, hues, place_names, save, table
from veilmeter.report.figures.typesetting import Typesetting

if TYPE_CHECKING:
    from veilmeter.core.estimate import Estimate
    from veilmeter.metrics.similarity.matrices import Kind, Similarity
    from veilmeter.metrics.similarity.zoo import Zoo

Floats = NDArray[np.float64]

MOST_CELLS = 60  # speakers a quadrant shows one by one; of more, equal groups are shown
MOST_NAMES = 25  # labels that can still be read
SIDE = 300
ANIMAL_COLORS = {
    "sheep": "#B8B8B8",
    "goat": SKY,
    "lamb": "#F5C76B",
    "wolf": ORANGE,
    "worm": BLUE,
    "chameleon": PURPLE,
    "phantom": GREEN,
    "dove": RED,
}
TITLES = {
    "OO": "original with original",
    "OP": "original with anonymized",
    "PO": "anonymized with original",
    "PP": "anonymized with anonymized",
}


def speaker_order(similarities: Mapping[Kind, Floats]) -> NDArray[np.int64]:
    """Those whose diagonal stays most in OP come first: the ones that are protected least."""
    m = similarities["OP"]
    own = m.diagonal()
    rest = (m.sum(0) + m.sum(1) - 2 * own) / (2 * (len(m) - 1))
    return np.argsort(rest - own, kind="stable")


def quadrants(similarities: Mapping[Kind, Floats], names: Sequence[str], *, most: int = MOST_CELLS) -> Any:
    """The papers' figure: OO, OP over PO, PP, with the same speakers in the same order in all of them.

    Of more than `most` speakers, groups of equal size are shown: a cell is the mean over the pairs of two groups, and
    a cell of the diagonal is the mean over its speakers with themselves, so that the diagonal stays what it is.
    """
    import altair as alt

    groups, labels = _groups(similarities, names, most)
    order = np.concatenate(groups)
    one_by_one = len(groups) == len(order)
    means = {kind: _group(similarities[kind], groups) for kind in ("OO", "OP", "PP")}
    means["PO"] = means["OP"].T
    size = SIDE if len(groups) <= 40 else SIDE + 60
    color = alt.Color("similarity:Q", title="similarity").scale(scheme="viridis", domain=[0, 1])
    named = one_by_one and len(groups) <= MOST_NAMES
    charts: dict[str, Any] = {}
    for kind, cells in means.items():
        rows, columns = np.indices(cells.shape)
        # Columns instead of thousands of rows: the page is smaller.
        values: dict[str, Any] = {
            "quadrant": TITLES[kind],
            "row": [labels[i] for i in rows.ravel()],
            "column": [labels[j] for j in columns.ravel()],
            "similarity": [round(float(value), 4) for value in cells.ravel()],
        }
        left, below = kind in ("OO", "PO"), kind in ("PO", "PP")
        axis: dict[str, Any] = {
            "ticks": False,
            "domain": False,
            "grid": False,
            "labelFontSize": 9,
        }
        across = alt.Axis(labels=named and below, title=_side(kind[1], groups) if below else None,
                          labelAngle=-90, labelOverlap=False, **axis)  # fmt: skip
        down = alt.Axis(labels=named and left, title=_side(kind[0], groups) if left else None,
                        labelOverlap=False, **axis)  # fmt: skip
        charts[kind] = (
            alt.Chart(table([values]), width=size, height=size, title=TITLES[kind])
            .transform_flatten(["row", "column", "similarity"])
            .mark_rect(aria=False)  # thousands of labels that nobody can listen to; the figure has one
            .encode(
                # The order as the scale's domain: as a sort it becomes as many comparisons for every cell.
                x=alt.X("column:N", sort=None, scale=alt.Scale(domain=labels), axis=across),
                y=alt.Y("row:N", sort=None, scale=alt.Scale(domain=labels), axis=down),
                color=color,
                tooltip=["row:N", "column:N", alt.Tooltip("similarity:Q", format=".3f")],
            )
        )
    upper, lower = (
        alt.hconcat(charts["OO"], charts["OP"], spacing=8),
        alt.hconcat(charts["PO"], charts["PP"], spacing=8),
    )
    return alt.vconcat(upper, lower, spacing=8)


def _groups(
    similarities: Mapping[Kind, Floats], names: Sequence[str], most: int
) -> tuple[list[NDArray[np.int64]], list[str]]:
    order = speaker_order(similarities)
    groups = np.array_split(order, min(len(order), most))
    labels = [
        _label([names[row] for row in group], first) for group, first in zip(groups, _firsts(groups), strict=True)
    ]
    return groups, labels


def speaker_groups(
    similarities: Mapping[Kind, Floats], names: Sequence[str], *, most: int = MOST_CELLS
) -> dict[str, str]:
    """Under which label of `quadrants` each speaker stands."""
    groups, labels = _groups(similarities, names, most)
    return {names[row]: label for group, label in zip(groups, labels, strict=True) for row in group}


def _side(letter: str, groups: Sequence[NDArray[np.int64]]) -> str:
    largest = max(len(group) for group in groups)
    who = "speaker" if largest == 1 else f"speakers, {largest} to a cell"
    return f"{'original' if letter == 'O' else 'anonymized'} {who}"


def _firsts(groups: Sequence[NDArray[np.int64]]) -> list[int]:
    sizes = [len(group) for group in groups]
    return [sum(sizes[:number]) for number in range(len(sizes))]


def _label(names: Sequence[str], first: int) -> str:
    return names[0] if len(names) == 1 else f"{first + 1}-{first + len(names)}"


def _group(matrix: Floats, groups: Sequence[NDArray[np.int64]]) -> Floats:
    order = np.concatenate(groups)
    sizes = np.array([len(group) for group in groups])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    arranged = matrix[np.ix_(order, order)]
    means = np.add.reduceat(np.add.reduceat(arranged, starts, 0), starts, 1) / np.outer(sizes, sizes)
    np.fill_diagonal(means, np.add.reduceat(arranged.diagonal(), starts) / sizes)
    averaged: Floats = means
    return averaged


def zoo_plot(zoos: Mapping[str, Zoo], *, kinds: Sequence[str] = ("OO", "OP", "PP")) -> Any:
    """Each speaker's mean target score against their mean impostor score, with the quartiles and the animals."""
    import altair as alt

    charts = []
    for kind in kinds:
        zoo = zoos[kind]
        values = [
            {
                "speaker": person["speaker"],
                "target": person["target"],
                "impostor": person["impostor"],
                "animal": person["animal"],
            }
            for person in zoo.to_json()
        ]
        there = [animal for animal in ANIMAL_COLORS if animal in set(zoo.animals)]
        base = alt.Chart(table(values), width=250, height=250, title=TITLES[kind])
        x = alt.X("target:Q", title="mean target LLR").scale(zero=False, nice=True, padding=12)
        y = alt.Y("impostor:Q", title="mean impostor LLR" if kind == kinds[0] else None)
        y = y.scale(zero=False, nice=True, padding=12)
        color = alt.Color("animal:N", title="animal").scale(
            domain=list(ANIMAL_COLORS), range=list(ANIMAL_COLORS.values())
        )
        few = len(values) <= 60
        points = base.mark_circle(size=70 if few else 28, opacity=0.9 if few else 0.6).encode(
            x=x,
            y=y,
            color=color,
            tooltip=[
                "speaker:N",
                "animal:N",
                *(alt.Tooltip(f"{key}:Q", format=".3f") for key in ("target", "impostor")),
            ],
        )
        layers = [*_quartile_rules(zoo), points]
        if few and any(zoo.corner):
            corners = [value for value, corner in zip(values, zoo.corner, strict=True) if corner]
            layers.append(
                alt.Chart(table(corners))
                .mark_text(align="left", dx=7, fontSize=9, color="#444")
                .encode(x=x, y=y, text="speaker:N")
            )
        charts.append(alt.layer(*layers) if there else points)
    return alt.hconcat(*charts, spacing=22)


def _quartile_rules(zoo: Zoo) -> list[Any]:
    import altair as alt

    rules = []
    for field, values in (("target", zoo.target), ("impostor", zoo.impostor)):
        marks = [{field: float(cut)} for cut in np.quantile(values, [0.25, 0.75])]
        rule = alt.Chart(table(marks)).mark_rule(strokeDash=[3, 3], color=GRAY, opacity=0.6)
        rules.append(rule.encode(x="target:Q") if field == "target" else rule.encode(y="impostor:Q"))
    return rules


def speakers_plot(similarity: Similarity, *, most: int = 80) -> Any:
    """Every speaker's diagonal dominance in the three matrices, by falling dominance in OP: whom does it fail?"""
    import altair as alt

    own = {kind: similarity.per_speaker(kind) for kind in ("OO", "OP", "PP")}
    order = np.argsort(-own["OP"], kind="stable")
    one_by_one = len(order) <= most
    values = [
        {
            "speaker": similarity.names[row],
            "rank": rank + 1,
            "matrix": {"OO": "original", "OP": "original-anonymized", "PP": "anonymized"}[kind],
            "dominance": float(own[kind][row]),
        }
        for rank, row in enumerate(order)
        for kind in ("OO", "OP", "PP")
    ]
    x = (
        alt.X("speaker:N", title="speaker", sort=[similarity.names[row] for row in order]).axis(
            labelAngle=-90, labelFontSize=9 if len(order) <= 40 else 7, labelOverlap=False
        )
        if one_by_one
        else alt.X("rank:Q", title="speakers, the least protected first").scale(nice=False, domain=[0, len(order) + 1])
    )
    color = alt.Color("matrix:N", title="matrix").scale(
        domain=["original", "original-anonymized", "anonymized"], range=[GRAY, RED, BLUE]
    )
    base = alt.Chart(table(values), width=max(420, 13 * len(order)) if one_by_one else 640, height=240)
    zero = alt.Chart(table([{"zero": 0}])).mark_rule(color=GRAY, opacity=0.7).encode(y="zero:Q")
    points = base.mark_circle(size=60 if one_by_one else 14, opacity=0.9 if one_by_one else 0.6).encode(
        x=x,
        y=alt.Y("dominance:Q", title="own diagonal dominance"),
        color=color,
        tooltip=["speaker:N", "matrix:N", alt.Tooltip("dominance:Q", format=".3f")],
    )
    return zero + points


def scatter(systems: Sequence[tuple[str, Estimate, Estimate]]) -> Any:
    """G_VD against DeID of several systems (name, DeID, G_VD), with their intervals; best is up and to the right."""
    import altair as alt

    values: list[dict[str, Any]] = []
    for name, deid, g_vd in systems:
        low_x, high_x = deid.interval or (deid.value, deid.value)
        low_y, high_y = g_vd.interval or (g_vd.value, g_vd.value)
        values.append(
            {"system": name, "deid": deid.value, "g_vd": g_vd.value, "low_x": low_x, "high_x": high_x,
             "low_y": low_y, "high_y": high_y}
        )  # fmt: skip
    values = [value for value in values if np.isfinite([value["deid"], value["g_vd"]]).all()]
    names = [name for name, _, _ in systems]
    color = alt.Color("system:N", title=None, legend=None).scale(domain=names, range=hues(names))
    shape = alt.Shape("system:N", legend=None)
    least = max(-100.0, float(np.floor(min([v["low_x"] for v in values], default=0.0) / 5) * 5))
    across = (least - (100 - least) / 40, 100 + (100 - least) / 40)
    ends = [0.0, *(float(v[key]) for v in values for key in ("low_y", "high_y") if np.isfinite(v[key]))]
    room = (max(ends) - min(ends)) / 16 or 1.0
    up = (min(ends) - room, max(ends) + room)
    values = name_rows(values, ("deid", "g_vd"), (across, up), (420, 320))
    data = table(values)
    base = alt.Chart(data, width=420, height=320)
    x = alt.X("deid:Q", title="DeID, % (higher: the original speaker is gone)").scale(domain=list(across), nice=False)
    y = alt.Y("g_vd:Q", title="G_VD, dB (0: voices as distinct as before)").scale(domain=list(up), nice=False)
    layers = [
        alt.Chart(table([{"zero": 0}])).mark_rule(color=GRAY, strokeDash=[4, 3]).encode(y="zero:Q"),
        base.mark_rule(opacity=0.7).encode(x="low_x:Q", x2="high_x:Q", y="g_vd:Q", color=color),
        base.mark_rule(opacity=0.7).encode(x="deid:Q", y="low_y:Q", y2="high_y:Q", color=color),
        base.mark_point(filled=True, size=90, opacity=1).encode(
            x=x,
            y=y,
            color=color,
            shape=shape,
            tooltip=["system:N", alt.Tooltip("deid:Q", format=".1f"), alt.Tooltip("g_vd:Q", format=".2f")],
        ),
    ]
    layers += name_layers(values, data, ("deid", "g_vd"), (across, up))
    return alt.layer(*layers)


Domain = tuple[float, float]


def name_rows(
    rows: Sequence[dict[str, Any]], keys: tuple[str, str], domains: tuple[Domain, Domain], size: tuple[float, float]
) -> list[dict[str, Any]]:
    """The rows with where the names of their systems can be read; `keys` are the columns of both axes, `domains` what
    these show, `size` their lengths in pixels. Columns that begin with _ are for drawing alone, not for the CSV."""
    (left, right), (low, high) = domains
    wide, tall = (right - left) / size[0], (high - low) / size[1]  # of a pixel
    pixels = [(str(row["system"]), (row[keys[0]] - left) / wide, (high - row[keys[1]]) / tall) for row in rows]
    return [
        {**row, "_x": left + x * wide, "_y": high - y * tall, "_end": end, "_far": abs(y - at) > 12}
        for row, (x, y, end), (_, _, at) in zip(rows, place_names(pixels, *size), pixels, strict=True)
    ]


def name_layers(
    rows: Sequence[dict[str, Any]], data: Any, keys: tuple[str, str], domains: tuple[Domain, Domain]
) -> list[Any]:
    """The names beside their points, with a thin line to those that are further away; `rows` are `name_rows`, `data`
    the same as a table."""
    import altair as alt

    x, y = (scaled(f"_{name}:Q").scale(domain=list(domain), nice=False)
            for name, scaled, domain in zip("xy", (alt.X, alt.Y), domains, strict=True))  # fmt: skip
    base = alt.Chart(data)
    layers = []
    if any(row["_far"] for row in rows):
        lines = base.transform_filter("datum._far").mark_rule(strokeWidth=0.7, color=GRAY)
        layers.append(lines.encode(x=f"{keys[0]}:Q", x2="_x:Q", y=f"{keys[1]}:Q", y2="_y:Q"))
    ends: list[Any] = list(dict.fromkeys(row["_end"] for row in rows))
    for end in ends:
        beside = base.transform_filter(f"datum._end === '{end}'")
        layers.append(beside.mark_text(align=end, baseline="middle", fontSize=11).encode(x=x, y=y, text="system:N"))
    return layers


def save_all(
    systems: Mapping[str, Similarity],
    zoos: Mapping[str, Mapping[str, Zoo]],
    estimates: Sequence[Mapping[str, Any]],
    folder: str | Path,
    formats: Iterable[str] = FORMATS,
    setting: Typesetting | None = None,
) -> list[Path]:
    """Every figure of every system, and the scatter of all of them."""
    formats = tuple(formats)
    files = []
    for number, (name, similarity) in enumerate(systems.items()):
        suffix = f"-{number + 1}" if len(systems) > 1 else ""
        title = name if len(systems) > 1 else ""
        for kind, chart in (
            ("matrices", quadrants(similarity.similarities, similarity.names)),
            ("zoo", zoo_plot(zoos[name])),
            ("speakers", speakers_plot(similarity)),
        ):
            titled = chart.properties(title=title) if title else chart
            files += save(apply_style(titled), folder, f"similarity-{kind}{suffix}", formats, setting)
    points = [(name, part["deid"], part["g_vd"]) for name, part in zip(systems, estimates, strict=True)]
    files += save(apply_style(scatter(points)), folder, "similarity-deid-gvd", formats, setting)
    return files
