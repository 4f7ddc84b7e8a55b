"""A set is fetched from a server or from files of the user, and only if its values are right."""

from __future__ import annotations

import gzip
import struct
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from powermeans.datasets import about, fetch, load_data_set, real
from powermeans.datasets.real import CATALOGUE, Entry
from powermeans.errors import MissingDataError, WrongDataError

POINTS = np.array([[1.0, 2.5], [3.0, 4.0], [5.0, 6.0]])
LABELS = np.array([0, 1, 1])
TABLE, CLASSES = b"1 2.5\n3 4\n5 6\n", b"1\n2\n2\n"


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *about: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and its address at a server of this machine."""
    folder = tmp_path / "served"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Entry:
    """A set of two files that no place has yet, which the catalogue knows."""
    entry = Entry(
        "own",
        [3, 2],
        real.sha256_of_values(POINTS),
        "somebody, Journal 1",
        "some/where",
        "CC BY 4.0",
        real.sha256_of_values(LABELS),
        fetch={"format": "plain table", "places": [["http://127.0.0.1:9/a", "b"]]},
    )
    monkeypatch.setenv(real.DATA_VARIABLE, str(tmp_path / "data"))
    monkeypatch.setitem(CATALOGUE, "own", entry)
    return entry


def place_at(monkeypatch: pytest.MonkeyPatch, entry: Entry, *places: list[str]) -> None:
    assert entry.fetch is not None
    changed = replace(entry, fetch={**entry.fetch, "places": list(places)})
    monkeypatch.setitem(CATALOGUE, "own", changed)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_set_is_downloaded_converted_and_loaded(own, served, monkeypatch, pack) -> None:
    folder, address = served
    (folder / "points").write_bytes(pack(TABLE))
    (folder / "labels").write_bytes(pack(CLASSES))
    place_at(monkeypatch, own, [f"{address}/points", f"{address}/labels"])
    path = fetch("own")
    found = load_data_set("own")
    np.testing.assert_array_equal(found.points, POINTS)
    np.testing.assert_array_equal(found.labels, LABELS)
    (folder / "points").unlink()
    before = path.stat().st_mtime_ns
    assert fetch("own") == path
    assert path.stat().st_mtime_ns == before


def test_the_next_place_is_tried_where_one_has_no_file(own, served, monkeypatch) -> None:
    folder, address = served
    points, labels = folder / "points.csv", folder / "labels"
    points.write_bytes(TABLE.replace(b" ", b","))
    labels.write_bytes(CLASSES)
    place_at(
        monkeypatch,
        own,
        [f"{address}/gone", f"{address}/gone"],
        [f"{address}/points.csv", f"{address}/labels"],
    )
    fetch("own")
    np.testing.assert_array_equal(load_data_set("own").points, POINTS)


def test_what_cannot_be_downloaded_says_where_it_is_and_how_to_place_it(
    own, served, monkeypatch
) -> None:
    _, address = served
    place_at(monkeypatch, own, [f"{address}/gone"])
    with pytest.raises(MissingDataError) as caught:
        fetch("own")
    for part in (f"{address}/gone", "404", "somebody, Journal 1", "CC BY 4.0", "some/where"):
        assert part in str(caught.value)
    monkeypatch.setitem(CATALOGUE, "own", replace(own, fetch=None))
    with pytest.raises(MissingDataError, match=r"no program can fetch 'own'.*CC BY 4\.0"):
        fetch("own")


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (TABLE.replace(b"6", b"7"), "has X with other values, by its SHA-256"),
        (b"1 2.5\n", r"has X of shape \(1, 2\)"),
        (b"<html>not found</html>", "are not laid out as expected"),
    ],
)
def test_other_values_are_refused_and_nothing_is_written(own, tmp_path, table, problem) -> None:
    files = [tmp_path / "points", tmp_path / "labels"]
    files[0].write_bytes(table)
    files[1].write_bytes(CLASSES)
    with pytest.raises(WrongDataError, match=problem):
        fetch("own", files=files)
    assert not list(tmp_path.glob("data/*"))


def test_files_of_the_user_are_converted_and_counted(own, tmp_path) -> None:
    np.savez(tmp_path / "mine.npz", X=POINTS, y=LABELS)
    path = fetch("own", files=[tmp_path / "mine.npz"], folder=tmp_path / "elsewhere")
    assert path == tmp_path / "elsewhere" / "own.npz"
    (tmp_path / "points").write_bytes(TABLE)
    with pytest.raises(WrongDataError, match="is made of 2 files, in this order: a, b; 1 were"):
        fetch("own", files=[tmp_path / "points"])
    with pytest.raises(FileNotFoundError, match="nowhere is no file: pass the path of what you"):
        fetch("own", files=[tmp_path / "nowhere"])


def test_a_wrong_file_in_its_place_is_an_error_and_stays(own, tmp_path) -> None:
    (tmp_path / "data").mkdir()
    np.savez(tmp_path / "data" / "own.npz", X=POINTS + 1, y=LABELS)
    before = (tmp_path / "data" / "own.npz").read_bytes()
    with pytest.raises(WrongDataError, match="other values"):
        fetch("own")
    assert (tmp_path / "data" / "own.npz").read_bytes() == before


def test_images_and_their_labels_are_read_from_idx(own, tmp_path, monkeypatch) -> None:
    images = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    checksum = real.sha256_of_values(images.reshape(3, 4))
    entry = replace(own, shape=[3, 4], points_sha256=checksum)
    entry = replace(entry, fetch={"format": "images", "places": [["a", "b"]]})
    monkeypatch.setitem(CATALOGUE, "own", entry)
    files = [tmp_path / "images", tmp_path / "labels"]
    files[0].write_bytes(struct.pack(">HBB3I", 0, 8, 3, 3, 2, 2) + images.tobytes())
    files[1].write_bytes(struct.pack(">HBBI", 0, 8, 1, 3) + bytes([0, 1, 1]))
    fetch("own", files=files)
    assert load_data_set("own").points[2].tolist() == [8, 9, 10, 11]
    files[0].write_bytes(struct.pack(">HBB3I", 0, 13, 3, 3, 2, 2) + images.tobytes())
    with pytest.raises(WrongDataError, match="numbers of kind 13 where 8"):
        fetch("own", files=files, folder=tmp_path)


def test_a_download_without_pooch_names_the_extra(own, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install \"powermeans\[datasets\]\""):
        fetch("own")


@pytest.mark.parametrize("name", ["iris", "wine"])
def test_sets_of_scikit_learn_need_no_network(name: str, tmp_path: Path) -> None:
    assert fetch(name, folder=tmp_path) == tmp_path / f"{name}.npz"


def test_the_table_of_proteins_is_read_as_it_was_published(data_folder, tmp_path) -> None:
    mice = load_data_set("mice_protein")
    head = ["MouseID", *mice.extras["feature_names"], "Genotype", "Treatment", "Behavior", "class"]
    lines = []
    for row, label in zip(mice.points, mice.labels, strict=True):
        entries = ("" if np.isnan(value) else str(value) for value in row)
        lines.append(["309_1", *entries, "Control", "M", "C/S", mice.extras["class_names"][label]])
    file = tmp_path / "Data_Cortex_Nuclear.csv"
    file.write_text("\n".join(",".join(line) for line in [head, *lines]), encoding="utf-8")
    path = fetch("mice_protein", files=[file], folder=tmp_path)
    with np.load(path) as arrays:
        np.testing.assert_array_equal(arrays["X"], mice.points)
        np.testing.assert_array_equal(arrays["y"], mice.labels)


def test_every_set_says_its_licence_and_how_to_get_it() -> None:
    for name, entry in CATALOGUE.items():
        said = about(name)
        assert entry.licence in said
        assert f"powermeans datasets {name}" in said
