"""Labels that commands write as text, and the files that they refuse to write."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from powermeans.app.command import failures
from powermeans.app.command.data_files import DataFiles
from powermeans.app.command.outputs import check_outputs, write_labels
from powermeans.app.command.parts import all_paths


def test_labels_are_written_one_a_line(tmp_path, capsysbinary):
    pieces = [
        np.array([0, -1, 9, 10], np.int32),
        np.empty(0, np.int32),
        np.array([-1], np.int32),
        np.array([12_345, 3, 100_000], np.int32),
    ]
    expected = b"cluster\n0\n\n9\n10\n\n12345\n3\n100000\n"
    write_labels(str(tmp_path / "labels.csv"), pieces)
    assert (tmp_path / "labels.csv").read_bytes() == expected
    write_labels("-", pieces)
    assert capsysbinary.readouterr().out == expected


def test_labels_of_many_rows_are_the_words_of_each(tmp_path):
    labels = np.random.default_rng(0).integers(-1, 1200, size=200_001).astype(np.int32)
    write_labels(str(tmp_path / "labels.csv"), [labels[:130_000], labels[130_000:]])
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
    assert seconds_of(lambda: write_labels(str(tmp_path / "a.csv"), [labels])) < of_words / 2


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
