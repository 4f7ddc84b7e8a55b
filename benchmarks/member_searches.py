"""What the search of each member gains over one descent and over ten restarts.

Each member on three data sets where its model holds, three seeds each, beside a descent from the
true clusters. The environment variable POWERMEANS_DATA names the folder of the real sets.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import mean
from typing import Any

import numpy as np
import sklearn.datasets

import powermeans
from benchmarks import machine
from benchmarks.pages import Page, Rows, as_markdown, as_text
from powermeans.datasets import load_data_set
from powermeans.metrics import adjusted_rand_index

NAME = "member_searches"
PAGE = Page("how_it_searches", "python -m benchmarks.member_searches --page")
SEEDS = range(3)

Labelled = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Case:
    """A member on points of known clusters."""

    member: str
    data: str
    points: np.ndarray
    truth: np.ndarray
    kind: type
    options: dict[str, Any]

    def fitted(self, seed: int | None = None, **options: Any) -> Any:
        k = int(self.truth.max()) + 1
        return self.kind(k, random_state=seed, n_threads=1, **{**self.options, **options}).fit(
            self.points
        )


# ---- data -------------------------------------------------------------------------------------


def blobs(seed: int, n_points: int, n_features: int, k: int, apart: float) -> Labelled:
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n_points)
    middles = apart * rng.normal(size=(k, n_features))
    return middles[truth] + rng.normal(size=(n_points, n_features)), truth


def one_feature(seed: int, n_points: int, k: int, unit: float) -> Labelled:
    """Points of six features, one of which, in a unit of its own, tells the clusters apart."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=n_points)
    points = rng.normal(size=(n_points, 6))
    points[:, 0] = unit * (points[:, 0] + 6.0 * truth)
    return points, truth


def rings(seed: int, n_points: int, radii: tuple[float, ...]) -> Labelled:
    rng = np.random.default_rng(seed)
    truth = rng.integers(len(radii), size=n_points)
    angles = rng.uniform(0, 2 * np.pi, n_points)
    circle = np.column_stack([np.cos(angles), np.sin(angles)])
    return np.array(radii)[truth, None] * circle + 0.04 * rng.normal(size=(n_points, 2)), truth


def drawn(seed: int, k: int, draw: Callable[[np.random.Generator, np.ndarray], Any]) -> Labelled:
    rng = np.random.default_rng(seed)
    truth = rng.integers(k, size=900)
    return draw(rng, np.exp(rng.uniform(0, 4, size=(k, 3)))[truth]), truth


def in_noise(points: np.ndarray, n_features: int) -> np.ndarray:
    noise = np.random.default_rng(100).normal(size=(len(points), n_features))
    return np.hstack([points, noise])


def with_gaps(points: np.ndarray) -> np.ndarray:
    """Points with one entry in six missing, never a whole row."""
    rng = np.random.default_rng(100)
    gaps = rng.uniform(size=points.shape) < 1 / 6
    gaps[np.arange(len(points)), rng.integers(points.shape[1], size=len(points))] = False
    return np.where(gaps, np.nan, points)


def real(name: str, n_points: int | None = None) -> Labelled:
    found = load_data_set(name)
    return np.asarray(found.points, dtype=np.float64)[:n_points], found.labels[:n_points]


def in_a_box(labelled: Labelled) -> Labelled:
    """The points with a tenth of outliers, whose labels are -1."""
    points, truth = labelled
    size = len(points) // 10, points.shape[1]
    outliers = np.random.default_rng(100).uniform(-40, 40, size=size)
    return np.vstack([points, outliers]), np.append(truth, np.full(size[0], -1))


def cases() -> Iterator[Case]:
    """Yield all cases; the seeds of the data are used nowhere else."""
    for member, kind, options, sets in (*_of_classes(), *_of_distances()):
        for data, (points, truth), further in sets:
            yield Case(member, data, points, truth, kind, {**options, **further})


def _of_classes() -> Iterator[tuple[str, type, dict, list]]:
    iris, s2, s3, r15 = (real(name) for name in ("iris", "s2", "s3", "r15"))
    yield (
        "EntropyWeightedPowerKMeans",
        powermeans.EntropyWeightedPowerKMeans,
        {},
        [
            ("one feature of 6, k=3", one_feature(100, 300, 3, 1.0), {}),
            ("the same, k=4, unit 1/100", one_feature(101, 1000, 4, 0.01), {}),
            ("iris and 10 of noise", (in_noise(iris[0], 10), iris[1]), {}),
        ],
    )
    yield (
        "SphericalMixture",
        powermeans.SphericalMixture,
        {},
        [
            ("20 in 2 features", blobs(102, 1000, 2, 20, 6.0), {}),
            ("50 in 5 features", blobs(103, 2000, 5, 50, 2.5), {}),
            ("s3", s3, {}),
        ],
    )
    moons = sklearn.datasets.make_moons(400, noise=0.07, random_state=104)
    yield (
        "KernelPowerKMeans",
        powermeans.KernelPowerKMeans,
        {},
        [
            ("two rings, default gamma", rings(105, 400, (0.25, 1.0)), {}),
            ("three rings, gamma=0.8", rings(106, 600, (0.2, 1.0, 2.5)), {"gamma": 0.8}),
            ("moons, gamma=15", moons, {"gamma": 15.0}),
        ],
    )
    yield (
        "RobustPowerKMeans",
        powermeans.RobustPowerKMeans,
        {},
        [
            ("20 and a box", in_a_box(blobs(107, 900, 3, 20, 8.0)), {}),
            ("s2", s2, {}),
            ("r15", r15, {}),
        ],
    )


def _of_distances() -> Iterator[tuple[str, type, dict, list]]:
    s2, wine, digits = real("s2", 2000), real("wine"), real("pendigits", 1500)
    counts = (real("pendigits", 1000)[0], real("pendigits", 1000)[1])
    poisson = [
        (f"{k} of counts", drawn(108 + k, k, lambda rng, m: rng.poisson(m).astype(float)), {})
        for k in (15, 25)
    ]
    gamma = [
        (f"{k} of sizes", drawn(208 + k, k, lambda rng, m: rng.gamma(9, m / 9)), {})
        for k in (15, 25)
    ]
    blurred = blobs(109, 1000, 6, 20, 3.0)
    laplace = drawn(110, 20, lambda rng, m: m + rng.laplace(size=m.shape))
    plain = powermeans.PowerKMeans
    yield (
        'divergence="manhattan"',
        plain,
        {"divergence": "manhattan"},
        [("20 of long tails", laplace, {}), ("wine", wine, {}), ("s2", s2, {})],
    )
    yield (
        'divergence="poisson"',
        plain,
        {"divergence": "poisson"},
        [*poisson, ("pendigits", counts, {})],
    )
    yield (
        'divergence="gamma"',
        plain,
        {"divergence": "gamma"},
        [*gamma, ("wine", wine, {})],
    )
    yield (
        'missing="observed"',
        plain,
        {"missing": "observed"},
        [
            ("20 in 6 features", (with_gaps(blurred[0]), blurred[1]), {}),
            ("pendigits", (with_gaps(digits[0]), digits[1]), {}),
            ("s2", (with_gaps(s2[0]), s2[1]), {}),
        ],
    )


# ---- fits -------------------------------------------------------------------------------------


def objective(model: Any) -> float:
    """What the member lowers."""
    for name, sign in (("log_likelihood_", -1), ("objective_", 1)):
        if hasattr(model, name):
            return sign * getattr(model, name)
    return model.inertia_


def from_truth(case: Case) -> tuple[float, np.ndarray]:
    """Return the objective and the labels of a descent from the true clusters."""
    points, kind = case.points, case.kind
    if kind is powermeans.KernelPowerKMeans:
        model = case.fitted(seed=0)
        points = model.embed(points)
        outside = model.inertia_ - model.embedded_.inertia_
        plain = powermeans.PowerKMeans(
            len(model.dual_coef_), init=middles(points, case.truth), refine=0, power=-np.inf
        ).fit(points)
        return plain.inertia_ + outside, plain.labels_
    descends = {} if kind in SEARCHES else {"refine": 0, "power": -np.inf}
    if kind is powermeans.EntropyWeightedPowerKMeans:
        descends = {"power": -1000.0}
    model = case.fitted(init=middles(points, case.truth), **descends)
    return objective(model), model.labels_


def middles(points: np.ndarray, truth: np.ndarray) -> np.ndarray:
    return np.stack([np.nanmean(points[truth == j], axis=0) for j in range(truth.max() + 1)])


SEARCHES = (powermeans.EntropyWeightedPowerKMeans, powermeans.SphericalMixture)


def measured(case: Case) -> dict:
    """Return objectives, agreement with the truth, and seconds of CPU."""
    without = {"effort": None} if case.kind in SEARCHES else {"refine": 0}
    ways = {
        "one": without,
        "ten": {**without, "n_init": 10},
        "default": {},
        "thorough": {"effort": "thorough"},
    }
    cell: dict[str, Any] = {"member": case.member, "data": case.data}
    for way, options in ways.items():
        started = time.process_time()
        models = [case.fitted(seed, **options) for seed in SEEDS]
        seconds = (time.process_time() - started) / len(SEEDS)
        cell[way] = {
            "objectives": [objective(model) for model in models],
            "ari": min(agreement(case, model.labels_) for model in models),
            "seconds": seconds,
        }
    at_truth, labels = from_truth(case)
    cell["truth"] = {"objectives": [at_truth], "ari": agreement(case, labels)}
    return cell


def agreement(case: Case, labels: np.ndarray) -> float:
    """The adjusted Rand index of the points that belong somewhere."""
    inside = case.truth >= 0
    return adjusted_rand_index(case.truth[inside], labels[inside])


# ---- tables -----------------------------------------------------------------------------------

WAYS = ("one", "ten", "default", "thorough", "truth")


def as_rows(cells: list[dict]) -> Rows:
    head = [
        *("member", "data", "one descent", "best of ten", "default", "thorough", "from the truth"),
        *("ARI", "ARI from the truth", "time, over one descent", "of ten"),
    ]
    return [head, *map(_row, cells)]


def _row(cell: dict) -> list[str]:
    lowest = min(min(cell[way]["objectives"]) for way in WAYS)
    unit = 1.0 if cell["member"] == "SphericalMixture" else abs(lowest)
    excess = [100 * (mean(cell[way]["objectives"]) - lowest) / unit for way in WAYS]
    one = cell["one"]["seconds"]
    return [
        cell["member"],
        cell["data"],
        *(f"{max(0.0, value):.3f}" for value in excess),
        *(f"{cell[way]['ari']:.3f}" for way in ("default", "truth")),
        *(f"{cell[way]['seconds'] / one:.1f}" for way in ("default", "ten")),
    ]


def as_page(stored: dict) -> str:
    """What the docs say of a stored run."""
    return (
        f"Measured on {stored['date']} by `{PAGE.command.removesuffix(' --page')}` on "
        f"{stored['processor']}, one thread, CPU time. Excess in percent over the lowest objective "
        "that any way found, mean of three seeds; for the mixture, hundredths of a nat for each "
        "point below the highest log-likelihood. ARI is the lowest at the default effort.\n\n"
        + as_markdown(as_rows(stored["figures"]))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    parser.add_argument("--only", metavar="WORD", help="members with it in their name; keep others")
    asked = parser.parse_args()
    if asked.page:
        PAGE.write(as_page(machine.read(NAME, NAME)))
        return
    warnings.simplefilter("ignore")
    stored = machine.read(NAME, NAME)["figures"] if asked.only else []
    kept = {(cell["member"], cell["data"]): cell for cell in stored}
    cells = []
    for case in cases():
        is_kept = asked.only and asked.only not in case.member
        cells.append(kept[case.member, case.data] if is_kept else measured(case))
        print(as_text([_row(cells[-1])]), flush=True)
    print(as_text(as_rows(cells)))
    print(machine.store(NAME, cells))


if __name__ == "__main__":
    main()
