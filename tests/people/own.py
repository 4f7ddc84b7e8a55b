"""Fifteen files as people have them, with planted groups, by who wrote the reader."""

import csv
import gzip
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openpyxl
import pyarrow as pa
from people.planted import Planted
from pyarrow import parquet

Columns = dict[str, Sequence[Any]]


def groups_of(sizes: Sequence[int], rng: np.random.Generator) -> np.ndarray:
    """Return the group of each row, in mixed order."""
    return rng.permutation(np.repeat(np.arange(len(sizes)), sizes))


def around(means: Sequence[float], groups: np.ndarray, sd: float, rng: Any) -> np.ndarray:
    """Return a number for each row, near the mean of its group."""
    return np.array(means)[groups] + sd * rng.normal(size=len(groups))


def mostly(words: Sequence[str], groups: np.ndarray, rng: Any, share: float = 0.94) -> list[str]:
    """Return a word for each row: mostly that of its group."""
    others = rng.integers(len(words), size=len(groups))
    is_own = rng.random(len(groups)) < share
    return [words[g if own else o] for g, own, o in zip(groups, is_own, others, strict=True)]


def rows_of(columns: Columns) -> Iterable[tuple[Any, ...]]:
    """Return the cells of all rows, the header first."""
    return [tuple(columns), *zip(*columns.values(), strict=True)]


def as_csv(columns: Columns, delimiter: str = ",") -> str:
    """Return the text of a file with a header."""
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\r\n").writerows(rows_of(columns))
    return text.getvalue()


def employees(folder: Path) -> Planted:
    """Departments, levels and genders beside two numbers."""
    rng = np.random.default_rng(1)
    groups = groups_of([220, 180, 150, 90], rng)
    columns: Columns = {
        "EmployeeNumber": rng.permutation(len(groups)) + 10_001,
        "Department": mostly(["Sales", "Research", "Operations", "Finance"], groups, rng),
        "Gender": rng.choice(["Female", "Male"], len(groups)),
        "Level": mostly(["Junior", "Senior", "Junior", "Lead"], groups, rng),
        "Age": np.rint(around([29, 44, 34, 52], groups, 3, rng)).astype(int),
        "MonthlyIncome": np.rint(around([3100, 6800, 2600, 9900], groups, 450, rng)).astype(int),
    }
    (folder / "employees.csv").write_text(as_csv(columns), encoding="utf-8")
    return Planted("employees.csv", groups.tolist(), 4, "", "categories beside two numbers")


def survey(folder: Path) -> Planted:
    """Answers from 1 to 5 with -9 for a missing one, and an age with 999."""
    rng = np.random.default_rng(2)
    groups = groups_of([260, 240, 200], rng)
    likes = np.array([[1, 2, 5, 5, 1, 4, 2, 5], [5, 5, 1, 2, 4, 1, 5, 2], [3, 1, 3, 1, 5, 5, 4, 4]])
    answers = np.clip(likes[groups] + rng.integers(-1, 2, size=(len(groups), 8)), 1, 5)
    answers[rng.random(answers.shape) < 0.06] = -9
    age = np.rint(around([38, 45, 41], groups, 9, rng)).astype(int)
    age[rng.random(len(age)) < 0.05] = 999
    columns: Columns = {"respondent": np.arange(1, len(groups) + 1), "age": age}
    columns |= {f"q{j + 1}": answers[:, j] for j in range(8)}
    (folder / "survey.csv").write_text(as_csv(columns), encoding="utf-8")
    return Planted("survey.csv", groups.tolist(), 3, "", "codes for missing answers")


def feedback(folder: Path) -> Planted:
    """Answers in words, and a ticket number."""
    rng = np.random.default_rng(3)
    groups = groups_of([150, 150, 120], rng)
    scale = ["Strongly disagree", "Disagree", "Neutral", "Agree", "Strongly agree"]
    likes = np.array([[0, 4, 1, 3, 4, 0], [4, 1, 4, 0, 1, 3], [2, 4, 4, 4, 0, 1]])
    drawn = np.clip(likes[groups] + rng.integers(-1, 2, size=(len(groups), 6)), 0, 4)
    columns: Columns = {"Ticket": rng.choice(90_000, len(groups), replace=False) + 100_000}
    for j, name in enumerate(["easy", "slow", "fair price", "friendly", "would return", "crowded"]):
        columns[name] = [scale[answer] for answer in drawn[:, j]]
    columns["budget"] = mostly(["low", "medium", "high"], groups, rng)
    columns["comment"] = [f"visit {i} was as I had thought, on the whole" for i in groups]
    (folder / "feedback.csv").write_text(as_csv(columns, ";"), encoding="utf-8")
    return Planted("feedback.csv", groups.tolist(), 3, "", "answers in words")


def workbook(folder: Path) -> Planted:
    """A sheet with a title, real dates, text categories and empty cells."""
    rng = np.random.default_rng(4)
    groups = groups_of([130, 120, 110, 100], rng)
    columns: Columns = {
        "Customer": [f"C-{number:05d}" for number in rng.permutation(len(groups))],
        "Segment": mostly(["Retail", "Trade", "Public", "Retail"], groups, rng),
        "Orders": np.maximum(0, np.rint(around([4, 25, 11, 40], groups, 2.5, rng))).astype(int),
        "Basket": np.round(around([35, 220, 610, 60], groups, 18, rng), 2),
        "Returns": np.round(np.clip(around([0.02, 0.1, 0.02, 0.3], groups, 0.02, rng), 0, 1), 3),
    }
    book = openpyxl.Workbook()
    sheet = book.active
    sheet.append(["Customers of the northern region"])
    sheet.append([])
    for row in rows_of(columns):
        cells = [cell.item() if isinstance(cell, np.generic) else cell for cell in row]
        sheet.append(cells)
    for row in range(10, 400, 37):
        sheet.cell(row, 4).value = None
    book.save(folder / "customers.xlsx")
    return Planted("customers.xlsx", groups.tolist(), 4, "", "a sheet with a title")


def packed(folder: Path) -> Planted:
    """One CSV in a zip, with decimal commas."""
    rng = np.random.default_rng(5)
    groups = groups_of([300, 200, 100], rng)
    columns: Columns = {
        name: [f"{value:.2f}".replace(".", ",") for value in around(means, groups, 1.1, rng)]
        for name, means in {
            "länge": [12, 20, 16],
            "breite": [6, 5, 12],
            "höhe": [3, 9, 4],
        }.items()
    }
    with zipfile.ZipFile(folder / "teile.zip", "w") as archive:
        archive.writestr("export/teile.csv", as_csv(columns, ";").encode("cp1252"))
    return Planted("teile.zip", groups.tolist(), 3, "", "a packed file with umlauts and commas")


def events(folder: Path) -> Planted:
    """Counts for each user as lines of JSON, some keys absent."""
    rng = np.random.default_rng(6)
    groups = groups_of([250, 200, 150], rng)
    rates = {"views": [40, 120, 35], "carts": [2, 6, 15], "orders": [1, 2, 11], "chats": [9, 1, 1]}
    counts = {name: rng.poisson(np.array(each)[groups]) for name, each in rates.items()}
    lines = []
    for i in range(len(groups)):
        line: dict[str, Any] = {"user_id": f"u{i:06x}", "channel": "web"}
        line |= {name: int(values[i]) for name, values in counts.items()}
        if rng.random() < 0.03:
            del line["chats"]
        lines.append(json.dumps(line))
    (folder / "events.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Planted("events.jsonl", groups.tolist(), 3, "", "lines of JSON with counts")


def from_r(folder: Path) -> Planted:
    """What write.table of R leaves: a header that is one name short, quotes, blanks."""
    rng = np.random.default_rng(7)
    groups = groups_of([90, 80, 70], rng)
    names = ["Sepal.Length", "Sepal.Width", "Petal.Length", "Petal.Width"]
    means = ([5.0, 5.9, 7.4], [3.9, 2.5, 3.0], [1.4, 4.2, 6.2], [0.2, 1.3, 2.2])
    values = np.column_stack([around(each, groups, 0.22, rng) for each in means])
    lines = [" ".join(f'"{name}"' for name in names)]
    lines += [
        f'"{i}" ' + " ".join(f"{cell:.1f}" for cell in row) for i, row in enumerate(values, 1)
    ]
    (folder / "flowers.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return Planted("flowers.txt", groups.tolist(), 3, "", "a header that is one name short")


def ownership(folder: Path) -> Planted:
    """Ten yes-or-no columns in two spellings, and an income."""
    rng = np.random.default_rng(8)
    groups = groups_of([260, 240, 220, 180], rng)
    owns = np.array(
        [list("1111000000"), list("0001111000"), list("0000001111"), list("1010101011")]
    )
    is_owned = (owns[groups] == "1") ^ (rng.random((len(groups), 10)) < 0.07)
    names = [
        "card",
        "loan",
        "savings",
        "mortgage",
        "car",
        "travel",
        "health",
        "life",
        "home",
        "app",
    ]
    columns: Columns = {
        name: np.where(is_owned[:, j], *(("Yes", "No") if j % 2 else (1, 0)))
        for j, name in enumerate(names)
    }
    columns["income"] = np.rint(around([21e3, 34e3, 55e3, 43e3], groups, 4e3, rng)).astype(int)
    (folder / "products.csv").write_text(as_csv(columns), encoding="utf-8")
    return Planted("products.csv", groups.tolist(), 4, "", "ten columns of yes and no")


def revenue(folder: Path) -> Planted:
    """One column of large amounts, and three of small numbers that hold the groups."""
    rng = np.random.default_rng(9)
    groups = groups_of([200, 200, 200, 200, 200], rng)
    columns: Columns = {
        "Revenue": np.round(rng.normal(500, 60, len(groups)), 2),
        "Visits": np.rint(around([4, 14, 24, 9, 19], groups, 1.2, rng)).astype(int),
        "Minutes": np.round(around([11, 5, 16, 21, 27], groups, 1.3, rng), 1),
        "Score": np.round(around([9, 3, 6, 1, 8], groups, 0.6, rng), 1),
    }
    packed_file = gzip.compress(as_csv(columns, "\t").encode("utf-16"))
    (folder / "visits.tsv.gz").write_bytes(packed_file)
    return Planted("visits.tsv.gz", groups.tolist(), 5, "", "one column spreads fifty times as far")


def places(folder: Path) -> Planted:
    """Shops in six cities by latitude and longitude."""
    rng = np.random.default_rng(10)
    groups = groups_of([80, 70, 60, 60, 50, 40], rng)
    latitudes = [52.5, 48.1, 53.6, 50.9, 50.1, 51.3]
    columns: Columns = {
        "shop": [f"Shop {i}" for i in range(len(groups))],
        "latitude": np.round(around(latitudes, groups, 0.08, rng), 5),
        "longitude": np.round(around([13.4, 11.6, 10.0, 6.9, 8.7, 12.4], groups, 0.1, rng), 5),
    }
    (folder / "shops.csv").write_text(as_csv(columns), encoding="utf-8")
    return Planted("shops.csv", groups.tolist(), 6, "", "places on a map")


def genes(folder: Path) -> Planted:
    """A wide table: 90 samples of 1 500 genes, in one unit."""
    rng = np.random.default_rng(11)
    groups = groups_of([40, 30, 20], rng)
    levels = rng.normal(8, 2, 1500) + np.zeros((3, 1500))
    levels[:, :150] += rng.normal(0, 2.5, (3, 150))
    values = levels[groups] + rng.normal(0, 1, (len(groups), 1500))
    columns: Columns = {"sample": [f"S{i:03d}" for i in range(len(groups))]}
    columns |= {f"gene_{j:04d}": np.round(values[:, j], 3) for j in range(1500)}
    (folder / "genes.csv").write_text(as_csv(columns), encoding="utf-8")
    return Planted("genes.csv", groups.tolist(), 3, "", "more columns than rows")


def ledger(folder: Path) -> Planted:
    """Amounts in euros as Germans write them, negative ones too, and a line of totals."""
    rng = np.random.default_rng(12)
    groups = groups_of([140, 120, 100], rng)

    def euros(values: Iterable[float]) -> list[str]:
        german = str.maketrans(",.", ".,")
        return [f"{value:,.2f}".translate(german) + " €" for value in values]

    amounts = {
        "Umsatz": around([12_000, 48_000, 90_000], groups, 3_000, rng),
        "Ergebnis": around([-2_500, 6_000, 1_500], groups, 700, rng),
        "Personal": around([-4_000, -21_000, -60_000], groups, 1_500, rng),
    }
    columns: Columns = {"Kunde": [f"Kunde {i} GmbH" for i in range(len(groups))] + ["Summe"]}
    columns |= {name: euros([*values, values.sum()]) for name, values in amounts.items()}
    text = as_csv(columns, ";").replace(" €", "\u00a0€")
    (folder / "konten.csv").write_bytes(text.encode("cp1252"))
    return Planted("konten.csv", [*groups.tolist(), -1], 3, "", "German money and a line of totals")


def database(folder: Path) -> Planted:
    """The one table of an SQLite database."""
    rng = np.random.default_rng(13)
    groups = groups_of([150, 150, 150], rng)
    rows = list(
        zip(
            range(1, len(groups) + 1),
            mostly(["free", "team", "business"], groups, rng),
            np.rint(around([2, 9, 31], groups, 1.5, rng)).tolist(),
            around([0.5, 3.1, 1.6], groups, 0.3, rng).tolist(),
            strict=True,
        )
    )
    (folder / "accounts.sqlite").unlink(missing_ok=True)
    with sqlite3.connect(folder / "accounts.sqlite") as opened:
        opened.execute(
            "create table accounts (id integer primary key, plan text, seats real, hours real)"
        )
        opened.executemany("insert into accounts values (?, ?, ?, ?)", rows)
    opened.close()
    return Planted("accounts.sqlite", groups.tolist(), 3, "", "a database of one table")


def typed(folder: Path) -> Planted:
    """Parquet with booleans, a dictionary, nulls and a timestamp."""
    rng = np.random.default_rng(14)
    groups = groups_of([200, 180, 160, 140], rng)
    kilometres = around([3_000, 14_000, 26_000, 9_000], groups, 1_100, rng)
    columns = {
        "vehicle_id": pa.array(rng.permutation(len(groups)) + 1),
        "fuel": pa.array(mostly(["diesel", "petrol", "diesel", "electric"], groups, rng)),
        "is_leased": pa.array(rng.random(len(groups)) < np.array([0.9, 0.1, 0.9, 0.9])[groups]),
        "km_per_year": pa.array(kilometres, mask=rng.random(len(groups)) < 0.04),
        "age_years": pa.array(around([9, 4, 2, 1], groups, 0.7, rng).astype(np.float32)),
        "seen": pa.array(
            rng.integers(1_700_000_000, 1_730_000_000, len(groups)), pa.timestamp("s")
        ),
    }
    columns["fuel"] = columns["fuel"].dictionary_encode()
    parquet.write_table(pa.table(columns), folder / "fleet.parquet")
    return Planted("fleet.parquet", groups.tolist(), 4, "", "typed columns with nulls")


def tickets(folder: Path) -> Planted:
    """Nothing to cluster: numbers of tickets, addresses and comments."""
    rng = np.random.default_rng(15)
    n_rows = 240
    columns: Columns = {
        "ticket_id": rng.choice(900_000, n_rows, replace=False) + 100_000,
        "email": [f"person{i}@example.org" for i in range(n_rows)],
        "comment": [
            f"the {i}th comment, and no two of them are alike at all" for i in range(n_rows)
        ],
    }
    (folder / "tickets.csv").write_text(as_csv(columns), encoding="utf-8")
    return Planted(
        "tickets.csv", [-1] * n_rows, 0, "no column can be clustered", "only identifiers"
    )


WRITERS: tuple[Callable[[Path], Planted], ...] = (
    *(employees, survey, feedback, workbook, packed, events, from_r, ownership, revenue),
    *(places, genes, ledger, database, typed, tickets),
)


def write_all(folder: Path) -> list[Planted]:
    """Write all files, and return what is planted in each."""
    return [write(folder) for write in WRITERS]
