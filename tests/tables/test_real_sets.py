"""A real set is that set or an error, whether it is there or fetched."""

import gzip
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from powermeans import datasets
from powermeans.datasets import about, fetch, load_data_set
from powermeans.errors import MissingDataError, WrongDataError
from powermeans_tables.datasets import real
from powermeans_tables.datasets.real import CATALOGUE, Entry

# A small set of the test's own, known by its checksum.
POINTS = np.array([[1, 2], [3, 4], [5, 6]], dtype=np.int16)
LABELS = np.array([0, 1, 1])
TABLE, CLASSES = b"1 2\n3 4\n5 6\n", b"1\n2\n2\n"
ORIGIN = ("somebody, Journal 1", "some/where", "CC BY 4.0")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of the sets, with nothing in it yet, of which the catalogue knows `own`."""
    citation, source, licence = ORIGIN
    checksum, of_labels = real.sha256_of_values(POINTS), real.sha256_of_values(LABELS)
    how = {"format": "plain table", "places": [["http://127.0.0.1:9/a", "b"]]}
    entry = Entry("own", [3, 2], checksum, citation, source, licence, of_labels, fetch=how)
    monkeypatch.setitem(CATALOGUE, "own", entry)
    monkeypatch.setenv(real.DATA_VARIABLE, str(tmp_path / "data"))
    (tmp_path / "data").mkdir()
    return tmp_path / "data"


@pytest.fixture
def own(folder: Path) -> Path:
    return folder / "own.npz"


def test_a_set_is_read_whatever_its_numbers_are_stored_as(own) -> None:
    for dtype in (np.int16, np.uint8, np.float32, np.float64):
        np.savez(own, X=np.asfortranarray(POINTS.astype(dtype)), y=LABELS, note=["a"])
        found = load_data_set("own")
        assert found.points.dtype == np.float64
        np.testing.assert_array_equal(found.points, POINTS)
        np.testing.assert_array_equal(found.labels, LABELS)
    assert load_data_set("own", dtype=np.float32).points.dtype == np.float32
    with pytest.raises(ValueError, match="cannot store the points: pass float64 or float32"):
        load_data_set("own", dtype=np.int8)


def test_a_missing_set_says_where_it_comes_from_and_how_to_place_it(own, monkeypatch) -> None:
    with pytest.raises(MissingDataError) as caught:
        load_data_set("own")
    for part in (str(own), *ORIGIN, "3 x 2", real.DATA_VARIABLE):
        assert part in str(caught.value)
    with pytest.raises(ValueError, match='did you mean "birch'):
        load_data_set("birch4")
    # Without the variable sets are looked for in the home directory.
    monkeypatch.delenv(real.DATA_VARIABLE)
    monkeypatch.setattr(Path, "home", lambda: own.parent)
    with pytest.raises(FileNotFoundError, match=r"powermeans_data/own\.npz is missing: "):
        load_data_set("own")
    own.with_name("powermeans_data").mkdir()
    np.savez(own.with_name("powermeans_data") / "own.npz", X=POINTS, y=LABELS)
    np.testing.assert_array_equal(load_data_set("own").labels, LABELS)


class Trap:
    """What makes a note of being unpickled."""

    sprung = False

    def __reduce__(self) -> tuple:
        return setattr, (Trap, "sprung", True)


OTHERS = [
    ({"X": POINTS[:2], "y": LABELS}, r"has X of shape \(2, 2\)"),
    ({"X": POINTS + 1, "y": LABELS}, "has X with other values, by its SHA-256"),
    ({"X": POINTS, "y": 1 - LABELS}, "has y with other values"),
    ({"X": POINTS}, "has no array y"),
    ({"points": POINTS, "y": LABELS}, "has no array X"),
    ({"X": POINTS.astype(str), "y": LABELS}, "has X of dtype"),
    ({"X": np.array([Trap()]), "y": LABELS}, "allow_pickle"),
]


@pytest.mark.parametrize("use", [load_data_set, fetch])
def test_another_set_under_its_name_is_an_error_and_stays(own, use) -> None:
    for arrays, problem in OTHERS:
        np.savez(own, **arrays)
        before = own.read_bytes()
        with pytest.raises(WrongDataError, match=problem):
            use("own")
        assert own.read_bytes() == before
    assert not Trap.sprung


@pytest.mark.filterwarnings("ignore")
def test_a_torn_file_or_a_changed_byte_gives_the_same_numbers_or_that_error(own) -> None:
    for save in (np.savez, np.savez_compressed):
        save(own, X=POINTS, y=LABELS)
        whole, n_errors = own.read_bytes(), 0
        for kept in (0, 1, 4, 40, 200, -100, -1):
            own.write_bytes(whole[:kept])
            with pytest.raises(WrongDataError, match="cannot be read"):
                load_data_set("own")
    for place in range(len(whole)):
        own.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            np.testing.assert_array_equal(load_data_set("own").points, POINTS)
        except WrongDataError:
            n_errors += 1
    assert n_errors > len(whole) / 3


def test_the_checksum_sees_every_value_and_its_place_but_no_chunks(monkeypatch) -> None:
    values = np.where(np.arange(20.0) % 7 == 3, np.nan, np.arange(20.0)).reshape(10, 2)
    changed = values + np.eye(10, 2) * 1e-12
    digests = {real.sha256_of_values(one) for one in (values, values[::-1], changed, values.T)}
    assert len(digests) == 4
    assert real.sha256_of_values(-0.0 * POINTS) == real.sha256_of_values(0 * POINTS)
    monkeypatch.setattr(real, "_CHUNK", 6)
    assert real.sha256_of_values(values) in digests


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *about: object) -> None:
        pass


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and its address at a server of this machine."""
    served = tmp_path / "served"
    served.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(served)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield served, f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def enter(folder, monkeypatch) -> Callable[..., None]:
    """A function that changes the entry in the catalogue, and places that stand there."""

    def enter(*places: list[str], kind: str = "plain table", **changes: object) -> None:
        how = {"format": kind, "places": list(places)}
        monkeypatch.setitem(CATALOGUE, "own", replace(CATALOGUE["own"], fetch=how, **changes))

    return enter


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_set_comes_from_the_first_place_that_has_it_and_is_converted(own, served, enter, pack):
    place, address = served
    (place / "points.csv").write_bytes(pack(TABLE.replace(b" ", b",")))
    (place / "labels").write_bytes(pack(CLASSES))
    enter([f"{address}/gone"] * 2, [f"{address}/points.csv", f"{address}/labels"])
    assert fetch("own") == own
    found = load_data_set("own")
    np.testing.assert_array_equal(found.points, POINTS)
    np.testing.assert_array_equal(found.labels, LABELS)
    (place / "points.csv").unlink()
    before = own.stat().st_mtime_ns
    assert (fetch("own"), own.stat().st_mtime_ns) == (own, before)


def test_what_cannot_be_downloaded_says_where_it_is_and_how_to_place_it(served, enter, monkeypatch):
    enter([f"{served[1]}/gone"])
    with pytest.raises(MissingDataError) as caught:
        fetch("own")
    for part in (f"{served[1]}/gone", "404", *ORIGIN):
        assert part in str(caught.value)
    monkeypatch.setitem(CATALOGUE, "own", replace(CATALOGUE["own"], fetch=None))
    with pytest.raises(MissingDataError, match=r"no program can fetch 'own'.*CC BY 4\.0"):
        fetch("own")
    enter([f"{served[1]}/gone"])
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ImportError, match=r"pip install \"powermeans\[datasets\]\""):
        fetch("own")


def test_images_and_proteins_are_read_as_they_were_published(served, enter):
    place, address = served
    images = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    (place / "images").write_bytes(struct.pack(">HBB3I", 0, 8, 3, 3, 2, 2) + images.tobytes())
    (place / "labels").write_bytes(struct.pack(">HBBI", 0, 8, 1, 3) + bytes([0, 1, 1]))
    (place / "mice").write_text("Id,a_N,b_N,class\nx,1,2,c-CS-s\ny,3,,c-CS-m\nz,5,6,c-CS-m")
    proteins = np.array([[1.0, 2.0], [3.0, np.nan], [5.0, 6.0]])
    for kind, files, points in (
        ("images", ["images", "labels"], images.reshape(3, 4)),
        ("proteins", ["mice"], proteins),
    ):
        checksum = real.sha256_of_values(points)
        urls = [f"{address}/{file}" for file in files]
        enter(urls, kind=kind, shape=[*points.shape], points_sha256=checksum)
        fetch("own").unlink()


def test_other_files_are_refused_and_nothing_is_written(folder, served, enter):
    place, address = served
    for content, error, problem in (
        (TABLE.replace(b"6", b"7"), WrongDataError, "has X with other values, by its"),
        (b"1 2\n", WrongDataError, r"has X of shape \(1, 2\)"),
        (b"<html>not found</html>", MissingDataError, "could not be downloaded .*html"),
    ):
        (place / "points").write_bytes(content)
        enter([f"{address}/points"])
        with pytest.raises(error, match=problem):
            fetch("own")
        assert list(folder.iterdir()) == []


def test_sets_of_scikit_learn_need_no_network_and_all_say_their_licence(folder, tmp_path) -> None:
    for name, sizes in ("iris", [50, 50, 50]), ("wine", [59, 71, 48]):
        assert np.bincount(load_data_set(name).labels).tolist() == sizes
        assert fetch(name) == folder / f"{name}.npz"
    path = fetch("iris", folder=tmp_path / "elsewhere")
    assert path == tmp_path / "elsewhere" / "iris.npz"
    assert path.is_file()
    for name, entry in CATALOGUE.items():
        said = about(name)
        assert entry.licence in said
        assert (f"powermeans.datasets.fetch({name!r}" if entry.fetch else entry.copy) in said


@pytest.mark.data
def test_every_known_set_is_there(data_folder: Path) -> None:
    for name in datasets.names():
        if name != "mnist_train":
            found = load_data_set(name, dtype=np.float32)
            assert found.points.shape == tuple(CATALOGUE[name].shape)
    mice = load_data_set("mice_protein")
    assert np.isnan(mice.points).sum() == 1396
    assert (mice.labels < 4).sum() == 570
    assert load_data_set("birch1").centers.shape == (100, 2)
    assert load_data_set("birch3").labels is None
