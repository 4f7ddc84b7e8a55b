"""The map of the rows as SVG, and what its script says of each row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from powermeans.errors import printable
from powermeans.plots import fitted
from powermeans.plots.canvas import color_of
from powermeans.plots.plane import Plane
from powermeans.types import FloatArray, Labels
from powermeans_tables.report.profile import in_own_units
from powermeans_tables.report.rows import Rows
from powermeans_tables.report.subject import Subject
from powermeans_tables.report.text import decimals_of, escaped, fixed

_WIDTH, _HEIGHT = 640, 450
_TOP, _RIGHT = 4, 636


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
            both = np.vstack([rows.values[j], own[:, field.places]])
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
    plane = Plane.of(subject.points[rows.places], subject.profile.columns.names)
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
