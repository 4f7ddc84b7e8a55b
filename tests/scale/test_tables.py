"""Tables as points: what files contain, wherever rows come from, and what is refused."""

import bz2
import gzip
import io
import lzma
import sys
from pathlib import Path
from types import SimpleNamespace

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import feather, parquet
from scipy import sparse

import powermeans
from powermeans import KMeans, PowerKMeans, Prepare, open_data, open_table, read_frame
from powermeans.errors import TableError
from powermeans.methods import SphericalMixture
from powermeans_tables.cells import arrow

NAN = float("nan")
TWO = np.ones((2, 2))
PLAIN = "x,y\n1,2\n3,4\n"
ONE_TO_FOUR = [[1.0, 2.0], [3.0, 4.0]]


@pytest.fixture
def write(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(name, content):
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write


def numbers_in(source, names=None, **options):
    """Columns of a file as numbers, or as days if they are dates."""
    table = open_table(source, **options).frame()
    kinds = {name: "date" if name == "joined" else "number" for name in names or table.column_names}
    return Prepare(as_=kinds, scale="none", dates="days").fit_transform(table.select([*kinds]))


XY, BARE = ("x", "y"), ("c1", "c2")


@pytest.mark.parametrize(
    ("content", "names"),
    [
        (PLAIN, XY), ("x,y\n1,2\n3,4", XY), ("x,y\r\n1,2\r\n3,4\r\n", XY), ("x,y\r1,2\r3,4\r", XY),
        ("\n\nx,y\n1,2\n3,4\n", XY), ("x\ty\n1\t2\n3\t4\n", XY), ("x;y\n1;2\n3;4\n", XY),
        ("x|y\n1|2\n3|4\n", XY), ("x y\n1 2\n3 4\n", XY), ("1,2\n3,4\n", BARE),
        ("\ufeffx,y\n1,2\n3,4\n", XY), ("\ufeff1,2\n3,4\n", BARE),
        ("größe,y\n1,2\n3,4\n".encode("latin-1"), ("größe", "y")),
        ('"a, b","c\nd"\n"1",2\n3,4\n', ("a, b", "c\nd")), ("x,x\n1,2\n3,4\n", ("x", "x.2")),
        (",y\n1,2\n3,4\n", ("c1", "y")), ("x;y\n1,0;2\n3;4,0\n", XY),
        ("x,y\n1e0,+2.0\n3.,4E0\n", XY), ("1990,y\n1,2\n3,4\n", ("1990", "y")),
        (" x  y\r\n 1  2 \r\n3 4\r\n", XY), ('x,y\n"1,0",2\n3,"4,0"\n', XY),
        ("x y\n1,0 2\n3 4,00\n", XY), ("x\ty\n1\t2\n3\t4\n".encode("utf-16"), XY),
        ("x y\n1  2\n3 4\n".encode("utf-16-le"), XY), ("x,y,\n1,2,\n3,4,\n", XY),
    ],
)  # fmt: skip
def test_text_is_read_whatever_its_form(content, names, write):
    for name in ("a.csv", "a.csv.gz"):  # whatever its name
        assert read_frame(write(name, content)).column_names[:2] == [*names]
        assert numbers_in(name, [*names]).tolist() == ONE_TO_FOUR


AS_WRITTEN = {
    "bank": ("Zweck;a;b\nMiete ä;-1.251,11;4.177,06\nBrot €;-3,50;4.173,56\n".encode("cp1252"),
             [[-1251.11, 4177.06], [-3.5, 4173.56]]),
    "thousands": ('a,b\n"4,177.06","1,23,456.5"\n12.25,2.5\n', [[4177.06, 123456.5], [12.25, 2.5]]),
    "percent": ("a;b\n12%;1\n3,5 %;2\n0;2\n", [[0.12, 1], [0.035, 2], [0, 2]]),
    "accounting": ('a,b\n"(1,000.50)",1\n20.25,2\n', [[-1000.5, 1], [20.25, 2]]),
    "zones": ("joined,b\n1970-01-02T01:30:00+01:30,4\n1970-01-02T12:00Z,6\n", [[1, 4], [1.5, 6]]),
    "American": ("joined,b\n01/02/1970,4\n02/29/2024,5\n", [[1, 4], [19782, 5]]),
    "title": ("Of 2024\nby Ann, Bob\n\na;b\n20;2,5\n30;3\n40;4\n", [[20, 2.5], [30, 3], [40, 4]]),
    "units": ("a,b\nL/s,-\n1.5,7\n2.5,8\n3.5,9\n", [[1.5, 7], [2.5, 8], [3.5, 9]]),
    "lines": ('a,note,b\n1,"two\nlines",2\n3,"x, y",4\n', [[1, 2], [3, 4]]),
    "digits": ("a,b\n0.1234567890123456789,5e-324\n-98765.432109876543,1.7976931348623157e150\n",
               [[0.1234567890123456789, 5e-324], [-98765.432109876543, 1.7976931348623157e150]]),
    "minus": ("a,b\n−1.5,1\n2,2\n", [[-1.5, 1], [2, 2]]),
    "blanks": ("a;b\n1 251,11;1\n1\u202f000\xa0000;3\n", [[1251.11, 1], [1e6, 3]]),
    "Swiss": ("a,b\n4'177.05,1\n12’000.00,2\n", [[4177.05, 1], [12000, 2]]),
}  # fmt: skip


@pytest.mark.parametrize(("content", "numbers"), AS_WRITTEN.values(), ids=AS_WRITTEN)
def test_what_people_write_is_read_as_they_mean_it(content, numbers, write):
    file = write("f.csv", content)
    names = [name for name in ("a", "joined", "b") if name in read_frame(file).column_names]
    np.testing.assert_array_equal(numbers_in(file, names), numbers)


@pytest.mark.parametrize("packed", [gzip.compress, bz2.compress, lzma.compress, bytes])
def test_packed_files_and_standard_input_are_read(packed, write, monkeypatch):
    content = packed(PLAIN.encode())
    assert numbers_in(write("f.csv", content)).tolist() == ONE_TO_FOUR
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(content)))
    assert numbers_in("-").tolist() == ONE_TO_FOUR
    if packed is not bytes:
        with pytest.raises(TableError, match=r"^f.csv cannot be unpacked: "):
            read_frame(write("f.csv", content[:-4]))


def write_stream(table, path):
    with pa.OSFile(path, "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("write_table", [parquet.write_table, feather.write_feather, write_stream])
def test_files_with_types_are_read_by_their_types_and_names_are_distinct(write_table, write):
    words, whole = pa.array(["red", "blue"]).dictionary_encode(), pa.array([1, 3], pa.int32())
    columns = [whole, pa.array([2.0, None], pa.float32()), pa.array([True, False]), words]
    write_table(pa.Table.from_arrays(columns, names=["abcdef", "y", "y", "word"]), "a")
    np.testing.assert_array_equal(numbers_in("a", ["abcdef", "y", "y.3"]), [[1, 2, 1], [3, NAN, 0]])
    assert read_frame("a")["word"].to_pylist() == ["red", "blue"]
    content = Path("a").read_bytes()
    for length in (8, len(content) // 2):
        with pytest.raises(TableError, match=r"^cut is (a damaged|of an unknown)"):
            read_frame(write("cut", content[:length]))
    if write_table is not parquet.write_table:  # a name that is no text
        write("a", content.replace(b"abcdef", b"ab\xffdef"))
        with pytest.raises(TableError, match=r"^a is a damaged .* file: 'utf-8' codec"):
            read_frame("a")


FIELDS = np.array([(1, "a", 2.0), (3, "b", 4.0)], [("x", "i4"), ("name", "U5"), ("y", "f8")])


def test_arrays_in_files_are_read_as_points_and_as_tables(write):
    np.save("four.npy", np.array(ONE_TO_FOUR, dtype=np.float32))
    np.savez("four.npz", X=np.array(ONE_TO_FOUR, dtype=int))
    np.save("fields.npy", FIELDS)
    for name, columns in ("four.npy", None), ("four.npz", None), ("fields.npy", ["x", "y"]):
        ((points, _),) = open_data(name, columns=columns).partition().read()
        assert points.tolist() == numbers_in(name).tolist() == ONE_TO_FOUR


RANGES = {
    "2-4": "home-work income b-c", "age-income": "age home-work income", "4-income": "b-c income",
    "home-work": "home-work", "home-work-b-c": "home-work income b-c", "b-c": "b-c",
    "1 income-5 c": "age income b-c b c", "2-9": "", "age-incme": "", "-3": "", "1-2-3": "",
}  # fmt: skip


@pytest.mark.parametrize(("asked", "expected"), RANGES.items())
def test_ranges_of_columns_are_read_where_no_column_has_that_name(asked, expected, write):
    file = write("a.csv", "age,home-work,income,b-c,b,c\n1,2,3,4,5,6\n7,8,9,1,2,3\n")
    if not expected:
        with pytest.raises(TableError, match=f'no column "{asked}"'):
            open_data(file, columns=[asked])
        return
    assert [*open_data(file, columns=asked.split()).feature_names] == expected.split()


def array(values, shape=None):
    """A file of an array, whose head may tell of another shape."""
    file = io.BytesIO()
    np.save(file, values, allow_pickle=True)
    told = repr(values.shape)
    return file.getvalue().replace(told.encode(), (shape or told).encode(), 1)


def archive(save=np.savez, **arrays):
    file = io.BytesIO()
    save(file, **arrays)
    return file.getvalue()


# Contents, options, and what the line of the error names.
ERRORS = [
    ("A title\n\nx,y\n1,2\n3,4,5\n4,5\n", {},
     r"row 2 of the data has 3 cells where 2 .*delimiter=$"),
    (PLAIN, {"columns": []}, r"^columns=\[\] names none of f"),
    ("w\n1\n", {"weights": "w"}, "no columns but that of the weights"),
    (PLAIN, {"encoding": "utf-9"}, "^encoding='utf-9' .* cp1252$"),
    ("größe,y\n1,2\n".encode("cp1252"), {"encoding": "utf-8"},
     "not in utf-8: .* 0xf6 in position 2.*encoding=$"),
    (PLAIN.encode("utf-16") + b"5", {}, "^f is not in utf-16: .*encoding=$"),
    (bytes(range(256)), {}, "^f is of an unknown kind: pass CSV, Excel, "),
    (array(np.array([["a"]])), {}, '"c1" has no numbers: it is of dtype <U1'),
    (array(np.ones((2, 2, 2))), {}, r"float64 and shape \(2, 2, 2\): pass "),
    (array(TWO, "(-1, 2)"), {}, r"float64 and shape \(-"),
    (array(np.array([[None]])), {}, "no archive|of dtype object"),
    (array(FIELDS), {"columns": ["x", "name"]}, '"name" has no numbers'),
    (archive(points=TWO, labels=TWO), {}, 'array= one of "points", "labels"'),
    (archive(points=TWO, labels=TWO), {"array": "point"}, 'no array "point".* "points"'),
    (archive(lambda file: sparse.save_npz(file, sparse.csr_matrix(np.eye(3)))), {},
     "^f.npz contains a SciPy sparse matrix: .*load_npz"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "options", "told"), ERRORS, ids=lambda _: "")
def test_what_cannot_be_read_is_named_in_one_line(content, options, told, write):
    file = write("f.npz" if content[:2] == b"PK" else "f", content)
    opened = open_table if "encoding" in options else open_data
    with pytest.raises(TableError, match=told) as failure:
        KMeans(1).fit(opened(file, **options))
    assert "\n" not in str(failure.value)


def test_text_needs_pyarrow_and_no_more_columns_than_a_table_has(write, monkeypatch):
    file = write("wide.csv", "a,b,c,d\n1,2,3,4\n2,3,4,5\n")
    monkeypatch.setattr("powermeans_tables.reading.text._MOST_COLUMNS", 3)
    with pytest.raises(TableError, match=r"wide.csv has 4 columns, and of a text at most 3"):
        read_frame(file)
    assert read_frame(write("wide.csv", "a,b,c\n1,2,3\n2,3,4\n")).num_columns == 3
    monkeypatch.setitem(sys.modules, "pyarrow.csv", None)
    monkeypatch.setattr("powermeans_tables.reading.text.csv", type(arrow.csv)("csv"))
    with pytest.raises(TableError, match=r'pip install "powermeans\[cli\]"'):
        read_frame(file)


# The same points and labels.


def people(n_rows=2500):
    """Columns of all kinds, as they are written."""
    rng = np.random.default_rng(0)
    group = rng.integers(3, size=n_rows)
    plan = np.array(["free", "team", "home"])[group]
    paid = [f"{x:,.2f} €" for x in 900 * group + 300 * rng.random(n_rows)]
    seats = (9 * group + rng.integers(1, 9, n_rows)).astype(str)
    code = [f"A-{number}" for number in rng.permutation(n_rows)]
    return pd.DataFrame({"plan": plan, "paid": paid, "seats": seats, "code": code})


def given_as(way, frame):
    if way.startswith("a.csv"):
        frame.to_csv(way, index=False)
    elif way == "a.parquet":
        frame.to_parquet(way, index=False, row_group_size=999)
    elif way == "folder":
        Path(way).mkdir()
        for number, rows in enumerate(np.array_split(np.arange(len(frame)), 3)):
            frame.iloc[rows].to_csv(f"folder/{number}.csv", index=False)
    else:
        return frame if way == "frame" else pa.table(frame).to_reader(max_chunksize=77)
    return way


@pytest.mark.parametrize("rows_per_part", [7, 1000, 2500])
@pytest.mark.parametrize("way", ["frame", "a.csv", "a.csv.gz", "folder", "a.parquet", "reader"])
@pytest.mark.filterwarnings("ignore:.*left out .code")
def test_points_are_the_same_wherever_rows_come_from(way, rows_per_part, write):
    frame, prepare = people(), Prepare()
    expected = prepare.fit_transform(read_frame(given_as("a.csv", frame)))
    data = open_data(given_as(way, frame), prepare=Prepare(), rows_per_part=rows_per_part)
    parts = [points for points, _ in data.partition().read()]
    assert len(parts) == -(-2500 // rows_per_part)
    assert expected.shape == (2500, 5)
    assert np.concatenate(parts).tobytes() == expected.tobytes()
    assert data.feature_names == tuple(prepare.get_feature_names_out())
    assert data.source.preparation.columns_ == prepare.columns_


@pytest.mark.filterwarnings("ignore:.*left out .code")
def test_a_fit_to_a_table_knows_its_columns_and_takes_no_arrays(write):
    frame = people()
    file, prepare = given_as("a.csv", frame), Prepare()
    points = prepare.fit_transform(frame)
    model, expected = (KMeans(3, random_state=0).fit(X) for X in (file, points))
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    powermeans.save(model, "model.pm")
    for one in (model, powermeans.load("model.pm")):
        for rows in (file, frame, frame[frame.columns[::-1]], pa.table(frame)):
            np.testing.assert_array_equal(one.predict(rows), expected.labels_)
        np.testing.assert_allclose(one.transform(frame), expected.transform(points), rtol=1e-12)
        assert one.preparation_.transform(frame[:9]).tobytes() == points[:9].tobytes()
    in_parts = open_data(file, rows_per_part=300)
    assert np.array_equal(np.load(model.predict(in_parts, output="l.npy")), model.labels_)
    assert model.score(in_parts) == pytest.approx(-model.inertia_, rel=1e-12)
    for rows in (points, points.tolist(), open_data(points), open_data([points])):
        with pytest.raises(ValueError, match="fitted to a table"):
            model.score(rows)
    for of_table in (model, SphericalMixture(2, random_state=0).fit(file)):
        with pytest.raises(ValueError, match=r"fitted to a table, .*: fit make_pipeline"):
            of_table.to_sklearn()
    with pytest.raises(TableError, match='X has no "plan" in 3 columns'):
        model.predict(frame.drop(columns="plan"))
    assert model.fit(points).predict(points[:9]).tolist() == expected.labels_[:9].tolist()
    assert not hasattr(model, "preparation_")


def test_a_fit_to_arrays_takes_columns_by_place_and_one_to_a_frame_by_name(write):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(50, 2)), columns=["a", "b"])
    frame.to_csv("same.csv", index=False)
    frame[["b", "a"]].to_csv("swapped.csv", index=False)
    by_place, by_name = (KMeans(2, random_state=0).fit(X) for X in (frame.to_numpy(), frame))
    swapped = by_place.predict(frame[["b", "a"]].to_numpy())
    assert swapped.tolist() != by_place.labels_.tolist()
    for model, of_swapped in (by_place, swapped), (by_name, by_name.labels_):
        np.testing.assert_array_equal(model.predict("same.csv"), model.labels_)
        np.testing.assert_array_equal(model.predict("swapped.csv"), of_swapped)
    np.save("rows.npy", frame)  # whose columns have no names
    in_parts = open_data("rows.npy", rows_per_part=9)
    of_array, of_parts = (KMeans(2, random_state=0).fit(X) for X in ("rows.npy", in_parts))
    for model in (by_name, of_array):
        np.testing.assert_array_equal(model.predict("rows.npy"), model.labels_)
        np.testing.assert_array_equal(
            np.load(model.predict(in_parts, output="l.npy")), model.labels_
        )
    for model in (of_array, of_parts):
        assert not hasattr(model, "feature_names_in_")
        with pytest.warns(UserWarning, match="without feature names"):
            np.testing.assert_array_equal(model.predict(frame), model.predict(frame.to_numpy()))
    frame.assign(c=1.0).to_csv("more.csv", index=False)
    np.testing.assert_array_equal(by_name.predict("more.csv"), by_name.labels_)
    with pytest.raises(TableError, match=r"more.csv has .* in 3 columns.* to 2: .*columns="):
        by_place.predict("more.csv")


@pytest.mark.filterwarnings("ignore:.*left out .code")
def test_words_in_a_dask_frame_are_prepared_by_partition(write):
    frame = people(300)
    with dask.config.set(scheduler="threads"):
        lazy, prepare = dd.from_pandas(frame, npartitions=3), Prepare().fit(frame)
        data = open_data(lazy)
        assert data.feature_names == tuple(prepare.get_feature_names_out())
        np.testing.assert_allclose(data.array.compute(), prepare.transform(frame), atol=1e-12)
        model = KMeans(3, random_state=0).fit(lazy)
        labels = model.labels_.compute()
        for rows in (frame, given_as("a.csv", frame)):
            np.testing.assert_array_equal(model.predict(rows), labels)
        np.testing.assert_array_equal(model.predict(lazy.repartition(npartitions=2)), labels)
        with pytest.raises(ValueError, match="fitted to a table"):
            model.predict(data.array)


N_MANY = 200_000  # of which the last but one is none of those that tell the kinds of columns


def many(first, last):
    rows = [f"{first[i % 2]},{i % 7}\n" for i in range(N_MANY)]
    return "x,y\n" + "".join([*rows[:-2], f"{last},3\n", rows[-1]])


@pytest.mark.parametrize("rows_per_part", [None, 50_000])
@pytest.mark.filterwarnings("ignore:.*decides")
def test_a_word_in_late_rows_is_none_of_those_before_and_is_told(rows_per_part, write):
    data = open_data(write("a.csv", many(("red", "blue"), "green")), rows_per_part=rows_per_part)
    with pytest.warns(UserWarning, match=r'"x" has "green" \(1 row\), none of its words'):
        model = KMeans(2, random_state=0).fit(data)
    assert model.feature_names_in_.tolist() == ["x: red", "y"]
    late = {"x": ["red", "green", "blue"], "y": [1, 1, 1]}
    red, green, blue = model.preparation_.transform(late)
    assert red[0] > blue[0]
    np.testing.assert_allclose(green, (red + blue) / 2)  # as far from either word


LATE = {
    '"1,5"': ("1.5", "2.5"), "1.250.000": ("2.5", "3.5"), "0.12": ("12%", "15%"),
    "€2.5": ("$1.5", "$2.5"), "maybe": ("yes", "no"),
}  # fmt: skip


@pytest.mark.parametrize(("last", "first"), LATE.items())
def test_a_number_in_late_rows_in_another_form_is_refused_with_its_row(first, last, write):
    with pytest.raises(TableError, match=rf'missing in "x", first in row {N_MANY - 1} of'):
        KMeans(2).fit(write("a.csv", many(first, last)))


@pytest.mark.parametrize("rows_per_part", [None, 2])
@pytest.mark.filterwarnings("ignore:.*5 rows without any value")
def test_rows_without_a_value_are_in_no_cluster_wherever_they_are(rows_per_part, write):
    file = write("a.csv", "x,y\n,\n1,2\n9,8\n,\n1.1,\n,\n9,7\n,\n2,2\n,\n")
    data = open_data(file, rows_per_part=rows_per_part)
    model = PowerKMeans(2, missing="observed", random_state=0).fit(data)
    labels = np.load(model.predict(data, output="labels.npy"))
    one, other = labels[1], 1 - labels[1]
    assert labels.tolist() == [-1, one, other, -1, one, -1, other, -1, one, -1]
    np.testing.assert_array_equal(model.predict(file), labels)
    assert np.isnan(model.transform(file)).all(axis=1).tolist() == (labels < 0).tolist()
    model = PowerKMeans(5, missing="observed", random_state=0).fit(file)  # each row is one
    assert model.cluster_centers_.shape == (5, 2)
    assert sorted(model.labels_) == [*[-1] * 5, *range(5)]


@pytest.mark.parametrize("rows_per_part", [None, 7])
def test_weights_of_narrow_points_keep_their_digits(rows_per_part, tmp_path):
    X = np.random.default_rng(0).normal(size=(40, 2)).astype(np.float32)
    weights = np.r_[1e39, 1e-46, 16_777_217, np.full(37, 0.1)]
    parquet.write_table(
        pa.table({"x": X[:, 0], "y": X[:, 1], "w": weights}), tmp_path / "a.parquet"
    )
    data = open_data(tmp_path / "a.parquet", weights="w", rows_per_part=rows_per_part)
    model = KMeans(1).fit(data)
    expected = KMeans(1).fit(model.preparation_.transform(X), sample_weight=weights)
    assert model.inertia_ == pytest.approx(expected.inertia_, rel=1e-6)
    assert model.cluster_centers_.dtype == np.float32
