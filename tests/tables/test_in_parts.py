import io
import re
from pathlib import Path

import numpy as np
import pytest
from pyarrow import feather, parquet
from tables.answers import clusters_in, column_of, rows_shown

from powermeans import RobustPowerKMeans
from powermeans.engine.history import SweepState
from powermeans.explaining.summaries import Tally
from powermeans.saving import load, save
from powermeans_tables.command import failures, parts
from powermeans_tables.command.outputs import write_labels
from powermeans_tables.command.screen import listening

pytestmark = pytest.mark.usefixtures("folder")

N_ROWS = 3000


def close(one, other):
    """Whether two trees of JSON are the same but for rounding."""
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(close, one, other))
    return one == (other if isinstance(one, str) else pytest.approx(other, rel=1e-5, abs=1e-9))


@pytest.mark.parametrize(
    ("scale", "weights"),
    [("none", ""), ("standard", " --weights w"), ("minmax", " --weights w")],
)
def test_fit_and_predict_in_parts_tell_what_they_tell_of_memory(scale, weights, run):
    answers = []
    for how in ("", " --memory-limit 100kB"):
        fit = f"fit rows.parquet --columns a,b,c{weights} -k 4 --json -q -m m.pm --scale {scale}"
        predict = f"predict m.pm rows.parquet --columns c,a,b{weights} -o l.npy --json"
        answers.append([run(fit + how).json, run(predict + how).json, np.load("l.npy")])
    (whole, scored, labels), (found, scored_in_parts, labels_in_parts) = answers
    assert found["n_rows"] == N_ROWS
    assert found["inertia"] == pytest.approx(whole["inertia"], rel=1e-6)
    by_center = [
        sorted(
            ({key: value for key, value in one.items() if key != "label"} for one in told),
            key=lambda one: one["center"]["a"],
        )
        for told in (found["clusters"], whole["clusters"])
    ]
    assert close(*by_center)
    assert scored_in_parts["score"] == pytest.approx(scored["score"], rel=1e-6)
    assert -scored["score"] == pytest.approx(whole["inertia"], rel=1e-9)
    pairs = {*zip(labels.tolist(), labels_in_parts.tolist(), strict=True)}
    assert len(pairs) == 4  # clusters may have other numbers


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


def test_names_and_dates_in_parts_are_those_in_memory(run):
    days = "".join(f"{i % 2 * 50 + i % 3},20{10 + i % 2}-03-0{i % 9 + 1}\n" for i in range(40))
    Path("days.csv").write_text(f"visits,day\n{days}")
    told = []
    for how in ("", "--memory-limit 1GB"):
        fit = f"fit days.csv -k 2 -q --dates days -o l.csv --add name -m m.pm {how}"
        shown = [rows_shown(run(fit).out), rows_shown(run(f"predict m.pm days.csv {how}").err)]
        words = [[row["what sets it apart"] for row in rows] for rows in shown]
        told.append([*map(sorted, words), column_of(Path("l.csv").read_text(), "name")])
    assert told[0] == told[1]
    assert any("day 2011-03-0" in text for text in told[0][0])


@pytest.mark.parametrize("suffix", ["csv", "npy", "parquet", "feather"])
def test_labels_are_written_part_by_part_and_predicted_again(suffix, run, table):
    fit = run(f"fit folder -k 4 --columns a,b,c --scale none -o one.{suffix} -m m.pm")
    assert "folder, read part by part, fitted in" in fit.out
    files = [f"folder/part-{number}.parquet" for number in range(3)]
    run(f"predict m.pm -o other.{suffix}", *files)
    labels = load("m.pm").predict(table.select(["a", "b", "c"]))
    printed = run("predict m.pm rows.parquet --memory-limit 100kB")
    assert "3,000 rows of rows.parquet by m.pm" in printed.err
    for found in (clusters_in(f"one.{suffix}"), clusters_in(f"other.{suffix}"),
                  column_of(printed.out)):  # fmt: skip
        assert found == list(map(str, labels))


@pytest.mark.filterwarnings("default")  # which the command tells as notes
def test_columns_of_words_that_are_lost_in_parts_are_named_in_a_doubt(run):
    rows = "".join(f"{n}{n} g,{n * n}\n" for n in range(11, 99))
    Path("words.csv").write_text(f"weight,x\n{rows}")
    fit = run("fit words.csv -k 2 --memory-limit 1GB -q -o l.csv")
    assert 'check this: read part by part: columns of words do not count, here "weight"' in fit.out
    run("fit words.csv -k 2 -q -o l.csv -m m.pm")
    for command in ("predict m.pm words.csv", "fit words.csv -k 2 --columns weight",
                    "fit words.csv -k 2 --weights x"):  # fmt: skip
        refused = run(f"{command} --memory-limit 1GB", code=failures.USAGE)
        assert 'as in "weight": pass one file that fits into memory' in refused.err


@pytest.mark.parametrize(
    ("command", "fault"),
    [
        ("good.csv bad.csv --columns x", 'column "x" has inf in row 2 of the data: correct it'),
        ("bad.csv --columns y --missing error", '"y" has no value in row 3 .*observed'),
        ("bad.csv --columns z --weights w", '"w" has -1 in row 2 of the data: weights are finite'),
    ],
)
@pytest.mark.filterwarnings("error")
def test_an_entry_that_no_fit_in_parts_can_use_is_named_by_its_column_and_row(command, fault, run):
    Path("good.csv").write_text("x,y,z,w\n7,5,2,1\n3,1,4,0\n1,2,9,1\n")
    Path("bad.csv").write_text("x,y,z,w\n1,2,3,4\ninf,6,7,-1\n8,,9,2\n")
    refused = run(f"fit {command} -k 2 --memory-limit 1GB", code=failures.DATA)
    assert re.match(rf"powermeans: bad\.csv: .*{fault}", refused.err)


def test_another_currency_than_that_of_the_model_is_doubted_in_parts(run):
    for sign in ("$", "€", "USD"):
        rows = "".join(f"{sign}{n}.10,{n * n}\n" for n in range(11, 99))
        Path(f"{sign}.csv").write_text(f"revenue,x\n{rows}")
    run("fit $.csv -k 2 -q -o l.csv -m whole.pm")
    run("fit $.csv -k 2 -q -o l.csv -m parts.pm --memory-limit 1GB")
    for model, limit in (("whole", " --memory-limit 1GB"), ("parts", "")):
        doubt = 'check this: "revenue" is in €, and is in $ in the model'
        assert doubt in run(f"predict {model}.pm €.csv -o l.csv{limit}").out
        for same in ("$", "USD"):
            assert "check this" not in run(f"predict {model}.pm {same}.csv -o l.csv{limit}").out


def test_clusters_alone_are_written_without_output(run):
    for add in ("", " --add distance"):  # the second one replaces the first
        fit = run(f"fit rows.parquet -k 4 --memory-limit 100kB -q{add}")
        assert "\nwritten: rows-clusters.parquet; no report, which needs all rows" in fit.out
        names = ["cluster", *add.split()[1:]]
        assert parquet.read_table("rows-clusters.parquet").column_names == names
    assert not Path("rows-report.html").exists()


@pytest.mark.filterwarnings("default")  # which the command tells as notes
def test_a_fit_goes_on_from_its_checkpoint_and_no_other_does(run):
    command = "fit rows.parquet -k 4 --columns a,b,c --scale none --checkpoint state -q"
    first, again = run(command), run(command)
    assert first.err == ""
    assert again.err.startswith("powermeans: note: the fit resumes from state")
    assert len({re.sub(r"fitted in .*", "", ended.out) for ended in (first, again)}) == 1
    other = run(command, "--seed", 3, code=failures.USAGE)
    assert "--checkpoint 'state'" in other.err


@pytest.mark.filterwarnings("default")  # which the command tells as notes
def test_a_file_larger_than_memory_is_read_part_by_part_and_that_is_said(run, monkeypatch):
    command, enough = "fit rows.parquet -k 4 --columns a,b,c -q", 4 * N_ROWS * 3 * 8
    for free, is_in_parts in ((enough, False), (enough - 1, True), (None, False)):
        monkeypatch.setattr(parts, "free_memory", lambda free=free: free)
        ended = run(command)
        assert ("note: rows.parquet is read part by part, since it is" in ended.err) == is_in_parts
        assert ("rows.parquet, read part by part, fitted in" in ended.out) == is_in_parts


def test_k_is_chosen_and_models_score_in_parts_in_their_way(run, table):
    ended = run("fit folder --columns a,b,c -k 2-6 --effort fast -q")
    assert "4 groups; clear" in ended.out
    Path("more").mkdir()
    Path("more/one.csv").write_text("a,b\n" + "1,2\n9,8\n" * 500 + "1,\n")
    run("fit more -k 2 -o labels.npy -q --missing observed")
    assert np.load("labels.npy").shape == (1001,)
    points = table.select(["a", "b", "c"]).to_pandas().to_numpy()
    model = RobustPowerKMeans(4, trim=0.2, random_state=0).fit(points)
    save(model, "m.pm")
    ended = run("predict m.pm rows.parquet --columns a,b,c -o l.npy --json")
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
        shown._callbacks[0]._shown.refresh()
    text = re.sub(r"\x1b\[[^A-Za-z]*[A-Za-z]", "", terminal.getvalue())
    assert re.search(r"crossing solutions .*0:00:00 1 sweep, inertia 4\.25", text)
    assert terminal.getvalue().endswith("\x1b[2K")  # it leaves nothing behind


@pytest.mark.parametrize("cuts", [[4, 4, 5], [130_000]])
def test_labels_are_written_one_a_line(cuts, tmp_path, capfdbinary):
    labels = np.random.default_rng(0).integers(-1, 1200, size=200_001).astype(np.int32)
    # In a piece of its own, 21 is the first label without a line in the table.
    labels[:9] = [0, -1, 9, 10, 21, 12_345, 3, 100_000, 7]
    pieces = [{"cluster": piece} for piece in np.split(labels, cuts)]
    words = ["cluster", *("" if label < 0 else str(label) for label in labels), ""]
    write_labels(str(tmp_path / "labels.csv"), pieces)
    assert (tmp_path / "labels.csv").read_text().split("\n") == words
    write_labels("-", pieces)
    assert capfdbinary.readouterr().out.decode().split("\n") == words


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".feather", ".npy"])
def test_another_column_is_written_beside_the_cluster(suffix, tmp_path):
    clusters, distances = np.array([1, -1, 0], np.int32), np.array([0.5, np.nan, 2.0])
    piece = {"cluster": clusters, "distance": distances}
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
