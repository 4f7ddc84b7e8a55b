"""Open PyTorch tensors, which are worked on where they are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import ArrayLike

from powermeans.points.checks.centers import check_centers
from powermeans.points.needs import Needs
from powermeans.points.opening import InMemory, open_points
from powermeans.system.threads import effective_n_threads
from powermeans.tensors.admission import admit_tensor, check_tensor
from powermeans.tensors.divergences import open_tensor
from powermeans.tensors.memory import threads_of_torch
from powermeans.types import FloatArray, Points


@dataclass(frozen=True, slots=True)
class InTensor(InMemory):
    """Points in a tensor; what is found becomes tensors on its device.

    As a context manager it limits the threads of PyTorch on the CPU.
    """

    _limits: ExitStack = field(default_factory=ExitStack)

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.rows.dtype

    def distances(self, centers: Points) -> Any:
        """Return distances on the device."""
        assert self.needs is not None, "predictions are for points that the door opened"
        rows: Any = self.rows
        checked = check_centers(centers, self.n_features)
        is_squared = self.needs.measure.divergence.is_squared
        return rows.distances_there(checked, is_squared=is_squared)

    def shares(
        self, centers: Points, memberships: Callable[[FloatArray], FloatArray], exponent: float
    ) -> Any:
        rows: Any = self.rows
        return rows.shares_there(check_centers(centers, self.n_features), exponent)

    @property
    def noted(self) -> dict[str, Any] | None:
        """Attributes that describe the columns."""
        return {"n_features_in_": self.n_features}

    def as_given(self, values: Any) -> Any:
        points: Any = self.points
        return like(points, values)

    def __enter__(self) -> Self:
        points: Any = self.points
        n_threads = None if self.needs is None else self.needs.measure.n_threads
        if n_threads is not None and points.device.type == "cpu":
            self._limits.enter_context(threads_of_torch(effective_n_threads(n_threads)))
        return self

    def __exit__(self, *error: object) -> None:
        self._limits.close()


def like(points: torch.Tensor, values: Any) -> torch.Tensor:
    """Return a result as a tensor on the device of the points."""
    # PyTorch's default device may be another than the CPU.
    there = torch.as_tensor(np.array(values), device="cpu")
    return as_held_by(points.device.type, there).to(points.device)


def as_held_by(device_type: str, values: torch.Tensor) -> torch.Tensor:
    """Return values in float32 where the device has nothing wider."""
    is_too_wide = device_type == "mps" and values.is_floating_point() and values.itemsize > 4
    return values.float() if is_too_wide else values


@open_points.register(torch.Tensor)
def _open_tensor(X: Any, sample_weight: ArrayLike | None, needs: Needs) -> InTensor:
    reason = needs.refusals.tensors
    if needs.measure.has_missing:
        reason = 'missing="observed" has no rows for tensors'
    if reason is not None:
        raise ValueError(
            f"X is a tensor, but {reason}: pass X.cpu().numpy(), which runs on the CPU"
        )
    if needs.known is not None:
        needs.known.refuse_unscaled()
    check_tensor(X)
    if needs.known is not None:
        needs.known.check_width(int(X.shape[1]), needs.name)
    admitted = admit_tensor(
        X,
        sample_weight,
        init=needs.fit.init,
        n_clusters=needs.fit.n_points,
        must_differ=needs.fit.must_differ,
    )
    rows = open_tensor(admitted.points, admitted.weights, divergence=needs.measure.divergence)
    return InTensor(admitted.points, admitted.weights, rows, needs=needs)
