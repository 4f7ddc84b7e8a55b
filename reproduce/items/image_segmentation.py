"""Segmentation and compression of pictures."""

import functools
import math
import time
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import ndimage
from sklearn.datasets import load_sample_image

from powermeans import KMeans, PowerKMeans
from powermeans.types import FloatArray, IndexArray
from reproduce.item import Cell, Claim, Findings, Row, Rows, grid
from reproduce.rows import column, groups, kinds, where
from reproduce.trials import fitted
from reproduce.verdicts import above, exact, paired_gain

TITLE = "Segmentation and compression of pictures by the colours of their pixels"
SOURCE = (
    "K. Moon, k-Means Clustering (lecture slides): applications, image segmentation and data "
    "compression"
)
DATA = "real: two photographs of our choice"

PICTURES = ("china", "flower")
WEIGHT_OF_PLACE = 1.0
"""What the diagonal of the picture counts as, over the range of a colour."""
DRAWN_SIZES, DRAWN_SEGMENTS = (4, 16, 64), 8
LEAST_AREA = 1e-3
"""Of the picture, from which on connected pixels of a segment count as an area."""
SEARCH = "search (the default)"
Pixels = np.ndarray[Any, np.dtype[np.uint8]]


# What is computed.


def cells(quick: bool) -> Sequence[Cell]:
    """Palettes of several sizes by several methods, and segments with and without place.

    The quick run takes every fourth pixel in each direction.
    """
    pictures, sizes, segmented, step, seeds = PICTURES, (2, 4, 8, 16, 32, 64), (4, 8, 16), 1, 10
    if quick:
        pictures, sizes, segmented, step, seeds = PICTURES[:1], DRAWN_SIZES, (DRAWN_SEGMENTS,), 4, 2
    places = (0.0, WEIGHT_OF_PLACE)
    return [
        *grid(
            palette, part="palette", picture=pictures, step=step, method=SEARCH, k=sizes, seeds=1
        ),
        *grid(
            palette,
            part="palette",
            picture=pictures,
            step=step,
            method=LLOYDS,
            k=sizes,
            seeds=seeds,
        ),
        *grid(segments, part="segments", picture=pictures, step=step, place=places, k=segmented),
    ]


@functools.cache
def pixels_of(picture: str, step: int) -> Pixels:
    """The picture, (height, width, 3); all of it where the step is one."""
    image: Pixels = load_sample_image(f"{picture}.jpg")
    return image[::step, ::step]


def distinct_colours(pixels: Pixels) -> tuple[FloatArray, IndexArray, FloatArray]:
    """The colours, which of them each pixel has, and how many pixels each has."""
    flat = pixels.reshape(-1, 3).astype(np.uint32)
    codes = flat @ np.array([65536, 256, 1], dtype=np.uint32)
    distinct, place, counts = np.unique(codes, return_inverse=True, return_counts=True)
    colours = np.stack([distinct >> 16, distinct >> 8 & 255, distinct & 255], axis=1)
    return colours.astype(float), place.ravel(), counts.astype(float)


def _of_estimator(model: Any, pixels: Pixels) -> tuple[FloatArray, IndexArray]:
    colours, place, counts = distinct_colours(pixels)
    model.fit(colours, sample_weight=counts)
    return np.asarray(model.cluster_centers_), np.asarray(model.labels_)[place]


METHODS: dict[str, Callable[[int, int], Any]] = {
    SEARCH: lambda k, seed: PowerKMeans(k, random_state=seed),
    "Lloyd from k-means++": lambda k, seed: KMeans(k, random_state=seed),
    "Lloyd from random pixels": lambda k, seed: KMeans(
        k, init="random", n_init=1, random_state=seed
    ),
}
LLOYDS = [name for name in METHODS if name != SEARCH]


def palette(picture: str, step: int, method: str, k: int, seeds: int) -> list[Row]:
    """How far the colours of palettes are from those of the pixels, and what they take."""
    pixels = pixels_of(picture, step)
    return [{"seed": seed, **of_palette(pixels, method, k, seed)} for seed in range(seeds)]


def of_palette(pixels: Pixels, method: str, k: int, seed: int) -> Row:
    """The figures of one palette."""
    started = time.perf_counter()
    colours, labels = _of_estimator(METHODS[method](k, seed), pixels)
    elapsed = time.perf_counter() - started
    shown = np.rint(colours).clip(0, 255).astype(np.uint8)
    error = float(((pixels.reshape(-1, 3).astype(float) - shown[labels]) ** 2).mean())
    return {
        "mean_square_error": error,
        "psnr": 10 * math.log10(255**2 / error),
        "bytes_raw": pixels.size,
        "bytes_fixed": math.ceil(len(labels) * math.ceil(math.log2(k)) / 8) + 3 * k,
        # After lossless packing, with the palette.
        "bytes_packed": len(zlib.compress(labels.astype(np.uint8).tobytes(), 9)) + 3 * k,
        "bytes_packed_raw": len(zlib.compress(pixels.tobytes(), 9)),
        "seconds": elapsed,
    }


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


def findings(rows: Rows) -> Findings:
    palettes, areas = where(rows, part="palette"), where(rows, part="segments")
    by_picture = {str(name): where(palettes, picture=name) for name in kinds(palettes, "picture")}
    return Findings(
        claims=[
            _claim_on_compression(where(palettes, method=SEARCH, k=16)),
            *(claim_on_methods(of, name) for name, of in by_picture.items()),
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


def _claim_on_compression(rows: Rows) -> Claim:
    sizes = ("bytes_raw", "bytes_fixed", "bytes_packed_raw", "bytes_packed")
    raw, fixed, packed_raw, packed = (np.array(column(rows, name)) for name in sizes)
    ratio, packed_ratio, psnr = min(raw / fixed), min(packed_raw / packed), column(rows, "psnr")
    return Claim(
        "k-means compresses data: pictures",
        "applications",
        exact(ratio > 4 and packed_ratio > 2 and min(psnr) > 25),
        f"16 colours take {1 / ratio:.1%} of the bytes of the pixels, and packed "
        f"{1 / packed_ratio:.1%} of theirs, at {min(psnr):.1f} to {max(psnr):.1f} dB",
    )


def claim_on_methods(rows: Rows, picture: str) -> Claim:
    least = {key: min(column(of, "mean_square_error")) for key, of in groups(rows, "k").items()}
    excess = {
        name: [
            float(row["mean_square_error"]) / least[row["k"],] - 1
            for row in where(rows, method=name)
        ]
        for name in METHODS
    }
    gain, error = paired_gain(excess["Lloyd from random pixels"], excess["Lloyd from k-means++"])
    words = ", ".join(f"{name} {np.mean(values):.1%}" for name, values in excess.items())
    return Claim(
        f"Starting far apart, as k-means++ does, is better than random points ({picture})",
        "initialisation",
        above(gain, error),
        f"mean square error over the least of all fits, in the mean over k and seeds: {words}; "
        f"k-means++ gains {gain:+.1%} ± {error:.1%} over random pixels",
    )


def _claim_on_segments(rows: Rows) -> Claim:
    placed, by_colour = (column(where(rows, place=p), "in_areas") for p in (WEIGHT_OF_PLACE, 0.0))
    chance, explained = column(rows, "in_areas_by_chance"), column(rows, "explained")
    return Claim(
        "k-means segments images",
        "applications",
        exact(min(placed + by_colour) > max(chance) and float(np.mean(placed)) > 0.5),
        f"{np.mean(by_colour):.0%} of the pixels are in connected areas, with place as a feature "
        f"{np.mean(placed):.0%}, and at most {max(chance):.0%} where labels are shuffled; the "
        f"segments explain {min(explained):.0%} to {max(explained):.0%} of the variance of colours",
    )
