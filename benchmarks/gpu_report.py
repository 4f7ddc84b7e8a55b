"""What the figures of the benchmark on a GPU say: fractions of the limit, and tables."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.gpu_peers import CUML_PRECISION, FLASH_PRECISION
from benchmarks.pages import Rows

ITEMSIZE = {"float16": 2, "bfloat16": 2, "float32": 4}
# That of so many TF32 products keeps the digits of float32.
_TF32_OF_FLOAT32 = 3
KINDS = ("hard", "power")


def rates(figures: dict) -> dict[str, float]:
    """Multiply-adds a second of each kind of product, and bytes a second."""
    can = {line["what"]: line["per second"] for line in figures["parts"]["ceilings"]}
    by_parts = can["float32 high"] / _TF32_OF_FLOAT32
    return {**can, "float32 highest": max(can["float32 highest"], by_parts)}


def sweep_limit(figures: dict, cell: dict, kind: str) -> float:
    """Seconds that a sweep takes at least: the larger of arithmetic and memory traffic.

    A hard sweep multiplies points and centers once, and reads the points once. One with a power
    has no room for its weights: it takes the distances twice, and then weights times points.
    """
    n_points, n_features, n_centers, *_ = figures["sizes"]
    can, n_reads = rates(figures), 1 if kind == "hard" else 2
    n_products, entries = 1 if kind == "hard" else 3, n_points * n_features
    # Weights are rounded as the points are, so that all products are of one kind.
    a_second = can[f"{cell['dtype']} {cell['precision']}"]
    arithmetic = n_products * entries * n_centers / a_second
    return max(arithmetic, n_reads * entries * ITEMSIZE[cell["dtype"]] / can["bytes"])


def fit_limit(figures: dict, cell: dict) -> float:
    """Seconds that the sweeps of a fit take at least; its seeding and its looks are left out."""
    return sum(cell[f"{kind} sweeps"] * sweep_limit(figures, cell, kind) for kind in KINDS)


def seeding_limit(figures: dict, cell: dict) -> float:
    """Seconds for the distances of all points to all candidates, reading points for each center."""
    *_, n_points, n_centers = figures["sizes"]
    n_features, can = figures["sizes"][1], rates(figures)
    entries = n_points * n_features
    arithmetic = entries * cell["candidates"] / can["float32 highest"]
    return (n_centers - 1) * max(arithmetic, entries * ITEMSIZE["float32"] / can["bytes"])


def shown(value: float | None, form: str = "{:.3g}") -> str:
    return "not measured" if value is None else form.format(value)


def percent(share: float) -> str:
    return shown(100 * share, "{:.3g} %")


def of_peer(cell: dict, key: str, precision: str, factor: float = 1.0) -> str:
    """A figure of a peer, which has one in its own precision alone."""
    if cell["precision"] != precision:
        return "other precision"
    value = cell[key]
    return shown(None if value is None else factor * value)


def ratio(cell: dict, ours: str, theirs: str, form: str = "{:.3g}") -> str:
    return "" if cell[theirs] is None else form.format(cell[ours] / cell[theirs])


def sweep_table(figures: dict) -> Rows:
    head = ["points", "kernel", "hard sweep, ms", "flash-kmeans, ms", "ours : flash"]
    rows = [[*head, "of the limit", "power sweep : hard", "of the limit"]]
    for cell in figures["parts"]["sweeps"]:
        of_limit = {kind: percent(sweep_limit(figures, cell, kind) / cell[kind]) for kind in KINDS}
        rows.append(
            [
                f"{cell['dtype']}, {cell['precision']}",
                cell["kernel"],
                shown(1e3 * cell["hard"]),
                of_peer(cell, "flash", FLASH_PRECISION, 1e3),
                ratio(cell, "hard", "flash"),
                of_limit["hard"],
                shown(cell["power"] / cell["hard"]),
                of_limit["power"],
            ]
        )
    return rows


def seeding_table(figures: dict) -> Rows:
    rows = [["candidates for each center", "seconds", "of the limit"]]
    for cell in figures["parts"]["seeding"]:
        of_limit = percent(seeding_limit(figures, cell) / cell["seconds"])
        rows.append([str(cell["candidates"]), shown(cell["seconds"]), of_limit])
    return rows


def fit_table(figures: dict) -> Rows:
    head = ["points", "ours, s", "sweeps, hard + power", "of the limit of these"]
    peers = ["flash-kmeans, s", "inertia, ours : flash", "cuML, s", "inertia, ours : cuML"]
    return [[*head, *peers], *(fit_row(figures, cell) for cell in figures["parts"]["fits"])]


def fit_row(figures: dict, cell: dict) -> list[str]:
    return [
        f"{cell['dtype']}, {cell['precision']}",
        shown(cell["seconds"]),
        f"{cell['hard sweeps']} + {cell['power sweeps']}",
        percent(fit_limit(figures, cell) / cell["seconds"]),
        of_peer(cell, "flash seconds", FLASH_PRECISION),
        ratio(cell, "inertia", "flash inertia", "{:.5f}"),
        of_peer(cell, "cuml seconds", CUML_PRECISION),
        ratio(cell, "inertia", "cuml inertia", "{:.5f}"),
    ]


def agreement_table(figures: dict) -> Rows:
    cells = figures["parts"]["agreement"]
    counts = ("labels", "differ", "of these, ties")
    body = [
        [cell["what"], *(str(cell[key]) for key in counts), shown(cell["inertia, relative"])]
        for cell in cells
    ]
    return [list(cells[0]), *body]


TABLES: dict[str, Callable[[dict], Rows]] = {
    "Sweeps": sweep_table,
    "Seeding": seeding_table,
    "Fits": fit_table,
    "Agreement with the CPU": agreement_table,
}


def report(stored: dict, as_table: Callable[[Rows], str]) -> str:
    figures = stored["figures"]
    n_points, n_features, n_centers, *of_seeding = figures["sizes"]
    head = (
        f"{figures['device']}, {stored['date']}, {figures['versions']}: {n_points} points of "
        f"{n_features} features and {n_centers} centers; for the seeding {of_seeding[0]} points "
        f"and {of_seeding[1]} centers. Written by `{stored['command']}`."
    )
    about = (
        "The limit is the larger of arithmetic and memory traffic, by what products and copies "
        "reached in the same run; products that keep the digits of float32 count as three of "
        "TF32. Peers stand beside ours of the same precision: flash-kmeans takes single TF32 "
        "products of float32, cuML ones that keep its digits. Both go 25 times over the points "
        "from points that were drawn. A label that differs counts as a tie where the two "
        "distances agree to 1e-5."
    )
    parts = [f"**{name}**\n\n{as_table(make(figures))}" for name, make in TABLES.items()]
    return "\n\n".join([head, about, *parts])
