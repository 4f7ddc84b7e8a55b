"""Rows of one array in memory, or of chunks that are made anew for each pass."""

from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from powermeans.mathematics.arguments import check_sample_weight
from powermeans.points.checks.csr import canonical_csr
from powermeans.points.checks.points import NARROW_DTYPES, dtype_of_centers, wanted_dtype
from powermeans.scale.block import Block, SourceError
from powermeans.system.containers import refuse_tensor_elsewhere, to_array
from powermeans.system.fingerprint import fingerprint
from powermeans.types import AnyMatrix, FloatArray, Matrix


class ArraySource:
    """A dense or CSR array in memory, with or without weights."""

    name = "X"
    can_skip = True

    def __init__(
        self,
        points: Any,
        weights: ArrayLike | None = None,
        *,
        dtype: np.dtype[np.floating[Any]] | None = None,
    ) -> None:
        self.feature_names = _names_in(_labels_of(points))
        self.points = admitted(points, "X", dtype, keeps_narrow=True)
        self.n_rows, self.n_features = map(int, self.points.shape)
        self.dtype = dtype_of_centers(self.points.dtype)
        self.weights = check_sample_weight(weights, self.n_rows)

    def fingerprint(self) -> str:
        """Return the fingerprint of all values."""
        return fingerprint([self.points, self.weights])

    def blocks(self, first_row: int = 0, at_once: int | None = None) -> Iterator[Block]:
        """Yield all rows at once, without a copy."""
        weights = None if self.weights is None else self.weights[first_row:]
        yield Block(self.points[first_row:], weights, "X", first_row)


class IterableSource:
    """Arrays, or pairs of an array and weights, from an iterable or a function that returns one."""

    name = "X"
    can_skip = False
    n_rows = None

    def __init__(
        self,
        chunks: Iterable[Any] | Callable[[], Iterable[Any]],
        *,
        dtype: np.dtype[np.floating[Any]] | None = None,
    ) -> None:
        self._chunks, self._wanted = chunks, dtype
        self._first_row: str | None = None
        first = self._first_chunk()
        if first is None:
            raise SourceError(
                "there are no chunks: pass at least one with a row, or make a new iterator in each "
                "call of the function"
            )
        points, weights = _as_pair(first)
        self._labels = _labels_of(points)
        self.feature_names = _names_in(self._labels)
        whole = admitted(points, "chunk 0", dtype, keeps_narrow=True)
        self.n_features, self.dtype = int(whole.shape[1]), dtype_of_centers(whole.dtype)
        self._kind = _kind_of(whole, weights)
        self._refuse_others(whole)

    def fingerprint(self) -> str:
        """Return the fingerprint of the first chunk, since all chunks would take a pass."""
        first = self._first_chunk()
        if first is None:
            raise self._other_rows("has no rows any more")
        points, weights = _as_pair(first)
        checked = None if weights is None else np.asarray(weights)
        return fingerprint([admitted(points, "chunk 0", self._wanted, keeps_narrow=True), checked])

    def blocks(self, first_row: int = 0, at_once: int | None = None) -> Iterator[Block]:
        """Yield chunk after chunk, without the rows before `first_row`."""
        has_begun = False
        for number, chunk in enumerate(self._pass()):
            where = f"chunk {number}"
            given, weights = _as_pair(chunk)
            self._check_labels(_labels_of(given), where)
            points = admitted(given, where, self._wanted, keeps_narrow=True)
            if (kind := _kind_of(points, weights)) != self._kind:
                raise SourceError(
                    f"{where} has {kind} and chunk 0 has {self._kind}: make all chunks alike"
                )
            if not has_begun and points.shape[0]:
                has_begun = True
                self._refuse_others(points)
            n_passed = min(first_row, points.shape[0])
            first_row -= n_passed
            if n_passed < points.shape[0]:
                checked = admitted_weights(weights, points.shape[0], where)
                of_block = None if checked is None else checked[n_passed:]
                yield Block(points[n_passed:], of_block, where, n_passed)
        if not has_begun:
            raise self._other_rows("has no rows")

    def _pass(self) -> Iterator[Any]:
        chunks = self._chunks() if callable(self._chunks) else self._chunks
        if not hasattr(chunks, "__iter__"):
            raise SourceError(
                f"{self._chunks!r} returns a value of type {type(chunks).__name__}, not chunks: "
                "pass a function without arguments that returns a new iterable of arrays each time"
            )
        this_pass = iter(chunks)
        if this_pass is chunks and not callable(self._chunks):
            raise SourceError(
                f"{chunks!r} can be iterated only once, and a fit reads the rows once for each "
                "sweep: pass a list, an object whose __iter__ starts anew, or the function that "
                "makes the generator, without calling it (see powermeans.open_data); or pass its "
                "chunks to partial_fit, one by one"
            )
        return this_pass

    def _first_chunk(self) -> Any:
        """Return the first chunk, or None, and close a generator with its open files."""
        this_pass = self._pass()
        try:
            return next(this_pass, None)
        finally:
            if isinstance(this_pass, Generator):
                this_pass.close()

    def _refuse_others(self, points: AnyMatrix) -> None:
        """Raise if a pass begins with another row than the first pass."""
        if not points.shape[0]:
            return
        row = fingerprint(points[:1])
        if self._first_row is None:
            self._first_row = row
        elif self._first_row != row:
            raise self._other_rows("begin with another row than the first time")

    def _other_rows(self, problem: str) -> SourceError:
        return SourceError(
            f"{self.name} {problem}: the rows must be the same in every pass, so make a new "
            "iterator in each call of the function"
        )

    def _check_labels(self, labels: tuple[Any, ...] | None, where: str) -> None:
        if labels == self._labels:
            return
        if labels is None or self._labels is None:
            are_named = _names_in(labels) is not None or self.feature_names is not None
            if not are_named:
                return
        raise SourceError(
            f"{where} has {_listing(labels)} and chunk 0 has {_listing(self._labels)}: give all "
            "chunks the same columns in the same order"
        )


def _kind_of(points: AnyMatrix, weights: Any) -> str:
    kind = f"{'sparse' if sparse.issparse(points) else 'dense'} {points.dtype}"
    return f"{points.shape[1]} columns of {kind}, with{'out' * (weights is None)} weights"


def _labels_of(chunk: Any) -> tuple[Any, ...] | None:
    """Return the labels of the columns of a table; None if it is no table."""
    # The `columns` of an Arrow table are its data.
    labels = getattr(chunk, "column_names", None)
    labels = getattr(chunk, "columns", None) if labels is None else labels
    return None if labels is None else tuple(labels)


def _names_in(labels: tuple[Any, ...] | None) -> tuple[str, ...] | None:
    """Return the labels of columns if all of them are strings; else None."""
    are_names = labels is not None and all(isinstance(label, str) for label in labels)
    return labels if are_names else None


def _listing(labels: tuple[Any, ...] | None) -> str:
    return "no names of columns" if labels is None else f"the columns {list(labels)[:20]}"


def _as_pair(chunk: Any) -> tuple[Any, Any]:
    if isinstance(chunk, tuple) and len(chunk) == 2:
        return chunk[0], chunk[1]
    return chunk, None


def admitted(
    given: Any,
    where: str,
    dtype: np.dtype[np.floating[Any]] | None,
    *,
    keeps_narrow: bool = False,
) -> AnyMatrix:
    """Return points as `points.checks.points` admits them, copied only if necessary."""
    if sparse.issparse(given):
        matrix: Any = given
        csr = matrix.tocsr()
        kept = csr.dtype in (np.float32, np.float64)
        wanted: Any = dtype or (csr.dtype if kept else np.float64)
        return canonical_csr(csr.astype(wanted, copy=False))
    try:
        refuse_tensor_elsewhere(given)
    except ValueError as error:
        raise SourceError(f"{where}: {error}") from None
    array = np.asarray(to_array(given))
    is_number = array.dtype.kind in "biufO" or str(array.dtype) in NARROW_DTYPES
    if not is_number or array.ndim != 2 or array.shape[1] == 0:
        raise SourceError(
            f"{where} is of the dtype {array.dtype} and the shape {array.shape}: pass numbers in "
            "rows and columns"
        )
    is_kept = keeps_narrow and str(array.dtype) in NARROW_DTYPES
    wanted = array.dtype if is_kept else wanted_dtype(array)
    if isinstance(wanted, list):
        wanted = array.dtype if array.dtype in wanted else wanted[0]
    try:
        points: Matrix = np.ascontiguousarray(array, dtype=dtype or wanted)
    except (TypeError, ValueError) as error:
        raise SourceError(f"{where} holds {error}: pass real numbers") from None
    return points


def admitted_weights(given: Any, n_rows: int, where: str) -> FloatArray | None:
    """Return one float64 weight for each row; None stays None."""
    if given is None:
        return None
    try:
        weights: FloatArray = np.ascontiguousarray(to_array(given), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise SourceError(f"sample_weight of {where} holds {error}: pass numbers") from None
    if weights.shape != (n_rows,):
        raise SourceError(
            f"{where} has {n_rows} rows and weights of the shape {weights.shape}: pass one weight "
            "for each row, cut in the same places"
        )
    return weights
