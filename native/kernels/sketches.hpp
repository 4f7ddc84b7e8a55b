// Points in one byte a feature, from which bounds on distances follow. No standard header that defines
// functions may come in here.
#pragma once

#include <stdint.h>

#include "kernels/entries.hpp"

namespace powermeans {

// Points as origin + step * (code - middle_code), each within `error` of the point. Distances between
// sketches show that most centers cannot be the nearest of a point, and read an eighth of the memory. Codes
// are small enough for two pairs of products to fit 16 bits.
struct Sketches {
    uint8_t* codes;     // (n_points, width)
    double* steps;      // (n_points,)
    double* errors;     // (n_points,)
    int32_t* sq_norms;  // (n_points,): of code - middle_code
    double* norms;      // (n_points,): |x - origin|^2
    int64_t width;      // n_features, padded to whole steps
};
inline constexpr int32_t middle_code = 64;
inline constexpr int32_t largest_code = 63;
inline constexpr int64_t codes_per_step = 8;

// Wider products of codes would overflow 32 bits.
inline constexpr int64_t widest_sketch = (int64_t{1} << 31) / (127 * 63) - 64;

// Centers in bytes, one in each lane of a panel, in the unit of the kernels.
inline constexpr int64_t sketched_lanes = 16;
inline constexpr int64_t quad_codes = 4;
struct CenterSketches {
    int64_t n_padded;           // a multiple of sketched_lanes
    int64_t width;              // as that of the points
    const int8_t* panels;       // (n_padded / sketched_lanes, width / quad_codes, sketched_lanes, quad_codes)
    const int32_t* offsets;     // (n_padded,): what middle_code adds to the products
    const float* steps;         // (n_padded,)
    const float* errors;        // (n_padded,), rounded up
    const float* sq_norms;      // (n_padded,): of the center itself, infinite in the padding
    const float* norm_changes;  // (n_padded,): squared norm of the sketch less that of the center
    const float* lengths;       // (n_padded,): of the center, rounded up
};

// What a sweep needs to leave out centers by sketches; without codes it compares with all.
struct Sketched {
    Sketches points;
    double scale;  // from the unit of the points' sketches to that of the kernels
    CenterSketches centers;
};

// Points that are multiplied with the centers at a time.
inline constexpr int64_t sketched_together = 16;

template <class V>
struct SketchKernel {
    // Sketches rows `begin` to `end` of the values, times `scale`, a power of two. `row` has room for one.
    void (*sketch)(const Entries<V>& values, int64_t n_features, const double* origin, double scale,
                   int64_t begin, int64_t end, V* row, const Sketches& to);
};

}  // namespace powermeans
