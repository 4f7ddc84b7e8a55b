"""What the commands beside `fit` print and write, and whole pages as people read them."""

import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tables.answers import CUSTOMERS, clusters_in, column_of, rows_shown

import powermeans
from powermeans import Prepare
from powermeans_tables.command import failures

PAGES = Path(__file__).with_name("pages.txt").read_text(encoding="utf-8")


def pages():
    for page in PAGES.split("\n$ powermeans")[1:]:
        command, _, shown = page.partition("\n")
        yield pytest.param(command, shown, id=command)


@pytest.mark.parametrize(("command", "shown"), list(pages()))
def test_a_page_is_as_people_read_it(command, shown, run):
    """But for times, numbers of sweeps and what is proved meanwhile: a faster machine does more."""
    code = failures.DATA if shown.startswith("powermeans: ") else 0
    ended = run("", *shlex.split(command), code=code)
    text = re.sub(r"\d[\d.]* m?s\b", "T", ended.out + ended.err)
    text = re.sub(r"\d+ sweeps", "N sweeps", text)
    text = re.sub(r"^proved to be .*\n", "", text, flags=re.MULTILINE)
    assert re.sub(r" +$", "", text, flags=re.MULTILINE).strip() == shown.strip()


def test_every_command_that_answers_has_json(run):
    commands = re.findall(r"^  ([a-z][a-z-]+)  ", run("--help").out, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        assert "--json" in run(command, "--help").out
    assert run(code=2).out == run("--help").out


def test_info(run):
    found = run("info --json").json
    assert found["powermeans"] == powermeans.__version__
    assert "instruction set" in found
    assert run("info").out.startswith("powermeans ")


def test_the_number_of_clusters_that_is_not_clear_or_ends_early(run):
    np.save("cloud.npy", np.random.default_rng(0).uniform(size=(400, 4)))
    shown = run("fit cloud.npy -k 2-6 --quiet --verbose").out
    (why,) = re.findall(
        r"^check this: no clear number of groups; \d is the best guess, because (.*)$", shown, re.M
    )
    assert re.findall(r"^(\d)  +\d+\.\d+ ", shown, re.M) == list("23456")
    found = run("fit cloud.npy -k 2-6 --quiet --json").json["choice"]
    assert (found["certainty"], found["why"], found["was_stopped"]) == ("not clear", why, False)
    assert found["table"]["k"] == [2, 3, 4, 5, 6]
    found = run("fit cloud.npy --max-seconds 1e-9 --quiet --json").json
    assert (found["choice"]["was_stopped"], found["was_interrupted"]) == (True, False)
    assert "tried none of 19 values of k" in found["choice"]["why"]
    found = run("fit cloud.npy -k 2-3 --max-seconds 1000 -q --json").json
    assert not found["choice"]["was_stopped"]
    assert run("fit cloud.npy -k 3 -q --json").json["choice"] is None


def test_missing_values_may_stay_where_k_is_chosen(run):
    holed = CUSTOMERS.copy()
    holed[np.random.default_rng(0).uniform(size=holed.shape) < 0.05] = np.nan
    np.save("holed.npy", holed)
    found = run("fit holed.npy -k 2-7 --missing observed --scale standard --json -q").json
    assert found["choice"]["recommended"] == len(found["clusters"]) == 5


@pytest.mark.parametrize(
    ("scale", "suffixes"),
    [("none", ["csv", "npy"]), ("standard", ["tsv", "parquet"]), ("minmax", ["txt", "feather"])],
)
def test_labels_of_a_fit_are_those_that_its_model_predicts(scale, suffixes, run):
    for suffix in suffixes:
        run(f"fit customers.csv -k 5 --scale {scale} -o a.{suffix} -m model.pm -q")
        ended = run("predict model.pm customers.csv")
        assert "600 rows of customers.csv by model.pm" in ended.err
        assert clusters_in(f"a.{suffix}") == column_of(ended.out)
    labels = [int(label) for label in column_of(ended.out)]
    assert sorted(set(labels)) == list(range(5))
    np.save("points.npy", CUSTOMERS)  # whose columns have no names
    found = run("predict model.pm points.npy --json").json
    assert (found["labels"], found["sizes"]) == (labels, np.bincount(labels).tolist())


@pytest.mark.parametrize("how", ["", "--labels-only", "--memory-limit 1GB"])
@pytest.mark.parametrize("add", ["", "--add sure", "--add distance,name"])
def test_fit_and_predict_add_the_same_columns(how, add, run):
    run(f"fit customers.csv -k 3 -q -m m.pm -o a.csv {add} {how}")
    run(f"predict m.pm customers.csv -o b.csv {add} {how}")
    text = Path("a.csv").read_text()
    assert Path("b.csv").read_text() == text
    asked = add.removeprefix("--add ").split(",") if add else ["distance", "second_cluster", "sure"]
    header = text.partition("\n")[0]
    is_bare = "labels" in how
    assert header.endswith(",".join(["cluster", *asked][: 1 if is_bare and not add else None]))
    assert ("basket" in header) != is_bare
    assert max(len(digits) for digits in re.findall(r"0\.0*(\d+)", f"{text} 0.0")) <= 6


def test_a_model_remembers_how_its_file_was_read(run):
    Path("old.csv").write_text("x;day\n1,5;02.01.1970\n;03.01.1970\n9,25;09.01.1970\n")
    run("fit old.csv -k 2 -m m.pm -q --scale none --missing drop --dates days")
    # Between tabs the marks are in doubt, and the model knows them.
    Path("new.csv").write_text("x\tday\n1,500\t02.01.1970\n\t02.01.1970\n9,250\t09.01.1970\n")
    found = run("predict m.pm new.csv --json").json
    assert (found["labels"][1], found["score"]) == (None, 0.0)
    run("predict m.pm new.csv --missing error", code=3)
    run("predict m.pm new.csv --thousands , --decimal .")
    Path("amounts.csv").write_text("x;y\n1.500;2\n9.500;3\n")
    run("fit amounts.csv -k 2 -m a.pm -q --thousands .")
    scores = [run("predict a.pm amounts.csv --json", *more).json["score"]
              for more in ((), ("--thousands", "none", "--decimal", "."))]  # fmt: skip
    assert scores[1] < scores[0] == 0
    told = powermeans.open_data("amounts.csv", prepare=Prepare(thousands="", decimal="."))
    assert powermeans.load("a.pm").score(told) == pytest.approx(scores[1])
    run("predict m.pm new.csv --report r.html")


def test_a_model_remembers_whether_sheets_have_a_header(run):
    sheet = pd.DataFrame([[2001, 2002], [1, 2], [9, 8], [8, 9]])
    sheet.to_excel("years.xlsx", header=False, index=False)
    for header, n_rows in (("--header", 3), ("--no-header", 4)):
        run(f"fit years.xlsx -k 2 -q -m m.pm {header}")
        assert run("predict m.pm years.xlsx --json").json["n_rows"] == n_rows


def test_columns_are_those_of_the_model_in_whatever_order(run):
    Path("points.csv").write_text("a,b,c\n0,0,9\n0,1,9\n9,9,0\n9,8,0\n")
    Path("swapped.csv").write_text("kind,c,a,b\nu,9,0,0\nv,9,0,1\nu,0,9,9\nw,0,9,8\n")
    Path("others.csv").write_text("z,x,y\n0,0,9\n0,1,9\n9,9,0\n9,8,0\n")
    run("fit points.csv -k 2 -m model.pm -q")
    straight = run("predict model.pm points.csv --json").json
    # Columns of other names can only be meant by their places.
    for file, *columns in (["swapped.csv"], ["points.csv", "--columns", "c,a,b"],
                           ["points.csv", "--columns", "3,1,2"],
                           ["points.csv", "--columns", "b\nc\na"],
                           ["others.csv", "--columns", "z,x,y"]):  # fmt: skip
        other = run("predict model.pm --json", file, *columns).json
        assert (other["labels"], other["score"]) == (straight["labels"], straight["score"])
        asked = re.split("[,\n]", columns[1]) if columns else None
        data = powermeans.open_data(file, columns=asked)
        assert powermeans.load("model.pm").predict(data).tolist() == straight["labels"]


def test_names_of_columns_may_differ_in_case_where_one_column_is_meant(run):
    run("fit customers.csv -k 3 -q -m m.pm -o l.csv")
    text = Path("customers.csv").read_text()
    head, rows = text.split("\n", 1)
    Path("upper.csv").write_text(f"{head.upper()}\n{rows}")
    for how in ("", "--memory-limit 1MB"):
        run(f"predict m.pm upper.csv -o u.csv --labels-only -q {how}")
        assert clusters_in("u.csv") == clusters_in("l.csv")
    lines, first = [f"{line},{line.partition(',')[0]}" for line in rows.split()], head.split(",")[0]
    twice = f"{head.replace(first, first.upper())},{first.title()}"
    Path("twice.csv").write_text("\n".join([twice, *lines]))
    assert f'no "{first}"' in run("predict m.pm twice.csv", code=3).err


def test_rows_that_lack_values_are_in_doubt_where_the_model_has_none(run):
    run("fit customers.csv -k 3 -q -m m.pm -o l.csv")
    head, first, rest = Path("customers.csv").read_text().split("\n", 2)
    Path("gap.csv").write_text("\n".join([head, f",{first.partition(',')[2]}", rest]))
    told = run("predict m.pm gap.csv -o g.csv").out
    assert "\ncheck this: missing values: 1 in " in told
    assert "since the model was fitted without missing values" in told


def test_names_of_clusters_are_saved_and_columns_of_files_tell_as_much_as_in_a_fit(run):
    rows = [(f"n{i}", ["web", "shop"][i % 2], 10 * (i % 2) + i % 3, "1/2/2024") for i in range(40)]
    lines = ["who,channel,returns,day", *(",".join(map(str, row)) for row in rows)]
    Path("may.csv").write_text("\n".join(lines) + "\n")
    shown = rows_shown(run("fit may.csv -k 2 -q -m m.pm --report a.html --name 1=Loyal").out)
    again = rows_shown(run("predict m.pm may.csv").err)
    assert [row["name"] for row in shown] == [row["name"] for row in again]
    assert (shown[0]["name"] != "", shown[1]["name"]) == (True, "Loyal")
    run("fit may.csv -k 2 -q -o named.csv --add name --name 0=A --name 1=Loyal")
    assert set(column_of(Path("named.csv").read_text(), "name")) == {"A", "Loyal"}
    run("predict m.pm may.csv -o named.csv --add name")
    assert set(column_of(Path("named.csv").read_text(), "name")) >= {"Loyal"}
    run("predict m.pm may.csv --report b.html")
    for page in (Path(name).read_text(encoding="utf-8") for name in ("a.html", "b.html")):
        assert "</button> Loyal</h3>" in page
        assert "“who” (identifier: nearly all values differ)" in page
        assert "“day” (ignore: dates count only if they are asked for)" in page
        assert "standardized</td>" in page


def test_a_report_of_a_fit_and_of_its_model(run):
    """They tell the same of clusters, and number rows as they stand in the file."""
    Path("holes.csv").write_text("1,\n2,2\n,3\n4,4\n50,50\n")
    options = "holes.csv --missing drop --name 1=Loyal"
    said = run("fit -k 2 -q --report a.html -m m.pm --scale none", *options.split())
    assert "c1 50 (average 19); c2 50 (average 19)" in said.out
    assert "\nwritten: b.html\n" in run("predict m.pm --report b.html", *options.split()).out
    for page in (Path(name).read_text(encoding="utf-8") for name in ("a.html", "b.html")):
        assert "<h1>Clusters of holes.csv</h1>" in page
        assert "<dd>3 <small>of 5</small></dd>" in page
        assert re.search("</button> (Higher|Lower) c1, (higher|lower) c2</h3>", page)
        assert "</button> Loyal</h3>" in page
        assert set(re.findall(r'<th scope="row">row (\d)</th>', page)) == {"2", "4", "5"}


def test_new_rows_that_the_model_does_not_know_are_told(run):
    rows = [(["web", "shop"][i % 2], 10 * (i % 2) + i % 3 / 10) for i in range(40)]

    def write(path, channel="web", times=1.0):
        cells = (f"{channel if name == 'web' else name},{times * value}" for name, value in rows)
        Path(path).write_text("\n".join(["channel,returns", *cells]) + "\n")

    write("may.csv")
    write("june.csv", channel="app")
    write("july.csv", times=100)
    run("fit may.csv -k 2 -q -m m.pm")
    assert run("predict m.pm may.csv -o l.csv").err == ""
    assert '"channel" has "app" (20 rows)' in run("predict m.pm june.csv -o l.csv").out
    assert 'far from those of the fit in "returns"' in run("predict m.pm july.csv -o l.csv").out
    with pytest.warns(UserWarning, match='far from those of the fit in "returns"'):
        powermeans.load("m.pm").predict("july.csv")
    assert "No such option: --as" in run("predict m.pm may.csv --as returns=share", code=2).err
