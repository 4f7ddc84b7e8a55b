"""Run the same fits with a former commit and with this tree, and say which bits differ.

    python -m tests.fit_digests COMMIT         # builds the commit once, below build/former
    python -m tests.fit_digests --package DIR  # or compare with a package that is built already

A fit is an expression. The exit status is 1 if a digest differs, or if a fit fails
on one side only.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

ROOT = Path(__file__).parents[1]
ATTRIBUTES = (
    "cluster_centers_", "labels_", "inertia_", "n_iter_", "power_", "sizes_", "covariance_",
    "variance_", "feature_weights_", "is_outlier_", "penalty_", "embedding_", "n_clusters_",
    "table", "recommended", "is_clear", "bound",
)  # fmt: skip
# Estimators, as they are written, for points of all forms and of some.
OF_ALL_FORMS = [
    *(f'PowerKMeans(7, effort="{effort}")' for effort in ("fast", "balanced", "thorough", "none")),
    "PowerKMeans(7, power=-3, polish=False)",
    "KMeans(7)",
    'KMeans(7, init="random", n_init=3)',
    "KHarmonicMeans(7)",
    "FuzzyCMeans(7, fuzzifier=1.7)",
    "SphericalMixture(4)",
]
OF_SOME_FORMS = [
    "KHarmonicMeans(7, p=3.5)",
    "GradientKMeans(7)",
    "OnlineKMeans(7)",
    "RobustPowerKMeans(7)",
    "MiniBatchKMeans(7, batch_size=100)",
    "MiniBatchPowerKMeans(7, batch_size=100)",
    "EntropyWeightedPowerKMeans(7)",
    "DPMeans(n_clusters_wanted=6)",
    "SelfOrganizingMap((4, 3))",
]
OF_SIZES = ["size_min=100", "size_max=0.1", "size_min=110, size_max=140", "balance=1", "balance=.3"]
# Divergences, with the points for them.
BY_DIVERGENCE = {
    '"poisson"': "counts",
    '"poisson" ': "sparse_counts",
    "divergences.Binomial(60)": "few_counts",
    '"logistic"': "shares",
    '"gamma"': "positive",
    '"cosine"': "blobs",
    '"manhattan"': "plane",
    "divergences.Mahalanobis(np.diag([1.0, 2, 3, 4, 5]))": "blobs",
    '"mahalanobis"': "blobs",
}
# Of many points, which may be in parts; tests say that files and Dask give the bits of memory.
OF_MANY = [
    'PowerKMeans(6, effort="fast", max_iter=20)',
    "KHarmonicMeans(6, max_iter=10)",
    "KMeans(6, init=ParallelSeeds(), n_init=1, max_iter=20)",
    "FuzzyCMeans(6, max_iter=10)",
    *(f"KMeans(9, init={kind}Seeds(), n_init=1, max_iter=1)" for kind in ("Tree", "MarkovChain")),
]


def points() -> dict[str, Any]:
    """Return the points of all fits, and weights, by their names."""
    rng = np.random.default_rng(20)
    middles = rng.normal(0, 4, size=(12, 5))
    blobs = middles[rng.integers(12, size=1500)] + rng.normal(size=(1500, 5))
    rates = np.exp(rng.normal(1, 1, size=(5, 8)))[rng.integers(5, size=400)]
    counts = rng.poisson(rates).astype(float)
    many = rng.standard_t(4, size=(20_000, 24)) + 2 * rng.integers(3, size=(20_000, 1))
    return {
        "blobs": blobs,
        "single": blobs.astype(np.float32),
        "plane": rng.normal(0, 5, (9, 2))[rng.integers(9, size=900)] + rng.normal(size=(900, 2)),
        "wide": rng.normal(size=(60, 200)) + 3 * rng.integers(2, size=(60, 1)),
        "many": many,
        "parts": [many[start : start + 6000] for start in range(0, len(many), 6000)],
        "counts": counts,
        "sparse_counts": sparse.csr_array(counts),
        "few_counts": np.minimum(counts, 60),
        "shares": rng.beta(2, 3, size=(400, 6)),
        "positive": rng.gamma(3, 2, size=(400, 4)),
        "gaps": np.where(rng.uniform(size=blobs.shape) < 0.1, np.nan, blobs),
        "few_entries": sparse.random_array((600, 80), density=0.1, rng=rng, format="csr"),
        "whole_weights": rng.integers(0, 4, size=1500).astype(float),
        "weights": rng.uniform(0.1, 2, size=1500),
    }


def fits() -> Iterator[str]:
    """Yield expressions of what is found."""
    for X in ("blobs", "single", "few_entries", "plane", "wide"):
        yield from (f"{model}.fit({X})" for model in OF_ALL_FORMS)
    for X in ("blobs", "single", "blobs, sample_weight=whole_weights"):
        yield from (f"{model}.fit({X})" for model in OF_SOME_FORMS)
    for w in ("whole_weights", "weights"):
        yield from (f"{model}.fit(single, sample_weight={w})" for model in OF_ALL_FORMS)
    yield from (f"KernelPowerKMeans(4).fit({X}[:300])" for X in ("blobs", "single"))
    yield "SpectralClustering(3, gamma=0.5).fit(plane[:300])"
    for effort in ("fast", "balanced"):
        for sizes in OF_SIZES:
            yield f'BalancedKMeans(12, {sizes}, effort="{effort}").fit(blobs)'
        yield from (
            f'choose_k({X}, range(2, 14), effort="{effort}", criteria="separation", random_state=3)'
            for X in ("blobs", "plane", "wide")
        )
    yield "BalancedKMeans(12, size_max=150.0).fit(blobs, sample_weight=weights)"
    given = {f"divergence={name}": X for name, X in BY_DIVERGENCE.items()}
    for option, X in {**given, 'missing="observed"': "gaps"}.items():
        for effort in ("fast", "balanced", "none"):
            yield f'PowerKMeans(5, {option}, effort="{effort}").fit({X})'
    yield from (f"{model}.fit({X})" for model in OF_MANY[:4] for X in ("many", "parts"))
    yield from (f"{model}.fit(many)" for model in OF_MANY[4:])
    yield from (f"kmeans_plusplus({X}, 9, random_state=3)" for X in ("blobs", "plane", "wide"))
    yield "optimality_gap(plane[:150], PowerKMeans(3, random_state=3).fit(plane[:150]))"
    for method in ("transform", "memberships", "score"):
        yield f"PowerKMeans(7, random_state=3).fit(blobs).{method}(blobs[::3] + 1)"


def found_by(expression: str, names: dict[str, Any]) -> Any:
    """Return what an expression finds; an estimator gets a random state where none is given."""
    if "random_state" in expression:
        return eval(expression, names)
    estimator, _, given = expression.partition(".fit(")
    model = eval(estimator, names).set_params(random_state=3)
    return eval(f"model.fit({given}", {**names, "model": model})


def digest(result: Any) -> str:
    """Return a digest of the bits of all that was found."""
    hashed = hashlib.sha256()
    parts = {"value": result} if isinstance(result, tuple | float | np.ndarray) else {}
    for name in ATTRIBUTES:
        value = getattr(result, name, None)
        of_name = value if isinstance(value, dict) else {"": value}
        parts |= {f"{name} {key}": part for key, part in of_name.items() if part is not None}
    for name, part in parts.items():
        for array in map(np.asarray, part if isinstance(part, tuple) else [part]):
            hashed.update(f"{name} {array.dtype} {array.shape}".encode())
            hashed.update(np.ascontiguousarray(array).tobytes())
    return hashed.hexdigest()[:16]


def print_digests() -> None:
    """Print the digest of every fit, or why it fails, as one line of JSON each."""
    import powermeans

    warnings.simplefilter("ignore")
    public = {name: getattr(powermeans, name) for name in powermeans.__all__}
    names = {**points(), **public, "divergences": powermeans.divergences, "np": np}
    for name in fits():
        try:
            found = digest(found_by(name, names))
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
