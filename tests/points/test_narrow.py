"""Points of half floats and bytes give what float32 of the same values gives, without a copy."""

import itertools
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from comparator import all_that_rows_say
from numpy.testing import assert_allclose, assert_array_equal
from problems import output_of, sq_distances

import powermeans._native as _native
from powermeans import BalancedKMeans, KMeans, PowerKMeans, RobustPowerKMeans, open_data
from powermeans.mathematics.rules import Gaussian, Hard, Harmonic, Power, Priced
from powermeans.points.cells import Cells
from powermeans.points.checks.points import dtype_of_centers
from powermeans.points.compiled import EuclideanPoints
from powermeans.points.needs import Measure, Needs

TYPES = [np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.int8, np.uint8)]
every_type = pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: dtype.name)
every_set = pytest.mark.parametrize("instruction_set", _native.instruction_sets())
# As direct differences, products, with features in lanes, and with sketches.
SHAPES = [(900, 2, 20), (900, 7, 5), (700, 24, 9), (700, 200, 3), (1100, 130, 70)]
every_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def blobs(dtype: np.dtype[Any], n_points: int, n_features: int, n_blobs: int = 6) -> Any:
    rng = np.random.default_rng(n_features)
    middles = rng.integers(-90, 90, (n_blobs, n_features))
    noise = rng.integers(-30, 30, (n_points, n_features))
    points = middles[rng.integers(n_blobs, size=n_points)] + noise
    if dtype.kind in "iu":
        return (points + 128 * (dtype.kind == "u")).astype(dtype)
    return (points / 64).astype(dtype)


@every_type
@every_shape
@pytest.mark.parametrize("is_weighted", [False, True])
def test_rows_give_the_bits_of_float32(dtype: np.dtype[Any], shape: Any, is_weighted: bool) -> None:
    n_points, n_features, n_centers = shape
    points = blobs(dtype, n_points, n_features)
    weights = np.random.default_rng(2).random(n_points) if is_weighted else None
    rng = np.random.default_rng(1)
    centers = points[rng.choice(n_points, n_centers, replace=False)].astype(np.float64)
    centers += 0.01 * rng.normal(size=centers.shape)
    rules = [Hard(), Power(-2.0), Power(-40.0), Harmonic(3.0), Gaussian(2.0, None)]
    rules.append(Priced(tuple(np.linspace(0, 1, n_centers))))
    near = np.argsort(sq_distances(centers, centers), axis=1)[:, :8].astype(np.int32)

    def ask(rows: EuclideanPoints) -> Iterator[Any]:
        yield from all_that_rows_say(rows, centers, rules)
        labels, farthest = rows.assign(centers)[0], next(iter(rows.farthest(centers, 1)))
        yield from (rows.mean(), rows.critical_power(), farthest.sq_dist, farthest.point)
        yield Cells(rows).distances_to_own(centers, labels)
        yield rows.moves.swap_centers(centers, 5, 1e6, 0.0).centers
        for rule in (Hard(), Power(-5.0)) if n_features > 16 else ():
            sums = Cells(rows).sweep(centers + 0.05, rule, near, labels)
            yield from (sums.points, sums.inertia, sums.objective)

    narrow, wide = (
        EuclideanPoints(given, weights, n_threads=2)
        for given in (points, points.astype(np.float32))
    )
    assert narrow.dtype == np.float32
    for one, other in zip(ask(narrow), ask(wide), strict=True):
        assert_array_equal(one, other)


@every_set
def test_every_finite_number_is_widened_exactly(instruction_set: str) -> None:
    code = (
        "import numpy as np, ml_dtypes, sys\n"
        "import powermeans._native as native\n"
        "from powermeans.points.compiled import EuclideanPoints\n"
        "assert native.instruction_set() == sys.argv[1]\n"
        "bits = np.arange(2**16, dtype=np.uint16)\n"
        "for dtype in (np.float16, ml_dtypes.bfloat16, np.int8, np.uint8):\n"
        "    dtype = np.dtype(dtype)\n"
        "    numbers = bits.astype(f'u{dtype.itemsize}').view(dtype)\n"
        "    wide = numbers.astype(np.float32)\n"
        "    kept = np.isfinite(wide) & (np.abs(wide) < 1e15)\n"
        "    for n_columns in (1, 64):\n"
        "        n = np.count_nonzero(kept) // n_columns * n_columns\n"
        "        both = [x[kept][:n].reshape(-1, n_columns) for x in (numbers, wide)]\n"
        "        a, b = (EuclideanPoints(np.ascontiguousarray(x), n_threads=1) for x in both)\n"
        "        c = np.zeros((1, n_columns))\n"
        "        assert (a.sq_distances(c) == b.sq_distances(c)).all()\n"
        "        assert (a.mean() == b.mean()).all()\n"
    )
    output_of(code, instruction_set, POWERMEANS_ISA=instruction_set)


MODELS: dict[str, Callable[[], Any]] = {
    "KMeans": lambda: KMeans(6, n_init=2, random_state=0),
    "balanced": lambda: PowerKMeans(6, random_state=0),
    "limited": lambda: BalancedKMeans(6, size_max=0.2, random_state=0),
}


def plain_of(dtype: np.dtype[Any]) -> type:
    return np.float64 if dtype.kind in "iu" else np.float32


def assert_same_fits(found: Any, expected: Any) -> None:
    assert_allclose(found.inertia_, expected.inertia_, rtol=1e-6)
    assert_allclose(found.cluster_centers_, expected.cluster_centers_, rtol=1e-5, atol=1e-5)


@every_type
@pytest.mark.parametrize("model", MODELS)
def test_fits_are_those_of_float32(dtype: np.dtype[Any], model: str) -> None:
    points, weights = blobs(dtype, 600, 20), np.random.default_rng(0).integers(1, 4, 600)
    both = points, points.astype(np.float32)
    narrow, wide = (MODELS[model]().fit(given, sample_weight=weights) for given in both)
    assert_array_equal(narrow.labels_, wide.labels_)
    assert_same_fits(narrow, wide)
    assert narrow.cluster_centers_.dtype == narrow.transform(points).dtype == plain_of(dtype)
    for fitted, given in itertools.product((narrow, wide), both):
        assert_array_equal(fitted.predict(given), fitted.predict(points.astype(np.float64)))
        assert_allclose(fitted.score(given, sample_weight=weights), -narrow.inertia_, rtol=1e-6)
    assert_allclose(narrow.transform(points), wide.transform(both[1]), rtol=1e-4, atol=1e-3)


@every_type
def test_narrow_points_convert_as_before_and_take_no_memory_of_their_size(dtype):
    points = blobs(dtype, 200, 4)
    for model in (
        PowerKMeans(3, divergence="cosine", random_state=0),
        KMeans(3, missing="observed", random_state=0),
        PowerKMeans(3, divergence="mahalanobis", random_state=0),
        RobustPowerKMeans(3, random_state=0),
        KMeans(3, init=points[:3]),
    ):
        found = model.fit(points).cluster_centers_
        model.set_params(random_state=0).fit(points.astype(plain_of(dtype)))
        assert_array_equal(found, model.cluster_centers_)
        assert found.dtype == plain_of(dtype)
    points = blobs(dtype, 60_000, 64)
    KMeans(3, n_init=1, max_iter=2).fit(points[:500])
    tracemalloc.start()
    model = PowerKMeans(4, effort="fast", random_state=0).fit(points)
    model.predict(points)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < points.nbytes / 10 + 8e6


@every_type
def test_parts_are_kept_narrow_and_give_the_bits_of_float32(dtype: Any, tmp_path: Path) -> None:
    points = blobs(dtype, 900, 20)
    wide = points.astype(np.float32)
    for narrow, of_floats in (
        ([points[:500], points[500:]], [wide[:500], wide[500:]]),
        (open_data(points, rows_per_part=256), open_data(wide, rows_per_part=256)),
    ):
        for make in (MODELS["KMeans"], lambda: PowerKMeans(5, effort="fast", random_state=0)):
            found, expected = make().fit(narrow), make().fit(of_floats)
            assert_same_fits(found, expected)
            assert found.cluster_centers_.dtype == plain_of(dtype)
            found.predict(narrow, output=tmp_path / "found.npy")
            expected.predict(of_floats, output=tmp_path / "expected.npy")
            labels = [np.load(tmp_path / f"{name}.npy") for name in ("found", "expected")]
            assert_array_equal(*labels)


@pytest.mark.parametrize("name", ["float16", "int8", "uint8"])
def test_arrays_in_files_are_read_as_they_are(name: str, tmp_path: Path) -> None:
    points, path = blobs(np.dtype(name), 300, 5), tmp_path / "points.npy"
    np.save(path, points)
    data = open_data(path, rows_per_part=256)
    assert data.dtype == dtype_of_centers(points.dtype)
    kept, widened = (
        list(data.partition(Needs(name="test", measure=Measure(takes_narrow=keeps))).read())
        for keeps in (True, False)
    )
    assert {part.dtype for part, _ in kept} == {points.dtype}
    assert {part.dtype for part, _ in widened} == {data.dtype}
    for parts in (kept, widened):
        assert_array_equal(np.concatenate([part for part, _ in parts]), points)
