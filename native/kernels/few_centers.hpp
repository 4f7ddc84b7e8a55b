// Few centers and many features. Lanes hold features, so that few centers leave none of them empty, and
// distances are summed from differences at once: there is no norm to compute and nothing to mend. While a few
// points are compared, the next ones come from memory.
#pragma once

#include "kernels/hard_rule.hpp"

namespace powermeans {
namespace {

// Fills rows of work.dist with the distances of packed points.
template <class T>
struct FewCenters {
    const Block<Dense<T>>& block;
    const T* next;  // to be fetched meanwhile: as much of it for each tile of centers as one point has
    const Job<T>& job = block.job;

    // The sums of a tile fill most registers.
    static constexpr int tile_points = vectors_per_unit == 1 ? 4 : vectors_per_unit == 2 ? 3 : 2;
    static constexpr int tile_centers = vectors_per_unit == 1 ? 4 : vectors_per_unit == 2 ? 2 : 1;

    void compare_all() const {
        int64_t p = 0;
        for (; p + tile_points <= block.n; p += tile_points) compare<tile_points>(p);
        for (; p < block.n; ++p) compare<1>(p);
        for (p = 0; p < block.n; ++p)
            for (int64_t j = job.centers.n_centers; j < job.centers.n_padded; ++j)
                row_of(block, p)[j] = T(__builtin_inf());
    }

  private:
    template <int n_points>
    POWERMEANS_INLINE void compare(int64_t first_point) const {
        int64_t j = 0;
        for (; j + tile_centers <= job.centers.n_centers; j += tile_centers)
            compare_tile<n_points, tile_centers>(first_point, j);
        for (; j < job.centers.n_centers; ++j) compare_tile<n_points, 1>(first_point, j);
    }

    // Adds in the order of sq_dist_from_differences, for the same bits.
    template <int n_points, int n_centers>
    POWERMEANS_INLINE void compare_tile(int64_t first_point, int64_t first_center) const {
        const int64_t width = job.plan.padded_features;
        const T *points = packed_point(block, first_point), *centers = center_of(job, first_center);
        const T* to_fetch = next + first_center / tile_centers * width;
        Vector<T> sums[n_points][n_centers][vectors_per_unit] = {};
        for (int64_t f = 0; f < width; f += unit_lanes<T>) {
            __builtin_prefetch(to_fetch + f);
#pragma GCC unroll 16
            for (int v = 0; v < vectors_per_unit; ++v) {
                const int64_t at = f + v * lanes<T>;
                Vector<T> center[n_centers];
#pragma GCC unroll 16
                for (int j = 0; j < n_centers; ++j) center[j] = load(centers + j * width + at);
#pragma GCC unroll 16
                for (int p = 0; p < n_points; ++p) {
                    const Vector<T> point = load(points + p * width + at);
#pragma GCC unroll 16
                    for (int j = 0; j < n_centers; ++j) {
                        const Vector<T> difference = point - center[j];
                        sums[p][j][v] = multiply_add(difference, difference, sums[p][j][v]);
                    }
                }
            }
        }
        for (int p = 0; p < n_points; ++p)
            for (int j = 0; j < n_centers; ++j)
                row_of(block, first_point + p)[first_center + j] = T(sum_of_lanes<T>(sums[p][j]));
    }
};

// The hard rule for no more points than a tile has.
template <class T>
void few_centers_block(const Block<Dense<T>>& block) {
    pack(block);
    // To be prefetched, and never read through this pointer.
    const T* next =
        static_cast<const T*>(block.points.values.at((block.begin + block.n) * block.points.n_features));
    FewCenters<T>{block, next}.compare_all();
    for (int64_t p = 0; p < block.n; ++p) {
        const ComparedRow<T> compared{block, p, row_of(block, p), 0};
        give_to_nearest(compared, two_smallest_in(compared.row, block.job.centers.n_padded));
    }
    count_changed(block, block.work.labels);
}

template <class T>
void compare_few(const Block<Dense<T>>& stripe) {
    stripe.out.n_distances += double(stripe.n * stripe.job.centers.n_centers);
    constexpr int64_t step = FewCenters<T>::tile_points;
    const int64_t end = stripe.begin + stripe.n;
    for (int64_t at = stripe.begin; at < end; at += step)
        few_centers_block(part_of(stripe, at, smaller(step, end - at)));
}

}  // namespace
}  // namespace powermeans
