"""The members of the family, their lines of code, and the checks of scikit-learn that they pass."""

from __future__ import annotations

import ast
import inspect
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import SkipTest

from sklearn.exceptions import SkipTestWarning
from sklearn.utils.estimator_checks import estimator_checks_generator

import powermeans

PACKAGE = Path(powermeans.power_mean.__file__).parent


@dataclass(frozen=True)
class Member:
    """A method of the family: where it comes from, and what it is in this package."""

    source: str
    rule: str
    divergence: str
    route: str
    modules: tuple[str, ...]


MEMBERS: dict[str, Member] = {
    "KMeans": Member(
        "Lloyd 1957; Bottou & Bengio 1995, eq. 5",
        "hard",
        "squared Euclidean",
        "scikit-learn's own tests of KMeans",
        ("estimators/kmeans.py",),
    ),
    "PowerKMeans": Member(
        "Xu & Lange 2019",
        "power mean, annealed",
        "any of the list below",
        "Algorithm 1 written out; fuzzy c-means; lowest known sums of squares",
        ("estimators/power_kmeans.py",),
    ),
    "KHarmonicMeans": Member(
        "Zhang, Hsu & Dayal 1999; Zhang 2001; hybrids of Hamerly & Elkan 2002",
        "harmonic, p; one half of it",
        "squared Euclidean",
        "Zhang's formulas written out; power k-means at -1",
        ("estimators/soft_means.py",),
    ),
    "FuzzyCMeans": Member(
        "Bezdek 1981",
        "power mean, held",
        "squared Euclidean",
        "Bezdek's algorithm written out",
        ("estimators/soft_means.py",),
    ),
    "SphericalMixture": Member(
        "Bottou & Bengio 1995, section 5; Rose 1998",
        "Gaussian",
        "squared Euclidean",
        "EM written out; scikit-learn's GaussianMixture; SciPy",
        (
            "estimators/mixture/spherical_mixture.py",
            "estimators/mixture/learning.py",
            "critical.py",
        ),
    ),
    "OnlineKMeans": Member(
        "Bottou & Bengio 1995, eq. 4 and 7",
        "hard, point by point",
        "squared Euclidean",
        "the recursion written out",
        (
            "estimators/streams/online_kmeans.py",
            "rules.py",
            "estimators/learning_rates.py",
            "seeds/orders.py",
            "estimators/streams/base.py",
        ),
    ),
    "GradientKMeans": Member(
        "Bottou & Bengio 1995, eq. 3",
        "hard, a step",
        "squared Euclidean",
        "the gradient written out; Lloyd's step at rate 1/n",
        ("estimators/gradient_kmeans.py",),
    ),
    "MiniBatchPowerKMeans": Member(
        "incremental MM; Sculley 2010",
        "power mean, annealed",
        "squared Euclidean",
        "sums of batches written out; scikit-learn's MiniBatchKMeans",
        ("estimators/streams/mini_batch.py", "estimators/streams/running_sums.py"),
    ),
    "DPMeans": Member(
        "Kulis & Jordan 2012",
        "hard, opening clusters",
        "squared Euclidean",
        "the best of all partitions of few points",
        ("estimators/dp_means.py",),
    ),
    "KernelPowerKMeans": Member(
        "Paul et al. 2022",
        "power mean, annealed",
        "of a kernel",
        "the feature map of a polynomial kernel; distances from the Gram matrix",
        ("estimators/kernel_power_kmeans.py", "estimators/kernel_features.py"),
    ),
    "EntropyWeightedPowerKMeans": Member(
        "Chakraborty et al. 2020",
        "power mean, annealed",
        "squared Euclidean, weighted features",
        "the paper's algorithm written out",
        ("estimators/entropy_weighted.py", "rows/feature_weighted.py"),
    ),
    "RobustPowerKMeans": Member(
        "Cuesta-Albertos et al. 1997; Paul et al. 2021",
        "power mean of the near points",
        "squared Euclidean",
        "trimming written out",
        ("estimators/robust_power_kmeans.py", "rows/trimmed.py"),
    ),
    "SpectralClustering": Member(
        "Ng, Jordan & Weiss 2001",
        "power mean, annealed",
        "of a graph",
        "moons and rings; scikit-learn's embedding",
        ("estimators/spectral.py",),
    ),
    "SelfOrganizingMap": Member(
        "Kohonen 1990",
        "hard, shared with neighbours",
        "squared Euclidean",
        "batch SOM written out; Lloyd's step at radius zero",
        ("estimators/self_organizing_map.py",),
    ),
    "moment_estimates": Member(
        "Hsu & Kakade 2013",
        "none: moments",
        "squared Euclidean",
        "exact moments of known mixtures",
        ("estimators/mixture/moments.py",),
    ),
    'PowerKMeans(divergence="poisson")': Member(
        "Banerjee et al. 2005; Vellal et al. 2022",
        "power mean, annealed",
        "Poisson, or Kullback-Leibler",
        "SciPy's Poisson likelihood",
        ("divergences/poisson.py",),
    ),
    "PowerKMeans(divergence=Binomial(N))": Member(
        "Banerjee et al. 2005; Vellal et al. 2022",
        "power mean, annealed",
        "binomial, or logistic",
        "SciPy's binomial likelihood",
        ("divergences/binomial.py",),
    ),
    'PowerKMeans(divergence="gamma")': Member(
        "Banerjee et al. 2005; Vellal et al. 2022",
        "power mean, annealed",
        "gamma, exponential, Itakura-Saito",
        "SciPy's gamma likelihood",
        ("divergences/gamma.py",),
    ),
    "PowerKMeans(divergence=Generated(phi, grad_phi))": Member(
        "Bregman 1967; Banerjee et al. 2005",
        "power mean, annealed",
        "any Bregman",
        "squared Euclidean from its function",
        ("divergences/bregman.py", "rows/bregman.py", "rows/affine.py"),
    ),
    'PowerKMeans(divergence="mahalanobis")': Member(
        "Friedman & Rubin 1967",
        "power mean, annealed",
        "Mahalanobis, given or learned",
        "squared Euclidean after whitening",
        ("divergences/mahalanobis.py", "estimators/shared_covariance.py"),
    ),
    'PowerKMeans(divergence="cosine")': Member(
        "Dhillon & Modha 2001",
        "power mean, annealed",
        "cosine",
        "squared Euclidean on rows of unit length",
        ("divergences/cosine.py", "rows/cosine.py"),
    ),
    'PowerKMeans(divergence="manhattan")': Member(
        "Bradley, Mangasarian & Street 1997",
        "power mean, annealed",
        "sum of absolute differences",
        "medians of repeated points; the best of all partitions of few points",
        ("divergences/manhattan.py", "rows/manhattan.py"),
    ),
    'PowerKMeans(missing="observed")': Member(
        "Chi, Chi & Baraniuk 2016",
        "power mean, annealed",
        "squared Euclidean of what is observed",
        "k-POD written out",
        ("rows/observed.py",),
    ),
    "HardHarmonic, EvenHarmonic": Member(
        "Hamerly & Elkan 2002, hybrids 1 and 2",
        "mixed",
        "squared Euclidean",
        "their table written out",
        ("rules.py",),
    ),
}


def members() -> Iterator[dict]:
    """Each member with its lines of code and the checks of scikit-learn that it passes."""
    for name, member in MEMBERS.items():
        checked = _made(name)
        yield {
            "name": name,
            "source": member.source,
            "rule": member.rule,
            "divergence": member.divergence,
            "route": member.route,
            "lines": sum(lines_of_code(PACKAGE / module) for module in member.modules),
            "checks": None if checked is None else checks_of(checked),
        }


def _made(name: str) -> object | None:
    """An estimator of this name, where there is one that takes any data."""
    if name.startswith("PowerKMeans("):
        arguments = name.removeprefix("PowerKMeans(").removesuffix(")")
        keyword, _, value = arguments.partition("=")
        if value.strip('"') not in ("mahalanobis", "cosine", "manhattan", "observed"):
            return None
        return powermeans.PowerKMeans(**{keyword: value.strip('"')})
    kind = getattr(powermeans, name, None)
    return kind() if inspect.isclass(kind) else None


def lines_of_code(path: Path) -> int:
    """Lines that hold code: no blank ones, no comments, no docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    in_words = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    lines = enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
    return sum(
        1
        for number, line in lines
        if line.strip() and not line.lstrip().startswith("#") and number not in in_words
    )


def checks_of(estimator: object) -> list[int]:
    """How many of scikit-learn's checks it passes, fails and skips."""
    passed = failed = skipped = 0
    for made, check in estimator_checks_generator(estimator):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check(made)
            passed += 1
        except (SkipTest, SkipTestWarning):
            skipped += 1
        except Exception as error:
            print(f"{estimator}: {error}")
            failed += 1
    return [passed, failed, skipped]
