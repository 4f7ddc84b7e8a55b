"""Check and open points on a device of PyTorch, and return results as tensors.

PyTorch is imported only where a user passes a tensor or a device.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.divergences import Divergence
from powermeans.inputs.points import Admitted
from powermeans.rows.protocol import PartRows
from powermeans.system.host_memory import is_tensor
from powermeans.system.threads import effective_n_threads
from powermeans.types import FloatArray


def check_tensor(points: Any, device: str | None) -> None:
    """Raise where rows on the device do not take points of this form; None is the points' own."""
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
    """Admit a tensor that `check_tensor` passes, or raise saying what is wrong with it.

    Tensors of weights and initial centers must be on the device of the points. With `must_differ`,
    squared distances among the points must not underflow to zero.
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


def open_on_device(
    points: Any,
    sample_weight: FloatArray | None,
    *,
    device: str | None,
    divergence: Divergence = "squared_euclidean",
) -> PartRows:
    """Open a tensor or an array for work on a device, by default where the tensor is."""
    if sparse.issparse(points):
        raise ValueError(
            f"X is sparse, and device={device!r} takes only dense points: pass X.toarray(), or "
            "leave device out"
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
    """Limit PyTorch on the CPU to this number of threads while open; None sets no limit."""
    where = points.device.type if device is None else device
    if n_threads is None or where.partition(":")[0] != "cpu":
        return nullcontext()
    try:
        from powermeans.rows.torch.placing import threads_of_torch
    except ImportError:
        return nullcontext()  # `open_on_device` raises that PyTorch is missing
    return threads_of_torch(effective_n_threads(n_threads))


def like(values: Any, result: Any) -> Any:
    """Return a result as a tensor on the device of these values if they are a tensor."""
    if not is_tensor(values):
        return result
    torch = sys.modules["torch"]
    # PyTorch's default device may be another than the CPU.
    there = torch.as_tensor(np.array(result), device="cpu")
    return _as_held_by(values.device.type, there).to(values.device)


def _as_held_by(device_type: str, values: Any) -> Any:
    """Return values in float32 where the device has nothing wider."""
    is_too_wide = device_type == "mps" and values.is_floating_point() and values.itemsize > 4
    return values.float() if is_too_wide else values


def shares_of(distances: Iterable[Any], exponent: float) -> Iterator[Any]:
    """Yield the shares of points in centers, on their device, from blocks of distances.

    Shares are in proportion to the distance to this negative exponent, and add up to one.
    """
    from powermeans.rows.torch.formulas import shares

    return (shares(block, exponent) for block in distances)
