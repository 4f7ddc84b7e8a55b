"""Distances, weights and sums of some points at a time, in plain PyTorch.

Distances are affine: y_ij = height(x_i) + lift_j - 2 <x_i, slope_j>, for points less an origin, in
a unit that is a power of two. S and the weights are as in `power_mean`; weights stay logarithms
until the largest of each center is known, so that none leaves the range of float32.
"""

from __future__ import annotations

import math
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from powermeans.rows.torch.placing import blocks
from powermeans.rules import Gaussian, Hard, Harmonic, Power, Rule
from powermeans.types import FloatArray

# With more features, products replace sums of squared differences.
MOST_FEATURES_DIRECT = 16
# A distance below this share of its terms has lost digits, and is computed again.
_CANCELLATION = {torch.float32: 1 / 64, torch.float64: 1 / 1024}
_PAIRS_ENTRIES = 2**22
_LEAST_POWER = -1e30


@dataclass(frozen=True, slots=True)
class View:
    """Look at points less an origin, times a scale, in a dtype."""

    dtype: torch.dtype  # of products: float32 or float64
    wide: torch.dtype  # of sums: float64 where the device has it
    origin: torch.Tensor | None = None  # (n_features,)
    scale: float = 1.0  # a power of two, which rounds nothing

    def of(self, points: torch.Tensor) -> torch.Tensor:
        """Return the points in this view."""
        viewed = points.to(self.dtype)
        if self.origin is not None:
            viewed = viewed - self.origin
        return viewed * self.scale if self.scale != 1 else viewed

    def of_centers(self, centers: FloatArray) -> FloatArray:
        """Return centers in this view, in float64."""
        return (centers - self.origin_in_float64()) * self.scale

    def origin_in_float64(self) -> FloatArray | float:
        """Return the origin in host memory."""
        return 0.0 if self.origin is None else self.origin.cpu().numpy().astype(np.float64)

    @property
    def exact(self) -> View:
        """The same view in the dtype of sums."""
        if self.dtype == self.wide:
            return self
        origin = None if self.origin is None else self.origin.to(self.wide)
        return replace(self, dtype=self.wide, origin=origin)


@dataclass(frozen=True, slots=True)
class Planes:
    """Centers as planes over the points in a view."""

    slopes: torch.Tensor  # (n_centers, n_features)
    lifts: torch.Tensor  # (n_centers,)
    is_euclidean: bool  # slopes are the places of the centers, and lifts their squared lengths
    reach: float = 0.0  # the largest magnitude of a slope
    in_wide: Planes | None = None  # the same in the dtype of sums, if that is another

    @classmethod
    def of(
        cls, slopes: FloatArray, lifts: FloatArray, view: View, like: torch.Tensor, euclidean: bool
    ) -> Planes:
        """Move planes from float64 in host memory to the dtypes of a view and a tensor's device."""
        reach = float(np.max(np.abs(slopes)))

        def in_dtype(dtype: torch.dtype, in_wide: Planes | None = None) -> Planes:
            there = {"dtype": dtype, "device": like.device}
            of_slopes = torch.as_tensor(np.ascontiguousarray(slopes), **there)
            of_lifts = torch.as_tensor(np.ascontiguousarray(lifts), **there)
            return cls(of_slopes, of_lifts, euclidean, reach, in_wide)

        exact = in_dtype(view.wide)
        return exact if view.dtype == view.wide else in_dtype(view.dtype, exact)

    @property
    def exact(self) -> Planes:
        """The same in the dtype of sums."""
        return self if self.in_wide is None else self.in_wide

    @property
    def is_direct(self) -> bool:
        """Distances are sums of squared differences, which never cancel."""
        return self.is_euclidean and self.slopes.shape[1] <= MOST_FEATURES_DIRECT


@dataclass(frozen=True, slots=True)
class Part:
    """Some points on the device, with heights and weights."""

    points: torch.Tensor  # (n_points, n_features), as they are stored
    heights: torch.Tensor  # (n_points,)
    weights: torch.Tensor  # (n_points,), over the unit of weights, in the dtype of sums
    rows: slice  # the place of these points among all
    lengths: torch.Tensor | None = None  # (n_points,), if heights are not their squares

    def __getitem__(self, rows: slice | torch.Tensor) -> Part:
        """Return some of these points."""
        lengths = None if self.lengths is None else self.lengths[rows]
        return Part(self.points[rows], self.heights[rows], self.weights[rows], self.rows, lengths)

    def in_blocks(self, n_at_once: int) -> Any:
        """Yield `n_at_once` points at a time, with their slice of this part."""
        return ((rows, self[rows]) for rows in blocks(len(self.points), n_at_once))


@dataclass(frozen=True, slots=True)
class Added:
    """Sums over points on the device, in the unit and from the origin of a view."""

    points: torch.Tensor
    weights: torch.Tensor
    objective: torch.Tensor
    inertia: torch.Tensor

    def __add__(self, other: Added) -> Added:
        return Added(
            self.points + other.points,
            self.weights + other.weights,
            self.objective + other.objective,
            self.inertia + other.inertia,
        )


def distances(part: Part, planes: Planes, view: View) -> tuple[torch.Tensor, torch.Tensor]:
    """Return all distances of these points, (n_points, n_centers), and the points in the view."""
    points = view.of(part.points)
    if planes.is_direct:
        return _squared_differences(points, planes.slopes), points
    with as_they_are(points):
        found = torch.addmm(planes.lifts[None, :], points, planes.slopes.T, alpha=-2)
    found.add_(part.heights.to(view.dtype)[:, None]).clamp_(min=0)
    if planes.is_euclidean or view.dtype != view.wide:
        _mend(found, part, planes, view)
    return found, points


def to_own(part: Part, planes: Planes, view: View, labels: torch.Tensor) -> torch.Tensor:
    """Return the distance of each point to the center of its label, in the dtype of sums."""
    exact, labels = planes.exact, labels.long()
    points, slopes = view.exact.of(part.points), exact.slopes[labels]
    if planes.is_euclidean:
        return (points - slopes).square_().sum(1)
    products = (points * slopes).sum(1)
    own = part.heights.to(view.wide) + exact.lifts[labels] - 2 * products
    return own.clamp_(min=0)


def sizes_to_own(part: Part, planes: Planes, labels: torch.Tensor) -> torch.Tensor:
    """Return the size of the terms whose difference is the distance to the center of the label."""
    labels = labels.long()
    if part.lengths is None:
        return part.heights + planes.lifts[labels]
    lengths = torch.linalg.vector_norm(planes.slopes, dim=1)
    sizes = 2 * part.lengths * lengths[labels] + planes.lifts.abs()[labels]
    return sizes + part.heights.to(sizes)


def as_they_are(values: torch.Tensor) -> AbstractContextManager[Any]:
    """Let products keep the dtype of their factors, even under `torch.autocast`."""
    kind = values.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


def nearest(found: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the least distance of each point, and the first center that has it."""
    labels = found.argmin(1)
    return found.gather(1, labels[:, None])[:, 0], labels


@dataclass(frozen=True, slots=True)
class RowTerms:
    """The terms of a point in its weights, beside its distance to each center.

    With a power s: log w_ij = term_i + (s - 1) log(y_ij / reference_i); with Gaussians of variance
    v: log w_ij = term_i + (reference_i - e_ij) / (2 v), e_ij = y_ij - 2 v log q_j.
    """

    terms: torch.Tensor
    objectives: torch.Tensor


def power_terms(
    rule: Power | Harmonic,
    least: torch.Tensor,
    log_sums: torch.Tensor,
    n_centers: int,
    scale: float,
) -> RowTerms:
    """Return the terms from the least distance of each point and log S, in the dtype of sums."""
    power = max(rule.power, _LEAST_POWER)
    root = torch.exp((log_sums - math.log(n_centers)) / (2 * power))
    means = least * root * root
    terms = (1 / power - 1) * log_sums
    if isinstance(rule, Power):
        return RowTerms(terms, means)
    lowest = torch.finfo(means.dtype).tiny
    log_means = torch.log(means.clamp(min=lowest)) - 2 * math.log(scale)
    log_units = log_means - math.log(rule.unit)
    terms = terms + (-1 / power - 1) * math.log(n_centers) + (-power - 1) * log_units
    # In the unit of squared distances, by which the rows divide all objectives.
    objectives = torch.where(means > 0, torch.exp(log_means * (rule.p / 2)), 0.0) * scale**2
    return RowTerms(terms, objectives)


def gaussian_terms(
    rule: Gaussian, least_energy: torch.Tensor, log_sums: torch.Tensor, scale: float
) -> RowTerms:
    """Return the terms from the least energies e_i and log sum_j exp((e_i - e_ij) / (2 v))."""
    return RowTerms(-log_sums, least_energy - 2 * variance_in_unit(rule, scale) * log_sums)


def variance_in_unit(rule: Gaussian, scale: float) -> float:
    """Return the variance in the unit of the view."""
    return max(rule.variance * scale**2, float(torch.finfo(torch.float32).tiny))


def log_shares(rule: Gaussian, n_centers: int) -> FloatArray:
    """Return the logarithms of the shares q_j."""
    shares = rule.shares_of(n_centers)
    return np.full(n_centers, -math.log(n_centers)) if shares is None else np.log(shares)


def sweep(part: Part, planes: Planes, view: View, rule: Rule) -> Added:
    """Weigh these points, few enough for one block, by the rule and add up."""
    found, points = distances(part, planes, view)
    least, labels = nearest(found)
    log_weights, objectives = _log_weights(found, least, labels, view, rule)
    log_weights += torch.log(part.weights).to(view.dtype)[:, None]
    added, weights = add_up(log_weights, points, view)
    if objectives is None:
        inertia = torch.dot(part.weights, to_own(part, planes, view, labels))
        return Added(added, weights, inertia, inertia)
    inertia = torch.dot(part.weights, least.to(view.wide))
    return Added(added, weights, torch.dot(part.weights, objectives), inertia)


def spread(part: Part, planes: Planes, view: View) -> tuple[torch.Tensor, torch.Tensor]:
    """Return error and utility of each center, (n_centers, 2), and its weight."""
    found, _ = distances(part, planes, view)
    n_centers = found.shape[1]
    least, labels = nearest(found)
    second = least
    if n_centers > 1:
        second = found.scatter_(1, labels[:, None], math.inf).amin(1)
    logs = one_hot_logs(labels, n_centers, view.dtype)
    logs += torch.log(part.weights).to(view.dtype)[:, None]
    return add_up(logs, torch.stack([least, second - least], dim=1), view)


def add_up(
    log_weights: torch.Tensor, points: torch.Tensor, view: View
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weighted points and weights, (n_centers, ...), from logarithms of weights."""
    highest = log_weights.amax(0)
    highest = torch.where(torch.isfinite(highest), highest, 0.0)
    weights = log_weights.sub_(highest).exp_()
    factors = torch.exp(highest.to(view.wide))
    with as_they_are(points):
        sums = (weights.T @ points).to(view.wide) * factors[:, None]
    return sums, weights.sum(0).to(view.wide) * factors


def one_hot_logs(labels: torch.Tensor, n_centers: int, dtype: torch.dtype) -> torch.Tensor:
    """Return zero at the label of each point, minus infinity elsewhere."""
    logs = torch.full((len(labels), n_centers), -math.inf, dtype=dtype, device=labels.device)
    return logs.scatter_(1, labels[:, None].long(), 0.0)


def _log_weights(
    found: torch.Tensor, least: torch.Tensor, labels: torch.Tensor, view: View, rule: Rule
) -> tuple[torch.Tensor, torch.Tensor | None]:
    """Return logarithms of the weights, and objectives unless these are the least distances."""
    n_centers = found.shape[1]
    if isinstance(rule, Hard):
        return one_hot_logs(labels, n_centers, view.dtype), None
    if isinstance(rule, (Power, Harmonic)):
        return _power_logs(found, least, view, rule)
    if isinstance(rule, Gaussian):
        return _gaussian_logs(found, view, rule)
    return _logs_by_formula(found, view, rule)


def _power_logs(
    found: torch.Tensor, least: torch.Tensor, view: View, rule: Power | Harmonic
) -> tuple[torch.Tensor, torch.Tensor]:
    # Ratios: 0 / 0 is one, since the point is at that center; y / 0 is infinite.
    log_ratio = found.div_(least[:, None]).nan_to_num_(nan=1.0, posinf=math.inf).log_()
    exponents = max(rule.power, _LEAST_POWER) * log_ratio
    log_sums = torch.log(exponents.exp().sum(1)).to(view.wide)
    terms = power_terms(rule, least.to(view.wide), log_sums, found.shape[1], view.scale)
    logs = exponents.sub_(log_ratio).add_(terms.terms.to(view.dtype)[:, None])
    return logs, terms.objectives


def _gaussian_logs(
    found: torch.Tensor, view: View, rule: Gaussian
) -> tuple[torch.Tensor, torch.Tensor]:
    variance = variance_in_unit(rule, view.scale)
    lifts = _like(found, 2 * variance * log_shares(rule, found.shape[1]))
    energies = found.sub_(lifts[None, :])
    least = energies.amin(1)
    logs = (least[:, None] - energies).div_(2 * variance)
    log_sums = torch.log(logs.exp().sum(1)).to(view.wide)
    terms = gaussian_terms(rule, least.to(view.wide), log_sums, view.scale)
    return logs.add_(terms.terms.to(view.dtype)[:, None]), terms.objectives


def _logs_by_formula(
    found: torch.Tensor, view: View, rule: Rule
) -> tuple[torch.Tensor, torch.Tensor]:
    """Weigh by the rule's own formulas in NumPy: distances and weights cross to the host."""
    unit = view.scale**2
    weights, objectives = rule.weigh(found.cpu().numpy().astype(np.float64) / unit)
    with np.errstate(divide="ignore"):
        logs = _like(found, np.log(weights))
    return logs, torch.as_tensor(objectives * unit, dtype=view.wide, device=found.device)


def shares(sq_dist: torch.Tensor, exponent: float) -> torch.Tensor:
    """Return shares y_j^e / sum_l y_l^e of each point, in float64 where the device has it.

    Memberships at a power s have the exponent s - 1 (`powermeans.power_mean.memberships`). At -inf
    the first least distance takes all; otherwise several zeros share the point equally.
    """
    wide = sq_dist.to(torch.float32 if sq_dist.device.type == "mps" else torch.float64)
    if exponent == -math.inf:
        return torch.zeros_like(wide).scatter_(1, wide.argmin(1)[:, None], 1.0)
    # Ratios: 0 / 0 is one, since the point is at that center; y / 0 is infinite.
    ratios = wide / wide.amin(1, keepdim=True)
    logs = ratios.nan_to_num_(nan=1.0, posinf=math.inf).log_()
    return torch.softmax(logs.mul_(exponent), dim=1)


def _like(found: torch.Tensor, values: FloatArray) -> torch.Tensor:
    return torch.as_tensor(values, dtype=found.dtype, device=found.device)


def _squared_differences(points: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    found = points.new_zeros((len(points), len(places)))
    for feature in range(points.shape[1]):
        difference = points[:, feature, None] - places[None, :, feature]
        found.addcmul_(difference, difference)
    return found


def _mend(found: torch.Tensor, part: Part, planes: Planes, view: View) -> None:
    """Compute the distances that cancellation has spoilt again, in the dtype of sums."""
    limits = _sizes(found, part, planes).mul_(_CANCELLATION[found.dtype])
    i, j = (found < limits).nonzero(as_tuple=True)
    for pairs in blocks(len(i), max(1, _PAIRS_ENTRIES // part.points.shape[1])):
        own = to_own(part[i[pairs]], planes, view, j[pairs])
        found[i[pairs], j[pairs]] = own.to(found.dtype)


def _sizes(found: torch.Tensor, part: Part, planes: Planes) -> torch.Tensor:
    """Return the sizes of the terms whose differences are distances, (n_points, n_centers)."""
    heights = part.heights.to(found.dtype)[:, None]
    if part.lengths is None:
        return heights + planes.lifts[None, :]
    lengths = torch.linalg.vector_norm(planes.slopes, dim=1)
    products = torch.outer(2 * part.lengths.to(found.dtype), lengths)
    return products.add_(heights).add_(planes.lifts.abs()[None, :])
