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

from powermeans.mathematics.rules import Hard, Harmonic, Power, Rule
from powermeans.tensors.memory import blocks
from powermeans.types import FloatArray

# With more features, products replace sums of squared differences.
MOST_FEATURES_DIRECT = 16
# A distance below this share of its terms has lost digits, and is computed again.
_CANCELLATION = {torch.float32: 1 / 64, torch.float64: 1 / 1024}


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

    def origin_in_float64(self) -> FloatArray | float:
        """Return the origin in host memory."""
        return 0.0 if self.origin is None else self.origin.cpu().numpy().astype(np.float64)

    @property
    def exact(self) -> View:
        """The same view in the dtype of sums."""
        origin = None if self.origin is None else self.origin.to(self.wide)
        return replace(self, dtype=self.wide, origin=origin)


@dataclass(frozen=True, slots=True)
class Planes:
    """Centers as planes over the points in a view."""

    slopes: torch.Tensor  # (n_centers, n_features), in the dtype of sums
    lifts: torch.Tensor  # (n_centers,), in the dtype of sums
    is_euclidean: bool  # slopes are the places of the centers, and lifts their squared lengths

    @property
    def is_direct(self) -> bool:
        """Whether distances are sums of squared differences."""
        return self.is_euclidean and self.slopes.shape[1] <= MOST_FEATURES_DIRECT

    @property
    def steepest(self) -> Planes:
        """One plane as steep as the steepest of these, and as far from zero as any."""
        steepest = self.slopes.square().sum(1).argmax()
        return replace(
            self, slopes=self.slopes[steepest, None], lifts=self.lifts.abs().amax(0, True)
        )


@dataclass(frozen=True, slots=True)
class Block:
    """Some points on the device, with heights and weights."""

    points: torch.Tensor  # (n_points, n_features), as they are stored
    heights: torch.Tensor  # (n_points,)
    weights: torch.Tensor  # (n_points,), over the unit of weights, in the dtype of sums

    def part(self, some: torch.Tensor) -> Block:
        """Return some of the points."""
        return Block(self.points[some], self.heights[some], self.weights[some])


def distances(block: Block, planes: Planes, view: View) -> tuple[torch.Tensor, torch.Tensor]:
    """Return all distances of these points, (n_points, n_centers), and the points in the view."""
    points = view.of(block.points)
    if planes.is_direct:
        return _squared_differences(points, planes.slopes.to(view.dtype)), points
    found = _less_heights(points, planes)
    found.add_(block.heights.to(view.dtype)[:, None]).clamp_(min=0)
    if planes.is_euclidean or view.dtype != view.wide:
        _mend(found, found < _doubtful_below(block, points, planes), block, planes, view)
    return found, points


def nearest(block: Block, planes: Planes, view: View) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the first nearest center of each point, and the points in the view."""
    if planes.is_direct:
        found, points = distances(block, planes, view)
        return found.argmin(1), points
    points = view.of(block.points)
    found = _less_heights(points, planes)
    labels = found.argmin(1)
    if planes.is_euclidean or view.dtype != view.wide:
        least = found.gather(1, labels[:, None]) + block.heights.to(view.dtype)[:, None]
        is_doubtful = least < _doubtful_below(block, points, planes.steepest)
        some = is_doubtful[:, 0].nonzero()[:, 0]
        labels[some] = distances(block.part(some), planes, view)[0].argmin(1)
    return labels, points


def to_own(block: Block, planes: Planes, view: View, labels: torch.Tensor) -> torch.Tensor:
    """Return the distance of each point to the center of its label, in the dtype of sums."""
    points, slopes = view.exact.of(block.points), planes.slopes[labels]
    if planes.is_euclidean:
        return (points - slopes).square_().sum(1)
    own = block.heights.to(view.wide) + planes.lifts[labels] - 2 * (points * slopes).sum(1)
    return own.clamp_(min=0)


def as_they_are(values: torch.Tensor) -> AbstractContextManager[Any]:
    """Let products keep the dtype of their factors, even under `torch.autocast`."""
    kind = values.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


def sweep(block: Block, planes: Planes, view: View, rule: Rule) -> tuple[torch.Tensor, ...]:
    """Weigh the points of one block by the rule.

    Return weighted points and weights of each center, objective and inertia, in the view.
    """
    if isinstance(rule, Hard):
        labels, points = nearest(block, planes, view)
        inertia = torch.dot(block.weights, to_own(block, planes, view, labels))
        return *_add_up_own(labels, len(planes.lifts), block, points, view), inertia, inertia
    if not isinstance(rule, (Power, Harmonic)):
        raise TypeError(f"rows of tensors cannot sweep with the rule {type(rule).__name__}")
    found, points = distances(block, planes, view)
    least = found.amin(1)
    logs, objectives = _power_logs(found, least, view, rule)
    objective, inertia = (torch.dot(block.weights, y.to(view.wide)) for y in (objectives, least))
    return *_add_up(logs, block, points, view), objective, inertia


def spread(block: Block, planes: Planes, view: View) -> tuple[torch.Tensor, torch.Tensor]:
    """Return error and utility of each center, (n_centers, 2), and its weight."""
    found, _ = distances(block, planes, view)
    labels = found.argmin(1)
    second = least = found.gather(1, labels[:, None])[:, 0]
    if found.shape[1] > 1:
        second = found.scatter_(1, labels[:, None], math.inf).amin(1)
    figures = torch.stack([least, second - least], dim=1)
    return _add_up_own(labels, len(planes.lifts), block, figures, view)


def _add_up_own(
    labels: torch.Tensor, n_centers: int, block: Block, values: torch.Tensor, view: View
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weighted values and weights, (n_centers, ...), where each point has one center.

    Products add up in one order, unlike `index_add_` on a card. Weights are relative to the
    heaviest of the center, so that none leaves the range of float32.
    """
    heaviest = block.weights.new_zeros(n_centers)
    heaviest = heaviest.scatter_reduce_(0, labels, block.weights, "amax")
    shares = (block.weights / heaviest[labels]).nan_to_num_(nan=0.0).to(values.dtype)
    owned = values.new_zeros((len(labels), n_centers)).scatter_(1, labels[:, None], shares[:, None])
    with as_they_are(values):
        sums = (owned.T @ values).to(view.wide) * heaviest[:, None]
    return sums, owned.sum(0).to(view.wide) * heaviest


def _add_up(
    log_weights: torch.Tensor, block: Block, values: torch.Tensor, view: View
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return weighted values and weights, (n_centers, ...), from logarithms of weights."""
    log_weights += torch.log(block.weights).to(view.dtype)[:, None]
    highest = log_weights.amax(0)
    highest = torch.where(torch.isfinite(highest), highest, 0.0)
    weights = log_weights.sub_(highest).exp_()
    factors = torch.exp(highest.to(view.wide))
    with as_they_are(values):
        sums = (weights.T @ values).to(view.wide) * factors[:, None]
    return sums, weights.sum(0).to(view.wide) * factors


def _power_logs(
    found: torch.Tensor, least: torch.Tensor, view: View, rule: Power | Harmonic
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return log w_ij = term_i + (s - 1) log(y_ij / least_i) at the power s, and objectives."""
    n_centers, power = found.shape[1], max(rule.power, -1e30)  # in the range of float32
    # Ratios: 0 / 0 is one, since the point is at that center; y / 0 is infinite.
    log_ratio = found.div_(least[:, None]).nan_to_num_(nan=1.0, posinf=math.inf).log_()
    exponents = power * log_ratio
    log_sums = torch.log(exponents.exp().sum(1)).to(view.wide)
    root = torch.exp((log_sums - math.log(n_centers)) / (2 * power))
    objectives = least.to(view.wide) * root * root
    terms = (1 / power - 1) * log_sums
    if isinstance(rule, Harmonic):
        lowest = torch.finfo(view.wide).tiny
        log_means = torch.log(objectives.clamp(min=lowest)) - 2 * math.log(view.scale)
        terms += (-1 / power - 1) * math.log(n_centers)
        terms += (-power - 1) * (log_means - math.log(rule.unit))
        # In the unit of squared distances, by which the rows divide all objectives.
        harmonic = torch.exp(log_means * (rule.p / 2)) * view.scale**2
        objectives = torch.where(objectives > 0, harmonic, 0.0)
    return exponents.sub_(log_ratio).add_(terms.to(view.dtype)[:, None]), objectives


def shares(sq_dist: torch.Tensor, exponent: float) -> torch.Tensor:
    """Return shares y_j^e / sum_l y_l^e of each point, in float64 where the device has it.

    Memberships at a power s have the exponent s - 1 (`mathematics/power_mean.py`). At -inf
    the first least distance takes all; otherwise several zeros share the point equally.
    """
    wide = sq_dist.to(torch.float32 if sq_dist.device.type == "mps" else torch.float64)
    if exponent == -math.inf:
        return torch.zeros_like(wide).scatter_(1, wide.argmin(1)[:, None], 1.0)
    # Ratios: 0 / 0 is one, since the point is at that center; y / 0 is infinite.
    ratios = wide / wide.amin(1, keepdim=True)
    logs = ratios.nan_to_num_(nan=1.0, posinf=math.inf).log_()
    return torch.softmax(logs.mul_(exponent), dim=1)


def _less_heights(points: torch.Tensor, planes: Planes) -> torch.Tensor:
    slopes, lifts = planes.slopes.to(points.dtype), planes.lifts.to(points.dtype)
    with as_they_are(points):
        return torch.addmm(lifts[None, :], points, slopes.T, alpha=-2)


def _squared_differences(points: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    found = points.new_zeros((len(points), len(places)))
    for feature in range(points.shape[1]):
        difference = points[:, feature, None] - places[None, :, feature]
        found.addcmul_(difference, difference)
    return found


def _mend(
    found: torch.Tensor, is_spoilt: torch.Tensor, block: Block, planes: Planes, view: View
) -> None:
    """Compute the distances that cancellation has spoilt again, in the dtype of sums."""
    i, j = is_spoilt.nonzero(as_tuple=True)
    for pairs in blocks(len(i), max(1, 2**22 // block.points.shape[1])):
        own = to_own(block.part(i[pairs]), planes, view, j[pairs])
        found[i[pairs], j[pairs]] = own.to(found.dtype)


def _doubtful_below(block: Block, points: torch.Tensor, planes: Planes) -> torch.Tensor:
    """Return the distances, (n_points, n_centers), below which digits were lost to cancellation."""
    heights, lifts = block.heights.to(points.dtype)[:, None], planes.lifts.to(points.dtype)
    if planes.is_euclidean:
        return (heights + lifts).mul_(_CANCELLATION[points.dtype])
    lengths = torch.linalg.vector_norm(points, dim=1)
    steepness = torch.linalg.vector_norm(planes.slopes, dim=1).to(points.dtype)
    sizes = torch.outer(2 * lengths, steepness).add_(heights).add_(lifts.abs())
    return sizes.mul_(_CANCELLATION[points.dtype])
