from pathlib import Path

import numpy as np
import pytest
from comparator import assert_same_sums, greedy_seeds
from divergence_cases import CASES
from sklearn.base import clone

import powermeans as pm
from powermeans import BalancedKMeans, KMeans, PowerKMeans, RobustPowerKMeans, metrics, plots
from powermeans.divergences import Cosine, Mahalanobis, Poisson
from powermeans.mathematics.power_mean import memberships
from powermeans.mathematics.rules import Gaussian, Hard, Harmonic, Power
from powermeans.methods import (
    DPMeans,
    FuzzyCMeans,
    KernelPowerKMeans,
    KHarmonicMeans,
    SpectralClustering,
    moment_estimates,
)
from powermeans.points.bregman import BregmanPoints
from powermeans.points.compiled import EuclideanPoints
from powermeans.points.cosine import CosinePoints
from powermeans.points.needs import FitNeeds, Needs
from powermeans.points.reference import ReferencePoints

torch = pytest.importorskip(
    "torch", reason='PyTorch is not installed: pip install "powermeans[gpu]", or make test-gpu'
)
torch.set_num_threads(1)  # what is multiplied here is too little to be divided

from powermeans.system.containers import like_given  # noqa: E402
from powermeans.tensors import formulas, memory, opening  # noqa: E402
from powermeans.tensors.containers import as_held_by  # noqa: E402
from powermeans.tensors.rows import TorchPoints  # noqa: E402

DEVICE = torch.device("cuda" if torch.cuda.is_available() else "cpu")
RULES = [Hard(), Power(-1.0), Power(-30.0), Harmonic(3.5)]


def tensor(points, dtype=torch.float32):
    return torch.as_tensor(np.asarray(points), dtype=dtype, device=DEVICE)


def clusters(n_points, n_features, n_centers, *, shift=0.0, seed=0):
    rng = np.random.default_rng(seed)
    means = 2 * rng.normal(size=(n_centers, n_features))
    points = means[rng.integers(n_centers, size=n_points)] + rng.normal(size=(n_points, n_features))
    centers = means + 0.1 * rng.normal(size=means.shape)
    return (points + shift).astype(np.float32), rng.uniform(0, 2, n_points), centers + shift


def assert_swept_alike(rows, expected, centers, tolerance, rules=None):
    for rule in rules or (Hard(), Power(-3.0)):
        assert_same_sums(rows.sweep(centers, rule), expected.sweep(centers, rule), tolerance)


def all_bytes(rows, centers):
    """Everything that the rows compute at these centers, as bytes."""
    parts = []
    for rule in (Hard(), Power(-3.0)):
        sums = rows.sweep(centers, rule)
        parts += [sums.points, sums.weights, np.array([sums.objective, sums.inertia])]
    spread, (labels, inertia) = rows.spread(centers), rows.assign(centers)
    parts += [spread.error, spread.utility, labels, np.array(inertia), rows.sq_distances(centers)]
    numbers = np.random.default_rng(0).uniform(size=(5, 3))
    parts += [greedy_seeds(rows, np.arange(rows.n_points)[::-1].copy(), 0.3, numbers)]
    return b"".join(np.ascontiguousarray(part).tobytes() for part in parts)


@pytest.mark.parametrize("rule", RULES, ids=repr)
@pytest.mark.parametrize("n_features", [3, 40])
def test_sweeps_are_those_of_the_reference(n_features, rule):
    points, weights, centers = clusters(150, n_features, 4, shift=5.0)
    rows = TorchPoints(tensor(points), weights)
    assert_swept_alike(rows, ReferencePoints(points, weights), centers, 3e-5, [rule])
    with pytest.raises(TypeError, match="cannot sweep with the rule Gaussian"):
        rows.sweep(centers, Gaussian(0.7))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
def test_16_bit_points_are_swept_as_exactly_as_float32_that_holds_them(dtype):
    points, weights, centers = (1000 * values for values in clusters(200, 24, 4))
    halves = tensor(points, dtype)
    held = halves.float().cpu().numpy()
    assert np.max(np.sum(held**2, axis=1)) > 65504  # which float16 lacks
    rows = TorchPoints(halves, weights)
    assert rows.dtype == np.float32
    assert_swept_alike(rows, ReferencePoints(held, weights), centers, 1e-5)
    labels, inertia = rows.assign(centers)
    expected, expected_inertia = ReferencePoints(held, weights).assign(centers)
    np.testing.assert_array_equal(labels, expected)
    assert inertia == pytest.approx(expected_inertia, rel=1e-6)


def test_tight_clusters_survive_cancellation():
    rng = np.random.default_rng(0)
    means = 100 * rng.normal(size=(5, 60))
    labels = rng.integers(0, 5, 200)
    points = (means[labels] + 1e-3 * rng.normal(size=(200, 60))).astype(np.float32)
    found, inertia = TorchPoints(tensor(points)).assign(means)
    np.testing.assert_array_equal(found, labels)
    assert inertia == pytest.approx(ReferencePoints(points).assign(means)[1], rel=1e-3)
    rows = TorchPoints(tensor(points))
    assert_swept_alike(rows, ReferencePoints(points), means, 2e-3, [Power(-3.0)])
    points = np.array([[1.7e19, 0.0], [1.6e19, 1e17]], dtype=np.float32)
    found = TorchPoints(tensor(points)).sq_distances(points.astype(float))
    np.testing.assert_allclose(found, ReferencePoints(points).sq_distances(points), rtol=1e-5)


def test_angles_are_swept_as_by_the_compiled_core():
    points, weights, centers = clusters(150, 12, 4)
    rows, expected = (
        opening.TorchCosinePoints(tensor(points), weights),
        CosinePoints(points, weights),
    )
    assert_swept_alike(rows, expected, centers, 2e-5)
    moved = rows.sweep(centers, Power(-3.0)).centers(centers)
    np.testing.assert_allclose(np.linalg.norm(moved, axis=1), 1.0, rtol=1e-12)
    np.testing.assert_array_equal(rows.assign(centers)[0], expected.assign(centers)[0])
    assert rows.critical_power() == pytest.approx(expected.critical_power(), rel=1e-3)


@pytest.mark.parametrize("n_features", [2, 30])
def test_critical_power_is_that_of_the_compiled_core(n_features):
    points, weights, _ = clusters(800, n_features, 3, shift=4.0)
    found = TorchPoints(tensor(points), weights).critical_power()
    assert found == pytest.approx(EuclideanPoints(points, weights).critical_power(), rel=1e-4)
    assert TorchPoints(tensor(np.ones((5, n_features)))).critical_power() == 0.5


@pytest.mark.parametrize("name", sorted(CASES))
def test_divergences_are_swept_as_by_the_compiled_core(name):
    case = CASES[name]
    points = case.points(120, 20, seed=1)
    weights = np.random.default_rng(0).uniform(0, 2, 120)
    centers = np.array([points[start::5].mean(axis=0) for start in range(5)])
    divergence = case.divergence(20)
    rows = opening.TorchBregmanPoints(tensor(points, torch.float64), weights, divergence=divergence)
    expected = BregmanPoints(points, weights, divergence=divergence)
    assert_swept_alike(rows, expected, centers, 1e-7)
    assert rows.assign(centers)[1] == pytest.approx(expected.assign(centers)[1], rel=1e-9)
    assert rows.critical_power() == pytest.approx(expected.critical_power(), rel=1e-5)


@pytest.mark.parametrize("spread", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("divergence", [Poisson(), Mahalanobis(np.eye(20))], ids=["P", "M"])
def test_divergences_of_tight_clusters_keep_their_digits_in_float32(divergence, spread):
    rng = np.random.default_rng(0)
    means, labels = rng.uniform(1, 100, size=(5, 20)), rng.integers(5, size=80)
    points = (means[labels] * (1 + spread * rng.normal(size=(80, 20)))).astype(np.float32)
    centers = np.array([points[labels == j].mean(axis=0, dtype=float) for j in range(5)])
    rows = opening.TorchBregmanPoints(tensor(points), divergence=divergence)
    expected = BregmanPoints(points.astype(float), divergence=divergence)
    found, inertia = rows.assign(centers)
    np.testing.assert_array_equal(found, labels)
    assert inertia == pytest.approx(expected.assign(centers)[1], rel=1e-5)
    assert_swept_alike(rows, expected, centers, 1e-5)
    assert rows.sweep(centers, Hard()).inertia == pytest.approx(inertia, rel=1e-12)
    split = np.vstack([centers, centers[0] * (1 + 1e-2 * spread)])
    np.testing.assert_array_equal(rows.assign(split)[0], expected.assign(split)[0])
    assert rows.spread(split).utility == pytest.approx(expected.spread(split).utility, rel=1e-4)


@pytest.mark.parametrize("n_features", [3, 20])
@pytest.mark.parametrize(
    ("unit", "dtype"),
    [(2.0**-140, torch.float32), (2.0**59, torch.float32), (2.0**-830, torch.float64)],
    ids=["subnormal", "large", "squares vanish"],
)
def test_points_at_the_ends_of_their_dtype_are_swept_like_their_multiples(n_features, unit, dtype):
    points, weights, centers = clusters(60, n_features, 3)
    points = np.round(8 * points.astype(np.float64)) / 8  # subnormal numbers have few digits
    rows = TorchPoints(tensor(points * unit, dtype), weights)
    expected = ReferencePoints(points, weights)
    for rule in (Hard(), Power(-3.0)):
        sums, wanted = rows.sweep(unit * centers, rule), expected.sweep(centers, rule)
        np.testing.assert_allclose(sums.centers(centers) / unit, wanted.centers(centers), rtol=1e-4)


def test_blocks_shrink_where_memory_is_short_and_add_up_to_the_same(monkeypatch):
    points, weights, centers = clusters(700, 20, 5)
    expected = TorchPoints(tensor(points), weights).sweep(centers, Power(-3.0))
    monkeypatch.setattr(memory, "free_bytes", lambda device: 20 * 8 * 6 * 128)
    with pytest.warns(RuntimeWarning, match="works on 128 points at once instead of 700"):
        rows = TorchPoints(tensor(points), weights)
    assert_same_sums(rows.sweep(centers, Power(-3.0)), expected, 1e-6)
    monkeypatch.setattr(memory, "free_bytes", lambda device: 8 * 2**20)
    with pytest.warns(RuntimeWarning, match=r"8 MiB are free on cpu: .* 256 points at once"):
        assert memory.rows_at_once(10**6, 1000, torch.device("cpu"), 4) == 256
    monkeypatch.setattr(memory, "free_bytes", lambda device: 2**20)
    with pytest.raises(MemoryError, match="1 MiB are free on cpu, and 24000 bytes are needed"):
        memory.rows_at_once(10**6, 1000, torch.device("cpu"), 4)


def test_a_device_without_memory_left_is_told_as_an_error_of_python(monkeypatch):
    def lacking(*args, **options):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 52 GiB")

    points, _, centers = clusters(20, 3, 2)
    rows = TorchPoints(tensor(points))
    monkeypatch.setattr(formulas, "distances", lacking)
    for work in (lambda: rows.sweep(centers, Hard()), lambda: rows.assign(centers)):
        with pytest.raises(MemoryError, match=r"allocate 52 GiB. Free memory on the device"):
            work()
    monkeypatch.setattr(TorchPoints, "_look_at_columns", lacking)
    with pytest.raises(MemoryError, match="allocate 52 GiB"):
        opening.open_tensor(tensor(points), None, divergence=Cosine())


def test_another_run_autocasting_and_a_default_device_change_no_bit():
    points, weights, centers = clusters(60, 20, 4)

    def everything():
        rows = TorchPoints(tensor(points), weights)
        formed = np.array([rows.critical_power(), *rows.mean()])
        of_divergence = opening.TorchBregmanPoints(tensor(np.abs(points) + 1), divergence=Poisson())
        swept = of_divergence.sweep(np.abs(centers) + 1, Power(-1.0)).points
        return all_bytes(rows, centers) + formed.tobytes() + swept.tobytes()

    expected = everything()
    assert everything() == expected
    with torch.autocast(DEVICE.type, dtype=torch.bfloat16):
        assert everything() == expected
    before = torch.get_default_device()
    torch.set_default_device("meta")
    try:
        assert everything() == expected
        assert like_given(tensor(points), np.arange(3), "points").tolist() == [0, 1, 2]
    finally:
        torch.set_default_device(None if before == torch.device("cpu") else before)


@pytest.mark.parametrize("kind", [KMeans, PowerKMeans])
def test_a_fit_of_a_tensor_is_that_of_an_array_as_tensors(kind):
    points, weights, _ = clusters(400, 5, 4)
    halves = tensor(points, torch.bfloat16)
    assert kind(4, random_state=0).fit(halves).cluster_centers_.dtype == torch.float32
    fitted = kind(4, random_state=0).fit(tensor(points), sample_weight=weights)
    expected = kind(4, random_state=0).fit(points, sample_weight=weights)
    assert fitted.cluster_centers_.device == fitted.labels_.device == tensor(points).device
    # Clusters may be numbered differently, since points of tensors do not move one by one.
    assert pm.metrics.adjusted_rand_index(fitted.labels_, expected.labels_) == 1
    assert fitted.inertia_ == pytest.approx(expected.inertia_, rel=1e-5)


def test_what_follows_a_fit_is_of_the_kind_of_its_input():
    points, _, _ = clusters(200, 20, 4)
    for model in (
        PowerKMeans(4, random_state=0).fit(points),
        PowerKMeans(4, random_state=0).fit(tensor(points)),
    ):
        labels, distances = model.predict(tensor(points)), model.transform(tensor(points))
        shares = model.memberships(tensor(points))
        assert all(isinstance(result, torch.Tensor) for result in (labels, distances, shares))
        np.testing.assert_array_equal(labels.cpu().numpy(), model.predict(points))
        np.testing.assert_allclose(distances.cpu().numpy(), model.transform(points), rtol=1e-4)
        np.testing.assert_allclose(shares.cpu().numpy(), model.memberships(points), atol=1e-3)
        assert isinstance(model.predict(points), np.ndarray)
        assert model.score(tensor(points)) == pytest.approx(model.score(points), rel=1e-5)
        assert model.score(points) == pytest.approx(-model.inertia_, rel=1e-5)


def test_a_model_of_a_tensor_is_read_again_as_one_of_arrays(tmp_path):
    points = clusters(100, 3, 2)[0]
    fitted = PowerKMeans(2, random_state=0, effort="fast").fit(tensor(points))
    pm.save(fitted, tmp_path / "model.pm")
    read = pm.load(tmp_path / "model.pm")
    np.testing.assert_array_equal(read.predict(points), fitted.labels_.cpu().numpy())
    np.testing.assert_array_equal(read.cluster_centers_, fitted.cluster_centers_.cpu().numpy())
    np.testing.assert_array_equal(fitted.to_sklearn().labels_, read.labels_)


@pytest.mark.parametrize("divergence", ["squared_euclidean", "cosine", "poisson"])
def test_a_fit_is_that_of_an_array_with_each_divergence(divergence):
    points = np.abs(clusters(300, 20, 4)[0]) + 0.1
    model = PowerKMeans(4, random_state=0, divergence=divergence)
    fitted = clone(model).fit(tensor(points, torch.float64))
    model.fit(points.astype(np.float64))
    assert fitted.inertia_ == pytest.approx(model.inertia_, rel=1e-6)
    np.testing.assert_array_equal(fitted.labels_.cpu().numpy(), model.labels_)


@pytest.mark.parametrize(("divergence", "outside"), [("cosine", 0.0), ("poisson", -2.0)])
def test_points_outside_of_a_domain_are_refused(divergence, outside):
    with pytest.raises(ValueError, match="in row 1"):
        PowerKMeans(2, divergence=divergence).fit(tensor([[1.0], [outside], [3.0]]))


def test_estimators_refuse_what_has_no_rows_of_tensors():
    points = clusters(50, 3, 2)[0]
    for model, complaint in (
        (KMeans(2, missing="observed"), 'missing="observed" has no rows for tensors'),
        (PowerKMeans(2, divergence="manhattan"), "medians for centers"),
        (PowerKMeans(2, divergence="hellinger"), "on one array in memory"),
        (DPMeans(1.0), "DPMeans works only on arrays"),
        (BalancedKMeans(2, size_min=5), "sizes of clusters are limited only for arrays"),
        (PowerKMeans(2, divergence="mahalanobis"), "learns its covariance"),
        (RobustPowerKMeans(2), "which points are left out is decided by all of them"),
    ):
        with pytest.raises(ValueError, match=complaint):
            model.fit(tensor(points))
    with pytest.raises(ValueError, match="squared distances would vanish"):
        KMeans(2).fit(1e-170 * tensor(points, torch.float64))
    with pytest.raises(ValueError, match="expecting 3 features"):
        KMeans(2).fit(tensor(points)).predict(tensor(points[:, :2].copy()))


POINTS = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
POINTS += 6 * np.random.default_rng(1).integers(0, 3, size=(300, 1)).astype(np.float32)
MODEL = PowerKMeans(3, effort="fast", random_state=0)


def with_entry(points: torch.Tensor, value: float) -> torch.Tensor:
    one = torch.tensor(1)
    return points.index_put((one, one), torch.tensor(value, dtype=points.dtype))


class OnCard(torch.Tensor):
    device = property(lambda self: torch.device("cuda:0"))


class OnMps(torch.Tensor):
    """Has no float64 before it is in host memory."""

    def double(self):
        raise TypeError("mps has no float64")

    def cpu(self):
        return self.as_subclass(torch.Tensor)


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tensor becomes an array by itself."""

    def refuse(self, *args, **kwargs):
        raise TypeError("can't convert cuda:0 device type tensor to numpy")

    monkeypatch.setattr(torch.Tensor, "__array__", refuse)


@pytest.mark.parametrize("shown", ["tensor", "array", "bfloat16"])
@pytest.mark.usefixtures("refusing")
def test_plots_bring_to_the_host_what_they_show(shown: str) -> None:
    X = torch.as_tensor(POINTS)
    model = clone(MODEL).fit(X)
    given = {"tensor": X, "array": POINTS, "bfloat16": X.bfloat16()}[shown]
    for plot in (plots.clusters, plots.uncertainty, plots.silhouettes):
        plot(model, given, max_points=40)
    for plot in (plots.profiles, plots.center_bars, plots.silhouettes):
        plot(model, given)


@pytest.mark.usefixtures("refusing")
def test_reports_metrics_and_tables_are_those_of_arrays(tmp_path: Path) -> None:
    X, paths = torch.as_tensor(POINTS), [tmp_path / "one.html", tmp_path / "other.html"]
    model = clone(MODEL).fit(X)
    pm.report(model, X, paths[0], sample_weight=torch.ones(len(POINTS)))
    pm.report(model, POINTS, paths[1], sample_weight=np.ones(len(POINTS)))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    labels = torch.tensor([0, 0, 1, 1], dtype=torch.int32)
    assert metrics.adjusted_rand_index(labels, labels) == 1.0
    assert metrics.normalized_mutual_information(labels, labels) == pytest.approx(1.0)
    assert metrics.variation_of_information(labels, labels) == 0.0
    centers = torch.eye(3).bfloat16()
    assert metrics.centroid_index(centers, centers) == 0
    expected = model.transform(X)
    assert isinstance(expected, torch.Tensor)
    table = model.set_output(transform="pandas").transform(X)
    np.testing.assert_array_equal(table.to_numpy(), expected.numpy())


@pytest.mark.parametrize(
    "take",
    [
        lambda X: pm.choose_k(X, range(2, 4)),
        lambda X: pm.kmeans_plusplus(X, 3),
        pm.critical_power,
        lambda X: moment_estimates(X, 2),
        lambda X: KernelPowerKMeans(3).fit(X),
        lambda X: SpectralClustering(3).fit(X),
    ],
)
def test_what_works_on_arrays_alone_refuses_a_tensor_on_a_card(take) -> None:
    X = torch.as_tensor(POINTS)
    for given, way_out in (
        (X.as_subclass(OnCard), r"on cuda:0, .*pass X\.cpu\(\)\.numpy"),
        (X.bfloat16(), r"bfloat16 .*pass X\.float\(\)\.cpu\(\)\.numpy\(\)"),
        (X.clone().requires_grad_(), r"gradient.*X\.detach\(\)"),
    ):
        with pytest.raises(ValueError, match=way_out):
            take(given)


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda X: torch.tensor(1.0), r"shape \(\)"),
        (lambda X: X[:, 0].contiguous(), r"shape \(300,\)"),
        (lambda X: torch.nested.nested_tensor([X, X]), "nested"),
        (lambda X: X.to("meta"), "device meta"),
        (lambda X: X.to_sparse(), r"X\.to_dense\(\)"),
        (lambda X: torch.quantize_per_tensor(X, 0.1, 0, torch.quint8), r"X\.dequantize\(\)"),
        (lambda X: X.clone().requires_grad_(), r"X\.detach\(\)"),
        (lambda X: X.T.contiguous().T, r"strides \(1, 300\)"),
        (lambda X: X[:0], "at least one point"),
        (lambda X: X.int(), r"X\.float\(\)"),
        (lambda X: with_entry(X, torch.nan), "NaN.*row 1, column 1"),
        (lambda X: with_entry(X, torch.inf), "infinity.*row 1, column 1"),
        (lambda X: with_entry(X, 7e4).half(), "65504"),
        (lambda X: with_entry(X.double(), 1e200), "overflow float64"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # of PyTorch, about what it will take away
def test_bad_tensors_are_refused_in_a_fit_and_after_it_with_a_way_out(make, complaint: str) -> None:
    model = clone(MODEL).fit(torch.as_tensor(POINTS))
    bad = make(torch.as_tensor(POINTS))
    for call in (model.predict, model.transform, model.memberships, clone(MODEL).fit, model.fit):
        with pytest.raises(ValueError, match=complaint):
            call(bad)
    assert model.n_features_in_ == POINTS.shape[1]


@pytest.mark.parametrize("kind", ["array", "tensor"])
@pytest.mark.usefixtures("refusing")
def test_weights_and_centers_that_are_tensors_go_with_arrays_and_with_tensors(kind: str) -> None:
    X = POINTS if kind == "array" else torch.as_tensor(POINTS)
    weights, init = torch.ones(len(POINTS)).bfloat16(), torch.as_tensor(POINTS[:3]).bfloat16()
    fitted = KMeans(3, init=init, n_init=1).fit(X, sample_weight=weights)
    expected = KMeans(3, init=init.float().tolist(), n_init=1).fit(POINTS)
    assert fitted.inertia_ == pytest.approx(expected.inertia_, rel=1e-6)


@pytest.mark.parametrize("kind", ["array", "tensor"])
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_weights_and_centers_without_plain_numbers_are_refused(kind: str) -> None:
    X = POINTS if kind == "array" else torch.as_tensor(POINTS)
    weights, init = torch.ones(len(POINTS)), torch.as_tensor(POINTS[:3])
    for bad, complaint in (
        (lambda values: values.clone().requires_grad_(), r"{} requires a gradient.*\.detach\(\)"),
        (lambda values: values.to_sparse(), "{} is a tensor with the layout torch.sparse_coo"),
        (lambda values: values.to("meta"), "{} is on (the device )?meta"),
    ):
        with pytest.raises(ValueError, match=complaint.format("sample_weight")):
            KMeans(3).fit(X, sample_weight=bad(weights))
        with pytest.raises(ValueError, match=complaint.format("init")):
            KMeans(3, init=bad(init), n_init=1).fit(X)


def test_chunks_that_are_tensors_are_read_on_the_cpu_or_refused() -> None:
    X = torch.as_tensor(POINTS)
    of_tensors, of_arrays = (
        clone(MODEL).fit(pm.open_data(lambda given=given: iter([given[:200], given[200:]])))
        for given in (X, POINTS)
    )
    assert of_tensors.inertia_ == of_arrays.inertia_
    with pytest.raises(ValueError, match=r"chunk 0: X is a tensor .* on cuda:0.*X\.cpu\(\)\.numpy"):
        pm.open_data(lambda: iter([X.as_subclass(OnCard)]))


def test_what_a_device_without_float64_holds() -> None:
    points = torch.as_tensor(POINTS)
    weights = torch.ones(len(POINTS)).as_subclass(OnMps)
    needs = Needs(name="fit", fit=FitNeeds(init=points[:3].as_subclass(OnMps)))
    admitted = opening.admit_tensor(points, weights, needs)
    np.testing.assert_array_equal(admitted.weights, np.ones(len(POINTS)))
    wide, labels = torch.ones(3, dtype=torch.float64), torch.ones(3, dtype=torch.int64)
    assert as_held_by("mps", wide).dtype == torch.float32
    assert as_held_by("mps", labels).dtype == torch.int64
    assert as_held_by("cuda", wide).dtype == torch.float64


def test_a_fit_on_the_cpu_takes_the_threads_that_are_asked_for() -> None:
    before, seen = torch.get_num_threads(), []

    def look(state: object) -> None:
        seen.append(torch.get_num_threads())

    X = torch.as_tensor(POINTS)
    for n_threads, used in ((before + 1, before + 1), (None, before)):
        seen.clear()
        clone(MODEL).set_params(n_threads=n_threads, callback=look).fit(X)
        assert set(seen) == {used}
        assert torch.get_num_threads() == before


@pytest.mark.parametrize("power", [-0.1, -1.0, -7.0, -1e3, -np.inf])
def test_shares_are_the_memberships_of_the_formulas(power: float) -> None:
    sq_dist = np.abs(np.random.default_rng(1).normal(size=(50, 4)))
    sq_dist[0], sq_dist[1, 1:3], sq_dist[2, 2] = 0.0, 0.0, 0.0
    sq_dist[3] = [2.0, 1.0, 1.0, 1e300]
    found = formulas.shares(torch.as_tensor(sq_dist), power - 1)
    np.testing.assert_allclose(found.numpy(), memberships(sq_dist, power), rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("kind", [KHarmonicMeans, FuzzyCMeans])
def test_soft_means_of_a_tensor_have_the_memberships_of_an_array(kind) -> None:
    model = kind(3, random_state=0).fit(torch.as_tensor(POINTS))
    found = model.memberships(torch.as_tensor(POINTS))
    np.testing.assert_allclose(found.numpy(), model.memberships(POINTS), atol=1e-5)
