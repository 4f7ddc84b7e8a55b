"""What a user gave, behind the points that a fit works on, and the way back for results."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from powermeans.points.used_columns import UsedColumns
from powermeans.types import FloatArray

if TYPE_CHECKING:
    from powermeans.points.needs import Measure
    from powermeans.points.protocol import Points


@dataclass(frozen=True, slots=True, eq=False)
class Given:
    """The array, tensor or source that points were opened from, and how results go back to it."""

    array: Any  # of the columns that are used; None where the points come in parts
    weights: FloatArray | None
    measure: Measure
    dtype: np.dtype[Any] = field(kw_only=True)  # of centers
    n_features: int = field(kw_only=True)  # with the columns that are left out
    largest: float = field(default=math.nan, kw_only=True)  # the largest magnitude, if known
    noted: dict[str, Any] | None = field(default=None, kw_only=True)  # see `Columns.noted`
    used_columns: UsedColumns | None = field(default=None, kw_only=True)  # None for all
    whole: Callable[[], Points] | None = field(default=None, kw_only=True)  # opens all columns
    source: Any = field(default=None, kw_only=True)  # of files and other parts

    def of_used_columns(self, centers: FloatArray) -> FloatArray:
        """Return centers with the columns that the points have."""
        return centers if self.used_columns is None else self.used_columns.of_centers(centers)

    def of_all_columns(self, centers: Any) -> Any:
        """Return centers of the points with the columns that the user gave."""
        return centers if self.used_columns is None else self.used_columns.all_of(centers)

    def of_all_rows(self, values: Any) -> Any:
        """Return results of points with those of rows without a point, such as totals."""
        is_used = getattr(self.source, "is_used", None)
        if is_used is None:
            return values
        nothing = -1 if values.dtype.kind == "i" else np.nan
        every = np.full((len(is_used), *values.shape[1:]), nothing, values.dtype)
        every[is_used] = values
        return every
