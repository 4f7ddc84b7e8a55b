"""Wished sizes of clusters: counts, weights, or shares of the whole."""

from __future__ import annotations

import math
from numbers import Integral
from typing import Any

from powermeans.errors import ArgumentError
from powermeans.size_limits import SizeLimits


def check_sizes(
    size_min: float | None,
    size_max: float | None,
    balance: float,
    *,
    n_clusters: int,
    total: float,
    heaviest: float,
    is_counted: bool,
) -> SizeLimits:
    """Return the limits of sizes as weights.

    Shares of rows that count one each are rounded outwards to whole rows.
    """
    least = 0.0 if size_min is None else _weight(size_min, "size_min", total)
    most = total if size_max is None else min(_weight(size_max, "size_max", total), total)
    if is_counted:
        least = math.floor(least) if _is_share(size_min) else math.ceil(least)
        most = math.ceil(most) if _is_share(size_max) else math.floor(most)
    unit = "rows" if is_counted else "of weight"
    _refuse_impossible(size_min, size_max, least, most, n_clusters, total, unit)
    if heaviest > most:
        raise ArgumentError(
            f"is less than the weight of one row, {heaviest:.6g}, which cannot be divided",
            f"pass at least {heaviest:.6g}, or split the row into several",
            argument="size_max",
            value=size_max,
        )
    if balance == 1:
        mean = total / n_clusters
        slack = 0.0 if is_counted else heaviest
        even = (math.floor(mean), math.ceil(mean)) if is_counted else (mean - slack, mean + slack)
        least, most = max(least, even[0]), min(most, even[1])
    return SizeLimits(n_clusters, float(least), float(most), total)


def _is_share(size: Any) -> bool:
    return size is not None and not isinstance(size, Integral) and 0 < size < 1


def _weight(size: Any, name: str, total: float) -> float:
    """Return a size as weight: a float between 0 and 1 is a share of the whole."""
    if not isinstance(size, Integral) and size == 1:
        raise ArgumentError(
            "may be a share of the whole or a size of one",
            f"pass {name}=1 for one row, or leave it out",
            argument=name,
            value=size,
        )
    return size * total if _is_share(size) else float(size)


def _refuse_impossible(
    size_min: float | None,
    size_max: float | None,
    least: float,
    most: float,
    n_clusters: int,
    total: float,
    unit: str,
) -> None:
    """Raise where no clusters can have these sizes."""
    if least > most:
        raise ArgumentError(
            f"is {least:.6g} {unit}, and size_max={size_max!r} is {most:.6g}",
            "pass size_min of at most size_max",
            argument="size_min",
            value=size_min,
        )
    if n_clusters * most < total * (1 - 1e-12):
        raise ArgumentError(
            f"times n_clusters={n_clusters} makes {n_clusters * most:.6g} {unit}, and X has "
            f"{total:.6g}",
            f"pass at least {_up(total / n_clusters, unit):.6g}, or n_clusters of at least "
            f"{math.ceil(total / most) if most > 0 else 'more'}",
            argument="size_max",
            value=size_max,
        )
    if n_clusters * least > total * (1 + 1e-12):
        raise ArgumentError(
            f"times n_clusters={n_clusters} makes {n_clusters * least:.6g} {unit}, and X has "
            f"{total:.6g}",
            f"pass at most {_down(total / n_clusters, unit):.6g}, or n_clusters of at most "
            f"{math.floor(total / least)}",
            argument="size_min",
            value=size_min,
        )


def _up(size: float, unit: str) -> float:
    return math.ceil(size) if unit == "rows" else size


def _down(size: float, unit: str) -> float:
    return math.floor(size) if unit == "rows" else size
