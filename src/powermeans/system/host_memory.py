"""Tensors of PyTorch where arrays are wanted: brought to host memory, or refused with a way out.

PyTorch is imported by whoever has made a tensor, and not before.
"""

from __future__ import annotations

import sys
from typing import Any

# Floating point numbers that NumPy knows as well.
_OF_ARRAYS = {"torch.float16", "torch.float32", "torch.float64"}


def is_tensor(values: object) -> bool:
    """Whether this is a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def on_host(values: Any) -> Any:
    """A tensor as an array in host memory, in float32 at least; all else is itself."""
    if not is_tensor(values):
        return values
    host = values.detach().cpu()
    host = host.float() if host.is_floating_point() and host.itemsize < 4 else host
    return host.numpy(force=True)


def brought_to_host(values: Any, name: str) -> Any:
    """The same as `on_host` for an argument of the user, or an error that says what is wrong."""
    if is_tensor(values) and (fault := fault_of_tensor(values, name)) is not None:
        raise ValueError(f"{name} {fault}")
    return on_host(values)


def fault_of_tensor(values: Any, name: str) -> str | None:
    """Why a tensor has no numbers in rows and columns to be worked with, and the way out."""
    if values.is_nested:
        return f"is a nested tensor: pass {name}.to_padded_tensor(...), or its parts joined"
    if values.device.type == "meta":
        return "is on the device meta, which holds no numbers: pass a tensor that has some"
    if str(values.layout) != "torch.strided":
        or_else = ", or a SciPy CSR matrix, which runs on the CPU" if name == "X" else ""
        return f"is a tensor with the layout {values.layout}: pass {name}.to_dense(){or_else}"
    if values.is_quantized:
        return f"is a quantized tensor, {values.dtype}: pass {name}.dequantize()"
    if values.requires_grad:
        return (
            f"requires a gradient, and clustering has none: pass {name}.detach(), which copies "
            "nothing"
        )
    return None


def refuse_tensor_elsewhere(values: Any, name: str = "X") -> None:
    """Raise for a tensor that is no array in host memory, where nothing but arrays is taken.

    Parameters
    ----------
    values : object
        Anything; a tensor that NumPy takes as it is passes.
    name : str
        What the error calls it.
    """
    if not is_tensor(values):
        return
    if (fault := fault_of_tensor(values, name)) is not None:
        raise ValueError(f"{name} {fault}")
    is_unknown = values.is_floating_point() and str(values.dtype) not in _OF_ARRAYS
    if values.device.type != "cpu" or is_unknown:
        way_out = f"{name}.float().cpu().numpy()" if is_unknown else f"{name}.cpu().numpy()"
        raise ValueError(
            f"{name} is a tensor of {values.dtype} on {values.device}, and this takes arrays in "
            f"host memory alone: pass {way_out}"
        )
