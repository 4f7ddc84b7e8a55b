"""Nearness on tensors: distances to the nearest center chosen so far stay on the device.

Draws add up masses in blocks of a fixed size on the device, and the sums of blocks on the host. A
running sum over all points would depend on the order in which the device works.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from powermeans.types import FloatArray, IndexArray

if TYPE_CHECKING:
    from powermeans.tensors.rows import TorchRows

_BLOCK = 1024


class TorchNearness:
    """Keep nearest squared distances in the unit of the rows, on their device."""

    def __init__(self, rows: TorchRows, centers: FloatArray, order: IndexArray | None) -> None:
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
