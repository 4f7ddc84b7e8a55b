"""The files of pictures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any


@contextmanager
def picture(
    path: Path, n_rows: int = 1, n_columns: int = 1, *, size: tuple[float, float], **params: Any
) -> Iterator[Any]:
    """Give the panels of a figure, (n_rows, n_columns), which is written to a file at the end."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    yield figure.subplots(n_rows, n_columns, squeeze=False, **params)
    figure.savefig(path, dpi=130)


def add_legend(axes: Any, columns: int = 4) -> None:
    """Write the legend of one panel once, below all of them."""
    handles, labels = axes.get_legend_handles_labels()
    axes.figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
