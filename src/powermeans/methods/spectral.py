"""Spectral clustering: power k-means in scikit-learn's embedding of a graph."""

from __future__ import annotations

import warnings
from numbers import Integral, Real
from typing import Any, ClassVar, Literal, Self

import numpy as np
from scipy import linalg, sparse
from scipy.sparse.csgraph import connected_components
from sklearn.base import ClusterMixin
from sklearn.utils._param_validation import Interval

from powermeans.engine.fit import random_numbers
from powermeans.errors import UnlikeScalesWarning
from powermeans.methods.documented import Documented, one_of
from powermeans.methods.power_kmeans import PowerKMeans
from powermeans.points.needs import FitNeeds, Needs, Refusals
from powermeans.points.opening import MatrixLike, admit_array
from powermeans.system.containers import like_given
from powermeans.types import AnyMatrix, FloatArray, IndexArray, Labels, SparseMatrix

Graph = AnyMatrix
"""Symmetric affinities, none negative, dense or CSR."""

# Larger graphs are solved by Lanczos iteration, which also needs far more nodes than vectors.
_MOST_NODES_SOLVED = 256


class SpectralClustering(ClusterMixin, Documented):
    """Spectral clustering: clusters that are connected but not round (Ng, Jordan & Weiss 2001).

    Points are nodes of a graph, with edges between similar points. With the affinities A and the
    diagonal matrix D of their row sums, scikit-learn's `spectral_embedding` embeds the nodes by the
    `n_clusters` eigenvectors of the smallest eigenvalues of ``I - D^(-1/2) A D^(-1/2)``, whose rows
    are scaled to length one. `PowerKMeans` then finds clusters among these rows.

    Use it for clusters that are connected but not round: rings, moons, parts of a network. It needs
    the whole graph in memory, n^2 numbers unless the graph is sparse. If clusters have centers,
    `PowerKMeans` on the points is faster and can predict.

    A graph may have pieces without edges between them. Each piece is embedded separately, so no
    cluster has parts of two pieces, unless there are more pieces than clusters; then clusters
    consist of whole pieces.

    There is no `sample_weight`: a weight of three would be three copies of a point, which are nodes
    with edges between them, and so would change the graph and not only the last step. If points
    have weights, pass copies or suitable affinities.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters.
    affinity : {"rbf", "nearest_neighbors", "precomputed"}, default="rbf"
        "rbf" is ``exp(-gamma * squared distance)``. "nearest_neighbors" is one for two points that
        are each among the nearest of the other, and one half if only one is. With "precomputed" X
        contains the affinities, dense or sparse, symmetric and nonnegative.
    gamma : float, default=1.0
        For "rbf": about one over the squared distance of neighbours within a cluster.
    n_neighbors : int, default=10
        For "nearest_neighbors": the number of neighbours, including the point itself.
    random_state, n_threads
        As in `PowerKMeans`.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Label of each point, int32.
    affinity_matrix_ : ndarray or CSR of shape (n_samples, n_samples)
        The affinities.
    embedding_ : ndarray or CSR of shape (n_samples, n_clusters)
        The points that `PowerKMeans` clusters; sparse if there are more pieces than `n_clusters`.
    n_pieces_ : int
        Number of pieces of the graph.
    n_features_in_, feature_names_in_
        As in `PowerKMeans`.

    See Also
    --------
    KernelPowerKMeans : Finds centers in the feature space of a kernel, and can predict.

    References
    ----------
    J. Shi, J. Malik: Normalized cuts and image segmentation. IEEE Transactions on Pattern Analysis
    and Machine Intelligence 22, 2000.
    A. Y. Ng, M. I. Jordan, Y. Weiss: On spectral clustering: analysis and an algorithm. Advances in
    Neural Information Processing Systems, 2001.

    Examples
    --------
    >>> from sklearn.datasets import make_moons
    >>> from powermeans.methods import SpectralClustering
    >>> X, moon = make_moons(200, noise=0.05, random_state=0)
    >>> labels = SpectralClustering(2, gamma=20.0, random_state=0).fit_predict(X)
    >>> len(set(zip(labels, moon)))
    2
    """

    _state = """affinity_matrix_: finite[n,n]! n_pieces_: count!
        embedding_: finite[n,q]! labels_: label[n]!"""

    _why_whole = "Affinities are of all entries of two rows"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "affinity": [one_of({"rbf", "nearest_neighbors", "precomputed"})],
        "gamma": [Interval(Real, 0, None, closed="neither")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "n_threads": [Integral, None],
    }

    labels_: Labels
    affinity_matrix_: Graph
    embedding_: FloatArray | SparseMatrix
    n_pieces_: int

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        affinity: Literal["rbf", "nearest_neighbors", "precomputed"] = "rbf",
        gamma: float = 1.0,
        n_neighbors: int = 10,
        random_state: int | np.random.RandomState | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.n_clusters = n_clusters
        self.affinity = affinity
        self.gamma = gamma
        self.n_neighbors = n_neighbors
        self.random_state = random_state
        self.n_threads = n_threads

    def fit(self, X: MatrixLike, y: object = None) -> Self:
        """Find the clusters.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The points, or with ``affinity="precomputed"`` the affinities, of shape (n_samples,
            n_samples).
        y : None
            Ignored; present for compatibility with scikit-learn.

        Returns
        -------
        self
        """
        self._validate_params()
        rng = random_numbers(self.random_state)
        self.affinity_matrix_ = self._affinities(X)
        self.embedding_ = self._embedding(self.affinity_matrix_, rng)
        last_step = PowerKMeans(self.n_clusters, random_state=rng, n_threads=self.n_threads)
        with warnings.catch_warnings():
            # The columns of the embedding are none of X.
            warnings.simplefilter("ignore", UnlikeScalesWarning)
            labels = last_step.fit(self.embedding_).labels_
        self.labels_ = like_given(X, labels, of="points")
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self.affinity == "precomputed"
        tags.input_tags.positive_only = self.affinity == "precomputed"
        return tags

    def _affinities(self, X: MatrixLike) -> Graph:
        is_given = self.affinity == "precomputed"
        reason = None if is_given else self._why_whole
        needs = Needs(
            name=type(self).__name__,
            estimator=self,
            refusals=Refusals(missing=reason),
            fit=FitNeeds(n_points=self.n_clusters),
        )
        points = admit_array(X, None, needs, dtype=np.float64, ensure_min_samples=2).points
        if is_given:
            return _checked_graph(points, getattr(X, "dtype", points.dtype))
        if self.affinity == "nearest_neighbors":
            return _nearest_neighbours(points, self.n_neighbors)
        return _gaussian_kernel(points, self.gamma)

    def _embedding(self, graph: Graph, rng: np.random.RandomState) -> FloatArray | SparseMatrix:
        self.n_pieces_, piece_of = _pieces(graph)
        embedding: FloatArray | SparseMatrix
        if self.n_pieces_ > self.n_clusters:
            embedding = _one_axis_each(graph, piece_of)
        else:
            embedding = self._embedding_by_piece(graph, piece_of, rng)
        return _with_rows_of_length_one(embedding)

    def _embedding_by_piece(
        self, graph: Graph, piece_of: IndexArray, rng: np.random.RandomState
    ) -> FloatArray:
        """Return the eigenvectors of the smallest eigenvalues, each zero except on one piece."""
        pieces = [np.flatnonzero(piece_of == piece) for piece in range(self.n_pieces_)]
        found = [_eigenvectors(_part(graph, nodes), self.n_clusters, rng) for nodes in pieces]
        of_piece = np.repeat(np.arange(len(pieces)), [len(values) for values, _ in found])
        column = np.concatenate([np.arange(len(values)) for values, _ in found])
        values = np.concatenate([values for values, _ in found])
        # The first eigenvector of each piece is constant, with the eigenvalue zero.
        chosen = np.lexsort([values, column > 0])[: self.n_clusters]
        embedding = np.zeros((graph.shape[0], len(chosen)))
        for axis, which in enumerate(chosen):
            piece = of_piece[which]
            embedding[pieces[piece], axis] = found[piece][1][:, column[which]]
        return embedding


def _checked_graph(affinities: Any, dtype: np.dtype[Any]) -> Graph:
    """Return affinities, given in this dtype, as symmetric to the last bit, or raise."""
    if affinities.shape[0] != affinities.shape[1]:
        raise ValueError(
            f"X has the shape {affinities.shape} but affinity='precomputed': pass affinities, one "
            "row and one column for each point, or affinity='rbf' for points"
        )
    lowest = _entries(affinities).min(initial=0.0)
    if lowest < 0:
        raise ValueError(
            f"X has the affinity {lowest}, below zero: pass affinities of at least zero, "
            "for example np.exp(-distances ** 2)"
        )
    asymmetry = np.abs(_entries(affinities - affinities.T)).max(initial=0.0)
    precision = np.finfo(dtype if np.issubdtype(dtype, np.floating) else np.float64).eps
    allowed = float(precision) ** (2 / 3)  # 4e-11 in float64, 2e-5 in float32
    if asymmetry > allowed * _entries(affinities).max(initial=0.0):
        raise ValueError(
            f"X is not symmetric, entries across the diagonal differ by {asymmetry:.3g}: pass "
            "(X + X.T) / 2"
        )
    symmetric: Graph = 0.5 * (affinities + affinities.T)
    return sparse.csr_array(symmetric) if sparse.issparse(affinities) else symmetric


def _entries(graph: Graph) -> FloatArray:
    return np.asarray(graph.data if sparse.issparse(graph) else graph, dtype=np.float64)


def _nearest_neighbours(points: AnyMatrix, n_neighbors: int) -> SparseMatrix:
    from sklearn.neighbors import kneighbors_graph

    if n_neighbors > points.shape[0]:
        raise ValueError(
            f"n_neighbors={n_neighbors} but n_samples={points.shape[0]}: pass n_neighbors of at "
            f"most {points.shape[0]}"
        )
    nearest = kneighbors_graph(points, n_neighbors, include_self=True)
    return sparse.csr_array(0.5 * (nearest + nearest.T))


def _gaussian_kernel(points: AnyMatrix, gamma: float) -> FloatArray:
    from sklearn.metrics.pairwise import rbf_kernel

    # Distances come from products, in which a common offset of the points would swamp them. Unlike
    # the mean, the median stays with most points however far away a few are.
    if isinstance(points, np.ndarray):
        points = points - np.median(points.astype(np.float64, copy=False), axis=0)
    else:
        points = _near_zero(points)
    return np.asarray(rbf_kernel(points, gamma=gamma))


def _near_zero(points: SparseMatrix) -> SparseMatrix:
    """Center the features without implicit zeros; only these can be far from zero."""
    n_points, n_features = points.shape
    is_full = np.bincount(points.indices, minlength=n_features) == n_points
    if not is_full.any():
        return points
    offset = np.zeros(n_features)
    offset[is_full] = np.median(points[:, np.flatnonzero(is_full)].toarray(), axis=0)
    moved = points.copy()
    moved.data -= offset[points.indices]
    return moved


def _pieces(graph: Graph) -> tuple[int, IndexArray]:
    """Return the number of connected components, and the component of each node."""
    if not sparse.issparse(graph) and graph.min() > 0:
        return 1, np.zeros(len(graph), dtype=np.intp)
    n_pieces, piece_of = connected_components(graph, directed=False)
    return int(n_pieces), piece_of.astype(np.intp)


def _part(graph: Graph, nodes: IndexArray) -> Graph:
    if len(nodes) == graph.shape[0]:
        return graph
    return graph[nodes][:, nodes]


def _without_loops(graph: Graph) -> Graph:
    """Remove the edges from nodes to themselves."""
    if sparse.issparse(graph):
        return sparse.csr_array(graph - sparse.diags_array(graph.diagonal()))
    without = np.array(graph, dtype=np.float64)
    np.fill_diagonal(without, 0.0)
    return without


def _degrees(graph: Graph) -> FloatArray:
    return np.asarray(graph.sum(axis=1)).ravel()


def _eigenvectors(
    graph: Graph, n_vectors: int, rng: np.random.RandomState
) -> tuple[FloatArray, FloatArray]:
    """Return eigenvalues of a connected graph, and columns D^(-1/2) x of eigenvectors x."""
    n_nodes = graph.shape[0]
    if n_nodes <= max(_MOST_NODES_SOLVED, 4 * n_vectors):
        return _all_eigenvectors(graph, min(n_vectors, n_nodes))
    # Imported late, since this takes longer than importing the rest of the package.
    from sklearn.manifold import spectral_embedding

    vectors = spectral_embedding(graph, n_components=n_vectors, random_state=rng, drop_first=False)
    return _rayleigh_quotients(graph, vectors), vectors


def _all_eigenvectors(graph: Graph, n_vectors: int) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues and eigenvectors of `spectral_embedding` for a small piece."""
    dense = np.asarray(_without_loops(graph.toarray() if sparse.issparse(graph) else graph))
    if len(dense) == 1:
        return np.zeros(1), np.ones((1, 1))
    roots = np.sqrt(_degrees(dense))
    laplacian = np.eye(len(dense)) - dense / roots[:, None] / roots
    values, vectors = linalg.eigh(laplacian, subset_by_index=[0, n_vectors - 1])
    return values, vectors / roots[:, None]


def _rayleigh_quotients(graph: Graph, vectors: FloatArray) -> FloatArray:
    """Return u^T (D - A) u / u^T D u of each column u."""
    affinities = _without_loops(graph)
    degrees = _degrees(affinities)
    squares = degrees @ vectors**2
    return np.asarray(1 - np.sum(vectors * (affinities @ vectors), axis=0) / squares)


def _one_axis_each(graph: Graph, piece_of: IndexArray) -> SparseMatrix:
    """Return the constant vector of each piece: one over the root of the sum of its degrees."""
    degrees = _degrees(_without_loops(graph))
    volumes = np.bincount(piece_of, weights=degrees)
    # A piece of one node has no edges.
    heights = 1 / np.sqrt(np.where(volumes > 0, volumes, 1.0))
    row_starts = np.arange(len(piece_of) + 1)
    return sparse.csr_array(
        (heights[piece_of], piece_of, row_starts), shape=(len(piece_of), len(volumes))
    )


def _with_rows_of_length_one(embedding: FloatArray | SparseMatrix) -> FloatArray | SparseMatrix:
    if sparse.issparse(embedding):
        return sparse.csr_array((np.ones(embedding.nnz), embedding.indices, embedding.indptr))
    # Pieces that hardly hang together have eigenvectors whose squares leave the range.
    _, exponents = np.frexp(np.abs(embedding).max(axis=1, keepdims=True))
    scaled = np.ldexp(embedding, -exponents)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return np.asarray(scaled / np.where(lengths > 0, lengths, 1.0))
