"""How much points belong to centers, computed where their distances are."""

from __future__ import annotations

import math

import torch


def shares(sq_dist: torch.Tensor, exponent: float) -> torch.Tensor:
    """Shares y_j^e / sum_l y_l^e of each point; they add to one.

    Memberships at a power s have the exponent s - 1 (`powermeans.power_mean.memberships`).

    Parameters
    ----------
    sq_dist : Tensor of shape (n_points, n_centers)
        Not negative; zeros share the point equally.
    exponent : float
        Negative; at -inf the first of the least distances takes all.

    Returns
    -------
    Tensor of shape (n_points, n_centers)
        Of float64 where the device has it.
    """
    wide = sq_dist.to(torch.float32 if sq_dist.device.type == "mps" else torch.float64)
    if exponent == -math.inf:
        return torch.zeros_like(wide).scatter_(1, wide.argmin(1)[:, None], 1.0)
    # 0 / 0 is at a center, y / 0 infinitely farther away than it.
    ratios = wide / wide.amin(1, keepdim=True)
    logs = ratios.nan_to_num_(nan=1.0, posinf=math.inf).log_()
    return torch.softmax(logs.mul_(exponent), dim=1)
