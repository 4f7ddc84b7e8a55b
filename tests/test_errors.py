"""An error in fields says the same in Python's words and in those of the command line."""

import dataclasses
import datetime
import inspect
import itertools
import math
import pickle
import pkgutil
import re
import shlex
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from test_public_names import in_the_reference

import powermeans
from powermeans import PowerKMeans, choose_k, plots
from powermeans.divergences import Gamma
from powermeans.engine import seeds
from powermeans.engine.stopping import InertiaSettled, LabelsSettled, MaxSeconds
from powermeans.errors import Argument, ArgumentError, EntryError, FewRowsError
from powermeans.mathematics import rules
from powermeans.mathematics.schedules import AuthorsSchedule, Fixed, Geometric
from powermeans.scale.checkpoint import CheckpointError
from powermeans_tables.command.failures import in_options
from powermeans_tables.command.options import split_names

COLUMNS = ArgumentError("has text", "leave it out with ", Argument("columns", ["x", "a b"]))
THREADS = ArgumentError("is too many", argument="n_threads", value=5000)


@pytest.mark.parametrize(
    ("error", "in_python", "typed"),
    [
        (COLUMNS, 'has text: leave it out with columns=["x", "a b"]', "--columns 'x,a b'"),
        (THREADS, "n_threads=5000 is too many", "--threads 5000 is too many"),
        (ArgumentError("t", Argument("decimal", ",")), 't: decimal=","', "t: --decimal ,"),
        (ArgumentError("t", "pass ", Argument("delimiter")), "t: pass delimiter=", "--delimiter"),
        (
            FewRowsError(3, 4),
            "n_samples=3 should be >= n_clusters=4: pass more rows, or n_clusters of at most 3",
            "--clusters 4 is more than the 3 rows: ask for fewer clusters",
        ),
        (ValueError("plain"), "plain", "plain"),
    ],
)
def test_each_interface_names_what_its_users_type(error, in_python, typed) -> None:
    assert str(error) == in_python
    assert in_options(error).endswith(typed)


def test_each_error_of_a_fit_names_argument_and_value_and_way_out():
    names = ["a,b", 'the "x"', "it's", "größe", "plain", "{y}"]
    error = ArgumentError('"{x}" has text', "pass ", Argument("columns", names))
    option, typed = shlex.split(in_options(error).partition("pass ")[2])
    assert (option, split_names(typed)) == ("--columns", names)
    assert str(error).startswith('"{x}" has text: pass columns=')
    with pytest.raises(ArgumentError) as told:
        PowerKMeans(2, n_threads=5000).fit(np.eye(4))
    assert (told.value.argument, told.value.value) == ("n_threads", 5000)
    with pytest.raises(ArgumentError) as told:
        choose_k(np.repeat(np.eye(3), 3, axis=0), range(1, 6))
    assert (told.value.argument, told.value.value) == ("k", 5)


WRONG = [
    None, "x", b"x", [], [None], (1, "a"), 1j, math.nan, -(10**400), 10**400, True, object(),
    np.array([[1.0, 2.0]]), np.datetime64("NaT"),
]  # fmt: skip
RIGHT = [
    rules.Power(-1.0), rules.Harmonic(), rules.Gaussian(0.7, (1.0,)), rules.Priced((1.0,)),
    rules.UnequalGaussians((1.0,), (1.0,), 2), Geometric(-1.0, 2.0), Fixed(-1.0),
    AuthorsSchedule(-1.0), seeds.ParallelSeeds(), seeds.MarkovChainSeeds(), seeds.TreeSeeds(),
    MaxSeconds(1.0), LabelsSettled(0.1), InertiaSettled(0.1), Gamma(),
]  # fmt: skip


@pytest.mark.parametrize("right", RIGHT, ids=repr)
def test_whatever_is_no_number_is_named_where_a_number_is_wanted(right) -> None:
    for field in dataclasses.fields(right):
        for wrong in WRONG if field.compare else [one for one in WRONG if np.ndim(one) == 0]:
            if wrong is not None or field.default is not None:
                with pytest.raises(ValueError, match=f"{field.name[:8]}.*="):
                    dataclasses.replace(right, **{field.name: wrong})


INF, NAN, POWERS = math.inf, math.nan, (Geometric(-1, 2), AuthorsSchedule(-1))
OUT_OF_RANGE = [
    (rules.Harmonic(), "p", (0.0, 0.01, -1.0, NAN, INF)),
    (rules.Harmonic(3.5), "unit", (0.0, -1.0, NAN, INF)),
    (rules.Gaussian(), "variance", (0.0, -1.0, NAN, INF)),
    *((one, "start", (0.0, 1.0, -INF, NAN)) for one in POWERS),
    *((one, "growth", (1.0, 0.5, INF, NAN)) for one in POWERS),
    (Fixed(-1.0), "power", (0.0, 1.0, NAN)),
    (Gamma(), "shape", (0.0, -1.0, NAN, INF)),
    (AuthorsSchedule(-1), "step", (0.0, INF)),
    (AuthorsSchedule(-1), "sweeps_per_power", (0, 1.5)),
    (AuthorsSchedule(-1), "lowest", (0.0, NAN)),
    *((one, "share", (-0.1, 1.1, NAN)) for one in (LabelsSettled(0.1), InertiaSettled(0.1))),
    (MaxSeconds(1.0), "seconds", (-0.1, NAN)),
    (seeds.ParallelSeeds(), "n_rounds", (0,)),
    (seeds.ParallelSeeds(), "oversampling", (0.0,)),
    (seeds.MarkovChainSeeds(), "chain_length", (0, 2.5)),
    (seeds.MarkovChainSeeds(), "exponent", (-1.0, NAN)),
]


@pytest.mark.parametrize(("right", "name", "values"), OUT_OF_RANGE)
def test_numbers_out_of_range_are_named(right, name, values) -> None:
    for value in values:
        with pytest.raises(ValueError, match=f"{name}={value} must be"):
            dataclasses.replace(right, **{name: value})


ERRORS = [COLUMNS, THREADS, FewRowsError(3, 4), EntryError("X", 1, 0, -3.0, "t")]


@pytest.mark.parametrize("error", [*ERRORS, CheckpointError(Path("thesis"), "is no checkpoint")])
def test_fields_come_back_from_another_process(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert vars(again) == vars(error)
    assert str(again) == str(error) == again.args[0]
    assert repr(again) == repr(error) == f"{type(error).__name__}({str(error)!r})"


X = np.random.default_rng(0).normal(size=(9, 2))
FRAME = pd.DataFrame(X, columns=["age", "income"])
DAY = datetime.date(2024, 5, 31)
OF_FRAME = PowerKMeans(2, random_state=0).fit(FRAME)

ROWS = ("X", "points", "centers", "reference_centers", "centers_a", "centers_b")
RIGHT_ARGUMENTS = {
    **dict.fromkeys(ROWS, np.eye(4)[:, :2]),
    **dict.fromkeys(("sample_weight", "counts", "cluster_counts"), np.ones(4)),
    **dict.fromkeys(("labels", "labels_true", "labels_pred"), (0, 0, 1, 1)),
    **dict.fromkeys(("sq_dist", "distances"), np.eye(4) + 1),
    **dict.fromkeys(("inertia", "inertia_of_one", "n_points"), 8),
    **dict.fromkeys(("n_centers", "n_features", "n_clusters", "random_state"), 2),
    "sizes": [1, 2, 3],
    "inertias": [9.0, 3.0, 2.0],
    "power": -1.0,
}
OF_FORMULAS = [
    *[*WRONG, {}, DAY, [[1.0, 2.0], [3.0]], [1, [2]], np.zeros((4, 2, 2)), [math.nan] * 4],
    *[[["a"] * 2] * 4, np.zeros(3), np.full((4, 2), math.nan), np.empty((0, 2))],
]
OF = re.compile(r"\.(metrics|criteria|power_mean)\.|critical_power$")
FORMULAS = [name for name in in_the_reference() if OF.search(name)]


@pytest.mark.parametrize("name", FORMULAS)
def test_a_formula_takes_an_argument_or_names_one(name) -> None:
    formula = pkgutil.resolve_name(name)
    known = inspect.signature(formula).parameters.keys() & RIGHT_ARGUMENTS.keys()
    right = {one: RIGHT_ARGUMENTS[one] for one in known}
    formula(**right)
    for one, wrong in itertools.product(known, OF_FORMULAS):
        try:
            formula(**right | {one: wrong})
        except (TypeError, ValueError) as error:
            if not re.search(rf"\b({'|'.join(known)})\b", str(error)):
                pytest.fail(f"{one}={wrong!r}: {error}")


@pytest.mark.parametrize(
    ("mistake", "told"),
    [
        (lambda: PowerKMeans("3").fit(X), r"Got '3' instead\. Pass n_clusters=3 without quotes\.$"),
        (lambda: PowerKMeans(2, effort="fastest").fit(X), r'Did you mean "fast"\?$'),
        (lambda: PowerKMeans(2, divergence="euclidean").fit(X), r'mean "squared_euclidean"\?$'),
        (lambda: PowerKMeans(2, stop=60).fit(X), r"Pass powermeans.engine.stopping.MaxSeconds\(60"),
        (lambda: PowerKMeans(2, missing="drop").fit(X), r"Got 'drop' instead\.$"),
        (lambda: PowerKMeans(2).fit(None), "X is None: pass an array or a table"),
        (lambda: PowerKMeans(2).fit({"a": [1, 2]}), "X is a dict: pass an array or a table"),
        (lambda: PowerKMeans(2).fit([[1, 2], [3]]), "has 2 values in row 0 and 1 in row 1: give"),
        (lambda: PowerKMeans(2).fit(X[None]), r"example X\.reshape\(len\(X\), -1\)$"),
        (lambda: PowerKMeans(2).fit(X * 1j), r"not supported: pass numpy\.hstack\(\[X\.real"),
        (lambda: PowerKMeans(2).fit(X.astype("datetime64[s]")), "X has dates or durations: leave"),
        (lambda: PowerKMeans(2).fit(FRAME.assign(w=pd.Timestamp(0))), "in column 'w': leave"),
        (lambda: PowerKMeans(2).fit(pa.table({"day": [DAY, DAY]})), "in column 'day': leave"),
        (lambda: PowerKMeans(2).fit([["a"], ["b"]]), "row 0, column 0: .* powermeans.Prepare$"),
        (lambda: PowerKMeans(2).fit(FRAME.assign(city="Bern")), "'Bern' in column 'city'"),
        (lambda: PowerKMeans(2).fit([["a" * 999], ["b"]]), r"the text 'a{59} in row 0"),
        (lambda: PowerKMeans(2).fit([[["a", "b"]]]), "could not convert string to float: 'a'"),
        (
            lambda: PowerKMeans(2).fit(pa.table({"age": [3, 4], "plan": ["x", "y"]})),
            "the text 'x' in row 0, column 1",
        ),
        (lambda: PowerKMeans(2).fit(FRAME["age"]), "(?i)expected (a 2-dimensional|2D array)"),
        (lambda: PowerKMeans(2).labels_, "'labels_': it is not fitted, so call fit first"),
        (lambda: OF_FRAME.label_, "no attribute 'label_'$"),
        (lambda: OF_FRAME.predict(FRAME[["income", "age"]]), r"Pass X\[model.feature_names_in_\]$"),
        (lambda: powermeans.breaks(X, 2), r"values has the shape \(9, 2\): pass one column"),
        (lambda: plots.choice_of_k(OF_FRAME), "is a PowerKMeans: pass what choose_k returned"),
        (lambda: plots.rules(OF_FRAME), "explanation is a PowerKMeans: pass what explain returned"),
        (lambda: seeds.ParallelSeeds(1, oversampling=0.5), "less than one candidate"),
        (lambda: powermeans.PowerKmeans, 'did you mean "PowerKMeans"[?]$'),
        (lambda: powermeans.FuzzyCMeans, "'FuzzyCMeans': it is in powermeans.methods$"),
        (lambda: powermeans.MaxSeconds, "'MaxSeconds': it is in powermeans.engine.stopping$"),
        (lambda: powermeans.Fixed, "'Fixed': it is in powermeans.mathematics.schedules$"),
        (lambda: powermeans.nothing_like_it, "no attribute 'nothing_like_it'$"),
    ],
)
def test_a_mistake_is_named_with_its_way_out(mistake, told) -> None:
    with pytest.raises((AttributeError, TypeError, ValueError), match=told):
        mistake()


def test_a_pickle_is_named(tmp_path) -> None:
    (tmp_path / "model.pkl").write_bytes(pickle.dumps(OF_FRAME))
    with pytest.raises(powermeans.errors.ModelFileError, match="or joblib read if you trust it"):
        powermeans.load(tmp_path / "model.pkl")
