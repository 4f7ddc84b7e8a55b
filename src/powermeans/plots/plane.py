"""Points of any number of features in the plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse

from powermeans.principal_axes import principal_axes
from powermeans.types import FloatArray, SparsePoints

Method = Literal["pca", "tsne", "umap"]


@dataclass(frozen=True, slots=True)
class Plane:
    """Where points lie in the plane.

    Attributes
    ----------
    names : tuple of str
        Of the two directions; empty where they mean nothing.
    origin : (n_features,)
        What lies at the origin of the plane.
    axes : (2, n_features)
        Orthonormal directions in the space of the points, or zero.
    share : float
        The part of the variance that the plane shows.
    """

    points: FloatArray
    names: tuple[str, str]
    origin: FloatArray
    axes: FloatArray
    share: float = 1.0

    @classmethod
    def of(cls, points: FloatArray | SparsePoints, names: list[str]) -> Self:
        """The columns themselves where there are two, else the two principal axes."""
        n_features = points.shape[1]
        if n_features == 1:
            return cls._of_a_line(_dense(points), names)
        if n_features == 2:
            named = names[0], names[1]
            return cls(_dense(points), named, np.zeros(2), np.eye(2))
        found = principal_axes(points, None, 2)
        shares = np.square(found.deviations / (found.total_deviation or 1.0))
        named = _principal(1, shares[0]), _principal(2, shares[1])
        flat = np.asarray(points @ found.axes.T) - found.mean @ found.axes.T
        return cls(flat, named, found.mean, found.axes, float(shares.sum()))

    @classmethod
    def _of_a_line(cls, points: FloatArray, names: list[str]) -> Self:
        """One feature to the right; the height is chance, so that points do not hide others."""
        heights = np.random.default_rng(0).uniform(-0.4, 0.4, len(points))
        flat = np.column_stack([points[:, 0], heights])
        return cls(flat, (names[0], ""), np.zeros(1), np.array([[1.0], [0.0]]))

    def project(self, others: FloatArray) -> FloatArray:
        """Other points of the space, in the plane."""
        projected: FloatArray = (others - self.origin) @ self.axes.T
        return projected

    def lift(self, places: FloatArray) -> FloatArray:
        """The points of the space that lie at these places of the plane."""
        lifted: FloatArray = self.origin + places @ self.axes
        return lifted


def _principal(axis: int, share: float) -> str:
    return f"principal axis {axis} ({share:.0%} of the variance)"


def embed(
    points: FloatArray | SparsePoints, centers: FloatArray | None, method: Method
) -> tuple[FloatArray, FloatArray | None]:
    """Points and centers, laid out together by t-SNE or UMAP, which keep neighbours together."""
    n_points = points.shape[0]
    all_points: Any = points
    if centers is not None:
        stack: Any = sparse.vstack if sparse.issparse(points) else np.vstack
        all_points = stack([points, centers])
    layout = _layout(method, all_points.shape[0]).fit_transform(all_points)
    flat = np.asarray(layout, dtype=np.float64)
    return flat[:n_points], None if centers is None else flat[n_points:]


def _layout(method: Method, n_points: int) -> Any:
    if method == "tsne":
        from sklearn.manifold import TSNE

        perplexity = min(30.0, max(1.0, (n_points - 1) / 3))
        return TSNE(perplexity=perplexity, init="random", random_state=0)
    if method != "umap":
        raise ValueError(f'method={method!r} is not known: pass "pca", "tsne" or "umap"')
    try:
        from umap import UMAP
    except ImportError as missing:
        raise ImportError(
            'method="umap" needs umap-learn, which is not installed: pip install umap-learn, or '
            'pass method="tsne"'
        ) from missing
    return UMAP(random_state=0, n_jobs=1)


def _dense(points: FloatArray | SparsePoints) -> FloatArray:
    dense: FloatArray = points.toarray() if sparse.issparse(points) else points
    return dense
