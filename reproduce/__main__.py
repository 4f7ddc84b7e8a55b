"""Run items by name: `python -m reproduce NAME`, or `all`; without a name, list them."""

import argparse
import difflib
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import threadpoolctl

from powermeans.errors import MissingDataError
from reproduce import page, results, running
from reproduce.item import Findings, Rows

ITEMS = Path(__file__).parent / "items"
MOST_THREADS = 2
FAILED, WRONG_USE, INTERRUPTED = 1, 2, 130


def item_names() -> list[str]:
    """Return the names of all items: those of their files, with `-` for `_`."""
    return sorted(file.stem.replace("_", "-") for file in ITEMS.glob("[a-z]*.py"))


def module_of(name: str) -> ModuleType:
    """Return the module of an item; see `reproduce.item`."""
    return importlib.import_module(f"reproduce.items.{name.replace('-', '_')}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the command line asks for, and return the exit status."""
    asked = parsed(arguments)
    offered = item_names()
    if not asked.names:
        width = max(map(len, offered))
        print(*(f"{name:{width}}  {module_of(name).TITLE}" for name in offered), sep="\n")
        return 0
    names = offered if asked.names == ["all"] else [n.replace("_", "-") for n in asked.names]
    if unknown := [name for name in names if name not in offered]:
        print(*(f"error: {advice(name, offered)}" for name in unknown), sep="\n", file=sys.stderr)
        return WRONG_USE
    os.environ.setdefault("MPLBACKEND", "Agg")
    with threadpoolctl.threadpool_limits(MOST_THREADS):
        return run_all(names, is_quick=asked.quick, is_fresh=asked.fresh)


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python -m reproduce",
        description="Compute the tables, figures and claims of the sources, and compare.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="items, or all; none lists them")
    parser.add_argument("--quick", action="store_true", help="a small part, in seconds to minutes")
    parser.add_argument("--fresh", action="store_true", help="compute finished cells again")
    return parser.parse_args(arguments)


def advice(name: str, offered: Sequence[str]) -> str:
    """Return what is said of a name that no item has."""
    near = [one for one in offered if name.rstrip("0123456789") in one]
    near = near or difflib.get_close_matches(name, offered, n=1, cutoff=0.4)
    better = f"did you mean {' or '.join(near)}?" if near else "python -m reproduce lists them all"
    return f"there is no item {name!r}: {better}"


def run_all(names: Sequence[str], *, is_quick: bool, is_fresh: bool) -> int:
    """Run items one after another; one that fails does not keep the others from running.

    An item without its data is not tested, which is no failure.
    """
    failed = []
    for name in names:
        try:
            run(name, module_of(name), is_quick=is_quick, is_fresh=is_fresh)
        except MissingDataError as error:
            print(f"\n{name} is not tested: {error}", file=sys.stderr)
        except KeyboardInterrupt:
            print("\ninterrupted: the same command goes on from the last cell", file=sys.stderr)
            return INTERRUPTED
        except Exception:
            traceback.print_exc()
            failed.append(name)
    if failed:
        print(f"error: without results: {', '.join(failed)}", file=sys.stderr)
    return FAILED if failed else 0


def run(name: str, module: ModuleType, *, is_quick: bool, is_fresh: bool = False) -> Findings:
    """Compute an item, and print what it shows; a full run stores what the docs show of it."""
    folder = running.CACHE / name / ("quick" if is_quick else "full")
    cells = module.cells(is_quick)
    rows, provenance = running.compute_all(name, cells, folder, is_fresh=is_fresh)
    found: Findings = module.findings(rows)
    pictures = drawn(name, module, rows, folder if is_quick else results.RESULTS)
    print(f"\n# {module.TITLE}\n\n{page.body(module, found)}\n", *pictures, sep="\n")
    if not is_quick:
        page.store(name, module, found, provenance)
        if getattr(module, "KEEPS_ROWS", False):
            results.write(results.RESULTS / f"{name}.csv.gz", rows)
        page.main()
    return found


def drawn(name: str, module: ModuleType, rows: Rows, folder: Path) -> list[Path]:
    """Draw the pictures of an item, if it has some, and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    if hasattr(module, "draw"):
        module.draw(rows, folder)
    return sorted({*folder.glob(f"{name}*.png"), *folder.glob(f"{name}*.svg")})


if __name__ == "__main__":
    sys.exit(main())
