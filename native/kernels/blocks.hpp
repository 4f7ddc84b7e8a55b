// Blocks of points, dense or sparse. These functions cut them, and find a point, a center or a row of
// distances in memory.
#pragma once

#include "kernels/vectors.hpp"
#include "kernels/widening.hpp"

namespace powermeans {
namespace {

// A generous bound on the relative rounding of a squared distance.
template <class T>
constexpr T rounding_of_distance = sizeof(T) == 4 ? T(1e-5) : T(1e-13);

template <class Points>
POWERMEANS_INLINE Block<Points> part_of(const Block<Points>& block, int64_t begin, int64_t n) {
    return {block.points, block.job, block.work, block.out, begin, n};
}

// Calls visit(block) for blocks that stay in cache.
template <class Points, class Visit>
POWERMEANS_INLINE void for_each_block(const Block<Points>& stripe, const Visit& visit) {
    const int64_t end = stripe.begin + stripe.n, step = stripe.job.plan.block_points;
    for (int64_t at = stripe.begin; at < end; at += step) visit(part_of(stripe, at, smaller(step, end - at)));
}

// Returns which of all points the p-th of a block is.
template <class Points>
POWERMEANS_INLINE int64_t index_of(const Block<Points>& block, int64_t p) {
    return block.points.order ? block.points.order[block.begin + p] : block.begin + p;
}

// Returns a point as it is stored, or widened. The next one overwrites a widened point.
template <class T>
POWERMEANS_INLINE const T* stored_point(const Block<Dense<T>>& block, int64_t p) {
    const int64_t d = block.points.n_features;
    return entries_at(block.points.values, index_of(block, p) * d, d, block.work.row);
}

template <class Points>
POWERMEANS_INLINE double weight_of(const Block<Points>& block, int64_t p) {
    return block.job.sample_weight ? block.job.sample_weight[index_of(block, p)] : 1.0;
}

// Returns the height of a point, for affine distances, in their unit.
template <class Points>
POWERMEANS_INLINE double height_of(const Block<Points>& block, int64_t p) {
    return block.job.heights[block.begin + p] / block.job.unscale / block.job.unscale;
}

// Returns the distances, later weights, of a point to all centers.
template <class Points>
POWERMEANS_INLINE auto* row_of(const Block<Points>& block, int64_t p) {
    return block.work.dist + p * block.job.centers.n_padded;
}

template <class Points>
POWERMEANS_INLINE const auto* packed_point(const Block<Points>& block, int64_t p) {
    return block.work.packed + p * block.job.plan.padded_features;
}

template <class T>
POWERMEANS_INLINE const T* center_of(const Job<T>& job, int64_t j) {
    return job.centers.rows + j * job.plan.padded_features;
}

template <class T>
POWERMEANS_INLINE const double* wide_center_of(const Job<T>& job, int64_t j) {
    return job.centers.rows_wide + j * job.plan.padded_features;
}

}  // namespace
}  // namespace powermeans
