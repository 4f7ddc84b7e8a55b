"""Random estimators, parameters and data, judged by an oracle of its own."""

import contextlib
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from scipy import sparse
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import powermeans
from powermeans import divergences, methods
from tests.attacks import oracle
from tests.attacks.running import (
    REFUSED,
    RIGHT,
    Attack,
    Failure,
    Known,
    Try,
    bits_of,
    no_warning_of_numpy,
    words_of,
)

# What NumPy, SciPy and Python say of themselves, and no user understands.
NOT_OURS = re.compile(
    r"broadcast|zero-size|matmul|unsupported operand|NoneType|out of bounds|reshape|LAPACK|"
    r"has no attribute|not subscriptable|ambiguous|illegal value|infs or NaNs|must be real number"
)


@dataclass(frozen=True)
class Data:
    """Points as the package should hold them, in a form to pass, and what is odd about them."""

    points: Any
    weights: Any
    is_tame: bool
    is_faulty: bool


def drawn_points(rng: np.random.Generator, domain: str) -> Any:
    """Draw points of some shape, in float64, that lie in a domain."""
    n, d = int(rng.choice([2, 3, 7, 40, 150, 300])), int(rng.choice([1, 1, 2, 3, 5, 16, 17, 40]))
    centers = rng.normal(size=(rng.integers(1, 9), d)) * 10 ** rng.uniform(-1, 2)
    points = centers[rng.integers(len(centers), size=n)] + rng.normal(size=(n, d))
    match rng.integers(6):
        case 0:
            points = np.rint(points)
        case 1:
            points = points[rng.integers(max(1, n // 4), size=n)]
        case 2:
            points[:, rng.integers(d)] = rng.normal()
        case 3:
            points[rng.integers(n)] *= 10.0 ** rng.integers(1, 30)
    if domain == "counts":
        return np.rint(np.abs(points))
    if domain == "trials":
        return np.rint(np.abs(points)) % 41
    return np.abs(points) + 1e-3 if domain == "positive" else points


def drawn_data(rng: np.random.Generator, domain: str) -> Data:
    points, is_tame = drawn_points(rng, domain), True
    if domain in ("any", "positive") and rng.random() < 0.4:
        points, is_tame = points * 10.0 ** rng.uniform(-300, 300), False
    if domain != "trials" and rng.random() < 0.3:
        points = points + np.abs(points).max() * 10.0 ** rng.uniform(-2, 14)
        is_tame = False
    points = np.asarray(points, dtype=drawn_dtype(rng, points))
    is_tame = is_tame and np.abs(points).max() < 1e9
    if domain == "any" and points.dtype.kind == "f" and rng.random() < 0.03:
        points[0, 0] = rng.choice([np.nan, np.inf])
    weights, are_tame = drawn_weights(rng, len(points))
    is_faulty = not np.isfinite(points.astype(float)).all() or (
        weights is not None and not (np.isfinite(weights).all() and weights.min() >= 0)
    )
    return Data(points, weights, is_tame and are_tame and not is_faulty, is_faulty)


def drawn_dtype(rng: np.random.Generator, points: Any) -> Any:
    fits = np.abs(points).max() < 1e9 and np.array_equal(points, np.rint(points))
    kinds = ["f8", "f8", "f4"] + (["i8", "i4", "O"] if fits else [])
    if np.abs(points).max() > 1e37:
        kinds.remove("f4")
    return np.dtype(str(rng.choice(kinds)))


def drawn_weights(rng: np.random.Generator, n: int) -> tuple[Any, bool]:
    weights = rng.uniform(0.1, 3.0, size=n)
    faulty = weights.copy()
    faulty[rng.integers(n)] = rng.choice([-1.0, np.nan, np.inf])
    strange = [
        weights * (rng.random(n) < 0.7),
        weights * 10.0 ** rng.uniform(-320, 300),
        weights * 10.0 ** rng.uniform(-30, 30, size=n),
        np.rint(weights).astype(int),
    ]
    kind = rng.choice(["none", "tame", "strange", "faulty"], p=[0.48, 0.1, 0.4, 0.02])
    if kind == "strange":
        return strange[rng.integers(len(strange))], False
    return {"none": None, "tame": weights, "faulty": faulty}[kind], kind != "faulty"


def forms(points: Any) -> dict[str, Any]:
    """Return dense arrays of the same numbers in other layouts."""
    wide = np.zeros((2 * len(points), 3 * points.shape[1]), dtype=points.dtype)
    wide[::2, ::3] = points
    fixed = points.copy()
    fixed.flags.writeable = False
    dense = {
        "Fortran order": np.asfortranarray(points),
        "strided": wide[::2, ::3],
        "read-only": fixed,
        "backwards": points[::-1].copy()[::-1],
    }
    if points.dtype != object:
        dense["bytes swapped"] = points.astype(points.dtype.newbyteorder())
        buffer = np.zeros(points.nbytes + 1, dtype=np.uint8)
        dense["unaligned"] = buffer[1:].view(points.dtype).reshape(points.shape)
        dense["unaligned"][:] = points
    if points.dtype == np.float64:
        dense["lists"] = points.tolist()
    return dense


def sparse_forms(points: Any) -> dict[str, Any]:
    """Return sparse matrices of the same numbers, some with entries twice or with zeros."""
    matrix, shape = sparse.csr_matrix(points), points.shape
    rows, columns = np.nonzero(points)
    entries = points[rows, columns]
    halves = entries / 2  # which subnormal numbers lack; the other halves add up to them
    twice = np.concatenate([halves, entries - halves]), (np.tile(rows, 2), np.tile(columns, 2))
    every = points.ravel(), tuple(at.ravel() for at in np.indices(shape))
    order = np.lexsort([-matrix.indices, np.repeat(np.arange(shape[0]), np.diff(matrix.indptr))])
    wide = matrix.copy()
    wide.indices, wide.indptr = wide.indices.astype("i8"), wide.indptr.astype("i8")
    unsorted = (matrix.data[order], matrix.indices[order], matrix.indptr)
    return {
        "CSC": sparse.csc_matrix(points),
        "COO": sparse.coo_array(points),
        "entries twice": sparse.coo_matrix(twice, shape=shape),
        "explicit zeros": sparse.csr_matrix(every, shape=shape),
        "unsorted CSR": sparse.csr_matrix(unsorted, shape=shape),
        "wide indices": wide,
    }


def held(points: Any) -> Any:
    """Return the points in the dtype in which the package promises to hold them."""
    is_single = points.dtype.kind == "f" and points.dtype.itemsize <= 4
    return points.astype(np.float32 if is_single else np.float64)


@dataclass(frozen=True)
class Subject:
    """An estimator, the domain of its points, and what the oracle may ask of it."""

    model: Any
    domain: str = "any"
    distances: oracle.Distances | str | None = oracle.squared_euclidean
    sums_distances: bool = True
    takes_sparse: bool = True
    takes_parts: bool = False
    takes_weights: bool = True
    has_one_rounding: bool = True  # LAPACK and ARPACK round by threads and alignment
    may_refuse: bool = False  # good points too, as with a learning rate that is too large


def drawn_subject(rng: np.random.Generator) -> Subject:
    """Choose an estimator with parameters; the number of clusters is set later."""
    return SUBJECTS[rng.integers(len(SUBJECTS))](rng)


def of(kind: Any, choices: dict[str, Any], **more: Any) -> Callable[..., Subject]:
    """Return a function that draws each parameter from its choices."""

    def make(rng: np.random.Generator) -> Subject:
        drawn = {name: values[rng.integers(len(values))] for name, values in choices.items()}
        return Subject(kind(random_state=int(rng.integers(2**31)), **drawn), **more)

    return make


def power(divergence: Any, **more: Any) -> Callable[..., Subject]:
    return of(powermeans.PowerKMeans, ANNEALED | {"divergence": [divergence]}, **more)


SEEDING = {"init": ["k-means++", "random"]}
ANNEALED = SEEDING | {
    "power": ["auto", "auto", -1.0, -30.0, -np.inf],
    "effort": ["none", "fast", "balanced"],
    "polish": [True, True, True, True, False],
    "max_iter": [1, 3, 300],
}
LLOYD = SEEDING | {"n_init": [1, 2, 3], "max_iter": [1, 2, 300], "tol": [0.0, 1e-4]}
MAPS = {"shape": [(a, b) for a in (1, 2, 3) for b in (1, 2, 3)], "n_epochs": [5]}
KERNELS = {
    "kernel": ["rbf", "linear", "polynomial", "cosine"],
    "n_landmarks": [None] * 4 + [2, 5, 11, 19],
}
RATES = {"learning_rate": ["auto"] * 4 + [0.01, 0.3, 1.1, 2.9], "max_iter": [30]}
OBSERVED = {"missing": ["observed"]}
HOLED: dict[str, Any] = {"domain": "missing", "takes_sparse": False}
NOT_NEAREST = {"distances": None, "has_one_rounding": False}
SUBJECTS: list[Callable[..., Subject]] = [
    of(powermeans.KMeans, LLOYD, takes_parts=True),
    power("squared_euclidean", takes_parts=True),
    power("manhattan", distances=oracle.manhattan, takes_sparse=False),
    # Points of zeros have no direction.
    power("cosine", distances=oracle.cosine, takes_parts=True, may_refuse=True),
    power("poisson", domain="counts", distances=oracle.poisson, takes_parts=True),
    power("gamma", domain="positive", distances=oracle.gamma),
    power("inverse_gaussian", domain="positive", distances=oracle.inverse_gaussian),
    power("hellinger", domain="counts", distances=oracle.hellinger, takes_sparse=False),
    power("chi_squared", domain="counts", distances=oracle.chi_squared, takes_sparse=False),
    power("jeffreys", domain="positive", distances=oracle.jeffreys, takes_sparse=False),
    power(divergences.Binomial(40), domain="trials", distances=oracle.binomial(40)),
    power("mahalanobis", distances="covariance_", takes_sparse=False, has_one_rounding=False),
    of(powermeans.PowerKMeans, ANNEALED | OBSERVED, **HOLED),
    of(methods.DPMeans, {"n_clusters_wanted": [3]} | OBSERVED, **HOLED),
    of(methods.SphericalMixture, {"shares": ["equal"]} | OBSERVED, **HOLED),
    of(methods.EntropyWeightedPowerKMeans, OBSERVED, distances="feature_weights_", **HOLED),
    of(methods.KHarmonicMeans, {}, takes_parts=True),
    of(methods.FuzzyCMeans, {}, takes_parts=True),
    of(powermeans.MiniBatchKMeans, {}, takes_parts=True),
    of(powermeans.MiniBatchPowerKMeans, {}, takes_parts=True),
    of(methods.OnlineKMeans, {}, takes_parts=True),
    of(powermeans.RobustPowerKMeans, {}, sums_distances=False),
    of(powermeans.LinkedKMeans, {}),
    of(methods.DPMeans, {"n_clusters_wanted": [3]}),
    of(methods.EntropyWeightedPowerKMeans, {}, distances="feature_weights_", takes_sparse=False),
    of(methods.GradientKMeans, RATES, may_refuse=True),
    of(methods.SelfOrganizingMap, MAPS),
    of(methods.SphericalMixture, {"shares": ["equal"]}),
    of(methods.SphericalMixture, {"shares": ["learned"]}, distances=None),
    of(methods.KernelPowerKMeans, KERNELS, **NOT_NEAREST),
    of(methods.SpectralClustering, {}, takes_weights=False, **NOT_NEAREST),
]


# To open a part takes a millisecond, and a search makes hundreds of passes over all of them.
MOST_PARTS = 20


@dataclass(frozen=True)
class Case:
    """An estimator and its data."""

    subject: Subject
    data: Data
    given: Any  # the points in the form that is passed first
    other: Any  # the same points in another form
    form: str  # its name
    is_sparse: bool

    def describe(self) -> str:
        weights = self.data.weights
        told = "no weights" if weights is None else f"weights {weights.min():g}-{weights.max():g}"
        points = self.data.points
        model = " ".join(repr(self.subject.model).split())
        largest = np.nanmax(np.abs(points.astype(float)))
        form = "sparse" if self.is_sparse else "dense"
        return f"{model} on {points.shape} {points.dtype} {form} up to {largest:g}, {told}"


def drawn_case(rng: np.random.Generator) -> Case:
    subject = drawn_subject(rng)
    is_missing = subject.domain == "missing"
    data = drawn_data(rng, "any" if is_missing else subject.domain)
    points, model = data.points, subject.model
    if not subject.takes_weights:
        data = replace(data, weights=None, is_faulty=not np.isfinite(points.astype(float)).all())
    if is_missing and points.dtype.kind == "f":
        points[rng.random(points.shape) < 0.2] = np.nan
    if "n_clusters" in model.get_params():
        model.set_params(n_clusters=int(rng.integers(1, min(12, len(points)) + 1)))
    is_dense = not subject.takes_sparse or points.dtype == object or rng.random() < 0.7
    choice = forms(points) if is_dense else sparse_forms(points)
    form = str(rng.choice(list(choice)))
    given = points if is_dense else sparse.csr_matrix(points)
    return Case(subject, data, given, choice[form], form, not is_dense)


def fitted(case: Case, points: Any, n_threads: int) -> Any:
    model = clone(case.subject.model)
    if "n_threads" in model.get_params():
        model.set_params(n_threads=n_threads)
    weights = case.data.weights if case.subject.takes_weights else None
    more = {} if weights is None else {"sample_weight": weights}
    with threadpool_limits(n_threads if case.subject.has_one_rounding else 1):
        return model.fit(points, **more)


def judge(case: Case, model: Any) -> None:
    """Raise where the model is not what its centers say, or predicts something else."""
    labels = np.asarray(model.labels_)
    fault = fault_of_model(case, model, labels)
    if fault is not None:
        raise Failure(fault)
    if not hasattr(model, "predict") or np.array_equal(labels, model.predict(case.given)):
        return
    if not are_as_near(case, model, model.predict(case.given)):
        raise Failure("predict gives other labels than the fit")


def are_as_near(case: Case, model: Any, labels: Any) -> bool:
    """Return whether labels may be others than those of a fit, and are of the nearest centers.

    Bregman distances are about an origin, which depends on the rows and on their weights.
    """
    is_bregman = case.subject.distances not in (None, oracle.squared_euclidean, oracle.manhattan)
    return is_bregman and fault_of_model(case, model, labels) is None


def fault_of_model(case: Case, model: Any, labels: Any) -> str | None:
    if not hasattr(model, "cluster_centers_") or case.subject.distances is None:
        inertia = getattr(model, "inertia_", 0.0)
        return None if np.isfinite(inertia) and labels.min() >= 0 else f"the inertia is {inertia}"
    distances = case.subject.distances
    if distances == "feature_weights_":
        scales = np.asarray(model.feature_scales_, dtype=oracle.LONG)
        distances = oracle.weighted_euclidean(model.feature_weights_ / scales**2)
    if isinstance(distances, str):
        if has_thin_covariance(model):
            return None
        distances = oracle.mahalanobis(getattr(model, distances))
    weights = case.data.weights if case.subject.takes_weights else None
    claim = oracle.Claim(
        held(case.data.points),
        weights,
        model.cluster_centers_,
        labels,
        model.inertia_ if case.subject.sums_distances else None,
        distances,
        case.is_sparse,
        case.subject.domain == "missing",
    )
    return oracle.fault_of(claim)


def has_thin_covariance(model: Any) -> bool:
    """Return whether distances along a learned covariance are mostly rounding."""
    covariance = np.asarray(model.covariance_)
    scales = np.sqrt(np.diag(covariance))
    return bool(np.linalg.cond(covariance / scales / scales[:, None]) > 1e6)


def judge_parts(case: Case, folder: Path, rows: int) -> None:
    """Raise unless parts of an array and of a file give the same bits, which are right."""
    points = held(case.data.points)
    if case.is_sparse or case.data.weights is not None:
        return
    np.save(folder / "points.npy", points)
    models = [
        clone(case.subject.model).fit(powermeans.open_data(source, rows_per_part=rows))
        for source in (points, folder / "points.npy")
    ]
    if not np.array_equal(models[0].cluster_centers_, models[1].cluster_centers_):
        raise Failure(f"parts of {rows} rows give other centers from a file")
    fault = fault_of_model(case, models[0], np.asarray(models[0].predict(points)))
    if fault is not None:
        raise Failure(f"in parts of {rows} rows: {fault}")


def check(case: Case, folder: Path, rows_per_part: int | None) -> str:
    """Fit twice, in two forms and with one and two threads; judge the first by the oracle."""
    try:
        model = fitted(case, case.given, 1)
        has_one = case.subject.has_one_rounding
        other = fitted(case, case.other if has_one else case.given, 2 if has_one else 1)
        if rows_per_part is not None:
            judge_parts(case, folder, rows_per_part)
    except (ValueError, TypeError) as error:
        return refusal(case, error)
    if case.data.is_faulty and case.subject.domain != "missing":
        raise Failure("takes faulty points or weights")
    one, two = bits_of(model), bits_of(other)
    if one != two:
        names = [name for name in one if one[name] != two.get(name)]
        is_form = bits_of(fitted(case, case.other, 1)) != one
        cause = f"its form {case.form!r}" if is_form else "a second thread"
        raise Failure(f"{cause} changes the bits of {names}")
    judge(case, model)
    return RIGHT


def refusal(case: Case, error: Exception) -> str:
    """Return that the data were refused; raise where they are good, or in words of others."""
    text = str(error)
    if isinstance(error, LinAlgError) or NOT_OURS.search(text) or not text.strip():
        raise error
    if case.data.is_tame and case.subject.domain != "missing" and not case.subject.may_refuse:
        raise error
    return REFUSED


# Faults that are known, each with its reason, and only where numbers tell it from others.

OF_ARPACK = (
    "ARPACK draws vectors of its own where points are fewer than clusters, as in scikit-learn"
)
MOST_NODES_SOLVED_DENSELY = 256
OF_EQUAL_AFFINITIES = "affinities of points so close are all one, and their eigenvectors arbitrary"
LEAST_TOLD_APART = 1e-12


def reason_known(case: Case) -> str | None:
    """Return why a fault of this case is known, or None."""
    points = case.data.points.astype(float)
    if not isinstance(case.subject.model, methods.SpectralClustering):
        return None
    if not len(points) > MOST_NODES_SOLVED_DENSELY:
        return None
    if np.square(np.ptp(points, axis=0)).sum() < LEAST_TOLD_APART:
        return OF_EQUAL_AFFINITIES
    is_degenerate = len(np.unique(points, axis=0)) < case.subject.model.n_clusters
    return OF_ARPACK if is_degenerate else None


@contextlib.contextmanager
def described(case: Case) -> Iterator[None]:
    """Turn errors, and warnings of NumPy, into failures that describe a case."""
    try:
        with no_warning_of_numpy():
            yield
    except Known:
        raise
    except Exception as error:
        is_of_digits = isinstance(error, Failure | RuntimeWarning)
        if is_of_digits and (reason := reason_known(case)):
            raise Known(f"{reason}: {error}; {case.describe()}") from error
        raise Failure(f"{words_of(error)}; {case.describe()}") from error


def prepare(folder: Path) -> Try:
    def one(rng: random.Random) -> str:
        numbers = np.random.default_rng(rng.getrandbits(64))
        case = drawn_case(numbers)
        n = len(case.data.points)
        is_in_parts = case.subject.takes_parts and numbers.random() < 0.3
        rows = max(int(numbers.integers(1, n + 2)), -(-n // MOST_PARTS)) if is_in_parts else None
        with described(case):
            return check(case, folder, rows)

    return one


ATTACK = Attack(prepare, share=3.0)
