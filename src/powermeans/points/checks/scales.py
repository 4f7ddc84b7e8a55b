"""Columns in units so different that one of them decides nearly every distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from powermeans.errors import UnlikeScalesWarning, warn_caller
from powermeans.types import FloatArray, Points, SparsePoints

# Rows at even steps show whether scales differ.
_MOST_ROWS, _MOST_ENTRIES = 2_000, 2**18
_LEAST_RATIO = 100.0
# Of hundreds of columns, such as the pixels of an image, a few may hardly vary in the same unit.
_LEAST_SHARE_OF_COLUMNS = 0.05
_ROUNDING = 1e-12
_MOST_DIGITS = 1e9


@dataclass(frozen=True, slots=True)
class UnlikeScales:
    """Two columns, and how many times as much the first varies."""

    widest: int
    narrowest: int
    ratio: float

    @property
    def times(self) -> str:
        """The ratio in words.

        >>> UnlikeScales(0, 1, 1499.8).times, UnlikeScales(0, 1, 4.2e12).times
        ('1,500', '4e+12')
        """
        return f"{self.ratio:,.0f}" if self.ratio < _MOST_DIGITS else f"{self.ratio:.0e}"


def warn_of_unlike_scales(points: Points | SparsePoints, names: Sequence[object] | None) -> None:
    """Warn if one column varies so much more than others that these hardly count in distances."""
    if (found := unlike_scales(points)) is None:
        return
    columns = (found.widest, found.narrowest)
    labels = [f"column {one}" if names is None else repr(names[one]) for one in columns]
    warn_caller(
        f"X has columns of very different scales: {labels[0]} varies {found.times} times as much "
        f"as {labels[1]}, which hardly counts in the distances. If their units differ, scale the "
        "columns first, for example with sklearn.preprocessing.StandardScaler; if the scales are "
        'meant, warnings.simplefilter("ignore", powermeans.UnlikeScalesWarning) silences this',
        UnlikeScalesWarning,
    )


def unlike_scales(points: Points | SparsePoints) -> UnlikeScales | None:
    """Return the columns that vary most and least if they differ too much, else None.

    Deviations, ranges and, where they are not zero, distances between quartiles must all differ a
    hundred times: outliers and rare marks are no other unit. Sparse columns have one unit.
    """
    if sparse.issparse(points):
        return None
    n_rows = min(_MOST_ROWS, max(_MOST_ENTRIES // points.shape[1], 2))
    sample = np.asarray(points[:: -(-len(points) // n_rows)], dtype=np.float64)
    deviations, ranges = _spreads(sample)
    varying = np.flatnonzero(deviations > 0)
    if len(varying) < 2:
        return None
    widest = varying[np.argmax(deviations[varying])]
    with np.errstate(over="ignore"):
        times = deviations[widest] / deviations[varying]
        ratios = np.minimum(times, ranges[widest] / ranges[varying])
    if np.mean(ratios > _LEAST_RATIO) < _LEAST_SHARE_OF_COLUMNS:
        return None
    first, third = np.nanpercentile(sample[:, varying], [25, 75], axis=0)
    of_widest = (third - first)[np.argmax(deviations[varying])]
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        of_middle = of_widest / (third - first)
    ratios = np.where(of_middle > 0, np.minimum(ratios, of_middle), ratios)
    if np.mean(ratios > _LEAST_RATIO) < _LEAST_SHARE_OF_COLUMNS:
        return None
    narrowest = int(np.argmax(ratios))
    return UnlikeScales(int(widest), int(varying[narrowest]), float(times[narrowest]))


def _spreads(points: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return deviation and range of the observed entries of each column, 0 for constant ones."""
    is_observed = ~np.isnan(points)
    counts = np.maximum(np.count_nonzero(is_observed, axis=0), 1)
    means = np.add.reduce(points / counts, axis=0, where=is_observed)
    unlike_means = np.where(is_observed, points - means, 0.0)
    largest = np.maximum(np.max(np.abs(unlike_means), axis=0), np.finfo(np.float64).tiny)
    # In units of the largest, squares neither overflow nor vanish.
    shares = unlike_means / largest
    deviations = largest * np.sqrt(np.sum(np.square(shares), axis=0) / counts)
    ranges = np.max(unlike_means, axis=0) - np.min(unlike_means, axis=0)
    # The mean of subnormal numbers rounds too far for its share to tell.
    deviations[(deviations <= _ROUNDING * np.abs(means)) | (ranges == 0)] = 0.0
    return deviations, ranges
