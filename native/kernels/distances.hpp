// Squared distances of blocks of points to all centers, from the raw sums of dense and sparse points.
// Distances that lost digits to cancellation are computed again.
#pragma once

#include "kernels/dense_points.hpp"
#include "kernels/sparse_points.hpp"

namespace powermeans {
namespace {

// Below this share of |x|^2 + |center|^2 a distance from a product has lost too many digits, and is computed
// again from differences.
template <class T>
constexpr T cancellation = sizeof(T) == 4 ? T(1) / 64 : T(1) / 1024;

// Float32 differences lose digits to the origin below this share; those of float64 have no origin.
template <class T>
constexpr T cancellation_of_differences = sizeof(T) == 4 ? T(1) / 4096 : T(0);

// Smaller squares lose digits to the range of T.
template <class T>
constexpr T smallest_with_digits = sizeof(T) == 4 ? T(0x1p-100) : T(0x1p-960);

template <class V>
constexpr bool mends_copies(const Block<Csr<V>>&) {
    return false;
}
template <class T>
constexpr bool mends_copies(const Block<Dense<T>>& block) {
    return block.job.task == Task::distances && block.job.raw_centers && !block.job.heights;
}

template <class V>
void mend_copies(const Block<Csr<V>>&, int64_t, double*) {}

// Computes copied distances again that lost digits to the frame, so that the points of the frame, which are
// those of the same call, change no answer.
template <class T>
void mend_copies(const Block<Dense<T>>& block, int64_t p, T* copies) {
    const Job<T>& job = block.job;
    const T* row = row_of(block, p);
    const T lost = job.plan.direct ? cancellation_of_differences<T> : cancellation<T>;
    // |x|^2 is at most 2 y + 2 |center|^2, so that no distance has lost digits where the least is this large.
    if (block.work.nearest[p] >
        larger(4 * double(lost) * job.centers.largest_sq_norm, double(smallest_with_digits<T>)))
        return;
    double norm = job.plan.direct ? 0 : block.work.sq_norms[p];
    for (int64_t f = 0; job.plan.direct && f < block.points.n_features; ++f)
        norm += double(packed_point(block, p)[f]) * double(packed_point(block, p)[f]);
    const Vector<T> share = broadcast(lost), size = broadcast(T(norm)),
                    smallest = broadcast(smallest_with_digits<T>);
    for (int64_t j = 0; j < job.centers.n_padded; j += lanes<T>) {
        const Vector<T> least = larger(share * (size + load(job.centers.sq_norms + j)), smallest);
        for (unsigned mask = lanes_up_to<T>(load(row + j), least); mask; mask &= mask - 1) {
            const int64_t center = j + __builtin_ctz(mask);
            if (center < job.centers.n_centers) copies[center] = T(sq_dist_as_given(block, p, center, 1.0));
        }
    }
}

// row = |x|^2 + |center|^2 + row, or height + lift + row; at least zero. Returns the smallest of the
// lanes, or the two smallest.
template <template <class> class Smallest, class T>
POWERMEANS_INLINE Smallest<T> complete_row(const Job<T>& job, const Workspace<T>& work, int64_t p) {
    const int64_t n_padded = job.centers.n_padded;
    T* row = work.dist + p * n_padded;
    Smallest<T> smallest;
    if (work.folded) {
        const double* folded = work.folded + p * n_padded;
        for (int64_t j = 0; j < n_padded; ++j)
            row[j] = T(work.sq_norms[p] + job.centers.sq_norms_wide[j] + folded[j]);
    }
    const Vector<T> norm = broadcast(T(work.sq_norms[p]));
    for (int64_t j = 0; j < n_padded; j += lanes<T>) {
        Vector<T> y = load(row + j);
        if (!work.folded) y = (norm + load(job.centers.sq_norms + j)) + y;
        y = larger(y, Vector<T>{});
        store(row + j, y);
        smallest.add(y, j);
    }
    return smallest;
}

// Computes distances that lost digits again; returns the smallest distance of the row.
template <class Points, class T = typename Points::Computed>
T mend_row(const Block<Points>& block, int64_t p) {
    const Centers<T>& centers = block.job.centers;
    T* row = row_of(block, p);
    for (int64_t j = 0; j < centers.n_centers; ++j) {
        const T size = larger(centers.sq_norms[j], -centers.sq_norms[j]);  // lifts may be negative
        if (row[j] < cancellation<T> * (T(block.work.sq_norms[p]) + size))
            row[j] = sq_dist_from_differences(block, p, j);
    }
    return smallest_in(row, centers.n_padded);
}

// Turns raw sums in work.dist into squared distances, and writes the smallest of each point to work.nearest.
template <class Points>
void complete_distances(const Block<Points>& block) {
    using T = typename Points::Computed;
    const Job<T>& job = block.job;
    // Affine distances cannot be computed from differences, only in float64. Those that a caller asked for are
    // mended once they are copied.
    const bool can_mend = job.heights ? sizeof(T) < sizeof(double) : !mends_copies(block);
    for (int64_t p = 0; p < block.n; ++p) {
        if (job.plan.direct) {
            block.work.nearest[p] = double(smallest_in(row_of(block, p), job.centers.n_padded));
            continue;
        }
        T nearest = complete_row<SmallestOfLanes>(job, block.work, p).least();
        const double size = block.work.sq_norms[p] + job.centers.largest_sq_norm;
        if (can_mend && double(nearest) < double(cancellation<T>) * size) nearest = mend_row(block, p);
        block.work.nearest[p] = double(nearest);
    }
}

template <class Points>
void distances(const Block<Points>& block) {
    raw_distances(block);
    if (block.job.heights)  // they take the place of the squared norms
        for (int64_t p = 0; p < block.n; ++p) block.work.sq_norms[p] = height_of(block, p);
    complete_distances(block);
}

}  // namespace
}  // namespace powermeans
