"""Versions, instruction set and threads, for bug reports."""

from __future__ import annotations

import contextlib
import platform
import sys
from importlib.metadata import PackageNotFoundError, version

from powermeans.points import compiled as native
from powermeans.system.threads import effective_n_threads


def versions() -> dict[str, str]:
    """Return versions, instruction set and number of threads, by name."""
    found = {"powermeans": version("powermeans"), "python": sys.version.split()[0]}
    needed = ("numpy", "scipy", "scikit-learn", "threadpoolctl")
    for name in (*needed, "pyarrow", "matplotlib", "typer", "rich"):
        with contextlib.suppress(PackageNotFoundError):
            found[name] = version(name)
    return found | {
        "machine": f"{platform.system()} {platform.machine()}",
        "instruction set": f"{native.instruction_set()} of {', '.join(native.instruction_sets())}",
        "threads": str(effective_n_threads(None, native.thread_limit())),
    }


def show_versions() -> None:
    """Print versions, instruction set and threads, for a bug report.

    See Also
    --------
    sklearn.show_versions : The same for scikit-learn.

    Examples
    --------
    >>> import powermeans
    >>> powermeans.show_versions()  # doctest: +ELLIPSIS
    powermeans ...
    """
    for name, value in versions().items():
        print(f"{name:16} {value}")
