"""Runs that learn the covariance that clusters share, for Mahalanobis distances."""

from __future__ import annotations

import abc
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from scipy.spatial.distance import cdist

from powermeans.divergences.chunks import as_float64, dense_chunks
from powermeans.divergences.mahalanobis import FewAxes, Mahalanobis
from powermeans.engine.anneal import Result, anneal
from powermeans.engine.fit import Fit
from powermeans.engine.updates import RelocateEmpty, Sweep, Update
from powermeans.errors import Argument, ArgumentError
from powermeans.mathematics.rules import rule_at
from powermeans.mathematics.sums import Sums
from powermeans.points.bregman import BregmanPoints
from powermeans.points.checks.points import Admitted
from powermeans.points.needs import Measure, Needs
from powermeans.points.opening import given_by, rows_for
from powermeans.points.protocol import Points
from powermeans.system.free_memory import free_memory
from powermeans.system.threads import blas_on_one_thread
from powermeans.types import FloatArray

# The scatter within clusters is summed anew if it is less than this share of the total, since a
# difference loses digits.
_LEAST_LEFT = 1e-6
# The least eigenvalue of a covariance, as a share of the largest.
_LEAST_EIGENVALUE = 1e-6
# A mean may differ by this share from values that are all the same.
_ROUNDING_OF_MEAN = 32 * float(np.finfo(np.float64).eps)
# A covariance is learned anew while that lowers the inertia by more than this share.
_LEAST_GAIN = 1e-6
# Squares of larger numbers, and of the inverse of smaller ones, are too near the range of float64.
_LARGEST = 1e60
# Matrices of features by features that are held at once.
_MATRICES_OF_MANY_POINTS, _MATRICES_OF_FEW_POINTS = 8, 3


class LearningPoints(BregmanPoints):
    """Points, by the covariance of all of them at first, and what those of clusters come from."""

    def __init__(
        self, points: Any, weights: FloatArray | None, scatter: Scatter, n_threads: int | None
    ) -> None:
        started = time.monotonic()
        of_all = scatter.divergence_of_all()
        super().__init__(points, weights, divergence=of_all, n_threads=n_threads)
        self.scatter = scatter
        self.seconds_to_learn = time.monotonic() - started

    @property
    def metric(self) -> Mahalanobis:
        """The distance by the present covariance."""
        return cast("Mahalanobis", self.divergence)


# BLAS that shares busy processors decomposes a covariance ten times as long with several threads.
@blas_on_one_thread()
def open_learning(points: Any, weights: FloatArray | None, measure: Measure) -> LearningPoints:
    """Return rows that learn the covariance of clusters."""
    rows = rows_for(replace(measure, opener=None), points, weights)
    rows.given = given_by(Admitted(points, weights, math.nan), measure)
    scatter = scatter_of(rows)
    return LearningPoints(points, weights, scatter, measure.n_threads)


def needs_of_learning(needs: Needs) -> Needs:
    """Return what a fit asks of its points that learns the covariance."""
    reason = f'divergence="mahalanobis" {Mahalanobis().needs_all_points}'
    return (
        needs.measured(takes_narrow=False, opener=open_learning)
        .refusing(parts=reason, tensors=reason)
        .of_a_fit(warns_of_scales=False, leaves_out_columns=False)
    )


def learned_divergence(model: Any) -> Mahalanobis:
    """Return the distance that a fitted estimator has learned."""
    if not hasattr(model, "covariance_"):
        raise ValueError(
            'divergence="mahalanobis" learns its covariance in fit: fit first, or pass '
            "powermeans.divergences.Mahalanobis(covariance)"
        )
    known: Mahalanobis | None = getattr(model, "divergence_", None)  # not in a saved model
    if known is not None and known.covariance is model.covariance_:
        return known
    return Mahalanobis(model.covariance_)


def learned_attributes(rows: Points) -> dict[str, Any]:
    """Return what a fit has learned besides centers; nothing where the distance was given."""
    if not isinstance(rows, LearningPoints):
        return {}
    attributes: dict[str, Any] = {"covariance_": rows.metric.covariance}
    return attributes | ({"divergence_": rows.metric} if isinstance(rows.metric, FewAxes) else {})


@blas_on_one_thread()
def run_with_covariance(
    points: Points,
    fit: Fit,
    run_in_space: Callable[[Points, Fit], Result],
    most_learned: int,
) -> Result:
    """Run with the covariance of all points, then with that within the clusters while it helps.

    Covariances have determinant one, which makes their inertias comparable.
    """
    rows = cast("LearningPoints", points)
    rows.use(best_divergence := cast("Mahalanobis", rows.opened_with))
    if most_learned == 0:
        return run_in_space(rows, fit)
    learning = replace(fit.stages[-1], update=LearnCovariance(rows, fit.seconds_left))
    best: Result | None = None
    least = math.inf
    for _ in range(most_learned):
        result = run_in_space(rows, fit)
        if not result.was_stopped:
            result = anneal(rows, result.centers, [learning], fit).after(result)
        was_stopped = result.was_stopped
        if was_stopped and best is None:  # with nothing to compare it with
            return result
        _, inertia = rows.assign(result.centers)
        is_better = inertia < least * (1 - _LEAST_GAIN)
        if is_better:
            best, least = result, inertia
            best_divergence = rows.metric
        if was_stopped or not is_better:
            break
    assert best is not None, "the first inertia is less than infinity"
    rows.use(best_divergence)
    fit.history.keep(best.centers)
    return replace(best, was_stopped=was_stopped)


class Scatter(abc.ABC):
    """Learn the covariance of all points, and those within clusters."""

    __slots__ = ()
    data: Points

    @abc.abstractmethod
    def divergence_of_all(self) -> Mahalanobis:
        """Return the divergence of the scatter of all points about their mean."""

    @abc.abstractmethod
    def divergence_within(self, sweep: Sweep, sums: Sums) -> Mahalanobis:
        """Return the divergence of the scatter about the centers of a hard sweep."""

    @abc.abstractmethod
    def divergence_of(self, deviations: Iterable[FloatArray], former: Mahalanobis) -> Mahalanobis:
        """Return the divergence of the sum of D^T D over parts D of the deviations.

        It is the former one if that measures them as shorter: a covariance that has to be kept from
        being singular is not the best.
        """


def scatter_of(data: Points) -> Scatter:
    """Return the scatter of the points.

    Raise if they leave the range of their squares, or no matrix of the features fits into memory.
    """
    _check_size(data.given.array)
    n_points, n_features = data.given.array.shape
    is_few = 2 * n_points <= n_features
    n_matrices = _MATRICES_OF_FEW_POINTS if is_few else _MATRICES_OF_MANY_POINTS
    n_bytes, free = 8 * n_features**2 * n_matrices, free_memory()
    if free is not None and n_bytes > free:
        raise ArgumentError(
            f"learns a covariance of {n_features} x {n_features} features, which needs "
            f"{n_bytes / 1e9:.1f} GB of memory, and {free / 1e9:.1f} GB are free",
            "pass fewer features, such as the leading principal components, or ",
            Argument("divergence", "squared_euclidean"),
            " with scaled columns",
            argument="divergence",
            value="mahalanobis",
        )
    return FewPoints.of(data) if is_few else ManyPoints.of(data)


def _check_size(points: Any) -> None:
    """Raise where squares in units of a covariance may overflow or vanish."""
    largest = float(np.abs(points).max())
    if largest > 0 and not 1 / _LARGEST <= largest <= _LARGEST:
        raise ValueError(
            f"X has numbers up to {largest:.0e}, and a learned covariance takes those from "
            f"{1 / _LARGEST:.0e} to {_LARGEST:.0e}: multiply X by {1 / largest:.0e}"
        )


@dataclass(frozen=True, slots=True)
class FewPoints(Scatter):
    """Deviations of fewer points than features, whose products are never formed."""

    data: Points
    mean: FloatArray
    scales: FloatArray  # as in `ManyPoints`

    @classmethod
    def of(cls, data: Points) -> FewPoints:
        """Return the deviations of the points from their weighted mean."""
        mean = data.mean()
        squares = np.square(weighted_deviations(data, mean)).sum(axis=0)
        return cls(data, mean, scales_from(squares, mean, data.total_weight))

    def divergence_of_all(self) -> Mahalanobis:
        """Return the divergence of the deviations from the mean."""
        return unit_covariance_of_few(weighted_deviations(self.data, self.mean), self.scales)

    def divergence_within(self, sweep: Sweep, sums: Sums) -> Mahalanobis:
        """Return the divergence of the deviations from the new centers."""
        labels, _ = sweep.rows.assign(sweep.centers)
        centers = sums.centers(fallback=sweep.centers)[labels]
        return unit_covariance_of_few(weighted_deviations(self.data, centers), self.scales)

    def divergence_of(self, deviations: Iterable[FloatArray], former: Mahalanobis) -> Mahalanobis:
        """Return the divergence of all parts together."""
        together = np.concatenate(list(deviations))
        learned = unit_covariance_of_few(together, self.scales)
        return min(former, learned, key=lambda metric: np.sum(metric.gradient(together) * together))


def scales_from(squares: FloatArray, mean: FloatArray, total_weight: float) -> FloatArray:
    """Return the roots of sums of squares, and their geometric mean where a feature is constant.

    A mean that is rounded leaves such a feature some squares.
    """
    varies = squares > total_weight * np.square(_ROUNDING_OF_MEAN * mean)
    usual = np.exp(np.mean(np.log(squares[varies]))) if varies.any() else 1.0
    return np.sqrt(np.where(varies, squares, usual))


def weighted_deviations(data: Points, centers: FloatArray) -> FloatArray:
    """Return the points less their centers, times the roots of their weights."""
    deviations = as_float64(data.given.array) - centers
    weights = data.given.weights
    return deviations if weights is None else np.sqrt(weights)[:, None] * deviations


@dataclass(frozen=True, slots=True)
class ManyPoints(Scatter):
    """Weighted products of deviations from the mean, summed over all points, and the mean."""

    data: Points
    total: FloatArray
    mean: FloatArray

    @classmethod
    def of(cls, data: Points) -> ManyPoints:
        """Return the scatter of the points about their weighted mean."""
        mean = data.mean()
        total = np.zeros((len(mean), len(mean)))
        for rows, chunk in dense_chunks(data.given.array):
            deviations = chunk - mean
            weights = data.given.weights
            weighted = deviations if weights is None else deviations * weights[rows, None]
            total += weighted.T @ deviations
        return cls(data, total, mean)

    @property
    def scales(self) -> FloatArray:
        """Return the root of the total along each feature."""
        return scales_from(np.diag(self.total), self.mean, self.data.total_weight)

    def divergence_of_all(self) -> Mahalanobis:
        """Return the divergence of the total."""
        return Mahalanobis(unit_covariance(self.total, self.scales))

    def divergence_within(self, sweep: Sweep, sums: Sums) -> Mahalanobis:
        """Return the divergence of the total less the scatter of the centers."""
        within = self._within(sums)
        if self._is_lost_in(within):
            within = self._within_directly(sweep, sums.centers(fallback=sweep.centers))
        return Mahalanobis(unit_covariance(within, self.scales))

    def divergence_of(self, deviations: Iterable[FloatArray], former: Mahalanobis) -> Mahalanobis:
        """Return the divergence of the products, summed."""
        within = np.zeros_like(self.total)
        for part in deviations:
            within += part.T @ part
        learned = Mahalanobis(unit_covariance(within, self.scales))
        return min(former, learned, key=lambda metric: np.trace(metric.gradient(within)))

    def _within(self, sums: Sums) -> FloatArray:
        has_points = sums.weights > 0
        weights = sums.weights[has_points, None]
        centers = sums.points[has_points] / weights - self.mean
        return np.asarray(self.total - (weights * centers).T @ centers)

    def _is_lost_in(self, within: FloatArray) -> bool:
        """Return whether so little of the total is left that digits are lost."""
        left = np.diag(within) / self.scales**2
        return bool(np.any((left < _LEAST_LEFT) & (np.diag(self.total) > 0)))

    def _within_directly(self, sweep: Sweep, centers: FloatArray) -> FloatArray:
        """Return the scatter of the points about the new centers of their clusters."""
        labels, _ = sweep.rows.assign(sweep.centers)
        within, weights = np.zeros_like(self.total), self.data.given.weights
        for part, chunk in dense_chunks(self.data.given.array):
            deviations = chunk - centers[labels[part]]
            weight = 1.0 if weights is None else weights[part, None]
            within += (weight * deviations).T @ deviations
        return within


def unit_covariance(scatter: FloatArray, scales: FloatArray) -> FloatArray:
    """Return the covariance of this shape with determinant one, kept from being singular.

    Eigenvalues are compared in units of these scales of the features.
    """
    correlation = scatter / np.outer(scales, scales)
    correlation = (correlation + correlation.T) / 2
    of_unit = _divided_by_root_of_determinant(correlation)
    if of_unit is None:
        of_unit = _kept_from_being_singular(correlation)
    relative = scales / np.exp(np.mean(np.log(scales)))
    covariance = of_unit * np.outer(relative, relative)
    return np.asarray((covariance + covariance.T) / 2)


def _divided_by_root_of_determinant(correlation: FloatArray) -> FloatArray | None:
    """Return the matrix with determinant one; None where an eigenvalue may be below the least.

    Two Cholesky factors take a tenth of the time of the eigenvalues. No eigenvalue exceeds the
    trace.
    """
    least = _LEAST_EIGENVALUE * max(float(np.trace(correlation)), np.finfo(np.float64).tiny)
    try:
        np.linalg.cholesky(correlation - least * np.eye(len(correlation)))
        root = np.linalg.cholesky(correlation)
    except np.linalg.LinAlgError:
        return None
    return np.asarray(correlation / np.exp(2 * np.mean(np.log(np.diag(root)))))


def _kept_from_being_singular(correlation: FloatArray) -> FloatArray:
    """Return the matrix with small eigenvalues raised to the least, and with determinant one."""
    values, vectors = np.linalg.eigh(correlation)
    values = np.maximum(values, 0.0)  # those below are rounding
    largest = max(float(values[-1]), float(np.finfo(np.float64).tiny))
    values = np.maximum(values / largest, _LEAST_EIGENVALUE)
    values /= np.exp(np.mean(np.log(values)))
    return np.asarray((vectors * values) @ vectors.T)


def unit_covariance_of_few(deviations: FloatArray, scales: FloatArray) -> Mahalanobis:
    """Return the divergence of `unit_covariance` from fewer deviations than features.

    With B the deviations in units of the scales and s, V from B = U diag(s) V^T, the products B^T B
    have the eigenvalues s^2 along V and zero across, which are raised to the least.
    """
    n_across = deviations.shape[1] - len(deviations)
    _, lengths, vectors = np.linalg.svd(deviations / scales, full_matrices=False)
    largest = max(float(lengths[0] ** 2), float(np.finfo(np.float64).tiny))
    values = np.maximum(lengths**2 / largest, _LEAST_EIGENVALUE)
    log_determinant = float(np.log(values).sum()) + n_across * math.log(_LEAST_EIGENVALUE)
    unit = math.exp(log_determinant / deviations.shape[1])
    relative = scales / np.exp(np.mean(np.log(scales)))
    return FewAxes(relative, vectors.T, values / unit, _LEAST_EIGENVALUE / unit)


@dataclass(frozen=True, slots=True)
class LearnCovariance(Update):
    """After each hard sweep, measure distances by the scatter within the clusters.

    With its determinant held at one, this scatter is the best covariance for these clusters, so
    sweeps lower its determinant (Friedman & Rubin 1967). A covariance that would come too late is
    not learned.
    """

    rows: LearningPoints
    seconds_left: Callable[[], float]

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return sums without empty clusters, and give the rows a new covariance."""
        sums = RelocateEmpty().after(sweep, sums)
        if self.rows.seconds_to_learn <= self.seconds_left():
            self.rows.use(self.rows.scatter.divergence_within(sweep, sums))
        return sums


@dataclass(frozen=True, slots=True)
class LearnWhileAnnealing(Update):
    """After each soft sweep, measure distances by the weighted scatter about the new centers.

    The majorization of Xu & Lange (2019, equation 9) is sum_ij w_ij (x_i - theta_j)^T Omega^-1
    (x_i - theta_j), least at the weighted means and, among matrices of one determinant, at the
    weighted scatter about them. So no sweep raises the objective at its power.
    """

    rows: LearningPoints
    seconds_left: Callable[[], float]
    inner: Update

    def before(self, sweep: Sweep) -> FloatArray:
        """Do what the inner update does."""
        return self.inner.before(sweep)

    def after(self, sweep: Sweep, sums: Sums) -> Sums:
        """Return the sums of the inner update, and give the rows a new covariance."""
        sums = self.inner.after(sweep, sums)
        if self.rows.seconds_to_learn <= self.seconds_left():
            scatter, metric = self.rows.scatter, self.rows.metric
            deviations = soft_deviations(scatter.data, metric, sweep, sums)
            self.rows.use(scatter.divergence_of(deviations, metric))
        return sums


def soft_deviations(
    data: Points, metric: Mahalanobis, sweep: Sweep, sums: Sums
) -> Iterator[FloatArray]:
    """Yield parts D whose products D^T D add up to the weighted scatter about the new centers.

    With a_i the weights of a point over all centers and m_i the mean of the centers by them,
    sum_ij w_ij (x_i - theta_j)(x_i - theta_j)^T is sum_i a_i (x_i - m_i)(x_i - m_i)^T plus
    Theta^T L Theta, L the Laplacian of the graph with edges sum_i w_ij w_il / a_i. Nothing cancels.
    """
    centers, rule = sums.centers(fallback=sweep.centers), sweep.rule or rule_at(sweep.power)
    shared, whitened = np.zeros((len(centers), len(centers))), metric.whitened(sweep.centers)
    for part, chunk in dense_chunks(data.given.array, max(centers.shape)):
        sq_dist = cdist(metric.whitened(chunk), whitened, "sqeuclidean")
        weights, _ = rule.weigh(sq_dist)
        totals = weights.sum(axis=1, keepdims=True)
        shares = weights / totals
        counts = 1.0 if data.given.weights is None else data.given.weights[part, None]
        yield np.sqrt(counts * totals) * (chunk - shares @ centers)
        shared += shares.T @ (counts * weights)
    np.fill_diagonal(shared, 0.0)
    values, vectors = np.linalg.eigh(np.diag(shared.sum(axis=1)) - (shared + shared.T) / 2)
    yield np.sqrt(np.maximum(values, 0.0))[:, None] * (vectors.T @ centers)
