"""Fused kernels in Triton: no distance is ever written to memory.

All see points as `formulas.View` does (less an origin, times a scale) and centers as
`formulas.Planes` (slopes and lifts). Rows and columns beyond the ends are masked. Each program adds
in a fixed order and writes to places of its own, so that results do not depend on which is first.
"""

from __future__ import annotations

import triton
import triton.language as tl

# Where a weight is none at all; exp of it is zero.
MINUS_INFINITY = tl.constexpr(float("-inf"))
INFINITY = tl.constexpr(float("inf"))
# Least distance that a ratio is taken of. Points nearer to a center are dealt with elsewhere.
LEAST = tl.constexpr(1e-37)


@triton.jit
def _log_power(found, least, slope):
    """Logarithm of (found / least)^slope, for a slope below zero: never above zero.

    The quotient of equal numbers need not be one: a card divides to 2 units in the last place.
    """
    return tl.minimum(tl.where(found == least, 0.0, slope * tl.log(found / least)), 0.0)


@triton.jit
def _points_tile(
    points,  # in  (n_points, n_features)
    origin,  # in  (n_features,)
    rows,  # in  (ROWS,)
    features,  # in  (FEATURES,)
    n_points,
    n_features,
    scale,
    DTYPE: tl.constexpr,
    IS_MOVED: tl.constexpr,
):
    """Points in the view, (ROWS, FEATURES)."""
    inside = (rows[:, None] < n_points) & (features[None, :] < n_features)
    at = rows[:, None] * n_features + features[None, :]
    tile = tl.load(points + at, mask=inside, other=0.0)
    if IS_MOVED:
        start = tl.load(origin + features, mask=features < n_features, other=0.0)
        moved = (tile.to(tl.float32) - start[None, :]) * scale
        tile = tl.where(inside, moved, 0.0)
    return tile.to(DTYPE)


@triton.jit
def _partial_distances(
    points,  # in  (n_points, n_features)
    origin,  # in  (n_features,)
    slopes,  # in  (n_centers, n_features)
    lifts,  # in  (n_centers,)
    tile,  # in  (ROWS, FEATURES), the points, where all features are in one tile
    rows,  # in  (ROWS,)
    cols,  # in  (COLS,)
    n_points,
    n_centers,
    n_features,
    scale,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    FEATURES: tl.constexpr,
    IS_ONE_TILE: tl.constexpr,
    IS_DIRECT: tl.constexpr,
    IS_MOVED: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Distances less the heights, (ROWS, COLS); whole ones where they are direct."""
    of_centers = cols < n_centers
    of_slopes = cols.to(tl.int64) * n_features
    found = tl.zeros((ROWS, COLS), dtype=tl.float32)
    if IS_DIRECT:
        for feature in range(n_features):
            at = rows * n_features + feature
            x = tl.load(points + at, mask=rows < n_points, other=0.0).to(tl.float32)
            if IS_MOVED:
                x = (x - tl.load(origin + feature)) * scale
            c = tl.load(slopes + of_slopes + feature, mask=of_centers, other=0.0)
            difference = x[:, None] - c[None, :]
            found += difference * difference
    else:
        for start in range(0, n_features, FEATURES):
            features = start + tl.arange(0, FEATURES)
            inside = of_centers[None, :] & (features[:, None] < n_features)
            at = of_slopes[None, :] + features[:, None]
            of_cols = tl.load(slopes + at, mask=inside, other=0.0)
            x = tile
            if not IS_ONE_TILE:
                x = _points_tile(
                    points,
                    origin,
                    rows,
                    features,
                    n_points,
                    n_features,
                    scale,
                    slopes.dtype.element_ty,
                    IS_MOVED,
                )
            found = tl.dot(x, of_cols, found, input_precision=PRECISION)
        found = tl.load(lifts + cols, mask=of_centers, other=0.0)[None, :] - 2.0 * found
    return found


@triton.jit
def nearest_kernel(
    points,  # in   (n_points, n_features)
    origin,  # in   (n_features,)
    slopes,  # in   (n_centers, n_features)
    lifts,  # in   (n_centers,)
    heights,  # in   (n_points,)
    labels,  # out  (n_points,)
    least,  # out  (n_points,)
    second,  # out  (n_points,), the least distance to another center, if it is to be told
    n_points,
    n_centers,
    n_features,
    scale,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    FEATURES: tl.constexpr,
    IS_ONE_TILE: tl.constexpr,
    IS_DIRECT: tl.constexpr,
    IS_MOVED: tl.constexpr,
    TELLS_SECOND: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Nearest center of each point, the first of several, and its distance."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    features = tl.arange(0, FEATURES)
    tile = _points_tile(
        points,
        origin,
        rows,
        features,
        n_points,
        n_features,
        scale,
        slopes.dtype.element_ty,
        IS_MOVED,
    )
    best = tl.full((ROWS,), INFINITY, dtype=tl.float32)
    label = tl.zeros((ROWS,), dtype=tl.int32)
    if TELLS_SECOND:
        next_best = tl.full((ROWS,), INFINITY, dtype=tl.float32)
    for start in range(0, n_centers, COLS):
        cols = start + tl.arange(0, COLS)
        found = _partial_distances(
            points,
            origin,
            slopes,
            lifts,
            tile,
            rows,
            cols,
            n_points,
            n_centers,
            n_features,
            scale,
            ROWS,
            COLS,
            FEATURES,
            IS_ONE_TILE,
            IS_DIRECT,
            IS_MOVED,
            PRECISION,
        )
        found = tl.where(cols[None, :] < n_centers, found, INFINITY)
        low, place = tl.min(found, axis=1, return_indices=True)
        if TELLS_SECOND:
            of_others = tl.where(cols[None, :] == start + place[:, None], INFINITY, found)
            lower = tl.minimum(next_best, tl.min(of_others, axis=1))
            next_best = tl.minimum(lower, tl.maximum(low, best))
        is_nearer = low < best
        best = tl.where(is_nearer, low, best)
        label = tl.where(is_nearer, start + place, label)
    inside = rows < n_points
    if not IS_DIRECT:
        height = tl.load(heights + rows, mask=inside, other=0.0)
        best += height
        if TELLS_SECOND:
            next_best += height
    tl.store(labels + rows, label, mask=inside)
    tl.store(least + rows, tl.maximum(best, 0.0), mask=inside)
    if TELLS_SECOND:
        tl.store(second + rows, tl.maximum(next_best, 0.0), mask=inside)


@triton.jit
def log_sums_kernel(
    points,  # in   (n_points, n_features)
    origin,  # in   (n_features,)
    slopes,  # in   (n_centers, n_features)
    lifts,  # in   (n_centers,)
    heights,  # in   (n_points,)
    shares,  # in   (n_centers,), 2 v log q_j; read for Gaussians alone
    references,  # out  (n_points,), the least distance or energy
    log_sums,  # out  (n_points,)
    least,  # out  (n_points,), the least distance
    labels,  # out  (n_points,), the center it is that of, if it is to be told
    n_points,
    n_centers,
    n_features,
    scale,
    slope,  # the power s, or 1 / (2 v)
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    FEATURES: tl.constexpr,
    IS_ONE_TILE: tl.constexpr,
    IS_DIRECT: tl.constexpr,
    IS_MOVED: tl.constexpr,
    IS_GAUSSIAN: tl.constexpr,
    TELLS_LABEL: tl.constexpr,
    PRECISION: tl.constexpr,
):
    """Logarithm of sum_j (y_j / y_min)^s, or of sum_j exp((e_min - e_j) / (2 v)), of each point.

    The sum is kept relative to the least so far, and shrinks when a lesser one comes.
    """
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = rows < n_points
    features = tl.arange(0, FEATURES)
    tile = _points_tile(
        points,
        origin,
        rows,
        features,
        n_points,
        n_features,
        scale,
        slopes.dtype.element_ty,
        IS_MOVED,
    )
    height = tl.load(heights + rows, mask=inside, other=1.0)
    nearest = tl.full((ROWS,), INFINITY, dtype=tl.float32)
    reference = tl.full((ROWS,), INFINITY, dtype=tl.float32)
    total = tl.zeros((ROWS,), dtype=tl.float32)
    if TELLS_LABEL:
        label = tl.zeros((ROWS,), dtype=tl.int32)
    for start in range(0, n_centers, COLS):
        cols = start + tl.arange(0, COLS)
        found = _partial_distances(
            points,
            origin,
            slopes,
            lifts,
            tile,
            rows,
            cols,
            n_points,
            n_centers,
            n_features,
            scale,
            ROWS,
            COLS,
            FEATURES,
            IS_ONE_TILE,
            IS_DIRECT,
            IS_MOVED,
            PRECISION,
        )
        if not IS_DIRECT:
            found += height[:, None]
        of_centers = cols[None, :] < n_centers
        found = tl.where(of_centers, tl.maximum(found, 0.0), INFINITY)
        if TELLS_LABEL:
            low, place = tl.min(found, axis=1, return_indices=True)
            label = tl.where(low < nearest, start + place, label)
            nearest = tl.minimum(nearest, low)
        else:
            nearest = tl.minimum(nearest, tl.min(found, axis=1))
        if IS_GAUSSIAN:
            lift = tl.load(shares + cols, mask=cols < n_centers, other=0.0)
            energies = tl.where(of_centers, found - lift[None, :], INFINITY)
            lower = tl.minimum(reference, tl.min(energies, axis=1))
            shrunk = tl.exp((lower - reference) * slope)
            terms = tl.exp((lower[:, None] - energies) * slope)
        else:
            found = tl.maximum(found, LEAST)
            lower = tl.minimum(reference, tl.min(found, axis=1))
            shrunk = tl.exp(_log_power(reference, lower, slope))
            terms = tl.exp(_log_power(found, lower[:, None], slope))
        total = total * shrunk + tl.sum(terms, axis=1)
        reference = lower
    tl.store(references + rows, reference, mask=inside)
    tl.store(log_sums + rows, tl.log(total), mask=inside)
    tl.store(least + rows, nearest, mask=inside)
    if TELLS_LABEL:
        tl.store(labels + rows, label, mask=inside)


@triton.jit
def soft_sums_kernel(
    points,  # in   (n_points, n_features)
    origin,  # in   (n_features,)
    slopes,  # in   (n_centers, n_features)
    lifts,  # in   (n_centers,)
    heights,  # in   (n_points,)
    shares,  # in   (n_centers,), as in log_sums_kernel
    references,  # in   (n_points,)
    terms,  # in   (n_points,), log w_ij at the reference; -inf leaves a point out
    sums,  # out  (n_stretches, n_centers, n_features), in units of exp(highest)
    weights,  # out  (n_stretches, n_centers), in these units
    highest,  # out  (n_stretches, n_centers), the largest logarithm of a weight
    n_points,
    n_centers,
    n_features,
    scale,
    slope,  # s - 1, or 1 / (2 v)
    rows_of_stretch,
    ROWS: tl.constexpr,
    COLS: tl.constexpr,
    FEATURES: tl.constexpr,
    WIDTH: tl.constexpr,
    IS_ONE_TILE: tl.constexpr,
    IS_DIRECT: tl.constexpr,
    IS_MOVED: tl.constexpr,
    IS_GAUSSIAN: tl.constexpr,
    PRECISION: tl.constexpr,
    SUM_PRECISION: tl.constexpr,
):
    """Weights times points and weights of some centers over a stretch of the points.

    Distances are taken again. Sums are kept relative to the largest weight so far of each center,
    and shrink when a larger one comes, so that none leaves the range of float32.
    """
    cols = tl.program_id(0) * COLS + tl.arange(0, COLS)
    stretch = tl.program_id(1).to(tl.int64)
    features = tl.arange(0, WIDTH)
    of_centers = cols < n_centers
    sum_points = tl.zeros((COLS, WIDTH), dtype=tl.float32)
    sum_weights = tl.zeros((COLS,), dtype=tl.float32)
    top = tl.full((COLS,), MINUS_INFINITY, dtype=tl.float32)
    for start in range(0, rows_of_stretch, ROWS):
        rows = stretch * rows_of_stretch + start + tl.arange(0, ROWS)
        inside = (rows < n_points) & (start + tl.arange(0, ROWS) < rows_of_stretch)
        tile = _points_tile(
            points,
            origin,
            rows,
            features,
            n_points,
            n_features,
            scale,
            slopes.dtype.element_ty,
            IS_MOVED,
        )
        found = _partial_distances(
            points,
            origin,
            slopes,
            lifts,
            tile,
            rows,
            cols,
            n_points,
            n_centers,
            n_features,
            scale,
            ROWS,
            COLS,
            FEATURES,
            IS_ONE_TILE,
            IS_DIRECT,
            IS_MOVED,
            PRECISION,
        )
        if not IS_DIRECT:
            found += tl.load(heights + rows, mask=inside, other=0.0)[:, None]
        found = tl.maximum(found, 0.0)
        term = tl.load(terms + rows, mask=inside, other=MINUS_INFINITY)
        reference = tl.load(references + rows, mask=inside, other=1.0)
        if IS_GAUSSIAN:
            lift = tl.load(shares + cols, mask=of_centers, other=0.0)
            # Rounding may bring an energy below the least of the first pass.
            beyond = tl.minimum((reference[:, None] - (found - lift[None, :])) * slope, 0.0)
        else:
            beyond = _log_power(tl.maximum(found, LEAST), reference[:, None], slope)
        logs = term[:, None] + beyond
        logs = tl.where(inside[:, None] & of_centers[None, :], logs, MINUS_INFINITY)
        higher = tl.maximum(top, tl.max(logs, axis=0))
        shift = tl.where(higher == MINUS_INFINITY, 0.0, higher)
        shrunk = tl.exp(top - shift)
        # Rounded as the points of the tile are, in the sums of weights too: centers stay means.
        w = tl.exp(logs - shift[None, :]).to(tile.dtype)
        sum_points = sum_points * shrunk[:, None]
        sum_points = tl.dot(tl.trans(w), tile, sum_points, input_precision=SUM_PRECISION)
        sum_weights = sum_weights * shrunk + tl.sum(w.to(tl.float32), axis=0)
        top = higher
    at = stretch * n_centers + cols
    to = at[:, None] * n_features + features[None, :]
    tl.store(sums + to, sum_points, mask=of_centers[:, None] & (features[None, :] < n_features))
    tl.store(weights + at, sum_weights, mask=of_centers)
    tl.store(highest + at, top, mask=of_centers)


@triton.jit
def cluster_sums_kernel(
    points,  # in   (n_points, n_features)
    origin,  # in   (n_features,)
    places,  # in   (n_centers, n_features), float64
    sample_weight,  # in   (n_points,), float64
    order,  # in   (n_points,), the points sorted by label
    offsets,  # in   (n_centers + 1,), where in the order each cluster begins
    clusters,  # in   (n_chunks,), which cluster a chunk is of; n_centers where it is spare
    first_chunks,  # in   (n_centers + 1,)
    sums,  # out  (n_chunks, n_features), float64
    weights,  # out  (n_chunks,), float64
    own,  # out  (n_chunks,), float64, weighted squared distances to the place
    n_centers,
    n_features,
    scale,
    LENGTH: tl.constexpr,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
    IS_MOVED: tl.constexpr,
):
    """Sums over chunks of so many points of one cluster each, in the order of the points."""
    chunk = tl.program_id(0).to(tl.int64)
    cluster = tl.load(clusters + chunk)
    if cluster < n_centers:
        begin = tl.load(offsets + cluster)
        begin += (chunk - tl.load(first_chunks + cluster)) * LENGTH
        end = tl.minimum(begin + LENGTH, tl.load(offsets + cluster + 1))
        sum_weights = tl.zeros((ROWS,), dtype=tl.float64)
        sum_own = tl.zeros((ROWS,), dtype=tl.float64)
        for first in range(0, n_features, FEATURES):
            features = first + tl.arange(0, FEATURES)
            is_feature = features < n_features
            place = tl.load(places + cluster * n_features + features, mask=is_feature, other=0.0)
            if IS_MOVED:
                start = tl.load(origin + features, mask=is_feature, other=0.0)
            sum_points = tl.zeros((FEATURES,), dtype=tl.float64)
            for step in range(begin, end, ROWS):
                at = step + tl.arange(0, ROWS)
                is_row = at < end
                i = tl.load(order + at, mask=is_row, other=0).to(tl.int64)
                inside = is_row[:, None] & is_feature[None, :]
                x = tl.load(
                    points + i[:, None] * n_features + features[None, :], mask=inside, other=0.0
                ).to(tl.float32)
                if IS_MOVED:
                    x = (x - start[None, :]) * scale
                wide = x.to(tl.float64)
                w = tl.load(sample_weight + i, mask=is_row, other=0.0)
                difference = tl.where(inside, wide - place[None, :], 0.0)
                sum_points += tl.sum(w[:, None] * wide, axis=0)
                sum_own += w * tl.sum(difference * difference, axis=1)
                if first == 0:
                    sum_weights += w
            tl.store(sums + chunk * n_features + features, sum_points, mask=is_feature)
        tl.store(weights + chunk, tl.sum(sum_weights, axis=0))
        tl.store(own + chunk, tl.sum(sum_own, axis=0))


@triton.jit
def add_chunks_kernel(
    parts,  # in   (n_chunks, n_features), float64
    first_chunks,  # in   (n_centers + 1,)
    sums,  # out  (n_centers, n_features), float64
    n_features,
    ROWS: tl.constexpr,
    FEATURES: tl.constexpr,
):
    """Add the chunks of each cluster, in order."""
    cluster = tl.program_id(0).to(tl.int64)
    features = tl.program_id(1) * FEATURES + tl.arange(0, FEATURES)
    begin = tl.load(first_chunks + cluster)
    end = tl.load(first_chunks + cluster + 1)
    total = tl.zeros((ROWS, FEATURES), dtype=tl.float64)
    for start in range(begin, end, ROWS):
        chunks = start + tl.arange(0, ROWS)
        inside = (chunks[:, None] < end) & (features[None, :] < n_features)
        at = chunks[:, None] * n_features + features[None, :]
        total += tl.load(parts + at, mask=inside, other=0.0)
    tl.store(
        sums + cluster * n_features + features, tl.sum(total, axis=0), mask=features < n_features
    )
