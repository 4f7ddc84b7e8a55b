// The label of a point is the first center whose distance, summed from differences in float64, is least.
// Whatever leaves out only centers that cannot be it gives the same label, and so the same sums.
#pragma once

#include "kernels/distances.hpp"

namespace powermeans {
namespace {

template <class T>
constexpr double unit_roundoff = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;

struct Found {
    int64_t center;
    double sq_dist;  // from differences in T: the same bits in every sweep
};

// Returns a bound on what a distance from a product may be off. With n terms added in T, each rounding adds
// u times at most |x|^2 + |center|^2, and so do, a few times, the rounding of point, center and norms.
template <class T>
double error_of_product(const Job<T>& job, double sq_norm) {
    const int64_t d = job.centers.n_features;
    const int64_t n_terms = sizeof(T) == 4 ? smaller(d, features_per_fold) : d;
    return double(n_terms + 16) * unit_roundoff<T> * (sq_norm + job.centers.largest_sq_norm) +
           double(d) * double(Format<T>::smallest_normal);
}

// Returns the largest sum of n squared differences in T that may stand for a distance as small as the one
// that `least` stands for. Rounding point and center moves a distance by at most e, and its square y by
// 2 e sqrt(y) + e^2, where 2 e sqrt(y) is at most slack y + e^2 / slack for any slack: without roots, which
// take longer than all else here. Each term adds a rounding relative to y. Four times the sum of these, with
// more e^2, is enough for both sums, the second of which is larger.
template <class T>
double limit_of_differences(const Job<T>& job, double sq_norm, int64_t n_terms, double least) {
    constexpr double u = unit_roundoff<T>, slack = sizeof(T) == 4 ? 0x1p-13 : 0x1p-27;
    const double sq_e = 2.1 * u * u * (sq_norm + job.centers.largest_sq_norm);
    const double error = (double(n_terms + 8) * u + slack) * least + sq_e * (1 / slack + 8);
    return least + 4 * (error + double(job.centers.n_features) * double(Format<T>::smallest_normal));
}

// Returns the nearest of the first n centers of work.tied, which are in order, with their distances from
// differences in work.tied_dist.
template <class T>
Found nearest_listed(const Block<Dense<T>>& block, int64_t p, int64_t n) {
    const Workspace<T>& work = block.work;
    const int64_t width = block.job.plan.padded_features;
    int64_t best = 0;
    for (int64_t t = 1; t < n; ++t)
        if (work.tied_dist[t] < work.tied_dist[best]) best = t;
    if (n < 2) return {work.tied[best], work.tied_dist[best]};
    const double limit = limit_of_differences(block.job, sq_norm(packed_point(block, p), width),
                                              width / unit_lanes<T>, work.tied_dist[best]);
    int64_t n_near = 0;
    for (int64_t t = 0; t < n; ++t) n_near += work.tied_dist[t] <= limit;
    if (n_near < 2) return {work.tied[best], work.tied_dist[best]};
    double least = __builtin_inf();
    for (int64_t t = 0; t < n; ++t) {
        if (!(work.tied_dist[t] <= limit)) continue;
        const double precise = precise_sq_dist(block, p, work.tied[t]);
        if (!(precise < least)) continue;
        least = precise;
        best = t;
    }
    return {work.tied[best], work.tied_dist[best]};
}

// Distances of one point to all centers, from products or, of few features, from differences.
template <class T>
struct ComparedRow {
    const Block<Dense<T>>& block;
    int64_t p;  // of the block
    T* row;     // (n_padded,)
    double sq_norm;

    // Returns the nearest center by exact comparison.
    Found nearest(const TwoSmallestOfLanes<T>& smallest) const {
        const Workspace<T>& work = block.work;
        const T least = smallest.least(), limit_of_row = T(limit_in_row(double(least)));
        // Nearly always, and in a fraction of the time of a list.
        if (!smallest.has_two_up_to(limit_of_row)) {
            const int64_t first = smallest.first_of(least);
            // Few centers have the bits that differences of this point alone have.
            const bool is_exact = block.job.plan.few_centers;
            return {first, double(is_exact ? least : sq_dist_from_differences(block, p, first))};
        }
        const Vector<T> limit = broadcast(limit_of_row);
        int64_t n = 0;
        for (int64_t j = 0; j < block.job.centers.n_padded; j += lanes<T>)
            for (unsigned mask = lanes_up_to<T>(load(row + j), limit); mask; mask &= mask - 1)
                work.tied[n++] = j + __builtin_ctz(mask);
        // The padding is infinitely far, and in reach only where distances overflow.
        while (n > 1 && work.tied[n - 1] >= block.job.centers.n_centers) --n;
        for (int64_t t = 0; t < n; ++t)
            work.tied_dist[t] = double(sq_dist_from_differences(block, p, work.tied[t]));
        return nearest_listed(block, p, n);
    }

    // Returns the smallest distance in the row to any center but this one. Rounding may leave another one the
    // smallest of all.
    T least_but(int64_t center, const TwoSmallestOfLanes<T>& smallest) const {
        const T least = smallest.least();
        return row[center] == least ? smallest.second_least(least) : least;
    }

    // Returns the two smallest distances in the row to any center but this one, which it takes out.
    TwoSmallestOfLanes<T> without(int64_t center) const {
        row[center] = T(__builtin_inf());
        return two_smallest_in(row, block.job.centers.n_padded);
    }

    double limit_in_row(double least) const {
        const Job<T>& job = block.job;
        if (!job.plan.has_exact_rows()) return least + 2 * error_of_product(job, sq_norm);
        return limit_of_differences(job, double(job.centers.n_features), job.centers.n_features, least);
    }
};

}  // namespace
}  // namespace powermeans
