"""The power mean, its gradient and the objective of power k-means, in log space.

Equation numbers are those of Xu & Lange, "Power k-Means Clustering", ICML 2019. Throughout, k is
the length of the last axis, s the power, and with y_min the least of the k distances of a point

    a_j = log y_j - log y_min,    S = sum_j exp(s a_j), which lies in [1, k] for s < 0.

Every quantity is a function of a, S and y_min, so no power overflows, nothing has to be clamped,
and multiplying all distances by a constant changes no weight. Arithmetic is in float64, or in long
double where the distances come so.
"""

from __future__ import annotations

import math

import numpy as np

from powermeans.divergences import SquaredEuclidean
from powermeans.mathematics.arguments import checked
from powermeans.system.containers import check_number
from powermeans.types import AnyMatrix, FloatArray


@checked
def log_power_mean(sq_dist: FloatArray, power: float) -> FloatArray:
    """Logarithm of the power mean M_s(y) = ((1/k) sum_j y_j^s)^(1/s) along the last axis.

    The limits of equation (6) are taken exactly: the minimum at s = -inf, the geometric mean at 0
    and the maximum at s = inf.

    Parameters
    ----------
    sq_dist : (..., n_centers)
        Distances, not negative. A zero makes the mean zero at every s <= 0, also with an infinite
        distance; without a zero, an infinite distance makes it infinite at every s >= 0.
    power : float
        Any real number, -inf or inf.

    Returns
    -------
    (...)
        log M_s; -inf where the mean is zero.

    See Also
    --------
    power_mean : The mean itself.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.mathematics.power_mean import log_power_mean
    >>> float(log_power_mean(np.array([np.exp(-2.0), np.exp(4.0)]), 0.0))  # geometric
    1.0
    """
    reference, log_ratio = _reference_and_log_ratio(sq_dist, power)
    with np.errstate(divide="ignore"):
        log_reference: FloatArray = np.log(reference)
    return log_reference + log_ratio


@checked
def power_mean(sq_dist: FloatArray, power: float) -> FloatArray:
    """Power mean M_s along the last axis, from the minimum (s = -inf) to the maximum (s = inf).

    Parameters
    ----------
    sq_dist : (..., n_centers)
        Distances, not negative. The geometric mean of zero and infinity, which has no value, is
        zero here, as the means of all negative powers are.
    power : float
        Any real number, -inf or inf.

    Returns
    -------
    (...)
        M_s, equation (6) at the limits.

    See Also
    --------
    log_power_mean : Its logarithm.
    power_mean_gradient : Its slopes.
    objective : Its sum over points.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from powermeans.mathematics.power_mean import power_mean
    >>> sq_dist = np.array([1.0, 3.0])
    >>> [round(float(power_mean(sq_dist, s)), 6) for s in (math.inf, 1.0, -1.0, -math.inf)]
    [3.0, 2.0, 1.5, 1.0]
    """
    reference, log_ratio = _reference_and_log_ratio(sq_dist, power)
    # The ratio itself can overflow where its product with the reference does not; its root cannot.
    root = np.exp(0.5 * log_ratio)
    return reference * root * root


@checked
def power_mean_gradient(sq_dist: FloatArray, power: float) -> FloatArray:
    """Gradient of the power mean, equation (5): (1/k) y_j^(s-1) ((1/k) sum_l y_l^s)^(1/s - 1).

    By Euler's theorem sum_j y_j dM_s/dy_j = M_s. Where distances are zero it is the limit as they
    go to zero together; for s from 0 to 1 the slope at a zero among other distances is infinite.

    Parameters
    ----------
    sq_dist : (..., n_centers)
        Distances, not negative; infinite ones have the limit of the slope.
    power : float
        Any real number; at -inf the first of the least distances has slope one, at inf the first of
        the largest.

    Returns
    -------
    (..., n_centers)

    See Also
    --------
    power_mean_weights : The same in a unit that depends neither on k nor on the power.
    power_mean_hessian : The second derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.mathematics.power_mean import power_mean_gradient
    >>> power_mean_gradient(np.array([1.0, 3.0]), -1.0)
    array([1.125, 0.125])
    """
    if math.isinf(power):
        return _first_nearest(-sq_dist if power > 0 else sq_dist)
    log_ratio = _log_ratio(sq_dist, _reference(sq_dist, power))
    log_mean_ratio = _log_mean_ratio(log_ratio, power)[..., None]
    exponents = _times(power, log_ratio)
    with np.errstate(over="ignore", invalid="ignore"):
        slopes = np.exp(log_mean_ratio - _log_sum(exponents) + exponents - log_ratio)
    at_zero = math.inf if power < 1 else 0.0
    if power == 1:
        at_zero = 1 / sq_dist.shape[-1]
    slopes = np.where(np.isneginf(log_ratio), at_zero, slopes)
    return np.where(np.isposinf(log_ratio), 0.0, slopes)


@checked
def power_mean_hessian(sq_dist: FloatArray, power: float) -> FloatArray:
    """Second derivatives of the power mean, (1 - s) (g_i g_j / M - [i = j] g_j / y_j).

    g is the gradient. Along a direction v the quadratic form is that of section 2 of the paper,
    and never positive for s <= 1, where M_s is concave. By Euler's theorem H y = 0.

    Parameters
    ----------
    sq_dist : (..., n_centers)
        Distances, positive and finite.
    power : float
        Any real number. At -inf and inf all entries are zero, as they are where no two of the
        least or largest distances are equal.

    Returns
    -------
    (..., n_centers, n_centers)

    See Also
    --------
    power_mean_gradient : The first derivatives.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.mathematics.power_mean import power_mean_hessian
    >>> power_mean_hessian(np.array([1.0, 3.0]), -1.0)
    array([[-0.5625,  0.1875],
           [ 0.1875, -0.0625]])
    """
    if not ((sq_dist > 0) & (sq_dist < math.inf)).all():
        raise ValueError(
            "sq_dist has a distance that is zero, negative or not finite, where the power mean has "
            "no Hessian: pass positive distances"
        )
    n_centers = sq_dist.shape[-1]
    if math.isinf(power):
        return np.zeros((*sq_dist.shape, n_centers))
    slopes = power_mean_gradient(sq_dist, power)
    mean = power_mean(sq_dist, power)[..., None, None]
    hessian = (1 - power) * slopes[..., :, None] * (slopes[..., None, :] / mean)
    diagonal = np.arange(n_centers)
    hessian[..., diagonal, diagonal] = 0.0
    # By H y = 0, without the difference of two nearly equal shares.
    hessian[..., diagonal, diagonal] = -(hessian @ sq_dist[..., None])[..., 0] / sq_dist
    return hessian


@checked
def power_mean_weights(sq_dist: FloatArray, power: float) -> FloatArray:
    """Weights of the majorisation (9): the gradient times k^(1/s), which puts them into [0, 1].

    They are S^(1/s - 1) exp((s - 1) a_j); the factor, common to all points, changes no center. A
    zero distance gives weight one to its center and zero to the others; of several zeros, each of
    z has weight z^(1/s - 1), the limit as they vanish together.

    Parameters
    ----------
    sq_dist : (..., n_centers)
        Distances, not negative.
    power : float
        Negative; at -inf the first of the least distances takes all.

    Returns
    -------
    (..., n_centers)

    See Also
    --------
    power_mean_gradient : The slopes themselves.
    memberships : The weights of a point as shares of their sum.
    weighing : Their sum.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.mathematics.power_mean import power_mean_weights
    >>> power_mean_weights(np.array([1.0, 3.0]), -1.0)  # the gradient over 2
    array([0.5625, 0.0625])
    """
    check_number(power, "power", "[-inf, 0)", "for example power=-3.0")
    if power == -math.inf:
        return _first_nearest(sq_dist)
    log_ratio = _log_ratio_to_least(sq_dist)
    exponents = _times(power, log_ratio)
    log_sum = _log_sum(exponents)
    with np.errstate(over="ignore"):
        return np.exp(log_sum / power - log_sum + exponents - log_ratio)


@checked
def memberships(sq_dist: FloatArray, power: float) -> FloatArray:
    """Membership h_j = y_j^(s-1) / sum_l y_l^(s-1) of a point in each center; they add to one.

    Parameters
    ----------
    sq_dist : (..., n_centers)
        Distances, not negative; zeros share the point equally.
    power : float
        Negative; at -inf the first of the least distances takes all.

    Returns
    -------
    (..., n_centers)

    See Also
    --------
    weighing : How much the point counts in all.
    powermeans.PowerKMeans.memberships : Those of points in fitted centers.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.mathematics.power_mean import memberships
    >>> memberships(np.array([1.0, 3.0]), -1.0)  # as 1 to 1/9
    array([0.9, 0.1])
    """
    check_number(power, "power", "[-inf, 0)", "for example power=-3.0")
    if power == -math.inf:
        return _first_nearest(sq_dist)
    log_ratio = _log_ratio_to_least(sq_dist)
    unscaled = np.exp(_times(power, log_ratio) - log_ratio)
    shares: FloatArray = unscaled / unscaled.sum(axis=-1, keepdims=True)
    return shares


@checked
def weighing(sq_dist: FloatArray, power: float) -> FloatArray:
    """Weighing function alpha = sum_l y_l^(s-1) / (sum_l y_l^s)^(1 - 1/s): how much a point counts.

    The weights of `power_mean_weights` are memberships times weighing.

    Parameters
    ----------
    sq_dist : (..., n_centers)
        Distances, not negative.
    power : float
        Negative; at -inf every point counts one.

    Returns
    -------
    (...)

    See Also
    --------
    memberships : How the point is shared out.
    power_mean_weights : The two together.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.mathematics.power_mean import weighing
    >>> round(float(weighing(np.array([1.0, 3.0]), -1.0)), 6)  # 0.5625 + 0.0625
    0.625
    """
    alpha: FloatArray = power_mean_weights(sq_dist, power).sum(axis=-1)
    return alpha


@checked
def objective(
    points: AnyMatrix,
    centers: FloatArray,
    power: float,
    sample_weight: FloatArray | None = None,
) -> float:
    """Objective f_s of equation (8): the power means of the squared distances, added over points.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR.
    centers : (n_centers, n_features)
    power : float
        -inf, where this is the k-means objective, or any real number.
    sample_weight : (n_points,), optional

    Returns
    -------
    float

    See Also
    --------
    power_mean : What is added up.

    Examples
    --------
    >>> import math
    >>> import numpy as np
    >>> from powermeans.mathematics.power_mean import objective
    >>> points, centers = np.array([[0.0], [1.0], [9.0]]), np.array([[0.0], [9.0]])
    >>> objective(points, centers, -math.inf)  # the sum of squares
    1.0
    """
    total = 0.0
    for rows, sq_dist in SquaredEuclidean().in_chunks(points, centers):
        means = power_mean(sq_dist, power)
        total += float(means.sum() if sample_weight is None else sample_weight[rows] @ means)
    return total


@checked
def hessian_of_k_means(
    points: AnyMatrix, centers: FloatArray, sample_weight: FloatArray | None = None
) -> FloatArray:
    """Return the diagonal of the Hessian of the k-means objective, 2 N_j for each center.

    N_j is the weight of the points nearest to center j, and the entry stands for each feature; all
    others are zero (Bottou & Bengio 1995, with half the objective). So Lloyd's step is Newton's:
    the gradient 2 N_j (w_j - mean_j) over 2 N_j.

    Parameters
    ----------
    points : (n_points, n_features)
        Dense or CSR. A point at equal distances counts for the first of its nearest centers.
    centers : (n_centers, n_features)
    sample_weight : (n_points,), optional

    Returns
    -------
    (n_centers,)

    See Also
    --------
    objective : The objective itself, at power -inf.

    Examples
    --------
    >>> import numpy as np
    >>> from powermeans.mathematics.power_mean import hessian_of_k_means
    >>> hessian_of_k_means(np.array([[0.0], [1.0], [9.0]]), np.array([[0.0], [9.0]]))
    array([4., 2.])
    """
    counts = np.zeros(len(centers))
    for rows, sq_dist in SquaredEuclidean().in_chunks(points, centers):
        nearest = np.argmin(sq_dist, axis=-1)
        weights = None if sample_weight is None else sample_weight[rows]
        counts += np.bincount(nearest, weights, minlength=len(centers))
    return 2 * counts


def _reference_and_log_ratio(sq_dist: FloatArray, power: float) -> tuple[FloatArray, FloatArray]:
    """Return a distance of each point, and the logarithm of M_s over it, or zero if it is zero."""
    reference = _reference(sq_dist, power)
    log_ratio = _log_mean_ratio(_log_ratio(sq_dist, reference), power)
    return reference, np.where((reference == 0) | np.isinf(reference), 0.0, log_ratio)


def _reference(distances: FloatArray, power: float) -> FloatArray:
    """Return the y_j of the largest term y_j^s, so that no sum of ratios to it overflows."""
    reference: FloatArray = (np.min if power < 0 else np.max)(distances, axis=-1)
    if power == 0:
        has_zero = np.min(distances, axis=-1) == 0
        return np.where(has_zero, 0.0, reference)
    return reference


def _log_ratio_to_least(sq_dist: FloatArray) -> FloatArray:
    return _log_ratio(sq_dist, np.min(sq_dist, axis=-1))


def _log_ratio(distances: FloatArray, reference: FloatArray) -> FloatArray:
    """Return the logarithm of y_j over the reference of its point, zero if both are zero.

    The difference of two close logarithms cancels, and s = -1e6 would show it: `log1p` does not.
    """
    base = reference[..., None]
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        far = np.log(distances) - np.log(base)
        close = np.log1p((distances - base) / base)
        is_close = np.abs(distances - base) < 0.5 * base
    return np.where(distances == base, 0.0, np.where(is_close, close, far))


def _log_mean_ratio(log_ratio: FloatArray, power: float) -> FloatArray:
    """Return the logarithm of M_s over the reference, (1/s) log((1/k) sum_j exp(s a_j)).

    For s near zero that mean is near one, and its distance from one gives the logarithm. The result
    is the mean of the a_j plus s/2 times their variance, which vanishes before the s a_j become
    subnormal.
    """
    if math.isinf(power):
        return np.zeros_like(log_ratio[..., 0])
    if abs(power) < 1e-150:  # the geometric mean, to the last bit
        return np.asarray(np.mean(log_ratio, axis=-1))
    exponents = _times(power, log_ratio)
    mean = np.mean(np.exp(exponents), axis=-1)
    is_near_one = mean > 0.5
    mean_less_one = np.where(is_near_one, np.mean(np.expm1(exponents), axis=-1), 0.0)
    with np.errstate(over="ignore"):
        return np.where(is_near_one, np.log1p(mean_less_one), np.log(mean)) / power


def _times(power: float, log_ratio: FloatArray) -> FloatArray:
    """Return the exponents s a_j; they may overflow to -inf, whose exponential is 0."""
    if power == 0:
        return np.zeros_like(log_ratio)
    with np.errstate(over="ignore"):
        exponents: FloatArray = power * log_ratio
    return exponents


def _log_sum(exponents: FloatArray) -> FloatArray:
    """Return log S, with the last axis kept."""
    log_sum: FloatArray = np.log(np.sum(np.exp(exponents), axis=-1, keepdims=True))
    return log_sum


def _first_nearest(distances: FloatArray) -> FloatArray:
    """Return one for the first of the least distances, zero for the others."""
    nearest = np.argmin(distances, axis=-1)[..., None]
    is_nearest = np.arange(distances.shape[-1]) == nearest
    return np.asarray(is_nearest, dtype=distances.dtype)
