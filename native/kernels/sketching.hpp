// Rounds points to sketches.
#pragma once

#include "kernels/reductions.hpp"
#include "kernels/sketches.hpp"
#include "kernels/widening.hpp"

namespace powermeans {
namespace {

// Rounding may add this relative error to a sketch.
constexpr double rounding_of_sketch = 1e-5;

constexpr double smallest_useless_inverse = 1e300;

// Eight features of a row less the origin.
struct FeatureStep {
    DoubleVector at[vectors_per_unit];
};

template <class V>
POWERMEANS_INLINE FeatureStep step_at(const V* row, const double* origin, int64_t f, int64_t n_features) {
    double wide[codes_per_step];
    for (int64_t i = 0; i < codes_per_step; ++i)
        wide[i] = f + i < n_features ? double(row[f + i]) - origin[f + i] : 0;
    FeatureStep step;
    for (int v = 0; v < vectors_per_unit; ++v) step.at[v] = load(wide + v * lanes<double>);
    return step;
}

template <class V>
POWERMEANS_INLINE FeatureStep whole_step_at(const V* row, const double* origin, int64_t f) {
    typedef V Values __attribute__((vector_size(lanes<double> * sizeof(V)), aligned(sizeof(V)), may_alias));
    FeatureStep step;
    for (int v = 0; v < vectors_per_unit; ++v) {
        const int64_t at = f + v * lanes<double>;
        const Values values = *reinterpret_cast<const Values*>(row + at);
        step.at[v] = __builtin_convertvector(values, DoubleVector) - load(origin + at);
    }
    return step;
}

// Calls visit(f, step) for all features, eight at a time, the last filled up with zeros.
template <class V, class Visit>
POWERMEANS_INLINE void for_each_step(const V* row, const double* origin, int64_t n_features,
                                     const Visit& visit) {
    int64_t f = 0;
    for (; f + codes_per_step <= n_features; f += codes_per_step) visit(f, whole_step_at(row, origin, f));
    if (f < n_features) visit(f, step_at(row, origin, f, n_features));
}

// Adding this rounds a double to a whole number, which its lowest bits then hold.
constexpr double rounder = 0x1.8p52;

// What rounding a row to codes leaves.
struct RoundedRow {
    double sq_error = 0, sq_norm = 0;  // of value - code, and of the codes, less their middle
    double sq_size = 0;                // of the values
};

// Puts the lowest byte of each lane beside those of its neighbors, and adds the middle code to them.
POWERMEANS_INLINE uint64_t packed_codes(const Bits<double> (&numbers)[vectors_per_unit]) {
#if defined(__AVX512F__)
    return uint64_t(_mm_cvtsi128_si64(_mm512_cvtepi64_epi8(__m512i(numbers[0] + middle_code))));
#else
    Unsigned<double> joined = {};
    for (int v = 0; v < vectors_per_unit; ++v) {
        Unsigned<double> shifts;
        for (int lane = 0; lane < lanes<double>; ++lane)
            shifts[lane] = uint64_t(8 * (v * lanes<double> + lane));
        joined |= (Unsigned<double>(numbers[v] + middle_code) & 0xff) << shifts;
    }
    uint64_t codes = 0;
    for (int lane = 0; lane < lanes<double>; ++lane) codes |= joined[lane];
    return codes;
#endif
}

template <class V>
RoundedRow round_row(const V* row, const double* origin, int64_t n_features, double per_step,
                     uint8_t* codes) {
    DoubleVector sq_errors[vectors_per_unit] = {}, sq_norms[vectors_per_unit] = {};
    DoubleVector sq_sizes[vectors_per_unit] = {};
    for_each_step(row, origin, n_features, [&](int64_t f, const FeatureStep& step) {
        Bits<double> numbers[vectors_per_unit];
        for (int v = 0; v < vectors_per_unit; ++v) {
            const DoubleVector value = step.at[v] * per_step, bits = value + rounder;
            const DoubleVector whole = bits - rounder, error = value - whole;
            sq_errors[v] = multiply_add(error, error, sq_errors[v]);
            sq_norms[v] = multiply_add(whole, whole, sq_norms[v]);
            sq_sizes[v] = multiply_add(value, value, sq_sizes[v]);
            numbers[v] = Bits<double>(bits);
        }
        const uint64_t packed = packed_codes(numbers);
        __builtin_memcpy(codes + f, &packed, sizeof packed);
    });
    return {sum_of_lanes<double>(sq_errors), sum_of_lanes<double>(sq_norms), sum_of_lanes<double>(sq_sizes)};
}

template <class V>
double largest_deviation(const V* row, const double* origin, int64_t n_features) {
    DoubleVector largest[vectors_per_unit] = {};
    for_each_step(row, origin, n_features, [&](int64_t, const FeatureStep& step) {
        for (int v = 0; v < vectors_per_unit; ++v)
            largest[v] = larger(larger(step.at[v], -step.at[v]), largest[v]);
    });
    for (int v = 1; v < vectors_per_unit; ++v) largest[0] = larger(largest[v], largest[0]);
    return -smallest_lane<double>(-largest[0]);
}

// Rounds x to step * (code - middle_code), and bounds the error.
template <class V>
void draw_sketch(const Entries<V>& values, int64_t n_features, const double* origin, double scale,
                 int64_t begin, int64_t end, V* buffer, const Sketches& to) {
    for (int64_t i = begin; i < end; ++i) {
        const V* row = entries_at(values, i * n_features, n_features, buffer);
        const double largest = largest_deviation(row, origin, n_features) * scale;
        // A point too close to the origin to divide by its step gets the code of the origin.
        const double wanted_step = largest / largest_code;
        const bool is_coded = scale / wanted_step < smallest_useless_inverse;
        const double step = is_coded ? wanted_step : 0, per_step = is_coded ? scale / step : 0;
        const RoundedRow rounded = round_row(row, origin, n_features, per_step, to.codes + i * to.width);
        to.steps[i] = step;
        to.sq_norms[i] = int32_t(rounded.sq_norm);
        to.norms[i] = is_coded ? step * step * rounded.sq_size : 0;
        to.errors[i] = is_coded ? step * (__builtin_sqrt(rounded.sq_error) * (1 + rounding_of_sketch) +
                                          __builtin_sqrt(rounded.sq_norm) * rounding_of_sketch)
                                : largest * __builtin_sqrt(double(n_features)) * (1 + rounding_of_sketch);
    }
}

}  // namespace
}  // namespace powermeans
