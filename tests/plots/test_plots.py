import math
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.metrics import silhouette_score
from sklearn.pipeline import make_pipeline

import powermeans
from powermeans import PowerKMeans, plots
from powermeans.engine import PathRecorder
from powermeans.mathematics.schedules import Fixed
from powermeans.methods import KernelPowerKMeans, SpectralClustering
from powermeans.plots.canvas import OKABE_ITO, color_of, marker_of
from powermeans.plots.plane import Plane

RNG = np.random.default_rng(0)
PLACES = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
CLOUDS = np.repeat(PLACES, [10, 20, 30], axis=0) + RNG.normal(scale=0.5, size=(60, 2))
MODEL = PowerKMeans(3, init=PLACES, effort="none").fit(CLOUDS)
WIDE = np.hstack([CLOUDS, RNG.normal(scale=0.1, size=(60, 4))])
WIDE_MODEL = PowerKMeans(3, effort="none", random_state=0).fit(WIDE)
MANY = powermeans.KMeans.from_centers(RNG.normal(size=(300, 2)))
PATH = PathRecorder()
FITTED = PowerKMeans(3, effort="none", random_state=0, callback=PATH).fit(CLOUDS)
CHOICE = powermeans.choose_k(CLOUDS, [2, 3, 4], random_state=0)

DRAWN: dict[str, tuple[Any, ...]] = {
    "annealing_path": (PATH, CLOUDS),
    "center_bars": (MODEL, CLOUDS),
    "choice_of_k": (CHOICE,),
    "clusters": (MODEL, CLOUDS),
    "convergence": (MODEL,),
    "flows": (powermeans.what_changed(MODEL, FITTED, CLOUDS),),
    "profiles": (MODEL, CLOUDS),
    "rules": (powermeans.explain(MODEL, CLOUDS),),
    "silhouettes": (MODEL, CLOUDS),
    "uncertainty": (MODEL, CLOUDS),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_plot_draws_on_the_axes_it_is_given_or_on_those_of_a_figure(name, tmp_path) -> None:
    assert list(DRAWN) == plots.__all__ == dir(plots)
    draw, (figure, (other, given)) = getattr(plots, name), pyplot.subplots(1, 2)
    assert draw(*DRAWN[name], ax=given) is given
    assert (given.has_data(), other.has_data()) == (True, False)
    assert pyplot.get_fignums() == [figure.number]
    pyplot.close(figure)
    axes = draw(*DRAWN[name])
    assert isinstance(axes, Axes)
    assert len(pyplot.get_fignums()) == 1
    axes.figure.savefig(tmp_path / "plot.png", dpi=30)
    assert (tmp_path / "plot.png").stat().st_size > 500


def test_matplotlib_is_missed_with_a_way_out(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "powermeans\[plot\]"'):
        plots.clusters(MODEL, CLOUDS)


SPECTRAL = SpectralClustering(3, random_state=0).fit(CLOUDS)
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: plots.silhouettes(SPECTRAL, CLOUDS[:5]), ValueError, "pass the X of its fit"),
    (lambda: plots.silhouettes(PowerKMeans(1).fit(CLOUDS), CLOUDS), ValueError, "at least 2"),
    (lambda: plots.uncertainty(SPECTRAL, CLOUDS), ValueError, "Clustering has no distances"),
    (lambda: plots.convergence(PowerKMeans.from_centers(PLACES)), ValueError, "has no history of"),
    (lambda: plots.convergence({}), ValueError, "model is empty"),
    (lambda: plots.convergence(MODEL, by="minutes"), ValueError, "by='minutes' is unknown"),
    (lambda: plots.annealing_path(PathRecorder(), CLOUDS), ValueError, "path is empty"),
    (lambda: plots.annealing_path([PLACES, PLACES[:2]], CLOUDS), ValueError, "different numbers"),
    (lambda: plots.choice_of_k(CHOICE, "age"), ValueError, "column='age' is not in the table"),
    (lambda: plots.center_bars(MANY, CLOUDS), ValueError, "has 300 centers, and bars show 200"),
    *((lambda draw=draw: draw(CLOUDS, MODEL), TypeError, "and X is one: the model comes first")
      for draw in (plots.clusters, plots.silhouettes, plots.profiles)),
]  # fmt: skip


@pytest.mark.parametrize(("call", "kind", "named"), REFUSED)
def test_what_cannot_be_drawn_is_refused(call, kind, named) -> None:
    with pytest.raises(kind, match=named):
        call()


def points_drawn(axes: Axes) -> list[np.ndarray]:
    return [np.asarray(drawn.get_offsets()) for drawn in axes.collections if drawn.get_label()]


def test_each_cluster_is_drawn_where_its_points_are_for_any_estimator() -> None:
    axes = plots.clusters(MODEL, CLOUDS, boundaries=False)
    for label, drawn in enumerate(points_drawn(axes)):
        np.testing.assert_array_equal(drawn, CLOUDS[MODEL.labels_ == label])
    assert [text.get_text() for text in axes.texts] == ["0", "1", "2"]
    np.testing.assert_allclose([text.get_position() for text in axes.texts], MODEL.cluster_centers_)
    axes = plots.clusters(MODEL, CLOUDS, max_points=7, boundaries=False)
    assert sum(len(drawn) for drawn in points_drawn(axes)) == 7
    assert axes.get_title() == "3 clusters, 7 of 60 points"
    holed = CLOUDS.copy()
    holed[0, 1] = np.nan
    model = PowerKMeans(3, init=PLACES, effort="none", missing="observed").fit(holed)
    axes = plots.clusters(model, holed, boundaries=False)
    label = model.labels_[0]
    assert points_drawn(axes)[label][0, 1] == model.cluster_centers_[label, 1]
    theirs = SklearnKMeans(3, n_init=1, random_state=0).fit(CLOUDS)
    kernel = KernelPowerKMeans(3, random_state=0).fit(CLOUDS)
    for model in (theirs, kernel, SPECTRAL):
        drawn = points_drawn(plots.clusters(model, CLOUDS, boundaries=False))
        for label in range(3):
            np.testing.assert_array_equal(drawn[label], CLOUDS[model.labels_ == label])


def test_colours_and_shapes_tell_56_clusters_apart_and_small_points_leave_ink(monkeypatch) -> None:
    assert len(set(OKABE_ITO)) == 7
    assert len({(color_of(label), marker_of(label)) for label in range(56)}) == 56
    of_many = plots.clusters(MANY, MANY.cluster_centers_).collections  # as quickly as of 56
    assert [len(each.get_offsets()) for each in of_many] == [6] * 20 + [5] * 36
    places = np.repeat(100.0 * np.arange(8), 2500)[:, None] * [1.0, 0.0]
    model = PowerKMeans(8, random_state=0).fit(places)
    monkeypatch.setitem(pyplot.rcParams, "figure.dpi", 72)
    ax = plots.clusters(model, places, boundaries=False, max_points=len(places))
    for text in list(ax.texts):
        text.remove()
    for cloud in ax.collections:
        cloud.set_alpha(1.0)
    ax.figure.canvas.draw()
    image = np.asarray(ax.figure.canvas.buffer_rgba())[::-1, :, :3]
    for x, y in ax.transData.transform(np.unique(places, axis=0)).round().astype(int):
        assert image[y - 3 : y + 4, x - 3 : x + 4].min() < 200


def test_the_plane_holds_most_variance() -> None:
    rng = np.random.default_rng(0)
    rotation = np.linalg.qr(rng.normal(size=(6, 6)))[0]
    flat = rng.normal(size=(500, 2)) * [5.0, 3.0]
    points = np.hstack([flat, np.zeros((500, 4))]) @ rotation.T + 7.0
    plane = Plane.of(points, list("abcdef"))
    assert plane.share == pytest.approx(1.0)
    np.testing.assert_allclose(plane.lift(plane.points), points, atol=1e-9)
    np.testing.assert_allclose(plane.project(points), plane.points, atol=1e-9)
    thin = Plane.of(sparse.csr_matrix(points), list("abcdef"))
    np.testing.assert_allclose(thin.points, plane.points, atol=1e-9)


def test_boundaries_lie_between_two_centers() -> None:
    model = PowerKMeans.from_centers([[0.0, 0.0], [4.0, 0.0]])
    axes = plots.clusters(model, [[0.0, -1.0], [0.0, 1.0], [4.0, -1.0], [4.0, 1.0]])
    contours = [one for one in axes.collections if type(one).__name__ == "QuadContourSet"]
    lines = [line for one in contours if not one.filled for line in one.get_paths()]
    assert lines
    for line in lines:
        np.testing.assert_allclose(line.vertices[:, 0], 2.0, atol=0.02)
    wide = np.random.default_rng(0).poisson(3.0, size=(50, 4)).astype(float)
    for points, has_boundaries in (wide[:, :2], True), (wide, False):
        model = PowerKMeans(2, divergence="poisson", random_state=0).fit(points)
        kinds = {type(drawn).__name__ for drawn in plots.clusters(model, points).collections}
        assert kinds == {"PathCollection", *["QuadContourSet"] * has_boundaries}


def test_axes_are_named_after_features_whatever_their_names() -> None:
    axes = plots.clusters(PowerKMeans(2, random_state=0).fit(CLOUDS[:, :1]), CLOUDS[:, :1])
    assert axes.get_xlabel() == "column 0"
    assert list(axes.get_yticks()) == []
    table = pd.DataFrame(CLOUDS, columns=["$x^{", "y_{$"])
    model = PowerKMeans(3, random_state=0, effort="none").fit(table)
    for draw in (plots.profiles, plots.center_bars, plots.clusters):
        pyplot.close("all")
        draw(model, table).figure.canvas.draw()  # mathematics that cannot be parsed would raise


@pytest.mark.parametrize("draw", [plots.clusters, plots.uncertainty, plots.center_bars])
def test_sparse_matrices_and_tables_are_drawn_as_arrays_are(draw: Any) -> None:
    table, model = pd.DataFrame(WIDE, columns=list("abcdef")), clone(WIDE_MODEL)
    drawn = [draw(model.fit(X), X) for X in (WIDE, table, sparse.csr_matrix(WIDE))]
    expected, *others = (axes.dataLim.bounds for axes in drawn)
    np.testing.assert_allclose(others, [expected] * 2, rtol=1e-9, atol=1e-9)


def test_a_table_is_drawn_as_its_points_by_the_names_of_its_columns(tmp_path) -> None:
    file, table = tmp_path / "t.csv", pd.DataFrame(WIDE[:, :2], columns=["a", "b"])
    table.assign(plan=np.where(WIDE[:, 0] > 4, "x", "y")).to_csv(file, index=False)
    table, model = pd.read_csv(file), PowerKMeans(3, random_state=0)
    pipeline = make_pipeline(powermeans.Prepare(), clone(model)).fit(table)
    points = pipeline[0].transform(table)
    for fitted in (model.fit(file), pipeline):
        for X in (file, table):
            axes = plots.profiles(fitted, X)
            assert [text.get_text() for text in axes.get_xticklabels()] == ["a", "b", "plan: y"]
            for draw in (plots.clusters, plots.silhouettes, plots.uncertainty, plots.center_bars):
                drawn, expected = draw(fitted, X), draw(pipeline[1], points)
                assert drawn.dataLim.bounds == expected.dataLim.bounds
            pyplot.close("all")


def test_objective_and_inertia_are_those_of_the_history_and_lines_compared_are_the_excess() -> None:
    axes, history = plots.convergence(MODEL), MODEL.history_
    for line, figures in zip(axes.lines, [history.objective, history.inertia], strict=True):
        np.testing.assert_array_equal(line.get_ydata(), figures)
    (second,) = (other for other in axes.figure.axes if other is not axes)
    is_soft = np.isfinite(history.power)
    shown = np.asarray(second.lines[0].get_ydata())
    np.testing.assert_array_equal(shown[is_soft], -history.power[is_soft])
    lloyd = PowerKMeans(3, init=CLOUDS[:3], schedule=Fixed(-math.inf), effort="none").fit(CLOUDS)
    axes = plots.convergence(lloyd)
    assert axes.figure.axes == [axes]
    axes = plots.convergence({"Lloyd": lloyd, "power": MODEL}, by="seconds")
    least = min(lloyd.inertia_, MODEL.inertia_)
    first = axes.lines[0].get_ydata()[0]
    assert first == pytest.approx(lloyd.history_.inertia[0] / least - 1)
    for line in axes.lines:
        shown = line.get_ydata()[~np.isnan(line.get_ydata())]
        assert (np.diff(shown) <= 0).all()


def test_the_way_of_each_center_ends_where_the_fit_did_and_the_middle_is_the_least_sure() -> None:
    axes = plots.annealing_path(PATH, CLOUDS)
    ends = [[line.get_xdata()[-1], line.get_ydata()[-1]] for line in axes.lines]
    np.testing.assert_allclose(ends, FITTED.cluster_centers_)
    assert all(len(line.get_xdata()) == FITTED.n_iter_ for line in axes.lines)
    assert len(plots.annealing_path([PLACES, PLACES + 1], CLOUDS).lines) == 3
    points = np.array([[0.0, 0.0], [0.0, 1.0], [5.0, 0.5], [10.0, 0.0], [10.0, 1.0]])
    model = PowerKMeans.from_centers([[0.0, 0.5], [10.0, 0.5]])
    drawn = plots.uncertainty(model, points).collections[0]
    offsets = np.asarray(drawn.get_offsets())
    np.testing.assert_array_equal(offsets[np.argmax(drawn.get_array())], [5.0, 0.5])
    assert drawn.get_array().max() == pytest.approx(0.5)
    # y^-2 / (y^-2 + z^-2) with the squared distances y = 1/4 and z = 100 + 1/4
    assert drawn.get_array().min() == pytest.approx(1 / (1 + (100.25 / 0.25) ** 2))


def test_bars_end_at_the_centers() -> None:
    points = np.array([[0.0, 2.0], [0.0, 4.0], [6.0, 0.0]])
    model = powermeans.KMeans.from_centers([[0.0, 3.0], [6.0, 0.0]])
    ax = plots.center_bars(model, points)
    assert np.allclose([bar.get_width() for bar in ax.patches], [0, 3, 6, 0])
    zeros = [bar.get_x() for bar in ax.patches]
    assert zeros[0] == zeros[1] == 0
    assert zeros[2] == zeros[3] > 6
    for marks, zero in zip(ax.collections, (0, zeros[2]), strict=True):
        assert np.allclose([path.vertices[0, 0] - zero for path in marks.get_paths()], [2, 2])
    assert [text.get_text() for text in ax.get_xticklabels()] == ["0\n67 %", "1\n33 %"]


def test_profiles_are_means_in_deviations() -> None:
    points = np.hstack([CLOUDS, np.full((60, 1), 5.0)])
    deviations = np.append(CLOUDS.std(axis=0), 1.0)  # that of a column that never changes
    axes = plots.profiles(PowerKMeans(3, init=points[[0, 10, 30]]).fit(points), points)
    for label in range(3):
        of_cluster = points[MODEL.labels_ == label].mean(axis=0)
        expected = (of_cluster - points.mean(axis=0)) / deviations
        np.testing.assert_allclose(axes.lines[label].get_ydata(), expected, atol=1e-9)
    # Of many features those are shown that differ most.
    axes = plots.profiles(WIDE_MODEL, WIDE, max_features=2)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["column 0", "column 1"]


def test_silhouettes_are_those_of_scikit_learn() -> None:
    mean = silhouette_score(CLOUDS, MODEL.labels_)
    axes = plots.silhouettes(MODEL, CLOUDS)
    assert axes.lines[0].get_xdata()[0] == pytest.approx(mean)
    shares = [text.get_text() for text in axes.get_yticklabels()]
    assert shares == ["0: 17 %", "1: 33 %", "2: 50 %"]
    title = plots.silhouettes(MODEL, CLOUDS, max_points=50).get_title()
    assert "Silhouettes of 50 of 60 points" in title


def test_a_choice_of_k_is_drawn_by_its_table() -> None:
    ax = plots.choice_of_k(CHOICE)
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), CHOICE.table["inertia"])
    assert ax.get_title() == "3 groups; clear"
    assert [text.get_text()[:2] for text in ax.get_legend().get_texts()] == ["3:"]
    assert plots.choice_of_k(CHOICE, "silhouette").get_ylabel() == "silhouette"
