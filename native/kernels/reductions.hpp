// Sums, minima and searches over the lanes of vectors, and over rows of values. Every instruction set adds
// in the same order.
#pragma once

#include "kernels/vectors.hpp"

namespace powermeans {
namespace {

// Folds the upper half of a vector onto the lower one, until a single value is left. Written as a loop over
// an array, GCC leaves it a loop where there are sixteen lanes.
template <class Fold>
POWERMEANS_INLINE double folded(DoubleVector v, const Fold& fold) {
#if defined(POWERMEANS_INTRINSIC)
#if defined(__AVX512F__)
    const __m256d half = fold(_mm512_extractf64x4_pd(v, 1), _mm512_castpd512_pd256(v));
#else
    const __m256d half = v;
#endif
    const __m128d pair = fold(_mm256_extractf128_pd(half, 1), _mm256_castpd256_pd128(half));
    return fold(pair[1], pair[0]);
#else
    return fold(v[1], v[0]);
#endif
}

template <class Fold>
POWERMEANS_INLINE float folded(FloatVector v, const Fold& fold) {
#if defined(POWERMEANS_INTRINSIC)
#if defined(__AVX512F__)
    const __m256 upper = _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1));
    const __m256 half = fold(upper, _mm512_castps512_ps256(v));
#else
    const __m256 half = v;
#endif
    const __m128 four = fold(_mm256_extractf128_ps(half, 1), _mm256_castps256_ps128(half));
#else
    const FloatVector four = v;
#endif
    return fold(fold(four[3], four[1]), fold(four[2], four[0]));
}

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
    return folded(sums[0], [](auto upper, auto lower) { return lower + upper; });
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
    return folded(v, [](auto upper, auto lower) { return upper < lower ? upper : lower; });
}

template <class T>
POWERMEANS_INLINE T smallest_in(const T* row, int64_t n_padded) {
    Vector<T> smallest = load(row);
    for (int64_t j = lanes<T>; j < n_padded; j += lanes<T>) smallest = smaller(smallest, load(row + j));
    return smallest_lane<T>(smallest);
}

template <class T>
POWERMEANS_INLINE bool has_two_up_to(const T* row, int64_t n_padded, T limit) {
    int count = 0;
    for (int64_t j = 0; j < n_padded; j += lanes<T>)
        count += __builtin_popcount(lanes_up_to<T>(load(row + j), broadcast(limit)));
    return count > 1;
}

// The smallest value so far in each lane.
template <class T>
struct SmallestOfLanes {
    Vector<T> first = broadcast(T(__builtin_inf()));

    POWERMEANS_INLINE void add(Vector<T> values, int64_t) { first = smaller(first, values); }
    POWERMEANS_INLINE T least() const { return smallest_lane<T>(first); }
};

// The two smallest values so far in each lane, and where the first of the smallest is.
template <class T>
struct TwoSmallestOfLanes {
    Vector<T> first = broadcast(T(__builtin_inf())), second = first;
    Bits<T> starts = {};  // of the vectors that have the smallest values

    POWERMEANS_INLINE void add(Vector<T> values, int64_t start) {
        second = smaller(larger(first, values), second);
        keep_smaller<T>(values, Bits<T>{} + Index<T>(start), first, starts);
    }
    POWERMEANS_INLINE T least() const { return smallest_lane<T>(first); }

    // Returns the first index of the least, or 0 where there is none, as when a distance is NaN. A search
    // along the values would end at a place that no processor can predict.
    POWERMEANS_INLINE int64_t first_of(T least) const {
        unsigned lanes_of_least = lanes_where<T, Comparison::equal>(first, broadcast(least));
        if (!lanes_of_least) return 0;
        Index<T> start[lanes<T>];
        __builtin_memcpy(start, &starts, sizeof starts);
        int64_t lane = __builtin_ctz(lanes_of_least), index = start[lane] + lane;
        while (lanes_of_least &= lanes_of_least - 1) {
            lane = __builtin_ctz(lanes_of_least);
            index = smaller<int64_t>(index, start[lane] + lane);
        }
        return index;
    }

    // Returns the smallest of all values but one, which is the least.
    POWERMEANS_INLINE T second_least(T least) const {
        const unsigned where = lanes_where<T, Comparison::equal>(first, broadcast(least));
        if (__builtin_popcount(where) > 1) return least;
        return smallest_lane<T>(first == broadcast(least) ? second : first);
    }

    POWERMEANS_INLINE bool has_two_up_to(T limit) const {
        const unsigned lanes_of_first = lanes_up_to<T>(first, broadcast(limit));
        return __builtin_popcount(lanes_of_first) > 1 || lanes_up_to<T>(second, broadcast(limit));
    }
};

template <class T>
POWERMEANS_INLINE TwoSmallestOfLanes<T> two_smallest_in(const T* row, int64_t n_padded) {
    TwoSmallestOfLanes<T> smallest;
    for (int64_t j = 0; j < n_padded; j += lanes<T>) smallest.add(load(row + j), j);
    return smallest;
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
