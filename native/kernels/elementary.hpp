// Quotient, exponential and logarithm on vectors, to an ulp or two. The coefficients are near-minimax fits,
// printed by fit_polynomials.py.
#pragma once

#include "kernels/vectors.hpp"

namespace powermeans {
namespace {

template <class T>
struct Format;

template <>
struct Format<double> {
    static constexpr int mantissa_bits = 52;
    static constexpr int64_t exponent_bias = 1023;
    static constexpr int64_t sqrt_half_bits = 0x3fe6a09e667f3bcd;
    static constexpr double smallest_normal = 0x1p-1022;
    static constexpr double largest = 0x1.fffffffffffffp1023;
    static constexpr double smallest_exponent = -1022;
    static constexpr double exp_underflows_below = -708.0;
    static constexpr double to_integer = 0x1.8p52;  // adding it leaves an integer in the low bits
    static constexpr double log2_e = 0x1.71547652b82fep+0;
    static constexpr double log_2_high = 0x1.62e42fec00000p-1;  // times an exponent: exact
    static constexpr double log_2_low = 0x1.d1cf79abc9e3bp-32;
    static constexpr int64_t reciprocal_magic = 0x7FDE623822FC16E6;
    static constexpr double largest_divisor = 0x1p1000;
};

template <>
struct Format<float> {
    static constexpr int mantissa_bits = 23;
    static constexpr int32_t exponent_bias = 127;
    static constexpr int32_t sqrt_half_bits = 0x3f3504f3;
    static constexpr float smallest_normal = 0x1p-126f;
    static constexpr float largest = 0x1.fffffep127f;
    static constexpr float smallest_exponent = -126;
    static constexpr float exp_underflows_below = -87.0f;
    static constexpr float to_integer = 0x1.8p23f;
    static constexpr float log2_e = 0x1.715476p+0f;
    static constexpr float log_2_high = 0x1.62e000p-1f;
    static constexpr float log_2_low = 0x1.0bfbe8p-15f;
    static constexpr int32_t reciprocal_magic = 0x7EF311C7;
    static constexpr float largest_divisor = 0x1p100f;
};

// a / b within two units in the last place, for normal b up to `largest_divisor`. Subtracting the bits of b
// from those of a suitable number gives 1 / b to 12 %; each of two steps takes the error to its third power.
// That is all that float32 holds; in float64 the rest of the quotient corrects it. Where products and sums
// are fused, that is faster than a division.
template <class T>
POWERMEANS_INLINE Vector<T> near_quotient(Vector<T> a, Vector<T> b) {
#if defined(__FMA__) || defined(__ARM_NEON)
    using F = Format<T>;
    // Unsigned, so that nothing overflows where b is negative; such results are not used.
    Vector<T> inverse = Vector<T>(Unsigned<T>(Bits<T>{} + F::reciprocal_magic) - Unsigned<T>(b));
    for (int step = 0; step < 2; ++step) {
        const Vector<T> error = multiply_add(-b, inverse, broadcast(T(1)));
        inverse = multiply_add(inverse, multiply_add(error, error, error), inverse);
    }
    const Vector<T> quotient = a * inverse;
    if constexpr (sizeof(T) == 4) return quotient;
    return multiply_add(multiply_add(-b, quotient, a), inverse, quotient);
#else
    return a / b;
#endif
}

template <class T, int n>
POWERMEANS_INLINE Vector<T> polynomial(Vector<T> x, const T (&coefficients)[n]) {
    Vector<T> value = broadcast(coefficients[0]);
#pragma GCC unroll 16
    for (int i = 1; i < n; ++i) value = multiply_add(value, x, broadcast(coefficients[i]));
    return value;
}

// Sets values[v] to the polynomial at x[v]. Vectors take turns, and so do terms of even and of odd degree: no
// step waits for the one before.
template <class T, int n_vectors, int n>
POWERMEANS_INLINE void polynomials(const Vector<T> (&x)[n_vectors], const T (&coefficients)[n],
                                   Vector<T> (&values)[n_vectors]) {
    Vector<T> squares[n_vectors], others[n_vectors];
#pragma GCC unroll 4
    for (int v = 0; v < n_vectors; ++v) {
        squares[v] = x[v] * x[v];
        values[v] = broadcast(coefficients[0]);
        others[v] = broadcast(coefficients[1]);
    }
#pragma GCC unroll 16
    for (int i = 2; i < n; ++i)
#pragma GCC unroll 4
        for (int v = 0; v < n_vectors; ++v) {
            Vector<T>& value = i % 2 ? others[v] : values[v];
            value = multiply_add(value, squares[v], broadcast(coefficients[i]));
        }
#pragma GCC unroll 4
    for (int v = 0; v < n_vectors; ++v)
        values[v] =
            n % 2 ? multiply_add(others[v], x[v], values[v]) : multiply_add(values[v], x[v], others[v]);
}

constexpr double exp_tail_double[] = {0x1.af3ce42b12b24p-26, 0x1.2894f52583578p-22, 0x1.71de0be2b5e96p-19,
                                      0x1.a019b621f9d08p-16, 0x1.a01a01a83ba17p-13, 0x1.6c16c1794e1dcp-10,
                                      0x1.1111111110918p-7,  0x1.5555555553b6cp-5,  0x1.5555555555556p-3,
                                      0x1.0000000000001p-1};
constexpr float exp_tail_float[] = {0x1.6d1606p-10f, 0x1.12106cp-7f, 0x1.555516p-5f, 0x1.5554d8p-3f,
                                    0x1.000000p-1f};
constexpr double atanh_tail_double[] = {0x1.2be78035f90e7p-3, 0x1.39f2ac8e848c3p-3, 0x1.74630fb47b087p-3,
                                        0x1.c71c61a265960p-3, 0x1.2492492ef134dp-2, 0x1.99999999949c3p-2,
                                        0x1.5555555555558p-1};
constexpr float log_tail_float[] = {0x1.1d8ea6p-4f,  -0x1.d635bcp-4f, 0x1.dea282p-4f,
                                    -0x1.fcf4c6p-4f, 0x1.23d21ap-3f,  -0x1.555b4ap-3f,
                                    0x1.999d5ap-3f,  -0x1.fffffcp-3f, 0x1.555554p-2f};

POWERMEANS_INLINE DoubleVector exp_tail(DoubleVector x) { return polynomial<double>(x, exp_tail_double); }
POWERMEANS_INLINE FloatVector exp_tail(FloatVector x) { return polynomial<float>(x, exp_tail_float); }

// Returns exp(x), and zero where that is below the normal range. x must be below where the result overflows.
template <class T>
POWERMEANS_INLINE Vector<T> exp_of(Vector<T> x) {
    using F = Format<T>;
    const Vector<T> lowest = broadcast(F::exp_underflows_below);
    const Vector<T> clipped = larger(x, lowest);
    const Vector<T> shifted = multiply_add(clipped, broadcast(F::log2_e), broadcast(F::to_integer));
    const Vector<T> exponent = shifted - broadcast(F::to_integer);
    Vector<T> rest = multiply_add(exponent, broadcast(-F::log_2_high), clipped);
    rest = multiply_add(exponent, broadcast(-F::log_2_low), rest);
    const Vector<T> mantissa = multiply_add(rest * rest, exp_tail(rest), rest) + T(1);
    const Bits<T> power_of_two = Bits<T>(shifted) << F::mantissa_bits;
    return keep_where_at_least<T>(x, lowest, Vector<T>(Bits<T>(mantissa) + power_of_two));
}

// Splits a positive normal x into exponent (as a number) and x / 2^exponent - 1, the latter between
// sqrt(1/2) - 1 and sqrt(2) - 1.
template <class T>
POWERMEANS_INLINE void split(Vector<T> x, Vector<T>& exponent, Vector<T>& fraction) {
    using F = Format<T>;
    // The bias makes the shifted number positive: few machines shift signed 64-bit lanes.
    constexpr auto one_above_sqrt_half = (F::exponent_bias << F::mantissa_bits) - F::sqrt_half_bits;
    const Unsigned<T> biased = Unsigned<T>(Bits<T>(x) + one_above_sqrt_half) >> F::mantissa_bits;
    const Bits<T> whole = Bits<T>(biased) - F::exponent_bias;
    fraction = Vector<T>(Bits<T>(x) - (whole << F::mantissa_bits)) - T(1);
    const Bits<T> shifted = Bits<T>(broadcast(F::to_integer)) + whole;
    exponent = Vector<T>(shifted) - broadcast(F::to_integer);
}

POWERMEANS_INLINE DoubleVector log_of(DoubleVector x) {
    using F = Format<double>;
    DoubleVector exponent, f;
    split<double>(x, exponent, f);
    const DoubleVector s = f / (f + 2.0);
    const DoubleVector z = s * s;
    const DoubleVector half_square = 0.5 * f * f;
    const DoubleVector tail = z * polynomial<double>(z, atanh_tail_double);
    const DoubleVector low = multiply_add(s, half_square + tail, exponent * F::log_2_low);
    return multiply_add(exponent, broadcast(F::log_2_high), f - (half_square - low));
}

POWERMEANS_INLINE FloatVector log_of(FloatVector x) {
    using F = Format<float>;
    FloatVector exponent, f;
    split<float>(x, exponent, f);
    const FloatVector square = f * f;
    const FloatVector tail = (square * f) * polynomial<float>(f, log_tail_float);
    const FloatVector low = multiply_add(exponent, broadcast(F::log_2_low), tail);
    return multiply_add(exponent, broadcast(F::log_2_high), f - (0.5f * square - low));
}

constexpr double exp2_double[] = {0x1.e5e9f548e5725p-28, 0x1.b6571de2f2351p-24, 0x1.62bfe46117445p-20,
                                  0x1.ffcb76789860fp-17, 0x1.4309130378460p-13, 0x1.5d87fe908f88ap-10,
                                  0x1.3b2ab6fba385fp-7,  0x1.c6b08d7044119p-5,  0x1.ebfbdff82c590p-3,
                                  0x1.62e42fefa39f7p-1};
constexpr float exp2_float[] = {0x1.44138ap-13f, 0x1.5f0890p-10f, 0x1.3b2a54p-7f,
                                0x1.c6af6cp-5f,  0x1.ebfbe0p-3f,  0x1.62e430p-1f};
constexpr double log2_double[] = {0x1.f17dfd13ae0efp-3, 0x1.0bb80a92c80ccp-2, 0x1.484fa9965bc9cp-2,
                                  0x1.a61756810b0f8p-2, 0x1.2776c516a083cp-1, 0x1.ec709dc39ca40p-1,
                                  0x1.71547652b82ffp+1};
constexpr float log2_float[] = {0x1.f841dcp-4f,  -0x1.a59aeap-3f, 0x1.ba8738p-3f,
                                -0x1.e9d1e6p-3f, 0x1.26d01cp-2f,  -0x1.715994p-2f,
                                0x1.ec73dep-2f,  -0x1.715474p-1f, 0x1.715476p+0f};

template <int n>
POWERMEANS_INLINE void exp2_quotients(const DoubleVector (&x)[n], DoubleVector (&values)[n]) {
    polynomials<double>(x, exp2_double, values);
}
template <int n>
POWERMEANS_INLINE void exp2_quotients(const FloatVector (&x)[n], FloatVector (&values)[n]) {
    polynomials<float>(x, exp2_float, values);
}

// Sets values[v] to 2^x[v], to three ulps, for x from the least normal exponent to zero.
template <class T, int n>
POWERMEANS_INLINE void exp2_of(const Vector<T> (&x)[n], Vector<T> (&values)[n]) {
    using F = Format<T>;
    Vector<T> shifted[n], rest[n], quotients[n];
#pragma GCC unroll 4
    for (int v = 0; v < n; ++v) {
        shifted[v] = x[v] + broadcast(F::to_integer);
        rest[v] = x[v] - (shifted[v] - broadcast(F::to_integer));
    }
    exp2_quotients(rest, quotients);
#pragma GCC unroll 4
    for (int v = 0; v < n; ++v) {
        const Vector<T> mantissa = multiply_add(rest[v], quotients[v], broadcast(T(1)));
        values[v] = Vector<T>(Bits<T>(mantissa) + (Bits<T>(shifted[v]) << F::mantissa_bits));
    }
}

POWERMEANS_INLINE FloatVector number_of(Bits<float> whole) {
    return __builtin_convertvector(whole, FloatVector);
}
// Few machines convert 64-bit integers.
POWERMEANS_INLINE DoubleVector number_of(Bits<double> whole) {
    constexpr double zero = Format<double>::to_integer;
    return DoubleVector(Bits<double>(broadcast(zero)) + whole) - broadcast(zero);
}

// A vector of least values, and what the logarithm of multiples of them needs.
template <class T>
struct Least {
    Vector<T> value, inverse;
    Bits<T> start;  // of the value times sqrt(1/2): the interval of one exponent begins there

    Least() = default;
    explicit Least(Vector<T> value_)
        : value(value_),
          inverse(broadcast(T(1)) / value_),
          start(Bits<T>(value_ * broadcast(T(0.70710678118654752)))) {}
};

// Sets logs[v] to the logarithm of y / least plus `logs[v]`, for y from sqrt(1/2) to sqrt(2) times the least.
template <int n>
POWERMEANS_INLINE void add_log2_near(const DoubleVector (&y)[n], const Least<double> (&least)[n],
                                     DoubleVector (&logs)[n]) {
    DoubleVector s[n], squares[n], quotients[n];
#pragma GCC unroll 4
    for (int v = 0; v < n; ++v) {
        s[v] = near_quotient<double>(y[v] - least[v].value, y[v] + least[v].value);
        squares[v] = s[v] * s[v];
    }
    polynomials<double>(squares, log2_double, quotients);
#pragma GCC unroll 4
    for (int v = 0; v < n; ++v) logs[v] = multiply_add(s[v], quotients[v], logs[v]);
}
template <int n>
POWERMEANS_INLINE void add_log2_near(const FloatVector (&y)[n], const Least<float> (&least)[n],
                                     FloatVector (&logs)[n]) {
    FloatVector f[n], quotients[n];
#pragma GCC unroll 4
    for (int v = 0; v < n; ++v) f[v] = (y[v] - least[v].value) * least[v].inverse;
    polynomials<float>(f, log2_float, quotients);
#pragma GCC unroll 4
    for (int v = 0; v < n; ++v) logs[v] = multiply_add(f[v], quotients[v], logs[v]);
}

// Sets logs[v] to log2(y[v] / least), for finite y not below the least.
template <class T, int n>
POWERMEANS_INLINE void log2_over(const Least<T> (&least)[n], const Vector<T> (&y)[n], Vector<T> (&logs)[n]) {
    using F = Format<T>;
    constexpr auto mantissa = (Index<T>(1) << F::mantissa_bits) - 1;
    Vector<T> nearer[n];
#pragma GCC unroll 4
    for (int v = 0; v < n; ++v) {
        const Bits<T> above = Bits<T>(y[v]) - least[v].start;
        nearer[v] = Vector<T>(least[v].start + (above & mantissa));
        logs[v] = number_of(Bits<T>(Unsigned<T>(above) >> F::mantissa_bits));
    }
    add_log2_near(nearer, least, logs);
}

}  // namespace
}  // namespace powermeans
