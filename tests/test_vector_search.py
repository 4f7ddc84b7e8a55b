"""What the page on vector search says of an index over our centers holds in faiss."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from powermeans.points.opening import open_rows

PAGE = Path(__file__).parent.parent / "docs" / "vector_search.md"


@pytest.fixture(scope="module")
def made_by_the_page() -> dict[str, Any]:
    """Run the page's code up to the index, and return its variables."""
    pytest.importorskip("faiss", reason="faiss is an extra")
    code = re.findall(r"```(?:python|\{code-block\} python)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    made: dict[str, Any] = {}
    for block in code[:3]:
        exec(block, made)
    assert "IndexIVFFlat" in code[1]
    assert "IndexIVFPQ" in code[2]
    return made


pytestmark = pytest.mark.filterwarnings("ignore:builtin type .* has no __module__")


def nearest_by_cells(made: dict[str, Any], n_cells: int, queries: np.ndarray) -> np.ndarray:
    """Return the nearest ten rows to each query in the cells of the nearest centers."""
    X, centers = made["X"], np.ascontiguousarray(made["centers"], dtype=np.float64)
    labels, _ = open_rows(X).assign(centers)
    cells = open_rows(queries).sq_distances(centers).argsort(axis=1)[:, :n_cells]
    sq_dist = ((queries[:, None, :] - X).astype(np.float64) ** 2).sum(axis=2)
    for of_query, scanned in zip(sq_dist, cells, strict=True):
        of_query[~np.isin(labels, scanned)] = np.inf
    return sq_dist.argsort(axis=1)[:, :10]


def test_an_index_over_our_centers_finds_the_nearest_rows_of_the_cells_scanned(made_by_the_page):
    X, index, codes = (made_by_the_page[name] for name in ("X", "index", "codes"))
    queries = X[:20] + np.float32(0.1)
    assert index.ntotal == codes.ntotal == len(X)
    for n_cells in (4, 1000):
        index.nprobe = n_cells
        _, found = index.search(queries, 10)
        np.testing.assert_array_equal(found, nearest_by_cells(made_by_the_page, n_cells, queries))
    # The lists of the index are our clusters.
    sizes = [index.invlists.list_size(j) for j in range(index.nlist)]
    labels = made_by_the_page["model"].labels_
    np.testing.assert_array_equal(sizes, np.bincount(labels, minlength=index.nlist))
    # Codes find the row that is asked for.
    codes.nprobe = 50
    _, found = codes.search(X[:100], 10)
    assert np.mean((found == np.arange(100)[:, None]).any(axis=1)) > 0.9
