"""A fit in a process that may use no more than so much memory; prints JSON.

    python -m benchmarks.limited '{"file": "points.npy", "model": "KMeans", "clusters": 50, ...}'

What is limited is the address space (RLIMIT_AS, as by `ulimit -v`): all that the process maps
counts, also stacks and reserves that it never touches, so that what it may hold is rather less. The
limit begins above what is mapped once a small fit of the same kind has loaded everything.
"""

from __future__ import annotations

import hashlib
import json
import resource
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from powermeans import KMeans, PowerKMeans, open_data

# Memory is the same in every sweep, so a few of each kind are enough.
N_SWEEPS = 10
MODELS = {
    "KMeans": lambda k: KMeans(k, n_init=1, max_iter=N_SWEEPS, random_state=0),
    "PowerKMeans": lambda k: PowerKMeans(k, refine=0, max_iter=N_SWEEPS, random_state=0),
}
ROWS_OF_A_SMALL_FIT = 2000


@dataclass(frozen=True)
class Task:
    """What is fitted, and within which limit; None is none."""

    file: str
    model: str
    clusters: int
    limit: int | None = None
    rows_per_part: int | None = None
    in_memory: bool = False


def bytes_of(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))


def write_parquet(path: Path, blocks: Any) -> None:
    """Columns c0, c1, ..., a group of rows for each block."""
    import pyarrow as pa
    from pyarrow import parquet

    writer = None
    for block in blocks:
        columns = {f"c{f}": np.ascontiguousarray(block[:, f]) for f in range(block.shape[1])}
        table = pa.table(columns)
        if writer is None:
            writer = parquet.ParquetWriter(path, table.schema, use_dictionary=False)
        writer.write_table(table)
    assert writer is not None
    writer.close()


def whole(path: Path) -> NDArray[np.float32]:
    """All of a file at once."""
    if path.suffix == ".npy":
        points: NDArray[np.float32] = np.load(path)
        return points
    from powermeans.tables.formats import format_of

    form = format_of(path)
    return form.read(range(len(form.names)))


def warm_up(task: Task) -> None:
    """Load what the fit will load."""
    path = Path(task.file)
    rng = np.random.default_rng(0)
    some = rng.normal(size=(ROWS_OF_A_SMALL_FIT, 4)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        small = Path(folder, f"small{path.suffix}")
        if path.suffix == ".npy":
            np.save(small, some)
        else:
            write_parquet(small, [some])
        MODELS[task.model](3).fit(open_data(small, rows_per_part=500))


def fit(task: Task) -> dict[str, Any]:
    """What the fit found and needed."""
    warm_up(task)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    held, mapped = bytes_of("VmRSS"), bytes_of("VmSize")
    if task.limit is not None:
        resource.setrlimit(resource.RLIMIT_AS, (mapped + task.limit,) * 2)
    start = time.perf_counter()
    source = whole(Path(task.file)) if task.in_memory else task.file
    data = open_data(source, memory_limit=task.limit, rows_per_part=task.rows_per_part)
    model = MODELS[task.model](task.clusters).fit(data)
    return {
        **asdict(task),
        "seconds": time.perf_counter() - start,
        "rows per part": data.rows_per_part,
        "sweeps": int(model.n_iter_),
        "inertia": float(model.inertia_).hex(),
        "centers": hashlib.sha256(model.cluster_centers_.tobytes()).hexdigest(),
        "held before": held,
        "peak": bytes_of("VmHWM"),
        "mapped before": mapped,
        "mapped at most": bytes_of("VmPeak"),
    }


def main() -> None:
    task = Task(**json.loads(sys.argv[1]))
    try:
        print(json.dumps(fit(task)))
    except MemoryError as error:
        print(json.dumps({**asdict(task), "refused": f"MemoryError: {error}"}))


if __name__ == "__main__":
    main()
