"""The first screen of a report: three large numbers, the map, a card for each cluster, a box.

The map is SVG; its script says of each row what it contains.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from powermeans.engine.seeds.orders import row_keys
from powermeans.errors import counted, printable, some
from powermeans.explaining.summaries import ClusterSummary
from powermeans.plots import fitted
from powermeans.plots.canvas import color_of
from powermeans.plots.plane import Plane
from powermeans.types import FloatArray, Labels, SparseMatrix
from powermeans_tables.report.profile import in_own_units
from powermeans_tables.report.rows import Rows
from powermeans_tables.report.subject import Subject
from powermeans_tables.report.text import breakable, decimals_of, escaped, fixed, percent

_MOST_CARDS = 12
_WIDTH, _HEIGHT = 640, 450
_TOP, _RIGHT = 4, 636


def overview(subject: Subject, rows: Rows, found: Map, choice: Any) -> str:
    """Return the first screen in HTML."""
    cards = [_card(subject, rows, cluster) for cluster in subject.profile.clusters]
    more = "".join(cards[_MOST_CARDS:])
    if more:
        n_more = counted(len(cards) - _MOST_CARDS, "more cluster")
        more = f'<details><summary>{n_more}</summary><div class="cards">{more}</div></details>'
    n_shown, n_all = len(rows.places), len(subject.labels)
    some_rows = f" {n_shown:,} of {n_all:,} rows, drawn by chance." if n_shown < n_all else ""
    return (
        f"{_figures(subject, rows, choice)}<div class='screen'><figure>"
        f"{_STAGE.format(drawn(found, subject, rows.labels))}"
        f'<figcaption class="note">{found.words}{some_rows}</figcaption></figure>'
        f'<div><div class="cards">{"".join(cards[:_MOST_CARDS])}</div>{more}</div></div>'
        f"{_box(subject)}"
    )


_STAGE = """
<div id="stage" tabindex="0" role="application" aria-label="map" aria-describedby="help">{}
<div id="tip" role="status" hidden></div></div>
<p class="note" id="help">Point at a row, or step through them by the arrow keys. A number on a card
shows its cluster alone.</p>"""


def _figures(subject: Subject, rows: Rows, choice: Any) -> str:
    n_used, table = len(subject.labels), subject.file.table
    n_all = n_used if table is None else table.n_rows
    n_clusters, clear = len(subject.profile.clusters), rows.sure_share()
    sure = "of the rows lie on the first third of the way from their center to any other"
    if clear is None:
        sure = "Nothing says how near other centers are."
    why = "as many as asked for"
    if choice is not None:
        unclear = "no number is clear: this one is a guess"
        words = {"clear": "a clear number", "at least": "there may be more"}
        why = words.get(choice.certainty, unclear)
    n_columns = sum(1 + (one.column.kind == "place") for one in subject.profile.fields)
    n_there = len(subject.columns)
    of_columns = f"in {counted(n_columns, 'column')}{f' of {n_there:,}' * (n_there > n_columns)}"
    figures = (
        ("clusters", f"{n_clusters:,}", why),
        ("rows used", f"{n_used:,} <small>of {n_all:,}</small>", of_columns),
        ("near their center", "–" if clear is None else percent(clear), sure),
    )
    inner = "".join(
        f"<div><dt>{name}</dt><dd>{value}</dd><dd class='note'>{note}</dd></div>"
        for name, value, note in figures
    )
    return f"<dl class='figures'>{inner}</dl>"


def _card(subject: Subject, rows: Rows, cluster: ClusterSummary) -> str:
    label, clear = cluster.label, rows.sure_share(cluster.label)
    size = counted(cluster.size, "row")
    of = "of the weight" if subject.weights is not None else "of all"
    is_clear = "" if clear is None else f", {percent(clear)} near their center"
    if cluster.weight > 0:
        facts = "".join(
            f"<li><b>{breakable(name)}</b> {escaped(value)} "
            f'<span class="note">{escaped(compared)}</span></li>'
            for name, value, compared in subject.profile.facts(label)
        )
        text = f"{percent(cluster.share)} {of}, {size}{is_clear}"
    else:
        facts = ""
        text = f"{size}, which weigh nothing" if cluster.size else "No row is nearest to its center"
    return (
        f'<article class="card" id="cluster-{label}" style="border-color:{color_of(label)}"><h3>'
        f'<button type="button" class="badge" aria-pressed="false" data-label="{label}" '
        f'aria-label="show cluster {label} alone" style="border-color:{color_of(label)}">{label}'
        f'</button> {breakable(subject.profile.names[label])}</h3><p class="share">{text}</p>'
        f"<ul>{facts}</ul></article>"
    )


def warnings_on(
    points: FloatArray | SparseMatrix, summaries: Sequence[ClusterSummary]
) -> Iterator[str]:
    """Yield what may be wrong with points and their clusters."""
    mean_size, n_points = sum(one.size for one in summaries) / len(summaries), points.shape[0]
    if tiny := [str(one.label) for one in summaries if 0 < one.size < 0.1 * mean_size]:
        yield f"clusters with less than a tenth of the mean size: {some(tiny)} (outliers?)"
    n_copies = n_points - len(np.unique(row_keys(points, np.random.RandomState(0))))
    if n_copies and n_copies >= 0.01 * n_points:
        yield (
            f"{n_copies:,} of {n_points:,} rows ({percent(n_copies / n_points)}) are copies of "
            "others in all columns used. Each counts; drop them if they are mistakes, or keep one "
            "of each with a weight."
        )


def _box(subject: Subject) -> str:
    """List what was left out, and what needs a check."""
    found = warnings_on(subject.points, subject.profile.clusters)
    told = " ".join(subject.file.notes)
    left = [
        f"“{column.name}” ({column.kind}: {column.why})"
        for column in subject.columns
        if not (column.is_used or column.kind == "place")
        if f'"{column.name}" ({column.why})' not in told
    ]
    columns = [f"columns left out: {some(left, 6)}"] if left else []
    texts = [*columns, *subject.file.notes, *found]
    if not texts:
        return "<p class='note'>Nothing was left out, and no check of the data failed.</p>"
    items = "".join(f"<li>{escaped(text[0].upper() + text[1:])}</li>" for text in texts)
    return f'<aside class="box"><h2>Left out, or to check</h2><ul>{items}</ul></aside>'


@dataclass(frozen=True, slots=True)
class Map:
    """Where rows and centers lie on the map, and what its directions are."""

    points: FloatArray  # (n_shown, 2)
    centers: FloatArray  # (n_clusters, 2)
    names: tuple[str, str]  # of the axes, empty for one without meaning
    words: str  # below the map
    height_of_unit: float | None = None  # over its width; None to fill the frame

    @property
    def frame(self) -> tuple[int, int]:
        """Return the left and the bottom of the frame, which leaves room for axes with names."""
        return (58 if any(self.names) else 4), (412 if any(self.names) else _HEIGHT - 4)

    @property
    def size(self) -> FloatArray:
        """Return the width and height of the frame."""
        left, bottom = self.frame
        return np.array([_RIGHT - left, bottom - _TOP], dtype=np.float64)

    def places(self, values: FloatArray) -> FloatArray:
        """Return where values lie in the frame, to the right and down."""
        middle, reach = self.range()
        size = self.size
        if self.height_of_unit is not None:
            shape = reach * [1.0, self.height_of_unit]
            size = np.min(size / shape) * shape
        shares = (values - middle) / reach * [1.0, -1.0]
        return np.asarray(shares * size * 0.94 + self.size / 2)

    def range(self) -> tuple[FloatArray, FloatArray]:
        """Return the middle of the points, and how far they reach."""
        low, high = self.points.min(axis=0), self.points.max(axis=0)
        reach = np.where(high > low, high - low, 1.0)
        return low + (high - low) / 2, reach


def map_of(subject: Subject, rows: Rows) -> Map:
    """Lay out places by latitude and longitude, one or two columns as they are, else the plane."""
    fields = subject.profile.fields
    centers = np.stack([one.mean for one in subject.profile.clusters])
    if fitted.has_centers(subject.model):
        centers = fitted.centers_of(subject.model)
    centers = np.nan_to_num(centers)
    own = np.nan_to_num(np.asarray(in_own_units(centers, subject.scalers)))
    shares = np.square(subject.profile.columns.deviations)
    for j, field in enumerate(fields):
        if field.column.kind == "place" and shares[field.places].sum() > 0.5 * shares.sum():
            given, near = rows.values[j], own[rows.labels, field.places]
            both = np.vstack([np.where(np.isnan(given), near, given), own[:, field.places]])
            both = np.array([field.coordinates(one)[::-1] for one in both])
            wide = 1 / max(0.1, math.cos(math.radians(float(both[:, 1].mean()))))
            ends = both[: len(rows.labels)], both[len(rows.labels) :]
            return Map(*ends, (field.column.other, field.column.name), "North is up.", wide)
    if own.shape[1] <= 2 and all(field.is_number for field in fields):
        values = np.hstack([rows.values[j] for j in range(len(fields))])
        values = np.where(np.isnan(values), own[rows.labels], values)
        if len(fields) == 2:
            return Map(values, own, (fields[0].name, fields[1].name), "")
        heights = np.random.default_rng(0).uniform(-0.4, 0.4, (len(values), 1))
        ends = np.hstack([values, heights]), np.hstack([own, np.zeros_like(own)])
        return Map(*ends, (fields[0].name, ""), "Heights are by chance.")
    plane = Plane.of(subject.filled(rows.places), subject.profile.columns.names)
    words = (
        f"The two directions in which rows differ most, with {100 * plane.share:.0f} % of their "
        "variance: clusters that overlap here may be apart in others."
    )
    return Map(plane.points, plane.project(centers), ("", ""), words)


def drawn(found: Map, subject: Subject, labels: Labels) -> str:
    """Draw a dot for each row, a badge for each center, and the axes that mean something."""
    size = 3 if len(labels) > 4000 else 4 if len(labels) > 800 else 6
    dots = np.round(found.places(found.points), 1)
    paths, badges = [], []
    ends = zip(subject.profile.clusters, found.places(found.centers), strict=True)
    for cluster, (right, down) in ends:
        label, mine = cluster.label, dots[labels == cluster.label]
        path = "".join(f"M{x:g} {y:g}h0" for x, y in mine.tolist())
        cap = "square" if label // 7 % 2 else "round"
        paths.append(
            f'<path class="dots" data-label="{label}" stroke="{color_of(label)}" '
            f'stroke-width="{size}" stroke-linecap="{cap}" d="{path}"/>'
        )
        if cluster.weight > 0:
            badges.append(
                f'<g class="center" data-label="{label}" transform="translate({right:.1f} '
                f'{down:.1f})"><circle r="10" stroke="{color_of(label)}"/>'
                f'<text y="4">{label}</text></g>'
            )
    (width, height), left = found.size, found.frame[0]
    return (
        f'<svg class="map" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="map of the rows by cluster"><g class="ticks">{_axes(found)}</g>'
        f'<svg id="dots" x="{left}" y="{_TOP}" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}">{"".join(paths)}{"".join(badges)}'
        '<circle id="ring" visibility="hidden"/></svg>'
        f'<rect id="frame" x="{left}" y="{_TOP}" width="{width:g}" height="{height:g}"/></svg>'
    )


def _axes(found: Map) -> str:
    (middle, reach), (left, bottom), parts = found.range(), found.frame, []
    for axis, name in enumerate(found.names):
        low = float(middle[axis] - reach[axis] / 2)
        ticks = _ticks(low, float(reach[axis])) if name else []
        digits = decimals_of(1.0001 * float(np.ptp(ticks[:2])), 1) if ticks else 0
        for value in ticks:
            place = found.places(np.where([axis == 0, axis == 1], value, middle))[axis]
            at = f'x="{left + place:.1f}" y="{bottom + 15}"'
            at = at if axis == 0 else f'class="up" x="{left - 4}" y="{_TOP + place + 4:.1f}"'
            parts.append(f"<text {at}>{fixed(value, max(0, digits))}</text>")
    right, up = map(escaped, found.names)
    turned = f"translate(12 {(_TOP + bottom) / 2}) rotate(-90)"
    parts.append(f'<text x="{(left + _RIGHT) / 2}" y="{_HEIGHT - 6}">{right}</text>')
    return f'{"".join(parts)}<text transform="{turned}">{up}</text>'


def _ticks(low: float, reach: float) -> list[float]:
    """Return three to eight round numbers in the range."""
    unit = 10.0 ** math.floor(math.log10(reach / 3))
    step = next(factor * unit for factor in (5, 2, 1) if factor * unit <= reach / 3)
    return [step * i for i in range(math.ceil(low / step), math.floor((low + reach) / step) + 1)]


def map_data(found: Map, subject: Subject, rows: Rows) -> dict[str, Any]:
    """Return where the dots lie and what is said of each row, in types of JSON."""
    names, cells = rows.cells(subject, subject.profile.telling(5))
    numbers = subject.row_numbers(rows.places).tolist()
    said = zip(numbers, cells, strict=True)
    return {
        "places": np.round(found.places(found.points), 1).tolist(),
        "labels": rows.labels.tolist(),
        "names": [printable(name) for name in subject.profile.names],
        "columns": [printable(name) for name in names],
        "rows": [[number, *map(printable, told)] for number, told in said],
    }
