// Vectors of one instruction set, as wide as it has them. Everything is in an unnamed namespace:
// the same names compiled for another instruction set must never be linked into this one.
#pragma once

#include <stdint.h>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "kernels.hpp"

namespace powermeans {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#else
constexpr int vector_bytes = 16;
#endif

constexpr int vectors_per_unit = int(unit_bytes) / vector_bytes;

template <class T>
struct VectorTypes;

template <>
struct VectorTypes<float> {
    typedef float Vector __attribute__((vector_size(vector_bytes)));
    typedef float Loose __attribute__((vector_size(vector_bytes), aligned(4), may_alias));
    typedef int32_t Bits __attribute__((vector_size(vector_bytes)));
    typedef uint32_t Unsigned __attribute__((vector_size(vector_bytes)));
};

template <>
struct VectorTypes<double> {
    typedef double Vector __attribute__((vector_size(vector_bytes)));
    typedef double Loose __attribute__((vector_size(vector_bytes), aligned(8), may_alias));
    typedef int64_t Bits __attribute__((vector_size(vector_bytes)));
    typedef uint64_t Unsigned __attribute__((vector_size(vector_bytes)));
};

template <class T>
using Vector = typename VectorTypes<T>::Vector;
template <class T>
using Bits = typename VectorTypes<T>::Bits;
template <class T>
using Unsigned = typename VectorTypes<T>::Unsigned;
template <class T>
constexpr int lanes = vector_bytes / int(sizeof(T));

using FloatVector = Vector<float>;
using DoubleVector = Vector<double>;

#define POWERMEANS_INLINE inline __attribute__((always_inline))

template <class T>
POWERMEANS_INLINE Vector<T> load(const T* from) {
    return *reinterpret_cast<const typename VectorTypes<T>::Loose*>(from);
}

template <class T>
POWERMEANS_INLINE void store(T* to, Vector<T> value) {
    *reinterpret_cast<typename VectorTypes<T>::Loose*>(to) = value;
}

// Minus zero, which compilers leave out; plus zero would be a sum, since it turns -0 into 0.
template <class T>
POWERMEANS_INLINE Vector<T> broadcast(T value) {
    return value - Vector<T>{};
}

// One rounding where the machine can; the instruction sets that are compared bit for bit all can.
POWERMEANS_INLINE FloatVector multiply_add(FloatVector a, FloatVector b, FloatVector c) {
#if defined(__AVX512F__)
    return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
    return _mm256_fmadd_ps(a, b, c);
#elif defined(__ARM_NEON)
    return FloatVector(vfmaq_f32(float32x4_t(c), float32x4_t(a), float32x4_t(b)));
#else
    return a * b + c;
#endif
}

POWERMEANS_INLINE DoubleVector multiply_add(DoubleVector a, DoubleVector b, DoubleVector c) {
#if defined(__AVX512F__)
    return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
    return _mm256_fmadd_pd(a, b, c);
#elif defined(__ARM_NEON)
    return DoubleVector(vfmaq_f64(float64x2_t(c), float64x2_t(a), float64x2_t(b)));
#else
    return a * b + c;
#endif
}

POWERMEANS_INLINE double multiply_add(double a, double b, double c) {
#if defined(__FMA__) || defined(__ARM_NEON)
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

template <class T>
struct Reciprocal;
template <>
struct Reciprocal<float> {
    static constexpr int32_t magic = 0x7EF311C7;
    static constexpr int n_steps = 2;
    static constexpr float largest = 0x1p100f;
};
template <>
struct Reciprocal<double> {
    static constexpr int64_t magic = 0x7FDE623822FC16E6;
    static constexpr int n_steps = 3;
    static constexpr double largest = 0x1p1000;
};

// a / b within two units in the last place, for normal b up to `largest`. Subtracting the bits of b
// from those of a suitable number gives 1 / b to 12 %; each step takes the error to its third power.
// Where products and sums are fused that is done long before a division.
template <class T>
POWERMEANS_INLINE Vector<T> near_quotient(Vector<T> a, Vector<T> b) {
#if defined(__FMA__) || defined(__ARM_NEON)
    using R = Reciprocal<T>;
    // Without signs, so that it is defined for a negative b too, whatever comes of that.
    Vector<T> inverse = Vector<T>(Unsigned<T>(Bits<T>{} + R::magic) - Unsigned<T>(b));
    for (int step = 0; step < R::n_steps; ++step) {
        const Vector<T> error = multiply_add(-b, inverse, broadcast(T(1)));
        inverse = multiply_add(inverse, multiply_add(error, error, error), inverse);
    }
    return a * inverse;
#else
    return a / b;
#endif
}

POWERMEANS_INLINE FloatVector smaller(FloatVector a, FloatVector b) {
#if defined(__AVX512F__)
    return _mm512_min_ps(a, b);
#elif defined(__AVX2__)
    return _mm256_min_ps(a, b);
#else
    return a < b ? a : b;
#endif
}

POWERMEANS_INLINE DoubleVector smaller(DoubleVector a, DoubleVector b) {
#if defined(__AVX512F__)
    return _mm512_min_pd(a, b);
#elif defined(__AVX2__)
    return _mm256_min_pd(a, b);
#else
    return a < b ? a : b;
#endif
}

POWERMEANS_INLINE FloatVector larger(FloatVector a, FloatVector b) {
#if defined(__AVX512F__)
    return _mm512_max_ps(a, b);
#elif defined(__AVX2__)
    return _mm256_max_ps(a, b);
#else
    return a > b ? a : b;
#endif
}

POWERMEANS_INLINE DoubleVector larger(DoubleVector a, DoubleVector b) {
#if defined(__AVX512F__)
    return _mm512_max_pd(a, b);
#elif defined(__AVX2__)
    return _mm256_max_pd(a, b);
#else
    return a > b ? a : b;
#endif
}

// Value where `condition >= bound`, else zero.
template <class T>
POWERMEANS_INLINE Vector<T> keep_where_at_least(Vector<T> condition, Vector<T> bound, Vector<T> value) {
    return Vector<T>(Bits<T>(condition >= bound) & Bits<T>(value));
}

// First lane equal to `value`, or -1.
POWERMEANS_INLINE int first_lane_equal(FloatVector v, FloatVector value) {
#if defined(__AVX512F__)
    unsigned mask = _mm512_cmp_ps_mask(v, value, _CMP_EQ_OQ);
    return mask ? __builtin_ctz(mask) : -1;
#elif defined(__AVX2__)
    unsigned mask = unsigned(_mm256_movemask_ps(_mm256_cmp_ps(v, value, _CMP_EQ_OQ)));
    return mask ? __builtin_ctz(mask) : -1;
#else
    for (int lane = 0; lane < lanes<float>; ++lane)
        if (v[lane] == value[lane]) return lane;
    return -1;
#endif
}

POWERMEANS_INLINE int first_lane_equal(DoubleVector v, DoubleVector value) {
#if defined(__AVX512F__)
    unsigned mask = _mm512_cmp_pd_mask(v, value, _CMP_EQ_OQ);
    return mask ? __builtin_ctz(mask) : -1;
#elif defined(__AVX2__)
    unsigned mask = unsigned(_mm256_movemask_pd(_mm256_cmp_pd(v, value, _CMP_EQ_OQ)));
    return mask ? __builtin_ctz(mask) : -1;
#else
    for (int lane = 0; lane < lanes<double>; ++lane)
        if (v[lane] == value[lane]) return lane;
    return -1;
#endif
}

// A bit for each lane that is at most `limit`.
POWERMEANS_INLINE unsigned lanes_up_to(FloatVector v, FloatVector limit) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(v, limit, _CMP_LE_OQ);
#elif defined(__AVX2__)
    return unsigned(_mm256_movemask_ps(_mm256_cmp_ps(v, limit, _CMP_LE_OQ)));
#else
    unsigned mask = 0;
    for (int lane = 0; lane < lanes<float>; ++lane) mask |= unsigned(v[lane] <= limit[lane]) << lane;
    return mask;
#endif
}

POWERMEANS_INLINE unsigned lanes_up_to(DoubleVector v, DoubleVector limit) {
#if defined(__AVX512F__)
    return _mm512_cmp_pd_mask(v, limit, _CMP_LE_OQ);
#elif defined(__AVX2__)
    return unsigned(_mm256_movemask_pd(_mm256_cmp_pd(v, limit, _CMP_LE_OQ)));
#else
    unsigned mask = 0;
    for (int lane = 0; lane < lanes<double>; ++lane) mask |= unsigned(v[lane] <= limit[lane]) << lane;
    return mask;
#endif
}

POWERMEANS_INLINE unsigned lanes_above_zero(FloatVector v) {
#if defined(__AVX512F__)
    return _mm512_cmp_ps_mask(v, FloatVector{}, _CMP_GT_OQ);
#elif defined(__AVX2__)
    return unsigned(_mm256_movemask_ps(_mm256_cmp_ps(v, FloatVector{}, _CMP_GT_OQ)));
#else
    unsigned mask = 0;
    for (int lane = 0; lane < lanes<float>; ++lane) mask |= unsigned(v[lane] > 0) << lane;
    return mask;
#endif
}

POWERMEANS_INLINE unsigned lanes_above_zero(DoubleVector v) {
#if defined(__AVX512F__)
    return _mm512_cmp_pd_mask(v, DoubleVector{}, _CMP_GT_OQ);
#elif defined(__AVX2__)
    return unsigned(_mm256_movemask_pd(_mm256_cmp_pd(v, DoubleVector{}, _CMP_GT_OQ)));
#else
    unsigned mask = 0;
    for (int lane = 0; lane < lanes<double>; ++lane) mask |= unsigned(v[lane] > 0) << lane;
    return mask;
#endif
}

// best = value and which = index, in the lanes where value < best.
POWERMEANS_INLINE void keep_smaller(FloatVector value, Bits<float> index, FloatVector& best,
                                    Bits<float>& which) {
#if defined(__AVX512F__)
    const __mmask16 less = _mm512_cmp_ps_mask(value, best, _CMP_LT_OQ);
    best = _mm512_min_ps(value, best);
    which = Bits<float>(_mm512_mask_mov_epi32(__m512i(which), less, __m512i(index)));
#else
    const Bits<float> less = Bits<float>(value < best);
    best = smaller(value, best);
    which = (less & index) | (~less & which);
#endif
}

POWERMEANS_INLINE void keep_smaller(DoubleVector value, Bits<double> index, DoubleVector& best,
                                    Bits<double>& which) {
#if defined(__AVX512F__)
    const __mmask8 less = _mm512_cmp_pd_mask(value, best, _CMP_LT_OQ);
    best = _mm512_min_pd(value, best);
    which = Bits<double>(_mm512_mask_mov_epi64(__m512i(which), less, __m512i(index)));
#else
    const Bits<double> less = Bits<double>(value < best);
    best = smaller(value, best);
    which = (less & index) | (~less & which);
#endif
}

template <class T, class Integer>
POWERMEANS_INLINE void store_bits(Integer* to, Bits<T> value) {
    for (int lane = 0; lane < lanes<T>; ++lane) to[lane] = value[lane];
}

// The two halves of a vector of floats, as doubles.
POWERMEANS_INLINE void widen(FloatVector v, DoubleVector& low, DoubleVector& high) {
#if defined(__AVX512F__)
    low = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
    high = _mm512_cvtps_pd(_mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(v), 1)));
#elif defined(__AVX2__)
    low = _mm256_cvtps_pd(_mm256_castps256_ps128(v));
    high = _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1));
#else
    low = DoubleVector{double(v[0]), double(v[1])};
    high = DoubleVector{double(v[2]), double(v[3])};
#endif
}

// to[0 .. lanes) += factor * v, in float64.
POWERMEANS_INLINE void add_to(double* to, DoubleVector v, double factor) {
    store(to, multiply_add(v, broadcast(factor), load(to)));
}

POWERMEANS_INLINE void add_to(double* to, FloatVector v, double factor) {
    DoubleVector low, high;
    widen(v, low, high);
    add_to(to, low, factor);
    add_to(to + lanes<double>, high, factor);
}

}  // namespace
}  // namespace powermeans
