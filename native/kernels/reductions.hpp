// Sums, minima and searches over the lanes of vectors, and over rows of values. Every instruction set adds
// in the same order.
#pragma once

#include "vectors.hpp"

namespace powermeans {
namespace {

POWERMEANS_INLINE void store_wide(DoubleVector* to, DoubleVector v) { to[0] = v; }
POWERMEANS_INLINE void store_wide(DoubleVector* to, FloatVector v) { widen(v, to[0], to[1]); }

// Sums the lanes of whole units in one order for all instruction sets: halves onto halves.
template <class T, int n_vectors>
POWERMEANS_INLINE double sum_of_lanes(const Vector<T> (&vectors)[n_vectors]) {
    constexpr int per_vector = lanes<T> / lanes<double>;
    DoubleVector sums[n_vectors * per_vector];
    for (int v = 0; v < n_vectors; ++v) store_wide(sums + v * per_vector, vectors[v]);
    for (int left = n_vectors * per_vector / 2; left > 0; left /= 2)
        for (int v = 0; v < left; ++v) sums[v] += sums[v + left];
    double lane[lanes<double>];
    store(lane, sums[0]);
    for (int left = lanes<double> / 2; left > 0; left /= 2)
        for (int i = 0; i < left; ++i) lane[i] += lane[i + left];
    return lane[0];
}

POWERMEANS_INLINE double weighted_sum(const double* values, const double* weights) {
    DoubleVector sums[vectors_per_unit] = {};
    for (int64_t p = 0; p < points_per_group; p += unit_lanes<double>)
        for (int v = 0; v < vectors_per_unit; ++v)
            sums[v] = multiply_add(load(values + p + v * lanes<double>),
                                   load(weights + p + v * lanes<double>), sums[v]);
    return sum_of_lanes<double>(sums);
}

POWERMEANS_INLINE double weighted_sum(const float* values, const double* weights) {
    double wide[points_per_group];
    for (int64_t p = 0; p < points_per_group; ++p) wide[p] = double(values[p]);
    return weighted_sum(wide, weights);
}

template <class T>
POWERMEANS_INLINE T smallest_lane(Vector<T> v) {
    T lane[lanes<T>];
    store(lane, v);
    for (int left = lanes<T> / 2; left > 0; left /= 2)
        for (int i = 0; i < left; ++i) lane[i] = smaller(lane[i + left], lane[i]);
    return lane[0];
}

template <class T>
POWERMEANS_INLINE T smallest_in(const T* row, int64_t n_padded) {
    Vector<T> smallest = load(row);
    for (int64_t j = lanes<T>; j < n_padded; j += lanes<T>) smallest = smaller(smallest, load(row + j));
    return smallest_lane<T>(smallest);
}

template <class T>
POWERMEANS_INLINE bool has_two_up_to(const T* row, int64_t n_padded, T limit) {
    const Vector<T> limits = broadcast(limit);
    Bits<T> counts = {};
    for (int64_t j = 0; j < n_padded; j += lanes<T>) counts -= Bits<T>(load(row + j) <= limits);
    int64_t count = 0;
    for (int lane = 0; lane < lanes<T>; ++lane) count += counts[lane];
    return count > 1;
}

// Returns the first index of this value, or 0 where there is none, as when a distance is NaN.
template <class T>
POWERMEANS_INLINE int64_t first_equal(const T* row, int64_t n_padded, T value) {
    for (int64_t j = 0; j < n_padded; j += lanes<T>) {
        const unsigned mask = lanes_where<T, Comparison::equal>(load(row + j), broadcast(value));
        if (mask) return j + __builtin_ctz(mask);
    }
    return 0;
}

}  // namespace
}  // namespace powermeans
