"""Files as banks, spreadsheets and surveys write them: each column is read as a whole."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from powermeans import open_data, read_table
from powermeans.scale.tables import TableError

NAN = float("nan")


@dataclass(frozen=True)
class Case:
    """A file, and what is read of it."""

    content: str
    rows: list[list[float]]
    names: str
    how_read: str = ""
    told: str = ""
    encoding: str = "utf-8"
    options: dict[str, Any] = field(default_factory=dict)


CASES = {
    "bank": Case("Buchung;Zweck;Betrag;Saldo\n01.03.2024;Miete ä;-1.251,11;4.177,06\n"
        "02.03.2024;Brot €;-3,50;4.173,56\n", [[-1251.11, 4177.06], [-3.5, 4173.56]],
        "Betrag Saldo", '"Betrag", "Saldo" as 1.234,5; encoding cp1252',
        'left out "Buchung" (dates), "Zweck" (text): dates="days" reads dates', "cp1252"),
    "US thousands": Case('amount,n\n"4,177.06",1\n"1,234,567.5",7\n12.25,3\n',
        [[4177.06, 1], [1234567.5, 7], [12.25, 3]], "amount n", '"amount" as 1,234.5'),
    "Indian thousands": Case('amount,x\n"1,23,456.50",0.5\n99,2.5\n', [[123456.5, 0.5], [99, 2.5]],
        "amount x", "_"),
    "percent": Case("share;n\n12%;1\n3,5 %;2\n0;2\n", [[0.12, 1], [0.035, 2], [0, 2]], "share n",
        '"share" as 1234,5 in percent (12% is 0.12)'),
    "currency": Case('price,cost\n"$1,200.50",3.50 €\n-$7,-4 €\n$9.00,NA\n',
        [[1200.5, 3.5], [-7, -4], [9, NAN]], "price cost", '"price" as 1,234.5 in $; "cost" in €'),
    "accounting": Case('net,n\n"(1,000.50)",1\n20.25,2\n', [[-1000.5, 1], [20.25, 2]], "net n",
        "_"),
    "booleans": Case("a,b,c,d\nyes,TRUE,1,t\nno,FALSE,0,f\nNA,true,0,t\n",
        [[1, 1, 1, 1], [0, 0, 0, 0], [NAN, 1, 0, 1]], "a b c d",
        '"a", "b", "d" yes as 1 and no as 0'),
    "ISO dates": Case("joined,n\n1970-01-02,4\n2024-02-29T12:00,5\n", [[1, 4], [19782.5, 5]],
        "joined n", '"joined" as days since 1970 (year-first)', options={"dates": "days"}),
    "German dates": Case("joined;n\n02.01.1970;4\n29.02.2024;5\n1.3.24;6\n",
        [[1, 4], [19782, 5], [19783, 6]], "joined n", '"joined" as days since 1970 (day-first)',
        options={"dates": "days"}),
    "British dates": Case("joined,n\n13/01/1970,4\n01/02/1970,5\n", [[12, 4], [31, 5]], "joined n",
        '"joined" as days since 1970 (day-first)', options={"dates": "days"}),
    "American dates": Case("joined,n\n01/02/1970,4\n02/29/2024,5\n", [[1, 4], [19782, 5]],
        "joined n", '"joined" as days since 1970 (month-first)', options={"dates": "days"}),
    "UTF-16 of a spreadsheet": Case("Größe\tx\r\n1\t2,5\r\n3\t4\r\n", [[1, 2.5], [3, 4]], "Größe x",
        '"x" as 1234,5; encoding utf-16', encoding="utf-16"),
    "UTF-16 without a mark": Case("a b\n1  2\n3 4\n", [[1, 2], [3, 4]], "a b", "encoding utf-16-le",
        encoding="utf-16-le"),
    "title": Case("Statement of 2024\nfor Ann, Bob\n\nage;income\n20;2,5\n30;3\n40;4\n",
        [[20, 2.5], [30, 3], [40, 4]], "age income",
        '"income" as 1234,5; 3 lines above the header left out'),
    "title of as many words as the rows": Case(
        'Sales of 2026\nDrawn up today\n\nunits,name,cost,sold\n20,"Nut, small size",1,3\n'
        '30,"Nut, large size",2,1\n40,"Nut, other size",2,4\n',
        [[20, 1, 3], [30, 2, 1], [40, 2, 4]], "units cost sold",
        "3 lines above the header left out", 'left out "name" (text)'),
    "title above a given delimiter": Case("Statement of 2024\n\nage;income\n20;1\n30;3\n40;4\n",
        [[20, 1], [30, 3], [40, 4]], "age income", "2 lines above the header left out",
        options={"delimiter": ";"}),
    "postal codes": Case("zip,month,age\n10115,01,20\n01067,12,30\n", [[1, 20], [12, 30]],
        "month age",
        told='left out "zip" (identifiers)'),
    "postal codes and phones by name": Case(
        "Zip Code,home_phone,has_phone,x\n12345,5550001,0,7\n12345,5550777,1,8\n", [[0, 7], [1, 8]],
        "has_phone x", told='left out "Zip Code" (identifiers), "home_phone" (identifiers)'),
    "identifiers": Case("customer_id,orderNr,Kundennummer,age\n907,55,100017,20\n907,31,100004,30\n"
        "911,12,100009,20\n", [[20], [30], [20]], "age",
        told='"customer_id" (identifiers), "orderNr" (identifiers), "Kundennummer" (ident'),
    "row numbers among measures that all differ": Case("line,height,paid,covid\n"
        + "".join(f"{i},{150 + i},{90 * i},{i + 5}\n" for i in range(1, 13)),
        [[150 + i, 90 * i, i + 5] for i in range(1, 13)], "height paid covid",
        told='left out "line" (identifiers)'),
    "trailing delimiter": Case("a,b,\n1,2,\n3,4,\n", [[1, 2], [3, 4]], "a b"),
    "quoted line ends": Case('a,note,b\n1,"two\nlines",2\n3,"x, y",4\n', [[1, 2], [3, 4]], "a b",
        told='left out "note" (text)'),
    "missing marks": Case("a,b\n1,NA\n2,-\n3,n/a\n4,\n5,?\n6,7\n8,#N/A\n",
        [[1, NAN], [2, NAN], [3, NAN], [4, NAN], [5, NAN], [6, 7], [8, NAN]], "a b"),
    "words for missing values": Case(
        "income,n,b\n1,1,yes\ndon't know,2,no\n3,3,no\nrefused,4,unknown\nrefused,1,no\n5,2,no\n",
        [[1, 1, 1], [NAN, 2, 0], [3, 3, 0], [NAN, 4, NAN], [NAN, 1, 0], [5, 2, 0]], "income n b",
        '"b" yes as 1 and no as 0',
        'taken for missing values: "don\'t know" in "income" (1 row), "refused" in "income" '
        '(2 rows), "unknown" in "b" (1 row)'),
    "declared codes": Case("a,b,c\n1,-9,4\n-9,none of it,7\n3,5,6\n",
        [[1, NAN, 4], [NAN, NAN, 7], [3, 5, 6]], "a b c",
        options={"missing_values": ["-9", "b=none of it"]}),
    "codes of some columns": Case("a,b,c\n9,9,9\n1,2,3\n", [[9, NAN, NAN], [1, 2, 3]], "a b c",
        options={"missing_values": ["b-c=9"]}),
    "units": Case("flow,pH,name\nL/s,-,\n1.5,7,a\n2.5,8,b\n3.5,9,c\n",
        [[1.5, 7], [2.5, 8], [3.5, 9]], "flow pH", "a row of units below the header left out",
        'left out "name" (text)'),
    "padded titles of a spreadsheet": Case(
        'Stores,,\n"by Ann, Bob",,\n,,\nrevenue,visits,stay\n1,2,3\n4,5,6\n',
        [[1, 2, 3], [4, 5, 6]], "revenue visits stay", "3 lines above the header left out"),
    "quoted titles": Case(
        '"Konto";"DE12"\n\n"Tag";"Betrag";"Saldo"\n"a; b";"1,5";"2"\n"c";"3,5";"4"\n'
        '"d";"5,5";"6"\n', [[1.5, 2], [3.5, 4], [5.5, 6]], "Betrag Saldo",
        '"Betrag" as 1234,5; 2 lines above the header left out', 'left out "Tag" (text)'),
    "durations": Case("stay,n\n00:04:12,1\n1:00:00.5,2\n-0:00:01,3\n",
        [[252, 1], [3600.5, 2], [-1, 3]], "stay n",
        '"stay" in seconds (00:04:12 taken for 0 h 4 min 12 s)'),
    "minutes": Case("stay,n\n4:12,1\n90:05,2\n", [[252, 1], [5405, 2]], "stay n",
        '"stay" in seconds (4:12 taken for 4 min 12 s), or minutes if it is 4 h 12 min'),
    "minus of Unicode": Case("t,x\n−1.5,1\n2,2\n", [[-1.5, 1], [2, 2]], "t x"),
    "blanks between thousands": Case(
        "revenue;n\n1 251,11;1\n12\u00a0000;2\n1\u202f000\u202f000;3\n7;4\n",
        [[1251.11, 1], [12000, 2], [1e6, 3], [7, 4]], "revenue n", '"revenue" as 1 234,5'),
    "Swiss": Case("pay,n\n4'177.05,1\n12’000.00,2\n", [[4177.05, 1], [12000, 2]], "pay n", "_"),
    "half a pair of brackets": Case("x,note\n1,(5\n2,6)\n", [[1], [2]], "x",
        told='left out "note" (text)'),
    "thousands told by another column": Case("price;rate\n1.000;0,25\n2.500;1,5\n",
        [[1000, 0.25], [2500, 1.5]], "price rate", "_"),
    "thousands told by another row": Case("price;n\n1.000;1\n2.500.000;2\n",
        [[1000, 1], [2500000, 2]], "price n", "_"),
    "a point taken for one": Case("x,n\n1.250,1\n2.500,2\n", [[1.25, 1], [2.5, 2]], "x n",
        '"x" 1.250 taken for 1.25'),
    "a decimal mark by option": Case("a;b\n1.500;2.250\n3.500;4.125\n", [[1.5, 2.25], [3.5, 4.125]],
        "a b", options={"decimal": "."}),
    "thousands by option": Case("x,n\n1.250,1\n2.500,2\n7,3\n", [[1250, 1], [2500, 2], [7, 3]],
        "x n", '"n", "x" as 1.234,5', options={"thousands": "."}),
}  # fmt: skip


@pytest.mark.parametrize("is_in_parts", [False, True])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_people_write_is_read_as_they_mean_it(case: Case, is_in_parts, tmp_path) -> None:
    file = tmp_path / "f.csv"
    file.write_bytes(case.content.encode(case.encoding))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        if is_in_parts:
            opened = open_data(file, **case.options)
            names, how_read = opened.feature_names, opened.source.how_read
            points = np.concatenate([block.points for block in opened.source.blocks()])
        else:
            table = read_table(file, missing="observed", **case.options)
            names, points, how_read = table.names, table.points, table.how_read
    np.testing.assert_allclose(points, case.rows, rtol=1e-15)
    assert list(names) == (case.names.split("|") if "|" in case.names else case.names.split())
    assert [case.told in str(one.message) for one in told] == [True] * bool(case.told)
    if case.how_read == "_":
        assert how_read.startswith(f'"{names[0]}" as 1')
    else:
        assert how_read == case.how_read


LATER = {
    "another mark": ("1.5", '"1,5"', 'with the decimal mark "." of the first rows'),
    "thousands": ("2.5", "1.250.000", 'with the decimal mark "." of the first rows'),
    "a doubtful fraction": ("7", "1.250", "which may be 1.25 or 1250"),
    "no percent": ("12%", "0.12", "where the first rows are read in percent"),
    "another currency": ("$1.5", "€2.5", "where the first rows are read in $"),
    "no group of three": ('"1,250.5"', '"1,25"', "where the first rows are read as 1,234.5"),
    "another word": ("yes", "maybe", "where the first rows are read yes as 1 and no as 0"),
}


@pytest.fixture
def read(tmp_path):
    """A function that writes a file, and reads it."""

    def read(content, encoding="utf-8", **options):
        (tmp_path / "f.csv").write_text(content, encoding=encoding)
        return read_table(tmp_path / "f.csv", **options)

    return read


@pytest.mark.parametrize(("first", "later", "why"), LATER.values(), ids=LATER)
def test_a_later_row_in_another_form_is_an_error_that_names_it(first, later, why, read) -> None:
    rows = [f"{first},3\n"] * 50_000
    rows[-2] = f"{later},3\n"
    cell = later.strip('"')
    with pytest.raises(TableError) as refused:
        read("x,y\n" + "".join(rows))
    assert f'column "x" has {cell!r}' in str(refused.value)
    assert why in str(refused.value)
    assert "in row 49999" in str(refused.value) or "thousands=" in str(refused.value)


@pytest.mark.parametrize("first", ["1.5", "7", "$1.5"])
def test_later_words_for_missing_values_are_told(first, read) -> None:
    rows = [f"{first},3\n"] * 50_000
    rows[40_000] = rows[45_000] = "closed,3\n"
    with pytest.warns(UserWarning, match=r'taken for missing values: "closed" in "x" \(2 rows\)$'):
        points = read("x,y\n" + "".join(rows), missing="observed").points
    assert np.flatnonzero(np.isnan(points[:, 0])).tolist() == [40_000, 45_000]
    assert points[[0, -1], 0].tolist() == [float(first.strip("$"))] * 2


@pytest.mark.parametrize(
    ("values", "told"),
    [
        ([18.5, 20.1, 19.0, 21.5, -999, -999, -999], '-999 in "x" (3 rows)'),
        ([1, 2, 3, 4, 5, 99, 99, 99], '99 in "x" (3 rows)'),
        ([30, 18, 90, -1, -1, -1], '-1 in "x" (3 rows)'),
        ([0, 5, 60, 99, 99, 99], ""),  # within reach of the others
        ([1, 2, 3, 4, 5, 99, 99], ""),  # two may be chance
        ([0, 2, 3, -1, -1, -1], ""),  # next to zero
        ([1, -1, 1, -1, 1, -1, -1], ""),  # signs
        ([1, 2, 3, 500, 500, 500], ""),  # no code
        ([9.99, 14.99, 19.99, 99.99, 99.99, 99.99], ""),  # prices
        ([1.25, 14.5, 19, 99.99, 99.99, 99.99], '99.99 in "x" (3 rows)'),
    ],
)
def test_numbers_that_look_like_codes_for_missing_values_are_told(values, told, read) -> None:
    text = "x,y\n" + "".join(f"{value},7\n" for value in values)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        assert read(text).points[:, 0].tolist() == values
    assert [told in str(one.message) for one in warned] == ([True] if told else [])
    if told:
        code = told.partition(" ")[0]
        assert f'missing_values=["x={code}"]' in str(warned[0].message)
        left = read(text, missing="drop", missing_values=[f"x={code}"])
        assert left.points[:, 0].tolist() == [value for value in values if value != float(code)]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("total", ["Total", "SUMME:", "Grand total", "Average"])
def test_a_row_of_totals_is_told_and_left_out_where_that_is_asked(total, encoding, read) -> None:
    text = "shop,x\n" + "".join(f"s{i},{i % 7}\n" for i in range(900)) + f"{total},2500\nMean,3\n"
    options = {"columns": ["x"], "encoding": encoding}
    with pytest.warns(UserWarning, match="sum up") as warned:
        assert len(read(text, **options).points) == 902
    (one,) = warned
    assert f'row 901 ("{total}"), row 902 ("Mean") may sum up' in str(one.message)
    assert 'skip_rows="901,902" leaves' in str(one.message)
    kept = read(text, skip_rows=[901, 902], **options)
    assert kept.points[:, 0].tolist() == [i % 7 for i in range(900)]
    assert kept.is_kept.tolist() == [True] * 900 + [False] * 2
    # An answer that is often average is no total.
    answers = (f"{'average' if i % 3 else 'good'},{i % 7}\n" for i in range(90))
    assert len(read("liked,x\n" + "".join(answers), **options).points) == 90


def test_a_later_fraction_without_doubt_tells_the_mark_of_its_file(read) -> None:
    text = "x;y\n" + "1;2\n" * 50_000 + "0,5;3\n"
    points = read(text).points
    assert points.shape == (50_001, 2)
    assert points[-2:].tolist() == [[1.0, 2.0], [0.5, 3.0]]
    with pytest.raises(TableError, match=r'column "y" has \'1.000\''):
        read(text + "1;1.000\n")


FOUR = [["four"], ["shut", "shut", "open", "open", "new", "new"]]


@pytest.mark.parametrize(
    ("content", "options", "named"),
    [
        ("x;n\n1.000;12\n2.500;13\n", {}, r"1 or 1000: .*decimal=\"\.\" or thousands=\"\.\"$"),
        ("joined,n\n01/02/1970,1\n03/04/1970,2\n", {"dates": "days"},
         r"dates=\"day-first\" or dates=\"month-first\"$"),
        ("joined,n\n2024-02-28,1\n2023-02-29,2\n", {"dates": "days"}, "'2023-02-29' in row 2"),
        # A slip, and many words in a column of numbers.
        *(("x,y\n" + "1,2\n" * 10 + "".join(f"{word},2\n" for word in words), {},
           f"'{words[0]}' in row 11") for words in FOUR),
        *(("age,home-work,b\n1,2,3\n", {"columns": [asked]}, f'no column "{asked}"')
          for asked in ("2-9", "age-incme", "-3", "1-2-3")),
    ],
)  # fmt: skip
def test_what_the_file_does_not_tell_is_asked_and_faults_refused(content, options, named, read):
    with pytest.raises(TableError, match=named):
        read(content, **options)


def test_dates_are_days_where_they_are_asked_for(read, tmp_path) -> None:
    days = {
        order: read("joined,n\n01/02/1970,1\n03/04/1970,2\n", dates=order).points[0, 0]
        for order in ("day-first", "month-first")
    }
    assert days == {"day-first": 31.0, "month-first": 1.0}
    file = tmp_path / "f.parquet"  # where they have a type
    days = np.array(["1970-01-02", "NaT"], dtype="M8[D]")
    noon = np.array(["1970-01-01T12:00", "1970-01-03T00:00"], dtype="M8[ns]")
    parquet.write_table(pa.table({"day": days, "time": noon, "x": [5, 6]}), file)
    with pytest.warns(UserWarning, match=r'left out "day" \(dates\), "time" \(dates\)'):
        assert read_table(file).names == ("x",)
    found = read_table(file, dates="days", missing="observed").points
    np.testing.assert_array_equal(found, [[1, 0.5, 5], [NAN, 2, 6]])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("2-4", "home-work income b-c"), ("age-income", "age home-work income"),
        ("4-income", "b-c income"), ("home-work", "home-work"),
        ("home-work-b-c", "home-work income b-c"), ("b-c", "b-c"),
        ("1 income-5 c", "age income b-c b c"),
    ],
)  # fmt: skip
def test_ranges_of_columns_are_read_where_no_column_has_that_name(asked, expected, read) -> None:
    content = "age,home-work,income,b-c,b,c\n1,2,3,4,5,6\n"
    assert list(read(content, columns=asked.split()).names) == expected.split()


def test_a_header_longer_than_a_sample_is_read(read) -> None:
    names = [f"a_rather_long_name_of_a_measured_quantity_{i}" for i in range(8000)]
    table = read("\n".join(map(",".join, [names, ["1.5"] * 8000, ["2"] * 8000])))
    assert list(table.names) == names
    assert table.points[:, -1].tolist() == [1.5, 2.0]
