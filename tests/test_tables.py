"""Tables from files: what is read, and what is said of what cannot be."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyarrow import feather, ipc, parquet
from scipy import sparse

from powermeans.scale.tables import TableError, nearest, read_table

Writer = Callable[[str, str | bytes], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Writer:
    monkeypatch.chdir(tmp_path)

    def write(name: str, content: str | bytes) -> str:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write


ONE_TO_FOUR = [[1.0, 2.0], [3.0, 4.0]]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("x,y\n1,2\n3,4\n", ("x", "y")),
        ("x,y\n1,2\n3,4", ("x", "y")),
        ("x,y\r\n1,2\r\n3,4\r\n", ("x", "y")),
        ("x,y\r1,2\r3,4\r", ("x", "y")),
        ("\n\nx,y\n1,2\n3,4\n", ("x", "y")),
        ("x\ty\n1\t2\n3\t4\n", ("x", "y")),
        ("x;y\n1;2\n3;4\n", ("x", "y")),
        ("x|y\n1|2\n3|4\n", ("x", "y")),
        ("x y\n1 2\n3 4\n", ("x", "y")),
        ("1,2\n3,4\n", ("c1", "c2")),
        ("\ufeffx,y\n1,2\n3,4\n", ("x", "y")),
        ("\ufeff1,2\n3,4\n", ("c1", "c2")),
        ("größe,y\n1,2\n3,4\n", ("größe", "y")),
        ("größe,y\n1,2\n3,4\n".encode("latin-1"), ("größe", "y")),
        ('"a, b","c\nd"\n"1",2\n3,4\n', ("a, b", "c\nd")),
        ("x,x\n1,2\n3,4\n", ("x", "x.2")),
        (",y\n1,2\n3,4\n", ("c1", "y")),
        ("x;y\n1,0;2\n3;4,0\n", ("x", "y")),
        ("x,y\n1e0,+2.0\n3.,4E0\n", ("x", "y")),
        ("1990,y\n1,2\n3,4\n", ("1990", "y")),
        ("  1.0   2.0\n  3.0   4.0\n", ("c1", "c2")),
        (" x  y\r\n 1  2 \r\n3 4\r\n", ("x", "y")),
        ('x,y\n"1,0",2\n3,"4,0"\n', ("x", "y")),
        ("x y\n1,0 2\n3 4,00\n", ("x", "y")),
    ],
)
def test_text_is_read_whatever_its_form(content, names, write) -> None:
    table = read_table(write("a.csv", content))
    assert table.points.tolist() == ONE_TO_FOUR
    assert table.names == names
    assert table.points.dtype == np.float64


def test_columns_are_chosen_by_name_or_number_in_the_order_asked(write) -> None:
    file = write("a.csv", "x,kind,y\n1,red,2\n3,blue,4\n")
    assert read_table(file, columns=["y", "1"]).points.tolist() == [[2.0, 1.0], [4.0, 3.0]]
    assert read_table(file, columns=["y", "y"]).points.tolist() == [[2.0, 2.0], [4.0, 4.0]]


def test_a_function_may_choose_the_columns(write) -> None:
    file = write("a.csv", "x,kind,y\n1,red,2\n3,blue,4\n")
    table = read_table(file, columns=lambda names: [name for name in names if len(name) == 1])
    assert table.names == ("x", "y")


def test_weights_are_a_column_apart(write) -> None:
    table = read_table(write("a.csv", "x,w,y\n1,5,2\n3,0,4\n"), weights="w")
    assert table.points.tolist() == ONE_TO_FOUR
    assert table.names == ("x", "y")
    assert table.weights is not None
    assert table.weights.tolist() == [5.0, 0.0]


def test_weights_change_neither_how_numbers_are_read_nor_which_rows_are_left_out(write) -> None:
    file = write("a.csv", "x;y;w\n1,5;2,5;1\n9,5;9,5;2\n3,5;4,5;3\n")
    table = read_table(file, weights="w", skip_rows=[2])
    assert table.is_kept is not None
    assert table.is_kept.tolist() == [True, False, True]
    assert (table.decimal, table.how_read) == (",", '"x", "y" as 1234,5')


def test_rows_with_missing_values_are_dropped_or_kept_as_asked(write) -> None:
    file = write("a.csv", "x,y,w\n1,2,1\nNA,9,2\n3,4,3\n8,,4\n")
    dropped = read_table(file, missing="drop", weights="w")
    assert dropped.points.tolist() == ONE_TO_FOUR
    assert dropped.is_kept is not None
    assert dropped.is_kept.tolist() == [True, False, True, False]
    assert dropped.weights is not None
    assert dropped.weights.tolist() == [1.0, 3.0]
    kept = read_table(file, missing="observed", columns=["x", "y"])
    np.testing.assert_array_equal(kept.points, [[1, 2], [np.nan, 9], [3, 4], [8, np.nan]])


def test_a_number_late_in_a_file_may_have_a_point_where_the_first_have_none(write) -> None:
    rows = "1,2\n" * 200_000
    table = read_table(write("a.csv", f"x,y\n{rows}0.5,2\n"))
    assert table.points.shape == (200_001, 2)
    assert table.points[-1, 0] == 0.5


def test_other_options_override_what_is_found_out(write) -> None:
    assert read_table(write("a.csv", "1990,1991\n1,2\n3,4\n"), header=True).names == (
        "1990",
        "1991",
    )
    assert read_table(write("b.csv", "1#2\n3#4\n"), delimiter="#").points.tolist() == ONE_TO_FOUR


def test_the_decimal_mark_is_that_of_the_columns_that_are_read(write) -> None:
    rows = "".join(f"{i}.5;{i}.25;{'S' if i % 3 else '10,20'}\n" for i in range(9))
    file = write("a.csv", f"x;y;size\n{rows}")
    table = read_table(file, columns=["x", "y"])
    assert table.points.tolist() == [[i + 0.5, i + 0.25] for i in range(9)]


@pytest.mark.parametrize(("decimal", "expected"), [(",", [1.234, 20.5]), (None, [1.234, 20.5])])
def test_a_comma_that_may_be_between_thousands_is_settled_by_others(
    decimal, expected, write
) -> None:
    file = write("a.tsv", "x\n1,234\n20,5\n")
    assert read_table(file, decimal=decimal, delimiter="\t").points.ravel().tolist() == expected


def test_a_comma_in_doubt_is_refused_until_the_mark_is_given(write) -> None:
    file = write("a.tsv", "x\ty\n1,234\t2\n2,500\t3\n")
    with pytest.raises(
        TableError,
        match=r"\"x\" has '1,234', which may be 1.234 or 1234: "
        r"pass decimal=\",\" or thousands=\",\"$",
    ):
        read_table(file)
    assert read_table(file, columns=["y"]).points.tolist() == [[2.0], [3.0]]
    assert read_table(file, decimal=",").points.tolist() == [[1.234, 2.0], [2.5, 3.0]]
    for options in ({"decimal": "."}, {"thousands": ","}):
        assert read_table(file, **options).points.tolist() == [[1234.0, 2.0], [2500.0, 3.0]]
    # Between semicolons a comma is no mark of thousands.
    assert read_table(write("b.csv", "x;y\n1,234;2\n")).points.tolist() == [[1.234, 2.0]]


@given(
    values=st.lists(st.lists(st.integers(-9999, 9999), min_size=3, max_size=3), min_size=1),
    width=st.integers(6, 9),
)
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_columns_of_a_fixed_width_are_read(values, width, write) -> None:
    np.savetxt("f.txt", np.array(values) / 8, fmt=f"%{width}.3f")
    np.testing.assert_array_equal(read_table("f.txt").points, np.array(values) / 8)


def test_many_lines_of_a_fixed_width_are_read_block_by_block(write) -> None:
    values = np.arange(600_000).reshape(-1, 2)
    file = write("f.txt", "".join(f"{a:9d} {b:9d}\n" for a, b in values))
    np.testing.assert_array_equal(read_table(file).points, values)


@pytest.mark.parametrize("module", [gzip, bz2, lzma])
@pytest.mark.parametrize("is_cut", [False, True])
def test_packed_files_are_unpacked(module, is_cut, write, monkeypatch) -> None:
    content = module.compress(b"x,y\n1,2\n3,4\n")
    if is_cut:
        with pytest.raises(TableError, match=r"^f.csv cannot be unpacked: "):
            read_table(write("f.csv", content[:-4]))
        return
    assert read_table(write("f.csv", content)).points.tolist() == ONE_TO_FOUR
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert read_table("-").points.tolist() == ONE_TO_FOUR


def test_text_whose_name_ends_like_that_of_a_packed_file_is_read(write) -> None:
    assert read_table(write("f.csv.gz", "x,y\n1,2\n3,4\n")).points.tolist() == ONE_TO_FOUR


def test_utf_16_that_ends_in_half_a_letter_is_refused(write) -> None:
    content = "x,y\n1,2\n3,4\n".encode("utf-16") + b"5"
    with pytest.raises(TableError, match=r"^f.csv is not in utf-16: .*pass another encoding="):
        read_table(write("f.csv", content))


def test_weights_that_are_missing_drop_their_rows_or_are_refused(write) -> None:
    file = write("a.csv", "x,y,w\n1,2,1\n7,9,\n3,4,3\n8,,4\n")
    dropped = read_table(file, missing="drop", weights="w")
    assert dropped.points.tolist() == ONE_TO_FOUR
    assert dropped.is_kept is not None
    assert dropped.is_kept.tolist() == [True, False, True, False]
    assert dropped.weights is not None
    assert dropped.weights.tolist() == [1.0, 3.0]
    for missing in ("error", "observed"):
        with pytest.raises(TableError, match=r'column "w" has no value in row 2, .*1 of 4'):
            read_table(file, missing=missing, weights="w")


def test_standard_input_is_read(write, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"x,y\n1,2\n3,4\n")))
    assert read_table("-").points.tolist() == ONE_TO_FOUR


TYPED = pa.table(
    {
        "x": pa.array([1, 3], pa.int32()),
        "kind": pa.array(["red", "blue"]).dictionary_encode(),
        "y": pa.array([2.0, 4.0], pa.float32()),
        "flag": pa.array([True, False]),
    }
)


def write_stream(table: pa.Table, path: str) -> None:
    with pa.OSFile(path, "wb") as file, ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize(
    "writer", [parquet.write_table, feather.write_feather, write_stream], ids=lambda f: f.__name__
)
def test_columns_of_one_name_are_each_read_as_themselves(writer, write) -> None:
    columns = [pa.array([1, 5]), pa.array([2, 6]), pa.array([3, 7]), pa.array([4, 8])]
    table = pa.Table.from_arrays(columns, names=["a", "b", "a", "a"])
    if writer is feather.write_feather:  # which refuses such names, while others write them
        with pa.OSFile("a.table", "wb") as file, ipc.new_file(file, table.schema) as arrow:
            arrow.write_table(table)
    else:
        writer(table, "a.table")
    read = read_table("a.table")
    assert read.names == ("a", "b", "a.3", "a.4")
    assert read.points.tolist() == [[1, 2, 3, 4], [5, 6, 7, 8]]
    assert read_table("a.table", columns=["a.4", "b", "a"]).points.tolist() == [
        [4, 2, 1],
        [8, 6, 5],
    ]


@pytest.mark.parametrize("writer", [parquet.write_table, feather.write_feather])
@pytest.mark.parametrize(
    ("index", "name"), [([7, 9], None), (["p", "q"], None), ([7, 9], "customer")]
)
def test_an_index_of_pandas_is_no_column_unless_it_is_asked_for(writer, index, name, write) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1, 3], "y": [2, 4]}, index=pandas.Index(index, name=name))
    writer(pa.Table.from_pandas(frame), "a.table")
    table = read_table("a.table")
    assert (table.names, table.points.tolist()) == (("x", "y"), ONE_TO_FOUR)
    if index == [7, 9]:
        key = name or "__index_level_0__"
        assert read_table("a.table", columns=[key]).points.tolist() == [[7.0], [9.0]]


@pytest.mark.parametrize("first", [0, 1])
def test_a_nameless_column_that_counts_the_rows_is_left_out(first, write) -> None:
    file = write("a.csv", f",x,y\n{first},5,2\n{first + 1},3,4\n")
    told = r'^a.csv: left out "c1" \(identifiers\): name identifiers with columns= to have them$'
    with pytest.warns(UserWarning, match=told):
        assert read_table(file).names == ("x", "y")
    assert read_table(file, columns=["c1", "y"]).points[0].tolist() == [first, 2]
    assert read_table(write("b.csv", "0,5\n1,3\n")).names == ("c1", "c2")


def test_an_index_alone_is_no_table(write) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(index=pandas.Index([7, 9], name="customer"))
    parquet.write_table(pa.Table.from_pandas(frame), "a.parquet")
    with pytest.raises(TableError, match=r'no columns but those of an index, "customer": name'):
        read_table("a.parquet")


@pytest.mark.parametrize("is_stream", [False, True])
def test_arrow_without_rows_is_said_to_be_so(is_stream, write) -> None:
    schema, new = TYPED.schema, ipc.new_stream if is_stream else ipc.new_file
    with pa.OSFile("f.arrow", "wb") as file, new(file, schema):
        pass
    with pytest.raises(TableError, match=r"^f\.arrow has columns and no rows$"):
        read_table("f.arrow")


@pytest.mark.parametrize(
    "writer", [parquet.write_table, feather.write_feather, write_stream], ids=lambda f: f.__name__
)
def test_files_with_types_are_read_by_their_types(writer, write) -> None:
    writer(TYPED, "a.table")
    table = read_table("a.table", columns=["x", "y", "flag"])
    assert table.points.tolist() == [[1.0, 2.0, 1.0], [3.0, 4.0, 0.0]]
    with pytest.raises(TableError, match='column "kind" is no number but of the type dictionary'):
        read_table("a.table", columns=["kind"])
    with pytest.warns(UserWarning, match=r'left out "kind" \(of the type dictionary'):
        assert read_table("a.table").names == ("x", "y", "flag")


@pytest.mark.parametrize("writer", [feather.write_feather, write_stream], ids=["feather", "stream"])
def test_a_column_name_that_is_no_text_is_damage(writer, write) -> None:
    writer(pa.table({"abcdef": [1.0, 2.0], "y": [3.0, 8.0]}), "a.table")
    content = Path("a.table").read_bytes()
    assert b"abcdef" in content
    Path("a.table").write_bytes(content.replace(b"abcdef", b"ab\xffdef"))
    with pytest.raises(TableError, match=r"a\.table is a damaged .* file: 'utf-8' codec"):
        read_table("a.table")


def test_a_null_is_a_missing_value(write) -> None:
    parquet.write_table(pa.table({"x": [1, None], "y": [3, 8]}), "a.parquet")
    np.testing.assert_array_equal(
        read_table("a.parquet", missing="observed").points, [[1, 3], [np.nan, 8]]
    )


def test_several_batches_come_one_after_another(write) -> None:
    numbers = np.arange(300_000)
    parquet.write_table(pa.table({"x": numbers, "y": -numbers}), "a.parquet", row_group_size=70_000)
    points = read_table("a.parquet").points
    np.testing.assert_array_equal(points, np.stack([numbers, -numbers], axis=1))


def test_arrays_are_read_and_keep_single_precision(write) -> None:
    np.save("a.npy", np.array(ONE_TO_FOUR, dtype=np.float32))
    np.savez("one.npz", X=np.array(ONE_TO_FOUR, dtype=int))
    np.savez("two.npz", X=np.array(ONE_TO_FOUR), y=np.zeros(2))
    fields = np.array([(1, 2.0), (3, 4.0)], dtype=[("x", "i4"), ("y", "f8")])
    np.save("fields.npy", fields)
    assert read_table("a.npy").points.dtype == np.float32
    for table in (
        read_table("a.npy"),
        read_table("one.npz"),
        read_table("two.npz", array="X"),
        read_table("fields.npy", columns=["x", "y"]),
    ):
        assert table.points.tolist() == ONE_TO_FOUR


def test_of_named_fields_the_one_of_text_is_blamed_and_may_be_left_out(write) -> None:
    fields = np.array(
        [(1, "a", 2.0), (3, "b", 4.0)], dtype=[("x", "i4"), ("name", "U5"), ("y", "f8")]
    )
    np.save("f.npy", fields)
    np.savez("f.npz", X=fields)
    for file in ("f.npy", "f.npz"):
        told = r'column "name" is no number .* with columns=\["x", "y"\]$'
        with pytest.raises(TableError, match=told):
            read_table(file, columns=["x", "name"])
        assert read_table(file, columns=["x", "y"]).points.tolist() == ONE_TO_FOUR


def test_arrays_that_are_sparse_of_objects_or_not_named_are_refused(write) -> None:
    sparse.save_npz("f.npz", sparse.csr_matrix(np.eye(3)))
    with pytest.raises(TableError, match=r"^f\.npz holds a sparse matrix of SciPy: .*load_npz"):
        read_table("f.npz")
    np.save("f.npy", np.array([[None]]), allow_pickle=True)
    np.savez("f.npz", X=np.array([[None]]))
    for file in ("f.npy", "f.npz"):
        with pytest.raises(TableError, match=r"no archive|of dtype object"):
            read_table(file)
    np.savez("f.npz", points=np.ones((2, 2)), labels=np.ones(2))
    with pytest.raises(TableError, match='choose with array= one of "points", "labels"'):
        read_table("f.npz")
    with pytest.raises(TableError, match='no array "point": did you mean "points"'):
        read_table("f.npz", array="point")


# What cannot be read, and the exact line that says so.

ERRORS: dict[str, tuple[str | bytes, dict[str, object], str]] = {
    "empty": ("", {}, "f.csv is empty"),
    "blank": ("\n\n", {}, "f.csv is empty"),
    "header only": ("x,y\n", {}, "f.csv has a header and no rows"),
    "ragged": (
        "x,y\n1,2\n3\n4,5\n",
        {},
        "f.csv: row 2 has 1 cells where 2 are expected: correct it, or pass the right delimiter=",
    ),
    "text": (
        "x,kind,y\n1,red,2\n3,blue,4\n",
        {"columns": ["kind"]},
        "f.csv: column \"kind\" is no number but text ('red'): leave it out with "
        'columns=["x", "y"]',
    ),
    "late text": (
        "x,y\n" + "1,2\n" * 300 + "1,abc\n",
        {},
        "f.csv: column \"y\" has 'abc' in row 301, which is no number: correct it, or leave the "
        'column out with columns=; missing_values=["y=abc"] reads it as missing',
    ),
    "late Latin-1": (
        b"x,y\n" + b"1,2\n" * 100_000 + "1,ä\n".encode("latin-1") + b"1,2\n",
        {},
        "f.csv: column \"y\" has 'ä' in row 100001, which is no number: correct it, or leave the "
        "column out with columns=",
    ),
    "no columns": ("x,y\n1,2\n", {"columns": []}, "columns=[] names none of f.csv: name some"),
    "wrong delimiter": (
        "x;y\n1;2\n",
        {"delimiter": ","},
        "f.csv: column \"x;y\" is no number but text ('1;2')",
    ),
    "huge whole number": (
        "id,x\n7,1\n12345678901234567,2\n",
        {"columns": ["id", "x"]},
        'f.csv: column "id" has in row 2 a whole number of more than 15 digits, which looks like '
        "an identifier: leave the column out with columns=, or write 1.0e17 for a number",
    ),
    "infinity": (
        "x,y\n1,2\n3,inf\n",
        {},
        'f.csv: column "y" has inf in row 2: correct it, or leave the row or the column out',
    ),
    "missing": (
        "x,y\n1,\n2,3\n,4\n",
        {},
        'f.csv: column "y" has no value in row 1 (2 of 3 rows lack some): missing="drop" '
        'leaves such rows out, missing="observed" goes by the values that are there',
    ),
    "all dropped": (
        "x,y\n1,\n,3\n",
        {"missing": "drop"},
        'f.csv: column "y" has no value in row 1 (2 of 2 rows lack some): missing="drop" '
        'leaves such rows out, missing="observed" goes by the values that are there',
    ),
    "unknown column": (
        "height,weight\n1,2\n",
        {"columns": ["heihgt"]},
        'f.csv has no column "heihgt": did you mean "height"?',
    ),
    "unknown column, none like it": (
        "height,weight\n1,2\n",
        {"columns": ["qq"]},
        'f.csv has no column "qq": there are "height", "weight"',
    ),
    "negative weight": (
        "x,w\n1,1\n2,-1\n",
        {"weights": "w"},
        'f.csv: column "w" has -1 in row 2, which is no weight: weights are finite and not '
        "negative",
    ),
    "only weights": ("w\n1\n", {"weights": "w"}, "f.csv has no columns but that of the weights"),
    "no encoding": (
        "x,y\n1,2\n",
        {"encoding": "utf-9"},
        "encoding='utf-9' is not known: name one such as cp1252",
    ),
    "wrong encoding": (
        "größe,y\n1,2\n".encode("cp1252"),
        {"encoding": "utf-8"},
        "f.csv is not in utf-8: 'utf-8' codec can't decode byte 0xf6 in position 2: invalid start "
        "byte: pass another encoding=",
    ),
    "something else": (
        bytes(range(256)),
        {},
        "f.csv is of an unknown kind: pass CSV, TSV, Parquet, Feather, Arrow, NPY or NPZ",
    ),
}


@pytest.mark.parametrize(("content", "options", "message"), ERRORS.values(), ids=ERRORS)
def test_what_cannot_be_read_is_said_in_one_line(content, options, message, write) -> None:
    with pytest.raises(TableError) as failure:
        read_table(write("f.csv", content), **options)
    assert str(failure.value) == message


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([["a"]]), 'f.npy: column "c1" is no number but of dtype <U1'),
        (np.ones((2, 2, 2)), "f.npy holds an array of dtype float64 and shape (2, 2, 2): pass "),
        (np.ones((0, 2)), "f.npy holds an array of dtype float64 and shape (0, 2): pass "),
        (np.array([[1j]]), 'f.npy: column "c1" is no number but of dtype complex128'),
    ],
)
def test_an_array_of_something_else_is_refused(array, message, write) -> None:
    np.save("f.npy", array)
    with pytest.raises(TableError) as failure:
        read_table("f.npy")
    assert str(failure.value).startswith(message)


@pytest.mark.parametrize("shape", ["(-1, 2)", "(-3,)"])
def test_an_array_of_a_negative_length_is_refused(shape, write) -> None:
    head = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".ljust(117) + "\n"
    file = write("f.npy", b"\x93NUMPY\1\0v\0" + head.encode() + bytes(64))
    with pytest.raises(TableError, match=r"of dtype float64 and shape \(-"):
        read_table(file)


@pytest.mark.parametrize("writer", [parquet.write_table, feather.write_feather])
def test_a_file_that_is_cut_off_is_refused(writer, write) -> None:
    writer(TYPED, "whole")
    content = Path("whole").read_bytes()
    for length in (8, len(content) // 2, len(content) - 1):
        with pytest.raises(TableError, match=r"^cut is a damaged .* file: "):
            read_table(write("cut", content[:length]))


def test_a_folder_and_a_missing_file_are_said_to_be_so(write) -> None:
    write("people.csv", "x\n1\n")
    Path("folder").mkdir()
    with pytest.raises(TableError, match=r"^folder is a directory: name a file in it$"):
        read_table("folder")
    with pytest.raises(TableError, match=r'^poeple\.csv does not exist: did you mean "people.csv"'):
        read_table("poeple.csv")


def test_without_pyarrow_the_error_names_the_extra(write, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    with pytest.raises(TableError, match=r'pip install "powermeans\[cli\]"'):
        read_table(write("f.csv", "x\n1\n"))


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200) | st.text("0123456789.,;\t\n\r\"'ax-ü", max_size=200))
@pytest.mark.filterwarnings("ignore:f.csv. left out:UserWarning")
def test_whatever_is_in_a_file_it_is_read_or_refused(content, write) -> None:
    with contextlib.suppress(TableError):
        table = read_table(write("f.csv", content), missing="observed")
        assert table.points.shape[1] == len(table.names) > 0


@given(
    values=st.lists(
        st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=2),
        min_size=1,
        max_size=20,
    )
)
@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_numbers_come_back_to_the_last_bit(values, write) -> None:
    text = "".join(f"{a!r},{b!r}\n" for a, b in values)
    read = read_table(write("f.csv", f"x,y\n{text}"), missing="observed").points
    np.testing.assert_array_equal(read, values)


MEASURE = """
import sys
from powermeans import read_table

def peak():
    with open("/proc/self/status") as status:
        return 1024 * next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))

read_table(sys.argv[1])  # a small one, since libraries take memory as well
before = peak()
points = read_table(sys.argv[2]).points
print((peak() - before) / points.nbytes)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere memory is counted otherwise")
def test_reading_takes_at_most_three_times_the_memory_of_the_array(write) -> None:
    row = ",".join(f"{value:.15f}" for value in np.random.default_rng(0).uniform(size=10)) + "\n"
    file = write("f.csv", ",".join("abcdefghij") + "\n" + row * 600_000)
    ended = subprocess.run(
        [sys.executable, "-c", MEASURE, write("s.csv", "x\n1\n"), file],
        capture_output=True,
        text=True,
        check=True,
    )
    assert 1 < float(ended.stdout) < 3


@pytest.mark.parametrize(
    ("name", "names", "expected"),
    [
        ("Heigt", ["height", "weight"], ': did you mean "height"?'),
        ("HEIGHT", ["height", "weight"], ': did you mean "height"?'),
        ("x", ["height"], ""),
        ("x", [], ""),
    ],
)
def test_the_nearest_name_is_suggested_if_one_is_near(name, names, expected) -> None:
    assert nearest(name, names) == expected


def test_a_file_that_may_not_be_read_is_said_to_be_so(write) -> None:
    file = write("f.csv", "x\n1\n")
    os.chmod(file, 0)
    if os.access(file, os.R_OK):
        pytest.skip("whoever runs this test may read everything")
    with pytest.raises(TableError, match=r"f\.csv cannot be read: Permission denied"):
        read_table(file)
