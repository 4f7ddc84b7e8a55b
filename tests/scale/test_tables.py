"""Tables from files: what is read, also as banks, spreadsheets and surveys write numbers."""

import bz2
import gzip
import io
import json
import lzma
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import ipc, parquet
from scipy import sparse

from powermeans import Prepare, open_data, read_frame
from powermeans.scale.tables import TableError


def read_table(source, **options):
    """All rows of a file, as they are read part by part."""
    data = open_data(source, **options)
    blocks = list(data.source.blocks())
    weights = None if blocks[0].weights is None else [w for b in blocks for w in b.weights]
    return SimpleNamespace(
        points=np.concatenate([block.points for block in blocks]),
        names=data.feature_names,
        weights=weights,
        how_read=data.source.how_read,
    )


ONE_TO_FOUR = [[1.0, 2.0], [3.0, 4.0]]
PLAIN = "x,y\n1,2\n3,4\n"


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(name, content):
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write


XY, BARE = ("x", "y"), ("c1", "c2")


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (PLAIN, XY), ("x,y\n1,2\n3,4", XY), ("x,y\r\n1,2\r\n3,4\r\n", XY), ("x,y\r1,2\r3,4\r", XY),
        ("\n\nx,y\n1,2\n3,4\n", XY), ("x\ty\n1\t2\n3\t4\n", XY), ("x;y\n1;2\n3;4\n", XY),
        ("x|y\n1|2\n3|4\n", XY), ("x y\n1 2\n3 4\n", XY), ("1,2\n3,4\n", BARE),
        ("\ufeffx,y\n1,2\n3,4\n", XY), ("\ufeff1,2\n3,4\n", BARE),
        ("größe,y\n1,2\n3,4\n", ("größe", "y")),
        ("größe,y\n1,2\n3,4\n".encode("latin-1"), ("größe", "y")),
        ('"a, b","c\nd"\n"1",2\n3,4\n', ("a, b", "c\nd")), ("x,x\n1,2\n3,4\n", ("x", "x.2")),
        (",y\n1,2\n3,4\n", ("c1", "y")), ("x;y\n1,0;2\n3;4,0\n", XY),
        ("x,y\n1e0,+2.0\n3.,4E0\n", XY), ("1990,y\n1,2\n3,4\n", ("1990", "y")),
        ("  1.0   2.0\n  3.0   4.0\n", BARE), (" x  y\r\n 1  2 \r\n3 4\r\n", XY),
        ('x,y\n"1,0",2\n3,"4,0"\n', XY), ("x y\n1,0 2\n3 4,00\n", XY),
    ],
)  # fmt: skip
def test_text_is_read_whatever_its_form(content, names, write):
    for name in ("a.csv", "a.csv.gz"):  # whatever its name
        table = read_table(write(name, content))
        assert table.points.tolist() == ONE_TO_FOUR
        assert (table.names, table.points.dtype) == (names, np.float64)


TEXT = "x,kind,y\n1,red,2\n3,blue,4\n"
HOLES = "x,y,w\n1,2,1\nNA,9,2\n3,4,3\n8,,4\n7,9,\n"
SIZES = "x;y;size\n" + "".join(f"{i}.5;{i}.25;{'S' if i % 3 else '10,20'}\n" for i in range(9))
NAN = float("nan")


@pytest.mark.parametrize(
    ("content", "options", "points", "weights"),
    [
        (TEXT, {"columns": ["y", "1"]}, [[2, 1], [4, 3]], None),
        (TEXT, {"columns": ["y", "y"]}, [[2, 2], [4, 4]], None),
            ("x,w,y\n1,5,2\n3,0,4\n", {"weights": "w"}, ONE_TO_FOUR, [5, 0]),
            # Missing values stay, and so does a weight of 0.
        (HOLES, {"columns": ["x", "y"]},
         [[1, 2], [NAN, 9], [3, 4], [8, NAN], [7, 9]], None),
        ("1990,1991\n1,2\n3,4\n", {"header": True}, ONE_TO_FOUR, None),
        ("1#2\n3#4\n", {"delimiter": "#"}, ONE_TO_FOUR, None),
        # The decimal mark is that of the columns that are read.
        (SIZES, {"columns": ["x", "y"]}, [[i + 0.5, i + 0.25] for i in range(9)], None),
        ("x\n1,234\n20,5\n", {"delimiter": "\t"}, [[1.234], [20.5]], None),
        ("x\n1,234\n20,5\n", {"delimiter": "\t", "decimal": ","}, [[1.234], [20.5]], None),
        ("x\ty\n1,234\t2\n", {"columns": ["y"]}, [[2]], None),
        ("x\ty\n1,234\t2\n", {"decimal": ","}, [[1.234, 2]], None),
        ("x\ty\n1,234\t2\n", {"decimal": "."}, [[1234, 2]], None),
        ("x\ty\n1,234\t2\n", {"thousands": ","}, [[1234, 2]], None),
        # Between semicolons a comma is no mark of thousands.
        ("x;y\n1,234;2\n", {}, [[1.234, 2]], None),
    ],
)  # fmt: skip
def test_options_choose_what_is_read(content, options, points, weights, write):
    table = read_table(write("a.csv", content), **options)
    np.testing.assert_array_equal(table.points, points)
    assert table.weights == weights


@pytest.mark.parametrize("first", [0, 1])
def test_a_nameless_column_that_counts_the_rows_is_left_out(first, write):
    file = write("a.csv", f",x,y\n{first},5,2\n{first + 1},3,4\n")
    told = r'^a.csv: left out "c1" \(identifiers\): name identifiers with columns= to have them$'
    with pytest.warns(UserWarning, match=told):
        assert read_table(file).names == ("x", "y")
    assert read_table(file, columns=["c1", "y"]).points[0].tolist() == [first, 2]
    assert read_table(write("b.csv", "0,5\n1,3\n")).names == ("c1", "c2")


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.filterwarnings("ignore:.*left out")
def test_identifiers_are_the_same_read_in_parts_and_in_memory(suffix, tmp_path):
    rng, n_rows = np.random.default_rng(0), 60
    table = {
        "number of row": rng.permutation(n_rows) + 7,
        "customer_id": rng.integers(0, 9, n_rows),
        "order no": rng.permutation(900)[:n_rows],
        "filed": rng.permutation(90_000)[:n_rows] + 10_000,
        "zip": rng.integers(1000, 9999, n_rows),
        "line": np.arange(n_rows),
        "salary": rng.permutation(60_000)[:n_rows] + 32_000,
        "visits": rng.permutation(400)[:n_rows],
    }
    file = tmp_path / f"a.{suffix}"
    frame = pd.DataFrame(table)
    (frame.to_parquet if suffix == "parquet" else frame.to_csv)(file, index=False)
    measures = [one.name for one in Prepare().fit(read_frame(file)).columns_ if one.is_used]
    assert measures == ["salary", "visits"]
    assert list(open_data(file).feature_names) == measures


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress, bytes])
def test_packed_files_and_standard_input_are_read(packed, write, monkeypatch):
    content = packed(PLAIN.encode())
    rows = [{"x": "1", "y": "2"}, {"x": "3", "y": "4"}]
    assert read_frame(write("f.csv", content)).to_pylist() == rows
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert read_frame("-").to_pylist() == rows
    if packed is not bytes:
        with pytest.raises(TableError, match=r"^f.csv cannot be unpacked: "):
            read_frame(write("f.csv", content[:-4]))


TYPED = pa.table(
    {
        "x": pa.array([1, 3], pa.int32()),
        "kind": pa.array(["red", "blue"]).dictionary_encode(),
        "y": pa.array([2.0, None], pa.float32()),
        "flag": pa.array([True, False]),
    }
)


def write_arrow(table, path, new=ipc.new_file, **options):
    with pa.OSFile(path, "wb") as file, new(file, table.schema) as writer:
        writer.write_table(table, **options)


def write_stream(table, path, **options):
    write_arrow(table, path, ipc.new_stream, **options)


WRITERS = [parquet.write_table, write_arrow, write_stream]
of_writers = pytest.mark.parametrize("writer", WRITERS, ids=lambda writer: writer.__name__)


@of_writers
def test_files_with_types_are_read_by_their_types(writer, write):
    writer(TYPED, "a.table")
    table = read_table("a.table", columns=["x", "y", "flag"])
    np.testing.assert_array_equal(table.points, [[1, 2, 1], [3, NAN, 0]])
    with pytest.raises(TableError, match=r'"kind" .* dictionary'):
        read_table("a.table", columns=["kind"])
    with pytest.warns(UserWarning, match=r'left out "kind" \(of the type dictionary'):
        assert read_table("a.table").names == ("x", "y", "flag")
    # Columns of one name are each read as themselves, from several batches.
    numbers = 3 * np.arange(120_000)
    how = {"row_group_size": 50_000} if writer is WRITERS[0] else {"max_chunksize": 50_000}
    columns = [pa.array(numbers + shift) for shift in range(4)]
    writer(pa.Table.from_arrays(columns, names=["a", "b", "a", "a"]), "a.table", **how)
    assert read_table("a.table").names == ("a", "b", "a.3", "a.4")
    read = read_table("a.table", columns=["a.4", "b", "a"])
    np.testing.assert_array_equal(read.points, numbers[:, None] + [3, 1, 0])


@of_writers
def test_a_file_with_types_that_is_cut_off_or_mangled_is_refused(writer, write):
    writer(pa.table({"abcdef": [1.0, 2.0], "y": [3.0, 8.0]}), "whole")
    content = Path("whole").read_bytes()
    end = len(content) - (9 if writer is write_stream else 1)  # whose last bytes are an end mark
    for length in (8, len(content) // 2, end):
        with pytest.raises(TableError, match=r"^cut is (a damaged|of an unknown)"):
            read_table(write("cut", content[:length]))
    if writer is not parquet.write_table:  # a name that is no text
        with pytest.raises(TableError, match=r"^a is a damaged .* file: 'utf-8' codec"):
            read_table(write("a", content.replace(b"abcdef", b"ab\xffdef")))
        writer(TYPED[:0], "none")
        with pytest.raises(TableError, match=r"^none has columns and no rows$"):
            read_table("none")


@of_writers
@pytest.mark.parametrize(
    ("index", "name"), [([7, 9], None), (["p", "q"], None), ([7, 9], "customer")]
)
def test_an_index_of_pandas_is_no_column_unless_it_is_asked_for(writer, index, name, write):
    index = pd.Index(index, name=name)
    writer(pa.Table.from_pandas(pd.DataFrame({"x": [1, 3], "y": [2, 4]}, index=index)), "a")
    table = read_table("a")
    assert (table.names, table.points.tolist()) == (("x", "y"), ONE_TO_FOUR)
    if index[0] == 7:
        key = name or "__index_level_0__"
        assert read_table("a", columns=[key]).points.tolist() == [[7.0], [9.0]]
    writer(pa.Table.from_pandas(pd.DataFrame(index=index)), "a")
    if name:
        with pytest.raises(TableError, match=rf'an index, "{name}": name'):
            read_table("a")


def test_arrays_and_many_lines_are_read_whatever_their_header(write, read):
    four, fields = np.array(ONE_TO_FOUR, dtype=np.float32), np.repeat(FIELDS, 2)
    fields["x"], fields["y"] = four.T
    np.save("a.npy", four)
    np.savez("one.npz", X=four.astype(int))
    np.savez("two.npz", X=four, y=np.zeros(2))
    np.save("fields.npy", fields)
    np.savez("fields.npz", X=fields)
    assert read_table("a.npy").points.dtype == np.float32
    for name, options in [("a.npy", {}), ("one.npz", {}), ("two.npz", {"array": "X"}),
                          ("fields.npy", {"columns": ["x", "y"]}),
                          ("fields.npz", {"columns": ["x", "y"]})]:  # fmt: skip
        assert read_table(name, **options).points.tolist() == ONE_TO_FOUR
    values = np.arange(400_000).reshape(-1, 2)
    file = write("f.txt", "".join(f"{a:9d} {b:9d}\n" for a, b in values))
    np.testing.assert_array_equal(read_table(file).points, values)
    table = read_table(write("a.csv", "x,y\n" + "1,2\n" * 200_000 + "0.5,2\n"))
    assert (table.points.shape, table.points[-1, 0]) == ((200_001, 2), 0.5)
    names = [f"a_rather_long_name_of_a_measured_quantity_{i}" for i in range(6500)]
    table = read("\n".join(map(",".join, [names, ["1.5"] * 6500, ["2"] * 6500])))
    assert list(table.names) == names
    assert table.points[:, -1].tolist() == [1.5, 2.0]
    text = "x;y\n" + "1;2\n" * 50_000 + "0,5;3\n"
    points = read(text).points
    assert points.shape == (50_001, 2)
    assert points[-2:].tolist() == [[1.0, 2.0], [0.5, 3.0]]
    with pytest.raises(TableError, match=r'column "y" has \'1.000\''):
        read(text + "1;1.000\n")


def archive(save=np.savez, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


def array(values, shape=None):
    """A file of an array, whose head may tell of another shape."""
    file = io.BytesIO()
    np.save(file, values, allow_pickle=True)
    content = file.getvalue()
    told = repr(values.shape)
    return content if shape is None else content.replace(told.encode(), shape.encode(), 1)


FIELDS = np.array([(1, "a", 2.0)], dtype=[("x", "i4"), ("name", "U5"), ("y", "f8")])
TWO = np.ones((2, 2))
# Contents, options, and what the line of the error names.
ERRORS = [
    ("\n\n", {}, ["^f is empty$"]),
    ("x,y\n1,2\n3\n4,5\n", {}, ["row 2 of the data has 1 cell where 2 ", "delimiter=$"]),
    ("A title\n\nx,y\n1,2\n3,4,5\n4,5\n", {}, ["row 2 of the data has 3 cells where 2 "]),
    ("x,y\n" + "1,2\n" * 300 + "1,abc\n", {},
     ["\"y\" has 'abc' in row 301", "columns=", r'missing_values=\["y=abc"\]']),
    (b"x,y\n" + b"1,2\n" * 100_000 + "1,ä\n".encode("latin-1") + b"1,2\n", {},
     ["\"y\" has 'ä' in row 100001", "columns=$"]),
    (PLAIN, {"columns": []}, [r"^columns=\[\] names none of f"]),
    ("x;y\n1;2\n", {"delimiter": ","}, ["\"x;y\" has no numbers: it is text .'1;2'.$"]),
    ("x\ty\n1,234\t2\n", {},
     ["\"x\" has '1,234'.* 1.234 or 1234", 'decimal="," or thousands=","$']),
    *(("height,weight\n1,2\n", {"columns": [asked]}, [f'no column "{asked}": .* "height"\\?$'])
      for asked in ("HEIGHT", "Heigt")),
    ("w\n1\n", {"weights": "w"}, ["no columns but that of the weights"]),
    (PLAIN, {"encoding": "utf-9"}, ["^encoding='utf-9' .* cp1252$"]),
    ("größe,y\n1,2\n".encode("cp1252"), {"encoding": "utf-8"},
     ["not in utf-8: .* 0xf6 in position 2", "encoding=$"]),
    (PLAIN.encode("utf-16") + b"5", {}, ["^f is not in utf-16: ", "encoding=$"]),
    (bytes(range(256)), {}, ["^f is of an unknown kind: pass CSV, TSV, "]),
    (array(np.array([["a"]])), {}, ['"c1" has no numbers: it is of dtype <U1']),
    (array(np.array([[1j]])), {}, ['"c1" has no numbers: it is of dtype complex128']),
    (array(np.ones((2, 2, 2))), {}, [r"float64 and shape \(2, 2, 2\): pass "]),
    (array(np.ones((0, 2))), {}, [r"float64 and shape \(0, 2\): pass "]),
    (array(TWO, "(-1, 2)"), {}, [r"float64 and shape \(-"]),
    (array(np.ones(4), "(-3,)"), {}, [r"float64 and shape \(-"]),
    (array(np.array([[None]])), {}, ["no archive|of dtype object"]),
    (archive(X=np.array([[None]])), {}, ["no archive|of dtype object"]),
    *((content, {"columns": ["x", "name"]}, [r'"name" has no numbers.* with columns=\["x", "y"\]$'])
      for content in (array(FIELDS), archive(X=FIELDS))),
    (archive(points=TWO, labels=np.ones(2)), {}, ['array= one of "points", "labels"']),
    (archive(points=TWO, labels=np.ones(2)), {"array": "point"}, ['no array "point".* "points"']),
    (archive(lambda file: sparse.save_npz(file, sparse.csr_matrix(np.eye(3)))), {},
     ["^f contains a SciPy sparse matrix: .*load_npz"]),
]  # fmt: skip


@pytest.mark.parametrize(("content", "options", "named"), ERRORS, ids=lambda _: "")
def test_what_cannot_be_read_is_named_in_one_line(content, options, named, write):
    for told in named:
        with pytest.raises(TableError, match=told) as failure:
            read_table(write("f", content), **options)
    assert "\n" not in str(failure.value)


def test_without_pyarrow_text_names_the_extra(write, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    with pytest.raises(TableError, match=r'pip install "powermeans\[cli\]"'):
        read_table(write("people.csv", "x\n1\n"))


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.lists(FLOATS, min_size=2, max_size=2), min_size=1, max_size=20))
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_numbers_come_back_to_the_last_bit(write, values):
    text = "".join(f"{a!r},{b!r}\n" for a, b in values)
    read = read_table(write("f.csv", f"x,y\n{text}")).points
    np.testing.assert_array_equal(read, values)


PAGE = Path(__file__).with_name("number_forms.txt").read_text(encoding="utf-8")


def forms():
    """The files of number_forms.txt, each with how it is written and opened, and what is said.

    After a name and options stand the file, the names and rows that are read, each to a slash, and
    what is told.
    """
    for case in PAGE.removeprefix("# ").rstrip("\n").split("\n\n# "):
        head, _, rest = case.partition("\n")
        name, _, options = head.partition(" {")
        content, _, found = rest.partition("\n=> ")
        found, *said = found.split("\n")
        names, *rows = found.split(" / ")
        told = dict(line.split(": ", 1) for line in said)
        content = (content + "\n").encode("latin-1", "backslashreplace").decode("unicode_escape")
        options = json.loads("{" + options) if options else {}
        numbers = [[float(cell) for cell in row.split()] for row in rows]
        yield pytest.param(content, options, names.split(), numbers, told, id=name)


@pytest.mark.parametrize(("content", "options", "names", "rows", "said"), list(forms()))
def test_what_people_write_is_read_as_they_mean_it(content, options, names, rows, said, tmp_path):
    file, given = tmp_path / "f.csv", dict(options)
    file.write_bytes(content.encode(given.pop("written in", "utf-8")))
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        table = read_table(file, **given)
    np.testing.assert_allclose(table.points, rows, rtol=1e-15)
    assert (list(table.names), table.how_read) == (names, said.get("read", ""))
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
        points = read("x,y\n" + "".join(rows)).points
    assert np.flatnonzero(np.isnan(points[:, 0])).tolist() == [40_000, 45_000]
    assert points[[0, -1], 0].tolist() == [float(first.strip("$"))] * 2


FOUR = [["four"], ["shut", "shut", "open", "open", "new", "new"]]


@pytest.mark.parametrize(
    ("content", "options", "named"),
    [
        ("x;n\n1.000;12\n2.500;13\n", {}, r"1 or 1000: .*decimal=\"\.\" or thousands=\"\.\"$"),
        (
            "joined,n\n01/02/1970,1\n03/04/1970,2\n",
            {"dates": "days"},
            r"dates=\"day-first\" or dates=\"month-first\"$",
        ),
        ("joined,n\n2024-02-28,1\n2023-02-29,2\n", {"dates": "days"}, "'2023-02-29' in row 2"),
        # A slip, and many words in a column of numbers.
        *(
            (
                "x,y\n" + "1,2\n" * 10 + "".join(f"{word},2\n" for word in words),
                {},
                f"'{words[0]}' in row 11",
            )
            for words in FOUR
        ),
        *(
            ("age,home-work,b\n1,2,3\n", {"columns": [asked]}, f'no column "{asked}"')
            for asked in ("2-9", "age-incme", "-3", "1-2-3")
        ),
    ],
)
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
    found = read_table(file, dates="days").points
    np.testing.assert_array_equal(found, [[1, 0.5, 5], [NAN, 2, 6]])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        ("2-4", "home-work income b-c"),
        ("age-income", "age home-work income"),
        ("4-income", "b-c income"),
        ("home-work", "home-work"),
        ("home-work-b-c", "home-work income b-c"),
        ("b-c", "b-c"),
        ("1 income-5 c", "age income b-c b c"),
    ],
)
def test_ranges_of_columns_are_read_where_no_column_has_that_name(asked, expected, read) -> None:
    content = "age,home-work,income,b-c,b,c\n1,2,3,4,5,6\n"
    assert list(read(content, columns=asked.split()).names) == expected.split()


def test_a_text_of_very_many_columns_is_refused_before_they_are_looked_at(tmp_path, monkeypatch):
    monkeypatch.setattr("powermeans.scale.tables.text._MOST_COLUMNS", 3)
    file = tmp_path / "wide.csv"
    file.write_text("a,b,c\n1,2,3\n2,3,4\n")
    assert read_table(file).points.shape == (2, 3)
    file.write_text("a,b,c,d\n1,2,3,4\n2,3,4,5\n")
    with pytest.raises(TableError, match=r"wide.csv has 4 columns, and of a text at most 3"):
        read_table(file)
