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
from powermeans import KernelPowerKMeans, KMeans, PowerKMeans, SpectralClustering, metrics, plots
from powermeans.mathematics.power_mean import memberships
from powermeans.points.needs import FitNeeds, Needs

torch = pytest.importorskip(
    "torch", reason='PyTorch is not installed: pip install "powermeans[gpu]", or make test-gpu'
)
from powermeans.tensors.formulas import shares  # noqa: E402
from powermeans.tensors.opening import admit_tensor, as_held_by  # noqa: E402

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
        plot(model, given, max_points=40)
    for plot in (plots.profiles, plots.center_bars, plots.silhouettes):
        plot(model, given)


@pytest.mark.usefixtures("refusing")
def test_reports_metrics_and_tables_are_those_of_arrays(tmp_path: Path) -> None:
    X, paths = torch.as_tensor(POINTS), [tmp_path / "one.html", tmp_path / "other.html"]
    model = clone(MODEL).fit(X)
    powermeans.report(model, X, paths[0], sample_weight=torch.ones(len(POINTS)))
    powermeans.report(model, POINTS, paths[1], sample_weight=np.ones(len(POINTS)))
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
        lambda X: powermeans.choose_k(X, range(2, 4)),
        lambda X: powermeans.kmeans_plusplus(X, 3),
        powermeans.critical_power,
        lambda X: powermeans.moment_estimates(X, 2),
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
        clone(MODEL).fit(powermeans.open_data(lambda given=given: iter([given[:200], given[200:]])))
        for given in (X, POINTS)
    )
    assert of_tensors.inertia_ == of_arrays.inertia_
    with pytest.raises(ValueError, match=r"chunk 0: X is a tensor .* on cuda:0.*X\.cpu\(\)\.numpy"):
        powermeans.open_data(lambda: iter([X.as_subclass(OnCard)]))


def test_what_a_device_without_float64_holds() -> None:
    points = torch.as_tensor(POINTS)
    weights = torch.ones(len(POINTS)).as_subclass(OnMps)
    needs = Needs(name="fit", fit=FitNeeds(init=points[:3].as_subclass(OnMps)))
    admitted = admit_tensor(points, weights, needs)
    np.testing.assert_array_equal(admitted.weights, np.ones(len(POINTS)))
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
    for n_threads, used in ((before + 1, before + 1), (None, before)):
        seen.clear()
        clone(MODEL).set_params(n_threads=n_threads, callback=look).fit(X)
        assert set(seen) == {used}
        assert torch.get_num_threads() == before
