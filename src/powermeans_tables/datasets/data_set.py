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

    Examples
    --------
    >>> from powermeans.datasets import load_data_set
    >>> iris = load_data_set("iris")
    >>> iris.points.shape, int(iris.labels.max())
    ((150, 4), 2)
    """

    points: Points
    labels: Labels | None = None
    centers: FloatArray | None = None
    extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)
