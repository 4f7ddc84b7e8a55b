"""Files of all kinds as frames, whole or hostile."""

import contextlib
import csv as stdlib_csv
import datetime
import gzip
import json
import os
import re
import resource
import signal
import sqlite3
import struct
import subprocess
import sys
import tempfile
import threading
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import openpyxl
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv
from sklearn.pipeline import make_pipeline
from tables.answers import clusters_in

import powermeans as pm
from powermeans import KMeans, Prepare, load, open_table, read_frame, report, save
from powermeans.errors import TableError
from powermeans.scale import limits
from powermeans_tables.reading import databases, json_lines, sheets
from powermeans_tables.reading.text_form import distinct

ROWS = [(f"n{i}", i % 2 * 50 + i % 7, ["red", "blue"][i % 2]) for i in range(40)]
FRAME = pd.DataFrame(ROWS, columns=["name", "size", "color"])


def as_workbook(path, above=(), sheets=("Sheet",)):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name in sheets:
        sheet = book.create_sheet(name)
        for row in [*above, tuple(FRAME.columns), *ROWS] if name == sheets[0] else []:
            sheet.append(row)
    book.save(path)


def book_of(rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    return book


def as_zip(path, *names):
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, CSV)


def as_sqlite(path, *tables):
    with contextlib.closing(sqlite3.connect(path)) as opened:
        for table in tables:
            FRAME.to_sql(table, opened, index=False)


CSV = FRAME.to_csv(index=False)
WRITERS = {
    "r.txt": lambda path: path.write_text(
        "size color\n" + "".join(f"{name} {size} {color}\n" for name, size, color in ROWS)
    ),
    "a.xlsx": as_workbook,
    "titled.xlsx": lambda path: as_workbook(path, [("Sizes of all",), ()], ("One", "Two")),
    "a.jsonl": lambda path: FRAME.to_json(path, orient="records", lines=True),
    "a.json": lambda path: path.write_text(json.dumps(FRAME.to_dict("records"))),
    "a.zip": lambda path: as_zip(path, "in/a.csv", "__MACOSX/in/a.csv", "in/.b"),
    "a.sqlite": lambda path: as_sqlite(path, "sizes"),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_file_of_any_kind_gives_its_columns(name, tmp_path):
    WRITERS[name](tmp_path / name)
    frame = read_frame(tmp_path / name)
    assert frame.column_names[-2:] == ["size", "color"]
    assert frame["color"].to_pylist() == list(FRAME["color"])
    assert list(map(int, frame["size"].to_pylist())) == list(FRAME["size"])
    assert frame.num_rows == len(FRAME)


# The first row, the least and the largest value or the words of each column below, and whether the
# row contains names: it does so clearly, in doubt, or not.
FIRST_ROWS = [
    ("shop,2021,2022,2023", "name 9-50 9-50 900-5000", "names"),
    ("shop,2023,2020,2015", "name 900-5000 900-5000 900-5000", "names"),
    (",2021,2022,2023", "name 9-50 9-50 9-50", "names"),
    ("shop,2021-01-01,2021-02-01", "name 9-50 9-50", "names"),
    ("sample,400.5,401,401.5", "name 0.1-0.9 0.1-0.9 0.1-0.9", "names"),
    ("0,1,2", "0.1-9.5 0.1-9.5 0.1-9.5", "names"),
    ("person,1,2,3,4,5,6", "name 1-5 1-5 1-5 1-5 1-5 1-5", "names"),
    ("shop,2021", "name 9-50", "names?"),
    ("shop,2021,2022", "name 900-5000 900-5000", "names?"),
    ("shop,1001,1007,1023", "name 9-50 9-50 9-50", "names?"),
    ("Anna,1,2,3", "name 1-5 1-5 1-5", "data?"),
    ("2021", "9-50", "data?"),
    ("1,2,3", "1-5 1-5 1-5", "data"),
    ("Anna,34,1200", "name 18-70 900-5000", "data"),
    ("Anna,unknown,12", "name 18-70 9-50", "data"),
    ("Acme,1990,2010", "name 1950-1999 2000-2020", "data"),
    ("Total,5000,6000,7000", "name 9-50 9-50 9-50", "data"),
    ("2001,5.5", "2002-2012 1-9", "data"),
    ("yes,red", "yes|no red|blue", "data"),
    ("yes,Anna", "yes|no name", "data"),
    ("A-17,B4", "A-7|A-21|A-200 B1|B9", "data"),
    ("<0.1,5", "0.1-9.5 1-9", "data"),
    ("asked,red", "yes|no red|blue", "data?"),
    ("asked,color,other", "yes|no red|blue other|more", "names?"),
    ("asked,color", "yes|no red|blue", "names"),
    ("color,red", "red|blue 9-50", "names"),
    ("day,color", "2024-05-01|2024-05-02 red|blue", "names"),
    ("odd,5,7", "9-50 9-50 9-50", "names?"),
    ("5K,10K", "9-50 9-50", "names"),
]


@pytest.mark.parametrize(
    "last", ["Total,9,6", "12 runs,,", "12,,", "12 kg,,", "Run 12,,", "12 runs,5,"]
)
def test_a_last_row_that_sums_up_or_counts_the_others_is_found(last, tmp_path):
    (tmp_path / "a.csv").write_text(f"name,a,b\nx,4,5\ny,5,1\n{last}\n")
    assert len(open_table(tmp_path / "a.csv").totals) == (last in ("Total,9,6", "12 runs,,"))


def test_a_cell_may_be_longer_than_python_reads_by_default(tmp_path):
    limit = stdlib_csv.field_size_limit()
    (tmp_path / "a.csv").write_text(f"name,a\n{'x' * (limit + 1)},4\ny,5\n")
    assert read_frame(tmp_path / "a.csv")["a"].to_pylist() == ["4", "5"]
    assert stdlib_csv.field_size_limit() == limit


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
@pytest.mark.parametrize(("first", "below", "expected"), FIRST_ROWS)
def test_names_in_the_first_row_are_told_from_data(first, below, expected, suffix, tmp_path):
    rng, columns = np.random.default_rng(0), []
    for each in below.split():
        if each == "name" or "|" in each:
            words = each.split("|")
            columns.append([words[i % len(words)] if words[1:] else f"n{i}" for i in range(12)])
        else:
            a, b = map(float, each.split("-"))
            columns.append(
                [*map(float, (a + (b - a) * rng.random(12)).round(int(b < 10 > a % 1 > 0)))]
            )
    rows = [*map(list, zip(*columns, strict=True))]
    rows.insert(0, [float(cell) if cell.isdecimal() else cell for cell in first.split(",")])
    file = tmp_path / f"a.{suffix}"
    frame = pd.DataFrame(rows)
    if suffix == "csv":
        file.write_text(f"{first}\n{frame[1:].to_csv(index=False, header=False)}")
    else:
        frame.to_excel(file, index=False, header=False)
    found = open_table(file)
    assert found.n_rows == 12 + expected.startswith("data")
    (doubt,) = found.doubts or [""]
    assert ("taken for " + expected[:-1] in doubt) if expected.endswith("?") else not doubt
    assert open_table(file, header=True).n_rows == 12
    assert open_table(file, header=False).n_rows == 13


def test_a_source_below_a_text_is_left_out_and_a_row_that_is_too_short_is_refused(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(f"{CSV}\nSource: the office of 2024\nAll rights reserved\n")
    found = open_table(file)
    assert found.n_rows == 40
    assert found.how_read == ["2 lines below the table left out"]
    for content in (f"{CSV}5\n", CSV.replace("n39,54,blue", "lost\nn39,54,blue")):
        file.write_text(content)
        with pytest.raises(TableError, match="has 1 cell where 3 are expected"):
            read_frame(file)


JANUARY, FEBRUARY = datetime.date(2024, 1, 1), datetime.datetime(2024, 2, 1)
# Rows of a sheet, the names that they have, the rows below and how these were found.
SHEETS = {
    "months": ([["shop", JANUARY, FEBRUARY]], "shop 2024-01 2024-02", ""),
    "days": ([["shop", JANUARY, datetime.date(2024, 1, 2)]], "shop 2024-01-01 2024-01-02", ""),
    "units": (
        [["shop", "mass", "cost"], [None, "kg", "€"]],
        "shop mass cost",
        "a row of units below the header left out",
    ),
    "title": (
        [["Report"], [], ["shop", 2021, 2022]],
        "shop 2021 2022",
        "2 rows above the header left out",
    ),
    "title of several cells": (
        [["Report", None, JANUARY], [], ["shop", "mass", "cost"]],
        "shop mass cost",
        "2 rows above the header left out",
    ),
}


@pytest.mark.parametrize(("above", "names", "said"), SHEETS.values(), ids=SHEETS)
def test_a_sheet_has_titles_dates_as_names_and_units(above, names, said, tmp_path):
    book_of([*above, *([f"n{i}", 900.5 + i, 40 + i] for i in range(9))]).save(tmp_path / "a.xlsx")
    found = open_table(tmp_path / "a.xlsx")
    assert " ".join(found.names) == names
    assert ("; ".join(found.how_read), found.n_rows) == (said, 9)
    plain = open_table(tmp_path / "a.xlsx", header=False)
    assert plain.names == ("c1", "c2", "c3")
    assert plain.n_rows == 9 + sum(map(bool, above))


@pytest.mark.parametrize("suffix", ["csv", "tsv", "xlsx", "jsonl", "parquet", "feather"])
def test_rows_are_written_in_every_format_with_what_was_there(suffix, run):
    Path("in.csv").write_text("name,size,note\n=1+1,5,+a\nb,,\nc,90,-b\nd,91,@c\n")
    run(f"fit in.csv -k 2 -q --columns size -o out.{suffix}")
    found = read_frame(f"out.{suffix}")
    assert found.column_names == [
        *("name", "size", "note", "cluster", "distance", "second_cluster", "sure")
    ]
    assert found["name"].to_pylist()[0] == "=1+1"
    assert [cell or "" for cell in found["note"].to_pylist()] == ["+a", "", "-b", "@c"]
    clusters = [str("" if cell is None else cell) for cell in found["cluster"].to_pylist()]
    assert clusters[1] == ""
    assert clusters[2] == clusters[3] != clusters[0]
    if suffix == "xlsx":
        (cell,) = (row[0] for row in openpyxl.load_workbook("out.xlsx").active.iter_rows(2, 2))
        assert cell.data_type == "s"
        groups = read_frame("out.xlsx", array="groups").to_pandas().sort_values("size")
        assert [*groups["size"], *groups["mean size"]] == [1, 2, 5, 90.5]
        assert [*groups["name"]] == ["Lower size", "Higher size"]


def test_a_sheet_leaves_out_letters_that_it_cannot_have(run):
    pd.DataFrame({"x": [1, 5], "b": [b"\x00a", b"\xff"]}).to_feather("in.feather")
    run("fit in.feather -k 2 -q -o out.xlsx")
    assert read_frame("out.xlsx")["b"].to_pylist() == ["a", "\ufffd"]


def test_a_query_chooses_rows_of_a_database(run):
    as_sqlite(Path("two.sqlite"), "sizes", "others")
    assert "2 tables" in run("fit two.sqlite -k 2", code=3).err
    query = "SELECT size, color FROM sizes WHERE size >= 0"
    ended = run("fit", query, *["--database", "two.sqlite", "-k", "2", "-q", "-o", "out.csv"])
    assert "2 clusters of 40 rows and 2 columns" in ended.out
    labels = clusters_in("out.csv")
    assert labels == labels[:2] * 20
    assert "query failed" in run("fit", "SELECT none", "--database", "two.sqlite", code=3).err
    assert "query failed" in run("fit", "DROP TABLE sizes", "--database", "two.sqlite", code=3).err
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect("one.duckdb") as opened:
        opened.register("given", pa.Table.from_pandas(FRAME))
        opened.execute("create table sizes as select * from given")
    assert "40 rows" in run("fit one.duckdb -k 2 -q").out


@pytest.fixture(scope="module")
def small_databases(tmp_path_factory):
    folder = tmp_path_factory.mktemp("databases")
    as_sqlite(folder / "small.sqlite", "sizes")
    with contextlib.closing(sqlite3.connect(folder / "small.sqlite")) as opened:
        opened.execute("CREATE VIRTUAL TABLE texts USING fts5(text)")
        opened.execute("INSERT INTO texts VALUES ('two words')")
        opened.commit()
    duckdb = pytest.importorskip("duckdb")
    duckdb.connect(str(folder / "small.duckdb")).execute("create table sizes as select 1 as size")
    return folder


COUNTS = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT"


@pytest.mark.parametrize(
    ("file", "query", "said"),
    [
        ("small.sqlite", f"{COUNTS} x FROM c", "more than the 200,000 cells that are read"),
        ("small.sqlite", f"{COUNTS} NULL FROM c", "more than the 200,000 cells"),
        ("small.sqlite", f"{COUNTS} hex(zeroblob(99999)) FROM c", "more than the 200,000 cells"),
        ("small.sqlite", f"{COUNTS} a.x FROM c AS a, c AS b", "too many steps: add LIMIT"),
        ("small.sqlite", f"{COUNTS} max(x) FROM c", "too many steps: add LIMIT"),
        ("small.sqlite", "ATTACH 'made' AS other", "not authorized"),
        ("small.sqlite", "VACUUM INTO 'made'", "authorization denied: pass one SELECT"),
        ("small.sqlite", "PRAGMA user_version = 3", "not authorized"),
        ("small.sqlite", "CREATE TEMP TABLE made (x)", "not authorized"),
        ("small.sqlite", "SELECT load_extension('made')", "not authorized"),
        ("small.duckdb", "SELECT range FROM range(1000000000000)", r"more than the \d+,\d+ cells"),
        ("small.duckdb", f"{COUNTS} max(x) FROM c", "takes too long or too much memory: add LIMIT"),
        ("small.duckdb", "SELECT 1; COPY sizes TO 'made'", "pass one SELECT"),
        ("small.duckdb", "ATTACH 'made'", "pass one SELECT"),
        ("small.duckdb", "COPY sizes TO 'made'", "pass one SELECT"),
        ("small.duckdb", "EXPORT DATABASE 'made'", "pass one SELECT"),
        ("small.duckdb", "INSTALL httpfs", "pass one SELECT"),
        ("small.duckdb", "SET memory_limit = '99GB'", "pass one SELECT"),
        ("small.duckdb", "SELECT * FROM read_csv('made')", "disabled by configuration"),
    ],
)
def test_a_query_reads_its_database_and_nothing_without_end(
    file, query, said, small_databases, monkeypatch
):
    monkeypatch.chdir(small_databases)
    monkeypatch.setattr(databases, "_MOST_CELLS", 200_000)
    monkeypatch.setattr(databases, "_MOST_STEPS", 10**7)
    monkeypatch.setattr(databases, "_MOST_SECONDS", 2)
    before = sorted(Path().iterdir())
    with pytest.raises(TableError, match=said):
        read_frame(file, query=query)
    assert sorted(Path().iterdir()) == before


def test_rows_that_come_in_parts_are_those_of_one(small_databases):
    numbers = f"{COUNTS} CASE WHEN x % 70000 THEN x ELSE 'many' END AS y, x / 2.0 AS z FROM c"
    found = read_frame(small_databases / "small.sqlite", query=f"{numbers} LIMIT 100000")
    assert found["y"].to_pylist()[69_998:70_001] == ["69999", "many", "70001"]
    assert found["z"].to_pylist()[-1] == 50_000.0
    query = "SELECT NULL AS x UNION ALL SELECT 1 UNION ALL SELECT 2.5"
    assert read_frame(small_databases / "small.sqlite", query=query)["x"].to_pylist() == [
        *(None, 1.0, 2.5)
    ]
    query = "SELECT * FROM texts WHERE texts MATCH 'two'"
    assert read_frame(small_databases / "small.sqlite", query=query)["text"].to_pylist() == [
        "two words"
    ]


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("file", ["small.sqlite", "small.duckdb"])
def test_control_c_stops_a_query(file, small_databases):
    timer = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        read_frame(small_databases / file, query=f"{COUNTS} max(x) FROM c")
    timer.join()


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [('r="C41"', 'r ="XFD1048576"', "far from"), ('r="C41"', 'r="ZZ999999"', "far from"),
     ('r="C41"', 'r="B99999999"', "far from"), ('r="C41"', 'r="AAAA1"', ""),
     ('<row r="41"', '<row r="900000000"', ""),
     ("</sheetData>", '<row r="42">' + "<c/>" * 3 * 10**7 + "</row></sheetData>", "GB or 1 s")],
    ids=range(6),
)  # fmt: skip
def test_a_workbook_that_grows_beyond_memory_is_refused_and_ends_nothing_else(
    before, after, said, tmp_path, monkeypatch
):
    if "1 s" in said:  # a busy machine may take that long to start
        monkeypatch.setattr(sheets, "_SECONDS", 1)
    as_workbook(tmp_path / "a.xlsx")
    with (
        zipfile.ZipFile(tmp_path / "a.xlsx") as given,
        zipfile.ZipFile(tmp_path / "b.xlsx", "w", zipfile.ZIP_DEFLATED) as made,
    ):
        for name in given.namelist():
            made.writestr(name, given.read(name).replace(before.encode(), after.encode()))
    with pytest.raises(TableError, match=said) if said else contextlib.nullcontext():
        assert read_frame(tmp_path / "b.xlsx").num_rows == 40


def test_archives_that_hold_too_much_or_too_many(tmp_path):
    as_zip(tmp_path / "two.zip", "a.csv", "b.csv")
    with pytest.raises(TableError, match=r'2 files.*"a\.csv", "b\.csv"'):
        read_frame(tmp_path / "two.zip")
    assert read_frame(tmp_path / "two.zip", array="b.csv").num_rows == 40
    with pytest.raises(TableError, match=r'no file "c\.csv"'):
        read_frame(tmp_path / "two.zip", array="c.csv")
    with (
        zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("a.csv", "w", force_zip64=True) as member,
    ):
        for _ in range(1100):
            member.write(bytes(2**20))
    with pytest.raises(TableError, match="unpacks from"):
        read_frame(tmp_path / "bomb.zip")


@pytest.mark.parametrize(
    ("inner", "said"),
    [("more.zip", "another archive"), ("[Content_Types].xml", "of Office, but no workbook")],
)
def test_an_archive_of_no_table_is_told_as_what_it_is(inner, said, tmp_path):
    as_zip(tmp_path / "a.xlsx", inner)
    with pytest.raises(TableError, match=said):
        read_frame(tmp_path / "a.xlsx")


def test_the_mark_that_excel_needs_before_utf_8_is_written_again(run):
    Path("in.csv").write_text("größe,y\n1,2\n9,8\n", encoding="utf-8-sig")
    run("fit in.csv -k 2 -q -o out.csv --labels-only")
    assert not Path("out.csv").read_bytes().startswith(b"\xef\xbb\xbf")
    run("fit in.csv -k 2 -q -o out.csv")
    assert Path("out.csv").read_bytes().startswith("\ufeffgröße,y,cluster,".encode())
    assert read_frame("out.csv").column_names[0] == "größe"


def test_headers_of_two_rows_are_joined_hidden_rows_left_out_and_formats_kept(run):
    book = openpyxl.Workbook()
    sheet = book.active
    for row in [["Report of all shops"], [], ["Shop", "Sales", None, "Costs"]]:
        sheet.append(row)
    sheet.append([None, "Store", "Online", "Rent"])
    for merged in ("A1:D1", "A3:A4", "B3:C3"):
        sheet.merge_cells(merged)
    for row in range(5, 45):
        sheet.append([f"shop {row}", row % 2 * 50.0 + row / 8, 900.5 - row, row / 100])
        sheet.cell(row, 2).number_format = '#,##0.00 "€"'
        sheet.cell(row, 4).number_format = "0.0%"
        sheet.row_dimensions[row].hidden = row in (7, 44)
    book.save("in.xlsx")
    found = open_table("in.xlsx")
    assert found.names == ("Shop", "Sales: Store", "Sales: Online", "Costs: Rent")
    assert found.n_rows == 38
    assert "2 hidden rows left out" in found.how_read
    run("fit in.xlsx -k 2 -q -o out.xlsx")
    _, first = [*openpyxl.load_workbook("out.xlsx").active.iter_rows(max_row=2, max_col=4)]
    assert [cell.number_format for cell in first] == ["General", '#,##0.00 "€"', "General", "0.0%"]


def test_dates_of_a_workbook_are_written_as_dates(run):
    days = [datetime.date(2024, 1, 1 + i) for i in range(20)]
    rows = ((day, i % 2 * 50 + i % 3) for i, day in enumerate(days))
    book_of([("day", "x"), *rows]).save("in.xlsx")
    run("fit in.xlsx -k 2 -q -o out.xlsx")
    _, *cells = next(openpyxl.load_workbook("out.xlsx").active.iter_cols())
    assert [cell.value.date() for cell in cells] == days
    assert {cell.number_format for cell in cells} == {"yyyy-mm-dd"}


def test_absent_counts_are_zeros_and_what_is_absent_elsewhere_is_missing(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        {"clicks": int(count), "score": 1.5} if count else {"score": None}
        for count in rng.poisson(1, 60)
    ]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    frame = read_frame(tmp_path / "a.jsonl")
    assert frame["clicks"].null_count == 0
    assert min(frame["clicks"].to_pylist()) == 0
    assert frame["score"].null_count == sum("clicks" not in row for row in rows)


def test_formats_of_cells_in_excel_tell_shares_and_amounts(tmp_path):
    formats = {
        "rate": ("0.0%", "share"), "whole": ("0%", "share"), "price": ('#,##0.00\\ "€"', "amount"),
        "cost": ("[$£-809]#,##0", "amount"), "fee": ('"CHF" 0', "amount"),
        "n": ("General", "identifier"), "red": ("[Red][$-409]0.00", "number"),
        "points": ('0.0"%"', "number"), "parts": ('0.00 "PCS"', "number"),
    }  # fmt: skip
    book, rng = openpyxl.Workbook(), np.random.default_rng(0)
    for name in ("Notes", "Data"):
        book.create_sheet(name)["C1" if name == "Data" else "A1"] = "What there is"
    sheet = book["Data"]
    for j, (name, (code, kind)) in enumerate(formats.items(), 3):
        sheet.cell(3, j, name)
        for i in range(40):
            value = rng.random() if kind in ("share", "number") else rng.integers(10_000, 99_000)
            sheet.cell(4 + i, j, value).number_format = code
    book.save(tmp_path / "a.xlsx")
    found = Prepare().fit(read_frame(tmp_path / "a.xlsx")).columns_
    assert [(one.name, one.kind) for one in found] == [
        (n, kind) for n, (_, kind) in formats.items()
    ]
    assert [one.unit for one in found] == ["%", "%", "€", "£", "CHF", "", "", "", ""]


def test_a_source_in_a_column_of_numbers_is_left_out(tmp_path):
    file, rows = tmp_path / "a.csv", "mass,cost\n" + "".join(f"{i}.5,{9 * i}\n" for i in range(9))
    for last, n_rows in (("Source: a survey of 2024,", 9), ("not available,", 10), ("4 kg,", 10)):
        file.write_text(f"{rows}{last}\n")
        assert open_table(file).n_rows == n_rows
        assert bool(open_table(file).how_read) == (n_rows == 9)


def test_cells_of_one_column_in_two_currencies_are_in_doubt(tmp_path):
    book = book_of([900.5 + i, 40 + i] for i in range(40))
    for i in range(40):
        book.active.cell(i + 1, 1).number_format = "$#,##0" if i % 2 else "€#,##0"
        book.active.cell(i + 1, 2).number_format = '#,##0 "€"' if i % 2 else "[$€-407]#,##0"
    book.save(tmp_path / "a.xlsx")
    (doubt,) = open_table(tmp_path / "a.xlsx").doubts
    assert doubt == 'cells in several units are read as if in one: "c1" (€ and $)'


def test_names_with_a_gap_above_a_row_that_may_be_names_are_in_doubt(tmp_path):
    file, rows = tmp_path / "a.csv", "".join(f"n{i},{900.5 + i},{40 + i}\n" for i in range(9))
    for above, n_doubts in ((",as of,2024-03-31\nshop,mass,cost", 1), (",mass,cost\n,kg,€", 0)):
        file.write_text(f"{above}\n{rows}")
        assert len(open_table(file).doubts) == n_doubts


def tag(name, content, *attributes):
    return f"<{' '.join([name, *attributes])}>{content}</{name}>"


def open_document_cell(kind, text, *attributes):
    shown = tag("text:p", text)
    return tag("table:table-cell", shown, f'office:value-type="{kind}"', *attributes)


def test_types_of_cells_in_open_document_tell_shares_amounts_and_dates(tmp_path):
    days = pd.date_range("2024-01-01", periods=27)
    cells = {
        "percentage": ('office:value="{}"', [0.25, 0.5, 0.125] * 9),
        "currency": ('office:currency="EUR" office:value="{}"', range(10_500, 10_770, 10)),
        "float": ('office:value="{}"', [3.5, 1.25, 9] * 9),
        "date": ('office:date-value="{:%Y-%m-%d}"', days),
    }
    rows = [[open_document_cell("string", kind) for kind in cells]]
    for values in zip(*(values for _, values in cells.values()), strict=True):
        pairs = zip(cells.items(), values, strict=True)
        rows.append([open_document_cell(k, "1", form.format(v)) for (k, (form, _)), v in pairs])
    table = "".join(tag("table:table-row", "".join(row)) for row in rows)
    sheet = tag("office:spreadsheet", tag("table:table", table, 'table:name="One"'))
    of = "urn:oasis:names:tc:opendocument:xmlns:"
    names = [f'xmlns:{name}="{of}{name}:1.0"' for name in ("office", "table", "text")]
    with zipfile.ZipFile(tmp_path / "a.ods", "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        content = tag("office:document-content", tag("office:body", sheet), *names)
        archive.writestr("content.xml", content)
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
    found = read_frame(tmp_path / "a.ods")
    assert found["date"].to_pylist() == days.to_list()
    understood = Prepare(dates="days").fit(found).columns_
    assert [one.kind for one in understood] == ["share", "amount", "number", "date"]
    assert [one.unit for one in understood] == ["%", "EUR", "", ""]


@pytest.mark.parametrize("suffix", ["parquet", "jsonl"])
def test_lists_of_numbers_of_one_length_are_columns(suffix, tmp_path):
    vectors = np.random.default_rng(0).normal(size=(90, 5)).astype(np.float32)
    vectors[:, 0] += np.repeat([0, 9, 18], 30)
    frame = pd.DataFrame({"id": [f"d{n}" for n in range(90)], "vector": list(vectors)})
    path = tmp_path / f"vectors.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_json(path, orient="records", lines=True)
    with pytest.warns(UserWarning, match='left out "id"'):
        model = KMeans(3, random_state=0).fit(path)
    assert model.preparation_.scale_ == "none"  # they share a unit
    plain = KMeans(3, random_state=0).fit(vectors)
    np.testing.assert_array_equal(model.predict(path), plain.labels_)
    assert model.inertia_ == pytest.approx(plain.inertia_, rel=1e-6)
    assert [*open_table(path).names] == ["id", *(f"vector.{place}" for place in range(5))]
    mixed = Prepare().fit(read_frame(path).append_column("age", [vectors[::-1, 1]]))
    assert mixed.contributions_["age"] == pytest.approx(0.5)  # the list counts as one
    frame.at[80, "vector"] = vectors[80, :2]
    ragged = pa.table({"vector": pa.array(frame["vector"].to_list())}).to_batches(50)
    with pytest.raises(TableError, match='"vector" has 2 numbers in one row and 5 in others'):
        open_table(pa.Table.from_batches(ragged)).frame()


@pytest.mark.parametrize("suffix", ["csv", "xlsx", "jsonl", "parquet"])
def test_lists_in_json_are_told_to_be_left_out_and_are_written_again(suffix, run):
    rows = [{"x": x, "tags": ["a"] * (x % 3), "of": {"n": [{"y": x}]}} for x in (1, 3, 40, 44)]
    Path("a.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    ended = run(f"fit a.jsonl -k 2 -q -o b.{suffix}")
    assert 'left out, since cells contain lists: "tags", "of.n"' in ended.out
    tags = read_frame(f"b.{suffix}")["tags"].to_pylist()
    assert [str(each) for each in tags] == [str(row["tags"]) for row in rows]


def test_a_text_in_json_may_contain_ends_of_lines_other_than_those_of_rows(tmp_path):
    texts = ["a\u2028b", "c\x85d"]
    lines = [json.dumps({"note": text, "x": 1}, ensure_ascii=False) for text in texts]
    (tmp_path / "a.jsonl").write_text("\r\n".join(lines), encoding="utf-8")
    assert read_frame(tmp_path / "a.jsonl")["note"].to_pylist() == texts


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("a.csv.gz", gzip.compress(bytes(10**6)) * 1001, "unpacks from"),
     ("a.csv", b"1," * 2**25, "a line or an array of more than 16,777,216 bytes"),
     ("a.jsonl", b'{"a": "%b"}\n' % bytes(2**25), "a line or an array of more than 16,777,216"),
     ("a.json", b"[{" + bytes(10**8), "a line or an array of more than 100,000,000"),
     ("a.jsonl", b"".join(b'{"k%d": 1}\n' % n for n in range(5000)), "5,000 names in 5,000 rows")],
    ids=range(5),
)  # fmt: skip
def test_what_grows_beyond_memory_is_refused(name, content, said, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TableError, match=f"^{re.escape(str(tmp_path / name))} .*{said}"):
        read_frame(tmp_path / name)


def test_a_packed_database_and_a_zip_of_a_later_version_are_called_by_their_names(tmp_path):
    (tmp_path / "a").write_bytes(gzip.compress(b"SQLite format 3\0" + bytes(2000)))
    as_zip(tmp_path / "b", "a.csv")
    content = (tmp_path / "b").read_bytes().replace(b"\x14\0\0\0", b"\xff\0\0\0")
    (tmp_path / "b").write_bytes(content)
    for name in ("a", "b"):
        with pytest.raises(TableError, match=f"^{re.escape(str(tmp_path / name))}"):
            read_frame(tmp_path / name)


@pytest.mark.parametrize("name", ["a.csv", "a.npy"])
def test_what_is_wrong_in_rows_is_told_with_the_file_and_the_row(name, tmp_path):
    rows = np.arange(20.0).reshape(10, 2) % 7
    rows[4, 1] = np.inf
    np.save(tmp_path / "a.npy", rows)
    pd.DataFrame(rows, columns=["u", "v"]).to_csv(tmp_path / "a.csv", index=False)
    with pytest.raises(ValueError, match=re.escape(str(tmp_path / name)) + ".*row 5"):
        KMeans(2).fit(tmp_path / name)


def test_a_full_temporary_folder_is_told_as_what_it_is(tmp_path, monkeypatch, run):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("a,b\n" + "1,2\n3,5\n" * 10**5)
    Path("a.csv.gz").write_bytes(gzip.compress(Path("a.csv").read_bytes()))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10**5, before[1]))
    try:
        for command in ("a.csv.gz", "a.csv --memory-limit 1MB"):
            said = run(f"fit {command} -k 2 -q -o -", code=4).err
            assert said.startswith(f"powermeans: {tmp_path} cannot be written: File too large")
            assert "set TMPDIR to another" in said
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_streams_of_no_end_and_arrays_of_zeros_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "_OF_A_STREAM", 10**6)
    os.mkfifo(tmp_path / "pipe")
    feeder = subprocess.Popen(["sh", "-c", f"yes 1,2 > {tmp_path / 'pipe'}"], stderr=-3)
    with pytest.raises(TableError, match="gives more than 1,000,000 bytes: save it as a file"):
        read_frame(tmp_path / "pipe")
    feeder.wait(60)
    with pytest.raises(TableError, match="is a device"):
        read_frame("/dev/zero")
    with open(tmp_path / "a.npy", "wb") as file:  # whose columns would have names without end
        head = {"descr": "<f8", "fortran_order": False, "shape": (2, 10**12)}
        np.lib.format.write_array_header_1_0(file, head)
    with pytest.raises(TableError, match="ends after 128 of 16000000000128 bytes"):
        read_frame(tmp_path / "a.npy")
    np.savez_compressed(tmp_path / "a.npz", a=np.zeros((13 * 10**7, 1)))
    with pytest.raises(TableError, match="unpacks from"):
        read_frame(tmp_path / "a.npz")


def as_ipc(packed=None, **columns):
    """Return a stream of Arrow with one batch, whose buffers may be packed."""
    sink, batch = pa.BufferOutputStream(), pa.record_batch(columns)
    with pa.ipc.new_stream(
        sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=packed)
    ) as out:
        out.write(batch)
    return sink.getvalue().to_pybytes()


def as_parquet(n_times=1, **columns):
    sink, table = pa.BufferOutputStream(), pa.table(columns)
    how = {"column_encoding": {"a": "DELTA_BYTE_ARRAY"}, "use_dictionary": False}
    how = {"compression": "zstd", "store_schema": False} | (how if n_times > 1 else {})
    with pq.ParquetWriter(sink, table.schema, **how) as writer:
        for _ in range(n_times):
            writer.write_table(table)
    return sink.getvalue().to_pybytes()


ONE_TEXT = pa.DictionaryArray.from_arrays(np.zeros(2 * 10**4, np.int8), ["x" * 10**5])
VIEW = pa.py_buffer(struct.pack("<i4sii", 10**5, b"xxxx", 0, 0) * 2 * 10**4)
VIEWS = [None, VIEW, pa.py_buffer(b"x" * 10**5)]
VIEWS = pa.Array.from_buffers(pa.string_view(), 2 * 10**4, VIEWS)
EIGHT_KB, LONG = struct.pack("<q", 8000), pa.nulls(2**31 - 1)


@pytest.mark.parametrize(
    "content",
    [
        lambda: as_ipc("zstd", a=np.zeros(10**3)).replace(EIGHT_KB, struct.pack("<q", 2**36)),
        lambda: as_ipc("lz4", a=np.zeros(13 * 10**7, np.int64)),
        lambda: as_ipc(a=LONG),
        lambda: as_ipc(a=ONE_TEXT),
        lambda: as_ipc(a=VIEWS),
        lambda: as_parquet(a=[[0] * 13 * 10**7]),
        lambda: as_parquet(a=ONE_TEXT),
        lambda: as_parquet(12, a=["y" * 10**5] * 10**3),
    ],
    ids=range(8),
)
def test_typed_files_that_unpack_to_much_more_are_refused_before_they_do(content, tmp_path):
    (tmp_path / "a").write_bytes(content())
    used = pa.total_allocated_bytes()
    with pytest.raises(TableError, match=f"^{re.escape(str(tmp_path / 'a'))} unpacks from"):
        read_frame(tmp_path / "a")
    assert pa.total_allocated_bytes() < used + 10**9


def test_narrow_numbers_count_as_wide_as_they_are(tmp_path):
    zeros = np.zeros(5 * 10**7, np.int8)  # of three columns more than 1 GB in float64
    (tmp_path / "a").write_bytes(as_parquet(a=zeros, b=zeros, c=zeros))
    assert read_frame(tmp_path / "a").num_rows == len(zeros)


@given(st.lists(st.sampled_from(["", " ", "a", "a ", "a.2", "a.3", "a.3.3", "c1"]), max_size=7))
def test_columns_have_names_of_their_own_whatever_they_are_called(names) -> None:
    found = distinct(names)
    assert len(found) == len(set(found)) == len(names)
    assert all(one.startswith(name.strip() or "c") for one, name in zip(found, names, strict=True))


@pytest.mark.filterwarnings("ignore:.*left out as totals")
def test_rows_that_sum_up_those_above_are_left_out_wherever_they_are(tmp_path):
    titles = ["a", "b", "North subtotal", "Subtotal is wrong", "South Sub-Total", "合計"]
    rows = [f"{title},{n}" for n, title in enumerate(titles)]
    (tmp_path / "a.csv").write_text("\n".join(["place,sales", *rows]), encoding="utf-8")
    with pytest.warns(UserWarning, match="left out as totals: rows 3, 5, 6 of the data"):
        assert read_frame(tmp_path / "a.csv")["sales"].to_pylist() == ["0", "1", "3"]
    with pytest.warns(UserWarning, match="left out as totals: rows 3, 5, 6 of the data") as told:
        model = KMeans(2, random_state=0).fit(tmp_path / "a.csv")
    assert told[0].filename == __file__  # the line of the caller
    save(model, tmp_path / "model.pm")
    assert load(tmp_path / "model.pm").labels_.tolist() == model.labels_.tolist()
    assert load(tmp_path / "model.pm").preparation_.notes_ == []
    report(model, rows := {"sales": [0, 1, 3]}, tmp_path / "page.html")
    with pytest.warns(UserWarning, match="a.csv: left out as totals: rows 3, 5, 6 of the data"):
        assert Prepare().fit_transform(tmp_path / "a.csv").shape == (3, 1)
    for told in (pm.explain, pm.merge_tree, partial(pm.what_changed, model)):
        assert str(told(model, tmp_path / "a.csv")) == str(told(model, rows))
    pipeline = make_pipeline(Prepare(), KMeans(2, random_state=0)).fit(rows)
    assert str(pm.explain(pipeline, tmp_path / "a.csv")) == str(pm.explain(pipeline, rows))


@pytest.mark.parametrize("encoding", ["shift_jis", "euc_jp", "euc_kr", "gb18030", "cp1251"])
def test_encodings_of_other_letters_are_found(encoding, tmp_path):
    words = {
        "shift_jis": "東京都 さくら",
        "euc_jp": "名前 満足度は高い 東京都 大阪市",
        "euc_kr": "서울 안녕하세요",
        "gb18030": "北京 你好世界",
        "cp1251": "Район Северный Южный пшеница картофель молоко",
    }
    name, *texts = words[encoding].split()
    lines = "\n".join([f"{name},x", *(f"{text},2" for text in texts * 9)])
    (tmp_path / "a.csv").write_bytes(lines.encode(encoding))
    assert read_frame(tmp_path / "a.csv").column_names == [name, "x"]
    text = "Temperatur (°C),Âge\n" + "Köln,10.3 °C\n" * 9
    (tmp_path / "a.csv").write_bytes(text.encode("cp1252"))
    assert read_frame(tmp_path / "a.csv").column_names == ["Temperatur (°C)", "Âge"]


def test_an_object_of_json_may_hold_the_rows_and_their_coordinates(tmp_path):
    rows = [{"type": "Feature", "at": {"coordinates": [n / 2, 9]}} for n in range(3)]
    for indent in (None, 1):
        whole = json.dumps({"type": "x", "data": rows, "links": [{}]}, indent=indent)
        (tmp_path / "a.json").write_text("\n" + whole)
        assert read_frame(tmp_path / "a.json")["at.coordinates.x"].to_pylist() == [0, 0.5, 1]
    (tmp_path / "link.json").symlink_to("nowhere")
    with pytest.raises(ValueError, match=r"link.json is a link to nowhere, where there is no"):
        read_frame(tmp_path / "link.json")
    (tmp_path / "a.json").write_text('{"x": 2.0, "items": [{"p": 1}, {"p": 2}]}')
    assert read_frame(tmp_path / "a.json").num_rows == 1


@pytest.mark.parametrize("is_array", [False, True])
def test_objects_of_json_are_read_some_at_a_time(is_array, tmp_path, monkeypatch):
    rows = [{"a": n} if n % 3 else {"b": {"c": "é"}, "a": n / 2} for n in range(1, 30)]
    rows += [{}, {"a": "word"}]
    lines = [json.dumps(row, ensure_ascii=False) for row in rows]
    text = f"[{' , '.join(lines)}\n]" if is_array else "\n\n".join(lines)
    (tmp_path / "a.json").write_text(f"\ufeff{text}", encoding="utf-8")
    whole = read_frame(tmp_path / "a.json")
    assert (whole.column_names, whole["b.c"].null_count) == (["a", "b.c"], 22)
    assert whole["a"].to_pylist()[:3] + whole["a"].to_pylist()[-2:] == [
        "1",
        "2",
        "1.5",
        None,
        "word",
    ]
    monkeypatch.setattr(json_lines, "_BYTES_AT_ONCE", 7)
    monkeypatch.setattr(json_lines, "_ROWS_AT_ONCE", 2)
    assert read_frame(tmp_path / "a.json").to_pydict() == whole.to_pydict()
    (tmp_path / "a.json").write_text(text.replace("word", '"'), encoding="utf-8")
    with pytest.raises(
        TableError, match="is no JSON" if is_array else r"^line 61 of .* is no JSON"
    ):
        read_frame(tmp_path / "a.json")


def test_texts_of_polars_are_read(tmp_path):
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"x": [1.5, 2.5], "t": ["a", "b"]})
    frame = frame.with_columns(polars.col("t").cast(polars.Categorical).alias("c"))
    frame.write_ipc(tmp_path / "a.arrow", compat_level=polars.CompatLevel.newest())
    for source in (frame, tmp_path / "a.arrow"):
        assert read_frame(source)["t"].to_pylist() == ["a", "b"]
        assert Prepare(as_={"c": "category"}).fit(source).used[-1].words == ["a", "b"]


def test_files_of_a_folder_may_have_no_rows_but_have_one_type(tmp_path):
    names, row = ["x", "y"], [1, 2.5]
    for name, rows in {"a": [names, row], "b": [names], "c": []}.items():
        book_of(rows).save(tmp_path / f"{name}.xlsx")
    assert read_frame(tmp_path).num_rows == 1
    book_of([names, ["a", 2]]).save(tmp_path / "d.xlsx")
    with pytest.raises(TableError, match=r'd.xlsx has "x" as string where .*a.xlsx has it as int'):
        read_frame(tmp_path)


def test_columns_of_one_name_are_read_alike_in_every_format(tmp_path) -> None:
    table = pa.table([[1.5, 2.5], [3.5, 4.5], [5.5, 6.5]], names=["a", "a.3", "a"])
    pq.write_table(table, tmp_path / "t.parquet")
    csv.write_csv(table, tmp_path / "t.csv")
    for file in ("t.parquet", "t.csv"):
        assert read_frame(tmp_path / file).column_names == ["a", "a.3", "a.3.3"]
