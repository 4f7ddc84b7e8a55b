"""Kohonen's self-organizing map, trained in batches: k-means with centers tied to a grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.csgraph import shortest_path
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions

from powermeans.divergences import squared_euclidean
from powermeans.estimators.base import CenterEstimator, Run, Start
from powermeans.estimators.opening import Data, InMemory, OpeningSpec, in_memory
from powermeans.inputs.centers import check_init
from powermeans.loop.anneal import Stage, StageEnd
from powermeans.loop.stopping import CentersSettled
from powermeans.loop.updates import Sweep, Update
from powermeans.principal_axes import principal_axes
from powermeans.schedules import Fixed
from powermeans.seeds.choose import uniform_seeds
from powermeans.sums import Sums
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import FloatArray

# The largest distance between neighbouring nodes; on a grid of squares diagonals are neighbours.
_REACH = {"rectangular": math.sqrt(2), "hexagonal": 1.0}
_ROUNDING = 1e-9


class SelfOrganizingMap(CenterEstimator):
    """A self-organizing map: centers on a grid, so that neighbours are alike (Kohonen 1982).

    Each center belongs to a node of a grid in the plane. In each epoch every point goes to its
    nearest center, as in Lloyd's algorithm. Then nodes share their sums with nearby nodes: with the
    sums S and counts n of the points of a node, and the distance g on the grid, ::

        h_jl = exp(-g_jl ** 2 / (2 * radius ** 2))
        center_j = sum_l h_jl * S_l / sum_l h_jl * n_l

    The radius shrinks from epoch to epoch, so that neighbouring nodes come to represent similar
    points. With a radius near zero an epoch is a sweep of Lloyd's algorithm.

    `SelfOrganizingMap.as_in_matlab` is the map of MATLAB's Neural Network Toolbox.

    Use it to lay out many clusters in a picture, or for comparison. If you need only clusters,
    `PowerKMeans` with as many centers has lower inertia: here neighbours attract each other, and
    nodes between clusters may have no points. There is no search, since moving a node to another
    place would undo the order of the grid.

    Parameters
    ----------
    shape : (int, int), default=(7, 7)
        Rows and columns of the grid. Pass it to `from_centers` too, unless it is the default.
    topology : {"rectangular", "hexagonal"}, default="rectangular"
        Whether the nodes are corners of squares, or every second row is shifted by half a step so
        that each node has six neighbours at distance one.
    init : {"pca", "random"} or array-like, default="pca"
        Initial centers. "pca" lays the grid over the plane of the first two principal components,
        up to one standard deviation on each side, with its longer side along the first; nothing is
        random. "random" draws points by their weights. An array has the shape
        (rows * columns, n_features).
    radius : float, default=None
        Radius in the first epoch; None is half the longer side of the grid.
    final_radius : float, default=0.5
        Radius in the last epoch.
    decay : {"geometric", "linear"}, default="geometric"
        How the radius decreases between the two.
    n_epochs : int, default=50
        Number of epochs, each of one sweep.
    n_shrinking : int, default=None
        Number of epochs in which the radius shrinks; the others have `final_radius`. None is all.
    neighborhood : {"gaussian", "steps"}, default="gaussian"
        What nodes share: "gaussian" is h above. With "steps" a node gets the sums of all nodes
        within `radius` steps from neighbour to neighbour, and its own twice; below one step only
        its own count, as in Lloyd's algorithm.
    left_out : float, default=0.0
        Share of the points that each epoch leaves out at random, which shakes nodes out of poor
        solutions. They are still assigned in the end.
    random_state : int, RandomState instance or None, default=None
        Seed of the initial centers if they are random, and of the points that are left out.
    n_threads : int or None, default=None
        Largest number of threads; None follows the environment and its limits.
    verbose : int, default=0
        Whether to print a line for each epoch.

    Attributes
    ----------
    cluster_centers_ : ndarray of shape (rows * columns, n_features)
        The centers, or codebook, in the order of the rows of the grid and the dtype of the points.
    labels_ : ndarray of shape (n_samples,)
        The node whose center is nearest to each point.
    grid_positions_ : ndarray of shape (rows * columns, 2)
        Positions of the nodes in the plane.
    inertia_ : float
        Weighted sum of squared distances to the nearest center.
    quantization_error_ : float
        Weighted mean distance to the nearest center, not squared.
    topographic_error_ : float
        Weighted share of the points whose two nearest centers belong to nodes that are not
        neighbours (Kiviluoto 1996); diagonal neighbours count as neighbours.
    n_iter_ : int
        Number of epochs.
    history_ : recarray
        One record for each epoch.
    n_features_in_, feature_names_in_
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
    >>> from powermeans import SelfOrganizingMap
    >>> X = np.linspace(0, 1, 101)[:, None]
    >>> model = SelfOrganizingMap(shape=(1, 5)).fit(X)
    >>> bool((np.diff(model.cluster_centers_.ravel()) > 0).all())
    True
    >>> model.topographic_error_
    0.0
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "shape": ["array-like"],
        "topology": [StrOptions(set(_REACH))],
        "init": [StrOptions({"pca", "random"}), "array-like"],
        "radius": [Interval(Real, 0, None, closed="neither"), None],
        "final_radius": [Interval(Real, 0, None, closed="neither")],
        "decay": [StrOptions({"geometric", "linear"})],
        "n_epochs": [Interval(Integral, 1, None, closed="left")],
        "n_shrinking": [Interval(Integral, 1, None, closed="left"), None],
        "neighborhood": [StrOptions({"gaussian", "steps"})],
        "left_out": [Interval(Real, 0, 1, closed="left")],
        "random_state": ["random_state"],
        "n_threads": [Integral, None],
        "verbose": ["verbose"],
    }

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
        decay: Literal["geometric", "linear"] = "geometric",
        n_epochs: int = 50,
        n_shrinking: int | None = None,
        neighborhood: Literal["gaussian", "steps"] = "gaussian",
        left_out: float = 0.0,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.shape = shape
        self.topology = topology
        self.init = init
        self.radius = radius
        self.final_radius = final_radius
        self.decay = decay
        self.n_epochs = n_epochs
        self.n_shrinking = n_shrinking
        self.neighborhood = neighborhood
        self.left_out = left_out
        self.random_state = random_state
        self.n_threads = n_threads
        self.verbose = verbose

    @classmethod
    def as_in_matlab(cls, shape: tuple[int, int] = (7, 7), **params: Any) -> Self:
        """Make a map that trains as MATLAB's Neural Network Toolbox does by default.

        The neighborhood falls from 3 steps on a hexagonal grid to less than one in 100 epochs, and
        100 epochs follow in which only the own points of a node count. Each epoch leaves out a
        tenth of the points.

        Parameters
        ----------
        shape : (int, int), default=(7, 7)
            Rows and columns of the grid.
        **params
            Other parameters of the constructor, which replace ``topology="hexagonal"``,
            ``neighborhood="steps"``, ``radius=3.0``, ``final_radius=0.98``, ``decay="linear"``,
            ``n_epochs=200``, ``n_shrinking=102`` and ``left_out=0.1``.

        Returns
        -------
        SelfOrganizingMap

        References
        ----------
        C. Higuera, K. J. Gardiner, K. J. Cios: Self-Organizing Feature Maps Identify Proteins
        Critical to Learning in a Mouse Model of Down Syndrome. PLoS ONE 10(6), 2015, used the
        toolbox; Table 3 of Xu & Lange (2019) quotes its errors.

        Examples
        --------
        >>> import numpy as np
        >>> from powermeans import SelfOrganizingMap
        >>> X = np.random.default_rng(0).normal(size=(400, 4))
        >>> ours = SelfOrganizingMap(shape=(4, 4)).fit(X)
        >>> theirs = SelfOrganizingMap.as_in_matlab(shape=(4, 4), random_state=0).fit(X)
        >>> theirs.quantization_error_ < ours.quantization_error_
        True
        """
        settings: dict[str, Any] = {"topology": "hexagonal", "neighborhood": "steps"}
        settings |= {"radius": 3.0, "final_radius": 0.98, "decay": "linear"}
        settings |= {"n_epochs": 200, "n_shrinking": 102, "left_out": 0.1}
        return cls(shape, **{**settings, **params})

    def _spec(self) -> OpeningSpec:
        reason = "Nodes share the weight of their points, which is another in each column then"
        return replace(super()._spec(), why_whole=reason)

    def _use_given_centers(self) -> None:
        self.grid_positions_ = self._grid().positions()
        if len(self.grid_positions_) != len(self.cluster_centers_):
            raise ValueError(
                f"centers has {len(self.cluster_centers_)} rows but shape={self.shape!r} "
                "has another number of nodes: pass a shape of as many"
            )

    def _stages(self, data: Data) -> list[Stage]:
        share = self._sharing()
        leave_out = None
        if self.left_out > 0:
            leave_out = LeaveOut(
                in_memory(data), self.left_out, check_random_state(self.random_state)
            )
        return [
            Stage(Fixed(-math.inf), CentersSettled(0.0), 1, ShareOverGrid(share(radius), leave_out))
            for radius in self._radii()
        ]

    def _sharing(self) -> Callable[[float], FloatArray]:
        """Return the function from a radius to what each pair of nodes shares."""
        grid = self._grid()
        if self.neighborhood == "steps":
            steps = grid.steps()
            return lambda radius: (steps <= radius + _ROUNDING) + np.eye(grid.n_nodes)
        distances = grid.distances()
        return lambda radius: gaussian_sharing(distances, radius)

    def _radii(self) -> FloatArray:
        """Return the radius of each epoch."""
        start = self.radius
        if start is None:
            start = max(max(self._grid().shape) / 2, self.final_radius)
        if start < self.final_radius:
            raise ValueError(
                f"radius={start!r} is less than final_radius={self.final_radius!r}, but it is to "
                "shrink: pass a larger radius or a smaller final_radius"
            )
        spaced = np.geomspace if self.decay == "geometric" else np.linspace
        n_shrinking = min(self.n_shrinking or self.n_epochs, self.n_epochs)
        radii = np.full(self.n_epochs, float(self.final_radius))
        radii[:n_shrinking] = spaced(start, self.final_radius, n_shrinking)
        return radii

    def _initial_centers(self, data: Data, rng: np.random.RandomState) -> FloatArray:
        grid = self._grid()
        if not isinstance(self.init, str):
            return data.of_used_columns(check_init(self.init, grid.n_nodes, data.n_features))
        if self.init == "random":
            return uniform_seeds(data.rows, grid.n_nodes, rng)
        held = in_memory(data)
        found = principal_axes(held.points, held.weights, min(2, data.n_features))
        steps = grid.from_center()[:, : len(found.axes)]
        return np.asarray(found.mean + (steps * found.deviations) @ found.axes)

    def _finish(self, start: Start, ends: Sequence[StageEnd] = ()) -> Run:
        run, data, grid = super()._finish(start, ends), in_memory(start.data), self._grid()
        centers = run.centers.astype(np.float64)
        weights = np.ones(data.rows.n_points) if data.weights is None else data.weights
        distances = np.sqrt(data.rows.nearness(centers).sq_dist())
        return run.with_attributes(
            grid_positions_=grid.positions(),
            quantization_error_=float(np.average(distances, weights=weights)),
            topographic_error_=_topographic_error(data, weights, centers, grid),
        )

    def _grid(self) -> Grid:
        shape = np.asarray(self.shape)
        if shape.shape != (2,) or shape.dtype.kind not in "iu" or shape.min() < 1:
            raise ValueError(
                f"shape={self.shape!r} must be two whole numbers of at least 1: pass rows and "
                "columns of the grid, for example shape=(7, 7)"
            )
        return Grid((int(shape[0]), int(shape[1])), self.topology)

    def _wanted_runs(self) -> int:
        return 1

    def _report_end(self, run: Run) -> None:
        if self.verbose:
            print(f"The end: {len(run.history.records)} epochs.")


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

    def steps(self) -> FloatArray:
        """Return the steps from neighbour to neighbour between nodes, (n_nodes, n_nodes)."""
        return np.asarray(shortest_path(self.distances() <= _REACH[self.topology] + _ROUNDING))

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
        return np.asarray(apart <= _REACH[self.topology] + _ROUNDING)


def gaussian_sharing(distances: FloatArray, radius: float) -> FloatArray:
    """Return h of all pairs of nodes."""
    with np.errstate(over="ignore"):
        return np.asarray(np.exp(-0.5 * np.square(distances / radius)))


@dataclass(frozen=True, slots=True)
class LeaveOut:
    """Sum over the points less a random share of them."""

    data: InMemory
    share: float
    rng: np.random.RandomState

    def sums(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return the sums of the points that stay, which are added up anew.

        Subtracting those that go would leave rounding where a node has no points.
        """
        labels, _ = sweep.rows.assign(sweep.centers)
        chosen = np.flatnonzero(self.rng.random_sample(len(labels)) >= self.share)
        weights = np.ones(len(labels)) if self.data.weights is None else self.data.weights
        shape = (len(sweep.centers), len(labels))
        own = sparse.csr_array((weights[chosen], (labels[chosen], chosen)), shape=shape)
        points = own @ self.data.points
        points = points.toarray() if sparse.issparse(points) else points
        return replace(sums, points=np.asarray(points), weights=np.asarray(own.sum(axis=1)))


@dataclass(frozen=True, slots=True)
class ShareOverGrid(Update):
    """Share the sums of each node with nearby nodes."""

    sharing: FloatArray  # (n_nodes, n_nodes), what a node gets of another
    leave_out: LeaveOut | None = None

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return H times the sums of the points and of the weights."""
        if self.leave_out is not None:
            sums = self.leave_out.sums(sweep, sums)
        with blas_on_one_thread():
            shared = self.sharing @ sums.points, self.sharing @ sums.weights
        return replace(sums, points=shared[0], weights=shared[1])


def _topographic_error(
    data: InMemory, weights: FloatArray, centers: FloatArray, grid: Grid
) -> float:
    """Return the share of the points whose two nearest centers are not neighbours."""
    if grid.n_nodes == 1:
        return 0.0
    apart = 0.0
    for chunk, sq_dist in squared_euclidean.in_chunks(data.points, centers):
        first, second = np.argpartition(sq_dist, 1, axis=1)[:, :2].T
        apart += float(weights[chunk] @ ~grid.are_neighbours(first, second))
    return apart / float(weights.sum())
