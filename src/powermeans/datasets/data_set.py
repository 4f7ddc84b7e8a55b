"""Points with their labels and centers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from numpy.typing import NDArray

from powermeans.types import FloatArray, Labels, Points


@dataclass(frozen=True, slots=True, eq=False)
class DataSet:
    """Points with their labels and true centers, if these are known.

    Attributes
    ----------
    points : ndarray of shape (n_points, n_features)
    labels : ndarray of shape (n_points,), or None
        The cluster or class of each point, counted from 0, if known.
    centers : ndarray of shape (n_centers, n_features), or None
        The true centers, in the order of the labels, if they exist.
    extras : mapping of str to array
        The other arrays of the file, such as names of the features, unchecked.

    See Also
    --------
    powermeans.datasets.load_data_set : Reads one.
    powermeans.datasets.make_gaussian_clusters : Draws one.

    Examples
    --------
    >>> from powermeans.datasets import make_grid_gaussians
    >>> nine = make_grid_gaussians(random_state=0)
    >>> nine.points.shape, nine.labels.max(), nine.centers.shape
    ((900, 2), np.int32(8), (9, 2))
    """

    points: Points
    labels: Labels | None = None
    centers: FloatArray | None = None
    extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)
