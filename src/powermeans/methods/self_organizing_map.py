"""Kohonen's self-organizing map, trained in batches: k-means with centers tied to a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist
from sklearn.utils._param_validation import Interval

from powermeans.engine.anneal import Result, Stage, anneal
from powermeans.engine.fit import Fit
from powermeans.engine.seeds.choose import uniform_seeds
from powermeans.engine.stopping import CentersSettled
from powermeans.engine.updates import Sweep, Update
from powermeans.mathematics.principal_axes import principal_axes
from powermeans.mathematics.schedules import Fixed
from powermeans.mathematics.sums import Sums
from powermeans.methods.base import CenterEstimator
from powermeans.methods.documented import one_of
from powermeans.points.checks.centers import check_init
from powermeans.points.protocol import Points, distances_in_blocks
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import FloatArray

# The largest distance between neighbouring nodes; on a grid of squares diagonals are neighbours.
_REACH = {"rectangular": math.sqrt(2), "hexagonal": 1.0}


class SelfOrganizingMap(CenterEstimator):
    """A self-organizing map: centers on a grid, so that neighbours are alike (Kohonen 1982).

    Each center belongs to a node of a grid in the plane. In each epoch every point goes to its
    nearest center, as in Lloyd's algorithm. Then nodes share their sums with nearby nodes: with the
    sums S and counts n of the points of a node, and the distance g on the grid, ::

        h_jl = exp(-g_jl ** 2 / (2 * radius ** 2))
        center_j = sum_l h_jl * S_l / sum_l h_jl * n_l

    The radius shrinks from epoch to epoch, so that neighbouring nodes come to represent similar
    points. With a radius near zero an epoch is a sweep of Lloyd's algorithm.

    Use it to lay out many clusters in a picture, or for comparison. If you need only clusters,
    `PowerKMeans` with as many centers has lower inertia: here neighbours attract each other, and
    nodes between clusters may have no points. There is no search, since moving a node to another
    place would undo the order of the grid.

    Parameters
    ----------
    shape : (int, int), default=(7, 7)
        Rows and columns of the grid. Pass it to `from_centers` too, unless it is the default.
    topology : {"rectangular", "hexagonal"}, default="rectangular"
        Whether the nodes are corners of squares, or each has six neighbours at distance one.
    init : {"pca", "random"} or array-like, default="pca"
        "pca" spreads the grid over the first two principal axes, up to one standard deviation on
        each side, and nothing is random. "random" draws points by their weights. An array has the
        shape (rows * columns, n_features).
    radius : float, default=None
        Radius in the first epoch; None is half the longer side of the grid.
    final_radius : float, default=0.5
        Radius in the last epoch. It falls by the same factor from epoch to epoch.
    n_epochs : int, default=50
        Number of epochs, each of one sweep.
    random_state, n_threads, verbose
        As in `PowerKMeans`.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (rows * columns, n_features)
        The centers, or codebook, in the order of the rows of the grid and the dtype of the points.
    grid_positions_ : ndarray of shape (rows * columns, 2)
        Positions of the nodes in the plane.
    quantization_error_ : float
        Weighted mean distance to the nearest center, not squared.
    topographic_error_ : float
        Weighted share of the points whose two nearest centers belong to nodes that are not
        neighbours (Kiviluoto 1996); diagonal neighbours count as neighbours. NaN after a fit that
        was interrupted.
    n_iter_ : int
        Number of epochs.
    history_ : recarray
        One record for each epoch.
    labels_, inertia_, n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    KMeans : The same without a grid.

    References
    ----------
    T. Kohonen: Self-Organizing Maps. Springer, third edition 2001; section 3.6 has the batch map.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.methods import SelfOrganizingMap
    >>> X = np.linspace(0, 1, 101)[:, None]
    >>> model = SelfOrganizingMap(shape=(1, 5)).fit(X)
    >>> bool((np.diff(model.cluster_centers_.ravel()) > 0).all())
    True
    >>> model.topographic_error_
    0.0
    """

    _state = """grid_positions_: finite[k,2]! quantization_error_: number
        topographic_error_: number"""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "shape": ["array-like"],
        "topology": [one_of(_REACH)],
        "init": [one_of({"pca", "random"}), "array-like"],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "final_radius": [Interval(Real, 0, None, closed="neither")],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_threads": [Integral, None],
        "verbose": ["verbose"],
    }

    _why_whole = "Nodes share the weight of their points, which is another in each column then"

    grid_positions_: FloatArray
    quantization_error_: float
    topographic_error_: float

    def __init__(
        self,
        shape: tuple[int, int] = (7, 7),
        *,
        topology: Literal["rectangular", "hexagonal"] = "rectangular",
        init: Literal["pca", "random"] | ArrayLike = "pca",
        radius: float | None = None,
        final_radius: float = 0.5,
        n_epochs: int = 50,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.shape = shape
        self.topology = topology
        self.init = init
        self.radius = radius
        self.final_radius = final_radius
        self.n_epochs = n_epochs
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    def _use_given_centers(self) -> None:
        self.grid_positions_ = self._grid().positions()
        if len(self.grid_positions_) != len(self.cluster_centers_):
            raise ValueError(
                f"centers has {len(self.cluster_centers_)} rows but shape={self.shape!r} "
                "has another number of nodes: pass a shape of as many"
            )

    def _stages(self, points: Points, fit: Fit) -> list[Stage]:
        distances = self._grid().distances()
        return [
            Stage(
                Fixed(-math.inf),
                CentersSettled(0.0),
                1,
                ShareOverGrid(gaussian_sharing(distances, radius)),
            )
            for radius in self._radii()
        ]

    def _radii(self) -> FloatArray:
        start = self.radius
        if start is None:
            start = max(max(self._grid().shape) / 2, self.final_radius)
        if start < self.final_radius:
            raise ValueError(
                f"radius={start!r} is less than final_radius={self.final_radius!r}, but it is to "
                "shrink: pass a larger radius or a smaller final_radius"
            )
        return np.geomspace(start, self.final_radius, self.n_epochs)

    def _fit(self, points: Points, fit: Fit) -> Result:
        centers = self._initial_centers(points, fit)
        fit.history.phase("improving")
        return anneal(points, centers, fit.stages, fit)

    def _initial_centers(self, points: Points, fit: Fit) -> FloatArray:
        grid, given = self._grid(), points.given
        if not isinstance(self.init, str):
            return given.of_used_columns(check_init(self.init, grid.n_nodes, given.n_features))
        if self.init == "random":
            return uniform_seeds(points, grid.n_nodes, fit.rng)
        found = principal_axes(given.array, given.weights, min(2, given.n_features))
        steps, deviations = grid.from_center(), found.deviations
        if len(deviations) < 2 or deviations[1] <= 1e-6 * deviations[0]:
            # Points on a line: rounding alone would part nodes that begin at one place.
            steps = steps @ [[1.0], [0.5 / max(grid.shape)]]
        return found.mean + steps * deviations[: steps.shape[1]] @ found.axes[: steps.shape[1]]

    def _attributes(self, points: Points, fit: Fit, result: Result) -> Result:
        result, given, grid = super()._attributes(points, fit, result), points.given, self._grid()
        centers = result.centers.astype(np.float64)
        weights = np.ones(points.n_points) if given.weights is None else given.weights
        distances = np.sqrt(points.nearness(centers).sq_dist())
        # The error takes longer than a sweep, and who interrupts a fit does not wait for it.
        is_short = result.was_stopped
        error = math.nan if is_short else _topographic_error(points, weights, centers, grid)
        return result.with_attributes(
            grid_positions_=grid.positions(),
            quantization_error_=float(np.average(distances, weights=weights)),
            topographic_error_=error,
        )

    def _grid(self) -> Grid:
        shape = np.asarray(self.shape)
        if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape.min() < 1:
            raise ValueError(
                f"shape={self.shape!r} must be two whole numbers of at least 1: pass rows and "
                "columns of the grid, for example shape=(7, 7)"
            )
        return Grid((int(shape[0]), int(shape[1])), self.topology)

    def _report_end(self, result: Result) -> None:
        if self.verbose:
            print(f"The end: {result.attributes['n_iter_']} epochs.")


@dataclass(frozen=True, slots=True)
class Grid:
    """A grid of nodes in the plane, row by row."""

    shape: tuple[int, int]  # rows and columns
    topology: Literal["rectangular", "hexagonal"]

    @property
    def n_nodes(self) -> int:
        """Return the number of nodes."""
        return self.shape[0] * self.shape[1]

    def positions(self) -> FloatArray:
        """Return the positions of the nodes across and along the rows, (n_nodes, 2)."""
        rows, columns = (axis.ravel().astype(np.float64) for axis in np.indices(self.shape))
        if self.topology == "rectangular":
            return np.column_stack([rows, columns])
        return np.column_stack([math.sqrt(0.75) * rows, columns + 0.5 * (rows % 2)])

    def distances(self) -> FloatArray:
        """Return the distances between all nodes, (n_nodes, n_nodes)."""
        return np.asarray(cdist(self.positions(), self.positions()))

    def from_center(self) -> FloatArray:
        """Scale the positions to [-1, 1], with the longer side of the grid first, (n_nodes, 2)."""
        positions = self.positions()
        lowest, highest = positions.min(axis=0), positions.max(axis=0)
        halves = (highest - lowest) / 2
        centered: FloatArray = (positions - lowest - halves) / np.where(halves > 0, halves, 1.0)
        return centered if halves[0] > halves[1] else centered[:, ::-1]

    def are_neighbours(self, nodes: np.ndarray, others: np.ndarray) -> np.ndarray:
        """Return whether the nodes of each pair are neighbours."""
        positions = self.positions()
        apart = np.linalg.norm(positions[nodes] - positions[others], axis=-1)
        return np.asarray(apart <= _REACH[self.topology] + 1e-9)


def gaussian_sharing(distances: FloatArray, radius: float) -> FloatArray:
    """Return h of all pairs of nodes."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(-0.5 * np.square(distances / radius)))


@dataclass(frozen=True, slots=True)
class ShareOverGrid(Update):
    """Share the sums of each node with nearby nodes."""

    sharing: FloatArray  # (n_nodes, n_nodes), what a node gets of another

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return H times the sums of the points and of the weights."""
        with blas_on_one_thread():
            shared = self.sharing @ sums.points, self.sharing @ sums.weights
        return replace(sums, points=shared[0], weights=shared[1])


def _topographic_error(
    points: Points, weights: FloatArray, centers: FloatArray, grid: Grid
) -> float:
    """Return the share of the points whose two nearest centers are not neighbours."""
    if grid.n_nodes == 1:
        return 0.0
    apart = 0.0
    for chunk, sq_dist in distances_in_blocks(points, centers):
        first, second = np.argpartition(sq_dist, 1, axis=1)[:, :2].T
        apart += float(weights[chunk] @ ~grid.are_neighbours(first, second))
    return apart / float(weights.sum())
