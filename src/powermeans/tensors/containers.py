"""Tensors of PyTorch as arrays, and arrays as tensors on the device of the points."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import torch

from powermeans.system.containers import like_given, to_array


@to_array.register(torch.Tensor)
def _of_tensor(values: torch.Tensor, name: str | None = None) -> Any:
    """Return the tensor in host memory, at least in float32."""
    if name is not None and (fault := fault_of_tensor(values, name)) is not None:
        raise ValueError(f"{name} {fault}")
    host = values.detach().cpu()
    host = host.float() if host.is_floating_point() and host.itemsize < 4 else host
    return host.numpy(force=True)


@like_given.register(torch.Tensor)
def _on_device(given: torch.Tensor, values: Any, of: Literal["points", "centers"]) -> torch.Tensor:
    # PyTorch's default device may be another than the CPU.
    there = torch.as_tensor(np.array(values), device="cpu")
    return as_held_by(given.device.type, there).to(given.device)


def as_held_by(device_type: str, values: torch.Tensor) -> torch.Tensor:
    """Return values in float32 where the device has nothing wider."""
    is_too_wide = device_type == "mps" and values.is_floating_point() and values.itemsize > 4
    return values.float() if is_too_wide else values


def fault_of_tensor(values: torch.Tensor, name: str) -> str | None:
    """Return why a tensor cannot be used, with the way out; None if it can."""
    if values.is_nested:
        return f"is a nested tensor: pass {name}.to_padded_tensor(...), or join its parts"
    if values.device.type == "meta":
        return "is on the device meta, which stores no numbers: pass a tensor that has numbers"
    if str(values.layout) != "torch.strided":
        or_else = ", or a SciPy CSR matrix, which runs on the CPU" if name == "X" else ""
        return f"is a tensor with the layout {values.layout}: pass {name}.to_dense(){or_else}"
    if values.is_quantized:
        return f"is a quantized tensor, {values.dtype}: pass {name}.dequantize()"
    if values.requires_grad:
        return f"requires a gradient, and clustering has none: pass {name}.detach()"
    return None
