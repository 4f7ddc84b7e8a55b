// Points in one byte a feature, from which bounds on distances follow. No standard header that defines
// functions may come in here.
#pragma once

#include <stdint.h>

namespace powermeans {

// Points as origin + step * (code - middle_code), each within `error` of the point. Distances between
// sketches show that most centers cannot be the nearest of a point, and read an eighth of the memory. Codes
// are small enough for two pairs of products to fit 16 bits.
struct Sketches {
    uint8_t* codes;     // (n_points, width)
    double* steps;      // (n_points,)
    double* errors;     // (n_points,)
    int32_t* sq_norms;  // (n_points,): of code - middle_code
    int64_t width;      // n_features, padded to whole steps
};
inline constexpr int32_t middle_code = 64;
inline constexpr int32_t largest_code = 63;
inline constexpr int64_t codes_per_step = 8;

// Wider products of codes would overflow 32 bits.
inline constexpr int64_t widest_sketch = (int64_t{1} << 31) / (127 * 63) - 64;

template <class V>
struct SketchKernel {
    // Sketches rows `begin` to `end` of the values, times `scale`, a power of two.
    void (*sketch)(const V* values, int64_t n_features, const double* origin, double scale, int64_t begin,
                   int64_t end, const Sketches& to);
};

}  // namespace powermeans
