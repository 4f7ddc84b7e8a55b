"""Values that are not in host memory; tensors where arrays are needed are copied there, or refused.

This imports neither PyTorch nor Dask: whoever passes a tensor has done so.
"""

from __future__ import annotations

import sys
from typing import Any

# The floating-point dtypes that NumPy has too.
_NUMPY_FLOATS = {"torch.float16", "torch.float32", "torch.float64"}


def is_tensor(values: object) -> bool:
    """Return whether this is a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def is_dask(values: object) -> bool:
    """Return whether this is a collection of Dask, or the type of one."""
    kind = values if isinstance(values, type) else type(values)
    return kind.__module__.partition(".")[0] in ("dask", "dask_expr")


def on_host(values: Any) -> Any:
    """Return a tensor as an array in host memory, at least in float32; return all else as it is."""
    if not is_tensor(values):
        return values
    host = values.detach().cpu()
    host = host.float() if host.is_floating_point() and host.itemsize < 4 else host
    return host.numpy(force=True)


def brought_to_host(values: Any, name: str) -> Any:
    """Return an argument of the user as `on_host` does; raise if its tensor cannot be used."""
    if is_tensor(values) and (fault := fault_of_tensor(values, name)) is not None:
        raise ValueError(f"{name} {fault}")
    return on_host(values)


def fault_of_tensor(values: Any, name: str) -> str | None:
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


def refuse_tensor_elsewhere(values: Any, name: str = "X") -> None:
    """Raise for a tensor that NumPy cannot read in place."""
    if not is_tensor(values):
        return
    if (fault := fault_of_tensor(values, name)) is not None:
        raise ValueError(f"{name} {fault}")
    is_unknown = values.is_floating_point() and str(values.dtype) not in _NUMPY_FLOATS
    if values.device.type != "cpu" or is_unknown:
        way_out = f"{name}.float().cpu().numpy()" if is_unknown else f"{name}.cpu().numpy()"
        raise ValueError(
            f"{name} is a tensor of {values.dtype} on {values.device}, and this takes arrays in "
            f"host memory only: pass {way_out}"
        )
