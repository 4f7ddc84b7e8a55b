"""Run the same fits with a former commit and with this tree, and say which bits differ.

    python -m tests.fit_digests COMMIT         # builds the commit once, below build/former
    python -m tests.fit_digests --package DIR  # or compare with a package that is built already

A fit is a name, a call and its points. The exit status is 1 if a digest differs, or if a fit fails
on one side only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

ROOT = Path(__file__).parents[1]
ATTRIBUTES = (
    "cluster_centers_", "labels_", "inertia_", "n_iter_", "power_", "sizes_", "covariance_",
    "variance_", "feature_weights_", "is_outlier_", "penalty_", "embedding_", "n_clusters_",
    "table", "recommended", "is_clear", "lower_bound", "seeds",
)  # fmt: skip
Fit = Callable[[], Any]

# The name of each fit, with its class, its first argument and its parameters.
OF_ALL_FORMS: dict[str, tuple[str, int, dict[str, Any]]] = {
    "power, fast": ("PowerKMeans", 7, {"effort": "fast"}),
    "power, balanced": ("PowerKMeans", 7, {"effort": "balanced"}),
    "power, thorough": ("PowerKMeans", 7, {"effort": "thorough"}),
    "power, one descent": ("PowerKMeans", 7, {"effort": "none"}),
    "power, as published": ("PowerKMeans", 7, {"power": -3, "polish": False}),
    "k-means": ("KMeans", 7, {}),
    "k-means from random seeds": ("KMeans", 7, {"init": "random", "n_init": 3}),
    "harmonic": ("KHarmonicMeans", 7, {}),
    "fuzzy": ("FuzzyCMeans", 7, {"fuzzifier": 1.7}),
    "mixture": ("SphericalMixture", 4, {}),
}
OF_SOME_FORMS: dict[str, tuple[str, Any, dict[str, Any]]] = {
    "harmonic of 3.5": ("KHarmonicMeans", 7, {"p": 3.5}),
    "gradient": ("GradientKMeans", 7, {}),
    "online": ("OnlineKMeans", 7, {}),
    "mini-batch": ("MiniBatchKMeans", 7, {"batch_size": 100}),
    "mini-batch power": ("MiniBatchPowerKMeans", 7, {"batch_size": 100}),
    "entropy weights": ("EntropyWeightedPowerKMeans", 7, {}),
    "robust": ("RobustPowerKMeans", 7, {"trim": 0.1}),
    "penalty": ("DPMeans", None, {"n_clusters_wanted": 6}),
    "map": ("SelfOrganizingMap", (4, 3), {}),
}


OF_SIZES: dict[str, dict[str, Any]] = {
    "least size": {"size_min": 100},
    "largest size": {"size_max": 0.1},
    "both sizes": {"size_min": 110, "size_max": 140},
    "even sizes": {"balance": 1.0},
    "balance": {"balance": 0.3},
}


def digest(result: Any) -> str:
    """Return a digest of the bits of all that a fit found."""
    hashed = hashlib.sha256()
    for name in ATTRIBUTES:
        value = result.get(name) if isinstance(result, dict) else getattr(result, name, None)
        for part in value.values() if isinstance(value, dict) else [value]:
            if part is not None:
                array = np.asarray(part.compute() if hasattr(part, "compute") else part)
                hashed.update(f"{name} {array.dtype} {array.shape}".encode())
                hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()[:16]


class Points:
    """The points of all fits, drawn once."""

    def __init__(self) -> None:
        rng = np.random.default_rng(20)
        middles = rng.normal(0, 4, size=(12, 5))
        self.blobs = middles[rng.integers(12, size=1500)] + rng.normal(size=(1500, 5))
        self.plane = rng.normal(0, 5, (9, 2))[rng.integers(9, size=900)] + rng.normal(size=(900, 2))
        self.wide = rng.normal(size=(60, 200)) + 3 * rng.integers(2, size=(60, 1))
        self.long = rng.standard_t(4, size=(20_000, 24)) + 2 * rng.integers(3, size=(20_000, 1))
        self.counts = rng.poisson(np.exp(rng.normal(1, 1, size=(5, 8)))[rng.integers(5, size=400)])
        self.counts = self.counts.astype(float)
        self.shares = rng.beta(2, 3, size=(400, 6))
        self.positive = rng.gamma(3, 2, size=(400, 4))
        self.gaps = np.where(rng.uniform(size=self.blobs.shape) < 0.1, np.nan, self.blobs)
        self.sparse = sparse.random_array((600, 80), density=0.1, rng=rng, format="csr")
        self.weights = rng.integers(0, 4, size=1500).astype(float)
        self.real_weights = rng.uniform(0.1, 2, size=1500)


def fits(module: Any, folder: Path) -> Iterator[tuple[str, Fit]]:
    """Yield the name of each fit, and a function that makes it."""
    points = Points()

    def fit(name: str, k: Any, X: Any, w: Any = None, **parameters: Any) -> Fit:
        first, kind = [] if k is None else [k], getattr(module, name)
        return lambda: kind(*first, random_state=3, **parameters).fit(X, sample_weight=w)

    forms: dict[str, tuple[Any, Any]] = {
        "float64": (points.blobs, None),
        "float32": (points.blobs.astype(np.float32), None),
        "CSR": (points.sparse, None),
        "whole weights": (points.blobs, points.weights),
        "weights": (points.blobs.astype(np.float32), points.real_weights),
        "plane": (points.plane, None),
        "wide": (points.wide, None),
    }
    for form, (X, w) in forms.items():
        is_tried_by_all = form in ("float64", "float32", "whole weights")
        kinds = OF_ALL_FORMS | OF_SOME_FORMS if is_tried_by_all else OF_ALL_FORMS
        for name, (kind, k, given) in kinds.items():
            yield f"{name}, {form}", fit(kind, k, X, w, **given)
        if is_tried_by_all:
            small, of_small = X[:300], None if w is None else w[:300]
            yield f"kernel, {form}", fit("KernelPowerKMeans", 4, small, of_small)
    spectral = module.SpectralClustering(3, gamma=0.5, random_state=3)
    yield "spectral", partial(spectral.fit, points.plane[:300])
    for name, limits in OF_SIZES.items():
        for effort in ("fast", "balanced"):
            made = fit("BalancedKMeans", 12, points.blobs, effort=effort, **limits)
            yield f"{name}, {effort}", made
    made = fit("BalancedKMeans", 12, points.blobs, points.real_weights, size_max=150.0)
    yield "largest weight", made
    yield from _fits_by_divergence(module.divergences, points, fit)
    yield from _fits_of_parts(module, points, folder, fit)
    yield from _other_results(module, points)


def _fits_by_divergence(
    own: Any, points: Points, fit: Callable[..., Fit]
) -> Iterator[tuple[str, Fit]]:
    cases: dict[str, tuple[Any, Any]] = {
        "poisson": ("poisson", points.counts),
        "poisson of CSR": ("poisson", sparse.csr_array(points.counts)),
        "binomial": (own.Binomial(60), np.minimum(points.counts, 60)),
        "logistic": ("logistic", points.shares),
        "gamma": ("gamma", points.positive),
        "cosine": ("cosine", points.blobs),
        "manhattan": ("manhattan", points.plane),
        "Mahalanobis": (own.Mahalanobis(np.diag([1.0, 2, 3, 4, 5])), points.blobs),
        "learned covariance": ("mahalanobis", points.blobs),
        "missing entries": ("squared_euclidean", points.gaps),
    }
    for name, (divergence, X) in cases.items():
        given = {"missing": "observed"} if name == "missing entries" else {"divergence": divergence}
        for effort in ("fast", "balanced", "none"):
            yield f"{name}, {effort}", fit("PowerKMeans", 5, X, effort=effort, **given)


def _fits_of_parts(
    module: Any, points: Points, folder: Path, fit: Callable[..., Fit]
) -> Iterator[tuple[str, Fit]]:
    path = folder / "points.npy"
    np.save(path, points.long)
    parts = [points.long[start : start + 6000] for start in range(0, len(points.long), 6000)]
    for name, parameters in {
        "PowerKMeans": {"effort": "fast", "max_iter": 20},
        "KMeans": {"init": module.ParallelSeeds(), "n_init": 1, "max_iter": 20},
        "KHarmonicMeans": {"max_iter": 10},
        "FuzzyCMeans": {"max_iter": 10},
    }.items():
        yield f"{name} of memory", fit(name, 6, points.long, **parameters)
        yield f"{name} of parts", fit(name, 6, parts, **parameters)
        yield f"{name} of a file", fit(name, 6, str(path), **parameters)
        yield f"{name} of Dask", _of_dask(fit, name, points.long, parameters)


def _of_dask(fit: Callable[..., Fit], name: str, X: Any, parameters: dict[str, Any]) -> Fit:
    def found() -> Any:
        import dask
        import dask.array

        with dask.config.set(scheduler="threads"):
            collection = dask.array.from_array(X, chunks=(7000, -1))
            model = fit(name, 6, collection, **parameters)()
            return {"cluster_centers_": model.cluster_centers_, "labels_": model.labels_}

    return found


def _other_results(module: Any, points: Points) -> Iterator[tuple[str, Fit]]:
    def choice(X: Any, effort: str) -> Any:
        given = {"effort": effort, "criteria": ["separation"], "random_state": 3}
        found = module.choose_k(X, range(2, 14), **given)
        of_k = {"recommended": found.recommended, "is_clear": found.is_clear}
        return {**of_k, "table": found.table["inertia"]}

    def seeds(X: Any, kind: str) -> Any:
        init = getattr(module, kind)()
        model = module.KMeans(9, init=init, n_init=1, max_iter=1, random_state=3)
        return {"seeds": model.fit(X).cluster_centers_}

    def bound(X: Any) -> Any:
        model = module.PowerKMeans(3, random_state=3).fit(X)
        return {"lower_bound": module.optimality_gap(X, model).bound}

    for name, X in {"blobs": points.blobs, "plane": points.plane, "wide": points.wide}.items():
        for effort in ("fast", "balanced"):
            yield f"chosen k, {effort}, {name}", partial(choice, X, effort)
        drawn = partial(module.kmeans_plusplus, X, 9, random_state=3)
        yield f"seeds, {name}", lambda drawn=drawn: {"seeds": drawn()[0]}
    for kind in ("ParallelSeeds", "TreeSeeds", "MarkovChainSeeds"):
        yield f"seeds by {kind}", partial(seeds, points.long, kind)
    yield "gap", partial(bound, points.plane[:150])
    model, others = module.PowerKMeans(7, random_state=3).fit(points.blobs), points.blobs[::3] + 1
    for method in ("transform", "memberships", "score"):
        asked = partial(getattr(model, method), others)
        yield f"{method} of new points", lambda asked=asked: {"seeds": asked()}


def print_digests() -> None:
    """Print the digest of every fit, or why it fails, as one line of JSON each."""
    import powermeans

    with tempfile.TemporaryDirectory() as folder:
        for name, make in fits(powermeans, Path(folder)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    found = digest(make())
                except Exception as error:  # the other side may fail in the same way
                    found = f"{type(error).__name__}: {error}"
            print(json.dumps([name, found]), flush=True)


def digests_of(package: Path) -> dict[str, str]:
    """Return the digests that the package in this folder gives, in a process of its own."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(package), str(ROOT)])}
    command = [sys.executable, "-c", "from tests import fit_digests as f; f.print_digests()"]
    printed = subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, check=True, cwd=package
    )
    return dict(json.loads(line) for line in printed.stdout.splitlines())


def main() -> None:
    """Compare the digests of a former package with those of this tree."""
    parser = argparse.ArgumentParser(description="Compare the bits of fits with a former commit.")
    parser.add_argument("commit", nargs="?", help="the former commit")
    parser.add_argument("--package", type=Path, help="a folder with the former package, built")
    arguments = parser.parse_args()
    if (arguments.commit is None) == (arguments.package is None):
        parser.error("pass a commit or --package")
    if arguments.package is None:
        from benchmarks.former import commit_of, installed

        arguments.package = installed(commit_of(arguments.commit))
    former, now = digests_of(arguments.package.resolve()), digests_of(ROOT / "src")
    differing = [name for name in now if now[name] != former.get(name)]
    for name in differing:
        print(f"{name}: {former.get(name)} formerly, {now[name]} now")
    failing = sum(":" in found for found in now.values())
    print(f"{len(now) - len(differing)} of {len(now)} digests are equal; {failing} fits fail")
    sys.exit(bool(differing))


if __name__ == "__main__":
    main()
