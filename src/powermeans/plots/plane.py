"""Points with any number of features, projected to the plane."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from scipy import sparse

from powermeans.plots.fitted import dense
from powermeans.principal_axes import principal_axes
from powermeans.types import FloatArray, SparsePoints

Method = Literal["pca", "tsne", "umap"]


@dataclass(frozen=True, slots=True)
class Plane:
    """Points in the plane, and how the plane lies in the space of the points."""

    points: FloatArray  # (n_points, 2)
    names: tuple[str, str]  # of the two directions; empty for a direction without meaning
    origin: FloatArray  # (n_features,)
    axes: FloatArray  # (2, n_features), orthonormal or zero
    share: float = 1.0  # of the variance that the plane shows

    @classmethod
    def of(cls, points: FloatArray | SparsePoints, names: list[str]) -> Self:
        """Make the plane of the two columns, or of the two principal axes if there are more."""
        n_features = points.shape[1]
        if n_features == 1:
            return cls._of_a_line(dense(points), names)
        if n_features == 2:
            return cls(dense(points), (names[0], names[1]), np.zeros(2), np.eye(2))
        found = principal_axes(points, None, 2)
        shares = np.square(found.deviations / (found.total_deviation or 1.0))
        named = _name_of_axis(1, shares[0]), _name_of_axis(2, shares[1])
        flat = np.asarray(points @ found.axes.T) - found.mean @ found.axes.T
        return cls(flat, named, found.mean, found.axes, float(shares.sum()))

    @classmethod
    def _of_a_line(cls, points: FloatArray, names: list[str]) -> Self:
        """Lay one feature along the x axis, at random heights that keep points apart."""
        heights = np.random.default_rng(0).uniform(-0.4, 0.4, len(points))
        flat = np.column_stack([points[:, 0], heights])
        return cls(flat, (names[0], ""), np.zeros(1), np.array([[1.0], [0.0]]))

    def project(self, others: FloatArray) -> FloatArray:
        """Return other points of the space, projected to the plane."""
        projected: FloatArray = (others - self.origin) @ self.axes.T
        return projected

    def lift(self, places: FloatArray) -> FloatArray:
        """Return the points of the space at these places of the plane."""
        lifted: FloatArray = self.origin + places @ self.axes
        return lifted


def _name_of_axis(axis: int, share: float) -> str:
    return f"principal axis {axis} ({share:.0%} of the variance)"


def embed(
    points: FloatArray | SparsePoints, centers: FloatArray | None, method: Method
) -> tuple[FloatArray, FloatArray | None]:
    """Lay out points and centers together by t-SNE or UMAP, which keep neighbours together."""
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
