"""Wished sizes of clusters: counts, weights, or shares of the whole."""

from __future__ import annotations

import math
from dataclasses import replace
from numbers import Integral
from typing import Any

from powermeans.errors import ArgumentError
from powermeans.methods.balanced.size_limits import SizeLimits, whole


def check_sizes(
    size_min: float | None,
    size_max: float | None,
    balance: float,
    *,
    n_clusters: int,
    total: float,
    heaviest: float,
    each: float,
) -> SizeLimits:
    """Return the limits of sizes as weights.

    Where all rows have the weight `each`, shares are rounded outwards to whole rows.
    """
    least = 0.0 if size_min is None else _weight(size_min, "size_min", total)
    most = total if size_max is None else min(_weight(size_max, "size_max", total), total)
    least = whole(least, each, up=not _is_share(size_min))
    most = whole(most, each, up=_is_share(size_max))
    if heaviest > most:
        raise ArgumentError(
            f"is less than the weight of one row, {heaviest:.6g}, which cannot be divided",
            f"pass at least {heaviest:.6g}, or split the row into several",
            argument="size_max",
            value=size_max,
        )
    _refuse_impossible(size_min, size_max, least, most, n_clusters, total, each)
    limits = SizeLimits(n_clusters, float(least), float(most), total)
    if balance < 1:
        return limits
    mean, has_limits = total / n_clusters, size_min is not None or size_max is not None
    lower, upper = whole(mean, each, up=False), whole(mean, each, up=True)
    # No sizes are even where one row is heavier than the mean size.
    beyond = heaviest if heaviest > mean and each == 0 and not has_limits else 0.0
    tolerated = None
    if each == 0:
        tolerated = max(least, lower - heaviest), min(most, upper + heaviest)
    return replace(
        limits,
        least=float(max(least, lower - beyond)),
        most=float(min(most, upper + beyond)),
        tolerated=tolerated,
    )


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
    each: float,
) -> None:
    """Raise where no clusters can have these sizes."""
    unit, mean = "rows" if each == 1 else "of weight", total / n_clusters
    if size_max is not None and least > most:
        raise ArgumentError(
            f"is {least:.6g} {unit}, more than the largest size, {most:.6g}",
            f"pass at most {most:.6g}, or raise the largest size",
            argument="size_min",
            value=size_min,
        )
    if n_clusters * most < total * (1 - 1e-12):
        raise ArgumentError(
            f"times {n_clusters} clusters makes {n_clusters * most:.6g} {unit}, and X has "
            f"{total:.6g}",
            f"pass at least {whole(mean, each, up=True):.6g}, or ask for at least "
            f"{math.ceil(total / most)} clusters",
            argument="size_max",
            value=size_max,
        )
    if n_clusters * least > total * (1 + 1e-12):
        n_most = math.floor(total / least)
        fewer = f", or ask for at most {n_most} cluster{'s' * (n_most > 1)}" if n_most else ""
        raise ArgumentError(
            f"times {n_clusters} clusters makes {n_clusters * least:.6g} {unit}, and X has "
            f"{total:.6g}",
            f"pass at most {whole(mean, each, up=False):.6g}{fewer}",
            argument="size_min",
            value=size_min,
        )
