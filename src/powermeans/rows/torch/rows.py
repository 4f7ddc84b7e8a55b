"""Rows of a tensor: squared Euclidean distances, by plain PyTorch or by fused kernels."""

from __future__ import annotations

import math
import operator
import time
from collections.abc import Iterable, Iterator
from functools import cached_property, reduce
from typing import Any, Literal

import numpy as np
import torch

from powermeans.critical import critical_power
from powermeans.rows.base import MemoryRows, in_unit
from powermeans.rows.protocol import Placement
from powermeans.rows.torch import formulas, fused
from powermeans.rows.torch.formulas import Added, Part, Planes, View
from powermeans.rows.torch.nearness import TorchNearness
from powermeans.rows.torch.placing import (
    Held,
    blocks,
    free_bytes,
    lack_of_memory_is_told,
    rows_at_once,
)
from powermeans.rules import Online, Rule
from powermeans.sums import Spread, Sums
from powermeans.types import FloatArray, IndexArray, Labels, Points

Kernel = Literal["auto", "triton", "plain"]
Precision = Literal["highest", "high"]

# Squares of numbers outside come near the ends of float32.
_UNIT_RANGE = (1e-6, 1e6)
# Products round points to float16, whose range is smaller.
_UNIT_RANGE_OF_FLOAT16 = (2.0**-6, 2.0**12)
# The dtype must hold a scale, and float64 its square.
_LARGEST_EXPONENT = {torch.float32: 126, torch.float64: 510}
_MOST_FEATURES_FORMED = 4096
# The kernels, and the sort that they need, index points with 32 bits.
_MOST_POINTS_OF_PART = 2**29
_ROWS_SAMPLED = 10_000
# 256 MiB of float64.
_MOST_ENTRIES_WHERE_FREE_IS_UNKNOWN = 2.0**25
# Relative errors of 16-bit and TF32 products, and of float32 products that are put together.
_ROUNDING = {"high": 2.0**-8, "highest": 2.0**-18}


class TorchRows(MemoryRows):
    """Sweep over a contiguous, finite tensor on its device, or on another that it is moved to.

    The kernel "auto" takes Triton where it can. The precision follows PyTorch's own switch by
    default, and always in plain PyTorch on a GPU; "high" allows TF32 products of float32, and
    16-bit products of 16-bit points with rounded centers, but not in sums of the hard rule.
    `rows_of_piece` is as for `Held`.
    """

    def __init__(
        self,
        points: torch.Tensor,
        sample_weight: FloatArray | None = None,
        *,
        device: torch.device | None = None,
        kernel: Kernel = "auto",
        precision: Precision | None = None,
        rows_of_piece: int | None = None,
    ) -> None:
        self._held = Held(points, device or points.device, rows_of_piece)
        self._kernel = _chosen_kernel(kernel, points, self.device)
        is_plain = self._kernel == "plain" and points.dtype != torch.float64
        self._precision = _chosen_precision(precision, self.device if is_plain else None)
        wide = torch.float32 if self.device.type == "mps" else torch.float64
        narrow = torch.float64 if points.dtype == torch.float64 else torch.float32
        self._view = View(narrow, wide)
        self._n_by_width: dict[int, int] = {}
        self._weights, self._weight_unit = in_unit(sample_weight)
        self._look_at_columns()

    @property
    def device(self) -> torch.device:
        """The device that does the work."""
        return self._held.device

    @property
    def placement(self) -> Placement:
        """Where and how sweeps are computed."""
        products = str(self._held.points.dtype).removeprefix("torch.")
        precision, kernel = f"{products}, {self._precision}", self._kernel
        if kernel == "triton" and self.n_features > fused.MOST_FEATURES_SOFT:
            kernel = "triton, plain for soft weights"
        elif self._fused is not None and self._fused.counts["too steep"]:
            kernel = f"triton, plain for powers below {fused.STEEPEST_POWER:g}"
        return Placement(str(self.device), kernel, precision, self._held.is_streamed)

    @property
    def n_swept_again(self) -> int:
        """Number of times a point was swept again in float64, after its distances lost digits."""
        return 0 if self._fused is None else self._fused.counts["float64"]

    @property
    def n_points(self) -> int:
        return len(self._held.points)

    @property
    def n_features(self) -> int:
        return int(self._held.points.shape[1])

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """Dtype of results: float32 holds 16-bit points exactly."""
        return np.dtype(np.float64 if self._view.dtype == torch.float64 else np.float32)

    @property
    def n_stored(self) -> int:
        return int(self._held.points.numel())

    def weigh(self, sample_weight: FloatArray) -> None:
        """Give the points these weights."""
        self._weights, self._weight_unit = in_unit(sample_weight)
        self.__dict__.pop("weights_there", None)
        self._forget_what_follows_from_weights()

    def rounding(self) -> float:
        if self.n_features <= formulas.MOST_FEATURES_DIRECT:
            return 0.0
        if self._precision == "highest" and self._kernel == "plain":
            return 0.0
        return _ROUNDING[self._precision]

    def critical_power(self) -> float:
        if self.n_features > _MOST_FEATURES_FORMED:
            step = -(-self.n_points // _ROWS_SAMPLED)
            some = np.arange(0, self.n_points, step)
            return critical_power(self.take(some), self.sample_weight(some))
        largest = float(torch.linalg.eigvalsh(self._directions().cpu().double())[-1])
        largest /= self.total_weight / self._weight_unit
        return 1 - 1 / (2 * largest) if largest > 0 else 0.5

    def _directions(self) -> torch.Tensor:
        """Return the weighted sum of r r^T / |r|^2 over the points, with r = x - mean."""
        mean = self._there(self._scaled_steps(self._mean))
        formed = torch.zeros((self.n_features,) * 2, dtype=self._view.wide, device=self.device)
        nearest = (1e-13 * self._view.scale) ** 2 * float(np.sum(self._column_variance))
        for part in self._blocks(self.n_features):
            residuals = self._in_steps(self._view.of(part.points)) - mean
            squares = residuals.square().sum(1).to(self._view.wide)
            shares = torch.where(squares > nearest, part.weights / squares, 0.0)
            unit = (residuals * torch.sqrt(shares).to(residuals)[:, None]).to(residuals.dtype)
            with formulas.as_they_are(unit):
                formed += (unit.T @ unit).to(self._view.wide)
        return formed

    def _in_steps(self, points: torch.Tensor) -> torch.Tensor:
        """Return points of the view in units of `unit_steps`."""
        steps = self.unit_steps()
        return points if isinstance(steps, float) else points / self._there(steps)

    def _scaled_steps(self, center: FloatArray) -> FloatArray:
        place = self._view.of_centers(center[None, :])[0]
        return np.asarray(place / self.unit_steps())

    # Sweeps.

    @lack_of_memory_is_told
    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        if isinstance(rule, Online):
            raise TypeError(
                "rows of tensors cannot sweep with the rule Online, which takes points one by one"
            )
        planes = self._planes_of(centers)
        swept = (self._sweep_part(part, planes, rule) for part in self._parts())
        return self._as_sums(reduce(operator.add, swept))

    def _sweep_part(self, part: Part, planes: Planes, rule: Rule) -> Added:
        if self._fused is not None and self._fused.can_sweep(rule, planes):
            return self._fused.sweep(part, planes, rule)
        in_blocks = part.in_blocks(self._n_at_once(len(planes.lifts)))
        swept = (formulas.sweep(block, planes, self._view, rule) for _, block in in_blocks)
        return reduce(operator.add, swept)

    @cached_property
    def _fused(self) -> fused.Fused | None:
        if self._kernel != "triton":
            return None
        return fused.Fused(self._view, self._precision, self._n_at_once)

    def _as_sums(self, added: Added) -> Sums:
        """Return sums in the user's units, from the user's origin."""
        view, weights = self._view, _host(added.weights)
        points = _host(added.points) / view.scale
        points += weights[:, None] * view.origin_in_float64()
        unit = view.scale**2
        sums = Sums(points, weights, float(added.objective) / unit, float(added.inertia) / unit)
        return sums * self._weight_unit

    @lack_of_memory_is_told
    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        planes = self._planes_of(centers)
        labels, inertia = np.empty(self.n_points, dtype=np.int32), 0.0
        for part in self._parts():
            of_part = self._labels(part, planes)
            labels[part.rows] = of_part.cpu().numpy()
            for rows, block in part.in_blocks(self._n_at_once(1)):
                own = formulas.to_own(block, planes, self._view, of_part[rows])
                inertia += float(torch.dot(block.weights, own))
        return labels, inertia / self._view.scale**2 * self._weight_unit

    def _labels(self, part: Part, planes: Planes) -> torch.Tensor:
        if self._fused is not None:
            return self._fused.labels(part, planes)
        found = [
            formulas.nearest(formulas.distances(block, planes, self._view)[0])[1]
            for _, block in part.in_blocks(self._n_at_once(len(planes.lifts)))
        ]
        return torch.cat(found).int()

    @lack_of_memory_is_told
    def spread(self, centers: FloatArray) -> Spread:
        n_centers, planes = len(centers), self._planes_of(centers)
        figures = np.zeros((2, n_centers))
        weights = np.zeros(n_centers)
        for part in self._parts():
            for added, of_centers in self._spread_of(part, planes):
                figures += _host(added).T
                weights += _host(of_centers)
        error, utility = figures * (self._weight_unit / self._view.scale**2)
        if n_centers == 1:
            utility = np.array([np.inf])
        return Spread(error, utility, weights * self._weight_unit)

    def _spread_of(self, part: Part, planes: Planes) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """Yield error, utility and weight of each center, some points at a time."""
        if self._fused is not None and len(planes.lifts) > 1:
            yield self._fused.spread(part, planes)
            return
        for _, block in part.in_blocks(self._n_at_once(len(planes.lifts))):
            yield formulas.spread(block, planes, self._view)

    def sq_distances(self, centers: FloatArray) -> Points:
        found, exponent = self.sq_distances_in_view(centers)
        return np.ldexp(found, 2 * exponent) if exponent else found

    def sq_distances_in_view(self, centers: FloatArray) -> tuple[Points, int]:
        """Return distances of points and centers over a power of two, and its exponent."""
        found = torch.cat([there.cpu() for there in self._distances_in_view(centers)])
        return np.asarray(found.numpy()), -round(math.log2(self._view.scale))

    def distances_there(self, centers: FloatArray, *, is_squared: bool) -> Iterator[torch.Tensor]:
        """Yield distances, or roots of squared ones, on the device, some rows at a time."""
        for found in self._distances_in_view(centers):
            # The root comes first, since squares in the user's unit may leave float32.
            yield found.sqrt_().div_(self._view.scale) if is_squared else found

    def _distances_in_view(self, centers: FloatArray) -> Iterator[torch.Tensor]:
        planes = self._planes_of(centers)
        for block in self._blocks(len(centers)):
            yield formulas.distances(block, planes, self._view)[0]

    def put_together(self, blocks_of_all: Iterable[torch.Tensor]) -> torch.Tensor:
        """Return blocks of rows as one tensor on the device."""
        return torch.cat(list(blocks_of_all))

    # Seeding.

    def nearness(self, centers: FloatArray, order: IndexArray | None = None) -> TorchNearness:
        return TorchNearness(self, centers, order)

    def greedy_seeds(
        self,
        order: IndexArray,
        first: float,
        others: FloatArray,
        exponent: float = 2.0,
        *,
        seconds: float = math.inf,
    ) -> IndexArray:
        """Choose seeds in one pass over the points each, if distances to all candidates fit."""
        n_candidates = others.shape[1] if len(others) else 1
        if self.n_points * n_candidates > self.most_entries_kept():
            return super().greedy_seeds(order, first, others, exponent, seconds=seconds)
        nearness = self.nearness(np.empty((0, self.n_features)), order)
        chosen = np.empty(1 + len(others), dtype=np.intp)
        end = time.monotonic() + seconds
        for seed in range(len(chosen)):
            if seed and time.monotonic() >= end:
                return chosen[:seed]
            uniforms = others[seed - 1] if seed else np.array([first])
            chosen[seed] = nearness.choose(nearness.draw(uniforms, exponent))
        return chosen

    def distance_blocks(self, centers: FloatArray) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield distances in the unit of the view, some points at a time, in the dtype of sums."""
        planes = self._planes_of(centers)
        for part in self._parts():
            for rows, block in part.in_blocks(self._n_at_once(max(len(centers), self.n_features))):
                start = part.rows.start + rows.start
                found, _ = formulas.distances(block, planes, self._view)
                of_all = slice(start, start + len(found))
                yield of_all, found.to(self._view.wide)

    @property
    def units(self) -> tuple[float, float]:
        """Factors of squared distances in the view, and of weights there, to the user's units."""
        return 1 / self._view.scale**2, self._weight_unit

    def most_entries_kept(self) -> float:
        """Return the number of distances that the device can keep."""
        entries = free_bytes(self.device) / 32
        return entries if math.isfinite(entries) else _MOST_ENTRIES_WHERE_FREE_IS_UNKNOWN

    # Points.

    def take(self, indices: IndexArray) -> FloatArray:
        return np.asarray(self._held.take(indices).double().numpy())

    def sample(self, indices: IndexArray) -> Points:
        """Return these points in host memory, dense."""
        return self.take(indices).astype(self.dtype)

    # How points and centers are planes.

    def _planes_in_view(self, centers: FloatArray) -> tuple[FloatArray, FloatArray, bool]:
        """Return slopes and lifts in the view, and whether slopes are places."""
        places = self._view.of_centers(centers)
        return places, np.sum(places * places, axis=1), True

    def _planes_of(self, centers: FloatArray) -> Planes:
        slopes, lifts, is_euclidean = self._planes_in_view(np.asarray(centers, dtype=np.float64))
        return Planes.of(slopes, lifts, self._view, self.weights_there, is_euclidean)

    def _look_at_columns(self) -> None:
        """Compute mean and variance of the columns, and from them the view and the heights."""
        sums, largest = np.zeros(self.n_features), 0.0
        for _, block in self._stored_blocks(self._n_at_once(1)):
            wide = block.to(self._view.wide)
            sums = sums + _host(wide.sum(0))
            largest = max(largest, float(wide.abs().amax()))
        mean = np.asarray(sums / self.n_points)
        squares, about = np.zeros(self.n_features), self._there(mean, self._view.wide)
        for _, block in self._stored_blocks(self._n_at_once(1)):
            squares = squares + _host((block.to(self._view.wide) - about).square_().sum(0))
        self._column_mean, self._column_variance = mean, np.asarray(squares / self.n_points)
        self._view = self._chosen_view(largest)
        self._heights = self._all_heights()
        self._lengths = self._all_lengths()

    def _chosen_view(self, largest: float) -> View:
        """Return a view centered if the mean is far away, scaled if squares would leave float32."""
        view = self._view
        is_far = float(self._column_mean @ self._column_mean) > np.sum(self._column_variance)
        origin = self._there(self._column_mean) if is_far else None
        return View(view.dtype, view.wide, origin, self._chosen_scale(largest))

    def _chosen_scale(self, largest: float) -> float:
        is_rounded = self._held.points.dtype == torch.float16 and self._precision == "high"
        low, high = _UNIT_RANGE_OF_FLOAT16 if is_rounded else _UNIT_RANGE
        if largest == 0 or low < largest < high:
            return 1.0
        most = _LARGEST_EXPONENT[self._view.dtype]
        return float(2.0 ** -max(-most, min(math.frexp(largest)[1], most)))

    def _all_heights(self) -> torch.Tensor:
        """Return the term of distances that depends only on the point: here its squared length."""
        heights = torch.empty(self.n_points, dtype=self._view.dtype, device=self.device)
        for rows, points in self._stored_blocks(self._n_at_once(1)):
            heights[rows] = self._view.of(points).square().sum(1)
        return heights

    def _all_lengths(self) -> torch.Tensor | None:
        """Return lengths of the points in the view, or None if heights are their squares."""
        return None

    @cached_property
    def weights_there(self) -> torch.Tensor:
        """Weights over their unit, on the device, in the dtype of sums."""
        if self._weights is None:
            return torch.ones(self.n_points, dtype=self._view.wide, device=self.device)
        return torch.as_tensor(self._weights, dtype=self._view.wide, device=self.device)

    def _there(self, values: FloatArray, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Move host values to the device, by default in the dtype of products."""
        return torch.as_tensor(values, dtype=dtype or self._view.dtype, device=self.device)

    def _parts(self) -> Iterator[Part]:
        for rows, points in self._stored_blocks(_MOST_POINTS_OF_PART):
            lengths = None if self._lengths is None else self._lengths[rows]
            yield Part(points, self._heights[rows], self.weights_there[rows], rows, lengths)

    def _blocks(self, width: int) -> Iterator[Part]:
        for part in self._parts():
            for _, block in part.in_blocks(self._n_at_once(width)):
                yield block

    def _stored_blocks(self, n_at_once: int) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield at most `n_at_once` stored points at a time, with their slice."""
        for of_piece, points in self._held.pieces():
            for rows in blocks(len(points), n_at_once):
                yield slice(of_piece.start + rows.start, of_piece.start + rows.stop), points[rows]

    def _n_at_once(self, width: int) -> int:
        """Return the points of a block with `width` entries each; the first answer stays."""
        wider = max(width, self.n_features)
        if wider not in self._n_by_width:
            itemsize = self._view.wide.itemsize
            self._n_by_width[wider] = rows_at_once(self.n_points, wider, self.device, itemsize)
        return self._n_by_width[wider]


def _chosen_kernel(wanted: Kernel, points: torch.Tensor, device: torch.device) -> str:
    if wanted == "plain":
        return "plain"
    obstacle = fused.why_not(points, device)
    if wanted == "triton" and obstacle is not None:
        raise ValueError(f'kernel="triton" is not available: {obstacle}. Pass kernel="plain"')
    is_for_gpu = device.type == "cuda" or wanted == "triton"
    return "triton" if obstacle is None and is_for_gpu else "plain"


def _chosen_precision(wanted: Precision | None, plain_on: torch.device | None) -> Precision:
    """Choose the precision of products; for plain PyTorch on a GPU its own switch decides."""
    of_torch = _precision_of_torch()
    if wanted is None:
        return of_torch
    if plain_on is None or plain_on.type != "cuda":
        return wanted
    if (wanted, of_torch) == ("highest", "high"):
        raise ValueError(
            f'precision="highest" is not available to plain PyTorch on {plain_on}, whose own '
            'switch allows less: call torch.set_float32_matmul_precision("highest")'
        )
    return of_torch


def _precision_of_torch() -> Precision:
    """Return the precision that PyTorch's newer or older switch sets for float32 products."""
    # Reading the older switch is an error once the newer one was set.
    newer = getattr(torch.backends.cuda.matmul, "fp32_precision", "none")
    if newer != "none":
        return "highest" if newer == "ieee" else "high"
    return "highest" if torch.get_float32_matmul_precision() == "highest" else "high"


def _host(values: torch.Tensor) -> FloatArray:
    return np.asarray(values.cpu().numpy(), dtype=np.float64)
