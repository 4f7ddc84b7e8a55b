"""``powermeans demo`` and ``powermeans datasets``: data to try clustering on."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from powermeans.app.command import failures
from powermeans.app.command.fitting import fit
from powermeans.app.command.outputs import check_outputs
from powermeans.app.command.screen import Screen
from powermeans.app.command.sources import DataFiles
from powermeans.app.command.wanted import Wanted
from powermeans.system.atomic_write import atomic_write
from powermeans.types import FloatArray

COLUMNS = ("visits_per_month", "basket", "share_at_weekend", "years_of_loyalty", "discount")
# Kinds of customers: name, number, mean and standard deviation of each column.
_KINDS = (
    ("families", 180, (8.0, 95.0, 0.70, 6.0, 0.10), (1.5, 15.0, 0.08, 2.0, 0.04)),
    ("commuters", 150, (18.0, 14.0, 0.08, 3.0, 0.03), (2.5, 4.0, 0.05, 1.5, 0.02)),
    ("bargain hunters", 120, (5.0, 38.0, 0.45, 1.5, 0.42), (1.2, 9.0, 0.10, 0.8, 0.07)),
    ("regulars", 90, (12.0, 42.0, 0.35, 15.0, 0.06), (2.0, 9.0, 0.10, 3.0, 0.03)),
    ("passers-by", 60, (1.2, 22.0, 0.50, 0.3, 0.02), (0.5, 8.0, 0.18, 0.2, 0.02)),
)


def customers() -> FloatArray:
    """Make up 600 customers of a shop, of five kinds."""
    rng = np.random.default_rng(2019)
    of_kind = [rng.normal(mean, width, (size, len(mean))) for _, size, mean, width in _KINDS]
    points: FloatArray = np.abs(np.concatenate(of_kind)).round(2)
    return points[rng.permutation(len(points))]


def as_csv(points: FloatArray) -> str:
    """Return customers as the text of a CSV file."""
    rows = [",".join(f"{value:g}" for value in row) for row in points]
    return "\n".join([",".join(COLUMNS), *rows]) + "\n"


def _is_there(data: str, example: str, results: list[str]) -> bool:
    """Return whether the example was written before; refuse to replace other files."""
    if os.path.isfile(data):
        others = [] if Path(data).read_bytes() == example.encode() else [data]
    else:
        others = [path for path in results if os.path.isfile(path)]
    if others:
        raise failures.Failure(
            f"{others[0]} exists and is not part of the example: name another file with --data"
        )
    return os.path.isfile(data)


def demonstrate(data: str, screen: Screen) -> None:
    """Write the example, cluster it, and print the commands to try next."""
    stem = Path(data).with_suffix("")
    output, model = f"{stem}-clusters.csv", f"{stem}.pm"
    check_outputs(data, output, model)
    example = as_csv(customers())
    if not _is_there(data, example, [output, model]):
        with failures.writing(data), atomic_write(data) as file:
            file.write(example.encode())
    screen.say(f"{data} has 600 made-up customers of a shop, of five kinds.")
    screen.say()
    command = ("fit", data, "-k", 5, "--scale", "standard", "--output", output, "--model", model)
    screen.say(f"$ {_shown(*command)}", is_whole=True)
    wanted = Wanted("5", "standard", output=output, model=model, quiet=True)
    fit(DataFiles((data,)), wanted, screen)
    screen.say()
    screen.say("Now with data of your own, or:")
    for words in (
        ("choose-k", data, "--scale", "standard"),
        ("predict", model, data),
    ):
        screen.say(f"  {_shown(*words)}", is_whole=True)


def _shown(*words: object) -> str:
    """Return a command as one types it."""
    return shlex.join(["powermeans", *map(str, words)])


def data_sets(
    names: Sequence[str], files: Sequence[str], folder: str | None, screen: Screen
) -> None:
    """Say what all data sets are; fetch those that are named, one after another."""
    from powermeans import datasets

    if files and len(names) != 1:
        raise failures.Failure("--file is for one data set: name one")
    with failures.refusing():
        described = {name: datasets.about(name) for name in names or datasets.names()}
    paths = {}
    for name, about in described.items():
        screen.say(f"{name}: {about}", is_whole=True)
        if names:
            with failures.refusing(), failures.refusing(OSError), failures.refusing(ImportError):
                paths[name] = str(datasets.fetch(name, files=files, folder=folder))
            screen.say(f"{name}: its values are right; it is in {paths[name]}", is_whole=True)
    screen.tell_machines({"sets": described, "files": paths})
