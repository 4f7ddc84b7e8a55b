"""Rows at a device of PyTorch, which is imported where one is asked for."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.divergences import Divergence
from powermeans.inputs.checks import Admitted
from powermeans.rows.protocol import PartRows
from powermeans.system.host_memory import is_tensor, on_host
from powermeans.system.threads import effective_n_threads
from powermeans.types import FloatArray


def open_on_device(
    points: Any,
    sample_weight: FloatArray | None,
    *,
    device: str | None,
    divergence: Divergence = "squared_euclidean",
) -> PartRows:
    """The rows of a tensor, or of an array that is to be worked on at a device.

    Parameters
    ----------
    device : str, optional
        By default that of the tensor.
    """
    if sparse.issparse(points):
        raise ValueError(
            f"X is sparse, and device={device!r} has rows for dense points alone: pass "
            "X.toarray(), or leave device out"
        )
    try:
        import powermeans.rows.torch as tensor_rows
    except ImportError as error:
        raise ImportError(
            f"device={device!r} needs PyTorch, which cannot be imported ({error}): "
            'pip install "powermeans[gpu]"'
        ) from error
    tensor = tensor_rows.from_array(points) if isinstance(points, np.ndarray) else points
    there = tensor_rows.admission.device_for(tensor, device)
    tensor_rows.admission.check_form(tensor, there)
    return tensor_rows.open_tensor(tensor, sample_weight, divergence=divergence, device=there)


def threads_at(
    points: Any, device: str | None, n_threads: int | None
) -> AbstractContextManager[None]:
    """While this is open, PyTorch takes so many threads, where it is on the CPU that it works.

    Parameters
    ----------
    points : object
        A tensor, or what else the user has.
    device : str, optional
        That the user asks for; by default that of a tensor.
    n_threads : int, optional
        As in `effective_n_threads`, except that None leaves PyTorch as it is.
    """
    where = points.device.type if device is None and is_tensor(points) else device
    if n_threads is None or where is None or where.partition(":")[0] != "cpu":
        return nullcontext()
    try:
        from powermeans.rows.torch.placing import threads_of_torch
    except ImportError:
        return nullcontext()  # that PyTorch is not there is said where it is to work
    return threads_of_torch(effective_n_threads(n_threads))


__all__ = ["admit_tensor", "check_tensor", "is_tensor", "like", "on_host", "shares_of"]


def like(values: Any, result: Any) -> Any:
    """A result as a tensor on the device of these values, if they are a tensor."""
    if not is_tensor(values):
        return result
    torch = sys.modules["torch"]
    # Said, since PyTorch's default device may be another.
    there = torch.as_tensor(np.array(result), device="cpu")
    return _as_held_by(values.device.type, there).to(values.device)


def _as_held_by(device_type: str, values: Any) -> Any:
    """In float32 where the device has nothing wider."""
    is_too_wide = device_type == "mps" and values.is_floating_point() and values.itemsize > 4
    return values.float() if is_too_wide else values


def shares_of(distances: Iterable[Any], exponent: float) -> Iterator[Any]:
    """Of blocks of distances to centers, how much points belong to these, where the blocks are.

    Parameters
    ----------
    distances : iterable of Tensor of shape (n_points, n_centers)
    exponent : float
        Negative, of the distances.

    Yields
    ------
    Tensor of shape (n_points, n_centers)
        Each row adds up to one.
    """
    from powermeans.rows.torch.formulas import shares

    return (shares(block, exponent) for block in distances)


def check_tensor(points: Any, device: str | None) -> None:
    """Raise where points have no form that rows take at their device, or at that asked for."""
    from powermeans.rows.torch import admission

    admission.check_numbers(points)
    admission.check_form(points, admission.device_for(points, device))


def admit_tensor(
    points: Any,
    sample_weight: Any,
    *,
    device: str | None,
    init: Any = None,
    n_clusters: int = 1,
    divergence: Divergence = "squared_euclidean",
    must_differ: bool = False,
) -> Admitted:
    """Let a tensor across the border, or say what is wrong with it.

    Parameters
    ----------
    points : Tensor of shape (n_points, n_features)
        Of a form that `check_tensor` lets pass.
    sample_weight : (n_points,), optional
        As from the user; a tensor must be on the device of the points.
    device : str, optional
        That the user asks for.
    init : optional
        Of the estimator; a tensor must be on the device of the points.
    n_clusters : int
        How many points there must be at least.
    must_differ : bool
        Whether squared distances among the points must not vanish.
    """
    from powermeans.rows.torch import admission

    weights = admission.admit_weights(sample_weight, points)
    admission.admit_init(init, points)
    admission.admit_points(
        points,
        device=admission.device_for(points, device),
        n_clusters=n_clusters,
        total_weight=None if weights is None else float(weights.sum()),
        divergence=divergence,
        must_differ=must_differ,
    )
    return Admitted(points, weights, float("nan"))
