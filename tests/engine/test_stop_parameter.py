"""The rules that a user gives to end a fit, and the changed labels that they ask for."""

from __future__ import annotations

import math

import numpy as np
import pytest
from problems import blobs
from scipy import sparse
from sklearn.base import clone

import powermeans
from powermeans import (
    InertiaSettled,
    LabelsSettled,
    MaxSeconds,
    PowerKMeans,
    open_data,
)
from powermeans.divergences import resolve
from powermeans.engine.anneal import Stage, run_stage
from powermeans.engine.history import History
from powermeans.errors import ArgumentError
from powermeans.mathematics.rules import Hard, Power
from powermeans.mathematics.schedules import Fixed
from powermeans.points.opening import open_rows


@pytest.fixture(scope="module")
def points() -> np.ndarray:
    return blobs(3000, 4, 12, scale=2.0)


@pytest.mark.parametrize(("n_centers", "n_threads"), [(2, 1), (7, 3), (60, 3)])
@pytest.mark.parametrize(
    ("form", "divergence"),
    [
        (np.float64, "squared_euclidean"),
        (np.float32, "squared_euclidean"),
        (sparse.csr_array, "squared_euclidean"),
        (np.float64, "cosine"),
        (np.float64, "poisson"),
    ],
)
def test_changed_labels_are_those_that_differ(points, form, divergence, n_threads, n_centers):
    given = np.abs(points) if divergence == "poisson" else points
    given = form(given) if form is sparse.csr_array else given.astype(form)
    weights = np.random.default_rng(1).uniform(0, 2, size=len(points))
    rows = open_rows(given, weights, divergence=resolve(divergence), n_threads=n_threads)
    centers = rows.take(np.arange(n_centers) * 40).astype(np.float64)
    before = None
    for _ in range(8):
        labels, _ = rows.assign(centers)
        sums = rows.sweep(centers, Hard())
        if before is not None:
            assert sums.n_changed == np.count_nonzero(labels != before)
        before, centers = labels, sums.centers(fallback=centers)
    assert (sums + sums).n_changed is None  # parts hold no labels
    assert rows.sweep(centers, Power(-2.0)).n_changed is None


def test_labels_end_a_descent_before_the_tolerance_does(points):
    settings = {"effort": "none", "power": -math.inf, "random_state": 0, "tol": 0.0}
    long = PowerKMeans(12, **settings).fit(points)
    short = PowerKMeans(12, **settings, stop=LabelsSettled(0.01)).fit(points)
    assert len(short.history_) < len(long.history_)
    assert short.history_.changed[-1] <= 0.01 < short.history_.changed[1:-1].min()
    annealed = PowerKMeans(12, effort="none", random_state=0).fit(points).history_
    assert np.isnan(annealed.changed[annealed.power > -math.inf]).all()


def test_the_first_sweep_of_a_stage_compares_with_nothing(points):
    rows, history = open_rows(points), History()
    rows.sweep(points[:5], Hard())
    run_stage(rows, points[:5], Stage(Fixed(-math.inf), LabelsSettled(0.0), 50), history)
    assert history.records[0].changed == 1
    assert len(history.records) > 1


def test_one_of_several_rules_is_enough(points):
    settings = {"effort": "none", "random_state": 0, "tol": 0.0}
    labels, inertia = (
        PowerKMeans(12, **settings, stop=rule).fit(points).n_iter_
        for rule in (LabelsSettled(0.02), InertiaSettled(1e-9))
    )
    both = PowerKMeans(12, **settings, stop=InertiaSettled(1e-9) | LabelsSettled(0.02)).fit(points)
    assert both.n_iter_ == min(labels, inertia)


@pytest.mark.parametrize("stop", [LabelsSettled(0.1), InertiaSettled(0.0) | LabelsSettled(0.1)])
@pytest.mark.parametrize("options", [{"polish": False}, {}, {"divergence": "manhattan"}], ids=str)
def test_labels_are_refused_where_nobody_holds_them(stop, options, points):
    given = points if options else open_data(points, rows_per_part=500)
    sweeps = []
    model = PowerKMeans(3, stop=stop, callback=sweeps.append, **options)
    with pytest.raises(ArgumentError, match="InertiaSettled") as raised:
        model.fit(given)
    assert raised.value.argument == "stop"
    assert not sweeps


@pytest.mark.parametrize("bad", [-0.1, 1.1, math.nan])
def test_shares_and_times_that_cannot_be_are_refused(bad):
    for make in (LabelsSettled, InertiaSettled):
        with pytest.raises(ValueError, match=r"must be from 0 to 1"):
            make(bad)
    with pytest.raises(ValueError, match="must not be negative"):
        MaxSeconds(-abs(bad))
    with pytest.raises(TypeError):
        LabelsSettled(0.1) | 5


def test_rules_are_kept_by_clones_files_and_their_texts(points, tmp_path):
    stop = LabelsSettled(1e-3) | InertiaSettled(1e-6) | MaxSeconds(5.0)
    model = PowerKMeans(3, stop=stop, random_state=0).fit(points)
    powermeans.save(model, tmp_path / "model")
    assert clone(model).stop == powermeans.load(tmp_path / "model").stop == stop
    assert repr(stop).startswith("LabelsSettled(share=0.001) | InertiaSettled(share=1e-06) | Max")
