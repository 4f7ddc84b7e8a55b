"""The files of pictures."""

from contextlib import contextmanager
from typing import Any


@contextmanager
def picture(path, n_rows=1, n_columns=1, *, size, **params):
    """Give the panels of a figure, (n_rows, n_columns), which is written to a file at the end."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    yield figure.subplots(n_rows, n_columns, squeeze=False, **params)
    figure.savefig(path, dpi=130, metadata={"Date": None} if path.suffix == ".svg" else None)


def add_legend(axes: Any, columns: int = 4) -> None:
    """Write the legend of one panel once, below all of them."""
    handles, labels = axes.get_legend_handles_labels()
    axes.figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)
