// Blocks of sparse points: distances to all centers or to one, and sums. Only distances from differences
// visit values that are not stored.
#pragma once

#include "kernels/blocks.hpp"

namespace powermeans {
namespace {

// Calls visit(column, value) for the stored values of a point, scaled.
template <class V, class Visit>
POWERMEANS_INLINE void for_each_value(const Block<Csr<V>>& block, int64_t p, const Visit& visit) {
    const Csr<V>& points = block.points;
    const int64_t end = points.row_starts[block.begin + p + 1];
    for (int64_t e = points.row_starts[block.begin + p]; e < end; ++e)
        visit(points.columns[e], double(points.values[e]) * points.scale);
}

// Fills work.dist with -2 <x, center>, or with -<x, slope>.
template <class V>
void raw_distances(const Block<Csr<V>>& block) {
    const int64_t n_padded = block.job.centers.n_padded;
    for (int64_t p = 0; p < block.n; ++p) {
        double* row = row_of(block, p);
        for (int64_t j = 0; j < n_padded; ++j) row[j] = 0;
        double norm = 0;
        for_each_value(block, p, [&](int32_t column, double value) {
            const double* panel = block.job.centers.panels + column * n_padded;
            norm = multiply_add(value, value, norm);
            for (int64_t j = 0; j < n_padded; j += lanes<double>) add_to(row + j, load(panel + j), value);
        });
        block.work.sq_norms[p] = norm;
    }
}

template <class V>
double affine_distance(const Block<Csr<V>>& block, int64_t p, int64_t j) {
    const double* negative_slope = wide_center_of(block.job, j);
    double sum = height_of(block, p) + block.job.centers.sq_norms_wide[j];
    for_each_value(block, p, [&](int32_t column, double value) {
        sum = multiply_add(value, negative_slope[column], sum);
    });
    return larger(sum, 0.0);
}

template <class V>
double sq_dist_from_differences(const Block<Csr<V>>& block, int64_t p, int64_t j) {
    if (block.job.heights) return affine_distance(block, p, j);
    const Csr<V>& points = block.points;
    const double* center = center_of(block.job, j);
    int64_t e = points.row_starts[block.begin + p];
    const int64_t end = points.row_starts[block.begin + p + 1];
    double sum = 0;
    for (int64_t f = 0; f < points.n_features; ++f) {
        double difference = -center[f];
        for (; e < end && points.columns[e] == f; ++e) difference += double(points.values[e]) * points.scale;
        sum = multiply_add(difference, difference, sum);
    }
    return sum;
}

template <class V>
double precise_sq_dist(const Block<Csr<V>>& block, int64_t p, int64_t j) {
    return sq_dist_from_differences(block, p, j);
}

template <class V>
void add_point(const Block<Csr<V>>& block, int64_t p, int64_t center, double weight) {
    double* to = block.out.points + center * block.job.plan.padded_features;
    for_each_value(block, p, [&](int32_t column, double value) {
        to[column] = multiply_add(value, weight, to[column]);
    });
}

// Adds points `first` to `first + n` of the block, weighted by their rows times `factor`, to every center.
template <class V>
void add_weighted_points(const Block<Csr<V>>& block, int64_t first, int64_t n, double factor) {
    const int64_t n_padded = block.job.centers.n_padded;
    for (int64_t p = first; p < first + n; ++p) {
        const double* weights = row_of(block, p);
        for_each_value(block, p, [&](int32_t column, double value) {
            double* sums = block.out.points + column * n_padded;
            for (int64_t j = 0; j < n_padded; j += lanes<double>)
                add_to(sums + j, load(weights + j), value * factor);
        });
    }
}

}  // namespace
}  // namespace powermeans
