"""Where and how sweeps are computed."""

from __future__ import annotations

from typing import NamedTuple


class Placement(NamedTuple):
    """Where and how sweeps are computed at a device of PyTorch.

    Attributes
    ----------
    device : str
    kernel : str
        "triton", "plain", or what does which.
    precision : str
        Of the points, and of the products.
    streamed : bool
        Whether each sweep brings the points to the device anew.
    """

    device: str
    kernel: str
    precision: str
    streamed: bool
