"""Small charts as SVG, for pages that load nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powermeans.app.report.text import escaped
from powermeans.types import FloatArray

# Left, right, top and bottom of the area between the axes, in charts of 320 by 190 and 260 by 140.
_OF_LINES = 60, 310, 20, 156
_OF_BARS = 36, 250, 20, 106


def line_chart(
    xs: ArrayLike,
    ys: ArrayLike,
    *,
    x_name: str,
    y_name: str,
    mark: float | None = None,
    is_log: bool = False,
) -> str:
    """Draw the finite points of a line, its axes, and a dashed vertical line at a mark.

    The element needs the classes of the page. A logarithmic y axis leaves out what is not positive.

    >>> line_chart([1, 2, 3], [3.0, 2.0, 4.0], x_name="k", y_name="a < b")[:75]
    '<svg class="chart" viewBox="0 0 320 190" role="img" aria-label="a &lt; b by'
    """
    across, up = np.asarray(xs, dtype=np.float64), np.asarray(ys, dtype=np.float64)
    is_shown = np.isfinite(across) & np.isfinite(up) & ((up > 0) | (not is_log))
    across, up = across[is_shown], up[is_shown]
    label = escaped(f"{y_name} by {x_name}")
    opening = f'<svg class="chart" viewBox="0 0 320 190" role="img" aria-label="{label}">'
    if len(across) == 0:
        return f'{opening}<text x="60" y="90">nothing to show</text></svg>'
    heights = np.log(up) if is_log else up
    places = list(zip(_rights(across, across), _downs(heights, heights), strict=True))
    parts = [opening, *_axes(across, heights, is_log, x_name, y_name)]
    if mark is not None:
        (_, _, top, bottom), right = _OF_LINES, _rights(float(mark), across)
        parts.append(f'<path class="mark" d="M{right:.1f} {top}V{bottom}"/>')
    line = "L".join(f"{right:.1f} {down:.1f}" for right, down in places)
    parts.append(f'<path class="first" d="M{line}"/>')
    if len(places) <= 60:
        parts += [
            f'<circle class="first-dot" cx="{right:.1f}" cy="{down:.1f}" r="3"/>'
            for right, down in places
        ]
    return "".join([*parts, "</svg>"])


def _axes(
    across: FloatArray, heights: FloatArray, is_log: bool, x_name: str, y_name: str
) -> list[str]:
    left, right, _, bottom = _OF_LINES
    parts = [_corner(_OF_LINES)]
    ticks = _ticks(float(across.min()), float(across.max()))
    for tick, text in zip(ticks, _told_apart(ticks), strict=True):
        parts.append(_below(_rights(tick, across), bottom + 14, text))
    low, high = float(heights.min()), float(heights.max())
    levels = np.linspace(low, high, 4).tolist() if is_log else _ticks(low, high)
    levels = levels if high > low else [low]
    texts = _told_apart([math.exp(level) if is_log else level for level in levels])
    for level, text in zip(levels, texts, strict=True):
        down = _downs(level, heights)
        parts.append(f'<text x="{left - 6}" y="{down + 4:.1f}" text-anchor="end">{text}</text>')
    parts.append(f'<text x="4" y="11">{escaped(y_name)}</text>')
    return [*parts, _below((left + right) / 2, bottom + 30, escaped(x_name))]


def _corner(area: tuple[int, int, int, int]) -> str:
    left, right, top, bottom = area
    return f'<path class="axis" fill="none" d="M{left} {top}V{bottom}H{right}"/>'


def _below(right: float, down: float, text: str) -> str:
    return f'<text x="{right:.1f}" y="{down}" text-anchor="middle">{text}</text>'


def edges_of(values: FloatArray) -> FloatArray:
    """Return the edges of bars that show some values: one for each of a few whole numbers, or 20.

    Values far beyond the rest go into the outermost bars.

    >>> edges_of(np.array([1.0, 1.0, 2.0, 3.0, np.nan]))
    array([0.5, 1.5, 2.5, 3.5])
    """
    values = values[np.isfinite(values)]
    if len(values) == 0:
        return np.array([0.0, 1.0])
    low, high = float(values.min()), float(values.max())
    inner_low, inner_high = np.quantile(values, [0.005, 0.995]).tolist()
    if high - low > 2 * (inner_high - inner_low) > 0:
        low, high = inner_low, inner_high
    if high - low <= 30 and bool((values == np.round(values)).all()):
        return np.arange(math.floor(low), math.ceil(high) + 2, dtype=np.float64) - 0.5
    return np.linspace(low, high, 21) if high > low else np.array([low - 0.5, low + 0.5])


def shares_of(values: FloatArray, weights: FloatArray, edges: FloatArray) -> FloatArray:
    """Return the share of the weight in each bar; missing values are left out."""
    is_there = np.isfinite(values)
    inside = np.clip(values[is_there], edges[0], edges[-1])
    counted = np.histogram(inside, edges, weights=weights[is_there])[0]
    heights = np.asarray(counted, dtype=np.float64)
    total = float(heights.sum())
    return heights / total if total > 0 else heights


def histogram(
    mine: FloatArray, rest: FloatArray, edges: FloatArray, *, color: str, name: str, label: str
) -> str:
    """Draw the shares of a cluster as filled bars, and those of the other rows as a line."""
    top = float(max(mine.max(), rest.max())) or 1.0
    left, right, above, bottom = _OF_BARS

    def place(values: Any) -> Any:
        return left + (values - edges[0]) / (edges[-1] - edges[0]) * (right - left)

    rights = place(edges)
    parts = [
        f'<svg class="chart" viewBox="0 0 260 140" role="img" aria-label="{escaped(label)}">',
        f'<path fill="{color}" fill-opacity="0.75" d="{_stairs(mine / top, rights)}"/>',
        f'<path class="rest" d="{_stairs(rest / top, rights)}"/>',
        _corner(_OF_BARS),
        f'<text x="{left - 5}" y="{above + 4}" text-anchor="end">{top:.0%}</text>',
        f'<text x="{left - 5}" y="{bottom}" text-anchor="end">0</text>',
        '<text x="4" y="11">share of rows</text>',
    ]
    ticks = _ticks(float(edges[0]), float(edges[-1]))
    for tick, text in zip(ticks, _told_apart(ticks), strict=True):
        parts.append(_below(place(tick), bottom + 14, text))
    if len(name) <= 34:  # longer ones would be cut; the caption has them
        parts.append(_below((left + right) / 2, bottom + 30, escaped(name)))
    return "".join([*parts, "</svg>"])


def _stairs(heights: FloatArray, rights: FloatArray) -> str:
    _, _, top, bottom = _OF_BARS
    downs = bottom - heights * (bottom - top)
    steps = zip(downs.tolist(), rights[1:].tolist(), strict=True)
    path = "".join(f"V{down:.1f}H{right:.1f}" for down, right in steps)
    return f"M{rights[0]:.1f} {bottom}{path}V{bottom}"


def _rights(values: Any, of_all: FloatArray) -> Any:
    left, right, _, _ = _OF_LINES
    return left + 8 + _shares(values, of_all) * (right - left - 16)


def _downs(values: Any, of_all: FloatArray) -> Any:
    _, _, top, bottom = _OF_LINES
    return bottom - 6 - _shares(values, of_all) * (bottom - top - 12)


def _shares(values: Any, of_all: FloatArray) -> Any:
    low, high = of_all.min(), of_all.max()
    return (values - low) / (high - low) if high > low else np.full_like(values, 0.5)


def _ticks(low: float, high: float) -> list[float]:
    """Return three to eight round numbers in the range."""
    if not high > low:
        return [low]
    # In steps of no more than a third of the range, three are sure to lie in it.
    widest = (high - low) / 3
    unit = 10.0 ** math.floor(math.log10(widest))
    step = next(factor * unit for factor in (5, 2, 1) if factor * unit <= widest)
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def _told_apart(ticks: Sequence[float]) -> list[str]:
    """Return the ticks with as many digits as make them differ."""
    texts: list[str] = []
    for digits in (0, 6, 9, 12, 17):
        texts = [_number(tick, digits) for tick in ticks]
        if len(set(texts)) == len(ticks):
            break
    return texts


def _number(value: float, least_digits: int = 0) -> str:
    digits = max(least_digits, 4 if 1e-3 <= abs(value) < 1e4 or value == 0 else 3)
    return f"{value:.{digits}g}".replace("-", "−").replace("e+0", "e").replace("e−0", "e−")
