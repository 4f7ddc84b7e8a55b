"""A part of the points in the memory of the process that works on it, here or on a cluster."""

from __future__ import annotations

import os
import socket
import threading
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.inputs.checks import PartFacts, check_part
from powermeans.parts.executors import Call, PartOpener, Result
from powermeans.rows.protocol import PartRows
from powermeans.sources.arrays import admitted
from powermeans.system.fingerprint import fingerprint
from powermeans.types import FloatArray, Points, SparsePoints


class WorkerPart:
    """Points and weights of a part, and the rows once these are opened.

    Pickled, copied or moved it is without its rows, which are opened where they are asked for.

    Parameters
    ----------
    points : (n_points, n_features)
        In the form that the border leaves points in.
    facts : PartFacts
        What was found when they were checked.
    package_version : str, optional
        Of the package of who asks, which must be that of the process where the rows are opened.
        By default that of this process.
    """

    def __init__(
        self,
        points: Points | SparsePoints,
        weights: FloatArray | None,
        opener: PartOpener,
        facts: PartFacts,
        package_version: str | None = None,
    ) -> None:
        self.points, self.weights = _aligned(points), _aligned(weights)
        self.opener, self.facts = opener, facts
        self.package_version = package_version or version("powermeans")
        self._rows: PartRows | None = None
        self._lock = threading.Lock()

    def perform(self, call: Call[Result], number: int, n_threads: int) -> Result:
        """What a call gives for this part; one call at a time."""
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

    def __reduce__(self) -> tuple[Any, ...]:
        given = (self.points, self.weights, self.opener, self.facts, self.package_version)
        return WorkerPart, given

    def __sizeof__(self) -> int:
        weights = 0 if self.weights is None else self.weights.nbytes
        return object.__sizeof__(self) + weights + _n_bytes(self.points)


@dataclass(frozen=True, slots=True)
class Report:
    """What is known of a part once it is held, or why it cannot be.

    Attributes
    ----------
    kind : str
        What all parts must be alike in: dense or sparse, and the dtype.
    """

    n_features: int = 0
    kind: str = ""
    facts: PartFacts | None = None
    fault: Exception | None = None

    @property
    def n_points(self) -> int:
        """Number of points in the part."""
        return 0 if self.facts is None else self.facts.n_points


def hold(
    block: Any, weights: Any, opener: PartOpener, name: str, package_version: str | None = None
) -> WorkerPart | Report:
    """Let a part across the border, or report what is wrong with it.

    Parameters
    ----------
    block : array, CSR matrix or DataFrame
        The points as they come.
    name : str
        What errors call the part.
    package_version : str, optional
        See `WorkerPart`.
    """
    try:
        points = admitted(block, name, None)
        checked = _weights_of(weights, int(points.shape[0]), name)
        facts = check_part(
            points,
            checked,
            name=name,
            has_missing=opener.has_missing,
            divergence=opener.divergence,
        )
    except ValueError as error:
        return Report(fault=error)
    return WorkerPart(points, checked, opener, facts, package_version)


def report_on(held: WorkerPart | Report) -> Report:
    """What there is to say about a part."""
    if isinstance(held, Report):
        return held
    kind = f"{'sparse' if sparse.issparse(held.points) else 'dense'} {held.points.dtype}"
    return Report(int(held.points.shape[1]), kind, held.facts)


def fingerprint_of_part(part: WorkerPart) -> str:
    """A digest of the points and weights of a part."""
    return fingerprint([part.points, part.weights])


def _weights_of(weights: Any, n_points: int, name: str) -> FloatArray | None:
    if weights is None:
        return None
    try:
        checked: FloatArray = np.ascontiguousarray(weights, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"sample_weight of {name} holds {error}: pass numbers") from None
    if checked.shape != (n_points,):
        raise ValueError(
            f"{name} has {n_points} rows and sample_weight has there the shape {checked.shape}: "
            "cut both in the same places, with one weight for each row"
        )
    return checked


def _aligned(values: Any) -> Any:
    """The array, copied where it begins at an odd address, as one from a message may do.

    NumPy and BLAS add such numbers in another order, and so to other bits.
    """
    if not sparse.issparse(values):
        return None if values is None else np.require(values, requirements="A")
    csr: Any = values
    arrays = (csr.data, csr.indices, csr.indptr)
    if all(array.flags.aligned for array in arrays):
        return csr
    aligned = tuple(np.require(array, requirements="A") for array in arrays)
    return type(csr)(aligned, shape=csr.shape)


def _n_bytes(points: Points | SparsePoints) -> int:
    if sparse.issparse(points):
        return int(points.data.nbytes + points.indices.nbytes + points.indptr.nbytes)
    return int(points.nbytes)
