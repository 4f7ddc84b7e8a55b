"""Compare what the core computes on several platforms, and exit with 1 where two differ.

Run `python tests/compare_digests.py FILE...` with what `native/tests/digests.cpp` printed, each
file in a folder named after its platform. Instruction sets that fuse products and sums agree with
each other, and so do those that round twice.
"""

from __future__ import annotations

import sys
from pathlib import Path

Digests = dict[str, str]


def read(path: Path) -> dict[tuple[str, str], Digests]:
    """Return the digests by arithmetic and instruction set."""
    found: dict[tuple[str, str], Digests] = {}
    for line in path.read_text().splitlines():
        arithmetic, instruction_set, name, value = line.split("\t")
        found.setdefault((arithmetic, instruction_set), {})[name] = value
    return found


def main(paths: list[Path]) -> None:
    """Print a table with a line for each platform and instruction set."""
    expected: dict[str, Digests] = {}
    n_differing = 0
    print("| platform | instruction set | arithmetic | equal digests |\n|---|---|---|---|")
    for path in paths:
        for (arithmetic, instruction_set), digests in read(path).items():
            first = expected.setdefault(arithmetic, digests)
            differing = [name for name in first if digests.get(name) != first[name]]
            equal = f"{len(first) - len(differing)} of {len(first)}"
            print(f"| {path.parent.name} | {instruction_set} | {arithmetic} | {equal} |")
            for name in differing:
                print(f"{path}: {name} differs", file=sys.stderr)
            n_differing += len(differing)
    sys.exit(n_differing > 0 or not expected)


if __name__ == "__main__":
    main([Path(name) for name in sys.argv[1:]])
