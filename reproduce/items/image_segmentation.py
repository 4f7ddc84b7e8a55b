"""Segmentation and compression of pictures."""

from __future__ import annotations

import functools
import math
import time
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import ndimage
from sklearn.datasets import load_sample_image

from powermeans import KMeans, PowerKMeans
from powermeans.plots.canvas import BLUE, GREEN, ORANGE, VERMILION, tidy
from powermeans.types import FloatArray, IndexArray
from reproduce.checks import above, exact, paired_gain
from reproduce.item import Cell, Claim, Findings, Row, Table
from reproduce.quiet_fits import fitted
from reproduce.selecting import column, kinds, where

TITLE = "Segmentation and compression of pictures by the colours of their pixels"
SOURCE = (
    "K. Moon, k-Means Clustering (lecture slides): applications, image segmentation and data "
    "compression"
)
DATA = "real: two photographs of our choice"

PICTURES = ("china", "flower")
SIZES = (2, 4, 8, 16, 32, 64)
N_SEGMENTS = (4, 8, 16)
WEIGHT_OF_PLACE = 1.0
"""What the diagonal of the picture counts as, over the range of a colour."""
DRAWN_SIZES, DRAWN_SEGMENTS = (4, 16, 64), 8
LEAST_AREA = 1e-3
"""Of the picture, from which on connected pixels of a segment count as an area."""
QUICK_STEP = 4
"""Every so manieth pixel in each direction."""


# What is computed.


def cells(quick: bool) -> Sequence[Cell]:
    """Palettes of several sizes by several methods, and segments with and without place."""
    step = QUICK_STEP if quick else 1
    pictures, sizes = (PICTURES[:1], (4, 16, 64)) if quick else (PICTURES, SIZES)
    found = [
        Cell(
            {"part": "palette", "picture": picture, "step": step, "method": method, "k": k},
            functools.partial(palette, picture, step, method, k),
        )
        for picture in pictures
        for method in METHODS
        for k in sizes
    ]
    found += [
        Cell(
            {"part": "segments", "picture": picture, "step": step, "place": place, "k": k},
            functools.partial(segments, picture, step, place, k),
        )
        for picture in pictures
        for place in (0.0, WEIGHT_OF_PLACE)
        for k in ((DRAWN_SEGMENTS,) if quick else N_SEGMENTS)
    ]
    return found


@functools.cache
def pixels_of(picture: str, step: int) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The picture, (height, width, 3); all of it where the step is one."""
    image: np.ndarray[Any, np.dtype[np.uint8]] = load_sample_image(f"{picture}.jpg")
    return image[::step, ::step]


def distinct_colours(pixels: np.ndarray[Any, Any]) -> tuple[FloatArray, IndexArray, FloatArray]:
    """The colours, which of them each pixel has, and how many pixels each has."""
    flat = pixels.reshape(-1, 3).astype(np.uint32)
    codes = flat @ np.array([65536, 256, 1], dtype=np.uint32)
    distinct, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    colours = np.stack([distinct >> 16, distinct >> 8 & 255, distinct & 255], axis=1)
    return colours.astype(float), place.ravel(), counts.astype(float)


def _of_estimator(model: Any, pixels: np.ndarray[Any, Any]) -> tuple[FloatArray, IndexArray]:
    colours, place, counts = distinct_colours(pixels)
    model.fit(colours, sample_weight=counts)
    return np.asarray(model.cluster_centers_), np.asarray(model.labels_)[place]


def _median_cut(n_colours: int, pixels: np.ndarray[Any, Any]) -> tuple[FloatArray, IndexArray]:
    """Pillow's, with the mean colour of each of its cells."""
    from PIL import Image

    found = Image.fromarray(pixels).quantize(n_colours, method=Image.Quantize.MEDIANCUT)
    labels = np.unique(np.asarray(found).ravel(), return_inverse=True)[1].ravel()
    flat = pixels.reshape(-1, 3).astype(float)
    sizes = np.bincount(labels)
    sums = [np.bincount(labels, flat[:, channel]) for channel in range(3)]
    return np.stack(sums, axis=1) / sizes[:, None], labels


Quantiser = Callable[[int, np.ndarray[Any, Any]], tuple[FloatArray, IndexArray]]

METHODS: dict[str, Quantiser] = {
    "search (the default)": lambda k, pixels: _of_estimator(PowerKMeans(k, random_state=0), pixels),
    "Lloyd from k-means++": lambda k, pixels: _of_estimator(KMeans(k, random_state=0), pixels),
    "Lloyd from random pixels": lambda k, pixels: _of_estimator(
        KMeans(k, init="random", n_init=1, random_state=0), pixels
    ),
    "median cut (Pillow)": _median_cut,
}


def palette(picture: str, step: int, method: str, k: int) -> list[Row]:
    """How far the colours of a palette are from those of the pixels, and what they take."""
    pixels = pixels_of(picture, step)
    started = time.perf_counter()
    colours, labels = METHODS[method](k, pixels)
    elapsed = time.perf_counter() - started
    shown = np.rint(colours).clip(0, 255).astype(np.uint8)
    error = float(((pixels.reshape(-1, 3).astype(float) - shown[labels]) ** 2).mean())
    return [
        {
            "mean_square_error": error,
            "psnr": 10 * math.log10(255**2 / error),
            "bytes_raw": pixels.size,
            "bytes_fixed": math.ceil(len(labels) * math.ceil(math.log2(k)) / 8) + 3 * k,
            "bytes_packed": packed(labels.astype(np.uint8), k),
            "bytes_packed_raw": packed(pixels, 0),
            "seconds": elapsed,
        }
    ]


def packed(values: np.ndarray[Any, Any], n_colours: int) -> int:
    """Bytes after lossless packing, with the palette."""
    return len(zlib.compress(values.tobytes(), 9)) + 3 * n_colours


def segments(picture: str, step: int, place: float, k: int) -> list[Row]:
    """What part of the pixels is in large areas, and what of the variance segments explain."""
    pixels = pixels_of(picture, step)
    labels, means = segmented(picture, step, place, k)
    shape = pixels.shape[:2]
    flat = pixels.reshape(-1, 3) / 255.0
    within, total = ((flat - means[labels]) ** 2).sum(), ((flat - flat.mean(axis=0)) ** 2).sum()
    by_chance = np.random.default_rng(0).permutation(labels)
    return [
        {
            "in_areas": share_in_areas(labels.reshape(shape)),
            "in_areas_by_chance": share_in_areas(by_chance.reshape(shape)),
            "explained": float(1 - within / total),
        }
    ]


def segmented(picture: str, step: int, place: float, k: int) -> tuple[IndexArray, FloatArray]:
    """A segment for each pixel, and the mean colour of each."""
    pixels = pixels_of(picture, step)
    height, width = pixels.shape[:2]
    flat = pixels.reshape(-1, 3) / 255.0
    where_it_is = np.indices((height, width)).reshape(2, -1).T / math.hypot(height, width)
    points = np.hstack([flat, place * where_it_is]) if place else flat
    model = fitted(PowerKMeans(k, effort="fast", random_state=0), points)
    labels = np.asarray(model.labels_, dtype=np.intp)
    means = np.stack([flat[labels == label].mean(axis=0) for label in range(k)])
    return labels, means


def share_in_areas(labels: IndexArray) -> float:
    """The share of the pixels in connected areas of one label that are no specks."""
    n_inside = 0
    for label in np.unique(labels):
        areas, _ = ndimage.label(labels == label)
        sizes = np.bincount(areas.ravel())[1:]
        n_inside += int(sizes[sizes >= LEAST_AREA * labels.size].sum())
    return n_inside / labels.size


# What it shows.


def findings(rows: Sequence[Row]) -> Findings:
    """Errors and bytes of palettes, and pieces of segments."""
    palettes, areas = where(rows, part="palette"), where(rows, part="segments")
    return Findings(
        tables=[
            *(_table_of_errors(palettes, picture) for picture in kinds(palettes, "picture")),
            _table_of_bytes(palettes),
            _table_of_segments(areas),
        ],
        claims=[
            _claim_on_compression(palettes),
            *(_claim_on_methods(palettes, str(one)) for one in kinds(palettes, "picture")),
            _claim_on_segments(areas),
        ],
        remarks=[
            "Pictures: china.jpg by danielbuechele and flower.jpg by vultilion, CC BY 2.0, as "
            "scikit-learn ships them. Each distinct colour is a point that weighs as many pixels "
            "as have it.",
            f"With place, row and column are features too: the diagonal counts as "
            f"{WEIGHT_OF_PLACE} of the range of a colour.",
            "Packed is what zlib leaves of the indices, and of the pixels themselves, both "
            "without loss.",
        ],
    )


def _table_of_errors(rows: Sequence[Row], picture: object) -> Table:
    chosen = where(rows, picture=str(picture))
    lines: list[list[str | int | float]] = []
    for k in kinds(chosen, "k"):
        of_k = [where(chosen, k=k, method=method)[0] for method in METHODS]
        lines.append(
            [k, *(f"{float(r['psnr']):.2f} dB, {float(r['seconds']):.2f} s" for r in of_k)]
        )
    return Table(
        f"{picture}: peak signal-to-noise ratio of a palette of k colours, and seconds",
        ["k", *METHODS],
        lines,
        "Higher is better; 30 dB is a root mean square error of 8 of 255.",
    )


def _table_of_bytes(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = []
    for row in where(rows, method="search (the default)"):
        raw, fixed = int(row["bytes_raw"]), int(row["bytes_fixed"])
        both = int(row["bytes_packed_raw"]), int(row["bytes_packed"])
        lines.append([row["picture"], row["k"], raw, fixed, raw / fixed, *both, both[0] / both[1]])
    return Table(
        "What a picture takes, in bytes",
        [
            "picture",
            "k",
            "pixels",
            "indices",
            "ratio",
            "pixels, packed",
            "indices, packed",
            "ratio",
        ],
        lines,
        "Indices of log2 k bits and a palette of three bytes a colour.",
    )


def _table_of_segments(rows: Sequence[Row]) -> Table:
    lines: list[list[str | int | float]] = [
        [
            row["picture"],
            row["k"],
            "colour and place" if row["place"] else "colour",
            float(row["in_areas"]),
            float(row["in_areas_by_chance"]),
            float(row["explained"]),
        ]
        for row in rows
    ]
    return Table(
        "Segments",
        ["picture", "k", "features", "share in areas", "by chance", "variance explained"],
        lines,
        f"Pixels in connected areas of at least {LEAST_AREA:.1%} of the picture; by chance: the "
        "same labels, shuffled among the pixels. Variance of the colours.",
    )


def _claim_on_compression(rows: Sequence[Row]) -> Claim:
    chosen = where(rows, method="search (the default)", k=16)
    ratios = [float(r["bytes_raw"]) / float(r["bytes_fixed"]) for r in chosen]
    packed_ratios = [float(r["bytes_packed_raw"]) / float(r["bytes_packed"]) for r in chosen]
    psnr = column(chosen, "psnr")
    return Claim(
        "k-means compresses data: pictures",
        "applications",
        exact(min(ratios) > 4 and min(packed_ratios) > 2 and min(psnr) > 25),
        f"16 colours take {1 / min(ratios):.1%} of the bytes of the pixels, and packed "
        f"{1 / min(packed_ratios):.1%} of theirs, at {min(psnr):.1f} to {max(psnr):.1f} dB",
    )


def _claim_on_methods(rows: Sequence[Row], picture: str) -> Claim:
    of_picture = where(rows, picture=picture)
    least = [
        min(column(where(of_picture, k=k), "mean_square_error")) for k in kinds(of_picture, "k")
    ]
    excess = {
        name: np.divide(column(where(of_picture, method=name), "mean_square_error"), least) - 1
        for name in METHODS
    }
    gain, error = paired_gain(
        excess["Lloyd from random pixels"].tolist(), excess["Lloyd from k-means++"].tolist()
    )
    words = ", ".join(f"{name} {values.mean():.1%}" for name, values in excess.items())
    return Claim(
        f"Starting far apart, as k-means++ does, is better than random points ({picture})",
        "initialisation",
        above(gain, error),
        f"mean square error over the least of all methods, in the mean over k: {words}; k-means++ "
        f"gains {gain:+.1%} ± {error:.1%} over random pixels",
    )


def _claim_on_segments(rows: Sequence[Row]) -> Claim:
    placed, by_colour = ([r for r in rows if bool(r["place"]) == has] for has in (True, False))
    shares = [column(chosen, "in_areas") for chosen in (placed, by_colour)]
    chance, explained = column(rows, "in_areas_by_chance"), column(rows, "explained")
    return Claim(
        "k-means segments images",
        "applications",
        exact(min(map(min, shares)) > max(chance) and float(np.mean(shares[0])) > 0.5),
        f"{np.mean(shares[1]):.0%} of the pixels are in connected areas, with place as a feature "
        f"{np.mean(shares[0]):.0%}, and at most {max(chance):.0%} where labels are shuffled; the "
        f"segments explain {min(explained):.0%} to {max(explained):.0%} of the variance of colours",
    )


# What it looks like.

_STYLES = {
    "search (the default)": (BLUE, "s", "-"),
    "Lloyd from k-means++": (GREEN, "^", "--"),
    "Lloyd from random pixels": (ORANGE, "v", ":"),
    "median cut (Pillow)": (VERMILION, "o", "-."),
}


def draw(rows: Sequence[Row], folder: Path) -> Sequence[Path]:
    """Each picture beside its palettes and segments, and the errors by size."""
    pictures = kinds(rows, "picture")
    step = int(rows[0]["step"])
    paths = [_draw_picture(rows, folder, str(picture), step) for picture in pictures]
    return [*paths, _draw_errors(rows, folder, [str(picture) for picture in pictures])]


def _draw_picture(rows: Sequence[Row], folder: Path, picture: str, step: int) -> Path:
    from matplotlib import pyplot

    pixels = pixels_of(picture, step)
    panels: list[tuple[str, np.ndarray[Any, Any]]] = [("original", pixels)]
    for k in reversed(DRAWN_SIZES):
        colours, labels = METHODS["search (the default)"](k, pixels)
        chosen = where(rows, part="palette", picture=picture, method="search (the default)", k=k)
        shown = np.rint(colours).clip(0, 255).astype(np.uint8)[labels].reshape(pixels.shape)
        panels.append((f"{k} colours, {float(chosen[0]['psnr']):.1f} dB", shown))
    for place, what in ((0.0, "colour"), (WEIGHT_OF_PLACE, "colour and place")):
        labels, means = segmented(picture, step, place, DRAWN_SEGMENTS)
        shown = means[labels].reshape(pixels.shape)
        panels.append((f"{DRAWN_SEGMENTS} segments by {what}", shown))
    figure, axes = pyplot.subplots(2, 3, figsize=(12, 5.8), layout="constrained")
    for ax, (title, image) in zip(axes.flat, panels, strict=True):
        ax.imshow(image, interpolation="nearest")
        ax.set_title(title, fontsize=10)
        ax.axis("off")
    path = folder / f"image-segmentation-{picture}.png"
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return path


def _draw_errors(rows: Sequence[Row], folder: Path, pictures: Sequence[str]) -> Path:
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        1, len(pictures), figsize=(5 * len(pictures), 4), layout="constrained", squeeze=False
    )
    for ax, picture in zip(axes[0], pictures, strict=True):
        for method, (color, marker, line) in _STYLES.items():
            chosen = where(rows, part="palette", picture=picture, method=method)
            ax.plot(
                column(chosen, "k"), column(chosen, "psnr"), line, color=color, marker=marker,
                label=method,
            )  # fmt: skip
        sizes = [int(k) for k in kinds(where(rows, part="palette"), "k")]
        ax.set_xscale("log")
        ax.set_xticks(sizes, [str(k) for k in sizes])
        ax.minorticks_off()
        ax.set(xlabel="colours", ylabel="peak signal-to-noise ratio, dB", title=picture)
        ax.legend(frameon=False, fontsize=8)
        tidy(ax, grid="y")
    path = folder / "image-segmentation-errors.png"
    figure.savefig(path, dpi=150)
    pyplot.close(figure)
    return path
