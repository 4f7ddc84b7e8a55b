"""The command line: what it prints, what it writes, and how it ends."""

from __future__ import annotations

import contextlib
import csv
import html
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
import weakref
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.feather
import pyarrow.parquet
import pytest
from PIL import Image
from sklearn.pipeline import Pipeline
from threadpoolctl import threadpool_limits

import powermeans
from powermeans.app.command import failures, main
from powermeans.app.command.clusters import Tally, show_clusters
from powermeans.app.command.demonstration import COLUMNS, as_csv, customers
from powermeans.app.command.screen import Screen
from powermeans.engine.callbacks import FitProgress
from powermeans.engine.history import SweepState
from powermeans.metrics import adjusted_rand_index

pytestmark = pytest.mark.filterwarnings("ignore::powermeans.UnlikeScalesWarning")

EXAMPLE = as_csv(customers())
SHELL = [sys.executable, "-m", "powermeans"]


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Run = Callable[..., Ended]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any) -> Run:
    """A command in this process, in a folder with the example of the demo."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    Path("customers.csv").write_text(EXAMPLE)

    def run(*arguments: object, stdin: bytes = b"") -> Ended:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(stdin)))
        with pytest.raises(SystemExit) as ended:
            main([str(argument) for argument in arguments])
        captured = capfdbinary.readouterr()
        return Ended(int(ended.value.code or 0), captured.out.decode(), captured.err.decode())

    return run


def without_times(text: str) -> str:
    return re.sub(r"\d[\d.]* m?s\b", "T", text)


def lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines()


# Transcripts.


def test_fit_prints_a_table_of_the_clusters(run) -> None:
    ended = run("fit", "customers.csv", "-k", 5, "--scale", "standard", "--quiet")
    assert ended.code == 0
    assert ended.err == ""
    first, empty, header, *clusters, blank, last = without_times(ended.out).splitlines()
    assert first == "5 clusters of 600 rows and 5 columns of customers.csv, read in T, fitted in T"
    assert empty == blank == ""
    assert header == "cluster  size  share  spread  what sets it apart"
    assert [line.split()[0] for line in clusters] == list("01234")
    assert sorted(int(line.split()[1]) for line in clusters) == [60, 89, 120, 151, 180]
    assert sum("discount +1.9 sd" in line for line in clusters) == 1
    assert re.fullmatch(r"inertia 309\.47 after \d+ sweeps", last)


def test_demo_writes_an_example_and_clusters_it(run) -> None:
    ended = run("demo", "--data", "shop.csv")
    assert ended.code == 0
    assert "$ powermeans fit shop.csv -k 5 --scale standard --output shop-clusters.csv" in ended.out
    assert "written: shop-clusters.csv, shop.pm" in ended.out
    assert len(lines("shop.csv")) == len(lines("shop-clusters.csv")) == 601
    assert isinstance(powermeans.load("shop.pm"), Pipeline)


def test_demo_can_be_run_again_and_writes_the_same(run) -> None:
    assert run("demo", "--data", "shop.csv").code == 0
    labels = lines("shop-clusters.csv")
    assert run("demo", "--data", "shop.csv").code == 0
    assert lines("shop-clusters.csv") == labels
    assert lines("shop.csv") == lines("customers.csv")


def test_binomial_data_are_clustered_by_the_number_of_their_trials(run) -> None:
    points = np.array([[0, 1], [1, 1], [9, 10], [10, 10], [4, 5]])
    np.save("successes.npy", points)
    options = ("--divergence", "binomial", "--trials", 10)
    arguments = ("fit", "successes.npy", "-k", 2, *options, "-m", "m.pm", "--json", "-q")
    found = run(*arguments).json
    ours = powermeans.PowerKMeans(
        2, divergence=powermeans.divergences.Binomial(10), random_state=0
    ).fit(points)
    assert found["inertia"] == pytest.approx(ours.inertia_)
    assert (found["settings"]["divergence"], found["settings"]["trials"]) == ("binomial", 10)
    assert run("predict", "m.pm", "successes.npy", "--json").json["labels"] == ours.labels_.tolist()


def test_choose_k_prints_what_the_criteria_say(run) -> None:
    ended = run("choose-k", "customers.csv", "--to", 8, "--scale", "standard", "--quiet")
    assert ended.code == 0
    first, _, header, *rows, _, last = without_times(ended.out).splitlines()
    assert first == "7 values of k for customers.csv in T"
    assert header.split() == ["k", "inertia", "fall", "said", "by"]
    assert "silhouette" in next(row for row in rows if row.startswith("5 "))
    assert re.fullmatch(r"5 groups; clear by \w+; \d+% of the criteria say the same", last)


def test_choose_k_says_that_no_k_is_clear_and_why(run) -> None:
    np.save("cloud.npy", np.random.default_rng(0).uniform(size=(400, 4)))
    *_, verdict, doubt = run("choose-k", "cloud.npy", "--to", 6, "--quiet").out.splitlines()
    assert re.fullmatch(r"no clear number of groups; \d is the best guess", verdict)
    assert doubt.startswith("at no k above one are all clusters apart")
    found = run("choose-k", "cloud.npy", "--to", 6, "--quiet", "--json").json
    assert (found["is_clear"], found["doubt"]) == (False, doubt)


def test_choose_k_ends_when_its_seconds_are_over(run) -> None:
    np.save("cloud.npy", np.random.default_rng(0).uniform(size=(400, 4)))
    found = run("choose-k", "cloud.npy", "--max-seconds", 1e-9, "--quiet", "--json").json
    assert (found["was_stopped"], found["was_interrupted"]) == (True, False)
    assert found["doubt"].startswith("the search ended early: it tried none of 19 values of k")
    whole = run("choose-k", "cloud.npy", "--to", 3, "--max-seconds", 1000, "-q", "--json").json
    assert not whole["was_stopped"]
    refused = run("choose-k", "cloud.npy", "--max-seconds", 0)
    assert (refused.code, refused.err.count("--max-seconds must be above 0, not 0")) == (2, 1)


def test_a_fit_that_chooses_k_shares_its_seconds_with_the_choice(run) -> None:
    np.save("cloud.npy", np.random.default_rng(0).uniform(size=(400, 4)))
    ended = run("fit", "cloud.npy", "--max-seconds", 1e-6, "--output", "labels.npy", "--quiet")
    assert ended.code == 0
    assert "tried none of" in ended.out


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Where processors are scarce, OpenMP waits for itself."""
    with threadpool_limits(1):
        yield


def test_compare_puts_everybody_beside_the_best(run, one_thread) -> None:
    ended = run("compare", "customers.csv", "-k", 5, "--scale", "standard", "--json")
    methods = {entry["method"]: entry for entry in ended.json["methods"]}
    assert {"powermeans balanced", "powermeans Lloyd", "scikit-learn KMeans"} <= set(methods)
    assert min(entry["excess"] for entry in methods.values()) == 0
    assert methods["powermeans thorough"]["excess"] < 1e-9
    assert all(entry["agreement"] <= 1 for entry in methods.values())
    people = run("compare", "customers.csv", "-k", 5, "--scale", "standard").out
    assert re.search(r"^scikit-learn KMeans +\d", people, re.MULTILINE)


def test_info_tells_versions_and_instruction_set(run) -> None:
    found = run("info", "--json").json
    assert found["powermeans"] == powermeans.__version__
    assert "instruction set" in found
    assert run("info").out.startswith("powermeans ")


def test_datasets_are_listed_fetched_and_converted(run, tmp_path) -> None:
    listed = run("datasets", "--folder", tmp_path, "--json").json
    iris = next(one for one in listed["sets"] if one["name"] == "iris")
    assert (iris["rows"], iris["columns"], iris["there"], iris["fetched"]) == (150, 4, False, True)
    ended = run("datasets", "iris", "--folder", tmp_path)
    assert "licence: public domain" in ended.out
    assert f"it is in {tmp_path / 'iris.npz'}" in ended.out
    assert "there" in run("datasets", "--folder", tmp_path).out
    again = run("datasets", "iris", "--folder", tmp_path / "b", "--file", tmp_path / "iris.npz")
    assert again.code == 0
    wrong = run("datasets", "wine", "--folder", tmp_path, "--file", tmp_path / "iris.npz")
    assert wrong.code == 3
    assert "iris.npz has X of shape (150, 4)" in wrong.err
    assert run("datasets", "wine", "--file", tmp_path / "gone", "--folder", tmp_path).code == 3
    assert run("datasets", "iris", "wine", "--file", "x").code == 2


def test_help_tells_all_commands_and_every_command_has_some(run) -> None:
    ended = run("--help")
    commands = ["fit", "predict", "choose-k", "compare", "report", "palette", "demo", "info"]
    commands.append("datasets")
    assert ended.code == 0
    assert all(re.search(rf"^  {command}  ", ended.out, re.MULTILINE) for command in commands)
    for command in commands:
        assert "--json" in run(command, "--help").out


def test_without_arguments_there_is_help(run) -> None:
    ended = run()
    assert ended.out.startswith("Usage: powermeans")
    assert "\n  choose-k  " in ended.out
    assert (ended.err, ended.code) == ("", OF_USE)


# What is written.


def test_labels_and_model_agree_with_python(run) -> None:
    outputs = ("-o", "labels.csv", "-m", "model.pm")
    run("fit", "customers.csv", "-k", 5, "--scale", "none", *outputs, "--quiet")
    points = customers()
    header, *labels = lines("labels.csv")
    model = powermeans.load("model.pm")
    assert header == "cluster"
    ours = powermeans.PowerKMeans(5, random_state=0).fit(points)
    np.testing.assert_array_equal(np.array(labels, dtype=int), ours.labels_)
    np.testing.assert_array_equal(model.cluster_centers_, ours.cluster_centers_)
    assert list(model.feature_names_in_) == list(COLUMNS)


@pytest.mark.parametrize("scale", ["standard", "minmax"])
def test_a_scaled_model_predicts_unscaled_rows(scale, run) -> None:
    run("fit", "customers.csv", "-k", 5, "--scale", scale, "-o", "a.npy", "-m", "model.pm")
    run("predict", "model.pm", "customers.csv", "-o", "b.npy")
    np.testing.assert_array_equal(np.load("a.npy"), np.load("b.npy"))
    assert len(set(np.load("a.npy"))) == 5


def test_centers_are_told_in_the_units_of_the_data(run) -> None:
    found = run("fit", "customers.csv", "-k", 1, "--scale", "standard", "--json", "-q").json
    means = dict(zip(COLUMNS, customers().mean(axis=0), strict=True))
    assert found["clusters"][0]["center"] == pytest.approx(means)


@pytest.mark.parametrize("scale", ["none", "standard", "minmax"])
def test_centers_and_spreads_have_the_same_units_and_those_are_named(scale, run) -> None:
    Path("points.csv").write_text("a,b\n0,1\n100,1\n0,9\n100,9\n50,-5\n")
    found = run("fit", "points.csv", "-k", 1, "--scale", scale, "--json", "-q").json
    (cluster,) = found["clusters"]
    points = np.array([[0, 1], [100, 1], [0, 9], [100, 9], [50, -5]])
    assert list(cluster["center"].values()) == pytest.approx(points.mean(axis=0))
    assert cluster["spread"] == pytest.approx(np.sqrt(points.var(axis=0).sum()))
    in_what = "data" if scale == "none" else "scaled"
    assert found["units"] == {"center": "data", "spread": "data", "inertia": in_what}
    inertia_by_spread = 5 * cluster.get("scaled", cluster)["spread"] ** 2
    assert found["inertia"] == pytest.approx(inertia_by_spread)
    if scale == "minmax":
        middle = (points.mean(axis=0) - points.min(axis=0)) / np.ptp(points, axis=0)
        assert list(cluster["scaled"]["center"].values()) == pytest.approx(middle)


def test_spreads_in_the_units_of_the_data_count_weights_and_pass_over_what_is_missing(run) -> None:
    Path("points.csv").write_text("a,w\n0,3\n10,1\n")
    options = ("-k", 1, "--weights", "w", "--json", "-q")
    found = run("fit", "points.csv", *options, "--scale", "minmax").json
    # The mean is 2.5, from which three are 2.5 away and one 7.5.
    assert found["clusters"][0]["spread"] == pytest.approx(np.sqrt((3 * 2.5**2 + 7.5**2) / 4))
    Path("holes.csv").write_text("a,b\n0,1\n10,\n,1\n")
    options = ("-k", 1, "--missing", "observed", "--json", "-q")
    found = run("fit", "holes.csv", *options, "--scale", "minmax").json
    # A missing value counts as that of the center: a is 0, 10 and 5.
    assert found["clusters"][0]["spread"] == pytest.approx(np.sqrt(50 / 3))


@pytest.mark.parametrize("suffix", ["csv", "tsv", "txt", "npy", "parquet", "feather"])
def test_labels_are_written_as_the_name_says(suffix, run) -> None:
    assert run("fit", "customers.csv", "-k", 3, "-o", f"labels.{suffix}", "-q").code == 0
    if suffix == "npy":
        labels = np.load("labels.npy").tolist()
    elif suffix == "parquet":
        labels = pyarrow.parquet.read_table("labels.parquet")["cluster"].to_pylist()
    elif suffix == "feather":
        labels = pyarrow.feather.read_table("labels.feather")["cluster"].to_pylist()
    else:
        labels = [int(line) for line in lines(f"labels.{suffix}")[1:]]
    assert sorted(set(labels)) == [0, 1, 2]
    assert len(labels) == 600


def test_rows_that_were_left_out_have_no_label(run) -> None:
    Path("holes.csv").write_text("x,y\n1,1\n,2\n9,9\n1,2\n")
    ended = run("fit", "holes.csv", "-k", 2, "--missing", "drop", "-o", "labels.csv", "-q")
    assert "1 row with missing values was left out" in ended.out.splitlines()
    _, *labels = lines("labels.csv")
    assert labels[1] == ""
    assert labels[0] == labels[3] != labels[2]


def test_missing_values_may_stay(run) -> None:
    Path("holes.csv").write_text("x,y\n1,1\n,2\n9,9\n1,2\n,9\n")
    found = run("fit", "holes.csv", "-k", 2, "--missing", "observed", "--json", "-q").json
    assert sorted(cluster["size"] for cluster in found["clusters"]) == [2, 3]


def two_groups(n_rows: int = 60) -> list[list[str]]:
    """Make up rows around (0, 0) and (50, 80)."""
    rng = np.random.default_rng(0)
    places = rng.normal(size=(n_rows, 2)) + np.arange(n_rows)[:, None] % 2 * [50, 80]
    return [[f"{value:.3f}" for value in row] for row in places]


@pytest.mark.filterwarnings("default")
def test_a_file_alone_is_clustered_by_the_values_that_are_there(run) -> None:
    rows = [[*row, ""] for row in two_groups()]
    rows[3][0] = rows[8][1] = "unknown"
    rows[20] = ["", "", ""]
    rows[30][2] = "7"
    Path("holes.csv").write_text("x,y,z\n" + "\n".join(map(",".join, rows)))
    ended = run("fit", "holes.csv", "-q")
    assert ended.code == 0
    said = ended.out.splitlines()
    assert said[1:5] == [
        'left out "z" (hardly any values; --columns has them all the same)',
        'missing values: 1 in "x", 1 in "y", of 59 rows; distances use the values that are there '
        "(--missing drop leaves those rows out)",
        "1 row without any value was left out",
        "k is chosen by the 57 rows that have all values",
    ]
    assert said[5].startswith("2 groups; clear by separation; ")
    assert ended.err == (
        'powermeans: note: holes.csv: taken for missing values: "unknown" in "x" (1 row), '
        '"unknown" in "y" (1 row)\n'
    )
    clusters = [line.rpartition(",")[2] for line in lines("holes-clusters.csv")[1:]]
    assert clusters[20] == ""
    assert clusters[0:20:2] + clusters[22::2] == [clusters[0]] * 29
    assert clusters[1::2] == [clusters[1]] * 30


@pytest.mark.parametrize("options", [(), ("--missing", "drop"), ("--skip-rows", "4,7")])
def test_the_code_of_a_report_reads_the_rows_that_were_fitted(options, run) -> None:
    rows = two_groups()
    rows[2][0] = rows[20][0] = rows[20][1] = ""
    Path("holes.csv").write_text("x,y\n" + "\n".join(map(",".join, rows)))
    run("fit", "holes.csv", "-k", 2, *options, "--report", "fit.html", "-m", "m.pm", "-q")
    run("report", "m.pm", "holes.csv", *options, "-o", "saved.html")
    run("fit", "holes.csv", "-k", 2, "--missing", "drop", "-m", "whole.pm", "-q")
    run("report", "whole.pm", "holes.csv", *options, "-o", "whole.html")
    for page, is_whole in (("fit.html", False), ("saved.html", False), ("whole.html", True)):
        _, _, code = Path(page).read_text(encoding="utf-8").partition('<code id="program">')
        ran: dict[str, Any] = {}
        exec(html.unescape(code.partition("</code>")[0]), ran)
        n_left_out = 1 + (is_whole or "drop" in options) + 2 * ("4,7" in options)
        assert len(ran["X"]) == len(ran["model"].predict(ran["X"])) == 60 - n_left_out


def test_where_distances_need_whole_rows_others_are_left_out(run) -> None:
    rows = two_groups()
    rows[3][0] = ""
    Path("holes.csv").write_text("x,y\n" + "\n".join(map(",".join, rows)))
    options = ("-k", 2, "--divergence", "manhattan", "-m", "m.pm", "-o", "labels.csv", "-q")
    ended = run("fit", "holes.csv", *options)
    assert (
        'missing values: 1 in "x", of 60 rows; such rows are left out, since this divergence needs '
        "whole rows"
    ) in ended.out.splitlines()
    assert lines("labels.csv")[4] == ""
    again = run("predict", "--model", "m.pm", "holes.csv", "--json").json
    assert again == run("predict", "m.pm", "holes.csv", "--json").json | {
        "seconds": again["seconds"]
    }
    assert again["labels"][3] == -1


@pytest.mark.filterwarnings("default")
def test_declared_codes_and_skipped_rows_are_remembered_and_left_out(run) -> None:
    rows = two_groups()
    for place in (3, 8, 12):
        rows[place][0] = "-999"
    text = "\n".join(map(",".join, [["x", "y"], ["cm", "kg"], *rows, ["300", "480"]])) + "\n"
    Path("data.csv").write_text(text)
    told = run("fit", "data.csv", "-k", 2, "-q").err
    assert told.endswith('-999 in "x" (3 rows): --missing-values x=-999 reads them as missing\n')
    codes = ("--missing-values", "x=-999", "--skip-rows", "61")
    ended = run("fit", "data.csv", "-k", 2, *codes, "--rows", "r.csv", "-m", "m.pm", "-q")
    assert ended.err == ""
    assert "1 row is left out by --skip-rows" in ended.out.splitlines()
    written = lines("r.csv")
    assert written[1] == "cm,kg,"
    assert written[-1] == "300,480,"
    clusters = [line.rpartition(",")[2] for line in written[2:-1]]
    assert clusters == [clusters[0], clusters[1]] * 30
    labels = run("predict", "m.pm", "data.csv", "--json").json["labels"]
    assert list(map(str, labels[:60])) == clusters


def test_weights_count_as_copies(run) -> None:
    Path("weighted.csv").write_text("x,n\n0,3\n1,1\n10,2\n")
    Path("copied.csv").write_text("x\n0\n0\n0\n1\n10\n10\n")
    weighted = run("fit", "weighted.csv", "-k", 2, "--weights", "n", "--json", "-q").json
    copied = run("fit", "copied.csv", "-k", 2, "--json", "-q").json
    assert weighted["inertia"] == pytest.approx(copied["inertia"]) == pytest.approx(0.75)


def test_shares_are_of_the_weight_and_sizes_count_rows(run) -> None:
    Path("weighted.csv").write_text("x,n\n0,3\n1,1\n10,1\n11,0\n")
    arguments = ("fit", "weighted.csv", "-k", 2, "--weights", "n", "-m", "m.pm", "-q")
    found = run(*arguments, "--json").json
    by_size = sorted((c["weight"], c["size"], c["share"]) for c in found["clusters"])
    assert by_size == [(1.0, 2, 0.2), (4.0, 2, 0.8)]
    table = run(*arguments).out.splitlines()
    assert table[2].split()[:5] == ["cluster", "size", "weight", "share", "spread"]
    # The heavy cluster has 0 three times and 1 once: its mean is 1/4, its spread sqrt(3) / 4.
    assert any(line.split()[1:5] == ["2", "4", "80.0%", "0.4330"] for line in table)
    assert "size: rows; share: of the weight" in table
    predicted = run("predict", "m.pm", "weighted.csv", "--weights", "n")
    assert any(line.split()[1:] == ["2", "4", "80.0%"] for line in predicted.err.splitlines())


def test_a_cluster_whose_points_weigh_nothing_is_said_to_be_so(capsys) -> None:
    points, labels = np.array([[0.0], [1.0], [5.0]]), np.array([0, 0, 1], dtype=np.int32)
    tally = Tally(points[1:])
    tally.add(points, labels, np.array([1.0, 2.0, 0.0]))
    _, clusters = tally.summaries(["x"])
    assert [(c.size, c.weight, c.share) for c in clusters] == [(2, 3.0, 1.0), (1, 0.0, 0.0)]
    show_clusters(Screen(), clusters, ["x"], has_weights=True)
    assert "weighs nothing" in capsys.readouterr().out.splitlines()[2]


def test_missing_values_may_stay_where_k_is_chosen_and_methods_are_compared(
    run, one_thread
) -> None:
    holed = customers()
    holed[np.random.default_rng(0).uniform(size=holed.shape) < 0.05] = np.nan
    np.save("holed.npy", holed)
    options = ("--missing", "observed", "--scale", "standard")
    chosen = run("choose-k", "holed.npy", "--to", 7, *options, "--json", "-q").json
    assert chosen["recommended"] == 5
    compared = run("compare", "holed.npy", "-k", 5, *options)
    methods = [line.split("  ")[0] for line in compared.out.splitlines()]
    assert "powermeans balanced" in methods
    assert "powermeans Lloyd, best of 10" in methods
    assert not any(method.startswith("scikit-learn KMeans") for method in methods)
    assert compared.out.splitlines()[-1] == (
        "scikit-learn and faiss are left out: they take no missing values"
    )
    Path("few.csv").write_text("x\n0\n1\n9\n")
    whole = run("compare", "few.csv", "-k", 2, "--missing", "observed").out
    assert "scikit-learn KMeans" in whole


def test_standard_input_and_output_make_a_pipe(run) -> None:
    ended = run("fit", "-", "-k", 2, "-o", "-", "-q", stdin=b"0 0\n0 1\n9 9\n9 8\n")
    assert ended.code == 0
    header, *labels = ended.out.splitlines()
    assert header == "cluster"
    assert labels[0] == labels[1] != labels[2] == labels[3]
    assert "2 clusters of 4 rows and 2 columns of standard input" in ended.err


def test_predict_prints_labels_and_tells_of_them_beside(run) -> None:
    run("fit", "customers.csv", "-k", 3, "-m", "model.pm", "-q")
    ended = run("predict", "model.pm", "customers.csv")
    assert len(ended.out.splitlines()) == 601
    assert "600 rows of customers.csv by model.pm" in ended.err
    found = run("predict", "model.pm", "customers.csv", "--json").json
    assert found["labels"] == [int(label) for label in ended.out.splitlines()[1:]]
    assert found["sizes"] == np.bincount(found["labels"]).tolist()


def test_predict_finds_the_columns_by_name(run) -> None:
    Path("swapped.csv").write_text("kind,y,x\na,5,1\nb,6,2\n")
    Path("points.csv").write_text("x,y\n1,5\n2,6\n9,9\n")
    run("fit", "points.csv", "-k", 2, "-m", "model.pm", "-q")
    swapped = run("predict", "model.pm", "swapped.csv").out
    straight = run("predict", "model.pm", "points.csv").out
    assert swapped.splitlines() == straight.splitlines()[:3]


def test_columns_that_predict_asks_for_are_put_in_the_order_of_the_model(run) -> None:
    Path("points.csv").write_text("a,b,c\n0,0,9\n0,1,9\n9,9,0\n9,8,0\n")
    run("fit", "points.csv", "-k", 2, "-m", "model.pm", "-q")
    straight = run("predict", "model.pm", "points.csv", "--json").json
    for columns in ("c,a,b", "3,1,2", "b\nc\na"):
        other = run("predict", "model.pm", "points.csv", "--columns", columns, "--json").json
        assert (other["labels"], other["score"]) == (straight["labels"], straight["score"])
    # Columns of other names can only be meant by their places.
    Path("others.csv").write_text("z,x,y,\n0,0,9\n0,1,9\n9,9,0\n9,8,0\n".replace(",\n", "\n", 1))
    found = run("predict", "model.pm", "others.csv", "--columns", "z,x,y", "--json").json
    assert found["labels"] == straight["labels"]


def test_an_array_without_names_is_taken_by_position(run) -> None:
    np.save("points.npy", customers())
    run("fit", "customers.csv", "-k", 3, "-m", "model.pm", "-o", "labels.npy", "-q")
    found = run("predict", "model.pm", "points.npy", "--json").json
    assert found["labels"] == np.load("labels.npy").tolist()


def test_json_of_fit_says_all_that_the_table_says(run) -> None:
    found = run("fit", "customers.csv", "-k", 5, "--scale", "standard", "--json", "-q").json
    assert found["n_rows"] == 600
    assert found["columns"] == list(COLUMNS)
    assert sum(cluster["size"] for cluster in found["clusters"]) == 600
    assert sum(cluster["share"] for cluster in found["clusters"]) == pytest.approx(1)
    assert found["inertia"] == pytest.approx(309.4696, abs=1e-3)
    assert found["was_interrupted"] is False
    assert set(found["clusters"][0]["center"]) == set(COLUMNS)


def test_the_same_seed_gives_the_same_and_options_reach_the_fit(run) -> None:
    def settings(*options: object) -> Any:
        return run("fit", "customers.csv", "-k", 4, "--json", "-q", *options).json

    first, second = settings("--seed", 3), settings("--seed", 3)
    assert first["clusters"] == second["clusters"]
    other = settings("--divergence", "manhattan", "--effort", "fast", "--power", -2)
    assert other["settings"]["power"] == -2
    assert other["inertia"] != first["inertia"]
    assert settings("--effort", "none")["n_sweeps"] < first["n_sweeps"]


def test_columns_are_scaled_where_one_would_decide_everything(run) -> None:
    scaled, plain, asked = (
        run("fit", "customers.csv", "-k", 2, "-q", "--json", *options).json
        for options in ((), ("--scale", "none"), ("--scale", "standard"))
    )
    assert (scaled["scale"], plain["scale"]) == ("standard", "none")
    assert scaled["inertia"] == asked["inertia"] != plain["inertia"]
    said = run("fit", "customers.csv", "-k", 2, "-q").out
    assert 'scaled: "basket" spreads 2' in said
    in_parts = run("fit", "customers.csv", "-k", 2, "-q", "--memory-limit", "1GB", "--json").json
    assert in_parts["scale"] == "standard"
    Path("alike.csv").write_text("x,y\n1,20\n2,10\n9,50\n8,60\n")
    assert run("fit", "alike.csv", "-k", 2, "-q", "--json").json["scale"] == "none"


def test_a_column_of_one_value_is_not_said_to_spread_less_than_another(run) -> None:
    rows = [f"0.1,{i % 7},{1000 * (i % 5)}" for i in range(70)]
    Path("constant.csv").write_text("\n".join(["always,b,c", *rows]))
    said = run("fit", "constant.csv", "-k", 2, "-q").out
    assert 'scaled: "c" spreads 707 times as far as "b"' in said


BANK = "Tag;Text;Betrag;Saldo\n" + "".join(
    f"0{i % 9 + 1}.03.2024;Käse;{'-' * (i % 2)}{1 + i % 2}.{i:03},50;{i % 5},25\n"
    for i in range(40)
)


@pytest.mark.filterwarnings("default")
def test_a_file_alone_is_read_clustered_and_written_with_its_clusters(run) -> None:
    Path("bank.csv").write_bytes(BANK.encode("cp1252"))
    ended = run("fit", "bank.csv", "-q")
    assert ended.code == 0
    assert 'left out "Tag" (dates), "Text" (text): --dates days reads dates' in ended.err
    assert 'read: "Betrag" as 1.234,5; "Saldo" as 1234,5; encoding cp1252' in ended.out
    assert 'scaled: "Betrag" spreads' in ended.out
    chosen = int(re.search(r"k(?: is k)? = (\d+), by", ended.out, re.MULTILINE)[1])
    assert ended.out.endswith(
        "written: bank-clusters.csv, bank-report.html\n"
        f"open the report: {'open' if sys.platform == 'darwin' else 'xdg-open'} bank-report.html\n"
    )
    rows = Path("bank-clusters.csv").read_bytes().decode("cp1252").splitlines()
    assert [row.rpartition(";")[0] for row in rows] == BANK.splitlines()
    header, *clusters = [row.rpartition(";")[2] for row in rows]
    assert header == "cluster"
    assert {int(cluster) for cluster in clusters} == set(range(chosen))
    assert "Clusters of bank.csv" in Path("bank-report.html").read_text(encoding="utf-8")
    assert run("fit", "bank.csv", "-q").code == 0  # replaces its own files


def test_a_file_of_the_name_of_an_output_that_was_not_asked_for_is_kept(run) -> None:
    for path in ("customers-clusters.csv", "customers-report.html"):
        Path(path).write_text("mine")
        ended = run("fit", "customers.csv", "-q")
        assert (ended.code, Path(path).read_text()) == (2, "mine")
        assert f"{path} exists and was not written here" in ended.err
        Path(path).unlink()


def test_a_number_of_clusters_or_an_output_leaves_out_the_other_files(run) -> None:
    before = set(os.listdir())
    run("fit", "customers.csv", "-q", "-k", 3)
    run("fit", "customers.csv", "-q", "--json")
    assert set(os.listdir()) == before
    run("fit", "customers.csv", "-q", "-o", "labels.csv")
    assert set(os.listdir()) == before | {"labels.csv"}


def test_rows_are_written_as_they_are_with_an_empty_cluster_where_they_were_left_out(run) -> None:
    Path("f.csv").write_text('"=x",note,cluster\n1,"a ""b""\nc",2\n\n,=1+1,3\n9,"+d, e",4\n')
    options = ("-k", 2, "--columns", "=x", "--missing", "drop", "--rows", "out.csv", "-q")
    assert run("fit", "f.csv", *options).code == 0
    with open("out.csv", newline="") as file:
        rows = list(csv.reader(file))
    assert [row[:3] for row in rows] == [
        ["=x", "note", "cluster"],
        ["1", 'a "b"\nc', "2"],
        ["", "=1+1", "3"],
        ["9", "+d, e", "4"],
    ]
    assert rows[0][3] == "cluster.4"
    assert [row[3] == "" for row in rows[1:]] == [False, True, False]


def test_rows_of_other_files_are_written_as_they_were_read(run) -> None:
    np.save("f.npy", np.array([[1.0, 1000.5], [9.0, -2000.0]]))
    assert run("fit", "f.npy", "-k", 2, "--rows", "out.csv", "-q").code == 0
    header, *rows = [line.split(",") for line in lines("out.csv")]
    assert header == ["c1", "c2", "cluster"]
    assert [row[:2] for row in rows] == [["1", "1000.5"], ["9", "-2000"]]


def test_rows_that_are_all_alike_make_one_cluster(run) -> None:
    Path("alike.csv").write_text("x,y\n1,2\n1,2\n1,2\n")
    ended = run("fit", "alike.csv", "-q")
    assert ended.code == 0
    assert "k = 1, since there are too few different rows for more" in ended.out


def test_a_model_remembers_how_its_file_was_read(run) -> None:
    Path("old.csv").write_text("x;day\n1,5;02.01.1970\n;03.01.1970\n9,25;09.01.1970\n")
    reading = ("--missing", "drop", "--dates", "days")
    run("fit", "old.csv", "-k", 2, "-m", "m.pm", "-q", "--scale", "none", *reading)
    # Between tabs the marks are in doubt, and the model knows them.
    Path("new.csv").write_text("x\tday\n1,500\t02.01.1970\n\t02.01.1970\n9,250\t09.01.1970\n")
    found = run("predict", "m.pm", "new.csv", "--json").json
    assert found["labels"][1] == -1
    assert found["score"] == 0.0
    assert run("predict", "m.pm", "new.csv", "--missing", "error").code == 3
    assert run("predict", "m.pm", "new.csv", "--thousands", ",", "--decimal", ".").code == 0
    assert run("report", "m.pm", "new.csv", "-o", "r.html").code == 0


def test_a_report_and_a_picture_of_the_choice_are_written(run) -> None:
    assert run("fit", "customers.csv", "-k", 5, "--report", "a.html", "-m", "m.pm", "-q").code == 0
    alone = run("report", "m.pm", "customers.csv", "-o", "b.html")
    assert (alone.code, alone.out.splitlines()[0]) == (0, "written: b.html")
    assert "the page lacks the annealing" in alone.out
    pages = [Path(page).read_text(encoding="utf-8") for page in ("a.html", "b.html")]
    assert ['id="annealing"' in page for page in pages] == [True, False]
    assert run("choose-k", "customers.csv", "--to", 4, "--plot", "k.png", "-q").code == 0
    for text in pages:
        assert "<h1>Clusters of customers.csv</h1>" in text
        assert "<dt>points</dt><dd>600</dd>" in text
        assert len(re.findall(r'<tr><th scope="row">\d</th><td class="words"><a', text)) == 5
    with Image.open("k.png") as picture:
        assert picture.size == (1050, 675)


def test_clusters_of_a_report_have_the_names_that_were_given(run) -> None:
    fit = ("fit", "customers.csv", "-k", 5, "-q")
    assert run(*fit, "-m", "m.pm", "--report", "a.html", "--name", "1=Loyal").code == 0
    assert run("report", "m.pm", "customers.csv", "-o", "b.html", "--name", "1=Loyal").code == 0
    for page in ("a.html", "b.html"):
        assert '<a href="#cluster-1">Loyal</a>' in Path(page).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--report", "a.html", "--name", "Loyal"), "--name must be a cluster and its name"),
        (("--report", "a.html", "--name", "1="), "--name must be a cluster and its name"),
        (("--report", "a.html", "--name", "5=Loyal"), "--name has a cluster 5, and there are 5"),
        (("--name", "1=Loyal"), "--name is for the report"),
    ],
)
def test_names_that_no_cluster_can_have_are_refused_before_the_fit(run, options, says) -> None:
    said = run("fit", "customers.csv", "-k", 5, *options)
    assert (said.code, says in said.err) == (2, True)
    assert not Path("a.html").exists()


def test_a_report_names_columns_as_the_table_of_the_terminal_does(run) -> None:
    np.save("plain.npy", np.repeat([[0.0, 1.0], [9.0, 5.0]], 5, axis=0))
    said = run("fit", "plain.npy", "-k", 2, "-q", "--report", "a.html", "-m", "m.pm")
    assert "c1 -1.0 sd, c2 -1.0 sd" in said.out
    assert run("report", "m.pm", "plain.npy", "-o", "b.html").code == 0
    for page in ("a.html", "b.html"):
        assert "Low c1, low c2" in Path(page).read_text(encoding="utf-8")


def test_a_report_numbers_rows_as_they_stand_in_the_file(run) -> None:
    Path("holes.csv").write_text("a,b\n1,\n2,2\n,3\n4,4\n50,50\n")
    fit = ("fit", "holes.csv", "-k", 2, "--missing", "drop", "-q", "--report", "a.html")
    assert run(*fit).code == 0
    page = Path("a.html").read_text(encoding="utf-8")
    examples = page[page.index('<table class="rows">') :]
    assert set(
        re.findall(r'<tr><th scope="row">(\d)</th>', examples.partition('id="points"')[0])
    ) == {"2", "4", "5"}


def test_columns_are_not_scaled_where_scale_is_beside_the_point(run) -> None:
    for divergence, is_said in (("manhattan", True), ("cosine", False), ("poisson", False)):
        said = run("fit", "customers.csv", "-k", 2, "-q", "--divergence", divergence).out
        assert ("scaled:" in said) == is_said


def test_rows_without_a_weight_are_dropped_with_those_that_lack_a_value(run) -> None:
    Path("weighted.csv").write_text("x,w\n1,1\n2,\n,3\n9,2\n")
    options = ("--weights", "w", "--missing", "drop", "-o", "labels.csv", "-q")
    assert (
        "2 rows with missing values were left out"
        in run("fit", "weighted.csv", "-k", 2, *options).out
    )
    assert [label == "" for label in lines("labels.csv")[1:]] == [False, True, True, False]


def test_a_decimal_mark_that_is_given_overrules_what_is_found_out(run) -> None:
    Path("a.tsv").write_text("x\ty\n1,234\t2\n2,500\t3\n")
    ended = run("fit", "a.tsv", "-k", 1, "-q")
    assert "pass --decimal ," in ended.err
    found = run("fit", "a.tsv", "-k", 1, "--decimal", ",", "--json", "-q").json
    assert found["clusters"][0]["center"] == pytest.approx({"x": 1.867, "y": 2.5})


@pytest.mark.parametrize(
    ("interrupted_in", "said"),
    [
        ("powermeans.app.command.fitting.save", "labels.csv is written, and nothing else"),
        (
            "powermeans.app.command.fitting.show_clusters",
            "labels.csv, model.pm is written, and nothing else",
        ),
        (
            "powermeans.app.command.fitting.write_labels",
            "before there was a result: nothing was written",
        ),
    ],
)
def test_ctrl_c_between_outputs_says_which_are_written(
    interrupted_in, said, run, monkeypatch
) -> None:
    def interrupt(*arguments: object, **options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(interrupted_in, interrupt)
    ended = run("fit", "customers.csv", "-k", 2, "-o", "labels.csv", "-m", "model.pm", "-q")
    assert ended.code == 130
    assert re.fullmatch(rf"powermeans: interrupted:? {re.escape(said)}\n", ended.err)


# Palettes.


def test_palette_finds_the_colours_of_a_picture(run) -> None:
    colours = np.array([[250, 0, 0], [0, 240, 0], [0, 0, 230], [10, 10, 10]], dtype=np.uint8)
    rng = np.random.default_rng(0)
    which = rng.choice(4, size=(40, 60), p=[0.4, 0.3, 0.2, 0.1])
    noisy = colours[which] + rng.integers(0, 3, size=(40, 60, 3), dtype=np.uint8)
    Image.fromarray(noisy).save("picture.png")
    found = run("palette", "picture.png", "-k", 4, "--json").json
    assert [entry["colour"] for entry in found["colours"]] == [
        "#fb0101", "#01f101", "#0101e7", "#0b0b0b",
    ]  # fmt: skip
    assert lines("picture-4.txt") == [entry["colour"] for entry in found["colours"]]
    with Image.open("picture-4.png") as written:
        assert written.mode == "P"
        np.testing.assert_array_equal(np.asarray(written.convert("RGB")), colours[which] + 1)


def test_palette_keeps_what_is_transparent_and_finds_no_more_colours_than_there_are(run) -> None:
    pixels = np.zeros((2, 2, 4), dtype=np.uint8)
    pixels[0, 0] = [255, 0, 0, 128]
    Image.fromarray(pixels).save("picture.png")
    ended = run("palette", "picture.png", "-o", "out.png", "--palette", "out.txt")
    assert "1 colour of picture.png" in ended.out
    assert "#ff0000  100.0%" in ended.out
    with Image.open("out.png") as written:
        np.testing.assert_array_equal(np.asarray(written), pixels)


def test_palette_sees_grey_of_16_bits(run) -> None:
    grey = np.repeat(np.array([257 * 10, 257 * 200], dtype=np.uint16), 8).reshape(4, 4)
    Image.fromarray(grey).save("grey.png")
    found = run("palette", "grey.png", "-k", 2, "--json").json
    assert {entry["colour"] for entry in found["colours"]} == {"#0a0a0a", "#c8c8c8"}


def test_palette_turns_a_picture_as_the_camera_was_held(run) -> None:
    pixels = np.zeros((10, 20, 3), dtype=np.uint8)
    pixels[:, :10] = 255  # white at the left, which turned to the right is the top
    exif = Image.Exif()
    exif[0x0112] = 6
    Image.fromarray(pixels).save("held.png", exif=exif)
    run("palette", "held.png", "-k", 2, "-o", "out.png")
    with Image.open("out.png") as written:
        turned = np.asarray(written.convert("L"))
    assert turned.shape == (20, 10)
    np.testing.assert_array_equal(turned[:10], 255)
    np.testing.assert_array_equal(turned[10:], 0)


def test_what_is_transparent_is_refused_as_jpeg_before_the_work(run, monkeypatch) -> None:
    Image.fromarray(np.full((2, 2, 4), 128, dtype=np.uint8)).save("picture.png")
    monkeypatch.setattr("powermeans.app.command.palettes.palette_of", None)
    ended = run("palette", "picture.png", "-o", "out.jpg")
    assert ended.err == (
        "powermeans: out.jpg: partly transparent images cannot be written as JPEG: name a .png\n"
    )
    assert ended.code == OF_USE


def test_a_picture_of_nothing_that_is_seen_has_no_colours(run) -> None:
    Image.fromarray(np.zeros((2, 2, 4), dtype=np.uint8)).save("picture.png")
    ended = run("palette", "picture.png")
    assert (ended.code, ended.err) == (3, "powermeans: every pixel of the picture is transparent\n")


# Every error that a user can make, and the exact line that is printed.

OF_DATA, OF_USE, OF_OUTPUT = 3, 2, 4
SEE_HELP = " (see powermeans --help)"
NO_FILE = "- is the standard output, which takes only labels: name a file"
FILES = {
    "text.csv": "x,kind,y\n1,red,2\n3,blue,4\n",
    "empty.csv": "",
    "header.csv": "x,y\n",
    "ragged.csv": "x,y\n1,2\n3,4,5\n",
    "holes.csv": "x,y\n1,\n2,3\n",
    "infinite.csv": "x,y\n1,2\n-inf,3\n",
    "doubt.csv": "price;n\n1.000;12\n2.500;13\n",
    "huge.csv": "id,x\n12345678901234567,1\n2,2\n",
    "mixed.csv": "x,y\n1,2\n2,3\n3,four\n",
    "negative.csv": "x,y\n1,2\n-3,4\n",
    "gap.csv": "x,y\n1,2\n,4\n5,-3\n",
    "weights.csv": "x,w\n1,1\n2,-1\n",
    "other.csv": "visits_per_month,baskett\n1,2\n",
    "narrow.csv": "1,2\n3,4\n",
    "same.csv": "x\n1\n1\n1\n",
    "protected.csv": "x\n1\n",
}


def errors() -> Iterator[Any]:
    """The commands of command_line_errors.txt, each with its exit code and its line."""
    texts = {"{see_help}": SEE_HELP, "{no_file}": NO_FILE, "{version}": powermeans.__version__}
    path = Path(__file__).with_name("command_line_errors.txt")
    code, told = 0, iter(path.read_text(encoding="utf-8").splitlines())
    for line in filter(None, told):
        if line.startswith("# Exit code"):
            code = int(line.split()[3].strip(":"))
            continue
        message = next(told)
        for mark, text in texts.items():
            message = message.replace(mark, text)
        command = line.removeprefix("$ powermeans ")
        yield pytest.param(command, code, message, id=command)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Models of the example: whole, waiting for points, and as a later version may write it."""
    folder = tmp_path_factory.mktemp("models")
    waiting = powermeans.OnlineKMeans(2).partial_fit(customers()[:1])
    powermeans.save(waiting, folder / "stream.pm")
    model = powermeans.PowerKMeans(2, random_state=0).fit(customers())
    model.feature_names_in_ = np.array(COLUMNS, dtype=object)
    powermeans.save(model, folder / "model.pm")
    with (
        zipfile.ZipFile(folder / "model.pm") as old,
        zipfile.ZipFile(folder / "newer.pm", "w") as new,
    ):
        for name in old.namelist():
            member = old.read(name)
            if name == "model.json":
                header = json.loads(member) | {"version": 99, "written_by": "9.9"}
                member = json.dumps(header).encode()
            new.writestr(name, member)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def files(run: Run, models: dict[str, bytes]) -> None:
    for name, content in FILES.items():
        Path(name).write_text(content)
    for name, model in models.items():
        Path(name).write_bytes(model)
    Path("protected.csv").chmod(0o444)


ERRORS = list(errors())


def test_there_are_errors_of_every_exit_code() -> None:
    assert {error.values[1] for error in ERRORS} == {OF_USE, OF_DATA, OF_OUTPUT}


@pytest.mark.parametrize(("command", "code", "message"), ERRORS)
def test_an_error_is_one_line_that_says_what_to_do(command, code, message, run, files) -> None:
    if "/dev/full" in command and not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    before = sorted(os.listdir())
    ended = run(*command.split())
    assert ended.err == f"powermeans: {message}\n"
    assert ended.code == code
    assert sorted(os.listdir()) == before


def test_fewer_threads_than_one_are_wrong_arguments(run) -> None:
    ended = run("fit", "customers.csv", "-k", 2, "--threads", 0)
    assert "'--threads'" in ended.err
    assert ended.code == OF_USE


def test_warnings_are_notes_of_one_line(run, files) -> None:
    ended = run("fit", "same.csv", "-k", 2, "-q")
    assert re.fullmatch(r"powermeans: [^\n]*distinct[^\n]*\n", ended.err)


def test_debug_shows_where_an_error_came_from(run) -> None:
    ended = run("fit", "nothing.csv", "-k", 2, "--debug")
    assert ended.err.startswith("Traceback")
    assert ended.err.splitlines()[-1] == "powermeans: nothing.csv does not exist"
    assert ended.code == OF_DATA


def test_what_nobody_foresaw_is_one_line_as_well(run, monkeypatch) -> None:
    def fail(*arguments: object) -> None:
        raise ZeroDivisionError("oh")

    monkeypatch.setattr("powermeans.app.report.versions.versions", fail)
    ended = run("info")
    assert ended.err == (
        "powermeans: unexpected ZeroDivisionError: oh (--debug shows where; please report it)\n"
    )
    assert ended.code == 1


def test_without_typer_the_error_names_the_extra(run, monkeypatch) -> None:
    monkeypatch.delitem(sys.modules, "powermeans.app.command.commands", raising=False)
    monkeypatch.setitem(sys.modules, "typer", None)
    ended = run("info")
    assert ended.err.startswith("powermeans: the command line needs typer: pip install")
    assert ended.code == OF_USE


def test_ctrl_c_while_the_command_is_loaded_shows_no_traceback(run, monkeypatch) -> None:
    class Loading:
        @property
        def app(self) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "powermeans.app.command.commands", Loading())
    ended = run("info")
    assert ended.err.startswith("powermeans: interrupted before there was a result")
    assert ended.code == 130


def test_a_full_disk_leaves_the_old_file(run, tmp_path, monkeypatch) -> None:
    Path("model.pm").write_bytes(b"old")

    def full(*arguments: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.lib.format.write_array", full)
    ended = run("fit", "customers.csv", "-k", 2, "-m", "model.pm", "-q")
    assert ended.err == "powermeans: model.pm cannot be written: No space left on device\n"
    assert ended.code == OF_OUTPUT
    assert Path("model.pm").read_bytes() == b"old"
    assert sorted(os.listdir()) == ["customers.csv", "model.pm"]


# Disks that are full.


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB, in memory."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(mounting, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no command to mount a file system with")
    if mounted.returncode != 0:
        pytest.skip(f"a file system may not be mounted here: {mounted.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def fill_but_for_one_page(path: Path) -> None:
    """Writing begins, and fails on the way."""
    page = bytes(os.sysconf("SC_PAGE_SIZE"))
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while file.write(page):
            pass
    os.truncate(path, path.stat().st_size - len(page))


FILLING = [
    ("fit much.npy -k 3 -q", "-o", "labels.npy"),
    ("fit much.npy -k 3 -q", "-o", "labels.csv"),
    ("fit much.npy -k 3 -q", "-o", "labels.parquet"),
    ("fit much.npy -k 3 -q", "-m", "model.pm"),
    ("fit much.npy -k 3 -q", "--report", "report.html"),
    ("predict model.pm much.npy", "-o", "labels.npy"),
    ("report model.pm much.npy", "-o", "report.html"),
    ("choose-k much.npy --to 3 --criteria bic,dp_means -q", "--plot", "k.png"),
    ("palette picture.png -k 300 --palette colours.txt", "-o", "picture.bmp"),
    ("palette picture.png -k 700 -o small.png", "--palette", "colours.txt"),
]


@pytest.mark.parametrize(("command", "option", "name"), FILLING)
def test_a_full_disk_is_one_clear_line_and_leaves_what_was_there(
    command, option, name, run, tiny_disk
) -> None:
    rng = np.random.default_rng(0)
    np.save("much.npy", rng.normal(size=(60_000, 2)))
    Image.fromarray(rng.integers(0, 256, (300, 300, 3), dtype=np.uint8)).save("picture.png")
    run("fit", "customers.csv", "--columns", "1,2", "-k", 2, "-m", "model.pm", "-q")
    path = tiny_disk / name
    path.write_bytes(b"old")
    fill_but_for_one_page(tiny_disk / "filled")
    ended = run(*command.split(), option, path)
    assert ended.err == f"powermeans: {path} cannot be written: No space left on device\n"
    assert ended.code == OF_OUTPUT
    assert path.read_bytes() == b"old"
    assert set(os.listdir(tiny_disk)) == {"filled", name}


def test_a_full_disk_is_said_of_the_example_of_the_demo(run, tiny_disk) -> None:
    fill_but_for_one_page(tiny_disk / "filled")
    path = tiny_disk / "example.csv"
    ended = run("demo", "--data", path)
    assert ended.err == f"powermeans: {path} cannot be written: No space left on device\n"
    assert ended.code == OF_OUTPUT
    assert os.listdir(tiny_disk) == ["filled"]


def test_a_disk_that_fills_up_while_writing_leaves_nothing_half_written(run) -> None:
    resource = pytest.importorskip("resource", reason="only POSIX limits the size of files")
    Path("labels.csv").write_text("old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        ended = run("fit", "customers.csv", "-k", 5, "-o", "labels.csv", "-q")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert ended.err == "powermeans: labels.csv cannot be written: File too large\n"
    assert ended.code == OF_OUTPUT
    assert Path("labels.csv").read_text() == "old"
    assert sorted(os.listdir()) == ["customers.csv", "labels.csv"]


def test_piped_output_is_plain_and_progress_goes_beside_it(run) -> None:
    ended = run("fit", "customers.csv", "-k", 5)
    assert "\x1b" not in ended.out + ended.err
    assert "sweep" not in ended.out.splitlines()[0]
    *_, end = lines = ended.err.splitlines()
    assert re.fullmatch(r"ended, \d+ sweeps, inertia .*, \d+\.\d s", end)
    assert len(lines) <= 3


def test_powers_and_inertias_are_shown_if_they_are_asked_for(run) -> None:
    err = run("fit", "customers.csv", "-k", 5, "--verbose").err
    assert re.fullmatch(r"ended, \d+ sweeps, power -inf, .*, least .*, 5 centers, .* s\n", err)
    assert "power" not in run("fit", "customers.csv", "-k", 5).err
    assert run("fit", "customers.csv", "-k", 5, "--quiet").err == ""


# In a process of its own.


def test_a_reader_that_has_enough_ends_it_quietly(run) -> None:
    Path("many.csv").write_text("x\n" + "1\n2\n" * 100_000)
    Path("few.csv").write_text("x\n1\n2\n")
    run("fit", "few.csv", "-k", 2, "-m", "model.pm", "-q")
    process = subprocess.Popen(
        [*SHELL, "predict", "model.pm", "many.csv"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.readline() == b"cluster\n"
    process.stdout.close()
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()
    assert process.wait() == 141


@pytest.fixture
def much(run: Run) -> str:
    rng = np.random.default_rng(0)
    np.save("much.npy", rng.normal(size=(5_000, 8)))
    return "much.npy"


def test_ctrl_c_writes_the_best_so_far_and_says_so(run, much) -> None:
    """Once it shows that it sweeps."""
    code = (
        "import powermeans.app.command.screen as s; s._SECONDS_BETWEEN_LINES = 0.0\n"
        "from powermeans.app.command import main; import sys; main(sys.argv[1:])"
    )
    arguments = (
        f"fit {much} -k 60 --effort thorough --runs 9 --verbose -o labels.npy -m model.pm".split()
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    next(line for line in process.stderr if " sweeps, " in line)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.splitlines()[-1] == (
        "powermeans: interrupted: this is the best result so far, written to labels.npy, model.pm"
    )
    assert "60 clusters of 5,000 rows" in out
    model = powermeans.load("model.pm")
    np.testing.assert_array_equal(model.predict(np.load(much)), np.load("labels.npy"))
    assert adjusted_rand_index(model.labels_, np.load("labels.npy")) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals end no process there")
@pytest.mark.parametrize("started", ["-m", "script", "other script", "other module"])
def test_ctrl_c_while_the_command_is_imported_ends_only_the_command(tmp_path, started) -> None:
    folder = tmp_path / "modules"
    folder.mkdir()
    (folder / "shlex.py").write_text("import signal; signal.raise_signal(signal.SIGINT)")
    (folder / "other").write_text("import powermeans.app.command")
    (folder / "powermeans").write_text("from powermeans.__main__ import main; main()")
    package = folder / "another"
    package.mkdir()
    (package / "__init__.py").write_text("import powermeans.app.command")
    arguments = {
        "-m": ["-m", "powermeans", "fit", "--help"],
        "script": [str(folder / "powermeans"), "fit", "--help"],
        "other script": [str(folder / "other")],
        "other module": ["-m", "another"],
    }[started]
    ended = subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": f"{folder}:{os.environ.get('PYTHONPATH', '')}"},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == -signal.SIGINT
    assert ("KeyboardInterrupt" in ended.stderr) is started.startswith("other")
    assert started.startswith("other") or ended.stderr == ""


def test_ctrl_c_is_heard_where_python_raises_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Thing:
        pass

    def interrupt(_: object) -> None:
        signal.raise_signal(signal.SIGINT)

    def app(*_: object, **__: object) -> int:
        thing = Thing()
        callback = weakref.ref(thing, interrupt)
        del thing
        assert callback() is None, "the callback was called"
        for _ in range(1000):
            time.sleep(0.01)
        return 0

    monkeypatch.setattr("powermeans.app.command.commands.app", app)
    began = time.monotonic()
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == failures.INTERRUPTED
    assert time.monotonic() - began < 5
    assert "interrupted before there was a result" in capsys.readouterr().err


@pytest.mark.parametrize("seconds_between", [0.0, 0.01, 0.03, 0.04, 0.05, 0.06, 0.2])
def test_ctrl_c_pressed_twice_leaves_whole_files_and_no_traceback(
    run, much, seconds_between
) -> None:
    arguments = f"fit {much} -k 60 --effort thorough --runs 9 -o labels.npy -m model.pm".split()
    code = (
        "import powermeans.app.command.screen as s; s._SECONDS_BETWEEN_LINES = 0.0\n"
        "from powermeans.app.command import main; import sys; main(sys.argv[1:])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, *arguments, "--verbose"],
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        next(line for line in process.stderr if " sweeps, " in line)
        process.send_signal(signal.SIGINT)
        time.sleep(seconds_between)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    last = err.splitlines()[-1]
    assert last.startswith("powermeans: interrupted")
    assert "Traceback" not in err
    assert "unexpected" not in err
    written = {path.name for path in Path().iterdir()} - {"customers.csv", much}
    assert written == {name for name in ("labels.npy", "model.pm") if name in last}
    if "labels.npy" in written:
        assert np.load("labels.npy").shape == (5000,)
    if "model.pm" in written:
        assert powermeans.load("model.pm").n_clusters == 60


def test_ctrl_c_ends_choose_k_with_what_was_found(run, much, monkeypatch) -> None:
    shown = FitProgress.__call__

    def show(self: FitProgress, state: SweepState) -> None:
        shown(self, state)
        if state.sweep == 40:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(FitProgress, "__call__", show)
    ended = run("choose-k", much, "--to", 60, "--json", "--criteria", "bic,calinski_harabasz")
    assert ended.code == 130
    assert ended.err.splitlines()[-1].startswith("powermeans: interrupted: ")
    if ended.out:
        assert ended.json["was_interrupted"] is True


def test_help_starts_without_what_only_commands_need() -> None:
    code = (
        "import sys; from powermeans.app.command import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: print(sorted({m.partition('.')[0] for m in sys.modules}))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = ended.stdout.splitlines()[-1]
    assert "'typer'" in loaded
    for library in ("numpy", "scipy", "sklearn", "pyarrow", "PIL", "matplotlib"):
        assert f"'{library}'" not in loaded


def test_a_shell_completes_commands_and_options() -> None:
    def completed(words: str, place: int) -> list[str]:
        asking = {"COMP_WORDS": words, "COMP_CWORD": str(place)}
        environment = {**os.environ, **asking, "_POWERMEANS_COMPLETE": "complete_bash"}
        ended = subprocess.run(SHELL, env=environment, capture_output=True, text=True, check=True)
        return ended.stdout.split()

    assert completed("powermeans pa", 1) == ["palette"]
    assert completed("powermeans fit --eff", 2) == ["--effort"]


def test_clusters_keep_within_limits_of_size(run: Run) -> None:
    fit = ("fit", "customers.csv", "-k", 4, "--scale", "standard", "--effort", "fast", "-q")
    free = run(*fit, "--json").json["clusters"]
    n_rows = sum(cluster["size"] for cluster in free)
    most = n_rows // 4 + 10
    assert max(cluster["size"] for cluster in free) > most
    assert run(*fit, "--size-max", most, "--output", "labels.txt").code == 0
    labels = np.loadtxt("labels.txt", dtype=int, skiprows=1)
    assert np.bincount(labels).max() == most
    even = run(*fit, "--size-min", 0.25, "--json").json["clusters"]
    assert min(cluster["size"] for cluster in even) >= n_rows // 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--size-max", 9), "--size-max 9 times 2 clusters makes 18 rows, and X has"),
        (("--size-min", 0), "--size-min must be above 0, not 0"),
        (("--size-min", 20, "--size-max", 10), "20 rows, more than the largest size, 10: pass"),
        (("--size-max", "nan"), "--size-max must be above 0, not nan"),
        (("--size-max", 1.0, "--memory-limit", "1GB"), "--size-max needs all rows at once"),
    ],
)
def test_limits_of_size_that_cannot_be_kept_are_refused(
    run: Run, arguments: tuple[object, ...], words: str
) -> None:
    ended = run("fit", "customers.csv", "-k", 2, *arguments)
    assert ended.code == failures.USAGE or "all rows" in words
    assert words in ended.err


def test_a_fit_proves_how_far_from_the_optimum_it_is(run: Run) -> None:
    fit = ("fit", "customers.csv", "-k", 5, "--scale", "standard", "-q")
    said = run(*fit, "--prove", 1, "--report", "report.html")
    assert said.code == 0
    line = next(line for line in said.out.splitlines() if line.startswith("proved to be"))
    assert f"<dt>optimality</dt><dd>{line}</dd>" in Path("report.html").read_text()
    told = run(*fit, "--prove", 1, "--json").json
    assert 0 < told["optimality"]["bound"] <= told["inertia"]
    assert "optimality" not in run(*fit, "--json").json


def test_a_search_for_a_proof_tells_how_far_it_is(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    monkeypatch.setattr(FitProgress, "phase", lambda shown, name, *_: heard.append(name))
    run("fit", "customers.csv", "-k", 5, "--scale", "standard", "--prove", 1)
    assert "searching for a proof" in heard
    assert heard[-1].startswith("proved to be")


def test_what_fails_for_an_interrupt_is_told_as_an_interrupt(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def half_imported(*_: object, **__: object) -> None:
        try:
            raise KeyboardInterrupt
        finally:
            raise AttributeError("module has no attribute 'exceptions'")

    monkeypatch.setattr(powermeans.PowerKMeans, "fit", half_imported)
    said = run("fit", "customers.csv", "-k", 5)
    assert said.code == 130
    assert "interrupted before there was a result" in said.err
    assert "unexpected" not in said.err


def test_a_command_looks_for_no_garbage_as_it_exits() -> None:
    program = (
        "import atexit, gc\n"
        "atexit.register(lambda: print(gc.get_freeze_count() > 0, flush=True))\n"  # runs last
        "from powermeans.app.command import main\n"
        "main(['--version'])"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ended.stdout.splitlines()[-1] == "True"


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_a_lack_of_memory_is_told_in_words(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def failing(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(powermeans.PowerKMeans, "fit", failing)
    said = run("fit", "customers.csv", "-k", 5)
    assert said.code == 3
    assert "there is not enough memory: pass fewer rows or columns" in said.err


def test_an_interrupt_before_anything_is_proved_keeps_the_fit(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(powermeans.PowerKMeans, "optimality_gap", interrupted)
    said = run("fit", "customers.csv", "-k", 5, "--prove", 1, "--report", "report.html")
    assert said.code == 0
    assert "proved" not in said.out
    assert Path("report.html").exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (("--divergence", "manhattan"), "--prove is for whole rows and squared Euclidean"),
        (("--missing", "observed"), "--prove is for whole rows and squared Euclidean"),
        (("--memory-limit", "1MB"), "--prove needs all rows at once"),
    ],
)
def test_what_cannot_be_proved_is_refused_before_the_fit(
    run: Run, options: tuple[str, ...], says: str
) -> None:
    said = run("fit", "customers.csv", "-k", 5, "--prove", 1, *options)
    assert said.code != 0
    assert says in " ".join(said.err.split())
    assert run("fit", "customers.csv", "-k", 5, "--prove", 0).code == 2


def test_characters_that_act_on_a_terminal_are_shown_escaped(run) -> None:
    Path("f.csv").write_text("a\x1b]0;PWNED\x07,b\u202er\n1,2\n3,4\n50,60\n")
    ended = run("fit", "f.csv", "-k", 2, "-q")
    assert "a\\x1b]0;PWNED\\x07" in ended.out
    assert "b\\u202er" in ended.out
    asked = run("fit", "f.csv", "-k", 2, "--columns", "\x1b[2Kz")
    assert 'f.csv has no column "\\x1b[2Kz"' in asked.err
    machine = run("fit", "f.csv", "-k", 2, "-q", "--json")
    assert machine.json["columns"] == ["a\x1b]0;PWNED\x07", "b\u202er"]
    for said in (ended.out, asked.err, machine.out):
        assert not set(said) & {"\x1b", "\x07", "\u202e"}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere names of files are UTF-8")
def test_a_file_whose_name_is_no_utf_8_is_read_and_named(run) -> None:
    name = os.fsdecode(b"bad\xff.csv")
    Path(name).write_text(EXAMPLE)
    ended = run("fit", name, "-k", 2, "-q", "-m", "m.pm", "--report", "r.html")
    assert (ended.code, ended.err) == (0, "")
    assert "of bad\\udcff.csv, read in" in ended.out
    assert run("predict", "m.pm", name, "-o", "l.npy").code == 0
    assert "rename it" in run("fit", name, "-k", 2, "-q", "--memory-limit", "1GB").err


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes of this kind")
def test_a_pipe_is_read_once(run) -> None:
    os.mkfifo("pipe")
    with subprocess.Popen(["sh", "-c", "cat customers.csv > pipe"]):
        ended = run("fit", "pipe", "-k", 2, "-q")
    assert (ended.code, ended.err) == (0, "")
    assert "2 clusters of 600 rows" in ended.out
    assert "pipe can be read only once" in run("fit", "pipe", "-k", 2, "--memory-limit", "1GB").err


def test_an_array_with_a_mangled_header_is_refused(run) -> None:
    header = b"{'descr': '<f8', 'fortran_order: False, 'shape': (3, 2), }".ljust(117) + b"\n"
    Path("m.npy").write_bytes(b"\x93NUMPY\x01\x00v\x00" + header + bytes(48))
    for options in ((), ("--memory-limit", "1GB")):
        ended = run("fit", "m.npy", "-k", 2, *options)
        assert ended.code == 3
        assert "m.npy is no array that can be read" in ended.err


def test_json_of_many_centers_is_written_as_it_is(capsys) -> None:
    n_calls = 0

    def count(frame: Any, event: str, argument: object) -> None:
        nonlocal n_calls
        is_layout = frame.f_globals.get("__name__", "").startswith("rich.")
        n_calls += is_layout and event == "call"

    told = {"center": {f"column {number}": number / 3 for number in range(3000)}}
    screen = Screen(as_json=True)
    sys.setprofile(count)
    try:
        screen.tell_machines(told)
    finally:
        sys.setprofile(None)
    assert json.loads(capsys.readouterr().out) == told
    assert n_calls < 100
