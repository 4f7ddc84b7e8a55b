"""The containers in which numbers come: any makes an array of NumPy, and gets results back.

A container registers what makes an array of it by `to_array`, and what makes one like it of an
array by `like_given`, in one file: yours, or one that is imported when the first such type comes.
"""

import functools
import importlib
import math
import sys
from numbers import Real
from typing import Any, Literal

# Which module registers the types of a package.
_REGISTRARS = {"torch": "powermeans.tensors.containers"}
# The floating-point dtypes that NumPy has too.
_NUMPY_FLOATS = {"torch.float16", "torch.float32", "torch.float64"}


@functools.singledispatch
def to_array(values: Any, name: str | None = None) -> Any:
    """Return the numbers of a container as an array; return all else as it is.

    Raise if what errors call `name` cannot be used.
    """
    return to_array(values, name) if _registers_late(to_array, values) else values


@functools.singledispatch
def like_given(given: Any, values: Any, of: Literal["points", "centers"]) -> Any:
    """Return an array with a row for each of the points given, or of the centers, as they came."""
    return like_given(given, values, of) if _registers_late(like_given, given) else values


def _registers_late(function: Any, value: object) -> bool:
    """Import what registers the type of a value, and return whether it does so just now."""
    registrar = _REGISTRARS.get(type(value).__module__.partition(".")[0])
    if registrar is None or registrar in sys.modules:
        return False
    importlib.import_module(registrar)
    return function.dispatch(type(value)) is not function.dispatch(object)


def real(value: Any) -> float:
    """Return a number as a float for a comparison, NaN for anything else and beyond float64."""
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    is_float = is_number and (not isinstance(value, int) or abs(value) <= sys.float_info.max)
    return float(value) if is_float else math.nan


def check_number(value: Any, name: str, interval: str, way_out: str) -> None:
    """Raise unless a value is a number in an interval, such as "(0, 1]"."""
    least, most = map(float, interval[1:-1].split(","))
    number = real(value)
    is_left_out = (number == least and "(" in interval) or (number == most and ")" in interval)
    if not least <= number <= most or is_left_out:
        raise ValueError(f"{name}={value!r} must be a number in {interval}: pass {way_out}")


def check_count(value: Any, name: str, least: int, way_out: str) -> None:
    """Raise unless a value is a whole number that is not too small or large."""
    if not least <= real(value) < 2**31 or value % 1:
        raise ValueError(
            f"{name}={value!r} must be a whole number from {least} to 2**31 - 1: pass {way_out}"
        )


def check_choice(value: object, name: str, *choices: str) -> None:
    """Raise unless a value is one of these words."""
    if not isinstance(value, str) or value not in choices:
        words = " or ".join(f'"{choice}"' for choice in choices)
        raise ValueError(f"{name}={value!r:.60} is unknown: pass {words}")


def is_tensor(values: object) -> bool:
    """Return whether this is a tensor of PyTorch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(values, torch.Tensor)


def is_dask(values: object) -> bool:
    """Return whether this is a collection of Dask, or the type of one."""
    kind = values if isinstance(values, type) else type(values)
    return kind.__module__.partition(".")[0] in ("dask", "dask_expr")


def refuse_tensor_elsewhere(values: Any, name: str = "X") -> None:
    """Raise for a tensor that NumPy cannot read in place."""
    if not is_tensor(values):
        return
    fault = importlib.import_module(_REGISTRARS["torch"]).fault_of_tensor(values, name)
    if fault is not None:
        raise ValueError(f"{name} {fault}")
    is_unknown = values.is_floating_point() and str(values.dtype) not in _NUMPY_FLOATS
    if values.device.type != "cpu" or is_unknown:
        way_out = f"{name}.float().cpu().numpy()" if is_unknown else f"{name}.cpu().numpy()"
        raise ValueError(
            f"{name} is a tensor of {values.dtype} on {values.device}, and this takes arrays in "
            f"host memory only: pass {way_out}"
        )
