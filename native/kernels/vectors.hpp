// Vectors as wide as the instruction set has them. All kernels are in an unnamed namespace: functions of the
// same name, compiled for another instruction set, must never be linked in their place.
#pragma once

#include <stdint.h>

#if defined(__x86_64__) || defined(_M_X64)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

#include "kernels/sweep_kernels.hpp"

namespace powermeans {
namespace {

#if defined(__AVX512F__)
constexpr int vector_bytes = 64;
#define POWERMEANS_INTRINSIC(name) _mm512_##name
#elif defined(__AVX2__)
constexpr int vector_bytes = 32;
#define POWERMEANS_INTRINSIC(name) _mm256_##name
#else
constexpr int vector_bytes = 16;
#endif

constexpr int vectors_per_unit = int(unit_bytes) / vector_bytes;

template <class T>
struct VectorTypes;

template <>
struct VectorTypes<float> {
    using Index = int32_t;
    typedef float Vector __attribute__((vector_size(vector_bytes)));
    typedef float Loose __attribute__((vector_size(vector_bytes), aligned(4), may_alias));
    typedef int32_t Bits __attribute__((vector_size(vector_bytes)));
    typedef uint32_t Unsigned __attribute__((vector_size(vector_bytes)));
};

template <>
struct VectorTypes<double> {
    using Index = int64_t;
    typedef double Vector __attribute__((vector_size(vector_bytes)));
    typedef double Loose __attribute__((vector_size(vector_bytes), aligned(8), may_alias));
    typedef int64_t Bits __attribute__((vector_size(vector_bytes)));
    typedef uint64_t Unsigned __attribute__((vector_size(vector_bytes)));
};

template <class T>
using Vector = typename VectorTypes<T>::Vector;
// As wide as a T, so that comparing lanes of T selects lanes of indices.
template <class T>
using Index = typename VectorTypes<T>::Index;
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

// Subtracting zero costs nothing: compilers leave it out. Adding it would turn -0 into 0, so they could not.
template <class T>
POWERMEANS_INLINE Vector<T> broadcast(T value) {
    return value - Vector<T>{};
}

// Rounds once where the machine can. AVX2 and AVX-512 both can, and give the same bits.
#if defined(POWERMEANS_INTRINSIC)
POWERMEANS_INLINE FloatVector multiply_add(FloatVector a, FloatVector b, FloatVector c) {
    return POWERMEANS_INTRINSIC(fmadd_ps)(a, b, c);
}
POWERMEANS_INLINE DoubleVector multiply_add(DoubleVector a, DoubleVector b, DoubleVector c) {
    return POWERMEANS_INTRINSIC(fmadd_pd)(a, b, c);
}
#elif defined(__ARM_NEON)
POWERMEANS_INLINE FloatVector multiply_add(FloatVector a, FloatVector b, FloatVector c) {
    return FloatVector(vfmaq_f32(float32x4_t(c), float32x4_t(a), float32x4_t(b)));
}
POWERMEANS_INLINE DoubleVector multiply_add(DoubleVector a, DoubleVector b, DoubleVector c) {
    return DoubleVector(vfmaq_f64(float64x2_t(c), float64x2_t(a), float64x2_t(b)));
}
#else
template <class V>
POWERMEANS_INLINE V multiply_add(V a, V b, V c) {
    return a * b + c;
}
#endif

POWERMEANS_INLINE double multiply_add(double a, double b, double c) {
#if defined(__FMA__) || defined(__ARM_NEON)
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}

// Work on numbers or lane by lane; return the second where one is NaN.
template <class V>
POWERMEANS_INLINE V smaller(V a, V b) {
    return a < b ? a : b;
}
template <class V>
POWERMEANS_INLINE V larger(V a, V b) {
    return a > b ? a : b;
}
#if defined(POWERMEANS_INTRINSIC)
// From the lines above GCC 12 makes two instructions where it has another use for the comparison, and power
// sweeps take 5 to 10 % longer.
POWERMEANS_INLINE FloatVector smaller(FloatVector a, FloatVector b) {
    return POWERMEANS_INTRINSIC(min_ps)(a, b);
}
POWERMEANS_INLINE DoubleVector smaller(DoubleVector a, DoubleVector b) {
    return POWERMEANS_INTRINSIC(min_pd)(a, b);
}
POWERMEANS_INLINE FloatVector larger(FloatVector a, FloatVector b) {
    return POWERMEANS_INTRINSIC(max_ps)(a, b);
}
POWERMEANS_INLINE DoubleVector larger(DoubleVector a, DoubleVector b) {
    return POWERMEANS_INTRINSIC(max_pd)(a, b);
}
#endif

// Returns value where `condition >= bound`, else zero.
template <class T>
POWERMEANS_INLINE Vector<T> keep_where_at_least(Vector<T> condition, Vector<T> bound, Vector<T> value) {
    return Vector<T>(Bits<T>(condition >= bound) & Bits<T>(value));
}

enum class Comparison { equal, up_to, above };

// Returns one bit for each lane where the comparison holds.
template <class T, Comparison comparison>
POWERMEANS_INLINE unsigned lanes_where(Vector<T> a, Vector<T> b) {
#if defined(__AVX512F__)
    constexpr int predicate = comparison == Comparison::equal   ? _CMP_EQ_OQ
                              : comparison == Comparison::up_to ? _CMP_LE_OQ
                                                                : _CMP_GT_OQ;
    if constexpr (sizeof(T) == 4)
        return _mm512_cmp_ps_mask(a, b, predicate);
    else
        return _mm512_cmp_pd_mask(a, b, predicate);
#else
    const Bits<T> holds = Bits<T>(comparison == Comparison::equal   ? a == b
                                  : comparison == Comparison::up_to ? a <= b
                                                                    : a > b);
#if defined(__AVX2__)
    if constexpr (sizeof(T) == 4)
        return unsigned(_mm256_movemask_ps(__m256(holds)));
    else
        return unsigned(_mm256_movemask_pd(__m256d(holds)));
#else
    unsigned mask = 0;
    for (int lane = 0; lane < lanes<T>; ++lane) mask |= unsigned(holds[lane] & 1) << lane;
    return mask;
#endif
#endif
}

template <class T>
POWERMEANS_INLINE unsigned lanes_up_to(Vector<T> v, Vector<T> limit) {
    return lanes_where<T, Comparison::up_to>(v, limit);
}
template <class T>
POWERMEANS_INLINE unsigned lanes_above_zero(Vector<T> v) {
    return lanes_where<T, Comparison::above>(v, Vector<T>{});
}

// Sets best = value and which = index in the lanes where value < best.
template <class T>
POWERMEANS_INLINE void keep_smaller(Vector<T> value, Bits<T> index, Vector<T>& best, Bits<T>& which) {
    which = Bits<T>(value < best) ? index : which;
    best = smaller(value, best);
}

template <class T, class Integer>
POWERMEANS_INLINE void store_bits(Integer* to, Bits<T> value) {
    for (int lane = 0; lane < lanes<T>; ++lane) to[lane] = value[lane];
}

// Splits a vector of floats into two of doubles.
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

#if defined(POWERMEANS_INTRINSIC)
// to[0 .. 4) += factor * (from * scale - origin), in float64: for numbers too few for a vector. The scale is a
// power of two, so that the product is exact, and the bits are those of multiply_add.
template <class T>
POWERMEANS_INLINE void add_four(double* to, const T* from, T scale, const T* origin, double factor) {
    typedef T Four __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T)), may_alias));
    const Four moved = *reinterpret_cast<const Four*>(from) * scale - *reinterpret_cast<const Four*>(origin);
    __m256d wide;
    if constexpr (sizeof(T) == 4)
        wide = _mm256_cvtps_pd(__m128(moved));
    else
        wide = __m256d(moved);
    _mm256_storeu_pd(to, _mm256_fmadd_pd(wide, _mm256_set1_pd(factor), _mm256_loadu_pd(to)));
}
#endif

}  // namespace
}  // namespace powermeans
