"""The method of moments for a mixture of spherical Gaussians (Hsu & Kakade 2013).

Let x = mu_h + sigma e, where component h has the share w_h and e is standard normal. About the mean
m of x, with delta_h = mu_h - m,

    Cov x = sum_h w_h delta_h delta_h^T + sigma^2 I,
    E[(x - m)^(3)] = sum_h w_h delta_h^(3),

where (3) is the threefold tensor product; symmetric noise adds nothing to third moments about the
mean. The first sum has rank at most k - 1, so all other eigenvalues of the covariance are sigma^2.

Hsu and Kakade need linearly independent means, which depends on the origin. Here the origin is the
mean, and every point has an additional coordinate of one, so the means only need to be affinely
independent, like the corners of a simplex. With U S U^T for the first sum and
z = S^(-1/2) U^T (x - m), the vectors

    u_h = sqrt(w_h) (1, S^(-1/2) U^T delta_h)

are orthonormal in k dimensions, and the third moments of (1, z) are the tensor
sum_h u_h^(3) / sqrt(w_h). Its components give shares and means.

If component h has the variance sigma_h^2, sigma^2 above is sum_h w_h sigma_h^2, and the third
moments of z have the further terms c B + B c + c B (symmetrised), where B is the covariance of unit
noise in z and

    c = sum_h w_h sigma_h^2 S^(-1/2) U^T delta_h = E[z r],

with r the mean square of x - m along the axes across U, to which the means add nothing. Hsu and
Kakade (section 2.2) take one such axis; here r is the mean over all of them. Without these terms
u_h are again orthonormal, and so sigma_h^2 = u_h (sigma^2, c) / sqrt(w_h).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from numbers import Integral
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.stats import chi2
from sklearn.utils._param_validation import Interval, validate_parameter_constraints

from powermeans.errors import warn_caller
from powermeans.mathematics.principal_axes import PrincipalAxes, principal_axes
from powermeans.methods.documented import one_of
from powermeans.points.needs import FitNeeds, Needs
from powermeans.points.opening import MatrixLike, admit_array
from powermeans.system.containers import like_given
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import AnyMatrix, FloatArray, Matrix


class MomentEstimates(NamedTuple):
    """The mixture of spherical Gaussians that `moment_estimates` returns.

    Attributes
    ----------
    means : ndarray of shape (n_clusters, n_features)
        Means of the components, in falling order of their shares, in the dtype of the points.
    shares : ndarray of shape (n_clusters,)
        Positive; they add up to one.
    variance : float or ndarray of shape (n_clusters,)
        Variance of each feature within a component: one for all, or one for each.

    See Also
    --------
    moment_estimates : Returns one.

    Examples
    --------
    >>> from powermeans.methods import MomentEstimates
    >>> MomentEstimates(means=[[0.0], [4.0]], shares=[0.6, 0.4], variance=1.0).shares
    [0.6, 0.4]
    """

    means: Matrix
    shares: FloatArray
    variance: float | FloatArray


def moment_estimates(
    X: MatrixLike,
    n_clusters: int,
    *,
    covariance_type: Literal["tied_spherical", "spherical"] = "tied_spherical",
    sample_weight: ArrayLike | None = None,
) -> MomentEstimates:
    """Estimate means, shares and variance of a mixture of spherical Gaussians from moments.

    The first three moments of the points determine the mixture if each component has the same
    variance in every direction and the k means are the corners of a simplex (no three on a line, no
    four in a plane, ...). The moments are estimated and decomposed; there is no start to choose and
    no local optimum. Mean and covariance of the result are exactly those of the points, as far as
    the model permits.

    Errors fall with the root of the number of points even if clusters overlap, where k-means is
    biased. But third moments are noisy: many components, small shares or means near a common plane
    need very many points. Use it if clusters overlap and there are plenty of points, or to start
    `PowerKMeans` or a mixture. If clusters are separated or not spherical, use `PowerKMeans`.

    Parameters
    ----------
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        The points.
    n_clusters : int
        Number k of components, at most n_features.
    covariance_type : {"tied_spherical", "spherical"}, default="tied_spherical"
        Whether all components share one variance, or each has its own. With a shared one the
        estimates are less noisy; a warning says if the moments contradict it.
    sample_weight : array-like of shape (n_samples,), optional
        Nonnegative. A weight of three counts like three copies of the point.

    Returns
    -------
    MomentEstimates
        Means, shares and variance.

    Raises
    ------
    ValueError
        If there are more components than features, or the moments are those of fewer components:
        too few distinct points, or means in too few dimensions.

    See Also
    --------
    SphericalMixture : Fits the same model by maximum likelihood.
    PowerKMeans : Starts from the means if they are its `init`.

    References
    ----------
    D. Hsu, S. M. Kakade: Learning mixtures of spherical Gaussians: moment methods and spectral
    decompositions. Innovations in Theoretical Computer Science, 2013. arXiv:1206.5766.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.methods import moment_estimates
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.choice(2, size=20_000, p=[0.3, 0.7])
    >>> X = np.array([[0.0, 0.0], [2.0, 1.0]])[labels] + rng.normal(size=(20_000, 2))
    >>> means, shares, variance = moment_estimates(X, n_clusters=2)
    >>> bool(np.abs(means - [[2.0, 1.0], [0.0, 0.0]]).max() < 0.3)
    True
    >>> bool(np.abs(shares - [0.7, 0.3]).max() < 0.1)
    True

    Components of the standard deviations 0.5 and 1.5:

    >>> X = np.array([[0.0, 0.0], [3.0, 0.0]])[labels]
    >>> X += np.array([0.5, 1.5])[labels, None] * rng.normal(size=(20_000, 2))
    >>> found = moment_estimates(X, n_clusters=2, covariance_type="spherical")
    >>> np.sqrt(found.variance).round(1)
    array([1.5, 0.5])
    """
    validate_parameter_constraints(
        {
            "n_clusters": [Interval(Integral, 1, None, closed="left")],
            "covariance_type": [one_of({"tied_spherical", "spherical"})],
        },
        {"n_clusters": n_clusters, "covariance_type": covariance_type},
        caller_name="moment_estimates",
    )
    of_fit = FitNeeds(n_points=n_clusters, must_differ=True)
    needs = Needs(name="moment_estimates", fit=of_fit)
    data = admit_array(X, sample_weight, needs)
    if n_clusters > (n_features := data.points.shape[1]):
        raise ValueError(
            f"n_clusters={n_clusters} is more than the {n_features} features of X: the method "
            f"of moments needs as many features, so pass n_clusters of at most {n_features}, or "
            "use PowerKMeans"
        )
    found = principal_axes(data.points, data.weights, n_clusters - 1)
    between, within = _variances(found, n_clusters)
    scales = np.sqrt(between) * found.total_deviation
    with blas_on_one_thread():
        third = third_moments(data.points, data.weights, found, scales)
        noise, errors = _noise_moments(data.points, data.weights, found, scales, within)
    if covariance_type == "spherical":
        third -= _noise_in_third_moments(noise, between)
    elif _p_value(noise, errors) < 1e-6:
        _warn_of_unequal_variances(n_clusters)
    with blas_on_one_thread():
        components = orthonormal_components(_with_ones(third))
    steps, shares = _steps_and_shares(components)
    means = found.mean + (steps * scales) @ found.axes
    variance: float | FloatArray = within
    if covariance_type == "spherical":
        variance = np.maximum(within + steps @ noise, 0.0)
    total = found.total_deviation**2
    of_dtype = like_given(X, means.astype(data.points.dtype), of="centers")
    return MomentEstimates(of_dtype, shares, variance * total)


def _warn_of_unequal_variances(n_clusters: int) -> None:
    warn_caller(
        f"the moments of X contradict n_clusters={n_clusters} spherical components of one shared "
        "variance, so the estimates are biased: pass "
        'covariance_type="spherical", or use PowerKMeans if clusters are not spherical',
        UserWarning,
    )


def _variances(found: PrincipalAxes, n_clusters: int) -> tuple[FloatArray, float]:
    """Return the variances of the means along the axes and within, as shares of the total."""
    # The variance within is the mean of the other eigenvalues of the covariance. In the limit all
    # of these are equal, but the least eigenvalue of a sample is too small.
    total = found.total_deviation
    along = np.square(found.deviations / total) if total > 0 else np.zeros(n_clusters - 1)
    n_others = len(found.mean) - (n_clusters - 1)
    within = max(0.0, 1.0 - float(along.sum())) / n_others if total > 0 else 0.0
    between = along - within
    is_above_rounding = between > 1e-12
    if not is_above_rounding.all():
        raise ValueError(
            f"n_clusters={n_clusters}, but the means of X vary along no more than "
            f"{np.count_nonzero(is_above_rounding)} axes: the method of moments needs "
            "one axis for each component but one, so pass fewer clusters, or use PowerKMeans"
        )
    return between, within


def third_moments(
    points: AnyMatrix,
    sample_weight: FloatArray | None,
    found: PrincipalAxes,
    scales: FloatArray,
) -> FloatArray:
    """Return E[z z z], where z is x - mean along the axes, divided by the scales."""
    n_axes, total = len(scales), 0.0
    moments = np.zeros((n_axes, n_axes * n_axes))
    largest = 1.0 if sample_weight is None else sample_weight.max()
    for weights, deviations in _deviations(points, sample_weight, found):
        z, shares = deviations @ found.axes.T / scales, weights / largest
        pairs = (z[:, :, None] * z[:, None, :]).reshape(len(z), n_axes * n_axes)
        moments += (shares[:, None] * z).T @ pairs
        total += float(shares.sum())
    return np.asarray(moments / total).reshape(n_axes, n_axes, n_axes)


def _noise_moments(
    points: AnyMatrix,
    sample_weight: FloatArray | None,
    found: PrincipalAxes,
    scales: FloatArray,
    within: float,
) -> tuple[FloatArray, FloatArray]:
    """Return how the noise goes with the means, c = E[z r], and standard errors if c is zero.

    r is the mean square across the axes, as a share of the total variance. If all components have
    the same variance, c is zero.
    """
    n_others = len(found.mean) - len(scales)
    unit = found.total_deviation or 1.0
    sums, squares, weight = np.zeros(len(scales)), np.zeros(len(scales)), 0.0
    for weights, deviations in _deviations(points, sample_weight, found):
        along = deviations @ found.axes.T
        across = (deviations - along @ found.axes) / unit
        r = np.einsum("if,if->i", across, across) / n_others - within
        terms = along / scales * r[:, None]
        sums += weights @ terms
        squares += weights @ np.square(terms)
        weight += float(weights.sum())
    return sums / weight, np.sqrt(squares) / weight


def _noise_in_third_moments(noise: FloatArray, between: FloatArray) -> FloatArray:
    """Return c_a B_bd + c_b B_ad + c_d B_ab, where B is diagonal, 1 / between."""
    product = noise[:, None, None] * np.diag(1 / between)
    return np.asarray(product + product.transpose(1, 0, 2) + product.transpose(1, 2, 0))


def _p_value(noise: FloatArray, errors: FloatArray) -> float:
    """Return the probability that chance alone moves c as far from zero."""
    if not len(noise) or not errors.all():
        return 1.0
    return float(chi2.sf(np.sum(np.square(noise / errors)), len(noise)))


def _deviations(
    points: AnyMatrix, sample_weight: FloatArray | None, found: PrincipalAxes
) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the weights of some points at a time, and how far they are from the mean."""
    n_points, n_axes = points.shape[0], len(found.axes)
    weights = np.ones(n_points) if sample_weight is None else sample_weight
    step = max(1, 2**18 // max(n_axes * n_axes, points.shape[1]))
    for start in range(0, n_points, step):
        rows = slice(start, start + step)
        block = points[rows].toarray() if sparse.issparse(points) else points[rows]
        yield weights[rows], block - found.mean


def _with_ones(third: FloatArray) -> FloatArray:
    """Return the third moments of (1, z), where z has mean zero and second moments I."""
    n_axes = len(third)
    moments = np.zeros((n_axes + 1,) * 3)
    moments[1:, 1:, 1:] = third
    moments[0, 0, 0] = 1.0
    for axis in range(1, n_axes + 1):
        moments[0, axis, axis] = moments[axis, 0, axis] = moments[axis, axis, 0] = 1.0
    return moments


def orthonormal_components(tensor: FloatArray) -> FloatArray:
    """Return orthonormal rows u_h such that a tensor is the sum of multiples of u_h u_h u_h.

    The u_h are eigenvectors of each slice. With noise no vectors diagonalize all slices; these
    leave the least sum of squares off the diagonals. Jacobi rotations of two coordinates at a time
    (Cardoso & Souloumiac 1996) start at the eigenvectors of a random combination of slices.
    """
    mixture = np.tensordot(np.random.default_rng(0).standard_normal(len(tensor)), tensor, axes=1)
    vectors: FloatArray = np.linalg.eigh(mixture)[1].T
    slices = vectors @ tensor @ vectors.T
    for _ in range(200):
        largest = 0.0
        for p, q in itertools.combinations(range(len(tensor)), 2):
            angle = _best_angle(slices[:, p, p] - slices[:, q, q], 2 * slices[:, p, q])
            largest = max(largest, abs(angle))
            _rotate(vectors, slices, p, q, angle)
        if largest < 1e-10:  # radians
            break
    return vectors


def _best_angle(differences: FloatArray, twice_beside: FloatArray) -> float:
    """Return the rotation of two coordinates that leaves the least squares off the diagonal."""
    on, beside = differences @ differences, twice_beside @ twice_beside
    across = 2 * float(differences @ twice_beside)
    return 0.25 * math.atan2(across, float(on - beside))


def _rotate(vectors: FloatArray, slices: FloatArray, p: int, q: int, angle: float) -> None:
    """Rotate the vectors p and q in their plane, and the slices likewise."""
    turn = np.array([[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]])
    pair = [p, q]
    vectors[pair] = turn @ vectors[pair]
    slices[:, pair, :] = turn @ slices[:, pair, :]
    slices[:, :, pair] = slices[:, :, pair] @ turn.T


def _steps_and_shares(components: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the means relative to the center, in scales along the axes, and their shares."""
    roots = components[:, 0]
    if np.abs(roots).min() < 1e-7:
        raise ValueError(
            f"n_clusters={len(roots)}, but the third moments of X are those of fewer components: "
            "pass fewer clusters, or use PowerKMeans"
        )
    order = np.argsort(-np.abs(roots), kind="stable")
    return components[order, 1:] / roots[order, None], np.square(roots[order])
