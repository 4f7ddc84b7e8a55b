"""Nearness on tensors: distances to the nearest center chosen so far stay on the device.

Draws add up masses in blocks of a fixed size on the device, and the sums of blocks on the host. A
running sum over all points would depend on the order in which the device works.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
import torch

from powermeans.types import FloatArray, IndexArray

_BLOCK = 1024


class Distances(Protocol):
    """The methods of rows that nearness calls."""

    @property
    def weights_there(self) -> torch.Tensor:
        """The weights, (n_points,), on the device and in the dtype of sums."""
        ...

    @property
    def units(self) -> tuple[float, float]:
        """Factors of squared distances and of weights to the user's units."""
        ...

    def distance_blocks(self, centers: FloatArray) -> Iterator[tuple[slice, torch.Tensor]]:
        """Yield all squared distances, some points at a time, in the dtype of sums."""
        ...

    def take(self, indices: IndexArray) -> FloatArray:
        """Return these points."""
        ...


class TorchNearness:
    """Keep nearest squared distances in the unit of the rows, on their device."""

    def __init__(self, rows: Distances, centers: FloatArray, order: IndexArray | None) -> None:
        self._rows = rows
        self._host_order = order
        self._weights = rows.weights_there
        self._order = None
        if order is not None:
            self._order = torch.as_tensor(order, dtype=torch.int64, device=self._weights.device)
        self._nearest = torch.full_like(self._weights, torch.inf)
        if len(centers):
            self._approach(centers)

    def draw(self, uniforms: FloatArray, exponent: float = 2.0) -> IndexArray:
        drawn = _Walk(self._mass(exponent)).at(uniforms)
        return drawn if self._host_order is None else np.asarray(self._host_order[drawn])

    def potentials(self, candidates: IndexArray) -> FloatArray:
        left = self._weights.new_zeros(len(candidates))
        for rows, found in self._rows.distance_blocks(self._rows.take(candidates)):
            nearer = torch.minimum(found, self._nearest[rows, None])
            left += self._weights[rows] @ nearer
        of_distance, of_weight = self._rows.units
        return np.asarray(left.cpu().numpy() * of_distance * of_weight, dtype=np.float64)

    def add(self, center: FloatArray) -> None:
        self._approach(center[None, :])

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

    def choose(self, candidates: IndexArray) -> int:
        """Add the best candidate as a center in one pass over the points, and return it."""
        found = self._nearest.new_empty((len(self._nearest), len(candidates)))
        for rows, block in self._rows.distance_blocks(self._rows.take(candidates)):
            torch.minimum(block, self._nearest[rows, None], out=found[rows])
        best = int((self._weights @ found).argmin())
        self._nearest = found[:, best].contiguous()
        return int(candidates[best])

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
        return mass if self._order is None else mass[self._order]

    def _weighted(self) -> torch.Tensor:
        """Return weight times squared distance, zero for a point of no weight at any distance."""
        return torch.where(self._weights > 0, self._weights * self._nearest, 0.0)


class _Walk:
    """Cumulative masses in two levels; only the upper level leaves the device."""

    def __init__(self, mass: torch.Tensor) -> None:
        n_blocks = -(-len(mass) // _BLOCK)
        padded = torch.nn.functional.pad(mass, (0, n_blocks * _BLOCK - len(mass)))
        self._blocks = padded.view(n_blocks, _BLOCK)
        totals = self._blocks.sum(1).cpu().numpy().astype(np.float64)
        self._cumulative = np.cumsum(totals)

    def at(self, uniforms: FloatArray) -> IndexArray:
        """Return the first index whose cumulative mass exceeds each number's share of the total."""
        ends = self._cumulative
        wanted = np.asarray(uniforms, dtype=np.float64) * ends[-1]
        last = int(np.searchsorted(ends, ends[-1], side="left"))
        chosen = np.minimum(np.searchsorted(ends, wanted, side="right"), last)
        before = np.where(chosen > 0, ends[chosen - 1], 0.0)
        there = torch.as_tensor(chosen, device=self._blocks.device)
        within = np.cumsum(self._blocks[there].cpu().numpy().astype(np.float64), axis=1)
        # Rounding may ask for more mass than the block has; its last point with mass is then drawn.
        is_beyond = within > (wanted - before)[:, None]
        is_last = within >= within[:, -1:]
        place = np.argmax(is_beyond | is_last, axis=1)
        return np.asarray(chosen * _BLOCK + place, dtype=np.intp)
