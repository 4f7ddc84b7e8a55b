"""Rows at a device of PyTorch, which is imported where one is asked for."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.divergences import Divergence
from powermeans.host_memory import is_tensor
from powermeans.rows.protocol import PartRows
from powermeans.threads import effective_n_threads
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
    points : Tensor or ndarray of shape (n_points, n_features)
    sample_weight : (n_points,), optional
    device : str, optional
        By default that of the tensor.
    divergence : Bregman or str

    Returns
    -------
    PartRows
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
        As in `powermeans.threads.effective_n_threads`, but that None leaves PyTorch as it is.

    Returns
    -------
    context manager
    """
    where = points.device.type if device is None and is_tensor(points) else device
    if n_threads is None or where is None or where.partition(":")[0] != "cpu":
        return nullcontext()
    try:
        from powermeans.rows.torch.threads import threads_of_torch
    except ImportError:
        return nullcontext()  # that PyTorch is not there is said where it is to work
    return threads_of_torch(effective_n_threads(n_threads))
