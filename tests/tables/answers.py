"""The example, and columns of what commands print and write, by their names."""

import csv
import re
from pathlib import Path

import numpy as np

from powermeans import read_frame

EXAMPLE = Path(__file__).parents[2].joinpath("examples", "customers.csv").read_text()
COLUMNS = EXAMPLE.partition("\n")[0].split(",")
CUSTOMERS = np.loadtxt(EXAMPLE.splitlines(), delimiter=",", skiprows=1)


def column_of(text: str, name: str = "cluster", mark: str = ",") -> list[str]:
    """The cells of a column of text, in which a row without any is an empty line."""
    header, *rows = csv.reader(text.splitlines(keepends=True), delimiter=mark)
    return [row[header.index(name)] if row else "" for row in rows]


def clusters_in(path: str, encoding: str = "utf-8", mark: str = ",") -> list[str]:
    """The clusters in a file of any kind; a row that was left out has none, or -1."""
    suffix = Path(path).suffix
    if suffix == ".npy":
        return list(map(str, np.load(path)))
    if suffix in (".parquet", ".feather", ".xlsx", ".jsonl"):
        return list(map(str, read_frame(path)["cluster"].to_pylist()))
    text = Path(path).read_bytes().decode(encoding)
    return column_of(text, mark="\t" if suffix == ".tsv" else mark)


def rows_shown(text: str) -> list[dict[str, str]]:
    """The rows of the table of clusters on a screen, by its columns."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("cluster "))
    names, rows = re.split(r" {2,}", lines[start].strip()), []
    for line in lines[start + 1 :]:
        cells = re.split(r" {2,}", line.strip())
        if not cells[0].isdecimal():
            break
        rows.append(dict(zip(names, cells, strict=False)))
    return rows
