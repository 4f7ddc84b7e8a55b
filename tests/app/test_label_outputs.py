"""Labels that commands write, as text and in files of other kinds."""

from __future__ import annotations

import numpy as np
import pytest
from pyarrow import feather, parquet

from powermeans.app.command.outputs import with_rows_left_out, write_labels


@pytest.mark.parametrize("cuts", [[4, 4, 5], [130_000]])
def test_labels_are_written_one_a_line(cuts, tmp_path, capsysbinary):
    labels = np.random.default_rng(0).integers(-1, 1200, size=200_001).astype(np.int32)
    # In a piece of its own, 21 is the first label without a line in the table.
    labels[:9] = [0, -1, 9, 10, 21, 12_345, 3, 100_000, 7]
    pieces = [{"cluster": piece} for piece in np.split(labels, cuts)]
    words = ["cluster", *("" if label < 0 else str(label) for label in labels), ""]
    write_labels(str(tmp_path / "labels.csv"), pieces)
    assert (tmp_path / "labels.csv").read_text().split("\n") == words
    write_labels("-", pieces)
    assert capsysbinary.readouterr().out.decode().split("\n") == words


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".feather", ".npy"])
def test_another_column_is_written_beside_the_cluster(suffix, tmp_path):
    columns = {"cluster": np.array([1, 0], np.int32), "distance": np.array([0.5, 2.0])}
    piece = with_rows_left_out(columns, np.array([True, False, True]))
    path = tmp_path / f"rows{suffix}"
    write_labels(str(path), [piece, piece])
    if suffix == ".npy":
        assert np.load(path).tolist() == 2 * [1, -1, 0]
    elif suffix in (".csv", ".tsv"):
        rows = [["cluster", "distance"], *2 * [["1", "0.5"], ["", ""], ["0", "2"]]]
        mark = "," if suffix == ".csv" else "\t"
        assert path.read_text().splitlines() == [mark.join(row) for row in rows]
    else:
        read = parquet.read_table if suffix == ".parquet" else feather.read_table
        expected = {"cluster": 2 * [1, None, 0], "distance": 2 * [0.5, None, 2.0]}
        assert read(path).to_pydict() == expected
