"""The compiled core, as `native/bindings.cpp` exposes it."""

from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from powermeans.types import FloatArray, IndexArray, Labels, Matrix

class Team:
    """Threads that live as long as one fit."""

    def __init__(self, n_threads: int) -> None: ...
    @property
    def n_threads(self) -> int: ...
    @property
    def stripes_by_worker(self) -> list[int]: ...

class Moments:
    """What is to be known of dense points before they are swept over."""

# Weighted points, weights, objective, inertia, number of distances.
_Swept = tuple[FloatArray, FloatArray, float, float, float]

# Factors of the terms of a convex function, as in `powermeans.divergences.Phi`.
_Phi = tuple[float, float, float, float, float]

class CompiledPoints:
    @property
    def scale(self) -> float: ...
    def origin(self) -> FloatArray: ...
    def distances_to_own(
        self, phi: _Phi, centers: FloatArray, labels: Labels, distances: FloatArray
    ) -> None:
        """Write the divergence of each point from its own center, of which no digits cancel."""

    def use_heights(self, heights: FloatArray) -> None:
        """From now on distances are heights + lifts - <points - origin, slopes>.

        Centers are then of shape (n_centers, n_features + 1): slopes, and lifts.
        """

    def sweep_hard(self, centers: FloatArray) -> _Swept: ...
    def sweep_power(
        self, centers: FloatArray, power: float, mean_exponent: float, mean_unit: float
    ) -> _Swept: ...
    def sweep_gaussian(
        self, centers: FloatArray, variance: float, shares: FloatArray | None
    ) -> _Swept: ...
    def sweep_priced(
        self,
        centers: FloatArray,
        prices: FloatArray,
        labels: Labels | None,
        margins: FloatArray | None,
    ) -> _Swept: ...
    def spread(self, centers: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]: ...
    def sweep_nearby(self, centers: FloatArray, neighbours: Labels, labels: Labels) -> _Swept:
        """Sweep as `sweep_hard` does, but compare each point only with neighbours of its center.

        Writes the new labels. Only dense points have this and the four below.
        """

    def spread_nearby(
        self, centers: FloatArray, neighbours: Labels, labels: Labels
    ) -> tuple[FloatArray, FloatArray, FloatArray]: ...
    def power_nearby(
        self, centers: FloatArray, neighbours: Labels, labels: Labels, power: float
    ) -> _Swept: ...
    def list_nearby(self, centers: FloatArray, prices: FloatArray | None, lists: Labels) -> None:
        """List the centers nearest to each, with itself first; the points are the centers."""

    def priced_nearby(
        self,
        centers: FloatArray,
        neighbours: Labels,
        labels: Labels,
        prices: FloatArray,
        margins: FloatArray,
    ) -> _Swept: ...
    def near_nearby(
        self,
        centers: FloatArray,
        neighbours: Labels,
        labels: Labels,
        prices: FloatArray,
        reach: float,
        listed: Labels,
        distances: FloatArray,
    ) -> None: ...
    def list_near(
        self,
        centers: FloatArray,
        prices: FloatArray,
        labels: Labels,
        reach: float,
        listed: Labels,
        distances: FloatArray,
    ) -> None: ...
    def assign(
        self, centers: FloatArray, labels: Labels, margins: FloatArray | None = None
    ) -> float: ...
    def sq_distances(self, centers: FloatArray, distances: Matrix) -> None: ...
    def potentials(self, centers: FloatArray, nearest: FloatArray) -> FloatArray: ...
    def approach(self, centers: FloatArray, nearest: FloatArray) -> None: ...
    def draw(
        self,
        nearest: FloatArray,
        order: IndexArray | None,
        uniforms: FloatArray,
        exponent: float,
        indices: NDArray[np.int64],
    ) -> None: ...
    def greedy_seeds(
        self,
        order: IndexArray,
        first: float,
        others: FloatArray,
        indices: NDArray[np.int64],
        seconds: float = ...,
    ) -> int: ...
    def further_seeds(
        self,
        order: IndexArray,
        nearest: FloatArray,
        least_share: float,
        others: FloatArray,
        indices: NDArray[np.int64],
        seconds: float,
    ) -> int: ...
    def expect_few_sweeps(self) -> None:
        """From now on take no shortcuts that only many sweeps repay."""

    def present(
        self,
        order: IndexArray | None,
        rates: FloatArray | None,
        weight_unit: float,
        centers: FloatArray,
        counts: FloatArray,
    ) -> float: ...
    def move_points(
        self,
        phi: _Phi,
        order: IndexArray,
        max_passes: int,
        labels: Labels,
        centers: FloatArray,
    ) -> int:
        """Move single points where that lowers the inertia, and return how many times."""

    def swap_centers(
        self,
        phi: _Phi,
        order: IndexArray,
        most_in_vain: int,
        most_distances: float,
        least_distances: float,
        least_gain: float,
        labels: Labels,
        centers: FloatArray,
    ) -> tuple[int, int, float]:
        """Swap centers, and return how many swaps were tried, how many gained, and distances."""

class _Dense(CompiledPoints):
    def __init__(
        self,
        values: Any,
        sample_weight: FloatArray | None,
        team: Team,
        known: Moments | None = None,
    ) -> None: ...
    def moments(self) -> Moments: ...
    def mean(self) -> FloatArray: ...
    def variance(self) -> FloatArray: ...

class _Csr(CompiledPoints):
    def __init__(
        self,
        values: Any,
        columns: NDArray[np.int32],
        row_starts: NDArray[np.int64],
        n_features: int,
        largest: float,
        sample_weight: FloatArray | None,
        team: Team,
    ) -> None: ...

class DenseFloat(_Dense):
    @overload
    def __init__(
        self, values: Matrix, sample_weight: FloatArray | None, team: Team, known: Moments | None
    ) -> None: ...
    @overload
    def __init__(
        self,
        bytes: NDArray[np.uint8],
        type: str,
        sample_weight: FloatArray | None,
        team: Team,
        known: Moments | None,
    ) -> None:
        """Take the bytes of rows of float16, bfloat16, int8 or uint8, as `type` says."""

class DenseDouble(_Dense): ...
class CsrFloat(_Csr): ...
class CsrDouble(_Csr): ...

FEW_FEATURES: int

def instruction_set() -> str: ...
def instruction_sets() -> list[str]: ...
def takes_shortcuts() -> bool: ...
def take_shortcuts(taken: bool) -> None: ...
def thread_limit() -> int: ...
def transport(
    starts: NDArray[np.int64],
    choices: NDArray[np.int32],
    distances: FloatArray,
    weights: FloatArray | None,
    least_sizes: FloatArray,
    most_sizes: FloatArray,
    mean_size: float,
    curvature: float,
    labels: Labels,
    sizes: FloatArray,
    prices: FloatArray,
) -> float:
    """Meet the wished sizes at least cost, and return by how much weight they miss the limits."""

def divide_line(values: FloatArray, weights: FloatArray, starts: IndexArray) -> None:
    """Divide rising values into the runs with the least sum of squares."""

def log(values: Matrix, results: Matrix) -> None: ...
def exp(values: Matrix, results: Matrix) -> None: ...
