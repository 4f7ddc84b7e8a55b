"""Run the same fits with a former commit and with this tree, and say which bits differ.

    python -m tests.fit_digests COMMIT  # builds the commit once, below build/former

The fits are those of the rows of `tests/matrix/table.py`, on more points and in more forms. The
exit status is 1 if a digest differs, or if a fit fails on one side only.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.former import commit_of, installed

ROOT = Path(__file__).parents[1]
N_POINTS, MANY = 600, 12_000


def forms_for(row: Any) -> dict[str, tuple[Any, ...]]:
    """Return points, some with weights, that the row of the matrix takes, by their names."""
    from matrix.data import groups

    points, rng = row.points(N_POINTS), np.random.default_rng(20)
    forms: dict[str, tuple[Any, ...]] = {"double": (points,), "single": (points.astype("f4"),)}
    if not row.is_dense:
        forms["sparse"] = (sparse.csr_array(points),)
    if "no_weight" not in row.exempt:
        forms["weighted"] = points, rng.uniform(0.1, 2, size=N_POINTS)
        forms["copied"] = points, rng.integers(0, 4, size=N_POINTS).astype(float)
    if row.points is groups:
        forms |= {"plane": (groups(N_POINTS, 2),), "wide": (groups(60, 200),)}
    return forms


def fits() -> Iterator[tuple[str, Callable[[], dict[str, np.ndarray]]]]:
    """Yield names of fits, each with a function that returns all that is found."""
    from matrix.outcomes import found
    from matrix.table import ROWS

    for name, row in ROWS.items():
        for form, given in forms_for(row).items():
            yield (f"{name}: {form}", lambda row=row, given=given: found(row.fit(*given), *given))
        if row.many:
            parameters = dict(row.many)
            points = row.points(parameters.pop("n_points", MANY))
            yield (
                f"{name}: many",
                lambda row=row, X=points, more=parameters: found(row.fit(X, **more), X),
            )


def digest(results: dict[str, np.ndarray]) -> str:
    """Return a digest of the bits of all that was found."""
    hashed = hashlib.sha256()
    for name, array in results.items():
        hashed.update(f"{name} {array.dtype} {array.shape}".encode())
        hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()[:16]


def print_digests() -> None:
    """Print the digest of every fit, or why it fails, as one line of JSON each."""
    warnings.simplefilter("ignore")
    for name, fit in fits():
        try:
            found = digest(fit())
        except Exception as error:  # the other side may fail in the same way
            found = f"{type(error).__name__}: {error}"
        print(json.dumps([name, found]), flush=True)


def digests_of(package: Path) -> dict[str, str]:
    """Return the digests that the package in this folder gives, in a process of its own."""
    path = os.pathsep.join(map(str, (package, ROOT, ROOT / "tests")))
    command = [sys.executable, "-c", "from tests import fit_digests as f; f.print_digests()"]
    printed = subprocess.run(
        command,
        env=os.environ | {"PYTHONPATH": path},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=package,
    )
    return dict(json.loads(line) for line in printed.stdout.splitlines())


def main() -> None:
    """Compare the digests of a former package with those of this tree."""
    parser = argparse.ArgumentParser(description="Compare the bits of fits with a former commit.")
    parser.add_argument("commit", help="the former commit")
    package = installed(commit_of(parser.parse_args().commit))
    former, now = digests_of(package.resolve()), digests_of(ROOT / "src")
    differing = [name for name in now if now[name] != former.get(name)]
    for name in differing:
        print(f"{name}: {former.get(name)} formerly, {now[name]} now")
    failing = sum(":" in found for found in now.values())
    print(f"{len(now) - len(differing)} of {len(now)} digests are equal; {failing} fits fail")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
