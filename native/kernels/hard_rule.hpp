// The hard rule: the nearest center takes the point, or that of least distance and price. The distances of a block are in its workspace already.
#pragma once

#include "kernels/nearest.hpp"

namespace powermeans {
namespace {

// Whether labels and inertia are wanted of points that packing rounds.
template <class Points>
POWERMEANS_INLINE bool wants_digits_of_stored(const Block<Points>& block) {
    if constexpr (sizeof(typename Points::Computed) == sizeof(double)) return false;
    return block.job.task == Task::assign && !block.job.heights;
}

// Counts the point with its nearest center.
template <class Points>
POWERMEANS_INLINE void take_point(const Block<Points>& block, int64_t p, int64_t center, double nearest,
                                  double second) {
    const auto& job = block.job;
    if (wants_digits_of_stored(block)) nearest = precise_sq_dist(block, p, center);
    const double weight = weight_of(block, p);
    if (job.labels) job.labels[index_of(block, p)] = int32_t(center);
    if (job.margins) job.margins[index_of(block, p)] = (second - nearest) * job.unscale * job.unscale;
    block.out.weights[center] += weight;
    block.out.inertia += weight * nearest;
    if (job.task != Task::spread) return;
    block.out.error[center] += weight * nearest;
    if (job.centers.n_centers > 1) block.out.utility[center] += weight * (second - nearest);
}

// Counts the points whose label is not the last one, in a loop of its own, which takes several at a time.
template <class Points, class Label>
POWERMEANS_INLINE void count_changed(const Block<Points>& block, const Label* labels) {
    if (!block.job.last_labels) return;
    int32_t* last = block.job.last_labels + block.begin;
    int32_t n_changed = 0;
    for (int64_t p = 0; p < block.n; ++p) {
        const int32_t label = int32_t(labels[p]);
        n_changed += last[p] != label;
        last[p] = label;
    }
    block.out.n_changed += n_changed;
}

// Gives the point to a center: it counts, is added up where sums are wanted, and gets its label.
template <class Points>
POWERMEANS_INLINE void give_point(const Block<Points>& block, int64_t p, int64_t center, double nearest,
                                  double second) {
    take_point(block, p, center, nearest, second);
    if (block.job.task == Task::hard_sums) add_point(block, p, center, weight_of(block, p));
    block.work.labels[p] = int32_t(center);
}

// Gives the point to its nearest center, by the distances of its row.
template <class T>
POWERMEANS_INLINE void give_to_nearest(const ComparedRow<T>& compared,
                                       const TwoSmallestOfLanes<T>& smallest) {
    const Block<Dense<T>>& block = compared.block;
    const int64_t p = compared.p;
    const Found found = compared.nearest(smallest);
    const bool has_second = block.job.task == Task::spread && block.job.centers.n_centers > 1;
    give_point(block, p, found.center, found.sq_dist,
               has_second ? compared.nearest(compared.without(found.center)).sq_dist : 0);
}

// Points of many features: products say which centers may be the nearest.
template <class T>
void hard_block_by_comparison(const Block<Dense<T>>& block) {
    raw_distances(block);
    for (int64_t p = 0; p < block.n; ++p) {
        const TwoSmallestOfLanes<T> smallest = complete_row<TwoSmallestOfLanes>(block.job, block.work, p);
        give_to_nearest(ComparedRow<T>{block, p, row_of(block, p), block.work.sq_norms[p]}, smallest);
    }
    count_changed(block, block.work.labels);
}

template <class Points>
void hard_block(const Block<Points>& block) {
    using T = typename Points::Computed;
    const int64_t n_padded = block.job.centers.n_padded;
    for (int64_t p = 0; p < block.n; ++p) {
        T* row = row_of(block, p);
        const double nearest = block.work.nearest[p];
        const int64_t center = first_equal(row, n_padded, T(nearest));
        double second = 0;
        if (block.job.task == Task::spread || block.job.margins) {
            row[center] = T(__builtin_inf());
            second = double(smallest_in(row, n_padded));
        }
        give_point(block, p, center, nearest, second);
    }
    count_changed(block, block.work.labels);
}

// Gives each point to the center of least distance and price.
template <class Points>
void priced_block(const Block<Points>& block) {
    using T = typename Points::Computed;
    const auto& job = block.job;
    for (int64_t p = 0; p < block.n; ++p) {
        const T* row = row_of(block, p);
        TwoSmallestOfLanes<T> smallest;
        for (int64_t j = 0; j < job.centers.n_padded; j += lanes<T>)
            smallest.add(load(row + j) + load(job.offsets + j), j);
        const T least = smallest.least();
        const int64_t center = smallest.first_of(least), i = index_of(block, p);
        const double weight = weight_of(block, p);
        block.out.weights[center] += weight;
        block.out.objective += weight * double(least);
        block.out.inertia += weight * block.work.nearest[p];
        add_point(block, p, center, weight);
        if (job.labels) job.labels[i] = int32_t(center);
        if (job.margins)
            job.margins[i] =
                (double(smallest.second_least(least)) - double(least)) * job.unscale * job.unscale;
    }
}

// Lists the centers near each point by distance and price.
template <class Points>
void list_near(const Block<Points>& block) {
    using T = typename Points::Computed;
    const auto& job = block.job;
    const double unscale = job.unscale;
    for (int64_t p = 0; p < block.n; ++p) {
        const int64_t i = index_of(block, p), n_most = job.near.n_most;
        const T* row = row_of(block, p);
        int32_t* listed = job.near.centers + i * n_most;
        const auto cost_of = [&](int64_t j) { return row[j] + job.offsets[j]; };
        T limit = cost_of(job.labels[i]) + T(job.near.reach / unscale / unscale);
        int64_t n = 0;
        listed[n++] = job.labels[i];
        for (int64_t j = 0; j < job.centers.n_padded; j += lanes<T>) {
            const Vector<T> costs = load(row + j) + load(job.offsets + j);
            for (unsigned mask = lanes_up_to<T>(costs, broadcast(limit)); mask; mask &= mask - 1) {
                const int64_t center = j + __builtin_ctz(mask);
                if (center == job.labels[i] || center >= job.centers.n_centers) continue;
                const bool is_full = n == n_most;
                if (is_full && !(cost_of(center) < cost_of(listed[n - 1]))) continue;
                int64_t at = is_full ? n - 1 : n++;
                for (; at > 1 && cost_of(center) < cost_of(listed[at - 1]); --at) listed[at] = listed[at - 1];
                listed[at] = int32_t(center);
                if (n == n_most) limit = smaller(limit, cost_of(listed[n - 1]));
            }
        }
        for (int64_t t = 0; t < n; ++t)
            job.near.distances[i * n_most + t] = double(row[listed[t]]) * unscale * unscale;
        for (int64_t t = n; t < n_most; ++t) listed[t] = -1;
    }
}

}  // namespace
}  // namespace powermeans
