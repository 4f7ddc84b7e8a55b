"""Rows of a tensor: squared Euclidean distances, in plain PyTorch, some points at a time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from functools import reduce
from typing import Any, Self

import numpy as np
import torch

from powermeans.divergences import Divergence, SquaredEuclidean
from powermeans.mathematics.critical_power import critical_power
from powermeans.mathematics.rules import Rule
from powermeans.mathematics.sums import Spread, Sums
from powermeans.points.base import MemoryPoints, in_unit
from powermeans.points.compiled import CompiledPoints
from powermeans.points.opening import open_rows
from powermeans.system.attributes import cached_property, forget
from powermeans.system.threads import effective_n_threads
from powermeans.tensors import formulas
from powermeans.tensors.formulas import Block, Planes, View
from powermeans.tensors.memory import blocks, lack_of_memory_told, rows_at_once
from powermeans.types import AnyMatrix, FloatArray, IndexArray, Labels, Matrix


class TorchPoints(MemoryPoints):
    """Sweep over a contiguous, finite tensor on its device."""

    divergence: Divergence = SquaredEuclidean()

    def __init__(self, points: torch.Tensor, sample_weight: FloatArray | None = None) -> None:
        self._points = points
        wide = torch.float32 if points.device.type == "mps" else torch.float64
        narrow = torch.float64 if points.dtype == torch.float64 else torch.float32
        self._view = View(narrow, wide)
        self._n_by_width: dict[int, int] = {}
        self._limits = ExitStack()
        if sample_weight is not None:
            self._weights, self._weight_unit = in_unit(sample_weight)
        self._look_at_columns()

    def __enter__(self) -> Self:
        """Limit the threads of PyTorch on the CPU."""
        n_threads = self.given.measure.n_threads
        if n_threads is not None and self._points.device.type == "cpu":
            self._limits.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(effective_n_threads(n_threads))
        return self

    def __exit__(self, *error: object) -> None:
        self._limits.close()

    @property
    def n_points(self) -> int:
        return len(self._points)

    @property
    def n_features(self) -> int:
        return int(self._points.shape[1])

    @property
    def dtype(self) -> np.dtype[np.floating[Any]]:
        """Dtype of results: float32 holds 16-bit points exactly."""
        return np.dtype(np.float64 if self._view.dtype == torch.float64 else np.float32)

    def weigh(self, sample_weight: FloatArray) -> None:
        """Give the points these weights."""
        self._weights, self._weight_unit = in_unit(sample_weight)
        forget(self, "weights_there")
        self._forget_what_follows_from_weights()

    def rounding(self) -> float:
        is_exact = self._points.device.type != "cuda" or self._view.dtype == torch.float64
        is_direct = self.n_features <= formulas.MOST_FEATURES_DIRECT
        # PyTorch's own switch allows TF32 and 16-bit products on a card.
        return 0.0 if is_exact or is_direct or not _allows_tf32() else 2.0**-8

    def critical_power(self) -> float:
        if self.n_features > 4096:  # the matrix of their directions would be large
            some = np.arange(0, self.n_points, -(-self.n_points // 10_000))
            return critical_power(self.take(some), self.sample_weight(some))
        largest = float(torch.linalg.eigvalsh(self._directions().cpu().double())[-1])
        largest /= self.total_weight / self._weight_unit
        return 1 - 1 / (2 * largest) if largest > 0 else 0.5

    def _directions(self) -> torch.Tensor:
        """Return the weighted sum of r r^T / |r|^2 over the points, with r = x - mean."""
        steps = self._there(np.broadcast_to(self.unit_steps(), self.n_features).copy())
        mean = self._there(self._in_view(self.mean()) / self.unit_steps())
        shape, wide = (self.n_features,) * 2, self._view.wide
        formed = torch.zeros(shape, dtype=wide, device=self._points.device)
        nearest = (1e-13 * self._view.scale) ** 2 * float(np.sum(self._column_variance))
        for _, block in self._blocks(self.n_features):
            residuals = self._view.of(block.points) / steps - mean
            squares = residuals.square().sum(1).to(wide)
            shares = torch.where(squares > nearest, block.weights / squares, 0.0)
            unit = residuals * torch.sqrt(shares).to(residuals)[:, None]
            with formulas.as_they_are(unit):
                formed += (unit.T @ unit).to(wide)
        return formed

    # Sweeps.

    @lack_of_memory_told()
    def sweep(self, centers: FloatArray, rule: Rule) -> Sums:
        planes, view = self._planes_of(centers), self._view
        in_blocks = self._blocks(len(centers))
        swept = (formulas.sweep(block, planes, view, rule) for _, block in in_blocks)
        added = reduce(lambda sums, more: tuple(map(torch.add, sums, more)), swept)
        points, weights, objective, inertia = map(_host, added)
        points = points / view.scale + weights[:, None] * view.origin_in_float64()
        unit = view.scale**2
        sums = Sums(points, weights, float(objective) / unit, float(inertia) / unit)
        return sums * self._weight_unit

    @lack_of_memory_told()
    def assign(self, centers: FloatArray) -> tuple[Labels, float]:
        planes, view = self._planes_of(centers), self._view
        labels, inertia = np.empty(self.n_points, dtype=np.int32), 0.0
        for rows, block in self._blocks(len(centers)):
            found, _ = formulas.nearest(block, planes, view)
            labels[rows] = found.cpu().numpy()
            inertia += float(torch.dot(block.weights, formulas.to_own(block, planes, view, found)))
        return labels, inertia / view.scale**2 * self._weight_unit

    @lack_of_memory_told()
    def spread(self, centers: FloatArray) -> Spread:
        n_centers, planes = len(centers), self._planes_of(centers)
        figures, weights = np.zeros((2, n_centers)), np.zeros(n_centers)
        for _, block in self._blocks(n_centers):
            added, of_centers = formulas.spread(block, planes, self._view)
            figures += _host(added).T
            weights += _host(of_centers)
        error, utility = figures * (self._weight_unit / self._view.scale**2)
        if n_centers == 1:
            utility = np.array([np.inf])
        return Spread(error, utility, weights * self._weight_unit)

    def sq_distances(self, centers: FloatArray) -> Matrix:
        found = [block.cpu().numpy() for _, block in self.distance_blocks(centers)]
        # Scaled by the exponent, since float32 may lack the factor where it has the products.
        exponent = -2 * round(math.log2(self._view.scale))
        return np.asarray(np.ldexp(np.concatenate(found), exponent))

    # Seeding.

    def nearness(self, centers: FloatArray, order: IndexArray | None = None) -> TorchNearness:
        return TorchNearness(self, centers, order)

    def distance_blocks(self, centers: FloatArray) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield distances in the unit of the view, some points at a time."""
        planes = self._planes_of(centers)
        for rows, block in self._blocks(len(centers)):
            yield rows, formulas.distances(block, planes, self._view)[0]

    @property
    def units(self) -> tuple[float, float]:
        """Factors of squared distances in the view, and of weights there, to the user's units."""
        return 1 / self._view.scale**2, self._weight_unit

    # Points.

    def take(self, indices: IndexArray) -> FloatArray:
        there = torch.as_tensor(indices, dtype=torch.int64, device=self._points.device)
        return np.asarray(self._points[there].cpu().double().numpy())

    def sample(self, indices: IndexArray) -> Matrix:
        """Return these points in host memory, dense."""
        return self.take(indices).astype(self.dtype)

    @property
    def elsewhere(self) -> Self | None:
        """These rows themselves, if points can move where they are opened in one memory."""
        return None if self.divergence.moves is None else self

    def together(self) -> CompiledPoints:
        """Return all points as rows in host memory."""
        everything = np.arange(self.n_points)
        return self.opened(self.sample(everything), self.sample_weight(everything))

    def opened(self, points: AnyMatrix, weights: FloatArray) -> CompiledPoints:
        """Return some of the points, which `sample` brought here, as rows in host memory."""
        given = None if np.all(weights == 1) else weights
        return open_rows(points, given, divergence=self.divergence)

    # How points and centers are planes.

    def _in_view(self, centers: FloatArray) -> FloatArray:
        return np.asarray((centers - self._view.origin_in_float64()) * self._view.scale)

    def _planes_in_view(self, centers: FloatArray) -> tuple[FloatArray, FloatArray, bool]:
        """Return slopes and lifts in the view, and whether slopes are places."""
        places = self._in_view(centers)
        return places, np.sum(places * places, axis=1), True

    def _planes_of(self, centers: FloatArray) -> Planes:
        slopes, lifts, is_euclidean = self._planes_in_view(np.asarray(centers, dtype=np.float64))
        wide = self._view.wide
        return Planes(self._there(slopes, wide), self._there(lifts, wide), is_euclidean)

    def _look_at_columns(self) -> None:
        """Compute mean and variance of the columns, and from them the view and the heights."""
        sums, largest, wide = np.zeros(self.n_features), 0.0, self._view.wide
        for rows in self._slices(1):
            block = self._points[rows].to(wide)
            sums = sums + _host(block.sum(0))
            largest = max(largest, float(block.abs().amax()))
        mean = np.asarray(sums / self.n_points)
        squares, about = np.zeros(self.n_features), self._there(mean, wide)
        for rows in self._slices(1):
            squares = squares + _host((self._points[rows].to(wide) - about).square_().sum(0))
        self._column_mean, self._column_variance = mean, np.asarray(squares / self.n_points)
        # Centered if the mean is far away, scaled if squares would leave float32.
        is_far = float(mean @ mean) > np.sum(self._column_variance)
        origin = self._there(mean) if is_far else None
        self._view = View(self._view.dtype, wide, origin, self._chosen_scale(largest))
        self._heights = self._all_heights()

    def _chosen_scale(self, largest: float) -> float:
        if largest == 0 or 1e-6 < largest < 1e6:
            return 1.0  # squares are far from the ends of float32
        # The dtype must hold a scale, and float64 its square.
        most = 126 if self._view.dtype == torch.float32 else 510
        return float(2.0 ** -max(-most, min(math.frexp(largest)[1], most)))

    def _all_heights(self) -> torch.Tensor:
        """Return the term of distances that depends only on the point: here its squared length."""
        squares = [self._view.of(self._points[rows]).square().sum(1) for rows in self._slices(1)]
        return torch.cat(squares)

    @cached_property
    def weights_there(self) -> torch.Tensor:
        """Weights over their unit, on the device, in the dtype of sums."""
        weights = np.ones(self.n_points) if self._weights is None else self._weights
        return self._there(weights, self._view.wide)

    def _there(self, values: FloatArray, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Move host values to the device, by default in the dtype of products."""
        values = np.ascontiguousarray(values)
        return torch.as_tensor(values, dtype=dtype or self._view.dtype, device=self._points.device)

    def _blocks(self, width: int) -> Iterator[tuple[slice, Block]]:
        """Yield points with `width` temporary entries each, some at a time, with their slice."""
        weights = self.weights_there
        for rows in self._slices(width):
            yield rows, Block(self._points[rows], self._heights[rows], weights[rows])

    def _slices(self, width: int) -> Iterable[slice]:
        """Return slices of points with `width` temporary entries each; the first answer stays."""
        wider = max(width, self.n_features)
        if wider not in self._n_by_width:
            device, itemsize = self._points.device, self._view.wide.itemsize
            self._n_by_width[wider] = rows_at_once(self.n_points, wider, device, itemsize)
        return blocks(self.n_points, self._n_by_width[wider])


def _allows_tf32() -> bool:
    """Return whether PyTorch's newer or older switch allows rounded products of float32."""
    # Reading the older switch is an error once the newer one was set.
    newer = getattr(torch.backends.cuda.matmul, "fp32_precision", "none")
    return newer != "ieee" if newer != "none" else torch.get_float32_matmul_precision() != "highest"


def _host(values: torch.Tensor) -> FloatArray:
    return np.asarray(values.cpu().numpy(), dtype=np.float64)


# Nearness. Draws add up masses in blocks of a fixed size on the device, and the sums of blocks on
# the host: a running sum over all points would depend on the order in which the device works.


_BLOCK = 1024


class TorchNearness:
    """Keep nearest squared distances in the unit of the rows, on their device."""

    def __init__(self, rows: TorchPoints, centers: FloatArray, order: IndexArray | None) -> None:
        self._rows = rows
        self._order = order
        self._weights = rows.weights_there
        self._nearest = torch.full_like(self._weights, torch.inf)
        self._candidates: FloatArray = np.empty((0, rows.n_features))
        if len(centers):
            self._approach(centers)

    def draw(self, uniforms: FloatArray, exponent: float = 2.0) -> IndexArray:
        """Return the first points whose cumulative mass exceeds these shares of the total."""
        padded = torch.nn.functional.pad(mass := self._mass(exponent), (0, -len(mass) % _BLOCK))
        in_blocks = padded.view(-1, _BLOCK)
        ends = np.cumsum(in_blocks.sum(1).cpu().numpy().astype(np.float64))
        wanted = np.asarray(uniforms, dtype=np.float64) * ends[-1]
        last = int(np.searchsorted(ends, ends[-1], side="left"))
        chosen = np.minimum(np.searchsorted(ends, wanted, side="right"), last)
        before = np.where(chosen > 0, ends[chosen - 1], 0.0)
        there = torch.as_tensor(chosen, device=padded.device)
        within = np.cumsum(in_blocks[there].cpu().numpy().astype(np.float64), axis=1)
        # Rounding may ask for more mass than the block has; its last point with mass is then drawn.
        is_beyond = within > (wanted - before)[:, None]
        place = np.argmax(is_beyond | (within >= within[:, -1:]), axis=1)
        drawn = np.asarray(chosen * _BLOCK + place, dtype=np.intp)
        return drawn if self._order is None else np.asarray(self._order[drawn])

    def potentials(self, candidates: IndexArray) -> FloatArray:
        self._candidates = self._rows.take(candidates)
        self._left = self._nearest.new_empty((len(self._nearest), len(candidates)))
        for rows, found in self._rows.distance_blocks(self._candidates):
            torch.minimum(found, self._nearest[rows, None], out=self._left[rows])
        left = self._weights @ self._left
        of_distance, of_weight = self._rows.units
        return np.asarray(left.cpu().numpy() * of_distance * of_weight, dtype=np.float64)

    def add(self, center: FloatArray) -> None:
        # Greedy seeding adds one of the candidates, whose distances are known.
        places = np.flatnonzero((self._candidates == center).all(axis=1))
        if len(places):
            self._nearest = self._left[:, places[0]].contiguous()
        else:
            self._approach(center[None, :])
        self._candidates = self._candidates[:0]

    def farthest(self) -> int:
        return int(self._weighted().argmax())

    def inertia(self) -> float:
        of_distance, of_weight = self._rows.units
        return float(self._weighted().sum()) * of_distance * of_weight

    def sq_dist(self, indices: IndexArray | None = None) -> FloatArray:
        chosen = self._nearest
        if indices is not None:
            chosen = chosen[torch.as_tensor(indices, dtype=torch.int64, device=chosen.device)]
        return np.asarray(chosen.cpu().numpy() * self._rows.units[0], dtype=np.float64)

    def _approach(self, centers: FloatArray) -> None:
        for rows, found in self._rows.distance_blocks(centers):
            self._nearest[rows] = torch.minimum(self._nearest[rows], found.amin(1))

    def _mass(self, exponent: float) -> torch.Tensor:
        """Return the masses of the points for a draw, in the order of the walk."""
        weighs = self._weights > 0
        farthest = torch.where(weighs, self._nearest, 0.0).amax()
        # Divided by the farthest, so that no exponent overflows.
        mass = self._weights * (self._nearest / farthest).pow_(exponent / 2)
        has_mass = (farthest > 0) & torch.isfinite(farthest)
        mass = torch.where(weighs & has_mass, mass, torch.where(has_mass, 0.0, self._weights))
        if self._order is None:
            return mass
        return mass[torch.as_tensor(self._order, dtype=torch.int64, device=mass.device)]

    def _weighted(self) -> torch.Tensor:
        """Return weight times squared distance, zero for a point of no weight at any distance."""
        return torch.where(self._weights > 0, self._weights * self._nearest, 0.0)
