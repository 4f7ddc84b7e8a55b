import csv
import gzip
import os
import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import feather
from tables.answers import COLUMNS, CUSTOMERS, clusters_in, column_of, rows_shown

import powermeans
from powermeans import read_frame
from powermeans.explaining.summaries import Tally
from powermeans.methods.progress import FitProgress
from powermeans_tables.command.clusters import show_clusters
from powermeans_tables.command.screen import Screen
from powermeans_tables.report.profile import Profile

pytestmark = pytest.mark.filterwarnings("ignore::powermeans.errors.UnlikeScalesWarning")


def lines(path):
    return Path(path).read_text().splitlines()


def split(line):
    return line.split(",")


def write(path, header, rows):
    Path(path).write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")


def two_groups(n_rows=60):
    """Make up rows around (0, 0) and (50, 80), one after the other."""
    rng = np.random.default_rng(0)
    places = rng.normal(size=(n_rows, 2)) + np.arange(n_rows)[:, None] % 2 * [50, 80]
    return [[f"{value:.3f}" for value in row] for row in places]


def test_json_says_what_python_finds(run):
    found = run("fit customers.csv -k 5 --scale none --json -q -o labels.csv -m model.pm").json
    ours, model = powermeans.PowerKMeans(5, random_state=0), powermeans.load("model.pm")
    ours.fit(CUSTOMERS)
    assert clusters_in("labels.csv") == list(map(str, ours.labels_))
    np.testing.assert_array_equal(model.cluster_centers_, ours.cluster_centers_)
    assert list(model.feature_names_in_) == found["columns"] == COLUMNS
    assert found["inertia"] == pytest.approx(ours.inertia_)
    assert (found["n_rows"], found["was_interrupted"]) == (600, False)
    told = found["clusters"]
    assert [one["size"] for one in told] == np.bincount(ours.labels_).tolist()
    assert [one["share"] * 600 for one in told] == pytest.approx([one["size"] for one in told])
    centers = [list(one["center"].values()) for one in told]
    np.testing.assert_allclose(centers, [CUSTOMERS[ours.labels_ == k].mean(0) for k in range(5)])
    assert "optimality" not in found


def test_options_reach_the_fit(run):
    def found(*options):
        return run("fit customers.csv -k 4 --json -q", *options).json

    plain = found("--seed", 3)
    other = found("--divergence", "manhattan", "--effort", "fast")
    assert other["settings"]["effort"] == "fast"
    assert other["inertia"] != plain["inertia"]
    assert found("--effort", "none")["n_sweeps"] != plain["n_sweeps"]


@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
def test_centers_and_spreads_have_the_same_units_and_those_are_named(scale, run):
    points = np.array([[0, 1], [100, 1], [0, 9], [100, 9], [50, -5]])
    write("points.csv", "a,b", points)
    found = run(f"fit points.csv -k 1 --scale {scale} --json -q").json
    (cluster,) = found["clusters"]
    assert list(cluster["center"].values()) == pytest.approx(points.mean(axis=0))
    assert cluster["spread"] == pytest.approx(np.sqrt(points.var(axis=0).sum()))
    in_what = "data" if scale == "none" else "scaled"
    assert found["units"] == {"center": "data", "spread": "data", "inertia": in_what}


@pytest.mark.parametrize(
    ("content", "options", "spread"),
    [
        # The mean is 2.5, from which three are 2.5 away and one 7.5.
        ("a,w\n0,3\n10,1\n", "--weights w", np.sqrt((3 * 2.5**2 + 7.5**2) / 4)),
        # A missing value counts as that of the center: a is 0, 10 and 5, and b is 1, 2 and 3.
        ("a,b\n0,1\n10,\n,3\n", "--missing observed", np.sqrt(52 / 3)),
    ],
)
def test_spreads_count_weights_and_pass_over_what_is_missing(content, options, spread, run):
    Path("points.csv").write_text(content)
    found = run(f"fit points.csv -k 1 {options} --json -q --scale minmax").json
    assert found["clusters"][0]["spread"] == pytest.approx(spread)


def test_weights_count_as_copies_and_shares_are_of_the_weight(run):
    Path("weighted.csv").write_text("x,n\n0,3\n1,1\n10,1\n11,0\n")
    Path("copied.csv").write_text("x\n0\n0\n0\n1\n10\n")
    command = "fit weighted.csv -k 2 --weights n -m m.pm -q"
    found = run(command, "--json").json
    assert found["inertia"] == pytest.approx(run("fit copied.csv -k 2 --json -q").json["inertia"])
    by_size = sorted((c["weight"], c["size"], c["share"]) for c in found["clusters"])
    assert by_size == [(1.0, 2, 0.2), (4.0, 2, 0.8)]
    predicted = run("predict m.pm weighted.csv --weights n").err
    # The heavy cluster has 0 three times and 1 once: its mean is 1/4, its spread sqrt(3) / 4.
    heavy = {"size": "2", "weight": "4", "share": "80.0 %"}
    for shown, told in ((run(command).out, heavy | {"spread": "0.4330"}), (predicted, heavy)):
        assert sum(told.items() <= row.items() for row in rows_shown(shown)) == 1


def test_clusters_keep_within_limits_of_size(run):
    fit = "fit customers.csv -k 4 --scale standard --effort fast -q"
    assert max(one["size"] for one in run(fit, "--json").json["clusters"]) > 160
    run(fit, "--size-max", 160, "-o", "l.txt")
    assert max(Counter(clusters_in("l.txt")).values()) == 160
    even = run(fit, "--size-min", 0.25, "--json").json["clusters"]
    assert min(one["size"] for one in even) >= 150


def test_a_cluster_whose_points_weigh_nothing_is_said_to_be_so(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    points, labels = np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 1], dtype=np.int32)
    tally = Tally(points[1:])
    tally.add(points, labels, np.array([1.0, 2.0, 0.0]))
    profile = Profile.of(tally, ["x"])
    found = [(c.size, c.weight, c.share) for c in profile.clusters]
    assert found == [(2, 3.0, 1.0), (1, 0.0, 0.0)]
    show_clusters(Screen(), profile, has_weights=True)
    assert rows_shown(capsys.readouterr().out)[1]["what sets it apart"] == "weighs nothing"


def test_no_line_of_a_table_ends_between_a_number_and_its_unit(capsys, monkeypatch):
    for width in range(10, 30):
        monkeypatch.setenv("COLUMNS", str(width))
        Screen().show(["words"], [["yes 97 %, weighs 12\u00a0kg, " * 9]], left=[0])
        shown = capsys.readouterr().out
        assert not re.search(r"\d$", shown, re.MULTILINE)
        assert (shown.count("97 %"), shown.count("12 kg")) == (9, 9)


def test_a_fit_proves_how_far_from_the_optimum_it_is(run, monkeypatch):
    fit, heard = "fit customers.csv -k 5 --scale standard --prove 1", []
    said = run(fit, "-q", "--report", "report.html")
    line = next(line for line in said.out.splitlines() if line.startswith("proved to be"))
    assert f"<strong>{line}</strong>" in Path("report.html").read_text()
    told = run(fit, "-q", "--json").json
    assert 0 < told["optimality"]["bound"] <= told["inertia"]
    monkeypatch.setattr(FitProgress, "phase", lambda shown, name, *_: heard.append(name))
    run(fit, "-m", "m.pm")
    assert "searching for a proof" in heard
    assert heard[-1].startswith("proved to be")


def test_columns_are_scaled_where_one_would_decide_everything_and_that_is_told(run):
    for divergence in ("manhattan", "cosine", "poisson"):
        scale = run(f"fit customers.csv -k 2 -q --json --divergence {divergence}").json["scale"]
        assert scale == ("standard" if divergence == "manhattan" else "none")
    said = run("fit customers.csv -k 2 -q --scale none").out
    assert re.search(r'^check this: "basket" decides \d\d % of all', said, re.MULTILINE)
    scaled, plain, asked, in_parts = (
        run("fit customers.csv -k 2 -q --json", *options.split()).json
        for options in ("", "--scale none", "--scale standard", "--memory-limit 1GB")
    )
    assert [one["scale"] for one in (scaled, plain, in_parts)] == ["standard", "none", "standard"]
    assert scaled["inertia"] == asked["inertia"] != plain["inertia"]
    # A column of one value is left out.
    write("constant.csv", "always,b,c", [[0.1, i % 7, 1000 * (i % 5)] for i in range(70)])
    assert run("fit constant.csv -k 2 -q --json").json["columns"] == ["b", "c"]


@pytest.mark.parametrize("step", [0, 9])
def test_clusters_that_are_the_words_of_a_column_are_doubted(step, run):
    heights, words = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    rows = [
        f"{'mf'[n]},{x + step * n},{y + step * n}" for n, (x, y) in zip(words, heights, strict=True)
    ]
    Path("in.csv").write_text("\n".join(["sex,width,height", *rows]))
    said = 'check this: the clusters are the words of "sex" (--as sex=ignore shows what others say)'
    assert (said in run("fit in.csv -k 2 -q -o out.csv").out) == (step == 0)


@pytest.mark.parametrize("step", [0, 40])
def test_words_look_like_no_clusters_from_the_shell_and_in_python(step, run):
    rng = np.random.default_rng(1)
    groups, others = rng.integers(0, 3, (2, 300))
    places = groups if step else others
    ages = rng.normal(40 + step * groups, 6).round(1)
    write("in.csv", "age,place", [[age, "NSE"[j]] for age, j in zip(ages, places, strict=True)])
    choice = run("fit in.csv -k 2-20 -q --json").json["choice"]
    chosen = powermeans.choose_k("in.csv", random_state=0)
    assert [choice[name] for name in ("recommended", "certainty", "why")] == [
        *(chosen.recommended, chosen.certainty, chosen.why)
    ]
    assert powermeans.PowerKMeans("auto", random_state=0).fit("in.csv").n_clusters_ == (
        chosen.recommended
    )
    assert (chosen.recommended == 3 and chosen.is_clear) == bool(step)
    assert powermeans.choose_k("in.csv", [3], random_state=0).recommended == 3


def test_a_file_alone_is_clustered_by_the_values_that_are_there(run):
    rows = [[*row, ""] for row in two_groups()]
    rows[3][0] = rows[8][1] = "unknown"
    rows[20] = ["", "", ""]
    rows[30][2] = "7"
    write("holes.csv", "x,y,z", rows)
    ended = run("fit holes.csv -q")
    for told in ('missing values: 2 in "x", 2 in "y", of 60 rows;',
                 "left out: 1 row without any value\n",
                 "k was chosen from the 57 complete rows\n",
                 "2 groups; clear, because "):  # fmt: skip
        assert f"\n{told}" in ended.out
    assert re.search("^z +constant +has one value +left out$", ended.out, re.MULTILINE)
    assert ended.err == ""
    inertia = re.search(r"^inertia \S+", run("fit holes.csv -q -k 2 -m m.pm").out, re.MULTILINE)
    again = run("predict m.pm holes.csv -o labels.csv").out
    assert f", {inertia[0]}\n" in again
    assert '\nmissing values: 2 in "x", 2 in "y", of 60 rows;' in again
    write(
        "more.csv", "a,b,c,d,e", [["NA" if i == j else i % 7 for j in range(5)] for i in range(30)]
    )
    assert '1 in "d" and 1 more, of 30' in run("fit more.csv -q -k 2 -m m.pm").out
    assert '1 in "d", 1 in "e", of 30' in run("fit more.csv -q -k 2 -m m.pm --verbose").out
    clusters = clusters_in("holes-clusters.csv")
    assert clusters.pop(20) == ""
    clusters.insert(20, clusters[0])
    assert clusters == [clusters[0], clusters[1]] * 30


def test_declared_codes_and_skipped_rows_are_remembered_and_left_out(run):
    rows = two_groups()
    for place in (3, 8, 12):
        rows[place][0] = "-999"
    write("data.csv", "x,y", [["cm", "kg"], *rows, [300, 480]])
    said = 'check this: taken for codes of missing values: -999 in "x" (3 values)'
    assert said in run("fit data.csv -k 2 -q").out.splitlines()
    assert said not in run("fit data.csv -k 2 -q --keep-codes").out.splitlines()
    options = "--missing-values x=-999 --skip-rows 61 -o r.csv -m m.pm -q"
    ended = run("fit data.csv -k 2", *options.split())
    assert ended.err == ""
    assert "1 row left out (--skip-rows)" in ended.out.splitlines()
    *clusters, total = clusters_in("r.csv")
    assert total == ""
    assert clusters == [clusters[0], clusters[1]] * 30
    assert [*map(str, run("predict m.pm data.csv --json").json["labels"][:60])] == clusters


def test_rows_without_a_value_or_weight_are_left_out_and_have_no_label(run):
    Path("weighted.csv").write_text("x,w\n1,1\n2,\n,3\n9,2\n1,1\n")
    ended = run("fit weighted.csv -k 2 --weights w --missing drop -o labels.csv -q")
    assert "left out: 2 rows with missing values" in ended.out.splitlines()
    a, *left_out, b, c = clusters_in("labels.csv")
    assert (left_out, a, {a, b}) == (["", ""], c, {"0", "1"})
    rows = two_groups()
    rows[3][0] = ""
    write("holes.csv", "x,y", rows)
    ended = run("fit holes.csv -k 2 --divergence manhattan -m m.pm -o labels.csv -q")
    assert 'missing values: 1 in "x", of 60 rows; such rows are left out, ' in ended.out
    assert clusters_in("labels.csv").index("") == 3
    assert run("predict m.pm holes.csv --json").json["labels"][3] is None


BANK = "Tag;Text;Betrag;Saldo\n" + "".join(
    f"0{i % 9 + 1}.03.2024;Käse;{'-' * (i % 2)}{1 + i % 2}.{i:03},50;{i % 5},25\n"
    for i in range(40)
)


def test_a_file_alone_is_read_clustered_and_written_with_its_clusters(run):
    Path("bank.csv").write_bytes(BANK.encode("cp1252"))
    ended = run("fit bank.csv -q")
    assert re.search(r"^Tag +ignore +dates .*\n(?:.*\n)?Text +constant", ended.out, re.MULTILINE)
    assert "read: encoding cp1252" in ended.out
    chosen = int(re.match(r"✓ (\d+) clusters of 40 rows", ended.out)[1])
    opened = "open" if sys.platform == "darwin" else "xdg-open"
    assert "\nwritten: bank-clusters.csv, bank-report.html\n" in ended.out
    assert f"\nopen the report: {opened} bank-report.html\n" in ended.out
    rows = Path("bank-clusters.csv").read_bytes().decode("cp1252").splitlines()
    assert all(row.startswith(f"{old};") for row, old in zip(rows, BANK.splitlines(), strict=True))
    clusters = clusters_in("bank-clusters.csv", "cp1252", ";")
    assert set(clusters) == {str(number) for number in range(chosen)}
    assert "Clusters of bank.csv" in Path("bank-report.html").read_text(encoding="utf-8")
    run("fit bank.csv -q")  # replaces its own files


def test_standard_input_and_output_make_a_pipe(run):
    ended = run("fit - -k 2 -o - -q", stdin=b"0 0\n0 1\n9 9\n9 8\n")
    a, b, c, d = column_of(ended.out)
    assert (a, c) == (b, d) != (c, a)
    assert "2 clusters of 4 rows and 2 columns of standard input" in ended.err
    if sys.platform == "win32":  # where there are no pipes with names
        return
    os.mkfifo("pipe")
    for how in ("", "--memory-limit 1GB"):
        if not os.fork():
            Path("pipe").write_bytes(Path("customers.csv").read_bytes())
            os._exit(0)
        ended = run(f"fit pipe -k 2 -q {how}")
        os.wait()
        assert ended.err == ""
        assert "2 clusters of 600 rows" in ended.out


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are UTF-8")
def test_a_file_whose_name_is_no_utf_8_is_read_and_named(run):
    name = os.fsdecode(b"bad\xff.csv")
    os.rename("customers.csv", name)
    for how in ("--report r.html", "--memory-limit 1GB"):
        ended = run(f"fit -k 2 -q -m m.pm {how}", name)
        assert ended.err == ""
        assert "of bad\\udcff.csv, read " in ended.out
        run("predict m.pm -o l.npy", name)


def test_files_that_were_not_asked_for(run):
    """They are written beside a whole answer, and never over another's."""
    before = set(os.listdir())
    run("fit customers.csv -q --json")
    assert set(os.listdir()) == before
    run("fit customers.csv -q -o labels.csv")
    assert set(os.listdir()) == before | {"labels.csv"}
    for path in ("customers-clusters.csv", "customers-report.html"):
        Path(path).write_text("mine")
        assert path in run("fit customers.csv -q", code=2).err
        assert Path(path).read_text() == "mine"
        Path(path).unlink()
    table = read_frame("customers.csv").to_pandas().astype(float)
    table.to_parquet("shop.parquet")
    for content in (b"mine", Path("shop.parquet").read_bytes()):
        Path("shop-clusters.parquet").write_bytes(content)
        assert "shop-clusters.parquet exists" in run("fit shop.parquet -q -k 3", code=2).err
        Path("shop-clusters.parquet").unlink()
    for _ in range(2):  # the second one replaces the first
        run("fit shop.parquet -q -k 3")
    for path in ("shop.parquet", "shop-clusters.parquet", "shop-report.html"):
        Path(path).unlink()
    for year in (2024, 2025):
        path = Path(f"sales.{year}.csv.gz")
        path.write_bytes(gzip.compress(Path("customers.csv").read_bytes()))
        run(f"fit {path} -q -k 3")
        path.unlink()
        for kind in ("clusters.csv", "report.html"):
            Path(f"sales.{year}-{kind}").unlink()
    run("fit customers.csv -q -k 3")
    assert set(os.listdir()) - before == {
        "labels.csv", "customers-clusters.csv", "customers-report.html"
    }  # fmt: skip
    Path("alike.csv").write_text("x,y\n1,2\n3,2\n")
    assert "k = 1, since there are too few different rows" in run("fit alike.csv -q").out


def test_rows_are_written_as_they_are_with_an_empty_cluster_where_they_were_left_out(run):
    Path("f.csv").write_text('"=x",note,cluster\n1,"a ""b""\nc",2\n\n,=1+1,3\n9,"+d, e",4\n')
    run("fit f.csv -k 2 --columns =x --missing drop -o out.csv --add cluster -q")
    with open("out.csv", newline="") as file:
        *columns, clusters = zip(*csv.reader(file), strict=True)
    assert columns == [
        ("=x", "1", "", "9"),
        ("note", 'a "b"\nc', "=1+1", "+d, e"),
        ("cluster", "2", "3", "4"),
    ]
    assert clusters[0] == "cluster.2"
    assert [cluster == "" for cluster in clusters[1:]] == [False, True, False]
    np.save("f.npy", np.array([[1.0, 1000.5], [9.0, -2000.0]]))
    run("fit f.npy -k 2 -o out.csv -q")
    *columns, _, distances, seconds, sure = zip(*map(split, lines("out.csv")), strict=True)
    assert columns == [("c1", "1", "9"), ("c2", "1000.5", "-2000")]
    assert distances == ("distance", "0", "0")
    assert set(seconds) == {"second_cluster", "0", "1"}
    assert sure == ("sure", "1", "1")


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "xlsx", "parquet"])
def test_a_date_that_python_does_not_know_is_carried_along(suffix, run):
    day = pa.array([6_585_322, *range(59)], pa.date32())
    x, y = np.array(two_groups(), float).T
    feather.write_feather(pa.table({"x": x, "y": y, "day": day}), "f.arrow")
    run(f"fit f.arrow -k 2 -q --as day=ignore -o out.{suffix} --report r.html")
    days = read_frame(f"out.{suffix}")["day"].cast(pa.string())
    assert days.to_pylist()[:3] == ["20000-01-01", "1970-01-01", "1970-01-02"]


@pytest.mark.parametrize("how", ["", "--memory-limit 1GB"])
def test_the_columns_of_a_former_fit_do_not_count(how, run):
    write("f.csv", "x,y", two_groups())
    run("fit f.csv -k 2 -q")
    run("fit f-clusters.csv -k 2 -q -o twice.csv --add cluster,sure")
    run("fit twice.csv -k 2 -q -o thrice.csv --add cluster")
    assert lines("thrice.csv")[0].endswith(",sure,cluster.2,sure.2,cluster.3")
    assert run(f"fit twice.csv -k 2 -q --json {how}").json["columns"] == ["x", "y"]
    assert '"cluster", "distance"' in run(f"fit twice.csv -k 2 -q {how}").out
    assert "cluster" in run("fit twice.csv -k 2 -q --json --columns x,cluster").json["columns"]


def test_progress_is_shown_as_much_as_is_asked_for_and_clusters_that_weigh_nothing(run):
    plain, verbose, quiet = (
        run("fit customers.csv -k 5", *how) for how in ([], ["--verbose"], ["-q"])
    )
    assert "\x1b" not in plain.out + plain.err
    *more, end = plain.err.splitlines()
    assert len(more) <= 2
    assert re.fullmatch(r"ended, \d+ sweeps, inertia .*, \d+\.\d s", end)
    assert re.fullmatch(r"ended, \d+ sweeps, power -inf, .*, 5 centers, .* s\n", verbose.err)
    assert quiet.err == ""
    assert ("standardized" in plain.out, "standardized" in verbose.out) == (False, True)
    chosen = run("fit customers.csv -k 2-6 -m m.pm")  # no inertia of other numbers of clusters
    assert chosen.err.count("ended, ") == 1
    assert "\nwritten: m.pm (--output writes the rows with their cluster)\n" in chosen.out
    (only,) = rows_shown(run("fit customers.csv -k 1 -q").out)
    assert only["what sets it apart"].startswith("visits_per_month 9.9; basket 48;")
    Path("f.csv").write_text("a\x1b]0;PWNED\x07,b\u202er\n1,2\n3,4\n50,60\n")
    ended = run("fit f.csv -k 2 -q")
    assert "a\\x1b]0;PWNED\\x07" in ended.out
    assert "b\\u202er" in ended.out
    asked = run("fit f.csv -k 2 --columns", "\x1b[2Kz", code=3)
    assert '"\\x1b[2Kz"' in asked.err
    machine = run("fit f.csv -k 2 -q --json")
    assert machine.json["columns"] == ["a\x1b]0;PWNED\x07", "b\u202er"]
    for said in (ended.out, asked.err, machine.out):
        assert not set(said) & {"\x1b", "\x07", "\u202e"}
