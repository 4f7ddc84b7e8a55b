"""What holds in whatever way rows come: each relation is one function, each source one case."""

import copy
import functools
import pickle
import re

import numpy as np
import pytest
from scale.sources import NAMES, ROWS_PER_PART, SOURCES, assert_same_fit, blobs

import powermeans as pm
from powermeans import KMeans, PowerKMeans, open_data
from powermeans.methods import FuzzyCMeans, KHarmonicMeans, OnlineKMeans
from powermeans.points.streams import is_stream
from powermeans.scale.checkpoint import CheckpointError

POINTS, WEIGHTS = blobs()
IN_PARTS = {name: source for name, source in SOURCES.items() if not source.is_on_dask}
NAMED = {name: source for name, source in SOURCES.items() if source.names == (*NAMES,)}


def of_sources(sources):
    return pytest.mark.parametrize("source", sources.values(), ids=sources)


@pytest.fixture(autouse=True)
def threads():
    try:
        import dask
    except ImportError:
        yield
        return
    with dask.config.set(scheduler="threads"):
        yield


def everything(data):
    if not hasattr(data, "partition"):
        return data.array.compute(), WEIGHTS
    parts = list(data.partition().read())
    weights = [weights for _, weights in parts]
    points = np.concatenate([points for points, _ in parts])
    return points, None if weights[0] is None else np.concatenate(weights)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_weighted", [False, True])
@of_sources(SOURCES)
def test_points_and_weights_are_those_that_were_given(source, is_weighted, dtype, tmp_path):
    points = POINTS.astype(dtype)
    weights = WEIGHTS.astype(dtype).astype(float) if is_weighted else None
    # Text has no precision of its own.
    options = {"dtype": np.dtype(dtype).name} if source is SOURCES["csv"] else {}
    data = source.open(tmp_path, points, weights, **options)
    read, read_weights = everything(data)
    assert data.dtype == read.dtype == dtype
    np.testing.assert_array_equal(read, points)
    if is_weighted and not source.is_on_dask:
        np.testing.assert_array_equal(read_weights, weights)
    assert data.feature_names == (source.names or None)


@of_sources(IN_PARTS)
def test_some_parts_are_read_alone(source, tmp_path):
    data = source.open(tmp_path, POINTS, rows_per_part=130)
    for numbers in ([0], [3, 4, 6], [7]):
        for number, (part, _) in zip(numbers, data.partition().read(numbers), strict=True):
            np.testing.assert_array_equal(part, POINTS[number * 130 : (number + 1) * 130])


MODELS = {
    "k-means": KMeans(5, init="random", n_init=2, random_state=0),
    "power": PowerKMeans(5, effort="fast", random_state=0),
    "cosine": PowerKMeans(5, divergence="cosine", effort="none", random_state=0),
    "harmonic": KHarmonicMeans(5, random_state=0),
    "fuzzy": FuzzyCMeans(5, random_state=0),
}


def fitted(name, data):
    return copy.deepcopy(MODELS[name]).fit(data)


@functools.cache
def of_memory(work, *how):
    return work(*how, open_data(POINTS, weights=WEIGHTS, rows_per_part=ROWS_PER_PART))


@pytest.mark.parametrize("name", MODELS)
@of_sources(SOURCES)
def test_a_fit_has_the_bits_of_the_same_parts_in_memory(source, name, tmp_path):
    model = fitted(name, source.open(tmp_path, POINTS, WEIGHTS))
    assert_same_fit(model, of_memory(fitted, name))
    if source is SOURCES["array"]:
        whole = fitted(name, open_data(POINTS, weights=WEIGHTS, rows_per_part=len(POINTS)))
        np.testing.assert_allclose(model.cluster_centers_, whole.cluster_centers_, rtol=1e-9)
        assert model.inertia_ == pytest.approx(whole.inertia_, rel=1e-9)


@of_sources(SOURCES)
def test_predictions_are_those_in_memory(source, tmp_path):
    given = source.given(tmp_path, POINTS)
    assert is_stream(given) != (source.is_on_dask or given is POINTS)
    if source.options or source.is_stream or given is POINTS:
        given = open_data(given, **source.options)
    model = KMeans(5, random_state=0).fit(given)
    assert list(getattr(model, "feature_names_in_", [])) == [*source.names]
    whole = KMeans.from_centers(model.cluster_centers_)
    assert model.score(given) == pytest.approx(-model.inertia_, rel=1e-12)
    assert model.inertia_ == pytest.approx(-whole.score(POINTS), rel=1e-12)
    labels = whole.predict(POINTS)
    if source.is_on_dask:
        for found in (model.labels_, model.predict(given)):
            np.testing.assert_array_equal(found.compute(), labels)
        distances = model.transform(given)
        np.testing.assert_array_equal(distances.compute(), whole.transform(POINTS))
        assert not hasattr(pickle.loads(pickle.dumps(model)), "labels_")
        return
    written = np.load(model.predict(given, output=tmp_path / "labels.npy"))
    assert written.dtype == np.int32
    np.testing.assert_array_equal(written, labels)
    if source.is_file or source.is_stream:  # which fits into memory
        for found in (model.labels_, model.predict(given), copy.copy(model).fit_predict(given)):
            np.testing.assert_array_equal(found, labels)
        np.testing.assert_array_equal(model.transform(given), whole.transform(POINTS))
        return
    assert not hasattr(model, "labels_")
    for method in ("predict", "transform"):
        with pytest.raises(ValueError, match=f"{method}.*output|^{method} returns an array"):
            getattr(model, method)(given)


def learned(kind, method, data):
    return getattr(kind(5, init_size=450, random_state=0), method)(data)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
@pytest.mark.parametrize("kind", [OnlineKMeans, pm.MiniBatchPowerKMeans])
@of_sources(SOURCES)
def test_streams_learn_each_part_as_a_chunk(source, kind, method, tmp_path):
    found = learned(kind, method, source.open(tmp_path, POINTS, WEIGHTS))
    expected = of_memory(learned, kind, method)
    assert_same_fit(found, expected)
    assert found.n_steps_ == expected.n_steps_


def table_of_k(data):
    asked = {"criteria": ["bic", "separation"], "effort": "fast", "random_state": 0}
    return pm.choose_k(data, [2, 3, 4], **asked).table


@of_sources(SOURCES)
def test_k_is_chosen_by_the_same_bits(source, tmp_path):
    found = table_of_k(source.open(tmp_path, POINTS, WEIGHTS))
    expected = of_memory(table_of_k)
    assert found.keys() == expected.keys()
    for name, values in found.items():
        assert values.tobytes() == expected[name].tobytes(), name


@of_sources(SOURCES)
def test_a_checkpoint_is_of_these_rows_alone(source, tmp_path):
    def fitted(folder, points, weights=WEIGHTS, model=MODELS["power"]):
        (tmp_path / folder).mkdir()
        checkpoint = tmp_path / "state"
        data = source.open(tmp_path / folder, points, weights, checkpoint=checkpoint)
        return copy.deepcopy(model).fit(data)

    first = fitted("a", POINTS)
    whole = (tmp_path / "state").read_bytes()
    others = [("b", POINTS + 1, WEIGHTS), ("c", POINTS, WEIGHTS + 1), ("d", POINTS[:-1], None)]
    for name, points, weights in others:
        with pytest.raises(CheckpointError, match="these rows"):
            fitted(name, points, weights)
    if source.is_file and not source.is_table:  # which is named, and has a time
        return
    (tmp_path / "state").write_bytes(whole[: len(whole) // 2])
    assert_same_fit(fitted("e", POINTS), first)
    is_whole = (tmp_path / "state").read_bytes() == whole  # pytest would look for what differs
    assert is_whole


@of_sources(SOURCES)
def test_a_value_that_is_missing_is_found_in_its_place(source, tmp_path):
    points = POINTS.copy()
    points[701, 1] = np.nan
    with pytest.raises(ValueError, match=source.place) as told:
        KMeans(5, random_state=0).fit(source.open(tmp_path, points))
    assert re.search(r'missing in "width"|NaN: .* column 1', str(told.value))


@of_sources(NAMED)
def test_columns_are_those_of_the_fit(source, tmp_path):
    (tmp_path / "all").mkdir()
    model = KMeans(5, random_state=0).fit(source.open(tmp_path, POINTS))
    frame = np.column_stack([POINTS[:, 2], POINTS[:, 0]])
    if source.weights == "":
        return
    data = source.open(tmp_path / "all", POINTS, columns=["depth", "height"])
    assert data.feature_names == ("depth", "height")
    np.testing.assert_array_equal(everything(data)[0], frame)
    with pytest.raises(ValueError, match=r"height|width"):
        model.score(data)
