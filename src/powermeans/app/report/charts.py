"""Small charts as SVG, for pages that load nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from powermeans.app.report.text import escaped
from powermeans.types import FloatArray

_WIDTH, _HEIGHT = 320, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 60, 10, 20, 34
_MOST_DOTS = 60
_BARS_WIDTH, _BAR_HEIGHT, _BAR_LEFT, _BAR_WIDTH, _BAR_BOTTOM = 260, 140, 36, 214, 34
_N_BARS, _MOST_WHOLE = 20, 30
# Bars leave out the ends of this share if they are that many times as wide as the rest.
_BEYOND, _MOST_BEYOND = 0.005, 2.0
_LONGEST_NAME = 34
_SHARE_OF_ROWS = "share of rows"


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
    box, label = f"0 0 {_WIDTH} {_HEIGHT}", escaped(f"{y_name} by {x_name}")
    opening = f'<svg class="chart" viewBox="{box}" role="img" aria-label="{label}">'
    if len(across) == 0:
        return f'{opening}<text x="60" y="90">nothing to show</text></svg>'
    heights = np.log(up) if is_log else up
    places = list(zip(_rights(across, across), _downs(heights, heights), strict=True))
    parts = [opening, *_axes(across, heights, is_log, x_name, y_name)]
    if mark is not None:
        right = _rights(float(mark), across)
        parts.append(f'<path class="mark" d="M{right:.1f} {_TOP}V{_HEIGHT - _BOTTOM}"/>')
    line = "L".join(f"{right:.1f} {down:.1f}" for right, down in places)
    parts.append(f'<path class="first" d="M{line}"/>')
    if len(places) <= _MOST_DOTS:
        parts += [
            f'<circle class="first-dot" cx="{right:.1f}" cy="{down:.1f}" r="3"/>'
            for right, down in places
        ]
    return "".join([*parts, "</svg>"])


def _axes(
    across: FloatArray, heights: FloatArray, is_log: bool, x_name: str, y_name: str
) -> list[str]:
    bottom = _HEIGHT - _BOTTOM
    parts = [f'<path class="axis" fill="none" d="M{_LEFT} {_TOP}V{bottom}H{_WIDTH - _RIGHT}"/>']
    ticks = _ticks(float(across.min()), float(across.max()))
    for tick, text in zip(ticks, _told_apart(ticks), strict=True):
        right = _rights(tick, across)
        parts.append(f'<text x="{right:.1f}" y="{bottom + 14}" text-anchor="middle">{text}</text>')
    low, high = float(heights.min()), float(heights.max())
    levels = np.linspace(low, high, 4).tolist() if is_log else _ticks(low, high)
    levels = levels if high > low else [low]
    texts = _told_apart([math.exp(level) if is_log else level for level in levels])
    for level, text in zip(levels, texts, strict=True):
        down = _downs(level, heights)
        parts.append(f'<text x="{_LEFT - 6}" y="{down + 4:.1f}" text-anchor="end">{text}</text>')
    parts.append(f'<text x="4" y="11">{escaped(y_name)}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    parts.append(
        f'<text x="{middle}" y="{_HEIGHT - 4}" text-anchor="middle">{escaped(x_name)}</text>'
    )
    return parts


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
    inner_low, inner_high = np.quantile(values, [_BEYOND, 1 - _BEYOND]).tolist()
    if high - low > _MOST_BEYOND * (inner_high - inner_low) > 0:
        low, high = inner_low, inner_high
    if high - low <= _MOST_WHOLE and bool((values == np.round(values)).all()):
        return np.arange(math.floor(low), math.ceil(high) + 2, dtype=np.float64) - 0.5
    return np.linspace(low, high, _N_BARS + 1) if high > low else np.array([low - 0.5, low + 0.5])


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
    bottom = _BAR_HEIGHT - _BAR_BOTTOM
    rights = _BAR_LEFT + (edges - edges[0]) / (edges[-1] - edges[0]) * _BAR_WIDTH
    parts = [
        f'<svg class="chart" viewBox="0 0 {_BARS_WIDTH} {_BAR_HEIGHT}" role="img" '
        f'aria-label="{escaped(label)}">',
        f'<path fill="{color}" fill-opacity="0.75" d="{_stairs(mine / top, rights)}"/>',
        f'<path class="rest" d="{_stairs(rest / top, rights)}"/>',
        f'<path class="axis" fill="none" d="M{_BAR_LEFT} {_TOP}V{bottom}h{_BAR_WIDTH}"/>',
        f'<text x="{_BAR_LEFT - 5}" y="{_TOP + 4}" text-anchor="end">{top:.0%}</text>',
        f'<text x="{_BAR_LEFT - 5}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="4" y="11">{_SHARE_OF_ROWS}</text>',
    ]
    ticks = _ticks(float(edges[0]), float(edges[-1]))
    for tick, text in zip(ticks, _told_apart(ticks), strict=True):
        right = _BAR_LEFT + (tick - edges[0]) / (edges[-1] - edges[0]) * _BAR_WIDTH
        parts.append(f'<text x="{right:.1f}" y="{bottom + 14}" text-anchor="middle">{text}</text>')
    if len(name) <= _LONGEST_NAME:  # longer ones would be cut; the caption has them
        middle = _BAR_LEFT + _BAR_WIDTH / 2
        parts.append(
            f'<text x="{middle}" y="{_BAR_HEIGHT - 4}" text-anchor="middle">{escaped(name)}</text>'
        )
    return "".join([*parts, "</svg>"])


def _stairs(heights: FloatArray, rights: FloatArray) -> str:
    bottom = _BAR_HEIGHT - _BAR_BOTTOM
    downs = bottom - heights * (bottom - _TOP)
    steps = zip(downs.tolist(), rights[1:].tolist(), strict=True)
    path = "".join(f"V{down:.1f}H{right:.1f}" for down, right in steps)
    return f"M{rights[0]:.1f} {bottom}{path}V{bottom}"


def _rights(values: Any, of_all: FloatArray) -> Any:
    return _LEFT + 8 + _shares(values, of_all) * (_WIDTH - _LEFT - _RIGHT - 16)


def _downs(values: Any, of_all: FloatArray) -> Any:
    return _HEIGHT - _BOTTOM - 6 - _shares(values, of_all) * (_HEIGHT - _BOTTOM - _TOP - 12)


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
