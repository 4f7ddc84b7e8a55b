// Widens entries of points to the type that kernels compute with.
#pragma once

#include "kernels/entries.hpp"
#include "kernels/vectors.hpp"

namespace powermeans {
namespace {

POWERMEANS_INLINE float float_of_bits(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

// By shifts, since not every machine has an instruction for it.
POWERMEANS_INLINE FloatVector widened_halves(Unsigned<float> halves) {
    constexpr uint32_t one_exponent = 1u << 23, between_biases = (127 - 15) * one_exponent;
    const Unsigned<float> signs = (halves & 0x8000) << 16, magnitudes = (halves & 0x7fff) << 13;
    // With the exponent of the least normal number, and less that number, a subnormal one is normal.
    const FloatVector subnormals = FloatVector(magnitudes + (between_biases + one_exponent)) - 0x1p-14f;
    const Bits<float> are_subnormal = Bits<float>(magnitudes) < Bits<float>{} + int32_t(one_exponent);
    const Unsigned<float> chosen = Unsigned<float>(are_subnormal);
    const Unsigned<float> bits =
        (Unsigned<float>(subnormals) & chosen) | ((magnitudes + between_biases) & ~chosen);
    return FloatVector(bits | signs);
}

POWERMEANS_INLINE FloatVector widened_halves(const uint16_t* from) {
    typedef uint16_t Halves __attribute__((vector_size(lanes<float> * 2), aligned(2), may_alias));
    return widened_halves(__builtin_convertvector(*reinterpret_cast<const Halves*>(from), Unsigned<float>));
}

void widen_halves(const uint16_t* from, int64_t n, float* to) {
    int64_t i = 0;
    for (; i + lanes<float> <= n; i += lanes<float>) store(to + i, widened_halves(from + i));
    uint16_t rest[lanes<float>] = {};
    float widened[lanes<float>];
    for (int64_t lane = 0; lane < n - i; ++lane) rest[lane] = from[i + lane];
    store(widened, widened_halves(rest));
    for (int64_t lane = 0; lane < n - i; ++lane) to[i + lane] = widened[lane];
}

template <class Narrow, class Widened>
POWERMEANS_INLINE void widen_each(const void* from, int64_t n, float* to, const Widened& widened) {
    const Narrow* values = static_cast<const Narrow*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = widened(values[i]);
}

void widen(const void* from, EntryType type, int64_t n, float* to) {
    switch (type) {
        case EntryType::float16:
            return widen_halves(static_cast<const uint16_t*>(from), n, to);
        case EntryType::bfloat16:
            return widen_each<uint16_t>(from, n, to,
                                        [](uint16_t x) { return float_of_bits(uint32_t(x) << 16); });
        case EntryType::int8:
            return widen_each<int8_t>(from, n, to, [](int8_t x) { return float(x); });
        case EntryType::uint8:
            return widen_each<uint8_t>(from, n, to, [](uint8_t x) { return float(x); });
        case EntryType::computed:
            break;
    }
}

// Returns n entries, in `buffer` where they had to be widened.
POWERMEANS_INLINE const double* entries_at(const Entries<double>& entries, int64_t first, int64_t, double*) {
    return entries.computed() + first;
}
POWERMEANS_INLINE const float* entries_at(const Entries<float>& entries, int64_t first, int64_t n,
                                          float* buffer) {
    if (!entries.are_narrow()) return entries.computed() + first;
    widen(entries.at(first), entries.type, n, buffer);
    return buffer;
}

}  // namespace
}  // namespace powermeans
