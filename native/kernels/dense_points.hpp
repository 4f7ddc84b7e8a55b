// Blocks of dense points: packing them, distances to all centers or to one, and sums. sparse_points.hpp has
// the same functions for sparse points.
#pragma once

#include "kernels/blocks.hpp"
#include "kernels/reductions.hpp"
#include "kernels/tile.hpp"

namespace powermeans {
namespace {

// The panels of centers of this many features stay in the first-level cache while rows of points pass.
constexpr int64_t features_at_once = 128;

POWERMEANS_INLINE void widened(const double* from, DoubleVector (&to)[vectors_per_unit]) {
    for (int v = 0; v < vectors_per_unit; ++v) to[v] = load(from + v * lanes<double>);
}
POWERMEANS_INLINE void widened(const float* from, DoubleVector (&to)[2 * vectors_per_unit]) {
    for (int v = 0; v < vectors_per_unit; ++v) widen(load(from + v * lanes<float>), to[2 * v], to[2 * v + 1]);
}

template <class T>
double sq_norm(const T* packed, int64_t padded_features) {
    constexpr int n_vectors = int(unit_lanes<T>) / lanes<double>;
    DoubleVector sums[n_vectors] = {}, x[n_vectors];
    for (int64_t f = 0; f < padded_features; f += unit_lanes<T>) {
        widened(packed + f, x);
        for (int v = 0; v < n_vectors; ++v) sums[v] = multiply_add(x[v], x[v], sums[v]);
    }
    return sum_of_lanes<double>(sums);
}

// Blocks are too short for the hardware to recognize a stream, so points are prefetched.
constexpr uintptr_t bytes_fetched_ahead = 8192;

POWERMEANS_INLINE void fetch_ahead(const void* from) {
    __builtin_prefetch(
        reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(from) + bytes_fetched_ahead));
}

// Shifts and scales the points into work.packed, padded with zeros.
template <class T>
void pack(const Block<Dense<T>>& block) {
    const Dense<T>& points = block.points;
    const Plan& plan = block.job.plan;
    const int64_t d = points.n_features, bytes_each = points.values.bytes_each();
    const T scale = points.scale, *const origin = points.scaled_origin;
    for (int64_t p = 0; p < block.n; ++p) {
        const T* from = stored_point(block, p);
        const void* stored = points.values.at(index_of(block, p) * d);
        T* to = block.work.packed + p * plan.padded_features;
        int64_t f = 0;
        for (; f + lanes<T> <= d; f += lanes<T>) {
            fetch_ahead(static_cast<const unsigned char*>(stored) + f * bytes_each);
            store(to + f, multiply_add(load(from + f), broadcast(scale), -load(origin + f)));
        }
        for (; f < d; ++f) to[f] = from[f] * scale - origin[f];
        for (; f < plan.padded_features; ++f) to[f] = 0;
        if (!plan.direct && !plan.bounded && !plan.few_centers)
            block.work.sq_norms[p] = sq_norm(to, plan.padded_features);
    }
}

// Sums squared differences, or products, over features `first` to `last` into work.dist.
template <bool squared_differences, class T>
void add_features(const Block<Dense<T>>& block, const Centers<T>& centers, int64_t first, int64_t last) {
    using Tiles = DistanceTiles<T, squared_differences>;
    for (int64_t f = first; f < last; f += features_at_once) {
        const Tiles tiles{block.work.packed,
                          block.job.plan.padded_features,
                          centers,
                          f,
                          smaller(features_at_once, last - f),
                          f == first,
                          block.work.dist};
        Tiling<Tiles>{tiles, block.n}.all(centers.n_padded / unit_lanes<T>);
    }
}

template <class T>
void fold(const Workspace<T>& work, int64_t n_values, bool first) {
    if (first)
        for (int64_t i = 0; i < n_values; ++i) work.folded[i] = 0;
    for (int64_t i = 0; i < n_values; i += lanes<T>) add_to(work.folded + i, load(work.dist + i), 1.0);
}

// Fills work.dist with squared differences, with -2 <x, center>, or with -<x, slope>.
template <class T>
void distances_of_packed(const Block<Dense<T>>& block) {
    const Centers<T>& centers = block.job.centers;
    const int64_t d = centers.n_features;
    if (block.job.plan.direct) return add_features<true>(block, centers, 0, d);
    if (!block.work.folded) return add_features<false>(block, centers, 0, d);
    for (int64_t f = 0; f < d; f += features_per_fold) {
        add_features<false>(block, centers, f, smaller(f + features_per_fold, d));
        fold(block.work, block.n * centers.n_padded, f == 0);
    }
}

template <class T>
void raw_distances(const Block<Dense<T>>& block) {
    pack(block);
    distances_of_packed(block);
}

// Returns an affine distance in float64, from the point as stored.
template <class T>
double affine_distance(const Block<Dense<T>>& block, int64_t p, int64_t j) {
    const Dense<T>& points = block.points;
    const T* point = stored_point(block, p);
    const double* negative_slope = wide_center_of(block.job, j);
    double sum = height_of(block, p) + block.job.centers.sq_norms_wide[j];
    for (int64_t f = 0; f < points.n_features; ++f) {
        const double x = double(point[f]) * double(points.scale) - double(points.scaled_origin[f]);
        sum = multiply_add(x, negative_slope[f], sum);
    }
    return larger(sum, 0.0);
}

// Computes it from the packed point.
template <class T>
T sq_dist_from_differences(const Block<Dense<T>>& block, int64_t p, int64_t j) {
    if (block.job.heights) return T(affine_distance(block, p, j));
    const T *point = packed_point(block, p), *center = center_of(block.job, j);
    const int64_t width = block.job.plan.padded_features;
    Vector<T> sums[vectors_per_unit] = {};
    for (int64_t f = 0; f < width; f += unit_lanes<T>)
        for (int v = 0; v < vectors_per_unit; ++v) {
            const Vector<T> difference = load(point + f + v * lanes<T>) - load(center + f + v * lanes<T>);
            sums[v] = multiply_add(difference, difference, sums[v]);
        }
    return T(sum_of_lanes<T>(sums));
}

// Computes it in float64 from point and center as given, since packing rounds, in units of 1 / scale.
template <class T>
double sq_dist_as_given(const Block<Dense<T>>& block, int64_t p, int64_t j, double scale) {
    constexpr int n_vectors = int(unit_lanes<T>) / lanes<double>;
    const Dense<T>& points = block.points;
    const T* point = stored_point(block, p);
    const double* center = block.job.raw_centers + j * points.n_features;
    DoubleVector sums[n_vectors] = {}, x[n_vectors];
    int64_t f = 0;
    for (; f + unit_lanes<T> <= points.n_features; f += unit_lanes<T>) {
        widened(point + f, x);
        for (int v = 0; v < n_vectors; ++v) {
            const DoubleVector difference = (x[v] - load(center + f + v * lanes<double>)) * scale;
            sums[v] = multiply_add(difference, difference, sums[v]);
        }
    }
    double sum = f ? sum_of_lanes<double>(sums) : 0;
    for (; f < points.n_features; ++f) {
        const double difference = (double(point[f]) - center[f]) * scale;
        sum = multiply_add(difference, difference, sum);
    }
    return sum;
}

template <class T>
double precise_sq_dist(const Block<Dense<T>>& block, int64_t p, int64_t j) {
    if (block.job.heights) return affine_distance(block, p, j);
    return sq_dist_as_given(block, p, j, double(block.points.scale));
}

template <class T>
void add_point(const Block<Dense<T>>& block, int64_t p, int64_t center, double weight) {
    const int64_t width = block.job.plan.padded_features;
    const T* point = packed_point(block, p);
    double* to = block.out.points + center * width;
    int64_t f = 0;
    for (; f + lanes<T> <= width; f += lanes<T>) add_to(to + f, load(point + f), weight);
    for (; f < width; ++f) to[f] = multiply_add(double(point[f]), weight, to[f]);
}

// Adds points `first` to `first + n` of the block, weighted by their rows times `factor`, to every center.
template <class T>
void add_weighted_points(const Block<Dense<T>>& block, int64_t first, int64_t n, double factor) {
    const int64_t n_padded = block.job.centers.n_padded, width = block.job.plan.padded_features;
    const T *packed = packed_point(block, first), *weights = row_of(block, first);
    double* sums = block.out.points;
    if (block.job.plan.sums_by_center) {
        const SumTiles<T> tiles{
            {weights, 1, n_padded}, {packed, unit_lanes<T>, width}, n, factor, sums, width};
        Tiling<SumTiles<T>>{tiles, block.job.centers.n_centers}.all(width / unit_lanes<T>);
    } else {
        const SumTiles<T> tiles{
            {packed, 1, width}, {weights, unit_lanes<T>, n_padded}, n, factor, sums, n_padded};
        Tiling<SumTiles<T>>{tiles, block.points.n_features}.all(n_padded / unit_lanes<T>);
    }
}

}  // namespace
}  // namespace powermeans
