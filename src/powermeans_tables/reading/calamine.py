"""Read a workbook with Calamine: a program of its own, which ends alone where memory does.

Calamine makes a cell for each place between the first and the last that a sheet names, and ends its
process where there is no memory for them. It imports nothing else of the package, since that takes
longer than to read most workbooks.
"""

import datetime
import pickle
import sys
from typing import Any

_MOST_ABOVE = 20  # rows


def main(libraries: str, path: str, most_memory: str, most_seconds: str, wanted: str) -> None:
    """Write how many cells each sheet has, and where one starts, its rows and its merged cells."""
    sys.path.append(libraries)
    try:
        _limit(int(most_memory), int(most_seconds))
        from python_calamine import CalamineWorkbook

        book = CalamineWorkbook.from_path(path)
        names = list(book.sheet_names)
        sheets = {each: book.get_sheet_by_name(each) for each in names if wanted in ("", each)}
        cells = {each: sheet.to_python() for each, sheet in sheets.items()}
        sizes = {each: sum(len(row) - row.count("") for row in cells[each]) for each in cells}
        # The first one, unless another has much more, as behind a cover or before an appendix.
        first = next((each for each in sizes if sizes[each]), "")
        sheet = max(sizes, key=lambda each: sizes[each] * (1 + (each == first)), default="")
        start = (sheets[sheet].start or (0, 0)) if sheets else (0, 0)
        rows = [list(map(_plain, row)) for row in cells.get(sheet, [])]
        merged = [(*a, *b) for a, b in (sheets and sheets[sheet].merged_cell_ranges) or ()]
        wide = [(a - start[0], b - start[1], d - start[1]) for a, b, c, d in merged if a == c]
        wide = [each for each in wide if each[0] < _MOST_ABOVE]
        found: Any = {each: sizes.get(each, 0) for each in names}, sheet, start, rows, wide
    except MemoryError:
        sys.exit(1)
    except BaseException as error:  # Calamine panics with one that is no Exception
        found = str(error) or type(error).__name__
    pickler = pickle.Pickler(sys.stdout.buffer, protocol=5)
    pickler.fast = True  # no cell is there twice
    pickler.dump(found)


def _limit(most_memory: int, most_seconds: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    for which, most in (
        (resource.RLIMIT_AS, most_memory),
        (resource.RLIMIT_CPU, most_seconds),
        (resource.RLIMIT_CORE, 0),
    ):
        hard = resource.getrlimit(which)[1]
        is_lower = most < hard or hard == resource.RLIM_INFINITY
        resource.setrlimit(which, (most if is_lower else hard, hard))


def _plain(cell: Any) -> Any:
    if isinstance(cell, float):
        return int(cell) if cell.is_integer() and abs(cell) < 2**53 else cell
    if isinstance(cell, datetime.time | datetime.timedelta):
        return str(cell)
    if isinstance(cell, datetime.date) and not isinstance(cell, datetime.datetime):
        return datetime.datetime(cell.year, cell.month, cell.day)
    return None if cell == "" else cell


if __name__ == "__main__":
    main(*sys.argv[1:])
