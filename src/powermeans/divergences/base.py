"""What every divergence says of itself, so that no other file has to know it by its name."""

from __future__ import annotations

import abc
from typing import ClassVar, NamedTuple, Self

import numpy as np

from powermeans.divergences.chunks import as_rows
from powermeans.system.saved_classes import saved
from powermeans.types import AnyMatrix, Chunks, FloatArray


class Phi(NamedTuple):
    """A convex function, up to an affine one: a sum of terms by which compiled code moves points.

    Points are positive numbers, or also zeros with `x_log_x`; any numbers with `square` or `length`
    alone.

    Parameters
    ----------
    square, x_log_x, minus_log, inverse : float, default=0.0
        Factors of x^2, x log x, -log x and 1 / x, which are added up over the features.
    length : float, default=0.0
        Factor of the length of the point, without other terms.

    See Also
    --------
    Separable : Divergences whose class says it as `moves`.

    Examples
    --------
    >>> from powermeans.divergences import Gamma, Phi
    >>> Gamma(2.0).moves == Phi(minus_log=2.0)
    True
    """

    square: float = 0.0
    x_log_x: float = 0.0
    minus_log: float = 0.0
    inverse: float = 0.0
    length: float = 0.0


class Divergence(abc.ABC):
    """A distance between a point and a center, with what the package may do by it.

    A class derived from another says anew its `names`, `moves` and `adds_nothing_for_zeros`, since
    they may be false for other formulas.

    See Also
    --------
    Separable : A divergence of your own that is a sum over the features.

    Examples
    --------
    >>> from powermeans.divergences import Manhattan, Poisson
    >>> Poisson.names, Poisson().needs_all_points
    (('poisson', 'kl'), None)
    >>> Manhattan().needs_all_points
    'has medians for centers, and medians of parts do not add up'
    """

    names: ClassVar[tuple[str, ...]] = ()
    """What users may type instead of the class without arguments."""
    differences: ClassVar[str] = ""
    """By what two measurements of the same thing differ where it is right."""
    wanted: ClassVar[str] = "finite numbers"
    """Points that it takes, in words."""
    takes_sparse: ClassVar[bool] = True
    takes_missing: ClassVar[bool] = False
    depends_on_scale: ClassVar[bool] = False
    """Whether a column in a smaller unit, which has larger numbers, counts more."""
    is_squared: ClassVar[bool] = False
    """Whether it is the square of the distance between a point and a center."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name in {"names", "moves", "adds_nothing_for_zeros"} - vars(cls).keys():
            setattr(cls, name, vars(Divergence)[name])
        if cls.names and cls.__module__.startswith("powermeans."):
            saved(cls)

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the divergence for which this one of its names stands."""
        return cls()

    @property
    def is_of_a_user(self) -> bool:
        """Whether its formulas are not those of this package."""
        return not type(self).__module__.startswith("powermeans.")

    @property
    def is_learned(self) -> bool:
        """Whether a fit learns its parameters."""
        return False

    @property
    def moves(self) -> Phi | None:
        """By which convex function of the points, as `as_moved` returns them, they move.

        With None, compiled code cannot move single points or swap centers; a search then adds and
        removes centers.
        """
        return None

    @property
    def adds_nothing_for_zeros(self) -> bool:
        """Whether features are alike, and those that are zero everywhere change no distance."""
        return False

    @property
    def needs_all_points(self) -> str | None:
        """Why sums over parts of the points do not do, in words; None where they do."""
        return None

    @abc.abstractmethod
    def in_chunks(self, points: AnyMatrix, centers: FloatArray) -> Chunks:
        """Yield the rows of `pairwise`, some points at a time, each with its slice of points."""

    def pairwise(self, points: AnyMatrix, centers: FloatArray) -> FloatArray:
        """Compute the distance of every point to every center, by the definition.

        The result, (n_points, n_centers), is of float64 or wider.
        """
        points, centers = as_rows(points), np.asarray(centers)
        precision = np.result_type(points.dtype, centers.dtype, np.float64)
        result = np.empty((points.shape[0], len(centers)), precision)
        for rows, distances in self.in_chunks(points, centers):
            result[rows] = distances
        return result

    def check_domain(self, points: AnyMatrix, *, name: str, first_row: int = 0) -> None:
        """Raise on the first entry or row for which the divergence is not defined.

        Errors call the points `name`, and count rows from that of the first point.
        """
        return

    def within(self, centers: FloatArray) -> FloatArray:
        """Return the centers, those that sums rounded beyond the domain moved into it."""
        return centers

    def in_one_unit(self, centers: FloatArray) -> FloatArray:
        """Return initial centers as sums return them, whatever does not count in their scale."""
        return centers

    def as_moved(self, points: AnyMatrix) -> AnyMatrix:
        """Return points or centers in the form in which compiled moves know them."""
        return points

    def from_moved(self, moved: FloatArray, before: FloatArray) -> FloatArray:
        """Return the centers that have this form; `before` are those before the moves."""
        return moved
