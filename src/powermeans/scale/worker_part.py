"""A part of the points in the process that works on it, here or on a cluster."""

import os
import socket
import threading
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.points.checks.parts import PartFacts, check_part
from powermeans.points.compiled import CompiledPoints
from powermeans.scale.arrays import admitted, admitted_weights
from powermeans.scale.executors import Call, PartOpener, Result
from powermeans.types import AnyMatrix, FloatArray


class WorkerPart:
    """Checked points and weights of a part, opened as rows on the first call.

    Copies and pickles leave the rows out. The process that opens the rows must have the
    `package_version` of the process that runs the fit.
    """

    def __init__(
        self,
        points: AnyMatrix,
        weights: FloatArray | None,
        opener: PartOpener,
        facts: PartFacts,
        package_version: str | None = None,
    ) -> None:
        self.points, self.weights = _aligned(points), _aligned(weights)
        self.opener, self.facts = opener, facts
        self.package_version = package_version or version("powermeans")
        self._rows: CompiledPoints | None = None
        self._lock = threading.Lock()

    def perform(self, call: Call[Result], number: int, n_threads: int) -> Result:
        """Return the result of a call on this part; calls wait for each other."""
        with self._lock:
            if self._rows is None:
                self._check_version()
                self._rows = self.opener.open(self.points, self.weights, n_threads=n_threads)
            return call(self._rows, number)

    def _check_version(self) -> None:
        if (ours := version("powermeans")) != self.package_version:
            raise RuntimeError(
                f"the process {os.getpid()} on {socket.gethostname()} has powermeans {ours} and "
                f"the fit is run by {self.package_version}, so its sums may not be the same: "
                f"install powermeans=={self.package_version} there and start the worker anew"
            )

    @property
    def n_features(self) -> int:
        """Number of columns."""
        return int(self.points.shape[1])

    @property
    def kind(self) -> str:
        """The kind of the points, which all parts must share."""
        return f"{'sparse' if sparse.issparse(self.points) else 'dense'} {self.points.dtype}"

    def __reduce__(self) -> tuple[Any, ...]:
        given = (self.points, self.weights, self.opener, self.facts, self.package_version)
        return WorkerPart, given

    def __sizeof__(self) -> int:
        arrays = [*_arrays_of(self.points), *_arrays_of(self.weights)]
        return object.__sizeof__(self) + sum(int(array.nbytes) for array in arrays)


def make_worker_part(
    block: Any, weights: Any, opener: PartOpener, name: str, package_version: str | None = None
) -> WorkerPart | ValueError:
    """Return a checked part, or its fault, in which it is called `name`."""
    try:
        points = admitted(block, name, None)
        checked = admitted_weights(weights, int(points.shape[0]), name)
        how: dict[str, Any] = {"has_missing": opener.has_missing, "divergence": opener.divergence}
        facts = check_part(points, checked, name=name, **how)
    except ValueError as error:
        return error
    return WorkerPart(points, checked, opener, facts, package_version)


def _aligned(values: Any) -> Any:
    """Return the array, copied if it is not aligned, as one from a message may be.

    NumPy and BLAS add unaligned numbers in another order, which changes bits.
    """
    if all(array.flags.aligned for array in _arrays_of(values)):
        return values
    aligned = tuple(np.require(array, requirements="A") for array in _arrays_of(values))
    is_dense = isinstance(values, np.ndarray)
    return aligned[0] if is_dense else type(values)(aligned, shape=values.shape)


def _arrays_of(values: Any) -> list[Any]:
    if isinstance(values, np.ndarray):
        return [values]
    return [] if values is None else [values.data, values.indices, values.indptr]
