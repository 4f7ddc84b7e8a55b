"""The code in the report makes the same model."""

from __future__ import annotations

import html
import io
import math
import re
import shlex
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler

import powermeans
from powermeans import (
    AuthorsSchedule,
    Fixed,
    KMeans,
    LabelsSettled,
    MaxSeconds,
    PathRecorder,
    PowerKMeans,
    SphericalMixture,
)
from powermeans.app.command import main
from powermeans.app.report.python_code import python_code
from powermeans.divergences import Binomial

POINTS = np.random.default_rng(0).integers(0, 9, size=(60, 2)).astype(float)


STOP = LabelsSettled(0.0) | MaxSeconds(math.inf)


@pytest.mark.parametrize(
    "model",
    [
        PowerKMeans(4, random_state=3),
        PowerKMeans(4, random_state=3, schedule=Fixed(-math.inf), effort="none"),
        PowerKMeans(
            3,
            power=-math.inf,
            stop=LabelsSettled(0.0) | MaxSeconds(math.inf),
            random_state=np.int64(1),
        ),
        PowerKMeans(3, schedule=AuthorsSchedule(-1.0), polish=False, random_state=0),
        PowerKMeans(3, divergence=Binomial(n_trials=9), random_state=0),
        PowerKMeans(3, divergence="poisson", random_state=0, callback=PathRecorder()),
        KMeans(5, n_init=2, random_state=0),
        SphericalMixture(2, random_state=0),
    ],
)
def test_running_the_code_gives_the_same_centers(
    model: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    np.save(tmp_path / 'it\'s "here".npy', POINTS)
    model.fit(POINTS)
    namespace: dict[str, Any] = {}
    exec(python_code(model, str(tmp_path / 'it\'s "here".npy')), namespace)
    np.testing.assert_array_equal(namespace["model"].cluster_centers_, model.cluster_centers_)
    assert capsys.readouterr().out


def test_what_cannot_be_written_out_is_left_to_the_reader() -> None:
    model = PowerKMeans(2, init=np.zeros((2, 2)), effort="none")
    code = python_code(model)
    assert "init = ...  # as it was given\n" in code
    assert 'PowerKMeans(effort="none", init=init, n_clusters=2)' in code
    assert "X = ...  # the points, one a row" in code
    compile(code, "code", "exec")


def ran(code: str) -> Any:
    """The model that the code made."""
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    return namespace["model"]


def test_what_no_code_can_do_again_is_said_in_a_comment() -> None:
    assert "# Without a random_state" in python_code(PowerKMeans(2))
    assert "# Without a random_state" not in python_code(PowerKMeans(2, random_state=1))
    assert "# The clock ends this search" in python_code(PowerKMeans(2, stop=MaxSeconds(1.5)))
    assert "# The clock" not in python_code(PowerKMeans(2, stop=MaxSeconds(math.inf)))
    code = python_code(PowerKMeans(2, random_state=0), "-", reading={"delimiter": ";"})
    assert "# The points came from standard input: write them to the file standard-input" in code
    assert 'read_table("standard-input", delimiter=";")' in code


def test_columns_are_those_that_the_model_knows_where_nobody_says_how_it_was_read(
    tmp_path: Path,
) -> None:
    table = pd.DataFrame(POINTS, columns=["height", "a, b"]).assign(name="x", age=7.0)
    table.to_csv(tmp_path / "people.csv", index=False)
    model = PowerKMeans(3, random_state=0).fit(table[["a, b", "height"]])
    code = python_code(model, str(tmp_path / "people.csv"))
    assert ran(code).inertia_ == model.inertia_


@pytest.mark.parametrize("is_weighted", [False, True])
@pytest.mark.parametrize("kind", [StandardScaler, MinMaxScaler])
def test_code_scales_as_the_points_were_scaled(
    kind: Any, is_weighted: bool, tmp_path: Path
) -> None:
    weights = np.arange(1.0, 61.0)
    scaler = MinMaxScaler((0, 10)) if kind is MinMaxScaler else StandardScaler(with_mean=False)
    seen = {"sample_weight": weights} if is_weighted and kind is StandardScaler else {}
    points = scaler.fit_transform(POINTS * [1.0, 100.0], **seen)
    model = PowerKMeans(3, random_state=0).fit(points, sample_weight=weights)
    np.save(tmp_path / "points.npy", np.column_stack([POINTS * [1.0, 100.0], weights]))
    reading = {"columns": ["1", "2"], "weights": "3"}
    source = str(tmp_path / "points.npy")
    code = python_code(model, source, [scaler], reading=reading, weights=weights)
    assert ran(code).inertia_ == model.inertia_


def test_weights_that_were_read_from_no_file_are_left_to_the_reader() -> None:
    code = python_code(PowerKMeans(2, random_state=0), "a.npy", weights=np.ones(3))
    assert "weights = ...  # one for each row" in code
    assert ".fit(X, sample_weight=weights)" in code


# What the commands hand over, by running what their pages show.


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert not ended.value.code


def code_of(page: Path) -> str:
    found = re.search(r'<code id="program">(.*?)</code>', page.read_text("utf-8"), re.DOTALL)
    assert found
    return html.unescape(found[1])


def files(folder: Path) -> None:
    """One table in many forms; the weights and the fourth column matter to a fit."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(
        rng.normal(size=(80, 4)) * [1, 2, 3, 9], columns=["a", "b", "w", "far off"]
    )
    table["w"] = rng.integers(1, 9, size=80).astype(float)
    table.to_csv(folder / "plain.csv", index=False)
    table.to_csv(folder / "decimal.txt", index=False, sep=";", decimal=",")
    table.to_csv(folder / "bare.tsv", index=False, sep="\t", header=False)
    table.to_parquet(folder / "table.parquet", index=False)
    table.to_feather(folder / "table.arrow")
    np.savez(folder / "two.npz", first=rng.normal(size=(9, 9)), second=table.to_numpy())
    np.save(folder / "single.npy", table.to_numpy().astype(np.float32))
    holes = table.mask(rng.random(table.shape) < 0.1)
    holes.assign(w=table["w"]).to_csv(folder / "holes.csv", index=False)


CASES = [
    "plain.csv",
    "plain.csv --columns a,b --weights w",
    "plain.csv --columns 'far off,2' --scale minmax",
    "plain.csv --weights w --scale standard",
    "plain.csv --header --delimiter , --power -2 --effort none",
    "decimal.txt --weights w",
    "bare.tsv --columns 1,4",
    "bare.tsv --no-header --weights c3",
    "table.parquet --columns b,a",
    "table.arrow --scale standard",
    "two.npz --array second --weights c3",
    "single.npy --scale standard",
    "holes.csv --missing drop --weights w",
    "holes.csv --missing observed --weights w --scale standard",
]


@pytest.mark.parametrize("options", CASES)
def test_the_code_in_the_page_of_a_fit_and_of_a_saved_model_gives_the_same(
    options: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    files(tmp_path)
    source, *rest = shlex.split(options)
    run("fit", source, *rest, "-k", "3", "-q", "-m", "m.pm", "--report", "fit.html")
    found = powermeans.load("m.pm")
    expected = found[-1] if isinstance(found, Pipeline) else found
    again = ran(code_of(Path("fit.html")))
    assert again.inertia_ == expected.inertia_
    np.testing.assert_array_equal(again.labels_, expected.labels_)
    rest = rest[: rest.index("--power")] if "--power" in rest else rest
    at = rest.index("--scale") if "--scale" in rest else len(rest)
    run("report", "m.pm", source, *rest[:at], *rest[at + 2 :], "-o", "report.html")
    code = code_of(Path("report.html"))
    namespace: dict[str, Any] = {}
    exec(code, namespace)
    np.testing.assert_array_equal(namespace["model"].predict(namespace["X"]), expected.labels_)


def test_the_page_of_standard_input_says_that_it_cannot_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = "a,b\n" + "\n".join(f"{x},{y}" for x, y in POINTS)
    arguments = ["fit", "-", "-k", "3", "-q", "-m", "m.pm", "--report", "r.html"]
    for words in (arguments, ["report", "m.pm", "-", "-o", "r.html"]):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        run(*words)
        code = code_of(Path("r.html"))
        assert "# The points came from standard input" in code
        Path("standard-input").write_text(text)
        assert ran(code).inertia_ == powermeans.load("m.pm").inertia_
