"""Files as banks, spreadsheets and surveys write them: each column is read as a whole."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from powermeans import open_data, read_table
from powermeans.scale.tables import TableError

NAN = float("nan")


PAGE = Path(__file__).with_name("number_forms.txt").read_text(encoding="utf-8")


def forms():
    """The files of number_forms.txt, each with how it is written and opened, and what is said.

    After a name and options stand the file, the names and rows that are read, and what is told.
    """
    for case in PAGE.removeprefix("# ").rstrip("\n").split("\n\n# "):
        head, _, rest = case.partition("\n")
        name, _, options = head.partition(" {")
        content, *rows = rest.split("\n=> ")
        last, *said = rows[-1].split("\n")
        told = dict(line.split(": ", 1) for line in said)
        content = (content + "\n").encode("latin-1", "backslashreplace").decode("unicode_escape")
        options = json.loads("{" + options) if options else {}
        numbers = [[float(cell) for cell in row.split()] for row in [*rows[1:-1], last]]
        yield pytest.param(content, options, rows[0].split(), numbers, told, id=name)


@pytest.mark.parametrize("is_in_parts", [False, True])
@pytest.mark.parametrize(("content", "options", "names", "rows", "said"), list(forms()))
def test_what_people_write_is_read_as_they_mean_it(
    content, options, names, rows, said, is_in_parts, tmp_path
) -> None:
    file, given = tmp_path / "f.csv", dict(options)
    file.write_bytes(content.encode(given.pop("written in", "utf-8")))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        if is_in_parts:
            opened = open_data(file, **given)
            found, how_read = opened.feature_names, opened.source.how_read
            points = np.concatenate([block.points for block in opened.source.blocks()])
        else:
            table = read_table(file, missing="observed", **given)
            found, points, how_read = table.names, table.points, table.how_read
    np.testing.assert_allclose(points, rows, rtol=1e-15)
    assert (list(found), how_read) == (names, said.get("read", ""))
    assert len(warned) == ("told" in said)
    assert all(said["told"] in str(one.message) for one in warned)


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
    names = [f"a_rather_long_name_of_a_measured_quantity_{i}" for i in range(6500)]
    table = read("\n".join(map(",".join, [names, ["1.5"] * 6500, ["2"] * 6500])))
    assert list(table.names) == names
    assert table.points[:, -1].tolist() == [1.5, 2.0]
