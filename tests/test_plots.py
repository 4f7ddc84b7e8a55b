"""Plots show what is in the data; how they look, people judge."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.axes import Axes
from scipy import sparse
from sklearn.cluster import KMeans as SklearnKMeans
from sklearn.metrics import silhouette_score
from threadpoolctl import threadpool_limits

import powermeans
from powermeans import Fixed, PathRecorder, PowerKMeans, plots
from powermeans.plots.canvas import MARKERS, OKABE_ITO, color_of, marker_of
from powermeans.plots.plane import Plane
from powermeans.plots.surface import surface_heights
from powermeans.power_mean import objective

RNG = np.random.default_rng(0)
PLACES = np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 8.0]])
CLOUDS = np.repeat(PLACES, [10, 20, 30], axis=0) + RNG.normal(scale=0.5, size=(60, 2))
MODEL = PowerKMeans(3, init=PLACES, refine=0).fit(CLOUDS)
WIDE = np.hstack([CLOUDS, RNG.normal(scale=0.1, size=(60, 4))])
WIDE_MODEL = PowerKMeans(3, refine=0, random_state=0).fit(WIDE)


def recorded() -> PathRecorder:
    path = PathRecorder()
    PowerKMeans(3, refine=0, random_state=0, callback=path).fit(CLOUDS)
    return path


PATH = recorded()

DRAWN: dict[str, Callable[..., Any]] = {
    "annealing_path": lambda **ax: plots.annealing_path(PATH, CLOUDS, **ax),
    "center_bars": lambda **ax: plots.center_bars(MODEL, CLOUDS, **ax),
    "center_heatmap": lambda **ax: plots.center_heatmap(MODEL, CLOUDS, **ax),
    "clusters": lambda **ax: plots.clusters(MODEL, CLOUDS, **ax),
    "compare_convergence": lambda **ax: plots.compare_convergence({"a": MODEL}, **ax),
    "convergence": lambda **ax: plots.convergence(MODEL, **ax),
    "knee": lambda **ax: plots.knee([1, 2, 3], [9.0, 2.0, 1.0], **ax),
    "neighbourhood_graph": lambda **ax: plots.neighbourhood_graph(MODEL, CLOUDS, **ax),
    "objective_surface": lambda **ax: plots.objective_surface(
        CLOUDS, -1.0, centers=PLACES, n_grid=5, **ax
    ),
    "profiles": lambda **ax: plots.profiles(MODEL, CLOUDS, **ax),
    "shadows": lambda **ax: plots.shadows(MODEL, CLOUDS, **ax),
    "silhouettes": lambda **ax: plots.silhouettes(MODEL, CLOUDS, **ax),
    "sizes": lambda **ax: plots.sizes(MODEL, CLOUDS, **ax),
    "stripes": lambda **ax: plots.stripes(MODEL, CLOUDS, **ax),
    "uncertainty": lambda **ax: plots.uncertainty(MODEL, CLOUDS, **ax),
}


def test_every_plot_is_tested() -> None:
    assert set(DRAWN) == set(plots.__all__)


@pytest.mark.parametrize("name", DRAWN)
def test_a_plot_draws_on_the_axes_it_is_given_and_returns_them(name: str) -> None:
    figure, (other, given) = pyplot.subplots(1, 2)
    assert DRAWN[name](ax=given) is given
    assert given.has_data()
    assert not other.has_data()
    assert pyplot.get_fignums() == [figure.number]


@pytest.mark.parametrize("name", DRAWN)
def test_a_plot_without_axes_makes_a_figure_that_can_be_saved(name: str, tmp_path: Any) -> None:
    axes = DRAWN[name]()
    assert isinstance(axes, Axes)
    assert len(pyplot.get_fignums()) == 1
    axes.figure.savefig(tmp_path / "plot.png", dpi=30)
    assert (tmp_path / "plot.png").stat().st_size > 500


def test_importing_the_package_does_not_import_matplotlib() -> None:
    code = "import sys, powermeans; powermeans.plots.clusters; print('matplotlib' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "False"


def test_without_matplotlib_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "powermeans\[plot\]"'):
        plots.sizes(MODEL, CLOUDS)


def test_colours_and_shapes_together_tell_56_clusters_apart() -> None:
    assert len(set(OKABE_ITO)) == 7
    assert len(set(MARKERS)) == 8
    assert len({(color_of(label), marker_of(label)) for label in range(56)}) == 56


# Points in the plane.


def points_drawn(axes: Axes) -> list[np.ndarray]:
    return [np.asarray(drawn.get_offsets()) for drawn in axes.collections if drawn.get_label()]


def test_each_cluster_is_drawn_where_its_points_are_or_a_sample_of_them() -> None:
    axes = plots.clusters(MODEL, CLOUDS, boundaries=False)
    for label, drawn in enumerate(points_drawn(axes)):
        np.testing.assert_array_equal(drawn, CLOUDS[MODEL.labels_ == label])
    assert [text.get_text() for text in axes.texts] == ["0", "1", "2"]
    np.testing.assert_allclose([text.get_position() for text in axes.texts], MODEL.cluster_centers_)
    axes = plots.clusters(MODEL, CLOUDS, max_points=7, boundaries=False)
    assert sum(len(drawn) for drawn in points_drawn(axes)) == 7
    assert axes.get_title() == "3 clusters, 7 of 60 points"


def test_small_points_of_each_shape_leave_ink(monkeypatch: pytest.MonkeyPatch) -> None:
    places = np.repeat(100.0 * np.arange(len(MARKERS)), 2500)[:, None] * [1.0, 0.0]
    model = PowerKMeans(len(MARKERS), random_state=0).fit(places)
    monkeypatch.setitem(pyplot.rcParams, "figure.dpi", 72)
    ax = plots.clusters(model, places, boundaries=False, max_points=len(places))
    for text in list(ax.texts):
        text.remove()
    for cloud in ax.collections:
        cloud.set_alpha(1.0)
    ax.figure.canvas.draw()
    image = np.asarray(ax.figure.canvas.buffer_rgba())[..., :3]
    columns = ax.transData.transform(np.unique(places, axis=0))
    height, _ = image.shape[:2]
    for x, y in columns.round().astype(int):
        near = image[height - y - 3 : height - y + 4, x - 3 : x + 4]
        assert near.min() < 200


def test_boundaries_lie_halfway_between_two_centers() -> None:
    model = PowerKMeans.from_centers([[0.0, 0.0], [4.0, 0.0]])
    axes = plots.clusters(model, [[0.0, -1.0], [0.0, 1.0], [4.0, -1.0], [4.0, 1.0]])
    lines = [
        path.vertices
        for drawn in axes.collections
        if type(drawn).__name__ == "QuadContourSet" and not drawn.filled
        for path in drawn.get_paths()
    ]
    assert lines
    for line in lines:
        np.testing.assert_allclose(line[:, 0], 2.0, atol=0.02)


def test_the_plane_of_many_features_holds_the_two_directions_of_most_variance() -> None:
    rotation = np.linalg.qr(RNG.normal(size=(6, 6)))[0]
    flat = RNG.normal(size=(500, 2)) * [5.0, 3.0]
    points = np.hstack([flat, np.zeros((500, 4))]) @ rotation.T + 7.0
    plane = Plane.of(points, list("abcdef"))
    assert plane.share == pytest.approx(1.0)
    np.testing.assert_allclose(plane.lift(plane.points), points, atol=1e-9)
    np.testing.assert_allclose(plane.project(points), plane.points, atol=1e-9)


def test_sparse_points_lie_where_dense_ones_do() -> None:
    dense, thin = Plane.of(WIDE, list("abcdef")), Plane.of(sparse.csr_matrix(WIDE), list("abcdef"))
    np.testing.assert_allclose(thin.points, dense.points, atol=1e-9)


@pytest.mark.parametrize("draw", [plots.clusters, plots.uncertainty, plots.center_heatmap])
@pytest.mark.parametrize(
    "kind", [np.asarray, sparse.csr_matrix, lambda X: pd.DataFrame(X, columns=list("abcdef"))]
)
def test_arrays_sparse_matrices_and_tables_are_drawn(draw: Any, kind: Any) -> None:
    points = kind(WIDE)
    assert draw(PowerKMeans(3, random_state=0, refine=0).fit(points), points).has_data()


def test_points_with_one_feature_lie_beside_each_other() -> None:
    axes = plots.clusters(PowerKMeans(2, random_state=0).fit(CLOUDS[:, :1]), CLOUDS[:, :1])
    assert axes.get_xlabel() == "column 0"
    assert list(axes.get_yticks()) == []


def test_missing_entries_are_drawn_where_their_centers_have_them() -> None:
    holed = CLOUDS.copy()
    holed[0, 1] = np.nan
    model = PowerKMeans(3, init=PLACES, refine=0, missing="observed").fit(holed)
    axes = plots.clusters(model, holed, boundaries=False)
    label = model.labels_[0]
    assert points_drawn(axes)[label][0, 1] == model.cluster_centers_[label, 1]


def test_a_divergence_of_counts_has_boundaries_among_the_points_alone() -> None:
    counts = RNG.poisson(3.0, size=(50, 2)).astype(float)
    model = PowerKMeans(2, divergence="poisson", random_state=0).fit(counts)
    assert plots.clusters(model, counts).has_data()
    wide = RNG.poisson(3.0, size=(50, 4)).astype(float)
    model = PowerKMeans(2, divergence="poisson", random_state=0).fit(wide)
    kinds = {type(drawn).__name__ for drawn in plots.clusters(model, wide).collections}
    assert kinds == {"PathCollection"}


def test_estimators_of_scikit_learn_and_those_without_centers_are_drawn() -> None:
    theirs = SklearnKMeans(3, n_init=1, random_state=0).fit(CLOUDS)
    assert plots.clusters(theirs, CLOUDS).has_data()
    kernel = powermeans.KernelPowerKMeans(3, random_state=0).fit(CLOUDS)
    assert plots.clusters(kernel, CLOUDS).has_data()
    spectral = powermeans.SpectralClustering(3, random_state=0).fit(CLOUDS)
    assert plots.sizes(spectral, CLOUDS).has_data()
    with pytest.raises(ValueError, match="pass the X of its fit"):
        plots.sizes(spectral, CLOUDS[:5])


def test_neighbours_stay_neighbours_in_a_layout_by_tsne() -> None:
    with threadpool_limits(1):  # several wait for each other where other programs are busy
        axes = plots.clusters(WIDE_MODEL, WIDE, method="tsne")
    own = [drawn.mean(axis=0) for drawn in points_drawn(axes)]
    for label, drawn in enumerate(points_drawn(axes)):
        distances = np.linalg.norm(drawn[:, None] - np.array(own), axis=2)
        assert (distances.argmin(axis=1) == label).mean() > 0.9


def test_an_unknown_method_and_a_missing_library_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="method='mds' is not known"):
        plots.clusters(MODEL, CLOUDS, method="mds")  # type: ignore[arg-type]
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(ImportError, match="pip install umap-learn"):
        plots.clusters(MODEL, CLOUDS, method="umap")


def test_a_model_without_memberships_and_distances_has_no_uncertainty() -> None:
    spectral = powermeans.SpectralClustering(3, random_state=0).fit(CLOUDS)
    with pytest.raises(ValueError, match="SpectralClustering has no distances to centers"):
        plots.uncertainty(spectral, CLOUDS)


def test_a_point_in_the_middle_is_the_least_sure() -> None:
    points = np.array([[0.0, 0.0], [0.0, 1.0], [5.0, 0.5], [10.0, 0.0], [10.0, 1.0]])
    model = PowerKMeans.from_centers([[0.0, 0.5], [10.0, 0.5]])
    drawn = plots.uncertainty(model, points).collections[0]
    offsets = np.asarray(drawn.get_offsets())
    np.testing.assert_array_equal(offsets[np.argmax(drawn.get_array())], [5.0, 0.5])
    assert drawn.get_array().max() == pytest.approx(0.5)
    # y^-2 / (y^-2 + z^-2) with the squared distances y = 1/4 and z = 100 + 1/4
    assert drawn.get_array().min() == pytest.approx(1 / (1 + (100.25 / 0.25) ** 2))


# Sweeps.


def test_objective_and_inertia_are_those_of_the_history() -> None:
    axes = plots.convergence(MODEL)
    for line, figures in zip(
        axes.lines, [MODEL.history_.objective, MODEL.history_.inertia], strict=True
    ):
        np.testing.assert_array_equal(line.get_ydata(), figures)
    (second,) = (other for other in axes.figure.axes if other is not axes)
    is_soft = np.isfinite(MODEL.history_.power)
    np.testing.assert_array_equal(
        np.asarray(second.lines[0].get_ydata())[is_soft], -MODEL.history_.power[is_soft]
    )


def test_lloyd_alone_has_no_axis_for_the_power() -> None:
    lloyd = PowerKMeans(3, init=CLOUDS[:3], schedule=Fixed(-math.inf), refine=0).fit(CLOUDS)
    axes = plots.convergence(lloyd)
    assert axes.figure.axes == [axes]


def test_compared_lines_are_the_excess_over_the_least_and_never_rise() -> None:
    lloyd = PowerKMeans(3, init=CLOUDS[:3], schedule=Fixed(-math.inf), refine=0).fit(CLOUDS)
    axes = plots.compare_convergence({"Lloyd": lloyd, "power": MODEL}, by="seconds")
    least = min(lloyd.inertia_, MODEL.inertia_)
    first = axes.lines[0].get_ydata()[0]
    assert first == pytest.approx(lloyd.history_.inertia[0] / least - 1)
    for line in axes.lines:
        shown = line.get_ydata()[~np.isnan(line.get_ydata())]
        assert (np.diff(shown) <= 0).all()


def test_what_has_no_history_is_refused() -> None:
    with pytest.raises(ValueError, match="tells nothing of its sweeps"):
        plots.convergence(PowerKMeans.from_centers(PLACES))
    with pytest.raises(ValueError, match="models is empty"):
        plots.compare_convergence({})


# The path and the surface.


def test_the_way_of_each_center_ends_where_the_fit_did() -> None:
    path = PathRecorder()
    model = PowerKMeans(3, refine=0, random_state=0, callback=path).fit(CLOUDS)
    axes = plots.annealing_path(path, CLOUDS)
    ends = [[line.get_xdata()[-1], line.get_ydata()[-1]] for line in axes.lines]
    np.testing.assert_allclose(ends, model.cluster_centers_)
    assert all(len(line.get_xdata()) == model.n_iter_ for line in axes.lines)


def test_a_path_may_be_plain_arrays_but_not_empty_and_not_of_several_sizes() -> None:
    assert len(plots.annealing_path([PLACES, PLACES + 1], CLOUDS).lines) == 3
    with pytest.raises(ValueError, match="path is empty"):
        plots.annealing_path(PathRecorder(), CLOUDS)
    with pytest.raises(ValueError, match="different numbers of centers"):
        plots.annealing_path([PLACES, PLACES[:2]], CLOUDS)


@pytest.mark.parametrize("power", [-math.inf, -10.0, -1.0, -0.2])
def test_the_surface_is_the_objective_at_each_pair_of_values(power: float) -> None:
    values = np.array([-1.0, 2.5, 9.0])
    heights = surface_heights(CLOUDS, power, PLACES, (0, 2), 1, values)
    for row, first in enumerate(values):
        for column, second in enumerate(values):
            centers = PLACES.copy()
            centers[0, 1], centers[2, 1] = first, second
            assert heights[row, column] == pytest.approx(objective(CLOUDS, centers, power))


def test_fewer_valleys_remain_as_the_power_rises() -> None:
    """What Figure 1 shows: local minima of the cross-section in one feature."""
    points = np.repeat([0.0, 4.0, 10.0], [33, 33, 34])[:, None] + RNG.normal(
        scale=0.4, size=(100, 1)
    )
    values = np.linspace(-1, 11, 60)

    def valleys(power: float) -> int:
        z = surface_heights(points, power, np.array([[0.0], [4.0], [10.0]]), (0, 1), 0, values)
        inner = z[1:-1, 1:-1]
        shifted = [
            z[1 + down : 59 + down, 1 + right : 59 + right]
            for down in (-1, 0, 1)
            for right in (-1, 0, 1)
            if (down, right) != (0, 0)
        ]
        return int(np.sum(np.all([inner < other for other in shifted], axis=0)))

    assert valleys(-math.inf) > valleys(-1.0) >= valleys(-0.2)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"centers": [[0.0]]}, "both need two dimensions"),
        ({"vary": (0, 3)}, "two of the 3 centers"),
        ({"vary": (1, 1)}, "two of the 3 centers"),
        ({"feature": 2}, "must be from 0 to 1"),
        ({"n_grid": 1}, "at least 2"),
    ],
)
def test_a_surface_that_cannot_be_says_why(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        plots.objective_surface(CLOUDS, -1.0, **{"centers": PLACES, **wrong})


# Shapes and values.


def test_sizes_count_points_or_weights() -> None:
    heights = [bar.get_height() for bar in plots.sizes(MODEL, CLOUDS).patches]
    assert heights == [10, 20, 30]
    weighted = plots.sizes(MODEL, CLOUDS, sample_weight=np.full(60, 0.5))
    assert [bar.get_height() for bar in weighted.patches] == [5, 10, 15]


def test_silhouettes_are_those_of_scikit_learn_and_a_sample_says_so() -> None:
    mean = silhouette_score(CLOUDS, MODEL.labels_)
    axes = plots.silhouettes(MODEL, CLOUDS)
    assert axes.lines[0].get_xdata()[0] == pytest.approx(mean)
    assert (
        "Silhouettes of 50 of 60 points"
        in plots.silhouettes(MODEL, CLOUDS, max_points=50).get_title()
    )
    with pytest.raises(ValueError, match="at least 2"):
        plots.silhouettes(PowerKMeans(1).fit(CLOUDS), CLOUDS)


# The points at 1 and 3 lie between the first two centers, those at 7 and 9 between the others.
LINE = np.array([[0.0], [1.0], [3.0], [7.0], [9.0], [12.0], [13.0]])
OF_LINE = powermeans.KMeans.from_centers([[0.0], [4.0], [12.0]])


def test_shadows_are_twice_the_share_of_the_nearer_of_two_distances() -> None:
    bars = plots.shadows(OF_LINE, LINE).collections
    drawn = [np.unique(bar.get_paths()[0].vertices[:, 0]) for bar in bars]
    # Twice d1 / (d1 + d2).
    by_hand = [[0, 2 * 1 / 4], [2 * 1 / 4, 2 * 3 / 8], [0, 2 * 3 / 8, 2 * 1 / 10]]
    for found, values in zip(drawn, by_hand, strict=True):
        assert np.allclose(found, np.unique([0, *values]))


def test_a_point_on_two_equal_centers_has_the_shadow_one() -> None:
    twins = powermeans.KMeans.from_centers([[0.0], [0.0]])
    assert plots.shadows(twins, [[0.0], [0.0]]).get_title().endswith("1.00 in the mean")


def test_an_edge_is_as_wide_as_the_shadows_between_its_centers() -> None:
    edges = plots.neighbourhood_graph(OF_LINE, LINE).lines
    ends = [tuple(np.sort(edge.get_xdata())) for edge in edges]
    widths = np.array([edge.get_linewidth() for edge in edges])
    # 0, 1/2 and 1/2 between 0 and 4, of 4 points; 3/4, 3/4, 0 and 1/5 between 4 and 12, of 5.
    assert ends == [(0.0, 4.0), (4.0, 12.0)]
    assert np.allclose(widths / widths.max(), [(1.0 / 4) / (1.7 / 5), 1.0])


def test_stripes_stand_at_the_distances_to_both_centers() -> None:
    nearest, second = plots.stripes(OF_LINE, LINE).collections
    heights = [[path.vertices[0, 1] for path in half.get_paths()] for half in (nearest, second)]
    places = [
        [path.vertices[:, 0].mean() for path in half.get_paths()] for half in (nearest, second)
    ]
    assert heights == [[0, 1, 1, 3, 3, 0, 1], [4, 3, 3, 5, 5, 8, 9]]
    assert np.round(places[0]).tolist() == [0, 0, 1, 1, 2, 2, 2]
    assert np.round(places[1]).tolist() == [1, 1, 0, 2, 1, 1, 1]


@pytest.mark.parametrize("draw", [plots.shadows, plots.stripes, plots.neighbourhood_graph])
def test_one_cluster_has_no_neighbours(draw: Any) -> None:
    with pytest.raises(ValueError, match="one cluster: neighbours need at least 2"):
        draw(powermeans.KMeans.from_centers([[0.0]]), LINE)


def test_bars_are_the_centers_and_marks_the_means_of_all_points() -> None:
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


def test_the_heat_map_counts_standard_deviations_from_the_mean() -> None:
    axes = plots.center_heatmap(WIDE_MODEL, WIDE)
    expected = (WIDE_MODEL.cluster_centers_ - WIDE.mean(axis=0)) / WIDE.std(axis=0)
    np.testing.assert_allclose(axes.images[0].get_array(), expected)


def test_of_many_features_those_are_shown_that_differ_most() -> None:
    axes = plots.center_heatmap(WIDE_MODEL, WIDE, max_features=2)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["column 0", "column 1"]
    axes = plots.profiles(WIDE_MODEL, WIDE, max_features=2)
    assert [text.get_text() for text in axes.get_xticklabels()] == ["column 0", "column 1"]


def test_profiles_go_through_the_means_of_the_clusters() -> None:
    axes = plots.profiles(MODEL, CLOUDS)
    for label in range(3):
        of_cluster = CLOUDS[MODEL.labels_ == label].mean(axis=0)
        expected = (of_cluster - CLOUDS.mean(axis=0)) / CLOUDS.std(axis=0)
        np.testing.assert_allclose(axes.lines[label].get_ydata(), expected)


def test_a_column_that_never_changes_is_at_zero() -> None:
    points = np.hstack([CLOUDS, np.full((60, 1), 5.0)])
    model = PowerKMeans(3, random_state=0, refine=0).fit(points)
    heights = plots.center_heatmap(model, points).images[0].get_array()
    np.testing.assert_allclose(heights[:, 2], 0.0, atol=1e-9)


def test_names_of_columns_are_taken_literally() -> None:
    table = pd.DataFrame(CLOUDS, columns=["$x^{", "y_{$"])
    model = PowerKMeans(3, random_state=0, refine=0).fit(table)
    for draw in (plots.profiles, plots.center_heatmap, plots.clusters):
        pyplot.close("all")
        draw(model, table).figure.canvas.draw()  # mathematics that cannot be parsed would raise


# Choosing k.


def test_the_knee_is_farthest_below_the_chord() -> None:
    # From (1, 100) to (5, 0) the chord falls by 25; at k = 2 the curve is 55 below it, the most.
    axes = plots.knee([1, 2, 3, 4, 5], [100.0, 20.0, 15.0, 10.0, 0.0])
    assert axes.get_title() == "The knee is at k = 2"


def test_a_curve_that_does_not_bend_is_drawn_without_a_knee() -> None:
    axes = plots.knee([1, 2, 3, 4], [9.0, 8.0, 6.0, 1.0])
    assert axes.get_title() == "There is no knee"
    assert len(axes.lines) == 2  # the curve and the line between its ends


def test_a_choice_of_k_is_drawn_with_its_recommendation() -> None:
    class Choice:
        table: ClassVar[dict[str, Any]] = {
            "k": np.array([1, 2, 3]),
            "inertia": np.array([9.0, 1.0, 0.5]),
        }
        recommended = 3

    axes = plots.knee(Choice())
    assert axes.get_title() == "The knee is at k = 2; recommended is 3 (square)"
    assert axes.lines[-1].get_xdata().tolist() == [3]


@pytest.mark.parametrize(
    ("ks", "inertias"), [([1], [1.0]), ([2, 1], [1.0, 2.0]), ([1, 2], [1.0]), ([1, 2], None)]
)
def test_a_curve_needs_rising_numbers_and_as_many_inertias(ks: Any, inertias: Any) -> None:
    with pytest.raises(ValueError, match="pass"):
        plots.knee(ks, inertias)


def test_swapped_arguments_are_named() -> None:
    X = np.array([[0.0, 0.0], [1.0, 1.0], [5.0, 5.0]])
    model = PowerKMeans(2, random_state=0).fit(X)
    for draw in (plots.clusters, plots.sizes, plots.silhouettes, plots.profiles):
        with pytest.raises(TypeError, match="and X is one: the model comes first"):
            draw(X, model)
