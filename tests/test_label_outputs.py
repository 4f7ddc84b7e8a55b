"""Labels that commands write as text, and the files that they refuse to write."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from pyarrow import feather, parquet

from powermeans.app.command import failures
from powermeans.app.command.data_files import DataFiles
from powermeans.app.command.outputs import check_outputs, with_rows_left_out, write_labels
from powermeans.app.command.parts import all_paths


def test_labels_are_written_one_a_line(tmp_path, capsysbinary):
    pieces = [
        np.array([0, -1, 9, 10], np.int32),
        np.empty(0, np.int32),
        np.array([-1], np.int32),
        np.array([12_345, 3, 100_000], np.int32),
    ]
    expected = b"cluster\n0\n\n9\n10\n\n12345\n3\n100000\n"
    pieces = [{"cluster": labels} for labels in pieces]
    write_labels(str(tmp_path / "labels.csv"), pieces)
    assert (tmp_path / "labels.csv").read_bytes() == expected
    write_labels("-", pieces)
    assert capsysbinary.readouterr().out == expected


def test_labels_of_many_rows_are_the_words_of_each(tmp_path):
    labels = np.random.default_rng(0).integers(-1, 1200, size=200_001).astype(np.int32)
    pieces = [{"cluster": labels[:130_000]}, {"cluster": labels[130_000:]}]
    write_labels(str(tmp_path / "labels.csv"), pieces)
    words = (tmp_path / "labels.csv").read_text().split("\n")
    assert words == ["cluster", *("" if label < 0 else str(label) for label in labels), ""]


def test_a_label_is_written_faster_than_python_makes_a_word_of_it(tmp_path):
    labels = np.random.default_rng(0).integers(1000, size=2**19).astype(np.int32)

    def seconds_of(work):
        times = []
        for _ in range(3):
            started = time.process_time()
            work()
            times.append(time.process_time() - started)
        return min(times)

    of_words = seconds_of(lambda: "\n".join(str(label) for label in labels.tolist()))
    pieces = [{"cluster": labels}]
    assert seconds_of(lambda: write_labels(str(tmp_path / "a.csv"), pieces)) < of_words / 2


def test_another_column_is_written_beside_the_cluster(tmp_path):
    piece = with_rows_left_out(
        {"cluster": np.array([1, 0], np.int32), "distance": np.array([0.5, 2.0])},
        np.array([True, False, True]),
    )
    for suffix, mark in ((".csv", ","), (".tsv", "\t")):
        write_labels(str(tmp_path / f"rows{suffix}"), [piece])
        lines = ["cluster,distance", "1,0.5", ",", "0,2", ""]
        assert (tmp_path / f"rows{suffix}").read_text().replace(mark, ",") == "\n".join(lines)
    for suffix in (".parquet", ".feather"):
        write_labels(str(tmp_path / f"rows{suffix}"), [piece, piece])
        read = parquet.read_table if suffix == ".parquet" else feather.read_table
        columns = read(tmp_path / f"rows{suffix}").to_pydict()
        assert columns == {"cluster": 2 * [1, None, 0], "distance": 2 * [0.5, None, 2.0]}
    write_labels(str(tmp_path / "rows.npy"), [piece])
    assert np.load(tmp_path / "rows.npy").tolist() == [1, -1, 0]


def test_folders_are_among_what_is_read(tmp_path):
    (tmp_path / "rows").mkdir()
    for name in ("rows/a.npy", "b.npy"):
        np.save(tmp_path / name, np.ones((3, 2)))
    paths = [str(tmp_path / name) for name in ("rows", "b.npy")]
    assert all_paths(DataFiles(tuple(paths))) == [
        paths[0],
        str(tmp_path / "rows" / "a.npy"),
        paths[1],
    ]


@pytest.mark.parametrize("name", ["labels.csv", "deep/labels.csv"])
def test_nothing_is_written_into_a_folder_that_is_read(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path("rows/deep").mkdir(parents=True)
    Path("others").mkdir()
    for of_command in ({"labels": f"rows/{name}"}, {"picture": "rows/picture.png"}):
        with pytest.raises(failures.Failure, match=r"is in the folder rows, .*elsewhere") as caught:
            check_outputs(reads=["rows", "rows/a.csv"], **of_command)
        assert caught.value.code == failures.USAGE
    with pytest.raises(failures.Failure, match=r"is in the folder rows"):
        check_outputs("others/../rows/model.pm", reads=["rows"])
    check_outputs("rows/_model.pm", "others/model.pm", reads=["rows"], labels="rows/.labels.csv")
