"""Tensors where arrays are wanted: brought to host memory, or refused with a way out.

A tensor on a card does not become an array by itself. Where there is no card, tensors that refuse
it stand in for such ones.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import powermeans
from powermeans import (
    KernelPowerKMeans,
    KMeans,
    PowerKMeans,
    SpectralClustering,
    metrics,
    plots,
)
from powermeans.mathematics.power_mean import memberships

torch = pytest.importorskip(
    "torch", reason='PyTorch is not installed: pip install "powermeans[gpu]", or make test-gpu'
)
from powermeans.tensors import admit_tensor  # noqa: E402
from powermeans.tensors.formulas import shares  # noqa: E402
from powermeans.tensors.opening import as_held_by  # noqa: E402

POINTS = np.random.default_rng(0).normal(size=(300, 4)).astype(np.float32)
POINTS += 6 * np.random.default_rng(1).integers(0, 3, size=(300, 1)).astype(np.float32)
MODEL = PowerKMeans(3, effort="fast", random_state=0)


def with_entry(points: torch.Tensor, value: float) -> torch.Tensor:
    one = torch.tensor(1)
    return points.index_put((one, one), torch.tensor(value, dtype=points.dtype))


class OnCard(torch.Tensor):
    """Says that it is on a card."""

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
        plot(model, given)
        plot(model, given, max_points=40)
    for plot in (plots.profiles, plots.center_bars):
        plot(model, given)


@pytest.mark.usefixtures("refusing")
def test_a_report_is_the_same_of_a_tensor_as_of_an_array(tmp_path: Path) -> None:
    X = torch.as_tensor(POINTS)
    model = clone(MODEL).fit(X)
    weights = torch.ones(len(POINTS))
    one = powermeans.report(model, X, tmp_path / "one.html", sample_weight=weights)
    other = powermeans.report(
        model, POINTS, tmp_path / "other.html", sample_weight=np.ones(len(POINTS))
    )
    assert one.read_bytes() == other.read_bytes()


@pytest.mark.usefixtures("refusing")
def test_metrics_take_labels_and_centers_that_are_tensors() -> None:
    labels = torch.tensor([0, 0, 1, 1], dtype=torch.int32)
    assert metrics.adjusted_rand_index(labels, labels) == 1.0
    assert metrics.normalized_mutual_information(labels, labels) == pytest.approx(1.0)
    assert metrics.variation_of_information(labels, labels) == 0.0
    centers = torch.eye(3).bfloat16()
    assert metrics.centroid_index(centers, centers) == 0


@pytest.mark.usefixtures("refusing")
def test_a_table_that_is_asked_for_is_made_of_distances_to_a_tensor() -> None:
    model = clone(MODEL).fit(torch.as_tensor(POINTS))
    expected = model.transform(torch.as_tensor(POINTS))
    assert isinstance(expected, torch.Tensor)
    table = model.set_output(transform="pandas").transform(torch.as_tensor(POINTS))
    np.testing.assert_array_equal(table.to_numpy(), expected.numpy())


@pytest.mark.parametrize(
    "take",
    [
        lambda X: powermeans.choose_k(X, range(2, 4)),
        lambda X: powermeans.kmeans_plusplus(X, 3),
        powermeans.critical_power,
        lambda X: powermeans.moment_estimates(X, 2),
        lambda X: KernelPowerKMeans(3).fit(X),
        lambda X: SpectralClustering(3).fit(X),
    ],
    ids=["choose_k", "kmeans_plusplus", "critical_power", "moments", "kernel", "spectral"],
)
def test_what_works_on_arrays_alone_refuses_a_tensor_on_a_card(take) -> None:
    X = torch.as_tensor(POINTS)
    with pytest.raises(ValueError, match=r"X is a tensor .* on cuda:0, .*pass X\.cpu\(\)\.numpy"):
        take(X.as_subclass(OnCard))
    with pytest.raises(ValueError, match=r"bfloat16 .*pass X\.float\(\)\.cpu\(\)\.numpy\(\)"):
        take(X.bfloat16())
    with pytest.raises(ValueError, match=r"X requires a gradient.*X\.detach\(\)"):
        take(X.clone().requires_grad_())


@pytest.mark.parametrize(
    ("make", "complaint"),
    [
        (lambda X: torch.tensor(1.0), r"X has the shape \(\): pass a tensor of shape"),
        (lambda X: X[:, 0].contiguous(), r"X has the shape \(300,\): pass a tensor of shape"),
        (lambda X: torch.nested.nested_tensor([X, X]), "X is a nested tensor"),
        (lambda X: X.to("meta"), "X is on the device meta, which holds no numbers"),
        (lambda X: X.to_sparse(), r"layout torch.sparse_coo: pass X\.to_dense\(\)"),
        (
            lambda X: torch.quantize_per_tensor(X, 0.1, 0, torch.quint8),
            r"quantized tensor, torch.quint8: pass X\.dequantize\(\)",
        ),
        (lambda X: X.clone().requires_grad_(), r"requires a gradient.*X\.detach\(\)"),
        (lambda X: X.T.contiguous().T, r"not contiguous, with strides \(1, 300\).*contiguous"),
        (lambda X: X[:0], "at least one point"),
        (lambda X: X.int(), r"dtype torch.int32.*X\.float\(\)"),
        (lambda X: with_entry(X, torch.nan), "NaN.*row 1, column 1"),
        (lambda X: with_entry(X, torch.inf), "infinity.*row 1, column 1"),
        (lambda X: with_entry(X, 7e4).half(), "float16 holds nothing above 65504"),
        (lambda X: with_entry(X.double(), 1e200), "would overflow float64"),
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
        clone(MODEL).fit(powermeans.open_data(lambda given=given: iter([given[:200], given[200:]])))
        for given in (X, POINTS)
    )
    assert of_tensors.inertia_ == of_arrays.inertia_
    with pytest.raises(ValueError, match=r"chunk 0: X is a tensor .* on cuda:0.*X\.cpu\(\)\.numpy"):
        powermeans.open_data(lambda: iter([X.as_subclass(OnCard)]))


def test_weights_and_centers_get_float64_in_host_memory() -> None:
    points = torch.as_tensor(POINTS)
    weights = torch.ones(len(POINTS)).as_subclass(OnMps)
    init = points[:3].as_subclass(OnMps)
    admitted = admit_tensor(points, weights, init=init)
    np.testing.assert_array_equal(admitted.weights, np.ones(len(POINTS)))


def test_results_are_in_float32_where_the_device_has_nothing_wider() -> None:
    wide, labels = torch.ones(3, dtype=torch.float64), torch.ones(3, dtype=torch.int64)
    assert as_held_by("mps", wide).dtype == torch.float32
    assert as_held_by("mps", labels).dtype == torch.int64
    assert as_held_by("cuda", wide).dtype == torch.float64


@pytest.mark.parametrize("power", [-0.1, -1.0, -7.0, -1e3, -np.inf])
def test_shares_are_the_memberships_of_the_formulas(power: float) -> None:
    sq_dist = np.abs(np.random.default_rng(1).normal(size=(50, 4)))
    sq_dist[0], sq_dist[1, 1:3], sq_dist[2, 2] = 0.0, 0.0, 0.0
    sq_dist[3] = [2.0, 1.0, 1.0, 1e300]
    found = shares(torch.as_tensor(sq_dist), power - 1)
    np.testing.assert_allclose(found.numpy(), memberships(sq_dist, power), rtol=1e-10, atol=1e-300)


@pytest.mark.parametrize("kind", [powermeans.KHarmonicMeans, powermeans.FuzzyCMeans])
def test_soft_means_of_a_tensor_have_the_memberships_of_an_array(kind) -> None:
    model = kind(3, random_state=0).fit(torch.as_tensor(POINTS))
    found = model.memberships(torch.as_tensor(POINTS))
    np.testing.assert_allclose(found.numpy(), model.memberships(POINTS), atol=1e-5)


def test_a_fit_on_the_cpu_takes_the_threads_that_are_asked_for() -> None:
    before, seen = torch.get_num_threads(), []

    def look(state: object) -> None:
        seen.append(torch.get_num_threads())

    X = torch.as_tensor(POINTS)
    for n_threads, used in ((before + 1, before + 1), (before + 2, before + 2), (None, before)):
        seen.clear()
        clone(MODEL).set_params(n_threads=n_threads, callback=look).fit(X)
        assert set(seen) == {used}
        assert torch.get_num_threads() == before
