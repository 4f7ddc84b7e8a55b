// The nearest center takes the point.
#pragma once

#include "distances.hpp"

namespace powermeans {
namespace {

// What the hard rule does with a point, once its nearest center is known.
template <class T>
POWERMEANS_INLINE void take_point(const Job<T>& job, int64_t i, int64_t center, double nearest, double second,
                                  Partial& out) {
    const double weight = weight_of(job, i);
    if (job.labels) job.labels[i] = int32_t(center);
    out.weights[center] += weight;
    out.inertia += weight * nearest;
    if (job.task != Task::spread) return;
    out.error[center] += weight * nearest;
    if (job.centers.n_centers > 1) out.utility[center] += weight * (second - nearest);
}

template <class Storage, class T>
void hard_block(const Storage& points, const Job<T>& job, const Workspace<T>& work, int64_t begin, int64_t n,
                Partial& out) {
    const int64_t n_padded = job.centers.n_padded;
    for (int64_t p = 0; p < n; ++p) {
        T* row = work.dist + p * n_padded;
        const int64_t center = first_equal(row, n_padded, T(work.nearest[p]));
        double second = 0;
        if (job.task == Task::spread) {
            row[center] = T(__builtin_inf());
            second = double(smallest_in(row, n_padded));
        }
        take_point(job, begin + p, center, work.nearest[p], second, out);
        if (job.task == Task::hard_sums)
            add_point(points, job, work, begin, p, center, weight_of(job, begin + p), out);
    }
}

}  // namespace
}  // namespace powermeans
