"""Rows at a device of PyTorch, which is imported where one is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse

from powermeans.divergences import Divergence
from powermeans.rows.protocol import PartRows
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
