"""The members of the family: who they are, and the figures that each is asked for.

Parts: `members`, the table; `sweeps` of divergences and missing entries beside squared Euclidean
ones; `divergences` by the simulation of Vellal, Chakraborty & Xu (2022), where each population has
its own; `features` with 5 of 20 that matter; `outliers`, a tenth of all points; `followups`, two
later methods that the package does not have; `shapes` that no center describes. Parts that are not
asked for stay as they were stored.
"""

from __future__ import annotations

import argparse
import datetime
import warnings
from collections.abc import Callable, Iterator

from sklearn.exceptions import ConvergenceWarning

from benchmarks import family_parts, machine
from benchmarks.followups import followup_rows, followups, verdict
from benchmarks.members import members
from benchmarks.pages import Page, Rows, as_markdown, as_text

NAME = "family"
PAGE = Page("family", "python -m benchmarks.family --page")

PARTS: dict[str, Callable[[], Iterator[dict]]] = {
    "members": members,
    "sweeps": family_parts.sweeps,
    "divergences": family_parts.divergences,
    "features": family_parts.features,
    "outliers": family_parts.outliers,
    "followups": followups,
    "shapes": family_parts.shapes,
}
TITLES = {
    "members": "The methods",
    "sweeps": "Time of a sweep, as a multiple of that with squared Euclidean distances",
    "divergences": "Each population has its divergence",
    "features": "5 features of 20 that matter",
    "outliers": "A tenth of the points are outliers",
    "followups": "Two later methods, against outliers",
    "shapes": "Shapes that no center describes",
}
NOTES = {
    "members": "Lines are those of the files that hold nothing else, without comments and "
    "docstrings. Checks are scikit-learn's: passed + skipped, and failed if any did. Those fail "
    "because cosine refuses the rows of zeros in their data, the covariance of 15 points of 30 "
    "features has no inverse but by rounding, and the 49 nodes of a map are not three groups.",
    "sweeps": "All shortcuts are off: every point is compared with every center. With up to 16 "
    "features, products are in float64 even for float32 points, since sums of few of them cancel; "
    "squared Euclidean distances are then sums of squared differences, which do not cancel. Points "
    "with missing entries are stored as pairs, twice as wide.",
    "divergences": "99 points in 2 features, in three groups around 10, 20 and 40, in 250 trials: "
    "mean adjusted Rand index, and variation of information. In parentheses: how far the index is "
    "above that of the matching divergence, and the standard error of that difference.",
    "outliers": "Adjusted Rand index of the 900 points in five groups: mean and worst of 20 seeds.",
    "followups": "600 points in five groups of unit variance, where nothing else is said. Scores "
    "are adjusted Rand indices of the points that are no outliers, each in the cluster of its "
    "nearest center: means over 6 sets of each kind.",
    "features": "Adjusted Rand index over 20 seeds.",
    "shapes": "600 points each; adjusted Rand index.",
}


JUDGED = (
    "- *Settings.* A method that has settings takes the one of four that is best on 6 other "
    "sets of the kind, or the mean of those that are equally good there. The last "
    "lines take one setting for all kinds.\n"
    "- *Clearly* is by more than two standard errors of the difference, set by set.\n"
    "- *Time* is that of a processor, not of a clock.\n"
    "- *The two methods* are in `benchmarks/followups.py`, not in the package. They begin at the "
    "centers of `PowerKMeans` and at k-means++, and keep what is better by their own objective. Of "
    "the possibilistic method only the memberships are compared, in our own form, and not its "
    "learning of kernels.\n"
)
"""How the later methods are compared, a line each."""


def as_rows(part: str, cells: list[dict]) -> Rows:
    """The table of a part."""
    return ROWS[part](cells)


def _member_rows(cells: list[dict]) -> Rows:
    head = ["member", "source", "rule", "distance", "tested against", "lines", "checks"]
    return [
        head,
        *(
            [
                c["name"],
                c["source"],
                c["rule"],
                c["divergence"],
                c["route"],
                str(c["lines"]),
                _checks(c["checks"]),
            ]
            for c in cells
        ),
    ]


def _checks(counts: list[int] | None) -> str:
    if counts is None:
        return ""
    passed, failed, skipped = counts
    return f"{passed} + {skipped}" + (f", {failed} failed" if failed else "")


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


ROWS: dict[str, Callable[[list[dict]], Rows]] = {
    "members": _member_rows,
    "sweeps": _sweep_rows,
    "divergences": _divergence_rows,
    "features": _feature_rows,
    "outliers": _outlier_rows,
    "followups": followup_rows,
    "shapes": _shape_rows,
}


def said_of(part: str, cells: list[dict]) -> str:
    """What a part says beside its note and its table."""
    return f"\n\n{JUDGED}{verdict(cells)}" if part == "followups" else ""


def as_page(stored: dict) -> str:
    """What the docs say of a stored run."""
    parts = stored["figures"]
    sections = [
        f"### {TITLES[name]}\n\n{NOTES[name]} Measured on {parts[name]['date']}, on "
        f"{parts[name]['processor']}.{said_of(name, parts[name]['cells'])}\n\n"
        + as_markdown(as_rows(name, parts[name]["cells"]))
        for name in PARTS
        if name in parts
    ]
    of = stored["versions"]
    measured = (
        f"By `{PAGE.command.removesuffix(' --page')}` on {stored['processors used']} processors, "
        f"Python {of['python']}, NumPy {of['numpy']}, "
        f"scikit-learn {of['scikit-learn']}."
    )
    return "\n\n".join([measured, *sections])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--page", action="store_true", help="write what is stored into the docs")
    arguments = parser.parse_args()
    if arguments.page:
        PAGE.write(as_page(machine.read(NAME, NAME)))
        return
    warnings.simplefilter("ignore", ConvergenceWarning)
    is_stored = machine.stored_at(NAME).is_file()
    figures = machine.read(NAME, NAME)["figures"] if is_stored else {}
    for part in arguments.parts:
        figures[part] = {
            "date": datetime.date.today().isoformat(),
            "processor": machine.processor(),
            "cells": list(PARTS[part]()),
        }
        machine.store(NAME, figures)
        print(f"{TITLES[part]}\n{as_text(as_rows(part, figures[part]['cells']))}\n", flush=True)
    print(machine.stored_at(NAME))


if __name__ == "__main__":
    main()
