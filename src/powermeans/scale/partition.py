"""Cut the blocks of a source into parts of equal length."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy import sparse

from powermeans.points.checks.csr import stacked
from powermeans.points.checks.parts import PartFacts, check_part, check_parts
from powermeans.points.checks.points import as_floats
from powermeans.points.needs import Needs
from powermeans.scale.block import Block, Source, SourceError
from powermeans.types import AnyMatrix, FloatArray, Part


class Partition:
    """The rows of a source in parts of equal length, except for the last, read in each pass.

    The first pass checks every row. Later passes must have as many rows, and finite ones. Weights
    count times `unit`.
    """

    def __init__(
        self,
        source: Source,
        rows_per_part: int,
        needs: Needs,
        unit: float = 1.0,
    ) -> None:
        self.source, self.rows_per_part = source, rows_per_part
        self._needs, self._unit = needs, unit
        self.facts: PartFacts | None = None

    def check(self, n_clusters: int = 1) -> None:
        """Raise if all rows together cannot be clustered."""
        check_parts(
            self.found(),
            n_features=self.source.n_features,
            n_clusters=n_clusters,
            name=self.source.name,
        )

    def found(self) -> PartFacts:
        """Return the facts that the first pass finds, and make that pass if necessary."""
        if self.facts is None:
            for part in self.read():
                del part
        assert self.facts is not None, "a pass over no rows raises"
        return self.facts

    def read(self, numbers: Sequence[int] | None = None) -> Iterator[Part]:
        """Yield all parts in order, or the parts with these rising numbers."""
        if numbers is not None:
            return self._some(numbers)
        return cut(self._admitted(), self.rows_per_part) if self.facts is None else self._again()

    @property
    def n_parts(self) -> int | None:
        """Number of parts; None until all rows are read, unless the source knows it."""
        n_rows = self.source.n_rows if self.facts is None else self.facts.n_points
        return None if n_rows is None else -(-n_rows // self.rows_per_part)

    def _admitted_again(self, block: Block) -> Block:
        """Return a block of a later pass; raise if its sums show a fault that was not there."""
        has_missing = self._needs.measure.has_missing
        if not _have_finite_sums(block.points, block.weights, has_missing=has_missing):
            try:
                self._admit(block)
            except ValueError as error:
                raise SourceError(
                    f"{error}. The rows were fine in the first pass, and must be the same in every "
                    "pass"
                ) from None
        return block

    def _admit(self, block: Block) -> PartFacts:
        return check_part(
            block.points,
            block.weights,
            name=block.where,
            first_row=block.first_row,
            feature_names=self.source.feature_names,
            has_missing=self._needs.measure.has_missing,
            divergence=self._needs.measure.divergence,
        )

    def _again(self) -> Iterator[Part]:
        assert self.facts is not None
        n_read = 0
        for points, weights in cut(self._blocks(0), self.rows_per_part):
            n_read += points.shape[0]
            if n_read > self.facts.n_points:
                raise self._other_rows(f"gave at least {n_read} rows, and {self.facts.n_points}")
            yield points, weights
        if n_read != self.facts.n_points:
            raise self._other_rows(f"gave {n_read} rows, and {self.facts.n_points}")

    def _other_rows(self, problem: str) -> SourceError:
        return SourceError(
            f"{self.source.name} {problem} the first time: the rows must be the same in every pass"
        )

    def _admitted(self) -> Iterator[Block]:
        facts: PartFacts | None = None
        for block in self._blocks(0):
            found = self._admit(block)
            facts = found if facts is None else facts + found
            yield block
        if facts is None or not facts.n_points:
            raise SourceError(f"{self.source.name} has no rows: pass some")
        self.facts = facts

    def _blocks(self, first_row: int) -> Iterator[Block]:
        blocks = self.source.blocks(first_row, self.rows_per_part)
        if not self._needs.measure.keeps_narrow:
            blocks = (replace(block, points=as_floats(block.points)) for block in blocks)
        if self.facts is not None:
            blocks = map(self._admitted_again, blocks)
        return blocks if self._unit == 1.0 else (_weighed(block, self._unit) for block in blocks)

    def _some(self, numbers: Sequence[int]) -> Iterator[Part]:
        """Yield parts; read runs in one go, and skip the rows between if the source can."""
        at, parts = -1, iter(list[Part]())
        for number in numbers:
            if at < 0 or (number > at and self.source.can_skip):
                at, first_row = number, number * self.rows_per_part
                parts = cut(self._blocks(first_row), self.rows_per_part)
            part = next(parts, None)
            while at < number and part is not None:
                at, part = at + 1, next(parts, None)
            if part is None or not self._is_as_long_as_before(part, number):
                raise self._other_rows(f"has {'fewer' if part is None else 'other'} rows than")
            at += 1
            yield part

    def _is_as_long_as_before(self, part: Part, number: int) -> bool:
        if self.facts is None:
            return True
        n_left = self.facts.n_points - number * self.rows_per_part
        return bool(part[0].shape[0] == min(self.rows_per_part, n_left))


def _have_finite_sums(points: AnyMatrix, weights: FloatArray | None, *, has_missing: bool) -> bool:
    """Return True only if all entries are finite; their sum may overflow even so."""
    values: Any = points.data if sparse.issparse(points) else points
    if has_missing:
        values = np.isinf(values)  # NaN is a missing entry
    with np.errstate(over="ignore", invalid="ignore"):
        total = np.add.reduce(values, axis=None)
        total_weight = 0.0 if weights is None else weights.sum()
    is_fine = total == 0 if has_missing else math.isfinite(total)
    return bool(is_fine and math.isfinite(total_weight))


def _weighed(block: Block, unit: float) -> Block:
    assert block.weights is not None
    return replace(block, weights=block.weights * unit)


def cut(blocks: Iterable[Block], rows_per_part: int) -> Iterator[Part]:
    """Yield the rows of blocks in parts of this length; the last may be shorter."""
    pieces: list[Block] = []
    n_kept = 0
    for block in blocks:
        start, n_rows = 0, block.points.shape[0]
        while n_kept + n_rows - start >= rows_per_part:
            end = start + rows_per_part - n_kept
            pieces.append(_slice(block, start, end))
            yield _joined(pieces)
            start, n_kept = end, 0
            pieces.clear()
        if start < n_rows:
            pieces.append(_slice(block, start, n_rows))
            n_kept += n_rows - start
    if n_kept:
        yield _joined(pieces)


def _slice(block: Block, start: int, end: int) -> Block:
    if start == 0 and end == block.points.shape[0]:
        return block
    weights = None if block.weights is None else block.weights[start:end]
    return Block(block.points[start:end], weights, block.where, block.first_row + start)


def _joined(blocks: Sequence[Block]) -> Part:
    points = stacked([block.points for block in blocks])
    if blocks[0].weights is None:
        return points, None
    return points, stacked([block.weights for block in blocks])
