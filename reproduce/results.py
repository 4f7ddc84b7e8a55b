"""What is stored of full runs: a line for each item and each claim, few tables, and few rows."""

import csv
import gzip
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from powermeans.system.atomic_write import atomic_write
from reproduce.item import Cell, Claim, Row, Rows, Table, Value
from reproduce.rows import groups, value_of

RESULTS = Path(__file__).parent / "results"


def replace_lines(file: str, name: str, lines: Sequence[Mapping[str, Value]]) -> None:
    """Replace the lines of an item in a file, which are in the order of the items' names."""
    others = [line for line in stored(file) if line["item"] != name]
    new = [{"item": name, **line} for line in lines]
    write(RESULTS / f"{file}.csv", sorted([*others, *new], key=lambda line: str(line["item"])))


def stored(file: str) -> list[dict[str, str]]:
    """Return the lines of a file of results; none where there is no file."""
    path = RESULTS / f"{file}.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def stored_claims() -> dict[str, list[Claim]]:
    """Return the claims of each item."""
    claims: dict[str, list[Claim]] = {}
    for line in stored("claims"):
        claims.setdefault(line.pop("item"), []).append(Claim(**line))  # type: ignore[arg-type]
    return claims


def store_tables(name: str, tables: Sequence[Table]) -> None:
    """Store the tables of an item that the docs show."""
    by_item = {**stored_tables(), name: tables}
    lines = [f"{json.dumps(item)}: {json.dumps(of)}" for item, of in sorted(by_item.items()) if of]
    with atomic_write(RESULTS / "tables.json") as file:
        file.write("{{\n{}\n}}\n".format(",\n".join(lines)).encode())


def stored_tables() -> dict[str, Sequence[Table]]:
    """Return the tables that the docs show, by item."""
    path = RESULTS / "tables.json"
    by_item = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    return {item: [Table(*parts) for parts in tables] for item, tables in by_item.items()}


def write(path: Path, rows: Rows) -> None:
    """Write rows as CSV, numbers with seven digits, packed where the path ends so."""
    text = io.StringIO()
    columns = list(dict.fromkeys(column for row in rows for column in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow({k: f"{v:.7g}" if isinstance(v, float) else v for k, v in row.items()})
    content = text.getvalue().encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as file:
        file.write(gzip.compress(content, mtime=0) if path.suffix == ".gz" else content)


def stored_rows(name: str, cells: Sequence[Cell]) -> dict[tuple[str, ...], list[Row]]:
    """Return the stored rows of an item by the texts of the key of their cell."""
    path = RESULTS / f"{name}.csv.gz"
    if not path.is_file():
        return {}
    lines = csv.DictReader(io.StringIO(gzip.decompress(path.read_bytes()).decode(), newline=""))
    rows = [{key: value_of(text) for key, text in line.items() if text} for line in lines]
    by_key = groups(rows, *cells[0].key)
    return {tuple(map(str, key)): of_cell for key, of_cell in by_key.items()}
