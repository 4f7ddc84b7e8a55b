// Widens entries of points to the type that kernels compute with.
#pragma once

#include "entries.hpp"
#include "vectors.hpp"

namespace powermeans {
namespace {

POWERMEANS_INLINE float float_of_bits(uint32_t bits) {
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
}

POWERMEANS_INLINE uint32_t bits_of_float(float value) {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return bits;
}

// By shifts, since not every machine has an instruction for it.
POWERMEANS_INLINE float widened_half(uint16_t half) {
    constexpr uint32_t one_exponent = 1u << 23, between_biases = (127 - 15) * one_exponent;
    const uint32_t sign = uint32_t(half & 0x8000) << 16, magnitude = uint32_t(half & 0x7fff) << 13;
    // With the exponent of the least normal number, and less that number, a subnormal one is normal.
    const float subnormal = float_of_bits(magnitude + between_biases + one_exponent) - 0x1p-14f;
    const uint32_t bits = magnitude < one_exponent ? bits_of_float(subnormal) : magnitude + between_biases;
    return float_of_bits(bits | sign);
}

template <class Narrow, class Widened>
POWERMEANS_INLINE void widen_each(const void* from, int64_t n, float* to, const Widened& widened) {
    const Narrow* values = static_cast<const Narrow*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = widened(values[i]);
}

void widen(const void* from, EntryType type, int64_t n, float* to) {
    switch (type) {
        case EntryType::float16:
            return widen_each<uint16_t>(from, n, to, [](uint16_t x) { return widened_half(x); });
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
