"""What members of the family gain on the data that they are for, and what their sweeps cost.

Parts: `sweeps` of divergences and missing entries compared with squared Euclidean ones;
`divergences` by the simulation of Vellal, Chakraborty & Xu (2022), where each population has its
own; `features` with 5 of 20 that matter; `outliers`, a tenth of all points; `shapes` that no center
describes. Parts that are not asked for stay as they were stored.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Callable, Iterator
from statistics import mean

import numpy as np
import sklearn.datasets
from sklearn.exceptions import ConvergenceWarning

import powermeans
from benchmarks import machine
from benchmarks.apart import shortcuts_taken
from benchmarks.pages import Page, Rows, as_markdown, as_text
from benchmarks.turns import in_turns, repeated
from powermeans.divergences import Binomial, Bregman, Gamma, Mahalanobis, Poisson
from powermeans.metrics import adjusted_rand_index, variation_of_information
from powermeans.rows import open_rows
from powermeans.rules import Hard, Power, Rule

NAME = "family"
PAGE = Page("family", "python -m benchmarks.family --page")
SWEEP_SIZES = ((100_000, 2, 100), (100_000, 10, 20), (100_000, 64, 100), (60_000, 784, 100))
N_TRIALS = 250
POINTS_PER_TRIAL, MIDDLES = 99, (10.0, 20.0, 40.0)
SEEDS = range(20)


def sweeps() -> Iterator[dict]:
    """Sweeps that take no shortcuts, as all of these have none but Euclidean ones."""
    with shortcuts_taken(False):
        for size in SWEEP_SIZES:
            for dtype in (np.float32, np.float64):
                for rule in (Hard(), Power(-3.0)):
                    yield _sweep_cell(*size, dtype, rule)


def _sweep_cell(n_points: int, n_features: int, n_centers: int, dtype: type, rule: Rule) -> dict:
    rng = np.random.default_rng(0)
    points = rng.gamma(3.0, 2.0, size=(n_points, n_features)).astype(dtype)
    centers = points[:n_centers].astype(np.float64)
    shares = (points / (1.01 * points.max())).astype(dtype)
    gaps = np.where(rng.uniform(size=points.shape) < 0.2, dtype(np.nan), points)
    kinds = {
        "squared_euclidean": open_rows(points),
        "poisson": open_rows(points, divergence=Poisson()),
        "gamma": open_rows(points, divergence=Gamma()),
        "binomial": open_rows(shares, divergence=Binomial(1.0)),
        "mahalanobis": open_rows(points, divergence=Mahalanobis(np.eye(n_features))),
        "cosine": open_rows(points, divergence="cosine"),
        "missing": open_rows(gaps, has_missing=True),
    }
    by_shares = shares[:n_centers].astype(np.float64)
    contestants = {
        name: lambda rows=rows, at=by_shares if name == "binomial" else centers: repeated(
            lambda: rows.sweep(at, rule)
        )
        for name, rows in kinds.items()
    }
    timed = in_turns(contestants, rounds=3)["seconds"]
    ratios = {name: value / timed["squared_euclidean"] for name, value in timed.items()}
    return {
        "size": [n_points, n_features, n_centers],
        "dtype": np.dtype(dtype).name,
        "power": rule.power if math.isfinite(rule.power) else None,
        "milliseconds": 1e3 * timed["squared_euclidean"],
        "ratios": ratios,
    }


Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]

POPULATIONS: dict[str, Draw] = {
    "Gaussian": lambda rng, middles: rng.normal(middles, 4.0),
    "binomial": lambda rng, middles: rng.binomial(50, middles / 50).astype(float),
    "Poisson": lambda rng, middles: rng.poisson(middles).astype(float),
    "gamma": lambda rng, middles: rng.gamma(3.0, middles / 3.0),
}
MATCHING = {
    "Gaussian": "squared_euclidean",
    "binomial": "binomial",
    "Poisson": "poisson",
    "gamma": "gamma",
}
# A hair above zero, and the largest number below that of the trials, are where domains end.
DIVERGENCES: dict[str, tuple[str | Bregman, float, float]] = {
    "squared_euclidean": ("squared_euclidean", -math.inf, math.inf),
    "binomial": (Binomial(200.0), 0.0, 200.0),
    "poisson": ("poisson", 0.0, math.inf),
    "gamma": ("gamma", 1e-2, math.inf),
}


def divergences() -> Iterator[dict]:
    """For each population the mean scores of each divergence over the trials."""
    for population, draw_points in POPULATIONS.items():
        scores: dict[str, list[tuple[float, float]]] = {name: [] for name in DIVERGENCES}
        for trial in range(N_TRIALS):
            rng = np.random.default_rng(trial)
            truth = np.repeat(range(3), POINTS_PER_TRIAL // 3)
            points = draw_points(rng, np.array(MIDDLES)[truth][:, None].repeat(2, axis=1))
            for name in DIVERGENCES:
                labels = _labels_by(name, population, points, trial)
                scores[name].append(
                    (adjusted_rand_index(truth, labels), variation_of_information(truth, labels))
                )
        best = [ari for ari, _ in scores[MATCHING[population]]]
        yield {
            "population": population,
            "matching": MATCHING[population],
            "scores": {
                name: {
                    "ari": mean(ari for ari, _ in of),
                    "vi": mean(vi for _, vi in of),
                    # Of the difference from the matching one, trial by trial.
                    "ari error": _standard_error(
                        [a - b for (a, _), b in zip(of, best, strict=True)]
                    ),
                }
                for name, of in scores.items()
            },
        }


def _labels_by(name: str, population: str, points: np.ndarray, seed: int) -> np.ndarray:
    divergence, lowest, highest = DIVERGENCES[name]
    if name == "binomial" and population == "binomial":
        divergence, highest = Binomial(50.0), 50.0
    inside = np.clip(points, lowest, highest)
    return powermeans.PowerKMeans(3, divergence=divergence, random_state=seed).fit(inside).labels_


def _standard_error(values: list[float]) -> float:
    return float(np.std(values, ddof=1) / math.sqrt(len(values)))


def features() -> Iterator[dict]:
    """1000 points, 20 features of which 5 tell four groups apart."""
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        truth = rng.integers(4, size=1000)
        points = rng.normal(size=(1000, 20))
        points[:, :5] = 6 * rng.uniform(size=(4, 5))[truth] + 0.3 * rng.normal(size=(1000, 5))
        points = (points - points.mean(axis=0)) / points.std(axis=0)
        model = powermeans.EntropyWeightedPowerKMeans(4, random_state=seed).fit(points)
        plain = powermeans.PowerKMeans(4, random_state=seed).fit(points)
        yield {
            "seed": seed,
            "ari": adjusted_rand_index(truth, model.labels_),
            "plain ari": adjusted_rand_index(truth, plain.labels_),
            "weight of relevant": float(model.feature_weights_[:5].sum()),
        }


OUTLIERS: dict[str, Draw] = {
    "in a wide box": lambda rng, x: rng.uniform(-60, 60, size=x.shape),
    "in a far clump": lambda rng, x: 80 + rng.normal(size=x.shape),
    "of heavy tails": lambda rng, x: 12 * rng.standard_t(1.5, size=x.shape),
}


def outliers() -> Iterator[dict]:
    """Five groups, and a tenth of all points elsewhere; scores are those of the groups alone."""
    for kind, draw_outliers in OUTLIERS.items():
        for n_features in (2, 10, 50):
            robust, plain = [], []
            for seed in SEEDS:
                rng = np.random.default_rng(seed)
                truth = rng.integers(5, size=900)
                middles = (
                    8
                    * sklearn.datasets.make_blobs(
                        5, n_features, centers=5, cluster_std=0.0, random_state=seed
                    )[0]
                    / math.sqrt(n_features)
                )
                inliers = middles[truth] + rng.normal(size=(900, n_features))
                points = np.vstack([inliers, draw_outliers(rng, np.empty((100, n_features)))])
                for found, estimator in (
                    (robust, powermeans.RobustPowerKMeans),
                    (plain, powermeans.PowerKMeans),
                ):
                    labels = estimator(5, random_state=seed).fit(points).labels_[:900]
                    found.append(adjusted_rand_index(truth, labels))
            yield {
                "kind": kind,
                "n_features": n_features,
                "ari": [mean(robust), min(robust)],
                "plain ari": [mean(plain), min(plain)],
            }


def shapes() -> Iterator[dict]:
    """Two moons, and a ring in a ring."""
    moons = sklearn.datasets.make_moons(600, noise=0.05, random_state=0)
    rings = sklearn.datasets.make_circles(600, noise=0.05, factor=0.4, random_state=0)
    for name, (points, truth), gamma in (("moons", moons, 12.0), ("rings", rings, 5.0)):
        kernel = powermeans.KernelPowerKMeans(2, gamma=gamma, random_state=0).fit(points)
        near = {"affinity": "nearest_neighbors", "random_state": 0}
        spectral = powermeans.SpectralClustering(2, **near).fit(points)
        plain = powermeans.PowerKMeans(2, random_state=0).fit(points)
        yield {
            "shape": name,
            "gamma": gamma,
            "kernel ari": adjusted_rand_index(truth, kernel.labels_),
            "spectral ari": adjusted_rand_index(truth, spectral.labels_),
            "plain ari": adjusted_rand_index(truth, plain.labels_),
        }


# Tables.


def _sweep_rows(cells: list[dict]) -> Rows:
    names = [name for name in cells[0]["ratios"] if name != "squared_euclidean"]
    body = [
        [
            f"{c['size'][0]} x {c['size'][1]}, k={c['size'][2]}, {c['dtype']}",
            "hard" if c["power"] is None else f"{c['power']:g}",
            f"{c['milliseconds']:.3g}",
            *(f"{c['ratios'][name]:.2f}" for name in names),
        ]
        for c in cells
    ]
    return [["points", "power", "Euclidean, ms", *names], *body]


def _divergence_rows(cells: list[dict]) -> Rows:
    names = list(cells[0]["scores"])
    body = []
    for c in cells:
        best = c["scores"][c["matching"]]["ari"]
        body.append(
            [
                c["population"],
                *(
                    f"{of['ari']:.3f}, {of['vi']:.3f}"
                    + (
                        ""
                        if name == c["matching"]
                        else f" ({of['ari'] - best:+.3f} ± {of['ari error']:.3f})"
                    )
                    for name, of in c["scores"].items()
                ),
            ]
        )
    return [["population", *names], *body]


def _feature_rows(cells: list[dict]) -> Rows:
    def spread_of(key: str) -> str:
        values = [c[key] for c in cells]
        return f"{sum(values) / len(values):.3f}, {min(values):.3f}"

    return [
        ["", "mean, worst"],
        ["with learned feature weights", spread_of("ari")],
        ["with all features alike", spread_of("plain ari")],
        ["weight of the 5 features", spread_of("weight of relevant")],
    ]


def _outlier_rows(cells: list[dict]) -> Rows:
    return [
        ["outliers", "features", "RobustPowerKMeans", "PowerKMeans"],
        *(
            [
                c["kind"],
                str(c["n_features"]),
                *(f"{of[0]:.3f}, {of[1]:.3f}" for of in (c["ari"], c["plain ari"])),
            ]
            for c in cells
        ),
    ]


def _shape_rows(cells: list[dict]) -> Rows:
    return [
        ["shape", "KernelPowerKMeans", "SpectralClustering", "PowerKMeans"],
        *(
            [
                f"{c['shape']} (gamma = {c['gamma']:g})",
                *(f"{c[key]:.3f}" for key in ("kernel ari", "spectral ari", "plain ari")),
            ]
            for c in cells
        ),
    ]


PARTS: dict[str, Callable[[], Iterator[dict]]] = {
    "sweeps": sweeps,
    "divergences": divergences,
    "features": features,
    "outliers": outliers,
    "shapes": shapes,
}
ROWS: dict[str, Callable[[list[dict]], Rows]] = {
    "sweeps": _sweep_rows,
    "divergences": _divergence_rows,
    "features": _feature_rows,
    "outliers": _outlier_rows,
    "shapes": _shape_rows,
}
TITLES = {
    "sweeps": "Time of a sweep, as a multiple of that with squared Euclidean distances",
    "divergences": "Each population has its divergence",
    "features": "5 features of 20 that matter",
    "outliers": "A tenth of the points are outliers",
    "shapes": "Shapes that no center describes",
}
NOTES = {
    "sweeps": "All shortcuts are off: every point is compared with every center. With up to 16 "
    "features, products are in float64 even for float32 points, since sums of few of them cancel; "
    "squared Euclidean distances are then sums of squared differences, which do not cancel. Points "
    "with missing entries are stored as pairs, twice as wide.",
    "divergences": "99 points in 2 features, in three groups around 10, 20 and 40, in 250 trials: "
    "mean adjusted Rand index, and variation of information. In parentheses: how far the index is "
    "above that of the matching divergence, and the standard error of that difference.",
    "outliers": "Adjusted Rand index of the 900 points in five groups: mean and worst of 20 seeds.",
    "features": "Adjusted Rand index over 20 seeds.",
    "shapes": "600 points each; adjusted Rand index.",
}


def as_page(stored: dict) -> str:
    return "\n\n".join(
        f"### {TITLES[name]}\n\n{NOTES[name]} {machine.measured(part)}.\n\n"
        + as_markdown(ROWS[name](part["cells"]))
        for name, part in stored["figures"].items()
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    arguments = parser.parse_args()
    if arguments.page:
        PAGE.write(as_page(machine.read(NAME, NAME)))
        return
    warnings.simplefilter("ignore", ConvergenceWarning)
    for part in arguments.parts:
        cells = list(PARTS[part]())
        print(f"{TITLES[part]}\n{as_text(ROWS[part](cells))}\n", flush=True)
        print(machine.store_part(NAME, part, cells))


if __name__ == "__main__":
    main()
