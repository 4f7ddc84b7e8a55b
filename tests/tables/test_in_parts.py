"""Rows that are read part by part: they tell and write what they do in memory."""

import gzip
import io
import random
import re
from pathlib import Path

import numpy as np
import pytest
from pyarrow import parquet
from tables.answers import clusters_in, column_of

from powermeans import Prepare, RobustPowerKMeans
from powermeans.engine.history import SweepState
from powermeans.explaining.summaries import Tally
from powermeans.saving import load, save
from powermeans_tables.command import failures
from powermeans_tables.command.screen import listening
from powermeans_tables.preparing import points as prepared

LIMIT = "--memory-limit 100kB"
SOURCES = r"two/a\.csv and 1 more|standard input|shop\.csv(\.gz)?|\btwo\b"


@pytest.fixture
def shop(run):
    """Rows of words, units, gaps, codes, dates and a total: plain, packed, in a folder of two."""
    draw, rows = random.Random(0), []
    for i in range(1500):
        kind = i % 3
        mass = f"{[0, 50, 90][kind] + draw.gauss(0, 1):.2f} kg" if i % 11 else ""
        color = ["red", "blue", "green"][kind] if i % 17 else "n/a"
        cost = [500, 100, 900][kind] + draw.randrange(9) if i % 13 else -999
        rows.append(f"n{i};{mass};{color};{cost};{i % 28 + 1}.0{kind + 1}.2024;{kind + 1}\n")
    head, total = "name;mass;color;cost;day;n\n", "Total;;;99999;;9\n"
    Path("shop.csv").write_text(f"{head}{''.join(rows)}{total}")
    Path("shop.csv.gz").write_bytes(gzip.compress(Path("shop.csv").read_bytes()))
    Path("two").mkdir()
    Path("two/a.csv").write_text(head + "".join(rows[:700]))
    Path("two/b.csv").write_text(f"{head}{''.join(rows[700:])}{total}")


def told(run, source, options="--as n=ignore", how=""):
    """What a fit and its model say and write, but for the numbers of clusters, times and sweeps."""
    stdin, found = Path("shop.csv").read_bytes(), []
    weights = "--weights n" * ("weights" in options)
    for command in (f"fit {source} -k 3 --verbose -m m.pm {options}", f"predict m.pm {source}"):
        more = f"-q -o o.csv --add second_cluster,name {weights * command.startswith('p')} {how}"
        ended = run(f"{command} {more}", stdin=stdin)
        said = re.sub(r"(, read| in \d| after \d|proved to be ).*", "", ended.out + ended.err)
        said = re.sub(rf"^ +\d |{SOURCES}", "", said, flags=re.M)
        rows = [line.rsplit(";", 3) for line in Path("o.csv").read_text().splitlines()]
        found += [sorted({*said.splitlines()}), [(given, name) for given, *_, name in rows]]
    return found


def test_a_column_may_be_called_as_the_weights_are_in_the_temporary_file(run):
    rows = [f"{10 * (i % 3) - 9},{i % 7},{1 + i % 4}\n" for i in range(60)]
    Path("w.csv").write_text(f"weight,x,w\n{''.join(rows)}")
    for path, how in (("whole.csv", ""), ("parts.csv", LIMIT)):
        run(f"fit w.csv -k 3 -q --weights w --labels-only -o {path} {how}")
    assert Path("parts.csv").read_text() == Path("whole.csv").read_text()


TOTALS = "left out as totals: row 1501 of the data (--keep-totals uses all rows)"


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        ("--as n=ignore", TOTALS),
        ("--weights n", "size: rows; share: of the weight"),
        ("--missing drop --scale minmax --as n=ignore", "left out: 316 rows with missing values"),
        ("--dates days --as n=ignore", TOTALS),
        ("--skip-rows 5-7,1501 --as n=ignore", "3 rows left out (--skip-rows)"),
    ],
)
def test_rows_in_parts_tell_and_write_what_they_do_in_memory(options, shown, shop, run):
    whole = told(run, "shop.csv", options)
    assert shown in whole[0]
    assert told(run, "shop.csv", options, LIMIT) == whole
    assert len({name for _, name in whole[1]} - {"", "name.2"}) == 3


@pytest.mark.parametrize("source", ["two", "shop.csv.gz", "-", "two/a.csv two/b.csv"])
def test_folders_files_and_streams_are_read_as_one_file(source, shop, run):
    whole = told(run, "shop.csv")
    for how in ("", LIMIT):
        assert told(run, source, how=how) == whole


def test_rows_of_a_fit_in_parts_are_written_beside_no_report(run, folder):
    for add in ("", " --add distance"):  # the second one replaces the first
        fit = run(f"fit rows.parquet -k 4 -q{add} {LIMIT}")
        assert "\nwritten: rows-clusters.parquet; no report, which needs all rows" in fit.out
        names = ["cluster", "distance", "second_cluster", "sure"][: 2 if add else None]
        assert parquet.read_table("rows-clusters.parquet").column_names == [*"abcw", *names]
    assert not Path("rows-report.html").exists()


@pytest.mark.parametrize("suffix", ["csv", "npy", "parquet", "feather", "xlsx", "jsonl"])
def test_clusters_in_parts_are_those_that_the_model_predicts(suffix, run, folder):
    bare = "--labels-only" if suffix == "npy" else ""
    fit = run(f"fit folder -k 4 --columns a,b,c -o one.{suffix} -m m.pm {bare} {LIMIT}")
    assert "folder, read part by part in " in fit.out
    run(f"predict m.pm -o other.{suffix} {bare}", *map(str, sorted(Path("folder").iterdir())))
    expected = list(map(str, load("m.pm").predict("rows.parquet")))
    assert clusters_in(f"one.{suffix}") == clusters_in(f"other.{suffix}") == expected
    assert column_of(run(f"predict m.pm rows.parquet {LIMIT}").out) == expected


@pytest.mark.parametrize("far", [1e6, 1e9])
def test_a_tally_of_parts_is_that_of_all_rows(far):
    """Also where centers are far from their rows, as directions of cosine distances are."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=500).astype(np.int32)  # of the fourth there is none
    points = rng.normal(size=(500, 3)) + far * rng.uniform(size=(4, 3))[labels]
    points[:, 2], weights = 7.0, rng.uniform(size=500)
    tally = Tally(points[:4] if far < 1e9 else np.eye(4)[:, :3])
    for rows in np.split(np.arange(500), [120, 240, 360, 480]):
        tally.add(points[rows], labels[rows], weights[rows])
    columns, found = tally.summaries(["a", "b", "c"])
    mean = np.average(points, axis=0, weights=weights)
    deviations = np.sqrt(np.average((points - mean) ** 2, axis=0, weights=weights))
    np.testing.assert_allclose(columns.means, mean, rtol=1e-12)
    np.testing.assert_allclose(columns.deviations, deviations, rtol=1e-6)
    assert columns.deviations[2] == 0
    for one in found[:3]:
        own, counts = points[labels == one.label], weights[labels == one.label]
        center = np.average(own, axis=0, weights=counts)
        spread = np.sqrt(np.average(((own - center) ** 2).sum(axis=1), weights=counts))
        assert (one.size, one.weight) == (len(own), pytest.approx(counts.sum()))
        assert one.spread == pytest.approx(spread, rel=1e-6)
        np.testing.assert_allclose(one.mean, center, rtol=1e-12)
    assert found[3].size == 0


@pytest.mark.usefixtures("folder")
def test_a_fit_goes_on_from_its_checkpoint_and_no_other_does(run):
    command = "fit rows.parquet -k 4 --columns a,b,c --scale none --checkpoint state -q"
    first, again = (re.sub(r" in \d.*", "", run(command).out) for _ in range(2))
    said = "the fit resumes from state\n"
    assert said not in first
    assert again.replace(said, "") == first != again
    other = run(command, "--seed", 3, code=failures.USAGE)
    assert "--checkpoint 'state'" in other.err


@pytest.mark.usefixtures("folder")
def test_points_that_do_not_fit_into_memory_are_read_part_by_part_and_that_is_said(
    run, monkeypatch
):
    for fits in (True, False):
        monkeypatch.setattr(prepared, "fits_into_memory", lambda _, fits=fits: fits)
        said = run("fit rows.parquet -k 4 --columns a,b,c -q").out
        assert ("rows.parquet, read part by part in" in said) is not fits
        assert ("read part by part, since its points would take 7.2e-05 GB" in said) is not fits


def test_points_of_many_rows_are_narrow_where_they_lose_nothing(monkeypatch):
    monkeypatch.setattr(prepared, "_MOST_IN_DOUBLE", 8 * 600 - 1)
    one, two = np.random.default_rng(0).normal(size=(2, 300))
    tables, prepare = [{"a": one + to, "b": two} for to in (1e3, 1e6)], Prepare(scale="standard")
    near, far = map(prepare.fit_transform, tables)
    assert (near.dtype, far.dtype) == (np.float32, np.float64)
    np.testing.assert_allclose(near, far, atol=1e-3)
    assert prepare.fit_transform({"a": one[1:], "b": two[1:]}).dtype == np.float64


def test_k_is_chosen_and_models_score_in_parts_in_their_way(run, folder, table):
    ended = run(f"fit folder --columns a,b,c -k 2-6 --effort fast -q {LIMIT}")
    assert "4 groups; clear" in ended.out
    points = table.select(["a", "b", "c"]).to_pandas()
    model = RobustPowerKMeans(4, trim=0.2, random_state=0).fit(points)
    save(model, "m.pm")
    ended = run("predict m.pm rows.parquet -o l.npy --json")
    assert ended.json["score"] == pytest.approx(model.score(points), rel=1e-12)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_terminal_shows_the_phase_its_share_the_time_and_the_sweeps(monkeypatch):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    with listening() as shown:
        shown.phase("improving, start 2 of 5", 1, 5)
        shown(SweepState(0, 1, -1.0, 5.0, 4.25, 0.5, 0.1, np.zeros((1, 1))))
        shown.phase("crossing solutions")
        shown.callbacks[0]._shown.refresh()
    text = re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", terminal.getvalue())
    assert re.search(r"crossing solutions .*0:00:00 1 sweep, inertia 4\.25", text)
    assert terminal.getvalue().endswith("\x1b[2K")  # it leaves nothing behind
