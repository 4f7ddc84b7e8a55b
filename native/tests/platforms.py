"""Build and test the native core for other compilers and machines, and compare what it computes.

Run `python native/tests/platforms.py`. Platforms are the presets of CMakePresets.json that inherit
`platform`. One whose compiler or emulator is not installed is left out, with a line that says so;
with `--all` that is a failure.
The tests must pass on the others, and the digests that `digests.cpp` prints must be equal:
instruction sets that fuse products and sums agree with each other, and so do those that round
twice.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
Digests = dict[str, str]


def programs_by_platform() -> dict[str, list[str]]:
    """Return the compiler of each platform, and its emulator if it has one."""
    presets = json.loads((ROOT / "CMakePresets.json").read_text())["configurePresets"]
    needed = ("CMAKE_CXX_COMPILER", "CMAKE_CROSSCOMPILING_EMULATOR")
    return {
        preset["name"]: [
            preset["cacheVariables"][key] for key in needed if key in preset["cacheVariables"]
        ]
        for preset in presets
        if preset.get("inherits") == "platform"
    }


def build_and_test(platform: str) -> Path:
    """Build and test the core for a platform, and return the file of its digests."""
    # CMake and ninja stand beside the interpreter of a virtual environment.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    command = ["cmake", "--workflow", "--preset", platform]
    subprocess.run(command, cwd=ROOT, env={**os.environ, "PATH": path}, check=True)
    return ROOT / "build" / platform / "digests.txt"


def read(path: Path) -> dict[tuple[str, str], Digests]:
    """Return the digests by arithmetic and instruction set."""
    found: dict[tuple[str, str], Digests] = {}
    for line in path.read_text().splitlines():
        arithmetic, instruction_set, name, value = line.split("\t")
        found.setdefault((arithmetic, instruction_set), {})[name] = value
    return found


def count_differing(paths: list[Path]) -> int:
    """Print a row for each platform and instruction set, and count the digests that differ."""
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
    return n_differing


def main() -> None:
    """Build, test and compare the platforms that can be tried on this machine."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--all", action="store_true", help="fail where one is left out")
    needs_all = parser.parse_args().all
    programs = programs_by_platform()
    missing = {
        platform: [name for name in needed if shutil.which(name) is None]
        for platform, needed in programs.items()
    }
    # An emulator runs tests on one core, while the next platform is built.
    with ThreadPoolExecutor(2) as pool:
        there = [platform for platform in programs if not missing[platform]]
        found = list(pool.map(build_and_test, there))
    n_differing = count_differing(found)
    for platform, names in missing.items():
        if names:
            print(f"left out: {platform}, which needs {' and '.join(names)}")
    sys.exit(n_differing > 0 or not found or (needs_all and any(missing.values())))


if __name__ == "__main__":
    try:
        main()
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(error.cmd)} failed")
