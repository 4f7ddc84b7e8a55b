"""Tensors at the border of the estimators: in, and out.

PyTorch is imported by whoever has made a tensor, and not before.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from powermeans.divergences import Divergence
from powermeans.input_checks import Admitted


def is_tensor(values: object) -> bool:
    """Whether this is a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def on_host(values: Any) -> Any:
    """A tensor as an array in host memory, in float32 at least; all else is itself."""
    if not is_tensor(values):
        return values
    host = values.detach().cpu()
    return (host.float() if host.is_floating_point() and host.itemsize < 4 else host).numpy()


def like(values: Any, result: Any) -> Any:
    """A result as a tensor on the device of these values, if they are a tensor."""
    if not is_tensor(values):
        return result
    torch = sys.modules["torch"]
    return torch.as_tensor(np.array(result)).to(values.device)


def admit_tensor(
    points: Any,
    sample_weight: Any,
    *,
    device: str | None,
    init: Any = None,
    n_clusters: int = 1,
    divergence: Divergence = "squared_euclidean",
) -> Admitted:
    """Let a tensor across the border, or say what is wrong with it.

    Parameters
    ----------
    points : Tensor of shape (n_points, n_features)
    sample_weight : (n_points,), optional
        As from the user; a tensor must be on the device of the points.
    device : str, optional
        That the user asks for.
    init : optional
        Of the estimator; a tensor must be on the device of the points.
    n_clusters : int
        How many points there must be at least.
    divergence : Bregman or str

    Returns
    -------
    Admitted
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
    )
    return Admitted(points, weights, float("nan"))
