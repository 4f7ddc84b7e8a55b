"""The same numbers in other containers."""

import array
import decimal
import fractions
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy import sparse

from tests.attacks.numbers import forms, sparse_forms


class Subclass(np.ndarray):
    """An array with a name of its own."""


@dataclass
class Arraylike:
    """Something that NumPy can read."""

    points: Any

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.asarray(self.points, dtype=dtype)


def mapped(points: Any, folder: Path) -> Any:
    np.save(folder / "points.npy", points)
    return np.load(folder / "points.npy", mmap_mode="r")


def polars_frame(points: Any) -> Any:
    import polars

    return polars.DataFrame({f"x{f}": column for f, column in enumerate(points.T)})


def containers(points: Any, folder: Path) -> dict[str, Callable[[], Any]]:
    """Return makers of containers that hold these numbers of float64, by their names."""
    frame, arrays = pd.DataFrame(points).add_prefix("x"), forms(points) | sparse_forms(points)
    # Among categories, zero has one sign.
    unsigned = frame.columns[~np.any((points == 0) & np.signbit(points), axis=0)]
    return {
        **{name: (lambda it=it: it) for name, it in arrays.items()},
        "subclass": lambda: points.view(Subclass),
        "matrix": lambda: np.asmatrix(points),
        "masked": lambda: np.ma.masked_array(points, mask=False),
        "memory map": lambda: mapped(points, folder),
        "wider than float64": lambda: points.astype(np.longdouble),
        "complex": lambda: points.astype(complex),
        "objects": lambda: points.astype(object),
        "text": lambda: points.astype(str),
        "tuples": lambda: tuple(map(tuple, points.tolist())),
        "arrays in a list": lambda: list(points),
        "buffers": lambda: [array.array("d", row) for row in points.tolist()],
        "Decimal": lambda: [[decimal.Decimal(x) for x in row] for row in points.tolist()],
        "Fraction": lambda: [[fractions.Fraction(x) for x in row] for row in points.tolist()],
        "__array__": lambda: Arraylike(points),
        "memoryview": lambda: memoryview(np.ascontiguousarray(points)),
        "frame": lambda: frame,
        "frame of objects": lambda: frame.astype(object),
        "nullable frame": lambda: frame.astype("Float64"),
        "Arrow-backed frame": lambda: frame.astype(pd.ArrowDtype(pa.float64())),
        "sparse frame": lambda: frame.astype(pd.SparseDtype("float64", 0.0)),
        "categories": lambda: frame.astype(dict.fromkeys(unsigned, "category")),
        "frame with an index": lambda: frame.set_index(pd.Index(range(5, 5 + len(frame)))),
        "Arrow table": lambda: pa.Table.from_pandas(frame, preserve_index=False),
        "record batch": lambda: pa.RecordBatch.from_pandas(frame, preserve_index=False),
        "Polars": lambda: polars_frame(points),
        "LIL": lambda: sparse.lil_matrix(points),
        "DOK": lambda: sparse.dok_array(points),
        "BSR": lambda: sparse.bsr_matrix(points),
        "DIA": lambda: sparse.dia_matrix(points),
    }
