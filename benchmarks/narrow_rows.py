"""Seconds and memory of fits to rows of half floats and bytes, beside float32 of the same values.

The rows are drawn as embeddings lie, and rounded to the whole numbers from 0 to 255 (for int8 less
128), which all types hold. Each fit has a process of its own, which tells its largest memory before
the fit and after it; the types take turns. A fit that is not asked for stays as it was stored.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from benchmarks import machine
from benchmarks.many_centers import embeddings
from benchmarks.pages import Page, Rows, as_markdown, as_text
from powermeans import PowerKMeans

NAME = "narrow_rows"
PAGE = Page("project/measurements", "python -m benchmarks.narrow_rows --page")
TYPES = ["float32", "float16", "bfloat16", "int8", "uint8"]
FITS = {
    "64 fast": TYPES,
    "64 balanced": TYPES,
    "1024 fast": ["float32", "uint8"],  # which take minutes
}
N_FEATURES = 128
ROWS_AT_ONCE = 50_000
N_THREADS = 2
# Enough to time what the rows cost; the sums of squares need not be the lowest.
MOST_SWEEPS = 20


def write_rows(folder: Path, n_rows: int) -> None:
    """Write a file of the same rows for each type; bfloat16 has no form there but its bits."""
    files = {
        name: np.lib.format.open_memmap(
            folder / f"{name}.npy",
            mode="w+",
            dtype=np.uint16 if name == "bfloat16" else name,
            shape=(n_rows, N_FEATURES),
        )
        for name in TYPES
    }
    drawn = embeddings(n_rows, N_FEATURES, 0)
    low, high = np.quantile(drawn[::97], [0.001, 0.999])
    for start in range(0, n_rows, ROWS_AT_ONCE):
        part = slice(start, min(start + ROWS_AT_ONCE, n_rows))
        whole = np.clip(np.rint((drawn[part] - low) * (255 / (high - low))), 0, 255)
        for name, file in files.items():
            if name == "bfloat16":
                file[part] = whole.astype(np.float32).view(np.uint32) >> 16
            else:
                file[part] = whole - 128 * (name == "int8")


def rows_in(folder: Path, name: str) -> NDArray:
    rows = np.load(folder / f"{name}.npy")
    if name != "bfloat16":
        return rows
    import ml_dtypes

    return rows.view(ml_dtypes.bfloat16)


def largest_megabytes() -> float:
    """The most memory that this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def one_fit(folder: Path, name: str, k: int, effort: str) -> dict:
    """Fit and predict in this process."""
    rows = rows_in(folder, name)
    PowerKMeans(4, effort="fast", random_state=0).fit(rows[:2000])  # imports and threads
    before = largest_megabytes()
    began, began_on_cpu = time.perf_counter(), time.process_time()
    warnings.simplefilter("ignore", ConvergenceWarning)
    model = PowerKMeans(k, effort=effort, max_iter=MOST_SWEEPS, n_threads=N_THREADS, random_state=0)
    model.fit(rows)
    seconds, on_cpu = time.perf_counter() - began, time.process_time() - began_on_cpu
    model.predict(rows)
    return {
        "type": name,
        "k": k,
        "effort": effort,
        "seconds": seconds,
        "cpu seconds": on_cpu,
        "megabytes": rows.nbytes / 2**20,
        "megabytes over": largest_megabytes() - before,
        "inertia": float(model.inertia_),
        "labels": int(np.dot(model.labels_.astype(np.uint64), np.arange(len(rows))) % 2**61),
    }


def in_a_process(*arguments: str) -> str:
    """Return what this module prints; a process begins with the largest memory of its parent."""
    command = [sys.executable, "-m", "benchmarks.narrow_rows", *arguments]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def table(cells: list[dict]) -> Rows:
    floats = {(c["k"], c["effort"]): c for c in cells if c["type"] == "float32"}
    head = ["centers, effort", "rows of", "rows, MB", "MB over them", "seconds", "CPU seconds"]
    rows = [[*head, "sum of squares", "against float32", "labels"]]
    for cell in cells:
        wide = floats[cell["k"], cell["effort"]]
        apart = abs(cell["inertia"] / wide["inertia"] - 1)
        rows.append(
            [
                f"{cell['k']}, {cell['effort']}",
                cell["type"],
                f"{cell['megabytes']:.0f}",
                f"{cell['megabytes over']:.0f}",
                f"{cell['seconds']:.1f}",
                f"{cell['cpu seconds']:.1f}",
                f"{cell['inertia']:.6e}",
                "" if cell is wide else f"{apart:.0e}",
                "" if cell is wide else ("same" if cell["labels"] == wide["labels"] else "others"),
            ]
        )
    return rows


def as_page(stored: dict) -> str:
    figures = stored["figures"].values()
    cells = [cell for of_one in figures for cell in of_one["cells"]]
    n_rows = {of_one["rows"] for of_one in figures}.pop()
    title = f"**{n_rows:,} × {N_FEATURES}, {N_THREADS} threads**"
    measured = f"Measured on {stored['date']}, {stored['processor']}."
    return f"{measured}\n\n{title}\n\n{as_markdown(table(cells))}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--fits", nargs="+", choices=FITS, default=list(FITS))
    parser.add_argument("--write", help=argparse.SUPPRESS)
    parser.add_argument("--one", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    arguments = parser.parse_args()
    if arguments.page:
        PAGE.write(as_page(machine.read(NAME, NAME)))
        return
    if arguments.write:
        write_rows(Path(arguments.write), arguments.rows)
        return
    if arguments.one:
        folder, name, fit = arguments.one
        k, effort = fit.split()
        print(json.dumps(one_fit(Path(folder), name, int(k), effort)))
        return
    with tempfile.TemporaryDirectory() as folder:
        in_a_process("--write", folder, "--rows", str(arguments.rows))
        for fit in arguments.fits:
            cells = []
            for name in FITS[fit]:
                cells.append(json.loads(in_a_process("--one", folder, name, fit)))
                print(as_text([table(cells)[-1]]), flush=True)
            figures = machine.stored_figures(NAME)
            found = {"command": machine.command(), "rows": arguments.rows, "cells": cells}
            print(machine.store(NAME, figures | {fit: found}), flush=True)


if __name__ == "__main__":
    main()
