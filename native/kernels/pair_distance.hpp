// The squared distance of two places, in eight sums that every instruction set adds up alike.
#pragma once

#include <stdint.h>

namespace powermeans {

inline constexpr int64_t pair_distance_step = 8;

// The width is a multiple of the step.
using PairDistance = double (*)(const double* a, const double* b, int64_t width);

}  // namespace powermeans
