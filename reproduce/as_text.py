"""Findings as tables of strings, for a terminal and for a page."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from benchmarks.pages import Rows, as_text
from reproduce.item import Comparison, Findings, Table, Value


def as_string(value: Value) -> str:
    """A value in a table: three digits after the point, unless that hides it or goes on for long.

    Examples
    --------
    >>> as_string(1.23456), as_string(7), as_string(0.00001234), as_string(1.5e13)
    ('1.235', '7', '1.234e-05', '1.5e+13')
    """
    if not isinstance(value, float):
        return str(value)
    is_plain = value == 0 or 5e-4 <= abs(value) < 1e6 or not math.isfinite(value)
    return f"{value:.3f}" if is_plain else f"{value:.4g}"


def table_rows(table: Table) -> Rows:
    """The head and the body of a table."""
    return [list(table.columns), *([as_string(value) for value in row] for row in table.rows)]


def comparison_rows(comparisons: Iterable[Comparison]) -> Rows:
    """Published numbers beside ours."""
    head = ["what", "quantity", "published", "ours", "standard error", "tolerance", "verdict"]
    body = [
        [
            comparison.what,
            comparison.quantity,
            *map(
                as_string,
                (
                    comparison.published,
                    comparison.ours,
                    comparison.standard_error,
                    comparison.tolerance,
                ),
            ),
            comparison.in_words,
        ]
        for comparison in comparisons
    ]
    return [head, *body]


def count_of(comparisons: Sequence[Comparison]) -> str:
    """How many of the published numbers came out."""
    n_within = sum(comparison.is_within_noise for comparison in comparisons)
    return f"{n_within} of {len(comparisons)} published numbers within noise"


def findings_as_text(findings: Findings) -> str:
    """All that is found, for a terminal."""
    blocks = []
    for table in findings.tables:
        note = f"\n{table.note}" if table.note else ""
        blocks.append(f"{table.title}\n\n{as_text(table_rows(table))}{note}")
    if findings.comparisons:
        rows = comparison_rows(findings.comparisons)
        blocks.append(f"{count_of(findings.comparisons)}\n\n{as_text(rows)}")
    blocks += [
        f"{claim.in_words.upper()}: {claim.text} ({claim.source})\n  {claim.figure}"
        for claim in findings.claims
    ]
    blocks += [f"- {aside.text} ({aside.source})\n  {aside.said}" for aside in findings.asides]
    blocks += [f"- {remark}" for remark in findings.remarks]
    return "\n\n".join(blocks)
