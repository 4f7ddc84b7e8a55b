import html
import math
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler

import powermeans
from powermeans import KMeans, PowerKMeans, Prepare
from powermeans.divergences import Binomial
from powermeans.engine import PathRecorder
from powermeans.engine.stopping import LabelsSettled, MaxSeconds
from powermeans.mathematics.schedules import AuthorsSchedule, Fixed
from powermeans.relatives import SphericalMixture
from powermeans_tables.report import python_code as code


def python_code(model, source=None, prepare=None, *, weights=None, **reading):
    scalers = [prepare] * (prepare is not None)
    about = SimpleNamespace(model=model, prepare=prepare, weights=weights, scalers=scalers)
    return code.python_code(about, source, **reading)


POINTS = np.random.default_rng(0).integers(0, 9, size=(60, 2)).astype(float)


STOP = LabelsSettled(0.0) | MaxSeconds(math.inf)


def ran(code, **filled_in):
    """Run code in which these names stand for what the reader fills in."""
    for name in filled_in:
        code = re.sub(rf"^{name} = \.\.\..*$", "", code, flags=re.MULTILINE)
    exec(code, filled_in)
    return filled_in


@pytest.mark.parametrize(
    "model",
    [
        PowerKMeans(4, random_state=3),
        PowerKMeans(4, random_state=3, schedule=Fixed(-math.inf), effort="none"),
        PowerKMeans(3, power=-math.inf, stop=STOP, random_state=np.int64(1)),
        PowerKMeans(3, schedule=AuthorsSchedule(-1.0), polish=False, random_state=0),
        PowerKMeans(3, divergence=Binomial(n_trials=9), random_state=0),
        PowerKMeans(3, divergence="poisson", random_state=0, callback=PathRecorder()),
        KMeans(5, n_init=2, random_state=0),
        SphericalMixture(2, random_state=0),
    ],
)
def test_running_the_code_gives_the_same_centers(model, capsys):
    again = ran(python_code(model.fit(POINTS)), X=POINTS)["model"]
    np.testing.assert_array_equal(again.cluster_centers_, model.cluster_centers_)
    assert capsys.readouterr().out


ONE, PREPARE = PowerKMeans(2, random_state=1), Prepare(scale="minmax")


@pytest.mark.parametrize(
    ("code", "has", "lacks"),
    [
        (python_code(PowerKMeans(2, init=np.zeros((2, 2)), effort="none")),
         ["init = ...  #", "(effort='none', init=init, n_clusters=2)", "X = ..."], "# The clock"),
        (python_code(PowerKMeans(2)), ["# Without a random_state"], "# The clock"),
        (python_code(ONE), [], "# Without a random_state"),
        (python_code(PowerKMeans(2, stop=MaxSeconds(1.5))), ["# The clock ends this"], "init"),
        (python_code(PowerKMeans(2, stop=MaxSeconds(math.inf))), [], "# The clock"),
        (python_code(ONE, "-", PREPARE, reading={"delimiter": ";"}),
         ["# The rows came from standard input", 'read_frame(\'standard-input\', delimiter=\';\')'],
         "X = ..."),
        (python_code(ONE, 'it\'s "here".csv', PREPARE), ["read_frame('it\\'s "], "weights"),
        (python_code(ONE, "a.npy", weights=np.ones(3)),
         ["weights = ...  # one for each row", ".fit(X, sample_weight=weights)"], "read_frame"),
    ],
)  # fmt: skip
def test_what_cannot_be_written_out_or_done_again_is_said(code, has, lacks):
    compile(code, "code", "exec")
    assert all(words in code for words in has)
    assert lacks not in code


def code_of(page):
    found = re.search(r"<pre[^>]*><code>(.*?)</code>", Path(page).read_text("utf-8"), re.DOTALL)
    return html.unescape(found[1])


def test_the_code_repeats_what_scales_after_prepare(run):
    frame = pd.DataFrame(POINTS, columns=["a", "b"])
    scalers = [Prepare(scale="minmax"), StandardScaler(with_std=False), RobustScaler()]
    points = make_pipeline(*scalers).fit_transform(frame)
    powermeans.report(PowerKMeans(3).fit(points), points, "r.html", scalers=scalers)
    np.testing.assert_array_equal(ran(code_of("r.html"), frame=frame)["X"], points)


@pytest.fixture
def files(run):
    """One table in many forms; the weights and the fourth column matter to a fit."""
    rng = np.random.default_rng(3)
    points = rng.normal(size=(80, 4)) * [1, 2, 3, 9]
    table = pd.DataFrame(points, columns=["a", "b", "w", "far off"])
    table["w"] = rng.integers(1, 9, size=80).astype(float)
    table.to_csv("plain.csv", index=False)
    table.to_csv("decimal.txt", index=False, sep=";", decimal=",")
    table.to_csv("bare.tsv", index=False, sep="\t", header=False)
    table.to_parquet("table.parquet", index=False)
    table.to_feather("table.arrow")
    np.savez("two.npz", first=rng.normal(size=(9, 9)), second=table.to_numpy())
    np.save("single.npy", table.to_numpy().astype(np.float32))
    holes = table.mask(rng.random(table.shape) < 0.1)
    holes.loc[7] = np.nan  # a line without values, or with a weight alone
    holes.to_csv("blank.csv", index=False)
    holes.assign(w=table["w"]).to_csv("holes.csv", index=False)


@pytest.mark.parametrize(
    "options",
    [
        "plain.csv",
        "plain.csv --columns a,b --weights w",
        "plain.csv --columns 'far off,2' --scale minmax",
        "plain.csv --weights w --scale standard",
        "plain.csv --header --delimiter , --effort none",
        "plain.csv --skip-rows 4,7",
        "decimal.txt --weights w",
        "bare.tsv --columns 1,4",
        "bare.tsv --no-header --weights c3",
        "table.parquet --columns b,a",
        "table.arrow --scale standard",
        "two.npz --array second --weights c3",
        "single.npy --scale standard",
        "holes.csv --missing drop --weights w",
        "holes.csv --missing observed --weights w --scale standard",
        "holes.csv --skip-rows 4,7 --weights w",
        "holes.csv --columns 1,2,4 --missing drop",
        "holes.csv --columns 1,2,4",
        "blank.csv",
        "-",
    ],
)
def test_the_code_in_the_page_of_a_fit_and_of_a_saved_model_gives_the_same(options, run, files):
    source, *rest = shlex.split(options)
    text = Path("plain.csv").read_bytes()
    Path("standard-input").write_bytes(text)  # as the page of standard input says
    run("fit -k 3 -q -m m.pm --report fit.html", source, *rest, stdin=text)
    found = powermeans.load("m.pm")
    expected = found[-1]
    again = ran(code_of("fit.html"))["model"]
    assert again.inertia_ == expected.inertia_
    np.testing.assert_array_equal(again.labels_, expected.labels_)
    rest = rest[: rest.index("--effort")] if "--effort" in rest else rest
    at = rest.index("--scale") if "--scale" in rest else len(rest)
    run("predict m.pm --report report.html", source, *rest[:at], *rest[at + 2 :], stdin=text)
    found = ran(code_of("report.html"))
    np.testing.assert_array_equal(found["model"][-1].predict(found["X"]), expected.labels_)
