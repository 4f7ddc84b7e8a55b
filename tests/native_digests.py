"""Digest what builds of the compiled core compute, and exit with 1 where two builds differ.

Run `python tests/native_digests.py FOLDER...` with the folders that hold the compiled modules. Each
module runs once for every instruction set of this machine, in a process of its own.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

N_POINTS = 6000
SHAPES = product((2, 3, 16, 64), (8, 50, 300), (np.float32, np.float64))


def imported(folder: str) -> Any:
    sys.path.insert(0, folder)
    return importlib.import_module("_native")


def digest(*results: Any) -> str:
    """The first digits of the hash of all bytes of the results."""
    hashed = hashlib.sha256()
    for result in results:
        hashed.update(np.ascontiguousarray(result).tobytes())
    return hashed.hexdigest()[:16]


def sweeps(rows: Any, centers: np.ndarray) -> Iterator[tuple[str, str]]:
    """Digests of every task of the sweeps."""
    yield "hard", digest(*rows.sweep_hard(centers))
    for power in (-0.5, -3.0, -30.0, -1000.0):
        yield f"power {power:g}", digest(*rows.sweep_power(centers, power, 0.0, 1.0))
    yield "harmonic", digest(*rows.sweep_power(centers, -1.75, 0.75, 1.0))
    shares = np.linspace(1, 2, len(centers)) / (1.5 * len(centers))
    yield "gaussian", digest(*rows.sweep_gaussian(centers, 0.1, shares))
    yield "spread", digest(*rows.spread(centers))
    labels = np.empty(N_POINTS, np.int32)
    yield "assign", digest(rows.assign(centers, labels), labels)
    # From the second time on, hard sweeps use what the one before left.
    for step in (1e-3, 2e-3):
        yield f"hard after {step:g}", digest(*rows.sweep_hard(centers * (1 + step)))


def seeds_and_passes(rows: Any, centers: np.ndarray) -> Iterator[tuple[str, str]]:
    """Digests of seeding, of draws and of an online pass."""
    rng = np.random.default_rng(3)
    order, numbers = rng.permutation(N_POINTS), rng.random((19, 11))
    indices = np.empty(20, np.int64)
    rows.greedy_seeds(order, 0.5, numbers, indices)
    yield "seeds", digest(indices)
    nearest = np.full(N_POINTS, np.inf)
    for center in centers[:3]:
        rows.approach(center[None, :], nearest)
    yield "nearest", digest(nearest, rows.potentials(centers, nearest))
    rows.draw(nearest, order, rng.random(20), 1.5, indices)
    yield "drawn", digest(indices)
    moved, counts = centers.copy(), np.zeros(len(centers))
    inertia = rows.present(order, None, 1.0, moved, counts)
    yield "online", digest(inertia, moved, counts)


def planes(rows: Any, centers: np.ndarray) -> Iterator[tuple[str, str]]:
    """Digests of sweeps with affine distances."""
    rows.use_heights(np.full(N_POINTS, 9.0))
    lifted = np.column_stack([centers, np.einsum("jf,jf->j", centers, centers)])
    yield "affine hard", digest(*rows.sweep_hard(lifted))
    yield "affine power", digest(*rows.sweep_power(lifted, -3.0, 0.0, 1.0))


def all_digests(native: Any) -> Iterator[tuple[str, str]]:
    """Names and digests of all that this module computes with its instruction set."""
    team = native.Team(2)
    for n_features, n_centers, dtype in SHAPES:
        rng = np.random.default_rng(n_features)
        points = rng.standard_normal((N_POINTS, n_features)).astype(dtype)
        centers = rng.standard_normal((n_centers, n_features))
        stored = sparse.csr_array(np.where(points > 0.7, points, 0))
        largest, starts = float(np.abs(points).max()), stored.indptr.astype(np.int64)
        of_dtype = "Float" if dtype is np.float32 else "Double"
        dense = getattr(native, f"Dense{of_dtype}")(points, None, team)
        csr = getattr(native, f"Csr{of_dtype}")(
            stored.data, stored.indices.astype(np.int32), starts, n_features, largest, None, team
        )
        shape = f"{np.dtype(dtype).name} d={n_features} k={n_centers}"
        yield f"{shape} moments", digest(dense.mean(), dense.variance(), dense.origin())
        for kind, rows in (("dense", dense), ("sparse", csr)):
            for part in (sweeps, seeds_and_passes, planes):
                for name, value in part(rows, centers):
                    yield f"{shape} {kind} {name}", value


def digests_of(folder: str, instruction_set: str) -> dict[str, str]:
    """What a process of its own finds: a module keeps its instruction set for life."""
    found = subprocess.run(
        [sys.executable, __file__, "--here", folder],
        env={**os.environ, "POWERMEANS_ISA": instruction_set},
        stdout=subprocess.PIPE,
        check=True,
    )
    return {f"{instruction_set} {name}": value for name, value in json.loads(found.stdout).items()}


def main(folders: list[str]) -> None:
    """Print where the builds differ from the first, and how much they share."""
    found: list[dict[str, str]] = [{} for _ in folders]
    for instruction_set in imported(folders[0]).instruction_sets():
        for digests, folder in zip(found, folders, strict=True):
            digests |= digests_of(folder, instruction_set)
    n_differing = 0
    for name in found[0]:
        values = [digests[name] for digests in found]
        if len(set(values)) > 1:
            n_differing += 1
            print(name, *values)
    print(f"{len(found[0]) - n_differing} of {len(found[0])} digests agree in {', '.join(folders)}")
    sys.exit(n_differing > 0)


if __name__ == "__main__":
    if sys.argv[1] == "--here":
        print(json.dumps(dict(all_digests(imported(sys.argv[2])))))
    else:
        main([str(Path(folder).resolve()) for folder in sys.argv[1:]])
